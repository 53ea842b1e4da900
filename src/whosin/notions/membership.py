"""Positive and negative membership privacy, on subsets and on records (Li13; Zhao17)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from whosin import beliefs
from whosin.errors import invalid_value, spell
from whosin.exact import (
    Number,
    Rational,
    exact_fraction,
    exp_down,
    exp_up,
    is_exact,
    log_up,
    read_ranged,
    round_down,
)
from whosin.families import Family, ValueOfOne
from whosin.families.base import WHOLE_RANGE, Bounded
from whosin.mechanisms import Channel, read_channel
from whosin.notions.base import (
    SEARCH_SLACK,
    Certificate,
    Level,
    Notion,
    OfPriors,
    Witness,
    WorstCase,
    certify_worst,
    exact_or_up,
    invert_ratio,
    make_witness,
    subset_lattice,
    worst_case,
)
from whosin.notions.bayesian_privacy import BayesianDifferentialPrivacy
from whosin.notions.differential_privacy import DifferentialPrivacy
from whosin.notions.failure_probability import level_at_delta, list_cases
from whosin.spaces import Space
from whosin.spaces.worlds import need_records

MEETING_SLACK = 2.0**-40
"""A bound and a case whose levels are closer than this, relatively, are equal but for rounding."""

SEARCHED_NOTE = "The upper end comes from a search of all odds of the people who are uncertain."


@dataclass(frozen=True)
class PositiveMembership(Notion):
    """(D, γ)-PMP: for every prior D in the family, every entity t and every set S of outputs,
    Pr[t|S] ≤ γ Pr[t] and Pr[¬t|S] ≥ Pr[¬t]/γ. Single outputs suffice (F3; Li13
    Definition 3.1).
    """

    family: Family
    unit: ClassVar[str] = "γ"
    short_names: ClassVar[tuple[str, ...]] = ("membership", "pmp")
    label: ClassVar[str] = "belief that someone is in"
    positive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.family, Family):
            raise invalid_value("family", "a family of priors", repr(self.family))

    @property
    def about_records(self) -> bool:  # type: ignore[override]
        return self.family.about_records

    @property
    def title(self) -> str:
        return f"{super().title} privacy against {self.family.summary}"

    def canonical(self) -> Notion:
        return replace(self, family=self.family.canonical())

    def measure(self, mechanism: object, space: Space | None = None, delta: object = 0) -> Level:
        """The smallest γ for which the mechanism satisfies the definition.

        Args:
            mechanism: a channel, or a mechanism together with its space.
            delta: the probability, given that the entity is in (out, for negative membership), with
                which an output may break the promise: then the least γ at this δ, as a bracket.
        """
        failing = read_ranged(delta, "delta", "at least 0 and below 1")
        if failing:
            return self._failing(mechanism, space, failing)
        channel = read_channel(mechanism, space)
        if isinstance(self.family, ValueOfOne):
            need_records(channel.space, "a value")
            found = DifferentialPrivacy("replace").measure(channel)
            sides = beliefs.sides(*self.family.bounds, self.positive)
            return _level_of_values(self, found, *sides)
        result = worst_case(channel, self.family, self.positive)
        bound = self._bound(channel)
        narrowed = self._narrow(channel, result, bound)
        if narrowed is not None:
            result, bound = narrowed
        if result is None:
            if bound is None or bound == 1:
                return Level(Rational(1), None, True, (), notion=self)
            return Level(bound, None, False, ("T11",), notion=self)
        worst, certificate, most = result
        belief = most.prior if self.positive else 1 - most.prior

        def case_at(belief: Fraction) -> Witness:
            return make_witness(
                channel, worst, certificate, belief, positive=self.positive, attained=most.attained
            )

        def nearer(claim: Fraction) -> Witness:
            closer = beliefs.closer(certificate.ratio, most.prior, claim)
            return case_at(closer if self.positive else 1 - closer)

        case = case_at(belief)
        exact = certificate.exact and is_exact(*self.family.parameters)
        value = exact_or_up(most.gamma, exact)
        if bound is None or value >= (bound if exact else bound * (1 - MEETING_SLACK)):
            return Level(value, case, True, self.family_theorems, notion=self, nearer=nearer)
        most_known = max(bound, value)
        theorems, note = (("T11",), "") if narrowed is None else ((), SEARCHED_NOTE)
        return Level(most_known, case, False, theorems, value, self, note, nearer)

    def _narrow(
        self, channel: Channel, result: WorstCase | None, bound: Number | None
    ) -> tuple[WorstCase | None, Number] | None:
        """A worse case and a smaller bound, where the family searches for them (T11)."""
        reached = Fraction(1) if result is None else result[2].gamma
        if bound is None or reached >= bound * (1 - MEETING_SLACK):
            return None
        lattice = subset_lattice(channel, "membership privacy")
        if not self.family.narrows(lattice.space.size):  # before any table is made
            return None
        limits = float(reached), float(bound)
        worst, most = self.family.narrow(channel.wide, lattice, self.positive, *limits)
        if worst is not None:
            certificate = certify_worst(channel, worst, self.positive)
            sides = beliefs.sides(worst.low, worst.high, self.positive)
            believed = beliefs.worst_belief(certificate.ratio, *sides)
            if believed.gamma > reached:
                result = worst, certificate, believed
        return result, min(bound, most)

    def _failing(self, mechanism: object, space: Space | None, delta: Fraction) -> Level:
        """The least γ that fails with probability at most δ (T18)."""
        cases = list_cases(mechanism, space, self.family, self.positive)
        result = level_at_delta(cases, delta, self.positive)
        case, exact = result.case, cases.is_small and is_exact(*self.family.parameters)
        belief = result.lower.prior if self.positive else 1 - result.lower.prior
        ratio = result.lower_ratio if self.positive else invert_ratio(result.lower_ratio)
        seen = Witness.shown(
            result.output,
            (belief, beliefs.posterior(ratio, belief), ratio),
            exact,
            entity=cases.space.entities[case.entity],
            adversary=lambda: case.prior(belief),
            attained=result.lower.attained,
        )
        value = exact_or_up(result.upper.gamma, exact and result.exact)
        lower: Number = result.lower.gamma
        if lower != math.inf:
            lower = Rational(lower) if exact else round_down(Fraction(lower))
        note = f"The promise may fail with probability {spell(delta)}."
        if case.words:
            note += f" The case is someone who {case.words}."
        if result.lower_ratio == math.inf:
            other = "out" if self.positive else "in"
            note += f" They see {result.output}, which is impossible if the person is {other}."
        theorems = () if self.family.complete else ("T18",)
        low = None if result.exact else lower
        return Level(value, seen, result.exact, theorems, low, notion=self, note=note)

    def _bound(self, channel: Channel) -> Number | None:
        """What T11 guarantees where the family's sup is not known exactly."""
        space = subset_lattice(channel, "membership privacy").space
        bounding = self.family.bounding(space.size)
        if bounding is None:
            return None
        result = worst_case(channel, bounding, self.positive)
        certificate = Certificate(Fraction(1), True) if result is None else result[1]
        ratio = certificate.ratio
        if not certificate.exact and 1 < ratio < math.inf:
            ratio = exact_fraction(ratio) * (1 + SEARCH_SLACK)
        worst = beliefs.worst_belief(ratio, *beliefs.sides(*self.family.beliefs, self.positive))
        return exact_or_up(worst.gamma, certificate.exact and is_exact(*self.family.parameters))

    @property
    def family_theorems(self) -> tuple[str, ...]:
        """What a level against the family rests on."""
        used = self.family.theorems
        if not self.positive:  # T7, T8 and T10 speak of positive membership only
            used = tuple({"T1": "T2"}.get(t, t) for t in used if t in ("T1", "T3", "T4", "T5"))
        bounded = isinstance(self.family, Bounded) and self.family.bounds != WHOLE_RANGE
        return (*used, "T11") if bounded else used


@dataclass(frozen=True)
class NegativeMembership(PositiveMembership):
    """(D, γ)-NMP: Pr[¬t|S] ≤ γ Pr[¬t] and Pr[t|S] ≥ Pr[t]/γ (Li13 Definition 3.8)."""

    positive: ClassVar[bool] = False
    short_names: ClassVar[tuple[str, ...]] = ("nmp",)
    label: ClassVar[str] = "belief that someone is out"


@dataclass(frozen=True, init=False)
class RecordMembership(OfPriors):
    """(D_*, γ)-PMP: the secret of row i is one value against another, given the known rows x_K
    (Zhao 2017, section III-B).

    D_* puts any mass p on (x_i, x_K) and 1 − p on (x_i', x_K), and lets the other rows follow the
    prior: no belief in a value grows by more than γ. Its level is e^ε of Bayesian differential
    privacy (T14), a limit as p goes to 0.

    Args:
        prior: a prior on records, or a list of them; then the largest of their levels counts.
    """

    unit: ClassVar[str] = "γ"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        found = BayesianDifferentialPrivacy(self.prior).measure(mechanism, space)
        return _level_of_values(self, found, *WHOLE_RANGE)


def _exp_up(epsilon: Number) -> Number:
    return epsilon if epsilon == math.inf else exact_or_up(exp_up(epsilon), False)


def _level_of_values(notion: Notion, found: Level, low: Fraction, high: Fraction) -> Level:
    """γ from the ε between two values of a row, for beliefs in [low, high] in one of them."""
    most, theorems = found.witness, found.theorems
    if most is None:
        return Level(_exp_up(found.value), None, found.exact, theorems, notion=notion)
    exact, ratio = is_exact(most.ratio), most.ratio
    if ratio != math.inf:
        ratio = max(exact_fraction(ratio), Fraction(1))
    worst = beliefs.worst_belief(ratio, low, high)

    def case_at(belief: Fraction) -> Witness:
        before, after = (
            exact_or_up(each, exact) for each in (belief, beliefs.posterior(ratio, belief))
        )
        return replace(most, prior=before, posterior=after, attained=worst.attained)

    value = _exp_up(found.value)
    lower = None if found.lower is None else round_down(exp_down(found.lower))
    if isinstance(notion, PositiveMembership):  # every other row is known: no bracket
        value, theorems = exact_or_up(worst.gamma, exact), notion.family_theorems
    elif lower is None and log_up(ratio) >= found.value:
        value = exact_or_up(worst.gamma, exact)

    def nearer(claim: Fraction) -> Witness:
        return case_at(beliefs.closer(ratio, worst.prior, claim))

    case = case_at(worst.prior)
    return Level(value, case, found.exact, theorems, lower, notion=notion, nearer=nearer)
