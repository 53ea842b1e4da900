"""Semantic privacy (Kasiviswanathan and Smith 2014)."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np

from whosin.exact import (
    Array,
    ball_ratio_upper,
    flint_rational,
    precisely,
    quarter_tanh_up,
    rational,
    round_up,
)
from whosin.notions.base import Notion
from whosin.notions.certain import Certain, Nearest, level_of, on_records
from whosin.notions.level import Level, Witness
from whosin.spaces import Space
from whosin.validation import whole


@dataclass(frozen=True)
class SemanticPrivacy(Notion):
    """The largest total variation between what an adversary believes about the table after seeing
    the output and what they would believe if row i had been at the default, over all beliefs.

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
        channel, records = on_records(mechanism, space)
        whole(self.default, "default", 0, records.values - 1)
        near, view = Nearest(), channel.wide
        for row in range(records.rows):
            along = records.axis(view, row)
            result = ratios(along, along[:, self.default : self.default + 1])
            table = result.reshape(records.worlds, -1)
            spread = spread_of(np.fmax.reduce(table), np.fmin.reduce(table))
            near.add(spread, lambda position, row=row: (row, position[0]))  # type: ignore[misc]
        even = np.full(records.worlds, flint_rational(1))
        certain = Certain(channel, even)
        upper, attained, (row, output) = near.certified(
            partial(_spread, certain, self.default), lambda _case: records.worlds, certain.budget
        )
        case = semantic_witness(attained, row, channel.outputs[output], None)
        return level_of(self, quarter_tanh_up, upper, attained, case, ("T15",))


def _spread(
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


def ratios(values: Array, default: Array) -> Array:
    """r, with 0/0 passed over (NaN): that world has no weight in either posterior."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(values / default)


def spread_of(most: Array, least: Array) -> Array:
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
    with precisely():
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
    level = quarter_tanh_up(spread)
    posterior = 1.0 if spread == math.inf else (1 + level) / 2
    return Witness(
        output=output,
        prior=1 - posterior,
        posterior=posterior,
        ratio=spread if isinstance(spread, float) else round_up(spread),
        row=row,
        rows_known=known,
    )
