"""Where requests are worked on: each in a process of its own, with a deadline and a memory limit.

Contract: the process that listens computes nothing exact, reads no table and waits for no ledger.
Tasks do all that. A task is the function of a route (`quick_route`, `scan_route`), which is given
the settings, the visitor and the body and answers with a model, a text or bytes. Quick tasks
(plans, prices, levels, listings, reading files) have some seconds. Releases scan tables and have
minutes; they are priced as a quick task first, so that only a scan can take long. Each has its own
turns, and everyone a fair share.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from inspect import Parameter, signature, unwrap
from typing import Any, TypeVar

from fastapi import Request, Response
from pydantic import BaseModel

from whosin.app.web.failures import Refused
from whosin.app.web.fair_queue import FairQueue
from whosin.app.web.settings import Settings
from whosin.app.web.visitors import settings_of, visitor_of
from whosin.extras import installed
from whosin.isolation import Limits, Nursery

QUICK = Limits(30.0, 1 << 30, "the command takes more than the page", processor=8.0)
SCANS = 2
FROM_SERVER: dict[str, Callable[[Request], Any]] = {"settings": settings_of, "visitor": visitor_of}
Task = TypeVar("Task", bound=Callable[..., Any])
MODULES = {
    "web": ("whosin.app.web.server", "flint", "whosin.report.html"),
    "charts": ("altair", "vl_convert"),
    "release": ("ibis.backends.duckdb", "pyarrow.dataset", "pyarrow.csv"),
    "tradeoff": ("highspy",),
}
"""The modules that are imported before tasks begin, by extra. Not opendp: it starts threads, and a
process with threads cannot fork safely."""

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
        with self.quick_turns.turn(who):
            return self.always(task, *given)

    def scan(self, who: str, task: Callable[..., Any], *given: Any) -> Any:
        """A task that scans a table."""
        with self.scan_turns.turn(who):
            return self._done(self.scan_limits, task, given)

    def always(self, task: Callable[..., Any], *given: Any) -> Any:
        """A quick task that is done however many others wait."""
        return self._done(QUICK, task, given)

    def _done(self, limits: Limits, task: Callable[..., Any], given: Any) -> Any:
        kind, *answer = self.nursery.run(
            perform, task.__module__, task.__qualname__, given, limits=limits
        )
        if kind == "refused":
            raise Refused(*answer)
        return answer[0]


def quick(request: Request, task: Callable[..., Any], *given: Any) -> Any:
    """Do a quick task for a request."""
    return work_of(request).quick(person(request), task, *given)


def scan(request: Request, task: Callable[..., Any], *given: Any) -> Any:
    """Do a task that scans a table for a request."""
    return work_of(request).scan(person(request), task, *given)


def quick_route(task: Task) -> Task:
    """A route whose function is a quick task, done in a process of its own.

    The settings and the visitor come from the server where the task takes them, and the other
    parameters from the request.
    """
    return _route(task, quick)


def scan_route(task: Task) -> Task:
    """The same for a task that scans a table."""
    return _route(task, scan)


def text_route(media: str, work_on: Callable[..., Any]) -> Callable[[Task], Task]:
    """The same for a task (`quick` or `scan`) that answers with the text of a file."""
    return lambda task: _route(task, work_on, media)


def gives(media: str) -> dict[str, Any]:
    """The description of a route whose answer is a file, and whose refusals are JSON."""
    return {"response_class": Response, "responses": {200: {"content": {media: {}}}}}


def _route(task: Task, work_on: Callable[..., Any], media: str | None = None) -> Task:
    declared = signature(task, eval_str=True)
    known = {name: FROM_SERVER[name] for name in declared.parameters if name in FROM_SERVER}

    @wraps(task)
    def handle(request: Request, **given: Any) -> Any:
        given |= {name: read(request) for name, read in known.items()}
        answer = work_on(request, task, *(given[name] for name in declared.parameters))
        return answer if media is None else Response(answer, media_type=media)

    asked = Parameter("request", Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)
    own = [each for name, each in declared.parameters.items() if name not in known]
    answers = declared.return_annotation if media is None else Response
    shape = declared.replace(parameters=[asked, *own], return_annotation=answers)
    handle.__signature__ = shape  # type: ignore[attr-defined]
    return handle  # type: ignore[return-value]


def person(request: Request) -> str:
    """Whose turn a request takes: a user's, or an address's where nobody has a name."""
    user = getattr(request.state, "user", None)
    return f"user {user}" if user else f"address {request.client.host if request.client else ''}"


def perform(module: str, name: str, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Do a task, in its process."""
    try:
        answer = unwrap(getattr(import_module(module), name))(*given)
    except Refused as refused:
        return "refused", refused.status, str(refused), refused.field
    return "answer", answer.model_dump() if isinstance(answer, BaseModel) else answer


def work_of(request: Request) -> Work:
    """Where this server's requests are worked on."""
    work: Work = request.app.state.work
    return work
