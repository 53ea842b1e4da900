"""Beliefs against Bayes' rule and the definitions, in exact rationals on a grid of cases."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from refusals import refused
from whosin import beliefs, exact

F = Fraction

RATIOS = [F(0), F(1, 7), F(1, 2), F(1), F(8, 7), F(3, 2), F(3), F(40)]
PRIORS = [F(0), F(1, 100), F(1, 6), F(1, 3), F(1, 2), F(2, 3), F(9, 10), F(1)]
RANGES = [(low, high) for low in PRIORS for high in PRIORS if low <= high]
INNER = [each for each in PRIORS if 0 < each < 1]
TINY = F(1, 10**9)


def bayes(ratio, prior):
    """Pr[t|S] from Pr[S|t] : Pr[S|¬t] = ratio : 1."""
    if prior in (0, 1):
        return prior
    if ratio == math.inf:
        return F(1)
    return ratio * prior / (ratio * prior + (1 - prior))


def defined_gamma(ratio, prior):
    """The least γ ≥ 1 with Pr[t|S] ≤ γ Pr[t] and Pr[¬t|S] ≥ Pr[¬t]/γ (Li13 Definition 3.1)."""
    after = bayes(ratio, prior)
    return max(F(1), after / prior, math.inf if after == 1 else (1 - prior) / (1 - after))


def between(low, high):
    """Beliefs in a range, with its ends."""
    return sorted({low, high} | {low + (high - low) * F(k, 12) for k in range(13)})


@pytest.mark.parametrize("ratio", [*RATIOS, math.inf])
def test_posteriors_and_gammas_are_those_of_bayes(ratio):
    for prior in INNER:
        after = bayes(ratio, prior)
        assert beliefs.posterior(ratio, prior) == after
        assert beliefs.gain(ratio, prior) == after - prior
        assert beliefs.gamma(ratio, prior) == defined_gamma(ratio, prior)
    for certain in (F(0), F(1)):
        assert beliefs.posterior(ratio, certain) == certain
        assert beliefs.gamma(ratio, certain) == 1
        assert beliefs.gain(ratio, certain) == 0


@pytest.mark.parametrize("gamma", [F(1), F(9, 8), F(3, 2), F(5)])
def test_the_largest_ratio_keeps_gamma_and_no_larger_one_does(gamma):
    for prior in INNER:
        ratio = beliefs.largest_ratio(prior, gamma)
        assert defined_gamma(ratio, prior) == gamma
        assert defined_gamma(ratio + TINY, prior) > gamma
    assert beliefs.largest_ratio(F(0), gamma) == beliefs.largest_ratio(F(1), gamma) == gamma
    assert beliefs.largest_ratio(F(1, 3), 2) == F(4)
    for low, high in RANGES:
        ratio = beliefs.ratio_for_gamma(gamma, low, high)
        inside = [each for each in between(low, high) if 0 < each < 1]
        assert all(defined_gamma(ratio, prior) <= gamma for prior in inside)
        ends = [beliefs.largest_ratio(low, gamma), beliefs.largest_ratio(high, gamma)]
        assert ratio in ends and all(ratio <= end for end in ends)


def test_what_no_ratio_can_do_is_refused():
    assert beliefs.largest_ratio(F(1, 2), math.inf) == math.inf
    assert beliefs.largest_ratio(F(1, 2), 1) == 1
    for prior, gamma, field in ((F(1, 2), F(99, 100), "gamma"), (F(-1, 9), 2, "prior")):
        with refused(field):
            beliefs.largest_ratio(prior, gamma)
    with refused("prior"):
        beliefs.largest_ratio(F(10, 9), 2)


@pytest.mark.parametrize("ratio", [*RATIOS, math.inf])
def test_the_worst_belief_is_worst_in_its_range(ratio):
    for low, high in RANGES:
        worst = beliefs.worst_belief(ratio, low, high)
        uncertain = [each for each in between(low, high) if 0 < each < 1]
        found = [defined_gamma(ratio, prior) for prior in uncertain]
        assert all(worst.gamma >= each for each in found)
        assert low <= worst.prior <= high
        if 0 < worst.prior < 1 and worst.gamma != math.inf:
            there = defined_gamma(ratio, worst.prior)
            assert (there == worst.gamma) == worst.attained or ratio <= 1
            assert there <= worst.gamma <= there * (1 + F(1, 10**6))
        if worst.gamma == math.inf:
            assert ratio == math.inf and worst.attained
        if ratio <= 1:
            assert (worst.gamma, worst.attained) == (1, True)
    assert beliefs.worst_belief(F(1, 2), F(0), F(1)).prior == F(1, 2)
    assert beliefs.worst_belief(F(1, 2), F(2, 3), F(1)).prior == F(2, 3)
    assert beliefs.worst_belief(F(1, 2), F(0), F(1, 3)).prior == F(1, 3)


def test_a_limit_is_marked_as_one():
    near, far = beliefs.worst_belief(F(3), F(0), F(1, 3)), beliefs.worst_belief(F(3), F(2, 3), F(1))
    assert (near.gamma, near.attained, far.gamma, far.attained) == (3, False, 3, False)
    assert 0 < near.prior < F(1, 10**6) and 1 - F(1, 10**6) < far.prior < 1
    assert beliefs.worst_belief(F(3), F(0), F(0)).prior == 0
    assert beliefs.worst_belief(F(3), F(1), F(1)).prior == 1
    inner = beliefs.worst_belief(F(3), F(1, 5), F(4, 5))
    assert (inner.gamma, inner.prior, inner.attained) == (F(13, 5), F(4, 5), True)
    tie = beliefs.worst_belief(F(4), F(0), F(1))  # both ends are limits of γ = 4
    assert (tie.gamma, tie.prior, tie.attained) == (4, F(1, 4 * 10**6), False)


@pytest.mark.parametrize("ratio", [F(8, 7), F(3), F(40)])
def test_a_closer_belief_refutes_any_claim_below_the_limit(ratio):
    for low, high in ((F(0), F(1, 3)), (F(2, 3), F(1))):
        worst = beliefs.worst_belief(ratio, low, high)
        for part in (F(1, 2), F(1, 10**3), F(1, 10**7), F(1, 10**12)):
            claim = worst.gamma - part * (worst.gamma - 1)
            moved = beliefs.closer(ratio, worst.prior, claim)
            assert defined_gamma(ratio, moved) > claim
            assert abs(2 * moved - 1) >= abs(2 * worst.prior - 1)
            if defined_gamma(ratio, worst.prior) > claim:
                assert moved == worst.prior
        assert beliefs.closer(ratio, worst.prior, ratio) == worst.prior
        assert beliefs.closer(ratio, worst.prior, ratio + 1) == worst.prior
    assert beliefs.closer(ratio, F(1, 2), (1 + ratio) / 2) == (1 + F(1, 2)) / 2
    assert defined_gamma(ratio, beliefs.closer(ratio, F(1, 3), F(0))) > 1
    assert beliefs.closer(F(3), F(2, 5), F(5, 2)) == F(1, 20)  # half of where γ is the claim
    assert beliefs.closer(math.inf, F(1, 3), F(5)) == F(1, 3)
    assert (
        beliefs.closer(F(1), F(1, 3), F(0)) == beliefs.closer(F(1, 2), F(1, 3), F(9, 10)) == F(1, 3)
    )


def test_the_ratio_for_a_posterior_reaches_it_and_no_more():
    for high in INNER:
        for most in (high, (high + 1) / 2, F(99, 100)):
            if most < high:
                continue
            ratio = beliefs.ratio_for_posterior(most, high)
            assert bayes(ratio, high) == most
            assert all(bayes(ratio, prior) <= most for prior in between(F(0), high))
        assert beliefs.ratio_for_posterior(F(1), high) == math.inf
        with refused("posterior"):
            beliefs.ratio_for_posterior(high - TINY, high)
    assert beliefs.ratio_for_posterior(F(1, 2), F(0)) == math.inf
    assert beliefs.ratio_for_posterior(F(1), F(1)) == math.inf
    for most in (F(11, 10), F(9, 10)):
        with refused("posterior"):
            beliefs.ratio_for_posterior(most, F(1))


@pytest.mark.parametrize("ratio", [*RATIOS, math.inf])
def test_the_largest_gain_is_largest_in_its_range(ratio):
    for low, high in RANGES:
        gain, prior = beliefs.largest_gain(float(ratio), float(low), float(high))
        found = [float(bayes(ratio, each) - each) for each in between(low, high) if 0 < each < 1]
        assert all(gain >= each - 1e-12 for each in found)
        assert float(low) <= prior <= float(high)
        if ratio != math.inf:
            assert gain == pytest.approx(float(bayes(F(ratio), F(prior)) - F(prior)), abs=1e-12)
    with refused("ratio", -1e-09):
        beliefs.largest_gain(-1e-9, 0.1, 0.2)


def test_the_largest_gain_of_a_certain_output():
    assert beliefs.largest_gain(math.inf, 0.25, 0.5) == (0.75, 0.25)
    assert beliefs.largest_gain(math.inf, 0.0, 0.5) == (1.0, 0.0)
    peak, prior = beliefs.largest_gain(4.0, 0.0, 1.0)
    assert (peak, prior) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert beliefs.largest_gain(0.0, 0.2, 0.7) == (-0.2, 0.2)


@pytest.mark.parametrize("most", [F(1, 50), F(1, 5), F(1, 2), F(9, 10)])
def test_gains_stay_exactly_as_far_as_the_ratio_for_them(most):
    for low, high in RANGES:
        ratio = beliefs.ratio_for_gain(most, low, high)
        inside = between(low, high)
        if ratio == math.inf:
            assert all(bayes(F(10**9), prior) - prior <= most for prior in inside)
            assert beliefs.gain_stays(most, F(10**9), low, high)
            continue
        assert all(bayes(ratio, prior) - prior <= most for prior in inside)
        assert beliefs.gain_stays(most, ratio, low, high)
        assert not beliefs.gain_stays(most, ratio + TINY, low, high)
        peak = min(max((1 - most) / 2, low), high)
        assert bayes(ratio, peak) - peak == most


def test_gains_that_cannot_be_bounded_are_refused():
    for most in (F(0), F(1), F(-1, 2), F(3, 2)):
        with refused("gain"):
            beliefs.ratio_for_gain(most, F(0), F(1))


def test_identified_is_bayes_with_alike_rows():
    for values in (2, 3, 10):
        for epsilon in (0.0, 0.5, 3.0):
            growth = math.exp(epsilon)
            assert beliefs.identified(epsilon, values) == pytest.approx(
                growth / (growth + values - 1), rel=1e-15
            )


def test_negative_membership_has_the_beliefs_in_the_opposite():
    for low, high in RANGES:
        assert beliefs.sides(low, high, True) == (low, high)
        assert beliefs.sides(low, high, False) == (1 - high, 1 - low)


@pytest.mark.parametrize(
    ("belief", "rounded", "text"),
    [
        (0, "nearest", "0%"),
        (1, "nearest", "100%"),
        (F(1, 2), "nearest", "50.0%"),
        (F(2, 3), "up", "66.7%"),
        (F(2, 3), "down", "66.6%"),
        (F(1, 200), "nearest", "0.5%"),
        (F(1, 10**4), "up", "0.0100%"),  # not 0.1%, which is ten times as much
        (F(1, 10**4), "nearest", "0.0100%"),
        (F(9996, 10**4), "down", "99.9600%"),
        (1 - F(1, 10**5), "nearest", "99.99900%"),
        (F(1, 10**30), "nearest", "1e-28%"),
        (1 - F(1, 10**13), "nearest", "99.999999999990%"),
        (1 - F(1, 10**30), "nearest", "almost 100%"),
    ],
)
def test_a_belief_is_never_written_as_a_certainty_that_it_is_not(belief, rounded, text):
    assert exact.format_percent(belief, rounded) == text


def test_only_beliefs_are_written_as_such():
    for wrong in (F(-1, 10**9), 1 + F(1, 10**9), 2.0):
        with refused("belief"):
            exact.format_percent(wrong)


@pytest.mark.parametrize(
    ("share", "rounded", "text"),
    [
        (0, "up", "0%"),
        (1, "down", "100%"),
        (F(1, 2), "up", "50.0%"),
        (F(12345, 10**5), "down", "12.345%"),
        (F(1, 3), "up", "33.4%"),
        (F(1, 3), "down", "33.3%"),
    ],
)
def test_a_chosen_share_keeps_its_digits(share, rounded, text):
    assert exact.chosen_percent(share, rounded) == text
