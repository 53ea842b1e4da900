"""Bayesian semantic privacy between the centres of noise, where F10 has a limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.errors import Unsupported
from whosin.exact import Array, ball_end, exact_fraction, rational
from whosin.mechanisms import Channel
from whosin.mechanisms.additive_noise import Axis
from whosin.notions import certificates
from whosin.notions.certificates import MAX_NEAR_CASES, MAX_RECOMPUTED_BALLS, NEAR_RATIO, Certain
from whosin.spaces import Records

# Critical points of the spread of two cells between neighbouring centres of noise, in balls: at the
# root of its derivative, or, where no root can be enclosed, over the whole gap.

BALL_PRECISION_BITS = 320


@dataclass(frozen=True)
class Gap:
    """A row, a set of known rows and a pair of neighbouring centres."""

    bound: float
    row: int
    pattern: int
    number: int


@dataclass(frozen=True)
class Pair:
    """Two cells whose quotient of r is large at some output in a gap; a cell is the values of row
    i and of the known rows."""

    value: Any
    gap: Gap
    most: Mapping[int, int]
    least: Mapping[int, int]
    root: Any
    output: Fraction | None


def derivative_coefficients(top: Sequence[Any], bottom: Sequence[Any]) -> tuple[Any, Any, Any]:
    """(a, b, c): the derivative of top/bottom has the sign of a w² + 2 b w + c."""
    n2, n1, n0 = top
    d2, d1, d0 = bottom
    return n2 * d1 - n1 * d2, n2 * d0 - n0 * d2, n1 * d0 - n0 * d1


def _ball_product(one: tuple[Any, Any], two: tuple[Any, Any]) -> tuple[Any, Any, Any]:
    return one[0] * two[0], one[0] * two[1] + one[1] * two[0], one[1] * two[1]


def _ball_roots(a: Any, b: Any, c: Any, fall: Any) -> list[Any]:
    """Balls around the real roots of a w² + 2 b w + c, without those surely beyond 1/fall; None
    where one could not be enclosed."""
    inside = b * b - a * c
    if inside.upper() < 0:
        return []
    root = inside.sqrt()
    if not root.is_finite():
        return [None]
    half = -(b + root) if b > 0 else root - b
    result = []
    for top, bottom in ((half, a), (c, half)):
        value = top / bottom
        if value.is_finite():
            result.append(value)
        elif not top.abs_lower() * fall.lower() > bottom.abs_upper():
            result.append(None)
    return result


def _over_gap(lines: Sequence[Any], slope: Sequence[Any], fall: Any, reached: Any) -> Any:
    """A bound on a pair's spread over a whole gap, from what it reaches somewhere in it.

    Both ratios are monotone, so their ends bound it. And where the spread hardly moves: with
    top · bottom = Σ of positive terms, |d ln spread / d ln w| is at most the sum of what is left of
    each coefficient of the slope relative to the terms that cancelled in it.
    """
    from flint import arb

    p, q, other_q, other_p = lines
    ends = [fall, 1 / fall]
    ratios = [_evaluate_line(p, w) / _evaluate_line(q, w) for w in ends]
    others = [_evaluate_line(other_q, w) / _evaluate_line(other_p, w) for w in ends]
    corner = _largest_ball(ratios) * _largest_ball(others)
    (n2, n1, n0), (d2, d1, d0) = _ball_product(p, other_q), _ball_product(q, other_p)
    terms = (n2 * d1 + n1 * d2, n2 * d0 + n0 * d2, n1 * d0 + n0 * d1)
    left = arb(0)
    for coefficient, size, times in zip(slope, terms, (1, 2, 1), strict=True):
        if size != 0:
            left += times * coefficient.abs_upper() / size
    flat = reached * (left * -2 * fall.log()).exp()
    return flat if flat.is_finite() and flat.upper() < corner.upper() else corner


def _evaluate_line(line: tuple[Any, Any], w: Any) -> Any:
    return line[0] * w + line[1]


def _pair_spread(p: Any, q: Any, other_q: Any, other_p: Any, w: Any) -> Any:
    tops, bottoms = (p, other_q), (q, other_p)
    one, two = (_evaluate_line(a, w) * _evaluate_line(b, w) for a, b in (tops, bottoms))
    return one / two


def _largest_ball(balls: Sequence[Any]) -> Any:
    return balls[0] if balls[0].upper() > balls[1].upper() else balls[1]


# What Bayesian semantic privacy is between the centres of noise, where F10 has a limit.
#
# For one row i and one set S of known rows the spread max r / min r is a quotient of two likelihood
# ratios, P(y) Q'(y) / (Q(y) P'(y)), and can be larger between two neighbouring centres than at
# both. There each mixture is e^(−(y−c)/s) (u w + d) with w = e^((2y − c − c')/s), c < y < c', so
# the spread is a quotient of quadratics in w, and its critical points are the roots of
#
#     (n₂d₁ − n₁d₂) w² + 2 (n₂d₀ − n₀d₂) w + (n₁d₀ − n₀d₁).
#
# Each r is monotone between centres, so max r and min r at the two ends bound the spread in
# between; only where that bound exceeds the best known spread are roots taken: in floats for all
# pairs, then in balls for those near the best. Whole outputs are checked on both sides of a root.
# In several dimensions the bound over the corners of each cell is all there is, and the level says
# bound.

Sides = tuple[Array, Array]
"""(max r, min r) of one row: sets of known rows × outputs."""
MAX_LOG_GAP = 350.0
"""Between centres further apart than this many scales the bound is taken instead of roots."""
PAIR_BLOCK_SIZE = 1 << 20
"""How many pairs are compared at a time, and `MAX_COMPARED_PAIRS` how many in all."""
MAX_COMPARED_PAIRS = 1 << 26
MAX_RATIO = Fraction(2) ** 1000
"""From here on the level is 1 in floats."""


@dataclass(frozen=True)
class Between:
    """The largest spread over all outputs.

    Attributes:
        upper: no output has a larger one.
        attained: some output between the deciding points has at least this, `row`, `pattern` and
            `output` say where; 0 where nothing larger than at the deciding points was found.
    """

    upper: Fraction | float
    attained: Fraction | float = 0
    row: int = 0
    pattern: int = 0
    output: Hashable = None


def between_centres(
    channel: Channel,
    mass: Array,
    default: int,
    sides: Sequence[Sides],
    best: Fraction | float,
    known_of: Callable[[int, int], tuple[int, ...]],
) -> Between:
    """The largest spread of a channel with a density, given those at its deciding points.

    Args:
        sides: for each row, max r and min r at the deciding points.
        best: the largest spread there, certified.
        known_of: the known rows of a (pattern, row).
    """
    if channel.axes is None:
        message = "the densities between the breakpoints of this mechanism are not known"
        raise Unsupported(message, field="mechanism")
    if best > MAX_RATIO:
        return Between(best)
    axes = [axis for axis in channel.axes if isinstance(axis, Axis) and any(axis.gaps())]
    if not axes:
        return Between(best)
    if len(channel.axes) > 1:
        return Between(max(best, _over_cells(channel.axes, sides)))
    search = _Search(Certain(channel, mass), axes[0], default, known_of)
    return search.run(sides, best)


def _over_cells(axes: Sequence[Axis | int], sides: Sequence[Sides]) -> Fraction | float:
    """max r over the corners of a cell over min r there, the largest over all cells."""
    shape = [axis if isinstance(axis, int) else len(axis.points) for axis in axes]
    worst: Any = 1.0
    for most, least in sides:
        ends = []
        for array, extreme in ((most, np.fmax), (least, np.fmin)):
            cells = array.reshape(-1, *shape)
            for number, axis in enumerate(axes, start=1):
                if isinstance(axis, Axis):
                    cells = _append_gaps(cells, number, axis.gaps(), extreme)
            ends.append(cells)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            worst = np.fmax(worst, np.nanmax(ends[0] / ends[1], initial=1.0))
    return math.inf if np.isinf(worst) else exact_fraction(worst) * (1 + Fraction(NEAR_RATIO))


def _append_gaps(cells: Array, axis: int, gaps: Sequence[bool], extreme: Any) -> Array:
    """Points along an axis, followed by the gaps between them at the worse of their ends."""
    first = np.take(cells, range(len(gaps)), axis=axis)
    second = np.take(cells, range(1, len(gaps) + 1), axis=axis)
    open_ = [index for index, has in enumerate(gaps) if has]
    return np.concatenate([cells, np.take(extreme(first, second), open_, axis=axis)], axis=axis)


class _Search:
    """The roots between the centres of one coordinate."""

    def __init__(
        self,
        certain: Certain,
        axis: Axis,
        default: int,
        known_of: Callable[[int, int], tuple[int, ...]],
    ) -> None:
        self.certain, self.axis, self.default, self.known_of = certain, axis, default, known_of
        self.space: Records = certain.space
        order = {point: index for index, point in enumerate(axis.points)}
        self.positions = np.array([order[centre] for centre in axis.centres])
        self.points = np.array([np.longdouble(float(point)) for point in axis.points])
        self.tables: dict[int, Array] = {}
        self.pairs: list[Pair] = []

    def run(self, sides: Sequence[Sides], best: Fraction | float) -> Between:
        """Go through the gaps from the largest bound down, until no bound exceeds what is known."""
        top, upper, work = float(best), best, 0
        gaps = sorted(self._gaps(sides, top), key=lambda gap: -gap.bound)
        for gap in gaps:
            if gap.bound <= top * (1 + NEAR_RATIO):
                break
            if self._depth(gap.number) > MAX_LOG_GAP or work > MAX_COMPARED_PAIRS:
                upper = max(upper, exact_fraction(gap.bound) * (1 + Fraction(NEAR_RATIO)))
                continue
            work += self._look(gap, top)
            top = max([top, *(float(pair.value) for pair in self.pairs)])
        return self._certified(best, upper, top)

    def _depth(self, number: int) -> float:
        return float(self.points[number + 1] - self.points[number]) * self.axis.rate

    def _gaps(self, sides: Sequence[Sides], top: float) -> list[Gap]:
        result = []
        open_ = np.array(self.axis.gaps())
        for row, (most, least) in enumerate(sides):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                bound = np.fmax(most[:, :-1], most[:, 1:]) / np.fmin(least[:, :-1], least[:, 1:])
            for pattern, index in np.argwhere((bound > top * (1 + NEAR_RATIO)) & open_):
                result.append(Gap(float(bound[pattern, index]), row, int(pattern), int(index)))
        return result

    def _table(self, number: int) -> Array:
        """(u, d) of every condition in one gap: (m+1) … (m+1) × 2."""
        if number not in self.tables:
            at, rate = self.points[self.positions], np.longdouble(self.axis.rate)
            below, above = self.points[number], self.points[number + 1]
            up = np.where(self.positions > number, np.exp(np.minimum(-(at - above) * rate, 0)), 0)
            down = np.where(self.positions <= number, np.exp(np.minimum((at - below) * rate, 0)), 0)
            both = np.stack([up, down], axis=1)
            mass, space = self.certain.mass, self.space
            parts = [t for _, t in certificates.conditional_likelihoods(both, mass, space)]
            shape = (*[self.space.values + 1] * self.space.rows, 2)
            self.tables = {number: np.concatenate(parts, axis=1).reshape(shape)}
        return self.tables[number]

    def _cells(self, gap: Gap) -> tuple[list[dict[int, int]], Array, Array]:
        """The conditions of a gap's row and known rows: their values, (u, d) with those values and
        with the default in row i."""
        known = self.known_of(gap.pattern, gap.row)
        kept = sorted((*known, gap.row))
        selection = tuple(
            slice(0, self.space.values) if row in kept else self.space.values
            for row in range(self.space.rows)
        )
        table = np.moveaxis(self._table(gap.number)[selection], kept.index(gap.row), 0)
        default = np.broadcast_to(table[self.default], table.shape)
        possible = ~np.isnan(table[..., 0]) & ~np.isnan(default[..., 0])
        rows = [gap.row, *known]
        names = [dict(zip(rows, map(int, cell), strict=True)) for cell in np.argwhere(possible)]
        return names, table[possible], default[possible]

    def _look(self, gap: Gap, top: float) -> int:
        """Keep the pairs of one gap that are near the best, and say how many were compared."""
        names, with_row, without = self._cells(gap)
        depth = np.longdouble(self._depth(gap.number))
        ends = [np.exp(-depth), np.exp(depth)]
        at_ends = [evaluate_lines(with_row, w) / evaluate_lines(without, w) for w in ends]
        most, least = np.maximum(*at_ends), np.minimum(*at_ends)
        high = np.flatnonzero(most > top * least.min())
        low = np.flatnonzero(least < most.max() / top)
        step = max(1, PAIR_BLOCK_SIZE // max(1, len(low)))
        for start in range(0, len(high), step):
            some = high[start : start + step]
            for root, output in self._critical(gap, with_row, without, some, low, ends):
                ratio, other = (
                    evaluate_lines(with_row[side], root) / evaluate_lines(without[side], root)
                    for side in ((some[:, None],), (low[None],))
                )
                value = np.where(np.isnan(root), 0, ratio / other)
                top = max(top, float(value.max(initial=0)))
                for cell in map(
                    tuple, np.argwhere(value >= top * (1 - NEAR_RATIO))[:MAX_NEAR_CASES]
                ):
                    at = None if output is None else Fraction(int(output[cell]))
                    most_, least_ = names[some[cell[0]]], names[low[cell[1]]]
                    self.pairs.append(Pair(value[cell], gap, most_, least_, root[cell], at))
        self.pairs = [pair for pair in self.pairs if pair.value >= top * (1 - NEAR_RATIO)][
            :MAX_NEAR_CASES
        ]
        return len(high) * len(low)

    def _critical(
        self,
        gap: Gap,
        with_row: Array,
        without: Array,
        high: Array,
        low: Array,
        ends: Sequence[Any],
    ) -> list[tuple[Array, Array | None]]:
        """w at the critical points of each pair inside the gap (NaN where there is none); with
        whole outputs, at the outputs on either side, and these."""
        top = product_coefficients(with_row[high][:, None], without[low][None])
        bottom = product_coefficients(without[high][:, None], with_row[low][None])
        result: list[tuple[Array, Array | None]] = []
        for root in real_roots(*derivative_coefficients(top, bottom)):
            inside = np.where((root > ends[0]) & (root < ends[1]), root, np.nan)
            if not self.axis.whole:
                result.append((inside, None))
                continue
            middle = (self.points[gap.number] + self.points[gap.number + 1]) / 2
            rate = np.longdouble(self.axis.rate)
            output = middle + np.log(inside) / (2 * rate)
            for whole in (np.floor(output), np.ceil(output)):
                result.append((np.exp(2 * rate * (whole - middle)), whole))
        return result

    def _certified(self, best: Fraction | float, upper: Fraction | float, top: float) -> Between:
        worst = Between(upper)
        near = [pair for pair in self.pairs if pair.value >= top * (1 - NEAR_RATIO)]
        near.sort(key=lambda pair: -pair.value)
        cost = 0
        for pair in near:
            cost += self.space.worlds
            if cost > MAX_RECOMPUTED_BALLS and worst.attained:
                most = exact_fraction(top) * (1 + Fraction(NEAR_RATIO))
                return replace(worst, upper=max(worst.upper, most))
            high, low = self._ends(pair)
            upper = max(worst.upper, high)
            if low > max(best, worst.attained):
                output = pair.output
                output_value: Hashable = int(output) if output is not None else self._output(pair)
                worst = Between(upper, low, pair.gap.row, pair.gap.pattern, output_value)
            else:
                worst = replace(worst, upper=upper)
        return worst

    def _ends(self, pair: Pair) -> tuple[Fraction, Fraction]:
        """(at least, at most what some output reaches): the spread of a pair, in exact numbers."""
        from flint import arb, ctx

        default = {pair.gap.row: self.default}
        cells = [pair.most, {**pair.most, **default}, {**pair.least, **default}, pair.least]
        if pair.output is not None:
            at = pair.output
            p, q, other_q, other_p = (self._mixture(cell, at) for cell in cells)
            with ctx.workprec(BALL_PRECISION_BITS):
                exact = p * other_q / (q * other_p)
                if hasattr(exact, "p"):
                    return rational(exact), rational(exact)
                return ball_end(exact.upper()), ball_end(exact.lower())
        below, above = (self.axis.points[pair.gap.number + side] for side in (0, 1))
        p, q, other_q, other_p = (self._lines(cell, below, above) for cell in cells)
        with ctx.workprec(BALL_PRECISION_BITS):
            near = arb(float(pair.root))
            reached = _pair_spread(p, q, other_q, other_p, near)
            top, bottom = _ball_product(p, other_q), _ball_product(q, other_p)
            highest, fall = reached, self.axis.fall(above - below)
            slope = derivative_coefficients(top, bottom)
            for root in _ball_roots(*slope, fall):
                value = None if root is None else _pair_spread(p, q, other_q, other_p, root)
                if value is None or not value.is_finite():
                    value = _over_gap((p, q, other_q, other_p), slope, fall, reached)
                elif root.upper() < fall or root.lower() * fall > 1:
                    continue
                if value.upper() > highest.upper():
                    highest = value
            return ball_end(highest.upper()), ball_end(reached.lower())

    def _mixture(self, cell: Mapping[int, int], output: Fraction) -> Any:
        """Pr[output | these values]."""
        centres = self.axis.centres
        result = self.certain.given(cell, lambda w: self.axis.fall(abs(centres[w] - output)))
        assert result is not None
        return result

    def _lines(self, cell: Mapping[int, int], below: Fraction, above: Fraction) -> tuple[Any, Any]:
        """(u, d) of these values, in balls."""
        from flint import arb

        centres = self.axis.centres
        up = self.certain.given(
            cell, lambda w: self.axis.fall(centres[w] - above) if centres[w] >= above else arb(0)
        )
        down = self.certain.given(
            cell, lambda w: self.axis.fall(below - centres[w]) if centres[w] <= below else arb(0)
        )
        return up, down

    def _output(self, pair: Pair) -> float:
        """y = (c + c')/2 + (s/2) ln w."""
        index = pair.gap.number
        middle = (self.points[index] + self.points[index + 1]) / 2
        return float(middle + np.log(pair.root) / (2 * np.longdouble(self.axis.rate)))


def evaluate_lines(lines: Array, w: Any) -> Array:
    """u w + d."""
    return np.asarray(lines[..., 0] * w + lines[..., 1])


def product_coefficients(one: Array, two: Array) -> tuple[Array, Array, Array]:
    """The coefficients of (u w + d)(u' w + d'), of w² first."""
    up, down, up_, down_ = one[..., 0], one[..., 1], two[..., 0], two[..., 1]
    return up * up_, up * down_ + down * up_, down * down_


def real_roots(a: Array, b: Array, c: Array) -> list[Array]:
    """The real roots of a w² + 2 b w + c, NaN where there are none."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        half = -(b + np.copysign(np.sqrt(b * b - a * c), b))
        return [half / a, c / half]
