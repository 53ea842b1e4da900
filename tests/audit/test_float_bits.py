"""The bits of floats: marks from the definition, known leaks found, no leak invented."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whosin as wi
from amounts import some
from whosin.audit import distinguishers
from whosin.audit.distinguishers import (
    COARSE_GRAIN,
    EXPONENT_BIAS,
    FINE_GRAIN,
    LOWEST_EXPONENT,
    MANTISSA_BITS,
    NO_FLOAT_CODE,
    float_marks,
)


def lowest_bit(value: float) -> int:
    """The largest k such that the float is a multiple of 2^k, in exact rationals."""
    number, power = Fraction(abs(value)), 0
    while (number / Fraction(2) ** power).denominator > 1:
        power -= 1
    while (number / Fraction(2) ** (power + 1)).denominator == 1:
        power += 1
    return power


@given(st.floats(allow_nan=False, allow_infinity=False).filter(bool))
def test_marks_are_the_sign_the_exponent_and_the_lowest_bit(value):
    found = {grain: int(mark[0]) for grain, mark in float_marks(np.array([value])).items()}
    assert found[COARSE_GRAIN] == 2 * (lowest_bit(value) - LOWEST_EXPONENT) + (value < 0)
    power, zeros = divmod(found[FINE_GRAIN] // 2, MANTISSA_BITS + 1)
    assert found[FINE_GRAIN] % 2 == (value < 0)
    assert max(power, 1) - EXPONENT_BIAS - MANTISSA_BITS + zeros == lowest_bit(value)
    if power:
        assert power - EXPONENT_BIAS == math.frexp(value)[1] - 1


def test_what_is_no_finite_float_has_a_mark_of_its_own():
    found = float_marks(np.array([0.0, math.inf, -math.inf, -0.0]))[COARSE_GRAIN].tolist()
    assert found == [NO_FLOAT_CODE] * 3 + [NO_FLOAT_CODE + 1]


def test_marks_of_whole_numbers_tell_how_often_two_divides_them():
    for value in (1, -6, 2**53 + 1, 2**60 + 4, -(2**62) + 8):
        found = int(float_marks(np.array([value]))[COARSE_GRAIN][0])
        assert found == 2 * (int(value & -value).bit_length() - 1 - LOWEST_EXPONENT) + (value < 0)


def laplace(value, size, rng):
    return value + rng.laplace(0, 10, size)


def test_laplace_noise_in_floats_is_refuted_by_its_bits():
    found = wi.audit.two_worlds(laplace, 1.0, 0.0, 60_000, seed=1)
    assert found.epsilon > 5 and "lowest bit" in str(found.event)
    rng = np.random.default_rng(8)
    rates = [found.event.contains(laplace(x, 20_000, rng)).mean() for x in (1.0, 0.0)]
    assert rates[0] < 0.0005 and rates[1] > 0.01


def test_noise_on_a_grid_keeps_its_promise():
    """Multiples of 2^-10, far above rounding: the bits say no more than the value."""

    def rounded(value, size, rng):
        return value + np.round(rng.laplace(0, 10, size) * 1024) / 1024

    found = wi.audit.two_worlds(rounded, 1.0, 0.0, 200_000, seed=1)
    assert 0.08 < found.epsilon < 0.1


@pytest.mark.parametrize(
    ("shape", "where"),
    some(
        [
            (lambda x, rng: {"n": 3, "mean": x + rng.laplace(0, 10)}, "['mean']"),
            (lambda x, rng: f"the mean is {x + rng.laplace(0, 10)!r}", "['number'][0]"),
            (lambda x, rng: [None, {"a": (1, x + rng.laplace(0, 10))}], "[1]['a'][1]"),
            (lambda x, rng: np.array([7.0, 5.0, x]) + rng.laplace(0, 10, 3), "[2]"),
        ],
        2,
        several=True,
    ),
)
def test_every_float_inside_an_output_is_looked_at(shape, where):
    found = wi.audit.two_worlds(shape, 1.0, 0.0, 5_000, seed=2)
    assert found.epsilon > 1 and f"output{where} is" in str(found.event)


def test_small_floats_and_wide_vectors():
    def single(value, size, rng):
        return np.float32(value) + rng.laplace(0, 10, size).astype(np.float32)

    assert wi.audit.two_worlds(single, 1.0, 0.0, 20_000, seed=3).epsilon > 2

    def wide(value, size, rng):
        return np.full(40, 3.0) + np.eye(40)[37] * (value - 3) + rng.laplace(0, 10, (size, 40))

    found = wi.audit.two_worlds(wide, 1.0, 0.0, 4_000, seed=3)
    assert found.epsilon > 1 and "output[37]" in str(found.event)


def test_only_so_many_places_are_kept():
    rng = np.random.default_rng(1)
    outputs = [wi.audit.sampling.read_outputs(rng.random((500, 90)), 500) for _ in range(2)]
    assert (
        len(distinguishers.ByBits.learn(*outputs, sign=1).tables) == 2 * distinguishers.MAX_TABLES
    )
