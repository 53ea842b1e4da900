"""Parquet files: whether several are one table, and writing one whole, so that a broken one never
gets the name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from whosin.errors import InvalidInput
from whosin.release.engines.base import Written


def write_whole(batches: Iterable[Any], schema: Any, path: Path) -> Written:
    """Write RecordBatches beside the file's place, and move the file there when it is complete."""
    import pyarrow.parquet as pq

    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    rows = 0
    try:
        with pq.ParquetWriter(partial, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        with partial.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return Written(rows, digest)


def one_schema(found: Mapping[str, object]) -> object:
    """The schema that all files have.

    Raises:
        InvalidInput: two have different ones; whatever the rows are.
    """
    first = next(iter(found))
    for file, schema in found.items():
        if schema != found[first]:
            accepted = f"made of files with the columns and types of {Path(first).name}"
            raise InvalidInput("table", accepted, Path(file).name)
    return found[first]


def parquet_schema(files: Sequence[str]) -> object:
    """The columns and types that all files have."""
    import pyarrow.parquet as pq

    found = {}
    for file in files:
        with pq.ParquetFile(file) as opened:
            columns = [opened.schema.column(place) for place in range(len(opened.schema.names))]
            found[file] = [
                (each.path, each.physical_type, str(each.logical_type), each.max_repetition_level)
                for each in columns
            ]
    return one_schema(found)
