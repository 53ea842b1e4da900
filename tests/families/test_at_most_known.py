"""`AtMostKnown`: the engine against every vertex, random priors inside, and its own witnesses."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations, product

import pytest

import oracle
import whosin as wi
from amounts import cases
from checking import check_witness
from refusals import refused
from whosin.errors import Unsupported
from whosin.families import AtMostKnown
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


@cases(12, 1000)
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


def test_counts_scale():
    """A randomised count of many people: only how many are where matters, so n may be large."""
    n = 20
    notion = PositiveMembership(AtMostKnown(2, "0.25", "0.75"))
    noise = wi.mechanisms.Geometric(wi.statistics.Count(), alpha=Fraction(1, 2))
    level = notion.measure(noise, wi.Subsets(n))
    assert float(level.value) == pytest.approx(1.75) and float(level.witness.ratio) == 2


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
