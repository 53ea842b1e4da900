"""Exact numbers, and the only ways out of them.

A number that somebody wrote is read as it is written (`rational`): a string as the decimal or ratio
that it spells, a float as its decimals, so that 0.1 is 1/10 in Python, TOML and JSON as it is in an
option. A float that was computed is the binary fraction that it is (`exact_fraction`), so that what
was rounded up or down stays so. Inside, whole arrays are FLINT rationals (`fmpq`, about four times
faster than `fractions.Fraction`); e^x is an Arb ball. Numbers leave as `Rational`, or as a float
rounded *up*: a level of leakage may be overstated by one unit in the last place, never understated.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from whosin.errors import RANGE_CHECKS, invalid_value, read_real, shorten_value, spell

Array: TypeAlias = npt.NDArray[Any]
Number: TypeAlias = int | float | Fraction
Rounding: TypeAlias = Literal["nearest", "up", "down"]
"""How a number is shown: up after "at most", down after "at least"."""

MAX_WHOLE_BITS = 997
"""Bits of the whole part of a number that somebody spells: those of 1e300."""
MAX_FLOAT_EXPONENT = 709
"""e to a larger power does not fit into a float."""
MAX_CURVE_EPSILON = 700
"""The largest ε that profiles and curves are asked at: e^ε fits into a float, with room."""
ONE_HALF = Fraction(1, 2)
BALL_BITS = 160
SMALL_BALL_BITS = 64
MAX_TYPED_DIGITS = 12
"""Numbers of at most this many digits are taken for typed, and shown as they are."""
SNAP_DISTANCE = 2.0**-120
"""A ball that agrees with a float to this relative accuracy is taken as that float (ln e = 1)."""


MIN_POWER = 10**300
"""From here on numbers are shown as powers of ten."""


class Rational(Fraction):
    """A fraction that can also be formatted as a float, as every fraction can from Python 3.12."""

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __str__(self) -> str:
        is_long = abs(self) >= MIN_POWER  # Python refuses to write out the longest of them
        return f"about {format_power(self)}" if is_long else super().__str__()

    def __repr__(self) -> str:
        return f"Rational({self})" if abs(self) >= MIN_POWER else super().__repr__()


def rational(value: object, field: str = "number") -> Fraction:
    """Read a finite number as it was written: ints, fractions, strings such as "0.3", "1/3" or
    "5%", unless they are very long or very large, and floats by their decimals: 0.1 is 1/10."""
    if isinstance(value, float | np.floating) and np.isfinite(value):
        return Fraction(str(value))  # of NumPy's floats repr has the type's name too
    return _read_spelled(value, field) if isinstance(value, str) else exact_fraction(value, field)


def exact_fraction(value: object, field: str = "number") -> Fraction:
    """The fraction that a finite number is. For floats that were computed, whose rounding has a
    direction: the binary fraction; what somebody wrote is read by `rational`."""
    if type(value) is Fraction:
        return value
    if isinstance(value, str):
        return _read_spelled(value, field)
    try:
        if isinstance(value, np.floating):
            return Fraction(*value.as_integer_ratio())
        if isinstance(value, int | float | Fraction | np.integer):
            return Fraction(value.item() if isinstance(value, np.generic) else value)
        if hasattr(value, "p") and hasattr(value, "q"):
            return Fraction(int(value.p), int(value.q))
    except (ValueError, OverflowError, ZeroDivisionError):
        pass
    raise invalid_value(field, "a finite number", repr(value))


def number_range(text: str, field: str) -> tuple[Fraction, Fraction]:
    """ "0.05..0.5", or one number for a range of one point."""
    low, dots, high = text.partition("..")
    if not dots and (ends := _DASH_PATTERN.fullmatch(low.strip())):
        hint = f"write the range as {ends[1]}..{ends[2]}"
        raise invalid_value(field, "a number", shorten_value(low), hint)
    first = rational(low.strip(), field)
    return first, rational(high.strip(), field) if dots else first


_DASH_PATTERN = re.compile(r"([\d.]+%?)\s*[-–—]\s*([\d.]+%?)")
_COMMA_PATTERN = re.compile(r"([+-]?\d*),(\d+(?:[eE][+-]?\d+)?)")
_POWER_PATTERN = re.compile(r"(?:(\d+(?:\.\d+)?)\s*[*×·x]\s*)?10\s*(?:\^|\*\*)\s*([+-]?\d+)")


def _spelling_hint(text: str) -> str:
    """How to write what was probably meant."""
    if text.lstrip("+-").lower() in ("nan", "inf", "infinity", "∞"):
        return ""
    if comma := _COMMA_PATTERN.fullmatch(text):
        return f"write {comma[1]}.{comma[2]}"
    if power := _POWER_PATTERN.fullmatch(text):
        return f"write {power[1] or 1}e{power[2]}"
    return "write 0.5, 1/2, 50% or 1e-6"


def _read_spelled(text: str, field: str) -> Fraction:
    """A number as people write it; beyond 1e±300 nothing else could hold it."""
    plain = text.strip()
    exponent = plain.lower().partition("e")[2].removesuffix("%").strip().replace("_", "")
    digits = exponent.lstrip("+-0")
    if len(plain) > 1000:
        raise invalid_value(field, "written with at most 1,000 characters", f"{plain[:40]}…")
    if digits.isdecimal() and (len(digits) > 3 or int(digits) > 300):
        raise invalid_value(field, "a number between 1e-300 and 1e300", plain)
    if plain.endswith("%"):
        return rational(plain[:-1], field) / 100
    try:
        number = Fraction(plain)
    except (ValueError, ZeroDivisionError):
        hint = _spelling_hint(plain)
        raise invalid_value(field, "a finite number", repr(plain), hint) from None
    if number.numerator.bit_length() - number.denominator.bit_length() > MAX_WHOLE_BITS:
        raise invalid_value(field, "a number between 1e-300 and 1e300", f"{plain[:40]}…")
    return number


def probability(value: object, field: str) -> Fraction:
    """Read a number in [0, 1] exactly."""
    return read_ranged(value, field, "between 0 and 1")


def read_ranged(value: object, field: str, accepted: str) -> Fraction:
    """Read a number exactly, in the range that the words say (`errors.RANGE_CHECKS`)."""
    number = rational(value, field)
    if not RANGE_CHECKS[accepted](number):
        meant = number / 100
        percent = number > 1 and not RANGE_CHECKS[accepted](Fraction(100))
        percent = percent and not str(value).strip().endswith("%")
        if not percent or not RANGE_CHECKS[accepted](meant):
            raise invalid_value(field, accepted, value)
        hint = f"write {spell(float(meant))} for {spell(float(number))}%"
        error = invalid_value(field, accepted, value, hint)
        error.nearest = float(meant)
        raise error
    return number


def is_exact(*values: object) -> bool:
    """Whether none of the numbers is a binary float, so that a result may be shown as a ratio."""
    return not any(isinstance(value, float | np.floating) for value in values)


def flint_rational(value: object) -> Any:
    from flint import fmpq

    if isinstance(value, fmpq):
        return value
    ratio = value if isinstance(value, Fraction) else exact_fraction(value)
    return fmpq(ratio.numerator, ratio.denominator)


def flint_float(value: Any) -> Any:
    """The FLINT rational of a finite float of any width, quickly."""
    from flint import fmpq

    return fmpq(*value.as_integer_ratio())


def flint_array(values: Iterable[object], shape: tuple[int, ...]) -> Array:
    flat = np.empty(math.prod(shape), dtype=object)
    for position, value in enumerate(values):
        flat[position] = flint_rational(value)
    return flat.reshape(shape)


def certificate_precision() -> Any:
    """A context in which balls have the precision that certificates have."""
    from flint import ctx

    return ctx.workprec(BALL_BITS)


def ball(value: object) -> Any:
    """The Arb ball of a number, at the present precision."""
    from flint import arb

    return arb(flint_rational(value))


def ball_end(end: Any) -> Fraction:
    """The exact value of an end of a ball."""
    mantissa, exponent = end.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def ball_exp(exponent: Fraction, precision: int = BALL_BITS) -> Any:
    """The Arb ball of e^exponent."""
    from flint import ctx

    with ctx.workprec(precision):
        return ball(exponent).exp()


def ball_sum(terms: Iterable[tuple[Any, Fraction]]) -> Any:
    """Σ weight · ball, as a ball."""
    with certificate_precision():
        return sum((each * ball(weight) for each, weight in terms), ball(0))


def ball_ratio_upper(top: Any, bottom: Any) -> Fraction:
    """An exact rational that is at least top / bottom, and only just above it."""
    with certificate_precision():
        return _snap_to_float((top / bottom).upper())


def divide_up(top: Any, bottom: Any) -> Fraction | float:
    """top / bottom of FLINT rationals exactly, of balls just above; 0/0 is 1 and x/0 infinite."""
    if bottom == 0:
        return math.inf if top != 0 else Fraction(1)
    if hasattr(top, "p") and hasattr(bottom, "p"):
        return exact_fraction(top / bottom)
    return ball_ratio_upper(top, bottom)


def round_up(value: Fraction | float) -> float:
    """The smallest float that is at least the value."""
    if isinstance(value, float):
        return value
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def round_down(value: Fraction) -> float:
    """The largest float that is at most the value."""
    try:
        nearest = float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -math.inf
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def float_at_least(value: Fraction) -> float:
    """The least float whose decimals are at least the value: for numbers that leave, and are read
    again as they are written. What was written as a float is that float."""
    result = math.nextafter(round_down(value), -math.inf)
    while math.isfinite(result) and rational(result) < value:
        result = math.nextafter(result, math.inf)
    return result


def float_at_most(value: Fraction) -> float:
    """The largest float whose decimals are at most the value."""
    return -float_at_least(-value)


def log_up(value: Fraction | float) -> float:
    """ln of the value, rounded up and exact at 1 and at infinity."""
    if value == 1:
        return 0.0
    if isinstance(value, float) and math.isinf(value):
        return math.inf
    with certificate_precision():
        return ball_up(ball(value).log())


def ball_up(number: Any) -> float:
    """The least float that is at least every number of a ball, or the float it agrees with."""
    with certificate_precision():
        upper = number.upper()
        nearest = float(upper)
        below = upper - nearest > abs(nearest) * SNAP_DISTANCE
    return math.nextafter(nearest, math.inf) if below else nearest


def quarter_tanh_up(ratio: Fraction | float) -> float:
    """tanh(¼ ln k) = (√k − 1)/(√k + 1) for k ≥ 1, rounded up; 1 where k is infinite."""
    if ratio == math.inf:
        return 1.0
    from flint import ctx

    exact = exact_fraction(ratio)
    roots = math.isqrt(exact.numerator), math.isqrt(exact.denominator)
    if (roots[0] ** 2, roots[1] ** 2) == (exact.numerator, exact.denominator):
        return round_up(Fraction(roots[0] - roots[1], roots[0] + roots[1]))
    with ctx.workprec(BALL_BITS + 2 * max(map(int.bit_length, roots))):
        root = ball(exact).sqrt()
        level = (root - 1) / (root + 1)
    return min(ball_up(level), 1.0)


def _snap_to_float(upper: Any) -> Fraction:
    """The upper end of a ball, or the float that it agrees with."""
    bound = ball_end(upper)
    nearest = Fraction(float(bound)) if bound < Fraction(2) ** 1000 else bound
    return nearest if abs(nearest - bound) <= bound * Fraction(SNAP_DISTANCE) else bound


def log_down(value: Fraction | float) -> float:
    """A float just below ln of the value (at most two units in the last place), or equal to it."""
    if value == math.inf:
        return math.inf
    above = log_up(value)
    return above if above == 0 else math.nextafter(math.nextafter(above, -math.inf), -math.inf)


def exp_up(exponent: Fraction | float) -> Fraction:
    """An exact rational that is at least e^exponent, and only just above it."""
    return ball_ratio_upper(ball_exp(exact_fraction(exponent)), 1)


def exp_float(exponent: Number) -> float:
    """e^exponent as a float, rounded up; infinite where no float is large enough."""
    return round_up(exp_up(exponent)) if exponent < MAX_FLOAT_EXPONENT else math.inf


@lru_cache(maxsize=64)
def exp_down(exponent: Fraction | float) -> Fraction:
    """A rational with a short denominator at most e^exponent, and at most 2^−60 of it below."""
    with certificate_precision():  # an end is rounded to the present precision
        bound = ball_end(ball_exp(exact_fraction(exponent)).lower())
    shift = SMALL_BALL_BITS - (bound.numerator.bit_length() - bound.denominator.bit_length())
    scale = Fraction(2) ** shift
    return Fraction(math.floor(bound * scale)) / scale


def format_decimals(value: Number, digits: int, rounded: Rounding = "nearest") -> str:
    """A number with this many digits after the point, rounded in a named direction.

    A rational is rounded as it is. A float stands for the numbers within four roundings of it, so
    that one which came out just above 0.6 is 0.6; an infinite one is written as inf.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    scaled = Fraction(value) * 10**digits
    whole = round(scaled)
    off = scaled - whole
    if isinstance(value, float) and abs(off) <= abs(scaled) / 2**50:
        off = Fraction(0)
    if (rounded == "up" and off > 0) or (rounded == "down" and off < 0):
        whole += 1 if rounded == "up" else -1
    return f"{Decimal(whole).scaleb(-digits):f}"


def format_power(value: Number, rounded: Rounding = "nearest") -> str:
    """A finite number from `MIN_POWER` on by its order of magnitude."""
    whole = math.floor(abs(Fraction(value)))
    power = int(math.log10(whole))
    power += (10 ** (power + 1) <= whole) - (10**power > whole)
    return f"{'-' * (value < 0)}10^{power + (rounded == 'up')}"


def format_figures(value: Number, digits: int = 6, rounded: Rounding = "nearest") -> str:
    """A finite number with this many significant digits, rounded in a named direction."""
    number = float(value)
    if rounded == "nearest" or not value or math.isinf(number):
        return spell(number, digits)
    after = digits - 1 - int(f"{number:e}".partition("e")[2])
    if after >= 0:
        return spell(float(format_decimals(value, after, rounded)), digits)
    tens = 10**-after
    scaled = value / tens if isinstance(value, float) else Fraction(value) / tens
    return spell(float(format_decimals(scaled, 0, rounded)) * tens, digits)


EPSILON_DIGITS, DUST_SHARE = 6, 1e-10


def format_epsilon(
    epsilon: Number, rounded: Rounding = "down", digits: int = EPSILON_DIGITS
) -> str:
    """An ε or ρ with six significant digits, rounded down, but for the last units of a ledger: a
    budget that is typed elsewhere keeps its promise, and what was spent of it reads as it does.
    What others have spent, and what it means, a belief, is rounded up."""
    if epsilon == math.inf:
        return "∞"
    text = format_figures(epsilon, digits)
    if abs(float(text.replace(",", "")) - epsilon) <= DUST_SHARE * epsilon:
        return text
    return format_figures(epsilon, digits, rounded)


def typed_decimal(value: Number) -> Decimal | None:
    """The decimal of a few digits that a number is, or that a float is written as."""
    known = Fraction(value)
    if abs(known) > 10**MAX_TYPED_DIGITS or (known and abs(known) < Fraction(1, 10**100)):
        return None
    if Fraction(float(known)) == known:
        result = Decimal(repr(float(known)))
    else:
        result = Decimal(known.numerator) / Decimal(known.denominator)
        if Fraction(result) != known:
            return None
    return result if len(result.normalize().as_tuple().digits) <= MAX_TYPED_DIGITS else None


def format_typed(value: Number, rounded: Rounding) -> str:
    """A number that somebody chose, with the digits that it was given; otherwise six, rounded."""
    known = typed_decimal(value)
    if known is None:
        return format_figures(value, 6, rounded)
    text = f"{float(known):g}"
    return text if Decimal(text) == known else f"{known.normalize():f}"


TENTH_PERCENT = Decimal("0.1")
MAX_PERCENT_DECIMALS = 12
"""Digits after the point, in per cent."""


def format_percent(belief: float | Fraction, rounded: Rounding = "nearest") -> str:
    """A belief in per cent, never rounded to a certainty that it is not.

    Args:
        rounded: "up" after "at most", "down" after "at least".
    """
    belief = read_real(belief, "belief")
    if not 0 <= belief <= 1:
        raise invalid_value("belief", "from 0 to 1", belief)
    belief = belief if isinstance(belief, float) else rational(belief)
    if belief in (0, 1):
        return f"{float(belief) * 100:.0f}%"
    value = belief * 100
    text = format_decimals(value, 1, rounded)
    # One digit is enough unless it makes half as much again, or half, of a small rest.
    moved = abs(Fraction(text) - Fraction(value))
    if 2 * moved <= min(value, 100 - value) and text not in ("0.0", "100.0"):
        return f"{text}%"
    near = 100 - float(value) if value > 50 else float(value)
    if near == 0:
        return "almost 100%" if value > 50 else "almost 0%"
    digits = 2 - math.floor(math.log10(near))
    if digits > MAX_PERCENT_DECIMALS and value < 50:
        return f"{format_figures(value, 3, rounded)}%"
    text = format_decimals(value, min(MAX_PERCENT_DECIMALS, digits), rounded)
    if Fraction(text) in (0, 100):
        return "almost 100%" if value > 50 else "almost 0%"
    return f"{text}%"


def chosen_percent(share: float | Fraction, rounded: Rounding) -> str:
    """A share that somebody chose, in per cent with all digits that it was given."""
    known = typed_decimal(rational(share))
    if known is None or share in (0, 1):
        return format_percent(share, rounded)
    value = (known * 100).normalize()
    tenths = value.quantize(TENTH_PERCENT)
    return f"{tenths if value == tenths else value:f}%"
