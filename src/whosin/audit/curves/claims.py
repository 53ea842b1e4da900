"""Trade-off curves: what f-differential privacy promises (Dong, Roth, Su 2019).

Contract: a curve f says that a test of "in" against "out" (or of "out" against "in") with false
positive rate x has a power of at most 1 − f(x), which is concave and grows with x. `level(power)`
is the smallest x that allows a power, rounded down: a curve that allows a little more raises no
false alarm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from whosin.audit.terms import read_delta, read_epsilon
from whosin.errors import InvalidInput
from whosin.exact import ranged

DOWN = 1 - 1e-9
"""Room for the rounding of special functions."""
STEPS = 60
GRID = 201


class Curve(Protocol):
    """What a claim allows."""

    def level(self, power: float) -> float:
        """The smallest false positive rate that allows this power."""


@dataclass(frozen=True)
class GaussianCurve:
    """μ-Gaussian differential privacy: N(0, 1) against N(μ, 1)."""

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", float(ranged(self.mu, "mu", "at least 0")))

    def level(self, power: float) -> float:
        """Φ(Φ⁻¹(power) − μ)."""
        from scipy.special import ndtr, ndtri

        return float(ndtr(ndtri(power) - self.mu)) * DOWN

    def epsilon(self, delta: object) -> float:
        """The ε of this curve at one δ (Balle and Wang 2018), rounded down."""
        from scipy.special import log_ndtr, ndtr

        granted = read_delta(delta)
        if self.mu == 0:
            return 0.0
        if granted == 0:
            return math.inf
        held, refused = 0.0, self.mu**2 / 2 + self.mu * 40

        def spent(epsilon: float) -> float:
            beyond = epsilon + float(log_ndtr(-self.mu / 2 - epsilon / self.mu))
            return float(ndtr(self.mu / 2 - epsilon / self.mu)) - math.exp(beyond)

        if spent(0.0) <= granted:
            return 0.0
        for _ in range(STEPS):
            middle = (held + refused) / 2
            held, refused = (middle, refused) if spent(middle) > granted else (held, middle)
        return held * DOWN


@dataclass(frozen=True)
class ApproximateCurve:
    """(ε, δ)-differential privacy."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        object.__setattr__(self, "delta", read_delta(self.delta))

    def level(self, power: float) -> float:
        """The inverse of min(1, δ + e^ε x, 1 − e^−ε (1 − δ − x))."""
        shrink = math.exp(-self.epsilon)
        least = max(0.0, (power - self.delta) * shrink)
        if shrink > 0:
            least = max(least, 1 - self.delta - (1 - power) / shrink)
        return least * DOWN


@dataclass(frozen=True)
class FunctionCurve:
    """Any curve, as a function from a false positive rate to the least false negative rate."""

    function: Callable[[float], float]

    def __post_init__(self) -> None:
        grid = np.linspace(0.0, 1.0, GRID)
        try:
            values = np.array([float(self.function(float(x))) for x in grid])
        except (TypeError, ValueError) as error:
            words = f"{type(error).__name__}: {error}"
            raise InvalidInput("curve", "a function of one rate in [0, 1]", words) from error
        accepted = "a convex function from [0, 1] to [0, 1] that falls to 0 at 1"
        if not ((values >= 0) & (values <= 1)).all() or values[-1] > 1e-9:
            raise InvalidInput("curve", accepted, "other values")
        if (np.diff(values) > 1e-9).any() or (np.diff(values, 2) < -1e-9).any():
            raise InvalidInput("curve", accepted, "one that grows or bends the other way")

    def level(self, power: float) -> float:
        """By bisection: the largest rate found that does not allow the power."""
        if 1 - float(self.function(0.0)) >= power:
            return 0.0
        low, high = 0.0, 1.0
        for _ in range(STEPS):
            middle = (low + high) / 2
            if 1 - float(self.function(middle)) < power:
                low = middle
            else:
                high = middle
        return low * DOWN


def read_curve(curve: object) -> Curve:
    """A curve of ours, or a function from a false positive to a false negative rate."""
    if isinstance(curve, GaussianCurve | ApproximateCurve | FunctionCurve):
        return curve
    if callable(curve):
        return FunctionCurve(curve)
    accepted = "GaussianCurve(mu), ApproximateCurve(epsilon, delta) or a function of one rate"
    raise InvalidInput("curve", accepted, type(curve).__name__)
