"""Counts of the same people that are measured at once, each with an answer of its own (F20).

Contract: no scenario names this kind; `least_error` makes it from counts and group-bys that are
tables of one workload: the same condition, the same number of rows of a privacy unit, the same rows
left out by closed domains, and a privacy unit in one cell at most. The rows of a privacy unit that
count are chosen once, the same for all of them. There is one spend, one scan, one draw of noise
and one stored answer, which holds the answers of all; their cost is divided evenly among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import pi, sqrt
from typing import Any, ClassVar

import numpy as np

from whosin.exact import Array
from whosin.ledger.budget import COUNTED_NOTION, Spend
from whosin.marginals import IntervalRadii, Workload, cell_variances
from whosin.marginals.workload import Attributes
from whosin.release.column_expressions import GroupGrid
from whosin.release.conditions import condition_columns
from whosin.release.contribution_bounds import (
    ContributionBounds,
    ContributionPolicy,
    may_vary,
    outside_values,
)
from whosin.release.cost import (
    LAPLACE_QUANTILE,
    NORMAL_QUANTILE,
    CostEstimate,
    Share,
    apportion_cost,
)
from whosin.release.engines.base import Progress
from whosin.release.marginal_workloads import (
    ANSWER_DIGITS,
    NoisyTable,
    allowed_half_width,
    estimate_workload,
    half_widths,
    measure_counts,
    measured_values,
    noise_words,
    plan_workload,
    table_costs,
    workload_noise,
)
from whosin.release.queries.base import MAX_NAME_LENGTH, Query, plain_number
from whosin.release.queries.sums import Count, Rows, planned_count
from whosin.release.scan import TableScan
from whosin.release.table import Table

MEMBERS_KEY = "queries"
"""The questions of a joint one, in what the ledger keeps."""


@dataclass(frozen=True, kw_only=True)
class JointMeasurement(Query):
    """Counts and group-bys with one measurement.

    Args:
        members: the queries.
        worths: how much the squared error of a number of each counts.
    """

    kind: ClassVar[str] = "together"
    sums: ClassVar[bool] = True
    members: tuple[Count | Rows, ...]
    worths: tuple[float, ...]

    @classmethod
    def of(cls, members: Sequence[Query], worths: Sequence[float]) -> JointMeasurement:
        own = tuple(each for each in members if isinstance(each, Count | Rows))
        return cls(members=own, worths=tuple(worths))

    @property
    def title(self) -> str:
        return ", ".join(each.title for each in self.members)[:MAX_NAME_LENGTH]

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the tables, by name: what the budget's registration looks at."""
        named = [(each.by,) if isinstance(each.by, str) else each.by for each in self.members]
        extra = [each.column for each in self.members if hasattr(each, "column")]
        return tuple(sorted({name for names in named for name in names} | set(extra)))

    def names(self, table: Table) -> frozenset[str]:
        return frozenset().union(*(each.names(table) for each in self.members))

    def find_part(self, table: Table) -> str | None:
        return self.members[0].find_part(table)

    def take_columns(self, table: Table) -> Table:
        known = self.names(table) | condition_columns(self.members[0].where)
        return table.about(known, rows=any(each.about_rows for each in self.members))

    def bounds(self, table: Table) -> ContributionBounds:
        own = [each.bounds(table) for each in self.members]
        return ContributionBounds(
            max(each.max_rows_per_group for each in own), max(each.max_groups for each in own)
        )

    def contribution_policy(self, table: Table) -> ContributionPolicy:
        cells, rows = self.workload(table)[0], self.bounds(table).max_rows_per_group
        outside = outside_values(cells.columns, cells.domains)
        return ContributionPolicy(table.privacy_unit, rows, **outside, by_row=table.by_row)

    def member_policy(self, table: Table, member: Query) -> ContributionPolicy:
        """What counts in the answer of one member: the rows that were chosen for all."""
        return replace(
            member.contribution_policy(table),
            max_rows_per_group=self.bounds(table).max_rows_per_group,
            part=self.describe_part(table),
        )

    def describe_question(self, table: Table) -> dict[str, Any]:
        counted = [self.member_policy(table, each).to_dict() for each in self.members]
        return self.question() | {COUNTED_NOTION: counted}

    def question(self) -> dict[str, Any]:
        return {
            "query": self.kind,
            "name": self.title,
            MEMBERS_KEY: [each.question() for each in self.members],
        }

    def workload(self, table: Table) -> tuple[GroupGrid, Workload, list[Attributes]]:
        """The columns with their domains, the tables over them, and the attributes of each member
        in its own order."""
        domains: dict[str, Any] = {}
        for each in self.members:
            own = each.cells(table)
            domains |= dict(zip(own.columns, own.domains, strict=True))
        names = list(domains)
        axes = [tuple(map(names.index, each.cells(table).columns)) for each in self.members]
        worths: dict[Attributes, float] = {}
        for attributes, worth in zip(axes, self.worths, strict=True):
            key = tuple(sorted(attributes))
            before = worths.get(key, 0.0)
            worths[key] = before + worth if self._goal == "mean" else max(before, worth)
        sizes = tuple(len(domain.labels) for domain in domains.values())
        workload = Workload(sizes, tuple(worths), tuple(worths.values()))
        return GroupGrid(tuple(names), tuple(domains.values())), workload, axes

    @property
    def _goal(self) -> str:
        """Members with widths have the same error relative to them."""
        return "mean" if self.members[0].within is None else "worst"

    def plan_noise(self, table: Table, share: Share) -> list[NoisyTable]:
        rows = self.bounds(table).max_rows_per_group
        return list(workload_noise(self.workload(table)[1], share, rows, self._goal))

    def keeps_width(self, table: Table, noise: Any) -> bool | None:
        _, workload, axes = self.workload(table)
        widths = half_widths(workload, noise)
        return all(
            widths[workload.sets.index(tuple(sorted(attributes)))]
            <= allowed_half_width(member.within)
            for member, attributes in zip(self.members, axes, strict=True)
        )

    def estimate_cost(self, table: Table, share: Share) -> CostEstimate:
        cells, workload, _ = self.workload(table)
        rows = self.bounds(table).max_rows_per_group
        where = self.members[0].where
        noisy, scan, fields = plan_workload(table, share, cells, workload, rows, where, self._goal)
        measurements = [each.measurement for each in noisy]
        spread = cell_variances(workload, measurements, [each.noise.variance for each in noisy])
        return CostEstimate(
            self,
            share,
            self.make_spend(table, table_costs(noisy, workload.sizes, rows)),
            f"for {len(self.members)} questions at once: {noise_words(noisy)}",
            details={"noisy": noisy, "scan": scan, "errors": np.sqrt(spread).tolist()},
            **fields,
        )

    def parts(self, table: Table, estimate: CostEstimate) -> list[CostEstimate]:
        """A cost estimate for each member, whose costs add up to that of all."""
        _, workload, axes = self.workload(table)
        costs = estimate.spend.costs.items()
        shared = {relation: apportion_cost(cost, len(self.members)) for relation, cost in costs}
        result = []
        for number, (member, attributes) in enumerate(zip(self.members, axes, strict=True)):
            error = estimate.details["errors"][workload.sets.index(tuple(sorted(attributes)))]
            counted = self.member_policy(table, member).to_dict()
            asked = member.question() | {COUNTED_NOTION: counted}
            own = {relation: each[number] for relation, each in shared.items()}
            spend = Spend(asked, own, part=estimate.spend.part)
            # Sums of Laplace noise mix normal ones of several widths, which are off by no more.
            expected = error * sqrt(2 / pi)
            noise = estimate.noise
            one = CostEstimate(member, estimate.share, spend, noise, expected, standard_error=error)
            within = error * (NORMAL_QUANTILE if estimate.share.rho else LAPLACE_QUANTILE)
            result.append(replace(one, within=within, joint=estimate, place=number))
        return result

    def answer(self, table: Table, estimate: CostEstimate, progress: Progress | None = None) -> Any:
        noisy: tuple[NoisyTable, ...] = estimate.details["noisy"]
        scan: TableScan = estimate.details["scan"]
        values = measure_counts(noisy, scan.count(table, estimate.expression, progress))
        cells, workload, axes = self.workload(table)
        _, tables, radii = estimate_workload(workload, noisy, values)
        answers = []
        for member, attributes in zip(self.members, axes, strict=True):
            rising = sorted(attributes)
            index = workload.sets.index(tuple(rising))
            own = np.transpose(tables[index], [rising.index(each) for each in attributes])
            answers.append(
                _member_rows(member.cells(table), own.ravel(), radii[index])
                | {"details": {"standard_error": estimate.details["errors"][index]}}
            )
        return {"answers": answers, "measured": measured_values(noisy, values, cells.columns)}


def merge_key(query: Query, table: Table, plan: Any) -> tuple[object, ...] | None:
    """What queries must have in common to be measured at once; None for one that cannot be."""
    if not isinstance(query, Count | Rows) or planned_count(plan) is not None:
        return None
    cells, bounds = query.cells(table), query.bounds(table)
    if cells.columns and bounds.max_groups > 1:
        return None
    if isinstance(query, Rows) and not table.by_row and may_vary(table.domains, cells.columns):
        return None  # rows of one cell count, which are not those of another table
    pairs = list(zip(cells.columns, cells.domains, strict=True))
    if any(len(domain.labels) < 2 for _, domain in pairs):
        return None
    drops = frozenset(name for name, each in pairs if each.drops)
    alike = query.where, query.find_part(table)
    return *alike, bounds.max_rows_per_group, table.of_people, drops


def paid_questions(paid: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The questions of what was debited, as the ledger keeps it, each with what counts in it."""
    counted = paid.get(COUNTED_NOTION, [])
    return [
        dict(each) | {COUNTED_NOTION: own}
        for each, own in zip(paid[MEMBERS_KEY], counted, strict=True)
    ]


def _member_rows(cells: GroupGrid, values: Array, radius: IntervalRadii) -> dict[str, Any]:
    sides = [np.round(values + side, ANSWER_DIGITS) for side in (0, -radius.cell, radius.cell)]
    rows = [
        [*label, *map(plain_number, numbers)]
        for label, *numbers in zip(cells.labels(), *sides, strict=True)
    ]
    names = ("value", "low", "high")
    return {"columns": [*cells.headings(*names), *names], "rows": rows}
