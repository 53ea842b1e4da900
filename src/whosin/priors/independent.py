"""Priors without dependence beyond the size: independent, fixed size, uniform, exchangeable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb

import numpy as np

from whosin.errors import InvalidInput, check_count, invalid_value, read_list, read_whole
from whosin.exact import Array, flint_rational, probability, rational
from whosin.priors.base import (
    AsNumber,
    Prior,
    check_sum,
    convert_array,
    multiply_rows,
    read_distribution,
)
from whosin.spaces.arrays import require_table
from whosin.spaces.quotients import CountLattice, Lattice, as_count_lattice, condition_weights
from whosin.spaces.worlds import Records, Subsets


@dataclass(frozen=True, init=False)
class Independent(Prior):
    """Pr[T] = ∏_{t∈T} p_t ∏_{t∉T} (1 − p_t); on records Pr[x] = ∏ p(x_i) (Li13 4.3).

    Args:
        p: one probability for everyone, or one for each entity in the space's order; on records a
            distribution over values, or a list with one for each row.
    """

    p: object

    def __init__(self, p: object) -> None:
        values = tuple(p) if _is_list(p) else p  # type: ignore[arg-type]
        if isinstance(values, tuple) and any(_is_list(entry) for entry in values):
            rows = tuple(tuple(row) if _is_list(row) else (row,) for row in values)
            object.__setattr__(self, "p", rows)
            for number, row in enumerate(rows):
                read_distribution(row, f"distribution of row {number}")
            return
        object.__setattr__(self, "p", values)
        if not self._exact:
            raise invalid_value("p", "a probability, or one for each entity", values)

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
        return multiply_rows(self.rows(space), number)

    def rows(self, space: Records) -> list[tuple[Fraction, ...]]:
        listed = self.p if self.by_row else (self.p,) * space.rows
        assert isinstance(listed, tuple)
        hint = "give one for all rows, or one for each"
        check_count(len(listed), space.rows, "p", "distributions", "rows", hint)
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
            accepted, hint = "a probability for each entity", "or use Records(…)"
            raise invalid_value("p", accepted, "a distribution for each row", hint)
        if isinstance(self.p, tuple):
            hint = "give one for all entities, or one for each"
            check_count(len(self.p), space.size, "p", "probabilities", "entities", hint)

    def mass(self, lattice: Lattice, number: AsNumber) -> Array:
        return lattice.independent([number(p) for p in self.beliefs(lattice.space)])

    def given(self, lattice: Lattice, entity: int, number: AsNumber) -> tuple[Array, Array]:
        return _given_entity(self.beliefs(lattice.space), lattice, entity, number)

    def belief(self, space: Subsets, entity: int) -> Fraction:
        return self.beliefs(space)[entity]


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)


def _given_entity(
    exact: tuple[Fraction, ...],
    lattice: Lattice,
    entity: int,
    number: AsNumber,
    size: int | None = None,
) -> tuple[Array, Array]:
    """The distributions over classes with the entity surely in, and surely out."""
    beliefs = [number(p) for p in exact]
    present, absent = (
        lattice.independent([*beliefs[:entity], number(sure), *beliefs[entity + 1 :]], size)
        for sure in (1, 0)
    )
    return present, absent


@dataclass(frozen=True, init=False)
class FixedSize(Prior):
    """Independent(p) conditioned on |T| = size (Li13 4.6).

    Args:
        p: one probability for everyone, or one for each entity: relative odds, not beliefs.
        size: the known number of entities present.
    """

    p: object
    size: int

    def __init__(self, p: object, size: int) -> None:
        object.__setattr__(self, "p", tuple(p) if _is_list(p) else p)  # type: ignore[arg-type]
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
            message = f"a set of size {self.size} is impossible under p"
            raise InvalidInput(message, field="size", value=self.size)

    def mass(self, lattice: Lattice, number: AsNumber) -> Array:
        self.check(lattice.space)
        beliefs = [number(p) for p in self._odds.beliefs(lattice.space)]
        return lattice.independent(beliefs, size=self.size)

    def given(self, lattice: Lattice, entity: int, number: AsNumber) -> tuple[Array, Array]:
        return _given_entity(self._odds.beliefs(lattice.space), lattice, entity, number, self.size)

    def belief(self, space: Subsets, entity: int) -> Fraction:
        self.check(space)
        beliefs = self._odds.beliefs(space)
        fixed = (*beliefs[:entity], Fraction(1), *beliefs[entity + 1 :])
        whole = self._total(beliefs, self.size)
        return beliefs[entity] * self._total(fixed, self.size) / whole


_FAIR_COIN = Independent(Fraction(1, 2))


@dataclass(frozen=True)
class Uniform(Prior):
    """Pr[T] = 2^−n: a fair coin for each entity (Li13 5.1)."""

    parameters = ()

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


@dataclass(frozen=True, init=False)
class Exchangeable(Prior):
    """All entities are alike: Pr[T] = sizes[|T|] / C(n, |T|).

    Args:
        sizes: Pr[|T| = 0], …, Pr[|T| = n].
    """

    sizes: tuple[object, ...]

    def __init__(self, sizes: Iterable[object]) -> None:
        object.__setattr__(self, "sizes", read_list(sizes, "sizes", "a list of numbers"))
        check_sum(self._exact, "sizes")

    @cached_property
    def _exact(self) -> tuple[Fraction, ...]:
        return tuple(probability(value, "sizes") for value in self.sizes)

    @property
    def parameters(self) -> tuple[object, ...]:
        return self.sizes

    def check(self, space: Subsets) -> None:
        check_count(len(self.sizes), space.size + 1, "sizes", "probabilities", "sizes from 0 on")

    def mass(self, lattice: Lattice, number: AsNumber) -> Array:
        self.check(lattice.space)
        grid, size = as_count_lattice(lattice), lattice.space.size
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
        sides = [mass * counts.astype(object) for counts in (share, members - share)]
        present, absent = (convert_array(condition_weights(side), number) for side in sides)
        return present, absent

    def on_records(self, space: Records, number: AsNumber) -> Array:
        """With two values: `sizes` is the distribution of the number of rows with value 1."""
        if space.values != 2:
            raise invalid_value("values", "2 for an exchangeable prior", space.values)
        check_count(len(self.sizes), space.rows + 1, "sizes", "probabilities", "sizes from 0 on")
        each = [mass / comb(space.rows, k) for k, mass in enumerate(self._exact)]
        ones = np.array([sum(world) for world in space])
        return convert_array(np.array(each, dtype=object)[ones], number)

    def belief(self, space: Subsets, entity: int) -> Fraction:
        self.check(space)
        return sum((k * mass for k, mass in enumerate(self._exact)), Fraction(0)) / space.size
