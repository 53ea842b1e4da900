"""Semantic privacy and differential privacy (Zhao 2017), tightened: T15 and erratum E3.

Semantic privacy at level s: for every belief b over records, every output y and every row i, the
posteriors with and without row i's data differ by at most s in total variation. An output that is
possible with row i's data and impossible without leaves the second posterior undefined; it counts
as level 1, without which the second claim below would be false.

The proof is in docs/correlated.md. Between the Bayesian pair the second claim needs a default that
is possible beside everything that may be known; a measured level names T15 only where it is.
What is returned is rounded up: no level is understated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from whosin.errors import InvalidInput
from whosin.exact import (
    BALL_BITS,
    Number,
    ball,
    ball_up,
    log_up,
    rational,
)
from whosin.validation import of_numbers, within

LARGEST = 300
"""From here on tanh(ε/2) is 1 in floats, and e^(2ε) is more than any level."""


@of_numbers
def bayesian_from_membership(gamma: Number) -> float:
    """T14 backwards: (D_*, γ)-PMP ⇒ ln γ-Bayesian DP. D_* puts mass p on (x_i, x_K), 1 − p on
    (x_i', x_K) and lets the other rows follow the data; it is downward scalable in p."""
    if not gamma >= 1:
        raise InvalidInput("gamma", "at least 1", gamma)
    return log_up(gamma if gamma == math.inf else rational(gamma))


@of_numbers
def semantic_from_dp(epsilon: Number) -> float:
    """T15: ε-DP ⇒ tanh(ε/2)-semantic privacy; the same for Bayesian DP and Bayesian SP."""
    return _tanh_up(within(epsilon, "epsilon", "at least 0") / 2) if epsilon < LARGEST else 1.0


@of_numbers
def dp_from_semantic(level: Number) -> float:
    """T15, the other way: level-semantic privacy ⇒ ε-DP with ε = 4 artanh(level)."""
    within(level, "level", "between 0 and 1")
    return math.inf if level == 1 else _artanh_up(level, 4)


@of_numbers
def semantic_from_dp_as_published(epsilon: Number) -> float:
    """Zhao17 Theorems 1, 2: e^(2ε) − 1, which says nothing from ε = 0.35 on."""
    if within(epsilon, "epsilon", "at least 0") > LARGEST:
        return math.inf
    return _ball(lambda e: (2 * e).expm1(), epsilon)


@of_numbers
def dp_from_semantic_as_published(level: float) -> float:
    """Zhao17 Theorems 1, 2: (1/2 − 1/(e^ε+1))-SP ⇒ ε-DP, for levels below 1/2 only."""
    if not 0 <= level < 0.5:
        raise InvalidInput("level", "at least 0 and below 1/2", level)
    return _artanh_up(2 * rational(level), 2)


def _tanh_up(value: Number) -> float:
    return min(_ball(lambda x: x.tanh(), value), 1.0)


def _artanh_up(value: Number, times: int) -> float:
    return _ball(lambda x: times * x.atanh(), value)


def _ball(function: Callable[[Any], Any], value: Number) -> float:
    """A function of an exact number, rounded up."""
    from flint import ctx

    with ctx.workprec(2 * BALL_BITS):
        return ball_up(function(ball(value)))
