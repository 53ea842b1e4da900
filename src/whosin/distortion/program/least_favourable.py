"""The best mechanism for one row against every distribution of a set, and the worst of these (T26).

Minimise D subject to Σ_x p(x) Σ_y A(y|x) d(x,y) ≤ D for the members p of the set, and to
ρ(x,x') A(y|x) ≤ e^ε A(y|x'). Members come in one by one: the worst one for the mechanism found so
far, until there is none worse. What floats find is then made private exactly, and a lower bound is
proved in rationals from the multipliers: nothing of the solver is trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whosin.distortion.closed.costs import exact_cost, expected_cost
from whosin.distortion.mechanisms.per_row import Matrix, as_matrix
from whosin.exact import Array, round_up
from whosin.priors.sets import Row, RowSet

Odds = Mapping[tuple[int, int], Fraction]
ROUNDS = 200
"""Members that are tried."""
CLOSE = 1e-12
NOISE = 1e-11
"""Entries below this are the solver's rounding."""
ROOM = Fraction(1, 10**10)
"""Odds this close to e^ε leave no room for different answers."""
OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, eq=False)
class RowOptimum:
    """A matrix that keeps the level, its distortion under its worst member, what no mechanism is
    below, and the member that shows it."""

    matrix: Matrix
    distortion: Fraction
    bound: Fraction
    member: Row


def best_row(
    members: RowSet, cost: Array, odds: Odds, least: Fraction, most: Fraction
) -> RowOptimum:
    """The best mechanism for a row.

    Args:
        odds: ρ for each two different values; at most `least`.
        least, most: rationals just below and just above e^ε.
    """
    points = [members.likeliest(0)]
    for _ in range(ROUNDS):
        near, shares, multipliers = _solved(points, cost, odds, float(least))
        prices = (near * cost).sum(axis=1)
        worst = members.worst(prices.tolist())
        reached = max(float(np.dot(_floats(point), prices)) for point in points)
        if worst in points or float(np.dot(_floats(worst), prices)) <= reached + CLOSE:
            break
        points.append(worst)
    matrix = _private(near, odds, least)
    exact = exact_cost(cost)
    spent = [
        sum((share * price for share, price in zip(line, prices, strict=True)), Fraction(0))
        for line, prices in zip(matrix, exact, strict=True)
    ]
    value = expected_cost(members.worst(spent), matrix, cost)
    member = _mixed(points, shares)
    return RowOptimum(matrix, value, _bound(member, exact, odds, multipliers, most), member)


def _solved(
    points: Sequence[Row], cost: Array, odds: Odds, top: float
) -> tuple[Array, Array, Array]:
    """(mechanism, weights of the members, multipliers of the ratios by pair and output)."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix

    m, pairs = len(cost), list(odds)
    first, second = np.array(pairs).T
    ratio = np.array([float(odds[pair]) for pair in pairs])
    size = np.maximum(ratio, top)
    outputs, lines = np.arange(m), np.arange(len(pairs) * m)
    left = (first[:, None] * m + outputs).ravel()
    right = (second[:, None] * m + outputs).ravel()
    known = np.array([(_floats(point)[:, None] * cost).ravel() for point in points])
    extra = len(lines) + np.arange(len(points))
    data = [np.repeat(ratio / size, m), np.repeat(-top / size, m), known.ravel()]
    row = [lines, lines, np.repeat(extra, m * m)]
    column = [left, right, np.tile(np.arange(m * m), len(points))]
    upper = coo_matrix(
        (
            np.concatenate([*data, np.full(len(points), -1.0)]),
            (
                np.concatenate([*row, extra]),
                np.append(np.concatenate(column), [m * m] * len(extra)),
            ),
        ),
        shape=(len(lines) + len(points), m * m + 1),
    )
    sums = coo_matrix(
        (np.ones(m * m), (np.repeat(outputs, m), np.arange(m * m))), shape=(m, m * m + 1)
    )
    goal = np.append(np.zeros(m * m), 1.0)
    zeros = np.zeros(upper.shape[0])
    solution = linprog(
        goal, upper.tocsr(), zeros, sums.tocsr(), np.ones(m), method="highs", options=OPTIONS
    )
    if solution.x is None or not np.isfinite(solution.x).all():  # a constant answer, and no bound
        even = np.full((m, m), 1 / m)
        return even, np.ones(len(points)), np.zeros((len(pairs), m))
    duals = np.maximum(-solution.ineqlin.marginals, 0.0)
    ratios = duals[: len(lines)].reshape(-1, m) / size[:, None]
    return solution.x[:-1].reshape(m, m), duals[len(lines) :], ratios


def _private(near: Array, odds: Odds, top: Fraction) -> Matrix:
    """The mechanism mixed with an answer that ignores the row, as little as makes it private."""
    kept = _levelled(np.where(near > NOISE, near, 0.0), odds, top)
    matrix, m = as_matrix(kept), len(near)
    middle = [sum((line[y] for line in matrix), Fraction(0)) / m for y in range(m)]
    share = Fraction(0)
    for (a, b), ratio in odds.items():
        for y in range(m):
            slack = top * matrix[b][y] - ratio * matrix[a][y]
            if slack < 0:
                share = max(share, slack / (slack - (top - ratio) * middle[y]))
    share = min(Fraction(round_up(share)), Fraction(1))
    return tuple(
        tuple((1 - share) * entry + share * even for entry, even in zip(line, middle, strict=True))
        for line in matrix
    )


def _levelled(matrix: Array, odds: Odds, top: Fraction) -> Array:
    """The same answer for values whose odds leave no room: their mean."""
    group = list(range(len(matrix)))
    for (a, b), ratio in odds.items():
        if top - ratio <= top * ROOM:
            group = [group[a] if each == group[b] else each for each in group]
    names = np.array(group)
    return np.array([matrix[names == name].mean(axis=0) for name in group])


def _bound(
    member: Row, cost: list[list[Fraction]], odds: Odds, multipliers: Array, top: Fraction
) -> Fraction:
    """Σ_x min_y of the costs under the member, less what the ratios allow: weak duality."""
    m = len(member)
    prices = [[member[x] * cost[x][y] for y in range(m)] for x in range(m)]
    for ((a, b), ratio), line in zip(odds.items(), multipliers, strict=True):
        for y, multiplier in enumerate(map(Fraction, line.tolist())):
            prices[a][y] += multiplier * ratio
            prices[b][y] -= multiplier * top
    return max(sum((min(line) for line in prices), Fraction(0)), Fraction(0))


def _mixed(points: Sequence[Row], shares: Array) -> Row:
    """The mixture of these members, exactly."""
    weights = [Fraction(share) for share in shares.tolist()]
    total = sum(weights, Fraction(0))
    if total == 0:
        return points[0]
    columns = zip(*points, strict=True)
    return tuple(
        sum((w * p for w, p in zip(weights, column, strict=True)), Fraction(0)) / total
        for column in columns
    )


def _floats(point: Row) -> Array:
    return np.array([float(p) for p in point])
