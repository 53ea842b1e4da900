"""Lists of named things, as people write them: the objects themselves, or keys of a scenario file.

Contract: a name stands once, in whatever letters; errors say which entry they are about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, Protocol, TypeVar

from whosin.errors import InvalidInput, at
from whosin.validation import excerpt

LONGEST_NAME = 100


class Named(Protocol):
    """Whatever has a name."""

    @property
    def name(self) -> str: ...


Entry = TypeVar("Entry", bound=Named)


def check_name(name: str, field: str) -> None:
    """A name of a column or a table of ours."""
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name.strip() != name:
        raise InvalidInput(field, f"a name of 1 to {LONGEST_NAME} letters", excerpt(name))


def read_named(
    given: object,
    field: str,
    written: str,
    most: int,
    kinds: tuple[type[Entry], ...],
    from_keys: Callable[[Mapping[str, Any]], Entry],
) -> tuple[Entry, ...]:
    """The entries of a list, each one of the kinds or made from its keys."""
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise InvalidInput(field, f"a list: [[{field}]], {written}", excerpt(given))
    if len(given) > most:
        raise InvalidInput(field, f"at most {most}", len(given))
    result: dict[str, Entry] = {}
    for number, each in enumerate(given):
        with at(f"{field}[{number}]"):
            if isinstance(each, kinds):
                entry = each
            elif isinstance(each, Mapping):
                entry = from_keys(each)
            else:
                raise InvalidInput(field.removesuffix("s"), "a table of keys", excerpt(each))
            if entry.name.lower() in result:
                raise InvalidInput("name", "different from the others'", f"{entry.name!r} twice")
            result[entry.name.lower()] = entry
    return tuple(result.values())


def check_keys(kind: type[Any], given: Iterable[str], field: str) -> None:
    """Whether every key that a kind needs was given."""
    needed = [each.name for each in fields(kind) if each.default is MISSING]
    if missing := [name for name in needed if name not in given]:
        raise InvalidInput(field, f"given with {', '.join(missing)}", "nothing")
