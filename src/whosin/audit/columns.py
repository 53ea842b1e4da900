"""The parts of outputs that differ most between two worlds, as a matrix for classifiers.

Contract: every place of every output is looked at by itself, however far behind; the ones that
differ most, as the largest standardised difference of the frequencies of half-lines, go on. Rows of
numbers have totals besides, which do not ask where in the row something is (`row_totals`). This
happens on samples that are not counted afterwards.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from whosin.audit.describing import Place, Token
from whosin.audit.orderings import TAILS
from whosin.audit.outputs import VECTORS, Outputs
from whosin.audit.tokens import count_tokens
from whosin.exact import Array

MOST = 128
"""Numbers of an output that classifiers look at together."""
TOKENS = 32
"""Tokens that they look at besides."""
LOOKED = 20_000
"""Draws of each world in which places are compared."""
FEWEST = 0.002
"""A place in a smaller share of the outputs is left to the tokens."""
NEARLY = 0.9
"""A place that differs by this part of the largest difference is as good."""
LARGEST = 1e30
FLUENT, STEPS = 0.5, 64
"""The share of different values in a column that is not one of codes; differences that are kept."""
SYMBOLS, OFTEN = 8, 0.002
"""Values that are counted in a row wherever they are, and the share of all cells that each has at
least."""
LEVELS = np.sort(np.concatenate([TAILS, np.arange(1, 16) / 16, 1 - np.array(TAILS)]))


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
        with_, without = with_.part(0, LOOKED), without.part(0, LOOKED)
        trials = len(with_), len(without)
        result, ranked = _ranked(with_, without)
        places = ranked[:MOST]
        medians = [float(np.median(np.concatenate(result[place]))) for place in places]
        partial = [p for p in places if len(result[p][0]) + len(result[p][1]) < sum(trials)]
        left_out = len(ranked) - len(places)
        if with_.kind == VECTORS:
            steps, symbols = _steps(with_, places), _symbols(with_, without)
            return cls(True, places, medians, partial, [], left_out, steps, symbols)
        return cls(False, places, medians, partial, _tokens(with_, without), left_out)

    @property
    def count(self) -> int:
        return len(self.places) + len(self.partial) + len(self.tokens) + len(self.steps)

    def matrix(self, outputs: Outputs) -> Array:
        """A row per draw: its numbers."""
        if self.vectors:
            chosen = _finite(outputs.values[:, [place[0] for place in self.places]])
            if not self.steps:
                return chosen
            ends = (
                _finite(outputs.values[:, list(side)]) for side in zip(*self.steps, strict=True)
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
        return _finite(table)

    def whole(self, outputs: Outputs) -> Array:
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
    values = _finite(rows)
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


def _symbols(with_: Outputs, without: Outputs) -> list[float]:
    """The values that come again in many cells, the commonest first."""
    cells = np.concatenate([_finite(each.values).ravel() for each in (with_, without)])
    values, counts = np.unique(cells, return_counts=True)
    often = np.argsort(-counts, kind="stable")[:SYMBOLS]
    return [float(values[at]) for at in often if counts[at] >= max(2, OFTEN * len(cells))]


def _steps(outputs: Outputs, places: list[Place]) -> list[tuple[int, int]]:
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


def _finite(values: object) -> Array:
    return np.clip(np.asarray(values, dtype=np.float64), -LARGEST, LARGEST)


def is_among_the_best(place: Place, with_: Outputs, without: Outputs) -> bool:
    """Whether a place differs nearly as much as the one that differs most."""
    with_, without = with_.part(0, LOOKED), without.part(0, LOOKED)
    result, ranked = _ranked(with_, without)
    trials = len(with_), len(without)
    if place not in result:
        return False
    return separation(*result[place], trials) >= NEARLY * separation(*result[ranked[0]], trials)


def _ranked(
    with_: Outputs, without: Outputs
) -> tuple[dict[Place, tuple[Array, Array]], list[Place]]:
    """The numbers at every place, and the places, the one that differs most first."""
    if with_.kind == VECTORS:
        columns = [_finite(each.values).T for each in (with_, without)]
        result = {(i,): (one, two) for i, (one, two) in enumerate(zip(*columns, strict=True))}
    else:
        result = _by_place(with_, without)
    trials = len(with_), len(without)
    return result, sorted(result, key=lambda place: -separation(*result[place], trials))


def _by_place(with_: Outputs, without: Outputs) -> dict[Place, tuple[Array, Array]]:
    result: dict[Place, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for world, outputs in enumerate((with_, without)):
        for about in outputs.descriptions:
            for place, number in about.numbers.items():
                result[place][world].append(number)
    least = max(2, FEWEST * (len(with_) + len(without)))
    return {
        place: (_finite(one), _finite(two))
        for place, (one, two) in result.items()
        if len(one) + len(two) >= least and _varies(one, two)
    }


def _varies(one: list[float], two: list[float]) -> bool:
    first = (one or two)[0]
    return any(value != first for values in (one, two) for value in values)


def separation(one: Array, two: Array, trials: tuple[int, int]) -> float:
    """How far two columns differ: the largest standardised difference of frequencies, over
    half-lines and the share of draws that have the place at all."""
    both = np.concatenate([one, two])
    if not len(both):
        return 0.0
    edges = np.unique(np.quantile(both, LEVELS, method="inverted_cdf"))
    below = [np.searchsorted(np.sort(each), edges, side="left") for each in (one, two)]
    hits = [
        np.concatenate([low, len(each) - low]) for low, each in zip(below, (one, two), strict=True)
    ]
    hits = [np.append(count, len(each)) for count, each in zip(hits, (one, two), strict=True)]
    pooled = (hits[0] + hits[1] + 0.5) / (sum(trials) + 1)
    spread = np.sqrt(pooled * (1 - pooled) * sum(1 / size for size in trials))
    return float((np.abs(hits[0] / trials[0] - hits[1] / trials[1]) / spread).max())


def _tokens(with_: Outputs, without: Outputs) -> list[Token]:
    counts: list[Any] = [count_tokens(each) for each in (with_, without)]
    sizes, total = (len(with_), len(without)), len(with_) + len(without)

    def strength(token: Token) -> float:
        hits = counts[0][token], counts[1][token]
        share = sum(hits) / total
        spread = math.sqrt(share * (1 - share) * (1 / sizes[0] + 1 / sizes[1]))
        return float(abs(hits[0] / sizes[0] - hits[1] / sizes[1]) / spread)

    known = dict.fromkeys([*counts[0], *counts[1]])
    some = [token for token in known if 3 <= counts[0][token] + counts[1][token] < total]
    return sorted(some, key=lambda token: -strength(token))[:TOKENS]
