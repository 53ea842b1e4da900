"""Noise as value objects: what it is drawn from, how far it strays, and what it costs.

`LaplaceNoise` and `GaussianNoise` are distributions on the integers, drawn exactly. Their
parameters are rationals, and so are their costs: an ε or a ρ at a sensitivity in steps of the
statistic. Floats (variances, tails, quantiles) are for people and err towards more noise. Trade-off
curves of mechanisms with such noise are in `whosin.curves`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import ClassVar

import numpy as np

from whosin.errors import InvalidInput, spell
from whosin.exact import Array, round_up
from whosin.noise.additive import discrete_gaussian, discrete_laplace
from whosin.noise.source import MAX_SCALE_PARAMETER, Shape

MIN_VARIANCE = 1e-12
"""The variance of noise that is always 0, so that it can be divided by."""
MAX_SUMMED_VARIANCE = 4
"""Above it the variance of a discrete Gaussian is its parameter, to within 1e-30 of it."""
MAX_SUMMED_SIGMA = 1_000
"""Up to this σ the tail of a discrete Gaussian is summed term by term."""
MIN_SCALE_FOR_SINH = Fraction(1, 700)
"""Below it 1/sinh(1/scale) is 0 in floats."""
TAIL_SLACK = 1 + 1e-12
"""More than what floats round in a tail."""


@dataclass(frozen=True)
class LaplaceNoise:
    """The discrete Laplace distribution, P(k) ∝ e^(−|k|/scale): the two-sided geometric one.

    Attributes:
        scale: s, in steps of the statistic; 0 for no noise.
    """

    scale: Fraction
    kind: ClassVar[str] = "laplace"

    @classmethod
    def at_epsilon(cls, sensitivity: int | Fraction, epsilon: Fraction) -> LaplaceNoise:
        """The noise that makes a statistic of this L1 sensitivity ε-differentially private."""
        return cls(Fraction(sensitivity) / epsilon)

    @classmethod
    def within(cls, distance: float, confidence: float = 0.95) -> LaplaceNoise:
        """The widest noise that is at most this far from 0 with this probability, by `tail`."""
        return cls(_widest(lambda scale: cls(scale).tail(distance) <= 1 - confidence))

    def draw(self, size: Shape) -> Array:
        """Exact noise from the secure source."""
        if not self.scale:
            return np.zeros(size, np.int64)
        return discrete_laplace(self.scale, size)

    @property
    def width(self) -> Fraction:
        """The scale: the cost is as 1/width."""
        return self.scale

    @property
    def spread(self) -> float:
        """The scale, as a float."""
        return float(self.scale)

    @property
    def variance(self) -> float:
        """2a/(1 − a)², where a = e^(−1/scale); just above 0 where there is no noise."""
        if self.scale <= Fraction(1, 1000):
            return MIN_VARIANCE
        return max(1 / (2 * math.sinh(1 / (2 * float(self.scale))) ** 2), MIN_VARIANCE)

    @property
    def mean_error(self) -> float:
        """The expected distance from 0, 1/sinh(1/scale)."""
        if self.scale <= MIN_SCALE_FOR_SINH:
            return 0.0
        return 1 / math.sinh(1 / float(self.scale))

    def tail(self, distance: float) -> float:
        """Pr[|X| > distance] = 2a^(⌊distance⌋+1)/(1 + a), rounded up."""
        if not self.scale:
            return 0.0 if distance >= 0 else 1.0
        if distance < 0:
            return 1.0
        rate = 1 / float(self.scale)
        tail = 2 * math.exp(-rate * (math.floor(distance) + 1)) / (1 + math.exp(-rate))
        return min(1.0, tail * TAIL_SLACK)

    def quantile(self, confidence: float) -> int:
        """The noise is at most this far from 0 with this probability: the least such distance."""
        a = math.exp(-1 / max(float(self.scale), 1e-300))
        needed = -float(self.scale) * math.log((1 - confidence) * (1 + a) / 2) - 1
        return max(0, math.ceil(needed))

    @property
    def continuous_error(self) -> float:
        """The expected distance from 0 of the continuous distribution: its scale."""
        return self.spread

    def continuous_quantile(self, confidence: float) -> float:
        """The same for the continuous distribution, of which Pr[|X| > x] = e^(−x/scale)."""
        return -math.log1p(-confidence) * self.spread

    def cost(self, sensitivity: int | Fraction) -> Fraction:
        """ε for a statistic of this L1 sensitivity."""
        return Fraction(sensitivity) / self.scale

    def at_cost(self, factor: int | Fraction) -> LaplaceNoise:
        """The noise that costs this many times as much."""
        return LaplaceNoise(self.scale / factor)

    def to_dict(self) -> dict[str, str]:
        """The noise as plain data; exact."""
        return {"noise": self.kind, "scale": str(self.scale)}

    def check_drawable(self, hint: str) -> LaplaceNoise:
        """The noise, if the sampler can draw it; `hint` says what would make it narrower."""
        _check_width(self.scale, MAX_SCALE_PARAMETER, self.spread, hint)
        return self


@dataclass(frozen=True)
class GaussianNoise:
    """The discrete Gaussian distribution, P(k) ∝ e^(−k²/(2σ²)) (Canonne, Kamath, Steinke 2020).

    Attributes:
        sigma_squared: σ², in squared steps of the statistic; 0 for no noise.
    """

    sigma_squared: Fraction
    kind: ClassVar[str] = "gaussian"

    @classmethod
    def at_rho(cls, squared_sensitivity: int | Fraction, rho: Fraction) -> GaussianNoise:
        """The noise that makes a statistic of this squared L2 sensitivity ρ-zCDP; σ is a float,
        rounded up."""
        return cls(Fraction(square_root_up(Fraction(squared_sensitivity) / (2 * rho))) ** 2)

    @classmethod
    def within(cls, distance: float, confidence: float = 0.95) -> GaussianNoise:
        """The widest noise that is at most this far from 0 with this probability, by `tail`."""
        widest = _widest(lambda sigma: cls(sigma**2).tail(distance) <= 1 - confidence)
        return cls(widest**2)

    def draw(self, size: Shape) -> Array:
        """Exact noise from the secure source."""
        if not self.sigma_squared:
            return np.zeros(size, np.int64)
        return discrete_gaussian(None, size, variance=self.sigma_squared)

    @property
    def width(self) -> Fraction:
        """σ²: the cost is as 1/width."""
        return self.sigma_squared

    @property
    def spread(self) -> float:
        """σ; the standard deviation is at most this."""
        return math.sqrt(self.sigma_squared)

    @property
    def variance(self) -> float:
        """The variance, which is below σ² where σ is small; just above 0 for no noise."""
        if self.sigma_squared > MAX_SUMMED_VARIANCE:
            return float(self.sigma_squared)
        near = np.arange(-60.0, 61.0)
        weights = np.exp(-(near**2) / (2 * max(float(self.sigma_squared), 1e-6)))
        return max(float(near**2 @ weights / weights.sum()), MIN_VARIANCE)

    @property
    def mean_error(self) -> float:
        """The expected distance from 0 of the continuous distribution, which is close."""
        return self.continuous_error

    @property
    def continuous_error(self) -> float:
        """The expected distance from 0 of the continuous distribution: σ√(2/π)."""
        return self.spread * math.sqrt(2 / math.pi)

    def continuous_quantile(self, confidence: float) -> float:
        """The continuous noise is at most this far from 0 with this probability."""
        return NormalDist().inv_cdf((1 + confidence) / 2) * self.spread

    def tail(self, distance: float) -> float:
        """Pr[|X| > distance], summed and rounded up; for a wide noise that of a normal distribution
        beyond ⌊distance⌋, which is more (Canonne, Kamath and Steinke 2020, Proposition 25)."""
        if not self.sigma_squared:
            return 0.0 if distance >= 0 else 1.0
        if distance < 0:
            return 1.0
        if self.spread > MAX_SUMMED_SIGMA:
            tail = math.erfc(math.floor(distance) / self.spread / math.sqrt(2))
        else:
            reach = math.ceil(40 * self.spread) + 1
            weights = np.exp(-(np.arange(1, reach + 1) ** 2) / (2 * float(self.sigma_squared)))
            tail = float(2 * weights[math.floor(distance) :].sum() / (1 + 2 * weights.sum()))
        return min(1.0, tail * TAIL_SLACK)

    def quantile(self, confidence: float) -> int:
        """The noise is at most this far from 0 with this probability, by `tail`."""
        return math.ceil(self.continuous_quantile(confidence))

    def cost(self, squared_sensitivity: int | Fraction) -> Fraction:
        """ρ of zCDP for a statistic of this squared L2 sensitivity."""
        return Fraction(squared_sensitivity) / (2 * self.sigma_squared)

    def at_cost(self, factor: int | Fraction) -> GaussianNoise:
        """The noise that costs this many times as much."""
        return GaussianNoise(self.sigma_squared / factor)

    def to_dict(self) -> dict[str, str]:
        """The noise as plain data; exact."""
        return {"noise": self.kind, "variance": str(self.sigma_squared)}

    def check_drawable(self, hint: str) -> GaussianNoise:
        """The noise, if the sampler can draw it; `hint` says what would make it narrower."""
        _check_width(self.sigma_squared, MAX_SCALE_PARAMETER**2, self.spread, hint)
        return self


Noise = LaplaceNoise | GaussianNoise


def make_noise(kind: str, width: Fraction) -> Noise:
    """Laplace noise of a scale, or Gaussian noise of a σ²: either way the cost is as 1/width."""
    return GaussianNoise(width) if kind == "gaussian" else LaplaceNoise(width)


def _widest(keeps: Callable[[Fraction], bool]) -> Fraction:
    """The largest width that keeps a promise which every smaller one keeps, to 40 bits."""
    low, high = Fraction(0), Fraction(1, 2**20)
    while keeps(high) and high < MAX_SCALE_PARAMETER:
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _check_width(width: Fraction, most: int, shown: float, hint: str) -> None:
    if width > most:
        message = f"the noise would need a scale of {spell(shown, 3)} steps; at most 2^52 is drawn"
        raise InvalidInput(message, field="noise", hint=hint)


def square_root_up(value: Fraction) -> float:
    """The square root, rounded up to a float."""
    root = math.sqrt(round_up(value))
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root
