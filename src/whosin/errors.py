"""Every error that whosin raises on purpose.

Contract: one root, `WhosinError`. A message names the field, the accepted range and what came, in
one line, and never quotes a private value. Subclasses carry the offending objects as attributes.
"""

from __future__ import annotations

from collections.abc import Iterable


class WhosinError(Exception):
    """The root of all errors raised by whosin."""


LONGEST = 160


def short(value: object) -> str:
    """What came, in one line and not longer than a line."""
    try:
        text = str(value)
    except (ValueError, RecursionError):  # a number of too many digits, a list of lists of lists …
        return f"something too long to show ({type(value).__name__})"
    text = "".join(each if each.isprintable() else " " for each in text[: LONGEST + 1])
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


class InvalidInput(WhosinError, ValueError):
    """A parameter is outside its accepted range."""

    def __init__(self, field: str, accepted: str, got: object) -> None:
        super().__init__(f"{short(field)} must be {accepted}; got {short(got)}")
        self.field, self.accepted, self.got = field, accepted, got


class UnknownName(InvalidInput):
    """A name that is not in its list; the message names the nearest known one."""

    def __init__(self, field: str, got: str, known: Iterable[str]) -> None:
        from difflib import get_close_matches  # slow to import, and seldom needed

        names = sorted(known)
        near = get_close_matches(got, names, n=1, cutoff=0.4)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        super().__init__(field, f"one of {', '.join(names)}", f"{got!r}{hint}")
        self.nearest = near[0] if near else None


class TooLarge(WhosinError):
    """The work does not fit into memory."""

    def __init__(self, what: str, needed: int, limit: int, fits: str) -> None:
        super().__init__(f"{what} needs {_bytes(needed)} and {_bytes(limit)} are available; {fits}")
        self.needed, self.limit = needed, limit


class TookTooLong(WhosinError):
    """A process was stopped at its deadline."""


class OutOfMemory(WhosinError):
    """A process was stopped because it needed more memory than it may have."""


class Crashed(WhosinError):
    """A process ended without an answer, or with an error that no message describes."""


class NoPureLevel(WhosinError):
    """The likelihood ratio of the mechanism is unbounded by construction (Gaussian noise)."""


class ImpossibleTarget(WhosinError):
    """No mechanism that says anything meets the target; `nearest` is the bound to stay above."""

    def __init__(self, message: str, nearest: object) -> None:
        super().__init__(message)
        self.nearest = nearest


class NoImplication(WhosinError):
    """No theorem leads from one notion to another; `counterexample` says why, if that is known."""

    def __init__(self, message: str, counterexample: str | None = None) -> None:
        super().__init__(message)
        self.counterexample = counterexample


class BudgetRefused(WhosinError):
    """The ledger refuses a debit, a session or a registration; nothing was spent."""


class StoreFailed(WhosinError):
    """The ledger's store cannot be read or written: a full disk, a lock, a lost connection."""


class ScanFailed(WhosinError):
    """The engine failed while it scanned a table, after the debit, which stands."""


class MechanismFailed(WhosinError):
    """The code under audit ended the program."""


class Interrupted(WhosinError):
    """Someone stopped the work; the message says what stands."""


class BrokenHistory(WhosinError):
    """The ledger's history is not the one that was written; `dataset` names where it breaks."""

    def __init__(self, dataset: str, message: str) -> None:
        super().__init__(f"the history of {dataset!r} is broken: {message}")
        self.dataset = dataset


class Unsupported(WhosinError):
    """A combination of mechanism, space and notion that has no meaning or no known algorithm."""


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.3g} {unit}"
        size /= 1024
    raise AssertionError("unreachable")
