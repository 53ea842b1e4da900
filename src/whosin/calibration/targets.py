"""Targets: how sure an adversary may become, one frozen class each.

A target answers one question: given that prior beliefs lie in [low, high], how large may the
likelihood ratio r = Pr[S|t]/Pr[S|¬t] be? Answers are exact where they can be; the caller rounds
down.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar

from whosin import beliefs
from whosin.errors import ImpossibleTarget, InvalidInput
from whosin.exact import Number, exp_up, ranged, rational
from whosin.families import Adversary, Family, Independent, OneOf
from whosin.families.base import WHOLE
from whosin.validation import MOST_PEOPLE, whole

LARGEST_EPSILON = 700
"""Beyond it e^ε does not fit into a float, and promises nothing."""


class Target(ABC):
    """How sure an adversary may become."""

    name: ClassVar[str]
    words_taken: ClassVar[tuple[str, ...]]
    """Its words in files, options and requests (see `vocabulary`), one for each attribute."""
    theorems: ClassVar[tuple[str, ...]] = ()
    stated_epsilon: Fraction | None = None
    """The ε between neighbours, where the target is one and no belief: with a δ it is (ε, δ)-DP."""
    stated_advantage: Fraction | None = None
    """The average over all outputs, where the target is one: it cannot fail with a probability."""

    def __init_subclass__(cls) -> None:
        if "name" in cls.__dict__ and "words_taken" not in cls.__dict__:
            cls.words_taken = (cls.name,)

    @abstractmethod
    def ratio(self, low: Fraction, high: Fraction) -> Number:
        """The largest likelihood ratio that meets the target at every prior in [low, high].

        Raises:
            ImpossibleTarget: no ratio above 1 does; the message names the nearest possible one.
        """

    @abstractmethod
    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        """Whether a ratio meets the target, checked from the definition, not from `ratio`."""

    def one_sided_ratio(self, low: Fraction, high: Fraction) -> Number:
        """The largest Pr[S|t]/Pr[S|¬t] that meets the target where its inverse may be anything: a
        mechanism such as k-Max bounds how much presence can show, and absence may show all.

        Raises:
            InvalidInput: the target speaks of both directions.
        """
        return self.ratio(low, high)

    def baseline(self) -> Number | None:
        """The ratio that plain DP needs for the same target against any prior, where one exists."""
        return None

    def default_family(self) -> Family:
        """The adversaries of a plan that names none: anyone with independent beliefs."""
        return Independent()

    def against(self, family: Family) -> Adversary:
        """The adversary of a family as the target sees it.

        Raises:
            Unsupported: no finite ε protects against the family.
            InvalidInput: the target does not fit the family.
        """
        if not isinstance(family, Family):
            raise InvalidInput("family", "a family of priors", repr(family))
        return family.adversary()

    @abstractmethod
    def words(self) -> str:
        """The promise, completing "an adversary …"."""


class NumberTarget(Target):
    """A target whose first attribute is its number, in an accepted range."""

    accepted: ClassVar[str] = "strictly between 0 and 1"

    def __post_init__(self) -> None:
        _ = self.number

    @property
    def number(self) -> Fraction:
        """The number, exactly."""
        name = fields(self)[0].name  # type: ignore[arg-type]
        return ranged(getattr(self, name), name, self.accepted)


def _exactly(ratio: Number) -> Fraction | float:
    return math.inf if ratio == math.inf else rational(ratio)


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
        return beliefs.worst_belief(_exactly(ratio), low, high).gamma <= self.number

    def baseline(self) -> Number:
        return self.number

    def words(self) -> str:
        return f"becomes at most {float(self.number):g} times as sure as before"


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
                f"(the nearest possible: priors up to less than {float(most):g}, as in "
                "a prior of 0.05..0.5)",
                nearest=high,
            )
        if most <= high:
            raise ImpossibleTarget(
                f"posterior must be above the largest prior, {float(high):g}: someone that sure "
                f"already cannot be held to {float(most):g}; got {float(most):g} "
                f"(the nearest possible: any posterior above {float(high):g}, "
                f"or priors up to less than {float(most):g})",
                nearest=high,
            )
        return beliefs.ratio_for_posterior(most, high)

    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        return beliefs.posterior(_exactly(ratio), high) <= self.number

    def words(self) -> str:
        return f"becomes at most {float(self.number):.1%} sure"


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
        return f"sees answers that are ε = {float(self.number):g} private"


@dataclass(frozen=True)
class Rho(NumberTarget):
    """(ρ, m)-differential identifiability: one of m equally likely candidates is in, and none of
    them becomes more likely than ρ (Lee and Clifton 2012). Posterior(ρ) at prior 1/m."""

    rho: object
    m: int
    name: ClassVar[str] = "rho"
    words_taken: ClassVar[tuple[str, ...]] = ("rho", "candidates")
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
        return beliefs.posterior(_exactly(ratio), Fraction(1, self.m)) <= self.number

    def default_family(self) -> Family:
        return OneOf(self.m)

    def against(self, family: Family) -> Adversary:
        """It fixes the prior, 1/m, and the relation."""
        known, prior = super().against(family), Fraction(1, self.m)
        if known.relation != "replace" or not known.low <= prior <= known.high:
            raise InvalidInput("family", f"one-of={self.m} or fixed-size for rho", repr(family))
        return Adversary(prior, prior, "replace", tight=self.m == 2, theorems=("T5", "T8"))

    def words(self) -> str:
        most = f"{float(self.number):.1%}"
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
        return f"gains at most {float(self.number) * 100:g} percentage points of certainty"


@dataclass(frozen=True)
class Advantage(NumberTarget):
    """The largest TPR − FPR of any membership attack on one person: (r−1)/(r+1) = tanh(ε/2)."""

    advantage: object
    name: ClassVar[str] = "advantage"

    @property
    def stated_advantage(self) -> Fraction:  # type: ignore[override]
        return self.number

    def ratio(self, low: Fraction, high: Fraction) -> Number:
        return (1 + self.number) / (1 - self.number)

    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        if ratio == math.inf:
            return False
        exact = rational(ratio)
        return (exact - 1) / (exact + 1) <= self.number

    def one_sided_ratio(self, low: Fraction, high: Fraction) -> Number:
        # TPR ≤ r FPR, so TPR − FPR ≤ (1 − 1/r) TPR, attained where TPR = 1.
        return 1 / (1 - self.number)

    def baseline(self) -> Number:
        return self.ratio(*WHOLE)

    def words(self) -> str:
        most = float(self.number)
        return f"has an attack advantage (true minus false positive rate) of at most {most:g}"


TARGETS: dict[str, type[Target]] = {
    kind.name: kind for kind in (Gamma, Posterior, Epsilon, Rho, Gain, Advantage)
}

HIPAA = Posterior(Fraction(15, 1000))
"""The 1.5% that Lee and Clifton (2012) read out of HIPAA's safe harbour rule, as a posterior."""
