"""ε from a distortion: the least level at which it can be had."""

from __future__ import annotations

from fractions import Fraction

from whosin.distortion.optimum import BestAtLevel
from whosin.distortion.program.independent_parts import PriorProblem

COARSE, FINE = 1e-9, 4e-15
"""How close in ε to come where programs are solved, and where closed forms are evaluated."""
STEPS = 80


def smallest_epsilon(
    problem: PriorProblem, wanted: Fraction, low: float, high: float
) -> tuple[float, BestAtLevel, float]:
    """The least ε at which the distortion can be had, its answer, and a certified gap in ε.

    The distortion falls with ε: a search by false position, a mechanism showing that an ε is
    enough, and a bound above the distortion proving that one is too small.

    Args:
        low: an ε below which the distortion cannot be had.
        high: one where it can, or nearly.
    """
    top, step = problem.at(high), FINE * max(1.0, high)
    while top.distortion > wanted:
        low, high, step = high, high + step, 8 * step
        top = problem.at(high, top.basis)
    tolerance = (COARSE if top.form == "program" else FINE) * max(1.0, high)
    proved, missing = low, 0.0
    spare = float(wanted - top.distortion)
    basis = top.basis
    for number in range(STEPS):
        if high - proved <= tolerance or high - low <= tolerance / 4:
            break
        middle = (low + high) / 2
        if missing > 0 and number % 3:  # every third step halves: no end may stay where it is
            middle = low + (high - low) * missing / (missing + spare)
            middle = min(max(middle, low + tolerance / 3), high - tolerance / 3)
        if not low < middle < high:
            break
        answer = problem.at(middle, basis)
        basis = answer.basis
        if answer.distortion <= wanted:
            high, top, spare = middle, answer, float(wanted - answer.distortion)
        else:
            low, missing = middle, float(answer.distortion - wanted)
            if answer.bound > wanted:
                proved = middle
    below = tolerance
    while high - proved > 2 * tolerance and below < high - proved:
        if problem.at(high - below, basis).bound > wanted:
            proved = high - below
            break
        below *= 4
    return high, top, max(0.0, high - proved)
