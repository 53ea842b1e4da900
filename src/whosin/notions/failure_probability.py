"""Levels with a failure probability δ: profiles, brackets and cases (F9, F19, F21)."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from whosin import beliefs
from whosin.errors import invalid_value, spell
from whosin.exact import (
    MAX_CURVE_EPSILON,
    Array,
    Rational,
    exp_down,
    flint_rational,
    rational,
    round_down,
    round_up,
)
from whosin.families import Family
from whosin.families.base import OtherPeople
from whosin.mechanisms import Channel, Mechanism, read_channel
from whosin.mechanisms.count_table import CountTable
from whosin.priors import Prior
from whosin.spaces import Space, Subsets
from whosin.spaces.quotients import CUT_WEIGHT, MIN_CUT_PEOPLE, block_of_binomials, rounding_error
from whosin.spaces.worlds import need_subsets

# Pr[output | in] and Pr[output | out] under every prior at which a profile may be largest.
#
# With `exact` the probabilities are FLINT rationals; else floats, each with a relative error of at
# most `Cases.rounding`, and less than `CUT_WEIGHT` in all is left out. Counts may be of
# thousands of people: their crowds (`families.base`) are convolved in blocks, and known people who
# shift a rule by one of its periods make no difference and are tried once.

MAX_EXACT_WORK = 1 << 22
"""Up to this much work, in priors × entries × people, probabilities are rationals."""
FIRST_CROWDS = 33
"""How many crowds a first look takes."""


class Case(NamedTuple):
    """One prior: which entity it is about, the beliefs in it that it may have, the prior at one of
    them, and who that is, in words where there are any."""

    entity: int
    low: Fraction
    high: Fraction
    prior: Callable[[Fraction], Prior]
    words: str = ""


class Likelihoods(NamedTuple):
    """The probabilities of some outputs, from the first of them on, a row for each prior: given
    that the entity is in and that it is out, or the reverse for negative membership. `case` has the
    prior of a row."""

    top: Array
    bottom: Array
    first: int
    case: Callable[[int], Case]


@dataclass(frozen=True)
class Cases:
    """All priors of a family at which the profile of one mechanism may be largest.

    Attributes:
        is_small: whether the work is little enough for rationals.
        pairs: each prior's probabilities, with `exact` as rationals. With `few` at most this many
            of the crowds are tried, and, where it is at most `FIRST_CROWDS`, at most this many
            numbers of known people who are in: evenly, and more of them near both ends.
    """

    family: Family
    space: Subsets
    outputs: tuple[Hashable, ...]
    is_small: bool
    pairs: Callable[..., Iterator[Likelihoods]]

    @property
    def people(self) -> int:
        return self.space.size

    @property
    def rounding(self) -> float:
        """The largest relative error of probabilities in floats."""
        return rounding_error(self.people)


def list_cases(mechanism: object, space: Space | None, family: Family, positive: bool) -> Cases:
    if not isinstance(mechanism, Mechanism):
        raise invalid_value("mechanism", "a mechanism or a channel", repr(mechanism))
    if isinstance(mechanism, Channel):
        space = mechanism.channel(space).space
    space = need_subsets(space, "a failure probability")
    family.check(space)
    table = mechanism.on_counts(space.size)
    if table is not None and type(family).crowds is not Family.crowds:
        return _crowd_cases(table, space, family, positive)
    channel = table.channel(space) if table is not None else read_channel(mechanism, space)
    channel.need_finite("a failure probability")
    next(iter(family.extreme_priors(channel.lattice)), None)  # type: ignore[arg-type]
    return _prior_cases(channel, space, family, positive)


def _crowd_cases(table: CountTable, space: Subsets, family: Family, positive: bool) -> Cases:
    """A count of many people, under the crowds of a family."""
    every = list(family.crowds(space.size))
    priors = sum(len(crowd.inside) for crowd in every)

    def pairs(*, exact: bool = False, few: int | None = None) -> Iterator[Likelihoods]:
        crowds = every
        if few is not None and len(crowds) > few:
            crowds = [crowds[index] for index in _spread_sample(len(crowds), few)]
        for block in _crowd_blocks(crowds, 1 if exact else MIN_CUT_PEOPLE):
            first, weights = (0, block[0].rationals[None, :]) if exact else _crowd_weights(block)
            known: Sequence[int] = block[0].inside
            if few is not None and few <= FIRST_CROWDS and len(known) > few:
                known = [known[index] for index in _spread_sample(len(known), few)]
            for inside in distinct_shifts(table, known, first, weights.shape[1]):
                yield pair(block, inside, first + inside, weights)

    def pair(block: list[OtherPeople], inside: int, first: int, weights: Array) -> Likelihoods:
        absent = output_distribution(table, first, weights)
        present = output_distribution(table, first + 1, weights)
        low = min(absent[0], present[0])
        high = max(side[0] + side[1].shape[1] for side in (absent, present))
        sides = [_widen_outputs(side, low, high) for side in (present, absent)]

        def case(row: int) -> Case:
            crowd = block[row]
            words = crowd.words(inside)
            return Case(0, *family.beliefs, lambda belief: crowd.prior(inside, belief), words)

        top, bottom = sides if positive else sides[::-1]
        return Likelihoods(top, bottom, low, case)

    work = priors * len(table.weights) * space.size
    return Cases(family, space, table.outputs, work <= MAX_EXACT_WORK, pairs)


def _prior_cases(channel: Channel, space: Subsets, family: Family, positive: bool) -> Cases:
    """Any mechanism with finitely many outputs, under the priors of a family one by one."""
    lattice = channel.lattice
    assert lattice is not None

    def pairs(*, exact: bool = False, few: int | None = None) -> Iterator[Likelihoods]:
        array = channel.rationals if exact else channel.likelihoods
        number = flint_rational if exact else float
        low, high = family.beliefs
        middle = (low + high) / 2
        for entity, prior in family.extreme_priors(lattice):
            sides = [(mass @ array)[None] for mass in prior(middle).given(lattice, entity, number)]
            ends = low, high
            if family.complete:
                ends = (prior(middle).belief(space, entity),) * 2
            case = Case(entity, *ends, prior)
            top, bottom = sides if positive else sides[::-1]
            yield Likelihoods(top, bottom, 0, lambda _, case=case: case)  # type: ignore[misc]

    small = channel.likelihoods.size * space.size**2 <= MAX_EXACT_WORK
    return Cases(family, space, channel.outputs, small, pairs)


def output_distribution(table: CountTable, first: int, weights: Array) -> tuple[int, Array]:
    """(first, probabilities): the probabilities of the outputs from the first on, a row for each
    row of weights, when the count is `first` plus a number with these weights."""
    start, stop = table.starts[first], table.starts[first + weights.shape[1]]
    columns = table.columns[start:stop]
    order = np.argsort(columns, kind="stable")
    entries = (table.rationals if weights.dtype == object else table.floats)[start:stop][order]
    shares = weights[:, table.counts[start:stop][order] - first] * entries
    columns = columns[order]
    begins = np.flatnonzero(np.diff(columns, prepend=-1))
    low, high = int(columns[0]), int(columns[-1]) + 1
    sums = shares if len(begins) == len(columns) else np.add.reduceat(shares, begins, axis=1)
    if len(begins) == high - low:
        return low, sums
    result = _make_zeros((len(weights), high - low), weights)
    result[:, columns[begins] - low] = sums
    return low, result


def _spread_sample(count: int, few: int) -> list[int]:
    """At most `few` of 0 … count − 1: half of them evenly apart, the others near either end."""
    even = np.linspace(0, count - 1, few - few // 2)
    ends = np.geomspace(1, count / 2, few // 4) if few >= 8 else np.zeros(0)
    return sorted({round(x) for x in (*even, *ends, *(count - 1 - ends))})


def _crowd_blocks(crowds: list[OtherPeople], most: int) -> Iterator[list[OtherPeople]]:
    """Crowds that differ in who is at low and who at high only, one more at low each, together."""
    block: list[OtherPeople] = []
    for crowd in crowds:
        same = block and replace(block[-1], at_low=0, at_high=0) == replace(
            crowd, at_low=0, at_high=0
        )
        follows = block and crowd.at_low == block[-1].at_low + 1
        if block and (len(block) == most or not same or not follows):
            yield block
            block = []
        block.append(crowd)
    yield block


def _crowd_weights(block: list[OtherPeople]) -> tuple[int, Array]:
    """(first, weights) of how many uncertain others are in, a row for each crowd."""
    if len(block) == 1:
        first, weights = block[0].weights
        return first, weights[None, :]
    start = block[0]
    low, high = float(start.low), float(start.high)
    return block_of_binomials(start.at_low, low, start.at_high, high, len(block))


def distinct_shifts(table: CountTable, shifts: Iterable[int], first: int, length: int) -> list[int]:
    """One of the shifts for each way in which the rows that they lead to look different.

    Shifted by s, the rows first + s … first + s + length matter. For two shifts they look alike
    where a shift of the columns is all that differs: then all probabilities are the same.
    """
    result: dict[tuple[int, int], int] = {}
    for shift in shifts:
        result.setdefault(table.looks(first + shift, length + 1), shift)
    return list(result.values())


def _widen_outputs(side: tuple[int, Array], low: int, high: int) -> Array:
    first, values = side
    if first == low and values.shape[1] == high - low:
        return values
    wide = _make_zeros((len(values), high - low), values)
    wide[:, first - low : first - low + values.shape[1]] = values
    return wide


def _make_zeros(shape: tuple[int, int], like: Array) -> Array:
    if like.dtype == object:
        return np.full(shape, flint_rational(0), dtype=object)
    return np.zeros(shape)


# Profiles, failure probabilities and levels at a failure probability, from cases.
#
# Where the cases are all priors of a family, tails are exact. Otherwise a tail may be larger at
# priors in between, and F9 bounds it from the profile, whose sup the cases have (F21): any ε gives
# a bound, so a first look at few cases picks some, and these are computed on all cases.

FIRST_EPSILONS, NEAR_EPSILONS = 48, 13
"""How many ε a first look takes, and how many a second one around the best of them."""
FARTHEST_EPSILON = 5
"""−ε up to this is looked at: beyond, no bound falls by a hundredth."""
MAX_SEARCHED_CROWDS = 400
"""How many crowds are searched for the largest tail, which is a lower end wherever it is."""
MAX_BLOCK_ENTRIES = 1 << 17
"""Up to this many numbers are computed at once."""
MIN_BRACKETED_DELTA = 1e-12
"""FailureBracket probabilities below this drown in what is cut off."""


@dataclass(frozen=True)
class FailureBracket:
    """How likely it is, given that the person is in, that the likelihood ratio exceeds a number.

    Attributes:
        lower: it is this likely for the case.
        upper: it is at most this likely for every prior of the family.
        exact: whether the two are one number, without rounding.
        case: who sees it: the prior, and in words.
        outputs: the outputs whose ratio exceeds the number.
    """

    ratio: Fraction
    lower: float | Fraction
    upper: float | Fraction
    exact: bool
    case: Case
    outputs: tuple[Any, ...]


@dataclass(frozen=True)
class LevelAt:
    """The least ratio that is exceeded with probability at most δ: a bracket, and the case of its
    lower end."""

    lower: beliefs.WorstBelief
    upper: beliefs.WorstBelief
    lower_ratio: Fraction | float
    upper_ratio: Fraction | float
    exact: bool
    case: Case
    output: Any


def profile(cases: Cases, epsilon: object) -> float:
    """δ(ε): the sup over the family of Σ_o max(0, Pr[o|t] − e^ε Pr[o|¬t]), rounded up (F21)."""
    power = rational(epsilon, "epsilon")
    if not abs(power) <= MAX_CURVE_EPSILON:
        accepted = f"between -{MAX_CURVE_EPSILON} and {MAX_CURVE_EPSILON}"
        raise invalid_value("epsilon", accepted, epsilon)
    if cases.is_small:
        factor = flint_rational(exp_down(power) if power else 1)
        zero = flint_rational(0)
        most = max(
            np.maximum(pair.top - pair.bottom * factor, zero).sum(axis=1).max()
            for pair in cases.pairs(exact=True)
        )
        return min(1.0, round_up(rational(most)))
    return float(_profile_bounds(cases, np.array([float(power)]))[0])


def _profile_bounds(
    cases: Cases,
    epsilons: Array,
    few: int | None = None,
    enough: Callable[[Array], bool] | None = None,
) -> Array:
    """At least δ(ε) for each ε, in floats; with `few` for a first look only, with `enough` up to
    where that is large enough."""
    worst = np.zeros(len(epsilons))
    factors = np.exp(epsilons)
    more, less = 1 + cases.rounding, 1 - cases.rounding
    for pair in cases.pairs(few=few):
        if enough is not None and enough(worst):
            break
        top, bottom = pair.top * more, pair.bottom * less
        if top.size * len(factors) <= MAX_BLOCK_ENTRIES:
            shares = np.maximum(top - factors[:, None, None] * bottom, 0).sum(axis=2).max(axis=1)
            np.maximum(worst, shares, out=worst)
            continue
        for index, factor in enumerate(factors):
            shares = top - factor * bottom
            np.maximum(shares, 0, out=shares)
            worst[index] = max(worst[index], float(shares.sum(axis=1).max()))
    return np.minimum(worst * more + CUT_WEIGHT, 1.0)


def failure(cases: Cases, ratio: object, proved: float | None = None) -> FailureBracket:
    """A bracket for Pr[r > ratio | t] over the family; `proved` is a bound that `bound_if_met`
    found."""
    most = rational(ratio, "ratio")
    if not 1 < most <= 10**300:
        raise invalid_value("ratio", "above 1 and at most 1e300", ratio)
    exact, complete = cases.is_small, cases.family.complete
    lower, upper = Fraction(-1), Fraction(-1)
    best: tuple[Likelihoods, int, Array] | None = None
    for pair in cases.pairs(exact=exact, few=None if complete else MAX_SEARCHED_CROWDS):
        for row in range(len(pair.top)):
            at_least, at_most, above = _ratio_tail(
                pair.top[row], pair.bottom[row], most, cases.rounding
            )
            upper = max(upper, at_most)
            if at_least > lower:
                lower, best = at_least, (pair, row, np.flatnonzero(above))
    assert best is not None
    outputs = tuple(cases.outputs[best[0].first + int(output)] for output in best[2])
    case = best[0].case(best[1])
    if complete and exact:
        return FailureBracket(most, Rational(lower), Rational(upper), True, case, outputs)
    low = Rational(lower) if exact else round_down(lower)
    if complete:
        return FailureBracket(most, low, min(round_up(upper), 1.0), False, case, outputs)
    if proved is None:  # F9
        epsilons, bound = promising_epsilons(cases, most), _bound_function(float(most))[1]
        proved = float(bound(_profile_bounds(cases, epsilons), epsilons).min()) * (1 + 1e-12)
    upper_end = min(max(proved, round_up(lower)), 1.0)
    return FailureBracket(most, low, upper_end, False, case, outputs)


def bound_if_met(
    cases: Cases, ratio: Fraction, delta: Fraction, epsilons: Array | None = None
) -> float | None:
    """F9's bound on Pr[r > ratio | t] where it is at most δ; None where it is not.

    It holds for whatever is made of the outputs too, which tails themselves do not: merged outputs
    may fail more often than either.

    Args:
        epsilons: where to look, if that is known from like cases (`promising_epsilons`).
    """
    most = float(delta) * (1 - 1e-12)
    tried, bound = _bound_function(float(ratio))
    epsilons = _promising_epsilons(cases, bound, tried) if epsilons is None else epsilons

    def enough(deltas: Array) -> bool:
        return bool(bound(deltas, epsilons).min() > most)

    bounds = bound(_profile_bounds(cases, epsilons, enough=enough), epsilons)
    least = float(bounds.min()) * (1 + 1e-12)
    return least if least <= delta else None


def promising_epsilons(cases: Cases, ratio: Fraction) -> Array:
    """The ε at which a first look finds the least bounds of F9; any ε gives a valid one."""
    epsilons, bound = _bound_function(float(ratio))
    return _promising_epsilons(cases, bound, epsilons)


def is_above(cases: Cases, ratio: Fraction, delta: Fraction, few: int) -> bool:
    """Whether a first look at a few cases shows that `bound_if_met` will find none."""
    epsilons, bound = _bound_function(float(ratio))
    epsilons = _promising_epsilons(cases, bound, epsilons, few)
    return bool(bound(_profile_bounds(cases, epsilons, few), epsilons).min() > float(delta))


def _ratio_tail(
    top: Array, bottom: Array, ratio: Fraction, rounding: float
) -> tuple[Fraction, Fraction, Array]:
    """(at least, at most, where): Σ of the probabilities of outputs whose ratio exceeds this."""
    if top.dtype == object:
        above = np.asarray(top > bottom * flint_rational(ratio), dtype=bool)
        total = rational(top[above].sum()) if above.any() else Fraction(0)
        return total, total, above
    near, less, more = float(ratio), 1 - 4 * rounding, 1 + 4 * rounding
    above = top * less > bottom * near * more
    maybe = top * more > bottom * near * less
    low = Fraction(max(0.0, float(top[above].sum()) * less - CUT_WEIGHT))
    return low, Fraction(float(top[maybe].sum()) * more + CUT_WEIGHT), above


def _bound_function(ratio: float) -> tuple[Array, Callable[[Array, Array], Array]]:
    """Some ε below ln ratio, also below 0, and what δ(ε) makes of them: δ(ε)/(1 − e^ε/ratio)."""
    top = math.log(ratio) * (1 - 1e-15)

    def bound(deltas: Array, at: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.where(at < top, deltas / -np.expm1(at - top), 1.0)

    return top - np.geomspace(top + FARTHEST_EPSILON, top * 1e-4, FIRST_EPSILONS), bound


def _promising_epsilons(
    cases: Cases, bound: Callable[[Array, Array], Array], epsilons: Array, few: int = FIRST_CROWDS
) -> Array:
    """The ε whose bounds looked least on a few cases, and its neighbours: bounds fall and then rise
    in ε, since profiles are convex in e^ε."""
    for _ in range(2):
        best = int(np.argmin(bound(_profile_bounds(cases, epsilons, few), epsilons)))
        around = epsilons[max(best - 1, 0) : best + 2]
        epsilons = np.unique(np.append(np.linspace(around[0], around[-1], NEAR_EPSILONS), around))
    best = int(np.argmin(bound(_profile_bounds(cases, epsilons, few), epsilons)))
    return np.asarray(epsilons[max(best - 1, 0) : best + 2])


def level_at_delta(cases: Cases, delta: Fraction, positive: bool) -> LevelAt:
    """The least γ that fails with probability at most δ, as a bracket."""
    if delta < Fraction(MIN_BRACKETED_DELTA) and not (cases.is_small and cases.family.complete):
        accepted = f"0, or at least {spell(MIN_BRACKETED_DELTA)} for this many people"
        raise invalid_value("delta", accepted, float(delta))
    complete, exact = cases.family.complete, cases.is_small
    under, over, best = None, None, None
    for pair in cases.pairs(exact=exact, few=None if complete else MAX_SEARCHED_CROWDS):
        for row in range(len(pair.top)):
            at_least, at_most, chosen = _ratio_quantile(
                pair.top[row], pair.bottom[row], delta, cases.rounding
            )
            case = pair.case(row)
            ends = beliefs.sides(case.low, case.high, positive)
            here, there = (beliefs.worst_belief(ratio, *ends) for ratio in (at_least, at_most))
            if under is None or here.gamma > under.gamma:
                under, best = here, (at_least, case, cases.outputs[pair.first + chosen])
            if over is None or there.gamma > over.gamma:
                over, upper_ratio = there, at_most
    assert under is not None and over is not None and best is not None
    ratio, case, output = best
    if complete:
        return LevelAt(under, over, ratio, upper_ratio, exact, case, output)
    bound = _least_ratio(cases, float(delta))
    bound = max(ratio, bound if bound == math.inf else Fraction(bound))
    upper = beliefs.worst_belief(bound, *beliefs.sides(*cases.family.beliefs, positive))
    return LevelAt(under, upper, ratio, bound, under.gamma == math.inf, case, output)


def _least_ratio(cases: Cases, delta: float) -> float:
    """F9, solved for the ratio: at most δ of the outputs have one above e^ε/(1 − δ(ε)/δ)."""
    epsilons = np.concatenate([[0.0], np.geomspace(1e-3, 60, FIRST_EPSILONS)])

    def ratios(deltas: Array, at: Array) -> Array:
        left = 1 - deltas / (delta * (1 - 1e-12))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(left > 0, np.exp(at) / left, math.inf)

    if np.isinf(ratios(_profile_bounds(cases, epsilons[-1:], FIRST_CROWDS), epsilons[-1:])[0]):
        return math.inf
    epsilons = _promising_epsilons(cases, ratios, epsilons)
    return float(ratios(_profile_bounds(cases, epsilons), epsilons).min()) * (1 + 1e-12)


def _ratio_quantile(
    top: Array, bottom: Array, delta: Fraction, rounding: float
) -> tuple[Any, Any, int]:
    """(at least, at most, where): the least ratio that is exceeded with probability at most δ."""
    if top.dtype == object:
        return _exact_quantile(top, bottom, delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = top / bottom
    ratios[np.isnan(ratios)] = 0.0  # impossible either way
    order = np.argsort(-ratios, kind="stable")
    totals, ranked = np.cumsum(top[order]), ratios[order]
    ends = []
    for sums, more in (
        (totals * (1 - rounding) - CUT_WEIGHT, 1 - 4 * rounding),
        (totals * (1 + rounding) + CUT_WEIGHT, 1 + 4 * rounding),
    ):
        position = min(int(np.searchsorted(sums, float(delta), side="right")), len(order) - 1)
        ratio = float(ranked[position])
        ends.append((ratio if math.isinf(ratio) else Fraction(ratio * more), int(order[position])))
    return ends[0][0], ends[1][0], ends[0][1]


def _exact_quantile(top: Array, bottom: Array, delta: Fraction) -> tuple[Any, Any, int]:
    seen = [output for output in range(len(top)) if top[output] != 0]
    ratios = {
        output: math.inf if bottom[output] == 0 else rational(top[output] / bottom[output])
        for output in seen
    }
    total = Fraction(0)
    for output in sorted(seen, key=lambda output: -ratios[output]):
        total += rational(top[output])
        if total > delta:
            return ratios[output], ratios[output], output
    raise AssertionError("the probabilities of all outputs add up to more than δ")
