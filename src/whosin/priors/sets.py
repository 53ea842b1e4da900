"""Sets of priors on records: mixtures (`Hull`), bounds by value (`Box`), of chains (`ChainBox`)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

from whosin.errors import InvalidInput, Unsupported, check_count, invalid_value, read_list, spell
from whosin.exact import is_exact, probability, rational
from whosin.priors.base import SUM_TOLERANCE, Prior, read_distribution
from whosin.priors.independent import Independent
from whosin.spaces.arrays import require_table
from whosin.spaces.worlds import Records

# Sets of priors on records: each row's distribution lies anywhere in a set (Wang14 asks for it).
#
# Rows are independent, and each takes any member of its set. Or the set is of whole tables, whose
# rows may depend on each other: then it is a set of one row that has every table as a value. A set
# is not a prior: what asks for a single one is refused, since little is settled at its corners.

Row = tuple[Fraction, ...]
MAX_CUT_DENOMINATOR = 1 << 40
MAX_CORNER_CANDIDATES = 1 << 15
"""Choices of bounds that are tried for the corners of a box."""


class RowSet(ABC):
    """A closed set of distributions over the values of one row."""

    @property
    @abstractmethod
    def values(self) -> int:
        """How many values the row has."""

    @abstractmethod
    def odds(self, value: int, other: int) -> Fraction | float | None:
        """The largest p(value) / p(other) in the set: infinite where p(other) can be 0 beside a
        possible value, None where the value is impossible throughout."""

    @abstractmethod
    def farthest(self, value: int, other: int) -> Row:
        """A member that attains the odds."""

    @abstractmethod
    def likeliest(self, value: int) -> Row:
        """A member in which the value has its largest probability."""

    @abstractmethod
    def worst(self, costs: Sequence[Any]) -> Row:
        """A member with the largest mean of these costs, one for each value."""

    @abstractmethod
    def corners(self) -> list[Row]:
        """Members whose mixtures are the whole set."""

    def widest(self) -> Row:
        """A member in which every value is possible that is possible in any."""
        members = [self.likeliest(value) for value in range(self.values)]
        return tuple(sum(each, Fraction(0)) / len(members) for each in zip(*members, strict=True))

    def all_odds(self) -> dict[tuple[int, int], Fraction | float]:
        """The odds of any two different values, where the first one is possible."""
        pairs = ((a, b) for a in range(self.values) for b in range(self.values) if a != b)
        answers = ((pair, self.odds(*pair)) for pair in pairs)
        return {pair: odds for pair, odds in answers if odds is not None}


class PriorSet(Prior):
    """All priors of independent rows, each row's distribution in its own set; or a set of priors of
    whole tables."""

    @property
    @abstractmethod
    def sets(self) -> tuple[RowSet, ...]:
        """One set that serves every row, or one for each row."""

    def of_tables(self, space: Records) -> RowSet | None:
        """The set over whole tables, in world order; nothing where there is one for each row."""
        alone = len(self.sets) == 1 and space.rows > 1
        return self.sets[0] if alone and self.sets[0].values == space.worlds else None

    def parts(self, space: Records) -> tuple[RowSet, ...]:
        """The parts of a table that are independent: its rows, or the whole of it."""
        tables = self.of_tables(space)
        return self.of_rows(space) if tables is None else (tables,)

    def of_rows(self, space: Records) -> tuple[RowSet, ...]:
        if self.of_tables(space) is not None:
            raise Unsupported(
                f"this {type(self).__name__} is a set of priors of whole tables, and this asks for "
                "one of independent rows",
                field="prior",
                hint="give a set of distributions over the values of a row",
            )
        sets = self.sets * space.rows if len(self.sets) == 1 else self.sets
        hint = "give one set for all rows, or one for each"
        check_count(len(sets), space.rows, "prior", "sets", "rows", hint)
        for one in self.sets:
            check_count(one.values, space.values, "prior", "probabilities", "values of a row")
        return sets

    @property
    def spread(self) -> Fraction | float:
        """e^ε_X of its worst member: the largest odds of two values of a row."""
        sets = dict.fromkeys(self.sets)
        return max(max(one.all_odds().values(), default=Fraction(1)) for one in sets)

    def _unsupported(self, about: str) -> Unsupported:
        return Unsupported(
            f"{type(self).__name__} is a set of priors on records, and this asks for one prior",
            field="prior",
            hint="give a list of priors",
        )


def member_prior(members: Sequence[Row], space: Records) -> Prior:
    """The prior with these members of a set's parts."""
    from whosin.priors.table import WorldTable

    if len(members) == 1 and len(members[0]) == space.worlds and space.rows > 1:
        return WorldTable(members[0])
    return Independent(list(members))


def odds_ratio(top: Fraction, bottom: Fraction) -> Fraction | float | None:
    """Odds as `RowSet.odds` has them."""
    if top == 0:
        return None
    return top / bottom if bottom else math.inf


def is_nested(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)


def _replace_entry(row: Row, value: int, entry: Fraction) -> Row:
    return (*row[:value], entry, *row[value + 1 :])


ACCEPTED_DISTRIBUTIONS = "a probability for each value, or a list of them for each row"


@dataclass(frozen=True)
class WithinBounds(RowSet):
    """low ≤ p ≤ high, Σ p = 1; not empty."""

    low: Row
    high: Row

    @cached_property
    def sums(self) -> tuple[Fraction, Fraction]:
        return sum(self.low, Fraction(0)), sum(self.high, Fraction(0))

    @property
    def values(self) -> int:
        return len(self.low)

    def odds(self, value: int, other: int) -> Fraction | float | None:
        return odds_ratio(*self._pair(value, other))

    def farthest(self, value: int, other: int) -> Row:
        top, bottom = self._pair(value, other)
        return self._filled({value: top, other: bottom})

    def likeliest(self, value: int) -> Row:
        most = min(self.high[value], 1 - self.sums[0] + self.low[value])
        return self._filled({value: most})

    def worst(self, costs: Sequence[Any]) -> Row:
        return self._filled({}, sorted(range(self.values), key=lambda value: -costs[value]))

    def corners(self) -> list[Row]:
        ends = [sorted(set(pair)) for pair in zip(self.low, self.high, strict=True)]
        tried = self.values * math.prod(map(len, ends))
        if tried > MAX_CORNER_CANDIDATES:
            raise Unsupported(
                f"a Box of {self.values} values has too many corners",
                field="prior",
                value=self.values,
                hint="use fewer values, tighter bounds, or a Hull",
            )
        found: dict[Row, None] = {}
        for free in range(self.values):
            for chosen in product(*ends[:free], *ends[free + 1 :]):
                left = 1 - sum(chosen, Fraction(0))
                if self.low[free] <= left <= self.high[free]:
                    found[(*chosen[:free], left, *chosen[free:])] = None
        return list(found)

    def middle(self) -> Row:
        """A member as far between the bounds in each value as in the others."""
        least, most = self.sums
        share = (1 - least) / (most - least) if most > least else Fraction(0)
        return tuple(a + share * (b - a) for a, b in zip(self.low, self.high, strict=True))

    def tightened(self) -> WithinBounds:
        """The same set with bounds that are attained."""
        least, most = self.sums
        low = (max(a, 1 - (most - b)) for a, b in zip(self.low, self.high, strict=True))
        high = (min(b, 1 - (least - a)) for a, b in zip(self.low, self.high, strict=True))
        return WithinBounds(tuple(low), tuple(high))

    def halves(self, value: int) -> list[WithinBounds]:
        """Its parts with the value's probability below and above the middle of its logarithm."""
        low, high = self.low[value], self.high[value]
        cut = Fraction(math.sqrt(low * high)).limit_denominator(MAX_CUT_DENOMINATOR)
        cut = cut if low < cut < high else (low + high) / 2
        ends = (
            (self.low, _replace_entry(self.high, value, cut)),
            (_replace_entry(self.low, value, cut), self.high),
        )
        parts = [WithinBounds(*pair) for pair in ends]
        return [part.tightened() for part in parts if part.sums[0] <= 1 <= part.sums[1]]

    def _pair(self, a: int, b: int) -> tuple[Fraction, Fraction]:
        """p(a), p(b) with the largest ratio: b as unlikely as it can be, then a as likely."""
        least, most = self.sums
        bottom = max(self.low[b], 1 - (most - self.high[b]))  # a and the rest at their most
        top = min(self.high[a], 1 - (least - self.low[a] - self.low[b]) - bottom)
        return top, bottom

    def _filled(self, fixed: dict[int, Fraction], order: Sequence[int] | None = None) -> Row:
        """A member with these probabilities; what is left goes to the other values in order."""
        row = [fixed.get(value, low) for value, low in enumerate(self.low)]
        left = 1 - sum(row, Fraction(0))
        for value in range(self.values) if order is None else order:
            if value not in fixed:
                more = min(self.high[value] - row[value], left)
                row[value] += more
                left -= more
        return tuple(row)


@dataclass(frozen=True, init=False)
class Box(PriorSet):
    """Rows are independent, and the distribution of each lies between bounds, value by value.

    Args:
        low, high: the bounds of each value's probability, for every row; or lists of bounds, one
            for each row. With a number for each table of several rows, in world order, they bound
            the probability of tables, whose rows may then depend on each other.
    """

    low: tuple[Any, ...]
    high: tuple[Any, ...]

    def __init__(self, low: Iterable[Any], high: Iterable[Any]) -> None:
        for field, given in (("low", low), ("high", high)):
            entries = read_list(given, field, ACCEPTED_DISTRIBUTIONS)
            plain = tuple(tuple(entry) if is_nested(entry) else entry for entry in entries)
            if isinstance(given, str) or not plain or len(set(map(is_nested, plain))) != 1:
                raise invalid_value(field, ACCEPTED_DISTRIBUTIONS, repr(given))
            object.__setattr__(self, field, plain)
        if len(self.low) != len(self.high) or is_nested(self.low[0]) != is_nested(self.high[0]):
            shapes = self.low, self.high
            raise invalid_value("low and high", "lists of the same shape", shapes)
        _ = self.sets  # reads and checks every number

    @cached_property
    def by_row(self) -> bool:
        return is_nested(self.low[0])

    @cached_property
    def sets(self) -> tuple[RowSet, ...]:
        if not self.by_row:
            return (_read_bounds(self.low, self.high, ""),)
        pairs = enumerate(zip(self.low, self.high, strict=True))
        return tuple(_read_bounds(*pair, f" of row {number}") for number, pair in pairs)

    @property
    def parameters(self) -> tuple[object, ...]:
        both = self.low + self.high
        return tuple(entry for row in both for entry in row) if self.by_row else both

    def canonical(self) -> Box:
        def exact(side: Any) -> tuple[Any, ...]:
            return tuple(tuple(map(rational, e)) if self.by_row else rational(e) for e in side)

        return Box(exact(self.low), exact(self.high))


def _read_bounds(low: tuple[Any, ...], high: tuple[Any, ...], where: str) -> WithinBounds:
    below = tuple(probability(value, f"low{where}") for value in low)
    above = tuple(probability(value, f"high{where}") for value in high)
    if not below or len(below) != len(above):
        lengths = len(below), len(above)
        raise invalid_value(f"low and high{where}", "one number each for every value", lengths)
    for value, (least, most) in enumerate(zip(below, above, strict=True)):
        if least > most:
            accepted = f"at most high{where} for value {value}, {spell(most)}"
            raise invalid_value(f"low{where}", accepted, least)
    slack = Fraction(0) if is_exact(*low, *high) else SUM_TOLERANCE
    least, most = sum(below, Fraction(0)), sum(above, Fraction(0))
    if least > 1 + slack or most < 1 - slack:
        raise InvalidInput(
            f"no distribution lies between low{where} and high{where}: they add up to "
            f"{spell(least, 12)} and {spell(most, 12)}",
            field=f"low and high{where}",
            value=(least, most),
            hint="low must add up to at most 1 and high to at least 1",
        )
    if least > 1:  # floats that miss a sum of 1
        below = tuple(value / least for value in below)
        above = tuple(map(max, below, above))
    if most < 1:
        above = tuple(value / most for value in above)
    return WithinBounds(below, above)


@dataclass(frozen=True, init=False)
class ChainBox(Prior):
    """All Markov chains with one matrix for every step whose probabilities lie between bounds.

    Args:
        initial: a `Box` for the first row, or its distribution.
        transition: for each value a `Box`, or a distribution, of what comes after it.
    """

    initial: Box
    transition: tuple[Box, ...]

    def __init__(self, initial: Any, transition: Iterable[Any]) -> None:
        object.__setattr__(self, "initial", _read_box(initial, "initial"))
        listed = read_list(transition, "transition", "a Box or a distribution for each value")
        boxes = tuple(_read_box(row, f"transition row {n}") for n, row in enumerate(listed))
        object.__setattr__(self, "transition", boxes)
        for box in self.transition:
            check_count(len(box.low), self.values, "transition", "probabilities", "initial values")
        check_count(len(boxes), self.values, "transition", "rows", "initial values")

    @property
    def values(self) -> int:
        return len(self.initial.low)

    @property
    def rows(self) -> tuple[WithinBounds, ...]:
        """The sets of the first row's distribution and of each row of the matrix."""
        return tuple(box.sets[0] for box in (self.initial, *self.transition))  # type: ignore[misc]

    @property
    def parameters(self) -> tuple[object, ...]:
        return tuple(each for box in (self.initial, *self.transition) for each in box.parameters)

    def canonical(self) -> ChainBox:
        return ChainBox(self.initial.canonical(), [box.canonical() for box in self.transition])

    def check_records(self, space: Records) -> None:
        check_count(self.values, space.values, "initial", "probabilities", "values of a row")

    def _unsupported(self, about: str) -> Unsupported:
        return Unsupported(
            "ChainBox is a set of Markov chains, and this asks for one prior",
            field="prior",
            hint="ask for Bayesian differential privacy of noisy sums, or give a list of chains",
        )


def _read_box(given: Any, field: str) -> Box:
    box = given if isinstance(given, Box) else Box(given, given)
    if box.by_row:
        raise invalid_value(field, "a Box over the values of a row", repr(given))
    return box


ACCEPTED_POINTS = "a list of distributions over values, one such list a row, or a list of priors"


@dataclass(frozen=True)
class Mixtures(RowSet):
    """The mixtures of these distributions. A ratio of two linear functions is largest at one of
    the points."""

    points: tuple[Row, ...]

    @property
    def values(self) -> int:
        return len(self.points[0])

    def odds(self, value: int, other: int) -> Fraction | float | None:
        point = self.farthest(value, other)
        return odds_ratio(point[value], point[other])

    def farthest(self, value: int, other: int) -> Row:
        def order(point: Row) -> Fraction | float:
            odds = odds_ratio(point[value], point[other])
            return -math.inf if odds is None else odds

        return max(self.points, key=order)

    def likeliest(self, value: int) -> Row:
        return max(self.points, key=lambda point: point[value])

    def corners(self) -> list[Row]:
        return list(dict.fromkeys(self.points))

    def worst(self, costs: Sequence[Any]) -> Row:
        def mean(point: Row) -> Any:
            return sum(type(cost)(p) * cost for p, cost in zip(point, costs, strict=True))

        return max(self.points, key=mean)


@dataclass(frozen=True, init=False)
class Hull(PriorSet):
    """Rows are independent, and the distribution of each is any mixture of the listed ones.

    Args:
        points: distributions over the values of a row, for every row; or a list of them for each
            row. `Independent` with one distribution means that distribution. Priors of whole
            tables (`MarkovChain`, `Table`, …), or a number for each table, mean their mixtures,
            under which rows depend on each other.
    """

    points: tuple[Any, ...]

    def __init__(self, points: Iterable[Any]) -> None:
        listed = read_list(points, "points", ACCEPTED_POINTS)
        whole = any(isinstance(each, Prior) and not _is_one_row(each) for each in listed)
        given = listed if whole else tuple(map(_plain_tuples, listed))
        object.__setattr__(self, "points", given)
        if whole and all(map(_is_of_tables, given)):
            return
        if whole or not given or not all(map(is_nested, given)):
            raise invalid_value("points", ACCEPTED_POINTS, repr(points))
        _ = self.sets  # reads and checks every number

    @cached_property
    def by_row(self) -> bool:
        return not self.are_priors and any(is_nested(entry) for entry in self.points[0])

    @property
    def are_priors(self) -> bool:
        """Whether the points are priors of whole tables."""
        return isinstance(self.points[0], Prior)

    @cached_property
    def sets(self) -> tuple[RowSet, ...]:
        if self.are_priors:
            raise self._unsupported("tables")
        if not self.by_row:
            return (_read_mixtures(self.points, "points"),)
        return tuple(_read_mixtures(row, f"points of row {n}") for n, row in enumerate(self.points))

    def of_tables(self, space: Records) -> RowSet | None:
        if not self.are_priors:
            return super().of_tables(space)
        require_table("the priors of a hull", space.worlds, len(self.points))
        masses = (prior.on_records(space, rational) for prior in self.points)
        return Mixtures(tuple(tuple(mass) for mass in masses))

    @property
    def spread(self) -> Fraction | float:
        return math.inf if self.are_priors else super().spread

    @property
    def parameters(self) -> tuple[object, ...]:
        if self.are_priors:
            return tuple(each for prior in self.points for each in prior.parameters)
        rows = self.points if self.by_row else (self.points,)
        return tuple(entry for row in rows for point in row for entry in point)

    def canonical(self) -> Hull:
        def exact(row: Any) -> tuple[Row, ...]:
            return tuple(tuple(map(rational, point)) for point in row)

        if self.are_priors:
            return Hull(prior.canonical() for prior in self.points)
        return Hull(tuple(map(exact, self.points)) if self.by_row else exact(self.points))


def _read_mixtures(points: Any, field: str) -> Mixtures:
    if not points or not all(map(is_nested, points)):
        raise invalid_value(field, ACCEPTED_POINTS, repr(points))
    read = tuple(read_distribution(point, field) for point in points)
    if len({len(point) for point in read}) != 1:
        raise InvalidInput(
            f"{field} has distributions over different numbers of values", field=field, value=points
        )
    return Mixtures(read)


def _is_one_row(prior: Prior) -> bool:
    return isinstance(prior, Independent) and not prior.by_row and isinstance(prior.p, tuple)


def _is_of_tables(entry: object) -> bool:
    scalar = isinstance(entry, Independent) and not isinstance(entry.p, tuple)
    return isinstance(entry, Prior) and not isinstance(entry, PriorSet) and not scalar


def _plain_tuples(entry: Any) -> Any:
    if isinstance(entry, Independent) and _is_one_row(entry):
        return entry.p
    if isinstance(entry, Prior):
        raise invalid_value("points", ACCEPTED_POINTS, repr(entry))
    return tuple(map(_plain_tuples, entry)) if is_nested(entry) else entry
