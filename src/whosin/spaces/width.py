"""Floats with enough range: a likelihood that underflows to 0 would pass for an impossible output.

A search in floats may only be trusted where every positive entry stays far from the end of the
range, so that its products with prior probabilities and its ratios stay inside. Where doubles do
not reach, extended ones do (e^±11355 on most machines), and where these do not either the work is
refused: a level that cannot be computed is an error, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.errors import Unsupported
from whosin.exact import Array
from whosin.spaces.search import blocks


class Underflow(Exception):
    """A search in floats met a sum so small that terms may have been lost: it must be repeated
    with scaled columns, or exactly. Never leaves the library."""


FLOOR = 2.0**-900
"""Sums of probabilities below this, relative to the largest likelihood of their output, may have
lost terms: those are below 2^−1022, and there may be many."""
ROOM = 0.5
"""The part of a type's range of exponents that entries may use; the rest is for products."""


def smallest(dtype: Any) -> Any:
    """The least positive number of a float type that a search may meet."""
    return np.ldexp(dtype.type(1), int(np.finfo(dtype).minexp * ROOM))


def is_narrow(array: Array) -> bool:
    """Whether some positive entry is too small for its own type of float."""
    least = smallest(array.dtype)
    return any(
        bool(((array[piece] > 0) & (array[piece] < least)).any()) for piece in blocks(array.shape)
    )


def trust(sums: Array, largest: Array, possible: Callable[[], Array]) -> None:
    """Check sums of probabilities times likelihoods, one for each output (the last axis).

    Args:
        largest: the largest likelihood of each output.
        possible: which sums are positive in truth; asked for only where some are small.

    Raises:
        Underflow: a positive sum is too small to be trusted.
    """
    if sums.dtype == object:
        return
    least = np.ldexp(sums.dtype.type(1), np.finfo(sums.dtype).minexp + 122)
    low = sums < np.maximum(largest * FLOOR, least)
    if low.any() and (low & possible()).any():
        raise Underflow


def scaled(array: Array) -> Array:
    """The array with each column times a power of two, so that its largest entry is about 1."""
    return np.asarray(np.ldexp(array, -np.frexp(array.max(axis=0))[1]))


def extended(value: Any) -> Any:
    """A FLINT rational in the widest floats there are, however small it is."""
    power = _power(value)
    # Powers of two apart, the quotient is a double.
    near = Fraction(int(value.p), int(value.q)) / Fraction(2) ** power
    return np.ldexp(np.longdouble(float(near)), power)


def products(weights: Array, array: Array) -> tuple[Array, Array]:
    """FLINT rationals, one for each row, and the array's columns. Each is scaled by a power of two,
    and both are in floats so wide that no product of the two underflows.

    Raises:
        Unsupported: no float type is.
    """
    array = scaled(array)
    least = np.min(array, where=array > 0, initial=1)
    kinds = dict.fromkeys(weights)  # often few
    lowest = min((_power(w) - 1 for w in kinds if w != 0), default=0) + int(np.frexp(least)[1])
    for dtype in (np.dtype(np.float64), np.dtype(np.longdouble)):
        if lowest - 4 > np.finfo(dtype).minexp and dtype.itemsize >= array.dtype.itemsize:
            number: Any = extended if dtype != np.float64 else lambda w: int(w.p) / int(w.q)
            numbers = {w: number(w) if w != 0 else 0 for w in kinds}
            rows = np.array([numbers[w] for w in weights], dtype=dtype)
            return rows, array.astype(dtype, copy=False)
    raise Unsupported(
        f"a probability of about 2^{lowest} under this prior is below the smallest number there "
        "is; give very unlikely worlds more probability, or none"
    )


def _power(value: Any) -> int:
    """About the binary logarithm of a FLINT rational."""
    return int(value.p).bit_length() - int(value.q).bit_length()


def widened(array: Array) -> Array:
    """The same numbers in the widest floats there are."""
    return array.astype(np.longdouble)


def exponential(exponents: Array) -> Array:
    """e^exponents, in doubles where they reach and else in extended floats.

    Raises:
        Unsupported: no float type reaches down to the smallest entry.
    """
    lowest = float(exponents.min(initial=0.0))
    for dtype in (np.dtype(np.float64), np.dtype(np.longdouble)):
        if lowest >= float(np.log(smallest(dtype))):
            return np.asarray(np.exp(exponents.astype(dtype, copy=False)))
    raise Unsupported(
        f"the noise is too small for the range of the statistic: a likelihood of e^{lowest:.4g} "
        "is below the smallest number there is; use a larger scale or fewer entities"
    )
