"""What a target is: how sure an adversary may become; targets about one belief, one ε or a profile.

A target answers one question: given that prior beliefs lie in [low, high], how large may the
likelihood ratio r = Pr[S|t]/Pr[S|¬t] be? Answers are exact where they can be; the caller rounds
down.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

from whosin import beliefs
from whosin.errors import (
    MAX_POPULATION,
    ImpossibleTarget,
    InvalidInput,
    invalid_value,
    read_whole,
    shorten_value,
    spell,
)
from whosin.exact import (
    Number,
    ball,
    ball_end,
    certificate_precision,
    chosen_percent,
    exact_fraction,
    exp_up,
    format_percent,
    format_typed,
    probability,
    read_ranged,
)
from whosin.families import Adversary, Family, Independent, OneOf
from whosin.families.base import WHOLE_RANGE


class Target(ABC):
    """How sure an adversary may become."""

    name: ClassVar[str]
    words_taken: ClassVar[tuple[str, ...]]
    """Its words in files, options and requests (see `scenario_model`), one for each attribute; the
    first one chooses it."""
    spelled_as: ClassVar[Mapping[str, str]] = {}
    """The word of an attribute, where it is not the attribute's name."""
    theorems: ClassVar[tuple[str, ...]] = ()
    stated_epsilon: Fraction | None = None
    """The ε between neighbours, where the target is one and no belief: with a δ it is (ε, δ)-DP."""
    measured_as: ClassVar[str] = "failure probability"
    """What of it is certified where noise is searched for, in words."""
    averages: ClassVar[bool] = False
    """Whether it bounds rates, averages over all outputs that do not fail with a probability: then
    it is a `RateTarget`, and a δ is the one of (ε, δ)-DP, counted in."""

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
            raise invalid_value("family", "a family of priors", repr(family))
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
        """The number of the target, as an exact rational."""
        name = fields(self)[0].name  # type: ignore[arg-type]
        return read_ranged(getattr(self, name), name, self.accepted)


def exact_ratio(ratio: Number) -> Fraction | float:
    """A ratio as a rational, or infinite."""
    return math.inf if ratio == math.inf else exact_fraction(ratio)


# A target whose largest posterior depends on the prior: an acceptable q(p) for each prior p.
#
# The profile is given at some priors and is linear between them (Kazan and Reiter 2024); it says
# nothing about beliefs before the first and beyond the last. It allows the likelihood ratio
#
#     min over p of  q(p) (1 − p) / (p (1 − q(p))).
#
# Where q = α + βp, the derivative of its logarithm vanishes at the roots of
#
#     (β² − β) p² + 2αβ p + α² − α = 0.
#
# At p = 0 with q(0) = 0 the ratio tends to the slope β, at p = 1 with q(1) = 1 to 1/β.

ACCEPTED_PROFILES = 'priors with their largest posteriors, such as "0.1:0.3, 0.5:0.6"'
MAX_PROFILE_POINTS = 1000
MAX_DESCRIBED_POINTS = 8
"""Priors that are told in words; a profile may have more."""
Point = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Profile(Target):
    """The posterior of a prior p is at most q(p), given at some p and linear between them.

    Args:
        profile: {"0.1": "0.3", "0.5": "0.6"}: who was 10% sure becomes at most 30% sure, and so on;
            also pairs, or the text 0.1:0.3,0.5:0.6.
    """

    profile: object
    name: ClassVar[str] = "profile"
    theorems: ClassVar[tuple[str, ...]] = ("T11",)

    def __post_init__(self) -> None:
        points = sorted(_read_points(self.profile))
        _check_points(points)
        spelled = tuple((_spell_number(prior), _spell_number(most)) for prior, most in points)
        object.__setattr__(self, "profile", spelled)

    @property
    def points(self) -> list[Point]:
        """The priors, in order, with their largest posteriors."""
        return [(Fraction(prior), Fraction(most)) for prior, most in self.profile]  # type: ignore[attr-defined]

    def at(self, prior: Fraction) -> Fraction:
        """q(p), for a prior between the first and the last."""
        for piece in self._pieces(prior, prior):
            return piece.at(prior)
        raise invalid_value(
            "prior", f"between {self.points[0][0]} and {self.points[-1][0]}, as the profile", prior
        )

    def ratio(self, low: Fraction, high: Fraction) -> Number:
        pieces = self._within(low, high)
        result = min(piece.least() for piece in pieces)
        if result <= 1:
            ends = (end for piece in pieces for end in (piece.low, piece.high) if 0 < end < 1)
            touching = next((end for end in ends if self.at(end) <= end), Fraction(1, 2))
            kept = f"profile does not let a prior of {spell(touching)} rise"
            message = f"{kept}, and whoever sees an answer learns something"
            hint = f"use a posterior above {spell(touching)} there"
            raise ImpossibleTarget(message, touching, field="profile", value=touching, hint=hint)
        return result

    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        r = exact_ratio(ratio)
        return all(piece.allows(r) for piece in self._within(low, high))

    def against(self, family: Family) -> Adversary:
        """It speaks of the beliefs between its first and its last."""
        known = super().against(family)
        first, last = self.points[0][0], self.points[-1][0]
        low, high = max(known.low, first), min(known.high, last)
        if low > high:
            about = f"profile is about priors from {spell(first)} to {spell(last)}"
            theirs = f"the adversary's are from {spell(known.low)} to {spell(known.high)}"
            raise InvalidInput(f"{about}, and {theirs}", field="profile", value=(first, last))
        return replace(known, low=low, high=high)

    def baseline(self) -> Number | None:
        try:
            return self.ratio(self.points[0][0], self.points[-1][0])
        except ImpossibleTarget:
            return None

    def words(self) -> str:
        told = [
            f"{chosen_percent(most, 'up')} from {chosen_percent(prior, 'nearest')}"
            for prior, most in self.points
        ]
        told[0] = told[0].replace(" from", " sure from", 1)
        if len(told) == 1:
            return f"becomes at most {told[0]}"
        if len(told) > MAX_DESCRIBED_POINTS:
            told = [*told[: MAX_DESCRIBED_POINTS - 1], "…", told[-1]]
        listed = f"{', '.join(told[:-1])} and {told[-1]}"
        return f"becomes at most {listed}, and in proportion between"

    def _within(self, low: Fraction, high: Fraction) -> list[Piece]:
        pieces = list(self._pieces(low, high))
        if not pieces:
            ends = self.points[0][0], self.points[-1][0]
            first, last, least, most = map(format_percent, (*ends, low, high))
            about = f"profile is about priors from {first} to {last}"
            message = f"{about}, and says nothing of {least} to {most}"
            raise InvalidInput(message, field="profile", value=ends)
        return pieces

    def _pieces(self, low: Fraction, high: Fraction) -> Iterator[Piece]:
        """The straight pieces of q that meet [low, high], cut to it."""
        points = self.points
        for (a, q_a), (b, q_b) in pairwise([points[0], *points] if len(points) == 1 else points):
            slope = (q_b - q_a) / (b - a) if b > a else Fraction(0)
            start, end = max(a, low), min(b, high)
            if start <= end:
                yield Piece(start, end, q_a - slope * a, slope)


@dataclass(frozen=True)
class Piece:
    """q = α + βp on [low, high]."""

    low: Fraction
    high: Fraction
    constant: Fraction
    slope: Fraction

    def at(self, prior: Fraction) -> Fraction:
        """Return the largest acceptable posterior q(p) at a prior p."""
        return self.constant + self.slope * prior

    def least(self) -> Fraction | float:
        """The largest ratio that keeps q on the piece, or a rational just below it."""
        ends = [self._odds_ratio(self.low), self._odds_ratio(self.high)]
        return min([*ends, *self._stationary()])

    def _odds_ratio(self, prior: Fraction) -> Fraction | float:
        most = self.at(prior)
        if prior == 0 and most == 0:
            return self.slope if self.high > 0 else math.inf
        if prior == 1:
            return 1 / self.slope if self.slope and self.low < 1 else math.inf
        if prior == 0 or most == 1:
            return math.inf
        return most * (1 - prior) / (prior * (1 - most))

    def _stationary(self) -> Iterator[Fraction]:
        """The ratio at the roots that are inside, from below."""
        alpha, beta = self.constant, self.slope
        square, linear, rest = beta**2 - beta, alpha * beta, alpha**2 - alpha
        inside = linear**2 - square * rest
        if square == 0:
            roots = [] if linear == 0 else [(-rest / (2 * linear), 0)]
        else:
            roots = [(-linear / square, sign) for sign in (1, -1)] if inside >= 0 else []
        with certificate_precision():
            for centre, sign in roots:
                prior = ball(centre)
                if sign:
                    prior += sign * ball(inside).sqrt() / ball(square)
                if not (prior > ball(self.low) and prior < ball(self.high)):
                    continue
                most = ball(alpha) + ball(beta) * prior
                if most > 0 and most < 1:
                    odds = most * (1 - prior) / (prior * (1 - most))
                    yield ball_end(odds.lower())

    def allows(self, ratio: Fraction | float) -> bool:
        """Whether rp/(1 + (r−1)p) ≤ q(p) on the whole piece, in exact numbers: a parabola that is
        not negative between its ends, nor at its lowest point."""
        if ratio == math.inf:
            return all(p == 0 or self.at(p) == 1 for p in (self.low, self.high))
        r = Fraction(ratio)
        square = self.slope * (r - 1)
        linear = self.constant * (r - 1) + self.slope - r
        beliefs = [self.low, self.high]
        if square > 0:
            beliefs.append(min(max(-linear / (2 * square), self.low), self.high))
        return all((square * p + linear) * p + self.constant >= 0 for p in beliefs)


def _read_points(profile: object) -> Iterator[Point]:
    """The points as numbers."""
    if isinstance(profile, str):
        pairs: list[Sequence[object]] = [part.split(":") for part in profile.split(",")]
    elif isinstance(profile, Mapping):
        pairs = list(profile.items())
    elif isinstance(profile, list | tuple):
        pairs = list(profile)
    else:
        raise invalid_value("profile", ACCEPTED_PROFILES, shorten_value(profile))
    if not 0 < len(pairs) <= MAX_PROFILE_POINTS:
        message = f"profile has {spell(len(pairs))} priors"
        hint = f"give 1 to {spell(MAX_PROFILE_POINTS)}"
        raise InvalidInput(message, field="profile", value=len(pairs), hint=hint)
    for pair in pairs:
        two = isinstance(pair, list | tuple) and len(pair) == 2
        if not two or any(isinstance(each, bool) for each in pair):  # TOML's true is no number
            raise invalid_value("profile", ACCEPTED_PROFILES, shorten_value(profile))
        yield probability(pair[0], "profile"), probability(pair[1], "profile")


def _check_points(points: list[Point]) -> None:
    for prior, most in points:
        if most < prior:
            message = f"profile has a posterior of {spell(most)} below its prior, {spell(prior)}"
            raise InvalidInput(message, field="profile", value=most)
    for (before, lower), (prior, most) in pairwise(points):
        if before == prior:
            raise InvalidInput(
                f"profile has the prior {spell(prior)} twice", field="profile", value=prior
            )
        if most < lower:
            here = f"the posterior of {spell(prior)} is {spell(most)}"
            message = f"profile falls: {here}, and that of a smaller prior {spell(lower)}"
            hint = "posteriors rise with priors"
            raise InvalidInput(message, field="profile", value=most, hint=hint)


def _spell_number(number: Fraction) -> str:
    """An exact number, as a decimal where that is short."""
    decimal = spell(float(number))
    return decimal if Fraction(decimal) == number else str(number)


# Targets about one belief or one ε, and the registry of all targets.
#
# One frozen class each: those about how often tests are right are in `rate_targets`.

MAX_TARGET_EPSILON = 700
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
        return beliefs.worst_belief(exact_ratio(ratio), low, high).gamma <= self.number

    def baseline(self) -> Number:
        return self.number

    def words(self) -> str:
        return f"becomes at most {format_typed(self.number, 'up')} times as sure as before"


@dataclass(frozen=True)
class Posterior(NumberTarget):
    """Pr[t|S] ≤ posterior for every prior in the family's range."""

    posterior: object
    name: ClassVar[str] = "posterior"
    theorems: ClassVar[tuple[str, ...]] = ("T11",)

    def ratio(self, low: Fraction, high: Fraction) -> Number:
        most = self.number
        if high == 1:
            message = f"a posterior of {spell(most)} cannot be kept: someone may be certain already"
            hint = f"give priors below {format_typed(most, 'down')}, as in a prior of 0.05..0.5"
            raise ImpossibleTarget(message, nearest=high, field="posterior", value=most, hint=hint)
        if most <= high:
            message = (
                f"a posterior of {spell(most)} cannot be kept: someone may be {spell(high)} "
                "sure already"
            )
            hint = (
                f"use a posterior above {format_typed(high, 'up')}, or priors below "
                f"{format_typed(most, 'down')}"
            )
            raise ImpossibleTarget(message, nearest=high, field="posterior", value=most, hint=hint)
        return beliefs.ratio_for_posterior(most, high)

    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        return beliefs.posterior(exact_ratio(ratio), high) <= self.number

    def words(self) -> str:
        return f"becomes at most {chosen_percent(self.number, 'up')} sure"


@dataclass(frozen=True)
class Epsilon(NumberTarget):
    """Plain ε between neighbouring worlds, in nats."""

    epsilon: object
    name: ClassVar[str] = "epsilon"
    accepted: ClassVar[str] = "above 0"

    def __post_init__(self) -> None:
        if self.number > MAX_TARGET_EPSILON:
            raise invalid_value("epsilon", f"at most {MAX_TARGET_EPSILON}", self.epsilon)

    @property
    def stated_epsilon(self) -> Fraction:  # type: ignore[override]
        return self.number

    def ratio(self, low: Fraction, high: Fraction) -> Number:
        return math.exp(float(self.number))

    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        return ratio != math.inf and exact_fraction(ratio) <= exp_up(self.number)

    def one_sided_ratio(self, low: Fraction, high: Fraction) -> Number:
        message = "no ε holds where absence may show"
        raise InvalidInput(
            message, field="target", value=self, hint="use a gamma, posterior, gain or advantage"
        )

    def baseline(self) -> Number:
        return self.ratio(*WHOLE_RANGE)

    def words(self) -> str:
        return f"sees answers that are ε = {format_typed(self.number, 'up')} private"


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
        read_whole(self.m, "m", 2, MAX_POPULATION)

    def ratio(self, low: Fraction, high: Fraction) -> Number:
        rho, prior = self.number, Fraction(1, self.m)
        if rho <= prior:
            message = (
                f"a rho of {spell(rho)} cannot be kept: the adversary believes 1/m = "
                f"{spell(prior)} already"
            )
            hint = f"use more than {math.floor(1 / rho)} candidates, or a rho above {spell(prior)}"
            raise ImpossibleTarget(message, nearest=prior, field="rho", value=rho, hint=hint)
        return beliefs.ratio_for_posterior(rho, prior)

    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        return beliefs.posterior(exact_ratio(ratio), Fraction(1, self.m)) <= self.number

    def default_family(self) -> Family:
        return OneOf(self.m)

    def against(self, family: Family) -> Adversary:
        """It fixes the prior, 1/m, and the relation."""
        known, prior = super().against(family), Fraction(1, self.m)
        if known.relation != "replace" or not known.low <= prior <= known.high:
            message = f"a rho among {self.m} is not about {shorten_value(family)}"
            raise InvalidInput(
                message, field="family", value=family, hint=f"use one-of={self.m} or fixed-size"
            )
        if family.about_records:  # m-ary randomised response attains it (F18)
            return Adversary(prior, prior, "replace", theorems=known.theorems)
        return Adversary(prior, prior, "replace", tight=self.m == 2, theorems=("T5", "T8"))

    def words(self) -> str:
        most = chosen_percent(self.number, "up")
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
        return beliefs.gain_stays(most, exact_fraction(ratio), low, high)

    def baseline(self) -> Number:
        return self.ratio(*WHOLE_RANGE)

    def words(self) -> str:
        return (
            f"gains at most {format_typed(100 * self.number, 'up')} percentage points of certainty"
        )


HIPAA_TARGET = Posterior(Fraction(15, 1000))
"""The 1.5% that Lee and Clifton (2012) derive from HIPAA's safe harbour rule, as a posterior."""
