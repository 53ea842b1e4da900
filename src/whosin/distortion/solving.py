"""The best mechanism for a level of privacy, or the most privacy for a distortion."""

from __future__ import annotations

import math
from fractions import Fraction

from whosin.distortion.closed.bounds import distortion_bounds, epsilon_bounds
from whosin.distortion.closed.costs import best_constant, check_cost, is_hamming
from whosin.distortion.mechanisms.per_row import constant, identity
from whosin.distortion.optimum import NOTIONS, BestAtLevel, Optimum
from whosin.distortion.over_sets import best_over
from whosin.distortion.program.independent_parts import PriorProblem
from whosin.distortion.program.least_epsilon import smallest_epsilon
from whosin.distortion.rate.information import information_of, rate_optimum
from whosin.distortion.symmetry.detection import structure
from whosin.distortion.symmetry.parts import Structure
from whosin.errors import ImpossibleTarget, InvalidInput, UnknownName
from whosin.exact import Array, rational, round_up
from whosin.extras import needs
from whosin.mechanisms import Mechanism
from whosin.priors import Prior, PriorSet
from whosin.spaces import Space

LARGEST = 700.0
"""Beyond this ε, e^ε does not fit into a float, and a mechanism may as well show the data."""


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


def best(
    space: Space,
    prior: Prior,
    epsilon: object = None,
    distortion: object = None,
    notion: str = "dp",
    cost: object = None,
) -> Optimum:
    """The mechanism with the least distortion at ε, or with the least ε at a distortion.

    Args:
        space: `Records(rows, values)`.
        prior: how the data are distributed. Independent rows or blocks, and rows that it treats
            alike, make large tables possible. For a set (`Hull`, `Box`) the distortion of its worst
            member counts, at an ε of "dp" or "identifiability".
        epsilon: the level: ε, or nats of mutual information.
        distortion: or the expected distortion to stay within.
        notion: "dp" (replace), "identifiability" or "mutual-information".
        cost: m × m, what showing b for a costs; Hamming by default.

    Raises:
        MissingExtra: whosin[tradeoff] is not installed.
        InvalidInput: a negative ε, a distortion outside [0, n], a prior that does not fit.
        ImpossibleTarget: identifiability below ε_X, which no mechanism reaches.
        Unsupported: a size beyond reach; the message says which structure would help.
    """
    needs("tradeoff")
    if notion not in NOTIONS:
        raise UnknownName("notion", str(notion), NOTIONS)
    if (epsilon is None) == (distortion is None):
        got = "none" if epsilon is None else "both"
        raise InvalidInput("epsilon or distortion", "given, one of the two", got)
    if isinstance(prior, PriorSet):
        level = None if epsilon is None else _level(epsilon, notion)
        return best_over(space, prior, cost, notion, level)
    known = structure(space, prior)
    matrix = check_cost(known.space, cost)
    if epsilon is not None:
        return at_epsilon(known, matrix, notion, _level(epsilon, notion))
    most = rational(known.space.rows) * rational(float(matrix.max()))
    wanted = rational(distortion, "distortion")
    if not 0 <= wanted <= most:
        raise InvalidInput("distortion", f"from 0 to {float(most):g}", f"{float(wanted):g}")
    return at_distortion(known, matrix, notion, wanted)


def _level(epsilon: object, notion: str) -> float:
    value = math.inf if epsilon in (math.inf, "inf") else float(rational(epsilon, "epsilon"))
    if value < 0:
        raise InvalidInput("epsilon", "at least 0", f"{value:g}")
    if LARGEST < value < math.inf and notion != "mutual-information":
        raise InvalidInput("epsilon", f"at most {LARGEST:g}, or infinite", f"{value:g}")
    return value


def at_epsilon(known: Structure, cost: Array, notion: str, epsilon: float) -> Optimum:
    """The best mechanism at ε, or at a number of nats."""
    space, plain = known.space, is_hamming(cost)
    if notion == "identifiability":
        reachable(known, epsilon)
    bounds = distortion_bounds(known, cost, notion, epsilon)

    def ends(value: float, mechanism: Mechanism, information: float) -> Optimum:
        result = (value, epsilon, information, mechanism, 0.0)
        return Optimum(space, notion, "epsilon", *result, *bounds)

    if epsilon == math.inf or (notion == "mutual-information" and epsilon >= known.entropy):
        return ends(0.0, identity(space.values), known.entropy)
    if notion == "mutual-information":
        if epsilon == 0:
            value, table = best_constant(known, cost)
            return ends(round_up(value), constant(table, space.values), 0.0)
        return rate_optimum(known, cost, epsilon=epsilon)
    problem = PriorProblem(known, cost, notion)
    epsilon = max(epsilon, problem.floor)
    answer = problem.at(epsilon)
    theorems, note = describe(answer, plain)
    solved = answer.form == "program"
    if notion == "identifiability" and epsilon <= known.spread and solved:
        note = "at ε_X the program has no interior, so nothing better could be proved feasible"
    least = round_up(answer.distortion) if solved else float(answer.distortion)
    result = (least, epsilon, information_of(known, answer.mechanism), answer.mechanism)
    gap = round_up(answer.gap) if solved else 0.0
    return Optimum(space, notion, "epsilon", *result, gap, *bounds, theorems, note)


def describe(answer: BestAtLevel, plain: bool) -> tuple[tuple[str, ...], str]:
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


def at_distortion(known: Structure, cost: Array, notion: str, wanted: Fraction) -> Optimum:
    """The mechanism with the least ε (or mutual information) within a distortion."""
    space, plain = known.space, is_hamming(cost)
    bounds = epsilon_bounds(known, cost, notion, float(wanted))

    def ends(level: float, value: float, made: Mechanism, learned: float, note: str) -> Optimum:
        result = (value, level, learned, made, 0.0)
        return Optimum(space, notion, "distortion", *result, *bounds, (), note)

    if notion == "identifiability" and known.spread == math.inf:
        note = (
            "the prior has zeros: ε_X is infinite, and so is the identifiability of any mechanism"
        )
        return ends(math.inf, 0.0, identity(space.values), known.entropy, note)
    most, table = best_constant(known, cost)
    if wanted >= most:
        floor = known.spread if notion == "identifiability" else 0.0
        made = constant(table, space.values)
        return ends(floor, round_up(most), made, 0.0, "a constant answer is within the distortion")
    if wanted == 0:
        level = known.entropy if notion == "mutual-information" else math.inf
        exact = identity(space.values)
        return ends(level, 0.0, exact, known.entropy, "no distortion: the data themselves")
    if notion == "mutual-information":
        return rate_optimum(known, cost, distortion=float(wanted))
    problem = PriorProblem(known, cost, notion)
    low, high = max(bounds[0], problem.floor), bounds[1]
    if not math.isfinite(high):
        high = max(1.0, 2 * low)
        while problem.at(high).distortion > wanted:
            low, high = high, 2 * high
    level, answer, gap = smallest_epsilon(problem, wanted, low, high)
    theorems, note = describe(answer, plain)
    learned = information_of(known, answer.mechanism)
    result = (round_up(answer.distortion), level, learned, answer.mechanism, gap)
    return Optimum(space, notion, "distortion", *result, *bounds, theorems, note)
