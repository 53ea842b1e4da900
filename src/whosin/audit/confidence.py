"""Exact confidence bounds: for one probability, for a ratio of two, and for ranks."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from whosin.errors import invalid_value
from whosin.exact import Array, rational

# Exact confidence bounds for one probability (Clopper and Pearson 1934). No normal approximation.
# The special functions are floats, so every bound is checked against the binomial tail that defines
# it and moved outwards until the tail, with room for rounding, is small enough: a bound may be
# wider than the exact one by about one part in 10^9, never narrower.


LOWER_SHARE = 0.2
"""The part of the error of two intervals that pays for the lower one: where the other input hardly
has an event, the upper bound of its probability is the one that gains by more."""
ROUNDING_SLACK = 1e-9
"""Relative room for the rounding of special functions, whose own errors are some 10^-12."""


def read_confidence(confidence: object) -> tuple[float, float]:
    """A confidence, and the error that it leaves, rounded down."""
    level = rational(confidence, "confidence")
    if not 0.5 <= level < 1:
        raise invalid_value("confidence", "at least 0.5 and below 1", confidence)
    return float(level), float(1 - level) * (1 - 1e-15)


def binomial_tail(hits: int, trials: int, probability: float) -> float:
    """Pr[Binomial(trials, probability) ≥ hits]."""
    from scipy.special import betainc

    if hits <= 0:
        return 1.0
    return float(betainc(hits, trials - hits + 1, probability)) if hits <= trials else 0.0


def lower_bound(hits: int, trials: int, error: float) -> float:
    """The p below which this many hits, or more, have a probability of at most `error`."""
    from scipy.special import betaincinv

    if hits == 0:
        return 0.0
    bound = float(betaincinv(hits, trials - hits + 1, error))
    step = ROUNDING_SLACK
    while bound > 0 and binomial_tail(hits, trials, bound) > error * (1 - ROUNDING_SLACK):
        bound, step = max(0.0, bound * (1 - step)), step * 2
    return bound


def upper_bound(hits: int, trials: int, error: float) -> float:
    """The p above which this many hits, or fewer, have a probability of at most `error`."""
    return 1 - lower_bound(trials - hits, trials, error)


def log_ratio_bound(
    hits: int, trials: int, others: int, other_trials: int, error: float, delta: float = 0.0
) -> float:
    """An ε, at least 0, with Pr[P ≤ e^ε Q + δ] ≤ error: by exact intervals of P and of Q."""
    low = lower_bound(hits, trials, error * LOWER_SHARE) - delta
    high = upper_bound(others, other_trials, error * (1 - LOWER_SHARE))
    return max(0.0, math.log(low / high) * (1 - ROUNDING_SLACK)) if low > 0 else 0.0


def log_interval_ratio(
    hits: Array,
    trials: int,
    others: Array,
    other_trials: int,
    error: float,
    delta: float = 0.0,
    *,
    even: bool = False,
) -> Array:
    """About what `log_ratio_bound` says of many pairs of counts, which need not be whole: to plan
    by, not a bound. `even` shares the error in halves."""
    from scipy.special import betaincinv

    share = 0.5 if even else LOWER_SHARE
    low = betaincinv(np.maximum(hits, 1e-9), trials - hits + 1, error * share) - delta
    high = betaincinv(others + 1, np.maximum(other_trials - others, 1e-9), 1 - error * (1 - share))
    return np.where(low > 0, np.log(np.maximum(low, 1e-300) / high), -np.inf)


# An exact lower confidence bound for the ratio of two probabilities. X ~ Binomial(n, P) and Y ~
# Binomial(m, Q) are independent. `RatioTest.bound` gives an ε with Pr[P ≤ e^ε Q + δ] ≤ error,
# whatever P and Q are. It is a test of the hypothesis P ≤ e^ε Q + δ by the statistic X − κY, where
# the slope κ must be chosen without looking at these counts: rejection is then monotone in ε, so
# the largest rejected ε is the bound.
#
# The p-value is the largest over the unknown Q. Berger and Boos (1994): a small share of the error
# pays for an exact interval for Q, and only Q inside it are tried. For Q in a cell [q, q'] the
# statistic is dominated by the one with P = e^ε q' + δ and Q = q, so finitely many cells bound the
# largest p-value from above. Against two separate intervals (each at half the error) the bound is
# about 1.7 times closer to the estimate, and more so for rare events.


ERROR_SHARE = 0.01
"""The part of the error that pays for the interval of Q."""
BLOCK_COUNT = 256
"""Values of Y are summed in at most this many blocks, each counted at its worst."""
CELLS, POINTS = 96, 9
"""Cells of Q that certify a rejection, and values of Q that look for one."""
WINDOW_DEVIATIONS = 5.5
"""Standard deviations of Y beyond which everything counts as a success."""
BISECTION_TOLERANCE = 1e-4
"""Bisection stops at this relative distance, on the safe side."""
SEARCH_STEP = 0.03
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
        self.budget = error * (1 - ERROR_SHARE) * (1 - ROUNDING_SLACK)
        side = error * ERROR_SHARE / 2
        self.low = lower_bound(other_hits, other_trials, side)
        self.high = upper_bound(other_hits, other_trials, side)
        self.starts = _block_starts(self.low, self.high, other_trials)
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
        while refused - held > BISECTION_TOLERANCE * max(refused, 0.1):
            middle = (held + refused) / 2
            held, refused = (middle, refused) if self.suggests(middle) else (held, middle)
        step = SEARCH_STEP * math.sqrt(1 / self.hits + 1 / others)
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
        total: Array = (mass * success).sum(axis=1) * (1 + ROUNDING_SLACK) + 1e-13
        return total


def _block_starts(low: float, high: float, trials: int) -> Array:
    """Where blocks of values of Y start: 0, then a window around all likely values."""
    first = trials * low - WINDOW_DEVIATIONS * math.sqrt(trials * low * (1 - low)) - 15
    last = trials * high + WINDOW_DEVIATIONS * math.sqrt(trials * high * (1 - high)) + 15
    first, last = max(0, math.floor(first)), min(trials, math.ceil(last))
    starts = np.unique(
        np.linspace(first, last, min(BLOCK_COUNT, last - first + 1)).astype(np.int64)
    )
    # An empty first block when the window begins at 0.
    return np.concatenate([[first - 1], starts]).astype(float)


# An exact lower bound on a ratio of probabilities, where the event is a rank of one sample. Here
# y_1 … y_m and x_1 … x_n are independent draws of two distributions Q and P. The event is {value >
# t}, where t is the (r+1)-th largest y: a choice that depends on the y alone, so the x that are
# above it are Binomial(n, P(> t)) given the y. And Q(> t) is at most a Beta(r + 1, m − r) variable,
# exactly one where Q has no ties (they only make it smaller). So if P(> t) ≤ e^ε Q(> t) + δ, then
#
#     Pr[at least k of the x are above t] ≤ E Pr[Binomial(n, min(1, e^ε B + δ)) ≥ k]
#
# with B ~ Beta(r + 1, m − r), whatever P and Q are: no nuisance is left. The right side grows with
# ε; the largest ε at which it is at most the error is the bound. The expectation is a sum over
# cells of B, each counted at its upper end.
#
# *With δ.* Scores of one run share what goes wrong in it: a failure that has a probability of δ may
# betray everybody at once, and then scores are not independent of each other. (ε, δ) means that P
# and Q are mixtures, with weights 1 − δ and δ, of two that keep ε and of any two. So F of the x are
# above t by failure, with an expectation of at most nδ and in any way together, and the others as
# above with δ = 0 and Q/(1 − δ) for Q. Where g(i) is the p-value when i of the hits are given away,
#
#     Pr[at least k of the x are above t] ≤ E g(F) ≤ g(0) + nδ · max over i ≥ 1 of (g(i) − g(0))/i,
#
# as in Theorem 5.2 of Steinke, Nasr and Jagielski (2023). Failures that are independent of each
# other are among these.


RANKS_CELLS, REACH = 400, 6.5
"""Cells of B, and their ends in standard deviations of a normal variable with the same levels."""
RANGE_COUNT = 64
"""Ranges of numbers of failures that are tried."""
RANKS_CLOSE = 1e-4
MAX_LOG_RATIO = 40.0
RANK_THINNING = 3
"""How many times rarer each event is than the one before it."""


def tried_ranks(count: int) -> list[int]:
    """The ranks that are tried: from the median to the most extreme one, by the count alone."""
    result = {0}
    size = count / 2
    while size >= 1:
        result.add(min(count - 1, round(size)))
        size /= RANK_THINNING
    return sorted(result, reverse=True)


class RankTest:
    """The test of (ε, δ) when `hits` of `trials` are above the (rank+1)-th of `others`."""

    def __init__(self, hits: int, trials: int, rank: int, others: int, delta: float = 0.0) -> None:
        from scipy.special import betaincinv, ndtr

        self.hits, self.trials, self.delta = hits, trials, delta
        levels = ndtr(np.linspace(-REACH, REACH, RANKS_CELLS))
        ends = betaincinv(rank + 1, others - rank, levels) * (1 + ROUNDING_SLACK)
        self.ends = np.append(np.minimum(ends, 1.0), 1.0)
        self.masses = np.diff(levels, prepend=0.0, append=1.0)

    def p_value(self, epsilon: float) -> float:
        """The largest probability of as many hits, or more, under (ε, δ)."""
        if self.hits == 0:
            return 1.0
        p = np.minimum(1.0, math.exp(epsilon) * (1 + 1e-12) * self.ends / (1 - self.delta))
        without = self._tail(self.hits, p)
        if not self.delta:
            return without
        # g grows with i: an upper end of each range of i, over its lower end.
        starts = np.arange(1, self.hits + 1)
        if self.hits > RANGE_COUNT:
            starts = np.unique(np.geomspace(1, self.hits, RANGE_COUNT).astype(int))
        gain = max(
            (self._tail(self.hits - (after - 1), p) - without) / start
            for start, after in pairwise([*starts.tolist(), self.hits + 1])
        )
        return min(1.0, without + self.trials * self.delta * max(gain, 0.0))

    def _tail(self, hits: int, p: Array) -> float:
        """Pr[at least as many hits], from above, without δ."""
        from scipy.special import betainc

        if hits <= 0:
            return 1.0
        tails = betainc(hits, self.trials - hits + 1, p)
        return min(1.0, float((self.masses * tails).sum()) * (1 + ROUNDING_SLACK) + 1e-13)

    def bound(self, error: float) -> float:
        """The largest ε, at least 0, that is rejected at this error."""
        if self.p_value(0.0) > error:
            return 0.0
        held, refused = 0.0, 0.5
        while refused < MAX_LOG_RATIO and self.p_value(refused) <= error:
            held, refused = refused, refused * 2
        while refused - held > RANKS_CLOSE * max(refused, 0.1):
            middle = (held + refused) / 2
            held, refused = (middle, refused) if self.p_value(middle) <= error else (held, middle)
        return held
