"""Audits that look at the time of calls, where one asks.

Time is a stand-in here that passes only when a mechanism works, so that no other process can change
what a test sees; one test reads the real clock, where a call can take longer and never shorter.
"""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

import whosin as wi
from amounts import cases
from attacked import alarms, most_alarms
from whosin.audit import sampling


class Work:
    """Work that takes time on a clock of its own, about as much more or less as on a machine."""

    now = 0

    def do(self, steps, rng):
        self.now += 200 + int(20 * steps * (1 + rng.exponential(0.2)))


@pytest.fixture
def work(monkeypatch):
    done = Work()
    monkeypatch.setattr(sampling, "clock", lambda: done.now)
    return done


def answer(steps, work):
    """Randomised response that tells by its work what it was given."""

    def draw(value, rng):
        work.do(steps[value], rng)
        return "yes" if rng.random() < 0.5 else "no"

    return draw


def test_time_tells_only_where_one_asks(work):
    draw = answer({0: 20, 1: 120}, work)
    found = wi.audit.two_worlds(draw, 1, 0, 600, seed=1, timing=True)
    assert found.epsilon > 2 and found.timing and found.to_dict()["timing"]
    assert "nanoseconds" in str(found.event) or "score" in str(found.event)
    plain = wi.audit.two_worlds(draw, 1, 0, 600, seed=1)
    assert plain.epsilon < 0.2 and not plain.timing


def timed_pair(mechanism):
    return sampling.MechanismPair(mechanism, (1.5, 0.5), np.random.SeedSequence(1), timed=True)


def test_the_real_clock_is_read():
    timed = timed_pair(lambda value: time.sleep(0.003)).draw(1).outputs[0]
    assert dict(timed.values[0].items)["nanoseconds"] >= 3_000_000


def test_calls_are_made_in_turns_by_coins():
    order = []

    def draw(value, size, rng):  # also where one call could make many draws
        order.append(value)
        assert size == 1
        return np.array([value])

    found = wi.audit.two_worlds(draw, 1, 0, 400, seed=1, timing=True)
    first = [order[:at].count(1) / at for at in (200, 400, 800)]
    assert len(order) == 800 and all(0.4 < share < 0.6 for share in first) and first[2] == 0.5
    assert any("no randomness" in note for note in found.notes)


def test_a_failing_call_has_a_time_too(work):
    def draw(value, rng):
        work.do(20, rng)
        if rng.random() < (0.5 if value else 0.05):
            raise ValueError("no")
        return rng.normal()

    found = wi.audit.two_worlds(draw, 1, 0, 1_200, seed=1, timing=True)
    assert 1 < found.epsilon <= math.log(10) and "raised ValueError" in found.notes[0]
    assert found.event.contains(np.zeros(3)).tolist() in ([True] * 3, [False] * 3)


def test_a_search_can_look_at_time(work):
    pairs = [wi.audit.InputPair("even", 2, 0), wi.audit.InputPair("odd", 1, 0)]
    draw = answer({0: 20, 1: 150, 2: 20}, work)
    found = wi.audit.search(draw, pairs, 1_000, seed=1, timing=True)
    assert found.pattern == "odd" and found.timing and found.epsilon > 1


def test_outputs_are_read_without_their_time():
    timed = timed_pair(lambda value, rng: value).draw(3).outputs[0]
    assert sampling.drop_time(timed).values.tolist() == [1.5] * 3
    assert sampling.drop_time(sampling.drop_time(timed)).kind == "numbers"


def busy(_value, rng):
    for _ in range(10):
        rng.random()
    return "yes" if rng.random() < 0.5 else "no"


@cases(4, 1000)
def test_time_raises_no_false_alarm(count):
    """On the real clock, whatever else the machine does: coins decide whose call is first."""

    def audit(run):
        return wi.audit.two_worlds(busy, 1, 0, 200, seed=run, timing=True).epsilon

    assert alarms(audit, 0.0, count) <= most_alarms(count)
