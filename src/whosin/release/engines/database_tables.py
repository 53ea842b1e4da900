"""Tables of databases: their addresses, columns, and which of these an expression needs.

Where a table of a database is, as a source says it. Three forms,
`postgresql://host/database::schema.table`, `file.sqlite::table` and `adbc:driver:uri::table`. Who
asks is known from the environment or the client's own files: a source with a password in it is
refused, and the refusal repeats nothing of it.

A column of a database: what it is asked for as, what it arrives as, what it becomes. Neither the
database's expression nor DuckDB's fails on any value: what has no value in the column's type is
missing.

Columns are found from the end, operation by operation; an operation that is not listed here needs
all of them. A row may be left out where it lies only if the expression drops it first of all,
whoever reads the table: conditions here are weaker than the ones that DuckDB still applies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from whosin.errors import InvalidInput
from whosin.release.engines.base import ADBC_PREFIX, sql_identifier

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
        raise InvalidInput(
            "source names a database and no table", field="source", hint=f"write {ADDRESS_FORMS}"
        )
    if source.startswith(ADBC_PREFIX):
        name, colon, uri = database.removeprefix(ADBC_PREFIX).partition(":")
        if not colon or not re.fullmatch(r"[a-z][a-z0-9_]{0,60}", name):
            raise InvalidInput(
                "source names no ADBC driver", field="source", hint="write adbc:driver:uri::table"
            )
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
        raise InvalidInput(
            "source has a URL that cannot be read", field="source", hint=f"write {ADDRESS_FORMS}"
        ) from None
    _refuse_secrets(url, secret)
    for name, _ in asked:
        if name not in CONNECTION_PARAMETERS:
            raise InvalidInput(
                f"source has the parameter {name[:40]!r}",
                field="source",
                value=name[:40],
                hint="only parameters of a connection are taken, such as sslmode",
            )


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


UNUSABLE_TYPE = "VARCHAR[]"
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
        return f"CAST({value} AS {self.kind}) AS {sql_identifier(self.name)}"


def unusable_column(name: str) -> DatabaseColumn:
    """A column of a type that nobody may ask about."""
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
