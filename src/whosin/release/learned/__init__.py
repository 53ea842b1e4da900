"""Synthetic tables that were learned from noisy marginals.

Contract: rows are read in one scan of counts. From there only three things leave, each with exact
noise that was paid for: counts of tables (`prices`), which pairs of columns to count (`choosing`),
and how far the finished table is from the rows (`distances`). The model and the drawn rows
(`models`) are made from the noisy numbers alone, in a process that is given nothing else, so that
they cost nothing and may use any generator of random numbers.
"""
