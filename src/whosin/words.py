"""Words that were said, as values and as what they describe.

Contract: the words are those of `vocabulary`. What is None or false was not said. An error says at
which word it is (`path`), such as prior or candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from fractions import Fraction
from numbers import Integral
from typing import Any, TypeVar

from whosin.errors import InvalidInput, UnknownName, Unsupported, WhosinError, at
from whosin.exact import number_range, rational
from whosin.validation import excerpt, of_kind
from whosin.vocabulary import Word

Said = Mapping[str, object]
Described = TypeVar("Described")


def words_said(data: Said, words: Mapping[str, Word], section: str) -> dict[str, object]:
    """The words of a section that were said, all of them known."""
    of_kind(data, Mapping, section, "an object with words")  # type: ignore[type-abstract]
    for word in data:
        if word not in words:
            with at(section):
                raise UnknownName("key", str(word), words)
    return {word: value for word, value in data.items() if value is not None and value is not False}


def value_of(word: Word, value: object) -> Any:
    """What was said with a word, as it is meant."""
    with at(word.name):
        match word.takes:
            case "flag":
                if not isinstance(value, bool):
                    raise InvalidInput(word.name, "true or false", excerpt(value))
                return value
            case "whole":
                if isinstance(value, bool) or not isinstance(value, Integral):
                    raise InvalidInput(word.name, "a whole number", excerpt(value))
                return int(value)
            case "range":
                return _range(value, word.name)
            case "number":
                return _number(value, word.name)
        return value


def takes(kind: type, words: Mapping[str, Word]) -> dict[str, Any] | None:
    """The fields of a dataclass by the words that fill them; None if it needs what no word says.

    A field has the word of its own name, or the word that the class's `spelled_as` gives it.
    """
    spelled = getattr(kind, "spelled_as", {})
    if not hasattr(kind, "__dataclass_fields__"):
        return None
    known = {spelled.get(each.name, each.name): each for each in fields(kind)}
    if any(word not in words and _required(each) for word, each in known.items()):
        return None
    return {word: each for word, each in known.items() if word in words}


def describe(
    kind: Callable[..., Described], name: str, said: Said, words: Mapping[str, Word]
) -> Described:
    """The object that these words describe; `name` is what it is called in messages.

    Raises:
        InvalidInput: a word that it does not take, or one is missing.
    """
    taken = takes(kind, words)  # type: ignore[arg-type]
    if taken is None:
        raise Unsupported(f"{name} needs what no option can say; make it in Python")
    for word, value in said.items():
        if word not in taken:
            with at(word):
                raise InvalidInput(word, f"left out with {name}", value)
    values = {}
    for word, field in taken.items():
        value = said.get(word, words[word].default or None)
        if value is not None:
            values[field.name] = value_of(words[word], value)
        elif _required(field):
            with at(word):
                raise InvalidInput(word, f"given with {name}", "nothing")
    return at_its_word(
        lambda: kind(**values), {field.name: word for word, field in taken.items()} | {"": ""}
    )


def at_its_word(make: Callable[[], Described], words: Mapping[str, str]) -> Described:
    """What is made, whose errors are at the word that filled the field they are about."""
    try:
        return make()
    except WhosinError as error:
        error.path = words.get(getattr(error, "field", ""), words[""])
        raise


def _required(field: Any) -> bool:
    return bool(field.default is MISSING and field.default_factory is MISSING)


def _number(value: object, field: str) -> Fraction:
    """A number; TOML's true is none, though Python would take it for 1."""
    if isinstance(value, bool):
        raise InvalidInput(field, "a number such as 0.5", str(value).lower())
    return rational(value, field)


def _range(value: object, field: str) -> tuple[Fraction, Fraction]:
    if isinstance(value, str):
        return number_range(value, field)
    if isinstance(value, list | tuple) and len(value) == 2:
        return _number(value[0], field), _number(value[1], field)
    return _number(value, field), _number(value, field)
