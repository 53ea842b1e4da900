"""Targets: how sure an adversary may become, one frozen class each (THEORY 2).

A target answers one question: given that prior beliefs lie in [low, high], how large may the
likelihood ratio r = Pr[S|t]/Pr[S|¬t] be? Answers are exact where they can be; the caller rounds
down.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from whosin import beliefs
from whosin.errors import ImpossibleTarget, InvalidInput
from whosin.exact import Number, exp_up, rational
from whosin.validation import MOST_PEOPLE, whole

LARGEST_EPSILON = 700
"""Beyond it e^ε is no float, and no promise."""


class Target(ABC):
    """How sure an adversary may become."""

    name: ClassVar[str]
    words_taken: ClassVar[tuple[str, ...]]
    """Its words in files, options and requests (see `vocabulary`), one for each attribute."""
    theorems: ClassVar[tuple[str, ...]] = ()

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

    @abstractmethod
    def words(self) -> str:
        """The promise, completing "an adversary …"."""


def _above(value: object, least: int, field: str, accepted: str) -> Fraction:
    number = rational(value, field)
    if number <= least:
        raise InvalidInput(field, accepted, value)
    return number


def _inside(value: object, field: str) -> Fraction:
    number = rational(value, field)
    if not 0 < number < 1:
        raise InvalidInput(field, "strictly between 0 and 1", value)
    return number


@dataclass(frozen=True)
class Gamma(Target):
    """Pr[t|S] ≤ γ Pr[t] and Pr[¬t|S] ≥ Pr[¬t]/γ: beliefs move by a factor of γ at most."""

    gamma: object
    name: ClassVar[str] = "gamma"
    theorems: ClassVar[tuple[str, ...]] = ("T11",)

    def __post_init__(self) -> None:
        _above(self.gamma, 1, "gamma", "above 1")

    def ratio(self, low: Fraction, high: Fraction) -> Number:
        return beliefs.ratio_for_gamma(rational(self.gamma), low, high)

    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        exact = ratio if ratio == math.inf else rational(ratio)
        return beliefs.worst_belief(exact, low, high).gamma <= rational(self.gamma)

    def baseline(self) -> Number:
        return rational(self.gamma)

    def words(self) -> str:
        return f"becomes at most {float(rational(self.gamma)):g} times as sure as before"


@dataclass(frozen=True)
class Posterior(Target):
    """Pr[t|S] ≤ posterior for every prior in the family's range."""

    posterior: object
    name: ClassVar[str] = "posterior"
    theorems: ClassVar[tuple[str, ...]] = ("T11",)

    def __post_init__(self) -> None:
        _inside(self.posterior, "posterior")

    def ratio(self, low: Fraction, high: Fraction) -> Number:
        most = rational(self.posterior)
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
        exact = ratio if ratio == math.inf else rational(ratio)
        return beliefs.posterior(exact, high) <= rational(self.posterior)

    def words(self) -> str:
        return f"becomes at most {float(rational(self.posterior)):.1%} sure"


@dataclass(frozen=True)
class Epsilon(Target):
    """Plain ε between neighbouring worlds, in nats."""

    epsilon: object
    name: ClassVar[str] = "epsilon"

    def __post_init__(self) -> None:
        if _above(self.epsilon, 0, "epsilon", "above 0") > LARGEST_EPSILON:
            raise InvalidInput("epsilon", f"at most {LARGEST_EPSILON}", self.epsilon)

    def ratio(self, low: Fraction, high: Fraction) -> Number:
        return math.exp(float(rational(self.epsilon)))

    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        return ratio != math.inf and rational(ratio) <= exp_up(rational(self.epsilon))

    def one_sided_ratio(self, low: Fraction, high: Fraction) -> Number:
        accepted = "a gamma, posterior, gain or advantage: no ε holds where absence may show"
        raise InvalidInput("target", accepted, "an epsilon")

    def baseline(self) -> Number:
        return math.exp(float(rational(self.epsilon)))

    def words(self) -> str:
        return f"sees answers that are ε = {float(rational(self.epsilon)):g} private"


@dataclass(frozen=True)
class Rho(Target):
    """(ρ, m)-differential identifiability: one of m equally likely candidates is in, and none of
    them becomes more likely than ρ (Lee and Clifton 2012). Posterior(ρ) at prior 1/m."""

    rho: object
    m: int
    name: ClassVar[str] = "rho"
    words_taken: ClassVar[tuple[str, ...]] = ("rho", "candidates")
    theorems: ClassVar[tuple[str, ...]] = ("T8",)

    def __post_init__(self) -> None:
        _inside(self.rho, "rho")
        whole(self.m, "m", 2, MOST_PEOPLE)

    def ratio(self, low: Fraction, high: Fraction) -> Number:
        rho, prior = rational(self.rho), Fraction(1, self.m)
        if rho <= prior:
            raise ImpossibleTarget(
                f"rho must be above 1/m = {float(prior):.6g}, what the adversary believes already; "
                f"got {float(rho):g} (the nearest possible: more than {math.floor(1 / rho)} "
                f"candidates, or rho above {float(prior):.6g})",
                nearest=prior,
            )
        return beliefs.ratio_for_posterior(rho, prior)

    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        exact = ratio if ratio == math.inf else rational(ratio)
        return beliefs.posterior(exact, Fraction(1, self.m)) <= rational(self.rho)

    def words(self) -> str:
        most = f"{float(rational(self.rho)):.1%}"
        return f"becomes at most {most} sure of any of {self.m} equally likely candidates"


@dataclass(frozen=True)
class Gain(Target):
    """Posterior minus prior is at most this, at every prior in the family's range (F16)."""

    gain: object
    name: ClassVar[str] = "gain"

    def __post_init__(self) -> None:
        _inside(self.gain, "gain")

    def ratio(self, low: Fraction, high: Fraction) -> Number:
        return beliefs.ratio_for_gain(rational(self.gain), low, high)

    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        most = rational(self.gain)
        if ratio == math.inf:
            return beliefs.ratio_for_gain(most, low, high) == math.inf
        return beliefs.gain_stays(most, rational(ratio), low, high)

    def baseline(self) -> Number:
        return self.ratio(Fraction(0), Fraction(1))

    def words(self) -> str:
        return f"gains at most {float(rational(self.gain)) * 100:g} percentage points of certainty"


@dataclass(frozen=True)
class Advantage(Target):
    """The largest TPR − FPR of any membership attack on one person: (r−1)/(r+1) = tanh(ε/2)."""

    advantage: object
    name: ClassVar[str] = "advantage"

    def __post_init__(self) -> None:
        _inside(self.advantage, "advantage")

    def ratio(self, low: Fraction, high: Fraction) -> Number:
        most = rational(self.advantage)
        return (1 + most) / (1 - most)

    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        if ratio == math.inf:
            return False
        exact = rational(ratio)
        return (exact - 1) / (exact + 1) <= rational(self.advantage)

    def one_sided_ratio(self, low: Fraction, high: Fraction) -> Number:
        # TPR ≤ r FPR, so TPR − FPR ≤ (1 − 1/r) TPR, attained where TPR = 1.
        return 1 / (1 - rational(self.advantage))

    def baseline(self) -> Number:
        return self.ratio(Fraction(0), Fraction(1))

    def words(self) -> str:
        most = float(rational(self.advantage))
        return f"has an attack advantage (true minus false positive rate) of at most {most:g}"


TARGETS: dict[str, type[Target]] = {
    kind.name: kind for kind in (Gamma, Posterior, Epsilon, Rho, Gain, Advantage)
}

HIPAA = Posterior(Fraction(15, 1000))
"""The 1.5% that Lee and Clifton (2012) read out of HIPAA's safe harbour rule, as a posterior."""
