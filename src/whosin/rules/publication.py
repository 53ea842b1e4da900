"""A table as it would be shown, read and checked: its cells, totals and people.

Contract: shapes that do not fit, and numbers that no count could stand for, are refused in one
sentence with their cell. The rule alone says what a number or a suppressed cell tells about the
count behind it; `hides` says what the pattern of suppressed cells tells.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.errors import InvalidInput, at
from whosin.exact import rational
from whosin.mechanisms import Mechanism
from whosin.mechanisms.count_rules import SUPPRESSED, Rule
from whosin.mechanisms.post_processed import as_rule
from whosin.rules.secondary import Counts, NextSmallest, Pattern, Procedure, pattern_by
from whosin.validation import MOST_PEOPLE, excerpt, listed, whole

TOTALS = ("counted", "exact", "added")
MOST_CELLS = 10_000
MOST_COUNTS = 100_000
"""Counts that one number or mark may stand for."""


@dataclass(frozen=True)
class Publication:
    """A table as it would be shown.

    Args:
        cells: rows of whole numbers, None for what is suppressed; one row and one column more than
            the population where totals are shown, or one list with its total.
        population: how many people could be in each cell.
        rule: the rule behind the numbers, known to everyone: one, or a `PostProcessed` chain of
            them; None where numbers are counts and
            nothing is known of what is suppressed.
        totals: "counted" where the rule was applied to the true totals, "exact" where they are
            shown as they are, "added" where they are sums of what is shown and say nothing more.
        secondary: whether cells were suppressed for the sake of others too, so that a suppressed
            cell may have any count. With True, which ones were chosen is taken to say nothing more;
            with the procedure that chose them (`NextSmallest()`, or a function from the counts, as
            tuples shaped like `population`, to True for each suppressed cell, small ones included)
            the pattern is part of what is seen.
    """

    cells: Sequence[Any]
    population: Sequence[Any]
    rule: Mechanism | None = None
    totals: str = "counted"
    secondary: bool | Procedure = False


@dataclass(frozen=True)
class Layout:
    """A publication as flat lists."""

    name: str
    nested: bool
    rows: int
    columns: int
    cells: list[int | None]
    population: list[int]
    row_totals: list[int | None]
    column_totals: list[int | None]
    total: tuple[int | None, ...]
    rule: Rule | None
    secondary: bool
    procedure: Procedure | None
    has_totals: tuple[bool, bool]
    exact_totals: bool

    @classmethod
    def read(cls, given: Publication, name: str) -> Layout:
        nested = is_nested(given.population)
        frame = _rows(given.population if nested else [given.population], "population")
        table = _rows(given.cells if nested else [given.cells], name)
        rows, columns = len(frame), len(frame[0])
        extra = len(table) - rows, len(table[0]) - columns
        if not rows * columns or rows * columns > MOST_CELLS:
            raise InvalidInput("population", f"1 to {MOST_CELLS:,} cells", rows * columns)
        if extra[0] not in (0, 1) or extra[1] not in (0, 1):
            accepted = f"{rows} × {columns} cells as in population, and at most one more for totals"
            raise InvalidInput(name, accepted, f"{len(table)} × {len(table[0])}")
        if given.totals not in TOTALS:
            raise InvalidInput("totals", " or ".join(TOTALS), excerpt(given.totals))
        rule = None if given.rule is None else as_rule(given.rule)
        if given.rule is not None and rule is None:
            accepted = "a rule such as Suppress(5), or rules that post-process each other"
            raise InvalidInput("rule", accepted, excerpt(given.rule))
        if rule is not None and rule.keyed and any(extra) and given.totals == "counted":
            accepted = (
                "exact, added or left out with a cell key: the key of a total is the sum of the "
                "keys of its cells, so that its change is no draw of its own"
            )
            raise InvalidInput("totals", accepted, "counted")
        procedure = _procedure(given.secondary, rule)
        sizes = [_whole_at(cell, "population", position) for position, cell in _cells(frame)]
        read = {position: _count_at(cell, name, position) for position, cell in _cells(table)}
        counted = given.totals != "added"
        return cls(
            name, nested, rows, columns,
            [read[row, column] for row in range(rows) for column in range(columns)],
            sizes,
            [read[row, columns] for row in range(rows)] if extra[1] and counted else [],
            [read[rows, column] for column in range(columns)] if extra[0] and counted else [],
            (read[rows, columns],) if all(extra) and counted else (),
            rule, given.secondary is not False, procedure, (bool(extra[1]), bool(extra[0])),
            given.totals == "exact",
        )  # fmt: skip

    def path(self, cell: int) -> str:
        row, column = divmod(cell, self.columns)
        return f"[{row}][{column}]" if self.nested else f"[{column}]"

    def numbers(self) -> list[tuple[list[int], int | None, str]]:
        """The cells of every number, what is shown, and where."""
        width = self.columns
        result: list[tuple[list[int], int | None, str]] = [
            ([cell], value, self.path(cell)) for cell, value in enumerate(self.cells)
        ]
        for row, value in enumerate(self.row_totals):
            cells = list(range(row * width, (row + 1) * width))
            result.append((cells, value, f"[{row}][{width}]" if self.nested else f"[{width}]"))
        for column, value in enumerate(self.column_totals):
            result.append((list(range(column, len(self.cells), width)), value,
                           f"[{self.rows}][{column}]"))  # fmt: skip
        for value in self.total:
            result.append((list(range(len(self.cells))), value, f"[{self.rows}][{width}]"))
        return result

    def likely(
        self, value: int | None, most: int, where: str, total: bool
    ) -> dict[int, Fraction] | None:
        """How likely what is shown is for each count up to `most`; None where it says nothing."""
        field = f"{self.name}{where}"
        if self.rule is None or (total and self.exact_totals):
            if value is not None and value > most:
                raise InvalidInput(field, f"at most {most}, the people that could be there", value)
            return None if value is None else {value: Fraction(1)}
        if value is None and self.secondary and not (total and self.procedure):
            return None
        output: Hashable = SUPPRESSED if value is None else value
        reach, near = self.rule.reach, value or 0
        counts = range(max(0, near - reach), min(most, near + reach) + 1)
        if len(counts) > MOST_COUNTS:
            accepted = f"one of at most {MOST_COUNTS:,} counts"
            raise InvalidInput(field, accepted, f"one that may stand for any of {len(counts):,}")
        result = {}
        for count in counts:
            shares = (rational(p) for name, p in self.rule.spread(count) if name == output)
            weight = sum(shares, Fraction(0))
            if weight:
                result[count] = weight
        if not result:
            accepted = f"what the rule shows for a count of 0 to {most}"
            raise InvalidInput(field, accepted, "suppressed" if value is None else value)
        return result

    def hides(self, counts: Counts) -> Pattern:
        """For lines of counts of all cells, whether the procedure suppresses just the cells that
        are suppressed here."""
        tables = counts.reshape(-1, self.rows, self.columns)
        if isinstance(self.procedure, NextSmallest):
            pattern = self.procedure.hidden(tables, self._small(tables), *self.has_totals)
        elif self.procedure is not None:
            pattern = pattern_by(self.procedure, tables, self.nested)
        else:
            return np.ones(len(tables), dtype=bool)
        wanted = np.array([value is None for value in self.cells])
        return np.asarray((pattern.reshape(counts.shape) == wanted).all(axis=1))

    def _small(self, tables: Counts) -> Pattern:
        """Which cells the rule itself suppresses."""
        assert self.rule is not None
        values, which = np.unique(tables, return_inverse=True)
        small = []
        for count in values.tolist():
            shares = [rational(p) for name, p in self.rule.spread(count) if name == SUPPRESSED]
            if sum(shares) not in (0, 1):
                accepted = "one that suppresses a count always or never, with a procedure"
                raise InvalidInput("rule", accepted, f"one with chance {sum(shares)} at {count}")
            small.append(bool(sum(shares)))
        return np.asarray(np.array(small)[which.reshape(tables.shape)])


def _procedure(given: object, rule: Rule | None) -> Procedure | None:
    if isinstance(given, bool):
        return None
    if isinstance(given, type) or not (isinstance(given, NextSmallest) or callable(given)):
        accepted = "True, False, NextSmallest() or a function of the counts"
        raise InvalidInput("secondary", accepted, excerpt(given))
    if isinstance(given, NextSmallest) and rule is None:
        accepted = "given with the rule that suppresses small counts, such as Suppress(5)"
        raise InvalidInput("secondary", accepted, "no rule")
    return given


def is_table(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def is_nested(value: object) -> bool:
    return is_table(value) and bool(value) and is_table(value[0])  # type: ignore[index]


def _rows(value: object, field: str) -> list[tuple[Any, ...]]:
    accepted = "a list of rows, all of the same length"
    rows = [listed(row, field, accepted) for row in listed(value, field, accepted)]
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise InvalidInput(field, accepted, "rows of " + ", ".join(str(len(r)) for r in rows[:8]))
    return rows


def _cells(rows: Sequence[Sequence[Any]]) -> list[tuple[tuple[int, int], Any]]:
    return [((r, c), cell) for r, row in enumerate(rows) for c, cell in enumerate(row)]


def _whole_at(value: object, name: str, position: tuple[int, int]) -> int:
    return whole(value, f"{name}[{position[0]}][{position[1]}]", 0, MOST_PEOPLE)


def _count_at(value: object, name: str, position: tuple[int, int]) -> int | None:
    return None if value is None else _whole_at(value, name, position)


def cells_like(value: object, now: Layout, field: str) -> list[Any]:
    """The cells of a table of the population's shape."""
    rows = _rows(value if now.nested else [value], field)
    if (len(rows), len(rows[0])) != (now.rows, now.columns):
        accepted = f"{now.rows} × {now.columns} cells, as in population"
        raise InvalidInput(field, accepted, f"{len(rows)} × {len(rows[0])}")
    return [cell for row in rows for cell in row]


def wholes_like(value: object, now: Layout, field: str) -> list[int]:
    with at(field):
        return [whole(each, "cell", 0, MOST_PEOPLE) for each in cells_like(value, now, field)]
