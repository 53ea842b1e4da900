"""A solver's answer, computed again from its basis to all the digits that floats have.

At a vertex the tight constraints, as many as there are positive weights, determine the weights, and
the same matrix transposed determines the multipliers. Both systems are solved by sparse elimination
and refined with residuals in longer floats.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whosin.exact import Array

ROUNDS = 4


def polished(
    lines: Array, columns: Array, values: Array, right: Array, costs: Array, basis: Any
) -> tuple[Array, Array] | None:
    """Weights and multipliers of the constraints at a basis, or nothing where it is singular.

    Args:
        lines, columns, values: the coefficients of the constraints.
        right: the value of each constraint where it is tight.
        costs: of the weights.
        basis: which weights are positive, and which constraints are tight, as the solver says.
    """
    import highspy
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import splu

    basic = highspy.HighsBasisStatus.kBasic
    kept = np.array([status == basic for status in basis.col_status], dtype=bool)
    tight = np.array([status != basic for status in basis.row_status], dtype=bool)
    if len(kept) != len(costs) or len(tight) != len(right) or kept.sum() != tight.sum():
        return None
    inside = tight[lines] & kept[columns]
    row = np.cumsum(tight)[lines[inside]] - 1
    column = np.cumsum(kept)[columns[inside]] - 1
    entries, size = values[inside], int(kept.sum())
    try:
        factors = splu(csc_matrix((entries, (row, column)), shape=(size, size)))
    except RuntimeError:  # singular
        return None
    weights, duals = np.zeros(len(costs)), np.zeros(len(right))
    weights[kept] = _refined(factors, "N", row, column, entries, right[tight])
    duals[tight] = _refined(factors, "T", column, row, entries, costs[kept])
    if not (np.isfinite(weights).all() and np.isfinite(duals).all()):
        return None
    return weights, duals


def _refined(
    factors: Any, side: str, row: Array, column: Array, entries: Array, right: Array
) -> Array:
    found = np.zeros(len(right), dtype=np.longdouble)
    for _ in range(ROUNDS):
        left = right.astype(np.longdouble)
        np.subtract.at(left, row, entries * found[column])
        found = found + factors.solve(left.astype(float), side)
    return np.asarray(found.astype(float))
