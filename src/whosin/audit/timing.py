"""Two worlds whose calls are timed: the time that a call took is a part of its output.

Contract: only where a caller asks. Each draw is a call of its own, and an output becomes a record
of the output and the nanoseconds until the call returned, so that every ordering sees both. Calls
of both worlds are made in turns, and a coin decides who is first in each turn: a machine that warms
up, slows down or is busy for a while favours neither world. What the caller must ensure is that
one call does not make the next one slower; where nothing depends on the input, coins alone decide
which call is whose, and the test of equal worlds holds on any machine.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from whosin.audit.calling import Call
from whosin.audit.freezing import Record
from whosin.audit.outputs import FORMS, Outputs, of_items
from whosin.audit.sampling import World

clock = time.perf_counter_ns
"""What the time is read from, in nanoseconds."""
TIMED, TIME, OUTPUT = "timed call", "nanoseconds", "output"


@dataclass
class Stopwatch:
    """A function, and how long its last call took."""

    function: Callable[..., Any]
    taken: int = 0

    def __call__(self, *given: Any, **named: Any) -> Any:
        start = clock()
        try:
            return self.function(*given, **named)
        finally:
            self.taken = clock() - start


@dataclass
class TimedWorld:
    """One of two worlds: its calls wait here until they are asked for."""

    world: World
    watch: Stopwatch
    turns: Turns
    waiting: deque[Any] = field(default_factory=deque)
    singly: bool = True
    timed: bool = True

    @property
    def value(self) -> object:
        return self.world.value

    def call(self) -> None:
        """Make one call."""
        output = self.world.once()
        parts = ((TIME, float(self.watch.taken)), (OUTPUT, output))
        self.waiting.append(Record(parts, TIMED))

    def explore(self, size: int) -> Outputs:
        """Outputs that are not counted."""
        return self.draw(size)

    def draw(self, size: int) -> Outputs:
        """Fresh outputs; the other world is called as often."""
        self.turns.take(size - len(self.waiting))
        return of_items([self.waiting.popleft() for _ in range(size)])


@dataclass
class Turns:
    """Calls of both worlds, each turn in an order that a coin decides."""

    rng: np.random.Generator
    worlds: list[TimedWorld] = field(default_factory=list)

    def take(self, count: int) -> None:
        """So many turns, none for a negative number."""
        for first in self.rng.integers(0, 2, max(count, 0)).tolist():
            self.worlds[first].call()
            self.worlds[1 - first].call()


def timed_worlds(
    worlds: tuple[World, World], seed: np.random.SeedSequence
) -> tuple[TimedWorld, TimedWorld]:
    """Both worlds, called in turns."""
    turns = Turns(np.random.default_rng(seed))
    for world in worlds:
        watch = Stopwatch(world.mechanism.function)
        call: Call = replace(world.mechanism, function=watch)
        turns.worlds.append(TimedWorld(replace(world, mechanism=call), watch, turns))
    return turns.worlds[0], turns.worlds[1]


def without_time(outputs: Outputs) -> Outputs:
    """The outputs alone, where calls were timed."""
    items = outputs.values.tolist() if outputs.kind == FORMS else []
    if not items or not all(isinstance(i, Record) and i.name == TIMED for i in items):
        return outputs
    return of_items([dict(item.items)[OUTPUT] for item in items])
