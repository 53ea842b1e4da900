"""Cell keys: a table says how likely each change of a count is.

Records carry random keys, the keys of a cell's records add up to the cell's key, and the key picks
the change from a table (the "p-table"). Keys of different people are independent and uniform, so
for one cell the change is drawn afresh; the same people always get the same change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from whosin.errors import InvalidInput, Unsupported
from whosin.exact import Rational, is_exact, probability, rational
from whosin.mechanisms.count_rules.p_table_file import read_p_table
from whosin.mechanisms.count_rules.rule import Rule
from whosin.mechanisms.count_table import Spread
from whosin.validation import MOST_PEOPLE, excerpt, path_of, whole

TOLERANCE = Fraction(1, 10**6)
"""By how much the decimals of a row may miss a sum of 1: p-tables are written with few digits."""
Row = tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True, init=False)
class CellKey(Rule):
    """count + change, where the row of the count in a table says how likely each change is.

    Args:
        table: {count: {change: probability}}, with a row for each count from 0 on; or the path of a
            file with the columns i, j, p (or i, v, p) or pcv, ckey, pvalue.
        period: above the last row the rows repeat: the last `period` rows in turn, by default the
            last one alone (250 of them in a file of keys with 750 counts).
    """

    table: tuple[Row, ...]
    period: int = 1

    def __init__(self, table: object, period: int | None = None) -> None:
        repeated = 1
        if isinstance(table, str | Path):
            table, repeated = read_p_table(path_of(table, "table"))
        if isinstance(table, tuple) and table and all(isinstance(row, tuple) for row in table):
            table = {count: dict(row) for count, row in enumerate(table)}
        object.__setattr__(self, "table", _rows(table))
        object.__setattr__(self, "period", whole(period or repeated, "period", 1, len(self.table)))

    @cached_property
    def largest(self) -> int:
        """The largest change, up or down."""
        return max(abs(change) for row in self.table for change, _ in row)

    @property
    def reach(self) -> int:
        return 2 * self.largest

    @property
    def keyed(self) -> bool:
        return True

    def spread(self, count: int) -> Spread:
        if count < 0:
            raise Unsupported("a cell key is for counts of at least 0; raise those below 0 first")
        last = len(self.table) - 1
        number = count
        if count > last:
            number = last - self.period + 1 + (count - last - 1) % self.period
        return [(count + change, weight) for change, weight in self.table[number]]


def _rows(table: object) -> tuple[Row, ...]:
    accepted = "{count: {change: probability}}, with a row for each count from 0 on"
    if not isinstance(table, Mapping) or not table:
        raise InvalidInput("table", accepted, excerpt(table))
    for count in table:
        whole(count, "count of a row in table", 0, MOST_PEOPLE)
    missing = next((count for count in range(len(table)) if count not in table), None)
    if missing is not None:
        raise InvalidInput("table", accepted, f"none for a count of {missing}")
    return tuple(_row(count, table[count]) for count in range(len(table)))


def _row(count: int, row: Any) -> Row:
    where = f"row {count} of table"
    if not isinstance(row, Mapping) or not row:
        raise InvalidInput(where, "{change: probability}", excerpt(row))
    for change in row:
        whole(change, f"change in {where}", -count, MOST_PEOPLE)
    entries = {int(change): probability(p, f"probability in {where}") for change, p in row.items()}
    total = sum(entries.values(), Fraction(0))
    exact = is_exact(*row.values())
    if (total != 1 and exact) or abs(total - 1) > TOLERANCE:
        raise InvalidInput(f"sum of {where}", "1", f"{float(total):.12g}")
    return tuple(
        (change, Rational(rational(p) / total)) for change, p in sorted(entries.items()) if p
    )
