"""Files that releases write: synthetic tables.

Contract: a file is written in the served folder under a plain name, and never replaces another's: a
name that is there, or that another release is writing, is refused unless this very request paid for
it. What is handed out is the file that was written, by its digest in the ledger.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from whosin.app.web.failures import Refused
from whosin.app.web.folder import NAME
from whosin.app.web.models import ScenarioBody
from whosin.errors import InvalidInput, at
from whosin.release import QUERIES, Answer

ENDING = ".parquet"

_lock = threading.Lock()
_writing: set[Path] = set()


def check(folder: Path, body: ScenarioBody, own: Collection[int] = ()) -> None:
    """See that the files that a scenario will write can have their names.

    Args:
        own: indices of the queries that this request has paid for: their files may be there.

    Raises:
        Refused: a name is taken.
    """
    wanted: set[Path] = set()
    for index, path in _wanted(folder, body):
        if path in wanted or (path.exists() and index not in own):
            raise _taken(path, index)
        wanted.add(path)


@contextmanager
def reserved(folder: Path, body: ScenarioBody) -> Iterator[None]:
    """Keep the names from other releases of this server for the length of a block."""
    wanted: set[Path] = set()
    with _lock:
        for index, path in _wanted(folder, body):
            if path in wanted | _writing:
                raise _taken(path, index)
            wanted.add(path)
        _writing.update(wanted)
    try:
        yield
    finally:
        with _lock:
            _writing.difference_update(wanted)


def _wanted(folder: Path, body: ScenarioBody) -> Iterator[tuple[int, Path]]:
    for index, query in enumerate(body.queries):
        if _writes_file(query.get("kind")):
            with at(f"queries[{index}].path"):
                yield index, folder / plain_name(query.get("path"))


def _taken(path: Path, index: int) -> Refused:
    words = f"there is a file {path.name!r} already; choose another name"
    return Refused(409, words, f"queries.{index}.path")


def written(folder: Path, answer: Answer) -> Path:
    """The file of an answer, if it is still what was written."""
    if not _writes_file(answer.question.get("query")):
        raise InvalidInput("answer", "one that wrote a file", answer.title)
    name, _, digest = answer.rows[0]
    path = folder / plain_name(name)
    gone = f"the file {name!r} is no longer what this release wrote"
    try:
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise Refused(409, gone, "answer")
    except OSError:
        raise Refused(404, gone, "answer") from None
    return path


def _writes_file(kind: object) -> bool:
    return isinstance(kind, str) and kind in QUERIES and QUERIES[kind].writes_file


def plain_name(name: object) -> str:
    """A name that a file may have."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or not name.endswith(ENDING):
        raise InvalidInput("path", f"a plain file name ending in {ENDING}", repr(name)[:120])
    return name
