"""Randomised answers for one row: E_d for any prior, E_i for a declared one; exact, with levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whosin.distortion import identifiable, structure
from whosin.distortion.optimal_forms import exp_down
from whosin.errors import ImpossibleTarget, InvalidInput
from whosin.exact import Array, log_down, log_up, probability
from whosin.noise import bernoulli, randomized_response, uniform
from whosin.priors import Independent
from whosin.spaces import Records

MOST_VALUES = 512
"""Of an E_i, whose matrix is written out."""


@dataclass(frozen=True)
class Response:
    """What becomes of one row's cell.

    Attributes:
        epsilon: the measured DP level between two values of a row, rounded up.
        kept: the probability that a cell stays as it is (the least over cells).
        matrix: Pr[answer given cell], for E_i; None for E_d, which needs no matrix.
    """

    name: str
    cells: int
    epsilon: float
    kept: Fraction
    matrix: tuple[tuple[Fraction, ...], ...] | None = None

    def draw(self, codes: Array) -> Array:
        """An answer for each code, exactly."""
        if self.matrix is not None:
            return randomized_response(codes, self.matrix)
        stay = bernoulli(self.kept, len(codes)).astype(bool)
        other = uniform(self.cells - 1, len(codes))
        return np.where(stay, codes, other + (other >= codes))


def uniform_response(cells: int, epsilon: Fraction) -> Response:
    """E_d (Wang14 eq. 30)."""
    if cells < 2:
        raise InvalidInput("columns", "at least two cells together", cells)
    g = exp_down(_below(epsilon))
    return Response("E_d", cells, log_up(g), g / (g + cells - 1))


def prior_response(cells: int, prior: Sequence[object], epsilon: Fraction) -> Response:
    """E_i (Wang14 eq. 29) at the largest ε whose measured DP level is within the share."""
    if not isinstance(prior, Sequence) or isinstance(prior, str) or len(prior) != cells:
        raise InvalidInput("prior", f"a list of {cells} probabilities, one a cell", "another")
    if cells > MOST_VALUES:
        raise InvalidInput("columns", f"at most {MOST_VALUES} cells with a prior", cells)
    read = tuple(probability(p, "prior") for p in prior)
    total = sum(read, Fraction(0))
    if abs(total - 1) > Fraction(1, 10**9) or min(read) == 0:
        raise InvalidInput("prior", "positive probabilities that add up to 1", float(total))
    read = tuple(p / total for p in read)
    spread = log_up(max(read) / min(read))
    level = _below(epsilon - Fraction(spread))
    problem = structure(Records(rows=1, values=cells), Independent(list(read)))
    try:
        if level <= 0:
            raise ImpossibleTarget("", None)
        matrix = identifiable(problem, level).matrices[0]  # type: ignore[attr-defined]
    except ImpossibleTarget:
        least = spread + max(0.0, float(log_down(1 / min(read) - (cells - 1))))
        accepted = f"at least {least:.4g} for this prior"
        raise InvalidInput("epsilon", accepted, float(epsilon)) from None
    measured = max(max(column) / min(column) for column in zip(*matrix, strict=True))
    kept = min(matrix[place][place] for place in range(cells))
    return Response("E_i", cells, log_up(measured), kept, matrix)


def _below(epsilon: Fraction) -> float:
    """A float so far below that a level computed from it and rounded up stays within ε."""
    return float(epsilon) * (1 - 2**-50) - 1e-13
