"""How exact tables will be, before anything is measured: F20.

The best linear unbiased estimate of every table C has, in every cell, the variance Σ_{A⊆C}
∏_{i∈A}(1−1/n_i) ∏_{j∈C∖A} n_j^−2 / π_A, where π_A adds up what each measurement tells about R_A.
The estimated R_A has the covariance ⊗_{i∈A}(I − 1/n_i) / π_A, and those of different A are
uncorrelated; so a product of sums, of l_i cells each, has the variance Σ_{A⊆C}
∏_{i∈A}(l_i − l_i²/n_i) ∏_{j∈C∖A} (l_j/n_j)² / π_A.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from whosin.exact import Array
from whosin.marginals.measurements import Measurement
from whosin.marginals.workload import Workload, subsets


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
    """The variance of a cell of each table, from π; infinite where a residual is not known. For
    sums it is the mean."""
    tables, residuals, factors = workload.uses
    with np.errstate(divide="ignore"):
        each = factors / about[residuals]
    return np.bincount(tables, each, len(workload.sets))


def cell_variances(
    workload: Workload, measurements: Sequence[Measurement], variances: Sequence[float]
) -> Array:
    """The variance of a cell of each table, for noise of some variance a number; for sums
    the mean."""
    about = Information(workload, measurements).about(1 / np.asarray(variances, np.float64))
    return table_variances(workload, about)


def sum_variances(
    workload: Workload, measurements: Sequence[Measurement], variances: Sequence[float]
) -> dict[int, Array]:
    """The variance of each sum of each table that asks for sums, by the table's number."""
    about = Information(workload, measurements).about(1 / np.asarray(variances, np.float64))
    asked = [number for number in range(len(workload.sets)) if not workload.alike(number)]
    return {number: _each_variance(workload, about, number) for number in asked}


def _each_variance(workload: Workload, about: Array, number: int) -> Array:
    attributes = workload.sets[number]
    inside, evenly = {}, {}
    for each, sums in zip(attributes, workload.sums[number], strict=True):
        size = workload.sizes[each]
        inside[each] = np.full(size, 1 - 1 / size) if sums is None else sums.within
        evenly[each] = np.full(size, size**-2.0) if sums is None else sums.evenly
    result = np.zeros(workload.asked(number))
    for part in subsets(attributes):
        factor = np.ones(())
        for each in attributes:
            factor = np.multiply.outer(factor, inside[each] if each in part else evenly[each])
        with np.errstate(divide="ignore", invalid="ignore"):
            told = factor / about[workload.index_of[part]]
        result += np.where(factor > 0, told, 0.0)
    return result


def optimum(workload: Workload, rho: float) -> float:
    """The least mean variance of any linear Gaussian mechanism of ρ-zCDP, where one person is one
    row, and is there or not: (Σ_A √(c_A p_A))² / 2ρ."""
    roots = np.sqrt(workload.importance() * workload.spread)
    return float(roots.sum() ** 2 / (2 * rho))
