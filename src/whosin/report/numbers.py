"""Numbers as people read them."""

from __future__ import annotations

import math
from fractions import Fraction

from whosin.exact import Rounding, figures

FOUR = len("9,999")


def short(value: float | Fraction, rounded: Rounding = "nearest") -> str:
    """A few significant digits, with the ratio in front where it is a short one.

    Args:
        rounded: "up" after "at most", "down" after "at least".
    """
    if value == math.inf:
        return "∞"
    if isinstance(value, Fraction) and value.denominator == 1 and abs(value) < 10**6:
        return str(value.numerator)
    if not -1e300 < value < 1e300:
        return "more than 10^300"
    if isinstance(value, Fraction) and value.denominator < 1000 and abs(value.numerator) < 10**4:
        return f"{value.numerator}/{value.denominator} ≈ {figures(value)}"
    return figures(value, 6, rounded)


def point_words(value: float, spec: str = "") -> str:
    """A point of a column, with commas from five digits on: 2024 may be a year, 20,240 is none."""
    text = f"{value:,{spec}}"
    return text.replace(",", "") if len(text.lstrip("-").partition(".")[0]) <= FOUR else text


def side(exact: bool) -> Rounding:
    """How a level is rounded: one that is only bounded, up."""
    return "nearest" if exact else "up"


def is_rounded(value: float | Fraction) -> bool:
    """Whether `short` shows fewer digits than the value has."""
    text = short(value)
    return not ("/" in text or text == "∞" or (text[-1].isdigit() and Fraction(text) == value))
