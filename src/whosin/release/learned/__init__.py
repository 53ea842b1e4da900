"""Synthetic tables that were learned from noisy marginals.

Contract: rows are read in one scan of counts. From there only three things leave, each with exact
noise that was paid for: counts of tables (`prices`), which tables to count (`ways`: `spanning` and
`adaptive`), and how far the finished table is from the rows (`distances`). The models between two
rounds (`estimates`) are made from the noisy numbers alone, and so are the last one and the drawn
rows (`models`), in a process that is given nothing else: they cost nothing and may use any
generator of random numbers.
"""
