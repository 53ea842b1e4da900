"""The exact counts of many tables in one scan.

Contract: every row of the source is read once, and the rows of an entity that count are chosen
once, so that all tables are of the same people. A row is put into a few larger tables that hold the
measured ones (`covers`); the engine counts rows by cell, and margins are summed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from whosin.exact import Array
from whosin.marginals.covers import cover
from whosin.marginals.workload import Attributes
from whosin.release import bounding
from whosin.release.bounding import eligible
from whosin.release.cells import Cells
from whosin.release.engines.base import Progress
from whosin.release.table import Table

MOST_COUNTED = 2**18
"""Cells of a table that holds several measured ones."""
CODE, ROWS = "code", "rows"


@dataclass(frozen=True)
class TableScan:
    """Tables over some attributes, to be counted at once.

    Attributes:
        cells: the attributes, with their domains.
        sets: which attributes each table has.
    """

    cells: Cells
    sets: tuple[Attributes, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each attribute has."""
        return tuple(len(domain.labels) for domain in self.cells.domains)

    @cached_property
    def blocks(self) -> tuple[Attributes, ...]:
        """The tables that are counted."""
        return cover(self.sizes, sorted(set(self.sets)), MOST_COUNTED)

    @cached_property
    def starts(self) -> list[int]:
        """The number of the first cell of each block, and of what comes after the last."""
        counts = [prod(self.sizes[each] for each in block) for block in self.blocks]
        return [0, *np.cumsum(counts).tolist()]

    def expression(self, table: Table, where: str | None, rows: int) -> Any:
        """How many rows each cell of the blocks has, at most `rows` rows an entity."""
        import ibis

        present = eligible(table, where)
        base = self.cells.coded(present, **bounding.owner(present, table))
        chosen = bounding.first(base, [bounding.ENTITY], rows)
        codes = [
            self._code(chosen, block) + start
            for block, start in zip(self.blocks, self.starts, strict=False)
        ]
        if len(codes) == 1:
            spread = chosen.select(**{CODE: codes[0]})
        else:
            spread = chosen.select(**{CODE: ibis.array(codes).unnest()})
        return spread.group_by(CODE).aggregate(**{ROWS: spread.count()})

    def _code(self, rows: Any, block: Attributes) -> Any:
        import ibis

        code = ibis.literal(0, "int64")
        for each in block:
            code = code * self.sizes[each] + rows[self.cells.names[each]].cast("int64")
        return code

    def count(self, table: Table, expression: Any, progress: Progress | None) -> list[Array]:
        """The tables, exactly. Never shown."""
        result = table.engine.run(expression, progress)
        flat = np.zeros(self.starts[-1], np.int64)
        flat[result.column(CODE).to_numpy().astype(np.int64)] = result.column(ROWS).to_numpy()
        held = [
            flat[start:end].reshape([self.sizes[each] for each in block])
            for block, start, end in zip(self.blocks, self.starts, self.starts[1:], strict=False)
        ]
        return [self._margin(held, attributes) for attributes in self.sets]

    def _margin(self, held: Sequence[Array], attributes: Attributes) -> Array:
        inside = set(attributes)
        block, counts = next(
            (block, counts)
            for block, counts in zip(self.blocks, held, strict=True)
            if inside.issubset(block)
        )
        axes = tuple(at for at, each in enumerate(block) if each not in inside)
        return np.asarray(counts.sum(axis=axes)) if axes else counts
