"""The curve of a channel: the one of the largest profile over all neighbours.

That is the least concave curve above the curves of all pairs: the largest TPR of each pair by
itself is not enough, since one test can serve several pairs. All pairs are searched in
floats; those that come near the curve are computed again in exact rationals.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.curves.curve import CornerCurve, hull, ordered_corners
from whosin.curves.neighbours import compared, pair_of
from whosin.exact import Array, rational
from whosin.families import Family
from whosin.mechanisms import Channel
from whosin.mechanisms.entries import Floats
from whosin.notions.failing import cases_of
from whosin.spaces import Space

NEAR = 1e-12
"""More than the rounding of all floats here."""
DIGITS = 15
"""Points that agree to this many digits are one, in floats."""
FEW_PAIRS, MOST_PAIRS = 64, 4096
"""Up to this many pairs near the curve are computed exactly; with more the curve is a bound."""
FIRST, TOGETHER = 1 << 12, 1 << 20
"""How many pairs are looked at first, and then how many numbers at a time."""


def channel_curve(channel: Channel, relation: str) -> CornerCurve:
    """The curve between neighbours."""
    channel.need_finite("a curve")
    top, bottom = compared(channel.space, channel.lattice, relation)
    near, line = _near(channel.likelihoods.astype(float), top, bottom)
    is_rational = isinstance(channel.entries, Floats)
    kinds = [[int(pair)] for pair in near]
    if is_rational and len(near) > FEW_PAIRS:
        kinds = _different(channel, top, bottom, near)
    if not is_rational or len(kinds) > MOST_PAIRS:
        points = [(Fraction(x), Fraction(y)) for x, y in zip(*line, strict=True)]
        return CornerCurve(_raised(points, NEAR), exact=False, relation=relation)
    corners = []
    for pairs in kinds:
        rows = [_row(channel, int(side[pairs[0]])) for side in (top, bottom)]
        corners.append(ordered_corners(list(zip(*rows, strict=True))))
    highest = hull([corner for each in corners for corner in each])
    attained = [
        pair_of(channel.space, channel.lattice, int(top[pair]), int(bottom[pair]))
        for each, pairs in zip(corners, kinds, strict=True)
        if set(highest[1:-1]) <= set(each)  # each is concave and nowhere above
        for pair in pairs
    ]
    return CornerCurve(highest, relation=relation, attained_by=attained)


def family_curve(mechanism: object, space: Space | None, family: Family) -> CornerCurve:
    """The curve over all priors of a family, between "in" and "out" of any one person."""
    cases = cases_of(mechanism, space, family, positive=True)
    corners: list[tuple[Fraction, Fraction]] = []
    for pair in cases.pairs(exact=cases.is_small):
        for in_, out in zip(pair.top, pair.bottom, strict=True):
            outputs = [(rational(p), rational(q)) for p, q in zip(in_, out, strict=True)]
            corners += ordered_corners(outputs)
        corners = CornerCurve(corners).corners
    if cases.is_small:
        # Between the priors that were tried profiles are no larger, but no prior need attain all.
        return CornerCurve(corners, exact=family.complete)
    return CornerCurve(_raised(corners, cases.rounding + NEAR), exact=False)


def _row(channel: Channel, world: int) -> list[Fraction]:
    return [rational(channel.entries.at(world, o)) for o in range(len(channel.outputs))]


def _cuts(likelihoods: Array, top: Array, bottom: Array) -> tuple[Array, Array]:
    """(FPR, TPR) of each pair's best tests, pairs × outputs."""
    p, q = likelihoods[top], likelihoods[bottom]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(p + q > 0, q / (p + q), 2.0)
    order = np.argsort(share, axis=1)
    return (
        np.cumsum(np.take_along_axis(q, order, 1), axis=1),
        np.cumsum(np.take_along_axis(p, order, 1), axis=1),
    )


def _near(likelihoods: Array, top: Array, bottom: Array) -> tuple[Array, tuple[Array, Array]]:
    """The pairs that have a point on the curve, and some more; and the curve in floats.

    A first look at some pairs leaves few points of the others above their curve.
    """
    line = np.array([0.0, 1.0]), np.array([0.0, 1.0])
    kept: list[tuple[Array, Array, Array]] = []
    for start, end in _chunks(len(top), likelihoods.shape[1]):
        fpr, tpr = _cuts(likelihoods, top[start:end], bottom[start:end])
        pairs, cuts = np.nonzero((tpr >= np.interp(fpr, *line) - NEAR) & (fpr < 1 - NEAR))
        kept.append((start + pairs, fpr[pairs, cuts], tpr[pairs, cuts]))
        line = _hull(np.append(line[0], kept[-1][1]), np.append(line[1], kept[-1][2]))
    pairs, fpr, tpr = (np.concatenate(column) for column in zip(*kept, strict=True))
    return np.unique(pairs[tpr >= np.interp(fpr, *line) - NEAR]), line


def _chunks(pairs: int, outputs: int) -> Iterator[tuple[int, int]]:
    step, start = FIRST, 0
    while start < pairs:
        yield start, min(start + step, pairs)
        start, step = start + step, max(1, TOGETHER // outputs)


def _hull(x: Array, y: Array) -> tuple[Array, Array]:
    """The corners of the least concave curve above points, in floats."""
    points = np.unique(np.stack([x, y], axis=1).round(DIGITS), axis=0)
    highest = np.append(np.diff(points[:, 0]) > 0, True)  # of each FPR
    hull_points: list[tuple[float, float]] = []
    for a, b in points[highest].tolist():
        while len(hull_points) > 1 and _below(hull_points[-2], hull_points[-1], (a, b)):
            hull_points.pop()
        hull_points.append((a, b))
    corners = np.array(hull_points)
    return corners[:, 0], corners[:, 1]


def _below(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) >= (b[1] - a[1]) * (c[0] - a[0])


def _different(channel: Channel, top: Array, bottom: Array, near: Array) -> list[list[int]]:
    """Pairs by kind: the same entries in another order have the same curve."""
    numbers: dict[Any, int] = {}
    seen: dict[tuple[Any, ...], list[int]] = {}
    codes: dict[int, list[int]] = {}
    for pair in near:
        rows = []
        for world in (int(top[pair]), int(bottom[pair])):
            if world not in codes:
                row = (channel.entries.at(world, o) for o in range(len(channel.outputs)))
                codes[world] = [numbers.setdefault(_key(entry), len(numbers)) for entry in row]
            rows.append(codes[world])
        seen.setdefault(tuple(sorted(zip(*rows, strict=True))), []).append(int(pair))
    return list(seen.values())


def _key(entry: Any) -> Any:
    return (entry.p, entry.q) if hasattr(entry, "p") else entry


def _raised(points: list[tuple[Fraction, Fraction]], by: float) -> list[tuple[Fraction, Fraction]]:
    more = Fraction(by)
    return [(fpr, min(tpr + more, Fraction(1))) for fpr, tpr in points]
