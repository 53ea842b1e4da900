"""Noise on sums over rows: what each value adds, and densities of noisy sums on a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, rational
from whosin.mechanisms import Composed, Geometric, Laplace
from whosin.spaces import Records, WorldFunction, as_statistic


@dataclass(frozen=True)
class NoisySum:
    """Noise on a vector of sums: what each value adds (whole steps), and each step's decay."""

    weights: Array
    decay: Array
    step: tuple[Fraction, ...]
    offset: tuple[Fraction, ...]

    @property
    def spans(self) -> tuple[int, ...]:
        """How many steps one row can move each coordinate."""
        return tuple(int(most) for most in self.weights.max(axis=0))


def noisy_sum(mechanism: object, space: Records) -> NoisySum | None:
    """The mechanism as noise on sums over rows; nothing where it is something else."""
    parts = list(mechanism.parts) if isinstance(mechanism, Composed) else [mechanism]
    columns: list[tuple[list[Fraction], Fraction | float]] = []
    for part in parts:
        if not isinstance(part, Laplace | Geometric):
            return None
        statistic = as_statistic(part.statistic)
        if isinstance(statistic, WorldFunction):
            return None
        weights = statistic.weights(space)
        if isinstance(part, Geometric) and any(w.denominator != 1 for row in weights for w in row):
            raise InvalidInput("statistic", "whole numbers for geometric noise", "fractions")
        for coordinate in zip(*weights, strict=True):
            columns.append((list(coordinate), _rate(part)))
    result, decay, steps, offsets = [], [], [], []
    for numbers, rate in columns:
        least = min(numbers)
        moved = [number - least for number in numbers]
        step = _common(moved)
        result.append([int(number / step) for number in moved])
        decay.append(math.exp(-float(rate) * float(step)))
        steps.append(step)
        offsets.append(least)
    return NoisySum(np.array(result).T, np.array(decay), tuple(steps), tuple(offsets))


def _rate(part: Laplace | Geometric) -> Fraction | float:
    """1/scale: how fast the logarithm of the density falls."""
    if isinstance(part, Geometric) and part.alpha is not None:
        return -math.log(float(rational(part.alpha)))
    return 1 / rational(part.scale)


def _common(numbers: Sequence[Fraction]) -> Fraction:
    """The largest step such that all numbers are multiples of it."""
    top = math.gcd(*(number.numerator for number in numbers))
    bottom = math.lcm(*(number.denominator for number in numbers))
    whole = math.gcd(*(int(number * bottom) for number in numbers))
    return Fraction(whole, bottom) if top else Fraction(1)


class Densities:
    """Arrays of densities over the outputs' grid, and the shift that a row's value makes."""

    def __init__(self, query: NoisySum, reach: int) -> None:
        self.query = query
        self.shape = tuple((2 * reach + 1) * span + 1 for span in query.spans)
        centre = np.ones(())
        for decay, length in zip(query.decay, self.shape, strict=True):
            centre = np.multiply.outer(centre, decay ** np.arange(length))
        self.centre = centre

    def shifted(self, array: Array, value: int) -> Array:
        """f(y − w) for a row with this value."""
        moved = array
        for axis, steps in enumerate(self.query.weights[value]):
            if steps:
                along = array.ndim - len(self.shape) + axis
                moved = _shift(moved, int(steps), along, float(self.query.decay[axis]))
        return moved


def _shift(array: Array, steps: int, axis: int, decay: float) -> Array:
    """Move up by whole steps; what comes in below the grid falls off geometrically."""
    moved = np.empty_like(array)
    ahead, behind, first = ([slice(None)] * array.ndim for _ in range(3))
    ahead[axis], behind[axis], first[axis] = slice(steps, None), slice(None, -steps), slice(0, 1)
    moved[tuple(ahead)] = array[tuple(behind)]
    fall = decay ** np.arange(steps, 0, -1.0)
    shape = [1] * array.ndim
    shape[axis] = steps
    below = [slice(None)] * array.ndim
    below[axis] = slice(0, steps)
    moved[tuple(below)] = array[tuple(first)] * fall.reshape(shape)
    return moved
