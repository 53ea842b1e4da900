"""Cells suppressed for the sake of others, by a declared procedure: the pattern says more (F23)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest

import whosin as wi
from amounts import cases
from refusals import refused
from tables_oracle import brute, next_smallest
from whosin.rules import NextSmallest, Publication, Suppress, check_published, posteriors, published

F = Fraction
Pattern = Callable[[Any], list[list[bool]]]
BY_CHANCE = wi.mechanisms.PostProcessed(wi.rules.RandomRound(3), Suppress(5))


def worst_first(table: Sequence[Sequence[int]]) -> list[list[bool]]:
    """A procedure of one's own: small cells, and the largest cell of the table."""
    largest = max(max(row) for row in table)
    return [[0 < count < 3 or count == largest for count in row] for row in table]


def show(
    table: Sequence[Sequence[int]],
    pattern: Pattern,
    totals: tuple[bool, bool],
    number: Callable[[int], Any] = int,
    total: Callable[[int], Any] = int,
) -> list[list[Any]]:
    """The table as it is shown, with totals of the rows, and of the columns."""
    shown = [
        [None if hide else number(count) for count, hide in zip(row, hides, strict=True)]
        + ([total(sum(row))] if totals[0] else [])
        for row, hides in zip(table, pattern(table), strict=True)
    ]
    if totals[1]:
        sums = [sum(column) for column in zip(*table, strict=True)]
        shown.append([total(each) for each in sums + ([sum(sums)] if totals[0] else [])])
    return shown


def rows_of(flat: Sequence[Any], width: int) -> list[list[Any]]:
    return [list(flat[start : start + width]) for start in range(0, len(flat), width)]


def to_threes(count: int) -> int:
    return (2 * count + 3) // 6 * 3


class Declared:
    """A random table whose further cells were chosen by a procedure that everyone knows."""

    def __init__(self, rng: random.Random) -> None:
        height, self.width = rng.choice([(1, 3), (2, 2), (1, 4), (2, 3)])
        many = height * self.width
        most = 6 if many < 4 else 4 if many < 6 else 3
        self.sizes = [rng.randint(0, most) for _ in range(many)]
        self.known = [rng.randrange(n + 1) if rng.random() < 0.1 else 0 for n in self.sizes]
        self.prior, zeros = rng.choice([F(1, 2), F(1, 3), F(3, 4)]), rng.choice(["shown", "hidden"])
        self.totals, self.own = (rng.random() < 0.8, rng.random() < 0.7), rng.random() < 0.3
        rounds = rng.random() < 0.3
        self.number = to_threes if rounds else int
        self.rule: Any = wi.mechanisms.PostProcessed(Suppress(3), wi.rules.Round(3))
        self.rule = self.rule if rounds else Suppress(3)
        self.kind = rng.choice(["exact", "counted"])
        self.secondary: Any = worst_first if self.own else NextSmallest(zeros)
        self.pattern: Pattern = (
            worst_first if self.own else lambda table: next_smallest(table, 3, zeros, *self.totals)
        )
        counts = [
            k + sum(rng.random() < self.prior for _ in range(n - k))
            for n, k in zip(self.sizes, self.known, strict=True)
        ]
        self.shown = self.show(counts)

    def show(self, counts: Sequence[int]) -> list[list[Any]]:
        def total(count: int) -> int | None:
            if self.kind == "exact":
                return count
            return None if 0 < count < 3 else self.number(count)

        return show(rows_of(counts, self.width), self.pattern, self.totals, self.number, total)

    def publication(self, secondary: Any) -> Publication:
        return Publication(
            self.shown, rows_of(self.sizes, self.width), self.rule, self.kind, secondary
        )

    def findings(self, secondary: Any) -> list[Any]:
        known = rows_of(self.known, self.width)
        return check_published(self.publication(secondary), self.prior, known_in=known)

    def truth(self) -> list[Fraction]:
        return brute(self.sizes, self.known, self.prior, lambda c: F(self.show(c) == self.shown))


@cases(50, 1500)
def test_the_pattern_is_part_of_what_is_seen(count):
    rng, differ = random.Random(1), 0
    for _ in range(count):
        case = Declared(rng)
        found, truth = case.findings(case.secondary), case.truth()
        assert [each.posterior for each in found] == truth, vars(case)
        assert all(each.exact for each in found)
        careless = case.findings(True)
        differ += [each.posterior for each in careless] != truth
        for each, loose in zip(found, careless, strict=True):
            assert loose.low <= each.low <= each.high <= loose.high
    assert differ > count / 10


def test_too_many_tables_are_a_bound(monkeypatch):
    rng, bounded = random.Random(2), 0
    for _ in range(30):
        case = Declared(rng)
        with monkeypatch.context() as patch:
            patch.setattr(published, "MAX_CANDIDATE_TABLES", 1)
            found = case.findings(case.secondary)
        for each, posterior in zip(found, case.truth(), strict=True):
            bounded += each.bound
            assert each.posterior >= posterior if each.bound else each.posterior == posterior
    assert bounded > 12


def test_how_cells_were_chosen_gives_the_small_one_away():
    """Three cells of three people, 8 in all, the middle one shown: had the last been 3 and the
    first 2, the middle one would be hidden. So the last is 2, and all of the first are in."""
    shown, people = [None, 3, None, 8], [3, 3, 3]
    options: dict[str, Any] = {"rule": Suppress(3), "totals": "exact"}
    blind = posteriors(shown, people, "1/2", secondary=True, **options)
    assert blind == [F(5, 6), 1, F(5, 6)]
    known = posteriors(shown, people, "1/2", secondary=NextSmallest(), **options)
    assert known == [1, 1, F(2, 3)]
    same = posteriors(
        shown, people, "1/2",
        secondary=lambda row: next_smallest([row], 3, "shown", True, False)[0], **options,
    )  # fmt: skip
    assert same == known


def test_two_tables_each_with_its_procedure():
    rng = random.Random(3)
    for _ in range(25):
        people, prior = [rng.randint(1, 3) for _ in range(3)], F(1, 2)
        flat = [*people, 1]  # the last one left the first cell

        def tables(c: Sequence[int]) -> tuple[list[list[Any]], list[list[Any]]]:
            then, now = [[c[0] + c[3], c[1], c[2]]], [[c[0], c[1], c[2]]]

            def pattern(table: Any) -> list[list[bool]]:
                return next_smallest(table, 3, "shown", True, False)

            return show(then, pattern, (True, False)), show(now, pattern, (True, False))

        then, now = seen = tables([sum(rng.random() < prior for _ in range(n)) for n in flat])
        truth = brute(flat, [0] * 4, prior, lambda c, seen=seen: F(tables(c) == seen))
        before = Publication(
            then, [[people[0] + 1, *people[1:]]], Suppress(3), "exact", NextSmallest()
        )
        found = check_published(
            Publication(now, [people], Suppress(3), "exact", NextSmallest()), prior, before
        )
        values = {(each.column, each.people): each.posterior for each in found}
        assert [values[column, "stayed"] for column in range(3)] == truth[:3]
        assert values[0, "left"] == truth[3]


def test_a_larger_table_is_exact_in_seconds_or_a_bound():
    rng = random.Random(4)
    table = [[rng.randrange(5, 60) for _ in range(8)] for _ in range(8)]
    for place in (3, 20, 41):
        table[place // 8][place % 8] = rng.randrange(1, 5)
    shown = show(table, lambda t: next_smallest(t, 5, "shown", True, True), (True, True))
    people = [[3 * count for count in row] for row in table]
    made = Publication(shown, people, Suppress(5), "counted", NextSmallest())
    for each in check_published(made, "0.1"):
        assert each.low <= table[each.row][each.column] <= each.high
        assert each.exact or each.bound


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"secondary": "some"}, "secondary"),
        ({"secondary": NextSmallest}, "secondary"),
        ({"secondary": NextSmallest(), "rule": None}, "secondary"),
        ({"secondary": lambda counts: [True]}, "secondary"),
        ({"secondary": lambda counts: [[1, 0]]}, "secondary"),
        ({"secondary": lambda counts: [[False, False]]}, "published"),
        ({"secondary": NextSmallest(), "rule": BY_CHANCE}, "rule"),
    ],
)  # fmt: skip
def test_wrong_procedures_are_one_sentence(options, field):
    given = {"rule": Suppress(3), "totals": "exact"} | options
    with refused(field):
        posteriors([[None, None, 4]], [[3, 3]], "1/2", **given)
    with refused("zeros"):
        NextSmallest("seen")
