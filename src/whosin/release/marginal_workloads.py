"""Many marginals in one release: what was asked, the noise, the estimate.

The noise of each measured table: costs are exact rationals that add up to at most the share, and
the noise is drawn for exactly the cost that was paid. Samplers keep tables for each width of noise,
which take longer to make than a table of noise to draw, so there are few widths: parts of ε are put
on a few levels, and variances on multiples of a common one by powers of 2^(1/8).

Tables as they were asked, and the cells that are measured for them. Cells of a column that no table
tells apart are measured as one: a workload that asks for two ranges of a hundred ages has three
cells for them, and one that asks for cantons alone counts cantons. Whatever is asked of a column is
then sums of these parts (`Sums`). Sums of cells, and their whole version, come from the same
estimate as the cells.

A column expression is a column, a function of one, a level of a hierarchy, or sums of these in
their order: cumulative(age), ranges(age). It lists its groups in an order in which every sum is a
run of them. The group "other" is in no range and in no cumulative count.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, groupby, pairwise, product
from math import prod
from typing import Any

import numpy as np

from whosin.errors import InvalidInput, at, invalid_value, shorten, spell
from whosin.exact import Array, rational
from whosin.ledger.budget import NEIGHBOUR_RELATIONS, Cost
from whosin.ledger.encoding import EPSILON_UNITS
from whosin.marginals import (
    BudgetAllocation,
    IntervalRadii,
    Measurement,
    Sums,
    Workload,
    allocate_budget,
    cell_variances,
    estimate_residuals,
    estimate_tables,
    interval_radii,
    sum_cells,
    sum_variances,
    whole_tables,
)
from whosin.marginals.estimation import estimate_table
from whosin.marginals.workload import MAX_MARGINAL_CELLS, Attributes
from whosin.noise import GaussianNoise
from whosin.noise.distributions import Noise, make_noise
from whosin.release.column_expressions import (
    FORM_PATTERN,
    Cellular,
    GroupGrid,
    MergedValues,
    UpperLevel,
    group_domain,
)
from whosin.release.cost import CONFIDENCE_LEVEL, LAPLACE_QUANTILE, NORMAL_QUANTILE, Share
from whosin.release.domains import Dates, Range, read_day
from whosin.release.scan import TableScan
from whosin.release.table import Table

CUMULATIVE, RANGES = "cumulative", "ranges"
MAX_RANGES = 1_000
Span = tuple[int, int]


@dataclass(frozen=True)
class ColumnExpression:
    """One way to ask a column.

    Attributes:
        name: as it was asked.
        root: the column, or the function of one, whose cells are summed.
        domain: the domain of the root.
        labels: what each sum is called.
        order: the cells of the root.
        spans: the runs of cells, in that order, that the sums are.
        cells: its own domain where each cell of the root is in one sum: the root's, or a level.
    """

    name: str
    root: str
    domain: Cellular
    labels: tuple[str | int, ...]
    order: tuple[int, ...]
    spans: tuple[Span, ...]
    cells: Cellular | None

    @property
    def marks(self) -> list[int]:
        """For each cell of the root which sums it is in, as bits."""
        changes = [0] * (len(self.order) + 1)
        for bit, (start, end) in enumerate(self.spans):
            changes[start] ^= 1 << bit
            changes[end] ^= 1 << bit
        result = [0] * len(self.order)
        running = accumulate(changes[:-1], lambda one, other: one ^ other)
        for cell, marks in zip(self.order, running, strict=True):
            result[cell] = marks
        return result


def column_form(
    table: Table, name: str, ranges: Mapping[str, object], field: str
) -> ColumnExpression:
    """What a name stands for.

    Args:
        field: where it was named.
    """
    match = FORM_PATTERN.fullmatch(name)
    known = name in table.columns or name in table.levels
    if known or match is None or match[1] not in (CUMULATIVE, RANGES):
        with at(field):
            return _plain_form(table, name)
    inner = match[2].strip()
    with at(field):
        base = _plain_form(table, inner)
    if match[1] == CUMULATIVE:
        last = len(base.labels) - (base.domain.outside is None)
        return _summed_form(base, name, [(0, end) for end in range(1, last + 1)])
    if inner not in ranges:
        raise InvalidInput(
            f"{name} is asked, and ranges has none for {inner}", field="ranges", value=inner
        )
    with at(f"ranges.{inner}"):
        return _summed_form(base, name, _read_spans(base, inner, ranges[inner]))


def _plain_form(table: Table, name: str) -> ColumnExpression:
    domain = group_domain(table, name)
    if not isinstance(domain, UpperLevel):
        count = len(domain.labels)
        spans = tuple((index, index + 1) for index in range(count))
        return ColumnExpression(
            name, name, domain, domain.labels, tuple(range(count)), spans, domain
        )
    root = domain.domain
    placed = [*domain.parents.numbers, *([domain.beyond] if root.outside is None else [])]
    order = sorted(range(len(placed)), key=lambda cell: placed[cell])
    sizes = [len(list(same)) for _, same in groupby(placed[cell] for cell in order)]
    ends = list(accumulate(sizes, initial=0))
    spans = tuple(pairwise(ends))
    return ColumnExpression(name, domain.column, root, domain.labels, tuple(order), spans, domain)


def _summed_form(base: ColumnExpression, name: str, runs: list[Span]) -> ColumnExpression:
    """Sums of runs of what a form has, from a first to before a last one."""
    spans = tuple((base.spans[first][0], base.spans[end - 1][1]) for first, end in runs)
    labels = tuple(_span_label(base, first, end) for first, end in runs)
    return ColumnExpression(name, base.root, base.domain, labels, base.order, spans, None)


def _bin_edges(base: ColumnExpression) -> tuple[str, ...]:
    """The ends of bins, as texts; none where cells have names."""
    cells = base.cells
    if isinstance(cells, Range):
        return tuple(repr(float(rational(edge))).removesuffix(".0") for edge in cells.edges)
    if isinstance(cells, Dates) and not isinstance(cells.edges, str):
        return tuple(str(edge) for edge in cells.edges)
    return ()


def _span_label(base: ColumnExpression, first: int, end: int) -> str:
    if edges := _bin_edges(base):
        return f"{edges[first]}..{edges[end]}"
    names = base.labels[first], base.labels[end - 1]
    return str(names[0]) if end == first + 1 else f"{names[0]}..{names[1]}"


def _read_spans(base: ColumnExpression, name: str, listed: object) -> list[Span]:
    """Ranges as people write them: [18, 29] or "18..29"."""
    if not isinstance(listed, list | tuple) or not 1 <= len(listed) <= MAX_RANGES:
        accepted = f'a list of 1 to {spell(MAX_RANGES)} ranges, such as [18, 29] or "18..29"'
        raise invalid_value(name, accepted, repr(listed)[:80])
    result = [_read_one(base, name, each) for each in listed]
    for index, each in enumerate(result):
        if each in result[:index]:
            raise InvalidInput(
                f"{name} has the range {_span_label(base, *each)!r} twice", field=name
            )
    if all(end - first == len(base.labels) for first, end in result):
        raise InvalidInput(
            f"{name} has only ranges over all groups, which count everything",
            field=name,
            hint="add a range that leaves something out",
        )
    return result


def _read_one(base: ColumnExpression, name: str, given: object) -> Span:
    ends: Any = given.split("..") if isinstance(given, str) else given
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        raise invalid_value(name, 'ranges such as [18, 29] or "18..29"', repr(given)[:80])
    if edges := _bin_edges(base):
        known, what = edges, "edges of its bins"
        first, last = (_find_index(known, _spell_edge(base, end)) for end in ends)
    else:
        declared = len(base.labels) - (base.domain.outside is None)
        known, what = tuple(map(str, base.labels[:declared])), "declared values"
        first, last = (_find_index(known, str(end).strip()) for end in ends)
    if first is None or last is None:
        wrong = ends[0] if first is None else ends[1]
        raise InvalidInput(
            f"{name} has a range that ends at {shorten(repr(wrong)[:80])}, which is not one of "
            f"the {what}",
            field=name,
            value=wrong,
        )
    end = last if edges else last + 1
    if first >= end:
        raise InvalidInput(
            f"{name} has the range {shorten(repr(given)[:80])}, whose end is not above its start",
            field=name,
            value=given,
        )
    return first, end


def _spell_edge(base: ColumnExpression, end: object) -> str:
    """An end as edges are spelled; as it is where it is none."""
    try:
        if isinstance(base.cells, Dates):
            return read_day(end.strip() if isinstance(end, str) else end, "end").isoformat()
        return repr(float(rational(end))).removesuffix(".0")
    except InvalidInput:
        return str(end)


def _find_index(known: tuple[str, ...], name: str) -> int | None:
    return known.index(name) if name in known else None


LEVEL_COUNT = 16
FINEST_LOG_RATIO = math.log(1.02)
"""Parts of ε that are closer than this need no levels of their own."""
GRID_STEPS = 8
"""Widths of Gaussian noise in each doubling of the variance."""
FEW_TABLES = 16
"""Up to this many different widths are taken as they are."""
SHARE_STEPS = 2**40
FEWER_TABLES = "spend more budget, or ask for fewer tables"


@dataclass(frozen=True)
class NoisyTable:
    """A measurement with its noise.

    Attributes:
        noise: of every number of it.
    """

    measurement: Measurement
    noise: Noise

    def cost(self, sizes: tuple[int, ...], relation: str, rows: int) -> Fraction:
        """ε or ρ between neighbours of a relation."""
        if isinstance(self.noise, GaussianNoise):
            return self.noise.cost(self.measurement.squared_l2_sensitivity(sizes, relation, rows))
        return self.noise.cost(self.measurement.l1_sensitivity(sizes, relation, rows))

    def to_dict(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {**self.measurement.to_dict(names), **self.noise.to_dict()}


def measure_counts(noisy: Sequence[NoisyTable], counts: Sequence[Array]) -> list[Array]:
    """What is measured of the true counts, each with its noise."""
    exact = [each.measurement.of_counts(one) for each, one in zip(noisy, counts, strict=True)]
    return [each.noise.draw(one.shape) + one for each, one in zip(noisy, exact, strict=True)]


def noisy_tables(
    spending: BudgetAllocation, sizes: tuple[int, ...], share: Share, rows: int
) -> tuple[NoisyTable, ...]:
    """The measurements with noise whose cost is within the share."""
    if spending.noise == "gaussian":
        widths = _gaussian_variances(spending, sizes, share, rows)
    else:
        widths = _laplace_scales(spending, sizes, share, rows)
    noises = [make_noise(spending.noise, width).check_drawable(FEWER_TABLES) for width in widths]
    pairs = zip(spending.measurements, noises, strict=True)
    return tuple(NoisyTable(each, noise) for each, noise in pairs)


def table_costs(tables: Sequence[NoisyTable], sizes: tuple[int, ...], rows: int) -> dict[str, Cost]:
    """What all measurements cost under each relation. The ρ of Laplace noise is that of each table,
    ε²/2, added up: less than of one answer with all of the ε."""
    result = {}
    for relation in NEIGHBOUR_RELATIONS:
        # Equal costs first: sums of few different denominators are short.
        prices = Counter(each.cost(sizes, relation, rows) for each in tables)
        total = sum((price * count for price, count in prices.items()), Fraction(0))
        if tables[0].noise.kind == "gaussian":
            result[relation] = Cost.gaussian(total)
        else:
            rho = sum((price**2 * count for price, count in prices.items()), Fraction(0)) / 2
            result[relation] = replace(Cost.pure(total), rho=Cost.gaussian(rho).rho)
    return result


def spread_words(noisy: Sequence[NoisyTable], more: Iterable[float] = ()) -> str:
    """The kind of noise and how wide it is, with widths of noise of the same kind."""
    kind = "Gaussian, σ" if noisy[0].noise.kind == "gaussian" else "Laplace, scale"
    spreads = [*(each.noise.spread for each in noisy), *more]
    ends = dict.fromkeys((min(spreads), max(spreads)))
    return f"{kind} {' to '.join(spell(spread, 4) for spread in ends)}"


def noise_words(noisy: Sequence[NoisyTable]) -> str:
    """How many tables are measured, with which noise."""
    count = "1 table" if len(noisy) == 1 else f"{len(noisy)} tables"
    return f"{count} measured, {spread_words(noisy)}"


def workload_noise(
    workload: Workload, share: Share, rows: int, goal: str
) -> tuple[NoisyTable, ...]:
    """What to measure for a workload, with the noise that a share buys."""
    noise = "gaussian" if share.rho else "laplace"
    spending = allocate_budget(workload, noise, share.relation, goal, rows)
    return noisy_tables(spending, workload.sizes, share, rows)


def half_widths(workload: Workload, noisy: Sequence[NoisyTable]) -> list[float]:
    """What 95% of the numbers of each table are within, for the least exact of them: weighted sums
    of Laplace noises have 95% within fewer standard errors than one noise has."""
    measurements = [each.measurement for each in noisy]
    variances = [each.noise.variance for each in noisy]
    largest = cell_variances(workload, measurements, variances).tolist()
    for number, each in sum_variances(workload, measurements, variances).items():
        largest[number] = float(each.max())
    reach = NORMAL_QUANTILE if noisy[0].noise.kind == "gaussian" else LAPLACE_QUANTILE
    return [reach * math.sqrt(each) for each in largest]


def allowed_half_width(within: object) -> float:
    """The largest of `half_widths` for which whole noise is within a width: what is beyond it
    begins at the next whole number, as if continuous noise were beyond half a step less. Noise of
    few steps has tails of its own, and gets half a step less in any case."""
    width = float(rational(within, "within"))
    return min(width, math.floor(width) + 0.5) if width >= FEW_STEPS else width - 0.5


FEW_STEPS = 5


def plan_workload(
    table: Table,
    share: Share,
    cells: GroupGrid,
    workload: Workload,
    rows: int,
    where: str | None,
    goal: str = "mean",
) -> tuple[tuple[NoisyTable, ...], TableScan, dict[str, Any]]:
    """What to measure for a workload, the scan that counts it, and the fields of a cost estimate
    that follow.

    Args:
        rows: how many rows of a privacy unit count.
    """
    noisy = workload_noise(workload, share, rows, goal)
    word = "rho" if share.rho else "epsilon"
    scan = TableScan(cells, tuple(each.measurement.attributes for each in noisy))
    costs = [float(each.cost(workload.sizes, share.relation, rows)) for each in noisy]
    measured = tuple(
        {**each.to_dict(cells.columns), word: cost} for each, cost in zip(noisy, costs, strict=True)
    )
    expression = table.check(scan.expression(table, where, rows))
    return noisy, scan, {"expression": expression, "measured": measured}


def estimate_workload(
    workload: Workload, noisy: Sequence[NoisyTable], values: Sequence[Array]
) -> tuple[dict[Attributes, Array], list[Array], list[IntervalRadii]]:
    """(residuals, tables, radii of their intervals) from what was measured: from here on no row
    plays a part."""
    measurements = [each.measurement for each in noisy]
    variances = [each.noise.variance for each in noisy]
    residuals = estimate_residuals(workload, measurements, variances, values)
    radii = interval_radii(
        workload, measurements, variances, lambda number, shape: noisy[number].noise.draw(shape)
    )
    return residuals, estimate_tables(workload, residuals), radii


def measured_values(
    noisy: Sequence[NoisyTable], values: Sequence[Array], names: tuple[str, ...]
) -> list[dict[str, Any]]:
    pairs = zip(noisy, values, strict=True)
    return [{**each.to_dict(names), "values": result.tolist()} for each, result in pairs]


def _laplace_scales(
    spending: BudgetAllocation, sizes: tuple[int, ...], share: Share, rows: int
) -> list[Fraction]:
    """Scales whose ε, in whole units, add up to the share at most."""
    pot = int(share.epsilon * EPSILON_UNITS)
    levels = _level_parts(spending.parts)
    units = [int(pot * Fraction(part)) for part in levels / levels.sum() * (1 - 2.0**-40)]
    if min(units) < 1 or sum(units) > pot:
        message = "a weight leaves nothing of the budget for its table"
        raise InvalidInput(message, field="weight", hint="make it larger")
    return [
        Fraction(each.l1_sensitivity(sizes, share.relation, rows) * EPSILON_UNITS, unit)
        for each, unit in zip(spending.measurements, units, strict=True)
    ]


def _level_parts(parts: Array) -> Array:
    """Parts on a few levels at equal ratios, each on the nearest."""
    logs = np.log(parts)
    span = float(logs.max() - logs.min())
    if span < 1e-9:
        return np.full(len(parts), 1.0)
    steps = min(LEVEL_COUNT - 1, max(1, math.ceil(span / FINEST_LOG_RATIO)))
    levels = np.rint((logs - logs.min()) / span * steps)
    return np.asarray(np.exp(levels * (span / steps)))


def _gaussian_variances(
    spending: BudgetAllocation, sizes: tuple[int, ...], share: Share, rows: int
) -> list[Fraction]:
    """Variances, on the grid times one common number, whose ρ add up to the share at most."""
    squares = [
        each.squared_l2_sensitivity(sizes, share.relation, rows) for each in spending.measurements
    ]
    ideal = [
        float(square) / (2 * float(part) * float(share.rho))
        for square, part in zip(squares, spending.parts, strict=True)
    ]
    if len(set(ideal)) <= FEW_TABLES:
        widths = [Fraction(each) for each in ideal]
    else:
        widths = [_round_to_grid(each) for each in ideal]
    sums: dict[Fraction, Fraction] = {}
    for width, square in zip(widths, squares, strict=True):
        sums[width] = sums.get(width, Fraction(0)) + square / 2
    spent = sum((moved / width for width, moved in sums.items()), Fraction(0))
    common = Fraction(math.ceil(spent / share.rho * SHARE_STEPS), SHARE_STEPS)
    return [width * common for width in widths]


def _round_to_grid(value: float) -> Fraction:
    """The nearest power of 2^(1/8), its fraction of a power of 4 to 24 bits."""
    fours, eighths = divmod(round(GRID_STEPS * math.log2(value)), 2 * GRID_STEPS)
    return Fraction(round(2 ** (eighths / GRID_STEPS) * 2**24), 2**24) * Fraction(4) ** fours


@dataclass(frozen=True)
class MarginalRequest:
    """What is asked, over what is measured.

    Attributes:
        cells: the columns that are measured, with their domains.
        workload: the tables over them.
        forms: how each column of each table was asked, in the order of the workload's sets.
    """

    cells: GroupGrid
    workload: Workload
    forms: tuple[tuple[ColumnExpression, ...], ...]

    @property
    def names(self) -> list[list[str]]:
        return [[form.name for form in each] for each in self.forms]

    def labels(self) -> dict[str, list[str | int]]:
        """What the rows of each column are called, asked or measured."""
        asked = {form.name: list(form.labels) for each in self.forms for form in each}
        measured = zip(self.cells.columns, self.cells.domains, strict=True)
        return asked | {name: list(domain.labels) for name, domain in measured}

    def sums(self) -> dict[str, dict[str, object]]:
        """How what was asked is made from what is measured, where it is not the same: runs of
        cells, in an order of them, by the name of what was asked."""
        result: dict[str, dict[str, object]] = {}
        tables = zip(self.forms, self.workload.sets, self.workload.sums, strict=True)
        for forms, attributes, sums in tables:
            for form, attribute, own in zip(forms, attributes, sums, strict=True):
                if own is not None:
                    result[form.name] = {
                        "of": self.cells.columns[attribute],
                        "order": list(own.order or range(own.size)),
                        "runs": [list(span) for span in own.spans],
                    }
        return result


@lru_cache(maxsize=4)
def asked_tables(
    named: tuple[ColumnExpression, ...],
    sets: tuple[Attributes, ...],
    weights: tuple[float, ...],
    field: str,
) -> MarginalRequest:
    """Tables over forms. The last few are kept, since a query asks for its own more than once.

    Args:
        sets: the indices of each table's forms among those named.
        field: what tables are called in a refusal.
    """
    roots = list(dict.fromkeys(form.root for form in named))
    by_root = {root: tuple(form for form in named if form.root == root) for root in roots}
    parts = {root: _parts(by_root[root]) for root in roots}
    places = {root: place for place, root in enumerate(roots)}
    sums = {form: _form_sums(form, parts[form.root]) for form in named}
    tables = []
    for each in sets:
        own = sorted((named[index] for index in each), key=lambda form: places[form.root])
        for root, same in groupby(own, key=lambda form: form.root):
            several = [form.name for form in same]
            if len(several) > 1:
                message = (
                    f"{field} has a table with {' and '.join(map(repr, several))}, which are both "
                    f"of {root}"
                )
                hint = "name a column once a table, in one expression or at one level"
                raise InvalidInput(message, field=field, value=several, hint=hint)
        tables.append(tuple(own))
    domains = [_measured_column(by_root[root], parts[root]) for root in roots]
    sizes = {root: len(domain.labels) for root, (_, domain) in zip(roots, domains, strict=True)}
    for wanted in tables:
        if (cells := prod(sizes[form.root] for form in wanted)) > MAX_MARGINAL_CELLS:
            asked = ", ".join(form.name for form in wanted)
            message = (
                f"{field} has a table with {spell(cells)} cells ({asked}); at most "
                f"{spell(MAX_MARGINAL_CELLS)} are answered"
            )
            raise InvalidInput(message, field=field, value=cells)
    workload = Workload(
        tuple(sizes.values()),
        tuple(tuple(places[form.root] for form in each) for each in tables),
        weights,
        tuple(tuple(sums[form] for form in each) for each in tables),
    )
    measured = GroupGrid(tuple(name for name, _ in domains), tuple(domain for _, domain in domains))
    return MarginalRequest(measured, workload, tuple(tables))


@lru_cache(maxsize=64)
def _parts(forms: tuple[ColumnExpression, ...]) -> tuple[int, ...]:
    """For each cell of a root the number of its part: cells that all sums have or leave out."""
    numbers: dict[tuple[int, ...], int] = {}
    marks = zip(*(form.marks for form in forms), strict=True)
    return tuple(numbers.setdefault(each, len(numbers)) for each in marks)


def _form_sums(form: ColumnExpression, parts: tuple[int, ...]) -> Sums | None:
    """A form over parts; None where it is these. Its sums hold whole parts, so that in the order in
    which parts first come, those of a sum are a run."""
    first: dict[int, int] = {}
    for index, cell in enumerate(form.order):
        first.setdefault(parts[cell], index)
    starts = list(first.values())
    spans = tuple((bisect_left(starts, a), bisect_left(starts, b)) for a, b in form.spans)
    order = tuple(first)
    if order == tuple(range(len(order))):
        order = ()
        if spans == tuple((index, index + 1) for index in range(len(first))):
            return None
    return Sums(len(first), spans, order)


def _measured_column(
    forms: tuple[ColumnExpression, ...], parts: tuple[int, ...]
) -> tuple[str, Cellular]:
    for form in forms:
        if form.cells is not None and _form_sums(form, parts) is None:
            return form.name, form.cells
    root = forms[0]
    labels = root.domain.labels
    held: dict[int, list[int]] = {}
    for cell, part in enumerate(parts):
        held.setdefault(part, []).append(cell)
    names = tuple(_run_names(cells, labels) for cells in held.values())
    return root.root, MergedValues(root.root, root.domain, parts, names)


def _run_names(cells: list[int], labels: tuple[str | int, ...]) -> str:
    """What a part is called: its cells, runs of them by their ends."""
    runs: list[list[int]] = []
    for cell in cells:
        if runs and cell == runs[-1][-1] + 1:
            runs[-1].append(cell)
        else:
            runs.append([cell])
    said = [
        str(labels[run[0]]) if len(run) == 1 else f"{labels[run[0]]} to {labels[run[-1]]}"
        for run in runs
    ]
    return " and ".join(said)


ANSWER_DIGITS = 6
"""Decimals of an estimate."""
MAX_LISTED_CELLS = 1_000
"""Sums of a table whose standard errors are listed one by one."""
CELL_HEADINGS = ("value", "low", "high", "all_low", "all_high", "whole")


def table_errors(asked: MarginalRequest, noisy: Sequence[NoisyTable]) -> list[dict[str, Any]]:
    """For each table its columns and the standard error of a cell. Sums are not equally exact: for
    them it is the root of the mean square, and a list where they are few."""
    measurements = [each.measurement for each in noisy]
    variances = [each.noise.variance for each in noisy]
    means = cell_variances(asked.workload, measurements, variances)
    sums = sum_variances(asked.workload, measurements, variances)
    result = []
    for number, columns in enumerate(asked.names):
        one: dict[str, Any] = {"columns": columns, "standard_error": float(means[number] ** 0.5)}
        if number in sums:
            each = np.sqrt(sums[number]).ravel()
            one |= {"least_error": float(each.min()), "largest_error": float(each.max())}
            if each.size <= MAX_LISTED_CELLS:
                one["standard_errors"] = each.tolist()
        result.append(one)
    return result


def tables_answer(
    asked: MarginalRequest,
    noisy: Sequence[NoisyTable],
    values: Sequence[Array],
    errors: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Everything that may be shown, as JSON data."""
    residuals, tables, radii = estimate_workload(asked.workload, noisy, values)
    wholes = _whole_tables(asked.workload, noisy, residuals)
    rows: list[list[Any]] = []
    described = []
    for number, forms in enumerate(asked.forms):
        title = ", ".join(form.name for form in forms) or "total"
        radius, table = radii[number], tables[number]
        numbers = _cell_numbers(table.ravel(), radius, wholes[number].ravel())
        for label, cell in zip(product(*(form.labels for form in forms)), numbers, strict=True):
            rows.append([title, ", ".join(map(str, label)), *cell])
        described.append(
            {
                **errors[number],
                "cells": int(table.size),
                "within": float(np.max(radius.cell)),
                "all_within": float(np.max(radius.table)),
                "adds_up": all(form.cells is not None for form in forms),
            }
        )
    details = {
        "confidence": CONFIDENCE_LEVEL,
        "domains": asked.labels(),
        "tables": described,
        "measured": measured_values(noisy, values, asked.cells.columns),
    }
    if sums := asked.sums():
        details["sums"] = sums
    return {"columns": ["table", "cell", *CELL_HEADINGS], "rows": rows, "details": details}


def _whole_tables(
    workload: Workload, noisy: Sequence[NoisyTable], residuals: dict[Attributes, Array]
) -> list[Array]:
    """The whole version of each table: sums are those of the whole cells."""
    sets = tuple(dict.fromkeys(workload.sets))
    plain = Workload(workload.sizes, sets)
    variances = [each.noise.variance for each in noisy]
    spread = cell_variances(plain, [each.measurement for each in noisy], variances)
    cells = [estimate_table(plain, residuals, each) for each in sets]
    whole = dict(zip(sets, whole_tables(cells, spread.tolist(), float(residuals[()])), strict=True))
    return [
        sum_cells(whole[each], sums)
        for each, sums in zip(workload.sets, workload.sums, strict=True)
    ]


def _cell_numbers(values: Array, radius: IntervalRadii, wholes: Array) -> list[list[Any]]:
    cell, table = np.ravel(radius.cell), np.ravel(radius.table)
    columns = [values + side for side in (0.0, -cell, cell, -table, table)]
    rounded = [np.round(each, ANSWER_DIGITS).tolist() for each in columns]
    return [list(each) for each in zip(*rounded, wholes.tolist(), strict=True)]
