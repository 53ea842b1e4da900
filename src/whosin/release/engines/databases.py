"""Tables of databases: addresses, columns, what an expression needs of them, rows in DuckDB.

A source has one of three forms: `postgresql://host/database::schema.table`, `file.sqlite::table`
and `adbc:driver:uri::table`. Who asks is known from the environment or the client's own files: a
source with a password in it is refused, and the refusal repeats nothing of it.

A column says what it is asked for as, what it arrives as, what it becomes. Neither the database's
expression nor DuckDB's fails on any value: what has no value in the column's type is missing.

Columns are found from the end, operation by operation; an operation that is not listed here needs
all of them. A row may be left out where it lies only if the expression drops it first of all,
whoever reads the table: conditions here are weaker than the ones that DuckDB still applies.

Until rows are asked for, a failure is the database's, and says so (`SourceUnreachable`); from then
on it may be about rows, and is repeated nowhere. Outside a scan a table is in DuckDB without rows,
so that everything can be checked. For a scan the needed columns are fetched once, in one state of
the database, into a table of DuckDB's, which spills as others do and is dropped afterwards.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from whosin.errors import (
    InvalidInput,
    SourceChanged,
    SourceUnreachable,
    WhosinError,
    require_extras,
)
from whosin.ledger.store import find_connection_reason
from whosin.release.engines.base import (
    ADBC_PREFIX,
    UNUSABLE_TYPE,
    require_unchanged,
    sql_identifier,
    sql_literal,
)

POSTGRESQL, SQLITE = "postgresql", "sqlite"
ADDRESS_FORMS = "postgresql://host/database::schema.table, file::table or adbc:driver:uri::table"
CONNECTION_PARAMETERS = frozenset(
    {
        *("host", "hostaddr", "port", "dbname", "user", "service", "passfile", "require_auth"),
        *("connect_timeout", "application_name", "target_session_attrs", "load_balance_hosts"),
        *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslnegotiation"),
        *("channel_binding", "gssencmode", "krbsrvname", "tcp_user_timeout"),
        *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
    }
)
"""What a PostgreSQL URL may say. A password, and settings that change what a query means, are not
among it."""
SECRET_PATTERN = re.compile(r"pass|pwd|secret|token|credential|apikey|api_key|private_key", re.I)
OPEN_WORDS = frozenset({"passfile"})


@dataclass(frozen=True)
class Address:
    """A table of a database.

    Attributes:
        system: "postgresql", "sqlite", or the name of an ADBC driver.
        uri: what the driver is given, without a password.
        table: its name there, with its schema where that is not the usual one.
        known: whether `system` is a database that we know, and not just a driver.
    """

    system: str
    uri: str
    table: str
    known: bool = True

    @property
    def place(self) -> str:
        """The host and port of a server, where the address says them."""
        at = urlsplit(self.uri).netloc.rpartition("@")[2]
        return at if self.system == POSTGRESQL else ""

    @property
    def remote(self) -> bool:
        """Whether it may be on another machine, so that no file of ours is it."""
        return self.system != SQLITE or not self.known


def read_address(source: str) -> Address:
    """The address of a table in a database, which `is_database` knows by its form.

    Raises:
        InvalidInput: a source like one, which is none.
    """
    database, mark, table = source.rpartition("::")
    if not mark or not table or table.startswith("1]"):  # an IPv6 address, and no table
        message = "source names a database and no table"
        raise InvalidInput(message, field="source", hint=f"write {ADDRESS_FORMS}")
    if source.startswith(ADBC_PREFIX):
        name, colon, uri = database.removeprefix(ADBC_PREFIX).partition(":")
        if not colon or not re.fullmatch(r"[a-z][a-z0-9_]{0,60}", name):
            message = "source names no ADBC driver"
            raise InvalidInput(message, field="source", hint="write adbc:driver:uri::table")
        _refuse_secrets(uri)
        return Address(name, uri, table, known=False)
    if "://" in database:
        _check_url(database)
        return Address(POSTGRESQL, database, table)
    return Address(SQLITE, str(Path(database).resolve()), table)


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        secret = parts.password is not None
        asked = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        message = "source has a URL that cannot be read"
        raise InvalidInput(message, field="source", hint=f"write {ADDRESS_FORMS}") from None
    _refuse_secrets(url, secret)
    for name, _ in asked:
        if name not in CONNECTION_PARAMETERS:
            message = f"source has the parameter {name[:40]!r}"
            hint = "only parameters of a connection are taken, such as sslmode"
            raise InvalidInput(message, field="source", value=name[:40], hint=hint)


def _refuse_secrets(uri: str, secret: bool = False) -> None:
    """Secrets are given to the driver by other ways, so that no scenario has to be kept secret."""
    rest = uri.partition("://")[2]
    user = rest.partition("@")[0].partition("/")[0] if "@" in rest else ""
    words = re.findall(r"([A-Za-z_]+)\s*=", uri)
    named = any(SECRET_PATTERN.search(word) and word.lower() not in OPEN_WORDS for word in words)
    if secret or ":" in user or named:
        raise InvalidInput(
            "source has a password in it",
            field="source",
            hint="give it by PGPASSWORD, ~/.pgpass or a service file for PostgreSQL, and by "
            "WHOSIN_SOURCE_PASSWORD for other drivers",
        )


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
        return f"CAST({value} AS {self.kind}) AS {sql_identifier(self.name)}"


def unusable_column(name: str) -> DatabaseColumn:
    return DatabaseColumn(name, UNUSABLE_TYPE)


def select_sql(columns: Sequence[DatabaseColumn], relation: str, conditions: Sequence[str]) -> str:
    """The query that a database is sent: these columns, or one that holds nothing, of a table."""
    listed = [
        f"{value} AS {name}"
        for index, column in enumerate(columns)
        for value, name in zip(column.asked, column.arrives_as(index), strict=True)
    ]
    kept = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {', '.join(listed) or '1 AS c'} FROM {relation}{kept}"


def empty_table_sql(columns: Sequence[DatabaseColumn]) -> str:
    """DuckDB's query for a table with these columns and no rows."""
    listed = (f"CAST(NULL AS {each.kind}) AS {sql_identifier(each.name)}" for each in columns)
    return f"SELECT {', '.join(listed)} WHERE false"


PRESENT_OPERATOR = "present"


@dataclass(frozen=True)
class RowCondition:
    """A condition on one column: what it compares as, and with what."""

    column: str
    operator: str
    values: tuple[Any, ...] = ()


def needed_columns(expression: Any) -> dict[str, set[str]]:
    """For each table, by its name, the columns that an expression needs."""
    from ibis.expr import operations as ops

    root = expression.op()
    wanted: dict[Any, set[str]] = {}
    waiting = [(root, set(root.schema.names))]
    while waiting:
        relation, names = waiting.pop()
        if relation in wanted and names <= wanted[relation]:
            continue
        wanted[relation] = wanted.get(relation, set()) | names
        waiting += _columns_needed(ops, relation, wanted[relation])
    return {
        each.name: names for each, names in wanted.items() if isinstance(each, ops.DatabaseTable)
    }


def _columns_needed(ops: Any, relation: Any, names: set[str]) -> list[tuple[Any, set[str]]]:
    """What a relation needs of those that it is made from, to give these columns."""
    if isinstance(relation, ops.PhysicalTable):
        return []
    if isinstance(relation, ops.Project):
        used: Iterable[Any] = [relation.values[name] for name in names]
        return [(relation.parent, set()), *_value_fields(ops, used)]
    if isinstance(relation, ops.Filter):
        return [(relation.parent, names), *_value_fields(ops, relation.predicates)]
    if isinstance(relation, ops.Aggregate):
        metrics = [value for name, value in relation.metrics.items() if name in names]
        used = [*relation.groups.values(), *metrics]
        return [(relation.parent, set()), *_value_fields(ops, used)]
    if isinstance(relation, ops.JoinChain):
        used = [relation.values[name] for name in names]
        used += [each for link in relation.rest for each in link.predicates]
        tables = [relation.first, *(link.table for link in relation.rest)]
        return [*((table, set()) for table in tables), *_value_fields(ops, used)]
    if isinstance(relation, ops.Reference):
        return [(relation.parent, names)]
    if isinstance(relation, ops.Union) and not relation.distinct:
        return [(relation.left, names), (relation.right, names)]
    parents = _first_nodes(relation, ops.Relation)
    return [(parent, set(parent.schema.names)) for parent in parents]


def _value_fields(ops: Any, values: Iterable[Any]) -> Iterator[tuple[Any, set[str]]]:
    """The columns that values are made of; all columns of a relation inside a value."""
    leaves = ops.Field, ops.Relation, ops.CountStar
    for value in values:
        for node in _first_nodes(value, leaves, itself=True):
            if isinstance(node, ops.Field):
                yield node.rel, {node.name}
            elif isinstance(node, ops.CountStar):
                yield node.arg, set()
                if node.where is not None:
                    yield from _value_fields(ops, [node.where])
            else:
                yield node, set(node.schema.names)


def _first_nodes(node: Any, kinds: Any, *, itself: bool = False) -> list[Any]:
    """The first nodes of a kind below one, on every way down."""
    if itself and isinstance(node, kinds):
        return [node]
    result: dict[Any, None] = {}
    waiting, seen = list(node.__children__), set()
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        if isinstance(each, kinds):
            result[each] = None
        else:
            waiting += each.__children__
    return list(result)


def row_conditions(expression: Any, name: str) -> list[RowCondition]:
    """What every row of a table must meet to count in an expression, as far as it is plain."""
    from ibis.expr import operations as ops

    relations = [expression.op(), *expression.op().find(ops.Relation)]
    readers: dict[Any, set[Any]] = {}
    for relation in relations:
        for parent in _first_nodes(relation, ops.Relation):
            readers.setdefault(parent, set()).add(relation)
    tables = [each for each in relations if isinstance(each, ops.DatabaseTable)]
    (table,) = {each for each in tables if each.name == name}
    result: list[RowCondition] = []
    while len(readers.get(table, ())) == 1:
        (reader,) = readers[table]
        if not isinstance(reader, ops.Filter) or reader.parent != table:
            break
        for predicate in reader.predicates:
            result += _plain_conditions(ops, predicate, table)
        table = reader
    return result


def _plain_conditions(ops: Any, predicate: Any, table: Any) -> Iterator[RowCondition]:
    """The parts of a condition that compare a column with given values."""
    operators = {
        ops.Equals: "=",
        ops.Less: "<",
        ops.LessEqual: "<=",
        ops.Greater: ">",
        ops.GreaterEqual: ">=",
    }
    if isinstance(predicate, ops.Coalesce) and _is_false(ops, predicate.arg[1:]):
        yield from _plain_conditions(ops, predicate.arg[0], table)
    elif isinstance(predicate, ops.And):
        yield from _plain_conditions(ops, predicate.left, table)
        yield from _plain_conditions(ops, predicate.right, table)
    elif isinstance(predicate, ops.NotNull):
        if _is_field(ops, predicate.arg, table):
            yield RowCondition(predicate.arg.name, PRESENT_OPERATOR)
    elif type(predicate) in operators:
        left, right = predicate.left, predicate.right
        if _is_field(ops, left, table) and isinstance(right, ops.Literal):
            yield RowCondition(left.name, operators[type(predicate)], (right.value,))
    elif isinstance(predicate, ops.InValues):
        literal = all(isinstance(each, ops.Literal) for each in predicate.options)
        if _is_field(ops, predicate.value, table) and literal:
            yield RowCondition(
                predicate.value.name, "in", tuple(each.value for each in predicate.options)
            )


def _is_field(ops: Any, value: Any, table: Any) -> bool:
    return isinstance(value, ops.Field) and value.rel == table


def _is_false(ops: Any, values: Any) -> bool:
    return len(values) == 1 and isinstance(values[0], ops.Literal) and values[0].value is False


PUSHED_OPERATORS = {"whole": ("=", "<", "<=", ">", ">=", "in"), "text": ("=", "in")}


def push_condition(column: DatabaseColumn, wanted: RowCondition) -> str | None:
    """A condition in the database's SQL that holds for every row for which DuckDB's does, and never
    fails: a comparison of whole numbers of 64 bits, or of texts with texts that they equal (what a
    collation takes for equal is never less); None where there is none."""
    name, values = sql_identifier(column.name), wanted.values
    if wanted.operator == PRESENT_OPERATOR:
        return f"{name} IS NOT NULL"
    if not values or wanted.operator not in PUSHED_OPERATORS.get(column.compared, ()):
        return None
    if column.compared == "whole":
        fit = all(type(each) is int and abs(each) < 2**63 for each in values)
    else:
        fit = all(isinstance(each, str) and "\0" not in each for each in values)
    spelled = [sql_literal(each) for each in values]
    right = f"({', '.join(spelled)})" if wanted.operator == "in" else spelled[0]
    return f"{name} {wanted.operator} {right}" if fit else None


@dataclass(frozen=True)
class DatabaseTable:
    """A table of a database, as it was when it was opened.

    Attributes:
        relation: what its database calls it in a query.
        identity: which table it is, however its address is spelled; not secret.
        number: which table it is, whatever it is called now, if its database says so; not secret.
        size: bytes that it takes, if its database says so.
        views: whether views may be opened.
    """

    address: Address
    columns: tuple[DatabaseColumn, ...]
    relation: str
    identity: str
    size: int | None = field(default=None, compare=False)
    views: bool = False
    number: str | None = field(default=None, compare=False)


class System(Protocol):
    def connect(self, address: Address) -> Any:
        """A connection of Python's DB API that reads, and cannot write where that can be had."""

    def describe(self, connection: Any, address: Address, views: bool) -> DatabaseTable:
        """A table by its catalogue; no row is read."""

    def tables(self, connection: Any, views: bool) -> list[str]:
        """The names of tables that may be opened."""


def find_system(address: Address) -> System:
    from whosin.release.engines.database_drivers import AnyDriver, PostgreSQL, SQLite

    require_extras("release", "databases")
    if not address.known:
        return AnyDriver()
    return PostgreSQL() if address.system == POSTGRESQL else SQLite()


def open_table(address: Address, *, views: bool = False) -> DatabaseTable:
    """A table, from what its database says of it.

    Raises:
        SourceUnreachable: the database does not answer, or does not let us in.
        InvalidInput: there is no such table, or none that may be opened.
    """
    with _connected(address) as (system, connection):
        return system.describe(connection, address, views)


def list_tables(address: Address, *, views: bool = False) -> list[str]:
    """The tables of an address's database that may be opened."""
    with _connected(address) as (system, connection):
        return system.tables(connection, views)


def describe_table(address: Address) -> DatabaseTable:
    """Which table it is, however its address is spelled, and how large."""
    return open_table(address, views=True)


@contextlib.contextmanager
def _connected(address: Address) -> Iterator[tuple[System, Any]]:
    system = find_system(address)
    with contextlib.ExitStack() as stack, _reach_database(address):
        connection = system.connect(address)
        stack.callback(_close_quietly, connection)
        yield system, connection


@contextlib.contextmanager
def _reach_database(address: Address) -> Iterator[None]:
    """Failures of the driver in this block are the database's; the driver's own words, which name
    the host and whatever else it likes, are not even kept as the context of the error: of those of
    a failed connection, the reason is."""
    failed, reason = False, None
    try:
        yield
    except WhosinError:
        raise
    except Exception as error:
        failed = True
        if "failed to connect" in (words := str(error).lower()):
            reason = find_connection_reason(words)
    if failed:
        raise SourceUnreachable(address.system, reason, address.place)


@contextlib.contextmanager
def fetch_rows(
    table: DatabaseTable,
    columns: Sequence[DatabaseColumn],
    conditions: Sequence[RowCondition] = (),
    watch: Callable[[Any], None] | None = None,
) -> Iterator[Any]:
    """A RecordBatchReader of what some columns arrive as; `watch` is given the cursor, which can be
    cancelled.

    Raises:
        SourceUnreachable, SourceChanged: before any row was asked for.
    """
    system = find_system(table.address)
    with contextlib.ExitStack() as stack:
        try:
            with _reach_database(table.address):
                connection = system.connect(table.address)
                stack.callback(_close_quietly, connection)
                now = system.describe(connection, table.address, table.views)
        except InvalidInput:
            raise SourceChanged("the table is gone, or no longer one that may be opened") from None
        require_unchanged(table, replace(now, identity=table.identity))
        by_name = {column.name: column for column in table.columns}
        pushed: list[str | None] = []
        if table.address.known:  # of other databases we do not know what a comparison means
            pushed = [push_condition(by_name[each.column], each) for each in conditions]
        cursor = connection.cursor()
        stack.callback(_close_quietly, cursor)
        if watch is not None:
            watch(cursor)
        cursor.execute(select_sql(columns, table.relation, [each for each in pushed if each]))
        yield cursor.fetch_record_batch()


def _close_quietly(opened: Any) -> None:
    with contextlib.suppress(Exception):
        opened.close()


TABLE_NUMBERS = count()


class FetchedTables:
    """The tables of databases that one DuckDB database shows."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._cursor: Any = None
        self.tables: dict[str, DatabaseTable] = {}
        self._scanning = threading.Lock()

    def add(self, table: DatabaseTable) -> str:
        """Show a table, without rows; returns its name."""
        name = f"whosin_fetched_{next(TABLE_NUMBERS)}"
        self._connection.execute(f"CREATE VIEW {name} AS {empty_table_sql(table.columns)}")
        self.tables[name] = table
        return name

    @contextlib.contextmanager
    def filled(self, expression: Any) -> Iterator[None]:
        """The rows that an expression needs are there in this block.

        Raises:
            SourceUnreachable, SourceChanged: about a database, before any row was read.
        """
        with self._scanning:
            needed = needed_columns(expression)
            names = [name for name in self.tables if name in needed]
            try:
                for name in names:
                    self._fill(name, expression, needed[name])
                yield
            finally:
                for name in names:
                    self._empty(name)

    def cancel(self) -> None:
        if self._cursor is not None:
            with contextlib.suppress(Exception):
                self._cursor.adbc_cancel()

    def _watch(self, cursor: Any) -> None:
        self._cursor = cursor

    def _fill(self, name: str, expression: Any, needed: set[str]) -> None:
        table = self.tables[name]
        conditions = row_conditions(expression, name)
        chosen = [column for column in table.columns if column.name in needed]
        with fetch_rows(table, chosen, conditions, self._watch) as reader:
            arrived = f"{name}_arriving"
            self._connection.register(arrived, reader)
            try:
                read = [column.reading(index) for index, column in enumerate(chosen)]
                sql = f"SELECT {', '.join(read) or '1 AS c'} FROM {arrived}"
                self._connection.execute(f"CREATE TABLE {name}_rows AS {sql}")
            finally:
                self._connection.unregister(arrived)
        listed = (
            sql_identifier(column.name)
            if column in chosen
            else f"CAST(NULL AS {column.kind}) AS {sql_identifier(column.name)}"
            for column in table.columns
        )
        self._connection.execute(
            f"CREATE OR REPLACE VIEW {name} AS SELECT {', '.join(listed)} FROM {name}_rows"
        )

    def _empty(self, name: str) -> None:
        with contextlib.suppress(Exception):  # the failure that led here is the one to tell
            self._connection.execute(
                f"CREATE OR REPLACE VIEW {name} AS {empty_table_sql(self.tables[name].columns)}"
            )
            self._connection.execute(f"DROP TABLE IF EXISTS {name}_rows")
