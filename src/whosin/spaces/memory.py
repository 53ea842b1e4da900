"""Refusing work that would not fit, before it starts."""

from __future__ import annotations

import os

from whosin.errors import TooLarge


def available() -> int:
    """Bytes of memory that work may take: what is free, less a fifth for everything else."""
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        free = 4 << 30
    return max(free * 4 // 5, 256 << 20)


def require(what: str, needed: int, fits: str | None = None) -> None:
    """Raise `TooLarge`, with the size and the largest that fits, unless `needed` bytes are free."""
    limit = available()
    if needed > limit:
        raise TooLarge(what, needed, limit, fits or "use a structured mechanism or fewer worlds")


def require_table(what: str, worlds: int, outputs: int, base: int = 2) -> None:
    """Check an array of likelihoods; the message says how many entities (or rows) would fit."""
    limit, fit = available(), 0
    while base ** (fit + 1) * outputs * 8 <= limit:
        fit += 1
    entities = "entities" if base == 2 else f"rows of {base} values"
    require(what, worlds * outputs * 8, f"with {outputs} outputs {fit} {entities} fit")
