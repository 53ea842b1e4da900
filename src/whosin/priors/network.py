"""Rows that depend on earlier rows through tables: a small Bayesian network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.priors.base import AsNumber
from whosin.priors.records import RecordPrior, distribution
from whosin.spaces.memory import require_table
from whosin.spaces.records import Records
from whosin.validation import tables, whole

Nodes = Sequence[tuple[Sequence[int], Mapping[Any, Sequence[object]]]]


@dataclass(frozen=True, eq=False)
class Network(RecordPrior):
    """Pr[x] = ∏ Pr[x_j | parents of j].

    Args:
        nodes: for each row in order its parents, all of them earlier rows, and a mapping from the
            tuple of their values to the distribution of the row: `((), {(): (0.5, 0.5)})` for a row
            without parents.
    """

    nodes: Nodes

    def __post_init__(self) -> None:
        accepted = "pairs of the parents and a mapping from their values to a distribution"
        for row, (parents, table) in enumerate(tables(self.nodes, "nodes", accepted)):
            if any(whole(parent, f"parents of row {row}", 0) >= row for parent in parents):
                raise InvalidInput(f"parents of row {row}", "earlier rows", tuple(parents))
            for values in table:
                if not isinstance(values, tuple) or len(values) != len(parents):
                    raise InvalidInput(
                        f"table of row {row}", f"keys of {len(parents)} values", repr(values)
                    )
        _ = self._exact

    @cached_property
    def _exact(self) -> list[dict[tuple[int, ...], tuple[Any, ...]]]:
        return [
            {
                tuple(key): distribution(row, f"row {number} given {tuple(key)}")
                for key, row in table.items()
            }
            for number, (_parents, table) in enumerate(self.nodes)
        ]

    @property
    def parameters(self) -> tuple[object, ...]:
        return tuple(p for _, table in self.nodes for row in table.values() for p in row)

    def on_records(self, space: Records, number: AsNumber) -> Array:
        if len(self.nodes) != space.rows:
            raise InvalidInput("nodes", f"{space.rows}, one for each row", len(self.nodes))
        require_table("a table over all records", space.worlds, 1, space.values)
        out = np.empty(space.worlds, dtype=float if number is float else object)
        for index, world in enumerate(space):
            mass = number(1)
            for row, (parents, _table) in enumerate(self.nodes):
                key = tuple(world[parent] for parent in parents)
                chances = self._exact[row].get(key)
                if chances is None or len(chances) != space.values:
                    what = f"{space.values} probabilities given {key}"
                    raise InvalidInput(
                        f"table of row {row}", what, "none" if chances is None else len(chances)
                    )
                mass = mass * number(chances[world[row]])
            out[index] = mass
        return out
