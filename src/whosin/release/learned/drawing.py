"""Rows of a model, drawn so that their tables are near to the model's.

Independent rows would add the error of a sample. Instead, table by table of the junction tree,
parents first: rows with the same values in the separator are a group, and their new cells are at
evenly spaced levels of the conditional shares, one level for each row, shifted at random. So each
group has every cell as often as the model says, to within one row. Which row of the group gets
which level is random: any rule by the other columns would tie tables together that have nothing in
common beyond the separator.
"""

from __future__ import annotations

import numpy as np

from whosin.exact import Array
from whosin.release.learned.trees import Conditionals, JunctionTree


def rows_of(
    tree: JunctionTree, conditionals: Conditionals, length: int, rng: np.random.Generator
) -> list[Array]:
    """For each column the numbers of values, in no order that means anything."""
    drawn: dict[int, Array] = {}
    for at, given in enumerate(conditionals):
        old = tree.separators[at]
        new = tuple(each for each in tree.tables[at] if each not in old)
        axes = [tree.tables[at].index(each) for each in old + new]
        groups = int(np.prod([tree.sizes[each] for each in old], dtype=np.int64))
        shares = given.transpose(axes).reshape(groups, -1)
        group = _codes(drawn, old, tree.sizes, length)
        cells = _spread(group, shares, rng)
        shape = tuple(tree.sizes[each] for each in new)
        for each, values in zip(new, np.unravel_index(cells, shape), strict=True):
            drawn[each] = np.asarray(values, np.int32)
    order = rng.permutation(length)
    return [drawn[each][order] for each in range(len(tree.sizes))]


def _codes(
    drawn: dict[int, Array], columns: tuple[int, ...], sizes: tuple[int, ...], length: int
) -> Array:
    if not columns:
        return np.zeros(length, np.int64)
    shape = tuple(sizes[each] for each in columns)
    return np.asarray(np.ravel_multi_index(tuple(drawn[each] for each in columns), shape))


def _spread(group: Array, shares: Array, rng: np.random.Generator) -> Array:
    """A cell for each row, by its group's shares."""
    length = len(group)
    order = np.lexsort((rng.random(length), group))
    sorted_group = group[order]
    counts = np.bincount(group, minlength=len(shares))
    starts = np.cumsum(counts) - counts
    ranks = np.arange(length) - starts[sorted_group]
    levels = (ranks + rng.random(len(shares))[sorted_group]) / counts[sorted_group]
    ends = np.cumsum(shares, axis=1)
    cells = np.empty(length, np.int64)
    for each in np.flatnonzero(counts):
        here = slice(starts[each], starts[each] + counts[each])
        last = ends[each, -1]
        drawn = np.searchsorted(ends[each], levels[here] * last, side="right")
        cells[here] = np.minimum(drawn, np.flatnonzero(shares[each])[-1] if last > 0 else 0)
    result = np.empty(length, np.int64)
    result[order] = cells
    return result
