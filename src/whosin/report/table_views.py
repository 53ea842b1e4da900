"""Tables of an answer: as people read them, as pages, as files, as charts."""

from __future__ import annotations

import base64
import io
import json
import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import islice, product
from pathlib import Path
from typing import Any

from whosin.plain_files import write_file
from whosin.release import Answer, Release
from whosin.release.answer import NOISY_MARK
from whosin.release.groups import free_column_name
from whosin.release.queries import QUERIES, Query
from whosin.release.queries.base import NAME, POINT
from whosin.report.terminal import check_writable

# The tables of an answer that has several, as people read them. Everything is taken from the answer
# itself, which was paid for: which columns name a cell, how far noise reaches, which cells are too
# noisy to read, and whether the totals agree. A further table or column of an answer is shown
# without a change here.


NUMBER_COLUMNS = ("value", "low", "high", "all_low", "all_high", "whole")
"""Columns of numbers; every other column of a table names its cells."""
BIASED_LABEL = "whole numbers, biased"
EQUAL_TOLERANCE = 1e-5
"""Estimates are kept with six decimals, so that two equal sums may differ by a little, a cell."""


@dataclass(frozen=True)
class Crosstab:
    """A table of two columns by rows and columns; the one with more values goes down.

    Attributes:
        indices: for each row of the crosstab the indices of its cells in the table.
    """

    down: str
    across: str
    row_labels: tuple[Any, ...]
    column_labels: tuple[Any, ...]
    indices: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class TableView:
    """One table of an answer.

    Attributes:
        keys: the columns that name a cell.
        cells: what each cell is called, a label for each key.
        margins: half of each cell's interval, which holds for this cell with 95% probability.
        all_margins: the same for all cells of the table at once.
        wholes: the version in whole numbers, which is biased.
        decimals: how many of the estimate's are worth showing.
    """

    title: str
    keys: tuple[str, ...]
    cells: tuple[tuple[Any, ...], ...]
    values: tuple[float, ...]
    margins: tuple[float, ...]
    all_margins: tuple[float, ...]
    wholes: tuple[int, ...]
    noisy: tuple[bool, ...]

    @cached_property
    def decimals(self) -> int:
        if all(float(each).is_integer() for each in (*self.values, *self.margins)):
            return 0
        return margin_decimals(min(self.margins))

    @cached_property
    def labels(self) -> tuple[tuple[Any, ...], ...] | None:
        """The labels of each key, where the cells are all of their combinations, in order."""
        labels = tuple(tuple(dict.fromkeys(column)) for column in zip(*self.cells, strict=True))
        return labels if tuple(product(*labels)) == self.cells else None

    @property
    def crosstab(self) -> Crosstab | None:
        """The table by rows and columns, where it has two keys."""
        if len(self.keys) != 2 or self.labels is None:
            return None
        (one, other), (first, second) = self.labels, self.keys
        width = len(other)
        indices = tuple(
            tuple(row * width + column for column in range(width)) for row in range(len(one))
        )
        if len(one) < width:
            return Crosstab(second, first, other, one, tuple(zip(*indices, strict=True)))
        return Crosstab(first, second, one, other, indices)

    def number(self, index: int) -> str:
        """The estimate of a cell."""
        return format_rounded(self.values[index], self.decimals)

    def margin(self, index: int) -> str:
        """How far the estimate of a cell may be off."""
        return format_rounded(self.margins[index], self.decimals)

    @property
    def margin_words(self) -> str:
        """How far the estimates may be off, in words."""
        one, every = self.spreads
        if len(self.cells) == 1:
            return f"± {one} with 95% probability"
        return f"± {one} for each cell; ± {every} for all {len(self.cells):,} at once"

    @cached_property
    def spreads(self) -> tuple[str, str]:
        """The margin of a cell, and that of all cells at once; two ends where they differ."""
        return self._spread(self.margins), self._spread(self.all_margins)

    def _spread(self, margins: Sequence[float]) -> str:
        ends = dict.fromkeys(
            format_rounded(each, self.decimals) for each in (min(margins), max(margins))
        )
        return " to ".join(ends)


def key_columns(answer: Answer) -> tuple[str, ...]:
    """The columns of an answer that name its cells."""
    return tuple(name for name in answer.columns if name not in NUMBER_COLUMNS)


def column_scales(answer: Answer) -> dict[str, str]:
    """What the values of each column of an answer are: an amount, a point of a column, a name."""
    query = QUERIES.get(str(answer.question.get("query")), Query)
    return {name: query.scale if name in NUMBER_COLUMNS else NAME for name in answer.columns}


def list_table_views(answer: Answer) -> tuple[TableView, ...]:
    """The tables of an answer, each as it is read."""
    return tuple(_table_view(each) for each in answer.tables)


def _table_view(table: Answer) -> TableView:
    columns = {name: number for number, name in enumerate(table.columns)}
    keys = key_columns(table)

    def half(low: str, high: str) -> tuple[float, ...]:
        return tuple((row[columns[high]] - row[columns[low]]) / 2 for row in table.rows)

    return TableView(
        title=table.title,
        keys=keys,
        cells=tuple(tuple(row[columns[key]] for key in keys) for row in table.rows),
        values=tuple(row[columns["value"]] for row in table.rows),
        margins=half("low", "high"),
        all_margins=half("all_low", "all_high"),
        wholes=tuple(row[columns["whole"]] for row in table.rows),
        noisy=table.noisy,
    )


def describe_agreement(answer: Answer) -> str:
    """Whether the tables agree about how many there are in all, in words; found by adding up.
    Tables whose cells overlap, as ranges do, have no total."""
    described = answer.details["tables"] if answer.details else ()
    pairs = zip(described, list_table_views(answer), strict=True)
    summed = [view for each, view in pairs if each.get("adds_up", True)]
    if len(summed) < 2:
        return ""
    sums = [math.fsum(each.values) for each in summed]
    slack = EQUAL_TOLERANCE * max(len(each.cells) for each in summed)
    wholes = {sum(each.wholes) for each in summed}
    if max(sums) - min(sums) > slack or len(wholes) > 1:
        ends = f"{format_rounded(min(sums), 1)} to {format_rounded(max(sums), 1)}"
        wide = f"{min(wholes):,} to {max(wholes):,}"
        return f"The totals of the {len(summed)} tables differ: {ends}, in {BIASED_LABEL}, {wide}."
    total = format_rounded(sums[0], min(each.decimals for each in summed))
    others = len(described) - len(summed)
    which = f"each of the {len(summed)} tables" + (" whose cells do not overlap" if others else "")
    return (
        f"The totals agree: {which} adds up to {total}, and in {BIASED_LABEL}, to {wholes.pop():,}."
    )


def page_data(answer: Answer) -> list[dict[str, Any]]:
    """Where the tables are in the answer's rows, and how to show them, as plain data."""
    result, start = [], 0
    for each in list_table_views(answer):
        result.append(
            {
                "title": each.title,
                "keys": list(each.keys),
                "labels": each.labels,
                "start": start,
                "cells": len(each.cells),
                "decimals": each.decimals,
                "margins": each.spreads,
                "noisy": sum(each.noisy),
            }
        )
        start += len(each.cells)
    return result


def margin_decimals(margin: float) -> int:
    """Decimals worth showing beside a margin of error: its first two digits."""
    if not margin > 0:
        return 0
    return max(0, min(6, 1 - math.floor(math.log10(margin))))


def format_rounded(value: float, digits: int) -> str:
    """A number with this many decimals; nothing is shown as −0."""
    return f"{round(float(value), digits) + 0.0:,.{digits}f}"


ANSWER_SUFFIXES = (".json", ".csv", ".parquet")
NOISY_COLUMN = "noisy"


def check_path(path: Path | None) -> None:
    """Refuse a file that could not be written, before anything is spent."""
    if path is not None:
        check_writable(path, "--save", ANSWER_SUFFIXES)


def save_answers(release: Release, path: Path) -> list[Path]:
    """Write the answers; CSV and Parquet take one file for each, named after it. An answer of
    several tables is one Parquet file, and a CSV file for each table."""
    check_path(path)
    kind = path.suffix.lower()
    if kind == ".json":
        text = json.dumps(release.to_dict(), ensure_ascii=False, indent=2)
        write_file(path, text + "\n", "--save", private=True)
        return [path]
    answers = list(release.answers)
    if kind == ".csv":
        answers = [each for answer in answers for each in answer.tables or (answer,)]
    files = _answer_paths(answers, path)
    for answer, file in zip(answers, files, strict=True):
        content = csv_bytes(answer) if kind == ".csv" else parquet_bytes(answer)
        write_file(file, content, "--save", private=True)
    return files


def csv_bytes(answer: Answer) -> bytes:
    """An answer, or one table of it, as the text of a CSV file."""
    from pyarrow import csv

    out = io.BytesIO()
    csv.write_csv(file_table(answer), out)
    return out.getvalue()


def parquet_bytes(answer: Answer) -> bytes:
    """An answer, with all its tables, as a Parquet file."""
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(file_table(answer), out)
    return out.getvalue()


def file_table(answer: Answer) -> Any:
    """An answer as a pyarrow Table, as files keep it: `noisy` says of each row whether it is too
    noisy to read. An answer of several tables has a column for each column that a table is by,
    null where a table is not by it."""
    import pyarrow as pa

    table = answer.to_arrow()
    for position, (name, labels) in enumerate(_key_columns(answer).items(), 2):
        column = free_column_name(name, [*table.column_names, NOISY_COLUMN])
        table = table.add_column(position, column, pa.array(labels, pa.string()))
    if not answer.noisy:
        return table
    return table.append_column(
        free_column_name(NOISY_COLUMN, table.column_names), pa.array(answer.noisy)
    )


def _key_columns(answer: Answer) -> dict[str, list[str | None]]:
    """For each column that tables are by, its label in each row."""
    tables = answer.tables
    names = dict.fromkeys(
        key for each in tables for key in each.columns if key not in NUMBER_COLUMNS
    )
    result: dict[str, list[str | None]] = {name: [] for name in names}
    for each in tables:
        columns = {name: at for at, name in enumerate(each.columns)}
        for name, labels in result.items():
            own = columns.get(name)
            labels += [None if own is None else str(row[own]) for row in each.rows]
    return result


def _answer_paths(answers: list[Answer], path: Path) -> list[Path]:
    if len(answers) == 1:
        return [path]
    files: list[Path] = []
    for number, answer in enumerate(answers, 1):
        name = f"{path.stem}-{number}-{plain_name(answer.title)}{path.suffix}"
        files.append(path.with_name(name))
    return files


def plain_name(title: str) -> str:
    """A title as a part of a file's name."""
    return re.sub(r"[^\w-]+", "-", title).strip("-").lower() or "answer"


# The tables of an answer that has several, in a report: one opened at a time, without a script. A
# report that stands alone has every table with its margins of error, as a crosstab with shades
# where it has two columns, in both versions; what to show is chosen by radio buttons that the style
# sheet reads. Every cell has its number, so no shade says more than the text does. Each table is in
# the file as CSV, all of them as one Parquet.


MOST_CELLS = 40_000
"""Cells of the tables that are in a report, and in the files inside it."""
MOST_BYTES = 1_500_000
"""Bytes of a file inside a report: browsers take addresses of two million letters."""
MOST_OPEN = 12, 150
"""Tables, and cells, of an answer that is shown whole, side by side."""
MOST_ROWS = 600
TABLE_STYLE = """
.tables fieldset { border: 0; padding: 0; margin: .5rem 0; display: flex; gap: .2rem 1.2rem;
  flex-wrap: wrap; }
.tables legend { float: left; color: var(--soft); padding: 0; }
.beside { display: flex; flex-wrap: wrap; gap: .5rem 2.5rem; align-items: flex-start;
  position: relative; left: 50%; width: min(74rem, 100vw - 2.5rem); transform: translateX(-50%); }
.beside details { flex: 0 1 auto; min-width: min(17rem, 100%); max-width: 100%; }
.beside summary { max-width: 21rem; }
.tables details { border-bottom: 1px solid var(--line); padding: .3rem 0; min-width: 0; }
.tables summary { cursor: pointer; } .tables summary b { margin-right: .8rem; }
.tables table { font-size: .85rem; } .tables a { color: var(--mark); }
.heat th, .heat td { text-align: right; padding: .2rem .5rem; border: 1px solid #fff; }
.heat th { color: var(--soft); font-weight: 500; position: sticky; left: 0; background: #fff; }
.heat td { background: color-mix(in oklab, var(--mark) calc(var(--a) * .55), #fff); }
.bar { display: inline-block; width: 9rem; height: .8rem; vertical-align: middle; margin: 0 .5rem;
  border: 1px solid var(--line);
  background: linear-gradient(90deg, #fff, color-mix(in oklab, var(--mark) 55%, #fff)); }
.tables .whole, .tables:has(.all:checked) .each, .tables:not(:has(.all:checked)) .every,
.tables:has(.integer:checked) .value { display: none; }
.tables:has(.integer:checked) .whole { display: inline; }
.tables:has(.integer:checked) .heat td {
  background: color-mix(in oklab, var(--mark) calc(var(--b) * .55), #fff); }
@media print { .tables details::details-content { content-visibility: visible; } }
"""


def tables_html(answer: Answer, number: int) -> str:
    """All tables of an answer.

    Args:
        number: the answer's number in the report.
    """
    tables = list(_tables_that_fit(list_table_views(answer)))
    every = answer.tables
    small = len(every) <= MOST_OPEN[0] and len(answer.rows) <= MOST_OPEN[1]
    name = "" if small else f' name="tables-{number}"'
    blocks = [
        _table_details(view, table, " open" if small else name)
        for view, table in zip(tables, islice(every, len(tables)), strict=True)
    ]
    missing = len(every) - len(tables)
    return "\n".join(
        [
            "<div class=tables>",
            f"<p>{escape(describe_agreement(answer))}</p>",
            _table_choices(number),
            f"<div{' class=beside' if small else ''}>",
            *blocks,
            "</div>",
            f"<p class=soft>{missing:,} more tables are not in this report; "
            "whosin release --save writes them.</p>"
            if missing
            else "",
            "" if missing else f"<p>{_parquet_link(answer)}</p>",
            "</div>",
        ]
    )


def _tables_that_fit(tables: tuple[TableView, ...]) -> Iterator[TableView]:
    """Tables from the first on, as many as a file can hold."""
    left = MOST_CELLS
    for each in tables:
        left -= len(each.cells)
        if left < 0:
            return
        yield each


def _table_choices(number: int) -> str:
    def radio(group: str, kind: str, words: str, checked: bool) -> str:
        name, chosen = f"{group}-{number}", " checked" if checked else ""
        return f'<label><input type=radio name="{name}" class={kind}{chosen}> {words}</label>'

    return (
        "<fieldset><legend>Margins of error, 95%:&nbsp;</legend>"
        + radio("margin", "one", "for each cell", True)
        + radio("margin", "all", "for all cells of a table at once", False)
        + "</fieldset><fieldset><legend>Numbers:&nbsp;</legend>"
        + radio("numbers", "unbiased", "unbiased estimates", True)
        + radio("numbers", "integer", "whole numbers from 0 up (biased)", False)
        + "</fieldset>"
    )


def _table_details(view: TableView, table: Answer, opened: str) -> str:
    noisy = sum(view.noisy)
    marked = f"; {noisy:,} too noisy to read" if noisy else ""
    tab = view.crosstab
    body = _list_table(view) if tab is None else _heat_table(view, tab)
    cells = f"{len(view.cells):,} cells" if len(view.cells) > 1 else "1 cell"
    return (
        f"<details{opened}><summary><b>{escape(view.title)}</b> "
        f"<span class=soft>{cells}, {_table_margin(view)}{marked}</span></summary>"
        f"{body}<p>{_save_links(table)}</p></details>"
    )


def _table_margin(view: TableView) -> str:
    """The margin of the table, as chosen."""
    one, every = view.spreads
    return (
        f"<span class=value><span class=each>± {one} a cell</span>"
        f"<span class=every>± {every} for all at once</span></span>"
        "<span class=whole>biased, without margins</span>"
    )


def _heat_table(view: TableView, tab: Crosstab) -> str:
    highest = max(0.0, *view.values), max(0, *view.wholes)
    head = "".join(f"<th>{escape(str(label))}</th>" for label in tab.column_labels)
    lines = []
    for label, indices in zip(tab.row_labels, tab.indices, strict=True):
        cells = "".join(_shade_cell(view, index, highest) for index in indices)
        lines.append(f"<tr><th>{escape(str(label))}</th>{cells}</tr>")
    corner = f"{escape(tab.down)} \\ {escape(tab.across)}"
    most = format_rounded(highest[0], view.decimals), f"{highest[1]:,}"
    return (
        f"<div class=wide><table class=heat><tr><th>{corner}</th>{head}</tr>{''.join(lines)}"
        "</table></div><p class=soft>0 or below<span class=bar></span>"
        f"<span class=value>{most[0]}</span><span class=whole>{most[1]}</span></p>"
    )


def _shade_cell(view: TableView, index: int, highest: tuple[float, int]) -> str:
    numbers = view.values[index], view.wholes[index]
    parts = [
        max(0, round(100 * number / most)) if most else 0
        for number, most in zip(numbers, highest, strict=True)
    ]
    return (
        f'<td style="--a:{parts[0]}%;--b:{parts[1]}%"><span class=value>{_cell_value(view, index)}'
        f"</span><span class=whole>{view.wholes[index]:,}</span></td>"
    )


def _list_table(view: TableView) -> str:
    heads = "".join(f"<th>{escape(key)}</th>" for key in view.keys)
    lines = []
    for index, cell in enumerate(view.cells[:MOST_ROWS]):
        labels = "".join(f"<td>{escape(str(label))}</td>" for label in cell)
        one, every = view.margin(index), format_rounded(view.all_margins[index], view.decimals)
        lines.append(
            f"<tr>{labels}<td class=number><span class=value>{_cell_value(view, index)}</span>"
            f"<span class=whole>{view.wholes[index]:,}</span></td><td class=number>"
            f"<span class=value>± <span class=each>{one}</span><span class=every>{every}</span>"
            "</span></td></tr>"
        )
    more = len(view.cells) - MOST_ROWS
    cut = f"<p class=soft>… {more:,} more cells in the file</p>" if more > 0 else ""
    return (
        f"<div class=wide><table><tr>{heads}<th class=number><span class=value>estimate</span>"
        "<span class=whole>whole number (biased)</span></th><th class=number></th></tr>"
        f"{''.join(lines)}</table></div>{cut}"
    )


def _cell_value(view: TableView, index: int) -> str:
    return NOISY_MARK * any(view.noisy[index : index + 1]) + view.number(index)


def _save_links(table: Answer) -> str:
    return _file_link(f"{plain_name(table.title)}.csv", "text/csv", csv_bytes(table))


def _parquet_link(answer: Answer) -> str:
    name, kind = f"{plain_name(answer.title)}.parquet", "application/vnd.apache.parquet"
    return f"All tables: {_file_link(name, kind, parquet_bytes(answer))}"


def _file_link(name: str, kind: str, data: bytes) -> str:
    """A link that saves a file which is inside the report."""
    if len(data) > MOST_BYTES:
        return f"<span class=soft>{name} is too large for this report; whosin release --save</span>"
    inside = base64.b64encode(data).decode()
    return f'<a download="{name}" href="data:{kind};base64,{inside}">{name}</a>'


ANSWER_CHARTS_MOST_CELLS = 40
FEW_TICKS = 5
LINE_LETTERS, WIDEST_LETTER, AROUND = 26, 7, 8
"""Of the labels of an axis: the letters of a line, what a letter takes in wide fonts, and the space
around a label, in points."""
LINE_HEIGHT = 12
LABEL_EXPRESSION = "abs(datum.value) < 10000 ? replace(datum.label, ',', '') : datum.label"
"""Commas from five digits on, as `numbers.point_words`."""


def answer_chart(answer: Answer) -> Any | None:
    """Values by cell with their 95% intervals; None where there is nothing to draw."""
    if "low" not in answer.columns or not 2 <= len(answer.rows) <= ANSWER_CHARTS_MOST_CELLS:
        return None
    import altair

    from whosin.report.charts import CHART_COLOURS, rows_chart

    keys = key_columns(answer)
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    for row in rows:
        row["cell"] = _wrap_label(", ".join(str(row[key]) for key in keys))
    axis = _named_above(keys, [row["cell"] for row in rows])
    base = rows_chart(rows).encode(y=altair.Y("cell:N", sort=None, axis=axis))
    points = column_scales(answer)["value"] == POINT
    # Few ticks, or labels are left out where they would touch: 0 among them.
    ticks = altair.Axis(
        tickCount=FEW_TICKS, labelExpr=LABEL_EXPRESSION if points else altair.Undefined
    )
    bars = base.mark_bar(color=CHART_COLOURS[0], opacity=0.35).encode(
        x=altair.X("value:Q", title="with noise; bars: 95% interval", axis=ticks)
    )
    errors = base.mark_rule(color=CHART_COLOURS[1], strokeWidth=2).encode(x="low:Q", x2="high:Q")
    lines = max(row["cell"].count("\n") for row in rows)
    height = max(120, (22 + LINE_HEIGHT * lines) * len(rows))
    return altair.layer(bars, errors).properties(width=460, height=height)


def _wrap_label(label: str) -> str:
    """A label in lines that fit, so that no end of it is cut off."""
    return "\n".join(
        line
        for part in label.split("\n")
        for line in textwrap.wrap(part, LINE_LETTERS, drop_whitespace=False) or [""]
    )


def _named_above(keys: Sequence[str], cells: Sequence[str]) -> Any:
    """An axis whose title stands above it, with room for its labels in any font: who draws the
    chart may have a narrower one than who shows it."""
    import altair

    longest = max(len(line) for cell in cells for line in cell.split("\n"))
    room = WIDEST_LETTER * longest + AROUND
    return altair.Axis(
        title=", ".join(keys),
        titleAngle=0,
        titleAlign="left",
        titleAnchor="start",
        titleX=0,
        titleY=-8,
        labelLimit=room,
        labelExpr="split(datum.label, '\\n')",
        minExtent=room,
    )
