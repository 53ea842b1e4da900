"""Letters: the small problems that rate–distortion falls into (F15).

One for each distinct row where rows are independent, one for each kind of block where blocks are
(equal slopes are optimal), else one for the whole table; over counts instead of tables where rows
can be exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from whosin.distortion.symmetry.joint_types import Types
from whosin.exact import Array

MOST_COMPONENTS = 2048


@dataclass(frozen=True, eq=False)
class Letter:
    """A problem of its own, `times` over.

    Attributes:
        masses: p, over x or its counts.
        moments: at a slope λ the kernel K = Σ e^(−λd), and Σ d e^(−λd), Σ d² e^(−λd).
        conditionals: the channel that weights of y make at a slope.
        distortion, information: of a channel.
    """

    masses: Array
    times: int
    moments: Callable[[float], tuple[Array, Array, Array]]
    conditionals: Callable[[Array, float], Array]
    distortion: Callable[[Array], float]
    information: Callable[[Array], float]


def row_letter(row: Array, cost: Array, times: int) -> Letter:
    """One row of a table of independent rows."""

    def moments(slope: float) -> tuple[Array, Array, Array]:
        kernel = np.exp(-slope * cost)
        return kernel, kernel * cost, kernel * cost**2

    def conditionals(weights: Array, slope: float) -> Array:
        table = np.exp(-slope * cost) * weights
        return np.asarray(table / table.sum(axis=1, keepdims=True))

    return Letter(
        row,
        times,
        moments,
        conditionals,
        lambda channel: float((row[:, None] * channel * cost).sum()),
        lambda channel: row_information(row, channel),
    )


def table_letter(types: Types, masses: Array, cost: Array, times: int = 1) -> Letter:
    """A whole table by type: components are the counts of y."""
    spread, size = types.cost(cost), len(masses)
    base = np.exp(types.log_ways - types.log_arrangements[types.outputs])
    prices, which = np.unique(spread, return_inverse=True)
    into = types.inputs * size + types.outputs
    single = types.size == size * size  # every type is one pair (x, y): nothing to add up
    if single:
        order = np.empty(types.size, dtype=np.int64)
        order[into] = np.arange(types.size)
        cells = which[order].reshape(size, size)

    def summed(each: Array) -> Array:
        return np.bincount(into, each, size * size).reshape(size, size)

    def moments(slope: float) -> tuple[Array, Array, Array]:
        decay = np.exp(-slope * prices)
        if single:
            return decay[cells], (decay * prices)[cells], (decay * prices**2)[cells]
        each = base * decay[which]
        return summed(each), summed(each * spread), summed(each * spread**2)

    def conditionals(weights: Array, slope: float) -> Array:
        each = base * np.exp(-slope * spread) * weights[types.outputs]
        sums = np.bincount(types.inputs, each, size)
        return np.asarray(each / sums[types.inputs])

    return Letter(
        masses,
        times,
        moments,
        conditionals,
        lambda weights: float((masses[types.inputs] * weights * spread).sum()),
        lambda weights: type_information(types, masses, weights),
    )


def type_information(types: Types, masses: Array, weights: Array) -> float:
    """I(X;Y) of a mechanism given by its weights by type."""
    joint = masses[types.inputs] * weights
    outputs = np.bincount(types.outputs, joint, len(masses))
    with np.errstate(divide="ignore"):
        given = np.log(weights) - types.log_ways
        output_logs = np.log(outputs)[types.outputs] - types.log_arrangements[types.outputs]
    seen = joint > 0
    value = float(np.sum(joint[seen] * (given[seen] - output_logs[seen])))
    return value if value > 1e-14 else 0.0


def row_information(row: Array, channel: Array) -> float:
    """I(X;Y) of one row, its matrix given."""
    joint = row[:, None] * channel
    outputs = np.broadcast_to(joint.sum(axis=0), joint.shape)
    seen = joint > 0
    return max(0.0, float(np.sum(joint[seen] * np.log(channel[seen] / outputs[seen]))))
