"""Whether one channel can be simulated from another, with a proof of either answer."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.errors import Unsupported, invalid_value, require_extras, spell
from whosin.exact import Array, flint_rational, rational
from whosin.interrupts import run_interruptibly
from whosin.mechanisms import Channel, read_channel
from whosin.notions.gains import GainMatrix
from whosin.notions.leakage import measure_vulnerabilities
from whosin.priors import Prior, Uniform
from whosin.spaces import Space

__all__ = ["Comparison", "simulates"]


def __dir__() -> list[str]:
    return __all__


# Exact linear systems of rationals, with pivots found modulo a prime.
#
# A square part that is invertible modulo a prime is invertible. That it has the whole rank is only
# likely, so whoever relies on it checks what it solved.

PIVOT_PRIME = 2**61 - 1


def find_pivots(table: Array) -> tuple[list[int], list[int]]:
    """Rows and columns of a largest invertible part."""
    if not table.size:
        return [], []
    columns = _pivot_columns(table)
    rows = _pivot_columns(table[:, columns].T) if columns else []
    return rows, columns


def _pivot_columns(table: Array) -> list[int]:
    from flint import nmod_mat

    flat = [int(each.p) * pow(int(each.q), -1, PIVOT_PRIME) % PIVOT_PRIME for each in table.ravel()]
    rows, columns = table.shape
    reduced, rank = nmod_mat(rows, columns, flat, PIVOT_PRIME).rref()
    result, column = [], 0
    for row in range(rank):
        while int(reduced[row, column]) == 0:
            column += 1
        result.append(column)
    return result


def solve_system(square: Array, right: Array) -> Array:
    """X with square · X = right."""
    if not square.size:
        return np.empty((0, right.shape[1]), dtype=object)
    if not right.size:
        return np.empty((square.shape[0], 0), dtype=object)
    return matrix_array(flint_matrix(square).solve(flint_matrix(right), algorithm="dixon"))


def multiply_rationals(left: Array, right: Array) -> Array:
    """left · right, of FLINT rationals."""
    if not left.size or not right.size:
        return np.full((left.shape[0], right.shape[1]), flint_rational(0), dtype=object)
    return matrix_array(flint_matrix(left) * flint_matrix(right))


def flint_matrix(table: Array) -> Any:
    from flint import fmpq_mat

    rows, columns = table.shape
    return fmpq_mat(rows, columns, list(table.ravel()))


def matrix_array(matrix: Any) -> Array:
    result = np.empty(matrix.nrows() * matrix.ncols(), dtype=object)
    result[:] = matrix.entries()
    return result.reshape(matrix.nrows(), matrix.ncols())


# The linear program of a simulation, in floats, and what it finds made exact.
#
# minimise Σ|B R − A| over stochastic R. At a vertex the positive entries of R are determined by the
# equations, which are solved again in rationals; where the minimum is positive, the multipliers W
# of the equations say Σ W·A > Σ_b max_a (Wᵀ B)_{ab}, which is checked in rationals too.

MAX_SIMULATION_SECONDS = 120.0
POSITIVE_THRESHOLDS = (1e-9, 1e-7, 1e-11)
"""Entries of R above this may be positive; the values are tried one after the other."""
MAX_SIMULATION_COEFFICIENTS = 1 << 22
"""Coefficients."""


def solve_simulation(source: Array, target: Array) -> tuple[Array, Array]:
    """(R, multipliers of the equations B R = A), in floats."""
    import highspy
    from scipy.sparse import bmat, identity, kron

    rows, inner = source.shape
    columns = target.shape[1]
    if rows * inner * columns > MAX_SIMULATION_COEFFICIENTS:
        raise Unsupported(
            f"the linear program of this simulation has {rows} × {inner} × {columns} "
            f"coefficients, more than {spell(MAX_SIMULATION_COEFFICIENTS)}",
            hint="compare channels with fewer worlds or outputs",
        )
    model = highspy.HighsLp()
    count, lines = inner * columns + 2 * rows * columns, rows * columns + inner
    model.num_col_, model.num_row_ = count, lines
    model.col_cost_ = np.concatenate([np.zeros(inner * columns), np.ones(2 * rows * columns)])
    model.col_lower_ = np.zeros(count)
    model.col_upper_ = np.full(count, highspy.kHighsInf)
    right = np.concatenate([target.ravel(), np.ones(inner)])
    model.row_lower_, model.row_upper_ = right, right
    # R_ba is in the equations (x, a) with B_xb, and in its row's sum; then the slacks.
    slack, every = identity(rows * columns), np.ones((1, columns))
    matrix = bmat(
        [
            [kron(source, identity(columns)), slack, -slack],
            [kron(identity(inner), every), None, None],
        ]
    ).tocsc()
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_ = matrix.indptr, matrix.indices
    model.a_matrix_.value_ = matrix.data
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    options = {"output_flag": False, "threads": 1, "solver": "simplex"}
    options |= {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    options |= {"time_limit": MAX_SIMULATION_SECONDS}
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


def _vertex_on_support(near: Array, support: Array, source: Array, target: Array) -> Array:
    """R with this support. Column by column the entries of independent columns of B follow from the
    others; these are what makes rows sum to 1."""
    inner, columns = near.shape
    result = np.full((inner, columns), flint_rational(0), dtype=object)
    free: list[tuple[int, int]] = []
    follows: list[tuple[list[int], Array, Array, list[int]]] = []
    for a in range(columns):
        used = np.flatnonzero(support[:, a])
        part = source[:, used]
        rows, first = find_pivots(part)
        own, others = used[first].tolist(), np.delete(used, first).tolist()
        base = solve_system(part[np.ix_(rows, first)], target[rows, a : a + 1])
        turn = solve_system(part[np.ix_(rows, first)], source[np.ix_(rows, others)])
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
    rows, chosen = find_pivots(system)
    rest = [number for number in range(len(free)) if number not in set(chosen)]
    kept = np.array([[flint_rational(float(near[free[number]]))] for number in rest], dtype=object)
    left = right[rows]
    if rest:
        left = left - multiply_rationals(system[np.ix_(rows, rest)], kept.reshape(len(rest), 1))
    solution = solve_system(system[np.ix_(rows, chosen)], left)
    values = {free[number]: solution[position, 0] for position, number in enumerate(chosen)}
    return values | {free[number]: kept[position, 0] for position, number in enumerate(rest)}


ROUNDED_SHARE = Fraction(1, 10**12)
"""How far a simulation of channels of floats may be off: the accuracy of floats."""


@dataclass(frozen=True)
class Comparison:
    """Whether a target can be simulated from a source.

    Attributes:
        holds: True with `simulation`, False with `gain`; None where neither was proved.
        exact: False where the channels are floats and the simulation is within their rounding.
        simulation: Pr[output of the target | output of the source], a row for each output of the
            source.
        distance: how far the simulation is from the target, at the worst world: half the sum of
            the differences of probabilities; 0 where it is exact.
        prior, gain: someone whom the target serves better than the source; guesses are called as
            the target's outputs.
        target_value, source_value: what the best guess is worth to them with either.
    """

    holds: bool | None
    exact: bool = True
    simulation: tuple[tuple[Fraction, ...], ...] | None = None
    distance: Fraction | None = None
    prior: Prior | None = None
    gain: GainMatrix | None = None
    target_value: Fraction | None = None
    source_value: Fraction | None = None


def simulates(source: object, target: object, space: Space | None = None) -> Comparison:
    """Whether what the target shows can be simulated from what the source shows: A = B·R.

    Then nobody gains more from the target, whatever they believe and whatever they guess (it is
    *refined* by the source); otherwise somebody does.

    Args:
        source, target: channels, or mechanisms together with their space.

    Raises:
        InvalidInput: they are on different spaces.
        MissingExtra: whosin[distortion] is not installed, and a linear program is needed.
    """
    one, two = (read_channel(each, space).on_worlds() for each in (source, target))
    for channel in (one, two):
        channel.need_finite("refinement")
    if one.space != two.space:
        raise invalid_value("target", f"on the source's space, {one.space!r}", repr(two.space))
    b, a = _channel_table(one), _channel_table(two)
    exact = one.exact is not None and two.exact is not None
    distinct = _distinct_rows(np.hstack([b, a]))
    merged, shares = _merge_columns(b[distinct])
    outcome = _decide_simulation(merged, a[distinct])
    if outcome.simulation is not None:
        simulation = np.array(outcome.simulation, dtype=object)
        return _simulation_result(_unmerge_columns(simulation, shares), b, a)
    if not exact and outcome.nearly is not None:
        near = _unmerge_columns(outcome.nearly, shares)
        result = _simulation_result(near, b, a)
        if result.distance is not None and result.distance <= ROUNDED_SHARE:
            return result
    if outcome.weights is None:
        return Comparison(None)
    return _refutation_result(one, two, distinct, outcome.weights)


@dataclass(frozen=True, eq=False)
class _Outcome:
    """A simulation, or weights W that separate, both FLINT rationals; or one that is near."""

    simulation: Any = None
    weights: Any = None
    nearly: Any = None


def _decide_simulation(b: Array, a: Array) -> _Outcome:
    rows, columns = find_pivots(b)
    square, full = b[np.ix_(rows, columns)], len(columns) == b.shape[1]
    solution = solve_system(square, a[rows])
    off = multiply_rationals(b[:, columns], solution) - a
    wrong, negative = np.argwhere(off != 0), np.argwhere(solution < 0)
    weights = np.full(a.shape, flint_rational(0), dtype=object)  # on one column y alone
    if len(wrong):
        # A combination u of worlds with uᵀB = 0 and uᵀA_y > 0.
        x, y = map(int, wrong[0])
        weights[rows, y] = -solve_system(square.T, b[x : x + 1, columns].T)[:, 0]
        weights[x, y] += 1
        return _Outcome(None, -weights if off[x, y] > 0 else weights, solution if full else None)
    if not full:
        return _decide_by_program(b, a, rows)
    if not len(negative):
        return _Outcome(solution)
    # u with uᵀB = −e_z, so that uᵀA_y = −R_zy > 0.
    z, y = min(negative.tolist(), key=lambda entry: solution[tuple(entry)])
    unit = np.full((len(rows), 1), flint_rational(0), dtype=object)
    unit[z, 0] = flint_rational(-1)
    weights[rows, y] = solve_system(square.T, unit)[:, 0]
    return _Outcome(None, weights, solution)


def _decide_by_program(b: Array, a: Array, rows: list[int]) -> _Outcome:
    """Where outputs of the source are combinations of others: a linear program."""
    require_extras("distortion")
    source, target = b[rows], a[rows]
    near, duals = solve_simulation(_float_table(source), _float_table(target))
    for least in POSITIVE_THRESHOLDS:
        # The vertex that floats are near to.
        simulation = _vertex_on_support(near, near > least, source, target)
        sums = (simulation.sum(axis=1) == 1).all()
        if sums and not (simulation < 0).any() and (multiply_rationals(b, simulation) == a).all():
            return _Outcome(simulation)
    for sign in (1, -1):
        weights = np.full(a.shape, flint_rational(0), dtype=object)
        for position, row in enumerate(rows):
            weights[row] = [flint_rational(sign * float(each)) for each in duals[position]]
        best = multiply_rationals(b.T, weights)
        if (weights * a).sum() > sum(max(row) for row in best):
            return _Outcome(None, weights, _make_stochastic(near))
    return _Outcome(None, None, _make_stochastic(near))


def _float_table(table: Array) -> Array:
    return np.array([[float(rational(each)) for each in row] for row in table])


def _make_stochastic(near: Array) -> Array:
    """Floats as rationals of at least 0 whose rows sum to 1."""
    positive = [[flint_rational(max(float(each), 0.0)) for each in row] for row in near]
    return np.array(
        [[each / sum(row) if sum(row) else flint_rational(0) for each in row] for row in positive],
        dtype=object,
    )


def _simulation_result(simulation: Array, b: Array, a: Array) -> Comparison:
    """A simulation, and how far it is from the target."""
    if (simulation < 0).any() or not (simulation.sum(axis=1) == 1).all():
        simulation = _make_stochastic(_float_table(simulation))
        if not (simulation.sum(axis=1) == 1).all():
            return Comparison(None)
    off = multiply_rationals(b, simulation) - a
    distance = max(rational(sum(abs(each) for each in row)) / 2 for row in off)
    rows = tuple(tuple(rational(each) for each in row) for row in simulation)
    return Comparison(True, distance == 0, rows, distance)


def _refutation_result(
    source: Channel, target: Channel, distinct: list[int], weights: Array
) -> Comparison:
    """The prior and the gain of weights, measured again by the definition of leakage."""
    count, outputs = source.space.worlds, target.outputs
    gains = [[Fraction(0)] * count for _ in outputs]
    for index, world in enumerate(distinct):
        least = min(weights[index])  # the same for all guesses: no difference to a comparison
        for y in range(len(outputs)):
            gains[y][world] = rational(weights[index, y] - least)
    gain, prior = GainMatrix(gains, outputs), Uniform()
    values = [measure_vulnerabilities(channel, prior, gain)[2] for channel in (target, source)]
    holds = False if values[0] > values[1] else None
    exact = source.exact is not None and target.exact is not None
    return Comparison(holds, exact, None, None, prior, gain, *values)


def _channel_table(channel: Channel) -> Array:
    """The entries as rationals; rows of floats are scaled to sum to 1."""
    table = channel.rationals
    if channel.exact is not None:
        return table
    return np.asarray(table / table.sum(axis=1)[:, None])


def _distinct_rows(table: Array) -> list[int]:
    """One row of each kind."""
    return list({tuple(row): number for number, row in enumerate(table)}.values())


def _merge_columns(table: Array) -> tuple[Array, list[tuple[int, Any]]]:
    """Columns that are multiples of each other as one, and for each column which one it is in; −1
    where it is never shown."""
    kinds: dict[tuple[Hashable, ...], int] = {}
    shares: list[tuple[int, Any]] = []
    for column in table.T:
        total = column.sum()
        if total == 0:
            shares.append((-1, flint_rational(0)))
            continue
        kind = kinds.setdefault(tuple(column / total), len(kinds))
        shares.append((kind, total))
    sums = [
        sum((t for p, t in shares if p == kind), flint_rational(0)) for kind in range(len(kinds))
    ]
    result = np.array(
        [[each * size for each in shape] for shape, size in zip(kinds, sums, strict=True)]
    )
    return result.T.reshape(table.shape[0], len(kinds)), shares


def _unmerge_columns(simulation: Array, shares: list[tuple[int, Any]]) -> Array:
    """A row of R for every output of the source."""
    never = [flint_rational(1), *([flint_rational(0)] * (simulation.shape[1] - 1))]
    return np.array(
        [never if kind < 0 else list(simulation[kind]) for kind, _ in shares], dtype=object
    )
