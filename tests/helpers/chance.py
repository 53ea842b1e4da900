"""Chance in tests: the same draws in every run, so that nothing fails by bad luck.

Contract: after `start(name)` all that this process draws follows from the name: `random`, NumPy
(also generators that are made without a seed), the system's bytes as Python reads them, which are
the package's secure source, its seeds, its inclusion bits, salts and names, and its private
selections, which OpenDP would draw from a generator of its own. The first thread has a stream of
its own, so that servers and jobs beside it change nothing. A process that is kept for tasks starts
each from `name_task`; any other has its noise from the system. `fresh()` gives all of them back to
chance. A test starts from its node id and a fixture from its own name, so that neither depends on
what ran before; soak tests draw afresh, and so do all tests when `WHOSIN_FRESH` is set.
"""

from __future__ import annotations

import os
import random
import threading
import zlib
from collections import Counter
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from whosin.noise import selection

system: Any = random
"""Its `_urandom` is where `secrets`, and NumPy for the seeds that nobody gave, have theirs from."""
urandom = os.urandom
measurement = selection._measurement
FRESH = bool(os.environ.get("WHOSIN_FRESH"))

tasks: Counter[str] | None = None
"""Where tests repeat, those of the present one in other processes, by their kinds."""
started = ""


class Streams(threading.local):
    """Each thread's generator: that of the first thread, and of others as they come."""

    def __init__(self, seed: int, others: count[int]) -> None:
        first = threading.current_thread() is threading.main_thread()
        self.generator = np.random.default_rng([seed, 0 if first else next(others)])


@dataclass(frozen=True)
class Selection:
    """OpenDP's measurement, with noise of its law from our streams: of k places, each is that of
    the largest noisy score among those that are left."""

    opendp: Any
    streams: Streams
    k: int
    scale: float
    sign: int
    gumbel: bool

    def map(self, change: float) -> Any:
        return self.opendp.map(change)

    def __call__(self, scores: Any) -> list[int]:
        generator = self.streams.generator
        noise = generator.gumbel if self.gumbel else generator.exponential
        left = self.sign * scores.astype(np.longdouble)  # which holds any 64-bit integer
        chosen = []
        for _ in range(self.k):
            chosen.append(int(np.argmax(left + noise(scale=self.scale, size=left.size))))
            left[chosen[-1]] = -np.inf
        return chosen


def start(name: str) -> None:
    global tasks, started
    tasks, started = Counter(), name
    seed = zlib.crc32(name.encode())
    random.seed(seed)
    np.random.seed(seed)
    owner, streams = os.getpid(), Streams(seed, count(1))

    def draw(length: int) -> bytes:
        return streams.generator.bytes(length) if os.getpid() == owner else urandom(length)

    def measure(
        kind: str, k: int, scale: float, monotonic: bool, negate: bool, gumbel: bool = False
    ) -> Any:
        opendp = measurement(kind, k, scale, monotonic, negate, gumbel)
        if os.getpid() != owner:
            return opendp
        return Selection(opendp, streams, k, scale, -1 if negate else 1, gumbel)

    os.urandom = system._urandom = draw
    selection._measurement = measure  # type: ignore[assignment]


def name_task(kind: str) -> str | None:
    """The name that another process starts from for a task of this test."""
    if tasks is None:
        return None
    tasks[kind] += 1
    return f"{started} {kind} {tasks[kind]}"


def fresh() -> None:
    global tasks
    tasks = None
    random.seed()
    np.random.seed()
    os.urandom = system._urandom = urandom
    selection._measurement = measurement


def likely_counts(probability: object, runs: int) -> tuple[int, int]:
    """The least and the largest count of an event in independent runs, but for a chance of 10^-11:
    what a test may allow whose draws are not repeated. Where it tries fewer than a hundred counts,
    it fails by chance less than once in 10^9 times; a law whose range lies beside this one is
    refuted whenever the true one is not."""
    from scipy.stats import binom

    chance = float(probability)  # type: ignore[arg-type]
    return int(binom.ppf(5e-12, runs, chance)), int(binom.isf(5e-12, runs, chance))
