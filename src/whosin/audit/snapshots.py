"""One output, whatever it is: a snapshot of it, and what can be said of its parts.

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
import json
import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from fractions import Fraction
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
        return "NaN" if self.bits == USUAL_NAN else f"NaN({hex(self.bits)})"


PLAIN_NAN = NotANumber()


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
        return PLAIN_NAN if bits == USUAL_NAN else NotANumber(bits)
    return value if value or math.copysign(1.0, value) > 0 else NEGATIVE_ZERO


def drop_float_bits(form: Any) -> Any:
    """A frozen output in which −0.0 is 0.0 and every NaN the same."""
    if isinstance(form, NegativeZero):
        return 0.0
    if isinstance(form, NotANumber):
        return PLAIN_NAN
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
        # The values, too, also those under the mask: an observer has them.
        parts = ("mask", np.ma.getmaskarray(value)), ("data", np.asarray(value.data))
        return _freeze_record(parts, depth, "masked array")
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
    for name, read in _ARRAY_READERS.items():
        if hasattr(value, name) and not isinstance(value, type):
            try:
                return read(value)
            except Exception:  # a tensor with a gradient, or on another device: try the next way
                continue
    return None


def _array_from_list(value: Any) -> Any:
    """What `tolist` gives, as an array; of objects where its rows have several lengths."""
    items = value.tolist()
    try:
        return np.array(items)
    except ValueError:
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array


_ARRAY_READERS: dict[str, Callable[[Any], Any]] = {
    "__array__": np.array,
    "__dlpack__": lambda value: np.array(np.from_dlpack(value)),
    "tolist": _array_from_list,
}


def _freeze_array(array: Any, depth: int) -> Any:
    names = array.dtype.names
    if names is not None:
        return _freeze_record(((name, array[name]) for name in names), depth)
    plain = array.tolist()
    if array.dtype.kind in "iubUS" and array.ndim <= 1:
        return tuple(plain) if isinstance(plain, list) else plain
    return freeze_output(plain, depth + 1)


def is_sparse(value: Any) -> bool:
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
    kind: Any = type(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((each.name, getattr(value, each.name)) for each in dataclasses.fields(value))
        return _freeze_record(fields, depth, kind.__name__)
    if isinstance(value, Hashable) and kind.__eq__ is not object.__eq__:
        return value
    if isinstance(value, Iterable) and not isinstance(value, type):
        return tuple([freeze_output(each, depth + 1) for each in islice(value, MAX_ITEMS)])
    attributes = getattr(value, "__dict__", None)
    if attributes and not isinstance(value, type) and not callable(value):
        return _freeze_record(attributes.items(), depth, kind.__name__)
    raise invalid_value(
        OUTPUT_FIELD, SUPPORTED_OUTPUTS, kind.__name__ + (" inside another" if depth else "")
    )


# What can be said of one output: its numbers, each with its place, and its tokens.
# `describe_output` reads a frozen output and nothing else knows how outputs are
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
MAX_READ_BYTES, MAX_BYTE_TOKENS = 4096, 64
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


def _read_part(form: Any, place: Place, about: Description) -> Any:
    """Note the parts of one part; its skeleton."""
    if len(about.numbers) + len(about.tokens) > MAX_PARTS:
        about.whole = False
        return _REST
    kind = type(form)
    if kind is float:
        return _read_number(form, place, about)
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
        about.symbol(place, PLAIN_NAN)  # whatever its payload
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
    if isinstance(form, int) or (isinstance(form, float) and form.is_integer()):
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
    for position, byte in enumerate(data[:MAX_READ_BYTES]):
        about.numbers[(*place, "byte", position)] = byte
        if position < MAX_BYTE_TOKENS:
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
