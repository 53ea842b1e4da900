"""What Spark's workers do with batches of rows, and where they put the result."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from whosin.release.engines.base import draft_name

BATCH = 200_000
"""Rows that a worker changes at a time."""


class SparkFolder:
    """A folder of any file system that Spark knows, and those beside it for unfinished work."""

    def __init__(self, session: Any, path: str) -> None:
        self._path = session._jvm.org.apache.hadoop.fs.Path
        target = self._path(path)
        self._files = target.getFileSystem(session._jsc.hadoopConfiguration())
        self._target = self._files.makeQualified(target)
        mark = uuid.uuid4().hex[:8]
        name = str(self._target.getName())
        self._partial = self._beside(f".{name}.{mark}.partial")
        self._old = self._beside(f".{name}.{mark}.old")

    @property
    def partial(self) -> str:
        return str(self._partial.toString())

    def keep(self, digest: str) -> None:
        """Make the finished folder a draft, which only its digest names."""
        if not self._files.rename(self._partial, self._draft(digest)):
            raise OSError(f"cannot write {self._target.getName()}")

    def publish(self, digest: str) -> bool:
        """Give a draft its public name, instead of what had it before; whether there is a
        folder of this name now."""
        draft = self._draft(digest)
        if self._files.exists(draft):
            if self._files.exists(self._target):
                self._files.rename(self._target, self._old)
            if not self._files.rename(draft, self._target):
                raise OSError(f"cannot write {self._target.getName()}")
        return bool(self._files.exists(self._target))

    def discard(self, digest: str) -> None:
        """Remove a draft that was not stored."""
        self._files.delete(self._draft(digest), True)

    def clear(self) -> None:
        for each in (self._partial, self._old):
            if self._files.exists(each):
                self._files.delete(each, True)

    def _draft(self, digest: str) -> Any:
        return self._beside(draft_name(str(self._target.getName()), digest))

    def _beside(self, name: str) -> Any:
        return self._path(self._target.getParent(), name)


def changing(change: Callable[[Any], Any]) -> Callable[[Iterator[Any]], Iterator[Any]]:
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
            if sum(each.num_rows for each in waiting) >= BATCH:
                yield from changed(waiting)
                waiting = []
        if waiting:
            yield from changed(waiting)

    return work


CODE, ROWS = "code", "rows"
TALLY = f"{CODE} long, {ROWS} long"


def tallied(count: Callable[[Iterable[Any]], Any]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What a worker makes of its batches: the cells that are not 0 of what a function counts. Being
    pickled by value, as all functions inside functions, it needs no package of ours there."""
    names = [CODE, ROWS]

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        cells = count(batches)
        codes = cells.nonzero()[0]
        yield pa.RecordBatch.from_arrays([pa.array(codes), pa.array(cells[codes])], names=names)

    return work


def able(session: Any) -> bool:
    """Whether Spark's workers have what `tallied` needs."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import numpy  # noqa: F401

        yield from batches

    try:
        session.range(1).mapInArrow(work, "id long").collect()
    except Exception:
        return False
    return True


def plain_schema(schema: Any) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(plain_columns(schema))


def plain_columns(schema: Any) -> Any:
    """An Arrow schema whose columns hold values, not positions in a list of values."""
    import pyarrow as pa

    fields = [
        pa.field(field.name, field.type.value_type if _coded(pa, field) else field.type)
        for field in schema
    ]
    return pa.schema(fields)


def _coded(pa: Any, field: Any) -> bool:
    return bool(pa.types.is_dictionary(field.type))
