"""What queries that sum over rows have in common: cells, bounds, parts, noise, intervals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from whosin.exact import Array
from whosin.ledger.charge import Charge
from whosin.release.columns.cells import Cells
from whosin.release.conditions.row_values import number
from whosin.release.engines.base import Progress
from whosin.release.prices.pricing import NoisyPart, Offer, Share, costs, noise_words, noisy_parts
from whosin.release.queries.base import Query
from whosin.release.scans.bounding import Bounds, Part, eligible
from whosin.release.table import Table
from whosin.release.what_counts import Caution, Counted, beyond, clamp


@dataclass(frozen=True, kw_only=True)
class Linear(Query):
    """Sums over rows in cells.

    Args:
        by: declared columns to group by.
        rows: how many rows of an entity count in a cell; the table's own bound by default.
        groups: how many cells an entity may be in; likewise.
    """

    sums: ClassVar[bool] = True
    by: Sequence[str] | str = ()
    rows: int | None = None
    groups: int | None = None

    @abstractmethod
    def parts(self, table: Table) -> tuple[Part, ...]:
        """What is summed."""

    @abstractmethod
    def exact(self, table: Table, cells: Cells) -> Any:
        """The bounded sums, as an expression with one column per part. Never shown."""

    def finish(
        self, table: Table, sums: Sequence[Array], noisy: Sequence[NoisyPart]
    ) -> tuple[Array, Array, Array]:
        """(values, lower ends, upper ends) from the noisy sums in units."""
        part, within = noisy[0].part, noisy[0].within()
        value, low, high = (worth(sums[0] + side, part.unit) for side in (0, -within, within))
        return value, low, high

    def bounds(self, table: Table) -> Bounds:
        """How much of an entity counts. Nobody is in more cells than there are, or in more than
        columns that were declared constant allow."""
        groups = min(table.bound("groups", self.groups), self.cells(table).most)
        return Bounds(table.bound("rows", self.rows), groups)

    def cells(self, table: Table) -> Cells:
        """What the answer is grouped by."""
        return Cells.of(table, self.by)

    def counted(self, table: Table) -> Counted:
        cells, bounds = self.cells(table), self.bounds(table)
        groups = bounds.groups if cells.columns else None
        outside = beyond(cells.columns, cells.domains)
        return Counted(table.entity, bounds.rows, groups, **outside, by_row=table.by_row)

    def cautions(self, table: Table) -> tuple[Caution, ...]:
        return self.caution(table, "groups", self.cells(table).columns)

    def offer(self, table: Table, share: Share) -> Offer:
        cells, bounds = self.cells(table), self.bounds(table)
        grouped = bool(cells.columns)
        noisy = noisy_parts(self.parts(table), share, bounds, grouped)
        expression = table.check(self.exact(table, cells))
        charge = Charge(self.asked(table), costs(noisy, bounds, grouped))
        offer = Offer(self, share, charge, _noises(noisy), parts=noisy, expression=expression)
        if len(noisy) > 1:
            return offer
        error = noisy[0].error * float(noisy[0].part.unit)
        return replace(offer, error=error, within=noisy[0].reach())

    def answer(self, table: Table, offer: Offer, progress: Progress | None = None) -> Any:
        cells = self.cells(table)
        result = table.engine.run(offer.expression, progress)
        exact = cells.dense(result, [each.part.name for each in offer.parts])
        pairs = zip(exact, offer.parts, strict=True)
        sums = [one + each.draw(cells.count) for one, each in pairs]
        values, low, high = self.finish(table, sums, offer.parts)
        rows = [
            [*label, plain(value), plain(least), plain(most)]
            for label, value, least, most in zip(cells.labels(), values, low, high, strict=True)
        ]
        names = ("value", "low", "high")
        return {"columns": [*cells.headings(*names), *names], "rows": rows}


@dataclass(frozen=True, kw_only=True)
class Numeric(Linear):
    """A query about a column of numbers with a declared range.

    Args:
        column: the column. Rows without a number there do not count.
    """

    column: str

    def counted(self, table: Table) -> Counted:
        ranges = {self.column: clamp(table.range(self.column))}
        return replace(super().counted(table), ranges=ranges)

    def cautions(self, table: Table) -> tuple[Caution, ...]:
        return (*self.caution(table, "rows", (self.column,)), *super().cautions(table))

    def present(self, table: Table) -> Any:
        """The rows that have a number there."""
        rows = eligible(table, self.where)
        return rows.filter(number(rows[table.column(self.column)]).notnull())


def _noises(noisy: Sequence[NoisyPart]) -> str:
    if len(noisy) == 1:
        return noise_words(noisy[0])
    return "; ".join(f"{each.part.name}: {noise_words(each)}" for each in noisy)


def worth(whole: Array, unit: Fraction) -> Array:
    """Whole units as numbers, each correctly rounded where the unit is a simple ratio."""
    return whole * float(unit.numerator) / float(unit.denominator)


def plain(value: Any) -> int | float:
    """A number for JSON, whole where it is."""
    result = float(value)
    return int(result) if result.is_integer() and abs(result) < 2**53 else result
