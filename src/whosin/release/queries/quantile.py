"""Quantiles of a column: points of a public grid, chosen by how many rows lie below and on them.

Half of the ε selects the value, and a quarter selects each end of its interval. Scores are whole
numbers, b times those for the quantile a/b. With p points let E = scale·ln((p+1)/2.5%), which the
largest of p+1 exponential noises exceeds with probability at most 2.5%. The lower end is selected
for the rank a·n − S, S just above E, from values rounded down, with one candidate more: the range's
lower end, with the score of S/b rows below all points, so that some candidate always has the score
0.

*Coverage.* The chosen score is within E of 0, so a chosen point c has b·#{v < c} ≤ a·n − S + E,
which is below a·n, while any quantile Q, rounded down, has b·#{v ≤ Q} ≥ a·n: so c ≤ Q. The range's
end is below every Q. The upper end likewise, from values rounded up: together they cover Q with
95%.

*By cells* each cell has an answer of its own, and someone is in at most g of them, with `rows` rows
in each. Whoever is added or removed moves the scores of g cells; whoever is replaced those of 2g
cells, g they leave and g they enter, each as an addition or removal does. A cell of both moves by b
a row instead of max(a, b−a), which is no more than twice that: so 2g cells are the worst case.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, rational, round_up
from whosin.ledger.charge import RELATIONS, Charge, Cost
from whosin.noise import noisy_max, selection_epsilon
from whosin.release.columns.cells import Cells
from whosin.release.conditions.row_values import number
from whosin.release.engines.base import Progress
from whosin.release.prices.pricing import CONFIDENCE, LARGEST_SCALE, SLIGHTLY_MORE, Offer, Share
from whosin.release.queries.base import POINT, Query
from whosin.release.queries.linear import plain
from whosin.release.queries.points import Points, score
from whosin.release.scans import bounding
from whosin.release.scans.bounding import Bounds, eligible
from whosin.release.table import Table
from whosin.release.what_counts import Caution, Counted, beyond, clamp

VALUE, END = Fraction(1, 2), Fraction(1, 4)
MOST_POINTS = 10**7
"""Points of all cells of an answer."""


class Selection(NamedTuple):
    """The noise of a quantile: the scales for its value and for each end of its interval, and how
    far the ranks of the ends are shifted."""

    value: Fraction
    end: Fraction
    shift: int


@dataclass(frozen=True, kw_only=True)
class Ranked(Query):
    """The value at a rank, with an interval in the column's own unit.

    Args:
        column: a column with a declared range.
        points: how many points the grid has over the range, from which the answer comes; by
            default the multiples of a round step, at most 1,001.
        by: declared columns to group by; each cell has a value of its own.
        rows: how many rows of an entity count, in each cell; the table's own bound by default.
        groups: how many cells an entity may be in; likewise.
    """

    scale: ClassVar[str] = POINT
    column: str
    points: int | None = None
    by: Sequence[str] | str = ()
    rows: int | None = None
    groups: int | None = None

    @property
    @abstractmethod
    def below(self) -> Fraction:
        """The share of the rows below the answer."""

    def offer(self, table: Table, share: Share) -> Offer:
        points, cells = self.grid(table), self.cells(table)
        expression = table.check(self._expression(table))
        times, reach = self.moved(table, share.relation)
        unit = 2 * times * reach / share.epsilon * SLIGHTLY_MORE
        value, end = unit / VALUE, unit / END
        if end > LARGEST_SCALE:
            accepted = "of a scale of at most 2^52: more budget, fewer rows"
            raise InvalidInput("noise", accepted, "more")
        costs = {relation: self._cost(table, relation, value, end) for relation in RELATIONS}
        tail = math.log((points.count + 1) / ((1 - CONFIDENCE) / 2))
        shift = math.floor(round_up(end) * tail * (1 + 1e-9)) + 1
        words = f"selection among {points.count} points"
        if cells.columns:
            words += f", in each of {cells.count} cells"
        charge, details = Charge(self.asked(table), costs), Selection(value, end, shift)
        return Offer(self, share, charge, words, details=details, expression=expression)

    def _cost(self, table: Table, relation: str, value: Fraction, end: Fraction) -> Cost:
        """Three selections in each cell that someone moves."""
        times, reach = self.moved(table, relation)
        one = rational(selection_epsilon(reach, value)) + 2 * rational(
            selection_epsilon(reach, end)
        )
        return Cost.pure(times * one)

    def answer(self, table: Table, offer: Offer, progress: Progress | None = None) -> Any:
        points, cells = self.grid(table), self.cells(table)
        result = table.engine.run(offer.expression, progress)
        code = np.zeros(result.num_rows, np.int64)
        for name, domain in zip(cells.names, cells.domains, strict=True):
            code = code * len(domain.labels) + result.column(name).to_numpy()
        positions, counts = (result.column(name).to_numpy() for name in ("position", "rows"))
        order = np.argsort(code, kind="stable")
        starts = np.searchsorted(code[order], np.arange(cells.count + 1))
        rows = []
        for label, start, stop in zip(cells.labels(), starts, starts[1:], strict=False):
            own = order[start:stop]
            ends = self._select(points, points.rounded(positions[own], counts[own]), offer.details)
            rows.append([*label, *(plain(float(each)) for each in ends)])
        names = ("value", "low", "high")
        return {"columns": [*cells.headings(*names), *names], "rows": rows}

    def _select(
        self, points: Points, rounded: tuple[Array, Array, Array], selection: Selection
    ) -> tuple[Fraction, Fraction, Fraction]:
        """The value and the ends of its interval, of one cell."""
        (down, nearest, up), shift = rounded, selection.shift
        middle = noisy_max(score(nearest, self.below, 0), selection.value)
        low = noisy_max(lower_scores(down, self.below, shift), selection.end) - 1
        high = noisy_max(lower_scores(up[::-1], 1 - self.below, shift), selection.end) - 1
        value = points.value(middle)
        top = points.ends[1] if high < 0 else points.value(points.count - 1 - high)
        return value, min(points.value(low), value), max(top, value)

    def moved(self, table: Table, relation: str) -> tuple[int, int]:
        """(how many cells one entity can move, by how much the scores of each)."""
        if not self.cells(table).columns:
            return 1, self.reach(table, relation)
        times = 2 if relation == "replace" else 1
        return times * self.bounds(table).groups, self.reach(table, "add-remove")

    def cells(self, table: Table) -> Cells:
        """What the answer is grouped by."""
        cells = Cells.of(table, self.by)
        if cells.columns and (size := cells.count * self.grid(table).count) > MOST_POINTS:
            accepted = f"cells with at most {MOST_POINTS:,} points in all"
            raise InvalidInput("by", accepted, f"{size:,}")
        return cells

    def bounds(self, table: Table) -> Bounds:
        """How much of an entity counts."""
        groups = min(table.bound("groups", self.groups), self.cells(table).most)
        return Bounds(self._rows(table), groups)

    def reach(self, table: Table, relation: str) -> int:
        """How far one entity can move a score: of one cell, where its rows are."""
        below, all_rows = self.below.numerator, self.below.denominator
        one = all_rows if relation == "replace" else max(below, all_rows - below)
        return self._rows(table) * one

    def grid(self, table: Table) -> Points:
        """Where the answer can be."""
        domain = table.range(self.column)
        return Points.of(domain, bool(table.type(self.column).is_integer()), self.points)

    def counted(self, table: Table) -> Counted:
        cells, bounds = self.cells(table), self.bounds(table)
        return Counted(
            table.entity,
            bounds.rows,
            bounds.groups if cells.columns else None,
            ranges={self.column: clamp(table.range(self.column))},
            **beyond(cells.columns, cells.domains),
            by_row=table.by_row,
        )

    def cautions(self, table: Table) -> tuple[Caution, ...]:
        by_rows = self.caution(table, "rows", (self.column,))
        return (*by_rows, *self.caution(table, "groups", self.cells(table).columns))

    def _rows(self, table: Table) -> int:
        return table.bound("rows", self.rows)

    def _expression(self, table: Table) -> Any:
        rows, cells = eligible(table, self.where), self.cells(table)
        rows = rows.filter(number(rows[self.column]).notnull())
        base = cells.coded(rows, **bounding.owner(rows, table), x=number(rows[self.column]))
        base = base.mutate(position=self.grid(table).position(base["x"]))
        chosen = bounding.rows_in_cells(base, table, cells, self.bounds(table))
        return chosen.group_by([*cells.names, "position"]).aggregate(rows=chosen.count())


@dataclass(frozen=True, kw_only=True)
class Quantile(Ranked):
    """The point below which a given share of the rows lies.

    Args:
        quantile: the share, such as 0.5 or "1/4".
    """

    kind: ClassVar[str] = "quantile"
    label: ClassVar[str] = "a quantile of a column"
    column_takes: ClassVar[str] = "numbers"
    example: ClassVar[tuple[str, str, str]] = ("quantile", "share of the rows below", "0.25")
    quantile: object = "1/2"

    @property
    def below(self) -> Fraction:
        result = rational(self.quantile, "quantile")
        if not 0 < result < 1 or result.denominator > 10**6:
            raise InvalidInput("quantile", "a share above 0 and below 1", self.quantile)
        return result


@dataclass(frozen=True, kw_only=True)
class Median(Ranked):
    """The point below which half of the rows lie."""

    kind: ClassVar[str] = "median"
    label: ClassVar[str] = "the median of a column"
    column_takes: ClassVar[str] = "numbers"

    @property
    def below(self) -> Fraction:
        return Fraction(1, 2)


def lower_scores(counts: Array, share: Fraction, shift: int) -> Array:
    """The scores for the lower end of an interval: first that of the range's own end, on which
    `shift` rows lie that nobody owns."""
    outside = -max(share.numerator * int(counts.sum()) - shift, 0)
    return np.concatenate([[outside], score(counts, share, -shift)])
