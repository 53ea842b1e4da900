"""A process that has imported everything, and forks itself for each task.

Contract: each task has a process of its own, made in some milliseconds, and nothing of it is left
when it is over, neither memory nor temporary files. The nursery has one thread, so that forking is
safe, and ends, with all that it forked, when this process ends. It is started again if it is gone.
"""

from __future__ import annotations

import atexit
import contextlib
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from whosin.errors import Crashed
from whosin.isolation import messages
from whosin.isolation.child import JOB, KILL, PID, START
from whosin.isolation.limits import Limits, wait
from whosin.isolation.once import start, work_folder

FIRST = 60.0
"""Seconds for the nursery to import its modules."""


class Nursery:
    """Runs tasks in processes of their own; safe to use from several threads.

    Args:
        modules: what to import beforehand.
    """

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = list(modules)
        self._lock, self._numbers = threading.Lock(), count(1)
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def start(self) -> None:
        """Start it, without waiting until it is ready."""
        with self._lock:
            self._ready()

    def close(self) -> None:
        """End it and all that it works on."""
        with self._lock:
            if self._control is not None:
                self._control.close()
            if self._process is not None:
                self._process.kill()
                self._process.wait()
            self._control = self._process = None

    def run(self, function: Callable[..., Any], *arguments: Any, limits: Limits) -> Any:
        """As `isolation.run`, at once."""
        with work_folder() as folder:
            call = messages.task(function, arguments, folder, limits.memory)
            try:
                connection, number = self._begin()
            except OSError:  # no file left to open, or the nursery has just ended
                raise Crashed("no process could be started for this") from None
            try:
                connection.settimeout(FIRST)
                pid = PID.unpack(_exactly(connection, PID.size))[0]
                connection.settimeout(limits.seconds)
                connection.sendall(messages.LENGTH.pack(len(call)) + call)
                connection.settimeout(None)
            except (OSError, Crashed):
                connection.close()
                self._stop(number)
                raise Crashed("no process could be started for this") from None
            return wait(connection, pid, limits, lambda: self._stop(number))

    def _ready(self) -> socket.socket:
        if self._process is None or self._process.poll() is not None or self._control is None:
            if self._control is not None:
                self._control.close()
            ours, theirs = socket.socketpair()
            with theirs:
                self._process = start("nursery", theirs, self._modules)
            self._control = ours
        return self._control

    def _begin(self) -> tuple[socket.socket, int]:
        ours, theirs = socket.socketpair()
        number = next(self._numbers)
        try:
            with theirs, self._lock:
                socket.send_fds(self._ready(), [JOB.pack(START, number)], [theirs.fileno()])
        except OSError:
            ours.close()
            raise
        return ours, number

    def _stop(self, number: int) -> None:
        with self._lock:
            if self._control is not None:
                with contextlib.suppress(OSError):  # it is gone, and with it all that it forked
                    self._control.sendall(JOB.pack(KILL, number))


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise Crashed("no process could be started for this")
        data += part
    return data
