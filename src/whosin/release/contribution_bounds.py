"""Contribution bounding and clamping, inside the engine; sensitivities; cost warnings.

The contribution bounds are declared: at most `max_rows_per_group` rows of a privacy unit in each of
at most `max_groups` groups. The engine keeps them by choosing each person's rows at random, looking
at that person alone (`row_values.sample_rows`); so an aggregate changes with one person by no more
than its L1 sensitivity (`Aggregate.l1_sensitivity`), or its L2 sensitivity. A count of people or
rows is `PEOPLE_PART` or `ROWS_PART`.

An interval is about the noise. What bounding and clamping leave out is said in words
(`bounds_statement`), because no interval covers it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from whosin.errors import Mistakes, UnknownName, WhosinError, at, shorten
from whosin.exact import format_figures, rational
from whosin.release.column_expressions import (
    Cellular,
    GroupGrid,
    add_levels,
    base_column,
    cell_key,
    join_cell_numbers,
    root_column,
)
from whosin.release.conditions import compared_constants, parse_condition
from whosin.release.domains import CLAMP, DROP, OTHER_LABEL, Domain, Range, Values
from whosin.release.engines.base import FilteredScan
from whosin.release.row_values import (
    MAX_RANKED_ROWS,
    double_value,
    fold_text,
    rows_with_unit,
    sum_sampled_rows,
    whole_steps,
)
from whosin.release.row_values import clamp_value as clamp_value
from whosin.release.row_values import sample_rows as sample_rows
from whosin.release.table import Table

NOT_COVERED = "The interval is for the noise: it does not cover what this leaves out."
TOTAL_NOT_COVERED = f"{NOT_COVERED[:-1]}, and the true total may be far outside it."
ROW_TOTALS = ("rows", "sum")
"""Kinds of answers that every row left out makes smaller, or a sum's term."""

BOUND_STEPS = (2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1_000)
MAX_CUT_SHARE = 1 / 3
"""The part of the privacy units that a contribution bound leaves something out of unasked."""
MAX_LOST_SHARE = 0.25
"""The part of the rows that bounds leave out unasked of a number of rows or of a sum."""
MAX_LARGER_BOUNDS = 3
"""Larger bounds of which the look says what they would leave out."""


@dataclass(frozen=True)
class ContributionPolicy:
    """The contribution bounds of an answer, and the ends to which its numbers are clamped.

    Attributes:
        privacy_unit: the column that says whose row it is, or "row" where each row is one person.
        max_rows_per_group: how many rows of a privacy unit count in a group, at most; None where
            their number plays no part.
        max_groups: how many groups a privacy unit counts in, at most; None where it counts in all
            its groups.
        ranges: the ends to which each column is clamped, as texts.
        others: columns whose undeclared values have a cell of their own, with what it is called:
            "other", or "undeclared" where a declared value is called so.
        outside: what becomes of other values of columns with closed domains: "drop", "clamp", or
            the declared value, as a text in quotes, as which they count.
        by_row: whether each row is one person.
        unnamed: columns whose undeclared values count, and are never named.
        max_periods: of running totals, in how many periods a privacy unit counts, at most.
        min_gap: how many periods later the next one is, at least.
        part: the one part that it is about, by its name, and the column and rule of parts.
    """

    privacy_unit: str
    max_rows_per_group: int | None = None
    max_groups: int | None = None
    ranges: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    outside: Mapping[str, str] = field(default_factory=dict)
    by_row: bool = False
    unnamed: tuple[str, ...] = ()
    max_periods: int | None = None
    min_gap: int = 1
    part: Mapping[str, str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON."""
        known = dict(vars(self))
        if self.part is None:
            del known["part"]
        if self.max_periods is None:
            del known["max_periods"], known["min_gap"]
        return known | {
            "ranges": {name: list(ends) for name, ends in self.ranges.items()},
            "others": list(self.others),
            "other_cells": dict(self.others),
            "outside": dict(self.outside),
            "unnamed": list(self.unnamed),
        }


@dataclass(frozen=True)
class CostWarning:
    """Something to decide before asking.

    Attributes:
        about: "max_rows_per_group" or "max_groups", which is at its default, "delta", which nothing
            uses, "noise", of which there would be less if it were Laplace's, or "where".
        columns: columns that may differ between rows of one privacy unit.
        epsilons: what a plan would allow without its δ, and what it allows.
        declared: whether the columns have domains, which could say that they never differ.
        times: how many times less noise there would be.
        constant: what a condition compares the column with, which was not declared, and `nearest`,
            the declared value that may be meant.
    """

    about: str
    columns: tuple[str, ...] = ()
    epsilons: tuple[float, float] | None = None
    declared: bool = True
    times: float | None = None
    constant: str | None = None
    nearest: str | None = None

    @property
    def words(self) -> str:
        """In the words of a scenario file."""
        if self.epsilons is not None:
            pure, allowed = (format_figures(each, 6, "down") for each in self.epsilons)
            return (
                f"no answer uses delta: without it the plan would allow ε = {pure} instead of "
                f"{allowed}, so less noise"
            )
        if self.times is not None:
            times = format_figures(self.times, 2, "down")
            return (
                f'noise = "laplace" would give this {times} times less noise at the same share of '
                "the budget"
            )
        if self.constant is not None:
            meant = "" if self.nearest is None else f" (did you mean {self.nearest!r}?)"
            return f"{shorten(self.constant)!r} is not a declared value of {self.columns[0]}{meant}"
        constant, several = "", _join_names(self.columns, "and") if self.columns else ""
        if self.columns and self.declared:
            constant = f", or constant = true in the domain of {several} if it never differs"
            if len(self.columns) > 1:
                constant = f", or constant = true in the domains of {several} if they never differ"
        if self.about == "max_groups":
            return (
                f"{several} may differ between the rows of one person, who then counts in one cell "
                f"only, since max_groups is at its default, 1: say max_groups{constant}"
            )
        return (
            "only one row of a person counts, chosen at random, since max_rows_per_group is at its "
            f"default, 1: say max_rows_per_group{constant}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON."""
        return {"about": self.about, "columns": list(self.columns), "words": self.words}


MAX_CAUTIONED_CONSTANTS = 5


def caution_constants(table: Table, where: object) -> tuple[CostWarning, ...]:
    """The first constants with which a condition compares a column of declared values, or a level
    of one, and which were not declared: most often misspelt."""
    found = dict[CostWarning, None]()
    for name, constant, quoted in compared_constants(where):
        if name in table.levels:
            values: Sequence[Any] = table.levels[name][1].labels
        elif isinstance(domain := table.domains.get(name), Values):
            values = domain.values
        else:
            continue
        if ("spelled", name) not in table.kept:
            spelled = dict.fromkeys(map(str, values))
            numbers = {_read_number(each) for each in spelled} - {None}
            table.keep(("spelled", name), (spelled, numbers))
        spelled, numbers = table.kept["spelled", name]
        exact = quoted and isinstance(values[0], str)
        if constant not in spelled and (exact or _read_number(constant) not in numbers):
            folded = (each for each in spelled if fold_text(each) == fold_text(constant))
            texts = spelled if isinstance(values[0], str) else ()
            nearest = next(folded, UnknownName("where", constant, texts).nearest)
            found[CostWarning("where", (name,), constant=constant, nearest=nearest)] = None
            if len(found) == MAX_CAUTIONED_CONSTANTS:
                break
    return tuple(found)


def _read_number(text: str) -> float | str | None:
    """A number as engines compare it, or a truth; None for any other text."""
    with suppress(ValueError):
        return float(text)
    return text.lower() if text.lower() in ("true", "false") else None


def bounds_statement(counted: Mapping[str, Any], interval: bool, kind: object = None) -> str:
    """The contribution bounds and clamps of an answer, in a sentence or two, from its plain data.

    Args:
        interval: whether the answer has one.
    """
    rows, groups = counted["max_rows_per_group"], counted["max_groups"]
    unit = "each row" if counted["by_row"] else f"column {counted['privacy_unit']}"
    parts = [f"privacy unit: {unit}"]
    if part := counted.get("part"):
        whose = f"{'rows' if counted['by_row'] else 'people'} whose {part['column']} is"
        if part["rule"] == "least":
            whose = f"people whose first {part['column']} in the declared order is"
        parts.append(f"only {whose} {part['name']} count; that part alone pays")
    if rows is not None and not counted["by_row"]:
        noun, verb = ("rows", "count") if rows > 1 else ("row", "counts")
        grouped = "" if groups is None else " and group"
        parts.append(f"at most {rows} {noun} per person{grouped} {verb}")
    if groups is not None and not counted["by_row"]:
        noun, verb = ("groups", "count") if groups > 1 else ("group", "counts")
        parts.append(f"at most {groups} {noun} per person {verb}")
    if (periods := counted.get("max_periods")) is not None:
        parts.append(_describe_periods(periods, counted["min_gap"]))
    for column, (low, high) in counted["ranges"].items():
        parts.append(f"{column} is clamped to {low}..{high}")
    cells = counted.get("other_cells", {})
    called = {column: cells.get(column, OTHER_LABEL) for column in counted["others"]}
    for cell in dict.fromkeys(called.values()):
        several = _join_names([column for column, own in called.items() if own == cell], "and")
        why = "" if cell == OTHER_LABEL else ", which no declared value is called"
        parts.append(f'values of {several} that were not declared are in "{cell}"{why}')
    if unnamed := counted.get("unnamed", ()):
        several = _join_names(unnamed, "and")
        parts.append(f"values of {several} that were not declared are never named")
    outside = counted.get("outside", {})
    for how in dict.fromkeys(outside.values()):
        parts.append(
            _closed_statement([column for column, own in outside.items() if own == how], how)
        )
    text = "; ".join(parts)
    said = f"{text[0].upper()}{text[1:]}."
    bounds = (rows, groups, counted.get("max_periods"))
    leaves_out = not counted["by_row"] and bounds != (None, None, None)
    changes = leaves_out or counted["ranges"] or outside
    uncovered = TOTAL_NOT_COVERED if leaves_out and kind in ROW_TOTALS else NOT_COVERED
    return f"{said} {uncovered}" if interval and changes else said


def _describe_periods(periods: int, gap: int) -> str:
    """In which periods of running totals someone counts, and what that rests on."""
    counted = "only the first period of each person counts"
    if periods > 1:
        apart = "" if gap == 1 else f" that are at least {gap} apart"
        counted = (
            f"at most the first {periods} periods of each person{apart} count: a person "
            f"may count in up to {periods} periods of the total"
        )
    return f"{counted}; each file has the rows of all periods before it, unchanged"


def _closed_statement(columns: Sequence[str], how: str) -> str:
    """What becomes of a value outside closed domains."""
    if how == DROP:
        return f"rows whose {_join_names(columns, 'or')} was not declared do not count"
    several = _join_names(columns, "and")
    if how == CLAMP:
        return (
            f"{several} beyond the bins {'is' if len(columns) == 1 else 'are'} in the first or the "
            "last one, and rows without a value there do not count"
        )
    return f"values of {several} that were not declared count as {how}"


def _join_names(names: Sequence[str], last: str) -> str:
    """Names as a sentence lists them."""
    *most, end = names
    return f"{', '.join(most)} {last} {end}" if most else end


def outside_values(columns: Sequence[str], domains: Sequence[Cellular]) -> dict[str, Any]:
    """`others` and `outside` of a contribution policy, for columns that an answer is grouped by."""
    pairs = list(zip(columns, domains, strict=True))
    return {
        "others": {name: str(each.labels[-1]) for name, each in pairs if each.outside is None},
        "outside": {
            name: str(each.outside) if each.drops else f'"{each.outside}"'
            for name, each in pairs
            if each.outside is not None
        },
    }


def clamp_ends(domain: Range) -> tuple[str, str]:
    """The ends of a range as texts."""
    low, high = (repr(float(end)).removesuffix(".0") for end in domain.bounds)
    return low, high


def column_behind(domains: Mapping[str, Domain], name: str) -> str:
    """The column that a level such as canton, or a function such as month(visit), is of."""
    return name if name in domains else base_column(root_column(domains, name))


def may_vary(domains: Mapping[str, Domain], columns: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that were not declared to be the same in all rows of a privacy unit."""
    own = dict.fromkeys(column_behind(domains, name) for name in columns)
    return tuple(name for name in own if name not in domains or not domains[name].constant)


UNIT_COLUMN = "privacy_unit"
MAX_SUM = 2**62


@dataclass(frozen=True)
class ContributionBounds:
    """Contribution bounds: at most `max_rows_per_group` rows of a privacy unit count in each of at
    most `max_groups` groups."""

    max_rows_per_group: int
    max_groups: int


@dataclass(frozen=True)
class Aggregate:
    """A number summed over rows, in whole units.

    Attributes:
        unit: what one unit is worth.
        low, high: the least and the most that one row can add, in units.
        paired: whether this is one of two parts from 0 up to which every row adds `high` in all.
            The sensitivity is that of both together.
    """

    name: str
    unit: Fraction
    low: int
    high: int
    paired: bool = False

    def l1_sensitivity(self, relation: str, bounds: ContributionBounds, grouped: bool) -> int:
        """The L1 sensitivity: how far one privacy unit can move all groups together, in units.

        For a count of people under add-remove neighbours it is `max_groups`; for a count of rows
        `max_rows_per_group` times that. Replacing a person counts twice where there are groups,
        since the two may be in different ones.

        Args:
            relation: what neighbouring tables differ in, "add-remove" or "replace".
            grouped: whether the aggregate is computed for each group.
        """
        most, width = self._contribution_range()
        if self.paired:
            return (
                bounds.max_rows_per_group * most * self._affected_groups(relation, bounds, grouped)
            )
        if relation == "replace":
            return bounds.max_rows_per_group * (2 * bounds.max_groups * most if grouped else width)
        return bounds.max_rows_per_group * most * (bounds.max_groups if grouped else 1)

    def squared_l2_sensitivity(
        self, relation: str, bounds: ContributionBounds, grouped: bool
    ) -> int:
        """The squared L2 sensitivity. Replaced people share no group, or all of them, whichever is
        worse."""
        most, width = self._contribution_range()
        if self.paired:  # the squares of a row's two numbers add up to no more than most²
            return (bounds.max_rows_per_group * most) ** 2 * self._affected_groups(
                relation, bounds, grouped
            )
        if not grouped:
            return self.l1_sensitivity(relation, bounds, grouped) ** 2
        worst = max(2 * most**2, width**2) if relation == "replace" else most**2
        return bounds.max_groups * bounds.max_rows_per_group**2 * worst

    @property
    def max_row_contribution(self) -> int:
        """The most that one row can add to the sum, or take from it, in units."""
        return max(abs(self.low), abs(self.high))

    def _affected_groups(self, relation: str, bounds: ContributionBounds, grouped: bool) -> int:
        """In how many groups a person adds something: a replaced one leaves as many as the other
        enters, and where both are in one, one part rises and the other falls."""
        return (2 if relation == "replace" else 1) * (bounds.max_groups if grouped else 1)

    def _contribution_range(self) -> tuple[int, int]:
        return self.max_row_contribution, max(self.high, 0) - min(self.low, 0)


PEOPLE_PART = Aggregate("people", Fraction(1), 1, 1)
ROWS_PART = Aggregate("rows", Fraction(1), 1, 1)


def eligible_rows(table: Table, where: str | None) -> Any:
    """The rows that have a privacy unit (NaN is none) and meet the condition."""
    rows = table.data if table.by_row else rows_with_unit(table.data, table.privacy_unit)
    return filter_rows(rows, table, where)


def filter_rows(rows: Any, table: Table, where: str | None) -> Any:
    """The rows of a table that meet a condition."""
    if where is None:
        return rows
    with at("where"):
        known = add_levels(rows, table.domains, where)
        kept = known.filter(parse_condition(where, known, _declared_names(table)))
        return kept if known is rows else kept.select(*rows.columns)


def _declared_names(table: Table) -> tuple[str, ...]:
    """The names that somebody declared: see `unknown_column`."""
    return (*table.declared, *table.levels)


def split_condition(table: Table, where: str | None) -> tuple[Any, Any]:
    """The parts of a `FilteredScan` that a condition makes, each made once: (the rows of a table
    with the levels that it names, the condition, or None without one)."""
    key = f"where {where!r}"
    if where is None:
        return table.data, None
    if key not in table.kept:
        with at("where"):
            named = "levels", *(name for name in table.levels if name in str(where))
            if named not in table.kept:
                source = add_levels(table.data, table.domains, named)
                rows = table.engine.split_source(source, grouped=False)
                table.keep(named, (source, {name: rows[name] for name in source.columns}))
            source, columns = table.kept[named]
            table.keep(key, (source, parse_condition(where, columns, _declared_names(table))))
    found: tuple[Any, Any] = table.kept[key]
    return found


def plan_conditions(table: Table, texts: Iterable[object]) -> None:
    """Plan the conditions of some questions together, much faster than one by one. What is wrong
    with any of them is for its question to say."""
    if table.split_source(False) is None:
        return
    alike: dict[Any, FilteredScan] = {}
    for where in dict.fromkeys(each for each in texts if isinstance(each, str)):
        with suppress(WhosinError):
            source, condition = split_condition(table, where)
            scan = alike.get(source.op(), FilteredScan(source, (), None))
            alike[source.op()] = replace(scan, conditions=(*scan.conditions, condition))
    for scan in alike.values():
        with suppress(WhosinError):
            table.check(scan)


def select_part(table: Table, part: str) -> Table:
    """The table with the rows of those privacy units alone that are in one part."""
    assert table.part is not None
    column, number = table.part.column, table.part.number(part)
    domain = replace(table.domain(column), outside=DROP)
    cells = GroupGrid((column,), (domain,))
    own = table.data if table.by_row else table.main_rows
    (key,) = cells.names
    if table.by_row:
        marked = own.mutate(cell_key(own, column, domain).name(key))
        chosen = join_cell_numbers(marked, key, domain)
        return table.on_part(chosen.filter(chosen[key] == number).select(*own.columns))
    placed = cells.coded(rows_with_unit(own, table.privacy_unit), **owner_column(own, table))
    least = placed.group_by(UNIT_COLUMN).aggregate(**{key: placed[key].min()})
    inside = least.filter(least[key] == number).view()
    rows = table.data
    return table.on_part(rows.semi_join(inside, rows[table.privacy_unit] == inside[UNIT_COLUMN]))


def owner_column(rows: Any, table: Table) -> dict[str, Any]:
    """The column that says whose row it is; none where each row is one person."""
    return {} if table.by_row else {UNIT_COLUMN: rows[table.privacy_unit]}


def clamp_to_units(value: Any, domain: Range, centre: int = 0) -> Any:
    """A number clamped and rounded to whole steps, less a centre, on rows that have a number."""
    ends = domain.bounds
    clamped = clamp_value(double_value(value), float(ends[0]), float(ends[1]))
    return clamp_value(whole_steps(clamped, domain.unit), *domain.units) - centre


def count_people(rows: Any, table: Table, cells: GroupGrid, bounds: ContributionBounds) -> Any:
    """For each group the number of privacy units, each in at most `max_groups` groups."""
    if not cells.columns:
        people = rows.count() if table.one_row else rows[table.privacy_unit].nunique()
        return rows.aggregate(by=cells.question, people=people)
    pairs = cells.coded(rows, **owner_column(rows, table))
    chosen = pairs if table.one_row else _choose_groups(pairs.distinct(), cells, bounds)
    return chosen.aggregate(by=cells.keys, people=chosen.count())


def sum_rows(
    rows: Any,
    table: Table,
    cells: GroupGrid,
    bounds: ContributionBounds,
    values: dict[str, Any],
    counted: bool,
) -> Any:
    """For each cell the sums of some values, and the number of rows where `counted`.

    Args:
        values: what to sum; rows where one is missing must have been dropped.
    """
    import ibis

    one = {ROWS_PART.name: ibis.literal(1, "int64")} if counted else {}
    base = cells.coded(rows, **owner_column(rows, table), **values, **one)
    home = [UNIT_COLUMN, *cells.keys]
    if table.one_row:
        each = base
    elif values and bounds.max_rows_per_group == 1:
        each = sample_rows(base.drop(*one), home, 1).mutate(**one)
    elif values:
        each = sum_sampled_rows(base, home, bounds.max_rows_per_group, (*values, *one))
    else:  # rows are alike: no need to choose among them
        each = base.group_by(home).aggregate(
            rows=ibis.least(base.count(), bounds.max_rows_per_group)
        )
    if not table.one_row:
        each = _choose_groups(each, cells, bounds)
    # Saturating, where a wider sum would fail or wrap: then no privacy unit moves it by more
    # either.
    ends = -MAX_SUM, MAX_SUM
    sums = {name: each[name].sum().clip(*ends).cast("int64") for name in (*values, *one)}
    return each.aggregate(by=cells.keys, **sums)


def rows_in_cells(base: Any, table: Table, cells: GroupGrid, bounds: ContributionBounds) -> Any:
    """Rows of each privacy unit, a few in each of a few groups; groups and rows are chosen
    separately."""
    home = [UNIT_COLUMN, *cells.keys]
    if table.one_row:
        return base
    chosen = sample_rows(base, home, bounds.max_rows_per_group)
    if bounds.max_groups >= cells.count:
        return chosen
    pairs = base.select(*home).distinct()
    kept = _choose_groups(pairs, cells, bounds).rename({f"in_{name}": name for name in home}).view()
    same = [chosen[name] == kept[f"in_{name}"] for name in home]
    return chosen.inner_join(kept, same).select(*base.columns)


def _choose_groups(each: Any, cells: GroupGrid, bounds: ContributionBounds) -> Any:
    """A few groups of each privacy unit, at random; all of them where there are no more."""
    if bounds.max_groups >= cells.count:
        return each
    home = [UNIT_COLUMN, *cells.question]
    return sample_rows(each, home, bounds.max_groups, crowded=cells.count > MAX_RANKED_ROWS)


def centre_range(domain: Range) -> tuple[int, Aggregate]:
    """(the middle of a range in units, the part that sums distances from it)."""
    low, high = domain.units
    centre = (low + high) // 2
    return centre, Aggregate("sum", domain.unit, low - centre, high - centre)


def distance_parts(domain: Range) -> tuple[Aggregate, Aggregate]:
    """The parts that sum the distances of values from the lower end of a range, and to its upper
    end: on every row they add up to its width."""
    width = domain.units[1] - domain.units[0]
    above, below = (
        Aggregate(name, domain.unit, 0, width, paired=True) for name in ("above", "below")
    )
    return above, below


def square_part(domain: Range) -> tuple[float, Aggregate]:
    """(half the range, the part that sums squares of distances from its middle)."""
    low, high = domain.bounds
    half = rational(high - low) / 2
    return float(half), Aggregate("squares", half**2 / 10**6, 0, 10**6)


def contribution_policies(table: Table, queries: Sequence[Any]) -> list[ContributionPolicy]:
    """What of the rows counts in each answer."""
    result, mistakes = list[ContributionPolicy](), Mistakes()
    for index, query in enumerate(queries):
        with mistakes.collect(f"queries[{index}]"), query.at_own_key():
            result.append(query.contribution_policy(query.restrict_table(table)))
    mistakes.raise_all()
    return result


@dataclass(frozen=True)
class BoundLook:
    """How many privacy units have more than a contribution bound of a question lets count.

    Attributes:
        larger: larger bounds, each with how many would have more than that, or would be `lost`.
        rows: rows of a total (`ROW_TOTALS`), and `lost`, about how many of them the bound leaves
            out, `missed` with the question's other bound; none for other questions.
    """

    question: str
    bound: str
    most: int
    units: int
    above: int
    larger: tuple[tuple[int, int], ...] = ()
    rows: int = 0
    lost: int = 0
    missed: int = 0

    @property
    def loses_rows(self) -> bool:
        """Whether a total misses so many rows that the person should say that this is meant."""
        return self.missed > MAX_LOST_SHARE * self.rows

    @property
    def asks(self) -> bool:
        """Whether it cuts so many that the person should say that this is meant."""
        return self.loses_rows or self.above > MAX_CUT_SHARE * self.units


def look_at_bounds(
    table: Table, query: Any, policy: ContributionPolicy, known: dict[Any, dict[str, int]]
) -> list[BoundLook]:
    """How many privacy units the bounds of a question leave something out of, if any. Bounds that
    leave nothing out of all rows leave nothing out of those that meet a condition; and of columns
    that are the same in all rows of a unit one row says all, but for how many rows there are.

    Args:
        known: what was found for other questions.
    """
    stated = {"max_rows_per_group": policy.max_rows_per_group, "max_groups": policy.max_groups}
    if not query.about_rows and not may_vary(table.domains, tuple(query.names(table))):
        stated["max_rows_per_group"] = None
    cells = query.cells(table) if hasattr(query, "cells") else GroupGrid((), ())
    steps = {
        bound: (most, *_larger_bounds(bound, most, cells))
        for bound, most in stated.items()
        if most is not None
    }
    if table.one_row or not steps:
        return []
    row: dict[str, int] = {}
    for where in dict.fromkeys((None, query.where)):
        key = table.data.op(), cells, tuple(steps.items()), where
        if key not in known:
            rows = filter_rows(table.data, table, where)
            owned = rows.filter(rows[table.privacy_unit].notnull())
            coded = cells.coded(owned, whose=owned[table.privacy_unit])
            grouped = coded.group_by(["whose", *cells.names]).aggregate(n=coded.count())
            n, tried, figures = grouped["n"], steps.get("max_rows_per_group", ()), {}
            over = {f"over_{most}": (n - most).clip(0).sum() for most in tried}
            units = grouped.group_by("whose").aggregate(
                max_rows_per_group=n.max(), max_groups=grouped.count(), rows=n.sum(), **over
            )
            for name, most in [(name, most) for name, tried in steps.items() for most in tried]:
                above = units[name] - most
                share = units["rows"] * above.clip(0) / units["max_groups"]
                lost = share if name == "max_groups" else units[f"over_{most}"]
                figures[f"{name}_{most}"] = (above > 0).sum()
                figures[f"lost_{name}_{most}"] = lost.sum()
            figures |= {"units": units.count(), "rows": units["rows"].sum()}
            [found] = table.engine.run(units.aggregate(**figures)).to_pylist()
            known[key] = {name: round(value or 0) for name, value in found.items()}
        row = known[key]
        if not any(row[f"{bound}_{each[0]}"] for bound, each in steps.items()):
            break
    total, result = query.kind in ROW_TOTALS, []
    missed = sum(row[f"lost_{bound}_{most}"] for bound, (most, *_) in steps.items())
    for bound, (most, *others) in steps.items():
        if above := row[f"{bound}_{most}"]:
            kind = f"lost_{bound}" if total else bound
            larger = tuple((each, row[f"{kind}_{each}"]) for each in others)
            rows = (row["rows"], row[f"{kind}_{most}"], missed) if total else ()
            result.append(BoundLook(query.title, bound, most, row["units"], above, larger, *rows))
    return result


def _larger_bounds(bound: str, most: int, cells: GroupGrid) -> list[int]:
    """The next larger bounds in round numbers; nobody is in more groups than there are."""
    ceiling = cells.most if bound == "max_groups" else math.inf
    larger = [least for least in BOUND_STEPS if most < least < ceiling][:MAX_LARGER_BOUNDS]
    return larger or ([int(ceiling)] if most < ceiling < math.inf else [])
