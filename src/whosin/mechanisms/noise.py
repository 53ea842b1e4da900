"""Additive noise whose density falls by e^−distance/scale: what Laplace and geometric share.

THEORY F10: with the same noise around finitely many centres, the ratio of any two mixtures is
monotone between consecutive centres and constant outside, so its sup is attained at a centre; in
several dimensions on the product grid of the centres' coordinates. So these points are all that
exact verification needs, under any prior.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, rational
from whosin.mechanisms.channel import Channel
from whosin.spaces import Lattice, Space, Statistic, Subsets
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


def noise_channel(statistic: Statistic, space: Space, scale: Fraction) -> Channel:
    """The densities e^(−‖output − centre‖₁ / scale) at the deciding points."""
    centres = centres_on(statistic, space)
    points = outputs_at(centres)
    require_table("the densities at the deciding points", len(centres), len(points))
    densities = exponential(-distances(centres, points) / float(scale))

    def exponent(world: int, output: int) -> Fraction:
        pairs = zip(centres[world], points[output], strict=True)
        return -sum((abs(a - b) for a, b in pairs), Fraction(0)) / scale

    return Channel.from_densities(
        space, lattice_on(statistic, space), densities, labels(points), exponents=exponent
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
