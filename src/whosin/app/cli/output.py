"""JSON on standard output, and nothing else there."""

from __future__ import annotations

import json
import math
import sys
from fractions import Fraction
from typing import Any


def plain(value: object) -> Any:
    """The JSON form of a value: exact numbers become floats, infinities become "inf"."""
    if isinstance(value, Fraction):
        value = float(value) if abs(value) < Fraction(2) ** 1000 else math.inf
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def warn(message: str) -> None:
    """A line on standard error."""
    print(f"whosin: warning: {message}", file=sys.stderr)


def print_json(data: dict[str, object]) -> None:
    """One object."""
    text = json.dumps(plain(data), ensure_ascii=False, indent=2)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        text = json.dumps(plain(data), indent=2)
    print(text)
