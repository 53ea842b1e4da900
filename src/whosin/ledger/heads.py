"""The last head of every dataset, kept beside a ledger's file: what an older copy lacks.

Contract: a head is noted here after its entry is on disk, so the note never runs ahead. A ledger
whose history ends before the note, or does not run through it, has lost entries: its log was
deleted, an older copy was put back, or it was rewritten. Each dataset has a line of its own, of a
fixed length and written in one piece, so that a killed process leaves no half of one and a full
disk is no hindrance. The file belongs to the ledger: copy both.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from whosin.errors import BrokenHistory

LINE = 1024
"""Bytes of a line: a divisor of a page, and enough for the longest name."""
ENDING = "-heads"


class Heads:
    """The notes beside one file."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self.path = Path(f"{ledger}{ENDING}")

    def read(self) -> dict[str, tuple[int, str]]:
        """The number and the head of the last entry that was noted, by dataset."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        return {name: result for _, name, result in _lines(text)}

    def check(self, row: Any) -> None:
        """See that a dataset has at least the entries that were noted.

        Raises:
            BrokenHistory: it has not; nothing may be debited.
        """
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
        text = json.dumps(line, ensure_ascii=False).encode().ljust(LINE - 1) + b"\n"
        with self._locked() as file:
            known = os.pread(file, os.fstat(file).st_size, 0)
            line_number = len(known) // LINE
            for at, name, (number, _) in _lines(known):
                if name == row.name:
                    if number >= row.entries:
                        return
                    line_number = at
            os.pwrite(file, text, line_number * LINE)

    def has_locks(self) -> bool:
        """Whether the file system offers locks at all."""
        try:
            with self._locked() as file:
                fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP)
        return True

    @contextmanager
    def _locked(self) -> Iterator[int]:
        mode = self._ledger.stat().st_mode & 0o666
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
        try:
            with suppress(PermissionError):
                if os.fstat(file).st_mode & 0o777 != mode:
                    os.fchmod(file, mode)
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


def _lines(text: bytes) -> Iterator[tuple[int, str, tuple[int, str]]]:
    for number in range(len(text) // LINE):
        try:
            line = json.loads(text[number * LINE : (number + 1) * LINE])
            yield number, str(line["dataset"]), (int(line["entries"]), str(line["head"]))
        except (ValueError, KeyError, TypeError):
            continue  # damaged: it says nothing
