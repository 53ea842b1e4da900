"""What an engine must do. Contract: whatever it raises about rows never reaches a user."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from whosin.errors import InvalidInput, SourceChanged, at
from whosin.exact import Array

Progress = Callable[[float], None]
"""Told how much of a scan is done, from 0 to 1."""
RowCounter = Callable[[Iterable[Any]], Array]
"""Makes counts of the RecordBatches of some rows; those of several parts are added up."""

KINDS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv"}
ARROW = {".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow"}
ENDINGS = KINDS | ARROW
ACCEPTED = "a .parquet, .csv, .csv.gz or .arrow file, or database::table"


@dataclass(frozen=True)
class Written:
    """A table that was written whole.

    Attributes:
        digest: SHA-256 of the file; for a folder, that of its files' digests, sorted, in lines.
    """

    rows: int
    digest: str


@dataclass(frozen=True)
class Redrawn:
    """A table to write: for each row of an expression one that is drawn from its cell alone.

    The order of the rows must say nothing. The order in which an engine finds entities depends on
    who they are: where one is replaced by another, the rows of all between their positions would
    shift, and show far more than one row's ε.

    Attributes:
        rows: an expression, one row per entity, with the number of its cell in the column `code`.
        cells: how many there are.
        draw: new numbers for numbers, each by itself.
        batch: numbers as a RecordBatch.
    """

    rows: Any
    cells: int
    draw: Callable[[Array], Array]
    batch: Callable[[Array], Any]


class Schema:
    """What a source's files say about their columns, kept since it was opened.

    Args:
        read: reads it again; raises where files disagree or cannot be read.
    """

    def __init__(self, read: Callable[[], object]) -> None:
        self._read, self._known = read, read()

    def require_same(self) -> None:
        """
        Raises:
            SourceChanged: it is another one now. Whoever replaced the files has to open them again.
        """
        try:
            same = self._read() == self._known
        except Exception:
            same = False
        if not same:
            raise SourceChanged("the table has other columns than when it was opened, or is gone")


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
            with further(index):
                result.append(self.open(source))
        return result

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

    def write_rows(self, table: Redrawn, path: str, progress: Progress | None = None) -> Written:
        """Write a table whole, as a draft, its rows in an order that says nothing."""

    def write_batches(
        self, batches: Iterable[Any], schema: Any, path: str, progress: Progress | None = None
    ) -> Written:
        """Write RecordBatches whole, as a draft; rows that were drawn from noisy numbers alone."""

    def publish(self, path: str, digest: str) -> bool:
        """Give a draft its public name; whether there is a table of this digest now."""

    def discard(self, path: str, digest: str) -> None:
        """Remove a draft whose digest was not stored."""

    def close(self) -> None:
        """Let go of what the engine holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def further(index: int) -> AbstractContextManager[None]:
    """Where errors about a source are: the table's own is the first."""
    return at(f"tables[{index - 1}]") if index else nullcontext()


def draft_name(name: str, digest: str) -> str:
    """What a table is called until the ledger has stored its digest."""
    return f".{name}.{digest[:32]}.draft"


def kind_of(path: str) -> str:
    """The format of a file, by its name; a folder without an ending by the files in it."""
    name = path.rstrip("/*").removesuffix(".gz")
    result = ENDINGS.get(Path(name).suffix.lower())
    if result is None and Path(path).is_dir():
        inside = {_kind(each) for each in _visible(Path(path))} - {None}
        if len(inside) != 1:
            accepted = "a folder of .parquet, .csv, .csv.gz or .arrow files, all of one format"
            held = f"files of {len(inside)} formats" if inside else "no such file"
            raise InvalidInput("table", accepted, f"{Path(path).name}, which holds {held}")
        result = inside.pop()
    if result is None:
        if not Path(name).suffix and not Path(path).exists():
            raise FileNotFoundError(2, "no such file or folder", path)
        raise InvalidInput("table", ACCEPTED, Path(path).name)
    return result


def require_local(source: str) -> None:
    """DuckDB reads local files; more would need an extension from elsewhere.

    Raises:
        InvalidInput: something else; only its kind is named, since a URL may hold a secret.
    """
    if "://" in source:
        accepted = (
            "a local path, postgresql://…::table or adbc:driver:uri::table (Spark reads more)"
        )
        raise InvalidInput("source", accepted, f"{source.partition('://')[0][:20]}://…")


def _require_plain_folder(folder: Path) -> None:
    """A folder that a table format keeps holds rows that were deleted, too."""
    formats = {"Delta": "_delta_log", "Iceberg": "metadata/*.metadata.json", "Hudi": ".hoodie"}
    for name, mark in formats.items():
        if next(folder.glob(mark), None) is not None:
            accepted = f"a plain folder: {name} tables are read by Spark, as ::table"
            raise InvalidInput("table", accepted, folder.name)


def files_of(path: str, kind: str) -> list[str]:
    """The files that a path, a folder or a pattern means, sorted.

    Raises:
        FileNotFoundError: there are none.
    """
    folder = Path(path)
    if folder.is_dir():
        _require_plain_folder(folder)
        result = [str(each) for each in _visible(folder) if _kind(each) == kind]
    else:
        result = [path] if folder.exists() else glob.glob(path, recursive=True)
    if not result:
        missing = "no such file or directory"
        if folder.is_dir():
            missing = f"a folder that holds no {kind} file"
        elif glob.has_magic(path):
            missing = "no file matches this pattern"
        raise FileNotFoundError(2, missing, path)
    return sorted(result)


def left_out(path: str, kind: str) -> list[str]:
    """The files of a folder that are not read, sorted: those of another format, and those whose
    name, or whose folder's name, begins with a point or a line, as Spark's own do."""
    folder = Path(path)
    if not folder.is_dir():
        return []
    read = set(files_of(path, kind))
    return sorted(
        str(each.relative_to(folder))
        for each in folder.rglob("*")
        if each.is_file() and str(each) not in read
    )


def _visible(folder: Path) -> Iterator[Path]:
    """What is in a folder, except for names that begin with a point or a line."""
    for each in folder.rglob("*"):
        if not any(part.startswith((".", "_")) for part in each.relative_to(folder).parts):
            yield each


def _kind(path: Path) -> str | None:
    return ENDINGS.get(Path(path.name.removesuffix(".gz")).suffix.lower())


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


def in_memory(expression: Any) -> list[Any]:
    """The lists that an expression brings along, which an engine has to be given."""
    from ibis.expr.operations import InMemoryTable

    return list(expression.op().find(InMemoryTable))


def unreadable(source: str, kind: str) -> InvalidInput:
    """Only the file's format is named: an engine's own words may quote rows."""
    return InvalidInput("table", f"a readable {kind} file", Path(source).name)
