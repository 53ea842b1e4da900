"""Trade-off curves of channels, of additive noise and of accounted processes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from whosin.beliefs import NEIGHBOUR_RELATIONS
from whosin.calibration.accounting import LossDistribution
from whosin.calibration.failure import gaussian_delta, gaussian_profile
from whosin.calibration.rate_targets import best_tests
from whosin.curves.curve import (
    ComparedWorlds,
    CornerCurve,
    TradeOff,
    concave_hull,
    lower_envelope,
    ordered_corners,
    upper_hull,
)
from whosin.errors import UnknownName
from whosin.exact import Array, exact_fraction, exp_up, probability, rational, round_up
from whosin.families import Family
from whosin.mechanisms import Channel, Geometric
from whosin.mechanisms.additive_noise import (
    AdditiveNoise,
    check_nats,
    check_whole,
    statistic_centres,
    statistic_lattice,
)
from whosin.mechanisms.entries import Floats
from whosin.notions.differential_privacy import need_replacing
from whosin.notions.failure_probability import list_cases
from whosin.spaces import Lattice, Records, Space, read_statistic
from whosin.spaces.quotients import CUT_WEIGHT


def neighbouring_rows(space: Space, lattice: Lattice | None, relation: str) -> tuple[Array, Array]:
    """(in, out): the numbers of the rows of each two neighbours."""
    if relation not in NEIGHBOUR_RELATIONS:
        raise UnknownName("relation", str(relation), NEIGHBOUR_RELATIONS)
    if isinstance(space, Records):
        need_replacing(relation)
        return _record_pairs(space)
    assert lattice is not None
    numbers = np.arange(lattice.worlds)[:, None]
    sides = [
        (np.asarray(each.present).ravel(), np.asarray(each.absent).ravel())
        for each in lattice.additions(numbers)
    ]
    present, absent = (np.concatenate(side) for side in zip(*sides, strict=True))
    if relation == "add-remove":
        return present, absent
    return _replace_pairs(present, absent)


def world_pair(space: Space, lattice: Lattice | None, in_: int, out: int) -> ComparedWorlds:
    if lattice is None:
        return ComparedWorlds(space, in_, out)
    return ComparedWorlds(lattice, in_, out, alone=out == lattice.class_of(()))


def _replace_pairs(present: Array, absent: Array) -> tuple[Array, Array]:
    """Two ways to add someone to the same others, in both orders."""
    order = np.argsort(absent, kind="stable")
    starts = np.flatnonzero(np.diff(absent[order], prepend=-1))
    pairs: set[tuple[int, int]] = set()
    for group in np.split(present[order], starts[1:]):
        pairs.update(permutations(set(group.tolist()), 2))
    both = np.array(sorted(pairs) or [(0, 0)])
    return both[:, 0], both[:, 1]


def _record_pairs(space: Records) -> tuple[Array, Array]:
    numbers = np.arange(space.worlds)[:, None]
    one, other = [], []
    for row in range(space.rows):
        view = space.axis(numbers, row)
        for a, b in permutations(range(space.values), 2):
            one.append(view[:, a].ravel())
            other.append(view[:, b].ravel())
    return np.concatenate(one), np.concatenate(other)


# The curve of a channel: the one of the largest profile over all neighbours.
#
# That is the least concave curve above the curves of all pairs: the largest TPR of each pair by
# itself is not enough, since one test can serve several pairs. All pairs are searched in
# floats; those that come near the curve are computed again in exact rationals.

_Line = tuple[Array, Array]
ROUNDING_COUNT = 64
"""More than the roundings of one sum of floats for each of its terms, comparisons included."""
MAX_RATIONAL_PAIRS, MAX_EXACT_PAIRS = 64, 4096
"""Up to this many pairs near the curve are computed exactly; with more the curve is a bound."""
FIRST_PAIRS, PAIR_BLOCK_ENTRIES = 1 << 12, 1 << 20
"""How many pairs are looked at first, and then how many numbers at a time."""


def channel_curve(channel: Channel, relation: str) -> CornerCurve:
    channel.need_finite("a curve")
    top, bottom = neighbouring_rows(channel.space, channel.lattice, relation)
    cuts = _pairs_near_curve(channel.wide, top, bottom, _missing_mass(channel))
    is_rational, near = isinstance(channel.entries, Floats), np.unique(cuts.pairs)
    kinds = [[int(pair)] for pair in near]
    if is_rational and len(near) > MAX_RATIONAL_PAIRS:
        kinds = _distinct_pairs(channel, top, bottom, near)
    if not is_rational or len(kinds) > MAX_EXACT_PAIRS:
        return CornerCurve(cuts.bound(), exact=False, relation=relation)
    corners = []
    for pairs in kinds:
        rows = [_exact_row(channel, int(side[pairs[0]])) for side in (top, bottom)]
        corners.append(ordered_corners(list(zip(*rows, strict=True))))
    highest = concave_hull([corner for each in corners for corner in each])
    attained = [
        world_pair(channel.space, channel.lattice, int(top[pair]), int(bottom[pair]))
        for each, pairs in zip(corners, kinds, strict=True)
        if set(highest[1:-1]) <= set(each)  # each is concave and nowhere above
        for pair in pairs
    ]
    return CornerCurve(highest, relation=relation, attained_by=attained)


def family_curve(mechanism: object, space: Space | None, family: Family) -> CornerCurve:
    """The curve over all priors of a family, between "in" and "out" of any one person."""
    cases = list_cases(mechanism, space, family, positive=True)
    corners: list[tuple[Fraction, Fraction]] = []
    for pair in cases.pairs(exact=cases.is_small):
        for in_, out in zip(pair.top, pair.bottom, strict=True):
            outputs = [
                (exact_fraction(p), exact_fraction(q)) for p, q in zip(in_, out, strict=True)
            ]
            if not cases.is_small:
                # As far apart as the true ones may be: each off by a share, and some left out.
                more, less = 1 + Fraction(cases.rounding), 1 - Fraction(cases.rounding)
                outputs = [(p * more, q * less) for p, q in outputs]
                outputs.insert(0, (Fraction(CUT_WEIGHT), Fraction(0)))
            corners += ordered_corners(outputs)
        corners = concave_hull(corners)
    # Between the priors that were tried profiles are no larger, but no prior need attain all.
    return CornerCurve(corners, exact=cases.is_small and family.complete)


def _missing_mass(channel: Channel) -> float:
    """At least how far the rows, as they are taken, are from a sum of 1."""
    if type(channel.entries) is not Floats:
        return 0.0
    table = channel.likelihoods
    off = float(np.abs(table.sum(axis=1) - 1).max())
    return off + int(table.shape[1]) * float(np.finfo(float).eps)


def _exact_row(channel: Channel, world: int) -> list[Fraction]:
    return [exact_fraction(channel.entries.at(world, o)) for o in range(len(channel.outputs))]


class _Cuts(NamedTuple):
    """Tests of pairs, in floats that are off by a share of at most `rounding`.

    Near (0, 0) such are FPR and TPR, near (1, 1) the rates at which a test says "out". So both are
    kept, and each test is compared by those that are small. Rows of floats add up to 1 only nearly:
    what they miss is at most `missing`.
    """

    pairs: Array
    fpr: Array
    tpr: Array
    out_out: Array
    out_in: Array
    rounding: float
    missing: float

    def taken(self, which: Array) -> _Cuts:
        pairs, fpr, tpr, out_out, out_in = (column[which] for column in self[:5])
        return _Cuts(pairs, fpr, tpr, out_out, out_in, self.rounding, self.missing)

    def joined(self, others: _Cuts) -> _Cuts:
        columns = zip(self[:5], others[:5], strict=True)
        pairs, fpr, tpr, out_out, out_in = (np.concatenate(both) for both in columns)
        return _Cuts(pairs, fpr, tpr, out_out, out_in, self.rounding, self.missing)

    def lines(self, low: _Line, high: _Line) -> tuple[_Line, _Line]:
        """Lines that are surely not above the curve, nor below the lines so far: of FPR and TPR,
        and of the rates of "out", from (1, 1) back."""
        less, more = 1 - self.rounding, 1 + self.rounding
        rates = self.out_in * more + self.missing, self.out_out * less - self.missing
        return (
            _float_hull(np.append(low[0], self.fpr * more), np.append(low[1], self.tpr * less)),
            _float_hull(np.append(high[0], rates[0]), np.append(high[1], rates[1])),
        )

    def may_reach(self, low: _Line, high: _Line) -> Array:
        """Which tests are not surely below the lines."""
        less, more = 1 - self.rounding, 1 + self.rounding
        near_start = self.tpr * more >= _line_height(self.fpr * less, low)
        rates = self.out_in * less - self.missing, self.out_out * more + self.missing
        near_end = rates[1] >= _line_height(rates[0], high)
        last = (self.out_out == 0) & (self.out_in == 0)  # always "in"
        return np.asarray(np.where(self.fpr + self.tpr <= 1, near_start, near_end) & ~last)

    def bound(self) -> list[tuple[Fraction, Fraction]]:
        """Corners of a curve that is nowhere below the true one.

        The order of floats costs the best test for each slope at most a share of its rates, so it
        is below the hull of all tests with less FPR and more TPR. The same holds for rates of
        "out", from (1, 1) back.
        """
        less, more = 1 - exact_fraction(self.rounding), 1 + exact_fraction(self.rounding)
        missing = exact_fraction(self.missing)
        start = {
            (exact_fraction(x) * less, exact_fraction(y) * more)
            for x, y in zip(*self[1:3], strict=True)
        }
        end = {
            (
                max(exact_fraction(u) * less - missing, Fraction(0)),
                exact_fraction(v) * more + missing,
            )
            for v, u in zip(*self[3:5], strict=True)
        }
        ends = (Fraction(0), Fraction(0)), (less, more)
        first = upper_hull(start | {*ends})
        second = [(1 - v, 1 - u) for u, v in reversed(upper_hull(end | {*ends}))]
        return lower_envelope(first, second)


def _pairs_near_curve(likelihoods: Array, top: Array, bottom: Array, missing: float) -> _Cuts:
    """The tests on the curve, and all others that are not surely below it.

    A first look at some pairs leaves few tests of the others above their curve.
    """
    diagonal = np.array([0.0, 1.0]), np.array([0.0, 1.0])
    low = high = diagonal
    rounding = ROUNDING_COUNT * (likelihoods.shape[1] + 4) * float(np.finfo(float).eps)
    kept, lifted, start, end = [], [], 0, FIRST_PAIRS
    while start < len(top):
        p, q = likelihoods[top[start:end]], likelihoods[bottom[start:end]]
        cuts, blocks = _best_tests(start, p, q, rounding, missing)
        cuts = cuts.taken(cuts.may_reach(low, high))
        kept.append(cuts)
        lifted.append(blocks.taken(blocks.may_reach(low, high)))
        low, high = cuts.lines(low, high)
        start, end = end, end + max(1, PAIR_BLOCK_ENTRIES // likelihoods.shape[1])
    together = reduce(_Cuts.joined, [*kept, *lifted])
    return together.taken(together.may_reach(low, high))


def _best_tests(
    start: int, p: Array, q: Array, rounding: float, missing: float
) -> tuple[_Cuts, _Cuts]:
    """The best tests of each pair; and for outputs that are as telling as floats can say, and lead
    from rates near 0 to rates near 1, a point above whatever order they are taken in."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.where(p + q > 0, p / q, -1.0)
    order = np.argsort(-ratios, axis=1)
    p, q, ratios = (np.take_along_axis(each, order, 1) for each in (p, q, ratios))
    before = [np.cumsum(side, axis=1) for side in (q, p)]
    after = [np.cumsum(side[:, ::-1], axis=1)[:, ::-1] for side in (q, p)]
    rest = [np.append(side[:, 1:], np.zeros((len(side), 1)), axis=1) for side in after]
    pairs = np.repeat(np.arange(start, start + len(p)), p.shape[1])
    (x, y), (v, u) = ([side.ravel() for side in sides] for sides in (before, rest))
    every = _Cuts(pairs, x, y, v, u, rounding, missing)
    # The first output that leads beyond the middle, and those with about its ratio.
    rows = np.arange(len(p))
    middle = np.minimum((before[0] + before[1] <= 1).sum(axis=1), p.shape[1] - 1)
    centre = ratios[rows, middle]
    with np.errstate(invalid="ignore"):
        alike = np.abs(ratios - centre[:, None]) <= 8 * rounding * centre[:, None]
    several = np.flatnonzero((alike.sum(axis=1) > 1) & (centre > 0) & np.isfinite(centre))
    first = alike.argmax(axis=1)[several]
    last = p.shape[1] - 1 - alike[:, ::-1].argmax(axis=1)[several]
    ends = [
        (side[several, last], side[several, first] - own[several, first])
        for side, own in zip(before, (q, p), strict=True)
    ]
    backs = [
        (side[several, last], full[several, first]) for side, full in zip(rest, after, strict=True)
    ]
    fpr, tpr, out_out, out_in = ((one + two) / 2 for one, two in (*ends, *backs))
    lift = 16 * rounding * (ends[1][0] - ends[1][1])
    return every, _Cuts(
        several + start, fpr, tpr + lift, out_out, np.maximum(out_in - lift, 0), rounding, missing
    )


def _float_hull(x: Array, y: Array) -> _Line:
    """Corners of about the least concave line above points, in floats: it is on or below that line,
    since each of its corners is one of the points."""
    points = np.unique(np.stack([x, y], axis=1), axis=0)
    highest = np.append(np.diff(points[:, 0]) > 0, True)  # of each FPR
    found = np.array(upper_hull(map(tuple, points[highest].tolist())), dtype=points.dtype)
    return found[:, 0], found[:, 1]


def _line_height(x: Array, line: _Line) -> Array:
    """How high a line is; nothing is known before its first corner."""
    xs, ys = line
    after = np.clip(np.searchsorted(xs, x, side="right"), 1, len(xs) - 1)
    share = (x - xs[after - 1]) / (xs[after] - xs[after - 1])
    height = ys[after - 1] + (ys[after] - ys[after - 1]) * np.minimum(share, 1)
    return np.asarray(np.where(x < xs[0], -1.0, height))


def _distinct_pairs(channel: Channel, top: Array, bottom: Array, near: Array) -> list[list[int]]:
    """Pairs by kind: the same entries in another order have the same curve."""
    numbers: dict[Any, int] = {}
    seen: dict[tuple[Any, ...], list[int]] = {}
    codes: dict[int, list[int]] = {}
    for pair in near:
        rows = []
        for world in (int(top[pair]), int(bottom[pair])):
            if world not in codes:
                row = _exact_row(channel, world)
                codes[world] = [numbers.setdefault(entry, len(numbers)) for entry in row]
            rows.append(codes[world])
        seen.setdefault(tuple(sorted(zip(*rows, strict=True))), []).append(int(pair))
    return list(seen.values())


# The curves of noise that is added to a statistic, and of processes.
#
# Noise that moves further is easier to tell apart, so the largest move between neighbours decides.
# Laplace and Gaussian noise have curves in closed form, geometric noise has corners.

LOSS_ROUNDING = 1e-12
"""More than what floats round in a distribution of losses."""
CURVE_POINTS = 257


@dataclass(frozen=True)
class LaplaceCurve(TradeOff):
    """Laplace noise of scale 1/level between answers that differ by 1: δ(x) = 1 − e^((x − level)/2)
    between −level and level."""

    level: Fraction
    exact: bool = True

    def tpr(self, fpr: object) -> float:
        alpha, ratio = probability(fpr, "fpr"), exp_up(self.level)
        if 2 * alpha >= 1:
            return round_up(1 - (1 - alpha) / ratio)
        if 2 * alpha * ratio <= 1:
            return round_up(ratio * alpha)
        return round_up(1 - 1 / (4 * alpha * ratio))

    def delta(self, epsilon: object) -> float:
        asked = rational(epsilon, "epsilon")
        if asked >= self.level:
            return 0.0
        below = asked if asked <= -self.level else (asked - self.level) / 2
        return round_up(1 - 1 / exp_up(-below))


@dataclass(frozen=True)
class NormalCurve(TradeOff):
    """Gaussian noise of standard deviation σ between answers that differ by 1:
    TPR = Φ(Φ⁻¹(FPR) + 1/σ). What is said was certified in balls, at the best ε that was found."""

    multiplier: float
    exact: bool = True

    def tpr(self, fpr: object) -> float:
        alpha = probability(fpr, "fpr")
        if alpha in (0, 1):
            return float(alpha)
        profile, shift = gaussian_profile(self.multiplier), 1 / self.multiplier
        reach = shift**2 / 2 + shift * (1 + math.sqrt(2 * max(0.0, -math.log(float(alpha)))))
        low, high = -reach - shift * 8, reach
        for _ in range(3):
            epsilons = np.linspace(low, high, CURVE_POINTS)
            with np.errstate(over="ignore"):
                rates = np.exp(epsilons) * float(alpha) + profile(epsilons)
            best = int(np.argmin(rates))
            low, high = epsilons[max(best - 1, 0)], epsilons[min(best + 1, CURVE_POINTS - 1)]
        at = exact_fraction(epsilons[best])
        rate = exp_up(at) * alpha + gaussian_delta(self.multiplier, at)
        return min(1.0, round_up(rate))

    def delta(self, epsilon: object) -> float:
        return min(1.0, round_up(gaussian_delta(self.multiplier, rational(epsilon, "epsilon"))))


@dataclass(frozen=True)
class LossCurve(TradeOff):
    """What a distribution of privacy losses allows, rounded to the safe side."""

    losses: LossDistribution
    exact: bool = False

    def tpr(self, fpr: object) -> float:
        alpha = float(probability(fpr, "fpr"))
        x, y = self.losses.corners()
        rate = float(np.interp(alpha, np.append(x, 1.0), np.append(y, 1.0)))
        return min(1.0, rate + LOSS_ROUNDING)

    def delta(self, epsilon: object) -> float:
        at = np.array([float(rational(epsilon, "epsilon"))])
        return min(1.0, float(self.losses.delta(at)[0]) + LOSS_ROUNDING)


def pure_curve(
    ratio: Fraction,
    delta: Fraction = Fraction(0),
    *,
    exact: bool = False,
    relation: str | None = None,
    attained_by: Iterable[ComparedWorlds] = (),
) -> CornerCurve:
    """What (ln ratio, δ)-DP in both directions allows (see `CornerCurve`)."""
    corners = best_tests(ratio, delta)
    return CornerCurve(corners, exact=exact, relation=relation, attained_by=attained_by)


def laplace_curve(mechanism: AdditiveNoise, space: Space, relation: str) -> TradeOff:
    moves = _statistic_moves(mechanism.statistic, space, relation)
    level = max(sum(map(abs, move)) for move in moves) / rational(mechanism.scale)
    check_nats(level)
    if _several_move(moves):
        return pure_curve(exp_up(level), relation=relation)
    return LaplaceCurve(level)


def gaussian_curve(mechanism: AdditiveNoise, space: Space, relation: str) -> TradeOff:
    """The curve of Gaussian noise on a statistic: a move in several directions counts by its
    length."""
    moves = _statistic_moves(mechanism.statistic, space, relation)
    square = max(sum(each * each for each in move) for move in moves)
    if not square:
        return pure_curve(Fraction(1), exact=True, relation=relation, attained_by=_all_pairs(moves))
    check_nats(square / rational(mechanism.scale) ** 2)
    sigma = float(rational(mechanism.scale)) / math.sqrt(square)
    return NormalCurve(sigma * (1 - 2**-50), exact=False)


def geometric_curve(mechanism: Geometric, space: Space, relation: str) -> TradeOff:
    """The curve of geometric noise on a statistic: outputs between the two answers, and beyond
    each."""
    statistic = read_statistic(mechanism.statistic)
    check_whole(statistic, statistic_centres(statistic, space))
    moves = _statistic_moves(mechanism.statistic, space, relation)
    largest = max(sum(map(abs, move)) for move in moves)
    if mechanism.alpha is not None:
        alpha = rational(mechanism.alpha)
    else:
        check_nats(largest / rational(mechanism.scale))
        alpha = 1 / exp_up(1 / rational(mechanism.scale))  # from below: less noise
    if _several_move(moves):
        return pure_curve(alpha ** -int(largest), relation=relation)
    attained = _all_pairs(
        {move: pairs for move, pairs in moves.items() if sum(map(abs, move)) == largest}
    )
    d, beyond, within = int(largest), 1 / (1 + alpha), (1 - alpha) / (1 + alpha)
    if d == 0:
        return pure_curve(Fraction(1), exact=True, relation=relation, attained_by=attained)
    outputs = [(beyond, beyond * alpha**d), (beyond * alpha**d, beyond)]
    outputs += [(within * alpha ** (d - j), within * alpha**j) for j in range(1, d)]
    return CornerCurve(
        ordered_corners(outputs),
        exact=mechanism.alpha is not None,
        relation=relation,
        attained_by=attained,
    )


Moves = dict[tuple[Fraction, ...], list[ComparedWorlds]]


def _statistic_moves(statistic: object, space: Space, relation: str) -> Moves:
    """How a statistic moves between neighbours, in each direction, and between which."""
    known = read_statistic(statistic)
    centres, lattice = statistic_centres(known, space), statistic_lattice(known, space)
    ends = neighbouring_rows(space, lattice, relation)
    result: Moves = {}
    for one, two in set(zip(*(side.tolist() for side in ends), strict=True)):
        move = tuple(a - b for a, b in zip(centres[one], centres[two], strict=True))
        result.setdefault(move, []).append(world_pair(space, lattice, one, two))
    return result


def _several_move(moves: Moves) -> bool:
    """Whether several numbers move at once: then ε is all that is said."""
    return max(sum(map(bool, move)) for move in moves) > 1


def _all_pairs(moves: Moves) -> list[ComparedWorlds]:
    return [pair for pairs in moves.values() for pair in pairs]
