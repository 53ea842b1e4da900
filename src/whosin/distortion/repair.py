"""From a solver's answer to a mechanism that keeps the promise exactly.

The closure A'(y|x) = max over x' of e^(−ε' d(x,x')) A(y|x') of a nearly feasible A keeps ε' for the
unnormalised masses; scaling the rows back to sum 1 moves neighbours' ratios by how much their sums
differ, a hair, which ε' = ε − η leaves room for. Whether it was enough is then *checked*, for every
pair of neighbours: computed in floats whose error is bounded, and accepted only if it is below a
lower bound of e^ε by more than that error, so that the claim holds for the rationals that the
floats are. The level that is reported is that of the worst pair, in exact rationals.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from whosin.distortion.program import Program
from whosin.exact import Array, log_up

MARGIN = 1e-12
"""More than the relative error of a ratio of two weights, their row sums and the odds."""
SMALLEST = 1e-280


def closed(program: Program, weights: Array, epsilon: float) -> Array:
    """The closure at ε, by relaxation along moves until nothing changes, and scaled to sum 1."""
    moves = program.types.moves
    factor = program.left * math.exp(-epsilon)
    current = np.where(weights < SMALLEST, 0.0, weights)
    for _ in range(4 * sum(program.types.sizes) + 8):
        before = current
        current = before.copy()
        np.maximum.at(current, moves.target, before[moves.source] * factor)
        if (current <= before * (1 + 1e-15)).all():
            break
    sums = np.bincount(program.types.inputs, current, len(program.masses))
    if not (sums > 0).all():
        return np.zeros_like(current)
    return np.asarray(current / sums[program.types.inputs])


def overshoot(program: Program, weights: Array, epsilon: float) -> float:
    """By how much the largest log ratio of neighbours exceeds ε (negative: room to spare)."""
    return _largest(program, weights)[0] - epsilon


def keeps(program: Program, weights: Array, epsilon: float) -> bool:
    """Whether every pair of neighbours is certainly within e^ε."""
    largest, _ = _largest(program, weights)
    return largest <= epsilon - MARGIN * max(1.0, epsilon)


def level(program: Program, weights: Array, odds: Fraction | None = None) -> float:
    """The level of the worst pair of neighbours: exact rationals of the floats, rounded up.

    Args:
        odds: the exact ρ of that pair, where it is not 1.
    """
    value, worst = _largest(program, weights)
    if worst is None or value <= 0:
        return 0.0
    if value == math.inf:
        return math.inf
    moves = program.types.moves
    top, bottom = (Fraction(float(weights[side[worst]])) for side in (moves.source, moves.target))
    ratio = top * int(moves.above[worst]) / (bottom * int(moves.below[worst]))
    return max(
        0.0, log_up(ratio * (Fraction(float(program.odds[worst])) if odds is None else odds))
    )


def _largest(program: Program, weights: Array) -> tuple[float, int | None]:
    moves = program.types.moves
    if not len(weights) or not (weights > 0).any():
        return math.inf, None
    top, bottom = weights[moves.source] * program.left, weights[moves.target]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(top > 0, np.log(top) - np.log(bottom), -math.inf)
    worst = int(logs.argmax())
    return float(logs[worst]), worst
