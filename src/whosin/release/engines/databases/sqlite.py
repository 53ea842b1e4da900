"""SQLite files, through their ADBC driver.

Contract: in SQLite any row may hold any type, whatever its column says. So what a column becomes
depends on what was declared, and values of other types are missing, each row by itself:

- a declared whole number holds whole numbers, and a number such as 3.0 too;
- a declared real, numeric or decimal is a double;
- a declared boolean holds 0 and 1, as false and true;
- a declared blob holds bytes;
- everything else, dates too, is text, whole numbers in it spelled out, as it is in a CSV file.

A file is opened for reading. Views, virtual tables and tables with columns that are computed when
they are read may hold any expression: they are opened only where the curator says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whosin.errors import InvalidInput, UnknownName
from whosin.release.engines.databases.address import Address
from whosin.release.engines.databases.columns import DatabaseColumn
from whosin.release.engines.databases.needed import PRESENT, RowCondition
from whosin.release.engines.databases.systems import DatabaseTable
from whosin.release.engines.lines import identifier, literal
from whosin.release.engines.schemas import require_different

PATIENCE = 10_000
"""Milliseconds to wait for a program that is writing."""
SETTINGS = ("trusted_schema = OFF", "query_only = ON", f"busy_timeout = {PATIENCE}")
VIRTUAL = 2
"""What marks a column that is computed when it is read."""
OPERATORS = ("=", "<", "<=", ">", ">=", "in")


@dataclass(frozen=True)
class SQLite:
    """SQLite."""

    def connect(self, address: Address) -> Any:
        """One file, which is not written."""
        from adbc_driver_sqlite import dbapi

        if not Path(address.uri).exists():
            raise FileNotFoundError(2, "no such file or directory", address.uri)
        connection = dbapi.connect(f"{Path(address.uri).as_uri()}?mode=ro")
        try:
            for setting in (
                "trusted_schema = OFF",
                "query_only = ON",
                f"busy_timeout = {PATIENCE}",
            ):
                _rows(connection, f"PRAGMA {setting}")
        except BaseException:
            connection.close()
            raise
        return connection

    def tables(self, connection: Any, views: bool) -> list[str]:
        """The tables of the file."""
        listed = _rows(connection, "SELECT name, type, schema FROM pragma_table_list ORDER BY name")
        result = [
            str(name)
            for name, kind, schema in listed
            if schema == "main"
            and not name.startswith("sqlite_")
            and (kind == "table" or (views and kind in ("view", "virtual")))
        ]
        return [name for name in result if views or not _computed(connection, name)]

    def describe(self, connection: Any, address: Address, views: bool) -> DatabaseTable:
        """A table by what was declared."""
        known = self.tables(connection, views)
        if address.table not in known:
            raise UnknownName("table", address.table, known)
        listed = _rows(
            connection,
            f"SELECT name, type, hidden FROM pragma_table_xinfo({literal(address.table)}) "
            "ORDER BY cid",
        )
        columns = tuple(_column(str(name), str(kind or "")) for name, kind, hidden in listed)
        if not columns:
            raise InvalidInput("table", "one with columns", address.table)
        require_different(column.name for column in columns)
        file = Path(address.uri)
        return DatabaseTable(
            address,
            columns,
            f"main.{identifier(address.table)}",
            f"sqlite {file} {address.table}",
            file.stat().st_size,
            views,
        )

    def condition(self, column: DatabaseColumn, wanted: RowCondition) -> str | None:
        """Comparisons of whole numbers: what is one in DuckDB compares alike. Other values
        are missing there, whatever they meet here."""
        name = identifier(column.name)
        if wanted.operator == PRESENT:
            return f"{name} IS NOT NULL"
        fits = all(isinstance(each, int) and not isinstance(each, bool) for each in wanted.values)
        if column.compared != "whole" or not fits or wanted.operator not in OPERATORS:
            return None
        values = [str(each) for each in wanted.values if abs(each) < 2**63]
        if len(values) != len(wanted.values) or not values:
            return None
        right = f"({', '.join(values)})" if wanted.operator == "in" else values[0]
        return f"{name} {wanted.operator} {right}"


def _column(name: str, declared: str) -> DatabaseColumn:
    """By SQLite's own rules of affinity, after dates and truths, which have none."""
    value, words = identifier(name), declared.upper()
    kind = f"typeof({value})"
    if "BOOL" in words:
        return DatabaseColumn(
            name,
            "BOOLEAN",
            (f"CASE WHEN {kind} = 'integer' AND {value} IN (0, 1) THEN {value} END",),
        )
    if "DATE" in words or "TIME" in words:
        return _text(name)
    if "INT" in words:
        real = f"{kind} = 'real' AND abs({value}) < 1e15 AND {value} = CAST({value} AS INTEGER)"
        whole = (
            f"CASE WHEN {kind} = 'integer' THEN {value} WHEN {real} THEN CAST({value} AS INTEGER)"
        )
        return DatabaseColumn(name, "BIGINT", (f"{whole} END",), compared="whole")
    if any(word in words for word in ("CHAR", "CLOB", "TEXT")):
        return _text(name)
    if "BLOB" in words:
        # The driver takes a column's type from its first rows, so none of them is missing.
        bytes_ = f"CAST(coalesce({value}, '') AS BLOB)"
        return DatabaseColumn(
            name, "BLOB", (bytes_, f"{value} IS NULL"), "CASE WHEN {1} = 0 THEN {0} END"
        )
    if any(word in words for word in ("REAL", "FLOA", "DOUB", "NUM", "DEC")):
        known = f"{kind} IN ('integer', 'real')"
        number = f"CASE WHEN {known} THEN CAST({value} AS REAL) ELSE 0.0 END"
        return DatabaseColumn(name, "DOUBLE", (number, known), "CASE WHEN {1} = 1 THEN {0} END")
    return _text(name)


def _text(name: str) -> DatabaseColumn:
    """A text, sent as bytes: SQLite does not see to UTF-8, and what is not UTF-8 is missing."""
    value = identifier(name)
    real = f"WHEN 'real' THEN printf('%!.17g', {value})"
    text = f"CASE typeof({value}) {real} WHEN 'blob' THEN NULL ELSE CAST({value} AS TEXT) END"
    return DatabaseColumn(
        name,
        "VARCHAR",
        (f"CAST(coalesce({text}, '') AS BLOB)", f"({text}) IS NULL"),
        "CASE WHEN {1} = 0 THEN try(decode({0})) END",
    )


def _computed(connection: Any, table: str) -> bool:
    hidden = _rows(connection, f"SELECT hidden FROM pragma_table_xinfo({literal(table)})")
    return any(each == VIRTUAL for (each,) in hidden)


def _rows(connection: Any, sql: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall()) if cursor.description else []
