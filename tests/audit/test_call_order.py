"""Mechanisms that count their calls and ignore their input: no false alarm, or a refusal."""

from __future__ import annotations

import math

import numpy as np
import pytest

import whosin as wi
from amounts import cases
from attacked import alarms, most_alarms
from whosin.audit.sampling import check_calls
from whosin.errors import InvalidInput


def stepping(at):
    """Says whether it was called more than `at` times."""
    calls = [0]

    def mechanism(_value, rng):
        calls[0] += 1
        return bool(calls[0] > at) if rng.random() < 0.9 else bool(rng.random() < 0.5)

    return mechanism


def wandering(period):
    """Its probability comes and goes slowly with the number of calls."""
    calls = [0]

    def mechanism(_value, rng):
        calls[0] += 1
        return bool(rng.random() < 0.5 + 0.4 * math.sin(2 * math.pi * calls[0] / period))

    return mechanism


def drifting(total):
    """Its probability grows with the number of calls."""
    calls = [0]

    def mechanism(_value, rng):
        calls[0] += 1
        return bool(rng.random() < 0.1 + 0.8 * calls[0] / total)

    return mechanism


def alternating(_period):
    """Every other call says 1: turns in pairs would have doubled the variance."""
    calls = [0]

    def mechanism(_value, rng):
        calls[0] += 1
        return calls[0] % 2 if rng.random() < 0.95 else int(rng.integers(2))

    return mechanism


COUNTERS = {
    "a step in the count": (stepping, (700, 800, 900, 1000, 1100)),
    "a wave": (wandering, (500, 900, 1500)),
    "every other call": (alternating, (2,)),
}


@pytest.mark.parametrize("name", COUNTERS)
@cases(20, 400)
def test_a_counter_that_ignores_its_input_raises_no_false_alarm(name, count):
    """Each draw is a call of its own: coins alone decide whose it is."""
    make, values = COUNTERS[name]

    def run(seed):
        mechanism = make(values[seed % len(values)])
        try:
            return wi.audit.two_worlds(mechanism, 1, 0, 800, seed=seed).epsilon
        except InvalidInput:
            return 0.0

    assert alarms(run, 0.0, count) <= most_alarms(count)


@cases(5, 200)
def test_a_drift_raises_no_false_alarm(count):
    """Inputs one after the other would have shown it nearly every time."""

    def run(seed):
        return wi.audit.two_worlds(drifting(8_000), 1, 0, 4_000, seed=seed).epsilon

    assert alarms(run, 0.0, count) <= most_alarms(count)


def counted_calls(value_of):
    calls = [0]

    def mechanism(_value, size, rng):
        calls[0] += 1
        return np.where(rng.random(size) < 0.2, rng.random(size) < 0.5, value_of(calls[0]))

    return mechanism


@pytest.mark.parametrize(
    "value_of",
    [lambda call: call % 2, lambda call: call > 40, lambda call: call % 7 == 0],
    ids=["every other call", "a step", "every seventh"],
)
def test_draws_that_depend_on_the_call_are_refused(value_of):
    for seed in range(3):
        with pytest.raises(InvalidInput) as refused:
            wi.audit.two_worlds(counted_calls(value_of), 1, 0, 20_000, seed=seed)
        assert refused.value.field == "mechanism"


def test_noise_that_one_call_draws_once_is_refused():
    def shared(value, size, rng):
        return np.round(value + rng.laplace() + rng.laplace(0, 1, size), 2)

    with pytest.raises(InvalidInput):
        wi.audit.two_worlds(shared, 1, 0, 20_000, seed=1)


@cases(200, 5000)
def test_honest_calls_are_not_refused(count):
    """Rare outputs, too: a few in one call are no sign of a state."""
    rng = np.random.default_rng(1)
    for run in range(count):
        share = 10.0 ** -rng.integers(0, 5)
        check_calls(rng.random(3200) < share, [100] * 32)
        check_calls(rng.standard_cauchy(3200) ** 3, [100] * (run % 32) + [3200 - 100 * (run % 32)])


def test_inputs_take_turns_in_the_count():
    """Calls of one input are spread over all of the audit."""
    order: list[int] = []

    def one(value, rng):
        order.append(value)
        return int(rng.integers(2))

    def many(value, size, rng):
        order.extend([value] * size)
        return rng.integers(0, 2, size)

    for mechanism in (one, many):
        order.clear()
        wi.audit.two_worlds(mechanism, 1, 0, 8_000, seed=1)
        parts = [np.mean(part) for part in np.array_split(order, 4)]
        assert len(order) == 16_000 and 0.25 < min(parts) <= max(parts) < 0.75
