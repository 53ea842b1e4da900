"""How debits compose, also for analysts who choose the next question after seeing answers.

A dataset has a total (ε, δ). Two readings of a history count, and one of them must hold:

* *pure*: Σ εᵢ ≤ ε. Adding is right for adaptive analysts.
* *concentrated*: Σ ρᵢ ≤ ρ(ε, δ/2), where an ε-DP answer has ρ = ε²/2 and Gaussian noise of
  standard deviation σ has ρ = Δ²/(2σ²). Stopping before Σ ρᵢ exceeds a bound fixed in advance is
  ρ-zCDP for adaptive analysts (Feldman and Zrnic 2021; Whitehouse et al. 2023).

Answers that are themselves only (εᵢ, δᵢ)-DP may use Σ δᵢ ≤ δ/4.

*Why "one of them" is enough.* Let A be the transcripts on which the pure reading holds and B the
others, on which the concentrated one does. The mechanism that stops where the pure reading ends is
(ε, δ/4)-DP and agrees with ours on A, since readings only grow; the one that stops where the
concentrated reading ends is (ε, δ/2 + δ/4)-DP and agrees with ours on B. For every event S,
P[S] = P[S∩A] + P[S∩B] ≤ e^ε Q[S∩A] + δ/4 + e^ε Q[S∩B] + 3δ/4 = e^ε Q[S] + δ.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from whosin.ledger.units import EPSILON_UNITS, INFINITE


def failure(rho: float, epsilon: float, order: float) -> float:
    """ln δ of ρ-zCDP at ε by the Rényi divergence of one order α > 1.

    δ = e^((α−1)(αρ−ε)) / (α−1) · (1−1/α)^α (Canonne, Kamath and Steinke 2020, Corollary 13). Any
    order gives a valid bound.
    """
    slack = (order - 1) * (order * rho - epsilon)
    return slack - math.log(order - 1) + order * math.log1p(-1 / order)


def best_order(rho: float, epsilon: float) -> float:
    """An order whose bound is about the least; the bound is convex in ln(α − 1) near it."""
    from scipy.optimize import minimize_scalar

    middle = math.log(max((epsilon / rho - 1) / 2, 1e-6))
    found = minimize_scalar(
        lambda x: failure(rho, epsilon, 1 + math.exp(x)),
        bounds=(middle - 12, middle + 12),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return 1 + math.exp(float(found.x))


def holds(rho: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether ρ-zCDP is proved to give (ε, δ)-DP; certified in ball arithmetic."""
    from flint import arb, ctx, fmpq

    if rho <= 0:
        return True
    if delta <= 0 or epsilon <= rho:
        return False
    order = Fraction(best_order(float(rho), float(epsilon)))
    before, ctx.prec = ctx.prec, 200
    try:
        a, r, e, d = (arb(fmpq(x.numerator, x.denominator)) for x in (order, rho, epsilon, delta))
        log_delta = (a - 1) * (a * r - e) - (a - 1).log() + a * (1 - 1 / a).log()
        return bool(log_delta <= d.log())
    finally:
        ctx.prec = before


@lru_cache(maxsize=256)
def concentrated_budget(epsilon: int, delta: Fraction) -> int:
    """The largest ρ, in units, that is proved to give (ε, δ)-DP; 0 where there is none."""
    level = Fraction(epsilon, EPSILON_UNITS)
    low, high = 0, epsilon
    while high - low > 1:
        middle = (low + high) // 2
        if holds(Fraction(middle, EPSILON_UNITS), level, delta):
            low = middle
        else:
            high = middle
    return low


@lru_cache(maxsize=256)
def epsilon_of(rho: int, delta: Fraction) -> int:
    """The least ε, in units, that ρ is proved to give at δ; `INFINITE` where there is none."""
    if rho == 0:
        return 0
    if rho >= INFINITE or delta <= 0:
        return INFINITE
    at = Fraction(rho, EPSILON_UNITS)
    high = EPSILON_UNITS
    while not holds(at, Fraction(high, EPSILON_UNITS), delta):
        high *= 2
        if high >= INFINITE:
            return INFINITE
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        if holds(at, Fraction(middle, EPSILON_UNITS), delta):
            high = middle
        else:
            low = middle
    return high
