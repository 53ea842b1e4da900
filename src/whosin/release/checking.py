"""The curator's private look at a table: what the policies will drop, clamp or call "other".

Nothing here goes through a ledger, so nothing of it may be published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from whosin.release.domains import Range
from whosin.release.predicate import condition, number
from whosin.release.table import Table


@dataclass(frozen=True)
class Finding:
    """One exact figure about the rows: private."""

    what: str
    rows: int


def check_table(table: Table, conditions: Sequence[str] = ()) -> list[Finding]:
    """Exact figures: rows, entities, missing entities, the most rows of one, what lies outside."""
    data = table.data
    owned = data.filter(data[table.entity].notnull())
    sizes = owned.group_by(table.entity).aggregate(n=owned.count())
    figures: dict[str, Any] = {
        "rows": data.count(),
        "rows without an entity, which are dropped": data[table.entity].isnull().sum(),
        "entities": data[table.entity].nunique(),
    }
    for column, domain in table.domains.items():
        if isinstance(domain, Range):
            value, (low, high) = number(data[column]), map(float, domain.bounds)
            figures[f"{column}: no number there"] = value.isnull().sum()
            outside = (value < low) | (value > high)
            figures[f"{column}: outside {low:g}..{high:g}, clamped"] = outside.sum()
        else:
            value = data[column]
            known = [str(v) for v in domain.values] if value.type().is_string() else domain.values
            figures[f'{column}: not a declared value, in "other"'] = (
                ~value.isin(known).fill_null(False)
            ).sum()
    for text in conditions:
        figures[f"where {text}"] = condition(text, data).sum()
    names = {f"f{place}": figure for place, figure in enumerate(figures.values())}
    row = table.engine.run(data.aggregate(**names)).to_pylist()[0]
    most = sizes.aggregate(most=sizes["n"].max(), over=(sizes["n"] > table.rows).sum())
    top = table.engine.run(most).to_pylist()[0]
    found = [Finding(what, int(row[name] or 0)) for name, what in zip(names, figures, strict=True)]
    found.append(Finding("the most rows of one entity", int(top["most"] or 0)))
    found.append(Finding(f"entities with more than {table.rows} rows", int(top["over"] or 0)))
    return found
