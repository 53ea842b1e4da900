"""Mechanisms that treat each row on its own: one m × m matrix a row.

Randomised response (E_d, Wang14 eq. 30), the identifiability-optimal E_i of independent rows
(eq. 29), constants, and the rate–distortion channels of independent rows are all of this kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whosin.distortion.mechanisms.drawing import choices
from whosin.errors import InvalidInput
from whosin.exact import Array, flint_array, probability
from whosin.mechanisms import Channel, Mechanism
from whosin.spaces import Records, Space
from whosin.spaces.memory import require
from whosin.validation import listed

Matrix = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True)
class PerRow(Mechanism):
    """Pr[y|x] = ∏ over rows of matrix_i[x_i][y_i].

    Args:
        matrices: one stochastic matrix for each row; or a single one that serves every row of a
            table of any length.
    """

    matrices: tuple[Matrix, ...]

    def __post_init__(self) -> None:
        seen: set[int] = set()
        accepted = "square matrices, each line with sum 1"
        for number, matrix in enumerate(listed(self.matrices, "matrices", accepted)):
            if id(matrix) in seen:
                continue
            seen.add(id(matrix))
            for row in listed(matrix, "matrices", accepted):
                listed(row, "matrices", accepted)
                total = sum((probability(p, f"matrix of row {number}") for p in row), Fraction(0))
                if total != 1 or len(row) != len(matrix):
                    raise InvalidInput(
                        f"matrix of row {number}", "square, each line with sum 1", f"sum {total}"
                    )

    def of_row(self, row: int) -> Matrix:
        return self.matrices[0] if len(self.matrices) == 1 else self.matrices[row]

    def channel(self, space: Space | None = None) -> Channel:
        """Written out over all m^n worlds, exactly."""
        if not isinstance(space, Records):
            raise InvalidInput("space", "Records(rows, values)", repr(space))
        self._check(space.rows)
        require("a table of worlds by worlds", 100 * space.worlds**2)
        table = flint_array([1], (1, 1))
        for row in range(space.rows):
            matrix = self.of_row(row)
            if len(matrix) != space.values:
                raise InvalidInput("values", f"{len(matrix)}, as the matrices have", space.values)
            flat = (entry for line in matrix for entry in line)
            table = np.kron(table, flint_array(flat, (space.values, space.values)))
        return Channel(space, table, list(space))

    def sample(self, table: Sequence[int] | Array, rng: np.random.Generator) -> Array:
        """Draw an output for one table of any number of rows, in linear time, exactly as `channel`
        has it.

        For simulation, not for release: numpy's generator is not secure randomness.
        """
        rows = np.asarray(table, dtype=np.int64)
        self._check(len(rows))
        values = len(self.matrices[0])
        if rows.ndim != 1 or ((rows < 0) | (rows >= values)).any():
            raise InvalidInput("table", f"a list of values from 0 to {values - 1}", rows.shape)
        kinds = {id(matrix): matrix for matrix in self.matrices}
        number = {key: index for index, key in enumerate(kinds)}
        which = np.array([number[id(matrix)] for matrix in self.matrices], dtype=np.int64)
        lines = [line for matrix in kinds.values() for line in matrix]
        return choices(lines, which * values + rows, rng)

    def _check(self, rows: int) -> None:
        if len(self.matrices) not in (1, rows):
            raise InvalidInput("rows", f"{len(self.matrices)}, as there are matrices", rows)


def as_matrix(values: Array) -> Matrix:
    """A matrix of floats as exact rationals, each line scaled to sum 1."""
    lines = []
    for line in values:
        exact = [Fraction(float(value)) for value in line]
        total = sum(exact, Fraction(0))
        lines.append(tuple(value / total for value in exact))
    return tuple(lines)


def constant(table: Sequence[int], values: int) -> PerRow:
    """Always the same table."""
    if len(set(table)) == 1:
        table = table[:1]
    return PerRow(
        tuple(
            ((tuple(Fraction(int(b == value)) for b in range(values))),) * values for value in table
        )
    )


def identity(values: int) -> PerRow:
    """The data themselves."""
    return PerRow(
        (tuple(tuple(Fraction(int(a == b)) for b in range(values)) for a in range(values)),)
    )
