"""Exact Bayesian-DP leakage of noisy sums over a Markov chain (THEORY F13).

**Windows.** Rows beyond the nearest known neighbours of row i are independent of x_i given them, so
leaving them unknown only helps: the worst set of known rows is everything outside a window around
i. Left of i the window ends at a known row at distance a, or at the start; right of it at a known
row at distance b, or at the end.

**Dynamic programming on densities.** The density of the noisy sum is a function of the output that
shifts when a row is added, so instead of convolving distributions each row costs one shift:
f(y) → Σ_x P(u, x) f_x(y − w_x). All windows to the right are extended to the left together, at
O(W² m³ Y) for windows up to W and Y outputs. Outputs are the centres' grid (F10); below it a
density falls by e^(−1/scale) a step, which supplies what is shifted in.

**Cutting off.** For a window longer than W condition on x_{i−W} = u'. What is beyond then depends
on u' alone, so the leakage is at most that of the window known at i − W plus
η = max ln Pr[u' | x_i = v, beyond] / Pr[u' | x_i = v', beyond], which mixing makes small and which
is computed from powers of the transition matrix. So the level is bracketed; it is exact when no
window is cut off, or when the bracket closes to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.errors import Unsupported
from whosin.exact import Array
from whosin.notions.level import Level, Witness
from whosin.notions.sums import Densities, Query, queries
from whosin.priors import MarkovChain
from whosin.spaces import Records

WORK = 6e9
"""Element operations that a sweep may take."""
CLOSED = 1e-11
"""A bracket as narrow as this is closed: it is of the order of rounding."""
UNLIKELY = 1e-140
"""Products of two probabilities above it are far above the smallest float."""
FARTHEST = 1000
"""How many steps of one matrix are looked at; a chain that mixes has long done so."""
TINY = 1e-290
"""Densities below this have lost digits to underflow."""
WINDOWS = (16, 24, 32, 48, 64, 96, 128, 160, 200, 256, 360, 512, 1024)


@dataclass
class Found:
    """The worst window so far, and the worst of those that touch a cut."""

    value: float = 0.0
    left: float = -math.inf
    right: float = -math.inf
    both: float = -math.inf
    window: dict[str, Any] | None = None


def leakage(prior: MarkovChain, space: Records, query: Query) -> Level:
    """The Bayesian-DP leakage of the query under the chain, in nats, with its window."""
    prior.check_records(space)
    rows = space.rows
    marginals = prior.marginals(rows)
    if prior.homogeneous:
        _refuse_unlikely_steps(prior, rows)
        reach, (left, right) = _choose(prior, rows, query, marginals)
        found = _sweep(prior, rows, query, marginals, reach, None)
    else:
        reach, (left, right) = rows - 1, (0.0, 0.0)
        if _work(reach, query, prior.values) * rows > WORK:
            raise Unsupported(
                f"a chain with a matrix a step over {rows} rows is beyond reach; "
                "one matrix for all steps reaches thousands of rows"
            )
        _refuse_unlikely_steps(prior, rows)
        found = Found()
        for row in range(rows):
            _merge(found, _sweep(prior, rows, query, marginals, reach, row))
    upper = max(found.value, found.left + left, found.right + right, found.both + left + right)
    case = _witness(prior, space, query, marginals, found)
    if upper - found.value <= CLOSED * max(1.0, upper):
        return Level(upper, case, True, ("T14",))
    return Level(upper, case, False, ("T14",), lower=found.value)


def _refuse_unlikely_steps(prior: MarkovChain, rows: int) -> None:
    """Refuse a chain that gets from one value to another with a probability too small for floats,
    which would pass for impossible: every distance is compared with what is possible."""
    ends = [1] if prior.homogeneous else list(range(rows - 1, 0, -1))
    floats = [np.array(matrix, dtype=float) for matrix in prior.steps]
    possible = [np.array([[p > 0 for p in line] for line in matrix]) for matrix in prior.steps]
    unlikely = min(p for p in prior.start if p > 0) < UNLIKELY
    for last in ends:
        table, reachable = np.eye(prior.values), np.eye(prior.values, dtype=bool)
        distances = min(rows - 1, FARTHEST) if prior.homogeneous else last
        for distance in range(distances):
            step = 0 if prior.homogeneous else last - 1 - distance
            table, reachable = floats[step] @ table, possible[step] @ reachable
            unlikely = unlikely or bool(table[reachable].min() < UNLIKELY)
    if unlikely:
        raise Unsupported(
            "the chain begins somewhere, or gets from one value to another, with a probability of "
            f"less than {UNLIKELY:g}, too small for its leakage to be computed; give it more "
            "probability, or none"
        )


def _merge(best: Found, other: Found) -> None:
    if best.window is None or other.value > best.value:
        best.value, best.window = other.value, other.window


def _work(reach: int, query: Query, values: int) -> int:
    """Element operations of one sweep; a whole number, since many releases have more than a float
    can hold."""
    outputs = math.prod((2 * reach + 1) * span + 1 for span in query.spans)
    return reach * values**3 * (values + 1) * reach * outputs


def _choose(
    prior: MarkovChain, rows: int, query: Query, marginals: Array
) -> tuple[int, tuple[float, float]]:
    """(W, (η left, η right)): the shortest windows whose cut is negligible, or what is in reach."""
    longest = rows - 1
    best: tuple[int, tuple[float, float]] | None = None
    for reach in (*(w for w in WINDOWS if w < longest), longest):
        if _work(reach, query, prior.values) > WORK and best is not None:
            break
        cut = (0.0, 0.0) if reach >= longest else _cut(prior, rows, reach, marginals)
        best = reach, cut
        if sum(cut) <= CLOSED / 10:
            break
    assert best is not None
    if math.isinf(sum(best[1])) or _work(best[0], query, prior.values) > 10 * WORK:
        raise Unsupported(
            f"{rows} rows are beyond reach: the chain does not mix within {best[0]} rows; "
            "fewer rows, fewer values or a narrower query would do"
        )
    return best


def _cut(prior: MarkovChain, rows: int, reach: int, marginals: Array) -> tuple[float, float]:
    """η left and right for windows cut at `reach`, over everything that may lie beyond."""
    step = prior.matrix(0)
    near = np.linalg.matrix_power(step, reach)
    if (near == 0).any():
        return math.inf, math.inf
    log_near = np.log(near)
    power, beyond_left, beyond_right = near, [], [np.zeros(prior.values)]
    for distance in range(reach + 1, rows):
        power = power @ step
        beyond_left.extend(np.log(power))
        beyond_right.extend(np.log(power.T))
        beyond_left.append(np.log(np.where(marginals[distance] > 0, marginals[distance], np.nan)))
    # Pr[u'|v, beyond] ∝ P^W(u', v) / N(v) on the left, P^W(v, w') / N(v) on the right.
    return _largest_gap(log_near, beyond_left), _largest_gap(log_near.T, beyond_right)


def _largest_gap(near: Array, beyond: Sequence[Array]) -> float:
    """max over contexts, u', v, v' of (near(u',v) − N(v)) − (near(u',v') − N(v'))."""
    if not beyond:
        return 0.0
    norms = np.unique(np.round(np.array(beyond), 15), axis=0)
    gaps = near[None] - norms[:, None]
    return float(np.nanmax(np.nanmax(gaps, axis=2) - np.nanmin(gaps, axis=2))) + 1e-14


@dataclass(frozen=True)
class _Right:
    """What lies to the right of row i: a known value at a distance, or the end."""

    distance: int
    value: int | None


def _sweep(
    prior: MarkovChain, rows: int, query: Query, marginals: Array, reach: int, row: int | None
) -> Found:
    """All windows of at most `reach` on either side; of one row, or of any where the chain is
    homogeneous (row None)."""
    values = prior.values
    grid = Densities(query, reach)
    sides, densities, norms = _rights(prior, rows, grid, reach, row)
    found = Found()
    centred = np.stack([grid.shifted(densities[:, v], v) for v in range(values)], axis=1)
    if row in (None, 0):
        mask = np.array([_fits(side, rows, 0) for side in sides])
        allowed = norms * (marginals[0] > 0)
        window = _Window(grid, sides, reach, row, 0, False)
        _compare(found, centred[None], allowed[None], mask[None], window)
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
        _compare(found, current, allowed, mask, window)
        if row in (None, distance):
            whole = sum(marginals[0, u] * grid.shifted(current[u], u) for u in range(values))
            allowed = (marginals[distance][None] * norms)[None]
            mask = np.array([_fits(side, rows, distance) for side in sides])[None]
            window = _Window(grid, sides, reach, row, distance, False)
            _compare(found, np.asarray(whole)[None], allowed, mask, window)
    return found


def _first_possible(marginals: Array) -> list[int]:
    """The first row at which each value is possible; the number of rows where none is."""
    possible = marginals > 0
    return [int(np.argmax(column)) if column.any() else len(column) for column in possible.T]


def _rights(
    prior: MarkovChain, rows: int, grid: Densities, reach: int, row: int | None
) -> tuple[list[_Right], Array, Array]:
    """The right sides, their densities given x_i = v (sides × values × grid), and Pr[side | v]."""
    values = prior.values
    last = rows - 1 if row is None else rows - 1 - row
    sides: list[_Right] = []
    densities: list[Array] = []
    norms: list[Array] = []
    if row is None or last == 0:
        sides.append(_Right(0, None))
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
            sides.append(_Right(distance, value))
            densities.append(current[:, value])
            norms.append(table[:, value])
        if row is None or distance == last:
            sides.append(_Right(distance, None))
            densities.append(sum(grid.shifted(current[:, x], x) for x in range(values)))  # type: ignore[arg-type]
            norms.append(np.ones(values))
    return sides, np.array(densities), np.array(norms)


def _fits(side: _Right, rows: int, row: int) -> bool:
    """Whether row i = `row`, with everything before it unknown, can have this right side."""
    if side.value is None:
        return row + side.distance == rows - 1
    return row + side.distance <= rows - 1


def _known(
    distance: int,
    side: _Right,
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
        place = rows - 1 - side.distance - distance
        return bool(place >= 0 and marginals[place, value] > 0)
    return first[value] <= rows - 1 - side.distance - distance


@dataclass(frozen=True)
class _Window:
    """Windows with one left side, `distance` back to a known row or to the start, and any right
    side; `row` is row i, or None where it may be any."""

    grid: Densities
    sides: Sequence[_Right]
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
        found = np.ones((len(lengths), 1), dtype=bool)
        for span, size in zip(self.grid.query.spans, self.grid.shape, strict=True):
            along = np.arange(size) <= lengths[:, None] * span
            found = (found[:, :, None] & along[:, None, :]).reshape(len(lengths), -1)
        return found


def _compare(found: Found, densities: Array, allowed: Array, mask: Array, window: _Window) -> None:
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
        found.left = max(found.left, float(best.max()))
        found.both = max(found.both, far)
    found.right = max(found.right, far)
    value = float(best.max())
    if value > found.value or found.window is None:
        context, side = (int(part) for part in np.unravel_index(int(best.argmax()), best.shape))
        output = int(np.argmax(flat[context, side] >= flat[context, side].max() * (1 - 1e-13)))
        column = likelihood[context, side].reshape(likelihood.shape[2], -1)[:, output]
        found.value = value
        found.window = {
            "row": window.row,
            "distance": window.distance,
            "left": context if window.known else None,
            "right": window.sides[side],
            "output": np.unravel_index(output, densities.shape[3:]),
            "values": (int(np.nanargmax(column)), int(np.nanargmin(column))),
        }


def _witness(
    prior: MarkovChain, space: Records, query: Query, marginals: Array, found: Found
) -> Witness:
    """Place the worst window in the series, with the rows outside it known."""
    window = found.window
    assert window is not None
    right: _Right = window["right"]
    rows, distance = space.rows, window["distance"]
    if window["row"] is not None:
        row = window["row"]
    elif window["left"] is None:
        row = distance
    elif right.value is None:
        row = rows - 1 - right.distance
    else:
        row = int(np.argmax(marginals[:, window["left"]] > 0)) + distance
    known: dict[int, int] = {}
    if window["left"] is not None:
        known[row - distance] = window["left"]
        for place in range(row - distance - 1, -1, -1):
            step = prior.matrix(place)
            known[place] = int(np.argmax(marginals[place] * step[:, known[place + 1]]))
    if right.value is not None:
        known[row + right.distance] = right.value
        for place in range(row + right.distance + 1, rows):
            known[place] = int(np.argmax(prior.matrix(place - 1)[known[place - 1]]))
    output = [
        (int(steps) + sum(int(query.weights[value, axis]) for value in known.values())) * step
        + rows * offset
        for axis, (steps, step, offset) in enumerate(
            zip(window["output"], query.step, query.offset, strict=True)
        )
    ]
    shown = tuple(int(v) if v.denominator == 1 else float(v) for v in output)
    ratio = math.exp(found.value)
    return Witness(
        output=shown[0] if len(shown) == 1 else shown,
        prior=0.5,
        posterior=ratio / (1 + ratio),
        ratio=ratio,
        row=row,
        known=dict(sorted(known.items())),
        values=window["values"],
    )


__all__ = ["Query", "leakage", "queries"]
