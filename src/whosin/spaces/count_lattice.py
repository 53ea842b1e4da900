"""Worlds counted by kinds of entities: how many of each kind are present.

A mechanism that sees a count, a sum or a histogram treats entities of one kind alike; a class of
worlds is then a vector of counts. The subset model itself is the grid whose kinds are single
entities. Contract: kind 0 is the least significant digit of a class's number, so that on single
entities class numbers are world numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np

from whosin.exact import Array
from whosin.spaces.lattice import Addition, AdditionCase, Lattice, Separation
from whosin.spaces.memory import require_table
from whosin.spaces.subsets import Subsets
from whosin.spaces.width import FLOOR, Underflow

SMALL = 1 << 18
"""Up to this many comparisons are gathered, some at a time."""
CACHED = 1 << 13
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
        """The kind of each entity."""
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
        if array.size * len(self.kinds) <= SMALL:
            # A few gathers that stay in the cache are faster than a view for each kind.
            kinds, below, above = self._steps
            rows = max(1, CACHED // array.shape[1])
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
        count = world // self.strides[kind] % self.lengths[kind]
        known = self.representative(world)
        return AdditionCase(
            self.kinds[kind][count], known, world + self.strides[kind], world, output
        )

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
                inside = convolve(inside, beliefs[entity])
            weights = np.multiply.outer(inside, weights).ravel()
        if size is None:
            return weights
        kept = np.where(self.totals() == size, weights, 0 * weights)
        total = kept.sum()
        return conditional(kept, total)

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


def conditional(kept: Array, total: Any) -> Array:
    """Probabilities given an event, from those of its parts; all zeros where it is impossible.

    Raises:
        Underflow: the event's probability is too small for floats.
    """
    if isinstance(total, float) and total < FLOOR:
        raise Underflow
    return kept / total if total > 0 else kept


def convolve(weights: Array, belief: Any) -> Array:
    """The distribution of a count after one more entity that is present with this probability."""
    longer = np.zeros(len(weights) + 1, dtype=weights.dtype)
    longer[:-1] += weights * (1 - belief)
    longer[1:] += weights * belief
    return longer


def counted(lattice: Lattice) -> CountLattice:
    """The same worlds on a grid: as they are, or single entities."""
    return lattice if isinstance(lattice, CountLattice) else CountLattice.single(lattice.space)


def as_grid(lattice: Lattice, array: Array) -> tuple[CountLattice, Array]:
    """The same likelihoods on a grid: as they are, or spread over single entities."""
    if isinstance(lattice, CountLattice):
        return lattice, array
    require_table("a table over all subsets", lattice.space.worlds, array.shape[1])
    return CountLattice.single(lattice.space), array[lattice.labels()]
