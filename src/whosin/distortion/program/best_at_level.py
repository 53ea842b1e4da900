"""What one level gives: a mechanism, its distortion, and a bound on every other's."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from whosin.mechanisms import Mechanism


@dataclass(frozen=True, eq=False)
class BestAtLevel:
    """A mechanism that keeps the level.

    Attributes:
        distortion: of the mechanism, or just above it.
        bound: no mechanism that keeps the level has less.
        form: how it was found: "E_d", "E_i", "likeliest", "constant" (closed forms that are optimal
            by a theorem), or "program".
        basis: for the solver to start from at a nearby level.
        trouble: why the solver stopped, where that was before the optimum.
    """

    distortion: Fraction
    bound: Fraction
    mechanism: Mechanism
    form: str = "program"
    basis: Any = None
    trouble: str = ""

    @property
    def gap(self) -> Fraction:
        return max(self.distortion - self.bound, Fraction(0))
