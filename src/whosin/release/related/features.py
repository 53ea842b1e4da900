"""A person's own features: numbers of visits, total days, the last ward.

Contract: a feature is computed for each entity from that entity's rows alone, so it is the same in
all of them: one value a person. Nothing here looks at rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from whosin.errors import InvalidInput, UnknownName
from whosin.release.related.aggregates import AGGREGATES
from whosin.release.related.named_lists import check_keys, check_name, read_named

MOST_FEATURES = 500


@dataclass(frozen=True)
class Feature:
    """One value for each entity, from its rows.

    Args:
        name: the column's name.
        kind: "any", "count", "distinct", "sum", "max", "min", "mean", "first" or "last".
        column: the column that it is computed from; none to look at rows as such (any, count).
        table: one of the further tables; by default the table itself.
        where: a condition on rows: others do not count.
        order: for first and last, the column that orders an entity's rows.
        tie: a column that orders those of them that `order` does not tell apart. Rows that both
            leave tied are ordered by the value itself, so that the choice never depends on chance
            or on the order in which rows are stored.
    """

    name: str
    kind: str
    column: str | None = None
    table: str | None = None
    where: str | None = None
    order: str | None = None
    tie: str | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if (value is None and each.default is MISSING) or not isinstance(value, str | None):
                raise InvalidInput(each.name, "a text", repr(value)[:80])
        check_name(self.name, "name")
        if self.kind not in AGGREGATES:
            raise UnknownName("kind", self.kind, AGGREGATES)
        aggregate = AGGREGATES[self.kind]
        if aggregate.needs_column and self.column is None:
            raise InvalidInput("column", f"given for {self.kind}", "none")
        if aggregate.ordered and self.order is None:
            raise InvalidInput("order", f"given for {self.kind}: the column that orders", "none")
        for key in ("order", "tie"):
            if not aggregate.ordered and getattr(self, key) is not None:
                accepted = "left out, but for first and last"
                raise InvalidInput(key, accepted, repr(getattr(self, key))[:80])

    def to_dict(self) -> dict[str, str]:
        """Plain data, without what was left out."""
        listed = {each.name: getattr(self, each.name) for each in fields(self)}
        return {key: value for key, value in listed.items() if value is not None}


def read_features(given: object) -> tuple[Feature, ...]:
    """Features as people write them: `Feature(…)`, or the keys of a scenario file."""
    return read_named(given, "features", "or Feature(…)", MOST_FEATURES, (Feature,), _from_keys)


def _from_keys(data: Mapping[str, Any]) -> Feature:
    known = [each.name for each in fields(Feature)]
    for key in data:
        if key not in known:
            raise UnknownName("key of a feature", str(key), known)
    check_keys(Feature, data, "feature")
    return Feature(**data)
