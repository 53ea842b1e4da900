"""Where requests are worked on: each in a process of its own, with a deadline and a memory limit.

Contract: the process that listens computes nothing exact, reads no table and waits for no ledger.
What does is a task: a function of a module that is given the settings and the body and answers
with a model of its route, a text or bytes. Quick tasks (plans, prices, levels, listings, reading
files) have some seconds. Releases scan tables and have minutes; they are priced as a quick task
first, so that only a scan can take long. Each has its own turns, and everyone a fair share.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from fastapi import Request
from pydantic import BaseModel

from whosin.app.web.failures import Refused
from whosin.app.web.fair_queue import FairQueue
from whosin.app.web.settings import Settings
from whosin.extras import installed
from whosin.isolation import Limits, Nursery

QUICK = Limits(30.0, 1 << 30, "the command takes more than the page", processor=8.0)
SCANS = 2
MODULES = {
    "web": ("whosin.app.web.server", "flint", "whosin.report.html"),
    "charts": ("altair", "vl_convert"),
    "release": ("ibis.backends.duckdb", "pyarrow.dataset", "pyarrow.csv"),
    "tradeoff": ("highspy",),
}
"""What tasks begin with, by extra. Not opendp: it starts threads, and a process with threads cannot
fork safely."""

SHARED = Nursery([each for extra in MODULES if installed(extra) for each in MODULES[extra]])
"""One for all servers of this process: a task carries its settings."""


class Work:
    """The tasks of one server."""

    def __init__(self, settings: Settings, nursery: Nursery = SHARED) -> None:
        self.nursery = nursery
        self.quick_turns = FairQueue(max(3, min(8, os.cpu_count() or 2)))
        self.scan_turns = FairQueue(SCANS)
        hint = "whoever runs the server can allow more"
        self.scan_limits = Limits(settings.scan_seconds, settings.scan_memory, hint)

    def quick(self, who: str, task: Callable[..., Any], *given: Any) -> Any:
        """A task that takes some seconds at most."""
        return self._run(self.quick_turns, QUICK, who, task, given)

    def scan(self, who: str, task: Callable[..., Any], *given: Any) -> Any:
        """A task that scans a table."""
        return self._run(self.scan_turns, self.scan_limits, who, task, given)

    def always(self, task: Callable[..., Any], *given: Any) -> Any:
        """A quick task that has to be done whoever waits, and however many do."""
        return self._done(QUICK, task, given)

    def _run(
        self, turns: FairQueue, limits: Limits, who: str, task: Callable[..., Any], given: Any
    ) -> Any:
        with turns.turn(who):
            return self._done(limits, task, given)

    def _done(self, limits: Limits, task: Callable[..., Any], given: Any) -> Any:
        kind, *found = self.nursery.run(
            perform, task.__module__, task.__qualname__, given, limits=limits
        )
        if kind == "refused":
            raise Refused(*found)
        return found[0]


def quick(request: Request, task: Callable[..., Any], *given: Any) -> Any:
    """A quick task for a request."""
    return _work(request).quick(person(request), task, *given)


def scan(request: Request, task: Callable[..., Any], *given: Any) -> Any:
    """A task that scans, for a request."""
    return _work(request).scan(person(request), task, *given)


def always(request: Request, task: Callable[..., Any], *given: Any) -> Any:
    """A quick task that nobody can keep from being done."""
    return _work(request).always(task, *given)


def person(request: Request) -> str:
    """Whose turn a request takes: a user's, or an address's where nobody has a name."""
    user = getattr(request.state, "user", None)
    return f"user {user}" if user else f"address {request.client.host if request.client else ''}"


def perform(module: str, name: str, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Do a task, in its process."""
    try:
        answer = getattr(import_module(module), name)(*given)
    except Refused as refused:
        return "refused", refused.status, str(refused), refused.field
    return "answer", answer.model_dump() if isinstance(answer, BaseModel) else answer


def _work(request: Request) -> Work:
    found = request.app.state.work
    assert isinstance(found, Work)
    return found
