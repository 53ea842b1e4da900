"""What sums of unknown counts say of each of them, by variable elimination (F23)."""

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

# Sums over products of tables, one variable after another, and the weights of every variable.
#
# A table lists the values of some variables that go together, with a weight above 0 for each line:
# whole numbers (then results are exact, up to a factor that all share), or floats, which are
# logarithms, since weights of large populations are too far apart for anything else. Going forward
# each variable is summed out of the product of the tables that have it; going back, each product is
# weighted by all the others. Only lines that fit are ever made, so that equations between the
# variables make tables smaller.

Lines = npt.NDArray[np.int64]
MAX_TABLE_CODE = 2**62


@dataclass(frozen=True)
class WeightedTable:
    """Values of some variables that go together: a line each, and its weight."""

    names: tuple[int, ...]
    lines: Lines
    weights: Array


@dataclass
class _Step:
    """One variable was summed out of the product of some tables.

    Attributes:
        parts: which tables: given ones, then the results of earlier steps.
        used: for each part, which of its lines is in each line of the product.
        result: which line of the result each line of the product went to.
    """

    variable: int
    values: Lines
    parts: list[int]
    used: list[Lines]
    result: Lines
    size: int


@dataclass(frozen=True)
class Elimination:
    """The lines of all products, without their weights, and how many there are."""

    given: Sequence[WeightedTable]
    steps: list[_Step]
    lines: int


def eliminate_variables(tables: Sequence[WeightedTable], most: int) -> Elimination | None:  # noqa: C901 (one elimination, step by step)
    """Sum out all variables, next always one whose product seems smallest; None where a product
    would have more lines than `most`, or all of them together more than twice as many."""
    names = [each.names for each in tables]
    lines = [each.lines for each in tables]
    sizes: dict[int, int] = {}
    users: dict[int, set[int]] = {}
    for number, each in enumerate(tables):
        for column, name in enumerate(each.names):
            users.setdefault(name, set()).add(number)
            sizes[name] = max(sizes.get(name, 1), len(np.unique(each.lines[:, column])))

    def expected(variable: int) -> float:
        """Lines of the product, were the tables independent of each other."""
        parts = users[variable]
        result = sum(math.log(max(1, len(lines[part]))) for part in parts)
        often: dict[int, int] = {}
        for part in parts:
            for name in names[part]:
                often[name] = often.get(name, 0) + 1
        return result - sum((n - 1) * math.log(sizes[name]) for name, n in often.items())

    steps, total = [], 0
    while users:
        variable = min(users, key=expected)
        parts = sorted(users.pop(variable), key=lambda part: len(lines[part]))
        scope, product, used = names[parts[0]], lines[parts[0]], [np.arange(len(lines[parts[0]]))]
        for part in parts[1:]:
            pairs = _matching_lines(scope, product, names[part], lines[part], most)
            if pairs is None:
                return None
            first, second = pairs
            fresh = [column for column, name in enumerate(names[part]) if name not in scope]
            product = np.hstack([product[first], lines[part][second][:, fresh]])
            scope += tuple(names[part][column] for column in fresh)
            used = [*(each[first] for each in used), second]
        total += len(product)
        if total > 2 * most:
            return None
        rest = [column for column, name in enumerate(scope) if name != variable]
        codes = _line_codes(product[:, rest])
        _, distinct, back = np.unique(codes, return_index=True, return_inverse=True)
        remaining = product[distinct][:, rest]
        values = product[:, scope.index(variable)]
        steps.append(_Step(variable, values, parts, used, back.reshape(-1), len(remaining)))
        for part in parts:
            for name in names[part]:
                if name != variable:
                    users[name].discard(part)
            lines[part] = lines[part][:0]
        names.append(tuple(scope[column] for column in rest))
        lines.append(remaining)
        for name in names[-1]:
            users[name].add(len(names) - 1)
    return Elimination(tables, steps, total)


def variable_supports(elimination: Elimination) -> dict[int, tuple[int, int]]:
    """For each variable the least and the largest of its values that fit, whatever the weights."""
    alive = [np.ones(len(each.lines), dtype=bool) for each in elimination.given]
    alive += [np.ones(step.size, dtype=bool) for step in elimination.steps]
    first, result = len(elimination.given), {}
    for number in reversed(range(len(elimination.steps))):
        step = elimination.steps[number]
        fits = alive[first + number][step.result]
        for part, used in zip(step.parts, step.used, strict=True):
            alive[part][:] = False
            alive[part][used[fits]] = True
        values = step.values[fits]
        if len(values):
            result[step.variable] = int(values.min()), int(values.max())
    return result


def variable_marginals(elimination: Elimination, exact: bool) -> dict[int, dict[int, Any]]:
    """For each variable its values with their weights, summed over all the others, each variable's
    up to a factor: whole numbers where exact, else floats of at most 1."""
    weights = [
        each.weights
        if exact or each.weights.dtype != object
        else np.array([math.log(int(weight)) for weight in each.weights])
        for each in elimination.given
    ]
    first = len(weights)
    products: list[Array] = []
    consumer: dict[int, int] = {}
    for number, step in enumerate(elimination.steps):
        product = _multiply_lines(
            *(weights[part][used] for part, used in zip(step.parts, step.used, strict=True))
        )
        consumer |= dict.fromkeys(step.parts, number)
        products.append(product)
        weights.append(_normalise_weights(_sum_by_position(product, step.result, step.size)))
    result: dict[int, dict[int, Any]] = {}
    for number in reversed(range(len(products))):
        step, own = elimination.steps[number], first + number
        if own in consumer:
            above = elimination.steps[consumer[own]]
            used = above.used[above.parts.index(own)]
            whole = _sum_by_position(products[consumer[own]], used, step.size)
            others = whole // weights[own] if exact else whole - weights[own]
            products[number] = _multiply_lines(
                products[number], _normalise_weights(others)[step.result]
            )
        values, positions = np.unique(step.values, return_inverse=True)
        sums = _sum_by_position(products[number], positions, len(values))
        sums = sums if exact else np.exp(_normalise_weights(sums))
        result[step.variable] = dict(zip(values.tolist(), list(sums), strict=True))
    return result


def _matching_lines(
    scope: tuple[int, ...], one: Lines, names: tuple[int, ...], other: Lines, most: int
) -> tuple[Lines, Lines] | None:
    """The pairs of lines that agree on what both have; None where there are too many."""
    shared = [name for name in scope if name in names]
    left = one[:, [scope.index(name) for name in shared]]
    right = other[:, [names.index(name) for name in shared]]
    codes = _line_codes(np.vstack([left, right]))
    left_codes, right_codes = codes[: len(one)], codes[len(one) :]
    order = np.argsort(right_codes, kind="stable")
    start = np.searchsorted(right_codes[order], left_codes, "left")
    counts = np.searchsorted(right_codes[order], left_codes, "right") - start
    total = int(counts.sum())
    if total > most:
        return None
    first = np.repeat(np.arange(len(one)), counts)
    offsets = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    return first, order[np.repeat(start, counts) + offsets]


def _line_codes(lines: Lines) -> Lines:
    """A number for each line, the same for equal lines."""
    result = np.zeros(len(lines), np.int64)
    if not lines.size:
        return result
    spans = (lines.max(axis=0) - lines.min(axis=0) + 1).tolist()
    if math.prod(spans) > MAX_TABLE_CODE:
        return np.unique(lines, axis=0, return_inverse=True)[1].reshape(-1)
    for column, (span, low) in enumerate(zip(spans, lines.min(axis=0), strict=True)):
        result = result * span + (lines[:, column] - low)
    return result


def _multiply_lines(*weights: Array) -> Array:
    """The product, line by line."""
    result = weights[0]
    for each in weights[1:]:
        result = result * each if each.dtype == object else result + each
    return result


def _sum_by_position(weights: Array, positions: Lines, size: int) -> Array:
    """Weights added up by position; a sum of nothing is 0, and its logarithm −∞."""
    if weights.dtype == object:
        result = np.zeros(size, dtype=object)
        np.add.at(result, positions, weights)
        return result
    most = np.full(size, -np.inf)
    np.maximum.at(most, positions, weights)
    base = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(
            base + np.log(np.bincount(positions, np.exp(weights - base[positions]), size))
        )


def _normalise_weights(weights: Array) -> Array:
    """The same weights, small: whole numbers without a common divisor, logarithms of at most 0."""
    if weights.dtype != object:
        return np.asarray(weights - weights.max()) if weights.size else weights
    common = math.gcd(*(int(each) for each in weights))
    return weights // common if common > 1 else weights


# What sums of unknown counts say of each of them (F23).
#
# Groups of people who are alike, independent of each other, and what is shown of some sums of their
# counts. The counts that fit are summed over by eliminating one variable after another, so that the
# work grows with how the sums are entangled and not with the number of tables that fit. In whole
# numbers where that is little work, else in floats; where both would not fit, bounds that hold for
# every table that fits.

MAX_EXACT_LINES = 300_000
"""Lines of all tables together up to which sums are in whole numbers."""
MAX_TABLE_LINES = 3_000_000
"""Lines that one table may have."""
MAX_EXACT_GROUP_COUNTS = 3_000
"""Counts that one group may have, beyond which weights are floats."""
MAX_SUMMED_COUNTS = 200_000
MAX_RESULT_BITS = 4_000
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
class InferredCount:
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


def infer_counts(
    groups: Sequence[AlikePeople], seen: Iterable[ShownSum], share: int = 1
) -> list[InferredCount]:
    """The count of each group, given all that was seen.

    Args:
        share: by what the most lines of a table are divided, for bounds after less work.
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
            raise _refuse_contradiction(each.where)
    result: list[InferredCount | None] = [None] * len(groups)
    for members, sums in _connected_groups(len(groups), _drop_implied_sums(tied)):
        if not sums and members[0] not in alone:
            (g,) = members
            rest = groups[g].size - groups[g].known_in
            mean = ends[g][0] if ends[g][0] == ends[g][1] else rest * groups[g].belief
            mean += 0 if ends[g][0] == ends[g][1] else groups[g].known_in
            result[g] = InferredCount(*ends[g], Fraction(mean), True)
            continue
        weights = {g: count_weights(groups[g], *ends[g], alone.get(g, [])) for g in members}
        for g, inferred in zip(
            members, _infer_component(members, sums, ends, weights, share), strict=True
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
                raise _refuse_contradiction(where)
    return list(zip(low, high, strict=True))


def _refuse_contradiction(where: str = "published") -> InvalidInput:
    return InvalidInput(
        f"{where} contradicts the other published numbers: no counts fit them all", field=where
    )


def count_weights(group: AlikePeople, low: int, high: int, sums: Sequence[Likely]) -> Array | None:
    """How likely the counts are, up to a factor: whole numbers, or logarithms where there are many;
    None where there are too many."""
    size, start, wide = group.size - group.known_in, low - group.known_in, high - low
    if wide > MAX_SUMMED_COUNTS:
        return None
    inside, outside = group.belief.numerator, group.belief.denominator - group.belief.numerator
    if not wide:
        weights: Array = np.array([1], dtype=object)
    elif wide > MAX_EXACT_GROUP_COUNTS:
        counts = np.arange(start, start + wide + 1)
        logs = [math.lgamma(k + 1) + math.lgamma(size - k + 1) for k in counts.tolist()]
        weights = math.lgamma(size + 1) - np.array(logs)
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
    if not _is_possible(weights).any():
        raise _refuse_contradiction()
    return weights


def _is_possible(weights: Array) -> npt.NDArray[np.bool_]:
    return weights != 0 if weights.dtype == object else np.isfinite(weights)


def whole_weights(values: Sequence[Fraction]) -> Array:
    """Weights as whole numbers, by a factor that all share."""
    scale = math.lcm(*(Fraction(value).denominator for value in values))
    return np.array([int(value * scale) for value in values], dtype=object)


def _drop_implied_sums(
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
            raise _refuse_contradiction()
    return result


def _connected_groups(
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


def _infer_component(
    members: list[int],
    sums: list[tuple[tuple[int, ...], Likely]],
    ends: list[tuple[int, int]],
    given: Mapping[int, Array | None],
    share: int,
) -> list[InferredCount]:
    weights = {g: table for g, table in given.items() if table is not None}
    bounds = [InferredCount(*ends[g], None, False) for g in members]
    if len(weights) < len(members):
        return bounds
    fit = {g: _is_possible(weights[g]) for g in members}
    values = {g: ends[g][0] + np.flatnonzero(fit[g]) for g in members}
    tables = [WeightedTable((g,), values[g][:, None], weights[g][fit[g]]) for g in members]
    partial = -1  # names of partial sums, which are no group
    for groups, likely in sums:
        made = _sum_tables(groups, likely, values, partial)
        if made is None:
            return bounds
        tables += made
        partial -= len(groups)
    product = eliminate_variables(tables, MAX_TABLE_LINES // share)
    if product is None:
        return bounds
    exact = product.lines <= MAX_EXACT_LINES and all(
        each.weights.dtype == object for each in tables
    )
    shares, fits = variable_marginals(product, exact), variable_supports(product)
    if any(g not in fits for g in members):
        raise _refuse_contradiction()
    result = []
    for g in members:
        top = sum(count * weight for count, weight in shares[g].items())
        total = sum(shares[g].values())
        if exact:
            result.append(exact_count(*fits[g], Fraction(int(top), int(total))))
        else:
            result.append(InferredCount(*fits[g], float(top / total), False))
    return result


def _sum_tables(
    groups: tuple[int, ...], likely: Likely, values: Mapping[int, Lines], partial: int
) -> list[WeightedTable] | None:
    """What is shown of a sum, as a chain of tables: the sum so far, the next count, the new sum."""
    least, most = min(likely), max(likely)
    low = sum(int(values[g].min()) for g in groups)
    high = sum(int(values[g].max()) for g in groups)
    name, so_far, result = groups[0], values[groups[0]], []
    low, high = low - int(so_far.min()), high - int(so_far.max())
    for step, g in enumerate(groups[1:], start=1):
        low, high = low - int(values[g].min()), high - int(values[g].max())
        if step == len(groups) - 1:
            last = _last_pairs(so_far, values[g], likely)
            if last is None:
                return None
            result.append(WeightedTable((name, g), *last))
            break
        if len(so_far) * len(values[g]) > MAX_TABLE_LINES:
            return None
        lines = np.stack(np.meshgrid(so_far, values[g], indexing="ij"), axis=-1).reshape(-1, 2)
        totals = lines.sum(axis=1)
        fits = (totals + high >= least) & (totals + low <= most)
        lines = np.hstack([lines, totals[:, None]])[fits]
        ones = np.ones(len(lines), dtype=object)
        result.append(WeightedTable((name, g, partial), lines, ones))
        name, so_far, partial = partial, np.unique(totals[fits]), partial - 1
    if not all(len(each.lines) for each in result):
        raise _refuse_contradiction()
    return result


def _last_pairs(one: Lines, other: Lines, likely: Likely) -> tuple[Lines, Array] | None:
    """The pairs whose sum is likely, with how likely it is; None where there are too many."""
    if len(one) * len(likely) > MAX_TABLE_LINES:
        return None
    totals = np.fromiter(likely, np.int64)
    left, kinds = np.repeat(one, len(totals)), np.tile(np.arange(len(totals)), len(one))
    right = totals[kinds] - left
    fits = np.isin(right, other)
    weights = whole_weights(list(likely.values()))[kinds[fits]]
    return np.stack([left[fits], right[fits]], axis=1), weights


def exact_count(low: int, high: int, mean: Fraction) -> InferredCount:
    """A count with an exact mean; a float where nobody would read that."""
    exact = mean.denominator.bit_length() <= MAX_RESULT_BITS
    return InferredCount(low, high, mean if exact else float(mean), exact)
