"""How long a task may take and how much memory it may hold, and the waiting for its answer."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import psutil

from whosin.errors import Crashed, OutOfMemory, TookTooLong
from whosin.isolation import messages

POLL = 0.025
"""Seconds between two looks at the memory of a process."""


own_memory: int | None = None
"""What this process itself may hold, if it is one that works for another."""


@dataclass(frozen=True)
class Limits:
    """What a task may take.

    Attributes:
        seconds: from its start to its answer.
        memory: bytes, beyond what the process held at its start.
        hint: what a person can do instead, for the messages.
        processor: seconds of computing, so that a busy machine does not stop what is short; the
            others are seconds of the clock.
    """

    seconds: float
    memory: int
    hint: str = ""
    processor: float | None = None

    def inside(self) -> Limits:
        """The same, but within what this process may hold itself."""
        if own_memory is None or own_memory >= self.memory:
            return self
        return replace(self, memory=own_memory)

    def too_long(self) -> TookTooLong:
        """The error at the deadline."""
        most = self.seconds if self.processor is None else self.processor
        return TookTooLong(f"this takes longer than {most:g} seconds{self._hint()}")

    def too_large(self) -> OutOfMemory:
        """The error at the limit of memory."""
        most = f"{self.memory / (1 << 30):.2g} GiB"
        return OutOfMemory(f"this needs more memory than {most}{self._hint()}")

    def _hint(self) -> str:
        return f"; {self.hint}" if self.hint else ""


def wait(connection: socket.socket, pid: int, limits: Limits, stop: Callable[[], None]) -> Any:
    """The answer of a process; however this ends, `stop` has ended the process by then."""
    end = time.monotonic() + limits.seconds
    process = _Watched(pid)
    before = process.held()
    received = bytearray()
    connection.settimeout(POLL)  # not select, which fails where a process has a thousand files open
    try:
        while not messages.complete(received):
            if time.monotonic() > end or process.computed() > (limits.processor or inf):
                raise limits.too_long()
            if process.held() - before > limits.memory:
                raise limits.too_large()
            try:
                part = connection.recv(1 << 20)
            except TimeoutError:
                continue
            if not part:
                raise Crashed("the process that worked on this ended without an answer")
            received += part
            if len(received) > limits.memory:
                raise limits.too_large()
        return messages.answer(bytes(received), limits.too_large)
    except ConnectionError:
        raise Crashed("the process that worked on this ended without an answer") from None
    finally:
        stop()
        connection.close()


class _Watched:
    """What a process takes, in all its threads; nothing if it is gone."""

    def __init__(self, pid: int) -> None:
        self._process: psutil.Process | None = None
        with suppress(psutil.Error, OSError):
            self._process = psutil.Process(pid)

    def computed(self) -> float:
        """Seconds of computing."""
        return self._ask(lambda process: sum(process.cpu_times()[:2]))

    def held(self) -> float:
        """Bytes of memory."""
        return self._ask(lambda process: process.memory_info().rss)

    def _ask(self, question: Callable[[psutil.Process], float]) -> float:
        with suppress(psutil.Error, OSError):
            return question(self._process) if self._process is not None else 0
        return 0
