"""Chance in tests: the same draws in every run, so that nothing fails by bad luck.

Contract: after `start(name)` the generators of `random` and NumPy and the package's secure source
give what follows from the name, in this process; a forked process draws from the system again.
`fresh()` gives all three back to chance. A test starts from its node id and a fixture from its own
name, so that neither depends on what ran before; soak tests draw afresh, and so do all tests when
`WHOSIN_FRESH` is set.
"""

from __future__ import annotations

import os
import random
import zlib

import numpy as np
from hypothesis import HealthCheck, settings

from whosin.noise.source import SystemSource

system = SystemSource.draw
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
    owner, stream = os.getpid(), np.random.default_rng(seed)

    def draw(source: SystemSource, count: int) -> bytes:
        return stream.bytes(count) if os.getpid() == owner else system(source, count)

    SystemSource.draw = draw  # type: ignore[method-assign]


def fresh() -> None:
    random.seed()
    np.random.seed()
    SystemSource.draw = system  # type: ignore[method-assign]
