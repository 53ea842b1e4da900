"""Turns: a limited number at a time, and fairly between people.

Contract: whoever has the fewest tasks running goes first, and among those whoever was served
longest ago, so that one person's many requests do not hold up another's one. Where there are
several turns, one person never has all of them: the last is kept for somebody else. Everyone may
have a number of requests under way, and all together a number waiting; beyond that, and after
waiting for long, a request is refused at once.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from whosin.app.web.failures import Refused

BUSY = "the server is busy; try again in a moment"


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
                words = f"{self.each} of your requests are under way; wait for one of them"
                raise Refused(429, words)
            if sum(map(len, self._queues.values())) >= self.waiting + self._free():
                raise Refused(429, BUSY)
            queue.append(ticket)
            try:
                if not self._changed.wait_for(lambda: self._next() is ticket, self.patience):
                    raise Refused(429, BUSY)
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
