"""Text files that people hand over: read once, bounded, and refused in one sentence.

Contract: size, depth, number of entries and length of numbers are checked before anything is built
from a file; whatever is wrong becomes `InvalidInput`, which names the kind of file and never quotes
more of it than a key. Every reader of JSON, TOML or plain text goes through here.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from whosin.errors import InvalidInput, UnknownName

MOST_BYTES = 128 << 20
MOST_STUDY = 1 << 30
"""Lists of people and of SNPs may be long."""
MOST_TOML = 1 << 20
MOST_ENTRIES = 1 << 24
MOST_SPELLED = 1 << 16
MOST_LISTS, MOST_OBJECTS = 1 << 22, 1 << 20
DEEPEST = 64
DEEPEST_KEY = 16
LONGEST_NUMBER = 1000
LONGEST_WHOLE = 300
"""Digits of a whole number outside texts: a longer one fits into no float."""

HALF_LETTER = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_LONG = re.compile(rf"\d{{{LONGEST_NUMBER + 1},}}")
_RANGE = re.compile(r"[=,\[]\s*-?\d[\d.e-]*\.\.-?\d")
_TOML_MARK = re.compile(r'"""|\'\'\'|["\'#\[\]{}.=,\n]')
_TOML_END = {
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*"""', re.DOTALL),
    "'''": re.compile(r"(?:[^']|'(?!''))*'''"),
    '"': re.compile(r'(?:[^"\\\n]|\\.)*"'),
    "'": re.compile(r"[^'\n]*'"),
    "#": re.compile(r"[^\n]*"),
}


def read_text(path: Path, what: str, most: int = MOST_BYTES) -> str:
    """The text of a file, without a byte-order mark.

    Raises:
        InvalidInput: it is longer than `most` bytes, or not UTF-8 text.
        OSError: there is no such file, or it may not be read.
    """
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise InvalidInput(what, f"at most {most:,} bytes long", "a longer file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(what, "UTF-8 text", "something else") from None


def read_words(path: Path, most: int = MOST_BYTES) -> list[list[str]]:
    """The words, apart by spaces or tabs, of every line that is not empty. CSV is `csv_files`."""
    rows = [line.split() for line in read_text(path, path.name, most).splitlines() if line.strip()]
    if not rows:
        raise InvalidInput(path.name, "text with at least one line", "an empty file")
    return rows


class Spelled(str):
    """A decimal of a JSON file as it was written there, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def read_json(path: Path, what: str, spelled: bool = False, accepted: str = "JSON") -> Any:
    """The value of a JSON file."""
    return parse_json(read_text(path, what), what, spelled, accepted)


def parse_json(text: str, what: str, spelled: bool = False, accepted: str = "JSON") -> Any:
    """The value of a JSON text. Keys of an object are distinct; NaN and Infinity are not JSON.

    Args:
        spelled: keep decimals as they are `Spelled`, unless the text has more than `MOST_SPELLED`
            entries: then they are floats.
        accepted: what to say that it must be, where it is not JSON.
    """
    _check_length(text, what)
    entries = text.count(",")
    crowded = (
        entries > MOST_ENTRIES or text.count("[") > MOST_LISTS or text.count("{") > MOST_OBJECTS
    )
    if crowded:
        raise InvalidInput(what, f"JSON with at most {MOST_ENTRIES:,} entries", "more")
    try:
        value = json.loads(
            text,
            parse_float=Spelled if spelled and entries <= MOST_SPELLED else float,
            parse_int=_whole,
            parse_constant=_constant,
            object_pairs_hook=_distinct,
        )
    except json.JSONDecodeError as error:
        raise InvalidInput(what, accepted, f"line {error.lineno}: {error.msg}") from None
    except RecursionError:
        raise _too_deep(what) from None
    except MemoryError:
        raise InvalidInput(what, "JSON that fits into memory", "more") from None
    if text.count("[") + text.count("{") > DEEPEST:
        _check_depth(value, what)
    if HALF_LETTER.search(text):
        _check_letters(value, what)
    return value


def _check_letters(value: object, what: str) -> None:
    """Half a letter (a lone surrogate) can be escaped in JSON, and no file or answer holds it."""
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput(what, "JSON in valid Unicode", "half of a letter") from None


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The tables of a TOML file."""
    return parse_toml(read_text(path, what, MOST_TOML), what)


def parse_toml(text: str, what: str) -> dict[str, Any]:
    """The tables of a TOML text."""
    if len(text) > MOST_TOML:
        raise InvalidInput(what, f"at most {MOST_TOML:,} letters long", "a longer text")
    _check_length(text, what)
    depth = dots = 0
    for mark in _toml_marks(text):
        depth += (mark in "[{") - (mark in "]}")
        dots = dots + 1 if mark == "." else 0
        if depth > DEEPEST or dots >= DEEPEST_KEY:
            raise _too_deep(what)
    try:
        result = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(what, "a TOML file", f"{error}{_toml_hint(text, str(error))}") from None
    except RecursionError:
        raise _too_deep(what) from None
    except ValueError:  # a date or a number that no calendar or machine has
        raise InvalidInput(what, "a TOML file", "a value that cannot be read") from None
    _check_whole(result)
    return result


def _toml_hint(text: str, error: str) -> str:
    """What to write instead, where a line that is not TOML has a range without quotes."""
    line = re.search(r"at line (\d+)", error)
    lines = text.splitlines()[int(line.group(1)) - 1 :][:1] if line else []
    return ': a range is in quotes, as in "0.05..0.5"' if any(map(_RANGE.search, lines)) else ""


def check_object(value: object, what: str) -> dict[str, Any]:
    """The value, if it is an object."""
    if isinstance(value, dict):
        return value
    raise InvalidInput(what, "a JSON object", _kind(value))


def read_object(path: Path, what: str, accepted: str = "JSON") -> dict[str, Any]:
    """The object in a JSON file, decimals as they are spelled."""
    return check_object(read_json(path, what, spelled=True, accepted=accepted), what)


def check_keys(data: Iterable[object], known: Iterable[str], what: str) -> None:
    """Unknown keys are errors that name the nearest known one."""
    known = tuple(known)
    for key in data:
        if key not in known:
            raise UnknownName(f"key of the {what}", str(key), known)


def _toml_marks(text: str) -> Iterator[str]:
    """The brackets, dots and separators of a TOML text outside its strings and comments."""
    position = 0
    while result := _TOML_MARK.search(text, position):
        mark = result.group()
        position = result.end()
        if mark in _TOML_END:
            end = _TOML_END[mark].match(text, position)
            if end is None:
                return  # a string without an end: the parser says where
            position = end.end()
        else:
            yield mark


def _check_length(text: str, what: str) -> None:
    if _LONG.search(text):
        raise InvalidInput(what, f"written with numbers of at most {LONGEST_NUMBER} digits", "more")


def _check_depth(value: object, what: str) -> None:
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, list | dict)
        ]
        if not level:
            return
    raise _too_deep(what)


def _check_whole(tables: dict[str, Any]) -> None:
    """See that no whole number is too long, in whatever base it was written."""
    values: list[Any] = [tables]
    while values:
        value = values.pop()
        if isinstance(value, dict | list):
            values += value.values() if isinstance(value, dict) else value
        elif isinstance(value, int) and abs(value) >= 10**LONGEST_WHOLE:
            raise _too_long()


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object whose keys are distinct: one of two equal keys would be lost silently."""
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise InvalidInput("keys of an object", "distinct", f"{key[:40]!r} more than once")
        result[key] = value
    return result


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_WHOLE:
        raise _too_long()
    return int(digits)


def _too_long() -> InvalidInput:
    return InvalidInput("whole numbers", f"at most {LONGEST_WHOLE} digits long", "a longer one")


def _constant(name: str) -> object:
    raise InvalidInput("numbers in JSON", "finite", name)


def _too_deep(what: str) -> InvalidInput:
    return InvalidInput(what, f"nested at most {DEEPEST} levels deep", "deeper nesting")


def _kind(value: object) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def toml_text(data: Mapping[str, Any]) -> str:
    """Plain data as a TOML document: sections of one level, and lists of sections."""
    plain, sections = [], []
    for key, value in data.items():
        if isinstance(value, Mapping):
            sections.append(_section(f"[{_toml_key(key)}]", value))
        elif isinstance(value, list) and value and all(isinstance(e, Mapping) for e in value):
            sections += [_section(f"[[{_toml_key(key)}]]", each) for each in value]
        else:
            plain.append(f"{_toml_key(key)} = {_toml_value(value)}\n")
    return "\n".join(["".join(plain)] * bool(plain) + sections)


def _section(head: str, data: Mapping[str, Any]) -> str:
    lines = [f"{_toml_key(key)} = {_toml_value(value)}" for key, value in data.items()]
    return "\n".join([head, *lines]) + "\n"


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml_value(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_toml_key(key)} = {_toml_value(each)}" for key, each in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, str):
        # As JSON, but for DEL, which TOML has escaped too.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value.isoformat()
