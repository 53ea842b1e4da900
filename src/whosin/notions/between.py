"""What Bayesian semantic privacy is between the centres of noise, where F10 has a limit.

For one row i and one set S of known rows the spread max r / min r is a quotient of two likelihood
ratios, P(y) Q'(y) / (Q(y) P'(y)), and can be larger between two neighbouring centres than at both.
There each mixture is e^(−(y−c)/s) (u w + d) with w = e^((2y − c − c')/s), c < y < c', so the spread
is a quotient of quadratics in w, and its critical points are the roots of

    (n₂d₁ − n₁d₂) w² + 2 (n₂d₀ − n₀d₂) w + (n₁d₀ − n₀d₁).

Each r is monotone between centres, so max r and min r at the two ends bound the spread in between;
only where that bound exceeds the best known spread are roots taken: in floats for all pairs, then
in balls for those near the best. Whole outputs are checked on both sides of a root. In several
dimensions the bound over the corners of each cell is all there is, and the level says bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.errors import Unsupported
from whosin.exact import Array, rational
from whosin.mechanisms import Channel
from whosin.mechanisms.noise import Axis
from whosin.notions import known_rows
from whosin.notions.certain import BALLS, MOST, NEAR, Certain
from whosin.notions.critical import Gap, Pair, Recomputed, derivative
from whosin.spaces import Records

Sides = tuple[Array, Array]
"""(max r, min r) of one row: sets of known rows × outputs."""
DEEP = 350.0
"""Between centres further apart than this many scales the bound is taken instead of roots."""
PAIRS = 1 << 20
"""How many pairs are compared at a time, and `WORK` how many in all."""
WORK = 1 << 26
LARGEST = Fraction(2) ** 1000
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
        raise Unsupported("the densities between the deciding points are not known")
    if best > LARGEST:
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
                    cells = _with_gaps(cells, number, axis.gaps(), extreme)
            ends.append(cells)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            worst = np.fmax(worst, np.nanmax(ends[0] / ends[1], initial=1.0))
    return math.inf if np.isinf(worst) else rational(worst) * (1 + Fraction(NEAR))


def _with_gaps(cells: Array, axis: int, gaps: Sequence[bool], extreme: Any) -> Array:
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
            if gap.bound <= top * (1 + NEAR):
                break
            if self._depth(gap.number) > DEEP or work > WORK:
                upper = max(upper, rational(gap.bound) * (1 + Fraction(NEAR)))
                continue
            work += self._look(gap, top)
            top = max([top, *(float(pair.value) for pair in self.pairs)])
        return self._certified(best, upper, top)

    def _depth(self, number: int) -> float:
        """How far apart two neighbouring centres are, in scales."""
        return float(self.points[number + 1] - self.points[number]) * self.axis.rate

    def _gaps(self, sides: Sequence[Sides], top: float) -> list[Gap]:
        result = []
        open_ = np.array(self.axis.gaps())
        for row, (most, least) in enumerate(sides):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                bound = np.fmax(most[:, :-1], most[:, 1:]) / np.fmin(least[:, :-1], least[:, 1:])
            for pattern, index in np.argwhere((bound > top * (1 + NEAR)) & open_):
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
            parts = [t for _, t in known_rows.conditioned(both, self.certain.mass, self.space)]
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
        at_ends = [_at(with_row, w) / _at(without, w) for w in ends]
        most, least = np.maximum(*at_ends), np.minimum(*at_ends)
        high = np.flatnonzero(most > top * least.min())
        low = np.flatnonzero(least < most.max() / top)
        step = max(1, PAIRS // max(1, len(low)))
        for start in range(0, len(high), step):
            some = high[start : start + step]
            for root, output in self._critical(gap, with_row, without, some, low, ends):
                ratio = _at(with_row[some][:, None], root) / _at(without[some][:, None], root)
                other = _at(with_row[low][None], root) / _at(without[low][None], root)
                value = np.where(np.isnan(root), 0, ratio / other)
                top = max(top, float(value.max(initial=0)))
                for one, two in np.argwhere(value >= top * (1 - NEAR))[:MOST]:
                    at = None if output is None else Fraction(int(output[one, two]))
                    self.pairs.append(
                        Pair(
                            value[one, two],
                            gap,
                            names[some[one]],
                            names[low[two]],
                            root[one, two],
                            at,
                        )
                    )
        self.pairs = [pair for pair in self.pairs if pair.value >= top * (1 - NEAR)][:MOST]
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
        top = _product(with_row[high][:, None], without[low][None])
        bottom = _product(without[high][:, None], with_row[low][None])
        result: list[tuple[Array, Array | None]] = []
        for root in _roots(*derivative(top, bottom)):
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
        """Recompute the pairs near the best."""
        worst = Between(upper)
        near = [pair for pair in self.pairs if pair.value >= top * (1 - NEAR)]
        near.sort(key=lambda pair: -pair.value)
        cost = 0
        for pair in near:
            cost += self.space.worlds
            if cost > BALLS and worst.attained:
                return replace(worst, upper=max(worst.upper, rational(top) * (1 + Fraction(NEAR))))
            high, low = Recomputed(self.certain, self.axis, self.default).ends(pair)
            upper = max(worst.upper, high)
            if low > max(best, worst.attained):
                output = pair.output
                output_value: Hashable = int(output) if output is not None else self._output(pair)
                worst = Between(upper, low, pair.gap.row, pair.gap.pattern, output_value)
            else:
                worst = replace(worst, upper=upper)
        return worst

    def _output(self, pair: Pair) -> float:
        """y = (c + c')/2 + (s/2) ln w."""
        index = pair.gap.number
        middle = (self.points[index] + self.points[index + 1]) / 2
        return float(middle + np.log(pair.root) / (2 * np.longdouble(self.axis.rate)))


def _at(lines: Array, w: Any) -> Array:
    """u w + d."""
    return np.asarray(lines[..., 0] * w + lines[..., 1])


def _product(one: Array, two: Array) -> tuple[Array, Array, Array]:
    """The coefficients of (u w + d)(u' w + d'), of w² first."""
    up, down, up_, down_ = one[..., 0], one[..., 1], two[..., 0], two[..., 1]
    return up * up_, up * down_ + down * up_, down * down_


def _roots(a: Array, b: Array, c: Array) -> list[Array]:
    """The real roots of a w² + 2 b w + c, NaN where there are none."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        half = -(b + np.copysign(np.sqrt(b * b - a * c), b))
        return [half / a, c / half]
