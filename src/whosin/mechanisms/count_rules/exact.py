"""No rule at all: the count itself."""

from __future__ import annotations

from dataclasses import dataclass

from whosin.mechanisms.count_rules.rule import Rule
from whosin.mechanisms.count_table import Spread


@dataclass(frozen=True)
class Exact(Rule):
    """The count as it is."""

    @property
    def reach(self) -> int:
        return 0

    def spread(self, count: int) -> Spread:
        return [(count, 1)]
