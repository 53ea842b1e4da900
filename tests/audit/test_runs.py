"""Audits of one run and of scores: exact tests by enumeration, ties, unfair coins, low rates."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from scipy.stats import beta, binom

import whosin as wi
from amounts import cases, some
from attacked import alarms, most_alarms
from refusals import about
from whosin.audit import one_run, single_run
from whosin.audit.bounds import RankTest, tried_ranks
from whosin.audit.single_run import Guesses, RunTest, make_guesses
from whosin.errors import InvalidInput

run_module = import_module("whosin.audit.single_run")


def crossing_by_enumeration(sizes, inside, needed, q_in, q_out) -> float:
    """Every sequence of right and wrong guesses: "in" guesses first, then "out", between sizes."""
    chances, done = [], (0, 0)
    for size, first in zip(sizes, inside, strict=True):
        now = first, size - first
        chances += [q_in] * (now[0] - done[0]) + [q_out] * (now[1] - done[1])
        done = now
    total = 0.0
    for coins in itertools.product((0, 1), repeat=sizes[-1]):
        if any(sum(coins[:size]) >= least for size, least in zip(sizes, needed, strict=True)):
            total += math.prod(q if coin else 1 - q for q, coin in zip(chances, coins, strict=True))
    return total


@pytest.mark.parametrize("rate", [0.5, 0.3, 0.8])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0])
def test_the_correction_for_choosing_how_many_to_guess_is_exact(epsilon, rate):
    rng = np.random.default_rng(1)
    odds = math.exp(epsilon) * rate / (1 - rate), math.exp(epsilon) * (1 - rate) / rate
    q_in, q_out = (each / (1 + each) for each in odds)
    for inside in ((2, 5, 9, 11), (1, 3, 5, 6), (0, 0, 0, 0)):
        sizes = (2, 5, 9, 11)
        right = np.cumsum(rng.random(11) < 0.97)
        guesses = Guesses(sizes, tuple(int(right[size - 1]) for size in sizes), inside)
        test = RunTest.of(guesses, 12, 0.4, rates=(rate, rate), rate=rate)
        if test is None:
            continue
        assert any(v >= least for v, least in zip(guesses.right, test.needed, strict=True))
        truth = crossing_by_enumeration(sizes, inside, test.needed, q_in, q_out)
        assert test.p_value(epsilon) == pytest.approx(truth, rel=1e-6)


COUNT, ERROR = 5, Fraction(2, 5)


@pytest.fixture(scope="module")
def rejected():
    """For every world and every answer of five canaries, whether ε = ln 1.5 is rejected; `trusting`
    takes the coins for fair."""
    found = {}
    for world, answers in itertools.product(itertools.product((0, 1), repeat=COUNT), repeat=2):
        coins, scores_ = np.array(world, dtype=bool), np.array(answers, dtype=float)
        rates = run_module.possible_rates(coins, float(ERROR) * 0.2)
        for trusting in (False, True):
            allowed = (0.5, 0.5) if trusting else rates
            alarm = rates[0] <= 0.5 <= rates[1] or trusting
            rejects = []
            for side, part in run_module.SIDE_ERROR_SHARES.items():
                share = float(ERROR) * (1 - run_module.RATE_ERROR_SHARE) * part
                guesses = make_guesses(coins, scores_, side=side, fixed=False)
                test = RunTest.of(guesses, COUNT, share, rates=allowed)
                rejects.append(test is not None and test.p_value(math.log(1.5)) <= share)
            alarm &= any(rejects)
            found[world, answers, trusting] = alarm
    return found


def alarm_chance(rejected, keep, rate, trusting=False) -> Fraction:
    """Exactly how often ε = ln 1.5 is rejected where answers are true with probability `keep`."""
    total = Fraction(0)
    for world, answers in itertools.product(itertools.product((0, 1), repeat=COUNT), repeat=2):
        same = sum(a == b for a, b in zip(world, answers, strict=True))
        chance = math.prod((rate if coin else 1 - rate for coin in world), start=Fraction(1))
        weight = keep**same * (1 - keep) ** (COUNT - same)
        total += chance * weight * rejected[world, answers, trusting]
    return total


@pytest.mark.parametrize("rate", some([Fraction(n, 20) for n in (1, 6, 10, 12, 16, 18)], 3))
def test_false_alarms_by_enumeration(rate, rejected):
    """Randomised response of ε = ln 1.5, fair coins or not: exact coverage."""
    assert alarm_chance(rejected, Fraction(3, 5), rate) <= ERROR
    assert alarm_chance(rejected, Fraction(1, 2), rate) <= ERROR


def test_coins_taken_for_fair_are_found_by_enumeration(rejected):
    half = Fraction(1, 2)
    assert alarm_chance(rejected, half, Fraction(19, 20), trusting=True) > ERROR
    assert alarm_chance(rejected, Fraction(1), half) > alarm_chance(rejected, Fraction(3, 5), half)


def test_what_delta_allows():
    """With one number of guesses: Theorem 5.2 of Steinke et al., or the union bound."""
    for canaries, size, right, epsilon, delta in ((50, 20, 18, 0.5, 1e-3), (30, 30, 25, 0, 1e-2)):
        q = 1 / (1 + math.exp(-epsilon))
        tail = [binom.sf(right - i - 1, size, q) for i in range(canaries + 1)]
        worst = max((tail[i] - tail[0]) / i for i in range(1, canaries + 1))
        published = tail[0] + 2 * canaries * delta * worst
        test = RunTest.of(Guesses((size,), (right,)), canaries, 0.05, delta)
        union = tail[0] + canaries * delta * 0.5 * (1 - q)
        assert test.p_value(epsilon) == pytest.approx(min(published, union))
        other = RunTest.of(Guesses((size,), (right,)), canaries, 0.05, delta, (0.5, 0.5), 0.4)
        assert other.p_value(epsilon) == pytest.approx(union)


def test_delta_is_not_a_false_alarm():
    """(0, δ): each canary's coin is told with probability δ, and nothing else."""
    rng, delta, count = np.random.default_rng(8), 0.02, 60

    def audit(_run):
        coins = rng.random(count) < 0.5
        told = np.where(rng.random(count) < delta, coins - 0.5, 0) + rng.normal(0, 1e-3, count)
        try:
            return one_run(coins, told, delta=delta).epsilon
        except InvalidInput:
            return 0.0

    assert alarms(audit, 0.0, 60) <= most_alarms(60)


def test_constant_scores_say_nothing():
    """Members first, as after train_test_split: the order of a list is no evidence."""
    for count in (100, 1000):
        coins = np.arange(count) < count // 2
        for order in (coins, coins[::-1]):
            for score in (np.zeros(count), np.full(count, -math.inf), np.arange(count) // count):
                found = one_run(order, score)
                assert found.epsilon == found.log_ratio == 0
                assert one_run(order, score, delta=1e-6).epsilon == 0
        both = wi.audit.scores(np.zeros(count), np.zeros(count))
        assert both.epsilon == 0 and both.tpr_at(0.1).tpr == 0


def test_ties_never_help():
    """Equal scores: the bound is the same in whatever order they come, and not above the one of
    scores that break the ties in favour of the finding."""
    rng = np.random.default_rng(4)
    coins = rng.random(600) < 0.5
    told = np.where(rng.random(600) < 0.8, coins, ~coins) * 2.0 + rng.integers(0, 2, 600)
    found = one_run(coins, told)
    assert 0.7 < found.epsilon <= math.log(4) * 1.3
    for delta in (0, 1e-5):
        expected = one_run(coins, told, delta=delta).epsilon
        for order in (np.argsort(coins), np.argsort(~coins), rng.permutation(600)):
            assert one_run(coins[order], told[order], delta=delta).epsilon == expected
        assert expected <= one_run(coins, told + coins / 10, delta=delta).epsilon
    scored = wi.audit.scores(told[coins], told[~coins]).epsilon
    assert 0.5 < scored <= wi.audit.scores((told + 0.1)[coins], told[~coins]).epsilon


def null_runs(rate, count, kind):
    rng = np.random.default_rng(round(1000 * rate) + count)

    def audit(_run):
        coins = rng.random(count) < rate
        score = {"smooth": rng.random(count), "ties": rng.integers(0, 3, count)}[kind]
        try:
            return one_run(coins, score).epsilon
        except InvalidInput:
            return 0.0

    return audit


COINS = [(0.5, 12), (0.6, 100), (0.57, 200)]
MORE_COINS = [(rate, count) for rate in (0.5, 0.52, 0.65) for count in (10, 100, 1000)]


@pytest.mark.parametrize("kind", ["smooth", "ties"])
@pytest.mark.parametrize(
    ("rate", "canaries", "count"),
    [(*each, 60) for each in COINS]
    + [pytest.param(*each, 1000, marks=pytest.mark.soak) for each in COINS + MORE_COINS],
)
def test_unfair_coins_and_ties_raise_no_alarm(rate, canaries, count, kind):
    assert alarms(null_runs(rate, canaries, kind), 0.0, count) <= most_alarms(count)


def test_an_audit_that_trusts_the_coins_is_caught(monkeypatch):
    """The same test fails where the rate is taken for granted."""
    run = null_runs(0.6, 100, "smooth")
    true = single_run.RunTest.of

    def trusting(guesses, canaries, error, delta, rates, rate):
        return true(guesses, canaries, error, delta, (0.5, 0.5), rate)

    monkeypatch.setattr(single_run.RunTest, "of", trusting)
    monkeypatch.setattr(run_module, "RATE_ERROR_SHARE", 1e-9)
    assert alarms(run, 0.0, 100) > most_alarms(100)


def test_a_declared_rate():
    rng = np.random.default_rng(6)
    coins = rng.random(1000) < 0.3
    told = np.where(rng.random(1000) < 0.9, coins, ~coins) + rng.random(1000) / 10
    found = one_run(coins, told, rate="0.3")
    assert 1.2 < found.epsilon < math.log(9) and found.log_ratio > 1.2
    assert found.rate == 0.3 and found.rates[0] < 0.3 < found.rates[1]
    assert found.to_dict()["rate"] == 0.3
    with pytest.raises(InvalidInput, check=about("included", int(coins.sum()))):
        one_run(coins, told)
    with pytest.raises(InvalidInput, check=about("included", int(coins.sum()))):
        one_run(coins, told, rate=0.4)
    for rate in (0, 1, -1, "x", None, math.nan):
        with pytest.raises(InvalidInput, check=about("rate")):
            one_run(coins, told, rate=rate)


def test_coins_and_scores_as_they_come():
    rng = np.random.default_rng(6)
    coins = rng.random(300) < 0.5
    told = np.where(coins, rng.normal(3, 1, 300), -math.inf)
    expected = one_run(coins, told).epsilon
    assert expected > 2
    for kind in (float, int, object):
        assert one_run(coins.astype(kind), told).epsilon == expected
    assert one_run(coins.tolist(), np.where(coins, math.inf, told)).epsilon > 2
    assert wi.audit.scores(told[coins], told[~coins]).epsilon > 2


@pytest.mark.parametrize(("trials", "others", "rank", "delta"), [(9, 7, 0, 0), (12, 10, 3, 0.01)])
def test_the_test_by_ranks(trials, others, rank, delta):
    """The expectation over a Beta variable, by quadrature."""
    for hits, epsilon in itertools.product(range(1, trials + 1, 3), (0.0, 0.5, 1.5)):
        found = RankTest(hits, trials, rank, others, delta).p_value(epsilon)
        levels = (np.arange(20_000) + 0.5) / 20_000
        q = beta.ppf(levels, rank + 1, others - rank)
        p = np.minimum(1, math.exp(epsilon) * q / (1 - delta))
        tails = [binom.sf(hits - given - 1, trials, p).mean() for given in range(hits + 1)]
        gains = [(tail - tails[0]) / given for given, tail in enumerate(tails) if given]
        truth = min(1.0, tails[0] + trials * delta * max(gains))
        assert truth * (1 - 1e-3) <= found <= truth * 1.1 + 1e-6


FAILURES = {
    "shared by the run": lambda rng, count, delta: np.full(count, rng.random() < delta),
    "each by itself": lambda rng, count, delta: rng.random(count) < delta,
    "of ten together": lambda rng, count, delta: np.repeat(rng.random(count // 10) < delta, 10),
}


@pytest.mark.parametrize("delta", [0.02, 0.3])
@pytest.mark.parametrize("failing", FAILURES)
@cases(12, 100)
def test_failures_of_a_run_are_no_false_alarm_of_scores(failing, delta, count):
    """(0, δ): scores tell nothing, but for members whom a failure betrays."""

    def run(seed):
        rng = np.random.default_rng(seed)
        betrayed = FAILURES[failing](rng, 60, delta)
        members = rng.normal(size=60) + 9 * betrayed
        return wi.audit.scores(members, rng.normal(size=60), delta=delta).epsilon

    assert alarms(run, 0.0, count) <= most_alarms(count)


def test_a_small_delta_takes_little_from_scores():
    rng = np.random.default_rng(1)
    members, others = rng.normal(size=1000) + 4, rng.normal(size=1000)
    plain = wi.audit.scores(members, others).epsilon
    assert plain - 1 < wi.audit.scores(members, others, delta=1e-6).epsilon <= plain


def test_ranks_reach_the_extremes():
    assert tried_ranks(3000)[-1] == 0 and tried_ranks(3000)[0] == 1500
    assert all(rank < count for count in (1, 2, 20, 10**6) for rank in tried_ranks(count))


def test_a_few_people_who_stand_out():
    """Six members in a hundred score far above: what `tpr_at` shows, ε shows too."""
    rng, bounds = np.random.default_rng(7), []
    for _ in range(9):
        members = rng.normal(size=1000) + 6 * (rng.random(1000) < 0.06)
        found = wi.audit.scores(members, rng.normal(size=1000))
        rate = found.tpr_at(0.01)
        bounds.append((found.epsilon, math.log(rate.low / rate.fpr)))
    epsilon, implied = np.median(bounds, axis=0)
    assert epsilon >= implied > 1


def null_scores(kind, count):
    rng = np.random.default_rng(count)
    draws = {
        "smooth": lambda: rng.normal(size=count),
        "ties": lambda: rng.integers(0, 4, count),
        "heavy": lambda: rng.standard_cauchy(count),
        "mostly one value": lambda: np.where(rng.random(count) < 0.05, rng.random(count), 0),
    }
    return lambda _run: wi.audit.scores(draws[kind](), draws[kind]()).epsilon


KINDS = ["smooth", "ties", "heavy", "mostly one value"]


@pytest.mark.parametrize("kind", KINDS)
@cases(40, 1000)
def test_scores_raise_no_alarm(kind, count):
    for size in (60,) if count < 100 else (20, 200, 2000):
        assert alarms(null_scores(kind, size), 0.0, count) <= most_alarms(count)


def test_ranks_that_do_not_pay_are_caught():
    """All ranks at the whole error each: far too many alarms."""
    rng = np.random.default_rng(3)

    def careless(_run):
        one, two = rng.normal(size=200), np.sort(rng.normal(size=200))[::-1]
        tests = [RankTest(int((one > two[r]).sum()), 200, r, 200) for r in tried_ranks(200)]
        return max(test.p_value(0.0) <= 0.15 for test in tests)

    assert alarms(careless, 0.0, 100) > most_alarms(100)


def test_those_who_were_out_are_guessed_alone():
    """Only some of those who were out stand apart, as where a tree errs on nobody it has seen."""
    rng = np.random.default_rng(1)
    coins = rng.random(1200) < 0.5
    told = np.ones(1200)
    told[rng.choice(np.flatnonzero(~coins), 148, replace=False)] = 0
    for delta, least in ((0, 3.0), (1e-6, 2.5)):
        found = one_run(coins, told, delta=delta, known_rate=True)
        flipped = one_run(~coins, -told, delta=delta, known_rate=True)
        assert found.epsilon > least and found.log_ratio < 0.3
        assert found.outside.right == flipped.inside.right
        assert flipped.epsilon - 0.3 < found.epsilon < flipped.epsilon == flipped.log_ratio


def test_out_guesses_alone_take_the_lowest_rate():
    """Coins that are in less often than declared make "out" guesses right, and raise no alarm."""

    def run(seed):
        rng = np.random.default_rng(seed)
        coins, told = rng.random(400) < 0.45, np.where(rng.random(400) < 0.1, 0.0, 1.0)
        try:
            return one_run(coins, told).epsilon
        except InvalidInput:
            return 0.0

    assert alarms(run, 0.0, 60) <= most_alarms(60)


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_out_guesses_hold_for_a_mechanism_that_tells_who_is_out(delta):
    """A mechanism of (ln 2, δ) that only ever says "out" is not refuted at ln 2."""

    def run(seed):
        rng = np.random.default_rng(seed)
        coins = rng.random(500) < 0.5
        says_out = rng.random(500) < np.where(coins, 0.1, 0.2)
        if rng.random() < delta:
            says_out = ~coins
        return one_run(coins, 1.0 - says_out, delta=delta, known_rate=True).epsilon

    assert alarms(run, math.log(2), 60) <= most_alarms(60)
