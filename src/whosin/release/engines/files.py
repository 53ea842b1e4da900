"""Files and frames: Arrow, Parquet drafts, pandas, Polars, and the lines of CSV files.

What types the columns have, and whether a frame is accepted, depends on its own types and never on
its values; no message quotes one. Where a frame does not say what a column holds (the type "object"
of pandas), the column is text: numbers, truths and dates as Python writes them, other things
missing. A text that is not UTF-8 is missing. Moments with a zone are as they are in UTC.

Arrow files that can be read without harm. Pyarrow trusts the lengths and offsets of an Arrow file,
and a damaged one can crash the process. So a file is read whole and validated in a process of its
own before anything else reads it, once for as long as it stays the same file.

Writing a Parquet file in two steps: a draft under a hidden name, then its public one. A draft is
whole, and its digest names it. It gets the public name after the ledger has stored that digest, and
only where nothing has the name: a table that was drawn and not stored is never published, one that
was stored is still there after a crash, and no file is replaced. What a killed process leaves is
for its owner only. Drafts are locked by the process that wrote them, so that those whose process is
gone, and which no ledger knows, can be removed.

The lines of CSV files on DuckDB, by the rules of `texts`; and for the curator, which break them. A
release reads what it can and says nothing about the rest. `find_broken_lines` counts exactly the
lines that this reading drops, pads or cuts, or whose quotes are not CSV's: private, and never part
of a release.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import glob
import hashlib
import numbers
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whosin import binary_readers, isolation
from whosin.errors import Crashed, InvalidInput, OutOfMemory, TookTooLong, invalid_value
from whosin.isolation import TaskLimits
from whosin.plain_files import link_new, make_locked, open_plain, remove_unlocked
from whosin.release.engines.base import (
    ACCEPTED_FRAMES,
    BYTE_ORDER_MARK,
    CUT_CHARACTER,
    DIGEST_LETTERS,
    MAX_LINE_LENGTH,
    Header,
    WrittenFile,
    collect_lazy,
    draft_name,
    read_header,
    refuse_unreadable,
    require_different,
    sql_identifier,
    sql_literal,
)

SPELLED_TYPES = (str, bool, numbers.Number, decimal.Decimal, datetime.date, datetime.time)


def arrow_table(source: Any) -> Any:
    """A frame as a pyarrow Table."""
    import pyarrow as pa

    source = collect_lazy(source)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if not isinstance(source, pa.Table):
        if getattr(source, "__arrow_c_stream__", None) is None:
            raise invalid_value("table", ACCEPTED_FRAMES, type(source).__name__)
        try:
            source = _arrow_from_pandas(source) if hasattr(source, "dtypes") else pa.table(source)
        except InvalidInput:
            raise
        except Exception:  # its words may quote a value
            failed = True
        else:
            failed = False
        if failed:
            raise InvalidInput(
                f"the {type(source).__name__} has a column of a type that Arrow does not know",
                field="table",
                value=type(source).__name__,
            )
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
            arrays.append(pa.chunked_array(_array_chunks(pa.array(column, from_pandas=True))))
    return pa.table(arrays, names=names)


def _array_chunks(array: Any) -> Any:
    return array.chunks if hasattr(array, "chunks") else [array]


def _spell_value(value: object) -> str | None:
    """A value as a text; missing where it has no plain one."""
    if value is None or not isinstance(value, SPELLED_TYPES) or value != value:
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


def _valid_texts(pa: Any, column: Any) -> Any:
    """A column of texts in which those that are not UTF-8 are missing."""
    chunks = []
    for chunk in column.chunks:
        try:
            chunk.validate(full=True)
        except pa.ArrowInvalid:
            plain = chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk
            texts = [_decode_text(each) for each in plain.cast(pa.large_binary()).to_pylist()]
            result = pa.array(texts, pa.string())
            chunk = result.cast(column.type) if not pa.types.is_dictionary(column.type) else (
                result.dictionary_encode().cast(column.type)
            )  # fmt: skip
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


PARTIAL_SUFFIX = ".partial"
_LOCKED_FOLDERS: dict[Path, int] = {}
"""The drafts of this process, by the descriptors that keep them locked."""


def write_draft(batches: Iterable[Any], schema: Any, path: Path, owner: str = "") -> WrittenFile:
    """Write RecordBatches beside the file's place."""
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
        _LOCKED_FOLDERS[draft] = lock
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
        if draft in _LOCKED_FOLDERS:
            os.close(_LOCKED_FOLDERS.pop(draft))
        return False
    discard_draft(path, digest)
    return True


def discard_draft(path: Path, digest: str) -> None:
    """Remove a draft that was not stored, or that is published."""
    draft = _find_draft(path, digest)
    if draft is not None:
        draft.unlink(missing_ok=True)
    for each in [each for each in _LOCKED_FOLDERS if not each.exists()]:
        os.close(_LOCKED_FOLDERS.pop(each))


def _find_draft(path: Path, digest: str) -> Path | None:
    pattern = f".{glob.escape(path.name)}.*.{digest[:DIGEST_LETTERS]}.draft"
    return next(iter(path.parent.glob(pattern)), None)


def _file_digest(path: Path) -> str | None:
    try:
        with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, InvalidInput):
        return None


ENCODING_ERROR = "INVALID ENCODING"
NO_EXTENSIONS: dict[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
}
"""Settings with which DuckDB fetches and loads no extension by itself."""


@dataclass(frozen=True)
class BrokenLines:
    """How many lines of CSV files are not what their header says.

    Attributes:
        encoding: not UTF-8: dropped.
        unreadable: dropped for another reason: a length of more than a million bytes.
        short, long: with too few fields, which are padded, or too many, which are cut.
        quotes: with quotes that CSV does not allow, which are read as letters.
    """

    encoding: int
    unreadable: int
    short: int
    long: int
    quotes: int


def csv_query(files: Sequence[str]) -> str:
    """The lines as rows with the header's columns."""
    header = read_header(files)
    named = (
        f"{_unquote_sql(f'fields[{index}]')} AS {sql_identifier(name)}"
        for index, name in enumerate(header.columns, 1)
    )
    fields = f"SELECT {_fields_sql(header)} AS fields FROM ({_row_lines_sql(files, header)})"
    return f"SELECT {', '.join(named)} FROM ({fields})"


def find_broken_lines(files: Sequence[str]) -> BrokenLines:
    """Read the files as a release does, and look at each line."""
    import duckdb

    header = read_header(files)
    count, most = f"len({_fields_sql(header)})", len(header.columns)
    odd = f"contains(line, '\"') AND NOT {_well_quoted(header)}"
    figures = f"sum(({count} < {most})::INT), sum(({count} > {most})::INT), sum(({odd})::INT)"
    with duckdb.connect(config=NO_EXTENSIONS) as connection:
        read = _row_lines_sql(files, header, kept=True)
        # To the end: only then is the account of the dropped ones there.
        [row] = connection.execute(f"SELECT {figures} FROM ({read})").fetchall()
        short, long, quotes = (int(each or 0) for each in row)
        result = connection.execute(
            "SELECT error_type, count(DISTINCT (file_id, line)) FROM reject_errors GROUP BY ALL"
        ).fetchall()
        medium = f"SELECT count(*) FROM ({_row_lines_sql(files, header, above=True)})"
        [[longer]] = connection.execute(medium).fetchall()
    kinds = {str(kind): int(lines) for kind, lines in result}
    encoding = kinds.pop(ENCODING_ERROR, 0)
    kinds.pop("TOO MANY COLUMNS", None)  # what follows U+001F
    unreadable = sum(kinds.values()) + int(longer)
    return BrokenLines(encoding, unreadable, short, long, quotes)


def _row_lines_sql(
    files: Sequence[str], header: Header, *, kept: bool = False, above: bool = False
) -> str:
    """The lines that are rows, whole.

    Args:
        kept: keep an account of what was dropped.
        above: those that are too long instead.
    """
    # A file's name is no pattern, whatever letters it has.
    paths = ", ".join(sql_literal(glob.escape(file)) for file in files)
    length = f"strlen(line) {'>' if above else '<='} {MAX_LINE_LENGTH}"
    return (
        f"SELECT ltrim(whole, {sql_literal(BYTE_ORDER_MARK)}) AS line FROM read_csv([{paths}], "
        f"header = false, auto_detect = false, columns = {{'whole': 'VARCHAR'}}, "
        f"delim = {sql_literal(CUT_CHARACTER)}, quote = '', escape = '', "
        f"comment = '', nullstr = '', new_line = '\\n', null_padding = true, "
        f"strict_mode = false, {'store_rejects' if kept else 'ignore_errors'} = true) "
        f"WHERE line NOT IN ('', {sql_literal(header.line)}) AND {length}"
    )


def _fields_sql(header: Header) -> str:
    """The list of a line's fields, quotes and all."""
    separator = sql_literal(header.separator)
    field = _field_pattern(header.separator)
    plain = f'(?:"[^"{header.separator}]*"|[^"{header.separator}]*)'
    simple = f"{plain}(?:[{header.separator}]{plain})*"
    result = sql_literal(f"[{header.separator}]({field})")
    return (
        f"CASE WHEN NOT contains(line, '\"') OR regexp_full_match(line, {sql_literal(simple)}, "
        "'s') "
        f"OR NOT {_well_quoted(header)} THEN string_split(line, {separator}) "
        f"ELSE regexp_extract_all({separator} || line, {result}, 1, 's') END"
    )


def _well_quoted(header: Header) -> str:
    field = _field_pattern(header.separator)
    whole = f"{field}(?:[{header.separator}]{field})*"
    return f"regexp_full_match(line, {sql_literal(whole)}, 's')"


def _field_pattern(separator: str) -> str:
    return f'(?:"[^"]*"(?:"[^"]*")*|[^"{separator}]*)'


def _unquote_sql(field: str) -> str:
    quoted = f"starts_with({field}, '\"') AND ends_with({field}, '\"') AND length({field}) > 1"
    inside = f"replace({field}[2:-2], '\"\"', '\"')"
    return f"nullif(CASE WHEN {quoted} THEN {inside} ELSE {field} END, '')"
