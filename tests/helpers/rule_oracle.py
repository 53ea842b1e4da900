"""Rules about counts from their definitions, in rationals, sharing no code with the engine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

Row = dict[Any, Fraction]
ZERO, ONE = Fraction(0), Fraction(1)


def shown(kind: str, number: int, count: int) -> Row:
    """What a rule shows for a count."""
    if kind == "exact":
        return {count: ONE}
    if kind == "suppress":
        return {("suppressed" if 0 < count < number else count): ONE}
    if kind == "suppress zeros":
        return {("suppressed" if count < number else count): ONE}
    if kind == "round":
        below = count - count % number
        return {(below if 2 * (count - below) < number else below + number): ONE}
    below = count - count % number
    up = Fraction(count - below, number)
    return {below: 1 - up, below + number: up} if up else {below: ONE}


def changed(keys: Mapping[int, Mapping[int, Fraction]], count: int) -> Row:
    """What a cell key shows; its last row is for all larger counts."""
    return {count + change: p for change, p in keys[min(count, max(keys))].items()}


def after(row: Row, kind: str, number: int) -> Row:
    """What a rule makes of what another shows."""
    result: Row = {}
    for count, p in row.items():
        for output, share in shown(kind, number, count).items():
            result[output] = result.get(output, ZERO) + p * share
    return result


def count_of(beliefs: Sequence[Fraction]) -> list[Fraction]:
    """How many are in, for independent people."""
    weights = [ONE]
    for p in beliefs:
        weights = [
            (weights[c] * (1 - p) if c < len(weights) else ZERO)
            + (weights[c - 1] * p if c else ZERO)
            for c in range(len(weights) + 1)
        ]
    return weights


def sides(rows: Sequence[Row], others: Sequence[Fraction]) -> tuple[Row, Row]:
    """Pr[output | in] and Pr[output | out] of one person, given beliefs in the others."""
    result: tuple[Row, Row] = ({}, {})
    for count, weight in enumerate(count_of(others)):
        for side, extra in zip(result, (1, 0), strict=True):
            for output, p in rows[count + extra].items():
                side[output] = side.get(output, ZERO) + weight * p
    return result


def hockey_stick(top: Row, bottom: Row, factor: Fraction) -> Fraction:
    return sum((max(ZERO, p - factor * bottom.get(o, ZERO)) for o, p in top.items()), ZERO)


def tail(top: Row, bottom: Row, ratio: Fraction) -> Fraction:
    """Pr[r > ratio | in]."""
    return sum((p for o, p in top.items() if p > ratio * bottom.get(o, ZERO)), ZERO)


def quantile(top: Row, bottom: Row, delta: Fraction) -> Fraction | float:
    """The least ratio, of those that occur and 0, exceeded with probability at most δ."""
    ratios: list[Fraction | float] = [
        p / bottom[o] if bottom.get(o) else math.inf for o, p in top.items() if p
    ]
    for ratio in sorted({ZERO, *ratios}):
        above = [
            p
            for o, p in top.items()
            if p and (math.inf if not bottom.get(o) else p / bottom[o]) > ratio
        ]
        if sum(above, ZERO) <= delta:
            return ratio
    return math.inf


def vertices(others: int, known: int, low: Fraction, high: Fraction) -> Iterator[list[Fraction]]:
    """All beliefs in the others at ends: at most `known` certain, the rest at low or high. Counts
    see no order, so each combination is there once."""
    for inside, out in product(range(known + 1), repeat=2):
        if inside + out <= min(known, others):
            rest = others - inside - out
            for at_low in range(rest + 1):
                yield [ONE] * inside + [ZERO] * out + [low] * at_low + [high] * (rest - at_low)
