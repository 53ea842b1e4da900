"""What a check of one part of a step says, and how a step is called.

Contract: a finding has a p-value: if the claims are true, it is that unlikely, at most, that the
check finds as much. Special functions are exact up to rounding; nothing is approximated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.audit.models.scoring import numbers
from whosin.errors import InvalidInput
from whosin.exact import Array

CLIPPING, NOISE, SEED, SAMPLING, WHOLE = "clipping", "noise", "seed", "sampling", "the whole step"


@dataclass(frozen=True)
class StepFinding:
    """A part of a step that is not as claimed.

    Attributes:
        part: clipping, noise, seed, sampling, or the whole step.
        words: what is wrong with it.
    """

    part: str
    words: str
    p_value: float

    def __str__(self) -> str:
        return f"{self.part}: {self.words}"

    def to_dict(self) -> dict[str, object]:
        """The finding for programs."""
        return {"part": self.part, "words": self.words, "p_value": self.p_value}


@dataclass(frozen=True)
class StepClaims:
    """What a step claims: norms of at most `clip`, Gaussian noise of standard deviation `noise` ×
    `clip` on the sum, each example in a batch with probability `rate`; `share` is what the step
    divides the noisy sum by."""

    clip: float
    noise: float
    rate: float
    share: float
    examples: int
    dimension: int

    @property
    def deviation(self) -> float:
        """Of the noise on each coordinate of the sum."""
        return self.noise * self.clip


@dataclass(frozen=True)
class CalledStep:
    """A step that can be called, with what it claims."""

    function: Callable[[Array], Any]
    claims: StepClaims

    def sums(self, gradients: Array, calls: int) -> Array:
        """The noisy sums of this many calls, a row each."""
        rows = [self._one(gradients) for _ in range(calls)]
        return np.array(rows) * self.claims.share

    def _one(self, gradients: Array) -> Array:
        total = numbers(self.function(gradients.copy())).reshape(-1)
        if total.shape != (self.claims.dimension,):
            accepted = f"a function that returns a vector of {self.claims.dimension} numbers"
            raise InvalidInput("step", accepted, f"{total.shape[0]} numbers")
        return total
