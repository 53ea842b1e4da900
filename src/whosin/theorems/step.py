"""One implication of the map, and the numbers it works with.

A step carries a level of one notion to a level of another. It is given exact numbers (or ∞) and
answers with an exact number or a float rounded up, so that no level is ever understated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from whosin import beliefs
from whosin.exact import LARGEST_EXPONENT, Number, exp_up, round_up

Exact = Fraction | float
"""A fraction, or ∞."""


@dataclass(frozen=True)
class Step:
    """One implication.

    Attributes:
        theorem: its number, or "definition", "subfamily", … where it needs none.
        carry: the map of levels, increasing.
        tight: whether it carries the smallest level to the smallest level.
    """

    theorem: str
    carry: Callable[[Exact], Number]
    tight: bool = False

    def __call__(self, level: Number) -> Number:
        """The level carried; a float comes out as a float, rounded up."""
        infinite = isinstance(level, float) and math.isinf(level)
        result = self.carry(math.inf if infinite else Fraction(level))
        if isinstance(level, float) and not isinstance(result, float):
            return round_up(Fraction(result))
        return result


def same(level: Exact) -> Exact:
    """The level itself."""
    return level


def exp(epsilon: Exact) -> Exact:
    """At least e^ε."""
    return exp_up(epsilon) if epsilon < LARGEST_EXPONENT else math.inf


def gamma_of_ratio(ratio: Number, low: Fraction, high: Fraction) -> Number:
    """T11: what a ratio does at the worst belief in [low, high], in exact numbers."""
    return beliefs.worst_belief(ratio, low, high).gamma
