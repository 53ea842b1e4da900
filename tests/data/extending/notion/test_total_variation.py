"""`TotalVariation` of randomised response, by hand."""

from __future__ import annotations

from fractions import Fraction

import whosin as wi


def test_randomized_response():
    response = wi.mechanisms.RandomizedResponse(keep=Fraction(3, 4))
    level = wi.notions.TotalVariation().measure(response, wi.Subsets(1))
    assert level.value == 0.5
