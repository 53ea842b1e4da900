"""Many tables of the same people: measured together, from one budget, with one estimate (F20)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from whosin.errors import InvalidInput, UnknownName, at
from whosin.exact import Array, ranged
from whosin.ledger.charge import Charge
from whosin.marginals import (
    Radii,
    Spending,
    Workload,
    cell_variances,
    estimate,
    radii,
    spend,
    tables_of,
    whole_tables,
)
from whosin.marginals.spending import GOALS
from whosin.marginals.workload import Attributes, sets_up_to
from whosin.release.cells import Cells, cellular
from whosin.release.engines.base import Progress
from whosin.release.pricing import CONFIDENCE, Offer, Share
from whosin.release.queries.base import Query
from whosin.release.table import Table
from whosin.release.table_noise import NoisyTable, noise_words, noisy_tables, table_costs
from whosin.release.table_scan import TableScan
from whosin.release.what_counts import Caution, Counted, beyond, may_vary
from whosin.validation import whole

MOST_SHOWN = 2 * 10**6
"""Cells of all tables of an answer together."""
DIGITS = 6
"""Decimals of an estimate."""
HEADINGS = ("value", "low", "high", "all_low", "all_high", "whole")


@dataclass(frozen=True, kw_only=True)
class Marginals(Query):
    """Tables of how many people there are by columns: all tables of up to `order` of the columns,
    or the sets of columns that are listed. All come from one estimate and agree with each other.

    Args:
        columns: declared columns.
        order: how many columns a table has, at most.
        sets: the tables instead, each a list of columns; the empty one is the total.
        weights: how much the error of each table counts, in the order of `sets`; with `columns`,
            for tables of one column, of two, and so on.
        goal: "mean" for the least mean squared error over the tables, "worst" for the least error
            of the worst table.
        magnitudes: how large the cells of each table are thought to be, in the order of `weights`:
            errors then count relative to them. Say what is publicly known.
        rows: how many rows of an entity count, in all; by default the table's own bound, and 1
            where all columns are declared constant.
    """

    kind: ClassVar[str] = "marginals"
    label: ClassVar[str] = "tables by several columns, all at once"
    example: ClassVar[tuple[str, str, str]] = ("order", "columns of a table, at most", "")
    choices: ClassVar[Mapping[str, Sequence[str]]] = {"goal": GOALS}
    sums: ClassVar[bool] = True
    columns: Sequence[str] = ()
    order: int | None = None
    sets: Sequence[Sequence[str]] | None = None
    weights: Sequence[object] | None = None
    goal: str = "mean"
    magnitudes: Sequence[object] | None = None
    rows: int | None = None

    def offer(self, table: Table, share: Share) -> Offer:
        cells, workload = self.workload(table)
        rows = self.rows_counted(table)
        noise = "gaussian" if share.rho else "laplace"
        spending = _spend(workload, noise, share.relation, self.goal, rows)
        noisy = noisy_tables(spending, workload.sizes, share, rows)
        scan = TableScan(cells, tuple(each.measurement.attributes for each in noisy))
        variances = [each.variance for each in noisy]
        spread = cell_variances(workload, spending.measurements, variances)
        errors = tuple(np.sqrt(spread).tolist())
        names = cells.columns
        costs = [float(each.cost(workload.sizes, share.relation, rows)) for each in noisy]
        return Offer(
            self,
            share,
            Charge(self.asked(table), table_costs(noisy, workload.sizes, rows)),
            noise_words(noisy),
            details={"noisy": noisy, "workload": workload, "scan": scan, "errors": errors},
            expression=table.check(scan.expression(table, self.where, rows)),
            tables=tuple(
                {"columns": [names[i] for i in each], "standard_error": error}
                for each, error in zip(workload.sets, errors, strict=True)
            ),
            measured=tuple(
                {**each.to_dict(names), "epsilon" if noise == "laplace" else "rho": cost}
                for each, cost in zip(noisy, costs, strict=True)
            ),
        )

    def answer(self, table: Table, offer: Offer, progress: Progress | None = None) -> Any:
        noisy: tuple[NoisyTable, ...] = offer.details["noisy"]
        workload: Workload = offer.details["workload"]
        scan: TableScan = offer.details["scan"]
        exact = scan.count(table, offer.expression, progress)
        values = []
        for each, counts in zip(noisy, exact, strict=True):
            numbers = each.measurement.of_counts(counts)
            values.append(numbers + each.draw(numbers.shape))
        return _answer(scan.cells, workload, noisy, values, offer.details["errors"])

    def shown(self, table: Table) -> int:
        """How many cells the tables have in all."""
        return self.workload(table)[1].shown

    def counted(self, table: Table) -> Counted:
        cells, rows = self.workload(table)[0], self.rows_counted(table)
        outside = beyond(cells.columns, cells.domains)
        return Counted(table.entity, rows, **outside, by_row=table.by_row)

    def cautions(self, table: Table) -> tuple[Caution, ...]:
        return self.caution(table, "rows", self.workload(table)[0].columns)

    def rows_counted(self, table: Table) -> int:
        """How many rows of an entity count: one says all where all are alike."""
        most = table.bound("rows", self.rows)
        alike = not may_vary(table.domains, self.workload(table)[0].columns)
        return 1 if alike and self.rows is None else most

    def workload(self, table: Table) -> tuple[Cells, Workload]:
        """The columns with their domains, and the tables over them."""
        named, sets = self._listed()
        with at("sets" if self.sets is not None else "columns"):
            domains = tuple(cellular(table, column) for column in named)
            sizes = tuple(len(domain.labels) for domain in domains)
            workload = Workload(sizes, sets, self._weights(sets))
            if (shown := workload.shown) > MOST_SHOWN:
                raise InvalidInput("tables", f"at most {MOST_SHOWN:,} cells in all", f"{shown:,}")
        if self.goal not in GOALS:
            raise UnknownName("goal", str(self.goal), GOALS)
        return Cells(named, domains), workload

    def _listed(self) -> tuple[tuple[str, ...], tuple[Attributes, ...]]:
        """The columns, and the sets of places among them."""
        if self.sets is None:
            named = column_names(self.columns, "columns")
            if not named:
                raise InvalidInput("columns", "at least one column, or sets", "none")
            order = whole(2 if self.order is None else self.order, "order", 1, 20)
            if self.order is None:
                order = min(order, len(named))
            if order > len(named):
                accepted = f"at most the number of columns, {len(named)}"
                raise InvalidInput("order", accepted, order)
            return named, tuple(sets_up_to(len(named), order))
        if self.columns or self.order is not None:
            raise InvalidInput("sets", "given alone, without columns and order", "both")
        if not isinstance(self.sets, list | tuple) or not self.sets:
            raise InvalidInput("sets", "a list of lists of columns", repr(self.sets)[:80])
        listed = [column_names(each, "sets") for each in self.sets]
        named = tuple(dict.fromkeys(name for each in listed for name in each))
        if not named:
            raise InvalidInput("sets", "at least one column in one of them", "none")
        place = {name: number for number, name in enumerate(named)}
        result = tuple(tuple(sorted(place[name] for name in each)) for each in listed)
        for number, each in enumerate(result):
            if each in result[:number]:
                raise InvalidInput("sets", "each named once", f"{list(listed[number])} twice")
        return named, result

    def _weights(self, sets: tuple[Attributes, ...]) -> tuple[float, ...]:
        """Weights of squared errors, over squared magnitudes."""
        weights = _numbers(self.weights, "weights", self.sets is not None, sets)
        sizes = _numbers(self.magnitudes, "magnitudes", self.sets is not None, sets)
        return tuple(one / size**2 for one, size in zip(weights, sizes, strict=True))


def column_names(listed: object, field: str = "columns") -> tuple[str, ...]:
    if not isinstance(listed, list | tuple) or not all(isinstance(each, str) for each in listed):
        raise InvalidInput(field, "a list of columns", repr(listed)[:80])
    if len(set(listed)) != len(listed):
        raise InvalidInput(field, "different columns", repr(list(listed))[:80])
    return tuple(listed)


def _numbers(
    given: object, field: str, each_set: bool, sets: tuple[Attributes, ...]
) -> list[float]:
    """A number for each table, listed by table or by the number of its columns."""
    if given is None:
        return [1.0] * len(sets)
    needed = len(sets) if each_set else max(map(len, sets))
    if not isinstance(given, list | tuple) or len(given) != needed:
        about = "for each set" if each_set else "for each number of columns"
        raise InvalidInput(field, f"a list of {needed} numbers, one {about}", repr(given)[:80])
    numbers = [float(ranged(each, field, "above 0")) for each in given]
    return numbers if each_set else [numbers[len(each) - 1] for each in sets]


@lru_cache(maxsize=32)
def _spend(workload: Workload, noise: str, relation: str, goal: str, rows: int) -> Spending:
    """Public numbers only: the same tables are planned once."""
    return spend(workload, noise, relation, goal, rows)


def _answer(
    cells: Cells,
    workload: Workload,
    noisy: Sequence[NoisyTable],
    values: Sequence[Array],
    errors: Sequence[float],
) -> dict[str, Any]:
    """Everything from what was measured: from here on no row plays a part."""
    measurements = [each.measurement for each in noisy]
    variances = [each.variance for each in noisy]
    residuals = estimate(workload, measurements, variances, values)
    tables = tables_of(workload, residuals)
    reaches = radii(
        workload, measurements, variances, lambda number, shape: noisy[number].draw(shape)
    )
    wholes = whole_tables(tables, [error**2 for error in errors], float(residuals[()]))
    rows: list[list[Any]] = []
    described = []
    for number, attributes in enumerate(workload.sets):
        own = Cells(
            tuple(cells.columns[i] for i in attributes), tuple(cells.domains[i] for i in attributes)
        )
        title = ", ".join(own.columns) or "total"
        numbers = _cells(tables[number].ravel(), reaches[number], wholes[number].ravel())
        for label, cell in zip(own.labels(), numbers, strict=True):
            rows.append([title, ", ".join(map(str, label)), *cell])
        described.append(
            {
                "columns": list(own.columns),
                "standard_error": errors[number],
                "cells": own.count,
                "within": reaches[number].cell,
                "all_within": reaches[number].table,
            }
        )
    domains = zip(cells.columns, cells.domains, strict=True)
    return {
        "columns": ["table", "cell", *HEADINGS],
        "rows": rows,
        "details": {
            "confidence": CONFIDENCE,
            "domains": {column: list(domain.labels) for column, domain in domains},
            "tables": described,
            "measured": [
                {**each.to_dict(cells.columns), "values": result.tolist()}
                for each, result in zip(noisy, values, strict=True)
            ],
        },
    }


def _cells(values: Array, reach: Radii, wholes: Array) -> list[list[Any]]:
    """The numbers of each cell, as `HEADINGS` names them."""
    columns = [values + side for side in (0, -reach.cell, reach.cell, -reach.table, reach.table)]
    shown = [np.round(each, DIGITS).tolist() for each in columns]
    return [list(cell) for cell in zip(*shown, wholes.tolist(), strict=True)]
