"""Differential privacy on subsets and records: groups, sampling, identifiability, metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from whosin import beliefs
from whosin.documents import check_keys, read_object
from whosin.errors import (
    InvalidInput,
    UnknownName,
    Unsupported,
    check_count,
    invalid_value,
    read_list,
    read_whole,
    spell,
)
from whosin.exact import (
    ONE_HALF,
    Array,
    ball,
    ball_up,
    certificate_precision,
    divide_up,
    flint_rational,
    is_exact,
    log_up,
    rational,
    read_ranged,
    round_up,
)
from whosin.families import Independent, OneOf, SwapOfTwo, Worst
from whosin.families.base import Shift
from whosin.families.fixed_size import worst_swap
from whosin.families.independent import largest_addition
from whosin.mechanisms import Channel, Sampled, read_channel
from whosin.notions.base import (
    Certificate,
    Level,
    Notion,
    OfOnePrior,
    Witness,
    certify_shifts,
    certify_worst,
    make_witness,
    subset_lattice,
    worst_case,
)
from whosin.notions.certificates import (
    MAX_RECOMPUTED_BALLS,
    MAX_RECOMPUTED_ENTRIES,
    Certain,
    Nearest,
    bracket_level,
    case_along,
    largest_pair,
    level_from_ratio,
    record_channel,
    value_witness,
)
from whosin.notions.gains import world_name
from whosin.priors import Independent as IndependentPrior
from whosin.priors import PriorSet
from whosin.priors.sets import RowSet
from whosin.spaces import Records, Space
from whosin.spaces.arrays import exceeds_best, first_at_least, largest_ratio, scaled_products
from whosin.spaces.worlds import need_records


# Groups of rows: the tables that differ in at most g rows.
#
# B_j(x) is the least likelihood over the tables that differ from x in at most j rows. Row after
# row, B_j ← min(B_j, min along the row of B_{j−1}), with the B_{j−1} from before that row: O(n g
# m^n K).
def least_in_group(array: Array, space: Records, group: int) -> Array:
    """For each table and output the least likelihood among tables that differ in at most `group`
    rows; worlds × outputs."""
    steps = [array.copy() for _ in range(group + 1)]
    for row in range(space.rows):
        for j in range(group, 0, -1):  # from the largest: B_{j−1} has not seen this row yet
            view, below = (space.axis(each, row) for each in (steps[j], steps[j - 1]))
            np.minimum(view, below.min(axis=1, keepdims=True), out=view)
    return steps[group]


def group_case(channel: Channel, group: int) -> tuple[tuple[int, int], int]:
    """((the likelier world, the other), output) with the largest ratio within a group."""
    space, array = channel.space, channel.searchable
    assert isinstance(space, Records)
    group = min(group, space.rows)
    least = least_in_group(array, space, group)
    world, output = first_at_least(array, least, largest_ratio(array, least))
    column = array[:, output]
    worlds = np.flatnonzero(column == least[world, output])
    differing = np.zeros(len(worlds), dtype=int)
    for row in range(space.rows):
        stride = space.stride(row)
        differing += worlds // stride % space.values != world // stride % space.values
    return (world, int(worlds[differing <= group][0])), output


def _check_direction(direction: str) -> None:
    if direction not in ("both", "positive", "negative"):
        raise UnknownName("direction", str(direction), ("both", "positive", "negative"))


def need_replacing(relation: str) -> None:
    """Refuse any other relation between tables of records."""
    if relation != "replace":
        message = "rows of records can be replaced, not added or removed"
        hint = "use relation='replace'"
        raise Unsupported(message, field="relation", value=relation, hint=hint)


@dataclass(frozen=True)
class DifferentialPrivacy(Notion):
    """ln Pr[o|T]/Pr[o|T'] ≤ ε between neighbours T, T', in nats (Li13 Definitions 4.1, 4.2).

    Args:
        relation: "add-remove" (unbounded DP: one entity more or less) or "replace" (bounded DP:
            one entity for another; on records, one row's value for another).
        direction: "both", "positive" (the larger world on top) or "negative"; replacing is
            symmetric, so there it makes no difference.
        group: on records, how many rows may differ at once: the level of a group of k people, which
            is at most k times the level of one, and often less.
    """

    relation: str = "add-remove"
    direction: str = "both"
    group: int = 1
    unit: ClassVar[str] = "ε"
    short_names: ClassVar[tuple[str, ...]] = ("dp",)

    @property
    def title(self) -> str:
        sides = "" if self.direction == "both" else f", {self.direction}"
        people = "" if self.group == 1 else f", groups of {self.group}"
        return f"{super().title} ({self.relation}{sides}{people})"

    def __post_init__(self) -> None:
        if self.relation not in beliefs.NEIGHBOUR_RELATIONS:
            raise UnknownName("relation", str(self.relation), beliefs.NEIGHBOUR_RELATIONS)
        _check_direction(self.direction)
        object.__setattr__(self, "group", read_whole(self.group, "group", 1))
        if self.group > 1 and self.relation != "replace":
            hint = "use relation='replace' on Records(…), or group=1"
            message = "groups of rows replace each other"
            raise InvalidInput(message, field="group", value=self.group, hint=hint)

    @property
    def about_records(self) -> bool | None:  # type: ignore[override]
        return None if self.relation == "replace" else False

    def canonical(self) -> Notion:
        return replace(self, direction="both") if self.relation == "replace" else self

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = read_channel(mechanism, space)
        if isinstance(channel.space, Records):
            return self._on_records(channel) if self.group == 1 else self._of_groups(channel)
        if self.group > 1:
            need_records(channel.space, "a group")
        found = self._worst_on_subsets(channel)
        if found is None:  # one entity only: nobody to replace it with
            return Level(0.0, None, True, (), notion=self)
        worst, certificate, positive = found
        log = certificate.log
        value = round_up(log) if log is not None else log_up(certificate.ratio)
        value = max(value, 0.0)  # rows of floats that sum to 1 only nearly can give a ratio below 1
        case = make_witness(channel, worst, certificate, ONE_HALF, positive=positive)
        return Level(value, case, True, (), notion=self)

    def _worst_on_subsets(self, channel: Channel) -> tuple[Worst | Shift, Certificate, bool] | None:
        """The worst case, its certificate and its direction."""
        lattice = subset_lattice(channel, "differential privacy")
        replacing, positive = self.relation == "replace", self.direction != "negative"
        family = SwapOfTwo() if replacing else Independent()
        if shifts := certify_shifts(channel, family, positive):
            return *shifts[0], positive
        sides = {"both": (True, False), "positive": (True,), "negative": (False,)}
        best: tuple[Worst, bool] | None = None
        for numbers, array in channel.searched(symmetric=True):
            if replacing:
                case = next(((swap, True) for swap in worst_swap(array, lattice)), None)
                if case is None:
                    return None
            else:
                case = largest_addition(array, lattice, sides[self.direction])
            if best is None or exceeds_best(case[0].ratio, best[0].ratio):
                best = replace(case[0], output=int(numbers[case[0].output])), case[1]
        assert best is not None
        return best[0], certify_worst(channel, *best), best[1]

    def _on_records(self, channel: Channel) -> Level:
        need_replacing(self.relation)
        space, array = channel.space, channel.searchable
        assert isinstance(space, Records)
        best, chosen = None, 0
        for row in range(space.rows):
            view = space.axis(array, row)
            value = largest_ratio(view.max(axis=1), view.min(axis=1))
            if exceeds_best(value, best):
                best, chosen = value, row
        view = space.axis(array, chosen)
        before, rest = first_at_least(view.max(axis=1), view.min(axis=1), best)
        after, output = divmod(rest, array.shape[1])
        column = view[before, :, rest]
        high = max(range(space.values), key=lambda value: column[value])
        low = min(range(space.values), key=lambda value: column[value])
        stride = space.stride(chosen)
        worlds = [(before * space.values + value) * stride + after for value in (high, low)]
        return self._level(channel, worlds, output, chosen)

    def _of_groups(self, channel: Channel) -> Level:
        worlds, output = group_case(channel, self.group)
        assert isinstance(channel.space, Records)
        pairs = dict(enumerate(zip(*map(channel.space.world, worlds), strict=True)))
        group = {row: pair for row, pair in pairs.items() if pair[0] != pair[1]}
        return self._level(channel, worlds, output, min(group, default=0), group)

    def _level(
        self,
        channel: Channel,
        worlds: Sequence[int],
        output: int,
        row: int,
        group: dict[int, tuple[int, int]] | None = None,
    ) -> Level:
        """The level of two worlds that differ in a row, or in a group of rows."""
        top, bottom = ([(world, Fraction(1))] for world in worlds)
        ratio = channel.ratio(top, bottom, output)
        assert isinstance(channel.space, Records)
        pairs = dict(enumerate(zip(*map(channel.space.world, worlds), strict=True)))
        moved = {row} if group is None else set(group)
        known = {other: pair[0] for other, pair in pairs.items() if other not in moved}
        name, exact = channel.outputs[output], channel.exact is not None
        case = value_witness(name, ratio, row, pairs[row], known, exact)
        return Level(max(log_up(ratio), 0.0), replace(case, group=group), True, (), notion=self)


@dataclass(frozen=True)
class SampledDifferentialPrivacy(Notion):
    """(β, ε)-DPS: the mechanism on a β-sample is ε-UDP (Li13 Definition 5.8); in nats.

    Args:
        beta: the probability with which each entity is sampled, above 0 and at most 1.
        direction: "both", "positive" or "negative", as for differential privacy.
    """

    beta: object
    direction: str = "both"
    unit: ClassVar[str] = "ε"
    short_names: ClassVar[tuple[str, ...]] = ("dps", "sampled-dp")

    @property
    def title(self) -> str:
        return f"Differential privacy under sampling with probability {self.beta}"

    def __post_init__(self) -> None:
        read_ranged(self.beta, "beta", "above 0 and at most 1")
        _check_direction(self.direction)

    def canonical(self) -> Notion:
        beta = rational(self.beta)
        if beta == 1:  # a sample of everyone
            return DifferentialPrivacy("add-remove", self.direction)
        return replace(self, beta=beta)

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        sampled = Sampled(read_channel(mechanism, space), self.beta)
        level = DifferentialPrivacy("add-remove", self.direction).measure(sampled)
        return replace(level, notion=self)


@dataclass(frozen=True)
class DifferentialIdentifiability(Notion):
    """(ρ, m)-DI: with one of m equally likely candidates in, Pr[t|S] ≤ ρ (Lee and Clifton 2012;
    Li13 Definition 5.4). The level is ρ.

    Args:
        m: the number of candidates, at least 2.
        literal: the paper's own reading of the family (erratum E2).
    """

    m: int
    literal: bool = False
    unit: ClassVar[str] = "ρ"
    short_names: ClassVar[tuple[str, ...]] = ("di",)

    @property
    def title(self) -> str:
        return f"{super().title} with {self.m} candidates"

    def __post_init__(self) -> None:
        OneOf(self.m, self.literal)

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = read_channel(mechanism, space)
        result = worst_case(channel, OneOf(self.m, self.literal), positive=True)
        assert result is not None
        worst, certificate, _ = result
        case = make_witness(channel, worst, certificate, worst.low, positive=True)
        return Level(case.posterior, case, True, (), notion=self)


METRIC_NAMES = ("hamming", "difference")
MAX_METRIC_WORLDS = 1 << 12
"""Worlds of a metric that is written out."""
NEAR_LOG_RATIO = 2.0**-38
"""More than the relative error of a logarithm of a ratio of floats."""

Pairs = tuple[Array, Array, list[Any], Array]
"""Worlds, worlds, their distances (exact), and in floats."""


@dataclass(frozen=True)
class MetricPrivacy(Notion):
    """ln Pr[y|x] − ln Pr[y|x'] ≤ ε d(x, x') for all worlds, in nats per unit of distance
    (d-privacy; Chatzikokolakis et al. 2013).

    Args:
        metric: "hamming" (rows or entities that differ), "difference" (on records the sum of
            |x_i − x_i'|), or a list of lists: the distance between any two worlds, in world order;
            infinity (or "inf") where nothing is asked. It must be symmetric and 0 from a world to
            itself; worlds at distance 0 must look alike.
    """

    metric: object = "hamming"
    unit: ClassVar[str] = "ε"
    about_records: ClassVar[None] = None  # type: ignore[misc]
    short_names: ClassVar[tuple[str, ...]] = ("d-privacy",)

    def __post_init__(self) -> None:
        if isinstance(self.metric, str):
            if self.metric not in METRIC_NAMES:
                raise UnknownName("metric", self.metric, METRIC_NAMES)
        else:
            object.__setattr__(self, "metric", _read_metric_matrix(self.metric))

    @property
    def title(self) -> str:
        name = self.metric if isinstance(self.metric, str) else "a metric on worlds"
        return f"Metric privacy ({name})"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = read_channel(mechanism, space)
        if self.metric == "hamming":
            relation = "replace" if isinstance(channel.space, Records) else "add-remove"
            return replace(DifferentialPrivacy(relation).measure(channel), notion=self)
        channel = channel.on_worlds()
        channel.need_finite("metric privacy")
        search = _Search(channel)
        for pairs in _deciding_pairs(self.metric, channel.space):
            search.add(pairs)
        return search.level(self)


def read_metric(text: str | Path) -> object:
    """A metric by its name, or from a file: an object with `distances`, a list of lists."""
    if str(text) in METRIC_NAMES:
        return str(text)
    if not str(text).endswith(".json"):
        raise UnknownName("metric", str(text), (*METRIC_NAMES, "a file that ends in .json"))
    data = read_object(Path(text), "metric")
    check_keys(data, ("distances",), "metric")
    return data.get("distances")


def _read_metric_matrix(metric: object) -> tuple[tuple[Fraction | float, ...], ...]:
    accepted = "hamming, difference, or rows with the distance to each world"
    rows = [read_list(row, "metric", accepted) for row in read_list(metric, "metric", accepted)]
    if not rows or any(len(row) != len(rows) for row in rows):
        sizes = f"{len(rows)} rows of {sorted({len(row) for row in rows})} numbers"
        raise invalid_value("metric", "a square table, with a row for each world", sizes)
    result = tuple(
        tuple(
            math.inf if each in (math.inf, "inf") else read_ranged(each, "metric", "at least 0")
            for each in row
        )
        for row in rows
    )
    for one, row in enumerate(result):
        if row[one] != 0:
            raise invalid_value("metric", f"0 from world {one} to itself", row[one])
        for two, distance in enumerate(row):
            if distance != result[two][one]:
                message = f"metric has two different distances between worlds {one} and {two}"
                raise InvalidInput(message, field="metric", value=(one, two))
    return result


def _deciding_pairs(metric: object, space: Space) -> Iterator[Pairs]:
    """Pairs of worlds that decide: all of them, or where steps of distance 1 lead everywhere, those
    (a ratio along a path is a product of its steps)."""
    if not isinstance(metric, str):
        yield from _listed_pairs(metric, space)
        return
    space = need_records(space, "this metric")
    worlds = np.arange(space.worlds)
    for row in range(space.rows):
        stride = space.stride(row)
        value = worlds // stride % space.values
        first = worlds[value + 1 < space.values]
        yield first, first + stride, [1] * len(first), np.ones(len(first))


def _listed_pairs(metric: Any, space: Space) -> Iterator[Pairs]:
    check_count(len(metric), space.worlds, "metric", "rows", "worlds")
    if space.worlds > MAX_METRIC_WORLDS:
        message = f"a matrix of distances is for at most {spell(MAX_METRIC_WORLDS)} worlds"
        raise Unsupported(message, field="metric", value=space.worlds)
    for one, row in enumerate(metric):
        others = np.array([two for two in range(one) if row[two] != math.inf], dtype=int)
        if others.size:
            distances = [row[two] for two in others]
            floats = np.array([float(each) for each in distances])
            yield np.full(len(others), one), others, distances, floats


class _Search:
    """The pairs and outputs whose level may be the largest, found in floats.

    The logarithm of a ratio near 1 is taken of its distance from 1, so that floats are compared
    with a relative error alone; entries that are rationals were rounded once, which is the
    absolute part.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel, self.table = channel, channel.wide
        self.rounding = 0.0 if channel.exact is None else 2.0**-49
        self.least, self.whole = 0.0, True
        self.cases: list[tuple[float, Any, tuple[int, int, int]]] = []

    def add(self, pairs: Pairs) -> None:
        """Keep what may be largest among these pairs."""
        first, second, distances, floats = pairs
        top = np.maximum(self.table[first], self.table[second])
        bottom = np.minimum(self.table[first], self.table[second])
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.log(top) - np.log(bottom)
            away = np.where(top <= 2 * bottom, np.log1p((top - bottom) / bottom), far)
            error = away * NEAR_LOG_RATIO + self.rounding
            high, low = (each / floats[:, None] for each in (away + error, away - error))
        if self.channel.exact is not None:
            alike = (self.channel.exact[first] == self.channel.exact[second]).astype(bool)
        else:
            alike = top == bottom
        high, low = (np.where(alike | np.isnan(each), 0.0, each) for each in (high, low))
        self.least = max(self.least, float(low.max(initial=0.0)))
        largest = np.argwhere((high >= self.least) & (high > 0))
        if self.least == math.inf:
            largest = largest[:1]
        for pair, y in largest:
            if len(self.cases) >= MAX_METRIC_WORLDS:
                self.cases = [case for case in self.cases if case[0] >= self.least]
                self.whole &= len(self.cases) < MAX_METRIC_WORLDS
            if len(self.cases) < MAX_METRIC_WORLDS:
                indices = (int(first[pair]), int(second[pair]), int(y))
                self.cases.append((float(high[pair, y]), distances[pair], indices))
            else:
                self.most = max(getattr(self, "most", 0.0), float(high[pair, y]))

    def level(self, notion: Notion) -> Level:
        """The largest level, certified; a bracket where too many cases tie to look at each."""
        best: tuple[float, tuple[int, int, int]] | None = None
        for high, distance, case in self.cases:
            if high >= self.least:
                value = _level_per_distance(self.channel, distance, case)
                if best is None or value > best[0]:
                    best = value, case
        if best is None:
            return Level(0.0, None, True, (), notion=notion)
        most = best[0] if self.whole else max(best[0], math.nextafter(self.most, math.inf))
        exact, lower = bracket_level(most, best[0])
        return Level(most, _pair_witness(self.channel, best[1]), exact, (), lower, notion=notion)


def _level_per_distance(channel: Channel, distance: Any, case: tuple[int, int, int]) -> float:
    """|ln of the ratio| / distance, rounded up."""
    one, two, output = case
    top, bottom = channel.entries.at(one, output), channel.entries.at(two, output)
    if top == bottom:
        return 0.0
    if distance == 0 or top == 0 or bottom == 0:
        return math.inf
    with certificate_precision():
        return ball_up(abs(ball(top / bottom).log()) / ball(distance))


def _pair_witness(channel: Channel, case: tuple[int, int, int]) -> Witness:
    """Two worlds, as likely as each other before, and the output that tells them apart."""
    one, two, output = case
    if channel.entries.at(one, output) < channel.entries.at(two, output):
        one, two = two, one
    top, bottom = (rational(channel.entries.at(world, output)) for world in (one, two))
    ratio = math.inf if bottom == 0 else top / bottom
    guess, against = (world_name(channel.space, world) for world in (one, two))
    numbers, exact = (ONE_HALF, top / (top + bottom), ratio), channel.exact is not None
    return Witness.shown(channel.outputs[output], numbers, exact, guess=guess, against=against)


# Identifiability over a set of priors: the largest of any member's (Wang14 asks for it).
#
# For independent rows Pr[x|y] / Pr[x'|y] of tables that differ in row i is p_i(a)/p_i(b) times
# A(y|x)/A(y|x'), so row i's odds are taken at their largest over its set, exactly. Other rows only
# have to be possible in some member.

Odds = dict[tuple[int, int], Any]
Case = tuple[int, tuple[int, ...], int]
"""A row, the worlds that differ in it only, an output."""


class OverSet:
    """A channel on records and a set of priors on them, ready to be searched."""

    def __init__(self, prior: PriorSet, channel: Channel, space: Records) -> None:
        self.prior, self.channel, self.space = prior, channel, space
        self.sets = prior.of_rows(space)
        self.odds: dict[RowSet, Odds] = {one: one.all_odds() for one in dict.fromkeys(self.sets)}
        self.possible = {
            one: np.array([one.likeliest(v)[v] > 0 for v in range(space.values)])
            for one in self.odds
        }

    def level(self, notion: Notion) -> Level:
        """The largest identifiability of a member, with that member."""
        near, space = Nearest(), self.space
        floats, array = self._in_floats()
        for row, one in enumerate(self.sets):
            view = space.axis(self._beside_possible(array, row), row)
            near.add(
                _worst_odds(view, floats[one]), partial(case_along, space, row, array.shape[1])
            )
        budget = MAX_RECOMPUTED_BALLS if self.channel.entries.in_balls else MAX_RECOMPUTED_ENTRIES
        upper, attained, case = near.certified(self._largest, lambda _: space.values, budget)
        return level_from_ratio(notion, log_up, upper, attained, self._witness(attained, *case))

    def _in_floats(self) -> tuple[dict[RowSet, Odds], Array]:
        """Odds and likelihoods in floats so wide that no product of the two overflows."""
        finite = [o for each in self.odds.values() for o in each.values() if o != math.inf]
        small = [flint_rational(1 / odds if odds > 1 else odds) for odds in finite]
        numbers, array = scaled_products(np.array([*small, flint_rational(1)]), self.channel.wide)
        pairs = zip(finite, numbers, strict=False)
        known = {odds: 1 / number if odds > 1 else number for odds, number in pairs}
        known[math.inf] = array.dtype.type(math.inf)
        return {
            one: {pair: known[value] for pair, value in odds.items()}
            for one, odds in self.odds.items()
        }, array

    def _beside_possible(self, array: Array, row: int) -> Array:
        """The likelihoods, 0 where another row has a value that no member allows."""
        if all(each.all() for each in self.possible.values()):
            return array
        parts = [self.possible[one] for one in self.sets]
        parts[row] = np.ones_like(parts[row])
        return np.where(reduce(np.multiply.outer, parts).reshape(-1, 1), array, 0)

    def _largest(self, case: Case) -> tuple[Fraction | float, tuple[Case, tuple[int, int]]]:
        """The largest odds of two of these worlds after the output, recomputed."""
        row, worlds, output = case
        best: Fraction | float = Fraction(1)
        values = (0, 0)
        rest = enumerate(zip(self.sets, self.space.world(worlds[0]), strict=True))
        if not all(self.possible[one][value] for other, (one, value) in rest if other != row):
            return best, (case, values)
        with certificate_precision():
            entries = [self.channel.entries.at(world, output) for world in worlds]
            for (a, b), odds in self.odds[self.sets[row]].items():
                if odds == math.inf:
                    ratio = math.inf if entries[a] != 0 else Fraction(1)
                else:
                    ratio = divide_up(flint_rational(odds) * entries[a], entries[b])
                if ratio > best:
                    best, values = ratio, (a, b)
        return best, (case, values)

    def _witness(self, ratio: Fraction | float, case: Case, values: tuple[int, int]) -> Witness:
        row, worlds, output = case
        known = dict(enumerate(self.space.world(worlds[values[0]])))
        del known[row]
        rows = [one.likeliest(known.get(n, 0)) for n, one in enumerate(self.sets)]
        (a, b), belief = values, Fraction(1, 2)
        if a != b:
            rows[row] = self.sets[row].farthest(a, b)
            belief = rows[row][a] / (rows[row][a] + rows[row][b])
        exact = self.channel.exact is not None and is_exact(*self.prior.parameters)
        name = self.channel.outputs[output]
        witness = value_witness(name, ratio, row, values, known, exact, belief)
        return replace(witness, adversary=lambda: IndependentPrior(rows))


def _worst_odds(view: Array, odds: Odds) -> Array:
    """For each rest and output the largest odds of two values of the row; 1 where there are none
    above, as for pairs that are both impossible (0/0)."""
    worst = np.ones((view.shape[0], view.shape[2]), dtype=view.dtype)
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        for (a, b), most in odds.items():
            np.fmax(worst, most * (view[:, a] / view[:, b]), out=worst)
    return worst


@dataclass(frozen=True)
class Identifiability(OfOnePrior):
    """Pr[x|y] ≤ e^ε Pr[x'|y] for tables x, x' that differ in one row: who it is stays open
    (Wang, Ying, Zhang 2014, Definition 2).

    A pair where neither table is possible with y is passed over. Unlike the other notions it can be
    violated by the prior alone: no mechanism is below ε_X.

    Args:
        prior: a prior on records, or a set of them (`Hull`, `Box`); then the largest level of any
            member counts, and the witness has that member.
    """

    unit: ClassVar[str] = "ε"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel, records = record_channel(mechanism, space)
        if isinstance(self.prior, PriorSet):
            return OverSet(self.prior, channel, records).level(self)
        mass = self.prior.on_records(records, flint_rational)
        weights, array = scaled_products(mass, channel.wide)
        joint, near = weights[:, None] * array, Nearest()
        for row in range(records.rows):
            view = records.axis(joint, row)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                ratio = view.max(axis=1) / view.min(axis=1)
            ratio = np.where(np.isnan(ratio), 1.0, ratio)
            near.add(ratio, partial(case_along, records, row, joint.shape[1]))
        certain = Certain(channel, mass)
        upper, attained, (row, worlds, values, output) = near.certified(
            partial(_largest_ratio, certain), lambda _: records.values, certain.budget
        )
        known = dict(enumerate(records.world(worlds[0])))
        del known[row]
        odds = [rational(mass[world]) for world in worlds]
        belief = odds[0] / sum(odds) if any(odds) else Fraction(1, 2)
        exact = channel.exact is not None and is_exact(*self.prior.parameters)
        case = value_witness(channel.outputs[output], attained, row, values, known, exact, belief)
        return level_from_ratio(self, log_up, upper, attained, case)


def _largest_ratio(
    certain: Certain, case: tuple[int, tuple[int, ...], int]
) -> tuple[Fraction | float, tuple[int, tuple[int, int], tuple[int, int], int]]:
    """The largest ratio of joint probabilities between two of these worlds, recomputed."""
    row, worlds, output = case
    with certificate_precision():
        joint = [certain.mass[world] * certain.entry(world, output) for world in worlds]
    ratio, high, low = largest_pair(enumerate(joint))
    return ratio, (row, (worlds[high], worlds[low]), (high, low), output)
