"""A known size with bounded beliefs: which priors there are, and what they make of the level."""

from __future__ import annotations

import math
import random
import time
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import whosin as wi
from amounts import cases
from quotient_cases import STATISTICS, random_on
from whosin import families, mechanisms, priors
from whosin.families.odds_search import SEARCHED_GAP, OddsSearch
from whosin.notions import NegativeMembership, PositiveMembership

F = Fraction
BANDS = [("1/10", "1/3"), ("2/3", "9/10"), ("1/10", "3/5"), ("7/20", "2/5"), ("1/2", "3/5")]


def levels(prior, channel, space):
    """The largest γ of one prior, for being in and for being out, straight from the definition."""
    masses = [F(mass) for mass in prior.probabilities(space)]
    most = {True: F(1), False: F(1)}
    for entity in range(space.size):
        inside = [bool(world >> entity & 1) for world in range(space.worlds)]
        for positive in most:
            before = sum((m for m, i in zip(masses, inside, strict=True) if i == positive), F(0))
            for output in range(len(channel.outputs)):
                seen = [m * F(str(channel.exact[w, output])) for w, m in enumerate(masses)]
                total = sum(seen)
                if total == 0 or before in (0, 1):
                    continue
                named = sum((s for s, i in zip(seen, inside, strict=True) if i == positive), F(0))
                after = named / total
                other = float("inf") if after == 1 else (1 - before) / (1 - after)
                most[positive] = max(most[positive], after / before, other)
    return most


def members(family, space, rng):
    """Priors of the family, as far as chance and symmetry find them."""
    for size in range(space.size + 1):
        for known in range(space.size + 1):
            for who in combinations(range(space.size), known):
                for _ in range(4):
                    odds = [F(rng.randint(1, 6), 7) for _ in range(space.size)]
                    if rng.random() < 0.4:
                        odds = [F(1, 2)] * space.size
                    for entity in who:
                        odds[entity] = F(rng.randint(0, 1))
                    sure = sum(p == 1 for p in odds)
                    if sure <= size <= space.size - sum(p == 0 for p in odds):
                        prior = priors.FixedSize(odds, size)
                        if family.contains(prior, space):
                            yield prior


@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize("people", [1, 2, 3])
def test_levels_against_all_priors_that_are_found(band, people):
    rng, space, family = random.Random(6), wi.Subsets(people), families.FixedSize(*band)
    rows = []
    for _ in range(space.worlds):
        row = [F(rng.randint(0, 4)) for _ in range(4)]
        row[rng.randrange(4)] += 1
        rows.append([entry / sum(row) for entry in row])
    channel = wi.Channel(space, rows)
    found = [levels(prior, channel, space) for prior in members(family, space, rng)]
    for notion, positive in ((PositiveMembership, True), (NegativeMembership, False)):
        level = notion(family).measure(channel)
        worst = max((each[positive] for each in found), default=1)
        assert worst <= level.value
        if level.exact and people > 2:  # one way to be uncertain, or none
            assert worst == level.value
        assert level.exact or people > 2


def test_nobody_can_be_uncertain():
    """Beliefs of at most 1/3 in two people of whom one is in do not add up to 1."""
    identity = wi.Channel(wi.Subsets(2), [[int(i == j) for j in range(4)] for i in range(4)])
    for notion in (PositiveMembership, NegativeMembership):
        level = notion(families.FixedSize("1/10", "1/3")).measure(identity)
        assert (level.value, level.exact, level.witness) == (1, True, None)
        assert level.holds(1) is True
        alone = notion(families.FixedSize("1/10", "1/3")).measure(
            mechanisms.RandomizedResponse(keep="3/4"), wi.Subsets(1)
        )
        assert alone.value == 1 and alone.exact
    three = PositiveMembership(families.FixedSize("1/10", "1/3")).measure(
        mechanisms.RandomizedResponse(keep="3/4"), wi.Subsets(3)
    )
    one_of = PositiveMembership(families.OneOf(3)).measure(
        mechanisms.RandomizedResponse(keep="3/4"), wi.Subsets(3)
    )
    assert three.exact and three.value == one_of.value


@cases(6, 1000)
def test_brackets_close_to_the_stated_gap(count):
    """The witness of a bracket is a prior of the family that attains the lower end, and the ends
    are a thousandth apart at most, unless the search is cut short; zeros, ties and extreme ratios
    among them."""
    rng, wide = random.Random(45), 0
    for _ in range(count):
        people = rng.choice([3, 3, 4, 4, 4, 5])
        space = wi.Subsets(people)
        ends = sorted(rng.sample([F(n, 20) for n in range(1, 20)], 2))
        family = families.FixedSize(*ends)
        weights = rng.choice([[1, 2, 3, 4], [0, 1, 1, 5], [1, 1000], [3]])
        rows = [[F(rng.choice(weights)) for _ in range(3)] for _ in range(space.worlds)]
        rows = [
            [each / sum(row) for each in row] if sum(row) else [F(1), F(0), F(0)] for row in rows
        ]
        channel = wi.Channel(space, rows)
        for notion, positive in ((PositiveMembership, True), (NegativeMembership, False)):
            level = notion(family).measure(channel)
            if level.exact or level.witness is None:  # or nobody learns anything
                assert level.exact or level.value <= 1 + F(1, 10**9)
                continue
            prior = level.witness.distribution
            assert family.contains(prior, space)
            assert levels(prior, channel, space)[positive] >= level.lower
            wide += level.value > level.lower * (1 + SEARCHED_GAP) * (1 + F(1, 10**9))
    assert wide <= count / 100


@cases(60, 3000)
def test_boxes_bound_the_priors_in_them(count):
    """Every prior with three uncertain people or more is in the box of a case that the search
    starts from, and below the bound of each part of it; extreme ratios among them."""
    rng, compared = random.Random(46), 0
    for _ in range(count):
        space = wi.Subsets(rng.choice([3, 4, 4, 5]))
        low, high = sorted(rng.sample([F(n, 20) for n in range(1, 20)], 2))
        odds = [F(rng.choice([1, 1, 2, 3, 4]), rng.choice([1, 1, 2])) for _ in range(space.size)]
        known = {i: rng.randint(0, 1) for i in range(space.size) if rng.random() < 0.2}
        shares = [F(known[i]) if i in known else each / (1 + each) for i, each in enumerate(odds)]
        inside, uncertain = sum(known.values()), space.size - len(known)
        if uncertain < 3:
            continue
        size = rng.randint(1, uncertain - 1)
        prior = priors.FixedSize(shares, inside + size)
        if not families.FixedSize(low, high).contains(prior, space):
            continue
        weights = rng.choice([[1, 2, 3, 4], [0, 1, 1, 5], [1, 1000]])
        rows = [
            [F(rng.choice(weights)) + F(1, 10**6) for _ in range(3)] for _ in range(space.worlds)
        ]
        channel = wi.Channel(space, [[each / sum(row) for each in row] for row in rows])
        search = OddsSearch(channel.wide, space, (low, high), 1.0, 1e300)
        bounds = []
        for case, boxes in search.start():
            if set(case.known) != {i for i in known if known[i]} or case.absent[0].sum() != size:
                continue
            if set(case.others) | {case.entity} != set(range(space.size)) - set(known):
                continue
            logs = [math.log(odds[i] / odds[case.others[-1]]) for i in case.others[:-1]]
            assert (boxes[0, 0] <= logs).all() and (logs <= boxes[0, 1]).all()
            part = [[x - rng.choice([0, 0.1, 1]), x + rng.choice([0, 0.1, 1])] for x in logs]
            bounds.append(search.bound_boxes(case, np.array([np.transpose(part)]))[0])
        assert len(bounds) == uncertain
        assert levels(prior, channel, space)[True] <= max(bounds) * (1 + 1e-9)
        compared += 1
    assert compared > count / 20


def test_a_band_that_leaves_one_prior():
    """Three of five people, each with a belief of at most 3/5: all of them have that belief."""
    space, family = wi.Subsets(5), families.FixedSize("11/20", "3/5")
    rng = random.Random(2)
    rows = [[F(rng.randint(1, 9)) for _ in range(3)] for _ in range(space.worlds)]
    channel = wi.Channel(space, [[each / sum(row) for each in row] for row in rows])
    only = levels(priors.FixedSize([F(1, 2)] * 5, 3), channel, space)
    for notion, positive in ((PositiveMembership, True), (NegativeMembership, False)):
        assert notion(family).measure(channel).lower == only[positive]


def random_member(rng, family, space, kinds):
    """A prior of the family with a belief for the others, alike or of any kind, at an end or not;
    None where chance finds none."""
    entity, low, high = rng.randrange(space.size), *family.bounds
    rest = [each for each in range(space.size) if each != entity]
    groups = [[each for each in kind if each != entity] for kind in kinds] + [rest]
    group = rng.choice([group for group in groups if group])
    others = rng.sample(group, rng.randint(1, len(group)))
    size = rng.randint(1, len(others))
    ends = max(low, size - len(others) * high), min(high, size - len(others) * low)
    belief = rng.choice([*ends, sum(ends) / 2])
    if ends[0] > ends[1] or not 0 < belief < 1 or not 0 < (size - belief) / len(others) < 1:
        return None
    odds = belief / (1 - belief) * F(len(others) - size + 1, size)
    shares = [F(rng.randint(0, 1)) for _ in range(space.size)]
    for each in others:
        shares[each] = F(1, 2)
    shares[entity] = odds / (1 + odds)
    inside = sum(shares[each] == 1 for each in rest if each not in others)
    return priors.FixedSize(shares, size + inside), group != rest


@cases(12, 1500)
def test_quotients_against_enumerated_priors(count):
    """Counts, sums, histograms and maxima: no prior is above the level, none whose other uncertain
    people are alike is above its lower end, and the witness attains that; with zeros, ties, and
    bands that begin at 0, end at 1, or are one number."""
    rng, compared, exact = random.Random(47), 0, 0
    for _ in range(count):
        people = rng.choice([3, 4, 5, 6, 6, 7])
        space = wi.Subsets(people)
        ends = sorted(rng.sample([F(n, 20) for n in range(21)], 2))
        low, high = rng.choice(
            [
                ends,
                ends,
                [F(0), max(ends[1], F(1, 5))],
                [min(ends[0], F(4, 5)), F(1)],
                [F(2, 5), F(2, 5)],
            ]
        )
        family = families.FixedSize(low, high)
        kind = rng.choice(list(STATISTICS))
        statistic = STATISTICS[kind](rng, people)
        channel = random_on(rng, statistic, space)
        if kind in SUMS and rng.random() < 0.2:
            channel = mechanisms.Geometric(statistic, alpha=F(1, rng.choice([2, 1000]))).channel(
                space
            )
        lattice, full = channel.lattice, channel.on_worlds()
        kinds = getattr(lattice, "kinds", [range(people)])
        found = {positive: notion(family).measure(channel) for notion, positive in SIDES}
        for positive, level in found.items():
            exact += level.exact
            if level.witness is not None and level.witness.attained:
                prior = level.witness.distribution
                assert family.contains(prior, space)
                reached = levels(prior, full, space)[positive]
                assert reached >= (level.value if level.exact else level.lower)
        for _ in range(4):
            if (made := random_member(rng, family, space, kinds)) is None:
                continue
            prior, alike = made
            assert family.contains(prior, space)
            for positive, worst in levels(prior, full, space).items():
                level = found[positive]
                assert worst <= level.value
                if alike and hasattr(lattice, "kinds"):
                    assert worst <= (level.value if level.exact else level.lower)
                    compared += 1
    assert compared > count and exact > count / 2


SUMS = [name for name in STATISTICS if "fractions" not in name]
SIDES = ((PositiveMembership, True), (NegativeMembership, False))


@pytest.mark.parametrize(
    "band", [("7/20", "2/5"), ("7/20", "7/20"), ("2/5", "1"), ("41/100", "21/50")]
)
def test_enough_people_of_each_kind(band):
    """Hundreds of people: the bound is met where a known number of people like each other can have
    beliefs in the band; a table of the quotient and noise in closed form."""
    half, space = wi.statistics.Count(of=range(200)), wi.Subsets(400)
    small = wi.Subsets(60)
    for notion, _ in SIDES:
        noisy = notion(families.FixedSize(*band)).measure(mechanisms.Laplace(half, 2), space)
        assert noisy.exact and noisy.value > 1.2
        table = mechanisms.Geometric(wi.statistics.Count(of=range(30)), alpha="1/2").channel(small)
        level = notion(families.FixedSize(*band)).measure(table.table)
        assert level.exact and level.value == notion(families.FixedSize(*band)).measure(table).value
        highest = mechanisms.Laplace(wi.statistics.Max(), 100)
        level = notion(families.FixedSize("1/20", "2/5")).measure(highest, space)
        assert 1 < level.lower < level.value < 60


@pytest.mark.parametrize("notion", [PositiveMembership, NegativeMembership])
def test_brackets_of_noisy_sums_make_no_table(notion):
    """All different contributions: a table would have 2^n rows."""
    for people in (20, 1_000):
        start = time.process_time()
        noisy = mechanisms.Laplace(wi.statistics.Sum(range(people)), 3)
        level = notion(families.FixedSize("3/10", "2/5")).measure(noisy, wi.Subsets(people))
        assert time.process_time() - start < 5
        assert not level.exact and 1 < level.lower < level.value
