"""How far a table of counts is from an estimate of it, in whole numbers.

The distance is Σ |S·count − e| over the cells, where S is `STEPS` and e the estimate in steps,
rounded to whole numbers: no rounding of floats enters the sensitivity.

What one person changes, whose rows that count are at most r: the estimate stays the same, since it
is made of noisy numbers that are already out. A person who is there or not changes counts by at
most r in all, and each |S·count − e| by at most S times what its count changes (the triangle
inequality): at most S·r together. Replacing a person: at most r counts fall by one and r rise,
S·2r. Both are reached: where all r rows of a person are in one cell that is below its estimate, and
those of the other in one that is above it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from whosin.exact import Array

STEPS = 1024
"""Steps that a row is divided into: estimates of cells with less than one row count too."""
LARGEST = 2.0**42
"""Rows of an estimate: with this many counted ones too, sums stay within 64 bits."""


def sensitivity(relation: str, rows: int) -> int:
    """How far one person can move a distance."""
    return STEPS * rows * (2 if relation == "replace" else 1)


def distance(counts: Array, expected: Array) -> int:
    """From counts to an estimate that is public."""
    return int(np.abs(STEPS * counts.astype(np.int64) - in_steps(expected)).sum())


def in_steps(expected: Array) -> Array:
    """An estimate in whole steps; cells below 0 count as 0, and one that is too large shrinks."""
    result = np.maximum(np.nan_to_num(np.asarray(expected, np.float64)), 0.0)
    total = float(result.sum())
    if total > LARGEST:
        result = result * (LARGEST / total)
    return np.asarray(np.rint(result * STEPS), np.int64)


def independent(margins: Sequence[Array], total: float) -> Array:
    """The table in which columns have these (noisy) margins and nothing to do with each other."""
    result = np.array(float(total))
    for margin in margins:
        result = np.multiply.outer(result, shares(margin))
    return result


def shares(margin: Array) -> Array:
    """Noisy counts as shares: those nearest to them, in least squares, that are not below 0 and add
    up to 1. Where noise makes the total 0 or less, even ones."""
    noisy = np.asarray(margin, np.float64).ravel()
    total = float(noisy.sum())
    if total <= 0:
        return np.full(margin.shape, 1 / noisy.size)
    falling = np.sort(noisy)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, noisy.size + 1)
    lower = excess[np.flatnonzero(falling > excess)[-1]]
    result = np.maximum(noisy - lower, 0.0)
    return np.asarray(result / result.sum()).reshape(margin.shape)
