"""Drivers of databases: PostgreSQL, SQLite, and any other through ADBC.

Any database that has an ADBC driver: `adbc:driver:uri::table`. The driver says which columns there
are, and their Arrow types; the needed ones are selected by their names, and nothing is computed
there. How a driver reads its rows is up to the driver: one that fails on some of them makes a
release fail after its debit, and suspends the dataset. A name and a password for it come from the
environment.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from whosin.errors import InvalidInput, Unsupported
from whosin.release.engines.base import (
    require_different,
    split_name,
    sql_identifier,
    sql_literal,
    unknown_table,
)
from whosin.release.engines.databases import Address, DatabaseColumn, DatabaseTable, unusable_column
from whosin.release.engines.files import NO_EXTENSIONS, holds_text

# PostgreSQL, through its ADBC driver, libpq: PGPASSWORD, ~/.pgpass and services work.
#
# Contract: a scan is one statement in one read-only transaction, which also looks whether the
# columns are still the ones that they were. What a column becomes depends on its type:
#
# - whole numbers, doubles, truths, dates and moments are themselves; a moment with a zone is as it
#   is in UTC, and one that is infinite or beyond 64 bits of microseconds is missing;
# - numeric(p, s) up to 38 digits is a decimal, whose NaN is missing; other numerics are doubles;
# - texts, enumerations, UUIDs, JSON and network addresses are texts, a domain what it is made of;
# - nobody may ask about other types (arrays, intervals, ranges …), which are never read.
#
# Views, foreign tables, tables with computed columns and tables under row security may hold any
# expression, one that fails on some rows too: they are opened only where the curator says so.


CONNECT_SECONDS = 10
"""Seconds to wait for a server, where neither the URL nor the environment says."""
SESSION_SETTINGS = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
    "SET LOCAL search_path = pg_catalog",
    "SET LOCAL client_encoding = 'UTF8'",
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL standard_conforming_strings = on",
)
SERVER_ENCODINGS = ("UTF8", "LATIN1")
"""Encodings of databases: in others a text may have no UTF-8, and reading it would fail."""
DEFAULT_SCHEMA = "public"
PLAIN_TYPES = {
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "bool": "BOOLEAN",
    "bytea": "BLOB",
}
WHOLE_TYPES = ("int2", "int4", "int8")
TEXT_TYPES = frozenset(
    {
        *("text", "varchar", "bpchar", "char", "name", "citext", "uuid", "json", "jsonb", "xml"),
        *("inet", "cidr", "macaddr", "macaddr8"),
    }
)
COMPARED_TEXTS = ("text", "varchar")
MOMENT_RANGE = "'4713-01-01 BC' AND '294246-12-31'"
"""Moments that both PostgreSQL and 64 bits of microseconds since 1970 can hold."""
MAX_DECIMAL_DIGITS = 38

TABLES_QUERY = """
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
COLUMNS_QUERY = """
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
SERVER_QUERY = """
SELECT current_setting('server_encoding'), d.oid::int8, pg_table_size({table})::int8,
       CASE WHEN has_function_privilege('pg_control_system()', 'EXECUTE')
            THEN (SELECT system_identifier::text FROM pg_control_system()) END,
       coalesce(host(inet_server_addr()), '') || ':' || coalesce(inet_server_port()::text, '')
FROM pg_database d WHERE d.datname = current_database()
"""


class PostgreSQL:
    """PostgreSQL, and what speaks its protocol and has its catalogue."""

    def connect(self, address: Address) -> Any:
        from adbc_driver_postgresql import dbapi  # type: ignore[import-untyped]

        uri = address.uri
        if "connect_timeout=" not in uri and "PGCONNECT_TIMEOUT" not in os.environ:
            uri += f"{'&' if '?' in uri else '?'}connect_timeout={CONNECT_SECONDS}"
        return _configure(dbapi.connect(uri), SESSION_SETTINGS)

    def tables(self, connection: Any, views: bool) -> list[str]:
        return [
            _spell_table(row) for row in _fetch_rows(connection, TABLES_QUERY) if views or row[3]
        ]

    def describe(self, connection: Any, address: Address, views: bool) -> DatabaseTable:
        listed = {_spell_table(row): row for row in _fetch_rows(connection, TABLES_QUERY)}
        name = address.table.removeprefix(f"{DEFAULT_SCHEMA}.")
        if not listed:
            [(role, database)] = _fetch_rows(connection, "SELECT current_user, current_database()")
            raise InvalidInput(
                f"role {role!r} may read no table of database {database!r}",
                field="table",
                value=address.table,
                hint=f"GRANT SELECT ON {address.table} TO {role}; outside the schema public, GRANT "
                "USAGE on its schema too, and write ::schema.table",
            )
        if name not in listed:
            raise unknown_table(address.table, self.tables(connection, views), ())
        schema, table, number, plain = listed[name]
        if not plain and not views:
            raise unknown_table(address.table, (), [address.table])
        encoding, database, size, server, host = _fetch_rows(
            connection, SERVER_QUERY.format(table=number)
        )[0]
        if encoding not in SERVER_ENCODINGS:
            message = (
                f"the database has the encoding {encoding}; {' and '.join(SERVER_ENCODINGS)} are "
                "read"
            )
            raise InvalidInput(message, field="table", value=encoding)
        if not views:
            # With a policy on it the server then refuses the query, whatever the rows are.
            _fetch_rows(connection, "SET LOCAL row_security = off")
        rows = _fetch_rows(connection, COLUMNS_QUERY.format(table=number))
        columns = tuple(_read_column(*row) for row in rows)
        require_different(column.name for column in columns)
        relation = f"{sql_identifier(schema)}.{sql_identifier(table)}"
        home = f"postgresql {server or host} {database}"
        identity, own = f"{home} {schema}.{table}", f"{home} {number}"
        return DatabaseTable(address, columns, relation, identity, size, views, own)


def _read_column(name: str, kind: str, form: str, modifier: int) -> DatabaseColumn:
    value = sql_identifier(name)
    if kind in PLAIN_TYPES:
        compared = "whole" if kind in WHOLE_TYPES else ""
        return DatabaseColumn(name, PLAIN_TYPES[kind], (f"{value}::{kind}",), compared=compared)
    if kind in TEXT_TYPES or form == "e":
        compared = "text" if kind in COMPARED_TEXTS else ""
        return DatabaseColumn(name, "VARCHAR", (f"{value}::text",), compared=compared)
    if kind == "oid":
        return DatabaseColumn(name, "BIGINT", (f"{value}::int8",))
    if kind == "numeric":
        target = _decimal_type(modifier)
        return DatabaseColumn(name, target, (f"{value}::text",), f"try_cast({{0}} AS {target})")
    if kind == "date":
        return DatabaseColumn(name, "DATE", (f"CASE WHEN isfinite({value}) THEN {value} END",))
    if kind in ("timestamp", "timestamptz"):
        moment = f"{value} AT TIME ZONE 'UTC'" if kind == "timestamptz" else value
        near = f"CASE WHEN {value} BETWEEN {MOMENT_RANGE} THEN {moment} END"
        return DatabaseColumn(name, "TIMESTAMP", (near,))
    return unusable_column(name)


def _decimal_type(modifier: int) -> str:
    """DuckDB's type for a numeric; a double where that has no end, or too many digits."""
    if modifier < 4:
        return "DOUBLE"
    digits, scale = (modifier - 4) >> 16 & 0xFFFF, ((modifier - 4 & 0x7FF) ^ 1024) - 1024
    return f"DECIMAL({digits}, {scale})" if 0 <= scale <= digits <= MAX_DECIMAL_DIGITS else "DOUBLE"


def _spell_table(row: Any) -> str:
    schema, table = row[0], row[1]
    return str(table) if schema == DEFAULT_SCHEMA and "." not in table else f"{schema}.{table}"


def _configure(connection: Any, statements: Iterable[str]) -> Any:
    """A connection after some statements; closed where one fails."""
    try:
        for statement in statements:
            _fetch_rows(connection, statement)
    except BaseException:
        connection.close()
        raise
    return connection


def _fetch_rows(connection: Any, sql: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall()) if cursor.description else []


# SQLite files, through their ADBC driver.
#
# Contract: in SQLite any row may hold any type, whatever its column says. So what a column becomes
# depends on what was declared, and values of other types are missing, each row by itself:
#
# - a declared whole number holds whole numbers, and a number such as 3.0 too;
# - a declared real, numeric or decimal is a double;
# - a declared boolean holds 0 and 1, as false and true;
# - a declared blob holds bytes;
# - everything else, dates too, is text, whole numbers in it spelled out, as it is in a CSV file.
#
# A file is opened for reading. Views, virtual tables and tables with columns that are computed when
# they are read may hold any expression: they are opened only where the curator says so.


SQLITE_PATIENCE = 10_000
"""Milliseconds to wait for a program that is writing."""
SQLITE_SETTINGS = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA query_only = ON",
    f"PRAGMA busy_timeout = {SQLITE_PATIENCE}",
)
VIRTUAL_COLUMN = 2
"""What marks a column that is computed when it is read."""


class SQLite:
    def connect(self, address: Address) -> Any:
        from adbc_driver_sqlite import dbapi

        if not Path(address.uri).exists():
            raise FileNotFoundError(2, "no such file or directory", address.uri)
        connection = dbapi.connect(f"{Path(address.uri).as_uri()}?mode=ro")
        return _configure(connection, SQLITE_SETTINGS)

    def tables(self, connection: Any, views: bool) -> list[str]:
        listed = _fetch_rows(
            connection, "SELECT name, type, schema FROM pragma_table_list ORDER BY name"
        )
        result = [
            str(name)
            for name, kind, schema in listed
            if schema == "main"
            and not name.startswith("sqlite_")
            and (kind == "table" or (views and kind in ("view", "virtual")))
        ]
        return [name for name in result if views or not _has_computed_columns(connection, name)]

    def describe(self, connection: Any, address: Address, views: bool) -> DatabaseTable:
        known = self.tables(connection, views)
        if address.table not in known:
            raise unknown_table(address.table, known, self.tables(connection, True))
        listed = _fetch_rows(
            connection,
            f"SELECT name, type, hidden FROM pragma_table_xinfo({sql_literal(address.table)}) "
            "ORDER BY cid",
        )
        columns = tuple(_column_sqlite(str(name), str(kind or "")) for name, kind, hidden in listed)
        if not columns:
            message = f"the table {address.table} has no columns"
            raise InvalidInput(message, field="table", value=address.table)
        require_different(column.name for column in columns)
        file, relation = Path(address.uri), f"main.{sql_identifier(address.table)}"
        identity = f"sqlite {file} {address.table}"
        return DatabaseTable(address, columns, relation, identity, file.stat().st_size, views)


def _column_sqlite(name: str, declared: str) -> DatabaseColumn:
    """By SQLite's own rules of affinity, after dates and truths, which have none."""
    value, words = sql_identifier(name), declared.upper()
    kind = f"typeof({value})"
    if "BOOL" in words:
        truth = f"CASE WHEN {kind} = 'integer' AND {value} IN (0, 1) THEN {value} END"
        return DatabaseColumn(name, "BOOLEAN", (truth,))
    if "INT" in words and not ("DATE" in words or "TIME" in words):
        real = f"{kind} = 'real' AND abs({value}) < 1e15 AND {value} = CAST({value} AS INTEGER)"
        whole = (
            f"CASE WHEN {kind} = 'integer' THEN {value} WHEN {real} THEN CAST({value} AS INTEGER)"
        )
        return DatabaseColumn(name, "BIGINT", (f"{whole} END",), compared="whole")
    if any(word in words for word in ("DATE", "TIME", "CHAR", "CLOB", "TEXT")):
        return _text_column(name)
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
    return _text_column(name)


def _text_column(name: str) -> DatabaseColumn:
    """A text, sent as bytes: SQLite does not see to UTF-8, and what is not UTF-8 is missing."""
    value = sql_identifier(name)
    real = f"WHEN 'real' THEN printf('%!.17g', {value})"
    text = f"CASE typeof({value}) {real} WHEN 'blob' THEN NULL ELSE CAST({value} AS TEXT) END"
    return DatabaseColumn(
        name,
        "VARCHAR",
        (f"CAST(coalesce({text}, '') AS BLOB)", f"({text}) IS NULL"),
        "CASE WHEN {1} = 0 THEN try(decode({0})) END",
    )


def _has_computed_columns(connection: Any, table: str) -> bool:
    hidden = _fetch_rows(connection, f"SELECT hidden FROM pragma_table_xinfo({sql_literal(table)})")
    return any(each == VIRTUAL_COLUMN for (each,) in hidden)


CREDENTIAL_VARIABLES = {"username": "WHOSIN_SOURCE_USER", "password": "WHOSIN_SOURCE_PASSWORD"}
"""Options that every ADBC driver has, and where they come from."""


class AnyDriver:
    """A database about which nothing but its driver is known."""

    def connect(self, address: Address) -> Any:
        """By the driver of a Python package adbc_driver_NAME, or one that is registered."""
        from adbc_driver_manager import dbapi

        options = {
            option: os.environ[variable]
            for option, variable in CREDENTIAL_VARIABLES.items()
            if os.environ.get(variable)
        }
        driver, entry = _find_driver(address.system)
        uri = {"uri": address.uri}
        if address.system == "duckdb":
            uri = {"path": address.uri, "access_mode": "READ_ONLY"}
            uri |= {name: str(value).lower() for name, value in NO_EXTENSIONS.items()}
        return dbapi.connect(driver=driver, entrypoint=entry, db_kwargs={**uri, **options})

    def tables(self, connection: Any, views: bool) -> list[str]:
        raise Unsupported("tables can be listed for PostgreSQL and SQLite only")

    def describe(self, connection: Any, address: Address, views: bool) -> DatabaseTable:
        schema, name = split_name(address.table)
        named = {"db_schema_filter": schema} if "." in address.table else {}
        try:
            kinds = connection.adbc_get_table_schema(name, **named)
        except Exception:
            message = f"the driver finds no table {address.table!r}"
            raise InvalidInput(message, field="table", value=address.table) from None
        columns = tuple(_column_any_driver(each.name, each.type) for each in kinds)
        require_different(column.name for column in columns)
        parts = (schema, name) if named else (name,)
        relation = ".".join(map(sql_identifier, parts))
        identity = f"adbc {address.system} {address.uri} {address.table}"
        return DatabaseTable(address, columns, relation, identity, None, views)


def _find_driver(name: str) -> tuple[str, str | None]:
    """(the library of a driver, its entry point)."""
    try:
        module = importlib.import_module(f"adbc_driver_{name}")
    except ImportError:
        return name, None
    path = getattr(module, "_driver_path", None) or getattr(module, "driver_path", None)
    if path is None:
        return name, None
    return str(path()), "duckdb_adbc_init" if name == "duckdb" else None


def _column_any_driver(name: str, kind: Any) -> DatabaseColumn:
    import pyarrow as pa

    asked, types = (sql_identifier(name),), pa.types
    if holds_text(kind):
        return DatabaseColumn(name, "VARCHAR", asked)
    if types.is_decimal(kind) and kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        target = f"DECIMAL({kind.precision}, {kind.scale})"
        return DatabaseColumn(name, target, asked, f"try_cast({{0}} AS {target})")
    if types.is_timestamp(kind):
        moment = "timezone('UTC', {0})" if kind.tz is not None else "{0}"
        return DatabaseColumn(name, "TIMESTAMP", asked, f"try_cast({moment} AS TIMESTAMP)")
    known = {
        types.is_boolean: "BOOLEAN",
        types.is_integer: "DECIMAL(20, 0)" if types.is_uint64(kind) else "BIGINT",
        types.is_float32: "FLOAT",
        types.is_floating: "DOUBLE",
        types.is_date: "DATE",
        types.is_binary: "BLOB",
    }
    target = next((target for check, target in known.items() if check(kind)), "")
    if not target:
        return unusable_column(name)
    return DatabaseColumn(name, target, asked, f"try_cast({{0}} AS {target})")
