"""Positive membership privacy on records, against D_* (Zhao 2017, section III-B)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from whosin import beliefs
from whosin.exact import Number, exp_up, is_exact, rational
from whosin.notions.base import Notion, shown
from whosin.notions.bayesian_differential_privacy import BayesianDifferentialPrivacy
from whosin.notions.level import Level
from whosin.priors import Prior
from whosin.spaces import Space

LARGEST = 700


@dataclass(frozen=True)
class RecordMembership(Notion):
    """(D_*, γ)-PMP: the secret of row i is one value against another, given the known rows x_K.

    D_* puts any mass p on (x_i, x_K) and 1 − p on (x_i', x_K), and lets the other rows follow the
    prior: no belief in a value grows by more than γ. Its level is e^ε of Bayesian differential
    privacy (T14), a limit as p goes to 0.

    Args:
        prior: a prior on records, or a list of them: then the largest level of any.
    """

    prior: Prior | tuple[Prior, ...]
    unit: ClassVar[str] = "γ"

    def __init__(self, prior: Prior | Iterable[Prior]) -> None:
        object.__setattr__(self, "prior", BayesianDifferentialPrivacy(prior).prior)

    @property
    def priors(self) -> tuple[Prior, ...]:
        """The priors, one or several."""
        return BayesianDifferentialPrivacy(self.prior).priors

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        found = BayesianDifferentialPrivacy(self.prior).measure(mechanism, space)
        case = found.witness
        if case is not None:
            exact = is_exact(case.ratio)
            ratio = case.ratio if case.ratio == math.inf else max(rational(case.ratio), Fraction(1))
            worst = beliefs.worst_belief(ratio, Fraction(0), Fraction(1))
            after = beliefs.posterior(ratio, worst.prior)
            case = replace(
                case,
                prior=shown(worst.prior, exact),
                posterior=shown(after, exact),
                attained=worst.attained,
            )
            if found.exact:
                value = shown(worst.gamma, exact)
                return Level(value, case, True, found.theorems, notion=self)
        lower = None if found.lower is None else _gamma(found.lower)
        return Level(_gamma(found.value), case, found.exact, found.theorems, lower, notion=self)


def _gamma(epsilon: Number) -> Number:
    return shown(exp_up(rational(epsilon)), False) if epsilon < LARGEST else math.inf
