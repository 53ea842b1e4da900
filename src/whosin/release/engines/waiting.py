"""Waiting for a scan so that Ctrl-C always stops it.

DuckDB looks for Ctrl-C by itself while it runs in the main thread, and misses about every third;
PySpark cannot cancel a job from the thread that is talking to Spark. So scans run in a thread of
their own, while the caller's waits where Python hears signals.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from whosin.release.engines.base import POLL


def run_interruptibly(
    work: Callable[[], Any],
    stop: Callable[[], object],
    meanwhile: Callable[[], object] = lambda: None,
    patience: float | None = None,
) -> Any:
    """What `work` returns or raises.

    Args:
        stop: makes the work end early, after an interruption.
        meanwhile: called every now and then.
        patience: seconds to wait, after an interruption, for the work to end; by default as long
            as it takes.
    """
    found: list[Any] = []
    failed: list[BaseException] = []
    done = threading.Event()

    def scan() -> None:
        try:
            found.append(work())
        except BaseException as error:
            failed.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=scan, name="whosin-scan", daemon=True)
    thread.start()
    try:
        while not done.wait(POLL):
            meanwhile()
    except BaseException:
        with contextlib.suppress(Exception):
            stop()
        done.wait(patience)
        raise
    thread.join()
    if failed:
        raise failed[0]
    return found[0]
