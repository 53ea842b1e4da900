"""Audits of training: fit a model on people chosen by coins, and see whom it betrays.

`rows` takes parts of whatever the training data is, `coins` tosses, `canaries` plants, `scoring`
asks a model how well it knows each row, `shadows` has the attacks, `state` keeps what was done so
far, and `training` is the audit.
"""
