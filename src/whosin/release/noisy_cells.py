"""Cells that are too noisy to read, as statistical offices mark them.

Contract: this looks at an answer that was paid for and at nothing else. The standard error is taken
from the 95% interval: how far its farther end is from the value, over 1.96, as if the error were
normal. That is a little more than Laplace noise has, so no cell that is too noisy goes unmarked,
and none whose interval was cut off at the end of a range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

LEVEL = 0.3
"""The relative standard error above which a cell is marked."""
NORMAL = 1.96
MARK = "*"


def too_noisy(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    level: float = LEVEL,
    ends: tuple[float, float] | None = None,
) -> tuple[bool, ...]:
    """For each row whether its standard error is above this share of its value, either way; nothing
    for answers without intervals.

    Args:
        ends: between which all values are: an interval that reaches from one to the other says
            nothing.
    """
    if not {"value", "low", "high"} <= set(columns):
        return ()
    at = [columns.index(name) for name in ("value", "low", "high")]
    marks = []
    for value, low, high in ([row[index] for index in at] for row in rows):
        vague = ends is not None and low <= ends[0] and high >= ends[1]
        marks.append(vague or max(value - low, high - value) / NORMAL > level * abs(value))
    return tuple(marks)


def note(marks: Sequence[bool], level: float = LEVEL) -> str:
    """What the mark means, where there is one."""
    if not any(marks):
        return ""
    many = "" if len(marks) == 1 else f" ({sum(marks):,} of {len(marks):,} cells)"
    return f"{MARK} Too noisy to read: a relative standard error above {level:.0%}{many}."
