"""Theorems of Li et al. 2013 as maps between parameters (T3 to T10, T13).

T1 and T2, on which the rest stands, are `beliefs.gamma` and its sup `beliefs.worst_belief`: a ratio
bound r gives γ = r for every prior, and exactly that over a scalable family.

Each map takes and returns γ, ε (nats) or ρ. Exact rationals stay exact wherever no exponential
enters. Checked here: that parameters are in range. The caller ensures that the premise holds.
"""

from __future__ import annotations

import math
from fractions import Fraction

from whosin.errors import InvalidInput
from whosin.exact import Number, exp_up, log_up, round_up
from whosin.mechanisms import as_channel
from whosin.spaces import Space, Subsets
from whosin.validation import of_numbers, within

LARGEST = 709


def ratio_between_any_worlds(mechanism: object, space: Space | None = None) -> Fraction | float:
    """T3, Li13 Proposition 3.7: max of Pr[A(T1)=o]/Pr[A(T2)=o] over T1 ⊄ T2.

    Equal to the level of positive membership privacy under D_U. Written from the statement, pair
    by pair, for small spaces; `PositiveMembership(AnyPrior())` finds it in two passes.
    """
    channel = as_channel(mechanism, space).on_worlds()
    if not isinstance(channel.space, Subsets):
        raise InvalidInput("space", "Subsets(…)", repr(channel.space))
    one = Fraction(1)
    pairs = (
        (first, second)
        for first in range(channel.space.worlds)
        for second in range(channel.space.worlds)
        if first & ~second
    )
    return max(
        (
            channel.ratio([(first, one)], [(second, one)], output)
            for first, second in pairs
            for output in range(len(channel.outputs))
        ),
        default=one,
    )


@of_numbers
def independent_from_unbounded(epsilon: Number) -> float:
    """T4, Li13 Theorem 4.5: ε-positive UDP ⇔ (D_I, e^ε)-PMP; likewise negative UDP and NMP."""
    return _exp(within(epsilon, "epsilon", "at least 0"))


@of_numbers
def unbounded_from_independent(gamma: Number) -> float:
    """T4, the other way: (D_I, γ)-PMP ⇔ ln γ-positive UDP."""
    return log_up(_gamma(gamma))


@of_numbers
def fixed_size_from_bounded(epsilon: Number) -> float:
    """T5, Li13 Theorem 4.8: ε-BDP ⇔ (D_B, e^ε)-PMP."""
    return _exp(within(epsilon, "epsilon", "at least 0"))


@of_numbers
def bounded_from_unbounded(epsilon: Number) -> float:
    """T6, Li13 section 4: ε-UDP ⇒ 2ε-BDP. No converse: publishing |T| is 0-BDP and no UDP."""
    within(epsilon, "epsilon", "at least 0")
    return round_up(2 * Fraction(epsilon)) if epsilon < math.inf else math.inf


@of_numbers
def cliques_from_unbounded(epsilon: Number, k: int) -> float:
    """T7, Li13 section 4.1: ε-positive UDP ⇒ (D_NI^k, e^(kε))-PMP, attained by a Laplace count."""
    if k < 1:
        raise InvalidInput("k", "at least 1", k)
    return _exp(k * within(epsilon, "epsilon", "at least 0"))


@of_numbers
def one_of_from_identifiability(rho: Number, m: int) -> Number:
    """T8, Li13 Theorem 5.6: (ρ, m)-DI ⇔ (D_C^m, γ)-PMP, γ = max(ρm, (m−1)/(m(1−ρ)))."""
    if m < 2:
        raise InvalidInput("m", "at least 2", m)
    if not _uniform(rho, m) <= rho <= 1:
        raise InvalidInput("rho", f"between 1/{m} and 1", rho)
    return math.inf if rho == 1 else max(rho * m, (m - 1) / (m * (1 - rho)))


@of_numbers
def identifiability_from_one_of(gamma: Number, m: int) -> Number:
    """T8, the other way: ρ = min(γ/m, 1 − (m−1)/(mγ))."""
    if m < 2:
        raise InvalidInput("m", "at least 2", m)
    gamma = _gamma(gamma)
    return max(min(gamma / m, 1 - (m - 1) / (m * gamma)), _uniform(gamma, m))


@of_numbers
def bounded_from_identifiability(rho: Number) -> float:
    """T9, Li13 Theorem 5.7 for two candidates: (ρ, 2)-DI ⇔ ln(ρ/(1−ρ))-BDP.

    For m > 2 there is no such map: `mechanisms.ExceptFirst` is the counterexample.
    """
    if not Fraction(1, 2) <= rho <= 1:
        raise InvalidInput("rho", "between 1/2 and 1", rho)
    return math.inf if rho == 1 else log_up(rho / (1 - rho))


@of_numbers
def identifiability_from_bounded(epsilon: Number) -> float:
    """T9, the other way: ε-BDP ⇔ (1/(1+e^−ε), 2)-DI."""
    if within(epsilon, "epsilon", "at least 0") >= LARGEST:
        return 1.0
    odds = exp_up(epsilon)
    return round_up(odds / (1 + odds))


@of_numbers
def sampled_from_sampling(growth: Number, beta: Number) -> Number:
    """T10, Li13 Theorem 5.10: (β, ε)-positive DPS ⇔ (D_F^β, γ)-PMP with e^ε = `growth` and
    γ = max(e^ε, (e^ε − 1 + β)/(β e^ε)).

    β < 1: at β = 1 nobody in D_F^β is uncertain, every mechanism is 1-PMP, and only ⇒ is left.
    """
    within(beta, "beta", "strictly between 0 and 1")
    if growth < 1:
        raise InvalidInput("growth", "e^ε, at least 1", growth)
    if growth == math.inf:
        return math.inf
    return max(growth, (growth - 1 + beta) / (beta * growth))


@of_numbers
def sampling_from_sampled(gamma: Number, beta: Number) -> Number:
    """T10, the other way: the largest e^ε of positive DPS that gives γ under D_F^β.

    Both branches of γ must stay below: e^ε ≤ γ, and where γβ < 1, e^ε ≤ (1−β)/(1−γβ).
    """
    within(beta, "beta", "strictly between 0 and 1")
    gamma = _gamma(gamma)
    return min(gamma, (1 - beta) / (1 - gamma * beta)) if gamma * beta < 1 else gamma


@of_numbers
def mixed(*gammas: Number) -> Number:
    """T13, Li13 Theorem 3.11: a mixture of (D, γ_i)-PMP mechanisms is (D, max γ_i)-PMP.

    The paper's proof averages posteriors with weights p and 1 − p; the right weights are
    p Pr[A1∈S] and (1−p) Pr[A2∈S] (erratum E7). The theorem stands.
    """
    if not gammas:
        raise InvalidInput("gammas", "at least one", "none")
    return max(_gamma(gamma) for gamma in gammas)


@of_numbers
def post_processed(gamma: Number) -> Number:
    """T13, Li13 Theorem 3.12: post-processing keeps (D, γ)-PMP."""
    return _gamma(gamma)


def _gamma(value: Number) -> Number:
    within(value, "gamma", "at least 1")
    return Fraction(value) if isinstance(value, int) else value


def _uniform(like: Number, m: int) -> Number:
    """1/m as a float beside a float, so that rounding does not refuse a ρ of 1/m."""
    return 1 / m if isinstance(like, float) else Fraction(1, m)


def _exp(value: Number) -> float:
    """e^value, rounded up; infinite where no float is large enough."""
    return round_up(exp_up(value)) if value < LARGEST else math.inf
