"""Semantic privacy (Kasiviswanathan and Smith 2014) and Bayesian semantic privacy (Zhao17)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from whosin.errors import InvalidInput, read_whole
from whosin.exact import (
    Array,
    ball_ratio_upper,
    certificate_precision,
    flint_rational,
    quarter_tanh_up,
    rational,
)
from whosin.mechanisms import Channel, Composed
from whosin.notions import certificates
from whosin.notions.base import Level, Notion, OfPriors, Witness
from whosin.notions.bayesian_privacy import (
    MAX_CERTIFIED_CONDITIONS,
    BayesianDifferentialPrivacy,
    list_factors,
)
from whosin.notions.bsp_interior import (
    Sides,
    between_centres,
)
from whosin.notions.certificates import Certain, Nearest, level_from_ratio, record_channel
from whosin.notions.messages import (
    noisy_sums,
)
from whosin.priors import ChainBox, Independent, Prior, PriorSet
from whosin.spaces import Records, Space

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class SemanticPrivacy(Notion):
    """The largest total variation between what an adversary believes about the table after seeing
    the output and what they would believe if row i had been at the default, over all beliefs
    (Kasiviswanathan and Smith 2014).

    No search over beliefs is needed: with r_x = Pr[y|x] / Pr[y|x with row i at the default] the
    level is tanh(¼ ln(max r / min r)), the largest over rows and outputs (proof: theorems.zhao17).
    An output that occurs with some data in row i and not with the default leaves no posterior to
    compare with on some beliefs; its level is 1, without which T15 would not hold.

    Args:
        default: the value that stands for "no data".
    """

    default: int = 0
    unit: ClassVar[str] = "level"
    short_names: ClassVar[tuple[str, ...]] = ("semantic",)
    about_records: ClassVar[bool] = True  # type: ignore[misc]

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel, records = record_channel(mechanism, space)
        read_whole(self.default, "default", 0, records.values - 1)
        near, view = Nearest(), channel.wide
        for row in range(records.rows):
            along = records.axis(view, row)
            result = default_ratios(along, along[:, self.default : self.default + 1])
            table = result.reshape(records.worlds, -1)
            spread = ratio_spread(np.fmax.reduce(table), np.fmin.reduce(table))
            near.add(spread, lambda position, row=row: (row, position[0]))  # type: ignore[misc]
        certain = Certain(channel, np.full(records.worlds, flint_rational(1)))
        recompute = partial(_row_spread, certain, self.default)
        upper, attained, (row, output) = near.certified(
            recompute, lambda _case: records.worlds, certain.budget
        )
        case = semantic_witness(attained, row, channel.outputs[output], None)
        return level_from_ratio(self, quarter_tanh_up, upper, attained, case, ("T15",))


def _row_spread(
    certain: Certain, default: int, case: tuple[int, int]
) -> tuple[Fraction | float, tuple[int, int]]:
    """max r / min r of one row and output, recomputed."""
    row, output = case
    space, stride = certain.space, certain.space.stride(row)
    pairs = []
    for world in range(space.worlds):
        value = world // stride % space.values
        without = world + (default - value) * stride
        pairs.append((certain.entry(world, output), certain.entry(without, output)))
    return exact_spread(pairs), case


def default_ratios(values: Array, default: Array) -> Array:
    """r, with 0/0 passed over (NaN): that world has no weight in either posterior."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(values / default)


def ratio_spread(most: Array, least: Array) -> Array:
    """max r / min r, at least 1: infinite where max r is, or min r is 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        spread = np.where(np.isposinf(most), np.inf, most / least)
    return np.where(np.isnan(spread), 1.0, np.maximum(spread, 1.0))


def exact_spread(pairs: list[tuple[Any, Any]]) -> Fraction | float:
    """max r / min r, exactly or just above, from likelihoods with and without a row's data."""
    kept = [(top, bottom) for top, bottom in pairs if top != 0 or bottom != 0]
    if any(bottom == 0 for _, bottom in kept):
        return math.inf
    if not kept:
        return Fraction(1)
    with certificate_precision():
        result = [top / bottom for top, bottom in kept]
        if all(hasattr(ratio, "p") for ratio in result):
            least = min(result)
            return math.inf if least == 0 else rational(max(result) / least)
        most = least = result[0]
        for ratio in result[1:]:
            most = ratio if ratio.upper() > most.upper() else most
            least = ratio if ratio.lower() < least.lower() else least
        return max(ball_ratio_upper(most, least), Fraction(1))


def semantic_witness(
    spread: Fraction | float, row: int, output: Hashable, known: tuple[int, ...] | None
) -> Witness:
    """The two-point belief for which the total variation is the level."""
    posterior = 1.0 if spread == math.inf else (1 + quarter_tanh_up(spread)) / 2
    numbers = 1 - posterior, posterior, spread
    return Witness.shown(output, numbers, False, row=row, rows_known=known)


@dataclass(frozen=True, init=False)
class BayesianSemanticPrivacy(OfPriors):
    """Semantic privacy when only some rows are known and the others follow a prior: the same level
    for every set of known rows, with the likelihoods of the table of known rows (Zhao 2017,
    Definition 2).

    It compares with a world in which a row is at the default, so the prior must give the default a
    chance. Known rows for which it gives none are passed over; the level's `note` says so, and T15
    does not lead back to Bayesian differential privacy. A prior under which nothing at all can be
    compared is refused.

    All sets S come from one table of (m+1)^n entries; for noise on sums of more rows from one such
    table for each part of the rows that depend on each other, and beyond that as a bracket, from
    what the row leaks above and below the default (T15).

    Args:
        prior: a prior on records, or a list of them; then the largest of their levels counts.
        default: the value that stands for "no data".
    """

    default: int = 0
    unit: ClassVar[str] = "level"
    short_names: ClassVar[tuple[str, ...]] = ("bayesian-semantic",)

    def __init__(self, prior: Any, default: int = 0) -> None:
        super().__init__(prior)
        object.__setattr__(self, "default", default)

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        return self.worst_prior(lambda prior: self._measure(prior, mechanism, space))

    def _measure(self, prior: Prior, mechanism: object, space: Space | None) -> Level:
        if isinstance(space, Records):
            read_whole(self.default, "default", 0, space.values - 1)
            if isinstance(prior, ChainBox):
                found = BayesianDifferentialPrivacy(prior).measure(mechanism, space)
                assert found.prior is not None
                member = self._measure(found.prior, mechanism, space)
                value = math.tanh(float(found.value) / 2)
                lower = float(member.value if member.lower is None else member.lower)
                if found.exact:
                    return member
                return replace(member, value=value, exact=False, lower=lower, theorems=("T15",))
            joint = isinstance(mechanism, Composed) and len(mechanism.parts) > 1
            if joint or (space.values + 1) ** space.rows > MAX_CERTIFIED_CONDITIONS:
                factors, sums = list_factors(prior, space), noisy_sums(mechanism, space)
                if factors is not None and sums is not None:
                    from whosin.notions.semantic_sums import measure_spread

                    return measure_spread(prior, mechanism, space, factors, sums, self.default)
            certificates.require_conditions(space)  # before tables are made of it
        channel, records = record_channel(mechanism, space)
        if isinstance(prior, PriorSet):
            prior = Independent([each.widest() for each in prior.of_rows(records)])
        read_whole(self.default, "default", 0, records.values - 1)
        mass = prior.on_records(records, flint_rational)
        note = _left_out(mass, records, self.default)
        near, sides = _search_spreads(channel, mass, self.default)
        certain = Certain(channel, mass)
        recompute = partial(_pattern_spread, certain, self.default)
        upper, reached, (row, pattern, output) = near.certified(
            recompute, lambda _case: records.worlds, certain.budget
        )
        name = channel.outputs[output]
        if channel.is_density:
            worst = between_centres(
                channel, mass, self.default, sides, upper, partial(pattern_rows, records)
            )
            upper = worst.upper
            if worst.attained > reached:
                reached, row, pattern = worst.attained, worst.row, worst.pattern
                name = worst.output
        case = semantic_witness(reached, row, name, pattern_rows(records, pattern, row))
        theorems = () if note else ("T15",)
        return level_from_ratio(self, quarter_tanh_up, upper, reached, case, theorems, note)


def _search_spreads(channel: Channel, mass: Array, default: int) -> tuple[Nearest, list[Sides]]:
    """The cases with the largest spreads, and for each row max r and min r of every set of known
    rows and output."""
    space = channel.space
    assert isinstance(space, Records)
    near = Nearest()
    parts: list[list[Sides]] = [[] for _ in range(space.rows)]
    for start, table in certificates.conditional_likelihoods(channel.wide, mass, space):
        for row in range(space.rows):
            view = certificates.row_axis(table, space, row)
            result = default_ratios(view[:, : space.values], view[:, default : default + 1])
            sides = spreads_by_pattern(result, space, row)
            near.add(
                ratio_spread(*sides),
                lambda position, row=row, start=start: (row, position[0], start + position[1]),  # type: ignore[misc]
            )
            if channel.is_density:
                parts[row].append(sides)
    joined = [tuple(np.concatenate(side, axis=1) for side in zip(*p, strict=True)) for p in parts]
    return near, joined  # type: ignore[return-value]


def spreads_by_pattern(ratios: Array, space: Records, row: int) -> Sides:
    """For each set of known rows (a bit a row, the first most significant) max r and min r over
    everything that may be known there: 2^(n−1) × outputs."""
    outputs = ratios.shape[-1]
    sides = []
    for extreme in (np.fmax, np.fmin):
        table, done = ratios.reshape(-1), 1
        for other in range(space.rows):
            length = space.values if other == row else space.values + 1
            view = table.reshape(done, length, -1)
            known = extreme.reduce(view[:, : space.values], axis=1)
            if other == row:
                table = known.reshape(-1)
            else:
                table = np.stack([view[:, -1], known], axis=1).reshape(-1)
                done *= 2
        sides.append(table.reshape(-1, outputs))
    return sides[0], sides[1]


def pattern_rows(space: Records, pattern: int, row: int) -> tuple[int, ...]:
    """The known rows of a pattern, ascending."""
    others = [other for other in range(space.rows) if other != row]
    return tuple(sorted(o for index, o in enumerate(reversed(others)) if pattern >> index & 1))


def _pattern_spread(
    certain: Certain, default: int, case: tuple[int, int, int]
) -> tuple[Fraction | float, tuple[int, int, int]]:
    """max r / min r of one row, set of known rows and output, recomputed."""
    row, pattern, output = case
    known = pattern_rows(certain.space, pattern, row)
    pairs = []
    for others in product(range(certain.space.values), repeat=len(known)):
        fixed = dict(zip(known, others, strict=True))
        without = certain.likelihood({**fixed, row: default}, output)
        if without is None:
            continue
        for value in range(certain.space.values):
            result = certain.likelihood({**fixed, row: value}, output)
            if result is not None:
                pairs.append((result, without))
    return exact_spread(pairs), case


def _left_out(mass: Array, space: Records, default: int) -> str:
    """A sentence on the rows that are not compared with the default in every case; empty where all
    are.
    """
    possible = certificates.possible_conditions(mass, space)
    missing, compared = [], False
    for row in range(space.rows):
        view = certificates.row_axis(possible[:, None], space, row)[:, : space.values, :, 0]
        other = np.delete(view, default, axis=1).any(axis=1)
        if (other & ~view[:, default]).any():
            missing.append(row)
        compared |= bool((other & view[:, default]).any())
    return name_left_out(missing, compared, default)


def name_left_out(missing: Sequence[int], compared: bool, default: int) -> str:
    if missing and not compared:
        raise InvalidInput(
            f"default {default} has probability 0 under the prior, and Bayesian semantic privacy "
            "compares with it",
            field="default",
            value=default,
            hint=(
                "choose a possible value, give this one a small probability, or measure "
                "BayesianDifferentialPrivacy, which compares the possible values with each other"
            ),
        )
    if not missing:
        return ""
    rows = ", ".join(map(str, missing[:6])) + f" and {len(missing) - 6} more" * (len(missing) > 6)
    return (
        f"The prior rules out the default {default} in row {rows} for some of what may be known: "
        "those cases are passed over, and no level of Bayesian differential privacy follows (T15)."
    )
