"""Accuracy: changes that make answers better, and widths that a budget buys.

Nothing here depends on a row. A suggestion is tried before it is made: the whole batch is estimated
with the change, and what it says is the estimate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from whosin.calibration import Plan, calibrate
from whosin.errors import InvalidInput, WhosinError
from whosin.exact import round_up
from whosin.ledger import BudgetState, encoding
from whosin.ledger.budget import Budget
from whosin.release.budget_allocation import estimate_batch_cost, needed_shares, share_units
from whosin.release.contribution_bounds import column_behind, may_vary
from whosin.release.cost import LAPLACE_QUANTILE, NORMAL_QUANTILE, OPTIMAL_SPLIT, CostEstimate
from whosin.release.domains import DROP, Values
from whosin.release.queries import Query
from whosin.release.queries.base import GroupedQuery, Linear, distinct_titles
from whosin.release.table import Table

MAX_SUGGESTIONS = 3
MIN_GAIN = 1.05
"""How many times smaller an error has to be for a suggestion."""
MAX_LOSS = 0.995
"""What becomes of the errors of all other answers: nothing that their digits show."""
SUGGESTED_DELTA = 1e-6
DECLARED_CHANGES: dict[str, dict[str, Any]] = {
    "closed": {"outside": DROP},
    "constant": {"constant": True},
}
"""What a suggestion declares of a column."""
VALUE_KINDS = ("mean", "variance", "deviation", "median", "quantile")
"""Questions whose answers say nothing where they are too noisy to read."""


@dataclass(frozen=True)
class Suggestion:
    """A change of a scenario that was tried.

    Attributes:
        change: "ask-once", "gaussian", "optimal", "closed" or "constant".
        query: the title of the query whose answers become most better.
        before, after: 95% of its numbers are within this, without and with the change.
        about: what is changed: titles of queries, or columns.
        delta: the δ that the change needs, if the plan has none.
        added_up, alone: what 95% of the sums are within that replace a query which is no longer
            asked, and of its answers while it is.
    """

    change: str
    query: str
    before: float
    after: float
    about: tuple[str, ...] = ()
    delta: float | None = None
    added_up: float | None = None
    alone: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON."""
        data = {**vars(self), "about": list(self.about)}
        return {key: value for key, value in data.items() if value is not None}


def suggest_changes(
    table: Table,
    plan: Plan,
    queries: Sequence[Query],
    estimates: Sequence[CostEstimate],
    budget: Mapping[str, Any],
    state: BudgetState | None = None,
) -> list[Suggestion]:
    """Up to three changes that make answers of a batch better, the best first. What has a width
    (`within`) gets that under every change.

    Args:
        state: of the dataset that would pay, where the ledger knows it: what its plan refuses is
            not suggested.
    """
    if any(estimate.spend.alone for estimate in estimates):
        return []
    before = {id(each.query): each for each in estimates}
    found = []
    for made, asked, under, settings in _changes(table, plan, queries, budget):
        needs = made.delta or plan.delta
        if made.change == "gaussian" and state is not None and state.plan.delta < needs:
            continue
        kept = table.last_estimate
        try:
            declared = DECLARED_CHANGES.get(made.change)
            tabled = table.change_domain(made.about[0], **declared) if declared else table
            tried = estimate_batch_cost(tabled, under, asked, **settings)
        except WhosinError:  # such a batch cannot be asked
            continue
        finally:
            table.last_estimate = kept
        gains, losses = [], list[float]()
        for query, estimate in zip(asked, tried, strict=True):
            if query.within is not None:
                continue
            earlier = before[id(query)]
            was, now = _typical_error(earlier), _typical_error(estimate)
            if was and estimate.query.kind == query.kind:
                gains.append((was / now if now else 0.0, query.title, was, now or math.inf))
            errors = zip(_all_errors(earlier), _all_errors(estimate), strict=False)
            losses += [one / other if other else 0.0 for one, other in errors if one]
        if gains and min(losses, default=1.0) > MAX_LOSS:
            inside = made.change == "ask-once"
            outer = [each for each in gains if inside and each[1] in made.about]
            best, title, was, now = max(outer or gains)
            if best >= MIN_GAIN:
                changed = replace(made, query=title, before=was, after=now)
                if inside:
                    added = _added_error(table, queries, made, tried)
                    asked_alone = next(x for x in estimates if x.query.title == made.about[0])
                    alone = _typical_error(asked_alone)
                    changed = replace(changed, added_up=added, alone=alone)
                found.append((best, changed))
    found.sort(key=lambda each: -each[0])
    return [each for _, each in found[:MAX_SUGGESTIONS]]


def _added_error(
    table: Table, queries: Sequence[Query], made: Suggestion, tried: Sequence[CostEstimate]
) -> float:
    """What 95% of the sums over groups of the outer query are within that make the inner one."""
    inner = next(each for each in queries if each.title == made.about[0])
    outer = next(each for each in tried if each.query.title == made.about[1])
    cells = [
        each.cells(each.restrict_table(table)).count
        for each in (inner, outer.query)
        if isinstance(each, Linear)
    ]
    noisy = outer.parts[0]
    reach = NORMAL_QUANTILE if outer.share.rho else LAPLACE_QUANTILE
    return reach * math.sqrt(noisy.noise.variance * cells[1] / cells[0]) * float(noisy.part.unit)


def _changes(
    table: Table, plan: Plan, queries: Sequence[Query], budget: Mapping[str, Any]
) -> Iterator[tuple[Suggestion, Sequence[Query], Plan, dict[str, Any]]]:
    """(what is changed, the queries, the plan, the settings of the batch) to try."""
    settings = dict(budget)
    at_once = settings.get("split") == OPTIMAL_SPLIT  # which asks such queries once already
    for inner, outer in [] if at_once else list_contained(queries, table)[:MAX_SUGGESTIONS]:
        kept = [query for query in queries if query is not queries[inner]]
        about = queries[inner].title, queries[outer].title
        yield Suggestion("ask-once", "", 0.0, 0.0, about), kept, plan, settings
    if not at_once and len(queries) > 1:
        split = {**settings, "split": OPTIMAL_SPLIT}
        yield Suggestion("optimal", "", 0.0, 0.0), queries, plan, split
    for column in _list_open_columns(table, queries, at_once)[:MAX_SUGGESTIONS]:
        yield Suggestion("closed", "", 0.0, 0.0, (column,)), queries, plan, settings
    for column in _list_varying_columns(table, queries)[:MAX_SUGGESTIONS]:
        yield Suggestion("constant", "", 0.0, 0.0, (column,)), queries, plan, settings
    if settings.get("noise", "laplace") == "laplace" and any(
        each.takes_gaussian for each in queries
    ):
        under, delta = plan, None
        if not plan.delta:
            try:
                under = calibrate(plan.target, plan.family, SUGGESTED_DELTA, entities=plan.entities)
            except WhosinError:
                return
            delta = SUGGESTED_DELTA
        gaussian = {**settings, "noise": "gaussian"}
        yield Suggestion("gaussian", "", 0.0, 0.0, delta=delta), queries, under, gaussian


def _list_open_columns(table: Table, queries: Sequence[Query], at_once: bool) -> list[str]:
    """Columns whose "other" makes tables larger that are estimated together, those with the fewest
    values first: each number of such tables depends on how many there are."""
    found = set()
    for query in queries:
        if at_once or not isinstance(query, GroupedQuery):
            policy = query.contribution_policy(query.restrict_table(table))
            found |= {column_behind(table.domains, name) for name in policy.others}
    return sorted(found & set(table.domains), key=lambda name: (_cell_count(table, name), name))


def _list_varying_columns(table: Table, queries: Sequence[Query]) -> list[str]:
    """Columns of categories by which a person may count in several groups, in the order asked."""
    found = dict[str, None]()
    for query in queries:
        asked = query.restrict_table(table)
        if isinstance(query, GroupedQuery) and query.bounds(asked).max_groups > 1:
            found |= dict.fromkeys(may_vary(asked.domains, query.cells(asked).columns))
    return [name for name in found if isinstance(table.domains.get(name), Values)]


def _cell_count(table: Table, column: str) -> int:
    return len(table.domains[column].labels)


def list_contained(queries: Sequence[Query], table: Table) -> list[tuple[int, int]]:
    """Pairs of queries of which the first is sums of groups of the second: of one kind, about the
    same rows, and by fewer columns."""
    keys, result = [_question_key(query, table) for query in queries], []
    for inner, (kind, columns) in enumerate(keys):
        for outer, (other, more) in enumerate(keys):
            if kind is not None and kind == other and columns < more:
                result.append((inner, outer))
                break
    return result


def _question_key(query: Query, table: Table) -> tuple[object, frozenset[str]]:
    """What a query must have in common with one that contains it; None for kinds without groups
    that add up, and where a width says how good the answer is."""
    asked = query.restrict_table(table)
    if not isinstance(query, Linear) or len(query.parts(asked)) != 1 or query.within is not None:
        return None, frozenset()
    cells, bounds = query.cells(asked), query.bounds(asked)
    if cells.columns and bounds.max_groups > 1:
        return None, frozenset()
    kind = "count" if query.kind == "histogram" else query.kind
    about = kind, query.where, bounds.max_rows_per_group, getattr(query, "column", None)
    own = about if query.kind == "sum" else about[:3]
    return own, frozenset(cells.columns)


def _typical_error(estimate: CostEstimate) -> float | None:
    """What 95% of the numbers are within, in the largest group that is shown."""
    found = [each.within or each.error for each in estimate.expected]
    return found[-1] if found else None


def _all_errors(estimate: CostEstimate) -> list[float | None]:
    """What 95% of the numbers are within by the size of a group, and in all; table by table."""
    sized = [each.within or each.error for each in estimate.expected]
    whole = estimate.within or estimate.error
    return [*sized, whole, *(each["standard_error"] for each in estimate.tables)]


@dataclass(frozen=True)
class AccuracyPlan:
    """What the widths of a batch cost (F33).

    Attributes:
        titles, widths, costs: of each query with a width: ε, or ρ for Gaussian noise.
        total, allowed: of all of them, and what this release may spend.
        alone: what 95% of the answers of each would be within with all that it may spend.
        fits: which of them can be had at once for that, the largest number of them.
        whole: what the plan has, of which a share or a period may be less.
        rows: of how many rows in a group `alone` and the costs are, where these depend on them.
        others: queries without a width, which divide what is left.
    """

    titles: tuple[str, ...]
    widths: tuple[float, ...]
    costs: tuple[Fraction, ...]
    total: Fraction
    allowed: Fraction
    alone: tuple[float | None, ...]
    fits: tuple[bool, ...]
    gaussian: bool
    whole: Fraction
    rows: tuple[int | None, ...]
    others: tuple[str, ...]

    @property
    def needed(self) -> Fraction:
        """What the plan needs, of which this release may spend the part that it may."""
        return self.total * self.whole / self.allowed

    @property
    def left(self) -> Fraction:
        """What the queries without a width divide."""
        return max(self.allowed - self.total, Fraction(0))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON."""
        costs = [round_up(each) for each in self.costs]
        listed = zip(self.titles, self.widths, costs, self.alone, self.fits, self.rows, strict=True)
        names = ("name", "within", "cost", "alone", "fits", "rows")
        return {
            "within": dict(zip(self.titles, self.widths, strict=True)),
            "questions": [dict(zip(names, each, strict=True)) for each in listed],
            "unit": "rho" if self.gaussian else "epsilon",
            "total": round_up(self.total),
            "allowed": float(self.allowed),
            "allowed_by_target": float(self.whole),
            "needed_of_target": round_up(self.needed),
            "others": list(self.others),
            "left_for_others": float(self.left),
            "fits": all(self.fits),
        }


def plan_widths(
    table: Table, plan: Plan, queries: Sequence[Query], budget: Mapping[str, Any]
) -> AccuracyPlan:
    """The least ε or ρ for the widths of a batch, and which of them fit under its plan.

    Raises:
        InvalidInput: no query has a width, or no noise is that small.
    """
    asked = [(index, query) for index, query in enumerate(queries) if query.within is not None]
    if not asked:
        raise InvalidInput(
            "no question has a width", field="within", hint="add within = 50 to a [[queries]] entry"
        )
    gaussian = budget.get("noise") == "gaussian"
    whole, share = Budget.of(plan), budget.get("share")
    allowed, everything = (
        Fraction(each.rho if gaussian else each.epsilon, encoding.EPSILON_UNITS)
        for each in (whole if share is None else whole.part(share), whole)
    )
    if not allowed:
        raise InvalidInput("gaussian noise needs a plan with a delta", field="noise")
    split = str(budget.get("split", "weights"))

    def find_costs(chosen: Sequence[int]) -> dict[int, Fraction]:
        """What the chosen queries cost, those that are measured at once evenly."""
        only = [replace(q, within=None) if n not in chosen else q for n, q in enumerate(queries)]
        found: dict[int, Fraction] = {}
        for unit, share in needed_shares(only, table, plan, gaussian, split):
            cost = Fraction(share_units(share, gaussian), encoding.EPSILON_UNITS)
            found |= dict.fromkeys(unit.indices, cost / len(unit.indices))
        return found

    costs = find_costs([index for index, _ in asked])
    every = {**budget, "noise": "gaussian"} if gaussian else dict(budget)
    alone, rows = list[float | None](), list[int | None]()
    for _, query in asked:
        one = estimate_batch_cost(table, plan, [replace(query, within=None)], **every)[0]
        first = one.expected[0] if one.expected else None  # for the rows of `costs`
        alone.append(None if first is None else first.within)
        rows.append(None if first is None else first.rows)
    fitting: list[int] = list(costs) if sum(costs.values()) <= allowed else []
    for index in [] if fitting else sorted(costs, key=lambda each: costs[each]):
        if sum(find_costs([*fitting, index]).values()) <= allowed:
            fitting.append(index)
    names = distinct_titles([each.title for each in queries], [q.question() for q in queries])
    return AccuracyPlan(
        tuple(names[index] for index, _ in asked),
        tuple(float(Fraction(str(query.within))) for _, query in asked),
        tuple(costs[index] for index, _ in asked),
        sum(costs.values(), Fraction(0)),
        allowed,
        tuple(alone),
        tuple(index in fitting for index, _ in asked),
        gaussian,
        everything,
        tuple(rows),
        tuple(names[index] for index, query in enumerate(queries) if query.within is None),
    )


def list_unreadable(
    estimates: Sequence[CostEstimate], rows: int
) -> tuple[tuple[tuple[str, float, str], ...], float, float]:
    """What each question needs that needs more than all rows, the part of what is spent that goes
    to such questions, and to means, medians and the like among them: a count that is too noisy is
    still a count. Streams that go on were paid for."""
    beyond = [
        each
        for each in estimates
        if each.readable_unit != "sum" and (each.readable_from or 0.0) > rows and not each.first
    ]
    together = Counter(id(each.paid) for each in estimates)
    gaussian = any(each.share.rho for each in estimates)

    def spent(listed: Sequence[CostEstimate]) -> float:
        costs = ((each.paid.cost, together[id(each.paid)]) for each in listed)
        return math.fsum((cost.rho if gaussian else cost.epsilon) / n for cost, n in costs)

    needed = (
        (
            each.title,
            each.readable_from or 0.0,
            each.readable_unit + " in a group" * (each.groups > 1),
        )
        for each in beyond
    )
    values = [each for each in beyond if each.query.kind in VALUE_KINDS]
    whole = spent(estimates) or 1.0
    return tuple(needed), spent(beyond) / whole, spent(values) / whole


def meaningless_titles(estimates: Sequence[CostEstimate]) -> tuple[str, ...]:
    """Questions whose 95% intervals will be the whole declared range, whatever the rows are."""
    return tuple(each.title for each in estimates if each.says_nothing)
