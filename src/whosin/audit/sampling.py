"""Drawing from a mechanism: any callable, read with care.

Contract: each draw is frozen as soon as it is made. An exception that a draw raises is its output:
an observer would see it. Only these are never outputs, since they show a broken program: wrong
calls and names (`TypeError`, `NameError`, `AttributeError`, `ImportError`, `NotImplementedError`),
exhausted memory or recursion; they are refused by name. `sys.exit` is a failing environment. A call
for many draws that raises cannot say which draw did: if that happens in the search, every draw is
made by a call of its own from then on; if it happens first in the count, the audit is
refused, for a sample that leaves out what raised would be biased. What the caller must ensure:
draws are independent of each other and of earlier ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from whosin.audit.calling import Call, Mechanism, read_call
from whosin.audit.freezing import Raised, freeze
from whosin.audit.outputs import FORMS, Outputs, alike, join, of_items, read
from whosin.errors import InvalidInput, MechanismFailed, WhosinError

CHUNK = 250_000
"""Draws asked for in one call at most: a million vectors at once would not fit a small machine."""
TELLING = 20
"""This many draws that differ from the commonest one and repeat in order are no accident."""
FEW_DRAWS = 64
"""Draws that mostly show already that outputs differ."""
BROKEN = (
    TypeError,
    NameError,
    AttributeError,
    ImportError,
    NotImplementedError,
    RecursionError,
    MemoryError,
)
"""Exceptions that tell of a broken program, and are never outputs."""


def one_draw(function: Mechanism) -> Mechanism:
    """A mechanism from a function that makes one draw per call, `f(input, rng)` or `f(input)`.

    `two_worlds` sees from the signature which kind a function is; say it where that misleads.
    """
    return read_call(function, one_draw=True)


def vectorised(mechanism: object) -> Call:
    """The mechanism, and how to call it."""
    return mechanism if isinstance(mechanism, Call) else read_call(mechanism)


@dataclass
class World:
    """One input of a mechanism, from which samples are drawn.

    Attributes:
        singly: whether each draw takes a call of its own.
        timed: whether the time of a call is a part of its output (`timing`).
    """

    mechanism: Call
    value: object
    name: str
    rng: np.random.Generator
    singly: bool = field(init=False)
    timed: bool = False

    def __post_init__(self) -> None:
        self.singly = not self.mechanism.many

    def explore(self, size: int) -> Outputs:
        """Outputs that are not counted: a call that raises is made again, draw by draw."""
        if not self.singly:
            try:
                return self._many(size)
            except _Failed:
                self.singly = True
        return self._one_by_one(size)

    def draw(self, size: int) -> Outputs:
        """Fresh outputs to count."""
        if self.singly:
            return self._one_by_one(size)
        try:
            return self._many(size)
        except _Failed as failure:
            accepted = (
                "a function whose exceptions show in the search (take more samples, or write it "
                "with one draw a call, m(input, rng), where an exception is an output)"
            )
            raise self._wrong(failure.error, accepted) from failure.error

    def _many(self, size: int) -> Outputs:
        return join([self._read(count) for count in chunks(size)])

    def _read(self, count: int) -> Outputs:
        result: Outputs = self._call(count, lambda raw: read(raw, count))
        return result

    def _one_by_one(self, size: int) -> Outputs:
        return of_items([self.once() for _ in range(size)])

    def once(self) -> Any:
        """The frozen output of one call for one draw."""
        try:
            return self._call(1, _only if self.mechanism.many else freeze)
        except _Failed as failure:
            return Raised.of(failure.error)

    def _call(self, size: int, receive: Callable[[Any], Any]) -> Any:
        """What the mechanism returned, received at once: an iterator may raise later."""
        try:
            return receive(self.mechanism(self.value, size, self.rng))
        except (WhosinError, KeyboardInterrupt):
            raise
        except BROKEN as error:
            raise self._wrong(error) from error
        except Exception as error:
            raise _Failed(error) from error
        except SystemExit as error:
            words = f"the mechanism ended the program (sys.exit({error.code!r})) on the input "
            raise MechanismFailed(words + self.name) from error

    def _wrong(self, error: BaseException, accepted: str | None = None) -> InvalidInput:
        usual = (
            "a function that returns an output for every draw (where an observer would see a "
            "failure, catch it and return it as an output)"
        )
        words = " ".join(str(error).split())[:200]
        got = f"{type(error).__name__}: {words}"
        return InvalidInput(f"mechanism on the input {self.name}", accepted or usual, got)


def _only(raw: Any) -> Any:
    """The one output of a call for one."""
    return read(raw, 1).as_forms().values[0]


class _Failed(Exception):
    """A call raised; `error` is what."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def raised(outputs: Outputs) -> Counter[str]:
    """How many draws raised, by the kind of exception."""
    if outputs.kind != FORMS:
        return Counter()
    return Counter(each.name for each in outputs.values.tolist() if isinstance(each, Raised))


def check_fresh(first: Outputs, second: Outputs) -> None:
    """Refuse draws that come again in the same order: the mechanism seeds itself at each call."""
    if first.kind != second.kind or not first.repeats(second):
        return
    keys = first.keys()[: len(second)].tolist()
    if len(keys) - Counter(keys).most_common(1)[0][1] >= TELLING:
        accepted = "a function whose draws differ from call to call (use the rng that it is given)"
        raise InvalidInput("mechanism", accepted, f"the same {len(keys)} draws twice")


def is_constant(*parts: Outputs) -> bool:
    """Whether all outputs are one and the same."""
    same = alike(parts)
    first = same[0].keys()[0]
    return all(
        key == first
        for some in (FEW_DRAWS, None)
        for part in same
        for key in Outputs(part.kind, part.values[:some]).keys().tolist()
    )


def chunks(total: int) -> list[int]:
    """`total` draws, in calls of at most `CHUNK`."""
    full, rest = divmod(total, CHUNK)
    return [CHUNK] * full + ([rest] if rest else [])
