"""Tables of whole numbers, none below 0, with the same total in each.

Contract: post-processing of the estimate, free of charge and biased: cells that are truly 0 come
out at 0 or above, never below.

A table of one attribute is the closest one, in least squares, with no cell below 0 and the common
total. A larger table starts where its attributes would be independent, and moves towards its
estimate by exponentiated gradients, which keep cells positive, until what is left is no more than
noise: many cells of a large table are nearly empty, and there the closest table would follow the
noise. Where it does not come that near, it is the closest table too. Then cells are rounded so that
the total stays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from whosin.exact import Array

EXPLAINED = 0.6
"""The share of the noise's expected square that may be left between a table and its estimate."""
NEARLY = 1.1
"""Times what is left by the closest table, which need not be reached."""
STEPS = 100
LEAST = 0.5
"""People in a margin, so that no cell starts at 0."""


def whole_tables(tables: Sequence[Array], variances: Sequence[float], total: float) -> list[Array]:
    """The whole version of some tables.

    Args:
        variances: the variance of a cell, for each estimate.
        total: the estimate of how many there are in all.
    """
    people = max(0, round(float(total)))
    result = []
    for table, variance in zip(tables, variances, strict=True):
        fitted = _closest(table.ravel(), people).reshape(table.shape)
        if table.ndim > 1 and people:
            least = float(((fitted - table) ** 2).sum())
            allowed = max(EXPLAINED * float(variance) * table.size, NEARLY * least)
            fitted = _moved(table, people, allowed, float(variance) ** 0.5, fitted)
        result.append(_rounded(fitted.ravel(), people).reshape(table.shape))
    return result


def _moved(table: Array, total: int, allowed: float, error: float, closest: Array) -> Array:
    """From independence towards the estimate, until no more than `allowed` is left; the closest
    table where that takes too long."""
    fit = _independent(table, total)
    square = float(((fit - table) ** 2).sum())
    rate = 1 / (float(fit.max()) + error)
    for _ in range(STEPS):
        if square <= allowed:
            return fit
        moved = fit * np.exp(np.clip(rate * (table - fit), -5.0, 5.0))
        moved *= total / moved.sum()
        left = float(((moved - table) ** 2).sum())
        if left < square:
            fit, square, rate = moved, left, rate * 1.3
        else:
            rate /= 2
    return fit if square <= allowed else closest


def _independent(table: Array, total: int) -> Array:
    """The table that the margins of an estimate would have if attributes were independent."""
    result = np.ones(())
    for axis in range(table.ndim):
        others = tuple(each for each in range(table.ndim) if each != axis)
        margin = np.maximum(_closest(table.sum(axis=others), total), LEAST)
        result = np.multiply.outer(result, margin / margin.sum())
    return np.asarray(result * total)


def _closest(cells: Array, total: int) -> Array:
    """The closest point, in least squares, whose coordinates are at least 0 and add up: all cells
    less a constant, those that would be below 0 set to it."""
    if not total:
        return np.zeros(cells.size)
    falling = np.sort(cells)[::-1]
    sums = (np.cumsum(falling) - total) / np.arange(1, cells.size + 1)
    kept = int(np.flatnonzero(falling > sums)[-1])
    return np.asarray(np.maximum(cells - sums[kept], 0.0))


def _rounded(cells: Array, total: int) -> Array:
    """Down, then one more for those with the largest remainders, until the total is there."""
    result = np.floor(cells).astype(np.int64)
    rest = total - int(result.sum())
    order = np.argsort(result - cells, kind="stable")
    if rest > 0:
        result[order[:rest]] += 1
    for index in order[::-1][: max(-rest, 0)]:  # only where sums of floats are off by a unit
        result[index] -= result[index] > 0
    return result
