"""Bayesian semantic privacy (Zhao 2017, Definition 2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from typing import ClassVar

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, flint_rational, quarter_tanh_up
from whosin.mechanisms import Channel
from whosin.notions import known_rows
from whosin.notions.base import OfOnePrior
from whosin.notions.between import Sides, between_centres
from whosin.notions.certain import Certain, Nearest, level_of, on_records
from whosin.notions.level import Level
from whosin.notions.semantic_privacy import (
    exact_spread,
    ratios,
    semantic_witness,
    spread_of,
)
from whosin.spaces import Records, Space
from whosin.validation import whole


@dataclass(frozen=True)
class BayesianSemanticPrivacy(OfOnePrior):
    """Semantic privacy when only some rows are known and the others follow a prior: the same level
    for every set of known rows, with the likelihoods of the table of known rows.

    It compares with a world in which a row is at the default, so the prior must give the default a
    chance. Known rows for which it gives none are passed over; the level's `note` says so, and T15
    does not lead back to Bayesian differential privacy. A prior under which nothing at all can be
    compared is refused.

    Args:
        prior: a prior on records.
        default: the value that stands for "no data".
    """

    default: int = 0
    unit: ClassVar[str] = "level"
    short_names: ClassVar[tuple[str, ...]] = ("bayesian-semantic",)

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel, records = on_records(mechanism, space)
        whole(self.default, "default", 0, records.values - 1)
        mass = self.prior.on_records(records, flint_rational)
        note = _left_out(mass, records, self.default)
        near, sides = _search(channel, mass, self.default)
        certain = Certain(channel, mass)
        upper, reached, (row, pattern, output) = near.certified(
            partial(_spread, certain, self.default), lambda _case: records.worlds, certain.budget
        )
        name = channel.outputs[output]
        if channel.is_density:
            worst = between_centres(
                channel, mass, self.default, sides, upper, partial(pattern_rows, records)
            )
            upper = worst.upper
            if worst.attained > reached:
                reached, row, pattern, name = (
                    worst.attained,
                    worst.row,
                    worst.pattern,
                    worst.output,
                )
        case = semantic_witness(reached, row, name, pattern_rows(records, pattern, row))
        theorems = () if note else ("T15",)
        return level_of(self, quarter_tanh_up, upper, reached, case, theorems, note)


def _search(channel: Channel, mass: Array, default: int) -> tuple[Nearest, list[Sides]]:
    """The cases with the largest spreads, and for each row max r and min r of every set of known
    rows and output."""
    space = channel.space
    assert isinstance(space, Records)
    near = Nearest()
    parts: list[list[Sides]] = [[] for _ in range(space.rows)]
    for start, table in known_rows.conditioned(channel.wide, mass, space):
        for row in range(space.rows):
            view = known_rows.axis(table, space, row)
            result = ratios(view[:, : space.values], view[:, default : default + 1])
            sides = _by_pattern(result, space, row)
            near.add(
                spread_of(*sides),
                lambda position, row=row, start=start: (row, position[0], start + position[1]),  # type: ignore[misc]
            )
            if channel.is_density:
                parts[row].append(sides)
    joined = [tuple(np.concatenate(side, axis=1) for side in zip(*p, strict=True)) for p in parts]
    return near, joined  # type: ignore[return-value]


def _by_pattern(ratios: Array, space: Records, row: int) -> Sides:
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


def _spread(
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

    Raises:
        InvalidInput: none is, in any case.
    """
    possible = known_rows.possible(mass, space)
    missing, compared = [], False
    for row in range(space.rows):
        view = known_rows.axis(possible[:, None], space, row)[:, : space.values, :, 0]
        other = np.delete(view, default, axis=1).any(axis=1)
        if (other & ~view[:, default]).any():
            missing.append(row)
        compared |= bool((other & view[:, default]).any())
    if missing and not compared:
        raise InvalidInput(
            "default",
            "a value that the prior allows beside others: Bayesian semantic privacy compares with "
            "it. Choose a possible value, give this one a small probability, or measure "
            "BayesianDifferentialPrivacy, which compares the possible values with each other",
            f"{default}, which has probability 0",
        )
    if not missing:
        return ""
    rows = ", ".join(map(str, missing))
    return (
        f"The prior rules out the default {default} in row {rows} for some of what may be known: "
        "those cases are passed over, and no level of Bayesian differential privacy follows (T15)."
    )
