"""One lane for exact arithmetic, many for scans.

FLINT's working precision belongs to the whole process, so two threads must not compute exactly at
once: prices would differ in their last digits from one request to the next. Scans of tables, which
take long and touch no exact number, run outside the lane.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from whosin.app.web.failures import Refused
from whosin.release.engines.base import Engine, Progress

PATIENCE = 60.0
QUEUE = 32
SCANS = 2
"""Seconds to wait for a turn, how many may wait, and how many tables are scanned at once. The queue
is shorter than the server has threads, so that the page itself is always served."""

BUSY = "the server is busy; try again in a moment"

_exact = threading.Lock()
_queue = threading.BoundedSemaphore(QUEUE)
_scans = threading.BoundedSemaphore(SCANS)


@contextmanager
def exact() -> Iterator[None]:
    """The lane, for the length of a block."""
    if not _queue.acquire(blocking=False):
        raise Refused(429, BUSY)
    try:
        if not _exact.acquire(timeout=PATIENCE):
            raise Refused(429, BUSY)
        try:
            yield
        finally:
            _exact.release()
    finally:
        _queue.release()


class Aside:
    """An engine that leaves the lane while it scans."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.name = engine, engine.name

    def open(self, source: object) -> Any:
        """As the engine does."""
        return self.engine.open(source)

    def check(self, expression: Any) -> None:
        """As the engine does: no row is read."""
        self.engine.check(expression)

    def run(self, expression: Any, progress: Progress | None = None) -> Any:
        """Scan outside the lane; come back in before anything exact happens."""
        _exact.release()
        try:
            with _scans:
                return self.engine.run(expression, progress)
        finally:
            _exact.acquire()

    def close(self) -> None:
        """As the engine does."""
        self.engine.close()
