"""A mechanism that draws the type of (x, y), then y uniformly among the tables of that type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from whosin.distortion.types import Types
from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.mechanisms import Channel, Mechanism
from whosin.spaces import Records, Space
from whosin.spaces.memory import require


@dataclass(frozen=True, eq=False)
class ByType(Mechanism):
    """Pr[y|x] = w_t / M(t), t the type of (x, y) and M(t) the number of y with it.

    Args:
        space: the tables.
        groups: rows that are exchanged freely.
        types: the joint types of these groups.
        weights: w, with sum 1 over the types of each combination of counts of x.
    """

    space: Records
    groups: tuple[tuple[int, ...], ...]
    types: Types
    weights: Array

    @cached_property
    def _by_counts(self) -> list[tuple[Array, Array]]:
        """For each combination of counts: its types, and their cumulative weights."""
        order = np.argsort(self.types.inputs, kind="stable")
        ends = np.searchsorted(self.types.inputs[order], np.arange(len(self.types.counts) + 1))
        found = []
        for start, end in pairwise(ends):
            chosen = order[start:end]
            steps = self.weights[chosen].cumsum()
            found.append((chosen, steps / steps[-1]))
        return found

    def channel(self, space: Space | None = None) -> Channel:
        """Written out over all m^n worlds."""
        if space is not None and space != self.space:
            raise InvalidInput("space", f"{self.space!r}, as the mechanism's", repr(space))
        size = self.space.worlds
        require("a table of worlds by worlds", 40 * size**2)
        digits = np.array(list(self.space))
        index = np.zeros((size, size), dtype=np.int64)
        for rows, part in zip(self.groups, self.types.groups, strict=True):
            rng = np.random.default_rng(len(rows))
            secret = rng.integers(1, 1 << 62, size=(part.values, part.values), dtype=np.int64)
            with np.errstate(over="ignore"):
                keys = (part.tables * secret).sum(axis=(1, 2))
                seen = np.zeros((size, size), dtype=np.int64)
                for row in rows:
                    seen += secret[digits[:, row][:, None], digits[:, row][None, :]]
            order = np.argsort(keys)
            assert len(np.unique(keys)) == len(keys)
            index = index * len(keys) + order[np.searchsorted(keys[order], seen)]
        each = self.weights * np.exp(-self.types.log_ways)
        table = each[index]
        return Channel(self.space, table / table.sum(axis=1, keepdims=True), list(self.space))

    def sample(self, table: Sequence[int] | Array, rng: np.random.Generator) -> Array:
        """Draw an output for one table without building the m^n worlds.

        For simulation, not for release: numpy's generator and floating-point thresholds.
        """
        rows = np.asarray(table, dtype=np.int64)
        m = self.space.values
        if rows.shape != (self.space.rows,) or ((rows < 0) | (rows >= m)).any():
            raise InvalidInput("table", f"{self.space.rows} values from 0 to {m - 1}", rows.shape)
        counts = tuple(
            tuple(np.bincount(rows[list(group)], minlength=m).tolist()) for group in self.groups
        )
        chosen, steps = self._by_counts[self._place[counts]]
        drawn = min(int(np.searchsorted(steps, rng.random(), side="right")), len(chosen) - 1)
        out = np.empty_like(rows)
        at = np.unravel_index(int(chosen[drawn]), self.types.shape)
        for group, part, index in zip(self.groups, self.types.groups, at, strict=True):
            places = np.array(group)
            for a in range(m):
                mine = rng.permutation(places[rows[places] == a])
                out[mine] = np.repeat(np.arange(m), part.tables[index, a])
        return out

    @cached_property
    def _place(self) -> dict[tuple[tuple[int, ...], ...], int]:
        return {counts: number for number, counts in enumerate(self.types.counts)}
