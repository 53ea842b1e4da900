"""What every family of priors can do, and the shape of what it finds.

Contract: a family never sees a mechanism. It gets an array of likelihoods, one row a class of
worlds, and answers with its worst priors on that array; `notions` turns them into levels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, probability
from whosin.priors import Prior, Table
from whosin.spaces.lattice import Lattice
from whosin.spaces.subsets import Subsets

Weighted = tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True)
class Worst:
    """The worst case that a family found for one choice of entity.

    Attributes:
        ratio: Pr[o|t]/Pr[o|¬t], or its inverse when searching for negative membership, as found.
        entity, output: where, by position.
        low, high: the beliefs Pr[t] at which the family has a prior with these conditionals.
        prior: the family's prior at such a belief.
        present, absent: (class, weight) given t and given ¬t, where few; otherwise ask the prior.
    """

    ratio: Any
    entity: int
    output: int
    low: Fraction
    high: Fraction
    prior: Callable[[Fraction], Prior]
    present: Weighted | None = None
    absent: Weighted | None = None


class Family(ABC):
    """A set of priors: all the adversaries that one defends against."""

    symbol: ClassVar[str]
    definition: ClassVar[str]
    source: ClassVar[str]
    downward: ClassVar[bool]
    """For each of its priors it has t-scaled ones with Pr[t] as close to 0 as one likes."""
    upward: ClassVar[bool]
    """The same towards 1."""
    theorems: ClassVar[tuple[str, ...]] = ()
    tight: bool = True
    """Whether `worst` finds the sup; otherwise the level from `upper` is a bound."""

    @property
    def parameters(self) -> tuple[object, ...]:
        """The numbers it was built from, to tell exact families from floating-point ones."""
        return tuple(getattr(self, each.name) for each in fields(self))  # type: ignore[arg-type]

    @abstractmethod
    def contains(self, prior: Prior, space: Subsets) -> bool:
        """Whether a prior belongs to the family on this space."""

    @abstractmethod
    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        """The worst prior for each entity that needs a look; the level is the worst of these."""

    def upper(
        self, likelihoods: Array, lattice: Lattice, positive: bool
    ) -> tuple[Any, Fraction, Fraction] | None:
        """For families that are not tight: a ratio and beliefs that bound every prior's."""
        return None

    def check(self, space: Subsets) -> None:  # noqa: B027
        """Raise `InvalidInput` where the family makes no sense on this space."""


class Bounded(Family):
    """A family whose uncertain entities have beliefs in [low, high] only."""

    low: object
    high: object

    def __post_init__(self) -> None:
        _ = self.bounds

    @cached_property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """low and high, exactly."""
        return interval(self.low, self.high)


def interval(low: object, high: object) -> tuple[Fraction, Fraction]:
    """Read a range of prior beliefs."""
    ends = probability(low, "low"), probability(high, "high")
    if ends[0] > ends[1]:
        raise InvalidInput("low", f"at most high ({high})", low)
    if ends[0] == ends[1] and ends[0] in (0, 1):
        raise InvalidInput("low and high", "a range with some belief strictly inside 0..1", low)
    return ends


def two_worlds(
    space: Subsets, present: tuple[int, ...], absent: tuple[int, ...]
) -> Callable[[Fraction], Prior]:
    """The prior that puts p on one set of entities and 1 − p on another."""
    inside, outside = (sum(1 << entity for entity in worlds) for worlds in (present, absent))
    return lambda belief: Table({inside: belief, outside: 1 - belief})


def columns(array: Array, limit: int = 1 << 25) -> Iterator[tuple[int, Array]]:
    """The outputs in groups small enough to copy, each with the number of its first output."""
    step = max(1, limit // len(array))
    for start in range(0, array.shape[1], step):
        piece = array[:, start : start + step]
        yield start, piece if step >= array.shape[1] else np.ascontiguousarray(piece)
