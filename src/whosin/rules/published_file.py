"""Tables as offices publish them: a CSV file with labels in its first row and column.

A first or last column or row that is called total (or all, sum, "Grand total", "Total, both sexes")
has the totals. What is suppressed is empty, or one of `MARKS`, or "<5", which also names the
threshold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from whosin.csv_files import parse_records
from whosin.documents import read_text
from whosin.errors import InvalidInput, UnknownName, at
from whosin.mechanisms.count_rules import (
    CellKey,
    RandomRound,
    Round,
    Rule,
    RuleChain,
    Suppress,
)
from whosin.rules.publication import Publication
from whosin.rules.secondary import Procedure
from whosin.validation import path_of, spelled_whole

MOST = 16 << 20
MARKS = ("", "x", "*", "..", "…", "c", "[c]", "s", "suppressed")
_TOTALS = re.compile(
    r"(?:grand )?(?:totals?|all|sum|gesamt|insgesamt|summe|ensemble|totale|totaal)"
    r"(?:\s*[,:(/–-].*| persons| people| ages| sexes| patients)?"
)
"""Labels of totals: of one word, of two, or with a remark after a comma or in brackets."""
Lines = tuple[tuple[int | None, ...], ...]
_BELOW = re.compile(r"<\s*(\d{1,9})")
_WHOLE = re.compile(r"\d{1,3}(?:[ ,'\u00a0\u202f]\d{3})+|\d{1,12}")


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
    file = path_of(path, field)
    with at(file.name):
        return parse_table(read_text(file, field, MOST), field, totals)


def parse_table(text: str, field: str, totals: bool = True) -> TableFile:
    """A table from the text of a CSV file.

    Args:
        totals: whether it may have totals and suppressed cells; a population has neither.
    """
    lines, rows, _separator = parse_records(text, field)
    if len(rows) < 2 or len(rows[0]) < 2:
        raise InvalidInput(field, "a header and a row for each label", _size(len(rows)))
    header, body = rows[0], dict(zip(lines[1:], rows[1:], strict=True))
    for line, row in body.items():
        if len(row) != len(header):
            raise InvalidInput(f"line {line}", f"{len(header)} cells as the header", len(row))
    return _table(list(header[1:]), body, totals)


def _size(rows: int) -> str:
    return "nothing" if not rows else f"{rows} line{'s' if rows > 1 else ''}"


def _table(names: list[str], body: dict[int, tuple[str, ...]], totals: bool) -> TableFile:
    """Of rows by the line they begin on."""
    labels = [row[0] for row in body.values()]
    below: set[int] = set()
    cells = tuple(
        tuple(
            _cell(text, f"line {line} column {name}", below, totals)
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
            raise InvalidInput(what, "given once each", "none" if twice is None else repr(twice))
    if len(below) > 1:
        raise InvalidInput("marks of suppressed cells", "of one threshold", sorted(below))
    return TableFile(tuple(rows), tuple(columns), cells, next(iter(below), None))


def _totals_last(labels: list[str], lines: Lines) -> tuple[list[str], Lines]:
    """The labels without that of the totals, and the lines with the totals at their end."""
    named = [bool(_TOTALS.fullmatch(label.lower())) for label in labels]
    if named[-1]:
        return labels[:-1], lines
    if named[0] and len(labels) > 1:
        return labels[1:], (*lines[1:], lines[0])
    return labels, lines


def _cell(text: str, where: str, below: set[int], may_be_hidden: bool) -> int | None:
    if _WHOLE.fullmatch(text):
        return int(re.sub(r"\D", "", text))
    threshold = _BELOW.fullmatch(text)
    if threshold and may_be_hidden:
        below.add(int(threshold[1]))
        return None
    if text.lower() in MARKS and may_be_hidden:
        return None
    accepted = "a whole number" + (", empty, x, *, c or <5" if may_be_hidden else "")
    raise InvalidInput(where, accepted, repr(text[:40]))


def like(table: TableFile, frame: TableFile) -> tuple[tuple[int, ...], ...]:
    """The population of each cell, in the order of the table's labels.

    Raises:
        InvalidInput: a cell of the table that the population does not have; or a line whose
            population is that of all others together, so that it has totals under another name.
    """
    rows = {label: index for index, label in enumerate(frame.rows)}
    columns = {label: index for index, label in enumerate(frame.columns)}
    for label in table.rows:
        if label not in rows:
            raise InvalidInput("population", "a row for each of the table", f"none for {label!r}")
    for label in table.columns:
        if label not in columns:
            raise InvalidInput(
                "population", "a column for each of the table", f"none for {label!r}"
            )
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
            accepted = f"called total, first or last, if it is the sum of the other {what}s"
            raise InvalidInput(f"{what} {label!r}", accepted, "their sum in the population")


def publication(
    table: TableFile,
    frame: TableFile,
    rule: Rule | None,
    totals: str = "counted",
    secondary: bool | Procedure = False,
) -> Publication:
    """A table and its population as a publication; without a rule, marks such as <5 name it."""
    if rule is None and table.below is not None:
        rule = Suppress(table.below)
    limits = {each.below for each in _parts(rule) if isinstance(each, Suppress)}
    if table.below is not None and table.below not in limits:
        accepted = f"suppress={table.below}, as the marks <{table.below} in the table say"
        raise InvalidInput("rule", accepted, "another rule")
    return Publication(table.cells, like(table, frame), rule, totals, secondary)


def _parts(rule: Rule | None) -> tuple[Rule | None, ...]:
    return rule.rules if isinstance(rule, RuleChain) else (rule,)


def compare_labels(table: TableFile, earlier: TableFile, field: str) -> None:
    """Raises InvalidInput where two tables do not have the same cells."""
    if (earlier.rows, earlier.columns) != (table.rows, table.columns):
        raise InvalidInput(field, "a table with the same labels", "others")


RULES = "suppress=5, suppress=5:hidden, round=5, random-round=3 or cell-key=FILE"
NUMBERED: dict[str, type[Suppress] | type[Round] | type[RandomRound]] = {
    "suppress": Suppress, "round": Round, "random-round": RandomRound,
}  # fmt: skip
_NEXT = re.compile(rf",\s*(?=(?:{'|'.join(NUMBERED)}|cell-key)=)")


def read_rule(text: str, files: bool = True) -> Rule:
    """A rule as it is spelled on the command line, or several in turn: suppress=8,round=5.

    Args:
        files: whether a cell key may name a file.
    """
    if not files and "cell-key" in text:
        raise InvalidInput("rule", "without a file here: the command reads cell keys", "a cell-key")
    made = [_read_one(part) for part in _NEXT.split(text)]
    return made[0] if len(made) == 1 else RuleChain(tuple(made))


def _read_one(text: str) -> Rule:
    name, _, argument = text.strip().partition("=")
    if name == "cell-key" and argument:
        return CellKey(argument)
    if name not in NUMBERED or not argument:
        meant = UnknownName("rule", name, (*NUMBERED, "cell-key")).nearest
        hint = "" if meant in (None, name) else f" (did you mean {meant!r}?)"
        raise InvalidInput("rule", RULES, f"{text[:80]!r}{hint}")
    number, colon, zeros = argument.partition(":")
    if not number.strip().isdecimal():
        raise InvalidInput("rule", f"{name}= with a whole number, as in {RULES}", repr(text[:80]))
    threshold = spelled_whole(number, "rule")
    with at("rule"):
        if name == "suppress" and colon:
            return Suppress(threshold, zeros)
        if colon:
            raise InvalidInput("rule", RULES, repr(text[:80]))
        return NUMBERED[name](threshold)
