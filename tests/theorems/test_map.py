"""The map of notions: what `convert` claims, against what the engine measures.

Every level of a channel under one notion, carried along the map, must be at least the level that
is measured under the other, and equal to it where the chain is exact. T15 and T19 are held against
brute force over beliefs on records.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import cache
from itertools import product

import pytest

import oracle
import whosin as wi
from amounts import cases
from refusals import refused
from whosin import families as f
from whosin import theorems
from whosin.errors import InvalidInput, NoImplication
from whosin.notions import (
    DifferentialIdentifiability,
    DifferentialPrivacy,
    Level,
    NegativeMembership,
    Notion,
    PositiveMembership,
    SampledDifferentialPrivacy,
)
from whosin.references import THEOREMS
from whosin.report.charts import NODE_POSITIONS
from whosin.theorems import convert
from whosin.theorems.notion_map import EDGE_REASONS, NOTION_BARRIERS, NOTION_EDGES

PMP, NMP = PositiveMembership, NegativeMembership
UDP, BDP = DifferentialPrivacy(), DifferentialPrivacy("replace")
POSITIVE = DifferentialPrivacy("add-remove", "positive")
NEGATIVE = DifferentialPrivacy("add-remove", "negative")
BETA = Fraction(1, 3)
BAND = (Fraction(1, 5), Fraction(1, 2))
EVEN = (Fraction(1, 4), Fraction(3, 4))

FAMILIES = [
    f.Independent(),
    f.Independent(*BAND),
    f.OneOfTwo(),
    f.OneOfTwo(*EVEN),
    f.FixedSize(),
    f.FixedSize(*BAND),
    f.FixedSize(*EVEN),
    f.SwapOfTwo(),
    f.OneOf(2),
    f.OneOf(3),
    f.OneOf(2, literal=True),
    f.FixedProbability(BETA),
    f.Uninformed(),
    f.Cliques(1),
    f.Cliques(2),
    f.AtMostKnown(1, *EVEN),
    f.AnyPrior(),
]
NOTIONS: list[Notion] = [
    UDP,
    POSITIVE,
    NEGATIVE,
    BDP,
    DifferentialIdentifiability(2),
    DifferentialIdentifiability(3),
    DifferentialIdentifiability(2, literal=True),
    *(SampledDifferentialPrivacy(BETA, side) for side in ("both", "positive", "negative")),
    *(kind(family) for family in FAMILIES for kind in (PMP, NMP)),
]


@cache
def reachable() -> list[tuple[Notion, Notion]]:
    """The pairs between which a chain of theorems leads."""
    found = []
    for source, target in product(NOTIONS, repeat=2):
        start = Fraction(2, 3) if isinstance(source, DifferentialIdentifiability) else Fraction(2)
        try:
            convert(Level(start, None, True, (), notion=source), target)
        except NoImplication:
            continue
        found.append((source, target))
    return found


@cases(4, 130)
def test_conversions_are_sound_on_random_channels(count) -> None:
    """Converted ≥ measured for every pair, and equal where the chain is exact; every pair that has
    a chain is tried many times."""
    rng = random.Random(61)
    exact_pairs = set()
    for number in range(count):
        zeros = rng.choice([0, 0, 0, 0.15])
        channel = oracle.random_channel(rng, 3, rng.randint(2, 3), zeros)
        made = wi.Channel(wi.Subsets(3), oracle.table(channel))
        cache: dict[Notion, Level] = {}
        step = 13
        for source, target in reachable()[number % step :: step]:
            for notion in (source, target):
                if notion not in cache:
                    cache[notion] = notion.measure(made)
            level, truth = convert(cache[source], target), cache[target]
            least = truth.value if truth.exact else truth.lower
            if least is None:
                continue
            assert level.notion == target
            assert level.value >= float(least) * (1 - 1e-15) - 1e-15, (source, target)
            assert set(level.theorems) <= set(THEOREMS)
            if level.exact and truth.exact:
                exact_pairs.add((source, target))
                same = level.value == truth.value
                assert same or float(level.value) == pytest.approx(float(truth.value), rel=1e-9)
    assert len(exact_pairs) > 40, "exact chains must be tried"


def test_levels_of_ratios_are_never_understated():
    """γ carried from an ε is at least the exact ratio, not just to within rounding."""
    rng = random.Random(62)
    for _ in range(300):
        channel = oracle.random_channel(rng, 2, 3, 0)
        made = wi.Channel(wi.Subsets(2), oracle.table(channel))
        up = oracle.largest(channel, oracle.added(2))
        assert Fraction(convert(POSITIVE.measure(made), PMP(f.Independent())).value) >= up
        swap = oracle.largest(channel, oracle.swapped(2))
        assert Fraction(convert(BDP.measure(made), PMP(f.FixedSize())).value) >= swap
        rho = convert(BDP.measure(made), DifferentialIdentifiability(2)).value
        assert Fraction(rho) >= swap / (1 + swap)


@pytest.mark.parametrize(
    ("source", "target", "theorems_used", "exact"),
    [
        (UDP, PMP(f.FixedSize()), {"T6", "T5"}, False),
        (UDP, PMP(f.FixedSize(*BAND)), {"T6", "T11"}, False),
        (UDP, PMP(f.Independent()), {"T4"}, False),
        (UDP, NMP(f.Independent()), {"T4"}, False),
        (UDP, PMP(f.OneOf(3)), {"T6", "T11"}, False),
        (UDP, DifferentialIdentifiability(3), {"T6", "T11", "T8"}, False),
        (POSITIVE, PMP(f.Independent()), {"T4"}, True),
        (POSITIVE, PMP(f.OneOfTwo()), {"T4"}, True),
        (POSITIVE, PMP(f.Independent(*BAND)), {"T11"}, True),
        (POSITIVE, PMP(f.Cliques(3)), {"T7"}, False),
        (POSITIVE, SampledDifferentialPrivacy(BETA, "positive"), set(), False),
        (PMP(f.FixedSize(*BAND)), BDP, {"T11"}, False),
        (NMP(f.OneOf(2)), BDP, {"T11"}, True),
        (BDP, NMP(f.OneOf(3)), {"T11"}, False),
        (PMP(f.Independent(*BAND)), POSITIVE, {"T11"}, True),
        (PMP(f.Independent(*BAND)), PMP(f.Independent()), {"T11", "T4"}, True),
        (NEGATIVE, NMP(f.Independent()), {"T4"}, True),
        (BDP, PMP(f.FixedSize()), {"T5"}, True),
        (BDP, PMP(f.FixedSize(*EVEN)), {"T11"}, True),
        (BDP, PMP(f.FixedSize(*BAND)), {"T11"}, False),
        (PMP(f.FixedSize()), BDP, {"T5"}, True),
        (PMP(f.SwapOfTwo()), PMP(f.FixedSize()), {"T5"}, True),
        (DifferentialIdentifiability(2), BDP, {"T9"}, True),
        (DifferentialIdentifiability(2), PMP(f.FixedSize()), {"T9", "T5"}, True),
        (DifferentialIdentifiability(3), PMP(f.OneOf(3)), {"T8"}, True),
        (PMP(f.OneOf(3)), DifferentialIdentifiability(3), {"T8"}, True),
        (SampledDifferentialPrivacy(BETA, "both"), PMP(f.FixedProbability(BETA)), {"T10"}, False),
        (PMP(f.AnyPrior()), PMP(f.Cliques(2)), set(), False),
        (PMP(f.AnyPrior()), BDP, {"T5"}, False),
        (PMP(f.Cliques(2)), POSITIVE, {"T4"}, False),
        (PMP(f.Independent()), PMP(f.AtMostKnown(1, *EVEN)), set(), False),
    ],
    ids=lambda value: str(value) if isinstance(value, bool | str | Notion) else "",
)
def test_chains_that_must_exist(source, target, theorems_used, exact):
    """The chain is found, with the theorems it uses."""
    start = Fraction(2, 3) if isinstance(source, DifferentialIdentifiability) else Fraction(2)
    level = convert(Level(start, None, True, (), notion=source), target)
    assert theorems_used <= set(level.theorems) and level.exact is exact
    assert level.witness is None


def test_values_of_chains():
    """2ε then e^; ln(ρ/(1−ρ)) then e^; an infinite level stays infinite."""
    start = Level(0.5, None, True, (), notion=UDP)
    assert convert(start, PMP(f.FixedSize())).value == pytest.approx(math.e)
    rho = Level(Fraction(2, 3), None, True, (), notion=DifferentialIdentifiability(2))
    assert convert(rho, PMP(f.FixedSize())).value == pytest.approx(2)
    assert convert(start, UDP).value == 0.5
    for source, target in reachable():
        worst = 1 if isinstance(source, DifferentialIdentifiability) else math.inf
        end = convert(Level(worst, None, True, (), notion=source), target).value
        # A sample bounds what absence can show, whatever the mechanism: −ln(1 − β).
        sampled = getattr(target, "direction", "") == "negative" and hasattr(target, "beta")
        assert end == math.inf or sampled or isinstance(target, DifferentialIdentifiability)
        zero = Level(_nothing(source), None, True, (), notion=source)
        assert float(convert(zero, target).value) == pytest.approx(float(_nothing(target)))


def _nothing(notion: Notion) -> Fraction | float:
    """The level of a mechanism that says nothing."""
    match notion:
        case DifferentialIdentifiability(m=m):
            return Fraction(1, m)
        case PositiveMembership():
            return Fraction(1)
    return 0.0


SIZE = "publishing |T|"
CANDIDATES = "Theorem 5.7"
MAXIMUM = "k-Max"


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        (BDP, UDP, SIZE),
        (BDP, POSITIVE, SIZE),
        (BDP, PMP(f.Independent()), SIZE),
        (PMP(f.FixedSize()), NMP(f.Independent()), SIZE),
        (DifferentialIdentifiability(2), UDP, SIZE),
        (PMP(f.OneOf(3)), PMP(f.Cliques(2)), SIZE),
        (PMP(f.FixedSize()), PMP(f.AnyPrior()), SIZE),
        (DifferentialIdentifiability(3), BDP, CANDIDATES),
        (DifferentialIdentifiability(5), PMP(f.FixedSize()), CANDIDATES),
        (PMP(f.OneOf(3)), BDP, CANDIDATES),
        (PMP(f.OneOf(4)), DifferentialIdentifiability(2), CANDIDATES),
        (PMP(f.Uninformed()), PMP(f.Independent()), MAXIMUM),
        (PMP(f.Uninformed()), UDP, MAXIMUM),
        (PMP(f.Uninformed()), NMP(f.Uninformed()), MAXIMUM),
        (POSITIVE, NEGATIVE, "only for the empty set"),
        (POSITIVE, UDP, "only for the empty set"),
        (PMP(f.Independent()), NMP(f.Independent()), "only for the empty set"),
        (NEGATIVE, POSITIVE, "only when everyone is in"),
        (NMP(f.Independent()), PMP(f.Independent()), "only when everyone is in"),
    ],
    ids=lambda value: str(value) if isinstance(value, bool | str | Notion) else "",
)
def test_counterexamples_are_named(source, target, reason):
    """Where no implication can hold, the error says why."""
    start = Fraction(2, 3) if isinstance(source, DifferentialIdentifiability) else Fraction(2)
    with refused("to", kind=NoImplication) as caught:
        convert(Level(start, None, True, (), notion=source), target)
    assert reason in caught.value.counterexample and reason in str(caught.value)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        # Fewer candidates hide worse, but for a larger m the example of Theorem 5.7 is not one.
        (DifferentialIdentifiability(4), DifferentialIdentifiability(3)),
        (PMP(f.OneOf(5)), PMP(f.OneOf(3))),
        # The empty set is no world of one candidate among m.
        (PMP(f.OneOf(3)), NMP(f.OneOf(3))),
        # k-Max has no finite level of NMP under D_N.
        (NMP(f.Uninformed()), PMP(f.Independent())),
    ],
    ids=lambda value: str(value) if isinstance(value, bool | str | Notion) else "",
)
def test_no_counterexample_is_claimed_where_none_applies(source, target):
    """An unknown implication is only unknown: no reason is given that would be wrong."""
    start = Fraction(2, 3) if isinstance(source, DifferentialIdentifiability) else Fraction(2)
    with pytest.raises(NoImplication) as caught:
        convert(Level(start, None, True, (), notion=source), target)
    reason = caught.value.counterexample
    assert reason is None or (CANDIDATES not in reason and "empty set" not in reason)
    assert reason is None or MAXIMUM not in reason


def size_channel(n: int) -> wi.Channel:
    rows = [[int(len(w) == size) for size in range(n + 1)] for w in oracle.worlds(n)]
    return wi.Channel(wi.Subsets(n), rows)


def only_for(world: int, n: int = 2) -> wi.Channel:
    """Output 1 with probability 1/2 for one world, never for others."""
    rows = [[Fraction(1, 2), Fraction(1, 2)] if w == world else [1, 0] for w in range(2**n)]
    return wi.Channel(wi.Subsets(n), rows)


def test_counterexamples_are_ones():
    """Each named mechanism has a finite level of the source and none of the target."""
    assert BDP.measure(size_channel(3)).value == 0
    assert UDP.measure(size_channel(3)).value == math.inf
    assert PMP(f.OneOf(3)).measure(size_channel(3)).value == 1
    assert PMP(f.Independent()).measure(size_channel(3)).value == math.inf
    first = wi.mechanisms.ExceptFirst()
    assert DifferentialIdentifiability(3).measure(first, wi.Subsets(3)).value <= Fraction(1, 2)
    assert BDP.measure(first, wi.Subsets(3)).value == math.inf
    assert DifferentialIdentifiability(2).measure(first, wi.Subsets(3)).value == 1
    k_max = wi.mechanisms.KMax(2)
    assert PMP(f.Uninformed()).measure(k_max, wi.Subsets(5)).value == Fraction(3, 2)
    assert NMP(f.Uninformed()).measure(k_max, wi.Subsets(5)).value == math.inf
    assert PMP(f.Independent()).measure(k_max, wi.Subsets(5)).value == math.inf
    empty, full = only_for(0), only_for(3)
    assert POSITIVE.measure(empty).value < math.inf == NEGATIVE.measure(empty).value
    assert NEGATIVE.measure(full).value < math.inf == POSITIVE.measure(full).value


def test_more_candidates_never_hide_worse():
    """(ρ, m)-DI bounds v_t over the mean of the others, hence (ρ', m')-DI for every m' > m."""
    rng = random.Random(64)
    for _ in range(150):
        channel = wi.Channel(wi.Subsets(4), oracle.table(oracle.random_channel(rng, 4, 2, 0.1)))
        rho = [DifferentialIdentifiability(m).measure(channel).value for m in (2, 3, 4)]
        odds = [
            r * (m - 1) / (1 - r) if r < 1 else math.inf
            for r, m in zip(rho, (2, 3, 4), strict=True)
        ]
        assert odds == sorted(odds, reverse=True)


def test_levels_without_a_notion_are_refused():
    """A bare number says nothing about what was measured."""
    with refused("level"):
        convert(Level(2, None, True, ()), BDP)


def test_the_drawn_map_is_complete():
    """Every notion of the map has its place, every theorem its statement, no two places clash."""
    ends = [
        name for line in (*NOTION_EDGES, *NOTION_BARRIERS) for name in (line.source, line.target)
    ]
    assert set(ends) == set(NODE_POSITIONS)
    assert len(set(NODE_POSITIONS.values())) == len(NODE_POSITIONS)
    for edge in NOTION_EDGES:
        assert edge.theorem in THEOREMS or EDGE_REASONS[edge.theorem]
        assert edge.formula
    assert all(barrier.reason for barrier in NOTION_BARRIERS)


# T15: semantic privacy on records, by brute force over beliefs.


def records(n: int, m: int) -> list[tuple[int, ...]]:
    return list(product(range(m), repeat=n))


def random_records(rng: random.Random, n: int, m: int, outputs: int) -> dict:
    """A channel on records in which everything is possible."""
    return {x: oracle.random_distribution(rng, outputs, 0) for x in records(n, m)}


def blind(x: tuple[int, ...], row: int) -> tuple[int, ...]:
    """The records with row i's data replaced by the default, 0."""
    return (*x[:row], 0, *x[row + 1 :])


def neighbours(n: int, m: int):
    for x, row in product(records(n, m), range(n)):
        for value in range(m):
            if value != x[row]:
                yield x, (*x[:row], value, *x[row + 1 :])


def dp_ratio(channel: dict, n: int, m: int) -> Fraction:
    outputs = range(len(next(iter(channel.values()))))
    return max(channel[a][o] / channel[b][o] for a, b in neighbours(n, m) for o in outputs)


def difference(belief: dict, channel: dict, row: int, output: int) -> Fraction:
    """Total variation between the posteriors with and without row i's data."""
    seen = {x: p * channel[x][output] for x, p in belief.items()}
    unseen = {x: p * channel[blind(x, row)][output] for x, p in belief.items()}
    totals = sum(seen.values()), sum(unseen.values())
    gaps = (abs(seen[x] / totals[0] - unseen[x] / totals[1]) for x in belief)
    return sum(gaps, Fraction(0)) / 2


def test_t15_random_beliefs_never_exceed_the_bound():
    """ε-DP gives tanh(ε/2)-semantic privacy, in exact rationals: (e^ε − 1)/(e^ε + 1)."""
    rng = random.Random(15)
    for _ in range(150):
        n, m = rng.choice([(1, 2), (1, 3), (2, 2), (2, 3)])
        channel = random_records(rng, n, m, rng.randint(2, 3))
        growth = dp_ratio(channel, n, m)
        bound = (growth - 1) / (growth + 1)
        epsilon = math.log(growth)
        assert float(bound) == pytest.approx(theorems.semantic_from_dp(epsilon), abs=1e-12)
        for _ in range(10):
            belief = dict(zip(channel, oracle.random_distribution(rng, m**n, 0.4), strict=True))
            row, output = rng.randrange(n), rng.randrange(len(channel[(0,) * n]))
            assert difference(belief, channel, row, output) <= bound


def test_t15_the_best_two_point_belief_attains_its_value():
    """On {x, x'} with A(x)(y)/A(x')(y) = k the best weights give tanh(¼ ln k), no weights more."""
    rng = random.Random(16)
    for _ in range(200):
        m = rng.randint(2, 3)
        channel = random_records(rng, 2, m, 2)
        x, other = rng.choice(list(neighbours(2, m)))
        row = next(i for i in range(2) if x[i] != other[i])
        k = channel[x][0] / channel[other][0]
        if k < 1:
            x, other, k = other, x, 1 / k
        most = math.tanh(math.log(k) / 4)
        for _ in range(5):
            p = Fraction(rng.randint(1, 99), 100)
            assert difference({x: p, other: 1 - p}, channel, row, 0) <= most + 1e-12
        weight = Fraction(1 / (1 + math.sqrt(k)))
        found = difference({x: weight, other: 1 - weight}, channel, row, 0)
        assert float(found) == pytest.approx(most, abs=1e-9)
        # So a level below that would have to mean a smaller ε than ln k.
        assert theorems.dp_from_semantic(most) == pytest.approx(math.log(k), abs=1e-9)


def test_t15_the_forward_bound_is_attained():
    """Ratios e^ε and e^−ε against the default, both in one belief, give tanh(ε/2)."""
    channel = {(0,): [Fraction(3, 10)], (1,): [Fraction(6, 10)], (2,): [Fraction(3, 20)]}
    growth = Fraction(2)
    weight = Fraction(1, 3)  # 1/(1+√k), k = growth²
    found = difference({(1,): weight, (2,): 1 - weight}, channel, 0, 0)
    assert found == (growth - 1) / (growth + 1)


def test_t15_numbers_to_meet():
    """0.4621 from ε = 1; a level of 0.3 gives 1.238; never worse than published."""
    assert round(theorems.semantic_from_dp(1), 4) == 0.4621
    assert round(theorems.dp_from_semantic(0.3), 3) == 1.238
    for i in range(1, 400):
        epsilon = i / 100
        ours = theorems.semantic_from_dp(epsilon)
        assert ours <= theorems.semantic_from_dp_as_published(epsilon) and ours < 1
        level = i / 800
        assert theorems.dp_from_semantic(level) <= theorems.dp_from_semantic_as_published(level)
    assert theorems.dp_from_semantic(1) == math.inf
    assert theorems.semantic_from_dp_as_published(0.35) > 1
    for call in (
        lambda: theorems.semantic_from_dp(-1),
        lambda: theorems.dp_from_semantic(1.1),
        lambda: theorems.dp_from_semantic_as_published(0.5),
        lambda: theorems.identifiability_from_dp(-1, 0),
        lambda: theorems.dp_from_identifiability(1, -1),
    ):
        with pytest.raises(InvalidInput):
            call()


# T19: identifiability.


def test_t19_identifiability_and_dp_are_within_the_spread_of_the_prior():
    """ε-DP gives (ε+ε_X)-identifiability and back, by brute force in exact rationals."""
    rng = random.Random(19)
    for _ in range(150):
        n, m = rng.choice([(1, 2), (1, 4), (2, 2), (2, 3)])
        channel = random_records(rng, n, m, 2)
        prior = dict(zip(channel, oracle.random_distribution(rng, m**n, 0), strict=True))
        pairs = list(neighbours(n, m))
        spread = max(prior[a] / prior[b] for a, b in pairs)
        growth = dp_ratio(channel, n, m)
        both = {x: [prior[x] * chance for chance in channel[x]] for x in channel}
        joint = max(both[a][o] / both[b][o] for a, b in pairs for o in range(2))
        assert joint <= growth * spread and growth <= joint * spread
        there = theorems.identifiability_from_dp(math.log(growth), math.log(spread))
        back = theorems.dp_from_identifiability(math.log(joint), math.log(spread))
        assert math.log(joint) <= there + 1e-12 and math.log(growth) <= back + 1e-12


def test_t19_is_attained():
    """A prior that leans the way the channel does adds all of ε_X; one against it takes it away."""
    channel = {(0,): [Fraction(2, 3), Fraction(1, 3)], (1,): [Fraction(1, 3), Fraction(2, 3)]}
    prior = {(0,): Fraction(3, 4), (1,): Fraction(1, 4)}
    joint = prior[0,] * channel[0,][0] / (prior[1,] * channel[1,][0])
    assert joint == 6 and dp_ratio(channel, 1, 2) == 2


def test_the_factors_of_the_map_are_attained():
    """T6 and T7 leave nothing to spare on these channels, where random ones never come close."""
    likelihoods = [Fraction(2, 8), Fraction(4, 8), Fraction(1, 8), Fraction(2, 8)]  # ∅, a, b, ab
    made = wi.Channel(wi.Subsets(2), [[p, 1 - p] for p in likelihoods])
    assert UDP.measure(made).value == pytest.approx(math.log(2))
    sized = PMP(f.FixedSize())
    assert convert(UDP.measure(made), sized).value == pytest.approx(
        float(sized.measure(made).value)
    )
    noise = wi.mechanisms.Geometric(wi.statistics.Count(), alpha=Fraction(1, 2))
    for k in (1, 2, 3):
        linked, space = PMP(f.Cliques(k)), wi.Subsets(4)
        found = convert(POSITIVE.measure(noise, space), linked).value
        assert found == pytest.approx(2**k) == float(linked.measure(noise, space).value)
