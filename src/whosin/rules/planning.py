"""From a promise to a rule: the smallest threshold, base or population that keeps it.

Contract: what is returned has been seen to keep the promise, by a bound on all priors of the family
(F9, F21, F22); a smaller one might keep it without being known to. A higher threshold hides more
and so keeps whatever a lower one keeps. The same holds for a larger population. Bases are tried in
turn, since a larger base may leak more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from whosin.calibration import Target, calibrate
from whosin.errors import InvalidInput, UnknownName, Unsupported
from whosin.exact import Number, ranged, rational, round_down
from whosin.families import AtMostKnown, Family, FixedProbability, Independent, Uninformed
from whosin.mechanisms import Exact, RandomRound, Round, Suppress
from whosin.mechanisms.count_rules import SUPPRESSED, Rule
from whosin.notions.failing import Cases, bound_within, cases_of, is_above
from whosin.notions.failing import failure as failure_of
from whosin.spaces import Subsets
from whosin.spaces.binomials import binomial
from whosin.validation import of_kind, whole

KINDS = ("suppress", "round", "random-round", "population")
MOST_PEOPLE = 100_000
HALF_OF = 1000
"""Up to this many people the plan also says what happens if half of them are known."""
FIRST_LOOK, SECOND_LOOK = 3, 25
"""How many crowds a search looks at before everything is looked at."""


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
class Remaining:
    """How likely the promise is to fail against people who know more others."""

    known: int
    lower: float
    upper: float


@dataclass(frozen=True)
class Beside:
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
            is in; without a rule where there is none.
        without: the same with no rule, for the people given.
        costs: what the rule costs, at the least and the largest belief.
        beside: noise for the same promise.
        remains: against people who know more; the last of them know everyone else.
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
    beside: tuple[Beside, ...]
    remains: tuple[Remaining, ...]
    theorems: tuple[str, ...] = ("T18",)

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
            "ratio": self.ratio,
            "failure": dict(zip(("lower", "upper"), self.failure, strict=True)),
            "without_a_rule": self.without
            and dict(zip(("lower", "upper"), self.without, strict=True)),
            "costs": [vars(cost) for cost in self.costs],
            "beside": [vars(each) for each in self.beside],
            "if_they_know_more": [vars(each) for each in self.remains],
            "theorems": list(self.theorems),
        }


def plan(
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
        people: how many could be in, at the least; not needed for a population.
        zeros: with suppress, whether a count of 0 is "shown" or "hidden".
    """
    if kind not in KINDS:
        raise UnknownName("rule", str(kind), KINDS)
    of_kind(target, Target, "target", "Posterior(…), Gamma(…), …")  # type: ignore[type-abstract]
    _check_family(family)
    failing = ranged(delta, "delta", "strictly between 0 and 1")
    of_one_person = isinstance(target.default_family(), Independent)
    if target.averages or target.stated_epsilon is not None or not of_one_person:
        raise InvalidInput("target", "a posterior, a gamma or another bound on beliefs", target)
    least = 1 if kind == "population" else 2
    if people is None and kind != "population":
        raise InvalidInput("people", "given with a rule: how many could be in", "nothing")
    if people is not None:
        whole(people, "people", least, MOST_PEOPLE)
        if isinstance(family, AtMostKnown) and family.k > people:
            raise InvalidInput("known", f"at most the number of people, {people}", family.k)
    ratio = rational(target.ratio(*family.beliefs))
    search = _Search(family, ratio, failing)
    parameter, rule, count = _smallest(kind, search, people, zeros)
    applied, among = (rule, count) if rule is not None else (Exact(), people or count)
    return RulePlan(
        kind=kind,
        parameter=parameter,
        target=target,
        family=family,
        delta=float(failing),
        people=people,
        ratio=round_down(ratio),
        failure=search.bracket(applied, among),
        without=None if people is None else search.bracket(Exact(), people),
        costs=_costs(applied, among, family) if parameter is not None else (),
        beside=_beside(target, family, failing, among),
        remains=_remains(applied, among, family, ratio),
    )


def _check_family(family: Family) -> None:
    if isinstance(family, Independent):
        raise InvalidInput(
            "known",
            "given with a rule: no rule keeps a promise against someone who may know everyone else",
            "nothing",
        )
    if not isinstance(family, AtMostKnown | FixedProbability | Uninformed):
        raise Unsupported(
            "a rule is planned against at-most-known, fixed-probability or uninformed adversaries"
        )


@dataclass(frozen=True)
class _Search:
    """Which rules are known to keep a ratio, except with a failure probability, whatever is made of
    what they show (F9). So a rule that shows less keeps what a rule that shows more keeps."""

    family: Family
    ratio: Fraction
    delta: Fraction
    proved: dict[tuple[Rule, int], float | None] = field(default_factory=dict)

    def cases(self, rule: Rule, people: int) -> Cases:
        return cases_of(rule, Subsets(people), self.family, positive=True)

    def may_keep(self, rule: Rule, people: int, few: int) -> bool:
        """Whether a first look leaves it open."""
        return not is_above(self.cases(rule, people), self.ratio, self.delta, few)

    def keeps(self, rule: Rule, people: int) -> bool:
        asked = rule, people
        if asked not in self.proved:
            self.proved[asked] = bound_within(self.cases(rule, people), self.ratio, self.delta)
        return self.proved[asked] is not None

    def bracket(self, rule: Rule, people: int) -> tuple[float, float]:
        proved = self.proved.get((rule, people))
        result = failure_of(self.cases(rule, people), self.ratio, proved)
        return float(result.lower), float(result.upper)

    def first(self, rules: Iterable[tuple[int, Rule]], people: int) -> int | None:
        """The first number whose rule keeps the promise."""
        for number, rule in rules:
            looks = (self.may_keep(rule, people, few) for few in (FIRST_LOOK, SECOND_LOOK))
            if all(looks) and self.keeps(rule, people):
                return number
        return None

    def least(self, low: int, high: int, case: Callable[[int], tuple[Rule, int]]) -> int | None:
        """The least number of low … high that keeps the promise, where larger ones keep what
        smaller ones keep: what few crowds refute is skipped, the rest is seen to hold on all."""
        fails, holds = self._open(low - 1, high, case)
        step = 1
        while not self.keeps(*case(holds)):
            if holds == high:
                return None
            fails, holds, step = holds, min(holds + step, high), 2 * step
        while holds - fails > 1:
            middle = (holds + fails) // 2
            looks = self.may_keep(*case(middle), SECOND_LOOK)
            if looks and self.keeps(*case(middle)):
                holds = middle
            else:
                fails = middle
        return holds

    def _open(
        self, below: int, above: int, case: Callable[[int], tuple[Rule, int]]
    ) -> tuple[int, int]:
        """The largest number that few crowds refute, and the one after it."""
        while above - below > 1:
            middle = (below + above) // 2
            if self.may_keep(*case(middle), SECOND_LOOK):
                above = middle
            else:
                below = middle
        return below, above


def _smallest(
    kind: str, search: _Search, people: int | None, zeros: str
) -> tuple[int | None, Rule | None, int]:
    """(the number, the rule, for how many people)."""
    if kind == "population":
        known = search.family.k if isinstance(search.family, AtMostKnown) else 0
        most = MOST_PEOPLE
        number = _population(search, known + 2, most)
        return number, None if number is None else Exact(), number or most
    assert people is not None
    if kind == "suppress":
        number = search.least(1, people + 1, lambda below: (Suppress(below, zeros), people))
        return number, None if number is None else Suppress(number, zeros), people
    make = Round if kind == "round" else RandomRound
    number = search.first(((base, make(base)) for base in range(2, people + 1)), people)
    return number, None if number is None else make(number), people


def _population(search: _Search, least: int, most: int) -> int | None:
    """The smallest population whose exact count keeps the promise; doubling first, since large ones
    take long."""
    size = least
    while size < most and not search.may_keep(Exact(), size, SECOND_LOOK):
        size *= 2
    return search.least(max(least, size // 2), min(size, most), lambda number: (Exact(), number))


def _costs(rule: Rule, people: int, family: Family) -> tuple[RuleCost, ...]:
    return tuple(_cost(rule, people, float(p)) for p in dict.fromkeys(family.beliefs))


def _cost(rule: Rule, people: int, belief: float) -> RuleCost:
    """What becomes of a count when everyone is in with this probability."""
    first, weights = binomial(people, belief)
    error = hidden = 0.0
    for count, weight in enumerate(weights, start=first):
        for output, p in rule.spread(count):
            share = float(weight) * float(p)
            if output == SUPPRESSED:
                hidden += share
            else:
                assert isinstance(output, int)
                error += share * abs(output - count)
    published = 1 - hidden
    return RuleCost(belief, error / published if published > 1e-12 else math.nan, min(hidden, 1.0))


def _beside(target: Target, family: Family, delta: Fraction, people: int) -> tuple[Beside, ...]:
    """Noise for the same promise: against the same people, and against anyone as sure."""
    result = []
    anyone = Independent(*family.beliefs)
    if isinstance(family, AtMostKnown) and people >= 2:
        noise = calibrate(target, family, float(delta), "count", people).noise
        if noise is not None:
            result.append(Beside(noise.kind, noise.error, noise.scale, family.words()))
    noise = calibrate(target, anyone, query="count").noise
    assert noise is not None
    result.append(Beside(noise.kind, noise.error, noise.scale, anyone.words()))
    return tuple(result)


def _remains(rule: Rule, people: int, family: Family, ratio: Number) -> tuple[Remaining, ...]:
    """How likely the promise fails if they know twice as many, half of all (of not too many), or
    all others."""
    low, high = family.beliefs
    known = family.k if isinstance(family, AtMostKnown) else 0
    half = {people // 2} if people <= HALF_OF else set()  # which takes long for more
    more = sorted({min(max(2 * known, 1), people - 1), *half, people - 1})
    result: list[Remaining] = []
    for number in more:
        if number > known:
            cases = cases_of(rule, Subsets(people), AtMostKnown(number, low, high), positive=True)
            bracket = failure_of(cases, ratio)
            least = max(float(bracket.lower), result[-1].lower if result else 0.0)
            result.append(Remaining(number, least, float(bracket.upper)))
    return tuple(result)
