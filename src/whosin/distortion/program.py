"""The best mechanism at one ε: the linear program by type, its solver, repair and certificate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from whosin.distortion.closed_forms import (
    MAX_CLOSED_FORM_WORLDS,
    best_constant,
    exact_cost,
    expected_cost,
    identifiable_mechanism,
    is_hamming,
    known_threshold,
    likeliest_values_mechanism,
    randomized_response,
)
from whosin.distortion.row_mechanisms import (
    BestAtLevel,
    ByType,
    Matrix,
    PerBlock,
    PerRow,
    constant_mechanism,
)
from whosin.distortion.symmetry import (
    MAX_VARIABLES,
    Block,
    Structure,
    Types,
    independent_blocks,
    need_moves,
    need_types,
    outer_combine,
)
from whosin.errors import ImpossibleTarget
from whosin.exact import Array, exp_down, exp_up
from whosin.interrupts import run_interruptibly
from whosin.mechanisms import Mechanism

# The linear program of the best mechanism, by type, and the solver that is asked for it.
#
# Variables: w_t, the probability that (x, y) has type t given the counts of x. Minimise Σ_t P(r(t))
# w_t d(t) subject to Σ_{t: r} w_t = 1 for each combination of counts r, and for each move (a pair
# of neighbours) A(y|x) · ρ ≤ e^ε A(y|x'), with ρ = 1 for differential privacy and ρ = p(x)/p(x')
# for identifiability (Wang14, PD-DP and PD-I; F14).
#
# The solver's tolerances are absolute, and 1e-10 at best: too coarse for rare types. So it is given
# the program magnified. Nothing here is trusted: what is claimed is proved in `certificate`.

SOLVER_TOLERANCE = 1e-10
COEFFICIENT_SCALE = 2.0**13
"""Both sides of the constraints, and the costs."""
SMALL_PROGRAM_ROWS = 500
"""Programs up to this many variables take no time worth interrupting."""
MAX_PROGRAM_SECONDS = 120.0
"""Seconds that the solver gets for one program."""
REFINEMENT_ROUNDS = 4
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
        ones = np.full(sums, COEFFICIENT_SCALE)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = count, rows + sums
        model.col_cost_ = self.objective * COEFFICIENT_SCALE
        model.col_lower_, model.col_upper_ = np.zeros(count), np.full(count, endless)
        model.row_lower_ = np.concatenate([np.full(rows, -endless), ones])
        model.row_upper_ = np.concatenate([np.zeros(rows), ones])
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_ = starts, i[order]
        model.a_matrix_.value_ = values[order]
        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, value in HIGHS_OPTIONS.items():
            solver.setOptionValue(option, value)
        solver.setOptionValue("time_limit", MAX_PROGRAM_SECONDS)
        if start is None and self.types.values > 2:
            # Interior points and a crossover are twice as fast where a row has many values.
            solver.setOptionValue("solver", "ipm")
        solver.passModel(model)
        if start is not None:
            solver.setBasis(start)
        _run_solver(solver, count)
        status, trouble = solver.getModelStatus(), ""
        if status != highspy.HighsModelStatus.kOptimal:
            trouble = solver.modelStatusToString(status).lower()
        result = solver.getSolution()
        basis = solver.getBasis()
        sides = ((result.col_value, count), (result.row_dual, rows + sums))
        first, duals = (_solver_numbers(*side) for side in sides)

        def guesses() -> Iterator[Guess]:
            """The solver's answer, and computed again from its basis where that is asked for."""
            yield np.maximum(first, 0.0), np.maximum(-duals[:rows], 0.0) / size
            right = np.concatenate([np.zeros(rows), np.ones(sums)])
            again = None
            if basis.valid:
                again = polish_solution(i, j, values, right, self.objective, basis)
            if again is not None:
                yield np.maximum(again[0], 0.0), np.maximum(-again[1][:rows], 0.0) / size

        return Solution(guesses(), basis, trouble)


def polish_solution(
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
    weights[kept] = _refine_solution(factors, "N", row, column, entries, right[tight])
    duals[tight] = _refine_solution(factors, "T", column, row, entries, costs[kept])
    if not (np.isfinite(weights).all() and np.isfinite(duals).all()):
        return None
    return weights, duals


def _refine_solution(
    factors: Any, side: str, row: Array, column: Array, entries: Array, right: Array
) -> Array:
    result = np.zeros(len(right), dtype=np.longdouble)
    for _ in range(REFINEMENT_ROUNDS):
        left = right.astype(np.longdouble)
        np.subtract.at(left, row, entries * result[column])
        result = result + factors.solve(left.astype(float), side)
    return np.asarray(result.astype(float))


def _run_solver(solver: Any, size: int) -> None:
    """Run the solver so that Ctrl-C is heard while it works."""
    if size < SMALL_PROGRAM_ROWS:
        solver.run()
        return
    solver.HandleUserInterrupt = True
    run_interruptibly(solver.run, solver.cancelSolve)


def _solver_numbers(values: Any, count: int) -> Array:
    """What the solver left, or zeros where it left nothing of use."""
    result = np.array(values) / COEFFICIENT_SCALE
    return result if len(result) == count and np.isfinite(result).all() else np.zeros(count)


HIGHS_OPTIONS: dict[str, object] = {
    "output_flag": False,
    "primal_feasibility_tolerance": SOLVER_TOLERANCE,
    "dual_feasibility_tolerance": SOLVER_TOLERANCE,
    "threads": 1,
    "presolve": "off",  # little to find, and it costs more than it saves
    "solver": "simplex",
    "run_crossover": "on",
    "simplex_scale_strategy": 0,  # the coefficients are at most 1 already; scaling loses digits
}


# What is claimed about a mechanism, proved in whole numbers.
#
# A mechanism by type is a list of whole numbers, its *shares* W_t: the pair (x, y) has type t with
# probability W_t / S, S the sum over the types of x's counts. Every claim is decided here in
# integers, whatever the solver did: that every pair of neighbours is within a rational that is at
# most e^ε (`keeps`), the distortion (rounded up), and the dual bound (rounded down).
#
# Safe dual: for *any* multipliers u ≥ 0 of the moves, Σ_r min over t of r of (c + Gᵀu)_t is a lower
# bound on the optimum, G the moves' inequalities with a rational that is at least e^ε. It is
# evaluated in fixed point with every rounding directed downwards.

SHARE_BITS = 128
"""Bits behind the point of the fixed-point numbers."""


def integer_shares(weights: Array) -> Array:
    """Floats as whole numbers in the same proportions, exactly."""
    mantissa, exponent = np.frexp(np.where(weights > 0, weights, 0.0))
    whole = (mantissa * 2.0**53).astype(np.int64).astype(object)
    used = weights > 0
    least = int(exponent[used].min()) if used.any() else 0
    return np.asarray(whole << np.where(used, exponent - least, 0).astype(object))


@dataclass(frozen=True, eq=False)
class ShareCertificate:
    """The exact data of a program.

    Args:
        types: the joint types.
        masses: the probability of each combination of counts of x, with sum 1.
        cost: what showing b for a costs.
        worlds: the probability of one world with each combination of counts, up to a factor, for
            identifiability; nothing for differential privacy.
    """

    types: Types
    masses: list[Fraction]
    cost: list[list[Fraction]]
    worlds: list[Fraction] | None

    def totals(self, shares: Array) -> Array:
        """S for each combination of counts."""
        result = np.full(len(self.masses), 0, dtype=object)
        np.add.at(result, self.types.inputs, shares)
        return result

    @cached_property
    def _factors(self) -> tuple[Array, Array]:
        """Whole numbers a, b: w_source · a ≤ e^ε · w_target · b, for each move."""
        moves, inputs = self.types.moves, self.types.inputs
        above, below = moves.above.astype(object), moves.below.astype(object)
        if self.worlds is not None:
            common = math.lcm(*(mass.denominator for mass in self.worlds))
            whole = [mass.numerator * (common // mass.denominator) for mass in self.worlds]
            masses = np.array(whole, dtype=object)
            above = above * masses[inputs[moves.source]]
            below = below * masses[inputs[moves.target]]
        return above, below

    def keeps(self, shares: Array, epsilon: float) -> bool:
        """Whether the mechanism is within ε for every pair of neighbours: a proof."""
        moves, inputs = self.types.moves, self.types.inputs
        totals = self.totals(shares)
        if not (totals > 0).all():
            return False
        above, below = self._factors
        bound = exp_down(epsilon)
        left = shares[moves.source] * totals[inputs[moves.target]] * above * bound.denominator
        right = shares[moves.target] * totals[inputs[moves.source]] * below * bound.numerator
        return bool((left <= right).all())

    @cached_property
    def _prices(self) -> tuple[Array, int]:
        """d(t) as whole numbers over a common denominator."""
        common = math.lcm(*(entry.denominator for line in self.cost for entry in line))
        whole = np.array([[int(entry * common) for entry in line] for line in self.cost], object)
        tables = (part.tables.astype(object) for part in self.types.groups)
        return outer_combine(np.add, ((table * whole).sum(axis=(1, 2)) for table in tables)), common

    def distortion(self, shares: Array) -> Fraction:
        """E d(X, Y), at most 2^−120 too large."""
        prices, common = self._prices
        spent = np.full(len(self.masses), 0, dtype=object)
        np.add.at(spent, self.types.inputs, shares * prices)
        total = 0
        for mass, cost, sum_ in zip(self.masses, spent, self.totals(shares), strict=True):
            top, bottom = mass.numerator * cost, mass.denominator * sum_ * common
            total += -((-top << SHARE_BITS) // bottom)
        return Fraction(total, 1 << SHARE_BITS)

    def bound(self, multipliers: Array, epsilon: float) -> Fraction:
        """A lower bound on the distortion of every mechanism within ε."""
        used = np.flatnonzero(multipliers > 0)
        moves = self.types.moves
        prices, common = self._prices
        masses = [(mass.numerator << SHARE_BITS) // mass.denominator for mass in self.masses]
        reduced = np.array(masses, dtype=object)[self.types.inputs] * prices // common
        # Any u ≥ 0 will do, so they are rounded before they are used.
        whole = np.array([int(math.ldexp(u, SHARE_BITS)) for u in multipliers[used]], dtype=object)
        above, below = (side[used] for side in self._factors)
        top = exp_up(epsilon)
        factor = -((-top.numerator << SHARE_BITS) // top.denominator)
        np.add.at(reduced, moves.source[used], whole * above // below)
        np.subtract.at(reduced, moves.target[used], (whole * factor >> SHARE_BITS) + 1)
        order = np.argsort(self.types.inputs, kind="stable")
        starts = np.searchsorted(self.types.inputs[order], np.arange(len(self.masses)))
        least = np.minimum.reduceat(reduced[order], starts)
        return max(Fraction(0), Fraction(int(least.sum()), 1 << SHARE_BITS))


# PD-DP and PD-I: the best mechanism at one ε, repaired and certified.

CLOSED_FORM_GAP = Fraction(1, 10**11)
"""A gap at which a closed form is preferred to the program's own answer."""
SUFFICIENT_GAP = Fraction(5, 10**10)
"""A gap that ends the attempts."""
REPAIR_MARGIN = 1e-12
"""By how much less than ε the program is first asked for."""
REPAIR_ATTEMPTS = 5
MIN_WEIGHT = 1e-280


def repair_mechanism(program: Program, weights: Array, epsilon: float) -> Array:
    """From a solver's answer to a mechanism that keeps the promise.

    The closure A'(y|x) = max over x' of e^(−ε' d(x,x')) A(y|x') of a nearly feasible A keeps ε' for
    the unnormalised masses, by relaxation along moves until nothing changes. Scaling the rows back
    to sum 1 moves neighbours' ratios by how much their sums differ, very little, which ε' = ε − η
    leaves room for. Whether that was enough is decided in whole numbers (`certificate`).
    """
    moves = program.types.moves
    factor = program.left * math.exp(-epsilon)
    current = np.where(weights < MIN_WEIGHT, 0.0, weights)
    for _ in range(4 * sum(program.types.sizes) + 8):
        before = current
        current = before.copy()
        np.maximum.at(current, moves.target, before[moves.source] * factor)
        if (current <= before * (1 + 1e-15)).all():
            break
    sums = np.bincount(program.types.inputs, current, len(program.masses))
    if not (sums > 0).all():
        return np.zeros_like(current)
    return np.asarray(current / sums[program.types.inputs])


class CertifiedProgram:
    """The program of one prior, distortion and notion, to be solved at any ε."""

    def __init__(self, structure: Structure, cost: Array, notion: str) -> None:
        self.structure, self.cost, self.notion = structure, cost, notion
        need_types(structure.sizes, structure.space.values, MAX_VARIABLES)
        need_moves(structure.sizes, structure.space.values)
        types = structure.types
        private = notion == "dp"
        odds = np.ones(len(types.moves.source)) if private else structure.odds
        self.program = Program(types, structure.masses, types.cost(cost), odds)
        self.certificate = ShareCertificate(
            types,
            structure.exact_masses,
            exact_cost(cost),
            None if private else structure.world_masses,
        )
        self.floor = 0.0 if private else structure.spread

    def at(self, epsilon: float, start: Any = None) -> BestAtLevel:
        """The best mechanism found at ε ≥ ε_X (≥ 0 for differential privacy), with its bound."""
        best = self._constant()
        if self.notion == "dp":
            if epsilon == 0:  # neighbours answer alike, so all worlds do
                return replace(best, bound=best.distortion, form="constant")
            best = min(best, self._response(epsilon), key=lambda answer: answer.distortion)
        bound, basis, trouble = Fraction(0), start, ""
        margin = REPAIR_MARGIN * max(1.0, epsilon)
        for _ in range(REPAIR_ATTEMPTS):
            if epsilon - margin <= self.floor:
                margin = (epsilon - self.floor) / 2
            result = self.program.solve(epsilon - margin, basis)
            for weights, multipliers in result.guesses:
                bound = max(bound, self.certificate.bound(multipliers, epsilon))
                if best.distortion - bound > CLOSED_FORM_GAP:
                    made = self._repaired(weights, epsilon, epsilon - margin)
                    best = min(best, made or best, key=lambda answer: answer.distortion)
                if best.distortion - bound <= SUFFICIENT_GAP:
                    break
            trouble = result.trouble
            basis = None if trouble else result.basis  # a lost solver starts afresh
            if best.distortion - bound <= SUFFICIENT_GAP:
                trouble = ""
                break
            if margin <= 0 or "limit" in trouble:
                break
            margin *= 8
        return replace(best, bound=min(bound, best.distortion), basis=basis, trouble=trouble)

    def _repaired(self, weights: Array, epsilon: float, inner: float) -> BestAtLevel | None:
        """Weights closed at a level below ε, if they provably keep ε."""
        shares = integer_shares(repair_mechanism(self.program, weights, inner))
        if not self.certificate.keeps(shares, epsilon):
            return None
        structure = self.structure
        made = ByType(structure.space, structure.groups, structure.types, shares)
        return BestAtLevel(self.certificate.distortion(shares), Fraction(0), made)

    def _constant(self) -> BestAtLevel:
        value, table = best_constant(self.structure, self.cost)
        made = constant_mechanism(table, *self.cost.shape)
        return BestAtLevel(value, Fraction(0), made)

    def _response(self, epsilon: float) -> BestAtLevel:
        made = randomized_response(epsilon, self.structure.space.values)
        rows = [(len(group), self.structure.marginals[group[0]]) for group in self.structure.groups]
        costs = (many * expected_cost(row, made.matrices[0], self.cost) for many, row in rows)
        value = sum(costs, Fraction(0))
        return BestAtLevel(value, Fraction(0), made)


# PD-DP and PD-I of a whole prior: its independent parts, each solved on its own (T20).
#
# Twenty independent rows are no harder than one; the proof is in docs/theory/numbers.md.


class IndependentPart:
    """One kind of block: closed forms where there are, else the linear program."""

    def __init__(self, block: Block, cost: Array, notion: str) -> None:
        self.structure, self.copies = block.structure, block.copies
        self.cost, self.notion = cost, notion
        self.plain = is_hamming(cost)

    @cached_property
    def linear(self) -> CertifiedProgram:
        return CertifiedProgram(self.structure, self.cost, self.notion)

    @cached_property
    def form_from(self) -> float:
        """Where E_i takes over: ε̃_X, or never where it would have to be written out at length."""
        known = self.structure
        if not self.plain or (known.rows is None and known.space.worlds > MAX_CLOSED_FORM_WORLDS):
            return float("inf")
        return known_threshold(known)

    def at(self, epsilon: float, start: Any = None) -> BestAtLevel:
        known = self.structure
        if self.notion == "identifiability" and epsilon >= self.form_from:
            with suppress(ImpossibleTarget):  # ε̃_X of dependent rows is known to 1e-11 only
                return self._attains_h(identifiable_mechanism(known, epsilon), epsilon, "E_i")
        if self.notion == "dp" and self.plain and known.rows is not None:
            return likeliest_values_mechanism(known.rows[0], epsilon)
        if self.notion == "dp" and self.plain and known.spread == 0:
            response = randomized_response(epsilon, known.space.values)
            return self._attains_h(response, epsilon, "E_d")
        return self.linear.at(epsilon, start)

    def _attains_h(self, mechanism: Mechanism, epsilon: float, form: str) -> BestAtLevel:
        """T16: no mechanism has less than h(ε)."""
        value, bound = (
            Fraction(self.structure.space.rows) / (1 + g / (self.structure.space.values - 1))
            for g in (exp_down(epsilon), exp_up(epsilon))
        )
        return BestAtLevel(value, bound, mechanism, form)


class PriorProblem:
    """One prior, distortion and notion, at any finite ε that is not below its floor."""

    def __init__(self, known: Structure, cost: Array, notion: str) -> None:
        self.known = known
        self.blocks = independent_blocks(known)
        self.parts = [IndependentPart(block, cost, notion) for block in self.blocks]
        self.floor = 0.0 if notion == "dp" else known.spread

    def at(self, epsilon: float, start: Any = None) -> BestAtLevel:
        """The best mechanism at ε."""
        starts = start if start is not None else [None] * len(self.parts)
        result = [part.at(epsilon, one) for part, one in zip(self.parts, starts, strict=True)]
        times = [len(part.copies) for part in self.parts]
        forms = {answer.form for answer in result}
        return BestAtLevel(
            sum((n * a.distortion for n, a in zip(times, result, strict=True)), Fraction(0)),
            sum((n * a.bound for n, a in zip(times, result, strict=True)), Fraction(0)),
            combine_blocks(self.known, self.blocks, [answer.mechanism for answer in result]),
            forms.pop() if len(forms) == 1 else "program" if "program" in forms else "likeliest",
            [answer.basis for answer in result],
            next((answer.trouble for answer in result if answer.trouble), ""),
        )


def combine_blocks(known: Structure, parts: Sequence[Block], made: list[Mechanism]) -> Mechanism:
    """The product of the blocks' mechanisms."""
    space = known.space
    if known.rows is None:
        if len(parts) == 1 and len(parts[0].copies) == 1:
            return made[0]
        copies = (part.copies for part in parts)
        return PerBlock(space, tuple(zip(made, copies, strict=True)))  # type: ignore[arg-type]
    matrices = [row_matrix(mechanism) for mechanism in made]
    if len(matrices) == 1:
        return PerRow((matrices[0],))
    each: list[Matrix] = [matrices[0]] * space.rows
    for part, matrix in zip(parts, matrices, strict=True):
        for (row,) in part.copies:
            each[row] = matrix
    return PerRow(tuple(each))


def row_matrix(mechanism: Mechanism) -> Matrix:
    """The matrix of a mechanism on one row."""
    if isinstance(mechanism, PerRow):
        return mechanism.matrices[0]
    assert isinstance(mechanism, ByType) and mechanism.space.rows == 1
    m = mechanism.space.values
    lines = [[Fraction(0)] * m for _ in range(m)]
    totals = mechanism.totals[mechanism.types.inputs]
    for table, share, total in zip(
        mechanism.types.groups[0].tables, mechanism.shares, totals, strict=True
    ):
        a, b = divmod(int(table.argmax()), m)
        lines[a][b] = Fraction(int(share), int(total))
    return tuple(tuple(line) for line in lines)


# ε from a distortion: the least level at which it can be had.

PROGRAM_EPSILON_STEP, CLOSED_FORM_EPSILON_STEP = 1e-9, 4e-15
"""How close in ε to come where programs are solved, and where closed forms are evaluated."""
MAX_INVERSION_STEPS = 80


class LevelProblem(Protocol):
    """What has a best mechanism at every level."""

    def at(self, epsilon: float, start: Any = None) -> BestAtLevel: ...


def smallest_epsilon(
    problem: LevelProblem, wanted: Fraction, low: float, high: float
) -> tuple[float, BestAtLevel, float]:
    """The least ε at which the distortion can be had, its answer, and a certified gap in ε.

    The distortion falls with ε: a search by false position, a mechanism showing that an ε is
    enough, and a bound above the distortion proving that one is too small.

    Args:
        low: an ε below which the distortion cannot be had.
        high: one where it can, or nearly.
    """
    top, step = problem.at(high), CLOSED_FORM_EPSILON_STEP * max(1.0, high)
    while top.distortion > wanted:
        low, high, step = high, high + step, 8 * step
        top = problem.at(high, top.basis)
    tolerance = (PROGRAM_EPSILON_STEP if top.form == "program" else CLOSED_FORM_EPSILON_STEP) * max(
        1.0, high
    )
    proved, missing = low, 0.0
    spare = float(wanted - top.distortion)
    basis = top.basis
    for number in range(MAX_INVERSION_STEPS):
        if high - proved <= tolerance or high - low <= tolerance / 4:
            break
        middle = (low + high) / 2
        if missing > 0 and number % 3:  # every third step halves: no end may stay where it is
            middle = low + (high - low) * missing / (missing + spare)
            middle = min(max(middle, low + tolerance / 3), high - tolerance / 3)
        if not low < middle < high:
            break
        answer = problem.at(middle, basis)
        basis = answer.basis
        if answer.distortion <= wanted:
            high, top, spare = middle, answer, float(wanted - answer.distortion)
        else:
            low, missing = middle, float(answer.distortion - wanted)
            if answer.bound > wanted:
                proved = middle
    below = tolerance
    while high - proved > 2 * tolerance and below < high - proved:
        if problem.at(high - below, basis).bound > wanted:
            proved = high - below
            break
        below *= 4
    return high, top, max(0.0, high - proved)
