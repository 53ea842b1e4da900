"""What a mechanism can tell apart: worlds up to a statistic (F11).

A `Lattice` numbers the classes of worlds that a mechanism treats alike and knows how entities move
between them. A family of priors searches an array of likelihoods, one row a class, through these
four views and never sees which mechanism the array came from:

- `additions`: likelihoods with an entity beside those without it, all else equal (D_I, D_B's kin);
- `extremes`: over all ways to add one entity to a base, the largest and the smallest likelihood;
- `separations`: the largest likelihood with an entity and the smallest without it, whatever else;
- `independent`: the distribution over classes under an independent prior.

What a lattice cannot do in its own terms is done on the grid of single entities (`as_grid`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from whosin.exact import Array
from whosin.spaces.subsets import Subsets


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
