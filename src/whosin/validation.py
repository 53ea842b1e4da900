"""Arguments of a wrong kind, refused where they come in.

Whatever Python object a caller passes by mistake is answered with `InvalidInput`, which names the
argument; numbers are read by `exact`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from whosin.errors import InvalidInput, invalid_value, shorten, spell, spell_excess

Given = ParamSpec("Given")
Result = TypeVar("Result")
Kind = TypeVar("Kind")
MAX_EXCERPT_LENGTH = 80

MAX_SHOWN_ENTRIES, MAX_SHOWN_DENOMINATOR = 3, 10**6
"""Longer lists and fractions are cut off in short forms."""


def shorten_value(value: object) -> str:
    """What came, short enough for a message."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of too many digits
        return shorten(value)
    return text if len(text) <= MAX_EXCERPT_LENGTH else f"{text[:MAX_EXCERPT_LENGTH]}…"


def shorten_result(value: object, *names: str) -> str:
    """A short form of a result for people: some of its fields, long ones cut off, absent ones left
    out."""
    given = [(name, getattr(value, name)) for name in names]
    parts = [f"{name}={_shorten_field(each)}" for name, each in given if each not in (None, "", ())]
    return f"{type(value).__name__}({', '.join(parts)})"


def _shorten_field(value: object) -> str:
    """A number as it is shown, and anything else cut off."""
    if isinstance(value, Fraction) and value.denominator > MAX_SHOWN_DENOMINATOR:
        return f"{spell(value)}" if abs(value) < 10**300 else "above 1e300"
    if isinstance(value, tuple) and len(value) > MAX_SHOWN_ENTRIES:
        return (
            f"({', '.join(map(shorten_value, value[:MAX_SHOWN_ENTRIES]))}, … {len(value)} in all)"
        )
    return shorten_value(value)


def read_list(value: object, field: str, accepted: str) -> tuple[Any, ...]:
    """The entries of a list; a text lists its letters ("ab" is a set of a and b), a mapping or a
    single thing is not a list."""
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        return tuple(value)
    raise invalid_value(field, accepted, shorten_value(value))


def read_tables(value: object, field: str, accepted: str) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Pairs of a list and a mapping, such as members and the probabilities of their sets."""
    for entry in read_list(value, field, accepted):
        pair = read_list(entry, field, accepted)
        if len(pair) != 2 or not isinstance(pair[1], Mapping):
            raise invalid_value(field, accepted, shorten_value(entry))
        yield read_list(pair[0], field, accepted), pair[1]


def check_kind(value: object, kind: type[Kind], field: str, accepted: str | None = None) -> Kind:
    """The value, if it is of this kind."""
    if isinstance(value, kind):
        return value
    raise invalid_value(field, accepted or f"a {kind.__name__}", shorten_value(value))


def read_path(value: object, field: str = "path") -> Path:
    """The path of a file. Anything else may be a table: a message names its type and no cell."""
    text = fspath(value) if isinstance(value, str | PathLike) else None
    if isinstance(text, str) and text and "\0" not in text:
        return Path(text)
    plain = isinstance(value, str | Real) or value is None
    raise invalid_value(
        field, "the path of a file", shorten_value(value) if plain else type(value).__name__
    )


MAX_POPULATION = 10**10
"""More people than there are."""


def read_whole(
    value: object, field: str, least: int, most: int | None = None, what: str = ""
) -> int:
    """A whole number of at least this, and at most that; `what` says more about it in messages."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if number >= least and (most is None or number <= most):
            return number
    accepted = f"a whole number of at least {least}"
    if most is not None:
        accepted += f" and at most {spell(most)}"
    raise invalid_value(field, accepted + what, shorten_value(value))


def spelled_whole(text: str, field: str) -> int:
    """A whole number from its digits."""
    try:
        return int(text)
    except ValueError:
        raise invalid_value(field, "a whole number", repr(text)) from None


def read_real(value: object, field: str) -> Any:
    """A number as it is: rational, float, ∞. NaN is refused; FLINT's rationals have p and q."""
    if (isinstance(value, Real) and value == value) or hasattr(value, "q"):
        return value
    raise invalid_value(field, "a number", shorten_value(value))


def check_count(
    count: int, expected: int, field: str, what: str, whose: str, hint: str = ""
) -> None:
    """Refuse a list of the wrong length: "p has 3 probabilities for 5 entities"."""
    if count != expected:
        message = f"{field} has {count} {what} for {expected} {whose}"
        raise InvalidInput(message, field=field, value=count, hint=hint)


def require_exactly_one(**given: object) -> None:
    """Refuse none or several of arguments that say the same thing in other words."""
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        names = " or ".join(given)
        ending = ", not both" if named else ""
        raise InvalidInput(f"give {names}{ending}", field=names, value=named)


def wrong_sum(field: str, total: Any, what: str = "") -> InvalidInput:
    """The error for probabilities or weights that do not add up to 1; `what` says whose."""
    off = spell_excess(total)
    message = f"{what or field} must add up to 1, not {spell(total, 12)} (off by {off})"
    return InvalidInput(message, field=field, value=total)


RANGE_CHECKS: dict[str, Callable[[Any], bool]] = {
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


def check_range(value: Any, field: str, accepted: str) -> Any:
    """The number, if it is in the range that the words say (`RANGE_CHECKS`)."""
    if RANGE_CHECKS[accepted](value):
        return value
    raise invalid_value(field, accepted, value)


def check_numbers(formula: Callable[Given, Result]) -> Callable[Given, Result]:
    """A formula that takes numbers only: rationals, floats, ∞; others are refused by name."""
    names = tuple(signature(formula).parameters)
    last = len(names) - 1  # of *numbers all have its name

    @wraps(formula)
    def checked(*given: Given.args, **named: Given.kwargs) -> Result:
        placed = ((names[min(index, last)], value) for index, value in enumerate(given))
        for name, value in (*placed, *named.items()):
            read_real(value, name)
        return formula(*given, **named)

    return checked
