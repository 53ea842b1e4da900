"""An ordering of vectors by the values in columns of codes: numbers that come again.

Contract: an output is judged by its most telling value alone. Values are counted on samples that
are not counted afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from whosin.audit.describing import At, token_words
from whosin.audit.orderings import Ordering, listed, log_ratios
from whosin.audit.outputs import VECTORS, Outputs
from whosin.exact import Array

REPEATED = 0.05
"""A column whose values number at most this share of the draws is one of codes."""
GLANCE = 5000
"""Draws that are looked at first for values that come again."""


def codes(column: Array) -> tuple[Array, Array] | None:
    """The values of a column and how often each is there; nothing where it is not one of codes.

    Of `GLANCE` draws with v values at least about GLANCE²/2v come again: where not half as many do,
    the column need not be sorted.
    """
    most = REPEATED * len(column)
    some = column[:: max(1, len(column) // GLANCE)]
    again = len(some) - len(np.unique(some))
    if again < min(len(some), len(some) ** 2 / (2 * most)) / 4:
        return None
    values, counts = np.unique(column, return_counts=True)
    return (values, counts) if 1 < len(values) <= most else None


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
        """Count them."""
        columns = {}
        for column in range(with_.width):
            worlds = [each.values[:, column].astype(np.float64) for each in (with_, without)]
            known = codes(np.concatenate(worlds))
            if known is not None:
                values, total = known
                hits = np.bincount(np.searchsorted(values, worlds[0]), minlength=len(values))
                columns[column] = values, hits, total - hits
        return cls(with_.width, columns, (len(with_), len(without)))


@dataclass(frozen=True, eq=False)
class ByCell(Ordering):
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
            return f"output without a telling value (score {'≥' if above else '≤'} {threshold:.6g})"
        parts = [
            (float(score), token_words(At((column,), float(value))))
            for column, (values, scores) in self.columns.items()
            for value, score in zip(values, scores, strict=True)
            if score >= least
        ]
        parts.sort(key=lambda part: -part[0])
        return f"output {listed((words for _, words in parts), len(parts))}"
