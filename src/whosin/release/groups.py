"""The groups of a group-by, and column expressions to group by.

A column expression is a column, a function of one, a level of a hierarchy, or sums of these in
their order: cumulative(age), ranges(age). Everything that is asked of one column is sums over the
same groups, so that it agrees before noise and after. An expression lists its groups in an order in
which every sum is a run of them. The group "other" is in no range and in no cumulative count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby, pairwise, product
from math import prod
from typing import Any

import numpy as np

from whosin.errors import InvalidInput, at, invalid_value, shorten, spell
from whosin.exact import Array, rational
from whosin.release.column_expressions import (
    FORM_PATTERN,
    Cellular,
    UpperLevel,
    cell_key,
    join_cell_numbers,
    listed_cell_number,
    root_column,
)
from whosin.release.domains import MAX_GROUP_COUNT, Dates, Range, read_day
from whosin.release.engines.base import whole_numbers
from whosin.release.table import Table


@dataclass(frozen=True)
class GroupGrid:
    """What a query groups by.

    Attributes:
        question: the column that says which of several questions a row is for, where one scan
            answers them all: each question's sums, and its bounds, are of its rows alone.
    """

    columns: tuple[str, ...]
    domains: tuple[Cellular, ...]
    question: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: Table, by: Sequence[str], field: str = "by") -> GroupGrid:
        """Check the columns, which the question names in this field, against declared domains."""
        if isinstance(by, str):
            by = (by,)
        key = cls, str(by)
        if key in table.kept:
            known: GroupGrid = table.kept[key]
            return known
        with at(field):
            if not isinstance(by, list | tuple) or not all(isinstance(each, str) for each in by):
                raise invalid_value(field, "a list of columns", repr(by)[:80])
            domains = tuple(group_domain(table, column) for column in by)
            if len(set(by)) != len(by):
                raise InvalidInput(
                    f"{field} names a column twice: {', '.join(by)}", field=field, value=list(by)
                )
            check_one_level(table, by, field)
            result = cls(tuple(by), domains)
            if result.count > MAX_GROUP_COUNT:
                raise InvalidInput(
                    f"{field} makes {spell(result.count)} groups; at most "
                    f"{spell(MAX_GROUP_COUNT)} are answered",
                    field=field,
                    value=result.count,
                    hint="group by fewer columns, or declare fewer values or bins",
                )
        table.keep(key, result)
        return result

    @cached_property
    def count(self) -> int:
        """How many cells there are; 1 without a group-by."""
        return prod(len(domain.labels) for domain in self.domains)

    @cached_property
    def most(self) -> int:
        """How many cells someone is in at most, if columns that were declared constant are: these
        do not spread anyone over cells. Bounding keeps to this number whatever the rows say."""
        return prod(len(domain.labels) for domain in self.domains if not domain.constant)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the key columns inside an expression."""
        return tuple(f"key_{index}" for index in range(len(self.columns)))

    @property
    def keys(self) -> tuple[str, ...]:
        """What an expression groups its sums by."""
        return self.question + self.names

    def headings(self, *taken: str) -> list[str]:
        """The names of the key columns in an answer that has further columns."""
        return [free_column_name(column, taken) for column in self.columns]

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
        keys, joined = {}, {}
        backend = rows.get_backend().name
        for name, column, domain in zip(self.names, self.columns, self.domains, strict=True):
            key = cell_key(rows, column, domain)
            number = listed_cell_number(key, domain, backend)
            if number is None:
                joined[name] = domain
            keys[name] = key if number is None else number
        result = rows.select(**columns, **{name: rows[name] for name in self.question}, **keys)
        for name, domain in joined.items():
            result = join_cell_numbers(result, name, domain)
        return result

    def dense(self, result: Any, names: Sequence[str]) -> list[Array]:
        """Aggregates by key as whole vectors, a cell that has no rows being 0."""
        sizes = [len(domain.labels) for domain in self.domains]
        flat = np.zeros(result.num_rows, dtype=np.int64)
        for name, size in zip(self.names, sizes, strict=True):
            flat = flat * size + whole_numbers(result.column(name))
        vectors = []
        for name in names:
            vector = np.zeros(self.count, dtype=np.int64)
            vector[flat] = whole_numbers(result.column(name))
            vectors.append(vector)
        return vectors


def group_domain(table: Table, name: str) -> Cellular:
    """The domain of a column, or of a function of one, that has cells."""
    domain = table.grouping(name)
    if isinstance(domain, Range | Dates) and not domain.edges:
        raise InvalidInput(
            f"the domain of {name} has no bins to group by",
            field=f"domain of {name}",
            hint="give it edges",
        )
    return domain


def check_one_level(table: Table, names: Sequence[str], field: str) -> None:
    """A table by two levels of one column would have cells that nobody can be in."""
    seen: dict[str, str] = {}
    for name in names:
        root = root_column(table.domains, name)
        if root in seen and (name != root or seen[root] != root):
            raise InvalidInput(
                f"{field} names {seen[root]!r} and {name!r}, two levels of {root}: the upper one "
                "follows from the lower one",
                field=field,
                value=[seen[root], name],
                hint="name one of them",
            )
        seen[root] = name


def free_column_name(column: str, taken: Sequence[str]) -> str:
    """A column's name, changed a little where an answer has another column of that name."""
    while column in taken:
        column += "_"
    return column


CUMULATIVE, RANGES = "cumulative", "ranges"
MAX_RANGES = 1_000
Span = tuple[int, int]


@dataclass(frozen=True)
class ColumnExpression:
    """One way to ask a column.

    Attributes:
        name: as it was asked.
        root: the column, or the function of one, whose cells are summed.
        domain: the domain of the root.
        labels: what each sum is called.
        order: the cells of the root.
        spans: the runs of cells, in that order, that the sums are.
        cells: its own domain where each cell of the root is in one sum: the root's, or a level.
    """

    name: str
    root: str
    domain: Cellular
    labels: tuple[str | int, ...]
    order: tuple[int, ...]
    spans: tuple[Span, ...]
    cells: Cellular | None

    @property
    def marks(self) -> list[int]:
        """For each cell of the root which sums it is in, as bits."""
        changes = [0] * (len(self.order) + 1)
        for bit, (start, end) in enumerate(self.spans):
            changes[start] ^= 1 << bit
            changes[end] ^= 1 << bit
        result = [0] * len(self.order)
        running = accumulate(changes[:-1], lambda one, other: one ^ other)
        for cell, marks in zip(self.order, running, strict=True):
            result[cell] = marks
        return result


def column_form(
    table: Table, name: str, ranges: Mapping[str, object], field: str
) -> ColumnExpression:
    """What a name stands for.

    Args:
        field: where it was named.
    """
    match = FORM_PATTERN.fullmatch(name)
    known = name in table.columns or name in table.levels
    if known or match is None or match[1] not in (CUMULATIVE, RANGES):
        with at(field):
            return _plain_form(table, name)
    inner = match[2].strip()
    with at(field):
        base = _plain_form(table, inner)
    if match[1] == CUMULATIVE:
        last = len(base.labels) - (base.domain.outside is None)
        return _summed_form(base, name, [(0, end) for end in range(1, last + 1)])
    if inner not in ranges:
        raise InvalidInput(
            f"{name} is asked, and ranges has none for {inner}", field="ranges", value=inner
        )
    with at(f"ranges.{inner}"):
        return _summed_form(base, name, _read_spans(base, inner, ranges[inner]))


def _plain_form(table: Table, name: str) -> ColumnExpression:
    domain = group_domain(table, name)
    if not isinstance(domain, UpperLevel):
        count = len(domain.labels)
        spans = tuple((index, index + 1) for index in range(count))
        return ColumnExpression(
            name, name, domain, domain.labels, tuple(range(count)), spans, domain
        )
    root = domain.domain
    placed = [*domain.parents.numbers, *([domain.beyond] if root.outside is None else [])]
    order = sorted(range(len(placed)), key=lambda cell: placed[cell])
    sizes = [len(list(same)) for _, same in groupby(placed[cell] for cell in order)]
    ends = list(accumulate(sizes, initial=0))
    spans = tuple(pairwise(ends))
    return ColumnExpression(name, domain.column, root, domain.labels, tuple(order), spans, domain)


def _summed_form(base: ColumnExpression, name: str, runs: list[Span]) -> ColumnExpression:
    """Sums of runs of what a form has, from a first to before a last one."""
    spans = tuple((base.spans[first][0], base.spans[end - 1][1]) for first, end in runs)
    labels = tuple(_span_label(base, first, end) for first, end in runs)
    return ColumnExpression(name, base.root, base.domain, labels, base.order, spans, None)


def _bin_edges(base: ColumnExpression) -> tuple[str, ...]:
    """The ends of bins, as texts; none where cells have names."""
    cells = base.cells
    if isinstance(cells, Range):
        return tuple(repr(float(rational(edge))).removesuffix(".0") for edge in cells.edges)
    if isinstance(cells, Dates) and not isinstance(cells.edges, str):
        return tuple(str(edge) for edge in cells.edges)
    return ()


def _span_label(base: ColumnExpression, first: int, end: int) -> str:
    if edges := _bin_edges(base):
        return f"{edges[first]}..{edges[end]}"
    names = base.labels[first], base.labels[end - 1]
    return str(names[0]) if end == first + 1 else f"{names[0]}..{names[1]}"


def _read_spans(base: ColumnExpression, name: str, listed: object) -> list[Span]:
    """Ranges as people write them: [18, 29] or "18..29"."""
    if not isinstance(listed, list | tuple) or not 1 <= len(listed) <= MAX_RANGES:
        accepted = f'a list of 1 to {spell(MAX_RANGES)} ranges, such as [18, 29] or "18..29"'
        raise invalid_value(name, accepted, repr(listed)[:80])
    result = [_read_one(base, name, each) for each in listed]
    for index, each in enumerate(result):
        if each in result[:index]:
            raise InvalidInput(
                f"{name} has the range {_span_label(base, *each)!r} twice", field=name
            )
    if all(end - first == len(base.labels) for first, end in result):
        raise InvalidInput(
            f"{name} has only ranges over all groups, which count everything",
            field=name,
            hint="add a range that leaves something out",
        )
    return result


def _read_one(base: ColumnExpression, name: str, given: object) -> Span:
    ends: Any = given.split("..") if isinstance(given, str) else given
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        raise invalid_value(name, 'ranges such as [18, 29] or "18..29"', repr(given)[:80])
    if edges := _bin_edges(base):
        known, what = edges, "edges of its bins"
        first, last = (_find_index(known, _spell_edge(base, end)) for end in ends)
    else:
        declared = len(base.labels) - (base.domain.outside is None)
        known, what = tuple(map(str, base.labels[:declared])), "declared values"
        first, last = (_find_index(known, str(end).strip()) for end in ends)
    if first is None or last is None:
        wrong = ends[0] if first is None else ends[1]
        raise InvalidInput(
            f"{name} has a range that ends at {shorten(repr(wrong)[:80])}, which is not one of "
            f"the {what}",
            field=name,
            value=wrong,
        )
    end = last if edges else last + 1
    if first >= end:
        raise InvalidInput(
            f"{name} has the range {shorten(repr(given)[:80])}, whose end is not above its start",
            field=name,
            value=given,
        )
    return first, end


def _spell_edge(base: ColumnExpression, end: object) -> str:
    """An end as edges are spelled; as it is where it is none."""
    try:
        if isinstance(base.cells, Dates):
            return read_day(end.strip() if isinstance(end, str) else end, "end").isoformat()
        return repr(float(rational(end))).removesuffix(".0")
    except InvalidInput:
        return str(end)


def _find_index(known: tuple[str, ...], name: str) -> int | None:
    return known.index(name) if name in known else None
