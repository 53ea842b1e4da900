"""The linear program of a simulation, in floats, and what it finds made exact.

minimise Σ|B R − A| over stochastic R. At a vertex the positive entries of R are determined by the
equations, which are solved again in rationals; where the minimum is positive, the multipliers W of
the equations say Σ W·A > Σ_b max_a (Wᵀ B)_{ab}, which is checked in rationals too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from whosin.errors import Unsupported
from whosin.exact import Array, flint_rational
from whosin.interrupts import run_interruptibly
from whosin.refinement.linear_systems import pivots, product, solved

PATIENCE = 120.0
POSITIVE = (1e-9, 1e-7, 1e-11)
"""Entries of R above this may be positive; the values are tried one after the other."""
MOST = 1 << 22
"""Coefficients."""


def solve(source: Array, target: Array) -> tuple[Array, Array]:
    """(R, multipliers of the equations B R = A), in floats."""
    import highspy

    rows, inner = source.shape
    columns = target.shape[1]
    if rows * inner * columns > MOST:
        raise Unsupported(
            f"a simulation with {rows} × {inner} × {columns} coefficients is more than {MOST:,}"
        )
    model = highspy.HighsLp()
    count, lines = inner * columns + 2 * rows * columns, rows * columns + inner
    model.num_col_, model.num_row_ = count, lines
    model.col_cost_ = np.concatenate([np.zeros(inner * columns), np.ones(2 * rows * columns)])
    model.col_lower_ = np.zeros(count)
    model.col_upper_ = np.full(count, highspy.kHighsInf)
    right = np.concatenate([target.ravel(), np.ones(inner)])
    model.row_lower_, model.row_upper_ = right, right
    starts, rows_used, values = _coefficients(source, columns)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_ = starts, rows_used
    model.a_matrix_.value_ = values
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    options = {"output_flag": False, "threads": 1, "time_limit": PATIENCE, "solver": "simplex"}
    options |= {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    for option, value in options.items():
        solver.setOptionValue(option, value)
    solver.passModel(model)
    solver.HandleUserInterrupt = True
    run_interruptibly(solver.run, solver.cancelSolve)
    result = solver.getSolution()
    if len(result.col_value) != count or len(result.row_dual) != lines:
        return np.zeros((inner, columns)), np.zeros((rows, columns))
    simulation = np.array(result.col_value)[: inner * columns].reshape(inner, columns)
    return simulation, np.array(result.row_dual)[: rows * columns].reshape(rows, columns)


def _coefficients(source: Array, columns: int) -> tuple[Array, Array, Array]:
    """By column: R_ba is in the equations (x, a) with B_xb, and in its row's sum; then slacks."""
    rows, inner = source.shape
    line = np.arange(rows) * columns
    lines, values, lengths = [], [], []
    for b in range(inner):
        used = np.flatnonzero(source[:, b])
        for a in range(columns):
            lines.append(np.append(line[used] + a, rows * columns + b))
            values.append(np.append(source[used, b], 1.0))
            lengths.append(len(used) + 1)
    for sign in (1.0, -1.0):
        lines.append(np.arange(rows * columns))
        values.append(np.full(rows * columns, sign))
        lengths += [1] * (rows * columns)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return starts, np.concatenate(lines), np.concatenate(values)


def exact_simulations(near: Array, source: Array, target: Array) -> Iterator[Array]:
    """Candidates for R in rationals: the vertex that floats are near to."""
    for least in POSITIVE:
        yield _vertex(near, near > least, source, target)


def _vertex(near: Array, support: Array, source: Array, target: Array) -> Array:
    """R with this support. Column by column the entries of independent columns of B follow from the
    others; these are what makes rows sum to 1."""
    inner, columns = near.shape
    result = np.full((inner, columns), flint_rational(0), dtype=object)
    free: list[tuple[int, int]] = []
    follows: list[tuple[list[int], Array, Array, list[int]]] = []
    for a in range(columns):
        used = np.flatnonzero(support[:, a])
        part = source[:, used]
        rows, first = pivots(part)
        own, others = used[first].tolist(), np.delete(used, first).tolist()
        base = solved(part[np.ix_(rows, first)], target[rows, a : a + 1])
        turn = solved(part[np.ix_(rows, first)], source[np.ix_(rows, others)])
        follows.append((own, base, turn, others))
        free += [(b, a) for b in others]
    values = _free_values(near, free, follows, inner)
    for cell in free:
        result[cell] = values[cell]
    for a, (own, base, turn, others) in enumerate(follows):
        for position, b in enumerate(own):
            shift = sum(
                (turn[position, k] * values[c, a] for k, c in enumerate(others)), flint_rational(0)
            )
            result[b, a] = base[position, 0] - shift
    return result


def _free_values(
    near: Array, free: list[tuple[int, int]], follows: Any, inner: int
) -> dict[tuple[int, int], Any]:
    """What makes every row of R sum to 1; where that leaves a choice, what floats have."""
    if not free:
        return {}
    zero, index = flint_rational(0), {cell: number for number, cell in enumerate(free)}
    system = np.full((inner, len(free)), zero, dtype=object)
    right = np.full((inner, 1), flint_rational(1), dtype=object)
    for a, (own, base, turn, others) in enumerate(follows):
        for position, b in enumerate(own):
            right[b, 0] -= base[position, 0]
            for k, c in enumerate(others):
                system[b, index[c, a]] -= turn[position, k]
        for c in others:
            system[c, index[c, a]] += 1
    rows, chosen = pivots(system)
    rest = [number for number in range(len(free)) if number not in set(chosen)]
    kept = np.array([[flint_rational(float(near[free[number]]))] for number in rest], dtype=object)
    left = right[rows]
    if rest:
        left = left - product(system[np.ix_(rows, rest)], kept.reshape(len(rest), 1))
    solution = solved(system[np.ix_(rows, chosen)], left)
    values = {free[number]: solution[position, 0] for position, number in enumerate(chosen)}
    return values | {free[number]: kept[position, 0] for position, number in enumerate(rest)}
