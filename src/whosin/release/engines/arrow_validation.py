"""Arrow files that can be read without harm.

Contract: pyarrow trusts the lengths and offsets of an Arrow file, and a damaged one can crash the
process. So a file is read whole and validated in a process of its own before anything else reads
it, once for as long as it stays the same file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from whosin import isolation
from whosin.errors import Crashed, InvalidInput, OutOfMemory, TookTooLong
from whosin.isolation import Limits, readers
from whosin.release.engines.base import unreadable

LIMITS = Limits(86400.0, 8 << 30)
MOST_KEPT = 10_000

_sound: dict[tuple[str, int, int, int], None] = {}


def require_sound(files: Sequence[str]) -> None:
    """Refuse files that are damaged.

    Raises:
        InvalidInput: one of them is.
    """
    for file in files:
        if (same := _identity(file)) in _sound:
            continue
        try:
            isolation.run(readers.check_arrow, file, limits=LIMITS)
        except (Crashed, InvalidInput, OutOfMemory, TookTooLong):
            raise unreadable(file, "arrow") from None
        _sound[same] = None
        if len(_sound) > MOST_KEPT:
            _sound.pop(next(iter(_sound)))


def _identity(file: str) -> tuple[str, int, int, int]:
    about = os.stat(file)
    return os.path.realpath(file), about.st_ino, about.st_size, about.st_mtime_ns
