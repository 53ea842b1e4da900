"""The test of one run: how likely a sequence of coins makes this many right guesses.

Contract: `one_run` has the theory. The statistic is increasing in every number of right guesses and
depends on neither ε nor the rate of the coins, so p-values grow with both; special functions have
room for their rounding, towards larger p-values.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from whosin.audit import confidence as exact
from whosin.audit.confidence import ROUNDING, at_least
from whosin.audit.guesses import Guesses
from whosin.exact import Array

LARGEST = 40.0
"""The largest ε that is looked at; m guesses cannot show more than about ln m."""
CLOSE = 1e-4
LOOK = 0.25
"""The part of the error at which one number of guesses implies its ε."""
CELLS, FEW_CELLS, LONG = 12, 4, 20_000
"""Cells of rates, and fewer where many canaries leave few rates possible."""
STEPS = 60
"""Values of ε that are looked at where the p-value need not grow with ε."""

Rates = tuple[float, float]
FAIR: Rates = (0.5, 0.5)


@dataclass(frozen=True, eq=False)
class RunTest:
    """The test of (ε, δ)-DP by one statistic.

    Attributes:
        implied: the statistic: the largest ε that a number of guesses implies.
        needed: how many right guesses, at each number tried, imply as much.
        cells: rates, each from a lower to an upper end.
        fair: whether coins were declared to be fair.
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
        rates: Rates = FAIR,
        rate: float = 0.5,
    ) -> RunTest | None:
        """The test for what was seen; None where it implies nothing."""
        look = error * LOOK
        rows = list(zip(guesses.tried, guesses.inside, guesses.right, strict=True))
        implied = max((_implied(*row, look, rate) for row in rows), default=0.0)
        if implied <= 0:
            return None
        needed = tuple(_fewest(*row[:2], implied, look, rate) for row in rows)
        cells = _cells(guesses, canaries, rates)
        return cls(guesses, canaries, delta, implied, needed, cells, rate == 0.5)

    def bound(self, error: float) -> float:
        """The largest ε whose p-value is at most the error, at every possible rate."""
        hardest = self.only(self.hardest(self.implied))
        held, refused = hardest._bracket(error)
        while refused - held > CLOSE * max(refused, 0.1):
            middle = (held + refused) / 2
            rejected = hardest.p_value(middle) <= error
            held, refused = (middle, refused) if rejected else (held, middle)
        step = CLOSE * max(held, 0.1)
        while held > 0 and self.p_value(held) > error:  # at the cells that were left out
            held, step = max(0.0, held - step), step * 2
        return held

    def _bracket(self, error: float) -> tuple[float, float]:
        """An ε that is rejected, and one above it that is not.

        With δ, from above: what δ adds to the p-value shrinks as ε grows. A claim (ε, δ) implies
        every (ε', δ) with ε' > ε, so that refuting one of these is enough.
        """
        top = min(self.implied + 1, LARGEST)
        if not self.delta:
            return 0.0, top
        refused = top
        for step in range(1, STEPS):
            held = top * (1 - step / STEPS)
            if self.p_value(held) <= error:
                return held, refused
            refused = held
        return 0.0, refused

    def only(self, cell: int) -> RunTest:
        """The test at one cell of rates."""
        of = self.guesses, self.canaries, self.delta, self.implied, self.needed
        return RunTest(*of, (self.cells[cell],), self.fair)

    def hardest(self, epsilon: float) -> int:
        """The cell of the largest p-value."""
        return int(np.argmax(self._crossings(epsilon)))

    def p_value(self, epsilon: float) -> float:
        """How likely it is, at most, that the statistic is as large, under (ε, δ)-DP."""
        crossing = float(self._crossings(epsilon).max())
        return min(1.0, crossing * (1 + ROUNDING) + 1e-12 + self._given(epsilon))

    def _given(self, epsilon: float) -> float:
        """What δ allows, at the worst rates."""
        if not self.delta:
            return 0.0
        low, high = self.cells[0][0], self.cells[-1][1]
        beyond = high * (1 - odds_after(low, epsilon))
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
            steps = _binomial(now[0] - before[0], q_in), _binomial(now[1] - before[1], q_out)
            for cell in range(len(alive)):
                total = _sum(_sum(alive[cell], steps[0][cell]), steps[1][cell])
                crossed[cell] += float(total[least:].sum())
                alive[cell] = total[:least]
            before = now
        return crossed


def odds_after(rate: float, epsilon: float) -> float:
    """p e^ε / (p e^ε + 1 − p), rounded up: how likely a guess of prior p is right at most."""
    if rate >= 1:
        return 1.0
    if rate <= 0:
        return 0.0
    return min(1.0, 1 / (1 + (1 - rate) / rate * math.exp(-epsilon)) * (1 + 1e-12))


def _cells(guesses: Guesses, canaries: int, rates: Rates) -> tuple[Rates, ...]:
    low, high = rates
    if low == high or guesses.inside == guesses.tried:
        return ((low, high),)
    edges = np.linspace(low, high, (CELLS if canaries <= LONG else FEW_CELLS) + 1)
    return tuple((float(one), float(two)) for one, two in pairwise(edges))


def _mean(size: int, inside: int, rate: float, epsilon: float) -> float:
    """How likely a guess is right, on average over both sides."""
    right = inside * odds_after(rate, epsilon) + (size - inside) * odds_after(1 - rate, epsilon)
    return min(1.0, right / size)


def _implied(size: int, inside: int, right: int, look: float, rate: float) -> float:
    """The ε at which this many right guesses are as unlikely as `look`, at the declared rate."""
    low = exact.lower(right, size, look)
    held, refused = 0.0, LARGEST
    if low <= _mean(size, inside, rate, 0.0):
        return 0.0
    while refused - held > CLOSE / 10:
        middle = (held + refused) / 2
        if _mean(size, inside, rate, middle) < low:
            held = middle
        else:
            refused = middle
    return held


def _fewest(size: int, inside: int, implied: float, look: float, rate: float) -> int:
    """The fewest right guesses that imply as much; size + 1 where none do."""
    q, tail = _mean(size, inside, rate, implied), look * (1 + ROUNDING)
    return bisect_left(range(size + 1), True, key=lambda least: at_least(least, size, q) <= tail)


def _binomial(size: int, q: Array) -> Array:
    """The distribution of Binomial(size, q), a row a q."""
    if size == 0:
        return np.ones((len(q), 1))
    counts, ways = _ways(size)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = ways + counts * np.log(q)[:, None] + (size - counts) * np.log1p(-q)[:, None]
    logs = np.where(np.isnan(logs), 0.0, logs)  # 0 · ln 0
    return np.asarray(np.exp(logs))


@lru_cache(maxsize=64)
def _ways(size: int) -> tuple[Array, Array]:
    from scipy.special import gammaln

    counts = np.arange(size + 1)
    return counts, gammaln(size + 1) - gammaln(counts + 1) - gammaln(size - counts + 1)


def _sum(one: Array, two: Array) -> Array:
    """The distribution of a sum."""
    if len(two) == 1 and two[0] == 1:
        return one
    if not len(one):
        return one
    if min(len(one), len(two)) < 200:
        return np.convolve(one, two)
    from scipy.signal import fftconvolve

    return np.asarray(fftconvolve(one, two).clip(0))
