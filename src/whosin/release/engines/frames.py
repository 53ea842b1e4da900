"""Frames in memory as Arrow tables.

Contract: what types the columns have, and whether a frame is accepted, depends on its own types and
never on its values; no message quotes one. Where a frame does not say what a column holds (the type
"object" of pandas), the column is text: numbers, truths and dates as Python writes them, other
things missing. A text that is not UTF-8 is missing. Moments with a zone are as they are in UTC.
"""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections.abc import Sequence
from typing import Any

from whosin.errors import InvalidInput
from whosin.release.engines.schemas import require_different

SPELLED = (str, bool, numbers.Number, decimal.Decimal, datetime.date, datetime.time)
ACCEPTED = "a path, a pyarrow Table, or a pandas or Polars frame"


def arrow_table(source: Any) -> Any:
    """A frame as a pyarrow Table."""
    import pyarrow as pa

    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if not isinstance(source, pa.Table):
        if getattr(source, "__arrow_c_stream__", None) is None:
            raise InvalidInput("table", ACCEPTED, type(source).__name__)
        try:
            source = _from_pandas(source) if hasattr(source, "dtypes") else pa.table(source)
        except InvalidInput:
            raise
        except Exception:  # its words may quote a value
            failed = True
        else:
            failed = False
        if failed:
            accepted = "a frame whose columns have types that Arrow knows"
            raise InvalidInput("table", accepted, type(source).__name__)
    require_different(source.column_names)
    for index, field in enumerate(source.schema):
        if holds_text(field.type):
            source = source.set_column(index, field.name, _valid(pa, source.column(index)))
        elif pa.types.is_timestamp(field.type) and field.type.tz is not None:
            column = source.column(index).cast(pa.timestamp(field.type.unit))
            source = source.set_column(index, field.name, column)
    return source


def require_plain(source: object, ours: Sequence[Any]) -> bool:
    """Whether a source is an Ibis table that an engine of ours opened.

    Raises:
        InvalidInput: an Ibis table of another database, or an expression: it could hold anything,
            also what fails on some rows.
    """
    if type(source).__module__.partition(".")[0] != "ibis":
        return False
    import ibis
    from ibis.expr.operations import DatabaseTable

    if isinstance(source, ibis.Table) and isinstance(source.op(), DatabaseTable):
        backend = source.get_backend()
        if any(backend is each for each in ours):
            return True
    accepted = f"{ACCEPTED} (of an Ibis table, what its to_pyarrow() returns)"
    raise InvalidInput("table", accepted, "an Ibis expression")


def _from_pandas(frame: Any) -> Any:
    """A pandas frame column by column, without its index; a Polars frame as it is."""
    import pyarrow as pa

    if type(frame).__module__.partition(".")[0] != "pandas":
        return pa.table(frame)
    names = [str(name) for name in frame.columns]
    arrays = []
    for index in range(len(names)):
        column = frame.iloc[:, index]
        kind = getattr(column.dtype, "categories", column).dtype
        # Texts that Python holds may have halves of letters, which Arrow cannot.
        if str(kind) == "object" or getattr(kind, "storage", None) == "python":
            arrays.append(pa.array([_spelled(each) for each in column], pa.string()))
        else:
            arrays.append(pa.chunked_array(_chunks(pa.array(column, from_pandas=True))))
    return pa.table(arrays, names=names)


def _chunks(array: Any) -> Any:
    return array.chunks if hasattr(array, "chunks") else [array]


def _spelled(value: object) -> str | None:
    """A value as a text; missing where it has no plain one."""
    if value is None or not isinstance(value, SPELLED) or value != value:
        return None
    text = str(value)
    return None if any("\ud800" <= letter <= "\udfff" for letter in text) else text


def holds_text(kind: Any) -> bool:
    """Whether an Arrow type is one of texts."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return holds_text(kind.value_type)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(check(kind) for check in texts)


def _valid(pa: Any, column: Any) -> Any:
    """A column of texts in which those that are not UTF-8 are missing."""
    chunks = []
    for chunk in column.chunks:
        try:
            chunk.validate(full=True)
        except pa.ArrowInvalid:
            plain = chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk
            texts = [_decoded(each) for each in plain.cast(pa.large_binary()).to_pylist()]
            result = pa.array(texts, pa.string())
            chunk = result.cast(column.type) if not pa.types.is_dictionary(column.type) else (
                result.dictionary_encode().cast(column.type)
            )  # fmt: skip
        chunks.append(chunk)
    return pa.chunked_array(chunks, column.type)


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None
