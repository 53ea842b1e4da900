"""One run against a whole trade-off curve (f-DP), such as that of Gaussian noise.

`claims` says which curves there are, `recursion` how likely so many right guesses are under one,
`choosing` how many guesses to make, and `run` is the audit.
"""
