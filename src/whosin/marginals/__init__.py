"""Many tables of the same people at once, from one budget (F20).

No array over all combinations of all attributes is ever made, only over those of one table.
Everything here is arithmetic on public numbers and on what was already measured with noise: nothing
in this room sees rows, spends a budget or draws privacy-bearing noise.
"""

from whosin.marginals.allocation import BudgetAllocation, allocate_budget
from whosin.marginals.estimation import (
    IntervalRadii,
    Measurement,
    cell_variances,
    estimate_residuals,
    estimate_tables,
    interval_radii,
    optimal_variance,
    sum_variances,
    whole_tables,
)
from whosin.marginals.workload import Sums, Workload, sum_cells

__all__ = [
    "BudgetAllocation",
    "IntervalRadii",
    "Measurement",
    "Sums",
    "Workload",
    "allocate_budget",
    "cell_variances",
    "estimate_residuals",
    "estimate_tables",
    "interval_radii",
    "optimal_variance",
    "sum_cells",
    "sum_variances",
    "whole_tables",
]


def __dir__() -> list[str]:
    return __all__
