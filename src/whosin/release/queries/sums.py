"""Counts of people and rows, histograms, and sums, means and variances of a clamped column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import gcd, pi, sqrt
from typing import Any, ClassVar

import numpy as np

from whosin.calibration import Plan
from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.ledger import encoding
from whosin.ledger.budget import Budget
from whosin.noise import LaplaceNoise
from whosin.release import contribution_bounds
from whosin.release.column_expressions import GroupGrid, group_domain
from whosin.release.contribution_bounds import (
    PEOPLE_PART,
    ROWS_PART,
    Aggregate,
    ContributionBounds,
    ContributionPolicy,
    CostWarning,
    centre_range,
    clamp_to_units,
    clamp_value,
    distance_parts,
    eligible_rows,
)
from whosin.release.cost import (
    CONFIDENCE_LEVEL,
    CostEstimate,
    ExpectedError,
    NoisyAggregate,
    Share,
    is_too_noisy,
    noise_words,
    noisy_parts,
)
from whosin.release.domains import MAX_BOUND_STEPS, Range
from whosin.release.queries.base import POINT, Linear, Numeric
from whosin.release.row_values import double_value
from whosin.release.table import Table

# Means from noisy sums, with the interval that the two noises explain.
#
# A quotient μ = S/N satisfies S = μN, so the noisy S̃ and Ñ differ from that by X − μY, where X and
# Y are the noises: μ is in the interval when |S̃ − μÑ| is no larger than |X − μY| is with the
# promised probability (Fieller 1954). That holds for every μ, so the interval covers the true
# quotient with that probability, however small N is; two reaches side by side would be up to twice
# as wide. A proportion p = A/(A+B) satisfies (1−p)A = pB, and is judged by (1−p)X − pY in the same
# way.
#
# *Whole noises* are compared with continuous ones of the same scale. Laplace noise X with a uniform
# U on [−½, ½] has at k + ½ the tail Pr[X > k] = e^(−(k+1)/s)/(1 + e^(−1/s)) ≤ e^(−(k+½)/s)/2, that
# of continuous noise L there, and is linear between such points; the chord of an exponential over
# one unit is at most e^(1/(8s²)) times it (Hoeffding's lemma). So |X + U| is at most |L| + 1/(8s)
# in distribution. All of these are symmetric and unimodal, so sums of them keep that order
# (Birnbaum 1948), and Pr[|aX − bY| > t] is at most that of the continuous noises beyond t less ½ +
# 1/(8s) times a, and times b. For Gaussian noise see Canonne, Kamath and Steinke 2020, Proposition
# 25: a whole unit of each. The radius is convex in μ and p (quantiles of log-concave symmetric
# vectors are norms: Bobkov 2010), so that what is ruled out above the interval reaches up to the
# end of the range.


SMALL_SCALES = {"laplace": 0.5, "gaussian": 4.0}
"""Below these a unit matters: there the reaches of both noises are added."""
BISECTION_BITS = 60
FULL_RANGE_SLACK = 1e-6
FEW_INTERVALS = 100
"""Intervals whose ends are searched for in 63 places at a time, and not in one: NumPy takes as long
for a hundred numbers as for one."""


def noisy_quotient(
    sums: tuple[Array, Array],
    noisy: Sequence[NoisyAggregate],
    ends: tuple[float, float],
    confidence: float = CONFIDENCE_LEVEL,
) -> tuple[Array, Array, Array]:
    """(quotient, low, high) of a noisy sum over a noisy number of rows.

    Args:
        sums: both in units of their parts.
        ends: the true quotient is between them, since every summand is.
    """
    total, rows = sums[0] * float(noisy[0].part.unit), sums[1].astype(np.float64)

    def distance(at: Array) -> tuple[Array, Array, Array]:
        return total - at * rows, np.ones_like(at), np.abs(at)

    value = np.clip(total / np.maximum(rows, 1.0), *ends)
    return _explained_interval(value, distance, _explains_noise(noisy, confidence), ends)


def noisy_proportion(
    sums: tuple[Array, Array], noisy: Sequence[NoisyAggregate], confidence: float = CONFIDENCE_LEVEL
) -> tuple[Array, Array, Array]:
    """(A/(A+B), low, high) of two sums from 0 up with noise of one scale; half where nothing is
    left.

    Args:
        sums: both in units of their parts, which are of one unit.
    """
    unit = float(noisy[0].part.unit)
    above, below = (each * unit for each in sums)

    def distance(at: Array) -> tuple[Array, Array, Array]:
        return (1 - at) * above - at * below, 1 - at, at

    whole = above + below
    value = np.clip(np.where(whole > 0, above / np.where(whole > 0, whole, 1.0), 0.5), 0.0, 1.0)
    return _explained_interval(value, distance, _explains_noise(noisy, confidence), (0.0, 1.0))


def _explained_interval(
    value: Array,
    distance: Callable[[Array], tuple[Array, Array, Array]],
    explains: Callable[[Array, Array, Array], Array],
    ends: tuple[float, float],
) -> tuple[Array, Array, Array]:
    """(value, low, high): all that is explained. On each side the last point, seen from the other
    end, that the noise does not rule out; the end itself if it does not rule that out.

    Args:
        distance: (distance, a, b) at a point, as `explains` takes them; above 0 below the value.
    """
    low, high = (np.full(len(value), end) for end in ends)
    bits = 6 if len(value) <= FEW_INTERVALS else 1
    step, places = 2.0**-bits, np.arange(1, 2**bits)[:, None] / 2**bits
    found = []
    for side, inside, outside in ((1, high, low), (-1, low, high)):

        def rules_out(at: Array, side: int = side) -> Array:
            away, one, other = distance(at)
            return (side * away > 0) & ~explains(away, one, other)

        open_end, end = ~rules_out(outside), outside
        for _ in range(BISECTION_BITS // bits):
            width = outside - inside
            out = rules_out(inside + places * width)
            any_out, passed = out.any(axis=0), out.argmax(axis=0) * step
            outside = np.where(any_out, inside + (passed + step) * width, outside)
            inside = inside + np.where(any_out, passed, 1 - step) * width
        found.append(np.where(open_end, end, outside))
    return value, np.minimum(found[0], value), np.maximum(found[1], value)


def _explains_noise(
    noisy: Sequence[NoisyAggregate], confidence: float
) -> Callable[[Array, Array, Array], Array]:
    """Whether a·X and b·Y, the noises of two sums, explain a distance, given a and b."""
    kind, units = noisy[0].noise.kind, [float(each.part.unit) for each in noisy]
    if min(each.noise.spread for each in noisy) < SMALL_SCALES[kind]:
        both = 1 - (1 - confidence) / 2
        reach, slack = noisy[0].interval_radius(both), noisy[1].interval_radius(both)
        return lambda distance, a, b: np.abs(distance) <= a * reach + b * slack
    scales = [each.noise.spread * float(each.part.unit) for each in noisy]
    tail = _normal_tail if kind == "gaussian" else laplace_tail
    if kind == "laplace":
        units = [
            unit * (0.5 + 1 / (8 * each.noise.spread))
            for unit, each in zip(units, noisy, strict=True)
        ]

    def possible(distance: Array, a: Array, b: Array) -> Array:
        beyond = np.maximum(np.abs(distance) - a * units[0] - b * units[1], 0.0)
        found: Array = tail(beyond, a * scales[0], b * scales[1]) >= 1 - confidence
        return found

    return possible


def laplace_tail(beyond: Array, one: Array | float, other: Array) -> Array:
    """Pr[|aL + bM| > t] = (a² e^(−t/a) − b² e^(−t/b))/(a² − b²) for Laplace noises L, M of scale 1;
    scales that are nearly alike are both taken for the larger one."""
    large, small = np.maximum(one, other), np.minimum(one, other)
    alike = small > 0.999 * large
    apart = np.where(alike, 0.0, small)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(apart > 0, apart**2 * np.exp(-beyond / apart), 0.0)
        split = (large**2 * np.exp(-beyond / large) - far) / (large**2 - apart**2)
    result: Array = np.where(alike, (1 + beyond / (2 * large)) * np.exp(-beyond / large), split)
    return result


def mean_distance(noisy: Sequence[NoisyAggregate], one: float, other: float) -> float:
    """E|aX + bY| of the noises X, Y of two sums, as continuous ones: (a² + ab + b²)/(a + b) for
    Laplace noise of scales a and b, the integral of `laplace_tail`."""
    a, b = (
        abs(times) * each.noise.spread * float(each.part.unit)
        for times, each in zip((one, other), noisy, strict=True)
    )
    if noisy[0].noise.kind == "gaussian":
        return float(np.hypot(a, b)) * sqrt(2 / pi)
    return (a * a + a * b + b * b) / (a + b) if a + b else 0.0


def even_values_error(
    query: Numeric,
    table: Table,
    noisy: Sequence[NoisyAggregate],
    rows: int,
    sums: Sequence[float],
    distance: float,
    ends: tuple[float, float],
) -> ExpectedError:
    """What to expect of a quotient of sums over so many values that are spread evenly over the
    range: the interval is that of the answer with these sums.

    Args:
        distance: E|noise| of the answer times the rows, to first order.
    """
    value, low, high = (
        float(each[0]) for each in query.finish(table, [np.array([each]) for each in sums], noisy)
    )
    width = ends[1] - ends[0]
    return ExpectedError(
        rows,
        min(distance / rows, width),
        max(value - low, high - value),
        noisy=is_too_noisy(value, low, high, ends if query.scale == POINT else None),
        fills=high - low >= width * (1 - FULL_RANGE_SLACK),
    )


def _normal_tail(beyond: Array, one: Array, other: Array) -> Array:
    from scipy.special import ndtr

    return np.asarray(2 * ndtr(-beyond / np.hypot(one, other)))


@dataclass(frozen=True, kw_only=True)
class Count(Linear):
    """How many privacy units have a row that meets the condition; by cell, each in a few cells."""

    kind: ClassVar[str] = "count"
    of_things: ClassVar[bool] = True

    def estimate_as_planned(self, table: Table, share: Share) -> CostEstimate | None:
        """What the plan says, and no more noise: one release that rests on what the adversary does
        not know about others, which a condition or groups would narrow down."""
        planned = planned_count(share.plan)
        if planned is None or self.where is not None or self.cells(table).columns:
            return None
        noise = noise_words(planned)
        words = f"a count as planned against {share.plan.family.symbol}, {noise}"
        spend = self.spend_alone(table, share, words)
        cells = self.cells(table)
        expression = self.plan_scan(table, type(self).exact, cells)
        known = spend, noise, planned.error, planned.interval_radius(), (planned,)
        return CostEstimate(self, share, *known, expression=expression)

    def parts(self, table: Table) -> tuple[Aggregate, ...]:
        return (PEOPLE_PART,)

    def bounds(self, table: Table) -> ContributionBounds:
        return ContributionBounds(1, super().bounds(table).max_groups)

    def contribution_policy(self, table: Table) -> ContributionPolicy:
        return replace(super().contribution_policy(table), max_rows_per_group=None)

    def exact(self, table: Table, cells: GroupGrid) -> Any:
        return contribution_bounds.count_people(
            eligible_rows(table, self.where), table, cells, self.bounds(table)
        )


def planned_count(plan: Plan) -> NoisyAggregate | None:
    """The noise of a count, as a plan has it for adversaries who do not know everyone."""
    if not plan.family.hides_others or not plan.delta or plan.noise is None:
        return None
    assert plan.query is not None and plan.query.kind == "count"
    return NoisyAggregate(PEOPLE_PART, LaplaceNoise(Fraction(plan.noise.scale)))


def noise_of_count(plan: Plan, noise: str = "laplace") -> NoisyAggregate | None:
    """The noise of one count of everyone that takes all of a plan's budget, as a release adds it;
    None for Gaussian noise under a plan that allows none."""
    planned = planned_count(plan)
    if planned is not None:
        return planned
    budget = Budget.of(plan)
    rho = Fraction(budget.rho, encoding.EPSILON_UNITS) if noise == "gaussian" else Fraction(0)
    if noise == "gaussian" and not rho:
        return None
    share = Share(plan, Fraction(budget.epsilon, encoding.EPSILON_UNITS), rho, Fraction(0))
    return noisy_parts((PEOPLE_PART,), share, ContributionBounds(1, 1), False)[0]


@dataclass(frozen=True, kw_only=True)
class Rows(Linear):
    """How many rows meet the condition, a few rows per privacy unit."""

    kind: ClassVar[str] = "rows"
    of_things: ClassVar[bool] = True
    about_rows: ClassVar[bool] = True

    def parts(self, table: Table) -> tuple[Aggregate, ...]:
        return (ROWS_PART,)

    def cautions(self, table: Table) -> tuple[CostWarning, ...]:
        result = super().cautions(table)
        return (
            (CostWarning("max_rows_per_group"), *result)
            if table.at_default("max_rows_per_group", self.max_rows_per_group)
            else result
        )

    def exact(self, table: Table, cells: GroupGrid) -> Any:
        rows = eligible_rows(table, self.where)
        return contribution_bounds.sum_rows(rows, table, cells, self.bounds(table), {}, True)


@dataclass(frozen=True, kw_only=True)
class Histogram(Count):
    """How many privacy units are in each bin, or have each value, of one declared column.

    Args:
        column: the column; a range needs edges.
    """

    kind: ClassVar[str] = "histogram"
    column: str

    def cells(self, table: Table) -> GroupGrid:
        by = GroupGrid.of(table, self.by).columns
        group_domain(table, self.column)  # by itself first: what is wrong with it is not about `by`
        return GroupGrid.of(table, (*by, self.column))


@dataclass(frozen=True, kw_only=True)
class Sum(Numeric):
    """The sum of a column."""

    kind: ClassVar[str] = "sum"

    def parts(self, table: Table) -> tuple[Aggregate, ...]:
        domain = table.range(self.column)
        unit, times, shift = self._transform_steps(domain)
        low, high = sorted(end * times + shift for end in domain.units)
        if max(-low, high) > MAX_BOUND_STEPS:
            raise InvalidInput(
                "this factor and offset make the steps of the sum too fine",
                field="offset",
                value=self.offset,
                hint="ask for the sum and for the number of rows, and combine them yourself",
            )
        return (Aggregate("sum", unit, low, high),)

    def exact(self, table: Table, cells: GroupGrid) -> Any:
        rows, domain = self.present(table), table.range(self.column)
        _, times, shift = self._transform_steps(domain)
        steps = clamp_to_units(rows[self.column], domain)
        values = {"sum": steps if (times, shift) == (1, 0) else steps * times + shift}
        return contribution_bounds.sum_rows(rows, table, cells, self.bounds(table), values, False)

    def _transform_steps(self, domain: Range) -> tuple[Fraction, int, int]:
        """(unit, times, shift): k steps of the column are k·times + shift units of what is summed,
        exactly, whose sensitivity is that of these units."""
        factor, offset = self.transformation
        step = abs(factor) * domain.unit
        below = step.denominator * offset.denominator
        unit = Fraction(gcd(int(step * below), int(offset * below)), below)
        return unit, int(factor * domain.unit / unit), int(offset / unit)


@dataclass(frozen=True, kw_only=True)
class Mean(Numeric):
    """The mean of a column, from two noisy sums: of the distances from the lower end of its range
    and to the upper end. One row adds the width of the range to both together, so that each sum has
    all of the budget, and the error has half the variance that a sum and a number of rows at half
    the budget each would give it. `quotients` has the interval."""

    kind: ClassVar[str] = "mean"
    scale: ClassVar[str] = POINT

    def parts(self, table: Table) -> tuple[Aggregate, ...]:
        return distance_parts(table.range(self.column))

    def exact(self, table: Table, cells: GroupGrid) -> Any:
        rows, domain = self.present(table), table.range(self.column)
        low, high = domain.units
        values = {
            "above": clamp_to_units(rows[self.column], domain, low),
            "below": -clamp_to_units(rows[self.column], domain, high),
        }
        return contribution_bounds.sum_rows(rows, table, cells, self.bounds(table), values, False)

    def finish(
        self, table: Table, sums: Sequence[Array], noisy: Sequence[NoisyAggregate]
    ) -> tuple[Array, Array, Array]:
        domain = table.range(self.column)
        low, high = (float(end * domain.unit) for end in domain.units)
        ends = (low + part * (high - low) for part in noisy_proportion((sums[0], sums[1]), noisy))
        factor, offset = map(float, self.transformation)
        value, least, most = (np.clip(end, low, high) * factor + offset for end in ends)
        return value, np.minimum(least, most), np.maximum(least, most)

    def expected_error(self, table: Table, noise: Any, rows: int) -> ExpectedError | None:
        if not noise:
            return None
        domain, (factor, offset) = table.range(self.column), map(float, self.transformation)
        half = rows * (domain.units[1] - domain.units[0]) / 2
        low, high = sorted(float(end) * factor + offset for end in domain.bounds)
        distance = mean_distance(noise, factor / 2, factor / 2)
        return even_values_error(self, table, noise, rows, (half, half), distance, (low, high))


@dataclass(frozen=True, kw_only=True)
class Variance(Numeric):
    """The variance of a column: the mean square distance from the middle of its range, less the
    square of the mean distance. The budget is split over sum, squares and number of rows."""

    kind: ClassVar[str] = "variance"

    def parts(self, table: Table) -> tuple[Aggregate, ...]:
        domain = table.range(self.column)
        return (centre_range(domain)[1], ROWS_PART, contribution_bounds.square_part(domain)[1])

    def exact(self, table: Table, cells: GroupGrid) -> Any:
        rows, domain = self.present(table), table.range(self.column)
        low, high = (float(end) for end in domain.bounds)
        half, part = contribution_bounds.square_part(domain)
        distance = (
            clamp_value(double_value(rows[self.column]), low, high) - (low + high) / 2
        ) / half
        squares = (distance * distance * float(part.high) + 0.5).floor().cast("int64")
        values = {
            "sum": clamp_to_units(rows[self.column], domain, centre_range(domain)[0]),
            part.name: clamp_value(squares, part.low, part.high),
        }
        return contribution_bounds.sum_rows(rows, table, cells, self.bounds(table), values, True)

    def finish(
        self, table: Table, sums: Sequence[Array], noisy: Sequence[NoisyAggregate]
    ) -> tuple[Array, Array, Array]:
        domain = table.range(self.column)
        half = float((domain.bounds[1] - domain.bounds[0]) / 2)
        most = half**2
        # The sum's middle is a whole number of steps, the squares' the exact one.
        shift = float(centre_range(domain)[0] * domain.unit - sum(domain.bounds) / 2)
        each = 1 - (1 - CONFIDENCE_LEVEL) / 2  # both intervals hold but for 5% together
        mean = noisy_quotient((sums[0], sums[1]), noisy[:2], (-half - shift, half - shift), each)
        square = noisy_quotient((sums[2], sums[1]), (noisy[2], noisy[1]), (0.0, most), each)
        centre, low, high = (end + shift for end in mean)
        far = np.maximum(np.abs(low), np.abs(high)) ** 2
        near = np.where(low * high <= 0, 0, np.minimum(low**2, high**2))
        result = square[0] - centre**2, square[1] - far, square[2] - near
        times = float(self.transformation[0] ** 2)  # an offset moves no distance
        value, least, greatest = (np.clip(end, 0, most) * times for end in result)
        return value, least, greatest

    def expected_error(self, table: Table, noise: Any, rows: int) -> ExpectedError | None:
        if not noise:
            return None
        domain = table.range(self.column)
        half = float((domain.bounds[1] - domain.bounds[0]) / 2)
        shift = float(centre_range(domain)[0] * domain.unit - sum(domain.bounds) / 2)
        times, square = float(self.transformation[0] ** 2), half**2 / 3
        sums = -rows * shift / float(domain.unit), rows, rows * noise[2].part.high / 3
        distance = self._scale_error(
            mean_distance(noise[2:0:-1], 1.0, square) * times, times * square
        )
        most = self._scale_end(times * half**2)
        return even_values_error(self, table, noise, rows, sums, distance, (0.0, most))

    def _scale_error(self, error: float, variance: float) -> float:
        """An error of the variance as one of the answer, to first order."""
        return error

    def _scale_end(self, end: float) -> float:
        return end


@dataclass(frozen=True, kw_only=True)
class Deviation(Variance):
    """The standard deviation of a column: the root of its noisy variance, at the same cost. Roots
    keep order, so the interval is that of the variance, root by root."""

    kind: ClassVar[str] = "deviation"

    def finish(
        self, table: Table, sums: Sequence[Array], noisy: Sequence[NoisyAggregate]
    ) -> tuple[Array, Array, Array]:
        value, least, greatest = map(np.sqrt, super().finish(table, sums, noisy))
        return value, least, greatest

    def _scale_error(self, error: float, variance: float) -> float:
        return error / (2 * sqrt(variance))

    def _scale_end(self, end: float) -> float:
        return sqrt(end)
