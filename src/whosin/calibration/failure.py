"""Allow a small failure probability δ (F9): Gaussian noise, and counts against uncertain
adversaries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from whosin.calibration.rate_targets import RateTarget
from whosin.errors import InvalidInput, invalid_value, spell
from whosin.exact import BALL_BITS, Array, ball, ball_ratio_upper, exact_fraction, round_down
from whosin.families import AtMostKnown
from whosin.noise.distributions import LaplaceNoise
from whosin.spaces.quotients import two_binomials

# Allowing a small failure probability δ (F9), the route for Gaussian noise.
#
# (D, γ, δ)-PMP: for every prior and person, the probability, over an output drawn given that the
# person is in, that the promise fails at that output is at most δ. If the hockey-stick divergence
# between neighbours at e^ε is at most δ(ε), then
#
#     Pr[ r(o) > g | t ] ≤ inf over ε < ln g of δ(ε) / (1 − e^ε/g).
#
# Any ε gives a valid bound, so a search over finitely many is on the safe side. Tails are never
# read off an accountant's distribution: those dominate in hockey-stick divergence, not in tails.
#
# A target that is an ε needs none of this: with a δ it is (ε, δ)-differential privacy, δ(ε) ≤ δ.

DeltaProfile = Callable[[Array], Array]
PROFILE_POINTS = 400
LOWEST_LOG = -30.0
"""Below this the tail is a series, before it gets too small for a float."""
VERTEX_COUNT = 13
_erfc = np.frompyfunc(math.erfc, 1, 1)


def log_normal(points: Array) -> Array:
    """ln Φ(x) at each point, to about 14 digits, however far out: for searching in floats, which
    balls certify where a proof depends on it."""
    x = np.asarray(points, dtype=float)
    near = np.maximum(x, LOWEST_LOG)
    tail = np.asarray(_erfc(np.abs(near) / math.sqrt(2)), dtype=float) / 2
    result = np.where(near < 0, np.log(np.maximum(tail, 5e-324)), np.log1p(-np.minimum(tail, 0.5)))
    far = x < LOWEST_LOG
    if far.any():
        result[far] = _log_tail(x[far])
    return result


def _log_tail(x: Array) -> Array:
    """ln Φ(x) = −x²/2 − ln(−x√2π) + ln(1 − 1/x² + 3/x⁴ − 15/x⁶ + …)."""
    inverse, series = x**-2.0, np.ones_like(x)
    for odd in range(VERTEX_COUNT, 0, -2):
        series = 1 - odd * inverse * series
    result: Array = -(x**2) / 2 - np.log(-x) - math.log(2 * math.pi) / 2 + np.log(series)
    return result


def failure_bound(profile: DeltaProfile, ratio: float) -> tuple[float, float, float]:
    """F9: (bound on Pr[r(o) > ratio | t], the ε that gives it, δ(ε) there)."""
    if not ratio > 1:
        raise invalid_value("ratio", "above 1", ratio)
    top = math.log(ratio)
    gaps = np.geomspace(top, top * 1e-4, PROFILE_POINTS)
    epsilons = np.maximum(top - gaps, 0.0)
    deltas = np.asarray(profile(epsilons), dtype=float)
    bounds = deltas / -np.expm1(-gaps)
    best = int(np.argmin(bounds))
    return min(1.0, float(bounds[best])), float(epsilons[best]), float(deltas[best])


def gaussian_profile(
    multiplier: float, sample_rate: float = 1.0, log_cdf: DeltaProfile = log_normal
) -> DeltaProfile:
    """δ(ε) of Gaussian noise with σ = multiplier · sensitivity, exactly (Balle and Wang 2018).

    Sampled at rate q it is (1−q) N(0, σ²) + q N(1, σ²) with the person against N(0, σ²) without:
    the loss at x exceeds ε from x = σ² ln((e^ε − 1 + q)/q) + 1/2 on, everywhere if e^ε ≤ 1 − q.

    Args:
        log_cdf: ln Φ; SciPy's is faster on many points.
    """
    with np.errstate(divide="ignore"):
        rest, rate = np.log1p(-sample_rate), math.log(sample_rate)

    def profile(epsilons: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            near = np.log1p(np.expm1(epsilons) / sample_rate)
            far = epsilons + np.log1p((sample_rate - 1) * np.exp(-epsilons)) - rate
            cut = multiplier * np.where(np.abs(epsilons) < 1, near, far) + 0.5 / multiplier
            without = log_cdf(-cut)
            above = np.logaddexp(rest + without, rate + log_cdf(1 / multiplier - cut))
            deltas = np.exp(above) * -np.expm1(np.minimum(epsilons + without - above, 0))
            return np.where(epsilons > rest, deltas, -np.expm1(epsilons))

    return profile


def out_of_reach(reason: str) -> InvalidInput:
    """The end of a search for noise that found none."""
    hint = "choose a weaker target, or another delta"
    return InvalidInput(f"the target is out of reach: {reason}", field="target", hint=hint)


def smallest_multiplier(
    bound: Callable[[float], float],
    goal: float,
    start: float = 1.0,
    accuracy: float = 1e-6,
    floor: float = 1e-9,
) -> float:
    """The least multiplier whose bound meets the goal, from above, by bisection on its logarithm.

    `bound` must fall as the multiplier grows; what is returned has been seen to meet the goal. At
    the floor the search ends: less noise than that is not looked for.
    """
    low = high = start
    while bound(high) > goal:
        low, high = high, high * 2
        if high > 1e9:
            raise out_of_reach("no noise below 10^9 sensitivities was found to keep it")
    while low == high or bound(low) <= goal:
        high, low = low, low / 2
        if low < floor:
            return high
    while high / low > 1 + accuracy:
        middle = math.sqrt(low * high)
        if bound(middle) <= goal:
            high = middle
        else:
            low = middle
    return high


def gaussian_plan(ratio: float, delta: float) -> tuple[float, float, float, float]:
    """(σ over sensitivity, failure, ε, δ(ε)): the least Gaussian noise for which r(o) ≤ ratio fails
    with probability at most δ, and what F9 says of it."""
    multiplier = smallest_multiplier(
        lambda m: failure_bound(gaussian_profile(m), ratio)[0], delta, accuracy=1e-9
    )
    return multiplier, *failure_bound(gaussian_profile(multiplier), ratio)


def hockey_stick_multiplier(epsilon: Fraction, delta: Fraction) -> float:
    """The least Gaussian noise that is (ε, δ)-differentially private, certified.

    Searched in floats, then enlarged until balls prove that δ(ε) ≤ δ.
    """
    at = np.array([round_down(epsilon)])
    multiplier = smallest_multiplier(
        lambda m: float(gaussian_profile(m)(at)[0]), round_down(delta), accuracy=1e-10
    )
    return _enlarge_until(lambda m: gaussian_delta(m, epsilon) <= delta, multiplier)


def rate_multiplier(target: RateTarget) -> float:
    """The least Gaussian noise that keeps a rate of all tests, certified in the same way."""
    limit = target.limit
    multiplier = smallest_multiplier(
        lambda m: target.reached(gaussian_profile(m))[0], round_down(limit), accuracy=1e-10
    )
    return _enlarge_until(lambda m: certified_rate(target, m) <= limit, multiplier)


def _enlarge_until(is_certified: Callable[[float], bool], multiplier: float) -> float:
    """The multiplier, or one at most a few times as large that is certified.

    Each step is twice the last one: floats that lost few digits cost hardly any noise, and the
    search ends where they lost them all.
    """
    for step in range(-40, 2):
        if is_certified(multiplier):
            return multiplier
        multiplier *= 1 + 2.0**step
    raise out_of_reach("its numbers are too extreme for the search")


def certified_rate(target: RateTarget, multiplier: float) -> Fraction:
    """At least the rate that tests reach under Gaussian noise of this multiplier."""
    at = exact_fraction(target.reached(gaussian_profile(multiplier))[1])
    return target.rate_up(at, gaussian_delta(multiplier, at))


def gaussian_delta(multiplier: float, epsilon: Fraction) -> Fraction:
    """At least δ(ε) = Φ(1/2σ − εσ) − e^ε Φ(−1/2σ − εσ) of Gaussian noise of this multiplier σ."""
    from flint import ctx

    with ctx.workprec(2 * BALL_BITS):
        sigma, level = ball(multiplier), ball(epsilon)
        half, root = 1 / (2 * sigma), ball(2).sqrt()
        with_it, without = ((level * sigma - side * half) / root for side in (1, -1))
        return ball_ratio_upper(with_it.erfc() - level.exp() * without.erfc(), 2)


# A count, exact or with noise, against adversaries who are uncertain about nearly everyone.
#
# `AtMostKnown(k, low, high)` with a failure probability (F19): for each event the profile is
# multilinear in the others' beliefs, so its sup is where each of the n − 1 − k uncertain others is
# at low or at high. Their number is then a sum of two binomials; that distribution, and its
# convolution with geometric noise, is log-concave, so the likelihood ratio of "one more" grows with
# the count and the worst event of each level is a tail: one pass of cumulative sums gives the whole
# profile.
#
# Without a failure probability uncertainty about others buys nothing: beyond every centre the ratio
# of Laplace or geometric noise is e^(1/scale) whatever the others do, and an exact count of n
# people has the output n, which reveals them all.

CUT_PROBABILITY = 1e-15
"""Added to every δ(ε): more than all the probability that is cut off."""
ROUNDING_ERROR = 1e-10
"""More than the relative error of any tail: at most 10^5 roundings of positive terms."""
FIRST_VERTICES = 33
MAX_GEOMETRIC_SCALE = 10_000
"""Searches end here: more noise on a count is not looked for."""


def count_profile(
    entities: int, family: AtMostKnown, scale: float = 0.0, vertices: int | None = None
) -> DeltaProfile:
    """δ(ε) between a count with one person and without, the others as uncertain as the family says.

    Args:
        scale: of geometric noise, α = e^(−1/scale); 0 for an exact count.
        vertices: how many of the extreme priors to try: for a search, not for a certificate.
    """
    unsure = max(0, entities - 1 - family.k)
    low, high = map(float, family.bounds)
    noise = _geometric_weights(scale)
    every = range(unsure + 1) if low < high else range(1)
    if vertices is not None and len(every) > vertices:
        tried = sorted({round(x) for x in np.linspace(0, unsure, vertices)})
    else:
        tried = list(every)

    def sup(epsilons: Array) -> Array:
        worst = np.zeros(len(epsilons))
        for at_low in tried:
            _, rest = two_binomials(at_low, low, unsure - at_low, high)
            ratios, above, below = _ratio_tails(np.convolve(rest, noise))
            first = np.searchsorted(ratios, epsilons, side="right")
            near = np.searchsorted(ratios, epsilons - ROUNDING_ERROR, side="right")
            result = above[first] - np.exp(epsilons) * below[first]
            worst = np.maximum(worst, result + 2 * ROUNDING_ERROR * above[near])
        return np.minimum(worst + CUT_PROBABILITY, 1.0)

    return sup


def _ratio_tails(weights: Array) -> tuple[Array, Array, Array]:
    """For outputs in increasing order: ln of the ratio with over without, and the probabilities of
    each upper tail with and without the person (one entry more, for the empty tail).

    Weights that are 0 as floats, at either end, are cut off: `NUMERIC_SLACK` counts them, and the
    ratio of two of them is no number.
    """
    weights = np.trim_zeros(weights)
    with_it = np.concatenate([[0.0], weights])
    without = np.concatenate([weights, [0.0]])
    with np.errstate(divide="ignore"):
        ratios = np.log(with_it) - np.log(without)
    ratios = np.maximum.accumulate(ratios)  # log-concave: already so, up to rounding
    above, below = (np.append(np.cumsum(side[::-1])[::-1], 0.0) for side in (with_it, without))
    return ratios, above, below


def _geometric_weights(scale: float) -> Array:
    """Two-sided geometric noise, cut off where less than e^−40 is left."""
    if scale > MAX_GEOMETRIC_SCALE:
        most = spell(MAX_GEOMETRIC_SCALE)
        reason = f"no geometric noise of a scale of at most {most} was found to keep it"
        raise out_of_reach(reason)
    return LaplaceNoise(Fraction(scale)).probabilities(math.ceil(40 * scale) + bool(scale))


def _certified_scale(bound: Callable[..., float], goal: float, start: float) -> float:
    """The least scale, possibly 0, whose bound meets the goal: searched on a few of the extreme
    priors, then certified on all of them (`bound(scale, None)`)."""
    scale = smallest_multiplier(bound, goal, start, accuracy=1e-3) if bound(0.0) > goal else 0.0
    while bound(scale, None) > goal:
        scale = scale * 1.02 if scale else 0.05
    return scale


@lru_cache(maxsize=64)
def least_scale(
    entities: int, family: AtMostKnown, epsilon: float, delta: float
) -> tuple[float, float, float]:
    """(scale, ε, δ): the least geometric noise, possibly none, for which a count is (ε, δ)-DP
    against the family: δ(ε) ≤ δ between a count with one person and without, and the reverse.

    Exchanging in and out turns one direction into the other, and beliefs p into 1 − p.
    """
    at = np.array([epsilon])
    low, high = family.bounds
    sides = {family, AtMostKnown(family.k, 1 - high, 1 - low)} if low + high != 1 else {family}

    def bound(scale: float, vertices: int | None = FIRST_VERTICES) -> float:
        return max(float(count_profile(entities, side, scale, vertices)(at)[0]) for side in sides)

    return _certified_scale(bound, delta, 1 / epsilon), epsilon, delta


@lru_cache(maxsize=64)
def smallest_scale(
    entities: int, family: AtMostKnown, ratio: float, delta: float
) -> tuple[float, float, float, float]:
    """(scale, failure, ε, δ(ε)): the least geometric noise, possibly none, for which the ratio of a
    count exceeds `ratio` with probability at most δ given that the person is in."""

    @lru_cache(maxsize=2)
    def bound(scale: float, vertices: int | None = FIRST_VERTICES) -> tuple[float, float, float]:
        return failure_bound(count_profile(entities, family, scale, vertices), ratio)

    scale = _certified_scale(lambda *given: bound(*given)[0], delta, 1 / math.log(ratio))
    return scale, *bound(scale, None)
