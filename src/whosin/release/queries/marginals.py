"""Many tables of the same people: measured together, from one budget, with one estimate (F20)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from whosin.errors import InvalidInput, UnknownName, at, invalid_value, read_whole, spell
from whosin.exact import read_ranged
from whosin.marginals import Workload
from whosin.marginals.allocation import ERROR_GOALS
from whosin.marginals.workload import Attributes, list_sets
from whosin.release.column_expressions import GroupGrid
from whosin.release.contribution_bounds import (
    ContributionPolicy,
    CostWarning,
    may_vary,
    outside_values,
)
from whosin.release.cost import CostEstimate, ExpectedError, Share
from whosin.release.engines.base import Progress
from whosin.release.marginal_workloads import (
    RANGES,
    ColumnExpression,
    MarginalRequest,
    NoisyTable,
    allowed_half_width,
    asked_tables,
    column_form,
    half_widths,
    measure_counts,
    noise_words,
    plan_workload,
    table_costs,
    table_errors,
    tables_answer,
    workload_noise,
)
from whosin.release.queries.base import Query
from whosin.release.scan import TableScan
from whosin.release.table import Table

MAX_ANSWERED_CELLS = 2 * 10**6
"""Cells of all tables of an answer together."""


@dataclass(frozen=True, kw_only=True)
class Marginals(Query):
    """Tables of how many people there are by columns: all tables of up to `order` of the columns,
    or the sets of columns that are listed. All come from one estimate and agree with each other.

    Args:
        columns: declared columns, levels of one such as canton, or functions of one such as
            month(visit). cumulative(age) asks for cumulative counts in the order of its cells, and
            ranges(age) for the ranges that are listed; what is asked of one column in several ways
            agrees, and is in no table twice.
        order: how many columns a table has, at most.
        sets: the tables instead, each a list of columns; the empty one is the total.
        weights: how much the error of each table counts, in the order of `sets`; with `columns`,
            for tables of one column, of two, and so on.
        goal: "mean" for the least mean squared error over the tables, "cells" for that over all
            cells, so that large tables count more, "worst" for the least error of the worst table,
            which is what `within` asks for: then 95% of the numbers of each table are within it.
        magnitudes: how large the cells of each table are thought to be, in the order of `weights`:
            errors then count relative to them. Say what is publicly known.
        ranges: for each column that is asked as ranges(column) its ranges, which may overlap:
            {"age": [[18, 29], [30, 64]]}, from a declared value to another or, where there are
            bins, from an edge to another.
        max_rows_per_group: how many rows of a privacy unit count, in all; by default the table's
            own bound, and 1 where all columns are declared constant.
    """

    kind: ClassVar[str] = "marginals"
    of_things: ClassVar[bool] = True
    choices: ClassVar[Mapping[str, Sequence[str]]] = {"goal": ERROR_GOALS}
    sums: ClassVar[bool] = True
    columns: Sequence[str] = ()
    order: int | None = None
    sets: Sequence[Sequence[str]] | None = None
    weights: Sequence[object] | None = None
    goal: str = "mean"
    magnitudes: Sequence[object] | None = None
    ranges: Mapping[str, Sequence[object]] | None = None
    max_rows_per_group: int | None = None

    def estimate_cost(self, table: Table, share: Share) -> CostEstimate:
        asked, rows = self.tables(table), self.rows_counted(table)
        workload = asked.workload
        noisy, scan, fields = plan_workload(
            table, share, asked.cells, workload, rows, self.where, self._goal
        )
        return CostEstimate(
            self,
            share,
            self.make_spend(table, table_costs(noisy, workload.sizes, rows)),
            noise_words(noisy),
            details={"noisy": noisy, "asked": asked, "scan": scan},
            tables=tuple(table_errors(asked, noisy)),
            **fields,
        )

    @property
    def _goal(self) -> str:
        return self.goal if self.within is None else "worst"

    def plan_noise(self, table: Table, share: Share) -> list[NoisyTable]:
        workload = self.workload(table)[1]
        return list(workload_noise(workload, share, self.rows_counted(table), self._goal))

    def keeps_width(self, table: Table, noise: Any) -> bool | None:
        widths = half_widths(self.workload(table)[1], noise)
        return max(widths) <= allowed_half_width(self.within)

    def answer(self, table: Table, estimate: CostEstimate, progress: Progress | None = None) -> Any:
        noisy: tuple[NoisyTable, ...] = estimate.details["noisy"]
        scan: TableScan = estimate.details["scan"]
        values = measure_counts(noisy, scan.count(table, estimate.expression, progress))
        errors = [dict(each) for each in estimate.tables]
        return tables_answer(estimate.details["asked"], noisy, values, errors)

    def cells_in_all(self, table: Table) -> int:
        return self.tables(table).workload.cells_in_all

    def expected_errors(self, table: Table, estimate: CostEstimate) -> tuple[ExpectedError, ...]:
        errors = [float(each["standard_error"]) for each in estimate.tables]
        mean = math.sqrt(math.fsum(each**2 for each in errors) / len(errors))
        widths = half_widths(self.workload(table)[1], estimate.details["noisy"])
        return (ExpectedError(None, mean * math.sqrt(2 / math.pi), max(widths)),)

    def contribution_policy(self, table: Table) -> ContributionPolicy:
        cells, rows = self.workload(table)[0], self.rows_counted(table)
        outside = outside_values(cells.columns, cells.domains)
        return ContributionPolicy(table.privacy_unit, rows, **outside, by_row=table.by_row)

    def cautions(self, table: Table) -> tuple[CostWarning, ...]:
        return self.caution(table, "max_rows_per_group", self.workload(table)[0].columns)

    def rows_counted(self, table: Table) -> int:
        """How many rows of a privacy unit count: one says all where all are alike."""
        most = table.bound("max_rows_per_group", self.max_rows_per_group)
        alike = not may_vary(table.domains, self.workload(table)[0].columns)
        return 1 if alike and self.max_rows_per_group is None else most

    def workload(self, table: Table) -> tuple[GroupGrid, Workload]:
        """The columns that are measured with their domains, and the tables over them."""
        asked = self.tables(table)
        return asked.cells, asked.workload

    def tables(self, table: Table) -> MarginalRequest:
        field = "sets" if self.sets is not None else "columns"
        names = self._names()
        ranges = self._ranges(names)
        forms = tuple(column_form(table, name, ranges, field) for name in names)
        sets = self._sets(names, forms)
        weights = self._weights(sets)
        with at(field):
            result = asked_tables(forms, sets, weights, field)
            if (count := result.workload.cells_in_all) > MAX_ANSWERED_CELLS:
                message = (
                    f"the tables have {spell(count)} cells in all; at most "
                    f"{spell(MAX_ANSWERED_CELLS)} are answered"
                )
                hint = "ask for fewer tables, or of a lower order"
                raise InvalidInput(message, field="tables", value=count, hint=hint)
        if self.goal not in ERROR_GOALS:
            raise UnknownName("goal", str(self.goal), ERROR_GOALS)
        return result

    def _names(self) -> tuple[str, ...]:
        if self.sets is None:
            names = column_names(self.columns, "columns")
            if not names:
                message = "columns is empty"
                raise InvalidInput(message, field="columns", hint="name at least one, or give sets")
            return names
        if self.columns or self.order is not None:
            message = "sets is given together with columns or order, which it replaces"
            raise InvalidInput(message, field="sets", hint="give one of them")
        if not isinstance(self.sets, list | tuple) or not self.sets:
            raise invalid_value("sets", "a list of lists of columns", repr(self.sets)[:80])
        listed = [column_names(each, "sets") for each in self.sets]
        names = tuple(dict.fromkeys(name for each in listed for name in each))
        if not names:
            raise InvalidInput("sets names no column", field="sets", value=self.sets)
        return names

    def _ranges(self, names: tuple[str, ...]) -> Mapping[str, object]:
        if self.ranges is None:
            return {}
        if not isinstance(self.ranges, Mapping):
            accepted = "a list of ranges for each column, such as { age = [[18, 29]] }"
            raise invalid_value("ranges", accepted, repr(self.ranges)[:80])
        for column in self.ranges:
            if f"{RANGES}({column})" not in names:
                with at(f"ranges.{column}"):
                    message = f"{column} has ranges, and {RANGES}({column}) is not asked for"
                    raise InvalidInput(
                        message, field=str(column), hint="name it among columns or in a set"
                    )
        return self.ranges

    def _sets(
        self, names: tuple[str, ...], forms: Sequence[ColumnExpression]
    ) -> tuple[Attributes, ...]:
        if self.sets is None:
            count = len({form.root for form in forms})
            order = read_whole(2 if self.order is None else self.order, "order", 1, 20)
            if self.order is None:
                order = min(order, count)
            if order > count:
                message = f"order is {order}, and there are {count} columns"
                raise InvalidInput(message, field="order", value=order)
            # No table has one column twice, in two forms or at two levels.
            return tuple(
                each
                for each in list_sets(len(names), order)
                if len({forms[index].root for index in each}) == len(each)
            )
        numbers = {name: number for number, name in enumerate(names)}
        result = [tuple(sorted(numbers[name] for name in each)) for each in self.sets]
        for number, each in enumerate(result):
            if each in result[:number]:
                message = f"sets has {list(self.sets[number])} twice"
                raise InvalidInput(message, field="sets", value=self.sets[number])
        return tuple(result)

    def _weights(self, sets: tuple[Attributes, ...]) -> tuple[float, ...]:
        """Weights of squared errors, over squared magnitudes."""
        weights = _numbers_by_table(self.weights, "weights", self.sets is not None, sets)
        sizes = _numbers_by_table(self.magnitudes, "magnitudes", self.sets is not None, sets)
        return tuple(one / size**2 for one, size in zip(weights, sizes, strict=True))


def column_names(listed: object, field: str = "columns") -> tuple[str, ...]:
    if not isinstance(listed, list | tuple) or not all(isinstance(each, str) for each in listed):
        raise invalid_value(field, "a list of columns", repr(listed)[:80])
    if len(set(listed)) != len(listed):
        raise InvalidInput(f"{field} names a column twice", field=field, value=list(listed))
    return tuple(listed)


def _numbers_by_table(
    given: object, field: str, each_set: bool, sets: tuple[Attributes, ...]
) -> list[float]:
    if given is None:
        return [1.0] * len(sets)
    needed = len(sets) if each_set else max(map(len, sets))
    if not isinstance(given, list | tuple) or len(given) != needed:
        about = "for each set" if each_set else "for each number of columns"
        raise invalid_value(field, f"a list of {needed} numbers, one {about}", repr(given)[:80])
    numbers = [float(read_ranged(each, field, "above 0")) for each in given]
    return numbers if each_set else [numbers[len(each) - 1] for each in sets]
