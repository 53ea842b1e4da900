"""Arguments of a wrong kind, refused where they come in.

Contract: whatever Python object a caller passes by mistake is answered with `InvalidInput`, which
names the argument; numbers are read by `exact`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from whosin.errors import InvalidInput, short

Given = ParamSpec("Given")
Result = TypeVar("Result")
Kind = TypeVar("Kind")
EXCERPT = 80


def excerpt(value: object) -> str:
    """What came, short enough for a message."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of too many digits
        return short(value)
    return text if len(text) <= EXCERPT else f"{text[:EXCERPT]}…"


def listed(value: object, field: str, accepted: str) -> tuple[Any, ...]:
    """The entries of a list; a text lists its letters ("ab" is a set of a and b), a mapping or a
    single thing is not a list."""
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        return tuple(value)
    raise InvalidInput(field, accepted, excerpt(value))


def tables(value: object, field: str, accepted: str) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Pairs of a list and a mapping, such as members and the probabilities of their sets."""
    for entry in listed(value, field, accepted):
        pair = listed(entry, field, accepted)
        if len(pair) != 2 or not isinstance(pair[1], Mapping):
            raise InvalidInput(field, accepted, excerpt(entry))
        yield listed(pair[0], field, accepted), pair[1]


def of_kind(value: object, kind: type[Kind], field: str, accepted: str | None = None) -> Kind:
    """The value, if it is of this kind."""
    if isinstance(value, kind):
        return value
    raise InvalidInput(field, accepted or f"a {kind.__name__}", excerpt(value))


def path_of(value: object, field: str = "path") -> Path:
    """The path of a file. Anything else may be a table: a message names its type and no cell."""
    text = fspath(value) if isinstance(value, str | PathLike) else None
    if isinstance(text, str) and text and "\0" not in text:
        return Path(text)
    plain = isinstance(value, str | Real) or value is None
    raise InvalidInput(
        field, "the path of a file", excerpt(value) if plain else type(value).__name__
    )


MOST_PEOPLE = 10**10
"""More people than there are."""


def whole(value: object, field: str, least: int, most: int | None = None, what: str = "") -> int:
    """A whole number of at least this, and at most that; `what` says more about it in messages."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if number >= least and (most is None or number <= most):
            return number
    accepted = f"a whole number of at least {least}"
    if most is not None:
        accepted += f" and at most {most:,}"
    raise InvalidInput(field, accepted + what, excerpt(value))


def spelled_whole(text: str, field: str) -> int:
    """A whole number from its digits."""
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(field, "a whole number", repr(text)) from None


def real(value: object, field: str) -> Any:
    """A number as it is: rational, float, ∞. NaN is refused; FLINT's rationals have p and q."""
    if (isinstance(value, Real) and value == value) or hasattr(value, "q"):
        return value
    raise InvalidInput(field, "a number", excerpt(value))


RANGES: dict[str, Callable[[Any], bool]] = {
    "above 0": lambda number: number > 0,
    "above 1": lambda number: number > 1,
    "at least 0": lambda number: number >= 0,
    "at least 1": lambda number: number >= 1,
    "between 0 and 1": lambda number: 0 <= number <= 1,
    "strictly between 0 and 1": lambda number: 0 < number < 1,
    "above 0 and at most 1": lambda number: 0 < number <= 1,
    "at least 0 and below 1": lambda number: 0 <= number < 1,
}
"""Ranges by the words that messages have for them; NaN is in none."""


def within(value: Any, field: str, accepted: str) -> Any:
    """The number, if it is in the range that the words say (`RANGES`)."""
    if RANGES[accepted](value):
        return value
    raise InvalidInput(field, accepted, value)


def of_numbers(formula: Callable[Given, Result]) -> Callable[Given, Result]:
    """A formula that takes numbers only: rationals, floats, ∞; others are refused by name."""
    names = tuple(signature(formula).parameters)
    last = len(names) - 1  # of *numbers all have its name

    @wraps(formula)
    def checked(*given: Given.args, **named: Given.kwargs) -> Result:
        placed = ((names[min(index, last)], value) for index, value in enumerate(given))
        for name, value in (*placed, *named.items()):
            real(value, name)
        return formula(*given, **named)

    return checked
