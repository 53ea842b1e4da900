"""Rows of a table as numbers, so that the distance of two rows is their mean difference by column.

Contract: everything is learnt from the synthetic table alone, which an attacker has: ranges of
numbers, words of columns. A column is one of numbers if all of its cells are. Equal words are at
distance 0, others at distance 1; numbers at their difference over the range, at most 1 apart within
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array

ACCEPTED = "a table: a frame, an array of rows, or a list of rows"


def columns_of(table: Any, name: str) -> list[Array]:
    """The columns of a table, each of numbers or of words."""
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):
        cells = [np.asarray(table[column]) for column in table.columns]
    else:
        rows = [tuple(row.values()) if isinstance(row, dict) else row for row in table]
        try:
            cells = [np.array(column, dtype=object) for column in zip(*rows, strict=True)]
        except (TypeError, ValueError):
            raise InvalidInput(name, ACCEPTED, "rows of different lengths, or none") from None
    if not cells or not len(cells[0]):
        raise InvalidInput(name, ACCEPTED, "an empty one")
    return [_typed(column) for column in cells]


def arranged(table: Any, other: Any, name: str) -> Any:
    """A table with its columns in the order of train's, where both name them."""
    own, wanted = _names(table), _names(other)
    if own is None or wanted is None or own == wanted:
        return table
    if sorted(map(str, own)) != sorted(map(str, wanted)):
        raise InvalidInput(f"columns of {name}", "those of train, in any order", "others")
    if hasattr(table, "columns"):
        return table[wanted]
    return [{each: row[each] for each in wanted} for row in table]


def _names(table: Any) -> list[Any] | None:
    """What the columns are called, where a table says it."""
    if hasattr(table, "columns") and hasattr(table, "__getitem__"):
        return list(table.columns)
    first = table[0] if isinstance(table, list) and table else None
    return list(first) if isinstance(first, dict) else None


def _typed(column: Array) -> Array:
    try:
        numbers = column.astype(np.float64)
    except (TypeError, ValueError):
        return np.array([_word(cell) for cell in column])
    return np.where(np.isnan(numbers), -np.inf, numbers)


def _word(cell: object) -> str:
    """A cell as a word; numbers as they are written in a column of numbers alone."""
    value = _number(cell)
    return str(cell) if value is None else str(np.float64(value))


def _number(cell: object) -> float | None:
    try:
        value = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return -np.inf if np.isnan(value) else value


@dataclass(frozen=True)
class Encoding:
    """How rows become numbers.

    Attributes:
        columns: of the synthetic table.
    """

    columns: tuple[Array, ...]

    @classmethod
    def of(cls, synthetic: Any) -> Encoding:
        """Learnt from a synthetic table."""
        return cls(tuple(columns_of(synthetic, "synthetic")))

    def __call__(self, table: Any, name: str, only: list[int] | None = None) -> Array:
        """The rows of a table; of some columns alone, where these are given."""
        cells = columns_of(table, name)
        if len(cells) != len(self.columns):
            got = f"{len(cells)} columns"
            raise InvalidInput(name, f"the {len(self.columns)} columns of the synthetic table", got)
        chosen = range(len(cells)) if only is None else only
        parts = [_encoded(cells[column], self.columns[column]) for column in chosen]
        return np.hstack(parts) / len(parts)


def _encoded(cells: Array, known: Array) -> Array:
    if known.dtype.kind == "f":
        if cells.dtype.kind != "f":  # a word among numbers is as one that is missing
            told = (_number(cell) for cell in cells)
            cells = np.array([-np.inf if value is None else value for value in told])
        finite = known[np.isfinite(known)]
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
        span = high - low or 1.0
        return np.asarray(np.clip((cells - low) / span, -1.0, 2.0)[:, None])
    words = np.unique(known.astype(str))
    return np.asarray((cells.astype(str)[:, None] == words) / 2)
