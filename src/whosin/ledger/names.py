"""Names of datasets, requests and people: printable, and in one spelling."""

from __future__ import annotations

import getpass
import unicodedata

from whosin.errors import InvalidInput

LONGEST_NAME = 200


def read_name(value: object, field: str) -> str:
    """A name as it is stored; a letter and its accent, or the accented letter, are the same."""
    if not isinstance(value, str) or not value or value != value.strip():
        raise InvalidInput(field, "a name without spaces around it", repr(value)[:LONGEST_NAME])
    # Three letters can come of one: what is stored is what must fit.
    name = unicodedata.normalize("NFC", value[: LONGEST_NAME + 1])
    if max(len(value), len(name)) > LONGEST_NAME:
        raise InvalidInput(field, f"at most {LONGEST_NAME} letters", f"{len(value)}")
    if not name.isprintable():
        raise InvalidInput(field, "a name of printable letters", repr(value))
    return name


def user() -> str:
    """Who runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
