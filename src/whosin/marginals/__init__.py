"""Many tables of the same people at once, from one budget (F20).

Contract: no array over all combinations of all attributes is ever made, only over those of one
table. Everything here is arithmetic on public numbers and on what was already measured with noise:
nothing in this room sees rows, spends a budget or draws privacy-bearing noise.
"""

from whosin.marginals.estimation import estimate, tables_of
from whosin.marginals.intervals import Radii, radii
from whosin.marginals.measurements import Measurement
from whosin.marginals.spending import Spending, spend
from whosin.marginals.sums import Sums, summed
from whosin.marginals.variance import cell_variances, optimum, sum_variances
from whosin.marginals.whole_numbers import whole_tables
from whosin.marginals.workload import Workload

__all__ = [
    "Measurement",
    "Radii",
    "Spending",
    "Sums",
    "Workload",
    "cell_variances",
    "estimate",
    "optimum",
    "radii",
    "spend",
    "sum_variances",
    "summed",
    "tables_of",
    "whole_tables",
]
