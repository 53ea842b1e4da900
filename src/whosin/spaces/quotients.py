"""Worlds up to a statistic (F11): lattices of counts and maxima, sampling, binomials."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from whosin.exact import Array
from whosin.spaces.arrays import MIN_LIKELIHOOD, Underflow, require_table
from whosin.spaces.worlds import Subsets


# What a mechanism can tell apart: worlds up to a statistic (F11).
#
# A `Lattice` numbers the classes of worlds that a mechanism treats alike and knows how entities
# move between them. A family of priors searches an array of likelihoods, one row a class, through
# these four views and never sees which mechanism the array came from:
#
# - `additions`: likelihoods with an entity beside those without it, all else equal (D_I, D_B's
#   kin);
# - `extremes`: over all ways to add one entity to a base, the largest and the smallest likelihood;
# - `separations`: the largest likelihood with an entity and the smallest without it, whatever else;
# - `independent`: the distribution over classes under an independent prior.
#
# What a lattice cannot do in its own terms is done on the grid of single entities
# (`spread_on_grid`).
class AdditionCase(NamedTuple):
    """One cell of a view, back in terms of worlds: class numbers, and a set standing for them."""

    entity: int
    known: tuple[int, ...]
    present: int
    absent: int
    output: int


class Addition(NamedTuple):
    """Likelihoods with and without one entity; `case` says what a position in them is."""

    present: Array
    absent: Array
    case: Callable[[tuple[int, ...]], AdditionCase]


class Separation(NamedTuple):
    """For one entity, by output: the largest likelihood on one side, the least on the other."""

    entity: int
    largest: Array
    smallest: Array


class Lattice(ABC):
    """A partition of the worlds of a `Subsets` space into numbered classes."""

    space: Subsets

    @property
    @abstractmethod
    def worlds(self) -> int:
        """How many classes there are."""

    @abstractmethod
    def class_of(self, present: Iterable[int]) -> int:
        """The class of the world in which these entities (by position) are present."""

    @abstractmethod
    def representative(self, world: int, avoid: int | None = None) -> tuple[int, ...]:
        """The positions of the entities present in some world of this class, if possible one
        without the entity to avoid."""

    @abstractmethod
    def additions(self, array: Array) -> Iterator[Addition]:
        """Compare every class with the class that one more entity leads to."""

    def best_additions(self, array: Array) -> Iterator[Addition]:
        """The same, or for each output only the best and the worst of the classes without it."""
        return self.additions(array)

    @abstractmethod
    def extremes(self, array: Array) -> tuple[Array, Array, Array]:
        """For each base class: largest and smallest likelihood after adding an entity, and which
        bases admit two different additions (a boolean for each class)."""

    @abstractmethod
    def neighbours(self, world: int) -> list[tuple[int, int]]:
        """(entity, class) for the ways to add an entity to the representative of a class."""

    @abstractmethod
    def separations(self, array: Array, positive: bool) -> Iterator[Separation]:
        """For each entity: the largest likelihood with it (positive) or without it, and the
        smallest on the other side."""

    @abstractmethod
    def members(self, entity: int, with_entity: bool) -> Array:
        """The classes that hold a world with (or without) the entity."""

    @abstractmethod
    def independent(self, beliefs: Sequence[Any], size: int | None = None) -> Array:
        """The distribution over classes when entities are present independently with these
        probabilities, given that exactly `size` of them are present where a size is given."""

    @abstractmethod
    def labels(self) -> Array:
        """The class of each of the 2^n worlds."""

    @property
    def is_single(self) -> bool:
        """Whether the classes are the worlds of the space, in their order."""
        return False


# Worlds counted by kinds of entities: how many of each kind are present.
#
# A mechanism that sees a count, a sum or a histogram treats entities of one kind alike; a class of
# worlds is then a vector of counts. The subset model itself is the grid whose kinds are single
# entities. Kind 0 is the least significant digit of a class's number, so that on single entities
# class numbers are world numbers.

MAX_GATHERED_COMPARISONS = 1 << 18
"""Up to this many comparisons are gathered, some at a time."""
GATHER_BLOCK_ENTRIES = 1 << 13
"""How many entries are gathered at a time: the system would have to provide larger arrays anew each
time."""


@dataclass(frozen=True)
class CountLattice(Lattice):
    """The lattice of count vectors over kinds of entities.

    Args:
        space: the worlds.
        kinds: a partition of the positions 0 … n−1 of the entities.
    """

    space: Subsets
    kinds: tuple[tuple[int, ...], ...]

    @classmethod
    def single(cls, space: Subsets) -> CountLattice:
        """Every entity is a kind of its own: the worlds themselves."""
        return cls(space, tuple((entity,) for entity in range(space.size)))

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """How many counts each kind may have: its number of entities plus one."""
        return tuple(len(kind) + 1 for kind in self.kinds)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """How far one more entity of each kind moves a class's number."""
        return tuple(prod(self.lengths[:kind]) for kind in range(len(self.kinds)))

    @cached_property
    def kind_of(self) -> dict[int, int]:
        return {entity: kind for kind, members in enumerate(self.kinds) for entity in members}

    @property
    def worlds(self) -> int:
        return prod(self.lengths)

    @property
    def is_single(self) -> bool:
        return self.kinds == tuple((entity,) for entity in range(self.space.size))

    def counts(self, world: int) -> tuple[int, ...]:
        """How many entities of each kind are present in a class."""
        return tuple(
            world // stride % length
            for stride, length in zip(self.strides, self.lengths, strict=True)
        )

    def totals(self) -> Array:
        """How many entities are present in each class."""
        total = np.zeros(1, dtype=np.int64)
        for length in self.lengths:
            total = np.add.outer(np.arange(length), total).ravel()
        return total

    def class_of(self, present: Iterable[int]) -> int:
        return sum(self.strides[self.kind_of[entity]] for entity in set(present))

    def representative(self, world: int, avoid: int | None = None) -> tuple[int, ...]:
        return tuple(
            entity
            for kind, count in zip(self.kinds, self.counts(world), strict=True)
            for entity in (kind[:count] if avoid not in kind[:count] else kind[::-1][:count])
        )

    def axis(self, array: Array, kind: int) -> Array:
        """View (classes × outputs) as (before, count of the kind, after · outputs)."""
        return array.reshape(-1, self.lengths[kind], self.strides[kind] * array.shape[1])

    def additions(self, array: Array) -> Iterator[Addition]:
        if array.size * len(self.kinds) <= MAX_GATHERED_COMPARISONS:
            # A few gathers that stay in the cache are faster than a view for each kind.
            kinds, below, above = self._steps
            rows = max(1, GATHER_BLOCK_ENTRIES // array.shape[1])
            for start in range(0, len(kinds), rows):
                yield Addition(
                    array.take(above[start : start + rows], axis=0),
                    array.take(below[start : start + rows], axis=0),
                    partial(self._gathered, start),
                )
            return
        for kind in range(len(self.kinds)):
            view = self.axis(array, kind)
            yield Addition(view[:, 1:], view[:, :-1], partial(self._case, kind, array.shape[1]))

    @cached_property
    def _steps(self) -> tuple[Array, Array, Array]:
        """(kind, class, class with one more of the kind) for every way to add an entity."""
        classes = np.arange(self.worlds)
        parts = []
        for kind, (stride, length) in enumerate(zip(self.strides, self.lengths, strict=True)):
            below = classes[classes // stride % length < length - 1]
            parts.append((np.full(len(below), kind), below, below + stride))
        kinds, below, above = (np.concatenate(column) for column in zip(*parts, strict=True))
        return kinds, below, above

    def _case(self, kind: int, outputs: int, position: tuple[int, ...]) -> AdditionCase:
        before, count, rest = position
        after, output = divmod(rest, outputs)
        world = (before * self.lengths[kind] + count) * self.strides[kind] + after
        return self._case_at(kind, world, output)

    def _gathered(self, start: int, position: tuple[int, ...]) -> AdditionCase:
        kinds, below, _ = self._steps
        row, output = start + position[0], position[1]
        return self._case_at(int(kinds[row]), int(below[row]), output)

    def _case_at(self, kind: int, world: int, output: int) -> AdditionCase:
        stride, known = self.strides[kind], self.representative(world)
        entity = self.kinds[kind][world // stride % self.lengths[kind]]
        return AdditionCase(entity, known, world + stride, world, output)

    def extremes(self, array: Array) -> tuple[Array, Array, Array]:
        largest = np.full_like(array, -1)
        smallest = np.full_like(array, 2)
        for kind in range(len(self.kinds)):
            above = self.axis(array, kind)[:, 1:]
            for extreme, best in ((largest, np.maximum), (smallest, np.minimum)):
                below = self.axis(extreme, kind)[:, :-1]
                best(below, above, out=below)
        return largest, smallest, self.totals() <= self.space.size - 2

    def neighbours(self, world: int) -> list[tuple[int, int]]:
        return [
            (entity, world + stride)
            for kind, count, stride in zip(
                self.kinds, self.counts(world), self.strides, strict=True
            )
            for entity in kind[count:]
        ]

    def separations(self, array: Array, positive: bool) -> Iterator[Separation]:
        # Kinds are folded away from the most significant side, so that all n of them together
        # cost two passes over the array instead of n.
        tops = bottoms = array
        for kind in reversed(range(len(self.kinds))):
            tops = tops.reshape(self.lengths[kind], self.strides[kind], -1)
            bottoms = bottoms.reshape(self.lengths[kind], self.strides[kind], -1)
            inside, outside = (tops[1:], bottoms[:-1]) if positive else (tops[:-1], bottoms[1:])
            yield Separation(self.kinds[kind][0], inside.max(axis=(0, 1)), outside.min(axis=(0, 1)))
            tops, bottoms = tops.max(axis=0), bottoms.min(axis=0)

    def members(self, entity: int, with_entity: bool) -> Array:
        kind = self.kind_of[entity]
        count = np.arange(self.worlds) // self.strides[kind] % self.lengths[kind]
        return np.flatnonzero(count > 0 if with_entity else count < self.lengths[kind] - 1)

    def independent(self, beliefs: Sequence[Any], size: int | None = None) -> Array:
        weights = one_count(beliefs)
        for kind in self.kinds:
            inside = one_count(beliefs)
            for entity in kind:
                inside = convolve_entity(inside, beliefs[entity])
            weights = np.multiply.outer(inside, weights).ravel()
        if size is None:
            return weights
        return condition_weights(np.where(self.totals() == size, weights, 0 * weights))

    def labels(self) -> Array:
        labels = np.zeros(1, dtype=np.int64)
        for entity in range(self.space.size):
            step = self.strides[self.kind_of[entity]]
            labels = np.concatenate([labels, labels + step])
        return labels


def one_count(beliefs: Sequence[Any]) -> Array:
    """The distribution of a count over nobody, in the beliefs' own kind of number."""
    if isinstance(beliefs[0], float):
        return np.ones(1)
    return np.array([beliefs[0] * 0 + 1], dtype=object)


def condition_weights(kept: Array) -> Array:
    """Probabilities given an event, from those of its parts; all zeros where it is impossible."""
    total = kept.sum()
    if isinstance(total, float) and total < MIN_LIKELIHOOD:
        raise Underflow
    return kept / total if total > 0 else kept


def convolve_entity(weights: Array, belief: Any) -> Array:
    """The distribution of a count after one more entity that is present with this probability."""
    longer = np.zeros(len(weights) + 1, dtype=weights.dtype)
    longer[:-1] += weights * (1 - belief)
    longer[1:] += weights * belief
    return longer


def as_count_lattice(lattice: Lattice) -> CountLattice:
    """The same worlds on a grid: as they are, or single entities."""
    return lattice if isinstance(lattice, CountLattice) else CountLattice.single(lattice.space)


def spread_on_grid(lattice: Lattice, array: Array) -> tuple[CountLattice, Array]:
    """The same likelihoods on a grid: as they are, or spread over single entities."""
    if isinstance(lattice, CountLattice):
        return lattice, array
    require_table("a table over all subsets", lattice.space.worlds, array.shape[1])
    return CountLattice.single(lattice.space), array[lattice.labels()]


# Worlds told apart by their largest entity only: the quotient by a maximum (F11).
#
# Class 0 is the empty set and class j holds the sets whose largest entity, in the order given, is
# the j-th. The order runs from the smallest entity to the largest.
@dataclass(frozen=True)
class MaximumLattice(Lattice):
    """The lattice of maxima."""

    space: Subsets
    order: tuple[int, ...]

    @cached_property
    def rank(self) -> dict[int, int]:
        """The class in which an entity is the largest: 1 … n."""
        return {entity: rank for rank, entity in enumerate(self.order, start=1)}

    @property
    def worlds(self) -> int:
        return self.space.size + 1

    def class_of(self, present: Iterable[int]) -> int:
        return max((self.rank[entity] for entity in present), default=0)

    def representative(self, world: int, avoid: int | None = None) -> tuple[int, ...]:
        return (self.order[world - 1],) if world else ()

    def additions(self, array: Array) -> Iterator[Addition]:
        for rank in range(1, self.worlds):
            below = array[:rank]
            above = np.broadcast_to(array[rank], below.shape)
            yield Addition(above, below, partial(self._case, rank))

    def _case(self, rank: int, position: tuple[int, ...]) -> AdditionCase:
        below, output = position
        entity = self.order[rank - 1]
        return AdditionCase(entity, self.representative(below), rank, below, output)

    def best_additions(self, array: Array) -> Iterator[Addition]:
        for extreme, find in ((np.minimum, np.argmin), (np.maximum, np.argmax)):
            below = extreme.accumulate(array, axis=0)[:-1]
            yield Addition(array[1:], below, partial(self._best_case, array, find))

    def _best_case(self, array: Array, find: Any, position: tuple[int, ...]) -> AdditionCase:
        rank, output = position[0] + 1, position[1]
        return self._case(rank, (int(find(array[:rank, output])), output))

    def extremes(self, array: Array) -> tuple[Array, Array, Array]:
        # From a set with maximum a one entity leads to any larger maximum, or (a ≥ 2) to a again.
        largest, smallest = np.full_like(array, -1), np.full_like(array, 2)
        for extreme, best in ((largest, np.maximum), (smallest, np.minimum)):
            for base in reversed(range(self.worlds - 1)):
                extreme[base] = best(extreme[base + 1], array[base + 1])
            extreme[2:] = best(extreme[2:], array[2:])
        bases = np.arange(self.worlds)
        return largest, smallest, bases <= self.space.size - (2 if self.space.size < 3 else 1)

    def neighbours(self, world: int) -> list[tuple[int, int]]:
        return [(entity, max(world, rank)) for entity, rank in self.rank.items() if rank != world]

    def separations(self, array: Array, positive: bool) -> Iterator[Separation]:
        # With the entity of a rank the class is that rank or above, without it any but that rank.
        most, least = (np.maximum, np.minimum) if positive else (np.minimum, np.maximum)
        inside = most.accumulate(array[::-1], axis=0)[::-1]
        above = least.accumulate(array[::-1], axis=0)[::-1]
        below = least.accumulate(array, axis=0)
        for rank, entity in enumerate(self.order, start=1):
            rest = below[rank - 1]
            if rank + 1 < self.worlds:
                rest = least(rest, above[rank + 1])
            sides = (inside[rank], rest) if positive else (rest, inside[rank])
            yield Separation(entity, *sides)

    def members(self, entity: int, with_entity: bool) -> Array:
        classes, rank = np.arange(self.worlds), self.rank[entity]
        return classes[classes >= rank] if with_entity else classes[classes != rank]

    def independent(self, beliefs: Sequence[Any], size: int | None = None) -> Array:
        weights = np.zeros(self.worlds, dtype=float if isinstance(beliefs[0], float) else object)
        nobody_above: Any = beliefs[0] * 0 + 1
        for rank in range(self.space.size, 0, -1):
            belief = beliefs[self.order[rank - 1]]
            weights[rank] = nobody_above * belief
            nobody_above = nobody_above * (1 - belief)
        weights[0] = nobody_above
        return weights if size is None else self._of_size(weights, beliefs, size)

    def _of_size(self, weights: Array, beliefs: Sequence[Any], size: int) -> Array:
        """The distribution given that `size` are present: size − 1 of them below the maximum."""
        below = one_count(beliefs)
        kept = weights * 0
        if size == 0:
            kept[0] = weights[0]
        for rank in range(1, self.worlds):
            if 0 < size <= rank:
                kept[rank] = weights[rank] * below[size - 1]
            below = convolve_entity(below, beliefs[self.order[rank - 1]])[: max(size, 1)]
        return condition_weights(kept)

    def labels(self) -> Array:
        labels = np.zeros(1, dtype=np.int64)
        for entity in range(self.space.size):
            labels = np.concatenate([labels, np.maximum(labels, self.rank[entity])])
        return labels


def sample_entities(grid: CountLattice, array: Array, beta: Any) -> Array:
    """Row v of the result is the mixture of rows that sampling v's entities leads to."""
    out = array.copy()
    for kind in range(len(grid.kinds)):
        sample_axis(grid, out, kind, beta)
    return out


def sample_axis(grid: CountLattice, array: Array, kind: int, beta: Any) -> None:
    """Sample the entities of one kind, in place."""
    view = grid.axis(array, kind)
    if grid.lengths[kind] == 2:
        view[:, 1] *= beta
        view[:, 1] += (1 - beta) * view[:, 0]
    else:
        view[:] = np.matmul(binomial_rows(grid.lengths[kind], beta), view)


def binomial_rows(length: int, beta: Any) -> Array:
    """Row v: the probabilities that 0, 1, … of v entities are kept, for v < length."""
    table = np.zeros((length, length), dtype=float if isinstance(beta, float) else object)
    table[0, 0] = beta * 0 + 1
    for v in range(1, length):
        table[v, : v + 1] = (1 - beta) * table[v - 1, : v + 1]
        table[v, 1 : v + 1] += beta * table[v - 1, :v]
    return table


# The distribution of how many of two kinds of independent people are in, in floats.
#
# Every weight is within (count + 100) · 2·10^−15 of itself, relatively, and what is cut off has
# probability below 10^−16: less than 9 deviations and 60 more from the mean on either side stays,
# by Bernstein's inequality.

CUT_DEVIATIONS, CUT_MARGIN_PEOPLE = 9, 60
MIN_CUT_PEOPLE = 48
"""Binomials of fewer than this many are never cut off."""
CUT_WEIGHT = 1e-15
"""A bound on all the probability that is cut off."""


def rounding_error(people: int) -> float:
    """More than the relative error of a sum of weights for this many people."""
    return 2e-15 * (people + 100)


@lru_cache(maxsize=256)
def binomial(count: int, belief: float) -> tuple[int, Array]:
    """(first, weights): Bin(count, belief) from its first value that is not negligible.

    Products of ratios away from the mode, then scaled to a sum of 1: logarithms of factorials, of
    size 10^5 for 10^4 people, would not be as accurate.
    """
    middle, spread = count * belief, math.sqrt(count * belief * (1 - belief))
    first = max(0, math.floor(middle - CUT_DEVIATIONS * spread - CUT_MARGIN_PEOPLE))
    last = min(count, math.ceil(middle + CUT_DEVIATIONS * spread + CUT_MARGIN_PEOPLE))
    mode = min(max(math.floor((count + 1) * belief), first), last)
    up, down = np.arange(mode, last), np.arange(mode, first, -1)
    rise = np.cumprod((count - up) * belief / ((up + 1) * (1 - belief)))
    fall = np.cumprod(down * (1 - belief) / ((count - down + 1) * belief))
    weights = np.concatenate([fall[::-1], [1.0], rise])
    return first, np.asarray(weights / math.fsum(weights))


@lru_cache(maxsize=512)
def two_binomials(at_low: int, low: float, at_high: int, high: float) -> tuple[int, Array]:
    """(first, weights) of the sum of two independent binomials."""
    one, two = binomial(at_low, low), binomial(at_high, high)
    return one[0] + two[0], np.convolve(one[1], two[1])


def block_of_binomials(
    at_low: int, low: float, at_high: int, high: float, count: int
) -> tuple[int, Array]:
    """(first, weights): `two_binomials` for at_low, at_low + 1, … at low and that number fewer at
    high, one for each row.

    All of them share what at_low at low and at_high − count + 1 at high do, and the others are few.
    """
    first, shared = two_binomials(at_low, low, at_high - count + 1, high)
    return first, np.array([np.convolve(shared, few) for few in _few(count, low, high)])


@lru_cache(maxsize=4)
def _few(count: int, low: float, high: float) -> list[Array]:
    """The weights of r at low and count − 1 − r at high, for each r."""
    return [two_binomials(r, low, count - 1 - r, high)[1] for r in range(count)]
