"""Numbers as they are written: rounded in the direction that is named, and no further than needed.

What is written is read back as a rational and compared with the number itself.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from types import SimpleNamespace

import pytest

from refusals import refused
from whosin import exact

TINY = Fraction(1, 10**30)
VALUES = [
    *(Fraction(sign * n, 7) for n in (1, 3, 7, 20, 123_456, 10**9 + 1) for sign in (1, -1)),
    *(Fraction(n, 10**k) for n in (1, 5, 15, 25, 999_999_5) for k in (0, 1, 4, 9)),
    *(Fraction(6, 10) + off for off in (-TINY, TINY)),
    Fraction(0),
    Fraction(10**12 - 1, 10),
]


@pytest.mark.parametrize("digits", [0, 1, 3, 6])
def test_decimals_are_the_nearest_in_their_direction(digits):
    unit = Fraction(1, 10**digits)
    for value in VALUES:
        up, down, near = (
            Fraction(exact.format_decimals(value, digits, way)) for way in ("up", "down", "nearest")
        )
        assert value <= up < value + unit and value - unit < down <= value
        assert abs(near - value) <= unit / 2 and near in (up, down)
        assert all((each / unit).denominator == 1 for each in (up, down))


def test_a_float_stands_for_what_is_within_its_rounding():
    """Four roundings away it is still that decimal, forty away it is not."""
    for way in ("up", "down"):
        for decimal in ("0.6", "0.1", "7.3", "1234.5"):
            value = float(decimal)
            for steps in (0, 3):
                moved = value + steps * math.ulp(value) * (1 if way == "up" else -1)
                assert Fraction(exact.format_decimals(moved, 1, way)) == Fraction(decimal)
            far = value + 40 * math.ulp(value) * (1 if way == "up" else -1)
            assert Fraction(exact.format_decimals(far, 1, way)) != Fraction(decimal)
    assert exact.format_decimals(Fraction(6, 10) + TINY, 1, "up") == "0.7"


def test_an_infinite_number_is_written_as_one():
    for way in ("up", "down", "nearest"):
        assert (
            exact.format_decimals(math.inf, 4, way)
            == exact.format_figures(math.inf, 4, way)
            == "inf"
        )
        assert exact.format_decimals(-math.inf, 4, way) == "-inf"


def test_figures_keep_their_number_of_digits():
    chance = random.Random(3)
    for _ in range(300):
        value = Fraction(chance.randint(1, 10**9), 10 ** chance.randint(0, 12))
        for digits in (2, 6):
            size = math.floor(math.log10(float(value)))
            unit = Fraction(10) ** (size + 1 - digits)
            up, down = (
                Fraction(exact.format_figures(value, digits, way).replace(",", ""))
                for way in ("up", "down")
            )
            assert value <= up < value + 2 * unit and value - 2 * unit < down <= value
            nearest = exact.format_figures(value, digits).replace(",", "")
            assert Fraction(nearest) == Fraction(f"{float(value):.{digits}g}")
            assert (up - down) / unit in (0, 1)
    assert exact.format_figures(123_456_789, 3, "up") == "124,000,000"
    assert exact.format_figures(123_456_789.0, 3, "down") == "123,000,000"
    assert exact.format_figures(0.0, 6, "up") == exact.format_figures(0, 6, "down") == "0"
    assert exact.format_figures(1 / 3, rounded="up") == "0.333334"
    assert exact.format_figures(2276.4, 3, "up") == "2,280"
    assert exact.format_figures(-2e17, 3) == "-200,000,000,000,000,000"
    assert exact.format_figures(2e18, 3, "down") == "2e+18"


def test_what_was_typed_is_written_with_its_digits():
    assert exact.format_typed(0.6004, "up") == "0.6004"
    assert exact.format_typed(Fraction(60_041, 10**5), "down") == "0.60041"
    assert exact.format_typed(Fraction(1, 3), "up") == "0.333334"
    assert exact.format_typed(Fraction(1, 3), "down") == "0.333333"
    assert Fraction(exact.format_typed(0.1 + 0.2, "up")) in (
        Fraction(3, 10),
        Fraction(300_001, 10**6),
    )


def test_what_nobody_types_has_no_decimal():
    assert exact.typed_decimal(Fraction(1, 3)) is None
    assert exact.typed_decimal(Fraction(123_456_789_012)) is not None
    assert exact.typed_decimal(Fraction(1_234_567_890_123)) is None
    assert exact.typed_decimal(Fraction(10**exact.MAX_TYPED_DIGITS)) == 10**12
    assert exact.typed_decimal(Fraction(10**exact.MAX_TYPED_DIGITS * 2)) is None
    assert exact.typed_decimal(Fraction(1, 10**100)) is not None
    assert exact.typed_decimal(Fraction(1, 10**101)) is None
    assert exact.typed_decimal(0) == 0
    assert exact.typed_decimal(Fraction(1, 10)) == exact.typed_decimal(0.1)
    assert exact.typed_decimal(-0.25) == Fraction(-1, 4)


def test_rationals_of_other_libraries_are_read_whole():
    assert exact.rational(SimpleNamespace(p=3, q=7)) == Fraction(3, 7)
    for half in (SimpleNamespace(p=3), SimpleNamespace(q=7)):
        with refused("number", kind=ValueError):
            exact.rational(half)
