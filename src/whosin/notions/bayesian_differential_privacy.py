"""Bayesian differential privacy (Yang, Sato, Nakagawa 2015; Zhao 2017)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from whosin.arguments import listed
from whosin.errors import InvalidInput, Unsupported
from whosin.exact import Number, flint_rational, is_exact, log_up, rational
from whosin.mechanisms import Channel, as_channel
from whosin.notions import chains, known_rows
from whosin.notions.base import Notion, shown
from whosin.notions.level import Level, Witness
from whosin.priors import MarkovChain, Prior
from whosin.spaces import Records, Space

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class BayesianDifferentialPrivacy(Notion):
    """The largest ln Pr[y | x_i, x_S] / Pr[y | x_i', x_S] over rows i, known rows S and outputs y.

    The rows outside S are as uncertain as the prior says, so what depends on row i leaks with it.
    All sets S come from one table of (m+1)^n entries; for a Markov chain with noise on a sum,
    count or histogram only windows around a row matter, for thousands of rows (F13).

    Args:
        prior: a prior on records, or a list of them: then the largest leakage of any.
    """

    prior: Prior | tuple[Prior, ...]
    unit: ClassVar[str] = "ε"

    def __init__(self, prior: Prior | Iterable[Prior]) -> None:
        accepted = "a prior on records, or a list of them"
        priors = prior if isinstance(prior, Prior) else listed(prior, "prior", accepted)
        object.__setattr__(self, "prior", priors)
        if not self.priors or not all(isinstance(each, Prior) for each in self.priors):
            raise InvalidInput("prior", accepted, repr(prior))

    @property
    def priors(self) -> tuple[Prior, ...]:
        """The priors, one or several."""
        return (self.prior,) if isinstance(self.prior, Prior) else self.prior

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        levels = [self._measure(prior, mechanism, space) for prior in self.priors]
        worst = max(levels, key=lambda level: level.value)
        exact = worst.exact and all(level.exact or level.value <= worst.value for level in levels)
        if exact:
            return Level(worst.value, worst.witness, True, worst.theorems, notion=self)
        # The witness is the case that attains most, which another prior than the worst may have.
        shown = max(levels, key=_attained)
        return Level(
            worst.value, shown.witness, False, worst.theorems, _attained(shown), notion=self
        )

    def _measure(self, prior: Prior, mechanism: object, space: Space | None) -> Level:
        if isinstance(prior, MarkovChain) and isinstance(space, Records):
            queries = chains.queries(mechanism, space)
            if queries is not None:
                return chains.leakage(prior, space, queries)
        return _by_table(prior, on_records(as_channel(mechanism, space)))


def _attained(level: Level) -> Number:
    """What a level's witness shows."""
    return level.value if level.lower is None else level.lower


def on_records(channel: Channel) -> Channel:
    """The channel, or an error if it is not about records."""
    if not isinstance(channel.space, Records):
        raise Unsupported("this notion is about the values of rows: it needs Records")
    return channel


def _by_table(prior: Prior, channel: Channel) -> Level:
    """Search the table over all sets of known rows, then recompute the winner exactly."""
    space = channel.space
    assert isinstance(space, Records)
    best: tuple[Any, int, int, int] | None = None
    for start, table in known_rows.likelihoods(channel, prior):
        for row in range(space.rows):
            view = known_rows.axis(table, space, row)[:, : space.values]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                most = np.fmax.reduce(view, axis=1)
                ratio = most / np.fmin.reduce(view, axis=1)
            # NaN is 0/0, a ratio of 1, or a condition that is impossible: that must not win.
            ratio = np.where(np.isnan(ratio), np.where(np.isnan(most), 0.0, 1.0), ratio)
            value = ratio.max()  # not a float: it may be beyond their range
            if best is None or value > best[0]:
                place = np.unravel_index(int(ratio.argmax()), ratio.shape)
                before, after, output = (int(part) for part in place)
                stride = (space.values + 1) ** (space.rows - 1 - row)
                index = before * (space.values + 1) * stride + after
                best = value, row, index, start + output
    assert best is not None
    _, row, index, output = best
    others = known_rows.coordinates(index, space)
    known = {r: v for r, v in enumerate(others) if v is not None and r != row}
    return _certified(prior, channel, row, known, output)


def _certified(
    prior: Prior, channel: Channel, row: int, known: dict[int, int], output: int
) -> Level:
    space = channel.space
    assert isinstance(space, Records)
    mass = prior.on_records(space, flint_rational)
    sides: list[tuple[int, Any]] = []
    for value in range(space.values):
        worlds = known_rows.worlds_with(space, {**known, row: value}, mass)
        total = sum((rational(weight) for _, weight in worlds), Fraction(0))
        if total:
            sides.append((value, [(world, rational(w) / total) for world, w in worlds]))
    best: tuple[Fraction | float, int, int] = (Fraction(1), sides[0][0], sides[0][0])
    for high, top in sides:
        for low, bottom in sides:
            ratio = channel.ratio(top, bottom, output)
            if ratio > best[0]:
                best = ratio, high, low
    ratio, high, low = best
    exact = channel.exact is not None and is_exact(*prior.parameters)
    after = Fraction(1) if ratio == math.inf else Fraction(ratio) / (1 + Fraction(ratio))
    case = Witness(
        output=channel.outputs[output],
        prior=shown(HALF, exact),
        posterior=shown(after, exact),
        ratio=shown(ratio, exact),
        row=row,
        known=known,
        values=(high, low),
    )
    return Level(log_up(ratio), case, True, ("T14",))
