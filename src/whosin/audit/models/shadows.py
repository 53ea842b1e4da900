"""Attacks that learn from shadow models: LiRA (Carlini and others 2022) and RMIA (Zarifzadeh, Liu,
Shokri 2024).

Contract: shadow models are trained on coins of their own. An attack turns the scores of one target
run into others that compare better between rows, from the shadows' scores and coins; it never sees
the target's coins, so that whatever it does keeps bounds valid. Which attack is used is decided on
the shadows alone, each in turn as a target of the others. (Counting guesses about *every* run, with
the other runs as its shadows, would not be valid: the guesses about one run would depend on coins
that are guessed in another.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from whosin.audit.confidence import lower
from whosin.audit.guesses import guess
from whosin.exact import Array

PLAIN, LIRA, RMIA = "plain", "LiRA", "RMIA"
FEWEST = 3
"""Shadows with which the attacks are tried."""
TRIALS = 6
"""Shadows that are taken as targets to compare the attacks."""
ERROR = 0.01
"""Of the bounds by which attacks are compared."""
HUGE = 1e100
PRIOR = 1.0
"""How many scores the average over all rows counts for, where one row has few."""


@dataclass(frozen=True)
class Shadows:
    """Scores of shadow models: a row a model, a column a canary."""

    coins: Array
    scores: Array

    def without(self, number: int) -> Shadows:
        """All but one."""
        kept = np.arange(len(self.coins)) != number
        return Shadows(self.coins[kept], self.scores[kept])


def plain(scores: Array, _shadows: Shadows) -> Array:
    """The scores as they are."""
    return scores


def lira(scores: Array, shadows: Shadows) -> Array:
    """ln of how much likelier a score is with the row than without, both normal; means of a row
    lean on those of all rows, and spreads are those of all rows."""
    known, targets = _finite(shadows.scores), _finite(scores)
    centre = known.mean()
    out_mean = _leaning(known, ~shadows.coins, np.full(known.shape[1], centre))
    shift = float((known - out_mean)[shadows.coins].mean()) if shadows.coins.any() else 0.0
    in_mean = _leaning(known, shadows.coins, out_mean + shift)
    spreads = [
        max(float((known - mean)[coins].std()), 1e-9) if coins.any() else 1.0
        for mean, coins in ((in_mean, shadows.coins), (out_mean, ~shadows.coins))
    ]
    inside, outside = (
        -(((targets - mean) / spread) ** 2) / 2 - math.log(spread)
        for mean, spread in zip((in_mean, out_mean), spreads, strict=True)
    )
    return np.asarray(inside - outside)


def rmia(scores: Array, shadows: Shadows) -> Array:
    """The share of all rows whose score rose less, over the mean of the shadows on the scale of
    likelihoods."""
    known, targets = _finite(shadows.scores), _finite(scores)
    top = known.max(axis=0)
    usual = top + np.log(np.exp(known - top).mean(axis=0))
    rise = targets - usual
    _values, groups, counts = np.unique(rise, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - counts)[groups] / len(rise))


ATTACKS: dict[str, Callable[[Array, Shadows], Array]] = {PLAIN: plain, LIRA: lira, RMIA: rmia}


def choose(shadows: Shadows) -> str:
    """The attack that guesses the shadows' own coins best."""
    if len(shadows.coins) < FEWEST:
        return PLAIN
    gains = dict.fromkeys(ATTACKS, 0.0)
    for number in range(min(TRIALS, len(shadows.coins))):
        others = shadows.without(number)
        for name, attack in ATTACKS.items():
            gains[name] += _gain(shadows.coins[number], attack(shadows.scores[number], others))
    return max(gains, key=lambda name: gains[name])


def _gain(coins: Array, scores: Array) -> float:
    """The log-odds that the surest guesses show, at the best number of them."""
    guesses = guess(coins, scores, both=True, fixed=False)
    pairs = zip(guesses.tried, guesses.right, strict=True)
    least = max((lower(right, tried, ERROR) for tried, right in pairs), default=0.5)
    return math.log(least / (1 - least)) if least > 0.5 else 0.0


def _leaning(known: Array, coins: Array, prior: Array) -> Array:
    """Means by column of the entries that coins mark, leaning on a prior."""
    sums = np.where(coins, known, 0.0).sum(axis=0)
    return np.asarray((sums + PRIOR * prior) / (coins.sum(axis=0) + PRIOR))


def _finite(scores: Array) -> Array:
    """Infinite scores moved to just beyond the others, and all of a size that can be squared."""
    scores = np.where(np.isfinite(scores), np.clip(scores, -HUGE, HUGE), scores)
    finite = scores[np.isfinite(scores)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    return np.clip(scores, low - 1.0, high + 1.0)
