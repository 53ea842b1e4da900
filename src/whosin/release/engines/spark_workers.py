"""What Spark's workers do with batches of rows: counts, lines of CSV files, rows of databases.

Rows of databases on Spark: a worker fetches them, and DuckDB reads them there too. What a column
becomes is what it becomes in DuckDB, because it is DuckDB that reads it. A table is fetched by one
worker, in one state of its database; a worker needs this package, and the password in its own
environment or files.
"""

from __future__ import annotations

import errno
import glob
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from whosin.plain_files import (
    PRIVATE_FILE_MODE,
    PRIVATE_FOLDER_MODE,
    lock_folder,
    remove_unlocked_folders,
)
from whosin.release.engines.base import (
    BYTE_ORDER_MARK,
    CUT_CHARACTER,
    DIGEST_LETTERS,
    MAX_LINE_LENGTH,
    Header,
    draft_name,
)
from whosin.release.engines.databases import (
    DatabaseColumn,
    DatabaseTable,
    RowCondition,
    empty_table_sql,
    fetch_rows,
)
from whosin.release.engines.files import LOCKED_DRAFTS, NO_EXTENSIONS, unlock_drafts

BATCH_ROWS = 200_000
"""Rows that a worker changes at a time."""


TABLE_KEY = "table"
"""What a table is called inside of the folder that keeps it from others."""


class SparkFolder:
    """A folder of any file system that Spark knows, and one beside it for unfinished work.

    Spark makes folders and files that everyone may read. So a table is written inside of a folder
    that is for its owner only, and stays there as a draft until it has its public name; on this
    machine its own permissions are taken back too. No folder is replaced: here, renaming fails
    where there is anything; elsewhere there is a look first.
    """

    def __init__(self, session: Any, path: str) -> None:
        self._session, self._path = session, session._jvm.org.apache.hadoop.fs.Path
        target = self._path(path)
        self._files = target.getFileSystem(session._jsc.hadoopConfiguration())
        self._target = self._files.makeQualified(target)
        self._name = str(self._target.getName())
        self._partial = self._beside(f".{self._name}.{uuid.uuid4().hex[:8]}.partial")
        self._lock: int | None = None

    @property
    def partial(self) -> str:
        """Where to write the table."""
        return str(self._path(self._partial, TABLE_KEY).toString())

    @property
    def target(self) -> str:
        return str(self._target.toString())

    def exists(self) -> bool:
        return bool(self._files.exists(self._target))

    def begin(self) -> None:
        """Make the folder to write in, and remove those of killed processes."""
        here = self._here(self._partial)
        if here is None:
            private = self._session._jvm.org.apache.hadoop.fs.permission.FsPermission("700")
            self._files.mkdirs(self._partial, private)
            self._files.setPermission(self._partial, private)
            return
        remove_unlocked_folders(here.parent.glob(f".{glob.escape(self._name)}.*.partial"))
        begun = here.with_name(f".begun-{here.name}")
        begun.mkdir(PRIVATE_FOLDER_MODE)
        self._lock = lock_folder(begun)
        begun.rename(here)  # one of this name without a lock was left behind

    def keep(self, digest: str, owner: str) -> None:
        """Make the finished folder a draft, which only its digest names."""
        draft = self._beside(draft_name(self._name, digest, owner))
        here, kept = self._here(self._partial), self._here(draft)
        if here is not None and kept is not None:
            _make_private(here / TABLE_KEY)
            here.rename(kept)
            if self._lock is not None:
                LOCKED_DRAFTS[kept] = self._lock
                self._lock = None
        elif not self._files.rename(self._partial, draft):
            raise OSError(f"cannot write {self._name}")

    def publish(self, digest: str) -> bool:
        """Give a draft its public name; false where there is none, or something has the name."""
        draft = self._draft(digest)
        if draft is None:
            return False
        here, target = self._here(draft), self._here(self._target)
        if here is not None and target is not None:
            try:
                if target.is_symlink():
                    return False
                (here / TABLE_KEY).rename(target)  # a folder that holds something is not replaced
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    return False
                raise
        elif self.exists() or not self._files.rename(self._path(draft, TABLE_KEY), self._target):
            return False
        self.discard(digest)
        return True

    def unlock(self, digest: str) -> None:
        """Leave a draft whose name is taken: the ledger has stored its digest."""
        draft = self._draft(digest)
        unlock_drafts([None if draft is None else self._here(draft)])

    def discard(self, digest: str) -> None:
        """Remove a draft that was not stored, or what is left of one that is published."""
        draft = self._draft(digest)
        if draft is not None:
            self._files.delete(draft, True)
        unlock_drafts(each for each in LOCKED_DRAFTS if not each.exists())

    def clear(self) -> None:
        if self._files.exists(self._partial):
            self._files.delete(self._partial, True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _draft(self, digest: str) -> Any:
        start = "".join(f"\\{each}" if each in "\\*?[]{}," else each for each in self._name)
        pattern = f".{start}.*.{digest[:DIGEST_LETTERS]}.draft"
        found = self._files.globStatus(self._beside(pattern))
        return found[0].getPath() if found else None

    def _beside(self, name: str) -> Any:
        return self._path(self._target.getParent(), name)

    def _here(self, path: Any) -> Path | None:
        """A path of this machine's own files."""
        uri = path.toUri()
        return Path(str(uri.getPath())) if str(uri.getScheme()) == "file" else None


def _make_private(folder: Path) -> None:
    for home, _, names in os.walk(folder):
        os.chmod(home, PRIVATE_FOLDER_MODE)
        for name in names:
            os.chmod(Path(home, name), PRIVATE_FILE_MODE)


def change_batches(change: Callable[[Any], Any]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What a worker does with its batches: several small ones together, for speed."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        def changed(together: list[Any]) -> Iterator[Any]:
            table = pa.Table.from_batches(together).combine_chunks()
            for batch in table.to_batches():
                result = change(batch)
                plain = [
                    column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
                    for column in result.columns
                ]
                yield pa.RecordBatch.from_arrays(plain, names=result.schema.names)

        waiting: list[Any] = []
        for batch in batches:
            waiting.append(batch)
            if sum(each.num_rows for each in waiting) >= BATCH_ROWS:
                yield from changed(waiting)
                waiting = []
        if waiting:
            yield from changed(waiting)

    return work


CODE, ROWS = "code", "rows"
TALLY_SCHEMA = f"{CODE} long, {ROWS} long"


def tally_batches(
    count: Callable[[Iterable[Any]], Any],
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What a worker makes of its batches: the cells that are not 0 of what a function counts. Being
    pickled by value, as all functions inside functions, it needs no package of ours there."""
    names = [CODE, ROWS]

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        cells = count(batches)
        codes = cells.nonzero()[0]
        yield pa.RecordBatch.from_arrays([pa.array(codes), pa.array(cells[codes])], names=names)

    return work


def can_tally(session: Any) -> bool:
    """Whether Spark's workers have what `tally_batches` needs."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import numpy  # noqa: F401

        yield from batches

    try:
        session.range(1).mapInArrow(work, "id long").collect()
    except Exception:
        return False
    return True


def plain_columns(schema: Any) -> Any:
    """An Arrow schema whose columns hold values, not positions in a list of values."""
    import pyarrow as pa

    coded = pa.types.is_dictionary
    return pa.schema(
        [(each.name, each.type.value_type if coded(each.type) else each.type) for each in schema]
    )


SPARK_ROWS_BATCH = 1 << 16
"""Rows that a worker hands on at a time."""
EMPTY_COLUMN = DatabaseColumn("c", "INTEGER", ("1",))
"""What is fetched where rows are only counted."""


def database_frame(
    session: Any, table: DatabaseTable, needed: set[str], conditions: Sequence[RowCondition]
) -> Any:
    """A Spark frame of a table, with nothing in columns that are not needed."""
    from pyspark.sql import functions
    from pyspark.sql.pandas.types import from_arrow_schema

    chosen = [column for column in table.columns if column.name in needed and column.usable]
    names = {column.name for column in chosen}
    asked = chosen or [EMPTY_COLUMN]
    fetched = session.range(0, 1, 1, 1).mapInArrow(
        fetch_part(table, asked, conditions), from_arrow_schema(arrow_schema(asked))
    )
    columns = [
        (functions.col(quote_name(field.name)) if field.name in names else functions.lit(None))
        .cast(field.dataType)
        .alias(field.name)
        for field in from_arrow_schema(arrow_schema(table.columns)).fields
    ]
    return fetched.select(*columns)


def arrow_schema(columns: Sequence[DatabaseColumn]) -> Any:
    import duckdb

    with duckdb.connect(config=NO_EXTENSIONS) as connection:
        return connection.sql(empty_table_sql(columns)).to_arrow_table().schema


def fetch_part(
    table: DatabaseTable, columns: Sequence[DatabaseColumn], conditions: Sequence[RowCondition]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What the worker does that has a table's only part."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import duckdb

        for _ in batches:
            pass
        read = ", ".join(column.reading(index) for index, column in enumerate(columns))
        with (
            fetch_rows(table, columns, conditions) as reader,
            duckdb.connect(config=NO_EXTENSIONS) as connection,
        ):
            connection.execute("SET threads = 1")
            connection.register("arriving", reader)
            yield from connection.sql(f"SELECT {read} FROM arriving").to_arrow_reader(
                SPARK_ROWS_BATCH
            )

    return work


def quote_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


LINE_LENGTH_SETTING = "mapreduce.input.linerecordreader.line.maxlength"
MAX_READ_LENGTH = MAX_LINE_LENGTH + 100
"""Bytes of a line that Hadoop hands on; it skips longer ones, so that none fills a worker."""

BYTE_COLLATION = "UTF8_BINARY"
"""The collation that compares texts by their bytes."""


def csv_rows(text: Any, header: Header) -> Any:
    """Lines, in the column `value`, as a frame with the header's columns."""
    from pyspark.sql import functions as f

    separator, quote = header.separator, f.lit('"')
    line = f.ltrim(f.substring_index("value", CUT_CHARACTER, 1), f.lit(BYTE_ORDER_MARK))
    lines = text.select(line.alias("line"))
    lines = lines.filter(
        f.is_valid_utf8("line")
        & ~f.col("line").isin("", header.line)
        & (f.octet_length("line") <= MAX_LINE_LENGTH)
    )
    # Pieces between quotes: those at odd positions are inside, if all quotes are CSV's.
    pieces = f.split("line", quote, -1)
    last = f.size(pieces) - 1

    def fits(piece: Any, index: Any) -> Any:
        begins = (index == 0) | f.startswith(piece, f.lit(separator))
        ends = (index == last) | f.endswith(piece, f.lit(separator))
        return (index % 2 == 1) | (piece == "") | (begins & ends)

    def masked(piece: Any, index: Any) -> Any:
        inside = f.replace(piece, f.lit(separator), f.lit(CUT_CHARACTER))
        return f.when(index % 2 == 1, inside).otherwise(piece)

    whole = (last % 2 == 0) & f.forall(f.transform(pieces, fits), lambda each: each)
    hidden = f.array_join(f.transform(pieces, masked), '"')
    plain = ~f.contains(f.col("line"), quote)
    line = f.when(~plain & whole, hidden).otherwise(f.col("line"))
    fields = lines.select(f.split(line, f"[{separator}]", -1).alias("fields"))

    def column(index: int) -> Any:
        field = f.replace(f.get("fields", f.lit(index)), f.lit(CUT_CHARACTER), f.lit(separator))
        quoted = f.startswith(field, quote) & f.endswith(field, quote) & (f.char_length(field) > 1)
        inside = f.substring(field, f.lit(2), f.char_length(field) - 2)
        unquoted = f.when(quoted, f.replace(inside, f.lit('""'), quote)).otherwise(field)
        return f.nullif(unquoted, f.lit(""))

    named = [column(index) for index in range(len(header.columns))]
    return fields.select(*named).toDF(*header.columns)


def valid_texts(frame: Any) -> Any:
    """A frame whose texts are UTF-8 (what is not is repaired, since it could fail on its way out)
    and compared by their bytes, and whose moments are as they are in UTC."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType, TimestampType

    kinds = [field.dataType for field in frame.schema.fields]
    columns = []
    for name, kind in zip(frame.columns, kinds, strict=True):
        column = f.col(quote_name(name))
        if isinstance(kind, StringType):
            column = f.make_valid_utf8(column)
            if kind.simpleString() != "string":
                column = f.collate(column, BYTE_COLLATION)
        elif isinstance(kind, TimestampType):
            column = column.cast("timestamp_ntz")
        columns.append(column)
    return frame.select(*columns).toDF(*frame.columns)
