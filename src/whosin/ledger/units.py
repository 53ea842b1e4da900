"""Costs as whole numbers, so that sums are exact: ε and ρ in 10^-12, δ in 10^-18.

Contract: what is spent is rounded up, what may be spent is rounded down. `INFINITE` stands for a
cost that a reading cannot express (Gaussian noise has no pure ε), and sums stop there.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from whosin.errors import InvalidInput
from whosin.exact import rational

EPSILON_UNITS = 10**12
DELTA_UNITS = 10**18
INFINITE = 2**62
LARGEST_EPSILON = 10**6
"""A larger ε protects nobody, and its ρ would not fit into a database's integers."""


def spent(value: object, field: str, units: int = EPSILON_UNITS) -> int:
    """A cost in units, rounded up."""
    return -(-_scaled(value, field, units) // 1)


def allowed(value: object, field: str, units: int = EPSILON_UNITS) -> int:
    """A budget in units, rounded down."""
    return _scaled(value, field, units) // 1


def total(*costs: int) -> int:
    """The exact sum of costs in units."""
    return min(sum(costs), INFINITE)


def concentrated(epsilon: int) -> int:
    """ρ of an ε-DP answer: ε²/2, in units, rounded up (Bun and Steinke 2016, Proposition 1.4)."""
    if epsilon >= INFINITE:
        return INFINITE
    return min(-(-(epsilon**2) // (2 * EPSILON_UNITS)), INFINITE)


def pure(rho: int) -> int:
    """The largest ε, in units, whose ε²/2 is within ρ."""
    return isqrt(2 * EPSILON_UNITS * max(rho, 0))


def number(units: int, scale: int = EPSILON_UNITS) -> Fraction | float:
    """Back from units to a number."""
    return float("inf") if units >= INFINITE else Fraction(units, scale)


def _scaled(value: object, field: str, units: int) -> Fraction:
    result = rational(value, field)
    largest = LARGEST_EPSILON if units == EPSILON_UNITS else 1
    if not 0 <= result <= largest:
        raise InvalidInput(field, f"a number from 0 to {largest}", value)
    return result * units
