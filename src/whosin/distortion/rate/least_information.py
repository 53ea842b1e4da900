"""Rate–distortion: the least mutual information for a distortion (Wang14 PD-MIP), and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from whosin.distortion.rate.letters import Letter
from whosin.distortion.rate.saddle_point import Saddle, saddle
from whosin.exact import Array

TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class RatePoint:
    """The channel of each letter, their distortion and information in all, and by how much the
    quantity that was not given may be above the optimum."""

    conditionals: tuple[Array, ...]
    distortion: float
    information: float
    slope: float
    gap: float


def at_distortion(
    letters: Sequence[Letter], wanted: float, slope: float = 1.0, tolerance: float = TOLERANCE
) -> RatePoint:
    """The least information at a distortion; the point's own distortion is at most that."""
    result = saddle(letters, wanted, slope, tolerance)
    channels, distortion = _channels(letters, result, result.slope)
    step = max(1e-16, distortion / wanted - 1)
    while distortion > wanted:
        # Just above: the same weights at a slightly steeper slope show the truth more often.
        channels, distortion = _channels(letters, result, result.slope * (1 + step))
        step *= 4
    pairs = zip(letters, channels, strict=True)
    information = math.fsum(each.times * each.information(channel) for each, channel in pairs)
    bound = max(result.intercept - result.slope * distortion, 0.0)
    return RatePoint(channels, distortion, information, result.slope, max(0.0, information - bound))


def at_information(letters: Sequence[Letter], wanted: float, most: float) -> RatePoint:
    """The least distortion at an information, from the left by Newton's method: the curve is convex
    and falls with slope −λ, so a tangent never passes the point that is looked for.

    Args:
        most: the distortion at which no information is left.
    """
    low, aim, slope = 0.0, most / 2, 1.0
    point = at_distortion(letters, aim, slope)
    while point.information < wanted and aim > 1e-300:  # start from the left
        aim /= 2
        point = at_distortion(letters, aim, point.slope)
    for _ in range(100):
        low, excess = aim, point.information - wanted
        if excess <= 1e-14 * max(1.0, wanted) or point.slope <= 0:
            break
        aim = low + excess / point.slope
        if aim <= low:
            break
        point = at_distortion(letters, aim, point.slope)
    step = 1e-15 * most
    while point.information > wanted:
        aim, step = aim + step, 8 * step
        point = at_distortion(letters, aim, point.slope)
    # D ≥ (intercept − R)/λ for every mechanism with information R.
    least = (point.information - point.gap - wanted) / point.slope + point.distortion
    gap = max(0.0, point.distortion - max(least, 0.0))
    return RatePoint(point.conditionals, point.distortion, point.information, point.slope, gap)


def _channels(
    letters: Sequence[Letter], saddle: Saddle, slope: float
) -> tuple[tuple[Array, ...], float]:
    """The channels of these weights at a slope, and their distortion."""
    given = zip(letters, saddle.weights, strict=True)
    channels = tuple(letter.conditionals(weights, slope) for letter, weights in given)
    pairs = zip(letters, channels, strict=True)
    return channels, math.fsum(each.times * each.distortion(channel) for each, channel in pairs)
