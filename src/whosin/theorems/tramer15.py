"""Bounded priors (Tramèr et al. 2015): T11, and what is left when the bounds are wrong, T12."""

from __future__ import annotations

import math
from fractions import Fraction

from whosin import beliefs
from whosin.errors import InvalidInput
from whosin.exact import Number, exp_float, exp_up, log_down, rational, round_up
from whosin.validation import of_numbers, real, within


@of_numbers
def bounded_from_epsilon(epsilon: float, low: Fraction, high: Fraction) -> float:
    """T11: ε-UDP ⇒ (γ, D_I^[a,b])-PMP and ε-BDP ⇒ (γ, D_B^[a,b])-PMP for the γ returned.

    γ = max( e^ε / ((e^ε−1)a + 1), (e^ε−1)b + 1 ), rounded up. Tight for positive UDP; for BDP
    when a + b = 1, otherwise sufficient only.
    """
    ratio = exp_up(within(epsilon, "epsilon", "at least 0")) if epsilon < math.inf else math.inf
    gamma = beliefs.worst_belief(ratio, rational(low), rational(high)).gamma
    return gamma if isinstance(gamma, float) else round_up(Fraction(gamma))


@of_numbers
def epsilon_from_bounded(gamma: Number, low: Fraction, high: Fraction) -> float:
    """T11, the other way: the largest ε that keeps γ at every prior in [a, b], rounded down.

    e^ε = min(g(a, γ), g(b, γ)). It is what a level of PMP under D_I^[a,b] says about positive UDP.
    """
    ratio = beliefs.ratio_for_gamma(gamma, rational(low), rational(high))
    return log_down(ratio if isinstance(ratio, float) else Fraction(ratio))


def fallback(epsilon: float, relation: str) -> dict[str, float]:
    """T12: γ under D_I and under D_B when nothing bounds the priors.

    ε-UDP gives e^ε and e^(2ε); ε-BDP gives nothing under D_I and e^ε under D_B.
    """
    within(real(epsilon, "epsilon"), "epsilon", "at least 0")
    if relation == "add-remove":
        return {"D_I": exp_float(epsilon), "D_B": exp_float(2 * epsilon)}
    if relation == "replace":
        return {"D_I": math.inf, "D_B": exp_float(epsilon)}
    raise InvalidInput("relation", "add-remove or replace", relation)
