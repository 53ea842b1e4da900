"""From a promise to the smallest rule that keeps it: profiles and failure brackets."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from whosin.calibration import Target, calibrate
from whosin.errors import (
    InvalidInput,
    UnknownName,
    Unsupported,
    check_kind,
    invalid_value,
    read_whole,
    shorten_result,
)
from whosin.exact import Array, Number, exact_fraction, read_ranged, round_down
from whosin.families import AtMostKnown, Family, FixedProbability, Independent, Uninformed
from whosin.mechanisms import Exact, Mechanism, RandomRound, Round, Suppress
from whosin.mechanisms.count_rules import SUPPRESSED_LABEL, Rule
from whosin.notions import failure_probability
from whosin.notions.failure_probability import (
    Cases,
    FailureBracket,
    bound_if_met,
    is_above,
    list_cases,
    promising_epsilons,
)
from whosin.notions.failure_probability import failure as failure_of
from whosin.priors import Prior
from whosin.spaces import Subsets
from whosin.spaces.quotients import binomial

# From a promise to a rule: the smallest threshold, base or population that keeps it.
#
# What is returned has been seen to keep the promise, by a bound on all priors of the family (F9,
# F21, F22); a smaller one might keep it without being known to. A higher threshold hides more and
# so keeps whatever a lower one keeps. The same holds for a larger population. Bases are tried in
# turn, since a larger base may leak more.
#
# More people are safer for the exact count, and not for a rule (F24): a threshold that hides enough
# of 120 people may hide too little of 130. So a rule is checked for every number of people from the
# one given up to the first at which the exact count keeps the promise by itself, and whatever is
# made of it. Where that number is too large to get there, the plan is for exactly the number given.

RULE_KINDS = ("suppress", "round", "random-round", "population")
MAX_RULE_PEOPLE = 100_000
MAX_HALF_KNOWN_PEOPLE = 1000
"""Up to this many people the plan also says what happens if half of them are known."""
FIRST_LOOK, SECOND_LOOK = 3, 25
"""How many crowds a search looks at before everything is looked at."""
MAX_ROUNDING_BASE = 100
"""Larger bases are not tried."""
MAX_CHECKED_TOGETHER = 64
"""How many numbers of people are checked at once, at the most."""
SPARSE_CHECKS = 24
"""How many numbers of people are looked at before all are checked."""
MAX_CHECKED_LIKELY = 4_000
"""The same for how many may be in with one probability."""
MAX_CHECKED_WORK = 1 << 33
"""Up to this much work, in others × known people × outputs, all numbers of people are checked."""


@dataclass(frozen=True)
class RuleCost:
    """What a rule costs where a given share of the people is in.

    Attributes:
        belief: the share.
        error: the expected distance between what is shown and the count, of counts that are shown.
        suppressed: the share of counts that are not shown.
    """

    belief: float
    error: float
    suppressed: float


@dataclass(frozen=True)
class RemainingFailure:
    """How likely the promise is to fail against people who know more others: between two numbers,
    or, where any larger number of people counts too, at least so likely for one of them."""

    known: int
    lower: float
    upper: float | None


@dataclass(frozen=True)
class NoiseAlternative:
    """Noise for the same promise: its kind, its expected error, and against whom it holds."""

    kind: str
    error: float
    scale: float
    against: str


@dataclass(frozen=True)
class RulePlan:
    """The rule that keeps a promise.

    Attributes:
        kind: suppress, round, random-round or population.
        parameter: the threshold, base or population; None where none was found to keep it.
        ratio: the likelihood ratio that the promise allows.
        failure: (at least, at most) the probability that the rule breaks it, given that the person
            is in, for `people` at least and for all numbers of people at most; without a rule, and
            for `people`, where there is none.
        without: the same with no rule, for the people given.
        costs: what the rule costs, at the least and the largest belief.
        beside: noise for the same promise.
        remains: against people who know more, of `people`, the last of whom know everyone else.
        at_least: whether it holds for `people` and any larger number of people; otherwise for
            exactly `people`.
    """

    kind: str
    parameter: int | None
    target: Target
    family: Family
    delta: float
    people: int | None
    ratio: float
    failure: tuple[float, float]
    without: tuple[float, float] | None
    costs: tuple[RuleCost, ...]
    beside: tuple[NoiseAlternative, ...]
    remains: tuple[RemainingFailure, ...]
    at_least: bool = True
    theorems: tuple[str, ...] = ("T18",)

    def __repr__(self) -> str:
        names = ("kind", "parameter", "target", "family", "delta", "people", "at_least", "failure")
        return shorten_result(self, *names)

    def to_dict(self) -> dict[str, object]:
        """Plain data, for JSON."""
        return {
            "rule": self.kind,
            "parameter": self.parameter,
            "keeps": self.parameter is not None,
            "target": self.target.words(),
            "family": self.family.spelled,
            "delta": self.delta,
            "people": self.people,
            "people_are": "at least" if self.at_least else "exactly",
            "ratio": self.ratio,
            "failure": dict(zip(("lower", "upper"), self.failure, strict=True)),
            "without_a_rule": self.without
            and dict(zip(("lower", "upper"), self.without, strict=True)),
            "costs": [vars(cost) for cost in self.costs],
            "beside": [vars(each) for each in self.beside],
            "if_they_know_more": [vars(each) for each in self.remains],
            "theorems": list(self.theorems),
        }


def plan_rule(
    kind: str,
    target: Target,
    family: Family,
    delta: object,
    people: int | None = None,
    zeros: str = "shown",
) -> RulePlan:
    """The smallest threshold, base or population for which the likelihood ratio that the target
    allows is exceeded with probability at most δ, given that the person is in.

    Args:
        kind: "suppress", "round", "random-round", or "population": how many people could be in the
            finest cell that is published, whatever is then published about these cells (F22).
        family: AtMostKnown, FixedProbability or Uninformed.
        people: how many could be in, at the least; not needed for a population. Where too many
            numbers of people would have to be checked the plan is for exactly so many, and
            `RulePlan.at_least` is False.
        zeros: with suppress, whether a count of 0 is "shown" or "hidden".
    """
    if kind not in RULE_KINDS:
        raise UnknownName("rule", str(kind), RULE_KINDS)
    check_kind(target, Target, "target", "Posterior(…), Gamma(…), …")  # type: ignore[type-abstract]
    _check_family(family)
    failing = read_ranged(delta, "delta", "strictly between 0 and 1")
    of_one_person = isinstance(target.default_family(), Independent)
    if target.averages or target.stated_epsilon is not None or not of_one_person:
        message = "a rule is planned for a posterior, a gamma or another bound on beliefs"
        raise InvalidInput(message, field="target", value=target)
    least = 1 if kind == "population" else 2
    if people is None and kind != "population":
        raise InvalidInput(
            "people is missing", field="people", hint="with a rule, say how many could be in"
        )
    if people is not None:
        read_whole(people, "people", least, MAX_RULE_PEOPLE)
        if isinstance(family, AtMostKnown) and family.k > people:
            raise invalid_value("known", f"at most the number of people, {people}", family.k)
    ratio = exact_fraction(target.ratio(*family.beliefs))
    search = _Search(family, ratio, failing)
    if kind == "population":
        found = _smallest_population(search)
        known = family.k if isinstance(family, AtMostKnown) else 0
        chosen = _Chosen(found, None if found is None else Exact(), found or people or known + 2)
    else:
        assert people is not None
        chosen = _choose_rule(kind, search, people, zeros)
    parameter, rule, among = chosen.number, chosen.rule or Exact(), chosen.people
    shares = () if parameter is None else dict.fromkeys(family.beliefs)
    return RulePlan(
        kind=kind,
        parameter=parameter,
        target=target,
        family=family,
        delta=float(failing),
        people=people,
        ratio=round_down(ratio),
        failure=search.bracket(rule, among, chosen.proved),
        without=None if people is None else search.bracket(Exact(), people),
        costs=tuple(_rule_cost(rule, among, float(p)) for p in shares),
        beside=_noise_alternatives(target, family, failing, among),
        remains=_remaining_failures(rule, among, family, ratio, chosen.looked_at),
        at_least=chosen.at_least,
    )


def _check_family(family: Family) -> None:
    if isinstance(family, Independent):
        raise InvalidInput(
            "known is missing: no rule keeps a promise against someone who may know everyone else",
            field="known",
            hint="say how many people they may know",
        )
    if not isinstance(family, AtMostKnown | FixedProbability | Uninformed):
        message = f"a rule cannot be planned against {family.symbol}"
        hint = "use at-most-known, fixed-probability or uninformed"
        raise Unsupported(message, field="family", value=family, hint=hint)


@dataclass
class _Search:
    """Which rules are known to keep a ratio, except with a failure probability, whatever is made of
    what they show (F9). So a rule that shows less keeps what a rule that shows more keeps."""

    family: Family
    ratio: Fraction
    delta: Fraction
    proved: dict[tuple[Rule, int, int], float | None] = field(default_factory=dict)
    epsilons: Array | None = None

    def cases(self, rule: Rule, people: int, more: int = 0) -> Cases:
        """The cases for so many people, or for up to so many `more`.

        Of more people some may be taken as known: mixtures over who of them is in are no worse
        than the worst of these (F21), and so all numbers in between are covered.
        """
        family = self.family
        if more:
            known = family.k if isinstance(family, AtMostKnown) else 0
            family = AtMostKnown(known + more, *family.beliefs)
        return list_cases(rule, Subsets(people + more), family, positive=True)

    def may_keep(self, rule: Rule, people: int, few: int) -> bool:
        """Whether a first look leaves it open."""
        return not is_above(self.cases(rule, people), self.ratio, self.delta, few)

    def keeps(self, rule: Rule, people: int, more: int = 0) -> bool:
        """Whether the rule is known to keep the promise for so many people, and up to `more`."""
        asked = rule, people, more
        if asked not in self.proved:
            cases = self.cases(rule, people, more)
            bound = None
            if self.epsilons is not None:  # which served for the last one
                bound = bound_if_met(cases, self.ratio, self.delta, self.epsilons)
            if bound is None and not more:
                self.epsilons = promising_epsilons(cases, self.ratio)
                bound = bound_if_met(cases, self.ratio, self.delta, self.epsilons)
            self.proved[asked] = bound
        return self.proved[asked] is not None

    def fails_at(self, rule: Rule, first: int, last: int) -> int | None:
        """The first number of people, of first … last, for which the rule is not known to keep the
        promise; None where there is none. Many are checked at once where that is enough."""
        people, together = first, 1
        while people <= last:
            more = min(together, last + 1 - people) - 1
            if self.keeps(rule, people, more):
                people, together = people + more + 1, min(2 * together, MAX_CHECKED_TOGETHER)
            elif more:
                together = max(1, together // 4)
            else:
                return people
        return None

    def bracket(self, rule: Rule, people: int, proved: float | None = None) -> tuple[float, float]:
        """How often the rule fails for so many people; where a bound is given, for more too."""
        known = self.proved.get((rule, people, 0)) if proved is None else proved
        result = failure_of(self.cases(rule, people), self.ratio, known)
        return float(result.lower), max(float(result.upper), proved or 0.0)

    def least(self, low: int, high: int, case: Callable[[int], tuple[Rule, int]]) -> int | None:
        """The least number of low … high that keeps the promise, where larger ones keep what
        smaller ones keep: what few crowds refute is skipped, the rest is seen to hold on all."""
        return self.next_kept(self.first_open(low - 1, high, case, SECOND_LOOK), high, case)

    def next_kept(
        self, start: int, high: int, case: Callable[[int], tuple[Rule, int]]
    ) -> int | None:
        """The same from a number on that is likely near."""
        fails, holds, step = start - 1, start, 1
        while not self.keeps(*case(holds)):
            if holds == high:
                return None
            fails, holds, step = holds, min(holds + step, high), 2 * step
        between = range(fails + 1, holds)
        return fails + 1 + bisect_left(between, True, key=lambda n: self.keeps(*case(n)))

    def first_open(
        self, below: int, above: int, case: Callable[[int], tuple[Rule, int]], few: int
    ) -> int:
        """The least number above one that few crowds refute which they do not refute."""
        between = range(below + 1, above)
        return below + 1 + bisect_left(between, True, key=lambda n: self.may_keep(*case(n), few))


class _Chosen(NamedTuple):
    """What a search found: the number and its rule, for how many people, by which bound, whether
    for any larger number of people too, and at which of these it looked."""

    number: int | None
    rule: Rule | None
    people: int
    proved: float | None = None
    at_least: bool = True
    looked_at: tuple[int, ...] = ()


def _choose_rule(kind: str, search: _Search, people: int, zeros: str) -> _Chosen:
    """The smallest threshold or base for so many people, and more."""
    last = _last_checked(search, people)
    upto = people if last is None else max(people, last)
    if kind == "suppress":
        number = _smallest_threshold(search, people, upto, zeros)
        rule: Rule | None = None if number is None else Suppress(number, zeros)
    else:
        make = Round if kind == "round" else RandomRound
        number = _smallest_base(search, make, people, upto)
        rule = None if number is None else make(number)
    bounds = [bound for (each, _, _), bound in search.proved.items() if each == rule and bound]
    proved = None if rule is None else max(bounds, default=None)  # over all numbers of people
    looked_at = () if last is None else _sample_people(search, people, max(upto, 4 * people))
    return _Chosen(number, rule, people, proved, last is not None, tuple(looked_at[::3]))


def _last_checked(search: _Search, people: int) -> int | None:
    """The largest number of people for which a rule has to be checked: for more the exact count
    keeps the promise (F24). None where there are too many to check."""
    family = search.family
    if isinstance(family, FixedProbability):
        # Everyone who may be in has the same probability, and so many others may be in or fewer:
        # from some number on all of them hide enough, and those with fewer are among any people.
        alike = _Search(AtMostKnown(0, *family.beliefs), search.ratio, search.delta)
        enough = _smallest_population(alike)
        return None if enough is None or enough > MAX_CHECKED_LIKELY else max(people, enough)
    if search.keeps(Exact(), people):
        return people
    known = family.k if isinstance(family, AtMostKnown) else 0
    is_one = len(set(family.beliefs)) == 1

    def is_little(last: int) -> bool:
        work = (last - people) * (known + 1) * last * (1 if is_one else last)
        return work <= MAX_CHECKED_WORK

    most = people
    while most < MAX_RULE_PEOPLE and is_little(2 * most):
        most *= 2
    enough = _smallest_population(search, people, most)
    return None if enough is None else enough - 1


def _sample_people(search: _Search, people: int, last: int) -> list[int]:
    """Some numbers of people of those that have to be checked, more of them near the first."""
    if isinstance(search.family, FixedProbability) or last <= people:
        return [last]
    steps = np.geomspace(1, last - people + 1, SPARSE_CHECKS)
    return sorted({people + round(step) - 1 for step in steps})


def _smallest_threshold(search: _Search, people: int, last: int, zeros: str) -> int | None:
    """The smallest threshold that holds for all numbers of people up to the last."""

    def rule(below: int, count: int) -> tuple[Rule, int]:
        return Suppress(below, zeros), count

    number: int | None = 1
    for count in _sample_people(
        search, people, last
    ):  # a look at some, so that few are raised below
        assert number is not None
        if number <= count and not search.may_keep(*rule(number, count), FIRST_LOOK):
            number = search.first_open(number, count + 1, partial(rule, count=count), FIRST_LOOK)
    failing: int | None = _sample_people(search, people, last)[0]
    while number is not None and failing is not None:
        failing = search.fails_at(Suppress(number, zeros), failing, last)
        if failing is not None:
            number = search.next_kept(number + 1, failing + 1, partial(rule, count=failing))
    return number


def _smallest_base(
    search: _Search, make: Callable[[int], Rule], people: int, last: int
) -> int | None:
    """The first base that holds for all numbers of people up to the last."""
    numbers = _sample_people(search, people, last)
    first = numbers[0]
    for base in range(2, min(people, MAX_ROUNDING_BASE) + 1):
        rule = make(base)
        refuted = next((n for n in numbers if not search.may_keep(rule, n, FIRST_LOOK)), None)
        if refuted is None:
            refuted = search.fails_at(rule, first, last)
        if refuted is None:
            return base
        numbers = [refuted, *(n for n in numbers if n != refuted)]  # which likely refutes the next
    return None


def _smallest_population(
    search: _Search, least: int = 0, most: int = MAX_RULE_PEOPLE
) -> int | None:
    """The smallest population whose exact count keeps the promise, of at least and at most so many;
    doubling first, since large ones take long."""
    family = search.family
    if isinstance(family, FixedProbability):
        return None  # someone may be sure that nobody else is in, however many could be
    known = family.k if isinstance(family, AtMostKnown) else 0
    size = least = max(known + 2, least)
    while size < most and not search.may_keep(Exact(), size, SECOND_LOOK):
        size *= 2
    end = min(size, most)
    if least > end or not search.may_keep(Exact(), end, SECOND_LOOK):
        return None
    return search.least(max(least, size // 2), end, lambda number: (Exact(), number))


def _rule_cost(rule: Rule, people: int, belief: float) -> RuleCost:
    """What becomes of a count when everyone is in with this probability."""
    first, weights = binomial(people, belief)
    error = hidden = 0.0
    for count, weight in enumerate(weights, start=first):
        for output, p in rule.spread(count):
            share = float(weight) * float(p)
            if output == SUPPRESSED_LABEL:
                hidden += share
            else:
                assert isinstance(output, int)
                error += share * abs(output - count)
    published = 1 - hidden
    return RuleCost(belief, error / published if published > 1e-12 else math.nan, min(hidden, 1.0))


def _noise_alternatives(
    target: Target, family: Family, delta: Fraction, people: int
) -> tuple[NoiseAlternative, ...]:
    """Noise for the same promise: against the same people, and against anyone as sure."""
    result = []
    anyone = Independent(*family.beliefs)
    if isinstance(family, AtMostKnown) and people >= 2:
        noise = calibrate(target, family, float(delta), "count", people).noise
        if noise is not None:
            result.append(NoiseAlternative(noise.kind, noise.error, noise.scale, family.words()))
    noise = calibrate(target, anyone, query="count").noise
    assert noise is not None
    result.append(NoiseAlternative(noise.kind, noise.error, noise.scale, anyone.words()))
    return tuple(result)


def _remaining_failures(
    rule: Rule, people: int, family: Family, ratio: Number, looked_at: tuple[int, ...]
) -> tuple[RemainingFailure, ...]:
    """How likely the promise fails if they know twice as many, half of all (of not too many), or
    all others; and for some of the larger numbers of people that were looked at."""
    known = family.k if isinstance(family, AtMostKnown) else 0
    is_small = people <= MAX_HALF_KNOWN_PEOPLE  # more take long
    half = {people // 2} if is_small else set()
    more = sorted({min(max(2 * known, 1), people - 1), *half, people - 1})
    result: list[RemainingFailure] = []
    for number in more:
        if number > known:
            knowing = AtMostKnown(number, *family.beliefs)
            least, upper = result[-1].lower if result else 0.0, 1.0
            for count in {people, *looked_at} if is_small else {people}:
                cases = list_cases(rule, Subsets(count), knowing, positive=True)
                bracket = failure_of(cases, ratio, 1.0 if looked_at else None)
                least, upper = max(least, float(bracket.lower)), float(bracket.upper)
            result.append(RemainingFailure(number, least, None if looked_at else upper))
    return tuple(result)


# What a rule leaks to people who are uncertain of most others: exact profiles and brackets.

MAX_BRACKETED_PEOPLE = 10_000_000


@dataclass(frozen=True)
class FailureWitness:
    """Who may learn more than the ratio, and from what.

    Attributes:
        outputs: the outputs whose likelihood ratio exceeds it.
        distribution: what that person believes; entity 0 is the one in question.
        words: the same in words, for a count of many people.
        probability: how likely these outputs are, given that the entity is in.
    """

    outputs: tuple[object, ...]
    distribution: Prior
    words: str
    probability: float | Fraction
    entity: int = 0

    def __repr__(self) -> str:
        return shorten_result(self, "words", "outputs", "probability")


class Failure(FailureBracket):
    """How likely it is, given that a person is in, that an output's likelihood ratio exceeds a
    number, for the worst prior of a family: `lower` for the witness, at most `upper` for everyone
    in the family (F9)."""

    @property
    def witness(self) -> FailureWitness:
        """Who may learn more, and from what."""
        case = self.case
        prior = case.prior(case.high)
        return FailureWitness(self.outputs, prior, case.words, self.lower, case.entity)

    def __repr__(self) -> str:
        return shorten_result(self, "ratio", "lower", "upper", "exact", "witness")


def profile(rule: Mechanism, people: int, family: Family, epsilon: object) -> float:
    """The exact δ(ε) of F21, rounded up: the sup over the family of
    Σ_o max(0, Pr[o|t] − e^ε Pr[o|¬t]).

    Args:
        rule: a rule, or any mechanism that sees how many are in.
        people: how many could be in, the person in question included.
        family: AtMostKnown, FixedProbability, Uninformed, Independent or Explicit.
    """
    return failure_probability.profile(_rule_cases(rule, people, family), epsilon)


def failure(rule: Mechanism, people: int, family: Family, ratio: object) -> Failure:
    """A bracket for the probability, given that the person is in, that the likelihood ratio of what
    is shown exceeds `ratio`."""
    return Failure(**vars(failure_of(_rule_cases(rule, people, family), ratio)))


def _rule_cases(rule: Mechanism, people: int, family: Family) -> Cases:
    check_kind(rule, Mechanism, "rule", "a rule, or another mechanism on a count")  # type: ignore[type-abstract]
    check_kind(family, Family, "family", "a family of priors")  # type: ignore[type-abstract]
    space = Subsets(read_whole(people, "people", 1, MAX_BRACKETED_PEOPLE))
    return list_cases(rule, space, family, positive=True)
