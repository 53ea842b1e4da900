"""Where a ledger's file is, for its owner only, and the heads kept beside it.

SQLite keeps its log beside the name by which a file was opened. Two names for one file would have
two logs, and each could spend the whole budget; so a file with hard links, a mount of the single
file, and a file that was moved or replaced while it was open are refused. Symbolic links lead to
the one place. The file is opened through SQLite only: whoever else closes it drops the locks that
SQLite holds in the same process.

The last head of every dataset, kept beside a ledger's file: what an older copy lacks. A head is
noted here after its entry is on disk, so the note never runs ahead. A ledger whose history ends
before the note, or does not run through it, has lost entries: its log was deleted, an older copy
was put back, or it was rewritten. Each dataset has a line of its own, of a fixed length and written
in one piece, so that a killed process leaves no half of one and a full disk is no hindrance. A file
that is damaged, or is no plain file, is not the same as none: nothing is debited until it is put
back, or removed by someone who knows why. It is never opened through a link. The file belongs to
the ledger: copy both.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from whosin.errors import BrokenHistory, InvalidInput, StoreFailed
from whosin.ledger import entries
from whosin.plain_files import link_new, open_plain

PRIVATE_MODE = 0o600
MOUNT_TABLE = Path("/proc/self/mountinfo")


class LedgerFile:
    """The file of a ledger."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._identity: tuple[int, int] | None = None

    def prepare(self, create: bool) -> None:
        """See that a ledger can be here; make an empty file, for this user only, where none is."""
        path = self.path
        if path.is_dir():
            raise InvalidInput(
                f"{path.name} is a folder, not a ledger file", field="ledger", value=path.name
            )
        if not path.exists():
            if not create:
                message = f"there is no ledger {path.name}"
                hint = "see that the path is right, or make one with whosin ledger create"
                raise InvalidInput(message, field="ledger", value=path.name, hint=hint)
            if not path.parent.is_dir():
                message = f"the folder of the ledger {path.name} does not exist"
                raise InvalidInput(
                    message, field="ledger", value=path.name, hint="make the folder first"
                )
            with suppress(FileExistsError):
                _make_file(path)
        if not path.is_file():
            message = f"{path.name} is not a regular file, and a ledger needs one"
            raise InvalidInput(message, field="ledger", value=path.name)
        if str(path) in mount_points(MOUNT_TABLE):
            raise StoreFailed(
                f"{path.name} is mounted as a single file, so its log would stay outside the mount",
                hint="mount the folder that holds it",
            )
        self._check_links(path.stat())
        if not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, "permission denied")
        if path.stat().st_size:
            self._look_inside()
        self._identity = _file_identity(path.stat())

    @property
    def writable(self) -> bool:
        """Whether this process may write the file, and logs beside it."""
        return os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK | os.X_OK)

    def check(self) -> None:
        """See that the name still stands for the file that was opened, and no other name does."""
        try:
            result = self.path.stat()
        except FileNotFoundError:
            result = None
        if result is None or _file_identity(result) != self._identity:
            raise StoreFailed(
                f"{self.path.name} was moved or replaced while it was open; no answer was given",
                hint="open the ledger again",
            )
        self._check_links(result)

    def read_only_uri(self) -> str:
        """The address to read it by, without leaving files beside it where there is no log."""
        log = Path(f"{self.path}-wal")
        fixed = "" if log.exists() and log.stat().st_size else "&immutable=1"
        return f"file:{quote(str(self.path))}?mode=ro{fixed}"

    def stamp(self) -> tuple[int, int]:
        """Changes when the file is written."""
        result = self.path.stat()
        return result.st_mtime_ns, result.st_size

    def _check_links(self, status: os.stat_result) -> None:
        if status.st_nlink > 1:
            raise StoreFailed(
                f"{self.path.name} has {status.st_nlink} hard links, each with a log of its own; "
                "no answer was given",
                hint="keep one and remove the others",
            )

    def _look_inside(self) -> None:
        """Refuse what is not a ledger, before a setting of ours is written into it."""
        base = sqlite3.connect(f"file:{quote(str(self.path))}?mode=ro&immutable=1", uri=True)
        try:
            tables = {name for (name,) in base.execute("SELECT tbl_name FROM sqlite_master")}
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                raise InvalidInput(
                    f"{self.path.name} is not a ledger file", field="ledger", value=self.path.name
                ) from None
            return  # half written, with the rest in its log, or damaged: opening it tells
        finally:
            base.close()
        if tables and not tables & entries.TABLE_COLUMNS.keys():
            message = f"{self.path.name} is a database of another program, not a ledger"
            raise InvalidInput(message, field="ledger", value=self.path.name)


def mount_points(table: Path) -> set[str]:
    """Where something is mounted, by the system's table; nothing where the system has none."""
    try:
        text = table.read_bytes()
    except OSError:
        return set()
    fields = [line.split(b" ") for line in text.splitlines()]
    return {os.fsdecode(_unescape_octal(each[4])) for each in fields if len(each) > 4}


def _unescape_octal(name: bytes) -> bytes:
    """The table writes spaces, tabs, line ends and backslashes in octal."""
    for code in (b" ", b"\t", b"\n", b"\\"):
        name = name.replace(b"\\%03o" % code[0], code)
    return name


def _make_file(path: Path) -> None:
    with suppress(AttributeError, PermissionError, OSError):
        os.mknod(path, stat.S_IFREG | PRIVATE_MODE)  # without opening it
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_MODE))


def _file_identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


MAX_LINE_BYTES = 1024
"""Bytes of a line: a divisor of a page, and enough for the longest name."""
HEADS_SUFFIX = "-heads"
LINE_KEYS = {"dataset", "entries", "head"}
HEAD_PATTERN = re.compile(r"[0-9a-f]{64}")


class Heads:
    """The notes beside one file."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self.path = Path(f"{ledger}{HEADS_SUFFIX}")

    def read(self) -> dict[str, tuple[int, str]]:
        """The number and the head of the last entry that was noted, by dataset."""
        try:
            with self._opened(os.O_RDONLY) as file:
                fcntl.flock(file, fcntl.LOCK_SH)  # or half of a line could be seen
                return {name: noted for name, (_, noted) in self._lines(file).items()}
        except FileNotFoundError:
            return {}

    def check(self, row: Any) -> None:
        """See that a dataset has at least the entries that were noted."""
        number, head = self.read().get(row.name, (0, ""))
        if number > row.entries or (number == row.entries and number and head != row.head):
            raise BrokenHistory(row.name, self.words(number, row.entries))

    def words(self, number: int, entries: int) -> str:
        """What is wrong with a ledger that lacks what was noted."""
        return (
            f"{self.path.name} has seen entry {number}, and the ledger has {entries} of that "
            "history: entries were lost, or an older copy was put back"
        )

    def note(self, row: Any) -> None:
        """Remember where a dataset stands; what is noted already is never taken back."""
        line = {"dataset": row.name, "entries": row.entries, "head": row.head}
        text = json.dumps(line, ensure_ascii=False).encode().ljust(MAX_LINE_BYTES - 1) + b"\n"
        while True:
            try:
                with self._opened(os.O_RDWR) as file:
                    self._lock(file)
                    self._note(file, row, text)
                return
            except FileNotFoundError:
                if self._make(text):
                    return

    def _note(self, file: int, row: Any, text: bytes) -> None:
        lines = self._lines(file)
        line_number, (number, _) = lines.get(row.name, (len(lines), (0, "")))
        if number >= row.entries:
            return
        if os.pwrite(file, text, line_number * MAX_LINE_BYTES) < MAX_LINE_BYTES:
            if row.name not in lines:  # half a line would count as damage
                os.ftruncate(file, len(lines) * MAX_LINE_BYTES)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if row.name not in lines:  # a longer file: a loss of power must not leave empty bytes
            os.fsync(file)

    def _make(self, text: bytes) -> bool:
        """Make the file with its first line; false where another process was faster. It gets its
        name when it is whole, so that an empty file is a damaged one."""
        handle, made = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                os.fchmod(handle, self._mode())
                file.write(text)
                file.flush()
                os.fsync(handle)
            with suppress(FileExistsError):
                link_new(Path(made), self.path)
                return True
        finally:
            with suppress(FileNotFoundError):
                os.unlink(made)
        return False

    def has_locks(self) -> bool:
        """Whether the file system offers locks at all."""
        try:
            with tempfile.TemporaryFile(dir=self.path.parent) as file:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP)
        return True

    def _lock(self, file: int) -> None:
        mode = self._mode()
        with suppress(PermissionError):
            if os.fstat(file).st_mode & 0o777 != mode:
                os.fchmod(file, mode)
        fcntl.flock(file, fcntl.LOCK_EX)

    @contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        try:
            file = open_plain(self.path, flags, field=self.path.name)
        except InvalidInput as error:
            raise self._unusable(str(error)) from None
        try:
            yield file
        finally:
            os.close(file)

    def _mode(self) -> int:
        return self._ledger.stat().st_mode & 0o666

    def _lines(self, file: int) -> dict[str, tuple[int, tuple[int, str]]]:
        """The number of each dataset's line, and what it says."""
        text = os.pread(file, os.fstat(file).st_size, 0)
        result: dict[str, tuple[int, tuple[int, str]]] = {}
        try:
            if not text or len(text) % MAX_LINE_BYTES:
                raise ValueError("not whole lines")
            for number in range(len(text) // MAX_LINE_BYTES):
                name, noted = _parse_line(
                    text[number * MAX_LINE_BYTES : (number + 1) * MAX_LINE_BYTES]
                )
                if name in result:
                    raise ValueError("a dataset with two lines")
                result[name] = (number, noted)
        except (ValueError, KeyError, TypeError):
            raise self._unusable(f"{self.path.name} is damaged") from None
        return result

    def _unusable(self, reason: str) -> StoreFailed:
        return StoreFailed(
            f"{reason}; nothing was debited",
            hint="put back the file that belongs to the ledger, or remove it to go on without what "
            "it noted",
        )


def _parse_line(text: bytes) -> tuple[str, tuple[int, str]]:
    data = json.loads(text)
    if not isinstance(data, dict) or data.keys() != LINE_KEYS or text[-1:] != b"\n":
        raise ValueError("not a line of ours")
    name, entries, head = data["dataset"], data["entries"], data["head"]
    if type(name) is not str or type(entries) is not int or entries < 1:
        raise ValueError("not a dataset and a number")
    if type(head) is not str or not HEAD_PATTERN.fullmatch(head):
        raise ValueError("not a head")
    return name, (entries, head)
