"""The terms of an audit: how many samples, at which confidence, granting which δ, from which seed.

Contract: read once, refused by name, the same for every entry point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from whosin.audit.confidence import read_confidence
from whosin.errors import InvalidInput
from whosin.exact import ranged
from whosin.validation import whole

FEWEST = 40
"""The fewest samples with which an event can be both found and counted."""

Progress = Callable[[int], None]
"""Called with the number of draws of each world that were made since the last call."""


@dataclass(frozen=True)
class Terms:
    """What was agreed before the first draw.

    Attributes:
        samples: draws of each world, all stages together.
        confidence: with which all bounds of the result hold; `error` is what it leaves.
        delta: granted to the mechanism.
        seeds: where randomness begins.
        tell: told how many draws were made.
    """

    samples: int
    confidence: float
    error: float
    delta: float
    seeds: np.random.SeedSequence
    tell: Progress

    @classmethod
    def read(
        cls, samples: object, confidence: object, delta: object, seed: object, progress: object
    ) -> Terms:
        """The terms as a caller states them."""
        level, error = read_confidence(confidence)
        if progress is not None and not callable(progress):
            raise InvalidInput("progress", "a function of one number", type(progress).__name__)
        tell = progress if progress is not None else _say_nothing
        size = read_samples(samples)
        return cls(size, level, error, read_delta(delta), read_seed(seed), tell)


def _say_nothing(_count: int) -> None:
    pass


def read_samples(samples: object) -> int:
    """A whole number of samples that can say something."""
    return whole(samples, "samples", FEWEST, what=" (some 100,000 show most leaks)")


def read_delta(delta: object) -> float:
    """A δ in [0, 1)."""
    return float(ranged(delta, "delta", "at least 0 and below 1"))


def read_epsilon(epsilon: object) -> float:
    """A claimed ε."""
    return float(ranged(epsilon, "epsilon", "at least 0"))


def read_seed(seed: object) -> np.random.SeedSequence:
    """Where randomness begins: a whole number for a repeatable run, None for a fresh one."""
    if seed is None:
        return np.random.SeedSequence()
    return np.random.SeedSequence(whole(seed, "seed", 0))
