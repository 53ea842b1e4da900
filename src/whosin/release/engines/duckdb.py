"""DuckDB inside this process, the default engine, and its spill folders.

Each source, or each set of tables that belong together, has a database of its own, which can reach
nothing else (`confined`). A table larger than the memory limit spills to a folder of ours
(`SpillFolder`).
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import gettempdir
from typing import Any, ClassVar, TypeVar

import numpy as np

from whosin.errors import InvalidInput, check_kind, require_extras
from whosin.exact import Array
from whosin.interrupts import run_interruptibly
from whosin.plain_files import SPILL_PREFIX, PrivateFolder, check_plain
from whosin.release.engines.base import (
    ADDED_PREFIX,
    ELIGIBLE_ROWS,
    NUMBER_COLUMN,
    QUESTION_COLUMN,
    Engine,
    FilteredScan,
    Progress,
    RedrawnFile,
    RowCounter,
    SharedScan,
    WrittenFile,
    file_kind,
    further_source,
    is_database,
    is_sqlite,
    list_column,
    list_files,
    memory_tables,
    refuse_unreadable,
    require_local,
    require_plain,
    split_sheet,
    sql_identifier,
    whole_numbers,
)
from whosin.release.engines.confined import TABLE_ALIAS, TEXT_NAME, ConfinedDatabase
from whosin.release.engines.files import (
    arrow_table,
    discard_draft,
    publish_draft,
    read_sheet,
    require_sound,
    write_draft,
)


class SpillFolder(PrivateFolder):
    """A new folder to spill to.

    Args:
        folder: where to make it; the system's temporary folder by default.
    """

    def __init__(self, folder: object = None) -> None:
        home = Path(gettempdir()) if folder is None else Path(str(folder))
        if not home.is_dir():
            message = f"the folder {home.name} to spill to does not exist"
            raise InvalidInput(message, field="spill", value=home.name)
        super().__init__(SPILL_PREFIX, home)


Result = TypeVar("Result")
CHECKED_NAME = "whosin_checked"
"""What a query is called that was planned and not run."""
BATCH_ROWS = 1_000_000
"""Rows that are drawn and written at a time."""
MAX_SHARED_QUESTIONS, MAX_SHARED_BYTES = 64, 2**18
"""Questions that one statement answers, where the sources are not larger than this once they are
read: planning then takes longer than reading. With many rows one more column to group by takes
longer, and the memory that it takes would depend on how many rows meet the conditions."""
STREAM_ROWS = 2**18
"""Rows that are given away at a time: enough to count fast, few enough to stay near."""


class DuckDB(Engine):
    """DuckDB, embedded.

    Args:
        memory: the most memory to use, such as "4GB"; what does not fit spills.
        threads: how many threads; all cores by default.
        spill: where to spill; the system's temporary folder by default.
        views: whether views of a database, and tables with computed columns, may be opened. They
            can hold any expression, one that fails on some rows too: look at them first.
    """

    name = "duckdb"
    most_tallied = sys.maxsize
    keys: ClassVar[tuple[str, ...]] = ("memory", "spill", "views")

    def __init__(
        self,
        memory: str | None = None,
        threads: int | None = None,
        spill: object = None,
        views: bool = False,
    ) -> None:
        require_extras("release")
        self._views = check_kind(views, bool, "views", "true or false")
        settings = (
            ("memory", "a size such as 4GB", "memory_limit", memory),
            ("threads", "a whole number of at least 1", "threads", threads),
        )
        self._settings = [each for each in settings if each[-1] is not None]
        self._folder = SpillFolder(spill)
        self._opened: list[ConfinedDatabase] = []
        self._unused: list[ConfinedDatabase] = []
        self._compiled: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._planned: weakref.WeakSet[Any] = weakref.WeakSet()
        self._columns: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        # Also when the program ends, or nobody refers to the engine any longer.
        self._close = weakref.finalize(self, _let_go, self._opened, self._unused, self._folder)
        try:
            # Are the settings right? The first source takes it.
            self._unused.append(ConfinedDatabase(self._folder.path, self._settings))
        except BaseException:
            self.close()
            raise

    def open(self, source: object) -> Any:
        """A path, a pattern of paths, a frame in memory, `workbook.xlsx::sheet`,
        `database.duckdb::table`, or a table of another database (see `databases`)."""
        if require_plain(source, [each.backend for each in self._opened]):
            return source
        return self.open_together([source])[0]

    def open_together(self, sources: Sequence[object]) -> list[Any]:
        """Several sources in one database, which can reach their files and nothing else."""
        home = self._new()
        try:
            opened = []
            for index, source in enumerate(sources):
                with further_source(index):
                    opened.append(self._open(home, source))
            files = [file for _, files in opened for file in files]
            home.confine(files)
            home.size += sum(map(home.decoded_size, files))
        except BaseException:
            self._opened.remove(home)
            home.close()
            raise
        return [table for table, _ in opened]

    def _open(self, home: ConfinedDatabase, source: object) -> tuple[Any, list[str]]:
        """A source in a database, and the files that are read again for each scan."""
        if isinstance(source, Path):
            source = str(source)
        if not isinstance(source, str):
            require_plain(source, ())
            return home.frame(arrow_table(source)), []
        if is_database(source):
            from whosin.release.engines.databases import open_table, read_address

            return home.fetched_table(open_table(read_address(source), views=self._views)), []
        require_local(source)
        if (sheet := split_sheet(source)) is not None:
            return home.frame(read_sheet(*sheet)), []
        if "::" in source:
            path, _, name = source.partition("::")
            return home.database(_check_existing(path), name, views=self._views), []
        kind = file_kind(source)
        files = [str(Path(file).absolute()) for file in list_files(source, kind)]
        try:
            if kind == "csv":
                return home.csv(files), files
            if kind == "parquet":
                return home.parquet(files, folders=Path(source).is_dir()), files
            require_sound(files)
            return home.arrow_files(files), files
        except (OSError, InvalidInput):
            raise
        except Exception:
            raise refuse_unreadable(source, kind) from None

    def split_source(self, data: Any, *, grouped: bool) -> Any:
        """The same, except where rows are fetched for an expression: only what it names is."""
        import ibis
        from ibis.expr.operations import DatabaseTable

        home = self._home(data)
        columns = dict(data.schema())
        if home.fetches or any(name.lower().startswith(ADDED_PREFIX) for name in columns):
            return None
        columns |= {f"{NUMBER_COLUMN}{name}": "float64" for name in _text_columns(data)}
        if grouped and home.size <= MAX_SHARED_BYTES:
            columns[QUESTION_COLUMN] = "int64"
        return DatabaseTable(ELIGIBLE_ROWS, ibis.schema(columns), home.backend).to_expr()

    def is_checked(self, expression: Any) -> bool:
        parts = expression.planned if isinstance(expression, FilteredScan) else [expression]
        return all(part.op() in self._planned for part in parts)

    def check(self, expression: Any) -> None:
        """Plan it, and read no row. The parts of a scan are planned on the columns of its source:
        to plan a file itself takes longer than all the rest."""
        home = self._home(expression)
        if not isinstance(expression, FilteredScan):
            self._plan(home, self._sql(home, expression), [expression])
            return
        shape, source = expression.shape, expression.source
        if source.op() not in self._columns:
            numbers = (f"{NUMBER_COLUMN}{name}" for name in _text_columns(source))
            added = "".join(f", NULL::DOUBLE AS {sql_identifier(name)}" for name in numbers)
            self._columns[source.op()] = home.keep_columns(f"*{added}", self._sql(home, source))
        columns = self._columns[source.op()]
        if shape is not None and shape.op() not in self._planned:
            rows = f"SELECT *, 0::BIGINT AS {QUESTION_COLUMN} FROM {columns}"
            self._plan(home, _shape_sql(rows, self._sql(home, shape)), [shape])
        new = [each for each in expression.planned if each.op() not in self._planned]
        if new:
            listed = ", ".join(self._condition_texts(home, source, new))
            self._plan(home, f"SELECT {listed} FROM {columns} AS {TABLE_ALIAS}", new)

    def _plan(self, home: ConfinedDatabase, sql: str, parts: Iterable[Any]) -> None:
        home.connection.execute(f"PREPARE {CHECKED_NAME} AS {sql}")
        self._planned.update(each.op() for each in parts)

    def run(self, expression: Any, progress: Progress | None = None) -> Any:
        """Run an aggregate; Ctrl-C stops it.

        Raises:
            SourceChanged: the files have another schema than when they were opened.
        """
        if not isinstance(expression, SharedScan):
            return self._run(expression, progress, self._answer)[0]
        place, found = expression.place, expression.found
        if place not in found:
            few = expression.whole.conditions[place : place + MAX_SHARED_QUESTIONS]
            scan = replace(expression.whole, conditions=few)
            found |= dict(enumerate(self._run(scan, progress, self._answer), place))
        return found.pop(place)

    def tally(self, expression: Any, count: RowCounter, progress: Progress | None = None) -> Array:
        """Like `run`, and no more than a few batches are held at a time."""

        def counted(home: ConfinedDatabase, expression: Any) -> Array:
            sql = self._sql(home, expression)
            return count(home.connection.sql(sql).to_arrow_reader(STREAM_ROWS))

        return self._run(expression, progress, counted)

    def digest_texts(self, texts: Any, by: str = "") -> dict[Any, tuple[int, int, int]]:
        """How many rows a table with a column `text` has, and two sums of the first digits of their
        MD5: 32 bits each, so that sums of 2^31 rows fit 64 bits; for each value of a further
        column, or under None for all."""

        def summed(home: ConfinedDatabase, expression: Any) -> dict[Any, tuple[int, int, int]]:
            key, grouped = (sql_identifier(by), " GROUP BY 1") if by else ("NULL", "")
            digests = f"SELECT *, md5_number(text) AS digest FROM ({self._sql(home, expression)})"
            parts = "sum((digest >> 96)::BIGINT), sum(((digest >> 64) & 4294967295)::BIGINT)"
            sums = f"SELECT {key}, count(*), {parts} FROM ({digests}){grouped}"
            # All rows: what is not fetched to its end blocks the connection.
            found = home.connection.execute(sums).fetchall()
            return {value: (rows, high, low) for value, rows, high, low in found}

        return self._run(texts, None, summed)

    def _run(
        self,
        expression: Any,
        progress: Progress | None,
        work: Callable[[ConfinedDatabase, Any], Result],
    ) -> Result:
        home = self._home(expression)
        home.require_same()

        def fetched() -> Result:
            with home.filled(expression):
                return work(home, expression)

        tell = partial(_report_progress, home, progress)
        result: Result = run_interruptibly(fetched, home.interrupt, tell)
        return result

    def write_rows(
        self, table: RedrawnFile, path: str, progress: Progress | None = None, owner: str = ""
    ) -> WrittenFile:
        """Only the number of rows in each cell is read. This number of rows is drawn, and written
        in the order of the cells."""
        counted = table.rows.group_by("code").aggregate(rows=table.rows.count())
        result = self.run(counted, progress)
        counts = np.zeros(table.cells, np.int64)
        counts[whole_numbers(result.column("code"))] = whole_numbers(result.column("rows"))
        drawn = np.zeros_like(counts)
        for codes in _repeat_cells(counts):
            drawn += np.bincount(table.draw(codes), minlength=table.cells)
        schema = table.batch(np.empty(0, np.int64)).schema
        batches = (table.batch(codes) for codes in _repeat_cells(drawn))
        return write_draft(batches, schema, Path(path), owner)

    def write_batches(
        self,
        batches: Iterable[Any],
        schema: Any,
        path: str,
        progress: Progress | None = None,
        owner: str = "",
    ) -> WrittenFile:
        return write_draft(batches, schema, Path(path), owner)

    def require_place(self, path: str) -> None:
        """A file is written: a folder, a link or a pipe is no place for it."""
        check_plain(Path(path), "path")

    def publish(self, path: str, digest: str) -> bool:
        return publish_draft(Path(path), digest)

    def discard(self, path: str, digest: str) -> None:
        discard_draft(Path(path), digest)

    def tables(self, path: str | Path) -> list[str]:
        """The tables of a DuckDB database, those outside its main schema as schema.table, or of an
        SQLite file."""
        if is_sqlite(path):
            from whosin.release.engines.databases import SQLITE, Address, list_tables

            return list_tables(Address(SQLITE, str(_check_existing(path)), ""), views=self._views)
        home = self._fresh()
        try:
            return home.tables(_check_existing(path), views=self._views)
        finally:
            home.close()

    def close(self) -> None:
        self._close()

    def _new(self) -> ConfinedDatabase:
        self._opened.append(self._fresh())
        return self._opened[-1]

    def _fresh(self) -> ConfinedDatabase:
        unused = self._unused
        return unused.pop() if unused else ConfinedDatabase(self._folder.path, self._settings)

    def _home(self, expression: Any) -> ConfinedDatabase:
        rows = expression.source if isinstance(expression, FilteredScan) else expression
        backend = rows.get_backend()
        return next(each for each in self._opened if each.backend is backend)

    def _sql(self, home: ConfinedDatabase, expression: Any) -> str:
        """An expression's SQL, compiled once: what was checked is what runs."""
        if isinstance(expression, FilteredScan):
            return self._filtered_sql(home, expression)
        operation = expression.op()
        if operation not in self._compiled:
            home.bring(memory_tables(expression))
            self._compiled[operation] = home.backend.compile(expression)
        return self._compiled[operation]

    def _filtered_sql(self, home: ConfinedDatabase, scan: FilteredScan) -> str:
        """The rows of each question, found in one pass over the source, and what is asked of them.
        Numbers that texts spell are read where a part names them."""
        shape, source = self._sql(home, scan.shape), self._sql(home, scan.source)
        places: dict[str, list[int]] = {}
        for place, each in enumerate(scan.conditions):
            named = [] if each is None else self._condition_texts(home, scan.source, [each])
            places.setdefault("".join(named) or "TRUE", []).append(place)
        parts = "\n".join((shape, *places))
        for name in _text_columns(scan.source):
            number = sql_identifier(f"{NUMBER_COLUMN}{name}")
            if number in parts:
                read = home.number_text.replace(TEXT_NAME, sql_identifier(name))
                source = f"SELECT *, {read} AS {number} FROM ({source}) AS {TABLE_ALIAS}"
        if QUESTION_COLUMN not in scan.shape.columns:
            (text,) = places
            rows = f"SELECT * FROM ({source}) AS {TABLE_ALIAS} WHERE {text}"
            return _shape_sql(rows, shape)
        asked = ", ".join(f"CASE WHEN {text} THEN {each} END" for text, each in places.items())
        listed = f"unnest(flatten([{asked}]::BIGINT[][])) AS {QUESTION_COLUMN}"
        return _shape_sql(f"SELECT *, {listed} FROM ({source}) AS {TABLE_ALIAS}", shape)

    def _condition_texts(
        self, home: ConfinedDatabase, source: Any, conditions: Sequence[Any]
    ) -> list[str]:
        """Conditions as SQL on `TABLE_ALIAS`; those that are new are compiled together."""
        new = {each.op(): each for each in conditions if each.op() not in self._compiled}
        if new:
            texts = home.value_texts(self.split_source(source, grouped=False), [*new.values()])
            self._compiled.update(zip(new, texts, strict=True))
        return [self._compiled[each.op()] for each in conditions]

    def _answer(self, home: ConfinedDatabase, expression: Any) -> list[Any]:
        """The result for each question that an expression asks."""
        result = self._fetch(home, expression)
        if QUESTION_COLUMN not in result.column_names:
            return [result]
        ends = whole_numbers(result[QUESTION_COLUMN]).searchsorted(
            range(len(expression.conditions) + 1)
        )
        result = result.drop_columns(QUESTION_COLUMN)
        return [result.slice(start, end - start) for start, end in pairwise(ends.tolist())]

    def _fetch(self, home: ConfinedDatabase, expression: Any) -> Any:
        import pyarrow as pa

        shape = expression.shape if isinstance(expression, FilteredScan) else expression
        schema = shape.schema().to_pyarrow()
        # DuckDB's sums are wider than Ibis says. Arrow could narrow them, and would import all of
        # its functions for that.
        columns = ", ".join(map(_narrow_sum, schema))
        order = f" ORDER BY {QUESTION_COLUMN}" if QUESTION_COLUMN in schema.names else ""
        sql = f"SELECT {columns} FROM ({self._sql(home, expression)}){order}"
        if all(str(field.type) == "int64" for field in schema):
            # Twice as fast as a relation, which DuckDB plans once to know its columns.
            try:
                found = home.connection.execute(sql).fetchnumpy()
            except BaseException:
                # What rows did to this result must not show in what is asked next.
                with contextlib.suppress(Exception):
                    home.connection.abort()
                raise
            whole = [list_column(found[name], "int64") for name in schema.names]
            return pa.table(whole, schema=schema)
        result = home.connection.sql(sql).to_arrow_table()
        return result if result.schema.equals(schema) else result.cast(schema)


def _text_columns(source: Any) -> list[str]:
    return [name for name, kind in source.schema().items() if kind.is_string()]


def _shape_sql(rows: str, shape: str) -> str:
    """What is asked of the rows that a query finds."""
    return f"WITH {ELIGIBLE_ROWS} AS NOT MATERIALIZED ({rows}) SELECT * FROM ({shape})"


def _narrow_sum(field: Any) -> str:
    """A column as SQL, a whole number of 64 bits where it is to be one."""
    name = sql_identifier(field.name)
    return f"CAST({name} AS BIGINT) AS {name}" if str(field.type) == "int64" else name


def _check_existing(path: str | Path) -> Path:
    resolved = Path(path).resolve()
    if not resolved.exists():
        raise FileNotFoundError(2, "no such file or directory", str(path))
    return resolved


def _report_progress(home: ConfinedDatabase, progress: Progress | None) -> None:
    if progress is not None:
        with contextlib.suppress(Exception):
            share = home.connection.query_progress()
            if share >= 0:
                progress(min(1.0, share / 100))


def _let_go(
    opened: list[ConfinedDatabase], unused: list[ConfinedDatabase], folder: SpillFolder
) -> None:
    for each in (*opened, *unused):
        each.close()
    folder.remove()


def _repeat_cells(counts: Array) -> Iterator[Array]:
    """Each cell's number as often as it has rows, in batches."""
    ends = np.cumsum(counts)
    for start in range(0, int(ends[-1]), BATCH_ROWS):
        rows = np.arange(start, min(start + BATCH_ROWS, ends[-1]))
        yield np.searchsorted(ends, rows, side="right")
