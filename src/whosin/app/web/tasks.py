"""Tasks of requests: each in a worker process with a deadline and a memory limit, in fair turns."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from inspect import Parameter, signature, unwrap
from itertools import count
from typing import Any, TypeVar

from fastapi import Request, Response
from pydantic import BaseModel

from whosin.app.web.access import Settings, request_visitor, server_settings
from whosin.app.web.bodies import RequestRefused
from whosin.errors import is_installed
from whosin.isolation import TaskLimits, WorkerPool

# Turns: a limited number at a time, and fairly between people. Whoever has the fewest tasks running
# goes first, and among those whoever was served longest ago, so that one person's many requests do
# not hold up another's one. Where there are several turns, one person never has all of them: the
# last is kept for somebody else. Everyone may have a number of requests under way, and all together
# a number waiting; beyond that, and after waiting for long, a request is refused at once.


BUSY_MESSAGE = "the server is busy; try again in a moment"


class FairQueue:
    """A queue before something that few can use at once.

    Args:
        at_once: how many can.
        each: how many requests one person may have under way.
        waiting: how many may wait in all.
        patience: how many seconds to wait for a turn.
    """

    def __init__(
        self, at_once: int, each: int = 8, waiting: int = 16, patience: float = 60.0
    ) -> None:
        self.at_once, self.each, self.waiting, self.patience = at_once, each, waiting, patience
        self._changed = threading.Condition()
        self._running: dict[str, int] = {}
        self._queues: dict[str, deque[object]] = {}
        self._served: dict[str, int] = {}
        self._numbers = count()

    @contextmanager
    def turn(self, who: str) -> Iterator[None]:
        """A turn, for the length of a block.

        Raises:
            Refused: too many are waiting, of this person or of all.
        """
        with self._changed:
            self._wait(who)
            self._running[who] = self._running.get(who, 0) + 1
            self._served[who] = next(self._numbers)
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._running[who] -= 1
                if not self._running[who]:
                    del self._running[who]
                self._forget(who)
                self._changed.notify_all()

    def _wait(self, who: str) -> None:
        queue, ticket = self._queues.setdefault(who, deque()), object()
        try:
            if len(queue) + self._running.get(who, 0) >= self.each:
                words = f"{self.each} of your requests are under way"
                raise RequestRefused(429, words, hint="wait for one of them")
            if sum(map(len, self._queues.values())) >= self.waiting + self._free():
                raise RequestRefused(429, BUSY_MESSAGE)
            queue.append(ticket)
            try:
                if not self._changed.wait_for(lambda: self._next() is ticket, self.patience):
                    raise RequestRefused(429, BUSY_MESSAGE)
            finally:
                queue.remove(ticket)
        finally:
            if not queue:
                del self._queues[who]
            self._forget(who)

    def _free(self) -> int:
        return self.at_once - sum(self._running.values())

    def _next(self) -> object:
        """The ticket whose turn it is, if there is room."""
        if self._free() <= 0:
            return None
        most = max(1, self.at_once - 1)
        asking = [
            who for who, queue in self._queues.items() if queue and self._running.get(who, 0) < most
        ]
        if not asking:
            return None
        first = min(asking, key=lambda who: (self._running.get(who, 0), self._served.get(who, -1)))
        return self._queues[first][0]

    def _forget(self, who: str) -> None:
        """Keep nothing about people who ask for nothing, once there are many."""
        if len(self._served) > 1000 and who not in self._running and who not in self._queues:
            self._served.pop(who, None)


# Where requests are worked on: each in a process of its own, with a deadline and a memory limit.
# The process that listens computes nothing exact, reads no table and waits for no ledger. Tasks do
# all that. A task is the function of a route (`quick_route`, `scan_route`), which is given the
# settings, the visitor and the body and answers with a model, a text or bytes. Quick tasks (plans,
# costs, levels, listings, reading files) have some seconds. Releases scan tables and have minutes;
# their cost is estimated as a quick task first, so that only a scan can take long. Each has its own
# turns, and everyone a fair share.


QUICK_LIMITS = TaskLimits(30.0, 1 << 30, "the command takes more than the page", processor=8.0)
MAX_SCANS = 2
FROM_SERVER: dict[str, Callable[[Request], Any]] = {
    "settings": server_settings,
    "visitor": request_visitor,
}
Task = TypeVar("Task", bound=Callable[..., Any])
WORKER_MODULES = {
    "web": ("whosin.app.web.server", "flint", "whosin.report.html"),
    "charts": ("altair", "vl_convert"),
    "release": ("ibis.backends.duckdb", "pyarrow.dataset", "pyarrow.csv"),
    "distortion": ("highspy",),
    "gwas": ("whosin.report.gwas", "whosin.report.study_forecasts"),
}
"""The modules that are imported before tasks begin, by extra. Not opendp: it starts threads, and a
process with threads cannot fork safely."""

SHARED_POOL = WorkerPool(
    [each for extra in WORKER_MODULES if is_installed(extra) for each in WORKER_MODULES[extra]]
)
"""One for all servers of this process: a task carries its settings."""


class TaskQueue:
    """The tasks of one server, quick ones and scans, each kind with its own turns."""

    def __init__(self, settings: Settings, pool: WorkerPool = SHARED_POOL) -> None:
        self.pool = pool
        self.quick_turns = FairQueue(max(3, min(8, os.cpu_count() or 2)))
        self.scan_turns = FairQueue(MAX_SCANS)
        hint = "whoever runs the server can allow more"
        self.scan_limits = TaskLimits(settings.scan_seconds, settings.scan_memory, hint)

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
        return self._done(QUICK_LIMITS, task, given)

    def _done(self, limits: TaskLimits, task: Callable[..., Any], given: Any) -> Any:
        kind, *answer = self.pool.run(
            perform_task, task.__module__, task.__qualname__, given, limits=limits
        )
        if kind == "refused":
            raise RequestRefused(*answer)
        return answer[0]


def run_quick(request: Request, task: Callable[..., Any], *given: Any) -> Any:
    return server_work(request).quick(request_person(request), task, *given)


def run_scan(request: Request, task: Callable[..., Any], *given: Any) -> Any:
    return server_work(request).scan(request_person(request), task, *given)


def quick_route(task: Task) -> Task:
    """A route whose function is a quick task, done in a process of its own.

    The settings and the visitor come from the server where the task takes them, and the other
    parameters from the request.
    """
    return _make_route(task, run_quick)


def scan_route(task: Task) -> Task:
    """The same for a task that scans a table."""
    return _make_route(task, run_scan)


def text_route(media: str, work_on: Callable[..., Any]) -> Callable[[Task], Task]:
    """The same for a task (`run_quick` or `run_scan`) that answers with the text of a file."""
    return lambda task: _make_route(task, work_on, media)


def file_response(media: str) -> dict[str, Any]:
    """The description of a route whose answer is a file, and whose refusals are JSON."""
    return {"response_class": Response, "responses": {200: {"content": {media: {}}}}}


def _make_route(task: Task, work_on: Callable[..., Any], media: str | None = None) -> Task:
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


def request_person(request: Request) -> str:
    """Whose turn a request takes: a user's, or an address's where nobody has a name."""
    user = getattr(request.state, "user", None)
    return f"user {user}" if user else f"address {request.client.host if request.client else ''}"


def perform_task(module: str, name: str, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Do a task, in its process."""
    try:
        answer = unwrap(getattr(import_module(module), name))(*given)
    except RequestRefused as refused:
        return "refused", refused.status, refused.args[0], refused.field, refused.hint
    return "answer", answer.model_dump() if isinstance(answer, BaseModel) else answer


def server_work(request: Request) -> TaskQueue:
    work: TaskQueue = request.app.state.work
    return work
