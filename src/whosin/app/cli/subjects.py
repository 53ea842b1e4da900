"""What `whosin audit` is pointed at: a function of the user's, a channel or mechanism of ours, or
the noise of a plan.

Contract: our own finite mechanisms are sampled row by row and come with their exact level, to
compare with the audit's bound. `named_objects` finds functions.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.app.cli.named_objects import load
from whosin.audit import InputPair
from whosin.calibration import Plan
from whosin.errors import InvalidInput, Unsupported
from whosin.mechanisms import Channel, Mechanism
from whosin.notions import DifferentialPrivacy
from whosin.spaces import Records, Subsets

MOST_PAIRS = 1000


@dataclass(frozen=True)
class Subject:
    """Something to audit.

    Attributes:
        pairs: neighbouring inputs to search, where the subject knows them.
        channel: the exact mechanism, where it is one of ours.
    """

    mechanism: Callable[..., Any]
    name: str
    pairs: tuple[InputPair, ...] = ()
    channel: Channel | None = None

    def exact(self, with_: object, without: object) -> float | None:
        """The exact largest |ln ratio| between two worlds of a channel of ours."""
        if self.channel is None:
            return None
        first, second = (
            self.channel.likelihoods[self.channel.index(world)] for world in (with_, without)
        )
        some = (first > 0) | (second > 0)
        with np.errstate(divide="ignore"):
            return float(np.abs(np.log(first[some]) - np.log(second[some])).max())

    def level(self) -> float | None:
        """The exact ε over all neighbouring worlds."""
        if self.channel is None:
            return None
        relation = "replace" if isinstance(self.channel.space, Records) else "add-remove"
        return float(DifferentialPrivacy(relation).measure(self.channel).value)


def subject(target: str, entities: int | None, loaded: Any = None) -> Subject:
    """Read `module:function`, `path/file.py:function` or a channel file.

    Args:
        loaded: what the target names, where it was loaded before.
    """
    if target.endswith(".json"):
        if entities is not None:
            raise InvalidInput("--entities", "left out with a channel file", entities)
        return of_channel(Channel.load(target), target)
    result = load(target) if loaded is None else loaded
    if isinstance(result, Mechanism):
        space = None if entities is None else Subsets(entities)
        if space is None and not isinstance(result, Channel):
            raise InvalidInput("--entities", "given for a mechanism of whosin", "nothing")
        return of_channel(result.channel(space), target)
    if entities is not None:
        raise InvalidInput("--entities", "left out with a function", entities)
    if not callable(result):
        accepted = "a function m(input, size, rng), or a mechanism of whosin"
        raise InvalidInput(target, accepted, type(result).__name__)
    return Subject(result, target)


def of_channel(channel: Channel, name: str) -> Subject:
    """A finite mechanism as a sampler, with all its pairs of neighbours."""
    if channel.is_density:
        raise Unsupported(
            f"{name} has no finite table to draw from; write a function that draws its noise"
        )
    draw = channel.sampler([str(output) for output in channel.outputs])
    return Subject(draw, name, tuple(_neighbours(channel)), channel.on_worlds())


def _neighbours(channel: Channel) -> list[InputPair]:
    space = channel.space
    result: list[InputPair] = []
    for number in range(space.worlds):
        if len(result) > MOST_PAIRS:
            return []  # too many to try all: the user names a pair
        if isinstance(space, Subsets):
            for index, who in enumerate(space.entities):
                if number >> index & 1:
                    other = number ^ (1 << index)
                    result.append(
                        InputPair(f"{who} in or out", space.world(number), space.world(other))
                    )
        else:
            world = space.world(number)
            for row in range(space.rows):
                for value in range(world[row]):
                    changed = (*world[:row], value, *world[row + 1 :])
                    result.append(InputPair(f"row {row}", world, changed))
    return result


def of_plan(plan: Plan) -> Subject:
    """The noise that a plan asks for, by the sampler that releases use."""
    from whosin import noise

    if plan.noise is None or plan.query is None or plan.noise.kind not in ("laplace", "gaussian"):
        got = "none" if plan.noise is None else plan.noise.kind
        raise InvalidInput("noise of the plan", "laplace or gaussian, or a function to audit", got)
    kind, scale = plan.noise.kind, plan.noise.scale
    sampler = noise.discrete_laplace if kind == "laplace" else noise.discrete_gaussian
    reach = math.ceil(plan.query.sensitivity(plan.relation))

    def draw(answer: object, size: int, _rng: np.random.Generator) -> Any:
        assert isinstance(answer, int)
        return answer + sampler(scale, size)

    pair = InputPair("one person more", reach, 0)
    return Subject(draw, f"the plan's own noise (discrete {kind}, scale {scale:.4g})", (pair,))


def value(text: str, field: str) -> object:
    """An input from the command line: a number, a list (as an array), a word, a literal."""
    try:
        read = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        if text.isidentifier():
            return text
        accepted = "a number, a list such as [0, 1, 1], or a word"
        raise InvalidInput(field, accepted, repr(text)) from None
    if isinstance(read, list) and read and all(isinstance(each, int | float) for each in read):
        return np.array(read)
    return read
