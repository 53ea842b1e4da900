"""One DuckDB database for one source, or for several that belong together, which can reach nothing
else.

Contract: once its sources are open, the database reads their files and writes to its spill folder,
and nothing else: no other file, no network, no environment; no extension is ever fetched or loaded,
and no setting can be changed. Views of a database can hold any query, and so can columns that it
computes: they are opened only where the curator says so. Ibis sees columns of types that nobody may
ask about as lists without values: for some of their types it would fetch an extension. Texts are
compared by their bytes, whatever collation a database gives their column.

The lines of CSV files are read by the rules of `base`. A release reads what it can and says nothing
about the rest; `find_broken_lines`, which is private, counts exactly the lines that this reading
drops, pads or cuts, or whose quotes are not CSV's.
"""

from __future__ import annotations

import contextlib
import glob
import importlib
import importlib.util
import math
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from whosin.errors import invalid_value
from whosin.release.engines.base import (
    BYTE_ORDER_MARK,
    CUT_CHARACTER,
    MAX_LINE_LENGTH,
    UNUSABLE_TYPE,
    Header,
    Schema,
    file_kind,
    left_out,
    list_files,
    listed_names,
    one_schema,
    read_header,
    refuse_table,
    refuse_unreadable,
    require_different,
    split_name,
    sql_identifier,
    sql_literal,
    unknown_table,
)
from whosin.release.engines.files import NO_EXTENSIONS, holds_text

if TYPE_CHECKING:
    from whosin.release.engines.databases import DatabaseTable, FetchedTables

DATABASE_NAME = "whosin_data"
CONFINED_SETTINGS = {
    **NO_EXTENSIONS,
    "allow_persistent_secrets": False,
    # Rows need no order, and keeping it would cost memory.
    "preserve_insertion_order": False,
    # Moments with a zone are read as they are in UTC.
    "TimeZone": "UTC",
}
TABLE_NUMBERS = count()
ROW_BYTES = 64
"""What a row of a file counts for in sizes: some eight columns."""
TABLE_ALIAS, TEXT_NAME = "t0", '"whosin_text"'
"""What Ibis calls the one table of a query, and the column of texts of a `number_text`."""


def import_needed_compilers() -> None:
    """Let Ibis import the compiler of a dialect when it is asked for: its package imports all
    twenty of them, and the parsers of all dialects, in a third of the time that a small release
    takes."""
    name = "ibis.backends.sql.compilers"
    spec = None if name in sys.modules else importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return
    package, loader = importlib.util.module_from_spec(spec), spec.loader

    def find(attribute: str) -> Any:
        if importlib.util.find_spec(f"{name}.{attribute}") is not None:
            return importlib.import_module(f"{name}.{attribute}")
        del package.__dict__["__getattr__"]  # a class of one of them: then all, as Ibis does
        loader.exec_module(package)
        return getattr(package, attribute)

    package.__dict__["__getattr__"] = find
    sys.modules[name] = package
    importlib.import_module("ibis.backends.sql").__dict__["compilers"] = package


def postpone_sql_parser() -> None:
    """Let Ibis import its parser of SQL, which nothing here calls, when it is called: the optimizer
    of sqlglot that it brings along takes a tenth of the time of a small release."""
    name = "ibis.expr.sql"
    if "ibis" in sys.modules:
        return
    stand_in = ModuleType(name)

    def call_real(function: str, *arguments: Any, **options: Any) -> Any:
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]
        return getattr(importlib.import_module(name), function)(*arguments, **options)

    for function in ("parse_sql", "to_sql"):
        setattr(stand_in, function, partial(call_real, function))
    sys.modules[name] = stand_in


class ConfinedDatabase:
    """A database of its own.

    Args:
        settings: (field, accepted, setting, value) of what the caller chose.

    Attributes:
        size: of its sources, in bytes, once they are read.
    """

    def __init__(self, folder: Path, settings: Sequence[tuple[str, str, str, object]]) -> None:
        postpone_sql_parser()
        import ibis

        import_needed_compilers()
        self.backend = ibis.duckdb.connect(**NO_EXTENSIONS)
        self.connection = self.backend.con
        self.size = 0.0
        self._schemas: list[Schema] = []
        self._attached: dict[Path, str] = {}
        self._lists: set[str] = set()
        self._fetched: FetchedTables | None = None
        try:
            for name, value in CONFINED_SETTINGS.items():
                self.connection.execute(f"SET {name} = {sql_literal(value)}")
            self.connection.execute(f"SET temp_directory = {sql_literal(folder)}")
            for field, accepted, name, value in settings:
                try:
                    self.connection.execute(f"SET {name} = {sql_literal(value)}")
                except Exception:
                    raise invalid_value(field, accepted, value) from None
        except BaseException:
            self.close()
            raise
        with contextlib.suppress(Exception):
            # The bar is how DuckDB keeps count of its progress; it is never printed, and nothing
            # depends on it. (In some notebooks it cannot be had.)
            self.connection.execute("SET enable_progress_bar = true")
            self.connection.execute("SET enable_progress_bar_print = false")

    def confine(self, files: Sequence[str] = ()) -> None:
        """Reach these files from now on, and nothing else; for good."""
        # A pattern that means one file is checked as it stands.
        paths = {*files, *map(glob.escape, files)}
        listed = ", ".join(sql_literal(path) for path in sorted(paths))
        self.connection.execute(f"SET allowed_paths = [{listed}]")
        self.connection.execute("SET enable_external_access = false")
        self.connection.execute("SET lock_configuration = true")

    def require_same(self) -> None:
        """The files have the columns that they had when they were opened."""
        for schema in self._schemas:
            schema.require_same()

    def parquet(self, files: Sequence[str], *, folders: bool) -> Any:
        """Parquet files, which must have one schema.

        Args:
            folders: whether folders may be named column=value.
        """
        paths = f"[{', '.join(sql_literal(glob.escape(file)) for file in files)}]"
        named = f"hive_partitioning = {sql_literal(folders)}, hive_types_autocast = false"

        def schema() -> object:
            kinds = "name, type, repetition_type = 'REPEATED', converted_type, logical_type"
            kinds += ", scale, precision, num_children"
            listed = f"SELECT file_name, {kinds} FROM parquet_schema({paths})"
            # A cursor, since a scan may be running.
            result: dict[str, list[Any]] = {}
            for file, *column in self.connection.cursor().execute(listed).fetchall():
                result.setdefault(file, []).append(column)
            for listed_columns in result.values():
                require_different(_top_names(listed_columns))
            # Without its root.
            return one_schema({file: result[file][1:] for file in sorted(result)})

        self._schemas.append(Schema(schema, files))
        # A text that is not UTF-8 must not raise: it is repaired.
        repaired = "utf8_validation = 'replace'"
        return self.view(f"SELECT * FROM read_parquet({paths}, {named}, {repaired})")

    def csv(self, files: Sequence[str]) -> Any:
        self._schemas.append(Schema(partial(read_header, files), files))
        return self.view(csv_query(files))

    def arrow_files(self, files: Sequence[str]) -> Any:
        """Arrow files, read by pyarrow while they are scanned."""
        import pyarrow as pa
        import pyarrow.dataset as ds

        def schema() -> object:
            result = {}
            for file in files:
                with pa.ipc.open_file(file) as reader:
                    require_different(reader.schema.names)
                    result[file] = [(each.name, each.type) for each in reader.schema]
            return one_schema(result)

        self._schemas.append(Schema(schema, files))
        given = ds.dataset(list(files), format="ipc").schema
        plain = [pa.field(each.name, _readable_type(pa, each.type)) for each in given]
        data = ds.dataset(list(files), format="ipc", schema=pa.schema(plain))
        texts = {each.name for each in given if holds_text(each.type)}
        name = self.register(data)
        # DuckDB fails on texts that are not UTF-8, so they are decoded here: those are missing.
        columns = (
            f"try(decode({sql_identifier(each.name)})) AS {sql_identifier(each.name)}"
            if each.name in texts
            else sql_identifier(each.name)
            for each in plain
        )
        return self.view(f"SELECT {', '.join(columns)} FROM {name}")

    def tables(self, path: Path, *, views: bool) -> list[str]:
        """The tables of a DuckDB database; those outside its main schema as schema.table."""
        name = self._attach(path)
        select = "SELECT table_schema, table_name FROM information_schema"
        listed = f"{select}.tables WHERE table_catalog = '{name}'"
        if not views:
            computed = (
                f"{select}.columns WHERE table_catalog = '{name}' AND is_generated = 'ALWAYS'"
            )
            listed += f" AND table_type = 'BASE TABLE' EXCEPT {computed}"
        return listed_names(self.connection.execute(f"{listed} ORDER BY ALL").fetchall())

    def _attach(self, path: Path) -> str:
        """What a database is called here; it is attached once."""
        if path not in self._attached:
            name = f"{DATABASE_NAME}_{len(self._attached)}"
            try:
                command = f"ATTACH {sql_literal(path)} AS {name} (TYPE duckdb, READ_ONLY)"
                self.connection.execute(command)
            except Exception:
                raise refuse_unreadable(str(path), "DuckDB database") from None
            self._attached[path] = name
            self.size = math.inf
        return self._attached[path]

    def database(self, path: Path, name: str, *, views: bool) -> Any:
        """A table of a DuckDB database, which is never written."""
        known = self.tables(path, views=views)
        if name not in known:
            raise unknown_table(name, known, self.tables(path, views=True))
        home = (self._attach(path), *split_name(name))
        return self.view("SELECT * FROM " + ".".join(map(sql_identifier, home)))

    def fetched_table(self, table: DatabaseTable) -> Any:
        """A table of another database, whose rows are here while an expression runs."""
        from whosin.release.engines.databases import FetchedTables

        if self._fetched is None:
            self._fetched = FetchedTables(self.connection)
        return self.table(self._fetched.add(table))

    @property
    def fetches(self) -> bool:
        """Whether rows of other databases are brought here for each expression."""
        return self._fetched is not None

    def filled(self, expression: Any) -> contextlib.AbstractContextManager[None]:
        """The rows of other databases that an expression needs are here in this block."""
        return (
            contextlib.nullcontext() if self._fetched is None else self._fetched.filled(expression)
        )

    def interrupt(self) -> None:
        if self._fetched is not None:
            self._fetched.cancel()
        self.connection.interrupt()

    def view(self, sql: str) -> Any:
        """A query as an Ibis table, by a view with a name of its own, whose columns are read as
        `_column_sql` says."""
        described = self.connection.execute(f"DESCRIBE {sql}").fetchall()
        columns = []
        for name, kind, *_ in described:
            column = sql_identifier(name)
            columns.append(f"{_column_sql(column, str(kind))} AS {column}")
        name = f"whosin_{next(TABLE_NUMBERS)}"
        self.connection.execute(f"CREATE VIEW {name} AS SELECT {', '.join(columns)} FROM ({sql})")
        return self.table(name)

    def keep_columns(self, columns: str, sql: str) -> str:
        """The name of a table with these columns of a query, and no row."""
        name = f"whosin_{next(TABLE_NUMBERS)}"
        self.connection.execute(f"CREATE TABLE {name} AS SELECT {columns} FROM ({sql}) LIMIT 0")
        return name

    def value_texts(self, table: Any, values: Sequence[Any]) -> list[str]:
        """Values of a table's rows as SQL on `TABLE_ALIAS`: to compile many together takes a fifth
        of the time that it takes one by one."""
        named = {f"value_{place}": each for place, each in enumerate(values)}
        found = self.backend.compiler.to_sqlglot(table.select(**named))
        assert found.args["from_"].this.alias == TABLE_ALIAS
        return [each.unalias().sql(self.backend.dialect) for each in found.expressions]

    @cached_property
    def number_text(self) -> str:
        """The number that a text spells, as SQL, where `TEXT_NAME` stands for the text's column."""
        import ibis

        from whosin.release.row_values import double_value

        table = ibis.table({TEXT_NAME.strip('"'): "string"}, name="texts")
        (text,) = self.value_texts(table, [double_value(table[0])])
        return text

    def decoded_size(self, file: str) -> float:
        """A bound on the bytes of a file's rows in memory; ∞ where it may be compressed, except for
        Parquet, which says how many rows it has."""
        kind = file_kind(file)
        if kind == "parquet":
            found = f"SELECT num_rows FROM parquet_file_metadata({sql_literal(file)})"
            ((rows,),) = self.connection.execute(found).fetchall()
            return float(rows * ROW_BYTES)
        return os.path.getsize(file) if kind == "csv" and not file.endswith(".gz") else math.inf

    def frame(self, source: Any) -> Any:
        self.size += source.nbytes
        try:
            return self.view(f"SELECT * FROM {self.register(source)}")
        except Exception:
            raise refuse_table(
                "the frame has a column of a type that DuckDB does not know"
            ) from None

    def register(self, source: Any) -> str:
        """Something of Arrow's that can be scanned again and again, by a new name."""
        name = f"whosin_{next(TABLE_NUMBERS)}"
        self.connection.register(name, source)
        return name

    def table(self, name: str) -> Any:
        with warnings.catch_warnings():
            # Ibis 12 reads schemas by a method that DuckDB is going to drop.
            warnings.simplefilter("ignore", DeprecationWarning)
            return self.backend.table(name)

    def bring(self, listed: Sequence[Any]) -> None:
        """Make the lists known that an expression brings along."""
        for table in listed:
            if table.name not in self._lists:
                self.connection.register(table.name, table.data.to_pyarrow(table.schema))
                self._lists.add(table.name)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.backend.disconnect()


def _column_sql(column: str, kind: str) -> str:
    """A column as it is read, by its type in DuckDB alone."""
    from ibis.backends.sql.datatypes import DuckDBType

    if kind == "VARCHAR" or kind.startswith("ENUM("):
        # By bytes: neither by a collation, nor by the place in the list of an ENUM.
        return f'CAST({column} AS VARCHAR) COLLATE "binary"'
    if kind == "TIMESTAMP WITH TIME ZONE":
        return f"try_cast({column} AS TIMESTAMP)"
    if kind in ("HUGEINT", "UHUGEINT"):  # which Ibis takes for decimals
        return f"try_cast({column} AS DECIMAL(38, 0))"
    try:
        known = "GEOMETRY" not in kind.upper() and not DuckDBType.from_string(kind).is_unknown()
    except Exception:
        known = False
    return column if known else f"CAST(NULL AS {UNUSABLE_TYPE})"


def _top_names(columns: Sequence[Any]) -> list[str]:
    """The names of a Parquet file's columns, without those inside others. They are listed as a
    tree, the root first; each entry begins with its name and ends with how many are inside it.
    """
    result, inside = [], 0
    for name, *_, children in columns[1:]:
        if inside == 0:
            result.append(name)
        inside += (children or 0) - (1 if inside else 0)
    return result


def _readable_type(pa: Any, kind: Any) -> Any:
    """Texts as bytes, which are decoded later, and moments in UTC; other types as they are."""
    if holds_text(kind):
        return pa.large_binary()
    return pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind


ENCODING_ERROR = "INVALID ENCODING"


@dataclass(frozen=True)
class BrokenLines:
    """How many lines of CSV files are not what their header says.

    Attributes:
        encoding: not UTF-8: dropped.
        unreadable: dropped for another reason: a length of more than a million bytes.
        short, long: with too few fields, which are padded, or too many, which are cut.
        quotes: with quotes that CSV does not allow, which are read as letters.
    """

    encoding: int
    unreadable: int
    short: int
    long: int
    quotes: int


def csv_query(files: Sequence[str]) -> str:
    """The lines as rows with the header's columns."""
    header = read_header(files)
    named = (
        f"{_unquote_sql(f'fields[{index}]')} AS {sql_identifier(name)}"
        for index, name in enumerate(header.columns, 1)
    )
    fields = f"SELECT {_fields_sql(header)} AS fields FROM ({_row_lines_sql(files, header)})"
    return f"SELECT {', '.join(named)} FROM ({fields})"


def find_broken_lines(files: Sequence[str]) -> BrokenLines:
    """Read the files as a release does, and look at each line."""
    import duckdb

    header = read_header(files)
    count, most = f"len({_fields_sql(header)})", len(header.columns)
    odd = f"contains(line, '\"') AND NOT {_well_quoted(header)}"
    figures = f"sum(({count} < {most})::INT), sum(({count} > {most})::INT), sum(({odd})::INT)"
    with duckdb.connect(config=NO_EXTENSIONS) as connection:
        read = _row_lines_sql(files, header, kept=True)
        # To the end: only then is the account of the dropped ones there.
        [row] = connection.execute(f"SELECT {figures} FROM ({read})").fetchall()
        short, long, quotes = (int(each or 0) for each in row)
        result = connection.execute(
            "SELECT error_type, count(DISTINCT (file_id, line)) FROM reject_errors GROUP BY ALL"
        ).fetchall()
        medium = f"SELECT count(*) FROM ({_row_lines_sql(files, header, above=True)})"
        [[longer]] = connection.execute(medium).fetchall()
    kinds = {str(kind): int(lines) for kind, lines in result}
    encoding = kinds.pop(ENCODING_ERROR, 0)
    kinds.pop("TOO MANY COLUMNS", None)  # what follows U+001F
    unreadable = sum(kinds.values()) + int(longer)
    return BrokenLines(encoding, unreadable, short, long, quotes)


def _row_lines_sql(
    files: Sequence[str], header: Header, *, kept: bool = False, above: bool = False
) -> str:
    """The lines that are rows, whole.

    Args:
        kept: keep an account of what was dropped.
        above: those that are too long instead.
    """
    # A file's name is no pattern, whatever letters it has.
    paths = ", ".join(sql_literal(glob.escape(file)) for file in files)
    length = f"strlen(line) {'>' if above else '<='} {MAX_LINE_LENGTH}"
    return (
        f"SELECT ltrim(whole, {sql_literal(BYTE_ORDER_MARK)}) AS line FROM read_csv([{paths}], "
        f"header = false, auto_detect = false, columns = {{'whole': 'VARCHAR'}}, "
        f"delim = {sql_literal(CUT_CHARACTER)}, quote = '', escape = '', "
        f"comment = '', nullstr = '', new_line = '\\n', null_padding = true, "
        f"strict_mode = false, {'store_rejects' if kept else 'ignore_errors'} = true) "
        f"WHERE line NOT IN ('', {sql_literal(header.line)}) AND {length}"
    )


def _fields_sql(header: Header) -> str:
    """The list of a line's fields, quotes and all."""
    separator = sql_literal(header.separator)
    plain = f'(?:"[^"{header.separator}]*"|[^"{header.separator}]*)'
    simple = sql_literal(f"{plain}(?:[{header.separator}]{plain})*")
    result = sql_literal(f"[{header.separator}]({_field_pattern(header.separator)})")
    return (
        f"CASE WHEN NOT contains(line, '\"') OR regexp_full_match(line, {simple}, 's') "
        f"OR NOT {_well_quoted(header)} THEN string_split(line, {separator}) "
        f"ELSE regexp_extract_all({separator} || line, {result}, 1, 's') END"
    )


def _well_quoted(header: Header) -> str:
    field = _field_pattern(header.separator)
    whole = f"{field}(?:[{header.separator}]{field})*"
    return f"regexp_full_match(line, {sql_literal(whole)}, 's')"


def _field_pattern(separator: str) -> str:
    return f'(?:"[^"]*"(?:"[^"]*")*|[^"{separator}]*)'


def _unquote_sql(field: str) -> str:
    quoted = f"starts_with({field}, '\"') AND ends_with({field}, '\"') AND length({field}) > 1"
    inside = f"replace({field}[2:-2], '\"\"', '\"')"
    return f"nullif(CASE WHEN {quoted} THEN {inside} ELSE {field} END, '')"


def count_broken_lines(source: str) -> dict[str, int]:
    """How many files of a folder are not read, and how many lines of CSV files are not what their
    header says, by what becomes of them: private."""
    kind = file_kind(source)
    others = left_out(source, kind)
    what = "files of the folder that are not read, such as"
    files = {f"{what} {name}": len(others) for name in others[:1]}
    if kind != "csv":
        return files
    lines = find_broken_lines(list_files(source, kind))
    return files | {
        "lines that are not UTF-8, which are dropped": lines.encoding,
        "lines of more than a million bytes, which are dropped": lines.unreadable,
        "lines with too few fields, padded": lines.short,
        "lines with too many fields, cut": lines.long,
        "lines with quotes that are not CSV's, read as letters": lines.quotes,
    }
