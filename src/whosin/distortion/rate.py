"""Rate–distortion: the least mutual information for a distortion (Wang14 PD-MIP), and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from whosin.distortion.letters import Letter
from whosin.distortion.mixture import Saddle, saddle
from whosin.exact import Array

TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Point:
    """The channel of each letter, their distortion and information in all, and by how much the
    quantity that was not given may be above the optimum."""

    conditionals: tuple[Array, ...]
    distortion: float
    information: float
    slope: float
    gap: float


def at_distortion(
    letters: Sequence[Letter], wanted: float, slope: float = 1.0, tolerance: float = TOLERANCE
) -> Point:
    """The least information at a distortion; the point's own distortion is at most that."""
    aim, shift = wanted, 1e-15 * wanted
    while True:
        found = saddle(letters, aim, slope, tolerance)
        point = _point(letters, found)
        if point.distortion <= wanted:
            return point
        # Rounding left it a hair above: ask for a hair less.
        slope, aim, shift = found.slope, wanted - (point.distortion - wanted) - shift, 8 * shift


def at_information(letters: Sequence[Letter], wanted: float, most: float) -> Point:
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
    return Point(point.conditionals, point.distortion, point.information, point.slope, gap)


def _point(letters: Sequence[Letter], found: Saddle) -> Point:
    channels = tuple(
        letter.conditionals(weights, found.slope)
        for letter, weights in zip(letters, found.weights, strict=True)
    )
    distortion, information = (
        math.fsum(
            letter.times * getattr(letter, what)(channel)
            for letter, channel in zip(letters, channels, strict=True)
        )
        for what in ("distortion", "information")
    )
    bound = max(found.intercept - found.slope * distortion, 0.0)
    return Point(channels, distortion, information, found.slope, max(0.0, information - bound))
