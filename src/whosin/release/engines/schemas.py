"""Whether several files are one table, by what they say about their columns and never by rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from whosin.errors import InvalidInput


def require_different(names: Iterable[str]) -> None:
    """Engines take names that differ only in small and capital letters for one."""
    listed = [name.upper().lower() for name in names]
    if len(set(listed)) != len(listed):
        accepted = "names that differ by more than capital letters"
        raise InvalidInput("columns of the table", accepted, "two alike")


def one_schema(schemas: Mapping[str, object]) -> object:
    """The schema that all files have.

    Raises:
        InvalidInput: two have different ones; whatever the rows are.
    """
    first = next(iter(schemas))
    for file, schema in schemas.items():
        if schema != schemas[first]:
            accepted = f"made of files with the columns and types of {Path(first).name}"
            raise InvalidInput("table", accepted, Path(file).name)
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
