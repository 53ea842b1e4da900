"""Counts: of entities, of rows, and histograms of a column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from whosin.calibration import Plan
from whosin.release.columns.cells import Cells, cellular
from whosin.release.prices.pricing import NoisyPart, Offer, Share, noise_words
from whosin.release.queries.linear import Linear
from whosin.release.scans import bounding
from whosin.release.scans.bounding import PEOPLE, ROWS, Bounds, Part, eligible
from whosin.release.table import Table
from whosin.release.what_counts import Caution, Counted


@dataclass(frozen=True, kw_only=True)
class Count(Linear):
    """How many entities have a row that meets the condition; by cell, each in a few cells."""

    kind: ClassVar[str] = "count"
    label: ClassVar[str] = "how many people there are"

    def offer(self, table: Table, share: Share) -> Offer:
        planned = planned_count(share.plan)
        if planned is None or self.where is not None or self.cells(table).columns:
            return super().offer(table, share)
        return self._as_planned(table, share, planned)

    def _as_planned(self, table: Table, share: Share, planned: NoisyPart) -> Offer:
        """What the plan says, and no more noise: one release that rests on what the adversary does
        not know about others, which a condition or groups would narrow down."""
        noise = noise_words(planned)
        words = f"a count as planned against {share.plan.family.symbol}, {noise}"
        charge = self.charged_alone(table, share, words)
        expression = table.check(self.exact(table, self.cells(table)))
        known = charge, noise, planned.error, planned.reach(), (planned,)
        return Offer(self, share, *known, expression=expression)

    def parts(self, table: Table) -> tuple[Part, ...]:
        return (PEOPLE,)

    def bounds(self, table: Table) -> Bounds:
        return Bounds(1, super().bounds(table).groups)

    def counted(self, table: Table) -> Counted:
        return replace(super().counted(table), rows=None)

    def exact(self, table: Table, cells: Cells) -> Any:
        return bounding.people(eligible(table, self.where), table, cells, self.bounds(table))


def planned_count(plan: Plan) -> NoisyPart | None:
    """The noise of a count, as a plan has it for adversaries who do not know everyone."""
    if not plan.family.hides_others or not plan.delta or plan.noise is None:
        return None
    assert plan.query is not None and plan.query.kind == "count"
    return NoisyPart(PEOPLE, "laplace", Fraction(plan.noise.scale))


@dataclass(frozen=True, kw_only=True)
class Rows(Linear):
    """How many rows meet the condition, a few rows per entity."""

    kind: ClassVar[str] = "rows"
    label: ClassVar[str] = "how many rows there are"
    about_rows: ClassVar[bool] = True

    def parts(self, table: Table) -> tuple[Part, ...]:
        return (ROWS,)

    def cautions(self, table: Table) -> tuple[Caution, ...]:
        result = super().cautions(table)
        return (Caution("rows"), *result) if table.at_default("rows", self.rows) else result

    def exact(self, table: Table, cells: Cells) -> Any:
        rows = eligible(table, self.where)
        return bounding.totals(rows, table, cells, self.bounds(table), {}, True)


@dataclass(frozen=True, kw_only=True)
class Histogram(Count):
    """How many entities are in each bin, or have each value, of one declared column.

    Args:
        column: the column; a range needs edges.
    """

    kind: ClassVar[str] = "histogram"
    label: ClassVar[str] = "how many people by a column"
    column_takes: ClassVar[str] = "cells"
    column: str

    def cells(self, table: Table) -> Cells:
        by = Cells.of(table, self.by).columns
        cellular(table, self.column)  # by itself first: what is wrong with it is not about `by`
        return Cells.of(table, (*by, self.column))
