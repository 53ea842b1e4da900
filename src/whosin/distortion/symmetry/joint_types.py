"""Joint types: tables of pairs (x, y) up to exchanging rows that the prior treats alike (F14).

Contract: a group of k exchangeable rows has one type for each m × m table N, N[a][b] counting the
rows with x_i = a and y_i = b; several groups have the product of their types. One group of all rows
is the exchangeable case, n groups of one row are the full program, so that both are one algorithm.

A *move* is a pair of neighbours seen through their types: one row changes from x_i = a to a' while
its y_i = b stays. With M(t) the number of y that have type t with a given x, and w_t = M(t) A(y|x),

    A(y|x) / A(y|x') = w_t · N[a][b] (r_a' + 1) / ( w_t' · r_a (N[a'][b] + 1) )

with r the row sums of t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np

from whosin.distortion.symmetry.compositions import (
    compositions,
    log_factorials,
    multinomial,
    numbers_of_rows,
    outer,
)
from whosin.exact import Array


@dataclass(frozen=True)
class TypeMoves:
    """Neighbours: from type `source` to type `target`, with the integers of the ratio above."""

    source: Array
    target: Array
    above: Array
    below: Array


class Group:
    """The types of k exchangeable rows of m values."""

    def __init__(self, rows: int, values: int) -> None:
        self.rows, self.values = rows, values
        self.tables = compositions(rows, values * values).reshape(-1, values, values)
        self.counts = compositions(rows, values)
        numbers = {row.tobytes(): index for index, row in enumerate(self.counts)}
        self.inputs = numbers_of_rows(numbers, self.tables.sum(axis=2))
        self.outputs = numbers_of_rows(numbers, self.tables.sum(axis=1))

    @cached_property
    def log_ways(self) -> Array:
        """ln of the number of y with this type, given x."""
        logs = log_factorials(self.rows)
        rows = logs[self.tables.sum(axis=2)].sum(axis=1)
        return np.asarray(rows - logs[self.tables].sum(axis=(1, 2)))

    @cached_property
    def log_arrangements(self) -> Array:
        """ln of the number of x with these counts."""
        logs = log_factorials(self.rows)
        return np.asarray(logs[self.rows] - logs[self.counts].sum(axis=1))

    def ways(self, index: int) -> int:
        """The number of y with this type, given x, exactly."""
        return math.prod(multinomial(row) for row in self.tables[index].tolist())

    def arrangements(self, index: int) -> int:
        """The number of x with these counts, exactly."""
        return multinomial(self.counts[index].tolist())

    @cached_property
    def moves(self) -> TypeMoves:
        numbers = {table.tobytes(): index for index, table in enumerate(self.tables)}
        sums = self.tables.sum(axis=2)
        result = []
        for b in range(self.values):
            for a in range(self.values):
                source = np.flatnonzero(self.tables[:, a, b])
                for other in range(self.values):
                    if other == a:
                        continue
                    moved = self.tables[source].copy()
                    moved[:, a, b] -= 1
                    moved[:, other, b] += 1
                    above = self.tables[source, a, b] * (sums[source, other] + 1)
                    below = sums[source, a] * (self.tables[source, other, b] + 1)
                    result.append((source, numbers_of_rows(numbers, moved), above, below))
        return TypeMoves(*(np.concatenate(parts) for parts in zip(*result, strict=True)))


class Types:
    """The product of the types of several groups, the last group varying fastest."""

    def __init__(self, sizes: tuple[int, ...], values: int) -> None:
        self.sizes, self.values = sizes, values
        self.groups = [group(size, values) for size in sizes]
        self.shape = tuple(len(part.tables) for part in self.groups)
        self.counts_shape = tuple(len(part.counts) for part in self.groups)
        self.inputs = self._combined([part.inputs for part in self.groups], self.counts_shape)
        self.outputs = self._combined([part.outputs for part in self.groups], self.counts_shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def _combined(self, parts: list[Array], radix: tuple[int, ...]) -> Array:
        total = np.zeros(1, dtype=np.int64)
        for part, base in zip(parts, radix, strict=True):
            total = (total[:, None] * base + part[None, :]).ravel()
        return total

    def cost(self, matrix: Array) -> Array:
        """Σ N[a][b] · matrix[a][b] for each type."""
        return outer(np.add, [np.tensordot(part.tables, matrix, 2) for part in self.groups])

    @cached_property
    def log_ways(self) -> Array:
        return outer(np.add, [part.log_ways for part in self.groups])

    @cached_property
    def ways(self) -> Array:
        """The number of y with each type, given x, exactly (whole numbers of any size)."""
        ways = ([part.ways(index) for index in range(len(part.tables))] for part in self.groups)
        return outer(np.multiply, (np.array(each, dtype=object) for each in ways))

    @cached_property
    def log_arrangements(self) -> Array:
        """For each combination of counts."""
        return outer(np.add, [part.log_arrangements for part in self.groups])

    @cached_property
    def counts(self) -> list[tuple[tuple[int, ...], ...]]:
        """The counts of each group, for each combination."""
        return list(product(*(map(tuple, part.counts.tolist()) for part in self.groups)))

    @cached_property
    def moves(self) -> TypeMoves:
        result = []
        for position, part in enumerate(self.groups):
            before = np.arange(math.prod(self.shape[:position]))
            after = np.arange(math.prod(self.shape[position + 1 :]))
            move = part.moves
            step = len(after)
            base = before[:, None, None] * (self.shape[position] * step) + after[None, None, :]
            spread = np.ones_like(base)
            result.append(
                (
                    (base + move.source[None, :, None] * step).ravel(),
                    (base + move.target[None, :, None] * step).ravel(),
                    (spread * move.above[None, :, None]).ravel(),
                    (spread * move.below[None, :, None]).ravel(),
                )
            )
        return TypeMoves(*(np.concatenate(parts) for parts in zip(*result, strict=True)))


group = lru_cache(maxsize=32)(Group)
types = lru_cache(maxsize=16)(Types)
"""The types of a partition of the rows, kept for the next call."""
