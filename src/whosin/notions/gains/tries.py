"""Guessing the world, in one try or in several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, flint_rational
from whosin.notions.gains.base import GainFunction, Guess, slack, world_name
from whosin.spaces import Space
from whosin.validation import whole


@dataclass(frozen=True)
class Tries(GainFunction):
    """1 where the world is among k that are named (Bayes vulnerability, for k = 1).

    Args:
        k: how many worlds may be named.
    """

    k: int = 1
    example: ClassVar[str] = "tries=3"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole(self.k, "tries", 1))

    @property
    def spelled(self) -> str:
        return "identity" if self.k == 1 else f"tries={self.k}"

    @property
    def words(self) -> str:
        tries = "one try" if self.k == 1 else f"{self.k} tries"
        return f"the probability of naming the whole table in {tries}"

    def check(self, space: Space) -> None:
        if self.k > space.worlds:
            raise InvalidInput("tries", f"at most {space.worlds:,}, the number of worlds", self.k)

    def best(self, near: Array, weight: Callable[[int], Any], space: Space) -> Guess:
        k = self.k
        least = np.partition(near, len(near) - k)[len(near) - k]
        candidates = np.flatnonzero(near >= least * (1 - slack(1)))
        ranked = sorted(((weight(int(world)), -int(world)) for world in candidates), reverse=True)[
            :k
        ]
        total = sum((value for value, _ in ranked), flint_rational(0))
        names = tuple(world_name(space, -world) for _, world in ranked)
        return total, names[0] if k == 1 else names
