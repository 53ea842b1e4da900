"""Rate–distortion: the least mutual information for a distortion (Wang14 PD-MIP, F15).

Contract: each *letter* is a small problem of its own (p, d): one for each distinct row where rows
are independent (the single-letter form: equal slopes are optimal), else one for the whole table,
over counts instead of tables where rows can be exchanged. At slope λ

    R(D) ≥ −λ D − Σ p ln(K q) − ln max_y Σ p K/(K q)        for every D, whatever q,

so the lower bound that is reported does not depend on how well the solver did. Where the curve is a
straight line the slope jumps over the target, and two channels are mixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from whosin.distortion.mixture import Fit, fit
from whosin.distortion.types import Types
from whosin.exact import Array

MOST_COMPONENTS = 2048
NEAR = 1e-6
"""Two slopes whose values are this close are mixed: what that costs is of second order."""


@dataclass(frozen=True, eq=False)
class Letter:
    """A problem of its own, `times` over: its kernel K at a slope, the channel that weights make of
    it, and that channel's distortion and information."""

    masses: Array
    times: int
    kernel: Callable[[float], Array]
    conditionals: Callable[[Fit, float], Array]
    distortion: Callable[[Array], float]
    information: Callable[[Array], float]


@dataclass(frozen=True, eq=False)
class Point:
    """What one slope gives: conditionals of each letter, their distortion and information."""

    slope: float
    conditionals: tuple[Array, ...]
    distortion: float
    information: float
    intercept: float
    """R(D) ≥ intercept − slope · D."""


def row_letter(row: Array, cost: Array, times: int) -> Letter:
    """One row of a table of independent rows."""

    def conditionals(found: Fit, slope: float) -> Array:
        table = np.exp(-slope * cost) * found.weights
        return np.asarray(table / table.sum(axis=1, keepdims=True))

    def information(channel: Array) -> float:
        joint = row[:, None] * channel
        return _information(joint, channel, np.broadcast_to(joint.sum(axis=0), joint.shape))

    return Letter(
        row,
        times,
        lambda slope: np.exp(-slope * cost),
        conditionals,
        lambda channel: float((row[:, None] * channel * cost).sum()),
        information,
    )


def table_letter(types: Types, masses: Array, cost: Array) -> Letter:
    """A whole table by type: components are the counts of y."""
    spread, size = types.cost(cost), len(masses)
    into = types.inputs * size + types.outputs

    def kernel(slope: float) -> Array:
        each = np.exp(types.log_ways - types.log_arrangements[types.outputs] - slope * spread)
        return np.bincount(into, each, size * size).reshape(size, size)

    def conditionals(found: Fit, slope: float) -> Array:
        logs = types.log_ways - types.log_arrangements[types.outputs] - slope * spread
        each = np.exp(logs) * found.weights[types.outputs]
        sums = np.bincount(types.inputs, each, size)
        return np.asarray(each / sums[types.inputs])

    return Letter(
        masses,
        1,
        kernel,
        conditionals,
        lambda weights: float((masses[types.inputs] * weights * spread).sum()),
        lambda weights: type_information(types, masses, weights),
    )


def type_information(types: Types, masses: Array, weights: Array) -> float:
    """I(X;Y) of a mechanism given by its weights by type."""
    joint = masses[types.inputs] * weights
    outputs = np.bincount(types.outputs, joint, len(masses))
    with np.errstate(divide="ignore"):
        given = np.log(weights) - types.log_ways
        shown = np.log(outputs)[types.outputs] - types.log_arrangements[types.outputs]
    seen = joint > 0
    value = float(np.sum(joint[seen] * (given[seen] - shown[seen])))
    return value if value > 1e-14 else 0.0


def _information(joint: Array, given: Array, outputs: Array) -> float:
    seen = joint > 0
    return max(0.0, float(np.sum(joint[seen] * np.log(given[seen] / outputs[seen]))))


def at_slope(letters: list[Letter], slope: float, starts: list[Array] | None = None) -> Point:
    """The best conditionals at one slope."""
    channels, distortion, information, intercept = [], 0.0, 0.0, 0.0
    for number, letter in enumerate(letters):
        kernel = letter.kernel(slope)
        found = fit(letter.masses, kernel, start=starts[number] if starts else None)
        channel = letter.conditionals(found, slope)
        seen = letter.masses > 0
        value = -float(np.sum(letter.masses[seen] * np.log(found.sums[seen]))) - found.gap
        channels.append(channel)
        distortion += letter.times * letter.distortion(channel)
        information += letter.times * letter.information(channel)
        intercept += letter.times * value
    return Point(slope, tuple(channels), distortion, information, intercept)


def solve(
    letters: list[Letter], *, distortion: float | None = None, information: float | None = None
) -> tuple[Point, float]:
    """The curve at a distortion, or at an information: the point, and its optimality gap.

    Returns:
        a point whose given quantity is at most what was asked for, and by how much the other one
        may be above the optimum (in nats, or in units of distortion).
    """
    asked = distortion if distortion is not None else information
    assert asked is not None
    by_distortion = distortion is not None

    def value(point: Point) -> float:
        return point.distortion if by_distortion else point.information

    # A steep slope has little distortion and much information.
    points = [at_slope(letters, 1.0)]
    low, high = points[0], points[0]
    while value(high) > asked if by_distortion else value(high) < asked:
        if high.slope > 500:
            break
        high = at_slope(letters, high.slope * 2)
        points.append(high)
    while value(low) < asked if by_distortion else value(low) > asked:
        if low.slope < 1e-9:
            break
        low = at_slope(letters, low.slope / 2)
        points.append(low)
    for step in range(80):
        gap = abs(value(high) - value(low))
        if gap <= NEAR * max(1.0, asked) or high.slope - low.slope <= 1e-13 * high.slope:
            break
        share = (asked - value(low)) / (value(high) - value(low))
        share = 0.5 if step % 3 == 2 else min(max(share, 1e-3), 1 - 1e-3)
        middle = at_slope(letters, low.slope + share * (high.slope - low.slope))
        points.append(middle)
        if abs(value(middle) - asked) <= 1e-13 * max(1.0, asked):
            low = high = middle
            break
        steep = value(middle) <= asked if by_distortion else value(middle) >= asked
        low, high = (low, middle) if steep else (middle, high)
    point = _mixed(letters, low, high, asked, by_distortion)
    if by_distortion:
        bound = max(p.intercept - p.slope * point.distortion for p in points)
        return point, max(0.0, point.information - max(bound, 0.0))
    least = max((p.intercept - point.information) / p.slope for p in points)
    return point, max(0.0, point.distortion - max(least, 0.0))


def _mixed(
    letters: list[Letter], low: Point, high: Point, asked: float, by_distortion: bool
) -> Point:
    """The mixture of two slopes' channels that has the distortion (or at most the information)."""
    ends = [p.distortion if by_distortion else p.information for p in (low, high)]
    if ends[0] == ends[1]:
        return high if by_distortion else low
    share = min(max((asked - ends[0]) / (ends[1] - ends[0]), 0.0), 1.0)
    channels = tuple(
        (1 - share) * one + share * two
        for one, two in zip(low.conditionals, high.conditionals, strict=True)
    )
    distortion = sum(a.times * a.distortion(c) for a, c in zip(letters, channels, strict=True))
    information = sum(a.times * a.information(c) for a, c in zip(letters, channels, strict=True))
    return Point(high.slope, channels, distortion, information, 0.0)


def entropy_bound(space_rows: int, values: int, entropy: float, distortion: float) -> float:
    """Shannon's lower bound for Hamming distortion: H(X) − n h₂(D/n) − D ln(m−1), at least 0.

    It is attained for D ≤ h(ε̃_X) (T17; for i.i.d. rows that is D/n ≤ (m−1) p_min).
    """
    share = distortion / space_rows
    if share >= (values - 1) / values:
        return 0.0
    spread = 0.0 if share == 0 else -share * math.log(share) - (1 - share) * math.log1p(-share)
    return max(0.0, entropy - space_rows * (spread + share * math.log(values - 1)))
