"""Association studies by their definitions: every table, exact rationals, breadth-first search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

Table = tuple[int, ...]


def groups(size: int, kinds: int = 3) -> list[Table]:
    """How many of `size` people have each of some kinds of genotype."""
    if kinds == 1:
        return [(size,)]
    return [(a, *rest) for a in range(size + 1) for rest in groups(size - a, kinds - 1)]


def tables(cases: int, controls: int, kinds: int = 3) -> list[Table]:
    """Every table; with four kinds, the last one of each group is a missing genotype."""
    return [a + b for a in groups(cases, kinds) for b in groups(controls, kinds)]


def halves(table: Table) -> tuple[Table, Table]:
    return table[: len(table) // 2], table[len(table) // 2 :]


def alleles(table: Table) -> list[tuple[int, int]]:
    """Copies of A2 and of A1 in each group; missing genotypes have none."""
    return [(2 * a + b, b + 2 * c) for a, b, c, *_ in halves(table)]


def allelic(table: Table) -> Fraction:
    """Σ (observed − expected)²/expected over the 2×2 table of alleles."""
    return pearson(alleles(table))


def genotypic(table: Table) -> Fraction:
    return pearson([table[:3], table[3:]])


def pearson(rows: Sequence[Sequence[int]]) -> Fraction:
    columns, total = [sum(column) for column in zip(*rows, strict=True)], sum(map(sum, rows))
    chi2 = Fraction(0)
    for row in rows:
        for seen, column in zip(row, columns, strict=True):
            if column and sum(row):
                expected = Fraction(sum(row) * column, total)
                chi2 += (seen - expected) ** 2 / expected
    return chi2


def genotype_changes(table: Table) -> Iterator[Table]:
    kinds = len(table) // 2
    for group in (0, kinds):
        for old in range(kinds):
            for new in range(kinds):
                if old != new and table[group + old]:
                    changed = list(table)
                    changed[group + old] -= 1
                    changed[group + new] += 1
                    yield tuple(changed)


def label_swaps(table: Table) -> Iterator[Table]:
    kinds = len(table) // 2
    for case in range(kinds):
        for control in range(kinds):
            if case != control and table[case] and table[kinds + control]:
                changed = list(table)
                changed[case] -= 1
                changed[control] += 1
                changed[kinds + control] -= 1
                changed[kinds + case] += 1
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


def scores(
    cases: int, controls: int, c: Fraction, relation: str, kinds: int = 3
) -> tuple[list[Table], list[int]]:
    """By breadth-first search: the larger of both sides; the least where labels decide nothing."""
    every = tables(cases, controls, kinds)
    chi2 = {table: allelic(table) for table in every}
    step = RELATIONS[relation]
    far = min(cases, controls) + 1
    sided = []
    for more in (0, 1):
        above = {t for t in every if chi2[t] >= c and _more_frequent(t) == more}
        gain = distances(every, step, above.__contains__)
        lose = distances(every, step, (set(every) - above).__contains__)
        sided.append([lose.get(t, far) if t in above else 1 - gain.get(t, far) for t in every])
    best = [max(pair) for pair in zip(*sided, strict=True)]
    if relation == "label-swap":
        below = {margins(table) for table in every if chi2[table] < c}
        best = [s if margins(t) in below else 1 - far for t, s in zip(every, best, strict=True)]
    return every, best


def margins(table: Table) -> Table:
    return tuple(a + b for a, b in zip(*halves(table), strict=True))


def _more_frequent(table: Table) -> int | None:
    """The group in which A1 is more frequent."""
    (w, x), (v, y) = alleles(table)
    return None if x * v == y * w else int(x * v < y * w)
