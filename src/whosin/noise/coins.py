"""Coins with a rational or a certified-real probability, tossed exactly."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, overload

import numpy as np

from whosin.errors import invalid_value
from whosin.exact import Array, ball, ball_exp, rational, read_ranged
from whosin.noise.source import (
    SYSTEM_SOURCE,
    Inversion,
    Real,
    Shape,
    Size,
    Source,
    checked_source,
    count_draws,
    is_below,
    shape_draws,
)

# P(1) is the probability, exactly. A real is given as a function from a precision in bits to an Arb
# ball that contains it; `exp_minus(x)` is e^(−x) for a rational x ≥ 0. `bernoulli_exp` draws one
# coin for each of many exponents that are known as floats with a relative error, using nothing but
# IEEE arithmetic where that decides, and the exact exponent where it does not.

MAX_COMPARED_OUTCOMES = 64
"""Up to this many coins are compared one by one, without a table."""
SCREEN_MARGIN = 2.0**-44
"""More than the rounding errors of the sums below; exponents come within this relative error."""


@overload
def bernoulli(probability: object, size: None = None, *, source: Source = SYSTEM_SOURCE) -> int: ...
@overload
def bernoulli(probability: object, size: Shape, *, source: Source = SYSTEM_SOURCE) -> Array: ...
def bernoulli(
    probability: object, size: Size = None, *, source: Source = SYSTEM_SOURCE
) -> Array | int:
    """Coins: 1 with the probability, exactly, and otherwise 0.

    Args:
        probability: a number in [0, 1] (a float is read by its decimals), or a certified
            real: a function from a precision in bits to an Arb ball, such as `exp_minus(x)`.
        size: how many, or a shape; None for one Python integer.
    """
    real, count = _read_real(probability), count_draws(size)
    source = checked_source(source)
    if count <= MAX_COMPARED_OUTCOMES:
        coins = np.array([is_below(source, real) for _ in range(count)], dtype=np.int64)
    else:
        coins = _table_coins(real).draw(source, count).astype(np.int64)
    return shape_draws(coins, size)


def exp_minus(exponent: object) -> Real:
    """e^(−x) as a certified real, for a rational x ≥ 0."""
    number = rational(exponent, "exponent")
    if number < 0:
        raise invalid_value("exponent", "at least 0", exponent)
    return lambda precision: ball_exp(-number, precision)


def _read_real(probability: object) -> Real:
    if not callable(probability):
        return _rational(read_ranged(probability, "probability", "between 0 and 1"))
    from flint import arb

    result = probability(128)
    if not isinstance(result, arb) or not result.is_finite() or result < 0 or result > 1:
        accepted = "between 0 and 1, or a function from a precision to an Arb ball there"
        raise invalid_value("probability", accepted, repr(result))
    return probability


@lru_cache(maxsize=64)
def _rational(number: Fraction) -> Real:
    """The rational as a certified real; the same function each time, so that its table is kept."""
    from flint import ctx

    def real(precision: int) -> Any:
        with ctx.workprec(precision):
            return ball(number)

    return real


@lru_cache(maxsize=32)
def _table_coins(real: Real) -> Inversion:
    return Inversion(lambda precision: [real(precision)], np.array([1, 0]))


def bernoulli_exp(exponents: Array, exact: Callable[[int], Fraction], source: Source) -> Array:
    """For each exponent y ≥ 0 a coin with P(True) = e^(−y).

    The sums 1 − y + y²/2 − … ± y^n/n! lie below e^(−y) for odd n and above it for even n (Taylor's
    theorem), so U is certainly below or above unless it falls between the two.

    Args:
        exponents: floats within a relative error of 2^-45 of the true exponents.
        exact: the true exponent at a position.
    """
    words = source.words(32, exponents.size)
    low = _taylor_exp(exponents * (1 + SCREEN_MARGIN), 7) - SCREEN_MARGIN
    high = _taylor_exp(exponents * (1 - SCREEN_MARGIN), 8) + SCREEN_MARGIN
    # A sum is off by many times its largest term's unit: beyond 1 the exact path decides.
    near = exponents <= 1
    below = near & (words + 1.0 <= low * 2.0**32)
    unsure = np.flatnonzero(~(below | (near & (words >= high * 2.0**32))))
    for index in unsure:
        real = exp_minus(exact(int(index)))
        below[index] = is_below(source, real, int(words[index]), 32)
    return below


def _taylor_exp(exponents: Array, order: int) -> Array:
    """Σ_{i ≤ order} (−y)^i/i!, by Horner's rule."""
    total = np.ones_like(exponents)
    for step in range(order, 0, -1):
        total = 1 - exponents / step * total
    return total
