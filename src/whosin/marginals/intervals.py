"""How far the estimate may be from the truth: for each cell, and for all cells of a table at once.

The noise does not depend on the data, so its error can be drawn again: K copies of the measured
noise go through the same estimate. Contract: the radii hold with at least the stated probability,
whatever K is, counting the copies' own chance too; no limit theorem is used.

*All cells.* The largest errors of the K copies and the true one are exchangeable, so the true one
is at most the k-th least of the copies' with probability k/(K+1).
*Each cell.* Let F_j(r) be the share of a copy's cells that are off by more than r, and r the least
radius with (1 + Σ_j F_j(r)) / (K+1) ≤ α. With the true errors instead of the 1 the least
radius would be smaller, and by exchangeability the mean of F at that one is at most α. All cells of
a table have the same error distribution, since noise is alike in all cells and symmetric, and the
estimate commutes with renaming the values of an attribute; so α holds for each of them, and a few
cells of a large table are enough to find r.
*Sums.* The error of a sum depends on how many cells it has, attribute by attribute, and on nothing
else, for the same reason: one sum of each kind is looked at. All sums of a table are compared in
units of their standard errors, which are public, so that each has its own radius.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, prod

import numpy as np

from whosin.exact import Array
from whosin.marginals.estimation import estimate, table_of
from whosin.marginals.measurements import Measurement
from whosin.marginals.sums import summed
from whosin.marginals.variance import sum_variances
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
    """The radii of one table's intervals.

    Attributes:
        cell: each cell of it is this close, with the stated probability.
        table: all cells of it are this close, likewise. Both are a number for each sum where
            sums are asked, since these are not equally exact.
    """

    cell: float | Array
    table: float | Array


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
    most_cells = max(prod(workload.asked(number)) for number in range(len(workload.sets)))
    block = max(1, min(count, MOST_HELD // max(numbers, most_cells, 1)))
    errors = {
        number: np.sqrt(each)
        for number, each in sum_variances(workload, measurements, variances).items()
    }
    largest = [
        _OfSums(workload, number, errors[number], count, confidence)
        if number in errors
        else _OfCells(confidence)
        for number in range(len(workload.sets))
    ]
    for start in range(0, count, block):
        size = min(block, count - start)
        noise = [
            draw(number, (size, *each.shape(workload.sizes)))
            for number, each in enumerate(measurements)
        ]
        residuals = estimate(workload, measurements, variances, noise)
        for number, attributes in enumerate(workload.sets):
            table = table_of(workload, residuals, attributes)
            largest[number].look(np.abs(summed(table, workload.sums[number])))
    return [each.radii() for each in largest]


class _OfCells:
    """Errors of copies of a table of cells."""

    def __init__(self, confidence: float) -> None:
        self.confidence = confidence
        self.largest: list[Array] = []
        self.looked: list[Array] = []

    def look(self, errors: Array) -> None:
        flat = errors.reshape(len(errors), -1)
        self.largest.append(flat.max(axis=1))
        self.looked.append(flat[:, :LOOKED_AT].copy())

    def radii(self) -> Radii:
        some, most = np.concatenate(self.looked), np.concatenate(self.largest)
        return Radii(_each(some, self.confidence), _all(most, self.confidence))


class _OfSums:
    """Errors of copies of a table of sums: the largest in standard errors, and for one sum of each
    kind the few largest, the least of which is its radius."""

    def __init__(
        self, workload: Workload, number: int, errors: Array, copies: int, confidence: float
    ) -> None:
        self.errors, self.confidence = errors, confidence
        beyond = floor((1 - confidence) * (copies + 1) - 1 + 1e-9)
        self.kept = beyond + 1  # 0 where there are too few copies for any radius
        self.largest: list[Array] = []
        asked = list(zip(workload.asked(number), workload.sums[number], strict=True))
        self.kinds = [np.zeros(1, int) if each is None else each.kinds for _, each in asked]
        self.kind_of = [
            np.zeros(size, int) if each is None else each.kind_of for size, each in asked
        ]
        self.looked = np.zeros((0, *map(len, self.kinds)))

    def look(self, errors: Array) -> None:
        self.largest.append((errors / self.errors).reshape(len(errors), -1).max(axis=1))
        for axis, each in enumerate(self.kinds, 1):
            errors = errors.take(each, axis=axis)
        both = np.sort(np.concatenate([self.looked, errors]), axis=0)
        self.looked = both[max(len(both) - self.kept, 0) :]

    def radii(self) -> Radii:
        table = self.errors * _all(np.concatenate(self.largest), self.confidence)
        if self.kept < 1:
            return Radii(np.full_like(self.errors, np.inf), table)
        cell = self.looked[0]
        for axis, each in enumerate(self.kind_of):
            cell = cell.take(each, axis=axis)
        return Radii(cell, table)


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
