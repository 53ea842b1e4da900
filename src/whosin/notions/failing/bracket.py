"""Profiles, failure probabilities and levels at a failure probability, from cases.

Where the cases are all priors of a family, tails are exact. Otherwise a tail may be larger at
priors in between, and F9 bounds it from the profile, whose sup the cases have (F21): any ε gives a
bound, so a first look at few cases picks some, and these are computed on all cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from whosin import beliefs
from whosin.errors import InvalidInput
from whosin.exact import (
    Array,
    Rational,
    exp_down,
    flint_rational,
    rational,
    round_down,
    round_up,
)
from whosin.notions.failing.cases import FEW, Case, Cases, Likelihoods
from whosin.spaces.binomials import CUT

POINTS, NEAR = 48, 13
"""How many ε a first look takes, and how many a second one around the best of them."""
MANY = 400
"""How many crowds are searched for the largest tail, which is a lower end wherever it is."""
TOGETHER = 1 << 17
"""Up to this many numbers are computed at once."""
LARGEST = 700
"""Larger ε do not fit into floats."""
SMALLEST = 1e-12
"""FailureBracket probabilities below this drown in what is cut off."""


@dataclass(frozen=True)
class FailureBracket:
    """How likely it is, given that the person is in, that the likelihood ratio exceeds a number.

    Attributes:
        lower: it is this likely for the case.
        upper: it is at most this likely for every prior of the family.
        exact: whether the two are one number, without rounding.
        case: who sees it: the prior, and in words.
        outputs: the outputs whose ratio exceeds the number.
    """

    ratio: Fraction
    lower: float | Fraction
    upper: float | Fraction
    exact: bool
    case: Case
    outputs: tuple[Any, ...]


@dataclass(frozen=True)
class LevelAt:
    """The least ratio that is exceeded with probability at most δ: a bracket, and the case of its
    lower end."""

    lower: beliefs.WorstBelief
    upper: beliefs.WorstBelief
    lower_ratio: Fraction | float
    upper_ratio: Fraction | float
    exact: bool
    case: Case
    output: Any


def profile(cases: Cases, epsilon: object) -> float:
    """δ(ε): the sup over the family of Σ_o max(0, Pr[o|t] − e^ε Pr[o|¬t]), rounded up (F21)."""
    power = rational(epsilon, "epsilon")
    if not abs(power) <= LARGEST:
        raise InvalidInput("epsilon", f"between -{LARGEST} and {LARGEST}", epsilon)
    if cases.is_small:
        factor = flint_rational(exp_down(power) if power else 1)
        zero = flint_rational(0)
        most = max(
            np.maximum(pair.top - pair.bottom * factor, zero).sum(axis=1).max()
            for pair in cases.pairs(exact=True)
        )
        return min(1.0, round_up(rational(most)))
    return float(_profiles(cases, np.array([float(power)]))[0])


def _profiles(
    cases: Cases,
    epsilons: Array,
    few: int | None = None,
    enough: Callable[[Array], bool] | None = None,
) -> Array:
    """At least δ(ε) for each ε, in floats; with `few` for a first look only, with `enough` up to
    where that is large enough."""
    worst = np.zeros(len(epsilons))
    factors = np.exp(epsilons)
    more, less = 1 + cases.rounding, 1 - cases.rounding
    for pair in cases.pairs(few=few):
        if enough is not None and enough(worst):
            break
        top, bottom = pair.top * more, pair.bottom * less
        if top.size * len(factors) <= TOGETHER:
            shares = np.maximum(top - factors[:, None, None] * bottom, 0).sum(axis=2).max(axis=1)
            np.maximum(worst, shares, out=worst)
            continue
        for index, factor in enumerate(factors):
            shares = top - factor * bottom
            np.maximum(shares, 0, out=shares)
            worst[index] = max(worst[index], float(shares.sum(axis=1).max()))
    return np.minimum(worst * more + CUT, 1.0)


def failure(cases: Cases, ratio: object, proved: float | None = None) -> FailureBracket:
    """A bracket for Pr[r > ratio | t] over the family; `proved` is a bound that `bound_within`
    found."""
    most = rational(ratio, "ratio")
    if not 1 < most <= 10**300:
        raise InvalidInput("ratio", "above 1 and at most 1e300", ratio)
    exact, complete = cases.is_small, cases.family.complete
    lower, upper = Fraction(-1), Fraction(-1)
    best: tuple[Likelihoods, int, Array] | None = None
    for pair in cases.pairs(exact=exact, few=None if complete else MANY):
        for row in range(len(pair.top)):
            at_least, at_most, above = _tail(pair.top[row], pair.bottom[row], most, cases.rounding)
            upper = max(upper, at_most)
            if at_least > lower:
                lower, best = at_least, (pair, row, np.flatnonzero(above))
    assert best is not None
    outputs = tuple(cases.outputs[best[0].first + int(output)] for output in best[2])
    case = best[0].case(best[1])
    if complete and exact:
        return FailureBracket(most, Rational(lower), Rational(upper), True, case, outputs)
    low = Rational(lower) if exact else round_down(lower)
    if complete:
        return FailureBracket(most, low, min(round_up(upper), 1.0), False, case, outputs)
    bound = max(_bound(cases, float(most)) if proved is None else proved, round_up(lower))
    return FailureBracket(most, low, min(bound, 1.0), False, case, outputs)


def bound_within(cases: Cases, ratio: Fraction, delta: Fraction) -> float | None:
    """F9's bound on Pr[r > ratio | t] where it is at most δ; None where it is not.

    It holds for whatever is made of the outputs too, which tails themselves do not: merged outputs
    may fail more often than either.
    """
    most = float(delta) * (1 - 1e-12)
    epsilons, bound = _bounds(float(ratio))
    epsilons = _promising(cases, bound, epsilons)

    def enough(deltas: Array) -> bool:
        return bool(bound(deltas, epsilons).min() > most)

    least = float(bound(_profiles(cases, epsilons, enough=enough), epsilons).min()) * (1 + 1e-12)
    return least if least <= delta else None


def is_above(cases: Cases, ratio: Fraction, delta: Fraction, few: int) -> bool:
    """Whether a first look at a few cases shows that `bound_within` will find none."""
    epsilons, bound = _bounds(float(ratio))
    epsilons = _promising(cases, bound, epsilons, few)
    return bool(bound(_profiles(cases, epsilons, few), epsilons).min() > float(delta))


def _tail(
    top: Array, bottom: Array, ratio: Fraction, rounding: float
) -> tuple[Fraction, Fraction, Array]:
    """(at least, at most, where): Σ of the probabilities of outputs whose ratio exceeds this."""
    if top.dtype == object:
        above = np.asarray(top > bottom * flint_rational(ratio), dtype=bool)
        total = rational(top[above].sum()) if above.any() else Fraction(0)
        return total, total, above
    near, less, more = float(ratio), 1 - 4 * rounding, 1 + 4 * rounding
    above = top * less > bottom * near * more
    maybe = top * more > bottom * near * less
    low = Fraction(max(0.0, float(top[above].sum()) * less - CUT))
    return low, Fraction(float(top[maybe].sum()) * more + CUT), above


def _bound(cases: Cases, ratio: float) -> float:
    """F9: a bound on Pr[r > ratio | t]."""
    epsilons, bound = _bounds(ratio)
    epsilons = _promising(cases, bound, epsilons)
    return float(bound(_profiles(cases, epsilons), epsilons).min()) * (1 + 1e-12)


def _bounds(ratio: float) -> tuple[Array, Callable[[Array, Array], Array]]:
    """Some ε below ln ratio, and what δ(ε) at ε makes of them: δ(ε)/(1 − e^ε/ratio)."""
    top = math.log(ratio) * (1 - 1e-15)

    def bound(deltas: Array, at: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.where(at < top, deltas / -np.expm1(at - top), 1.0)

    return top - np.geomspace(top, top * 1e-4, POINTS), bound


def _promising(
    cases: Cases, bound: Callable[[Array, Array], Array], epsilons: Array, few: int = FEW
) -> Array:
    """The ε whose bounds looked least on a few cases, and its neighbours: bounds fall and then rise
    in ε, since profiles are convex in e^ε."""
    for _ in range(2):
        best = int(np.argmin(bound(_profiles(cases, epsilons, few), epsilons)))
        around = epsilons[max(best - 1, 0) : best + 2]
        epsilons = np.unique(np.append(np.linspace(around[0], around[-1], NEAR), around))
    best = int(np.argmin(bound(_profiles(cases, epsilons, few), epsilons)))
    return np.asarray(epsilons[max(best - 1, 0) : best + 2])


def level_at(cases: Cases, delta: Fraction, positive: bool) -> LevelAt:
    """The least γ that fails with probability at most δ, as a bracket."""
    if delta < Fraction(SMALLEST) and not (cases.is_small and cases.family.complete):
        raise InvalidInput("delta", f"0, or at least {SMALLEST:g} here", float(delta))
    complete, exact = cases.family.complete, cases.is_small
    under, over, best = None, None, None
    for pair in cases.pairs(exact=exact, few=None if complete else MANY):
        for row in range(len(pair.top)):
            at_least, at_most, chosen = _quantile(
                pair.top[row], pair.bottom[row], delta, cases.rounding
            )
            case = pair.case(row)
            ends = beliefs.sides(case.low, case.high, positive)
            here, there = (beliefs.worst_belief(ratio, *ends) for ratio in (at_least, at_most))
            if under is None or here.gamma > under.gamma:
                under, best = here, (at_least, case, cases.outputs[pair.first + chosen])
            if over is None or there.gamma > over.gamma:
                over, upper_ratio = there, at_most
    assert under is not None and over is not None and best is not None
    ratio, case, output = best
    if complete:
        return LevelAt(under, over, ratio, upper_ratio, exact, case, output)
    bound = _least_ratio(cases, float(delta))
    bound = max(ratio, bound if bound == math.inf else Fraction(bound))
    upper = beliefs.worst_belief(bound, *beliefs.sides(*cases.family.beliefs, positive))
    return LevelAt(under, upper, ratio, bound, under.gamma == math.inf, case, output)


def _least_ratio(cases: Cases, delta: float) -> float:
    """F9, solved for the ratio: at most δ of the outputs have one above e^ε/(1 − δ(ε)/δ)."""
    epsilons = np.concatenate([[0.0], np.geomspace(1e-3, 60, POINTS)])

    def ratios(deltas: Array, at: Array) -> Array:
        left = 1 - deltas / (delta * (1 - 1e-12))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(left > 0, np.exp(at) / left, math.inf)

    if np.isinf(ratios(_profiles(cases, epsilons[-1:], FEW), epsilons[-1:])[0]):
        return math.inf
    epsilons = _promising(cases, ratios, epsilons)
    return float(ratios(_profiles(cases, epsilons), epsilons).min()) * (1 + 1e-12)


def _quantile(top: Array, bottom: Array, delta: Fraction, rounding: float) -> tuple[Any, Any, int]:
    """(at least, at most, where): the least ratio that is exceeded with probability at most δ."""
    if top.dtype == object:
        return _exact_quantile(top, bottom, delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = top / bottom
    ratios[np.isnan(ratios)] = 0.0  # impossible either way
    order = np.argsort(-ratios, kind="stable")
    totals, ranked = np.cumsum(top[order]), ratios[order]
    ends = []
    for sums, more in (
        (totals * (1 - rounding) - CUT, 1 - 4 * rounding),
        (totals * (1 + rounding) + CUT, 1 + 4 * rounding),
    ):
        position = min(int(np.searchsorted(sums, float(delta), side="right")), len(order) - 1)
        ratio = float(ranked[position])
        ends.append((ratio if math.isinf(ratio) else Fraction(ratio * more), int(order[position])))
    return ends[0][0], ends[1][0], ends[0][1]


def _exact_quantile(top: Array, bottom: Array, delta: Fraction) -> tuple[Any, Any, int]:
    seen = [output for output in range(len(top)) if top[output] != 0]
    ratios = {
        output: math.inf if bottom[output] == 0 else rational(top[output] / bottom[output])
        for output in seen
    }
    total = Fraction(0)
    for output in sorted(seen, key=lambda output: -ratios[output]):
        total += rational(top[output])
        if total > delta:
            return ratios[output], ratios[output], output
    raise AssertionError("the probabilities of all outputs add up to more than δ")
