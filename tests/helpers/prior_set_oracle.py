"""Sets of priors by brute force, from their corners in fractions; no code of the engine's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import record_oracle as records

Point = tuple[Fraction, ...]


def corners(low: Sequence[Fraction], high: Sequence[Fraction]) -> list[Point]:
    """The corners of {low ≤ p ≤ high, Σ p = 1}: all entries but one at a bound."""
    found = set()
    for free in range(len(low)):
        others = [value for value in range(len(low)) if value != free]
        for ends in product((0, 1), repeat=len(others)):
            point = [Fraction(0)] * len(low)
            for value, end in zip(others, ends, strict=True):
                point[value] = (low, high)[end][value]
            point[free] = 1 - sum(point, Fraction(0))
            if low[free] <= point[free] <= high[free]:
                found.add(tuple(point))
    return sorted(found)


def products(rows: Sequence[Sequence[Point]]) -> Iterator[Mapping[Any, Fraction]]:
    """Every prior of independent rows with a listed distribution each."""
    return (records.independent(chosen) for chosen in product(*rows))


def identifiability(rows: Sequence[Sequence[Point]], channel: Any, n: int, m: int) -> Any:
    """The largest identifiability of a prior whose rows are corners or midpoints of them."""
    return max(records.identifiability(prior, channel, n, m) for prior in products(rows))


def log(ratio: Any) -> float:
    return math.inf if ratio == math.inf else records.log(ratio)
