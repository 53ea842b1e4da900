"""Perturbation tables as offices write them: text with a header, columns apart by , ; or tabs.

Two kinds of columns are in use:

- `i`, `j`, `p` and `v` (the R packages ptable and cellKey): a count of i becomes j = i + v with
  probability p; further columns are not needed. The row of the largest i is for all counts above.
- `pcv`, `ckey`, `pvalue` (the cell-key package of the UK's statistical office): a count of pcv in a
  cell with the key ckey changes by pvalue; all keys are equally likely. A count of 0 stays 0 where
  the table has no row for it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from whosin.documents import read_text
from whosin.errors import InvalidInput, at
from whosin.exact import probability, rational

MOST = 16 << 20
MOST_LINES = 1 << 20
LAST_OF_KEYS, REPEATED = 750, 250
"""Tables of keys have 750 counts; larger counts use the last 250 of them in turn."""
TOLERANCE = Fraction(1, 10**6)
Table = dict[int, dict[int, Fraction]]


def read_p_table(path: Path) -> tuple[Table, int]:
    """{count: {change: probability}} from a file, and how many of its last rows repeat."""
    with at(path.name):
        lines = read_text(path, "p-table", MOST).splitlines()[: MOST_LINES + 1]
        lines = [line for line in lines if line.strip()]
        if len(lines) < 2 or len(lines) > MOST_LINES:
            raise InvalidInput("p-table", f"a header and 1 to {MOST_LINES:,} rows", len(lines))
        mark = max(",;\t", key=lines[0].count)
        header, *rows = csv.reader(lines, delimiter=mark)
        columns = {name.strip().strip('"').lower(): at for at, name in enumerate(header)}
        for names, read in KINDS.items():
            if all(name in columns for name in names):
                table = _summed(read(_cells(rows, [columns[name] for name in names])))
                repeats = names[0] == "pcv" and max(table) == LAST_OF_KEYS
                return table, REPEATED if repeats else 1
        accepted = "i, j, p or i, v, p or pcv, ckey, pvalue"
        raise InvalidInput("columns of the p-table", accepted, ", ".join(list(columns)[:8]))


def _cells(rows: list[list[str]], columns: list[int]) -> list[tuple[int, list[str]]]:
    """(line, the cells of the columns) for each row."""
    result = []
    for line, row in enumerate(rows, start=2):
        if len(row) <= max(columns):
            raise InvalidInput(f"line {line} of the p-table", "a cell for each column", len(row))
        result.append((line, [row[column].strip() for column in columns]))
    return result


def _moves(cells: list[tuple[int, list[str]]]) -> Table:
    """From i, j, p."""
    table: Table = {}
    for line, (before, after, weight) in cells:
        count = _whole(before, line)
        _put(table, count, _whole(after, line) - count, weight, line)
    return table


def _changes(cells: list[tuple[int, list[str]]]) -> Table:
    """From i, v, p."""
    table: Table = {}
    for line, (before, change, weight) in cells:
        _put(table, _whole(before, line), _whole(change, line), weight, line)
    return table


def _keys(cells: list[tuple[int, list[str]]]) -> Table:
    """From pcv, ckey, pvalue."""
    rows: dict[int, dict[int, int]] = {}
    for line, (before, key, change_by) in cells:
        row = rows.setdefault(_whole(before, line), {})
        if _whole(key, line) in row:
            raise InvalidInput(f"line {line} of the p-table", "a key once for each count", key)
        row[_whole(key, line)] = _whole(change_by, line)
    keys = len(next(iter(rows.values())))
    table: Table = {} if 0 in rows else {0: {0: Fraction(1)}}
    for count, row in rows.items():
        if len(row) != keys:
            raise InvalidInput(f"keys of count {count} in the p-table", f"{keys}", len(row))
        for change in row.values():
            weights = table.setdefault(count, {})
            weights[change] = weights.get(change, Fraction(0)) + Fraction(1, keys)
    return table


KINDS: dict[tuple[str, ...], Callable[[list[tuple[int, list[str]]]], Table]] = {
    ("i", "j", "p"): _moves,
    ("i", "v", "p"): _changes,
    ("pcv", "ckey", "pvalue"): _keys,
}


def _put(table: Table, count: int, change: int, weight: str, line: int) -> None:
    row = table.setdefault(count, {})
    if change in row:
        raise InvalidInput(f"line {line} of the p-table", "each change once for a count", change)
    row[change] = probability(weight, f"probability in line {line} of the p-table")


def _whole(text: str, line: int) -> int:
    number = rational(text, f"line {line} of the p-table")
    if number.denominator != 1:
        raise InvalidInput(f"line {line} of the p-table", "whole numbers", text)
    return int(number)


def _summed(table: Table) -> Table:
    """The rows in order; decimals with few digits are brought to a sum of 1."""
    for count, row in table.items():
        total = sum(row.values(), Fraction(0))
        if abs(total - 1) > TOLERANCE:
            raise InvalidInput(
                f"sum of the probabilities of count {count}", "1", f"{float(total):.12g}"
            )
        for change in row:
            row[change] /= total
    return dict(sorted(table.items()))
