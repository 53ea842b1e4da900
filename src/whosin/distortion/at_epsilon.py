"""The least distortion at a level."""

from __future__ import annotations

import math

from whosin.distortion.closed.bounds import distortion_bounds
from whosin.distortion.closed.costs import best_constant, is_hamming
from whosin.distortion.mechanisms.per_row import constant, identity
from whosin.distortion.optimum import Optimum
from whosin.distortion.program.independent_parts import Problem
from whosin.distortion.program.solution import Answer
from whosin.distortion.rate.information import information_of, rate_optimum
from whosin.distortion.symmetry.parts import Structure
from whosin.errors import ImpossibleTarget
from whosin.exact import Array, round_up
from whosin.mechanisms import Mechanism

FORMS = {
    "E_i": (("T16", "T17"), "closed form E_i, also best for mutual information"),
    "E_d": (("T16", "T20", "T21"), "closed form E_d: randomised response"),
    "constant": (("T16", "T20", "T21"), "a constant answer is best"),
    "likeliest": (
        ("T16", "T20", "T21"),
        "closed form: row by row, randomised response among the likeliest values",
    ),
    "program": (("T16",), ""),
}
"""What there is to say about an answer: theorems, and a note."""


def at_epsilon(known: Structure, cost: Array, notion: str, epsilon: float) -> Optimum:
    """The best mechanism at ε (or at so many nats)."""
    space, plain = known.space, is_hamming(cost)
    if notion == "identifiability":
        reachable(known, epsilon)
    bounds = distortion_bounds(known, cost, notion, epsilon)

    def ends(value: float, mechanism: Mechanism, information: float) -> Optimum:
        found = (value, epsilon, information, mechanism, 0.0)
        return Optimum(space, notion, "epsilon", *found, *bounds)

    if epsilon == math.inf or (notion == "mutual-information" and epsilon >= known.entropy):
        return ends(0.0, identity(space.values), known.entropy)
    if notion == "mutual-information":
        if epsilon == 0:
            value, shown = best_constant(known, cost)
            return ends(round_up(value), constant(shown, space.values), 0.0)
        return rate_optimum(known, cost, epsilon=epsilon)
    problem = Problem(known, cost, notion)
    epsilon = max(epsilon, problem.floor)
    answer = problem.at(epsilon)
    theorems, note = describe(answer, plain)
    if notion == "identifiability" and epsilon <= known.spread and answer.form == "program":
        note = "at ε_X the program has no interior, so that nothing better could be proved feasible"
    return Optimum(
        space,
        notion,
        "epsilon",
        round_up(answer.distortion) if answer.form == "program" else float(answer.distortion),
        epsilon,
        information_of(known, answer.mechanism),
        answer.mechanism,
        0.0 if answer.form != "program" else round_up(answer.gap),
        *bounds,
        theorems,
        note,
    )


def describe(answer: Answer, plain: bool) -> tuple[tuple[str, ...], str]:
    """The theorems that an answer rests on, and a note."""
    theorems, note = FORMS[answer.form]
    if answer.trouble:
        note = f"the solver stopped early ({answer.trouble}): the gap is what was proved"
    return (theorems if plain else ()), note


def reachable(known: Structure, epsilon: float) -> None:
    """Refuse an identifiability below ε_X."""
    spread = known.spread
    if spread == math.inf and epsilon < math.inf:
        raise ImpossibleTarget(
            "the prior has zeros, so ε_X is infinite and no mechanism has finite identifiability",
            math.inf,
        )
    if epsilon < spread and not math.isclose(epsilon, spread, rel_tol=1e-14):
        raise ImpossibleTarget(
            f"no mechanism has identifiability below ε_X = {spread:.6g}, which is what the prior "
            f"alone gives away; got {epsilon:g}",
            spread,
        )
