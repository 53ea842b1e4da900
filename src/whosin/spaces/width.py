"""Floats with enough range: a likelihood that underflows to 0 would pass for an impossible output.

A search in floats may only be trusted where every positive entry stays far from the end of the
range, so that its products with prior probabilities and its ratios stay inside. Where doubles do
not reach, extended ones do (e^±11355 on most machines), and where these do not either the work is
refused: a level that cannot be computed is an error, never a guess.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from whosin.errors import Unsupported
from whosin.exact import Array
from whosin.spaces.search import blocks

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


def extended(value: Any) -> Any:
    """A FLINT rational in the widest floats there are, however small it is."""
    power = int(value.p).bit_length() - int(value.q).bit_length()
    # Powers of two apart, the quotient is a double.
    near = Fraction(int(value.p), int(value.q)) / Fraction(2) ** power
    return np.ldexp(np.longdouble(float(near)), power)


def products(weights: Array, array: Array) -> tuple[Array, Array]:
    """FLINT rationals, one a row, and the array's columns, each scaled by a power of two, both in
    floats so wide that no product of the two underflows.

    Raises:
        Unsupported: no float type is.
    """
    powers = np.frexp(array.max(axis=0, initial=0))[1]
    scaled = np.ldexp(array, -powers)
    positive = array > 0
    least = np.min(scaled, where=positive, initial=1)
    lowest = min((_exponent(w) for w in weights if w != 0), default=0) + int(np.frexp(least)[1])
    for dtype in (np.dtype(np.float64), np.dtype(np.longdouble)):
        if lowest - 4 > np.finfo(dtype).minexp and dtype.itemsize >= array.dtype.itemsize:
            number: Any = _double if dtype == np.float64 else extended
            rows = np.array([number(w) if w != 0 else 0 for w in weights], dtype=dtype)
            return rows, scaled.astype(dtype, copy=False)
    raise Unsupported(
        f"a probability of about 2^{lowest} under this prior is below the smallest number there "
        "is; give very unlikely worlds more probability, or none"
    )


def _exponent(value: Any) -> int:
    return int(value.p).bit_length() - int(value.q).bit_length() - 1


def _double(value: Any) -> float:
    return int(value.p) / int(value.q)


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
