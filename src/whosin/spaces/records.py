"""The record model of Zhao 2017 and Wang et al. 2014: n rows, each with one of m values.

Contract, which never changes: row 0 is the most significant digit of a world's number, the order
of `itertools.product(range(m), repeat=n)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.validation import listed, whole

MOST = 1_000_000
"""Rows, and values of a row: beyond it not even the number of worlds can be written."""


@dataclass(frozen=True)
class Records:
    """All tables of `rows` rows whose entries are 0 … `values` − 1."""

    rows: int
    values: int

    def __post_init__(self) -> None:
        for field, least in (("rows", 1), ("values", 2)):
            object.__setattr__(self, field, whole(getattr(self, field), field, least, MOST))

    @property
    def worlds(self) -> int:
        """m^n."""
        return int(self.values**self.rows)

    def index(self, world: Sequence[int]) -> int:
        """The number of a world given by its rows."""
        accepted = f"{self.rows} values from 0 to {self.values - 1}"
        result = listed(world, "world", accepted)
        if len(result) != self.rows or any(value not in range(self.values) for value in result):
            raise InvalidInput("world", accepted, repr(result))
        number = 0
        for value in world:
            number = number * self.values + value
        return number

    def world(self, index: int) -> tuple[int, ...]:
        """The rows of a world given by its number."""
        digits = []
        whole(index, "index", 0)
        for _ in range(self.rows):
            index, digit = divmod(index, self.values)
            digits.append(digit)
        return tuple(reversed(digits))

    def stride(self, row: int) -> int:
        """How far apart two worlds are that differ by one in this row."""
        return int(self.values ** (self.rows - 1 - row))

    def axis(self, array: Array, row: int) -> Array:
        """View (worlds × outputs) as (before, values of the row, after · outputs)."""
        return array.reshape(-1, self.values, self.stride(row) * array.shape[1])

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return product(range(self.values), repeat=self.rows)
