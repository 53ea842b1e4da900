"""Leakages by brute force from the definitions, in fractions, sharing no code with the engine."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, combinations, product

Table = list[list[Fraction]]


def random_row(rng: random.Random, size: int, zeros: float) -> list[Fraction]:
    while True:
        parts = [0 if rng.random() < zeros else rng.choice([1, 1, 2, 5, 40]) for _ in range(size)]
        if sum(parts):
            return [Fraction(part, sum(parts)) for part in parts]


def random_table(rng: random.Random, rows: int, columns: int, zeros: float = 0.3) -> Table:
    table = [random_row(rng, columns, zeros) for _ in range(rows)]
    if rng.random() < 0.2:  # two rows alike
        table[-1] = list(table[0])
    return table


def value(masses: Sequence[Fraction], gains: Table) -> Fraction:
    sums = (sum((g * m for g, m in zip(row, masses, strict=True)), Fraction(0)) for row in gains)
    return max(sums)


def vulnerabilities(
    table: Table, prior: Sequence[Fraction], gains: Table
) -> tuple[Fraction, Fraction]:
    """V before and V after."""
    columns = range(len(table[0]))
    after = (
        value([p * row[y] for p, row in zip(prior, table, strict=True)], gains) for y in columns
    )
    return value(prior, gains), sum(after, Fraction(0))


def tries(worlds: int, k: int) -> Table:
    return [
        [Fraction(x in chosen) for x in range(worlds)] for chosen in combinations(range(worlds), k)
    ]


def singling_out(rows: int, masses: Sequence[Fraction], weight: Fraction) -> Table:
    """A row for each set of values of at most this weight: 1 where exactly one row is in it."""
    m = len(masses)
    sets = chain.from_iterable(combinations(range(m), size) for size in range(m + 1))
    light = [each for each in sets if sum(masses[v] for v in each) <= weight]
    worlds = list(product(range(m), repeat=rows))
    return [[Fraction(sum(v in each for v in x) == 1) for x in worlds] for each in light]


def maximal(table: Table) -> Fraction:
    return sum((max(column) for column in zip(*table, strict=True)), Fraction(0))


def pointwise(table: Table, prior: Sequence[Fraction]) -> Fraction:
    best = Fraction(0)
    for y in range(len(table[0])):
        total = sum(p * row[y] for p, row in zip(prior, table, strict=True))
        if total:
            best = max(best, max(row[y] for p, row in zip(prior, table, strict=True) if p) / total)
    return best


def information(table: Table, prior: Sequence[float]) -> float:
    total = 0.0
    for y in range(len(table[0])):
        out = sum(p * float(row[y]) for p, row in zip(prior, table, strict=True))
        for p, row in zip(prior, table, strict=True):
            if p and row[y]:
                total += p * float(row[y]) * math.log(float(row[y]) / out)
    return total


def capacity(table: Table, steps: int = 40_000) -> float:
    """Blahut and Arimoto's method, for long."""
    prior = [1 / len(table)] * len(table)
    for _ in range(steps):
        outs = [
            sum(p * float(row[y]) for p, row in zip(prior, table, strict=True))
            for y in range(len(table[0]))
        ]
        powers = [
            math.exp(
                sum(float(a) * math.log(float(a) / o) for a, o in zip(row, outs, strict=True) if a)
            )
            for row in table
        ]
        weights = [p * power for p, power in zip(prior, powers, strict=True)]
        low, high = math.log(sum(weights)), math.log(max(powers))
        prior = [w / sum(weights) for w in weights]
        if high - low < 1e-10:
            break
    return low


def group_ratio(table: Table, rows: int, values: int, group: int) -> Fraction | float:
    """The largest ratio between tables that differ in at most `group` rows."""
    worlds = list(product(range(values), repeat=rows))
    best: Fraction | float = Fraction(1)
    for (i, x), (j, other) in product(enumerate(worlds), repeat=2):
        if sum(a != b for a, b in zip(x, other, strict=True)) > group:
            continue
        for top, bottom in zip(table[i], table[j], strict=True):
            if top:
                best = max(best, math.inf if not bottom else top / bottom)
    return best


def metric_level(table: Table, distances: Sequence[Sequence[Fraction | float]]) -> float:
    """max |ln ratio| / distance."""
    best = 0.0
    for i, j in product(range(len(table)), repeat=2):
        for top, bottom in zip(table[i], table[j], strict=True):
            if top <= bottom or distances[i][j] == math.inf:
                continue
            if not bottom or not distances[i][j]:
                return math.inf
            best = max(best, math.log(top / bottom) / float(distances[i][j]))
    return best
