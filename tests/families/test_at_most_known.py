"""`AtMostKnown`: the engine against every vertex, random priors inside, and its own witnesses."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import combinations, product

import pytest

import oracle
import whosin as wi
from amounts import cases
from checking import agree, check_witness
from refusals import refused
from whosin.errors import Unsupported
from whosin.families import AtMostKnown, Independent
from whosin.notions import NegativeMembership, PositiveMembership

ZERO, ONE = Fraction(0), Fraction(1)


def vertices(n: int, k: int, low: Fraction, high: Fraction):
    """All priors at the ends of the family: at most k entities known, the rest at low or high."""
    for known in range(min(k, n) + 1):
        for who in combinations(range(n), known):
            yield from product(*((ZERO, ONE) if i in who else (low, high) for i in range(n)))


def inside(rng: random.Random, n: int, k: int, low: Fraction, high: Fraction) -> list[Fraction]:
    beliefs = [low + (high - low) * Fraction(rng.randint(0, 30), 30) for _ in range(n)]
    for i in rng.sample(range(n), rng.randint(0, min(k, n))):
        beliefs[i] = Fraction(rng.randint(0, 1))
    return beliefs


def case(rng: random.Random) -> tuple[int, int, Fraction, Fraction]:
    n = rng.choice([1, 2, 2, 3, 3, 3, 4])
    low, high = sorted(Fraction(rng.randint(1, 11), 12) for _ in range(2))
    return n, rng.randint(0, n), low, high


@cases(12, 100)
@pytest.mark.parametrize("kind", [PositiveMembership, NegativeMembership])
def test_levels_against_all_vertices(kind, count):
    """The level is the largest over all vertices, exactly, and no interior prior exceeds it."""
    rng = random.Random(kind.__name__)
    smallest = oracle.positive if kind is PositiveMembership else oracle.negative
    for _ in range(count):
        n, k, low, high = case(rng)
        outputs = 2 if n == 4 else rng.randint(2, 3)
        channel = oracle.random_channel(rng, n, outputs, rng.choice([0, 0.25]))
        notion = kind(AtMostKnown(k, low, high))
        level = notion.measure(wi.Channel(wi.Subsets(n), oracle.table(channel)))
        truth = max(smallest(prior_of(way), channel, n) for way in vertices(n, k, low, high))
        assert level.exact and level.value == truth
        check_witness(notion, level, channel, n)
        for _ in range(8):
            way = inside(rng, n, k, low, high)
            assert notion.family.contains(wi.priors.Independent(way), wi.Subsets(n))
            assert smallest(prior_of(way), channel, n) <= level.value


def prior_of(beliefs) -> dict:
    return {world: mass for world, mass in oracle.independent(list(beliefs)).items() if mass}


def test_floats_agree_with_rationals():
    """The same channel in floats has the same level to 1e-12, never below."""
    rng = random.Random(5)
    for _ in range(40):
        n, k, low, high = case(rng)
        channel = oracle.random_channel(rng, n, 3, 0)
        rows = oracle.table(channel)
        notion = PositiveMembership(AtMostKnown(k, low, high))
        exact = notion.measure(wi.Channel(wi.Subsets(n), rows)).value
        floats = [[float(p) for p in row] for row in rows]
        found = notion.measure(wi.Channel(wi.Subsets(n), floats)).value
        agree(found, exact)


def test_knowing_everyone_is_the_bounded_independent_family():
    """With k ≥ n − 1 all others may be known: D_I^[a,b]; and k only ever raises the level."""
    rng = random.Random(6)
    for _ in range(60):
        n, _k, low, high = case(rng)
        channel = wi.Channel(wi.Subsets(n), oracle.table(oracle.random_channel(rng, n, 3, 0.2)))
        found = [
            PositiveMembership(AtMostKnown(k, low, high)).measure(channel).value
            for k in range(n + 1)
        ]
        assert found == sorted(found)
        assert found[n - 1] == PositiveMembership(Independent(low, high)).measure(channel).value


def test_contains():
    """Independent, at most k certain, the rest inside the band; nothing else."""
    space, family = wi.Subsets(3), AtMostKnown(1, Fraction(1, 4), Fraction(3, 4))
    half, prior = Fraction(1, 2), wi.priors.Independent
    assert family.contains(prior([half, half, half]), space)
    assert family.contains(prior([0, half, Fraction(1, 4)]), space)
    assert family.contains(prior([1, Fraction(3, 4), half]), space)
    assert family.contains(wi.priors.Uniform(), space)
    assert family.contains(wi.priors.Table([Fraction(1, 8)] * 8), space)
    assert not family.contains(prior([0, 1, half]), space)
    assert not family.contains(prior([half, half, Fraction(4, 5)]), space)
    assert not family.contains(prior([half, half, Fraction(1, 5)]), space)
    assert not family.contains(wi.priors.FixedSize(half, 1), space)
    assert not family.contains(wi.priors.Table([half, 0, 0, 0, 0, 0, 0, half]), space)


def test_counts_scale():
    """A randomised count of many people: only how many are where matters, so n may be large."""
    n = 40
    notion = PositiveMembership(AtMostKnown(2, "0.25", "0.75"))
    noise = wi.mechanisms.Geometric(wi.statistics.Count(), alpha=Fraction(1, 2))
    level = notion.measure(noise, wi.Subsets(n))
    assert float(level.value) == pytest.approx(1.75) and float(level.witness.ratio) == 2


def test_an_exact_count_has_no_pure_level():
    """The output n proves everyone's presence, and 0 everyone's absence."""
    rows = [[Fraction(int(len(w) == c)) for c in range(4)] for w in oracle.worlds(3)]
    channel = wi.Channel(wi.Subsets(3), rows)
    for kind in (PositiveMembership, NegativeMembership):
        assert kind(AtMostKnown(0, "0.25", "0.75")).measure(channel).value == math.inf


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((-1, 0.1, 0.9), "k"),
        ((1.5, 0.1, 0.9), "k"),
        ((True, 0.1, 0.9), "k"),
        ((1, 0.9, 0.1), "low"),
        ((1, 0, 0.9), "low and high"),
        ((1, 0.1, 1), "low and high"),
        ((1, 0.1, 1.2), "high"),
        ((1, "x", 0.9), "low"),
        ((1,), "low and high"),
    ],
)
def test_bad_parameters(arguments, field):
    """Certainty is what k counts, so the band excludes 0 and 1."""
    with refused(field):
        AtMostKnown(*arguments)


def test_too_many_priors_are_refused():
    """Without symmetry between entities the vertices are too many to try, and that is said."""
    yes = [(1 + world) / 2**13 for world in range(2**12)]
    channel = wi.Channel(wi.Subsets(12), [[chance, 1 - chance] for chance in yes])
    with refused("family", kind=Unsupported):
        PositiveMembership(AtMostKnown(6, "0.1", "0.9")).measure(channel)
