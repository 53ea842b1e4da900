"""What a run of the command gave: exit code, standard output, standard error."""

from __future__ import annotations

import json
from typing import Any

Result = tuple[int, str, str]


def answer(result: Result) -> dict[str, Any]:
    """The JSON object on standard output; nothing else is there, nor on standard error."""
    code, out, err = result
    assert (code, err) == (0, ""), err
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


def refused(result: Result, *words: str, code: int = 2) -> None:
    """One message on standard error with these words, and nothing on standard output."""
    assert result[:2] == (code, ""), result
    assert "Traceback" not in result[2]
    for word in words:
        assert word in result[2], result[2]
