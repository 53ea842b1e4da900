"""What a mechanism returned, read into one of four kinds.

Contract: outputs are `numbers` (one a draw), `vectors` (a row of numbers a draw), `labels` (text,
None, any hashable value that equals another by what it holds) or `sequences` (tuples of numbers,
text, bits, None, of any lengths: answers with an early stop). NaN, unhashable values, objects that
equal nothing but themselves and a kind that changes between draws are refused, by messages that say
what to return instead.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array

NUMBERS, VECTORS, LABELS, SEQUENCES = "numbers", "vectors", "labels", "sequences"
FIELD = "output of the mechanism"
SUPPORTED = "numbers, text, None, other hashable values with an __eq__, or sequences of these"


@dataclass(frozen=True)
class Outputs:
    """Outputs of one kind: an array of numbers, of rows, or of objects."""

    kind: str
    values: Array

    def __len__(self) -> int:
        return len(self.values)

    def keys(self) -> Array:
        """One key a draw, the same for equal outputs.

        Rows are hashed to 64 bits by a fixed map: should two rows ever meet, they count as one
        output, in the search and in the count alike.
        """
        if self.kind == NUMBERS:
            return _bits(self.values)
        if self.kind == VECTORS:
            bits = _bits(self.values).view(np.uint64)
            factors = np.random.default_rng(2023).integers(2**61, 2**62, bits.shape[1])
            mixed = bits * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
            mixed *= factors.astype(np.uint64) * np.uint64(2) + np.uint64(1)
            return np.asarray(mixed.sum(axis=1, dtype=np.uint64).view(np.int64))
        return self.values

    def repeats(self, other: Outputs) -> bool:
        """Whether both are the same outputs in the same order, as far as the shorter goes."""
        count = min(len(self), len(other))
        return bool(self.keys()[:count].tolist() == other.keys()[:count].tolist())


def _bits(values: Array) -> Array:
    """Numbers as whole numbers, equal ones alike, also when 1 comes as 1.0 in another call."""
    if values.dtype.kind in "iu" and values.size and np.abs(values).max() >= 2**53:
        return values.astype(np.int64)
    return (values.astype(np.float64) + 0.0).view(np.int64)  # + 0.0: −0 is 0


def read(raw: object, size: int) -> Outputs:
    """Read what one call returned for `size` draws."""
    if isinstance(raw, np.ndarray) and raw.dtype != object:
        return _array(raw, size)
    if isinstance(raw, str | bytes) or not hasattr(raw, "__len__") or not hasattr(raw, "__iter__"):
        raise InvalidInput(FIELD, f"an array or list of {size} outputs", type(raw).__name__)
    items: list[Any] = list(raw)
    if len(items) != size:
        raise InvalidInput(FIELD, f"{size} outputs, as many as were asked for", len(items))
    if all(_is_number(item) for item in items) and np.asarray(items).dtype != object:
        return _array(np.asarray(items), size)
    if all(isinstance(item, list | tuple | np.ndarray) for item in items):
        return _rows(items)
    sequences = [isinstance(item, list | tuple | np.ndarray) for item in items]
    if any(sequences) and any(_is_number(item) for item in items):
        raise InvalidInput(FIELD, "of one kind in every draw", "numbers, and sequences")
    if any(sequences) or any(isinstance(item, float | np.floating) for item in items):
        # A word in place of a number, or of a sequence.
        return _rows([item if row else (item,) for item, row in zip(items, sequences, strict=True)])
    for item in items:
        if not _is_label(item):
            raise InvalidInput(FIELD, SUPPORTED, type(item).__name__)
    return Outputs(LABELS, _objects(items))


def join(parts: Sequence[Outputs]) -> Outputs:
    """Several calls' outputs as one; all of one kind."""
    first = parts[0]
    for part in parts[1:]:
        same_kind(first, part)
    return Outputs(first.kind, np.concatenate([part.values for part in parts]))


def same_kind(first: Outputs, other: Outputs) -> None:
    """Refuse outputs whose kind changed from one call to another."""
    if first.kind != other.kind:
        got = f"{first.kind}, then {other.kind}"
        raise InvalidInput(FIELD, "of one kind in every draw and in both worlds", got)
    if first.kind == VECTORS and first.values.shape[1] != other.values.shape[1]:
        got = f"{first.values.shape[1]}, then {other.values.shape[1]}"
        accepted = "vectors of one length (or tuples, where answers may stop early)"
        raise InvalidInput(FIELD, accepted, got)


def _array(array: Array, size: int) -> Outputs:
    if array.ndim == 0 or len(array) != size:
        got = "one value" if array.ndim == 0 else f"{len(array)}"
        raise InvalidInput(FIELD, f"{size} outputs, as many as were asked for", got)
    if array.dtype.kind in "US":
        return Outputs(LABELS, _objects(array.tolist()))
    if array.dtype.kind not in "iubf":
        raise InvalidInput(FIELD, SUPPORTED, f"{array.dtype} values")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise InvalidInput(FIELD, _NOT_NAN, "NaN")
    if array.ndim == 1:
        return Outputs(NUMBERS, array)
    return Outputs(VECTORS, array.reshape(size, -1))


_NOT_NAN = "without NaN (return None or a word in its place, if an observer would see it)"


def _rows(items: list[Any]) -> Outputs:
    rows = [tuple(item.tolist()) if isinstance(item, np.ndarray) else tuple(item) for item in items]
    lengths = {len(row) for row in rows}
    if len(lengths) == 1 and 0 not in lengths and all(_is_number(v) for row in rows for v in row):
        return _array(np.asarray(rows), len(rows))
    for row in rows:
        for value in row:
            if not _is_label(value):
                raise InvalidInput(FIELD, SUPPORTED, f"{type(value).__name__} inside a sequence")
            if isinstance(value, float | np.floating) and value != value:
                raise InvalidInput(FIELD, _NOT_NAN, "NaN")
    return Outputs(SEQUENCES, _objects(rows))


def _is_label(item: object) -> bool:
    """Whether an output can come again: an object without an `__eq__` equals only itself, so that
    no two draws of it would be alike."""
    if not isinstance(item, Hashable):
        return False
    return isinstance(item, Enum | None) or type(item).__eq__ is not object.__eq__


def _is_number(item: object) -> bool:
    return isinstance(item, int | float | np.number | np.bool_)


def _objects(items: Sequence[Any]) -> Array:
    array = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):  # one by one: NumPy would unpack tuples
        array[place] = item
    return array
