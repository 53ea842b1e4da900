"""Letters in conditions: small and capital ones, and what `trim` takes off.

Engines follow different editions of Unicode, and some make two letters of one (ß, ﬁ, İ). Here a
letter changes if it and its counterpart are each other's only one and lie in U+0000 to U+052F or
U+1E00 to U+1EFF: Latin, Greek and Cyrillic, which no edition changes any more. Others stay.
"""

from __future__ import annotations

from typing import Any

RANGES = (range(0x0530), range(0x1E00, 0x1F00))
SPACES = r" \t\n\r\x0b\x0c"
"""White space as in a pattern: each engine's SQL spells these letters in its own way."""
ODD = "[^ -~]"
"""A letter beyond plain ASCII, as a pattern."""


def _pairs() -> tuple[str, str]:
    """Small letters and their capitals, in the same order."""
    result = []
    for code in (code for each in RANGES for code in each):
        small = chr(code)
        capital = small.upper()
        alone = len(capital) == 1 and capital != small and capital.lower() == small
        if alone and any(ord(capital) in each for each in RANGES):
            result.append((small, capital))
    return "".join(small for small, _ in result), "".join(capital for _, capital in result)


SMALL, CAPITAL = _pairs()


def lower(value: Any) -> Any:
    """A text in small letters."""
    return _changed(value, value.lower(), CAPITAL, SMALL)


def upper(value: Any) -> Any:
    """A text in capitals."""
    return _changed(value, value.upper(), SMALL, CAPITAL)


def lower_text(text: str) -> str:
    """As `lower`, here and now."""
    return text.translate(str.maketrans(CAPITAL, SMALL))


def trimmed(value: Any) -> Any:
    """A text without spaces, tabs and line ends at its ends."""
    return value.re_replace(rf"^[{SPACES}]+", "").re_replace(rf"[{SPACES}]+\z", "")


def _changed(value: Any, plain: Any, old: str, new: str) -> Any:
    """Letter by letter only where a text needs it: that is slow."""
    import ibis

    return ibis.cases((value.re_search(ODD), value.translate(old, new)), else_=plain)
