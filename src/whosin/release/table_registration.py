"""A table as a budget is registered for it: fingerprints of its rows, and its description.

Fingerprints of a source, so that the same rows are recognised under another name. They are for the
ledger, which seals them; nobody else sees them, and no error depends on what they are made of. They
are cheap: files above 16 MB are sampled, rows are only looked at where there are few. Equal files
have equal `bytes`, wherever they lie and whatever they are called; equal rows have equal `rows` in
a file, a database or memory, in any order, as long as their values are spelled alike. Where neither
can be had, there is the `place`. For a table on a server this says which server, database and table
it is, by whatever name it is reached; `table` is the number under which the server keeps it,
whatever it is called and whatever becomes of its rows.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from whosin.errors import InvalidInput, at
from whosin.exact import rational
from whosin.ledger import encoding
from whosin.ledger.registration import Registration
from whosin.release.contribution_bounds import ContributionBounds
from whosin.release.domains import Domain, Range, Values
from whosin.release.engines import DuckDB
from whosin.release.engines.base import file_kind, is_database, list_files
from whosin.release.engines.databases import Address, describe_table, read_address
from whosin.release.queries import Query
from whosin.release.related_tables import Further, FurtherTable
from whosin.release.table import COLUMN, EACH_ROW, ROW, Table

MAX_WHOLE_BYTES = 16 << 20
"""Bytes of a source that are all read."""
BLOCK, BLOCKS = 1 << 16, 64
"""From a larger source this many blocks of this size are read: evenly spaced, with both ends."""
MAX_FINGERPRINTED_BYTES, MAX_FINGERPRINTED_CELLS = 32 << 20, 20_000_000
"""The largest files, and the largest tables, whose rows are looked at."""
FINGERPRINT_MEMORY = "1GB"


def fingerprint_table(table: Table, *, rows: bool = False) -> dict[str, str]:
    """Fingerprints by kind; those of a further table with its name: "bytes:visits".

    Args:
        rows: look at the rows of files too, to recognise them in a database or another format.
    """
    result = _fingerprint_source(table, table.source, rows)
    for each in table.tables:
        own = _fingerprint_source(table, each.source, rows)
        result |= {f"{kind}:{each.name}": print_ for kind, print_ in own.items()}
    return result


def _fingerprint_source(table: Table, source: object, rows: bool) -> dict[str, str]:
    path = str(source) if isinstance(source, str | Path) else None
    address = read_address(path) if path is not None and is_database(path) else None
    if address is not None and address.remote:
        return _fingerprint_server(address, table, source, rows)
    files = _local_files(path)
    result = {} if path is None else fingerprint_of_source(path)
    if files:
        rows = rows and sum(os.stat(file).st_size for file in files) <= MAX_FINGERPRINTED_BYTES
    if rows or not files:
        counted = _digest_rows(table, source)
        if counted is not None:
            result["rows"] = counted
    return result


def _fingerprint_server(
    address: Address, table: Table, source: object, rows: bool
) -> dict[str, str]:
    """Which table of which server it is, however its address is spelled. It is alive, so that its
    rows may differ the next day; they are looked at where a budget is opened for them."""
    facts = describe_table(address)
    result = {"place": _digest_text(facts.identity)}
    if facts.number is not None:
        result["table"] = _digest_text(facts.number)
    if rows and facts.size is not None and facts.size <= MAX_FINGERPRINTED_BYTES:
        counted = _digest_rows(table, source)
        if counted is not None:
            result["rows"] = counted
    return result


def fingerprint_of_source(source: str) -> dict[str, str]:
    """What can be said of a source without opening it as a table: the bytes of its files, or where
    it lies."""
    files = _local_files(source)
    return (
        {"bytes": _digest_files(files)} if files else {"place": _digest_text(_resolve_path(source))}
    )


def _local_files(source: str | None) -> list[str]:
    """The local files of a source; none for what lies in a database, in memory or elsewhere."""
    if source is None or "::" in source or "://" in source:
        return []
    try:
        return list_files(source, file_kind(source))
    except (OSError, ValueError):
        return []


def _resolve_path(source: str) -> str:
    file, mark, name = source.partition("::")
    if not file or "://" in file:
        return source
    return f"{Path(file).resolve()}{mark}{name}"


def _digest_files(files: list[str]) -> str:
    """A digest of the contents alone: folders and names may change."""
    blocks = max(1, BLOCKS // len(files))
    parts = sorted(
        _digest_file(Path(file), blocks, MAX_WHOLE_BYTES // len(files)) for file in files
    )
    return _digest_text("\n".join(parts))


def _digest_file(path: Path, blocks: int, whole: int) -> str:
    size = path.stat().st_size
    made = hashlib.sha256(f"{size}\n".encode())
    with path.open("rb") as file:
        if size <= max(whole, BLOCK * blocks):
            while part := file.read(1 << 20):
                made.update(part)
        else:
            for number in range(blocks + 1):
                file.seek((size - BLOCK) * number // blocks)
                made.update(file.read(BLOCK))
    return made.hexdigest()


def _digest_rows(table: Table, source: object) -> str | None:
    """A digest of rows in any order: how many there are, and the sum of their digests."""
    import ibis

    if isinstance(source, ibis.Table) or table.engine.name != "duckdb":
        return None
    try:
        # An engine of its own: what a row does to it must not show in the answers.
        with DuckDB(memory=FINGERPRINT_MEMORY) as engine:
            data = engine.open(source)
            names = sorted(data.columns, key=lambda name: (name.lower(), name))
            count = data.count().name("rows").as_table()
            many = engine.run(count).column("rows")[0].as_py()
            if many * max(1, len(names)) > MAX_FINGERPRINTED_CELLS:
                return None
            digests = engine.digest_texts(_row_texts(data, names))
    except Exception:  # it may say something about rows; without this print there are the others
        return None
    header = "\x1f".join(name.lower() for name in names)
    return _digest_text("\n".join([header, *map(str, digests)]))


def _row_texts(data: Any, names: list[str]) -> Any:
    """Each row as a text."""
    text = data[names[0]].cast("string").fill_null("")
    for name in names[1:]:
        text = text + "\x1f" + data[name].cast("string").fill_null("")
    return data.select(text=text)


def _digest_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


COLUMN_KINDS = ("boolean", "integer", "numeric", "string", "temporal", "nested")
NUMBER_KEYS = ("lower", "upper", "step", "edges")


def register_table(
    table: Table, queries: Iterable[Query] = (), *, rows: bool = False
) -> Registration:
    """What a budget for a table is bound to.

    Args:
        queries: those that will be asked: a `maximum` among them brings its universe, and a query
            with bounds of its own brings these.
        rows: look at the rows too, to recognise them under another name (see `fingerprint_table`).
    """
    asked = tuple(queries)
    universes = {universe_digest(query) for query in asked} - {None}
    if len(universes) > 1:
        raise InvalidInput(
            f"the maximum queries have {len(universes)} different universes",
            field="universe",
            value=len(universes),
            hint="give them the same one",
        )
    most = [ContributionBounds(table.max_rows_per_group, table.max_groups)]
    for number, query in enumerate(asked):
        with at(f"queries[{number}]"), query.at_own_key():
            most.append(query.bounds(query.asked_of(table)))
    return Registration(
        privacy_unit=_privacy_unit(table),
        max_rows_per_group=max(bounds.max_rows_per_group for bounds in most),
        max_groups=max(bounds.max_groups for bounds in most),
        domains={name: _plain_domain(domain) for name, domain in table.domains.items()},
        schema=_schema_kinds(table.own),
        source=fingerprint_table(table, rows=rows),
        tables={each.name: _describe_further_table(table, each) for each in table.tables},
        features={each.name: each.to_dict() for each in table.features},
        universe=universes.pop() if universes else None,
    )


def register_question(registration: Registration, query: Query, table: Table) -> Registration:
    """What one question is about: the domains of its columns, its own bounds and universe."""
    asked = registration.about(query.names(table), universe_digest(query))
    return replace(asked, **vars(query.bounds(query.asked_of(table))))


def universe_digest(query: Query) -> str | None:
    """A digest of everyone who could be in, where a query names them."""
    listed = [[str(who), str(value)] for who, value in query.ranked()]
    return encoding.digest_text(encoding.canonical_json(listed)) if listed else None


def _privacy_unit(table: Table) -> str:
    """Whose rows they are: a column that is called like "each row" is not each row."""
    mistakable = not table.by_row and table.privacy_unit in (ROW, EACH_ROW)
    return COLUMN + table.privacy_unit if mistakable else table.privacy_unit


def _describe_further_table(table: Table, declared: Further) -> dict[str, Any]:
    """A further table as plain data; its fingerprints are beside the table's own."""
    opened = table.database.opened[declared.name]
    data = {"public": declared.public, "schema": _schema_kinds(dict(opened.schema()))}
    if isinstance(declared, FurtherTable):
        unit = declared.privacy_unit or table.privacy_unit
        return data | {"privacy_unit": unit, "max_rows": declared.max_rows}
    join = {"key": declared.key, "on": declared.on or declared.key, "to": declared.to}
    return data | {key: value for key, value in join.items() if value is not None}


def _schema_kinds(kinds: Mapping[str, Any]) -> dict[str, str]:
    return {name: _column_kind(kind) for name, kind in kinds.items()}


def _column_kind(column_type: Any) -> str:
    """A column's type in one word, the same on every engine."""
    for kind in COLUMN_KINDS:
        if getattr(column_type, f"is_{kind}")():
            return kind
    return "other"


def _plain_domain(domain: Domain) -> dict[str, Any]:
    """A domain as data, equal for equal domains however they were spelled. That a column is
    constant makes bounds of questions smaller, which are compared and charged by themselves."""
    names = [each.name for each in fields(domain) if each.name != "constant"]
    data = {name: getattr(domain, name) for name in names}
    if isinstance(domain, Values):
        data["parents"] = {each.name: each.to_dict(domain.values) for each in domain.levels}
    if isinstance(domain, Range):
        data |= {name: _exact_value(data[name]) for name in NUMBER_KEYS if name in data}
    # Not by equality: 0 and false are values that a closed domain may count others as.
    empty: tuple[object, ...] = ((), [], {})
    return {name: value for name, value in data.items() if value is not None and value not in empty}


def _exact_value(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [str(rational(each)) for each in value]
    return value if value is None else str(Fraction(rational(value)))
