"""The linear program of the best mechanism, by type, and the solver that is asked for it.

Variables: w_t, the probability that (x, y) has type t given the counts of x. Minimise
Σ_t P(r(t)) w_t d(t) subject to Σ_{t: r} w_t = 1 for each combination of counts r, and for each move
(a pair of neighbours) A(y|x) · ρ ≤ e^ε A(y|x'), with ρ = 1 for differential privacy and
ρ = p(x)/p(x') for identifiability (Wang14, PD-DP and PD-I; F14).

The solver's tolerances are absolute, and 1e-10 at best: too coarse for rare types. So it is given
the program magnified. Nothing here is trusted: what is claimed is proved in `certificate`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from whosin.distortion.symmetry.joint_types import Types
from whosin.exact import Array
from whosin.interrupts import run_interruptibly

TOLERANCE = 1e-10
MAGNIFIED = 2.0**13
"""Both sides of the constraints, and the costs."""
SMALL = 500
"""Programs up to this many variables take no time worth interrupting."""
PATIENCE = 120.0
"""Seconds that the solver gets for one program."""
ROUNDS = 4
"""How often a solution is refined."""


Guess = tuple[Array, Array]
"""Weights by type, and multipliers of the moves."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Guesses, each better than the one before and dearer; the solver's basis, and why it stopped
    where that was before the optimum."""

    guesses: Iterator[Guess]
    basis: Any
    trouble: str = ""


@dataclass(frozen=True, eq=False)
class Program:
    """The data of one linear program, in floats.

    Args:
        types: the joint types.
        masses: the probability of each combination of counts of x.
        cost: d(t).
        odds: ρ for each move.
    """

    types: Types
    masses: Array
    cost: Array
    odds: Array

    @cached_property
    def left(self) -> Array:
        """w_source · left ≤ e^ε · w_target."""
        moves = self.types.moves
        return np.asarray(moves.above / moves.below * self.odds)

    @cached_property
    def objective(self) -> Array:
        return np.asarray(self.masses[self.types.inputs] * self.cost)

    @cached_property
    def _coefficient_positions(self) -> tuple[Array, Array, Array, Array]:
        """Where the coefficients are: lines, columns, their order by column, and its starts."""
        types, moves = self.types, self.types.moves
        line, column = np.arange(len(moves.source)), np.arange(types.size)
        i = np.concatenate([line, line, len(line) + types.inputs])
        j = np.concatenate([moves.source, moves.target, column])
        order = np.lexsort((i, j))
        return i, j, order, np.searchsorted(j[order], np.arange(types.size + 1))

    def solve(self, epsilon: float, start: Any = None) -> Solution:
        """The optimum at ε as well as floats can tell it.

        Args:
            start: the basis of an earlier solution, of this program at any ε.
        """
        import highspy

        count, rows, sums = self.types.size, len(self.types.moves.source), len(self.masses)
        top, endless = math.exp(epsilon), highspy.kHighsInf
        size = np.maximum(self.left, top)  # the larger coefficient of an inequality becomes 1
        i, j, order, starts = self._coefficient_positions
        values = np.concatenate([self.left / size, -top / size, np.ones(count)])
        ones = np.full(sums, MAGNIFIED)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = count, rows + sums
        model.col_cost_ = self.objective * MAGNIFIED
        model.col_lower_, model.col_upper_ = np.zeros(count), np.full(count, endless)
        model.row_lower_ = np.concatenate([np.full(rows, -endless), ones])
        model.row_upper_ = np.concatenate([np.zeros(rows), ones])
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_ = starts, i[order]
        model.a_matrix_.value_ = values[order]
        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, value in OPTIONS.items():
            solver.setOptionValue(option, value)
        solver.setOptionValue("time_limit", PATIENCE)
        if start is None and self.types.values > 2:
            # Interior points and a crossover are twice as fast where a row has many values.
            solver.setOptionValue("solver", "ipm")
        solver.passModel(model)
        if start is not None:
            solver.setBasis(start)
        _run(solver, count)
        status, trouble = solver.getModelStatus(), ""
        if status != highspy.HighsModelStatus.kOptimal:
            trouble = solver.modelStatusToString(status).lower()
        result = solver.getSolution()
        basis = solver.getBasis()
        guess = (_numbers(result.col_value, count), _numbers(result.row_dual, rows + sums))

        def guesses() -> Iterator[Guess]:
            """The solver's answer, and computed again from its basis where that is asked for."""
            right = np.concatenate([np.zeros(rows), np.ones(sums)])
            for attempt in (0, 1):
                if attempt and not basis.valid:
                    return
                result = polished(i, j, values, right, self.objective, basis) if attempt else guess
                if result is not None:
                    weights, duals = result
                    yield np.maximum(weights, 0.0), np.maximum(-duals[:rows], 0.0) / size

        return Solution(guesses(), basis, trouble)


def polished(
    lines: Array, columns: Array, values: Array, right: Array, costs: Array, basis: Any
) -> tuple[Array, Array] | None:
    """Weights and multipliers of the constraints, computed again from a basis to all the digits
    that floats have; nothing where it is singular.

    At a vertex the tight constraints, as many as there are positive weights, determine the weights,
    and the same matrix transposed determines the multipliers. Both systems are solved by sparse
    elimination and refined with residuals in longer floats.

    Args:
        lines, columns, values: the coefficients of the constraints.
        right: the value of each constraint where it is tight.
        costs: of the weights.
        basis: which weights are positive, and which constraints are tight, as the solver says.
    """
    import highspy
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import splu

    basic = highspy.HighsBasisStatus.kBasic
    kept = np.array([status == basic for status in basis.col_status], dtype=bool)
    tight = np.array([status != basic for status in basis.row_status], dtype=bool)
    if len(kept) != len(costs) or len(tight) != len(right) or kept.sum() != tight.sum():
        return None
    inside = tight[lines] & kept[columns]
    row = np.cumsum(tight)[lines[inside]] - 1
    column = np.cumsum(kept)[columns[inside]] - 1
    entries, size = values[inside], int(kept.sum())
    try:
        factors = splu(csc_matrix((entries, (row, column)), shape=(size, size)))
    except RuntimeError:  # singular
        return None
    weights, duals = np.zeros(len(costs)), np.zeros(len(right))
    weights[kept] = _refined(factors, "N", row, column, entries, right[tight])
    duals[tight] = _refined(factors, "T", column, row, entries, costs[kept])
    if not (np.isfinite(weights).all() and np.isfinite(duals).all()):
        return None
    return weights, duals


def _refined(
    factors: Any, side: str, row: Array, column: Array, entries: Array, right: Array
) -> Array:
    result = np.zeros(len(right), dtype=np.longdouble)
    for _ in range(ROUNDS):
        left = right.astype(np.longdouble)
        np.subtract.at(left, row, entries * result[column])
        result = result + factors.solve(left.astype(float), side)
    return np.asarray(result.astype(float))


def _run(solver: Any, size: int) -> None:
    """Run the solver so that Ctrl-C is heard while it works."""
    if size < SMALL:
        solver.run()
        return
    solver.HandleUserInterrupt = True
    run_interruptibly(solver.run, solver.cancelSolve)


def _numbers(values: Any, count: int) -> Array:
    """What the solver left, or zeros where it left nothing of use."""
    result = np.array(values) / MAGNIFIED
    return result if len(result) == count and np.isfinite(result).all() else np.zeros(count)


OPTIONS: dict[str, object] = {
    "output_flag": False,
    "primal_feasibility_tolerance": TOLERANCE,
    "dual_feasibility_tolerance": TOLERANCE,
    "threads": 1,
    "presolve": "off",  # little to find, and it costs more than it saves
    "solver": "simplex",
    "run_crossover": "on",
    "simplex_scale_strategy": 0,  # the coefficients are at most 1 already; scaling loses digits
}
