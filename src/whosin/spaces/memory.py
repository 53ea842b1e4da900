"""Refusing work that would not fit, before it starts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

from whosin.errors import TooLarge

MEMBERSHIPS = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")
ALWAYS = 256 << 20  # what work may take on any machine: nobody is asked about less


def available() -> int:
    """Bytes of memory that work may take: what the system can give without swapping, and the limits
    of this process's control groups leave, less a fifth for everything else."""
    import psutil

    free = min([int(psutil.virtual_memory().available), *_groups()])
    return max(free * 4 // 5, ALWAYS)


def _groups() -> list[int]:
    """What is left to each control group that this process is in, from its own up to the root."""
    try:
        lines = MEMBERSHIPS.read_text().splitlines()
    except OSError:
        return []
    left = []
    for line in lines:
        number, names, path = [*line.split(":", 2), "", ""][:3]
        if number == "0" and not names:  # version 2
            home, limit, used, cache = GROUPS, "memory.max", "memory.current", "inactive_file"
        elif "memory" in names.split(","):
            home, limit = GROUPS / "memory", "memory.limit_in_bytes"
            used, cache = "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        lowest = home / path.lstrip("/")
        for folder in (lowest, *lowest.parents):
            if home in (folder, *folder.parents):
                left += _left(folder, limit, used, cache)
    return left


def _left(folder: Path, limit: str, used: str, cache: str) -> list[int]:
    try:
        most, now = int((folder / limit).read_text()), int((folder / used).read_text())
        lines = (folder / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):  # no limit is the word max
        return []
    caches = [int(line.split()[1]) for line in lines if line.split()[:1] == [cache]]
    return [max(0, most - now + sum(caches))]


def require(what: str, needed: int, fits: str | Callable[[int], str] | None = None) -> None:
    """Raise `TooLarge`, with the size and the largest that fits, unless `needed` bytes are free.

    Args:
        fits: what would fit, or what says so when it is told the bytes that are free.
    """
    if needed <= ALWAYS or needed <= (limit := available()):
        return
    said = fits(limit) if callable(fits) else fits
    raise TooLarge(what, needed, limit, said or "use a structured mechanism or fewer worlds")


def require_table(what: str, worlds: int, outputs: int, base: int = 2) -> None:
    """Check an array of likelihoods; the message says how many entities (or rows) would fit."""

    def fits(limit: int) -> str:
        fit = next(n for n in count() if base ** (n + 1) * outputs * 8 > limit)
        entities = "entities" if base == 2 else f"rows of {base} values"
        return f"with {outputs} outputs {fit} {entities} fit"

    require(what, worlds * outputs * 8, fits)
