"""The parts of outputs that differ most between two worlds, as a matrix for classifiers.

Contract: every place of every output is looked at by itself, however far behind; the ones that
differ most, as the largest standardised difference of the frequencies of half-lines, go on. This
happens on samples that are not counted afterwards.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
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
LARGEST = 1e30
LEVELS = np.sort(np.concatenate([TAILS, np.arange(1, 16) / 16, 1 - np.array(TAILS)]))


@dataclass(frozen=True, eq=False)
class OutputColumns:
    """Outputs as a matrix: numbers at places (with their medians, where there is none), whether a
    place is there, and whether a token is.

    Attributes:
        places: the one that differs most first.
        left_out: places that there were besides.
    """

    vectors: bool
    places: list[Place]
    medians: list[float]
    partial: list[Place] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    left_out: int = 0

    @classmethod
    def of(cls, with_: Outputs, without: Outputs) -> OutputColumns:
        """The places and tokens that differ most."""
        with_, without = with_.part(0, LOOKED), without.part(0, LOOKED)
        trials = len(with_), len(without)
        if with_.kind == VECTORS:
            columns = [_finite(each.values).T for each in (with_, without)]
            result = {(i,): (one, two) for i, (one, two) in enumerate(zip(*columns, strict=True))}
        else:
            result = _by_place(with_, without)
        ranked = sorted(result, key=lambda place: -separation(*result[place], trials))
        places = ranked[:MOST]
        medians = [float(np.median(np.concatenate(result[place]))) for place in places]
        partial = [p for p in places if len(result[p][0]) + len(result[p][1]) < sum(trials)]
        tokens = [] if with_.kind == VECTORS else _tokens(with_, without)
        return cls(
            with_.kind == VECTORS, places, medians, partial, tokens, len(ranked) - len(places)
        )

    @property
    def count(self) -> int:
        return len(self.places) + len(self.partial) + len(self.tokens)

    def matrix(self, outputs: Outputs) -> Array:
        """A row per draw."""
        if self.vectors:
            chosen = outputs.values[:, [place[0] for place in self.places]]
            return _finite(chosen)
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


def _finite(values: object) -> Array:
    return np.clip(np.asarray(values, dtype=np.float64), -LARGEST, LARGEST)


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
