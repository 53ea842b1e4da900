"""The lines of CSV files on DuckDB, by the rules of `texts`; and for the curator, which break them.

Contract: a release reads what it can and says nothing about the rest. `broken` counts exactly the
lines that this reading drops, pads or cuts, or whose quotes are not CSV's: private, and never
part of a release.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass

from whosin.release.engines.csv_lines import CUT, LONGEST, MARK, Header, read_header

ENCODING = "INVALID ENCODING"


@dataclass(frozen=True)
class Broken:
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
        f"{_unquoted(f'fields[{index}]')} AS {identifier(name)}"
        for index, name in enumerate(header.columns, 1)
    )
    fields = f"SELECT {_fields(header)} AS fields FROM ({_lines(files, header)})"
    return f"SELECT {', '.join(named)} FROM ({fields})"


def broken(files: Sequence[str]) -> Broken:
    """Read the files as a release does, and look at each line."""
    import duckdb

    header = read_header(files)
    count, most = f"len({_fields(header)})", len(header.columns)
    odd = f"contains(line, '\"') AND NOT {_well_quoted(header)}"
    figures = f"sum(({count} < {most})::INT), sum(({count} > {most})::INT), sum(({odd})::INT)"
    with duckdb.connect() as connection:
        read = _lines(files, header, kept=True)
        # To the end: only then is the account of the dropped ones there.
        [row] = connection.execute(f"SELECT {figures} FROM ({read})").fetchall()
        short, long, quotes = (int(each or 0) for each in row)
        result = connection.execute(
            "SELECT error_type, count(DISTINCT (file_id, line)) FROM reject_errors GROUP BY ALL"
        ).fetchall()
        medium = f"SELECT count(*) FROM ({_lines(files, header, above=True)})"
        [[longer]] = connection.execute(medium).fetchall()
    kinds = {str(kind): int(lines) for kind, lines in result}
    encoding = kinds.pop(ENCODING, 0)
    kinds.pop("TOO MANY COLUMNS", None)  # what follows U+001F
    unreadable = sum(kinds.values()) + int(longer)
    return Broken(encoding, unreadable, short, long, quotes)


def literal(value: object) -> str:
    """A value in SQL."""
    if isinstance(value, bool | int):
        return str(value).lower()
    text = str(value).replace("'", "''")
    return f"'{text}'"


def identifier(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _lines(files: Sequence[str], header: Header, *, kept: bool = False, above: bool = False) -> str:
    """The lines that are rows, whole.

    Args:
        kept: keep an account of what was dropped.
        above: those that are too long instead.
    """
    # A file's name is no pattern, whatever letters it has.
    paths = ", ".join(literal(glob.escape(file)) for file in files)
    length = f"strlen(line) {'>' if above else '<='} {LONGEST}"
    return (
        f"SELECT ltrim(whole, {literal(MARK)}) AS line FROM read_csv([{paths}], "
        f"header = false, auto_detect = false, columns = {{'whole': 'VARCHAR'}}, "
        f"delim = {literal(CUT)}, quote = '', escape = '', "
        f"comment = '', nullstr = '', new_line = '\\n', null_padding = true, "
        f"strict_mode = false, {'store_rejects' if kept else 'ignore_errors'} = true) "
        f"WHERE line NOT IN ('', {literal(header.line)}) AND {length}"
    )


def _fields(header: Header) -> str:
    """The list of a line's fields, quotes and all."""
    separator = literal(header.separator)
    field = _field(header.separator)
    plain = f'(?:"[^"{header.separator}]*"|[^"{header.separator}]*)'
    simple = f"{plain}(?:[{header.separator}]{plain})*"
    result = literal(f"[{header.separator}]({field})")
    return (
        f"CASE WHEN NOT contains(line, '\"') OR regexp_full_match(line, {literal(simple)}, 's') "
        f"OR NOT {_well_quoted(header)} THEN string_split(line, {separator}) "
        f"ELSE regexp_extract_all({separator} || line, {result}, 1, 's') END"
    )


def _well_quoted(header: Header) -> str:
    field = _field(header.separator)
    whole = f"{field}(?:[{header.separator}]{field})*"
    return f"regexp_full_match(line, {literal(whole)}, 's')"


def _field(separator: str) -> str:
    return f'(?:"[^"]*"(?:"[^"]*")*|[^"{separator}]*)'


def _unquoted(field: str) -> str:
    quoted = f"starts_with({field}, '\"') AND ends_with({field}, '\"') AND length({field}) > 1"
    inside = f"replace({field}[2:-2], '\"\"', '\"')"
    return f"nullif(CASE WHEN {quoted} THEN {inside} ELSE {field} END, '')"
