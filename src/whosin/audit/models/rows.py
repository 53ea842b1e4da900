"""Training data of any kind: arrays, frames, lists, or a tuple of these: (features, labels).

Contract: parts are copies, in the order of the rows. Nothing is known of the data but its length
and how to take rows of it; a digest tells whether it is the same data as before.
"""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array

ACCEPTED = "an array, a frame, a list, or a tuple of these of one length"


@dataclass(frozen=True)
class TrainingRows:
    """Rows to train on.

    Attributes:
        parts: columns of data, all of one length; one, unless the rows are a tuple.
        several: whether a fit is given a tuple.
    """

    parts: tuple[Any, ...]
    several: bool

    @classmethod
    def read(cls, rows: object) -> TrainingRows:
        """The rows as a caller gives them."""
        several = isinstance(rows, tuple) and not hasattr(rows, "_fields")
        parts = tuple(rows) if several else (rows,)  # type: ignore[arg-type]
        lengths = {_length(part) for part in parts}
        if len(lengths) != 1:
            got = f"parts of {' and '.join(str(each) for each in sorted(lengths))} rows"
            raise InvalidInput("rows", ACCEPTED, got if lengths else "nothing")
        return cls(parts, several)

    def __len__(self) -> int:
        return _length(self.parts[0])

    def take(self, places: Array) -> Any:
        """Some of the rows, as a fit or a score wants them."""
        taken = tuple(_take(part, places) for part in self.parts)
        return taken if self.several else taken[0]

    def digest(self) -> str:
        """Of everything in the rows."""
        total = hashlib.sha256()
        for part in self.parts:
            plain = isinstance(part, np.ndarray) and part.dtype != object
            total.update(part.tobytes() if plain else _pickled(part))
        return total.hexdigest()


def _length(part: Any) -> int:
    shape = getattr(part, "shape", None)
    if isinstance(part, str | bytes | dict) or (shape is None and not hasattr(part, "__len__")):
        raise InvalidInput("rows", ACCEPTED, type(part).__name__)
    return int(shape[0]) if shape else len(part)


def _take(part: Any, places: Array) -> Any:
    if hasattr(part, "iloc"):
        return part.iloc[places]
    if isinstance(part, list | tuple):
        return [part[row] for row in places.tolist()]
    return part[places]


def _pickled(part: Any) -> bytes:
    try:
        return pickle.dumps(part, protocol=5)
    except Exception as error:
        accepted = "data that can be pickled, so that a resumed audit can tell it is the same"
        raise InvalidInput("rows", accepted, f"{type(error).__name__}: {error}") from error
