"""Randomised answers for one row, exact, with their levels.

Without a prior that is E_d (Wang14 eq. 30). With one it is the best ε-private mechanism for that
prior (T21): randomised response among the likeliest cells; a row of another cell is answered by any
of these. E_i (Wang14 eq. 29), the best for a level of identifiability, has a DP level of up to
ε + ε_X, and at the price of that level it changes more rows than E_d does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whosin.distortion.closed.one_row import kept_values
from whosin.errors import InvalidInput
from whosin.exact import Array, exp_down, log_up, probability
from whosin.noise import bernoulli, uniform


@dataclass(frozen=True)
class Response:
    """What becomes of one row's cell.

    Attributes:
        epsilon: the DP level between two values of a row, rounded up.
        kept: the probability that a cell among the shown ones stays as it is.
        changed: the share of rows that change, in the mean over the prior if there is one.
        outputs: the cells that answers come from; None for all.
    """

    name: str
    cells: int
    epsilon: float
    kept: Fraction
    changed: Fraction
    outputs: tuple[int, ...] | None = None

    def words(self) -> str:
        """The mechanism in words."""
        if self.outputs is None:
            return f"{self.name} over {self.cells} cells, keeps {float(self.kept):.1%}"
        changed = f"changes {float(self.changed):.1%} of rows"
        several = f"the {len(self.outputs)} likeliest of {self.cells} cells"
        chosen = "always the likeliest cell" if len(self.outputs) == 1 else several
        return f"{self.name}, {chosen}, {changed} if the prior is right"

    def draw(self, codes: Array) -> Array:
        """An answer for each code, exactly."""
        outputs = np.arange(self.cells) if self.outputs is None else np.array(self.outputs)
        if len(outputs) == 1:
            return np.full(len(codes), outputs[0], codes.dtype)
        ranks = np.full(self.cells, -1)
        ranks[outputs] = np.arange(len(outputs))
        positions = ranks[codes]
        stay = bernoulli(self.kept, len(codes)).astype(bool)
        other = uniform(len(outputs) - 1, len(codes))
        inside = np.where(stay, positions, other + (other >= positions))
        outside = uniform(len(outputs), len(codes)) if (positions < 0).any() else positions
        return outputs[np.where(positions < 0, outside, inside)].astype(codes.dtype)


def uniform_response(cells: int, epsilon: Fraction) -> Response:
    """E_d (Wang14 eq. 30)."""
    if cells < 2:
        raise InvalidInput("columns", "at least two cells together", cells)
    g = max(exp_down(_below(epsilon)), Fraction(1))
    kept = g / (g + cells - 1)
    return Response("E_d", cells, log_up(g), kept, 1 - kept)


def prior_response(cells: int, prior: Sequence[object], epsilon: Fraction) -> Response:
    """The best ε-private answer for a row of this prior (T21), Hamming distortion."""
    if not isinstance(prior, Sequence) or isinstance(prior, str) or len(prior) != cells:
        raise InvalidInput(
            "prior", f"a list of {cells} probabilities, one for each cell", "another"
        )
    if cells < 2:
        raise InvalidInput("columns", "at least two cells together", cells)
    read = tuple(probability(p, "prior") for p in prior)
    total = sum(read, Fraction(0))
    if abs(total - 1) > Fraction(1, 10**9):
        raise InvalidInput("prior", "probabilities that add up to 1", float(total))
    g = max(exp_down(_below(epsilon)), Fraction(1))
    outputs, changed = kept_values(tuple(p / total for p in read), g)
    level = log_up(g) if len(outputs) > 1 else 0.0
    kept = g / (g + len(outputs) - 1)
    return Response("best for the prior (T21)", cells, level, kept, changed, tuple(outputs))


def _below(epsilon: Fraction) -> float:
    """A float so far below that a level computed from it and rounded up stays within ε."""
    return float(epsilon) * (1 - 2**-50) - 1e-13
