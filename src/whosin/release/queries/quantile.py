"""A quantile of a column: a point of a public grid, chosen by how many rows lie below it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import rational
from whosin.ledger.charge import RELATIONS, Charge, Cost
from whosin.noise import noisy_max, selection_epsilon
from whosin.release import bounding
from whosin.release.bounding import eligible
from whosin.release.cells import Cells
from whosin.release.domains import Values
from whosin.release.engines.base import Progress
from whosin.release.predicate import number
from whosin.release.pricing import CONFIDENCE, SLIGHTLY_MORE, Offer, Share
from whosin.release.queries.base import Query
from whosin.release.queries.linear import plain
from whosin.release.table import Table, positive

FINEST = 10_000


@dataclass(frozen=True, kw_only=True)
class Quantile(Query):
    """The point below which a given share of the rows lies.

    Scores −|b·#{v < c} − a·n| for the quantile a/b, over n rows: one row moves a score by at most
    max(a, b−a), and by b when it is replaced.

    Args:
        column: a column with a declared range.
        quantile: the share, such as 0.5 or "1/4".
        points: of the grid over the range, from which the answer comes.
        rows: how many rows of an entity count; the table's own bound by default.
    """

    kind: ClassVar[str] = "quantile"
    column: str
    quantile: object = "1/2"
    points: int = 1001
    rows: int | None = None

    def offer(self, table: Table, share: Share) -> Offer:
        if type(self.points) is not int or not 2 <= self.points <= FINEST:
            raise InvalidInput("points", f"a whole number from 2 to {FINEST}", self.points)
        target = rational(self.quantile, "quantile")
        if not 0 < target < 1 or target.denominator > 10**6:
            raise InvalidInput("quantile", "a share above 0 and below 1", self.quantile)
        expression = table.check(self._expression(table))
        scale = 2 * self._reach(table, share.relation) / share.epsilon * SLIGHTLY_MORE
        costs = {
            relation: Cost.pure(selection_epsilon(self._reach(table, relation), scale))
            for relation in RELATIONS
        }
        # Permute-and-flip is never worse than the exponential mechanism, whose score is short of
        # the best by more than scale · ln(points/5%) with probability at most 5%.
        ranks = float(scale) * math.log(self.points / (1 - CONFIDENCE)) / target.denominator
        return Offer(
            self,
            share,
            Charge(self.question(), costs),
            f"selection among {self.points} points",
            None,
            None,
            details={"scale": scale, "ranks": ranks},
            expression=expression,
        )

    def answer(self, table: Table, offer: Offer, progress: Progress | None = None) -> Any:
        assert offer.details is not None
        result = table.engine.run(offer.expression, progress)
        counts = self._cells().dense(result, ["rows"])[0][: self.points]
        below = np.concatenate([[0], np.cumsum(counts)[:-1]])
        target = rational(self.quantile)
        scores = -np.abs(target.denominator * below - target.numerator * int(counts.sum()))
        place = noisy_max(scores, offer.details["scale"])
        low, high = table.range(self.column).bounds
        value = low + (high - low) * place / (self.points - 1)
        return {
            "columns": ["value", "ranks"],
            "rows": [[plain(float(value)), plain(round(offer.details["ranks"], 3))]],
        }

    def _reach(self, table: Table, relation: str) -> int:
        share = rational(self.quantile)
        rows = table.rows if self.rows is None else positive(self.rows, "rows")
        below, above = share.numerator, share.denominator - share.numerator
        return rows * (below + above if relation == "replace" else max(below, above))

    def _cells(self) -> Cells:
        return Cells(("point",), (Values(tuple(range(self.points))),))

    def _expression(self, table: Table) -> Any:
        domain = table.range(self.column)
        rows = eligible(table, self.where)
        value = number(rows[self.column])
        low, high = (float(end) for end in domain.bounds)
        rows = rows.filter(value.notnull())
        width = (high - low) / (self.points - 1)
        place = ((number(rows[self.column]).clip(low, high) - low) / width).floor().cast("int64")
        most = table.rows if self.rows is None else positive(self.rows, "rows")
        base = rows.select(
            **{bounding.ENTITY: rows[table.entity], "key_0": place.clip(0, self.points - 1)}
        )
        chosen = bounding.first(base, [bounding.ENTITY], most)
        return chosen.group_by("key_0").aggregate(rows=chosen.count())
