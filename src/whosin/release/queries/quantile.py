"""Quantiles, medians and the repaired k-Max.

The points that a quantile can come out at, and where a value lies among them. The points are
public: they come from the declared range, its step and the column's type. A value's position is
three times that of the point below it, plus 0 on that point, 1 beyond it and nearer to it, 2 nearer
to the next, so that one scan rounds down, to the nearest point, and up. A value within a millionth
of a step of a point is on it: doubles do not hold 0.15, and 31 is 31.

The largest public value among those present, by the repaired k-Max (Li13 5.3, erratum E1). Against
someone who knows nothing (D_N) it raises no belief by more than (2^k−1)/(2^k−2). Against anyone
else it promises nothing, and its level does not add: it is a release of its own. It bounds one
direction only: someone may learn for certain that a person is out. So no ε holds, and an attack
advantage is 1 − 1/r, not (r−1)/(r+1).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from typing import Any, ClassVar

import numpy as np

from whosin import families
from whosin.errors import InvalidInput, invalid_value, shorten, spell
from whosin.exact import Array, exact_fraction, format_figures, rational
from whosin.ledger.budget import NEIGHBOUR_RELATIONS, Cost
from whosin.noise import uniform
from whosin.release import contribution_bounds
from whosin.release.column_expressions import GroupGrid
from whosin.release.contribution_bounds import ContributionPolicy, eligible_rows
from whosin.release.cost import (
    CONFIDENCE_LEVEL,
    CostEstimate,
    ExpectedError,
    SelectionNoise,
    Share,
    is_too_noisy,
)
from whosin.release.domains import Range
from whosin.release.engines.base import Progress, whole_numbers
from whosin.release.queries.base import NAME, POINT, RANK_ROWS, NumberQuery, Query, plain_number
from whosin.release.row_values import number_value
from whosin.release.table import Table

MAX_POINTS = 10_000
DEFAULT_POINTS = 1_001
RANK_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Points:
    """Points at equal distances, the outermost moved to the ends of the range."""

    origin: Fraction
    step: Fraction
    count: int
    ends: tuple[Fraction, Fraction]

    @classmethod
    def of(cls, domain: Range, whole: bool, count: int | None) -> Points:
        """`count` points over the range; by default multiples of a round step.

        Args:
            whole: whether the column holds whole numbers, by its type.
        """
        low, high = domain.bounds
        if count is None:
            step = _round_step(domain, whole)
            first, last = low // step, -(-high // step)
            return cls(first * step, step, int(last - first) + 1, (low, high))
        if type(count) is not int or not 2 <= count <= MAX_POINTS:
            raise invalid_value("points", f"a whole number from 2 to {MAX_POINTS}", count)
        return cls(low, (high - low) / (count - 1), count, (low, high))

    def position(self, value: Any) -> Any:
        """The position of a number, as an expression; a missing one has none."""
        low, high = (float(end) for end in self.ends)
        above = value.clip(low, high) - float(self.origin)
        steps = above * float(self.step.denominator) / float(self.step.numerator)
        number = (
            (steps + 0.5).floor()
            + (steps - RANK_TOLERANCE).ceil()
            + (steps + RANK_TOLERANCE).floor()
        )
        return number.cast("int64").clip(0, 3 * self.count - 3)

    def rounded(self, positions: Array, rows: Array) -> tuple[Array, Array, Array]:
        """From the number of rows at each position to the number at each point, where values are
        rounded down, to the nearest, and up."""
        counts = np.zeros(3 * self.count, np.int64)
        counts[positions] = rows
        on, nearer, farther = counts.reshape(self.count, 3).T
        down, nearest, up = on + nearer + farther, on + nearer, on.copy()
        nearest[1:] += farther[:-1]
        up[1:] += nearer[:-1] + farther[:-1]
        return down, nearest, up

    @property
    def values(self) -> Array:
        """The numbers at all points, in floats."""
        low, high = map(float, self.ends)
        at = float(self.origin) + float(self.step) * np.arange(self.count)
        return np.asarray(np.clip(at, low, high))

    def value(self, point: int) -> Fraction:
        """The number at a point; before the first and after the last come the ends."""
        if point < 0:
            return self.ends[0]
        low, high = self.ends
        return min(max(self.origin + point * self.step, low), high)


def _round_step(domain: Range, whole: bool) -> Fraction:
    """The first of 1, 2, 5, 10 … times the least step with few enough points.

    The least step is the declared one, 1 for whole numbers, and the range's own otherwise.
    """
    low, high = domain.bounds
    least = Fraction(1) if whole and domain.step is None else domain.unit
    steps: Iterator[Fraction] = (
        least * times * 10**power for power in count() for times in (1, 2, 5)
    )
    return next(step for step in steps if -(-high // step) - low // step + 1 <= DEFAULT_POINTS)


def score_points(counts: Array, share: Fraction) -> Array:
    """How deep the rank a/b·n lies in the rows on each point, as whole numbers.

    The score of c is min(a·n − b·#{v < c}, b·#{v ≤ c} − a·n): at least 0 where c is the quantile,
    and below 0 by how many rows are too many below or above it. One row more or less moves it by
    at most max(a, b−a), one row for another by b, since each of the two terms does. It prefers
    heaps of equal values to the gaps beside them; cut off at 0 it would see half as much.
    """
    upto = np.cumsum(counts) * share.denominator
    under = upto - counts * share.denominator
    rank = share.numerator * int(counts.sum())
    result: Array = np.minimum(rank - under, upto - rank)
    return result


def interval_scores(down: Array, up: Array, share: Fraction, centre: int, shift: int) -> Array:
    """The scores of the half-widths 0, 1, 2 … of an interval around a point, in steps.

    Let f(w) be the smaller of a·n − b·#{v < c−w}, of values rounded down, and b·#{v ≤ c+w} − a·n,
    of values rounded up, where a side that reaches the range's end counts as without limit: no row
    lies beyond. Where f(w) > 0 the interval holds every quantile, and f never falls. The score is
    min(f(w) − shift, shift − f(w−1)), with f(−1) = −∞, so that some width has one of at least 0.
    """
    count, rank = len(down), share.numerator * int(down.sum())
    widths = np.arange(max(centre, count - 1 - centre) + 1)
    under = (np.cumsum(down) - down) * share.denominator
    upto = np.cumsum(up) * share.denominator
    lower, upper = centre - widths, centre + widths
    unlimited = np.iinfo(np.int64).max // 2
    low = np.where(lower > 0, rank - under[np.maximum(lower, 0)], unlimited)
    high = np.where(upper < count - 1, upto[np.minimum(upper, count - 1)] - rank, unlimited)
    depth = np.minimum(low, high)
    before = np.concatenate([[-unlimited], depth[:-1]])
    result: Array = np.minimum(depth - shift, shift - before)
    return result


# Quantiles of a column: points of a public grid, chosen by how many rows lie below and on them.
#
# The whole budget selects the value (`score_points`, in whole numbers, b times rows for the
# quantile a/b); where an interval is asked for, half of it does and the other half selects how wide
# an interval around the value has to be (`interval_scores`). Under Gaussian plans both
# have a cost in ρ.
#
# *Coverage.* Let E be a margin that the selected score keeps with 95% (`SelectionNoise.margin`),
# and the shift S above E. Some width has a score of at least 0, so the selected one has one of at
# least −E, and f(w) ≥ S − E > 0: fewer than a·n/b rows, rounded down, lie below the lower end,
# while any quantile Q, rounded down, has at least that many on or below it. So the lower end is not
# above Q, and likewise the upper end is not below it. The last width is the whole range, which
# holds every Q.
#
# *By cells* each cell has an answer of its own, and someone is in at most g of them, with `rows`
# rows in each. Whoever is added or removed moves the scores of g cells; whoever is replaced those
# of 2g cells, g they leave and g they enter, each as an addition or removal does. A cell of both
# moves by b a row instead of max(a, b−a), which is no more than twice that: so in ε, 2g cells are
# the worst case. In ρ, where costs go as squares, it is 2g cells or g cells of both, whichever
# costs more: with some of both the cost is linear in how many, and so between the two.


MAX_SCORED_POINTS = 10**7
"""Points of all cells of an answer."""


@dataclass(frozen=True, kw_only=True)
class RankQuery(NumberQuery):
    """The value at a rank, and if wanted an interval in the column's own unit.

    Args:
        points: how many points the grid has over the range, from which the answer comes; by
            default the multiples of a round step, at most 1,001.
        interval: whether half of the budget goes into an interval that holds the value with 95%
            probability; the value has twice the noise then.
    """

    scale: ClassVar[str] = POINT
    selects: ClassVar[bool] = True
    points: int | None = None
    interval: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.interval, bool):
            raise invalid_value("interval", "true or false", repr(self.interval)[:80])

    @property
    @abstractmethod
    def below(self) -> Fraction:
        """The share of the rows below the answer."""

    def estimate_cost(self, table: Table, share: Share) -> CostEstimate:
        points, cells = self.grid(table), self.cells(table)
        expression = self.plan_scan(table, type(self)._expression, cells)
        noise = self.plan_noise(table, share)
        within = noise.margin(points.count) / self.below.denominator
        rows = format_figures(within, 3, "up")
        words = f"selection among {spell(points.count)} points"
        if cells.columns:
            words += f", in each of {spell(cells.count)} cells"
        words += f", 95% within {rows} rows of the rank"
        costs = {relation: self._cost(table, relation, noise) for relation in NEIGHBOUR_RELATIONS}
        return CostEstimate(
            self,
            share,
            self.make_spend(table, costs),
            words,
            within=within,
            within_words="with 95% probability the rank of the value is off by no more than "
            f"{rows} rows",
            details=noise,
            expression=expression,
        )

    def plan_noise(self, table: Table, share: Share) -> SelectionNoise:
        selections = 2 if self.interval else 1
        return max(
            (
                SelectionNoise.from_share(share, sensitivity, selections * times)
                for times, sensitivity in self.score_sensitivities(table, share.relation)
            ),
            key=lambda each: each.scale,
        )

    def expected_error(self, table: Table, noise: Any, rows: int) -> ExpectedError | None:
        """By the exact law of the selection, for rows that are spread evenly over the points; a
        value is up to half a step from its point."""
        points = self.grid(table)
        scores = score_points(
            np.diff(np.arange(points.count + 1) * rows // points.count), self.below
        )
        chances = noise.probabilities(scores)
        values = points.values
        far = np.abs(values - values[np.argmax(scores)])
        order = np.argsort(far, kind="stable")
        reached = int(np.searchsorted(np.cumsum(chances[order]), CONFIDENCE_LEVEL))
        within = float(far[order[min(reached, points.count - 1)]]) + float(points.step) / 2
        width = float(points.ends[1] - points.ends[0])
        noisy = is_too_noisy(0.0, -within, within, (0.0, width))
        return ExpectedError(
            rows, float(chances @ far), within, noisy=noisy, fills=2 * within >= width
        )

    def _cost(self, table: Table, relation: str, noise: SelectionNoise) -> Cost:
        """One selection, or two, in each cell that someone moves."""
        prices = []
        for times, sensitivity in self.score_sensitivities(table, relation):
            epsilon, rho = noise.cost(sensitivity)
            number = times * (2 if self.interval else 1)
            prices.append((number * epsilon, number * rho))
        epsilons, rhos = zip(*prices, strict=True)
        return Cost.pure(max(epsilons), rho=max(rhos))

    def answer(self, table: Table, estimate: CostEstimate, progress: Progress | None = None) -> Any:
        points, cells = self.grid(table), self.cells(table)
        result = table.engine.run(estimate.expression, progress)
        code = np.zeros(result.num_rows, np.int64)
        for name, domain in zip(cells.names, cells.domains, strict=True):
            code = code * len(domain.labels) + whole_numbers(result.column(name))
        positions, counts = (whole_numbers(result.column(name)) for name in ("position", "rows"))
        order = np.argsort(code, kind="stable")
        starts = np.searchsorted(code[order], np.arange(cells.count + 1))
        rows = []
        for label, start, stop in zip(cells.labels(), starts, starts[1:], strict=False):
            own = order[start:stop]
            rounded = points.rounded(positions[own], counts[own])
            selected = self._select(points, rounded, estimate.details)
            rows.append([*label, *(plain_number(float(each)) for each in selected)])
        names = ("value", "low", "high") if self.interval else ("value",)
        answer = {"columns": [*cells.headings(*names), *names], "rows": rows}
        needed = math.ceil((estimate.within or 0) / min(self.below, 1 - self.below))
        return answer if self.interval else answer | {"details": {RANK_ROWS: needed}}

    def _select(
        self, points: Points, rounded: tuple[Array, Array, Array], noise: SelectionNoise
    ) -> tuple[Fraction, ...]:
        """The value, and the ends of its interval if there is one, of one cell."""
        down, nearest, up = rounded
        centre = int(noise.select(score_points(nearest, self.below))[0])
        value = points.value(centre)
        if not self.interval:
            return (value,)
        shift = math.floor(noise.margin(points.count)) + 1
        scores = interval_scores(down, up, self.below, centre, shift)
        width = int(noise.select(scores)[0])
        return value, points.value(centre - width), points.value(centre + width)

    def score_sensitivities(self, table: Table, relation: str) -> list[tuple[int, int]]:
        """The worst cases of (how many cells one privacy unit can move, by how much the scores of
        each)."""
        if not self.cells(table).columns:
            return [(1, self.score_sensitivity(table, relation))]
        groups, apart = self.bounds(table).max_groups, self.score_sensitivity(table, "add-remove")
        if relation == "replace":
            return [(2 * groups, apart), (groups, self.score_sensitivity(table, relation))]
        return [(groups, apart)]

    def cells(self, table: Table) -> GroupGrid:
        cells = super().cells(table)
        if cells.columns and (size := cells.count * self.grid(table).count) > MAX_SCORED_POINTS:
            raise InvalidInput(
                f"by makes {spell(size)} candidate values in all groups; at most "
                f"{spell(MAX_SCORED_POINTS)} are scored",
                field="by",
                value=size,
                hint="group by fewer columns, or ask with fewer points",
            )
        return cells

    def score_sensitivity(self, table: Table, relation: str) -> int:
        """How far one privacy unit can move a score: of one cell, where its rows are."""
        below, all_rows = self.below.numerator, self.below.denominator
        one = all_rows if relation == "replace" else max(below, all_rows - below)
        return self.bounds(table).max_rows_per_group * one

    def grid(self, table: Table) -> Points:
        """Where the answer can be."""
        domain = table.range(self.column)
        return Points.of(domain, bool(table.type(self.column).is_integer()), self.points)

    def _expression(self, table: Table, cells: GroupGrid) -> Any:
        rows = self.present(table)
        base = cells.coded(
            rows, **contribution_bounds.owner_column(rows, table), x=number_value(rows[self.column])
        )
        base = base.mutate(position=self.grid(table).position(base["x"]))
        chosen = contribution_bounds.rows_in_cells(base, table, cells, self.bounds(table))
        return chosen.group_by([*cells.keys, "position"]).aggregate(rows=chosen.count())


@dataclass(frozen=True, kw_only=True)
class Quantile(RankQuery):
    """The point below which a given share of the rows lies.

    Args:
        quantile: the share, such as 0.5 or "1/4".
    """

    kind: ClassVar[str] = "quantile"
    quantile: object = "1/2"

    @property
    def below(self) -> Fraction:
        result = rational(self.quantile, "quantile")
        if not 0 < result < 1 or result.denominator > 10**6:
            raise invalid_value(
                "quantile", "above 0 and below 1, in steps of a millionth", self.quantile
            )
        return result


@dataclass(frozen=True, kw_only=True)
class Median(RankQuery):
    """The point below which half of the rows lie."""

    kind: ClassVar[str] = "median"

    @property
    def below(self) -> Fraction:
        return Fraction(1, 2)


ONE_HALF = Fraction(1, 2)


@dataclass(frozen=True, kw_only=True)
class Maximum(Query):
    """The largest value among privacy units that are in the data, off by up to k places.

    Args:
        universe: everyone who could be in, with a public value each: a list of (privacy unit,
            value).
    """

    kind: ClassVar[str] = "maximum"
    scale: ClassVar[str] = NAME
    universe: Sequence[Sequence[Any]]

    def estimate_cost(self, table: Table, share: Share) -> CostEstimate:
        if not isinstance(share.plan.family, families.Uninformed):
            raise InvalidInput(
                "maximum needs a plan against uninformed adversaries",
                field="maximum",
                value=share.plan.family.symbol,
            )
        if table.by_row:
            raise InvalidInput(
                "maximum needs a table with a column that says whose row it is, and here each row "
                "is one person",
                field="maximum",
            )
        if self.where is not None:
            # Whoever knows who cannot meet a condition has a smaller universe to look at.
            raise InvalidInput(
                "where cannot be combined with maximum, whose promise is for the whole universe",
                field="where",
                value=self.where,
                hint="leave it out",
            )
        ranked = self.ranked()
        ratio = share.plan.target.one_sided_ratio(ONE_HALF, ONE_HALF)
        k = _kmax_width((exact_fraction(ratio) + 1) / 2)  # γ at a belief of 1/2 (F7)
        if len(ranked) < 2 * k:
            raise InvalidInput(
                f"universe has {len(ranked)} people; this γ needs at least {2 * k}",
                field="universe",
                value=len(ranked),
            )
        expression = table.check(self._expression(table))
        gamma = f"γ = {2**k - 1}/{2**k - 2} against D_N"
        spend = self.spend_alone(table, share, f"repaired k-Max, k = {k}: {gamma}")
        return CostEstimate(
            self,
            share,
            spend,
            f"one of {k} places",
            within=float(2 * k - 2),
            within_words=f"the rank of the value in the universe is off by at most {k - 1}, at its "
            f"low end by {2 * k - 2}",
            details=k,
            expression=expression,
        )

    def answer(self, table: Table, estimate: CostEstimate, progress: Progress | None = None) -> Any:
        k: int = estimate.details
        ranked = self.ranked()
        top = table.engine.run(estimate.expression, progress).column("rank")[0].as_py()
        lowest = min(max(1 if top is None else top, k), len(ranked) - k + 1)
        rank = lowest + uniform(k)
        value = plain_number(float(ranked[rank - 1][1]))
        return {"columns": ["value", "places"], "rows": [[value, k]]}

    def contribution_policy(self, table: Table) -> ContributionPolicy:
        return ContributionPolicy(table.privacy_unit)

    def ranked(self) -> list[tuple[Any, Fraction]]:
        """Everyone by value, the smallest first; ties by name, so that ranks are public."""
        if not isinstance(self.universe, list | tuple):
            raise invalid_value(
                "universe", "a list of (person, value) pairs", repr(self.universe)[:80]
            )
        pairs = []
        for each in self.universe:
            if not isinstance(each, list | tuple) or len(each) != 2:
                raise invalid_value("universe", "a list of (person, value) pairs", repr(each)[:80])
            if type(each[0]) not in (str, int) or (
                isinstance(each[0], int) and not -(2**63) <= each[0] < 2**63
            ):
                raise InvalidInput(
                    f"universe names the person {shorten(repr(each[0])[:80])}",
                    field="universe",
                    value=each[0],
                    hint="name people by text or whole numbers",
                )
            pairs.append((each[0], rational(each[1], "value in the universe")))
        if len({str(unit) for unit, _ in pairs}) != len(pairs):
            raise InvalidInput("universe names a person twice", field="universe")
        return sorted(pairs, key=lambda pair: (pair[1], str(pair[0])))

    def _expression(self, table: Table) -> Any:
        import ibis

        rows = eligible_rows(table, None)
        kind = table.type(table.privacy_unit)
        names = [unit for unit, _ in self.ranked()]
        if not kind.is_string() and not (
            kind.is_integer() and all(isinstance(name, int) for name in names)
        ):
            raise InvalidInput(
                f"universe names people in another type than the column of the table, {kind}",
                field="universe",
                value=str(kind),
            )
        known = [str(name) if kind.is_string() else name for name in names]
        ranks = ibis.memtable(
            {"name": known, "rank": list(range(1, len(known) + 1))},
            schema={"name": "string" if kind.is_string() else "int64", "rank": "int64"},
        )
        # Only the privacy unit is joined: a column of the table may be called like one of ours.
        present = rows.select(who=rows[table.privacy_unit]).join(ranks, [("who", "name")])
        return present.aggregate(rank=present["rank"].max())


def _kmax_width(gamma: Fraction) -> int:
    """The least k with (2^k−1)/(2^k−2) ≤ γ."""
    for k in range(2, 64):
        if Fraction(2**k - 1, 2**k - 2) <= gamma:
            return k
    raise invalid_value("gamma", "above 1 by more than 2^-60", float(gamma))
