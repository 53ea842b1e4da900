"""Noise as value objects: how it is drawn, how far it strays, what it costs; and grids for it.

`LaplaceNoise` and `GaussianNoise` are distributions on the integers, drawn exactly, and `CubeNoise`
one on vectors of them. Their
widths are rationals, and so are their costs: an ε or a ρ at a sensitivity in steps of the
statistic. Floats (variances, tails, quantiles) are for people and err towards more noise. A `Grid`
makes integers of other numbers. Trade-off curves of mechanisms with such noise are in
`whosin.curves`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from whosin.errors import InvalidInput, invalid_value, read_whole, spell
from whosin.exact import Array, exact_fraction, rational, round_up
from whosin.noise.additive import cube, discrete_gaussian, discrete_laplace, eulerian_numbers
from whosin.noise.source import MAX_SCALE_PARAMETER, Shape, read_positive

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
class IntegerNoise(ABC):
    """Noise of whole numbers, around 0.

    Attributes:
        width: the one parameter: a scale, or σ². The cost is as 1/width; 0 is no noise.
    """

    width: Fraction
    kind: ClassVar[str]
    parameter: ClassVar[str]
    """The width's name in plain data."""
    power: ClassVar[int]
    """The width is as this power of the distance, and the cost Δ^power / (power · width)."""

    @classmethod
    def within(cls, distance: float, confidence: float = 0.95) -> Self:
        """The widest noise that is at most this far from 0 with this probability, by `tail`."""

        def keeps(spread: Fraction) -> bool:
            return cls(spread**cls.power).tail(distance) <= 1 - confidence

        return cls(_widest(keeps) ** cls.power)

    @abstractmethod
    def draw(self, size: Shape) -> Array:
        """Exact noise from the secure source."""

    @property
    def spread(self) -> float:
        """The scale, or σ, as a float; the standard deviation of a Gaussian is at most σ."""
        return math.sqrt(self.width) if self.power == 2 else float(self.width)

    def tail(self, distance: float) -> float:
        """Pr[|X| > distance], rounded up."""
        if distance < 0:
            return 1.0
        return min(1.0, self._tail(math.floor(distance)) * TAIL_SLACK) if self.width else 0.0

    @abstractmethod
    def _tail(self, distance: int) -> float: ...

    def cost(self, sensitivity: int | Fraction) -> Fraction:
        """ε for a statistic of this L1 sensitivity, or ρ of zCDP for one of this squared L2
        sensitivity."""
        return Fraction(sensitivity) / (self.power * self.width)

    def at_cost(self, factor: int | Fraction) -> Self:
        """The noise that costs this many times as much."""
        return type(self)(self.width / factor)

    def to_dict(self) -> dict[str, str]:
        """The noise as plain data; exact."""
        return {"noise": self.kind, self.parameter: str(self.width)}

    def check_drawable(self, hint: str, field: str = "noise") -> Self:
        """The noise, if the sampler can draw it; `hint` says what would make it narrower."""
        if self.width > MAX_SCALE_PARAMETER**self.power:
            steps = spell(self.spread, 3)
            message = f"the noise would need a scale of {steps} steps; at most 2^52 is drawn"
            raise InvalidInput(message, field=field, hint=hint)
        return self


@dataclass(frozen=True)
class LaplaceNoise(IntegerNoise):
    """The discrete Laplace distribution, P(k) ∝ e^(−|k|/s): the two-sided geometric one. Its width
    is the scale s, in steps of the statistic."""

    kind: ClassVar[str] = "laplace"
    parameter: ClassVar[str] = "scale"
    power: ClassVar[int] = 1

    @classmethod
    def at_epsilon(cls, sensitivity: int | Fraction, epsilon: Fraction) -> LaplaceNoise:
        """The noise that makes a statistic of this L1 sensitivity ε-differentially private."""
        return cls(Fraction(sensitivity) / epsilon)

    @property
    def scale(self) -> Fraction:
        return self.width

    def draw(self, size: Shape) -> Array:
        return discrete_laplace(self.scale, size) if self.width else np.zeros(size, np.int64)

    @property
    def variance(self) -> float:
        """2a/(1 − a)², where a = e^(−1/scale); just above 0 where there is no noise."""
        if self.scale <= Fraction(1, 1000):
            return MIN_VARIANCE
        return max(1 / (2 * math.sinh(1 / (2 * self.spread)) ** 2), MIN_VARIANCE)

    @property
    def mean_error(self) -> float:
        """The expected distance from 0, 1/sinh(1/scale)."""
        return 0.0 if self.scale <= MIN_SCALE_FOR_SINH else 1 / math.sinh(1 / self.spread)

    def probabilities(self, reach: int) -> Array:
        """Pr[X = k] = (1 − a)/(1 + a)·a^|k| for k from −reach to reach, in floats."""
        a = math.exp(-1 / self.spread) if self.scale else 0.0
        return np.asarray(a ** np.abs(np.arange(-reach, reach + 1)) * (1 - a) / (1 + a))

    def _tail(self, distance: int) -> float:
        """Pr[|X| > distance] = 2a^(distance+1)/(1 + a), where a = e^(−1/spread)."""
        rate = 1 / self.spread
        return 2 * math.exp(-rate * (distance + 1)) / (1 + math.exp(-rate))

    def quantile(self, confidence: float) -> int:
        """The noise is at most this far from 0 with this probability: the least such distance."""
        a = math.exp(-1 / max(self.spread, 1e-300))
        needed = -self.spread * math.log((1 - confidence) * (1 + a) / 2) - 1
        return max(0, math.ceil(needed))

    @property
    def continuous_error(self) -> float:
        """The expected distance from 0 of the continuous distribution: its scale."""
        return self.spread

    def continuous_quantile(self, confidence: float) -> float:
        """The same for the continuous distribution, of which Pr[|X| > x] = e^(−x/scale)."""
        return -math.log1p(-confidence) * self.spread


@dataclass(frozen=True)
class GaussianNoise(IntegerNoise):
    """The discrete Gaussian distribution, P(k) ∝ e^(−k²/(2σ²)) (Canonne, Kamath, Steinke 2020). Its
    width is σ², in squared steps of the statistic."""

    kind: ClassVar[str] = "gaussian"
    parameter: ClassVar[str] = "variance"
    power: ClassVar[int] = 2

    @classmethod
    def at_rho(cls, squared_sensitivity: int | Fraction, rho: Fraction) -> GaussianNoise:
        """The noise that makes a statistic of this squared L2 sensitivity ρ-zCDP; σ is a float,
        rounded up."""
        return cls(Fraction(square_root_up(Fraction(squared_sensitivity) / (2 * rho))) ** 2)

    @property
    def sigma_squared(self) -> Fraction:
        return self.width

    def draw(self, size: Shape) -> Array:
        if not self.width:
            return np.zeros(size, np.int64)
        return discrete_gaussian(None, size, variance=self.sigma_squared)

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

    def _tail(self, distance: int) -> float:
        """A sum; for a wide noise the tail of a normal distribution, which is more (Canonne, Kamath
        and Steinke 2020, Proposition 25)."""
        if self.spread > MAX_SUMMED_SIGMA:
            return math.erfc(distance / self.spread / math.sqrt(2))
        reach = math.ceil(40 * self.spread) + 1
        weights = np.exp(-(np.arange(1, reach + 1) ** 2) / (2 * float(self.sigma_squared)))
        return float(2 * weights[distance:].sum() / (1 + 2 * weights.sum()))

    def quantile(self, confidence: float) -> int:
        """The noise is at most this far from 0 with this probability: the least such distance by
        `tail`, which is that of the continuous distribution or one less."""
        most = math.ceil(self.continuous_quantile(confidence))
        return most - 1 if most and self.tail(most - 1) <= 1 - confidence else most


@dataclass(frozen=True)
class CubeNoise:
    """The cube distribution on whole vectors, P(v) ∝ e^(−‖v‖∞/s): for M counts that a neighbour
    moves by at most Δ each, it costs Δ/s, and each count gets about M/√3 times s of noise, where
    Laplace noise of scale MΔ/ε would be M√2. With M = 1 it is Laplace noise.

    Attributes:
        scale: s, in steps of the counts.
        dimensions: M.
    """

    scale: Fraction
    dimensions: int

    @classmethod
    def at_epsilon(
        cls, sensitivity: int | Fraction, epsilon: Fraction, dimensions: int
    ) -> CubeNoise:
        """The noise that makes counts of this L∞ sensitivity ε-differentially private."""
        return cls(Fraction(sensitivity) / epsilon, dimensions)

    def draw(self, count: int = 1) -> Array:
        """Exact vectors of noise, count × M, from the secure source."""
        return cube(self.scale, self.dimensions, count)

    def cost(self, sensitivity: int | Fraction) -> Fraction:
        """ε for counts of this L∞ sensitivity."""
        return Fraction(sensitivity) / self.scale

    @property
    def variance(self) -> float:
        """Of one count: E[K(K+1)]/3 over the radius K, which is a sum of independent terms."""
        rate = 1 / float(self.scale)
        logs = [math.log(each) - j * rate for j, each in enumerate(self._eulerian)]
        weights = np.exp(np.array(logs) - max(logs))
        weights /= weights.sum()
        j = np.arange(len(weights))
        mean = float(weights @ j)
        spread = float(weights @ j**2) - mean**2
        step = -math.expm1(-rate)
        mean += (self.dimensions + 1) * math.exp(-rate) / step
        spread += (self.dimensions + 1) * math.exp(-rate) / step**2
        return max((spread + mean**2 + mean) / 3, MIN_VARIANCE)

    @property
    def _eulerian(self) -> list[int]:
        return eulerian_numbers(self.dimensions)

    def continuous_tail(self, distance: Array | float) -> Array:
        """Pr[|X| > distance] of one count under the continuous law, of which X is ± a gamma
        variable of a shape that is uniform on 1, …, M: Q(M, x) − (x/M) Q(M − 1, x)."""
        from scipy.special import gammaincc

        shape = self.dimensions
        x = np.abs(np.asarray(distance, dtype=float)) / float(self.scale)
        lower = gammaincc(shape - 1, x) if shape > 1 else 0.0
        return np.asarray(np.maximum(gammaincc(shape, x) - x / shape * lower, 0.0))

    def continuous_quantile(self, confidence: float) -> float:
        """One count's continuous noise is at most this far from 0 with this probability."""
        low, high = 0.0, float(self.scale)
        while self.continuous_tail(high) > 1 - confidence:
            high *= 2
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if self.continuous_tail(middle) > 1 - confidence else (low, middle)
            )
        return high

    def check_drawable(self, hint: str, field: str = "noise") -> CubeNoise:
        """The noise, if the sampler can draw it; `hint` says what would make it narrower."""
        if self.scale > MAX_SCALE_PARAMETER:
            message = f"the noise would need a scale of {spell(float(self.scale), 3)} steps"
            raise InvalidInput(f"{message}; at most 2^52 is drawn", field=field, hint=hint)
        return self


Noise = LaplaceNoise | GaussianNoise


def make_noise(kind: str, width: Fraction) -> Noise:
    """Laplace noise of a scale, or Gaussian noise of a σ²."""
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


def square_root_up(value: Fraction) -> float:
    """The square root, rounded up to a float."""
    root = math.sqrt(round_up(value))
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root


# A grid of stated step, on which values and their noise are integers.
#
# No floating-point noise is ever added to a float. A value v becomes the integer g(v) = ⌊v/step +
# 1/2⌋, exactly; noise is added to that integer; the grid point leaves as integer × step. Rounding
# costs sensitivity, and how much is stated: g is monotone and g(v + n·step) = g(v) + n, so values
# that differ by at most Δ have integers that differ by at most ⌈Δ/step⌉. Over several coordinates
# that change by Δ in all, c of them at most, Σ⌈Δ_i/step⌉ ≤ ⌈Δ/step⌉ + c − 1.

WIDE_NOISE_HINT = "use a larger step, or more budget"
MAX_UNITS = 2**62
"""Units are cut to ±2^62, before noise and after: the first is part of g and moves no two values
apart, the second looks at nothing but the answer."""


@dataclass(frozen=True)
class Grid:
    """The multiples of a step.

    Args:
        step: the distance of two grid points, above 0; a float is read by its decimals.
    """

    step: Fraction

    def __init__(self, step: object = 1) -> None:
        read = read_positive(step, "step", 2**1000)
        if read < Fraction(1, 2**1000):
            raise invalid_value("step", "between 2^-1000 and 2^1000", step)
        object.__setattr__(self, "step", read)

    def units(self, values: npt.ArrayLike) -> Array:
        """g(v) = ⌊v/step + 1/2⌋ of each value, exactly, cut to ±2^62."""
        given = np.asarray(values)
        if given.dtype.kind not in "iufO" or (
            given.dtype.kind == "f" and not np.isfinite(given).all()
        ):
            raise InvalidInput("values must be finite numbers", field="values", value=given.dtype)
        if given.dtype.kind in "iu" and self.step == 1:
            return _read_units(given)
        flat = given.reshape(-1)
        if given.dtype.kind == "f" and given.dtype.itemsize <= 8:
            # Three roundings of 2^-53 each: near a boundary the rational decides.
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                quotients = flat.astype(np.float64) / float(self.step) + 0.5
                units = np.floor(quotients)
                room = np.minimum(quotients - units, units + 1 - quotients)
                near = ~(room > np.abs(quotients) * 2.0**-50 + 2.0**-50)
            whole = np.where(near, 0, units).astype(np.int64)
        else:
            whole, near = np.zeros(flat.size, dtype=np.int64), np.ones(flat.size, dtype=bool)
        for index in np.flatnonzero(near):
            whole[index] = self._unit(flat[index])
        return whole.reshape(given.shape)

    def _unit(self, value: object) -> int:
        unit = (exact_fraction(value, "values") / self.step + Fraction(1, 2)).__floor__()
        return min(max(unit, -MAX_UNITS), MAX_UNITS)

    def sensitivity(self, change: object, coordinates: int = 1) -> int:
        """The sensitivity in units, of values that change by at most `change` in all (L1), at most
        `coordinates` of them: ⌈Δ/step⌉ + c − 1."""
        read_whole(coordinates, "coordinates", 1)
        number = rational(change, "sensitivity")
        if number <= 0:
            raise invalid_value("sensitivity", "above 0", change)
        return math.ceil(number / self.step) + coordinates - 1

    def add_laplace(self, units: npt.ArrayLike, sensitivity: int, epsilon: object) -> Array:
        """Units plus discrete Laplace noise of scale Δ/ε: ε-differentially private.

        Args:
            units: integers, as `units` gives them.
            sensitivity: Δ of the units in L1, as `sensitivity` gives it.
            epsilon: ε, above 0.
        """
        level = read_positive(epsilon, "epsilon", 2**1000)
        noise = LaplaceNoise.at_epsilon(_read_sensitivity(sensitivity), level)
        return _add_noise(units, noise.check_drawable(WIDE_NOISE_HINT, "epsilon"))

    def add_gaussian(self, units: npt.ArrayLike, sensitivity: int, rho: object) -> Array:
        """Units plus discrete Gaussian noise of variance Δ²/(2ρ): ρ-zCDP.

        Args:
            units: integers, as `units` gives them.
            sensitivity: Δ of the units in L2; the L1 figure of `sensitivity` is never less.
            rho: ρ, above 0.
        """
        square = _read_sensitivity(sensitivity) ** 2
        noise = GaussianNoise(square / (2 * read_positive(rho, "rho", 2**1000)))
        return _add_noise(units, noise.check_drawable(WIDE_NOISE_HINT, "rho"))

    def values(self, units: npt.ArrayLike) -> Array:
        """The grid points as floats, each the nearest to integer × step."""
        whole = _read_units(units)
        if self.step.denominator == 1 or self.step.numerator == 1:
            power = max(self.step.numerator, self.step.denominator)
            small = not whole.size or np.abs(whole).max() <= 2**53
            if small and power <= 2**53:  # one rounding, of a product or a quotient
                points: Array = whole * float(power) if self.step >= 1 else whole / float(power)
                return points
        return np.array([float(point) for point in self.exact(whole).reshape(-1)]).reshape(
            whole.shape
        )

    def exact(self, units: npt.ArrayLike) -> Array:
        """The grid points as fractions."""
        whole = _read_units(units)
        points = np.empty(whole.size, dtype=object)
        points[:] = [self.step * int(unit) for unit in whole.reshape(-1)]
        return points.reshape(whole.shape)


def _read_units(units: npt.ArrayLike) -> Array:
    whole = np.asarray(units)
    if whole.dtype.kind not in "iu":
        message = f"units must be whole numbers, and these are {whole.dtype}"
        raise InvalidInput(
            message, field="units", value=whole.dtype, hint="make them with Grid(step).units"
        )
    if whole.dtype == np.uint64:
        whole = np.minimum(whole, np.uint64(MAX_UNITS))
    cut: Array = np.clip(whole.astype(np.int64), -MAX_UNITS, MAX_UNITS)
    return cut


def _read_sensitivity(value: object) -> Fraction:
    return Fraction(read_whole(value, "sensitivity", 1, what=", in steps of the grid"))


def _add_noise(units: npt.ArrayLike, noise: Noise) -> Array:
    """The sum, cut to ±2^62. Both terms are at most 2^62 in size, so it cannot wrap around."""
    whole = _read_units(units)
    cut: Array = np.clip(whole + noise.draw(whole.shape), -MAX_UNITS, MAX_UNITS)
    return cut
