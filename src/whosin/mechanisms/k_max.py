"""The k-Max mechanism: a maximum blurred upwards (Li13 Definition 5.2), as published and repaired.

Entities are ranked 1 … n in the space's order, the value of rank j being c_j. Both are constant on
worlds of equal maximum, so they work on the lattice of maxima, and n can be in the thousands.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whosin.errors import InvalidInput, Unsupported
from whosin.mechanisms.base import Mechanism, need_space
from whosin.mechanisms.channel import Channel
from whosin.spaces import MaximumLattice, Space, Subsets
from whosin.spaces.memory import require_table
from whosin.validation import whole


@dataclass(frozen=True)
class KMax(Mechanism):
    """k-Max repaired (erratum E1): a true maximum of rank below k, or none, counts as rank k.

    Draws uniformly from c_j', …, c_{j'+k−1} with j' = max(j, k), or from the last k values where
    that would run over the end. Against the uninformed adversary γ = (2^k − 1)/(2^k − 2), attained
    for n ≥ 2k. It satisfies no negative membership privacy.

    Args:
        k: how many values to draw from, at least 2 and at most n.
    """

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole(self.k, "k", 2))

    def lowest(self, maximum: int, size: int) -> int:
        """The smallest rank that may be output when the true maximum has this rank (0: empty)."""
        return max(maximum, self.k)

    def channel(self, space: Space | None = None) -> Channel:
        space = need_space(space, type(self).__name__)
        if not isinstance(space, Subsets):
            raise Unsupported("k-Max is defined on Subsets")
        size = space.size
        if self.k > size:
            raise InvalidInput("k", f"at most the number of entities, {size}", self.k)
        require_table("the table of maxima by outputs", size + 1, size)
        table = np.zeros((size + 1, size), dtype=object)
        share = Fraction(1, self.k)
        for maximum in range(size + 1):
            start = min(self.lowest(maximum, size), size - self.k + 1)
            table[maximum, start - 1 : start - 1 + self.k] = share
        names = [f"c{rank}" for rank in range(1, size + 1)]
        return Channel(space, table, names, lattice=MaximumLattice(space, tuple(range(size))))


@dataclass(frozen=True)
class KMaxAsPublished(KMax):
    """k-Max as Li13 Definition 5.2 has it. Its Proposition 5.3 is false: output c_1 happens only
    when T = {1}, so the posterior is 1. The empty set has no largest element and so falls under
    the definition's "otherwise": the last k values."""

    def lowest(self, maximum: int, size: int) -> int:
        return maximum or size
