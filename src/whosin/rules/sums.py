"""What sums of unknown counts say of each of them (F23).

Contract: groups of people who are alike, independent of each other, and what is shown of some sums
of their counts. The counts that fit are summed over by eliminating one variable after another, so
that the work grows with how the sums are entangled and not with the number of tables that fit. In
whole numbers where that is little work, else in floats; where both would not fit, bounds that hold
for every table that fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.rules.elimination import Lines, Weighted, eliminate, marginals, supports

EXACT_LINES = 300_000
"""Lines of all tables together up to which sums are in whole numbers."""
MOST_LINES = 3_000_000
"""Lines that one table may have."""
WIDEST = 3_000
"""Counts that one group may have, beyond which weights are floats."""
MOST_COUNTS = 200_000
MOST_BITS = 4_000
"""Bits of an exact result: nobody reads longer ones, which become floats."""

Likely = Mapping[int, Fraction]


@dataclass(frozen=True)
class AlikePeople:
    """People who are alike: how many, and how sure one is of each, apart from those known to be
    in."""

    size: int
    belief: Fraction
    known_in: int = 0


@dataclass(frozen=True)
class ShownSum:
    """What is shown of the sum of some groups: how likely that is for each sum that fits."""

    groups: tuple[int, ...]
    likely: Likely
    where: str = "published"


@dataclass(frozen=True)
class Inferred:
    """A group's count after everything was seen.

    Attributes:
        low, high: the least and the largest count that fits.
        mean: its expectation; None where it did not fit into memory.
        exact: whether the mean is exact; otherwise it is a float, right to some ten digits.
    """

    low: int
    high: int
    mean: Fraction | float | None
    exact: bool


def infer(
    groups: Sequence[AlikePeople], seen: Iterable[ShownSum], share: int = 1
) -> list[Inferred]:
    """The count of each group, given all that was seen.

    Args:
        share: by what the most lines of a table are divided, for bounds after less work.

    Raises:
        InvalidInput: nothing fits.
    """
    all_seen = [each for each in seen if each.groups]
    ends = count_ends(groups, all_seen)
    alone: dict[int, list[Likely]] = {}
    tied: list[tuple[tuple[int, ...], Likely]] = []
    for each in all_seen:
        fixed = sum(ends[g][0] for g in each.groups if ends[g][0] == ends[g][1])
        free = tuple(g for g in each.groups if ends[g][0] < ends[g][1])
        likely = {total - fixed: weight for total, weight in each.likely.items() if weight}
        if len(free) > 1:
            tied.append((free, likely))
        elif free:
            alone.setdefault(free[0], []).append(likely)
        elif 0 not in likely:
            raise _contradiction(each.where)
    result: list[Inferred | None] = [None] * len(groups)
    for members, sums in _components(len(groups), _without_repetitions(tied)):
        if not sums and members[0] not in alone:
            (g,) = members
            rest = groups[g].size - groups[g].known_in
            mean = ends[g][0] if ends[g][0] == ends[g][1] else rest * groups[g].belief
            mean += 0 if ends[g][0] == ends[g][1] else groups[g].known_in
            result[g] = Inferred(*ends[g], Fraction(mean), True)
            continue
        weights = {g: count_weights(groups[g], *ends[g], alone.get(g, [])) for g in members}
        for g, inferred in zip(
            members, _component(members, sums, ends, weights, share), strict=True
        ):
            result[g] = inferred
    return [each for each in result if each is not None]


def count_ends(groups: Sequence[AlikePeople], seen: Sequence[ShownSum]) -> list[tuple[int, int]]:
    """The least and the largest count of each group that the sums leave, one by one."""
    low, high = [], []
    for group in groups:
        rest = group.size - group.known_in
        low.append(group.known_in + (rest if group.belief == 1 else 0))
        high.append(group.known_in + (0 if group.belief == 0 else rest))
    spans = [(each.groups, min(each.likely), max(each.likely), each.where) for each in seen]
    users: list[list[int]] = [[] for _ in groups]
    for number, (members, *_) in enumerate(spans):
        for g in members:
            users[g].append(number)
    waiting, rounds = dict.fromkeys(range(len(spans))), 0
    while waiting and rounds < 50 * (len(spans) + 1):
        rounds += 1
        number = next(iter(waiting))
        del waiting[number]
        members, least, most, where = spans[number]
        lows, highs = sum(low[g] for g in members), sum(high[g] for g in members)
        for g in members:
            upper, lower = most - (lows - low[g]), least - (highs - high[g])
            if upper < high[g] or lower > low[g]:
                lows, highs = lows - low[g], highs - high[g]
                low[g], high[g] = max(low[g], lower), min(high[g], upper)
                lows, highs = lows + low[g], highs + high[g]
                waiting |= dict.fromkeys(users[g])
            if low[g] > high[g]:
                raise _contradiction(where)
    return list(zip(low, high, strict=True))


def _contradiction(where: str = "published") -> InvalidInput:
    return InvalidInput(where, "what some counts fit, with all the others", "a contradiction")


def count_weights(group: AlikePeople, low: int, high: int, sums: Sequence[Likely]) -> Array | None:
    """How likely the counts are, up to a factor: whole numbers, or logarithms where there are many;
    None where there are too many."""
    size, start, wide = group.size - group.known_in, low - group.known_in, high - low
    if wide > MOST_COUNTS:
        return None
    inside, outside = group.belief.numerator, group.belief.denominator - group.belief.numerator
    if not wide:
        weights: Array = np.array([1], dtype=object)
    elif wide > WIDEST:
        counts = np.arange(start, start + wide + 1)
        weights = np.array([_log_binomial(size, int(count)) for count in counts])
        weights += counts * math.log(inside) + (size - counts) * math.log(outside)
    else:
        weights, ways = np.empty(wide + 1, dtype=object), math.comb(size, start)
        for step in range(wide + 1):
            weights[step] = ways * inside**step * outside ** (wide - step)
            ways = ways * (size - start - step) // (start + step + 1)
        weights = weights // math.gcd(*weights)
    for likely in sums:
        factors = [likely.get(count, Fraction(0)) for count in range(low, high + 1)]
        if weights.dtype == object:
            weights = weights * whole_weights(factors)
        else:
            weights = weights + [math.log(p) if p else -math.inf for p in factors]
    if not _possible(weights).any():
        raise _contradiction()
    return weights


def _possible(weights: Array) -> npt.NDArray[np.bool_]:
    return weights != 0 if weights.dtype == object else np.isfinite(weights)


def _log_binomial(size: int, count: int) -> float:
    return math.lgamma(size + 1) - math.lgamma(count + 1) - math.lgamma(size - count + 1)


def whole_weights(values: Sequence[Fraction]) -> Array:
    """Weights as whole numbers, by a factor that all share."""
    scale = math.lcm(*(Fraction(value).denominator for value in values))
    return np.array([int(value * scale) for value in values], dtype=object)


def _without_repetitions(
    sums: list[tuple[tuple[int, ...], Likely]],
) -> list[tuple[tuple[int, ...], Likely]]:
    """The sums without those that exact sums of their parts already say (a total of totals)."""
    exact = [(set(members), next(iter(known))) for members, known in sums if len(known) == 1]
    result = []
    for members, likely in sums:
        rest, total = set(members), 0
        for part, known in exact:
            if part <= rest and len(part) < len(members):
                rest, total = rest - part, total + known
        if rest:
            result.append((members, likely))
        elif total not in likely:
            raise _contradiction()
    return result


def _components(
    count: int, sums: Sequence[tuple[tuple[int, ...], Likely]]
) -> list[tuple[list[int], list[tuple[tuple[int, ...], Likely]]]]:
    """Groups that some sum ties together, each with its sums."""
    parent = list(range(count))

    def root(g: int) -> int:
        while parent[g] != g:
            parent[g] = parent[parent[g]]
            g = parent[g]
        return g

    for members, _ in sums:
        for g in members[1:]:
            parent[root(g)] = root(members[0])
    groups: dict[int, list[int]] = {}
    for g in range(count):
        groups.setdefault(root(g), []).append(g)
    tied: dict[int, list[tuple[tuple[int, ...], Likely]]] = {}
    for each in sums:
        tied.setdefault(root(each[0][0]), []).append(each)
    return [(members, tied.get(key, [])) for key, members in groups.items()]


def _component(
    members: list[int],
    sums: list[tuple[tuple[int, ...], Likely]],
    ends: list[tuple[int, int]],
    given: Mapping[int, Array | None],
    share: int,
) -> list[Inferred]:
    weights = {g: table for g, table in given.items() if table is not None}
    bounds = [Inferred(*ends[g], None, False) for g in members]
    if len(weights) < len(members):
        return bounds
    fit = {g: _possible(weights[g]) for g in members}
    values = {g: ends[g][0] + np.flatnonzero(fit[g]) for g in members}
    tables = [Weighted((g,), values[g][:, None], weights[g][fit[g]]) for g in members]
    partial = -1  # names of partial sums, which are no group
    for groups, likely in sums:
        made = _tables(groups, likely, values, partial)
        if made is None:
            return bounds
        tables += made
        partial -= len(groups)
    product = eliminate(tables, MOST_LINES // share)
    if product is None:
        return bounds
    exact = product.lines <= EXACT_LINES and all(each.weights.dtype == object for each in tables)
    shares, fits = marginals(product, exact), supports(product)
    if any(g not in fits for g in members):
        raise _contradiction()
    return [_inferred(shares[g], fits[g], exact) for g in members]


def _tables(
    groups: tuple[int, ...], likely: Likely, values: Mapping[int, Lines], partial: int
) -> list[Weighted] | None:
    """What is shown of a sum, as a chain of tables: the sum so far, the next count, the new sum."""
    least, most = min(likely), max(likely)
    low = sum(int(values[g].min()) for g in groups)
    high = sum(int(values[g].max()) for g in groups)
    name, so_far, result = groups[0], values[groups[0]], []
    low, high = low - int(so_far.min()), high - int(so_far.max())
    for step, g in enumerate(groups[1:], start=1):
        low, high = low - int(values[g].min()), high - int(values[g].max())
        if step == len(groups) - 1:
            last = _last(so_far, values[g], likely)
            if last is None:
                return None
            result.append(Weighted((name, g), *last))
            break
        if len(so_far) * len(values[g]) > MOST_LINES:
            return None
        lines = np.stack(np.meshgrid(so_far, values[g], indexing="ij"), axis=-1).reshape(-1, 2)
        totals = lines.sum(axis=1)
        fits = (totals + high >= least) & (totals + low <= most)
        lines = np.hstack([lines, totals[:, None]])[fits]
        ones = np.ones(len(lines), dtype=object)
        result.append(Weighted((name, g, partial), lines, ones))
        name, so_far, partial = partial, np.unique(totals[fits]), partial - 1
    if not all(len(each.lines) for each in result):
        raise _contradiction()
    return result


def _last(one: Lines, other: Lines, likely: Likely) -> tuple[Lines, Array] | None:
    """The pairs whose sum is likely, with how likely it is; None where there are too many."""
    if len(one) * len(likely) > MOST_LINES:
        return None
    totals = np.fromiter(likely, np.int64)
    left, kinds = np.repeat(one, len(totals)), np.tile(np.arange(len(totals)), len(one))
    right = totals[kinds] - left
    fits = np.isin(right, other)
    weights = whole_weights(list(likely.values()))[kinds[fits]]
    return np.stack([left[fits], right[fits]], axis=1), weights


def _inferred(weights: Mapping[int, Any], fits: tuple[int, int], exact: bool) -> Inferred:
    top, total = sum(count * weight for count, weight in weights.items()), sum(weights.values())
    if not exact:
        return Inferred(*fits, float(top / total), False)
    mean = Fraction(int(top), int(total))
    if mean.denominator.bit_length() > MOST_BITS:
        return Inferred(*fits, float(mean), False)
    return Inferred(*fits, mean, True)
