"""Names of datasets, requests and people: printable, and in one spelling."""

from __future__ import annotations

import getpass
import unicodedata

from whosin.errors import InvalidInput

LONGEST_NAME = 200


def read_name(value: object, field: str) -> str:
    """A name as it is stored; a letter and its accent, or the accented letter, are the same."""
    if isinstance(value, str) and len(value) > LONGEST_NAME:
        raise InvalidInput(field, f"at most {LONGEST_NAME} letters", f"{len(value)}")
    if not isinstance(value, str) or not value or value != value.strip():
        raise InvalidInput(field, "a name without spaces around it", repr(value))
    if not value.isprintable():
        raise InvalidInput(field, "a name of printable letters", repr(value))
    return unicodedata.normalize("NFC", value)


def user() -> str:
    """Who runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
