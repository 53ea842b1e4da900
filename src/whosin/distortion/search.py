"""`best`: the best mechanism for a level or a distortion, for one prior, a set of priors, or a
whole curve.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whosin.distortion.closed_forms import (
    best_constant,
    check_cost,
    distortion_bounds,
    epsilon_bounds,
    exact_cost,
    expected_cost,
    h_inverse,
    is_hamming,
    stated_threshold,
)
from whosin.distortion.program import PriorProblem, smallest_epsilon
from whosin.distortion.rate import measure_information, rate_optimum
from whosin.distortion.row_mechanisms import (
    NOTION_NAMES,
    BestAtLevel,
    Matrix,
    Optimum,
    PerRow,
    constant_mechanism,
    exact_matrix,
    identity_mechanism,
)
from whosin.distortion.symmetry import Structure, check_size, find_structure
from whosin.errors import ImpossibleTarget, UnknownName, Unsupported, invalid_value, spell
from whosin.exact import Array, exp_down, exp_up, log_up, rational, round_down, round_up
from whosin.extras import require_extras
from whosin.mechanisms import Mechanism
from whosin.priors import Independent, Prior, PriorSet
from whosin.priors.sets import Row, RowSet
from whosin.spaces import Records, Space
from whosin.validation import read_list, read_whole, require_exactly_one

# The best mechanism for one row against every distribution of a set, and the worst of these (T26).
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
        odds: ρ for each two different values; at most `least`.
        least, most: rationals just below and just above e^ε.
    """
    points = [members.likeliest(0)]
    for _ in range(MAX_ROUNDS):
        near, shares, multipliers = _solve_program(points, cost, odds, float(least))
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
    return RowOptimum(matrix, value, _dual_bound(member, exact, odds, multipliers, most), member)


def _solve_program(
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
    known = np.array([(_point_floats(point)[:, None] * cost).ravel() for point in points])
    extra = len(lines) + np.arange(len(points))
    data = [np.repeat(ratio / size, m), np.repeat(-top / size, m), known.ravel()]
    row = [lines, lines, np.repeat(extra, m * m)]
    column = [left, right, np.tile(np.arange(m * m), len(points))]
    entries = np.concatenate([*data, np.full(len(points), -1.0)])
    place = np.concatenate([*row, extra]), np.concatenate([*column, np.full(len(extra), m * m)])
    upper = coo_matrix((entries, place), shape=(len(lines) + len(points), m * m + 1))
    totals = np.repeat(outputs, m), np.arange(m * m)
    sums = coo_matrix((np.ones(m * m), totals), shape=(m, m * m + 1))
    goal = np.append(np.zeros(m * m), 1.0)
    zeros = np.zeros(upper.shape[0])
    solution = linprog(
        goal, upper.tocsr(), zeros, sums.tocsr(), np.ones(m), method="highs", options=SOLVER_OPTIONS
    )
    if solution.x is None or not np.isfinite(solution.x).all():  # a constant answer, and no bound
        even = np.full((m, m), 1 / m)
        return even, np.ones(len(points)), np.zeros((len(pairs), m))
    duals = np.maximum(-solution.ineqlin.marginals, 0.0)
    ratios = duals[: len(lines)].reshape(-1, m) / size[:, None]
    return solution.x[:-1].reshape(m, m), duals[len(lines) :], ratios


def _mix_until_private(near: Array, odds: Odds, top: Fraction) -> Matrix:
    """The mechanism mixed with an answer that ignores the row, as little as makes it private."""
    kept = _level_rows(np.where(near > SOLVER_NOISE, near, 0.0), odds, top)
    matrix, m = exact_matrix(kept), len(near)
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
    m = len(member)
    prices = [[member[x] * cost[x][y] for y in range(m)] for x in range(m)]
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


# The least distortion at a level against every prior of a set (T26): row by row.

MAX_PRIOR_SET_VALUES = 24
"""Values of a row: a program has about the cube of this number of constraints."""
WORST_PRIOR_NOTE = (
    "distortion is that of the worst prior of the set, and mutual information that of the "
    "least favourable one found"
)


def best_over(
    space: Space, prior: PriorSet, cost: object, notion: str, epsilon: float | None
) -> Optimum:
    """The mechanism whose distortion under its worst prior of the set is least."""
    if not isinstance(space, Records):
        raise invalid_value("space", "Records(rows, values)", repr(space))
    prior.of_rows(space)  # it fits
    sets, matrix = prior.sets, check_cost(space, cost)
    if epsilon is None or notion == "mutual-information":
        asked = "an epsilon of dp or identifiability"
        message = f"the best mechanism for a set of priors is known for {asked} only"
        hint = 'give an epsilon, and "dp" or "identifiability" as notion'
        raise Unsupported(message, field="notion", value=notion, hint=hint)
    what, hint = "a set of priors has rows of", "use fewer values"
    check_size(what, space.values, "values", MAX_PRIOR_SET_VALUES, "values", hint)
    if epsilon == math.inf:
        learned = find_structure(space, _one_prior([one.likeliest(0) for one in sets])).entropy
        result = (0.0, epsilon, learned, identity_mechanism(space.values), 0.0)
        note = "no distortion: the data themselves; mutual information is of one prior of the set"
        return Optimum(space, notion, "epsilon", *result, 0.0, 0.0, ("T26",), note)
    floor = Fraction(1)
    if notion == "identifiability":
        spread = log_up(prior.spread) if isinstance(prior.spread, Fraction) else math.inf
        check_identifiability(epsilon, spread, "a prior of the set")
        floor, epsilon = Fraction(prior.spread), max(epsilon, spread)
    least, most = max(exp_down(epsilon), floor), max(exp_up(epsilon), floor)
    best = {}
    for one in dict.fromkeys(sets):
        pairs = ((a, b) for a in range(one.values) for b in range(one.values) if a != b)
        odds = one.all_odds() if notion == "identifiability" else dict.fromkeys(pairs, Fraction(1))
        exact = {pair: Fraction(ratio) for pair, ratio in odds.items()}
        best[one] = best_row(one, matrix, exact, least, most)
    times = Counter(sets) if len(sets) > 1 else {sets[0]: space.rows}
    value = sum((n * best[one].distortion for one, n in times.items()), Fraction(0))
    bound = sum((n * best[one].bound for one, n in times.items()), Fraction(0))
    made = PerRow(tuple(best[one].matrix for one in (sets if len(best) > 1 else sets[:1])))
    known = find_structure(space, _one_prior([best[one].member for one in sets]))
    gap = round_up(max(value - bound, Fraction(0)))
    result = (round_up(value), epsilon, measure_information(known, made), made, gap)
    ends = (round_down(bound), round_up(value))
    return Optimum(space, notion, "epsilon", *result, *ends, ("T26",), WORST_PRIOR_NOTE)


def _one_prior(rows: list[Row]) -> Independent:
    """The prior with these rows, or with one distribution for any number of rows."""
    return Independent(rows if len(rows) > 1 else rows[0])


# The best mechanism for a level of privacy, or the most privacy for a distortion.

MAX_DISTORTION_EPSILON = 700.0
"""Beyond this ε, e^ε does not fit into a float, and a mechanism may as well show the data."""

CLOSED_FORMS = {
    "E_i": (("T16", "T17"), "closed form E_i, also best for mutual information"),
    "E_d": (("T16", "T20", "T21"), "closed form E_d: randomised response"),
    "constant": (("T16", "T20", "T21"), "a constant answer is best"),
    "likeliest": (
        ("T16", "T20", "T21"),
        "closed form: row by row, randomised response among the likeliest values",
    ),
    "program": (("T16",), ""),
}
"""What there is to say about an answer: theorems, and a note."""


def best(
    space: Space,
    prior: Prior,
    epsilon: object = None,
    distortion: object = None,
    notion: str = "dp",
    cost: object = None,
) -> Optimum:
    """The mechanism with the least distortion at ε, or with the least ε at a distortion.

    Args:
        space: `Records(rows, values)`.
        prior: how the data are distributed. Independent rows or blocks, and rows that it treats
            alike, make large tables possible. For a set (`Hull`, `Box`) the distortion of its worst
            member counts, at an ε of "dp" or "identifiability".
        epsilon: the level: ε, or nats of mutual information.
        distortion: or the expected distortion to stay within.
        notion: "dp" (replace), "identifiability" or "mutual-information".
        cost: m × m, what showing b for a costs; Hamming by default.

    Raises:
        MissingExtra: whosin[distortion] is not installed.
        InvalidInput: a negative ε, a distortion outside [0, n], a prior that does not fit.
        ImpossibleTarget: identifiability below ε_X, which no mechanism reaches.
        Unsupported: a size beyond reach; the message says which structure would help.
    """
    require_extras("distortion")
    if notion not in NOTION_NAMES:
        raise UnknownName("notion", str(notion), NOTION_NAMES)
    require_exactly_one(epsilon=epsilon, distortion=distortion)
    if isinstance(prior, PriorSet):
        level = None if epsilon is None else _read_level(epsilon, notion)
        return best_over(space, prior, cost, notion, level)
    known = find_structure(space, prior)
    matrix = check_cost(known.space, cost)
    if epsilon is not None:
        return best_at_epsilon(known, matrix, notion, _read_level(epsilon, notion))
    most = rational(known.space.rows) * rational(float(matrix.max()))
    wanted = rational(distortion, "distortion")
    if not 0 <= wanted <= most:
        raise invalid_value("distortion", f"from 0 to {spell(most)}", spell(wanted))
    return best_at_distortion(known, matrix, notion, wanted)


def _read_level(epsilon: object, notion: str) -> float:
    value = math.inf if epsilon in (math.inf, "inf") else float(rational(epsilon, "epsilon"))
    if value < 0:
        raise invalid_value("epsilon", "at least 0", spell(value))
    if MAX_DISTORTION_EPSILON < value < math.inf and notion != "mutual-information":
        raise invalid_value(
            "epsilon", f"at most {spell(MAX_DISTORTION_EPSILON)}, or infinite", spell(value)
        )
    return value


def best_at_epsilon(known: Structure, cost: Array, notion: str, epsilon: float) -> Optimum:
    """The best mechanism at ε, or at a number of nats."""
    space, plain = known.space, is_hamming(cost)
    if notion == "identifiability":
        check_identifiability(epsilon, known.spread, "the prior")
    bounds = distortion_bounds(known, cost, notion, epsilon)

    def ends(value: float, mechanism: Mechanism, information: float) -> Optimum:
        result = (value, epsilon, information, mechanism, 0.0)
        return Optimum(space, notion, "epsilon", *result, *bounds)

    if epsilon == math.inf or (notion == "mutual-information" and epsilon >= known.entropy):
        return ends(0.0, identity_mechanism(space.values), known.entropy)
    if notion == "mutual-information":
        if epsilon == 0:
            value, table = best_constant(known, cost)
            return ends(round_up(value), constant_mechanism(table, space.values), 0.0)
        return rate_optimum(known, cost, epsilon=epsilon)
    problem = PriorProblem(known, cost, notion)
    epsilon = max(epsilon, problem.floor)
    answer = problem.at(epsilon)
    theorems, note = describe_answer(answer, plain)
    solved = answer.form == "program"
    if notion == "identifiability" and epsilon <= known.spread and solved:
        note = "at ε_X the program has no interior, so nothing better could be proved feasible"
    least = round_up(answer.distortion) if solved else float(answer.distortion)
    result = (least, epsilon, measure_information(known, answer.mechanism), answer.mechanism)
    gap = round_up(answer.gap) if solved else 0.0
    return Optimum(space, notion, "epsilon", *result, gap, *bounds, theorems, note)


def describe_answer(answer: BestAtLevel, plain: bool) -> tuple[tuple[str, ...], str]:
    """The theorems that an answer rests on, and a note."""
    theorems, note = CLOSED_FORMS[answer.form]
    if answer.trouble:
        note = f"the solver stopped early ({answer.trouble}): the gap is what was proved"
    return (theorems if plain else ()), note


def check_identifiability(epsilon: float, spread: float, whose: str) -> None:
    """Refuse an ε below what a prior, or a set of them, alone gives away."""
    if spread == math.inf and epsilon < math.inf:
        message = f"{whose} has zeros, so no mechanism has finite identifiability"
        raise ImpossibleTarget(message, math.inf, field="epsilon", value=epsilon)
    if epsilon < spread and not math.isclose(epsilon, spread, rel_tol=1e-14):
        known = f"{whose} alone gives away ε_X = {spell(spread)}"
        message = f"no mechanism has identifiability {spell(epsilon)}: {known}"
        hint = f"use an epsilon of at least {spell(spread)}"
        raise ImpossibleTarget(message, spread, field="epsilon", value=epsilon, hint=hint)


def best_at_distortion(known: Structure, cost: Array, notion: str, wanted: Fraction) -> Optimum:
    """The mechanism with the least ε (or mutual information) within a distortion."""
    space, plain = known.space, is_hamming(cost)
    bounds = epsilon_bounds(known, cost, notion, float(wanted))

    def ends(level: float, value: float, made: Mechanism, learned: float, note: str) -> Optimum:
        result = (value, level, learned, made, 0.0)
        return Optimum(space, notion, "distortion", *result, *bounds, (), note)

    if notion == "identifiability" and known.spread == math.inf:
        note = (
            "the prior has zeros: ε_X is infinite, and so is the identifiability of any mechanism"
        )
        return ends(math.inf, 0.0, identity_mechanism(space.values), known.entropy, note)
    most, table = best_constant(known, cost)
    if wanted >= most:
        floor = known.spread if notion == "identifiability" else 0.0
        made = constant_mechanism(table, space.values)
        return ends(floor, round_up(most), made, 0.0, "a constant answer is within the distortion")
    if wanted == 0:
        level = known.entropy if notion == "mutual-information" else math.inf
        exact = identity_mechanism(space.values)
        return ends(level, 0.0, exact, known.entropy, "no distortion: the data themselves")
    if notion == "mutual-information":
        return rate_optimum(known, cost, distortion=float(wanted))
    problem = PriorProblem(known, cost, notion)
    low, high = max(bounds[0], problem.floor), bounds[1]
    if not math.isfinite(high):
        high = max(1.0, 2 * low)
        while problem.at(high).distortion > wanted:
            low, high = high, 2 * high
    level, answer, gap = smallest_epsilon(problem, wanted, low, high)
    theorems, note = describe_answer(answer, plain)
    learned = measure_information(known, answer.mechanism)
    result = (round_up(answer.distortion), level, learned, answer.mechanism, gap)
    return Optimum(space, notion, "distortion", *result, *bounds, theorems, note)


# The three curves of one prior: distortion against ε, identifiability and information.

MIN_CHANGED_SHARE = 0.04
"""Curves end at this share of changed rows: below it ε grows without bound."""


@dataclass(frozen=True, eq=False)
class Curves:
    """Points of each curve by growing privacy level, each an optimum with its bounds."""

    spread: float
    threshold: float | None
    points: dict[str, list[Optimum]]
    skipped: dict[str, str]


def curves(
    space: Space,
    prior: Prior,
    notions: Sequence[str] = NOTION_NAMES,
    points: int = 13,
    cost: object = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Curves:
    """Optima along each curve.

    Args:
        points: how many to compute for each notion.
        progress: called with the notion, how many points are done and how many there are.
    """
    require_extras("distortion")
    read_whole(points, "points", 2)
    for notion in read_list(notions, "notions", f"a list of {', '.join(NOTION_NAMES)}"):
        if notion not in NOTION_NAMES:
            raise UnknownName("notion", str(notion), NOTION_NAMES)
    known = find_structure(space, prior)
    result: dict[str, list[Optimum]] = {}
    skipped: dict[str, str] = {}
    for notion in notions:
        if notion == "identifiability" and known.spread == math.inf:
            skipped[notion] = "the prior has zeros: ε_X is infinite"
            continue
        levels = _curve_levels(known, notion, points, cost)
        result[notion] = []
        for number, level in enumerate(levels):
            if progress is not None:
                progress(notion, number, len(levels))
            given = "distortion" if notion == "mutual-information" else "epsilon"
            result[notion].append(best(space, prior, notion=notion, cost=cost, **{given: level}))
        if progress is not None:
            progress(notion, len(levels), len(levels))
    return Curves(known.spread, stated_threshold(known), result, skipped)


def _curve_levels(known: Structure, notion: str, points: int, cost: object) -> list[float]:
    """The levels to compute: ε, or for information the distortions, from much privacy to little."""
    space = known.space
    most = float(best_constant(known, check_cost(space, cost))[0])
    top = h_inverse(space, MIN_CHANGED_SHARE * space.rows)
    if notion == "mutual-information":
        return [
            float(d) for d in np.linspace(most, MIN_CHANGED_SHARE * min(most, space.rows), points)
        ]
    if notion == "dp":
        return [float(e) for e in np.linspace(0.0, top, points)]
    low, high = known.spread, max(top, known.spread + 1.0)
    if known.rows is None:
        low += 1e-3 * (high - low)  # at ε_X itself the program has no interior
    return [float(e) for e in np.linspace(low, high, points)]
