"""The answer of many tables, from what was measured.

Contract: from here on no row plays a part; everything is arithmetic on noisy numbers and on public
ones. Sums of cells, and their whole version, come from the same estimate as the cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from whosin.exact import Array
from whosin.marginals import (
    Measurement,
    Radii,
    Workload,
    cell_variances,
    estimate,
    radii,
    sum_variances,
    summed,
    tables_of,
    whole_tables,
)
from whosin.marginals.estimation import table_of
from whosin.marginals.workload import Attributes
from whosin.release.many_tables.asked import AskedTables
from whosin.release.many_tables.noise import NoisyTable
from whosin.release.prices.pricing import CONFIDENCE

DIGITS = 6
"""Decimals of an estimate."""
MOST_LISTED = 1_000
"""Sums of a table whose standard errors are listed one by one."""
HEADINGS = ("value", "low", "high", "all_low", "all_high", "whole")


def table_errors(
    asked: AskedTables, measurements: Sequence[Measurement], variances: Sequence[float]
) -> list[dict[str, Any]]:
    """For each table its columns and the standard error of a cell. Sums are not equally exact: for
    them it is the root of the mean square, and a list where they are few."""
    means = cell_variances(asked.workload, measurements, variances)
    sums = sum_variances(asked.workload, measurements, variances)
    result = []
    for number, columns in enumerate(asked.names):
        one: dict[str, Any] = {"columns": columns, "standard_error": float(means[number] ** 0.5)}
        if number in sums:
            each = np.sqrt(sums[number]).ravel()
            one |= {"least_error": float(each.min()), "largest_error": float(each.max())}
            if each.size <= MOST_LISTED:
                one["standard_errors"] = each.tolist()
        result.append(one)
    return result


def tables_answer(
    asked: AskedTables,
    noisy: Sequence[NoisyTable],
    values: Sequence[Array],
    errors: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Everything that may be shown, as JSON data."""
    workload = asked.workload
    measurements = [each.measurement for each in noisy]
    variances = [each.variance for each in noisy]
    residuals = estimate(workload, measurements, variances, values)
    tables = tables_of(workload, residuals)
    reaches = radii(
        workload, measurements, variances, lambda number, shape: noisy[number].draw(shape)
    )
    wholes = _wholes(workload, measurements, variances, residuals)
    rows: list[list[Any]] = []
    described = []
    for number, forms in enumerate(asked.forms):
        title = ", ".join(form.name for form in forms) or "total"
        reach, table = reaches[number], tables[number]
        numbers = _cells(table.ravel(), reach, wholes[number].ravel())
        for label, cell in zip(product(*(form.labels for form in forms)), numbers, strict=True):
            rows.append([title, ", ".join(map(str, label)), *cell])
        described.append(
            {
                **errors[number],
                "cells": int(table.size),
                "within": float(np.max(reach.cell)),
                "all_within": float(np.max(reach.table)),
                "adds_up": all(form.cells is not None for form in forms),
            }
        )
    details = {
        "confidence": CONFIDENCE,
        "domains": asked.labels(),
        "tables": described,
        "measured": [
            {**each.to_dict(asked.cells.columns), "values": result.tolist()}
            for each, result in zip(noisy, values, strict=True)
        ],
    }
    if sums := asked.sums():
        details["sums"] = sums
    return {"columns": ["table", "cell", *HEADINGS], "rows": rows, "details": details}


def _wholes(
    workload: Workload,
    measurements: Sequence[Measurement],
    variances: Sequence[float],
    residuals: dict[Attributes, Array],
) -> list[Array]:
    """The whole version of each table: sums are those of the whole cells."""
    sets = tuple(dict.fromkeys(workload.sets))
    plain = Workload(workload.sizes, sets)
    spread = cell_variances(plain, measurements, variances)
    cells = [table_of(plain, residuals, each) for each in sets]
    whole = dict(zip(sets, whole_tables(cells, spread.tolist(), float(residuals[()])), strict=True))
    return [
        summed(whole[each], sums) for each, sums in zip(workload.sets, workload.sums, strict=True)
    ]


def _cells(values: Array, reach: Radii, wholes: Array) -> list[list[Any]]:
    """The numbers of each cell, as `HEADINGS` names them."""
    cell, table = np.ravel(reach.cell), np.ravel(reach.table)
    columns = [values + side for side in (0.0, -cell, cell, -table, table)]
    rounded = [np.round(each, DIGITS).tolist() for each in columns]
    return [list(each) for each in zip(*rounded, wholes.tolist(), strict=True)]
