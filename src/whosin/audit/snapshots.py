"""A snapshot of one output, whatever it is.

`freeze_output` is the one place that reads an output. What it returns is hashable, equal for equal
outputs, and holds nothing that the mechanism can change afterwards, such as a buffer that it fills
again at each draw. Plain values stay what they are; sequences and arrays become tuples; mappings,
frames, named tuples and objects with attributes become a `Record`, and so do masked and sparse
arrays: values under a mask and zeros that are stored are there to be read. An exception, raised or
returned, becomes `Raised`. NaN becomes a word, for it equals itself here, one for each of its
payloads; −0.0 is a number that does not equal 0.0 (`drop_float_bits` takes both back). Only what
holds nothing that can be read is refused.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any

import numpy as np

from whosin.errors import InvalidInput, invalid_value

OUTPUT_FIELD = "output of the mechanism"
SUPPORTED_OUTPUTS = (
    "numbers, text, None, arrays, mappings, frames, other values with an __eq__ or attributes, "
    "or sequences of these"
)
MAX_DEPTH = 40
"""Levels of nesting that are read."""
MAX_ITEMS = 1_000_000
"""Values that an iterator may yield."""
_PLAIN_TYPES = frozenset({int, str, bytes, bool, type(None)})


USUAL_NAN = 0x7FF8_0000_0000_0000


@dataclass(frozen=True)
class NotANumber:
    """A NaN, by its bits."""

    bits: int = USUAL_NAN

    def __repr__(self) -> str:
        return "NaN" if self.bits == USUAL_NAN else f"NaN({self.bits:#x})"


NAN = NotANumber()


class NegativeZero(float):
    """−0.0, which an observer can tell from 0.0, and so equals itself alone."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NegativeZero)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash("-0.0")


NEGATIVE_ZERO = NegativeZero(-0.0)


def freeze_float(value: float) -> Any:
    """A float; −0.0 and NaN as values of their own."""
    if value != value:
        bits = int(np.float64(value).view(np.uint64))
        return NAN if bits == USUAL_NAN else NotANumber(bits)
    return value if value or math.copysign(1.0, value) > 0 else NEGATIVE_ZERO


def drop_float_bits(form: Any) -> Any:
    """A frozen output in which −0.0 is 0.0 and every NaN the same."""
    if isinstance(form, NegativeZero):
        return 0.0
    if isinstance(form, NotANumber):
        return NAN
    if isinstance(form, tuple):
        return tuple([drop_float_bits(each) for each in form])
    if isinstance(form, frozenset):
        return frozenset(drop_float_bits(each) for each in form)
    if isinstance(form, Record):
        items = ((key, drop_float_bits(value)) for key, value in form.items)
        return Record(tuple(items), form.name)
    return form


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


def freeze_output(value: Any, depth: int = 0) -> Any:  # noqa: C901 (a case for each kind of output)
    """The output as a hashable value of its own."""
    if type(value) in _PLAIN_TYPES:
        return value
    if isinstance(value, float | np.floating):
        return freeze_float(float(value))
    if depth > MAX_DEPTH:
        message = f"an output of the mechanism is nested more than {MAX_DEPTH} levels deep"
        raise InvalidInput(message, field=OUTPUT_FIELD, value=depth)
    if isinstance(value, Enum | Record | Raised | NotANumber):
        return value
    if isinstance(value, BaseException):
        return Raised.of(value)
    if isinstance(value, np.generic) and value.dtype.names is None:
        plain = value.item()
        return freeze_output(str(value) if isinstance(plain, np.generic) else plain, depth + 1)
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        return _freeze_masked(value, depth)
    if isinstance(value, np.ndarray | np.void):
        return _freeze_array(value, depth)
    if isinstance(value, Mapping):
        return _freeze_record(value.items(), depth)
    if isinstance(value, set | frozenset):
        return frozenset(freeze_output(each, depth + 1) for each in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _freeze_record(zip(value._fields, value, strict=True), depth, type(value).__name__)
    if isinstance(value, list | tuple):
        return tuple([freeze_output(each, depth + 1) for each in value])
    if isinstance(value, complex):
        return _freeze_record((("real", value.real), ("imaginary", value.imag)), depth)
    columns = _frame_columns(value)
    if columns is not None:
        return _freeze_record(columns.items(), depth)
    if is_sparse(value):
        return _freeze_sparse(value, depth)
    array = copy_array(value)
    if array is not None:
        return _freeze_array(array, depth)
    return _freeze_object(value, depth)


def copy_array(value: Any) -> Any:
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
            result = _convert(value, name)
        except Exception:  # a tensor with a gradient, or on another device: try the next way
            continue
        return result
    return None


def _convert(value: Any, name: str) -> Any:
    if name == "__array__":
        return np.array(value)
    if name == "__dlpack__":
        return np.array(np.from_dlpack(value))
    return _array_from_list(value.tolist())


def _array_from_list(items: Any) -> Any:
    """What `tolist` gave, as an array; of objects where its rows have several lengths."""
    try:
        return np.array(items)
    except ValueError:
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array


def _freeze_array(array: Any, depth: int) -> Any:
    names = array.dtype.names
    if names is not None:
        return _freeze_record(((name, array[name]) for name in names), depth)
    plain = array.tolist()
    if array.dtype.kind in "iubUS" and array.ndim <= 1:
        return tuple(plain) if isinstance(plain, list) else plain
    return freeze_output(plain, depth + 1)


def _freeze_masked(array: Any, depth: int) -> Record:
    """What is masked, and the values, also those under the mask: an observer has them."""
    parts = ("mask", np.ma.getmaskarray(array)), ("data", np.asarray(array.data))
    return _freeze_record(parts, depth, "masked array")


def is_sparse(value: Any) -> bool:
    """Whether this is a sparse array of SciPy."""
    return hasattr(value, "tocoo") and hasattr(value, "nnz") and not isinstance(value, type)


def _freeze_sparse(value: Any, depth: int) -> Record:
    """The entries that are stored, also where they are 0, by their position."""
    stored = value.tocoo()
    entries: dict[Any, list[Any]] = {}
    places = stored.coords if hasattr(stored, "coords") else (stored.row, stored.col)
    positions = zip(*(axis.tolist() for axis in places), strict=True)
    for position, entry in zip(positions, stored.data.tolist(), strict=True):
        entries.setdefault(position, []).append(entry)
    parts = [(key, each[0] if len(each) == 1 else each) for key, each in entries.items()]
    return _freeze_record([("shape", tuple(value.shape)), *parts], depth, "sparse array")


def _frame_columns(value: Any) -> Mapping[Any, Any] | None:
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


def _freeze_record(items: Iterable[tuple[Any, Any]], depth: int, name: str = "") -> Record:
    """Entries in an order of their own: that of a mapping shows by its keys' repr."""
    result = [
        (freeze_output(key, depth + 1), freeze_output(value, depth + 1)) for key, value in items
    ]
    return Record(tuple(sorted(result, key=lambda item: (str(type(item[0])), repr(item[0])))), name)


def _freeze_object(value: Any, depth: int) -> Any:
    kind = type(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((each.name, getattr(value, each.name)) for each in dataclasses.fields(value))
        return _freeze_record(fields, depth, kind.__name__)
    if isinstance(value, Hashable) and _has_equality(kind):
        return value
    if isinstance(value, Iterable) and not isinstance(value, type):
        return tuple([freeze_output(each, depth + 1) for each in islice(value, MAX_ITEMS)])
    attributes = getattr(value, "__dict__", None)
    if attributes and not isinstance(value, type) and not callable(value):
        return _freeze_record(attributes.items(), depth, kind.__name__)
    raise invalid_value(
        OUTPUT_FIELD, SUPPORTED_OUTPUTS, kind.__name__ + (" inside another" if depth else "")
    )


def _has_equality(kind: Any) -> bool:
    """Whether values of this type can equal one another."""
    return kind.__eq__ is not object.__eq__
