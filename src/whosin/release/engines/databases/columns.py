"""A column of a database: what it is asked for as, what it arrives as, what it becomes.

Contract: neither the database's expression nor DuckDB's fails on any value: what has no value in
the column's type is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whosin.release.engines.lines import identifier

UNUSABLE = "VARCHAR[]"
"""What a column becomes whose type nobody may ask about; it is never read."""


@dataclass(frozen=True)
class DatabaseColumn:
    """A column.

    Attributes:
        kind: its type in DuckDB.
        asked: expressions of the database, which arrive as columns.
        becomes: DuckDB's expression for it, with {0}, {1} … instead of those.
        compared: how its values may be compared where they lie ("whole", "text"); empty if
            they may not.
    """

    name: str
    kind: str
    asked: tuple[str, ...] = ()
    becomes: str = "{0}"
    compared: str = ""

    @property
    def usable(self) -> bool:
        return bool(self.asked)

    def arrives_as(self, index: int) -> list[str]:
        """What its expressions are called on the way."""
        return [f"c{index}_{part}" for part in range(len(self.asked))]

    def reading(self, index: int) -> str:
        """The column in DuckDB, from what arrived."""
        value = self.becomes.format(*self.arrives_as(index)) if self.usable else "NULL"
        return f"CAST({value} AS {self.kind}) AS {identifier(self.name)}"


def unusable(name: str) -> DatabaseColumn:
    """A column of a type that nobody may ask about."""
    return DatabaseColumn(name, UNUSABLE)


def asking(columns: Sequence[DatabaseColumn], relation: str, conditions: Sequence[str]) -> str:
    """The query that a database is sent: these columns, or one that holds nothing, of a table."""
    listed = [
        f"{value} AS {name}"
        for index, column in enumerate(columns)
        for value, name in zip(column.asked, column.arrives_as(index), strict=True)
    ]
    kept = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {', '.join(listed) or '1 AS c'} FROM {relation}{kept}"


def empty(columns: Sequence[DatabaseColumn]) -> str:
    """DuckDB's query for a table with these columns and no rows."""
    listed = (f"CAST(NULL AS {each.kind}) AS {identifier(each.name)}" for each in columns)
    return f"SELECT {', '.join(listed)} WHERE false"
