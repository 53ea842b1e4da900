"""The points that a quantile can come out at, and where a value lies among them.

Contract: the points are public: they come from the declared range, its step and the column's type.
A value's position is three times that of the point below it, plus 0 on that point, 1 beyond it and
nearer to it, 2 nearer to the next, so that one scan rounds down, to the nearest point, and up. A
value within a millionth of a step of a point is on it: doubles do not hold 0.15, and 31 is 31.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.release.columns.domains import Range

FINEST = 10_000
USUAL = 1_001
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Points:
    """Points at equal distances, the outermost moved to the ends of the range."""

    origin: Fraction
    step: Fraction
    count: int
    ends: tuple[Fraction, Fraction]

    @classmethod
    def of(cls, domain: Range, whole: bool, count: int | None) -> Points:
        """`count` points over the range; by default multiples of a round step.

        Args:
            whole: whether the column holds whole numbers, by its type.
        """
        low, high = domain.bounds
        if count is None:
            step = _round_step(domain, whole)
            first, last = low // step, -(-high // step)
            return cls(first * step, step, int(last - first) + 1, (low, high))
        if type(count) is not int or not 2 <= count <= FINEST:
            raise InvalidInput("points", f"a whole number from 2 to {FINEST}", count)
        return cls(low, (high - low) / (count - 1), count, (low, high))

    def position(self, value: Any) -> Any:
        """The position of a number, as an expression; a missing one has none."""
        low, high = (float(end) for end in self.ends)
        above = value.clip(low, high) - float(self.origin)
        steps = above * float(self.step.denominator) / float(self.step.numerator)
        number = (steps + 0.5).floor() + (steps - TOLERANCE).ceil() + (steps + TOLERANCE).floor()
        return number.cast("int64").clip(0, 3 * self.count - 3)

    def rounded(self, positions: Array, rows: Array) -> tuple[Array, Array, Array]:
        """From the number of rows at each position to the number at each point, where values are
        rounded down, to the nearest, and up."""
        counts = np.zeros(3 * self.count, np.int64)
        counts[positions] = rows
        on, nearer, farther = counts.reshape(self.count, 3).T
        down, nearest, up = on + nearer + farther, on + nearer, on.copy()
        nearest[1:] += farther[:-1]
        up[1:] += nearer[:-1] + farther[:-1]
        return down, nearest, up

    def value(self, point: int) -> Fraction:
        """The number at a point; before the first and after the last come the ends."""
        if point < 0:
            return self.ends[0]
        low, high = self.ends
        return min(max(self.origin + point * self.step, low), high)


def _round_step(domain: Range, whole: bool) -> Fraction:
    """The first of 1, 2, 5, 10 … times the least step with few enough points.

    The least step is the declared one, 1 for whole numbers, and the range's own otherwise.
    """
    low, high = domain.bounds
    least = Fraction(1) if whole and domain.step is None else domain.unit
    for step in _rising(least):
        if -(-high // step) - low // step + 1 <= USUAL:
            return step
    raise AssertionError("unreachable")


def _rising(least: Fraction) -> Iterator[Fraction]:
    while True:
        for times in (1, 2, 5):
            yield least * times
        least *= 10


def score(counts: Array, share: Fraction, shift: int) -> Array:
    """How well each point fits a rank, as whole numbers of at most 0: 0 where it fits.

    The rank is the share a/b of all rows, plus shift/b. With ties the score of c is
    −max(b·#{v < c} − rank, rank − b·#{v ≤ c}, 0). One row more or less moves it by at most
    max(a, b−a), one row for another by b.
    """
    upto = np.cumsum(counts) * share.denominator
    under = upto - counts * share.denominator
    rank = share.numerator * int(counts.sum()) + shift
    result: Array = -np.maximum(np.maximum(under - rank, rank - upto), 0)
    return result
