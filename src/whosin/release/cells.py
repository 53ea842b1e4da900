"""The cells of a group-by: all combinations of declared values, in their declared order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, rational
from whosin.release.domains import MOST_CELLS, Domain, Range, Values
from whosin.release.predicate import number
from whosin.release.table import Table


@dataclass(frozen=True)
class Cells:
    """What a query groups by."""

    columns: tuple[str, ...]
    domains: tuple[Domain, ...]

    @classmethod
    def of(cls, table: Table, by: Sequence[str]) -> Cells:
        """Check the columns against the declared domains."""
        if isinstance(by, str):
            by = (by,)
        if not isinstance(by, list | tuple) or not all(isinstance(each, str) for each in by):
            raise InvalidInput("by", "a list of columns", repr(by)[:80])
        domains = tuple(table.domain(column) for column in by)
        if len(set(by)) != len(by):
            raise InvalidInput("by", "different columns", list(by))
        for column, domain in zip(by, domains, strict=True):
            if isinstance(domain, Range) and not domain.edges:
                raise InvalidInput(f"domain of {column}", "one with edges, to group by it", "none")
        found = cls(tuple(by), domains)
        if found.count > MOST_CELLS:
            raise InvalidInput("by", f"at most {MOST_CELLS} cells", found.count)
        return found

    @property
    def count(self) -> int:
        """How many cells there are; 1 without a group-by."""
        return prod(len(domain.labels) for domain in self.domains)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the key columns inside an expression."""
        return tuple(f"key_{place}" for place in range(len(self.columns)))

    def headings(self, *taken: str) -> list[str]:
        """The names of the key columns in an answer that has further columns."""
        return [free(column, taken) for column in self.columns]

    def labels(self) -> list[tuple[str | int, ...]]:
        """The keys of each cell."""
        return list(product(*(domain.labels for domain in self.domains)))

    def keys(self, rows: Any) -> dict[str, Any]:
        """The key columns of rows, as the place of each value in its domain."""
        pairs = zip(self.names, self.columns, self.domains, strict=True)
        return {name: _place(rows[column], domain) for name, column, domain in pairs}

    def dense(self, result: Any, names: Sequence[str]) -> list[Array]:
        """Aggregates by key as whole vectors, a cell that has no rows being 0."""
        sizes = [len(domain.labels) for domain in self.domains]
        flat = np.zeros(result.num_rows, dtype=np.int64)
        for name, size in zip(self.names, sizes, strict=True):
            flat = flat * size + result.column(name).to_numpy().astype(np.int64)
        vectors = []
        for name in names:
            vector = np.zeros(self.count, dtype=np.int64)
            column = result.column(name).fill_null(0).to_numpy()
            vector[flat] = column.astype(np.int64)
            vectors.append(vector)
        return vectors


def free(column: str, taken: Sequence[str]) -> str:
    """A column's name, changed a little where an answer has another column of that name."""
    while column in taken:
        column += "_"
    return column


def _place(value: Any, domain: Domain) -> Any:
    """The place of a value among the labels of its domain; the last one is "other"."""
    import ibis

    last = len(domain.labels) - 1
    if isinstance(domain, Values):
        wanted = domain.values
        if value.type().is_string():
            wanted = tuple(str(each) for each in wanted)
        branches = [(value == each, place) for place, each in enumerate(wanted)]
        return ibis.cases(*branches, else_=last).fill_null(last).cast("int64")
    edges = [float(rational(edge)) for edge in domain.edges]
    reading = number(value)
    branches = [(reading < edge, place - 1) for place, edge in enumerate(edges) if place]
    inside = ibis.cases(*branches, (reading == edges[-1], last - 1), else_=last)
    return ibis.cases((reading < edges[0], last), else_=inside).fill_null(last).cast("int64")
