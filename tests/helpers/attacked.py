"""Mechanisms to audit (THEORY 10), claimed ε = 0.1, and how often an audit raises a false alarm."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.stats import binom

CLAIM = 0.1


def laplace(value, size, rng):
    return value + rng.laplace(0, 1 / CLAIM, size)


def noisy_max(queries, size, rng):
    return (queries + rng.laplace(0, 2 / CLAIM, (size, len(queries)))).argmax(axis=1)


def _above(queries, size, rng, threshold_scale, query_scale):
    noisy = queries + rng.laplace(0, query_scale, (size, len(queries)))
    above = noisy >= 0.5 + rng.laplace(0, threshold_scale, (size, 1))
    return np.where(above.any(axis=1), above.argmax(axis=1), len(queries)), noisy


def svt1(queries, size, rng):
    """The number of answers "below" before the first "above"."""
    return _above(queries, size, rng, 2 / CLAIM, 4 / CLAIM)[0]


def svt3(queries, size, rng):
    """The same, and the noisy value that was above."""
    stop, noisy = _above(queries, size, rng, 2 / CLAIM, 2 / CLAIM)
    padded = np.concatenate([noisy, np.full((size, 1), -1000.0)], axis=1)
    return np.column_stack([stop, padded[np.arange(size), stop]])


def svt4(queries, size, rng):
    return _above(queries, size, rng, 4 / CLAIM, 4 / (3 * CLAIM))[0]


def step(length, last):
    """The last so many queries up, the others down."""
    up = (np.arange(length) >= length - last).astype(float)
    return up, 1 - up


def response(epsilon):
    """Randomised response of exactly this ε."""
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))

    def draw(truth, size, rng):
        return np.where(rng.random(size) < keep, truth, 1 - truth)

    return draw


def alarms(audit: Callable[[int], float], truth: float, runs: int) -> int:
    """How often the bound is above the truth."""
    return sum(audit(run) > truth for run in range(runs))


def most_alarms(runs: int, error: float = 0.05) -> int:
    """More alarms than this have a chance of less than one in a million."""
    return int(binom.isf(1e-6, runs, error))
