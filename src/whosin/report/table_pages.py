"""The tables of an answer that has several, in a report: one opened at a time, without a script.

Contract: a report that stands alone has every table with its margins of error, as a crosstab with
shades where it has two columns, in both versions; what to show is chosen by radio buttons that the
style sheet reads. Every cell has its number, so no shade says more than the text does. Each
table is in the file as CSV, all of them as one Parquet.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from html import escape
from itertools import islice

from whosin.release import Answer
from whosin.release.noisy_cells import MARK
from whosin.report.answers import csv_bytes, parquet_bytes, plain_name
from whosin.report.table_views import Crosstab, TableView, agreement, rounded, views

MOST_CELLS = 40_000
"""Cells of the tables that are in a report, and in the files inside it."""
MOST_BYTES = 1_500_000
"""Bytes of a file inside a report: browsers take addresses of two million letters."""
MOST_OPEN = 12, 150
"""Tables, and cells, of an answer that is shown whole, side by side."""
MOST_ROWS = 600
STYLE = """
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
    tables = list(_within(views(answer)))
    every = answer.tables
    small = len(every) <= MOST_OPEN[0] and len(answer.rows) <= MOST_OPEN[1]
    name = "" if small else f' name="tables-{number}"'
    blocks = [
        _details(view, table, " open" if small else name)
        for view, table in zip(tables, islice(every, len(tables)), strict=True)
    ]
    missing = len(every) - len(tables)
    return "\n".join(
        [
            "<div class=tables>",
            f"<p>{escape(agreement(answer))}</p>",
            _choices(number),
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


def _within(tables: tuple[TableView, ...]) -> Iterator[TableView]:
    """Tables from the first on, as many as a file can hold."""
    left = MOST_CELLS
    for each in tables:
        left -= len(each.cells)
        if left < 0:
            return
        yield each


def _choices(number: int) -> str:
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


def _details(view: TableView, table: Answer, opened: str) -> str:
    noisy = sum(view.noisy)
    marked = f"; {noisy:,} too noisy to read" if noisy else ""
    tab = view.crosstab
    body = _list(view) if tab is None else _heat(view, tab)
    cells = f"{len(view.cells):,} cells" if len(view.cells) > 1 else "1 cell"
    return (
        f"<details{opened}><summary><b>{escape(view.title)}</b> "
        f"<span class=soft>{cells}, {_margin(view)}{marked}</span></summary>"
        f"{body}<p>{_link(table)}</p></details>"
    )


def _margin(view: TableView) -> str:
    """The margin of the table, as chosen."""
    one, every = view.spreads
    return (
        f"<span class=value><span class=each>± {one} a cell</span>"
        f"<span class=every>± {every} for all at once</span></span>"
        "<span class=whole>biased, without margins</span>"
    )


def _heat(view: TableView, tab: Crosstab) -> str:
    highest = max(0.0, *view.values), max(0, *view.wholes)
    head = "".join(f"<th>{escape(str(label))}</th>" for label in tab.column_labels)
    lines = []
    for label, indices in zip(tab.row_labels, tab.indices, strict=True):
        cells = "".join(_shaded(view, index, highest) for index in indices)
        lines.append(f"<tr><th>{escape(str(label))}</th>{cells}</tr>")
    corner = f"{escape(tab.down)} \\ {escape(tab.across)}"
    most = rounded(highest[0], view.decimals), f"{highest[1]:,}"
    return (
        f"<div class=wide><table class=heat><tr><th>{corner}</th>{head}</tr>{''.join(lines)}"
        "</table></div><p class=soft>0 or below<span class=bar></span>"
        f"<span class=value>{most[0]}</span><span class=whole>{most[1]}</span></p>"
    )


def _shaded(view: TableView, index: int, highest: tuple[float, int]) -> str:
    numbers = view.values[index], view.wholes[index]
    parts = [
        max(0, round(100 * number / most)) if most else 0
        for number, most in zip(numbers, highest, strict=True)
    ]
    return (
        f'<td style="--a:{parts[0]}%;--b:{parts[1]}%"><span class=value>{_value(view, index)}'
        f"</span><span class=whole>{view.wholes[index]:,}</span></td>"
    )


def _list(view: TableView) -> str:
    heads = "".join(f"<th>{escape(key)}</th>" for key in view.keys)
    lines = []
    for index, cell in enumerate(view.cells[:MOST_ROWS]):
        labels = "".join(f"<td>{escape(str(label))}</td>" for label in cell)
        one, every = view.margin(index), rounded(view.all_margins[index], view.decimals)
        lines.append(
            f"<tr>{labels}<td class=number><span class=value>{_value(view, index)}</span>"
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


def _value(view: TableView, index: int) -> str:
    return MARK * any(view.noisy[index : index + 1]) + view.number(index)


def _link(table: Answer) -> str:
    return _file(f"{plain_name(table.title)}.csv", "text/csv", csv_bytes(table))


def _parquet_link(answer: Answer) -> str:
    name, kind = f"{plain_name(answer.title)}.parquet", "application/vnd.apache.parquet"
    return f"All tables: {_file(name, kind, parquet_bytes(answer))}"


def _file(name: str, kind: str, data: bytes) -> str:
    """A link that saves a file which is inside the report."""
    if len(data) > MOST_BYTES:
        return f"<span class=soft>{name} is too large for this report; whosin release --save</span>"
    inside = base64.b64encode(data).decode()
    return f'<a download="{name}" href="data:{kind};base64,{inside}">{name}</a>'
