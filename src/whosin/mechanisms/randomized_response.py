"""m-ary randomised response on each row or entity (Warner 1965; Wang14 eq. 30, E_d)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, product

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import flint_array, probability, ranged, rational
from whosin.mechanisms.base import Mechanism, need_space
from whosin.mechanisms.channel import Channel
from whosin.spaces import Space, Subsets
from whosin.spaces.memory import require


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """Each row keeps its value with some probability, else takes one of the m − 1 others.

    On Subsets the value of an entity is whether it is present, and outputs are tuples of 0 and 1
    in the entities' order.

    Args:
        epsilon: keep with probability e^ε / (e^ε + m − 1); or
        keep: that probability itself. A rational one gives an exact channel.
    """

    epsilon: object = None
    keep: object = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.keep is None):
            got = "none" if self.epsilon is None else "both"
            raise InvalidInput("epsilon or keep", "given, one of the two", got)
        if self.keep is not None:
            probability(self.keep, "keep")
        else:
            ranged(self.epsilon, "epsilon", "at least 0")

    def _keep(self, values: int) -> float | Fraction:
        if self.keep is not None:
            return self.keep if isinstance(self.keep, float) else probability(self.keep, "keep")
        return 1 / (1 + (values - 1) * math.exp(-float(rational(self.epsilon))))

    def channel(self, space: Space | None = None) -> Channel:
        space = need_space(space, "RandomizedResponse")
        subsets = isinstance(space, Subsets)
        rows, values = (space.size, 2) if isinstance(space, Subsets) else (space.rows, space.values)

        def fits(limit: int) -> str:
            fit = next(n for n in count() if 8 * values ** (2 * (n + 1)) > limit)
            return f"{fit} rows or entities of {values} values fit"

        require("a table of worlds by worlds", 8 * space.worlds**2, fits)
        keep = self._keep(values)
        move = (1 - keep) / (values - 1)
        letter = [[keep if i == j else move for j in range(values)] for i in range(values)]
        # Kronecker products put row 0 in the most significant place. For Subsets entity 0 is the
        # least significant bit of a world, so outputs are listed in the worlds' own order.
        if isinstance(keep, float):
            one = np.array(letter)
            table = np.ones((1, 1))
        else:
            one = flint_array((v for row in letter for v in row), (values, values))
            table = flint_array([1], (1, 1))
        for _ in range(rows):
            table = np.kron(one, table)
        outputs = [
            world[::-1] if subsets else world for world in product(range(values), repeat=rows)
        ]
        return Channel(space, table, outputs)
