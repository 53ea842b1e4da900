"""Rate–distortion: the least mutual information at a distortion, and back (F15)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from whosin.distortion.closed_forms import (
    best_constant,
    distortion_bounds,
    epsilon_bounds,
    h_inverse,
    hamming_distortion,
    is_hamming,
    known_threshold,
)
from whosin.distortion.program import combine_blocks, integer_shares
from whosin.distortion.row_mechanisms import ByType, Optimum, PerBlock, PerRow, exact_matrix
from whosin.distortion.symmetry import Block, Structure, Types, check_size, independent_blocks
from whosin.exact import Array
from whosin.mechanisms import Mechanism

# Letters: the small problems that rate–distortion falls into (F15).
#
# One for each distinct row where rows are independent, one for each kind of block where blocks are
# (equal slopes are optimal), else one for the whole table; over counts instead of tables where rows
# can be exchanged.

MAX_COMPONENTS = 2048


@dataclass(frozen=True, eq=False)
class Letter:
    """A problem of its own, `times` over.

    Attributes:
        masses: p, over x or its counts.
        outputs: how many y, or counts of y, there are.
        moments: at a slope λ the kernel K = Σ e^(−λd), and Σ d e^(−λd), Σ d² e^(−λd).
        conditionals: the channel that weights of y make at a slope.
        distortion, information: of a channel.
    """

    masses: Array
    outputs: int
    times: int
    moments: Callable[[float], tuple[Array, Array, Array]]
    conditionals: Callable[[Array, float], Array]
    distortion: Callable[[Array], float]
    information: Callable[[Array], float]


def row_letter(row: Array, cost: Array, times: int) -> Letter:
    """One row of a table of independent rows."""

    def moments(slope: float) -> tuple[Array, Array, Array]:
        kernel = np.exp(-slope * cost)
        return kernel, kernel * cost, kernel * cost**2

    def conditionals(weights: Array, slope: float) -> Array:
        table = np.exp(-slope * cost) * weights
        return np.asarray(table / table.sum(axis=1, keepdims=True))

    return Letter(
        row,
        cost.shape[1],
        times,
        moments,
        conditionals,
        lambda channel: float((row[:, None] * channel * cost).sum()),
        lambda channel: row_information(row, channel),
    )


def table_letter(types: Types, masses: Array, cost: Array, times: int = 1) -> Letter:
    """A whole table by type: components are the counts of y."""
    spread, size = types.cost(cost), len(masses)
    base = np.exp(types.log_ways - types.log_arrangements[types.outputs])
    prices, which = np.unique(spread, return_inverse=True)
    into = types.inputs * size + types.outputs
    single = types.size == size * size  # every type is one pair (x, y): nothing to add up
    if single:
        order = np.empty(types.size, dtype=np.int64)
        order[into] = np.arange(types.size)
        cells = which[order].reshape(size, size)

    def summed(each: Array) -> Array:
        return np.bincount(into, each, size * size).reshape(size, size)

    def moments(slope: float) -> tuple[Array, Array, Array]:
        decay = np.exp(-slope * prices)
        if single:
            return decay[cells], (decay * prices)[cells], (decay * prices**2)[cells]
        each = base * decay[which]
        return summed(each), summed(each * spread), summed(each * spread**2)

    def conditionals(weights: Array, slope: float) -> Array:
        each = base * np.exp(-slope * spread) * weights[types.outputs]
        sums = np.bincount(types.inputs, each, size)
        return np.asarray(each / sums[types.inputs])

    return Letter(
        masses,
        size,
        times,
        moments,
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
        output_logs = np.log(outputs)[types.outputs] - types.log_arrangements[types.outputs]
    seen = joint > 0
    value = float(np.sum(joint[seen] * (given[seen] - output_logs[seen])))
    return value if value > 1e-14 else 0.0


def row_information(row: Array, channel: Array) -> float:
    """I(X;Y) of one row, its matrix given."""
    joint = row[:, None] * channel
    outputs = np.broadcast_to(joint.sum(axis=0), joint.shape)
    seen = joint > 0
    return max(0.0, float(np.sum(joint[seen] * np.log(channel[seen] / outputs[seen]))))


# Rate–distortion at a distortion: a saddle point in the output's weights and the slope (F15).
#
# With K = e^(−λd), R(D) = min over distributions q, max over λ of −Σ_x p(x) ln (Kq)(x) − λD, convex
# in q and concave in λ. Blahut–Arimoto is its slow expectation–maximisation at a fixed λ, to be
# repeated for every λ that a search tries. Here one primal–dual interior-point Newton method moves
# both together: the multiplier of Σq = 1 is known to be 1, so the conditions are
#
#     1 − Kᵀ(p/Kq) = z,   q z = μ → 0,   q, z ≥ 0,   E d = D,
#
# with one symmetric system a letter, and one more unknown, λ, that couples them. For any q and λ
#
#     R(D') ≥ −λD' − Σ p ln(Kq) − ln max_y Σ p K/(Kq)        for every D' (Csiszár),
#
# so that the bound that is reported does not depend on how well the method did.

MAX_RATE_ITERATIONS = 200
MAX_SLOPE = 650.0
LARGE_ALPHABET = 48
"""Components from which a linear algebra library would start threads."""


@dataclass(frozen=True, eq=False)
class Saddle:
    """The slope, weights of each letter, the bound R(D) ≥ intercept − slope · D, how far that may
    be below R(D), and how many steps it took."""

    slope: float
    weights: tuple[Array, ...]
    intercept: float
    gap: float
    steps: int

    def at(self, distortion: float) -> float:
        """No channel with this distortion has less information."""
        return self.intercept - self.slope * distortion


class _Side:
    """One letter's weights q and slacks z, and what a Newton step needs of them."""

    def __init__(self, letter: Letter) -> None:
        self.letter, self.times = letter, letter.times
        self.used = letter.masses > 0
        self.all_used = bool(self.used.all())
        self.p = letter.masses[self.used]
        self.q, self.z = np.full(letter.outputs, 1.0 / letter.outputs), np.ones(letter.outputs)

    def look(self, slope: float) -> None:
        k, first, second = self.letter.moments(slope)
        if not self.all_used:
            k, first, second = k[self.used], first[self.used], second[self.used]
        total = self.q.sum()
        sums = k @ self.q
        self.share = self.p / sums
        self.mean = (first @ self.q) / sums
        self.pull = k.T @ self.share
        self.distortion = float(self.p @ self.mean)
        self.variance = float(self.p @ ((second @ self.q) / sums - self.mean**2))
        self.lean = first.T @ self.share - k.T @ (self.share * self.mean)
        self.kernel, self.sums = k, sums
        self.gap = math.log(max(float(self.pull.max()) * total, 1.0))
        self.value = -float(self.p @ np.log(sums)) + math.log(total)

    def factor(self) -> None:
        from scipy.linalg import cho_factor
        from scipy.linalg.blas import dsyrk

        scaled = self.kernel * (self.share / np.sqrt(self.p))[:, None]
        system = dsyrk(1.0, scaled.T)
        system[np.diag_indices(len(self.q))] += self.z / self.q
        self.factors = cho_factor(system, overwrite_a=True, check_finite=False)

    def solve(self, right: Array) -> Array:
        from scipy.linalg import cho_solve

        return np.asarray(cho_solve(self.factors, right, check_finite=False))


def find_saddle(
    letters: Sequence[Letter],
    distortion: float | None,
    slope: float = 1.0,
    tolerance: float = 1e-12,
) -> Saddle:
    """The saddle point at a distortion (of all letters together), to a certified tolerance.

    Args:
        distortion: None for the best weights at the slope.
        slope: where to start.
        tolerance: the gap at which to stop, in nats.
    """
    if max(len(letter.masses) for letter in letters) < LARGE_ALPHABET:
        return _find_saddle(letters, distortion, slope, tolerance)
    from threadpoolctl import threadpool_limits

    # Matrices of this size gain nothing by threads, and lose much where cores are shared.
    with threadpool_limits(1, user_api="blas"):
        return _find_saddle(letters, distortion, slope, tolerance)


def _find_saddle(
    letters: Sequence[Letter], distortion: float | None, slope: float, tolerance: float
) -> Saddle:
    sides = [_Side(letter) for letter in letters]
    best: Saddle | None = None
    stale = 0
    for step in range(MAX_RATE_ITERATIONS):
        for side in sides:
            side.look(slope)
        result = _point_reached(sides, slope, distortion, step)
        stale = stale + 1 if best is not None and result.gap > 0.5 * best.gap else 0
        if best is None or result.gap < best.gap:
            best = result
        if best.gap <= tolerance or (stale > 6 and best.gap < 1e-9) or stale > 40:
            break
        try:
            moved = _predict_and_correct(sides, slope, distortion)
        except np.linalg.LinAlgError:
            break
        if moved is None:
            break
        slope = moved
    assert best is not None
    return best


def _point_reached(sides: list[_Side], slope: float, distortion: float | None, step: int) -> Saddle:
    """The point reached, and its gap: what its bound says at D, against the information of its
    channel, brought back to D along the slope."""
    intercept = sum(side.times * (side.value - side.gap) for side in sides)
    reached = sum(side.times * side.distortion for side in sides)
    slack = sum(side.times * side.gap for side in sides)
    off = 0.0 if distortion is None else abs(reached - distortion)
    weights = tuple(side.q / side.q.sum() for side in sides)
    return Saddle(slope, weights, intercept, slack + slope * off, step)


def _predict_and_correct(
    sides: list[_Side], slope: float, distortion: float | None
) -> float | None:
    """One predictor–corrector step of all weights and the slope; the new slope."""
    off = None
    if distortion is not None:
        off = sum(side.times * side.distortion for side in sides) - distortion
    count = sum(len(side.q) for side in sides)
    pressure = sum(float(side.q @ side.z) for side in sides) / count
    for side in sides:
        side.factor()
    ahead, turn = _newton_direction(sides, off, [np.zeros_like(side.q) for side in sides])
    swings = [-s.z - s.z / s.q * move for s, move in zip(sides, ahead, strict=True)]
    far = _largest_step(sides, ahead, swings)
    left = sum(
        float((s.q + far * move) @ (s.z + far * swing))
        for s, move, swing in zip(sides, ahead, swings, strict=True)
    )
    aim = pressure * min(max((left / count / pressure) ** 3, 1e-6), 0.5)
    seconds = [move * swing for move, swing in zip(ahead, swings, strict=True)]
    pushes = [(aim - second) / side.q for side, second in zip(sides, seconds, strict=True)]
    moves, turn = _newton_direction(sides, off, pushes)
    swings = [
        push - s.z - s.z / s.q * move for s, push, move in zip(sides, pushes, moves, strict=True)
    ]
    far = 0.995 * _largest_step(sides, moves, swings)
    if turn < 0:
        far = min(far, -0.9 * slope / turn)
    far = min(far, 2 * max(slope, 0.5) / max(abs(turn), 1e-300))
    for side, move, swing in zip(sides, moves, swings, strict=True):
        side.q, side.z = side.q + far * move, side.z + far * swing
        if not (np.isfinite(side.q).all() and (side.q > 0).all() and (side.z > 0).all()):
            return None
    return slope if distortion is None else min(slope + far * turn, MAX_SLOPE)


def _newton_direction(
    sides: list[_Side], off: float | None, pushes: list[Array]
) -> tuple[list[Array], float]:
    """The Newton direction of the weights and of the slope, the slope eliminated last; or where
    nothing is off by definition, of the weights alone."""
    plain, leaning, top, bottom = [], [], off or 0.0, 0.0
    for side, push in zip(sides, pushes, strict=True):
        both = side.solve(np.column_stack([side.pull - 1.0 + push, side.lean]))
        plain.append(both[:, 0])
        leaning.append(both[:, 1])
        top += side.times * float(side.lean @ both[:, 0])
        bottom += side.times * (side.variance + float(side.lean @ both[:, 1]))
    turn = top / bottom if bottom > 0 and off is not None else 0.0
    return [one - turn * two for one, two in zip(plain, leaning, strict=True)], turn


def _largest_step(sides: list[_Side], moves: list[Array], swings: list[Array]) -> float:
    """The largest step up to 1 that keeps weights and slacks positive."""
    far = 1.0
    for side, move, swing in zip(sides, moves, swings, strict=True):
        for values, direction in ((side.q, move), (side.z, swing)):
            falling = direction < 0
            if falling.any():
                far = min(far, float((-values[falling] / direction[falling]).min()))
    return far


# Rate–distortion: the least mutual information for a distortion (Wang14 PD-MIP), and back.

RATE_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class RatePoint:
    """The channel of each letter, their distortion and information in all; a bound on the curve;
    and by how much the quantity that was not given may be above the optimum."""

    conditionals: tuple[Array, ...]
    distortion: float
    information: float
    tangent: Saddle
    gap: float

    @property
    def slope(self) -> float:
        return self.tangent.slope


def least_information(
    letters: Sequence[Letter], wanted: float, slope: float = 1.0, tolerance: float = RATE_TOLERANCE
) -> RatePoint:
    """The least information at a distortion; the point's own distortion is at most that."""
    saddle = find_saddle(letters, wanted, slope, tolerance)
    channels = [
        letter.conditionals(weights, saddle.slope)
        for letter, weights in zip(letters, saddle.weights, strict=True)
    ]
    found = _Point.of(letters, channels)
    with np.errstate(over="ignore"):
        zero = [each.conditionals(np.ones(each.outputs), STEEPEST_SLOPE) for each in letters]
    shown = _Point.of(letters, zero)
    point, tangent = found.mixed(letters, shown, wanted), saddle
    if point.information - max(saddle.at(wanted), 0.0) > TRUSTED_GAP:
        point, tangent = _search_chord(letters, wanted, shown, (point, tangent))
    gap = max(0.0, point.information - max(tangent.at(wanted), 0.0))
    return RatePoint(point.channels, point.distortion, point.information, tangent, gap)


# Where the curve is straight between two points, or nearly so, a small change of the slope moves
# the distortion far, and the joint method can go back and forth. Then the chord between a point on
# either side of the distortion says which slope is next: its own point is on the curve between the
# two, or the chord is the curve. A mixture of two channels has no more information than the chord.

TRUSTED_GAP = 1e-9
"""The gap of a saddle point up to which no chords are searched, in nats."""
MAX_CHORDS = 100
STEEPEST_SLOPE = 1e300
"""A slope at which only answers without any cost are left."""


@dataclass(frozen=True, eq=False)
class _Point:
    """Channels of all letters, with their distortion and information."""

    channels: tuple[Array, ...]
    distortion: float
    information: float

    @classmethod
    def of(cls, letters: Sequence[Letter], channels: Sequence[Array]) -> _Point:
        pairs = list(zip(letters, channels, strict=True))
        spent = math.fsum(each.times * each.distortion(channel) for each, channel in pairs)
        learned = math.fsum(each.times * each.information(channel) for each, channel in pairs)
        return cls(tuple(channels), spent, learned)

    def mixed(self, letters: Sequence[Letter], less: _Point, wanted: float) -> _Point:
        """This point, or where its distortion is above what is wanted, as little of another one
        with less distortion as brings it there."""
        made, share = self, 0.0
        step = (self.distortion - wanted) / max(self.distortion - less.distortion, 1e-300)
        while made.distortion > wanted and share < 1:
            share = min(1.0, share + step)
            pairs = zip(self.channels, less.channels, strict=True)
            made = _Point.of(letters, [(1 - share) * one + share * two for one, two in pairs])
            step = max(2 * step * (made.distortion / wanted - 1), 1e-16) if wanted else 1.0
        return made


def _search_chord(
    letters: Sequence[Letter], wanted: float, left: _Point, tried: tuple[_Point, Saddle]
) -> tuple[_Point, Saddle]:
    """The least information at a distortion, and the tangent that bounds it from below."""
    right = _Point.of(letters, [_best_constant_channel(letter) for letter in letters])
    best, tangent = tried
    for _ in range(MAX_CHORDS):
        slope = (left.information - right.information) / (right.distortion - left.distortion)
        saddle = find_saddle(letters, None, slope)
        if saddle.at(wanted) > tangent.at(wanted):
            tangent = saddle
        channels = [
            each.conditionals(weights, slope)
            for each, weights in zip(letters, saddle.weights, strict=True)
        ]
        point = _Point.of(letters, channels)
        below = left.information + slope * left.distortion
        below -= point.information + slope * point.distortion
        if point.distortion <= wanted:
            left = point
        else:
            right = point
        made = right.mixed(letters, left, wanted)
        if made.information < best.information:
            best = made
        if min(best.information - tangent.at(wanted), below) <= RATE_TOLERANCE:
            break
    return best, tangent


def _best_constant_channel(letter: Letter) -> Array:
    """An answer that ignores the data."""
    kernel, first, _ = letter.moments(0.0)
    weights = np.zeros(letter.outputs)
    weights[int(np.argmin(letter.masses @ (first / kernel)))] = 1.0
    return letter.conditionals(weights, 0.0)


def least_distortion(letters: Sequence[Letter], wanted: float, most: float) -> RatePoint:
    """The least distortion at an information, from the left by Newton's method: the curve is convex
    and falls with slope −λ, so a tangent never passes the point that is looked for.

    Args:
        most: the distortion at which no information is left.
    """
    low, aim, slope = 0.0, most / 2, 1.0
    point = least_information(letters, aim, slope)
    while point.information < wanted and aim > 1e-300:  # start from the left
        aim /= 2
        point = least_information(letters, aim, point.slope)
    for _ in range(100):
        low, excess = aim, point.information - wanted
        if excess <= 1e-14 * max(1.0, wanted) or point.slope <= 0:
            break
        aim = low + excess / point.slope
        if aim <= low:
            break
        point = least_information(letters, aim, point.slope)
    step = 1e-15 * most
    while point.information > wanted:
        aim, step = aim + step, 8 * step
        point = least_information(letters, aim, point.slope)
    # D ≥ (intercept − R)/λ for every mechanism with information R.
    tangent = point.tangent
    least = max((tangent.intercept - wanted) / tangent.slope, 0.0)
    gap = max(0.0, point.distortion - least)
    return RatePoint(point.conditionals, point.distortion, point.information, tangent, gap)


# Mutual information: the optimum under it (PD-MIP), and that of any mechanism found.


def rate_optimum(
    known: Structure, cost: Array, *, epsilon: float | None = None, distortion: float | None = None
) -> Optimum:
    """The rate–distortion function at a distortion, or its inverse at an information."""
    space, plain, parts = known.space, is_hamming(cost), independent_blocks(known)
    letters = [_block_letter(block, cost) for block in parts]
    if distortion is not None:
        steep = h_inverse(space, distortion) if plain else 1.0
        point = least_information(letters, distortion, min(max(steep, 0.1), 50.0))
        bounds = epsilon_bounds(known, cost, "mutual-information", distortion)
        given, level = "distortion", point.information
    else:
        assert epsilon is not None
        point = least_distortion(letters, epsilon, float(best_constant(known, cost)[0]))
        bounds = distortion_bounds(known, cost, "mutual-information", epsilon)
        given, level = "epsilon", epsilon
    tight = (
        plain
        and known.spread < math.inf
        and point.distortion <= hamming_distortion(space, known_threshold(known))
    )
    made = [
        _channel_mechanism(block.structure, channel)
        for block, channel in zip(parts, point.conditionals, strict=True)
    ]
    mechanism = combine_blocks(known, parts, made)
    result = (point.distortion, level, point.information, mechanism, point.gap)
    reasons = (("T17",), "Shannon's bound is attained") if tight else ((), "")
    return Optimum(space, "mutual-information", given, *result, *bounds, *reasons)


def _block_letter(block: Block, cost: Array) -> Letter:
    known, times = block.structure, len(block.copies)
    if known.rows is not None:
        return row_letter(np.array([float(p) for p in known.rows[0]]), cost, times)
    hint = "independent rows are solved one by one, exchangeable ones by their counts"
    kinds = len(known.masses)
    check_size("rate–distortion has", kinds, "kinds of tables here", MAX_COMPONENTS, "prior", hint)
    return table_letter(known.types, known.masses, cost, times)


def _channel_mechanism(known: Structure, channel: Array) -> Mechanism:
    if known.rows is not None:
        return PerRow((exact_matrix(channel),))
    return ByType(known.space, known.groups, known.types, integer_shares(channel))


def measure_information(known: Structure, mechanism: Mechanism) -> float:
    """I(X;Y) of a mechanism that was found."""
    if isinstance(mechanism, PerBlock):
        total = 0.0
        for block, (made, copies) in zip(known.blocks, mechanism.parts, strict=True):
            assert isinstance(made, Mechanism)
            total += len(copies) * measure_information(block.structure, made)
        return total
    if isinstance(mechanism, PerRow) and known.rows is not None:
        kinds = [(len(group), group[0], known.rows[group[0]]) for group in known.groups]
        return sum(
            many
            * row_information(np.array([float(p) for p in masses]), _row_floats(mechanism, row))
            for many, row, masses in kinds
        )
    if isinstance(mechanism, PerRow):
        weights = np.zeros(1)
        with np.errstate(divide="ignore", invalid="ignore"):
            for group, part in zip(known.groups, known.types.groups, strict=True):
                logs = np.log(_row_floats(mechanism, group[0]))
                mine = np.where(part.tables > 0, part.tables * logs, 0.0).sum(axis=(1, 2))
                weights = np.add.outer(weights, part.log_ways + mine).ravel()
        return type_information(known.types, known.masses, np.exp(weights))
    if isinstance(mechanism, ByType):
        return type_information(known.types, known.masses, mechanism.weights)
    from whosin.notions import MutualInformation

    return float(MutualInformation(known.prior).measure(mechanism, known.space).value)


def _row_floats(mechanism: PerRow, row: int) -> Array:
    return np.array([[float(p) for p in line] for line in mechanism.of_row(row)])
