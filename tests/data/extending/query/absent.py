"""How many entities have no value in a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from whosin.release.column_expressions import GroupGrid
from whosin.release.contribution_bounds import count_people, eligible_rows
from whosin.release.queries.sums import Count
from whosin.release.table import Table


@dataclass(frozen=True, kw_only=True)
class Absent(Count):
    """How many entities have a row without a value in a column.

    Args:
        column: the column.
    """

    kind: ClassVar[str] = "absent"
    column: str

    def exact(self, table: Table, cells: GroupGrid) -> Any:
        rows = eligible_rows(table, self.where)
        empty = rows.filter(rows[self.column].isnull())
        return count_people(empty, table, cells, self.bounds(table))
