"""One run against a trade-off curve (f-DP), such as that of Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from whosin.audit.bounds import largest_rejected, read_confidence, read_delta, read_epsilon
from whosin.audit.single_run import (
    BOTH,
    IN,
    OUT,
    RATE_ERROR_SHARE,
    Rates,
    check_rate,
    read_run,
    right_guesses,
)
from whosin.errors import InvalidInput, invalid_value
from whosin.exact import Array, read_ranged

# Trade-off curves: what f-differential privacy promises (Dong, Roth, Su 2019). A curve f says that
# a test of "in" against "out" (or of "out" against "in") with false positive rate x has a power of
# at most 1 − f(x), which is concave and grows with x. `level(power)` is the smallest x that allows
# a power, rounded down: a curve that allows a little more raises no false alarm.


ROUND_DOWN = 1 - 1e-9
"""Room for the rounding of special functions."""
BISECTION_STEPS = 60
GRID_POINTS = 201


def _halve_range(holds: Callable[[float], bool], most: float) -> float:
    """About the largest value at which it holds, from below; 0 where it holds nowhere."""
    low, high = 0.0, most
    for _ in range(BISECTION_STEPS if holds(0.0) else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


class Curve(Protocol):
    """What a claim allows."""

    def level(self, power: float) -> float:
        """The smallest false positive rate that allows this power."""


@dataclass(frozen=True)
class GaussianCurve:
    """μ-Gaussian differential privacy: N(0, 1) against N(μ, 1)."""

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", float(read_ranged(self.mu, "mu", "at least 0")))

    def level(self, power: float) -> float:
        """Return the false-positive rate of a power: Φ(Φ⁻¹(power) − μ)."""
        from scipy.special import ndtr, ndtri

        return float(ndtr(ndtri(power) - self.mu)) * ROUND_DOWN

    def epsilon(self, delta: object) -> float:
        """The ε of this curve at one δ (Balle and Wang 2018), rounded down."""
        from scipy.special import log_ndtr, ndtr

        granted = read_delta(delta)
        if self.mu == 0:
            return 0.0
        if granted == 0:
            return math.inf

        def spent(epsilon: float) -> float:
            beyond = epsilon + float(log_ndtr(-self.mu / 2 - epsilon / self.mu))
            return float(ndtr(self.mu / 2 - epsilon / self.mu)) - math.exp(beyond)

        most = self.mu**2 / 2 + self.mu * 40
        return _halve_range(lambda epsilon: spent(epsilon) > granted, most) * ROUND_DOWN


@dataclass(frozen=True)
class ApproximateCurve:
    """(ε, δ)-differential privacy."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        object.__setattr__(self, "delta", read_delta(self.delta))

    def level(self, power: float) -> float:
        """The inverse of min(1, δ + e^ε x, 1 − e^−ε (1 − δ − x))."""
        shrink = math.exp(-self.epsilon)
        least = max(0.0, (power - self.delta) * shrink)
        if shrink > 0:
            least = max(least, 1 - self.delta - (1 - power) / shrink)
        return least * ROUND_DOWN


@dataclass(frozen=True)
class FunctionCurve:
    """Any curve, as a function from a false positive rate to the least false negative rate."""

    function: Callable[[float], float]

    def __post_init__(self) -> None:
        grid = np.linspace(0.0, 1.0, GRID_POINTS)
        try:
            values = np.array([float(self.function(float(x))) for x in grid])
        except (TypeError, ValueError) as error:
            message = f"curve failed on rates in [0, 1] with {type(error).__name__}: {error}"
            raise InvalidInput(message, field="curve") from error
        shape = "curve must be a convex function from [0, 1] to [0, 1] that falls to 0 at 1"
        if not ((values >= 0) & (values <= 1)).all() or values[-1] > 1e-9:
            raise InvalidInput(shape, field="curve")
        if (np.diff(values) > 1e-9).any() or (np.diff(values, 2) < -1e-9).any():
            message = f"{shape}; this one grows, or bends the other way"
            raise InvalidInput(message, field="curve")

    def level(self, power: float) -> float:
        """By bisection: the largest rate found that does not allow the power."""
        return _halve_range(lambda x: 1 - float(self.function(x)) < power, 1.0) * ROUND_DOWN


def read_curve(curve: object) -> Curve:
    """A curve of ours, or a function from a false positive to a false negative rate."""
    if isinstance(curve, GaussianCurve | ApproximateCurve | FunctionCurve):
        return curve
    if callable(curve):
        return FunctionCurve(curve)
    accepted = "GaussianCurve(mu), ApproximateCurve(epsilon, delta) or a function of one rate"
    raise invalid_value("curve", accepted, type(curve).__name__)


# How likely a number of right guesses is, at most, under a trade-off curve (after Mahloujifar,
# Melis, Chaudhuri 2024; the proof is ours). There are m inclusion bits u, the output o depends on
# them, r canaries are guessed (which ones depends on o alone), C guesses are right and W = r − C
# wrong. Let S be the outputs where guess i is right and C ≥ j. If inclusion bit i alone is turned
# over, the same outputs have guess i wrong and C ≥ j − 1. So by f-DP, with power at most f̄ = 1 −
# f,
#
#     Pr_u[right_i, C ≥ j] ≤ f̄(Pr_{u, i turned over}[wrong_i, C ≥ j − 1]),
#
# and averaging over fair bits u and the m canaries, since f̄ is concave,
#
#     a_j = E[C; C ≥ j]/m  ≤  f̄(b_{j−1}),  b_j = E[W; C ≥ j]/m,  for every j.
#
# *The least total.* Suppose Pr[C ≥ c] ≥ τ. With p_k = Pr[C = k], the state (a_j, T_j = Pr[C ≥ j])
# follows from p_c, p_{c+1} …; p_{j−1} must be at least what lifts b_{j−1} to f̄⁻¹(a_j). Call a
# state above another if T is no less and m·a exceeds by at least j times the excess of T. The step
# with the least p_{j−1} keeps this order (its new T is [m (f̄⁻¹(a) + a) − (j − 1) T]/(r − j + 1),
# which grows along it), adding more mass than the least goes up in it, and all mass of τ at C = c
# is below every other start. So steps with the least masses give the least T_0. If that exceeds 1,
# Pr[C ≥ c] < τ.
#
# *Rates and sides.* For "in" guesses and inclusion at rate p the same argument, for bits of each
# side, gives a_j/p ≤ f̄(b_{j−1}/(1 − p)); for "out" guesses p and 1 − p change places. For guesses
# of both kinds the sum of the two is at most f̄(κ b), κ = max(p/(1 − p), (1 − p)/p), by concavity.
# Each right side grows as p moves away from its side, so an interval of rates is tested at its
# ends.


NUMERIC_SLACK = 1e-9
"""How far above 1 a total of probabilities must be to count as too much."""
MAX_MU = 20.0


def least_total(
    right: int, tried: int, canaries: int, mass: float, level: Callable[[float], float]
) -> float:
    """The least probability of everything, if Pr[at least `right` of `tried`] is `mass`; it stops
    as soon as that is too much."""
    a, b, total = mass * right / canaries, mass * (tried - right) / canaries, mass
    for j in range(right, 0, -1):
        lifted = max(b, level(a))
        if lifted == math.inf:
            return math.inf
        added = (lifted - b) * canaries / (tried - j + 1)
        a, b, total = a + (j - 1) * added / canaries, lifted, total + added
        if total > 1 + NUMERIC_SLACK:
            return total
    return total


@dataclass(frozen=True)
class CurveTest:
    """The test of a curve by the number of right guesses among `tried`, of a side.

    Attributes:
        rates: the rates of inclusion that are possible.
    """

    right: int
    tried: int
    canaries: int
    side: str
    rates: Rates

    def refutes(self, curve: Curve, error: float) -> bool:
        """Whether as many right guesses have a probability below the error."""
        if self.right == 0 or self.tried == 0:
            return False
        low, high = self.rates
        most = max(high, 1 - low)
        odds = most / (1 - most) if most < 1 else math.inf
        rate = high if self.side == IN else 1 - low

        def level(a: float) -> float:
            """The b that a needs, at the rate that is hardest to refute."""
            if self.side == BOTH:
                return curve.level(a) / odds if a <= 1 else math.inf
            return (1 - rate) * curve.level(a / rate) if a <= rate else math.inf

        return least_total(self.right, self.tried, self.canaries, error, level) > 1 + NUMERIC_SLACK

    def largest(self, family: Callable[[float], Curve], error: float) -> float:
        """The largest parameter, from 0 on, whose curve is refuted; curves allow more as it
        grows."""
        return largest_rejected(lambda value: self.refutes(family(value), error), MAX_MU)


# How many guesses to make against a curve, and of which side. One canary in `CHOICE_STRIDE`, evenly
# over the ranks of the scores, shows its inclusion bit to the choice, and is not guessed; all the
# others are. Who that is depends on the scores alone, so that turning over the inclusion bit of
# another canary changes neither the choice nor any guess. Few canaries leave no choice: the surest
# half is guessed, on both sides.


CHOICE_STRIDE = 6
FEW_CANARIES = 80
"""Fewer canaries are all guessed."""
GUESS_SHARES = (1.0, 0.8, 0.65, 0.5, 0.35, 0.25, 0.15, 0.08, 0.04, 0.02)
MODEL_CANARIES = 400
"""Canaries of the small run by which choices are compared."""
CLEAR_FACTOR = 1.5
"""How many times more one side alone must promise than both."""

Choice = tuple[str, float]


def count_guesses(
    inside: Array, scores: Array, rates: Rates, error: float
) -> tuple[CurveTest, int]:
    """The test to make, and how many canaries were spent on choosing it."""
    choice: Choice = (BOTH, 0.5)
    spent = np.zeros(len(scores), dtype=bool)
    if len(scores) >= FEW_CANARIES:
        order = np.argsort(-scores, kind="stable")
        spent[order[CHOICE_STRIDE // 2 :: CHOICE_STRIDE]] = True
        choice = _choose_guesses(inside[spent], scores[spent], rates, error)
    return _make_test(inside[~spent], scores[~spent], choice, rates), int(spent.sum())


def _choose_guesses(inside: Array, scores: Array, rates: Rates, error: float) -> Choice:
    """What promises the largest μ in a run of `MODEL_CANARIES` with the frequencies seen."""
    best: dict[str, tuple[float, float]] = {}
    for side in (BOTH, IN, OUT):
        for share in GUESS_SHARES:
            seen = _make_test(inside, scores, (side, share), rates)
            if seen.tried < 2:
                continue
            tried = round(seen.tried * MODEL_CANARIES / len(scores))
            right = round(tried * (seen.right + 0.5) / (seen.tried + 1))
            test = CurveTest(right, tried, MODEL_CANARIES, side, rates)
            promise = test.largest(GaussianCurve, error)
            best[side] = max(best.get(side, (0.0, 0.5)), (promise, share))
    one_sided = max((IN, OUT), key=lambda side: best[side][0])
    side = one_sided if best[one_sided][0] > CLEAR_FACTOR * best[BOTH][0] else BOTH
    return side, best[side][1]


def _make_test(inside: Array, scores: Array, choice: Choice, rates: Rates) -> CurveTest:
    """What the surest guesses of a choice show; ties are broken against the finding."""
    side, share = choice
    count = len(scores)
    tops, bottoms = right_guesses(inside, scores), right_guesses(~inside, -scores)
    half = int(count * share / 2)
    if side == BOTH:
        right, tried = int(tops[half] + bottoms[half]), 2 * half
    else:
        right, tried = int((tops if side == IN else bottoms)[half]), half
    return CurveTest(right, tried, count, side, rates)


# One training run against a trade-off curve: is the mechanism μ-Gaussian private, or f-private? As
# `single_run`, with all of the error for one test, whose number of guesses and side were chosen on
# other canaries. `mu` is the largest μ that is refuted: the mechanism is not μ-GDP for any smaller
# one. That speaks of the whole curve: it refutes (ε, δ) at one δ only for mechanisms whose curve
# *is* Gaussian, as that of Gaussian noise is; `epsilon` says so. A claim (ε, δ) is itself a curve,
# which `refutes` tests without that condition.


@dataclass(frozen=True)
class CurveRun:
    """The result of `curve_run`.

    Attributes:
        mu: the mechanism is not μ-Gaussian private for any smaller μ.
        chosen_on: canaries whose inclusion bits were spent on the choice of guesses.
        error: of the test, after what the interval for the rate took.
        blind: all scores were the same, so that nothing could be learnt.
    """

    mu: float
    confidence: float
    test: CurveTest
    canaries: int
    chosen_on: int
    rate: float
    error: float
    blind: bool = False

    def refutes(self, curve: object) -> bool:
        """Whether a claimed curve is refuted: `GaussianCurve(mu)`, `ApproximateCurve(epsilon,
        delta)`, or a function from false positive to false negative rates, for both directions.

        The same guesses test every curve at the full confidence, so ask of one claim, or know that
        curves which allow more than a refuted one may be refuted too.
        """
        return self.test.refutes(read_curve(curve), self.error)

    def could_refute(self, curve: object) -> bool:
        """Whether guesses that were all right would have refuted the curve."""
        perfect = replace(self.test, right=self.test.tried)
        return perfect.refutes(read_curve(curve), self.error)

    def epsilon(self, delta: object) -> float:
        """The ε at this δ of a mechanism whose curve is Gaussian, at least."""
        return GaussianCurve(self.mu).epsilon(delta)

    def to_dict(self) -> dict[str, object]:
        """The result for programs."""
        about = {"mu": self.mu, "confidence": self.confidence, "canaries": self.canaries}
        guesses = {"side": self.test.side, "tried": self.test.tried, "right": self.test.right}
        rates = {"rate": self.rate, "rates": list(self.test.rates)}
        more = {"chosen_on": self.chosen_on, **rates, "guesses": guesses, "blind": self.blind}
        return about | more


def curve_run(
    included: object,
    scores: object,
    confidence: object = 0.95,
    rate: object = 0.5,
    *,
    known_rate: object = False,
    people: object = None,
) -> CurveRun:
    """Bound from below the μ of one run: how Gaussian noise would have to be, to hide as little.

    Args:
        included, scores, rate, known_rate, people: as for `one_run`.
    """
    level, error = read_confidence(confidence)
    inside, values = read_run(included, scores, people)
    declared, rates = check_rate(inside, rate, known_rate, error * RATE_ERROR_SHARE)
    share = error if known_rate else error * (1 - RATE_ERROR_SHARE)
    test, spent = count_guesses(inside, values, rates, share)
    mu = test.largest(GaussianCurve, share)
    blind = len(np.unique(values)) == 1
    return CurveRun(mu, level, test, len(inside), spent, declared, share, blind)
