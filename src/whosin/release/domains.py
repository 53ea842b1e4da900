"""Public domains: what a column may hold, declared before anyone looks at the rows.

Contract: answers have the shape that the domains say, whatever the rows hold. A value outside its
domain goes to the cell "other" (`Values`), or is clamped (`Range`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

from whosin.documents import check_keys
from whosin.errors import InvalidInput
from whosin.exact import ranged, rational

OTHER = "other"
MOST_CELLS = 10**7
MOST_VALUES = 10_000
FINEST = 10**6
"""How many steps a range has by default, at the most; sums of 10^12 rows still fit 64 bits."""
FARTHEST = 10**9
"""How many steps from 0 a value may be, at the most; sums of 10^9 rows still fit 64 bits."""
LARGEST = 10**100


@dataclass(frozen=True)
class Values:
    """A column with finitely many public values; anything else is in the cell "other".

    Args:
        constant: whether all rows of an entity have the same value, as far as is publicly known.
            Nothing depends on it but warnings.
    """

    values: tuple[str | int, ...]
    constant: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.values, list | tuple | range) or not self.values:
            raise InvalidInput("values", "a list of at least one value", repr(self.values)[:80])
        if len(self.values) > MOST_VALUES:
            raise InvalidInput("values", f"at most {MOST_VALUES}", len(self.values))
        object.__setattr__(self, "values", tuple(self.values))
        kinds = {type(value) for value in self.values}
        if kinds not in ({str}, {int}, {bool}):
            raise InvalidInput("values", "all texts, or all whole numbers", repr(self.values[:5]))
        if kinds == {int} and not all(-(2**63) <= int(value) < 2**63 for value in self.values):
            raise InvalidInput("values", "whole numbers of 64 bits", "a larger one")
        if kinds == {str} and any(map(_halved, self.values)):
            raise InvalidInput("values", "texts that UTF-8 can hold", repr(self.values[:5]))
        if len(set(self.values)) != len(self.values):
            raise InvalidInput("values", "different from each other", repr(self.values[:5]))
        _check_constant(self.constant)

    @property
    def labels(self) -> tuple[str | int, ...]:
        """The cells, in the declared order, with "other" at the end."""
        name = OTHER
        while name in self.values:
            name += "_"
        return (*self.values, name)


@dataclass(frozen=True)
class Range:
    """A numeric column, clamped to [lower, upper], rounded to multiples of a step.

    Args:
        step: sums and means are computed in whole multiples of it; by default the power of ten
            that gives up to a million steps.
        edges: where bins end, for histograms and group-by: bins are [a, b), the last one [a, b].
        constant: whether all rows of an entity have the same number; see `Values`.
    """

    lower: object
    upper: object
    step: object = None
    edges: tuple[object, ...] = ()
    constant: bool = False

    def __post_init__(self) -> None:
        _check_constant(self.constant)
        low, high = self.bounds
        if low >= high:
            raise InvalidInput("lower", f"below upper ({self.upper})", self.lower)
        if max(-low, high) > LARGEST or high - low < Fraction(1, LARGEST):
            raise InvalidInput("lower and upper", "between 1e-100 and 1e100", self.lower)
        if not isinstance(self.edges, list | tuple):
            raise InvalidInput("edges", "a list of numbers", repr(self.edges))
        object.__setattr__(self, "edges", tuple(self.edges))
        exact = [rational(edge, "edges") for edge in self.edges]
        if any(abs(edge) > LARGEST for edge in exact):
            raise InvalidInput("edges", "numbers between -1e100 and 1e100", "a larger one")
        edges = list(map(float, exact))
        if edges and (len(edges) < 2 or edges != sorted(set(edges))):
            raise InvalidInput("edges", "at least two numbers, rising", list(self.edges))
        if len(edges) > MOST_VALUES:
            raise InvalidInput("edges", f"at most {MOST_VALUES}", len(edges))
        self._check_step()

    def _check_step(self) -> None:
        if self.step is not None:
            ranged(self.step, "step", "above 0")
        least, most = self.units
        shown = "the default" if self.step is None else self.step
        if least >= most:
            raise InvalidInput("step", "small enough for two steps within the range", shown)
        if max(-least, most) > FARTHEST:
            raise InvalidInput("step", "at least a billionth of the largest value", shown)

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The clamp, exactly."""
        return rational(self.lower, "lower"), rational(self.upper, "upper")

    @property
    def unit(self) -> Fraction:
        """The step, exactly."""
        if self.step is not None:
            return rational(self.step, "step")
        low, high = self.bounds
        # Up to a million steps within the range, and a billion from 0.
        needed = max((high - low) / FINEST, max(-low, high) / FARTHEST)
        unit = Fraction(1)
        while unit < needed:
            unit *= 10
        while unit / 10 >= needed:
            unit /= 10
        return unit

    @property
    def units(self) -> tuple[int, int]:
        """The clamp in whole steps: the multiples of the step inside [lower, upper]."""
        low, high = self.bounds
        return -(-low // self.unit), high // self.unit

    @property
    def labels(self) -> tuple[str, ...]:
        """The bins, as texts, with "other" at the end for what is in none of them."""
        ends = [repr(float(rational(edge))).removesuffix(".0") for edge in self.edges]
        return (*(f"{a}..{b}" for a, b in pairwise(ends)), OTHER)


Domain: TypeAlias = Values | Range


def read_domain(column: str, data: object) -> Domain:
    """A domain as people write it: a list of values, (lower, upper), "0..120", or keys."""
    if isinstance(data, Values | Range):
        return data
    if isinstance(data, str) and ".." in data:
        low, _, high = data.partition("..")
        return Range(low, high)
    if isinstance(data, tuple) and len(data) == 2 and not any(isinstance(x, str) for x in data):
        return Range(data[0], data[1])
    if isinstance(data, list | tuple | range):
        return Values(data)  # type: ignore[arg-type]
    if isinstance(data, Mapping):
        return _from_keys(column, data)
    accepted = "a list of values, or a range such as 0..120"
    raise InvalidInput(f"domain of {column}", accepted, repr(data))


def _from_keys(column: str, data: Mapping[Any, Any]) -> Domain:
    known = ("values", "lower", "upper", "step", "edges", "constant")
    check_keys(data, known, f"domain of {column}")
    constant = data.get("constant", False)
    if "values" in data:
        if not data.keys() <= {"values", "constant"}:
            raise InvalidInput(f"domain of {column}", "values, or a range, not both", "both")
        return Values(_listed(data["values"], f"values of {column}"), constant)
    edges = _listed(data.get("edges", ()), f"edges of {column}")
    if edges:
        data = {"lower": edges[0], "upper": edges[-1], **data}
    for key in ("lower", "upper"):
        if key not in data:
            raise InvalidInput(f"domain of {column}", f"an object with {key!r}", "none")
    return Range(data["lower"], data["upper"], data.get("step"), edges, constant)


def _check_constant(given: object) -> None:
    if not isinstance(given, bool):
        raise InvalidInput("constant", "true or false", repr(given)[:80])


def _halved(text: object) -> bool:
    """Whether a text has half of a pair of UTF-16, which is no letter."""
    return any("\ud800" <= letter <= "\udfff" for letter in str(text))


def _listed(data: object, field: str) -> tuple[Any, ...]:
    if not isinstance(data, list | tuple):
        raise InvalidInput(field, "a list", repr(data))
    return tuple(data)
