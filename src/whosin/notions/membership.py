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
    exp_float,
    is_exact,
    log_up,
    read_ranged,
    round_down,
)
from whosin.families import Family
from whosin.families.base import WHOLE_RANGE, Bounded
from whosin.mechanisms import Channel, read_channel
from whosin.notions.base import (
    SEARCH_SLACK,
    Level,
    Notion,
    OfPriors,
    Witness,
    exact_or_up,
    make_witness,
    subset_lattice,
    worst_case,
)
from whosin.notions.bayesian_privacy import BayesianDifferentialPrivacy
from whosin.notions.failure_probability import level_at_delta, list_cases
from whosin.spaces import Space

# Positive and negative membership privacy (Li13 Definitions 3.1 and 3.8).


@dataclass(frozen=True)
class PositiveMembership(Notion):
    """(D, γ)-PMP: for every prior D in the family, every entity t and every set S of outputs,
    Pr[t|S] ≤ γ Pr[t] and Pr[¬t|S] ≥ Pr[¬t]/γ. Single outputs suffice (F3).

    Args:
        family: the adversaries.
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
        result = worst_case(channel, self.family, self.positive)
        if result is None:
            bound = self._bound(channel)
            if bound is None:
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
        bound = self._bound(channel)
        if bound is None:
            return Level(value, case, True, self._theorems(), notion=self, nearer=nearer)
        return Level(
            max(bound, value), case, False, ("T11",), lower=value, notion=self, nearer=nearer
        )

    def _failing(self, mechanism: object, space: Space | None, delta: Fraction) -> Level:
        """The least γ that fails with probability at most δ (T18)."""
        cases = list_cases(mechanism, space, self.family, self.positive)
        result = level_at_delta(cases, delta, self.positive)
        case, exact = result.case, cases.is_small and is_exact(*self.family.parameters)
        belief = result.lower.prior if self.positive else 1 - result.lower.prior
        ratio: Fraction | float = result.lower_ratio
        if not self.positive:
            ratio = Fraction(0) if ratio == math.inf else 1 / ratio if ratio else math.inf
        seen = Witness(
            entity=cases.space.entities[case.entity],
            output=result.output,
            prior=exact_or_up(belief, exact),
            posterior=exact_or_up(beliefs.posterior(ratio, belief), exact),
            ratio=exact_or_up(ratio, exact),
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
        if result.exact:
            return Level(value, seen, True, theorems, notion=self, note=note)
        return Level(value, seen, False, theorems, lower, notion=self, note=note)

    def _bound(self, channel: Channel) -> Number | None:
        """What T11 guarantees where the family's sup is not known exactly."""
        if self.family.tight:
            return None
        array = channel.searchable
        upper = self.family.upper(
            array, subset_lattice(channel, "membership privacy"), self.positive
        )
        if upper is None:
            return None
        ratio, low, high = upper
        low, high = beliefs.sides(low, high, self.positive)
        exact = array.dtype == object
        if ratio != float("inf"):
            ratio = exact_fraction(ratio) * (1 if exact or ratio == 1 else 1 + SEARCH_SLACK)
        exact = exact and is_exact(*self.family.parameters)
        return exact_or_up(beliefs.worst_belief(ratio, low, high).gamma, exact)

    def _theorems(self) -> tuple[str, ...]:
        used = self.family.theorems
        if not self.positive:  # T7, T8 and T10 speak of positive membership only
            used = tuple({"T1": "T2"}.get(t, t) for t in used if t in ("T1", "T3", "T4", "T5"))
        bounded = isinstance(self.family, Bounded) and self.family.bounds != WHOLE_RANGE
        return (*used, "T11") if bounded else used


@dataclass(frozen=True)
class NegativeMembership(PositiveMembership):
    """(D, γ)-NMP: Pr[¬t|S] ≤ γ Pr[¬t] and Pr[t|S] ≥ Pr[t]/γ."""

    positive: ClassVar[bool] = False
    short_names: ClassVar[tuple[str, ...]] = ("nmp",)
    label: ClassVar[str] = "belief that someone is out"


# Positive membership privacy on records, against D_* (Zhao 2017, section III-B).


@dataclass(frozen=True, init=False)
class RecordMembership(OfPriors):
    """(D_*, γ)-PMP: the secret of row i is one value against another, given the known rows x_K.

    D_* puts any mass p on (x_i, x_K) and 1 − p on (x_i', x_K), and lets the other rows follow the
    prior: no belief in a value grows by more than γ. Its level is e^ε of Bayesian differential
    privacy (T14), a limit as p goes to 0.

    Args:
        prior: a prior on records, or a list of them; then the largest of their levels counts.
    """

    unit: ClassVar[str] = "γ"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        result = BayesianDifferentialPrivacy(self.prior).measure(mechanism, space)
        most = result.witness
        if most is None:
            return Level(exp_float(result.value), None, result.exact, result.theorems, notion=self)
        exact = is_exact(most.ratio)
        ratio = (
            most.ratio if most.ratio == math.inf else max(exact_fraction(most.ratio), Fraction(1))
        )
        worst = beliefs.worst_belief(ratio, Fraction(0), Fraction(1))

        def case_at(belief: Fraction) -> Witness:
            after = beliefs.posterior(ratio, belief)
            return replace(
                most,
                prior=exact_or_up(belief, exact),
                posterior=exact_or_up(after, exact),
                attained=worst.attained,
            )

        value: Number = exp_float(result.value)
        lower = None if result.lower is None else exp_float(result.lower)
        if lower is None and log_up(ratio) >= result.value:
            value = exact_or_up(worst.gamma, exact)
        return Level(
            value,
            case_at(worst.prior),
            result.exact,
            result.theorems,
            lower,
            notion=self,
            nearer=lambda claim: case_at(beliefs.closer(ratio, worst.prior, claim)),
        )
