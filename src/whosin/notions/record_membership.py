"""Positive membership privacy on records, against D_* (Zhao 2017, section III-B)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from whosin import beliefs
from whosin.exact import Number, exp_float, is_exact, log_up, rational
from whosin.notions.base import OfPriors, exact_or_up
from whosin.notions.bayesian_differential_privacy import BayesianDifferentialPrivacy
from whosin.notions.level import Level, Witness
from whosin.spaces import Space


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
        ratio = most.ratio if most.ratio == math.inf else max(rational(most.ratio), Fraction(1))
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
