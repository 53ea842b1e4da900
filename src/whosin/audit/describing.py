"""What can be said of one output: its numbers, each with its place, and its tokens.

Contract: `describe` reads a frozen output (`freezing`) and nothing else knows how outputs are
built. A *place* is a path of positions and keys. A *token* is something that an output has or
lacks: a word or a key anywhere in it, a word or whole number at a place, how the part at a place is
built (the keys of a record, the length of a sequence and the types in it, an exception, a number
where a field might have none), its shape as a whole. Lists of pairs
are read by their first entries, as a mapping is; text that holds JSON by what it spells; other text
by the numbers and the words in it. So a histogram says the same as a mapping, as pairs and as text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from whosin.audit.freezing import Raised, Record, freeze
from whosin.errors import InvalidInput

Place = tuple[Any, ...]

MOST = 20_000
"""Parts of one output that are described; the result of an audit says so where there are more."""
LONGEST = 1_000_000
"""Letters of a text that are read as JSON or searched for numbers."""
_NUMBER = re.compile(r"(?<![\w.-])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w|\.\d|-\w)")
_WORD = re.compile(r"\b[^\W\d_]\w*")


@dataclass(frozen=True)
class Has:
    """A word, a key or another symbol, anywhere in the output."""

    symbol: Any


@dataclass(frozen=True)
class At:
    """A symbol, or a whole number, at one place."""

    place: Place
    symbol: Any


@dataclass(frozen=True)
class Shape:
    """How an output is built: its types, keys and lengths."""

    skeleton: Any


@dataclass(frozen=True)
class Built:
    """How the part at one place is built, whatever is in it."""

    place: Place
    kind: str
    parts: tuple[Any, ...] = ()


KEYS, ENTRIES, ELEMENTS, NUMBER, RAISED = "keys", "entries", "elements", "a number", "raised"
Token = Has | At | Built | Shape


def token_words(token: Token, absent: bool = False) -> str:
    """What an output with the token does, or one without it."""
    has = "has not" if absent else "has"
    match token:
        case Has(symbol):
            return f"{'lacks' if absent else 'contains'} {symbol!r}"
        case At(place, symbol):
            return f"{has} {symbol!r} at {place_words(place)}"
        case Built(place, kind, parts):
            return f"{has} {_built_words(kind, parts)} at {place_words(place)}"
        case Shape(skeleton):
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
_PARTS = _Type("parts")
_REALS = (int, float, Fraction, Decimal)


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
        self.tokens[Has(value)] = None
        if place:
            self.tokens[At(place, value)] = None

    def built(self, place: Place, kind: str, *parts: Any) -> None:
        self.tokens[Built(place, kind, parts)] = None

    def field(self, place: Place) -> None:
        """A number, where it is in a field by name."""
        if place and isinstance(place[-1], str):
            self.built(place, NUMBER)


def describe(form: Any) -> Description:
    """The numbers and tokens of a frozen output."""
    result = Description()
    skeleton = _read(form, (), result)
    result.tokens[Shape(skeleton)] = None
    return result


def place_words(place: Place) -> str:
    """A place as Python would write it: [0]['n']."""
    return "".join(f"[{step!r}]" for step in place) or "the output"


def _read(form: Any, place: Place, about: Description) -> Any:
    """Note the parts of one part; its skeleton."""
    if len(about.numbers) + len(about.tokens) > MOST:
        about.whole = False
        return _REST
    kind = type(form)
    if kind is float:
        about.numbers[place] = form
        about.field(place)
        return _NUMERIC
    if kind is str:
        return _text(form, place, about)
    if kind is tuple:
        return _sequence(form, place, about)
    if kind is Record:
        about.built(place, KEYS, *(key for key, _value in form.items))
        return _Type(form.name), *[
            (_key(key, about), _read(value, (*place, key), about)) for key, value in form.items
        ]
    if kind is Raised:
        about.symbol(place, f"raised {form.name}")
        about.built(place, RAISED, form.name)
        return _Type(f"raised {form.name}"), _text(form.text, (*place, "message"), about)
    if kind is frozenset:
        ordered = sorted(form, key=lambda each: (str(type(each)), repr(each)))
        about.built(place, ELEMENTS, len(form))
        return _Type("set"), len([_read(each, (*place, "element"), about) for each in ordered])
    if kind is not bool and isinstance(form, _REALS):
        return _number(form, place, about)
    about.symbol(place, form)
    return _Type(kind.__name__)


def _sequence(form: tuple[Any, ...], place: Place, about: Description) -> Any:
    keyed = list(_keyed(form))
    if keyed:
        for key, position, value in keyed:
            _read(value, (*place, key, position), about)
        about.built(place, KEYS, *(row[0] for row in form))
        return _Type("pairs"), tuple([_key(row[0], about) for row in form])
    about.numbers[(*place, "length")] = len(form)
    inside = tuple([_read(each, (*place, number), about) for number, each in enumerate(form)])
    kinds = {each if isinstance(each, _Type) else _PARTS for each in inside}
    about.built(place, ENTRIES, len(form), *sorted(kinds))
    return inside


def _number(form: Any, place: Place, about: Description) -> Any:
    try:
        value = float(form)
    except (OverflowError, ValueError):
        value = math.inf if form > 0 else -math.inf
    if isinstance(form, int):
        about.tokens[At(place, form)] = None
    about.numbers[place] = value
    about.field(place)
    return _NUMERIC


def _key(key: Any, about: Description) -> Any:
    about.tokens[Has(key)] = None
    return key


def _keyed(form: tuple[Any, ...]) -> Iterator[tuple[Any, int, Any]]:
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


def _text(text: str, place: Place, about: Description) -> Any:
    if len(text) <= LONGEST:
        inner = _json(text)
        if inner is not None:
            return _Type("JSON"), _read(inner, place, about)
        numbers = _NUMBER.findall(text)
        if numbers:
            skeleton = _NUMBER.sub("#", text)
            for position, number in enumerate(numbers):
                about.numbers[(*place, "number", position)] = float(number)
            about.symbol(place, skeleton)
            _words(skeleton, text, about)
            return _TEXT, skeleton
        _words(text, text, about)
    about.symbol(place, text)
    return _TEXT


def _words(skeleton: str, text: str, about: Description) -> None:
    for word in _WORD.findall(skeleton):
        if word != text:
            about.tokens[Has(word)] = None


def _json(text: str) -> Any:
    """What a text that is JSON spells: only an object or an array is more than text."""
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        value = json.loads(text)
        return freeze(value) if isinstance(value, dict | list) else None
    except (ValueError, RecursionError, InvalidInput):
        return None
