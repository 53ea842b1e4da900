"""Quantiles of a column: points of a public grid, chosen by how many rows lie below and on them.

Half of the ε selects the value, a quarter each end of its interval. Scores are whole numbers, b
times those for the quantile a/b. With p points let E = scale·ln((p+1)/2.5%), which the
largest of p+1 exponential noises exceeds with probability at most 2.5%. The lower end is selected
for the rank a·n − S, S just above E, from values rounded down, with one candidate more: the range's
lower end, with the score of S/b rows below all points, so that some candidate always has the score
0.

*Coverage.* The chosen score is within E of 0, so a chosen point c has b·#{v < c} ≤ a·n − S + E,
which is below a·n, while any quantile Q, rounded down, has b·#{v ≤ Q} ≥ a·n: so c ≤ Q. The range's
end is below every Q. The upper end likewise, from values rounded up: together they cover Q with
95%.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, rational, round_up
from whosin.ledger.charge import RELATIONS, Charge, Cost
from whosin.noise import noisy_max, selection_epsilon
from whosin.release import bounding
from whosin.release.bounding import eligible
from whosin.release.engines.base import Progress
from whosin.release.pricing import CONFIDENCE, LARGEST_SCALE, SLIGHTLY_MORE, Offer, Share
from whosin.release.queries.base import Query
from whosin.release.queries.linear import plain
from whosin.release.queries.points import Points, score
from whosin.release.row_values import number
from whosin.release.table import Table
from whosin.release.what_counts import Caution, Counted, clamp

VALUE, END = Fraction(1, 2), Fraction(1, 4)


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
        rows: how many rows of an entity count; the table's own bound by default.
    """

    column: str
    points: int | None = None
    rows: int | None = None

    @property
    @abstractmethod
    def below(self) -> Fraction:
        """The share of the rows below the answer."""

    def offer(self, table: Table, share: Share) -> Offer:
        points = self.grid(table)
        expression = table.check(self._expression(table))
        unit = 2 * self.reach(table, share.relation) / share.epsilon * SLIGHTLY_MORE
        value, end = unit / VALUE, unit / END
        if end > LARGEST_SCALE:
            accepted = "of a scale of at most 2^52: more budget, fewer rows"
            raise InvalidInput("noise", accepted, "more")
        costs = {
            relation: Cost.pure(
                rational(selection_epsilon(self.reach(table, relation), value))
                + 2 * rational(selection_epsilon(self.reach(table, relation), end))
            )
            for relation in RELATIONS
        }
        tail = math.log((points.count + 1) / ((1 - CONFIDENCE) / 2))
        shift = math.floor(round_up(end) * tail * (1 + 1e-9)) + 1
        charge, words = Charge(self.asked(table), costs), f"selection among {points.count} points"
        details = Selection(value, end, shift)
        return Offer(self, share, charge, words, details=details, expression=expression)

    def answer(self, table: Table, offer: Offer, progress: Progress | None = None) -> Any:
        selection: Selection = offer.details
        points, shift, below = self.grid(table), selection.shift, self.below
        result = table.engine.run(offer.expression, progress)
        down, nearest, up = points.rounded(
            result.column("place").to_numpy(), result.column("rows").to_numpy()
        )
        middle = noisy_max(score(nearest, below, 0), selection.value)
        low = noisy_max(lower_scores(down, below, shift), selection.end) - 1
        high = noisy_max(lower_scores(up[::-1], 1 - below, shift), selection.end) - 1
        value = points.value(middle)
        top = points.ends[1] if high < 0 else points.value(points.count - 1 - high)
        ends = min(points.value(low), value), max(top, value)
        return {
            "columns": ["value", "low", "high"],
            "rows": [[plain(float(each)) for each in (value, *ends)]],
        }

    def reach(self, table: Table, relation: str) -> int:
        """How far one entity can move a score."""
        below, all_rows = self.below.numerator, self.below.denominator
        one = all_rows if relation == "replace" else max(below, all_rows - below)
        return self._rows(table) * one

    def grid(self, table: Table) -> Points:
        """Where the answer can be."""
        domain = table.range(self.column)
        return Points.of(domain, bool(table.type(self.column).is_integer()), self.points)

    def counted(self, table: Table) -> Counted:
        ranges = {self.column: clamp(table.range(self.column))}
        return Counted(table.entity, self._rows(table), ranges=ranges, by_row=table.by_row)

    def cautions(self, table: Table) -> tuple[Caution, ...]:
        return self.caution(table, "rows", (self.column,))

    def _rows(self, table: Table) -> int:
        return table.bound("rows", self.rows)

    def _expression(self, table: Table) -> Any:
        rows = eligible(table, self.where)
        base = rows.select(**bounding.owner(rows, table), x=number(rows[self.column]))
        base = base.filter(base["x"].notnull())
        base = base.mutate(place=self.grid(table).place(base["x"]))
        chosen = bounding.first(base, [bounding.ENTITY], self._rows(table))
        return chosen.group_by("place").aggregate(rows=chosen.count())


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
        found = rational(self.quantile, "quantile")
        if not 0 < found < 1 or found.denominator > 10**6:
            raise InvalidInput("quantile", "a share above 0 and below 1", self.quantile)
        return found


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
