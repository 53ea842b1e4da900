"""What a mechanism returned in many draws, as one of three kinds.

Contract: outputs are `numbers` (one per draw), `vectors` (per draw a row, all of one length) or
`forms`: anything else, frozen (`freezing`). Everything here is a copy. Outputs of several kinds
together are forms, so that a kind or a length that changes from draw to draw, or between the
worlds, is a difference like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from whosin.audit.describing import Description, describe
from whosin.audit.freezing import FIELD, SUPPORTED, as_array, freeze
from whosin.errors import InvalidInput
from whosin.exact import Array

NUMBERS, VECTORS, FORMS = "numbers", "vectors", "forms"
FEW = 64
"""Draws that are compared before all of them are."""


@dataclass(frozen=True)
class Outputs:
    """Outputs of one kind: an array of numbers, of rows, or of frozen objects."""

    kind: str
    values: Array

    def __len__(self) -> int:
        return len(self.values)

    @property
    def width(self) -> int:
        """How many numbers a row of vectors has."""
        return int(self.values.shape[1]) if self.kind == VECTORS else 0

    def keys(self) -> Array:
        """One key per draw, the same for equal outputs.

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
        return all(
            self.part(0, some).keys().tolist() == other.part(0, some).keys().tolist()
            for some in (min(count, FEW), count)
        )

    def part(self, start: int, stop: int) -> Outputs:
        """The draws from `start` to `stop`."""
        return Outputs(self.kind, self.values[start:stop])

    def as_forms(self) -> Outputs:
        """The same outputs as forms."""
        if self.kind == FORMS:
            return self
        items = self.values.tolist()
        return Outputs(FORMS, _objects([tuple(i) if self.kind == VECTORS else i for i in items]))

    def matching(self, kind: str, width: int) -> tuple[Array, Outputs]:
        """Which draws are of another kind (and width), and those draws as that kind."""
        if kind == FORMS or (self.kind == kind and self.width == width):
            return np.ones(len(self), dtype=bool), self.as_forms() if kind == FORMS else self
        items = self.as_forms().values.tolist()
        fits = np.array([_fits(item, kind, width) for item in items], dtype=bool)
        shape = (0, width) if kind == VECTORS else (0,)
        rows = [item for item, fit in zip(items, fits, strict=True) if fit]
        return fits, Outputs(kind, np.array(rows, dtype=float) if rows else np.zeros(shape))

    @cached_property
    def descriptions(self) -> list[Description]:
        """What can be said of each draw; equal outputs share it."""
        items = self.as_forms().values.tolist()
        known = {value: describe(value) for value in dict.fromkeys(items)}
        return [known[value] for value in items]


def _fits(item: object, kind: str, width: int) -> bool:
    if kind == NUMBERS:
        return _is_number(item)
    return isinstance(item, tuple) and len(item) == width and all(_is_number(v) for v in item)


def _bits(values: Array) -> Array:
    """Numbers as whole numbers, equal ones alike, also when 1 comes as 1.0 in another call."""
    if values.dtype.kind in "iu" and values.size and np.abs(values).max() >= 2**53:
        return values.astype(np.int64)
    return (values.astype(np.float64) + 0.0).view(np.int64)  # + 0.0: −0 is 0


def read(raw: Any, size: int) -> Outputs:
    """Read what one call returned for `size` draws."""
    if not isinstance(raw, np.ndarray | list | tuple):
        raw = _batch(raw, size)
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "iubf" and raw.ndim > 0:
        _check_count(len(raw), size)
        return of_array(raw)
    if isinstance(raw, np.ndarray) and raw.ndim == 0:
        raise InvalidInput(FIELD, f"{size} outputs, as many as were asked for", "one value")
    _check_count(len(raw), size)
    return of_items([freeze(item) for item in raw])


def _batch(raw: Any, size: int) -> Any:
    """A list or array out of whatever holds a draw an entry."""
    accepted = f"an array or list of {size} outputs"
    if isinstance(raw, str | bytes | dict) or hasattr(raw, "columns"):
        raise InvalidInput(FIELD, accepted, type(raw).__name__)
    array = as_array(raw)
    if array is not None:
        return array
    if not isinstance(raw, Iterable):
        raise InvalidInput(FIELD, accepted, type(raw).__name__)
    return [freeze(item) for item in islice(raw, size + 1)]  # each before the next is made


def _check_count(count: int, size: int) -> None:
    if count != size:
        raise InvalidInput(FIELD, f"{size} outputs, as many as were asked for", count)


def of_array(array: Array) -> Outputs:
    """Numbers or rows of numbers, copied; forms where a NaN is among them."""
    if array.dtype.kind == "f" and np.isnan(array).any():
        return of_items([freeze(row) for row in array])
    if array.ndim == 1:
        return Outputs(NUMBERS, array.copy())
    rows = array.reshape(len(array), -1)
    if rows.shape[1] == 0:
        return Outputs(FORMS, _objects([()] * len(array)))
    return Outputs(VECTORS, rows.copy())


def of_items(items: list[Any]) -> Outputs:
    """Frozen outputs, as numbers or vectors where all of them are."""
    if items and all(_is_number(item) for item in items):
        array = np.asarray(items)
        if array.dtype != object:
            return Outputs(NUMBERS, array)
    widths = {len(item) if isinstance(item, tuple) else 0 for item in items}
    rows = len(widths) == 1 and 0 not in widths
    if rows and all(_is_number(value) for item in items for value in item):
        array = np.asarray(items)
        if array.dtype != object:
            return Outputs(VECTORS, array)
    return Outputs(FORMS, _objects(items))


def join(parts: Sequence[Outputs]) -> Outputs:
    """Several calls' outputs as one."""
    if len(parts) == 1:
        return parts[0]
    same = alike(parts)
    joined = Outputs(same[0].kind, np.concatenate([part.values for part in same]))
    if all("descriptions" in vars(part) for part in same):
        vars(joined)["descriptions"] = [each for part in same for each in part.descriptions]
    return joined


def alike(parts: Sequence[Outputs]) -> list[Outputs]:
    """The same outputs, all of one kind."""
    return list(parts) if _one_kind(parts) else [part.as_forms() for part in parts]


def _one_kind(parts: Sequence[Outputs]) -> bool:
    return len({(part.kind, part.width) for part in parts}) == 1


def _is_number(item: object) -> bool:
    return isinstance(item, int | float)


def _objects(items: Sequence[Any]) -> Array:
    array = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):  # one by one: NumPy would unpack tuples
        array[index] = item
    return array


__all__ = ["FIELD", "FORMS", "NUMBERS", "SUPPORTED", "VECTORS", "Outputs", "alike", "join", "read"]
