"""Entities are present independently of each other (Li13, distribution family 4.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from whosin.errors import InvalidInput
from whosin.exact import Array, probability
from whosin.priors.base import AsNumber, Prior, scaling
from whosin.spaces.lattice import Lattice
from whosin.spaces.subsets import Subsets


@dataclass(frozen=True, init=False)
class Independent(Prior):
    """Pr[T] = ∏_{t∈T} p_t ∏_{t∉T} (1 − p_t).

    Args:
        p: one probability for everyone, or one for each entity in the space's order.
    """

    p: object

    def __init__(self, p: object) -> None:
        values = p if isinstance(p, str) or not isinstance(p, Iterable) else tuple(p)
        object.__setattr__(self, "p", values)
        if not self._exact:
            raise InvalidInput("p", "a probability or one for each entity", "an empty list")

    @cached_property
    def _exact(self) -> tuple[Fraction, ...]:
        return tuple(probability(value, "p") for value in self.parameters)

    @property
    def parameters(self) -> tuple[object, ...]:
        return self.p if isinstance(self.p, tuple) else (self.p,)

    def beliefs(self, space: Subsets) -> tuple[Fraction, ...]:
        """p_t for each entity."""
        self.check(space)
        return self._exact if isinstance(self.p, tuple) else self._exact * space.size

    def check(self, space: Subsets) -> None:
        if isinstance(self.p, tuple) and len(self.p) != space.size:
            raise InvalidInput("p", f"one probability or {space.size}", f"{len(self.p)}")

    def mass(self, lattice: Lattice, number: AsNumber) -> Array:
        return lattice.independent([number(p) for p in self.beliefs(lattice.space)])

    def given(self, lattice: Lattice, entity: int, number: AsNumber) -> tuple[Array, Array]:
        beliefs = [number(p) for p in self.beliefs(lattice.space)]
        sure = [number(1), number(0)]
        present, absent = (
            lattice.independent([*beliefs[:entity], certain, *beliefs[entity + 1 :]])
            for certain in sure
        )
        return present, absent

    def belief(self, space: Subsets, entity: int) -> Fraction:
        return self.beliefs(space)[entity]

    def scaled(self, space: Subsets, entity: int, belief: Fraction) -> Independent:
        scaling(self, space, entity, belief)
        beliefs = self.beliefs(space)
        return Independent((*beliefs[:entity], belief, *beliefs[entity + 1 :]))
