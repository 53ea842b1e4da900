"""A learned synthetic table: what is measured for it, and how it is made.

The budget has up to four parts: the tables of single columns, which pairs to count, the tables of
those pairs, and how far the finished table is from the rows. Without choosing, the first three are
one part, spent on the asked tables as `marginals` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, ranged
from whosin.ledger.charge import Cost, promise_of
from whosin.marginals import Measurement, Workload
from whosin.marginals.workload import Attributes
from whosin.noise import noisy_max
from whosin.release.cells import Cells
from whosin.release.learned import prices
from whosin.release.learned.choosing import rounds, spanning_tree
from whosin.release.learned.distances import STEPS, distance, independent
from whosin.release.learned.models import Noisy, draw, require_small
from whosin.release.learned.prices import Choices, LearningBudget, WholeNumber
from whosin.release.pricing import Share
from whosin.release.queries.marginals import Marginals
from whosin.release.table import Table
from whosin.release.table_noise import NoisyTable
from whosin.release.table_scan import TableScan

MOST_VALUES = 10**8
"""LearnedRows rows times columns."""
Counts = Mapping[Attributes, Array]


@dataclass(frozen=True)
class LearnedRows:
    """A table that was drawn, with everything that was measured for it.

    Attributes:
        places: for each column the places of the values in its domain.
        distance: the noisy mean distance of its tables from those of the rows: the share of rows
            that would have to move.
        within: how far the noise takes it, with a probability of 95%.
    """

    places: tuple[Array, ...]
    noisy: tuple[NoisyTable, ...]
    values: tuple[Array, ...]
    total: float
    distance: float
    within: float


@dataclass(frozen=True)
class Learning:
    """How a table will be learned; public.

    Attributes:
        workload: the tables that it should be good at.
        tables: what is measured; with a choice, the tables of single columns.
        pairs: the noise of a pair that is chosen.
        choices: the noise of the choices, where there are any.
        quality: the noise of the distance.
    """

    cells: Cells
    workload: Workload
    tables: tuple[NoisyTable, ...]
    pairs: NoisyTable | None
    choices: Choices | None
    quality: WholeNumber
    rows: int

    @property
    def scan(self) -> TableScan:
        """Everything that is counted."""
        sets = {*self.workload.sets, *(each.measurement.attributes for each in self.tables)}
        if self.pairs is not None:
            sets |= set(combinations(range(len(self.cells.columns)), 2))
        return TableScan(self.cells, tuple(sorted(sets)))

    @property
    def costs(self) -> dict[str, Cost]:
        """The price of everything."""
        tables = list(self.tables)
        if self.pairs is not None:
            tables += [self.pairs] * (len(self.cells.columns) - 1)
        others = [each for each in (self.choices, self.quality) if each is not None]
        return prices.total_costs(tables, self.workload.sizes, self.rows, *others)

    def words(self) -> str:
        """The noise, in words."""
        gaussian = self.tables[0].kind == "gaussian"
        kind = "Gaussian, σ" if gaussian else "Laplace, scale"
        measured = [*self.tables, *([self.pairs] if self.pairs else [])]
        widths = sorted({float(each.width) ** (0.5 if gaussian else 1) for each in measured})
        about = " to ".join(f"{width:.4g}" for width in dict.fromkeys((widths[0], widths[-1])))
        tables = f"{len(self.tables)} tables" if len(self.tables) > 1 else "1 table"
        if self.pairs is not None:
            count = len(self.cells.columns) - 1
            chosen = f"{count} chosen pairs" if count > 1 else "1 pair"
            tables = f"{len(self.tables)} columns and {chosen}"
        return f"{tables}, {kind} {about}"

    def draw(self, counts: Counts, length: int | None) -> LearnedRows:
        """Measure, fit and draw. `counts` are exact, and used for nothing but noisy numbers."""
        noisy = list(self.tables)
        values = [_measured(each, counts) for each in noisy]
        if self.pairs is not None:
            pairs = self._pairs(counts, values)
            noisy += pairs
            values += [_measured(each, counts) for each in pairs]
        sizes = self.workload.sizes
        total = _total(noisy, values)
        most = MOST_VALUES // len(sizes)
        size = min(max(1, round(total)), most) if length is None else length
        given = [
            Noisy.of(each.measurement, result, each.variance)
            for each, result in zip(noisy, values, strict=True)
            if each.measurement.attributes
        ]
        places = draw(sizes, given, total, size)
        far, within = self._quality(counts, places, total)
        return LearnedRows(places, tuple(noisy), tuple(values), total, far, within)

    def details(self, drawn: LearnedRows, share: Share) -> dict[str, Any]:
        """What was measured, at which price, how good the table is, and what it allows anyone to
        believe."""
        names, sizes = self.cells.columns, self.workload.sizes
        word = "rho" if share.rho else "epsilon"
        chosen = drawn.noisy[len(self.tables) :]
        data: dict[str, Any] = {
            "method": "marginals",
            "total": round(drawn.total, 3),
            "measured": [
                {
                    **each.to_dict(names),
                    word: float(each.cost(sizes, share.relation, self.rows)),
                    "values": result.tolist(),
                }
                for each, result in zip(drawn.noisy, drawn.values, strict=True)
            ],
            "quality": {
                "tables": len(self.workload.sets),
                "columns": max(map(len, self.workload.sets)),
                "distance": drawn.distance,
                "within": drawn.within,
                word: float(self.quality.cost(share.relation)),
            },
            "promise": {**promise_of(share.plan), "words": share.plan.target.words()},
        }
        if self.pairs is not None:
            pairs = [[names[each] for each in one.measurement.attributes] for one in chosen]
            cost = 0 if self.choices is None else self.choices.cost(share.relation)
            data["chosen"] = {"pairs": pairs, word: float(cost)}
        return data

    def _pairs(self, counts: Counts, margins: list[Array]) -> list[NoisyTable]:
        """The chosen pairs."""
        assert self.pairs is not None
        total = _total(self.tables, margins)
        scores = {
            (one, other): distance(
                counts[one, other], independent([margins[one], margins[other]], total)
            )
            for one, other in combinations(range(len(margins)), 2)
        }
        chosen = spanning_tree(len(margins), scores, self._choose())
        pairs = self.pairs
        return [NoisyTable(Measurement(each), pairs.kind, pairs.width) for each in chosen]

    def _choose(self) -> Callable[[Array], int]:
        choices = self.choices
        if choices is None:
            return lambda scores: 0  # there is but one pair
        return lambda scores: noisy_max(scores, choices.scale, gumbel=choices.gaussian)

    def _quality(
        self, counts: Counts, places: tuple[Array, ...], total: float
    ) -> tuple[float, float]:
        far = self.quality.draw()
        for attributes in self.workload.sets:
            shape = self.workload.shape(attributes)
            codes = np.ravel_multi_index(tuple(places[each] for each in attributes), shape)
            result = np.bincount(codes, minlength=int(np.prod(shape))).reshape(shape)
            far += distance(counts[attributes], result * (total / len(places[0])))
        rows = 2 * STEPS * len(self.workload.sets) * total
        return min(1.0, max(0.0, far / rows)), min(1.0, self.quality.reach / rows)


def learning(
    table: Table,
    share: Share,
    asked: Marginals,
    columns: tuple[str, ...],
    choosing: Fraction | None,
    length: int | None,
) -> Learning:
    """How to learn a table from a share of the budget.

    Args:
        asked: the tables that it should be good at.
        columns: of the table, in this order.
        choosing: the part of the budget for choosing pairs; None to measure what was asked.
    """
    cells, workload = asked.workload(table)
    if missing := [name for name in columns if name not in cells.columns]:
        raise InvalidInput("sets", "with every column in one of them", f"none with {missing[0]!r}")
    if set(cells.columns) != set(columns):
        raise InvalidInput("sets", "lists of the columns of the table", "another column")
    if length is not None and length * len(columns) > MOST_VALUES:
        accepted = f"at most {MOST_VALUES // len(columns):,} rows of {len(columns)} columns"
        raise InvalidInput("length", accepted, f"{length:,}")
    rows = asked.rows_counted(table)
    if choosing is None:
        return _as_asked(table, share, asked, cells, workload, rows)
    count = len(columns)
    if count < 2:
        raise InvalidInput("choose", "false for a table of one column", "true")
    budget = LearningBudget.split(share, choosing if rounds(count) else Fraction(0))
    kind, first = prices.equal_noise(budget.first, count, 1, rows)
    kind, later = prices.equal_noise(budget.later, count - 1, 2, rows)
    choices = budget.choosing and Choices.within(budget.choosing, rounds(count), rows)
    quality = WholeNumber.within(budget.quality, len(workload.sets), rows)
    prices.require_drawable(kind, first, later, quality.width)
    ones = tuple(NoisyTable(Measurement((each,)), kind, first) for each in range(count))
    pair = NoisyTable(Measurement((0, 1)), kind, later)
    return Learning(cells, workload, ones, pair, choices or None, quality, rows)


def _as_asked(
    table: Table, share: Share, asked: Marginals, cells: Cells, workload: Workload, rows: int
) -> Learning:
    offered = asked.offer(table, prices.part(share, 1 - prices.QUALITY))
    assert offered.details is not None
    tables: tuple[NoisyTable, ...] = offered.details["noisy"]
    sets = [each.measurement.attributes for each in tables]
    require_small(workload.sizes, sets, "columns" if asked.sets is None else "sets")
    own = prices.part(share, prices.QUALITY)
    quality = WholeNumber.within(own, len(workload.sets), rows)
    prices.require_drawable(tables[0].kind, quality.width)
    return Learning(cells, workload, tables, None, None, quality, rows)


def read_choosing(choose: object, choosing: object) -> Fraction | None:
    """The part of the budget for choosing; None where nothing is chosen."""
    if not isinstance(choose, bool):
        raise InvalidInput("choose", "true or false", repr(choose)[:80])
    if not choose:
        if choosing is not None:
            raise InvalidInput("choosing", "left out without choose = true", repr(choosing)[:80])
        return None
    if choosing is None:
        return prices.CHOOSING
    result = ranged(choosing, "choosing", "above 0")
    if result >= 1:
        accepted = "below 1: the rest of the budget measures what was chosen"
        raise InvalidInput("choosing", accepted, repr(choosing)[:80])
    return Fraction(result)


def _measured(noisy: NoisyTable, counts: Counts) -> Array:
    exact = noisy.measurement.of_counts(counts[noisy.measurement.attributes])
    return np.asarray(exact + noisy.draw(exact.shape))


def _total(noisy: list[NoisyTable] | tuple[NoisyTable, ...], values: list[Array]) -> float:
    """The number of rows, from the noisy tables of counts, the less noisy ones counting more."""
    result, weights = [1.0], [1e-300]
    for each, table in zip(noisy, values, strict=True):
        if not each.measurement.differences:
            result.append(float(table.sum()))
            weights.append(1 / (each.variance * table.size))
    return max(1.0, float(np.average(result, weights=weights)))
