"""An ordering by two parts of an output at once: this word and that one, or not that one.

Contract: parts that tell nothing each by itself may tell much together (a sex and an illness, two
answers that should be independent). The commonest tokens of forms, and values of columns of codes,
are taken as *literals*, there or not there; every pair of literals is counted, and an output is
judged by its most telling pair. Pairs are counted on samples that are not counted afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from whosin.audit.cells import codes
from whosin.audit.describing import At, Token, token_words
from whosin.audit.orderings import Ordering, listed, log_ratios
from whosin.audit.outputs import VECTORS, Outputs
from whosin.exact import Array

TOKENS = 48
"""Tokens of which pairs are made: the ones of which one knows least beforehand."""
KEPT = 256
"""Pairs that are kept: the ones whose counts differ most."""
LOOKED = 50_000
"""Draws of each world in which pairs are counted."""
DOUBT = 10
"""A pair that this many draws have is believed by half: there are many pairs."""
NONE = np.uint16(2**16 - 1)
BLOCK = 16_384
"""Draws that are judged at a time, so that they stay near."""
Literals = tuple[int, int]


@dataclass(frozen=True)
class PairCounts:
    """How many draws of each world have both of two literals."""

    kind: str
    width: int
    tokens: list[Token]
    counts: tuple[Array, Array]
    trials: tuple[int, int]

    @classmethod
    def of(cls, with_: Outputs, without: Outputs, tokens: list[Token]) -> PairCounts:
        """Count them."""
        worlds = [each.part(0, LOOKED) if len(each) > LOOKED else each for each in (with_, without)]
        counts = []
        for outputs in worlds:
            literals = _literals(outputs, tokens).astype(np.float32)
            counts.append(np.rint(literals @ literals.T))
        trials = len(worlds[0]), len(worlds[1])
        return cls(with_.kind, with_.width, tokens, (counts[0], counts[1]), trials)


@dataclass(frozen=True, eq=False)
class ByPair(Ordering):
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
        logs = sign * log_ratios(hits, other, *trials) * (total / (total + DOUBT))
        spread = np.abs(hits / trials[0] - other / trials[1]) / np.sqrt(total + 1)
        proper = (logs > 0) & (one % len(tokens) != two % len(tokens))
        best = np.argsort(-np.where(proper, spread, -1.0), kind="stable")[:KEPT]
        best = best[proper[best]]
        best = best[np.argsort(-logs[best], kind="stable")]
        pairs = list(zip(one[best].tolist(), two[best].tolist(), strict=True))
        return cls(counted.kind, counted.width, sign, tokens, pairs, logs[best].tolist())

    def _score(self, outputs: Outputs) -> Array:
        if not self.pairs:
            return np.zeros(len(outputs))
        literals = _literals(outputs, self.tokens)
        starts = range(0, len(outputs), BLOCK)
        ranks = [self._ranks(literals[:, start : start + BLOCK]) for start in starts]
        scores = np.append(self.scores, 0.0)[np.concatenate(ranks)]
        return np.asarray(self.sign * scores)

    def _ranks(self, literals: Array) -> Array:
        """The most telling pair of each draw, by its number; one beyond the last for none."""
        lacks = np.where(literals, NONE * 0, NONE)  # all bits where a draw lacks the literal
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
            return f"output without a telling pair (score {'≥' if above else '≤'} {threshold:.6g})"
        count = sum(score >= abs(threshold) for score in self.scores)
        return f"output {listed((self._words(pair) for pair in self.pairs[:count]), count)}"


def telling_cells(with_: Outputs, without: Outputs) -> list[Token]:
    """Values of columns of codes, the commonest but for the commonest of each column."""
    both = np.concatenate([each.values[:LOOKED] for each in (with_, without)]).astype(np.float64)
    counts: Counter[Token] = Counter()
    for column in range(both.shape[1]):
        known = codes(both[:, column])
        if known is not None:
            values, hits = known
            kept = np.argsort(-hits, kind="stable")[1 : 1 + TOKENS].tolist()
            counts.update({At((column,), float(values[at])): int(hits[at]) for at in kept})
    return [token for token, _count in counts.most_common(TOKENS)]


def _literals(outputs: Outputs, tokens: Sequence[Token]) -> Array:
    """Which draws have each token, and which have it not: a row per literal."""
    table = np.zeros((len(tokens), len(outputs)), dtype=bool)
    if outputs.kind == VECTORS:
        for index, token in enumerate(tokens):
            if isinstance(token, At):
                table[index] = outputs.values[:, token.place[0]] == token.symbol
    else:
        rows = {token: index for index, token in enumerate(tokens)}
        for draw, about in enumerate(outputs.descriptions):
            for token in rows.keys() & about.tokens.keys():
                table[rows[token], draw] = True
    return np.concatenate([table, ~table])
