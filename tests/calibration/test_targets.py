"""Targets against their definitions, in exact rationals, on random instances.

The definitions are written out here again from THEORY 2: a belief p becomes r p / (r p + 1 − p).
A target's ratio must keep its promise at every prior of the range, and be the largest that does.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

import whosin as wi
from amounts import cases
from checking import fraction
from refusals import refused
from whosin import beliefs
from whosin.calibration import HIPAA_TARGET, TARGET_KINDS, Target, read_plan
from whosin.errors import ImpossibleTarget, InvalidInput

INSTANCES = 1000
GRID = 24
MORE = 1 + Fraction(1, 10**6)
ZERO, ONE = Fraction(0), Fraction(1)


def after(r: Fraction, p: Fraction) -> Fraction:
    """Bayes' rule."""
    return r * p / (r * p + 1 - p)


def best_rate(r: Fraction, fpr: Fraction) -> Fraction:
    """The largest TPR at an FPR between two answers of chances (r, 1)/(r+1) in, (1, r)/(r+1) out:
    Neyman and Pearson say "in" at the first answer, and then at the second."""
    first = 1 / (r + 1)
    return r * fpr if fpr <= first else r * first + (fpr - first) / r


def accepted(points: Any, p: Fraction) -> Fraction | None:
    """A profile at one prior, linear between its points, and nothing beyond them."""
    known = sorted((fraction(x), fraction(y)) for x, y in points)
    for (a, low), (b, high) in zip(known, known[1:] or known, strict=False):
        if a <= p <= b:
            return low + (high - low) * (p - a) / (b - a) if b > a else low
    return None


def keeps(target: Target, r: Fraction, p: Fraction) -> bool:
    """The definition of each target at one ratio and one prior, 0 < p < 1."""
    q = after(r, p)
    match target:
        case wi.Gamma(gamma=gamma):
            return q <= fraction(gamma) * p and (1 - q) * fraction(gamma) >= 1 - p
        case wi.Posterior(posterior=most):
            return q <= fraction(most)
        case wi.Gain(gain=most):
            return q - p <= fraction(most)
        case wi.Rho(rho=rho, m=m):
            return after(r, Fraction(1, m)) <= fraction(rho)
        case wi.Advantage(advantage=most):
            # The best test of two laws within a factor r of each other: TPR = r/(r+1).
            return r / (r + 1) - 1 / (r + 1) <= fraction(most)
        case wi.Detection(tpr=tpr, fpr=fpr):
            return best_rate(r, fraction(fpr)) <= fraction(tpr)
        case wi.BayesRisk(prior=prior, risk=risk):
            # Whoever decides says the likelier of the two, at each of the two answers.
            before = fraction(prior)
            wrong = min(before * r, 1 - before) + min(before, (1 - before) * r)
            return wrong / (r + 1) >= fraction(risk)
        case wi.Profile(profile=points):
            most = accepted(points, p)
            return most is None or q <= most
    raise AssertionError(target)


def priors(target: Target, low: Fraction, high: Fraction) -> list[Fraction]:
    """A fine grid of the range with its ends, and where a gain peaks; 0 and 1 are approached."""
    near = Fraction(1, 10**9)
    points = {low + (high - low) * Fraction(i, GRID) for i in range(GRID + 1)}
    points |= {min(max(near, low), high), min(max(1 - near, low), high)}
    if isinstance(target, wi.Gain):
        points.add(min(max((1 - fraction(target.gain)) / 2, low), high))
    if isinstance(target, wi.Profile):
        points |= tightest(target, low, high)
    return sorted(p for p in points if 0 < p < 1)


def tightest(target: wi.Profile, low: Fraction, high: Fraction) -> set[Fraction]:
    """Where the odds may grow least, between each two points: looked for, not derived."""
    known = sorted({fraction(x) for x, _ in target.points} | {low, high})
    found = {low, high, *known}
    for a, b in pairwise(known):
        left, right = float(a), float(b)
        for _ in range(4):
            places = [left + (right - left) * i / 40 for i in range(41)]
            growth = [odds_growth(target, p) for p in places]
            best = growth.index(min(growth))
            left, right = places[max(best - 1, 0)], places[min(best + 1, 40)]
        found.add(Fraction(places[best]))
    return {p for p in found if low <= p <= high}


def odds_growth(target: wi.Profile, p: float) -> float:
    most = accepted(target.points, Fraction(p))
    if most is None or float(most) == 1 or not 0 < p < 1:
        return math.inf
    return float(most) * (1 - p) / (p * (1 - float(most)))


def belief_range(rng: random.Random) -> tuple[Fraction, Fraction]:
    low, high = sorted(Fraction(rng.randint(0, 40), 40) for _ in range(2))
    return (low, high) if low < high or 0 < low < 1 else (ZERO, ONE)


def random_target(rng: random.Random, name: str, high: Fraction) -> Target | None:
    inside = Fraction(rng.randint(1, 199), 200)
    if name == "gamma":
        return wi.Gamma(1 + Fraction(rng.randint(1, 400), 100))
    if name == "posterior":
        return wi.Posterior(high + (1 - high) * inside) if high < 1 else None
    if name == "rho":
        m = rng.randint(2, 30)
        return wi.Rho(Fraction(1, m) + (1 - Fraction(1, m)) * inside, m)
    if name == "detection":
        rates = sorted(rng.sample(range(1, 200), 2))
        return wi.Detection(Fraction(rates[1], 200), Fraction(rates[0], 200))
    if name == "bayes-risk":
        prior = Fraction(rng.randint(1, 39), 40)
        share = 1 if prior != Fraction(1, 2) and rng.random() < 0.2 else inside
        return wi.BayesRisk(prior, min(prior, 1 - prior) * share)
    if name == "profile":
        return random_profile(rng, high)
    kind: Any = TARGET_KINDS[name]
    made: Target = kind(inside)
    return made


def random_profile(rng: random.Random, high: Fraction) -> wi.Profile:
    """Up to five priors, one of them in the range; q(0) = 0 and q(1) = 1 among them."""
    at = sorted({high, *(Fraction(x, 40) for x in rng.sample(range(41), rng.randint(0, 4)))})
    most, points = ZERO, {}
    for p in at:
        share = ZERO if p == 0 and rng.random() < 0.7 else Fraction(rng.randint(1, 20), 20)
        most = max(most, p + (1 - p) * share)
        points[p] = most
    return wi.Profile(points)


@cases(10, INSTANCES)
@pytest.mark.parametrize("name", sorted(set(TARGET_KINDS) - {"epsilon"}))
def test_a_ratio_is_the_largest_that_keeps_the_promise(name, count):
    """Met at every prior of the range; one part in a million more is not, somewhere."""
    rng, tried = random.Random(f"ratio {name}"), 0
    while tried < count:
        low, high = belief_range(rng)
        target = random_target(rng, name, high)
        if target is None:
            continue
        tried += 1
        ratio = target.ratio(low, high)
        points = priors(target, low, high)
        if ratio == math.inf:
            assert all(keeps(target, Fraction(10**12), p) for p in points)
            continue
        assert isinstance(ratio, Fraction) and ratio > 1
        assert all(keeps(target, ratio, p) for p in points)
        assert not all(keeps(target, ratio * MORE, p) for p in points)


@cases(10, INSTANCES)
@pytest.mark.parametrize("name", sorted(set(TARGET_KINDS) - {"epsilon"}))
def test_met_is_the_definition(name, count):
    """`met` says what the definition says on the grid, for ratios around the largest one."""
    rng = random.Random(f"met {name}")
    for _ in range(count):
        low, high = belief_range(rng)
        target = random_target(rng, name, min(high, Fraction(9, 10)))
        assert target is not None
        if name == "posterior" and high == 1:
            high = Fraction(39, 40)
        factor = 1 + Fraction(rng.randint(-50, 50), 1000)
        try:
            largest = target.ratio(low, high)
        except InvalidInput:  # a profile of other priors
            continue
        except ImpossibleTarget:
            largest = Fraction(2)
        ratio = Fraction(3) if largest == math.inf else max(ONE, largest * factor)
        points = priors(target, low, high)
        assert target.met(ratio, low, high) == all(keeps(target, ratio, p) for p in points)


def test_an_infinite_ratio_meets_nothing_that_says_something():
    """Certainty is met only by targets that allow it."""
    for target in (wi.Gamma(2), wi.Posterior("0.9"), wi.Epsilon(1), wi.Gain("0.4")):
        assert not target.met(math.inf, Fraction(1, 10), Fraction(1, 2))
    assert not wi.Rho("0.9", 3).met(math.inf, ZERO, ONE)
    assert not wi.Advantage("0.9").met(math.inf, ZERO, ONE)
    assert wi.Gain("0.6").met(math.inf, Fraction(45, 100), Fraction(1, 2))


def test_epsilon_is_its_own_ratio():
    """ln of the ratio is ε, and `met` turns at e^ε."""
    rng = random.Random(3)
    for _ in range(60):
        epsilon = rng.uniform(0.01, 20)
        target = wi.Epsilon(epsilon)
        assert math.log(target.ratio(ZERO, ONE)) == pytest.approx(epsilon, rel=1e-12)
        assert target.met(math.exp(epsilon * (1 - 1e-9)), ZERO, ONE)
        assert not target.met(math.exp(epsilon * (1 + 1e-9)), ZERO, ONE)


# The laws of THEORY 2.


def test_f5_has_its_peak_where_it_should():
    """g(0) = g(1) = γ; g peaks with γ² at 1/(1+γ), rising before it and falling after."""
    rng = random.Random(6)
    for _ in range(100):
        gamma = 1 + Fraction(rng.randint(1, 500), 100)
        peak = 1 / (1 + gamma)
        assert beliefs.largest_ratio(ZERO, gamma) == beliefs.largest_ratio(ONE, gamma) == gamma
        assert beliefs.largest_ratio(peak, gamma) == gamma**2
        before = [beliefs.largest_ratio(peak * Fraction(i, 10), gamma) for i in range(11)]
        past = [
            beliefs.largest_ratio(peak + (1 - peak) * Fraction(i, 10), gamma) for i in range(11)
        ]
        assert before == sorted(before) and past == sorted(past, reverse=True)


def test_f6_the_ends_of_a_range_decide():
    """The least g over a range is at an end; f7: at prior 1/2 it is 2γ − 1."""
    rng = random.Random(7)
    for _ in range(100):
        low, high = belief_range(rng)
        gamma = 1 + Fraction(rng.randint(1, 300), 100)
        inside = [low + (high - low) * Fraction(i, 50) for i in range(51)]
        least = min(beliefs.largest_ratio(p, gamma) for p in inside)
        assert beliefs.ratio_for_gamma(gamma, low, high) == least
        assert beliefs.largest_ratio(Fraction(1, 2), gamma) == 2 * gamma - 1


def test_f16_the_largest_gain_is_a_quarter_tanh():
    """Over all priors the gain of e^ε is tanh(ε/4), at 1/(1+e^(ε/2)); on a range at the nearer
    end where that is outside."""
    rng = random.Random(16)
    for _ in range(100):
        epsilon = rng.uniform(0.01, 8)
        r = math.exp(epsilon)
        most, at = beliefs.largest_gain(r, 0, 1)
        assert most == pytest.approx(math.tanh(epsilon / 4), rel=1e-12)
        assert at == pytest.approx(1 / (1 + math.exp(epsilon / 2)), rel=1e-12)
        assert float(beliefs.ratio_for_gain(most, 0, 1)) == pytest.approx(r, rel=1e-9)
        low, high = sorted(rng.random() for _ in range(2))
        most, at = beliefs.largest_gain(r, low, high)
        grid = [low + (high - low) * i / 200 for i in range(201)]
        assert max(float(beliefs.gain(r, p)) for p in grid) <= most + 1e-12
        assert low <= at <= high


def test_f17_absence_is_presence_with_beliefs_turned_round():
    """The negative ratio at belief 1 − p moves the belief in absence as F4 says."""
    rng = random.Random(17)
    for _ in range(100):
        low, high = belief_range(rng)
        gamma = 1 + Fraction(rng.randint(1, 300), 100)
        r = beliefs.ratio_for_gamma(gamma, 1 - high, 1 - low)
        for p in priors(wi.Gamma(gamma), low, high):
            out = after(r, 1 - p)  # Pr[¬t|S], where S has the ratio Pr[S|¬t]/Pr[S|t] = r
            assert out <= gamma * (1 - p) and (1 - out) * gamma >= p


# What is refused.


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: wi.Gamma(1), "gamma"),
        (lambda: wi.Gamma(0.5), "gamma"),
        (lambda: wi.Gamma("much"), "gamma"),
        (lambda: wi.Gamma(math.inf), "gamma"),
        (lambda: wi.Gamma(math.nan), "gamma"),
        (lambda: wi.Posterior(0), "posterior"),
        (lambda: wi.Posterior(1), "posterior"),
        (lambda: wi.Posterior(-0.1), "posterior"),
        (lambda: wi.Posterior(None), "posterior"),
        (lambda: wi.Epsilon(0), "epsilon"),
        (lambda: wi.Epsilon(-1), "epsilon"),
        (lambda: wi.Epsilon(1000), "epsilon"),
        (lambda: wi.Rho(0, 3), "rho"),
        (lambda: wi.Rho(1, 3), "rho"),
        (lambda: wi.Rho(0.5, 1), "m"),
        (lambda: wi.Rho(0.5, 2.5), "m"),  # type: ignore[arg-type]
        (lambda: wi.Rho(0.5, True), "m"),
        (lambda: wi.Gain(0), "gain"),
        (lambda: wi.Gain(1), "gain"),
        (lambda: wi.Advantage(0), "advantage"),
        (lambda: wi.Advantage(1.5), "advantage"),
    ],
)
def test_values_out_of_range_are_refused(make, field):
    """The message names the field."""
    with pytest.raises(InvalidInput) as caught:
        make()
    assert caught.value.field == field and str(caught.value).startswith(field)


def test_impossible_posteriors_name_the_nearest_possible():
    """Someone surer than the target already cannot be held to it."""
    for most, high in ((0.6, 0.7), (0.5, 0.5), (0.3, 1.0)):
        with refused("posterior", kind=ImpossibleTarget) as caught:
            wi.calibrate(wi.Posterior(most), wi.families.Independent(0.05, high))
        assert caught.value.nearest == Fraction(repr(high))
        assert caught.value.value == Fraction(repr(most)) and f"{most:g}" in caught.value.hint
    just = wi.calibrate(wi.Posterior("0.7001"), wi.families.Independent("0.05", "0.7"))
    assert 0 < just.epsilon < 0.001


def test_impossible_rho_names_the_nearest_possible():
    """ρ at or below 1/m is what the adversary believes already."""
    with refused("rho", kind=ImpossibleTarget) as caught:
        wi.calibrate(wi.Rho("0.1", 10))
    assert caught.value.nearest == Fraction(1, 10)
    assert "more than 10 candidates" in caught.value.hint
    assert wi.calibrate(wi.Rho("0.1", 11)).epsilon > 0


def test_targets_that_need_no_noise_are_refused():
    """A gain that certainty itself does not reach rules nothing out."""
    with refused("target"):
        wi.calibrate(wi.Gain("0.6"), wi.families.Independent("0.45", "0.5"))


def test_targets_are_values_and_speak():
    """Equal targets are equal, none can be changed, and each says what it promises."""
    for name, kind in TARGET_KINDS.items():
        target = kind(Fraction(3, 2)) if name == "gamma" else random_target_of(kind)
        assert target == type(target)(**vars(target)) and hash(target) == hash(target)
        assert target.name == name and target.words()
        with pytest.raises(AttributeError):
            target.name = "other"
    assert wi.Posterior(Fraction(3, 200)) == HIPAA_TARGET


def random_target_of(kind: type[Target]) -> Target:
    two: dict[type, Target] = {
        wi.Rho: wi.Rho(Fraction(1, 2), 3),
        wi.Detection: wi.Detection(Fraction(1, 2), Fraction(1, 4)),
        wi.BayesRisk: wi.BayesRisk(Fraction(1, 2), Fraction(1, 4)),
        wi.Profile: wi.Profile({"0.1": "0.3", "0.5": "0.6"}),
    }
    return two[kind] if kind in two else kind(Fraction(1, 2))  # type: ignore[call-arg]


@pytest.mark.parametrize("delta", [10**400, -(10**400), 1, 2, "-0.1", "x", True])
def test_a_delta_that_is_none_is_refused_by_its_path(delta):
    with pytest.raises(InvalidInput) as refused:
        read_plan({}, {"gamma": 2, "delta": delta})
    assert refused.value.path == "target.delta" and str(refused.value).startswith("target.delta")


@pytest.mark.parametrize(
    ("words", "delta"),
    [
        ({"tpr": "0.1", "fpr": "0.01"}, "0.09"),
        ({"tpr": "0.3", "fpr": "0.1"}, "0.2"),
        ({"advantage": "0.1"}, "0.1"),
        ({"risk": "0.3", "risk-prior": "0.5"}, "0.4"),
        ({"risk": "0.36", "risk-prior": "0.4"}, "0.1"),
        ({"risk": "0.4", "risk-prior": "0.4"}, "0.01"),
    ],
)
def test_a_delta_that_reaches_the_limit_of_a_rate_is_refused(words, delta):
    """Whichever side of it the float is on: an ε of 1e-16 would be no plan."""
    with pytest.raises(InvalidInput) as refused:
        read_plan({}, {**words, "delta": delta})
    assert refused.value.path == "target.delta"
    if delta != "0.01":
        assert read_plan({}, {**words, "delta": str(float(delta) * 0.99)}).epsilon > 1e-3
