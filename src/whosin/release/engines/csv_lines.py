"""CSV files: what their first line says, and how every engine reads the others.

Contract: a row is one line, whatever is on it, and no line changes how another one is read or makes
a reader fail. A line ends at LF, CR or CR LF, or at the file's end; quotes do not carry over.

- Names and separator come from the first line alone; a later line that repeats it is no row.
- Every column is text. An empty field is missing, whether it is quoted or not.
- A separator between quotes is part of a field, if all quotes of that line are CSV's: each opens or
  closes a field, or is doubled within one. On other lines every separator separates.
- A field that begins and ends with a quote loses both, and each "" in it is one quote.
- A line that is too short is padded with missing values; what is too much on a line is dropped, and
  so are byte-order marks that a line begins with, and what follows a control character U+001F.
- A line that is empty, not UTF-8, or longer than a million bytes is no row.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from whosin.errors import InvalidInput

SEPARATORS = ",;\t|"
LONGEST = 1_000_000
"""Bytes of a line."""
CUT = "\x1f"
"""What ends the text of a line: no field can have it, so that it can stand for a separator."""

MARK = "\ufeff"
"""The byte-order mark: files begin with it, and so do lines where files were put together."""


@dataclass(frozen=True)
class Header:
    """The first line of a CSV file."""

    columns: tuple[str, ...]
    separator: str
    line: str


def read_header(files: Sequence[str]) -> Header:
    """The header that all files have."""
    headers = {file: _header(file) for file in files}
    first = headers[files[0]]
    for file, header in headers.items():
        if header != first:
            accepted = f"made of files with the header of {Path(files[0]).name}"
            raise InvalidInput("table", accepted, Path(file).name)
    return first


def header_of(line: str) -> Header:
    """A header from its line; the separator is the one that it has most."""
    separator = max(SEPARATORS, key=line.count)
    if line.count('"') % 2 or CUT in line or len(line.encode()) > LONGEST:
        accepted = "one line with its quotes closed, of at most a million bytes"
        raise InvalidInput("header of the CSV file", accepted, "another")
    names = next(csv.reader([line], delimiter=separator), [])
    if not any(names):
        raise InvalidInput("table", "a CSV file with a header", "an empty first line")
    columns = tuple(name or f"column{index}" for index, name in enumerate(names))
    seen: dict[str, int] = {}
    for index, name in enumerate(columns, 1):
        # By their positions: without a header the first line is somebody's row.
        if name.lower() in seen:
            got = f"columns {seen[name.lower()]} and {index} with one name"
            raise InvalidInput("header of the CSV file", "made of names that differ", got)
        seen[name.lower()] = index
    return Header(columns, separator, line)


def _header(file: str) -> Header:
    opener = gzip.open if file.endswith(".gz") else open
    try:
        # As bytes, and this line alone: whether the others are UTF-8 must not show here.
        with opener(file, "rb") as lines:
            line = lines.readline(LONGEST + 5).split(b"\r")[0].decode()
    except (UnicodeDecodeError, EOFError, gzip.BadGzipFile):
        raise InvalidInput("header of the CSV file", "UTF-8", Path(file).name) from None
    return header_of(line.lstrip(MARK).rstrip("\n"))
