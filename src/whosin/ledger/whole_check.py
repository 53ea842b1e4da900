"""Is the ledger as a whole what a ledger makes: its tables, and what belongs to no dataset?

Contract: `survey` raises a `BrokenHistory` for a trigger, rule, view, policy or foreign table in
the way of ours, changed columns or functions, an index that does not fit its table, entries or
answers of a dataset that is not there, and a dataset that was noted beside the file and is gone.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, inspect, select

from whosin.errors import BrokenHistory
from whosin.ledger import functions, schema
from whosin.ledger.heads import Heads
from whosin.ledger.schema import answers, datasets, entries

TABLES = sorted(schema.metadata.tables)

_POSTGRES = {
    "a trigger": "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgrelid IN ({ours})",
    "a rule": "SELECT rulename FROM pg_rewrite WHERE ev_class IN ({ours})",
    "a policy": "SELECT polname FROM pg_policy WHERE polrelid IN ({ours})",
    "a table with row security": (
        "SELECT relname FROM pg_class WHERE oid IN ({ours}) AND relrowsecurity"
    ),
    "a child table": "SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent IN ({ours})",
    "something that is no table": (
        "SELECT relname FROM pg_class WHERE oid IN ({ours}) AND relkind <> 'r'"
    ),
}
"""Queries of PostgreSQL's catalogs for what could change or hide a row unnoticed."""


def survey(connection: Connection, name: str, heads: Heads | None) -> None:
    """Look at everything that no single dataset's history covers.

    Args:
        name: the ledger's name, for the message.
        heads: what was noted beside the file.
    """
    sqlite = connection.dialect.name == "sqlite"
    if sqlite:
        _check_file(connection, name)
    else:
        _check_server(connection, name)
    for table in schema.metadata.tables.values():
        result = [column["name"] for column in inspect(connection).get_columns(table.name)]
        if sorted(result) != sorted(column.name for column in table.columns):
            raise BrokenHistory(name, f"the columns of {table.name} are not those of a ledger")
    known = set(connection.scalars(select(datasets.c.name)))
    for kind, column in (("entries", entries.c.dataset), ("answers", answers.c.dataset)):
        for lost in sorted(map(str, set(connection.scalars(select(column).distinct())) - known)):
            raise BrokenHistory(lost, f"it has {kind}, and the dataset itself is gone")
    if heads is not None:
        for lost in sorted(set(heads.read()) - known):
            raise BrokenHistory(lost, f"{heads.path.name} knows it, and the ledger does not")


def _check_file(connection: Connection, name: str) -> None:
    query = "SELECT type, name, tbl_name FROM sqlite_master ORDER BY name"
    for kind, each, table in connection.exec_driver_sql(query):
        own = kind == "index" and each.startswith("sqlite_autoindex_")
        if table not in TABLES or not (own or (kind == "table" and each in TABLES)):
            raise BrokenHistory(name, f"it has the {kind} {each!r}, which no ledger makes")
    first: Any = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
    if first != "ok":
        raise BrokenHistory(name, "its file is damaged")


def _check_server(connection: Connection, name: str) -> None:
    ours = ", ".join(f"'{table}'::regclass" for table in TABLES)
    for kind, query in _POSTGRES.items():
        result = connection.exec_driver_sql(query.format(ours=ours)).scalars().first()
        if result is not None:
            raise BrokenHistory(name, f"it has {kind}, {str(result)!r}, which no ledger makes")
    query = (
        "SELECT p.proname, p.prosrc, p.prosecdef, p.proowner = c.relowner "
        "FROM pg_proc p JOIN pg_class c ON c.oid = 'whosin_datasets'::regclass "
        "AND p.pronamespace = c.relnamespace"
    )
    result = [row for row in connection.exec_driver_sql(query) if row[0].startswith("whosin_")]
    wanted = sorted(
        (each, source, each.removeprefix("whosin_") in functions.CALLS, True)
        for each, source in functions.sources().items()
    )
    if sorted(map(tuple, result)) != wanted:
        raise BrokenHistory(name, "its functions are not those of a ledger")
