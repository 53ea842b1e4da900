"""Spaces of worlds: `Subsets` (Li13) and `Records` (Zhao17, Wang14)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from whosin.errors import (
    InvalidInput,
    Unsupported,
    invalid_value,
    read_list,
    read_whole,
    shorten_value,
)
from whosin.exact import Array

# The subset model of Li et al. 2013, section 3.1: a world is a set T of entities.
#
# World number T has bit i set exactly when entity i is present; outside scripts rely on it.

MAX_ENTITIES = 10_000_000


@dataclass(frozen=True, init=False)
class Subsets:
    """All subsets of a universe U of n entities.

    Args:
        entities: how many there are (they are then called 0, 1, …), or their names.
    """

    entities: tuple[Hashable, ...]

    def __init__(self, entities: int | Iterable[Hashable]) -> None:
        if isinstance(entities, bool) or not isinstance(entities, int | Iterable):
            raise invalid_value("entities", "a count or a list of names", repr(entities))
        if isinstance(entities, int):
            entities = range(read_whole(entities, "entities", 1, MAX_ENTITIES))
        names = tuple(entities)
        if not names or not all(isinstance(name, Hashable) for name in names):
            hint = "name at least one entity, by text, numbers or tuples"
            raise invalid_value("entities", "names that can be hashed", repr(names), hint)
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            message = f"entities has {twice!r} more than once"
            raise InvalidInput(message, field="entities", value=twice)
        object.__setattr__(self, "entities", names)

    @property
    def size(self) -> int:
        """n, the number of entities."""
        return len(self.entities)

    @property
    def worlds(self) -> int:
        """The number of worlds, 2^n."""
        return 1 << self.size

    def position(self, entity: Hashable) -> int:
        """The bit of an entity given by its name."""
        try:
            return self.entities.index(entity)
        except ValueError:
            message = f"{shorten_value(entity)} is not an entity of this space"
            raise InvalidInput(message, field="entity", value=entity) from None

    def index(self, present: Iterable[Hashable]) -> int:
        """The number of the world in which exactly these entities are present."""
        result = read_list(present, "present", "a set of entities")
        return sum(1 << bit for bit in {self.position(entity) for entity in result})

    def world(self, index: int) -> frozenset[Hashable]:
        """The set of entities present in a world given by its number."""
        read_whole(index, "index", 0)
        return frozenset(name for bit, name in enumerate(self.entities) if index >> bit & 1)

    def __iter__(self) -> Iterator[frozenset[Hashable]]:
        return (self.world(index) for index in range(self.worlds))

    def __repr__(self) -> str:
        if self.entities == tuple(range(self.size)):
            return f"Subsets({self.size})"
        return f"Subsets({list(self.entities)!r})"


# The record model of Zhao 2017 and Wang et al. 2014: n rows, each with one of m values.
#
# Row 0 is the most significant digit of a world's number, the order of
# `itertools.product(range(m), repeat=n)`; outside scripts rely on it.

MAX_RECORD_ROWS = 1_000_000
"""Rows, and values of a row: beyond it not even the number of worlds can be written."""


@dataclass(frozen=True)
class Records:
    """All tables of `rows` rows whose entries are 0 … `values` − 1."""

    rows: int
    values: int

    def __post_init__(self) -> None:
        for field, least in (("rows", 1), ("values", 2)):
            object.__setattr__(
                self, field, read_whole(getattr(self, field), field, least, MAX_RECORD_ROWS)
            )

    @property
    def worlds(self) -> int:
        """The number of worlds, m^n."""
        return int(self.values**self.rows)

    def index(self, world: Sequence[int]) -> int:
        """The number of a world given by its rows."""
        accepted = f"{self.rows} values from 0 to {self.values - 1}"
        result = read_list(world, "world", accepted)
        if len(result) != self.rows or any(value not in range(self.values) for value in result):
            raise invalid_value("world", accepted, repr(result))
        number = 0
        for value in world:
            number = number * self.values + value
        return number

    def world(self, index: int) -> tuple[int, ...]:
        """The rows of a world given by its number."""
        digits = []
        read_whole(index, "index", 0)
        for _ in range(self.rows):
            index, digit = divmod(index, self.values)
            digits.append(digit)
        return tuple(reversed(digits))

    def stride(self, row: int) -> int:
        """How far apart two worlds are that differ by one in this row."""
        return int(self.values ** (self.rows - 1 - row))

    def axis(self, array: Array, row: int) -> Array:
        """View (worlds × outputs) as (before, values of the row, after · outputs)."""
        return array.reshape(-1, self.values, self.stride(row) * array.shape[1])

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return product(range(self.values), repeat=self.rows)


def need_subsets(space: object, what: str) -> Subsets:
    """The space, if it is about who is in the data, as `what` is."""
    if isinstance(space, Subsets):
        return space
    message = f"{what} is about who is in the data, not about the values of rows"
    raise Unsupported(message, field="space", value=space, hint="use Subsets(…)")


def need_records(space: object, what: str) -> Records:
    """The space, if it is about the values of rows, as `what` is."""
    if isinstance(space, Records):
        return space
    message = f"{what} is about the values of rows, not about who is in the data"
    raise Unsupported(message, field="space", value=space, hint="use Records(…)")
