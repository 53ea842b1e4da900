"""Bayesian semantic privacy of noise on sums, by parts of the rows that depend on each other."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from whosin.errors import Unsupported
from whosin.exact import Array, exact_fraction
from whosin.mechanisms import Composed, Geometric
from whosin.notions import certificates
from whosin.notions.base import Level, Witness
from whosin.notions.bayesian_privacy import (
    CLOSED_ETA,
    MAX_JOINT_ROWS,
    WorstWindow,
    bracket_floats,
    noisy_sum,
    search_windows,
    window_rows,
    window_witness,
)
from whosin.notions.bsp_interior import (
    derivative_coefficients,
    evaluate_lines,
    product_coefficients,
    real_roots,
)
from whosin.notions.messages import (
    Cliques,
    NoisySums,
    add_noise,
    align_axes,
    convolve_sums,
    list_possible,
    output_points,
    show_possible,
)
from whosin.notions.network_leakage import (
    NetworkSearch,
    WorstCase,
    network_witness,
    refuse_size,
    search_within_reach,
)
from whosin.notions.semantic_privacy import (
    default_ratios,
    name_left_out,
    pattern_rows,
    semantic_witness,
    spreads_by_pattern,
)
from whosin.priors import MarkovChain, Prior
from whosin.priors.base import Factor
from whosin.spaces import Records

# Noise on sums over more rows.
#
# **Parts.** Given the known rows, r is a weighted mean of what it is when a row that these separate
# from row i is known too. So the worst known rows are everything in the other parts (components) of
# the prior, and the largest set of known rows in row i's own part need not be found: all sets are
# in one table, (m+1)^part × sums, in place of worlds.
#
# **Shifts.** The largest r and the least one are seen at one output, under known values of their
# own. What is known in other parts moves the output, in each of the two cases by what these parts
# can add up to: if y − t is the output of the part alone, the two t differ by any of a set of
# differences. Where that covers the part's range, max r and min r may be looked for at outputs of
# their own: both are then attained at centres (F10) and the spread is exact. Where it does not,
# pairs of centres are compared, and between them the roots (`bsp_interior`).
#
# **Beyond tables.** max r and min r alone are two searches for the leakage to and from the default;
# their product bounds the spread. One set of unknown rows evaluated in both directions is a lower
# end.

MAX_PART_ENTRIES = 1 << 24
"""Entries of a table over all sets of known rows of one part, times sums."""
MAX_DIFFERENCES = 1 << 20
"""Cells of a table of differences between what the known rows add."""
MAX_ROOT_PAIRS = 1 << 22
"""Pairs of conditions whose roots between centres are taken."""
MAX_EVALUATED_SETS = 60
"""How many sets of unknown rows are evaluated in both directions."""


@dataclass
class _Spread:
    """The largest ln (max r / min r) so far, what none exceeds, and the case."""

    value: float = 0.0
    upper: float = 0.0
    row: int = 0
    known: tuple[int, ...] = ()
    output: Hashable = None


def measure_spread(
    prior: Prior,
    mechanism: object,
    space: Records,
    factors: Sequence[Factor],
    query: NoisySums,
    default: int,
) -> Level:
    """Bayesian semantic privacy of noise on sums, from the factors of the prior."""
    if isinstance(mechanism, Geometric) and query.step != (Fraction(1),):
        query = _refine_steps(query)
    search = NetworkSearch(factors, query, space.values)
    note = _left_out_by_factors(search, default)
    worst, done = _Spread(output=_shown_output(query, np.zeros(len(query.order)))), set[Any]()
    beyond: list[int] = []
    shifts = _Shifts(search)
    for rows in search.components():
        key = _looks(search, rows)
        if key in done:
            continue
        done.add(key)
        table = _part_sums(search, rows)
        if table is None:
            beyond += rows
        else:
            whole = isinstance(mechanism, Geometric)
            _PartSpread(search, rows, table, default, shifts.beside(rows), whole).compare(worst)
    if beyond:
        _bound_beyond_tables(search, prior, mechanism, space, beyond, default, worst, shifts)
    return _level_of_spread(worst, note, max(map(len, shifts.parts)))


def _refine_steps(query: NoisySums) -> NoisySums:
    """Sums in steps of 1, so that every whole output is a centre."""
    step = query.step[0]
    rates = tuple(tuple(rate / float(step) for rate in each) for each in query.rates)
    return replace(query, weights=query.weights * int(step), rates=rates, step=(Fraction(1),))


def _level_of_spread(worst: _Spread, note: str, rows: int) -> Level:
    value, theorems = worst.value, () if note else ("T15",)
    exact, lower, upper, reason = bracket_floats(value, max(value, worst.upper), rows)
    case = semantic_witness(_exp(value), worst.row, worst.output, worst.known)
    if not exact and not reason:
        reason = (
            "The largest and the least ratio of what is known may not occur at one output, or for "
            "one set of known rows: the bracket has their product (T15)."
        )
    ends = math.tanh(upper / 4), None if lower is None else math.tanh(lower / 4)
    return Level(ends[0], case, exact, theorems, ends[1], note=f"{note} {reason}".strip())


def _exp(value: float) -> Fraction | float:
    return Fraction(math.exp(value)) if value < 700 else math.inf


def _looks(search: NetworkSearch, rows: Sequence[int]) -> tuple[Any, ...]:
    """What two parts that look the same have in common."""
    place = {row: number for number, row in enumerate(rows)}
    tables = tuple(
        (tuple(place[r] for r in scope), table.tobytes())
        for scope, table in search.factors_within(rows)
    )
    return tuple(search.query.weights[row].tobytes() for row in rows), tables


def _joint_table(search: NetworkSearch, rows: Sequence[int]) -> Array:
    """The product of a part's factors, scaled, in floats that hold it."""
    mass = np.ones((search.values,) * len(rows), dtype=np.longdouble)
    for scope, table in search.factors_within(rows):
        mass = mass * align_axes(table, scope, list(rows))
    mass = mass / mass.max()
    return np.asarray(mass, None if mass[mass > 0].min() < MIN_NORMAL else float)


MIN_NORMAL = 1e-250


def _part_sums(search: NetworkSearch, rows: Sequence[int]) -> Array | None:
    """Pr[known values, sum over the part] for every set of known rows: (m+1)^part × sums; nothing
    where there is no room."""
    spans = search.query.weights[list(rows)].max(axis=1).sum(axis=0)
    grids = (
        (int(span) + 1) ** max(1, len(rates))
        for span, rates in zip(spans, search.query.rates, strict=True)
    )
    conditions = (search.values + 1) ** len(rows)
    if conditions * math.prod(grids) > MAX_PART_ENTRIES:
        return None
    mass = _joint_table(search, rows)
    sums = mass.reshape(*mass.shape, *[1] * search.sums)
    for axis, row in enumerate(rows):
        moved = search.shift_values(sums, row, axis)
        sums = np.concatenate([moved, moved.sum(axis=axis, keepdims=True)], axis=axis)
    return sums.reshape(conditions, *sums.shape[len(rows) :])


class _Differences:
    """By what the known values of other rows can make two sums differ.

    Args:
        sets: what each independent group of rows can add up to (vectors).
        span: the largest differences that matter.
        complete: whether these are all other rows, and everything they can add up to.
    """

    def __init__(self, sets: Iterable[Array], span: Array, complete: bool) -> None:
        self.tables = [np.ones((1,) * len(span), dtype=bool)]
        self.sets: list[Array] = []
        self.fixed = np.zeros(len(span), dtype=int)
        self.span, self.complete, cells = span, complete, 0
        for each in sets:
            table = None if self.covers else self._widen(each, MAX_DIFFERENCES * 16 - cells)
            if table is None:
                self.complete = self.complete and not np.ptp(each, axis=0).any()
                self.fixed = self.fixed + each[0]
                continue
            cells += table.size
            self.tables.append(table)
            self.sets.append(each)

    @property
    def covers(self) -> bool:
        """Whether every difference that matters is possible."""
        table = self.tables[-1]
        half = np.array(table.shape) // 2
        if (half < self.span).any():
            return False
        box = tuple(slice(h - s, h + s + 1) for h, s in zip(half, self.span, strict=True))
        return bool(table[box].all())

    def _widen(self, vectors: Array, room: int) -> Array | None:
        table = self.tables[-1]
        moves = np.unique((vectors[:, None] - vectors[None]).reshape(-1, vectors.shape[1]), axis=0)
        if not moves.any():
            return None
        more = moves.max(axis=0)
        shape = tuple(int(n) for n in np.array(table.shape) + 2 * more)
        if math.prod(shape) > min(room, MAX_DIFFERENCES):
            return None
        result = np.zeros(shape, dtype=bool)
        for move in moves + more:
            at = tuple(slice(int(a), int(a) + n) for a, n in zip(move, table.shape, strict=True))
            result[at] |= table
        return result

    def between(self, low: Iterable[float], high: Iterable[float]) -> Array | None:
        """A possible difference within bounds."""
        table = self.tables[-1]
        half = np.array(table.shape) // 2
        least = [max(0, int(h + max(a, -h))) for a, h in zip(low, half, strict=True)]
        most = [int(h + min(b, h)) + 1 for b, h in zip(high, half, strict=True)]
        if any(a >= b for a, b in zip(least, most, strict=True)):
            return None
        inside = np.argwhere(table[tuple(map(slice, least, most))])
        return None if not len(inside) else inside[0] + least - half

    def split(self, difference: Array) -> Array:
        """What the first of two sums is, where the second is larger by this."""
        first = self.fixed.copy()
        for number in reversed(range(len(self.sets))):
            before, vectors = self.tables[number], self.sets[number]
            half = np.array(before.shape) // 2
            for one, two in product(vectors, repeat=2):
                left = difference - (two - one)
                if (abs(left) <= half).all() and before[tuple(left + half)]:
                    first, difference = first + one, left
                    break
        return first


class _Shifts:
    """What the rows beside a part can add up to."""

    def __init__(self, search: NetworkSearch) -> None:
        self.search = search
        self.parts = list(search.components())
        self._sums: dict[Any, tuple[list[Array], bool]] = {}

    def beside(self, region: Sequence[int]) -> _Differences:
        """What all rows add that are not in a region of one part; if it is not the whole part,
        every combination of values of the part's rows has to be possible."""
        inside, weights = set(region), self.search.query.weights
        sets, complete = list[Array](), True
        for part in self.parts:
            if inside.isdisjoint(part):
                more, whole = self._of_part(part)
            else:
                more, whole = [weights[row] for row in part if row not in inside], True
            sets, complete = [*sets, *more], complete and whole
        return _Differences(sets, weights[sorted(inside)].max(axis=1).sum(axis=0), complete)

    def _of_part(self, part: Sequence[int]) -> tuple[list[Array], bool]:
        search, key = self.search, _looks(self.search, part)
        if key not in self._sums:
            weights = [search.query.weights[row] for row in part]
            if all((table > 0).all() for _, table in search.factors_within(part)):
                self._sums[key] = weights, True
            elif search.values ** len(part) <= MAX_DIFFERENCES:
                values = np.argwhere(_joint_table(search, part) > 0)
                added = sum(w[values[:, place]] for place, w in enumerate(weights))
                self._sums[key] = [np.unique(added, axis=0)], True
            else:
                self._sums[key] = [np.zeros((1, search.sums), dtype=int)], False
        return self._sums[key]


@dataclass
class _PartSpread:
    """The largest spreads of a part's rows: (max r, min r) by pattern and output of the part."""

    search: NetworkSearch
    rows: Sequence[int]
    sums: Array
    default: int
    shifts: _Differences
    whole: bool

    def __post_init__(self) -> None:
        self.space = Records(len(self.rows), self.search.values)
        self.mass = self.sums.reshape(len(self.sums), -1).sum(axis=1)[:, None]
        self.points = _output_grid(self.search.query, self.sums.shape[1:])

    def compare(self, worst: _Spread) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            densities = add_noise(self.sums, self.search.query.rates)
            table = densities / np.where(self.mass > 0, self.mass, np.nan)
        for position in range(len(self.rows)):
            view = certificates.row_axis(table, self.space, position)
            values, default = self.space.values, self.default
            ratios = default_ratios(view[:, :values], view[:, default : default + 1])
            most, least = spreads_by_pattern(ratios, self.space, position)
            self.compare_patterns(worst, position, np.log(most), np.log(least))

    def compare_patterns(self, worst: _Spread, position: int, most: Array, least: Array) -> None:
        """The largest spread of one row, from ln max r and ln min r: patterns × outputs."""
        with np.errstate(invalid="ignore"):
            bounds = np.nan_to_num(
                np.fmax.reduce(most, axis=1) - np.fmin.reduce(least, axis=1), nan=0.0
            )
        for pattern in np.argsort(-bounds)[:MAX_COMPARED_PATTERNS]:
            if bounds[pattern] <= worst.value:
                break
            pair = int(np.nanargmax(most[pattern])), int(np.nanargmin(least[pattern]))
            self._reach(worst, position, int(pattern), most, least, pair)
        same = np.nan_to_num(most - least)
        pattern, point = np.unravel_index(int(same.argmax()), same.shape)
        self._reach(worst, position, int(pattern), most, least, (int(point), int(point)))
        one = self.points.shape[1] == 1
        if one and not self.shifts.covers:
            self._compare_pairs(worst, position, most, least)
        if not (one and self.shifts.complete):
            worst.upper = max(worst.upper, float(bounds.max()))

    def _reach(
        self,
        worst: _Spread,
        position: int,
        pattern: int,
        most: Array,
        least: Array,
        pair: tuple[int, int],
    ) -> None:
        """Keep a pair of outputs of the part, where known values elsewhere can bring them about."""
        value = float(most[pattern, pair[0]] - least[pattern, pair[1]])
        if not value > worst.value:  # NaN where nothing can be compared
            return
        moved = self._difference(*pair)
        if moved is None:
            return
        self._keep(worst, value, position, pattern)
        worst.output = self._output(pair, moved)

    def _keep(self, worst: _Spread, value: float, position: int, pattern: int) -> None:
        known = pattern_rows(self.space, pattern, position)
        unknown = {r for place, r in enumerate(self.rows) if place not in known}
        worst.value, worst.row = value, self.rows[position]
        worst.known = tuple(r for r in range(len(self.search.neighbours)) if r not in unknown)

    def _ends(self, point: Array) -> tuple[Array, Array]:
        """Between which numbers each coordinate of an output may be, for the same likelihoods."""
        last = self.points.max(axis=0)
        return np.where(point == 0, -np.inf, point), np.where(point == last, np.inf, point)

    def _difference(self, first: int, second: int) -> Array | None:
        if first == second:
            return np.zeros(self.search.sums, dtype=int)
        (low, high), (low_, high_) = (self._ends(self.points[n]) for n in (first, second))
        least, most = low - high_, high - low_
        starts = np.cumsum([0, *map(len, self.search.query.rates)])[:-1]
        return self.shifts.between(
            np.maximum.reduceat(least, starts), np.minimum.reduceat(most, starts)
        )

    @cached_property
    def partners(self) -> list[Array]:
        """The outputs that can go together with each, where there is one coordinate."""
        table = self.shifts.tables[-1]
        half, counts = len(table) // 2, np.concatenate([[0], np.cumsum(table)])
        low, high = (each[:, 0] for each in self._ends(self.points))
        least = np.clip(low[:, None] - high[None], -half, half + 1).astype(int) + half
        most = np.clip(high[:, None] - low[None], -half - 1, half).astype(int) + half + 1
        possible = counts[most] > counts[np.minimum(least, most)]
        return [np.flatnonzero(row | (np.arange(len(row)) == n)) for n, row in enumerate(possible)]

    def _output(self, pair: tuple[int, int], moved: Array) -> Hashable:
        query = self.search.query
        counts = [len(rates) for rates in query.rates]
        shift = np.repeat(moved, counts)
        one, two = (self.points[n] for n in pair)
        low, high = self._ends(two)
        place = np.where((one - shift >= low) & (one - shift <= high), one, two + shift)
        return _shown_output(query, place + np.repeat(self.shifts.split(moved), counts))

    def _compare_pairs(self, worst: _Spread, position: int, most: Array, least: Array) -> None:
        """All pairs of outputs of the part that go together, and the roots between them."""
        size = len(self.points)
        for first, seconds in enumerate(self.partners):
            spread = np.nan_to_num(most[:, [first]] - least[:, seconds])
            pattern, second = np.unravel_index(int(spread.argmax()), spread.shape)
            pair = first, int(seconds[int(second)])
            self._reach(worst, position, int(pattern), most, least, pair)
        if self.whole or not self.shifts.complete:
            return
        gaps: list[tuple[float, int, int, int]] = []
        high = np.fmax(most[:, 1:], most[:, :-1])
        low = np.fmin(least[:, 1:], least[:, :-1])
        for one, two in product(range(size - 1), repeat=2):
            if self.shifts.between([one - two], [one - two]) is None:
                continue
            with np.errstate(invalid="ignore"):
                bound = high[:, one] - low[:, two]
            larger = np.flatnonzero(bound > worst.value + CLOSED_ETA)
            gaps += [(float(bound[p]), int(p), one, two) for p in larger]
        for most_, place, one, two in sorted(gaps, reverse=True):
            if most_ <= worst.value + CLOSED_ETA:
                break
            if not self._look_between(worst, position, place, (one, two)):
                worst.upper = max(worst.upper, most_)

    def _lines(self, position: int, pattern: int, gap: int) -> tuple[Array, Array]:
        """(u, d) of every condition of a pattern between two outputs, and with the default."""
        known = pattern_rows(self.space, pattern, position)
        values = self.space.values
        at = tuple(
            slice(0, values) if place in (*known, position) else values
            for place in range(self.space.rows)
        )
        shape = (values + 1,) * self.space.rows
        sums = self.sums.reshape(*shape, -1)[at]
        mass = self.mass.reshape(shape)[at]
        fall = np.exp(-self.search.query.rates[0][0] * np.arange(sums.shape[-1]))
        up = sums[..., gap + 1 :] @ fall[: sums.shape[-1] - gap - 1]
        down = sums[..., : gap + 1] @ fall[gap::-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            lines = np.stack([up, down], axis=-1) / mass[..., None]
        lines = np.moveaxis(lines, sorted((*known, position)).index(position), 0)
        default = np.broadcast_to(lines[self.default], lines.shape)
        possible = ~np.isnan(lines[..., 0]) & ~np.isnan(default[..., 0])
        return lines[possible], default[possible]

    def _look_between(
        self, worst: _Spread, position: int, pattern: int, gaps: tuple[int, int]
    ) -> bool:
        """Take the roots between two outputs; false where there are too many pairs."""
        rate = self.search.query.rates[0][0]
        (high, under), (low, over) = (self._lines(position, pattern, gap) for gap in gaps)
        ends = [math.exp(-rate), math.exp(rate)]
        tops = np.log(
            np.maximum(*(evaluate_lines(high, w) / evaluate_lines(under, w) for w in ends))
        )
        lows = np.log(np.minimum(*(evaluate_lines(low, w) / evaluate_lines(over, w) for w in ends)))
        some, other = tops > worst.value + lows.min(), lows < tops.max() - worst.value
        if int(some.sum()) * int(other.sum()) > MAX_ROOT_PAIRS:
            return False
        high, under = high[some][:, None], under[some][:, None]
        low, over = low[other][None], over[other][None]
        slope = derivative_coefficients(
            product_coefficients(high, over), product_coefficients(under, low)
        )
        for root in real_roots(*slope):
            w = np.where((root > ends[0]) & (root < ends[1]), root, 1.0)
            above = evaluate_lines(high, w) * evaluate_lines(over, w)
            value = np.log(above / (evaluate_lines(under, w) * evaluate_lines(low, w)))
            best = float(value.max(initial=0.0))
            if best > worst.value:
                moved = np.array([gaps[0] - gaps[1]])
                number = math.log(w.flat[int(value.argmax())]) / (2 * rate) + gaps[0] + 0.5
                self._keep(worst, best, position, pattern)
                place = np.array([number]) + self.shifts.split(moved)
                worst.output = _shown_output(self.search.query, place)
        return True


MAX_COMPARED_PATTERNS = 1000
"""How many of the patterns with the largest bounds are compared where not all are."""


def _output_grid(query: NoisySums, sizes: Sequence[int]) -> Array:
    """The deciding outputs of a part: outputs × releases, sum by sum."""
    grids = [
        output_points(len(rates), size, len(set(rates)) == 1)
        for rates, size in zip(query.rates, sizes, strict=True)
    ]
    return np.array([[n for point in points for n in point] for points in product(*grids)])


def _shown_output(query: NoisySums, place: Array) -> Hashable:
    """An output in the sums' own units, in the order of the releases."""
    starts = np.cumsum([0, *map(len, query.rates)])
    shown = []
    for number, release in query.order:
        steps = exact_fraction(float(place[starts[number] + release]))
        value = steps * query.step[number] + query.offset[number]
        shown.append(int(value) if value.denominator == 1 else float(value))
    return shown[0] if len(shown) == 1 else tuple(shown)


# Parts that are too large for a table.


def _bound_beyond_tables(
    search: NetworkSearch,
    prior: Prior,
    mechanism: object,
    space: Records,
    rows: Sequence[int],
    default: int,
    worst: _Spread,
    shifts: _Shifts,
) -> None:
    """Bound the spread of some rows by what they leak above and below the default."""
    query = noisy_sum(mechanism, space) if isinstance(prior, MarkovChain) else None
    one = not isinstance(mechanism, Composed) or len(mechanism.parts) == 1
    cases: list[tuple[float, int, frozenset[int]]] = []
    if (
        isinstance(prior, MarkovChain)
        and query is not None
        and (one or space.rows > MAX_JOINT_ROWS)
    ):
        found = WorstWindow(default=default)
        upper = search_windows(prior, space, query, found)
        worst.upper = max(worst.upper, upper)
        cases = [(upper, *window_rows(prior, space.rows, found))]
        if found.alone > worst.value:
            marginals = prior.marginals(space.rows)
            case = window_witness(prior, space, query, marginals, found)
            _reach_alone(worst, found.alone, case)
    else:
        for row in rows:
            cases += _bound_row(search, row, default, worst)
    done = set[tuple[int, frozenset[int]]]()
    for upper, row, unknown in sorted(cases, key=lambda case: -case[0]):
        near, climbed = {unknown}, -1.0
        while near and upper > worst.value + CLOSED_ETA and len(done) < MAX_EVALUATED_SETS:
            values = {}
            for each in near - {u for r, u in done if r == row}:
                done.add((row, each))
                values[each] = _evaluate_pattern(search, row, each, default, worst, shifts)
            unknown = max(values, key=values.__getitem__, default=frozenset())
            if not values or values[unknown] <= climbed:
                break
            climbed = values[unknown]
            near = {_still_connected(search, row, unknown - {out}) for out in unknown}


def _still_connected(search: NetworkSearch, row: int, unknown: frozenset[int]) -> frozenset[int]:
    """The unknown rows that known ones do not separate from a row."""
    found, edge = {row}, {row}
    while edge:
        edge = {near for each in edge for near in search.neighbours[each]} & unknown - found
        found |= edge
    return frozenset(found - {row})


def _bound_row(
    search: NetworkSearch, row: int, default: int, worst: _Spread
) -> list[tuple[float, int, frozenset[int]]]:
    """Bound one row's spread; its worst sets of unknown rows in either direction."""
    total, cases = 0.0, list[tuple[int, frozenset[int]]]()
    for side in ((slice(None), default), (default, slice(None))):
        search.best = WorstCase()
        search.counted = np.zeros((search.values, search.values), dtype=bool)
        search.counted[side] = True
        search.counted[default, default] = False
        try:
            search_within_reach(search, row)
        except Unsupported:  # nothing possible was found that has the default
            search.counted = None
            search_within_reach(search, row)
        total += search.best.upper
        if search.best.case is not None:
            cases.append((search.best.case[0], frozenset(search.best.case[4])))
            if search.counted is not None and search.best.value > worst.value:
                _reach_alone(worst, search.best.value, network_witness(search))
    worst.upper = max(worst.upper, total)
    return [(total, *case) for case in cases]


def _reach_alone(worst: _Spread, value: float, case: Witness) -> None:
    """Keep what one ratio to or from the default shows: the default's own is 1."""
    assert case.row is not None and case.known is not None
    worst.value, worst.row, worst.output = value, case.row, case.output
    worst.known = tuple(case.known)


def _evaluate_pattern(
    search: NetworkSearch,
    row: int,
    unknown: frozenset[int],
    default: int,
    worst: _Spread,
    shifts: _Shifts,
) -> float:
    """The spread of one row for one set of unknown rows, all others known; only where everything
    is possible, and there is room (otherwise 0)."""
    inside = [row, *sorted(unknown)]
    border = sorted({near for each in inside for near in search.neighbours[each]} - set(inside))
    axes, weights = [row, *border], search.query.weights
    spans = weights[[*inside, *border]].max(axis=1).sum(axis=0) + 1
    grid = math.prod(int(n) ** len(r) for n, r in zip(spans, search.query.rates, strict=True))
    room = MAX_PART_ENTRIES // grid
    within = search.factors_within(search.component(row))
    if search.values ** len(axes) > room or not all((table > 0).all() for _, table in within):
        return 0.0
    ones = [1] * search.sums
    messages = [
        (scope, table.reshape(*table.shape, *ones))
        for scope, table in search.factors_within(inside)
    ]
    left = set(unknown)
    while left:
        around = {r: {o for scope, _ in messages if r in scope for o in scope} for r in left}
        out = min(left, key=lambda r: (len(around[r]), r))
        if search.values ** len(around[out]) > room:
            return 0.0
        left.remove(out)
        used = [each for each in messages if out in each[0]]
        scope = (out, *sorted(around[out] - {out}))
        moved = search.shift_values(_multiply_messages(used, scope, search.sums), out, 0).sum(
            axis=0
        )
        messages = [each for each in messages if out not in each[0]]
        messages.append((scope[1:], moved / moved.max()))
    sums = _multiply_messages(messages, axes, search.sums)
    sums = np.broadcast_to(sums, (*(search.values,) * len(axes), *sums.shape[len(axes) :]))
    for place, each in enumerate(axes):
        sums = search.shift_values(sums, each, place)
    likelihoods = add_noise(sums, search.query.rates)
    total = sums.reshape(*sums.shape[: len(axes)], -1).sum(axis=-1)
    likelihoods = np.log(likelihoods / total[..., None])
    ratios = (likelihoods - likelihoods[default]).reshape(-1, likelihoods.shape[-1])
    flat = sums.reshape(-1, *sums.shape[len(axes) :])
    found, beside = _Spread(), shifts.beside([*inside, *border])
    part = _PartSpread(search, axes, flat, default, beside, True)
    part.compare_patterns(found, 0, ratios.max(axis=0)[None], ratios.min(axis=0)[None])
    if found.value > worst.value:
        worst.value, worst.row, worst.output = found.value, row, found.output
        worst.known = tuple(r for r in range(len(weights)) if r not in inside)
    return found.value


def _multiply_messages(
    messages: Sequence[tuple[Sequence[int], Array]], axes: Sequence[int], sums: int
) -> Array:
    """The product of tables over some rows and a sum each: that of the rows, and of the sums."""
    total = np.ones((1,) * (len(axes) + sums))
    for scope, table in messages:
        total = convolve_sums(total, align_axes(table, scope, axes), sums)
    return total


def _left_out_by_factors(search: NetworkSearch, default: int) -> str:
    """`_left_out`, from the factors: a row with another value can only be possible where it is not
    with the default if one of its factors says so."""
    if all((table > 0).all() for table in search.tables):
        return ""
    missing, compared = [], False
    for part in search.components():
        cliques = list_possible(search.factors_within(part), search.values)
        if cliques is None:
            raise refuse_size(search, part[0])
        for row in part:
            chances = show_possible(cliques, (row,))
            compared |= bool(chances[default] and chances.sum() > 1)
            if any(_excludes(search, cliques, n, row, default) for n in search.factors_of[row]):
                missing.append(row)
    return name_left_out(missing, compared, default)


def _excludes(search: NetworkSearch, cliques: Cliques, number: int, row: int, default: int) -> bool:
    """Whether what is possible for a factor's rows is not with the default in this row."""
    scope, table = search.factors[number][0], search.tables[number]
    never = np.take(table, [default], axis=scope.index(row)) == 0
    return bool((never & show_possible(cliques, scope)).any())
