"""A known size with bounded beliefs: which priors there are, and what they make of the level."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations, islice

import pytest

import whosin as wi
from amounts import cases
from whosin import families, mechanisms, priors
from whosin.families.odds_search import SEARCHED_GAP
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
    """No prior that chance finds is above the bracket, its witness is a prior of the family that
    attains the lower end, and the ends are a thousandth apart at most; zeros, ties and extreme
    ratios among them."""
    rng = random.Random(45)
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
        found = [levels(p, channel, space) for p in islice(members(family, space, rng), 6)]
        for notion, positive in ((PositiveMembership, True), (NegativeMembership, False)):
            level = notion(family).measure(channel)
            assert all(each[positive] <= level.value for each in found)
            if level.exact or level.witness is None:  # or nobody learns anything
                assert level.exact or level.value <= 1 + F(1, 10**9)
                continue
            prior = level.witness.distribution
            assert family.contains(prior, space)
            assert levels(prior, channel, space)[positive] >= level.lower
            assert level.value <= level.lower * (1 + SEARCHED_GAP) * (1 + F(1, 10**9))
