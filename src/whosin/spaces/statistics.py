"""What a mechanism computes before it adds noise: a number or a vector for each world.

A statistic names the lattice on which it is constant and its value on each class, exactly. The
value decides the centres of the noise (THEORY F10), the lattice the size of the work (F11).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.errors import InvalidInput, Unsupported
from whosin.exact import rational
from whosin.spaces.grid import Grid
from whosin.spaces.ladder import Ladder
from whosin.spaces.lattice import Lattice
from whosin.spaces.memory import require_table
from whosin.spaces.subsets import Subsets

Centre = tuple[Fraction, ...]


class Statistic(ABC):
    """A function of the world, known up to the classes of a lattice."""

    @abstractmethod
    def lattice(self, space: Subsets) -> Lattice:
        """The classes of worlds on which the statistic is constant."""

    @abstractmethod
    def centres(self, space: Subsets) -> list[Centre]:
        """Its value, a vector, on each class of that lattice in order."""


@dataclass(frozen=True)
class Count(Statistic):
    """How many entities are present: all, or those in `of` only."""

    of: Collection[Hashable] | None = None

    def lattice(self, space: Subsets) -> Grid:
        if self.of is None:
            return Grid(space, (tuple(range(space.size)),))
        counted = sorted({space.position(entity) for entity in self.of})
        return _grid_by(space, [entity in counted for entity in range(space.size)], first=True)

    def centres(self, space: Subsets) -> list[Centre]:
        grid = self.lattice(space)
        if self.of is not None and not self.of:
            return [(Fraction(0),)] * grid.worlds
        return [(Fraction(grid.counts(world)[0]),) for world in range(grid.worlds)]


@dataclass(frozen=True)
class Sum(Statistic):
    """The sum of a number each entity brings; `values` in the entities' order, or by name."""

    values: Sequence[object] | Mapping[Hashable, object]

    def _numbers(self, space: Subsets) -> list[Fraction]:
        return [rational(v, "values") for v in _per_entity(self.values, space, "values")]

    def lattice(self, space: Subsets) -> Grid:
        return _grid_by(space, self._numbers(space))

    def centres(self, space: Subsets) -> list[Centre]:
        numbers, grid = self._numbers(space), self.lattice(space)
        weights = [numbers[kind[0]] for kind in grid.kinds]
        totals = [Fraction(0)]
        for weight, length in zip(weights, grid.lengths, strict=True):
            totals = [total + weight * count for count in range(length) for total in totals]
        return [(total,) for total in totals]


@dataclass(frozen=True)
class Histogram(Statistic):
    """How many entities are present in each cell; `cells` names the cell of each entity."""

    cells: Sequence[Hashable] | Mapping[Hashable, Hashable]

    def lattice(self, space: Subsets) -> Grid:
        return _grid_by(space, _per_entity(self.cells, space, "cells"))

    def centres(self, space: Subsets) -> list[Centre]:
        grid = self.lattice(space)
        return [tuple(map(Fraction, grid.counts(world))) for world in range(grid.worlds)]


@dataclass(frozen=True)
class Max(Statistic):
    """The largest value among those present (`empty` when nobody is); by default the rank 1 … n."""

    values: Sequence[object] | Mapping[Hashable, object] | None = None
    empty: object = 0

    def _numbers(self, space: Subsets) -> list[Fraction]:
        if self.values is None:
            return [Fraction(rank) for rank in range(1, space.size + 1)]
        return [rational(v, "values") for v in _per_entity(self.values, space, "values")]

    def lattice(self, space: Subsets) -> Ladder:
        numbers = self._numbers(space)
        return Ladder(space, tuple(sorted(range(space.size), key=lambda entity: numbers[entity])))

    def centres(self, space: Subsets) -> list[Centre]:
        numbers = self._numbers(space)
        ranked = [numbers[entity] for entity in self.lattice(space).order]
        return [(value,) for value in (rational(self.empty, "empty"), *ranked)]


@dataclass(frozen=True)
class WorldFunction(Statistic):
    """Any function of the set of present entities, tabulated over all worlds."""

    function: Callable[[frozenset[Hashable]], Any]

    def lattice(self, space: Subsets) -> Grid:
        return Grid.single(space)

    def centres(self, space: Subsets) -> list[Centre]:
        require_table("a table over all subsets", space.worlds, 1)
        centres = []
        for world in space:
            value = self.function(world)
            entries = value if isinstance(value, Iterable) else (value,)
            centres.append(tuple(rational(entry, "statistic") for entry in entries))
        if len({len(centre) for centre in centres}) > 1:
            raise InvalidInput("statistic", "a vector of one length in every world", "several")
        return centres


def as_statistic(value: object) -> Statistic:
    """Read what users write for a statistic: an object, "count", "max", or a function of a set."""
    if isinstance(value, Statistic):
        return value
    if value == "count":
        return Count()
    if value == "max":
        return Max()
    if callable(value):
        return Count() if value is len else WorldFunction(value)
    raise InvalidInput(
        "statistic", "Count(), Sum(…), Histogram(…), Max(…) or a function of the set", repr(value)
    )


def outputs_at(centres: Sequence[Centre]) -> list[Centre]:
    """The product grid of the centres' coordinates, where a sup of ratios is attained (F10)."""
    axes = [sorted(set(column)) for column in zip(*centres, strict=True)]
    points: list[Centre] = [()]
    for axis in axes:
        require_table("the product grid of the centres", len(points) * len(axis), len(centres))
        points = [(*point, value) for point in points for value in axis]
    return points


def distances(centres: Sequence[Centre], points: Sequence[Centre]) -> Any:
    """‖centre − point‖₁ in floating point: centres × points."""
    total = np.zeros((len(centres), len(points)))
    for left, right in zip(zip(*centres, strict=True), zip(*points, strict=True), strict=True):
        column = np.array([float(value) for value in left])
        row = np.array([float(value) for value in right])
        total += np.abs(np.subtract.outer(column, row))
    return total


def _per_entity(values: Any, space: Subsets, field: str) -> list[Any]:
    if isinstance(values, Mapping):
        missing = [entity for entity in space.entities if entity not in values]
        if missing:
            raise InvalidInput(field, "one entry for each entity", f"none for {missing[0]!r}")
        return [values[entity] for entity in space.entities]
    listed = list(values)
    if len(listed) != space.size:
        raise InvalidInput(field, f"{space.size} entries, one an entity", f"{len(listed)}")
    return listed


def _grid_by(space: Subsets, keys: Sequence[Hashable], first: Hashable = None) -> Grid:
    """Entities of equal key are a kind; kinds in the order of appearance, `first` leading."""
    if len(keys) != space.size:
        raise Unsupported("one key for each entity is needed")
    kinds: dict[Hashable, list[int]] = {first: []} if first in keys else {}
    for entity, key in enumerate(keys):
        kinds.setdefault(key, []).append(entity)
    return Grid(space, tuple(tuple(kind) for kind in kinds.values()))
