"""Posteriors from a published table, by a sum over all integer tables, by definition (F23)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

F = Fraction


def brute(
    sizes: Sequence[int], known: Sequence[int], prior: Fraction, fits: Callable[[Any], Fraction]
) -> list[Fraction]:
    """The expectation of each count over all tables, as a posterior."""
    tops, bottom = [F(0)] * len(sizes), F(0)
    for counts in itertools.product(*(range(k, n + 1) for n, k in zip(sizes, known, strict=True))):
        weight = fits(counts)
        if not weight:
            continue
        for x, n, k in zip(counts, sizes, known, strict=True):
            weight *= math.comb(n - k, x - k) * prior ** (x - k) * (1 - prior) ** (n - x)
        bottom += weight
        tops = [top + weight * x for top, x in zip(tops, counts, strict=True)]
    return [
        (top / bottom - k) / (n - k) if n > k else prior
        for top, n, k in zip(tops, sizes, known, strict=True)
    ]


def next_smallest(
    table: Sequence[Sequence[int]], below: int, zeros: str, rows: bool, columns: bool
) -> list[list[bool]]:
    """Which cells are suppressed where small counts are (not 0), and then the smallest other cell
    of each row, and of each column, that has one suppressed cell alone, until none has."""
    height, width = len(table), len(table[0])
    hidden = [[0 < count < below for count in row] for row in table]
    lines = [[(r, c) for c in range(width)] for r in range(height) if rows]
    lines += [[(r, c) for r in range(height)] for c in range(width) if columns]
    changed = True
    while changed:
        changed = False
        for line in lines:
            rest = [(r, c) for r, c in line if not hidden[r][c]]
            rest = [(r, c) for r, c in rest if table[r][c] or zeros == "hidden"]
            if sum(hidden[r][c] for r, c in line) == 1 and rest:
                r, c = min(rest, key=lambda place: table[place[0]][place[1]])
                hidden[r][c] = changed = True
    return hidden
