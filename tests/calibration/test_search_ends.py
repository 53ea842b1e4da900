"""Searches for noise end, and say so where they find none."""

from __future__ import annotations

import signal
from fractions import Fraction

import numpy as np
import pytest

import whosin as wi
from amounts import some
from whosin.calibration import accounting
from whosin.calibration.failure import (
    certified_rate,
    count_profile,
    gaussian_delta,
    rate_multiplier,
)
from whosin.calibration.failure import hockey_stick_multiplier as epsilon_multiplier
from whosin.errors import InvalidInput

NEARLY_ONE = 1 - Fraction(1, 10**22)


@pytest.fixture(autouse=True)
def deadline():
    """A search that does not end fails after a minute."""

    def stop(*_):
        raise TimeoutError("the search did not end")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("epsilon", some(["1e-300", "1e-9", "1e-3", "1", "700"], 3))
@pytest.mark.parametrize(
    "delta", some([Fraction("1e-400"), Fraction("1e-310"), 1 - Fraction(1, 10**12), NEARLY_ONE], 2)
)
def test_an_epsilon_and_a_delta(epsilon, delta):
    exact = Fraction(epsilon)
    if exact < 1 and delta < Fraction(1, 2) and epsilon != "1e-3":
        with pytest.raises(InvalidInput) as refused:
            epsilon_multiplier(exact, delta)
        assert refused.value.field == "target"
        return
    multiplier = epsilon_multiplier(exact, delta)
    assert 0 < multiplier < 10**5 and gaussian_delta(multiplier, exact) <= delta


@pytest.mark.parametrize(
    "target",
    [
        wi.Advantage("1e-9"),
        wi.Advantage(NEARLY_ONE),
        wi.Detection("0.9999999999999", "0.5"),
        wi.Detection(1 - Fraction(1, 10**19), "0.5"),
        wi.Detection("0.999999999", "0.999999998"),
        wi.BayesRisk("0.5", "1e-300"),
        wi.BayesRisk("0.999999999", "1e-10"),
        wi.BayesRisk("0.999999999", "0.9999e-9"),
    ],
    ids=repr,
)
def test_a_rate_within_reach(target):
    multiplier = rate_multiplier(target)
    assert certified_rate(target, multiplier) <= target.limit
    # Hardly more noise than is needed: with 1% less a test reaches more than the limit, or floats
    # cannot tell the limit from certainty.
    assert certified_rate(target, multiplier / 1.01) > target.limit or 1 - target.limit < 1e-16


@pytest.mark.parametrize(
    "target",
    [wi.Advantage("1e-15"), wi.Detection("0.5", 0.5 - 2**-50), wi.BayesRisk("0.5", 0.5 - 2**-50)],
    ids=repr,
)
def test_a_rate_out_of_reach(target):
    with pytest.raises(InvalidInput) as refused:
        rate_multiplier(target)
    assert refused.value.field == "target"


@pytest.mark.parametrize(("epsilon", "delta"), [("0.5", 1e-16), ("1e-5", 1e-9)])
def test_a_count_whose_noise_is_out_of_reach(epsilon, delta):
    family = wi.families.AtMostKnown(2, "1e-12", "1e-12")
    with pytest.raises(InvalidInput) as refused:
        wi.calibrate(wi.Epsilon(epsilon), family, delta, "count", 200)
    assert refused.value.field == "target"


def test_the_other_direction_of_a_sampled_process_ends(monkeypatch):
    """Where absence never keeps the target, however much noise there is, the end is said."""
    from whosin.calibration.accounting import Process, calibrate_process

    pytest.importorskip("dp_accounting")
    profile = Process.profile

    def stubborn(process, multiplier, grid=1e-4, *, reverse=False):
        found = profile(process, multiplier, grid, reverse=reverse)
        return (lambda at: found(at) + 1.0) if reverse else found

    monkeypatch.setattr(Process, "profile", stubborn)
    monkeypatch.setattr(accounting, "LOSS_GRID_STEPS", (1e-2,))
    process = Process("gaussian", sample_rate=0.1, steps=2)
    with pytest.raises(InvalidInput) as refused:
        calibrate_process(wi.Epsilon(1), process, delta=1e-5)
    assert refused.value.field == "target"


@pytest.mark.parametrize("low", ["1e-12", "0.999999999999"])
def test_a_count_of_others_who_are_nearly_known_is_not_private(low):
    """Weights of 0 made ratios that are no numbers, and a δ of 10⁻¹⁵ for one of nearly 1."""
    family = wi.families.AtMostKnown(2, low, "0.9999999999991")
    assert count_profile(200, family)(np.array([0.0, 1.0])) == pytest.approx(1.0, abs=1e-9)
