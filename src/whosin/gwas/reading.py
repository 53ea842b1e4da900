"""What a caller hands over, read or refused by name.

Contract: whatever its type, a wrong argument becomes one message that names the parameter, what is
accepted and what was received.
"""

from __future__ import annotations

from collections.abc import Callable
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
