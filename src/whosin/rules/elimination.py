"""Sums over products of tables, one variable after another, and the weights of every variable.

Contract: a table lists the values of some variables that go together, with a weight above 0 for
each line: whole numbers (then results are exact, up to a factor that all share), or floats, which
are logarithms, since weights of large populations are too far apart for anything else. Going
forward each variable is summed out of the product of the tables that have it; going back, each
product is weighted by all the others. Only lines that fit are ever made, so that equations between
the variables make tables smaller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from whosin.exact import Array

Lines = npt.NDArray[np.int64]
LARGEST_CODE = 2**62


@dataclass(frozen=True)
class Weighted:
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
    parts: list[int] = field(default_factory=list)
    used: list[Lines] = field(default_factory=list)
    result: Lines = field(default_factory=lambda: np.zeros(0, np.int64))
    size: int = 0


@dataclass(frozen=True)
class Elimination:
    """The lines of all products, without their weights, and how many there are."""

    given: Sequence[Weighted]
    steps: list[_Step]
    lines: int


def eliminate(tables: Sequence[Weighted], most: int) -> Elimination | None:
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
            pairs = _matches(scope, product, names[part], lines[part], most)
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
        remaining, back = _distinct(product[:, rest])
        values = product[:, scope.index(variable)]
        steps.append(_Step(variable, values, parts, used, back, len(remaining)))
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


def supports(elimination: Elimination) -> dict[int, tuple[int, int]]:
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


def marginals(elimination: Elimination, exact: bool) -> dict[int, dict[int, Any]]:
    """For each variable its values with their weights, summed over all the others, each variable's
    up to a factor: whole numbers where exact, else floats of at most 1."""
    weights = [_as_kind(each.weights, exact) for each in elimination.given]
    first = len(weights)
    products: list[Array] = []
    consumer: dict[int, int] = {}
    for number, step in enumerate(elimination.steps):
        product = _times(
            *(weights[part][used] for part, used in zip(step.parts, step.used, strict=True))
        )
        consumer |= dict.fromkeys(step.parts, number)
        products.append(product)
        weights.append(_normal(_summed(product, step.result, step.size)))
    result: dict[int, dict[int, Any]] = {}
    for number in reversed(range(len(products))):
        step, own = elimination.steps[number], first + number
        if own in consumer:
            above = elimination.steps[consumer[own]]
            used = above.used[above.parts.index(own)]
            whole = _summed(products[consumer[own]], used, step.size)
            others = whole // weights[own] if exact else whole - weights[own]
            products[number] = _times(products[number], _normal(others)[step.result])
        values, positions = np.unique(step.values, return_inverse=True)
        sums = _summed(products[number], positions, len(values))
        result[step.variable] = dict(zip(values.tolist(), _plain(sums), strict=True))
    return result


def _matches(
    scope: tuple[int, ...], one: Lines, names: tuple[int, ...], other: Lines, most: int
) -> tuple[Lines, Lines] | None:
    """The pairs of lines that agree on what both have; None where there are too many."""
    shared = [name for name in scope if name in names]
    left = one[:, [scope.index(name) for name in shared]]
    right = other[:, [names.index(name) for name in shared]]
    codes = _codes(np.vstack([left, right]))
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


def _distinct(lines: Lines) -> tuple[Lines, Lines]:
    """The lines without repetitions, and which of them each one is."""
    _, first, back = np.unique(_codes(lines), return_index=True, return_inverse=True)
    return lines[first], back.reshape(-1)


def _codes(lines: Lines) -> Lines:
    """A number for each line, the same for equal lines."""
    result = np.zeros(len(lines), np.int64)
    if not lines.size:
        return result
    spans = (lines.max(axis=0) - lines.min(axis=0) + 1).tolist()
    if math.prod(spans) > LARGEST_CODE:
        return np.unique(lines, axis=0, return_inverse=True)[1].reshape(-1)
    for column, (span, low) in enumerate(zip(spans, lines.min(axis=0), strict=True)):
        result = result * span + (lines[:, column] - low)
    return result


def _times(*weights: Array) -> Array:
    """The product, line by line."""
    result = weights[0]
    for each in weights[1:]:
        result = result * each if each.dtype == object else result + each
    return result


def _summed(weights: Array, positions: Lines, size: int) -> Array:
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


def _as_kind(weights: Array, exact: bool) -> Array:
    if exact or weights.dtype != object:
        return weights
    return np.array([math.log(int(each)) for each in weights])


def _normal(weights: Array) -> Array:
    """The same weights, small: whole numbers without a common divisor, logarithms of at most 0."""
    if weights.dtype != object:
        return np.asarray(weights - weights.max()) if weights.size else weights
    common = math.gcd(*(int(each) for each in weights))
    return weights // common if common > 1 else weights


def _plain(weights: Array) -> list[Any]:
    return list(weights) if weights.dtype == object else list(np.exp(_normal(weights)))
