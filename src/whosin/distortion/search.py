"""`best`: the best mechanism for a level or a distortion, for one prior, a set of priors, or a
whole curve.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np

from whosin.distortion.closed_forms import (
    best_constant,
    check_cost,
    distortion_bounds,
    epsilon_bounds,
    h_inverse,
    is_hamming,
    stated_threshold,
)
from whosin.distortion.program import PriorProblem, row_matrix, smallest_epsilon
from whosin.distortion.rate import measure_information, rate_optimum
from whosin.distortion.row_mechanisms import (
    NOTION_NAMES,
    BestAtLevel,
    ByTable,
    Optimum,
    constant_mechanism,
    identity_mechanism,
)
from whosin.distortion.set_programs import MAX_TABLE_CELLS, SetProgram, is_of_tables, sum_costs
from whosin.distortion.symmetry import Structure, check_size, find_structure, need_worlds, one_row
from whosin.errors import (
    ImpossibleTarget,
    UnknownName,
    Unsupported,
    invalid_value,
    read_list,
    read_whole,
    require_exactly_one,
    require_extras,
    shorten,
    spell,
)
from whosin.exact import Array, rational, round_down, round_up
from whosin.mechanisms import Mechanism
from whosin.priors import Prior, PriorSet
from whosin.priors.sets import Mixtures, Row
from whosin.spaces import Records, Space

# A set of priors, a cost with more answers than values, or one of whole tables: one program.

WORST_PRIOR_NOTE = (
    "distortion is that of the worst prior of the set, and mutual information that of the "
    "least favourable one found"
)


def set_program(space: Records, prior: Prior, cost: Array, notion: str) -> SetProgram | None:
    """The program of a set of priors, of a cost of whole tables, or of answers beside the values;
    nothing where the prior's own structure serves better."""
    tables = is_of_tables(space, cost)
    known = None if isinstance(prior, PriorSet) else find_structure(space, prior)
    if known is not None and not tables and cost.shape == (space.values,) * 2:
        return None
    if known is None:
        assert isinstance(prior, PriorSet)
        whole = prior.of_tables(space)
        if whole is None and tables:
            message = "a cost of whole tables is for one prior, or for a set of priors of tables"
            raise Unsupported(message, field="cost", hint="give a cost of single rows")
        if whole is None:
            prior.of_rows(space)  # it fits
            return SetProgram(space, prior.sets, cost, notion)
    elif known.rows is not None and not tables:
        return SetProgram(space, tuple(Mixtures((row,)) for row in known.rows), cost, notion)
    else:
        need_worlds(space.worlds)
        whole = Mixtures((tuple(prior.on_records(space, rational)),))
    names = [*space, *range(space.worlds, cost.shape[1])]
    if not tables:
        names = list(product(range(cost.shape[1]), repeat=space.rows))
        check_size(
            "the best mechanism for whole tables needs",
            len(names) * space.worlds,
            "variables",
            MAX_TABLE_CELLS,
            "space",
            "use fewer rows or values; independent rows are solved one by one",
        )
        cost = sum_costs(space, cost)
    return SetProgram(space, (whole,), cost, notion, tuple(names))


def best_by_program(
    program: SetProgram, prior: Prior, epsilon: float | None, wanted: Fraction | None
) -> Optimum:
    """The mechanism whose distortion under its worst prior of the set is least at ε, or whose ε is
    least within a distortion."""
    space, notion, several = program.space, program.notion, isinstance(prior, PriorSet)
    given = "distortion" if epsilon is None else "epsilon"
    theorems = () if program.of_tables else ("T26",) if several else ("T20",)
    if notion == "mutual-information":
        if several:
            message = "the best mechanism for a set of priors is known for dp and identifiability"
            hint = 'give "dp" or "identifiability" as notion'
            raise Unsupported(message, field="notion", value=notion, hint=hint)
        return _information_optimum(program, prior, epsilon, wanted)

    def optimum(
        level: float, answer: BestAtLevel, gap: float, ends: tuple[float, float]
    ) -> Optimum:
        members: list[Row] = answer.basis
        learned = program.information(answer.mechanism, members)
        result = (round_up(answer.distortion), level, learned, answer.mechanism, gap)
        worst = program.member_prior(members) if several else None
        about = theorems, WORST_PRIOR_NOTE if several else ""
        return Optimum(space, notion, given, *result, *ends, *about, worst)

    def shown() -> Optimum:
        made, members = program.faithful(), [one.widest() for one in program.sets]
        result = (0.0, math.inf, program.information(made, members), made, 0.0)
        note = "no distortion: the data themselves"
        note += "; mutual information is of one prior of the set" if several else ""
        end = 0.0 if given == "epsilon" else math.inf
        one = program.member_prior(members) if several else None
        return Optimum(space, notion, given, *result, end, end, theorems, note, one)

    whose = "a prior of the set" if several else "the prior"
    if epsilon is not None:
        check_identifiability(epsilon, program.floor, whose)
        if epsilon == math.inf:
            return shown()
        answer = program.at(level := max(epsilon, program.floor))
        return optimum(
            level,
            answer,
            round_up(answer.gap),
            (round_down(answer.bound), round_up(answer.distortion)),
        )
    assert wanted is not None
    low = program.floor
    if low == math.inf or wanted == 0:
        return shown()
    answer, high = program.at(low), max(1.0, 2 * low)
    if answer.distortion <= wanted:
        return optimum(low, answer, 0.0, (low, low))
    while program.at(high).distortion > wanted:
        low, high = high, 2 * high
        if high > MAX_DISTORTION_EPSILON:
            return shown()
    level, answer, gap = smallest_epsilon(program, wanted, low, high)
    return optimum(level, answer, gap, (max(level - gap, 0.0), level))


def _information_optimum(
    program: SetProgram, prior: Prior, epsilon: float | None, wanted: Fraction | None
) -> Optimum:
    """Rate–distortion of rows, or of a whole table as one row."""
    space, known = program.space, find_structure(program.space, prior)
    if not program.of_tables:
        if epsilon is not None:
            return best_at_epsilon(known, program.cost, program.notion, epsilon)
        return best_at_distortion(known, program.cost, program.notion, wanted or Fraction(0))
    alone = one_row(program.sets[0].likeliest(0))
    if epsilon is not None:
        found = best_at_epsilon(alone, program.cost, program.notion, epsilon)
    else:
        found = best_at_distortion(alone, program.cost, program.notion, wanted or Fraction(0))
    made = ByTable(space, row_matrix(found.mechanism), program.names)
    return replace(found, space=space, mechanism=made)


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
            member counts, under "dp" or "identifiability", and `prior` is the least favourable one.
        epsilon: the level: ε, or nats of mutual information.
        distortion: or the expected distortion to stay within.
        notion: "dp" (replace), "identifiability" or "mutual-information".
        cost: m × m, what showing b for a costs; Hamming by default. Further columns are answers
            beside the values, such as "missing". A matrix of m^n × m^n is the cost of showing a
            whole table for another, which may be anything. Or a spelling (`check_cost`).

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
    if not isinstance(space, Records):
        raise invalid_value("space", "Records(rows, values)", repr(space))
    matrix = check_cost(space, cost)
    level = None if epsilon is None else _read_level(epsilon, notion)
    times = 1 if is_of_tables(space, matrix) else space.rows
    most = rational(times) * rational(float(matrix.max()))
    wanted = None if distortion is None else rational(distortion, "distortion")
    if wanted is not None and not 0 <= wanted <= most:
        raise invalid_value("distortion", f"from 0 to {spell(most)}", spell(wanted))
    if (program := set_program(space, prior, matrix, notion)) is not None:
        return best_by_program(program, prior, level, wanted)
    known = find_structure(space, prior)
    if level is not None:
        return best_at_epsilon(known, matrix, notion, level)
    assert wanted is not None
    return best_at_distortion(known, matrix, notion, wanted)


def _read_level(epsilon: object, notion: str) -> float:
    if epsilon in (math.inf, "inf"):
        return math.inf
    value = rational(epsilon, "epsilon")
    if value < 0:
        raise invalid_value("epsilon", "at least 0", spell(value))
    most = MAX_DISTORTION_EPSILON if notion != "mutual-information" else sys.float_info.max
    if value > most:
        raise invalid_value("epsilon", f"at most {spell(most)}, or infinite", shorten(value))
    return float(value)


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
        return ends(0.0, identity_mechanism(*cost.shape), known.entropy)
    if notion == "mutual-information":
        if epsilon == 0:
            value, table = best_constant(known, cost)
            return ends(round_up(value), constant_mechanism(table, *cost.shape), 0.0)
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
        return ends(math.inf, 0.0, identity_mechanism(*cost.shape), known.entropy, note)
    most, table = best_constant(known, cost)
    if wanted >= most:
        floor = known.spread if notion == "identifiability" else 0.0
        made = constant_mechanism(table, *cost.shape)
        return ends(floor, round_up(most), made, 0.0, "a constant answer is within the distortion")
    if wanted == 0:
        level = known.entropy if notion == "mutual-information" else math.inf
        exact = identity_mechanism(*cost.shape)
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
    if is_of_tables(known.space, check_cost(known.space, cost)):
        message = "curves are for costs of single rows"
        raise Unsupported(message, field="cost", hint="ask for one epsilon or distortion at a time")
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
