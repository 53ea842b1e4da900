"""What showing another value costs, and the answer that ignores the data."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from whosin.distortion.symmetry.parts import Structure
from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.spaces import Records


def check_cost(space: Records, cost: object) -> Array:
    """A distortion matrix: what it costs to show b for a. Hamming where none is given."""
    if cost is None:
        return 1.0 - np.eye(space.values)
    try:
        matrix = np.asarray(cost, dtype=float)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.shape != (space.values,) * 2:
        raise InvalidInput("cost", f"{space.values} × {space.values} numbers", repr(cost))
    if not np.isfinite(matrix).all() or (matrix < 0).any() or np.diag(matrix).any():
        raise InvalidInput("cost", "finite, at least 0, and 0 on the diagonal", repr(cost))
    return matrix


def is_hamming(cost: Array) -> bool:
    return bool((cost == 1.0 - np.eye(len(cost))).all())


def exact_cost(cost: Array) -> list[list[Fraction]]:
    """The matrix as the rationals that its floats are."""
    return [[Fraction(float(entry)) for entry in line] for line in cost]


def expected_cost(row: Sequence[Fraction], matrix: object, cost: Array) -> Fraction:
    """Σ_a p(a) Σ_b matrix[a][b] cost[a][b], exactly."""
    total = Fraction(0)
    for mass, line, prices in zip(row, matrix, exact_cost(cost), strict=True):  # type: ignore[call-overload]
        priced = zip(line, prices, strict=True)
        total += mass * sum((share * price for share, price in priced), Fraction(0))
    return total


def best_constant(structure: Structure, cost: Array) -> tuple[Fraction, Sequence[int]]:
    """The answer that ignores the data: its distortion, and the value shown for each row."""
    return _best_constant(structure, tuple(map(tuple, cost.tolist())))


@lru_cache(maxsize=16)
def _best_constant(
    structure: Structure, cost: tuple[tuple[float, ...], ...]
) -> tuple[Fraction, Sequence[int]]:
    total, answers = Fraction(0), [0] * structure.space.rows
    prices = exact_cost(np.array(cost))
    known: dict[tuple[Fraction, ...], tuple[Fraction, int]] = {}
    for group in structure.groups:
        row = structure.marginals[group[0]]
        if row not in known:
            values = range(len(row))
            expected = [sum((row[a] * prices[a][b] for a in values), Fraction(0)) for b in values]
            known[row] = min((price, b) for b, price in enumerate(expected))
        least, answer = known[row]
        total += len(group) * least
        for position in group:
            answers[position] = answer
    return total, answers
