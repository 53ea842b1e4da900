"""Counting packed rows, in this process or by an engine's workers.

Contract: a row is a few whole numbers that hold the numbers of its values, some bits each, and adds
1 to one cell of each block. What `tallying` returns holds numbers alone, and pickled by value needs
NumPy where it runs, and not this package.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from whosin.exact import Array
from whosin.marginals.workload import Attributes
from whosin.release.engines.base import RowCounter

BITS = 63
"""Bits that a packed number holds."""
BATCH = 2**16
"""Rows that are counted at a time: fewer pass over all cells too often, more leave the cache."""
MOST_DENSE = 8
"""Cells for each row of a batch; where there are more, single cells are counted up."""


@dataclass(frozen=True)
class PackedRows:
    """Packed rows, and the blocks of cells that they are counted into.

    Attributes:
        sizes: how many values each attribute has.
        blocks: the attributes of each block.
        bits: for each attribute the packed number that holds its number, and from which bit on.
    """

    sizes: tuple[int, ...]
    blocks: tuple[Attributes, ...]
    bits: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, sizes: tuple[int, ...], blocks: tuple[Attributes, ...]) -> PackedRows:
        bits, number, start = [], 0, 0
        for size in sizes:
            if start + _width(size) > BITS:
                number, start = number + 1, 0
            bits.append((number, start))
            start += _width(size)
        return cls(sizes, blocks, tuple(bits))


def tallying(layout: PackedRows) -> RowCounter:
    """What counts batches of packed rows: the cells of all blocks, one block after the other."""
    sizes, blocks, bits = layout.sizes, layout.blocks, layout.bits
    counts = [prod(sizes[each] for each in block) for block in blocks]
    used = sorted({each for block in blocks for each in block})
    masks = {each: 2 ** _width(sizes[each]) - 1 for each in used}
    enough, dense = BATCH, MOST_DENSE

    def together(batches: Iterable[Any]) -> Iterable[list[Any]]:
        waiting: list[list[Any]] = []
        rows = 0
        for batch in batches:
            waiting.append([column.to_numpy(zero_copy_only=False) for column in batch.columns])
            rows += batch.num_rows
            if rows >= enough:
                yield [np.concatenate(parts) for parts in zip(*waiting, strict=True)]
                waiting, rows = [], 0
        if rows:
            yield [np.concatenate(parts) for parts in zip(*waiting, strict=True)]

    def tally(batches: Iterable[Any]) -> Array:
        result = np.zeros(sum(counts), np.int64)
        for packed in together(batches):
            codes = {each: (packed[bits[each][0]] >> bits[each][1]) & masks[each] for each in used}
            start = 0
            for block, count in zip(blocks, counts, strict=True):
                code = np.zeros(len(packed[0]), np.int64)
                for each in block:
                    code *= sizes[each]
                    code += codes[each]
                cells = result[start : start + count]
                if count > dense * len(code):
                    np.add.at(cells, code, 1)
                else:
                    cells += np.bincount(code, minlength=count)
                start += count
        return result

    return tally


def _width(size: int) -> int:
    """How many bits a number below this one takes."""
    return max(1, (size - 1).bit_length())
