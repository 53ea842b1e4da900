"""Cost estimates and releases in the terminal, and the story of `whosin demo`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table

from whosin.calibration import Plan
from whosin.exact import format_decimals, format_figures
from whosin.ledger.budget import Cost
from whosin.release import Answer, CostEstimate, Release
from whosin.release.answer import NOISY_MARK, cost_data
from whosin.release.contribution_bounds import CostWarning
from whosin.release.queries.base import AMOUNT, NAME, POINT
from whosin.report import card
from whosin.report.budget import belief_lines, budget_state_card, cost_words, history_line
from whosin.report.card import budget_words, describe_adversary, describe_delta
from whosin.report.table_views import (
    Crosstab,
    TableView,
    column_scales,
    describe_agreement,
    list_table_views,
)
from whosin.report.terminal import point_words, print_table
from whosin.report.text import print_sections, print_wrapped

if TYPE_CHECKING:
    from whosin.release.inspection import InspectionFinding, Preflight

# The tables of an answer that has several, on a terminal. Nothing is cut. A table of one column has
# a line for each cell; one of two columns is a crosstab where that fits and a list where it does
# not; tables that would make the output long are listed with their margins of error, and what saves
# them is said.


MOST_CELLS, SOME_CELLS = 150, 60
"""Cells of an answer that is printed whole, and of the tables that are printed of a longer one."""
MOST_LISTED = 30
MAX_WIDTH = 10_000
"""Wider than any terminal: what a table would like to have."""
TABLE_INDENT = (0, 2, 0, 2)


def print_tables(console: Console, answer: Answer, request: str) -> None:
    """The tables while they are short, and a line for each of the others."""
    all_views = list_table_views(answer)
    if words := describe_agreement(answer):
        console.print(Padding(escape(words), (0, 0, 0, 2), expand=False))
    short = sum(len(each.cells) for each in all_views) <= MOST_CELLS
    left = MOST_CELLS if short else SOME_CELLS
    listed: list[TableView] = []
    for view in all_views:
        if listed or len(view.cells) > left:
            listed.append(view)
            continue
        left -= len(view.cells)
        console.print(f"\n  [bold]{escape(view.title)}[/bold]  [dim]{view.margin_words}[/dim]")
        _print_view(console, view)
    if listed:
        _print_list(console, listed, len(all_views), request)


def _print_view(console: Console, view: TableView) -> None:
    tab = view.crosstab
    if tab is not None:
        table = crosstab_table(view, tab)
        wide = console.options.update(width=MAX_WIDTH)
        if Measurement.get(console, wide, table).maximum <= console.width:
            console.print(table)
            return
    print_table(console, list_table(view), len(view.keys))


def list_table(view: TableView) -> Table:
    """A line for each cell: its value with its margin of error, and the whole version."""
    table = Table(box=None, padding=TABLE_INDENT)
    for key in view.keys:
        table.add_column(escape(key), overflow="fold")
    for name in ("value ± margin", "whole (biased)"):
        table.add_column(name, justify="right")
    for index, cell in enumerate(view.cells):
        value = f"{_row_mark(view, index)}{view.number(index)} ± {view.margin(index)}"
        table.add_row(*(escape(str(each)) for each in cell), value, f"{view.wholes[index]:,}")
    return table


def crosstab_table(view: TableView, tab: Crosstab) -> Table:
    """Values by rows and columns; the margin of error is that of the whole table."""
    table = Table(box=None, padding=TABLE_INDENT)
    table.add_column(f"{escape(tab.down)} \\ {escape(tab.across)}")
    for label in tab.column_labels:
        table.add_column(escape(str(label)), justify="right")
    for label, indices in zip(tab.row_labels, tab.indices, strict=True):
        values = (f"{_row_mark(view, index)}{view.number(index)}" for index in indices)
        table.add_row(escape(str(label)), *values)
    return table


def _print_list(console: Console, listed: list[TableView], count: int, request: str) -> None:
    cells = sum(len(each.cells) for each in listed)
    more = " more" if len(listed) < count else ""
    tables = f"{len(listed)}{more} {'tables' if len(listed) > 1 else 'table'}"
    console.print(f"\n  [bold]{tables}[/bold] of {cells:,} cells in all")
    table = Table(box=None, padding=TABLE_INDENT)
    for name in ("table", "cells", "± a cell", "too noisy"):
        right = name != "table"
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for each in listed[:MOST_LISTED]:
        numbers = f"{len(each.cells):,}", each.spreads[0], f"{sum(each.noisy):,}"
        table.add_row(escape(each.title), *numbers)
    print_table(console, table)
    if len(listed) > MOST_LISTED:
        console.print(f"  and {len(listed) - MOST_LISTED} others")
    console.print(
        f"  To have them all, without paying again: --request {escape(request)} with --report"
        " out.html to look at, --save out.csv for a file each, --save out.parquet for one file."
    )


def _row_mark(view: TableView, index: int) -> str:
    return NOISY_MARK if any(view.noisy[index : index + 1]) else ""


MOST_SHOWN = 30
MOST_MEASURED = 8


def estimate_data(estimate: CostEstimate) -> dict[str, Any]:
    """A cost estimate as plain data, for JSON."""
    data = {
        "title": estimate.query.title,
        "question": dict(estimate.charge.what),
        "costs": {relation: cost_data(cost) for relation, cost in estimate.charge.costs.items()},
        "noise": estimate.noise,
        "error": estimate.error,
        "within": estimate.within,
        "within_words": estimate.within_words,
        "cautions": [caution.to_dict() for caution in estimate.cautions],
    }
    if estimate.tables:
        data |= {"tables": list(estimate.tables), "measured": list(estimate.measured)}
    if estimate.by_weights is not None:
        data |= {"standard_error": estimate.standard_error, "by_weights": estimate.by_weights}
    return data


def print_estimates(
    title: str, plan: Plan, estimates: Sequence[CostEstimate], remaining: float | None = None
) -> None:
    """What a batch would cost and how good it would be."""
    console = Console(highlight=False)
    console.print(f"[bold]{escape(title)}[/bold]: a dry run. Nothing is spent, no row is read.")
    promise = [
        describe_adversary(plan.family),
        f"Whoever that is {plan.target.words()}.",
        *describe_delta(plan),
    ]
    console.print(escape(" ".join(promise)))
    print_table(console, estimate_table(plan, estimates))
    for estimate in estimates:
        if estimate.within_words:
            console.print(escape(f"{estimate.query.title}: {estimate.within_words}."))
    for estimate in estimates:
        if estimate.tables:
            console.print(f"\n[bold]{escape(estimate.query.title)}[/bold], table by table")
            print_table(console, error_table(estimate))
            console.print(f"Measured: {escape(measured_words(estimate))}.")
    print_gains(console, estimates)
    print_cautions(console, estimates)
    if any(estimate.charge.alone for estimate in estimates):
        console.print("Its promise does not add to others: it must be the only release.")
    else:
        total = sum((estimate.charge.cost(plan.relation) for estimate in estimates), Cost(0, 0))
        console.print(f"In all {cost_words(total)} of {budget_words(plan)}.")
    if remaining is not None:
        console.print(
            f"The dataset has ε = {format_figures(remaining, 6, 'down')} left in its ledger."
        )


def print_gains(console: Console, estimates: Sequence[CostEstimate]) -> None:
    """By how much the split for the least error helps, and what is measured at once."""
    compared = [estimate for estimate in estimates if estimate.by_weights is not None]
    if not compared:
        return
    console.print("\nStandard error of a number, split by weights → optimal")
    table = Table(box=None, padding=(0, 2, 0, 2), show_header=False)
    for estimate in compared[:MOST_SHOWN]:
        moved = f"{_short_value(estimate.by_weights)} → {_short_value(estimate.standard_error)}"
        table.add_row(escape(estimate.query.title), moved)
    if len(compared) > MOST_SHOWN:
        table.add_row(f"… {len(compared) - MOST_SHOWN} more")
    print_table(console, table)
    for joint in {
        id(estimate.joint): estimate.joint for estimate in compared if estimate.joint
    }.values():
        titles = escape(joint.query.title)
        console.print(f"Measured at once for {titles}: {escape(measured_words(joint))}.")


def _short_value(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def print_cautions(console: Console, estimates: Sequence[CostEstimate]) -> None:
    """What to decide before asking, each once, with the queries that it is about."""
    alike: dict[tuple[object, ...], list[tuple[str, CostWarning]]] = {}
    for estimate in estimates:
        for caution in estimate.cautions:
            key = caution.about, bool(caution.columns), caution.times
            alike.setdefault(key, []).append((estimate.query.title, caution))
    for several in alike.values():
        columns = dict.fromkeys(name for _, each in several for name in each.columns)
        words = replace(several[0][1], columns=tuple(columns)).words
        titles = ", ".join(dict.fromkeys(title for title, _ in several))
        about = "" if several[0][1].epsilons else f", {escape(titles)}"
        console.print(f"[yellow]Warning[/yellow]{about}: {escape(words)}.")


def estimate_table(plan: Plan, estimates: Sequence[CostEstimate]) -> Table:
    """Queries with their costs and expected errors."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("query", "cost", "expected error", "95% within", "noise"):
        table.add_column(name, overflow="fold")
    for estimate in estimates:
        table.add_row(
            escape(estimate.query.title),
            cost_words(estimate.charge.cost(plan.relation)),
            _format_number(estimate.error),
            ""
            if estimate.within is None or estimate.within_words
            else f"±{_format_up(estimate.within)}",
            escape(estimate.noise),
        )
    return table


def error_table(estimate: CostEstimate) -> Table:
    """The tables of a cost estimate with the standard error of a cell of each."""
    table = Table(box=None, padding=(0, 2, 0, 2))
    for name in ("table", "standard error of a cell"):
        table.add_column(name, overflow="fold")
    for each in estimate.tables[:MOST_SHOWN]:
        table.add_row(escape(", ".join(each["columns"]) or "total"), error_words(each))
    if len(estimate.tables) > MOST_SHOWN:
        table.add_row(f"… {len(estimate.tables) - MOST_SHOWN} more")
    return table


def error_words(table: Mapping[str, Any]) -> str:
    """The standard error of a cell; the least and the largest where sums are not equally exact."""
    ends = [_format_number(table.get(key)) for key in ("least_error", "largest_error")]
    return (
        " to ".join(dict.fromkeys(ends)) if all(ends) else _format_number(table["standard_error"])
    )


def measured_words(estimate: CostEstimate) -> str:
    """What is measured, and with which part of the budget; those with most of it first."""
    word = "epsilon" if "epsilon" in estimate.measured[0] else "rho"
    letter = "ε" if word == "epsilon" else "ρ"
    ranked = sorted(estimate.measured, key=lambda each: -float(each[word]))
    said = []
    for each in ranked[:MOST_MEASURED]:
        columns = ", ".join(each["columns"]) or "total"
        kind = " (differences)" if each["differences"] else ""
        said.append(f"{columns}{kind} {letter} = {each[word]:.3g}")
    more = len(ranked) - MOST_MEASURED
    return "; ".join(said) + (f"; {more} more" if more > 0 else "")


def print_release(title: str, plan: Plan, release: Release) -> None:
    """Answers with their errors and costs, then what they allow anyone to believe."""
    console = Console(highlight=False)
    console.print(f"[bold]{escape(title)}[/bold]")
    for answer in release:
        paid = cost_words(answer.cost)
        console.print(f"\n[bold]{escape(answer.title)}[/bold]  [dim]{paid}; {answer.noise}[/dim]")
        if answer.tables:
            print_tables(console, answer, release.request)
        else:
            print_table(console, answer_table(answer))
        for said in filter(None, (answer.noisy_note, answer.statement)):
            console.print(Padding(f"[dim]{escape(said)}[/dim]", (0, 0, 0, 2), expand=False))
    console.print()
    print_sections(budget_state_card(release.budget_state))


def answer_table(answer: Answer) -> Table:
    """An answer's rows; an interval becomes one column."""
    columns = [name for name in answer.columns if name not in ("low", "high")]
    ranged, scales = "low" in answer.columns, column_scales(answer)
    table = Table(box=None, padding=(0, 2, 0, 2), show_header=True)
    for name in columns:
        table.add_column(escape(name), justify="right" if name == "value" else "left")
    if ranged:
        table.add_column("95% interval")
    for index, row in enumerate(answer.rows[:MOST_SHOWN]):
        data = dict(zip(answer.columns, row, strict=True))
        cells = [cell_words(data[name], scales[name]) for name in columns]
        if any(answer.noisy[index : index + 1]):  # in front, so that digits stay in line
            cells[columns.index("value")] = NOISY_MARK + cells[columns.index("value")]
        if ranged:
            ends = (cell_words(data[name], scales[name]) for name in ("low", "high"))
            cells.append(" to ".join(ends))
        table.add_row(*(escape(cell) for cell in cells))
    if len(answer.rows) > MOST_SHOWN:
        table.add_row(f"… {len(answer.rows) - MOST_SHOWN} more")
    return table


def _format_up(value: float) -> str:
    return format_figures(value, 6, "up")


def _format_number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def cell_words(value: Any, scale: str = AMOUNT) -> str:
    """A value of a cell of an answer.

    Args:
        scale: amounts have commas, points of a column may be years, names stay as they are.
    """
    if value is None:
        return "–"
    if scale == NAME or isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    spec = "" if isinstance(value, int) else ".6g" if abs(value) < 1e6 else ".1f"
    return point_words(value, spec) if scale == POINT else f"{value:,{spec}}"


def print_findings(warning: str, findings: Sequence[InspectionFinding]) -> None:
    """The curator's exact figures about the rows."""
    console = Console(highlight=False)
    console.print(f"[red]{warning}[/red]")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(justify="right")
    table.add_column()
    for finding in findings:
        table.add_row(f"{finding.rows:,}", escape(finding.what))
    console.print(table)


def print_demo(
    title: str, plan: Plan, estimates: Sequence[CostEstimate], release: Release, refusal: str
) -> None:
    """Plan, dry run, release, ledger: what the main job looks like."""
    console = Console(highlight=False)
    console.print(f"[bold]{escape(title)}[/bold]")
    console.print("\n[bold]1 plan[/bold]  who may be looking, and how sure they may become")
    for line in (card.describe_adversary(plan.family), f"Whoever that is {plan.target.words()}."):
        print_wrapped(line)
    level = format_decimals(plan.epsilon, 4, "down")
    print_wrapped(f"That takes ε = {level} in all ({plan.relation} neighbours).")
    console.print("\n[bold]2 dry run[/bold]  cost and error before anything runs")
    console.print(estimate_table(plan, estimates))
    console.print("\n[bold]3 release[/bold]  debited first, then answered with exact noise")
    for answer in release:
        console.print(f"\n  [bold]{escape(answer.title)}[/bold]")
        console.print(answer_table(answer))
    console.print("\n[bold]4 ledger[/bold]  what all of it together allows anyone to believe")
    for line in (*belief_lines(release.budget_state)[1:], history_line(release.budget_state)):
        print_wrapped(line)
    print_wrapped(f"A second session is refused: {refusal}.")
    console.print()


def describe_preflight(found: Preflight) -> list[str]:
    """What the curator's look found, a sentence for each column or condition; not for others."""
    lines = []
    for each in found.columns:
        parts = []
        if each.empty:
            parts.append(f"no row has the declared {_list_values(each.empty)}")
        if each.undeclared:
            share = f"{each.undeclared:,} of {each.rows:,} rows"
            named = ", ".join(f"{value!r} ({count:,})" for value, count in each.named)
            parts.append(f"{share} have undeclared values{': ' if named else ''}{named}")
        if parts:
            lines.append(f"{each.column}: {'; '.join(parts)}")
    return [*lines, *(f"where {text}: true of no row" for text in found.empty_conditions)]


def _list_values(values: Sequence[object]) -> str:
    shown = ", ".join(map(repr, values[:5]))
    return f"{shown} and {len(values) - 5} more" if len(values) > 5 else shown


def describe_costs(plan: Plan, estimates: Sequence[CostEstimate]) -> str:
    """What a batch spends of its plan, in one sentence."""
    total = sum((estimate.charge.cost(plan.relation) for estimate in estimates), Cost(0, 0))
    return f"{len(estimates)} answers will spend {cost_words(total)} of {budget_words(plan)}."
