"""The curator's private look at a table: what the policies will drop, clamp or call "other".

Nothing here goes through a ledger, so nothing of it may be published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from whosin.errors import BudgetRefused, LazyModule, ScanFailed, WhosinError, shorten, spell
from whosin.exact import rational
from whosin.ledger import Ledger
from whosin.release.column_expressions import Cellular, GroupGrid, add_levels
from whosin.release.conditions import condition_columns, parse_condition
from whosin.release.contribution_bounds import (
    BoundLook,
    ContributionPolicy,
    CostWarning,
    column_behind,
    contribution_policies,
    filter_rows,
    look_at_bounds,
)
from whosin.release.cost import CostEstimate
from whosin.release.domains import (
    CLAMP,
    Dates,
    Domain,
    Range,
    Values,
    date_code,
    describe_misspelt_days,
)
from whosin.release.engines.confined import count_broken_lines
from whosin.release.queries.base import MAX_NAME_LENGTH
from whosin.release.row_values import fold_letters, fold_text, number_value
from whosin.release.table import Table

ibis = LazyModule("ibis")

CURATOR_NOTE = "Exact figures about the rows: for the curator alone, not for publication."
BOUNDS_NOTE = (
    "bounds and ranges come from what is known without these rows: chosen by these figures they "
    "are an answer that nobody paid for"
)
SHOWN_SIZES = (1, 2, 5, 10, 100)
"""How many rows a privacy unit has: where one class ends."""


@dataclass(frozen=True)
class InspectionFinding:
    """One exact figure about the rows: private."""

    what: str
    rows: int


def check_table(
    table: Table, conditions: Sequence[str] = (), counted: Sequence[ContributionPolicy] = ()
) -> list[InspectionFinding]:
    """Exact figures: rows, privacy units, missing privacy units, the most rows of one, what lies
    outside.

    Args:
        conditions: of how many rows each is true.
        counted: what counts in each answer that will be asked for, so that it is said what becomes
            of numbers outside their ranges there; all that may become of them by default.
    """
    used = {name for text in conditions for name in condition_columns(text)}
    table = table.about({*table.domains, *used}, rows=True)
    data = add_levels(table.data, table.domains, " ".join(map(str, conditions)))
    domains = table.domains.items()
    listed = {name: replace(each, outside=None) for name, each in domains if type(each) is Values}
    cells = GroupGrid(tuple(listed), tuple(listed.values()))
    keys = dict(zip(cells.columns, cells.names, strict=True))
    # What is true of the rows that are counted, or a column of values, whose cells are counted.
    marks: dict[str, Any] = {"rows": ibis.literal(True)}
    if not table.by_row:
        marks["rows without a privacy unit, which are dropped"] = data[table.privacy_unit].isnull()
    never_named = _never_named(table, counted)
    for column, domain in domains:
        fate = _describe_undeclared(domain, column not in never_named)
        if isinstance(domain, Values):
            marks[f"{column}: not a declared value, {fate}"] = column
            continue
        value, ends = _numbered_values(data[column], domain)
        if isinstance(domain, Dates):
            kind, outside = "date", {"outside {}..{}".format(*domain.ends): ends}
        else:
            uses = _column_uses(table, column, counted)
            kind, outside = "number", _describe_outside(domain, fate, *uses)
        marks[f"{column}: no {kind} there"] = value.isnull()
        for where, (low, high) in outside.items():
            marks[f"{column}: {where}"] = (value < low) | (value > high)
    for text in conditions:
        marks[f"where {text}"] = parse_condition(text, data)
    names = {what: f"mark_{index}" for index, what in enumerate(marks)}
    dated = {f"{name}: no date there": name for name, each in domains if isinstance(each, Dates)}
    plain = {names[what]: mark for what, mark in marks.items() if not isinstance(mark, str)}
    coded = cells.coded(data, **plain)
    undeclared = {name: coded[keys[name]] == len(each.values) for name, each in listed.items()}
    figures = {
        what: (undeclared[mark] if isinstance(mark, str) else coded[names[what]]).sum()
        for what, mark in marks.items()
    }
    result = [
        each
        for what, found in zip(marks, _find_figures(table, coded, figures), strict=True)
        for each in (found, *_name_values(table, dated.get(what, marks[what])))
    ]
    units = _inspect_privacy_units(table, _derived_groups(table, counted))
    return result[:1] + units + result[1:] + _check_lines(table)


def _check_lines(table: Table) -> list[InspectionFinding]:
    """The files of a folder that are not read, and the lines of local CSV files that are not what
    the header says; nothing for tables elsewhere."""
    source = str(table.source)
    local = isinstance(table.source, str | Path) and "::" not in source and "://" not in source
    found = count_broken_lines(source) if local else {}
    return [InspectionFinding(what, count) for what, count in found.items()]


def _derived_groups(table: Table, counted: Sequence[ContributionPolicy]) -> dict[str, Cellular]:
    """What answers group by that is no column: functions such as month(visit), and upper levels."""
    named = {name for each in counted for name in (*each.others, *each.outside, *each.unnamed)}
    derived = sorted(name for name in named if column_behind(table.domains, name) != name)
    return {name: table.grouping(name) for name in derived}


def _find_figures(table: Table, rows: Any, figures: Mapping[str, Any]) -> list[InspectionFinding]:
    """Aggregates of rows, by what they say."""
    names = {f"figure_{index}": each for index, each in enumerate(figures.values())}
    row = table.engine.run(rows.aggregate(**names)).to_pylist()[0]
    pairs = zip(figures, names, strict=True)
    return [InspectionFinding(what, int(row[name] or 0)) for what, name in pairs]


def _name_values(table: Table, column: object) -> list[InspectionFinding]:
    """The undeclared values of a column and the declared ones that no row has: one of each is most
    often a misspelling. Nothing for anything but the name of a column."""
    if not isinstance(column, str):
        return []
    if isinstance(table.domains[column], Dates):
        named = _find_misspelt_days(table, column)
        what = f"{column}: {describe_misspelt_days(named)}" if named else ""
        return [InspectionFinding(what, sum(rows for _, rows in named))] * bool(named)
    look = _look_at_values(table, column, table.data, ibis.literal(True))
    return [
        InspectionFinding(f"{column}: {shorten(value)!r}, which is not declared", rows)
        for value, rows in look.named
        if value is not None
    ] + [
        InspectionFinding(f"{column}: {value!r}, which is declared", 0)
        for value in look.empty[:MAX_NAMED_VALUES]
    ]


def _numbered_values(value: Any, domain: Range | Dates) -> tuple[Any, tuple[float, float]]:
    """A column's numbers, or the codes of its days, and the ends of their domain."""
    if isinstance(domain, Range):
        return number_value(value), (float(domain.bounds[0]), float(domain.bounds[1]))
    first, last = domain.ends
    return replace(domain, outside=None).code(value), (date_code(first), date_code(last))


# The preflight: what would make a release worthless, looked for before anything is paid. A category
# that no row has is most often misspelt, and so is a column whose rows are mostly undeclared: that
# stops it. What may be meant, such as bounds that leave much out, is for the person to accept.


MAX_NAMED_VALUES = 5
"""Undeclared values of a column that are named, the most frequent first."""
MAX_UNDECLARED_SHARE = 0.5


@dataclass(frozen=True)
class ColumnLook:
    """What the rows hold beside the domain of a column: private, for the curator.

    Attributes:
        rows: those that meet the condition of a question which groups by the column or computes
            with it; where conditions alone name it, all rows, of which any number is declared.
        undeclared: those of them with another value than the declared ones, or a number outside.
        named: the most frequent undeclared values of all rows, None for nothing, with their rows.
        empty: declared values that no row has, whatever conditions say.
        missing: rows without a number or a date there, which are among the undeclared.
        misspelt: of dates, the most frequent texts that are none, with how many rows have each.
        alike: the most frequent values of all rows that are declared ones but for letter case or
            white space, with these and with their rows.
        used: the part of a declared range between the least and the largest number in it.
    """

    column: str
    rows: int
    undeclared: int
    named: tuple[tuple[str | None, int], ...] = ()
    empty: tuple[str | int, ...] = ()
    missing: int = 0
    used: float | None = None
    misspelt: tuple[tuple[str, int], ...] = ()
    alike: tuple[tuple[str, str, int], ...] = ()

    @property
    def stops(self) -> bool:
        """Whether a release should not be paid for before somebody has looked at this column."""
        mostly = self.undeclared > MAX_UNDECLARED_SHARE * self.rows
        return bool(self.empty or self.alike) or mostly


@dataclass(frozen=True)
class GroupLook:
    """Groups of a question that are too small for its noise.

    Attributes:
        groups: how many were declared, and `small`, how many have fewer than `least` rows that
            count: their intervals would be the whole declared range.
    """

    question: str
    groups: int
    small: int
    least: int

    @property
    def asks(self) -> bool:
        """Whether most of what is paid for would say nothing."""
        return self.small > MAX_UNDECLARED_SHARE * self.groups


@dataclass(frozen=True)
class Preflight:
    """The curator's look before the first debit of a scenario.

    Attributes:
        empty_conditions: conditions of questions that are true of no row.
        rows: rows of the table, and `lost`, those without a privacy unit, which are dropped.
        bounds: contribution bounds that leave rows or groups of somebody out.
        groups: questions with groups whose intervals would be the whole declared range.
        meaningless: questions whose intervals will be that whatever the rows are.
        missing_periods: of running totals, by question, the periods that no row is in.
        changed_periods: those whose rows are not the ones that earlier steps were drawn from.
        unreadable: questions whose answers need more rows than there are, with what each needs.
        unreadable_part: the part of what is spent that goes to them.
        wasted_part: the part that goes to means, medians and the like among them.
        constants: what conditions compare a column with that is no declared value of it.
    """

    columns: tuple[ColumnLook, ...] = ()
    empty_conditions: tuple[str, ...] = ()
    rows: int = 0
    lost: int = 0
    bounds: tuple[BoundLook, ...] = ()
    groups: tuple[GroupLook, ...] = ()
    meaningless: tuple[str, ...] = ()
    missing_periods: tuple[tuple[str, str], ...] = ()
    changed_periods: tuple[tuple[str, str], ...] = ()
    unreadable: tuple[tuple[str, float, str], ...] = ()
    unreadable_part: float = 0.0
    wasted_part: float = 0.0
    constants: tuple[CostWarning, ...] = ()

    @property
    def stops(self) -> bool:
        """Whether the release should not be paid for as it is."""
        return bool(self.causes)

    @property
    def causes(self) -> list[str]:
        """What stops the release: columns and conditions, most often misspelt."""
        return [
            *(f"column {each.column}" for each in self.columns if each.stops),
            *(f"where {text}" for text in self.empty_conditions),
            *(f"{each.constant!r} in where" for each in self.constants),
            *(f"the missing periods of {title}" for title, _ in self.missing_periods),
        ]

    @property
    def asks(self) -> list[str]:
        """What somebody has to accept before it is paid for."""
        lost = self.lost > MAX_UNDECLARED_SHARE * self.rows
        wasted = self.wasted_part > MAX_UNDECLARED_SHARE
        describe_cuts = import_module("whosin.report.releases").describe_cuts
        cuts: dict[str, list[BoundLook]] = {}
        for look in self.bounds:
            if look.asks:
                cuts.setdefault(look.question, []).append(look)
        return [
            *(["rows without a privacy unit would be dropped"] if lost else []),
            *(f"{name}: {describe_cuts(looks)}" for name, looks in cuts.items()),
            *(f"{each.question}: groups are too small" for each in self.groups if each.asks),
            *(f"{title}: intervals would be the whole range" for title in self.meaningless),
            *(f"{title}: too noisy to read" for title, _, _ in self.unreadable if wasted),
            *(f"{title}: the rows of {each} have changed" for title, each in self.changed_periods),
        ]

    @property
    def lines(self) -> list[str]:
        """What was found, a sentence each; for the curator."""
        return list(import_module("whosin.report.releases").describe_preflight(self))

    def refuse(self, skip: str, *, details: bool = False) -> BudgetRefused:
        """The refusal of a release that should not be paid for.

        Args:
            skip: how to leave the look out.
            details: say all that was found.
        """
        changed = (f"the changed periods of {title}" for title, _ in self.changed_periods)
        error = _refuse(
            "because of " + " and ".join([*self.causes, *changed]),
            "domains",
            f"correct what is misspelt ({BOUNDS_NOTE}); what is as it should be, such as a "
            f"declared value that is only absent this time, stays: {skip}",
        )
        if details:
            error.args = ("\n  ".join([str(error), *self.lines]),)
        return error

    def require_accepted(self, accept: str) -> None:
        """Refuse what nobody accepted.

        Args:
            accept: how to accept it.
        """
        if self.asks:
            better = "keep those rows" if self.changed_periods else f"ask less; {BOUNDS_NOTE}"
            hint = f"{accept} releases it as it is; else {better}"
            raise _refuse("; ".join(self.asks), "queries", hint)


def _refuse(why: str, field: str, hint: str) -> BudgetRefused:
    link = "," if why.startswith("because") else ":"
    message = f"the release was stopped before anything was spent{link} {why}"
    return BudgetRefused(message, field=field, hint=hint)


def look_before_debit(
    table: Table,
    queries: Sequence[Any],
    estimates: Sequence[CostEstimate],
    ledger: Ledger | None = None,
    dataset: str = "",
) -> Preflight:
    """The curator's look at what questions use, before the first debit; nothing is spent.

    Args:
        ledger: where the dataset may have answered before.

    Raises:
        ScanFailed: the engine failed; its words, which may name rows, are not repeated.
    """
    from whosin.release.accuracy import list_unreadable, meaningless_titles
    from whosin.release.queries.running import find_changed_periods, find_missing_periods

    queries = [
        query if query.title == each.title else replace(query, name=each.title[:MAX_NAME_LENGTH])
        for query, each in zip(queries, estimates, strict=True)
    ]
    policies = contribution_policies(table, queries)
    said = [caution for each in estimates for caution in each.cautions]
    try:
        found = run_preflight(table, policies, queries, [each.told_from for each in estimates])
        meaningless = meaningless_titles(estimates)
        unreadable, part, wasted = list_unreadable(estimates, found.rows)
        said_already = {*meaningless, *(each.question for each in found.groups if each.asks)}
        return replace(
            found,
            meaningless=meaningless,
            missing_periods=tuple(find_missing_periods(table, queries)),
            changed_periods=tuple(find_changed_periods(table, queries, ledger, dataset)),
            unreadable=tuple(each for each in unreadable if each[0] not in said_already),
            unreadable_part=part,
            wasted_part=wasted,
            constants=tuple(dict.fromkeys(each for each in said if each.constant is not None)),
        )
    except WhosinError:
        raise
    except Exception as error:
        raise ScanFailed(
            f"the engine failed ({type(error).__name__}) while it looked at the rows; nothing was "
            "spent",
            hint="see whether other programs can read the table",
        ) from None


def run_preflight(
    table: Table,
    policies: Sequence[ContributionPolicy],
    queries: Sequence[Any],
    sizes: Sequence[int | None] = (),
) -> Preflight:
    """Look at the columns that the questions use, at their conditions and their bounds; nothing is
    spent, and nothing of it may be published.

    Args:
        queries: the questions, one for each policy, whose bounds are looked at.
        sizes: for each question the rows that a group needs (`CostEstimate.told_from`).
    """
    conditions = list(dict.fromkeys(each.where for each in queries if each.where is not None))
    groups = [
        _look_at_groups(query.restrict_table(table), query, least)
        for query, least in zip(queries, sizes, strict=False)
        if least is not None
    ]
    known: dict[Any, dict[str, int]] = {}
    bounds = dict.fromkeys(
        look
        for query, policy in zip(queries, policies, strict=True)
        for look in look_at_bounds(query.restrict_table(table), query, policy, known)
    )
    scopes: dict[str, dict[str | None, None]] = {}
    for policy, query in zip(policies, queries, strict=True):
        for each in (*policy.others, *policy.outside, *policy.unnamed, *policy.ranges):
            scopes.setdefault(column_behind(table.domains, each), {})[query.where] = None
    used = {*scopes, *(name for text in conditions for name in condition_columns(text))}
    names = [name for name in table.domains if name in used]
    table = table.about(used, rows=True)
    data = add_levels(table.data, table.domains, " ".join(conditions))
    met = {text: parse_condition(text, data) for text in conditions} | {None: ibis.literal(True)}
    counted = {name: ibis.or_(*(met[text] for text in scopes.get(name, ()))) for name in names}
    # All plain figures in one scan; values of columns need one for each.
    figures: dict[Any, Any] = {"rows": data.count()}
    if not table.by_row:
        figures["lost"] = data[table.privacy_unit].isnull().sum()
    figures |= {("where", text): met[text].sum() for text in conditions}
    for name in names:
        domain = table.domains[name]
        if not isinstance(domain, Values):
            value, (low, high) = _numbered_values(data[name], domain)
            within = (value >= low) & (value <= high) if name in scopes else value.notnull()
            mark = counted[name] if name in scopes else met[None]
            figures["rows", name] = data.count(where=mark)
            figures["inside", name] = (within & mark).sum()
            figures["missing", name] = value.isnull().sum(where=mark)
            held = (within & mark).ifelse(value, None)
            figures["span", name] = held.max() - held.min()
    keys = {f"figure_{number}": each for number, each in enumerate(figures.values())}
    row = table.engine.run(data.aggregate(**keys)).to_pylist()[0]
    found = dict(zip(figures, (row[key] or 0 for key in keys), strict=True))
    columns = [
        _look_at_values(table, name, data, counted[name])
        if isinstance(domain := table.domains[name], Values)
        else ColumnLook(
            name,
            int(found["rows", name]),
            int(found["rows", name] - found["inside", name]),
            missing=int(found["missing", name]),
            used=_used_part(domain, found["span", name]),
            misspelt=_find_misspelt_days(table, name) if found["missing", name] else (),
        )
        for name in names
    ]
    empty = tuple(text for text in conditions if not found["where", text])
    lost, small = int(found.get("lost", 0)), tuple(each for each in groups if each.small)
    return Preflight(tuple(columns), empty, int(found["rows"]), lost, tuple(bounds), small)


def _used_part(domain: Domain, span: float) -> float | None:
    """Which part of a range its numbers fill; None for dates, which cost the same in any range."""
    if not isinstance(domain, Range):
        return None
    low, high = map(float, domain.bounds)
    return float(span) / (high - low) if high > low else None


def _look_at_groups(table: Table, query: Any, least: int) -> GroupLook:
    """How many of the declared groups of a question have fewer rows that count than it needs."""
    cells = query.cells(table) if hasattr(query, "cells") else GroupGrid((), ())
    rows, most = filter_rows(table.data, table, query.where), query.bounds(table).max_rows_per_group
    keys = list(cells.names)
    if not table.by_row:
        owned = rows.filter(rows[table.privacy_unit].notnull())
        coded = cells.coded(owned, whose=owned[table.privacy_unit])
        held = coded.group_by(["whose", *keys]).aggregate(n=coded.count())
        held = held.mutate(n=(held["n"] > most).ifelse(most, held["n"]))
    else:
        held = cells.coded(rows, n=1)
    grouped = held.group_by(keys) if keys else held
    sizes = grouped.aggregate(n=held["n"].sum())
    for name, domain in zip(keys, cells.domains, strict=True):
        sizes = sizes.filter(
            sizes[name].between(0, len(domain.labels) - 1 - (domain.outside is None))
        )
    found = table.engine.run(sizes.aggregate(large=(sizes["n"] >= least).sum())).to_pylist()[0]
    groups = query.group_count(table)
    return GroupLook(query.title, groups, max(0, groups - int(found["large"] or 0)), least)


def _look_at_values(table: Table, column: str, data: Any, counted: Any) -> ColumnLook:
    """What a column of categories holds, and how many of the counted rows are undeclared."""
    domain: Any = table.domains[column]
    cells = GroupGrid((column,), (replace(domain, outside=None),))
    coded = cells.coded(data, value=data[column].cast("string"), counted=counted)
    key, other = cells.names[0], len(domain.values)
    grouped = coded.group_by(key).aggregate(n=coded.count(), counted=coded["counted"].sum())
    found = {row[key]: row for row in table.engine.run(grouped).to_pylist()}
    rows = sum(int(row["counted"] or 0) for row in found.values())
    empty = tuple(each for code, each in enumerate(domain.values) if code not in found)
    if other not in found:
        return ColumnLook(column, rows, 0, (), empty)
    outside = coded.filter(coded[key] == other)
    undeclared = int(found[other]["counted"] or 0)
    folded = {fold_text(str(each)): str(each) for each in reversed(domain.values)}
    alike = fold_letters(outside["value"])
    kept = outside.mutate(alike=alike).filter(alike.isin(list(folded)))
    named = [(value, held) for (value,), held in _most_frequent(table, outside, "value")]
    same = _most_frequent(table, kept, "value", "alike")
    meant = ((value, folded[letters], held) for (value, letters), held in same)
    return ColumnLook(column, rows, undeclared, tuple(named), empty, alike=tuple(meant))


def _most_frequent(table: Table, rows: Any, *columns: str) -> list[tuple[tuple[Any, ...], int]]:
    """The most frequent values of some columns, with how many rows have each."""
    listed = rows.group_by(list(columns)).aggregate(n=rows.count())
    first = listed.order_by([listed["n"].desc(), *(listed[name] for name in columns)])
    found = table.engine.run(first.limit(MAX_NAMED_VALUES)).to_pylist()
    return [(tuple(row[name] for name in columns), int(row["n"])) for row in found]


def _find_misspelt_days(table: Table, column: str) -> tuple[tuple[str, int], ...]:
    """The most frequent texts of a column of dates that are none, if it has texts."""
    data, domain = table.data, table.domains[column]
    if not isinstance(domain, Dates) or not data[column].type().is_string():
        return ()
    missing = replace(domain, outside=None).code(data[column]).isnull()
    others = data.filter(missing & (data[column] != "")).select(value=data[column])
    return tuple((value, rows) for (value,), rows in _most_frequent(table, others, "value"))


def _never_named(table: Table, counted: Sequence[ContributionPolicy]) -> set[str]:
    """Columns whose undeclared values are in no cell of any answer, since all of them only name
    values."""
    unnamed = {column_behind(table.domains, name) for each in counted for name in each.unnamed}
    others = {column_behind(table.domains, name) for each in counted for name in each.others}
    return unnamed - others


def _describe_undeclared(domain: Domain, named: bool = True) -> str:
    """What becomes of a value that was not declared."""
    if domain.outside is None:
        return f'in "{domain.labels[-1]}"' if named else "never named"
    if domain.outside == CLAMP and not isinstance(domain, Values):
        return "in the first or the last bin"
    return "dropped" if domain.drops else f'counted as "{domain.outside}"'


def _column_uses(
    table: Table, column: str, counted: Sequence[ContributionPolicy]
) -> tuple[bool, bool]:
    """Whether answers put rows into cells by a column, and whether they compute with its numbers;
    both that is possible, where none of them does either."""
    names = {name for each in counted for name in (*each.others, *each.outside, *each.unnamed)}
    in_cells = column in {column_behind(table.domains, name) for name in names}
    as_numbers = any(column in each.ranges for each in counted)
    if in_cells or as_numbers:
        return in_cells, as_numbers
    return bool(table.domains[column].edges), True  # type: ignore[union-attr]


def _describe_outside(
    domain: Range, placed: str, in_cells: bool, as_numbers: bool
) -> dict[str, tuple[float, float]]:
    """What becomes of numbers outside, in words, with the ends beyond which it does."""
    low, high = ends = float(domain.bounds[0]), float(domain.bounds[1])
    edges = [float(rational(edge)) for edge in domain.edges]
    bins = (edges[0], edges[-1]) if edges else ends
    if not in_cells:
        return {f"outside {spell(low)}..{spell(high)}, clamped": ends}
    if not as_numbers:
        return {f"outside the bins {spell(bins[0])}..{spell(bins[1])}, {placed}": bins}
    numbers = "clamped in sums, means and medians"
    if bins == ends:
        return {f"outside {spell(low)}..{spell(high)}, {placed} in cells, {numbers}": ends}
    return {
        f"outside {spell(low)}..{spell(high)}, {numbers}": ends,
        f"outside the bins {spell(bins[0])}..{spell(bins[1])}, {placed} in cells": bins,
    }


def _inspect_privacy_units(
    table: Table, derived: Mapping[str, Cellular]
) -> list[InspectionFinding]:
    """How many privacy units there are, how many rows they have, and where these differ: in which
    declared columns, and in which groups that are derived from them."""
    if table.by_row:
        each_row = {"privacy units: each row is one": table.data.count()}
        return _find_figures(table, table.data, each_row)
    owned = table.data.filter(table.data[table.privacy_unit].notnull())
    grouped: dict[str, Cellular] = {
        name: each
        for name, each in table.domains.items()
        if name != table.privacy_unit and (isinstance(each, Values) or each.edges)
    }
    grouped |= derived
    cells = GroupGrid(tuple(grouped), tuple(grouped.values()))
    coded = cells.coded(owned, True, whose=owned[table.privacy_unit])
    spread = {name: coded[name].nullif(-1).nunique() for name in cells.names}
    sizes = coded.group_by("whose").aggregate(n=coded.count(), **spread)
    size = sizes["n"]
    figures = {"privacy units": sizes.count()}
    for before, most in pairwise((0, *SHOWN_SIZES)):
        label = f"{most}" if most == before + 1 else f"{before + 1} to {most}"
        inside = (size > before) & (size <= most)
        figures[f"privacy units with {label} {'row' if most == 1 else 'rows'}"] = inside.sum()
    figures[f"privacy units with more than {most} rows"] = (size > most).sum()
    figures["the most rows of one privacy unit"] = size.max()
    figures[f"privacy units with more rows than count, {table.max_rows_per_group}"] = (
        size > table.max_rows_per_group
    ).sum()
    for column, name in zip(cells.columns, cells.names, strict=True):
        said = ", declared constant" if grouped[column].constant else ""
        figures[f"{column}: privacy units in more than one cell{said}"] = (sizes[name] > 1).sum()
        figures[f"{column}: the most cells of one privacy unit"] = sizes[name].max()
    found, helps = _find_figures(table, sizes, figures), table.max_groups > 1
    never = {f"{name}: privacy units in more than one cell" for name in table.domains if helps}
    known = ("", "; if that is publicly known, constant = true makes the noise smaller")
    return [replace(x, what=x.what + known[x.what in never and not x.rows]) for x in found]
