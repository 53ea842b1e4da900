"""`Lottery` by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import whosin as wi


def test_a_name_gives_its_owner_away():
    lottery = wi.mechanisms.Lottery(Fraction(1, 2)).channel(wi.Subsets(2))
    assert {float(each) for row in lottery.likelihoods for each in row} == {0, 0.25, 0.5, 1}
    level = wi.notions.PositiveMembership(wi.families.Uninformed()).measure(lottery)
    assert level.value == math.inf
