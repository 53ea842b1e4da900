"""The least level at a distortion."""

from __future__ import annotations

import math
from fractions import Fraction

from whosin.distortion.at_epsilon import describe
from whosin.distortion.closed.bounds import epsilon_bounds
from whosin.distortion.closed.costs import best_constant, is_hamming
from whosin.distortion.mechanisms.per_row import constant, identity
from whosin.distortion.optimum import Optimum
from whosin.distortion.program.independent_parts import Problem
from whosin.distortion.program.least_epsilon import smallest_epsilon
from whosin.distortion.rate.information import information_of, rate_optimum
from whosin.distortion.symmetry.parts import Structure
from whosin.exact import Array, round_up
from whosin.mechanisms import Mechanism


def at_distortion(known: Structure, cost: Array, notion: str, wanted: Fraction) -> Optimum:
    """The mechanism with the least ε (or mutual information) within a distortion."""
    space, plain = known.space, is_hamming(cost)
    bounds = epsilon_bounds(known, cost, notion, float(wanted))

    def ends(level: float, value: float, made: Mechanism, learned: float, note: str) -> Optimum:
        found = (value, level, learned, made, 0.0)
        return Optimum(space, notion, "distortion", *found, *bounds, (), note)

    if notion == "identifiability" and known.spread == math.inf:
        note = (
            "the prior has zeros: ε_X is infinite, and so is the identifiability of any mechanism"
        )
        return ends(math.inf, 0.0, identity(space.values), known.entropy, note)
    most, shown = best_constant(known, cost)
    if wanted >= most:
        floor = known.spread if notion == "identifiability" else 0.0
        made = constant(shown, space.values)
        return ends(floor, round_up(most), made, 0.0, "a constant answer is within the distortion")
    if wanted == 0:
        level = known.entropy if notion == "mutual-information" else math.inf
        exact = identity(space.values)
        return ends(level, 0.0, exact, known.entropy, "no distortion: the data themselves")
    if notion == "mutual-information":
        return rate_optimum(known, cost, distortion=float(wanted))
    problem = Problem(known, cost, notion)
    low, high = max(bounds[0], problem.floor), bounds[1]
    if not math.isfinite(high):
        high = max(1.0, 2 * low)
        while problem.at(high).distortion > wanted:
            low, high = high, 2 * high
    level, answer, gap = smallest_epsilon(problem, wanted, low, high)
    theorems, note = describe(answer, plain)
    return Optimum(
        space,
        notion,
        "distortion",
        round_up(answer.distortion),
        level,
        information_of(known, answer.mechanism),
        answer.mechanism,
        gap,
        *bounds,
        theorems,
        note,
    )
