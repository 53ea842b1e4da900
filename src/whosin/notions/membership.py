"""Positive and negative membership privacy (Li13 Definitions 3.1 and 3.8)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from whosin import beliefs
from whosin.errors import InvalidInput
from whosin.exact import Number, Rational, is_exact, ranged, rational, round_down
from whosin.families import Family
from whosin.families.base import WHOLE, Bounded
from whosin.mechanisms import Channel, as_channel
from whosin.notions.base import SLACK, Notion, exact_or_up, on_subsets, witness, worst_case
from whosin.notions.failing import cases_of, level_at
from whosin.notions.level import Level, Witness
from whosin.spaces import Space


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
            raise InvalidInput("family", "a family of priors", repr(self.family))

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
        failing = ranged(delta, "delta", "at least 0 and below 1")
        if failing:
            return self._failing(mechanism, space, failing)
        channel = as_channel(mechanism, space)
        result = worst_case(channel, self.family, self.positive)
        if result is None:
            bound = self._bound(channel)
            if bound is None:
                return Level(Rational(1), None, True, (), notion=self)
            return Level(bound, None, False, ("T11",), notion=self)
        worst, certificate, most = result
        belief = most.prior if self.positive else 1 - most.prior

        def case_at(belief: Fraction) -> Witness:
            return witness(
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
        cases = cases_of(mechanism, space, self.family, self.positive)
        result = level_at(cases, delta, self.positive)
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
        note = f"The promise may fail with probability {float(delta):g}."
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
        upper = self.family.upper(array, on_subsets(channel, "membership privacy"), self.positive)
        assert upper is not None
        ratio, low, high = upper
        low, high = beliefs.sides(low, high, self.positive)
        exact = array.dtype == object
        if ratio != float("inf"):
            ratio = rational(ratio) * (1 if exact or ratio == 1 else 1 + SLACK)
        exact = exact and is_exact(*self.family.parameters)
        return exact_or_up(beliefs.worst_belief(ratio, low, high).gamma, exact)

    def _theorems(self) -> tuple[str, ...]:
        used = self.family.theorems
        if not self.positive:  # T7, T8 and T10 speak of positive membership only
            used = tuple({"T1": "T2"}.get(t, t) for t in used if t in ("T1", "T3", "T4", "T5"))
        bounded = isinstance(self.family, Bounded) and self.family.bounds != WHOLE
        return (*used, "T11") if bounded else used


@dataclass(frozen=True)
class NegativeMembership(PositiveMembership):
    """(D, γ)-NMP: Pr[¬t|S] ≤ γ Pr[¬t] and Pr[t|S] ≥ Pr[t]/γ."""

    positive: ClassVar[bool] = False
    short_names: ClassVar[tuple[str, ...]] = ("nmp",)
    label: ClassVar[str] = "belief that someone is out"
