"""The map of notions: what `convert` claims, against what the engine measures.

Every level of a channel under one notion, carried along the map, must be at least the level that
is measured under the other, and equal to it where the chain is exact. `test_map_edges` walks every
line against brute force.
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
from whosin.errors import NoImplication
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


PAIRS = list(product(NOTIONS, repeat=2))


@cases(2, 130)
def test_conversions_are_sound_on_random_channels(count) -> None:
    """Converted ≥ measured for every pair between which a chain of theorems leads, and equal where
    the chain is exact; in all every pair is tried many times."""
    rng, step = random.Random(61), 13
    exact_pairs = set()
    for number in range(count):
        zeros = rng.choice([0, 0, 0, 0.15])
        channel = oracle.random_channel(rng, 3, rng.randint(2, 3), zeros)
        made = wi.Channel(wi.Subsets(3), oracle.table(channel))
        measured = cache(lambda notion, made=made: notion.measure(made))
        for source, target in PAIRS[number % step :: step]:
            try:
                level = convert(measured(source), target)
            except NoImplication:
                continue
            truth = measured(target)
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
    assert len(exact_pairs) > min(40, 10 * count), "exact chains must be tried"


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
    for source, target in PAIRS[::17]:
        worst = 1 if isinstance(source, DifferentialIdentifiability) else math.inf
        try:
            end = convert(Level(worst, None, True, (), notion=source), target).value
        except NoImplication:
            continue
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
