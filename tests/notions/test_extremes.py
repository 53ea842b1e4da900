"""Attempts to break the engine: nothing, everything, almost nothing, and odd arrays."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import whosin as wi
from checking import family_instances
from whosin import families
from whosin.mechanisms import channel as channel_module
from whosin.notions import DifferentialPrivacy, NegativeMembership, PositiveMembership

TABLE = np.array([[0.2, 0.8], [0.5, 0.5], [0.3, 0.7], [0.9, 0.1]])


def levels(channel: wi.Channel, seed: int = 1) -> list:
    """The level of a channel under every family and both directions, and under DP."""
    assert isinstance(channel.space, wi.Subsets)
    n = channel.space.size
    listed = [f for group in family_instances(random.Random(seed), n).values() for f in group]
    notions: list[Any] = [
        kind(f) for f in listed for kind in (PositiveMembership, NegativeMembership)
    ]
    notions += [DifferentialPrivacy(relation) for relation in ("add-remove", "replace")]
    return [notion.measure(channel).value for notion in notions]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("kind", [float, Fraction])
def test_one_output(n, kind):
    """A mechanism that always says the same has levels 1 and 0."""
    assert set(levels(wi.Channel(wi.Subsets(n), [[kind(1)]] * 2**n))) == {0, 1}


@pytest.mark.parametrize("kind", [float, Fraction])
def test_columns_of_zeros_change_nothing(kind):
    """Outputs that never happen: 0/0 is no leak."""
    rows = [[kind(Fraction(i + 1, 10)), kind(Fraction(9 - i, 10))] for i in range(8)]
    padded = [[kind(0), row[0], kind(0), row[1], kind(0)] for row in rows]
    space = wi.Subsets(3)
    assert levels(wi.Channel(space, padded)) == pytest.approx(levels(wi.Channel(space, rows)))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_identity_tells_all(n):
    """A mechanism that publishes the data: infinite, and the posterior is 1, for most families."""
    channel = wi.Channel(wi.Subsets(n), np.eye(2**n))
    for family in (families.AnyPrior(), families.Independent(), families.Uninformed()):
        level = PositiveMembership(family).measure(channel)
        assert level.value == math.inf
        assert level.witness.posterior == 1
        assert NegativeMembership(family).measure(channel).witness.posterior == 0
    assert DifferentialPrivacy().measure(channel).value == math.inf


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(TABLE),
        np.repeat(np.repeat(TABLE, 2, axis=0), 3, axis=1)[::2, ::3],
        TABLE[::-1][::-1],
        TABLE.astype(np.longdouble),
        TABLE.astype(object),
        TABLE.tolist(),
        [tuple(row) for row in TABLE],
        np.ma.array(TABLE),
    ],
    ids=["fortran", "strided", "reversed", "longdouble", "object", "lists", "tuples", "masked"],
)
def test_arrays_of_any_make(array):
    """Order, strides and type of the input do not matter."""
    space = wi.Subsets(2)
    assert levels(wi.Channel(space, array)) == levels(wi.Channel(space, TABLE))


def test_the_input_is_not_changed():
    """Measuring leaves the user's array as it was."""
    array = TABLE.copy()
    levels(wi.Channel(wi.Subsets(2), array))
    assert (array == TABLE).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_short_floats(dtype):
    """Dyadic numbers in short floats are what they are."""
    array = np.array([[0.25, 0.75], [0.5, 0.5]], dtype=dtype)
    assert DifferentialPrivacy().measure(wi.Channel(wi.Subsets(1), array)).value == pytest.approx(
        math.log(2)
    )


def test_fractions_mixed_with_floats():
    """One float makes the channel a floating-point one; exact strings mix with fractions."""
    space = wi.Subsets(1)
    mixed = wi.Channel(space, [[Fraction(1, 3), 2 / 3], ["1/2", 0.5]])
    assert mixed.exact is None
    level = PositiveMembership(families.Independent()).measure(mixed).value
    assert isinstance(level, float) and level == pytest.approx(1.5)
    exact = wi.Channel(space, [[Fraction(1, 3), "2/3"], [0, 1]])
    assert PositiveMembership(families.Independent()).measure(exact).value == Fraction(3, 2)


def test_tiny_probabilities():
    """1e-300 is not 0: ratios of 1e300 come out, in floats as in rationals."""
    tiny = 1e-300
    rows = [[tiny, 1.0], [1.0, 0.0]]
    near = wi.Channel(wi.Subsets(1), rows)
    assert DifferentialPrivacy(direction="positive").measure(near).value == pytest.approx(
        300 * math.log(10)
    )
    level = PositiveMembership(families.Independent()).measure(near)
    assert level.value == pytest.approx(1e300)
    exact = wi.Channel(wi.Subsets(1), [[Fraction(1, 10**300), 1 - Fraction(1, 10**300)], [1, 0]])
    assert PositiveMembership(families.Independent()).measure(exact).value == 10**300


def test_ratios_beyond_floats():
    """A finite ratio above the largest float: exact in rationals, its logarithm in floats."""
    least = 5e-324
    near = wi.Channel(wi.Subsets(1), [[least, 1.0], [0.5, 0.5]])
    assert DifferentialPrivacy().measure(near).value == pytest.approx(
        -math.log(2) - math.log(least)
    )
    most = Fraction(1, 2) / Fraction(least)
    assert PositiveMembership(families.Independent()).measure(near).value == most
    small = Fraction(1, 10**400)
    exact = wi.Channel(wi.Subsets(1), [[small, 1 - small], [Fraction(1, 2), Fraction(1, 2)]])
    assert PositiveMembership(families.Independent()).measure(exact).value == 10**400 / Fraction(2)
    assert PositiveMembership(families.Uninformed()).measure(exact).value == pytest.approx(
        (10**400 / Fraction(2) + 1) / 2
    )


@pytest.mark.parametrize("exact", [True, False])
def test_an_overflow_does_not_hide_an_infinity(exact):
    """A ratio too large for floats comes first, a truly infinite one after: infinite it is."""
    least = 5e-324
    rows = [[least, 1.0], [0.5, 0.5], [0.0, 1.0], [0.5, 0.5]]
    if exact:
        rows = [[Fraction(row[0]), 1 - Fraction(row[0])] for row in rows]
    channel = wi.Channel(wi.Subsets(2), rows)
    assert DifferentialPrivacy().measure(channel).value == math.inf
    for family in (families.Independent(), families.AnyPrior(), families.Cliques(1)):
        assert PositiveMembership(family).measure(channel).witness.posterior == 1


def test_the_larger_of_two_overflows_wins():
    """Two ratios above the largest float are told apart."""
    rows = [[1e-312, 1.0], [1.0, 0.0], [1e-320, 1.0], [1.0, 0.0]]
    channel = wi.Channel(wi.Subsets(2), rows)
    level = DifferentialPrivacy(direction="positive").measure(channel)
    assert level.value == pytest.approx(-math.log(1e-320), abs=1e-9)


def test_large_exact_channels_are_searched_in_floats_and_certified(monkeypatch):
    """Above the budget for exact search the level is still the exact one."""
    monkeypatch.setattr(channel_module, "MAX_EXACT_OPERATIONS", 1 << 8)
    rng = random.Random(5)
    n, outputs = 7, 8
    parts = [[rng.randint(1, 1000) for _ in range(outputs)] for _ in range(2**n)]
    rows = [[Fraction(p, sum(row)) for p in row] for row in parts]
    channel = wi.Channel(wi.Subsets(n), rows)
    assert channel.searchable is channel.likelihoods
    value = PositiveMembership(families.Independent()).measure(channel).value
    assert isinstance(value, Fraction)
    floats = np.array(channel.likelihoods).reshape(-1, 2**n, outputs)[0]
    truth = max(
        (floats[[w | 1 << t for w in bare]] / floats[bare]).max()
        for t in range(n)
        for bare in [[w for w in range(2**n) if not w >> t & 1]]
    )
    assert float(value) == pytest.approx(truth, rel=1e-14)


@pytest.mark.parametrize("notion", [PositiveMembership, NegativeMembership])
@pytest.mark.parametrize(("scale", "digits"), [("1/1000", 434), ("1/100000", 43429)])
def test_finite_levels_beyond_all_floats(notion, scale, digits):
    """e^1000 and e^100000 are large, and not infinite."""
    noisy = wi.mechanisms.Laplace("count", scale)
    below, above = Fraction(10) ** (digits - 2), Fraction(10) ** (digits + 1)
    some = [families.Independent(), families.Independent("1/10", "1/2"), families.Cliques(1)]
    for family in [*some, families.Uninformed()] if digits < 1000 else some:
        level = notion(family).measure(noisy, wi.Subsets(3))
        assert level.holds(below) is False and level.holds(above) is True
        assert level.holds("inf") is True and math.isinf(float(level))
        assert "about 10^" in repr(level) and "about 10^" in level._repr_html_()
    if digits < 1000:  # records are searched in floats
        noisy = wi.mechanisms.Laplace(wi.statistics.Sum(), scale)
        level = notion(families.ValueOfOne()).measure(noisy, wi.Records(2, 2))
        assert level.holds(below) is False and level.holds(above) is True


def test_rational_levels_beyond_all_floats_are_shown(run, tmp_path):
    """10^320 / 2, exactly; what is shown is its order of magnitude."""
    tiny, file = "1/1" + "0" * 320, tmp_path / "tiny.json"
    rows = [[tiny, f"{10**320 - 1}/{10**320}"], ["1/2", "1/2"]]
    space = {"kind": "subsets", "entities": ["ann"]}
    file.write_text(json.dumps({"space": space, "outputs": ["x", "y"], "probabilities": rows}))
    code, out, _err = run(f"verify {file}")
    assert code == 0 and "about 10^319" in out
    code, out, _err = run(f"verify {file} --json --at-most 1e300")
    data = json.loads(out)
    assert (code, data["value"], data["exact"], data["holds"]) == (1, "1e320", True, False)
    assert float(data["witness"]["ratio"]) == math.inf
