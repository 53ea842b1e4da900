"""Exact inversion of a cumulative distribution, a million words at a time.

Contract: with thresholds 0 ≤ T_0 ≤ T_1 ≤ … ≤ 1 and a uniform U, outcome number #{i : T_i ≤ U} is
drawn: outcome i has probability T_i − T_{i−1}, exactly. U is read lazily: its first 16 bits pick
the outcome from a guide of 2^16 cells, unless a threshold may lie in that cell; then 64 bits are
compared with the thresholds' brackets by binary search; and a word that a threshold may still
split goes on, with more and more bits, in `lazy`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from whosin.exact import Array
from whosin.noise.lazy import STEP, brackets, count_below
from whosin.noise.source import Source

BLOCK = 1 << 16
"""Words drawn at a time: few enough to stay in the cache."""


class Inversion:
    """A distribution on a list of integers, given by certified cumulative thresholds.

    `thresholds(precision)` gives the balls of all T_i, one fewer than outcomes. `first_bits` and
    `word_bits` are 16 and 64; tests make them small, to go through all words.
    """

    def __init__(
        self,
        thresholds: Callable[[int], list[Any]],
        outcomes: Array,
        first_bits: int = 16,
        word_bits: int = 64,
    ) -> None:
        self.thresholds, self.first_bits, self.word_bits = thresholds, first_bits, word_bits
        ends = brackets(thresholds(word_bits + STEP), word_bits)
        pairs = np.array(ends, dtype=np.uint64).reshape(-1, 2)
        # The thresholds increase, so their brackets may be made to.
        self.below = np.maximum.accumulate(pairs[:, 0])
        self.above = np.minimum.accumulate(pairs[::-1, 1])[::-1].copy()
        self.outcomes = _narrow(outcomes)
        self.undecided = np.iinfo(self.outcomes.dtype).min
        self.guide = self._guide()

    def _guide(self) -> Array:
        """The outcome of each cell of the first word, or `undecided`."""
        shift, cells = np.uint64(self.word_bits - self.first_bits), 1 << self.first_bits
        passed = np.bincount((self.above >> shift).astype(np.int64), minlength=cells)
        reached = np.bincount((self.below >> shift).astype(np.int64), minlength=cells)
        certain = np.cumsum(passed) - passed  # thresholds surely at or below the cell's start
        possible = np.cumsum(reached)  # all but those surely at or beyond its end
        guide: Array = self.outcomes[certain]
        guide[certain != possible] = self.undecided
        return guide

    def draw(self, source: Source, count: int) -> Array:
        """A number of independent outcomes."""
        drawn = np.empty(count, dtype=self.guide.dtype)
        for start in range(0, count, BLOCK):
            block = drawn[start : start + BLOCK]
            first = source.words(self.first_bits, block.size)
            np.take(self.guide, first, out=block, mode="clip")
            late = np.flatnonzero(block == self.undecided)
            if late.size:
                block[late] = self._settle(source, first[late])
        return drawn

    def _settle(self, source: Source, first: Array) -> Array:
        """The outcomes of words that the guide does not decide, with more bits of each."""
        missing = self.word_bits - self.first_bits
        width = next(bits for bits in (8, 16, 32, 64) if bits >= missing)
        rest = source.words(width, first.size).astype(np.uint64) >> np.uint64(width - missing)
        words = first.astype(np.uint64) << np.uint64(missing) | rest
        low = np.searchsorted(self.above, words, side="left")
        high = np.searchsorted(self.below, words, side="right")
        for index in np.flatnonzero(low != high):
            low[index] = count_below(
                source,
                int(words[index]),
                self.word_bits,
                self.thresholds,
                int(low[index]),
                int(high[index]),
            )
        settled: Array = self.outcomes[low]
        return settled


def _narrow(outcomes: Array) -> Array:
    """The outcomes in the smallest type that holds them and one value more: less cache."""
    largest = int(np.abs(outcomes).max())
    kind = next(kind for kind in (np.int16, np.int32, np.int64) if largest <= np.iinfo(kind).max)
    return np.asarray(outcomes, dtype=kind)
