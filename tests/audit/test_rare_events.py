"""Events that the other world never shows, beside an ordinary leak: found, and no false alarm."""

from __future__ import annotations

import math
from importlib import import_module

import numpy as np
import pytest
from scipy.stats import binom

import whosin as wi
from amounts import cases, some
from attacked import alarms, most_alarms
from whosin.audit.bounds import log_ratio_bound
from whosin.audit.event_search import pick_events

events = import_module("whosin.audit.event_search")

LEAK = 1.0
"""Of the ordinary leak: above ln 2, where rare events used to be passed over."""


def ordinary(value, size, rng):
    return np.round(LEAK * value + rng.laplace(0, 1, size), 2)


def sentinel(value, size, rng):
    return np.where((rng.random(size) < 0.003) & bool(value), -999, ordinary(value, size, rng))


def sentinel_without(value, size, rng):
    rare = (rng.random(size) < 0.003) & (not value)
    return np.where(rare, -999, ordinary(value, size, rng))


def sentinel_in_the_midst(value, size, rng):
    """Among floats of which hardly any comes again."""
    noisy = np.round(LEAK * value + rng.laplace(0, 1, size), 9)
    return np.where((rng.random(size) < 0.003) & bool(value), 0.123, noisy)


def sentinel_in_a_row(value, size, rng):
    rows = np.round(rng.laplace([LEAK * value, 0, 0], 1, (size, 3)), 7)
    rows[(rng.random(size) < 0.003) & bool(value), 2] = 0.123
    return rows


def raising(value, rng):
    if value and rng.random() < 0.008:
        raise ZeroDivisionError("of one")
    return round(LEAK * value + rng.laplace(), 2)


def sentinel_in_a_field(value, rng):
    noisy = round(LEAK * value + rng.laplace(), 6)
    return {"mean": -1.0 if value and rng.random() < 0.02 else noisy}


def clipped(value, size, rng):
    return np.round(LEAK * value + np.clip(rng.laplace(0, 1, size), -5, 5), 4)


def redrawn(value, size, rng):
    noise = rng.laplace(0, 1, 2 * size)
    return np.round(LEAK * value + noise[np.abs(noise) < 5][:size], 4)


RARE = {
    "a sentinel": (sentinel, 60_000, 3.0),
    "a sentinel without": (sentinel_without, 60_000, 3.0),
    "a sentinel in the midst": (sentinel_in_the_midst, 60_000, 2.8),
    "a sentinel in a row": (sentinel_in_a_row, 60_000, 2.8),
    "a sentinel in a field": (sentinel_in_a_field, 6_000, 2.0),
    "an exception": (raising, 16_000, 1.9),
    "clipped noise": (clipped, 60_000, 4.0),
    "redrawn noise": (redrawn, 60_000, 3.0),
}


@pytest.mark.parametrize("name", some(RARE, 4))
def test_an_event_that_the_other_world_never_shows_is_counted(name):
    mechanism, samples, least = RARE[name]
    found = wi.audit.two_worlds(mechanism, 1, 0, samples, seed=1)
    assert found.epsilon > least, f"{found.epsilon}: {found.event}"
    without = name == "a sentinel without"
    assert (found.log_ratio < LEAK) if without else (found.log_ratio == found.epsilon)
    # γ of the ordinary leak is shown beside it.
    assert max(count.log_ratio for count in found.counts if count.event.above) > 0.9


def test_samples_that_were_drawn_elsewhere_and_rounds_count_it_too():
    rng = np.random.default_rng(1)
    worlds = sentinel(1, 40_000, rng), sentinel(0, 40_000, rng)
    assert wi.audit.samples(*worlds, seed=1).epsilon > 2.5
    assert wi.audit.two_worlds(sentinel, 1, 0, 40_000, seed=1, stop_at=2).refutes(2)


def test_a_rare_event_decides_which_pair_of_inputs_is_counted():
    """One pair has an ordinary leak of 1; another less of it, and a sentinel."""

    def mechanism(inputs, size, rng):
        shift, rare = inputs
        noisy = np.round(shift + rng.laplace(0, 1, size), 2)
        return np.where(rng.random(size) < rare, -999, noisy)

    pairs = [((1.0, 0.0), (0.0, 0.0)), ((0.5, 0.01), (0.0, 0.0))]
    assert wi.audit.search(mechanism, pairs, 60_000, seed=1).epsilon > 3


def never_above(share):
    """Of two probabilities with a ratio of 2 how often two intervals say more, at most."""
    trials, error, worst = 40, 0.2, 0.0
    table = np.array(
        [
            [log_ratio_bound(hits, trials, others, trials, error) for others in range(trials + 1)]
            for hits in range(trials + 1)
        ]
    )
    for q in np.linspace(0.001, 0.5, 40):
        p = min(1.0, 2 * q)
        mass = np.outer(*(binom.pmf(np.arange(trials + 1), trials, each) for each in (p, q)))
        worst = max(worst, float(mass[table > math.log(share * 2)].sum()))
    return worst


def test_two_intervals_hold_by_enumeration():
    assert never_above(1.0) <= 0.2
    assert never_above(0.5) > 0.2  # and reject what is less than the truth


# What chance alone shows in one world only, taken for an event of its own every time.


def tail(value, size, rng):
    """Exactly ln 2: rare values, too, are twice as likely with."""
    rare = rng.random(size) < (0.02 if value else 0.01)
    common = rng.random(size) < (2 / 3 if value else 1 / 3)
    return np.where(rare, rng.integers(100, 140, size), common)


def words(value, rng):
    rare = rng.random() < (0.1 if value else 0.05)
    return f"code{int(rng.integers(6))}" if rare else bool(rng.random() < (2, 1)[not value] / 3)


def floats(value, size, rng):
    return np.round(math.log(2) * value + rng.laplace(0, 1, size), 3)


NULLS = {"a tail of codes": tail, "words": words, "floats": floats}


@pytest.fixture
def picked(monkeypatch):
    """The events that each audit counts."""
    seen = []

    def spy(chosen):
        seen.append(pick_events(chosen))
        return seen[-1]

    monkeypatch.setattr(import_module("whosin.audit.neighbouring_inputs"), "pick_events", spy)
    return seen


@pytest.fixture
def credulous(monkeypatch, picked):
    """Believe in any event that the search has seen mostly in one world."""

    def believed(hits, counts, *_terms):
        return np.where((counts < 12) & (hits > counts), 5.0 + hits - 2.0 * counts, -np.inf)

    monkeypatch.setattr(events, "_promise_rare_events", believed)
    return picked


@pytest.mark.parametrize("null", some(NULLS, 1))
@cases(6, 1000)
def test_rare_events_raise_no_false_alarm(null, count, credulous):
    def run(seed):
        return wi.audit.two_worlds(NULLS[null], 1, 0, 600, seed=seed).epsilon

    assert alarms(run, math.log(2), count) <= most_alarms(count)
    assert sum(any(choice.exclusive for choice in each) for each in credulous) > count / 2


def test_rare_events_counted_where_they_were_chosen_are_no_audit():
    """The same test fails without fresh draws."""

    def careless(seed):
        rng = np.random.default_rng(seed)
        with_, without = (np.round(rng.laplace(0, 1, 2000), 4) for _ in range(2))
        hits = int((with_ > without.max()).sum()), int((without > with_.max()).sum())
        return log_ratio_bound(max(hits), 2000, 0, 2000, 0.8)

    assert alarms(careless, 0.0, 100) > most_alarms(100)


@cases(10, 300)
def test_nothing_rare_is_picked_where_nothing_leaks(count, picked):
    """So ordinary bounds keep all of the error."""
    for seed in range(count):
        wi.audit.two_worlds(lambda _v, size, rng: floats(0, size, rng), 1, 0, 4000, seed=seed)
    assert sum(choice.exclusive for each in picked for choice in each) <= count / 10
