"""Outputs of many draws as numbers, vectors or described forms."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from whosin.audit.snapshots import (
    NAN,
    NEGATIVE_ZERO,
    OUTPUT_FIELD,
    SUPPORTED_OUTPUTS,
    NegativeZero,
    NotANumber,
    Raised,
    Record,
    copy_array,
    drop_float_bits,
    freeze_output,
    is_sparse,
)
from whosin.errors import InvalidInput, invalid_value
from whosin.exact import Array

__all__ = [
    "FORMS",
    "NUMBERS",
    "OUTPUT_FIELD",
    "SUPPORTED_OUTPUTS",
    "VECTORS",
    "Outputs",
    "align_kinds",
    "count_draws",
    "join_outputs",
    "read_outputs",
]


# What can be said of one output: its numbers, each with its place, and its tokens.
# `describe_output` reads a frozen output (`snapshots`) and nothing else knows how outputs are
# built. A *place* is a path of positions and keys. A *token* is something that an output has or
# lacks: a word or a key anywhere in it, a word or whole number (also as a float) at a place, how
# the part at a place is built (the keys of a record, the length of a sequence and the types in it,
# an exception, a number where a field might have none), its shape as a whole. Lists of pairs are
# read by their first entries, as a mapping is; text that holds JSON by what it spells; other text
# by the numbers and the words in it; bytes one by one, and as text where they are. So a histogram
# says the same as a mapping, as pairs and as text.


Place = tuple[Any, ...]

MAX_PARTS = 20_000
"""Parts of one output that are described; the result of an audit says so where there are more."""
MOST_BYTES, MOST_VALUES = 4096, 64
"""Bytes of an output that are read one by one, and those whose values are tokens."""
MAX_TEXT_LENGTH = 1_000_000
"""Letters of a text that are read as JSON or searched for numbers."""
_NUMBER_PATTERN = re.compile(r"(?<![\w.-])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w|\.\d|-\w)")
_WORD_PATTERN = re.compile(r"\b[^\W\d_]\w*")


@dataclass(frozen=True)
class HasToken:
    """A word, a key or another symbol, anywhere in the output."""

    symbol: Any


@dataclass(frozen=True)
class TokenAt:
    """A symbol, or a whole number, at one place."""

    place: Place
    symbol: Any


@dataclass(frozen=True)
class SkeletonShape:
    """How an output is built: its types, keys and lengths."""

    skeleton: Any


@dataclass(frozen=True)
class BuiltFrom:
    """How the part at one place is built, whatever is in it."""

    place: Place
    kind: str
    parts: tuple[Any, ...] = ()


KEYS, ENTRIES, ELEMENTS, NUMBER, RAISED = "keys", "entries", "elements", "a number", "raised"
ODD, EVEN = "an odd number", "an even number"
Token = HasToken | TokenAt | BuiltFrom | SkeletonShape


def token_words(token: Token, absent: bool = False) -> str:
    """What an output with the token does, or one without it."""
    has = "has not" if absent else "has"
    match token:
        case HasToken(symbol):
            return f"{'lacks' if absent else 'contains'} {symbol!r}"
        case TokenAt(place, symbol):
            return f"{has} {symbol!r} at {place_words(place)}"
        case BuiltFrom(place, kind, parts):
            return f"{has} {_built_words(kind, parts)} at {place_words(place)}"
        case SkeletonShape(skeleton):
            return f"{has} the shape {skeleton!r}"


def _built_words(kind: str, parts: tuple[Any, ...]) -> str:
    if kind == KEYS:
        return f"the keys {', '.join(map(repr, parts)) or 'of nothing'}"
    if kind in (ENTRIES, ELEMENTS):
        inside = f" ({' and '.join(parts[1:])})" if parts[1:] else ""
        return f"{parts[0]} {kind}{inside}"
    return " ".join([kind, *parts])


class _Type(str):
    """The name of a type, in a skeleton."""

    def __repr__(self) -> str:
        return str(self)


_REST, _NUMERIC, _TEXT = _Type("…"), _Type("number"), _Type("text")
_PARTS_TYPE, _BYTES, _NOT_A_NUMBER = _Type("parts"), _Type("bytes"), _Type("NaN")
_REAL_TYPES = (int, float, Fraction, Decimal)


@dataclass
class Description:
    """The parts of one output.

    Attributes:
        tokens: in the order in which they were met.
        whole: whether all parts are described.
    """

    numbers: dict[Place, float] = field(default_factory=dict)
    tokens: dict[Token, None] = field(default_factory=dict)
    whole: bool = True

    def symbol(self, place: Place, value: Any) -> None:
        self.tokens[HasToken(value)] = None
        if place:
            self.tokens[TokenAt(place, value)] = None

    def built(self, place: Place, kind: str, *parts: Any) -> None:
        self.tokens[BuiltFrom(place, kind, parts)] = None

    def field(self, place: Place) -> None:
        """A number, where it is in a field by name."""
        if place and isinstance(place[-1], str):
            self.built(place, NUMBER)


def describe_output(form: Any) -> Description:
    """The numbers and tokens of a frozen output."""
    result = Description()
    skeleton = _read_part(form, (), result)
    result.tokens[SkeletonShape(skeleton)] = None
    return result


def place_words(place: Place) -> str:
    """A place as Python would write it: [0]['n']."""
    return "".join(f"[{step!r}]" for step in place) or "the output"


def _read_part(form: Any, place: Place, about: Description) -> Any:  # noqa: C901 (a case for each kind of output)
    """Note the parts of one part; its skeleton."""
    if len(about.numbers) + len(about.tokens) > MAX_PARTS:
        about.whole = False
        return _REST
    kind = type(form)
    if kind is float:
        about.numbers[place] = form
        if form.is_integer():
            about.tokens[TokenAt(place, form)] = None
            about.built(place, ODD if form % 2 else EVEN)
        about.field(place)
        return _NUMERIC
    if kind is str:
        return _read_text(form, place, about)
    if kind is tuple:
        return _read_sequence(form, place, about)
    if kind is Record:
        about.built(place, KEYS, *(key for key, _value in form.items))
        return _Type(form.name), *[
            (_read_key(key, about), _read_part(value, (*place, key), about))
            for key, value in form.items
        ]
    if kind is Raised:
        about.symbol(place, f"raised {form.name}")
        about.built(place, RAISED, form.name)
        return _Type(f"raised {form.name}"), _read_text(form.text, (*place, "message"), about)
    if kind is frozenset:
        ordered = sorted(form, key=lambda each: (str(type(each)), repr(each)))
        about.built(place, ELEMENTS, len(form))
        return _Type("set"), len([_read_part(each, (*place, "element"), about) for each in ordered])
    if kind is NegativeZero:
        about.symbol(place, form)
        about.numbers[place] = -0.0
        about.field(place)
        return _NUMERIC
    if kind is NotANumber:
        about.symbol(place, form)
        about.symbol(place, NAN)  # whatever its payload
        return _NOT_A_NUMBER
    if kind is bytes:
        return _read_bytes(form, place, about)
    if kind is not bool and isinstance(form, _REAL_TYPES):
        return _read_number(form, place, about)
    about.symbol(place, form)
    return _Type(kind.__name__)


def _read_sequence(form: tuple[Any, ...], place: Place, about: Description) -> Any:
    keyed = list(_keyed_entries(form))
    if keyed:
        for key, position, value in keyed:
            _read_part(value, (*place, key, position), about)
        about.built(place, KEYS, *(row[0] for row in form))
        return _Type("pairs"), tuple([_read_key(row[0], about) for row in form])
    about.numbers[(*place, "length")] = len(form)
    inside = tuple([_read_part(each, (*place, number), about) for number, each in enumerate(form)])
    kinds = {each if isinstance(each, _Type) else _PARTS_TYPE for each in inside}
    about.built(place, ENTRIES, len(form), *sorted(kinds))
    return inside


def _read_number(form: Any, place: Place, about: Description) -> Any:
    try:
        value = float(form)
    except (OverflowError, ValueError):
        value = math.inf if form > 0 else -math.inf
    if isinstance(form, int):
        about.tokens[TokenAt(place, form)] = None
        about.built(place, ODD if form % 2 else EVEN)
    about.numbers[place] = value
    about.field(place)
    return _NUMERIC


def _read_key(key: Any, about: Description) -> Any:
    about.tokens[HasToken(key)] = None
    return key


def _keyed_entries(form: tuple[Any, ...]) -> Iterator[tuple[Any, int, Any]]:
    """(key, position in the entry, value) where a sequence is a list of entries with keys."""
    if any(type(each) is not tuple or len(each) < 2 for each in form):
        return
    keys = [row[0] for row in form]
    if any(isinstance(key, _NO_KEYS) for key in keys) or len(set(keys)) < len(keys):
        return
    for row in form:
        for position, value in enumerate(row[1:], start=1):
            yield row[0], position, value


_NO_KEYS = (float, tuple, Record)


def _read_bytes(data: bytes, place: Place, about: Description) -> Any:
    """Bytes as text, where they are, and one by one: as numbers, the first also as values."""
    about.symbol(place, data)
    about.numbers[(*place, "length")] = len(data)
    about.built(place, ENTRIES, len(data), _BYTES)
    for position, byte in enumerate(data[:MOST_BYTES]):
        about.numbers[(*place, "byte", position)] = byte
        if position < MOST_VALUES:
            about.tokens[TokenAt((*place, "byte", position), byte)] = None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _BYTES
    if text.isprintable():
        _read_text(text, (*place, "text"), about)
    return _BYTES


def _read_text(text: str, place: Place, about: Description) -> Any:
    if len(text) <= MAX_TEXT_LENGTH:
        inner = _parse_json(text)
        if inner is not None:
            return _Type("JSON"), _read_part(inner, place, about)
        numbers = _NUMBER_PATTERN.findall(text)
        if numbers:
            skeleton = _NUMBER_PATTERN.sub("#", text)
            for position, number in enumerate(numbers):
                about.numbers[(*place, "number", position)] = float(number)
            about.symbol(place, skeleton)
            _note_words(skeleton, text, about)
            return _TEXT, skeleton
        _note_words(text, text, about)
    about.symbol(place, text)
    return _TEXT


def _note_words(skeleton: str, text: str, about: Description) -> None:
    for word in _WORD_PATTERN.findall(skeleton):
        if word != text:
            about.tokens[HasToken(word)] = None


def _parse_json(text: str) -> Any:
    """What a text that is JSON spells: only an object or an array is more than text."""
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        value = json.loads(text)
        return freeze_output(value) if isinstance(value, dict | list) else None
    except (ValueError, RecursionError, InvalidInput):
        return None


# What a mechanism returned in many draws, as one of three kinds. Outputs are `numbers` (one per
# draw), `vectors` (per draw a row, all of one length) or `forms`: anything else, frozen
# (`snapshots`). Everything here is a copy. Outputs of several kinds together are forms, so that a
# kind or a length that changes from draw to draw, or between the inputs, is a difference like any
# other.


NUMBERS, VECTORS, FORMS = "numbers", "vectors", "forms"
FEW_KINDS = 64
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
            return _number_bits(self.values)
        if self.kind == VECTORS:
            bits = _number_bits(self.values).view(np.uint64)
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
            for some in (min(count, FEW_KINDS), count)
        )

    def part(self, start: int, stop: int) -> Outputs:
        """The draws from `start` to `stop`."""
        return Outputs(self.kind, self.values[start:stop])

    def as_forms(self) -> Outputs:
        """The same outputs as forms."""
        if self.kind == FORMS:
            return self
        values = self.values
        if values.dtype.kind == "f":
            negative = np.signbit(values) & (values == 0)
            if negative.any():
                values = values.astype(object)
                values[negative] = NEGATIVE_ZERO
        items = values.tolist()
        return Outputs(
            FORMS, _object_array([tuple(i) if self.kind == VECTORS else i for i in items])
        )

    def without_float_bits(self) -> Outputs:
        """The same outputs, with −0.0 as 0.0 and every NaN the same."""
        if self.kind == FORMS:
            return outputs_from_items([drop_float_bits(each) for each in self.values.tolist()])
        plain = self.values.dtype.kind != "f"
        return self if plain else Outputs(self.kind, self.values + 0.0)  # + 0.0: −0 is 0

    def matching(self, kind: str, width: int) -> tuple[Array, Outputs]:
        """Which draws are of another kind (and width), and those draws as that kind."""
        if kind == FORMS or (self.kind == kind and self.width == width):
            return np.ones(len(self), dtype=bool), self.as_forms() if kind == FORMS else self
        items = self.as_forms().values.tolist()
        fits = np.array([_fits_kind(item, kind, width) for item in items], dtype=bool)
        shape = (0, width) if kind == VECTORS else (0,)
        rows = [item for item, fit in zip(items, fits, strict=True) if fit]
        return fits, Outputs(kind, np.array(rows, dtype=float) if rows else np.zeros(shape))

    @cached_property
    def descriptions(self) -> list[Description]:
        """What can be said of each draw; equal outputs share it."""
        items = self.as_forms().values.tolist()
        known = {value: describe_output(value) for value in dict.fromkeys(items)}
        return [known[value] for value in items]


def _fits_kind(item: object, kind: str, width: int) -> bool:
    if kind == NUMBERS:
        return _is_number(item)
    return isinstance(item, tuple) and len(item) == width and all(_is_number(v) for v in item)


def _number_bits(values: Array) -> Array:
    """Numbers as whole numbers, equal ones alike, also when 1 comes as 1.0 in another call."""
    if values.dtype.kind in "iu" and values.size and np.abs(values).max() >= 2**53:
        return values.astype(np.int64)
    return np.ascontiguousarray(values, dtype=np.float64).view(np.int64)


def count_draws(raw: Any) -> int:
    """How many outputs an array or list holds; 0 where that cannot be known."""
    shape = getattr(raw, "shape", None)
    if isinstance(shape, tuple) and shape:
        return int(shape[0])  # a sparse array has no length
    return len(raw) if isinstance(raw, Sized) else 0


def read_outputs(raw: Any, size: int) -> Outputs:
    """Read what one call returned for `size` draws."""
    if not isinstance(raw, np.ndarray | list | tuple):
        raw = _split_batch(raw, size)
    if isinstance(raw, np.ma.MaskedArray):
        raw = _unmask_array(raw)
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "iubf" and raw.ndim > 0:
        _check_count(len(raw), size)
        return outputs_from_array(raw)
    if isinstance(raw, np.ndarray) and raw.ndim == 0:
        message = f"the mechanism was asked for {size} outputs and returned one value"
        raise InvalidInput(message, field=OUTPUT_FIELD, value=1)
    _check_count(len(raw), size)
    return outputs_from_items([freeze_output(item) for item in raw])


def _unmask_array(raw: Any) -> Any:
    """A plain array where nothing is masked; otherwise a list, in which what is masked stays so."""
    if raw.ndim == 0 or not np.ma.is_masked(raw):
        return np.asarray(raw.data)
    return [raw[number : number + 1].reshape(raw.shape[1:]) for number in range(len(raw))]


def _split_batch(raw: Any, size: int) -> Any:
    """A list or array out of whatever holds a draw an entry."""
    accepted = f"an array or list of {size} outputs"
    if isinstance(raw, str | bytes | dict) or hasattr(raw, "columns"):
        raise invalid_value(OUTPUT_FIELD, accepted, type(raw).__name__)
    if is_sparse(raw):
        raw = raw.tocsr()  # which has rows
    array = copy_array(raw)
    if array is not None:
        return array
    if not isinstance(raw, Iterable):
        raise invalid_value(OUTPUT_FIELD, accepted, type(raw).__name__)
    return [freeze_output(item) for item in islice(raw, size + 1)]  # each before the next is made


def _check_count(count: int, size: int) -> None:
    if count != size:
        message = f"the mechanism was asked for {size} outputs and returned {count}"
        raise InvalidInput(message, field=OUTPUT_FIELD, value=count)


def outputs_from_array(array: Array) -> Outputs:
    """Numbers or rows of numbers, copied; forms where a NaN is among them."""
    if array.dtype.kind == "f" and np.isnan(array).any():
        return outputs_from_items([freeze_output(row) for row in array])
    if array.ndim == 1:
        return Outputs(NUMBERS, array.copy())
    rows = array.reshape(len(array), -1)
    if rows.shape[1] == 0:
        return Outputs(FORMS, _object_array([()] * len(array)))
    return Outputs(VECTORS, rows.copy())


def outputs_from_items(items: list[Any]) -> Outputs:
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
    return Outputs(FORMS, _object_array(items))


def join_outputs(parts: Sequence[Outputs]) -> Outputs:
    """Several calls' outputs as one."""
    if len(parts) == 1:
        return parts[0]
    same = align_kinds(parts)
    joined = Outputs(same[0].kind, np.concatenate([part.values for part in same]))
    if all("descriptions" in vars(part) for part in same):
        vars(joined)["descriptions"] = [each for part in same for each in part.descriptions]
    return joined


def align_kinds(parts: Sequence[Outputs]) -> list[Outputs]:
    """The same outputs, all of one kind."""
    return list(parts) if _one_kind(parts) else [part.as_forms() for part in parts]


def _one_kind(parts: Sequence[Outputs]) -> bool:
    return len({(part.kind, part.width) for part in parts}) == 1


def _is_number(item: object) -> bool:
    return isinstance(item, int | float)


def _object_array(items: Sequence[Any]) -> Array:
    array = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):  # one by one: NumPy would unpack tuples
        array[index] = item
    return array
