"""The normal distribution in floats, for the search for Gaussian noise; balls certify where a proof
depends on it."""

from __future__ import annotations

import math

import numpy as np

from whosin.exact import Array

FAR = -30.0
"""Below this the tail is a series, before it gets too small for a float."""
TERMS = 13
_erfc = np.frompyfunc(math.erfc, 1, 1)


def log_normal(places: Array) -> Array:
    """ln Φ(x) at each place, to about 14 digits, however far out."""
    x = np.asarray(places, dtype=float)
    near = np.maximum(x, FAR)
    tail = np.asarray(_erfc(np.abs(near) / math.sqrt(2)), dtype=float) / 2
    found = np.where(near < 0, np.log(np.maximum(tail, 5e-324)), np.log1p(-np.minimum(tail, 0.5)))
    far = x < FAR
    if far.any():
        found[far] = _log_tail(x[far])
    return found


def _log_tail(x: Array) -> Array:
    """ln Φ(x) = −x²/2 − ln(−x√2π) + ln(1 − 1/x² + 3/x⁴ − 15/x⁶ + …)."""
    inverse, series = x**-2.0, np.ones_like(x)
    for odd in range(TERMS, 0, -2):
        series = 1 - odd * inverse * series
    found: Array = -(x**2) / 2 - np.log(-x) - math.log(2 * math.pi) / 2 + np.log(series)
    return found
