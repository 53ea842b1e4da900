"""Working on the quotient by a statistic changes nothing but the time it takes (THEORY F11)."""

from __future__ import annotations

import math
import random
import time
from fractions import Fraction

import pytest

import whosin as wi
from checking import family_instances
from quotient_cases import STATISTICS, compare, random_on
from whosin import statistics
from whosin.notions import NegativeMembership, PositiveMembership

MOST = 5


SIZES = [(1, 2, 3), pytest.param((1, 1, 2, 2, 2, 3, 3, 4, 4, MOST), marks=pytest.mark.soak)]


@pytest.mark.parametrize("sizes", SIZES, ids=len)
@pytest.mark.parametrize("name", STATISTICS)
def test_random_channels_on_a_statistic(name, sizes):
    """Any channel that sees the world only through a statistic."""
    rng = random.Random(name)
    for n in sizes:
        space = wi.Subsets(n)
        compare(rng, random_on(rng, STATISTICS[name](rng, n), space), n)


@pytest.mark.parametrize("name", STATISTICS)
def test_labels_agree_with_the_statistic(name):
    """The class of a world has the statistic's value there, and stands for the world."""
    rng = random.Random(name)
    for n in range(1, MOST + 1):
        space, statistic = wi.Subsets(n), STATISTICS[name](rng, n)
        lattice, centres = statistic.lattice(space), statistic.centres(space)
        assert len(centres) == lattice.worlds
        for number, label in enumerate(lattice.labels()):
            world = [entity for entity in range(n) if number >> entity & 1]
            assert lattice.class_of(world) == label
            assert lattice.class_of(lattice.representative(int(label))) == label
            assert list(centres[label]) == value(statistic, world, n)


def value(statistic, world, n):
    """The statistic of a set, from its definition."""
    match statistic:
        case statistics.Count():
            return [len(world if statistic.of is None else set(world) & set(statistic.of))]
        case statistics.Sum():
            return [sum(statistic.values[entity] for entity in world)]
        case statistics.Histogram():
            cells = [statistic.cells[entity] for entity in world]
            return [cells.count(cell) for cell in dict.fromkeys(statistic.cells)]
        case statistics.Max():
            values = statistic.values or range(1, n + 1)
            return [max((values[entity] for entity in world), default=statistic.empty)]
    raise AssertionError(statistic)


@pytest.mark.parametrize("name", STATISTICS)
def test_priors_reduce_to_the_quotient(name):
    """A prior's mass and conditionals on classes are sums over the worlds in them."""
    rng = random.Random(name)
    for n in range(1, MOST):
        space = wi.Subsets(n)
        lattice = STATISTICS[name](rng, n).lattice(space)
        labels = lattice.labels()
        for prior in family_instances(rng, n)["explicit"][0].priors:
            masses = prior.probabilities(space)
            assert fractions_of(prior.mass(lattice, wi.exact.flint_rational)) == summed(
                masses, labels, lattice.worlds
            )
            for entity in range(n):
                if not 0 < prior.belief(space, entity) < 1:
                    continue
                given = prior.given(lattice, entity, wi.exact.flint_rational)
                for side, found in zip((1, 0), given, strict=True):
                    kept = [m if w >> entity & 1 == side else 0 for w, m in enumerate(masses)]
                    kept = [mass / sum(kept) for mass in kept]
                    assert fractions_of(found) == summed(kept, labels, lattice.worlds)


def fractions_of(array) -> list[Fraction]:
    return [wi.exact.rational(number) for number in array]


def summed(masses: list, labels, classes: int) -> list[Fraction]:
    totals = [Fraction(0)] * classes
    for mass, label in zip(masses, labels, strict=True):
        totals[label] += mass
    return totals


@pytest.fixture(scope="module")
def laplace_300() -> wi.Channel:
    """A count of 300 with Laplace noise of scale 4."""
    return wi.mechanisms.Laplace(statistics.Count(), 4).channel(wi.Subsets(300))


def coin(n: int, scale: float) -> float:
    """γ of a Laplace count against fair coins: at the output n the ratio is
    Σ C(n−1,k) e^(−(n−k−1)/s) / Σ C(n−1,k) e^(−(n−k)/s), and γ = (r + 1)/2 (F7)."""
    ways = [math.comb(n - 1, k) / 2 ** (n - 1) for k in range(n)]
    inside = math.fsum(w * math.exp(-(n - k - 1) / scale) for k, w in enumerate(ways))
    outside = math.fsum(w * math.exp(-(n - k) / scale) for k, w in enumerate(ways))
    return (inside / outside + 1) / 2


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        (wi.families.Independent(), math.exp(1 / 4)),
        (wi.families.OneOfTwo(), math.exp(1 / 4)),
        (wi.families.AnyPrior(), math.exp(300 / 4)),
        (wi.families.FixedSize(), 1),
        (wi.families.SwapOfTwo(), 1),
        (wi.families.OneOf(7), 1),
        (wi.families.Cliques(1), math.exp(1 / 4)),
        (wi.families.Cliques(6), math.exp(6 / 4)),
        (wi.families.Cliques(300), math.exp(300 / 4)),
        (wi.families.Uninformed(), coin(300, 4)),
        (wi.families.Explicit([wi.priors.Uniform()]), coin(300, 4)),
        (wi.families.Independent(Fraction(1, 2), Fraction(1, 2)), (math.exp(1 / 4) + 1) / 2),
    ],
    ids=repr,
)
def test_large_counts(family, expected, laplace_300):
    """A Laplace count over 300 people has the closed form of its family, in seconds."""
    start = time.process_time()
    for notion in (PositiveMembership(family), NegativeMembership(family)):
        level = notion.measure(laplace_300)
        assert level.exact
        assert level.value == pytest.approx(expected, rel=1e-12)
    assert time.process_time() - start < 40


def test_large_count_under_sampling(laplace_300):
    """D_F^β: at the output 300 the ratio is e^ε whatever the support, so γ is F4 at β."""
    beta, growth = Fraction(1, 3), math.exp(1 / 4)
    level = PositiveMembership(wi.families.FixedProbability(beta)).measure(laplace_300)
    assert level.value == pytest.approx(float(wi.beliefs.gamma(growth, float(beta))), rel=1e-12)


def test_large_ladder():
    """k-Max over 50 people, against families that reduce to the maximum."""
    channel = wi.mechanisms.KMax(3).channel(wi.Subsets(50))
    assert PositiveMembership(wi.families.Uninformed()).measure(channel).value == Fraction(7, 6)
    assert PositiveMembership(wi.families.Independent()).measure(channel).value == math.inf
    assert PositiveMembership(wi.families.FixedSize()).measure(channel).value == math.inf
    small = wi.mechanisms.KMax(3).channel(wi.Subsets(40))
    pairs = wi.families.Explicit(wi.priors.FixedSize(Fraction(1, 2), 2))
    # c_3 is output only for maxima up to 3: two of the entities 1, 2, 3, any two equally likely.
    assert PositiveMembership(pairs).measure(small).witness.output == "c3"
