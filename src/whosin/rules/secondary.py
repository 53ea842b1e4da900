"""How further cells are chosen that are suppressed so that totals do not give small ones away.

Contract: a declared procedure decides from the counts alone, without chance, which cells are
suppressed. Whoever knows it learns from the pattern too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from whosin.errors import InvalidInput
from whosin.mechanisms.count_rules.suppress import ZEROS
from whosin.validation import excerpt

Counts = npt.NDArray[np.int64]
Pattern = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class NextSmallest:
    """Where a line has only one suppressed cell, its smallest other cell is suppressed too.

    Lines are the rows if the table has their totals, from the top, then the columns if it has
    theirs, from the left, again and again until nothing changes. Among equal counts it is the
    first.

    Args:
        zeros: "shown" where a count of 0 is never chosen, or "hidden".
    """

    zeros: str = "shown"

    def __post_init__(self) -> None:
        if self.zeros not in ZEROS:
            raise InvalidInput("zeros", "shown or hidden", repr(self.zeros))

    def hidden(self, counts: Counts, small: Pattern, rows: bool, columns: bool) -> Pattern:
        """Which cells are suppressed, for tables × rows × columns, where the rule suppresses the
        `small` ones."""
        result, before = small.copy(), -1
        while before < (before := int(result.sum())):
            for row in range(counts.shape[1] if rows else 0):
                self._pair(counts[:, row, :], result[:, row, :])
            for column in range(counts.shape[2] if columns else 0):
                self._pair(counts[:, :, column], result[:, :, column])
        return result

    def _pair(self, counts: Counts, hidden: Pattern) -> None:
        """Suppress another cell of each line that has one alone, in place."""
        free = ~hidden if self.zeros == "hidden" else ~hidden & (counts > 0)
        alone = np.flatnonzero((hidden.sum(axis=1) == 1) & free.any(axis=1))
        values = np.where(free[alone], counts[alone], np.iinfo(np.int64).max)
        hidden[alone, values.argmin(axis=1)] = True


Procedure = NextSmallest | Callable[[Any], Any]
"""One of ours, or a function from a table of counts to a table of True where it is suppressed."""


def pattern_by(choose: Callable[[Any], Any], counts: Counts, nested: bool) -> Pattern:
    """Which cells a function of one's own suppresses, table by table."""
    result = np.empty(counts.shape, dtype=bool)
    for number, table in enumerate(counts.tolist()):
        rows = tuple(map(tuple, table))
        chosen = np.asarray(choose(rows if nested else rows[0]))
        wanted = counts.shape[1:] if nested else counts.shape[2:]
        if chosen.shape != wanted or chosen.dtype != bool:
            accepted = "a function that returns True or False for each cell of the population"
            raise InvalidInput(
                "secondary", accepted, f"one that returned {excerpt(chosen.tolist())}"
            )
        result[number] = chosen
    return result


PROCEDURES = "next-smallest or next-smallest:hidden (zeros too)"


def read_procedure(text: str, field: str = "secondary_by") -> NextSmallest:
    """A procedure as it is spelled on the command line."""
    name, colon, zeros = text.strip().partition(":")
    if name != "next-smallest" or (colon and zeros not in ZEROS):
        raise InvalidInput(field, PROCEDURES, repr(text[:80]))
    return NextSmallest(zeros) if colon else NextSmallest()
