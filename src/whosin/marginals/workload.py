"""Which tables are wanted: sets of attributes, each attribute with a number of values.

Contract: attributes are numbered from 0; a set is a rising tuple of such numbers, and the empty set
is the total. A table C is the sum of its residuals R_A, A ⊆ C, where R_A is the part of the table A
that no smaller one knows. `residuals` has every A that some table needs, smaller ones first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.validation import whole

MOST_ATTRIBUTES = 1_000
MOST_TABLES = 100_000
MOST_CELLS = 10**7
Attributes = tuple[int, ...]


@dataclass(frozen=True)
class Workload:
    """Tables with their weights.

    Args:
        sizes: how many values each attribute has.
        sets: the attributes of each table.
        weights: how much the mean variance of a table's cells counts; 1 each by default.
    """

    sizes: tuple[int, ...]
    sets: tuple[Attributes, ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for size in self.sizes:
            whole(size, "size of an attribute", 2, MOST_CELLS)
        if not self.sets or len(self.sets) > MOST_TABLES:
            raise InvalidInput("sets", f"from 1 to {MOST_TABLES} tables", len(self.sets))
        ordered = tuple(tuple(sorted(each)) for each in self.sets)
        for each in ordered:
            self._check(each)
        if len(set(ordered)) != len(ordered):
            twice = next(each for each in ordered if ordered.count(each) > 1)
            raise InvalidInput("sets", "different tables", f"{list(twice)} twice")
        object.__setattr__(self, "sets", ordered)
        if not self.weights:
            object.__setattr__(self, "weights", (1.0,) * len(ordered))
        if len(self.weights) != len(ordered):
            accepted = f"one for each table, {len(ordered)}"
            raise InvalidInput("weights", accepted, len(self.weights))
        if not all(0 < each < float("inf") for each in self.weights):
            raise InvalidInput("weights", "numbers above 0", min(self.weights))

    def _check(self, each: Attributes) -> None:
        if len(set(each)) != len(each):
            raise InvalidInput("sets", "tables of different attributes", list(each))
        if each and not (each[0] >= 0 and each[-1] < len(self.sizes)):
            accepted = f"tables of the attributes 0 to {len(self.sizes) - 1}"
            raise InvalidInput("sets", accepted, list(each))
        if self.cells(each) > MOST_CELLS:
            raise InvalidInput("sets", f"tables of at most {MOST_CELLS} cells", self.cells(each))

    @classmethod
    def up_to(cls, sizes: Sequence[int], order: int) -> Workload:
        """All tables of 1 to `order` attributes."""
        whole(order, "order", 1, len(sizes))
        return cls(tuple(sizes), tuple(sets_up_to(len(sizes), order)))

    def cells(self, attributes: Attributes) -> int:
        """How many cells the table of some attributes has."""
        return prod(self.sizes[each] for each in attributes)

    @property
    def shown(self) -> int:
        """How many cells all tables have together."""
        return sum(map(self.cells, self.sets))

    def shape(self, attributes: Attributes) -> tuple[int, ...]:
        """The shape of that table."""
        return tuple(self.sizes[each] for each in attributes)

    @cached_property
    def residuals(self) -> tuple[Attributes, ...]:
        """Every set that is inside one of the tables."""
        result = {part for each in self.sets for part in subsets(each)}
        return tuple(sorted(result, key=lambda part: (len(part), part)))

    @cached_property
    def place(self) -> dict[Attributes, int]:
        """Where each residual is."""
        return {part: index for index, part in enumerate(self.residuals)}

    @cached_property
    def spread(self) -> Array:
        """p_A = ∏(1 − 1/n_i): how much of one person is in the residual, squared."""
        return np.array(
            [prod(1 - 1 / self.sizes[i] for i in part) for part in self.residuals], np.float64
        )

    @cached_property
    def uses(self) -> tuple[Array, Array, Array]:
        """(tables, residuals, factors): the variance of a table's cells is Σ factor / π_A, the
        factor being ∏_{i∈A}(1 − 1/n_i) ∏_{j∈C∖A} n_j^−2 (F20)."""
        tables, residuals, factors = [], [], []
        for number, each in enumerate(self.sets):
            whole_square = self.cells(each) ** 2
            for part in subsets(each):
                at = self.place[part]
                tables.append(number)
                residuals.append(at)
                factors.append(self.spread[at] * self.cells(part) ** 2 / whole_square)
        return np.array(tables), np.array(residuals), np.array(factors)

    def importance(self, weights: Array | None = None) -> Array:
        """The weight of each residual's 1/π_A in the mean variance over the tables."""
        given = np.array(self.weights) if weights is None else weights
        tables, residuals, factors = self.uses
        shares = given / given.sum()
        return np.bincount(residuals, factors * shares[tables], len(self.residuals))


def subsets(attributes: Attributes) -> list[Attributes]:
    """All subsets, smaller ones first."""
    return [part for size in range(len(attributes) + 1) for part in combinations(attributes, size)]


def sets_up_to(attributes: int, order: int) -> list[Attributes]:
    """All sets of 1 to `order` attributes, refused before they are listed where they are many."""
    count, result = 0, 1
    for size in range(1, order + 1):
        result = result * (attributes - size + 1) // size
        count += result
    if count > MOST_TABLES:
        raise InvalidInput("order", f"one with at most {MOST_TABLES} tables", f"{count} of them")
    return [part for size in range(1, order + 1) for part in combinations(range(attributes), size)]
