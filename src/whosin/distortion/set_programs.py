"""Programs for sets of priors and for costs of whole tables: the best mechanism against the least
favourable prior.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from whosin.distortion.closed_forms import exact_cost, expected_cost
from whosin.distortion.rate import measure_information, row_information
from whosin.distortion.row_mechanisms import BestAtLevel, ByTable, Matrix, PerRow, exact_matrix
from whosin.distortion.symmetry import check_size, find_structure
from whosin.exact import Array, exp_down, exp_up, log_up, round_up
from whosin.mechanisms import Mechanism
from whosin.priors import Independent, Prior
from whosin.priors.sets import Row, RowSet, member_prior
from whosin.spaces import Records

# The best mechanism for one row against every distribution of a set, and the worst of these (T26).
# A whole table is a row, too, which has every table as a value, and fewer pairs of neighbours: so
# rows that depend on each other, and costs that are no sum over rows, are the same program.
#
# Minimise D subject to Σ_x p(x) Σ_y A(y|x) d(x,y) ≤ D for the members p of the set, and to ρ(x,x')
# A(y|x) ≤ e^ε A(y|x'). Members come in one by one: the worst one for the mechanism found so far,
# until there is none worse. What floats find is then made private exactly, and a lower bound is
# proved in rationals from the multipliers: nothing of the solver is trusted.

Odds = Mapping[tuple[int, int], Fraction]
MAX_ROUNDS = 200
"""Members that are tried."""
PRIOR_SET_GAP = 1e-12
SOLVER_NOISE = 1e-11
"""Entries below this are the solver's rounding."""
RATIO_ROOM = Fraction(1, 10**10)
"""Odds this close to e^ε leave no room for different answers."""
SUFFICIENT_GAP = Fraction(1, 10**10)
"""A gap that ends the attempts."""
SOLVER_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


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
        cost: values × outputs.
        odds: ρ for each two neighbouring values; at most `least`.
        least, most: rationals just below and just above e^ε.
    """
    found: RowOptimum | None = None
    for scale in dict.fromkeys((1.0, float(cost.max()) or 1.0)):  # tolerances are absolute
        one = _solve_row(members, cost, odds, (least, most), scale)
        if found is not None:
            mechanism = min(found, one, key=lambda each: each.distortion)
            proof = max(found, one, key=lambda each: each.bound)
            one = replace(mechanism, bound=proof.bound, member=proof.member)
        found = one
        if found.distortion - found.bound <= SUFFICIENT_GAP:
            break
    assert found is not None
    return found


def _solve_row(
    members: RowSet, cost: Array, odds: Odds, ends: tuple[Fraction, Fraction], scale: float
) -> RowOptimum:
    """The same, by a program whose costs are divided by a scale."""
    least, most = ends
    points = [members.likeliest(0)]
    for _ in range(MAX_ROUNDS):
        near, shares, multipliers = _solve_program(points, cost / scale, odds, float(least))
        prices = (near * cost).sum(axis=1)
        worst = members.worst(prices.tolist())
        reached = max(float(np.dot(_point_floats(point), prices)) for point in points)
        if (
            worst in points
            or float(np.dot(_point_floats(worst), prices)) <= reached + PRIOR_SET_GAP
        ):
            break
        points.append(worst)
    matrix = _mix_until_private(near, odds, least)
    exact = exact_cost(cost)
    spent = [
        sum((share * price for share, price in zip(line, prices, strict=True)), Fraction(0))
        for line, prices in zip(matrix, exact, strict=True)
    ]
    value = expected_cost(members.worst(spent), matrix, cost)
    member = _mix_members(points, shares)
    return RowOptimum(
        matrix, value, _dual_bound(member, exact, odds, multipliers * scale, most), member
    )


def _solve_program(
    points: Sequence[Row], cost: Array, odds: Odds, top: float
) -> tuple[Array, Array, Array]:
    """(mechanism, weights of the members, multipliers of the ratios by pair and output)."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix

    (n, m), pairs = cost.shape, list(odds)
    first, second = np.array(pairs).T
    ratio = np.array([float(odds[pair]) for pair in pairs])
    size = np.maximum(ratio, top)
    outputs, lines = np.arange(m), np.arange(len(pairs) * m)
    left = (first[:, None] * m + outputs).ravel()
    right = (second[:, None] * m + outputs).ravel()
    known = np.array([(_point_floats(point)[:, None] * cost).ravel() for point in points])
    extra = len(lines) + np.arange(len(points))
    data = [np.repeat(ratio / size, m), np.repeat(-top / size, m), known.ravel()]
    row = [lines, lines, np.repeat(extra, n * m)]
    column = [left, right, np.tile(np.arange(n * m), len(points))]
    entries = np.concatenate([*data, np.full(len(points), -1.0)])
    place = np.concatenate([*row, extra]), np.concatenate([*column, np.full(len(extra), n * m)])
    upper = coo_matrix((entries, place), shape=(len(lines) + len(points), n * m + 1))
    totals = np.repeat(np.arange(n), m), np.arange(n * m)
    sums = coo_matrix((np.ones(n * m), totals), shape=(n, n * m + 1))
    goal = np.append(np.zeros(n * m), 1.0)
    zeros = np.zeros(upper.shape[0])
    solution = linprog(
        goal, upper.tocsr(), zeros, sums.tocsr(), np.ones(n), method="highs", options=SOLVER_OPTIONS
    )
    if solution.x is None or not np.isfinite(solution.x).all():  # a constant answer, and no bound
        even = np.full((n, m), 1 / m)
        return even, np.ones(len(points)), np.zeros((len(pairs), m))
    duals = np.maximum(-solution.ineqlin.marginals, 0.0)
    ratios = duals[: len(lines)].reshape(-1, m) / size[:, None]
    return solution.x[:-1].reshape(n, m), duals[len(lines) :], ratios


def _mix_until_private(near: Array, odds: Odds, top: Fraction) -> Matrix:
    """The mechanism mixed with an answer that ignores the row, as little as makes it private."""
    kept = _close_ratios(np.where(near > SOLVER_NOISE, near, 0.0), odds, top)
    matrix, (n, m) = exact_matrix(_level_rows(kept, odds, top)), near.shape
    middle = [sum((line[y] for line in matrix), Fraction(0)) / n for y in range(m)]
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


def _close_ratios(matrix: Array, odds: Odds, top: Fraction) -> Array:
    """The least matrix above this one with ρ A(y|x) ≤ e^ε A(y|x'), its rows scaled to sum 1."""
    first, second = np.array(list(odds)).T
    factor = np.array([float(ratio / top) for ratio in odds.values()])[:, None]
    current = matrix
    for _ in range(len(matrix)):
        before, current = current, current.copy()
        np.maximum.at(current, second, factor * before[first])
        if (current <= before * (1 + 1e-15)).all():
            break
    return np.asarray(current / current.sum(axis=1, keepdims=True))


def _level_rows(matrix: Array, odds: Odds, top: Fraction) -> Array:
    """The same answer for values whose odds leave no room: their mean."""
    group = list(range(len(matrix)))
    for (a, b), ratio in odds.items():
        if top - ratio <= top * RATIO_ROOM:
            group = [group[a] if each == group[b] else each for each in group]
    names = np.array(group)
    return np.array([matrix[names == name].mean(axis=0) for name in group])


def _dual_bound(
    member: Row, cost: list[list[Fraction]], odds: Odds, multipliers: Array, top: Fraction
) -> Fraction:
    """Σ_x min_y of the costs under the member, less what the ratios allow: weak duality."""
    prices = [[mass * price for price in line] for mass, line in zip(member, cost, strict=True)]
    for ((a, b), ratio), line in zip(odds.items(), multipliers, strict=True):
        for y, multiplier in enumerate(map(Fraction, line.tolist())):
            prices[a][y] += multiplier * ratio
            prices[b][y] -= multiplier * top
    return max(sum((min(line) for line in prices), Fraction(0)), Fraction(0))


def _mix_members(points: Sequence[Row], shares: Array) -> Row:
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


def _point_floats(point: Row) -> Array:
    return np.array([float(p) for p in point])


# The least distortion at a level against every prior of a set: row by row (T26), or for tables.

MAX_PRIOR_SET_VALUES = 24
"""Values of a row: a program has about the cube of this number of constraints."""
MAX_TABLE_CELLS = 4096
"""Tables times answers of a program for whole tables."""


def sum_costs(space: Records, cost: Array) -> Array:
    """A cost of rows as one of whole tables: tables × tables of shown values."""
    total = np.zeros((1, 1))
    for _ in range(space.rows):
        total = np.add.outer(total, cost).swapaxes(1, 2)
        total = total.reshape(total.shape[0] * total.shape[1], -1)
    return total


def is_of_tables(space: Records, cost: Array) -> bool:
    return space.rows > 1 and len(cost) == space.worlds


@dataclass(frozen=True, eq=False)
class SetProgram:
    """The best mechanisms of one notion against a set of priors.

    Args:
        sets: one set that serves every row, one for each row, or one for whole tables.
        cost: of the values that a row may have by what may be shown, or of tables by answers.
        names: the answers, where they are for whole tables.
    """

    space: Records
    sets: tuple[RowSet, ...]
    cost: Array
    notion: str
    names: tuple[object, ...] = ()

    def __post_init__(self) -> None:
        values, outputs = self.cost.shape
        if self.of_tables:
            what, hint = "the best mechanism for whole tables needs", "use fewer rows or values"
            cells = (values * outputs, "variables", MAX_TABLE_CELLS)
            check_size(what, *cells, "space", f"{hint}; independent rows are solved one by one")
        else:
            what, most = "the program of a row has", MAX_PRIOR_SET_VALUES
            check_size(what, values, "values", most, "values", "use fewer values")

    @property
    def of_tables(self) -> bool:
        return is_of_tables(self.space, self.cost)

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Neighbours: two values of a row, or two tables that differ in one row."""
        values = range(self.space.values)
        if not self.of_tables:
            return [(a, b) for a, b in product(values, values) if a != b]
        strides = [self.space.stride(row) for row in range(self.space.rows)]
        worlds = product(range(self.space.worlds), strides, values)
        moved = ((w, w + (v - w // step % len(values)) * step) for w, step, v in worlds)
        return [(a, b) for a, b in moved if a != b]

    @cached_property
    def odds(self) -> dict[RowSet, dict[tuple[int, int], Fraction | float]]:
        """ρ of each pair, for each set: 1 for differential privacy."""
        sets = dict.fromkeys(self.sets)
        if self.notion == "dp":
            return {one: dict.fromkeys(self.pairs, Fraction(1)) for one in sets}
        found = {one: {pair: one.odds(*pair) for pair in self.pairs} for one in sets}
        return {
            one: {k: r for k, r in odds.items() if r is not None} for one, odds in found.items()
        }

    @cached_property
    def spread(self) -> Fraction | float:
        """e^ε_X of the worst member; 1 for differential privacy."""
        return max(max(odds.values(), default=Fraction(1)) for odds in self.odds.values())

    @property
    def floor(self) -> float:
        """The least level that any mechanism has."""
        return log_up(self.spread) if isinstance(self.spread, Fraction) else math.inf

    def at(self, epsilon: float, start: object = None) -> BestAtLevel:
        """The best mechanism at ε; its basis has the least favourable members."""
        floor = Fraction(self.spread)
        least, most = max(exp_down(epsilon), floor), max(exp_up(epsilon), floor)
        best = {
            one: best_row(one, self.cost, odds, least, most)  # type: ignore[arg-type]
            for one, odds in self.odds.items()
        }
        value = sum((n * best[one].distortion for one, n in self._times.items()), Fraction(0))
        bound = sum((n * best[one].bound for one, n in self._times.items()), Fraction(0))
        chosen = [best[one] for one in (self.sets if len(best) > 1 else self.sets[:1])]
        made = self._mechanism([each.matrix for each in chosen])
        members = [best[one].member for one in self.sets]
        return BestAtLevel(value, min(bound, value), made, "program", members)

    @property
    def _times(self) -> Mapping[RowSet, int]:
        alone = 1 if self.of_tables else self.space.rows
        return Counter(self.sets) if len(self.sets) > 1 else {self.sets[0]: alone}

    def _mechanism(self, matrices: Sequence[Matrix]) -> Mechanism:
        if self.of_tables:
            return ByTable(self.space, matrices[0], self.names)
        return PerRow(tuple(matrices))

    def faithful(self) -> Mechanism:
        """The mechanism that shows what costs nothing."""
        shown = np.eye(self.cost.shape[1])[self.cost.argmin(axis=1)]
        return self._mechanism([exact_matrix(shown)])

    def information(self, mechanism: Mechanism, members: list[Row]) -> float:
        """I(X;Y) of a mechanism under the prior with these members."""
        if isinstance(mechanism, ByTable):
            floats = np.array([[float(p) for p in line] for line in mechanism.matrix])
            return row_information(_point_floats(members[0]), floats)
        known = find_structure(self.space, self.member_prior(members))
        return measure_information(known, mechanism)

    def member_prior(self, members: list[Row]) -> Prior:
        """The prior with these members of the sets."""
        if self.of_tables:
            return member_prior(members, self.space)
        return Independent(members if len(members) > 1 else members[0])
