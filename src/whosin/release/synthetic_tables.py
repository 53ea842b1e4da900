"""A synthetic table from noisy marginals: measure, fit, draw.

The budget has up to four parts: the tables of single columns, which others to count
(`synthetic_selection`), the tables that were chosen, and how far the finished table is from the
rows. Without choosing, the first three are one part, spent on the asked tables as the query
`marginals` does.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from whosin.errors import InvalidInput, invalid_value, shorten, spell
from whosin.exact import Array, read_ranged
from whosin.ledger import Ledger
from whosin.ledger.budget import Cost, describe_promise
from whosin.marginals import Measurement, Workload, cell_variances
from whosin.plain_files import remove_unlocked, remove_unlocked_folders
from whosin.release.column_expressions import GroupGrid
from whosin.release.cost import CONFIDENCE_LEVEL, Share
from whosin.release.engines.base import DIGEST_LETTERS, list_drafts
from whosin.release.marginal_workloads import NoisyTable, measured_values, spread_words
from whosin.release.queries.base import FILE_COLUMNS
from whosin.release.queries.marginals import Marginals
from whosin.release.scan import TableScan
from whosin.release.synthetic_models import (
    STEPS_PER_COUNT,
    Potentials,
    draw_model_rows,
    require_small,
    rows_known,
    table_distance,
)
from whosin.release.synthetic_selection import (
    QUALITY_SHARE,
    SELECTION_STRATEGIES,
    Adaptive,
    Counts,
    SelectionStrategy,
    SpanningTree,
    WholeNumber,
    average_counts,
    measure_table,
    take_part,
    too_many,
    total_costs,
)
from whosin.release.table import Table

MAX_VALUES = 10**8
"""Drawn rows times columns."""


@dataclass(frozen=True)
class SyntheticRows:
    """A table that was drawn, with everything that was measured for it.

    Attributes:
        numbers: for each column the numbers of the values in its domain.
        distance: the noisy mean distance of its tables from those of the rows: the share of rows
            that would have to move.
        within: how far the noise takes it, with a probability of 95%.
    """

    numbers: tuple[Array, ...]
    noisy: tuple[NoisyTable, ...]
    values: tuple[Array, ...]
    total: float
    distance: float
    within: float


@dataclass(frozen=True)
class SynthesisPlan:
    """How a table will be learned; public.

    Attributes:
        workload: the tables that it should be good at.
        tables: what is measured; with a choice, the tables of single columns.
        way: how others are chosen, if any.
        quality: the noise of the distance.
    """

    cells: GroupGrid
    workload: Workload
    tables: tuple[NoisyTable, ...]
    way: SelectionStrategy | None
    quality: WholeNumber
    rows: int

    @property
    def scan(self) -> TableScan:
        sets = {*self.workload.sets, *(each.measurement.attributes for each in self.tables)}
        if self.way is not None:
            sets |= set(self.way.counted)
        return TableScan(self.cells, tuple(sorted(sets)))

    @property
    def costs(self) -> dict[str, Cost]:
        def others(relation: str) -> Fraction:
            rounds = Fraction(0) if self.way is None else self.way.cost(relation, self.rows)
            return rounds + self.quality.cost(relation)

        return total_costs(self.tables, self.workload.sizes, self.rows, others)

    def words(self) -> str:
        tables = f"{len(self.tables)} tables" if len(self.tables) > 1 else "1 table"
        if self.way is None:
            return f"{tables}, {spread_words(self.tables)}"
        tables = f"{len(self.tables)} columns and {self.way.words()}"
        return f"{tables}, {spread_words(self.tables, self.way.spreads)}"

    def expected_distance(self, rows: int) -> float:
        """The share of the rows that the noise alone would have to move, on average over the tables
        that are measured whatever is chosen: each cell is off by E|noise|, and a row that moves is
        off in two."""
        measurements = [each.measurement for each in self.tables]
        sets = tuple(each.attributes for each in measurements if each.attributes)
        wanted = self.workload.sets if self.way is None else tuple(dict.fromkeys(sets))
        measured = Workload(self.workload.sizes, tuple(each for each in wanted if each))
        variances = [each.noise.variance for each in self.tables]
        spread = cell_variances(measured, measurements, variances)
        cells = [float(np.prod(measured.shape(each))) for each in measured.sets]
        far = [
            count * math.sqrt(2 * one / math.pi) for count, one in zip(cells, spread, strict=True)
        ]
        return min(1.0, math.fsum(far) / len(far) / (2 * rows))

    def draw(self, counts: Counts, length: int | None) -> SyntheticRows:
        """Measure, fit and draw. `counts` are exact, and used for nothing but noisy numbers."""
        measurements = [measure_table(each, counts) for each in self.tables]
        start: Potentials = {}
        if self.way is not None:
            chosen, start = self.way.measure(counts, average_counts(measurements))
            measurements += chosen
        sizes = self.workload.sizes
        total = rows_known(average_counts(measurements))
        most = MAX_VALUES // len(sizes)
        size = min(max(1, round(total)), most) if length is None else length
        given = [
            (each.measurement, result, each.noise.variance)
            for each, result in measurements
            if each.measurement.attributes
        ]
        rows = draw_model_rows(sizes, given, total, size, start)
        far, within = self._quality(counts, rows, total)
        noisy, values = zip(*measurements, strict=True)
        return SyntheticRows(rows, noisy, values, total, far, within)

    def details(self, drawn: SyntheticRows, share: Share) -> dict[str, Any]:
        """What was measured, at which cost, how good the table is, and what it allows anyone to
        believe."""
        names, sizes = self.cells.columns, self.workload.sizes
        word = "rho" if share.rho else "epsilon"
        chosen = drawn.noisy[len(self.tables) :]
        data: dict[str, Any] = {
            "method": "marginals",
            "total": round(drawn.total, 3),
            "measured": [
                described | {word: float(each.cost(sizes, share.relation, self.rows))}
                for each, described in zip(
                    drawn.noisy, measured_values(drawn.noisy, drawn.values, names), strict=True
                )
            ],
            "quality": {
                "tables": len(self.workload.sets),
                "columns": max(map(len, self.workload.sets)),
                "distance": drawn.distance,
                "within": drawn.within,
                word: float(self.quality.cost(share.relation)),
            },
            "promise": {**describe_promise(share.plan), "words": share.plan.target.words()},
        }
        if self.way is not None:
            data["chosen"] = {
                "way": self.way.name,
                "tables": [[names[at] for at in each.measurement.attributes] for each in chosen],
                word: float(self.way.choosing_cost(share.relation)),
            }
        return data

    def _quality(
        self, counts: Counts, drawn: tuple[Array, ...], total: float
    ) -> tuple[float, float]:
        far = int(self.quality.noise.draw(1)[0])
        for attributes in self.workload.sets:
            shape = self.workload.shape(attributes)
            codes = np.ravel_multi_index(tuple(drawn[each] for each in attributes), shape)
            result = np.bincount(codes, minlength=int(np.prod(shape))).reshape(shape)
            far += table_distance(counts[attributes], result * (total / len(drawn[0])))
        rows = 2 * STEPS_PER_COUNT * len(self.workload.sets) * total
        within = self.quality.noise.quantile(CONFIDENCE_LEVEL) / rows
        return min(1.0, max(0.0, far / rows)), min(1.0, within)


def plan_learning(
    table: Table,
    share: Share,
    asked: Marginals,
    columns: tuple[str, ...],
    choice: MarginalSelection | None,
    length: int | None,
) -> SynthesisPlan:
    """How to learn a table from a share of the budget.

    Args:
        asked: the tables that it should be good at.
        columns: the columns of the table, in this order.
        choice: how tables are chosen; None to measure what was asked.
    """
    cells, workload = asked.workload(table)
    if missing := [name for name in columns if name not in cells.columns]:
        raise InvalidInput(f"sets has no table with {missing[0]!r}", field="sets", value=missing[0])
    if set(cells.columns) != set(columns):
        raise InvalidInput("sets names a column that is not among columns", field="sets")
    if length is not None and length * len(columns) > MAX_VALUES:
        most = MAX_VALUES // len(columns)
        message = (
            f"length is {spell(length)}; {len(columns)} columns allow at most {spell(most)} rows"
        )
        raise InvalidInput(message, field="length", value=length)
    rows = asked.rows_counted(table)
    rest = take_part(share, 1 - QUALITY_SHARE)
    own = take_part(share, QUALITY_SHARE)
    quality = WholeNumber.within(own, len(workload.sets), rows)
    way: SelectionStrategy | None = None
    if choice is None:
        tables = _asked_tables(table, rest, asked, workload)
    else:
        if len(columns) < 2:
            message = "choose has nothing to choose from in a table of one column"
            raise InvalidInput(message, field="choose", hint="leave it out")
        way = choice.way(rest, workload, rows)
        ones = [Measurement((each,)) for each in range(len(columns))]
        tables = tuple(NoisyTable(each, way.first.noise) for each in ones)
    return SynthesisPlan(cells, workload, tables, way, quality, rows)


def _asked_tables(
    table: Table, share: Share, asked: Marginals, workload: Workload
) -> tuple[NoisyTable, ...]:
    estimate = asked.estimate_cost(table, share)
    assert estimate.details is not None
    tables: tuple[NoisyTable, ...] = estimate.details["noisy"]
    sets = [each.measurement.attributes for each in tables]
    require_small(workload.sizes, sets, "columns" if asked.sets is None else "sets")
    return tables


@dataclass(frozen=True)
class MarginalSelection:
    """What was said about choosing.

    Attributes:
        name: the name of the way; None for the best.
        choosing: the part of the budget for it; None for the way's own.
    """

    name: str | None
    choosing: Fraction | None

    @classmethod
    def read(cls, choose: object, choosing: object) -> MarginalSelection | None:
        """None where nothing is chosen."""
        if choose is False:
            if choosing is not None:
                hint = "add choose = true, or leave it out"
                message = "choosing has no meaning without choose"
                raise InvalidInput(message, field="choosing", value=choosing, hint=hint)
            return None
        if choose is not True and choose not in tuple(SELECTION_STRATEGIES):
            names = ", ".join(f'"{name}"' for name in SELECTION_STRATEGIES)
            raise invalid_value("choose", f"true, false or one of {names}", repr(choose)[:80])
        name = None if choose is True else str(choose)
        if choosing is None:
            return cls(name, None)
        result = read_ranged(choosing, "choosing", "above 0")
        if result >= 1:
            message = (
                f"choosing is {shorten(repr(choosing)[:80])}, and must leave a part of the budget "
                "to measure what was chosen"
            )
            hint = "give a number below 1"
            raise InvalidInput(message, field="choosing", value=choosing, hint=hint)
        return cls(name, Fraction(result))

    def way(self, share: Share, workload: Workload, rows: int) -> SelectionStrategy:
        """The way that was named; by default rounds, unless there are too many tables for them."""
        default = SpanningTree if too_many(workload) else Adaptive
        kind = default if self.name is None else SELECTION_STRATEGIES[self.name]
        choosing = kind.choosing if self.choosing is None else self.choosing
        return kind.within(share, workload, rows, choosing)


def draft_owner(ledger: Ledger, dataset: str) -> str:
    """What tells the drafts of a dataset in a ledger from those of others."""
    return hashlib.sha256(f"{ledger.name}\0{dataset}".encode()).hexdigest()[:16]


def remove_drafts(ledger: Ledger, dataset: str, folder: Path) -> None:
    """Remove the drafts of synthetic tables that killed processes left in a folder, unless the
    ledger has stored them: each is a second table for one debit, and never published."""
    left = list_drafts(folder, draft_owner(ledger, dataset))
    if not left:
        return
    stored = {each[:DIGEST_LETTERS] for each in _stored_digests(ledger, dataset)}
    unstored = [path for path, digest in left.items() if digest not in stored]
    remove_unlocked(unstored)
    remove_unlocked_folders(unstored)


def _stored_digests(ledger: Ledger, dataset: str) -> set[str]:
    result = set()
    for answer in ledger.answers(dataset, "").values():
        if isinstance(answer, dict) and answer.get("columns") == FILE_COLUMNS:
            result.add(str(answer["rows"][0][FILE_COLUMNS.index("digest")]))
    return result
