"""The mechanism of Li13 Theorem 5.7: differential identifiability without bounded DP."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from whosin.errors import InvalidInput, Unsupported
from whosin.mechanisms.base import Mechanism, need_space
from whosin.mechanisms.channel import Channel
from whosin.spaces import Space, Subsets
from whosin.spaces.memory import require_table


@dataclass(frozen=True)
class ExceptFirst(Mechanism):
    """Draws uniformly from 1 … n whatever the data, but from 2 … n when T = {the first entity}.

    Output 1 rules out one world only, so with n = m candidates it is (ρ, m)-DI for every
    ρ ≥ 1/(m−1); yet that world has probability 0, so no ε-BDP holds.
    """

    def channel(self, space: Space | None = None) -> Channel:
        space = need_space(space, "ExceptFirst")
        if not isinstance(space, Subsets):
            raise Unsupported("this mechanism is defined on Subsets")
        size = space.size
        if size < 2:
            raise InvalidInput("entities", "at least 2", size)
        require_table("a table over all subsets", space.worlds, size)
        everything = [Fraction(1, size)] * size
        exception = [Fraction(0)] + [Fraction(1, size - 1)] * (size - 1)
        rows = [exception if world == 1 else everything for world in range(space.worlds)]
        return Channel(space, rows, list(range(1, size + 1)))
