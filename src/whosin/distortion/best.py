"""The best mechanism for a level of privacy, or the most privacy for a distortion."""

from __future__ import annotations

import math

from whosin.distortion.bounds import distortion_bounds, epsilon_bounds, known_threshold
from whosin.distortion.closed_forms import h, h_inverse
from whosin.distortion.information import information_of, rate_optimum, typed_information
from whosin.distortion.linear import Linear, smallest_epsilon
from whosin.distortion.optimal_forms import MOST_WRITTEN, identifiable, randomized_response
from whosin.distortion.optimum import NOTIONS, Optimum
from whosin.distortion.per_row import constant, identity
from whosin.distortion.structure import (
    Structure,
    best_constant,
    check_cost,
    is_hamming,
    structure,
)
from whosin.errors import ImpossibleTarget, InvalidInput, UnknownName
from whosin.exact import Array, rational
from whosin.mechanisms import Mechanism
from whosin.priors import Prior
from whosin.spaces import Space


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
        prior: how the data are distributed. Rows that it treats alike make large tables possible.
        epsilon: the level: ε, or nats of mutual information.
        distortion: or the expected distortion to stay within.
        notion: "dp" (replace), "identifiability" or "mutual-information".
        cost: m × m, what showing b for a costs; Hamming by default.

    Raises:
        InvalidInput: a negative ε, a distortion outside [0, n], a prior that does not fit.
        ImpossibleTarget: identifiability below ε_X, which no mechanism reaches.
        Unsupported: a size beyond reach; the message says which structure would help.
    """
    if notion not in NOTIONS:
        raise UnknownName("notion", str(notion), NOTIONS)
    if (epsilon is None) == (distortion is None):
        raise InvalidInput("epsilon or distortion", "given, one of the two", "both or none")
    known = structure(space, prior)
    matrix = check_cost(known.space, cost)
    if epsilon is not None:
        level = _level(epsilon)
        return _at_epsilon(known, matrix, notion, level)
    most = known.space.rows * float(matrix.max())
    wanted = float(rational(distortion, "distortion"))
    if not 0 <= wanted <= most:
        raise InvalidInput("distortion", f"from 0 to {most:g}", f"{wanted:g}")
    return _at_distortion(known, matrix, notion, wanted)


def _level(epsilon: object) -> float:
    value = math.inf if epsilon == math.inf else float(rational(epsilon, "epsilon"))
    if value < 0:
        raise InvalidInput("epsilon", "at least 0", f"{value:g}")
    return value


def _at_epsilon(known: Structure, cost: Array, notion: str, epsilon: float) -> Optimum:
    space, plain = known.space, is_hamming(cost)
    if notion == "identifiability":
        _reachable(known, epsilon)
    bounds = distortion_bounds(known, cost, notion, epsilon)

    def result(
        value: float,
        mechanism: Mechanism,
        gap: float,
        information: float | None = None,
        theorems: tuple[str, ...] = (),
        note: str = "",
    ) -> Optimum:
        learned = information_of(known, mechanism) if information is None else information
        return Optimum(
            space,
            notion,
            "epsilon",
            value,
            epsilon,
            learned,
            mechanism,
            gap,
            *bounds,
            theorems,
            note,
        )

    if epsilon == math.inf or (notion == "mutual-information" and epsilon >= known.entropy):
        return result(0.0, identity(space.values), 0.0, information=known.entropy)
    if notion == "mutual-information":
        if epsilon == 0:
            value, shown = best_constant(known, cost)
            return result(value, constant(shown, space.values), 0.0, information=0.0)
        return rate_optimum(known, cost, epsilon=epsilon)
    if plain and notion == "identifiability" and epsilon >= _form_from(known):
        return result(
            h(space, epsilon),
            identifiable(known, epsilon),
            0.0,
            theorems=("T16", "T17"),
            note="closed form E_i, also best for mutual information",
        )
    if plain and notion == "dp" and known.spread == 0:
        return result(
            h(space, epsilon),
            randomized_response(epsilon, space.values),
            0.0,
            theorems=("T16",),
            note="closed form E_d: randomised response",
        )
    linear = Linear(known, cost, notion)
    answer = linear.at(epsilon)
    note = ""
    if notion == "identifiability" and epsilon == known.spread:
        note = "at ε_X the program has no interior: the mechanism ignores the data"
    return result(
        answer.distortion,
        answer.mechanism,
        answer.distortion - answer.bound,
        information=typed_information(known, answer),
        theorems=("T16",) if plain else (),
        note=note,
    )


def _at_distortion(known: Structure, cost: Array, notion: str, wanted: float) -> Optimum:
    space, plain = known.space, is_hamming(cost)
    if notion == "identifiability" and known.spread == math.inf:
        _reachable(known, 0.0)
    bounds = epsilon_bounds(known, cost, notion, wanted)

    def result(
        level: float, value: float, mechanism: Mechanism, gap: float, information: float, note: str
    ) -> Optimum:
        return Optimum(
            space,
            notion,
            "distortion",
            value,
            level,
            information,
            mechanism,
            gap,
            *bounds,
            ("T16",) if plain else (),
            note,
        )

    most, shown = best_constant(known, cost)
    if wanted >= most:
        floor = known.spread if notion == "identifiability" else 0.0
        return result(
            floor,
            most,
            constant(shown, space.values),
            0.0,
            0.0,
            "a constant answer is within the distortion",
        )
    if wanted == 0:
        level = known.entropy if notion == "mutual-information" else math.inf
        return result(
            level,
            0.0,
            identity(space.values),
            0.0,
            known.entropy,
            "no distortion: the data themselves",
        )
    if notion == "mutual-information":
        return rate_optimum(known, cost, distortion=wanted)
    exact = h_inverse(space, wanted) if plain else math.inf
    if plain and notion == "identifiability" and exact >= _form_from(known):
        made = identifiable(known, exact)
        return result(exact, wanted, made, 0.0, information_of(known, made), "closed form E_i")
    if plain and notion == "dp" and known.spread == 0:
        made = randomized_response(exact, space.values)
        return result(exact, wanted, made, 0.0, information_of(known, made), "closed form E_d")
    linear = Linear(known, cost, notion)
    low, high = max(bounds[0], linear.floor), bounds[1]
    if not math.isfinite(high):
        high = max(1.0, 2 * low)
        while linear.at(high).distortion > wanted:
            low, high = high, 2 * high
    else:
        high += 1e-9
        while linear.at(high).distortion > wanted:
            high += 1e-6 * max(1.0, high)
    level, answer, gap = smallest_epsilon(linear, wanted, low, high)
    return result(
        level, answer.distortion, answer.mechanism, gap, typed_information(known, answer), ""
    )


def _form_from(known: Structure) -> float:
    """Where E_i takes over: ε̃_X, or never where it would have to be written out at length."""
    if known.rows is None and known.space.worlds > MOST_WRITTEN:
        return math.inf
    return known_threshold(known)


def _reachable(known: Structure, epsilon: float) -> None:
    spread = known.spread
    if spread == math.inf:
        raise ImpossibleTarget(
            "the prior has zeros, so ε_X is infinite and no mechanism has finite identifiability",
            math.inf,
        )
    if epsilon < spread and not math.isclose(epsilon, spread, rel_tol=1e-14):
        if epsilon == 0 and known.spread == 0:
            return
        raise ImpossibleTarget(
            f"no mechanism has identifiability below ε_X = {spread:.6g}, which is what the prior "
            f"alone gives away; got {epsilon:g}",
            spread,
        )
