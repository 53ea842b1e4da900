"""A table as it would be shown: its cells, totals, suppressed cells and people."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from whosin.documents import check_row_lengths, parse_records, read_text
from whosin.errors import (
    MAX_POPULATION,
    InvalidInput,
    UnknownName,
    at,
    invalid_value,
    read_list,
    read_path,
    read_whole,
    shorten_value,
    spell,
    spelled_whole,
)
from whosin.exact import rational
from whosin.mechanisms import Mechanism
from whosin.mechanisms.combinations import combine_rules
from whosin.mechanisms.count_rules import (
    SUPPRESSED_LABEL,
    ZERO_POLICIES,
    CellKey,
    RandomRound,
    Round,
    Rule,
    RuleChain,
    Suppress,
)

# How further cells are chosen that are suppressed so that totals do not give small ones away.
#
# A declared procedure decides from the counts alone, without chance, which cells are suppressed.
# Whoever knows it learns from the pattern too.

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
        if self.zeros not in ZERO_POLICIES:
            raise invalid_value("zeros", "shown or hidden", repr(self.zeros))

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


def pattern_from_function(choose: Callable[[Any], Any], counts: Counts, nested: bool) -> Pattern:
    """Which cells a function of one's own suppresses, table by table."""
    result = np.empty(counts.shape, dtype=bool)
    for number, table in enumerate(counts.tolist()):
        rows = tuple(map(tuple, table))
        chosen = np.asarray(choose(rows if nested else rows[0]))
        wanted = counts.shape[1:] if nested else counts.shape[2:]
        if chosen.shape != wanted or chosen.dtype != bool:
            message = f"secondary returned {shorten_value(chosen.tolist())}"
            hint = "return True or False for each cell of the population"
            raise InvalidInput(message, field="secondary", value=chosen.tolist(), hint=hint)
        result[number] = chosen
    return result


PROCEDURE_FORMS = "next-smallest or next-smallest:hidden (zeros too)"


def read_procedure(text: str, field: str = "secondary_by") -> NextSmallest:
    """A procedure as it is spelled on the command line."""
    name, colon, zeros = text.strip().partition(":")
    if name != "next-smallest" or (colon and zeros not in ZERO_POLICIES):
        message = f"{field} {text[:80]!r} is not a procedure"
        raise InvalidInput(message, field=field, value=text, hint=f"write {PROCEDURE_FORMS}")
    return NextSmallest(zeros) if colon else NextSmallest()


# A table as it would be shown, read and checked: its cells, totals and people.
#
# Shapes that do not fit, and numbers that no count could stand for, are refused in one sentence
# with their cell. The rule alone says what a number or a suppressed cell tells about the count
# behind it; `hides` says what the pattern of suppressed cells tells.

TOTAL_KINDS = ("counted", "exact", "added")
MAX_RULE_CELLS = 10_000
MAX_POSSIBLE_COUNTS = 100_000
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
        frame = _read_rows(given.population if nested else [given.population], "population")
        table = _read_rows(given.cells if nested else [given.cells], name)
        rows, columns = len(frame), len(frame[0])
        extra = len(table) - rows, len(table[0]) - columns
        if not rows * columns or rows * columns > MAX_RULE_CELLS:
            message = f"population has {spell(rows * columns)} cells"
            hint = f"give 1 to {spell(MAX_RULE_CELLS)}"
            raise InvalidInput(message, field="population", value=rows * columns, hint=hint)
        if extra[0] not in (0, 1) or extra[1] not in (0, 1):
            hint = "a table may have one more row and column, for totals"
            shape = len(table), len(table[0])
            raise other_shape(name, shape, "population", (rows, columns), hint)
        if given.totals not in TOTAL_KINDS:
            raise invalid_value("totals", " or ".join(TOTAL_KINDS), shorten_value(given.totals))
        rule = None if given.rule is None else combine_rules(given.rule)
        if given.rule is not None and rule is None:
            message = f"{shorten_value(given.rule)} is not a rule"
            hint = "give a rule such as Suppress(5), or several that post-process each other"
            raise InvalidInput(message, field="rule", value=given.rule, hint=hint)
        if rule is not None and rule.keyed and any(extra) and given.totals == "counted":
            reason = "the key of a total is the sum of the keys of its cells, not a draw of its own"
            message = f"totals of a cell key cannot be counted: {reason}"
            hint = "use exact or added, or leave the totals out"
            raise InvalidInput(message, field="totals", value=given.totals, hint=hint)
        procedure = _read_procedure(given.secondary, rule)
        sizes = [
            _read_whole(cell, "population", position) for position, cell in _numbered_cells(frame)
        ]
        read = {
            position: None if cell is None else _read_whole(cell, name, position)
            for position, cell in _numbered_cells(table)
        }
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
                raise invalid_value(field, f"at most {most}, the people who could be there", value)
            return None if value is None else {value: Fraction(1)}
        if value is None and self.secondary and not (total and self.procedure):
            return None
        output: Hashable = SUPPRESSED_LABEL if value is None else value
        reach, near = self.rule.reach, value or 0
        counts = range(max(0, near - reach), min(most, near + reach) + 1)
        if len(counts) > MAX_POSSIBLE_COUNTS:
            many, most_counts = spell(len(counts)), spell(MAX_POSSIBLE_COUNTS)
            message = f"{field} may stand for any of {many} counts, more than {most_counts}"
            raise InvalidInput(message, field=field, value=value)
        result = {}
        for count in counts:
            shares = (rational(p) for name, p in self.rule.spread(count) if name == output)
            weight = sum(shares, Fraction(0))
            if weight:
                result[count] = weight
        if not result:
            shown = "suppressed" if value is None else value
            message = f"{field} is {shown}, which the rule shows for no count of 0 to {most}"
            raise InvalidInput(message, field=field, value=value)
        return result

    def hides(self, counts: Counts) -> Pattern:
        """For lines of counts of all cells, whether the procedure suppresses just the cells that
        are suppressed here."""
        tables = counts.reshape(-1, self.rows, self.columns)
        if isinstance(self.procedure, NextSmallest):
            pattern = self.procedure.hidden(tables, self._small(tables), *self.has_totals)
        elif self.procedure is not None:
            pattern = pattern_from_function(self.procedure, tables, self.nested)
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
            spread = self.rule.spread(count)
            share = sum(rational(p) for name, p in spread if name == SUPPRESSED_LABEL)
            if share not in (0, 1):
                needed = "a procedure needs a rule that suppresses a count always or never"
                message = f"{needed}, and this one suppresses {count} with probability {share}"
                raise InvalidInput(message, field="rule", value=count)
            small.append(bool(share))
        return np.asarray(np.array(small)[which.reshape(tables.shape)])


def _read_procedure(given: object, rule: Rule | None) -> Procedure | None:
    if isinstance(given, bool):
        return None
    if isinstance(given, type) or not (isinstance(given, NextSmallest) or callable(given)):
        accepted = "True, False, NextSmallest() or a function of the counts"
        raise invalid_value("secondary", accepted, shorten_value(given))
    if isinstance(given, NextSmallest) and rule is None:
        message = "a procedure needs the rule that suppresses small counts"
        raise InvalidInput(
            message, field="secondary", value=given, hint="give rule=Suppress(5), for example"
        )
    return given


def is_table(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def is_nested(value: object) -> bool:
    return is_table(value) and bool(value) and is_table(value[0])  # type: ignore[index]


def _read_rows(value: object, field: str) -> list[tuple[Any, ...]]:
    accepted = "a list of rows, all of the same length"
    rows = [read_list(row, field, accepted) for row in read_list(value, field, accepted)]
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        message = f"{field} must be a list of rows, all of the same length"
        raise InvalidInput(message, field=field, value=[len(row) for row in rows[:8]])
    return rows


Shape = tuple[int, int]


def other_shape(
    field: str, shape: Shape, other: str, wanted: Shape, hint: str = ""
) -> InvalidInput:
    """That a table has another number of rows or columns than it must have."""
    (rows, columns), (its_rows, its_columns) = shape, wanted
    message = f"{field} has {rows} × {columns} cells, and {other} {its_rows} × {its_columns}"
    return InvalidInput(message, field=field, value=shape, hint=hint)


def _numbered_cells(rows: Sequence[Sequence[Any]]) -> list[tuple[tuple[int, int], Any]]:
    return [((r, c), cell) for r, row in enumerate(rows) for c, cell in enumerate(row)]


def _read_whole(value: object, name: str, position: tuple[int, int]) -> int:
    return read_whole(value, f"{name}[{position[0]}][{position[1]}]", 0, MAX_POPULATION)


def cells_like(value: object, now: Layout, field: str) -> list[Any]:
    """The cells of a table of the population's shape."""
    rows = _read_rows(value if now.nested else [value], field)
    if (len(rows), len(rows[0])) != (now.rows, now.columns):
        shape = len(rows), len(rows[0])
        raise other_shape(field, shape, "population", (now.rows, now.columns))
    return [cell for row in rows for cell in row]


def wholes_like(value: object, now: Layout, field: str) -> list[int]:
    with at(field):
        return [
            read_whole(each, "cell", 0, MAX_POPULATION) for each in cells_like(value, now, field)
        ]


# Tables as offices publish them: a CSV file with labels in its first row and column.
#
# A first or last column or row that is called total (or all, sum, "Grand total", "Total, both
# sexes") has the totals. What is suppressed is empty, or one of `SUPPRESSION_MARKS`, or "<5", which
# also names the threshold.

MAX_TABLE_BYTES = 16 << 20
SUPPRESSION_MARKS = ("", "x", "*", "..", "…", "c", "[c]", "s", "suppressed")
_TOTAL_NAMES = re.compile(
    r"(?:grand )?(?:totals?|all|sum|gesamt|insgesamt|summe|ensemble|totale|totaal)"
    r"(?:\s*[,:(/–-].*| persons| people| ages| sexes| patients)?"
)
"""Labels of totals: of one word, of two, or with a remark after a comma or in brackets."""
Lines = tuple[tuple[int | None, ...], ...]
_BELOW_PATTERN = re.compile(r"<\s*(\d{1,9})")
_WHOLE_PATTERN = re.compile(r"\d{1,3}(?:[ ,'\u00a0\u202f]\d{3})+|\d{1,12}")


@dataclass(frozen=True)
class TableFile:
    """A table from a file.

    Attributes:
        rows, columns: labels, without those of the totals.
        cells: as in `Publication`.
        below: the threshold that marks such as "<5" name; None without one.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Lines
    below: int | None


def read_table(path: object, field: str, totals: bool = True) -> TableFile:
    """Read a table from a CSV file; as `parse_table`."""
    file = read_path(path, field)
    with at(file.name):
        return parse_table(read_text(file, field, MAX_TABLE_BYTES), field, totals)


def parse_table(text: str, field: str, totals: bool = True) -> TableFile:
    """A table from the text of a CSV file.

    Args:
        totals: whether it may have totals and suppressed cells; a population has neither.
    """
    lines, rows, _separator = parse_records(text, field)
    if len(rows) < 2 or len(rows[0]) < 2:
        size = f"{len(rows)} line{'s' if len(rows) > 1 else ''}" if rows else "nothing"
        hint = "give a header, and a row for each label"
        raise InvalidInput(f"{field} has {size}", field=field, value=len(rows), hint=hint)
    check_row_lengths(lines, rows)
    return _read_table(list(rows[0][1:]), dict(zip(lines[1:], rows[1:], strict=True)), totals)


def _read_table(names: list[str], body: dict[int, tuple[str, ...]], totals: bool) -> TableFile:
    """Of rows by the line they begin on."""
    labels = [row[0] for row in body.values()]
    below: set[int] = set()
    cells = tuple(
        tuple(
            _read_cell(text, f"line {line} column {name}", below, totals)
            for name, text in zip(names, row[1:], strict=True)
        )
        for line, row in body.items()
    )
    rows, cells = _totals_last(labels, cells) if totals else (labels, cells)
    across = tuple(zip(*cells, strict=True))
    columns, across = _totals_last(names, across) if totals else (names, across)
    cells = tuple(zip(*across, strict=True))
    for each, what in ((rows, "labels of rows"), (columns, "labels of columns")):
        twice = next((label for label in each if each.count(label) > 1), None)
        if twice is not None or not each:
            message = f"there are no {what}" if twice is None else f"{what} has {twice!r} twice"
            raise InvalidInput(message, field=what, value=twice)
    if len(below) > 1:
        field, several = "marks of suppressed cells", sorted(below)
        message = f"cells are suppressed below different numbers: {several}"
        raise InvalidInput(message, field=field, value=several, hint="use one threshold")
    return TableFile(tuple(rows), tuple(columns), cells, next(iter(below), None))


def _totals_last(labels: list[str], lines: Lines) -> tuple[list[str], Lines]:
    """The labels without that of the totals, and the lines with the totals at their end."""
    named = [bool(_TOTAL_NAMES.fullmatch(label.lower())) for label in labels]
    if named[-1]:
        return labels[:-1], lines
    if named[0] and len(labels) > 1:
        return labels[1:], (*lines[1:], lines[0])
    return labels, lines


def _read_cell(text: str, where: str, below: set[int], may_be_hidden: bool) -> int | None:
    if _WHOLE_PATTERN.fullmatch(text):
        return int(re.sub(r"\D", "", text))
    threshold = _BELOW_PATTERN.fullmatch(text)
    if threshold and may_be_hidden:
        below.add(int(threshold[1]))
        return None
    if text.lower() in SUPPRESSION_MARKS and may_be_hidden:
        return None
    accepted = "a whole number" + (", empty, x, *, c or <5" if may_be_hidden else "")
    long = (
        "if each cell has a row of its own, write the table wide: the labels of one column first, "
    )
    hint = f"{long}those of the other as the header" if text.isalpha() else ""
    raise invalid_value(where, accepted, repr(text[:40]), hint)


def align_population(table: TableFile, frame: TableFile) -> tuple[tuple[int, ...], ...]:
    """The population of each cell, in the order of the table's labels.

    Raises:
        InvalidInput: a cell of the table that the population does not have; or a line whose
            population is that of all others together, so that it has totals under another name.
    """
    rows = {label: index for index, label in enumerate(frame.rows)}
    columns = {label: index for index, label in enumerate(frame.columns)}
    for what, labels, known in (("row", table.rows, rows), ("column", table.columns, columns)):
        for label in labels:
            if label not in known:
                message = f"population has no {what} {label!r}, which the table has"
                raise InvalidInput(message, field="population", value=label)
    result = tuple(
        tuple(frame.cells[rows[row]][columns[column]] or 0 for column in table.columns)
        for row in table.rows
    )
    _check_totals("row", table.rows, result)
    _check_totals("column", table.columns, tuple(zip(*result, strict=True)))
    return result


def _check_totals(what: str, labels: tuple[str, ...], lines: tuple[tuple[int, ...], ...]) -> None:
    """Refuse a line that is the sum of all others: cells could be worked out from it."""
    sums = [sum(line) for line in zip(*lines, strict=True)]
    if len(labels) < 3 or len(sums) < 2:  # one number may be a sum by chance
        return
    for label, line in zip(labels, lines, strict=True):
        if any(line) and [2 * size for size in line] == sums:
            message = f"{what} {label!r} is the sum of the other {what}s in the population"
            hint = "if it is their total, call it total and put it first or last"
            raise InvalidInput(message, field=f"{what} {label!r}", value=label, hint=hint)


def make_publication(
    table: TableFile,
    frame: TableFile,
    rule: Rule | None,
    totals: str = "counted",
    secondary: bool | Procedure = False,
) -> Publication:
    """A table and its population as a publication; without a rule, marks such as <5 name it."""
    if rule is None and table.below is not None:
        rule = Suppress(table.below)
    parts = rule.rules if isinstance(rule, RuleChain) else (rule,)
    limits = {each.below for each in parts if isinstance(each, Suppress)}
    if table.below is not None and table.below not in limits:
        message = f"the table has the marks <{table.below}, and the rule suppresses other counts"
        raise InvalidInput(message, field="rule", value=rule, hint=f"use suppress={table.below}")
    return Publication(table.cells, align_population(table, frame), rule, totals, secondary)


def compare_labels(table: TableFile, earlier: TableFile, field: str) -> None:
    """Raises InvalidInput where two tables do not have the same cells."""
    if (earlier.rows, earlier.columns) != (table.rows, table.columns):
        message = f"{field} does not have the same labels as the table"
        raise InvalidInput(message, field=field, value=(earlier.rows, earlier.columns))


RULE_FORMS = "suppress=5, suppress=5:hidden, round=5, random-round=3 or cell-key=FILE"
NUMBERED_RULES: dict[str, type[Suppress] | type[Round] | type[RandomRound]] = {
    "suppress": Suppress, "round": Round, "random-round": RandomRound,
}  # fmt: skip
_NEXT_RULE = re.compile(rf",\s*(?=(?:{'|'.join(NUMBERED_RULES)}|cell-key)=)")


def read_rule(text: str, files: bool = True) -> Rule:
    """A rule as it is spelled on the command line, or several in turn: suppress=8,round=5.

    Args:
        files: whether a cell key may name a file.
    """
    if not files and "cell-key" in text:
        message = "a cell-key rule cannot name a file here"
        raise InvalidInput(message, field="rule", value=text, hint="use the command")
    made = [_read_one(part) for part in _NEXT_RULE.split(text)]
    return made[0] if len(made) == 1 else RuleChain(tuple(made))


def _read_one(text: str) -> Rule:
    name, _, argument = text.strip().partition("=")
    if name == "cell-key" and argument:
        return CellKey(argument)
    number, colon, zeros = argument.partition(":")
    if name not in NUMBERED_RULES or not argument or (colon and name != "suppress"):
        meant = UnknownName("rule", name, (*NUMBERED_RULES, "cell-key")).nearest
        hint = f"write {RULE_FORMS}" if meant in (None, name) else f"did you mean {meant!r}?"
        message = f"{shorten_value(text[:80])} is not a rule"
        raise InvalidInput(message, field="rule", value=text, hint=hint)
    if not number.strip().isdecimal():
        message = f"the rule {shorten_value(text[:80])} needs a whole number"
        raise InvalidInput(message, field="rule", value=text, hint=f"write {RULE_FORMS}")
    threshold = spelled_whole(number, "rule")
    with at("rule"):
        return Suppress(threshold, zeros) if colon else NUMBERED_RULES[name](threshold)
