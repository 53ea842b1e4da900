"""Additive noise whose density falls by e^−distance/scale: what Laplace and geometric share.

F10: with the same noise around finitely many centres, the ratio of any two mixtures is
monotone between consecutive centres and constant outside, so its sup is attained at a centre; in
several dimensions on the product grid of the centres' coordinates. So these points are all that
exact verification needs, under any prior, of every notion that is about one ratio. Bayesian
semantic privacy is about a product of two: `Axis` says what the noise is between the points.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, ball_exp, flint_rational, rational
from whosin.mechanisms.base import Mechanism
from whosin.mechanisms.channel import Channel
from whosin.mechanisms.entries import Exponents
from whosin.spaces import Lattice, Space, Statistic, Subsets, as_statistic
from whosin.spaces.memory import require_table
from whosin.spaces.statistics import Centre, distances, outputs_at
from whosin.spaces.width import exponential

SMALLEST = Fraction(1, 10**300)


def positive(value: object, field: str) -> Fraction:
    """Read a number above 0 exactly."""
    number = rational(value, field)
    if number <= 0:
        raise InvalidInput(field, "above 0", value)
    if not SMALLEST <= number <= 1 / SMALLEST:
        raise InvalidInput(field, "between 1e-300 and 1e300", value)
    return number


@dataclass(frozen=True)
class AdditiveNoise(Mechanism):
    """Noise of a scale on a statistic."""

    statistic: object
    scale: object

    def __post_init__(self) -> None:
        as_statistic(self.statistic)
        positive(self.scale, "scale")


@dataclass(frozen=True)
class Axis:
    """One coordinate of an output with noise: where its centres are and how fast it falls off.

    Attributes:
        centres: the centre of each world (or class of worlds).
        scale: the noise has density e^(−|x|/scale), or
        alpha: probability ∝ α^|x|.
        whole: whether outputs are whole numbers only.
    """

    centres: tuple[Fraction, ...]
    scale: Fraction | None = None
    alpha: Fraction | None = None
    whole: bool = False

    @cached_property
    def points(self) -> tuple[Fraction, ...]:
        """The different centres, ascending: where the densities were taken."""
        return tuple(sorted(set(self.centres)))

    @property
    def rate(self) -> float:
        """How fast the logarithm of the density falls."""
        if self.alpha is not None:
            return -math.log(self.alpha)
        assert self.scale is not None
        return float(1 / self.scale)

    def gaps(self) -> list[bool]:
        """Whether there are outputs strictly between each point and the next."""
        pairs = zip(self.points, self.points[1:], strict=False)
        return [not self.whole or above - below > 1 for below, above in pairs]

    def fall(self, distance: Fraction) -> Any:
        """e^(−distance/scale) as a ball, or α^distance as a FLINT rational."""
        if self.alpha is not None:
            return flint_rational(self.alpha) ** int(distance)
        assert self.scale is not None
        return ball_exp(-distance / self.scale)


def noise_channel(
    statistic: Statistic, space: Space, scale: Fraction, *, whole: bool = False
) -> Channel:
    """The densities e^(−‖output − centre‖₁ / scale) at the deciding points.

    Args:
        whole: whether outputs are whole numbers only.
    """
    centres = centres_on(statistic, space)
    points = outputs_at(centres)
    require_table("the densities at the deciding points", len(centres), len(points))
    densities = exponential(-distances(centres, points) / float(scale))

    def exponent(world: int, output: int) -> Fraction:
        pairs = zip(centres[world], points[output], strict=True)
        return -sum((abs(a - b) for a, b in pairs), Fraction(0)) / scale

    return Channel.from_densities(
        space,
        lattice_on(statistic, space),
        densities,
        labels(points),
        Exponents(exponent),
        axes=[Axis(column, scale, None, whole) for column in zip(*centres, strict=True)],
    )


def centres_on(statistic: Statistic, space: Space) -> list[Centre]:
    """The statistic's value on each class of worlds (on records: on each world)."""
    if isinstance(space, Subsets):
        return statistic.centres(space)
    return statistic.record_centres(space)


def lattice_on(statistic: Statistic, space: Space) -> Lattice | None:
    """The classes of worlds that the statistic tells apart; records have none."""
    return statistic.lattice(space) if isinstance(space, Subsets) else None


def labels(points: Sequence[Centre]) -> list[Hashable]:
    """Deciding points as outputs: a number, or a tuple of numbers, whole where they are whole."""
    plain = [tuple(int(v) if v.denominator == 1 else float(v) for v in point) for point in points]
    return [point[0] if len(point) == 1 else point for point in plain]


def power_table(base: Fraction, exponents: Array) -> Array:
    """base**exponent for whole exponents, exactly."""
    from flint import fmpq

    number = fmpq(base.numerator, base.denominator)
    powers = [number**0]
    for _ in range(int(exponents.max())):
        powers.append(powers[-1] * number)
    lookup = np.empty(len(powers), dtype=object)
    lookup[:] = powers
    return np.asarray(lookup[exponents.astype(np.int64)])
