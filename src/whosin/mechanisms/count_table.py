"""Pr[output | how many are in], for mechanisms that see a count and nothing else.

N + 1 rows, one for each count 0 … n. Only the positive entries are kept, so that a rule on 10,000
people is a few ten thousand numbers where a table of all worlds has 2^10000 rows. Entries are
sorted by row, and within a row by column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from whosin.errors import Unsupported, invalid_value
from whosin.exact import Array, flint_rational, rational
from whosin.mechanisms.entries import Floats, Rationals
from whosin.spaces import Count, Subsets
from whosin.spaces.arrays import require_table
from whosin.spaces.statistics import CountColumns

if TYPE_CHECKING:
    from whosin.mechanisms.channel import Channel

Spread = Sequence[tuple[Hashable, Any]]
"""Outputs with their probabilities: FLINT rationals, other exact numbers, or floats."""


HASH_PRIME, HASH_BASE = 2**127 - 1, 0x1F3D5B79A1C3E5F7092B4D6F81A3C5E7
"""The numbers of a hash of rows."""


class Beyond(str):
    """All noisy counts beyond the last that is told apart, on one side: their likelihoods are in
    proportion, so that nothing is lost by taking them together."""

    __slots__ = ("below",)
    below: bool

    def __new__(cls, below: bool, number: int) -> Beyond:
        self = super().__new__(cls, f"{'less' if below else 'more'} than {number}")
        self.below = below
        return self


@dataclass(frozen=True, eq=False)
class CountTable:
    """The positive entries of a table of counts by outputs.

    Attributes:
        people: n, so that counts are 0 … n.
        counts, columns: the row and the column of each entry.
        weights: the entries: FLINT rationals, or floats.
        outputs: the name of each column.
        lost: whether entries below the smallest float there is were left out.
    """

    people: int
    counts: Array
    columns: Array
    weights: Array
    outputs: tuple[Hashable, ...]
    lost: bool = False

    @classmethod
    def from_rows(cls, rows: Iterable[Spread]) -> CountTable:
        """From the distribution of the output at each count; equal outputs of a row add up."""
        column_of: dict[Hashable, int] = {}
        counts: list[int] = []
        columns: list[int] = []
        weights: list[Any] = []
        number = -1
        for number, row in enumerate(rows):
            total: dict[int, Any] = {}
            for output, weight in row:
                column = column_of.setdefault(output, len(column_of))
                total[column] = total[column] + weight if column in total else weight
            for column in sorted(total):
                if total[column] != 0:
                    counts.append(number)
                    columns.append(column)
                    weights.append(total[column])
        exact = not any(isinstance(weight, float) for weight in weights)
        entries = np.empty(len(weights), dtype=object if exact else float)
        entries[:] = list(map(_weight_flint if exact else _weight_float, weights))
        return cls(number, np.array(counts), np.array(columns), entries, tuple(column_of))

    @classmethod
    def from_dense(cls, table: Array, outputs: Sequence[Hashable]) -> CountTable:
        """From all the entries: counts × outputs."""
        counts, columns = np.nonzero(table != 0)
        return cls(len(table) - 1, counts, columns, table[counts, columns], tuple(outputs))

    @property
    def exact(self) -> bool:
        return bool(self.weights.dtype == object)

    @cached_property
    def floats(self) -> Array:
        if not self.exact:
            return self.weights
        near: dict[Any, float] = {}
        for weight in self.weights:
            if weight not in near:
                near[weight] = float(rational(weight))
        return np.array([near[weight] for weight in self.weights])

    @cached_property
    def rationals(self) -> Array:
        if self.exact:
            return self.weights
        entries = np.empty(len(self.weights), dtype=object)
        entries[:] = [flint_rational(weight) for weight in self.weights]
        return entries

    @cached_property
    def logs(self) -> Array:
        """The logarithms of the entries, however small these are."""
        if not self.exact:
            return np.log(self.weights)
        near = {w: math.log(int(w.p)) - math.log(int(w.q)) for w in dict.fromkeys(self.weights)}
        return np.array([near[weight] for weight in self.weights])

    def likelihood(self, count: int, output: int) -> Any:
        """One entry, as a FLINT rational."""
        start, stop = self.starts[count], self.starts[count + 1]
        place = start + int(np.searchsorted(self.columns[start:stop], output))
        found = place < stop and self.columns[place] == output
        return self.rationals[place] if found else flint_rational(0)

    def by_output(self, space: Subsets) -> tuple[Array, CountColumns]:
        """The possible outputs by number, and the same entries by these."""
        order = np.lexsort((self.counts, self.columns))
        numbers, columns = np.unique(self.columns[order], return_inverse=True)
        return numbers, CountColumns(space, self.counts[order], columns, self.logs[order])

    @cached_property
    def starts(self) -> Array:
        """Where the entries of each row begin; one number more, for the end of the last."""
        return np.searchsorted(self.counts, np.arange(self.people + 2))

    def looks(self, row: int, rows: int) -> tuple[int, int]:
        """A key of some rows that is the same for others with the same entries in columns that are
        only shifted, and not for more than one in 10^30 others."""
        alone, totals = self._shapes
        last = row + rows
        power = _power(rows - 1)
        return alone[row], (totals[last] - totals[row + 1] * power) % HASH_PRIME

    @cached_property
    def _shapes(self) -> tuple[list[int], list[int]]:
        """For each row a number for its entries; and a running hash of these and of how far its
        columns are from those of the row before."""
        names: dict[object, int] = {}
        alone: list[int] = []
        totals, before = [0], 0
        kinds: dict[Any, int] = {}
        entries = [kinds.setdefault(weight, len(kinds)) for weight in self.weights]
        columns, starts = self.columns.tolist(), self.starts.tolist()
        for start, stop in pairwise(starts):
            first = columns[start]
            shape = *(column - first for column in columns[start:stop]), *entries[start:stop]
            alone.append(names.setdefault(shape, len(names)))
            step = names.setdefault((None, first - before, *shape), len(names))
            totals.append((totals[-1] * HASH_BASE + step + 1) % HASH_PRIME)
            before = first
        return alone, totals

    def then(self, stage: Callable[[Hashable], Spread]) -> CountTable:
        """The same counts, with each output turned into others."""
        spread = [list(stage(output)) for output in self.outputs]
        exact = self.exact and not any(isinstance(w, float) for row in spread for _, w in row)
        number = _weight_flint if exact else _weight_float
        spread = [[(output, number(weight)) for output, weight in row] for row in spread]
        weights = self.weights if exact else self.floats
        ends = self.starts

        def row(count: int) -> list[tuple[Hashable, Any]]:
            entries = range(ends[count], ends[count + 1])
            return [
                (output, weights[entry] * weight)
                for entry in entries
                for output, weight in spread[self.columns[entry]]
            ]

        after = CountTable.from_rows(row(count) for count in range(self.people + 1))
        return replace(after, lost=self.lost)

    def channel(self, space: Subsets) -> Channel:
        """The same table with all its entries, on the worlds of a space by their count."""
        from whosin.mechanisms.channel import Channel  # which can become a table of counts

        if space.size != self.people:
            raise invalid_value("space", f"{self.people} entities, as in the table", space.size)
        if self.lost:
            raise Unsupported(
                "the noise is so small for this many people that some outputs are less likely "
                "than the smallest float",
                field="scale",
                hint="give alpha as a ratio, or a larger scale",
            )
        require_table("the table of counts by outputs", self.people + 1, len(self.outputs))
        floats, exact = self.dense()
        entries = Floats(floats) if exact is None else Rationals(exact)
        return Channel.from_entries(space, Count().lattice(space), floats, entries, self.outputs)

    def dense(self) -> tuple[Array, Array | None]:
        """All entries, counts × outputs: floats, and FLINT rationals if that is what they are."""
        shape = self.people + 1, len(self.outputs)
        floats = np.zeros(shape)
        floats[self.counts, self.columns] = self.floats
        if not self.exact:
            return floats, None
        exact = np.full(shape, flint_rational(0), dtype=object)
        exact[self.counts, self.columns] = self.weights
        return floats, exact


@lru_cache(maxsize=64)
def _power(exponent: int) -> int:
    return pow(HASH_BASE, exponent, HASH_PRIME)


def _weight_float(weight: Any) -> float:
    return weight if isinstance(weight, float) else float(rational(weight))


def _weight_flint(weight: Any) -> Any:
    return weight if hasattr(weight, "q") else flint_rational(weight)
