"""Distinguishers learnt by classifiers: linear, additive, trees and small nets.

Trees are those of scikit-learn. The others are written out, because they are learnt again in every
search: for two halves of 120,000 rows of 10 or 20 numbers scikit-learn took 1.8 to 3.9 processor
seconds for the additive one (splines and logistic regression) against 0.3 to 0.75 here, 0.22 to
0.29 for the linear one against 0.06 to 0.08, and 1.0 to 1.2 for a net on 40,000 rows against 0.34
to 0.43. Areas under the ROC curve differed by .001 for the additive one; for Laplace noise the
linear one has .538 here, where coordinates are cut off at their quartiles, and .529 there. Without
the additive one the bound of DP-Sniper's SVT3 falls from 0.187 to 0.150.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np

from whosin.audit.distinguishers import Distinguisher
from whosin.audit.output_features import OutputColumns, measure_separation
from whosin.audit.outputs import Outputs
from whosin.audit.sampling import one_thread
from whosin.errors import spell
from whosin.exact import Array

# A logistic regression on pieces of each coordinate, learnt on two halves of a sample. Both halves
# share the pieces, which do not depend on which input a row is of; the mean of their weights is as
# good as what would be learnt from both at once, up to terms of the second order.


QUANTILE_LEVELS = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
"""Quantiles between which the additive score is linear; it is constant outside."""
ATOMS, AGAIN, LOOKED = 8, 0.005, 50_000
"""Values of a coordinate that are told apart, the share of the draws that each has at least, and
how many draws of each half are looked at for them, and for the ends of pieces."""
NEWTON, SETTLED, PENALTY = 6, 0.05, 1.0
"""Steps of a logistic regression at most, when it stops before, and half the weight of its squares
beside the log-likelihood."""
FIRST_NEWTON_STEPS = 8
"""The first steps see one block in this many: one step from a rough estimate is as good as many."""
ROWS_PER_BLOCK = 8192
"""Rows that are worked on at a time."""
Labelled = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class PiecewiseFeatures:
    """A logistic regression on the values of each coordinate that come again, and on how far it is
    into each of its pieces where it has another value. Several columns of weights are several."""

    knots: list[Array]
    atoms: list[Array]
    weights: Array

    @classmethod
    def fit(cls, first: Labelled, second: Labelled) -> PiecewiseFeatures | None:
        """Learn three: of the first half, the second half, and the mean of both; nothing where
        every coordinate is constant."""
        some = [rows[:: max(1, len(rows) // LOOKED)] for rows, _labels in (first, second)]
        columns = np.concatenate(some).T
        atoms = [_find_atoms(column) for column in columns]
        knots = [_find_knots(column, own) for column, own in zip(columns, atoms, strict=True)]
        start = cls(knots, atoms, np.zeros(0))
        if start.count == 1:
            return None
        one, two = (start._learn_weights(rows, labels) for rows, labels in (first, second))
        return replace(start, weights=np.column_stack([one, two, (one + two) / 2]))

    @property
    def last(self) -> PiecewiseFeatures:
        """The last regression alone."""
        return replace(self, weights=self.weights[:, -1])

    @property
    def count(self) -> int:
        """Weights: of atoms, pieces, and a constant."""
        atoms = sum(len(own) for own in self.atoms)
        return 1 + atoms + sum(max(0, len(own) - 1) for own in self.knots)

    def _learn_weights(self, rows: Array, labels: Array) -> Array:
        """The weights that rows of both inputs teach."""
        mixed = np.random.default_rng(2023).permutation(len(rows))
        places = [mixed[at : at + ROWS_PER_BLOCK] for at in range(0, len(mixed), ROWS_PER_BLOCK)]
        blocks = [(self._features(rows[at]), labels[at]) for at in places]
        return _fit_logistic(blocks, self.count)

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
        starts = range(0, len(table), ROWS_PER_BLOCK)
        scores = [self._features(table[at : at + ROWS_PER_BLOCK]).T @ weights for at in starts]
        return np.concatenate(scores)


def _fit_logistic(blocks: list[tuple[Array, Array]], count: int) -> Array:
    """The weights of a logistic regression, by a few of Newton's steps, the first ones on some of
    the rows.

    More steps than these change the order of outputs little; they end where the log odds settle.
    """
    weights = np.zeros(count)
    for some in (
        (blocks[::FIRST_NEWTON_STEPS], blocks) if len(blocks) > FIRST_NEWTON_STEPS else (blocks,)
    ):
        for _ in range(NEWTON):
            step = _take_newton_step(some, weights)
            weights = weights + step
            if np.abs(step).max() < SETTLED:
                break
    return weights


def _take_newton_step(blocks: list[tuple[Array, Array]], weights: Array) -> Array:
    """Return the weights after one Newton step."""
    slope, bend = -PENALTY * weights, PENALTY * np.eye(len(weights))
    for features, labels in blocks:
        odds = np.clip(weights.astype(np.float32) @ features, -30, 30)
        chance = 1 / (1 + np.exp(-odds))
        slope += features @ (labels - chance).astype(np.float32)
        bend += (features * (chance * (1 - chance))) @ features.T
    return np.asarray(np.linalg.solve(bend, slope))


def _find_atoms(column: Array) -> Array:
    """The values that come again often; one may be left out where there are no others."""
    values, counts = np.unique(column, return_counts=True)
    often = np.argsort(-counts, kind="stable")[:ATOMS]
    often = often[counts[often] >= max(2, AGAIN * len(column))]
    return np.sort(values[often if len(often) < len(values) else often[1:]])


def _find_knots(column: Array, atoms: Array) -> Array:
    """Where pieces of the other values begin and end."""
    rest = column[~np.isin(column, atoms)] if len(atoms) else column
    return np.unique(np.quantile(rest, QUANTILE_LEVELS)) if len(rest) else np.zeros(0)


# A linear discriminant, learnt on two halves of a sample and on both at once. The halves are summed
# up by their moments, so that both together cost nothing more.


RIDGE_PENALTY = 1e-9
LINEAR_LOOKED = 10_000
"""Rows of each half at which the quartiles are taken."""
QUARTILE_LEVELS = (0.25, 0.75)
LinearLabelled = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Of the rows of each input: how many, and their sum; and the sum of squares of all."""

    sizes: Array
    sums: Array
    squares: Array

    @classmethod
    def of(cls, rows: Array, labels: Array) -> ClassMoments:
        """Sum the moments of rows by their labels."""
        parts = [rows[labels == part] for part in (0, 1)]
        sizes = np.array([len(part) for part in parts])
        return cls(sizes, np.array([part.sum(axis=0) for part in parts]), rows.T @ rows)

    def __add__(self, other: ClassMoments) -> ClassMoments:
        sums, squares = self.sums + other.sums, self.squares + other.squares
        return ClassMoments(self.sizes + other.sizes, sums, squares)

    def weights(self, moves: Array) -> Array:
        """Of the linear discriminant, drawn towards their mean, as far as their spread is what
        chance makes of it (James and Stein 1961)."""
        size, total = self.sizes.sum(), self.sums.sum(axis=0)
        shift = self.sums[1] / self.sizes[1] - self.sums[0] / self.sizes[0]
        spread = (self.squares - np.outer(total, total) / size) / (size - 1)
        spread += RIDGE_PENALTY * np.eye(len(shift))
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
    def fit(cls, first: LinearLabelled, second: LinearLabelled) -> LinearProjection:
        """Learn three: of the first half, the second half and both, in closed form."""
        some = [rows[:: max(1, len(rows) // LINEAR_LOOKED)] for rows, _labels in (first, second)]
        low, high = np.quantile(np.concatenate(some), QUARTILE_LEVELS, axis=0)
        start = cls(low, high, np.zeros(len(low)))
        one, two = (
            ClassMoments.of(start._features(rows), labels) for rows, labels in (first, second)
        )
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


# A small net: one hidden layer, trained on the rows of both inputs. The score of a row is its log
# odds of "with". Numbers are clipped before they are standardised, so that heavy tails, infinities
# and missing numbers are ordinary inputs. The same rows give the same net.
#
# The net is written out here because it is faster than scikit-learn's at equal strength. For a
# hidden product of two numbers, a sum of five products and a ring in two hidden directions the
# areas under the ROC curve were .800, .729 and .827, scikit-learn's .797, .726 and .826; boosted
# trees had .699, .693 and .628. One seed each.


HIDDEN, PASSES = 64, 10
"""Units of the hidden layer, and how often training sees each row."""
BATCHES, SMALLEST, LARGEST = 64, 64, 512
"""Batches in a pass where that makes batches of a size between these two."""
RATE, DECAY = 0.01, 1e-3
"""The first step of Adam (it falls to 0 as a cosine), and the weight of squares."""
ADAM_MOMENTA = 0.9, 0.999
ENDS, NETS_QUARTILES, REACH = (0.005, 0.995), (0.25, 0.75), 4.0
"""A number is clipped at these quantiles, and where its quartiles differ also at this many times
their distance from them."""
NETS_LOOKED = 20_000
"""Rows that are looked at for quantiles."""
NETS_BLOCK = 16_384
"""Rows that are worked on at a time."""
MAX_LOGIT = 30.0
Weights = tuple[Array, Array, Array, Array]
"""Of the hidden layer, its constants, of the sum, and its constant."""


@dataclass(frozen=True, eq=False)
class FeatureScale:
    """Numbers between two ends, standardised; a column that does not vary is 0."""

    low: Array
    high: Array
    centre: Array
    width: Array

    @classmethod
    def of(cls, rows: Array) -> Self:
        """The ends, centres and widths of each column."""
        some = rows[:: max(1, len(rows) // NETS_LOOKED)]
        some = np.where(np.isnan(some), 0.0, some)
        low, one, three, high = np.quantile(
            some, (ENDS[0], *NETS_QUARTILES, ENDS[1]), axis=0, method="inverted_cdf"
        )
        with np.errstate(over="ignore", invalid="ignore"):
            reach = np.where(three > one, REACH * (three - one), np.inf)
            low, high = np.maximum(low, one - reach), np.minimum(high, three + reach)
            clipped = np.clip(some, low, high)
            centre, width = clipped.mean(axis=0), clipped.std(axis=0)
        sound = (high > low) & np.isfinite(centre) & np.isfinite(width) & (width > 0)
        return cls(
            np.where(sound, low, 0.0),
            np.where(sound, high, 0.0),
            np.where(sound, centre, 0.0),
            np.where(sound, width, 1.0),
        )

    def __call__(self, rows: Array) -> Array:
        known = np.where(np.isnan(rows), self.centre, rows)
        return ((np.clip(known, self.low, self.high) - self.centre) / self.width).astype(np.float32)


@dataclass(frozen=True, eq=False)
class SmallNet:
    """A hidden layer of rectified units, and a sum of them."""

    scale: FeatureScale
    weights: Weights

    @classmethod
    def fit(cls, rows: Array, labels: Array) -> Self:
        """Learn by Adam (Kingma and Ba 2015), from the logistic loss."""
        rng = np.random.default_rng(0)
        scale = FeatureScale.of(rows)
        return cls(scale, _train_net(scale(rows), labels.astype(np.float32), rng))

    def decision_function(self, rows: Array) -> Array:
        """The log odds of "with"."""
        hidden, bias, out, constant = self.weights
        scores = []
        for start in range(0, len(rows), NETS_BLOCK):
            units = self.scale(rows[start : start + NETS_BLOCK]) @ hidden + bias
            scores.append(np.maximum(units, 0, out=units) @ out + constant)
        return np.concatenate(scores, dtype=np.float64) if scores else np.zeros(0)


def _train_net(rows: Array, labels: Array, rng: np.random.Generator) -> Weights:
    count, width = rows.shape
    weights = _initial_weights(width, rng)
    first, second = ([np.zeros_like(each) for each in weights] for _ in ADAM_MOMENTA)
    size = min(count, max(SMALLEST, min(LARGEST, count // BATCHES)))
    starts = range(0, count - size + 1, size)
    step, steps = 0, PASSES * len(starts)
    for _ in range(PASSES):
        order = rng.permutation(count)
        for start in starts:
            chosen = order[start : start + size]
            slopes = _loss_gradient(weights, rows[chosen], labels[chosen])
            step += 1
            falling = (1 + math.cos(math.pi * step / steps)) / 2
            rate = (
                falling
                * RATE
                * math.sqrt(1 - ADAM_MOMENTA[1] ** step)
                / (1 - ADAM_MOMENTA[0] ** step)
            )
            for weight, mean, square, slope in zip(weights, first, second, slopes, strict=True):
                mean += (1 - ADAM_MOMENTA[0]) * (slope - mean)
                square += (1 - ADAM_MOMENTA[1]) * (slope * slope - square)
                weight -= np.float32(rate) * mean / (np.sqrt(square) + np.float32(1e-8))
    hidden, bias, out, constant = weights
    return hidden, bias, out, constant


def _initial_weights(width: int, rng: np.random.Generator) -> list[Array]:
    """Weights as Glorot and Bengio (2010) begin, and no constants."""
    ends = math.sqrt(6 / (width + HIDDEN)), math.sqrt(6 / (HIDDEN + 1))
    hidden = rng.uniform(-ends[0], ends[0], (width, HIDDEN))
    out = rng.uniform(-ends[1], ends[1], HIDDEN)
    weights = hidden, np.zeros(HIDDEN), out, np.zeros(1)
    return [each.astype(np.float32) for each in weights]


def _loss_gradient(weights: list[Array], rows: Array, labels: Array) -> Weights:
    """The gradient of the mean logistic loss, with the penalty of the hidden weights."""
    hidden, bias, out, constant = weights
    units = rows @ hidden
    units += bias
    np.maximum(units, 0, out=units)
    odds = np.clip(units @ out + constant, -MAX_LOGIT, MAX_LOGIT)
    error = (1 / (1 + np.exp(-odds)) - labels) / np.float32(len(rows))
    back = np.outer(error, out)
    back *= units > 0
    penalty = np.float32(DECAY / len(rows))
    return (
        rows.T @ back + penalty * hidden,
        back.sum(axis=0),
        error @ units,
        error.sum(keepdims=True),
    )


# Orderings of vectors and forms by classifiers (scikit-learn). A classifier's estimate of ln
# Pr[with | output] / Pr[without | output] orders outputs as the likelihood ratio does. Three are
# learnt: a linear one with one number a coordinate, for many coordinates that each tell very
# little; an additive one (a logistic regression on values that come again and on pieces of each
# coordinate, exact in form for independent noise); and boosted trees, for what does not add up, on
# the totals of each row as well. A small net is learnt besides where a short try of it shows more
# than these three (`net_pays`): products and distances of many coordinates, which trees approach by
# boxes. Each is learnt on both halves of the samples apart, so that each half can judge the other
# one's; the final one is made of both.


MOST, TREES_MOST = 150_000, 400_000
"""Samples of each input that a classifier is trained on; trees are quick, and learn more from
more."""
CELLS, PIECES = 20_000_000, 12
"""Numbers that are learnt from: fewer samples where outputs are long; pieces of a coordinate."""
NET_MOST, NET_FEWEST = 40_000, 100
"""Samples of each input that a net is trained on; with fewer than the second number in a half it is
not tried."""
GLANCE, JUDGES = 4_000, 20_000
"""Samples of each input of the first half that the short try of a net learns from, and samples of
the second half that judge it."""
CHANCE, GAIN = 4.0, 1.1
"""The net is learnt where this try tells the inputs apart by more standard errors than chance
does, and by this many times more than the best of the others."""


@dataclass(frozen=True, eq=False)
class ByClassifier(Distinguisher):
    """Outputs by a trained classifier's score."""

    name: str
    kind: str
    width: int
    columns: OutputColumns
    model: Any = field(repr=False)
    totals: bool = False

    def _score(self, outputs: Outputs) -> Array:
        read = self.columns.matrix_with_totals if self.totals else self.columns.matrix
        with one_thread():
            return np.asarray(self.model.decision_function(read(outputs)), dtype=float)

    def about(self, threshold: float, above: bool) -> str:
        return f"{self.name} score of the output {'≥' if above else '≤'} {spell(threshold)}"


@dataclass(frozen=True, eq=False)
class HalfTables:
    """Outputs of both inputs as matrices, read once for all classifiers."""

    kind: str
    width: int
    columns: OutputColumns
    matrices: tuple[Array, Array]

    @classmethod
    def of(cls, with_: Outputs, without: Outputs, columns: OutputColumns) -> HalfTables:
        """Make the tables of both halves, with their totals."""
        parts = columns.matrix_with_totals(with_), columns.matrix_with_totals(without)
        return cls(with_.kind, with_.width, columns, parts)

    def split(self, cut: tuple[int, int]) -> tuple[HalfTables, HalfTables]:
        """The rows before and after the cut of each input."""
        (one, two), (here, there) = self.matrices, cut
        early, late = (one[:here], two[:there]), (one[here:], two[there:])
        return replace(self, matrices=early), replace(self, matrices=late)

    def label_rows(
        self, most: int, pieces: int = 1, *, totals: bool = False
    ) -> tuple[Array, Array]:
        """Rows of both inputs, fewer where they are long, and which input each is of."""
        count = self.columns.count
        most = max(1000, min(most, CELLS // (pieces * count)))
        parts = [table[:most] if totals else table[:most, :count] for table in self.matrices]
        return np.concatenate(parts), np.repeat([1, 0], [len(part) for part in parts])


@dataclass(frozen=True, eq=False)
class LearntClassifier:
    """What was learnt on the first half, on the second one, and on both.

    Attributes:
        final: the model of both halves.
        scores: three numbers per row, by each of the three.
    """

    name: str
    final: Any
    scores: Any
    totals: bool = False

    def ordering(self, tables: HalfTables) -> ByClassifier:
        """Return the distinguisher that is counted with."""
        columns = tables.columns
        return ByClassifier(self.name, tables.kind, tables.width, columns, self.final, self.totals)

    def cross_scores(self, table: Array, cut: int, columns: int) -> tuple[Array, Array]:
        """For each row of an input the score by what the other half of it taught, and by all."""
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
        """Score rows by the mean of the features alone."""
        return np.asarray(self.each(table)[:, -1])


def learn_linear(first: HalfTables, second: HalfTables) -> LearntClassifier | None:
    """Learn a linear discriminant on both halves."""
    three = LinearProjection.fit(*(half.label_rows(MOST) for half in (first, second)))
    return LearntClassifier("linear", three.last, three.decision_function)


def learn_additive(first: HalfTables, second: HalfTables) -> LearntClassifier | None:
    """The additive one; nothing where every coordinate is constant."""
    three = PiecewiseFeatures.fit(*(half.label_rows(MOST, PIECES) for half in (first, second)))
    return (
        None if three is None else LearntClassifier("additive", three.last, three.decision_function)
    )


def learn_trees(first: HalfTables, second: HalfTables) -> LearntClassifier | None:
    """Learn gradient-boosted trees on both halves."""
    both = MeanScore(tuple(_fit_trees(half) for half in (first, second)))
    return LearntClassifier("boosted trees'", both, both.each, totals=True)


def _fit_trees(tables: HalfTables) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows, labels = tables.label_rows(TREES_MOST, PIECES, totals=True)
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


def learn_net(first: HalfTables, second: HalfTables) -> LearntClassifier:
    """Learn a small net on both halves."""
    halves = (half.label_rows(NET_MOST, PIECES) for half in (first, second))
    with one_thread():
        both = MeanScore(tuple(SmallNet.fit(*half) for half in halves))
    return LearntClassifier("small net's", both, both.each)


def net_pays(first: HalfTables, second: HalfTables, others: list[tuple[Array, Array]]) -> bool:
    """Whether a net that is learnt on some of the first half tells the inputs of the second half
    apart better than the others do, whose scores of the second half are given (with, without)."""
    count = first.columns.count
    smallest = min(len(part) for half in (first, second) for part in half.matrices)
    if count < 2 or smallest < NET_FEWEST:
        return False
    with one_thread():
        net = SmallNet.fit(*first.label_rows(GLANCE, PIECES))
        parts = [net.decision_function(part[:JUDGES, :count]) for part in second.matrices]
    sizes = len(parts[0]), len(parts[1])
    best = max(
        (measure_separation(one[:JUDGES], two[:JUDGES], sizes) for one, two in others), default=0.0
    )
    return measure_separation(parts[0], parts[1], sizes) > max(CHANCE, GAIN * best)


CLASSIFIER_LEARNERS = (learn_linear, learn_additive, learn_trees)
"""The plainest first."""
