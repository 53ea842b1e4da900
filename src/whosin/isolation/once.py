"""A new interpreter for one task."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from whosin.isolation import messages
from whosin.isolation.limits import Limits, wait

QUIET = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "PYTHONWARNINGS": "ignore",
}
"""A process that forks must have one thread, and one that is watched should hold little."""


def run(function: Callable[..., Any], *arguments: Any, limits: Limits) -> Any:
    """What a function of a module answers, from a process of its own.

    Raises:
        TookTooLong, OutOfMemory, Crashed: the process was stopped, or ended by itself.
        WhosinError, OSError: what the function raised.
    """
    limits = limits.inside()
    ours, theirs = socket.socketpair()
    with work_folder() as folder:
        with theirs:
            process = start("once", theirs)

        def stop() -> None:
            process.kill()
            process.wait()

        call = messages.task(function, arguments, folder, limits.memory)
        with contextlib.suppress(ConnectionError):  # it ended already; the waiting says so
            ours.sendall(messages.LENGTH.pack(len(call)) + call)
        return wait(ours, process.pid, limits, stop)


def work_folder() -> tempfile.TemporaryDirectory[str]:
    """Where a process keeps temporary files; it goes with the task."""
    return tempfile.TemporaryDirectory(prefix="whosin-work-", ignore_cleanup_errors=True)


def start(role: str, theirs: socket.socket, *more: object) -> subprocess.Popen[bytes]:
    """An interpreter with our path that plays a role of `child`."""
    descriptor = theirs.fileno()
    code = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        f"from whosin.isolation import child; child.{role}({descriptor}, *{list(more)!r})"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code],
        pass_fds=[descriptor],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=os.environ | QUIET,
    )
