"""Association studies by their definitions: every table, exact rationals, breadth-first search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

Table = tuple[int, ...]


def groups(size: int) -> list[Table]:
    return [(a, b, size - a - b) for a in range(size + 1) for b in range(size + 1 - a)]


def tables(cases: int, controls: int) -> list[Table]:
    return [first + second for first in groups(cases) for second in groups(controls)]


def allelic(table: Table) -> Fraction:
    """Σ (observed − expected)²/expected over the 2×2 table of alleles."""
    rows = [(2 * a + b, b + 2 * c) for a, b, c in (table[:3], table[3:])]
    return pearson(rows)


def genotypic(table: Table) -> Fraction:
    return pearson([table[:3], table[3:]])


def pearson(rows: Sequence[Sequence[int]]) -> Fraction:
    columns, total = [sum(column) for column in zip(*rows, strict=True)], sum(map(sum, rows))
    chi2 = Fraction(0)
    for row in rows:
        for seen, column in zip(row, columns, strict=True):
            if column:
                expected = Fraction(sum(row) * column, total)
                chi2 += (seen - expected) ** 2 / expected
    return chi2


def genotype_changes(table: Table) -> Iterator[Table]:
    for group in (0, 3):
        for old in range(3):
            for new in range(3):
                if old != new and table[group + old]:
                    changed = list(table)
                    changed[group + old] -= 1
                    changed[group + new] += 1
                    yield tuple(changed)


def label_swaps(table: Table) -> Iterator[Table]:
    for case in range(3):
        for control in range(3):
            if case != control and table[case] and table[3 + control]:
                changed = list(table)
                changed[case] -= 1
                changed[control] += 1
                changed[3 + control] -= 1
                changed[3 + case] += 1
                yield tuple(changed)


RELATIONS = {"genotype": genotype_changes, "label-swap": label_swaps}


def distances(
    all_tables: list[Table],
    neighbours: Callable[[Table], Iterator[Table]],
    goal: Callable[[Table], bool],
) -> dict[Table, int]:
    found = {table: 0 for table in all_tables if goal(table)}
    front = list(found)
    while front:
        after = []
        for table in front:
            for other in neighbours(table):
                if other not in found:
                    found[other] = found[table] + 1
                    after.append(other)
        front = after
    return found


def scores(cases: int, controls: int, c: Fraction, relation: str) -> tuple[list[Table], list[int]]:
    every = tables(cases, controls)
    chi2 = {table: allelic(table) for table in every}
    step = RELATIONS[relation]
    to_gain = distances(every, step, lambda table: chi2[table] >= c)
    to_lose = distances(every, step, lambda table: chi2[table] < c)
    far = min(cases, controls) + 1
    return every, [
        to_lose.get(table, far) if chi2[table] >= c else 1 - to_gain.get(table, far)
        for table in every
    ]
