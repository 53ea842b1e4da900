"""Steps of the map between notions about who is in, and about values of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from whosin import beliefs, priors
from whosin import families as f
from whosin.beliefs import ratio_for_gamma, sides
from whosin.errors import Unsupported
from whosin.exact import (
    MAX_FLOAT_EXPONENT,
    ONE_HALF,
    Array,
    Number,
    exp_up,
    flint_rational,
    log_up,
    rational,
    round_up,
)
from whosin.families.base import WHOLE_RANGE, Range
from whosin.notions import (
    BayesianDifferentialPrivacy,
    BayesianSemanticPrivacy,
    DifferentialIdentifiability,
    DifferentialPrivacy,
    Identifiability,
    MeanShift,
    MutualInformation,
    NegativeMembership,
    Notion,
    PositiveMembership,
    RecordMembership,
    SampledDifferentialPrivacy,
    SemanticPrivacy,
)
from whosin.priors import Prior, Uniform
from whosin.priors.base import read_distribution
from whosin.spaces import Records, Space, Subsets
from whosin.theorems import papers

# One implication of the map, and the numbers it works with.
#
# A step carries a level of one notion to a level of another. It is given exact numbers (or ∞) and
# answers with an exact number or a float rounded up, so that no level is ever understated.

Exact = Fraction | float
"""A fraction, or ∞."""


@dataclass(frozen=True)
class Step:
    """One implication.

    Attributes:
        theorem: its number, or "definition", "subfamily", … where it needs none.
        carry: the map of levels, increasing.
        tight: whether it carries the smallest level to the smallest level.
    """

    theorem: str
    carry: Callable[[Exact], Number]
    tight: bool = False

    def __call__(self, level: Number) -> Number:
        """The level carried; a float comes out as a float, rounded up."""
        infinite = isinstance(level, float) and math.isinf(level)
        result = self.carry(math.inf if infinite else Fraction(level))
        if isinstance(level, float) and not isinstance(result, float):
            return round_up(Fraction(result))
        return result


def same_level(level: Exact) -> Exact:
    return level


def exp_level(epsilon: Exact) -> Exact:
    """Return e^ε as a γ, rounded up."""
    return exp_up(epsilon) if epsilon < MAX_FLOAT_EXPONENT else math.inf


def gamma_of_ratio(ratio: Number, low: Fraction, high: Fraction) -> Number:
    """T11: what a ratio does at the worst belief in [low, high], in exact numbers."""
    return beliefs.worst_belief(ratio, low, high).gamma


# The steps of the map between notions about who is in. Notions in canonical spelling.

UNBOUNDED_DP = DifferentialPrivacy("add-remove")
SIGNED_DP = {
    True: DifferentialPrivacy("add-remove", "positive"),
    False: DifferentialPrivacy("add-remove", "negative"),
}
BOUNDED_DP = DifferentialPrivacy("replace")
MEMBERSHIP_NOTIONS = (PositiveMembership, NegativeMembership)


def related_notions(notion: Notion) -> Iterator[Notion]:
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
                    yield SampledDifferentialPrivacy(ONE_HALF, "positive")
        case DifferentialIdentifiability(m=m):
            yield DifferentialIdentifiability(m)
            yield PositiveMembership(f.OneOf(m))
            yield PositiveMembership(f.OneOf(m, literal=True))
        case SampledDifferentialPrivacy(beta=beta):
            yield SampledDifferentialPrivacy(beta, "positive")
            yield PositiveMembership(f.FixedProbability(beta))


def common_notions() -> Iterator[Notion]:
    """The notions without parameters, through which most chains pass."""
    yield from (UNBOUNDED_DP, *SIGNED_DP.values(), BOUNDED_DP)
    for kind in MEMBERSHIP_NOTIONS:
        yield kind(f.Independent())
        yield kind(f.FixedSize())


@lru_cache(maxsize=4096)
def steps(source: Notion, target: Notion) -> tuple[Step, ...]:
    """The theorems that lead from one notion to another directly."""
    return tuple(_subset_steps(source, target))


def _subset_steps(source: Notion, target: Notion) -> Iterator[Step]:  # noqa: C901 (a case for each theorem)
    match source, target:
        case PositiveMembership(), PositiveMembership():
            if type(source) is type(target):
                yield from _between_families(source, target)
        case DifferentialPrivacy(), DifferentialPrivacy():
            if source == UNBOUNDED_DP and target in SIGNED_DP.values():
                yield Step("definition", same_level)
            elif source == UNBOUNDED_DP and target == BOUNDED_DP:
                yield Step("T6", lambda e: 2 * e)
        case DifferentialPrivacy(), PositiveMembership():
            yield from _steps_from_dp(source, target)
        case PositiveMembership(), DifferentialPrivacy():
            yield from _steps_to_dp(source, target)
        case DifferentialIdentifiability(m=m), PositiveMembership(family=f.OneOf() as family):
            if (m, source.literal) == (family.m, family.literal) and target.positive:
                yield Step("T8", lambda rho: papers.one_of_from_identifiability(rho, m), True)
        case PositiveMembership(family=f.OneOf() as family), DifferentialIdentifiability(m=m):
            if (m, target.literal) == (family.m, family.literal) and source.positive:
                yield Step("T8", lambda g: papers.identifiability_from_one_of(g, m), True)
        case DifferentialIdentifiability(m=m), DifferentialIdentifiability(m=n) if m == n:
            if target.literal and not source.literal:
                yield Step("subfamily", same_level)
        case DifferentialIdentifiability(m=2, literal=False), DifferentialPrivacy():
            if target == BOUNDED_DP:
                yield Step("T9", papers.bounded_from_identifiability, True)
        case DifferentialPrivacy(), DifferentialIdentifiability(m=2, literal=False):
            if source == BOUNDED_DP:
                yield Step("T9", papers.identifiability_from_bounded, True)
        case DifferentialPrivacy() | SampledDifferentialPrivacy(), SampledDifferentialPrivacy():
            yield from _sampled_steps(source, target)
        case SampledDifferentialPrivacy(beta=b, direction="positive"), PositiveMembership(
            family=f.FixedProbability(beta=c)
        ) if b == c and target.positive:
            beta = rational(b)
            yield Step("T10", lambda e: papers.sampled_from_sampling(exp_level(e), beta), True)
        case PositiveMembership(family=f.FixedProbability(beta=b)), SampledDifferentialPrivacy(
            beta=c, direction="positive"
        ) if b == c and source.positive:
            beta = rational(b)
            yield Step("T10", lambda g: log_up(papers.sampling_from_sampled(g, beta)), True)


def _between_families(source: PositiveMembership, target: PositiveMembership) -> Iterator[Step]:
    if source.family.includes(target.family):
        yield Step("subfamily", same_level, target.family.includes(source.family))
    families = source.family, target.family
    match families:
        case f.OneOf(m=m, literal=False), f.OneOf(m=n, literal=False) if m < n:
            # One against the mean of the m − 1 most different others; more are less different.
            few, many = (sides(*family.beliefs, source.positive) for family in families)
            yield Step("more candidates", lambda g: gamma_of_ratio(ratio_for_gamma(g, *few), *many))


def _steps_from_dp(source: DifferentialPrivacy, target: PositiveMembership) -> Iterator[Step]:
    """T4, T5, T7 and T11 from ε to γ, as the family says."""
    known = _protecting_dp(target)
    if known is not None and source == known[0]:
        _, theorem, adversary, (low, high) = known
        group, tight = adversary.group, adversary.equivalent
        yield Step(theorem, lambda e: gamma_of_ratio(exp_level(group * e), low, high), tight)


def _steps_to_dp(source: PositiveMembership, target: DifferentialPrivacy) -> Iterator[Step]:
    """T4, T5 and T11 from γ to ε."""
    known = _protecting_dp(source)
    if known is not None and target == known[0] and known[2].equivalent:
        _, theorem, _, (low, high) = known
        yield Step(theorem, lambda g: log_up(ratio_for_gamma(g, low, high)), True)


def _protecting_dp(
    notion: PositiveMembership,
) -> tuple[DifferentialPrivacy, str, f.Adversary, Range] | None:
    """The differential privacy that protects against a family, why, what the family says about it
    and its beliefs; nothing where none does."""
    try:
        adversary = notion.family.adversary()
    except Unsupported:
        return None
    private = SIGNED_DP[notion.positive] if adversary.relation == "add-remove" else BOUNDED_DP
    beliefs = sides(adversary.low, adversary.high, notion.positive)
    theorem = adversary.theorems[0] if beliefs == WHOLE_RANGE else "T11"
    return private, theorem, adversary, beliefs


def _sampled_steps(source: Notion, target: SampledDifferentialPrivacy) -> Iterator[Step]:
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
        yield Step("definition", same_level)
    elif target.direction == "negative":
        rest = 1 - share  # 1 − share · (1 − 1/r), where 1/∞ is 0
        yield Step(
            "amplification", lambda e: log_up(1 / (rest + share * Fraction(1 / exp_level(e))))
        )
    else:
        yield Step("amplification", lambda e: log_up(1 + share * (exp_level(e) - 1)))


# What theorems about records ask of a prior: support, spread, independence, defaults.
#
# A prior on records with the same distribution for every row, or one for each, answers without a
# space; others are written out, for which they need one. `None` means: not without the space.

MAX_PRIOR_WORLDS = 1 << 16
"""Tables of more worlds are not written out: no theorem is used rather than a slow one."""
Rows = tuple[tuple[Fraction, ...], ...]


def independent_rows(prior: Prior) -> Rows | None:
    """The rows' distributions where rows are independent; one where all rows share it."""
    if type(prior) is not priors.Independent or not isinstance(prior.p, tuple):
        return None
    return tuple(
        read_distribution(row, "prior") for row in (prior.p if prior.by_row else (prior.p,))
    )


def rows_are_independent(prior: Prior) -> bool:
    """Whether rows are known to be independent of each other."""
    return isinstance(prior, priors.Uniform) or independent_rows(prior) is not None


def prior_spread(prior: Prior, space: Space | None) -> Fraction | None:
    """e^ε_X: the largest ratio of the probabilities of two tables that differ in one row; None
    where it is infinite or not known."""
    if isinstance(prior, priors.Uniform):
        return Fraction(1)
    if isinstance(prior, priors.PriorSet):
        return prior.spread if isinstance(prior.spread, Fraction) else None
    if (rows := independent_rows(prior)) is not None:
        full = all(min(row) > 0 for row in rows)
        return max(max(row) / min(row) for row in rows) if full else None
    mass = written_out(prior, space)
    if mass is None or not np.all(mass > 0):
        return None
    assert isinstance(space, Records)
    views = [space.axis(mass[:, None], row) for row in range(space.rows)]
    return max(rational(max((view.max(axis=1) / view.min(axis=1)).ravel())) for view in views)


def full_support(prior: Prior, space: Space | None) -> bool:
    """Whether every table is known to be possible."""
    return prior_spread(prior, space) is not None


def default_is_possible(prior: Prior, default: int, space: Space | None) -> bool:
    """Whether the default is known to be possible in each row beside every possible rest."""
    if isinstance(prior, priors.Uniform):
        return True
    if (rows := independent_rows(prior)) is not None:
        return all(default < len(row) and row[default] > 0 for row in rows)
    mass = written_out(prior, space)
    if mass is None or not isinstance(space, Records) or not 0 <= default < space.values:
        return False
    views = [space.axis(mass[:, None], row) > 0 for row in range(space.rows)]
    return not any(np.any(view.any(axis=1) & ~view[:, default]) for view in views)


def binary_rows(prior: Prior, space: Space | None) -> list[Fraction] | None:
    """Pr[value 1] of each row, where rows are independent and binary and their number known."""
    rows = independent_rows(prior)
    records = space if isinstance(space, Records) else None
    if isinstance(prior, priors.Uniform):
        known = records is not None and records.values == 2
        return [ONE_HALF] * records.rows if known else None  # type: ignore[union-attr]
    if rows is None or any(len(row) != 2 for row in rows):
        return None
    listed = not needs_space(prior)
    if records is not None:
        if records.values != 2 or (listed and len(rows) != records.rows):
            return None
        return [row[1] for row in (rows if listed else rows * records.rows)]
    return [row[1] for row in rows] if listed else None


def beliefs_in_people(prior: Prior, people: Prior, space: Space | None) -> list[Fraction] | None:
    """Each person's prior probability of being in, where a prior on binary records and a prior on
    sets of people are known to be the same: value 1 of row i is entity i being in."""
    rows = independent_rows(prior)
    if rows is not None and all(len(row) == 2 for row in rows):
        inside = [row[1] for row in rows]
        if isinstance(people, priors.Uniform):
            return inside if set(inside) == {ONE_HALF} else None
        if type(people) is priors.Independent:
            given = [rational(p) for p in people.parameters]
            alike = len(given) == 1 or len(inside) == 1
            same = set(given) == set(inside) and len(set(given)) == 1 if alike else given == inside
            return inside if same else None
    if not isinstance(space, Records) or space.values != 2:
        return None
    mass = written_out(prior, space)
    if mass is None:
        return None
    subsets = Subsets(space.rows)
    try:
        other = people.probabilities(subsets)
    except Exception:  # a prior about something else
        return None
    present = [sum(value << row for row, value in enumerate(world)) for world in space]
    if any(rational(one) != other[two] for one, two in zip(mass, present, strict=True)):
        return None
    return [people.belief(subsets, entity) for entity in range(space.rows)]


@lru_cache(maxsize=64)
def written_out(prior: Prior, space: Space | None) -> Array | None:
    """The probability of each table, exactly, where it can be written out."""
    listable = isinstance(space, Records) and space.worlds <= MAX_PRIOR_WORLDS
    if not listable or isinstance(prior, priors.PriorSet):
        return None
    return prior.on_records(space, flint_rational)  # type: ignore[arg-type]


def needs_space(prior: Prior) -> bool:
    """Whether more can be said of a prior once the space is known."""
    return not (type(prior) is priors.Independent and prior.by_row)


# The steps of the map between notions about the values of rows. Notions in canonical spelling.
#
# `REPLACE_DP` here is differential privacy on records, where one row's value is replaced; on sets
# of people the same class speaks of one person for another (`BOUNDED_DP`).

REPLACE_DP = DifferentialPrivacy("replace")
WITH_PRIOR = (Identifiability, MutualInformation, MeanShift)


def kin_record_steps(*ends: Notion) -> Iterator[Notion]:
    """The notions through which a chain between these may pass."""
    yield REPLACE_DP
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


def steps_record_steps(source: Notion, target: Notion, space: Space | None) -> Iterator[Step]:  # noqa: C901 (a case for each theorem)
    """The theorems that lead from one notion to another directly."""
    match source, target:
        case DifferentialPrivacy(), _ if source == REPLACE_DP:
            yield from _record_steps_from_dp(target, space)
        case BayesianDifferentialPrivacy(), _:
            yield from _steps_from_bayesian(source, target, space)
        case SemanticPrivacy(), DifferentialPrivacy() if target == REPLACE_DP:
            yield Step("T15", papers.dp_from_semantic)
        case SemanticPrivacy(default=d), BayesianSemanticPrivacy(prior=prior, default=e) if d == e:
            if isinstance(prior, priors.Prior) and rows_are_independent(prior):
                tight = full_support(prior, space)
                yield Step("independent rows", same_level, tight)
        case BayesianSemanticPrivacy(prior=prior, default=d), SemanticPrivacy(default=e) if d == e:
            if isinstance(prior, priors.Prior) and full_support(prior, space):
                yield Step("T19", same_level, rows_are_independent(prior))
        case BayesianSemanticPrivacy(priors=each, default=d), BayesianDifferentialPrivacy():
            possible = {prior for prior in each if default_is_possible(prior, d, space)}
            if set(target.priors) <= possible:
                yield Step("T15", papers.dp_from_semantic)
        case RecordMembership(), BayesianDifferentialPrivacy():
            if set(target.priors) <= set(source.priors):
                tight = set(target.priors) == set(source.priors)
                yield Step("T14", papers.bayesian_from_membership, tight)
        case Identifiability(prior=prior), DifferentialPrivacy() if target == REPLACE_DP:
            ratio = prior_spread(prior, space)
            if ratio is not None:
                extra = log_up(ratio)
                yield Step("T19", lambda e: papers.dp_from_identifiability(e, extra))
        case Identifiability(prior=prior), PositiveMembership(
            family=f.Explicit() | f.Uninformed() as family
        ):
            one = (Uniform(),) if isinstance(family, f.Uninformed) else family.priors
            beliefs = beliefs_in_people(prior, one[0], space)
            if len(one) == 1 and beliefs is not None and all(0 < p < 1 for p in beliefs):
                carry = papers.membership_from_identifiability
                yield Step("T22", lambda e: carry(e, beliefs, target.positive))
        case MutualInformation(prior=prior), MeanShift(prior=other) if prior == other:
            yield Step("T23", papers.shift_from_information)


def _record_steps_from_dp(target: Notion, space: Space | None) -> Iterator[Step]:
    match target:
        case SemanticPrivacy():
            yield Step("T15", papers.semantic_from_dp)
        case BayesianDifferentialPrivacy(priors=listed):
            if all(map(rows_are_independent, listed)):
                tight = any(full_support(prior, space) for prior in listed)
                yield Step("independent rows", same_level, tight)
        case Identifiability(prior=prior):
            ratio = prior_spread(prior, space)
            if ratio is not None:
                extra = log_up(ratio)
                yield Step("T19", lambda e: papers.identifiability_from_dp(e, extra))
        case MutualInformation(prior=prior):
            beliefs = binary_rows(prior, space)
            if beliefs is not None:
                yield Step("T24", lambda e: papers.information_from_dp(e, beliefs))


def _steps_from_bayesian(
    source: BayesianDifferentialPrivacy, target: Notion, space: Space | None
) -> Iterator[Step]:
    match target:
        case DifferentialPrivacy() if target == REPLACE_DP:
            full = [p for p in source.priors if full_support(p, space)]
            if full:
                tight = all(map(rows_are_independent, source.priors))
                yield Step("T19", same_level, tight)
        case BayesianSemanticPrivacy():
            if set(target.priors) <= set(source.priors):
                yield Step("T15", papers.semantic_from_dp)
        case RecordMembership():
            if set(target.priors) <= set(source.priors):
                tight = set(target.priors) == set(source.priors)
                yield Step("T14", exp_level, tight)
        case BayesianDifferentialPrivacy():
            if set(target.priors) < set(source.priors):
                yield Step("definition", same_level)
