"""The distribution of how many of two kinds of independent people are in, in floats.

Contract: every weight is within (count + 100) · 2·10^−15 of itself, relatively, and what is cut off
has probability below 10^−16: less than 9 deviations and 60 more from the mean on either side stays,
by Bernstein's inequality.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from whosin.exact import Array

WIDTH, MORE = 9, 60
BLOCK = 48
"""Binomials of fewer than this many are never cut off."""
CUT = 1e-15
"""A bound on all the probability that is cut off."""


def rounding(people: int) -> float:
    """More than the relative error of a sum of weights for this many people."""
    return 2e-15 * (people + 100)


@lru_cache(maxsize=256)
def binomial(count: int, belief: float) -> tuple[int, Array]:
    """(first, weights): Bin(count, belief) from its first value that is not negligible.

    Products of ratios away from the mode, then scaled to a sum of 1: logarithms of factorials, of
    size 10^5 for 10^4 people, would not be as accurate.
    """
    middle, spread = count * belief, math.sqrt(count * belief * (1 - belief))
    first = max(0, math.floor(middle - WIDTH * spread - MORE))
    last = min(count, math.ceil(middle + WIDTH * spread + MORE))
    mode = min(max(math.floor((count + 1) * belief), first), last)
    up, down = np.arange(mode, last), np.arange(mode, first, -1)
    rise = np.cumprod((count - up) * belief / ((up + 1) * (1 - belief)))
    fall = np.cumprod(down * (1 - belief) / ((count - down + 1) * belief))
    weights = np.concatenate([fall[::-1], [1.0], rise])
    return first, np.asarray(weights / math.fsum(weights))


@lru_cache(maxsize=512)
def two_binomials(at_low: int, low: float, at_high: int, high: float) -> tuple[int, Array]:
    """(first, weights) of the sum of two independent binomials."""
    one, two = binomial(at_low, low), binomial(at_high, high)
    return one[0] + two[0], np.convolve(one[1], two[1])


def block_of_binomials(
    at_low: int, low: float, at_high: int, high: float, count: int
) -> tuple[int, Array]:
    """(first, weights): `two_binomials` for at_low, at_low + 1, … at low and that number fewer at
    high, one for each row.

    All of them share what at_low at low and at_high − count + 1 at high do, and the others are few.
    """
    first, shared = two_binomials(at_low, low, at_high - count + 1, high)
    return first, np.array([np.convolve(shared, few) for few in _few(count, low, high)])


@lru_cache(maxsize=4)
def _few(count: int, low: float, high: float) -> list[Array]:
    """The weights of r at low and count − 1 − r at high, for each r."""
    return [two_binomials(r, low, count - 1 - r, high)[1] for r in range(count)]
