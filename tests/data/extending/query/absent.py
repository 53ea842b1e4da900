"""How many entities have no value in a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from whosin.release.columns.cells import Cells
from whosin.release.queries.counts import Count
from whosin.release.scans import bounding
from whosin.release.scans.bounding import eligible
from whosin.release.table import Table


@dataclass(frozen=True, kw_only=True)
class Absent(Count):
    """How many entities have a row without a value in a column.

    Args:
        column: the column.
    """

    kind: ClassVar[str] = "absent"
    label: ClassVar[str] = "how many people lack a value"
    column_takes: ClassVar[str] = "any"
    column: str

    def exact(self, table: Table, cells: Cells) -> Any:
        rows = eligible(table, self.where)
        empty = rows.filter(rows[self.column].isnull())
        return bounding.people(empty, table, cells, self.bounds(table))
