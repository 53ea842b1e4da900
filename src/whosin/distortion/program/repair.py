"""From a solver's answer to a mechanism that keeps the promise.

The closure A'(y|x) = max over x' of e^(−ε' d(x,x')) A(y|x') of a nearly feasible A keeps ε' for the
unnormalised masses; scaling the rows back to sum 1 moves neighbours' ratios by how much their sums
differ, a hair, which ε' = ε − η leaves room for. Whether that was enough is decided elsewhere, in
whole numbers (`certificate`).
"""

from __future__ import annotations

import math

import numpy as np

from whosin.distortion.program.solver import Program
from whosin.exact import Array

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
