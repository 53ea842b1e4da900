"""Priors without dependence beyond the size: independent, fixed size, uniform, exchangeable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb

import numpy as np

from whosin.errors import InvalidInput, invalid_value
from whosin.exact import Array, flint_rational, probability, rational
from whosin.priors.base import (
    SUM_TOLERANCE,
    AsNumber,
    Prior,
    convert_array,
    normalise,
    read_distribution,
)
from whosin.spaces.arrays import require_table
from whosin.spaces.quotients import CountLattice, Lattice
from whosin.spaces.worlds import Records, Subsets
from whosin.validation import read_list, read_whole, wrong_sum

# Entities are present independently of each other (Li13, distribution family 4.3).


@dataclass(frozen=True, init=False)
class Independent(Prior):
    """Pr[T] = ∏_{t∈T} p_t ∏_{t∉T} (1 − p_t); on records Pr[x] = ∏ p(x_i).

    Args:
        p: one probability for everyone, or one for each entity in the space's order; on records a
            distribution over values, or a list with one for each row.
    """

    p: object

    def __init__(self, p: object) -> None:
        values = p if isinstance(p, str) or not isinstance(p, Iterable) else tuple(p)
        if isinstance(values, tuple) and any(_is_list(entry) for entry in values):
            rows = tuple(tuple(row) if _is_list(row) else (row,) for row in values)
            object.__setattr__(self, "p", rows)
            for number, row in enumerate(rows):
                read_distribution(row, f"distribution of row {number}")
            return
        object.__setattr__(self, "p", values)
        if not self._exact:
            raise InvalidInput(
                "p is an empty list",
                field="p",
                value=values,
                hint="give a probability, or one for each entity",
            )

    @cached_property
    def _exact(self) -> tuple[Fraction, ...]:
        return tuple(probability(value, "p") for value in self.parameters)

    @property
    def parameters(self) -> tuple[object, ...]:
        if self.by_row:
            return tuple(entry for row in self.p for entry in row)  # type: ignore[attr-defined]
        return self.p if isinstance(self.p, tuple) else (self.p,)

    @property
    def by_row(self) -> bool:
        """Whether it lists a distribution for each row of records."""
        return isinstance(self.p, tuple) and bool(self.p) and isinstance(self.p[0], tuple)

    def canonical(self) -> Independent:
        if self.by_row:
            return Independent([tuple(map(rational, row)) for row in self.p])  # type: ignore[attr-defined]
        return Independent(self._exact if isinstance(self.p, tuple) else self._exact[0])

    def beliefs(self, space: Subsets) -> tuple[Fraction, ...]:
        """p_t for each entity."""
        self.check(space)
        return self._exact if isinstance(self.p, tuple) else self._exact * space.size

    def on_records(self, space: Records, number: AsNumber) -> Array:
        require_table("a table over all records", space.worlds, 1, space.values)
        mass = np.array([number(1)], dtype=float if number is float else object)
        for row in self.rows(space):
            mass = np.multiply.outer(mass, np.array([number(p) for p in row], mass.dtype)).ravel()
        return mass

    def rows(self, space: Records) -> list[tuple[Fraction, ...]]:
        """The distribution of each row."""
        listed = self.p if self.by_row else (self.p,) * space.rows
        assert isinstance(listed, tuple)
        if len(listed) != space.rows:
            raise InvalidInput(
                f"p has {len(listed)} distributions for {space.rows} rows",
                field="p",
                value=len(listed),
                hint="give one for all rows, or one for each",
            )
        read: dict[int, tuple[Fraction, ...]] = {}  # by identity: a million rows often share one
        for number, row in enumerate(listed):
            if id(row) in read:
                continue
            if not isinstance(row, tuple) or len(row) != space.values:
                raise invalid_value("p", f"a distribution over {space.values} values", repr(row))
            read[id(row)] = read_distribution(row, f"distribution of row {number}")
        return [read[id(row)] for row in listed]

    def check(self, space: Subsets) -> None:
        if self.by_row:
            raise InvalidInput(
                "p has a distribution for each row, and this space has entities",
                field="p",
                value=self.p,
                hint="give a probability for each entity, or use Records(…)",
            )
        if isinstance(self.p, tuple) and len(self.p) != space.size:
            raise InvalidInput(
                f"p has {len(self.p)} probabilities for {space.size} entities",
                field="p",
                value=len(self.p),
                hint="give one for all entities, or one for each",
            )

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


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)


# An independent prior given the size of the data (Li13, distribution family 4.6).


@dataclass(frozen=True, init=False)
class FixedSize(Prior):
    """Independent(p) conditioned on |T| = size.

    Args:
        p: one probability for everyone, or one for each entity: relative odds, not beliefs.
        size: the known number of entities present.
    """

    p: object
    size: int

    def __init__(self, p: object, size: int) -> None:
        object.__setattr__(
            self, "p", p if isinstance(p, str) or not isinstance(p, Iterable) else tuple(p)
        )
        object.__setattr__(self, "size", read_whole(size, "size", 0))
        _ = self._odds

    @cached_property
    def _odds(self) -> Independent:
        return Independent(self.p)

    @property
    def parameters(self) -> tuple[object, ...]:
        return self._odds.parameters

    def _total(self, beliefs: tuple[Fraction, ...], size: int) -> Fraction:
        """Pr[|T| = size] under the independent prior."""
        unsure = [flint_rational(p) for p in beliefs if 0 < p < 1]
        wanted = size - sum(p == 1 for p in beliefs)
        if not unsure or not 0 <= wanted <= len(unsure):
            return Fraction(wanted == 0)
        counted = CountLattice(Subsets(len(unsure)), (tuple(range(len(unsure))),))
        return rational(counted.independent(unsure)[wanted])

    def check(self, space: Subsets) -> None:
        self._odds.check(space)
        if not self._total(self._odds.beliefs(space), self.size):
            raise InvalidInput(
                f"a set of size {self.size} is impossible under p", field="size", value=self.size
            )

    def mass(self, lattice: Lattice, number: AsNumber) -> Array:
        self.check(lattice.space)
        beliefs = [number(p) for p in self._odds.beliefs(lattice.space)]
        return lattice.independent(beliefs, size=self.size)

    def given(self, lattice: Lattice, entity: int, number: AsNumber) -> tuple[Array, Array]:
        beliefs = [number(p) for p in self._odds.beliefs(lattice.space)]
        present, absent = (
            lattice.independent(
                [*beliefs[:entity], number(sure), *beliefs[entity + 1 :]], self.size
            )
            for sure in (1, 0)
        )
        return present, absent

    def belief(self, space: Subsets, entity: int) -> Fraction:
        self.check(space)
        beliefs = self._odds.beliefs(space)
        fixed = (*beliefs[:entity], Fraction(1), *beliefs[entity + 1 :])
        whole = self._total(beliefs, self.size)
        return beliefs[entity] * self._total(fixed, self.size) / whole


# The uninformed adversary: every world is equally likely (Li13, distribution family 5.1).


_FAIR_COIN = Independent(Fraction(1, 2))


@dataclass(frozen=True)
class Uniform(Prior):
    """Pr[T] = 2^−n: a fair coin for each entity."""

    @property
    def parameters(self) -> tuple[object, ...]:
        return ()

    def check(self, space: Subsets) -> None:
        """Makes sense on every space."""

    def mass(self, lattice: Lattice, number: AsNumber) -> Array:
        return _FAIR_COIN.mass(lattice, number)

    def given(self, lattice: Lattice, entity: int, number: AsNumber) -> tuple[Array, Array]:
        return _FAIR_COIN.given(lattice, entity, number)

    def on_records(self, space: Records, number: AsNumber) -> Array:
        require_table("a table over all records", space.worlds, 1, space.values)
        return np.full(space.worlds, number(Fraction(1, space.worlds)))

    def belief(self, space: Subsets, entity: int) -> Fraction:
        return Fraction(1, 2)


# All entities are alike: only the number of those present has a distribution of its own.


@dataclass(frozen=True, init=False)
class Exchangeable(Prior):
    """Pr[T] = sizes[|T|] / C(n, |T|).

    Args:
        sizes: Pr[|T| = 0], …, Pr[|T| = n].
    """

    sizes: tuple[object, ...]

    def __init__(self, sizes: Iterable[object]) -> None:
        object.__setattr__(self, "sizes", read_list(sizes, "sizes", "a list of numbers"))
        total = sum(self._exact, Fraction(0))
        if abs(total - 1) > SUM_TOLERANCE:
            raise wrong_sum("sizes", total)

    @cached_property
    def _exact(self) -> tuple[Fraction, ...]:
        return tuple(probability(value, "sizes") for value in self.sizes)

    @property
    def parameters(self) -> tuple[object, ...]:
        return self.sizes

    def check(self, space: Subsets) -> None:
        if len(self.sizes) != space.size + 1:
            raise InvalidInput(
                f"sizes has {len(self.sizes)} probabilities for the sizes 0 to {space.size}",
                field="sizes",
                value=len(self.sizes),
            )

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
        return convert_array(weights, number)

    def given(self, lattice: Lattice, entity: int, number: AsNumber) -> tuple[Array, Array]:
        if not isinstance(lattice, CountLattice):
            return self.as_table(lattice.space).given(lattice, entity, number)
        kind = lattice.kind_of[entity]
        members = len(lattice.kinds[kind])
        mass = self.mass(lattice, rational)
        share = np.arange(lattice.worlds) // lattice.strides[kind] % lattice.lengths[kind]
        # Exactly first: given an unlikely entity, floats may be too small to be divided.
        sides = [normalise(mass * counts.astype(object)) for counts in (share, members - share)]
        return convert_array(sides[0], number), convert_array(sides[1], number)

    def on_records(self, space: Records, number: AsNumber) -> Array:
        """With two values: `sizes` is the distribution of the number of rows with value 1."""
        if space.values != 2:
            raise InvalidInput(
                f"an exchangeable prior is about rows of two values, not {space.values}",
                field="values",
                value=space.values,
            )
        if len(self.sizes) != space.rows + 1:
            raise InvalidInput(
                f"sizes has {len(self.sizes)} probabilities for the sizes 0 to {space.rows}",
                field="sizes",
                value=len(self.sizes),
            )
        each = [mass / comb(space.rows, k) for k, mass in enumerate(self._exact)]
        ones = np.array([sum(world) for world in space])
        return convert_array(np.array(each, dtype=object)[ones], number)

    def belief(self, space: Subsets, entity: int) -> Fraction:
        self.check(space)
        return sum((k * mass for k, mass in enumerate(self._exact)), Fraction(0)) / space.size
