"""The uninformed adversary: every world is equally likely (Li13, distribution family 5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whosin.exact import Array
from whosin.priors.base import AsNumber, Prior
from whosin.priors.independent import Independent
from whosin.spaces.lattice import Lattice
from whosin.spaces.memory import require_table
from whosin.spaces.records import Records
from whosin.spaces.subsets import Subsets

_COIN = Independent(Fraction(1, 2))


@dataclass(frozen=True)
class Uniform(Prior):
    """Pr[T] = 2^−n: a fair coin for each entity."""

    @property
    def parameters(self) -> tuple[object, ...]:
        return ()

    def check(self, space: Subsets) -> None:
        """Makes sense on every space."""

    def mass(self, lattice: Lattice, number: AsNumber) -> Array:
        return _COIN.mass(lattice, number)

    def given(self, lattice: Lattice, entity: int, number: AsNumber) -> tuple[Array, Array]:
        return _COIN.given(lattice, entity, number)

    def on_records(self, space: Records, number: AsNumber) -> Array:
        require_table("a table over all records", space.worlds, 1, space.values)
        return np.full(space.worlds, number(Fraction(1, space.worlds)))

    def belief(self, space: Subsets, entity: int) -> Fraction:
        return Fraction(1, 2)
