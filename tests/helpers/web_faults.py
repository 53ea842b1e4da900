"""Faults in the processes that work for a server."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import chance
from whosin.app.web.tasks import SHARED_POOL
from whosin.isolation import TaskLimits, WorkerPool
from whosin.release import DuckDB


def with_fault(patch: pytest.MonkeyPatch, fault: Callable[..., None], *given: object) -> None:
    """From now on every task of this process's servers has a fault: a function of this module,
    in a process of its own."""

    def faulty(function: Callable[..., Any], *arguments: Any, limits: TaskLimits) -> Any:
        task = (function.__module__, function.__qualname__, arguments)
        start = chance.name_task(function.__qualname__)
        given_task = (_perform, start, fault.__name__, given, *task)
        return WorkerPool.run(SHARED_POOL, *given_task, limits=limits)

    patch.setattr(SHARED_POOL, "run", faulty)


def _perform(
    start: str | None, fault: str, given: Any, module: str, name: str, arguments: Any
) -> Any:
    if start is not None:
        chance.start(start)
    globals()[fault](*given)
    return getattr(import_module(module), name)(*arguments)


def _instead(fault: Callable[..., object]) -> None:
    """Scan in another way for an answer; a fingerprint, which comes before the debit, reports to
    nobody how far it is."""
    run = DuckDB.run

    def scan(self: DuckDB, expression: Any, *progress: Any) -> object:
        if not progress:
            return run(self, expression)
        return fault(lambda: run(self, expression, *progress))

    DuckDB.run = scan  # type: ignore[method-assign, assignment]


def failing_system(number: int, words: str) -> None:
    """The system fails before anything is done."""
    raise OSError(number, words, words)


def failing_scan(words: str) -> None:
    def fail(_: Callable[[], object]) -> object:
        raise RuntimeError(words)

    _instead(fail)


def second_scan_failing(mark: str) -> None:
    """Once: the mark says that it happened."""
    calls = iter(range(100))

    def fail(scan: Callable[[], object]) -> object:
        if next(calls) == 1 and not Path(mark).exists():
            Path(mark).touch()
            raise RuntimeError("while the table is counted")
        return scan()

    _instead(fail)


def crashing_scan() -> None:
    _instead(lambda _: os._exit(9))


def waiting_scan(folder: str) -> None:
    """A scan that says when it begins, by a file `scanning`, and waits for a file `go-on`."""

    def slow(scan: Callable[[], object]) -> object:
        Path(folder, "scanning").touch()
        appears(Path(folder, "go-on"))
        return scan()

    _instead(slow)


def crashing_study() -> None:
    """The process dies between the debit of a study and its noise."""
    from whosin.gwas import release

    release.draw_answer = lambda *_: os._exit(9)


def failing_plan(words: str) -> None:
    from whosin.app.web import analysis_routes

    def fail(*_: object) -> object:
        raise ValueError(words)

    analysis_routes.make_page_plan = fail  # type: ignore[assignment,attr-defined]


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and theirs."""
    own: list[int] = []
    with suppress(OSError):  # it may end meanwhile
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            own += map(int, file.read_text().split())
    return [*own, *(each for child in own for each in descendants(child))]


def appears(file: Path, seconds: float = 300) -> bool:
    """Wait for a file."""
    end = time.monotonic() + seconds
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.02)
    return file.exists()
