"""Finding the largest likelihood ratio in arrays of any size, in bounded memory.

Contract: 0/0 counts as 1 and x/0 as infinity (F1). Works alike on floats and on FLINT
rationals, whose results are exact. Blocks keep temporaries at `BLOCK` elements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from whosin.exact import Array

BLOCK = 1 << 18
SLACK = 1e-15


def blocks(shape: tuple[int, ...], limit: int = BLOCK) -> Iterator[tuple[slice, ...]]:
    """Cut an array of this shape into pieces of at most about `limit` elements, in order."""
    if math.prod(shape) <= limit:
        yield (slice(0, None),) * len(shape)
        return
    inner = math.prod(shape[1:])
    if inner <= limit or len(shape) == 1:
        step = max(1, limit // inner)
        rest = (slice(0, None),) * (len(shape) - 1)
        for start in range(0, shape[0], step):
            yield (slice(start, start + step), *rest)
    else:
        for row in range(shape[0]):
            for piece in blocks(shape[1:], limit):
                yield (slice(row, row + 1), *piece)


def exceeds(value: Any, best: Any) -> bool:
    """value > best for ratios, which may be FLINT rationals or infinite; None is below all."""
    if best is None or value == math.inf:
        return best is None or best != math.inf
    return bool(best != math.inf and value > best)


def largest_ratios(top: Array, bottom: Array) -> tuple[Any, Any]:
    """(max top/bottom, max bottom/top): both directions, for floats with one division each.

    The caller silences NumPy (`quiet`): here that would cost as much as a small division.
    """
    if top.dtype == object:
        return largest_ratio(top, bottom), largest_ratio(bottom, top)
    most = least = top.dtype.type(1)
    cut = ((top[piece], bottom[piece]) for piece in blocks(top.shape))
    for above, below in ((top, bottom),) if top.size <= BLOCK else cut:
        quotient = above / below
        most = max(most, np.fmax.reduce(quotient, axis=None))
        least = min(least, np.fmin.reduce(quotient, axis=None))
    return most, (1 / least if least > 0 else math.inf)


def quiet() -> np.errstate:
    """Divisions by zero are results here, not accidents."""
    return np.errstate(divide="ignore", invalid="ignore", over="ignore")


def largest_ratio(top: Array, bottom: Array) -> Any:
    """max top/bottom over all elements, at least 1; infinite where only the bottom is 0."""
    best: Any = 1.0 if top.dtype != object else 1
    for piece in blocks(top.shape):
        value = _largest(top[piece], bottom[piece])
        if value == math.inf:
            return math.inf
        if value > best:
            best = value
    return best


def first_at_least(top: Array, bottom: Array, value: Any) -> tuple[int, ...]:
    """Where the ratio is the value that `largest_ratio` returned: the first element that has it,
    up to rounding when the value came from the inverse."""
    for piece in blocks(top.shape):
        above, below = top[piece], bottom[piece]
        if above.dtype == object:
            hit = _object_hits(above, below, value)
        else:
            with quiet():
                hit = above / below
            hit = hit >= value * (1 - SLACK)
        if hit.any():
            inside = np.unravel_index(int(np.argmax(hit)), hit.shape)
            return tuple(
                int(part.start) + int(offset) for part, offset in zip(piece, inside, strict=True)
            )
    # Rounding may leave every ratio just below the floor of 1: then no cell is worse than another.
    return (0,) * top.ndim


def _largest(top: Array, bottom: Array) -> Any:
    if top.dtype == object:
        empty = bottom == 0
        if (empty & (top > 0)).any():
            return math.inf
        kept = ~empty
        return (top[kept] / bottom[kept]).max() if kept.any() else 1
    with quiet():
        value = np.fmax.reduce(top / bottom, axis=None)
    return 1.0 if math.isnan(value) else value


def _object_hits(top: Array, bottom: Array, value: Any) -> Array:
    empty = bottom == 0
    if value == math.inf:
        return np.asarray(empty & (top > 0), dtype=bool)
    hits: Array = np.asarray(top >= value * bottom, dtype=bool) & ~np.asarray(empty, dtype=bool)
    if value == 1:
        hits |= np.asarray(empty & (top == 0), dtype=bool)
    return hits
