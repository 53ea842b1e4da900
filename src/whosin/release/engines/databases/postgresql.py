"""PostgreSQL, through its ADBC driver, libpq: PGPASSWORD, ~/.pgpass and services work.

Contract: a scan is one statement in one read-only transaction, which also looks whether the columns
are still the ones that they were. What a column becomes depends on its type:

- whole numbers, doubles, truths, dates and moments are themselves; a moment with a zone is as it is
  in UTC, and one that is infinite or beyond 64 bits of microseconds is missing;
- numeric(p, s) up to 38 digits is a decimal, whose NaN is missing, and other numerics are doubles;
- texts, enumerations, UUIDs, JSON and network addresses are texts; a domain is what it is made of;
- nobody may ask about other types (arrays, intervals, ranges …), which are never read.

Views, foreign tables, tables with computed columns and tables under row security may hold any
expression, one that fails on some rows too: they are opened only where the curator says so.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from whosin.errors import InvalidInput, UnknownName
from whosin.release.engines.databases.address import Address
from whosin.release.engines.databases.columns import (
    DatabaseColumn,
    unusable,
)
from whosin.release.engines.databases.needed import PRESENT, RowCondition
from whosin.release.engines.databases.systems import DatabaseTable
from whosin.release.engines.lines import identifier, literal
from whosin.release.engines.schemas import require_different

PATIENCE = 10
"""Seconds to wait for a server, where neither the URL nor the environment says."""
SETTINGS = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "SET LOCAL search_path = pg_catalog",
    "SET LOCAL client_encoding = 'UTF8'",
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL standard_conforming_strings = on",
)
ENCODINGS = ("UTF8", "LATIN1")
"""Encodings of databases: in others a text may have no UTF-8, and reading it would fail."""
SCHEMA = "public"
PLAIN = {
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "bool": "BOOLEAN",
    "bytea": "BLOB",
}
WHOLE = ("int2", "int4", "int8")
TEXTS = frozenset(
    {
        *("text", "varchar", "bpchar", "char", "name", "citext", "uuid", "json", "jsonb", "xml"),
        *("inet", "cidr", "macaddr", "macaddr8"),
    }
)
COMPARED_TEXTS = ("text", "varchar")
MOMENTS = "'4713-01-01 BC' AND '294246-12-31'"
"""Moments that both PostgreSQL and 64 bits of microseconds since 1970 can hold."""
LARGEST = 38
OPERATORS = ("=", "<", "<=", ">", ">=", "in")

TABLES = """
SELECT n.nspname, c.relname, c.oid::int8,
       c.relkind::text IN ('r', 'p', 'm') AND NOT c.relrowsecurity AND NOT EXISTS (
         SELECT FROM pg_attribute a
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attgenerated::text = 'v')
       AND NOT EXISTS (
         SELECT FROM pg_partition_tree(CASE WHEN c.relkind::text = 'p' THEN c.oid END) p
         JOIN pg_class f ON f.oid = p.relid WHERE f.relkind::text = 'f')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind::text IN ('r', 'p', 'm', 'v', 'f')
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_toast%'
  AND has_schema_privilege(n.oid, 'USAGE') AND has_any_column_privilege(c.oid, 'SELECT')
ORDER BY 1, 2
"""
COLUMNS = """
WITH RECURSIVE known(number, name, type, modifier) AS (
  SELECT a.attnum, a.attname, a.atttypid, a.atttypmod FROM pg_attribute a
  WHERE a.attrelid = {table} AND a.attnum > 0 AND NOT a.attisdropped
    AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')
  UNION ALL
  SELECT k.number, k.name, t.typbasetype, t.typtypmod
  FROM known k JOIN pg_type t ON t.oid = k.type WHERE t.typtype::text = 'd'
)
SELECT k.name::text, t.typname::text, t.typtype::text, k.modifier::int8
FROM known k JOIN pg_type t ON t.oid = k.type WHERE t.typtype::text <> 'd' ORDER BY k.number
"""
WHICH = """
SELECT current_setting('server_encoding'), d.oid::int8, pg_table_size({table})::int8,
       CASE WHEN has_function_privilege('pg_control_system()', 'EXECUTE')
            THEN (SELECT system_identifier::text FROM pg_control_system()) END,
       coalesce(host(inet_server_addr()), '') || ':' || coalesce(inet_server_port()::text, '')
FROM pg_database d WHERE d.datname = current_database()
"""


@dataclass(frozen=True)
class PostgreSQL:
    """PostgreSQL, and what speaks its protocol and has its catalogue."""

    def connect(self, address: Address) -> Any:
        """A read-only transaction."""
        from adbc_driver_postgresql import dbapi  # type: ignore[import-untyped]

        uri = address.uri
        if "connect_timeout=" not in uri and "PGCONNECT_TIMEOUT" not in os.environ:
            uri += f"{'&' if '?' in uri else '?'}connect_timeout={PATIENCE}"
        connection = dbapi.connect(uri)
        try:
            with connection.cursor() as cursor:
                for setting in SETTINGS:
                    cursor.execute(setting)
        except BaseException:
            connection.close()
            raise
        return connection

    def tables(self, connection: Any, views: bool) -> list[str]:
        """As schema.table, or the table alone in the schema public."""
        return [_spelled(row) for row in _rows(connection, TABLES) if views or row[3]]

    def describe(self, connection: Any, address: Address, views: bool) -> DatabaseTable:
        """A table by its catalogue."""
        listed = {_spelled(row): row for row in _rows(connection, TABLES)}
        name = address.table.removeprefix(f"{SCHEMA}.")
        if name not in listed:
            raise UnknownName("table", address.table, self.tables(connection, views))
        schema, table, number, plain = listed[name]
        if not plain and not views:
            accepted = (
                "a table: views, foreign tables, tables with computed columns or under row "
                "security only with views = true"
            )
            raise InvalidInput("table", accepted, address.table)
        encoding, database, size, server, host = _rows(connection, WHICH.format(table=number))[0]
        if encoding not in ENCODINGS:
            accepted = f"in a database with the encoding {' or '.join(ENCODINGS)}"
            raise InvalidInput("table", accepted, encoding)
        if not views:
            # With a policy on it the server then refuses the query, whatever the rows are.
            _run(connection, "SET LOCAL row_security = off")
        rows = _rows(connection, COLUMNS.format(table=number))
        columns = tuple(_column(*row) for row in rows)
        require_different(column.name for column in columns)
        return DatabaseTable(
            address,
            columns,
            f"{identifier(schema)}.{identifier(table)}",
            f"postgresql {server or host} {database} {schema}.{table}",
            size,
            views,
            f"postgresql {server or host} {database} {number}",
        )

    def condition(self, column: DatabaseColumn, wanted: RowCondition) -> str | None:
        """Comparisons of whole numbers, and of texts with texts that they equal: what a collation
        takes for equal is never less."""
        name = identifier(column.name)
        if wanted.operator == PRESENT:
            return f"{name} IS NOT NULL"
        values = wanted.values
        if column.compared == "whole" and wanted.operator in OPERATORS:
            fits = all(isinstance(each, int) and not isinstance(each, bool) for each in values)
            return _compared(name, wanted.operator, [f"({each})" for each in values], fits)
        if column.compared == "text" and wanted.operator in ("=", "in"):
            fits = all(isinstance(each, str) and "\0" not in each for each in values)
            return _compared(name, wanted.operator, [literal(each) for each in values], fits)
        return None


def _compared(name: str, operator: str, values: list[str], fits: bool) -> str | None:
    if not fits or not values:
        return None
    right = f"({', '.join(values)})" if operator == "in" else values[0]
    return f"{name} {operator} {right}"


def _column(name: str, kind: str, form: str, modifier: int) -> DatabaseColumn:
    value = identifier(name)
    if kind in PLAIN:
        compared = "whole" if kind in WHOLE else ""
        return DatabaseColumn(name, PLAIN[kind], (f"{value}::{kind}",), compared=compared)
    if kind in TEXTS or form == "e":
        compared = "text" if kind in COMPARED_TEXTS else ""
        return DatabaseColumn(name, "VARCHAR", (f"{value}::text",), compared=compared)
    if kind == "oid":
        return DatabaseColumn(name, "BIGINT", (f"{value}::int8",))
    if kind == "numeric":
        target = _decimal(modifier)
        return DatabaseColumn(name, target, (f"{value}::text",), f"try_cast({{0}} AS {target})")
    if kind == "date":
        return DatabaseColumn(name, "DATE", (f"CASE WHEN isfinite({value}) THEN {value} END",))
    if kind in ("timestamp", "timestamptz"):
        moment = f"{value} AT TIME ZONE 'UTC'" if kind == "timestamptz" else value
        near = f"CASE WHEN {value} BETWEEN {MOMENTS} THEN {moment} END"
        return DatabaseColumn(name, "TIMESTAMP", (near,))
    return unusable(name)


def _decimal(modifier: int) -> str:
    """DuckDB's type for a numeric; a double where that has no end, or too many digits."""
    if modifier < 4:
        return "DOUBLE"
    digits, scale = (modifier - 4) >> 16 & 0xFFFF, ((modifier - 4 & 0x7FF) ^ 1024) - 1024
    return f"DECIMAL({digits}, {scale})" if 0 <= scale <= digits <= LARGEST else "DOUBLE"


def _spelled(row: Any) -> str:
    schema, table = row[0], row[1]
    return str(table) if schema == SCHEMA and "." not in table else f"{schema}.{table}"


def _rows(connection: Any, sql: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def _run(connection: Any, sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
