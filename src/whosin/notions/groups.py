"""Groups of rows: the tables that differ in at most g rows.

B_j(x) is the least likelihood over the tables that differ from x in at most j rows. Row after row,
B_j ← min(B_j, min along the row of B_{j−1}), with the B_{j−1} from before that row: O(n g m^n K).
"""

from __future__ import annotations

import numpy as np

from whosin.exact import Array
from whosin.mechanisms import Channel
from whosin.spaces import Records
from whosin.spaces.search import first_at_least, largest_ratio


def least_within(array: Array, space: Records, group: int) -> Array:
    """For each table and output the least likelihood among tables that differ in at most `group`
    rows; worlds × outputs."""
    steps = [array.copy() for _ in range(group + 1)]
    for row in range(space.rows):
        for j in range(group, 0, -1):  # from the largest: B_{j−1} has not seen this row yet
            view, below = (space.axis(each, row) for each in (steps[j], steps[j - 1]))
            np.minimum(view, below.min(axis=1, keepdims=True), out=view)
    return steps[group]


def group_case(channel: Channel, group: int) -> tuple[tuple[int, int], int]:
    """((the likelier world, the other), output) with the largest ratio within a group."""
    space, array = channel.space, channel.searchable
    assert isinstance(space, Records)
    group = min(group, space.rows)
    least = least_within(array, space, group)
    world, output = first_at_least(array, least, largest_ratio(array, least))
    column = array[:, output]
    worlds = np.flatnonzero(column == least[world, output])
    differing = np.zeros(len(worlds), dtype=int)
    for row in range(space.rows):
        stride = space.stride(row)
        differing += worlds // stride % space.values != world // stride % space.values
    return (world, int(worlds[differing <= group][0])), output
