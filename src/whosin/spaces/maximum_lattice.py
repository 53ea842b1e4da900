"""Worlds told apart by their largest entity only: the quotient by a maximum (F11).

Class 0 is the empty set and class j holds the sets whose largest entity, in the order given, is
the j-th. Contract: the order runs from the smallest entity to the largest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from whosin.exact import Array
from whosin.spaces.count_lattice import conditional, convolve, one_count
from whosin.spaces.lattice import Addition, AdditionCase, Lattice, Separation
from whosin.spaces.subsets import Subsets


@dataclass(frozen=True)
class MaximumLattice(Lattice):
    """The lattice of maxima.

    Args:
        space: the worlds.
        order: the positions of the entities from the smallest to the largest.
    """

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
        for entity in self.order:
            inside = array[self.members(entity, positive)]
            outside = array[self.members(entity, not positive)]
            yield Separation(entity, inside.max(axis=0), outside.min(axis=0))

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
            below = convolve(below, beliefs[self.order[rank - 1]])[: max(size, 1)]
        total = kept.sum()
        return conditional(kept, total)

    def labels(self) -> Array:
        labels = np.zeros(1, dtype=np.int64)
        for entity in range(self.space.size):
            labels = np.concatenate([labels, np.maximum(labels, self.rank[entity])])
        return labels
