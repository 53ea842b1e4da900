"""The cells of a group-by: all combinations of declared values, in their declared order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from whosin.errors import InvalidInput, at
from whosin.exact import Array
from whosin.release.columns.cell_numbers import joined, key_of
from whosin.release.columns.dates import Dates
from whosin.release.columns.derived import Cellular
from whosin.release.columns.domains import MOST_CELLS, Range
from whosin.release.columns.levels import root_of
from whosin.release.table import Table


@dataclass(frozen=True)
class Cells:
    """What a query groups by."""

    columns: tuple[str, ...]
    domains: tuple[Cellular, ...]

    @classmethod
    def of(cls, table: Table, by: Sequence[str]) -> Cells:
        """Check the columns against the declared domains."""
        with at("by"):
            return cls._of(table, by)

    @classmethod
    def _of(cls, table: Table, by: Sequence[str]) -> Cells:
        if isinstance(by, str):
            by = (by,)
        if not isinstance(by, list | tuple) or not all(isinstance(each, str) for each in by):
            raise InvalidInput("by", "a list of columns", repr(by)[:80])
        domains = tuple(cellular(table, column) for column in by)
        if len(set(by)) != len(by):
            raise InvalidInput("by", "different columns", list(by))
        check_one_level(table, by, "by")
        result = cls(tuple(by), domains)
        if result.count > MOST_CELLS:
            raise InvalidInput("by", f"at most {MOST_CELLS} cells", result.count)
        return result

    @property
    def count(self) -> int:
        """How many cells there are; 1 without a group-by."""
        return prod(len(domain.labels) for domain in self.domains)

    @property
    def most(self) -> int:
        """How many cells someone is in at most, if columns that were declared constant are: these
        do not spread anyone over cells. Bounding keeps to this number whatever the rows say."""
        return prod(len(domain.labels) for domain in self.domains if not domain.constant)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the key columns inside an expression."""
        return tuple(f"key_{index}" for index in range(len(self.columns)))

    def headings(self, *taken: str) -> list[str]:
        """The names of the key columns in an answer that has further columns."""
        return [free(column, taken) for column in self.columns]

    def labels(self) -> list[tuple[str | int, ...]]:
        """The keys of each cell."""
        return list(product(*(domain.labels for domain in self.domains)))

    def batch(self, codes: Array) -> Any:
        """Numbers of cells as a pyarrow RecordBatch of their keys."""
        numbers, rest = [], codes
        for domain in reversed(self.domains):
            numbers.append(rest % len(domain.labels))
            rest = rest // len(domain.labels)
        return self.labelled(numbers[::-1])

    def labelled(self, numbers: Sequence[Array]) -> Any:
        """Rows as a RecordBatch, from the number of each value among the labels of its column."""
        import pyarrow as pa

        columns = [
            pa.DictionaryArray.from_arrays(
                pa.array(each.astype(np.int32)), pa.array([str(label) for label in domain.labels])
            )
            for each, domain in zip(numbers, self.domains, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=list(self.columns))

    def coded(self, rows: Any, /, **columns: Any) -> Any:
        """Rows with some of their columns and the key columns: the number of each value among the
        labels of its domain. Rows that a closed domain drops are left out."""
        result = self.placed(rows, **columns)
        for name, domain in zip(self.names, self.domains, strict=True):
            if domain.drops:
                result = result.filter(result[name] >= 0)
        return result

    def placed(self, rows: Any, /, **columns: Any) -> Any:
        """The same with all rows: a number is -1 where a closed domain has none."""
        keys = {
            name: key_of(rows, column, domain)
            for name, column, domain in zip(self.names, self.columns, self.domains, strict=True)
        }
        result = rows.select(**columns, **keys)
        for name, domain in zip(self.names, self.domains, strict=True):
            result = joined(result, name, domain)
        return result

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


def cellular(table: Table, name: str) -> Cellular:
    """The domain of a column, or of a function of one, that has cells."""
    domain = table.grouping(name)
    if isinstance(domain, Range | Dates) and not domain.edges:
        raise InvalidInput(f"domain of {name}", "one with edges, to group by it", "none")
    return domain


def check_one_level(table: Table, names: Sequence[str], field: str) -> None:
    """A table by two levels of one column would have cells that nobody can be in."""
    seen: dict[str, str] = {}
    for name in names:
        root = root_of(table.domains, name)
        if root in seen and (name != root or seen[root] != root):
            accepted = f"one level of {root}: the upper one follows from the lower one"
            raise InvalidInput(field, accepted, f"{seen[root]!r} and {name!r}")
        seen[root] = name


def free(column: str, taken: Sequence[str]) -> str:
    """A column's name, changed a little where an answer has another column of that name."""
    while column in taken:
        column += "_"
    return column
