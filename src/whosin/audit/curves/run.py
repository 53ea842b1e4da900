"""One training run against a trade-off curve: is the mechanism μ-Gaussian private, or f-private?

Contract: as `single_run`, with all of the error for one test, whose number of guesses and side were
chosen on other canaries. `mu` is the largest μ that is refuted: the mechanism is not μ-GDP for any
smaller one. That speaks of the whole curve: it refutes (ε, δ) at one δ only for mechanisms whose
curve *is* Gaussian, as that of Gaussian noise is; `epsilon` says so. A claim (ε, δ) is itself a
curve, which `refutes` tests without that condition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from whosin.audit import confidence as exact
from whosin.audit.curves.choosing import counted
from whosin.audit.curves.claims import GaussianCurve, read_curve
from whosin.audit.curves.recursion import CurveTest
from whosin.audit.single_run import COINS, read_coins, read_run


@dataclass(frozen=True)
class CurveRun:
    """The result of `curve_run`.

    Attributes:
        mu: the mechanism is not μ-Gaussian private for any smaller μ.
        chosen_on: canaries whose coins were spent on the choice of guesses.
        error: of the test, after what the coins took.
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
        coins = {"rate": self.rate, "rates": list(self.test.rates)}
        more = {"chosen_on": self.chosen_on, **coins, "guesses": guesses, "blind": self.blind}
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
    level, error = exact.read_confidence(confidence)
    inside, values = read_run(included, scores, people)
    declared, rates = read_coins(inside, rate, known_rate, error * COINS)
    share = error if known_rate else error * (1 - COINS)
    test, spent = counted(inside, values, rates, share)
    mu = test.largest(GaussianCurve, share)
    blind = len(np.unique(values)) == 1
    return CurveRun(mu, level, test, len(inside), spent, declared, share, blind)
