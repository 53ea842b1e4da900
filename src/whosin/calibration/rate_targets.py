"""Targets about how often tests are right: an advantage, a detection rate, a Bayes risk.

A test says "in" or "out" after seeing the answers; its false-positive rate (FPR) is how often it
says "in" of someone who is out, its true-positive rate (TPR) how often of someone who is in. These
rates are averages over all outputs, so that a promise about them does not fail with a probability:
a δ is the δ of (ε, δ)-differential privacy, and is counted in.

Under (ε, δ)-DP in both directions no test lies above TPR ≤ e^ε FPR + δ and
1 − FPR ≤ e^ε (1 − TPR) + δ, and both are attained (`best_tests`). In general, with δ(ε) the
hockey-stick divergence of "with the person" from "without" at any real ε,

    TPR ≤ e^ε FPR + δ(ε),

so that each ε and δ(ε) gives a bound on every rate (`rate`, and `rate_up` in exact numbers).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np

from whosin.calibration.targets import NumberTarget, Target
from whosin.errors import ImpossibleTarget, InvalidInput, invalid_value, spell
from whosin.exact import (
    ONE_HALF,
    Array,
    Number,
    Rational,
    chosen_percent,
    exact_fraction,
    exp_up,
    format_figures,
    format_percent,
    format_typed,
    log_down,
    probability,
    read_ranged,
)
from whosin.families import Adversary, Family

MIN_DELTA_ROOM = Fraction(1, 10**9)
"""The share of a limit that a δ has to leave: below it there is no ε that anyone could use, and
floats such as 0.09 would decide on which side of the limit they are."""
TRIED_EPSILONS = 257
"""How many ε are tried at a time where the best one has to be looked for."""


def best_tests(ratio: Number, delta: Fraction = Fraction(0)) -> list[tuple[Fraction, Fraction]]:
    """The corners (FPR, TPR) of what tests can reach where r ≤ ratio except with probability δ, in
    both directions."""
    if ratio == math.inf:
        return [(Fraction(0), Fraction(1)), (Fraction(1), Fraction(1))]
    r, sure = exact_fraction(ratio), 1 - delta
    corner = sure / (1 + r)
    none, all_ = Fraction(0), Fraction(1)
    return [(none, none), (none, delta), (corner, 1 - corner), (sure, all_), (all_, all_)]


class Tests(Protocol):
    """What the best tests reach: a trade-off curve (see `curves`)."""

    @property
    def advantage(self) -> Number: ...

    def tpr(self, fpr: object) -> Number: ...

    def bayes_risk(self, prior: object) -> Number: ...


class CornerTests:
    """Tests between the corners (FPR, TPR) of straight pieces, in exact numbers."""

    def __init__(self, corners: list[tuple[Fraction, Fraction]]) -> None:
        self.corners = corners

    @property
    def advantage(self) -> Rational:
        """The largest TPR − FPR."""
        return Rational(max(tpr - fpr for fpr, tpr in self.corners))

    def tpr(self, fpr: object) -> Rational:
        """The largest TPR of tests with at most this FPR."""
        alpha = probability(fpr, "fpr")
        result = Fraction(0)
        for (x0, y0), (x1, y1) in pairwise(self.corners):
            if x0 <= alpha:
                share = min(Fraction(1), (alpha - x0) / (x1 - x0)) if x1 > x0 else Fraction(1)
                result = max(result, y0 + (y1 - y0) * share)
        return Rational(result)

    def bayes_risk(self, prior: object) -> Rational:
        """The least probability of error of someone with this prior who says "in" or "out"."""
        belief = probability(prior, "prior")
        never = (Fraction(0), Fraction(0))  # what always says "out"
        risks = (belief * (1 - tpr) + (1 - belief) * fpr for fpr, tpr in (never, *self.corners))
        return Rational(min(risks))


class RateTarget(Target):
    """A target that bounds a rate of every test, at some limit."""

    averages: ClassVar[bool] = True
    names_people: ClassVar[bool] = True
    """Whether it speaks of those who are in and of those who are not."""

    def against(self, family: Family) -> Adversary:
        if self.names_people and family.about_records:
            message = f"{self.words_taken[0]} is about who is in, and not about what rows say"
            hint = "with secret = value use a posterior, gamma, gain, rho, profile or advantage"
            raise InvalidInput(message, field=self.words_taken[0], value=self, hint=hint)
        return super().against(family)

    def verdict(self, rate: Fraction, *, enough: bool) -> str:
        """A rate that the best tests reach, beside the one that is asked for, in a sentence."""
        limit = format_typed(self.limit, "down")
        if enough:
            most = format_figures(rate, 6, "up")
            return f"the {self.measured_as} is at most {most}; up to {limit} would do"
        return (
            f"the {self.measured_as} may be {format_figures(rate, 6, 'up')}; only {limit} would do"
        )

    @property
    @abstractmethod
    def limit(self) -> Fraction:
        """What `rate` may reach."""

    @property
    def guessing(self) -> Fraction:
        """What `rate` is where nothing is learned."""
        return Fraction(0)

    @property
    def search_range(self) -> tuple[float, float]:
        """The ε among which the best bound on the rate is."""
        return 0.0, 0.0

    @property
    @abstractmethod
    def coefficients(self) -> tuple[Fraction, Fraction, Fraction]:
        """(a, b, c): δ(ε) ≤ δ bounds the rate by a e^ε + b δ + c, at any ε."""

    def rate(self, epsilons: Array, deltas: Array) -> Array:
        """That bound, for each ε by itself."""
        a, b, c = map(float, self.coefficients)
        return np.asarray(a * np.exp(epsilons) + b * deltas + c)

    def rate_up(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """The same in exact numbers, or just above."""
        a, b, c = self.coefficients
        return a * exp_up(epsilon) + b * delta + c

    @abstractmethod
    def ratio_with(self, delta: Fraction) -> Fraction:
        """The largest e^ε for which (ε, δ)-DP keeps the limit.

        Raises:
            ImpossibleTarget: none above 1 does.
            InvalidInput: none does at this δ.
        """

    def need_room(self) -> None:
        """Refuse a limit that is guessing itself, where any noise lets tests gain something."""

    @abstractmethod
    def reached_by(self, tests: Tests) -> Fraction:
        """The rate that the best tests reach, or a number above it where the curve is a bound."""

    def met_with(self, ratio: Number, delta: Fraction) -> bool:
        """Whether (ln ratio, δ)-DP keeps the target, by what its best tests reach."""
        return self.reached_by(CornerTests(best_tests(ratio, delta))) <= self.limit

    def ratio(self, low: Fraction, high: Fraction) -> Number:
        return self.ratio_with(Fraction(0))

    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        return self.met_with(ratio, Fraction(0))

    def baseline(self) -> Number:
        return self.ratio_with(Fraction(0))

    def reached(self, profile: Callable[[Array], Array]) -> tuple[float, float]:
        """(rate, ε): a bound on the rate from a profile δ(ε), and the ε that gives it.

        The rate is convex in e^ε, so that looking closer around the best of many finds the least.
        """
        low, high = self.search_range
        for _ in range(3):
            epsilons = np.linspace(low, high, TRIED_EPSILONS if high > low else 1)
            rates = self.rate(epsilons, np.asarray(profile(epsilons), dtype=float))
            best = int(np.argmin(rates))
            low, high = epsilons[max(best - 1, 0)], epsilons[min(best + 1, len(epsilons) - 1)]
        return float(rates[best]), float(epsilons[best])


@dataclass(frozen=True)
class Advantage(NumberTarget, RateTarget):
    """The largest TPR − FPR of any membership attack on one person: (r−1)/(r+1) = tanh(ε/2)."""

    advantage: object
    name: ClassVar[str] = "advantage"
    measured_as: ClassVar[str] = "attack advantage"
    names_people: ClassVar[bool] = False

    @property
    def limit(self) -> Fraction:
        return self.number

    @property
    def coefficients(self) -> tuple[Fraction, Fraction, Fraction]:
        return Fraction(0), Fraction(1), Fraction(0)

    def ratio_with(self, delta: Fraction) -> Fraction:
        _leaves_room(delta, self.number, "the advantage")
        return (1 + self.number - 2 * delta) / (1 - self.number)

    def reached_by(self, tests: Tests) -> Fraction:
        return exact_fraction(tests.advantage)

    def one_sided_ratio(self, low: Fraction, high: Fraction) -> Number:
        # TPR ≤ r FPR, so TPR − FPR ≤ (1 − 1/r) TPR, attained where TPR = 1.
        return 1 / (1 - self.number)

    def words(self) -> str:
        most = format_typed(self.number, "up")
        return f"has an attack advantage (true minus false positive rate) of at most {most}"


@dataclass(frozen=True)
class Detection(RateTarget):
    """No test that accuses at most a share `fpr` of those who are out recognises more than a share
    `tpr` of those who are in: TPR ≤ min(e^ε FPR, 1 − e^−ε (1 − FPR))."""

    tpr: object
    fpr: object
    name: ClassVar[str] = "detection"
    measured_as: ClassVar[str] = "true positive rate"
    words_taken: ClassVar[tuple[str, ...]] = ("tpr", "fpr")

    def __post_init__(self) -> None:
        tpr, fpr = self.rates
        if tpr <= fpr:
            raise invalid_value(
                "tpr", f"above fpr, {spell(fpr)}, which guessing alone reaches", float(tpr)
            )

    @property
    def rates(self) -> tuple[Fraction, Fraction]:
        """The rates (TPR, FPR) as exact rationals."""
        return (
            read_ranged(self.tpr, "tpr", "strictly between 0 and 1"),
            read_ranged(self.fpr, "fpr", "strictly between 0 and 1"),
        )

    @property
    def limit(self) -> Fraction:
        return self.rates[0]

    @property
    def guessing(self) -> Fraction:
        return self.rates[1]

    @property
    def search_range(self) -> tuple[float, float]:
        # Elsewhere e^ε α alone, or 1 − e^ε (1 − α), is above the limit.
        tpr, fpr = self.rates
        return log_down((1 - tpr) / (1 - fpr)), log_down(tpr / fpr)

    @property
    def coefficients(self) -> tuple[Fraction, Fraction, Fraction]:
        return self.rates[1], Fraction(1), Fraction(0)

    def ratio_with(self, delta: Fraction) -> Fraction:
        tpr, fpr = self.rates
        _leaves_room(delta, tpr - fpr, "tpr − fpr")
        return max((tpr - delta) / fpr, (1 - fpr - delta) / (1 - tpr))

    def reached_by(self, tests: Tests) -> Fraction:
        return exact_fraction(tests.tpr(self.rates[1]))

    def one_sided_ratio(self, low: Fraction, high: Fraction) -> Number:
        tpr, fpr = self.rates
        return tpr / fpr

    def words(self) -> str:
        # Tests that accuse less recognise less: a smaller FPR promises less.
        tpr, fpr = chosen_percent(self.rates[0], "up"), chosen_percent(self.rates[1], "down")
        return (
            f"recognises at most {tpr} of those who are in, with any test that falsely accuses at "
            f"most {fpr} of those who are not"
        )


@dataclass(frozen=True)
class BayesRisk(RateTarget):
    """Someone with this prior who has to say "in" or "out" is wrong with probability at least
    `risk`: prior · (1 − TPR) + (1 − prior) · FPR ≥ risk for every test, on average over whether the
    person is in and over all outputs. Under ε it is at least min(prior, 1 − prior, 1/(1 + e^ε))."""

    prior: object
    risk: object
    name: ClassVar[str] = "bayes-risk"
    measured_as: ClassVar[str] = "share of the risk of guessing that is lost"
    words_taken: ClassVar[tuple[str, ...]] = ("risk", "risk-prior")
    spelled_as: ClassVar[dict[str, str]] = {"prior": "risk-prior"}

    def __post_init__(self) -> None:
        _, risk, guessing = self.numbers
        if risk > guessing:
            most = format_typed(guessing, "down")
            accepted = f"at most {most}, the risk of someone who guesses from the prior alone"
            raise invalid_value("risk", accepted, float(risk))

    @property
    def numbers(self) -> tuple[Fraction, Fraction, Fraction]:
        """(prior, risk, the risk of guessing), exactly."""
        prior = read_ranged(self.prior, "prior", "strictly between 0 and 1")
        return (
            prior,
            read_ranged(self.risk, "risk", "strictly between 0 and 1"),
            min(prior, 1 - prior),
        )

    @property
    def limit(self) -> Fraction:
        """How much less than guessing the risk may be, as a share of it: δ at odds of 1/prior."""
        _, risk, guessing = self.numbers
        return 1 - risk / guessing

    @property
    def search_range(self) -> tuple[float, float]:
        prior = self.numbers[0]
        # δ falls, so that an ε from below is on the safe side.
        at = log_down((1 - prior) / prior) if prior != ONE_HALF else 0.0
        return at, at

    @property
    def coefficients(self) -> tuple[Fraction, Fraction, Fraction]:
        prior, _, guessing = self.numbers
        return Fraction(0), prior / guessing, 1 - prior / guessing

    def ratio_with(self, delta: Fraction) -> Fraction:
        _, risk, guessing = self.numbers
        if risk == ONE_HALF:
            message = (
                "a risk of 0.5 cannot be kept: only someone who learns nothing is wrong half of "
                "the time"
            )
            hint = "use a risk below 0.5"
            raise ImpossibleTarget(message, nearest=ONE_HALF, field="risk", value=risk, hint=hint)
        if delta:
            _leaves_room(delta, self.limit, f"1 − risk/{spell(guessing)}")
        _leaves_room(delta, 1 - 2 * risk, "1 − 2 risk")
        return (1 - delta) / risk - 1

    def need_room(self) -> None:
        _, risk, guessing = self.numbers
        if risk == guessing:
            message = (
                f"a risk of {spell(guessing)}, that of guessing, cannot be kept: whoever sees a "
                "process learns something"
            )
            hint = f"use a risk below {spell(guessing)}"
            raise ImpossibleTarget(message, nearest=guessing, field="risk", value=risk, hint=hint)

    def reached_by(self, tests: Tests) -> Fraction:
        prior, _, guessing = self.numbers
        return max(1 - exact_fraction(tests.bayes_risk(prior)) / guessing, Fraction(0))

    def verdict(self, rate: Fraction, *, enough: bool) -> str:
        _, risk, guessing = self.numbers
        errs = format_percent(max(guessing * (1 - rate), Fraction(0)), "down")
        asked = chosen_percent(risk, "up")
        if enough:
            return f"whoever is looking errs at least {errs} of the time; {asked} was asked"
        return f"whoever is looking may err only {errs} of the time; {asked} was asked"

    def one_sided_ratio(self, low: Fraction, high: Fraction) -> Number:
        # TPR ≤ min(r FPR, 1): the risk is min(prior, (1 − prior)/r).
        prior, risk, _ = self.numbers
        return (1 - prior) / risk

    def words(self) -> str:
        prior, risk, _ = self.numbers
        return (
            f"errs at least {chosen_percent(risk, 'down')} of the time when saying in or out of "
            f"someone whom they were {chosen_percent(prior, 'nearest')} sure of"
        )


def _leaves_room(delta: Any, most: Fraction, what: str) -> None:
    if delta >= most * (1 - MIN_DELTA_ROOM):
        accepted = f"below {what}, {spell(most)}" if most > 0 else "left out, or 0, at this limit"
        raise invalid_value("delta", accepted, float(delta))
