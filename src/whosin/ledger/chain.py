"""A history that shows when it was rewritten: each entry's digest covers the one before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from whosin.errors import InvalidInput

START = "0" * 64


def canonical(data: object) -> str:
    """JSON in one spelling, so that equal data have equal digests."""
    try:
        return json.dumps(
            data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
        )
    except (TypeError, ValueError):
        raise InvalidInput(
            "entry", "plain JSON data with finite numbers", "something else"
        ) from None


def digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def link(previous: str, entry: Mapping[str, Any]) -> str:
    """The digest of an entry that follows another."""
    return digest(f"{previous}\n{canonical(entry)}")
