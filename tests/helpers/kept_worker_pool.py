"""A worker pool whose process works on many tasks, for tests that send many of them.

As `whosin.isolation.WorkerPool` and `run_isolated`, except that a task does not begin in a process
of its own: to start one and to warm up takes longer than most tasks. Deadlines and limits of memory
hold as there, and a process that crashes or is stopped is followed by another.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any

import chance
from whosin import isolation
from whosin.errors import Crashed
from whosin.isolation import PID_STRUCT, TaskLimits, work_folder

MOST_TASKS = 500
"""Of one process."""
FIRST = 300.0
"""Seconds for a process to begin."""
UNLIMITED = TaskLimits(1e6, 1 << 40)


def serve(address: str) -> None:
    """The task that works on tasks, in a process of the worker pool."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        connection.sendall(PID_STRUCT.pack(os.getpid()))
        while frame := _frame(connection):
            name, call = pickle.loads(frame)
            chance.fresh() if name is None else chance.start(name)
            *_, home, tempfile.tempdir, memory = pickle.loads(call)
            isolation.inherit_memory_limit(memory)
            os.chdir(home)
            connection.sendall(isolation.run_call(call))


def _frame(connection: socket.socket) -> bytes:
    received = bytearray()
    while not isolation.is_complete(received):
        part = connection.recv(1 << 20)
        if not part:
            return b""
        received += part
    return bytes(received[isolation.LENGTH_STRUCT.size :])


def serve_isolated(address: str) -> None:
    """Work on tasks in an interpreter as `run_isolated` starts it, watched by nobody but us."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = isolation.start_interpreter("run_once", theirs)
        call = isolation.pack_call(serve, (address,), tempfile.gettempdir(), UNLIMITED.memory)
        ours.sendall(isolation.LENGTH_STRUCT.pack(len(call)) + call)
        process.wait()


class KeptWorkerPool:
    """Runs one task at a time; safe to use from several threads.

    Args:
        start: has a process serve an address, and waits for its end.
    """

    def __init__(self, start: Callable[[str], object] = serve_isolated) -> None:
        self._begin = start
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None
        self._pid = self._tasks = 0
        self.largest, self.slowest, self.stopped = 0, 0.0, 0
        """Most bytes that a process held, most seconds that a task computed, tasks stopped."""

    def start(self) -> None:
        """Nothing: the process begins with the first task."""

    def close(self) -> None:
        with self._lock:
            self._end()

    def run(self, function: Callable[..., Any], *arguments: Any, limits: TaskLimits) -> Any:
        with work_folder() as folder:
            call = isolation.pack_call(function, arguments, folder, limits.memory)
            with self._lock:
                call = pickle.dumps((chance.name_task(function.__qualname__), call))
                return self._wait(self._worker(), call, limits)

    def _worker(self) -> socket.socket:
        if self._connection is not None and self._tasks < MOST_TASKS:
            return self._connection
        self._end()
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
            address = str(Path(folder, "tasks"))
            listening.bind(address)
            listening.listen()
            listening.settimeout(FIRST)
            threading.Thread(target=self._serve, args=[address], daemon=True).start()
            self._connection, _ = listening.accept()
        (self._pid,) = PID_STRUCT.unpack(self._connection.recv(PID_STRUCT.size))
        self._tasks = 0
        return self._connection

    def _serve(self, address: str) -> None:
        with suppress(Crashed):  # whoever waited for its answer was told
            self._begin(address)

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            self._connection = None

    def _wait(self, connection: socket.socket, call: bytes, allowed: TaskLimits) -> Any:
        self._tasks += 1
        end = time.monotonic() + allowed.seconds
        begun, before = isolation.process_usage(self._pid)
        most = begun + (allowed.processor or inf)
        received = bytearray()
        try:
            connection.sendall(isolation.LENGTH_STRUCT.pack(len(call)) + call)
            while not isolation.is_complete(received):
                computed, held = isolation.process_usage(self._pid)
                if time.monotonic() > end or computed > most:
                    raise allowed.too_long()
                self.largest = max(self.largest, int(held))
                if held - before > allowed.memory:
                    raise allowed.too_large()
                if not select.select([connection], [], [], isolation.MEMORY_POLL_SECONDS)[0]:
                    continue
                part = connection.recv(1 << 20)
                if not part:
                    raise Crashed("the worker process ended without an answer")
                received += part
            self.slowest = max(self.slowest, isolation.process_usage(self._pid)[0] - begun)
        except ConnectionError:
            self._end()
            raise Crashed("the worker process ended without an answer") from None
        except BaseException:
            self.stopped += 1
            self._end()
            raise
        return isolation.read_answer(bytes(received), allowed.too_large)
