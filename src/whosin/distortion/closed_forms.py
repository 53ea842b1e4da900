"""Closed forms (Wang14 section IV): costs, bounds, E_d, E_i, and one row under DP."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from whosin.distortion.row_mechanisms import BestAtLevel, ByType, Matrix, PerRow, identity_mechanism
from whosin.distortion.symmetry import MAX_UNSTRUCTURED_WORLDS, Structure, check_size
from whosin.errors import (
    ImpossibleTarget,
    InvalidInput,
    UnknownName,
    check_kind,
    check_range,
    invalid_value,
    read_real,
    read_whole,
    spell,
)
from whosin.exact import Array, exp_down, exp_up, flint_rational, log_up, rational
from whosin.mechanisms import Mechanism
from whosin.spaces import Records

# What showing another value costs, and the answer that ignores the data.


def check_cost(space: Records, cost: object) -> Array:
    """What it costs to show b for a: values × answers, the first answers the values themselves; or
    tables × answers for a cost that is no sum over rows. Hamming where none is given.

    Spellings: "hamming"; "absolute" error of 0, 1, …, or of the numbers in "absolute=0,1,5";
    "total", the absolute error of the sum over all rows, "total=0,1,5"; "any-row", 1 where any row
    is changed. "hamming+missing=0.3" and the like let a row be shown as missing at that cost.
    """
    if cost is None or isinstance(cost, str):
        return _spelled_cost(space, cost or "hamming")
    try:
        matrix = np.asarray(cost, dtype=float)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    m, worlds = space.values, space.worlds
    if matrix.ndim != 2 or matrix.shape[1] < len(matrix) or len(matrix) not in (m, worlds):
        tables = "" if space.rows == 1 else f", or of {spell(worlds)} × {spell(worlds)} for tables"
        message = f"cost must be a matrix of {m} × {m} numbers{tables}"
        hint = "further columns are answers beside the values"
        raise InvalidInput(message, field="cost", value=cost, hint=hint)
    if not np.isfinite(matrix).all() or (matrix < 0).any() or np.diag(matrix).any():
        raise InvalidInput(
            "cost must be finite, at least 0, and 0 on the diagonal", field="cost", value=cost
        )
    return matrix


COST_NAMES = ("hamming", "absolute", "total", "any-row")
MAX_COST_TABLES = 64
"""Tables of a cost that is written out for each two of them."""


def _spelled_cost(space: Records, text: str) -> Array:
    name, _, extra = text.partition("+")
    name, _, listed = name.partition("=")
    if name not in COST_NAMES:
        raise UnknownName("cost", name, COST_NAMES)
    numbers = [rational(each.strip(), "cost") for each in listed.split(",")] if listed else None
    if numbers is not None and (name in ("hamming", "any-row") or len(numbers) != space.values):
        accepted = f"with {space.values} numbers, one for each value"
        raise invalid_value("cost", accepted if name in ("absolute", "total") else name, text)
    values = list(map(Fraction, range(space.values))) if numbers is None else numbers
    whole = name in ("total", "any-row") and space.rows > 1
    if whole:
        what, hint = f"the cost {name} is written out for", "use fewer rows or values"
        check_size(what, space.worlds, "tables", MAX_COST_TABLES, "space", hint)
        sums = [sum((values[v] for v in world), Fraction(0)) for world in space]
    else:
        sums = values
    if name in ("absolute", "total"):
        matrix = np.array([[float(abs(a - b)) for b in sums] for a in sums])
    else:
        matrix = 1.0 - np.eye(len(sums))
    if not extra:
        return matrix
    word, _, price = extra.partition("=")
    if word != "missing" or whole:
        accepted = (
            "a cost of rows, as in hamming+missing=0.3" if whole else "missing, with its cost"
        )
        raise invalid_value("cost", accepted, text)
    missing = float(check_range(rational(price, "missing"), "missing", "at least 0"))
    return np.column_stack([matrix, np.full(len(matrix), missing)])


def is_hamming(cost: Array) -> bool:
    return cost.shape[0] == cost.shape[1] and bool((cost == 1.0 - np.eye(len(cost))).all())


def exact_cost(cost: Array) -> list[list[Fraction]]:
    """The matrix as it was written."""
    return [[rational(float(entry)) for entry in line] for line in cost]


def expected_cost(row: Sequence[Fraction], matrix: object, cost: Array) -> Fraction:
    """Σ_a p(a) Σ_b matrix[a][b] cost[a][b], exactly."""
    total = Fraction(0)
    for mass, line, prices in zip(row, matrix, exact_cost(cost), strict=True):  # type: ignore[call-overload]
        priced = zip(line, prices, strict=True)
        total += mass * sum((share * price for share, price in priced), Fraction(0))
    return total


def best_constant(structure: Structure, cost: Array) -> tuple[Fraction, Sequence[int]]:
    """The answer that ignores the data: its distortion, and the value shown for each row."""
    return _best_constant(structure, tuple(map(tuple, cost.tolist())))


@lru_cache(maxsize=16)
def _best_constant(
    structure: Structure, cost: tuple[tuple[float, ...], ...]
) -> tuple[Fraction, Sequence[int]]:
    total, answers = Fraction(0), [0] * structure.space.rows
    prices = exact_cost(np.array(cost))
    known: dict[tuple[Fraction, ...], tuple[Fraction, int]] = {}
    for group in structure.groups:
        row = structure.marginals[group[0]]
        if row not in known:
            values, shown = range(len(row)), range(len(prices[0]))
            expected = [sum((row[a] * prices[a][b] for a in values), Fraction(0)) for b in shown]
            known[row] = min((price, b) for b, price in enumerate(expected))
        least, answer = known[row]
        total += len(group) * least
        for position in group:
            answers[position] = answer
    return total, answers


# Distortion and privacy in closed form (Wang, Ying, Zhang 2014, section IV).
#
# Hamming distortion of n rows of m values: h(ε) = n / (1 + e^ε/(m−1)) is what randomised response
# costs, and what the relaxed program R-PD costs at best (Lemma 1).


def hamming_distortion(space: Records, epsilon: float) -> float:
    """h(ε) = n / (1 + e^ε/(m−1)), for any real ε; h(∞) = 0."""
    check_kind(space, Records, "space", "Records(rows, values)")
    if read_real(epsilon, "epsilon") > 700:
        return space.rows * (space.values - 1) * math.exp(-epsilon)
    return space.rows / (1 + math.exp(epsilon) / (space.values - 1))


def h_inverse(space: Records, distortion: float) -> float:
    """h⁻¹(D) = ln(n/D − 1) + ln(m−1), for 0 ≤ D ≤ n; infinite at the ends."""
    check_kind(space, Records, "space", "Records(rows, values)")
    if not 0 <= read_real(distortion, "distortion") <= space.rows:
        raise invalid_value(
            "distortion", f"between 0 and the number of rows, {space.rows}", distortion
        )
    if distortion == 0:
        return math.inf
    if distortion == space.rows:
        return -math.inf
    return math.log(space.rows / distortion - 1) + math.log(space.values - 1)


def entropy_bound(space_rows: int, values: int, entropy: float, distortion: float) -> float:
    """Shannon's lower bound for Hamming distortion: H(X) − n h₂(D/n) − D ln(m−1), at least 0.

    It is attained for D ≤ h(ε̃_X) (T17; for i.i.d. rows that is D/n ≤ (m−1) p_min).
    """
    share = distortion / space_rows
    if share >= (values - 1) / values:
        return 0.0
    spread = 0.0 if share == 0 else -share * math.log(share) - (1 - share) * math.log1p(-share)
    return max(0.0, entropy - space_rows * (spread + share * math.log(values - 1)))


# E_d and E_i, the mechanisms in closed form (Wang14 eqs. 29, 30), exactly.
#
# With g a rational just below e^ε, the matrices are rational, so the engine verifies them exactly:
# E_d has differential privacy ln g ≤ ε, E_i has identifiability ln g ≤ ε.

MAX_CLOSED_FORM_WORLDS = 1024
"""Worlds of an E_i that does not factorise."""
MAX_THRESHOLD_WORLDS = 1 << 20
"""Worlds of dependent rows whose ε̃_X is searched for."""


def randomized_response(epsilon: float, values: int) -> PerRow:
    """E_d: keep with probability g/(g+m−1), else one of the others uniformly."""
    read_whole(values, "values", 2)
    check_range(read_real(epsilon, "epsilon"), "epsilon", "at least 0")
    if epsilon == math.inf:
        return identity_mechanism(values)
    g = exp_down(epsilon)
    total = g + values - 1
    letter = tuple(
        tuple((g if a == b else 1) / total for b in range(values)) for a in range(values)
    )
    return PerRow((letter,))


def identifiable_mechanism(structure: Structure, epsilon: float) -> Mechanism:
    """E_i: p_Y(y) e^(−ε d) / (p_X(x) (1+(m−1)e^(−ε))^n) with p_Y = K_ε⁻¹ p_X.

    For independent rows one matrix a row; otherwise by type.

    Raises:
        ImpossibleTarget: ε is below ε̃_X, where p_Y is not a distribution.
    """
    check_kind(structure, Structure, "structure")
    if read_real(epsilon, "epsilon") == math.inf:
        return identity_mechanism(structure.space.values)
    k = 1 / exp_down(epsilon) if epsilon > 0 else Fraction(1)
    if structure.rows is not None and structure.spread < math.inf:
        # At ε̃_X itself rounding e^ε down would miss it, so its exact value is used.
        first = _row_threshold(structure.rows, structure)
        if first > 1 / k and log_up(first) <= epsilon:
            k = 1 / first
    if k == 1:
        if structure.spread > 0:
            raise _refuse_below_threshold(structure, epsilon)
        return randomized_response(0.0, structure.space.values)
    if structure.rows is not None:
        kinds = [structure.rows[group[0]] for group in structure.groups]
        made = {row: _row_matrix(row, k) for row in kinds}
        if any(matrix is None for matrix in made.values()):
            raise _refuse_below_threshold(structure, epsilon)
        if len(made) == 1:
            return PerRow((made[structure.rows[0]],))  # type: ignore[arg-type]
        return PerRow(tuple(made[row] for row in structure.rows))  # type: ignore[misc]
    return _type_mechanism(structure, k, epsilon)


def least_threshold(structure: Structure) -> float:
    """ε̃_X, the least ε for which K_ε⁻¹ p_X is a distribution; infinite without full support (E8).

    For independent rows the largest over rows of ln(1/p_min − (m−1)); otherwise by bisection, the
    inverse applied axis by axis, from above to a relative 1e-11.
    """
    if check_kind(structure, Structure, "structure").spread == math.inf:
        return math.inf
    if structure.blocks:
        return max(least_threshold(block.structure) for block in structure.blocks)
    if structure.rows is not None:
        return log_up(_row_threshold(structure.rows, structure))
    what, hint = (
        "ε̃_X of dependent rows needs a table of",
        "for independent rows it has a closed form",
    )
    check_size(what, structure.space.worlds, "worlds", MAX_THRESHOLD_WORLDS, "prior", hint)
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


def _row_threshold(rows: tuple[tuple[Fraction, ...], ...], structure: Structure) -> Fraction:
    """e^ε̃_X of independent rows, exactly."""
    kinds = (rows[group[0]] for group in structure.groups)
    return max(1 / min(row) - (structure.space.values - 1) for row in kinds)


def _is_distribution(structure: Structure, mass: Array, epsilon: float) -> bool:
    result = _apply_inverse_kernel(structure, mass, math.exp(-epsilon))
    return bool(result.min() >= -1e-15 * float(mass.max()))


def _apply_inverse_kernel(structure: Structure, mass: Array, k: Any) -> Array:
    """K_ε⁻¹ mass, axis by axis: (c v − k Σv)/(1 − k) with c = 1 + (m−1)k."""
    space = structure.space
    view = mass.reshape((space.values,) * space.rows)
    c = 1 + (space.values - 1) * k
    for row in range(space.rows):
        view = (c * view - k * view.sum(axis=row, keepdims=True)) / (1 - k)
    return np.asarray(view.reshape(-1))


def _row_matrix(row: tuple[Fraction, ...], k: Fraction) -> Matrix | None:
    c = 1 + (len(row) - 1) * k
    weights = [(c * p - k) / (1 - k) for p in row]
    if min(weights) < 0 or min(row) == 0:
        return None
    return tuple(
        tuple(weights[b] * (1 if a == b else k) / (row[a] * c) for b in range(len(row)))
        for a in range(len(row))
    )


def _type_mechanism(structure: Structure, k: Fraction, epsilon: float) -> ByType:
    """E_i of dependent rows: p_Y(y) k^d depends on the type only, and p_X(x) on the counts of x."""
    space, types = structure.space, structure.types
    what, hint = "E_i of dependent rows needs a table of", "independent rows need one matrix each"
    check_size(what, space.worlds, "worlds", MAX_CLOSED_FORM_WORLDS, "prior", hint)
    mass = structure.prior.on_records(space, flint_rational)
    result = _apply_inverse_kernel(structure, mass, flint_rational(k))
    if min(result) < 0:
        raise _refuse_below_threshold(structure, epsilon)
    masses = [rational(result[space.index(world)]) for world in structure.representatives]
    common = math.lcm(*(mass.denominator for mass in masses))
    outputs = np.array([int(mass * common) for mass in masses], dtype=object)[types.outputs]
    changed = types.cost(1.0 - np.eye(space.values)).astype(int).tolist()
    powers = [k.numerator**d * k.denominator ** (space.rows - d) for d in range(space.rows + 1)]
    shares = types.ways * outputs * np.array([powers[d] for d in changed], dtype=object)
    return ByType(space, structure.groups, types, shares)


def _refuse_below_threshold(structure: Structure, epsilon: float) -> ImpossibleTarget:
    least = least_threshold(structure)
    message = f"E_i exists from ε̃_X = {spell(least)} on, and epsilon is {spell(epsilon)}"
    hint = "below it the optimum has no closed form"
    return ImpossibleTarget(message, least, field="epsilon", value=epsilon, hint=hint)


# Closed-form bounds on the optimum, for either quantity (T16, T17; Wang14 Theorems 1, 2).


def distortion_bounds(
    structure: Structure, cost: Array, notion: str, epsilon: float
) -> tuple[float, float]:
    """What T16 says about the least distortion at ε.

    dp: h(ε + ε_X) ≤ D ≤ h(ε). identifiability: D = h(ε) from ε̃_X on, D ≥ h(ε) before; no mechanism
    below ε_X. mutual information: Shannon's bound turned round, and the chord of a convex curve.
    Whatever the notion a constant answer bounds D from above. Another distortion than Hamming has
    only the latter.
    """
    space = structure.space
    most = float(best_constant(structure, cost)[0])
    if not is_hamming(cost):
        return 0.0, most
    if notion == "dp":
        low = hamming_distortion(space, epsilon + structure.spread)
        return min(low, most), hamming_distortion(space, epsilon)
    if notion == "identifiability":
        value = hamming_distortion(space, epsilon)
        tight = epsilon >= known_threshold(structure)
        return min(value, most), value if tight else most
    whole = structure.entropy
    if epsilon >= whole:
        return 0.0, 0.0
    low, high = 0.0, most
    for _ in range(200):
        middle = (low + high) / 2
        above = entropy_bound(space.rows, space.values, whole, middle) > epsilon
        low, high = (middle, high) if above else (low, middle)
    return low, most * (1 - epsilon / whole)


def epsilon_bounds(
    structure: Structure, cost: Array, notion: str, distortion: float
) -> tuple[float, float]:
    """What T16 says about the least ε (or mutual information) at a distortion."""
    space, most = structure.space, float(best_constant(structure, cost)[0])
    spread = structure.spread
    if notion == "mutual-information":
        whole = structure.entropy
        chord = whole * max(0.0, 1 - distortion / most) if most else 0.0
        if not is_hamming(cost):
            return 0.0, chord
        return min(entropy_bound(space.rows, space.values, whole, distortion), chord), chord
    if not is_hamming(cost):
        return (spread if notion == "identifiability" else 0.0), math.inf
    exact = h_inverse(space, distortion)
    if notion == "dp":
        low = exact - spread if spread < math.inf else 0.0
        if exact == math.inf:
            low = math.inf
        return max(low, 0.0), max(exact, 0.0)
    least = max(exact, spread)
    if spread == math.inf:
        return math.inf, math.inf
    if exact >= known_threshold(structure):
        return exact, exact
    return least, max(least, known_threshold(structure))


def stated_threshold(structure: Structure) -> float | None:
    """ε̃_X, or nothing where it is out of reach."""
    result = known_threshold(structure)
    return None if result == math.inf and structure.spread < math.inf else result


def known_threshold(structure: Structure) -> float:
    """ε̃_X, or infinity where it is out of reach: the bounds then stay valid, and are looser."""
    if check_kind(structure, Structure, "structure").blocks:
        return max(known_threshold(block.structure) for block in structure.blocks)
    if structure.rows is None and structure.space.worlds > MAX_UNSTRUCTURED_WORLDS:
        return math.inf
    return least_threshold(structure)


# One row under differential privacy, Hamming distortion: the best mechanism in closed form (T21).
#
# Keep the k likeliest values. Among them answer by randomised response; a value outside them is
# answered by any of the k, uniformly. The proof is in docs/theory/numbers.md.


def kept_values(row: tuple[Fraction, ...], g: Fraction) -> tuple[list[int], Fraction]:
    """(the values that the best mechanism answers with, its distortion), with g for e^ε."""
    order = sorted(range(len(row)), key=lambda value: -row[value])
    kept = list(accumulate(row[value] for value in order))
    many = min(range(1, len(row) + 1), key=lambda k: _kept_distortion(kept, g, k))
    return order[:many], _kept_distortion(kept, g, many)


def likeliest_values_mechanism(row: tuple[Fraction, ...], epsilon: float) -> BestAtLevel:
    """The best mechanism for one row with this distribution, and the bound that it meets."""
    low, high = exp_down(epsilon), exp_up(epsilon)
    outputs, distortion = kept_values(row, low)
    many = len(outputs)
    kept = list(accumulate(sorted(row, reverse=True)))
    # e^ε is between the two rationals, and the distortion falls with it.
    bound = min(_kept_distortion(kept, high, k) for k in range(1, len(row) + 1))
    form = "constant" if many == 1 else "E_d" if many == len(row) else "likeliest"
    matrix = _response_matrix(outputs, len(row), low)
    return BestAtLevel(distortion, bound, PerRow((matrix,)), form)


def _kept_distortion(kept: list[Fraction], g: Fraction, k: int) -> Fraction:
    """What keeping the k likeliest costs, with g for e^ε."""
    return kept[k - 1] * (k - 1) / (g + k - 1) + 1 - kept[k - 1]


def _response_matrix(outputs: list[int], values: int, g: Fraction) -> Matrix:
    total = g + len(outputs) - 1
    inside = set(outputs)

    def entry(a: int, b: int) -> Fraction:
        if b not in inside:
            return Fraction(0)
        if a not in inside:
            return Fraction(1, len(outputs))
        return (g if a == b else Fraction(1)) / total

    return tuple(tuple(entry(a, b) for b in range(values)) for a in range(values))
