"""Sums, means and variances of a column clamped to its declared range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from whosin.exact import Array
from whosin.release.columns.cells import Cells
from whosin.release.conditions.row_values import double
from whosin.release.prices.pricing import CONFIDENCE, NoisyPart
from whosin.release.queries.base import POINT
from whosin.release.queries.linear import Numeric
from whosin.release.quotients import quotient
from whosin.release.scans import bounding
from whosin.release.scans.bounding import ROWS, Part, centred, units, within
from whosin.release.table import Table


@dataclass(frozen=True, kw_only=True)
class Sum(Numeric):
    """The sum of a column."""

    kind: ClassVar[str] = "sum"
    label: ClassVar[str] = "the sum of a column"
    column_takes: ClassVar[str] = "numbers"

    def parts(self, table: Table) -> tuple[Part, ...]:
        domain = table.range(self.column)
        return (Part("sum", domain.unit, *domain.units),)

    def exact(self, table: Table, cells: Cells) -> Any:
        rows = self.present(table)
        values = {"sum": units(rows[self.column], table.range(self.column))}
        return bounding.totals(rows, table, cells, self.bounds(table), values, False)


@dataclass(frozen=True, kw_only=True)
class Mean(Numeric):
    """The mean of a column: the middle of its range, plus a noisy sum of distances from it over a
    noisy number of rows. The budget is split evenly; `quotients` has the interval."""

    kind: ClassVar[str] = "mean"
    label: ClassVar[str] = "the mean of a column"
    scale: ClassVar[str] = POINT
    column_takes: ClassVar[str] = "numbers"

    def parts(self, table: Table) -> tuple[Part, ...]:
        return (centred(table.range(self.column))[1], ROWS)

    def exact(self, table: Table, cells: Cells) -> Any:
        rows, domain = self.present(table), table.range(self.column)
        values = {"sum": units(rows[self.column], domain, centred(domain)[0])}
        return bounding.totals(rows, table, cells, self.bounds(table), values, True)

    def finish(
        self, table: Table, sums: Sequence[Array], noisy: Sequence[NoisyPart]
    ) -> tuple[Array, Array, Array]:
        domain = table.range(self.column)
        low, high = (float(end) for end in domain.bounds)
        middle = float(centred(domain)[0] * domain.unit)
        value, least, most = quotient((sums[0], sums[1]), noisy, (low - middle, high - middle))
        return value + middle, least + middle, most + middle


@dataclass(frozen=True, kw_only=True)
class Variance(Numeric):
    """The variance of a column: the mean square distance from the middle of its range, less the
    square of the mean distance. The budget is split over sum, squares and number of rows."""

    kind: ClassVar[str] = "variance"
    label: ClassVar[str] = "the variance of a column"
    column_takes: ClassVar[str] = "numbers"

    def parts(self, table: Table) -> tuple[Part, ...]:
        domain = table.range(self.column)
        return (centred(domain)[1], ROWS, bounding.square_part(domain)[1])

    def exact(self, table: Table, cells: Cells) -> Any:
        rows, domain = self.present(table), table.range(self.column)
        low, high = (float(end) for end in domain.bounds)
        half, part = bounding.square_part(domain)
        distance = (within(double(rows[self.column]), low, high) - (low + high) / 2) / half
        squares = (distance * distance * float(part.high) + 0.5).floor().cast("int64")
        values = {
            "sum": units(rows[self.column], domain, centred(domain)[0]),
            part.name: within(squares, part.low, part.high),
        }
        return bounding.totals(rows, table, cells, self.bounds(table), values, True)

    def finish(
        self, table: Table, sums: Sequence[Array], noisy: Sequence[NoisyPart]
    ) -> tuple[Array, Array, Array]:
        domain = table.range(self.column)
        half = float((domain.bounds[1] - domain.bounds[0]) / 2)
        most = half**2
        # The sum's middle is a whole number of steps, the squares' the exact one.
        shift = float(centred(domain)[0] * domain.unit - sum(domain.bounds) / 2)
        each = 1 - (1 - CONFIDENCE) / 2  # both intervals hold but for 5% together
        mean = quotient((sums[0], sums[1]), noisy[:2], (-half - shift, half - shift), each)
        square = quotient((sums[2], sums[1]), (noisy[2], noisy[1]), (0.0, most), each)
        centre, low, high = (end + shift for end in mean)
        far = np.maximum(np.abs(low), np.abs(high)) ** 2
        near = np.where(low * high <= 0, 0, np.minimum(low**2, high**2))
        result = square[0] - centre**2, square[1] - far, square[2] - near
        value, least, greatest = (np.clip(end, 0, most) for end in result)
        return value, least, greatest
