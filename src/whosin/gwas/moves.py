"""What a number of changed people can do to one group's allele count, and back.

Contract: a group with `twos` people who can move the count by 2 and `ones` who can then move it by
1 reaches every step up to 2·twos + ones, the first 2·twos of them two at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whosin.exact import Array

UNREACHABLE = np.int64(1) << 40


@dataclass(frozen=True, eq=False)
class Moves:
    """Changes of one group in one direction, for every SNP."""

    twos: Array
    ones: Array

    @property
    def most(self) -> Array:
        """The largest step."""
        return 2 * self.twos + self.ones

    def cost(self, step: Array) -> Array:
        """The fewest people for a step (0 for none); UNREACHABLE beyond the largest."""
        fewest = np.maximum((step + 1) >> 1, step - self.twos)
        return np.where(step > self.most, UNREACHABLE, np.maximum(fewest, 0))

    def real_cost(self, step: Array) -> Array:
        """The same for real steps and fractions of people: convex, and never more."""
        cost: Array = np.maximum(np.maximum(step / 2, step - self.twos), 0.0)
        return cost

    def reach(self, people: Array) -> Array:
        """The largest step of this many people (at most all of them)."""
        step: Array = np.minimum(2 * people, people + self.twos)
        return step

    def take(self, which: Array) -> Moves:
        return Moves(self.twos[which], self.ones[which])


def cost_between(target: Array, value: Array, up: Moves, down: Moves) -> Array:
    """The fewest people that bring a group's count from a value to a target."""
    step = target - value
    return np.where(step >= 0, up.cost(np.maximum(step, 0)), down.cost(np.maximum(-step, 0)))
