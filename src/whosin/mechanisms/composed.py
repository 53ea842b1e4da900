"""Several answers about the same data, seen together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np

from whosin.errors import InvalidInput, Unsupported
from whosin.exact import Array, precisely
from whosin.mechanisms.base import Mechanism, as_channel
from whosin.mechanisms.channel import Channel, same_lattice
from whosin.mechanisms.entries import Balls, Entries, Exponents, Rationals
from whosin.mechanisms.noise import Axis
from whosin.spaces import Space
from whosin.spaces.memory import require_table
from whosin.spaces.width import is_narrow, widened


@dataclass(frozen=True)
class Composed(Mechanism):
    """The joint channel of mechanisms run with independent randomness; outputs are tuples.

    Levels under most families do not follow from the parts' levels: measure this.
    """

    parts: Sequence[Mechanism]

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidInput("parts", "at least one mechanism", "none")

    def channel(self, space: Space | None = None) -> Channel:
        channels = same_lattice([as_channel(part, space) for part in self.parts])
        first = channels[0]
        sizes = [len(channel.outputs) for channel in channels]
        require_table("the joint channel", len(first.likelihoods), prod(sizes))
        outputs = list(product(*(channel.outputs for channel in channels)))
        floats = _joint([channel.likelihoods for channel in channels])
        exacts = [channel.exact for channel in channels]
        known = [exact for exact in exacts if exact is not None]
        exact = _joint(known) if len(known) == len(exacts) else None
        if not any(channel.is_density for channel in channels):
            table = floats if exact is None else exact
            return Channel(first.space, table, outputs, lattice=first.lattice)
        possible = _joint([channel.likelihoods > 0 for channel in channels])
        if is_narrow(floats) or (possible & (floats == 0)).any():
            floats = _joint([widened(channel.likelihoods) for channel in channels])
            if (possible & (floats == 0)).any():
                raise Unsupported("the joint densities are below the smallest number there is")
        return Channel.from_densities(
            first.space,
            first.lattice,
            floats,
            outputs,
            _entries([channel.entries for channel in channels], sizes, exact),
            _axes(channels),
        )


def _axes(channels: Sequence[Channel]) -> list[Axis | int] | None:
    """The coordinates of the joint output, where those of all parts are known."""
    result: list[Axis | int] = []
    for channel in channels:
        if channel.is_density and channel.axes is None:
            return None
        result.extend(channel.axes or (len(channel.outputs),))
    return result


def _entries(parts: Sequence[Entries], sizes: Sequence[int], exact: Array | None) -> Entries:
    """The entries of a joint density: products of the parts', exponents where all have one."""
    if exact is not None:
        return Rationals(exact)
    powers = [part.exponent for part in parts if isinstance(part, Exponents)]

    def exponent(world: int, output: int) -> Fraction:
        indices = map(int, np.unravel_index(output, sizes))
        return sum(
            (power(world, at) for power, at in zip(powers, indices, strict=True)), Fraction()
        )

    def ball(world: int, output: int) -> Any:
        indices = map(int, np.unravel_index(output, sizes))
        with precisely():
            return prod(part.at(world, index) for part, index in zip(parts, indices, strict=True))

    return Exponents(exponent) if len(powers) == len(parts) else Balls(ball)


def _joint(tables: Sequence[Array]) -> Array:
    """Row by row, the outer product of the tables' rows."""
    table = tables[0]
    for other in tables[1:]:
        table = (table[:, :, None] * other[:, None, :]).reshape(len(table), -1)
    return table
