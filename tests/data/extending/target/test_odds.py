"""`Odds` is a bound on the likelihood ratio itself."""

from __future__ import annotations

import math

import whosin as wi


def test_odds_are_the_ratio():
    assert math.isclose(wi.calibrate(wi.Odds(3)).epsilon, math.log(3), rel_tol=1e-9)
