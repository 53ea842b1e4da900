"""From format 1 to format 2, once: every history is verified first, then goes on with its sums.

Contract: nothing of a history is rewritten. Each dataset gets one entry, "upgraded", with the sums
that its entries add up to; a dataset whose history is broken stops the whole upgrade. On a server
it makes the functions that write, and takes back every right to write past them; only the owner of
the tables can do it. A ledger of the present format gets the functions of this version.
"""

from __future__ import annotations

from sqlalchemy import Connection, inspect, select, update

from whosin.ledger import functions, history, rows, running, schema
from whosin.ledger.names import read_name, user
from whosin.ledger.schema import datasets
from whosin.ledger.store import WAIT, Store

OLDEST = 1


def upgrade(url: object, *, who: str | None = None, wait: float = WAIT) -> tuple[int, int, int]:
    """Bring a ledger to the present format.

    Args:
        who: in whose name the entries are made; by default the user of this process.

    Returns:
        The format that it had, the one that it has, and the number of datasets.

    Raises:
        BrokenHistory: a history is not whole; nothing was changed.
    """
    name = read_name(who if who is not None else user(), "who")
    store = Store(url, wait, create=False, oldest=OLDEST)
    try:
        with store.writing() as connection:
            store.exclude(connection)
            before = store.version(connection)
            result = sorted(map(str, connection.scalars(select(datasets.c.name))))
            if before < schema.VERSION:
                _alter(connection, store)
                for each in result:
                    _carry_on(connection, each, name, store.stamp(connection))
                connection.execute(update(schema.about).values(version=schema.VERSION))
            elif not store.sqlite:
                store.make_functions(connection)  # of this version; who may call them stays
            return before, schema.VERSION, len(result)
    finally:
        store.dispose()


def _alter(connection: Connection, store: Store) -> None:
    columns = {column["name"] for column in inspect(connection).get_columns(datasets.name)}
    if "binding" not in columns:
        connection.exec_driver_sql("ALTER TABLE whosin_datasets ADD COLUMN binding TEXT")
    if not store.sqlite:
        connection.exec_driver_sql(
            'ALTER TABLE whosin_entries ALTER COLUMN request TYPE varchar(200) COLLATE "C"'
        )
        store.make_functions(connection)
        for statement in functions.withdrawals():
            connection.exec_driver_sql(statement)


def _carry_on(connection: Connection, name: str, who: str, time: str) -> None:
    row = rows.dataset_row(connection, name)
    answers = rows.stored_answers(connection, name)
    history.check_whole(row, rows.history(connection, name), answers)
    body = {"who": who, "when": time, "format": schema.VERSION}
    entry, after = running.following(row, "upgraded", None, body)
    connection.execute(schema.entries.insert().values(rows.entry_values(entry)))
    connection.execute(update(datasets).where(datasets.c.name == name).values(after._asdict()))
