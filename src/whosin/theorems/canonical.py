"""Notions in one spelling, so that equal ones are one place on the map.

`FixedProbability("0.5")` and `FixedProbability(Fraction(1, 2))` are the same adversaries, and so
are `SwapOfTwo(0.1, 0.6)` and `SwapOfTwo(0.4, 0.6)`: two people of whom one is in have beliefs p and
1 − p, and both must be allowed.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from whosin import families as f
from whosin import priors
from whosin.exact import rational
from whosin.notions import (
    BayesianDifferentialPrivacy,
    DifferentialPrivacy,
    Notion,
    PositiveMembership,
    RecordMembership,
    SampledDifferentialPrivacy,
)
from whosin.priors import Prior
from whosin.theorems.record_steps import OF_ONE_PRIOR

HALF = Fraction(1, 2)


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
            return replace(notion, family=canonical_family(family))
        case BayesianDifferentialPrivacy() | RecordMembership():
            listed = tuple(dict.fromkeys(map(canonical_prior, notion.priors)))
            return type(notion)(listed[0] if len(listed) == 1 else listed)
    if isinstance(notion, OF_ONE_PRIOR):
        return replace(notion, prior=canonical_prior(notion.prior))
    return notion


def canonical_family(family: f.Family) -> f.Family:
    """The same family with exact numbers."""
    match family:
        case f.SwapOfTwo():
            return f.SwapOfTwo(*family.swaps)
        case f.Independent() | f.FixedSize() | f.AtMostKnown():
            low, high = family.bounds
            return replace(family, low=low, high=high)
        case f.FixedProbability(beta=beta):
            return f.FixedProbability(rational(beta))
        case f.Cliques(k=1):
            return f.Independent()
        case f.Explicit(priors=listed):
            found = tuple(dict.fromkeys(map(canonical_prior, listed)))
            coin = found in ((priors.Uniform(),), (priors.Independent(HALF),))
            return f.Uninformed() if coin else f.Explicit(found)
    return family


def canonical_prior(prior: Prior) -> Prior:
    """The same prior with exact numbers, where that is a matter of spelling."""
    if type(prior) is not priors.Independent:
        return prior
    given = prior.p
    if not isinstance(given, tuple):
        return priors.Independent(rational(given))
    rows = [
        tuple(map(rational, each)) if isinstance(each, tuple) else rational(each) for each in given
    ]
    return priors.Independent(rows)
