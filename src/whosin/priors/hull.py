"""All mixtures of listed distributions, for each row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from whosin.errors import InvalidInput
from whosin.exact import rational
from whosin.priors.independent import Independent
from whosin.priors.records import distribution
from whosin.priors.sets import PriorSet, Row, RowSet, nested, ratio_of
from whosin.validation import listed

ACCEPTED = "a list of distributions over values, or one such list a row"


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
        return ratio_of(point[value], point[other])

    def farthest(self, value: int, other: int) -> Row:
        def order(point: Row) -> Fraction | float:
            odds = ratio_of(point[value], point[other])
            return -math.inf if odds is None else odds

        return max(self.points, key=order)

    def likeliest(self, value: int) -> Row:
        return max(self.points, key=lambda point: point[value])

    def worst(self, costs: Sequence[Any]) -> Row:
        def mean(point: Row) -> Any:
            return sum(type(cost)(p) * cost for p, cost in zip(point, costs, strict=True))

        return max(self.points, key=mean)


@dataclass(frozen=True, init=False)
class Hull(PriorSet):
    """Rows are independent, and the distribution of each is any mixture of the listed ones.

    Args:
        points: distributions over the values of a row, for every row; or a list of them for each
            row. `Independent` with one distribution means that distribution.
    """

    points: tuple[Any, ...]

    def __init__(self, points: Iterable[Any]) -> None:
        given = tuple(map(_plain, listed(points, "points", ACCEPTED)))
        object.__setattr__(self, "points", given)
        if not given or not all(map(nested, given)):
            raise InvalidInput("points", ACCEPTED, repr(points))
        _ = self.sets  # reads and checks every number

    @cached_property
    def by_row(self) -> bool:
        """Whether it lists points for each row."""
        return any(nested(entry) for entry in self.points[0])

    @cached_property
    def sets(self) -> tuple[RowSet, ...]:
        if not self.by_row:
            return (_mixtures(self.points, "points"),)
        return tuple(_mixtures(row, f"points of row {n}") for n, row in enumerate(self.points))

    @property
    def parameters(self) -> tuple[object, ...]:
        rows = self.points if self.by_row else (self.points,)
        return tuple(entry for row in rows for point in row for entry in point)

    def canonical(self) -> Hull:
        def exact(row: Any) -> tuple[Row, ...]:
            return tuple(tuple(map(rational, point)) for point in row)

        return Hull(tuple(map(exact, self.points)) if self.by_row else exact(self.points))


def _mixtures(points: Any, field: str) -> Mixtures:
    if not points or not all(map(nested, points)):
        raise InvalidInput(field, ACCEPTED, repr(points))
    read = tuple(distribution(point, field) for point in points)
    if len({len(point) for point in read}) != 1:
        raise InvalidInput(field, "distributions over the same values", "different lengths")
    return Mixtures(read)


def _plain(entry: Any) -> Any:
    """Tuples all the way down."""
    if isinstance(entry, Independent):
        if entry.by_row or not isinstance(entry.p, tuple):
            raise InvalidInput("points", ACCEPTED, repr(entry))
        return entry.p
    return tuple(map(_plain, entry)) if nested(entry) else entry
