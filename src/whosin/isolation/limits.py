"""How long a task may take and how much memory it may hold, and the waiting for its answer."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Any

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
        memory: bytes, beyond what the process held at its start. Where the system does not say
            how much a process holds (only Linux does), it is not watched.
        hint: what a person can do instead, for the messages.
        processor: seconds of computing, so that a busy machine does not stop what is short; the
            others are seconds of the clock. Watched as memory is.
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
    before = _held(pid)
    received = bytearray()
    try:
        while not messages.complete(received):
            if time.monotonic() > end or _computed(pid) > (limits.processor or inf):
                raise limits.too_long()
            if _held(pid) - before > limits.memory:
                raise limits.too_large()
            if not select.select([connection], [], [], POLL)[0]:
                continue
            part = connection.recv(1 << 20)
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


def _computed(pid: int) -> float:
    """Seconds that a process has computed, in all its threads, or 0 if nobody knows."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            user, system = file.read().rpartition(b")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0


def _held(pid: int) -> int:
    """Bytes of memory that a process holds, or 0 if nobody knows."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
