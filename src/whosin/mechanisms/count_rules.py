"""The rules that offices publish counts under: suppression, rounding, cell keys."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from whosin.documents import parse_records, read_text
from whosin.errors import (
    MAX_POPULATION,
    InvalidInput,
    Unsupported,
    at,
    check_count,
    invalid_value,
    read_path,
    read_whole,
    shorten_value,
    spell,
    wrong_sum,
)
from whosin.exact import Rational, is_exact, probability, rational
from whosin.mechanisms.channel import (
    Channel,
    CountChannel,
    Mechanism,
    need_space,
    output_names,
    read_stochastic,
)
from whosin.mechanisms.count_table import Beyond, CountTable, Spread
from whosin.spaces import Space
from whosin.spaces.worlds import need_subsets

# Perturbation tables as offices write them: text with a header, columns apart by , ; or tabs.
#
# Two kinds of columns are in use:
#
# - `i`, `j`, `p` and `v` (the R packages ptable and cellKey): a count of i becomes j = i + v with
#   probability p; further columns are not needed. The row of the largest i is for all counts above.
# - `pcv`, `ckey`, `pvalue` (the cell-key package of the UK's statistical office): a count of pcv in
#   a cell with the key ckey changes by pvalue; all keys are equally likely. A count of 0 stays 0
#   where the table has no row for it.

MAX_P_TABLE_BYTES = 16 << 20
MAX_P_TABLE_ROWS = 1 << 20
LAST_KEYED_COUNT, REPEATED_KEYED_COUNTS = 750, 250
"""Tables of keys have 750 counts, of which larger counts use the last 250 in turn."""
P_TABLE_TOLERANCE = Fraction(1, 10**6)
"""By how much the decimals of a row may miss a sum of 1: p-tables are written with few digits."""
Table = dict[int, dict[int, Fraction]]


def read_p_table(path: Path) -> tuple[Table, int]:
    """{count: {change: probability}} from a file, and how many of its last rows repeat."""
    with at(path.name):
        lines, rows, _separator = parse_records(
            read_text(path, "p-table", MAX_P_TABLE_BYTES), "p-table"
        )
        if not 1 < len(rows) <= MAX_P_TABLE_ROWS + 1:
            accepted = f"a header and 1 to {spell(MAX_P_TABLE_ROWS)} rows"
            raise invalid_value("p-table", accepted, f"{len(rows)} lines")
        columns = {name.lower(): index for index, name in enumerate(rows[0])}
        body = list(zip(lines[1:], rows[1:], strict=True))
        for names, read in COLUMN_READERS.items():
            if all(name in columns for name in names):
                table = _normalise_rows(read(_read_cells(body, [columns[name] for name in names])))
                repeats = names[0] == "pcv" and max(table) == LAST_KEYED_COUNT
                return table, REPEATED_KEYED_COUNTS if repeats else 1
        shown = ", ".join(list(columns)[:8])
        accepted = "i, j, p, or i, v, p, or pcv, ckey, pvalue"
        raise invalid_value("columns of the p-table", accepted, shown)


Cells = list[tuple[str, list[str]]]
"""Where a row stands, for messages, and the cells of its columns."""


def _read_cells(rows: list[tuple[int, tuple[str, ...]]], indices: list[int]) -> Cells:
    result = []
    for line, row in rows:
        where = f"line {line} of the p-table"
        if len(row) <= max(indices):
            raise invalid_value(where, "a cell for each column", f"{len(row)} cells")
        result.append((where, [row[index] for index in indices]))
    return result


def _read_changes(cells: Cells, *, moved: bool = False) -> Table:
    """From i, v, p; or from i, j, p, where j is the count as it was moved."""
    table: Table = {}
    for where, (before, after, weight) in cells:
        count = _read_whole(before, where)
        change = _read_whole(after, where) - (count if moved else 0)
        row = table.setdefault(count, {})
        if change in row:
            raise _repeated_entry(where, "change", change)
        row[change] = probability(weight, f"probability in {where}")
    return table


def _read_keys(cells: Cells) -> Table:
    """From pcv, ckey, pvalue."""
    rows: dict[int, dict[int, int]] = {}
    for where, texts in cells:
        count, key, change = (_read_whole(text, where) for text in texts)
        row = rows.setdefault(count, {})
        if key in row:
            raise _repeated_entry(where, "key", key)
        row[key] = change
    keys = len(next(iter(rows.values())))
    table: Table = {} if 0 in rows else {0: {0: Fraction(1)}}
    for count, row in rows.items():
        if len(row) != keys:
            where = f"keys of count {count} in the p-table"
            raise invalid_value(where, f"{keys}, as for other counts", len(row))
        for change in row.values():
            weights = table.setdefault(count, {})
            weights[change] = weights.get(change, Fraction(0)) + Fraction(1, keys)
    return table


COLUMN_READERS: dict[tuple[str, ...], Callable[[Cells], Table]] = {
    ("i", "j", "p"): partial(_read_changes, moved=True),
    ("i", "v", "p"): _read_changes,
    ("pcv", "ckey", "pvalue"): _read_keys,
}


def _repeated_entry(where: str, what: str, value: int) -> InvalidInput:
    message = f"{where} has a {what} of this count for the second time: {value}"
    return InvalidInput(message, field=where, value=value)


def _read_whole(text: str, where: str) -> int:
    number = rational(text, where)
    if number.denominator != 1:
        raise invalid_value(where, "whole numbers", text)
    return int(number)


def _normalise_rows(table: Table) -> Table:
    """The rows in order; decimals with few digits are brought to a sum of 1."""
    for count, row in table.items():
        total = sum(row.values(), Fraction(0))
        if abs(total - 1) > P_TABLE_TOLERANCE:
            whose = f"the probabilities of count {count}"
            raise wrong_sum(f"sum of {whose}", total, whose)
        for change in row:
            row[change] /= total
    return dict(sorted(table.items()))


MAX_CHANGE = 1 << 40
"""More than any count: nothing is known of how far a rule reaches."""


class Rule(Mechanism):
    """A rule about how a count is shown: of everyone who is in, or of noisy counts where it
    post-processes another mechanism."""

    @property
    def reach(self) -> int:
        """Counts that are further apart than this share no output, except for those below 0; a
        number that is shown is no further from its count; and no count above it is suppressed."""
        return MAX_CHANGE

    @property
    def keyed(self) -> bool:
        """Whether the people of a cell decide about what is shown, so that sums of cells, and the
        same people in another table, are no new draws."""
        return False

    @abstractmethod
    def spread(self, count: int) -> Spread:
        """What is shown for a count, with probabilities."""

    def beyond(self, output: Beyond) -> Hashable:
        """What is shown for all counts beyond some number."""
        return output

    def applied_to(self, output: Hashable) -> Spread:
        """What is shown for the output of another mechanism: what is no count stays as it is."""
        if isinstance(output, Beyond):
            return [(self.beyond(output), 1)]
        if isinstance(output, int) and not isinstance(output, bool):
            return self.spread(output)
        return [(output, 1)]

    def on_counts(self, people: int, margin: int = 0) -> CountTable:
        return CountTable.from_rows(self.spread(count) for count in range(people + 1))

    def channel(self, space: Space | None = None) -> Channel:
        name = type(self).__name__
        subsets = need_subsets(need_space(space, name), name)
        return CountChannel(subsets, self.on_counts(subsets.size))


# Cell keys: a table says how likely each change of a count is.
#
# Records carry random keys, the keys of a cell's records add up to the cell's key, and the key
# picks the change from a table (the "p-table"). Keys of different people are independent and
# uniform, so for one cell the change is drawn afresh; the same people always get the same change.

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
            table, repeated = read_p_table(read_path(table, "table"))
        if isinstance(table, tuple) and table and all(isinstance(row, tuple) for row in table):
            table = {count: dict(row) for count, row in enumerate(table)}
        object.__setattr__(self, "table", _read_rows(table))
        object.__setattr__(
            self, "period", read_whole(period or repeated, "period", 1, len(self.table))
        )

    @cached_property
    def largest(self) -> int:
        return max(abs(change) for row in self.table for change, _ in row)

    @property
    def reach(self) -> int:
        return 2 * self.largest

    keyed = True

    def spread(self, count: int) -> Spread:
        if count < 0:
            message, hint = "a cell key is for counts of at least 0", "raise those below 0 first"
            raise Unsupported(message, field="count", value=count, hint=hint)
        last = len(self.table) - 1
        number = count
        if count > last:
            number = last - self.period + 1 + (count - last - 1) % self.period
        return [(count + change, weight) for change, weight in self.table[number]]


def _read_rows(table: object) -> tuple[Row, ...]:
    accepted = "{count: {change: probability}}, with a row for each count from 0 on"
    if not isinstance(table, Mapping) or not table:
        raise invalid_value("table", accepted, shorten_value(table))
    for count in table:
        read_whole(count, "count of a row in table", 0, MAX_POPULATION)
    for count in range(len(table)):
        if count not in table:
            message, hint = f"table has no row for a count of {count}", f"give {accepted}"
            raise InvalidInput(message, field="table", value=count, hint=hint)
    return tuple(_read_row(count, table[count]) for count in range(len(table)))


def _read_row(count: int, row: Any) -> Row:
    where = f"row {count} of table"
    if not isinstance(row, Mapping) or not row:
        raise invalid_value(where, "{change: probability}", shorten_value(row))
    for change in row:
        read_whole(change, f"change in {where}", -count, MAX_POPULATION)
    entries = {int(change): probability(p, f"probability in {where}") for change, p in row.items()}
    total = sum(entries.values(), Fraction(0))
    exact = is_exact(*row.values())
    if (total != 1 and exact) or abs(total - 1) > P_TABLE_TOLERANCE:
        raise wrong_sum(f"sum of {where}", total, f"the probabilities in {where}")
    return tuple(
        (change, Rational(rational(p) / total)) for change, p in sorted(entries.items()) if p
    )


@dataclass(frozen=True)
class Exact(Rule):
    """The count as it is."""

    reach = 0

    def spread(self, count: int) -> Spread:
        return [(count, 1)]


@dataclass(frozen=True)
class FromTable(Rule):
    """Pr[output | count] as a table: n + 1 rows for n people, instead of one for each world.

    Args:
        matrix: counts × outputs; floats, or for an exact rule ints, fractions, strings.
        outputs: names of the outputs; 0, 1, … by default.
    """

    matrix: object
    outputs: Sequence[Hashable] | None = None

    def __post_init__(self) -> None:
        _ = self._table

    @cached_property
    def _table(self) -> CountTable:
        rows = len(self.matrix) if hasattr(self.matrix, "__len__") else 0
        if rows < 2:
            raise invalid_value("matrix", "a row for each count 0, 1, …: at least two", rows)
        floats, exact = read_stochastic(
            self.matrix, rows, "one a count", lambda row: f"row {row} of matrix"
        )
        names = output_names(self.outputs, floats.shape[1])
        return CountTable.from_dense(floats if exact is None else exact, names)

    def spread(self, count: int) -> Spread:
        table = self._table
        if not 0 <= count <= table.people:
            message = f"the table is for counts of 0 to {table.people}, not for {count}"
            raise Unsupported(message, field="matrix", value=count)
        entries = range(table.starts[count], table.starts[count + 1])
        return [(table.outputs[table.columns[entry]], table.weights[entry]) for entry in entries]

    def on_counts(self, people: int, margin: int = 0) -> CountTable:
        check_count(self._table.people, people, "rows of matrix", "counts above 0", "people")
        return self._table


@dataclass(frozen=True)
class Multiples(Rule):
    """A rule that shows multiples of a base only."""

    base: int

    def __post_init__(self) -> None:
        read_whole(self.base, "base", 2, MAX_POPULATION)

    @property
    def reach(self) -> int:
        return 2 * int(self.base)


@dataclass(frozen=True)
class Round(Multiples):
    """The nearest multiple of a base; a count half-way between two is rounded up."""

    @property
    def reach(self) -> int:
        return int(self.base)

    def spread(self, count: int) -> Spread:
        return [((2 * count + self.base) // (2 * self.base) * self.base, 1)]


@dataclass(frozen=True)
class RandomRound(Multiples):
    """One of the two multiples of a base around the count, the nearer one with more probability:
    up with probability (what is left over)/base, so that the mean is the count. A multiple stays.
    """

    def spread(self, count: int) -> Spread:
        over = count % self.base
        if not over:
            return [(count, 1)]
        below = count - over
        up = Fraction(over, self.base)
        return [(below, 1 - up), (below + self.base, up)]


@dataclass(frozen=True)
class RuleChain(Rule):
    """Rules in turn, each on what the one before shows; what is suppressed stays so."""

    rules: tuple[Rule, ...]

    @property
    def reach(self) -> int:
        return sum(rule.reach for rule in self.rules)

    @property
    def keyed(self) -> bool:
        return any(rule.keyed for rule in self.rules)

    def spread(self, count: int) -> Spread:
        weights: dict[Hashable, Fraction] = {count: Fraction(1)}
        for rule in self.rules:
            after: dict[Hashable, Fraction] = {}
            for output, weight in weights.items():
                for name, p in rule.applied_to(output):
                    after[name] = after.get(name, Fraction(0)) + weight * rational(p)
            weights = after
        return list(weights.items())

    def beyond(self, output: Beyond) -> Hashable:
        last: Hashable = output
        for rule in self.rules:
            last = rule.beyond(last) if isinstance(last, Beyond) else last
        return last


SUPPRESSED_LABEL = "suppressed"
ZERO_POLICIES = ("shown", "hidden")


@dataclass(frozen=True)
class Suppress(Rule):
    """Counts below a threshold are shown as "suppressed", all others as they are.

    Args:
        below: the least count that is shown.
        zeros: "shown" where a count of 0 is shown as 0, as most offices do, or "hidden".
    """

    below: int
    zeros: str = "shown"

    def __post_init__(self) -> None:
        read_whole(self.below, "below", 1, MAX_POPULATION)
        if self.zeros not in ZERO_POLICIES:
            raise invalid_value("zeros", "shown or hidden", repr(self.zeros))

    @property
    def reach(self) -> int:
        return int(self.below)

    def spread(self, count: int) -> Spread:
        published = count >= self.below or (count == 0 and self.zeros == "shown")
        return [(count if published else SUPPRESSED_LABEL, 1)]

    def beyond(self, output: Beyond) -> Hashable:
        return SUPPRESSED_LABEL if output.below else output
