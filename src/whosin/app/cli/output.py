"""What commands print: one JSON object on standard output, or words; progress beside it."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


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


def print_json(data: Mapping[str, object]) -> None:
    """One object."""
    text = json.dumps(plain(data), ensure_ascii=False, indent=2)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        text = json.dumps(plain(data), indent=2)
    print(text)


def print_result(
    json: bool, data: Mapping[str, object], words: Callable[..., None], *given: Any
) -> None:
    """Print a result: as one JSON object, or in words by a function of `report`."""
    if json:
        print_json(data)
    else:
        words(*given)


def progress_bar(*columns: ProgressColumn, quiet: bool = False) -> Progress:
    """A bar on standard error, where that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    hidden = quiet or not console.is_terminal
    return Progress(*columns, console=console, transient=True, disable=hidden)
