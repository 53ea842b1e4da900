"""Folders for rows that do not fit into memory: our own, for our eyes, and gone afterwards.

Contract: a folder has mode 700 and is locked by the process that uses it. One whose process is
gone, killed with its rows on the disk, is removed when the next one is made in the same place.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import weakref
from pathlib import Path
from tempfile import gettempdir, mkdtemp

from whosin.errors import InvalidInput

PREFIX = "whosin-spill-"
LOCK = ".lock"


class SpillFolder:
    """A new folder; it is removed by `remove`, or when nobody refers to it, or at the end.

    Args:
        folder: where to make it; the system's temporary folder by default.
    """

    def __init__(self, folder: object = None) -> None:
        home = _home(folder)
        remove_abandoned(home)
        made = Path(mkdtemp(prefix=f".{PREFIX}", dir=home))
        self._lock = os.open(made / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # It gets its name when it is locked: a folder with this name and no lock is abandoned.
        self.path = made.with_name(made.name.removeprefix("."))
        made.rename(self.path)
        self.remove = weakref.finalize(self, _remove, self.path, self._lock)

    def empty(self) -> None:
        """Remove what is in it; it stays locked."""
        for entry in self.path.iterdir():
            if entry.name != LOCK:
                shutil.rmtree(entry, ignore_errors=True)


def remove_abandoned(home: Path) -> None:
    """Remove the folders of this user in whose processes nobody is left."""
    for folder in home.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            result = folder.lstat()
            if result.st_uid != os.getuid() or folder.is_symlink() or not folder.is_dir():
                continue
            lock = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _remove(folder: Path, lock: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.close(lock)


def _home(folder: object) -> Path:
    if folder is None:
        return Path(gettempdir())
    if not Path(str(folder)).is_dir():
        raise InvalidInput("spill", "an existing folder", Path(str(folder)).name)
    return Path(str(folder))
