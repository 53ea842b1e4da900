"""The served folder: which files there are, how uploads come in, and what releases write."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TypeAlias
from unicodedata import normalize

from whosin import binary_readers
from whosin.app.web.access import DIGEST_NAME_PATTERN, Settings, Visitor
from whosin.app.web.bodies import RequestRefused, ScenarioBody
from whosin.errors import (
    InvalidInput,
    UnknownName,
    WhosinError,
    at,
    invalid_value,
    is_installed,
    require_extras,
)
from whosin.ledger.registration import RegisteredTable, Registration
from whosin.plain_files import PRIVATE_FOLDER_MODE, link_new, make_locked, remove_unlocked
from whosin.release import QUERIES, Answer, DuckDB
from whosin.release.engines.base import ARROW_KINDS, FILE_ENDINGS, SPREADSHEET_KINDS
from whosin.release.table import dataset_name, fingerprint_of_source

# The served folder: which files there are, and how new ones come in. A name is one plain file name
# in the folder, followed by ::table for a table of a database; a link that leads elsewhere, a
# hidden file or a path is refused. An upload never replaces a file, and one that is not what its
# name says is not kept.


Seen: TypeAlias = Mapping[str, RegisteredTable] | None
TABLE_SUFFIXES = tuple(FILE_ENDINGS)
DATABASE_SUFFIXES = (".duckdb", ".sqlite", ".sqlite3")
LEDGER_TABLE = "whosin_datasets"
"""A table of ledgers, which are no data."""
NAME_PATTERN = re.compile(r"\w[\w .()-]{0,119}")
UPLOAD_PREFIX = ".upload-"
"""What the name of an upload begins with until it is complete."""
MAGIC_BYTES = {"parquet": b"PAR1", "arrow": b"ARROW1", "spreadsheet": b"PK\x03\x04"}


def list_tables(folder: Path) -> list[Path]:
    """The files of the folder that hold a table, sorted by name."""
    return _list_files(folder, TABLE_SUFFIXES)


def list_database_tables(folder: Path) -> dict[str, Path]:
    """The tables of databases, as `database.duckdb::table`; a database that cannot be read, because
    another program writes to it, has none, and neither has a ledger."""
    result = _list_files(folder, DATABASE_SUFFIXES)
    if not result or not is_installed("release"):
        return {}
    listed: dict[str, Path] = {}
    with DuckDB() as engine:
        for path in result:
            with contextlib.suppress(WhosinError, OSError):
                names = engine.tables(path)
                if LEDGER_TABLE not in names:
                    listed.update({f"{path.name}::{name}": path for name in names})
    return listed


def find_table(folder: Path, name: str, seen: Seen = None) -> str:
    """A table of the folder as an engine takes it: a file, or a table of a database.

    Args:
        seen: the datasets whose tables may be seen, and what they are bound to; by default all.
            Others look as if they were not there.
    """
    known = list_database_tables(folder) if "::" in name else {}
    if name in known and is_seen(folder, name, seen):
        return str(folder / name)
    path = find_file(folder, name, seen=seen)
    check_content(path, path.name)
    return str(path)


STUDY_ENDINGS = (
    (".bed", ".bim", ".fam"),
    (".pgen", ".pvar", ".psam"),
    (".pgen", ".pvar.zst", ".psam"),
)
"""The files of a study: PLINK's, and PLINK 2's."""


def list_studies(folder: Path) -> list[str]:
    """The PLINK studies of the folder all of whose files are there, by name."""
    suffixes = {f".{ending.rpartition('.')[2]}" for ending in chain(*STUDY_ENDINGS)}
    there = {path.name for path in _list_files(folder, suffixes)}
    found = {name.removesuffix(first) for name in there for first, *_ in STUDY_ENDINGS}
    return sorted(
        name
        for name in found
        if any(all(name + each in there for each in endings) for endings in STUDY_ENDINGS)
    )


def find_study(folder: Path, name: str) -> Path:
    """A study of the folder, as `read_study` takes it."""
    known = list_studies(folder)
    if name in known:
        return folder / name
    if known:
        raise UnknownName("study", name[:120], known)
    raise InvalidInput(
        "there is no PLINK study in the served folder",
        field="study",
        value=name[:120],
        hint="bring its .bed, .bim and .fam there",
    )


def list_scenarios(folder: Path) -> list[Path]:
    return _list_files(folder, (".toml",))


def is_seen(folder: Path, name: str, seen: Seen) -> bool:
    """Whether a table may be seen: it is the one that its dataset's budget is bound to, and not
    another of its name."""
    if seen is None:
        return True
    registered = seen.get(dataset_name(name))
    if registered is None:
        return False
    try:
        source = fingerprint_of_source(str(folder / name))
    except OSError:  # it may be gone by now
        return False
    return registered.holds_rows_of(
        Registration(registered.registration.privacy_unit, source=source)
    )


def find_file(folder: Path, name: str, scenario: bool = False, seen: Seen = None) -> Path:
    """A file of the folder. Scenario files, which may be about any table, are for those who may
    see all tables."""
    if scenario:
        known = list_scenarios(folder) if seen is None else []
    else:
        known = [path for path in list_tables(folder) if is_seen(folder, path.name, seen)]
    for path in known:
        if path.name == name:
            return path
    if not known:
        kind = "scenario" if scenario else "table"
        raise InvalidInput(
            f"there is no {kind} here that you may use", field="file", value=name[:120]
        )
    raise UnknownName("file", name[:120], [path.name for path in known])


def check_name(name: str) -> str:
    name = normalize("NFC", name)
    kind = Path(name).suffix.lower()
    if NAME_PATTERN.fullmatch(name) and kind and kind not in TABLE_SUFFIXES:
        hint = f"bring one of {', '.join(TABLE_SUFFIXES)}"
        raise InvalidInput(
            f"{name[:120]} cannot be read: {kind} holds no table",
            field="name",
            value=name,
            hint=hint,
        )
    if not NAME_PATTERN.fullmatch(name) or not kind:
        accepted = f"a plain file name ending in {', '.join(TABLE_SUFFIXES)}"
        raise invalid_value("name", accepted, repr(name[:120]))
    return name


async def receive_upload(
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
        raise _refuse_taken(name, "name")
    remove_uploads(folder)
    handle, beside = make_locked(folder, UPLOAD_PREFIX)
    try:
        with os.fdopen(handle, "wb") as file:
            size = 0
            async for chunk in chunks:
                size += len(chunk)
                if size > most:
                    words = f"the file has more than the {most // 1000:,} kB that are taken"
                    raise RequestRefused(413, words, "name")
                file.write(chunk)
            file.flush()
            await check(str(beside), name)
            try:
                link_new(beside, goal)  # fails if the name was taken meanwhile
            except FileExistsError:
                raise _refuse_taken(name, "name") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
    return goal


def remove_uploads(folder: Path) -> None:
    """Remove the parts of uploads that a killed server left; they hold rows."""
    remove_unlocked(folder.glob(f"{UPLOAD_PREFIX}*"))


def check_upload(path: str, name: str) -> None:
    """The task: see that a file is what its name says, and can be read without harm."""
    check_content(Path(path), name)
    if Path(name).suffix.lower() in ARROW_KINDS:
        try:
            binary_readers.check_arrow(path)
        except InvalidInput:
            raise InvalidInput(
                f"{name} is a damaged Arrow file", field="file", value=name, hint="write it anew"
            ) from None
    if Path(name).suffix.lower() in SPREADSHEET_KINDS:
        require_extras("spreadsheets")
        try:
            binary_readers.sheet_arrow(path, None)
        except InvalidInput as error:  # which names the file as it is called meanwhile
            message = error.message.replace(Path(path).name, name)
            raise InvalidInput(message, field="file", value=name) from None


def check_content(path: Path, name: str) -> None:
    """Check that a file begins as files of its kind do."""
    kind = FILE_ENDINGS[Path(name).suffix.lower()]
    with path.open("rb") as file:
        start = file.read(1 << 16)
    if kind == "csv":
        wrong = not start.strip() or b"\0" in start or start.startswith(tuple(MAGIC_BYTES.values()))
        try:
            start[:-4].decode("utf-8")
        except UnicodeDecodeError:
            wrong = True
    else:
        wrong = not start.startswith(MAGIC_BYTES[kind])
    if not start:
        raise InvalidInput(f"{name} is empty", field="file", value=name, hint="choose another file")
    if wrong:
        named = {"csv": "a text file in UTF-8", "spreadsheet": "an unprotected workbook"}
        words = named.get(kind, f"a {kind.capitalize()} file")
        raise InvalidInput(
            f"{name} ends in {Path(name).suffix}, but what it holds is not {words}",
            field="file",
            value=name,
            hint="save it as one, or give it the ending of what it is",
        )


def _list_files(folder: Path, suffixes: Collection[str]) -> list[Path]:
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in suffixes
        and path.is_file()
        and path.resolve().parent == folder.resolve()
        and NAME_PATTERN.fullmatch(normalize("NFC", path.name))
    )


# Files that releases write: synthetic tables. A file has a plain name, and never replaces
# another's: a name that is there, or that another release is writing, is refused unless this very
# request paid for it. A curator's files lie in the served folder; those of a user who may not see
# all its files lie in a folder of that user's own, so that which names are taken says nothing about
# the others. What is handed out is the file that was written, by its digest in the ledger.


OUTPUT_SUFFIX = ".parquet"

OUTPUTS_FOLDER = ".outputs"
"""The folder, in the served one, of what users who are no curators have written."""

_lock = threading.Lock()
_writing: set[Path] = set()


def output_home(settings: Settings, visitor: Visitor, request: str | None = None) -> Path:
    """Where the files of a visitor's releases are.

    Args:
        request: a request as the ledger keeps it: a curator finds a user's files by the user's.
    """
    own = visitor.mark or (request or "").rpartition("-")[2]
    folder = settings.folder / OUTPUTS_FOLDER / own
    if visitor.mark or (DIGEST_NAME_PATTERN.fullmatch(own) and folder.is_dir()):
        return folder
    return settings.folder


def all_homes(settings: Settings) -> list[Path]:
    """Where files of anyone's releases are."""
    return [settings.folder, *(settings.folder / OUTPUTS_FOLDER).glob("*")]


def make_home(folder: Path) -> None:
    """Make a folder that `output_home` has named; where that fails, nothing is written to it."""
    for each in (folder.parent, folder):
        with suppress(OSError):
            each.mkdir(PRIVATE_FOLDER_MODE, exist_ok=True)


def check_outputs(folder: Path, body: ScenarioBody, own: Collection[int] = ()) -> None:
    """See that the files that a scenario will write can have their names.

    Args:
        own: indices of the queries that this request has paid for: their files may be there.

    Raises:
        Refused: a name is taken.
    """
    _name_outputs(folder, body, lambda index, path: path.exists() and index not in own)


@contextmanager
def reserved(folder: Path, body: ScenarioBody) -> Iterator[None]:
    """Keep the names from other releases of this server for the length of a block."""
    with _lock:
        wanted = _name_outputs(folder, body, lambda _, path: path in _writing)
        _writing.update(wanted)
    try:
        yield
    finally:
        with _lock:
            _writing.difference_update(wanted)


def _name_outputs(
    folder: Path, body: ScenarioBody, is_taken: Callable[[int, Path], bool]
) -> set[Path]:
    """The files that a scenario will write; one of them must not be taken, nor named twice."""
    wanted: set[Path] = set()
    for index, query in enumerate(body.queries):
        if _writes_file(query.get("kind")):
            with at(f"queries[{index}].path"):
                path = folder / plain_name(query.get("path"))
            if path in wanted or is_taken(index, path):
                raise _refuse_taken(path.name, f"queries.{index}.path")
            wanted.add(path)
    return wanted


def _refuse_taken(name: str, field: str) -> RequestRefused:
    return RequestRefused(
        409, f"there is a file {name!r} already", field, hint="choose another name"
    )


def find_output(folder: Path, answer: Answer) -> Path:
    """The file of an answer, if it is still what was written."""
    if not _writes_file(answer.question.get("query")):
        raise InvalidInput(
            f"the answer {answer.title!r} has no file",
            field="answer",
            hint="only a synthetic table is written to one",
        )
    name, _, digest = answer.rows[0]
    path = folder / plain_name(name)
    gone = f"the file {name!r} is no longer what this release wrote"
    try:
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise RequestRefused(409, gone, "answer")
    except OSError:
        raise RequestRefused(404, gone, "answer") from None
    return path


def _writes_file(kind: object) -> bool:
    return isinstance(kind, str) and kind in QUERIES and QUERIES[kind].writes_file


def plain_name(name: object) -> str:
    """A name that a file may have."""
    if isinstance(name, str) and NAME_PATTERN.fullmatch(name) and name.endswith(OUTPUT_SUFFIX):
        return name
    raise invalid_value("path", f"a plain file name ending in {OUTPUT_SUFFIX}", repr(name)[:120])
