"""Exact numbers and the ways out of them: never below the truth, and no float to spare."""

from __future__ import annotations

import math
import random
import sys
from fractions import Fraction

import flint
import numpy as np
import pytest

from refusals import refused
from whosin import exact

F = Fraction

FINE = 2000


def numbers(count: int = 200):
    rng = random.Random(5)
    for _ in range(count):
        top, bottom = (rng.randrange(1, 10 ** rng.choice((1, 4, 30))) for _ in range(2))
        yield F(top, bottom)


def true_log(value: F) -> flint.arb:
    """ln of a number in a much finer ball."""
    return flint.arb(flint.fmpq(value.numerator, value.denominator)).log()


@pytest.mark.parametrize(
    ("given", "number"),
    [
        (3, F(3)), (0.1, F(1, 10)), (1e23, F(10**23)), (5e-324, F(5, 10**324)), (F(1, 3), F(1, 3)),
        ("0.3", F(3, 10)),
        (" 1/3 ", F(1, 3)), ("5%", F(1, 20)), (" 12.5% ", F(1, 8)), ("1e-300", F(1, 10**300)),
        ("1e300", F(10**300)), ("1E+300", F(10**300)), ("2e003", F(2000)),
        ("2e000001", F(20)), ("-7", F(-7)), ("0." + "3" * 998, F(int("3" * 998), 10**998)),
        (np.int64(4), F(4)),
        (np.float32(0.1), F(1, 10)), (np.float64(0.3), F(3, 10)), (np.longdouble(2.5), F(5, 2)),
        (flint.fmpq(2, 7), F(2, 7)), (True, F(1)),
    ],
)  # fmt: skip
def test_numbers_are_read_as_they_are_written(given, number):
    assert exact.rational(given) == number


def test_computed_floats_are_the_binary_fractions_that_they_are():
    assert exact.exact_fraction(0.1) == F(3602879701896397, 2**55)
    assert exact.exact_fraction(np.float32(0.1)) == F(13421773, 2**27)
    assert exact.exact_fraction("0.1") == F(1, 10) and exact.exact_fraction(flint.fmpq(2, 7)) == F(
        2, 7
    )
    with refused("share", "inf"):
        exact.exact_fraction(math.inf, "share")


def test_floats_that_leave_are_on_the_safe_side_as_they_are_written():
    """The least float whose decimals are not below; a number with a float of its own keeps it."""
    for value in [*numbers(), *map(F, ("0.1", "0.3", "0.7", "1e-6", "1e23", "1e-300"))]:
        up, down = exact.float_at_least(value), exact.float_at_most(value)
        assert F(repr(up)) >= value > F(repr(math.nextafter(up, -math.inf)))
        assert F(repr(down)) <= value < F(repr(math.nextafter(down, math.inf)))
        assert exact.float_at_least(F(repr(up))) == up == exact.float_at_most(F(repr(up)))
        assert exact.float_at_least(-value) == -down
    assert exact.float_at_least(F(3, 10)) == exact.float_at_most(F(3, 10)) == 0.3


@pytest.mark.parametrize(
    "given",
    [
        "9" * 1001, "1e0001000",
        "1e9_99999999",
        "1e301", "1e-301",
        "1e999", "9" * 400,
        "", "x",
        "1/0", math.inf, math.nan,
        None, [1], 1j,
        "%",
    ],
)  # fmt: skip
def test_what_is_no_number_is_refused_by_its_field(given):
    with refused("share"):
        exact.rational(given, "share")


def test_probabilities_are_between_0_and_1():
    assert [exact.probability(each, "p") for each in (0, "100%", "1/2")] == [0, 1, F(1, 2)]
    for wrong in (F(-1, 10**9), 1 + F(1, 10**9)):
        with refused("p"):
            exact.probability(wrong, "p")


def test_floats_are_not_exact_and_all_else_is():
    assert exact.is_exact() and exact.is_exact(1, F(1, 3), "1/3")
    assert not exact.is_exact(1, 0.5) and not exact.is_exact(np.float32(1), 2)


def test_fractions_are_shown_as_floats_where_a_format_asks():
    assert f"{exact.Rational(1, 3):.3f} {exact.Rational(1, 3)}" == "0.333 1/3"


def test_arrays_of_rationals_keep_shape_and_values():
    made = exact.flint_array(["1/2", 3, 0.25, F(1, 7), 0, 1], (2, 3))
    assert made.shape == (2, 3)
    assert made[0, 2] == flint.fmpq(1, 4) and made[1, 0] == flint.fmpq(1, 7)


def test_round_up_is_the_least_float_that_is_not_below():
    for value in numbers():
        found = exact.round_up(value)
        assert F(found) >= value > F(math.nextafter(found, -math.inf))
        negative = exact.round_up(-value)
        assert F(negative) >= -value > F(math.nextafter(negative, -math.inf))
    assert exact.round_up(0.1) == 0.1 and exact.round_up(F(1, 4)) == 0.25
    assert exact.round_up(F(10**400)) == math.inf


def test_log_up_is_the_least_float_that_is_not_below():
    with flint.ctx.workprec(FINE):
        for value in numbers():
            if value == 1:
                continue
            found, true = exact.log_up(value), true_log(value)
            assert flint.arb(found) > true > flint.arb(math.nextafter(found, -math.inf))
            below = exact.log_down(value)
            assert flint.arb(below) < true
            twice = math.nextafter(math.nextafter(found, -math.inf), -math.inf)
            assert below == twice
    assert exact.log_up(1) == exact.log_up(F(1)) == exact.log_down(1.0) == 0.0
    assert exact.log_up(math.inf) == exact.log_down(math.inf) == math.inf
    assert exact.log_down(F(math.exp(1.0))) <= 1.0


def test_exp_up_is_above_by_less_than_balls_are_wide():
    with flint.ctx.workprec(FINE):
        for value in [*numbers(100), F(0), F(-3, 7), F(-20), F(700), F(2000)]:
            if value > 2000:
                continue
            found = exact.exp_up(value)
            true = flint.arb(flint.fmpq(value.numerator, value.denominator)).exp()
            upper = flint.arb(flint.fmpq(found.numerator, found.denominator))
            if value == 0:
                assert found == 1
                continue
            assert upper >= true
            assert upper < true * (1 + flint.arb(2) ** -140)


def test_balls_that_are_a_float_become_it():
    with flint.ctx.workprec(exact.BALL_BITS):
        one = flint.arb(1).exp().log()  # a ball around 1
        assert not one.is_exact()
    assert exact.ball_up(one) == 1.0
    assert exact.ball_ratio_upper(one, flint.arb(1)) == 1
    assert exact.ball_ratio_upper(flint.arb(2), flint.arb(4)) == F(1, 2)
    with flint.ctx.workprec(exact.BALL_BITS):
        third, minus = flint.arb(1) / 3, flint.arb(-1) / 3
        huge = flint.arb(2) ** 1500 / 3
    up, true = exact.ball_up(third), F(1, 3)
    assert F(up) >= true > F(math.nextafter(up, 0))
    ratio = exact.ball_ratio_upper(flint.arb(1), flint.arb(3))
    assert true < ratio < true + F(1, 2**150)
    large = exact.ball_ratio_upper(huge, flint.arb(1))
    assert F(2**1500, 3) < large < F(2**1500, 3) * (1 + F(1, 2**140))
    negative = exact.ball_up(minus)
    assert F(negative) >= -true > F(math.nextafter(negative, -1))


def test_a_ball_is_taken_as_a_float_up_to_a_stated_distance():
    """At the distance itself it still is, and beyond it is not."""
    with flint.ctx.workprec(FINE):
        at = 1 + flint.arb(2) ** -120
        beyond = 1 + flint.arb(2) ** -119
    assert exact.ball_up(at) == 1.0 < exact.ball_up(beyond) == math.nextafter(1, 2)


def test_sums_of_balls_hold_the_true_sum():
    terms = [
        (exact.ball_exp(F(1, 3)), F(1, 7)),
        (exact.ball_exp(F(-2)), F(5)),
        (flint.arb(1), F(-2)),
    ]
    found = exact.ball_sum(terms)
    with flint.ctx.workprec(FINE):
        true = (flint.arb(1) / 3).exp() / 7 + flint.arb(-2).exp() * 5 - 2
        assert found.contains(true)
        assert found.rad() < flint.arb(2) ** -140
    assert exact.ball_sum([]) == 0


def test_quarter_tanh_is_the_least_float_not_below():
    for k in [each for each in numbers(100) if each > 1] + [F(4), F(9, 4), 1 + F(1, 10**40)]:
        found = exact.quarter_tanh_up(k)

        def reaches(number: float, k: F = k) -> bool:
            s = F(number)
            return s >= 1 or ((1 + s) / (1 - s)) ** 2 >= k

        assert reaches(found)
        assert not reaches(math.nextafter(found, -1))
    assert exact.quarter_tanh_up(math.inf) == 1.0 and exact.quarter_tanh_up(F(1)) == 0.0
    assert exact.quarter_tanh_up(F(10**80 + 1)) == 1.0
    assert exact.quarter_tanh_up(F(4)) == exact.round_up(F(1, 3))


def test_what_no_float_holds_is_rounded_to_the_safe_side():
    huge = Fraction(10) ** 400
    assert exact.round_down(huge) == sys.float_info.max and exact.round_up(huge) == math.inf
    assert exact.round_down(-huge) == -math.inf


def test_round_down_is_the_largest_float_that_is_not_above():
    for value in numbers():
        for signed in (value, -value):
            result = exact.round_down(signed)
            assert F(result) <= signed < F(math.nextafter(result, math.inf))
    assert exact.round_down(F(1, 4)) == 0.25


def test_quotients_are_exact_of_rationals_and_just_above_of_balls():
    third, none = flint.fmpq(1, 3), flint.fmpq(0)
    assert exact.divide_up(third, flint.fmpq(1, 7)) == F(7, 3)
    assert exact.divide_up(none, third) == 0
    assert exact.divide_up(third, none) == math.inf and exact.divide_up(none, none) == 1
    assert exact.divide_up(third, flint.fmpq(1)) == F(1, 3)
    with exact.certificate_precision():
        ball, seven = flint.arb(1) / 3, flint.arb(7) / 3
    for top, bottom, true in ((ball, third, F(1)), (third, ball, F(1)), (ball, seven, F(1, 7))):
        result = exact.divide_up(top, bottom)
        assert true <= result < true + F(1, 2**150)


def test_logs_of_floats_are_those_of_their_fractions():
    for value in (0.5, 3.0, 1e-9):
        assert exact.log_up(value) == exact.log_up(F(value)) == pytest.approx(math.log(value))


def test_exp_down_is_below_by_next_to_nothing_with_a_short_denominator():
    exact.exp_down.cache_clear()
    with flint.ctx.workprec(FINE):
        for exponent in (0.0, 0.1, 1.0, -1.0, 30.0, -30.0, 300.0, -300.0, 2**-40, 1 / 3):
            result = exact.exp_down(exponent)
            true = flint.arb(exponent).exp()
            below = flint.arb(flint.fmpq(result.numerator, result.denominator))
            assert below <= true
            assert (true - below) / true < flint.arb(2) ** -60
            odd = result.numerator
            while odd % 2 == 0:
                odd //= 2
            assert odd.bit_length() <= exact.SMALL_BALL_BITS + 1
            assert result.denominator & (result.denominator - 1) == 0


def test_exp_as_a_float_is_infinite_only_where_it_must_be_said():
    assert exact.exp_float(708) == pytest.approx(math.exp(708), rel=1e-12)
    assert exact.exp_float(F(7089, 10)) < math.inf
    assert exact.exp_float(709) == exact.exp_float(710) == exact.exp_float(10**6) == math.inf


def test_quarter_tanh_of_nearly_equal_numbers_keeps_its_digits():
    """The difference of two roots that share hundreds of digits, which plain balls would lose."""
    for bits in (200, 900):
        k = 1 + F(1, 2**bits + 3)
        level = exact.quarter_tanh_up(k)
        assert ((1 + F(level)) / (1 - F(level))) ** 2 >= k
        below = F(math.nextafter(level, -1))
        assert ((1 + below) / (1 - below)) ** 2 < k
    for k in (F(2), F(9, 2), F(4, 3)):  # one of the two is a square
        assert exact.quarter_tanh_up(k) == pytest.approx(math.tanh(math.log(k) / 4))


def test_large_balls_that_are_a_float_become_it_too():
    with exact.certificate_precision():
        wide = (flint.arb(2).log() * 900).exp()
    assert not wide.is_exact()
    assert exact.ball_ratio_upper(wide, flint.arb(1)) == 2**900


def test_long_numbers_are_shown_by_their_beginning():
    for digits in ("7" * 1001, "7" * 400):
        with refused("number") as caught:
            exact.rational(digits)
        assert str(caught.value).endswith(f" {'7' * 40}…")
    assert exact.rational(str(2**997)) == 2**997
    assert exact.rational(str(2**998 - 1)) == 2**998 - 1
    with refused("number"):
        exact.rational(str(2**998))
