"""Bayesian differential privacy (Yang, Sato, Nakagawa 2015; Zhao 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np

from whosin.exact import Number, flint_rational, is_exact, log_up
from whosin.mechanisms import Channel
from whosin.notions import chains, known_rows
from whosin.notions.base import Notion, OfPriors
from whosin.notions.certain import (
    Certain,
    Nearest,
    largest_pair,
    level_of,
    on_records,
    value_witness,
)
from whosin.notions.level import Level
from whosin.notions.sums import noisy_sum
from whosin.priors import MarkovChain, Prior
from whosin.spaces import Records, Space


@dataclass(frozen=True, init=False)
class BayesianDifferentialPrivacy(OfPriors):
    """The largest ln Pr[y | x_i, x_S] / Pr[y | x_i', x_S] over rows i, known rows S and outputs y.

    The rows outside S are as uncertain as the prior says, so what depends on row i leaks with it.
    All sets S come from one table of (m+1)^n entries; for a Markov chain with noise on a sum,
    count or histogram only windows around a row matter, for thousands of rows (F13).

    Args:
        prior: a prior on records, or a list of them; then the largest of their leakages counts.
    """

    unit: ClassVar[str] = "ε"
    short_names: ClassVar[tuple[str, ...]] = ("bayesian-dp",)

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        levels = [self._measure(prior, mechanism, space) for prior in self.priors]
        worst = max(levels, key=lambda level: level.value)
        exact = worst.exact and all(level.exact or level.value <= worst.value for level in levels)
        if exact:
            return Level(worst.value, worst.witness, True, worst.theorems, notion=self)
        # The witness is the case that attains most, which another prior than the worst may have.
        attaining = max(levels, key=_attained)
        return Level(
            worst.value, attaining.witness, False, worst.theorems, _attained(attaining), notion=self
        )

    def _measure(self, prior: Prior, mechanism: object, space: Space | None) -> Level:
        if isinstance(prior, MarkovChain) and isinstance(space, Records):
            queries = noisy_sum(mechanism, space)
            if queries is not None:
                return chains.leakage(prior, space, queries)
        return _by_table(self, prior, *on_records(mechanism, space))


def _attained(level: Level) -> Number:
    """What a level's witness shows."""
    return level.value if level.lower is None else level.lower


def _by_table(notion: Notion, prior: Prior, channel: Channel, space: Records) -> Level:
    """Search the table over all sets of known rows, then recompute the winners exactly."""
    mass = prior.on_records(space, flint_rational)
    near = Nearest()
    for start, table in known_rows.conditioned(channel.wide, mass, space):
        for row in range(space.rows):
            view = known_rows.axis(table, space, row)[:, : space.values]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                most = np.fmax.reduce(view, axis=1)
                ratio = most / np.fmin.reduce(view, axis=1)
            # NaN is 0/0, a ratio of 1, or a condition that is impossible: that must not win.
            ratio = np.where(np.isnan(ratio), np.where(np.isnan(most), 0.0, 1.0), ratio)
            near.add(ratio, partial(_case, space, row, start))
    certain = Certain(channel, mass)

    def cost(case: tuple[int, dict[int, int], int]) -> int:
        return int(space.values ** (space.rows - len(case[1])))

    upper, attained, (row, known, output, values) = near.certified(
        partial(_largest, certain), cost, certain.budget
    )
    exact = channel.exact is not None and is_exact(*prior.parameters)
    case = value_witness(channel.outputs[output], attained, row, values, known, exact)
    return level_of(notion, log_up, upper, attained, case, ("T14",))


def _case(
    space: Records, row: int, start: int, position: tuple[int, ...]
) -> tuple[int, dict[int, int], int]:
    """(row, the other rows that are known, output) of a position in the table along a row."""
    before, after, output = position
    stride = (space.values + 1) ** (space.rows - 1 - row)
    others = known_rows.coordinates(before * (space.values + 1) * stride + after, space)
    known = {r: v for r, v in enumerate(others) if v is not None and r != row}
    return row, known, start + output


def _largest(
    certain: Certain, case: tuple[int, dict[int, int], int]
) -> tuple[Fraction | float, tuple[int, dict[int, int], int, tuple[int, int]]]:
    """The largest ratio between two values of a row given the known rows, recomputed."""
    row, known, output = case
    ratio, high, low = largest_pair(
        (value, certain.likelihood({**known, row: value}, output))
        for value in range(certain.space.values)
    )
    return ratio, (row, known, output, (high, low))
