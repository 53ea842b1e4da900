"""The worst window of a Markov chain under a noisy sum (F13); `chains` says why windows.

The density of the noisy sum is a function of the output that shifts when a row is added, so instead
of convolving distributions each row costs one shift: f(y) → Σ_x P(u, x) f_x(y − w_x). All windows
to the right are extended to the left together, at O(W² m³ Y) for windows up to W and Y outputs.
Outputs are the centres' grid (F10); below it a density falls by e^(−1/scale) per step, which
supplies what is shifted in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.errors import Unsupported
from whosin.exact import Array
from whosin.notions.sums import Densities, NoisySum
from whosin.priors import MarkovChain

TINY = 1e-290
"""Densities below this have lost digits to underflow."""


@dataclass
class WorstWindow:
    """The worst window so far, and the worst of those that touch a cut."""

    value: float = 0.0
    left: float = -math.inf
    right: float = -math.inf
    both: float = -math.inf
    window: dict[str, Any] | None = None

    def take(self, other: WorstWindow) -> None:
        """Keep the worse of two windows."""
        if self.window is None or other.value > self.value:
            self.value, self.window = other.value, other.window


@dataclass(frozen=True)
class Right:
    """What lies to the right of row i: a known value at a distance, or the end."""

    distance: int
    value: int | None


def sweep(
    prior: MarkovChain, rows: int, query: NoisySum, marginals: Array, reach: int, row: int | None
) -> WorstWindow:
    """All windows of at most `reach` on either side of one row, or of any row where the chain is
    homogeneous (row None)."""
    values = prior.values
    grid = Densities(query, reach)
    sides, densities, norms = _rights(prior, rows, grid, reach, row)
    result = WorstWindow()
    centred = np.stack([grid.shifted(densities[:, v], v) for v in range(values)], axis=1)
    if row in (None, 0):
        mask = np.array([_fits(side, rows, 0) for side in sides])
        allowed = norms * (marginals[0] > 0)
        window = _Window(grid, sides, reach, row, 0, False)
        _compare(result, centred[None], allowed[None], mask[None], window)
    table = np.ones((values, values))
    current: Array | None = None
    first = _first_possible(marginals)
    for distance in range(1, min(reach, rows - 1 if row is None else row) + 1):
        step = prior.matrix(0 if row is None else row - distance)
        if current is None:
            current = step[:, None, :, *([None] * len(grid.shape))] * centred[None]
            table = step
        else:
            moved = np.stack([grid.shifted(current[x], x) for x in range(values)])
            current = np.tensordot(step, moved, axes=(1, 0))
            table = step @ table
        allowed = table[:, None, :] * norms[None]
        mask = np.array(
            [
                [_known(distance, side, rows, row, u, first, marginals) for side in sides]
                for u in range(values)
            ]
        )
        window = _Window(grid, sides, reach, row, distance, True)
        _compare(result, current, allowed, mask, window)
        if row in (None, distance):
            whole = sum(marginals[0, u] * grid.shifted(current[u], u) for u in range(values))
            allowed = (marginals[distance][None] * norms)[None]
            mask = np.array([_fits(side, rows, distance) for side in sides])[None]
            window = _Window(grid, sides, reach, row, distance, False)
            _compare(result, np.asarray(whole)[None], allowed, mask, window)
    return result


def _first_possible(marginals: Array) -> list[int]:
    """The first row at which each value is possible; the number of rows where none is."""
    possible = marginals > 0
    return [int(np.argmax(column)) if column.any() else len(column) for column in possible.T]


def _rights(
    prior: MarkovChain, rows: int, grid: Densities, reach: int, row: int | None
) -> tuple[list[Right], Array, Array]:
    """The right sides, their densities given x_i = v (sides × values × grid), and Pr[side | v]."""
    values = prior.values
    last = rows - 1 if row is None else rows - 1 - row
    sides: list[Right] = []
    densities: list[Array] = []
    norms: list[Array] = []
    if row is None or last == 0:
        sides.append(Right(0, None))
        densities.append(np.broadcast_to(grid.centre, (values, *grid.shape)))
        norms.append(np.ones(values))
    current: Array | None = None
    table = np.eye(values)
    for distance in range(1, min(reach, last) + 1):
        step = prior.matrix(0 if row is None else row + distance - 1)
        table = table @ step
        if current is None:
            current = step[:, :, *([None] * len(grid.shape))] * grid.centre
        else:
            moved = np.stack([grid.shifted(current[:, x], x) for x in range(values)], axis=1)
            current = np.moveaxis(np.tensordot(moved, step, axes=(1, 0)), -1, 1)
        for value in range(values):
            sides.append(Right(distance, value))
            densities.append(current[:, value])
            norms.append(table[:, value])
        if row is None or distance == last:
            sides.append(Right(distance, None))
            densities.append(sum(grid.shifted(current[:, x], x) for x in range(values)))  # type: ignore[arg-type]
            norms.append(np.ones(values))
    return sides, np.array(densities), np.array(norms)


def _fits(side: Right, rows: int, row: int) -> bool:
    """Whether row i = `row`, with everything before it unknown, can have this right side."""
    if side.value is None:
        return row + side.distance == rows - 1
    return row + side.distance <= rows - 1


def _known(
    distance: int,
    side: Right,
    rows: int,
    row: int | None,
    value: int,
    first: Sequence[int],
    marginals: Array,
) -> bool:
    """Whether a row at this distance to the left can be known to have this value."""
    if row is not None:
        return bool(marginals[row - distance, value] > 0)
    if side.value is None:
        row = rows - 1 - side.distance - distance
        return bool(row >= 0 and marginals[row, value] > 0)
    return first[value] <= rows - 1 - side.distance - distance


@dataclass(frozen=True)
class _Window:
    """Windows with one left side, `distance` back to a known row or to the start, and any right
    side; `row` is row i, or None where it may be any."""

    grid: Densities
    sides: Sequence[Right]
    reach: int
    row: int | None
    distance: int
    known: bool

    @property
    def at_cut(self) -> Array:
        """Which right sides end at a known row as far away as windows go."""
        return np.array([s.value is not None and s.distance == self.reach for s in self.sides])

    @property
    def inside(self) -> Array:
        """The outputs between the least and the largest centre: beyond them nothing changes, and
        densities may underflow (sides × outputs)."""
        left = self.distance - self.known + 1
        lengths = np.array([left + s.distance - (s.value is not None) for s in self.sides])
        result = np.ones((len(lengths), 1), dtype=bool)
        for span, size in zip(self.grid.query.spans, self.grid.shape, strict=True):
            along = np.arange(size) <= lengths[:, None] * span
            result = (result[:, :, None] & along[:, None, :]).reshape(len(lengths), -1)
        return result


def _compare(
    worst: WorstWindow, densities: Array, allowed: Array, mask: Array, window: _Window
) -> None:
    """Update the worst window: contexts × sides × values × grid, over all pairs of values."""
    more = [None] * (densities.ndim - 3)
    possible = allowed > 0
    valid = mask & possible.any(axis=2)
    if not valid.any():
        return
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        likelihood = densities / np.where(possible, allowed, np.nan)[..., *more]
        least = np.fmin.reduce(likelihood, axis=2)
        ratio = np.fmax.reduce(likelihood, axis=2) / least
    flat, least = (array.reshape(*array.shape[:2], -1) for array in (ratio, least))
    counted = valid[..., None] & window.inside[None]
    smallest = np.where(possible, allowed, math.inf).min(axis=2)[..., None]
    if (np.where(counted, least, 1.0) * np.where(valid[..., None], smallest, 1.0) < TINY).any():
        raise Unsupported("the noise is too small for the range of the sum; use a larger scale")
    flat = np.where(counted, flat, 1.0)
    best = np.where(valid, np.log(flat.max(axis=2)), -math.inf)
    far = float(best[:, window.at_cut].max(initial=-math.inf))
    if window.known and window.distance == window.reach:
        worst.left = max(worst.left, float(best.max()))
        worst.both = max(worst.both, far)
    worst.right = max(worst.right, far)
    value = float(best.max())
    if value > worst.value or worst.window is None:
        context, side = (int(part) for part in np.unravel_index(int(best.argmax()), best.shape))
        output = int(np.argmax(flat[context, side] >= flat[context, side].max() * (1 - 1e-13)))
        column = likelihood[context, side].reshape(likelihood.shape[2], -1)[:, output]
        worst.value = value
        worst.window = {
            "row": window.row,
            "distance": window.distance,
            "left": context if window.known else None,
            "right": window.sides[side],
            "output": np.unravel_index(output, densities.shape[3:]),
            "values": (int(np.nanargmax(column)), int(np.nanargmin(column))),
        }
