"""No entity counts for more than its share: bounding inside the engine, rows chosen at random.

Contract: what these expressions return changes with one entity by no more than `Part.sensitivity`
says, because each entity's rows are chosen by looking at that entity alone (`choosing`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from whosin.errors import at
from whosin.exact import rational
from whosin.release.columns.cell_numbers import with_levels
from whosin.release.columns.cells import Cells
from whosin.release.columns.domains import Range
from whosin.release.conditions.predicate import condition
from whosin.release.conditions.row_values import double, owned, whole_steps
from whosin.release.conditions.row_values import within as within
from whosin.release.scans.row_choice import MOST_HELD, summed
from whosin.release.scans.row_choice import first as first
from whosin.release.table import Table

ENTITY = "entity"
MOST_SUM = 2**62


@dataclass(frozen=True)
class Bounds:
    """How much of an entity counts: at most `rows` rows in each of at most `groups` cells."""

    rows: int
    groups: int


@dataclass(frozen=True)
class Part:
    """A number summed over rows, in whole units.

    Attributes:
        unit: what one unit is worth.
        low, high: the least and the most that one row can add, in units.
    """

    name: str
    unit: Fraction
    low: int
    high: int

    def sensitivity(self, relation: str, bounds: Bounds, grouped: bool) -> int:
        """L1: how far one entity can move all cells together, in units."""
        most, width = self._reach()
        if relation == "replace":
            return bounds.rows * (2 * bounds.groups * most if grouped else width)
        return bounds.rows * most * (bounds.groups if grouped else 1)

    def squared(self, relation: str, bounds: Bounds, grouped: bool) -> int:
        """L2, squared. Replaced entities share no cell, or all of them, whichever is worse."""
        most, width = self._reach()
        if not grouped:
            return self.sensitivity(relation, bounds, grouped) ** 2
        worst = max(2 * most**2, width**2) if relation == "replace" else most**2
        return bounds.groups * bounds.rows**2 * worst

    @property
    def most(self) -> int:
        """The most that one row can move the sum, in units."""
        return max(abs(self.low), abs(self.high))

    def _reach(self) -> tuple[int, int]:
        return self.most, max(self.high, 0) - min(self.low, 0)


PEOPLE = Part("people", Fraction(1), 1, 1)
ROWS = Part("rows", Fraction(1), 1, 1)


def eligible(table: Table, where: str | None) -> Any:
    """The rows that have an entity (NaN is none) and meet the condition."""
    rows = table.data
    if not table.by_row:
        rows = owned(rows, table.entity)
    if where is None:
        return rows
    with at("where"):
        known = with_levels(rows, table.domains, where)
        return known.filter(condition(where, known)).select(*rows.columns)


def owner(rows: Any, table: Table) -> dict[str, Any]:
    """The column that says whose row it is; none where each row is one person."""
    return {} if table.by_row else {ENTITY: rows[table.entity]}


def units(value: Any, domain: Range, centre: int = 0) -> Any:
    """A number clamped and rounded to whole steps, less a centre, on rows that have a number."""
    ends = domain.bounds
    clamped = within(double(value), float(ends[0]), float(ends[1]))
    return within(whole_steps(clamped, domain.unit), *domain.units) - centre


def people(rows: Any, table: Table, cells: Cells, bounds: Bounds) -> Any:
    """For each cell the number of entities; each entity in a few cells."""
    if not cells.columns:
        people = rows.count() if table.one_row else rows[table.entity].nunique()
        return rows.aggregate(people=people)
    pairs = cells.coded(rows, **owner(rows, table))
    chosen = pairs if table.one_row else _choose(pairs.distinct(), cells, bounds)
    return chosen.group_by(list(cells.names)).aggregate(people=chosen.count())


def totals(
    rows: Any, table: Table, cells: Cells, bounds: Bounds, values: dict[str, Any], counted: bool
) -> Any:
    """For each cell the sums of some values, and the number of rows where `counted`.

    Args:
        values: what to sum; rows where one is missing must have been dropped.
    """
    import ibis

    one = {ROWS.name: ibis.literal(1, "int64")} if counted else {}
    base = cells.coded(rows, **owner(rows, table), **values, **one)
    home = [ENTITY, *cells.names]
    if table.one_row:
        each = base
    elif values and bounds.rows == 1:
        each = first(base.drop(*one), home, 1).mutate(**one)
    elif values:
        each = summed(base, home, bounds.rows, (*values, *one))
    else:  # rows are alike: no need to choose among them
        each = base.group_by(home).aggregate(rows=ibis.least(base.count(), bounds.rows))
    if not table.one_row:
        each = _choose(each, cells, bounds)
    # Saturating, where a wider sum would fail or wrap: then no entity moves it by more either.
    ends = -MOST_SUM, MOST_SUM
    sums = {name: each[name].sum().clip(*ends).cast("int64") for name in (*values, *one)}
    if not cells.columns:
        return each.aggregate(**sums)
    return each.group_by(list(cells.names)).aggregate(**sums)


def rows_in_cells(base: Any, table: Table, cells: Cells, bounds: Bounds) -> Any:
    """Rows of each entity, a few in each of a few cells; cells and rows are chosen separately."""
    home = [ENTITY, *cells.names]
    if table.one_row:
        return base
    chosen = first(base, home, bounds.rows)
    if bounds.groups >= cells.count:
        return chosen
    pairs = base.select(*home).distinct()
    kept = _choose(pairs, cells, bounds).rename({f"in_{name}": name for name in home}).view()
    same = [chosen[name] == kept[f"in_{name}"] for name in home]
    return chosen.inner_join(kept, same).select(*base.columns)


def _choose(each: Any, cells: Cells, bounds: Bounds) -> Any:
    """A few cells of each entity, at random; all of them where there are no more."""
    if bounds.groups >= cells.count:
        return each
    return first(each, [ENTITY], bounds.groups, crowded=cells.count > MOST_HELD)


def centred(domain: Range) -> tuple[int, Part]:
    """(the middle of a range in units, the part that sums distances from it)."""
    low, high = domain.units
    centre = (low + high) // 2
    return centre, Part("sum", domain.unit, low - centre, high - centre)


def square_part(domain: Range) -> tuple[float, Part]:
    """(half the range, the part that sums squares of distances from its middle)."""
    low, high = domain.bounds
    half = rational(high - low) / 2
    return float(half), Part("squares", half**2 / 10**6, 0, 10**6)
