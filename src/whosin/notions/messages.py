"""Messages between rows: options of known rows with their likelihoods, and the noise on sums."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

from whosin.errors import Unsupported
from whosin.exact import Array
from whosin.mechanisms import Composed, Geometric, Laplace
from whosin.mechanisms.additive_noise import check_whole
from whosin.notions.bayesian_privacy import common_step, decay_rate
from whosin.spaces import Records, WorldFunction, read_statistic

MAX_MESSAGE_ENTRIES = 3_000_000
"""Numbers in the options of one message."""
MIN_WEIGHT = 1e-100
"""Weights of options below it are refused: products of them would leave the floats."""
MAX_FALL = 400.0
"""The largest −ln of a density within the range of the sums, the scale of its maximum being 0."""
MERGE_BITS = 42
"""Options that agree in so many bits are one."""


@dataclass(frozen=True)
class NoisySums:
    """Sums over rows, row by row, and the noise of every release of each.

    Attributes:
        weights: rows × values × sums, whole steps from the row's least.
        rates: for each sum, by how much the logarithm of the density falls a step, one a release.
        step: the steps, and `offset`, what all rows at their least add up to.
        order: which release of which sum each coordinate of the output is.
    """

    weights: Array
    rates: tuple[tuple[float, ...], ...]
    step: tuple[Fraction, ...]
    offset: tuple[Fraction, ...]
    order: tuple[tuple[int, int], ...]


def noisy_sums(mechanism: object, space: Records) -> NoisySums | None:
    """The mechanism as noise on sums over rows; nothing where it is something else. Releases of
    the same sum share it."""
    parts = list(mechanism.parts) if isinstance(mechanism, Composed) else [mechanism]
    columns: dict[tuple[tuple[Fraction, ...], ...], list[float]] = {}
    placed: list[tuple[tuple[tuple[Fraction, ...], ...], int]] = []
    for part in parts:
        if not isinstance(part, Laplace | Geometric):
            return None
        statistic = read_statistic(part.statistic)
        if isinstance(statistic, WorldFunction):
            return None
        rows = statistic.row_weights(space)
        if isinstance(part, Geometric):
            for weights in rows:
                check_whole(statistic, weights)
        for axis in range(len(rows[0][0])):
            key = tuple(tuple(value[axis] for value in row) for row in rows)
            rates = columns.setdefault(key, [])
            placed.append((key, len(rates)))
            rates.append(float(decay_rate(part)))
    numbers = {key: number for number, key in enumerate(columns)}
    result, rates_, steps, offsets = [], [], [], []
    for key, rates in columns.items():
        least = [min(row) for row in key]
        moved = [[value - low for value in row] for row, low in zip(key, least, strict=True)]
        step = common_step([value for row in moved for value in row])
        result.append([[int(value / step) for value in row] for row in moved])
        rates_.append(tuple(rate * float(step) for rate in rates))
        steps.append(step)
        offsets.append(sum(least, Fraction(0)))
    order = tuple((numbers[key], release) for key, release in placed)
    weights_ = np.moveaxis(np.array(result), 0, -1)
    return NoisySums(weights_, tuple(rates_), tuple(steps), tuple(offsets), order)


class OutOfRoom(Exception):
    """A message would have too many options."""


@dataclass(eq=False)
class Message:
    """What lies behind some rows: one option for each choice of known rows and their values.

    Attributes:
        weight: D, options × values of each row of the scope.
        spread: N, the same × sums of the unknown rows.
        touches: for each option, which rows of the scope each connected part of its unknown rows is
            next to, as positions in the scope.
        origin: for each option the value that the eliminated row is known to have (None: unknown)
            and the option of each message that went in.
        slack: for each option by how much more could leak, in nats, had nothing been cut off.
    """

    weight: Array
    spread: Array
    touches: list[tuple[frozenset[int], ...]]
    origin: Sequence[tuple[int | None, tuple[int, ...]]]
    slack: Array

    def take(self, kept: Sequence[int]) -> Message:
        listed = list(kept)
        return Message(
            self.weight[listed],
            self.spread[listed],
            [self.touches[n] for n in listed],
            [self.origin[n] for n in listed],
            self.slack[listed],
        )


def merge_equal(message: Message) -> Message:
    """Scale the options, leave out impossible ones, and keep one of those that are equal."""
    axes = tuple(range(1, message.weight.ndim))
    most = message.weight.max(axis=axes) if axes else message.weight
    message = message.take(np.flatnonzero(most > 0).tolist())
    count = len(message.touches)
    if not count:
        return message
    weight, spread = message.weight, message.spread
    top = weight.reshape(count, -1).max(axis=1)
    weight = weight / top.reshape(-1, *[1] * (weight.ndim - 1))
    if weight[weight > 0].min() < MIN_WEIGHT:
        raise Unsupported(
            "the prior has combinations of values whose probabilities are too far apart for the "
            "leakage to be computed",
            field="prior",
            hint="give them more probability, or none",
        )
    top = spread.reshape(count, -1).max(axis=1)
    spread = spread / top.reshape(-1, *[1] * (spread.ndim - 1))
    keys: dict[tuple[Any, bytes, bytes], int] = {}
    rounded = [_round_bits(weight), _round_bits(spread)]
    slack = message.slack.copy()
    for number in range(count):
        key = (message.touches[number], rounded[0][number].tobytes(), rounded[1][number].tobytes())
        first = keys.setdefault(key, number)
        slack[first] = max(slack[first], slack[number])
    scaled = replace(message, weight=weight, spread=spread, slack=slack)
    return scaled.take(list(keys.values()))


def _round_bits(array: Array) -> Array:
    mantissa, exponent = np.frexp(array)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, MERGE_BITS)), exponent - MERGE_BITS))


def convolve_sums(one: Array, two: Array, sums: int) -> Array:
    """The distribution of the sum of two independent sums, over the last axes; others broadcast."""
    if math.prod(one.shape[one.ndim - sums :]) > math.prod(two.shape[two.ndim - sums :]):
        one, two = two, one
    short, long = one.shape[one.ndim - sums :], two.shape[two.ndim - sums :]
    lead = np.broadcast_shapes(one.shape[: one.ndim - sums], two.shape[: two.ndim - sums])
    size = tuple(a + b - 1 for a, b in zip(short, long, strict=True))
    result = np.zeros((*lead, *size), dtype=np.result_type(one, two))
    for cell in np.ndindex(*short):
        factor = one[(..., *cell)]
        if factor.any():
            at: Any = (..., *(slice(c, c + n) for c, n in zip(cell, long, strict=True)))
            result[at] += factor[(..., *[None] * sums)] * two
    return result


def align_axes(table: Array, scope: Sequence[int], axes: Sequence[int]) -> Array:
    """A table over some rows with the axes of more rows, to be broadcast; further axes follow."""
    order = sorted(range(len(scope)), key=lambda n: axes.index(scope[n]))
    order += range(len(scope), table.ndim)
    return table.transpose(order)[tuple(slice(None) if r in scope else None for r in axes)]


Cliques = dict[int, tuple[tuple[int, ...], Array]]
"""For each row the rows that it was eliminated with, itself first, in the order of elimination, and
which of their values are possible together."""
MAX_CLIQUE_ENTRIES = 1 << 24


def list_possible(factors: Sequence[tuple[tuple[int, ...], Array]], values: int) -> Cliques | None:
    """What is possible for neighbouring rows, by elimination and back; nothing where there is no
    room."""
    active: dict[int, set[int]] = {}
    for scope, _ in factors:
        for row in scope:
            active.setdefault(row, set()).update(scope)
    tables, cliques = [(scope, table > 0) for scope, table in factors], Cliques()
    while active:
        out = min(active, key=lambda row: (len(active[row]), row))
        around = active.pop(out) - {out}
        if values ** (1 + len(around)) > MAX_CLIQUE_ENTRIES:
            return None
        for row in around:
            active[row] = (active[row] | around) - {out}
        scope = out, *sorted(around)
        joint = np.ones((values,) * len(scope), dtype=bool)
        for rows, table in tables:
            if out in rows:
                joint &= align_axes(table, rows, scope)
        tables = [each for each in tables if out not in each[0]]
        tables.append((scope[1:], np.asarray(joint.any(axis=0))))
        cliques[out] = scope, joint
    for row in reversed(cliques):
        scope, joint = cliques[row]
        cliques[row] = scope, joint & show_possible(cliques, scope[1:])
    return cliques


def show_possible(cliques: Cliques, rows: tuple[int, ...]) -> Array:
    """Which values of rows that are neighbours of each other are possible together."""
    if not rows:
        return np.ones((), dtype=bool)
    first = next(row for row in cliques if row in rows)
    scope, table = cliques[first]
    kept = [row for row in scope if row in rows]
    others = tuple(n for n, row in enumerate(scope) if row not in rows)
    shown = np.asarray(table.any(axis=others))
    return align_axes(shown, kept, rows)


def find_width(neighbours: Sequence[set[int]], region: Iterable[int]) -> int:
    """The tree-width of some rows, or somewhat more."""
    width, active = 0, {each: set(neighbours[each]) for each in region}
    while active:
        out = min(active, key=lambda n: (len(active[n]), n))
        around = active.pop(out)
        width = max(width, len(around))
        for each in around:
            active[each] = (active[each] | around) - {each, out}
    return width


def step_diameter(table: Array) -> float:
    """The logarithm of the largest cross-ratio of a table over two rows (Birkhoff's Δ)."""
    logs = np.log(table[(table > 0).all(axis=1)])
    cross = logs[:, None, :, None] + logs[None, :, None, :]
    return float((cross - cross.transpose(0, 1, 3, 2)).max())


def mark_options(message: Message) -> Message:
    origin = [(None, (n,)) for n in range(len(message.touches))]
    return replace(message, origin=list(origin))


def join_options(parts: Sequence[Message], sums: int) -> Message:
    """The options of several messages with one scope; shorter ranges of sums are filled with 0."""
    lead = parts[0].spread.ndim - sums
    size = [max(part.spread.shape[lead + n] for part in parts) for n in range(sums)]
    spreads = []
    for part in parts:
        more = [(0, 0)] * lead + [(0, n - part.spread.shape[lead + k]) for k, n in enumerate(size)]
        spreads.append(np.pad(part.spread, more))
    return Message(
        np.concatenate([part.weight for part in parts]),
        np.concatenate(spreads),
        [touch for part in parts for touch in part.touches],
        [origin for part in parts for origin in part.origin],
        np.concatenate([part.slack for part in parts]),
    )


def output_points(releases: int, size: int, alike: bool) -> list[tuple[int, ...]]:
    """The deciding outputs of the releases of one sum (F10), in one order where they are alike."""
    if releases * math.log(size) > math.log(MAX_MESSAGE_ENTRIES):
        raise OutOfRoom
    if alike:
        return list(combinations_with_replacement(range(size), releases))
    return list(product(range(size), repeat=releases))


def noise_kernel(rates: tuple[float, ...], size: int) -> Array:
    """The density of the releases at each deciding output, by the sum: outputs × sums."""
    if sum(rates) * (size - 1) > MAX_FALL:
        raise OutOfRoom
    points = np.array(output_points(len(rates), size, len(set(rates)) == 1))
    apart = np.abs(points[:, :, None] - np.arange(size)[None, None])
    return np.asarray(np.exp(-(apart * np.array(rates)[None, :, None]).sum(axis=1)))


def add_noise(sums: Array, rates: Sequence[tuple[float, ...]]) -> Array:
    """The densities at the deciding outputs (one axis) of distributions of sums (the last axes)."""
    lead = sums.ndim - len(rates)
    for axis, each in enumerate(rates, start=lead):
        kernel = noise_kernel(each, sums.shape[axis])
        sums = np.moveaxis(np.tensordot(sums, kernel, axes=(axis, 1)), -1, axis)
    return sums.reshape(*sums.shape[:lead], -1)
