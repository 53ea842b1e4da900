"""What is claimed about a mechanism, proved in whole numbers.

Contract: a mechanism by type is a list of whole numbers, its *shares* W_t: the pair (x, y) has type
t with probability W_t / S, S the sum over the types of x's counts. Every claim is decided here in
integers, whatever the solver did: that every pair of neighbours is within a rational that is at
most e^ε (`keeps`), the distortion (rounded up), and the dual bound (rounded down).

Safe dual: for *any* multipliers u ≥ 0 of the moves, Σ_r min over t of r of (c + Gᵀu)_t is a lower
bound on the optimum, G the moves' inequalities with a rational that is at least e^ε. It is
evaluated in fixed point with every rounding directed downwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from whosin.distortion.symmetry.compositions import outer
from whosin.distortion.symmetry.joint_types import Types
from whosin.exact import Array, exp_down, exp_up

BITS = 128
"""Bits behind the point of the fixed-point numbers."""


def shares_of(weights: Array) -> Array:
    """Floats as whole numbers in the same proportions, exactly."""
    mantissa, exponent = np.frexp(np.where(weights > 0, weights, 0.0))
    whole = (mantissa * 2.0**53).astype(np.int64).astype(object)
    used = weights > 0
    least = int(exponent[used].min()) if used.any() else 0
    return np.asarray(whole << np.where(used, exponent - least, 0).astype(object))


@dataclass(frozen=True, eq=False)
class ShareCertificate:
    """The exact data of a program.

    Args:
        types: the joint types.
        masses: the probability of each combination of counts of x, with sum 1.
        cost: what showing b for a costs.
        worlds: the probability of one world with each combination of counts, up to a factor, for
            identifiability; nothing for differential privacy.
    """

    types: Types
    masses: list[Fraction]
    cost: list[list[Fraction]]
    worlds: list[Fraction] | None

    def totals(self, shares: Array) -> Array:
        """S for each combination of counts."""
        result = np.full(len(self.masses), 0, dtype=object)
        np.add.at(result, self.types.inputs, shares)
        return result

    @cached_property
    def _factors(self) -> tuple[Array, Array]:
        """Whole numbers a, b: w_source · a ≤ e^ε · w_target · b, for each move."""
        moves, inputs = self.types.moves, self.types.inputs
        above, below = moves.above.astype(object), moves.below.astype(object)
        if self.worlds is not None:
            common = math.lcm(*(mass.denominator for mass in self.worlds))
            whole = [mass.numerator * (common // mass.denominator) for mass in self.worlds]
            masses = np.array(whole, dtype=object)
            above = above * masses[inputs[moves.source]]
            below = below * masses[inputs[moves.target]]
        return above, below

    def keeps(self, shares: Array, epsilon: float) -> bool:
        """Whether the mechanism is within ε for every pair of neighbours: a proof."""
        moves, inputs = self.types.moves, self.types.inputs
        totals = self.totals(shares)
        if not (totals > 0).all():
            return False
        above, below = self._factors
        bound = exp_down(epsilon)
        left = shares[moves.source] * totals[inputs[moves.target]] * above * bound.denominator
        right = shares[moves.target] * totals[inputs[moves.source]] * below * bound.numerator
        return bool((left <= right).all())

    @cached_property
    def _prices(self) -> tuple[Array, int]:
        """d(t) as whole numbers over a common denominator."""
        common = math.lcm(*(entry.denominator for line in self.cost for entry in line))
        whole = np.array([[int(entry * common) for entry in line] for line in self.cost], object)
        tables = (part.tables.astype(object) for part in self.types.groups)
        return outer(np.add, ((table * whole).sum(axis=(1, 2)) for table in tables)), common

    def distortion(self, shares: Array) -> Fraction:
        """E d(X, Y), at most 2^−120 too large."""
        prices, common = self._prices
        spent = np.full(len(self.masses), 0, dtype=object)
        np.add.at(spent, self.types.inputs, shares * prices)
        total = 0
        for mass, cost, sum_ in zip(self.masses, spent, self.totals(shares), strict=True):
            top, bottom = mass.numerator * cost, mass.denominator * sum_ * common
            total += -((-top << BITS) // bottom)
        return Fraction(total, 1 << BITS)

    def bound(self, multipliers: Array, epsilon: float) -> Fraction:
        """A lower bound on the distortion of every mechanism within ε."""
        used = np.flatnonzero(multipliers > 0)
        moves = self.types.moves
        prices, common = self._prices
        masses = [(mass.numerator << BITS) // mass.denominator for mass in self.masses]
        reduced = np.array(masses, dtype=object)[self.types.inputs] * prices // common
        # Any u ≥ 0 will do, so they are rounded before they are used.
        whole = np.array([int(math.ldexp(u, BITS)) for u in multipliers[used]], dtype=object)
        above, below = (side[used] for side in self._factors)
        top = exp_up(epsilon)
        factor = -((-top.numerator << BITS) // top.denominator)
        np.add.at(reduced, moves.source[used], whole * above // below)
        np.subtract.at(reduced, moves.target[used], (whole * factor >> BITS) + 1)
        order = np.argsort(self.types.inputs, kind="stable")
        starts = np.searchsorted(self.types.inputs[order], np.arange(len(self.masses)))
        least = np.minimum.reduceat(reduced[order], starts)
        return max(Fraction(0), Fraction(int(least.sum()), 1 << BITS))
