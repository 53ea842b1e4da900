"""Rows that follow a Markov chain: a person's days, a sequence of places (F13)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.priors.base import AsNumber
from whosin.priors.records import RecordPrior, distribution
from whosin.spaces.records import Records
from whosin.validation import listed, whole

Row = tuple[Fraction, ...]
Matrix = tuple[Row, ...]


@dataclass(frozen=True, init=False)
class MarkovChain(RecordPrior):
    """Pr[x] = initial(x_0) ∏ transition(x_j, x_{j+1}).

    Args:
        initial: the distribution of the first row.
        transition: one matrix for every step, or a list with one matrix for each step.
    """

    initial: tuple[object, ...]
    transition: tuple[Any, ...]

    def __init__(self, initial: Iterable[object], transition: Iterable[Any]) -> None:
        listed(transition, "transition", "a matrix, or one for each step")
        object.__setattr__(self, "initial", listed(initial, "initial", "a list of numbers"))
        object.__setattr__(self, "transition", _tuples(transition))
        _ = self.start, self.steps

    @cached_property
    def start(self) -> Row:
        """The distribution of the first row, exactly."""
        return distribution(self.initial, "initial distribution")

    @cached_property
    def steps(self) -> tuple[Matrix, ...]:
        """The transition matrices, exactly: one for all steps, or one for each step."""
        values = len(self.start)
        if not self.transition or not all(isinstance(row, tuple) for row in self.transition):
            raise InvalidInput(
                "transition", "a matrix, or one for each step", repr(self.transition)
            )
        nested = self.transition[0] and isinstance(self.transition[0][0], tuple)
        listed = self.transition if nested else (self.transition,)
        checked = []
        for number, matrix in enumerate(listed):
            where = f"transition {number}, row" if nested else "transition row"
            if len(matrix) != values or any(
                not isinstance(row, tuple) or len(row) != values for row in matrix
            ):
                size = f"{values} × {values}, as there are {values} initial values"
                raise InvalidInput("transition", size, f"{len(matrix)} rows")
            checked.append(
                tuple(distribution(row, f"{where} {index}") for index, row in enumerate(matrix))
            )
        return tuple(checked)

    @property
    def values(self) -> int:
        """How many values a row may have."""
        return len(self.start)

    @property
    def homogeneous(self) -> bool:
        """Whether every step has the same matrix."""
        return len(self.steps) == 1

    @property
    def parameters(self) -> tuple[object, ...]:
        return (*self.initial, *_flat(self.transition))

    def check_records(self, space: Records) -> None:
        if self.values != space.values:
            raise InvalidInput("initial distribution", f"{space.values} values", self.values)
        if not self.homogeneous and len(self.steps) != space.rows - 1:
            raise InvalidInput(
                "transition",
                f"one matrix, or {space.rows - 1} for {space.rows} rows",
                len(self.steps),
            )

    def matrix(self, step: int) -> Array:
        """The matrix from row `step` to the next, in floats."""
        chosen = self.steps[0] if self.homogeneous else self.steps[step]
        return np.array([[float(p) for p in row] for row in chosen])

    def on_records(self, space: Records, number: AsNumber) -> Array:
        self.check_records(space)
        mass: Array = np.array([number(p) for p in self.start], dtype=_kind(number))
        for step in range(space.rows - 1):
            chosen = self.steps[0] if self.homogeneous else self.steps[step]
            table: Array = np.array(
                [[number(p) for p in row] for row in chosen], dtype=_kind(number)
            )
            last = mass.reshape(-1, space.values)
            mass = (last[:, :, None] * table[None]).reshape(-1)
        return mass

    def marginals(self, rows: int) -> Array:
        """Pr[x_j = v] for each row, in floats: rows × values."""
        result = [np.array([float(p) for p in self.start])]
        for step in range(whole(rows, "rows", 1) - 1):
            result.append(result[-1] @ self.matrix(step))
        return np.array(result)


def _kind(number: AsNumber) -> type:
    return float if number is float else object


def _tuples(value: Any) -> Any:
    """Nested lists as nested tuples, so that the prior can be compared and hashed."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return value
    return tuple(_tuples(entry) for entry in value)


def _flat(value: Any) -> list[object]:
    if not isinstance(value, tuple):
        return [value]
    return [entry for part in value for entry in _flat(part)]
