"""DuckDB inside this process: the default engine.

A table larger than the memory limit spills to a folder of its own, which is removed at the end.
"""

from __future__ import annotations

import contextlib
import glob
import shutil
import warnings
import weakref
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from whosin.errors import InvalidInput, UnknownName
from whosin.release.engines.base import (
    Progress,
    files_of,
    in_memory,
    kind_of,
    listed_names,
    split_name,
    unreadable,
)
from whosin.release.engines.lines import csv_query, literal
from whosin.release.engines.sound import require_sound
from whosin.release.engines.waiting import run_interruptibly

BATCH = 1_000_000


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

        folder = mkdtemp(prefix="whosin-spill-", dir=_folder(spill))
        self._ibis = ibis.duckdb.connect()
        self._connection = self._ibis.con
        # Also when the program ends, or nobody refers to the engine any longer.
        self._close = weakref.finalize(self, _let_go, self._ibis, folder)
        self._names = count()
        self._attached: dict[Path, str] = {}
        self._compiled: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._lists: set[str] = set()
        self._set("temp_directory", folder, "spill", "a folder")
        with contextlib.suppress(Exception):
            # The bar is how DuckDB keeps count of its progress; it is never printed, and nothing
            # depends on it. (In some notebooks it cannot be had.)
            self._connection.execute("SET enable_progress_bar = true")
            self._connection.execute("SET enable_progress_bar_print = false")
        # Rows need no order, and keeping it would cost memory.
        self._set("preserve_insertion_order", False)
        if memory is not None:
            self._set("memory_limit", memory, "memory", "a size such as 4GB")
        if threads is not None:
            self._set("threads", threads, "threads", "a whole number of at least 1")

    def __enter__(self) -> DuckDB:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, source: object) -> Any:
        """A path, a pattern of paths, `database.duckdb::table`, or a frame in memory."""
        if isinstance(source, Path):
            source = str(source)
        if not isinstance(source, str):
            return self._frame(source)
        if "::" in source:
            return self._catalogue(source)
        kind = kind_of(source)
        files = files_of(source, kind)
        try:
            return self._read(source, files, kind)
        except (OSError, InvalidInput):
            raise
        except Exception:
            raise unreadable(source, kind) from None

    def check(self, expression: Any) -> None:
        """Plan it, and read no row."""
        if self._foreign(expression):
            expression.limit(0).to_pyarrow()
        else:
            self._connection.execute(f"EXPLAIN {self._sql(expression)}").fetchall()

    def run(self, expression: Any, progress: Progress | None = None) -> Any:
        """Run an aggregate; Ctrl-C stops it."""
        return run_interruptibly(
            lambda: self._answer(expression),
            self._connection.interrupt,
            lambda: self._tell(progress),
        )

    def close(self) -> None:
        """Let go of the database and the spill folder."""
        self._close()

    def _foreign(self, expression: Any) -> bool:
        """Whether it is about an Ibis table that another database holds."""
        return expression.get_backend() is not self._ibis

    def _sql(self, expression: Any) -> str:
        """An expression's SQL, compiled once: what was checked is what runs."""
        operation = expression.op()
        if operation not in self._compiled:
            for table in in_memory(expression):
                if table.name not in self._lists:
                    self._connection.register(table.name, table.data.to_pyarrow(table.schema))
                    self._lists.add(table.name)
            self._compiled[operation] = self._ibis.compile(expression)
        return self._compiled[operation]

    def _answer(self, expression: Any) -> Any:
        if self._foreign(expression):
            return expression.to_pyarrow()
        found = self._connection.sql(self._sql(expression)).to_arrow_table()
        return found.cast(expression.schema().to_pyarrow())

    def _tell(self, progress: Progress | None) -> None:
        if progress is not None:
            with contextlib.suppress(Exception):
                share = self._connection.query_progress()
                if share >= 0:
                    progress(min(1.0, share / 100))

    def _set(self, name: str, value: object, field: str = "", accepted: str = "") -> None:
        try:
            self._connection.execute(f"SET {name} = {literal(value)}")
        except Exception:
            self.close()
            raise InvalidInput(field or name, accepted, value) from None

    def _view(self, sql: str) -> Any:
        """A query as an Ibis table, by a view with a name of its own."""
        name = f"whosin_{next(self._names)}"
        self._connection.execute(f"CREATE VIEW {name} AS {sql}")
        return self._table(name)

    def _table(self, name: str) -> Any:
        with warnings.catch_warnings():
            # Ibis 12 reads schemas by a method that DuckDB is going to drop.
            warnings.simplefilter("ignore", DeprecationWarning)
            return self._ibis.table(name)

    def _read(self, source: str, files: list[str], kind: str) -> Any:
        if kind == "arrow":
            require_sound(files)
            import pyarrow.dataset as ds

            return self._register(ds.dataset(files, format="ipc"))
        # A file's name is no pattern, whatever letters it has.
        paths = f"[{', '.join(literal(glob.escape(file)) for file in files)}]"
        if kind == "parquet":
            # Folders may be named column=value.
            named = f"hive_partitioning = {literal(Path(source).is_dir())}"
            named += ", hive_types_autocast = false"
            # A text that is not UTF-8 must not raise: it is repaired.
            repaired = "utf8_validation = 'replace'"
            return self._view(f"SELECT * FROM read_parquet({paths}, {named}, {repaired})")
        return self._view(csv_query(files))

    def _frame(self, source: Any) -> Any:
        import ibis
        import pyarrow as pa

        if isinstance(source, ibis.Table):
            return source
        if isinstance(source, pa.RecordBatch):
            source = pa.Table.from_batches([source])
        if not isinstance(source, pa.Table):
            if getattr(source, "__arrow_c_stream__", None) is None:
                accepted = "a path, a pyarrow Table, or a pandas or Polars frame"
                raise InvalidInput("table", accepted, type(source).__name__)
            source = pa.table(source)
        return self._register(source)

    def _register(self, source: Any) -> Any:
        """Something of Arrow's that can be scanned again and again, as a table."""
        name = f"whosin_{next(self._names)}"
        self._connection.register(name, source)
        return self._table(name)

    def tables(self, path: str | Path) -> list[str]:
        """The tables of a DuckDB database; those outside its main schema as schema.table."""
        listed = "SELECT table_schema, table_name FROM information_schema.tables"
        listed += " WHERE table_catalog = ? ORDER BY ALL"
        rows = self._connection.execute(listed, [self._attach(path)]).fetchall()
        return listed_names(rows)

    def _attach(self, path: str | Path) -> str:
        """The name under which a database is read; it is never written."""
        place = Path(path).resolve()
        if not place.exists():
            raise FileNotFoundError(2, "no such file or directory", str(path))
        if place not in self._attached:
            alias = f"whosin_data_{len(self._attached)}"
            try:
                command = f"ATTACH {literal(place)} AS {alias} (TYPE duckdb, READ_ONLY)"
                self._connection.execute(command)
            except Exception:
                raise unreadable(str(path), "DuckDB database") from None
            self._attached[place] = alias
        return self._attached[place]

    def _catalogue(self, source: str) -> Any:
        path, _, name = source.partition("::")
        known = self.tables(path)
        if name not in known:
            raise UnknownName("table", name, known)
        home = (self._attach(path), *split_name(name))
        parts = (part.replace('"', '""') for part in home)
        return self._view("SELECT * FROM " + ".".join(f'"{part}"' for part in parts))


def _let_go(backend: Any, folder: str) -> None:
    with contextlib.suppress(Exception):
        backend.disconnect()
    shutil.rmtree(folder, ignore_errors=True)


def _folder(spill: object) -> str | None:
    if spill is None:
        return None
    if not Path(str(spill)).is_dir():
        raise InvalidInput("spill", "an existing folder", Path(str(spill)).name)
    return str(spill)
