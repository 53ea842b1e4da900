"""From a prior belief and a likelihood ratio to a posterior belief, and back.

Throughout r = Pr[S|t] / Pr[S|¬t] and p = Pr[t]. Everything works in exact rationals as well as in
floats, and r may be infinite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from whosin.errors import check_numbers, check_range, invalid_value
from whosin.exact import Number

NEIGHBOUR_RELATIONS = ("add-remove", "replace")
"""Which worlds a likelihood ratio compares: with and without someone, or one for another."""
CLOSE_TO_CERTAIN = Fraction(1, 10**6)


@check_numbers
def posterior(ratio: Number, prior: Number) -> Number:
    """F1: Pr[t|S] = r p / (r p + 1 − p)."""
    if prior in (0, 1):
        return prior
    if ratio == math.inf:
        return prior * 0 + 1
    return ratio * prior / (ratio * prior + 1 - prior)


@check_numbers
def gamma(ratio: Number, prior: Number) -> Number:
    """F4: the smallest γ for which both inequalities of positive membership privacy hold.

    max( r / ((r−1)p + 1), (r−1)p + 1 ) for r ≥ 1, and 1 for r ≤ 1 or p ∈ {0, 1}
    (Li13 Definition 3.1; Tramèr15 Lemma 3 with r in place of its γ).
    """
    if prior in (0, 1) or ratio <= 1:
        return prior * 0 + 1
    if ratio == math.inf:
        return math.inf
    spread = (ratio - 1) * prior + 1
    return max(ratio / spread, spread)


@check_numbers
def largest_ratio(prior: Number, gamma: Number) -> Number:
    """F5: the largest r that keeps γ at this prior (Zhao17 Lemma 1), the inverse of `gamma`."""
    check_range(gamma, "gamma", "at least 1")
    check_range(prior, "prior", "between 0 and 1")
    if gamma == math.inf:
        return math.inf
    gamma = Fraction(gamma) if isinstance(gamma, int) else gamma
    if prior * (1 + gamma) <= 1:
        return (1 - prior) / (1 / gamma - prior)
    return (gamma - 1 + prior) / prior


@dataclass(frozen=True)
class WorstBelief:
    """The prior belief in an interval at which a ratio does most, and what it does there."""

    gamma: Number
    prior: Fraction
    attained: bool


@check_numbers
def worst_belief(ratio: Fraction | float, low: Fraction, high: Fraction) -> WorstBelief:
    """sup of `gamma(ratio, p)` over the uncertain p in [low, high] (F4, F6).

    γ(r, ·) is the larger of a falling and a rising function, so its sup is at an end. At an end of
    0 or 1 it is a limit: then `prior` is a belief whose γ is within one part in a million of it.
    """
    inside = min(max(Fraction(1, 2), low), high)
    if ratio <= 1:
        return WorstBelief(Fraction(1), inside, True)
    if ratio == math.inf:
        return WorstBelief(math.inf, inside, True)
    at_low, at_high = ratio / ((ratio - 1) * low + 1), (ratio - 1) * high + 1
    near = CLOSE_TO_CERTAIN / Fraction(ratio)
    if at_low >= at_high:
        prior = low if low > 0 else min(near, high)
        return WorstBelief(at_low, prior, low > 0)
    prior = high if high < 1 else max(1 - near, low)
    return WorstBelief(at_high, prior, high < 1)


@check_numbers
def closer(ratio: Fraction | float, prior: Fraction, claim: Fraction) -> Fraction:
    """A prior belief further out than `prior`, at which γ is above a claim that is below its limit.

    γ(r, p) > claim where p < (r/claim − 1)/(r − 1) on the falling side and where
    p > (claim − 1)/(r − 1) on the rising one; where neither is possible the belief stays.
    """
    if ratio == math.inf or not ratio > max(claim, Fraction(1)) or gamma(ratio, prior) > claim:
        return prior
    r, claim = Fraction(ratio), max(claim, Fraction(1))
    if 2 * prior < 1:
        return min(prior, (r / claim - 1) / (r - 1) / 2)
    return max(prior, (1 + (claim - 1) / (r - 1)) / 2)


@check_numbers
def sides(low: Fraction, high: Fraction, positive: bool) -> tuple[Fraction, Fraction]:
    """F17: the range of beliefs in t, or of those in ¬t for negative membership."""
    return (low, high) if positive else (1 - high, 1 - low)


@check_numbers
def ratio_for_gamma(gamma: Number, low: Number, high: Number) -> Number:
    """F6: the largest r that keeps γ at every prior in [low, high].

    g(·, γ) rises and then falls, so its least value is at an end. For negative membership pass
    `sides(low, high, False)`.
    """
    return min(largest_ratio(low, gamma), largest_ratio(high, gamma))


@check_numbers
def ratio_for_posterior(posterior: Number, high: Number) -> Number:
    """F8: the largest r that keeps the posterior of every prior up to `high` at most this."""
    if high == 0 or posterior == 1:
        return math.inf
    if not high <= posterior < 1:
        raise invalid_value(
            "posterior", f"below 1 and at least the largest prior, {high}", posterior
        )
    return posterior * (1 - high) / (high * (1 - posterior))


@check_numbers
def gain(ratio: Number, prior: Number) -> Number:
    """Return the posterior minus the prior (F16)."""
    return posterior(ratio, prior) - prior


@check_numbers
def largest_gain(ratio: float, low: float, high: float) -> tuple[float, float]:
    """F16: (gain, prior) where the gain of a ratio is largest on [low, high].

    For r ≥ 1 the gain has one peak, at p* = 1/(1+√r), where it is (√r−1)/(√r+1) = tanh(ε/4) with
    r = e^ε. For r < 1 it is a loss with one trough, so it is largest at an end.
    """
    check_range(ratio, "ratio", "at least 0")
    if ratio < 1:
        return max((float(gain(ratio, end)), float(end)) for end in (low, high))
    if ratio == math.inf:
        return (1 - low, low) if low > 0 else (1.0, 0.0)
    prior = min(max(1 / (1 + math.sqrt(ratio)), float(low)), float(high))
    return float(gain(ratio, prior)), prior


@check_numbers
def gain_stays(most: Fraction, ratio: Fraction, low: Fraction, high: Fraction) -> bool:
    """Whether posterior − p ≤ most at every prior p in [low, high], in exact arithmetic.

    That is (r−1)(1−most)p − (r−1)p² ≤ most, whose left side has its peak at p = (1−most)/2.
    """
    prior = min(max((1 - most) / 2, low), high)
    return (ratio - 1) * prior * (1 - most - prior) <= most


@check_numbers
def ratio_for_gain(most: Number, low: Number, high: Number) -> Number:
    """F16 inverted: the largest r whose gain stays at most `most` at every prior in [low, high].

    The unrestricted answer has its peak at p = 1/(1+√r) = (1−most)/2; where that is outside the
    range, the nearer end decides (see `gain_stays`).
    """
    check_range(most, "gain", "strictly between 0 and 1")
    end = min(max((1 - most) / 2, low), high)
    if end in (0, 1) or end + most >= 1:
        return math.inf
    return (end + most) * (1 - end) / (end * (1 - end - most))


@check_numbers
def identified(epsilon: float, values: int) -> float:
    """F18: ε-identifiability gives Pr[x_i = v | y, the rest] ≤ 1/(1 + (m−1) e^−ε)."""
    return 1 / (1 + (values - 1) * math.exp(-epsilon))
