"""The linear program of the best mechanism, by type, with a bound that does not trust the solver.

Variables: w_t, the probability that (x, y) has type t given the counts of x. Minimise
Σ_t P(r(t)) w_t d(t) subject to Σ_{t: r} w_t = 1 for each combination of counts r, and for each move
(a pair of neighbours) A(y|x) · ρ ≤ e^ε A(y|x'), with ρ = 1 for differential privacy and
ρ = p(x)/p(x') for identifiability (Wang14, PD-DP and PD-I; THEORY F14).

Safe dual: for *any* multipliers u ≥ 0 of the moves, Σ_r min over t of r of (c + Gᵀu)_t is a lower
bound on the optimum. So the bound is evaluated here from the solver's multipliers, whatever their
accuracy, with its own rounding taken off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from whosin.distortion.types import Types
from whosin.exact import Array

TOLERANCE = 1e-10
ROUNDING = 2.0**-48
"""Relative error granted to a sum of a few dozen products of floats."""
PRIMAL = 4
"""HiGHS's number for the primal simplex method."""
SMALL = 500
"""Programs up to this many variables are solved in one go."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights by type and multipliers of the moves as the solver left them, and its basis."""

    weights: Array
    multipliers: Array
    basis: object


@dataclass(frozen=True, eq=False)
class Program:
    """The data of one linear program.

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

    def solve(self, epsilon: float, start: object = None) -> Solution:
        """The solver's answer: not trusted, so its status is not asked for.

        Args:
            start: the basis of an earlier solution, of this program at any ε and scale.
        """
        return self._solve(epsilon, np.ones(len(self.masses)), start)

    def rough(self, epsilon: float, start: object = None) -> Solution:
        """The same in variables scaled by √P(r): faster, with good multipliers and a basis to
        start from, and with weights that are poor for tables of tiny probability."""
        scale = np.sqrt(np.maximum(self.masses, 1e-16))
        if start is not None or self.types.values > 2 or (self.odds != 1).any():
            return self._solve(epsilon, scale, start)
        return self._solve(epsilon, scale, self._response(), primal=True)

    def _response(self) -> Any:
        """The basis of randomised response: every type in it, and one tight move into each type
        that is not all kept (a forest, one tree for each combination of counts of y)."""
        import highspy

        moves = self.types.moves
        changed = self.types.cost(1.0 - np.eye(self.types.values))
        tight = np.flatnonzero(changed[moves.target] == changed[moves.source] + 1)
        _, first = np.unique(moves.target[tight], return_index=True)
        status = highspy.HighsBasisStatus
        lines = np.full(len(moves.source), status.kBasic, dtype=object)
        lines[tight[first]] = status.kUpper
        basis = highspy.HighsBasis()
        basis.col_status = [status.kBasic] * self.types.size
        basis.row_status = [*lines, *[status.kLower] * len(self.masses)]
        basis.valid = True
        return basis

    def _solve(self, epsilon: float, scale: Array, start: object, primal: bool = False) -> Solution:
        import highspy

        moves, left = self.types.moves, self.left
        count, rows, sums = self.types.size, len(moves.source), len(self.masses)
        each = scale[self.types.inputs]
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = count, rows + sums
        model.col_cost_ = self.objective / each
        model.col_lower_, model.col_upper_ = np.zeros(count), np.full(count, highspy.kHighsInf)
        model.row_lower_ = np.concatenate([np.full(rows, -highspy.kHighsInf), scale])
        model.row_upper_ = np.concatenate([np.zeros(rows), scale])
        above, below = left / each[moves.source], math.exp(epsilon) / each[moves.target]
        size = np.maximum(above, below)  # the larger coefficient of an inequality becomes 1
        line = np.arange(rows)
        i = np.concatenate([line, line, rows + self.types.inputs])
        j = np.concatenate([moves.source, moves.target, np.arange(count)])
        v = np.concatenate([above / size, -below / size, np.ones(count)])
        order = np.lexsort((i, j))
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = np.searchsorted(j[order], np.arange(count + 1))
        model.a_matrix_.index_ = i[order]
        model.a_matrix_.value_ = v[order]
        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, value in OPTIONS.items():
            solver.setOptionValue(option, value)
        if primal:
            solver.setOptionValue("simplex_strategy", PRIMAL)
        solver.passModel(model)
        if start is not None:
            solver.setBasis(start)
        solver.run()
        found = solver.getSolution()
        weights = np.array(found.col_value) / each
        duals = np.array(found.row_dual)[:rows]
        if len(weights) != count or len(duals) != rows or not np.isfinite(weights).all():
            weights, duals = np.zeros(count), np.zeros(rows)
        multipliers = np.maximum(-np.nan_to_num(duals), 0.0) / size
        return Solution(np.maximum(weights, 0.0), multipliers, solver.getBasis())

    def bound(self, solution: Solution, epsilon: float) -> float:
        """A lower bound on the optimum at ε, from the safe dual."""
        moves, count = self.types.moves, self.types.size
        top = math.nextafter(math.exp(epsilon), math.inf) * (1 + 4e-16)
        gain = np.bincount(moves.source, solution.multipliers * self.left, count)
        loss = np.bincount(moves.target, solution.multipliers * top, count)
        sizes = np.asarray(self.objective + gain + loss)
        reduced = np.asarray(self.objective + gain - loss) - ROUNDING * sizes
        least = np.full(len(self.masses), math.inf)
        np.minimum.at(least, self.types.inputs, reduced)
        return max(0.0, float(least.sum()) - ROUNDING * float(np.abs(least).sum()))


OPTIONS: dict[str, object] = {
    "output_flag": False,
    "primal_feasibility_tolerance": TOLERANCE,
    "dual_feasibility_tolerance": TOLERANCE,
    "threads": 1,
    "solver": "simplex",
    "time_limit": 120.0,
}
