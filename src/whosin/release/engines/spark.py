"""Spark, local or a cluster, through the same Ibis expressions. An extra: `whosin[spark]`.

The driver sees the schema and the aggregates, never rows. A task that is repeated after a failure
cannot let an entity count twice: all its rows meet in one task, by a hash of the entity.
"""

from __future__ import annotations

import hashlib
import signal
import threading
import uuid
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from whosin.errors import InvalidInput, UnknownName
from whosin.exact import Array
from whosin.extras import needs
from whosin.interrupts import run_interruptibly
from whosin.release.engines.base import (
    Engine,
    Progress,
    Redrawn,
    RowCounter,
    Schema,
    Written,
    files_of,
    in_memory,
    kind_of,
    unreadable,
)
from whosin.release.engines.csv_lines import MARK, Header, header_of, read_header
from whosin.release.engines.databases import Address, DatabaseTable, open_table, read_address
from whosin.release.engines.databases.needed import needed_columns, row_conditions
from whosin.release.engines.databases.spark_rows import database_frame
from whosin.release.engines.frames import arrow_table, require_plain
from whosin.release.engines.schemas import one_schema, parquet_schema
from whosin.release.engines.spark_lines import LONGEST_LINE, READABLE, csv_rows, valid
from whosin.release.engines.spark_sessions import open_session, silence, spill_folder, watch
from whosin.release.engines.workers import (
    CODE,
    ROWS,
    TALLY,
    SparkFolder,
    able,
    changing,
    plain_columns,
    plain_schema,
    tallied,
)
from whosin.validation import of_kind

LARGEST = 50_000_000
"""Rows of a written file, so that a worker can hold one to take its digest."""
SMALL = 100_000
"""Entries of a list that each worker gets whole, so that a join with it sends no rows around."""
MOST_TALLIED = 2**24
"""Cells that a worker holds: 128 MiB."""
PATIENCE = 10
"""Seconds that a cancelled job has to end."""


class Spark(Engine):
    """Spark.

    Args:
        master: a Spark master URL, or "local[*]".
        session: a SparkSession to use instead of a new one.
        settings: Spark settings for a new session.
        spill: where a local session spills; the system's temporary folder by default.
        views: whether views of a database may be opened, as for DuckDB.
    """

    name = "spark"
    keys: ClassVar[tuple[str, ...]] = ("master", "spill", "views")

    def __init__(
        self,
        master: str = "local[*]",
        session: Any = None,
        settings: dict[str, str] | None = None,
        spill: object = None,
        views: bool = False,
    ) -> None:
        needs("release", "spark")
        import ibis

        self._views = of_kind(views, bool, "views", "true or false")

        if not isinstance(master, str):
            raise InvalidInput("master", "a master URL such as local[*]", repr(master)[:80])
        local = session is None and master.startswith("local")
        if spill is not None and not local:
            accepted = "left out with a cluster, whose workers have settings of their own"
            raise InvalidInput("spill", accepted, "a folder")
        self._own, self._handler = session is None, signal.getsignal(signal.SIGINT)
        self._folder = spill_folder(spill) if local else None
        settings = dict(settings or {})
        if self._folder is not None:
            settings.setdefault("spark.local.dir", str(self._folder.path))
        self.session = open_session(master, settings) if session is None else session
        silence()
        self._ibis = ibis.pyspark.connect(self.session)
        self._lists: set[str] = set()
        self._schemas: dict[str, Schema] = {}
        self._databases: dict[str, DatabaseTable] = {}

    def open(self, source: object) -> Any:
        """A path that the workers can read, `::table` of the catalogue, a frame in memory, or a
        table of a database (see `databases`), which one worker fetches."""
        if isinstance(source, Path):
            source = str(source)
        if require_plain(source, [self._ibis]):
            return source
        if not isinstance(source, str):
            return self._frame(source)
        if source.startswith("::"):
            return self._catalogue(source.removeprefix("::"))
        address = read_address(source)
        if address is not None:
            return self._database(address)
        kind = kind_of(source)
        if kind == "arrow":
            raise InvalidInput("table", "a .parquet or .csv file, or ::table, on Spark", source)
        files = None if "://" in source else files_of(source, kind)
        try:
            if kind == "parquet":
                return self._parquet(source, files)
            return self._csv(source, files)
        except (OSError, InvalidInput):
            raise
        except Exception as error:
            if "PATH_NOT_FOUND" in str(error):
                raise FileNotFoundError(2, "no such file or directory", source) from None
            raise unreadable(source, kind) from None

    def check(self, expression: Any) -> None:
        """Plan it, asking for no rows."""
        self.run(expression.limit(0))

    def run(self, expression: Any, progress: Progress | None = None) -> Any:
        """Run an aggregate; Ctrl-C cancels the job.

        Raises:
            SourceChanged: the files have another schema than when they were opened.
        """
        self._require_same(expression)
        return self._do(lambda: self._sql(expression).toArrow(), progress)

    @cached_property
    def most_tallied(self) -> int:
        """Workers count where they can: those of a session of ours on this machine, and others that
        have Arrow and NumPy. It is tried before anything is spent."""
        return MOST_TALLIED if self._folder is not None or able(self.session) else 0

    def tally(self, expression: Any, count: RowCounter, progress: Progress | None = None) -> Array:
        """Each worker counts its rows, and Spark adds up what they found."""
        from pyspark.sql import functions

        self._require_same(expression)

        def work() -> Any:
            parts = self._sql(expression).mapInArrow(tallied(count), TALLY)
            return parts.groupBy(CODE).agg(functions.sum(ROWS).alias(ROWS)).toArrow()

        counts = self._do(work, progress)
        result = count(())
        result[counts.column(CODE).to_numpy()] = counts.column(ROWS).to_numpy()
        return result

    def write_rows(self, table: Redrawn, path: str, progress: Progress | None = None) -> Written:
        """The rows in random order, drawn where they are: a folder of Parquet files, written by the
        workers, which need this package too. It is a whole draft, until `publish` names it."""
        from pyspark.sql import functions

        draw, as_batch, expression = table.draw, table.batch, table.rows

        def change(batch: Any) -> Any:
            codes = batch.column(0).to_numpy(zero_copy_only=False).astype(np.int64)
            return as_batch(draw(codes))

        schema = as_batch(np.empty(0, np.int64)).schema
        self._require_same(expression)
        lot = "whosin_lot"
        # Repeating a task gives the same lots: the rows come sorted out of the window before, and
        # Spark's rand has a fixed seed in a plan. So no row is lost or doubled by a retry.
        rows = self._sql(expression).withColumn(lot, functions.rand())
        rows = rows.repartition(functions.col(lot)).sortWithinPartitions(lot).drop(lot)
        changed = rows.mapInArrow(changing(change), plain_schema(schema))
        return self._draft(changed, path, progress)

    def write_batches(
        self, batches: Iterable[Any], schema: Any, path: str, progress: Progress | None = None
    ) -> Written:
        """Write a draft, a folder of files, from rows that this process holds."""
        import pyarrow as pa

        table = pa.Table.from_batches(batches, schema).cast(plain_columns(schema))
        return self._draft(self.session.createDataFrame(table), path, progress)

    def _draft(self, frame: Any, path: str, progress: Progress | None) -> Written:
        folder = SparkFolder(self.session, path)

        def work() -> Written:
            frame.write.option("maxRecordsPerFile", LARGEST).parquet(folder.partial)
            return self._written(folder.partial)

        try:
            written: Written = self._do(work, progress)
            folder.keep(written.digest)
        finally:
            folder.clear()
        return written

    def publish(self, path: str, digest: str) -> bool:
        """Give a draft its public name; whether there is a table of this name now."""
        folder = SparkFolder(self.session, path)
        try:
            return folder.publish(digest)
        finally:
            folder.clear()

    def discard(self, path: str, digest: str) -> None:
        """Remove a draft that was not stored."""
        SparkFolder(self.session, path).discard(digest)

    def close(self) -> None:
        """Stop a session of our own, and take Ctrl-C back from it."""
        if self._own:
            self.session.stop()
            if self._folder is not None:
                self._folder.empty()
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, self._handler)

    def _require_same(self, expression: Any) -> None:
        from ibis.expr.operations import DatabaseTable

        for table in expression.op().find(DatabaseTable):
            if table.name in self._schemas:
                self._schemas[table.name].require_same()

    def _written(self, folder: str) -> Written:
        """Rows and digest, both found by the workers."""
        from pyspark.sql import functions

        rows = self.session.read.parquet(folder).count()
        files = self.session.read.format("binaryFile").option("pathGlobFilter", "*.parquet")
        digests = (
            files.load(folder).select(functions.sha2("content", 256).alias("digest")).collect()
        )
        lines = "".join(f"{row.digest}\n" for row in sorted(digests))
        return Written(rows, hashlib.sha256(lines.encode()).hexdigest())

    def _do(self, work: Callable[[], Any], progress: Progress | None) -> Any:
        context = self.session.sparkContext
        group, done = f"whosin-{uuid.uuid4().hex}", threading.Event()

        def attempt() -> Any:
            context.setLocalProperty("spark.jobGroup.id", group)
            return work()

        if progress is not None:
            args = (context.statusTracker(), group, progress, done)
            threading.Thread(target=watch, args=args, daemon=True).start()
        try:
            cancel = partial(context.cancelJobGroup, group)
            return run_interruptibly(attempt, cancel, patience=PATIENCE)
        finally:
            done.set()

    def _sql(self, expression: Any) -> Any:
        """An expression as a Spark frame. (Ibis itself goes by way of pandas, whose warnings repeat
        Spark's errors, and so rows.)"""
        from pyspark.sql.functions import broadcast

        if self._databases:
            self._fetch(expression)
        for table in in_memory(expression):
            if table.name not in self._lists:
                entries = table.data.to_pyarrow(table.schema)
                frame = self.session.createDataFrame(entries)
                if len(entries) <= SMALL:
                    frame = broadcast(frame)
                frame.createOrReplaceTempView(table.name)
                self._lists.add(table.name)
        return self.session.sql(self._ibis.compile(expression))

    def _view(self, frame: Any, schema: Schema | None = None) -> Any:
        name = f"whosin_{uuid.uuid4().hex}"
        valid(frame).createOrReplaceTempView(name)
        if schema is not None:
            self._schemas[name] = schema
        return self._ibis.table(name)

    def _frame(self, source: Any) -> Any:
        return self._view(self.session.createDataFrame(arrow_table(source)))

    def _database(self, address: Address) -> Any:
        def read() -> DatabaseTable:
            return open_table(address, views=self._views)

        table = read()
        result = self._view(database_frame(self.session, table, set(), ()), Schema(read))
        self._databases[result.op().name] = table
        return result

    def _fetch(self, expression: Any) -> None:
        """Have the tables of databases that an expression reads give the columns that it needs."""
        for name, needed in needed_columns(expression).items():
            if name in self._databases:
                rows = row_conditions(expression, name)
                frame = database_frame(self.session, self._databases[name], needed, rows)
                valid(frame).createOrReplaceTempView(name)

    def _catalogue(self, name: str) -> Any:
        if not self.session.catalog.tableExists(name):
            known = [table.name for table in self.session.catalog.listTables()]
            raise UnknownName("table", name, known)
        return self._view(self.session.table(name))

    def _parquet(self, source: str, files: list[str] | None) -> Any:
        reader = self.session.read
        if files is None:
            result = reader.parquet(source)
            schema = Schema(partial(self._one_schema, result.inputFiles()))
            return self._view(result, schema)
        schema = Schema(partial(parquet_schema, files))
        if Path(source).is_dir():  # its folders may be named column=value
            reader = reader.option("basePath", source)
        return self._view(reader.parquet(*map(_escaped, files)), schema)

    def _one_schema(self, files: list[str]) -> object:
        read = self.session.read
        return one_schema({file: read.parquet(file).schema.fields for file in files})

    def _csv(self, source: str, files: list[str] | None) -> Any:
        """The lines of CSV files by the rules of `texts`."""
        read = partial(self._first_line, source) if files is None else partial(read_header, files)
        paths = [source] if files is None else [_escaped(file) for file in files]
        schema = Schema(read)
        text = self.session.read.option(LONGEST_LINE, READABLE).text(paths)
        return self._view(csv_rows(text, read()), schema)

    def _first_line(self, source: str) -> Header:
        first = self.session.read.option(LONGEST_LINE, READABLE).text(source).head()
        return header_of("" if first is None else first[0].lstrip(MARK))


def _escaped(path: str) -> str:
    """A local file's name is no pattern to Spark, whatever letters it has."""
    if "://" in path:
        return path
    return "".join(f"\\{letter}" if letter in "\\*?[]{}," else letter for letter in path)
