"""Targets about rates with a δ: the largest ratio, against what tests reach, in exact rationals."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

import whosin as wi
from amounts import cases
from checking import fraction
from refusals import refused
from whosin.calibration import Process, calibrate_process, read_plan
from whosin.errors import ImpossibleTarget, InvalidInput

ZERO, ONE = Fraction(0), Fraction(1)
MORE = 1 + Fraction(1, 10**9)


def highest(r: Fraction, delta: Fraction, fpr: Fraction) -> Fraction:
    """The two lines that no test is above: TPR ≤ r FPR + δ, and 1 − FPR ≤ r (1 − TPR) + δ."""
    return min(r * fpr + delta, 1 - (1 - fpr - delta) / r, ONE)


def kept(target: wi.calibration.Target, r: Fraction, delta: Fraction) -> bool:
    corners = [ZERO, (1 - delta) / (1 + r), 1 - delta, ONE]
    match target:
        case wi.Detection():
            return highest(r, delta, fraction(target.fpr)) <= fraction(target.tpr)
        case wi.Advantage():
            return max(highest(r, delta, x) - x for x in corners) <= fraction(target.advantage)
        case wi.BayesRisk():
            prior = fraction(target.prior)
            tests = [(ZERO, ZERO), *((x, highest(r, delta, x)) for x in corners)]
            return min(prior * (1 - y) + (1 - prior) * x for x, y in tests) >= fraction(target.risk)
    raise AssertionError(target)


def drawn(rng: random.Random) -> tuple[wi.calibration.RateTarget, Fraction]:
    """A target, and the δ that it leaves no room for."""
    share = Fraction(rng.randint(1, 999), 1000) / 10 ** rng.choice((0, 0, 3, 6))
    match rng.choice("dab"):
        case "d":
            fpr = Fraction(rng.choice((1, 3, 7, 50)), 10 ** rng.choice((2, 4, 12, 200)))
            return wi.Detection(fpr + (1 - fpr) * share, fpr), (1 - fpr) * share
        case "a":
            return wi.Advantage(share), share
    prior = Fraction(rng.randint(1, 99), 100)
    guessing = min(prior, 1 - prior)
    risk = guessing * (1 - share)
    return wi.BayesRisk(prior, risk), min(1 - risk / guessing, 1 - 2 * risk)


@cases(50, 3000)
def test_a_ratio_is_the_largest_at_every_delta_that_leaves_room(count):
    rng = random.Random(21)
    for _ in range(count):
        target, most = drawn(rng)
        delta = most * (1 - Fraction(1, 10 ** rng.randint(0, 8)))
        r = target.ratio_with(delta)
        assert r > 1 and kept(target, r, delta) and not kept(target, r * MORE, delta)
        assert target.met_with(r, delta) and not target.met_with(r * MORE, delta)
        with pytest.raises(InvalidInput) as refused:
            target.ratio_with(most)
        assert refused.value.field == "delta"


@pytest.mark.parametrize(
    ("words", "path", "beside"),
    [
        ({"tpr": "0.1"}, "target.fpr", "tpr"),
        ({"fpr": "0.1"}, "target.tpr", "fpr"),
        ({"risk": "0.1"}, "target.risk-prior", "risk"),
        ({"risk-prior": "0.1", "delta": "0.1"}, "target.risk", "risk-prior"),
        ({"candidates": 3}, "target.rho", "candidates"),
    ],
)
def test_a_word_that_needs_another_says_which(words, path, beside):
    with refused(path.removeprefix("target."), hint=True) as caught:
        read_plan({}, words)
    assert caught.value.path == path
    assert beside in caught.value.hint


@pytest.mark.parametrize(
    ("process", "priors"),
    [(Process(steps=5), ("0.3", "0.5", "0.9")), (Process("gaussian", 0.01, 100), ("0.9",))],
)
def test_a_process_always_tells_something(process, priors):
    """No noise leaves a risk of guessing as it is; the search for it did not end."""
    for prior in priors:
        guessing = min(Fraction(prior), 1 - Fraction(prior))
        with refused("risk", hint=True, kind=ImpossibleTarget) as caught:
            calibrate_process(wi.BayesRisk(prior, guessing), process)
        assert caught.value.nearest == guessing
        near = calibrate_process(wi.BayesRisk(prior, guessing * Fraction(9, 10)), process)
        assert near.bound <= near.goal
