"""How many guesses to make against a curve, and of which side.

Contract: one canary in `EVERY`, evenly over the ranks of the scores, shows its coin to the choice,
and is not guessed; all the others are. Who that is depends on the scores alone, so that turning
over the coin of another canary changes neither the choice nor any guess (`recursion`). Few canaries
leave no choice: the surest half is guessed, on both sides.
"""

from __future__ import annotations

import numpy as np

from whosin.audit.crossing import Rates
from whosin.audit.curves.claims import GaussianCurve
from whosin.audit.curves.recursion import BOTH, IN, OUT, CurveTest
from whosin.audit.guesses import right_guesses
from whosin.exact import Array

EVERY = 6
FEW = 80
"""Fewer canaries are all guessed."""
SHARES = (1.0, 0.8, 0.65, 0.5, 0.35, 0.25, 0.15, 0.08, 0.04, 0.02)
MODEL = 400
"""Canaries of the small run by which choices are compared."""
CLEAR = 1.5
"""How many times more one side alone must promise than both."""

Choice = tuple[str, float]


def counted(inside: Array, scores: Array, rates: Rates, error: float) -> tuple[CurveTest, int]:
    """The test to make, and how many canaries were spent on choosing it."""
    choice: Choice = (BOTH, 0.5)
    spent = np.zeros(len(scores), dtype=bool)
    if len(scores) >= FEW:
        order = np.argsort(-scores, kind="stable")
        spent[order[EVERY // 2 :: EVERY]] = True
        choice = _choose(inside[spent], scores[spent], rates, error)
    return _test(inside[~spent], scores[~spent], choice, rates), int(spent.sum())


def _choose(inside: Array, scores: Array, rates: Rates, error: float) -> Choice:
    """What promises the largest μ in a run of `MODEL` canaries with the frequencies seen."""
    best: dict[str, tuple[float, float]] = {}
    for side in (BOTH, IN, OUT):
        for share in SHARES:
            seen = _test(inside, scores, (side, share), rates)
            if seen.tried < 2:
                continue
            tried = round(seen.tried * MODEL / len(scores))
            right = round(tried * (seen.right + 0.5) / (seen.tried + 1))
            test = CurveTest(right, tried, MODEL, side, rates)
            promise = test.largest(GaussianCurve, error)
            best[side] = max(best.get(side, (0.0, 0.5)), (promise, share))
    one_sided = max((IN, OUT), key=lambda side: best[side][0])
    side = one_sided if best[one_sided][0] > CLEAR * best[BOTH][0] else BOTH
    return side, best[side][1]


def _test(inside: Array, scores: Array, choice: Choice, rates: Rates) -> CurveTest:
    """What the surest guesses of a choice show; ties are broken against the finding."""
    side, share = choice
    count = len(scores)
    tops, bottoms = right_guesses(inside, scores), right_guesses(~inside, -scores)
    half = int(count * share / 2)
    if side == BOTH:
        right, tried = int(tops[half] + bottoms[half]), 2 * half
    else:
        right, tried = int((tops if side == IN else bottoms)[half]), half
    return CurveTest(right, tried, count, side, rates)
