"""Orderings by what an output contains or lacks: rare words, keys, values at a place.

Contract: an output is judged by its most telling token alone, so the events are unions, "contains
this word or that one", and reach what one draw in a thousand shows inside outputs that are
otherwise all different. Tokens are counted on samples that are not counted afterwards.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from whosin.audit.describing import At, Built, Has, Shape, Token, token_words
from whosin.audit.orderings import Ordering, listed, log_ratios
from whosin.audit.outputs import FORMS, Outputs
from whosin.exact import Array

COMMON = 0.05
"""A token in a smaller share of the outputs says nothing by its absence."""
KEPT = 5000
"""Tokens that are kept."""

WITH, WITHOUT = 1, -1
PLAINNESS = {Has: 0, At: 1, Built: 2, Shape: 3}
SKELETON = (Built, Shape)
"""Tokens that say how an output is built, and nothing of what it says."""


def count_tokens(outputs: Outputs) -> Counter[Token]:
    """In how many draws each token is."""
    result: Counter[Token] = Counter()
    for each in outputs.descriptions:
        result.update(each.tokens.keys())
    return result


@dataclass(frozen=True)
class TokenCounts:
    """In how many draws of each world a token is.

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
        """Count them."""
        bits = random.Random(2023)
        counts: dict[Token, list[int]] = {}
        marks: dict[Token | None, int] = {None: 0}
        for world, outputs in enumerate((with_, without)):
            for about in outputs.descriptions:
                mark = bits.getrandbits(64)
                marks[None] ^= mark
                for token in about.tokens:
                    counts.setdefault(token, [0, 0])[world] += 1
                    marks[token] = marks.get(token, 0) ^ mark
        return cls(counts, marks, (len(with_), len(without)))

    def apart(self, among: tuple[type, ...] = ()) -> dict[int, Token]:
        """Tokens that are in some draws and not in all, by their mark: of those that are in the
        same draws the plainest."""
        result: dict[int, Token] = {}
        for token in sorted(self.counts, key=lambda token: PLAINNESS[type(token)]):
            if 1 < sum(self.counts[token]) < sum(self.trials) and isinstance(token, among or Token):
                result.setdefault(self.marks[token], token)
        return result

    def least_known(self, most: int) -> list[Token]:
        """The tokens of which one knows least beforehand, whether an output has them."""
        total = sum(self.trials)
        known = {token: abs(2 * sum(self.counts[token]) - total) for token in self.apart().values()}
        return sorted(known, key=lambda token: known[token])[:most]


@dataclass(frozen=True, eq=False)
class ByToken(Ordering):
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
        by_draws = counted.apart(among)
        tokens = list(by_draws.values())
        other = [marks[None] ^ mark not in by_draws for mark in by_draws]
        table = np.array([counts[token] for token in tokens]).reshape(-1, 2).T
        here = sign * log_ratios(table[0], table[1], *trials)
        gone = sign * log_ratios(trials[0] - table[0], trials[1] - table[1], *trials)
        common = (table.sum(axis=0) >= COMMON * sum(trials)) & np.array(other, dtype=bool)
        return cls(sign, _best(tokens, here), _best(tokens, np.where(common, gone, 0.0)))

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
            return f"output without a telling part (score {'≥' if above else '≤'} {threshold:.6g})"
        parts = [(v, token_words(token)) for token, v in self.present.items() if v >= least]
        parts += [
            (v, token_words(token, absent=True)) for token, v in self.absent.items() if v >= least
        ]
        parts.sort(key=lambda part: -part[0])
        return f"output {listed((words for _, words in parts), len(parts))}"


def _best(tokens: list[Token], scores: Array) -> dict[Token, float]:
    order = np.argsort(-scores, kind="stable")[:KEPT]
    return {tokens[index]: float(scores[index]) for index in order.tolist() if scores[index] > 0}
