"""Notions in one spelling, so that equal ones are one place on the map.

`FixedProbability("0.5")` and `FixedProbability(Fraction(1, 2))` are the same adversaries, and so
are `SwapOfTwo(0.1, 0.6)` and `SwapOfTwo(0.4, 0.6)`: two people of whom one is in have beliefs p and
1 − p, and both must be allowed.
"""

from __future__ import annotations

from dataclasses import replace

from whosin.exact import rational
from whosin.notions import (
    BayesianDifferentialPrivacy,
    DifferentialPrivacy,
    Notion,
    PositiveMembership,
    RecordMembership,
    SampledDifferentialPrivacy,
)
from whosin.theorems.record_steps import OF_ONE_PRIOR


def canonical(notion: Notion) -> Notion:
    """The same notion with exact numbers.

    Raises:
        InvalidInput: a `SwapOfTwo` whose range leaves no pair of beliefs p and 1 − p.
    """
    match notion:
        case DifferentialPrivacy(relation="replace"):
            return replace(notion, direction="both")  # replacing is symmetric
        case SampledDifferentialPrivacy(beta=beta, direction=direction):
            if rational(beta) == 1:  # a sample of everyone
                return DifferentialPrivacy("add-remove", direction)
            return replace(notion, beta=rational(beta))
        case PositiveMembership(family=family):
            return replace(notion, family=family.canonical())
        case BayesianDifferentialPrivacy() | RecordMembership():
            listed = tuple(dict.fromkeys(prior.canonical() for prior in notion.priors))
            return type(notion)(listed[0] if len(listed) == 1 else listed)
    if isinstance(notion, OF_ONE_PRIOR):
        return replace(notion, prior=notion.prior.canonical())
    return notion
