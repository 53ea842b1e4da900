"""Several tables of the same people, public tables beside them, and what is computed for a person.

`features` and `further` are what a scenario says, as data; `aggregates` computes features,
`lookups` holds public tables, `database` puts everything together as rows with more columns.
"""
