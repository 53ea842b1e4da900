"""What a caller hands over, read or refused by name.

Contract: whatever its type, a wrong argument becomes one message that names the parameter, what is
accepted and what came.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path
from typing import TypeVar

import numpy as np

from whosin.errors import InvalidInput

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Called with (done, in all)."""


def instance(value: object, kind: type[T], field: str, accepted: str) -> T:
    """The value, if it is of this kind."""
    if not isinstance(value, kind):
        raise InvalidInput(field, accepted, type(value).__name__)
    return value


def path_of(value: object, field: str) -> Path:
    """The path of a file."""
    if not isinstance(value, str | PathLike):
        raise InvalidInput(field, "the path of a file", type(value).__name__)
    text = fspath(value)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidInput(field, "the path of a file", repr(text)[:80])
    return Path(text)


def whole(value: object, field: str, least: int) -> int:
    """A whole number, numpy's too."""
    accepted = f"a whole number of at least {least}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise InvalidInput(field, accepted, repr(value)[:80])
    if value < least:
        raise InvalidInput(field, accepted, value)
    return int(value)


def real(value: object, field: str) -> float:
    """A finite number."""
    from whosin.exact import rational

    return float(rational(value, field))


def several(values: object, field: str) -> list[object]:
    """A list, or another sequence, with something in it."""
    if not isinstance(values, list | tuple | range | np.ndarray) or not len(values):
        raise InvalidInput(field, "a list with at least one number", repr(values)[:80])
    return list(values)


def listener(progress: object) -> Progress | None:
    """Whom to tell how far a work is."""
    if progress is not None and not callable(progress):
        accepted = "a function of two numbers, done and in all"
        raise InvalidInput("progress", accepted, type(progress).__name__)
    return progress
