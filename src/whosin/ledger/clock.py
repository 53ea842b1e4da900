"""Times in a ledger: UTC, to the microsecond, in one spelling. They order nothing: numbers do."""

from __future__ import annotations

from datetime import UTC, datetime


def now(moment: datetime | None = None) -> str:
    """A moment as text; this one by default."""
    return (moment or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
