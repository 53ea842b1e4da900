"""Curves beside dp-accounting's own numbers, and beside integrals of the densities themselves.

`make bridges BRIDGES=riskcal` compares them with riskcal, in an environment of its own.
"""

from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld import privacy_loss_mechanism as mechanisms

import whosin as wi
from whosin.bridges import Guarantee, read_curve
from whosin.calibration import Process, calibrate_process
from whosin.curves import LaplaceCurve, NormalCurve, TradeOff, process_curve
from whosin.curves.curve import CornerCurve, below_lines
from whosin.exact import exp_up

EPSILONS = (-1.5, -0.3, 0.0, 0.1, 0.7, 1.9)
RATES = (0.0, 1e-4, 0.01, 0.1, 0.5, 0.9, 0.99)


@pytest.mark.parametrize("scale", [0.5, 1.0, 4.0])
def test_noise_agrees_with_dp_accounting(scale):
    laplace = LaplaceCurve(wi.exact.rational(1 / scale))
    normal = NormalCurve(scale)
    adjacency = mechanisms.AdjacencyType.REMOVE
    for ours, theirs in (
        (laplace, mechanisms.LaplacePrivacyLoss(scale, adjacency_type=adjacency)),
        (normal, mechanisms.GaussianPrivacyLoss(scale, adjacency_type=adjacency)),
    ):
        for epsilon in EPSILONS:
            known = theirs.get_delta_for_epsilon(epsilon)
            assert ours.delta(epsilon) == pytest.approx(known, abs=1e-11), (ours, epsilon)


@pytest.mark.parametrize(
    ("noise", "rate", "steps"),
    [("gaussian", 1.0, 5), ("gaussian", 0.02, 50), ("laplace", 1.0, 3), ("laplace", 0.1, 1)],
)
def test_composed_and_sampled_processes_agree_with_dp_accounting(noise, rate, steps):
    ours = process_curve(Process(noise, rate, steps), 1.1)
    made = pld.from_gaussian_mechanism if noise == "gaussian" else pld.from_laplace_mechanism
    once = made(1.1, sampling_prob=rate, value_discretization_interval=1e-4, use_connect_dots=True)
    known = once.self_compose(steps)._pmf_remove
    for epsilon in EPSILONS:
        theirs = known.get_delta_for_epsilon(epsilon)
        assert ours.delta(epsilon) == pytest.approx(theirs, rel=1e-4, abs=1e-8)
    assert float(ours.advantage) == pytest.approx(known.get_delta_for_epsilon(0), rel=1e-4)
    assert ours.epsilon(1e-5) == pytest.approx(known.get_epsilon_for_delta(1e-5), rel=1e-3)


def densities(rate: float, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """The outputs of one step in cells, with the person and without."""
    edges = np.linspace(-7 * sigma, 7 * sigma + 1, 8_001)

    def normal(x: np.ndarray) -> np.ndarray:
        return np.array([0.5 * math.erfc(-each / (sigma * math.sqrt(2))) for each in x])

    without, moved = np.diff(normal(edges)), np.diff(normal(edges - 1))
    return (1 - rate) * without + rate * moved, without


def best_test(in_: np.ndarray, out: np.ndarray, fpr: float) -> float:
    """Neyman and Pearson on cells."""
    order = np.argsort(out / (in_ + out + 1e-300))
    x = np.concatenate([[0], np.cumsum(out[order])])
    y = np.concatenate([[0], np.cumsum(in_[order])])
    return float(np.interp(fpr, x, y))


def test_a_detection_rate_is_about_recognising_members():
    """At TPR .95 and FPR .9 the curve of "in" against "out" is below the one of "out" against "in".
    riskcal takes the larger of both, whose multiplier is larger; "who is in" is the first."""
    in_, out = densities(0.3, 0.8)
    ours = process_curve(Process("gaussian", 0.3), 0.8)
    back = process_curve(Process("gaussian", 0.3), 0.8, reverse=True)
    for fpr in RATES[1:]:
        assert float(ours.tpr(fpr)) == pytest.approx(best_test(in_, out, fpr), abs=2e-4)
        assert float(ours.tpr(fpr)) >= best_test(in_, out, fpr) - 1e-9
        assert float(back.tpr(fpr)) == pytest.approx(best_test(out, in_, fpr), abs=2e-4)
    assert float(back.tpr(0.9)) > float(ours.tpr(0.9)) + 0.005
    target = wi.Detection("0.95", "0.9")
    found = calibrate_process(target, Process("gaussian", 0.8))
    reached = [best_test(*densities(0.8, found.multiplier * more), 0.9) for more in (1, 0.98)]
    assert reached[0] <= 0.95 + 1e-9 < reached[1]


def test_objects_of_dp_accounting_are_read_as_curves():
    event = dp_accounting.SelfComposedDpEvent(
        dp_accounting.PoissonSampledDpEvent(0.05, dp_accounting.GaussianDpEvent(1.1)), 20
    )
    accountant = PLDAccountant().compose(event)
    process = process_curve(Process("gaussian", 0.05, 20), 1.1)
    for ours in (read_curve(event), read_curve(accountant)):
        for fpr in RATES:
            assert float(ours.tpr(fpr)) == pytest.approx(float(process.tpr(fpr)), abs=1e-6)
    # By its ε at many δ, where a tool keeps no losses: never below, and not far above.
    rdp = read_curve(dp_accounting.rdp.RdpAccountant().compose(event))
    assert isinstance(rdp, CornerCurve)
    for fpr in RATES:
        known = float(process.tpr(fpr))
        assert known - 2e-12 <= float(rdp.tpr(fpr)) <= known + 0.25


def test_a_curve_below_lines_is_below_each_and_touches_one():
    pairs = [(0.2, "0.1"), (0.5, "0.01"), (1.0, "1e-4"), (1.1, "1e-3")]
    lines = []
    for epsilon, delta in pairs:
        ratio, failing = exp_up(epsilon), wi.exact.rational(delta)
        lines += [(ratio, failing), (1 / ratio, 1 - (1 - failing) / ratio)]
    found = below_lines(lines)
    for step in range(101):
        at = wi.exact.rational(step) / 100
        assert found.tpr(at) == min(1, *(slope * at + rest for slope, rest in lines))
    one: TradeOff = read_curve(Guarantee("mine", "1", wi.exact.rational(1)))
    assert float(one.tpr("0.01")) == pytest.approx(math.e / 100)


def test_the_epsilon_of_a_curve():
    laplace = LaplaceCurve(wi.exact.rational(1))
    assert laplace.epsilon(0) == pytest.approx(1) and laplace.delta(laplace.epsilon("0.1")) <= 0.1
    assert laplace.epsilon("0.999") == 0
    certain = wi.curves.tradeoff(wi.Channel(wi.Subsets(1), [[1, 0], [0, 1]]))
    assert certain.epsilon("0.1") == math.inf
