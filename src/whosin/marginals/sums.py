"""Sums over cells of one attribute: ranges, cumulative counts, the upper level of a hierarchy.

Contract: where a table asks for sums of an attribute, it has a row for each sum instead of one for
each cell. A sum is a run of cells, in an order of the cells that all sums of one `Sums` share. No
matrix is made: a sum of l of n cells has l − l²/n of its squared length in the residual and l/n of
the total, which is all that F20 needs, and running totals give the sums themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array


@dataclass(frozen=True)
class Sums:
    """Rows that are sums of cells.

    Args:
        size: how many cells the attribute has.
        spans: (start, end) of each sum, the end not in it.
        order: the cells in the order that spans are about; their own order by default.
    """

    size: int
    spans: tuple[tuple[int, int], ...]
    order: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.spans or not all(0 <= a < b <= self.size for a, b in self.spans):
            raise InvalidInput("spans", f"runs of some of {self.size} cells", self.spans[:5])
        if self.order and sorted(self.order) != list(range(self.size)):
            raise InvalidInput("order", f"each of {self.size} cells once", self.order[:5])

    @property
    def lengths(self) -> Array:
        """How many cells each sum has."""
        return np.array([end - start for start, end in self.spans], np.float64)

    @property
    def within(self) -> Array:
        """For each sum what it has of the residual, squared: l − l²/n."""
        return np.asarray(self.lengths * (1 - self.lengths / self.size))

    @property
    def evenly(self) -> Array:
        """For each sum its square share of the total, as if cells were equal: (l/n)²."""
        return np.asarray((self.lengths / self.size) ** 2)

    @property
    def kinds(self) -> Array:
        """One sum of each length: others of the same length are as exact."""
        return np.unique(self.lengths, return_index=True)[1]

    @property
    def kind_of(self) -> Array:
        """For each sum its index in `kinds`."""
        return np.unique(self.lengths, return_inverse=True)[1]

    def of(self, table: Array, axis: int) -> Array:
        """A table with the sums instead of the cells of an axis."""
        if self.order:
            table = table.take(self.order, axis=axis)
        running = np.cumsum(table, axis=axis)
        first = np.zeros_like(running.take([0], axis=axis))
        running = np.concatenate([first, running], axis=axis)
        starts, ends = zip(*self.spans, strict=True)
        return np.asarray(running.take(ends, axis=axis) - running.take(starts, axis=axis))


def summed(table: Array, sums: Sequence[Sums | None]) -> Array:
    """A table with sums for some of its attributes; axes before those of the table stay."""
    start = table.ndim - len(sums)
    for axis, each in enumerate(sums, start):
        if each is not None:
            table = each.of(table, axis)
    return table
