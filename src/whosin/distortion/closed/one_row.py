"""One row under differential privacy, Hamming distortion: the best mechanism in closed form (T21).

Keep the k likeliest values. Among them answer by randomised response; a value outside them is
answered by any of the k, uniformly. The proof is in docs/theory/numbers.md.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

from whosin.distortion.mechanisms.per_row import Matrix, PerRow
from whosin.distortion.optimum import BestAtLevel
from whosin.exact import exp_down, exp_up


def kept_values(row: tuple[Fraction, ...], g: Fraction) -> tuple[list[int], Fraction]:
    """(the values that the best mechanism answers with, its distortion), with g for e^ε."""
    order = sorted(range(len(row)), key=lambda value: -row[value])
    kept = list(accumulate(row[value] for value in order))
    many = min(range(1, len(row) + 1), key=lambda k: _distortion(kept, g, k))
    return order[:many], _distortion(kept, g, many)


def likeliest(row: tuple[Fraction, ...], epsilon: float) -> BestAtLevel:
    """The best mechanism for one row with this distribution, and the bound that it meets."""
    low, high = exp_down(epsilon), exp_up(epsilon)
    outputs, distortion = kept_values(row, low)
    many = len(outputs)
    kept = list(accumulate(sorted(row, reverse=True)))
    # e^ε is between the two rationals, and the distortion falls with it.
    bound = min(_distortion(kept, high, k) for k in range(1, len(row) + 1))
    form = "constant" if many == 1 else "E_d" if many == len(row) else "likeliest"
    matrix = _matrix(outputs, len(row), low)
    return BestAtLevel(distortion, bound, PerRow((matrix,)), form)


def _distortion(kept: list[Fraction], g: Fraction, k: int) -> Fraction:
    """What keeping the k likeliest costs, with g for e^ε."""
    return kept[k - 1] * (k - 1) / (g + k - 1) + 1 - kept[k - 1]


def _matrix(outputs: list[int], values: int, g: Fraction) -> Matrix:
    total = g + len(outputs) - 1
    inside = set(outputs)

    def entry(a: int, b: int) -> Fraction:
        if b not in inside:
            return Fraction(0)
        if a not in inside:
            return Fraction(1, len(outputs))
        return (g if a == b else Fraction(1)) / total

    return tuple(tuple(entry(a, b) for b in range(values)) for a in range(values))
