"""Mechanisms to audit (THEORY 10), claimed ε = 0.1, and how often an audit raises a false alarm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

CLAIM = 0.1

Array = NDArray[Any]


def laplace(value: float, size: int, rng: np.random.Generator) -> Array:
    """On a grid: the bits of floats would tell more."""
    return value + np.round(rng.laplace(0, 1 / CLAIM, size) * 2**20) / 2**20


def noisy_max(queries: Array, size: int, rng: np.random.Generator) -> Array:
    noisy = queries + rng.laplace(0, 2 / CLAIM, (size, len(queries)))
    best: Array = np.argmax(noisy, axis=1)
    return best


def _above(
    queries: Array,
    size: int,
    rng: np.random.Generator,
    threshold_scale: float,
    query_scale: float,
) -> tuple[Array, Array]:
    noisy = queries + rng.laplace(0, query_scale, (size, len(queries)))
    above = noisy >= 0.5 + rng.laplace(0, threshold_scale, (size, 1))
    return np.where(above.any(axis=1), above.argmax(axis=1), len(queries)), noisy


def svt1(queries: Array, size: int, rng: np.random.Generator) -> Array:
    """The number of answers "below" before the first "above"."""
    return _above(queries, size, rng, 2 / CLAIM, 4 / CLAIM)[0]


def svt3(queries: Array, size: int, rng: np.random.Generator) -> Array:
    """The same, and the noisy value that was above."""
    stop, noisy = _above(queries, size, rng, 2 / CLAIM, 2 / CLAIM)
    noisy = np.round(noisy * 2**20) / 2**20
    padded = np.concatenate([noisy, np.full((size, 1), -1000.0)], axis=1)
    return np.column_stack([stop, padded[np.arange(size), stop]])


def svt4(queries: Array, size: int, rng: np.random.Generator) -> Array:
    return _above(queries, size, rng, 4 / CLAIM, 4 / (3 * CLAIM))[0]


def step(length: int, last: int) -> tuple[Array, Array]:
    """The last so many queries up, the others down."""
    up = (np.arange(length) >= length - last).astype(float)
    return up, 1 - up


def response(epsilon: float) -> Callable[[int, int, np.random.Generator], Array]:
    """Randomised response of exactly this ε."""
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))

    def draw(truth: int, size: int, rng: np.random.Generator) -> Array:
        return np.where(rng.random(size) < keep, truth, 1 - truth)

    return draw


def alarms(audit: Callable[[int], float], truth: float, runs: int) -> int:
    """How often the bound is above the truth."""
    return sum(audit(run) > truth for run in range(runs))


def most_alarms(runs: int, error: float = 0.05) -> int:
    """More alarms than this have a chance of less than one in a million."""
    return int(binom.isf(1e-6, runs, error))
