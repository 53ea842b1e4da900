"""Two-sided geometric noise on a whole-number statistic (Ghosh, Roughgarden, Sundararajan 2009)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from whosin.errors import InvalidInput
from whosin.exact import probability, ranged
from whosin.mechanisms.base import Mechanism, need_space
from whosin.mechanisms.channel import Channel
from whosin.mechanisms.count_table import CountTable
from whosin.mechanisms.entries import Rationals
from whosin.mechanisms.geometric_counts import geometric_counts
from whosin.mechanisms.noise import (
    Axis,
    centres_on,
    labels,
    lattice_on,
    noise_channel,
    positive,
    power_table,
)
from whosin.spaces import Count, Space, Statistic, as_statistic
from whosin.spaces.memory import require_table
from whosin.spaces.statistics import Centre, distances, outputs_at
from whosin.spaces.width import exponential


@dataclass(frozen=True)
class Geometric(Mechanism):
    """statistic(T) + whole-number noise with probability ∝ α^|x| in each coordinate.

    Args:
        statistic: whole-number valued: Count(), Sum(…), Histogram(…), or a function of the set.
        scale: α = e^(−1/scale), as for Laplace noise; or
        alpha: α itself, between 0 and 1. A rational α gives an exact channel.
    """

    statistic: object
    scale: object = None
    alpha: object = None

    def __post_init__(self) -> None:
        as_statistic(self.statistic)
        if (self.scale is None) == (self.alpha is None):
            got = "none" if self.scale is None else "both"
            raise InvalidInput("scale or alpha", "given, one of the two", got)
        if self.scale is not None:
            positive(self.scale, "scale")
        else:
            ranged(self.alpha, "alpha", "strictly between 0 and 1")

    def on_counts(self, people: int, margin: int = 0) -> CountTable | None:
        if as_statistic(self.statistic) != Count():
            return None
        return geometric_counts(people, self.alpha, self.scale, margin)

    def channel(self, space: Space | None = None) -> Channel:
        space, statistic = need_space(space, "Geometric"), as_statistic(self.statistic)
        centres = whole_centres(statistic, space)
        if self.scale is not None:
            return noise_channel(statistic, space, positive(self.scale, "scale"), whole=True)
        points = outputs_at(centres)
        require_table("the probabilities at the deciding points", len(centres), len(points))
        alpha, apart = probability(self.alpha, "alpha"), distances(centres, points)
        return Channel.from_densities(
            space,
            lattice_on(statistic, space),
            exponential(math.log(alpha) * apart),
            labels(points),
            Rationals(power_table(alpha, apart)),
            axes=[Axis(column, None, alpha, True) for column in zip(*centres, strict=True)],
        )


def whole_centres(statistic: Statistic, space: Space) -> list[Centre]:
    """The statistic's value on each class of worlds, if these are whole numbers."""
    centres = centres_on(statistic, space)
    if any(value.denominator != 1 for centre in centres for value in centre):
        raise InvalidInput("statistic", "whole numbers for geometric noise", "fractions")
    return centres
