"""Drawing from a mechanism: any callable, read with care.

Contract: a mechanism is `m(input, size, rng)`, which returns `size` independent outputs, or one
draw a call: `m(input, rng)` or `m(input)`. What it raises, and draws that repeat themselves, become
one clear message. What the caller must ensure: draws are independent of each other and of earlier
ones.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.audit.outputs import Outputs, join, read, same_kind
from whosin.errors import InvalidInput, WhosinError

Mechanism = Callable[..., Any]
CHUNK = 250_000
"""Draws asked for in one call at most: a million vectors at once would not fit a small machine."""
TELLING = 20
"""So many draws that differ from the commonest one and come again in order are no accident."""


def one_draw(function: Mechanism) -> Mechanism:
    """A mechanism out of a function that makes one draw a call, `f(input, rng)` or `f(input)`.

    `two_worlds` sees from the signature which kind a function is; say it where that misleads, as
    with further optional parameters.
    """
    takes_rng = _accepts(function, 2)

    def draw(value: object, size: int, rng: np.random.Generator) -> list[Any]:
        if takes_rng:
            return [function(value, rng) for _ in range(size)]
        return [function(value) for _ in range(size)]

    return draw


def _accepts(function: Mechanism, count: int) -> bool:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        return count == 3
    return True


def vectorised(mechanism: object) -> Mechanism:
    """The mechanism as `m(input, size, rng)`."""
    if not callable(mechanism):
        raise InvalidInput("mechanism", "a function m(input, size, rng)", type(mechanism).__name__)
    if _accepts(mechanism, 3):
        return mechanism
    if _accepts(mechanism, 2) or _accepts(mechanism, 1):
        return one_draw(mechanism)
    raise InvalidInput(
        "mechanism", "callable as m(input, size, rng), m(input, rng) or m(input)", _shape(mechanism)
    )


def _shape(mechanism: Any) -> str:
    return (
        f"{getattr(mechanism, '__name__', type(mechanism).__name__)}{inspect.signature(mechanism)}"
    )


@dataclass(frozen=True)
class World:
    """One input of a mechanism, from which samples are drawn."""

    mechanism: Mechanism
    value: object
    name: str
    rng: np.random.Generator

    def draw(self, size: int) -> Outputs:
        """Fresh outputs."""
        return join([self._call(count) for count in chunks(size)])

    def _call(self, count: int) -> Outputs:
        try:
            return read(self.mechanism(self.value, count, self.rng), count)
        except (WhosinError, KeyboardInterrupt, MemoryError):
            raise
        except Exception as error:
            words = " ".join(str(error).split())[:200]
            raise InvalidInput(
                f"mechanism on the input {self.name}",
                "a function that returns an output for every draw (where an observer would see a "
                "failure, catch it and return it as an output)",
                f"{type(error).__name__}: {words}",
            ) from error


def check_fresh(first: Outputs, second: Outputs) -> None:
    """Refuse draws that come again in the same order: the mechanism seeds itself at each call."""
    same_kind(first, second)
    keys = first.keys()[: len(second)].tolist()
    uncommon = len(keys) - Counter(keys).most_common(1)[0][1]
    if uncommon >= TELLING and first.repeats(second):
        accepted = "a function whose draws differ from call to call (use the rng that it is given)"
        raise InvalidInput("mechanism", accepted, f"the same {len(keys)} draws twice")


def is_constant(*parts: Outputs) -> bool:
    """Whether all outputs are one and the same."""
    first = parts[0].keys()[0]
    return all(key == first for part in parts for key in part.keys().tolist())


def chunks(total: int) -> list[int]:
    """`total` draws, in calls of at most `CHUNK`."""
    full, rest = divmod(total, CHUNK)
    return [CHUNK] * full + ([rest] if rest else [])
