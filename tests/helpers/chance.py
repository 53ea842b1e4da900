"""Chance in tests: the same draws in every run, so that nothing fails by bad luck.

Contract: after `start(name)` the generators of `random` and NumPy (also those that are made without
a seed) and the package's secure source give what follows from the name, in this process; a forked
process has its noise from the system again. `fresh()` gives all of them back to chance. A test
starts from its node id and a fixture from its own name, so that neither depends on what ran before;
soak tests draw afresh, and so do all tests when `WHOSIN_FRESH` is set.
"""

from __future__ import annotations

import os
import random
import zlib
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from numpy.random import bit_generator

from whosin.noise.source import SystemSource

system = SystemSource.draw
seeds: Any = bit_generator  # its randbits is where NumPy has the seeds from that nobody gave
randbits = seeds.randbits
FRESH = bool(os.environ.get("WHOSIN_FRESH"))

slow = [HealthCheck.too_slow, HealthCheck.data_too_large]  # a busy machine is no fault of a test
settings.register_profile(
    "same", derandomize=True, deadline=None, database=None, suppress_health_check=slow
)
settings.register_profile("fresh", deadline=None, database=None, suppress_health_check=slow)


def start(name: str) -> None:
    seed = zlib.crc32(name.encode())
    random.seed(seed)
    np.random.seed(seed)
    seeds.randbits = random.Random(seed).getrandbits
    owner, stream = os.getpid(), np.random.default_rng(seed)

    def draw(self: SystemSource, count: int) -> bytes:
        return stream.bytes(count) if os.getpid() == owner else system(self, count)

    SystemSource.draw = draw  # type: ignore[method-assign]


def fresh() -> None:
    random.seed()
    np.random.seed()
    seeds.randbits = randbits
    SystemSource.draw = system  # type: ignore[method-assign]
