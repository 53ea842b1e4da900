"""A mechanism that draws the type of (x, y), then y uniformly among the tables of that type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from whosin.distortion.mechanisms.drawing import checked_table, drawn_index, need_pairs
from whosin.distortion.symmetry.joint_types import Types
from whosin.exact import Array
from whosin.mechanisms import Channel, Mechanism
from whosin.spaces import Records, Space


@dataclass(frozen=True, eq=False)
class ByType(Mechanism):
    """Pr[y|x] = W_t / (S · M(t)), t the type of (x, y), S the sum of W over the types of x's
    counts, and M(t) the number of y with type t: a rational number.

    Args:
        space: the tables.
        groups: rows that are exchanged freely.
        types: the joint types of these groups.
        shares: W, whole numbers.
    """

    space: Records
    groups: tuple[tuple[int, ...], ...]
    types: Types
    shares: Array

    @cached_property
    def _by_counts(self) -> list[tuple[Array, list[int]]]:
        """For each combination of counts: its types, and their cumulative shares."""
        order = np.argsort(self.types.inputs, kind="stable")
        ends = np.searchsorted(self.types.inputs[order], np.arange(len(self.types.counts) + 1))
        parts = [order[start:end] for start, end in pairwise(ends)]
        return [(chosen, list(accumulate(self.shares[chosen].tolist()))) for chosen in parts]

    @property
    def totals(self) -> Array:
        """S for each combination of counts."""
        return np.array([steps[-1] for _, steps in self._by_counts], dtype=object)

    @property
    def weights(self) -> Array:
        """The probability of each type given the counts of x, in floats."""
        return np.asarray((self.shares / self.totals[self.types.inputs]).astype(float))

    def channel(self, space: Space | None = None) -> Channel:
        """Written out over all m^n worlds, exactly."""
        need_pairs(self.space, space)
        size = self.space.worlds
        from flint import fmpq

        digits = np.array(list(self.space))
        index = np.zeros((size, size), dtype=np.int64)
        for rows, part in zip(self.groups, self.types.groups, strict=True):
            base = len(rows) + 1
            cells = base ** np.arange(part.values**2, dtype=object).reshape(part.values, -1)
            # A table of counts is a number in base k + 1, one digit a cell.
            number = {key: i for i, key in enumerate((part.tables * cells).sum(axis=(1, 2)))}
            seen = np.zeros((size, size), dtype=object)
            for row in rows:
                seen += cells[digits[:, row][:, None], digits[:, row][None, :]]
            mine = np.array([number[key] for key in seen.ravel()]).reshape(size, size)
            index = index * len(part.tables) + mine
        bottoms = self.totals[self.types.inputs] * self.types.ways
        each = np.empty(self.types.size, dtype=object)
        each[:] = [fmpq(top, bottom) for top, bottom in zip(self.shares, bottoms, strict=True)]
        return Channel(self.space, each[index], list(self.space))

    def sample(self, table: Sequence[int] | Array, rng: np.random.Generator) -> Array:
        """Draw an output for one table without building the m^n worlds, as `channel` has it.

        For simulation, not for release: numpy's generator is not secure randomness.
        """
        rows, m = checked_table(self.space, table), self.space.values
        counts = tuple(
            tuple(np.bincount(rows[list(group)], minlength=m).tolist()) for group in self.groups
        )
        chosen, steps = self._by_counts[self._number_of[counts]]
        out = np.empty_like(rows)
        at = np.unravel_index(int(chosen[drawn_index(steps, rng)]), self.types.shape)
        for group, part, index in zip(self.groups, self.types.groups, at, strict=True):
            positions = np.array(group)
            for a in range(m):
                mine = rng.permutation(positions[rows[positions] == a])
                out[mine] = np.repeat(np.arange(m), part.tables[index, a])
        return out

    @cached_property
    def _number_of(self) -> dict[tuple[tuple[int, ...], ...], int]:
        return {counts: number for number, counts in enumerate(self.types.counts)}
