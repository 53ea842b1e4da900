"""Exact confidence bounds for one probability (Clopper and Pearson 1934).

Contract: no normal approximation. The special functions are floats, so every bound is checked
against the binomial tail that defines it and moved outwards until the tail, with room for rounding,
is small enough: a bound may be wider than the exact one by about one part in 10^9, never narrower.
"""

from __future__ import annotations

from whosin.errors import InvalidInput
from whosin.exact import rational

ROUNDING = 1e-9
"""Relative room for the rounding of special functions, whose own errors are some 10^-12."""


def read_confidence(confidence: object) -> tuple[float, float]:
    """A confidence, and the error that it leaves, rounded down."""
    level = rational(confidence, "confidence")
    if not 0.5 <= level < 1:
        raise InvalidInput("confidence", "at least 0.5 and below 1", confidence)
    return float(level), float(1 - level) * (1 - 1e-15)


def at_least(hits: int, trials: int, probability: float) -> float:
    """Pr[Binomial(trials, probability) ≥ hits]."""
    from scipy.special import betainc

    if hits <= 0:
        return 1.0
    return float(betainc(hits, trials - hits + 1, probability)) if hits <= trials else 0.0


def lower(hits: int, trials: int, error: float) -> float:
    """The p below which this many hits, or more, have a probability of at most `error`."""
    from scipy.special import betaincinv

    if hits == 0:
        return 0.0
    bound = float(betaincinv(hits, trials - hits + 1, error))
    step = ROUNDING
    while bound > 0 and at_least(hits, trials, bound) > error * (1 - ROUNDING):
        bound, step = max(0.0, bound * (1 - step)), step * 2
    return bound


def upper(hits: int, trials: int, error: float) -> float:
    """The p above which this many hits, or fewer, have a probability of at most `error`."""
    return 1 - lower(trials - hits, trials, error)
