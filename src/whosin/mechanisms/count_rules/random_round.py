"""Counts rounded up or down at random, right on average."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from whosin.mechanisms.count_rules.round import Multiples
from whosin.mechanisms.count_table import Spread


@dataclass(frozen=True)
class RandomRound(Multiples):
    """One of the two multiples of a base around the count, the nearer one with more probability:
    up with probability (what is left over)/base, so that the mean is the count. A multiple stays.

    Args:
        base: at least 2.
    """

    def spread(self, count: int) -> Spread:
        over = count % self.base
        if not over:
            return [(count, 1)]
        below = count - over
        up = Fraction(over, self.base)
        return [(below, 1 - up), (below + self.base, up)]
