"""One training run with many canaries (Steinke, Nasr, Jagielski 2023).

Contract: m examples were each included with probability 1/2, independently; scores come from the
output of that one run (higher: more likely in). Guesses are made on the most extreme scores only.
Under ε-DP, given the output, the guesses are right like independent coins of probability
q = e^ε/(1+e^ε) at most (their Proposition 5.1), not only one number of guesses but the whole
sequence, from the surest guess on. So the correction for choosing how many to guess is exact: the
p-value is the probability that such a sequence, at *any* of the numbers tried, looks at least as
surprising as the most surprising one seen.

With δ, given the output, at most F further guesses are right, with E F ≤ 2mδ (their Theorem 5.2);
the p-value grows by at most 2mδ · max over i of (g(i) − g(0))/i, where g(i) is the p-value when i
right guesses are given away, bounded for i ≥ 1 by a sum over the numbers tried.

Half of the error goes to guesses on both sides ("in" and "out"), half to "in" guesses alone, which
bound r and so γ and posteriors (THEORY 10); ε is the better of the two. All bounds hold together.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from whosin.audit.confidence import ROUNDING, at_least, read_confidence
from whosin.audit.result import Bounds
from whosin.audit.terms import read_delta
from whosin.errors import InvalidInput
from whosin.exact import Array

LARGEST = 40.0
"""The largest ε that is looked at; m guesses cannot show more than about ln m."""
CLOSE = 1e-4


@dataclass(frozen=True)
class Guesses:
    """How many of the surest guesses were right, for each number of guesses that was tried."""

    tried: tuple[int, ...]
    right: tuple[int, ...]

    def to_dict(self) -> dict[str, object]:
        """The guesses for programs."""
        return {"tried": list(self.tried), "right": list(self.right)}


@dataclass(frozen=True)
class OneRun(Bounds):
    """The result of `one_run`."""

    canaries: int
    both: Guesses
    inside: Guesses

    def to_dict(self) -> dict[str, object]:
        """The result for programs."""
        guesses = {"both_sides": self.both.to_dict(), "in_only": self.inside.to_dict()}
        return {**super().to_dict(), "canaries": self.canaries, "guesses": guesses}


def one_run(
    included: object, scores: object, confidence: object = 0.95, delta: object = 0
) -> OneRun:
    """Bound the leakage of one run from below.

    Args:
        included: for each canary whether it was in the data: decided by fair, independent coins.
        scores: for each canary how much the output looks as if it was in.
        delta: granted to the mechanism.
    """
    (level, error), granted = read_confidence(confidence), read_delta(delta)
    inside, values = _read(included, scores)
    count = len(inside)
    order = np.argsort(-values, kind="stable")
    truth = inside[order]
    sides = np.empty(count, dtype=bool)  # in, out, in, out …: from both ends inwards
    sides[0::2] = truth[: (count + 1) // 2]
    sides[1::2] = ~truth[::-1][: count // 2]
    both, top = _guesses(sides, granted), _guesses(truth, granted)
    log_ratio = bound(top, count, error / 2, granted)
    epsilon = max(log_ratio, bound(both, count, error / 2, granted))
    return OneRun(
        epsilon=epsilon,
        log_ratio=log_ratio,
        confidence=level,
        delta=granted,
        canaries=count,
        both=both,
        inside=top,
    )


def _read(included: object, scores: object) -> tuple[Array, Array]:
    from whosin.audit.scores import read_scores

    values = read_scores(scores, "scores")
    coins = np.asarray(included)
    if coins.ndim != 1 or len(coins) != len(values):
        got = f"{coins.shape} and {values.shape}"
        raise InvalidInput("included and scores", "lists of one length", got)
    if coins.dtype.kind not in "biuf" or not np.isin(coins, (0, 1)).all():
        raise InvalidInput("included", "True or False (1 or 0) for each canary", "something else")
    count, heads = len(coins), int(coins.sum())
    if count < 10:
        raise InvalidInput("included", "at least 10 canaries (some 1,000 show most leaks)", count)
    # Hoeffding: fair coins are further off than this once in 10^9.
    if abs(heads - count / 2) > math.sqrt(count * math.log(2e9) / 2):
        accepted = "the results of fair coins, each canary in with probability 1/2"
        raise InvalidInput("included", accepted, f"{heads} of {count} in")
    return coins.astype(bool), values


def _guesses(right: Array, delta: float) -> Guesses:
    """How many are right among the first k, for some k fixed by the number of canaries alone.

    With δ few and large ones: a guess that is given away weighs most among few.
    """
    count = len(right)
    steps = [step / 2 for step in range(15)] if not delta else [0, 1, 2, 3]
    tried = sorted({max(1, round(count / 2**step)) for step in steps})
    tried = [size for size in tried if size >= min(5, count)]
    totals = np.cumsum(right)
    return Guesses(tuple(tried), tuple(int(totals[size - 1]) for size in tried))


def bound(guesses: Guesses, canaries: int, error: float, delta: float) -> float:
    """The largest ε whose p-value is at most the error."""
    held, refused = 0.0, 0.5
    if p_value(guesses, canaries, 0.0, delta) > error:
        return 0.0
    while refused < LARGEST and p_value(guesses, canaries, refused, delta) <= error:
        held, refused = refused, refused * 2
    while refused - held > CLOSE * max(refused, 0.1):
        middle = (held + refused) / 2
        if p_value(guesses, canaries, middle, delta) <= error:
            held = middle
        else:
            refused = middle
    return held


def p_value(guesses: Guesses, canaries: int, epsilon: float, delta: float = 0.0) -> float:
    """How likely it is, at most, to look as surprising as this somewhere, under (ε, δ)-DP."""
    q = 1 / (1 + math.exp(-epsilon)) * (1 + 1e-12)
    pairs = zip(guesses.right, guesses.tried, strict=True)
    seen = min(at_least(right, size, q) for right, size in pairs) * (1 + ROUNDING)
    # The fewest right guesses, at each number tried, that are as surprising.
    needed = [_fewest(size, q, seen) for size in guesses.tried]
    crossing = _crosses(guesses.tried, needed, q)
    if delta:
        from scipy.stats import binom

        given = np.arange(1, canaries + 1)
        sums = np.zeros(canaries)
        for size, least in zip(guesses.tried, needed, strict=True):
            sums += binom.sf(least - given - 1, size, q)
        gains = (np.minimum(sums, 1.0) - crossing) / given
        crossing += 2 * canaries * delta * max(0.0, float(gains.max()))
    return min(1.0, crossing * (1 + ROUNDING) + 1e-12)


def _fewest(size: int, q: float, tail: float) -> int:
    """The fewest v with Pr[Binomial(size, q) ≥ v] ≤ tail; size + 1 where there is none."""
    return bisect_left(range(size + 1), True, key=lambda least: at_least(least, size, q) <= tail)


def _crosses(sizes: tuple[int, ...], needed: list[int], q: float) -> float:
    """Pr[at some size k at least needed[k] of the first k coins are right], coins of probability q.

    Step by step from one size to the next: the distribution of right guesses among those who have
    not crossed yet.
    """
    from scipy.signal import fftconvolve
    from scipy.stats import binom

    alive, crossed, done = np.ones(1), 0.0, 0
    for size, least in zip(sizes, needed, strict=True):
        step = binom.pmf(np.arange(size - done + 1), size - done, q)
        short = min(len(alive), len(step)) < 200
        alive = np.convolve(alive, step) if short else fftconvolve(alive, step).clip(0)
        crossed += float(alive[least:].sum())
        alive, done = alive[:least], size
        if not len(alive):
            break
    return crossed
