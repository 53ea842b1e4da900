"""A linear discriminant, learnt on two halves of a sample and on both at once.

Contract: the halves are summed up by their moments, so that both together cost nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from whosin.exact import Array

RIDGE = 1e-9
LOOKED = 10_000
"""Rows of each half at which the quartiles are taken."""
QUARTILES = (0.25, 0.75)
Labelled = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Moments:
    """Of the rows of each world: how many, and their sum; and the sum of squares of all."""

    sizes: Array
    sums: Array
    squares: Array

    @classmethod
    def of(cls, rows: Array, labels: Array) -> Moments:
        """Summed up."""
        worlds = [rows[labels == world] for world in (0, 1)]
        sizes = np.array([len(world) for world in worlds])
        return cls(sizes, np.array([world.sum(axis=0) for world in worlds]), rows.T @ rows)

    def __add__(self, other: Moments) -> Moments:
        sums, squares = self.sums + other.sums, self.squares + other.squares
        return Moments(self.sizes + other.sizes, sums, squares)

    def weights(self, moves: Array) -> Array:
        """Of the linear discriminant, drawn towards their mean, as far as their spread is what
        chance makes of it (James and Stein 1961)."""
        size, total = self.sizes.sum(), self.sums.sum(axis=0)
        shift = self.sums[1] / self.sizes[1] - self.sums[0] / self.sizes[0]
        spread = (self.squares - np.outer(total, total) / size) / (size - 1)
        spread += RIDGE * np.eye(len(shift))
        weights = np.linalg.solve(spread, shift)
        if not moves.any():
            return np.zeros(len(weights))
        doubt = np.diag(np.linalg.inv(spread)) * (1 / self.sizes).sum()
        mean = weights[moves].mean()
        extra = max(0.0, float(weights[moves].var() - doubt[moves].mean()))
        drawn = mean + extra / (extra + doubt) * (weights - mean)
        return np.where(moves, drawn, 0.0)


@dataclass(frozen=True, eq=False)
class LinearProjection:
    """A linear discriminant on each coordinate, cut off at its quartiles.

    The weights are drawn towards their mean: twenty answers that each shift by a twentieth are seen
    as one. Several columns of weights are several discriminants.
    """

    low: Array
    high: Array
    weights: Array

    @classmethod
    def fit(cls, first: Labelled, second: Labelled) -> LinearProjection:
        """Learn three: of the first half, the second half and both, in closed form."""
        some = [rows[:: max(1, len(rows) // LOOKED)] for rows, _labels in (first, second)]
        low, high = np.quantile(np.concatenate(some), QUARTILES, axis=0)
        start = cls(low, high, np.zeros(len(low)))
        one, two = (Moments.of(start._features(rows), labels) for rows, labels in (first, second))
        columns = [each.weights(high > low) for each in (one, two, one + two)]
        return replace(start, weights=np.column_stack(columns))

    @property
    def last(self) -> LinearProjection:
        """The last discriminant alone."""
        return replace(self, weights=self.weights[:, -1])

    def _features(self, table: Array) -> Array:
        width = np.where(self.high > self.low, self.high - self.low, 1.0)
        features = (table - self.low) / width
        return np.asarray(np.clip(features, 0, 1, out=features))

    def decision_function(self, table: Array) -> Array:
        """The log odds of "with", but for a constant."""
        return np.asarray(self._features(table) @ self.weights)
