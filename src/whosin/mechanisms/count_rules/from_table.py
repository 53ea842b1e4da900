"""A rule of one's own: a row of output probabilities for each count."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

from whosin.errors import InvalidInput, Unsupported
from whosin.mechanisms.count_rules.rule import Rule
from whosin.mechanisms.count_table import CountTable, Spread
from whosin.mechanisms.stochastic import output_names, stochastic


@dataclass(frozen=True)
class FromTable(Rule):
    """Pr[output | count] as a table: n + 1 rows for n people, instead of one for each world.

    Args:
        matrix: counts × outputs; floats, or for an exact rule ints, fractions, strings.
        outputs: names of the outputs; 0, 1, … by default.
    """

    matrix: object
    outputs: Sequence[Hashable] | None = None

    def __post_init__(self) -> None:
        _ = self._table

    @cached_property
    def _table(self) -> CountTable:
        rows = len(self.matrix) if hasattr(self.matrix, "__len__") else 0
        if rows < 2:
            raise InvalidInput("matrix", "a row for each count 0, 1, …: at least two", rows)
        floats, exact = stochastic(
            self.matrix, rows, "one a count", lambda row: f"row {row} of matrix"
        )
        names = output_names(self.outputs, floats.shape[1])
        return CountTable.from_dense(floats if exact is None else exact, names)

    def spread(self, count: int) -> Spread:
        table = self._table
        if not 0 <= count <= table.people:
            raise Unsupported(f"the table is for counts of 0 to {table.people}, not for {count}")
        entries = range(table.starts[count], table.starts[count + 1])
        return [(table.outputs[table.columns[entry]], table.weights[entry]) for entry in entries]

    def on_counts(self, people: int, margin: int = 0) -> CountTable:
        if people != self._table.people:
            wanted = f"{people + 1}, one for each count 0 … {people}"
            raise InvalidInput("rows of matrix", wanted, self._table.people + 1)
        return self._table
