"""Spark through the same Ibis expressions: the engine and its sessions.

Nothing that Spark or PySpark writes by itself may quote rows, so their logs are off. A local
session listens to this machine alone. Answers do not depend on the settings of a program or a
machine: every engine has SQL settings of its own (`isolate_settings`), where whatever can change
the meaning of an expression or of a file is as Spark has it by default, or as we need it. A program
whose own Spark runs keeps it as it is: it is used where it is handed over, and never stopped.

The driver sees the schema and the aggregates, never rows. A task that is repeated after a failure
cannot let a privacy unit count twice: all its rows meet in one task, by a hash of the privacy unit.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from whosin.errors import InvalidInput, UnknownName, Unsupported, check_kind, require_extras
from whosin.exact import Array
from whosin.interrupts import INTERRUPT_POLL_SECONDS, run_interruptibly
from whosin.release.engines.base import (
    BYTE_ORDER_MARK,
    Engine,
    Header,
    Progress,
    RedrawnFile,
    RowCounter,
    Schema,
    WrittenFile,
    file_kind,
    is_database,
    list_files,
    memory_tables,
    one_schema,
    parquet_schema,
    parse_header,
    read_header,
    refuse_unreadable,
    require_plain,
    split_sheet,
)
from whosin.release.engines.databases import (
    Address,
    DatabaseTable,
    needed_columns,
    open_table,
    read_address,
    row_conditions,
)
from whosin.release.engines.duckdb import SpillFolder
from whosin.release.engines.files import arrow_table, read_sheet
from whosin.release.engines.spark_workers import (
    CODE,
    LINE_LENGTH_SETTING,
    MAX_READ_LENGTH,
    ROWS,
    TALLY_SCHEMA,
    SparkFolder,
    can_tally,
    change_batches,
    csv_rows,
    database_frame,
    plain_columns,
    tally_batches,
    valid_texts,
)

QUOTING_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers of PySpark that quote values of failed expressions."""
SESSION_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",  # a log line may quote rows
}
"""Of a new session, unless its caller says otherwise."""
NO_DAMAGE_IGNORED = {
    "spark.files.ignoreCorruptFiles": "false",
    "spark.files.ignoreMissingFiles": "false",
}
"""Settings that a running Spark keeps: where they are otherwise, it is refused."""
FILE_OPTIONS = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
"""Of every reader: a damaged or missing part is a failure."""
PARQUET_OPTIONS = {
    **FILE_OPTIONS,
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
PINNED_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    # A text such as '${env:HOME}' is itself.
    "spark.sql.variable.substitute": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.readSideCharPadding": "true",
}
"""What expressions and files mean to us; all other settings of SQL that are not `FREE_SETTINGS` are
as Spark has them by default."""
SQL_PREFIX = "spark.sql."
FREE_SETTINGS = (
    *("adaptive.", "catalog.", "codegen.", "hive.metastore.", "inMemoryColumnarStorage."),
    *("shuffle.", "streaming.", "ui.", "autoBroadcastJoinThreshold", "broadcastTimeout"),
    *("defaultCatalog", "files.maxPartition", "files.minPartition", "files.openCostInBytes"),
    *("join.preferSortMergeJoin", "parquet.compression.codec", "warehouse.dir", "extensions"),
    *("execution.arrow.maxRecordsPerBatch", "catalogImplementation", "maxPlanStringLength"),
)
"""How the settings of SQL begin that say where and how fast, and change no answer."""

_OUR_SESSIONS: list[OwnSpark] = []
"""The Spark of this process that we started, while it runs."""
_SPILL_FOLDERS: list[SpillFolder] = []
"""The one folder of this process, once there is one."""


def spill_folder(folder: object) -> SpillFolder:
    """Spark's Java process keeps the folder of its first session, and so do we while we run: made
    anew by a later session it would have no lock, and others would take it for abandoned."""
    if _SPILL_FOLDERS:
        (first,) = _SPILL_FOLDERS
        if folder is not None and Path(str(folder)).resolve() != first.path.parent.resolve():
            message = "spill cannot change: Spark keeps the folder of this program's first session"
            raise InvalidInput(
                message, field="spill", value=Path(str(folder)).name, hint="leave it out"
            )
        return first
    _SPILL_FOLDERS.append(SpillFolder(folder))
    return _SPILL_FOLDERS[0]


@dataclass
class OwnSpark:
    """A Spark that we started.

    Attributes:
        settings: what it was started with, its master too.
        users: how many engines use it; the last one stops it.
    """

    session: Any
    settings: dict[str, str]
    users: int = 1

    def close(self) -> bool:
        """One engine less; whether it was the last one."""
        self.users -= 1
        if self.users > 0:
            return False
        _OUR_SESSIONS.remove(self)
        self.session.stop()
        return True


def start_spark(master: str, settings: Mapping[str, str]) -> OwnSpark:
    """A Spark of our own, for one more engine.

    Raises:
        InvalidInput: the program's own runs already, ours has other settings, or these settings
            change what answers mean.
        Unsupported: Spark cannot start.
    """
    check_settings(settings)
    wanted = {"spark.master": master, **settings}
    wanted.pop("spark.local.dir", None)
    for own in _OUR_SESSIONS:
        if not own.session.sparkContext._jsc.sc().isStopped():
            if own.settings != wanted:
                message = "settings differ from those of the Spark that this program runs already"
                hint = "close that one first, or give the same settings"
                raise InvalidInput(message, field="settings", hint=hint)
            own.users += 1
            return own
    _OUR_SESSIONS.clear()  # stopped by somebody else
    _OUR_SESSIONS.append(OwnSpark(_new_session(master, settings), wanted))
    return _OUR_SESSIONS[0]


def _new_session(master: str, settings: Mapping[str, str]) -> Any:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        message = "this program runs Spark already"
        raise InvalidInput(
            message, field="session", hint="hand it over, as in Spark(session=spark)"
        )
    fixed = dict(SESSION_SETTINGS)
    if master.startswith("local"):
        fixed |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        # Local workers are this Python, not the first one on the path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Not by SparkSession.builder, which belongs to the program, with its settings.
    builder = SparkSession.Builder().master(master).appName("whosin")
    for key, value in (fixed | dict(settings) | NO_DAMAGE_IGNORED).items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception:
        message = f"Spark cannot start with the master {master!r}"
        raise Unsupported(
            message, field="master", value=master, hint="it needs Java 17 and a master that answers"
        ) from None
    session.sparkContext.setLogLevel("OFF")
    return session


def check_settings(settings: Mapping[str, str]) -> None:
    """Refuse settings that change what an answer means.

    Raises:
        InvalidInput: one that does.
    """
    for key, value in settings.items():
        meant = (PINNED_SETTINGS | NO_DAMAGE_IGNORED).get(key)
        if meant is not None and str(value).lower() != meant.lower():
            message = f"settings has {key} = {str(value)[:80]!r}, and answers need {meant!r}"
            raise InvalidInput(message, field="settings", value=key, hint="leave it out")
        if meant is None and not _is_free(key):
            message = (
                f"settings has {str(key)[:80]}, which could change what an expression or a file "
                "means"
            )
            raise InvalidInput(message, field="settings", value=str(key)[:80], hint="leave it out")


def isolate_settings(given: Any) -> Any:
    """A session of the same Spark with settings of its own, where those that answers depend on are
    ours. The given one stays as it is.

    Raises:
        InvalidInput: Spark was started with a setting that answers depend on and that stays.
    """
    started = given.sparkContext.getConf()
    for key, meant in NO_DAMAGE_IGNORED.items():
        if (value := started.get(key, meant)).lower() != meant:
            message = f"this Spark was started with {key} = {value}"
            raise InvalidInput(
                message, field="session", value=value, hint=f"start it with {key} = {meant}"
            )
    result = given.newSession()
    for key in result.conf.getAll:
        if not _is_free(key) and result.conf.isModifiable(key):
            result.conf.unset(key)
    for key, value in given.conf.getAll.items():
        if _is_free(key) and result.conf.get(key, None) != value:
            with contextlib.suppress(Exception):  # some are fixed once Spark runs
                result.conf.set(key, value)
    for key, value in PINNED_SETTINGS.items():
        result.conf.set(key, value)
    result.catalog.setCurrentCatalog(given.catalog.currentCatalog())
    result.catalog.setCurrentDatabase(given.catalog.currentDatabase())
    return result


def _is_free(key: str) -> bool:
    return not key.startswith(SQL_PREFIX) or key.removeprefix(SQL_PREFIX).startswith(FREE_SETTINGS)


def silence_failures() -> None:
    """Have PySpark write no failures to the error output: they may quote rows."""
    from pyspark.logger import PySparkLogger

    for name in QUOTING_LOGGERS:
        PySparkLogger.getLogger(name).disabled = True


def watch_progress(tracker: Any, group: str, progress: Progress, done: threading.Event) -> None:
    """Tell the share of finished tasks. Stages come as they are planned, so it may only grow."""
    share = 0.0
    while not done.wait(INTERRUPT_POLL_SECONDS):
        with contextlib.suppress(Exception):
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
            tasks = sum(stage.numTasks for stage in stages if stage)
            finished = sum(stage.numCompletedTasks for stage in stages if stage)
            share = max(share, finished / tasks if tasks else 0.0)
            progress(share)


MAX_DRIVER_BYTES = 50_000_000
"""Rows of a written file, so that a worker can hold one to take its digest."""
SMALL_TABLE_ROWS = 100_000
"""Entries of a list that each worker gets whole, so that a join with it sends no rows around."""
MAX_TALLIED_CELLS = 2**24
"""Cells that a worker holds: 128 MiB."""
STOP_SECONDS = 10
"""Seconds that a cancelled job has to end."""


class Spark(Engine):
    """Spark.

    Args:
        master: a Spark master URL, or "local[*]".
        session: a SparkSession to use instead of a new one; it is neither changed nor stopped. A
            program that runs Spark has to hand it over: there is one in a program.
        settings: Spark settings for a new session; none that change what an answer means.
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
        require_extras("release", "spark")
        import ibis

        self._views = check_kind(views, bool, "views", "true or false")
        master = check_kind(master, str, "master", "a master URL such as local[*]")
        local = session is None and master.startswith("local")
        if spill is not None and not local:
            message = (
                "spill has no meaning with a cluster, whose workers have settings of their own"
            )
            raise InvalidInput(message, field="spill", hint="leave it out")
        self._handler = signal.getsignal(signal.SIGINT)
        self._folder = spill_folder(spill) if local else None
        settings = dict(settings or {})
        if self._folder is not None:
            settings.setdefault("spark.local.dir", str(self._folder.path))
        self._own = start_spark(master, settings) if session is None else None
        self._given = session if self._own is None else self._own.session
        try:
            self.session = isolate_settings(self._given)
        except BaseException:
            self._stop()
            raise
        silence_failures()
        self._ibis = ibis.pyspark.connect(self.session)
        self._lists: set[str] = set()
        self._schemas: dict[str, Schema] = {}
        self._databases: dict[str, DatabaseTable] = {}
        self._shared: list[str] = []

    def open(self, source: object) -> Any:
        """A path that the workers can read, `::table` of the catalogue, a frame in memory, or a
        table of a database (see `databases`), which one worker fetches."""
        if isinstance(source, Path):
            source = str(source)
        if require_plain(source, [self._ibis]):
            return source
        if not isinstance(source, str):
            return self._view(self.session.createDataFrame(arrow_table(source)))
        if source.startswith("::"):
            return self._catalogue(source.removeprefix("::"))
        if is_database(source):
            return self._database(read_address(source))
        if (sheet := split_sheet(source)) is not None:
            return self._view(self.session.createDataFrame(read_sheet(*sheet)))
        kind = file_kind(source)
        if kind == "arrow":
            message = f"Spark does not read Arrow files such as {Path(source).name}"
            hint = "give a .parquet or .csv file, or ::table"
            raise InvalidInput(message, field="table", value=Path(source).name, hint=hint)
        files = None if "://" in source else list_files(source, kind)
        try:
            if kind == "parquet":
                return self._parquet(source, files)
            return self._csv(source, files)
        except (OSError, InvalidInput):
            raise
        except Exception as error:
            if "PATH_NOT_FOUND" in str(error):
                raise FileNotFoundError(2, "no such file or directory", source) from None
            raise refuse_unreadable(source, kind) from None

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
        return MAX_TALLIED_CELLS if self._folder is not None or can_tally(self.session) else 0

    def tally(self, expression: Any, count: RowCounter, progress: Progress | None = None) -> Array:
        """Each worker counts its rows, and Spark adds up what they found."""
        from pyspark.sql import functions

        self._require_same(expression)

        def work() -> Any:
            parts = self._sql(expression).mapInArrow(tally_batches(count), TALLY_SCHEMA)
            return parts.groupBy(CODE).agg(functions.sum(ROWS).alias(ROWS)).toArrow()

        counts = self._do(work, progress)
        result = count(())
        result[counts.column(CODE).to_numpy()] = counts.column(ROWS).to_numpy()
        return result

    def write_rows(
        self, table: RedrawnFile, path: str, progress: Progress | None = None, owner: str = ""
    ) -> WrittenFile:
        """The rows in random order, drawn where they are: a folder of Parquet files, written by the
        workers, which need this package too. It is a whole draft, until `publish` names it."""
        from pyspark.sql import functions
        from pyspark.sql.pandas.types import from_arrow_schema

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
        changed = rows.mapInArrow(change_batches(change), from_arrow_schema(plain_columns(schema)))
        return self._draft(changed, path, progress, owner)

    def write_batches(
        self,
        batches: Iterable[Any],
        schema: Any,
        path: str,
        progress: Progress | None = None,
        owner: str = "",
    ) -> WrittenFile:
        """Write a draft, a folder of files, from rows that this process holds."""
        import pyarrow as pa

        table = pa.Table.from_batches(batches, schema).cast(plain_columns(schema))
        return self._draft(self.session.createDataFrame(table), path, progress, owner)

    def _draft(self, frame: Any, path: str, progress: Progress | None, owner: str) -> WrittenFile:
        folder = SparkFolder(self.session, path)
        folder.begin()

        def work() -> WrittenFile:
            frame.write.option("maxRecordsPerFile", MAX_DRIVER_BYTES).parquet(folder.partial)
            rows = self.session.read.parquet(folder.partial).count()
            return WrittenFile(rows, self._digest(folder.partial))

        try:
            written: WrittenFile = self._do(work, progress)
            folder.keep(written.digest, owner)
        finally:
            folder.clear()
        return written

    def publish(self, path: str, digest: str) -> bool:
        folder = SparkFolder(self.session, path)
        if folder.publish(digest):
            return True
        try:
            there = folder.exists() and self._digest(folder.target)
        except Exception:  # whatever has the name cannot be read as a table of ours
            there = None
        if there != digest:
            folder.unlock(digest)
            return False
        folder.discard(digest)
        return True

    def require_place(self, path: str) -> None:
        """A folder is written: a file or a link is no place for it."""
        place = Path(path)
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            message = f"path {place.name} is a file or a link, and Spark writes a folder"
            raise InvalidInput(message, field="path", value=place.name, hint="choose a new name")

    def discard(self, path: str, digest: str) -> None:
        SparkFolder(self.session, path).discard(digest)

    def close(self) -> None:
        """Stop a session of our own, if no other engine uses it, and take Ctrl-C back from it."""
        for name in self._shared:
            self.session.catalog.dropGlobalTempView(name)
        self._shared.clear()
        self._stop()

    def _stop(self) -> None:
        own, self._own = self._own, None
        if own is not None and own.close():
            if self._folder is not None:
                self._folder.empty()
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, self._handler)

    def _require_same(self, expression: Any) -> None:
        from ibis.expr.operations import DatabaseTable

        for table in expression.op().find(DatabaseTable):
            if table.name in self._schemas:
                self._schemas[table.name].require_same()

    def _digest(self, folder: str) -> str:
        from pyspark.sql import functions

        files = self.session.read.format("binaryFile").option("pathGlobFilter", "*.parquet")
        digests = files.load(folder).select(functions.sha2("content", 256)).collect()
        lines = "".join(f"{digest}\n" for (digest,) in sorted(digests))
        return hashlib.sha256(lines.encode()).hexdigest()

    def _do(self, work: Callable[[], Any], progress: Progress | None) -> Any:
        context = self.session.sparkContext
        group, done = f"whosin-{uuid.uuid4().hex}", threading.Event()

        def attempt() -> Any:
            context.setLocalProperty("spark.jobGroup.id", group)
            return work()

        if progress is not None:
            args = (context.statusTracker(), group, progress, done)
            threading.Thread(target=watch_progress, args=args, daemon=True).start()
        try:
            cancel = partial(context.cancelJobGroup, group)
            return run_interruptibly(attempt, cancel, patience=STOP_SECONDS)
        finally:
            done.set()

    def _sql(self, expression: Any) -> Any:
        """An expression as a Spark frame. (Ibis itself goes by way of pandas, whose warnings repeat
        Spark's errors, and so rows.)"""
        from pyspark.sql.functions import broadcast

        if self._databases:
            self._fetch(expression)
        for table in memory_tables(expression):
            if table.name not in self._lists:
                entries = table.data.to_pyarrow(table.schema)
                frame = self.session.createDataFrame(entries)
                if len(entries) <= SMALL_TABLE_ROWS:
                    frame = broadcast(frame)
                frame.createOrReplaceTempView(table.name)
                self._lists.add(table.name)
        return self.session.sql(self._ibis.compile(expression))

    def _view(self, frame: Any, schema: Schema | None = None) -> Any:
        name = f"whosin_{uuid.uuid4().hex}"
        valid_texts(frame).createOrReplaceTempView(name)
        if schema is not None:
            self._schemas[name] = schema
        return self._ibis.table(name)

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
                valid_texts(frame).createOrReplaceTempView(name)

    def _catalogue(self, name: str) -> Any:
        if self.session.catalog.tableExists(name):
            return self._view(self.session.table(name))
        if not self._given.catalog.tableExists(name):
            known = [table.name for table in self._given.catalog.listTables()]
            raise UnknownName("table", name, known)
        # A temporary view of the program's session, which ours sees if all do.
        shared = f"whosin_{uuid.uuid4().hex}"
        self._given.table(name).createGlobalTempView(shared)
        self._shared.append(shared)
        return self._view(self.session.table(f"global_temp.{shared}"))

    def _parquet(self, source: str, files: list[str] | None) -> Any:
        reader = self.session.read.options(**PARQUET_OPTIONS)
        if files is None:
            result = reader.parquet(source)
            return self._view(result, Schema(partial(self._one_schema, result.inputFiles())))
        schema = Schema(partial(parquet_schema, files))
        if Path(source).is_dir():  # its folders may be named column=value
            reader = reader.option("basePath", source)
        return self._view(reader.parquet(*map(_escape_path, files)), schema)

    def _one_schema(self, files: list[str]) -> object:
        read = self.session.read.options(**PARQUET_OPTIONS)
        return one_schema({file: read.parquet(file).schema.fields for file in files})

    def _csv(self, source: str, files: list[str] | None) -> Any:
        read = partial(self._first_line, source) if files is None else partial(read_header, files)
        paths = [source] if files is None else [_escape_path(file) for file in files]
        return self._view(csv_rows(self._lines().text(paths), read()), Schema(read))

    def _first_line(self, source: str) -> Header:
        first = self._lines().text(source).head()
        return parse_header("" if first is None else first[0].lstrip(BYTE_ORDER_MARK))

    def _lines(self) -> Any:
        limits = {LINE_LENGTH_SETTING: MAX_READ_LENGTH}
        return self.session.read.options(**FILE_OPTIONS, **limits)


def _escape_path(path: str) -> str:
    """A local file's name is no pattern to Spark, whatever letters it has."""
    if "://" in path:
        return path
    return "".join(f"\\{letter}" if letter in "\\*?[]{}," else letter for letter in path)
