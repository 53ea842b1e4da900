"""What every family of priors can do, and the shape of what it finds.

Contract: a family never sees a mechanism. It gets an array of likelihoods, with one row per class
of worlds, and answers with its worst priors on that array; `notions` turns them into levels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from whosin.beliefs import chosen_percent
from whosin.errors import InvalidInput, Unsupported
from whosin.exact import Array, number_range, probability, rational
from whosin.families.crowd import OtherPeople
from whosin.priors import Prior, Table
from whosin.spaces.lattice import Lattice
from whosin.spaces.subsets import Subsets

Weighted = tuple[tuple[int, Fraction], ...]
Range = tuple[Fraction, Fraction]
WHOLE: Range = (Fraction(0), Fraction(1))
HALF = Fraction(1, 2)
LETTERS = {"m": "m", "k": "k", "β": "beta"}
"""The parameters in symbols, and the fields that hold them."""


@dataclass(frozen=True)
class Adversary:
    """What a family means for ε between neighbouring worlds.

    Attributes:
        low, high: the beliefs that uncertain entities may have.
        relation: "add-remove" or "replace".
        group: how many entities may move together, so that r ≤ e^(group · ε).
        tight: whether no larger ε would do for every mechanism; otherwise a plan is sufficient.
        equivalent: whether a level under the family gives the ε of the same mechanism back.
        theorems: why.
    """

    low: Fraction
    high: Fraction
    relation: str
    group: int = 1
    tight: bool = True
    equivalent: bool = False
    theorems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Worst:
    """The worst case that a family found for one choice of entity.

    Attributes:
        ratio: Pr[o|t]/Pr[o|¬t], or its inverse for negative membership, as the search found it.
        entity, output: where, by position.
        low, high: the beliefs Pr[t] at which the family has a prior with these conditionals.
        prior: the family's prior at a belief between them.
        present, absent: (class, weight) given t and given ¬t, if they are few; else ask the prior.
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

    name: ClassVar[str]
    """How it is called on the command line and in files."""
    form: ClassVar[str] = ""
    """How its parameters follow the name: "=m" must be given, "[=0.05..0.5]" may be."""
    example: ClassVar[str]
    """How one of them is spelled; empty where no text can say which."""
    key: ClassVar[str] = ""
    """The word of `vocabulary` that chooses it, if it has one."""
    relation: ClassVar[str] = "add-remove"
    """The neighbours that its adversaries compare: "add-remove", or "replace" for a known size."""
    symbol: ClassVar[str]
    definition: ClassVar[str]
    source: ClassVar[str]
    downward: ClassVar[bool] = False
    """For each of its priors it has t-scaled ones with Pr[t] as close to 0 as one likes."""
    upward: ClassVar[bool] = False
    """The same towards 1."""
    theorems: ClassVar[tuple[str, ...]] = ()
    tight: bool = True
    """Whether `worst` finds the sup; otherwise the level from `upper` is a bound."""
    composes: ClassVar[bool] = True
    """Whether several releases may share one plan against it; otherwise a plan is for one count."""
    hides_others: ClassVar[bool] = False
    """Whether what its adversaries do not know of others serves as noise, under a δ (F19)."""

    @property
    def parameters(self) -> tuple[object, ...]:
        """The numbers it was built from, to tell exact families from floating-point ones."""
        return tuple(getattr(self, each.name) for each in fields(self))  # type: ignore[arg-type]

    @abstractmethod
    def contains(self, prior: Prior, space: Subsets) -> bool:
        """Whether a prior belongs to the family on this space."""

    @abstractmethod
    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        """The worst prior for each entity that has to be tried; the level is the worst of them."""

    def upper(
        self, likelihoods: Array, lattice: Lattice, positive: bool
    ) -> tuple[Any, Fraction, Fraction] | None:
        """For families that are not tight: a ratio and beliefs that bound every prior's."""
        return None

    complete: ClassVar[bool] = False
    """Whether `crowds` and `extreme_priors` are all its priors, and not only those at which
    profiles are largest."""

    def crowds(self, people: int) -> Iterator[OtherPeople]:
        """The priors at which the profile of a count is largest, whatever the mechanism (F21).

        Raises:
            Unsupported: it is not known which these are.
        """
        raise self._unfailing()

    def extreme_priors(self, lattice: Lattice) -> Iterator[tuple[int, Callable[[Fraction], Prior]]]:
        """(entity, its prior at a belief) for the priors at which the profile of any mechanism on
        the lattice is largest.

        Raises:
            Unsupported: it is not known which these are.
        """
        raise self._unfailing()

    def _unfailing(self) -> Unsupported:
        return Unsupported(
            f"a failure probability is not known for {self.symbol}; it is for at-most-known, "
            "fixed-probability, uninformed, independent and listed priors"
        )

    def check(self, space: Subsets) -> None:  # noqa: B027
        """Raise `InvalidInput` where the family makes no sense on this space."""

    @property
    def beliefs(self) -> Range:
        """The least and the largest belief that an uncertain entity may have."""
        return WHOLE

    @property
    def independent_beliefs(self) -> Range | None:
        """The same where all its priors are known to be independent; otherwise None."""
        return None

    def adversary(self) -> Adversary:
        """What ε between neighbouring worlds does against the family.

        Raises:
            Unsupported: no finite ε protects against it, or it is not known which does.
        """
        return Adversary(*self.beliefs, self.relation, tight=False, theorems=("T4", "T11"))

    def includes(self, other: Family) -> bool:
        """Whether it is known to contain another on every space on which both make sense; both in
        canonical spelling."""
        return self == other

    def canonical(self) -> Family:
        """The same family in one spelling, with exact numbers."""
        return self

    def relatives(self) -> Iterator[Family]:
        """Other families that include it, or that it includes, at the same level: chains of
        theorems may pass through them."""
        return iter(())

    @abstractmethod
    def words(self) -> str:
        """Who it is, for people: "someone who …"."""

    @property
    def summary(self) -> str:
        """Its symbol with its parameters, and its definition."""
        symbol = self.symbol
        for letter, name in LETTERS.items():
            if hasattr(self, name):
                symbol = symbol.replace(f"^{letter}", f"^{getattr(self, name)}")
        return f"{symbol} ({self.definition}{self.limits})"

    @property
    def limits(self) -> str:
        """The end of its definition: which beliefs it leaves out."""
        return ""

    @property
    def argument(self) -> str:
        """Its parameters as `parse` reads them."""
        return ""

    @property
    def spelled(self) -> str:
        """The family as `read_family` reads it: independent=0.05..0.5."""
        argument = self.argument
        return f"{self.name}={argument}" if argument else self.name

    @classmethod
    def parse(cls, argument: str) -> Self:
        """The family from its parameters as they are spelled on the command line and in files."""
        return cls()

    @classmethod
    def chosen(cls, value: int, prior: Range | None) -> Self:
        """The family from its plain word, and the range of beliefs where one was given."""
        if prior is not None:
            raise InvalidInput(cls.key, "given without prior", spelled_range(prior))
        return cls() if value is True else cls(value)  # type: ignore[call-arg]


class Bounded(Family):
    """A family whose uncertain entities have beliefs in [low, high] only."""

    low: object
    high: object

    def __post_init__(self) -> None:
        _ = self.bounds

    form: ClassVar[str] = "[=0.05..0.5]"

    @cached_property
    def bounds(self) -> Range:
        """low and high, exactly."""
        return interval(self.low, self.high)

    @property
    def beliefs(self) -> Range:
        return self.bounds

    def adversary(self) -> Adversary:
        reason = "T4" if self.relation == "add-remove" else "T5"
        theorems = (reason,) if self.beliefs == WHOLE else (reason, "T11")
        return Adversary(*self.beliefs, self.relation, 1, self.tight, self.tight, theorems)

    def canonical(self) -> Family:
        low, high = self.beliefs
        return replace(self, low=low, high=high)  # type: ignore[type-var]

    @property
    def band(self) -> str:
        """Its beliefs, as the end of a sentence about someone."""
        low, high = self.bounds
        if (low, high) == WHOLE:
            return "and believes anything at all about that person"
        if low == high:
            return f"and is {chosen_percent(low, 'nearest')} sure of that person"
        ends = " and ".join(chosen_percent(end, "nearest") for end in (low, high))
        return f"and is between {ends} sure of that person"

    @property
    def limits(self) -> str:
        low, high = map(float, self.bounds)
        return "" if self.bounds == WHOLE else f", beliefs {low:g} to {high:g}"

    @property
    def argument(self) -> str:
        return "" if self.bounds == WHOLE else spelled_range(self.bounds)

    @classmethod
    def parse(cls, argument: str) -> Self:
        return cls.within(number_range(argument, "prior range") if argument else WHOLE)

    @classmethod
    def within(cls, beliefs: Range) -> Self:
        """The family with these beliefs."""
        return cls(*beliefs)  # type: ignore[call-arg]

    @classmethod
    def chosen(cls, value: int, prior: Range | None) -> Self:
        return cls.within(prior or WHOLE)


def nested(larger: Range, smaller: Range) -> bool:
    """Whether one range lies in another."""
    return larger[0] <= smaller[0] and smaller[1] <= larger[1]


def spelled_number(value: object) -> str:
    """A number as `rational` reads it: a decimal where that is exact, or a ratio."""
    number = rational(value)
    decimal = f"{float(number):.12g}"
    return decimal if Fraction(decimal) == number else str(number)


def spelled_range(beliefs: Range) -> str:
    """A range of beliefs as `number_range` reads it."""
    low, high = map(spelled_number, beliefs)
    return low if low == high else f"{low}..{high}"


def interval(low: object, high: object) -> Range:
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
