"""Laplace, geometric and Gaussian noise on a statistic."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from whosin.errors import (
    InvalidInput,
    NoPureLevel,
    Unsupported,
    invalid_value,
    require_exactly_one,
    spell,
)
from whosin.exact import (
    Array,
    ball_exp,
    certificate_precision,
    divide_up,
    exp_down,
    flint_rational,
    probability,
    rational,
    read_ranged,
)
from whosin.mechanisms.channel import Channel, ColumnChannel, LazyChannel, Mechanism, need_space
from whosin.mechanisms.count_table import Beyond, CountTable
from whosin.mechanisms.entries import Balls, Entries, Exponents, Rationals
from whosin.spaces import (
    Count,
    CountLattice,
    Lattice,
    Max,
    Space,
    Statistic,
    Subsets,
    read_statistic,
)
from whosin.spaces.arrays import require_table, widest_exp
from whosin.spaces.statistics import Centre, Contributions, centre_distances, centre_grid

# Additive noise whose density falls by e^−distance/scale: what Laplace and geometric share.
#
# F10: with the same noise around finitely many centres, the ratio of any two mixtures is
# monotone between consecutive centres and constant outside, so its sup is attained at a centre; in
# several dimensions on the product grid of the centres' coordinates. So these points are all that
# exact verification needs, under any prior, of every notion that is about one ratio. Bayesian
# semantic privacy is about a product of two: `Axis` says what the noise is between the points.

MIN_SCALE = Fraction(1, 10**300)


def read_positive(value: object, field: str) -> Fraction:
    number = rational(value, field)
    if number <= 0:
        raise invalid_value(field, "above 0", value)
    if not MIN_SCALE <= number <= 1 / MIN_SCALE:
        raise invalid_value(field, "between 1e-300 and 1e300", value)
    return number


@dataclass(frozen=True)
class AdditiveNoise(Mechanism):
    statistic: object
    scale: object

    def __post_init__(self) -> None:
        read_statistic(self.statistic)
        read_positive(self.scale, "scale")


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


class SumChannel(LazyChannel):
    """Noise on a sum of contributions: its worst cases have closed forms.

    Args:
        noise: the noise of each coordinate, without its centres.
        tabulate: makes the table of densities at the deciding points.
    """

    def __init__(self, sums: Contributions, noise: Axis, tabulate: Callable[[], Channel]) -> None:
        super().__init__(sums.space, CountLattice(sums.space, sums.kinds), tabulate, True)
        self.sums, self.noise = replace(sums, rate=noise.rate), noise

    def distance_ratio(self, top: Distances, bottom: Distances) -> Fraction | float:
        """Σ weight · noise at a distance, over another such sum: exact, or just above."""
        check_nats(self.noise.rate * float(max(d for d, _ in (*top, *bottom))))
        with certificate_precision():
            sums = [
                sum(self.noise.fall(d) * flint_rational(weight) for d, weight in side)
                for side in (top, bottom)
            ]
        return divide_up(*sums)


Distances = Sequence[tuple[Fraction, Fraction]]
"""Distances between an output and a world's statistic, with weights."""
MAX_NATS = 1 << 20
"""The largest logarithm of a likelihood ratio that is computed."""


def check_nats(nats: Fraction | float) -> None:
    """Refuse a likelihood ratio that no number here holds."""
    if nats > MAX_NATS:
        message = f"the noise is too small: a likelihood ratio is above e^{spell(MAX_NATS)}"
        raise Unsupported(message, field="scale", hint="use a larger scale")


def noise_channel(statistic: Statistic, space: Space, noise: Axis) -> Channel:
    """The densities at the deciding points: e^(−‖output − centre‖₁ / scale), or a power of α."""
    sums = statistic.contributions(space) if isinstance(space, Subsets) else None
    if noise.whole:
        check_whole(statistic, [sums.weights] if sums else statistic_centres(statistic, space))

    def tabulate() -> Channel:
        centres = statistic_centres(statistic, space)
        points = centre_grid(centres)
        require_table("the densities at the deciding points", len(centres), len(points))
        apart = centre_distances(centres, points)
        entries = _noise_entries(centres, points, noise)
        if noise.alpha is not None:
            entries = Rationals(power_table(flint_rational(noise.alpha), apart))
        return Channel.from_densities(
            space,
            statistic_lattice(statistic, space),
            widest_exp(-apart * noise.rate),
            point_labels(points),
            entries,
            axes=[replace(noise, centres=column) for column in zip(*centres, strict=True)],
        )

    if sums is not None:
        return SumChannel(sums, noise, tabulate)
    if not isinstance(space, Subsets) or not isinstance(statistic, Max):
        return tabulate()
    centres = statistic.centres(space)
    if len(centres) <= MAX_TABULATED_CENTRES:
        return tabulate()
    points = centre_grid(sorted(set(centres)))
    places = np.array([float(centre[0]) for centre in centres])

    def columns(numbers: Sequence[int]) -> Array:
        shown = np.array([float(points[number][0]) for number in numbers])
        return widest_exp(-np.abs(np.subtract.outer(places, shown)) * noise.rate)

    step = max(1, MAX_BLOCK_ENTRIES // len(centres))
    blocks = [range(start, min(start + step, len(points))) for start in range(0, len(points), step)]
    lazy = space, statistic.lattice(space), tabulate, True
    entries = _noise_entries(centres, points, noise)
    return ColumnChannel(lazy, entries, point_labels(points), columns, blocks)


MAX_TABULATED_CENTRES = 1_000
MAX_BLOCK_ENTRIES = 1 << 24
"""Likelihoods that are searched at a time."""


def _noise_entries(centres: list[Centre], points: list[Centre], noise: Axis) -> Entries:
    """The densities, computed when they are asked for: balls, or powers of α."""

    def distance(world: int, output: int) -> Fraction:
        pairs = zip(centres[world], points[output], strict=True)
        return sum((abs(a - b) for a, b in pairs), Fraction(0))

    if noise.alpha is not None:
        return Balls(lambda world, output: noise.fall(distance(world, output)))
    scale = rational(noise.scale)
    return Exponents(lambda world, output: -distance(world, output) / scale)


def statistic_centres(statistic: Statistic, space: Space) -> list[Centre]:
    """The statistic's value on each class of worlds (on records: on each world)."""
    if isinstance(space, Subsets):
        return statistic.centres(space)
    return statistic.record_centres(space)


def statistic_lattice(statistic: Statistic, space: Space) -> Lattice | None:
    """The classes of worlds that the statistic tells apart; records have none."""
    return statistic.lattice(space) if isinstance(space, Subsets) else None


def point_labels(points: Sequence[Centre]) -> list[Hashable]:
    """Deciding points as outputs: a number, or a tuple of numbers, whole where they are whole."""
    plain = [tuple(int(v) if v.denominator == 1 else float(v) for v in point) for point in points]
    return [point[0] if len(point) == 1 else point for point in plain]


def power_table(base: Any, exponents: Array) -> Array:
    """base**exponent for whole exponents, in the base's kind of number."""
    exact = not isinstance(base, float)
    powers = np.empty(int(exponents.max()) + 1, dtype=object if exact else float)
    power = base**0
    for exponent in range(len(powers)):
        powers[exponent], power = power, power * base
    return np.asarray(powers[exponents.astype(np.int64)])


@dataclass(frozen=True)
class Laplace(AdditiveNoise):
    """statistic(T) + noise with density e^(−|x|/scale) / (2 scale) in each coordinate (Dwork et al.
    2006).

    With scale Δ/ε, where Δ is the L1 sensitivity, it is ε-differentially private.

    Args:
        statistic: Count(), Sum(…), Histogram(…), Max(…), or a function of the set of entities.
        scale: the scale of the noise, above 0.
    """

    def channel(self, space: Space | None = None) -> Channel:
        scale = read_positive(self.scale, "scale")
        statistic = read_statistic(self.statistic)
        return noise_channel(statistic, need_space(space, "Laplace"), Axis((), scale))


@dataclass(frozen=True)
class Gaussian(AdditiveNoise):
    """statistic(T) + normal noise with standard deviation `scale` in each coordinate."""

    def channel(self, space: Space | None = None) -> NoReturn:
        raise NoPureLevel(
            "Gaussian noise has unbounded likelihood ratios, so no pure γ or ε holds for it",
            hint="allow a small failure probability δ, or use Laplace or geometric noise",
        )


# A count with two-sided geometric noise, as a table of counts by outputs.
#
# Noisy counts are all whole numbers, but those below 0 have likelihoods in proportion to each
# other, whatever the count 0 … n is, and so have those above n: taking them together loses nothing.
# Maps that mix some of them with others need the first few on either side told apart (`margin`).

TAIL_NATS = 64 * math.log(2)
"""Minus the logarithm of what may be left beyond the margin where a map needs all of it."""
MIN_TABULATED_PROBABILITY = 1e-290


def geometric_counts(people: int, alpha: object, scale: object, margin: int) -> CountTable:
    """Pr[noisy count | count], one column for each of −margin … people + margin and two for what is
    beyond them.

    Args:
        alpha: the noise has probability ∝ α^|x|: exact; or
        scale: α = e^(−1/scale), rounded down, so that there is no more noise than that.
        margin: reduced to where less than 2^−64 is left.
    """
    exact = alpha is not None
    base = probability(alpha, "alpha") if exact else exp_down(-1 / float(rational(scale)))
    margin = min(margin, math.ceil(TAIL_NATS / -math.log(base)) + 1)
    first, last = -margin, people + margin
    outcomes = np.arange(first - 1, last + 2)
    require_table("the table of counts by outputs", people + 1, len(outcomes))
    counts = np.repeat(np.arange(people + 1), len(outcomes))
    columns = np.tile(np.arange(len(outcomes)), people + 1)
    apart = np.abs(outcomes[columns] - counts)
    # Σ over all further counts of α^distance is α^(distance of the first of them)/(1 − α).
    at_end = (columns == 0) | (columns == len(outcomes) - 1)
    number = flint_rational(base) if exact else float(base)
    powers = power_table(number, apart)
    weights = powers * np.where(at_end, 1 / (1 + number), (1 - number) / (1 + number))
    kept = weights != 0
    between = map(int, outcomes[1:-1])
    outputs: tuple[Hashable, ...] = (Beyond(True, first), *between, Beyond(False, last))
    lost = not exact and float(powers.min()) < MIN_TABULATED_PROBABILITY
    return CountTable(people, counts[kept], columns[kept], weights[kept], outputs, lost)


@dataclass(frozen=True)
class Geometric(Mechanism):
    """statistic(T) + whole-number noise with probability ∝ α^|x| in each coordinate (Ghosh,
    Roughgarden, Sundararajan 2009).

    Args:
        statistic: whole-number valued: Count(), Sum(…), Histogram(…), or a function of the set.
        scale: α = e^(−1/scale), as for Laplace noise; or
        alpha: α itself, between 0 and 1. A rational α gives an exact channel.
    """

    statistic: object
    scale: object = None
    alpha: object = None

    def __post_init__(self) -> None:
        read_statistic(self.statistic)
        require_exactly_one(scale=self.scale, alpha=self.alpha)
        if self.scale is not None:
            read_positive(self.scale, "scale")
        else:
            read_ranged(self.alpha, "alpha", "strictly between 0 and 1")

    def on_counts(self, people: int, margin: int = 0) -> CountTable | None:
        if read_statistic(self.statistic) != Count():
            return None
        return geometric_counts(people, self.alpha, self.scale, margin)

    def channel(self, space: Space | None = None) -> Channel:
        space, statistic = need_space(space, "Geometric"), read_statistic(self.statistic)
        if self.scale is not None:
            noise = Axis((), read_positive(self.scale, "scale"), None, True)
        else:
            noise = Axis((), None, probability(self.alpha, "alpha"), True)
        return noise_channel(statistic, space, noise)


def check_whole(statistic: Statistic, centres: list[Centre]) -> None:
    """Refuse a statistic with other values than whole numbers."""
    if any(value.denominator != 1 for centre in centres for value in centre):
        message = "geometric noise is for whole numbers, and this statistic has fractions"
        hint = "scale the statistic, or use Laplace noise"
        raise InvalidInput(message, field="statistic", value=statistic, hint=hint)
