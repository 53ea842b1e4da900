"""The served folder: which files there are, and how new ones come in.

Contract: a name is one plain file name in the folder, followed by ::table for a table of a
database; a link that leads elsewhere, a hidden file or a path is refused. An upload never
replaces a file, and one that is not what its name says is not kept.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias
from unicodedata import normalize

from whosin.app.web.failures import Refused
from whosin.errors import InvalidInput, UnknownName, WhosinError
from whosin.extras import installed
from whosin.isolation import readers
from whosin.ledger.binding import Binding, Bound
from whosin.release import DuckDB
from whosin.release.engines.base import ARROW, KINDS
from whosin.release.scans.fingerprint import fingerprint_of_source
from whosin.release.table import dataset_name

Seen: TypeAlias = Mapping[str, Bound] | None
TABLES = tuple(KINDS | ARROW)
DATABASES = (".duckdb", ".sqlite", ".sqlite3")
LEDGER = "whosin_datasets"
"""A table of ledgers, which are no data."""
NAME = re.compile(r"\w[\w .()-]{0,119}")
STARTS = {"parquet": b"PAR1", "arrow": b"ARROW1"}


def tables(folder: Path) -> list[Path]:
    """The tables, by name."""
    return sorted(path for path in _files(folder) if path.suffix.lower() in TABLES)


def databases(folder: Path) -> dict[str, Path]:
    """The tables of databases, as `database.duckdb::table`; a database that cannot be read, because
    another program writes to it, has none, and neither has a ledger."""
    result = sorted(path for path in _files(folder) if path.suffix.lower() in DATABASES)
    if not result or not installed("release"):
        return {}
    listed: dict[str, Path] = {}
    with DuckDB() as engine:
        for path in result:
            with contextlib.suppress(WhosinError, OSError):
                names = engine.tables(path)
                if LEDGER not in names:
                    listed.update({f"{path.name}::{name}": path for name in names})
    return listed


def find_table(folder: Path, name: str, seen: Seen = None) -> str:
    """A table of the folder as an engine takes it: a file, or a table of a database.

    Args:
        seen: the datasets whose tables may be seen, and what they are bound to; by default all.
            Others look as if they were not there.
    """
    known = databases(folder) if "::" in name else {}
    if name in known and is_seen(folder, name, seen):
        return str(folder / name)
    path = find(folder, name, seen=seen)
    check_content(path, path.name)
    return str(path)


def scenarios(folder: Path) -> list[Path]:
    """The scenario files, by name."""
    return sorted(path for path in _files(folder) if path.suffix.lower() == ".toml")


def is_seen(folder: Path, name: str, seen: Seen) -> bool:
    """Whether a table may be seen: it is the one that its dataset's budget is bound to, and not
    another of its name."""
    if seen is None:
        return True
    bound = seen.get(dataset_name(name))
    if bound is None:
        return False
    try:
        source = fingerprint_of_source(str(folder / name))
    except OSError:  # it may be gone by now
        return False
    return bound.holds_rows_of(Binding(bound.binding.entity, source=source))


def find(folder: Path, name: str, scenario: bool = False, seen: Seen = None) -> Path:
    """A file of the folder. Scenario files, which may be about any table, are for those who may
    see all tables."""
    if scenario:
        known = scenarios(folder) if seen is None else []
    else:
        known = [path for path in tables(folder) if is_seen(folder, path.name, seen)]
    for path in known:
        if path.name == name:
            return path
    if not known:
        raise InvalidInput("file", "in the served folder, which has none", repr(name[:120]))
    raise UnknownName("file", name[:120], [path.name for path in known])


def check_name(name: str) -> str:
    """A name that an upload may have."""
    name = normalize("NFC", name)
    if not NAME.fullmatch(name) or Path(name).suffix.lower() not in TABLES:
        accepted = f"a plain file name ending in {', '.join(TABLES)}"
        raise InvalidInput("name", accepted, repr(name[:120]))
    return name


async def receive(
    folder: Path,
    name: str,
    chunks: AsyncIterator[bytes],
    most: int,
    check: Callable[[str, str], Awaitable[None]],
) -> Path:
    """Take an upload in; it appears under its name when it is complete and what it says.

    Args:
        check: `check_upload`, in a process of its own.
    """
    name = check_name(name)
    goal = folder / name
    if goal.exists():
        raise Refused(409, f"there is a file {name!r} already; choose another name", "name")
    handle, beside = tempfile.mkstemp(prefix=".upload-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            size = 0
            async for chunk in chunks:
                size += len(chunk)
                if size > most:
                    raise Refused(413, f"at most {most // 1000:,} kB are taken", "name")
                file.write(chunk)
        await check(beside, name)
        try:
            os.link(beside, goal)  # fails if the name was taken meanwhile
        except FileExistsError:
            raise Refused(409, f"there is a file {name!r} already", "name") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
    return goal


def check_upload(path: str, name: str) -> None:
    """The task: see that a file is what its name says, and can be read without harm."""
    check_content(Path(path), name)
    if Path(name).suffix.lower() in ARROW:
        try:
            readers.check_arrow(path)
        except InvalidInput:
            raise InvalidInput("file", "a readable arrow file", name) from None


def check_content(path: Path, name: str) -> None:
    """Check that a file begins as files of its kind do."""
    kind = (KINDS | ARROW)[Path(name).suffix.lower()]
    with path.open("rb") as file:
        start = file.read(1 << 16)
    if kind == "csv":
        wrong = not start.strip() or b"\0" in start or start.startswith(tuple(STARTS.values()))
        try:
            start[:-4].decode("utf-8")
        except UnicodeDecodeError:
            wrong = True
    else:
        wrong = not start.startswith(STARTS[kind])
    if wrong:
        words = "a text file in UTF-8" if kind == "csv" else f"a {kind} file"
        raise InvalidInput("file", f"{words}, as its name says", name)


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        inside = path.is_file() and path.resolve().parent == folder.resolve()
        if inside and NAME.fullmatch(normalize("NFC", path.name)):
            yield path
