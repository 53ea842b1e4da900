"""`posteriors`: how sure anyone may become from a table, cell by cell (F23)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.errors import InvalidInput, check_kind, invalid_value
from whosin.exact import Array, Rational, probability
from whosin.mechanisms import Mechanism
from whosin.rules.publication import (
    Layout,
    Pattern,
    Procedure,
    Publication,
    cells_like,
    is_nested,
    is_table,
    other_shape,
    wholes_like,
)
from whosin.rules.table_sums import (
    MAX_EXACT_GROUP_COUNTS,
    AlikePeople,
    InferredCount,
    Lines,
    ShownSum,
    count_ends,
    count_weights,
    exact_count,
    infer_counts,
    whole_weights,
)

# What sums of counts say where it also matters which cells were suppressed: table by table (F23).
#
# Every table of counts that fits the sums is made, and only those that are allowed are summed over,
# in whole numbers. Where there are more than `MAX_CANDIDATE_TABLES`, bounds that hold for every
# table which fits the sums.

MAX_CANDIDATE_TABLES = 300_000
"""Tables that are made, at any step, before those that do not fit are left out."""
CELL_BLOCK_SIZE = 2_000_000
"""Cells of all tables that are looked at together."""

Allowed = Callable[[Lines], Pattern]
"""Which lines of counts, one for each group, are allowed."""


def infer_allowed(
    groups: Sequence[AlikePeople], seen: Sequence[ShownSum], allowed: Allowed
) -> list[InferredCount]:
    """The count of each group, given all that was seen and that the table is an allowed one."""
    ends = count_ends(groups, seen)
    free = [g for g, (low, high) in enumerate(ends) if low < high]
    made = None
    if all(ends[g][1] - ends[g][0] <= MAX_EXACT_GROUP_COUNTS for g in free):
        made = _fitting_tables(ends, _elimination_order(free, seen), seen)
    if made is None:
        bounds = infer_counts(groups, seen, share=10)
        return [
            replace(each, mean=Fraction(each.low) if sure else None, exact=sure)
            for each in bounds
            for sure in [each.low == each.high]
        ]
    step = max(1, CELL_BLOCK_SIZE // max(1, len(groups)))
    kept, least = [], np.array([low for low, _ in ends], dtype=np.int64)
    for start in range(0, len(made), step):
        block = made[start : start + step]
        lines = np.tile(least, (len(block), 1))  # the counts of all groups
        lines[:, free] = block
        kept.append(block[allowed(lines)])
    fits = np.concatenate(kept) if kept else made
    if not len(fits):
        counts = "counts that fit the published numbers"
        message = f"the procedure suppresses these cells for no {counts}"
        raise InvalidInput(message, field="published")
    weights = _line_weights(groups, seen, ends, free, fits)
    result = [InferredCount(low, high, Fraction(low), True) for low, high in ends]
    for column, g in enumerate(free):
        values, which = np.unique(fits[:, column], return_inverse=True)
        sums = np.zeros(len(values), dtype=object)
        np.add.at(sums, which.reshape(-1), weights)
        mean = Fraction(int(sum(sums * values.tolist())), int(sum(sums)))
        result[g] = exact_count(int(values[0]), int(values[-1]), mean)
    return result


def _elimination_order(free: list[int], seen: Sequence[ShownSum]) -> list[int]:
    """The groups in an order in which sums are complete early."""
    waiting, open_sums = set(free), [set(each.groups) & set(free) for each in seen]
    result: list[int] = []
    while waiting:
        shortest = min((each for each in open_sums if each), key=len, default=waiting)
        g = min(shortest)
        result.append(g)
        waiting.discard(g)
        for each in open_sums:
            each.discard(g)
    return result


def _fitting_tables(
    ends: Sequence[tuple[int, int]], order: list[int], seen: Sequence[ShownSum]
) -> Lines | None:
    """The counts of all groups in `order`, sorted by group, of every table that fits the sums; None
    where there are too many."""
    columns = {g: column for column, g in enumerate(sorted(order))}
    lines = np.array([[ends[g][0] for g in sorted(order)]], dtype=np.int64)
    done: set[int] = set()
    for g in order:
        low, high = ends[g]
        if len(lines) * (high - low + 1) > MAX_CANDIDATE_TABLES:
            return None
        lines = np.repeat(lines, high - low + 1, axis=0)
        lines[:, columns[g]] = np.resize(np.arange(low, high + 1), len(lines))
        done.add(g)
        fits = np.ones(len(lines), dtype=bool)
        for each in seen:
            if g in each.groups:
                fixed = sum(ends[m][0] for m in each.groups if m not in columns)
                total = fixed + lines[:, [columns[m] for m in each.groups if m in columns]].sum(1)
                slack = sum(ends[m][1] - ends[m][0] for m in each.groups if m not in done)
                fits &= (total <= max(each.likely)) & (total + slack >= min(each.likely))
                if not slack:
                    fits &= np.isin(total, [sum_ for sum_, p in each.likely.items() if p])
        lines = lines[fits]
    return lines


def _line_weights(
    groups: Sequence[AlikePeople],
    seen: Sequence[ShownSum],
    ends: Sequence[tuple[int, int]],
    free: list[int],
    fits: Lines,
) -> Array:
    """How likely each line is, with what was seen, up to a factor: whole numbers."""
    result = np.ones(len(fits), dtype=object)
    for column, g in enumerate(free):
        weights = count_weights(groups[g], *ends[g], [])
        assert weights is not None
        result = result * weights[fits[:, column] - ends[g][0]]
    columns = {g: column for column, g in enumerate(free)}
    for each in seen:
        members = [columns[g] for g in each.groups if g in columns]
        if len(each.likely) > 1 and members:
            fixed = sum(ends[g][0] for g in each.groups if g not in columns)
            totals, which = np.unique(fixed + fits[:, members].sum(1), return_inverse=True)
            shares = [each.likely[total] for total in totals.tolist()]
            result = result * whole_weights(shares)[which.reshape(-1)]
    return result // math.gcd(*result)


# A table before it is published: how sure may anyone become, cell by cell (F23).
#
# This works on the numbers that would be shown, on how many people could be in each cell, and on
# how sure someone already is of each of them. All people of a cell are alike and independent of
# everyone else. Results are exact where `exact` says so; where the sum over all tables that fit is
# too large, they are bounds that hold whatever the counts are.

PRIVATE_NOTE = (
    "This is for whoever holds the data: it says what could be worked out, and must not be "
    "published with the table."
)


@dataclass(frozen=True)
class CellFinding:
    """What a publication says of one cell, or of the people that only one of two tables has.

    Attributes:
        row, column: where, from 0.
        people: "all" of the cell; or "stayed", "left", "joined" where there are two tables.
        shown: the number, or None where it is suppressed.
        population: how many people it could have, apart from those known to be in.
        prior, posterior: how sure one was, and is, of each of them.
        low, high: the least and the largest count that fits; where `bound`, none that fits is
            outside of them.
        exact: whether the posterior is exact; else it is a float, or a bound.
        bound: whether the posterior is only a number that no table which fits exceeds.
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
        """What no count that fits exceeds: it holds whatever else is known, for instance of how
        cells were chosen that were suppressed for the sake of others."""
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
    secondary: bool | Procedure = False,
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
    if not is_nested(population):
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
    check_kind(published, Publication, "published")
    now = Layout.read(published, "published")
    beliefs = cells_like(prior, now, "prior") if is_table(prior) else [prior] * len(now.population)
    priors = [Rational(probability(each, "prior")) for each in beliefs]
    known = (
        [0] * len(now.population) if known_in is None else wholes_like(known_in, now, "known_in")
    )
    for cell, (count, size) in enumerate(zip(known, now.population, strict=True)):
        if count > size:
            raise invalid_value(f"known_in{now.path(cell)}", f"at most {size}", count)
    then = None if before is None else Layout.read(before, "before")
    if then is not None and (then.rows, then.columns) != (now.rows, now.columns):
        shape, wanted = (then.rows, then.columns), (now.rows, now.columns)
        raise other_shape("before", shape, "published", wanted)
    if then is not None and any(each.rule and each.rule.keyed for each in (now, then)):
        reason = "the same people get the same change in both"
        message = f"two tables of a cell key cannot be compared: {reason}"
        raise InvalidInput(message, field="before", hint="leave the earlier table out")
    groups, labels = _alike_groups(now, then, priors, known)
    seen = _shown_sums(now, labels, GROUPS_NOW)
    if then is not None:
        seen += _shown_sums(then, labels, GROUPS_BEFORE)
    if now.procedure is None and (then is None or then.procedure is None):
        counts = infer_counts(groups, seen)
    else:
        counts = infer_allowed(groups, seen, _allowed_patterns(labels, now, then))
    return [
        _cell_finding(now, label, group, each)
        for label, group, each in zip(labels, groups, counts, strict=True)
    ]


Label = tuple[int, str]
"""A cell's number, and which of its people."""
GROUPS_NOW, GROUPS_BEFORE = ("all", "stayed", "joined"), ("stayed", "left")


def _alike_groups(
    now: Layout, then: Layout | None, priors: list[Rational], known: list[int]
) -> tuple[list[AlikePeople], list[Label]]:
    groups, labels = [], []
    for cell, size in enumerate(now.population):
        earlier = size if then is None else then.population[cell]
        stayed = min(size, earlier)
        parts = {"all" if then is None else "stayed": stayed}
        parts |= {"joined": size - stayed, "left": earlier - stayed}
        if known[cell] > stayed:
            raise invalid_value(f"known_in{now.path(cell)}", f"at most {stayed}", known[cell])
        for name, people in parts.items():
            if people or name in ("all", "stayed"):
                inside = known[cell] if name in ("all", "stayed") else 0
                groups.append(AlikePeople(people, priors[cell], inside))
                labels.append((cell, name))
    return groups, labels


def _shown_sums(layout: Layout, labels: list[Label], people: tuple[str, ...]) -> list[ShownSum]:
    """What the cells and totals of a publication show, and about which groups."""
    members: dict[int, list[int]] = {}
    for number, (cell, name) in enumerate(labels):
        if name in people:
            members.setdefault(cell, []).append(number)
    result = []
    for index, (cells, value, where) in enumerate(layout.numbers()):
        groups = tuple(number for cell in cells for number in members[cell])
        most = sum(layout.population[cell] for cell in cells)
        likely = layout.likely(value, most, where, total=index >= len(layout.cells))
        if likely is not None:
            result.append(ShownSum(groups, likely, f"{layout.name}{where}"))
    return result


def _allowed_patterns(labels: list[Label], now: Layout, then: Layout | None) -> Allowed:
    """Whether the procedures suppress what is suppressed, for lines of counts of all groups."""

    def cells(lines: Lines, layout: Layout, people: tuple[str, ...]) -> Lines:
        result = np.zeros((len(lines), len(layout.cells)), dtype=np.int64)
        for number, (cell, name) in enumerate(labels):
            if name in people:
                result[:, cell] += lines[:, number]
        return result

    def allowed(lines: Lines) -> Pattern:
        fits = now.hides(cells(lines, now, GROUPS_NOW))
        if then is not None:
            fits &= then.hides(cells(lines, then, GROUPS_BEFORE))
        return fits

    return allowed


def _cell_finding(
    now: Layout, label: Label, group: AlikePeople, count: InferredCount
) -> CellFinding:
    cell, people = label
    rest, prior = group.size - group.known_in, Rational(group.belief)
    posterior: Rational | float = prior
    if rest and count.mean is None:
        posterior = Rational(Fraction(count.high - group.known_in, rest))
    elif rest and isinstance(count.mean, Fraction):
        posterior = Rational((count.mean - group.known_in) / rest)
    elif rest and count.mean is not None:
        posterior = min(1.0, max(0.0, (float(count.mean) - group.known_in) / rest))
    row, column = divmod(cell, now.columns)
    return CellFinding(
        row, column, people, now.cells[cell], rest, prior, posterior, count.low, count.high,
        count.exact, count.mean is None, group.known_in,
    )  # fmt: skip
