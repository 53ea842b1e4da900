"""The steps of the map between notions about the values of rows. Notions in canonical spelling.

`DP` here is differential privacy on records, where one row's value is replaced; on sets of people
the same class speaks of one person for another (`subset_steps.BDP`).
"""

from __future__ import annotations

from collections.abc import Iterator

from whosin import families as f
from whosin.exact import log_up
from whosin.notions import (
    BayesianDifferentialPrivacy,
    BayesianSemanticPrivacy,
    DifferentialPrivacy,
    Identifiability,
    MeanShift,
    MutualInformation,
    Notion,
    PositiveMembership,
    RecordMembership,
    SemanticPrivacy,
)
from whosin.priors import Uniform
from whosin.spaces import Space
from whosin.theorems import information, record_priors, wang14, zhao17
from whosin.theorems.step import Step, exp, same

DP = DifferentialPrivacy("replace")
WITH_PRIOR = (Identifiability, MutualInformation, MeanShift)


def kin(*ends: Notion) -> Iterator[Notion]:
    """The notions through which a chain between these may pass."""
    yield DP
    defaults = {e.default for e in ends if isinstance(e, SemanticPrivacy | BayesianSemanticPrivacy)}
    for default in sorted(defaults):
        yield SemanticPrivacy(default)
    for prior in dict.fromkeys(prior for end in ends for prior in end.priors):
        yield BayesianDifferentialPrivacy(prior)
        yield RecordMembership(prior)
        for kind in WITH_PRIOR:
            yield kind(prior)
        for default in sorted(defaults):
            yield BayesianSemanticPrivacy(prior, default)


def steps(source: Notion, target: Notion, space: Space | None) -> Iterator[Step]:
    """The theorems that lead from one notion to another directly."""
    match source, target:
        case DifferentialPrivacy(), _ if source == DP:
            yield from _from_dp(target, space)
        case BayesianDifferentialPrivacy(), _:
            yield from _from_bayesian(source, target, space)
        case SemanticPrivacy(), DifferentialPrivacy() if target == DP:
            yield Step("T15", zhao17.dp_from_semantic)
        case SemanticPrivacy(default=d), BayesianSemanticPrivacy(prior=prior, default=e) if d == e:
            if record_priors.rows_are_independent(prior):
                tight = record_priors.full_support(prior, space)
                yield Step("independent rows", same, tight)
        case BayesianSemanticPrivacy(prior=prior, default=d), SemanticPrivacy(default=e) if d == e:
            if record_priors.full_support(prior, space):
                yield Step("T19", same, record_priors.rows_are_independent(prior))
        case BayesianSemanticPrivacy(prior=prior, default=d), BayesianDifferentialPrivacy():
            possible = record_priors.default_is_possible(prior, d, space)
            if target.priors == (prior,) and possible:
                yield Step("T15", zhao17.dp_from_semantic)
        case RecordMembership(), BayesianDifferentialPrivacy():
            if set(target.priors) <= set(source.priors):
                tight = set(target.priors) == set(source.priors)
                yield Step("T14", zhao17.bayesian_from_membership, tight)
        case Identifiability(prior=prior), DifferentialPrivacy() if target == DP:
            ratio = record_priors.spread(prior, space)
            if ratio is not None:
                extra = log_up(ratio)
                yield Step("T19", lambda e: wang14.dp_from_identifiability(e, extra))
        case Identifiability(prior=prior), PositiveMembership(
            family=f.Explicit() | f.Uninformed() as family
        ):
            one = (Uniform(),) if isinstance(family, f.Uninformed) else family.priors
            beliefs = record_priors.beliefs_in_people(prior, one[0], space)
            if len(one) == 1 and beliefs is not None and all(0 < p < 1 for p in beliefs):
                carry = information.membership_from_identifiability
                yield Step("T22", lambda e: carry(e, beliefs, target.positive))
        case MutualInformation(prior=prior), MeanShift(prior=other) if prior == other:
            yield Step("T23", information.shift_from_information)


def _from_dp(target: Notion, space: Space | None) -> Iterator[Step]:
    match target:
        case SemanticPrivacy():
            yield Step("T15", zhao17.semantic_from_dp)
        case BayesianDifferentialPrivacy(priors=listed):
            if all(map(record_priors.rows_are_independent, listed)):
                tight = any(record_priors.full_support(prior, space) for prior in listed)
                yield Step("independent rows", same, tight)
        case Identifiability(prior=prior):
            ratio = record_priors.spread(prior, space)
            if ratio is not None:
                extra = log_up(ratio)
                yield Step("T19", lambda e: wang14.identifiability_from_dp(e, extra))
        case MutualInformation(prior=prior):
            beliefs = record_priors.binary_rows(prior, space)
            if beliefs is not None:
                yield Step("T24", lambda e: information.information_from_dp(e, beliefs))


def _from_bayesian(
    source: BayesianDifferentialPrivacy, target: Notion, space: Space | None
) -> Iterator[Step]:
    match target:
        case DifferentialPrivacy() if target == DP:
            full = [p for p in source.priors if record_priors.full_support(p, space)]
            if full:
                tight = all(map(record_priors.rows_are_independent, source.priors))
                yield Step("T19", same, tight)
        case BayesianSemanticPrivacy(prior=prior) if prior in source.priors:
            yield Step("T15", zhao17.semantic_from_dp)
        case RecordMembership():
            if set(target.priors) <= set(source.priors):
                tight = set(target.priors) == set(source.priors)
                yield Step("T14", exp, tight)
        case BayesianDifferentialPrivacy():
            if set(target.priors) < set(source.priors):
                yield Step("definition", same)
