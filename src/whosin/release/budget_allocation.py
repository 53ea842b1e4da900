"""How a budget is split over a batch, and what the batch costs.

The split "optimal" divides a budget so that the expected error of a batch is least. Only public
numbers decide. What is lowered is Σ worth · variance of a number, over the queries whose error is
known beforehand; it is never more than under the split by weights, at the same cost. A query's
worth is its weight, over its magnitude squared where all have magnitudes; otherwise errors of sums
count relative to the most that one row can add. Other queries (means, variances, quantiles,
selections, synthetic tables) keep the part of the budget that their weight gives them.

Counts and group-bys that are tables of one workload are measured at once (`queries.together`). The
variance of a number falls as 1/ε² with the ε of its query, and as 1/ρ with its ρ, so the least Σ
V/ε² has parts that go as the cube root of V, and the least Σ V/ρ as its square root.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from whosin.calibration import Plan
from whosin.errors import (
    BudgetRefused,
    InvalidInput,
    UnknownName,
    WhosinError,
    at,
    shorten,
    spell,
)
from whosin.exact import format_figures, rational
from whosin.ledger import BudgetState, encoding
from whosin.ledger.budget import Budget, Cost, affordable_epsilon, price_epsilon
from whosin.release.contribution_bounds import plan_conditions
from whosin.release.cost import (
    OPTIMAL_SPLIT,
    CostEstimate,
    RemainingBudget,
    Share,
    caution_smaller_noise,
    caution_undeclared,
    caution_unused_delta,
)
from whosin.release.queries import Query
from whosin.release.queries.base import distinct_titles
from whosin.release.queries.sums import planned_count
from whosin.release.requests import rank_queries, read_queries
from whosin.release.table import Table

SPLIT_KINDS = ("weights", "relative-error", OPTIMAL_SPLIT)
NOISE_KINDS = ("laplace", "gaussian")
StateReader = Callable[[], BudgetState]


def split_budget(
    queries: Sequence[Query], table: Table, unspent: RemainingBudget, split: str, noise: str
) -> list[Share]:
    """The share of each query; together they are within the unspent.

    Args:
        split: "weights", by each query's weight; or "relative-error", so that the expected error
            over the declared magnitude is the same for all whose error is known beforehand. True
            answers play no part.
        noise: "laplace", or "gaussian" for queries that sum, under a plan with a δ; selections
            then have Gumbel noise for their part of ρ, and others the ε whose ρ is their part.
    """
    if split not in SPLIT_KINDS:
        raise UnknownName("split", str(split), SPLIT_KINDS)
    if any(query.within is not None for query in queries):
        return split_by_widths(queries, table, unspent, noise)
    if split == "weights":
        return divide_budget(queries, [rational(query.weight) for query in queries], unspent, noise)
    gaussian = noise == "gaussian"
    parts = _equal_errors(queries, table, unspent.plan, divisible_units(unspent, noise), gaussian)
    return divide_budget(queries, parts, unspent, noise)


def split_by_widths(
    queries: Sequence[Query], table: Table, unspent: RemainingBudget, noise: str
) -> list[Share]:
    """What each query needs for its width (`within`), and no more; queries without one divide the
    rest by weight. Noises are independent, so the least total is the sum of the least costs (F33).

    Raises:
        BudgetRefused: there is not as much.
    """
    needed, left = _pay_widths(queries, table, unspent, noise, "weights")
    shares = {unit.indices[0]: share for unit, share in needed}
    rest = [index for index in range(len(queries)) if index not in shares]
    if rest:
        weights = [rational(queries[index].weight) for index in rest]
        others = divide_budget([queries[index] for index in rest], weights, left, noise)
        shares |= dict(zip(rest, others, strict=True))
    return [shares[index] for index in range(len(queries))]


def _pay_widths(
    queries: Sequence[Query], table: Table, unspent: RemainingBudget, noise: str, split: str
) -> tuple[list[tuple[_Unit, Share]], RemainingBudget]:
    """What the widths of a batch need, each with its part of δ, and what is left."""
    pot, gaussian = divisible_units(unspent, noise), noise == "gaussian"
    needed = needed_shares(queries, table, unspent.plan, gaussian, split)
    used, letter = sum(share_units(share, gaussian) for _, share in needed), "ρε"[not gaussian]
    if used > pot:
        wanted, there = (Fraction(each, encoding.EPSILON_UNITS) for each in (used, pot))
        plain, asked = Query.expected_error, [each.query for each, _ in needed]
        sized = [q for q in asked if type(q).expected_error is not plain]
        counts = {(table.people or 0) // q.group_count(q.restrict_table(table)) or 1 for q in sized}
        held = " and ".join(map(spell, sorted(counts)))
        counted = f" for {held} rows a group, one a person," if sized else ""
        raise BudgetRefused(
            f"these widths need {letter} = {format_figures(wanted, 4, 'up')}{counted}, and there "
            f"is {letter} = {format_figures(there, 4, 'down')}",
            field="within",
            value=float(wanted),
            hint="allow wider answers, ask less, or promise less: whosin plan SCENARIO "
            "--accuracy says which widths fit",
        )
    free, each_delta = pot - used, unspent.delta // max(1, sum(q.needs_delta for q in queries))
    delta = Fraction(each_delta, encoding.DELTA_UNITS)
    failing = sum(unit.query.needs_delta for unit, _ in needed)
    left = replace(unspent, delta=unspent.delta - failing * each_delta)
    if not gaussian and unspent.epsilon:
        left = replace(left, epsilon=free)
    else:  # where ε counts by its ρ, the ρ of what is left of it
        rho = free if gaussian else price_epsilon(free, unspent.plan)
        left = replace(left, rho=rho)
    given = [
        (unit, replace(share, delta=delta) if unit.query.needs_delta else share)
        for unit, share in needed
    ]
    return given, left


def share_units(share: Share, gaussian: bool) -> int:
    """What a share takes of what is divided, in units."""
    if not gaussian:
        return math.ceil(share.epsilon * encoding.EPSILON_UNITS)
    if share.rho:
        return math.ceil(share.rho * encoding.EPSILON_UNITS)
    return price_epsilon(math.ceil(share.epsilon * encoding.EPSILON_UNITS), share.plan)


MAX_NEEDED_COST = 10**6
"""An ε or ρ above it is no promise."""


def needed_shares(
    queries: Sequence[Query], table: Table, plan: Plan, gaussian: bool, split: str
) -> list[tuple[_Unit, Share]]:
    """The least share for the width of each query that has one. Under the split "optimal", queries
    that need less when they are measured at once are put together."""
    found: dict[int, tuple[_Unit, Share]] = {}
    for index, query in enumerate(queries):
        if query.within is not None:
            with at(f"queries[{index}]"), query.at_own_key():
                share = needed_share(query, table, plan, gaussian)
                found[index] = _Unit(query, (index,)), share
    if split != OPTIMAL_SPLIT:
        return list(found.values())
    wide = [index for index in found if rational(queries[index].within) > 0]
    worths = [1 / float(rational(queries[index].within)) ** 2 for index in wide]
    for unit in _merge_queries([queries[index] for index in wide], table, plan, worths):
        indices = tuple(wide[index] for index in unit.indices)
        if len(indices) > 1:
            once = _search_share(unit.query, unit.query.restrict_table(table), plan, gaussian)
            apart = sum(share_units(found[index][1], gaussian) for index in indices)
            if once is not None and share_units(once, gaussian) < apart:
                found |= dict.fromkeys(indices, (replace(unit, indices=indices), once))
    return list({id(unit): (unit, share) for unit, share in found.values()}.values())


def needed_share(query: Query, table: Table, plan: Plan, gaussian: bool = False) -> Share:
    """The least share with which 95% of a query's answers are within its `within` (F33).

    Counts and sums have the widest noise with that quantile. Marginals, and for the public number
    of people means, variances and quantiles, have the least share that a search finds.

    Raises:
        InvalidInput: no noise is that small, or the number of people is not public.
    """
    asked, within = query.restrict_table(table), rational(query.within, "within")

    def refuse(why: str, hint: str) -> InvalidInput:
        return InvalidInput(why, field="within", value=float(within), hint=hint)

    whole = _round_share(query, plan, Fraction(1), gaussian)
    noise = query.plan_noise(asked, whole)
    if noise is None or planned_count(plan) is not None:
        why, instead = query.no_width
        raise refuse(f"within has no meaning for {query.title!r}: {why}", instead)
    spell_width = f"95% of the answers of {query.title!r} cannot be within ±{spell(within)}"
    if isinstance(noise, tuple) and len(noise) == 1:
        part, kind = noise[0].part, type(noise[0].noise)
        widest = kind.within(float(within / part.unit))
        if not widest.width:
            raise refuse(f"{spell_width}: no noise is that small", "allow more")
        return _round_share(query, plan, noise[0].noise.width / widest.width, gaussian)
    if query.keeps_width(asked, noise) is None:
        raise refuse(
            f"within = {spell(within)} for {query.title!r} depends on how many rows a group has",
            "say how many people are in the table, if that is public: people = … in [table]",
        )
    found = _search_share(query, asked, plan, gaussian)
    if found is None:
        raise refuse(f"{spell_width}: its points or steps are farther apart", "allow more")
    return found


def _round_share(query: Query, plan: Plan, cost: Fraction, gaussian: bool) -> Share:
    """A share of whole units of ε, or of ρ where the query has a cost in it; rounded up."""
    units = Fraction(math.ceil(cost * encoding.EPSILON_UNITS), encoding.EPSILON_UNITS)
    if gaussian and (query.takes_gaussian or query.selects):
        return Share(plan, Fraction(0), units)
    return Share(plan, units)


def _search_share(query: Query, table: Table, plan: Plan, gaussian: bool) -> Share | None:
    """The least share that was seen to keep the width of a query; None where none does."""

    def keeps(cost: Fraction) -> bool:
        try:
            noise = query.plan_noise(table, _round_share(query, plan, cost, gaussian))
        except InvalidInput:  # too little to divide, or for noise that can be drawn
            return False
        return bool(query.keeps_width(table, noise))

    low, high = Fraction(1, 10**9), Fraction(MAX_NEEDED_COST)
    if not keeps(high):
        return None
    for _ in range(WIDTH_STEPS):
        middle = Fraction(math.sqrt(low * high))
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return _round_share(query, plan, high, gaussian)


WIDTH_STEPS = 20
"""Halvings of the logarithm of a cost: to a part in 30,000 of it."""


def divisible_units(unspent: RemainingBudget, noise: str) -> int:
    """What there is to divide: units of ρ for Gaussian noise, of ε otherwise."""
    if noise not in NOISE_KINDS:
        raise UnknownName("noise", str(noise), NOISE_KINDS)
    if noise == "gaussian" and not unspent.rho:
        raise InvalidInput(
            "gaussian noise needs a plan with a delta, and this plan has none",
            field="noise",
            value=noise,
            hint="use noise = laplace, or plan with a delta",
        )
    # After Gaussian noise there is no pure ε left to spend, but ε that counts by its ρ.
    return (
        unspent.rho
        if noise == "gaussian"
        else unspent.epsilon or affordable_epsilon(unspent.rho, unspent.plan)
    )


def divide_budget(
    queries: Sequence[Query], parts: Sequence[Fraction], unspent: RemainingBudget, noise: str
) -> list[Share]:
    """The share of each query, in the ratio of some parts."""
    pot, gaussian = divisible_units(unspent, noise), noise == "gaussian"
    whole = sum(parts, Fraction(0))
    failing = sum(query.needs_delta for query in queries)
    result = []
    for number, (query, part) in enumerate(zip(queries, parts, strict=True)):
        delta = Fraction(0)
        if query.needs_delta:
            delta = Fraction(unspent.delta // failing, encoding.DELTA_UNITS)
        amount = int(pot * part / whole)
        rho = amount if gaussian and (query.takes_gaussian or query.selects) else 0
        if query.selects and not gaussian and not unspent.epsilon:
            rho = price_epsilon(amount, unspent.plan)  # this ε counts by its ρ
        epsilon = 0 if rho else affordable_epsilon(amount, unspent.plan) if gaussian else amount
        if not epsilon and not rho:
            with at(f"queries[{number}].weight"):
                raise InvalidInput(
                    f"weight {shorten(query.weight)} leaves nothing of the budget for this query",
                    field="weight",
                    value=query.weight,
                    hint="give it a larger weight",
                )
        scale = encoding.EPSILON_UNITS
        result.append(Share(unspent.plan, Fraction(epsilon, scale), Fraction(rho, scale), delta))
    return result


def _equal_errors(
    queries: Sequence[Query], table: Table, plan: Plan, pot: int, gaussian: bool
) -> list[Fraction]:
    """Parts of the pot that give all queries the same expected error over magnitude; those whose
    error is not known beforehand (means, variances, quantiles, selections) keep what their weight
    gives them.

    Discrete Laplace noise on a sensitivity of Δ steps has the expected error r for ε =
    Δ·asinh(step/r), and Gaussian noise for a ρ that falls as 1/r²: the r for which they add up to
    the rest of the pot is found by bisection.
    """
    weights = [rational(query.weight) for query in queries]
    parts = [Fraction(pot, encoding.EPSILON_UNITS) * weight / sum(weights) for weight in weights]
    sensitivities = {
        number: sensitivity
        for number, query in enumerate(queries)
        if (sensitivity := _query_sensitivity(query, table, plan, gaussian)) is not None
    }
    if not sensitivities:
        raise InvalidInput(
            "split = relative-error needs a query whose error is known beforehand, and none of "
            "these has one",
            field="split",
            value="relative-error",
            hint="split by weights",
        )
    budget = float(sum(parts[number] for number in sensitivities))

    def needed(error: float) -> list[float]:
        if gaussian:
            return [(sensitivity / error) ** 2 for _, sensitivity in sensitivities.values()]
        return [
            steps * math.asinh(sensitivity / steps / error)
            for steps, sensitivity in sensitivities.values()
        ]

    low, high = 1e-300, 1e300
    for _ in range(200):
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (middle, high) if math.fsum(needed(middle)) > budget else (low, middle)
    for number, part in zip(sensitivities, needed(high), strict=True):
        parts[number] = Fraction(part)
    return parts


def _query_sensitivity(
    query: Query, table: Table, plan: Plan, gaussian: bool
) -> tuple[float, float] | None:
    """(sensitivity in steps, what to divide by a relative error) of a query; None where its error
    is not known beforehand."""
    probe = Fraction(1, 1000)
    rho = probe if gaussian and query.takes_gaussian else Fraction(0)
    estimate = query.estimate_cost(query.restrict_table(table), Share(plan, probe, rho, probe))
    if (
        estimate.error is None
        or len(estimate.parts) != 1
        or (gaussian and not query.takes_gaussian)
    ):
        return None
    if query.magnitude is None:
        raise InvalidInput(
            f"the query {query.title!r} declares no magnitude, and splitting by error needs one "
            "of every query",
            field="magnitude",
            value=query.title,
        )
    noisy, magnitude = estimate.parts[0], float(rational(query.magnitude))
    if gaussian:
        return 0.0, estimate.error / magnitude * math.sqrt(probe)
    steps = noisy.noise.spread * float(probe)
    return steps, steps * float(noisy.part.unit) / magnitude


MIN_PART = 1e-6
"""The part of a query whose error hardly counts."""


@dataclass(frozen=True)
class _Unit:
    """What is debited as one: a query, or several that are measured at once."""

    query: Query
    indices: tuple[int, ...]


def least_error(
    queries: Sequence[Query], table: Table, unspent: RemainingBudget, noise: str
) -> list[CostEstimate]:
    """A cost estimate for each query; those that are measured at once have one `joint`. Queries
    with a width (`within`) get what it needs; the error of the others is least with the rest."""
    if any(query.within is not None for query in queries):
        return _least_error_of_rest(queries, table, unspent, noise)
    evenly = estimate_costs(queries, table, split_budget(queries, table, unspent, "weights", noise))
    if any(estimate.spend.alone for estimate in evenly):
        return evenly
    spread = [standard_error(estimate) for estimate in evenly]
    worths = _query_weights(queries, evenly, spread)
    units = _merge_queries(queries, table, unspent.plan, worths)
    parts = [
        float(sum(rational(queries[index].weight) for index in each.indices)) for each in units
    ]
    best = [replace(each, standard_error=error) for each, error in zip(evenly, spread, strict=True)]
    for _ in range(2):  # the parts by weight first, then those that the variances there ask for
        exact = [Fraction(part) for part in parts]
        given = divide_budget([each.query for each in units], exact, unspent, noise)
        estimates = _estimates_by_query(units, table, given)
        if _score_estimates(estimates, worths) < _score_estimates(best, worths):
            best = estimates
        parts = _improve_parts(units, parts, estimates, worths, 1 if noise == "gaussian" else 2)
    return [
        replace(estimate, by_weights=before, cautions=query.cautions(query.restrict_table(table)))
        for estimate, before, query in zip(best, spread, queries, strict=True)
    ]


def _least_error_of_rest(
    queries: Sequence[Query], table: Table, unspent: RemainingBudget, noise: str
) -> list[CostEstimate]:
    needed, left = _pay_widths(queries, table, unspent, noise, OPTIMAL_SPLIT)
    made = _estimates_by_query([unit for unit, _ in needed], table, [share for _, share in needed])
    paid = sorted(index for unit, _ in needed for index in unit.indices)
    estimates = {
        index: replace(each, cautions=queries[index].cautions(queries[index].restrict_table(table)))
        for index, each in zip(paid, made, strict=True)
    }
    rest = [index for index in range(len(queries)) if index not in estimates]
    if rest:
        others = least_error([queries[index] for index in rest], table, left, noise)
        estimates |= dict(zip(rest, others, strict=True))
    return [estimates[index] for index in range(len(queries))]


PLANNED_CONDITIONS = 64
"""Questions whose conditions are planned together."""


def estimate_costs(
    queries: Sequence[Query], table: Table, given: Sequence[Share]
) -> list[CostEstimate]:
    """The cost estimates of queries with a share each; errors name the query."""
    estimates = []
    for index, (query, share) in enumerate(zip(queries, given, strict=True)):
        if index % PLANNED_CONDITIONS == 0:
            few = queries[index : index + PLANNED_CONDITIONS]
            plan_conditions(table, [each.where for each in few])
        with at(f"queries[{index}]"), query.at_own_key():
            asked = query.restrict_table(table)
            estimates.append(
                replace(query.estimate_cost(asked, share), cautions=query.cautions(asked))
            )
    if len(estimates) > 1 and any(estimate.spend.alone for estimate in estimates):
        raise InvalidInput(
            f"one of these {len(estimates)} queries has a promise that does not compose with "
            "others",
            field="queries",
            value=len(estimates),
            hint="ask it alone",
        )
    return estimates


def standard_error(estimate: CostEstimate) -> float | None:
    """The standard error of a number of an answer, or the root of the mean square over its tables,
    where it is known beforehand."""
    if estimate.tables:
        squares = [float(each["standard_error"]) ** 2 for each in estimate.tables]
        return math.sqrt(math.fsum(squares) / len(squares))
    if estimate.error is None or len(estimate.parts) != 1:
        return None
    noisy = estimate.parts[0]
    return math.sqrt(noisy.noise.variance) * float(noisy.part.unit)


def _query_weights(
    queries: Sequence[Query], estimates: Sequence[CostEstimate], spread: Sequence[float | None]
) -> list[float | None]:
    """How much the variance of a number of each query counts; None where it is not known."""
    known = [query for query, error in zip(queries, spread, strict=True) if error is not None]
    said = [query.magnitude is not None for query in known]
    if any(said) and not all(said):
        missing = next(query for query in known if query.magnitude is None)
        raise InvalidInput(
            f"the query {missing.title!r} declares no magnitude, and others do",
            field="magnitude",
            value=missing.title,
            hint="declare it for all queries or for none",
        )
    result: list[float | None] = []
    for query, estimate, error in zip(queries, estimates, spread, strict=True):
        if query.magnitude is not None:
            scale = float(rational(query.magnitude))
        else:
            part = estimate.parts[0].part if len(estimate.parts) == 1 else None
            scale = 1.0 if part is None else float(part.max_row_contribution * part.unit)
        worth = float(rational(query.weight)) / scale**2
        result.append(None if error is None else worth)
    return result


def _merge_queries(
    queries: Sequence[Query], table: Table, plan: Plan, worths: Sequence[float | None]
) -> list[_Unit]:
    """The queries, those that can be measured at once put together, in the order of the first."""
    from whosin.release.queries.together import JointMeasurement, merge_key

    groups: dict[object, list[int]] = {}
    for index, query in enumerate(queries):
        key = merge_key(query, query.restrict_table(table), plan)
        groups.setdefault(index if key is None else key, []).append(index)
    units = []
    for indices in groups.values():
        query = queries[indices[0]]
        if len(indices) > 1:
            members = tuple(queries[index] for index in indices)
            query = JointMeasurement.of(members, tuple(worths[index] or 0.0 for index in indices))
        units.append(_Unit(query, tuple(indices)))
    return units


def _estimates_by_query(
    units: Sequence[_Unit], table: Table, given: Sequence[Share]
) -> list[CostEstimate]:
    """The estimates of each query, in the order of the queries."""
    from whosin.release.queries.together import JointMeasurement

    estimates: dict[int, CostEstimate] = {}
    for unit, share in zip(units, given, strict=True):
        asked = unit.query.restrict_table(table)
        estimate = unit.query.estimate_cost(asked, share)
        if isinstance(unit.query, JointMeasurement):
            estimates |= dict(zip(unit.indices, unit.query.parts(asked, estimate), strict=True))
        else:
            estimates[unit.indices[0]] = replace(estimate, standard_error=standard_error(estimate))
    return [estimates[index] for index in sorted(estimates)]


def _score_estimates(estimates: Sequence[CostEstimate], worths: Sequence[float | None]) -> float:
    """What is to be least."""
    return math.fsum(
        worth * (estimate.standard_error or 0.0) ** 2
        for estimate, worth in zip(estimates, worths, strict=True)
        if worth is not None
    )


def _improve_parts(
    units: Sequence[_Unit],
    parts: Sequence[float],
    estimates: Sequence[CostEstimate],
    worths: Sequence[float | None],
    power: int,
) -> list[float]:
    """Parts that make Σ V/part^power least, where the variances at the present parts give the V;
    what has none keeps its part, and nothing gets less than `MIN_PART` of what is divided."""
    result, free = list(parts), []
    for number, unit in enumerate(units):
        own = [worths[index] for index in unit.indices]
        if None not in own:
            score = _score_estimates([estimates[index] for index in unit.indices], own)
            free.append(number)
            result[number] = (score * parts[number] ** power) ** (1 / (power + 1))
    whole, wanted = (sum(listed[number] for number in free) for listed in (parts, result))
    for number in free:
        result[number] = whole * max(result[number] / wanted, MIN_PART)
    return result


ROUNDING_UNITS = 10**3  # by which all costs of a batch are rounded up, at the most


def estimate_batch_cost(  # noqa: PLR0913 (all by name)
    table: Table,
    plan: Plan,
    queries: Query | Sequence[Query],
    spent: Cost | None = None,
    *,
    share: object = None,
    split: str = "weights",
    noise: str = "laplace",
    capped: bool = False,
    held: StateReader | None = None,
) -> list[CostEstimate]:
    """What a batch costs under a plan and how good its answers will be. It depends on the schema
    and the arguments alone, so that a batch which is priced again at once costs nothing.

    Args:
        spent: what was spent of the plan before.
        share: the part of the plan's budget for this batch, at most what is left; by default all
            that is left.
        split: "weights" or "relative-error" (see `split_budget`), or "optimal" (see
            `least_error`).
        noise: "laplace" or "gaussian".
        capped: whether a share of all means all that is left.
        held: where the dataset stands, which others may have spent of.

    Raises:
        BudgetRefused: the share is more than what is left.
    """
    asked = read_queries(queries)
    if split == "relative-error" and any(query.within is not None for query in asked):
        raise InvalidInput(
            f"split = {shorten(split)} cannot be combined with within, which says what each gets",
            field="split",
            value=split,
            hint="leave one of them out",
        )
    unspent = _read_unspent(plan, spent or Cost(0, 0), share, noise, capped, held)
    batch = asked, unspent, split, noise
    if table.last_estimate is None or table.last_estimate[0] != batch:
        made = _estimate_by_part(asked, table, unspent, split, noise)
        made = caution_unused_delta(plan, caution_smaller_noise(table, unspent, made))
        titles = distinct_titles([each.title for each in made], [each.spend.what for each in made])
        made = [replace(each, called=own) for each, own in zip(made, titles, strict=True)]
        made = caution_undeclared(table, made)
        table.last_estimate = batch, list(map(partial(add_expected_errors, table), made))
    return list(table.last_estimate[1])


def _estimate_by_part(
    queries: Sequence[Query], table: Table, unspent: RemainingBudget, split: str, noise: str
) -> list[CostEstimate]:
    """The estimates of a batch. Questions about different parts are paid side by side, so each part
    divides what is left once those about everyone have had theirs: by weight, where the heaviest
    part counts, or between replaced people, who may move, the two heaviest."""
    groups: dict[str | None, list[int]] = {}
    for index, query in enumerate(queries):
        with at(f"queries[{index}]"), query.at_own_key():
            groups.setdefault(query.paying_part(table), []).append(index)
    weights = {
        part: sum(rational(queries[index].weight) for index in indices)
        for part, indices in groups.items()
    }
    heaviest = sorted(weight for part, weight in weights.items() if part is not None)
    counted = heaviest[-2:] if unspent.plan.relation == "replace" else heaviest[-1:]
    whole = sum(counted, weights.get(None, Fraction(0)))
    made: dict[int, CostEstimate] = {}
    for part, indices in groups.items():
        if split == OPTIMAL_SPLIT:  # what is measured at once is the same in whatever order
            indices = [indices[at] for at in rank_queries([queries[n] for n in indices], split)]
        mine, own = [queries[index] for index in indices], unspent
        if weights[part] != whole:
            amounts = unspent.epsilon, unspent.rho, unspent.delta
            own = RemainingBudget(
                unspent.plan, *(int(each * weights[part] / whole) for each in amounts)
            )
        try:
            if split == OPTIMAL_SPLIT:
                found = least_error(mine, table, own, noise)
            else:
                found = estimate_costs(mine, table, split_budget(mine, table, own, split, noise))
        except WhosinError as error:
            for each in error.parts:  # the number in the whole batch
                if place := re.match(r"queries\[(\d+)\]", each.path):
                    each.path = f"queries[{indices[int(place[1])]}]{each.path[place.end() :]}"
            raise
        made |= dict(zip(indices, found, strict=True))
    return [made[index] for index in range(len(queries))]


def add_expected_errors(table: Table, estimate: CostEstimate) -> CostEstimate:
    """A cost estimate with how good its answer will be, and which groups can be read."""
    query, asked = estimate.query, estimate.query.restrict_table(table)
    made = replace(
        estimate, expected=query.expected_errors(asked, estimate), groups=query.group_count(asked)
    )
    size, unit = query.readable_size(asked, made)
    told = query.told_size(asked, made)
    made = replace(made, readable_from=size, readable_unit=unit, told_from=told)
    if size is None or unit == "sum" or made.groups == 1 or table.people is None:
        return made
    bounds = query.bounds(asked)
    most = table.people * bounds.max_groups * (1 if unit == "people" else bounds.max_rows_per_group)
    return replace(made, noisy_groups=max(0, made.groups - int(most // max(size, 1.0))))


MIN_LEFT = Fraction(1, 10**9)
"""A smaller part of a budget is nothing to ask for."""


def _read_unspent(
    plan: Plan, spent: Cost, share: object, noise: str, capped: bool, held: StateReader | None
) -> RemainingBudget:
    budget = Budget.of(plan)
    kinds = ("epsilon", "rho", "delta")
    left = [max(0, getattr(budget, kind) - getattr(spent, kind)) for kind in kinds]
    if not left[0] and not left[1]:
        raise BudgetRefused("this session has spent all of its plan's budget", field="share")
    if share is not None:
        part = budget.part(share)
        wanted = [getattr(part, kind) for kind in kinds]
        by_rho = noise == "gaussian" or not left[0]  # after Gaussian noise ε counts by its ρ
        whole = budget.rho if by_rho else budget.epsilon
        means_rest = capped and wanted[by_rho] == whole
        if not means_rest and wanted[by_rho] > left[by_rho] + ROUNDING_UNITS:
            rest, where = Fraction(left[by_rho], whole), "this session"
            if held is not None:
                state = held()
                rho = int(state.spendable_rho * encoding.EPSILON_UNITS)
                there = Fraction(rho if by_rho else state.spendable_units, whole)
                rest, where = min((rest, where), (there, f"dataset {state.dataset!r}"))
            most = format_figures(rest, 4, "down") if rest >= MIN_LEFT else "nothing"
            said = f"share is {share}, and {most} of the plan's budget is left in {where}"
            hint = f"ask for at most {most}" * (rest >= MIN_LEFT)
            raise BudgetRefused(said, field="share", value=share, hint=hint)
        left = [min(each, most) for each, most in zip(wanted, left, strict=True)]
    return RemainingBudget(plan, *left)
