"""Where a ledger's file is: one place, by one name, for its owner only.

Contract: SQLite keeps its log beside the name by which a file was opened. Two names for one file
would have two logs, and each could spend the whole budget; so a file with hard links, a mount of
the single file, and a file that was moved or replaced while it was open are refused. Symbolic links
lead to the one place. The file is opened through SQLite only: whoever else closes it drops the
locks that SQLite holds in the same process.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from whosin.errors import InvalidInput, StoreFailed
from whosin.ledger import schema

PRIVATE = 0o600
MOUNTS = Path("/proc/self/mountinfo")


class LedgerFile:
    """The file of a ledger."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._identity: tuple[int, int] | None = None

    def prepare(self, create: bool) -> None:
        """See that a ledger can be here; make an empty file, for this user only, where none is."""
        path = self.path
        if path.is_dir():
            raise InvalidInput("ledger", "a file", "a folder")
        if not path.exists():
            if not create:
                got = f"{path.name}, which does not exist"
                raise InvalidInput("ledger", "an existing ledger", got)
            if not path.parent.is_dir():
                got = f"{path.name} in a folder that does not exist"
                raise InvalidInput("ledger", "a file in an existing folder", got)
            with suppress(FileExistsError):
                _make(path)
        if not path.is_file():
            raise InvalidInput("ledger", "a file", "something else")
        if str(path) in mounted(MOUNTS):
            raise StoreFailed(
                f"{path.name} is mounted as a single file, and its log would stay behind: mount "
                "the folder that holds it"
            )
        self._check_links(path.stat())
        if not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, "permission denied")
        if path.stat().st_size:
            self._look_inside()
        self._identity = _identity(path.stat())

    @property
    def writable(self) -> bool:
        """Whether this process may write the file, and logs beside it."""
        return os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK | os.X_OK)

    def check(self) -> None:
        """See that the name still stands for the file that was opened, and no other name does.

        Raises:
            StoreFailed: it does not; what is written could be lost.
        """
        try:
            result = self.path.stat()
        except FileNotFoundError:
            result = None
        if result is None or _identity(result) != self._identity:
            raise StoreFailed(
                f"{self.path.name} was moved or replaced while it was open: open it again; "
                "no answer was given"
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
                f"{self.path.name} has {status.st_nlink} names (hard links), each with a log of "
                "its own: keep one and remove the others; no answer was given"
            )

    def _look_inside(self) -> None:
        """Refuse what is not a ledger, before a setting of ours is written into it."""
        base = sqlite3.connect(f"file:{quote(str(self.path))}?mode=ro&immutable=1", uri=True)
        try:
            tables = {name for (name,) in base.execute("SELECT tbl_name FROM sqlite_master")}
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                got = f"{self.path.name}, which is not one"
                raise InvalidInput("ledger", "a ledger file", got) from None
            return  # half written, with the rest in its log, or damaged: opening it tells
        finally:
            base.close()
        if tables and not tables & set(schema.metadata.tables):
            raise InvalidInput("ledger", "a ledger file", "another program's database")


def mounted(table: Path) -> set[str]:
    """Where something is mounted, by the system's table; nothing where the system has none."""
    try:
        text = table.read_bytes()
    except OSError:
        return set()
    fields = [line.split(b" ") for line in text.splitlines()]
    return {os.fsdecode(_unescaped(each[4])) for each in fields if len(each) > 4}


def _unescaped(name: bytes) -> bytes:
    """The table writes spaces, tabs, line ends and backslashes in octal."""
    for code in (b" ", b"\t", b"\n", b"\\"):
        name = name.replace(b"\\%03o" % code[0], code)
    return name


def _make(path: Path) -> None:
    with suppress(AttributeError, PermissionError, OSError):
        os.mknod(path, stat.S_IFREG | PRIVATE)  # without opening it
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
