"""Levels are never below the truth: records against exact rationals, conversions against balls."""

from __future__ import annotations

import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import record_oracle as records
import whosin as wi
from whosin import beliefs, priors, theorems
from whosin.exact import quarter_tanh_up
from whosin.notions import (
    BayesianDifferentialPrivacy,
    BayesianSemanticPrivacy,
    Identifiability,
    MutualInformation,
    SemanticPrivacy,
)


def cases(seed: int, count: int):
    """Random tables without zeros, as the engine and as the oracle see them."""
    rng = random.Random(seed)
    for _ in range(count):
        n, m = rng.choice([(1, 3), (2, 2), (2, 3), (3, 2)])
        prior = records.random_prior(rng, n, m, 0)
        channel = records.random_channel(rng, n, m, rng.choice([2, 3, 4]), 0)
        rows = [channel[x] for x in records.worlds(n, m)]
        table = priors.Table(dict(prior))
        yield n, prior, channel, table, wi.Channel(wi.Records(n, m), rows)


def largest_spread(prior: dict | None, channel: dict, n: int, default: int) -> Fraction:
    found = Fraction(1)
    for _row, _known, _y, one, two in records.semantic_cases(prior, channel, n, default):
        ratios = [one[x] / two[x] for x in one]
        found = max(found, max(ratios) / min(ratios))
    return found


def assert_just_above(level: float, spread: Fraction) -> None:
    """level ≥ (√k − 1)/(√k + 1) in exact arithmetic, and the float below it is not."""

    def reaches(number: float) -> bool:
        s = Fraction(number)
        return s >= 1 or ((1 + s) / (1 - s)) ** 2 >= spread

    assert reaches(level)
    assert level == 0 or not reaches(math.nextafter(level, -1))


def test_semantic_levels_are_the_least_floats_not_below_the_truth():
    for n, prior, channel, table, measured in cases(1, 40):
        plain = SemanticPrivacy().measure(measured)
        assert plain.exact
        assert_just_above(plain.value, largest_spread(None, channel, n, 0))
        bayes = BayesianSemanticPrivacy(table).measure(measured)
        assert bayes.exact
        assert_just_above(bayes.value, largest_spread(prior, channel, n, 0))


def test_mutual_information_is_rounded_up():
    with localcontext() as context:
        context.prec = 60
        for _n, prior, channel, table, measured in cases(2, 40):
            truth = Decimal(0)
            outputs = len(next(iter(channel.values())))
            totals = [sum(prior[x] * channel[x][y] for x in prior) for y in range(outputs)]
            for x, p in prior.items():
                for y, total in enumerate(totals):
                    both, ratio = p * channel[x][y], channel[x][y] / total
                    log = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
                    truth += Decimal(both.numerator) / Decimal(both.denominator) * log
            value = MutualInformation(table).measure(measured).value
            assert Decimal(value) >= truth - Decimal(10) ** -50
            assert Decimal(math.nextafter(value, -1)) < truth


def test_mutual_information_of_large_tables_is_bounded_from_above(monkeypatch):
    """The sum in floats plus its rounding is above the one in balls, by next to nothing."""
    from whosin.notions import mutual_information

    for _n, _prior, _channel, table, measured in cases(3, 30):
        exact = MutualInformation(table).measure(measured).value
        with monkeypatch.context() as patch:
            patch.setattr(mutual_information, "MAX_BALL_ENTRIES", 0)
            value = MutualInformation(table).measure(measured).value
        assert exact * (1 - 1e-15) <= value <= exact + 1e-12


def test_the_other_levels_on_records_are_exact_fractions():
    for n, prior, channel, table, measured in cases(4, 30):
        m = measured.space.values
        for notion, truth in (
            (BayesianDifferentialPrivacy(table), records.bayesian_ratio(prior, channel, n)),
            (Identifiability(table), records.identifiability(prior, channel, n, m)),
        ):
            level = notion.measure(measured)
            assert level.witness.ratio == truth
            with localcontext() as context:
                context.prec = 60
                log = (Decimal(truth.numerator) / Decimal(truth.denominator)).ln()
                assert Decimal(level.value) >= log > Decimal(math.nextafter(level.value, -1))


def test_ties_beyond_the_budget_are_enlarged(monkeypatch):
    """Where not every near case can be recomputed the level is above the truth, not below."""
    from whosin.notions import certificates

    monkeypatch.setattr(certificates, "MAX_RECOMPUTED_ENTRIES", 1)
    for n, prior, channel, table, measured in cases(5, 16):
        for notion in (SemanticPrivacy(), BayesianSemanticPrivacy(table)):
            plain = isinstance(notion, SemanticPrivacy)
            spread = largest_spread(None if plain else prior, channel, n, 0)
            value = notion.measure(measured).value
            assert quarter_tanh_up(spread) <= value <= quarter_tanh_up(spread) + 1e-11


@pytest.mark.parametrize("seed", range(3))
def test_t14_and_t15_are_rounded_up(seed):
    """Never below the truth, as Arb balls have it, and within two units of it."""
    from flint import arb, ctx

    rng = random.Random(seed)
    with ctx.workprec(300):
        for _ in range(200):
            epsilon = float(f"{10 ** rng.uniform(-8, 1.5):.{rng.randint(1, 12)}g}")
            level = rng.random() ** rng.choice([1, 4]) * rng.choice([1, 1e-6])
            gamma = 1 + 10 ** rng.uniform(-6, 3)
            e, s, g = arb(epsilon), arb(level), arb(gamma)
            half = arb(1) / 2
            for found, truth in (
                (theorems.semantic_from_dp(epsilon), (e / 2).tanh()),
                (theorems.dp_from_semantic(level), 4 * (half * ((1 + s) / (1 - s)).log())),
                (wi.exact.exp_float(epsilon), e.exp()),
                (theorems.bayesian_from_membership(gamma), g.log()),
                (theorems.semantic_from_dp_as_published(epsilon), (2 * e).exp() - 1),
            ):
                assert arb(found) >= truth.lower()
                assert arb(float(np.nextafter(np.nextafter(found, -1), -1))) < truth.upper()
            if level < 0.5:
                published = theorems.dp_from_semantic_as_published(level)
                assert arb(published) >= (((1 + 2 * s) / (1 - 2 * s)).log()).lower()
    assert theorems.semantic_from_dp(0) == theorems.dp_from_semantic(0) == 0
    assert wi.exact.exp_float(0) == 1
    assert theorems.semantic_from_dp(math.inf) == 1
    assert theorems.semantic_from_dp(1e6) == 1
    assert wi.exact.exp_float(math.inf) == math.inf
    assert theorems.bayesian_from_membership(math.inf) == math.inf


def test_the_largest_gain_of_a_ratio_below_one_is_at_an_end():
    """posterior − prior is then negative inside, so nearest to 0 at one of the ends."""
    rng = random.Random(6)
    for _ in range(200):
        low, high = sorted(rng.random() for _ in range(2))
        ratio = rng.choice([0.0, rng.random(), 1.0, 1 + rng.random() * 10])
        found, prior = beliefs.largest_gain(ratio, low, high)
        assert low <= prior <= high and found == pytest.approx(float(beliefs.gain(ratio, prior)))
        grid = [low + (high - low) * step / 200 for step in range(201)]
        assert found >= max(beliefs.gain(ratio, p) for p in grid) - 1e-15
    assert beliefs.largest_gain(0.5, 0, 1)[0] == 0
