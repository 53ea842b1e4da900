"""The tables of an answer that has several, as people read them.

Contract: everything is taken from the answer itself, which was paid for: which columns name a cell,
how far noise reaches, which cells are too noisy to read, and whether the totals agree. A further
table or column of an answer is shown without a change here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from whosin.release import Answer
from whosin.release.queries import QUERIES, Query
from whosin.release.queries.base import NAME

NUMBERS = ("value", "low", "high", "all_low", "all_high", "whole")
"""Columns of numbers; every other column of a table names its cells."""
BIASED = "whole numbers, biased"
EQUAL = 1e-5
"""Estimates are kept with six decimals, so that two equal sums may differ by a little, a cell."""


@dataclass(frozen=True)
class Crosstab:
    """A table of two columns by rows and columns; the one with more values goes down.

    Attributes:
        indices: for each row of the crosstab the indices of its cells in the table.
    """

    down: str
    across: str
    row_labels: tuple[Any, ...]
    column_labels: tuple[Any, ...]
    indices: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class TableView:
    """One table of an answer.

    Attributes:
        keys: the columns that name a cell.
        cells: what each cell is called, a label for each key.
        margins: half of each cell's interval, which holds for this cell with 95% probability.
        all_margins: the same for all cells of the table at once.
        wholes: the version in whole numbers, which is biased.
        decimals: how many of the estimate's are worth showing.
    """

    title: str
    keys: tuple[str, ...]
    cells: tuple[tuple[Any, ...], ...]
    values: tuple[float, ...]
    margins: tuple[float, ...]
    all_margins: tuple[float, ...]
    wholes: tuple[int, ...]
    noisy: tuple[bool, ...]

    @cached_property
    def decimals(self) -> int:
        if all(float(each).is_integer() for each in (*self.values, *self.margins)):
            return 0
        return decimals(min(self.margins))

    @cached_property
    def labels(self) -> tuple[tuple[Any, ...], ...] | None:
        """The labels of each key, where the cells are all of their combinations, in order."""
        labels = tuple(tuple(dict.fromkeys(column)) for column in zip(*self.cells, strict=True))
        return labels if tuple(product(*labels)) == self.cells else None

    @property
    def crosstab(self) -> Crosstab | None:
        """The table by rows and columns, where it has two keys."""
        if len(self.keys) != 2 or self.labels is None:
            return None
        (one, other), (first, second) = self.labels, self.keys
        width = len(other)
        indices = tuple(
            tuple(row * width + column for column in range(width)) for row in range(len(one))
        )
        if len(one) < width:
            return Crosstab(second, first, other, one, tuple(zip(*indices, strict=True)))
        return Crosstab(first, second, one, other, indices)

    def number(self, index: int) -> str:
        """The estimate of a cell."""
        return rounded(self.values[index], self.decimals)

    def margin(self, index: int) -> str:
        """How far the estimate of a cell may be off."""
        return rounded(self.margins[index], self.decimals)

    @property
    def margin_words(self) -> str:
        """How far the estimates may be off, in words."""
        one, every = self.spreads
        if len(self.cells) == 1:
            return f"± {one} with 95% probability"
        return f"± {one} for each cell; ± {every} for all {len(self.cells):,} at once"

    @cached_property
    def spreads(self) -> tuple[str, str]:
        """The margin of a cell, and that of all cells at once; two ends where they differ."""
        return self._spread(self.margins), self._spread(self.all_margins)

    def _spread(self, margins: Sequence[float]) -> str:
        ends = dict.fromkeys(rounded(each, self.decimals) for each in (min(margins), max(margins)))
        return " to ".join(ends)


def keys_of(answer: Answer) -> tuple[str, ...]:
    """The columns of an answer that name its cells."""
    return tuple(name for name in answer.columns if name not in NUMBERS)


def scales_of(answer: Answer) -> dict[str, str]:
    """What the values of each column of an answer are: an amount, a point of a column, a name."""
    query = QUERIES.get(str(answer.question.get("query")), Query)
    return {name: query.scale if name in NUMBERS else NAME for name in answer.columns}


def views(answer: Answer) -> tuple[TableView, ...]:
    """The tables of an answer, each as it is read."""
    return tuple(_view(each) for each in answer.tables)


def _view(table: Answer) -> TableView:
    columns = {name: number for number, name in enumerate(table.columns)}
    keys = keys_of(table)

    def half(low: str, high: str) -> tuple[float, ...]:
        return tuple((row[columns[high]] - row[columns[low]]) / 2 for row in table.rows)

    return TableView(
        title=table.title,
        keys=keys,
        cells=tuple(tuple(row[columns[key]] for key in keys) for row in table.rows),
        values=tuple(row[columns["value"]] for row in table.rows),
        margins=half("low", "high"),
        all_margins=half("all_low", "all_high"),
        wholes=tuple(row[columns["whole"]] for row in table.rows),
        noisy=table.noisy,
    )


def agreement(answer: Answer) -> str:
    """Whether the tables agree about how many there are in all, in words; found by adding up.
    Tables whose cells overlap, as ranges do, have no total."""
    described = answer.details["tables"] if answer.details else ()
    pairs = zip(described, views(answer), strict=True)
    summed = [view for each, view in pairs if each.get("adds_up", True)]
    if len(summed) < 2:
        return ""
    sums = [math.fsum(each.values) for each in summed]
    slack = EQUAL * max(len(each.cells) for each in summed)
    wholes = {sum(each.wholes) for each in summed}
    if max(sums) - min(sums) > slack or len(wholes) > 1:
        ends = f"{rounded(min(sums), 1)} to {rounded(max(sums), 1)}"
        wide = f"{min(wholes):,} to {max(wholes):,}"
        return f"The totals of the {len(summed)} tables differ: {ends}, in {BIASED}, {wide}."
    total = rounded(sums[0], min(each.decimals for each in summed))
    others = len(described) - len(summed)
    which = f"each of the {len(summed)} tables" + (" whose cells do not overlap" if others else "")
    return f"The totals agree: {which} adds up to {total}, and in {BIASED}, to {wholes.pop():,}."


def page_data(answer: Answer) -> list[dict[str, Any]]:
    """Where the tables are in the answer's rows, and how to show them, as plain data."""
    result, start = [], 0
    for each in views(answer):
        result.append(
            {
                "title": each.title,
                "keys": list(each.keys),
                "labels": each.labels,
                "start": start,
                "cells": len(each.cells),
                "decimals": each.decimals,
                "margins": each.spreads,
                "noisy": sum(each.noisy),
            }
        )
        start += len(each.cells)
    return result


def decimals(margin: float) -> int:
    """Decimals worth showing beside a margin of error: its first two digits."""
    if not margin > 0:
        return 0
    return max(0, min(6, 1 - math.floor(math.log10(margin))))


def rounded(value: float, digits: int) -> str:
    """A number with this many decimals; nothing is shown as −0."""
    return f"{round(float(value), digits) + 0.0:,.{digits}f}"
