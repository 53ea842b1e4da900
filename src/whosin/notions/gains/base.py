"""What every gain function can do.

Contract: gains are rationals of at least 0. A search in floats hands over every guess within the
rounding of the best, and the best of them is found again in rationals: values are exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

from whosin.exact import Array
from whosin.spaces import Space

Guess = tuple[Any, Hashable]
"""The exact value of a guess, and its name."""


class GainFunction(ABC):
    """What each guess gains in each world."""

    example: ClassVar[str] = ""
    """How one is spelled on the command line; empty where it needs a file."""

    @property
    @abstractmethod
    def spelled(self) -> str:
        """As options and JSON have it."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What is gained, for people: a clause after "the best guess is worth"."""

    @property
    def exact(self) -> bool:
        """Whether none of its numbers was a float."""
        return True

    @abstractmethod
    def check(self, space: Space) -> None:
        """Raise `InvalidInput` unless it makes sense on this space."""

    @abstractmethod
    def best(self, near: Array, weight: Callable[[int], Any], space: Space) -> Guess:
        """The guess that gains most when worlds have these weights.

        Args:
            near: the weights in floats, up to a factor and to rounding.
            weight: the weight of a world, a FLINT rational.
        """


def slack(worlds: int) -> float:
    """More than the relative error of a sum of this many products of floats of at least 0."""
    return (worlds + 16) * 2.0**-50


def world_name(space: Space, world: int) -> Hashable:
    """A world as people write it: the rows' values, or who is in."""
    result: Any = space.world(world)
    return result if isinstance(result, tuple) else tuple(sorted(result, key=str))


def first_best(values: Sequence[Any]) -> int:
    """The first of the largest."""
    return max(range(len(values)), key=lambda index: (values[index], -index))
