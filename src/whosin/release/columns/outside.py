"""What a domain does with values outside it, in words that all kinds of domains share."""

from __future__ import annotations

from collections.abc import Sequence

from whosin.errors import InvalidInput

OTHER = "other"
DROP, CLAMP = "drop", "clamp"
"""What a closed domain may do with a value outside, beside counting it as a declared one."""


def check_closed(cells: int) -> None:
    """A closed domain has several cells: with one there would be nothing to ask."""
    if cells < 2:
        raise InvalidInput("outside", "left out where there is one value or bin only", "given")


def check_outside(outside: object) -> None:
    """What may be said about bins."""
    if outside is not None and outside not in (DROP, CLAMP):
        accepted = f"{DROP!r} or {CLAMP!r}, for a range"
        raise InvalidInput("outside", accepted, repr(outside)[:80])


def check_constant(given: object) -> None:
    """Whether a column is the same in all rows of an entity."""
    if not isinstance(given, bool):
        raise InvalidInput("constant", "true or false", repr(given)[:80])


def other_beside(values: Sequence[object]) -> str:
    """What the cell of undeclared values is called, where a value may be called "other" too, in
    small letters or in capitals."""
    taken = {str(value).lower() for value in values}
    name = OTHER
    while name in taken:
        name += "_"
    return name
