"""Identifiability and differential privacy on records (Wang et al. 2014, eq. 28): T19."""

from __future__ import annotations

import math

from whosin.exact import Number, rational, round_up
from whosin.validation import of_numbers, within


@of_numbers
def identifiability_from_dp(epsilon: Number, prior_spread: Number) -> float:
    """T19: ε-DP ⇒ (ε + ε_X)-identifiability, ε_X the largest log ratio of neighbours' priors;
    rounded up."""
    for field, value in (("epsilon", epsilon), ("prior spread", prior_spread)):
        within(value, field, "at least 0")
    if math.inf in (epsilon, prior_spread):
        return math.inf
    return round_up(rational(epsilon) + rational(prior_spread))


dp_from_identifiability = identifiability_from_dp
"""T19, the other way: ε-identifiability ⇒ (ε + ε_X)-DP."""
