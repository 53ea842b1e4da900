"""All distributions between two bounds for each value, for each row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from whosin.errors import InvalidInput
from whosin.exact import is_exact, probability, rational
from whosin.priors.base import TOLERANCE
from whosin.priors.sets import PriorSet, Row, RowSet, nested, ratio_of
from whosin.validation import listed

ACCEPTED = "a probability for each value, or a list of them for each row"


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
        return ratio_of(*self._pair(value, other))

    def farthest(self, value: int, other: int) -> Row:
        top, bottom = self._pair(value, other)
        return self._filled({value: top, other: bottom})

    def likeliest(self, value: int) -> Row:
        most = min(self.high[value], 1 - self.sums[0] + self.low[value])
        return self._filled({value: most})

    def worst(self, costs: Sequence[Any]) -> Row:
        return self._filled({}, sorted(range(self.values), key=lambda value: -costs[value]))

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
            for each row.
    """

    low: tuple[Any, ...]
    high: tuple[Any, ...]

    def __init__(self, low: Iterable[Any], high: Iterable[Any]) -> None:
        for field, given in (("low", low), ("high", high)):
            entries = listed(given, field, ACCEPTED)
            plain = tuple(tuple(entry) if nested(entry) else entry for entry in entries)
            if isinstance(given, str) or not plain or len(set(map(nested, plain))) != 1:
                raise InvalidInput(field, ACCEPTED, repr(given))
            object.__setattr__(self, field, plain)
        if len(self.low) != len(self.high) or nested(self.low[0]) != nested(self.high[0]):
            raise InvalidInput("low and high", "lists of the same shape", "different shapes")
        _ = self.sets  # reads and checks every number

    @cached_property
    def by_row(self) -> bool:
        """Whether it lists bounds for each row."""
        return nested(self.low[0])

    @cached_property
    def sets(self) -> tuple[RowSet, ...]:
        if not self.by_row:
            return (_within_bounds(self.low, self.high, ""),)
        pairs = enumerate(zip(self.low, self.high, strict=True))
        return tuple(_within_bounds(*pair, f" of row {number}") for number, pair in pairs)

    @property
    def parameters(self) -> tuple[object, ...]:
        both = self.low + self.high
        return tuple(entry for row in both for entry in row) if self.by_row else both

    def canonical(self) -> Box:
        def exact(side: Any) -> tuple[Any, ...]:
            return tuple(tuple(map(rational, e)) if self.by_row else rational(e) for e in side)

        return Box(exact(self.low), exact(self.high))


def _within_bounds(low: tuple[Any, ...], high: tuple[Any, ...], where: str) -> WithinBounds:
    below = tuple(probability(value, f"low{where}") for value in low)
    above = tuple(probability(value, f"high{where}") for value in high)
    if not below or len(below) != len(above):
        accepted = "the same number of probabilities in low and in high"
        raise InvalidInput(f"low and high{where}", accepted, f"{len(below)} and {len(above)}")
    for value, (least, most) in enumerate(zip(below, above, strict=True)):
        if least > most:
            got = f"{float(least):g} above {float(most):g} for value {value}"
            raise InvalidInput(f"low{where}", "at most high", got)
    slack = Fraction(0) if is_exact(*low, *high) else TOLERANCE
    least, most = sum(below, Fraction(0)), sum(above, Fraction(0))
    if least > 1 + slack or most < 1 - slack:
        got = f"sums {float(least):.12g} and {float(most):.12g}: no distribution is between them"
        raise InvalidInput(f"low and high{where}", "low with sum at most 1, high at least 1", got)
    if least > 1:  # floats that miss a sum of 1
        below = tuple(value / least for value in below)
        above = tuple(map(max, below, above))
    if most < 1:
        above = tuple(value / most for value in above)
    return WithinBounds(below, above)
