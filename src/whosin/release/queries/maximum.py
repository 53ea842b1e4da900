"""The largest public value among those present, by the repaired k-Max (Li13 5.3, erratum E1).

Against someone who knows nothing (D_N) it raises no belief by more than (2^k−1)/(2^k−2). Against
anyone else it promises nothing, and its level does not add: it is a release of its own. It bounds
one direction only: someone may learn for certain that a person is out. So no ε holds, and an attack
advantage is 1 − 1/r, not (r−1)/(r+1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from whosin import families
from whosin.errors import InvalidInput
from whosin.exact import rational
from whosin.noise import uniform
from whosin.release.engines.base import Progress
from whosin.release.prices.pricing import Offer, Share
from whosin.release.queries.base import NAME, Query
from whosin.release.queries.linear import plain
from whosin.release.scans.bounding import eligible
from whosin.release.table import Table
from whosin.release.what_counts import Counted

HALF = Fraction(1, 2)


@dataclass(frozen=True, kw_only=True)
class Maximum(Query):
    """The largest value among entities that are in the data, off by up to k places.

    Args:
        universe: everyone who could be in, with a public value each: a list of (entity, value).
    """

    kind: ClassVar[str] = "maximum"
    label: ClassVar[str] = "the largest of a list of candidates"
    scale: ClassVar[str] = NAME
    universe: Sequence[Sequence[Any]]

    def offer(self, table: Table, share: Share) -> Offer:
        if not isinstance(share.plan.family, families.Uninformed):
            accepted = "asked under a plan against uninformed adversaries only"
            raise InvalidInput("maximum", accepted, share.plan.family.symbol)
        if table.by_row:
            accepted = "asked of a table with a column that says whose row it is"
            raise InvalidInput("maximum", accepted, "one where each row is one person")
        if self.where is not None:
            # Whoever knows who cannot meet a condition has a smaller universe to look at.
            raise InvalidInput("where", "left out: the promise is for the whole universe", "one")
        ranked = self.ranked()
        ratio = share.plan.target.one_sided_ratio(HALF, HALF)
        k = _width((rational(ratio) + 1) / 2)  # γ at a belief of 1/2 (F7)
        if len(ranked) < 2 * k:
            raise InvalidInput("universe", f"at least {2 * k} entities for this γ", len(ranked))
        expression = table.check(self._expression(table))
        gamma = f"γ = {2**k - 1}/{2**k - 2} against D_N"
        charge = self.charged_alone(table, share, f"repaired k-Max, k = {k}: {gamma}")
        return Offer(self, share, charge, f"one of {k} places", details=k, expression=expression)

    def answer(self, table: Table, offer: Offer, progress: Progress | None = None) -> Any:
        k: int = offer.details
        ranked = self.ranked()
        top = table.engine.run(offer.expression, progress).column("rank")[0].as_py()
        lowest = min(max(1 if top is None else top, k), len(ranked) - k + 1)
        rank = lowest + uniform(k)
        value = plain(float(ranked[rank - 1][1]))
        return {"columns": ["value", "places"], "rows": [[value, k]]}

    def counted(self, table: Table) -> Counted:
        return Counted(table.entity)

    def ranked(self) -> list[tuple[Any, Fraction]]:
        """Everyone by value, the smallest first; ties by name, so that ranks are public."""
        if not isinstance(self.universe, list | tuple):
            raise InvalidInput("universe", "a list of (entity, value)", repr(self.universe)[:80])
        pairs = []
        for each in self.universe:
            if not isinstance(each, list | tuple) or len(each) != 2:
                raise InvalidInput("universe", "a list of (entity, value)", repr(each)[:80])
            if type(each[0]) not in (str, int) or (
                isinstance(each[0], int) and not -(2**63) <= each[0] < 2**63
            ):
                accepted = "of entities that are texts or whole numbers"
                raise InvalidInput("universe", accepted, repr(each[0])[:80])
            pairs.append((each[0], rational(each[1], "value in the universe")))
        if len({str(entity) for entity, _ in pairs}) != len(pairs):
            raise InvalidInput("universe", "a list of different entities", "one twice")
        return sorted(pairs, key=lambda pair: (pair[1], str(pair[0])))

    def _expression(self, table: Table) -> Any:
        import ibis

        rows = eligible(table, None)
        kind = table.type(table.entity)
        names = [entity for entity, _ in self.ranked()]
        if not kind.is_string() and not (
            kind.is_integer() and all(isinstance(name, int) for name in names)
        ):
            raise InvalidInput("universe", f"entities of the column's type, {kind}", "others")
        known = [str(name) if kind.is_string() else name for name in names]
        ranks = ibis.memtable(
            {"name": known, "rank": list(range(1, len(known) + 1))},
            schema={"name": "string" if kind.is_string() else "int64", "rank": "int64"},
        )
        # Only the entity is joined: a column of the table may be called like one of ours.
        present = rows.select(who=rows[table.entity]).join(ranks, [("who", "name")])
        return present.aggregate(rank=present["rank"].max())


def _width(gamma: Fraction) -> int:
    """The least k with (2^k−1)/(2^k−2) ≤ γ."""
    for k in range(2, 64):
        if Fraction(2**k - 1, 2**k - 2) <= gamma:
            return k
    raise InvalidInput("gamma", "above 1 by more than 2^-60", float(gamma))
