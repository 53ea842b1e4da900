"""CSV files: what their first line says, and how every engine reads the others.

Contract: names and separator come from the header alone, every column is text, and no line makes a
reader fail. A line that is too short is padded with missing values, what is too much on a line is
dropped, an empty field is missing whether it is quoted or not, and a quoted field may have line
breaks. Both engines are told exactly this; on lines that are not CSV at all (a stray quote, bytes
that are not UTF-8) they may differ.
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


@dataclass(frozen=True)
class Header:
    """The first line of a CSV file."""

    columns: tuple[str, ...]
    separator: str


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
    names = next(csv.reader([line], delimiter=separator), [])
    if not any(names):
        raise InvalidInput("table", "a CSV file with a header", "an empty first line")
    columns = tuple(name or f"column{place}" for place, name in enumerate(names))
    seen: dict[str, int] = {}
    for place, name in enumerate(columns, 1):
        # By their places: without a header the first line is somebody's row.
        if name.lower() in seen:
            got = f"columns {seen[name.lower()]} and {place} with one name"
            raise InvalidInput("header of the CSV file", "made of names that differ", got)
        seen[name.lower()] = place
    return Header(columns, separator)


def _header(file: str) -> Header:
    opener = gzip.open if file.endswith(".gz") else open
    try:
        # As bytes, and this line alone: whether the others are UTF-8 must not show here.
        with opener(file, "rb") as lines:
            line = lines.readline(LONGEST).decode("utf-8-sig")
    except (UnicodeDecodeError, EOFError, gzip.BadGzipFile):
        raise InvalidInput("header of the CSV file", "UTF-8", Path(file).name) from None
    return header_of(line.rstrip("\r\n"))
