"""A table before it is published: how sure may anyone become, cell by cell (F23).

Contract: this works on the numbers that would be shown, on how many people could be in each cell,
and on how sure someone already is of each of them. All people of a cell are alike and independent
of everyone else. Results are exact where `exact` says so; where the sum over all tables that fit is
too large, they are bounds that hold whatever the counts are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Rational, probability
from whosin.mechanisms import Mechanism
from whosin.rules.all_tables import Allowed, infer_allowed
from whosin.rules.elimination import Lines
from whosin.rules.publication import (
    Layout,
    Publication,
    cells_like,
    is_nested,
    is_table,
    wholes_like,
)
from whosin.rules.secondary import Pattern, Procedure
from whosin.rules.sums import AlikePeople, Inferred, ShownSum, infer
from whosin.validation import of_kind

PRIVATE = (
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
    of_kind(published, Publication, "published")
    now = Layout.read(published, "published")
    beliefs = cells_like(prior, now, "prior") if is_table(prior) else [prior] * len(now.population)
    priors = [Rational(probability(each, "prior")) for each in beliefs]
    known = (
        [0] * len(now.population) if known_in is None else wholes_like(known_in, now, "known_in")
    )
    for cell, (count, size) in enumerate(zip(known, now.population, strict=True)):
        if count > size:
            raise InvalidInput(f"known_in{now.path(cell)}", f"at most {size}", count)
    then = None if before is None else Layout.read(before, "before")
    if then is not None and (then.rows, then.columns) != (now.rows, now.columns):
        accepted = f"{now.rows} × {now.columns} cells, as in published"
        raise InvalidInput("before", accepted, f"{then.rows} × {then.columns}")
    if then is not None and any(each.rule and each.rule.keyed for each in (now, then)):
        accepted = "left out with a cell key: the same people get the same change in both tables"
        raise InvalidInput("before", accepted, "an earlier table")
    groups, labels = _groups(now, then, priors, known)
    seen = _seen(now, labels, NOW)
    if then is not None:
        seen += _seen(then, labels, THEN)
    if now.procedure is None and (then is None or then.procedure is None):
        counts = infer(groups, seen)
    else:
        counts = infer_allowed(groups, seen, _allowed(labels, now, then))
    return [
        _finding(now, label, group, each)
        for label, group, each in zip(labels, groups, counts, strict=True)
    ]


Label = tuple[int, str]
"""A cell's number, and which of its people."""
NOW, THEN = ("all", "stayed", "joined"), ("stayed", "left")


def _groups(
    now: Layout, then: Layout | None, priors: list[Rational], known: list[int]
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


def _seen(layout: Layout, labels: list[Label], people: tuple[str, ...]) -> list[ShownSum]:
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


def _allowed(labels: list[Label], now: Layout, then: Layout | None) -> Allowed:
    """Whether the procedures suppress what is suppressed, for lines of counts of all groups."""

    def cells(lines: Lines, layout: Layout, people: tuple[str, ...]) -> Lines:
        result = np.zeros((len(lines), len(layout.cells)), dtype=np.int64)
        for number, (cell, name) in enumerate(labels):
            if name in people:
                result[:, cell] += lines[:, number]
        return result

    def allowed(lines: Lines) -> Pattern:
        fits = now.hides(cells(lines, now, NOW))
        if then is not None:
            fits &= then.hides(cells(lines, then, THEN))
        return fits

    return allowed


def _finding(now: Layout, label: Label, group: AlikePeople, count: Inferred) -> CellFinding:
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
