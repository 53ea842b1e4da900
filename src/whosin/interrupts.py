"""Waiting for a scan, or another library's long work, so that Ctrl-C always stops it.

DuckDB looks for Ctrl-C by itself while it runs in the main thread, and misses about every third;
PySpark cannot cancel a job from the thread that is talking to Spark, and HiGHS cannot cancel a
program. So this work runs in a thread of its own. Ctrl-C is noted, not raised where it comes: an
exception in the middle of Python's garbage collection is lost.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from typing import Any

INTERRUPT_POLL_SECONDS = 0.2
"""Seconds between two looks at how far the work is."""


def run_interruptibly(
    work: Callable[[], Any],
    stop: Callable[[], object],
    meanwhile: Callable[[], object] = lambda: None,
    patience: float | None = None,
) -> Any:
    """What `work` returns or raises.

    Args:
        stop: makes the work end early, after Ctrl-C.
        meanwhile: called every now and then.
        patience: seconds to wait, after Ctrl-C, for the work to end; by default as long as it
            takes. A second Ctrl-C ends the waiting.
    """
    done: Future[Any] = Future()

    def scan() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    with _noted() as interrupted:
        thread = threading.Thread(target=scan, name="whosin-scan", daemon=True)
        thread.start()
        while not wait([done], INTERRUPT_POLL_SECONDS).done and not interrupted.is_set():
            meanwhile()
        if interrupted.is_set():
            with contextlib.suppress(Exception):
                stop()
            wait([done], patience)
            raise KeyboardInterrupt
    thread.join()
    return done.result()


@contextlib.contextmanager
def _noted() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; a second one is heard as before. Where signals do not
    come (other threads) or are ignored, nothing changes."""
    noted = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or before in (signal.SIG_IGN, None):
        yield noted
        return

    def note(number: int, frame: Any) -> None:
        noted.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
