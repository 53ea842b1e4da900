"""How a server treats connections: no silent one stays, and there are never too many.

Contract: a connection that has not sent a whole request, headers and body, within some seconds is
closed, whether it is new or kept. A connection that does not take its answer is closed too. When
there are many, the one that has been silent for longest makes room, so that idle ones cannot keep
others out. Small answers are sent at once (TCP_NODELAY: listening sockets made by Python are not
seen as TCP by asyncio, which would otherwise set it).
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import time

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
BODY_SECONDS = 20.0
"""Seconds without a byte of the body. A body has a minute, and one more for each megabyte."""
KEPT_SECONDS = 15
UNREAD_SECONDS = 60.0
SLOWEST = 1 << 14
"""Bytes a second, after the first minute."""
LARGEST_HEADER = 1 << 15


def most_connections() -> int:
    """How many are open at once: at most half of what the system allows this process."""
    return max(32, min(512, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))


class Connection(H11Protocol):
    """One connection, as uvicorn handles it, with an eye on the clock."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room for it, and expect a request soon."""
        super().connection_made(transport)
        self.heard = self.began = time.monotonic()
        self.taken = 0
        self.unsent = (0, self.heard)
        peer = transport.get_extra_info("socket")
        if peer is not None and peer.family in (socket.AF_INET, socket.AF_INET6):
            with contextlib.suppress(OSError):
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > most_connections():
            idle = [each for each in self.connections if each is not self and _idle(each)]
            if idle:
                min(idle, key=_last_heard).transport.abort()
            else:
                transport.abort()
        self.watch: asyncio.TimerHandle | None = self.loop.call_later(1.0, self._look)

    def data_received(self, data: bytes) -> None:
        """As uvicorn does, and take note."""
        if not self.taken:  # a new request begins, and more bytes do not put its end off
            self.began = time.monotonic()
        self.heard, self.taken = time.monotonic(), self.taken + len(data)
        super().data_received(data)

    def on_response_complete(self) -> None:
        """A kept connection begins anew."""
        self.heard = self.began = time.monotonic()
        self.taken = 0
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking."""
        if self.watch is not None:
            self.watch.cancel()
            self.watch = None
        super().connection_lost(exc)

    def _look(self) -> None:
        now = time.monotonic()
        if self._unread(now) or (not self.transport.is_closing() and self._late(now)):
            self.transport.abort()
        else:
            self.watch = self.loop.call_later(1.0, self._look)

    def _unread(self, now: float) -> bool:
        """Whether the other side does not take what it asked for."""
        size = self.transport.get_write_buffer_size()
        if not size or size != self.unsent[0]:
            self.unsent = (size, now)
        return now - self.unsent[1] > UNREAD_SECONDS

    def _late(self, now: float) -> bool:
        if self.cycle is None or self.cycle.response_complete:
            kept = self.cycle is not None and not self.taken
            return now - self.began > (KEPT_SECONDS + 1 if kept else HEADER_SECONDS)
        if self.cycle.more_body and not self.flow.read_paused:
            slow = now - self.began > 60 + self.taken / SLOWEST
            return slow or now - self.heard > BODY_SECONDS
        return False


def _idle(connection: object) -> bool:
    assert isinstance(connection, Connection)
    return connection.cycle is None or connection.cycle.response_complete


def _last_heard(connection: object) -> float:
    assert isinstance(connection, Connection)
    return connection.heard
