"""Priors far below what floats hold: the truth, or a refusal, never a level of 1."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import pytest

import whosin as wi
from refusals import refused
from whosin import families, priors
from whosin.errors import Unsupported
from whosin.notions import (
    BayesianDifferentialPrivacy,
    BayesianSemanticPrivacy,
    Identifiability,
    MutualInformation,
    NegativeMembership,
    PositiveMembership,
    SampledDifferentialPrivacy,
    base,
)

TINY = (1e-150, 1e-149)
"""Likelihoods of an output without and with someone; every other output hides it."""
PRIORS = ["1e-100", "1e-200", "1e-300", Fraction(1, 10**400)]


def rare(space):
    """Of two outputs one is rare, and ten times likelier with the first entity (or row) at 1."""
    count = space.worlds
    one = [TINY[(w & 1) if isinstance(space, wi.Subsets) else w >> 1 & 1] for w in range(count)]
    return wi.Channel(space, [[p, 1 - p] for p in one])


def out_of(p: Any) -> Fraction:
    return 1 - Fraction(p)


def table(p: object) -> priors.Table:
    """Two people who come together with probability p."""
    return priors.Table({0b11: p, 0b00: out_of(p)})


def coins(p: object) -> priors.Independent:
    return priors.Independent([p, Fraction(1, 2)])


@pytest.mark.parametrize("p", PRIORS)
def test_families_of_one_prior(p):
    """γ = 10 for someone who is very unlikely to be in: the ratio is that of the likelihoods."""
    for prior in (
        table(p),
        coins(p),
        priors.Exchangeable([out_of(p), 0, p]),
        priors.Blocks([((0,), {(0,): p, (): out_of(p)}), ((1,), {(): 1})]),
    ):
        level = PositiveMembership(families.Explicit([prior])).measure(rare(wi.Subsets(2)))
        assert level.value == pytest.approx(10, rel=1e-12) and level.value >= 10 * (1 - 1e-15)
        assert level.witness.ratio == pytest.approx(10)
    down = wi.Channel(wi.Subsets(2), [[TINY[1 - (w & 1)], 1 - TINY[0]] for w in range(4)])
    level = NegativeMembership(families.Explicit([coins(out_of(p))])).measure(down)
    assert level.value == pytest.approx(10, rel=1e-12)


@pytest.mark.parametrize("p", PRIORS)
def test_families_with_parameters(p):
    channel = rare(wi.Subsets(2))
    for family in (
        families.FixedProbability(p),
        families.AtMostKnown(1, p, "0.5"),
        families.AtMostKnown(0, p, 2 * Fraction(p)),
        families.Independent(p, "0.5"),
        families.OneOf(2),
    ):
        level = PositiveMembership(family).measure(channel)
        assert level.witness.ratio == pytest.approx(10)


def test_rare_outputs_that_need_several_unlikely_people():
    """Only three people together give the output away; each is there with probability 1e-200, so
    without one of them it is impossible, and with them it has probability 1e-400."""
    space = wi.Subsets(3)
    alarm = wi.Channel(space, [[float(w == 7), float(w < 7)] for w in range(8)])
    hint = wi.Channel(
        space, [[0.5, 0.5] if w == 7 else [0.25 * (w & 1), 1 - 0.25 * (w & 1)] for w in range(8)]
    )
    for family in (
        families.Explicit([priors.Independent("1e-200")]),
        families.FixedProbability("1e-200"),
    ):
        assert PositiveMembership(family).measure(alarm).value == math.inf
        assert PositiveMembership(family).measure(hint).value == math.inf


def test_random_priors_against_exact_arithmetic():
    """A float channel and the channel of the same binary fractions have the same level, whatever
    the prior's masses."""
    rng = random.Random(1)
    for _ in range(20):
        n = rng.choice([2, 3])
        rows = []
        for _w in range(2**n):
            p = rng.choice([0.0, 10.0 ** -rng.randint(0, 150), 10.0 ** -rng.randint(0, 3)])
            rows.append([p, 1 - p])
        masses = [Fraction(rng.randint(1, 9), 10 ** rng.choice([0, 5, 200, 350])) for _w in rows]
        prior = priors.Table([mass / sum(masses) for mass in masses])
        exact = [[Fraction(p), 1 - Fraction(p)] for p, _ in rows]
        for kind in (PositiveMembership, NegativeMembership):
            notion = kind(families.Explicit([prior]))
            floats = notion.measure(wi.Channel(wi.Subsets(n), rows))
            truth = notion.measure(wi.Channel(wi.Subsets(n), exact))
            if truth.value > 10**300:
                assert floats.value > 1e300
            else:
                assert Fraction(floats.value) / truth.value == pytest.approx(1, rel=1e-10)


@pytest.mark.parametrize("p", PRIORS)
@pytest.mark.parametrize("exact", [False, True])
def test_records(p, exact):
    channel = rare(wi.Records(2, 2))
    if exact:
        rows = [[Fraction(entry), 1 - Fraction(entry)] for entry, _ in channel.likelihoods]
        channel = wi.Channel(wi.Records(2, 2), rows)
    prior = priors.Table({(1, 0): p, (0, 0): out_of(p)})
    bayes = BayesianDifferentialPrivacy(prior).measure(channel)
    assert bayes.value == pytest.approx(math.log(10)) and bayes.exact
    semantic = BayesianSemanticPrivacy(prior).measure(channel)
    assert semantic.value == pytest.approx(0.519493853295916, abs=1e-15)
    full = priors.Independent([(out_of(p), p), ("1/2", "1/2")])
    assert BayesianDifferentialPrivacy(full).measure(channel).value == pytest.approx(math.log(10))
    mass = Fraction(p)
    odds = (1 - mass) * Fraction(TINY[0]) / (mass * Fraction(TINY[1]))
    logs = max(
        math.log((1 - mass).numerator) - math.log(mass.numerator) if mass.numerator else 0,
        math.log(odds.numerator) - math.log(odds.denominator),
        math.log((1 - mass) / mass) if mass > Fraction(1, 10**300) else 0,
    )
    found = Identifiability(full).measure(channel).value
    assert found >= logs - 1e-9 and found == pytest.approx(math.log(10) * -_power(p), rel=1e-2)
    assert 0 <= MutualInformation(prior).measure(channel).value < 1e-90


def _power(p: Any) -> int:
    return round(math.log10(float(p))) if float(Fraction(p)) else -400


def test_mutual_information_of_an_unlikely_secret():
    """With probability 1e-200 the table is (1), and the output says so: I = H(X)."""
    p = Fraction(1, 10**200)
    prior = priors.Table({(0,): 1 - p, (1,): p})
    level = MutualInformation(prior).measure(wi.Channel(wi.Records(1, 2), [[1, 0], [0, 1]]))
    assert level.value == pytest.approx(1e-200 * (200 * math.log(10) + 1), rel=1e-12)


def test_noise_under_unlikely_priors():
    """Laplace noise: the ratio between the two values of a row is e^(1/scale) for every prior."""
    for p in PRIORS:
        prior = priors.Independent((out_of(p), p))
        level = BayesianDifferentialPrivacy(prior).measure(
            wi.mechanisms.Laplace("sum", 1).channel(wi.Records(3, 2))
        )
        assert level.value == pytest.approx(1, abs=1e-11) and level.value >= 1
        count = wi.mechanisms.Laplace(wi.statistics.Count(), 1)
        family = families.Explicit([priors.Independent(p)])
        found = PositiveMembership(family).measure(count, wi.Subsets(5))
        assert found.value == pytest.approx(math.e, rel=1e-9)


def test_sampling_at_a_tiny_rate():
    """The output needs both people: sampled at β each, it has probability β² with both and 0 with
    one, so the level is infinite however small β is."""
    rows = [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    for beta in ("1e-100", "1e-200"):
        level = SampledDifferentialPrivacy(beta).measure(wi.Channel(wi.Subsets(2), rows))
        assert level.value == math.inf
    rows = [[1e-149, 1 - 1e-149], [1e-150, 1 - 1e-150], [0.0, 1.0], [0.25, 0.75]]
    floats = wi.Channel(wi.Subsets(2), rows)
    exact = wi.Channel(wi.Subsets(2), [[Fraction(p), 1 - Fraction(p)] for p, _ in rows])
    for beta in ("1e-90", "1e-160"):
        truth = SampledDifferentialPrivacy(beta).measure(exact).value
        assert SampledDifferentialPrivacy(beta).measure(floats).value == pytest.approx(truth)


def test_what_is_too_large_for_rationals_is_refused(monkeypatch):
    monkeypatch.setattr(base, "MAX_EXACT_SEARCHED_ENTRIES", 1)
    family = families.Explicit([coins(Fraction(1, 10**400))])
    with refused("family", kind=Unsupported):
        PositiveMembership(family).measure(rare(wi.Subsets(2)))


def test_chains_of_unlikely_steps_are_refused():
    """Two unlikely steps in a row are below the smallest float: not impossible, though."""
    chain = priors.MarkovChain(
        [1 - Fraction(1, 10**200), Fraction(1, 10**200)],
        [[1 - Fraction(1, 10**200), Fraction(1, 10**200)], ["1/2", "1/2"]],
    )
    with refused("prior", kind=Unsupported):
        BayesianDifferentialPrivacy(chain).measure(
            wi.mechanisms.Laplace("sum", 1), wi.Records(6, 2)
        )


@pytest.mark.parametrize("homogeneous", [True, False])
def test_chains_of_many_values_with_rare_steps_are_measured(homogeneous):
    """Rare steps are no reason to refuse: only what gets too small for floats is."""
    rare = Fraction(1, 1000)
    matrix = [[1 - 9 * rare if x == y else rare for y in range(10)] for x in range(10)]
    chain = priors.MarkovChain([Fraction(1, 10)] * 10, matrix if homogeneous else [matrix] * 3)
    level = BayesianDifferentialPrivacy(chain).measure(
        wi.mechanisms.Laplace("sum", 5), wi.Records(4, 10)
    )
    assert 0 < level.value < math.inf
