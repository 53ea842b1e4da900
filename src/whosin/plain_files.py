"""Files that we write: plain ones, opened by their own name and through no link.

Nothing is written, emptied or given other permissions through a symbolic link, nor through one of
several names of a file (a hard link). A pipe, a device or a folder in the place of a file is
refused at once, without waiting for it. What is private is made for its owner alone. A file that is
replaced is replaced as a whole, and one that must not replace another gets its name by `link_new`,
which fails where the name is taken.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import IO, Any

from whosin.errors import InvalidInput, invalid_value

PRIVATE_FILE_MODE = 0o600
PRIVATE_FOLDER_MODE = 0o700
LOCK_NAME = ".lock"
"""The file in a folder of ours by which it is locked."""


def check_plain(path: Path, field: str = "path") -> None:
    """Refuse what is there and is no plain file, before anything is opened."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        _require_plain(os.lstat(path), path, field)


def check_output(path: Path, field: str = "path") -> None:
    """Refuse what cannot be written to, before anything is spent or computed.

    Raises:
        InvalidInput: what is there is no plain file, or has another name as well, under which
            somebody would find it changed.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        _require_sole(os.lstat(path), path, field)


def open_plain(path: Path, flags: int, mode: int = 0o666, field: str = "path") -> int:
    """The descriptor of a plain file; `flags` as for `os.open`, without O_TRUNC."""
    check_plain(path, field)
    try:  # a pipe that has just taken its place must not make us wait
        file = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise _refuse_file(path, field, "not a plain file") from None
        raise
    try:
        _require_plain(os.fstat(file), path, field)
    except BaseException:
        os.close(file)
        raise
    return file


def create_file(
    path: Path, field: str = "path", *, private: bool = False, binary: bool = False
) -> IO[Any]:
    """An empty file to write to: a new one, or the one that is there, emptied.

    Args:
        private: a new file is for its owner only; one that is there keeps its permissions.
    """
    check_output(path, field)
    handle = open_plain(
        path, os.O_WRONLY | os.O_CREAT, PRIVATE_FILE_MODE if private else 0o666, field
    )
    try:
        _require_sole(os.fstat(handle), path, field)
        os.ftruncate(handle, 0)
        return os.fdopen(handle, "wb" if binary else "w", encoding=None if binary else "utf-8")
    except BaseException:
        os.close(handle)
        raise


def write_file(
    path: Path, content: str | bytes, field: str = "path", *, private: bool = False
) -> None:
    """Write a whole file; see `create_file`."""
    with create_file(path, field, private=private, binary=isinstance(content, bytes)) as file:
        file.write(content)


def replace_file(path: Path, text: str, field: str = "path") -> None:
    """Replace a private file in one step, or make it; what is read is the old one or the new."""
    check_plain(path, field)
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def link_new(made: Path, path: Path) -> None:
    """Give a finished file its name, and take its old one away.

    Raises:
        FileExistsError: the name is taken, by whatever it is; the finished file stays.
    """
    try:
        os.link(made, path, follow_symlinks=False)
        os.unlink(made)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP):
            raise
        # A file system without hard links: take the name first, which also fails where it is taken.
        os.close(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE_MODE)
        )
        os.replace(made, path)


def try_lock(file: int) -> bool:
    """Lock an open file for as long as it stays open here; false where another process has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def make_locked(folder: Path, start: str, end: str = "") -> tuple[int, Path]:
    """A new private file with a name between `start` and `end`, locked while it is open here. It
    gets that name when it is locked, so that one without a lock was left behind."""
    handle, made = tempfile.mkstemp(prefix=".begun-", dir=folder)
    try:
        try_lock(handle)
        path = folder / f"{start}{Path(made).name.removeprefix('.begun-')}{end}"
        os.rename(made, path)
    except BaseException:
        os.close(handle)
        with contextlib.suppress(OSError):
            os.unlink(made)
        raise
    return handle, path


def remove_unlocked(paths: Iterable[Path]) -> None:
    """Remove those plain files of ours that no process holds locked: whoever made them is gone."""
    for path in paths:
        with contextlib.suppress(OSError, InvalidInput):
            file = open_plain(path, os.O_RDONLY)
            try:
                if os.fstat(file).st_uid == os.getuid() and try_lock(file):
                    os.unlink(path)
            finally:
                os.close(file)


def remove_unlocked_folders(paths: Iterable[Path]) -> None:
    """The same for folders of ours, which are locked by a file in them."""
    for path in paths:
        with contextlib.suppress(OSError):
            status = os.lstat(path)
            if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
                continue
            lock = lock_folder(path)
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def lock_folder(path: Path) -> int | None:
    """The descriptor that keeps a folder locked while it is open; none where another has it."""
    lock = os.open(
        path / LOCK_NAME, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE_MODE
    )
    if try_lock(lock):
        return lock
    os.close(lock)
    return None


def _require_plain(status: os.stat_result, path: Path, field: str) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kinds = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe"}
    what = kinds.get(stat.S_IFMT(status.st_mode), "a device or a socket")
    raise _refuse_file(path, field, what)


def _require_sole(status: os.stat_result, path: Path, field: str) -> None:
    _require_plain(status, path, field)
    if status.st_nlink > 1:
        raise _refuse_file(path, field, "a file with another name too (a hard link)")


def _refuse_file(path: Path, field: str, what: str) -> InvalidInput:
    hint = "give a plain file, or a name that is not taken"
    return InvalidInput(f"{field} {path.name} is {what}", field=field, value=path.name, hint=hint)


# Temporary folders that may hold rows: our own, for our eyes, and gone afterwards.
#
# A folder has mode 700 and is locked by the process that made it. One whose process was killed,
# with rows on the disk, is removed when the next one is made in the same place, of whichever kind;
# a server also looks when it starts. So tasks must not be the only ones to look: each of them has a
# folder of its own as its temporary folder, in which nothing was left by others.

SPILL_PREFIX, TASK_PREFIX = "whosin-spill-", "whosin-task-"


class PrivateFolder:
    """A new folder; it is removed by `remove`, or when nobody refers to it, or at the end.

    Args:
        prefix: `SPILL_PREFIX` or `TASK_PREFIX`, which its name begins with.
        home: where to make it.
    """

    def __init__(self, prefix: str, home: Path) -> None:
        remove_abandoned(home)
        made = Path(mkdtemp(prefix=f".{prefix}", dir=home))
        lock = lock_folder(made)
        # It gets its name when it is locked: a folder with this name and no lock is abandoned.
        self.path = made.with_name(made.name.removeprefix("."))
        made.rename(self.path)
        self.remove = weakref.finalize(self, _remove_folder, self.path, lock)

    def __enter__(self) -> str:
        return str(self.path)

    def __exit__(self, *_: object) -> None:
        self.remove()

    def empty(self) -> None:
        """Remove what is in it; it stays locked."""
        for entry in self.path.iterdir():
            if entry.name != LOCK_NAME:
                shutil.rmtree(entry, ignore_errors=True)


def remove_abandoned(home: Path) -> None:
    """Remove the folders of this user in whose processes nobody is left."""
    remove_unlocked_folders((*home.glob(f"{SPILL_PREFIX}*"), *home.glob(f"{TASK_PREFIX}*")))


def _remove_folder(folder: Path, lock: int | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        with contextlib.suppress(OSError):
            os.close(lock)


def require_new_file(path: Path, option: str) -> None:
    """Refuse a file that is there already: what somebody has published is not written over."""
    if os.path.lexists(path):
        raise InvalidInput(
            f"{path.name} is there already, and nothing is overwritten",
            field=option,
            value=path.name,
            hint="choose a new name, or remove the file",
        )


def check_writable(path: Path, option: str, endings: Sequence[str]) -> None:
    """Refuse a file that could not be written, before any work is done or anything is spent."""
    if path.suffix.lower() not in endings:
        *first, last = endings
        raise invalid_value(option, f"a file ending in {', '.join(first)} or {last}", path.name)
    if not path.parent.is_dir():
        raise InvalidInput(
            f"there is no folder {path.parent}", field=option, value=str(path), hint="make it first"
        )
    check_output(path, option)
