"""The lines of CSV files on DuckDB, by the rules of `texts`; and for the curator, which break them.

Contract: a release reads what it can and says nothing about the rest. `broken` counts exactly the
lines that such a reading drops, pads, cuts or guesses at: private, and never part of a release.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass

from whosin.release.engines.texts import read_header

ENCODING = "INVALID ENCODING"


@dataclass(frozen=True)
class Broken:
    """How many lines of CSV files are not what their header says.

    Attributes:
        encoding: not UTF-8: dropped by queries that read the field.
        unreadable: dropped for another reason, such as a length of more than 2 MB.
        short, long: with too few fields, which are padded, or too many, which are cut.
        quotes: with quotes that CSV does not allow, read as well as can be.
    """

    encoding: int
    unreadable: int
    short: int
    long: int
    quotes: int


def csv_query(files: Sequence[str], *, strict: bool = False, kept: bool = False) -> str:
    """The lines as rows. Padding short lines and quoted line breaks go together in one thread only.

    Args:
        strict: drop what breaks the rules instead of padding and cutting.
        kept: keep an account of what was dropped.
    """
    header = read_header(files)
    # A file's name is no pattern, whatever letters it has.
    paths = ", ".join(literal(glob.escape(file)) for file in files)
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in header.columns)
    return (
        f"SELECT * FROM read_csv([{paths}], header = true, auto_detect = false, "
        f"columns = {{{columns}}}, delim = {literal(header.separator)}, quote = '\"', "
        f"escape = '\"', nullstr = '', {'store_rejects' if kept else 'ignore_errors'} = true, "
        f"null_padding = {literal(not strict)}, strict_mode = {literal(strict)}, parallel = false)"
    )


def broken(files: Sequence[str]) -> Broken:
    """Read the files as a release does, and again by the letter; count what each drops."""
    dropped, refused = _rejected(files, strict=False), _rejected(files, strict=True)
    encoding = dropped.get(ENCODING, set())
    lost = set().union(*dropped.values())
    short = refused.get("MISSING COLUMNS", set()) - lost
    long = refused.get("TOO MANY COLUMNS", set()) - lost
    others = set().union(*refused.values()) - lost - short - long
    return Broken(len(encoding), len(lost - encoding), len(short), len(long), len(others))


def _rejected(files: Sequence[str], *, strict: bool) -> dict[str, set[tuple[int, int]]]:
    """(file, line) of what a reading drops, by the kind of error."""
    import duckdb

    found: dict[str, set[tuple[int, int]]] = {}
    for number, file in enumerate(files):
        with duckdb.connect() as connection:
            query = csv_query([file], strict=strict, kept=True)
            # All columns have to be read: errors in others go unnoticed.
            connection.execute(f"SELECT count(COLUMNS(*)) FROM ({query})").fetchall()
            kinds = "SELECT DISTINCT error_type, line FROM reject_errors"
            for kind, line in connection.execute(kinds).fetchall():
                found.setdefault(str(kind), set()).add((number, int(line)))
    return found


def literal(value: object) -> str:
    """A value in SQL."""
    if isinstance(value, bool | int):
        return str(value).lower()
    text = str(value).replace("'", "''")
    return f"'{text}'"
