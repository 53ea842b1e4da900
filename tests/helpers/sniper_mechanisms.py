"""The mechanisms that DP-Sniper was published with (Bichsel et al. 2021), written from the papers.

Each has the pair of inputs under which its published run found most, and the bound of that run: the
better of its two classifiers, with 90% confidence, from 200 million draws of each world for the
last count alone. Seconds are those of the search over all inputs and the last count, on the
authors' machine. `EQUAL` has what DP-Sniper shows with as many draws as ours. `truth` is the
mechanism's level, or the least upper bound that is known for it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Draw = Callable[[Any, int, np.random.Generator], Array]
CLAIM = 0.1
STOPPED, BELOW = -1.0, 0.0


def laplace(value: Any, size: int, rng: np.random.Generator, scale: float = 10.0) -> Array:
    return float(value) + rng.laplace(0, scale, size)


def truncated_geometric(count: int, size: int, rng: np.random.Generator) -> Array:
    """Noise by exact whole numbers, on 0 … 5 (Balcer and Vadhan 2018, GeoSample)."""
    people, k = 5, math.ceil(math.log(2 / CLAIM))
    b, e = 2**k, 2**k + 1
    total = (2 ** (k + 1) + 1) * e ** (people - 1)
    below = [b ** (count - z) * e ** (people - count + z) for z in range(count)]
    above = [total - b ** (z - count + 1) * e ** (people - 1 - z + count) for z in range(count, 5)]
    ends = np.array([*below, *above, total])
    return np.searchsorted(ends, rng.integers(1, total + 1, size))


def histogram(counts: Array, size: int, rng: np.random.Generator, scale: float) -> Array:
    return counts + rng.laplace(0, scale, (size, len(counts)))


def noisy_max(
    queries: Array, size: int, rng: np.random.Generator, *, exponential: bool, shown: bool
) -> Array:
    """The place of the largest noisy answer, or (the mistake) that answer itself."""
    shape, scale = (size, len(queries)), 2 / CLAIM
    noise = rng.exponential(scale, shape) if exponential else rng.laplace(0, scale, shape)
    noisy = queries + noise
    return np.asarray(noisy.max(axis=1) if shown else noisy.argmax(axis=1))


def sparse_vector(
    queries: Array,
    size: int,
    rng: np.random.Generator,
    threshold: float,
    limit_scale: float,
    query_scale: float,
    *,
    stop: bool = True,
    shown: bool = False,
    again: float | None = None,
) -> Array:
    """Which answers are above a noisy threshold: 1 or 0, or the noisy answer; stopped after the
    first one (`stop`). Variants by Lyu, Su and Li 2017. With one answer to give, a fresh threshold
    after it changes nothing."""
    noise = rng.laplace(0, query_scale, (size, len(queries))) if query_scale else 0.0
    noisy = queries + noise
    above = noisy >= threshold + rng.laplace(0, limit_scale, (size, 1))
    result = np.where(above, noisy, -1000.0) if shown else above.astype(float)
    if stop:
        before: Array = np.cumsum(above, axis=1) - above
        result = np.where(before > 0, -2000.0 if shown else STOPPED, result)
    return np.asarray(result)


def numerical_svt(queries: Array, size: int, rng: np.random.Generator) -> Array:
    """Noisy answers above a noisy threshold, at most two (Wang et al. 2019)."""
    shape, most = (size, len(queries)), 2
    above = queries + rng.laplace(0, 6 * most / CLAIM, shape) >= 1 + rng.laplace(
        0, 3 / CLAIM, (size, 1)
    )
    answers = np.where(above, queries + rng.laplace(0, 3 * most / CLAIM, shape), BELOW)
    before: Array = np.cumsum(above, axis=1) - above
    return np.where(before >= most, -1000.0, answers)


def prefix_sum(queries: Array, size: int, rng: np.random.Generator) -> Array:
    noisy = queries + rng.laplace(0, 1 / CLAIM, (size, len(queries)))
    return np.cumsum(noisy, axis=1)


def _filter(value: int) -> Array:
    """Four places of twenty for a value; those of 0 and 1 are taken to be eight different ones."""
    seen: list[int] = []
    for seed in range(1000):
        place = hashlib.sha256(f"{seed}".encode()).digest()[0] % 20
        if place not in seen:
            seen.append(place)
    chosen = np.zeros(20)
    chosen[seen[4 * int(value) : 4 * int(value) + 4]] = 1
    return chosen


def rappor(value: int, size: int, rng: np.random.Generator, *, once: bool) -> Array:
    """A Bloom filter with randomised response, once or twice (Erlingsson et al. 2014)."""
    forget = 0.95 if once else 0.75
    coins = rng.random((size, 20))
    kept = np.where(coins < forget / 2, 1.0, np.where(coins < forget, 0.0, _filter(value)))
    if once:
        return kept
    return (rng.random((size, 20)) < np.where(kept == 1, 0.55, 0.45)).astype(float)


def laplace_parallel(value: Any, size: int, rng: np.random.Generator) -> Array:
    return float(value) + rng.laplace(0, 200, (size, 20))


def both_svt(queries: Array, size: int, rng: np.random.Generator) -> Array:
    """Variants 3 and 4 on the same answers, stopped after two."""
    parts = []
    for limit, scale, shown in ((20.0, 40.0, True), (40.0, 4 / 0.3, False)):
        noisy = queries + rng.laplace(0, scale, (size, len(queries)))
        above = noisy >= 1 + rng.laplace(0, limit, (size, 1))
        result = np.where(above, noisy, -1000.0) if shown else above.astype(float)
        before: Array = np.cumsum(above, axis=1) - above
        parts.append(np.where(before >= 2, -2000.0 if shown else STOPPED, result))
    return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class Published:
    """A mechanism, where it was attacked, and what DP-Sniper showed."""

    name: str
    draw: Draw
    with_: Any
    without: Any
    bound: float
    seconds: float
    truth: float

    def gridded(self, value: Any, size: int, rng: np.random.Generator) -> Array:
        """Outputs on a grid of 2^-20: the bits of floats tell nothing more."""
        return np.round(self.draw(value, size, rng) * 2.0**20) / 2.0**20


def _ones(length: int, value: float = 1.0) -> Array:
    return np.full(length, value)


def _halves(up: float, down: float) -> Array:
    return np.repeat([up, down], 5).astype(float)


def _svt(threshold: float, limit: float, scale: float, **how: Any) -> Draw:
    return partial(sparse_vector, threshold=threshold, limit_scale=limit, query_scale=scale, **how)


CHANGED = np.array([0.0, 1, 1, 1, 1])
SPREAD = np.array([0.0, 2, 2, 2, 2])
INF = math.inf
PUBLISHED = [
    Published("Laplace", laplace, 0.0, 1.0, 0.0976, 22, 0.1),
    Published("TruncatedGeometric", truncated_geometric, 2, 1, 0.1156, 20, math.log(9 / 8)),
    Published("NoisyHist1", partial(histogram, scale=10), CHANGED, _ones(5), 0.0978, 38, 0.1),
    Published("NoisyHist2", partial(histogram, scale=0.1), CHANGED, _ones(5), 4.602, 41, 10),
    *[
        Published(
            f"ReportNoisyMax{number}",
            partial(noisy_max, exponential=exponential, shown=shown),
            *inputs,
            bound,
            seconds,
            truth,
        )
        for number, exponential, shown, inputs, bound, seconds, truth in (
            (1, False, False, (_ones(5), SPREAD), 0.0925, 62, 0.1),
            (2, True, False, (_ones(5), SPREAD), 0.0979, 59, 0.1),
            (3, False, True, (_ones(5), _ones(5, 2)), 0.2488, 437, 0.25),
            (4, True, True, (_ones(5), _ones(5, 2)), 0.3534, 451, INF),
        )
    ],
    Published("SVT1", _svt(0.5, 20, 40), _halves(0, 1), _halves(1, 0), 0.0858, 126, 0.1),
    Published("SVT2", _svt(1, 20, 40), _halves(0, 1), _halves(1, 0), 0.0859, 160, 0.1),
    Published("SVT3", _svt(1, 20, 20, shown=True), _halves(0, 1), _halves(1, 0), 0.1822, 880, INF),
    Published("SVT4", _svt(1, 40, 4 / 0.3), _ones(10), _halves(2, 0), 0.1696, 815, 0.18),
    Published("SVT5", _svt(1, 20, 0, stop=False), _halves(2, 0), _ones(10), 1.7612, 59, INF),
    Published("SVT6", _svt(1, 20, 20, stop=False), _halves(1, 0), _halves(0, 1), 0.272, 96, INF),
    Published(
        "RAPPOR", partial(rappor, once=False), 1, 0, 0.3008, 529, 8 * math.log(1.025 / 0.975)
    ),
    Published(
        "OneTimeRAPPOR", partial(rappor, once=True), 0, 1, 0.5999, 408, 8 * math.log(0.525 / 0.475)
    ),
    Published("LaplaceParallel", laplace_parallel, 1.0, 0.0, 0.035, 104, 0.1),
    Published("SVT34Parallel", both_svt, _ones(10), _halves(2, 0), 0.2616, 1118, INF),
    Published("PrefixSum", prefix_sum, _ones(10), _ones(10, 0), 0.5774, 985, 1.0),
    Published("NumericalSVT", numerical_svt, _halves(1, 0), _halves(0, 1), 0.0345, 151, 0.1),
]
EQUAL = {
    "Laplace": (0.0711, 11.7),
    "TruncatedGeometric": (0.0789, 9.4),
    "NoisyHist1": (0.0579, 13.0),
    "NoisyHist2": (4.5740, 12.1),
    "ReportNoisyMax1": (0.0528, 9.4),
    "ReportNoisyMax2": (0.0487, 9.9),
    "ReportNoisyMax3": (0.2147, 11.4),
    "ReportNoisyMax4": (0.2975, 10.2),
    "SVT1": (0.0259, 15.0),
    "SVT2": (0.0318, 13.9),
    "SVT3": (0.0873, 15.4),
    "SVT4": (0.1261, 11.9),
    "SVT5": (1.7385, 10.5),
    "SVT6": (0.2546, 13.2),
    "RAPPOR": (0.2912, 16.7),
    "OneTimeRAPPOR": (0.6437, 12.3),
    "LaplaceParallel": (0.0000, 12.4),
    "SVT34Parallel": (0.1706, 24.3),
    "PrefixSum": (0.5126, 10.8),
    "NumericalSVT": (0.0000, 12.6),
}
"""Recorded, one run (seed 1): the bound of DP-Sniper with 10^6 draws of each world in all, at 90%
confidence, on the inputs and the mechanisms above (on the grid), and the processor seconds of both
its classifiers, of which the better counts; 0 where neither showed anything. Of the draws 300,000
train (in batches of 3,000, so that there are as many steps as in its published runs), 100,000
choose the threshold and 600,000 are counted; one thread, its default settings otherwise.
"""
