"""A snapshot of one output, whatever it is.

Contract: `freeze` is the one place that reads an output. What it returns is hashable, equal for
equal outputs, and holds nothing that the mechanism can change afterwards, such as a buffer that it
fills again at each draw. Plain values stay what they are; sequences and arrays become tuples;
mappings, frames, named tuples and objects with attributes become a `Record`; an exception, raised
or returned, becomes `Raised`; NaN becomes a word, for it equals itself here. Only what holds
nothing that can be read is refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any

import numpy as np

from whosin.errors import InvalidInput

FIELD = "output of the mechanism"
SUPPORTED = (
    "numbers, text, None, arrays, mappings, frames, other values with an __eq__ or attributes, "
    "or sequences of these"
)
DEEPEST = 40
"""Levels of nesting that are read."""
LONGEST = 1_000_000
"""Values that an iterator may yield."""
_PLAIN = frozenset({int, str, bytes, bool, type(None)})


class _NotANumber(Enum):
    NAN = "NaN"

    def __repr__(self) -> str:
        return "NaN"


NAN = _NotANumber.NAN


@dataclass(frozen=True)
class Record:
    """Values by key: a mapping, a frame by columns, or the attributes of an object."""

    items: tuple[tuple[Any, Any], ...]
    name: str = ""

    def __repr__(self) -> str:
        body = ", ".join(f"{key!r}: {value!r}" for key, value in self.items)
        return f"{self.name}{{{body}}}"


@dataclass(frozen=True)
class Raised:
    """An exception as an output."""

    name: str
    text: str

    @classmethod
    def of(cls, error: BaseException) -> Raised:
        """The exception's kind and its words."""
        return cls(type(error).__name__, " ".join(str(error).split())[:1000])

    def __repr__(self) -> str:
        return f"raised {self.name}: {self.text}" if self.text else f"raised {self.name}"


def freeze(value: Any, depth: int = 0) -> Any:
    """The output as a hashable value of its own."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, float | np.floating):
        return float(value) if value == value else NAN
    if depth > DEEPEST:
        raise InvalidInput(FIELD, f"nested {DEEPEST} levels deep at most", "more, or a cycle")
    if isinstance(value, Enum | Record | Raised):
        return value
    if isinstance(value, BaseException):
        return Raised.of(value)
    if isinstance(value, np.generic) and value.dtype.names is None:
        plain = value.item()
        return freeze(str(value) if isinstance(plain, np.generic) else plain, depth + 1)
    if isinstance(value, np.ndarray | np.void):
        return _of_array(value, depth)
    if isinstance(value, Mapping):
        return _record(value.items(), depth)
    if isinstance(value, set | frozenset):
        return frozenset(freeze(each, depth + 1) for each in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _record(zip(value._fields, value, strict=True), depth, type(value).__name__)
    if isinstance(value, list | tuple):
        return tuple([freeze(each, depth + 1) for each in value])
    if isinstance(value, complex):
        return _record((("real", value.real), ("imaginary", value.imag)), depth)
    columns = _columns(value)
    if columns is not None:
        return _record(columns.items(), depth)
    array = as_array(value)
    if array is not None:
        return _of_array(array, depth)
    return _of_object(value, depth)


def as_array(value: Any) -> Any:
    """A copy of what an array of another library holds (`__array__`, DLPack, `tolist`); None for
    anything else."""
    if isinstance(value, type) or not (
        hasattr(value, "__array__") or hasattr(value, "__dlpack__") or hasattr(value, "tolist")
    ):
        return None
    for name in ("__array__", "__dlpack__", "tolist"):
        if not hasattr(value, name):
            continue
        try:
            result = _converted(value, name)
        except Exception:  # a tensor with a gradient, or on another device: try the next way
            continue
        return result
    return None


def _converted(value: Any, name: str) -> Any:
    if name == "__array__":
        return np.array(value)
    if name == "__dlpack__":
        return np.array(np.from_dlpack(value))
    return _listed(value.tolist())


def _listed(items: Any) -> Any:
    """What `tolist` gave, as an array; of objects where its rows have several lengths."""
    try:
        return np.array(items)
    except ValueError:
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array


def _of_array(array: Any, depth: int) -> Any:
    names = array.dtype.names
    if names is not None:
        return _record(((name, array[name]) for name in names), depth)
    plain = array.tolist()
    if array.dtype.kind in "iubUS" and array.ndim <= 1:
        return tuple(plain) if isinstance(plain, list) else plain
    return freeze(plain, depth + 1)


def _columns(value: Any) -> Mapping[Any, Any] | None:
    """The columns of a frame, or the entries of a series with an index."""
    if isinstance(value, type):
        return None
    try:
        if hasattr(value, "to_pydict"):  # Arrow
            return dict(value.to_pydict())
        if hasattr(value, "columns") and hasattr(value, "to_dict"):
            if not hasattr(value, "index"):  # Polars
                return dict(value.to_dict(as_series=False))
            columns = {name: value[name].tolist() for name in value.columns}
            labels = value.index.tolist()
            plain = labels == list(range(len(labels)))
            return columns if plain else {"index": labels, **columns}
        if hasattr(value, "index") and hasattr(value, "to_dict"):
            labels = value.index.tolist()
            if labels != list(range(len(labels))) and len(set(labels)) == len(labels):
                return dict(value.to_dict())
    except (AttributeError, TypeError, ValueError):
        return None
    return None


def _record(items: Iterable[tuple[Any, Any]], depth: int, name: str = "") -> Record:
    """Entries in an order of their own: that of a mapping shows by its keys' repr."""
    result = [(freeze(key, depth + 1), freeze(value, depth + 1)) for key, value in items]
    return Record(tuple(sorted(result, key=lambda item: (str(type(item[0])), repr(item[0])))), name)


def _of_object(value: Any, depth: int) -> Any:
    kind = type(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((each.name, getattr(value, each.name)) for each in dataclasses.fields(value))
        return _record(fields, depth, kind.__name__)
    if isinstance(value, Hashable) and _compares(kind):
        return value
    if isinstance(value, Iterable) and not isinstance(value, type):
        return tuple([freeze(each, depth + 1) for each in islice(value, LONGEST)])
    attributes = getattr(value, "__dict__", None)
    if attributes and not isinstance(value, type) and not callable(value):
        return _record(attributes.items(), depth, kind.__name__)
    raise InvalidInput(FIELD, SUPPORTED, kind.__name__ + (" inside another" if depth else ""))


def _compares(kind: Any) -> bool:
    """Whether values of this type can equal one another."""
    return kind.__eq__ is not object.__eq__
