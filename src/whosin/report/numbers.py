"""Numbers as people read them."""

from __future__ import annotations

import math
from fractions import Fraction


def short(value: float | Fraction) -> str:
    """A few significant digits, with the ratio in front where it is a short one."""
    if value == math.inf:
        return "∞"
    if isinstance(value, Fraction) and value.denominator == 1 and abs(value) < 10**6:
        return str(value.numerator)
    if not -1e300 < value < 1e300:
        return "more than 10^300"
    digits = f"{float(value):.6g}"
    if isinstance(value, Fraction) and value.denominator < 1000 and abs(value.numerator) < 10**4:
        return f"{value.numerator}/{value.denominator} ≈ {digits}"
    return digits


def is_rounded(value: float | Fraction) -> bool:
    """Whether `short` shows fewer digits than the value has."""
    shown = short(value)
    return not ("/" in shown or shown == "∞" or (shown[-1].isdigit() and Fraction(shown) == value))
