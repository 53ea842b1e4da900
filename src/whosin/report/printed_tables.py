"""The tables of an answer that has several, on a terminal.

Contract: nothing is cut. A table of one column has a line for each cell; one of two columns is a
crosstab where that fits and a list where it does not; tables that would make the output long are
listed with their margins of error, and what saves them is said.
"""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table

from whosin.release import Answer
from whosin.release.noisy_cells import MARK
from whosin.report.table_views import Crosstab, TableView, agreement, views
from whosin.report.terminal_tables import print_table

MOST_CELLS, SOME_CELLS = 150, 60
"""Cells of an answer that is printed whole, and of the tables that are printed of a longer one."""
MOST_LISTED = 30
WIDEST = 10_000
"""Wider than any terminal: what a table would like to have."""
INDENT = (0, 2, 0, 2)


def print_tables(console: Console, answer: Answer, request: str) -> None:
    """The tables while they are short, and a line for each of the others."""
    all_views = views(answer)
    if words := agreement(answer):
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
        _print(console, view)
    if listed:
        _print_list(console, listed, len(all_views), request)


def _print(console: Console, view: TableView) -> None:
    tab = view.crosstab
    if tab is not None:
        table = crosstab_table(view, tab)
        wide = console.options.update(width=WIDEST)
        if Measurement.get(console, wide, table).maximum <= console.width:
            console.print(table)
            return
    print_table(console, list_table(view), len(view.keys))


def list_table(view: TableView) -> Table:
    """A line for each cell: its value with its margin of error, and the whole version."""
    table = Table(box=None, padding=INDENT)
    for key in view.keys:
        table.add_column(escape(key), overflow="fold")
    for name in ("value ± margin", "whole (biased)"):
        table.add_column(name, justify="right")
    for index, cell in enumerate(view.cells):
        value = f"{_mark(view, index)}{view.number(index)} ± {view.margin(index)}"
        table.add_row(*(escape(str(each)) for each in cell), value, f"{view.wholes[index]:,}")
    return table


def crosstab_table(view: TableView, tab: Crosstab) -> Table:
    """Values by rows and columns; the margin of error is that of the whole table."""
    table = Table(box=None, padding=INDENT)
    table.add_column(f"{escape(tab.down)} \\ {escape(tab.across)}")
    for label in tab.column_labels:
        table.add_column(escape(str(label)), justify="right")
    for label, indices in zip(tab.row_labels, tab.indices, strict=True):
        values = (f"{_mark(view, index)}{view.number(index)}" for index in indices)
        table.add_row(escape(str(label)), *values)
    return table


def _print_list(console: Console, listed: list[TableView], count: int, request: str) -> None:
    cells = sum(len(each.cells) for each in listed)
    more = " more" if len(listed) < count else ""
    tables = f"{len(listed)}{more} {'tables' if len(listed) > 1 else 'table'}"
    console.print(f"\n  [bold]{tables}[/bold] of {cells:,} cells in all")
    table = Table(box=None, padding=INDENT)
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


def _mark(view: TableView, index: int) -> str:
    return MARK if any(view.noisy[index : index + 1]) else ""
