"""Semantic privacy and differential privacy (Zhao 2017), tightened: T15 and erratum E3.

Semantic privacy at level s: for every belief b over records, every output y and every row i, the
posteriors with and without row i's data differ by at most s in total variation. An output that is
possible with row i's data and impossible without leaves the second posterior undefined; it counts
as level 1, without which the second claim below would be false.

**Proof of ε-DP ⇒ tanh(ε/2)-SP.** Both posteriors are reweightings of one belief by A(x)(y) and
A(x_−i)(y); let r_x be their ratio, which under ε-DP lies in [e^−ε, e^ε]. For a set S of worlds with
mass q under the second posterior the first gives q m_S / (q m_S + (1−q) m_S̄), where m are mean
ratios; the difference to q is largest when all of S has the largest ratio R and the rest the
smallest, and over q it is then (√k − 1)/(√k + 1) = tanh(¼ ln k) with k = max r / min r ≤ e^(2ε).

**Proof of tanh(ε/4)-SP ⇒ ε-DP.** Let x and x' differ in row i only, with A(x)(y)/A(x')(y) = k. They
have the same x_−i, so under a belief on {x, x'} the posterior without row i's data is that belief
itself, and r_x / r_x' = k. The best weights give tanh(¼ ln k), so tanh(¼ ln k) ≤ tanh(ε/4).
"""

from __future__ import annotations

import math
from fractions import Fraction

from whosin.arguments import of_numbers
from whosin.errors import InvalidInput
from whosin.exact import Number, exp_up, log_up, rational, round_up

LARGEST = 700


@of_numbers
def membership_from_bayesian(epsilon: Number) -> float:
    """T14: ε-Bayesian DP ⇒ (D_*, e^ε)-PMP: D_* puts mass p on (x_i, x_K), 1 − p on (x_i', x_K)
    and lets the other rows follow the data; equivalent, since D_* is downward scalable in p."""
    return round_up(exp_up(_epsilon(epsilon))) if epsilon < LARGEST else math.inf


@of_numbers
def bayesian_from_membership(gamma: Number) -> float:
    """T14, the other way: (D_*, γ)-PMP ⇒ ln γ-Bayesian DP."""
    if not gamma >= 1:
        raise InvalidInput("gamma", "at least 1", gamma)
    return log_up(gamma if isinstance(gamma, float) else Fraction(gamma))


@of_numbers
def semantic_from_dp(epsilon: Number) -> float:
    """T15: ε-DP ⇒ tanh(ε/2)-semantic privacy; the same for Bayesian DP and Bayesian SP.

    tanh(ε/2) = (e^ε − 1)/(e^ε + 1), rounded up.
    """
    if _epsilon(epsilon) == 0:
        return 0.0
    if epsilon >= LARGEST:
        return 1.0
    growth = exp_up(epsilon)
    return round_up((growth - 1) / (growth + 1))


@of_numbers
def dp_from_semantic(level: Number) -> float:
    """T15, the other way: level-semantic privacy ⇒ ε-DP with ε = 4 artanh(level), rounded up.

    4 artanh(s) = 2 ln((1+s)/(1−s)). The Bayesian form needs a default that is possible beside
    everything that may be known of the other rows.
    """
    if not 0 <= level <= 1:
        raise InvalidInput("level", "between 0 and 1", level)
    if level == 1:
        return math.inf
    exact = rational(level)
    return 2 * log_up((1 + exact) / (1 - exact))


@of_numbers
def semantic_from_dp_as_published(epsilon: float) -> float:
    """Zhao17 Theorems 1, 2: e^(2ε) − 1, which says nothing from ε = 0.35 on."""
    return math.expm1(2 * _epsilon(epsilon))


@of_numbers
def dp_from_semantic_as_published(level: float) -> float:
    """Zhao17 Theorems 1, 2: (1/2 − 1/(e^ε+1))-SP ⇒ ε-DP, for levels below 1/2 only."""
    if not 0 <= level < 0.5:
        raise InvalidInput("level", "at least 0 and below 1/2", level)
    return 2 * math.atanh(2 * level)


def _epsilon(value: Number) -> Number:
    if not value >= 0:
        raise InvalidInput("epsilon", "at least 0", value)
    return value
