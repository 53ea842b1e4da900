"""The terminal: documents printed by Rich, on terminals of any width, and charts made of letters.

Contract: no number and no word is ever cut. Where a table would have to cut, its rows are printed
one after the other, a line per cell. No letter of a name can steer the terminal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from whosin.references import THEOREMS
from whosin.report.document import (
    Chart,
    Document,
    Marks,
    Paragraph,
    Part,
    Strong,
    TableSet,
    TextSection,
    TextTable,
    Theorems,
    Words,
    format_count,
    format_plural,
)

if TYPE_CHECKING:
    from whosin.curves.curve import TradeOff
    from whosin.report.table_views import TableView

TONE_STYLES = {"plain": "", "soft": "dim", "strong": "bold"}
TONE_STYLES |= {"good": "green", "bad": "red", "open": "yellow"}
INDENT_COLUMNS = 2
TEXT_COLUMNS = 100
"""The width of a result that a program prints."""


def print_document(document: Document, console: Console | None = None) -> None:
    """Print a document: its title, then its sections, indented below their headings."""
    console = console or Console(highlight=False)
    if document.title:
        _print_filled(console, make_text(Strong(document.title)), 0)
    apart = False
    for number, section in enumerate(document.sections):
        if apart or (section.level == 2 and (number or document.title)):
            console.print()
        _print_section(console, section)
        apart = any(not isinstance(part, Paragraph | Marks) for part in section.parts)


def document_text(document: Document) -> str:
    """A document as plain text."""
    text = StringIO()
    print_document(document, Console(file=text, width=TEXT_COLUMNS, highlight=False))
    return text.getvalue().rstrip("\n")


def _print_section(console: Console, section: TextSection) -> None:
    if section.heading:
        heading = make_text(Strong(section.heading))
        if section.aside:
            heading = Text.assemble(heading, "  ", make_text(section.aside, "dim"))
        _print_filled(console, heading, 0)
    indent = INDENT_COLUMNS if section.heading else 0
    for number, part in enumerate(section.parts):
        if isinstance(part, Chart | Theorems) and (number or section.heading):
            console.print()
        _print_part(console, part, indent)


def _print_part(console: Console, part: Part, indent: int) -> None:
    if isinstance(part, Paragraph):
        _print_filled(console, make_text(part.text, TONE_STYLES[part.tone]), indent)
    elif isinstance(part, TextTable):
        print_table(console, part, indent)
    elif isinstance(part, Marks):
        for line in part.lines():
            console.print(" " * indent + line)
        _print_filled(console, Text(part.words()), indent)
    elif isinstance(part, Chart):
        if part.plot is not None:
            console.print(Text(part.plot(console.width)), soft_wrap=True)
    elif isinstance(part, Theorems):
        for theorem in part.numbers:
            console.print(make_text(str(THEOREMS[theorem]), "dim"), soft_wrap=True)
    else:
        _print_table_set(console, part, indent)


def make_text(words: Words, style: str = "") -> Text:
    """Words for a terminal: no control character of a name gets through."""
    runs = (words,) if isinstance(words, str) else words
    result = Text(style=style)
    for run in runs:
        plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in run)
        result.append(plain, "bold" if isinstance(run, Strong) else None)
    return result


def _print_filled(console: Console, text: Text, indent: int) -> None:
    """Print sentences, wrapped to the terminal."""
    for line in text.wrap(console, max(console.width - indent, 1)):
        line.rstrip()
        console.print(Text(" " * indent).append_text(line), soft_wrap=True)


def print_table(console: Console, table: TextTable, indent: int = 0) -> None:
    """Print a table, or its rows as entries if a word of it would be cut."""
    rows = table.rows[: table.most]
    drawn = Padding(_draw_table(table, rows), (0, 0, 0, indent), expand=False)
    with console.capture() as captured:
        console.print(drawn)
    words = {
        word
        for row in (table.columns, *rows)
        for cell in row
        for word in make_text(cell).plain.split()
    }
    if not table.columns or words <= set(captured.get().split()):
        console.print(drawn)
    else:
        _print_entries(console, table, rows, indent)
    if len(rows) < len(table.rows):
        console.print(f"{' ' * indent}… {format_count(len(table.rows) - len(rows))} more")


def _draw_table(table: TextTable, rows: Sequence[Sequence[Words]]) -> Table:
    result = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=bool(table.columns))
    if not table.columns:
        counted = bool(table.right)
        result.add_column(style="" if counted else "dim", justify="right" if counted else "left")
        result.add_column(overflow="fold")
    for name in table.columns:
        side = "right" if name in table.right else "left"
        result.add_column(make_text(name), justify=side, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        result.add_row(*map(make_text, row))
    return result


def _print_entries(
    console: Console, table: TextTable, rows: Sequence[Sequence[Words]], indent: int
) -> None:
    for row in rows:
        named = " ".join(make_text(cell).plain for cell in row[: table.lead])
        _print_filled(console, Text(named, "bold"), indent)
        for head, cell in zip(table.columns[table.lead :], row[table.lead :], strict=True):
            if cell:
                line = Text.assemble(make_text(head), ": ", make_text(cell))
                _print_filled(console, line, indent + INDENT_COLUMNS)


# The tables of an answer that has several. A table of one column has a line for each cell; one of
# two columns is a crosstab where that fits and a list where it does not; tables that would make the
# output long are listed with their margins of error, and what saves them is said.


MAX_PRINTED_CELLS, MAX_LONG_CELLS = 150, 60
"""Cells of an answer that is printed whole, and of the tables that are printed of a longer one."""
MAX_LISTED_TABLES = 30
MAX_WIDTH = 10_000
"""Wider than any terminal: what a table would like to have."""


def _print_table_set(console: Console, tables: TableSet, indent: int) -> None:
    """The tables while they are short, and a line for each of the others."""
    from whosin.report.table_views import describe_agreement, list_table_views

    all_views = list_table_views(tables.answer)
    if words := describe_agreement(tables.answer):
        _print_filled(console, make_text(words), indent)
    short = sum(len(each.cells) for each in all_views) <= MAX_PRINTED_CELLS
    left = MAX_PRINTED_CELLS if short else MAX_LONG_CELLS
    listed: list[TableView] = []
    for view in all_views:
        if listed or len(view.cells) > left:
            listed.append(view)
            continue
        left -= len(view.cells)
        console.print()
        heading = Text.assemble(
            make_text(Strong(view.title)), "  ", make_text(view.margin_words, "dim")
        )
        _print_filled(console, heading, indent)
        _print_view(console, view, indent)
    if listed:
        _print_list(console, listed, tables.request, indent, more=len(listed) < len(all_views))


def _print_view(console: Console, view: TableView, indent: int) -> None:
    crosstab = view.draw_crosstab()
    if crosstab is not None:
        drawn = Padding(_draw_table(crosstab, crosstab.rows), (0, 0, 0, indent), expand=False)
        wide = console.options.update(width=MAX_WIDTH)
        if Measurement.get(console, wide, drawn).maximum <= console.width:
            console.print(drawn)
            return
    print_table(console, view.draw_list(), indent)


def _print_list(
    console: Console, listed: list[TableView], request: str, indent: int, *, more: bool
) -> None:
    cells = sum(len(each.cells) for each in listed)
    count = Strong(format_plural(len(listed), "more table" if more else "table"))
    console.print()
    _print_filled(console, make_text((count, f" of {format_count(cells)} cells in all")), indent)
    columns = ("table", "cells", "± a cell", "too noisy")
    rows = tuple(
        (each.title, format_count(len(each.cells)), each.spreads[0], format_count(sum(each.noisy)))
        for each in listed
    )
    print_table(
        console, TextTable(columns, rows, frozenset(columns[1:]), most=MAX_LISTED_TABLES), indent
    )
    how = (
        f"To have them all, without paying again: --request {request} with --report out.html to "
        "look at, --save out.csv for a file each, --save out.parquet for one file."
    )
    _print_filled(console, make_text(how), indent)


# Charts made of letters.


PLOT_WIDTH, PLOT_HEIGHT, MIN_PLOT_WIDTH, PLOT_MARGIN = 61, 16, 21, 7
MAX_DECADES = 5
"""Rates are drawn from 10^−5 on; each has three lines, so that they are labelled in place."""
Curve = tuple[str, str, Callable[[float], float]]
"""A mark of one character, a name, and the posterior as a function of the prior."""


def belief_plot(
    curves: Sequence[Curve], band: tuple[float, float] = (0.0, 1.0), most: int = 80
) -> str:
    """Posterior against prior, both from 0 to 1; the beliefs that a plan assumes are underlined.

    Args:
        most: how many columns the terminal has.
    """
    width = max(MIN_PLOT_WIDTH, min(PLOT_WIDTH, most - PLOT_MARGIN))
    cells = [[" "] * width for _ in range(PLOT_HEIGHT)]
    for mark, _name, posterior in curves:
        for column in range(width):
            value = posterior(column / (width - 1))
            row = PLOT_HEIGHT - 1 - round(value * (PLOT_HEIGHT - 1))
            cells[row][column] = mark
    lines = []
    for row, line in enumerate(cells):
        label = {0: "100%", PLOT_HEIGHT // 2: " 50%", PLOT_HEIGHT - 1: "  0%"}.get(row, "    ")
        lines.append(f"{label} │{''.join(line).rstrip()}")
    first, last = (round(end * (width - 1)) for end in band)
    axis = "".join("━" if first <= column <= last else "─" for column in range(width))
    lines.append(f"     └{axis}")
    lines.append(f"      0%{'prior belief'.center(width - 6)}100%")
    lines.extend(f"      {mark} {name}" for mark, name, _ in curves)
    return "\n".join(lines)


def rates_plot(
    curve: TradeOff, promise: tuple[Fraction, Fraction] | None = None, most: int = 80
) -> str:
    """How many a test recognises at most (TPR), by how many it accuses by mistake (FPR), on
    logarithmic axes; a target (FPR, TPR) is a cross."""
    width = max(MIN_PLOT_WIDTH, min(PLOT_WIDTH, most - PLOT_MARGIN - 2))
    height = 3 * MAX_DECADES + 1
    cells = [[" "] * width for _ in range(height)]

    def put(mark: str, fpr: float, tpr: float) -> None:
        column, row = (
            round((1 + math.log10(max(rate, 1e-300)) / MAX_DECADES) * (steps - 1))
            for rate, steps in ((fpr, width), (tpr, height))
        )
        if 0 <= column < width and 0 <= row < height:
            cells[height - 1 - row][column] = mark

    rates = [10 ** (MAX_DECADES * (column / (width - 1) - 1)) for column in range(width)]
    for fpr in rates:
        put("·", fpr, fpr)
    for fpr in rates:
        put("●", fpr, float(curve.tpr(fpr)))
    if promise is not None:
        put("✚", float(promise[0]), float(promise[1]))
    lines = []
    for row, line in enumerate(cells):
        label = f"{100 / 10 ** (row // 3):g}%" if row % 3 == 0 else ""
        lines.append(f"{label:>6} │{''.join(line).rstrip()}")
    lines.append(f"       └{'─' * width}")
    across = "accused by mistake" if width > 2 * MIN_PLOT_WIDTH else "accused"
    lines.append(f"        0.001%{across.center(width - 10)}100%")
    lines.append("        · guessing")
    lines.append("        ● the best test")
    if promise is not None:
        lines.append("        ✚ the target")
    return "\n".join(lines)
