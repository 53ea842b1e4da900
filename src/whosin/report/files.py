"""Files that reports are written to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from whosin.errors import InvalidInput


def check_writable(path: Path, option: str, endings: Sequence[str]) -> None:
    """Refuse a file that could not be written, before any work is done or anything is spent."""
    if path.suffix.lower() not in endings:
        *first, last = endings
        raise InvalidInput(option, f"a file ending in {', '.join(first)} or {last}", path.name)
    if not path.resolve().parent.is_dir():
        raise InvalidInput(option, "in a folder that exists", str(path))
