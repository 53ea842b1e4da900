"""Any database that has an ADBC driver: `adbc:driver:uri::table`.

Contract: the driver says which columns there are, and their Arrow types; the needed ones are
selected by their names, and nothing is computed there. How a driver reads its rows is up to the
driver: one that fails on some of them makes a release fail after its debit, and halts the dataset.
A name and a password for it come from the environment.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from typing import Any

from whosin.errors import InvalidInput, Unsupported
from whosin.release.engines.base import split_name
from whosin.release.engines.databases.address import Address
from whosin.release.engines.databases.columns import (
    DatabaseColumn,
    unusable,
)
from whosin.release.engines.databases.needed import RowCondition
from whosin.release.engines.databases.systems import DatabaseTable
from whosin.release.engines.frames import holds_text
from whosin.release.engines.lines import identifier
from whosin.release.engines.schemas import require_different

VARIABLES = {"username": "WHOSIN_SOURCE_USER", "password": "WHOSIN_SOURCE_PASSWORD"}
"""Options that every ADBC driver has, and where they come from."""


@dataclass(frozen=True)
class AnyDriver:
    """A database about which nothing but its driver is known."""

    def connect(self, address: Address) -> Any:
        """By the driver of a Python package adbc_driver_NAME, or one that is registered."""
        from adbc_driver_manager import dbapi

        options = {
            option: os.environ[variable]
            for option, variable in VARIABLES.items()
            if os.environ.get(variable)
        }
        driver, entry = _driver(address.system)
        uri = {"path" if address.system == "duckdb" else "uri": address.uri}
        return dbapi.connect(driver=driver, entrypoint=entry, db_kwargs={**uri, **options})

    def tables(self, connection: Any, views: bool) -> list[str]:
        """Drivers list tables in their own ways."""
        raise Unsupported("tables are listed for PostgreSQL and SQLite alone")

    def describe(self, connection: Any, address: Address, views: bool) -> DatabaseTable:
        """A table by its Arrow schema."""
        schema, name = split_name(address.table)
        named = {"db_schema_filter": schema} if "." in address.table else {}
        try:
            kinds = connection.adbc_get_table_schema(name, **named)
        except Exception:
            accepted = "one that the driver knows"
            raise InvalidInput("table", accepted, repr(address.table)) from None
        columns = tuple(_column(each.name, each.type) for each in kinds)
        require_different(column.name for column in columns)
        parts = (schema, name) if named else (name,)
        relation = ".".join(map(identifier, parts))
        return DatabaseTable(
            address,
            columns,
            relation,
            f"adbc {address.system} {address.uri} {address.table}",
            None,
            views,
        )

    def condition(self, column: DatabaseColumn, wanted: RowCondition) -> str | None:
        """None: what a comparison means there is not known."""
        return None


def _driver(name: str) -> tuple[str, str | None]:
    """(the library of a driver, its entry point)."""
    try:
        module = importlib.import_module(f"adbc_driver_{name}")
    except ImportError:
        return name, None
    path = getattr(module, "_driver_path", None) or getattr(module, "driver_path", None)
    if path is None:
        return name, None
    return str(path()), "duckdb_adbc_init" if name == "duckdb" else None


def _column(name: str, kind: Any) -> DatabaseColumn:
    import pyarrow as pa

    asked, types = (identifier(name),), pa.types
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
        types.is_integer: "HUGEINT" if types.is_uint64(kind) else "BIGINT",
        types.is_float32: "FLOAT",
        types.is_floating: "DOUBLE",
        types.is_date: "DATE",
        types.is_binary: "BLOB",
    }
    target = next((target for check, target in known.items() if check(kind)), "")
    if not target:
        return unusable(name)
    return DatabaseColumn(name, target, asked, f"try_cast({{0}} AS {target})")
