"""What a mechanism computes before it adds noise: a number or a vector for each world.

A statistic names the lattice on which it is constant and its value on each class, exactly. The
value decides the centres of the noise (F10), the lattice the size of the work (F11).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from whosin.errors import (
    InvalidInput,
    Unsupported,
    check_count,
    invalid_value,
    read_list,
    read_whole,
)
from whosin.exact import Array, rational
from whosin.spaces.arrays import require_memory, require_table
from whosin.spaces.quotients import CountLattice, Lattice, MaximumLattice
from whosin.spaces.worlds import Records, Subsets

Centre = tuple[Fraction, ...]


@dataclass(frozen=True)
class Contributions:
    """What each entity adds to a statistic that is a sum, under noise that falls off as one shape.

    Attributes:
        kinds: the entities by what they add, by position.
        weights: what an entity of each kind adds: all kinds to one number, or
        apart: each kind to a coordinate of its own.
        rate: how fast the logarithm of the noise falls with the L1 distance, for searches.
    """

    space: Subsets
    kinds: tuple[tuple[int, ...], ...]
    weights: tuple[Fraction, ...]
    apart: bool = False
    rate: float = 1.0

    def distance(self, one: int, other: int) -> Fraction:
        """How far apart the statistic is on one entity alone and on another, by their kinds."""
        if not self.apart:
            return abs(self.weights[one] - self.weights[other])
        return Fraction(0) if one == other else abs(self.weights[one]) + abs(self.weights[other])

    def total(self, counts: Mapping[int, int]) -> Centre:
        """The statistic on this many entities of each kind."""
        if self.apart:
            return tuple(weight * counts.get(kind, 0) for kind, weight in enumerate(self.weights))
        parts = (self.weights[kind] * count for kind, count in counts.items())
        return (sum(parts, Fraction(0)),)

    def corner(self, kind: int, positive: bool) -> Centre:
        """An output beyond every value of the statistic on the side to which a kind moves it, or on
        the other: there the noise around any mixture of values tells the kind fully apart."""
        upwards = (self.weights[kind] > 0) is positive
        if self.apart:
            return self.total({kind: len(self.kinds[kind])} if upwards else {})
        same = (k for k, weight in enumerate(self.weights) if (weight > 0) is upwards)
        return self.total({k: len(self.kinds[k]) for k in same})


@dataclass(frozen=True)
class CountColumns:
    """The likelihoods of what shows a count, only those above 0: by output, then by count.

    Attributes:
        counts, outputs: the count and the output of each entry.
        logs: the logarithm of each entry.
    """

    space: Subsets
    counts: Array
    outputs: Array
    logs: Array

    @cached_property
    def starts(self) -> Array:
        """Where the entries of each output begin; one number more, for the end of the last."""
        return np.searchsorted(self.outputs, np.arange(int(self.outputs[-1]) + 2))

    @cached_property
    def before(self) -> Array:
        """For each entry the largest smaller count with the same output; −1 where there is none."""
        before = np.concatenate([[-1], self.counts[:-1]])
        before[self.starts[:-1]] = -1
        return before

    def log_at(self, counts: Array, outputs: Array) -> Array:
        """The logarithms of other entries, −∞ where the likelihood is 0."""
        width = self.space.size + 1
        keys, wanted = self.outputs * width + self.counts, outputs * width + counts
        places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[places] == wanted, self.logs[places], -np.inf)

    def column(self, output: int) -> slice:
        return slice(int(self.starts[output]), int(self.starts[output + 1]))

    @cached_property
    def table(self) -> Array:
        """All likelihoods, counts × outputs, each output's largest being 1."""
        most = np.maximum.reduceat(self.logs, self.starts[:-1])
        shape = self.space.size + 1, len(most)
        require_table("the table of counts by outputs", *shape)
        table = np.zeros(shape)
        table[self.counts, self.outputs] = np.exp(self.logs - most[self.outputs])
        return table

    def mirrored(self) -> CountColumns:
        """The same for those who are absent, whose number is the rest."""
        order = np.lexsort((-self.counts, self.outputs))
        counts = self.space.size - self.counts[order]
        return replace(self, counts=counts, outputs=self.outputs[order], logs=self.logs[order])


class Statistic(ABC):
    """A function of the world, known up to the classes of a lattice."""

    @abstractmethod
    def lattice(self, space: Subsets) -> Lattice:
        """The classes of worlds on which the statistic is constant."""

    @abstractmethod
    def centres(self, space: Subsets) -> list[Centre]:
        """Its value, a vector, on each class of that lattice in order."""

    def contributions(self, space: Subsets) -> Contributions | None:
        """What entities add to it, where it is a sum of such numbers or vectors."""
        return None

    def weights(self, space: Records) -> list[Centre]:
        """On records: the vector that a row adds to the statistic, for each value of the row."""
        raise Unsupported(
            f"{type(self).__name__} is a statistic of sets of entities, not of records",
            field="statistic",
            hint="use Count, Sum or Histogram",
        )

    def row_weights(self, space: Records) -> list[list[Centre]]:
        """On records: for each row the vectors that its values add."""
        return [self.weights(space)] * space.rows

    def record_centres(self, space: Records) -> list[Centre]:
        """Its value on each table of records, in world order."""
        rows = self.row_weights(space)
        totals: list[Centre] = [tuple(Fraction(0) for _ in rows[0][0])]
        for weights in rows:
            require_table("a table over all records", len(totals) * space.values, 1, space.values)
            totals = [
                tuple(a + b for a, b in zip(total, weight, strict=True))
                for total in totals
                for weight in weights
            ]
        return totals


@dataclass(frozen=True)
class Count(Statistic):
    """How many entities are present: all, or those in `of` only. On records: how many rows have a
    value in `of`, by default any but 0."""

    of: Collection[Hashable] | None = None

    def weights(self, space: Records) -> list[Centre]:
        counted = set(range(1, space.values)) if self.of is None else set(self.of)
        return [(Fraction(value in counted),) for value in range(space.values)]

    def lattice(self, space: Subsets) -> CountLattice:
        if self.of is None:
            return CountLattice(space, (tuple(range(space.size)),))
        place = {entity: position for position, entity in enumerate(space.entities)}
        counted = {place[e] if e in place else space.position(e) for e in self.of}
        return _lattice_by_key(
            space, [entity in counted for entity in range(space.size)], first=True
        )

    def contributions(self, space: Subsets) -> Contributions:
        kinds = self.lattice(space).kinds
        ones = self.of is None or len(self.of) > 0
        return Contributions(space, kinds, (Fraction(ones), Fraction(0))[: len(kinds)])

    def centres(self, space: Subsets) -> list[Centre]:
        grid = self.lattice(space)
        if self.of is not None and not self.of:
            return [(Fraction(0),)] * grid.worlds
        return [(Fraction(grid.counts(world)[0]),) for world in range(grid.worlds)]


@dataclass(frozen=True)
class Sum(Statistic):
    """The sum of a number each entity brings; `values` in the entities' order, or by name. On
    records: the sum over rows of the number of the row's value, by default the value itself."""

    values: Sequence[object] | Mapping[Hashable, object] | None = None

    def weights(self, space: Records) -> list[Centre]:
        given = range(space.values) if self.values is None else self.values
        numbers = read_list(given, "values", "a number for each value of a row")
        check_count(len(numbers), space.values, "values", "numbers", "values of a row")
        return [(rational(number, "values"),) for number in numbers]

    def lattice(self, space: Subsets) -> CountLattice:
        return _lattice_by_key(space, _entity_numbers(self.values, space))

    def contributions(self, space: Subsets) -> Contributions:
        numbers = _entity_numbers(self.values, space)
        kinds = _lattice_by_key(space, numbers).kinds
        return Contributions(space, kinds, tuple(numbers[kind[0]] for kind in kinds))

    def centres(self, space: Subsets) -> list[Centre]:
        numbers, grid = _entity_numbers(self.values, space), self.lattice(space)
        weights = [numbers[kind[0]] for kind in grid.kinds]
        totals = [Fraction(0)]
        for weight, length in zip(weights, grid.lengths, strict=True):
            totals = [total + weight * count for count in range(length) for total in totals]
        return [(total,) for total in totals]


@dataclass(frozen=True)
class Histogram(Statistic):
    """How many entities are present in each cell; `cells` names the cell of each entity. On
    records: how many rows there are in the cell of each value, by default a cell a value."""

    cells: Sequence[Hashable] | Mapping[Hashable, Hashable] | None = None

    def weights(self, space: Records) -> list[Centre]:
        cells = list(range(space.values)) if self.cells is None else list(self.cells)
        check_count(len(cells), space.values, "cells", "names", "values of a row")
        names = list(dict.fromkeys(cells))
        return [tuple(Fraction(cell == name) for name in names) for cell in cells]

    def lattice(self, space: Subsets) -> CountLattice:
        return _lattice_by_key(space, _per_entity(self.cells, space, "cells"))

    def contributions(self, space: Subsets) -> Contributions:
        kinds = self.lattice(space).kinds
        return Contributions(space, kinds, (Fraction(1),) * len(kinds), apart=True)

    def centres(self, space: Subsets) -> list[Centre]:
        grid = self.lattice(space)
        return [tuple(map(Fraction, grid.counts(world))) for world in range(grid.worlds)]


@dataclass(frozen=True)
class Among(Statistic):
    """A statistic of some rows of a table of records: a window of a series, or a group."""

    statistic: object
    rows: Collection[int]

    def __post_init__(self) -> None:
        read_statistic(self.statistic)
        for row in read_list(self.rows, "rows", "a list of rows"):
            read_whole(row, "rows", 0)

    def row_weights(self, space: Records) -> list[list[Centre]]:
        for row in self.rows:
            read_whole(row, "rows", 0, space.rows - 1)
        weights, inside = read_statistic(self.statistic).weights(space), set(self.rows)
        nothing: list[Centre] = [tuple(Fraction(0) for _ in weights[0])] * space.values
        return [weights if row in inside else nothing for row in range(space.rows)]

    def lattice(self, space: Subsets) -> Lattice:
        message = "Among is a statistic of records, not of sets of entities"
        hint = "use Count(of=…) for some of the entities"
        raise Unsupported(message, field="statistic", hint=hint)

    def centres(self, space: Subsets) -> list[Centre]:
        raise AssertionError(self.lattice(space))


@dataclass(frozen=True)
class Max(Statistic):
    """The largest value among those present (`empty` when nobody is); by default the rank 1 … n."""

    values: Sequence[object] | Mapping[Hashable, object] | None = None
    empty: object = 0

    def _numbers(self, space: Subsets) -> list[Fraction]:
        ranks = range(1, space.size + 1)
        return _entity_numbers(ranks if self.values is None else self.values, space)

    def lattice(self, space: Subsets) -> MaximumLattice:
        order = sorted(range(space.size), key=self._numbers(space).__getitem__)
        return MaximumLattice(space, tuple(order))

    def centres(self, space: Subsets) -> list[Centre]:
        ranked = sorted(self._numbers(space))
        return [(value,) for value in (rational(self.empty, "empty"), *ranked)]


@dataclass(frozen=True)
class WorldFunction(Statistic):
    """Any function of the set of present entities, tabulated over all worlds."""

    function: Callable[[frozenset[Hashable]], Any]

    def lattice(self, space: Subsets) -> CountLattice:
        return CountLattice.single(space)

    def centres(self, space: Subsets) -> list[Centre]:
        require_table("a table over all subsets", space.worlds, 1)
        centres = []
        for world in space:
            value = self.function(world)
            entries = value if isinstance(value, Iterable) else (value,)
            centres.append(tuple(rational(entry, "statistic") for entry in entries))
        if len(lengths := {len(centre) for centre in centres}) > 1:
            message = "statistic returns vectors of different lengths for different worlds"
            raise InvalidInput(message, field="statistic", value=sorted(lengths))
        return centres


def read_statistic(value: object) -> Statistic:
    """Read what users write for a statistic: an object, "count", "max", or a function of a set."""
    if isinstance(value, Statistic):
        return value
    named: dict[str, Callable[[], Statistic]] = {"count": Count, "max": Max}
    named |= {"sum": Sum, "histogram": Histogram}
    if isinstance(value, str) and value in named:
        return named[value]()
    if callable(value):
        return Count() if value is len else WorldFunction(value)
    raise invalid_value(
        "statistic", "Count(), Sum(…), Histogram(…), Max(…) or a function of the set", repr(value)
    )


def centre_grid(centres: Sequence[Centre]) -> list[Centre]:
    """The product grid of the centres' coordinates, where a sup of ratios is attained (F10)."""
    axes = [sorted(set(column)) for column in zip(*centres, strict=True)]
    points: list[Centre] = [()]
    for axis in axes:
        cells = len(points) * len(axis) * len(centres)
        require_memory(
            "the table of outcomes by outputs",
            8 * cells,
            lambda limit: f"about {math.isqrt(limit // 8)} different answers fit",
        )
        points = [(*point, value) for point in points for value in axis]
    return points


def centre_distances(centres: Sequence[Centre], points: Sequence[Centre]) -> Any:
    """‖centre − point‖₁ in floating point: centres × points."""
    total = np.zeros((len(centres), len(points)))
    for left, right in zip(zip(*centres, strict=True), zip(*points, strict=True), strict=True):
        column = np.array([float(value) for value in left])
        row = np.array([float(value) for value in right])
        total += np.abs(np.subtract.outer(column, row))
    return total


def _entity_numbers(values: Any, space: Subsets) -> list[Fraction]:
    return [rational(value, "values") for value in _per_entity(values, space, "values")]


def _per_entity(values: Any, space: Subsets, field: str) -> list[Any]:
    if values is None:
        hint = "give one entry for each entity"
        raise InvalidInput(f"{field} is missing", field=field, hint=hint)
    if isinstance(values, Mapping):
        for entity in space.entities:
            if entity not in values:
                message = f"{field} has no entry for {entity!r}"
                raise InvalidInput(message, field=field, value=entity)
        return [values[entity] for entity in space.entities]
    listed = list(values)
    check_count(len(listed), space.size, field, "entries", "entities")
    return listed


def _lattice_by_key(
    space: Subsets, keys: Sequence[Hashable], first: Hashable = None
) -> CountLattice:
    """Entities of equal key are a kind; kinds in the order of appearance, `first` leading."""
    kinds: dict[Hashable, list[int]] = {first: []} if first in keys else {}
    for entity, key in enumerate(keys):
        kinds.setdefault(key, []).append(entity)
    return CountLattice(space, tuple(tuple(kind) for kind in kinds.values()))
