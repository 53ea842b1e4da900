"""Counts rounded up or down at random, right on average."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from whosin.mechanisms.count_rules.rule import Rule
from whosin.mechanisms.count_table import Spread
from whosin.validation import MOST_PEOPLE, whole


@dataclass(frozen=True)
class RandomRound(Rule):
    """One of the two multiples of a base around the count, the nearer one with more probability:
    up with probability (what is left over)/base, so that the mean is the count. A multiple stays.

    Args:
        base: at least 2.
    """

    base: int

    def __post_init__(self) -> None:
        whole(self.base, "base", 2, MOST_PEOPLE)

    @property
    def reach(self) -> int:
        return 2 * int(self.base)

    def spread(self, count: int) -> Spread:
        over = count % self.base
        if not over:
            return [(count, 1)]
        below = count - over
        up = Fraction(over, self.base)
        return [(below, 1 - up), (below + self.base, up)]
