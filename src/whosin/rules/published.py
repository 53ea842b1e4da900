"""A table before it is published: how sure may anyone become, cell by cell (F23).

Contract: this works on the numbers that would be shown, on how many people could be in each cell,
and on how sure someone already is of each of them. All people of a cell are alike and independent
of everyone else. Results are exact where `exact` says so; where the sum over all tables that fit is
too large, they are bounds that hold whatever the counts are.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from whosin.errors import InvalidInput, at
from whosin.exact import Rational, probability, rational
from whosin.mechanisms import Mechanism
from whosin.mechanisms.count_rules import SUPPRESSED, Rule
from whosin.mechanisms.post_processed import as_rule
from whosin.rules.sums import AlikePeople, Inferred, ShownSum, infer
from whosin.validation import MOST_PEOPLE, listed, of_kind, shown, whole

TOTALS = ("counted", "exact", "added")
MOST_CELLS = 10_000
MOST_COUNTS = 100_000
"""Counts that one number or mark may stand for."""
PRIVATE = (
    "This is for whoever holds the data: it says what could be worked out, and must not be "
    "published with the table."
)


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
            cell may have any count; which ones were chosen is taken to say nothing more.
    """

    cells: Sequence[Any]
    population: Sequence[Any]
    rule: Mechanism | None = None
    totals: str = "counted"
    secondary: bool = False


@dataclass(frozen=True)
class CellFinding:
    """What a publication says of one cell, or of the people that only one of two tables has.

    Attributes:
        row, column: where, from 0.
        people: "all" of the cell; or "stayed", "left", "joined" where there are two tables.
        shown: the number, or None where it is suppressed.
        population: how many people it could have, apart from those known to be in.
        prior, posterior: how sure one was, and is, of each of them; the largest that any table
            allows where not `exact` and not `rounded`.
        low, high: the least and the largest count that fits.
        exact: whether the posterior is exact.
        bound: whether the posterior is a bound only.
        known_in: how many more people are known to be in.
    """

    row: int
    column: int
    people: str
    shown: int | None
    population: int
    prior: Rational
    posterior: Rational | float
    low: int
    high: int
    exact: bool
    bound: bool
    known_in: int = 0

    @property
    def most(self) -> Rational:
        """The largest posterior that any count which fits allows: it holds whatever else is known,
        for instance of how cells were chosen that were suppressed for the sake of others."""
        if not self.population:
            return self.prior
        return Rational(Fraction(self.high - self.known_in, self.population))

    @property
    def worked_out(self) -> bool:
        """Whether a suppressed count is no secret at all."""
        return self.shown is None and self.low == self.high

    @property
    def within_one(self) -> bool:
        """Whether a suppressed count is known up to 1 more or less."""
        return self.shown is None and 0 < self.high - self.low <= 2


def posteriors(
    published: Sequence[Any],
    population: Sequence[Any],
    prior: object,
    *,
    rule: Mechanism | None = None,
    totals: str = "counted",
    secondary: bool = False,
    known_in: Sequence[Any] | None = None,
) -> list[Any]:
    """How sure someone becomes of each person who could be in each cell: a table like `population`.

    Args:
        published, population, rule, totals, secondary: as in `Publication`.
        prior: how sure they were of each person: one number, or a table like `population`.
        known_in: how many people of each cell they know to be in already; none by default.

    Raises:
        InvalidInput: shapes that do not fit, numbers that contradict each other, a count above its
            population.
    """
    made = Publication(published, population, rule, totals, secondary)
    findings = check_published(made, prior, known_in=known_in)
    values = [each.posterior for each in findings]
    if not _is_nested(population):
        return values
    width = len(population[0])
    return [values[start : start + width] for start in range(0, len(values), width)]


def check_published(
    published: Publication,
    prior: object,
    before: Publication | None = None,
    *,
    known_in: Sequence[Any] | None = None,
) -> list[CellFinding]:
    """What a publication says of each cell, alone or together with an earlier one.

    With two tables the people of a cell are those of the smaller population, who are in both or in
    neither; the rest left or joined, and are cells of their own.
    """
    of_kind(published, Publication, "published")
    now = _Layout.read(published, "published")
    beliefs = _like(prior, now, "prior") if _is_table(prior) else [prior] * len(now.population)
    priors = [Rational(probability(each, "prior")) for each in beliefs]
    known = [0] * len(now.population) if known_in is None else _wholes(known_in, now, "known_in")
    for cell, (count, size) in enumerate(zip(known, now.population, strict=True)):
        if count > size:
            raise InvalidInput(f"known_in{now.path(cell)}", f"at most {size}", count)
    then = None if before is None else _Layout.read(before, "before")
    if then is not None and (then.rows, then.columns) != (now.rows, now.columns):
        accepted = f"{now.rows} × {now.columns} cells, as in published"
        raise InvalidInput("before", accepted, f"{then.rows} × {then.columns}")
    groups, labels = _groups(now, then, priors, known)
    seen = _seen(now, labels, ("all", "stayed", "joined"))
    if then is not None:
        seen += _seen(then, labels, ("stayed", "left"))
    found = infer(groups, seen)
    return [
        _finding(now, label, group, each)
        for label, group, each in zip(labels, groups, found, strict=True)
    ]


Label = tuple[int, str]
"""A cell's number, and which of its people."""


def _groups(
    now: _Layout, then: _Layout | None, priors: list[Rational], known: list[int]
) -> tuple[list[AlikePeople], list[Label]]:
    groups, labels = [], []
    for cell, size in enumerate(now.population):
        earlier = size if then is None else then.population[cell]
        stayed = min(size, earlier)
        parts = {"all" if then is None else "stayed": stayed}
        parts |= {"joined": size - stayed, "left": earlier - stayed}
        if known[cell] > stayed:
            raise InvalidInput(f"known_in{now.path(cell)}", f"at most {stayed}", known[cell])
        for name, people in parts.items():
            if people or name in ("all", "stayed"):
                inside = known[cell] if name in ("all", "stayed") else 0
                groups.append(AlikePeople(people, priors[cell], inside))
                labels.append((cell, name))
    return groups, labels


def _seen(layout: _Layout, labels: list[Label], people: tuple[str, ...]) -> list[ShownSum]:
    """What the cells and totals of a publication show, of which groups."""
    members: dict[int, list[int]] = {}
    for number, (cell, name) in enumerate(labels):
        if name in people:
            members.setdefault(cell, []).append(number)
    result = []
    for place, (cells, value, where) in enumerate(layout.shown()):
        groups = tuple(number for cell in cells for number in members[cell])
        most = sum(layout.population[cell] for cell in cells)
        likely = layout.likely(value, most, where, total=place >= len(layout.cells))
        if likely is not None:
            result.append(ShownSum(groups, likely, f"{layout.name}{where}"))
    return result


def _finding(now: _Layout, label: Label, group: AlikePeople, found: Inferred) -> CellFinding:
    cell, people = label
    rest, prior = group.size - group.known_in, Rational(group.belief)
    posterior: Rational | float = prior
    if rest and found.mean is None:
        posterior = Rational(Fraction(found.high - group.known_in, rest))
    elif rest and isinstance(found.mean, Fraction):
        posterior = Rational((found.mean - group.known_in) / rest)
    elif rest and found.mean is not None:
        posterior = min(1.0, max(0.0, (float(found.mean) - group.known_in) / rest))
    row, column = divmod(cell, now.columns)
    return CellFinding(
        row, column, people, now.cells[cell], rest, prior, posterior, found.low, found.high,
        found.exact, found.mean is None, group.known_in,
    )  # fmt: skip


@dataclass(frozen=True)
class _Layout:
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
    exact_totals: bool

    @classmethod
    def read(cls, given: Publication, name: str) -> _Layout:
        nested = _is_nested(given.population)
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
            raise InvalidInput("totals", " or ".join(TOTALS), shown(given.totals))
        rule = None if given.rule is None else as_rule(given.rule)
        if given.rule is not None and rule is None:
            accepted = "a rule such as Suppress(5), or rules that post-process each other"
            raise InvalidInput("rule", accepted, shown(given.rule))
        sizes = [_whole_at(cell, "population", place) for place, cell in _cells(frame)]
        read = {place: _shown_at(cell, name, place) for place, cell in _cells(table)}
        counted = given.totals != "added"
        return cls(
            name, nested, rows, columns,
            [read[row, column] for row in range(rows) for column in range(columns)],
            sizes,
            [read[row, columns] for row in range(rows)] if extra[1] and counted else [],
            [read[rows, column] for column in range(columns)] if extra[0] and counted else [],
            (read[rows, columns],) if all(extra) and counted else (),
            rule, bool(given.secondary), given.totals == "exact",
        )  # fmt: skip

    def path(self, cell: int) -> str:
        row, column = divmod(cell, self.columns)
        return f"[{row}][{column}]" if self.nested else f"[{column}]"

    def shown(self) -> list[tuple[list[int], int | None, str]]:
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
        if value is None and self.secondary:
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


def _is_table(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_nested(value: object) -> bool:
    return _is_table(value) and bool(value) and _is_table(value[0])  # type: ignore[index]


def _rows(value: object, field: str) -> list[tuple[Any, ...]]:
    accepted = "a list of rows, all of the same length"
    rows = [listed(row, field, accepted) for row in listed(value, field, accepted)]
    if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
        raise InvalidInput(field, accepted, "rows of " + ", ".join(str(len(r)) for r in rows[:8]))
    return rows


def _cells(rows: Sequence[Sequence[Any]]) -> list[tuple[tuple[int, int], Any]]:
    return [((r, c), cell) for r, row in enumerate(rows) for c, cell in enumerate(row)]


def _whole_at(value: object, name: str, place: tuple[int, int]) -> int:
    return whole(value, f"{name}[{place[0]}][{place[1]}]", 0, MOST_PEOPLE)


def _shown_at(value: object, name: str, place: tuple[int, int]) -> int | None:
    return None if value is None else _whole_at(value, name, place)


def _like(value: object, now: _Layout, field: str) -> list[Any]:
    """The cells of a table of the population's shape."""
    rows = _rows(value if now.nested else [value], field)
    if (len(rows), len(rows[0])) != (now.rows, now.columns):
        accepted = f"{now.rows} × {now.columns} cells, as in population"
        raise InvalidInput(field, accepted, f"{len(rows)} × {len(rows[0])}")
    return [cell for row in rows for cell in row]


def _wholes(value: object, now: _Layout, field: str) -> list[int]:
    with at(field):
        return [whole(each, "cell", 0, MOST_PEOPLE) for each in _like(value, now, field)]
