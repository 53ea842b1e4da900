"""Counting: ways to split a number of rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache, reduce
from itertools import accumulate, combinations

import numpy as np

from whosin.exact import Array


def compositions(total: int, parts: int) -> Array:
    """All ways to write `total` as an ordered sum of `parts` whole numbers."""
    count = math.comb(total + parts - 1, parts - 1)
    bars = np.array(list(combinations(range(total + parts - 1), parts - 1)), dtype=np.int64)
    bars = bars.reshape(count, parts - 1)
    ends = np.full((count, 1), total + parts - 1)
    starts = np.full((count, 1), -1)
    return np.diff(np.hstack([starts, bars, ends]), axis=1) - 1


def numbers_of_rows(numbers: dict[bytes, int], rows: Array) -> Array:
    """The number of each row, by a dictionary of rows' bytes."""
    return np.array([numbers[row.tobytes()] for row in np.ascontiguousarray(rows)], dtype=np.int64)


def outer(combine: np.ufunc, parts: Iterable[Array]) -> Array:
    """One number for each combination of entries of the parts, the last part varying fastest."""
    return reduce(lambda total, part: combine.outer(total, part).ravel(), parts)


@lru_cache(maxsize=64)
def log_factorials(most: int) -> Array:
    """ln k! for k up to `most`."""
    return np.array([math.lgamma(k + 1) for k in range(most + 1)])


def multinomial(counts: list[int]) -> int:
    """How many ways there are to arrange these numbers of each kind."""
    totals = accumulate(counts)
    return math.prod(math.comb(total, count) for total, count in zip(totals, counts, strict=True))
