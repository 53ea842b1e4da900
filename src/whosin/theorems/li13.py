"""Theorems of Li et al. 2013 as maps between parameters: T8, T9, T10 and T13.

T1 and T2, on which the rest stands, are `beliefs.gamma` and its sup `beliefs.worst_belief`: a ratio
bound r gives γ = r for every prior, and exactly that over a scalable family. T3 is the level under
`AnyPrior`; T4 to T7 follow from what a family says of its neighbours (`subset_steps`).

Each map takes and returns γ, ε (nats) or ρ. Exact rationals stay exact wherever no exponential
enters. Checked here: that parameters are in range. The caller ensures that the premise holds.
"""

from __future__ import annotations

import math
from fractions import Fraction

from whosin.errors import InvalidInput
from whosin.exact import LARGEST_EXPONENT, Number, exp_up, log_up, round_up
from whosin.validation import of_numbers, within


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

    For m > 2 there is no map: `mechanisms.ExceptFirst` is the counterexample.
    """
    if not Fraction(1, 2) <= rho <= 1:
        raise InvalidInput("rho", "between 1/2 and 1", rho)
    return math.inf if rho == 1 else log_up(rho / (1 - rho))


@of_numbers
def identifiability_from_bounded(epsilon: Number) -> float:
    """T9, the other way: ε-BDP ⇔ (1/(1+e^−ε), 2)-DI."""
    if within(epsilon, "epsilon", "at least 0") >= LARGEST_EXPONENT:
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
