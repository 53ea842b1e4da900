"""An exact lower bound on a ratio of probabilities, where the event is a rank of one sample.

Contract: y_1 … y_m and x_1 … x_n are independent draws of two distributions Q and P. The event is
{value > t}, where t is the (r+1)-th largest y: a choice that depends on the y alone, so the x that
are above it are Binomial(n, P(> t)) given the y. And Q(> t) is at most a Beta(r + 1, m − r)
variable, exactly one where Q has no ties (they only make it smaller). So if P(> t) ≤ e^ε Q(> t) +
δ, then

    Pr[at least k of the x are above t] ≤ E Pr[Binomial(n, min(1, e^ε B + δ)) ≥ k]

with B ~ Beta(r + 1, m − r), whatever P and Q are: no nuisance is left. The right side grows with ε;
the largest ε at which it is at most the error is the bound. The expectation is a sum over cells of
B, each counted at its upper end.
"""

from __future__ import annotations

import math

import numpy as np

from whosin.audit.confidence import ROUNDING

CELLS, REACH = 400, 6.5
"""Cells of B, and their ends in standard deviations of a normal variable with the same levels."""
CLOSE = 1e-4
LARGEST = 40.0
THINNER = 3
"""How many times rarer each event is than the one before it."""


def ranks(count: int) -> list[int]:
    """The ranks that are tried: from the median to the most extreme one, by the count alone."""
    result = {0}
    size = count / 2
    while size >= 1:
        result.add(min(count - 1, round(size)))
        size /= THINNER
    return sorted(result, reverse=True)


class RankTest:
    """The test of P ≤ e^ε Q + δ when `hits` of `trials` are above the (rank+1)-th of `others`."""

    def __init__(self, hits: int, trials: int, rank: int, others: int, delta: float = 0.0) -> None:
        from scipy.special import betaincinv, ndtr

        self.hits, self.trials, self.delta = hits, trials, delta
        levels = ndtr(np.linspace(-REACH, REACH, CELLS))
        ends = betaincinv(rank + 1, others - rank, levels) * (1 + ROUNDING)
        self.ends = np.append(np.minimum(ends, 1.0), 1.0)
        self.masses = np.diff(levels, prepend=0.0, append=1.0)

    def p_value(self, epsilon: float) -> float:
        """The largest probability of as many hits, or more, under P ≤ e^ε Q + δ."""
        from scipy.special import betainc

        if self.hits == 0:
            return 1.0
        p = np.minimum(1.0, math.exp(epsilon) * (1 + 1e-12) * self.ends + self.delta)
        tails = betainc(self.hits, self.trials - self.hits + 1, p)
        return min(1.0, float((self.masses * tails).sum()) * (1 + ROUNDING) + 1e-13)

    def bound(self, error: float) -> float:
        """The largest ε, at least 0, that is rejected at this error."""
        if self.p_value(0.0) > error:
            return 0.0
        held, refused = 0.0, 0.5
        while refused < LARGEST and self.p_value(refused) <= error:
            held, refused = refused, refused * 2
        while refused - held > CLOSE * max(refused, 0.1):
            middle = (held + refused) / 2
            held, refused = (middle, refused) if self.p_value(middle) <= error else (held, middle)
        return held
