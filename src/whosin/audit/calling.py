"""How a mechanism wants to be called, read from its signature.

Contract: `m(input, size, rng)` returns `size` independent outputs; `m(input, rng)` and `m(input)`
make one draw per call. A parameter with a default is the mechanism's own affair
(`m(x, epsilon=1.0)` keeps its ε), unless it is called `size` or `rng`, which are then given by
name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.errors import InvalidInput

Mechanism = Callable[..., Any]
SIZE, RNG = "size", "rng"


@dataclass(frozen=True)
class Call:
    """One way to call a mechanism: what follows the input, by position and by name."""

    function: Mechanism
    positional: tuple[str, ...] = ()
    named: tuple[str, ...] = ()

    @property
    def many(self) -> bool:
        """Whether one call makes as many draws as it is asked for."""
        return SIZE in self.positional or SIZE in self.named

    def __call__(self, value: object, size: int, rng: np.random.Generator) -> Any:
        given: dict[str, object] = {SIZE: size, RNG: rng}
        rest = [given[name] for name in self.positional]
        return self.function(value, *rest, **{name: given[name] for name in self.named})


def read_call(mechanism: object, *, one_draw: bool = False) -> Call:
    """The way in which a mechanism is to be called.

    Args:
        one_draw: it makes one draw per call, whatever its signature looks like.
    """
    if not callable(mechanism):
        raise InvalidInput("mechanism", "a function m(input, size, rng)", type(mechanism).__name__)
    try:
        parameters = list(inspect.signature(mechanism).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        return Call(mechanism) if one_draw else Call(mechanism, (SIZE, RNG))
    places = [each for each in parameters if each.kind in _BY_POSITION]
    needed = sum(each.default is each.empty for each in places)
    if any(each.kind is each.VAR_POSITIONAL for each in parameters) and needed <= 1:
        needed = 2 if one_draw and needed else 1 if one_draw else 3
    unknown = [e for e in parameters if e.kind is e.KEYWORD_ONLY and e.default is e.empty]
    if not 1 <= needed <= 3 or any(each.name not in (SIZE, RNG) for each in unknown):
        raise _refused(mechanism)
    positional = {1: (), 2: (RNG,), 3: (SIZE, RNG)}[needed]
    if needed == 2 and places[1].name == SIZE:
        positional = (SIZE,)
    if one_draw and len(positional) == 2:
        raise _refused(mechanism)
    others = [
        each.name for each in parameters if each.kind in _BY_NAME and each not in places[:needed]
    ]
    allowed = (RNG,) if one_draw else (SIZE, RNG)
    named = tuple(name for name in allowed if name in others and name not in positional)
    return Call(mechanism, positional, named)


_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _refused(mechanism: Any) -> InvalidInput:
    name = getattr(mechanism, "__name__", type(mechanism).__name__)
    accepted = "callable as m(input, size, rng), m(input, rng) or m(input)"
    return InvalidInput("mechanism", accepted, f"{name}{inspect.signature(mechanism)}")
