"""Identifiability and differential privacy on records (Wang et al. 2014, eq. 28): T19, F18."""

from __future__ import annotations

from whosin.arguments import of_numbers
from whosin.errors import InvalidInput


@of_numbers
def identifiability_from_dp(epsilon: float, prior_spread: float) -> float:
    """T19: ε-DP ⇒ (ε + ε_X)-identifiability, ε_X the largest log ratio of neighbours' priors."""
    return _level(epsilon, "epsilon") + _level(prior_spread, "prior spread")


@of_numbers
def dp_from_identifiability(epsilon: float, prior_spread: float) -> float:
    """T19, the other way: ε-identifiability ⇒ (ε + ε_X)-DP."""
    return _level(epsilon, "epsilon") + _level(prior_spread, "prior spread")


def _level(value: float, field: str) -> float:
    if not value >= 0:
        raise InvalidInput(field, "at least 0", value)
    return value
