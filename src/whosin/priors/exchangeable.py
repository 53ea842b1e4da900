"""All entities are alike: only the number of those present has a distribution of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, probability, rational
from whosin.priors.base import TOLERANCE, AsNumber, Prior, convert, normalised
from whosin.spaces.count_lattice import CountLattice
from whosin.spaces.lattice import Lattice
from whosin.spaces.records import Records
from whosin.spaces.subsets import Subsets
from whosin.validation import listed


@dataclass(frozen=True, init=False)
class Exchangeable(Prior):
    """Pr[T] = sizes[|T|] / C(n, |T|).

    Args:
        sizes: Pr[|T| = 0], …, Pr[|T| = n].
    """

    sizes: tuple[object, ...]

    def __init__(self, sizes: Iterable[object]) -> None:
        object.__setattr__(self, "sizes", listed(sizes, "sizes", "a list of numbers"))
        total = sum(self._exact, Fraction(0))
        if abs(total - 1) > TOLERANCE:
            raise InvalidInput("sizes", "numbers with sum 1", f"sum {float(total):.12g}")

    @cached_property
    def _exact(self) -> tuple[Fraction, ...]:
        return tuple(probability(value, "sizes") for value in self.sizes)

    @property
    def parameters(self) -> tuple[object, ...]:
        return self.sizes

    def check(self, space: Subsets) -> None:
        if len(self.sizes) != space.size + 1:
            raise InvalidInput("sizes", f"{space.size + 1} numbers", len(self.sizes))

    def mass(self, lattice: Lattice, number: AsNumber) -> Array:
        self.check(lattice.space)
        grid = lattice if isinstance(lattice, CountLattice) else CountLattice.single(lattice.space)
        size = lattice.space.size
        each = [mass / comb(size, k) for k, mass in enumerate(self._exact)]
        ways = np.ones(1, dtype=object)
        for length in grid.lengths:
            row = np.array([comb(length - 1, count) for count in range(length)], dtype=object)
            ways = np.multiply.outer(row, ways).ravel()
        weights = ways * np.array(each, dtype=object)[grid.totals()]
        if grid is not lattice:
            spread = np.zeros(lattice.worlds, dtype=object)
            np.add.at(spread, lattice.labels(), weights)
            weights = spread
        return convert(weights, number)

    def given(self, lattice: Lattice, entity: int, number: AsNumber) -> tuple[Array, Array]:
        if not isinstance(lattice, CountLattice):
            return self.as_table(lattice.space).given(lattice, entity, number)
        kind = lattice.kind_of[entity]
        members = len(lattice.kinds[kind])
        mass = self.mass(lattice, rational)
        share = np.arange(lattice.worlds) // lattice.strides[kind] % lattice.lengths[kind]
        # Exactly first: given an unlikely entity, floats may be too small to be divided.
        sides = [normalised(mass * counts.astype(object)) for counts in (share, members - share)]
        return convert(sides[0], number), convert(sides[1], number)

    def on_records(self, space: Records, number: AsNumber) -> Array:
        """With two values: `sizes` is the distribution of the number of rows with value 1."""
        if space.values != 2:
            raise InvalidInput("values", "2 for an exchangeable prior", space.values)
        if len(self.sizes) != space.rows + 1:
            raise InvalidInput("sizes", f"{space.rows + 1} numbers", len(self.sizes))
        each = [mass / comb(space.rows, k) for k, mass in enumerate(self._exact)]
        ones = np.array([sum(world) for world in space])
        return convert(np.array(each, dtype=object)[ones], number)

    def belief(self, space: Subsets, entity: int) -> Fraction:
        self.check(space)
        return sum((k * mass for k, mass in enumerate(self._exact)), Fraction(0)) / space.size
