"""A junction tree: how a model of several sets of columns is worked with, table by table.

Columns are removed one by one, always the one that makes the smallest table with all those that it
shares a set with; these then share a set. Each of these tables hangs from a later one that holds
what the two have in common, its separator. A model is then a table of shares at each root, and
below it, for each table, the shares of its cells given those of its separator (`Conditionals`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from whosin.exact import Array
from whosin.marginals.workload import Attributes

Conditionals = list[Array]


@dataclass(frozen=True)
class JunctionTree:
    """The tables of a model; parents come before their children.

    Attributes:
        sizes: how many values each column has.
        tables: the columns of each table, rising.
        separators: those that each table has in common with its parent.
        parents: the index of each table's parent, None for a root.
    """

    sizes: tuple[int, ...]
    tables: tuple[Attributes, ...]
    separators: tuple[Attributes, ...]
    parents: tuple[int | None, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], sets: Iterable[Attributes]) -> JunctionTree:
        """The tree of a model that knows these sets."""
        removed = elimination(sizes, sets)
        turn = {gone: number for number, (gone, _) in enumerate(removed)}
        tables: list[set[int]] = []
        separators: list[Attributes] = []
        parents: list[int | None] = []
        table_of: dict[int, int] = {}
        for gone, around in reversed(removed):
            parent = table_of[min(around, key=turn.__getitem__)] if around else None
            if parent is not None and around == tables[parent]:
                tables[parent] = around | {gone}
                table_of[gone] = parent
                continue
            table_of[gone] = len(tables)
            tables.append(around | {gone})
            separators.append(tuple(sorted(around)))
            parents.append(parent)
        columns = tuple(tuple(sorted(each)) for each in tables)
        return cls(tuple(sizes), columns, tuple(separators), tuple(parents))

    def shape(self, at: int) -> tuple[int, ...]:
        """The shape of a table."""
        return tuple(self.sizes[each] for each in self.tables[at])

    def shape_within(self, attributes: Attributes, at: int) -> tuple[int, ...]:
        """The shape of a smaller table so that it can be multiplied with this one."""
        return tuple(self.sizes[each] if each in attributes else 1 for each in self.tables[at])

    def others(self, attributes: Attributes, at: int) -> tuple[int, ...]:
        """The axes of a table that are of other columns."""
        return tuple(axis for axis, each in enumerate(self.tables[at]) if each not in attributes)

    def smallest(self, attributes: Attributes) -> int | None:
        """The index of the smallest table that holds these columns, if one does."""
        asked = set(attributes)
        holding = [at for at, table in enumerate(self.tables) if asked.issubset(table)]
        return min(holding, key=lambda at: prod(self.shape(at)), default=None)

    def gathered(self, potentials: Mapping[Attributes, Array]) -> list[Array]:
        """The sums of tables, each put into the smallest of the tree that holds it."""
        sums = [np.zeros(self.shape(at)) for at in range(len(self.tables))]
        for attributes, table in potentials.items():
            at = self.smallest(attributes)
            if at is None:
                raise ValueError(f"no table of the tree has the columns {attributes}")
            sums[at] += table.reshape(self.shape_within(attributes, at))
        return sums

    def conditionals(self, logarithms: list[Array]) -> Conditionals:
        """The model whose joint shares are, up to a factor, the product of some tables."""
        tables = [np.exp(each - each.max()) for each in logarithms]
        for at in reversed(range(len(tables))):
            table, parent = tables[at], self.parents[at]
            axes = self.others(self.separators[at], at)
            total = table.sum(axis=axes, keepdims=True)
            tables[at] = np.divide(table, total, out=np.zeros_like(table), where=total > 0)
            if parent is not None:
                message = (total / total.max()).reshape(
                    self.shape_within(self.separators[at], parent)
                )
                tables[parent] *= message
        return tables

    def shares(self, conditionals: Conditionals) -> list[Array]:
        """The shares of the cells of each table."""
        result: list[Array] = []
        for at, (given, parent) in enumerate(zip(conditionals, self.parents, strict=True)):
            if parent is None:
                result.append(given)
                continue
            common = self.separators[at]
            known = result[parent].sum(axis=self.others(common, parent))
            result.append(given * known.reshape(self.shape_within(common, at)))
        return result

    def margins(
        self, conditionals: Conditionals, wanted: Iterable[Attributes]
    ) -> dict[Attributes, Array]:
        """The shares of any sets of columns, rising ones, within a table of the tree or not."""
        shares = self.shares(conditionals)
        result = {}
        for attributes in wanted:
            at = self.smallest(attributes)
            if at is None:
                result[attributes] = self._across(conditionals, shares, attributes)
            else:
                result[attributes] = shares[at].sum(axis=self.others(attributes, at))
        return result

    def _across(
        self, conditionals: Conditionals, shares: list[Array], attributes: Attributes
    ) -> Array:
        """From the leaves up: each table that has some of the columns tells its parent about them,
        until one table knows of all. Columns that no table connects are independent."""
        asked = set(attributes)
        told: dict[int, list[tuple[Array, list[int]]]] = {}
        ends: list[tuple[Array, list[int]]] = []
        for at in reversed(range(len(self.tables))):
            messages, own = told.pop(at, []), set(self.tables[at])
            if not messages and not (own - set(self.separators[at])) & asked:
                continue
            known = (own & asked).union(*(set(columns) & asked for _, columns in messages))
            parent = self.parents[at]
            whole = parent is None or known == asked
            kept = known if whole else known | set(self.separators[at])
            held = (shares if whole else conditionals)[at], list(self.tables[at])
            message = _combined(held, messages, kept)
            if whole:
                ends.append(message)
            else:
                told.setdefault(parent or 0, []).append(message)
            if known == asked:
                break
        result = ends[0]
        for each in ends[1:]:
            result = _combined(result, [each], asked)
        return np.asarray(np.einsum(result[0], result[1], list(attributes)))


def with_potentials(
    sizes: Sequence[int], potentials: Mapping[Attributes, Array]
) -> tuple[JunctionTree, Conditionals]:
    """The model whose logarithms of joint shares are, up to a constant, a sum of tables."""
    tree = JunctionTree.of(sizes, potentials)
    return tree, tree.conditionals(tree.gathered(potentials))


def elimination(sizes: Sequence[int], sets: Iterable[Attributes]) -> list[tuple[int, set[int]]]:
    """Each column in the order of removal, with those that it shares a set with by then."""
    near: dict[int, set[int]] = {each: set() for each in range(len(sizes))}
    for attributes in sets:
        for each in attributes:
            near[each] |= set(attributes) - {each}
    removed = []
    while near:
        cells = {each: sizes[each] * prod(sizes[other] for other in near[each]) for each in near}
        gone = min(cells, key=cells.__getitem__)
        around = near.pop(gone)
        removed.append((gone, around))
        for each in around:
            near[each] = (near[each] | around) - {each, gone}
    return removed


def _combined(
    table: tuple[Array, list[int]], messages: list[tuple[Array, list[int]]], kept: set[int]
) -> tuple[Array, list[int]]:
    """The product of a table with messages, summed over the columns that nobody needs later."""
    numbers, columns = table
    for index, (message, given) in enumerate(messages):
        later = {each for _, others in messages[index + 1 :] for each in others}
        out = [each for each in dict.fromkeys(columns + given) if each in kept | later]
        first = [each for each in columns if each in set(given) | set(out)]
        numbers = np.einsum(numbers, columns, first)  # what is in no message goes first
        numbers, columns = np.einsum(numbers, first, message, given, out, optimize=True), out
    out = [each for each in columns if each in kept]
    return np.asarray(np.einsum(numbers, columns, out)), out
