"""What an engine must do, which files it reads, the first lines of CSV files, and schemas."""

from __future__ import annotations

import contextlib
import csv
import glob
import gzip
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from whosin.errors import InvalidInput, SourceChanged, UnknownName, at
from whosin.exact import Array

Progress = Callable[[float], None]
"""Told how much of a scan is done, from 0 to 1."""
RowCounter = Callable[[Iterable[Any]], Array]
"""Makes counts of the RecordBatches of some rows; those of several parts are added up."""

FILE_KINDS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv"}
ARROW_KINDS = {".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow"}
SPREADSHEET_KINDS = {".xlsx": "spreadsheet", ".xlsm": "spreadsheet"}
FILE_ENDINGS = FILE_KINDS | ARROW_KINDS | SPREADSHEET_KINDS
UNREAD_SPREADSHEETS = frozenset((".xls", ".xlsb", ".ods", ".numbers"))
ACCEPTED_FRAMES = "a path, a pyarrow Table, or a pandas or Polars frame"
ACCEPTED_SOURCES = "a .parquet, .csv, .csv.gz, .arrow or .xlsx file, or database::table"


@dataclass(frozen=True)
class WrittenFile:
    """A table that was written whole.

    Attributes:
        digest: SHA-256 of the file; for a folder, that of its files' digests, sorted, in lines.
    """

    rows: int
    digest: str


@dataclass(frozen=True)
class RedrawnFile:
    """A table to write: for each row of an expression one that is drawn from its cell alone.

    The order of the rows must say nothing. The order in which an engine finds privacy units depends
    on who they are: where one is replaced by another, the rows of all between their positions would
    shift, and show far more than one row's ε.

    Attributes:
        rows: one row per privacy unit, with the number of its cell in the column `code`.
        draw: new numbers for numbers, each by itself.
        batch: numbers as a RecordBatch.
    """

    rows: Any
    cells: int
    draw: Callable[[Array], Array]
    batch: Callable[[Array], Any]


@dataclass(frozen=True)
class FilteredScan:
    """An expression in parts, each of which an engine compiles and plans once for all questions
    that have it.

    Attributes:
        source: the rows of a table, with all that conditions may name.
        conditions: on a table of these columns that is called `ELIGIBLE_ROWS`; None for all rows.
            They are several where the shape has the column `QUESTION_COLUMN`.
        shape: what is asked of the rows that meet a condition, as an expression on such a table;
            None for the conditions alone.
    """

    source: Any
    conditions: tuple[Any, ...]
    shape: Any

    @property
    def planned(self) -> list[Any]:
        """The parts that are planned on the columns of the source."""
        return [each for each in (self.shape, *self.conditions) if each is not None]


ELIGIBLE_ROWS = "eligible_rows"
ADDED_PREFIX = "whosin_"
"""How the columns begin that `ELIGIBLE_ROWS` has beside those of the source."""
QUESTION_COLUMN = f"{ADDED_PREFIX}question"
NUMBER_COLUMN = f"{ADDED_PREFIX}number "
"""With the name of a column of texts: the numbers that they spell (see `row_values`)."""


@dataclass(frozen=True)
class SharedScan:
    """The place of a question among those of its shape, which one statement answers. They share
    nothing but the statement: a row that meets several conditions is there once for each.

    Attributes:
        whole: what all of them ask.
        found: results that were not handed out yet, by place.
    """

    whole: FilteredScan
    place: int
    found: dict[int, Any]


def share_scans(expressions: Mapping[int, Any]) -> dict[int, Any]:
    """What to run for each expression: itself, or a scan that others have part in."""
    result, alike = dict(expressions), dict[Any, list[int]]()
    for number, each in expressions.items():
        if isinstance(each, FilteredScan) and QUESTION_COLUMN in each.shape.columns:
            alike.setdefault((each.shape.op(), each.source.op()), []).append(number)
    for numbers in alike.values():
        conditions = tuple(each for number in numbers for each in expressions[number].conditions)
        whole, found = replace(expressions[numbers[0]], conditions=conditions), dict[int, Any]()
        result |= {number: SharedScan(whole, place, found) for place, number in enumerate(numbers)}
    return result


class Engine(Protocol):
    """Opens tables and runs expressions."""

    name: ClassVar[str]
    """What a scenario calls it."""
    keys: ClassVar[tuple[str, ...]] = ()
    """The keys of a scenario's [table] that it takes as arguments."""

    def open(self, source: object) -> Any:
        """The source as an Ibis table. Text files have text columns only: types that are guessed
        from rows would make refusals depend on them."""

    def open_together(self, sources: Sequence[object]) -> list[Any]:
        """Several sources, the table's own first, so that one expression may be about all of
        them. Errors say which of the further ones they are about."""
        result = []
        for index, source in enumerate(sources):
            with further_source(index):
                result.append(self.open(source))
        return result

    def split_source(self, data: Any, *, grouped: bool) -> Any:
        """A table with the columns of another one, called `ELIGIBLE_ROWS`, for the parts of
        `FilteredScan`; None where expressions have to be whole. It may have columns beside those of
        the other one: `NUMBER_COLUMN` and `QUESTION_COLUMN`.

        Args:
            grouped: whether a shape can tell questions apart; the table then has a column
                `QUESTION_COLUMN` if one statement is to answer several.
        """
        return None

    def is_checked(self, expression: Any) -> bool:
        """Whether `check` has nothing left to plan."""
        return False

    def check(self, expression: Any) -> None:
        """Plan the whole expression and read no row; raise what running it would."""

    def run(self, expression: Any, progress: Progress | None = None) -> Any:
        """The result as a pyarrow Table; small, for aggregates."""

    @property
    def most_tallied(self) -> int:
        """How many cells `tally` can count at once; 0 where only the engine itself can count."""
        return 0

    def tally(self, expression: Any, count: RowCounter, progress: Progress | None = None) -> Array:
        """The sum of what a function makes of parts of the rows, given as RecordBatches where the
        rows are: in this process or in a worker. It must hold none of them. An engine that can do
        no better hands over all rows, and says 0 in `most_tallied`, so that none are asked for."""
        return count(self.run(expression, progress).to_batches())

    def require_place(self, path: str) -> None:
        """Refuse a place that something has which is no table of this engine's, before a debit."""

    def write_rows(
        self, table: RedrawnFile, path: str, progress: Progress | None = None, owner: str = ""
    ) -> WrittenFile:
        """Write a table whole, as a draft, its rows in an order that says nothing."""

    def write_batches(
        self,
        batches: Iterable[Any],
        schema: Any,
        path: str,
        progress: Progress | None = None,
        owner: str = "",
    ) -> WrittenFile:
        """Write RecordBatches whole, as a draft; rows that were drawn from noisy numbers alone."""

    def publish(self, path: str, digest: str) -> bool:
        """Give a draft its public name, if nothing has it; whether there is a table of this digest
        now."""

    def discard(self, path: str, digest: str) -> None:
        """Remove a draft whose digest was not stored."""

    def close(self) -> None:
        """Let go of what the engine holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def further_source(index: int) -> AbstractContextManager[None]:
    """Where errors about a source are: the table's own is the first."""
    return at(f"tables[{index - 1}]") if index else nullcontext()


DIGEST_LETTERS = 32
"""How much of a digest names a draft."""


def draft_name(name: str, digest: str, owner: str = "") -> str:
    """What a table is called until the ledger has stored its digest.

    Args:
        owner: the dataset and its ledger, in letters: whose drafts these are.
    """
    return f".{name}.{owner or 'nobody'}.{digest[:DIGEST_LETTERS]}.draft"


def list_drafts(folder: Path, owner: str) -> dict[Path, str]:
    """The drafts of an owner in a folder of this machine, with the beginnings of their digests."""
    found = folder.glob(f".*.{owner}.*.draft")
    return {each: each.name.rsplit(".", 2)[-2] for each in found}


POSTGRES_SCHEMES = ("postgresql", "postgres")
ADBC_PREFIX = "adbc:"
UNUSABLE_TYPE = "VARCHAR[]"
"""What a column becomes whose type nobody may ask about; it is never read."""
SQLITE_MAGIC = b"SQLite format 3\0"


def is_database(source: str) -> bool:
    if source.startswith(ADBC_PREFIX) or source.partition("://")[0].lower() in POSTGRES_SCHEMES:
        return True
    path, mark, _ = source.partition("::")
    return bool(mark) and is_sqlite(path)


def is_sqlite(path: str | Path) -> bool:
    try:
        if not os.path.isfile(path):
            return False
        with open(path, "rb") as file:
            return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
    except OSError:
        return False


def split_sheet(source: str) -> tuple[str, str | None] | None:
    """(file, sheet) of a spreadsheet, such as visits.xlsx::March; None for any other source."""
    path, mark, sheet = source.partition("::")
    if Path(path).suffix.lower() not in SPREADSHEET_KINDS or "://" in source:
        return None
    return path, sheet if mark else None


def refuse_table(message: str, name: object = None, hint: str = "") -> InvalidInput:
    """The error for a source that is no table; what it is called is shown, and no row of it."""
    return InvalidInput(message, field="table", value=name, hint=hint)


def collect_lazy(source: Any) -> Any:
    """A lazy frame of Polars as a frame, and any other source as it is.

    Raises:
        InvalidInput: Polars cannot run it; its words may quote a value.
    """
    kind = type(source)
    if (kind.__module__.partition(".")[0], kind.__name__) != ("polars", "LazyFrame"):
        return source
    with contextlib.suppress(Exception):
        return source.collect()
    raise refuse_table("Polars cannot collect this LazyFrame", kind.__name__)


def require_plain(source: object, ours: Sequence[Any]) -> bool:
    """Whether a source is an Ibis table that an engine of ours opened.

    Raises:
        InvalidInput: an Ibis table of another database, or an expression: it could hold anything,
            also what fails on some rows.
    """
    if type(source).__module__.partition(".")[0] != "ibis":
        return False
    import ibis
    from ibis.expr.operations import DatabaseTable

    if isinstance(source, ibis.Table) and isinstance(source.op(), DatabaseTable):
        backend = source.get_backend()
        if any(backend is each for each in ours):
            return True
    hint = f"give what its to_pyarrow() returns, or {ACCEPTED_FRAMES}"
    raise refuse_table("an Ibis expression is not read as a table", type(source).__name__, hint)


def file_kind(path: str) -> str:
    """The format of a file, by its name; a folder without an ending by the files in it."""
    name, place = path.rstrip("/*").removesuffix(".gz"), Path(path)
    result = FILE_ENDINGS.get(Path(name).suffix.lower())
    if result is None and place.is_dir():
        inside = {_kind_by_name(each) for each in _visible_files(place)} - {None}
        if len(inside) != 1:
            held = f"files of {len(inside)} formats" if inside else "no table"
            hint = "give a folder of .parquet, .csv, .csv.gz or .arrow files, all of one format"
            raise refuse_table(f"the folder {place.name} holds {held}", place.name, hint)
        result = inside.pop()
    if result is None:
        if not Path(name).suffix and not place.exists():
            raise FileNotFoundError(2, "no such file or folder", path)
        message = f"{place.name} is not a table that can be read"
        hint = f"give {ACCEPTED_SOURCES}"
        if Path(name).suffix.lower() in UNREAD_SPREADSHEETS:
            message = f"{place.name} is a spreadsheet of a format that is not read"
            hint = "save it as .xlsx or .csv (File, Save as), and give that file"
        raise refuse_table(message, place.name, hint)
    return result


def require_local(source: str) -> None:
    """DuckDB reads local files; more would need an extension from elsewhere.

    Raises:
        InvalidInput: something else; only its kind is named, since a URL may hold a secret.
    """
    if "://" in source:
        kind = f"{source.partition('://')[0][:20]}://…"
        hint = (
            "give a local path, postgresql://…::table or adbc:driver:uri::table; Spark reads more"
        )
        raise InvalidInput(f"DuckDB does not read {kind}", field="source", value=kind, hint=hint)


def _require_plain_folder(folder: Path) -> None:
    """A folder that a table format keeps holds rows that were deleted, too."""
    formats = {"Delta": "_delta_log", "Iceberg": "metadata/*.metadata.json", "Hudi": ".hoodie"}
    for name, mark in formats.items():
        if next(folder.glob(mark), None) is not None:
            message = f"{folder.name} is a {name} table, not a plain folder of files"
            raise refuse_table(message, folder.name, "read it with Spark, as ::table")


def list_local_files(source: str | None) -> list[str]:
    """The local files of a source; none for what lies in a database, in memory or elsewhere."""
    if source is None or "::" in source or "://" in source:
        return []
    try:
        return list_files(source, file_kind(source))
    except (OSError, ValueError):
        return []


def list_files(path: str, kind: str) -> list[str]:
    """The files that a path, a folder or a pattern means, sorted.

    Raises:
        FileNotFoundError: there are none.
    """
    folder = Path(path)
    if folder.is_dir():
        _require_plain_folder(folder)
        result = [str(each) for each in _visible_files(folder) if _kind_by_name(each) == kind]
    else:
        result = [path] if folder.exists() else glob.glob(path, recursive=True)
    if not result:
        pattern = "no file matches this pattern" if glob.has_magic(path) else ""
        missing = f"a folder that holds no {kind} file" if folder.is_dir() else pattern
        raise FileNotFoundError(2, missing or "no such file or directory", path)
    return sorted(result)


def left_out(path: str, kind: str) -> list[str]:
    """The files of a folder that are not read, sorted: those of another format, and those whose
    name, or whose folder's name, begins with a point or a line, as Spark's own do."""
    folder = Path(path)
    if not folder.is_dir():
        return []
    read = set(list_files(path, kind))
    return sorted(
        str(each.relative_to(folder))
        for each in folder.rglob("*")
        if each.is_file() and str(each) not in read
    )


def _visible_files(folder: Path) -> Iterator[Path]:
    """What is in a folder, except for names that begin with a point or a line."""
    for each in folder.rglob("*"):
        if not any(part.startswith((".", "_")) for part in each.relative_to(folder).parts):
            yield each


def _kind_by_name(path: Path) -> str | None:
    return FILE_ENDINGS.get(Path(path.name.removesuffix(".gz")).suffix.lower())


def listed_names(tables: Iterable[tuple[str, str]]) -> list[str]:
    """What to call (schema, table) of a database: the table alone in the main schema, else
    schema.table, so that no two are called the same. A schema with a point in its name is left out.
    """
    return [
        table if schema == "main" and "." not in table else f"{schema}.{table}"
        for schema, table in tables
        if "." not in schema
    ]


def split_name(name: str) -> tuple[str, str]:
    """(schema, table) of a name that `listed_names` gives."""
    schema, point, table = name.partition(".")
    return (schema, table) if point else ("main", name)


def memory_tables(expression: Any) -> list[Any]:
    """The lists that an expression brings along, which an engine has to be given."""
    from ibis.expr.operations import InMemoryTable

    return list(expression.op().find(InMemoryTable))


def refuse_unreadable(source: str, kind: str) -> InvalidInput:
    """Only the file's format is named: an engine's own words may quote rows."""
    name = Path(source).name
    return refuse_table(f"{name} cannot be read as {kind}", name)


def unknown_table(name: str, known: Sequence[str], views: Sequence[str]) -> InvalidInput:
    """The error for a table that is not there, or is one of those that `views` would allow."""
    if name not in views or name in known:
        return UnknownName("table", name, known)
    return InvalidInput(
        f"{name} is a view or a foreign table, has computed columns, or is under row security",
        field="table",
        value=name,
        hint="look at it; views = true in [table] then allows it, --views for a draft, "
        "Table(…, views=True) in Python",
    )


def list_column(values: Sequence[Any] | Array, kind: str) -> Any:
    """Values as an array of Arrow's of a type, null where they are masked; not by `pyarrow.array`,
    which imports pandas."""
    import pyarrow as pa

    known = ~getattr(values, "mask", np.zeros(len(values), bool))
    bits = pa.py_buffer(np.packbits(known, bitorder="little"))
    if kind != "string":
        packed = (
            np.packbits(values, bitorder="little") if kind == "boolean" else np.array(values, kind)
        )
        return pa.Array.from_buffers(
            pa.type_for_alias(kind), len(values), [bits, pa.py_buffer(packed)]
        )
    texts = [str(value).encode() for value in values]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(texts), [bits, *map(pa.py_buffer, (ends, b"".join(texts)))]
    )


def whole_numbers(column: Any) -> Array:
    """A column of whole numbers of Arrow's, 0 where it is null. Chunk by chunk and where they lie:
    Arrow's own way is through pandas, which takes longer to import than most releases take."""
    from pyarrow import types

    parts = [np.zeros(0, dtype=np.int64)]
    for chunk in column.chunks:
        plain = types.is_integer(chunk.type) or types.is_floating(chunk.type)
        if chunk.null_count or not plain:
            numbers = chunk.fill_null(0).to_numpy(zero_copy_only=False)
        else:
            numbers = np.from_dlpack(chunk)
        parts.append(numbers.astype(np.int64))
    return np.concatenate(parts)


# CSV files: what their first line says, and how every engine reads the others.
#
# Contract: a row is one line, whatever is on it, and no line changes how another one is read or
# makes a reader fail. A line ends at LF, CR or CR LF, or at the file's end; quotes do not carry
# over.
#
# - Names and separator come from the first line alone; a later line that repeats it is no row.
# - Every column is text. An empty field is missing, whether it is quoted or not.
# - A separator between quotes is part of a field, if all quotes of that line are CSV's: each opens
#   or closes a field, or is doubled within one. On other lines every separator separates.
# - A field that begins and ends with a quote loses both, and each "" in it is one quote.
# - A line that is too short is padded with missing values; what is too much on a line is dropped,
#   and so are byte-order marks at its beginning, and what follows a control character U+001F.
# - A line that is empty, not UTF-8, or longer than a million bytes is no row.


CSV_SEPARATORS = ",;\t|"
MAX_LINE_LENGTH = 1_000_000
"""Bytes of a line."""
CUT_CHARACTER = "\x1f"
"""What ends the text of a line: no field can have it, so that it can stand for a separator."""

BYTE_ORDER_MARK = "\ufeff"
"""Files begin with it, and so do lines where files were put together."""
HEADER_FIELD = "header of the CSV file"


@dataclass(frozen=True)
class Header:
    columns: tuple[str, ...]
    separator: str
    line: str


def read_header(files: Sequence[str]) -> Header:
    """The header that all of these files have."""
    first = _read_header(files[0])
    for file in files[1:]:
        if _read_header(file) != first:
            message = f"{Path(file).name} has another header than {Path(files[0]).name}"
            raise refuse_table(message, Path(file).name)
    return first


def parse_header(line: str) -> Header:
    """A header from its line; the separator is the one that it has most."""
    separator = max(CSV_SEPARATORS, key=line.count)
    if line.count('"') % 2 or CUT_CHARACTER in line or len(line.encode()) > MAX_LINE_LENGTH:
        message = (
            "the header of the CSV file has an open quote, a character that cannot be read, or "
            "more than a million bytes"
        )
        raise InvalidInput(message, field=HEADER_FIELD)
    names = next(csv.reader([line], delimiter=separator), [])
    if not any(names):
        raise refuse_table("the first line of the CSV file is empty", hint="put a header there")
    columns = tuple(name or f"column{index}" for index, name in enumerate(names))
    seen: dict[str, int] = {}
    for index, name in enumerate(columns, 1):
        first = seen.setdefault(name.lower(), index)
        if first != index:  # by their positions: without a header the first line is somebody's row
            message = f"columns {first} and {index} of the CSV file have the same name"
            raise InvalidInput(message, field=HEADER_FIELD, value=(first, index))
    return Header(columns, separator, line)


def _read_header(file: str) -> Header:
    opener = gzip.open if file.endswith(".gz") else open
    try:
        # As bytes, and this line alone: whether the others are UTF-8 must not show here.
        with opener(file, "rb") as lines:
            line = lines.readline(MAX_LINE_LENGTH + 5).split(b"\r")[0].decode()
    except (UnicodeDecodeError, EOFError, gzip.BadGzipFile):
        name = Path(file).name
        message = f"the header of {name} is not UTF-8"
        raise InvalidInput(message, field=HEADER_FIELD, value=name) from None
    return parse_header(line.lstrip(BYTE_ORDER_MARK).rstrip("\n"))


def require_different(names: Iterable[str]) -> None:
    """Engines take names that differ only in small and capital letters for one."""
    listed = [name.upper().lower() for name in names]
    if len(set(listed)) != len(listed):
        message = "two columns of the table have names that differ in capital letters only"
        raise InvalidInput(message, field="columns of the table")


def name_difference(before: object, now: object) -> str:
    """Which column of a schema is another one now, in a few words.

    Columns of a CSV file go by their positions: without a header its first line is somebody's row.
    """
    (names, columns), (others, now_columns) = _named_columns(before), _named_columns(now)
    for name in names:
        if name not in others:
            return f"{name} is gone"
    for name in others:
        if name not in names:
            return f"{name} is new"
    for name, other, column, now_column in zip(names, others, columns, now_columns, strict=False):
        if name != other:
            return f"{name} is in another place"
        if column != now_column:
            return f"{name} is {'another one' if isinstance(before, Header) else 'of another type'}"
    return "its header or its place is another one"


def _named_columns(schema: Any) -> tuple[list[str], Sequence[Any]]:
    """The columns of a header or a database's table, or those listed, with what to call each."""
    columns: Sequence[Any] = getattr(schema, "columns", schema)
    if isinstance(schema, Header):
        return [f"column {place} of the header" for place in range(1, len(columns) + 1)], columns
    names = (each[0] if isinstance(each, list | tuple) else each.name for each in columns)
    return [f"column {str(name)[:80]!r}" for name in names], columns


def one_schema(schemas: Mapping[str, object]) -> object:
    """The schema that all files have.

    Raises:
        InvalidInput: two have different ones; whatever the rows are.
    """
    first = next(iter(schemas))
    for file, schema in schemas.items():
        if schema != schemas[first]:
            found = name_difference(schemas[first], schema)
            message = f"{Path(file).name} has other columns than {Path(first).name}: {found}"
            raise refuse_table(message, Path(file).name)
    return schemas[first]


def parquet_schema(files: Sequence[str]) -> object:
    """The columns and types that all files have."""
    import pyarrow.parquet as pq

    result = {}
    for file in files:
        with pq.ParquetFile(file) as opened:
            require_different(opened.schema_arrow.names)
            columns = [opened.schema.column(index) for index in range(len(opened.schema.names))]
            result[file] = [
                (each.path, each.physical_type, str(each.logical_type), each.max_repetition_level)
                for each in columns
            ]
    return one_schema(result)


def stat_files(files: Iterable[str]) -> list[tuple[int, ...]]:
    """When files were written last, as far as the system tells."""
    found = map(os.stat, files)
    return [(each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for each in found]


class Schema:
    """What a source's files say about their columns, kept since it was opened.

    Args:
        read: reads it again; raises where files disagree or cannot be read.
        files: files that need not be read again while they were not written since.
    """

    def __init__(self, read: Callable[[], object], files: Sequence[str] = ()) -> None:
        self._read, self._files = read, files
        self._written, self._known = self._last_writes(), read()

    def _last_writes(self) -> list[tuple[int, ...]]:
        return stat_files(self._files)

    def require_same(self) -> None:
        """
        Raises:
            SourceChanged: it is another one now. Whoever replaced the files has to open them again.
        """
        now: object = None
        written: list[tuple[int, ...]] = []
        with contextlib.suppress(Exception):  # raised here, the error has no context to quote rows
            written = self._last_writes()
            if written and written == self._written:
                return
            now = self._read()
        if now is None:
            raise SourceChanged("the table is gone, or its files no longer have the same columns")
        require_unchanged(self._known, now)
        self._written = written


def require_unchanged(known: object, now: object) -> None:
    """
    Raises:
        SourceChanged: a schema is another one now.
    """
    if now != known:
        changed = "the table has other columns than when it was opened"
        raise SourceChanged(f"{changed}: {name_difference(known, now)}")


def sql_literal(value: object) -> str:
    if isinstance(value, bool | int):
        return str(value).lower()
    return "'" + str(value).replace("'", "''") + "'"


def sql_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
