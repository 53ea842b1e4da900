"""Bayesian differential privacy (Yang et al. 2015; Zhao17), exact for noisy sums over Markov chains
(F13).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np

from whosin.errors import Unsupported, spell
from whosin.exact import Array, flint_rational, is_exact, log_up, rational
from whosin.mechanisms import Channel, Composed, Geometric, Laplace
from whosin.mechanisms.additive_noise import check_whole
from whosin.notions import certificates
from whosin.notions.base import CLAIM_TOLERANCE, Level, Notion, OfPriors, Witness
from whosin.priors import ChainBox, Independent, MarkovChain, Prior, PriorSet, Uniform
from whosin.priors.base import Factor
from whosin.spaces import Among, Records, Space, WorldFunction, read_statistic


@dataclass(frozen=True)
class NoisySum:
    """Noise on a vector of sums: what each value adds (whole steps), and each step's decay."""

    weights: Array
    decay: Array
    step: tuple[Fraction, ...]
    offset: tuple[Fraction, ...]

    @property
    def spans(self) -> tuple[int, ...]:
        """How many steps one row can move each coordinate."""
        return tuple(int(most) for most in self.weights.max(axis=0))


def noisy_sum(mechanism: object, space: Records) -> NoisySum | None:
    """The mechanism as noise on sums over rows; nothing where it is something else."""
    parts = list(mechanism.parts) if isinstance(mechanism, Composed) else [mechanism]
    columns: list[tuple[list[Fraction], Fraction | float]] = []
    for part in parts:
        if not isinstance(part, Laplace | Geometric):
            return None
        statistic = read_statistic(part.statistic)
        if isinstance(statistic, WorldFunction | Among):
            return None
        weights = statistic.weights(space)
        if isinstance(part, Geometric):
            check_whole(statistic, weights)
        for coordinate in zip(*weights, strict=True):
            columns.append((list(coordinate), decay_rate(part)))
    result, decay, steps, offsets = [], [], [], []
    for numbers, rate in columns:
        least = min(numbers)
        moved = [number - least for number in numbers]
        step = common_step(moved)
        result.append([int(number / step) for number in moved])
        decay.append(math.exp(-float(rate) * float(step)))
        steps.append(step)
        offsets.append(least)
    return NoisySum(np.array(result).T, np.array(decay), tuple(steps), tuple(offsets))


def decay_rate(part: Laplace | Geometric) -> Fraction | float:
    """1/scale: how fast the logarithm of the density falls."""
    if isinstance(part, Geometric) and part.alpha is not None:
        return -math.log(float(rational(part.alpha)))
    return 1 / rational(part.scale)


def common_step(numbers: Sequence[Fraction]) -> Fraction:
    """The largest step such that all numbers are multiples of it."""
    top = math.gcd(*(number.numerator for number in numbers))
    bottom = math.lcm(*(number.denominator for number in numbers))
    whole = math.gcd(*(int(number * bottom) for number in numbers))
    return Fraction(whole, bottom) if top else Fraction(1)


class Densities:
    """Arrays of densities over the outputs' grid, and the shift that a row's value makes."""

    def __init__(self, query: NoisySum, reach: int) -> None:
        self.query = query
        self.shape = tuple((2 * reach + 1) * span + 1 for span in query.spans)
        centre = np.ones(())
        for decay, length in zip(query.decay, self.shape, strict=True):
            centre = np.multiply.outer(centre, decay ** np.arange(length))
        self.centre = centre

    def shifted(self, array: Array, value: int) -> Array:
        """f(y − w) for a row with this value."""
        moved = array
        for axis, steps in enumerate(self.query.weights[value]):
            if steps:
                along = array.ndim - len(self.shape) + axis
                moved = _shift_densities(moved, int(steps), along, float(self.query.decay[axis]))
        return moved


def _shift_densities(array: Array, steps: int, axis: int, decay: float) -> Array:
    """Move up by whole steps; what comes in below the grid falls off geometrically."""
    moved = np.empty_like(array)
    ahead, behind, first = ([slice(None)] * array.ndim for _ in range(3))
    ahead[axis], behind[axis], first[axis] = slice(steps, None), slice(None, -steps), slice(0, 1)
    moved[tuple(ahead)] = array[tuple(behind)]
    fall = decay ** np.arange(steps, 0, -1.0)
    shape = [1] * array.ndim
    shape[axis] = steps
    below = [slice(None)] * array.ndim
    below[axis] = slice(0, steps)
    moved[tuple(below)] = array[tuple(first)] * fall.reshape(shape)
    return moved


# The worst window of a Markov chain under a noisy sum (F13); why windows is said below.
#
# The density of the noisy sum is a function of the output that shifts when a row is added, so
# instead of convolving distributions each row costs one shift: f(y) → Σ_x P(u, x) f_x(y − w_x). All
# windows to the right are extended to the left together, at O(W² m³ Y) for windows up to W and Y
# outputs. Outputs are the centres' grid (F10); below it a density falls by e^(−1/scale) per step,
# which supplies what is shifted in.

MIN_DENSITY = 1e-290
"""Densities below this have lost digits to underflow."""


@dataclass
class WorstWindow:
    """The worst window so far, and the worst of those that touch a cut.

    Attributes:
        value: its leakage; left, right and both: of windows that touch a cut on these sides.
        slack: by how much more a window may leak for each step in it, under other chains; `most`,
            left, right and both contain that.
        default: a value of semantic privacy: then the leakage to it and from it are added up, each
            the largest over all that may be known at the ends of the window; `alone` is the latter.
    """

    slack: float = 0.0
    default: int | None = None
    alone: float = 0.0
    value: float = 0.0
    most: float = 0.0
    left: float = -math.inf
    right: float = -math.inf
    both: float = -math.inf
    window: dict[str, Any] | None = None


@dataclass(frozen=True)
class Right:
    """What lies to the right of row i: a known value at a distance, or the end."""

    distance: int
    value: int | None


def sweep_windows(
    prior: MarkovChain,
    rows: int,
    query: NoisySum,
    marginals: Array,
    reach: int,
    row: int | None,
    result: WorstWindow,
) -> None:
    """All windows of at most `reach` on either side of one row, or of any row where the chain is
    homogeneous (row None)."""
    values = prior.values
    grid = Densities(query, reach)
    sides, densities, norms = _right_sides(prior, rows, grid, reach, row)
    centred = np.stack([grid.shifted(densities[:, v], v) for v in range(values)], axis=1)
    if row in (None, 0):
        mask = np.array([_side_fits(side, rows, 0) for side in sides])
        allowed = norms * (marginals[0] > 0)
        window = _Window(grid, sides, reach, row, 0, False)
        _compare_values(result, centred[None], allowed[None], mask[None], window)
    table = np.ones((values, values))
    current: Array | None = None
    # The first row at which each value is possible; the number of rows where none is.
    first = [int(np.argmax(row)) if row.any() else len(row) for row in (marginals > 0).T]
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
                [_can_be_known(distance, side, rows, row, u, first, marginals) for side in sides]
                for u in range(values)
            ]
        )
        window = _Window(grid, sides, reach, row, distance, True)
        _compare_values(result, current, allowed, mask, window)
        if row in (None, distance):
            whole = sum(marginals[0, u] * grid.shifted(current[u], u) for u in range(values))
            allowed = (marginals[distance][None] * norms)[None]
            mask = np.array([_side_fits(side, rows, distance) for side in sides])[None]
            window = _Window(grid, sides, reach, row, distance, False)
            _compare_values(result, np.asarray(whole)[None], allowed, mask, window)


def _right_sides(
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


def _side_fits(side: Right, rows: int, row: int) -> bool:
    """Whether row i = `row`, with everything before it unknown, can have this right side."""
    if side.value is None:
        return row + side.distance == rows - 1
    return row + side.distance <= rows - 1


def _can_be_known(
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
    def steps(self) -> Array:
        """How many probabilities of the chain decide, the first row's among them."""
        return np.array([side.distance + self.distance + (not self.known) for side in self.sides])

    def over_ends(self, values: Array) -> Array:
        """The largest over all that may be known at the ends of the same window."""
        result, finite = np.full(values.shape, -math.inf), np.isfinite(values)
        ends = [(side.distance, side.value is None) for side in self.sides]
        for end in set(ends):
            same = [n for n, other in enumerate(ends) if other == end]
            most = values[:, same].max()
            result[:, same] = np.where(finite[:, same], most, -math.inf)
        return result

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


def _compare_values(
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
        most, least = np.fmax.reduce(likelihood, axis=2), np.fmin.reduce(likelihood, axis=2)
        pairs = [(most, least)]
        if worst.default is not None:
            default = likelihood[:, :, worst.default]
            pairs = [(most, default), (default, least)]
        ratios = [(top / bottom).reshape(*top.shape[:2], -1) for top, bottom in pairs]
    least = least.reshape(*least.shape[:2], -1)
    counted = valid[..., None] & window.inside[None]
    smallest = np.where(possible, allowed, math.inf).min(axis=2)[..., None]
    smallest = np.where(valid[..., None], smallest, 1.0)
    if (np.where(counted, least, 1.0) * smallest < MIN_DENSITY).any():
        message = "the noise is too small for the range of the sum"
        raise Unsupported(message, field="scale", hint="use a larger scale")
    flats = [np.where(counted & ~np.isnan(ratio), ratio, 1.0) for ratio in ratios]
    most_ = [np.where(valid, np.log(flat.max(axis=2)), -math.inf) for flat in flats]
    first = most_[0]
    if worst.default is not None:
        most_ = [window.over_ends(each) for each in most_]
    best = np.asarray(sum(most_))
    looser = best + worst.slack * window.steps * len(most_)
    far = float(looser[:, window.at_cut].max(initial=-math.inf))
    worst.most = max(worst.most, float(looser.max()))
    if window.known and window.distance == window.reach:
        worst.left = max(worst.left, float(looser.max()))
        worst.both = max(worst.both, far)
    worst.right = max(worst.right, far)
    value = float(best.max())
    if value > worst.value or worst.window is None:
        place = int(np.where(best == best.max(), first, -math.inf).argmax())
        context, side = (int(part) for part in np.unravel_index(place, best.shape))
        worst.value, worst.alone = value, float(first[context, side])
        flat = flats[0][context, side]
        output = int(np.argmax(flat >= flat.max() * (1 - 1e-13)))
        column = likelihood[context, side].reshape(likelihood.shape[2], -1)[:, output]
        low = int(np.nanargmin(column)) if worst.default is None else worst.default
        worst.window = {
            "row": window.row,
            "distance": window.distance,
            "left": context if window.known else None,
            "right": window.sides[side],
            "output": np.unravel_index(output, densities.shape[3:]),
            "values": (int(np.nan_to_num(column).argmax()), low),
        }


# Exact Bayesian-DP leakage of noisy sums over a Markov chain (F13).
#
# **Windows.** Rows beyond the nearest known neighbours of row i are independent of x_i given them,
# so leaving them unknown only helps: the worst set of known rows is everything outside a window
# around i. Left of i the window ends at a known row at distance a, or at the start; right of it at
# a known row at distance b, or at the end.
#
# **Cutting off.** For a window longer than W condition on x_{i−W} = u'. What is beyond then depends
# on u' alone, so the leakage is at most that of the window known at i − W plus η = max ln Pr[u' |
# x_i = v, beyond] / Pr[u' | x_i = v', beyond], which mixing makes small and which is computed from
# powers of the transition matrix. So the level is bracketed; it is exact when no window is cut off,
# or when the bracket closes to rounding.

MAX_CERTIFIED_CONDITIONS = 3**9
"""Up to so many conditions the table over all sets of known rows is searched, and its winner
recomputed in rationals or balls; beyond, products of tables are searched by messages in floats."""
MAX_JOINT_ROWS = 60
"""Up to so many rows several releases over a chain are measured by messages, which need the sums
once, not once for each release."""
MAX_SWEEP_OPERATIONS = 6e9
"""Element operations that a sweep may take."""
CLOSED_ETA = 1e-11
"""A bracket as narrow as this is closed: it is of the order of rounding."""
MIN_WINDOW_PROBABILITY = 1e-140
"""Products of two probabilities above it are far above the smallest float."""
MAX_WINDOW = 1000
"""How many steps of one matrix are looked at; a chain that mixes has long done so."""
WINDOW_LENGTHS = (16, 24, 32, 48, 64, 96, 128, 160, 200, 256, 360, 512, 1024)


def measure_chain_leakage(prior: MarkovChain, space: Records, query: NoisySum) -> Level:
    """The Bayesian-DP leakage of the query under the chain, in nats, with its window."""
    prior.check_records(space)
    result = WorstWindow()
    upper = search_windows(prior, space, query, result)
    case = window_witness(prior, space, query, prior.marginals(space.rows), result)
    exact, lower, upper, note = bracket_floats(result.value, upper, space.rows)
    return Level(upper, case, exact, ("T14",), lower, note=note)


def bracket_floats(value: float, upper: float, rows: int) -> tuple[bool, float | None, float, str]:
    """Whether a level in nats that was computed in floats is closed, its ends, and why a level is
    not that is so small that claims could tell its rounding."""
    if upper - value > CLOSED_ETA * max(1.0, upper):
        return False, value, upper, ""
    error = (min(rows, MAX_JOINT_ROWS) + 4) * 2.0**-50
    if value == 0 or error <= CLAIM_TOLERANCE * value:
        return True, None, upper, ""
    return False, max(0.0, value - error), upper + error, "Floats hold no more digits of the level."


def search_windows(
    prior: MarkovChain, space: Records, query: NoisySum, result: WorstWindow
) -> float:
    """Find the worst window; what none exceeds, those that were cut off among them."""
    rows = space.rows
    marginals = prior.marginals(rows)
    if prior.homogeneous:
        _refuse_unlikely_steps(prior, rows)
        reach, (left, right) = _choose_window(prior, rows, query, marginals)
        sweep_windows(prior, rows, query, marginals, reach, None, result)
    else:
        reach, (left, right) = rows - 1, (0.0, 0.0)
        if estimate_sweep(reach, query, prior.values) * rows > MAX_SWEEP_OPERATIONS:
            message = f"a chain with a matrix for each step over {rows} rows takes too long"
            hint = "one matrix for all steps reaches thousands of rows"
            raise Unsupported(message, field="rows", value=rows, hint=hint)
        _refuse_unlikely_steps(prior, rows)
        for row in range(rows):
            sweep_windows(prior, rows, query, marginals, reach, row, result)
    left, right = (cut * (1 if result.default is None else 2) for cut in (left, right))
    return max(result.value, result.left + left, result.right + right, result.both + left + right)


def _refuse_unlikely_steps(prior: MarkovChain, rows: int) -> None:
    """Refuse a chain that gets from one value to another with a probability too small for floats,
    which would pass for impossible: every distance is compared with what is possible."""
    ends = [1] if prior.homogeneous else list(range(rows - 1, 0, -1))
    floats = [np.array(matrix, dtype=float) for matrix in prior.steps]
    possible = [np.array([[p > 0 for p in line] for line in matrix]) for matrix in prior.steps]
    unlikely = min(p for p in prior.start if p > 0) < MIN_WINDOW_PROBABILITY
    for last in ends:
        table, reachable = np.eye(prior.values), np.eye(prior.values, dtype=bool)
        distances = min(rows - 1, MAX_WINDOW) if prior.homogeneous else last
        for distance in range(distances):
            step = 0 if prior.homogeneous else last - 1 - distance
            table, reachable = floats[step] @ table, possible[step] @ reachable
            unlikely = unlikely or bool(table[reachable].min() < MIN_WINDOW_PROBABILITY)
    if unlikely:
        raise Unsupported(
            "the chain has a step or a start with a probability of less than "
            f"{spell(MIN_WINDOW_PROBABILITY)}, too small for its leakage to be computed",
            field="prior",
            hint="give it more probability, or none",
        )


def estimate_sweep(reach: int, query: NoisySum, values: int) -> int:
    """Element operations of one sweep; a whole number, since many releases have more than a float
    can hold."""
    outputs = math.prod((2 * reach + 1) * span + 1 for span in query.spans)
    return reach * values**3 * (values + 1) * reach * outputs


def _choose_window(
    prior: MarkovChain, rows: int, query: NoisySum, marginals: Array
) -> tuple[int, tuple[float, float]]:
    """(W, (η left, η right)): the shortest windows whose cut is negligible, or what is in reach."""
    longest = rows - 1
    best: tuple[int, tuple[float, float]] | None = None
    for reach in (*(w for w in WINDOW_LENGTHS if w < longest), longest):
        if estimate_sweep(reach, query, prior.values) > MAX_SWEEP_OPERATIONS and best is not None:
            break
        cut = (0.0, 0.0) if reach >= longest else _cut_errors(prior, rows, reach, marginals)
        best = reach, cut
        if sum(cut) <= CLOSED_ETA / 10:
            break
    assert best is not None
    work = estimate_sweep(best[0], query, prior.values)
    if math.isinf(sum(best[1])) or work > 10 * MAX_SWEEP_OPERATIONS:
        message = f"{rows} rows take too long: the chain does not mix within {best[0]} rows"
        hint = "use fewer rows, fewer values or a narrower query"
        raise Unsupported(message, field="rows", value=rows, hint=hint)
    return best


def _cut_errors(prior: MarkovChain, rows: int, reach: int, marginals: Array) -> tuple[float, float]:
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


def _place_window(window: dict[str, Any], rows: int, marginals: Array) -> int:
    """A row that a window may be about."""
    if window["row"] is not None:
        return int(window["row"])
    if window["left"] is None:
        return int(window["distance"])
    if window["right"].value is None:
        return int(rows - 1 - window["right"].distance)
    return int(np.argmax(marginals[:, window["left"]] > 0)) + int(window["distance"])


def window_rows(prior: MarkovChain, rows: int, worst: WorstWindow) -> tuple[int, frozenset[int]]:
    """The row that the worst window is about, and the unknown rows in it."""
    window = worst.window
    assert window is not None
    row, right = _place_window(window, rows, prior.marginals(rows)), window["right"]
    first = row - window["distance"] + (window["left"] is not None)
    last = row + right.distance - (right.value is not None)
    return row, frozenset(range(first, last + 1)) - {row}


def window_witness(
    prior: MarkovChain, space: Records, query: NoisySum, marginals: Array, worst: WorstWindow
) -> Witness:
    """Place the worst window in the series, with the rows outside it known."""
    window = worst.window
    assert window is not None
    right: Right = window["right"]
    rows, distance = space.rows, window["distance"]
    row = _place_window(window, rows, marginals)
    known: dict[int, int] = {}
    if window["left"] is not None:
        known[row - distance] = window["left"]
        for other in range(row - distance - 1, -1, -1):
            step = prior.matrix(other)
            known[other] = int(np.argmax(marginals[other] * step[:, known[other + 1]]))
    if right.value is not None:
        known[row + right.distance] = right.value
        for other in range(row + right.distance + 1, rows):
            known[other] = int(np.argmax(prior.matrix(other - 1)[known[other - 1]]))
    output = [
        (int(steps) + sum(int(query.weights[value, axis]) for value in known.values())) * step
        + rows * offset
        for axis, (steps, step, offset) in enumerate(
            zip(window["output"], query.step, query.offset, strict=True)
        )
    ]
    values = tuple(int(v) if v.denominator == 1 else float(v) for v in output)
    ratio = math.exp(worst.value)
    return Witness(
        output=values[0] if len(values) == 1 else values,
        prior=0.5,
        posterior=ratio / (1 + ratio),
        ratio=ratio,
        row=row,
        known=dict(sorted(known.items())),
        values=window["values"],
    )


@dataclass(frozen=True, init=False)
class BayesianDifferentialPrivacy(OfPriors):
    """The largest ln Pr[y | x_i, x_S] / Pr[y | x_i', x_S] over rows i, known rows S and outputs y
    (Yang, Sato, Nakagawa 2015; Zhao 2017).

    The rows outside S are as uncertain as the prior says, so what depends on row i leaks with it.
    All sets S come from one table of (m+1)^n entries; for a Markov chain with noise on a sum,
    count or histogram only windows around a row matter, for thousands of rows (F13); for networks,
    blocks and pedigrees only connected sets of unknown rows, by message passing.

    Args:
        prior: a prior on records, or a list of them; then the largest of their leakages counts. Of
            independent rows only what is possible matters, so over a set of such priors (`Hull`,
            `Box`) a member attains the most in which everything is possible that is in any.
    """

    unit: ClassVar[str] = "ε"
    short_names: ClassVar[tuple[str, ...]] = ("bayesian-dp",)

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        return self.worst_prior(lambda prior: self._measure(prior, mechanism, space))

    def _measure(self, prior: Prior, mechanism: object, space: Space | None) -> Level:
        if isinstance(prior, ChainBox):
            from whosin.notions.prior_sets import measure_chain_box

            return measure_chain_box(prior, mechanism, space)
        joint = isinstance(mechanism, Composed) and len(mechanism.parts) > 1
        several = joint and isinstance(space, Records) and space.rows <= MAX_JOINT_ROWS
        if isinstance(prior, MarkovChain) and isinstance(space, Records) and not several:
            queries = noisy_sum(mechanism, space)
            if queries is not None:
                return measure_chain_leakage(prior, space, queries)
        if isinstance(space, Records) and (
            joint or (space.values + 1) ** space.rows > MAX_CERTIFIED_CONDITIONS
        ):
            from whosin.notions.network_leakage import measure_network_leakage, noisy_sums

            factors, sums = list_factors(prior, space), noisy_sums(mechanism, space)
            if factors is not None and sums is not None:
                return measure_network_leakage(factors, space, sums)
        channel, space = certificates.record_channel(mechanism, space)
        if isinstance(prior, PriorSet):
            member = Independent([each.widest() for each in prior.of_rows(space)])
            level = _measure_by_table(self, member, channel, space)
            assert level.witness is not None
            case = replace(level.witness, adversary=lambda: member)
            return replace(level, witness=case)
        return _measure_by_table(self, prior, channel, space)


def list_factors(prior: Prior, space: Records) -> list[Factor] | None:
    """A prior as a product of tables over few rows; of independent rows, or of a set of such
    priors, only what is possible counts."""
    if isinstance(prior, PriorSet):
        prior = Independent([each.widest() for each in prior.of_rows(space)])
    if isinstance(prior, Uniform):
        prior = Independent([(Fraction(1, space.values),) * space.values] * space.rows)
    if isinstance(prior, Independent):
        return [((n,), [Fraction(p > 0) for p in row]) for n, row in enumerate(prior.rows(space))]
    return prior.factors(space)


def _measure_by_table(notion: Notion, prior: Prior, channel: Channel, space: Records) -> Level:
    """Search the table over all sets of known rows, then recompute the winners exactly."""
    mass = prior.on_records(space, flint_rational)
    near = certificates.Nearest()
    for start, table in certificates.conditional_likelihoods(channel.wide, mass, space):
        for row in range(space.rows):
            view = certificates.row_axis(table, space, row)[:, : space.values]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                most = np.fmax.reduce(view, axis=1)
                ratio = most / np.fmin.reduce(view, axis=1)
            # NaN is 0/0, a ratio of 1, or a condition that is impossible: that must not win.
            ratio = np.where(np.isnan(ratio), np.where(np.isnan(most), 0.0, 1.0), ratio)
            near.add(ratio, partial(_table_case, space, row, start))
    certain = certificates.Certain(channel, mass)

    def cost(case: tuple[int, dict[int, int], int]) -> int:
        return int(space.values ** (space.rows - len(case[1])))

    upper, attained, (row, known, output, values) = near.certified(
        partial(_largest_ratio, certain), cost, certain.budget
    )
    exact = channel.exact is not None and is_exact(*prior.parameters)
    case = certificates.value_witness(channel.outputs[output], attained, row, values, known, exact)
    return certificates.level_from_ratio(notion, log_up, upper, attained, case, ("T14",))


def _table_case(
    space: Records, row: int, start: int, position: tuple[int, ...]
) -> tuple[int, dict[int, int], int]:
    """(row, the other rows that are known, output) of a position in the table along a row."""
    before, after, output = position
    stride = (space.values + 1) ** (space.rows - 1 - row)
    others = certificates.entry_coordinates(before * (space.values + 1) * stride + after, space)
    known = {r: v for r, v in enumerate(others) if v is not None and r != row}
    return row, known, start + output


def _largest_ratio(
    certain: certificates.Certain, case: tuple[int, dict[int, int], int]
) -> tuple[Fraction | float, tuple[int, dict[int, int], int, tuple[int, int]]]:
    """The largest ratio between two values of a row given the known rows, recomputed."""
    row, known, output = case
    ratio, high, low = certificates.largest_pair(
        (value, certain.likelihood({**known, row: value}, output))
        for value in range(certain.space.values)
    )
    return ratio, (row, known, output, (high, low))
