"""`Table`: rows of privacy units, with contribution bounds and declared public domains; and what a
budget is registered for.

Fingerprints of a source, so that the same rows are recognised under another name. They are for the
ledger, which seals them; nobody else sees them, and no error depends on what they are made of. They
are cheap: files above 16 MB are sampled, rows are only looked at where there are few. Equal files
have equal `bytes`, wherever they lie and whatever they are called; equal rows have equal `rows` in
a file, a database or memory, in any order, if their values are spelled alike. Where neither can be
had, there is the `place`: of a table on a server, which server, database and table it is; `table`
is the number under which the server keeps it, whatever becomes of its rows.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import fields, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from whosin.documents import toml_line
from whosin.errors import InvalidInput, Mistakes, at, invalid_value, read_whole, require_extras
from whosin.exact import rational
from whosin.interrupts import run_interruptibly
from whosin.ledger import encoding
from whosin.ledger.registration import Registration
from whosin.release.column_expressions import (
    Cellular,
    PartRule,
    UpperLevel,
    base_column,
    check_levels,
    declared_levels,
    derive_column,
)
from whosin.release.conditions import unknown_column
from whosin.release.domains import (
    FROM_ROWS,
    Dates,
    Domain,
    Parents,
    Range,
    Values,
    check_flag,
    describe_domain,
    read_domain,
)
from whosin.release.engines import DuckDB, Engine
from whosin.release.engines.base import collect_lazy, is_database, list_local_files
from whosin.release.engines.databases import Address, describe_table, read_address
from whosin.release.row_values import is_usable

if TYPE_CHECKING:
    from whosin.release.cost import CostEstimate
    from whosin.release.features import Feature
    from whosin.release.queries import Query
    from whosin.release.related_tables import Database, Further

PLANNING_PATIENCE = 1.0
"""Seconds to wait, after Ctrl-C, for an engine that is planning."""

MAX_ROWS = 10**9
MAX_SHOWN_COLUMNS = 12
MAX_KEPT_OBJECTS = 1_000
ROW, EACH_ROW, COLUMN = "row", "each row", "column:"


class Table:
    """A table whose rows belong to privacy units.

    Args:
        source: a Parquet, CSV or Arrow file (or a folder or pattern of them), a frame in memory, a
            lazy one of Polars, which is collected now, or `database.duckdb::table`; on Spark a
            path, or `::table` for one of the catalogue.
        privacy_unit: the column that says whose row it is; rows without one are dropped. Or "row",
            if each row is one person ("each row" where a column is called row; "column:row" is that
            column).
        domains: what columns may hold: a list of values, (lower, upper), `Range(…)`, `Values(…)`.
            Queries may use only declared columns, except in `where`.
        max_rows_per_group: contribution bound: how many rows of a privacy unit count in each group
            of a group-by, or in all without one; 1 by default.
        max_groups: contribution bound: how many groups of a group-by a privacy unit counts in; 1 by
            default.
        name: the dataset's name in a ledger; by default the file's, without its ending.
        engine: where it runs: DuckDB in this process by default.
        tables: further tables of the same people, joined on the privacy unit, and public ones,
            which are looked up: `FurtherTable(…)`, `LookupTable(…)`.
        features: what is computed for each person from that person's rows: `Feature(…)`. Each is a
            column like any other, the same in all rows of a person; a question about features, and
            otherwise only about columns that are the same for a person, is about people, one row
            each.
        from_rows: whether the contribution bounds were chosen by looking at the rows.
        people: how many there are, where that is public: for expected errors, and nothing else.
        part: the column that puts people into parts, which are paid side by side: "region" where it
            is constant for a person, or "least(region)".
        views: whether the source may be a view of a database, as for `DuckDB`.

    The schema is read and no row, but those of public tables: their keys must be unique.
    """

    def __init__(  # noqa: PLR0913 (public parameters, all by name)
        self,
        source: object,
        privacy_unit: str,
        domains: Mapping[str, object] | None = None,
        *,
        max_rows_per_group: int | None = None,
        max_groups: int | None = None,
        name: str | None = None,
        engine: Engine | None = None,
        tables: Sequence[object] = (),
        features: Sequence[object] = (),
        from_rows: bool = False,
        people: int | None = None,
        part: str | None = None,
        views: bool = False,
    ) -> None:
        require_extras("release")
        self.people = None if people is None else read_whole(people, "people", 1)
        check_flag(from_rows, FROM_ROWS)
        self.from_rows = from_rows
        given = {"max_rows_per_group": max_rows_per_group, "max_groups": max_groups}
        self.stated = frozenset(field for field, value in given.items() if value is not None)
        self.max_rows_per_group, self.max_groups = (
            1 if value is None else read_whole(value, field, 1, MAX_ROWS)
            for field, value in given.items()
        )
        if domains is not None and not isinstance(domains, Mapping):
            raise invalid_value("domains", "a mapping from columns to domains", repr(domains)[:80])
        if engine is not None and not callable(getattr(engine, "open", None)):
            raise invalid_value("engine", "an engine, such as DuckDB()", repr(engine)[:80])
        if views and engine is not None:
            raise invalid_value("views", "left out beside an engine, which has its own", views)
        self.engine = engine if engine is not None else DuckDB(views=views)
        # A lazy frame is run once: what is fingerprinted is what is scanned.
        self.source = collect_lazy(source)
        self.tables: tuple[Further, ...] = ()
        self.features: tuple[Feature, ...] = ()
        if tables != () or features != ():
            self._read_related(tables, features)
        self.of_people, self.split = False, True
        self.kept: dict[object, Any] = {}
        self.last_estimate: tuple[object, list[CostEstimate]] | None = None
        self.name = name if name is not None else dataset_name(source)
        own, *opened = self._open()
        self.kinds: dict[str, Any] = dict(own.schema())
        self.declared = (str(privacy_unit), *(domains or {}))
        self.privacy_unit = self._find_privacy_unit(privacy_unit)
        self.by_row = self.privacy_unit not in self.columns
        for field, value in given.items():
            self.bound(field, value)
        if not self.by_row and not (
            is_usable(self.type(self.privacy_unit)) or self.type(self.privacy_unit).is_binary()
        ):
            came = f"one of {self.type(self.privacy_unit)}"
            raise invalid_value("privacy_unit", "a column of numbers, text or dates", came)
        self.own, self.main_rows = self.kinds, own
        self.database: Database | None = None
        if self.tables or self.features:
            self.database = self._related(own, opened)
            self.kinds = self.database.kinds
        self.domains: dict[str, Domain] = {}
        self._declare(domains or {})
        check_levels(self.domains, self.columns)
        self.part = (
            None if part is None else PartRule.read(part, self.own, self.domains, self.by_row)
        )

    def __repr__(self) -> str:
        """Whose rows they are, what counts, and what is declared; nothing of a row."""
        unit = "each row is one" if self.by_row else self.privacy_unit
        lines = [
            f"Table {self.name!r}: {len(self.columns)} columns, {len(self.domains)} declared",
            f"  privacy unit  {unit}",
            f"  bounds        max_rows_per_group={self.max_rows_per_group}, "
            f"max_groups={self.max_groups}",
        ]
        width = max([12, *map(len, self.domains)])
        shown = list(self.domains.items())[:MAX_SHOWN_COLUMNS]
        lines += [f"  {name.ljust(width)}  {describe_domain(domain)}" for name, domain in shown]
        left = len(self.domains) - len(shown)
        return "\n".join([*lines, *([f"  … {left} more"] if left else [])])

    def _read_related(self, tables: Sequence[object], features: Sequence[object]) -> None:
        from whosin.release.features import read_features
        from whosin.release.related_tables import read_tables

        further = read_tables(tables) if tables != () else ()
        self.tables = tuple(replace(each, source=collect_lazy(each.source)) for each in further)
        self.features = read_features(features) if features != () else ()

    def _open(self) -> list[Any]:
        if not self.tables:
            return [self.engine.open(self.source)]
        return self.engine.open_together([self.source, *(each.source for each in self.tables)])

    def _related(self, own: Any, opened: Sequence[Any]) -> Database:
        if self.by_row and self.features:
            raise InvalidInput(
                "features have no meaning where each row is one person: there is nothing to sum up",
                field="features",
                value=len(self.features),
                hint="leave them out",
            )
        from whosin.release.related_tables import Database

        pairs = tuple(zip(self.tables, opened, strict=True))
        unit = None if self.by_row else self.privacy_unit
        return Database(self.engine, own, unit, pairs, self.features)

    def _declare(self, domains: Mapping[str, object]) -> None:
        """The domains. Those of features come first: they say how columns are read."""
        features = {each.name for each in self.features}
        mistakes = Mistakes()
        for column in features.intersection(domains):
            with mistakes.collect(f"domains.{column}"):
                read = read_domain(column, self._looked_up(domains[column]))
                self.domains[column] = replace(read, constant=True)
        mistakes.raise_all()
        if self.database is not None:
            self.database.prepare(self.domains)
        for column, domain in domains.items():
            with mistakes.collect(f"domains.{column}"):
                name = self.column(column, "column")
                given = self.domains.get(name, self._looked_up(domain))
                self.domains[name] = self._fitting(name, given)
        mistakes.raise_all()

    def _looked_up(self, domain: object) -> object:
        """A domain whose values may be those of a public table's column, as in "wards.region"."""
        keys = domain if isinstance(domain, Mapping) else {"values": domain}
        named = keys.get("values")
        table, point, column = named.partition(".") if isinstance(named, str) else ("", "", "")
        if not point or self.database is None or table not in self.database.lookups:
            return domain
        return {**keys, "values": self.database.lookups[table].values(column)}

    @cached_property
    def data(self) -> Any:
        """All rows, with everything that belongs to them."""
        return self.main_rows if self.database is None else self.database.rows()

    def about(self, names: Iterable[str], *, rows: bool = False) -> Table:
        """The table as a question about some columns needs it: what it does not name is not joined,
        and where it names features and what a person has one of, there is one row a person.

        Args:
            rows: the question is about rows, whatever it names.
        """
        if self.database is None:
            return self
        result, used = copy(self), frozenset(names).intersection(self.columns)
        result.of_people = not rows and self.database.of_people(used)
        result.data = self.database.people(used) if result.of_people else self.database.rows(used)
        return result

    def on_rows(self, rows: Any) -> Table:
        """The same table, with other rows of the same columns."""
        result = copy(self)
        result.data = rows
        return result

    def on_part(self, rows: Any) -> Table:
        """The same table, with the rows of one part, and expressions of its own."""
        result = self.on_rows(rows)
        result.kept, result.last_estimate, result.split = {}, None, False
        return result

    def change_domain(self, column: str, **changes: Any) -> Table:
        """The same table, where something else is declared of a column."""
        result = copy(self)
        result.domains = {**self.domains, column: replace(self.domains[column], **changes)}
        result.kept, result.last_estimate = {}, None
        return result

    def keep(self, key: object, made: Any) -> Any:
        """What many questions share, such as an expression, in `kept`: it is made once."""
        if len(self.kept) >= MAX_KEPT_OBJECTS:
            self.kept.clear()
        self.kept[key] = made
        return made

    def split_source(self, grouped: bool) -> Any:
        """What the shapes of scans are about (see `Engine.split_source`), where each question is
        about the same rows but for its condition."""
        if self.database is not None or not self.split:
            return None
        key = "source", grouped
        if key not in self.kept:
            self.keep(key, self.engine.split_source(self.data, grouped=grouped))
        return self.kept[key]

    @property
    def looked_up(self) -> list[str]:
        """What was chosen by looking at the rows: domains of columns, and contribution bounds."""
        bounds = sorted(self.stated) if self.from_rows else []
        return [name for name, each in self.domains.items() if each.from_rows] + bounds

    @property
    def one_row(self) -> bool:
        """Whether nobody can have two rows here, so that there is nothing to choose among."""
        return self.by_row or self.of_people

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(self.kinds)

    def column(self, name: object, field: str = "column") -> str:
        """A column that exists."""
        if not isinstance(name, str) or name not in self.kinds:
            raise unknown_column(field, str(name), self.kinds, self.declared)
        return name

    def bound(self, field: str, own: int | None) -> int:
        """The contribution bound of a query: its own, or the table's."""
        result = int(getattr(self, field)) if own is None else read_whole(own, field, 1, MAX_ROWS)
        if self.by_row and result > 1:
            message = f"{field} is {result}, and each row is one person"
            raise InvalidInput(message, field=field, value=result, hint="leave it out")
        return 1 if self.of_people else result

    def at_default(self, field: str, own: int | None) -> bool:
        """Whether nobody has said what the contribution bound is."""
        return own is None and field not in self.stated and not self.one_row

    def type(self, column: str) -> Any:
        """The Ibis type of a column."""
        return self.kinds[column]

    def range(self, column: object) -> Range:
        """The declared range of a numeric column."""
        domain = self.domain(column, numbers=True)
        if not isinstance(domain, Range):
            got = "dates" if isinstance(domain, Dates) else "a list of values"
            raise InvalidInput(
                f"the domain of {column} is {got}, and numbers need a range",
                field=f"domain of {column}",
                hint=f"declare it in [domains], such as {column} = '0..120'",
            )
        return domain

    def domain(self, column: object, *, numbers: bool = False) -> Domain:
        """The declared domain of a column; `numbers` if a question takes its values as such."""
        if isinstance(column, str) and column in self.domains:
            return self.domains[column]
        name = self.column(column)
        if name not in self.domains:
            message, hint = "has no declared domain", "declare its values or its range in [domains]"
            if name == self.privacy_unit:
                message, hint = "says whose row it is", "ask about something that many people share"
            error = InvalidInput(
                f"column {name!r} {message}", field="column", value=name, hint=hint
            )
            example: object = ["…", "…"]
            if numbers or self.type(name).is_numeric():
                example = "0..100"
            if name != self.privacy_unit:
                error.paste = f"{toml_line(name, example)}  # below [domains]"
            raise error
        return self.domains[name]

    def grouping(self, name: object) -> Cellular:
        """The domain of a column, of an upper level of one such as canton, or of a function of one
        such as month(visit)."""
        if isinstance(name, str) and name not in self.kinds and name in self.levels:
            column, parents = self.levels[name]
            domain = self.domains[column]
            assert isinstance(domain, Values)
            return UpperLevel(column, domain, parents)
        if isinstance(name, str) and name not in self.kinds and base_column(name) != name:
            column = self.column(base_column(name))
            return derive_column(name, column, self.domain(column))
        return self.domain(name)

    @property
    def levels(self) -> dict[str, tuple[str, Parents]]:
        """The upper levels that were declared, each with its column."""
        return declared_levels(self.domains)

    def check(self, expression: Any) -> Any:
        """The expression, if the engine can run it; what it cannot, it refuses before any debit.

        The engine plans the whole of it and reads no row, since none are asked for.
        """
        if self.engine.is_checked(expression):
            return expression
        try:
            # Not in the main thread: there DuckDB takes Ctrl-C for a failure of the query.
            run_interruptibly(
                lambda: self.engine.check(expression), lambda: None, patience=PLANNING_PATIENCE
            )
        except Exception:
            failed = True
        else:
            failed = False
        if failed:
            raise InvalidInput(
                f"{type(self.engine).__name__} cannot run this query on these column types",
                field="query",
            )
        return expression

    def _find_privacy_unit(self, given: object) -> str:
        """The column of the privacy unit, or a name that no column has, for each row by itself."""
        if isinstance(given, str):
            if given in (ROW, EACH_ROW):
                if given not in self.columns:
                    return given if given == ROW or ROW in self.columns else ROW
                each_row = f"{EACH_ROW!r} where each row is one person"
                if EACH_ROW in self.columns:
                    each_row = "rename the columns where each row is one person"
                raise InvalidInput(
                    f"privacy_unit = {given!r} is also the name of a column",
                    field="privacy_unit",
                    value=given,
                    hint=f"write {COLUMN + given!r} for that column, {each_row}",
                )
            if given not in self.columns and given.startswith(COLUMN):
                return self.column(given.removeprefix(COLUMN), "privacy_unit")
        return self.column(given, "privacy_unit")

    def _fitting(self, column: str, declared: object) -> Domain:
        """A domain for a column of a type that can hold what it lists. Texts count as the numbers
        that they spell: a CSV file has nothing else."""
        domain, kind = read_domain(column, declared), self.type(column)
        if isinstance(domain, Range):
            fits, what = kind.is_numeric() or kind.is_boolean(), "a range is for numbers"
        elif isinstance(domain, Dates):
            fits, what = kind.is_date() or kind.is_timestamp(), "its domain has dates"
        elif isinstance(domain.values[0], str):
            fits, what = False, "its domain lists text"
        elif isinstance(domain.values[0], bool):
            fits, what = kind.is_boolean(), "its domain lists true and false"
        else:
            fits = kind.is_integer() or kind.is_floating() or kind.is_decimal()
            what = "its domain lists whole numbers"
        as_text = kind.is_string() and what != "its domain lists true and false"
        if not fits and not as_text:
            raise InvalidInput(
                f"column {column} has type {kind}, and {what}",
                field=f"column {column}",
                value=str(kind),
            )
        return domain


def dataset_name(source: object) -> str:
    """What a ledger calls a table that has no name of its own: its file, or its name in a database,
    without folder and ending, as a ledger spells names."""
    if not isinstance(source, str | Path):
        raise InvalidInput(
            "a table in memory needs a name for the ledger",
            field="name",
            hint='give one: Table(…, name="visits")',
        )
    text = normalize("NFC", str(source))
    if "::" in text:
        return text.rpartition("::")[2]
    parts = [part for part in Path(text).parts if not any(letter in part for letter in "*?[")]
    return Path(parts[-1].removesuffix(".gz")).stem if parts else text


MAX_WHOLE_BYTES = 16 << 20
"""Bytes of a source that are all read."""
BLOCK, BLOCKS = 1 << 16, 64
"""From a larger source this many blocks of this size are read: evenly spaced, with both ends."""
MAX_FINGERPRINTED_BYTES, MAX_FINGERPRINTED_CELLS = 32 << 20, 20_000_000
"""The largest files, and the largest tables, whose rows are looked at."""
FINGERPRINT_LIMITS = "above 32 MB or 20 million cells, and on Spark, it does not know them again"
FINGERPRINT_MEMORY = "1GB"


def fingerprint_table(table: Table, *, rows: bool = False) -> dict[str, str]:
    """Fingerprints by kind; those of a further table with its name: "bytes:visits".

    Args:
        rows: look at the rows of files too, to recognise them in a database or another format.
    """
    result: dict[str, str] = {}
    sources = [("", table.source), *((f":{each.name}", each.source) for each in table.tables)]
    for mark, source in sources:
        path = str(source) if isinstance(source, str | Path) else None
        address = read_address(path) if path is not None and is_database(path) else None
        if address is not None and address.remote:
            own = _fingerprint_server(address, table, source, rows)
        else:
            files = list_local_files(path)
            size = sum(os.stat(file).st_size for file in files)
            own = {} if path is None else fingerprint_of_source(path)
            if not files or (rows and size <= MAX_FINGERPRINTED_BYTES):
                own |= _digest_rows(table, source)
        result |= {f"{kind}{mark}": print_ for kind, print_ in own.items()}
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
        result |= _digest_rows(table, source)
    return result


def fingerprint_of_source(source: str) -> dict[str, str]:
    """What can be said of a source without opening it as a table: the bytes of its files, or where
    it lies."""
    files = list_local_files(source)
    return (
        {"bytes": _digest_files(files)} if files else {"place": _digest_text(_resolve_path(source))}
    )


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


def _digest_rows(table: Table, source: object) -> dict[str, str]:
    """A digest of rows in any order, where there is one: how many there are, and the sum of their
    digests."""
    import ibis

    if isinstance(source, ibis.Table) or table.engine.name != "duckdb":
        return {}
    try:
        # An engine of its own: what a row does to it must not show in the answers.
        with DuckDB(memory=FINGERPRINT_MEMORY) as engine:
            data = engine.open(source)
            names = sorted(data.columns, key=lambda name: (name.lower(), name))
            count = data.count().name("rows").as_table()
            many = engine.run(count).column("rows")[0].as_py()
            if many * max(1, len(names)) > MAX_FINGERPRINTED_CELLS:
                return {}
            digests = engine.digest_texts(data.select(text=row_text(data, names)))[None]
    except Exception:  # it may say something about rows; without this print there are the others
        return {}
    header = "\x1f".join(name.lower() for name in names)
    return {"rows": _digest_text("\n".join([header, *map(str, digests)]))}


def row_text(data: Any, names: list[str]) -> Any:
    """Some columns of each row as a text."""
    text = data[names[0]].cast("string").fill_null("")
    for name in names[1:]:
        text = text + "\x1f" + data[name].cast("string").fill_null("")
    return text


def _digest_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


COLUMN_KINDS = ("boolean", "integer", "numeric", "string", "temporal", "nested")
NUMBER_KEYS = ("lower", "upper", "step", "edges")


def register_table(
    table: Table, queries: Iterable[Query] = (), *, rows: bool = False
) -> Registration:
    """What a budget for a table is bound to.

    Args:
        queries: those that will be asked, which may bring a universe and bounds of their own.
        rows: look at the rows too, to recognise them under another name (see `fingerprint_table`).
    """
    asked = tuple(queries)
    universes = {universe_digest(query) for query in asked} - {None}
    if len(universes) > 1:
        message = f"the maximum queries have {len(universes)} different universes"
        hint = "give them the same one"
        raise InvalidInput(message, field="universe", value=len(universes), hint=hint)
    rows_most, groups_most = table.max_rows_per_group, table.max_groups
    for number, query in enumerate(asked):
        with at(f"queries[{number}]"), query.at_own_key():
            own = query.bounds(query.restrict_table(table))
            rows_most = max(rows_most, own.max_rows_per_group)
            groups_most = max(groups_most, own.max_groups)
    source = fingerprint_table(table, rows=rows)
    file = dataset_name(table.source) if isinstance(table.source, str | Path) else ""
    if table.part is not None and not table.domain(table.part.column).constant:
        table.part.require_fixed(source)
    return Registration(
        privacy_unit=_privacy_unit(table),
        max_rows_per_group=rows_most,
        max_groups=groups_most,
        schema=_schema_kinds(table.own),
        source=source,
        universe=universes.pop() if universes else None,
        name=table.name if file in ("", table.name) else f"{table.name} ({file})",
        **describe_declarations(table, table.domains),
    )


def describe_declarations(table: Table, names: Iterable[str]) -> dict[str, Any]:
    """What is declared of a table as plain data, with the domains of some columns."""
    return {
        "domains": {name: _plain_domain(table.domains[name]) for name in names},
        "tables": {each.name: _describe_further_table(table, each) for each in table.tables},
        "features": {each.name: each.to_dict() for each in table.features},
        "part": {} if table.part is None else table.part.to_dict(),
    }


def register_question(registration: Registration, query: Query, table: Table) -> Registration:
    """What one question is about: the domains of its columns, its own bounds and universe."""
    asked = registration.about(query.names(table), universe_digest(query))
    return replace(asked, **vars(query.bounds(query.restrict_table(table))))


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
    assert table.database is not None
    opened = table.database.opened[declared.name]
    data = {"public": declared.public, "schema": _schema_kinds(dict(opened.schema()))}
    from whosin.release.related_tables import FurtherTable

    if isinstance(declared, FurtherTable):
        unit = declared.privacy_unit or table.privacy_unit
        return data | {"privacy_unit": unit, "max_rows": declared.max_rows}
    join = {"key": declared.key, "on": declared.on or declared.key, "to": declared.to}
    return data | {key: value for key, value in join.items() if value is not None}


def _schema_kinds(kinds: Mapping[str, Any]) -> dict[str, str]:
    """The type of each column in one word, the same on every engine."""
    return {
        name: next((kind for kind in COLUMN_KINDS if getattr(each, f"is_{kind}")()), "other")
        for name, each in kinds.items()
    }


def _plain_domain(domain: Domain) -> dict[str, Any]:
    """A domain as data, however it was spelled; `constant` shows in bounds, which are charged."""
    names = [each.name for each in fields(domain) if each.compare and each.name != "constant"]
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
