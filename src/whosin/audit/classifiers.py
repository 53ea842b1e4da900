"""Distinguishers learnt by classifiers: the columns they see, additive, trees, linear and nets.

Regressions, trees and nets are those of scikit-learn. What the additive one sees is written out:
with scikit-learn's splines or bins PrefixSum of DP-Sniper's table took 7.3 or 3.9 processor seconds
against 1.2 here (bounds .909, .899 and .915); without it SVT3 falls from 0.187 to 0.150. So is the
linear one, whose weights are drawn towards their mean: of Laplace noise on twenty copies it alone
shows anything (0.032 with half of 10^6 draws; scikit-learn's linear discriminant and logistic
regression nothing).
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from whosin.audit.distinguishers import MIN_SHARE, TAIL_LEVELS, Distinguisher, count_tokens
from whosin.audit.sampling import VECTORS, Outputs, one_thread
from whosin.audit.snapshots import Place, Token
from whosin.errors import spell
from whosin.exact import Array

# The parts of outputs that differ most between two inputs, as a matrix for classifiers. Every place
# of every output is looked at by itself, however far behind; the ones that differ most, as the
# largest standardised difference of the frequencies of half-lines, go on. Rows of numbers have
# totals besides, which do not ask where in the row something is (`row_totals`). This happens on
# samples that are not counted afterwards.


MAX_COLUMNS = 128
"""Numbers of an output that classifiers look at together."""
MAX_TOKEN_COLUMNS = 32
"""Tokens that they look at besides."""
MAX_DRAWS = 20_000
"""Draws of each input in which places are compared."""
NEARLY_BEST_SHARE = 0.9
"""A place that differs by this part of the largest difference is as good."""
MAX_NUMBER = 1e30
FLUENT_SHARE, MAX_STEPS = 0.5, 64
"""The share of different values in a column that is not one of codes; differences that are kept."""
MAX_SYMBOLS, MIN_SYMBOL_SHARE = 8, 0.002
"""Values that are counted in a row wherever they are, and the share of all cells that each has at
least."""
SEPARATION_LEVELS = np.sort(
    np.concatenate([TAIL_LEVELS, np.arange(1, 16) / 16, 1 - np.array(TAIL_LEVELS)])
)


@dataclass(frozen=True, eq=False)
class OutputColumns:
    """Outputs as a matrix: numbers at places (with their medians, where there is none), whether a
    place is there, and whether a token is.

    Attributes:
        places: the one that differs most first.
        steps: neighbouring columns of vectors whose differences are columns, too: of running sums
            they are what was added.
        left_out: places that there were besides.
        symbols: values of vectors that come again in many cells.
    """

    vectors: bool
    places: list[Place]
    medians: list[float]
    partial: list[Place] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    left_out: int = 0
    steps: list[tuple[int, int]] = field(default_factory=list)
    symbols: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, with_: Outputs, without: Outputs) -> OutputColumns:
        with_, without = with_.part(0, MAX_DRAWS), without.part(0, MAX_DRAWS)
        trials = len(with_), len(without)
        result, ranked = _rank_places(with_, without)
        places = ranked[:MAX_COLUMNS]
        medians = [float(np.median(np.concatenate(result[place]))) for place in places]
        partial = [p for p in places if len(result[p][0]) + len(result[p][1]) < sum(trials)]
        left_out = len(ranked) - len(places)
        if with_.kind == VECTORS:
            steps, symbols = _column_steps(with_, places), _common_symbols(with_, without)
            return cls(True, places, medians, partial, [], left_out, steps, symbols)
        return cls(False, places, medians, partial, _token_columns(with_, without), left_out)

    @property
    def count(self) -> int:
        return len(self.places) + len(self.partial) + len(self.tokens) + len(self.steps)

    def matrix(self, outputs: Outputs) -> Array:
        """A row per draw: its numbers."""
        if self.vectors:
            chosen = _finite_values(outputs.values[:, [place[0] for place in self.places]])
            if not self.steps:
                return chosen
            before, after = (
                _finite_values(outputs.values[:, list(side)])
                for side in zip(*self.steps, strict=True)
            )
            return np.concatenate([chosen, after - before], axis=1)
        table = np.zeros((len(outputs), self.count))
        pairs = list(zip(self.places, self.medians, strict=True))
        known: dict[int, int] = {}
        for row, about in enumerate(outputs.descriptions):
            if id(about) in known:
                table[row] = table[known[id(about)]]
                continue
            known[id(about)] = row
            table[row] = [
                *(about.numbers.get(place, median) for place, median in pairs),
                *(place in about.numbers for place in self.partial),
                *(token in about.tokens for token in self.tokens),
            ]
        return _finite_values(table)

    def matrix_with_totals(self, outputs: Outputs) -> Array:
        """The same, and the totals of each row of vectors."""
        table = self.matrix(outputs)
        if not self.vectors or outputs.width < 2:
            return table
        return np.concatenate([table, row_totals(outputs.values, self.symbols)], axis=1)


def row_totals(rows: Array, symbols: list[float]) -> Array:
    """How often each symbol is in a row, and the sum, the least and the largest of its other
    numbers, 0 where there are none.

    Where an answer stands matters less, in many mechanisms, than how many others there are and how
    large it is: these few columns show both at once.
    """
    values = _finite_values(rows)
    other = np.ones(values.shape, dtype=bool)
    totals = []
    for symbol in symbols:
        here = values == symbol
        other &= ~here
        totals.append(here.sum(axis=1))
    none = ~other.any(axis=1)
    rest = np.where(other, values, 0.0).sum(axis=1)
    least = np.where(other, values, np.inf).min(axis=1)
    largest = np.where(other, values, -np.inf).max(axis=1)
    ends = [np.where(none, 0.0, end) for end in (least, largest)]
    return np.column_stack([*totals, rest, *ends])


def _common_symbols(with_: Outputs, without: Outputs) -> list[float]:
    """The values that come again in many cells, the commonest first."""
    cells = np.concatenate([_finite_values(each.values).ravel() for each in (with_, without)])
    values, counts = np.unique(cells, return_counts=True)
    often = np.argsort(-counts, kind="stable")[:MAX_SYMBOLS]
    least = max(2, MIN_SYMBOL_SHARE * len(cells))
    return [float(values[at]) for at in often if counts[at] >= least]


def _column_steps(outputs: Outputs, places: list[Place]) -> list[tuple[int, int]]:
    """Neighbouring columns of which hardly any value comes again."""
    kept = sorted(place[0] for place in places)
    fluent = {
        column
        for column in kept
        if len(np.unique(outputs.values[:, column])) > FLUENT_SHARE * len(outputs)
    }
    return [(one, two) for one, two in pairwise(kept) if two == one + 1 and {one, two} <= fluent][
        :MAX_STEPS
    ]


def _finite_values(values: object) -> Array:
    return np.clip(np.asarray(values, dtype=np.float64), -MAX_NUMBER, MAX_NUMBER)


def is_among_the_best(place: Place, with_: Outputs, without: Outputs) -> bool:
    """Whether a place differs nearly as much as the one that differs most."""
    with_, without = with_.part(0, MAX_DRAWS), without.part(0, MAX_DRAWS)
    result, ranked = _rank_places(with_, without)
    trials = len(with_), len(without)
    if place not in result:
        return False
    return measure_separation(*result[place], trials) >= NEARLY_BEST_SHARE * measure_separation(
        *result[ranked[0]], trials
    )


def _rank_places(
    with_: Outputs, without: Outputs
) -> tuple[dict[Place, tuple[Array, Array]], list[Place]]:
    """The numbers at every place, and the places, the one that differs most first."""
    if with_.kind == VECTORS:
        columns = [_finite_values(each.values).T for each in (with_, without)]
        result = {(i,): (one, two) for i, (one, two) in enumerate(zip(*columns, strict=True))}
    else:
        found: dict[Place, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
        for side, outputs in enumerate((with_, without)):
            for about in outputs.descriptions:
                for place, number in about.numbers.items():
                    found[place][side].append(number)
        least = max(2, MIN_SHARE * (len(with_) + len(without)))
        result = {
            place: (_finite_values(one), _finite_values(two))
            for place, (one, two) in found.items()
            if len(one) + len(two) >= least and len({*one, *two}) > 1
        }
    trials = len(with_), len(without)
    return result, sorted(result, key=lambda place: -measure_separation(*result[place], trials))


def measure_separation(one: Array, two: Array, trials: tuple[int, int]) -> float:
    """How far two columns differ: the largest standardised difference of frequencies, over
    half-lines and the share of draws that have the place at all."""
    both = np.concatenate([one, two])
    if not len(both):
        return 0.0
    edges = np.unique(np.quantile(both, SEPARATION_LEVELS, method="inverted_cdf"))
    below = [np.searchsorted(np.sort(each), edges, side="left") for each in (one, two)]
    hits = [
        np.concatenate([low, len(each) - low]) for low, each in zip(below, (one, two), strict=True)
    ]
    hits = [np.append(count, len(each)) for count, each in zip(hits, (one, two), strict=True)]
    pooled = (hits[0] + hits[1] + 0.5) / (sum(trials) + 1)
    spread = np.sqrt(pooled * (1 - pooled) * sum(1 / size for size in trials))
    return float((np.abs(hits[0] / trials[0] - hits[1] / trials[1]) / spread).max())


def _token_columns(with_: Outputs, without: Outputs) -> list[Token]:
    counts: list[Any] = [count_tokens(each) for each in (with_, without)]
    sizes, total = (len(with_), len(without)), len(with_) + len(without)

    def strength(token: Token) -> float:
        hits = counts[0][token], counts[1][token]
        share = sum(hits) / total
        spread = math.sqrt(share * (1 - share) * (1 / sizes[0] + 1 / sizes[1]))
        return float(abs(hits[0] / sizes[0] - hits[1] / sizes[1]) / spread)

    known = dict.fromkeys([*counts[0], *counts[1]])
    some = [token for token in known if 3 <= counts[0][token] + counts[1][token] < total]
    return sorted(some, key=lambda token: -strength(token))[:MAX_TOKEN_COLUMNS]


# A logistic regression on pieces of each coordinate, learnt on two halves of a sample. Both halves
# share the pieces, which do not depend on which input a row is of; the mean of their scores is as
# good as what would be learnt from both at once, up to terms of the second order.


QUANTILE_LEVELS = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
"""Quantiles between which the additive score is linear; it is constant outside."""
MAX_ATOMS, MIN_ATOM_SHARE, MAX_KNOT_DRAWS = 8, 0.005, 50_000
"""Values of a coordinate that are told apart, the share of the draws that each has at least, and
how many draws of each half are looked at for them, and for the ends of pieces."""
ROWS_PER_BLOCK = 8192
"""Rows that are worked on at a time."""
Labelled = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class PiecewiseFeatures:
    """Logistic regressions on the values of each coordinate that come again, and on how far it is
    into each of its pieces where it has another value; weights of each half, and their mean."""

    knots: list[Array]
    atoms: list[Array]
    weights: Array

    @classmethod
    def fit(cls, first: Labelled, second: Labelled) -> PiecewiseFeatures | None:
        """Learn from each half; nothing where every coordinate is constant."""
        from sklearn.linear_model import LogisticRegression

        some = [rows[:: max(1, len(rows) // MAX_KNOT_DRAWS)] for rows, _labels in (first, second)]
        columns = np.concatenate(some).T
        atoms = [_find_atoms(column) for column in columns]
        knots = [_find_knots(column, own) for column, own in zip(columns, atoms, strict=True)]
        start = cls(knots, atoms, np.zeros(0))
        if start.count == 1:
            return None
        weights = []
        for rows, labels in (first, second):
            model = LogisticRegression(solver="newton-cholesky")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it goes on by another solver, and may stop early
                fitted = model.fit(start._features(rows)[:-1].T, labels)
            weights.append(np.append(fitted.coef_, fitted.intercept_))
        return replace(start, weights=np.column_stack([*weights, sum(weights) / 2]))

    @property
    def count(self) -> int:
        """Weights: of atoms, pieces, and a constant."""
        atoms = sum(len(own) for own in self.atoms)
        return 1 + atoms + sum(max(0, len(own) - 1) for own in self.knots)

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

    def score_halves(self, table: Array) -> Array:
        """The log odds of "with", by what each half taught, and by both."""
        weights = self.weights.astype(np.float32)
        starts = range(0, len(table), ROWS_PER_BLOCK)
        scores = [self._features(table[at : at + ROWS_PER_BLOCK]).T @ weights for at in starts]
        return np.concatenate(scores)


def _find_atoms(column: Array) -> Array:
    """The values that come again often; one may be left out where there are no others."""
    values, counts = np.unique(column, return_counts=True)
    often = np.argsort(-counts, kind="stable")[:MAX_ATOMS]
    often = often[counts[often] >= max(2, MIN_ATOM_SHARE * len(column))]
    return np.sort(values[often if len(often) < len(values) else often[1:]])


def _find_knots(column: Array, atoms: Array) -> Array:
    """Where pieces of the other values begin and end."""
    rest = column[~np.isin(column, atoms)] if len(atoms) else column
    return np.unique(np.quantile(rest, QUANTILE_LEVELS)) if len(rest) else np.zeros(0)


RIDGE_PENALTY = 1e-9
MAX_QUARTILE_ROWS = 10_000
"""Rows at which the quartiles are taken."""
QUARTILE_LEVELS = (0.25, 0.75)


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
    def fit(cls, rows: Array, labels: Array) -> LinearProjection:
        """Learn from rows of both inputs, in closed form."""
        some = rows[:: max(1, len(rows) // MAX_QUARTILE_ROWS)]
        low, high = np.quantile(some, QUARTILE_LEVELS, axis=0)
        start, moves = cls(low, high, np.zeros(len(low))), high > low
        if not moves.any():
            return start
        features = start._features(rows)
        shift = features[labels == 1].mean(axis=0) - features[labels == 0].mean(axis=0)
        spread = np.cov(features.T).reshape(len(low), -1) + RIDGE_PENALTY * np.eye(len(low))
        weights = np.linalg.solve(spread, shift)
        doubt = np.diag(np.linalg.inv(spread)) * (1 / np.bincount(labels)).sum()
        mean = weights[moves].mean()
        extra = max(0.0, float(weights[moves].var() - doubt[moves].mean()))
        drawn = mean + extra / (extra + doubt) * (weights - mean)
        return replace(start, weights=np.where(moves, drawn, 0.0))

    def _features(self, table: Array) -> Array:
        width = np.where(self.high > self.low, self.high - self.low, 1.0)
        features = (table - self.low) / width
        return np.asarray(np.clip(features, 0, 1, out=features))

    def decision_function(self, table: Array) -> Array:
        """The log odds of "with", but for a constant."""
        return np.asarray(self._features(table) @ self.weights)


# Orderings of vectors and forms by classifiers (scikit-learn). A classifier's estimate of ln
# Pr[with | output] / Pr[without | output] orders outputs as the likelihood ratio does. Three are
# learnt: an additive one (a logistic regression on values that come again and on pieces of each
# coordinate, exact in form for independent noise); boosted trees, for what does not add up, on the
# totals of each row as well; and a linear one with one number a coordinate, for many coordinates
# that each tell very little: it is the last, to be chosen where it promises clearly more, because
# its promises are the least reliable (PrefixSum: 0.857 so, 0.789 as the first). A small net is
# learnt besides where a short try of it shows more than these three (`net_pays`): products and
# distances of many coordinates, which trees approach by boxes. Each is learnt on both halves of the
# samples apart, so that each half can judge the other one's; the final score is the mean of both,
# but for the linear one, which learns more from both at once (LaplaceParallel: 0.026, not 0.015).


MAX_TRAINING_DRAWS, MAX_TREE_DRAWS = 150_000, 400_000
"""Samples of each input that a classifier is trained on; trees are quick, and learn more from
more."""
MAX_TRAINING_CELLS, PIECE_COUNT = 20_000_000, 12
"""Numbers that are learnt from: fewer samples where outputs are long; pieces of a coordinate."""
MAX_NET_DRAWS, MIN_NET_DRAWS = 40_000, 100
"""Samples of each input that a net is trained on; with fewer than the second number in a half it is
not tried."""
MAX_TRIAL_DRAWS, MAX_JUDGING_DRAWS = 4_000, 20_000
"""Samples of each input of the first half that the short try of a net learns from, and samples of
the second half that judge it."""
NET_CUT_OFF, MIN_CHANCE = 3.0, 1e-13
"""Quartile ranges from the median at which a net's numbers are cut off, and its
least probability."""
MIN_NET_SEPARATION, MIN_NET_GAIN = 4.0, 1.1
"""The net is learnt where this try tells the inputs apart by more standard errors than chance
does, and by this many times more than the best of the others."""


@dataclass(frozen=True, eq=False)
class HalfModels:
    """A model of scikit-learn for each half, and one of both; or the mean of the two."""

    models: tuple[Any, ...]

    def score_halves(self, table: Array) -> Array:
        """The log odds of "with", by what each half taught, and by both."""
        scores = [score_rows(model, table) for model in self.models]
        return np.column_stack(scores if len(scores) > 2 else [*scores, sum(scores) / 2])


def score_rows(model: Any, table: Array) -> Array:
    """The log odds of "with" by a model of scikit-learn."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(table))
    chances = np.clip(model.predict_proba(table)[:, 1], MIN_CHANCE, 1 - MIN_CHANCE)
    return np.asarray(np.log(chances / (1 - chances)))


@dataclass(frozen=True, eq=False)
class ByClassifier(Distinguisher):
    """Outputs by the score of a classifier that was trained on each half, and on both; `totals`
    where it sees the totals of rows."""

    name: str
    kind: str
    width: int
    columns: OutputColumns
    model: HalfModels | PiecewiseFeatures = field(repr=False)
    totals: bool = False

    def score_halves(self, table: Array) -> Array:
        """The scores of rows with their totals, by each half and by both."""
        with one_thread():
            return self.model.score_halves(table if self.totals else table[:, : self.columns.count])

    def _score(self, outputs: Outputs) -> Array:
        read = self.columns.matrix_with_totals if self.totals else self.columns.matrix
        return np.asarray(self.score_halves(read(outputs))[:, 2], dtype=float)

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
        parts = columns.matrix_with_totals(with_), columns.matrix_with_totals(without)
        return cls(with_.kind, with_.width, columns, parts)

    def split(self, cut: tuple[int, int]) -> tuple[HalfTables, HalfTables]:
        """The rows before and after the cut of each input."""
        (one, two), (here, there) = self.matrices, cut
        early, late = (one[:here], two[:there]), (one[here:], two[there:])
        return replace(self, matrices=early), replace(self, matrices=late)

    def label_rows(self, most: int, pieces: int = 1, *, totals: bool = False) -> Labelled:
        """Rows of both inputs, fewer where they are long, and which input each is of."""
        count = self.columns.count
        most = max(1000, min(most, MAX_TRAINING_CELLS // (pieces * count)))
        parts = [table[:most] if totals else table[:most, :count] for table in self.matrices]
        return np.concatenate(parts), np.repeat([1, 0], [len(part) for part in parts])

    def ordering(self, name: str, model: Any, *, totals: bool = False) -> ByClassifier:
        return ByClassifier(name, self.kind, self.width, self.columns, model, totals)


def learn_linear(first: HalfTables, second: HalfTables) -> ByClassifier:
    one, two = (half.label_rows(MAX_TRAINING_DRAWS) for half in (first, second))
    both = np.concatenate([one[0], two[0]]), np.concatenate([one[1], two[1]])
    models = tuple(LinearProjection.fit(*rows) for rows in (one, two, both))
    return first.ordering("linear", HalfModels(models))


def learn_additive(first: HalfTables, second: HalfTables) -> ByClassifier | None:
    """The additive one; nothing where every coordinate is constant."""
    rows = [half.label_rows(MAX_TRAINING_DRAWS, PIECE_COUNT) for half in (first, second)]
    model = PiecewiseFeatures.fit(*rows)
    return None if model is None else first.ordering("additive", model)


def learn_trees(first: HalfTables, second: HalfTables) -> ByClassifier:
    models = HalfModels((_fit_trees(first), _fit_trees(second)))
    return first.ordering("boosted trees'", models, totals=True)


def _fit_trees(tables: HalfTables) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    rows, labels = tables.label_rows(MAX_TREE_DRAWS, PIECE_COUNT, totals=True)
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


def learn_net(first: HalfTables, second: HalfTables) -> ByClassifier:
    models = HalfModels((fit_net(first, MAX_NET_DRAWS), fit_net(second, MAX_NET_DRAWS)))
    return first.ordering("small net's", models)


def fit_net(tables: HalfTables, most: int) -> Any:
    """Learn a net with one hidden layer, on numbers that are cut off beyond some quartile ranges.
    The same rows give the same net."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, RobustScaler

    rows, labels = tables.label_rows(most, PIECE_COUNT)
    batch = min(len(rows), max(64, min(512, len(rows) // 64)))
    net = MLPClassifier(
        64, alpha=1e-3, batch_size=batch, learning_rate_init=0.01, max_iter=10, random_state=0
    )
    cut_off = FunctionTransformer(np.clip, kw_args={"a_min": -NET_CUT_OFF, "a_max": NET_CUT_OFF})
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # ten passes are enough to compare
        return make_pipeline(RobustScaler(), cut_off, net).fit(rows, labels)


def net_pays(first: HalfTables, second: HalfTables, others: list[tuple[Array, Array]]) -> bool:
    """Whether a net that is learnt on some of the first half tells the inputs of the second half
    apart better than the others do, whose scores of the second half are given (with, without)."""
    count = first.columns.count
    smallest = min(len(part) for half in (first, second) for part in half.matrices)
    if count < 2 or smallest < MIN_NET_DRAWS:
        return False
    with one_thread():
        net = fit_net(first, MAX_TRIAL_DRAWS)
        parts = [score_rows(net, part[:MAX_JUDGING_DRAWS, :count]) for part in second.matrices]
    sizes = len(parts[0]), len(parts[1])

    def tell_apart(one: Array, two: Array) -> float:
        return measure_separation(one[:MAX_JUDGING_DRAWS], two[:MAX_JUDGING_DRAWS], sizes)

    best = max((tell_apart(one, two) for one, two in others), default=0.0)
    return tell_apart(parts[0], parts[1]) > max(MIN_NET_SEPARATION, MIN_NET_GAIN * best)


CLASSIFIER_LEARNERS = (learn_additive, learn_trees, learn_linear)
"""One that comes later must promise clearly more."""
