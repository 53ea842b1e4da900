"""Counts by keys that were not declared, and the most frequent groups.

A key shows only if many privacy units have it. Each privacy
unit is in at most g keys. Noise a^|k| is added to each count that is not 0, and keys with a noisy
count of at least τ are shown. That is (ε, δ)-DP with ε = Δ/scale and δ = g·q, where q =
a^(τ−1)/(1+a) is the chance that a key of one privacy unit alone is shown.

*Proof.* Between two neighbours let i keys be in the first table only, j in the second only, each
with one privacy unit; i and j are at most g. Take any set of answers. Those that show one of the i
keys have probability at most 1 − (1−q)^i under the first. The others have (1−q)^i R under the first
and at least (1−q)^j R' under the second, where R ≤ e^ε R' compares the keys of both. If i ≥ j, the
excess over e^ε times the second is at most 1 − (1−q)^i; if not, 1 − (1−q)^i + (1−q)^i − (1−q)^j; so
at most g·q. Keys chosen at random make both mixtures over the choices, for which it holds too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from whosin.errors import InvalidInput, read_whole, spell
from whosin.exact import exp_up, format_figures
from whosin.ledger.budget import NEIGHBOUR_RELATIONS, Cost
from whosin.noise import LaplaceNoise
from whosin.release import contribution_bounds
from whosin.release.column_expressions import GroupGrid, free_column_name
from whosin.release.contribution_bounds import (
    PEOPLE_PART,
    ContributionBounds,
    ContributionPolicy,
    CostWarning,
    eligible_rows,
    may_vary,
    outside_values,
)
from whosin.release.cost import (
    CONFIDENCE_LEVEL,
    LESS_NOISE,
    NOISY_LEVEL,
    CostEstimate,
    ExpectedError,
    NoisyAggregate,
    SelectionNoise,
    Share,
    interval_deviations,
    noise_words,
)
from whosin.release.engines.base import Progress, whole_numbers
from whosin.release.queries.base import ROUND_SIZES, Query
from whosin.release.table import MAX_ROWS, Table


@dataclass(frozen=True, kw_only=True)
class Keys(Query):
    """How many privacy units have each value of a column whose values were not declared.

    Args:
        column: any column of texts or whole numbers.
        max_groups: how many values of a privacy unit count; the table's own bound by default.
    """

    kind: ClassVar[str] = "keys"
    of_things: ClassVar[bool] = True
    needs_delta: ClassVar[bool] = True
    column: str
    max_groups: int | None = None

    def estimate_cost(self, table: Table, share: Share) -> CostEstimate:
        if not share.delta:
            raise InvalidInput(
                "keys needs a plan with a delta: a value that only one person has shows with "
                "probability δ",
                field="keys",
                hint="plan with a delta",
            )
        kind = table.type(table.column(self.column))
        if not (kind.is_string() or kind.is_integer() or kind.is_boolean()):
            raise InvalidInput(
                f"column {self.column} has type {kind}, and keys lists text or whole numbers",
                field=f"column {self.column}",
                value=str(kind),
            )
        bounds = self._bounds(table)
        expression = self.plan_scan(table, type(self)._expression)
        noisy = self.plan_noise(table, share)[0]
        noise = LaplaceNoise(noisy.noise.width)
        threshold = _key_threshold(noise.scale, bounds.max_groups, share.delta)
        failing = min(Fraction(1), _key_delta(noise.scale, bounds.max_groups, threshold))
        costs = {
            relation: Cost.pure(
                noise.cost(PEOPLE_PART.l1_sensitivity(relation, bounds, True)), failing
            )
            for relation in NEIGHBOUR_RELATIONS
        }
        return CostEstimate(
            self,
            share,
            self.make_spend(table, costs),
            f"{noise_words(noisy)}; shown from {threshold}",
            noisy.error,
            noisy.interval_radius(),
            (noisy,),
            details=threshold,
            expression=expression,
        )

    def answer(self, table: Table, estimate: CostEstimate, progress: Progress | None = None) -> Any:
        threshold: int = estimate.details
        result = table.engine.run(estimate.expression, progress)
        counts = whole_numbers(result.column("people"))
        noisy = counts + estimate.parts[0].noise.draw(len(counts))
        published = np.flatnonzero(noisy >= threshold)
        keys = result.column("key").take(published).to_pylist()
        within = estimate.parts[0].noise.quantile(CONFIDENCE_LEVEL)
        # By the noisy counts, then by the keys: the engine's own order would say something about
        # the rows.
        pairs = sorted(
            zip(keys, noisy[published].tolist(), strict=True), key=lambda pair: (-pair[1], pair[0])
        )
        rows = [[key, count, count - within, count + within] for key, count in pairs]
        names = ("value", "low", "high")
        return {"columns": [free_column_name(self.column, names), *names], "rows": rows}

    def plan_noise(self, table: Table, share: Share) -> tuple[NoisyAggregate, ...]:
        sensitivity = PEOPLE_PART.l1_sensitivity(share.relation, self._bounds(table), True)
        noise = LaplaceNoise.at_epsilon(sensitivity, share.epsilon).check_drawable(LESS_NOISE)
        return (NoisyAggregate(PEOPLE_PART, noise),)

    def expected_errors(self, table: Table, estimate: CostEstimate) -> tuple[ExpectedError, ...]:
        noise, threshold = estimate.parts[0].noise, estimate.details

        def chance(people: int) -> float:
            missing = threshold - people  # shown if the noise is at least this
            return noise.tail(missing - 1) / 2 if missing > 0 else 1 - noise.tail(-missing) / 2

        return tuple(
            ExpectedError(people, estimate.error, estimate.within, shown=chance(people))
            for people in ROUND_SIZES
        )

    def readable_size(self, table: Table, estimate: CostEstimate) -> tuple[float | None, str]:
        deviations = interval_deviations(estimate.noise)
        size = (estimate.within or 0.0) / (NOISY_LEVEL * deviations)
        return float(math.ceil(size)), "people"

    def contribution_policy(self, table: Table) -> ContributionPolicy:
        return ContributionPolicy(
            table.privacy_unit, None, self._bounds(table).max_groups, by_row=table.by_row
        )

    def cautions(self, table: Table) -> tuple[CostWarning, ...]:
        declared = self.column in table.domains
        found = self.caution(table, "max_groups", (self.column,))
        return tuple(replace(each, declared=declared) for each in found)

    def _bounds(self, table: Table) -> ContributionBounds:
        groups = table.bound("max_groups", self.max_groups)
        return ContributionBounds(1, groups if may_vary(table.domains, (self.column,)) else 1)

    def _expression(self, table: Table) -> Any:
        rows = eligible_rows(table, self.where)
        pairs = rows.select(**contribution_bounds.owner_column(rows, table), key=rows[self.column])
        pairs = pairs.filter(pairs["key"].notnull())
        pairs = pairs if table.by_row else pairs.distinct()
        chosen = contribution_bounds.sample_rows(
            pairs, [contribution_bounds.UNIT_COLUMN], self._bounds(table).max_groups
        )
        return chosen.group_by("key").aggregate(people=chosen.count())


def _key_delta(scale: Fraction, groups: int, threshold: int) -> Fraction:
    """Return the δ of a threshold: g·a^(τ−1)/(1+a), rounded up."""
    return groups * exp_up(-(threshold - 1) / scale) / (1 + 1 / exp_up(1 / scale))


def _key_threshold(scale: Fraction, groups: int, delta: Fraction) -> int:
    """The least τ of at least 1 whose δ is within the share, certified."""
    a = math.exp(-1 / max(float(scale), 1e-300))
    needed = 1 + float(scale) * (math.log(groups / (1 + a)) - math.log(delta))
    result = max(1, math.floor(needed) - 1)
    while _key_delta(scale, groups, result) > delta:
        result += 1
    return result


@dataclass(frozen=True, kw_only=True)
class Top(Query):
    """Which k values, or combinations of values, most privacy units have, best first.

    One privacy unit moves each count by at most 1, whatever the number of cells it is in, and all
    counts the same way when it is added or removed. Only the order is released, no counts.

    Args:
        by: declared columns.
        k: how many.
    """

    kind: ClassVar[str] = "top"
    selects: ClassVar[bool] = True
    no_width: ClassVar[tuple[str, str]] = (
        "it names groups, and has no number that could be off",
        "ask for a count by the same columns with this width, and rank its groups",
    )
    by: Sequence[str] | str
    k: int = 10

    def estimate_cost(self, table: Table, share: Share) -> CostEstimate:
        cells = self._cells(table)
        choices = len(self._named(cells))
        if read_whole(self.k, "k", 1, MAX_ROWS) > choices:
            raise InvalidInput(
                f"k is {self.k}, and {choices} groups are declared", field="k", value=self.k
            )
        expression = self.plan_scan(table, type(self)._expression, cells)
        alike = {relation: relation == "add-remove" for relation in NEIGHBOUR_RELATIONS}
        noise = SelectionNoise.from_share(share, 1, self.k, monotonic=alike[share.relation])
        costs = {}
        for relation, monotonic in alike.items():
            epsilon, rho = noise.cost(1, self.k, monotonic=monotonic)
            costs[relation] = Cost.pure(epsilon, rho=rho)
        within = float(noise.scale) * math.log(choices * self.k / (1 - CONFIDENCE_LEVEL))
        return CostEstimate(
            self,
            share,
            self.make_spend(table, costs),
            f"selection among {spell(choices)} cells",
            within=within,
            within_words="with 95% probability no value that is left out has more than "
            f"{format_figures(within, 3, 'up')} people more than one that is named",
            details=noise,
            expression=expression,
        )

    def answer(self, table: Table, estimate: CostEstimate, progress: Progress | None = None) -> Any:
        noise: SelectionNoise = estimate.details
        cells = self._cells(table)
        result = table.engine.run(estimate.expression, progress)
        counts, named = cells.dense(result, ["people"])[0], self._named(cells)
        chosen = noise.select(counts[np.asarray(named)], self.k)
        labels = cells.labels()
        rows = [[rank, *labels[named[index]]] for rank, index in enumerate(chosen, 1)]
        return {"columns": ["rank", *cells.headings("rank")], "rows": rows}

    def contribution_policy(self, table: Table) -> ContributionPolicy:
        cells = self._cells(table)
        left = outside_values(cells.columns, cells.domains)
        return ContributionPolicy(
            table.privacy_unit,
            outside=left["outside"],
            by_row=table.by_row,
            unnamed=tuple(left["others"]),
        )

    def _cells(self, table: Table) -> GroupGrid:
        cells = GroupGrid.of(table, self.by)
        if not cells.columns:
            raise InvalidInput("by needs at least one column", field="by")
        return cells

    def _named(self, cells: GroupGrid) -> list[int]:
        """The cells without "other", which is no name and which a closed domain does not have."""
        others = [domain.labels[-1] if domain.outside is None else None for domain in cells.domains]
        return [
            index
            for index, label in enumerate(cells.labels())
            if not any(key == other for key, other in zip(label, others, strict=True))
        ]

    def _expression(self, table: Table, cells: GroupGrid) -> Any:
        everywhere = ContributionBounds(1, cells.count)
        return contribution_bounds.count_people(
            eligible_rows(table, self.where), table, cells, everywhere
        )
