"""How far the estimate may be from the truth: for each cell, and for all cells of a table at once.

The noise does not depend on the data, so its error can be drawn again: K copies of the measured
noise go through the same estimate. Contract: the radii hold with at least the stated probability,
whatever K is, counting the copies' own chance too; no limit theorem is used.

*All cells.* The largest errors of the K copies and the true one are exchangeable, so the true one
is at most the k-th least of the copies' with probability k/(K+1).
*Each cell.* Let F_j(r) be the share of a copy's cells that are off by more than r, and r the least
radius with (1 + Σ_j F_j(r)) / (K+1) ≤ α. With the true errors in the place of the 1 the least
radius would be smaller, and by exchangeability the mean of F at that one is at most α. All cells of
a table have the same error distribution, since noise is alike in all cells and symmetric, and the
estimate commutes with renaming the values of an attribute; so α holds for each of them, and a few
cells of a large table are enough to find r.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from whosin.exact import Array
from whosin.marginals.estimation import estimate, table_of
from whosin.marginals.measurements import Measurement
from whosin.marginals.workload import Workload

COPIES = (199, 99, 39)
"""How many copies to draw, as many as stay within the limit of numbers."""
MOST_DRAWN = 5 * 10**6
MOST_HELD = 2 * 10**6
"""Numbers that are held at a time."""
LOOKED_AT = 64
"""Cells of a table that give the radius of each of its cells."""
Draw = Callable[[int, tuple[int, ...]], Array]
"""Noise for a measurement, by its number, in a shape."""


@dataclass(frozen=True)
class Radii:
    """Of one table.

    Attributes:
        cell: each cell of it is this close, with the stated probability.
        table: all cells of it are this close, likewise.
    """

    cell: float
    table: float


def radii(
    workload: Workload,
    measurements: Sequence[Measurement],
    variances: Sequence[float],
    draw: Draw,
    confidence: float = 0.95,
    copies: int | None = None,
) -> list[Radii]:
    """The radii of each table, from copies of the noise.

    Args:
        draw: draws noise of the same distribution as the measured one had.
        copies: K; by default as many as are cheap. With fewer the radii are larger.
    """
    numbers = sum(each.cells(workload.sizes) for each in measurements)
    count = copies or next((k for k in COPIES if k * numbers <= MOST_DRAWN), COPIES[-1])
    block = max(1, min(count, MOST_HELD // max(numbers, 1)))
    largest: list[list[Array]] = [[] for _ in workload.sets]
    looked: list[list[Array]] = [[] for _ in workload.sets]
    for start in range(0, count, block):
        size = min(block, count - start)
        noise = [
            draw(number, (size, *each.shape(workload.sizes)))
            for number, each in enumerate(measurements)
        ]
        residuals = estimate(workload, measurements, variances, noise)
        for number, attributes in enumerate(workload.sets):
            errors = np.abs(table_of(workload, residuals, attributes)).reshape(size, -1)
            largest[number].append(errors.max(axis=1))
            looked[number].append(errors[:, : min(LOOKED_AT, errors.shape[1])])
    return [
        Radii(_each(np.concatenate(some), confidence), _all(np.concatenate(most), confidence))
        for some, most in zip(looked, largest, strict=True)
    ]


def _all(largest: Array, confidence: float) -> float:
    """The k-th least, k/(K+1) being the confidence or more."""
    copies = len(largest)
    rank = ceil(confidence * (copies + 1) - 1e-9)
    return float(np.sort(largest)[rank - 1]) if rank <= copies else float("inf")


def _each(errors: Array, confidence: float) -> float:
    """The least r with (1 + Σ F_j(r))/(K+1) at most 1 − confidence; F_j is the share beyond r."""
    copies, cells = errors.shape
    beyond = floor(cells * ((1 - confidence) * (copies + 1) - 1) + 1e-9)
    if beyond < 0:
        return float("inf")
    flat = np.sort(errors, axis=None)
    return float(flat[flat.size - 1 - beyond]) if beyond < flat.size else 0.0
