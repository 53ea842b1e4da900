"""Orderings of vectors and forms by classifiers (scikit-learn).

Contract: a classifier's estimate of ln Pr[with | output] / Pr[without | output] orders outputs as
the likelihood ratio does. Two are learnt: an additive one (a logistic regression on pieces of each
coordinate, exact in form for independent noise) and boosted trees, for what does not add up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from whosin.audit.columns import OutputColumns
from whosin.audit.orderings import Ordering
from whosin.audit.outputs import Outputs
from whosin.exact import Array

LEVELS = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
"""Quantiles between which the additive score is linear; it is constant outside."""
MOST = 150_000
"""Samples of each world that a classifier is trained on."""
CELLS = 40_000_000
"""Numbers that the additive one learns from: fewer samples where outputs are long."""


@dataclass(frozen=True, eq=False)
class ByClassifier(Ordering):
    """Outputs by a trained classifier's score."""

    name: str
    kind: str
    width: int
    columns: OutputColumns
    model: Any = field(repr=False)

    def _score(self, outputs: Outputs) -> Array:
        with _one_thread():
            scores = self.model.decision_function(self.columns.matrix(outputs))
        return np.asarray(scores, dtype=float)

    def about(self, threshold: float, above: bool) -> str:
        return f"{self.name} score of the output {'≥' if above else '≤'} {threshold:.6g}"


@dataclass(frozen=True, eq=False)
class Pieces:
    """A logistic regression on how far each coordinate is into each of its pieces."""

    knots: list[Array]
    model: Any

    @classmethod
    def fit(cls, table: Array, labels: Array) -> Pieces | None:
        """Learn; nothing where every coordinate is constant."""
        from sklearn.linear_model import LogisticRegression

        knots = [np.unique(np.quantile(column, LEVELS)) for column in table.T]
        model = LogisticRegression(max_iter=300)
        pieces = cls(knots, model)
        features = pieces._features(table)
        if features.shape[1] == 0:
            return None
        with _one_thread():
            model.fit(features, labels)
        return pieces

    def _features(self, table: Array) -> Array:
        columns = []
        for column, knots in zip(table.T, self.knots, strict=True):
            for low, high in pairwise(knots):
                columns.append(np.clip((column - low) / (high - low), 0, 1))
        return np.column_stack(columns) if columns else np.zeros((len(table), 0))

    def decision_function(self, table: Array) -> Array:
        """The log odds of "with"."""
        return np.asarray(self.model.decision_function(self._features(table)))


def learn(with_: Outputs, without: Outputs, columns: OutputColumns) -> list[Ordering]:
    """Both classifiers, trained."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    most = max(1000, min(MOST, CELLS // (12 * columns.count)))
    with_, without = with_.part(0, most), without.part(0, most)
    of = with_.kind, with_.width, columns
    table = np.concatenate([columns.matrix(with_), columns.matrix(without)])
    labels = np.repeat([1, 0], [len(with_), len(without)])
    result: list[Ordering] = []
    additive = Pieces.fit(table, labels)
    if additive is not None:
        result.append(ByClassifier("additive", *of, additive))
    trees = HistGradientBoostingClassifier(
        max_iter=20,
        learning_rate=0.2,
        max_leaf_nodes=8,
        min_samples_leaf=max(5, len(table) // 100),
        early_stopping=False,
        random_state=0,
    )
    with _one_thread():
        trees.fit(table, labels)
    result.append(ByClassifier("boosted trees'", *of, trees))
    return result


def _one_thread() -> Any:
    """Small trees gain little from more threads, and lose much on a machine that is busy."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)
