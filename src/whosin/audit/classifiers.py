"""Orderings of vectors and forms by classifiers (scikit-learn).

Contract: a classifier's estimate of ln Pr[with | output] / Pr[without | output] orders outputs as
the likelihood ratio does. Three are learnt: a linear one with one number a coordinate, for many
coordinates that each tell very little; an additive one (a logistic regression on values that come
again and on pieces of each coordinate, exact in form for independent noise); and boosted trees, for
what does not add up, on the totals of each row as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from whosin.audit.columns import OutputColumns
from whosin.audit.orderings import Ordering
from whosin.audit.outputs import Outputs
from whosin.exact import Array

LEVELS = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
"""Quantiles between which the additive score is linear; it is constant outside."""
ATOMS, AGAIN, LOOKED = 8, 0.005, 50_000
"""Values of a coordinate that are told apart, the share of the draws that each has at least, and
how many draws of each world are looked at for them, and for the ends of pieces."""
RIDGE = 1e-9
NEWTON, SETTLED, PENALTY = 6, 0.05, 1.0
"""Steps of a logistic regression at most, when it stops before, and half the weight of its squares
beside the log-likelihood."""
BLOCK = 16_384
"""Rows that are worked on at a time."""
MOST, TREES_MOST = 150_000, 400_000
"""Samples of each world that a classifier is trained on; trees are quick, and learn more from
more."""
CELLS, PIECES = 20_000_000, 12
"""Numbers that are learnt from: fewer samples where outputs are long; pieces of a coordinate."""


@dataclass(frozen=True, eq=False)
class ByClassifier(Ordering):
    """Outputs by a trained classifier's score."""

    name: str
    kind: str
    width: int
    columns: OutputColumns
    model: Any = field(repr=False)
    totals: bool = False

    def _score(self, outputs: Outputs) -> Array:
        read = self.columns.whole if self.totals else self.columns.matrix
        return self.of_table(read(outputs))

    def of_table(self, table: Array) -> Array:
        """A number per row, with or without totals."""
        with _one_thread():
            rows = table if self.totals else table[:, : self.columns.count]
            return np.asarray(self.model.decision_function(rows), dtype=float)

    def about(self, threshold: float, above: bool) -> str:
        return f"{self.name} score of the output {'≥' if above else '≤'} {threshold:.6g}"


@dataclass(frozen=True, eq=False)
class Tables:
    """Outputs of both worlds as matrices, read once for all classifiers."""

    kind: str
    width: int
    columns: OutputColumns
    worlds: tuple[Array, Array]

    @classmethod
    def of(cls, with_: Outputs, without: Outputs, columns: OutputColumns) -> Tables:
        """With totals."""
        worlds = columns.whole(with_), columns.whole(without)
        return cls(with_.kind, with_.width, columns, worlds)

    def split(self, cut: tuple[int, int]) -> tuple[Tables, Tables]:
        """The rows before and after the cut of each world."""
        (one, two), (here, there) = self.worlds, cut
        early, late = (one[:here], two[:there]), (one[here:], two[there:])
        return replace(self, worlds=early), replace(self, worlds=late)

    def ordering(self, name: str, model: Any, *, totals: bool = False) -> ByClassifier:
        """What was learnt of such outputs."""
        return ByClassifier(name, self.kind, self.width, self.columns, model, totals)

    def labelled(self, most: int, pieces: int = 1, *, totals: bool = False) -> tuple[Array, Array]:
        """Rows of both worlds, fewer where they are long, and which world each is of."""
        count = self.columns.count
        most = max(1000, min(most, CELLS // (pieces * count)))
        parts = [table[:most] if totals else table[:most, :count] for table in self.worlds]
        return np.concatenate(parts), np.repeat([1, 0], [len(part) for part in parts])


@dataclass(frozen=True, eq=False)
class Pieces:
    """A logistic regression on the values of each coordinate that come again, and on how far it is
    into each of its pieces where it has another value."""

    knots: list[Array]
    atoms: list[Array]
    weights: Array

    @classmethod
    def fit(cls, table: Array, labels: Array) -> Pieces | None:
        """Learn; nothing where every coordinate is constant."""
        atoms = [_atoms(column) for column in table.T]
        knots = [_knots(column, own) for column, own in zip(table.T, atoms, strict=True)]
        features = cls(knots, atoms, np.zeros(0))._features(table)
        if features.shape[1] == 1:
            return None
        with _one_thread():
            return cls(knots, atoms, _logistic(features, labels))

    def _features(self, table: Array) -> Array:
        """A row per draw; the last column is 1. A third of a gigabyte at most."""
        count = 1 + sum(len(own) for own in self.atoms)
        count += sum(max(0, len(own) - 1) for own in self.knots)
        features = np.ones((len(table), count), dtype=np.float32, order="F")
        at = 0
        for column, knots, atoms in zip(table.T, self.knots, self.atoms, strict=True):
            inside = np.ones(len(table), dtype=bool)
            for atom in atoms:
                here = column == atom
                inside &= ~here
                features[:, at] = here
                at += 1
            for low, high in pairwise(knots):
                features[:, at] = np.clip((column - low) / (high - low), 0, 1) * inside
                at += 1
        return features

    def decision_function(self, table: Array) -> Array:
        """The log odds of "with"."""
        scores = [
            self._features(table[start : start + BLOCK]) @ self.weights.astype(np.float32)
            for start in range(0, len(table), BLOCK)
        ]
        return np.concatenate(scores)


def _logistic(features: Array, labels: Array) -> Array:
    """The weights of a logistic regression, by a few of Newton's steps.

    More steps than these change the order of outputs little; they end where the log odds settle.
    """
    weights = np.zeros(features.shape[1])
    for _ in range(NEWTON):
        slope, bend = -PENALTY * weights, PENALTY * np.eye(len(weights))
        for start in range(0, len(features), BLOCK):
            part = np.ascontiguousarray(features[start : start + BLOCK])
            odds = np.clip(part @ weights.astype(np.float32), -30, 30)
            chance = 1 / (1 + np.exp(-odds))
            slope += part.T @ (labels[start : start + BLOCK] - chance).astype(np.float32)
            bend += (part * (chance * (1 - chance))[:, None]).T @ part
        step = np.linalg.solve(bend, slope)
        weights = weights + step
        if np.abs(step).max() < SETTLED:
            break
    return weights


def _atoms(column: Array) -> Array:
    """The values that come again often; one may be left out where there are no others."""
    column = column[:: max(1, len(column) // (2 * LOOKED))]
    values, counts = np.unique(column, return_counts=True)
    often = np.argsort(-counts, kind="stable")[:ATOMS]
    often = often[counts[often] >= max(2, AGAIN * len(column))]
    return np.sort(values[often if len(often) < len(values) else often[1:]])


def _knots(column: Array, atoms: Array) -> Array:
    """Where pieces of the other values begin and end."""
    some = column[:: max(1, len(column) // (2 * LOOKED))]
    rest = some[~np.isin(some, atoms)] if len(atoms) else some
    return np.unique(np.quantile(rest, LEVELS)) if len(rest) else np.zeros(0)


@dataclass(frozen=True, eq=False)
class LinearProjection:
    """A linear discriminant on each coordinate, cut off at its quartiles.

    The weights are drawn towards their mean, as far as their spread is what chance makes of it
    (James and Stein 1961): twenty answers that each shift by a twentieth are seen as one.
    """

    low: Array
    high: Array
    weights: Array

    @classmethod
    def fit(cls, table: Array, labels: Array) -> LinearProjection:
        """Learn, in closed form."""
        some = np.concatenate([table[labels == world][:LOOKED] for world in (0, 1)])
        low, high = np.quantile(some, (0.25, 0.75), axis=0)
        start = cls(low, high, np.zeros(table.shape[1]))
        features = start._features(table)
        one, two = features[labels == 1], features[labels == 0]
        shift = one.mean(axis=0) - two.mean(axis=0)
        spread = np.atleast_2d(np.cov(features.T)) + RIDGE * np.eye(len(shift))
        weights = np.linalg.solve(spread, shift)
        doubt = np.diag(np.linalg.inv(spread)) * (1 / len(one) + 1 / len(two))
        moves = high > low
        mean = weights[moves].mean() if moves.any() else 0.0
        extra = max(0.0, float(weights[moves].var() - doubt[moves].mean())) if moves.any() else 0.0
        drawn = mean + extra / (extra + doubt) * (weights - mean)
        return cls(low, high, np.where(moves, drawn, 0.0))

    def _features(self, table: Array) -> Array:
        width = np.where(self.high > self.low, self.high - self.low, 1.0)
        return np.asarray(np.clip((table - self.low) / width, 0, 1))

    def decision_function(self, table: Array) -> Array:
        """The log odds of "with", but for a constant."""
        return np.asarray(self._features(table) @ self.weights)


def learn_linear(tables: Tables) -> ByClassifier | None:
    """The linear one."""
    return tables.ordering("linear", LinearProjection.fit(*tables.labelled(MOST)))


def learn_additive(tables: Tables) -> ByClassifier | None:
    """The additive one; nothing where every coordinate is constant."""
    model = Pieces.fit(*tables.labelled(MOST, PIECES))
    return None if model is None else tables.ordering("additive", model)


def learn_trees(tables: Tables) -> ByClassifier | None:
    """The trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows, labels = tables.labelled(TREES_MOST, PIECES, totals=True)
    trees = HistGradientBoostingClassifier(
        max_iter=20,
        learning_rate=0.2,
        max_leaf_nodes=8,
        min_samples_leaf=max(5, len(rows) // 100),
        early_stopping=False,
        random_state=0,
    )
    with _one_thread():
        trees.fit(rows, labels)
    return tables.ordering("boosted trees'", trees, totals=True)


KINDS = (learn_linear, learn_additive, learn_trees)
"""The plainest first."""


def _one_thread() -> Any:
    """Small trees gain little from more threads, and lose much on a machine that is busy."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)
