"""Orderings of vectors and forms by classifiers (scikit-learn).

Contract: a classifier's estimate of ln Pr[with | output] / Pr[without | output] orders outputs as
the likelihood ratio does. Three are learnt: a linear one with one number a coordinate, for many
coordinates that each tell very little; an additive one (a logistic regression on values that come
again and on pieces of each coordinate, exact in form for independent noise); and boosted trees, for
what does not add up, on the totals of each row as well. A small net is learnt besides where a short
trial of it shows more than these three (`net_pays`): products and distances of many coordinates,
which trees approach by boxes. Each is learnt on both halves of the samples apart, so that each half
can judge the other one's; the final one is made of both.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from whosin.audit.additive import Pieces
from whosin.audit.columns import OutputColumns, separation
from whosin.audit.linear import LinearProjection
from whosin.audit.nets import SmallNet
from whosin.audit.orderings import Ordering
from whosin.audit.outputs import Outputs
from whosin.audit.threads import one_thread
from whosin.exact import Array

MOST, TREES_MOST = 150_000, 400_000
"""Samples of each world that a classifier is trained on; trees are quick, and learn more from
more."""
CELLS, PIECES = 20_000_000, 12
"""Numbers that are learnt from: fewer samples where outputs are long; pieces of a coordinate."""
NET_MOST, NET_FEWEST = 40_000, 100
"""Samples of each world that a net is trained on; with fewer than the second number in a half it is
not tried."""
GLANCE, JUDGES = 4_000, 20_000
"""Samples of each world of the first half that the short trial of a net learns from, and samples of
the second half that judge it."""
CHANCE, GAIN = 4.0, 1.1
"""The net is learnt where the trial tells the worlds apart by more standard errors than chance
does, and by this many times more than the best of the others."""


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
        with one_thread():
            return np.asarray(self.model.decision_function(read(outputs)), dtype=float)

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

    def labelled(self, most: int, pieces: int = 1, *, totals: bool = False) -> tuple[Array, Array]:
        """Rows of both worlds, fewer where they are long, and which world each is of."""
        count = self.columns.count
        most = max(1000, min(most, CELLS // (pieces * count)))
        parts = [table[:most] if totals else table[:most, :count] for table in self.worlds]
        return np.concatenate(parts), np.repeat([1, 0], [len(part) for part in parts])


@dataclass(frozen=True, eq=False)
class Learnt:
    """What was learnt on the first half, on the second one, and on both.

    Attributes:
        final: the model of both halves.
        scores: three numbers per row, by each of the three.
    """

    name: str
    final: Any
    scores: Any
    totals: bool = False

    def ordering(self, tables: Tables) -> ByClassifier:
        """The final one."""
        columns = tables.columns
        return ByClassifier(self.name, tables.kind, tables.width, columns, self.final, self.totals)

    def judged(self, table: Array, cut: int, columns: int) -> tuple[Array, Array]:
        """For each row of a world the score by what the other half of it taught, and by all."""
        with one_thread():
            scores = self.scores(table if self.totals else table[:, :columns])
        return np.concatenate([scores[:cut, 1], scores[cut:, 0]]), scores[:, 2]


@dataclass(frozen=True, eq=False)
class MeanScore:
    """The mean of what several models say."""

    models: tuple[Any, ...]

    def each(self, table: Array) -> Array:
        """A column per model, and the mean as the last one."""
        scores = [model.decision_function(table) for model in self.models]
        return np.column_stack([*scores, sum(scores) / len(scores)])

    def decision_function(self, table: Array) -> Array:
        """The mean alone."""
        return np.asarray(self.each(table)[:, -1])


def learn_linear(first: Tables, second: Tables) -> Learnt | None:
    """The linear one."""
    three = LinearProjection.fit(*(half.labelled(MOST) for half in (first, second)))
    return Learnt("linear", three.last, three.decision_function)


def learn_additive(first: Tables, second: Tables) -> Learnt | None:
    """The additive one; nothing where every coordinate is constant."""
    three = Pieces.fit(*(half.labelled(MOST, PIECES) for half in (first, second)))
    return None if three is None else Learnt("additive", three.last, three.decision_function)


def learn_trees(first: Tables, second: Tables) -> Learnt | None:
    """The trees."""
    both = MeanScore(tuple(_trees(half) for half in (first, second)))
    return Learnt("boosted trees'", both, both.each, totals=True)


def _trees(tables: Tables) -> Any:
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
    with one_thread():
        return trees.fit(rows, labels)


def learn_net(first: Tables, second: Tables) -> Learnt:
    """The small net."""
    halves = (half.labelled(NET_MOST, PIECES) for half in (first, second))
    with one_thread():
        both = MeanScore(tuple(SmallNet.fit(*half) for half in halves))
    return Learnt("small net's", both, both.each)


def net_pays(first: Tables, second: Tables, others: list[tuple[Array, Array]]) -> bool:
    """Whether a net that is learnt on some of the first half tells the worlds of the second half
    apart better than the others do, whose scores of the second half are given (with, without)."""
    count = first.columns.count
    smallest = min(len(world) for half in (first, second) for world in half.worlds)
    if count < 2 or smallest < NET_FEWEST:
        return False
    with one_thread():
        net = SmallNet.fit(*first.labelled(GLANCE, PIECES))
        worlds = [net.decision_function(world[:JUDGES, :count]) for world in second.worlds]
    sizes = len(worlds[0]), len(worlds[1])
    best = max((separation(one[:JUDGES], two[:JUDGES], sizes) for one, two in others), default=0.0)
    return separation(worlds[0], worlds[1], sizes) > max(CHANCE, GAIN * best)


KINDS = (learn_linear, learn_additive, learn_trees)
"""The plainest first."""
