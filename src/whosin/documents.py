"""Files that people hand over, read once and bounded: JSON, TOML, text and CSV."""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

from whosin.errors import (
    Crashed,
    InvalidInput,
    OutOfMemory,
    TookTooLong,
    UnknownName,
    invalid_value,
    require_extras,
    spell,
)

# Text files that people hand over: read once, bounded, and refused in one sentence.
#
# Size, depth, number of entries and length of numbers are checked before anything is built from a
# file; whatever is wrong becomes `InvalidInput`, which names the kind of file and never quotes more
# of it than a key. Every reader of JSON, TOML or plain text goes through here.

MAX_DOCUMENT_BYTES = 128 << 20
MAX_STUDY_BYTES = 1 << 30
"""Lists of people and of SNPs may be long."""
MAX_TOML_LENGTH = 1 << 20
MAX_JSON_ENTRIES = 1 << 24
MAX_SPELLED_ENTRIES = 1 << 16
MAX_JSON_LISTS, MAX_JSON_OBJECTS = 1 << 22, 1 << 20
MAX_NESTING_DEPTH = 64
MAX_KEY_DEPTH = 16
MAX_NUMBER_LENGTH = 1000
MAX_WHOLE_DIGITS = 300
"""Digits of a whole number outside texts: a longer one fits into no float."""

HALF_LETTER = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_LONG_NUMBER = re.compile(rf"\d{{{MAX_NUMBER_LENGTH + 1},}}")
_BARE_DAY_PATTERN = re.compile(r"(?<![\w\"'.:-])\d{4}-\d{2}-\d{2}(?![\w\"'.:-])")
_RANGE_PATTERN = re.compile(r"[=,\[]\s*-?\d[\d.e-]*\.\.-?\d")
_TOML_MARK = re.compile(r'"""|\'\'\'|["\'#\[\]{}.=,\n]')
_TOML_KEY = r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'"""
_TOML_PATH = rf"((?:{_TOML_KEY})(?:[ \t]*\.[ \t]*(?:{_TOML_KEY}))*)[ \t]*"
_TOML_HEADER = re.compile(rf"[ \t]*\[(\[?)[ \t]*{_TOML_PATH}\]")
_TOML_ASSIGNMENT = re.compile(rf"[ \t]*{_TOML_PATH}=")
_TOML_END = {
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*"""', re.DOTALL),
    "'''": re.compile(r"(?:[^']|'(?!''))*'''"),
    '"': re.compile(r'(?:[^"\\\n]|\\.)*"'),
    "'": re.compile(r"[^'\n]*'"),
    "#": re.compile(r"[^\n]*"),
}


def read_text(path: Path, what: str, most: int = MAX_DOCUMENT_BYTES) -> str:
    """The text of a file, without a byte-order mark."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise InvalidInput(f"{what} is longer than {spell(most)} bytes", field=what)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{what} is not UTF-8 text", field=what) from None


def read_words(path: Path, most: int = MAX_DOCUMENT_BYTES) -> list[list[str]]:
    """The words, apart by spaces or tabs, of lines that are not empty. CSV is for `read_csv`."""
    rows = [line.split() for line in read_text(path, path.name, most).splitlines() if line.strip()]
    if not rows:
        raise InvalidInput(f"{path.name} is empty", field=path.name)
    return rows


class Spelled(str):
    """A decimal of a JSON file as it was written there, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def read_json(path: Path, what: str, spelled: bool = False) -> Any:
    """The value of a JSON file."""
    return parse_json(read_text(path, what), what, spelled)


def parse_json(text: str, what: str, spelled: bool = False) -> Any:
    """The value of a JSON text. Keys of an object are distinct; NaN and Infinity are not JSON.

    Args:
        spelled: keep decimals as they are `Spelled`, unless the text has more than
            `MAX_SPELLED_ENTRIES` entries: then they are floats.
    """
    _check_length(text, what)
    entries = text.count(",")
    crowded = (
        entries > MAX_JSON_ENTRIES
        or text.count("[") > MAX_JSON_LISTS
        or text.count("{") > MAX_JSON_OBJECTS
    )
    if crowded:
        raise InvalidInput(
            f"{what} has too many lists, objects or entries (at most {spell(MAX_JSON_ENTRIES)})",
            field=what,
        )
    try:
        value = json.loads(
            text,
            parse_float=Spelled if spelled and entries <= MAX_SPELLED_ENTRIES else float,
            parse_int=_read_whole,
            parse_constant=_refuse_constant,
            object_pairs_hook=_distinct_keys,
        )
    except json.JSONDecodeError as error:
        message = f"{what} is not JSON: {error.msg} in line {error.lineno}"
        raise InvalidInput(message, field=what, value=error.lineno) from None
    except RecursionError:
        raise _too_deep(what) from None
    except MemoryError:
        raise InvalidInput(f"{what} does not fit into memory", field=what) from None
    if text.count("[") + text.count("{") > MAX_NESTING_DEPTH:
        _check_depth(value, what)
    if HALF_LETTER.search(text):  # it can be escaped in JSON, and no file or answer holds it
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
        except UnicodeEncodeError:
            message = f"{what} has half of a surrogate pair, which is not valid Unicode"
            raise InvalidInput(message, field=what) from None
    return value


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The tables of a TOML file."""
    return parse_toml(read_text(path, what, MAX_TOML_LENGTH), what)


def parse_toml(text: str, what: str) -> dict[str, Any]:
    """The tables of a TOML text."""
    if len(text) > MAX_TOML_LENGTH:
        raise InvalidInput(f"{what} is longer than {spell(MAX_TOML_LENGTH)} characters", field=what)
    _check_length(text, what)
    depth = dots = 0
    for mark, _ in _toml_marks(text):
        depth += (mark in "[{") - (mark in "]}")
        dots = dots + 1 if mark == "." else 0
        if depth > MAX_NESTING_DEPTH or dots >= MAX_KEY_DEPTH:
            raise _too_deep(what)
    try:
        result = _load_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(
            f"{what} is not a TOML file: {error}", field=what, hint=_toml_hint(text, str(error))
        ) from None
    except RecursionError:
        raise _too_deep(what) from None
    except ValueError:  # a date or a number that no calendar or machine has
        raise InvalidInput(
            f"{what} is not a TOML file: it has a date or a number that cannot be read", field=what
        ) from None
    _check_whole(result)
    return result


def _load_toml(text: str) -> dict[str, Any]:
    """The tables; days that no calendar has are texts, to be refused with what else is wrong."""
    try:
        return tomllib.loads(text)
    except ValueError:
        with suppress(ValueError):
            return tomllib.loads(_BARE_DAY_PATTERN.sub(_quote_impossible_day, text))
        raise


def _quote_impossible_day(found: re.Match[str]) -> str:
    with suppress(ValueError):
        return date.fromisoformat(found[0]).isoformat()
    return f'"{found[0]}"'


def _toml_hint(text: str, error: str) -> str:
    """What to write instead, where a line that is not TOML has a range without quotes."""
    line = re.search(r"at line (\d+)", error)
    lines = text.splitlines()[int(line.group(1)) - 1 :][:1] if line else []
    return (
        'put a range in quotes, as in "0.05..0.5"' if any(map(_RANGE_PATTERN.search, lines)) else ""
    )


def check_object(value: object, what: str) -> dict[str, Any]:
    """The value, if it is an object."""
    if isinstance(value, dict):
        return value
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    raise invalid_value(what, "a JSON object", names.get(type(value), "a number"))


def read_object(path: Path, what: str) -> dict[str, Any]:
    """The object in a JSON file, decimals as they are spelled."""
    return check_object(read_json(path, what, spelled=True), what)


def check_keys(data: Iterable[object], known: Iterable[str], what: str) -> None:
    """Unknown keys are errors that name the nearest known one."""
    known = tuple(known)
    for key in data:
        if key not in known:
            raise UnknownName(f"key of the {what}", str(key), known)


def toml_lines(text: str) -> dict[str, int]:
    """The line of each section and key of a TOML text, by its path such as queries[1].by."""
    starts, depth = [0], 0
    for mark, end in _toml_marks(text):
        depth += (mark in "[{") - (mark in "]}")
        if mark == "\n" and not depth:
            starts.append(end)
    result: dict[str, int] = {}
    section, line, last = "", 1, 0
    for start in starts:
        line, last = line + text.count("\n", last, start), start
        if header := _TOML_HEADER.match(text, start):
            section = _plain_path(header[2])
            if header[1]:
                number = 0
                while f"{section}[{number}]" in result:
                    number += 1
                section = f"{section}[{number}]"
            result.setdefault(section, line)
        elif key := _TOML_ASSIGNMENT.match(text, start):
            path = _plain_path(key[1])
            result.setdefault(f"{section}.{path}" if section else path, line)
    return result


def _plain_path(dotted: str) -> str:
    """A dotted key without quotes and spaces."""
    return ".".join(part.strip("\"'") for part in re.findall(_TOML_KEY, dotted))


def _toml_marks(text: str) -> Iterator[tuple[str, int]]:
    """The brackets, dots and separators of a TOML text outside its strings and comments, and where
    each ends."""
    position = 0
    while result := _TOML_MARK.search(text, position):
        mark = result.group()
        position = result.end()
        if mark in _TOML_END:
            end = _TOML_END[mark].match(text, position)
            if end is None:
                return  # a string without an end: the parser says where
            position = end.end()
        else:
            yield mark, position


def _check_length(text: str, what: str) -> None:
    if _LONG_NUMBER.search(text):
        raise InvalidInput(
            f"{what} has a number of more than {MAX_NUMBER_LENGTH} digits", field=what
        )


def _check_depth(value: object, what: str) -> None:
    level: list[Any] = [value]
    for _ in range(MAX_NESTING_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, list | dict)
        ]
        if not level:
            return
    raise _too_deep(what)


def _check_whole(tables: dict[str, Any]) -> None:
    """See that no whole number is too long, in whatever base it was written."""
    values: list[Any] = [tables]
    while values:
        value = values.pop()
        if isinstance(value, dict | list):
            values += value.values() if isinstance(value, dict) else value
        elif isinstance(value, int) and abs(value) >= 10**MAX_WHOLE_DIGITS:
            raise _too_long()


def _distinct_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object whose keys are distinct: one of two equal keys would be lost silently."""
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise InvalidInput(
                f"the key {key[:40]!r} is there more than once", field=key, hint="keep one of them"
            )
        result[key] = value
    return result


def _read_whole(digits: str) -> int:
    if len(digits) > MAX_WHOLE_DIGITS:
        raise _too_long()
    return int(digits)


def _too_long() -> InvalidInput:
    return InvalidInput(f"a whole number has more than {MAX_WHOLE_DIGITS} digits")


def _refuse_constant(name: str) -> object:
    raise InvalidInput(f"{name} is not a number in JSON", value=name, hint="use a finite number")


def _too_deep(what: str) -> InvalidInput:
    return InvalidInput(f"{what} is nested more than {MAX_NESTING_DEPTH} levels deep", field=what)


def toml_text(data: Mapping[str, Any]) -> str:
    """Plain data as a TOML document: sections of one level, and lists of sections."""
    plain, sections = [], []
    for key, value in data.items():
        if isinstance(value, Mapping):
            sections.append(_section_name(f"[{_toml_key(key)}]", value))
        elif isinstance(value, list) and value and all(isinstance(e, Mapping) for e in value):
            sections += [_section_name(f"[[{_toml_key(key)}]]", each) for each in value]
        else:
            plain.append(toml_line(key, value) + "\n")
    return "\n".join(["".join(plain)] * bool(plain) + sections)


def toml_line(key: str, value: Any) -> str:
    """One key of a TOML document with its value, mappings in braces."""
    return f"{_toml_key(key)} = {_toml_value(value)}"


def _section_name(head: str, data: Mapping[str, Any]) -> str:
    return "\n".join([head, *(toml_line(key, value) for key, value in data.items())]) + "\n"


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml_value(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_toml_key(key)} = {_toml_value(each)}" for key, each in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, str):
        # As JSON, but for DEL, which TOML has escaped too.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value.isoformat()


# CSV files as people write them: the one reader for tables that are handed over whole.
#
# A byte-order mark, quoted cells (with separators and line ends inside), spaces around cells, empty
# lines, and commas, semicolons or tabs as separators are all understood; rows of another length
# than the header, and quotes that are not closed, are refused by their line. No cell is ever quoted
# in a message. Tables that are released are not read here: there a row is a line, whatever is on it
# (`release.engines.files`).

SNIFFED_SEPARATORS = ("\t", ";", ",")
MISSING_WORDS = frozenset(("", "na", "n/a", "nan", "null", "none", "?", "-", "."))
"""How tables of numbers write that a number is missing, in small letters."""
Records = tuple[list[int], list[tuple[str, ...]], str]
_SNIFFED_LINES = 20
_NUMBER_PATTERN = re.compile(
    r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?)", re.IGNORECASE
)
_THOUSANDS_PATTERN = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?")


@dataclass(frozen=True)
class CsvTable:
    """A table with a header.

    Attributes:
        name: the file's name.
        separator: one of `SNIFFED_SEPARATORS`.
        header: names of columns, distinct.
        rows: cells, without the spaces around them.
        lines: the line of the file on which each row begins.
    """

    name: str
    separator: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]

    def column(self, name: str) -> list[float | str | None]:
        """A column: numbers, with None where one is missing; or words, where any cell is one."""
        position = self.header.index(name)
        cells = [row[position] for row in self.rows]
        values = [read_number(cell, self.separator) for cell in cells]
        missing = [cell.lower() in MISSING_WORDS for cell in cells]
        told = all(a is not None or b for a, b in zip(values, missing, strict=True))
        return list(values) if told and not all(missing) else list(cells)


def read_csv(path: Path, most: int = MAX_DOCUMENT_BYTES, columns: Sequence[str] = ()) -> CsvTable:
    """The table in a CSV file with a header.

    Args:
        columns: names of columns that it must have, among others.
    """
    lines, rows, separator = read_records(path, most)
    if len(rows) < 2:
        reason = "has a header and no rows" if rows else "is empty"
        raise InvalidInput(f"{path.name} {reason}", field=path.name)
    header = rows[0]
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        message = f"{path.name} has the column {twice[:40]!r} more than once"
        raise InvalidInput(message, field=f"columns of {path.name}", value=twice)
    if missing := [name for name in columns if name not in header]:
        message = f"{path.name} has no column {missing[0]!r}"
        raise InvalidInput(message, field=f"columns of {path.name}", value=len(header))
    check_row_lengths(lines, rows, f" of {path.name}")
    return CsvTable(path.name, separator, header, tuple(rows[1:]), tuple(lines[1:]))


def check_row_lengths(lines: Sequence[int], rows: Sequence[Sequence[str]], where: str = "") -> None:
    """Refuse a row of another length than the first one, by the line that it begins on."""
    for line, row in zip(lines, rows, strict=True):
        if len(row) != len(rows[0]):
            cells = f"{len(row)} cell{'' if len(row) == 1 else 's'}"
            message = f"line {line}{where} has {cells}, and the header has {len(rows[0])}"
            raise InvalidInput(message, field=f"line {line}{where}", value=len(row))


def read_records(path: Path, most: int = MAX_DOCUMENT_BYTES) -> Records:
    """As `parse_records`, from a file; a spreadsheet is its first sheet."""
    if path.suffix.lower() in (".xlsx", ".xlsm"):
        return _sheet_records(path, most)
    return parse_records(read_text(path, path.name, most), path.name)


SHEET_SECONDS, SHEET_MEMORY_BYTES = 600.0, 4 << 30
"""What reading a workbook may take."""


def _sheet_records(path: Path, most: int) -> Records:
    """The rows of a workbook's first sheet, read in a process of its own."""
    from whosin import binary_readers, isolation

    require_extras("spreadsheets")
    if path.stat().st_size > most:
        raise InvalidInput(f"{path.name} is longer than {spell(most)} bytes", field=path.name)
    limits = isolation.TaskLimits(SHEET_SECONDS, SHEET_MEMORY_BYTES)
    try:
        rows = isolation.run_isolated(binary_readers.sheet_records, str(path), None, limits=limits)
    except (Crashed, OutOfMemory, TookTooLong):
        message = f"{path.name} cannot be read as a spreadsheet"
        raise InvalidInput(message, field=path.name) from None
    return list(range(1, len(rows) + 1)), [tuple(cell.strip() for cell in row) for row in rows], ","


def parse_records(text: str, name: str) -> Records:
    """The rows of a CSV file, the first one too, the line on which each begins, and what separates
    cells. Empty lines are left out.

    Args:
        name: of the file, for messages.
    """
    mark = find_separator(text)
    lines: list[int] = []
    rows: list[tuple[str, ...]] = []
    reader = _csv_reader(text, mark, strict=True)
    last = 0
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                rows.append(tuple(cell.strip() for cell in row))
                lines.append(last + 1)
            last = reader.line_num
    except csv.Error:
        message = f"{name} is not CSV from line {last + 1} on"
        hint = (
            f"put quotes around whole cells, of at most {spell(csv.field_size_limit())} characters"
        )
        raise InvalidInput(message, field=name, value=last + 1, hint=hint) from None
    return lines, rows, mark


def find_separator(text: str) -> str:
    """What separates the cells: the mark that splits the first rows into the same number of cells,
    or else the one that the first row has most of."""
    first = text.lstrip("\r\n").partition("\n")[0]
    for mark in SNIFFED_SEPARATORS:
        if mark not in first:
            continue
        rows = (row for row in _csv_reader(text, mark, strict=False) if row)
        try:
            lengths = {len(row) for row in islice(rows, _SNIFFED_LINES)}
        except csv.Error:  # a cell that is too long: whoever reads the rows says so
            continue
        if len(lengths) == 1 and lengths != {1}:
            return mark
    return max(reversed(SNIFFED_SEPARATORS), key=first.count)


def read_number(cell: str, separator: str = ",") -> float | None:
    """A cell as a number, None if it is none: 1.5, 1e-6, "1,200.5"; 1,5 where cells are separated
    by something else."""
    text = cell.strip()
    if _NUMBER_PATTERN.fullmatch(text):
        return float(text)
    if (
        separator != ","
        and text.count(",") == 1
        and _NUMBER_PATTERN.fullmatch(text.replace(",", "."))
    ):
        return float(text.replace(",", "."))
    return float(text.replace(",", "")) if _THOUSANDS_PATTERN.fullmatch(text) else None


def columns_like(table: CsvTable, header: Sequence[str], other: str) -> dict[str, list[object]]:
    """The columns of a table by their names, in the order of another one's header."""
    if sorted(table.header) != sorted(header):
        raise InvalidInput(
            f"{table.name} does not have the same columns as {other}",
            field=f"columns of {table.name}",
            value=len(table.header),
            hint="their order does not matter",
        )
    return {name: list(table.column(name)) for name in header}


def _csv_reader(text: str, mark: str, strict: bool):  # type: ignore[no-untyped-def]
    """The module names no type for it."""
    source = io.StringIO(text, newline="")
    return csv.reader(source, delimiter=mark, skipinitialspace=True, strict=strict)
