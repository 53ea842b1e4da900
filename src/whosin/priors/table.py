"""A prior written out world by world."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, probability
from whosin.priors.base import TOLERANCE, AsNumber, Prior
from whosin.spaces import Lattice, Records, Space, Subsets
from whosin.validation import listed


@dataclass(frozen=True, init=False, eq=False)
class WorldTable(Prior):
    """An explicit distribution over worlds.

    Args:
        probabilities: a list in world order, or a mapping from a world (its number, or the set of
            entities present) to its probability; worlds left out have probability 0.
    """

    support: Mapping[Any, object]
    length: int | None

    def __init__(self, probabilities: Iterable[object] | Mapping[Any, object]) -> None:
        if isinstance(probabilities, Mapping):
            support, length = dict(probabilities), None
        else:
            values = listed(probabilities, "probabilities", "a list of numbers, or a mapping")
            support = {world: value for world, value in enumerate(values) if value}
            length = len(values)
        object.__setattr__(self, "support", support)
        object.__setattr__(self, "length", length)
        total = sum((probability(v, "probabilities") for v in support.values()), Fraction(0))
        if abs(total - 1) > TOLERANCE:
            raise InvalidInput("probabilities", "numbers with sum 1", f"sum {float(total):.12g}")

    @property
    def parameters(self) -> tuple[object, ...]:
        return tuple(self.support.values())

    @cached_property
    def _exact(self) -> dict[Any, Fraction]:
        return {w: probability(value, "probabilities") for w, value in self.support.items()}

    def worlds(self, space: Space) -> dict[int, Fraction]:
        """World number → probability, positive ones only."""
        if self.length is not None and self.length != space.worlds:
            raise InvalidInput(
                "probabilities", f"{space.worlds} numbers, one for each world", self.length
            )
        table: dict[int, Fraction] = {}
        for world, mass in self._exact.items():
            number = world if isinstance(world, int) else space.index(world)
            if not 0 <= number < space.worlds:
                raise InvalidInput("world", f"from 0 to {space.worlds - 1}", number)
            if mass:
                table[number] = table.get(number, Fraction(0)) + mass
        return table

    def check(self, space: Subsets) -> None:
        self.worlds(space)

    def mass(self, lattice: Lattice, number: AsNumber) -> Array:
        return self._spread(lattice, self.worlds(lattice.space), number)

    def given(self, lattice: Lattice, entity: int, number: AsNumber) -> tuple[Array, Array]:
        table = self.worlds(lattice.space)
        sides = []
        for side in (1, 0):
            kept = {w: m for w, m in table.items() if w >> entity & 1 == side}
            total = sum(kept.values(), Fraction(0))
            sides.append(self._spread(lattice, {w: m / total for w, m in kept.items()}, number))
        return sides[0], sides[1]

    def _spread(self, lattice: Lattice, table: dict[int, Fraction], number: AsNumber) -> Array:
        out = np.zeros(lattice.worlds, dtype=float if number is float else object)
        size = lattice.space.size
        for world, mass in table.items():
            present = [entity for entity in range(size) if world >> entity & 1]
            out[lattice.class_of(present)] += number(mass)
        return out

    def on_records(self, space: Records, number: AsNumber) -> Array:
        """Worlds are given by number or by the tuple of their rows' values."""
        out = np.zeros(space.worlds, dtype=float if number is float else object)
        for world, mass in self.worlds(space).items():
            out[world] = number(mass)
        return out

    def belief(self, space: Subsets, entity: int) -> Fraction:
        table = self.worlds(space)
        inside = sum((m for w, m in table.items() if w >> entity & 1), Fraction(0))
        return inside / sum(table.values())
