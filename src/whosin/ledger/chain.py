"""A history that shows when it was rewritten: each entry's digest covers the one before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from whosin.errors import InvalidInput

START = "0" * 64


def canonical(data: object, field: str = "entry") -> str:
    """JSON in one spelling, so that equal data have equal digests."""
    try:
        return json.dumps(
            data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
        )
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput(field, "plain JSON data with finite numbers", "something else") from None


def plain(data: Mapping[str, Any], field: str) -> dict[str, Any]:
    """A copy as a file would give it back: text as keys, lists for tuples."""
    copy: dict[str, Any] = json.loads(canonical(dict(data), field))
    return copy


def digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def link(previous: str, entry: Mapping[str, Any]) -> str:
    """The digest of an entry that follows another."""
    return digest(f"{previous}\n{canonical(entry)}")
