"""A logistic regression on pieces of each coordinate, learnt on two halves of a sample.

Contract: both halves share the pieces, which do not depend on which world a row is of; the mean of
their weights is as good as what would be learnt from both at once, up to terms of the second order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from whosin.exact import Array

LEVELS = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
"""Quantiles between which the additive score is linear; it is constant outside."""
ATOMS, AGAIN, LOOKED = 8, 0.005, 50_000
"""Values of a coordinate that are told apart, the share of the draws that each has at least, and
how many draws of each half are looked at for them, and for the ends of pieces."""
NEWTON, SETTLED, PENALTY = 6, 0.05, 1.0
"""Steps of a logistic regression at most, when it stops before, and half the weight of its squares
beside the log-likelihood."""
START = 8
"""The first steps see one block in this many: one step from a rough estimate is as good as many."""
BLOCK = 8192
"""Rows that are worked on at a time."""
Labelled = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Pieces:
    """A logistic regression on the values of each coordinate that come again, and on how far it is
    into each of its pieces where it has another value. Several columns of weights are several."""

    knots: list[Array]
    atoms: list[Array]
    weights: Array

    @classmethod
    def fit(cls, first: Labelled, second: Labelled) -> Pieces | None:
        """Learn three: of the first half, the second half, and the mean of both; nothing where
        every coordinate is constant."""
        some = [rows[:: max(1, len(rows) // LOOKED)] for rows, _labels in (first, second)]
        columns = np.concatenate(some).T
        atoms = [_atoms(column) for column in columns]
        knots = [_knots(column, own) for column, own in zip(columns, atoms, strict=True)]
        start = cls(knots, atoms, np.zeros(0))
        if start.count == 1:
            return None
        one, two = (start._learnt(rows, labels) for rows, labels in (first, second))
        return replace(start, weights=np.column_stack([one, two, (one + two) / 2]))

    @property
    def last(self) -> Pieces:
        """The last regression alone."""
        return replace(self, weights=self.weights[:, -1])

    @property
    def count(self) -> int:
        """Weights: of atoms, pieces, and a constant."""
        atoms = sum(len(own) for own in self.atoms)
        return 1 + atoms + sum(max(0, len(own) - 1) for own in self.knots)

    def _learnt(self, rows: Array, labels: Array) -> Array:
        """The weights that rows of both worlds teach."""
        mixed = np.random.default_rng(2023).permutation(len(rows))
        places = [mixed[at : at + BLOCK] for at in range(0, len(mixed), BLOCK)]
        blocks = [(self._features(rows[at]), labels[at]) for at in places]
        return _logistic(blocks, self.count)

    def _features(self, table: Array) -> Array:
        """A column per draw; the last row is 1."""
        features = np.ones((self.count, len(table)), dtype=np.float32)
        at = 0
        columns = np.ascontiguousarray(table.T)
        for column, knots, atoms in zip(columns, self.knots, self.atoms, strict=True):
            outside = np.zeros(len(table), dtype=bool)
            for atom in atoms:
                here = column == atom
                outside |= here
                features[at] = here
                at += 1
            for low, high in pairwise(knots):
                piece = features[at]
                np.multiply(column - low, 1 / (high - low), out=piece, casting="same_kind")
                np.clip(piece, 0, 1, out=piece)
                if len(atoms):
                    piece[outside] = 0
                at += 1
        return features

    def decision_function(self, table: Array) -> Array:
        """The log odds of "with"."""
        weights = self.weights.astype(np.float32)
        starts = range(0, len(table), BLOCK)
        scores = [self._features(table[at : at + BLOCK]).T @ weights for at in starts]
        return np.concatenate(scores)


def _logistic(blocks: list[tuple[Array, Array]], count: int) -> Array:
    """The weights of a logistic regression, by a few of Newton's steps, the first ones on some of
    the rows.

    More steps than these change the order of outputs little; they end where the log odds settle.
    """
    weights = np.zeros(count)
    for some in (blocks[::START], blocks) if len(blocks) > START else (blocks,):
        for _ in range(NEWTON):
            step = _newton(some, weights)
            weights = weights + step
            if np.abs(step).max() < SETTLED:
                break
    return weights


def _newton(blocks: list[tuple[Array, Array]], weights: Array) -> Array:
    """The next step."""
    slope, bend = -PENALTY * weights, PENALTY * np.eye(len(weights))
    for features, labels in blocks:
        odds = np.clip(weights.astype(np.float32) @ features, -30, 30)
        chance = 1 / (1 + np.exp(-odds))
        slope += features @ (labels - chance).astype(np.float32)
        bend += (features * (chance * (1 - chance))) @ features.T
    return np.asarray(np.linalg.solve(bend, slope))


def _atoms(column: Array) -> Array:
    """The values that come again often; one may be left out where there are no others."""
    values, counts = np.unique(column, return_counts=True)
    often = np.argsort(-counts, kind="stable")[:ATOMS]
    often = often[counts[often] >= max(2, AGAIN * len(column))]
    return np.sort(values[often if len(often) < len(values) else often[1:]])


def _knots(column: Array, atoms: Array) -> Array:
    """Where pieces of the other values begin and end."""
    rest = column[~np.isin(column, atoms)] if len(atoms) else column
    return np.unique(np.quantile(rest, LEVELS)) if len(rest) else np.zeros(0)
