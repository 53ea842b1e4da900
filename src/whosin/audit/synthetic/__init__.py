"""Synthetic tables: do they tell who was in the table that they were made from?

`encoding` turns rows into numbers, `membership` scores rows, `guessing` singles people out and
links their data, and `tables` is the audit of three tables.
"""
