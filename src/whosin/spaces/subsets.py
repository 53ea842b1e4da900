"""The subset model of Li et al. 2013, section 3.1: a world is a set T of entities.

Contract, which never changes: world number T has bit i set exactly when entity i is present.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from whosin.errors import InvalidInput
from whosin.validation import listed, whole

MOST = 10_000_000


@dataclass(frozen=True, init=False)
class Subsets:
    """All subsets of a universe U of n entities.

    Args:
        entities: how many there are (they are then called 0, 1, …), or their names.
    """

    entities: tuple[Hashable, ...]

    def __init__(self, entities: int | Iterable[Hashable]) -> None:
        if isinstance(entities, bool) or not isinstance(entities, int | Iterable):
            raise InvalidInput("entities", "a count or a list of names", repr(entities))
        if isinstance(entities, int):
            if not 1 <= entities <= MOST:
                raise InvalidInput("entities", f"at least 1 and at most {MOST:,}", entities)
            names: tuple[Hashable, ...] = tuple(range(entities))
        else:
            names = tuple(entities)
            if not all(isinstance(name, Hashable) for name in names):
                raise InvalidInput("entities", "names or numbers", "something else")
            if not names:
                raise InvalidInput("entities", "a list of at least one name", "an empty one")
            if len(set(names)) != len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise InvalidInput("entities", "distinct names", f"{twice!r} more than once")
        object.__setattr__(self, "entities", names)

    @property
    def size(self) -> int:
        """n, the number of entities."""
        return len(self.entities)

    @property
    def worlds(self) -> int:
        """2^n."""
        return 1 << self.size

    def position(self, entity: Hashable) -> int:
        """The bit of an entity given by its name."""
        try:
            return self.entities.index(entity)
        except ValueError:
            raise InvalidInput("entity", "one of the space's entities", repr(entity)) from None

    def index(self, present: Iterable[Hashable]) -> int:
        """The number of the world in which exactly these entities are present."""
        result = listed(present, "present", "a set of entities")
        return sum(1 << bit for bit in {self.position(entity) for entity in result})

    def world(self, index: int) -> frozenset[Hashable]:
        """The set of entities present in a world given by its number."""
        whole(index, "index", 0)
        return frozenset(name for bit, name in enumerate(self.entities) if index >> bit & 1)

    def __iter__(self) -> Iterator[frozenset[Hashable]]:
        return (self.world(index) for index in range(self.worlds))

    def __repr__(self) -> str:
        if self.entities == tuple(range(self.size)):
            return f"Subsets({self.size})"
        return f"Subsets({list(self.entities)!r})"
