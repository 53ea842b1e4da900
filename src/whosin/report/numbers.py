"""Numbers as people read them.

Contract: what stands after "at most" is rounded up, after "at least" down (`exact.Rounding`);
nothing is rounded to a certainty that it is not.
"""

from __future__ import annotations

import math
from fractions import Fraction

from whosin.exact import Rounding, format_decimals, format_figures

FOUR_DIGIT_WIDTH = len("9,999")
EPSILON_DIGITS, DUST_SHARE = 6, 1e-10


def format_count(count: int) -> str:
    """A number of things, with commas."""
    return f"{count:,}"


def format_plural(count: int, noun: str) -> str:
    """A number of things and what they are: 1 row, 2,000 rows."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def format_general(value: float, digits: int = 6) -> str:
    """A number with at most so many digits, rounded to the nearest: a δ that somebody gave, or an
    estimate."""
    return "∞" if value == math.inf else f"{float(value):.{digits}g}"


def format_fixed(value: float, digits: int) -> str:
    """A number with this many decimals, and commas; nothing is shown as −0."""
    return "∞" if value == math.inf else f"{round(float(value), digits) + 0.0:,.{digits}f}"


def format_at_least(value: float) -> str:
    """A number with four decimals, rounded down."""
    return "∞" if value == math.inf else f"{math.floor(value * 10_000) / 10_000:.4f}"


def format_epsilon(epsilon: float | Fraction, rounded: Rounding = "down") -> str:
    """An ε or ρ with six significant digits, rounded down, but for the last units of a ledger: a
    budget that is typed elsewhere keeps its promise, and what was spent of it reads as it does.
    What others have spent, and what it means, a belief, is rounded up."""
    if epsilon == math.inf:
        return "∞"
    text = format_figures(epsilon, EPSILON_DIGITS)
    if abs(float(text) - epsilon) <= DUST_SHARE * epsilon:
        return text
    return format_figures(epsilon, EPSILON_DIGITS, rounded)


def format_short(value: float | Fraction, rounded: Rounding = "nearest") -> str:
    """A few significant digits, with the ratio in front where it is a short one."""
    if value == math.inf:
        return "∞"
    if isinstance(value, Fraction) and value.denominator == 1 and abs(value) < 10**6:
        return str(value.numerator)
    if not -1e300 < value < 1e300:
        return "more than 10^300"
    if isinstance(value, Fraction) and value.denominator < 1000 and abs(value.numerator) < 10**4:
        return f"{value.numerator}/{value.denominator} ≈ {format_figures(value)}"
    return format_figures(value, 6, rounded)


def rounding_side(exact: bool) -> Rounding:
    """How a level is rounded: one that is only bounded, up."""
    return "nearest" if exact else "up"


def is_rounded(value: float | Fraction) -> bool:
    """Whether `format_short` shows fewer digits than the value has."""
    text = format_short(value)
    return not ("/" in text or text == "∞" or (text[-1].isdigit() and Fraction(text) == value))


def format_point(value: float, spec: str = "") -> str:
    """A point of a column, with commas from five digits on: 2024 may be a year, 20,240 is none."""
    text = f"{value:,{spec}}"
    short = len(text.lstrip("-").partition(".")[0]) <= FOUR_DIGIT_WIDTH
    return text.replace(",", "") if short else text


def margin_decimals(margin: float) -> int:
    """Decimals worth showing beside a margin of error: its first two digits."""
    if not margin > 0:
        return 0
    return max(0, min(6, 1 - math.floor(math.log10(margin))))


def per_thousand(share: float) -> int:
    """People out of 1,000, rounded up."""
    return min(1000, int(format_decimals(share * 1000, 0, "up")))


def count_marks(share: float) -> int:
    """Marks out of a hundred, rounded up."""
    return min(100, int(format_decimals(share * 100, 0, "up")))
