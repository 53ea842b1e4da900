"""One training run with many canaries (Steinke, Nasr, Jagielski 2023): guesses, tails, bounds."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar

import numpy as np

from whosin.audit.bounds import (
    ROUNDING_SLACK,
    AuditBounds,
    binomial_tail,
    bisect_rejected,
    lower_bound,
    read_confidence,
    read_delta,
    refuse_few,
    upper_bound,
)
from whosin.errors import InvalidInput, invalid_value, spell
from whosin.exact import Array, read_ranged

# Which guesses one run allows: whole groups of equal scores, the surest first. A guess says "in" of
# the highest scores or "out" of the lowest. Which canaries are guessed, and how many, depends on
# the scores alone, never on who was in. Canaries with one score are guessed together or not at all,
# so the order of a list never matters and constant scores leave nothing to tell. Where numbers of
# guesses must be fixed beforehand (with δ), ties are broken against the finding: of canaries with
# one score, those whose guess is wrong come first.


GUESSES_FEWEST = 5
"""Fewer guesses can show nothing."""
BOTH, IN, OUT = "both", "in", "out"
"""Which guesses are made."""


@dataclass(frozen=True)
class Guesses:
    """How many of the surest guesses were right, for each number of guesses that was tried.

    Attributes:
        tried: guesses in all; `inside` of them say "in" (all of them, where it is left out).
    """

    tried: tuple[int, ...]
    right: tuple[int, ...]
    inside: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.inside:
            object.__setattr__(self, "inside", self.tried)

    def to_dict(self) -> dict[str, object]:
        return {"tried": list(self.tried), "in": list(self.inside), "right": list(self.right)}


def make_guesses(truth: Array, scores: Array, *, side: str, fixed: bool) -> Guesses:
    """The guesses on both sides, "in" guesses alone, or "out" guesses alone.

    Args:
        truth: whether each canary was in.
        fixed: numbers of guesses come from the number of canaries alone.
    """
    if side == OUT:
        mirrored = make_guesses(~truth, -scores, side=IN, fixed=fixed)
        return Guesses(mirrored.tried, mirrored.right, (0,) * len(mirrored.tried))
    count = len(truth)
    # How many canaries have a score of at least the first, second, … highest value.
    groups = np.cumsum(np.unique(-scores, return_counts=True)[1])
    ends = np.arange(1, count + 1) if fixed else groups
    # With δ few and large numbers: what δ allows weighs most among few guesses.
    parts = [1 / 2**step for step in range(4)] if fixed else [0.5 ** (s / 2) for s in range(15)]
    targets = [count * part for part in reversed(parts)]
    nothing: list[int] = [0] * len(targets)
    if side == BOTH:
        middle = int(ends[np.argmin(np.abs(ends - count / 2))])
        highs = _nearest_ends(ends[ends <= middle], [target / 2 for target in targets])
        rest = (count - ends[(ends >= middle) & (ends < count)])[::-1]
        lows = _nearest_ends(rest, [target / 2 for target in targets]) if len(rest) else nothing
    else:
        highs, lows = _nearest_ends(ends, targets), nothing
    sizes = [
        pair for pair in dict.fromkeys(zip(highs, lows, strict=True)) if sum(pair) >= GUESSES_FEWEST
    ]
    tops, bottoms = right_guesses(truth, scores), right_guesses(~truth, -scores)
    return Guesses(
        tuple(high + low for high, low in sizes),
        tuple(int(tops[high] + bottoms[low]) for high, low in sizes),
        tuple(high for high, _low in sizes),
    )


def _nearest_ends(ends: Array, targets: list[float]) -> list[int]:
    """The end that is nearest to each target, by their ratio."""
    distances = [np.abs(np.log(ends / max(target, 0.5))) for target in targets]
    return [int(ends[np.argmin(each)]) for each in distances]


def right_guesses(truth: Array, scores: Array) -> Array:
    """How many of the first 0, 1, 2 … highest scores are right, wrong ones first among equals."""
    order = np.lexsort((truth, -scores))
    return np.concatenate([[0], np.cumsum(truth[order])])


# The test of one run: how likely a random sequence has this many right guesses. `one_run` has the
# theory. The statistic is increasing in every number of right guesses and depends on neither ε nor
# the rate of inclusion, so p-values grow with both; special functions have room for their rounding,
# towards larger p-values.


MAX_EPSILON = 40.0
"""The largest ε that is looked at; m guesses cannot show more than about ln m."""
EPSILON_TOLERANCE = 1e-4
LOOK_ERROR = 0.25
"""The part of the error at which one number of guesses implies its ε."""
RATE_CELL_COUNT, FEW_RATE_CELLS, MANY_CANARIES = 12, 4, 20_000
"""Cells of rates, and fewer where many canaries leave few rates possible."""
BISECTION_STEPS = 60
"""Values of ε that are looked at where the p-value need not grow with ε."""

Rates = tuple[float, float]
FAIR_RATES: Rates = (0.5, 0.5)


@dataclass(frozen=True, eq=False)
class RunTest:
    """The test of (ε, δ)-DP by one statistic.

    Attributes:
        implied: the statistic: the largest ε that a number of guesses implies.
        needed: how many right guesses, at each number tried, imply as much.
        cells: rates, each from a lower to an upper end.
        fair: whether the declared rate is 1/2.
    """

    guesses: Guesses
    canaries: int
    delta: float
    implied: float
    needed: tuple[int, ...]
    cells: tuple[Rates, ...]
    fair: bool = True

    @classmethod
    def of(
        cls,
        guesses: Guesses,
        canaries: int,
        error: float,
        delta: float = 0.0,
        rates: Rates = FAIR_RATES,
        rate: float = 0.5,
    ) -> RunTest | None:
        """The test for what was seen; None where it implies nothing."""
        look = error * LOOK_ERROR
        rows = list(zip(guesses.tried, guesses.inside, guesses.right, strict=True))
        implied = max((_implied_epsilon(*row, look, rate) for row in rows), default=0.0)
        if implied <= 0:
            return None
        needed = tuple(_fewest_right(*row[:2], implied, look, rate) for row in rows)
        cells = _guess_rates(guesses, canaries, rates)
        return cls(guesses, canaries, delta, implied, needed, cells, rate == 0.5)

    def bound(self, error: float) -> float:
        """The largest ε whose p-value is at most the error, at every possible rate."""
        worst = int(np.argmax(self._crossings(self.implied)))
        hardest = replace(self, cells=self.cells[worst : worst + 1])
        held, refused = hardest._bracket(error)
        held = bisect_rejected(lambda epsilon: hardest.p_value(epsilon) <= error, held, refused)
        step = EPSILON_TOLERANCE * max(held, 0.1)
        while held > 0 and self.p_value(held) > error:  # at the cells that were left out
            held, step = max(0.0, held - step), step * 2
        return held

    def _bracket(self, error: float) -> tuple[float, float]:
        """An ε that is rejected, and one above it that is not.

        With δ, from above: what δ adds to the p-value shrinks as ε grows. A claim (ε, δ) implies
        every (ε', δ) with ε' > ε, so that refuting one of these is enough.
        """
        top = min(self.implied + 1, MAX_EPSILON)
        if not self.delta:
            return 0.0, top
        refused = top
        for step in range(1, BISECTION_STEPS):
            held = top * (1 - step / BISECTION_STEPS)
            if self.p_value(held) <= error:
                return held, refused
            refused = held
        return 0.0, refused

    def p_value(self, epsilon: float) -> float:
        """How likely it is, at most, that the statistic is as large, under (ε, δ)-DP."""
        crossing = float(self._crossings(epsilon).max())
        return min(1.0, crossing * (1 + ROUNDING_SLACK) + 1e-12 + self._given(epsilon))

    def _given(self, epsilon: float) -> float:
        """What δ allows, at the worst rates."""
        if not self.delta:
            return 0.0
        low, high = self.cells[0][0], self.cells[-1][1]
        beyond = 0.0
        if any(self.guesses.inside):
            beyond += high * (1 - odds_after(low, epsilon))
        if self.guesses.inside != self.guesses.tried:
            beyond += (1 - low) * (1 - odds_after(1 - high, epsilon))
        if self.fair:
            beyond = min(beyond, 2 * self._gain(odds_after(0.5, epsilon)))
        return self.canaries * self.delta * beyond

    def _gain(self, q: float) -> float:
        """max over i of (g(i) − g(0))/i, where g(i) is the p-value when i right guesses are given
        away, bounded for i ≥ 1 by a sum over the numbers tried."""
        from scipy.special import betainc

        given, sums = np.arange(1, self.canaries + 1), np.zeros(self.canaries)
        for size, least in zip(self.guesses.tried, self.needed, strict=True):
            hits = np.clip(least - given, 1, size)
            tails = np.where(least - given > size, 0.0, betainc(hits, size - hits + 1, q))
            sums += np.where(least - given <= 0, 1.0, tails)
        fair = self._crossings_at(np.array([q]), np.array([q]))[0]
        return max(0.0, float(((np.minimum(sums, 1.0) - fair) / given).max()))

    def _crossings(self, epsilon: float) -> Array:
        """How likely the statistic is as large, in each cell, without δ."""
        q_in = np.array([odds_after(high, epsilon) for _low, high in self.cells])
        q_out = np.array([odds_after(1 - low, epsilon) for low, _high in self.cells])
        return self._crossings_at(q_in, q_out)

    def _crossings_at(self, q_in: Array, q_out: Array) -> Array:
        """Pr[at some number k of guesses at least needed[k] are right], a q an entry.

        Step by step from one number to the next: the distribution of right guesses among those who
        have not crossed yet.
        """
        alive = [np.ones(1) for _ in q_in]
        crossed, before = np.zeros(len(q_in)), (0, 0)
        rows = zip(self.guesses.tried, self.guesses.inside, self.needed, strict=True)
        for size, inside, least in rows:
            now = inside, size - inside
            steps = (
                _binomial_distribution(now[0] - before[0], q_in),
                _binomial_distribution(now[1] - before[1], q_out),
            )
            for cell in range(len(alive)):
                total = _convolve(_convolve(alive[cell], steps[0][cell]), steps[1][cell])
                crossed[cell] += float(total[least:].sum())
                alive[cell] = total[:least]
            before = now
        return crossed


def odds_after(rate: float, epsilon: float) -> float:
    """p e^ε / (p e^ε + 1 − p), rounded up: how likely a guess of prior p is right at most."""
    if not 0 < rate < 1:
        return float(rate > 0)
    return min(1.0, 1 / (1 + (1 - rate) / rate * math.exp(-epsilon)) * (1 + 1e-12))


def _guess_rates(guesses: Guesses, canaries: int, rates: Rates) -> tuple[Rates, ...]:
    low, high = rates
    if low == high or guesses.inside == guesses.tried or not any(guesses.inside):
        return ((low, high),)
    edges = np.linspace(
        low, high, (RATE_CELL_COUNT if canaries <= MANY_CANARIES else FEW_RATE_CELLS) + 1
    )
    return tuple((float(one), float(two)) for one, two in pairwise(edges))


def _mean_success(size: int, inside: int, rate: float, epsilon: float) -> float:
    """How likely a guess is right, on average over both sides."""
    right = inside * odds_after(rate, epsilon) + (size - inside) * odds_after(1 - rate, epsilon)
    return min(1.0, right / size)


def _implied_epsilon(size: int, inside: int, right: int, look: float, rate: float) -> float:
    """The ε at which this many right guesses are as unlikely as `look`, at the declared rate."""
    low = lower_bound(right, size, look)
    if low <= _mean_success(size, inside, rate, 0.0):
        return 0.0
    return bisect_rejected(
        lambda epsilon: _mean_success(size, inside, rate, epsilon) < low, 0.0, MAX_EPSILON
    )


def _fewest_right(size: int, inside: int, implied: float, look: float, rate: float) -> int:
    """The fewest right guesses that imply as much; size + 1 where none do."""
    q, tail = _mean_success(size, inside, rate, implied), look * (1 + ROUNDING_SLACK)
    return bisect_left(
        range(size + 1), True, key=lambda least: binomial_tail(least, size, q) <= tail
    )


def _binomial_distribution(size: int, q: Array) -> Array:
    """The distribution of Binomial(size, q), a row a q."""
    if size == 0:
        return np.ones((len(q), 1))
    counts, logs_of_counts = _log_binomials(size)
    with np.errstate(divide="ignore", invalid="ignore"):
        right, wrong = counts * np.log(q)[:, None], (size - counts) * np.log1p(-q)[:, None]
    logs = logs_of_counts + right + wrong
    return np.exp(np.where(np.isnan(logs), 0.0, logs))  # 0 · ln 0


@lru_cache(maxsize=64)
def _log_binomials(size: int) -> tuple[Array, Array]:
    from scipy.special import gammaln

    counts = np.arange(size + 1)
    return counts, gammaln(size + 1) - gammaln(counts + 1) - gammaln(size - counts + 1)


def _convolve(one: Array, two: Array) -> Array:
    if not len(one) or (len(two) == 1 and two[0] == 1):
        return one
    if min(len(one), len(two)) < 200:
        return np.convolve(one, two)
    from scipy.signal import fftconvolve

    return np.asarray(fftconvolve(one, two).clip(0))


# One training run with many canaries (Steinke, Nasr, Jagielski 2023), with inclusion at any rate: m
# examples were each included with probability p, independently; scores come from the output of that
# one run (higher: more likely in). Guesses are made on the most extreme scores only
# (`make_guesses`). Under ε-DP the odds that an example was in, given the output and any other
# examples, are within e^{±ε} of p : (1 − p). So, given the output, "in" guesses are right like
# independent Bernoulli variables of probability q_in = p e^ε / (p e^ε + 1 − p) at most, and "out"
# guesses with 1 − p in place of p: the whole sequence, from the surest guess on.
#
# *How many to guess.* Each number of guesses implies an ε at which this many right ones would be as
# unlikely as `LOOK_ERROR` of the error; the statistic is the largest of these. The p-value at an ε
# is the probability that a sequence of Bernoulli variables reaches it at *any* of the numbers
# tried, which is exact, and grows with ε and with their probability, because the statistic depends
# on neither.
#
# *The rate.* The inclusion bits themselves say which rates are possible: an exact interval for p
# takes `RATE_ERROR_SHARE` of the error. A declared rate outside of it is refused; the bounds hold
# for every rate inside it (Berger and Boos 1994), so inclusion at another rate than declared raises
# no false alarm. "In" guesses take the highest rate, "out" guesses the lowest; guesses on both
# sides, where a higher rate helps one and hurts the other, take cells of rates, "in" at the upper
# end of each and "out" at the lower.
#
# *With δ.* Pr[in | output, others] exceeds q_in by a function of the output and the others whose
# expectation is at most p (1 − q_in) δ, and so for "out"; averaging over unknown examples only
# makes it smaller. So some guess of m is right beyond its probability with probability at most m δ
# (p (1 − q_in) + (1 − p)(1 − q_out)), which is added to the p-value; for p = 1/2, where it is less,
# what their Theorem 5.2 says, 2mδ · max over i of (g(i) − g(0))/i.
#
# The rest of the error is shared (`SIDE_ERROR_SHARES`) by guesses on both sides, "in" guesses
# alone, which bound r and so γ and posteriors, and "out" guesses alone: where the scores of those
# who were in tell nothing, as those of a tree that errs on nobody whom it has seen, guesses on both
# sides drown what the others tell. ε is the best of the three. All bounds hold together.


RATE_ERROR_SHARE = 0.2
"""The part of the error that pays for the interval of the rate."""
CONTRADICTION_P_VALUE = 1e-6
"""Inclusion bits of a known rate are refused where at most this share of all runs is as far off."""
SIDE_ERROR_SHARES = {IN: 0.4, BOTH: 0.4, OUT: 0.2}
"""How the rest of the error is shared by the three kinds of guesses."""
MIN_CANARIES = 10


@dataclass(frozen=True)
class OneRun(AuditBounds):
    """The result of `one_run`.

    Attributes:
        both, inside, outside: the guesses on both sides, and on each side alone.
        rate: of inclusion, as declared; `rates` is the interval that the bits leave possible.
        heads: how many canaries were in.
        blind: all scores were the same, so that nothing could be learnt.
        side: of the guesses that show ε.
    """

    relation: ClassVar[str | None] = "add-remove"
    canaries: int
    both: Guesses
    inside: Guesses
    outside: Guesses
    rate: float
    rates: Rates
    heads: int
    blind: bool = False
    side: str = BOTH

    @property
    def most(self) -> float:
        """The largest ε that so many inclusion bits could show: that of guesses all right."""
        included = np.arange(self.canaries) < self.heads
        told = np.where(included, 1.0, -1.0) * (1 + np.arange(self.canaries))
        known = self.rates[0] == self.rates[1]
        terms = self.confidence, self.delta
        return one_run(included, told, *terms, rate=self.rate, known_rate=known).epsilon

    def to_dict(self) -> dict[str, object]:
        """The result for programs."""
        tried = {"both_sides": self.both, "in_only": self.inside, "out_only": self.outside}
        guesses = {side: each.to_dict() for side, each in tried.items()}
        about = {"canaries": self.canaries, "rate": self.rate, "rates": list(self.rates)}
        return {**super().to_dict(), **about, "guesses": guesses, "blind": self.blind}


def one_run(
    included: object,
    scores: object,
    confidence: object = 0.95,
    delta: object = 0,
    rate: object = 0.5,
    *,
    known_rate: object = False,
    people: object = None,
) -> OneRun:
    """Bound the leakage of one run from below.

    Args:
        included: for each canary whether it was in the data: decided independently at random.
        scores: for each canary how much the output looks as if it was in.
        delta: granted to the mechanism.
        rate: the probability with which each canary was included.
        known_rate: the rate is known (you drew the inclusion bits), so that none of the error pays
            for an interval of it; bits that contradict it are refused all the same.
        people: for each canary whose it is, where a person has several. One bit decides about all
            canaries of a person; their scores are added up, and the bounds are about people.
    """
    (level, error), granted = read_confidence(confidence), read_delta(delta)
    inside, values = read_run(included, scores, people)
    declared, rates = check_rate(inside, rate, known_rate, error * RATE_ERROR_SHARE)
    return bound_run(
        inside,
        dict.fromkeys(SIDE_ERROR_SHARES, values),
        level,
        error * (1 if known_rate else 1 - RATE_ERROR_SHARE),
        granted,
        rates,
        declared,
    )


def bound_run(
    inside: Array,
    scores: Mapping[str, Array],
    level: float,
    error: float,
    delta: float,
    rates: Rates,
    rate: float,
) -> OneRun:
    """What the guesses on each side show, each by scores chosen on other inclusion bits."""
    count = len(inside)
    bounds: dict[str, float] = {}
    guesses: dict[str, Guesses] = {}
    for side, part in SIDE_ERROR_SHARES.items():
        guesses[side] = make_guesses(inside, scores[side], side=side, fixed=delta > 0)
        test = RunTest.of(guesses[side], count, error * part, delta, rates, rate)
        bounds[side] = 0.0 if test is None else test.bound(error * part)
    return OneRun(
        epsilon=max(bounds.values()),
        log_ratio=bounds[IN],
        confidence=level,
        delta=delta,
        canaries=count,
        both=guesses[BOTH],
        inside=guesses[IN],
        outside=guesses[OUT],
        rate=rate,
        rates=rates,
        heads=int(inside.sum()),
        blind=all(len(np.unique(each)) == 1 for each in scores.values()),
        side=max(bounds, key=lambda side: bounds[side]),
    )


def check_rate(inside: Array, rate: object, known: object, error: float) -> tuple[float, Rates]:
    """The declared rate, and the rates that the bounds must hold for.

    Raises:
        InvalidInput: the inclusion bits contradict the rate.
    """
    if not isinstance(known, bool | np.bool_):
        raise invalid_value("known_rate", "True or False", known)
    declared = read_ranged(rate, "rate", "strictly between 0 and 1")
    rates = possible_rates(inside, CONTRADICTION_P_VALUE if known else error)
    if not rates[0] <= declared <= rates[1]:
        heads = int(inside.sum())
        message = f"{heads} of {len(inside)} canaries were in, not a share of {spell(declared)}"
        hint = "declare the true rate of inclusion" if declared == 0.5 else ""
        raise InvalidInput(message, field="included", value=heads, hint=hint)
    return float(declared), (float(declared), float(declared)) if known else rates


def possible_rates(included: Array, error: float) -> Rates:
    """An exact interval for the rate of inclusion."""
    heads, count = int(included.sum()), len(included)
    return lower_bound(heads, count, error / 2), upper_bound(heads, count, error / 2)


def read_run(included: object, scores: object, people: object = None) -> tuple[Array, Array]:
    """Inclusion bits and scores, a canary each, or a person each."""
    from whosin.audit.model_scores import read_scores

    values = read_scores(scores, "scores")
    bits = np.asarray(included)
    if bits.ndim != 1 or len(bits) != len(values):
        message = (
            f"included and scores must be lists of one length, not {bits.shape} and {values.shape}"
        )
        raise InvalidInput(message, field="included", value=bits.shape)
    if bits.dtype == object and all(isinstance(bit, _INCLUSION_TYPES) for bit in bits.tolist()):
        bits = bits.astype(np.float64)
    if bits.dtype.kind not in "biuf" or not np.isin(bits, (0, 1)).all():
        message = "included must say True or False (1 or 0) for each canary"
        raise InvalidInput(message, field="included")
    flips = bits.astype(bool)
    if people is not None:
        flips, values = sum_by_person(flips, values, people)
    refuse_few("included", len(flips), MIN_CANARIES, "canaries")
    return flips, values


def sum_by_person(included: Array, scores: Array, people: object) -> tuple[Array, Array]:
    """One inclusion bit and one score a person: the sum of the scores of all of their canaries."""
    names = np.asarray(people)
    if names.shape != included.shape:
        shapes = f"{names.shape} and {included.shape}"
        message = f"people and included must be lists of one length, not {shapes}"
        raise InvalidInput(message, field="people", value=names.shape)
    _names, who = np.unique(names, return_inverse=True)
    canaries = np.bincount(who)
    inside = np.bincount(who, weights=included)
    split = int(((inside > 0) & (inside < canaries)).sum())
    if split:
        message = f"{split} people have some canaries in and some out"
        hint = "one inclusion bit must decide about all canaries of a person"
        raise InvalidInput(message, field="included", value=split, hint=hint)
    with np.errstate(invalid="ignore"):
        sums = np.bincount(who, weights=scores)
    if np.isnan(sums).any():
        message = "a person has canaries with the scores inf and -inf, which have no sum"
        raise InvalidInput(message, field="scores")
    return inside > 0, sums


_INCLUSION_TYPES = (bool, int, float, np.generic)
