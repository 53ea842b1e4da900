"""Running totals: how many people in each period and so far, under one budget for all periods.

The first question of a stream pays for its whole horizon. Each period is then a step: a debit of
nothing and an answer of its own, under names that follow from the question, so that a step is drawn
once, whoever asks and however often. What is stored are the noisy measurements (`noise.cumulative`,
with the proof); counts and totals are computed from those of all steps so far.

A person counts in the first periods that the bound allows, each at least `min_gap` after the one
before. Which ones these are follows from the rows up to each period and from no chance, so that
later files, which must hold the rows of all periods before, count the same person in the same ones.

What is paid covers a person who moves one column of C̃ for each period that counts. In files that
do not agree, someone may be counted in another period each time a step is drawn, and then moves the
largest entry of C̃ in every step. So a step keeps sealed digests of who was in which groups of which
period, and the curator's look says before the next one where they have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from whosin.calibration import Plan
from whosin.errors import InvalidInput, UnknownName, read_whole
from whosin.exact import Array, format_figures
from whosin.ledger import Ledger, encoding
from whosin.ledger.budget import COUNTED_NOTION, NEIGHBOUR_RELATIONS, Cost, Spend
from whosin.ledger.registry import STEP_KEY
from whosin.noise import GaussianNoise
from whosin.noise.cumulative import MAX_PERIODS, CumulativeNoise, fresh_factor
from whosin.release.column_expressions import GroupGrid, free_column_name
from whosin.release.conditions import canonical_question
from whosin.release.contribution_bounds import (
    UNIT_COLUMN,
    ContributionBounds,
    ContributionPolicy,
    CostWarning,
    eligible_rows,
    owner_column,
)
from whosin.release.cost import (
    CONFIDENCE_LEVEL,
    LESS_NOISE,
    NOISY_LEVEL,
    NORMAL_QUANTILE,
    CostEstimate,
    Share,
)
from whosin.release.domains import CALENDAR_UNITS
from whosin.release.engines import DuckDB
from whosin.release.engines.base import Progress
from whosin.release.queries.base import GroupedQuery
from whosin.release.row_values import is_usable
from whosin.release.table import Table, describe_declarations, row_text

MAX_RETURNS = 60
"""Periods in which a person may count where they have to be apart: each is a stage of the scan."""
TOTAL_COLUMNS = ("value", "low", "high", "in_period", "in_period_low", "in_period_high")
MEASURED_COLUMN = "measured"


@dataclass(frozen=True)
class Stream:
    """The noise of a stream, and which step of it is measured.

    Attributes:
        matrix: C̃.
        noise: of each measurement.
        step: the number of the period, from 1.
    """

    matrix: CumulativeNoise
    noise: GaussianNoise
    step: int = 0

    @property
    def sigma(self) -> float:
        return self.noise.spread

    def radii(self, spreads: Array) -> Array:
        """Half of the 95% interval of numbers with these spreads."""
        return NormalDist().inv_cdf((1 + CONFIDENCE_LEVEL) / 2) * self.sigma * spreads


@dataclass(frozen=True, kw_only=True)
class Running(GroupedQuery):
    """How many privacy units have a row in each period, and in all periods so far.

    Args:
        column: the periods, in their order, such as month(visit); its domain is the horizon.
        upto: the last period to count, such as 2026-05; by default the last one that is over, by
            this machine's clock.
        max_periods: in how many periods of the horizon a privacy unit counts, at most.
        min_gap: how many periods lie at least between the beginnings of two of them.
    """

    kind: ClassVar[str] = "running"
    sums: ClassVar[bool] = True
    of_things: ClassVar[bool] = True
    further_numbers: ClassVar[tuple[str, ...]] = TOTAL_COLUMNS[3:]
    no_width: ClassVar[tuple[str, str]] = (
        "each period has a width of its own",
        "leave it out, and see the widths in the dry run",
    )
    column: str
    upto: str | None = None
    max_periods: int = 1
    min_gap: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        read_whole(self.max_periods, "max_periods", 1, MAX_PERIODS)
        read_whole(self.min_gap, "min_gap", 1, MAX_PERIODS)

    def cells(self, table: Table) -> GroupGrid:
        by = GroupGrid.of(table, self.by).columns
        GroupGrid.of(table, (self.column,), "column")
        return GroupGrid.of(table, (self.column, *by))

    def group_count(self, table: Table) -> int:
        return GroupGrid.of(table, self.by).count * len(self.periods(table))

    def periods(self, table: Table) -> tuple[str | int, ...]:
        """The periods of the horizon."""
        domain = GroupGrid.of(table, (self.column,), "column").domains[0]
        labels = tuple(domain.labels)[: -1 if domain.outside is None else None]
        if not 2 <= len(labels) <= MAX_PERIODS:
            raise InvalidInput(
                f"column {self.column} has {len(labels)} periods, and running totals have from 2 "
                f"to {MAX_PERIODS}",
                field="column",
                value=self.column,
            )
        return labels

    def last_step(self, table: Table) -> int:
        """The number of the last period to count."""
        labels = self.periods(table)
        names = [str(each) for each in labels]
        if self.upto is not None:
            if str(self.upto) not in names:
                raise UnknownName("upto", str(self.upto), names)
            step = names.index(str(self.upto)) + 1
        today = encoding.utc_now().date()
        past = {_count_past(today, name, names) for name in CALENDAR_UNITS} - {None}
        if self.upto is not None:
            if len(past) == 1 and step > max(each or 0 for each in past):
                raise InvalidInput(
                    f"{self.upto} is not over yet, and its step is drawn only once",
                    field="upto",
                    value=self.upto,
                    hint="leave upto out: the last period that is over counts",
                )
            return step
        if len(past) != 1:
            raise InvalidInput(
                "upto is missing: which period is the last one to count",
                field="upto",
                hint=f"give it, such as upto = {names[0]!r}",
            )
        (number,) = past
        assert number is not None
        if number == 0:
            raise InvalidInput(
                f"no period of {self.column} is over yet: the first one is {names[0]}",
                field="upto",
            )
        return number

    def paying_part(self, table: Table) -> None:
        """Everyone pays: who moves to another part between two files is in both streams, and only
        their first steps are paid for."""

    @property
    def participation(self) -> tuple[int, int]:
        return self.max_periods, self.min_gap

    def bounds(self, table: Table) -> ContributionBounds:
        """How many cells of one period someone may be in."""
        cells = GroupGrid.of(table, self.by)
        groups = min(table.bound("max_groups", self.max_groups), cells.most)
        return ContributionBounds(1, groups if cells.columns else 1)

    def times(self, table: Table) -> int:
        """In how many periods someone counts at most: a row that is one person is in one."""
        return 1 if table.one_row else self.max_periods

    def contribution_policy(self, table: Table) -> ContributionPolicy:
        by = GroupGrid.of(table, self.by)
        plain = replace(self, by=self.by)
        policy = super(Running, plain).contribution_policy(table)
        return replace(
            policy,
            max_rows_per_group=None,
            max_groups=policy.max_groups if by.columns else None,
            others={name: each for name, each in policy.others.items() if name != self.column},
            max_periods=self.times(table),
            min_gap=self.min_gap,
        )

    def cautions(self, table: Table) -> tuple[CostWarning, ...]:
        return self.caution(table, "max_groups", GroupGrid.of(table, self.by).columns)

    def estimate_cost(self, table: Table, share: Share) -> CostEstimate:
        if not share.rho:
            hint = 'say noise = "gaussian"' if share.plan.delta else "plan with a delta"
            raise InvalidInput(
                "running totals have Gaussian noise, which needs a plan with a delta and "
                'noise = "gaussian"',
                field="noise",
                hint=hint,
            )
        square = self._square(table, self._matrix(table), share.relation)
        noise = GaussianNoise.at_rho(square, share.rho).check_drawable(LESS_NOISE)
        return self._estimate(table, share, noise)

    def _matrix(self, table: Table) -> CumulativeNoise:
        periods = len(self.periods(table))
        return CumulativeNoise.choose(periods, self.times(table), self.min_gap)

    def _square(self, table: Table, matrix: CumulativeNoise, relation: str) -> int:
        """The squared sensitivity. Where someone is in g cells of a period, the squares of g cells
        are no more than g times those of someone who is in one of them whenever it counts."""
        square = matrix.squared_sensitivity(self.times(table), self.min_gap)
        return square * self.bounds(table).max_groups * (2 if relation == "replace" else 1)

    def _estimate(self, table: Table, share: Share, noise: GaussianNoise) -> CostEstimate:
        matrix, cells = self._matrix(table), self.cells(table)
        self.last_step(table)
        times, returns = self.times(table), min(self.max_periods, matrix.periods)
        if self.min_gap > 1 and -(-matrix.periods // self.min_gap) > MAX_RETURNS < returns:
            raise InvalidInput(
                f"max_periods is {self.max_periods}; with min_gap at most {MAX_RETURNS} are kept "
                "apart",
                field="max_periods",
                value=self.max_periods,
            )
        stream = Stream(matrix, noise)
        expression = self.plan_scan(table, type(self).exact, cells)
        costs = {
            relation: Cost.gaussian(noise.cost(self._square(table, matrix, relation)))
            for relation in NEIGHBOUR_RELATIONS
        }
        within = float(stream.radii(matrix.total_spreads)[-1])
        factor = matrix.error_factor(times, self.min_gap)
        fresh = fresh_factor(matrix.periods, times, self.min_gap)
        words = (
            f"Gaussian over {matrix.periods} periods, σ "
            f"{format_figures(stream.sigma * float(matrix.total_spreads[-1]), 4)} on the last "
            f"total: {format_figures(factor, 3)} times that of one count, and "
            f"{format_figures(fresh, 3)} times with fresh noise"
        )
        return CostEstimate(
            self,
            share,
            Spend(self.describe_question(table) | self._stream_data(table, stream), costs),
            words,
            within / NORMAL_QUANTILE * np.sqrt(2 / np.pi),
            within,
            details=stream,
            expression=expression,
        )

    def fixed_size(self, table: Table, estimate: CostEstimate) -> tuple[float | None, str]:
        assert estimate.within is not None
        return float(np.ceil(estimate.within / (NOISY_LEVEL * NORMAL_QUANTILE))), "people"

    def describe_question(self, table: Table) -> dict[str, Any]:
        """What is asked of the stream: the last period to count, and the name, are no part."""
        asked = super().describe_question(table)
        return {key: value for key, value in asked.items() if key not in ("name", "upto")}

    def _stream_data(self, table: Table, stream: Stream) -> dict[str, Any]:
        listed = [str(each) for each in self.periods(table)]
        return {
            STEP_KEY: 1,
            "periods": listed,
            "coefficients": list(stream.matrix.coefficients),
            "variance": str(stream.noise.width),
        }

    def stream_request(self, table: Table) -> str:
        """The name of a stream in the ledger: of what is asked of which periods and groups. Where
        the table declares its columns otherwise, people may count in other periods: it is another
        stream."""
        grid = self.cells(table)
        labels = [[str(each) for each in domain.labels] for domain in grid.domains]
        asked = {**canonical_question(self.describe_question(table)), COUNTED_NOTION: None}
        bounds = [*vars(self.bounds(table)).values(), self.times(table), self.min_gap]
        declared = describe_declarations(table, self.names(table) & table.domains.keys())
        text = encoding.canonical_json([asked, labels, bounds, declared])
        return f"running-{encoding.digest_text(text)[:24]}"

    def continue_stream(self, table: Table, plan: Plan, paid: Mapping[str, Any]) -> CostEstimate:
        """The estimate of a stream that was paid for: with its noise, and nothing to pay.

        Args:
            paid: the debit of its first step.
        """
        variance = Fraction(paid["what"]["variance"])
        share = Share(plan, Fraction(0), Fraction(0))
        made = self._estimate(table, share, GaussianNoise(variance))
        return replace(made, spend=replace(made.spend, costs=_nothing()), first=made.spend)

    def steps(self, table: Table, estimate: CostEstimate) -> list[CostEstimate]:
        """The estimates of single steps, each with its request."""
        home, asked = self.stream_request(table), self.describe_question(table)
        names = [str(each) for each in self.periods(table)]
        first, result = estimate.first or estimate.spend, []
        for step in range(1, self.last_step(table) + 1):
            what = {**asked, STEP_KEY: step, "period": names[step - 1]}
            spend = first if step == 1 else Spend(what, _nothing())
            details = replace(estimate.details, step=step)
            named = {"request": f"{home}/{step}", "spend": spend, "details": details}
            result.append(replace(estimate, **named))
        return result

    def answer(self, table: Table, estimate: CostEstimate, progress: Progress | None = None) -> Any:
        """The measurement of one step; steps of one release share one scan."""
        cells, stream = self.cells(table), estimate.details
        scanned = estimate.scanned if estimate.scanned is not None else {}
        if id(estimate.expression) not in scanned:
            found = table.engine.run(estimate.expression, progress)
            (counts,) = cells.dense(found, ["people"])
            shape = len(cells.domains[0].labels), -1
            measured = stream.matrix.measure(counts.reshape(shape)[: stream.matrix.periods])
            prints = self.period_prints(table) if estimate.seal is not None else []
            scanned[id(estimate.expression)] = measured, prints
        measured, prints = scanned[id(estimate.expression)]
        exact, sealed = measured[stream.step - 1], {}
        if estimate.seal is not None and prints:
            sealed["sealed"] = _seal_prints(prints, estimate.request, stream.step, estimate.seal)
        noisy = (exact + stream.noise.draw(len(exact))).tolist()
        by = GroupGrid.of(table, self.by)
        rows = [[*label, value] for label, value in zip(by.labels(), noisy, strict=True)]
        return {
            "columns": [*by.headings(MEASURED_COLUMN, *TOTAL_COLUMNS), MEASURED_COLUMN],
            "rows": rows,
            **sealed,
        }

    def period_prints(self, table: Table) -> list[str]:
        """For each period up to the last one to count a digest of who was in which of its groups,
        which is all that its counts depend on. Never shown; none where the engine makes none."""
        if not isinstance(table.engine, DuckDB):
            return []
        cells, rows = self.cells(table), eligible_rows(table, self.where)
        if table.by_row:
            names = sorted(name for name in rows.columns if is_usable(rows[name].type()))
            texts = cells.coded(rows, text=row_text(rows, names))
        else:
            pairs = cells.coded(rows, **owner_column(rows, table)).distinct()
            texts = pairs.mutate(text=row_text(pairs, [UNIT_COLUMN, *cells.names]))
        found = table.engine.digest_texts(texts.select("text", cells.names[0]), cells.names[0])
        return [str(found.get(number)) for number in range(self.last_step(table))]

    def list_changed_periods(
        self, table: Table, stored: Mapping[str, Any], seal: Callable[[str], str]
    ) -> list[str]:
        """The periods whose people or groups differ from those that earlier steps were drawn from,
        where a further step would be drawn. Never shown but to curators.

        Args:
            stored: the answers of the steps so far, by request.
        """
        home, last = self.stream_request(table), self.last_step(table)
        kept = {
            step: answer["sealed"]
            for step in range(1, last + 1)
            if "sealed" in (answer := stored.get(f"{home}/{step}", {}))
        }
        if not kept or last in kept or not (prints := self.period_prints(table)):
            return []
        now = {step: _seal_prints(prints, f"{home}/{step}", step, seal) for step in kept}
        if now[max(kept)][0] == kept[max(kept)][0]:
            return []
        names = [str(each) for each in self.periods(table)[: max(kept)]]
        return [names[step - 1] for step in kept if now[step][1] != kept[step][1]] or names

    def list_missing_periods(self, table: Table) -> list[str]:
        """The periods up to the last one to count that no row is in. Never shown but to curators:
        a file that lost the rows of a period would be counted as though nobody had been there."""
        grid = GroupGrid.of(table, (self.column,), "column")
        rows = grid.coded(eligible_rows(table, None)).select(grid.names[0]).distinct()
        found = {each[grid.names[0]] for each in table.engine.run(rows).to_pylist()}
        asked = self.periods(table)[: self.last_step(table)]
        return [str(each) for number, each in enumerate(asked) if number not in found]

    def exact(self, table: Table, cells: GroupGrid) -> Any:
        """How many people each period and group has. Never shown."""
        rows = eligible_rows(table, self.where)
        pairs = cells.coded(rows, **owner_column(rows, table))
        period = cells.names[0]
        pairs = pairs.filter(pairs[period] < len(self.periods(table)))
        if not table.one_row:
            pairs = self._participations(
                self._cells_of_period(pairs.distinct(), table, cells), cells
            )
        return pairs.aggregate(by=cells.keys, people=pairs.count())

    def _cells_of_period(self, pairs: Any, table: Table, cells: GroupGrid) -> Any:
        """A few cells of each period, the first ones in their order: no chance, which would differ
        between steps."""
        import ibis

        groups, others = self.bounds(table).max_groups, cells.names[1:]
        if not others or groups >= GroupGrid.of(table, self.by).count:
            return pairs
        home = [UNIT_COLUMN, *cells.question, cells.names[0]]
        window = ibis.window(group_by=home, order_by=list(others))
        ranked = pairs.mutate(cell_rank=ibis.row_number().over(window))
        return ranked.filter(ranked["cell_rank"] < groups).drop("cell_rank")

    def _participations(self, pairs: Any, cells: GroupGrid) -> Any:
        """The periods in which someone counts: the first, and then each first one that is far
        enough from the one before."""
        import ibis

        home, period = [UNIT_COLUMN, *cells.question], cells.names[0]
        horizon = len(cells.domains[0].labels)
        if self.min_gap == 1:
            if self.max_periods >= horizon:
                return pairs
            window = ibis.window(group_by=home, order_by=period)
            ranked = pairs.mutate(place=ibis.dense_rank().over(window))
            return ranked.filter(ranked["place"] < self.max_periods).drop("place")
        names: list[str] = []
        for number in range(min(self.max_periods, -(-horizon // self.min_gap))):
            column = pairs[period]
            if names:
                column = (column >= pairs[names[-1]] + self.min_gap).ifelse(column, ibis.null())
            names.append(f"counted_{number}")
            own = column.cast("int64").min().over(ibis.window(group_by=home))
            pairs = pairs.mutate(**{names[-1]: own})
        kept = [(pairs[period] == pairs[name]).fill_null(False) for name in names]
        return pairs.filter(ibis.or_(*kept)).drop(*names)


def find_missing_periods(table: Table, queries: Sequence[Any]) -> list[tuple[str, str]]:
    """The titles of running totals, each with the periods that no row is in. For curators alone."""
    asked = (query for query in queries if isinstance(query, Running))
    pairs = ((each, each.list_missing_periods(each.restrict_table(table))) for each in asked)
    return [(query.title, ", ".join(periods)) for query, periods in pairs if periods]


def find_changed_periods(
    table: Table, queries: Sequence[Any], ledger: Ledger | None, dataset: str
) -> list[tuple[str, str]]:
    """The titles of running totals whose next steps would be drawn from other rows than the steps
    before, each with the periods that changed. For curators alone."""
    registered = None if ledger is None else ledger.budget_state(dataset).registered
    found = list[tuple[str, str]]()
    if ledger is None or registered is None:
        return found
    for query in (each for each in queries if isinstance(each, Running)):
        asked = query.restrict_table(table)
        stored = ledger.answers(dataset, f"{query.stream_request(asked)}/")
        if changed := query.list_changed_periods(asked, stored, registered.seal_rows):
            found.append((query.title, ", ".join(changed)))
    return found


def _seal_prints(
    prints: Sequence[str], request: str, step: int, seal: Callable[[str], str]
) -> list[str]:
    """What a step keeps of the rows it was drawn from: of all periods so far, and of its own. Its
    request is in both, so that equal rows are not seen to be equal elsewhere."""
    held = prints[:step], prints[step - 1]
    return [seal(encoding.canonical_json([request, each])) for each in held]


def _nothing() -> dict[str, Cost]:
    return dict.fromkeys(NEIGHBOUR_RELATIONS, Cost(0, 0))


def _count_past(today: date, unit: str, names: Sequence[str]) -> int | None:
    """How many periods are over before a day, where they are calendar units of this kind."""
    own = CALENDAR_UNITS[unit]
    name, pattern = own(today), own(date(2001, 1, 1))
    if any(len(each) != len(pattern) or not each[:4].isdigit() for each in names):
        return None
    if [mark.isdigit() for mark in names[0]] != [mark.isdigit() for mark in pattern]:
        return None
    return sum(each < name for each in names)


def read_totals(
    steps: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
) -> dict[str, Any]:
    """The totals that the measurements of a stream's first steps say, as an answer's data.

    Args:
        steps: the debit and the stored answer of each, in their order.
    """
    what = steps[0][0]["what"]
    stream = Stream(
        CumulativeNoise(tuple(map(int, what["coefficients"]))),
        GaussianNoise(Fraction(what["variance"])),
    )
    columns, rows = steps[0][1]["columns"], steps[0][1]["rows"]
    measured = np.array([[row[-1] for row in stored["rows"]] for _, stored in steps], float)
    counts = stream.matrix.estimate_counts(measured)
    totals = np.cumsum(counts, axis=0)
    parts = []
    for numbers, spreads in (
        (totals, stream.matrix.total_spreads),
        (counts, stream.matrix.count_spreads),
    ):
        radii = stream.radii(spreads[: len(steps)])[:, None]
        parts += [np.rint(numbers), np.floor(numbers - radii), np.ceil(numbers + radii)]
    found = []
    for step in range(len(steps)):
        for cell, row in enumerate(rows):
            told = (int(part[step, cell]) for part in parts)
            found.append([what["periods"][step], *row[:-1], *told])
    period = free_column_name(what["column"], (*columns[:-1], *TOTAL_COLUMNS))
    return {"columns": [period, *columns[:-1], *TOTAL_COLUMNS], "rows": found}
