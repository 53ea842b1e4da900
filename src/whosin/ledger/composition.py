"""How debits compose, also for analysts who choose the next question after seeing answers.

A dataset has a total (ε, δ). Two readings of a history count, and one of them must hold:

* *pure*: Σ εᵢ ≤ ε. Adding is right for adaptive analysts.
* *concentrated*: Σ ρᵢ ≤ ρ(ε, δ/2), where an ε-DP answer has ρ = ε²/2 and Gaussian noise of
  standard deviation σ has ρ = Δ²/(2σ²). Stopping before Σ ρᵢ exceeds a bound fixed in advance is
  ρ-zCDP for adaptive analysts (Feldman and Zrnic 2021; Whitehouse et al. 2023, Theorem 1).

Answers that are themselves only (εᵢ, δᵢ)-DP may use Σ δᵢ ≤ δ/4 in all.

*Why "one of them" is enough.* Fix two neighbours; P and Q are the distributions of the whole
transcript. An (εᵢ, δᵢ)-DP answer is, with probability 1 − δᵢ, one of an εᵢ-DP pair (Bun and Steinke
2016, section 8), so P = P' + a part of mass at most δ/4, and P' = w·P₀, Q ≥ w·Q₀ with the same
weight w(transcript) ≤ 1, where P₀ and Q₀ have no δᵢ. Readings only grow, so a transcript on which a
reading holds at the end is one on which it held throughout. Let A be the transcripts on which the
pure reading holds and B the others. On A, P₀ ≤ e^ε Q₀ at every transcript. On B our mechanism
agrees with the one that stops where the concentrated reading ends, which is (ε, δ/2)-DP. For every
event S, P[S] ≤ δ/4 + P'[S∩A] + P'[S∩B] ≤ δ/4 + e^ε Q[S∩A] + e^ε Q[S∩B] + δ/2 ≤ e^ε Q[S] + δ.

*What was spent so far* is a stronger claim: it is made at a time that the analyst chose, about an ε
that depends on the answers. The pure sum may be read at any time, since the argument for A holds at
every transcript with that transcript's own Σ εᵢ. A ρ may not, but levels fixed in advance may:
level j ends at ρⱼ = ρ·2^(−j/4), and reads at δ/2 for j = 0 and at δ/(4j(j+1)) below, δ/4 in all.
With Bⱼ the transcripts that are read at level j, and εⱼ its ε, the same sum gives P[S] ≤ ∫_S e^(ε
of the transcript) dQ + δ/4 + δ/2 + δ/4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from whosin.exact import ball, ball_end
from whosin.ledger.units import EPSILON_UNITS, INFINITE

CERTIFYING_BITS = 200
SEARCHED = (-16.0, 28.0)
"""Where ln(α − 1) is looked for: the best α − 1 is about √(ln(1/δ)/ρ)."""


@lru_cache(maxsize=1024)
def epsilon_of(rho: int, delta: Fraction) -> int:
    """An ε, in units and rounded up, that ρ-zCDP is proved to give at δ.

    ε = αρ + (ln(1/δ) + (α−1) ln(1−1/α) − ln α) / (α−1) for any order α > 1 (Canonne, Kamath and
    Steinke 2020, Corollary 13): the best order is looked for in floats, its ε is certified.
    """
    if rho == 0:
        return 0
    if rho >= INFINITE or delta <= 0:
        return INFINITE
    at, log_delta = rho / EPSILON_UNITS, _log(delta)
    order = _best(lambda a: a * at + _excess(a, log_delta))
    return min(INFINITE, max(0, math.ceil(_upper(order, delta, Fraction(rho, EPSILON_UNITS)))))


@lru_cache(maxsize=1024)
def concentrated_limit(epsilon: int, delta: Fraction) -> int:
    """The largest ρ, in units, that is proved to give (ε, δ)-DP; 0 where there is none."""
    if delta <= 0 or epsilon <= 0:
        return 0
    level, log_delta = epsilon / EPSILON_UNITS, _log(delta)
    order = _best(lambda a: (_excess(a, log_delta) - level) / a)
    left = epsilon - _upper(order, delta, Fraction(0))
    return min(INFINITE - 1, max(0, math.floor(left / order)))


def concentrated_budget(epsilon: int, delta: Fraction) -> int:
    """A little less than the limit, so that every machine's search for the order proves it."""
    limit = concentrated_limit(epsilon, delta)
    return max(0, limit - limit // 2**40 - 2)


def level(rho: int, budget: int) -> tuple[int, int]:
    """(j, ρⱼ) of the lowest level that ends at ρ or above; ρⱼ = budget·2^(−j/4), rounded down."""
    assert 0 < rho <= budget
    result = max(0, math.floor(4 * math.log2(budget / rho)) + 1)
    while _level_end(result, budget) < rho:
        result -= 1
    return result, _level_end(result, budget)


def level_share(number: int) -> Fraction:
    """The part of δ that pays for reading at a level."""
    return Fraction(1, 4 * number * (number + 1)) if number else Fraction(1, 2)


def _level_end(number: int, budget: int) -> int:
    return math.isqrt(math.isqrt(budget**4 >> number))


def _excess(order: float, log_delta: float) -> float:
    return (-log_delta - math.log(order)) / (order - 1) + math.log1p(-1 / order)


def _upper(order: Fraction, delta: Fraction, rho: Fraction) -> Fraction:
    """At least the ε of the order, in units."""
    from flint import ctx

    with ctx.workprec(CERTIFYING_BITS):
        a, d, r = map(ball, (order, delta, rho))
        result = EPSILON_UNITS * (a * r + (-d.log() - a.log()) / (a - 1) + (1 - 1 / a).log())
        return ball_end(result.upper())


def _best(score: Callable[[float], float]) -> Fraction:
    """An order of about the least score: a grid in ln(α − 1), then golden sections."""
    low, high = SEARCHED
    steps = [low + (high - low) * step / 88 for step in range(89)]
    start = min(steps, key=lambda x: score(1 + math.exp(x)))
    low, high = start - 0.5, start + 0.5
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(50):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if score(1 + math.exp(left)) < score(1 + math.exp(right)):
            high = right
        else:
            low = left
    return Fraction(1 + math.exp((low + high) / 2))


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)
