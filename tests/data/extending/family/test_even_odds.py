"""`EvenOdds` against the oracle, at the ends of its beliefs."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import oracle
import whosin as wi


def test_even_odds_against_enumeration():
    family = wi.families.EvenOdds(Fraction(1, 4))
    for seed in range(20):
        channel = oracle.random_channel(random.Random(seed), 2, 3)
        built = wi.Channel(wi.Subsets(2), oracle.table(channel))
        level = wi.notions.PositiveMembership(family).measure(built)
        ends = (Fraction(0), Fraction(1, 4), Fraction(3, 4), Fraction(1))
        priors = [oracle.independent(list(p)) for p in product(ends, repeat=2)]
        assert level.value == max(oracle.positive(prior, channel, 2) for prior in priors)
