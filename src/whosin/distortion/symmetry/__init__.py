"""Which tables does a prior treat alike, and which rows are independent of each other?"""
