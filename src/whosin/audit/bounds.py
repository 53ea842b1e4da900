"""Exact confidence bounds, the terms of an audit, and the bounds that it shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from whosin.errors import InvalidInput, invalid_value, read_whole
from whosin.exact import Array, exact_fraction, exp_up, probability, rational, read_ranged, round_up

if TYPE_CHECKING:
    from whosin.audit.event_search import Event, EventChoice

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


def bisect_rejected(rejects: Callable[[float], bool], held: float, refused: float) -> float:
    """The largest value that is rejected, from one that is and one that is not; on the safe side
    by at most `BISECTION_TOLERANCE`. Whatever is below a rejected value is rejected."""
    while refused - held > BISECTION_TOLERANCE * max(refused, 0.1):
        middle = (held + refused) / 2
        held, refused = (middle, refused) if rejects(middle) else (held, middle)
    return held


def largest_rejected(rejects: Callable[[float], bool], most: float) -> float:
    """The same, from 0 on and not much beyond `most`."""
    if not rejects(0.0):
        return 0.0
    held, refused = 0.0, 0.5
    while refused < most and rejects(refused):
        held, refused = refused, refused * 2
    return bisect_rejected(rejects, held, refused)


ERROR_SHARE = 0.01
"""The part of the error that pays for the interval of Q."""
BLOCK_COUNT = 256
"""Values of Y are summed in at most this many blocks, each counted at its worst."""
CELL_COUNT, POINT_COUNT = 96, 9
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
        # Where blocks of values of Y start: 0, then a window around all likely values.
        ends = [
            other_trials * q + sign * WINDOW_DEVIATIONS * math.sqrt(other_trials * q * (1 - q))
            for sign, q in ((-1, self.low), (1, self.high))
        ]
        first, last = max(0, math.floor(ends[0] - 15)), min(other_trials, math.ceil(ends[1] + 15))
        blocks = np.linspace(first, last, min(BLOCK_COUNT, last - first + 1)).astype(np.int64)
        # An empty first block when the window begins at 0.
        self.starts = np.concatenate([[first - 1], np.unique(blocks)]).astype(float)
        # Slightly below, so that rounding can only add to the tail.
        needed = np.ceil(hits + slope * (self.starts - other_hits) - 1e-6)
        self.needed = np.clip(needed, 0, trials + 1)

    def rejects(self, epsilon: float) -> bool:
        """Whether these counts are too unlikely for every Q in its interval and P ≤ e^ε Q + δ."""
        edges = self._spread(CELL_COUNT + 1)
        worst = self._tail(self._most(epsilon, edges[1:]), edges[:-1])
        return not (worst > self.budget).any()

    def suggests(self, epsilon: float) -> bool:
        """The same at a few Q only: quick, and a little too hopeful."""
        some = self._spread(POINT_COUNT)
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
        held = bisect_rejected(self.suggests, held, refused)
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


RANK_CELL_COUNT, RANK_DEVIATIONS = 400, 6.5
"""Cells of B, and their ends in standard deviations of a normal variable with the same levels."""
RANGE_COUNT = 64
"""Ranges of numbers of failures that are tried."""
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
        levels = ndtr(np.linspace(-RANK_DEVIATIONS, RANK_DEVIATIONS, RANK_CELL_COUNT))
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
        return largest_rejected(lambda epsilon: self.p_value(epsilon) <= error, MAX_LOG_RATIO)


# The terms of an audit: how many samples, at which confidence, granting which δ, from which seed.
# Read once, refused by name, the same for every entry point.


MIN_DRAWS = 40
"""The fewest samples with which an event can be both found and counted."""

Progress = Callable[[int], None]
"""Called with the number of draws of each input that were made since the last call."""


@dataclass(frozen=True)
class AuditTerms:
    """What was agreed before the first draw.

    Attributes:
        samples: draws of each input, all stages together.
        confidence: with which all bounds of the result hold; `error` is what it leaves.
        delta: granted to the mechanism.
        seeds: where randomness begins.
        tell: told how many draws were made.
        float_bits: whether the bits of floats count.
    """

    samples: int
    confidence: float
    error: float
    delta: float
    seeds: np.random.SeedSequence
    tell: Progress
    float_bits: bool = True

    @classmethod
    def read(
        cls,
        samples: object,
        confidence: object,
        delta: object,
        seed: object,
        progress: object,
        float_bits: object = True,
    ) -> AuditTerms:
        level, error = read_confidence(confidence)
        if progress is not None and not callable(progress):
            raise invalid_value("progress", "a function of one number", type(progress).__name__)
        tell: Any = progress or (lambda _count: None)
        if not isinstance(float_bits, bool):
            raise invalid_value("float_bits", "True or False", float_bits)
        size = read_samples(samples)
        return cls(size, level, error, read_delta(delta), read_seed(seed), tell, float_bits)


def read_samples(samples: object) -> int:
    """A whole number of samples that can say something."""
    return read_whole(samples, "samples", MIN_DRAWS, what=" (some 100,000 show most leaks)")


def refuse_few(field: str, count: int, least: int, unit: str) -> None:
    """Refuse too few canaries, scores or rows to show anything."""
    if count < least:
        message = f"{count} {unit} are too few; at least {least} are needed"
        raise InvalidInput(message, field=field, value=count, hint="some 1,000 show most leaks")


def read_delta(delta: object) -> float:
    return float(read_ranged(delta, "delta", "at least 0 and below 1"))


def read_epsilon(epsilon: object) -> float:
    return float(read_ranged(epsilon, "epsilon", "at least 0"))


def read_seed(seed: object) -> np.random.SeedSequence:
    """Where randomness begins: a whole number for a repeatable run, None for a fresh one."""
    if seed is None:
        return np.random.SeedSequence()
    return np.random.SeedSequence(read_whole(seed, "seed", 0))


# What an audit shows: lower bounds, at a stated confidence, that hold all together. `epsilon`,
# `gamma`, `ratio` and every posterior of one result hold *simultaneously* with the stated
# confidence. They are lower bounds on what leaks, for the inputs that were tried: an audit can
# refute a claim of privacy, never confirm one.


@dataclass(frozen=True)
class AuditBounds:
    """Lower bounds on leakage.

    Attributes:
        epsilon: on ε, in nats: no smaller ε (with this δ) is true of the mechanism.
        log_ratio: on ln r, r = Pr[S|t]/Pr[S|¬t] of some event S: evidence that someone is *in*.
        delta: the δ that is granted to the mechanism.
        relation: which neighbours the bounds are about: "add-remove" where inclusion was random,
            "replace" where members are compared with others like them; None where two inputs were
            given, which are neighbours in whatever sense whoever gave them meant.
    """

    relation: ClassVar[str | None] = None
    epsilon: float
    log_ratio: float
    confidence: float
    delta: float = field(default=0.0, kw_only=True)

    @property
    def ratio(self) -> float:
        """The lower bound on r itself, rounded down."""
        return math.exp(self.log_ratio) * (1 - 1e-15) if self.log_ratio > 0 else 1.0

    @property
    def gamma(self) -> float:
        """The factor by which some adversary's belief grows at least (T1, T4): r itself."""
        return self.ratio

    def posterior(self, prior: object = 0.5) -> float:
        """How sure someone with this prior becomes at least, on seeing the event (F1)."""
        odds = self.ratio * (belief := float(probability(prior, "prior")))
        return odds / (odds + 1 - belief)

    def refutes(self, epsilon: object) -> bool:
        """Whether the claim of ε-DP (with the δ of this audit) is refuted at the confidence."""
        return self.epsilon > read_epsilon(epsilon)

    def to_dict(self) -> dict[str, object]:
        """The bounds for programs."""
        bounds = {"epsilon": self.epsilon, "gamma": self.gamma, "posterior": self.posterior(0.5)}
        about = {"confidence": self.confidence, "delta": self.delta, "relation": self.relation}
        return {**bounds, **about}


@dataclass(frozen=True)
class EventCount:
    """How often an event happened on both inputs, in fresh draws, and the bound that this gives.

    Attributes:
        trials, others: draws with and without.
        log_ratio: the lower bound on ln of the ratio, favoured input over the other.
    """

    event: Event
    with_hits: int
    without_hits: int
    trials: int
    others: int
    log_ratio: float

    @property
    def estimate(self) -> float:
        """ln of the ratio of frequencies, favoured input over the other; not a bound."""
        hits, other = self.with_hits * self.others, self.without_hits * self.trials
        if self.event.favours == "without":
            hits, other = other, hits
        if hits == 0:
            return -math.inf if other else 0.0
        return math.log(hits / other) if other else math.inf

    def to_dict(self) -> dict[str, object]:
        """The count for programs."""
        numbers = ("with_hits", "without_hits", "trials", "others", "log_ratio", "estimate")
        about = {**self.event.data(), "favours": self.event.favours}
        return about | {key: getattr(self, key) for key in numbers}


@dataclass(frozen=True)
class Audit(AuditBounds):
    """The result of `two_worlds` and `search`.

    Attributes:
        counts: what was counted; the first one gives `epsilon` its event.
        samples: draws of each input, all stages together.
        notes: what one should know besides, such as that the mechanism has no randomness.
        blind: every output was the same; or every output was distinct, and none had a number or a
            part that comes again. Nothing could be learnt, whatever leaks.
        with_, without: the inputs.
        pattern: the name of the pair of inputs, where a search chose it.
        timing: the time of each call was a part of its output: the bounds are of both together.
        float_bits: the bits of floats counted; False: bounds are on what leaks apart from these.
    """

    counts: tuple[EventCount, ...]
    samples: int
    with_: object
    without: object
    notes: tuple[str, ...] = ()
    pattern: str | None = None
    blind: bool = False
    timing: bool = False
    float_bits: bool = True

    @property
    def event(self) -> Event:
        """The witness: an event whose probability differs by this much between the inputs."""
        return self.counts[0].event

    def could_refute(self, epsilon: object) -> bool:
        """Whether an event that all draws with and none without are in would refute this claim."""
        claim, count = read_epsilon(epsilon), self.counts[0]
        error, slope = 1 - self.confidence, math.exp(min(claim, 30.0))
        test = RatioTest(count.trials, count.trials, 0, count.others, error, slope, self.delta)
        return test.rejects(claim)

    def samples_to_refute(self, epsilon: object) -> int | None:
        """About how many samples would refute a claim, if the frequencies seen are the truth; None
        where they do not speak against it. A guess, for planning the next audit."""
        count = self.counts[0]
        seen = (count.with_hits, count.trials), (count.without_hits, count.others)
        spread = sum(1 / max(hits, 1) - 1 / trials for hits, trials in seen)
        margin = count.estimate - read_epsilon(epsilon)
        if margin <= math.sqrt(spread) or self.delta:  # within what chance alone does
            return None
        error = 1 - self.confidence
        needed = self.samples * spread * -2 * math.log(error) / min(margin, 50.0) ** 2
        return max(math.ceil(needed), self.samples)

    def to_dict(self) -> dict[str, object]:
        """The result for programs."""
        return {
            **super().to_dict(),
            "samples": self.samples,
            "with": repr(self.with_),
            "without": repr(self.without),
            "pattern": self.pattern,
            "event": self.counts[0].to_dict(),
            "counts": [count.to_dict() for count in self.counts],
            "notes": list(self.notes),
            "blind": self.blind,
            "timing": self.timing,
            "float_bits": self.float_bits,
        }


def most_that_can_show(trials: int, error: float, delta: float = 0.0) -> float:
    """About the largest ε that this many counted draws of each input could ever show: all hits on
    one input and none on the other."""
    log = -math.log(error)
    return max(0.0, math.log(max(math.exp(-log / trials) - delta, 1e-300) * trials / log))


def trials_to_show(epsilon: float, error: float, delta: float = 0.0) -> int:
    """About how many counted draws of each input an event without misses needs to show ε."""
    ratio = round_up(exp_up(exact_fraction(min(epsilon, 60.0)))) + 1
    return math.ceil(ratio * -math.log(error) / (1 - delta)) + 1


# From chosen events to bounds: which events are counted, and what their counts show. The error is
# shared by the events that are counted, which are picked before any count. If the event that
# promises most favours the input *with* the person, all of the error is spent on it; otherwise half
# is, and half on the best event that favours "with", which alone speaks of γ and posteriors. Events
# that the other input hardly has, where the search has seen one, are counted besides, by an exact
# interval for each of the two probabilities, with `RARE_SHARE` of the error: the slope of a joint
# test would have to be guessed from counts that are next to nothing.


RARE_SHARE = 0.5
"""The part of the error that pays for events which the other input hardly has, where there are."""


def judge_events(
    picked: Sequence[EventChoice],
    hits: Sequence[tuple[int, int]],
    trials: tuple[int, int],
    error: float,
    delta: float,
) -> tuple[EventCount, ...]:
    """What the hits of each event (with, without), in `trials` fresh draws of each input, show; the
    strongest first."""
    rare = sum(choice.exclusive for choice in picked)
    shares = {True: RARE_SHARE / max(rare, 1)}
    shares[False] = (1 - RARE_SHARE if rare else 1) / (len(picked) - rare)
    counts = []
    for choice, (first, second) in zip(picked, hits, strict=True):
        pairs = ((first, trials[0]), (second, trials[1]))
        favoured, other = pairs if choice.event.above else pairs[::-1]
        share = error * shares[choice.exclusive]
        if choice.exclusive:
            bound = log_ratio_bound(*favoured, *other, share, delta)
        else:
            each = share / len(choice.slopes)
            tests = (RatioTest(*favoured, *other, each, kappa, delta) for kappa in choice.slopes)
            bound = max(test.bound() for test in tests)
        counts.append(EventCount(choice.event, first, second, *trials, bound))
    return tuple(sorted(counts, key=lambda count: -count.log_ratio))


def log_ratio(counts: Sequence[EventCount]) -> float:
    """The bound on ln r: from events that favour "with" alone."""
    return max(count.log_ratio for count in counts if count.event.above)
