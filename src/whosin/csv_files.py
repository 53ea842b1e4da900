"""CSV files as people write them: the one reader for tables that are handed over whole.

Contract: a byte-order mark, quoted cells (with separators and line ends inside), spaces around
cells, empty lines, and commas, semicolons or tabs as separators are all understood; rows of another
length than the header, and quotes that are not closed, are refused by their line. No cell is ever
quoted in a message. Tables that are released are not read here: there a row is a line, whatever is
on it (`release.engines.lines`).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from whosin.documents import MOST_BYTES, read_text
from whosin.errors import InvalidInput

SEPARATORS = ("\t", ";", ",")
MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "?", "-", "."))
"""How tables of numbers write that a number is missing, in small letters."""
Records = tuple[list[int], list[tuple[str, ...]], str]
_LOOK = 20
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?)", re.IGNORECASE)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?")


@dataclass(frozen=True)
class CsvTable:
    """A table with a header.

    Attributes:
        name: the file's name.
        separator: one of `SEPARATORS`.
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
        values = [number(cell, self.separator) for cell in cells]
        missing = [cell.lower() in MISSING for cell in cells]
        told = all(a is not None or b for a, b in zip(values, missing, strict=True))
        return list(values) if told and not all(missing) else list(cells)


def read_csv(path: Path, most: int = MOST_BYTES, columns: Sequence[str] = ()) -> CsvTable:
    """The table in a CSV file with a header.

    Args:
        columns: names of columns that it must have, among others.

    Raises:
        InvalidInput: it has no rows, a column twice, or a row of another length than the header.
        OSError: there is no such file, or it may not be read.
    """
    accepted = "CSV with a header and rows"
    lines, rows, separator = read_records(path, most)
    if len(rows) < 2:
        raise InvalidInput(path.name, accepted, "a header alone" if rows else "an empty file")
    header = rows[0]
    if len(set(header)) < len(header):
        raise InvalidInput(f"columns of {path.name}", "distinct", "one more than once")
    if not set(columns) <= set(header):
        got = f"{_many(len(header), 'column')} without these names"
        raise InvalidInput(f"columns of {path.name}", " and ".join(columns), got)
    for line, row in zip(lines, rows, strict=True):
        if len(row) != len(header):
            wanted = f"{_many(len(header), 'cell')} long, as the header"
            raise InvalidInput(f"line {line} of {path.name}", wanted, len(row))
    return CsvTable(path.name, separator, header, tuple(rows[1:]), tuple(lines[1:]))


def read_records(path: Path, most: int = MOST_BYTES) -> Records:
    """As `parse_records`, from a file."""
    return parse_records(read_text(path, path.name, most), path.name)


def parse_records(text: str, name: str) -> Records:
    """The rows of a CSV file, the first one too, the line on which each begins, and what separates
    cells. Empty lines are left out.

    Args:
        name: of the file, for messages.
    """
    mark = separator_of(text)
    lines: list[int] = []
    rows: list[tuple[str, ...]] = []
    reader = _reader(text, mark, strict=True)
    last = 0
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                rows.append(tuple(cell.strip() for cell in row))
                lines.append(last + 1)
            last = reader.line_num
    except csv.Error:
        accepted = f"CSV: quotes around whole cells, of at most {csv.field_size_limit():,} letters"
        got = f"something else from line {last + 1} on"
        raise InvalidInput(name, accepted, got) from None
    return lines, rows, mark


def separator_of(text: str) -> str:
    """What separates the cells: the mark that splits the first rows into the same number of cells,
    or else the one that the first row has most of."""
    first = text.lstrip("\r\n").partition("\n")[0]
    for mark in SEPARATORS:
        if mark not in first:
            continue
        rows = (row for row in _reader(text, mark, strict=False) if row)
        try:
            lengths = {len(row) for row in islice(rows, _LOOK)}
        except csv.Error:  # a cell that is too long: whoever reads the rows says so
            continue
        if len(lengths) == 1 and lengths != {1}:
            return mark
    return max(reversed(SEPARATORS), key=first.count)


def number(cell: str, separator: str = ",") -> float | None:
    """A cell as a number, None if it is none: 1.5, 1e-6, "1,200.5"; 1,5 where cells are separated
    by something else."""
    text = cell.strip()
    if _NUMBER.fullmatch(text):
        return float(text)
    if separator != "," and text.count(",") == 1 and _NUMBER.fullmatch(text.replace(",", ".")):
        return float(text.replace(",", "."))
    return float(text.replace(",", "")) if _THOUSANDS.fullmatch(text) else None


def columns_like(table: CsvTable, header: Sequence[str], other: str) -> list[list[object]]:
    """The rows of a table with its columns in the order of another one's header."""
    if sorted(table.header) != sorted(header):
        accepted = f"those of {other}, in any order"
        raise InvalidInput(f"columns of {table.name}", accepted, "others")
    columns = [table.column(name) for name in header]
    return [list(row) for row in zip(*columns, strict=True)]


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _reader(text: str, mark: str, strict: bool):  # type: ignore[no-untyped-def]
    """The module names no type for it."""
    source = io.StringIO(text, newline="")
    return csv.reader(source, delimiter=mark, skipinitialspace=True, strict=strict)
