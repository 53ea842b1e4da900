"""Tables of an answer: as people read them, as files, as charts."""

from __future__ import annotations

import io
import json
import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product
from pathlib import Path
from typing import Any

from whosin.plain_files import check_writable, write_file
from whosin.release import Answer, Release
from whosin.release.answer import NOISY_MARK
from whosin.release.column_expressions import free_column_name
from whosin.release.queries import QUERIES, Query
from whosin.release.queries.base import AMOUNT, NAME, POINT
from whosin.report.document import (
    TextTable,
    format_count,
    format_fixed,
    format_point,
    make_table,
    margin_decimals,
)

NUMBER_COLUMNS = ("value", "low", "high", "all_low", "all_high", "whole")
"""Columns of numbers; every other column of a table names its cells."""
EQUAL_TOLERANCE = 1e-5
"""Estimates are kept with six decimals, so that two equal sums may differ by a little, a cell."""
MAX_CHART_CELLS = 40
MAX_TERMINAL_ROWS = 30

# One answer as a table: which of its columns are numbers, and how many decimals are worth showing.


def has_chart(answer: Answer) -> bool:
    """Whether there is something to draw, and not too much."""
    return "low" in answer.columns and 2 <= len(answer.rows) <= MAX_CHART_CELLS


def column_scales(answer: Answer) -> dict[str, str]:
    """What the values of each column of an answer are: an amount, a point of a column, a name."""
    query = QUERIES.get(str(answer.question.get("query")), Query)
    numbers = number_columns(answer)
    return {name: query.scale if name in numbers else NAME for name in answer.columns}


def number_columns(answer: Answer) -> tuple[str, ...]:
    """What columns of numbers are called; every other column names the cells."""
    query = QUERIES.get(str(answer.question.get("query")), Query)
    return (*NUMBER_COLUMNS, *query.further_numbers)


def answer_decimals(answer: Answer) -> int | None:
    """Decimals worth showing of an answer's numbers, beside their intervals: people and rows have
    none; None where there is no interval."""
    if "low" not in answer.columns or not answer.rows:
        return None
    if QUERIES.get(str(answer.question.get("query")), Query).of_things:
        return 0
    at = [answer.columns.index(name) for name in ("low", "high")]
    halves = [(row[at[1]] - row[at[0]]) / 2 for row in answer.rows]
    return margin_decimals(min((each for each in halves if each > 0), default=0.0))


def format_rounded(value: Any, scale: str, decimals: int, column: str = "") -> str:
    """A number of an answer with so many decimals; the ends of an interval are rounded outwards."""
    if scale == NAME or isinstance(value, bool) or not isinstance(value, int | float):
        return format_cell(value, scale)
    steps = value * 10**decimals
    slack = EQUAL_TOLERANCE  # 0.3 * 10 is 3, though floats say a little more
    outwards = {"low": math.floor(steps + slack), "high": math.ceil(steps - slack)}
    shown = outwards.get(column.rpartition("_")[2], round(steps)) / 10**decimals
    if scale == POINT:
        return format_point(shown + 0.0, f".{decimals}f")
    return format_fixed(shown, decimals)


def format_cell(value: Any, scale: str = AMOUNT) -> str:
    """A value of a cell of an answer.

    Args:
        scale: amounts have commas, points of a column may be years, names stay as they are.
    """
    if value is None:
        return "–"
    if scale == NAME or isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    spec = "" if isinstance(value, int) else ".6g" if abs(value) < 1e6 else ".1f"
    return format_point(value, spec) if scale == POINT else f"{value:,{spec}}"


def answer_table(answer: Answer) -> TextTable:
    """An answer's rows; an interval becomes one column, where its lower end stands."""
    scales = column_scales(answer)
    decimals, rows = answer_decimals(answer), []
    ends = {
        f"{start}low": f"{start}high"
        for start in ("", *(f"{name}_" for name in number_columns(answer)))
        if {f"{start}low", f"{start}high"} <= {*answer.columns}
    }
    columns = [name for name in answer.columns if name not in ends.values()]
    for index, row in enumerate(answer.rows):
        cells = {
            name: format_cell(value, scales[name])
            if decimals is None
            else format_rounded(value, scales[name], decimals, name)
            for name, value in zip(answer.columns, row, strict=True)
        }
        if any(answer.noisy[index : index + 1]):  # in front, so that digits stay in line
            cells["value"] = NOISY_MARK + cells["value"]
        cells |= {low: f"{cells[low]} to {cells[high]}" for low, high in ends.items()}
        rows.append(tuple(cells[name] for name in columns))
    heads = tuple("95% interval" if name in ends else name for name in columns)
    numbers = frozenset(["value", *(each.removesuffix("_low") for each in ends)])
    return TextTable(heads, tuple(rows), numbers, most=MAX_TERMINAL_ROWS)


# The tables of an answer that has several, as people read them. Everything is taken from the answer
# itself, which was paid for: which columns name a cell, how far noise reaches, which cells are too
# noisy to read, and whether the totals agree. A further table or column of an answer is shown
# without a change here.


BIASED_LABEL = "whole numbers, biased"


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
        return 0 if min(self.margins) >= 1 else margin_decimals(min(self.margins))

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
        return format_fixed(self.values[index], self.decimals)

    def marked(self, index: int) -> str:
        """The estimate of a cell, with a mark in front if it is too noisy to read."""
        return NOISY_MARK * any(self.noisy[index : index + 1]) + self.number(index)

    @cached_property
    def highest(self) -> tuple[float, int]:
        """The largest estimate and the largest whole number, at least 0."""
        return max(0.0, *self.values), max(0, *self.wholes)

    def shades(self, index: int) -> list[int]:
        """The estimate and the whole number of a cell, in per cent of the largest."""
        pairs = zip((self.values[index], self.wholes[index]), self.highest, strict=True)
        return [max(0, round(100 * number / most)) if most else 0 for number, most in pairs]

    def draw_list(self) -> TextTable:
        """A line for each cell: its value with its margin of error, and the whole version."""
        columns = (*self.keys, "value ± margin", "whole (biased)")
        rows = [
            (
                *map(str, cell),
                f"{self.marked(index)} ± {self.margin(index)}",
                format_count(self.wholes[index]),
            )
            for index, cell in enumerate(self.cells)
        ]
        return make_table(columns, rows, right=columns[-2:], lead=len(self.keys))

    def draw_crosstab(self) -> TextTable | None:
        """Values by rows and columns; the margin of error is that of the whole table."""
        tab = self.crosstab
        if tab is None:
            return None
        labels = tuple(map(str, tab.column_labels))
        rows = [
            (str(label), *map(self.marked, indices))
            for label, indices in zip(tab.row_labels, tab.indices, strict=True)
        ]
        return make_table((f"{tab.down} \\ {tab.across}", *labels), rows, right=labels)

    def margin(self, index: int) -> str:
        return format_fixed(self.margins[index], self.decimals)

    @property
    def margin_words(self) -> str:
        one, every = self.spreads
        if len(self.cells) == 1:
            return f"± {one} with 95% probability"
        return f"± {one} for each cell; ± {every} for all {format_count(len(self.cells))} at once"

    @cached_property
    def spreads(self) -> tuple[str, str]:
        """The margin of a cell, and that of all cells at once; two ends where they differ."""
        return self._spread(self.margins), self._spread(self.all_margins)

    def _spread(self, margins: Sequence[float]) -> str:
        ends = dict.fromkeys(
            format_fixed(each, self.decimals) for each in (min(margins), max(margins))
        )
        return " to ".join(ends)


def key_columns(answer: Answer) -> tuple[str, ...]:
    """The columns of an answer that name its cells."""
    numbers = number_columns(answer)
    return tuple(name for name in answer.columns if name not in numbers)


def list_table_views(answer: Answer) -> tuple[TableView, ...]:
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
        ends = f"{format_fixed(min(sums), 1)} to {format_fixed(max(sums), 1)}"
        wide = f"{format_count(min(wholes))} to {format_count(max(wholes))}"
        return f"The totals of the {len(summed)} tables differ: {ends}, in {BIASED_LABEL}, {wide}."
    total = format_fixed(sums[0], min(each.decimals for each in summed))
    others = len(described) - len(summed)
    which = f"each of the {len(summed)} tables" + (" whose cells do not overlap" if others else "")
    whole = format_count(wholes.pop())
    return f"The totals agree: {which} adds up to {total}, and in {BIASED_LABEL}, to {whole}."


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
    files = title_paths([each.title for each in answers], path)
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
    null where a table is not by it. `where` has the condition of the question."""
    import pyarrow as pa

    table = answer.to_arrow()
    for position, (name, labels) in enumerate(_key_columns(answer).items(), 2):
        column = free_column_name(name, [*table.column_names, NOISY_COLUMN])
        table = table.add_column(position, column, pa.array(labels, pa.string()))
    further: dict[str, Sequence[Any]] = {NOISY_COLUMN: answer.noisy} if answer.noisy else {}
    if where := answer.question.get("where"):
        further["where"] = [where] * len(answer.rows)
    for name, values in further.items():
        table = table.append_column(free_column_name(name, table.column_names), pa.array(values))
    return table


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


def title_paths(titles: Sequence[str], path: Path) -> list[Path]:
    """The file of each answer by its title: the path itself, or one named after each."""
    if len(titles) == 1:
        return [path]
    return [
        path.with_name(f"{path.stem}-{number}-{plain_name(title)}{path.suffix}")
        for number, title in enumerate(titles, 1)
    ]


def plain_name(title: str) -> str:
    return re.sub(r"[^\w-]+", "-", title).strip("-").lower() or "answer"


MAX_REPORT_CELLS = 40_000
"""Cells of the tables that are in a report, and in the files inside it."""


def tables_that_fit(tables: Sequence[TableView]) -> list[TableView]:
    """Tables from the first on, as many as a file can hold."""
    ends = accumulate(len(each.cells) for each in tables)
    return [each for each, end in zip(tables, ends, strict=True) if end <= MAX_REPORT_CELLS]


FEW_TICKS = 5
LINE_LETTERS, WIDEST_LETTER, AROUND = 26, 7, 8
"""Of the labels of an axis: the letters of a line, what a letter takes in wide fonts, and the space
around a label, in points."""
LINE_HEIGHT = 12
LABEL_EXPRESSION = "abs(datum.value) < 10000 ? replace(datum.label, ',', '') : datum.label"
"""Commas from five digits on, as `report.document.format_point`."""


def answer_chart(answer: Answer) -> Any:
    """Values by cell with their 95% intervals."""
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
