"""A small net: one hidden layer, trained on the rows of both worlds.

Contract: the score of a row is its log odds of "with". Numbers are clipped before they are
standardised, so that heavy tails, infinities and missing numbers are ordinary inputs. The same rows
give the same net.

The net is written out here because it is faster than scikit-learn's: a draft of it took 0.35 to
0.65 processor seconds against 0.95 to 1.5 for 60,000 rows of 10 or 20 numbers, with 64 hidden units
and 10 passes, at equal strength. For a hidden product of two numbers, a sum of five products and a
ring in two hidden directions the areas under the ROC curve were .800, .729 and .827, scikit-learn's
.797, .726 and .826; boosted trees had .699, .693 and .628. One seed each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from whosin.exact import Array

HIDDEN, PASSES = 64, 10
"""Units of the hidden layer, and how often training sees each row."""
BATCHES, SMALLEST, LARGEST = 64, 64, 512
"""Batches in a pass where that makes batches of a size between these two."""
RATE, DECAY = 0.01, 1e-3
"""The first step of Adam (it falls to 0 as a cosine), and the weight of squares."""
MOMENTA = 0.9, 0.999
ENDS, QUARTILES, REACH = (0.005, 0.995), (0.25, 0.75), 4.0
"""A number is clipped at these quantiles, and where its quartiles differ also at this many times
their distance from them."""
LOOKED = 20_000
"""Rows that are looked at for quantiles."""
BLOCK = 16_384
"""Rows that are worked on at a time."""
STEEP = 30.0
Weights = tuple[Array, Array, Array, Array]
"""Of the hidden layer, its constants, of the sum, and its constant."""


@dataclass(frozen=True, eq=False)
class Scale:
    """Numbers between two ends, standardised; a column that does not vary is 0."""

    low: Array
    high: Array
    centre: Array
    width: Array

    @classmethod
    def of(cls, rows: Array) -> Self:
        """The ends, centres and widths of each column."""
        some = rows[:: max(1, len(rows) // LOOKED)]
        some = np.where(np.isnan(some), 0.0, some)
        low, one, three, high = np.quantile(
            some, (ENDS[0], *QUARTILES, ENDS[1]), axis=0, method="inverted_cdf"
        )
        with np.errstate(over="ignore", invalid="ignore"):
            reach = np.where(three > one, REACH * (three - one), np.inf)
            low, high = np.maximum(low, one - reach), np.minimum(high, three + reach)
            clipped = np.clip(some, low, high)
            centre, width = clipped.mean(axis=0), clipped.std(axis=0)
        sound = (high > low) & np.isfinite(centre) & np.isfinite(width) & (width > 0)
        return cls(
            np.where(sound, low, 0.0),
            np.where(sound, high, 0.0),
            np.where(sound, centre, 0.0),
            np.where(sound, width, 1.0),
        )

    def __call__(self, rows: Array) -> Array:
        known = np.where(np.isnan(rows), self.centre, rows)
        return ((np.clip(known, self.low, self.high) - self.centre) / self.width).astype(np.float32)


@dataclass(frozen=True, eq=False)
class SmallNet:
    """A hidden layer of rectified units, and a sum of them."""

    scale: Scale
    weights: Weights

    @classmethod
    def fit(cls, rows: Array, labels: Array) -> Self:
        """Learn by Adam (Kingma and Ba 2015), from the logistic loss."""
        rng = np.random.default_rng(0)
        scale = Scale.of(rows)
        return cls(scale, _train(scale(rows), labels.astype(np.float32), rng))

    def decision_function(self, rows: Array) -> Array:
        """The log odds of "with"."""
        hidden, bias, out, constant = self.weights
        scores = []
        for start in range(0, len(rows), BLOCK):
            units = self.scale(rows[start : start + BLOCK]) @ hidden + bias
            scores.append(np.maximum(units, 0, out=units) @ out + constant)
        return np.concatenate(scores, dtype=np.float64) if scores else np.zeros(0)


def _train(rows: Array, labels: Array, rng: np.random.Generator) -> Weights:
    count, width = rows.shape
    weights = _start(width, rng)
    first, second = ([np.zeros_like(each) for each in weights] for _ in MOMENTA)
    size = min(count, max(SMALLEST, min(LARGEST, count // BATCHES)))
    starts = range(0, count - size + 1, size)
    step, steps = 0, PASSES * len(starts)
    for _ in range(PASSES):
        order = rng.permutation(count)
        for start in starts:
            chosen = order[start : start + size]
            slopes = _slopes(weights, rows[chosen], labels[chosen])
            step += 1
            falling = (1 + math.cos(math.pi * step / steps)) / 2
            rate = falling * RATE * math.sqrt(1 - MOMENTA[1] ** step) / (1 - MOMENTA[0] ** step)
            for weight, mean, square, slope in zip(weights, first, second, slopes, strict=True):
                mean += (1 - MOMENTA[0]) * (slope - mean)
                square += (1 - MOMENTA[1]) * (slope * slope - square)
                weight -= np.float32(rate) * mean / (np.sqrt(square) + np.float32(1e-8))
    hidden, bias, out, constant = weights
    return hidden, bias, out, constant


def _start(width: int, rng: np.random.Generator) -> list[Array]:
    """Weights as Glorot and Bengio (2010) begin, and no constants."""
    ends = math.sqrt(6 / (width + HIDDEN)), math.sqrt(6 / (HIDDEN + 1))
    hidden = rng.uniform(-ends[0], ends[0], (width, HIDDEN))
    out = rng.uniform(-ends[1], ends[1], HIDDEN)
    weights = hidden, np.zeros(HIDDEN), out, np.zeros(1)
    return [each.astype(np.float32) for each in weights]


def _slopes(weights: list[Array], rows: Array, labels: Array) -> Weights:
    """The gradient of the mean logistic loss, with the penalty of the hidden weights."""
    hidden, bias, out, constant = weights
    units = rows @ hidden
    units += bias
    np.maximum(units, 0, out=units)
    odds = np.clip(units @ out + constant, -STEEP, STEEP)
    error = (1 / (1 + np.exp(-odds)) - labels) / np.float32(len(rows))
    back = np.outer(error, out)
    back *= units > 0
    penalty = np.float32(DECAY / len(rows))
    return (
        rows.T @ back + penalty * hidden,
        back.sum(axis=0),
        error @ units,
        error.sum(keepdims=True),
    )
