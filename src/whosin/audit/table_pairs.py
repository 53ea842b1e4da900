"""Pairs of neighbouring tables to try: a person more, a person less, one person for another.

The people who are most likely to show are tried first: the largest and the smallest of each numeric
column, those with the rarest values, then others by chance. A table is a data frame, an array with
a row a person, or a list of rows (mappings, tuples or single values). Names of pairs say row
numbers, never values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from whosin.audit.inputs import RELATIONS, InputPair
from whosin.errors import InvalidInput, UnknownName
from whosin.validation import whole

PEOPLE = 12


def neighbour_tables(
    table: Any,
    relation: str = "add-remove",
    *,
    person: str | None = None,
    people: int = PEOPLE,
    seed: int = 0,
) -> list[InputPair]:
    """Pairs of tables that differ in one person.

    Args:
        person: the column that says whose a row is; by default each row is a person of its own.
        people: how many people are tried.

    >>> [pair.name for pair in neighbour_tables([1, 5, 2], people=1)]
    ['row 1 or not', 'row 1 twice or once', 'row 1 alone or nobody']
    """
    if relation not in RELATIONS:
        raise UnknownName("relation", str(relation), RELATIONS)
    if not hasattr(table, "__len__") or isinstance(table, str | bytes | dict):
        accepted = "a data frame, an array or a list of rows"
        raise InvalidInput("table", accepted, type(table).__name__)
    if len(table) < 2:
        raise InvalidInput("table", "at least 2 rows", len(table))
    groups = _groups(table, person)
    chosen = _telling(table, groups, whole(people, "people", 1), np.random.default_rng(seed))
    result: list[InputPair] = []
    for index, rows in enumerate(chosen):
        result += _pairs(table, rows, chosen[index - 1], relation)
    return result


def _pairs(table: Any, rows: list[int], others: list[int], relation: str) -> Iterator[InputPair]:
    every = list(range(len(table)))
    rest = [row for row in every if row not in set(rows)]
    name = f"row {rows[0]}" if len(rows) == 1 else f"the person of row {rows[0]}"
    if relation == "add-remove":
        yield InputPair(f"{name} or not", table, _take(table, rest))
        yield InputPair(f"{name} twice or once", _take(table, every + rows), table)
        yield InputPair(f"{name} alone or nobody", _take(table, rows), _take(table, []))
    elif others != rows:
        yield InputPair(f"{name} or row {others[0]} again", table, _take(table, rest + others))


def _take(table: Any, rows: list[int]) -> Any:
    if hasattr(table, "iloc"):
        return table.iloc[rows].reset_index(drop=True)
    if isinstance(table, np.ndarray):
        return table[rows]
    if hasattr(table, "columns"):  # a frame without an index
        return table[rows]
    return [table[row] for row in rows]


def _columns(table: Any) -> dict[Any, list[Any]]:
    if hasattr(table, "columns") and not callable(table.columns):
        return {name: list(table[name]) for name in table.columns}
    rows = list(table)
    if isinstance(rows[0], dict):
        return {name: [row.get(name) for row in rows] for name in rows[0]}
    if isinstance(rows[0], tuple | list | np.ndarray):
        return {column: [row[column] for row in rows] for column in range(len(rows[0]))}
    return {0: rows}


def _groups(table: Any, person: str | None) -> list[list[int]]:
    """The rows of each person."""
    if person is None:
        return [[row] for row in range(len(table))]
    columns = _columns(table)
    if person not in columns:
        raise UnknownName("person", person, [str(name) for name in columns])
    result: dict[Any, list[int]] = {}
    for row, who in enumerate(columns[person]):
        result.setdefault(who, []).append(row)
    return list(result.values())


def _telling(
    table: Any, groups: list[list[int]], people: int, rng: np.random.Generator
) -> list[list[int]]:
    """The people most likely to show."""
    owner = {row: group for group, rows in enumerate(groups) for row in rows}
    chosen: dict[int, None] = {}
    for values in _columns(table).values():
        try:
            numbers = np.array(values, dtype=float)
            extremes = [int(np.nanargmax(numbers)), int(np.nanargmin(numbers))]
        except (TypeError, ValueError):
            counts = Counter(map(repr, values))
            rarest = min(counts, key=lambda value: counts[value])
            extremes = [[repr(value) for value in values].index(rarest)]
        for row in extremes:
            chosen[owner[row]] = None
    for group in rng.permutation(len(groups)).tolist():
        chosen[group] = None
    return [groups[group] for group in list(chosen)[:people]]
