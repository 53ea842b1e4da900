"""Counts by keys that were not declared: a key shows only if many entities have it.

Each entity is in at most g keys. Noise a^|k| is added to each count that is not 0, and keys with a
noisy count of at least τ are shown. That is (ε, δ)-DP with ε = Δ/scale and δ = g·q, where
q = a^(τ−1)/(1+a) is the chance that a key of one entity alone is shown.

*Proof.* Between two neighbours let i keys be in the first table only, j in the second only, each
with one entity; i and j are at most g. Take any set of answers. Those that show one of the i keys
have probability at most 1 − (1−q)^i under the first. The others have (1−q)^i R under the first and
at least (1−q)^j R' under the second, where R ≤ e^ε R' compares the keys of both. If i ≥ j, the
excess over e^ε times the second is at most 1 − (1−q)^i; if not, 1 − (1−q)^i + (1−q)^i − (1−q)^j;
so at most g·q. Keys chosen at random make both mixtures over the choices, for which it holds too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import exp_up
from whosin.ledger.charge import RELATIONS, Charge, Cost
from whosin.release.columns.cells import free
from whosin.release.engines.base import Progress
from whosin.release.prices.pricing import NoisyPart, Offer, Share, drawable, noise_words
from whosin.release.queries.base import Query
from whosin.release.scans import bounding
from whosin.release.scans.bounding import PEOPLE, Bounds, eligible
from whosin.release.table import Table
from whosin.release.what_counts import Caution, Counted, may_vary


@dataclass(frozen=True, kw_only=True)
class Keys(Query):
    """How many entities have each value of a column whose values were not declared.

    Args:
        column: any column of texts or whole numbers.
        groups: how many values of an entity count; the table's own bound by default.
    """

    kind: ClassVar[str] = "keys"
    label: ClassVar[str] = "values that were not declared (needs δ)"
    column_takes: ClassVar[str] = "any"
    needs_delta: ClassVar[bool] = True
    column: str
    groups: int | None = None

    def offer(self, table: Table, share: Share) -> Offer:
        if not share.delta:
            raise InvalidInput("keys", "asked under a plan with a delta, which they need", "none")
        kind = table.type(table.column(self.column))
        if not (kind.is_string() or kind.is_integer() or kind.is_boolean()):
            raise InvalidInput(f"column {self.column}", "texts or whole numbers", str(kind))
        bounds = self._bounds(table)
        expression = table.check(self._expression(table))
        reach = PEOPLE.sensitivity(share.relation, bounds, True)
        noisy = drawable(NoisyPart(PEOPLE, "laplace", reach / share.epsilon))
        threshold = _threshold(noisy.scale, bounds.groups, share.delta)
        failing = min(Fraction(1), _failing(noisy.scale, bounds.groups, threshold))
        costs = {
            relation: Cost.pure(PEOPLE.sensitivity(relation, bounds, True) / noisy.scale, failing)
            for relation in RELATIONS
        }
        words, parts = f"{noise_words(noisy)}; shown from {threshold}", (noisy,)
        known = Charge(self.asked(table), costs), words, noisy.error, noisy.reach(), parts
        return Offer(self, share, *known, details=threshold, expression=expression)

    def answer(self, table: Table, offer: Offer, progress: Progress | None = None) -> Any:
        threshold: int = offer.details
        result = table.engine.run(offer.expression, progress)
        counts = result.column("people").to_numpy().astype(np.int64)
        noisy = counts + offer.parts[0].draw(len(counts))
        published = np.flatnonzero(noisy >= threshold)
        keys = result.column("key").take(published).to_pylist()
        within = offer.parts[0].within()
        # In the order of the keys: the engine's own order would say something about the rows.
        pairs = sorted(zip(keys, noisy[published].tolist(), strict=True))
        rows = [[key, count, count - within, count + within] for key, count in pairs]
        names = ("value", "low", "high")
        return {"columns": [free(self.column, names), *names], "rows": rows}

    def counted(self, table: Table) -> Counted:
        return Counted(table.entity, None, self._bounds(table).groups, by_row=table.by_row)

    def cautions(self, table: Table) -> tuple[Caution, ...]:
        return self.caution(table, "groups", (self.column,))

    def _bounds(self, table: Table) -> Bounds:
        groups = table.bound("groups", self.groups)
        return Bounds(1, groups if may_vary(table.domains, (self.column,)) else 1)

    def _expression(self, table: Table) -> Any:
        rows = eligible(table, self.where)
        pairs = rows.select(**bounding.owner(rows, table), key=rows[self.column])
        pairs = pairs.filter(pairs["key"].notnull())
        pairs = pairs if table.by_row else pairs.distinct()
        chosen = bounding.first(pairs, [bounding.ENTITY], self._bounds(table).groups)
        return chosen.group_by("key").aggregate(people=chosen.count())


def _failing(scale: Fraction, groups: int, threshold: int) -> Fraction:
    """g·a^(τ−1)/(1+a), rounded up."""
    return groups * exp_up(-(threshold - 1) / scale) / (1 + 1 / exp_up(1 / scale))


def _threshold(scale: Fraction, groups: int, delta: Fraction) -> int:
    """The least τ of at least 1 whose δ is within the share, certified."""
    a = math.exp(-1 / max(float(scale), 1e-300))
    needed = 1 + float(scale) * (math.log(groups / (1 + a)) - math.log(delta))
    result = max(1, math.floor(needed) - 1)
    while _failing(scale, groups, result) > delta:
        result += 1
    return result
