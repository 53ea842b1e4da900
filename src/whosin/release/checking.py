"""The curator's private look at a table: what the policies will drop, clamp or call "other".

Nothing here goes through a ledger, so nothing of it may be published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whosin.release.cells import Cells
from whosin.release.domains import Values
from whosin.release.engines.base import files_of, kind_of
from whosin.release.engines.lines import broken
from whosin.release.predicate import condition, number
from whosin.release.table import Table


@dataclass(frozen=True)
class Finding:
    """One exact figure about the rows: private."""

    what: str
    rows: int


def check_table(table: Table, conditions: Sequence[str] = ()) -> list[Finding]:
    """Exact figures: rows, entities, missing entities, the most rows of one, what lies outside."""
    import ibis

    data = table.data
    owned = data.filter(data[table.entity].notnull())
    sizes = owned.group_by(table.entity).aggregate(n=owned.count())
    listed = {name: each for name, each in table.domains.items() if isinstance(each, Values)}
    cells = Cells(tuple(listed), tuple(listed.values()))
    keys = dict(zip(cells.columns, cells.names, strict=True))
    marks: dict[str, Any] = {  # what is true of the rows that are counted, or a key column
        "rows": ibis.literal(True),
        "rows without an entity, which are dropped": data[table.entity].isnull(),
    }
    for column, domain in table.domains.items():
        if isinstance(domain, Values):
            marks[f'{column}: not a declared value, in "other"'] = keys[column]
        else:
            value, (low, high) = number(data[column]), map(float, domain.bounds)
            marks[f"{column}: no number there"] = value.isnull()
            marks[f"{column}: outside {low:g}..{high:g}, clamped"] = (value < low) | (value > high)
    for text in conditions:
        marks[f"where {text}"] = condition(text, data)
    names = {what: f"mark_{place}" for place, what in enumerate(marks)}
    plain = {names[what]: mark for what, mark in marks.items() if not isinstance(mark, str)}
    coded = cells.coded(data, whose=data[table.entity], **plain)
    figures = {name: coded[name].sum() for name in plain}
    for column, domain in listed.items():
        what = f'{column}: not a declared value, in "other"'
        figures[names[what]] = (coded[keys[column]] == len(domain.values)).sum()
    figures["entities"] = coded["whose"].nunique()
    row = table.engine.run(coded.aggregate(**figures)).to_pylist()[0]
    most = sizes.aggregate(most=sizes["n"].max(), over=(sizes["n"] > table.rows).sum())
    top = table.engine.run(most).to_pylist()[0]
    found = [Finding(what, int(row[name] or 0)) for what, name in names.items()]
    found.insert(2, Finding("entities", int(row["entities"])))
    found.append(Finding("the most rows of one entity", int(top["most"] or 0)))
    found.append(Finding(f"entities with more than {table.rows} rows", int(top["over"] or 0)))
    return found + check_lines(table)


def check_lines(table: Table) -> list[Finding]:
    """The lines of local CSV files that are not what the header says; nothing for other tables."""
    source = table.source
    if not isinstance(source, str | Path) or "::" in str(source) or "://" in str(source):
        return []
    kind = kind_of(str(source))
    if kind != "csv":
        return []
    lines = broken(files_of(str(source), kind))
    return [
        Finding("lines that are not UTF-8, which are dropped", lines.encoding),
        Finding("lines of more than a million bytes, which are dropped", lines.unreadable),
        Finding("lines with too few fields, padded", lines.short),
        Finding("lines with too many fields, cut", lines.long),
        Finding("lines with quotes that are not CSV's, read as letters", lines.quotes),
    ]
