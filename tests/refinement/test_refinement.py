"""Refinement: whatever is answered comes with a proof, checked here from the definitions."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

import leakage_oracle as oracle
import whosin as wi
from amounts import cases
from refusals import refused
from whosin.refinement import simulates

Table = oracle.Table


def times(one: Table, two: Table) -> Table:
    return [
        [
            sum((a * b for a, b in zip(row, column, strict=True)), Fraction(0))
            for column in zip(*two, strict=True)
        ]
        for row in one
    ]


def compare(source, target):
    space = wi.Records(1, len(source))
    result = simulates(wi.Channel(space, source), wi.Channel(space, target))
    assert result.holds is not None
    if result.holds:
        rows = [list(row) for row in result.simulation]
        assert all(sum(row) == 1 and min(row) >= 0 for row in rows)
        assert times(source, rows) == target and result.exact and result.distance == 0
    else:
        gains = [list(row) for row in result.gain.matrix]
        prior = [Fraction(1, len(source))] * len(source)
        values = [oracle.vulnerabilities(table, prior, gains)[1] for table in (target, source)]
        assert values[0] > values[1] and min(map(min, gains)) >= 0
        assert values == [result.target_value, result.source_value]
    return result


def some(rng: random.Random, worlds: int) -> Table:
    """A channel, often one whose outputs depend on each other."""
    zeros = rng.choice([0, 0.3, 0.6])
    table = oracle.random_table(rng, worlds, rng.randint(1, 5), zeros)
    if rng.random() < 0.5:  # fewer kinds of worlds than outputs: combinations of each other
        mixed = oracle.random_table(rng, worlds, 2, 0.4)
        table = times(mixed, oracle.random_table(rng, 2, rng.randint(3, 6), zeros))
    return table


@cases(16, 3000)
def test_what_was_garbled_can_be_simulated(count):
    for seed in range(count):
        rng = random.Random(seed)
        source = some(rng, rng.randint(2, 5))
        garbling = oracle.random_table(rng, len(source[0]), rng.randint(1, 4), rng.choice([0, 0.5]))
        assert compare(source, times(source, garbling)).holds


@cases(24, 5000)
def test_either_answer_is_proved(count):
    answers = set()
    for seed in range(count):
        rng = random.Random(seed)
        worlds = rng.randint(2, 4)
        source, target = some(rng, worlds), some(rng, worlds)
        if rng.random() < 0.5:  # near to one that can be simulated
            target = times(source, oracle.random_table(rng, len(source[0]), 3, 0.4))
            tiny = Fraction(1, 10 ** rng.choice([2, 6, 20]))
            row = rng.randrange(worlds)
            other = oracle.random_row(rng, 3, 0.3)
            target[row] = [
                (1 - tiny) * a + tiny * b for a, b in zip(target[row], other, strict=True)
            ]
        space = wi.Records(1, worlds)
        result = simulates(wi.Channel(space, source), wi.Channel(space, target))
        if result.holds is not None:
            answers.add(compare(source, target).holds)
        else:  # only where floats cannot tell, and outputs are combinations of others
            assert tiny <= Fraction(1, 10**6) and len(source[0]) > 2
    assert answers == {True, False}


def test_known_relations():
    identity = [[Fraction(i == j) for j in range(3)] for i in range(3)]
    nothing = [[Fraction(1)] for _ in range(3)]
    assert compare(identity, nothing).holds and not compare(nothing, identity).holds
    assert compare(identity, identity).holds and compare(nothing, nothing).holds
    doubled = [[value / 2 for value in row for _ in range(2)] for row in identity]
    assert compare(doubled, identity).holds and compare(identity, doubled).holds
    never = [[Fraction(0), *row] for row in identity]
    assert compare(never, identity).holds and compare(identity, never).holds


def test_incomparable_channels():
    one = [[Fraction(1), Fraction(0)], [Fraction(1, 2), Fraction(1, 2)]]
    two = [row[::-1] for row in reversed(one)]
    assert not compare(one, two).holds and not compare(two, one).holds


def test_more_noise_is_simulated_from_less():
    space = wi.Records(2, 2)
    less, more = (wi.mechanisms.RandomizedResponse(keep=keep) for keep in ("9/10", "6/10"))
    assert simulates(less, more, space).holds and simulates(more, less, space).holds is False


def test_floats_are_compared_up_to_their_rounding():
    rng = np.random.default_rng(3)
    for outputs in (4, 7):
        table = rng.dirichlet(np.ones(outputs), size=5)
        garbled = table @ rng.dirichlet(np.ones(3), size=outputs)
        space = wi.Records(1, 5)
        result = simulates(wi.Channel(space, table), wi.Channel(space, garbled))
        assert result.holds and result.distance < Fraction(1, 10**12)
        assert simulates(wi.Channel(space, garbled), wi.Channel(space, table)).holds is False


@pytest.mark.soak
@pytest.mark.parametrize(("inner", "rank"), [(64, 64), (64, 24), (80, 64)])
def test_channels_of_64_worlds(inner, rank):
    rng = np.random.default_rng(1)
    base = rng.integers(1, 99, (64, rank))
    garbling = rng.integers(1, 99, (rank, inner)) if inner != rank else np.eye(64, dtype=int)
    table = base @ garbling
    source = [[Fraction(int(v), int(row.sum())) for v in row] for row in table]
    again = rng.integers(0, 9, (inner, 64)) + 1
    again = [[Fraction(int(v), int(row.sum())) for v in row] for row in again]
    assert compare(source, times(source, again)).holds
    other = rng.integers(1, 99, (64, 64))
    assert not compare(
        source, [[Fraction(int(v), int(row.sum())) for v in row] for row in other]
    ).holds


def test_what_does_not_fit_is_refused():
    channel = wi.Channel(wi.Records(1, 2), [[1, 0], [0, 1]])
    with refused("target"):
        simulates(channel, wi.Channel(wi.Subsets(1), [[1], [1]]))
    noisy = wi.mechanisms.Laplace(wi.statistics.Count(), 1)
    with refused("mechanism", kind=wi.errors.Unsupported):
        simulates(noisy, noisy, wi.Subsets(1))
