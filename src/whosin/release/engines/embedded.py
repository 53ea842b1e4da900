"""DuckDB inside this process: the default engine.

A table larger than the memory limit spills to a folder of its own, which is removed at the end.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import gzip
import itertools
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whosin.errors import InvalidInput, UnknownName
from whosin.release.engines.base import Progress, kind_of

POLL = 0.2


class DuckDB:
    """DuckDB, embedded.

    Args:
        memory: the most memory to use, such as "4GB"; what does not fit spills.
        threads: how many threads; all cores by default.
        spill: where to spill; the system's temporary folder by default.
    """

    name = "duckdb"

    def __init__(
        self, memory: str | None = None, threads: int | None = None, spill: object = None
    ) -> None:
        import ibis

        self._folder = tempfile.mkdtemp(prefix="whosin-spill-", dir=_folder(spill))
        self._clean = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._ibis = ibis.duckdb.connect()
        self._connection = self._ibis.con
        self._set("temp_directory", self._folder)
        self._names = itertools.count()
        self._set("enable_progress_bar", False)
        # Rows need no order, and keeping it would cost memory.
        self._set("preserve_insertion_order", False)
        for name, value in (("memory_limit", memory), ("threads", threads)):
            if value is not None:
                self._set(name, value)

    def open(self, source: object) -> Any:
        """A path, a pattern of paths, `database.duckdb::table`, or a frame in memory."""
        if isinstance(source, Path):
            source = str(source)
        if not isinstance(source, str):
            return self._frame(source)
        if "::" in source:
            return self._catalogue(source)
        kind = kind_of(source)
        if not any(letter in source for letter in "*?[") and not Path(source).exists():
            raise FileNotFoundError(2, "no such file or directory", source)
        path = _inside(source, kind)
        try:
            if kind == "arrow":
                return self._arrow(path)
            return self._view(_parquet(path) if kind == "parquet" else _csv(path))
        except (OSError, InvalidInput):
            raise
        except Exception as error:
            raise _unreadable(source, kind, error) from None

    def run(self, expression: Any, progress: Progress | None = None) -> Any:
        """Run an aggregate; Ctrl-C stops it."""
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(progress, done), daemon=True)
        if progress is not None:
            watcher.start()
        try:
            return expression.to_pyarrow()
        finally:
            done.set()
            if progress is not None:
                watcher.join()

    def batches(self, expression: Any, rows: int) -> Iterator[Any]:
        """Stream the rows. (Ibis 12 asks DuckDB 2 for a method that it no longer has.)"""
        yield from self._connection.sql(self._ibis.compile(expression)).to_arrow_reader(rows)

    def close(self) -> None:
        """Let go of the database and the spill folder."""
        self._ibis.disconnect()
        self._clean()

    def _watch(self, progress: Progress, done: threading.Event) -> None:
        while not done.wait(POLL):
            with contextlib.suppress(Exception):
                share = self._connection.query_progress()
                if share >= 0:
                    progress(min(1.0, share / 100))

    def _set(self, name: str, value: object) -> None:
        try:
            self._connection.execute(f"SET {name} = {_literal(value)}")
        except Exception:
            raise InvalidInput(name.replace("_limit", ""), "a size such as 4GB", value) from None

    def _frame(self, source: Any) -> Any:
        import ibis
        import pyarrow as pa

        if isinstance(source, ibis.Table):
            return source
        if not isinstance(source, pa.Table | pa.RecordBatch):
            converter = getattr(source, "__arrow_c_stream__", None)
            if converter is None:
                accepted = "a path, a pyarrow Table, or a pandas or Polars frame"
                raise InvalidInput("table", accepted, type(source).__name__)
            source = pa.table(source)
        if isinstance(source, pa.RecordBatch):
            source = pa.Table.from_batches([source])
        return self._registered(source)

    def _arrow(self, path: str) -> Any:
        import pyarrow.dataset as ds

        return self._registered(ds.dataset(path, format="ipc"))

    def _view(self, reader: str) -> Any:
        """A reader under a name of its own."""
        name = f"whosin_{next(self._names)}"
        self._connection.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM {reader}")
        return self._ibis.table(name)

    def _registered(self, source: Any) -> Any:
        """An Arrow table or dataset under a name of its own; it is scanned in place."""
        name = f"whosin_{next(self._names)}"
        self._connection.register(name, source)
        return self._ibis.table(name)

    def _catalogue(self, source: str) -> Any:
        path, _, name = source.partition("::")
        if not Path(path).exists():
            raise FileNotFoundError(2, "no such file or directory", path)
        alias = "data"
        try:
            self._connection.execute(f"ATTACH {_literal(path)} AS {alias} (READ_ONLY)")
        except Exception as error:
            raise _unreadable(path, "DuckDB database", error) from None
        schema, _, table = name.rpartition(".")
        known = [
            found
            for (found,) in self._connection.execute(
                "SELECT table_name FROM information_schema.tables "
                "WHERE table_catalog = ? AND table_schema = ?",
                [alias, schema or "main"],
            ).fetchall()
        ]
        if table not in known:
            raise UnknownName("table", name, known)
        return self._ibis.table(table, database=(alias, schema or "main"))


def _folder(spill: object) -> str | None:
    if spill is None:
        return None
    if not Path(str(spill)).is_dir():
        raise InvalidInput("spill", "an existing folder", Path(str(spill)).name)
    return str(spill)


def _inside(source: str, kind: str) -> str:
    """A folder means all files of its kind in it."""
    if Path(source).is_dir():
        return f"{source.rstrip('/')}/**/*.{kind}"
    return source


def _parquet(path: str) -> str:
    """Parquet files. A text that is not UTF-8 must not raise: it is repaired."""
    return f"read_parquet({_literal(path)}, utf8_validation = 'replace')"


def _csv(path: str) -> str:
    """A CSV of texts. Nothing about the rows may raise or change the columns.

    So nothing is guessed from them: the columns are the header's, the separator is the comma (the
    tab in .tsv files), bad lines are dropped or padded. (A quote that is never closed takes in the
    lines after it: such a file does not spell rows, and only `whosin table check` can say so.)
    """
    separator = "\t" if ".tsv" in Path(path).suffixes else ","
    columns = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in _header(path, separator))
    return (
        f"read_csv({_literal(path)}, auto_detect = false, header = true, columns = {{{columns}}}, "
        f"delim = {_literal(separator)}, quote = '\"', escape = '\"', ignore_errors = true, "
        "null_padding = true, strict_mode = false, parallel = false)"
    )


def _header(path: str, separator: str) -> list[str]:
    """The names in the first line of a CSV file, or of the first of several."""
    found = sorted(glob.glob(path, recursive=True)) or [path]
    opener = gzip.open if found[0].endswith(".gz") else open
    with opener(found[0], "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
        names = next(csv.reader(file, delimiter=separator), [])
    repeated = {name for name in names if names.count(name) > 1}
    if not names or "" in names or repeated:
        accepted = "a CSV file whose first line names each column once"
        raise InvalidInput("table", accepted, Path(path).name)
    return names


def _literal(value: object) -> str:
    if isinstance(value, bool | int):
        return str(value).lower()
    text = str(value).replace("'", "''")
    return f"'{text}'"


def _unreadable(source: str, kind: str, error: Exception) -> InvalidInput:
    # Only the file's format is named: the engine's own words may quote rows.
    return InvalidInput("table", f"a readable {kind} file", Path(source).name)
