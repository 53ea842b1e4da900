"""Tasks for processes of their own; a module of its own, so that it is quick to import."""

from __future__ import annotations

import os
import resource
import signal
import tempfile
import threading
import time
from pathlib import Path

from whosin import errors


def add(*numbers: int) -> int:
    return sum(numbers)


def refuse() -> None:
    error = errors.invalid_value("age", "at most 3", 7)
    error.__dict__["place"] = "domains.age"
    raise error


def dumped() -> list[int]:
    """How much of its memory a crash would write, now and at most."""
    return list(resource.getrlimit(resource.RLIMIT_CORE))


def fail() -> None:
    raise KeyError("patient 4711 is Ann")


def spin() -> None:
    while True:
        pass


def hoard() -> int:
    kept = [bytes(range(256)) * 4096 * number for number in range(1, 3000)]
    return len(kept)


def crash(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def litter() -> str:
    Path(tempfile.mkdtemp(), "rows").write_text("private")
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


def shout() -> None:
    os.write(2, b"patient 4711 is Ann\n")


def threads() -> int:
    return threading.active_count()


def spill(flag: str) -> None:
    """Spill a row, as an engine does, say where, and work on."""
    from whosin.plain_files import SPILL_PREFIX, PrivateFolder

    folder = PrivateFolder(SPILL_PREFIX, Path(tempfile.gettempdir()))
    (folder.path / "rows").write_text("private")
    Path(flag).write_text(str(folder.path))
    time.sleep(600)
