"""Gain functions for g-leakage: identity, several tries, singling out, matrices."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from whosin.documents import check_keys, read_object
from whosin.errors import (
    InvalidInput,
    UnknownName,
    Unsupported,
    check_count,
    invalid_value,
    read_list,
    read_whole,
    spell,
    spelled_whole,
)
from whosin.exact import Array, flint_rational, is_exact, rational, read_ranged
from whosin.priors.base import read_distribution
from whosin.spaces import Records, Space
from whosin.spaces.worlds import need_records

# What every gain function can do.
#
# Gains are rationals of at least 0. A search in floats hands over every guess within the rounding
# of the best, and the best of them is found again in rationals: values are exact.

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

    exact: bool = True
    """Whether none of its numbers was a float."""

    @abstractmethod
    def check(self, space: Space) -> None:
        """Raise `InvalidInput` unless it makes sense on this space."""

    @abstractmethod
    def rows(self, space: Space) -> list[list[Fraction]]:
        """Its guesses, each with the gain in every world, in world order."""

    @abstractmethod
    def best(self, near: Array, weight: Callable[[int], Any], space: Space) -> Guess:
        """The guess that gains most when worlds have these weights.

        Args:
            near: the weights in floats, up to a factor and to rounding.
            weight: the weight of a world, a FLINT rational.
        """


def rounding_slack(worlds: int) -> float:
    """More than the relative error of a sum of this many products of floats of at least 0."""
    return (worlds + 16) * 2.0**-50


def near_largest(values: Array, worlds: int) -> list[int]:
    """Which sums over this many worlds may be the largest, up to the rounding of floats."""
    return list(np.flatnonzero(values >= values.max() * (1 - rounding_slack(worlds))))


def world_name(space: Space, world: int) -> Hashable:
    """A world as people write it: the rows' values, or who is in."""
    result: Any = space.world(world)
    return result if isinstance(result, tuple) else tuple(sorted(result, key=str))


def first_best(values: Sequence[Any]) -> int:
    return max(range(len(values)), key=lambda index: (values[index], -index))


MIN_PRODUCT = 2.0**-450
"""Gains further apart than this are compared in rationals alone: products could underflow."""


@dataclass(frozen=True, init=False)
class GainMatrix(GainFunction):
    """The gain of each guess (a row) in each world (a column).

    Args:
        matrix: rows of numbers of at least 0, each with one number a world, in world order.
        guesses: names of the guesses; 0, 1, … by default.
    """

    matrix: tuple[tuple[Fraction, ...], ...]
    guesses: tuple[Hashable, ...]
    exact: bool = field(repr=False)

    def __init__(self, matrix: object, guesses: Sequence[Hashable] | None = None) -> None:
        accepted = "a list of rows, one for each guess, with a number for each world"
        rows = [read_list(row, "gain", accepted) for row in read_list(matrix, "gain", accepted)]
        if not rows or any(len(row) != len(rows[0]) or not row for row in rows):
            lengths = sorted({len(row) for row in rows})
            raise invalid_value("gain", accepted, f"{len(rows)} rows of lengths {lengths}")
        numbers = tuple(
            tuple(read_ranged(each, "gain", "at least 0") for each in row) for row in rows
        )
        given = range(len(rows)) if guesses is None else guesses
        names = read_list(given, "guesses", "names")
        check_count(len(names), len(rows), "guesses", "names", "rows of the gain")
        object.__setattr__(self, "matrix", numbers)
        object.__setattr__(self, "guesses", names)
        object.__setattr__(self, "exact", all(is_exact(*row) for row in rows))

    @property
    def spelled(self) -> str:
        return f"a matrix of {len(self.matrix)} guesses × {len(self.matrix[0])} worlds"

    @property
    def words(self) -> str:
        return f"what the better of {len(self.matrix)} guesses gains"

    def check(self, space: Space) -> None:
        hint = "give a number for each world, in world order"
        check_count(len(self.matrix[0]), space.worlds, "gain", "columns", "worlds", hint)

    def rows(self, space: Space) -> list[list[Fraction]]:
        return [list(row) for row in self.matrix]

    def best(self, near: Array, weight: Callable[[int], Any], space: Space) -> Guess:
        floats = np.array([[float(each) for each in row] for row in self.matrix])
        used, indices = floats[floats > 0], list(range(len(floats)))
        if used.size and used.max() * MIN_PRODUCT <= used.min() and used.max() < 1 / MIN_PRODUCT:
            indices = near_largest(floats @ near, len(near))
        gains = [
            sum((flint_rational(g) * weight(w) for w, g in enumerate(row) if g), flint_rational(0))
            for row in (self.matrix[index] for index in indices)
        ]
        chosen = first_best(gains)
        return gains[chosen], self.guesses[indices[chosen]]


MAX_PREDICATE_ENTRIES = 1 << 24
"""Predicates times worlds."""


@dataclass(frozen=True)
class SinglingOut(GainFunction):
    """1 where exactly one row fits a predicate: a set of values of weight at most w (Cohen and
    Nissim 2020).

    Without the weight a predicate that fits half of all people would single someone out by luck
    alone; the vulnerability before the output is exactly that luck.

    Args:
        weight: the most that a predicate may weigh.
        values: how likely each value is in the population; all alike by default.
    """

    weight: object
    values: tuple[object, ...] | None = None
    example: ClassVar[str] = "singling-out=1/4"

    def __post_init__(self) -> None:
        _ = self.limit
        if self.values is not None:
            read_distribution(self.values, "values")
            object.__setattr__(self, "values", tuple(self.values))

    @property
    def limit(self) -> Fraction:
        """The largest weight w that a description may have."""
        return read_ranged(self.weight, "singling-out", "above 0 and at most 1")

    @property
    def spelled(self) -> str:
        return f"singling-out={self.limit}"

    @property
    def words(self) -> str:
        return f"the probability of singling someone out by a predicate of weight {self.limit}"

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return is_exact(self.weight, *(self.values or ()))

    def check(self, space: Space) -> None:
        space = need_records(space, "singling out")
        if self.values is not None:
            values = len(self.values)
            check_count(values, space.values, "values", "probabilities", "values of a row")
        if (least := min(self._masses(space))) > self.limit:
            accepted = f"at least {least}, the weight of the rarest value"
            raise invalid_value("singling-out", accepted, self.limit)
        if 2**space.values * space.worlds > MAX_PREDICATE_ENTRIES:
            tried = f"2^{space.values} predicates on {spell(space.worlds)} tables"
            most = f"more than {spell(MAX_PREDICATE_ENTRIES)} together"
            hint = "use fewer values or rows"
            raise Unsupported(
                f"singling out tries {tried}, {most}", field="space", value=space, hint=hint
            )

    def _masses(self, space: Records) -> tuple[Fraction, ...]:
        if self.values is None:
            return (Fraction(1, space.values),) * space.values
        return read_distribution(self.values, "values")

    def predicates(self, space: Records) -> Iterator[tuple[int, ...]]:
        """The sets of values that are light enough, smaller ones first."""
        masses = self._masses(space)
        for size in range(1, space.values + 1):
            for chosen in combinations(range(space.values), size):
                if sum((masses[value] for value in chosen), Fraction(0)) <= self.limit:
                    yield chosen

    def _fits(self, space: Records) -> tuple[list[tuple[int, ...]], list[Array]]:
        """The predicates, and in which worlds exactly one row fits each."""
        chosen = list(self.predicates(space))
        digits = np.array(list(space), dtype=np.int64)
        return chosen, [(np.isin(digits, each).sum(axis=1) == 1) for each in chosen]

    def rows(self, space: Space) -> list[list[Fraction]]:
        return [
            list(map(Fraction, map(int, each))) for each in self._fits(need_records(space, ""))[1]
        ]

    def best(self, near: Array, weight: Callable[[int], Any], space: Space) -> Guess:
        assert isinstance(space, Records)
        chosen, fits = self._fits(space)
        values = np.array([near[each].sum() for each in fits])
        indices, zero = near_largest(values, len(near)), flint_rational(0)
        gains = [sum((weight(int(w)) for w in np.flatnonzero(fits[p])), zero) for p in indices]
        most = first_best(gains)
        return gains[most], chosen[indices[most]]


@dataclass(frozen=True)
class Tries(GainFunction):
    """1 where the world is among k that are named (Bayes vulnerability, for k = 1).

    Args:
        k: how many worlds may be named.
    """

    k: int = 1
    example: ClassVar[str] = "tries=3"

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", read_whole(self.k, "tries", 1))

    @property
    def spelled(self) -> str:
        return "identity" if self.k == 1 else f"tries={self.k}"

    @property
    def words(self) -> str:
        tries = "one try" if self.k == 1 else f"{self.k} tries"
        return f"the probability of naming the whole table in {tries}"

    def check(self, space: Space) -> None:
        if self.k > space.worlds:
            accepted = f"at most {spell(space.worlds)}, the number of worlds"
            raise invalid_value("tries", accepted, self.k)

    def rows(self, space: Space) -> list[list[Fraction]]:
        what = f"{self.k} tries at {spell(space.worlds)} worlds"
        if math.comb(space.worlds, self.k) * space.worlds > MAX_PREDICATE_ENTRIES:
            hint = "use fewer tries or rows"
            raise Unsupported(f"{what} are too many guesses", field="gain", value=self, hint=hint)
        named = combinations(range(space.worlds), self.k)
        return [[Fraction(world in each) for world in range(space.worlds)] for each in named]

    def best(self, near: Array, weight: Callable[[int], Any], space: Space) -> Guess:
        least = np.partition(near, -self.k)[-self.k]
        candidates = map(int, np.flatnonzero(near >= least * (1 - rounding_slack(1))))
        ranked = sorted(((weight(world), -world) for world in candidates), reverse=True)[: self.k]
        total = sum((value for value, _ in ranked), flint_rational(0))
        names = tuple(world_name(space, -world) for _, world in ranked)
        return total, names[0] if self.k == 1 else names


GAIN_READERS: dict[str, Callable[[str], GainFunction]] = {
    "identity": lambda said: Tries(_read_nothing(said)),
    "tries": lambda said: Tries(spelled_whole(said, "tries")),
    "singling-out": lambda said: SinglingOut(rational(said, "singling-out")),
}
"""How each is made from what follows its name."""


def _read_nothing(said: str) -> int:
    if said:
        hint = "write identity, or tries=3 for three tries"
        raise InvalidInput("identity takes no parameter", field="identity", value=said, hint=hint)
    return 1


def read_gain(text: str | Path) -> GainFunction:
    """A gain function by its spelling (identity, tries=3, singling-out=1/4) or from a file: an
    object with `matrix` (rows of numbers, one for each guess) and, if you like, `guesses` (their
    names)."""
    name, _, said = str(text).partition("=")
    if name in GAIN_READERS:
        return GAIN_READERS[name](said)
    if not str(text).endswith(".json"):
        raise UnknownName("gain", str(text), (*GAIN_READERS, "a file that ends in .json"))
    data = read_object(Path(text), "gain")
    check_keys(data, ("matrix", "guesses"), "gain")
    if "matrix" not in data:
        hint = "give a list of rows, one for each guess"
        raise InvalidInput("the gain file has no matrix", field="matrix", hint=hint)
    return GainMatrix(data["matrix"], data.get("guesses"))


def read_gain_function(gain: Any) -> GainFunction:
    """The gain function that a caller means: one, its spelling, or a matrix."""
    if isinstance(gain, GainFunction):
        return gain
    return read_gain(gain) if isinstance(gain, str | Path) else GainMatrix(gain)
