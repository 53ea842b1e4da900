"""A grid of stated step, on which values and their noise are integers.

Contract: no floating-point noise is ever added to a float. A value v becomes the integer g(v) =
⌊v/step + 1/2⌋, exactly; noise is added to that integer; the grid point leaves as integer × step.
Rounding costs sensitivity, and how much is stated: g is monotone and g(v + n·step) = g(v) + n, so
values that differ by at most Δ have integers that differ by at most ⌈Δ/step⌉. Over several
coordinates that change by Δ in all, c of them at most, Σ⌈Δ_i/step⌉ ≤ ⌈Δ/step⌉ + c − 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
import numpy.typing as npt

from whosin.errors import InvalidInput
from whosin.exact import Array, rational
from whosin.noise.gaussian import discrete_gaussian
from whosin.noise.laplace import discrete_laplace
from whosin.noise.parameters import LARGEST, positive
from whosin.validation import whole

WIDEST = "so large that the noise is at most 2^52 steps wide"
LIMIT = 2**62
"""Units are cut to ±2^62, before noise and after: the first is part of g and moves no two values
apart, the second looks at nothing but the answer."""


@dataclass(frozen=True)
class Grid:
    """The multiples of a step.

    Args:
        step: the distance of two grid points, above 0; a float is the binary fraction that it is.
    """

    step: Fraction

    def __init__(self, step: object = 1) -> None:
        read = positive(step, "step", 2**1000)
        if read < Fraction(1, 2**1000):
            raise InvalidInput("step", "from 2^-1000 to 2^1000", step)
        object.__setattr__(self, "step", read)

    def units(self, values: npt.ArrayLike) -> Array:
        """g(v) = ⌊v/step + 1/2⌋ of each value, exactly, cut to ±2^62."""
        given = np.asarray(values)
        if given.dtype.kind not in "iufO" or (
            given.dtype.kind == "f" and not np.isfinite(given).all()
        ):
            raise InvalidInput("values", "finite numbers", "something else")
        if given.dtype.kind in "iu" and self.step == 1:
            return _integers(given)
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
        unit = (rational(value, "values") / self.step + Fraction(1, 2)).__floor__()
        return min(max(unit, -LIMIT), LIMIT)

    def sensitivity(self, change: object, coordinates: int = 1) -> int:
        """The sensitivity in units, of values that change by at most `change` in all (L1), at most
        `coordinates` of them: ⌈Δ/step⌉ + c − 1."""
        if not isinstance(coordinates, int) or coordinates < 1:
            raise InvalidInput("coordinates", "an integer from 1 up", repr(coordinates))
        number = rational(change, "sensitivity")
        if number <= 0:
            raise InvalidInput("sensitivity", "a number above 0", change)
        return ceil(number / self.step) + coordinates - 1

    def add_laplace(self, units: npt.ArrayLike, sensitivity: int, epsilon: object) -> Array:
        """Units plus discrete Laplace noise of scale Δ/ε: ε-differentially private.

        Args:
            units: integers, as `units` gives them.
            sensitivity: Δ of the units in L1, as `sensitivity` gives it.
            epsilon: ε, above 0.
        """
        whole, change = _integers(units), _sensitivity(sensitivity)
        scale = change / positive(epsilon, "epsilon", 2**1000)
        if scale > LARGEST:
            raise InvalidInput("epsilon", WIDEST, float(scale))
        return _cut_sum(whole, discrete_laplace(scale, whole.shape))

    def add_gaussian(self, units: npt.ArrayLike, sensitivity: int, rho: object) -> Array:
        """Units plus discrete Gaussian noise of variance Δ²/(2ρ): ρ-zCDP.

        Args:
            units: integers, as `units` gives them.
            sensitivity: Δ of the units in L2; the L1 figure of `sensitivity` is never less.
            rho: ρ, above 0.
        """
        whole, change = _integers(units), _sensitivity(sensitivity)
        variance = change**2 / (2 * positive(rho, "rho", 2**1000))
        if variance > LARGEST**2:
            raise InvalidInput("rho", WIDEST, rho)
        return _cut_sum(whole, discrete_gaussian(None, whole.shape, variance=variance))

    def values(self, units: npt.ArrayLike) -> Array:
        """The grid points as floats, each the nearest to integer × step."""
        whole = _integers(units)
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
        whole = _integers(units)
        points = np.empty(whole.size, dtype=object)
        points[:] = [self.step * int(unit) for unit in whole.reshape(-1)]
        return points.reshape(whole.shape)


def _integers(units: npt.ArrayLike) -> Array:
    whole = np.asarray(units)
    if whole.dtype.kind not in "iu":
        raise InvalidInput("units", "integers", f"an array of {whole.dtype}")
    if whole.dtype == np.uint64:
        whole = np.minimum(whole, np.uint64(LIMIT))
    cut: Array = np.clip(whole.astype(np.int64), -LIMIT, LIMIT)
    return cut


def _sensitivity(value: object) -> Fraction:
    return Fraction(whole(value, "sensitivity", 1, what=", in steps of the grid"))


def _cut_sum(whole: Array, noise: Array) -> Array:
    """The sum, cut to ±2^62. Both terms are at most 2^62 in size, so it cannot wrap around."""
    cut: Array = np.clip(whole + noise, -LIMIT, LIMIT)
    return cut
