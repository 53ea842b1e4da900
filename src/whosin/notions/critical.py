"""Critical points of the spread of two cells between neighbouring centres of noise, in balls.

`between` finds the pairs in floats and explains the formulas; here their spread is enclosed: at the
root of its derivative, or, where no root can be enclosed, over the whole gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from whosin.exact import ball_end, rational
from whosin.mechanisms.noise import Axis
from whosin.notions.certain import Certain

BITS = 320


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


class Recomputed:
    """Spreads of pairs from the channel's own numbers.

    Args:
        certain: the channel and the prior.
        axis: the noise.
        default: the value that stands for "no data".
    """

    def __init__(self, certain: Certain, axis: Axis, default: int) -> None:
        self.certain, self.axis, self.default = certain, axis, default

    def ends(self, pair: Pair) -> tuple[Fraction, Fraction]:
        """(at least, at most what some output reaches): the spread of a pair, in exact numbers."""
        from flint import arb, ctx

        cells = [
            pair.most,
            {**pair.most, pair.gap.row: self.default},
            {**pair.least, pair.gap.row: self.default},
            pair.least,
        ]
        if pair.output is not None:
            at = pair.output
            p, q, other_q, other_p = (self._mixture(cell, at) for cell in cells)
            with ctx.workprec(BITS):
                exact = p * other_q / (q * other_p)
                if hasattr(exact, "p"):
                    return rational(exact), rational(exact)
                return ball_end(exact.upper()), ball_end(exact.lower())
        below, above = (self.axis.points[pair.gap.number + side] for side in (0, 1))
        p, q, other_q, other_p = (self._lines(cell, below, above) for cell in cells)
        with ctx.workprec(BITS):
            near = arb(float(pair.root))
            reached = _quotient(p, q, other_q, other_p, near)
            top, bottom = _ball_product(p, other_q), _ball_product(q, other_p)
            highest, fall = reached, self.axis.fall(above - below)
            slope = derivative(top, bottom)
            for root in _ball_roots(*slope, fall):
                value = None if root is None else _quotient(p, q, other_q, other_p, root)
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


def derivative(top: Sequence[Any], bottom: Sequence[Any]) -> tuple[Any, Any, Any]:
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
    ratios = [_line(p, w) / _line(q, w) for w in ends]
    others = [_line(other_q, w) / _line(other_p, w) for w in ends]
    corner = _largest(ratios) * _largest(others)
    (n2, n1, n0), (d2, d1, d0) = _ball_product(p, other_q), _ball_product(q, other_p)
    terms = (n2 * d1 + n1 * d2, n2 * d0 + n0 * d2, n1 * d0 + n0 * d1)
    left = arb(0)
    for coefficient, size, times in zip(slope, terms, (1, 2, 1), strict=True):
        if size != 0:
            left += times * coefficient.abs_upper() / size
    flat = reached * (left * -2 * fall.log()).exp()
    return flat if flat.is_finite() and flat.upper() < corner.upper() else corner


def _line(line: tuple[Any, Any], w: Any) -> Any:
    return line[0] * w + line[1]


def _quotient(p: Any, q: Any, other_q: Any, other_p: Any, w: Any) -> Any:
    """The spread of a pair at one output."""
    return _line(p, w) * _line(other_q, w) / (_line(q, w) * _line(other_p, w))


def _largest(balls: Sequence[Any]) -> Any:
    return balls[0] if balls[0].upper() > balls[1].upper() else balls[1]
