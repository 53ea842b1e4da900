"""Semantic privacy (Kasiviswanathan and Smith 2014) and its Bayesian form (Zhao 2017)."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.mechanisms import as_channel
from whosin.notions import known_rows
from whosin.notions.base import Notion
from whosin.notions.bayesian_differential_privacy import on_records
from whosin.notions.level import Level, Witness
from whosin.priors import Prior
from whosin.spaces import Records, Space


@dataclass(frozen=True)
class SemanticPrivacy(Notion):
    """The largest total variation between what an adversary believes about the table after seeing
    the output, and would believe had row i been replaced by the default, over all beliefs.

    No search over beliefs is needed: with r_x = Pr[y|x] / Pr[y|x with row i at the default] the
    level is tanh(¼ ln(max r / min r)), the larger over rows and outputs (proof: theorems.zhao17).
    An output that occurs with some data in row i and not with the default leaves no posterior to
    compare with on some beliefs; its level is 1, without which T15 would not hold.

    Args:
        default: the value that stands for "no data".
    """

    default: int = 0
    unit: ClassVar[str] = "level"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = on_records(as_channel(mechanism, space))
        records = channel.space
        assert isinstance(records, Records)
        _check(self.default, records)
        best: tuple[float, int, int] | None = None
        for row in range(records.rows):
            view = records.axis(channel.wide, row)
            ratios = _ratios(view, view[:, self.default : self.default + 1])
            spread = _spread(ratios.reshape(records.worlds, -1), 0)
            output = int(np.argmax(spread))
            if best is None or spread[output] > best[0]:
                best = float(spread[output]), row, output
        assert best is not None
        spread_at, row, output = best
        return _level(self, spread_at, row, channel.outputs[output], None)


@dataclass(frozen=True)
class BayesianSemanticPrivacy(Notion):
    """Semantic privacy when only some rows are known and the others follow a prior: the same level
    for every set of known rows, with the likelihoods of the table of known rows.

    Args:
        prior: a prior on records.
        default: the value that stands for "no data".
    """

    prior: Prior
    default: int = 0
    unit: ClassVar[str] = "level"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = on_records(as_channel(mechanism, space))
        records = channel.space
        assert isinstance(records, Records)
        _check(self.default, records)
        best: tuple[float, int, int, int] | None = None
        for start, table in known_rows.likelihoods(channel, self.prior):
            for row in range(records.rows):
                view = known_rows.axis(table, records, row)
                values = view[:, : records.values]
                ratios = _ratios(values, view[:, self.default : self.default + 1])
                spread = _by_pattern(ratios, records, row)
                place = np.unravel_index(int(spread.argmax()), spread.shape)
                value = float(spread[place])
                if best is None or value > best[0]:
                    best = value, row, int(place[0]), start + int(place[1])
        assert best is not None
        value, row, pattern, output = best
        return _level(self, value, row, channel.outputs[output], _pattern(pattern, records, row))


def _check(default: int, space: Records) -> None:
    if isinstance(default, bool) or not isinstance(default, int) or not 0 <= default < space.values:
        raise InvalidInput("default", f"a value from 0 to {space.values - 1}", repr(default))


def _ratios(values: Array, default: Array) -> Array:
    """r, with 0/0 passed over (NaN): such a world has no weight in either posterior."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(values / default)


def _spread(ratios: Array, along: int) -> Array:
    """max r / min r along an axis."""
    with np.errstate(invalid="ignore"):
        return _quotient(np.fmax.reduce(ratios, axis=along), np.fmin.reduce(ratios, axis=along))


def _quotient(most: Array, least: Array) -> Array:
    """max r / min r, at least 1: infinite where max r is, or min r is 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        spread = np.where(np.isposinf(most), np.inf, most / least)
    return np.where(np.isnan(spread), 1.0, np.maximum(spread, 1.0))


def _by_pattern(ratios: Array, space: Records, row: int) -> Array:
    """For each set of known rows (a bit a row, the first most significant) the spread of r over
    everything that may be known there: 2^(n−1) × outputs."""
    outputs = ratios.shape[-1]
    most = least = ratios
    sides = []
    for extreme in (np.fmax, np.fmin):
        table = (most if extreme is np.fmax else least).reshape(-1)
        done = 1
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
    return _quotient(sides[0], sides[1])


def _pattern(pattern: int, space: Records, row: int) -> tuple[int, ...]:
    """The known rows of a pattern."""
    others = [other for other in range(space.rows) if other != row]
    return tuple(other for place, other in enumerate(reversed(others)) if pattern >> place & 1)[
        ::-1
    ]


def _level(
    notion: Notion, spread: float, row: int, output: Hashable, known: tuple[int, ...] | None
) -> Level:
    root = math.sqrt(spread)
    value = 1.0 if math.isinf(spread) else (root - 1) / (root + 1)
    posterior = 1.0 if math.isinf(spread) else root / (1 + root)
    case = Witness(
        output=output,
        prior=1 - posterior,
        posterior=posterior,
        ratio=spread,
        row=row,
        rows_known=known,
    )
    return Level(value, case, True, ("T15",), notion=notion)
