"""Tables of whole numbers, none below 0, with the same total in each.

Contract: post-processing of the estimate, free of charge and biased: cells that are truly 0 come
out at 0 or above, never below. Each table is the closest one to its estimate with no cell below 0
and the common total, then rounded so that the total stays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from whosin.exact import Array


def whole_tables(tables: Sequence[Array], total: float) -> list[Array]:
    """The whole version of some tables.

    Args:
        total: the estimate of how many there are in all.
    """
    people = max(0, round(float(total)))
    return [_rounded(_closest(each.ravel(), people), people).reshape(each.shape) for each in tables]


def _closest(cells: Array, total: int) -> Array:
    """The closest point, in least squares, whose coordinates are at least 0 and add up: all cells
    less a constant, those that would be below 0 set to it."""
    falling = np.sort(cells)[::-1]
    sums = (np.cumsum(falling) - total) / np.arange(1, cells.size + 1)
    kept = int(np.flatnonzero(falling > sums)[-1]) if total else 0
    return np.maximum(cells - sums[kept], 0.0) if total else np.zeros(cells.size)


def _rounded(cells: Array, total: int) -> Array:
    """Down, then one more for those with the largest remainders, until the total is there."""
    found = np.floor(cells).astype(np.int64)
    rest = total - int(found.sum())
    order = np.argsort(found - cells, kind="stable")
    if rest > 0:
        found[order[:rest]] += 1
    return found
