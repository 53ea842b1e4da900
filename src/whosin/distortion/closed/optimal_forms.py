"""E_d and E_i, the mechanisms in closed form (Wang14 eqs. 29, 30), exactly.

Contract: with g a rational just below e^ε, the matrices are rational, so the engine verifies them
exactly: E_d has differential privacy ln g ≤ ε, E_i has identifiability ln g ≤ ε.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.distortion.mechanisms.by_type import ByType
from whosin.distortion.mechanisms.per_row import Matrix, PerRow, identity
from whosin.distortion.symmetry.parts import Structure
from whosin.errors import ImpossibleTarget, Unsupported
from whosin.exact import Array, exp_down, flint_rational, log_up, rational
from whosin.mechanisms import Mechanism
from whosin.validation import of_kind, real, whole, within

MOST_WRITTEN = 1024
"""Worlds of an E_i that does not factorise."""


def randomized_response(epsilon: float, values: int) -> PerRow:
    """E_d: keep with probability g/(g+m−1), else one of the others uniformly."""
    whole(values, "values", 2)
    within(real(epsilon, "epsilon"), "epsilon", "at least 0")
    if epsilon == math.inf:
        return identity(values)
    g = exp_down(epsilon)
    total = g + values - 1
    letter = tuple(
        tuple((g if a == b else 1) / total for b in range(values)) for a in range(values)
    )
    return PerRow((letter,))


def identifiable(structure: Structure, epsilon: float) -> Mechanism:
    """E_i: p_Y(y) e^(−ε d) / (p_X(x) (1+(m−1)e^(−ε))^n) with p_Y = K_ε⁻¹ p_X.

    For independent rows one matrix a row; otherwise by type.

    Raises:
        ImpossibleTarget: ε is below ε̃_X, where p_Y is not a distribution.
    """
    of_kind(structure, Structure, "structure")
    if real(epsilon, "epsilon") == math.inf:
        return identity(structure.space.values)
    k = 1 / exp_down(epsilon) if epsilon > 0 else Fraction(1)
    if structure.rows is not None and structure.spread < math.inf:
        # At ε̃_X itself rounding e^ε down would miss it, so its exact value is used.
        first = _first(structure.rows, structure)
        if first > 1 / k and log_up(first) <= epsilon:
            k = 1 / first
    if k == 1:
        if structure.spread > 0:
            raise _below(structure, epsilon)
        return randomized_response(0.0, structure.space.values)
    if structure.rows is not None:
        kinds = [structure.rows[group[0]] for group in structure.groups]
        made = {row: _letter(row, k) for row in kinds}
        if any(matrix is None for matrix in made.values()):
            raise _below(structure, epsilon)
        if len(made) == 1:
            return PerRow((made[structure.rows[0]],))  # type: ignore[arg-type]
        return PerRow(tuple(made[row] for row in structure.rows))  # type: ignore[misc]
    return _by_type(structure, k, epsilon)


def threshold(structure: Structure) -> float:
    """ε̃_X, the least ε for which K_ε⁻¹ p_X is a distribution; infinite without full support (E8).

    For independent rows the largest over rows of ln(1/p_min − (m−1)); otherwise by bisection, the
    inverse applied axis by axis, from above to a relative 1e-11.
    """
    if of_kind(structure, Structure, "structure").spread == math.inf:
        return math.inf
    if structure.blocks:
        return max(threshold(block.structure) for block in structure.blocks)
    if structure.rows is not None:
        return log_up(_first(structure.rows, structure))
    if structure.space.worlds > 1 << 20:
        raise Unsupported(
            f"ε̃_X of a prior of dependent rows needs a table of {structure.space.worlds:,} worlds, "
            f"of at most {1 << 20:,}; for independent rows it has a closed form"
        )
    mass = structure.prior.on_records(structure.space, float)
    low, high = structure.spread, max(structure.spread, 1.0)
    if _is_distribution(structure, mass, max(low, 1e-12)):
        return low
    while not _is_distribution(structure, mass, high):
        low, high = high, 2 * high
    while high - low > 1e-12:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if _is_distribution(structure, mass, middle) else (middle, high)
    return high + 1e-11 * max(1.0, high)


def _first(rows: tuple[tuple[Fraction, ...], ...], structure: Structure) -> Fraction:
    """e^ε̃_X of independent rows, exactly."""
    kinds = (rows[group[0]] for group in structure.groups)
    return max(1 / min(row) - (structure.space.values - 1) for row in kinds)


def _is_distribution(structure: Structure, mass: Array, epsilon: float) -> bool:
    result = _inverse(structure, mass, math.exp(-epsilon))
    return bool(result.min() >= -1e-15 * float(mass.max()))


def _inverse(structure: Structure, mass: Array, k: Any) -> Array:
    """K_ε⁻¹ mass, axis by axis: (c v − k Σv)/(1 − k) with c = 1 + (m−1)k."""
    space = structure.space
    view = mass.reshape((space.values,) * space.rows)
    c = 1 + (space.values - 1) * k
    for row in range(space.rows):
        view = (c * view - k * view.sum(axis=row, keepdims=True)) / (1 - k)
    return np.asarray(view.reshape(-1))


def _letter(row: tuple[Fraction, ...], k: Fraction) -> Matrix | None:
    c = 1 + (len(row) - 1) * k
    weights = [(c * p - k) / (1 - k) for p in row]
    if min(weights) < 0 or min(row) == 0:
        return None
    return tuple(
        tuple(weights[b] * (1 if a == b else k) / (row[a] * c) for b in range(len(row)))
        for a in range(len(row))
    )


def _by_type(structure: Structure, k: Fraction, epsilon: float) -> ByType:
    """E_i of dependent rows: p_Y(y) k^d depends on the type only, and p_X(x) on the counts of x."""
    space, types = structure.space, structure.types
    if space.worlds > MOST_WRITTEN:
        raise Unsupported(
            f"E_i of dependent rows needs a table of {space.worlds:,} worlds, of at most "
            f"{MOST_WRITTEN:,}; for independent rows it is one small matrix a row"
        )
    mass = structure.prior.on_records(space, flint_rational)
    result = _inverse(structure, mass, flint_rational(k))
    if min(result) < 0:
        raise _below(structure, epsilon)
    masses = [rational(result[space.index(world)]) for world in structure.representatives]
    common = math.lcm(*(mass.denominator for mass in masses))
    outputs = np.array([int(mass * common) for mass in masses], dtype=object)[types.outputs]
    changed = types.cost(1.0 - np.eye(space.values)).astype(int).tolist()
    powers = [k.numerator**d * k.denominator ** (space.rows - d) for d in range(space.rows + 1)]
    shares = types.ways * outputs * np.array([powers[d] for d in changed], dtype=object)
    return ByType(space, structure.groups, types, shares)


def _below(structure: Structure, epsilon: float) -> ImpossibleTarget:
    least = threshold(structure)
    return ImpossibleTarget(
        f"E_i exists from ε̃_X = {least:.6g} on (got {epsilon:.6g}); below it the optimum has no "
        "closed form",
        least,
    )
