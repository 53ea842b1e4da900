"""What a name among the columns of a table means: the cells of a column or of a function of
one, the parents of a level, or sums of these in their order: cumulative(age), ranges(age).

Contract: everything that is asked of one column is sums over the same cells, so that it agrees
before noise and after. A form lists its cells in an order in which every sum is a run of them. The
cell "other" is in no range and in no cumulative count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from typing import Any

from whosin.errors import InvalidInput, at
from whosin.exact import rational
from whosin.release.columns.cells import cellular
from whosin.release.columns.dates import Dates, read_day
from whosin.release.columns.derived import FORM, Cellular
from whosin.release.columns.domains import Range
from whosin.release.columns.levels import UpperLevel
from whosin.release.table import Table

CUMULATIVE, RANGES = "cumulative", "ranges"
MOST_RANGES = 1_000
Span = tuple[int, int]


@dataclass(frozen=True)
class Form:
    """One way to ask a column.

    Attributes:
        name: as it was asked.
        root: the column, or the function of one, whose cells are summed.
        domain: the domain of the root.
        labels: what each sum is called.
        order: the cells of the root.
        spans: the runs of cells, in that order, that the sums are.
        cells: its own domain where each cell of the root is in one sum: the root's, or a level.
    """

    name: str
    root: str
    domain: Cellular
    labels: tuple[str | int, ...]
    order: tuple[int, ...]
    spans: tuple[Span, ...]
    cells: Cellular | None

    @property
    def marks(self) -> list[int]:
        """For each cell of the root which sums it is in, as bits."""
        changes = [0] * (len(self.order) + 1)
        for bit, (start, end) in enumerate(self.spans):
            changes[start] ^= 1 << bit
            changes[end] ^= 1 << bit
        result = [0] * len(self.order)
        running = accumulate(changes[:-1], lambda one, other: one ^ other)
        for cell, marks in zip(self.order, running, strict=True):
            result[cell] = marks
        return result


def form_of(table: Table, name: str, ranges: Mapping[str, object], field: str) -> Form:
    """What a name stands for.

    Args:
        field: where it was named.
    """
    match = FORM.fullmatch(name)
    known = name in table.columns or name in table.levels
    if known or match is None or match[1] not in (CUMULATIVE, RANGES):
        with at(field):
            return _plain(table, name)
    inner = match[2].strip()
    with at(field):
        base = _plain(table, inner)
    if match[1] == CUMULATIVE:
        last = len(base.labels) - (base.domain.outside is None)
        return _summed(base, name, [(0, end) for end in range(1, last + 1)])
    if inner not in ranges:
        raise InvalidInput("ranges", f"given for {inner}, since {name} is asked", "none")
    with at(f"ranges.{inner}"):
        return _summed(base, name, _read(base, inner, ranges[inner]))


def _plain(table: Table, name: str) -> Form:
    domain = cellular(table, name)
    if not isinstance(domain, UpperLevel):
        count = len(domain.labels)
        spans = tuple((index, index + 1) for index in range(count))
        return Form(name, name, domain, domain.labels, tuple(range(count)), spans, domain)
    root = domain.domain
    placed = [*domain.parents.numbers, *([domain.beyond] if root.outside is None else [])]
    order = sorted(range(len(placed)), key=lambda cell: placed[cell])
    sizes = [len(list(same)) for _, same in groupby(placed[cell] for cell in order)]
    ends = list(accumulate(sizes, initial=0))
    spans = tuple(pairwise(ends))
    return Form(name, domain.column, root, domain.labels, tuple(order), spans, domain)


def _summed(base: Form, name: str, runs: list[Span]) -> Form:
    """Sums of runs of what a form has, from a first to before a last one."""
    spans = tuple((base.spans[first][0], base.spans[end - 1][1]) for first, end in runs)
    labels = tuple(_label(base, first, end) for first, end in runs)
    return Form(name, base.root, base.domain, labels, base.order, spans, None)


def _edges(base: Form) -> tuple[str, ...]:
    """The ends of bins, as texts; none where cells have names."""
    cells = base.cells
    if isinstance(cells, Range):
        return tuple(repr(float(rational(edge))).removesuffix(".0") for edge in cells.edges)
    if isinstance(cells, Dates) and not isinstance(cells.edges, str):
        return tuple(str(edge) for edge in cells.edges)
    return ()


def _label(base: Form, first: int, end: int) -> str:
    if edges := _edges(base):
        return f"{edges[first]}..{edges[end]}"
    names = base.labels[first], base.labels[end - 1]
    return str(names[0]) if end == first + 1 else f"{names[0]}..{names[1]}"


def _read(base: Form, name: str, listed: object) -> list[Span]:
    """Ranges as people write them: [18, 29] or "18..29"."""
    if not isinstance(listed, list | tuple) or not 1 <= len(listed) <= MOST_RANGES:
        accepted = f'a list of 1 to {MOST_RANGES:,} ranges, such as [18, 29] or "18..29"'
        raise InvalidInput(name, accepted, repr(listed)[:80])
    result = [_read_one(base, name, each) for each in listed]
    for index, each in enumerate(result):
        if each in result[:index]:
            raise InvalidInput(name, "different ranges", f"{_label(base, *each)!r} twice")
    if all(end - first == len(base.labels) for first, end in result):
        raise InvalidInput(name, "at least one range that leaves a cell out", "all of them")
    return result


def _read_one(base: Form, name: str, given: object) -> Span:
    ends: Any = given.split("..") if isinstance(given, str) else given
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        raise InvalidInput(name, 'ranges such as [18, 29] or "18..29"', repr(given)[:80])
    if edges := _edges(base):
        known, what = edges, "edges of its bins"
        first, last = (_index(known, _edge(base, end)) for end in ends)
    else:
        declared = len(base.labels) - (base.domain.outside is None)
        known, what = tuple(map(str, base.labels[:declared])), "declared values"
        first, last = (_index(known, str(end).strip()) for end in ends)
    if first is None or last is None:
        wrong = ends[0] if first is None else ends[1]
        raise InvalidInput(name, f"ranges between {what}", repr(wrong)[:80])
    end = last if edges else last + 1
    if first >= end:
        raise InvalidInput(name, "ranges from a lower to a higher end", repr(given)[:80])
    return first, end


def _edge(base: Form, end: object) -> str:
    """An end as edges are spelled; as it is where it is none."""
    try:
        if isinstance(base.cells, Dates):
            return read_day(end.strip() if isinstance(end, str) else end, "end").isoformat()
        return repr(float(rational(end))).removesuffix(".0")
    except InvalidInput:
        return str(end)


def _index(known: tuple[str, ...], name: str) -> int | None:
    return known.index(name) if name in known else None
