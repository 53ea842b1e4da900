"""Which pairs of columns to count: a tree that spans them all, chosen privately (MST; McKenna,
Miklau and Sheldon 2021).

The score of a pair is how far its table is from what its columns' noisy counts say if they had
nothing to do with each other. In each round the best pair that joins two groups of columns is
chosen by the exponential mechanism and joins them, as Kruskal's algorithm would. Every round reads
scores whose sensitivity is that of `distances`, and is paid for; what was chosen before is public.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from whosin.exact import Array

Pair = tuple[int, int]


def spanning_tree(
    columns: int, scores: Mapping[Pair, int], choose: Callable[[Array], int]
) -> list[Pair]:
    """The pairs of a spanning tree, in the order in which they were chosen.

    Args:
        scores: the score of every pair.
        choose: the index of (nearly) the largest of some scores.
    """
    group = list(range(columns))
    chosen: list[Pair] = []
    while len(chosen) < columns - 1:
        joining = [pair for pair in sorted(scores) if group[pair[0]] != group[pair[1]]]
        listed = np.array([scores[pair] for pair in joining], np.int64)
        one, other = joining[choose(listed) if len(joining) > 1 else 0]
        chosen.append((one, other))
        group = [group[one] if each == group[other] else each for each in group]
    return chosen


def rounds(columns: int) -> int:
    """How many choices a spanning tree takes; two columns leave none."""
    return columns - 1 if columns > 2 else 0
