"""Features of outputs: columns of numbers, tokens, pairs of tokens, and repeated cells."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from whosin.audit.distinguishers import TAIL_LEVELS, Distinguisher, join_words, log_ratios
from whosin.audit.outputs import (
    FORMS,
    VECTORS,
    BuiltFrom,
    HasToken,
    Outputs,
    Place,
    SkeletonShape,
    Token,
    TokenAt,
    token_words,
)
from whosin.errors import spell
from whosin.exact import Array

# Orderings by what an output contains or lacks: rare words, keys, values at a place. An output is
# judged by its most telling token alone, so the events are unions, "contains this word or that
# one", and reach what one draw in a thousand shows inside outputs that are otherwise all different.
# Tokens are counted on samples that are not counted afterwards.


COMMON_SHARE = 0.05
"""A token in a smaller share of the outputs says nothing by its absence."""
MAX_TOKENS = 5000
"""Tokens that are kept."""

WITH, WITHOUT = 1, -1
TOKEN_PLAINNESS = {HasToken: 0, TokenAt: 1, BuiltFrom: 2, SkeletonShape: 3}
SKELETON_TOKENS = (BuiltFrom, SkeletonShape)
"""Tokens that say how an output is built, and nothing of what it says."""


def count_tokens(outputs: Outputs) -> Counter[Token]:
    """In how many draws each token is."""
    result: Counter[Token] = Counter()
    for each in outputs.descriptions:
        result.update(each.tokens.keys())
    return result


@dataclass(frozen=True)
class TokenCounts:
    """In how many draws of each input a token is.

    Attributes:
        marks: a mark of the draws that have a token, the same for the same draws; of all draws for
            None.
        trials: draws with and without.
    """

    counts: dict[Token, list[int]]
    marks: dict[Token | None, int]
    trials: tuple[int, int]

    @classmethod
    def of(cls, with_: Outputs, without: Outputs) -> TokenCounts:
        """Count what both samples contain."""
        bits = random.Random(2023)
        counts: dict[Token, list[int]] = {}
        marks: dict[Token | None, int] = {None: 0}
        for side, outputs in enumerate((with_, without)):
            for about in outputs.descriptions:
                mark = bits.getrandbits(64)
                marks[None] ^= mark
                for token in about.tokens:
                    counts.setdefault(token, [0, 0])[side] += 1
                    marks[token] = marks.get(token, 0) ^ mark
        return cls(counts, marks, (len(with_), len(without)))

    def distinct_tokens(self, among: tuple[type, ...] = ()) -> dict[int, Token]:
        """Tokens that are in some draws and not in all, by their mark: of those that are in the
        same draws the plainest."""
        result: dict[int, Token] = {}
        for token in sorted(self.counts, key=lambda token: TOKEN_PLAINNESS[type(token)]):
            if 1 < sum(self.counts[token]) < sum(self.trials) and isinstance(token, among or Token):
                result.setdefault(self.marks[token], token)
        return result

    def least_known(self, most: int) -> list[Token]:
        """The tokens of which one knows least beforehand, whether an output has them."""
        total = sum(self.trials)
        known = {
            token: abs(2 * sum(self.counts[token]) - total)
            for token in self.distinct_tokens().values()
        }
        return sorted(known, key=lambda token: known[token])[:most]


@dataclass(frozen=True, eq=False)
class ByToken(Distinguisher):
    """Forms by the token that speaks most for "with" (sign 1) or for "without" (sign −1).

    Attributes:
        present, absent: the ln of the ratio of counts, times the sign, where it is positive.
    """

    sign: int
    present: dict[Token, float] = field(repr=False)
    absent: dict[Token, float] = field(repr=False)
    kind: str = FORMS
    width: int = 0

    @classmethod
    def learn(cls, counted: TokenCounts, sign: int, among: tuple[type, ...] = ()) -> ByToken:
        """From the counts of all tokens, or of those of some kinds."""
        counts, marks, trials = counted.counts, counted.marks, counted.trials
        by_draws = counted.distinct_tokens(among)
        tokens = list(by_draws.values())
        other = [marks[None] ^ mark not in by_draws for mark in by_draws]
        table = np.array([counts[token] for token in tokens]).reshape(-1, 2).T
        here = sign * log_ratios(table[0], table[1], *trials)
        gone = sign * log_ratios(trials[0] - table[0], trials[1] - table[1], *trials)
        common = (table.sum(axis=0) >= COMMON_SHARE * sum(trials)) & np.array(other, dtype=bool)
        return cls(
            sign, _best_tokens(tokens, here), _best_tokens(tokens, np.where(common, gone, 0.0))
        )

    def _score(self, outputs: Outputs) -> Array:
        known: dict[int, float] = {}
        scores = np.empty(len(outputs))
        for number, about in enumerate(outputs.descriptions):
            score = known.get(id(about))
            if score is None:
                result = [self.present[token] for token in about.tokens if token in self.present]
                lacks = (value for token, value in self.absent.items() if token not in about.tokens)
                score = known[id(about)] = max(max(result, default=0.0), next(lacks, 0.0))
            scores[number] = score
        return self.sign * scores

    def about(self, threshold: float, above: bool) -> str:
        least, telling = abs(threshold), above == (self.sign == WITH) and threshold
        if not telling:
            return (
                f"output without a telling part (score {'≥' if above else '≤'} {spell(threshold)})"
            )
        parts = [(v, token_words(token)) for token, v in self.present.items() if v >= least]
        parts += [
            (v, token_words(token, absent=True)) for token, v in self.absent.items() if v >= least
        ]
        parts.sort(key=lambda part: -part[0])
        return f"output {join_words((words for _, words in parts), len(parts))}"


def _best_tokens(tokens: list[Token], scores: Array) -> dict[Token, float]:
    order = np.argsort(-scores, kind="stable")[:MAX_TOKENS]
    return {tokens[index]: float(scores[index]) for index in order.tolist() if scores[index] > 0}


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
MIN_SHARE = 0.002
"""A place in a smaller share of the outputs is left to the tokens."""
NEARLY_ALL = 0.9
"""A place that differs by this part of the largest difference is as good."""
MAX_NUMBER = 1e30
FLUENT, STEPS = 0.5, 64
"""The share of different values in a column that is not one of codes; differences that are kept."""
SYMBOLS, OFTEN = 8, 0.002
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
        """The places and tokens that differ most."""
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
            ends = (
                _finite_values(outputs.values[:, list(side)])
                for side in zip(*self.steps, strict=True)
            )
            before, after = ends
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
    often = np.argsort(-counts, kind="stable")[:SYMBOLS]
    return [float(values[at]) for at in often if counts[at] >= max(2, OFTEN * len(cells))]


def _column_steps(outputs: Outputs, places: list[Place]) -> list[tuple[int, int]]:
    """Neighbouring columns of which hardly any value comes again."""
    kept = sorted(place[0] for place in places)
    fluent = {
        column
        for column in kept
        if len(np.unique(outputs.values[:, column])) > FLUENT * len(outputs)
    }
    return [(one, two) for one, two in pairwise(kept) if two == one + 1 and {one, two} <= fluent][
        :STEPS
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
    return measure_separation(*result[place], trials) >= NEARLY_ALL * measure_separation(
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
        result = _numbers_by_place(with_, without)
    trials = len(with_), len(without)
    return result, sorted(result, key=lambda place: -measure_separation(*result[place], trials))


def _numbers_by_place(with_: Outputs, without: Outputs) -> dict[Place, tuple[Array, Array]]:
    result: dict[Place, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for side, outputs in enumerate((with_, without)):
        for about in outputs.descriptions:
            for place, number in about.numbers.items():
                result[place][side].append(number)
    least = max(2, MIN_SHARE * (len(with_) + len(without)))
    return {
        place: (_finite_values(one), _finite_values(two))
        for place, (one, two) in result.items()
        if len(one) + len(two) >= least and _columns_vary(one, two)
    }


def _columns_vary(one: list[float], two: list[float]) -> bool:
    first = (one or two)[0]
    return any(value != first for values in (one, two) for value in values)


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


# An ordering of vectors by the values in columns of codes: numbers that come again. An output is
# judged by its most telling value alone. Values are counted on samples that are not counted
# afterwards.


REPEATED_SHARE = 0.05
"""A column whose values number at most this share of the draws is one of codes."""
GLANCE_DRAWS = 5000
"""Draws that are looked at first for values that come again."""
SENTINEL, CELLS_OFTEN, CELLS_MOST = 0.0005, 10, 64
"""A value in this share of a column, and so often, is a code among numbers of which hardly any
comes again; this many of them are kept."""


def code_values(column: Array) -> tuple[Array, Array] | None:
    """The values of a column that come again, in order, and how often each is there: all of them in
    a column of codes, the commonest in another; nothing where there are none.

    Of `GLANCE_DRAWS` draws with v values at least about GLANCE²/2v come again: where not half as
    many do, the column is not one of codes. It is sorted all the same where a value of the first
    draws comes again.
    """
    most = REPEATED_SHARE * len(column)
    some = column[:: max(1, len(column) // GLANCE_DRAWS)]
    again = len(some) - len(np.unique(some))
    if not again:
        return None
    values, counts = np.unique(column, return_counts=True)
    if again >= min(len(some), len(some) ** 2 / (2 * most)) / 4 and len(values) <= most:
        return (values, counts) if len(values) > 1 else None
    often = np.flatnonzero(counts >= max(CELLS_OFTEN, SENTINEL * len(column)))
    kept = np.sort(often[np.argsort(-counts[often], kind="stable")[:CELLS_MOST]])
    return (values[kept], counts[kept]) if len(kept) else None


@dataclass(frozen=True)
class CellCounts:
    """How often each value of each column of codes is there.

    Attributes:
        columns: values, and their counts with and without.
        trials: draws with and without.
    """

    width: int
    columns: dict[int, tuple[Array, Array, Array]]
    trials: tuple[int, int]

    @classmethod
    def of(cls, with_: Outputs, without: Outputs) -> CellCounts:
        """Count what both samples contain."""
        columns = {}
        for column in range(with_.width):
            samples = [each.values[:, column].astype(np.float64) for each in (with_, without)]
            known = code_values(np.concatenate(samples))
            if known is not None:
                hits, other = (_count_values(known[0], each) for each in samples)
                columns[column] = known[0], hits, other
        return cls(with_.width, columns, (len(with_), len(without)))


def _count_values(values: Array, column: Array) -> Array:
    """How often each of the values is in a column."""
    places = np.minimum(np.searchsorted(values, column), len(values) - 1)
    return np.bincount(places[values[places] == column], minlength=len(values))


@dataclass(frozen=True, eq=False)
class ByCell(Distinguisher):
    """Vectors by the most telling value in a column whose values come again."""

    sign: int
    width: int
    columns: dict[int, tuple[Array, Array]] = field(repr=False)
    kind: str = VECTORS

    @classmethod
    def learn(cls, counted: CellCounts, sign: int) -> ByCell:
        """From the counts of the values of each column of codes."""
        columns = {}
        for column, (values, hits, other) in counted.columns.items():
            logs = sign * log_ratios(hits, other, *counted.trials)
            columns[column] = values, np.maximum(logs, 0.0)
        return cls(sign, counted.width, columns)

    def _score(self, outputs: Outputs) -> Array:
        best = np.zeros(len(outputs))
        for column, (values, scores) in self.columns.items():
            cells = outputs.values[:, column].astype(np.float64)
            places = np.minimum(np.searchsorted(values, cells), len(values) - 1)
            best = np.maximum(best, np.where(values[places] == cells, scores[places], 0.0))
        return self.sign * best

    def about(self, threshold: float, above: bool) -> str:
        least = abs(threshold)
        if not threshold or above != (self.sign > 0):
            return (
                f"output without a telling value (score {'≥' if above else '≤'} {spell(threshold)})"
            )
        parts = [
            (float(score), token_words(TokenAt((column,), float(value))))
            for column, (values, scores) in self.columns.items()
            for value, score in zip(values, scores, strict=True)
            if score >= least
        ]
        parts.sort(key=lambda part: -part[0])
        return f"output {join_words((words for _, words in parts), len(parts))}"


# An ordering by two parts of an output at once: this word and that one, or not that one. Parts that
# tell nothing each by itself may tell much together (a sex and an illness, two answers that should
# be independent). The commonest tokens of forms, and values of columns of codes, are taken as
# *literals*, there or not there; every pair of literals is counted, and an output is judged by its
# most telling pair. Pairs are counted on samples that are not counted afterwards.


TOKEN_PAIRS_TOKENS = 48
"""Tokens of which pairs are made: the ones of which one knows least beforehand."""
TOKEN_PAIRS_KEPT = 256
"""Pairs that are kept: the ones whose counts differ most."""
TOKEN_PAIRS_LOOKED = 50_000
"""Draws of each input in which pairs are counted."""
DOUBT_COUNT = 10
"""A pair that this many draws have is believed by half: there are many pairs."""
NO_CODE = np.uint16(2**16 - 1)
ROWS_PER_BLOCK = 16_384
"""Draws that are judged at a time, so that they stay near."""
Literals = tuple[int, int]


@dataclass(frozen=True)
class PairCounts:
    """How many draws of each input have both of two literals."""

    kind: str
    width: int
    tokens: list[Token]
    counts: tuple[Array, Array]
    trials: tuple[int, int]

    @classmethod
    def of(cls, with_: Outputs, without: Outputs, tokens: list[Token]) -> PairCounts:
        """Count what both samples contain."""
        samples = [
            each.part(0, TOKEN_PAIRS_LOOKED) if len(each) > TOKEN_PAIRS_LOOKED else each
            for each in (with_, without)
        ]
        counts = []
        for outputs in samples:
            literals = _literal_rows(outputs, tokens).astype(np.float32)
            counts.append(np.rint(literals @ literals.T))
        trials = len(samples[0]), len(samples[1])
        return cls(with_.kind, with_.width, tokens, (counts[0], counts[1]), trials)


@dataclass(frozen=True, eq=False)
class ByPair(Distinguisher):
    """Outputs by the pair that speaks most for "with" (sign 1) or for "without" (sign −1).

    Attributes:
        pairs: of literals; beyond the tokens, a literal is the absence of one.
        scores: the ln of the ratio of counts, times the sign, the most telling first.
    """

    kind: str
    width: int
    sign: int
    tokens: list[Token] = field(repr=False)
    pairs: list[Literals] = field(repr=False)
    scores: list[float] = field(repr=False)

    @classmethod
    def learn(cls, counted: PairCounts, sign: int) -> ByPair:
        """The pairs whose counts differ most."""
        tokens, trials = counted.tokens, counted.trials
        one, two = np.triu_indices(2 * len(tokens), 1)
        hits, other = (count[one, two] for count in counted.counts)
        total = hits + other
        logs = sign * log_ratios(hits, other, *trials) * (total / (total + DOUBT_COUNT))
        spread = np.abs(hits / trials[0] - other / trials[1]) / np.sqrt(total + 1)
        proper = (logs > 0) & (one % len(tokens) != two % len(tokens))
        best = np.argsort(-np.where(proper, spread, -1.0), kind="stable")[:TOKEN_PAIRS_KEPT]
        best = best[proper[best]]
        best = best[np.argsort(-logs[best], kind="stable")]
        pairs = list(zip(one[best].tolist(), two[best].tolist(), strict=True))
        return cls(counted.kind, counted.width, sign, tokens, pairs, logs[best].tolist())

    def _score(self, outputs: Outputs) -> Array:
        if not self.pairs:
            return np.zeros(len(outputs))
        literals = _literal_rows(outputs, self.tokens)
        starts = range(0, len(outputs), ROWS_PER_BLOCK)
        ranks = [self._ranks(literals[:, start : start + ROWS_PER_BLOCK]) for start in starts]
        scores = np.append(self.scores, 0.0)[np.concatenate(ranks)]
        return np.asarray(self.sign * scores)

    def _ranks(self, literals: Array) -> Array:
        """The most telling pair of each draw, by its number; one beyond the last for none."""
        lacks = np.where(literals, NO_CODE * 0, NO_CODE)  # all bits where a draw lacks the literal
        ranks = np.full(literals.shape[1], len(self.pairs), dtype=np.uint16)
        here = np.empty_like(ranks)
        for rank, (one, two) in enumerate(self.pairs):
            np.bitwise_or(lacks[one], lacks[two], out=here)
            np.bitwise_or(here, np.uint16(rank), out=here)
            np.minimum(ranks, here, out=ranks)
        return ranks

    def _words(self, pair: Literals) -> str:
        size = len(self.tokens)
        return " and ".join(token_words(self.tokens[at % size], absent=at >= size) for at in pair)

    def about(self, threshold: float, above: bool) -> str:
        if not threshold or above != (self.sign > 0):
            return (
                f"output without a telling pair (score {'≥' if above else '≤'} {spell(threshold)})"
            )
        count = sum(score >= abs(threshold) for score in self.scores)
        return f"output {join_words((self._words(pair) for pair in self.pairs[:count]), count)}"


def telling_cells(with_: Outputs, without: Outputs) -> list[Token]:
    """Values of columns of codes, the commonest but for the commonest of each column."""
    both = np.concatenate([each.values[:TOKEN_PAIRS_LOOKED] for each in (with_, without)]).astype(
        np.float64
    )
    counts: Counter[Token] = Counter()
    for column in range(both.shape[1]):
        known = code_values(both[:, column])
        if known is not None:
            values, hits = known
            kept = np.argsort(-hits, kind="stable")[1 : 1 + TOKEN_PAIRS_TOKENS].tolist()
            counts.update({TokenAt((column,), float(values[at])): int(hits[at]) for at in kept})
    return [token for token, _count in counts.most_common(TOKEN_PAIRS_TOKENS)]


def _literal_rows(outputs: Outputs, tokens: Sequence[Token]) -> Array:
    """Which draws have each token, and which have it not: a row per literal."""
    table = np.zeros((len(tokens), len(outputs)), dtype=bool)
    if outputs.kind == VECTORS:
        for index, token in enumerate(tokens):
            if isinstance(token, TokenAt):
                table[index] = outputs.values[:, token.place[0]] == token.symbol
    else:
        rows = {token: index for index, token in enumerate(tokens)}
        for draw, about in enumerate(outputs.descriptions):
            for token in rows.keys() & about.tokens.keys():
                table[rows[token], draw] = True
    return np.concatenate([table, ~table])
