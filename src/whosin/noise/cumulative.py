"""Running totals over a stream under one budget: noise that is correlated by an integer matrix.

Counts x of T periods are measured as m = C̃x + z, with an integer lower triangular C̃ and independent
discrete Gaussian z, a period at a time; the totals Ax, A being all ones on and below the diagonal,
are estimated by A C̃⁻¹ m, so that their noise is A C̃⁻¹ z. What is published is m, of which all
else is computed: no noise has to be kept secret between periods.

*Privacy.* With A = BC the error is a row norm of B, and the sensitivity a column norm of C. But
**integer noise on a non-integer Cx is not private**: for C = [[1, 0], [1/2, 1]] the fraction of the
second number shows whether x₁ is even, whatever the noise. C̃ = round(K·C) is of integers, so that a
person moves step t by the integer (C̃Δ)_t, where Δ has 1 in the periods that count for the person.
Each step is (C̃Δ)_t²/(2σ²)-zCDP given all before it (Canonne, Kamath and Steinke 2020), also where
what later periods hold was chosen after earlier answers were seen; they add up to
ρ = max‖C̃Δ‖²/(2σ²), which is paid once for all periods.

*The worst participation.* C̃ is Toeplitz with coefficients c₀ ≥ c₁ ≥ … ≥ 0, so that
⟨C̃e_i, C̃e_j⟩ = Σ_{s < T−j} c_s c_{s+j−i} for i ≤ j falls in j and in the gap j − i, and is not
negative. Among all sets of at most k periods at least b apart the one that begins at once and goes
on as densely as it may, {1, 1+b, 1+2b, …}, has each period as early and each gap as small as any
other; so it is the worst, and ‖C̃Δ‖² there is the exact maximum. Nobody who is replaced moves the
squares by more than twice that: ‖C̃(a−b)‖² ≤ ‖C̃a‖² + ‖C̃b‖² where nothing is negative.

*The choice.* C = (I − S)^(−α), S the shift, for α from 0 (fresh noise for each period) by ½ (the
square root of A) to 1 (fresh noise for each total), cut off after some diagonals where people come
back: whichever has the least error at the horizon. T = 365, once: 2.944 times the noise of one
count; fresh noise has 19.1, a binary tree 8.485, and the optimum over all factorisations is 2.642.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Self

import numpy as np

from whosin.errors import read_whole
from whosin.exact import Array

COEFFICIENT_SCALE = 4096
"""K: what coefficients are multiplied by before they are rounded."""
MAX_PERIODS = 1500
"""Four years of days."""
MAX_PERIOD_COUNT = 2**40
"""Counts are cut to it, so that no sum of them overflows."""
_EXPONENT_STEPS = 20
"""α is chosen among its multiples of one part in so many."""


@dataclass(frozen=True)
class CumulativeNoise:
    """C̃ of a stream, by its first column.

    Attributes:
        coefficients: of T periods: integers, none negative, none above the one before it.
    """

    coefficients: tuple[int, ...]

    def __post_init__(self) -> None:
        listed = self.coefficients
        if not 1 <= len(listed) <= MAX_PERIODS or listed[0] < 1 or listed[-1] < 0:
            raise ValueError("coefficients must be of 1 period or more, the first above 0")
        if any(type(each) is not int for each in listed) or list(listed) != sorted(listed)[::-1]:
            raise ValueError("coefficients must be integers that do not rise")

    @classmethod
    def choose(cls, periods: int, times: int = 1, apart: int = 1) -> Self:
        """The factorisation with the least error of the last total, for people who count in at most
        `times` periods that are at least `apart` from each other."""
        read_whole(periods, "periods", 1, MAX_PERIODS)
        read_whole(times, "times", 1, MAX_PERIODS)
        read_whole(apart, "apart", 1, MAX_PERIODS)
        return cls(_best_coefficients(periods, min(times, -(-periods // apart)), apart))

    @property
    def periods(self) -> int:
        return len(self.coefficients)

    def squared_sensitivity(self, times: int = 1, apart: int = 1) -> int:
        """The most that someone moves m by, squared: ‖C̃Δ‖² at its maximum over participations."""
        return sum(each * each for each in _worst_sum(self.coefficients, times, apart))

    def measure(self, counts: Array) -> Array:
        """C̃x before noise, of a row for each period. Never shown."""
        whole = np.clip(np.asarray(counts, np.int64), -MAX_PERIOD_COUNT, MAX_PERIOD_COUNT)
        result = np.zeros_like(whole)
        for lag, each in enumerate(self.coefficients[: len(whole)]):
            if each:
                result[lag:] += each * whole[: len(whole) - lag]
        return result

    def estimate_counts(self, measured: Array) -> Array:
        """C̃⁻¹m: the count of each period, from the first ones that were measured."""
        return _solve(np.asarray(self.coefficients, float), np.asarray(measured, float))

    def estimate_totals(self, measured: Array) -> Array:
        """A C̃⁻¹m: the totals up to each period."""
        return np.asarray(np.cumsum(self.estimate_counts(measured), axis=0))

    @cached_property
    def count_spreads(self) -> Array:
        """The standard deviation of each period's count, in those of the noise on m."""
        return np.asarray(np.sqrt(np.cumsum(self._inverse**2)))

    @cached_property
    def total_spreads(self) -> Array:
        """The same of the total up to each period."""
        return np.asarray(np.sqrt(np.cumsum(np.cumsum(self._inverse) ** 2)))

    @cached_property
    def _inverse(self) -> Array:
        """The first column of C̃⁻¹."""
        first = np.zeros(self.periods)
        first[0] = 1
        return self.estimate_counts(first)

    def error_factor(self, times: int = 1, apart: int = 1) -> float:
        """How many times the noise of one count that everyone is in once the last total has."""
        square = self.squared_sensitivity(times, apart)
        return math.sqrt(square) * float(self.total_spreads[-1])


def fresh_factor(periods: int, times: int = 1, apart: int = 1) -> float:
    """The same with fresh noise for each period, at the same ρ."""
    return math.sqrt(min(times, -(-periods // apart)) * periods)


def _worst_sum(coefficients: tuple[int, ...], times: int, apart: int) -> list[int]:
    """C̃Δ at the worst participation, in Python's integers."""
    periods = len(coefficients)
    result = list(coefficients)
    for start in range(apart, min(times * apart, periods), apart):
        for place in range(start, periods):
            result[place] += coefficients[place - start]
    return result


def _solve(coefficients: Array, right: Array) -> Array:
    """Forward substitution with a lower triangular Toeplitz matrix."""
    result = np.zeros_like(right)
    for place in range(len(right)):
        known = np.tensordot(coefficients[1 : place + 1][::-1], result[:place], axes=(0, 0))
        result[place] = (right[place] - known) / coefficients[0]
    return result


@cache
def _best_coefficients(periods: int, times: int, apart: int) -> tuple[int, ...]:
    """Whichever of some integer factorisations has the least error."""
    bands = {periods} if times == 1 else {1, 2, 4, 8, 16, apart, 2 * apart, periods}
    found: tuple[float, tuple[int, ...]] | None = None
    for number in range(_EXPONENT_STEPS + 1):
        column = _power_column(number / _EXPONENT_STEPS, periods)
        for band in sorted(each for each in bands if each <= periods):
            whole = tuple(each if lag < band else 0 for lag, each in enumerate(column))
            error = CumulativeNoise(whole).error_factor(times, apart)
            if found is None or error < found[0]:
                found = error, whole
    assert found is not None
    return found[1]


def _power_column(exponent: float, periods: int) -> tuple[int, ...]:
    """The first column of round(K·(I − S)^(−α))."""
    result = [1.0]
    for lag in range(1, periods):
        result.append(result[-1] * (lag - 1 + exponent) / lag)
    return tuple(round(COEFFICIENT_SCALE * each) for each in result)
