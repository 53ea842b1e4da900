"""Names one present entity at random."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from fractions import Fraction

from whosin.exact import probability
from whosin.mechanisms.channel import Channel, Mechanism
from whosin.spaces import Space


@dataclass(frozen=True)
class Lottery(Mechanism):
    """Names one present entity with probability `keep`, and nobody otherwise."""

    keep: object

    def channel(self, space: Space | None = None) -> Channel:
        keep = Fraction(probability(self.keep, "keep"))

        def draw(world: Collection[Hashable]) -> dict[Hashable, Fraction]:
            named = dict.fromkeys(world, keep / max(1, len(world)))
            return {"nobody": 1 - sum(named.values()), **named}

        return Channel.from_function(space, draw)
