"""An exact lower confidence bound for the ratio of two probabilities.

Contract: X ~ Binomial(n, P) and Y ~ Binomial(m, Q) are independent. `RatioTest.bound` gives an ε
with Pr[P ≤ e^ε Q + δ] ≤ error, whatever P and Q are. It is a test of the hypothesis P ≤ e^ε Q + δ
by the statistic X − κY, where the slope κ must be chosen without looking at these counts: rejection
is then monotone in ε, so the largest rejected ε is the bound.

The p-value is the largest over the unknown Q. Berger and Boos (1994): a small share of the error
pays for an exact interval for Q, and only Q inside it are tried. For Q in a cell [q, q'] the
statistic is dominated by the one with P = e^ε q' + δ and Q = q, so finitely many cells bound the
largest p-value from above. Against two separate intervals
(each at half the error) the bound is about 1.7 times closer to the estimate, and more so for rare
events.
"""

from __future__ import annotations

import math

import numpy as np

from whosin.audit import confidence
from whosin.exact import Array

SHARE = 0.01
"""The part of the error that pays for the interval of Q."""
BLOCKS = 256
"""Values of Y are summed in at most this many blocks, each counted at its worst."""
CELLS, POINTS = 96, 9
"""Cells of Q that certify a rejection, and values of Q that look for one."""
SPAN = 5.5
"""Standard deviations of Y beyond which everything counts as a success."""
CLOSE = 1e-4
"""Bisection stops at this relative distance, on the safe side."""
STEP = 0.03
"""How far to retreat, in standard errors, from an ε that is suggested but not certified."""


class RatioTest:
    """The test of P ≤ e^ε Q + δ for one pair of counts.

    Args:
        slope: κ, fixed before these counts were seen; about the e^ε that one expects to reject.
    """

    def __init__(
        self,
        hits: int,
        trials: int,
        other_hits: int,
        other_trials: int,
        error: float,
        slope: float = 1.0,
        delta: float = 0.0,
    ) -> None:
        self.hits, self.trials, self.delta = hits, trials, delta
        self.other_hits, self.other_trials = other_hits, other_trials
        self.budget = error * (1 - SHARE) * (1 - confidence.ROUNDING)
        side = error * SHARE / 2
        self.low = confidence.lower(other_hits, other_trials, side)
        self.high = confidence.upper(other_hits, other_trials, side)
        self.starts = _blocks(self.low, self.high, other_trials)
        # Slightly below, so that rounding can only add to the tail.
        needed = np.ceil(hits + slope * (self.starts - other_hits) - 1e-6)
        self.needed = np.clip(needed, 0, trials + 1)

    def rejects(self, epsilon: float) -> bool:
        """Whether these counts are too unlikely for every Q in its interval and P ≤ e^ε Q + δ."""
        edges = self._spread(CELLS + 1)
        worst = self._tail(self._most(epsilon, edges[1:]), edges[:-1])
        return not (worst > self.budget).any()

    def suggests(self, epsilon: float) -> bool:
        """The same at a few Q only: quick, and a little too hopeful."""
        some = self._spread(POINTS)
        return not (self._tail(self._most(epsilon, some), some) > self.budget).any()

    def bound(self) -> float:
        """The largest ε, at least 0, for which P ≤ e^ε Q + δ is rejected at this error."""
        if self.hits == 0 or not self.suggests(0.0):
            return 0.0
        others = max(self.other_hits, 1)
        refused = max(math.log(self.hits * self.other_trials / (others * self.trials)), 0.01)
        held = 0.0
        while self.suggests(refused):
            held, refused = refused, refused * 1.5
        while refused - held > CLOSE * max(refused, 0.1):
            middle = (held + refused) / 2
            held, refused = (middle, refused) if self.suggests(middle) else (held, middle)
        step = STEP * math.sqrt(1 / self.hits + 1 / others)
        while held > 0 and not self.rejects(held):
            held, step = held - step, step * 1.5
        return max(held, 0.0)

    def _spread(self, count: int) -> Array:
        """Values of Q from end to end, about as many standard errors apart everywhere."""
        places = np.linspace(math.sqrt(self.low), math.sqrt(self.high), count) ** 2
        places[0], places[-1] = self.low, self.high
        return np.asarray(places)

    def _most(self, epsilon: float, q: Array) -> Array:
        return np.minimum(1.0, math.exp(epsilon) * (1 + 1e-12) * q + self.delta)

    def _tail(self, p: Array, q: Array) -> Array:
        """Pr[X − κY ≥ x − κy], from above, for each pair of p and q."""
        from scipy.special import betainc

        n, m = self.trials, self.other_trials
        starts, needed = self.starts[None, 1:], self.needed[None, :]
        inside = np.maximum(starts, 1)
        reached = betainc(inside, m - inside + 1, q[:, None])
        reached = np.where(starts <= 0, 1.0, reached)  # Pr[Y ≥ start]
        mass = np.concatenate([np.ones((len(q), 1)), reached], axis=1)
        mass[:, :-1] -= reached
        inside = np.clip(needed, 1, n)
        success = betainc(inside, n - inside + 1, p[:, None])
        success = np.where(needed <= 0, 1.0, np.where(needed > n, 0.0, success))
        # The first block holds everything below the window, at its worst.
        success[:, 0] = 1.0
        total: Array = (mass * success).sum(axis=1) * (1 + confidence.ROUNDING) + 1e-13
        return total


def _blocks(low: float, high: float, trials: int) -> Array:
    """Where blocks of values of Y start: 0, then a window around all likely values."""
    first = trials * low - SPAN * math.sqrt(trials * low * (1 - low)) - 15
    last = trials * high + SPAN * math.sqrt(trials * high * (1 - high)) + 15
    first, last = max(0, math.floor(first)), min(trials, math.ceil(last))
    starts = np.unique(np.linspace(first, last, min(BLOCKS, last - first + 1)).astype(np.int64))
    # An empty first block when the window begins at 0.
    return np.concatenate([[first - 1], starts]).astype(float)
