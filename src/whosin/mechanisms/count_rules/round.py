"""Counts rounded to a base."""

from __future__ import annotations

from dataclasses import dataclass

from whosin.mechanisms.count_rules.rule import Rule
from whosin.mechanisms.count_table import Spread
from whosin.validation import MOST_PEOPLE, whole


@dataclass(frozen=True)
class Multiples(Rule):
    """A rule that shows multiples of a base only."""

    base: int

    def __post_init__(self) -> None:
        whole(self.base, "base", 2, MOST_PEOPLE)

    @property
    def reach(self) -> int:
        return 2 * int(self.base)


@dataclass(frozen=True)
class Round(Multiples):
    """The nearest multiple of a base; a count half-way between two is rounded up.

    Args:
        base: at least 2.
    """

    @property
    def reach(self) -> int:
        return int(self.base)

    def spread(self, count: int) -> Spread:
        return [((2 * count + self.base) // (2 * self.base) * self.base, 1)]
