"""Where the allelic χ² crosses a threshold, decided exactly.

Contract: a SNP is significant when χ² ≥ c, c > 0. Floating point finds the crossing to within far
less than one allele; wherever that is too close to a whole number to call, integers decide.

With x copies among R cases and y among S controls, D = xS − yR and m = x + y, "above" means D > 0
and 2N D² ≥ c R S m(2N − m). For fixed y this is x ≥ some boundary, which solves a quadratic whose
terms are all positive, so that it loses no digits. The region that is not above is convex.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, ranged


def read_threshold(threshold: object, people: Array) -> Fraction:
    """A threshold that some table of each size reaches: 0 < c ≤ 2N."""
    value = ranged(threshold, "threshold", "above 0")
    if len(people) and value > 2 * int(people.min()):
        most = f"at most 2N = {2 * int(people.min())}, the largest possible χ² of N people"
        raise InvalidInput("threshold", most, threshold)
    return value


def first_above(y: Array, r: Array, s: Array, c: Fraction) -> Array:
    """The smallest x that is above, for y copies among the S others; beyond 2R where none is."""
    edge = boundary(y, r, s, c)
    edge[y >= 2 * s] += 0.5  # exactly 2R, where nothing varies: none is above
    return _settle(edge, lambda at, x: _is_above(x, y[at], r[at], s[at], c))


def boundary(y: Array, r: Array, s: Array, c: Fraction) -> Array:
    """The real x from which on χ² ≥ c with A1 more frequent among cases."""
    n, cr = r + s, float(c) * r
    ny = 2.0 * n * y
    root = np.sqrt(cr * (cr + ny * (2 * s - y) / s))
    edge: Array = n * (ny + cr + root) / (2.0 * n * s + cr) - y
    return edge


def first_above_sharing(m: Array, r: Array, s: Array, c: Fraction) -> Array:
    """The smallest x that is above when x + y = m is fixed; beyond min(m, 2R) where none is."""
    n = r + s
    root = np.sqrt(float(c) * r * s * (m * (2.0 * n - m)) / (2.0 * n))
    boundary = (m * r.astype(float) + root) / n
    boundary[(m == 0) | (m >= 2 * n)] += 0.5  # nothing varies: none is above
    return _settle(boundary, lambda at, x: _is_above(x, m[at] - x, r[at], s[at], c))


def is_above(x: Array, y: Array, r: Array, s: Array, c: Fraction) -> Array:
    """Whether χ² ≥ c with A1 more frequent among cases."""
    n, m = r + s, x + y
    gap = (x * s - y * r).astype(float)
    left, right = 2.0 * n * gap * gap, float(c) * r * s * (m * (2.0 * n - m))
    above: Array = (gap > 0) & (left >= right)
    (close,) = np.nonzero((gap > 0) & (np.abs(left - right) <= 1e-12 * right))
    if len(close):
        above[close] = _is_above(x[close], y[close], r[close], s[close], c)
    return above


def _settle(boundary: Array, above: Callable[[Array, Array], Array]) -> Array:
    """The first whole number at or after the boundary, asking `above` where rounding matters."""
    result = np.ceil(boundary).astype(np.int64)
    near = np.rint(boundary)
    (close,) = np.nonzero(np.abs(boundary - near) <= 1e-7 + 1e-13 * np.abs(boundary))
    if len(close):
        whole = near[close].astype(np.int64)
        result[close] = np.where(above(close, whole), whole, whole + 1)
    return result


def _is_above(x: Array, y: Array, r: Array, s: Array, c: Fraction) -> Array:
    """The same in whole numbers of any size, once for each distinct case."""
    cases, back = np.unique(np.stack([x, y, r, s]), axis=1, return_inverse=True)
    answers = np.array([_exactly(x, y, r, s, c) for x, y, r, s in cases.T.tolist()])
    return answers[back]


def _exactly(x: int, y: int, r: int, s: int, c: Fraction) -> bool:
    n, m, gap = r + s, x + y, x * s - y * r
    if gap <= 0:
        return False
    if m > 2 * n or x > 2 * r:
        return True  # beyond any table: only the order matters
    return 2 * n * gap * gap * c.denominator >= c.numerator * r * s * m * (2 * n - m)
