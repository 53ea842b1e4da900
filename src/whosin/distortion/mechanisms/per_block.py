"""Mechanisms that treat independent blocks of rows each on its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from whosin.distortion.mechanisms.drawing import checked_table, need_pairs
from whosin.exact import Array, flint_array
from whosin.mechanisms import Channel, Mechanism
from whosin.spaces import Records, Space


class Drawn(Protocol):
    """A mechanism on records that can be sampled."""

    def channel(self, space: Space | None = None) -> Channel: ...

    def sample(self, table: Sequence[int] | Array, rng: np.random.Generator) -> Array: ...


@dataclass(frozen=True, eq=False)
class PerBlock(Mechanism):
    """Pr[y|x] = ∏ over blocks of Pr[y_B|x_B].

    Args:
        space: the tables.
        parts: for each kind of block its mechanism, and the rows of each block of that kind.
    """

    space: Records
    parts: tuple[tuple[Drawn, tuple[tuple[int, ...], ...]], ...]

    def channel(self, space: Space | None = None) -> Channel:
        """Written out over all m^n worlds, exactly."""
        need_pairs(self.space, space)
        size, m = self.space.worlds, self.space.values
        digits = np.array(list(self.space))
        table = np.full((size, size), flint_array([1], (1,))[0], dtype=object)
        for mechanism, copies in self.parts:
            inside = mechanism.channel(Records(len(copies[0]), m))
            for rows in copies:
                number = digits[:, rows] @ (m ** np.arange(len(rows))[::-1])
                table = table * inside.rationals[np.ix_(number, number)]
        return Channel(self.space, table, list(self.space))

    def sample(self, table: Sequence[int] | Array, rng: np.random.Generator) -> Array:
        """Draw an output block by block. For simulation, not for release."""
        rows = checked_table(self.space, table)
        out = np.empty_like(rows)
        for mechanism, copies in self.parts:
            for positions in copies:
                out[list(positions)] = mechanism.sample(rows[list(positions)], rng)
        return out
