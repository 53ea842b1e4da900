"""All tables from one estimate: each residual by the mean of what measurements say about it,
weighted by what each tells, and each table by its residuals.

Contract: this is generalised least squares (F20), so it is unbiased, has the least variance of all
linear estimates, and its tables agree wherever they share attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from whosin.exact import Array
from whosin.marginals.measurements import Measurement
from whosin.marginals.sums import summed
from whosin.marginals.variance import Information
from whosin.marginals.workload import Attributes, Workload, subsets


def estimate(
    workload: Workload,
    measurements: Sequence[Measurement],
    variances: Sequence[float],
    values: Sequence[Array],
) -> dict[Attributes, Array]:
    """The residuals; arrays whose axes before those of the table are carried along.

    Args:
        variances: the variance of the noise of a number, for each measurement.
        values: the measured numbers, in the shape of each measurement.
    """
    told = Information(workload, measurements)
    precisions = 1 / np.asarray(variances, np.float64)
    about = told.about(precisions)
    result: dict[Attributes, Array] = {}
    for at, number, gain in zip(told.residuals, told.numbers, told.gains, strict=True):
        part = workload.residuals[at]
        share = gain * precisions[number] / about[at]
        one = share * measurements[number].residual(values[number], part, workload.sizes)
        result[part] = result[part] + one if part in result else one
    return result


def tables_of(workload: Workload, residuals: dict[Attributes, Array]) -> list[Array]:
    """The tables, or sums of their cells, in the order of the workload."""
    return [
        summed(table_of(workload, residuals, each), sums)
        for each, sums in zip(workload.sets, workload.sums, strict=True)
    ]


def table_of(
    workload: Workload, residuals: dict[Attributes, Array], attributes: Attributes
) -> Array:
    """The cells of one table: Σ_{A ⊆ C} R_A, each spread evenly over the attributes that it does
    not have."""
    carried = residuals[()].shape
    total = np.zeros((*carried, *workload.shape(attributes)))
    for part in subsets(attributes):
        axes = [workload.sizes[each] if each in part else 1 for each in attributes]
        over = prod(workload.sizes[each] for each in attributes if each not in part)
        total += residuals[part].reshape((*carried, *axes)) / over
    return total
