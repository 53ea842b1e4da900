"""Files and frames: Arrow, spreadsheets, Parquet drafts, pandas and Polars.

What types the columns have, and whether a frame is accepted, depends on its own types and never on
its values; no message quotes one. Where a frame does not say what a column holds (the type "object"
of pandas), the column is text: numbers, truths and dates as Python writes them, other things
missing. A text that is not UTF-8 is missing. Moments with a zone are as they are in UTC.

Pyarrow trusts the lengths and offsets of an Arrow file, and a damaged one can crash the process. So
a file is read whole and validated in a process of its own before anything else reads it, once for
as long as it stays the same file. A sheet of a spreadsheet becomes an Arrow table of texts in such
a process, once for as long as anything has it open: rows that are saved later are not seen.

A Parquet file is written in two steps: a draft under a hidden name, whole and named by its digest,
then its public one, after the ledger has stored that digest and only where nothing has the name: a
table that was drawn and not stored is never published, one that was stored is still there after a
crash, and no file is replaced. Drafts are for their owner only, and locked by the process that
wrote them, so that those whose process is gone, and which no ledger knows, can be removed.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import glob
import hashlib
import numbers
import os
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from whosin import binary_readers, isolation
from whosin.errors import (
    Crashed,
    InvalidInput,
    OutOfMemory,
    TookTooLong,
    invalid_value,
    require_extras,
)
from whosin.isolation import TaskLimits
from whosin.plain_files import link_new, make_locked, open_plain, remove_unlocked
from whosin.release.engines.base import (
    ACCEPTED_FRAMES,
    DIGEST_LETTERS,
    WrittenFile,
    collect_lazy,
    draft_name,
    list_files,
    refuse_table,
    refuse_unreadable,
    require_different,
)

NO_EXTENSIONS: dict[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
}
"""Settings with which DuckDB fetches and loads no extension by itself."""
SPELLED_TYPES = (str, bool, numbers.Number, decimal.Decimal, datetime.date, datetime.time)


def arrow_table(source: Any) -> Any:
    import pyarrow as pa

    source = collect_lazy(source)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if not isinstance(source, pa.Table):
        if getattr(source, "__arrow_c_stream__", None) is None:
            raise invalid_value("table", ACCEPTED_FRAMES, type(source).__name__)
        table = None
        with contextlib.suppress(Exception):  # whose words may quote a value
            table = _arrow_from_pandas(source) if hasattr(source, "dtypes") else pa.table(source)
        if table is None:
            name = type(source).__name__
            raise refuse_table(f"the {name} has a column of a type that Arrow does not know", name)
        source = table
    require_different(source.column_names)
    for index, field in enumerate(source.schema):
        if holds_text(field.type):
            source = source.set_column(index, field.name, _valid_texts(pa, source.column(index)))
        elif pa.types.is_timestamp(field.type) and field.type.tz is not None:
            column = source.column(index).cast(pa.timestamp(field.type.unit))
            source = source.set_column(index, field.name, column)
    return source


def _arrow_from_pandas(frame: Any) -> Any:
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
            arrays.append(pa.array([_spell_value(each) for each in column], pa.string()))
        else:
            array = pa.array(column, from_pandas=True)
            arrays.append(pa.chunked_array(getattr(array, "chunks", [array])))
    return pa.table(arrays, names=names)


def _spell_value(value: object) -> str | None:
    """A value as a text; missing where it has no plain one."""
    if value is None or not isinstance(value, SPELLED_TYPES) or value != value:
        return None
    text = str(value)
    return None if any("\ud800" <= letter <= "\udfff" for letter in text) else text


def holds_text(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return holds_text(kind.value_type)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(check(kind) for check in texts)


def _valid_texts(pa: Any, column: Any) -> Any:
    """A column of texts in which those that are not UTF-8 are missing."""
    chunks = []
    for chunk in column.chunks:
        try:
            chunk.validate(full=True)
        except pa.ArrowInvalid:
            plain = chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk
            texts = [_decode_text(each) for each in plain.cast(pa.large_binary()).to_pylist()]
            chunk = pa.array(texts, pa.string())
            if pa.types.is_dictionary(column.type):
                chunk = chunk.dictionary_encode()
            chunk = chunk.cast(column.type)
        chunks.append(chunk)
    return pa.chunked_array(chunks, column.type)


def _decode_text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


READER_LIMITS = TaskLimits(86400.0, 8 << 30)
MAX_REMEMBERED_FILES = 10_000

_sound: dict[tuple[str, int, int, int], None] = {}


def require_sound(files: Sequence[str]) -> None:
    """Refuse files that are damaged.

    Raises:
        InvalidInput: one of them is.
    """
    for file in files:
        if (same := _file_identity(file)) in _sound:
            continue
        try:
            isolation.run_isolated(binary_readers.check_arrow, file, limits=READER_LIMITS)
        except (Crashed, InvalidInput, OutOfMemory, TookTooLong):
            raise refuse_unreadable(file, "arrow") from None
        _sound[same] = None
        if len(_sound) > MAX_REMEMBERED_FILES:
            _sound.pop(next(iter(_sound)))


def _file_identity(file: str) -> tuple[str, int, int, int]:
    about = os.stat(file)
    return os.path.realpath(file), about.st_ino, about.st_size, about.st_mtime_ns


_sheets: weakref.WeakValueDictionary[tuple[Any, ...], Any] = weakref.WeakValueDictionary()


def read_sheet(path: str, sheet: str | None) -> Any:
    """A sheet of a spreadsheet as an Arrow table of texts; the first one by default.

    Raises:
        InvalidInput: the file or its header is not what it should be, whatever the rows are.
    """
    import pyarrow as pa

    require_extras("spreadsheets")
    files = list_files(path, "spreadsheet")
    if len(files) > 1:
        message = f"{Path(path).name} means {len(files)} spreadsheets"
        raise refuse_table(message, Path(path).name, "give one of them")
    same = (*_file_identity(files[0]), sheet)
    table = _sheets.get(same)
    if table is None:
        try:
            stream = isolation.run_isolated(
                binary_readers.sheet_arrow, files[0], sheet, limits=READER_LIMITS
            )
        except (Crashed, OutOfMemory, TookTooLong):
            raise refuse_unreadable(files[0], "spreadsheet") from None
        with pa.ipc.open_stream(pa.BufferReader(stream)) as reader:
            table = reader.read_all()
        require_different(table.column_names)
        _sheets[same] = table
    return table


PARTIAL_SUFFIX = ".partial"
LOCKED_DRAFTS: dict[Path, int] = {}
"""The drafts of this process, by the descriptors that keep them locked."""


def write_draft(batches: Iterable[Any], schema: Any, path: Path, owner: str = "") -> WrittenFile:
    import pyarrow.parquet as pq

    remove_unlocked(path.parent.glob(f".{glob.escape(path.name)}.*{PARTIAL_SUFFIX}"))
    lock, partial = make_locked(path.parent, f".{path.name}.", PARTIAL_SUFFIX)
    rows = 0
    try:
        with os.fdopen(os.dup(lock), "wb") as out, pq.ParquetWriter(out, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        with partial.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        draft = path.with_name(draft_name(path.name, digest, owner))
        partial.replace(draft)
        LOCKED_DRAFTS[draft] = lock
    except BaseException:
        os.close(lock)
        raise
    finally:
        partial.unlink(missing_ok=True)
    return WrittenFile(rows, digest)


def publish_draft(path: Path, digest: str) -> bool:
    """Give a draft its public name, if nothing has it; whether the file of this digest is there
    now. A draft whose name is taken stays, for whoever asks again: the ledger has stored its
    digest, so that it needs no lock."""
    draft = _find_draft(path, digest)
    if draft is not None:
        with contextlib.suppress(FileExistsError):
            link_new(draft, path)
    if _file_digest(path) != digest:
        unlock_drafts([draft])
        return False
    discard_draft(path, digest)
    return True


def discard_draft(path: Path, digest: str) -> None:
    """Remove a draft that was not stored, or that is published."""
    draft = _find_draft(path, digest)
    if draft is not None:
        draft.unlink(missing_ok=True)
    unlock_drafts(each for each in LOCKED_DRAFTS if not each.exists())


def unlock_drafts(drafts: Iterable[Path | None]) -> None:
    """Let go of drafts that are gone, or whose digest the ledger has stored."""
    for each in list(drafts):
        if each in LOCKED_DRAFTS:
            os.close(LOCKED_DRAFTS.pop(each))


def _find_draft(path: Path, digest: str) -> Path | None:
    pattern = f".{glob.escape(path.name)}.*.{digest[:DIGEST_LETTERS]}.draft"
    return next(iter(path.parent.glob(pattern)), None)


def _file_digest(path: Path) -> str | None:
    try:
        with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, InvalidInput):
        return None
