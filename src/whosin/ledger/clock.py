"""Times in a ledger: UTC, to the microsecond, in one spelling whose order is that of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from whosin.errors import StoreFailed

TOLERANCE = timedelta(minutes=1)
"""Clocks are adjusted by seconds all the time; by more than this something is wrong."""


def now(moment: datetime | None = None) -> str:
    """A moment as text; this one by default."""
    return (moment or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def after(last: str, current: str) -> str:
    """The time of the next entry, never before the last one.

    Raises:
        StoreFailed: the clock was set back, so that times would mean nothing.
    """
    if current >= last:
        return current
    if _read(last) - _read(current) > TOLERANCE:
        raise StoreFailed(
            f"the clock says {current[:19]}Z, before the last entry of {last[:19]}Z: set it right; "
            "no answer was given"
        )
    return last


def _read(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")
    except ValueError:
        raise StoreFailed(
            "the ledger's last entry has no readable time; see `whosin ledger verify`"
        ) from None
