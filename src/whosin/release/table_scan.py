"""The exact counts of many tables in one scan.

Contract: every row of the source is read once, and the rows of an entity that count are chosen
once, so that all tables are of the same people. A row is put into a few larger tables that hold the
measured ones (`covers`), and margins are summed here.

An engine whose rows are in this process places and chooses them, each row being its places packed
into whole numbers, and gives them away a batch at a time to be counted here (`Counting`): a fifth
of the time that it takes to count ten cells a row itself. Another engine counts, and only counts
come here. Processor time for 91 tables of 13 columns and 10^6 rows of Parquet on DuckDB: 0.4 s, and
0.9 s where a row of each person is chosen, instead of 1.8 and 2.9.
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
BITS = 63
"""What a packed number holds."""
CODE, ROWS, PACKED = "code", "rows", "packed"


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

    @cached_property
    def packing(self) -> tuple[tuple[int, int], ...]:
        """For each attribute the packed number that holds its place, and from which bit on."""
        result, number, start = [], 0, 0
        for size in self.sizes:
            width = _width(size)
            if start + width > BITS:
                number, start = number + 1, 0
            result.append((number, start))
            start += width
        return tuple(result)

    def expression(self, table: Table, where: str | None, rows: int) -> Any:
        """What the engine finds, at most `rows` rows per entity: the packed places of each row, or
        how many rows each cell of the blocks has."""
        present = eligible(table, where)
        base = self.cells.coded(present, **bounding.owner(present, table))
        if table.engine.streams:
            owners = {name: base[name] for name in base.columns if name == bounding.ENTITY}
            packed = base.select(**owners, **self._packed(base))
            chosen = bounding.first(packed, [bounding.ENTITY], rows)
            return chosen.select(*(name for name in chosen.columns if name != bounding.ENTITY))
        return self._counted(bounding.first(base, [bounding.ENTITY], rows))

    def _packed(self, rows: Any) -> dict[str, Any]:
        import ibis

        result: dict[str, Any] = {f"{PACKED}_0": ibis.literal(0, "int64")}
        for name, (number, start) in zip(self.cells.names, self.packing, strict=True):
            place = rows[name].cast("int64") * ibis.literal(2**start, "int64")
            key = f"{PACKED}_{number}"
            result[key] = result[key] + place if key in result else place
        return result

    def _counted(self, chosen: Any) -> Any:
        import ibis

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
        if table.engine.streams:
            counting = Counting(self)
            table.engine.stream(expression, counting.take, progress)
            held = counting.held
        else:
            held = self._held(table.engine.run(expression, progress))
        return [self._margin(held, attributes) for attributes in self.sets]

    def _held(self, result: Any) -> list[Array]:
        flat = np.zeros(self.starts[-1], np.int64)
        flat[result.column(CODE).to_numpy().astype(np.int64)] = result.column(ROWS).to_numpy()
        return [
            flat[start:end].reshape([self.sizes[each] for each in block])
            for block, start, end in zip(self.blocks, self.starts, self.starts[1:], strict=False)
        ]

    def _margin(self, held: Sequence[Array], attributes: Attributes) -> Array:
        inside = set(attributes)
        block, counts = next(
            (block, counts)
            for block, counts in zip(self.blocks, held, strict=True)
            if inside.issubset(block)
        )
        axes = tuple(at for at, each in enumerate(block) if each not in inside)
        return np.asarray(counts.sum(axis=axes)) if axes else counts


class Counting:
    """The blocks of a scan, counted from packed rows a batch at a time."""

    def __init__(self, scan: TableScan) -> None:
        self.scan = scan
        self.held = [
            np.zeros([scan.sizes[each] for each in block], np.int64) for block in scan.blocks
        ]
        self.used = sorted({each for block in scan.blocks for each in block})

    def take(self, batch: Any) -> None:
        """Count a batch's rows."""
        packed = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
        places = {each: self._place(packed, each) for each in self.used}
        for block, counts in zip(self.scan.blocks, self.held, strict=True):
            code = np.zeros(batch.num_rows, np.int64)
            for each in block:
                code *= self.scan.sizes[each]
                code += places[each]
            flat = counts.reshape(-1)
            if counts.size > MOST_DENSE * max(batch.num_rows, 1):
                np.add.at(flat, code, 1)
            else:
                flat += np.bincount(code, minlength=counts.size)

    def _place(self, packed: Sequence[Array], attribute: int) -> Array:
        number, start = self.scan.packing[attribute]
        most = 2 ** _width(self.scan.sizes[attribute]) - 1
        return np.asarray((packed[number] >> start) & most)


MOST_DENSE = 8
"""Cells for each row of a batch; of more, single cells are counted up."""


def _width(size: int) -> int:
    """How many bits a place among this many takes."""
    return max(1, (size - 1).bit_length())
