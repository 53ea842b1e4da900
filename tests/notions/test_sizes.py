"""Closed forms for noise on sums, and searches of maxima, equal enumeration and reach far."""

from __future__ import annotations

import math
import random
import time
from fractions import Fraction

import pytest

import oracle
import whosin as wi
from amounts import cases
from checking import check_witness, family_instances
from quotient_cases import STATISTICS, compare, random_on, truth
from refusals import refused
from whosin import families, mechanisms, statistics
from whosin.errors import Unsupported
from whosin.families import count_search
from whosin.mechanisms import additive_noise
from whosin.notions import DifferentialPrivacy, NegativeMembership, PositiveMembership

SUMS = [name for name in STATISTICS if "fractions" not in name and "max" not in name]
MAXIMA = [name for name in STATISTICS if "max" in name]
HALF = Fraction(1, 2)


def same_levels(channel: wi.Channel, full: wi.Channel, rng: random.Random, n: int) -> None:
    """The same levels as on all worlds and all deciding points, with witnesses that prove them."""
    rows = truth(full, n)
    for members in family_instances(rng, n).values():
        for family in members:
            for notion in (PositiveMembership(family), NegativeMembership(family)):
                short, long = notion.measure(channel), notion.measure(full)
                assert (short.value, short.exact) == (long.value, long.exact), notion
                assert (short.lower or 1) <= (long.lower or 1)
                check_witness(notion, short, rows, n, list(full.outputs))
    for relation in ("add-remove", "replace"):
        for direction in ("both", "positive", "negative"):
            dp = DifferentialPrivacy(relation, direction)
            assert dp.measure(channel).value == dp.measure(full).value


@cases(6, 1000)
def test_noise_on_sums(count):
    """Every family's closed form: zero, equal, opposite and extreme contributions among them."""
    rng = random.Random(34)
    for _ in range(count):
        n = rng.choice([1, 2, 2, 3, 3, 4])
        statistic = STATISTICS[rng.choice(SUMS)](rng, n)
        if isinstance(statistic, statistics.Sum) and rng.random() < 0.3:
            statistic = statistics.Sum([rng.choice([-9, 0, 1, 1, 20]) for _ in range(n)])
        alpha = Fraction(rng.randint(1, 9), 10)
        channel = mechanisms.Geometric(statistic, alpha=alpha).channel(wi.Subsets(n))
        same_levels(channel, channel.table.on_worlds(), rng, n)


def random_rule(rng: random.Random, n: int) -> wi.mechanisms.Mechanism:
    kind = rng.randrange(7)
    if kind < 4:
        return [
            mechanisms.Suppress(rng.randint(1, n + 1), rng.choice(["shown", "hidden"])),
            mechanisms.Round(rng.randint(2, 4)),
            mechanisms.RandomRound(rng.randint(2, 4)),
            mechanisms.Exact(),
        ][kind]
    outputs, zeros = rng.randint(1, 4), rng.choice([0, 0.3])
    rows = [oracle.random_distribution(rng, outputs, zeros) for _ in range(n + 1)]
    return mechanisms.FromTable([*rows[:-1], rows[0]] if kind == 4 else rows)


@cases(6, 1000)
def test_rules_on_counts(count):
    """From possible outputs alone, as on all worlds: impossible outputs and counts among them."""
    rng = random.Random(38)
    for _ in range(count):
        n = rng.choice([1, 2, 2, 3, 3, 4])
        channel = random_rule(rng, n).channel(wi.Subsets(n))
        same_levels(channel, channel.table.on_worlds(), rng, n)


@cases(4, 1000)
def test_rules_on_more_people(count, monkeypatch):
    """Windows of weights, blocks of priors and means of neighbours equal a search of all counts."""
    rng = random.Random(39)
    for _ in range(count):
        n, known = rng.choice([5, 12, 30, 60]), rng.randint(0, 3)
        monkeypatch.setattr(count_search, "WINDOW_PEOPLE", rng.choice([1, 2, 5, 48]))
        rows = [[Fraction(rng.randint(1, 9)) for _ in range(3)] for _ in range(n + 1)]
        dense = mechanisms.FromTable([[entry / sum(row) for entry in row] for row in rows])
        some = [mechanisms.Round(5), mechanisms.RandomRound(3), mechanisms.Suppress(3, "hidden")]
        rule = rng.choice([*some, dense])
        channel = rule.channel(wi.Subsets(n))
        for family in (
            families.Uninformed(),
            families.AtMostKnown(known, "1/10", "2/3"),
            families.AtMostKnown(known, "1/3", "1/3"),
            families.FixedProbability("1/3"),
        ):
            for notion in (PositiveMembership(family), NegativeMembership(family)):
                short, long = notion.measure(channel).value, notion.measure(channel.table).value
                assert short == pytest.approx(long, rel=1e-12), (rule, family)


def test_rules_on_ten_thousand():
    """Every family, below the smallest float: 9,998 people in and more have probability 2^−10000
    and are shown as 10,000."""
    start, people = time.process_time(), 10_000
    rules = [
        mechanisms.Exact(),
        mechanisms.Suppress(10),
        mechanisms.Round(5),
        mechanisms.RandomRound(5),
        mechanisms.CellKey({0: {0: 1}, 1: {-1: "0.5", 1: "0.5"}}),
    ]
    for rule in rules:
        channel = rule.channel(wi.Subsets(people))
        for name, family in KNOWN_AT_LARGE_SIZES.items():
            level = PositiveMembership(family).measure(channel)
            assert level.exact
            assert (level.value == 1) is (name == "size")
    level = PositiveMembership(families.Uninformed()).measure(
        mechanisms.Round(5), wi.Subsets(people)
    )
    ways = [math.comb(people - 1, out) for out in range(3)]
    ratio = Fraction(sum(ways), sum(ways[:2]))
    assert level.value == (ratio + 1) / 2
    # Of 9,999 others who may each be in with 3/10 at most two are, or at most one: 10^−1542.
    ways = [math.comb(people - 1, out) * Fraction(3, 7) ** out for out in range(3)]
    ratio = sum(ways) / sum(ways[:2])
    level = NegativeMembership(families.FixedProbability("3/10")).measure(
        mechanisms.Round(5), wi.Subsets(people)
    )
    assert level.value == (ratio - 1) * Fraction(7, 10) + 1
    assert time.process_time() - start < 20


KNOWN_AT_LARGE_SIZES = {
    "anyone": families.Independent("1/10", HALF),
    "size": families.FixedSize("1/20", HALF),
    "coins": families.Uninformed(),
    "likely": families.FixedProbability("3/10"),
    "groups": families.Cliques(3),
    "some": families.AtMostKnown(3, "1/20", HALF),
    "all": families.AnyPrior(),
}


@cases(4, 1000)
def test_random_channels_on_maxima(count):
    rng = random.Random(35)
    for _ in range(count):
        n = rng.choice([1, 2, 3, 3, 4])
        statistic = STATISTICS[rng.choice(MAXIMA)](rng, n)
        compare(rng, random_on(rng, statistic, wi.Subsets(n)), n)


@cases(3, 1000)
def test_maxima_are_searched_in_parts(count, monkeypatch):
    """k-Max by its deciding outputs, and noise on a maximum some outputs at a time."""
    rng = random.Random(36)
    for _ in range(count):
        n = rng.randint(2, 5)
        kind = rng.choice([mechanisms.KMax, mechanisms.KMaxAsPublished])
        channel = kind(rng.randint(2, n)).channel(wi.Subsets(n))
        same_levels(channel, channel.table.on_worlds(), rng, n)
        noisy = mechanisms.Laplace(STATISTICS["max of values with ties"](rng, n), 2)
        whole = noisy.channel(wi.Subsets(n))
        with monkeypatch.context() as patched:
            patched.setattr(additive_noise, "MAX_TABULATED_CENTRES", 1)
            patched.setattr(additive_noise, "MAX_BLOCK_ENTRIES", 2 * n)
            parts = noisy.channel(wi.Subsets(n))
        for members in family_instances(rng, n).values():
            for family in members:
                for notion in (PositiveMembership(family), NegativeMembership(family)):
                    levels = [notion.measure(each).value for each in (parts, whole)]
                    assert levels[0] == pytest.approx(levels[1], rel=1e-12), family


def test_deciding_outputs_of_k_max_are_all_that_count():
    """Between both ends the outputs of k-Max repeat each other."""
    channel = mechanisms.KMax(2).channel(wi.Subsets(12))
    for family in (
        families.Uninformed(),
        families.FixedProbability("1/3"),
        families.AtMostKnown(3, "1/5", "2/3"),
        families.OneOf(11),
        families.OneOf(12),
        families.OneOf(11, literal=True),
        families.Explicit(wi.priors.Independent([Fraction(i + 1, 20) for i in range(12)])),
    ):
        for notion in (PositiveMembership(family), NegativeMembership(family)):
            assert notion.measure(channel).value == notion.measure(channel.table).value


def test_k_max_of_ten_thousand():
    start = time.process_time()
    level = PositiveMembership(families.Uninformed()).measure(
        mechanisms.KMax(3), wi.Subsets(10_000)
    )
    assert (level.value, level.exact) == (Fraction(7, 6), True)
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("family", "ratio", "low", "high"),
    [
        (families.Independent(), 1, 0, 1),
        (families.Independent("1/10", HALF), 1, 0.1, 0.5),
        (families.Uninformed(), 1, 0.5, 0.5),
        (families.FixedProbability("3/10"), 1, 0.3, 0.3),
        (families.AtMostKnown(10, "1/10", "9/10"), 1, 0.1, 0.9),
        (families.Cliques(4), 4, 0, 1),
        (families.FixedSize(), 1, 0, 1),
        (families.FixedSize("1/20", HALF), 1, 0.05, 0.5),
        (families.OneOf(5), 1, 0.2, 0.2),
    ],
    ids=repr,
)
def test_a_count_over_a_hundred_thousand(family, ratio, low, high):
    """A count of half of them: one in or out, or one for another, moves it by at most 1."""
    start, people = time.process_time(), 100_000
    counted = mechanisms.Laplace(statistics.Count(of=range(people // 2)), 3)
    level = PositiveMembership(family).measure(counted, wi.Subsets(people))
    growth = math.exp(ratio / 3)
    expected = max(growth / ((growth - 1) * low + 1), (growth - 1) * high + 1)
    assert level.exact
    assert level.value == pytest.approx(expected, rel=1e-12)
    assert time.process_time() - start < 5


def test_noise_too_small_for_any_number_is_refused():
    """e^(10^6) is still a number; beyond some million nats there is no guess."""
    tiny = mechanisms.Laplace("count", Fraction(1, 10**6))
    assert DifferentialPrivacy().measure(tiny, wi.Subsets(3)).value == 10**6
    with refused("scale", kind=Unsupported):
        DifferentialPrivacy().measure(
            mechanisms.Laplace("count", Fraction(1, 10**9)), wi.Subsets(3)
        )
