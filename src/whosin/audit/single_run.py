"""One training run with many canaries (Steinke, Nasr, Jagielski 2023), with coins of any rate.

Contract: m examples were each included with probability p, independently; scores come from the
output of that one run (higher: more likely in). Guesses are made on the most extreme scores only
(`guesses`). Under ε-DP the odds that an example was in, given the output and any other examples,
are within e^{±ε} of p : (1 − p). So, given the output, "in" guesses are right like independent
coins of probability q_in = p e^ε / (p e^ε + 1 − p) at most, and "out" guesses with 1 − p in place
of p: the whole sequence, from the surest guess on.

*How many to guess.* Each number of guesses implies an ε at which this many right ones would be as
unlikely as `LOOK` of the error; the statistic is the largest of these. The p-value at an ε is the
probability that a sequence of coins reaches it at *any* of the numbers tried, which is exact, and
grows with ε and with the coins, because the statistic depends on neither.

*The rate.* The coins themselves say which rates are possible: an exact interval for p takes `COINS`
of the error. A declared rate outside of it is refused; the bounds hold for every rate inside it
(Berger and Boos 1994), so coins that are not what was declared raise no false alarm. "In" guesses
take the highest rate; guesses on both sides, where a higher rate helps one and hurts the other,
take cells of rates, "in" at the upper end of each and "out" at the lower.

*With δ.* Pr[in | output, others] exceeds q_in by a function of the output and the others whose
expectation is at most p (1 − q_in) δ, and so for "out"; averaging over unknown examples only makes
it smaller. So some guess of m is right beyond its coin with probability at most m δ (p (1 − q_in) +
(1 − p)(1 − q_out)), which is added to the p-value; for fair coins, where it is less, what their
Theorem 5.2 says, 2mδ · max over i of (g(i) − g(0))/i.

The rest of the error goes in halves to guesses on both sides and to "in" guesses alone, which bound
r and so γ and posteriors; ε is the better of the two. All bounds hold together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whosin.audit import confidence as exact
from whosin.audit.crossing import Rates, RunTest
from whosin.audit.guesses import Guesses, guess
from whosin.audit.result import AuditBounds
from whosin.audit.terms import read_delta
from whosin.errors import InvalidInput
from whosin.exact import Array, ranged

COINS = 0.2
"""The part of the error that pays for the interval of the rate."""
CONTRADICTED = 1e-6
"""Coins of a known rate are refused where at most this share of all runs is as far from it."""
FEWEST = 10


@dataclass(frozen=True)
class OneRun(AuditBounds):
    """The result of `one_run`.

    Attributes:
        rate: of inclusion, as declared; `rates` is the interval that the coins leave possible.
        heads: how many of the coins said "in".
        blind: all scores were the same, so that nothing could be learnt.
    """

    canaries: int
    both: Guesses
    inside: Guesses
    rate: float
    rates: Rates
    heads: int
    blind: bool = False

    @property
    def most(self) -> float:
        """The largest ε that these coins could show: that of guesses that are all right."""
        coins = np.arange(self.canaries) < self.heads
        told = np.where(coins, 1.0, -1.0) * (1 + np.arange(self.canaries))
        known = self.rates[0] == self.rates[1]
        terms = self.confidence, self.delta
        return one_run(coins, told, *terms, rate=self.rate, known_rate=known).epsilon

    def to_dict(self) -> dict[str, object]:
        """The result for programs."""
        guesses = {"both_sides": self.both.to_dict(), "in_only": self.inside.to_dict()}
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
        included: for each canary whether it was in the data: decided by independent coins.
        scores: for each canary how much the output looks as if it was in.
        delta: granted to the mechanism.
        rate: the probability with which each coin put its canary in.
        known_rate: the rate is known (you tossed the coins), so that none of the error pays for an
            interval of it; coins that contradict it are refused all the same.
        people: for each canary whose it is, where a person has several. One coin decides about all
            canaries of a person; their scores are added up, and the bounds are about people.
    """
    (level, error), granted = exact.read_confidence(confidence), read_delta(delta)
    inside, values = read_run(included, scores, people)
    declared, rates = read_coins(inside, rate, known_rate, error * COINS)
    share = error * (1 if known_rate else 1 - COINS) / 2
    both = guess(inside, values, both=True, fixed=granted > 0)
    top = guess(inside, values, both=False, fixed=granted > 0)
    count = len(inside)
    log_ratio, other = (
        0.0 if test is None else test.bound(share)
        for test in (
            RunTest.of(guesses, count, share, granted, rates, declared) for guesses in (top, both)
        )
    )
    return OneRun(
        epsilon=max(log_ratio, other),
        log_ratio=log_ratio,
        confidence=level,
        delta=granted,
        canaries=count,
        both=both,
        inside=top,
        rate=declared,
        rates=rates,
        heads=int(inside.sum()),
        blind=len(np.unique(values)) == 1,
    )


def read_coins(inside: Array, rate: object, known: object, error: float) -> tuple[float, Rates]:
    """The declared rate, and the rates that the bounds must hold for.

    Raises:
        InvalidInput: the coins contradict the rate.
    """
    if not isinstance(known, bool | np.bool_):
        raise InvalidInput("known_rate", "True or False", known)
    declared = ranged(rate, "rate", "strictly between 0 and 1")
    rates = possible_rates(inside, CONTRADICTED if known else error)
    if not rates[0] <= declared <= rates[1]:
        heads = int(inside.sum())
        accepted = f"the results of independent coins, in with probability {float(declared):g}"
        if declared == 0.5:
            accepted = "the results of fair coins (declare another rate of inclusion by `rate`)"
        raise InvalidInput("included", accepted, f"{heads} of {len(inside)} in")
    return float(declared), (float(declared), float(declared)) if known else rates


def possible_rates(coins: Array, error: float) -> Rates:
    """An exact interval for the rate of the coins."""
    heads, count = int(coins.sum()), len(coins)
    return exact.lower(heads, count, error / 2), exact.upper(heads, count, error / 2)


def read_run(included: object, scores: object, people: object = None) -> tuple[Array, Array]:
    """Coins and scores, a canary each, or a person each."""
    from whosin.audit.attack_scores import read_scores

    values = read_scores(scores, "scores")
    coins = np.asarray(included)
    if coins.ndim != 1 or len(coins) != len(values):
        got = f"{coins.shape} and {values.shape}"
        raise InvalidInput("included and scores", "lists of one length", got)
    if coins.dtype == object and all(isinstance(coin, _COINS) for coin in coins.tolist()):
        coins = coins.astype(np.float64)
    if coins.dtype.kind not in "biuf" or not np.isin(coins, (0, 1)).all():
        raise InvalidInput("included", "True or False (1 or 0) for each canary", "something else")
    flips = coins.astype(bool)
    if people is not None:
        flips, values = by_person(flips, values, people)
    if len(flips) < FEWEST:
        accepted = f"at least {FEWEST} canaries (some 1,000 show most leaks)"
        raise InvalidInput("included", accepted, len(flips))
    return flips, values


def by_person(coins: Array, scores: Array, people: object) -> tuple[Array, Array]:
    """One coin and one score a person: the sum of the scores of all of their canaries."""
    names = np.asarray(people)
    if names.shape != coins.shape:
        got = f"{names.shape} and {coins.shape}"
        raise InvalidInput("people and included", "lists of one length", got)
    _names, who = np.unique(names, return_inverse=True)
    canaries = np.bincount(who)
    inside = np.bincount(who, weights=coins)
    split = int(((inside > 0) & (inside < canaries)).sum())
    if split:
        accepted = "one coin for all canaries of a person"
        raise InvalidInput("included", accepted, f"{split} people whose canaries were in and out")
    with np.errstate(invalid="ignore"):
        sums = np.bincount(who, weights=scores)
    if np.isnan(sums).any():
        accepted = "not both infinities among the canaries of one person"
        raise InvalidInput("scores", accepted, "both")
    return inside > 0, sums


_COINS = (bool, int, float, np.generic)
