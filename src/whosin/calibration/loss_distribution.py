"""A distribution of privacy losses on a grid, and what it bounds.

A loss is ln Pr[o with the person]/Pr[o without]. A distribution of losses that was rounded to the
safe side has at least the hockey-stick divergence of what it stands for, at every ε; by Blackwell's
theorem every test does at least as well on it. It does not bound tails (see `failure`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from whosin.exact import Array


@dataclass(frozen=True)
class LossDistribution:
    """Masses, given that the person is in, of the losses first·grid, (first + 1)·grid, …, ∞.

    Attributes:
        infinite: the mass of outputs that are impossible without the person.
    """

    first: int
    grid: float
    masses: Array
    infinite: float

    @classmethod
    def of(cls, accounted: Any) -> LossDistribution:
        """What dp-accounting computed."""
        dense = accounted.to_dense_pmf()
        masses = np.maximum(dense._probs, 0.0)  # what a Fourier transform leaves below 0
        return cls(dense._lower_loss, dense._discretization, masses, dense._infinity_mass)

    @cached_property
    def losses(self) -> Array:
        """The finite losses, in order."""
        return (np.arange(len(self.masses)) + self.first) * self.grid

    @cached_property
    def tails(self) -> tuple[Array, Array]:
        """The mass at and above each loss, with the person and without; one entry more, for ∞."""
        with np.errstate(divide="ignore", over="ignore"):
            without = np.exp(np.log(self.masses) - self.losses)
        above = np.append(np.cumsum(self.masses[::-1])[::-1], 0.0) + self.infinite
        below = np.append(np.cumsum(without[::-1])[::-1], 0.0)
        return above, below

    def delta(self, epsilons: Array) -> Array:
        """δ(ε) at each ε."""
        above, below = self.tails
        after = np.searchsorted(self.losses, epsilons, side="right")
        deltas = above[after] - np.exp(epsilons) * below[after]
        return np.asarray(np.clip(deltas, 0.0, 1.0))

    def corners(self) -> tuple[Array, Array]:
        """(FPR, TPR) of the tests that say "in" from each loss on: the best ones, the strictest
        first."""
        above, below = self.tails
        return np.minimum(below[::-1], 1.0), np.minimum(above[::-1], 1.0)
