"""Random channels that see the world through a statistic, and their levels world by world."""

from __future__ import annotations

import random
from fractions import Fraction

import oracle
import whosin as wi
from checking import check_witness, family_instances
from whosin import statistics
from whosin.notions import DifferentialPrivacy, NegativeMembership, PositiveMembership


def whole(rng: random.Random, n: int, low: int = -3, high: int = 3) -> list[int]:
    return [rng.randint(low, high) for _ in range(n)]


def fractions(rng: random.Random, n: int) -> list[Fraction]:
    return [Fraction(rng.randint(-5, 5), rng.randint(1, 4)) for _ in range(n)]


STATISTICS = {
    "count": lambda rng, n: statistics.Count(),
    "count of some": lambda rng, n: statistics.Count(of=rng.sample(range(n), rng.randint(0, n))),
    "sum of repeated values": lambda rng, n: statistics.Sum([rng.choice([1, 2]) for _ in range(n)]),
    "sum of distinct values": lambda rng, n: statistics.Sum(rng.sample(range(-6, 7), n)),
    "sum of fractions": lambda rng, n: statistics.Sum(fractions(rng, n)),
    "histogram": lambda rng, n: statistics.Histogram([rng.choice("abc") for _ in range(n)]),
    "max": lambda rng, n: statistics.Max(),
    "max of values with ties": lambda rng, n: statistics.Max(whole(rng, n, -1, 1), empty=-2),
    "max of fractions": lambda rng, n: statistics.Max(fractions(rng, n), empty=Fraction(1, 7)),
}


def random_on(rng: random.Random, statistic: statistics.Statistic, space: wi.Subsets) -> wi.Channel:
    """An exact channel that treats worlds of one class alike, zeros and ties included."""
    lattice, outputs = statistic.lattice(space), rng.randint(1, 4)
    zeros = rng.choice([0, 0.3])
    rows = [oracle.random_distribution(rng, outputs, zeros) for _ in range(lattice.worlds)]
    return wi.Channel(space, rows, lattice=lattice)


def truth(channel: wi.Channel, n: int) -> dict[oracle.World, list[Fraction]]:
    """A channel as the oracle has it, world by world."""
    exact = channel.on_worlds().exact
    assert exact is not None
    rows = [[Fraction(int(v.p), int(v.q)) for v in row] for row in exact]
    return dict(zip(oracle.worlds(n), rows, strict=True))


def compare(rng: random.Random, channel: wi.Channel, n: int) -> None:
    """Levels on the quotient equal those on all worlds, and their witnesses are proofs."""
    full, rows = channel.on_worlds(), truth(channel, n)
    assert len(full.likelihoods) == 2**n
    for families in family_instances(rng, n).values():
        for family in families:
            for notion in (PositiveMembership(family), NegativeMembership(family)):
                small, large = notion.measure(channel), notion.measure(full)
                assert small.value == large.value, family
                assert (small.exact, small.lower) == (large.exact, large.lower)
                check_witness(notion, small, rows, n, list(channel.outputs))
    for relation in ("add-remove", "replace"):
        for direction in ("both", "positive", "negative"):
            dp = DifferentialPrivacy(relation, direction)
            assert dp.measure(channel).value == dp.measure(full).value
