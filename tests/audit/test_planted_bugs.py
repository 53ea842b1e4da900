"""Bugs of two worlds, planted one by one: each is found, and the event says where it shows.

Bugs of a step of DP-SGD (clipping, noise, seed, sampling) are in `test_gradients`, those of floats
in `test_float_bits`, of a training in `test_training`, of a synthesizer in `test_synthetic_tables`,
misuse of samples in `test_recorded`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import whosin as wi
from refusals import about
from sniper_mechanisms import PUBLISHED
from whosin.errors import InvalidInput

KNOWN = {each.name: each for each in PUBLISHED}
"""Of DP-Sniper: all claim ε = 0.1."""


def released(counts, rng, least):
    noisy = {key: round(count + rng.laplace(0, 1), 1) for key, count in counts.items()}
    return {key: count for key, count in noisy.items() if count > least}


def keys_of_the_data(value, rng):
    """A histogram whose keys are those of the rows, without a threshold."""
    counts = {"flu": 40, "cold": 30} | ({"gout": 1} if value else {})
    return released(counts, rng, -math.inf)


def spread_of_one(value, rng):
    """A variance that is not a number where the group has one person."""
    return math.nan if value else round(rng.laplace(0, 4), 2)


def failing(value, rng):
    """Only rows with the person reach the line that raises."""
    if value and rng.random() < 0.2:
        raise ZeroDivisionError("of one")
    return round(rng.laplace(0, 4), 1)


def unscaled(value, size, rng):
    """A sum of incomes up to 100 with the noise of a count."""
    return np.round(100 * value + rng.laplace(0, 1, size), 1)


def unclamped(value, size, rng):
    """A person may add ten rows, and noise hides one."""
    return 10 * value + np.round(rng.laplace(0, 1, size))


def second_field(value, rng):
    """One answer has noise, and the number of rows beside it has none."""
    return {"mean": round(rng.laplace(0, 4), 1), "rows": 200 + value}


def length(value, rng):
    """A list of answers that is longer with the person."""
    return [round(rng.laplace(0, 4), 1) for _ in range(3 + value)]


def logged(value, rng):
    """The exact number in a sentence."""
    return f"noisy mean {rng.laplace(0, 4):.2f}, took {17 + value} rows"


def scale_of_the_data(value, size, rng):
    """Noise that is as wide as the data: its own spread tells."""
    return np.round(rng.laplace(0, 2.0 if value else 1.0, size), 2)


def shared_noise(value, size, rng):
    """Two answers with one noise: their difference is exact."""
    noise = np.round(rng.laplace(0, 20, size), 1)
    return np.column_stack([noise + 10, noise + 20 + value])


BUGS = {
    "keys of the data": (keys_of_the_data, 2_000, 1.0, "'gout'"),
    "a group of one": (spread_of_one, 400, 1.0, "NaN"),
    "an exception": (failing, 2_000, 1.0, "ZeroDivisionError"),
    "noise that is not scaled": (unscaled, 400, 1.0, "output"),
    "several rows of a person": (unclamped, 2_000, 1.0, "output ≥"),
    "a field without noise": (second_field, 400, 1.0, "['rows']"),
    "a length": (length, 400, 1.0, "entries"),
    "a number in text": (logged, 400, 1.0, "18"),
    "noise as wide as the data": (scale_of_the_data, 20_000, 0.5, "output"),
    "one noise for two answers": (shared_noise, 4_000, 1.0, "output"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_found_and_the_event_names_it(bug):
    mechanism, samples, claim, words = BUGS[bug]
    audit = wi.audit.two_worlds(mechanism, 1, 0, samples, seed=1)
    assert audit.refutes(claim), f"{audit.epsilon}: {audit.event}"
    assert words in str(audit.event)


@pytest.mark.parametrize(
    ("name", "samples", "seed", "words"),
    [
        ("NoisyHist2", 4_000, 1, "output[0] ≤"),
        ("ReportNoisyMax3", 100_000, 1, "output ≤"),
        ("ReportNoisyMax4", 20_000, 1, "output ≤"),
        ("SVT5", 4_000, 1, "output is [1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]"),
        ("SVT6", 60_000, 5, "score of the output"),  # of claims of 0.1 it shows 0.13 on average
    ],
)
def test_a_published_bug_is_found(name, samples, seed, words):
    each = KNOWN[name]
    audit = wi.audit.two_worlds(each.gridded, each.with_, each.without, samples, seed=seed)
    assert audit.refutes(0.1), f"{audit.epsilon}: {audit.event}"
    assert words in str(audit.event)


def test_a_cache_of_noise_is_named():
    noise = np.random.default_rng(1).laplace(size=100)

    def cached(value, size, rng):
        return value + np.resize(noise, size)

    with pytest.raises(InvalidInput, check=about("mechanism", 100)):
        wi.audit.two_worlds(cached, 1, 0, 800, seed=1)


def test_a_counter_is_named():
    calls: list[int] = []

    def counting(value, rng):
        calls.append(1)
        return len(calls)

    with pytest.raises(InvalidInput, check=about("mechanism", 1)):
        wi.audit.two_worlds(counting, 1, 0, 800, seed=1)
