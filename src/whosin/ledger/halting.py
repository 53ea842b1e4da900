"""What follows when an engine fails after a debit: the dataset is halted, and people are told.

Whether an engine runs out of memory may depend on one person's rows, so a failure tells something
that no debit paid for. Contract: the words are the same whatever the reason was, and nothing of the
engine's own is repeated, not even as a context, since it may quote rows; the failure counts, as an
entry; and nothing more is drawn, so that it cannot be tried again, until the curator resumes the
dataset. Someone who stops the work, and a source whose columns were replaced, tell nothing of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from whosin.errors import ScanFailed, SourceChanged, StoreFailed
from whosin.ledger.entries import Debit
from whosin.ledger.registry import Registry

T = TypeVar("T")


def stands(request: str) -> str:
    """What is true of a debit without an answer."""
    return f"the debit stands; request {request} continues without paying again"


def drawn(ledger: Registry, debit: Debit, request: str, draw: Callable[[], T]) -> T:
    """What `draw` draws for a debit.

    Args:
        request: what people continue.

    Raises:
        ScanFailed: it failed.
        KeyboardInterrupt, SourceChanged: with what stands.
    """
    failure: BaseException | None = None
    try:
        return draw()
    except KeyboardInterrupt:
        failure = KeyboardInterrupt(f"interrupted: {stands(request)}")
    except SourceChanged as error:
        failure = SourceChanged(f"{error}; {stands(request)}")
    except Exception:
        pass
    raise failure or halted_by(ledger, debit.dataset, debit.request, request)


def halted_by(ledger: Registry, dataset: str, answer: str, request: str) -> ScanFailed:
    """Halt a dataset; returns what to raise.

    Args:
        answer: the request whose answer could not be drawn.
        request: what people continue.
    """
    try:
        ledger.halt(dataset, answer)
    except StoreFailed:  # that says something of the ledger, and nothing of the rows
        return ScanFailed(f"the engine failed: {stands(request)}; the ledger could not be told")
    return ScanFailed(
        f"the engine failed: the debit stands; dataset {dataset!r} is halted until its curator "
        f"lets it go on with whosin ledger resume, and request {request} then continues without "
        "paying again"
    )
