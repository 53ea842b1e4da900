"""The steps of the map between notions about who is in. Notions in canonical spelling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from whosin import families as f
from whosin.beliefs import ratio_for_gamma, sides
from whosin.errors import Unsupported
from whosin.exact import Number, log_up, rational
from whosin.families.base import HALF, WHOLE, Range
from whosin.notions import (
    DifferentialIdentifiability,
    DifferentialPrivacy,
    NegativeMembership,
    Notion,
    PositiveMembership,
    SampledDifferentialPrivacy,
)
from whosin.theorems import li13
from whosin.theorems.step import Exact, Step, exp, gamma_of_ratio, same

UDP = DifferentialPrivacy("add-remove")
SIGNED = {
    True: DifferentialPrivacy("add-remove", "positive"),
    False: DifferentialPrivacy("add-remove", "negative"),
}
BDP = DifferentialPrivacy("replace")
MEMBERSHIP = (PositiveMembership, NegativeMembership)


def kin(notion: Notion) -> Iterator[Notion]:
    """The notions through which a chain from or to this one may pass."""
    match notion:
        case PositiveMembership(family=family):
            if (within := family.independent_beliefs) is not None:
                yield type(notion)(f.Independent(*within))
            for other in family.relatives():
                yield type(notion)(other)
            match family:
                case f.OneOf(m=m):
                    yield DifferentialIdentifiability(m)
                    yield DifferentialIdentifiability(m, literal=True)
                case f.FixedProbability(beta=beta):
                    yield SampledDifferentialPrivacy(beta, "positive")
                case f.Uninformed():
                    yield SampledDifferentialPrivacy(HALF, "positive")
        case DifferentialIdentifiability(m=m):
            yield DifferentialIdentifiability(m)
            yield PositiveMembership(f.OneOf(m))
            yield PositiveMembership(f.OneOf(m, literal=True))
        case SampledDifferentialPrivacy(beta=beta):
            yield SampledDifferentialPrivacy(beta, "positive")
            yield PositiveMembership(f.FixedProbability(beta))


def common() -> Iterator[Notion]:
    """The notions without parameters, through which most chains pass."""
    yield from (UDP, *SIGNED.values(), BDP)
    for kind in MEMBERSHIP:
        yield kind(f.Independent())
        yield kind(f.FixedSize())


@lru_cache(maxsize=4096)
def steps(source: Notion, target: Notion) -> tuple[Step, ...]:
    """The theorems that lead from one notion to another directly."""
    return tuple(_steps(source, target))


def _steps(source: Notion, target: Notion) -> Iterator[Step]:
    match source, target:
        case PositiveMembership(), PositiveMembership():
            if type(source) is type(target):
                yield from _between_families(source, target)
        case DifferentialPrivacy(), DifferentialPrivacy():
            if source == UDP and target in SIGNED.values():
                yield Step("definition", same)
            elif source == UDP and target == BDP:
                yield Step("T6", lambda e: 2 * e)
        case DifferentialPrivacy(), PositiveMembership():
            yield from _from_dp(source, target)
        case PositiveMembership(), DifferentialPrivacy():
            yield from _to_dp(source, target)
        case DifferentialIdentifiability(m=m), PositiveMembership(family=f.OneOf() as family):
            if (m, source.literal) == (family.m, family.literal) and target.positive:
                yield Step("T8", lambda rho: li13.one_of_from_identifiability(rho, m), True)
        case PositiveMembership(family=f.OneOf() as family), DifferentialIdentifiability(m=m):
            if (m, target.literal) == (family.m, family.literal) and source.positive:
                yield Step("T8", lambda g: li13.identifiability_from_one_of(g, m), True)
        case DifferentialIdentifiability(m=m), DifferentialIdentifiability(m=n) if m == n:
            if target.literal and not source.literal:
                yield Step("subfamily", same)
        case DifferentialIdentifiability(m=2, literal=False), DifferentialPrivacy():
            if target == BDP:
                yield Step("T9", li13.bounded_from_identifiability, True)
        case DifferentialPrivacy(), DifferentialIdentifiability(m=2, literal=False):
            if source == BDP:
                yield Step("T9", li13.identifiability_from_bounded, True)
        case DifferentialPrivacy() | SampledDifferentialPrivacy(), SampledDifferentialPrivacy():
            yield from _sampled(source, target)
        case SampledDifferentialPrivacy(beta=b, direction="positive"), PositiveMembership(
            family=f.FixedProbability(beta=c)
        ) if b == c and target.positive:
            beta = rational(b)
            yield Step("T10", lambda e: li13.sampled_from_sampling(exp(e), beta), True)
        case PositiveMembership(family=f.FixedProbability(beta=b)), SampledDifferentialPrivacy(
            beta=c, direction="positive"
        ) if b == c and source.positive:
            beta = rational(b)
            yield Step("T10", lambda g: log_up(li13.sampling_from_sampled(g, beta)), True)


def _between_families(source: PositiveMembership, target: PositiveMembership) -> Iterator[Step]:
    if source.family.includes(target.family):
        yield Step("subfamily", same, target.family.includes(source.family))
    families = source.family, target.family
    match families:
        case f.OneOf(m=m, literal=False), f.OneOf(m=n, literal=False) if m < n:
            # One against the mean of the m − 1 most different others; more are less different.
            few, many = (sides(*family.beliefs, source.positive) for family in families)
            yield Step("more candidates", lambda g: gamma_of_ratio(ratio_for_gamma(g, *few), *many))


def _from_dp(source: DifferentialPrivacy, target: PositiveMembership) -> Iterator[Step]:
    """T4, T5, T7 and T11 from ε to γ, as the family says."""
    known = _neighbours(target)
    if known is not None and source == known[0]:
        _, theorem, adversary, (low, high) = known
        group, tight = adversary.group, adversary.equivalent
        yield Step(theorem, lambda e: gamma_of_ratio(exp(group * e), low, high), tight)


def _to_dp(source: PositiveMembership, target: DifferentialPrivacy) -> Iterator[Step]:
    """T4, T5 and T11 from γ to ε."""
    known = _neighbours(source)
    if known is not None and target == known[0] and known[2].equivalent:
        _, theorem, _, (low, high) = known
        yield Step(theorem, lambda g: log_up(ratio_for_gamma(g, low, high)), True)


def _neighbours(
    notion: PositiveMembership,
) -> tuple[DifferentialPrivacy, str, f.Adversary, Range] | None:
    """The differential privacy that protects against a family, why, what the family says about it
    and its beliefs; nothing where none does."""
    try:
        adversary = notion.family.adversary()
    except Unsupported:
        return None
    private = SIGNED[notion.positive] if adversary.relation == "add-remove" else BDP
    beliefs = sides(adversary.low, adversary.high, notion.positive)
    theorem = adversary.theorems[0] if beliefs == WHOLE else "T11"
    return private, theorem, adversary, beliefs


def _sampled(source: Notion, target: SampledDifferentialPrivacy) -> Iterator[Step]:
    """Privacy amplification: a sample of a sample is a smaller sample, and UDP is one of everyone.

    With r = e^ε between neighbours a β-sample has 1 + β(r − 1) in the positive direction and
    1/(1 − β(1 − 1/r)) in the negative one, which is never the larger.
    """
    whole, direction = Fraction(1), ""
    if isinstance(source, SampledDifferentialPrivacy):
        whole, direction = rational(source.beta), source.direction
    elif isinstance(source, DifferentialPrivacy) and source.relation == "add-remove":
        direction = source.direction
    share = rational(target.beta) / whole
    if direction not in ("both", target.direction) or share > 1:
        return
    if share == 1:
        yield Step("definition", same)
    elif target.direction == "negative":
        yield Step("amplification", lambda e: log_up(_negative_sample(exp(e), share)))
    else:
        yield Step("amplification", lambda e: log_up(1 + share * (exp(e) - 1)))


def _negative_sample(ratio: Exact, share: Fraction) -> Number:
    return 1 / (1 - share) if ratio == math.inf else 1 / (1 - share * (1 - 1 / Fraction(ratio)))
