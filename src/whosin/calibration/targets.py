"""Targets about one belief or one ε, and the registry of all targets.

One frozen class each (see `target`): those about how often tests are right are in `rate_targets`,
and the one whose posterior depends on the prior is in `belief_profile`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from whosin import beliefs
from whosin.calibration.belief_profile import Profile
from whosin.calibration.rate_targets import Advantage, BayesRisk, Detection
from whosin.calibration.target import NumberTarget, Target, exactly
from whosin.errors import ImpossibleTarget, InvalidInput
from whosin.exact import Number, as_typed, exp_up, rational
from whosin.families import Adversary, Family, OneOf
from whosin.families.base import WHOLE
from whosin.validation import MOST_PEOPLE, whole

LARGEST_EPSILON = 700
"""Beyond it e^ε does not fit into a float, and promises nothing."""


@dataclass(frozen=True)
class Gamma(NumberTarget):
    """Pr[t|S] ≤ γ Pr[t] and Pr[¬t|S] ≥ Pr[¬t]/γ: beliefs move by a factor of γ at most."""

    gamma: object
    name: ClassVar[str] = "gamma"
    theorems: ClassVar[tuple[str, ...]] = ("T11",)
    accepted: ClassVar[str] = "above 1"

    def ratio(self, low: Fraction, high: Fraction) -> Number:
        return beliefs.ratio_for_gamma(self.number, low, high)

    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        return beliefs.worst_belief(exactly(ratio), low, high).gamma <= self.number

    def baseline(self) -> Number:
        return self.number

    def words(self) -> str:
        return f"becomes at most {as_typed(self.number, 'up')} times as sure as before"


@dataclass(frozen=True)
class Posterior(NumberTarget):
    """Pr[t|S] ≤ posterior for every prior in the family's range."""

    posterior: object
    name: ClassVar[str] = "posterior"
    theorems: ClassVar[tuple[str, ...]] = ("T11",)

    def ratio(self, low: Fraction, high: Fraction) -> Number:
        most = self.number
        if high == 1:
            raise ImpossibleTarget(
                "posterior must be above the largest prior, 1: someone may be certain already "
                f"(the nearest possible: priors up to less than {as_typed(most, 'down')}, as in "
                "a prior of 0.05..0.5)",
                nearest=high,
            )
        if most <= high:
            raise ImpossibleTarget(
                f"posterior must be above the largest prior, {float(high):g}: someone that sure "
                f"already cannot be held to {float(most):g}; got {float(most):g} "
                f"(the nearest possible: any posterior above {as_typed(high, 'up')}, "
                f"or priors up to less than {as_typed(most, 'down')})",
                nearest=high,
            )
        return beliefs.ratio_for_posterior(most, high)

    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        return beliefs.posterior(exactly(ratio), high) <= self.number

    def words(self) -> str:
        return f"becomes at most {beliefs.chosen_percent(self.number, 'up')} sure"


@dataclass(frozen=True)
class Epsilon(NumberTarget):
    """Plain ε between neighbouring worlds, in nats."""

    epsilon: object
    name: ClassVar[str] = "epsilon"
    accepted: ClassVar[str] = "above 0"

    def __post_init__(self) -> None:
        if self.number > LARGEST_EPSILON:
            raise InvalidInput("epsilon", f"at most {LARGEST_EPSILON}", self.epsilon)

    @property
    def stated_epsilon(self) -> Fraction:  # type: ignore[override]
        return self.number

    def ratio(self, low: Fraction, high: Fraction) -> Number:
        return math.exp(float(self.number))

    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        return ratio != math.inf and rational(ratio) <= exp_up(self.number)

    def one_sided_ratio(self, low: Fraction, high: Fraction) -> Number:
        accepted = "a gamma, posterior, gain or advantage: no ε holds where absence may show"
        raise InvalidInput("target", accepted, "an epsilon")

    def baseline(self) -> Number:
        return self.ratio(*WHOLE)

    def words(self) -> str:
        return f"sees answers that are ε = {as_typed(self.number, 'up')} private"


@dataclass(frozen=True)
class Rho(NumberTarget):
    """(ρ, m)-differential identifiability: one of m equally likely candidates is in, and none of
    them becomes more likely than ρ (Lee and Clifton 2012). Posterior(ρ) at prior 1/m."""

    rho: object
    m: int
    name: ClassVar[str] = "rho"
    words_taken: ClassVar[tuple[str, ...]] = ("rho", "candidates")
    spelled_as: ClassVar[dict[str, str]] = {"m": "candidates"}
    theorems: ClassVar[tuple[str, ...]] = ("T8",)

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self.m, "m", 2, MOST_PEOPLE)

    def ratio(self, low: Fraction, high: Fraction) -> Number:
        rho, prior = self.number, Fraction(1, self.m)
        if rho <= prior:
            raise ImpossibleTarget(
                f"rho must be above 1/m = {float(prior):.6g}, what the adversary believes already; "
                f"got {float(rho):g} (the nearest possible: more than {math.floor(1 / rho)} "
                f"candidates, or rho above {float(prior):.6g})",
                nearest=prior,
            )
        return beliefs.ratio_for_posterior(rho, prior)

    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        return beliefs.posterior(exactly(ratio), Fraction(1, self.m)) <= self.number

    def default_family(self) -> Family:
        return OneOf(self.m)

    def against(self, family: Family) -> Adversary:
        """It fixes the prior, 1/m, and the relation."""
        known, prior = super().against(family), Fraction(1, self.m)
        if known.relation != "replace" or not known.low <= prior <= known.high:
            raise InvalidInput("family", f"one-of={self.m} or fixed-size for rho", repr(family))
        return Adversary(prior, prior, "replace", tight=self.m == 2, theorems=("T5", "T8"))

    def words(self) -> str:
        most = beliefs.chosen_percent(self.number, "up")
        return f"becomes at most {most} sure of any of {self.m} equally likely candidates"


@dataclass(frozen=True)
class Gain(NumberTarget):
    """Posterior minus prior is at most this, at every prior in the family's range (F16)."""

    gain: object
    name: ClassVar[str] = "gain"

    def ratio(self, low: Fraction, high: Fraction) -> Number:
        return beliefs.ratio_for_gain(self.number, low, high)

    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        most = self.number
        if ratio == math.inf:
            return beliefs.ratio_for_gain(most, low, high) == math.inf
        return beliefs.gain_stays(most, rational(ratio), low, high)

    def baseline(self) -> Number:
        return self.ratio(*WHOLE)

    def words(self) -> str:
        return f"gains at most {as_typed(100 * self.number, 'up')} percentage points of certainty"


TARGETS: dict[str, type[Target]] = {
    kind.name: kind
    for kind in (Gamma, Posterior, Epsilon, Rho, Gain, Advantage, Detection, BayesRisk, Profile)
}

HIPAA = Posterior(Fraction(15, 1000))
"""The 1.5% that Lee and Clifton (2012) derive from HIPAA's safe harbour rule, as a posterior."""
