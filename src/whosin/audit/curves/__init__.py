"""One run against a whole trade-off curve (f-DP), such as that of Gaussian noise.

`claims` says which curves there are, `recursion` how likely a number of right guesses is under one,
`choosing` how many guesses to make, and `run` is the audit.
"""
