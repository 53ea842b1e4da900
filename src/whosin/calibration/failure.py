"""Allowing a small failure probability δ (F9), the route for Gaussian noise.

(D, γ, δ)-PMP: for every prior and person, the probability, over an output drawn given that the
person is in, that the promise fails at that output is at most δ. If the hockey-stick divergence
between neighbours at e^ε is at most δ(ε), then

    Pr[ r(o) > g | t ] ≤ inf over ε < ln g of δ(ε) / (1 − e^ε/g).

Any ε gives a valid bound, so a search over finitely many is on the safe side. Tails are never read
off an accountant's distribution: those dominate in hockey-stick divergence, not in tails.

A target that is an ε needs none of this: with a δ it is (ε, δ)-differential privacy, δ(ε) ≤ δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whosin.calibration.rate_targets import RateTarget
from whosin.errors import InvalidInput
from whosin.exact import BALL_BITS, Array, ball, ball_ratio_upper, rational

DeltaProfile = Callable[[Array], Array]
POINTS = 400
FAR = -30.0
"""Below this the tail is a series, before it gets too small for a float."""
TERMS = 13
_erfc = np.frompyfunc(math.erfc, 1, 1)


def log_normal(points: Array) -> Array:
    """ln Φ(x) at each point, to about 14 digits, however far out: for searching in floats, which
    balls certify where a proof depends on it."""
    x = np.asarray(points, dtype=float)
    near = np.maximum(x, FAR)
    tail = np.asarray(_erfc(np.abs(near) / math.sqrt(2)), dtype=float) / 2
    result = np.where(near < 0, np.log(np.maximum(tail, 5e-324)), np.log1p(-np.minimum(tail, 0.5)))
    far = x < FAR
    if far.any():
        result[far] = _log_tail(x[far])
    return result


def _log_tail(x: Array) -> Array:
    """ln Φ(x) = −x²/2 − ln(−x√2π) + ln(1 − 1/x² + 3/x⁴ − 15/x⁶ + …)."""
    inverse, series = x**-2.0, np.ones_like(x)
    for odd in range(TERMS, 0, -2):
        series = 1 - odd * inverse * series
    result: Array = -(x**2) / 2 - np.log(-x) - math.log(2 * math.pi) / 2 + np.log(series)
    return result


@dataclass(frozen=True)
class GaussianPlan:
    """A noise multiplier (σ over sensitivity), and the (ε, δ) of the F9 bound that it meets."""

    multiplier: float
    epsilon: float
    delta: float
    failure: float


def failure_bound(profile: DeltaProfile, ratio: float) -> tuple[float, float, float]:
    """F9: (bound on Pr[r(o) > ratio | t], the ε that gives it, δ(ε) there)."""
    if not ratio > 1:
        raise InvalidInput("ratio", "above 1", ratio)
    top = math.log(ratio)
    gaps = np.geomspace(top, top * 1e-4, POINTS)
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
            raise InvalidInput("target", "within reach of noise below 10^9 sensitivities", "not so")
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


def gaussian_plan(ratio: float, delta: float) -> GaussianPlan:
    """The least Gaussian noise for which r(o) ≤ ratio fails with probability at most δ."""
    multiplier = smallest_multiplier(
        lambda m: failure_bound(gaussian_profile(m), ratio)[0], delta, accuracy=1e-9
    )
    failure, epsilon, dp_delta = failure_bound(gaussian_profile(multiplier), ratio)
    return GaussianPlan(multiplier, epsilon, dp_delta, failure)


def hockey_stick_multiplier(epsilon: Fraction, delta: Fraction) -> float:
    """The least Gaussian noise that is (ε, δ)-differentially private, certified.

    Searched in floats, then enlarged until balls prove that δ(ε) ≤ δ.
    """
    at = np.array([float(epsilon)])
    multiplier = smallest_multiplier(
        lambda m: float(gaussian_profile(m)(at)[0]), float(delta), accuracy=1e-10
    )
    while gaussian_delta(multiplier, epsilon) > delta:
        multiplier *= 1 + 2**-40
    return multiplier


def rate_multiplier(target: RateTarget) -> float:
    """The least Gaussian noise that keeps a rate of all tests, certified in the same way."""
    limit = target.limit
    multiplier = smallest_multiplier(
        lambda m: target.reached(gaussian_profile(m))[0], float(limit), accuracy=1e-10
    )
    while certified_rate(target, multiplier) > limit:
        multiplier *= 1 + 2**-40
    return multiplier


def certified_rate(target: RateTarget, multiplier: float) -> Fraction:
    """At least the rate that tests reach under Gaussian noise of this multiplier."""
    at = rational(target.reached(gaussian_profile(multiplier))[1])
    return target.rate_up(at, gaussian_delta(multiplier, at))


def gaussian_delta(multiplier: float, epsilon: Fraction) -> Fraction:
    """At least δ(ε) = Φ(1/2σ − εσ) − e^ε Φ(−1/2σ − εσ) of Gaussian noise of this multiplier σ."""
    from flint import ctx

    with ctx.workprec(2 * BALL_BITS):
        sigma, level = ball(multiplier), ball(epsilon)
        half, root = 1 / (2 * sigma), ball(2).sqrt()
        with_it, without = ((level * sigma - side * half) / root for side in (1, -1))
        return ball_ratio_upper(with_it.erfc() - level.exp() * without.erfc(), 2)
