"""How exact tables will be, before anything is measured: F20.

The best linear unbiased estimate of every table C has, in every cell, the variance Σ_{A⊆C}
∏_{i∈A}(1−1/n_i) ∏_{j∈C∖A} n_j^−2 / π_A, where π_A adds up what each measurement tells about R_A.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from whosin.exact import Array
from whosin.marginals.measurements import Measurement
from whosin.marginals.workload import Workload


class Information:
    """What measurements tell about the residuals of a workload: the matrix that takes 1/v_B to π_A,
    by its entries."""

    def __init__(self, workload: Workload, measurements: Sequence[Measurement]) -> None:
        self.workload, self.measurements = workload, tuple(measurements)
        pairs = [
            (at, number, gain)
            for number, each in enumerate(self.measurements)
            for at, gain in each.informs(workload)
        ]
        self.residuals = np.array([at for at, _, _ in pairs], np.int64)
        self.numbers = np.array([number for _, number, _ in pairs], np.int64)
        self.gains = np.array([gain for _, _, gain in pairs], np.float64)

    def about(self, precisions: Array) -> Array:
        """π_A from the precisions 1/v_B."""
        told = self.gains * precisions[self.numbers]
        return np.bincount(self.residuals, told, len(self.workload.residuals))

    def back(self, worths: Array) -> Array:
        """For each measurement the sum of what its residuals are worth, by what it tells."""
        result = self.gains * worths[self.residuals]
        return np.bincount(self.numbers, result, len(self.measurements))


def table_variances(workload: Workload, about: Array) -> Array:
    """The variance of a cell of each table, from π; infinite where a residual is not known."""
    tables, residuals, factors = workload.uses
    with np.errstate(divide="ignore"):
        each = factors / about[residuals]
    return np.bincount(tables, each, len(workload.sets))


def cell_variances(
    workload: Workload, measurements: Sequence[Measurement], variances: Sequence[float]
) -> Array:
    """The variance of a cell of each table, for noise of some variance a number."""
    about = Information(workload, measurements).about(1 / np.asarray(variances, np.float64))
    return table_variances(workload, about)


def optimum(workload: Workload, rho: float) -> float:
    """The least mean variance of any linear Gaussian mechanism of ρ-zCDP, where one person is one
    row, and is there or not: (Σ_A √(c_A p_A))² / 2ρ."""
    roots = np.sqrt(workload.importance() * workload.spread)
    return float(roots.sum() ** 2 / (2 * rho))
