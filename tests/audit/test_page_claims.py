"""Numbers and sentences of the pages about audits that no example there shows."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import whosin as wi
from amounts import cases
from attacked import most_alarms
from whosin.audit.bounds import lower_bound, upper_bound


@pytest.mark.parametrize("count", [100, 3000])
def test_coins_show_no_more_than_their_logarithm_less_about_two(count):
    """howto/training, limits: between 1.6 and 2 are lost at 95% confidence."""
    coins = np.random.default_rng(1).random(count) < 0.5
    told = np.where(coins, 1.0, -1.0) * (1 + np.arange(count))
    most = wi.audit.one_run(coins, told, known_rate=True).most
    assert 1.6 < math.log(count) - most < 2


def test_what_an_unknown_rate_costs():
    """audit: 1/√m to 10/√m in ln r, 6/√m in the middle; ε less than 0.1 in most runs."""
    costs, small = [], 0
    for seed in range(9):
        rng = np.random.default_rng(seed)
        coins = rng.random(1000) < 0.5
        told = 1.5 * coins + rng.normal(size=1000)
        known, unknown = (wi.audit.one_run(coins, told, known_rate=each) for each in (True, False))
        costs.append((known.log_ratio - unknown.log_ratio) * math.sqrt(1000))
        small += known.epsilon - unknown.epsilon < 0.1
    assert min(costs) > 0.5 and max(costs) < 12 and 4 < np.median(costs) < 8
    assert small > 5


def test_which_neighbours_a_bound_is_about():
    coins = np.arange(40) % 2 == 0
    run = wi.audit.one_run(coins, coins * 1.0)
    scores = wi.audit.scores(np.arange(20) * 1.0, np.arange(20) + 0.5)
    worlds = wi.audit.two_worlds(lambda x, size, rng: rng.random(size) < x, 0.5, 0.4, 1000, seed=1)
    assert [each.relation for each in (run, scores, worlds)] == ["add-remove", "replace", None]
    assert [each.to_dict()["relation"] for each in (run, scores)] == ["add-remove", "replace"]


def test_scores_may_show_twice_the_level_for_adding_someone():
    """One of 100 people, a mechanism of ε = ln 2 for adding a person, and scores that show more:
    nobody in the data gives each person's own output 1/150, that person 2/150, others half."""
    people, nobody = 100, Fraction(1, 150)
    rest = 1 - 2 * nobody - (people - 1) * nobody / 2
    for one, other in ((2 * nobody, nobody), (nobody / 2, nobody), (rest, 1 - people * nobody)):
        assert Fraction(1, 2) <= one / other <= 2  # each output, with someone and with nobody
    out = (2 * nobody + (people - 1) * nobody / 2) / people
    assert 2 < 2 * nobody / out < 4  # one's own output, in or out: beyond e^ε, within e^2ε
    rng = np.random.default_rng(1)
    members, others = rng.random(300_000) < 2 / 150, rng.random(300_000) < float(out)
    found = wi.audit.scores(*(each + rng.random(len(each)) / 2 for each in (members, others)))
    assert math.log(2) < found.epsilon < math.log(2 * nobody / out) < 2 * math.log(2)


@cases(40, 5000)
def test_the_ends_of_a_rate_hold_together(count):
    """audit: a false positive rate of at most what was asked, and both ends of the true one."""
    rng, wrong = np.random.default_rng(), 0
    for _ in range(count):
        members, others = rng.random(60) ** 0.5, rng.random(60)
        scores = wi.audit.model_scores.compare_scores(members, others, 0.8, 0.0)
        rate = scores.tpr_at(0.5)
        tpr = 1 - rate.threshold**2
        wrong += 1 - rate.threshold > 0.5 or not rate.low <= tpr <= rate.high
    assert wrong <= most_alarms(count, 0.2)
    error = 0.2 / 3
    hits = int((members > rate.threshold).sum())
    ends = lower_bound(hits, 60, error), upper_bound(hits, 60, error)
    assert (rate.low, rate.high) == pytest.approx(ends, abs=1e-9)
