"""Tables as they were asked, and the cells that are measured for them.

Contract: cells of a column that no table tells apart are measured as one: a workload that asks for
two ranges of a hundred ages has three cells for them, and one that asks for cantons alone counts
cantons. Whatever is asked of a column is then sums of these parts (`Sums`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from math import prod

from whosin.errors import InvalidInput
from whosin.marginals import Sums, Workload
from whosin.marginals.workload import MOST_CELLS, Attributes
from whosin.release.columns.cells import Cells
from whosin.release.columns.derived import Cellular, Grouped
from whosin.release.columns.forms import Form


@dataclass(frozen=True)
class AskedTables:
    """What is asked, over what is measured.

    Attributes:
        cells: the columns that are measured, with their domains.
        workload: the tables over them.
        forms: how each column of each table was asked, in the order of the workload's sets.
    """

    cells: Cells
    workload: Workload
    forms: tuple[tuple[Form, ...], ...]

    @property
    def names(self) -> list[list[str]]:
        """The columns of each table, as they were asked."""
        return [[form.name for form in each] for each in self.forms]

    def labels(self) -> dict[str, list[str | int]]:
        """What the rows of each column are called, asked or measured."""
        asked = {form.name: list(form.labels) for each in self.forms for form in each}
        measured = zip(self.cells.columns, self.cells.domains, strict=True)
        return asked | {name: list(domain.labels) for name, domain in measured}

    def sums(self) -> dict[str, dict[str, object]]:
        """How what was asked is made from what is measured, where it is not the same: runs of
        cells, in an order of them, by the name of what was asked."""
        result: dict[str, dict[str, object]] = {}
        tables = zip(self.forms, self.workload.sets, self.workload.sums, strict=True)
        for forms, attributes, sums in tables:
            for form, attribute, own in zip(forms, attributes, sums, strict=True):
                if own is not None:
                    result[form.name] = {
                        "of": self.cells.columns[attribute],
                        "order": list(own.order or range(own.size)),
                        "runs": [list(span) for span in own.spans],
                    }
        return result


def asked_tables(
    named: Sequence[Form], sets: Sequence[Attributes], weights: tuple[float, ...], field: str
) -> AskedTables:
    """Tables over forms.

    Args:
        sets: the indices of each table's forms among those named.
        field: what tables are called in a refusal.
    """
    roots = list(dict.fromkeys(form.root for form in named))
    by_root = {root: tuple(form for form in named if form.root == root) for root in roots}
    parts = {root: _parts(by_root[root]) for root in roots}
    tables = []
    for each in sets:
        own = sorted((named[index] for index in each), key=lambda form: roots.index(form.root))
        for root, same in groupby(own, key=lambda form: form.root):
            several = [form.name for form in same]
            if len(several) > 1:
                accepted = f"tables that name {root} once, in one form or at one level"
                raise InvalidInput(field, accepted, " and ".join(map(repr, several)))
        tables.append(tuple(own))
    domains = [_measured(by_root[root], parts[root]) for root in roots]
    sizes = {root: len(domain.labels) for root, (_, domain) in zip(roots, domains, strict=True)}
    for wanted in tables:
        if (cells := prod(sizes[form.root] for form in wanted)) > MOST_CELLS:
            accepted = f"tables of at most {MOST_CELLS:,} cells"
            said = f"{cells:,} for {', '.join(form.name for form in wanted)}"
            raise InvalidInput(field, accepted, said)
    workload = Workload(
        tuple(sizes.values()),
        tuple(tuple(roots.index(form.root) for form in each) for each in tables),
        weights,
        tuple(tuple(_sums(form, parts[form.root]) for form in each) for each in tables),
    )
    measured = Cells(tuple(name for name, _ in domains), tuple(domain for _, domain in domains))
    return AskedTables(measured, workload, tuple(tables))


@lru_cache(maxsize=64)
def _parts(forms: tuple[Form, ...]) -> tuple[int, ...]:
    """For each cell of a root the number of its part: cells that all sums have or leave out."""
    numbers: dict[tuple[int, ...], int] = {}
    marks = zip(*(form.marks for form in forms), strict=True)
    return tuple(numbers.setdefault(each, len(numbers)) for each in marks)


def _sums(form: Form, parts: tuple[int, ...]) -> Sums | None:
    """A form over parts; None where it is these. Its sums hold whole parts, so that in the order in
    which parts first come, those of a sum are a run."""
    first: dict[int, int] = {}
    for index, cell in enumerate(form.order):
        first.setdefault(parts[cell], index)
    starts = list(first.values())
    spans = tuple((bisect_left(starts, a), bisect_left(starts, b)) for a, b in form.spans)
    order = tuple(first)
    if order == tuple(range(len(order))):
        order = ()
        if spans == tuple((index, index + 1) for index in range(len(first))):
            return None
    return Sums(len(first), spans, order)


def _measured(forms: tuple[Form, ...], parts: tuple[int, ...]) -> tuple[str, Cellular]:
    """The parts of a root as cells, with a name."""
    for form in forms:
        if form.cells is not None and _sums(form, parts) is None:
            return form.name, form.cells
    root = forms[0]
    labels = root.domain.labels
    held: dict[int, list[int]] = {}
    for cell, part in enumerate(parts):
        held.setdefault(part, []).append(cell)
    names = tuple(_run_names(cells, labels) for cells in held.values())
    return root.root, Grouped(root.root, root.domain, parts, names)


def _run_names(cells: list[int], labels: tuple[str | int, ...]) -> str:
    """What a part is called: its cells, runs of them by their ends."""
    runs: list[list[int]] = []
    for cell in cells:
        if runs and cell == runs[-1][-1] + 1:
            runs[-1].append(cell)
        else:
            runs.append([cell])
    said = [
        str(labels[run[0]]) if len(run) == 1 else f"{labels[run[0]]} to {labels[run[-1]]}"
        for run in runs
    ]
    return " and ".join(said)
