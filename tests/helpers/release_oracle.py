"""Bounded answers from the definitions, in plain Python: what one privacy unit's rows can come to.

Nothing here is shared with the package but the declared domains. Rows are dictionaries; None, NaN
and texts that spell no number are missing, as a number.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import pyarrow as pa

import whosin as wi
from whosin.calibration import Plan
from whosin.release import DuckDB, Range, Values
from whosin.release.column_expressions import GroupGrid
from whosin.release.cost import Share
from whosin.release.engines.base import further_source


class OneDatabase(DuckDB):
    """DuckDB with one database for all frames in memory: a database of its own takes 40 ms, and
    a frame reads no file that another table must not reach."""

    def open_together(self, sources: Sequence[object]) -> list[Any]:
        if any(isinstance(source, str | Path) for source in sources):
            return super().open_together(sources)
        opened = []
        for index, source in enumerate(sources):
            with further_source(index):
                opened.append(self._open(self.home_of_frames, source)[0])
        return opened

    @cached_property
    def home_of_frames(self) -> Any:
        home = self._new()
        home.confine()
        return home


ENGINE = OneDatabase(threads=1)
PLANS = {
    "add-remove": wi.calibrate(wi.Epsilon(1.0), wi.families.Independent()),
    "replace": wi.calibrate(wi.Epsilon(1.0), wi.families.FixedSize()),
}
WITH_DELTA = {
    "add-remove": wi.calibrate(wi.Epsilon(1.0), wi.families.Independent(), delta=1e-3),
    "replace": wi.calibrate(wi.Epsilon(1.0), wi.families.FixedSize(), delta=1e-3),
}


def table(data: object, domains: Mapping[str, Any] | None = None, **options: Any) -> wi.Table:
    """A table in memory, on an engine that all tests of a process share."""
    source = data if isinstance(data, pa.Table) else pa.table(data)
    usual: dict[str, Any] = {"privacy_unit": "who", "name": "people", "engine": ENGINE}
    return wi.Table(source, domains=domains, **(usual | options))


def share(epsilon: Any = 1, *, rho: Any = 0, delta: Any = 0, relation: str = "add-remove") -> Share:
    """A share of a plan."""
    plan: Plan = PLANS[relation]
    return Share(plan, Fraction(epsilon), Fraction(rho), Fraction(delta))


def exact(query: Any, data: wi.Table) -> list[list[int]]:
    """What the engine computes before noise: one vector a part."""
    cells: GroupGrid = query.cells(data)
    result = data.engine.run(query.exact(data, cells))
    return [v.tolist() for v in cells.dense(result, [p.name for p in query.parts(data)])]


def rows_in(query: Any, data: wi.Table) -> list[int]:
    """How many rows a mean is of, in each cell: every one adds the width of the range."""
    above, below = exact(query, data)
    width = query.parts(data)[0].high
    found = [divmod(one + other, width) for one, other in zip(above, below, strict=True)]
    assert not any(rest for _, rest in found)
    return [rows for rows, _ in found]


def number(value: Any) -> float | None:
    """A value as a number, None where it is none."""
    if value is None:
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return None if math.isnan(found) else found


def steps(value: object, domain: Range) -> int | None:
    """Clamped and rounded to the nearest whole step, halves up, exactly."""
    found = number(value)
    if found is None:
        return None
    low, high = domain.bounds
    clamped = min(max(Fraction(found), low), high) if math.isfinite(found) else None
    if clamped is None:
        clamped = high if found > 0 else low
    whole = math.floor(clamped / domain.unit + Fraction(1, 2))
    least, most = math.ceil(low / domain.unit), math.floor(high / domain.unit)
    return min(max(whole, least), most)


def cell(
    row: Mapping[str, Any], by: tuple[str, ...], domains: Mapping[str, Any]
) -> tuple[Any, ...] | None:
    """The keys of a row; None where a closed domain drops it."""
    keys = tuple(_key(row[column], domains[column]) for column in by)
    return None if None in keys else keys


def _key(value: object, domain: Range | Values) -> object:
    """The label of a value; None where it has none."""
    if isinstance(domain, Values):
        if any(type(each) is type(value) and each == value for each in domain.values):
            return value
        if domain.outside is not None:
            return None if domain.outside == "drop" else domain.outside
        return domain.labels[-1]
    found = number(value)
    edges: tuple[Any, ...] = domain.edges
    if domain.outside is not None:
        if found is None:
            return None
        first, last = (float(Fraction(edges[at])) for at in (0, -1))
        if not first <= found <= last and domain.outside == "drop":
            return None
        found = min(max(found, first), last)
    ends = [float(Fraction(edge)) for edge in edges]
    for place, (a, b) in enumerate(pairwise(ends)):
        last = place == len(ends) - 2
        if found is not None and (a <= found < b or (last and found == b)):
            return domain.labels[place]
    return domain.labels[-1]


def outcomes(
    rows: Sequence[tuple[Any, Any]], most_rows: int, most_groups: int
) -> set[frozenset[Any]]:
    """All that one privacy unit may come to over the random choices, as {(cell, total)} a choice.

    Args:
        rows: (cell, values) of each of its rows, values being a tuple of whole numbers.
    """
    homes = defaultdict(list)
    for home, values in rows:
        homes[home].append(values)
    totals = {
        home: {
            tuple(sum(column) for column in zip(*chosen, strict=True))
            for chosen in combinations(values, min(most_rows, len(values)))
        }
        for home, values in homes.items()
    }
    found = set()
    for homes_chosen in combinations(sorted(totals, key=str), min(most_groups, len(totals))):
        for choice in product(*(totals[home] for home in homes_chosen)):
            found.add(frozenset(zip(homes_chosen, choice, strict=True)))
    return found


def by_entity(rows: Sequence[dict[str, Any]], unit: str = "who") -> dict[Any, list[dict[str, Any]]]:
    """The rows of each privacy unit, without those that have none."""
    found = defaultdict(list)
    for row in rows:
        name = row[unit]
        if name is not None and not (isinstance(name, float) and math.isnan(name)):
            found[name].append(row)
    return dict(found)
