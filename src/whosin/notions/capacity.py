"""Capacity: mutual information over all priors, between two certified numbers.

For any prior π with output probabilities q, I(π) ≤ capacity ≤ max_x KL(A_x ‖ q) (Blahut and
Arimoto's bound), so that what is reported does not depend on how well the method did. The largest
I(π) is a concave problem, in which no more worlds matter than there are outputs: an interior-point
Newton method works on some of the rows, and rows whose KL is larger are added until there are none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from whosin.errors import Unsupported
from whosin.exact import Array, flint_rational, rational
from whosin.mechanisms import Channel, as_channel
from whosin.notions.base import Notion
from whosin.notions.certain import bracket
from whosin.notions.level import Level
from whosin.notions.maximal_leakage import row_worlds
from whosin.notions.mutual_information import information
from whosin.priors import WorldTable
from whosin.spaces import Space

GAP = 1e-11
"""The gap at which the method stops, in nats; 1e-9 is what is promised."""
STEPS, ROUNDS = 120, 60
FEW = 64
"""Rows to begin with, and to add at a time."""
MOST_OUTPUTS = 2048


@dataclass(frozen=True)
class Capacity(Notion):
    """The largest I(X; Y) over all priors, in nats: an upper bound, with a lower one that the prior
    `Level.prior` attains."""

    unit: ClassVar[str] = "nats"
    averages: ClassVar[bool] = True
    about_records: ClassVar[None] = None  # type: ignore[misc]

    @property
    def title(self) -> str:
        return "Capacity (mutual information, any prior)"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = as_channel(mechanism, space)
        channel.need_finite("capacity")
        table = np.asarray(channel.wide, dtype=float)
        table = table[:, table.max(axis=0) > 0]
        if table.shape[1] > MOST_OUTPUTS:
            raise Unsupported(f"capacity takes at most {MOST_OUTPUTS:,} outputs")
        chosen, weights = _best_prior(table)
        mass = {int(row): Fraction(float(w)) for row, w in zip(chosen, weights, strict=True) if w}
        total = sum(mass.values())
        mass = {row: share / total for row, share in mass.items()}
        low = information(
            np.array([flint_rational(share) for share in mass.values()], dtype=object),
            _rows(channel, list(mass)),
            up=False,
        )
        high = max(_above(channel, mass), low)
        exact, lower = bracket(high, low)
        worlds = row_worlds(channel)
        prior = WorldTable({worlds[row]: share for row, share in mass.items()})
        return Level(high, None, exact, (), lower, notion=self, prior=prior)


def _rows(channel: Channel, rows: list[int]) -> Array:
    columns = range(channel.likelihoods.shape[1])
    table = [[channel.entries.at(row, column) for column in columns] for row in rows]
    return np.array(table, dtype=object).reshape(len(rows), len(columns))


def _above(channel: Channel, mass: dict[int, Fraction]) -> float:
    """max_x KL(A_x ‖ q), rounded up.

    Sums of K terms in floats, whose inputs are within 2^−52 of the truth. Rows of floats may miss a
    sum of 1 by a little; KL of the output probabilities is then at least minus twice that.
    """
    rows = list(mass)
    table = np.asarray(channel.wide, dtype=float)
    shares = np.array([flint_rational(share) for share in mass.values()], dtype=object)
    exact = _rows(channel, rows)
    q = np.array([float(rational(column @ shares)) for column in exact.T])
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(table) - np.log(q)
        terms = np.where(table > 0, table * logs, 0.0)
        size = np.where(table > 0, table * (np.abs(np.log(table)) + np.abs(np.log(q)) + 1), 0.0)
    value = terms.sum(axis=1) + size.sum(axis=1) * (table.shape[1] + 16) * 2.0**-52
    off = 0.0 if channel.exact is not None else 2 * float(np.abs(table.sum(axis=1) - 1).max())
    return max(math.nextafter(float(value.max()) + off, math.inf), 0.0)


def _best_prior(table: Array) -> tuple[Array, Array]:
    """Rows and their weights, nearly best."""
    count, columns = table.shape
    with np.errstate(divide="ignore", invalid="ignore"):
        negative = np.where(table > 0, table * np.log(table), 0.0).sum(axis=1)
    if count <= max(2 * FEW, 2 * columns):
        chosen = np.arange(count)
        return chosen, _weights(table, negative)
    chosen = np.unique(np.argmax(table, axis=0))
    extra = np.argsort(-negative)[:FEW]
    chosen = np.unique(np.concatenate([chosen, extra]))
    for _ in range(ROUNDS):
        weights = _weights(table[chosen], negative[chosen])
        far = negative - table @ np.log(weights @ table[chosen])
        reached = float(weights @ far[chosen])
        beyond = np.flatnonzero(far > reached + GAP)
        new = np.setdiff1d(beyond[np.argsort(-far[beyond])[: max(FEW, columns)]], chosen)
        if not new.size:
            break
        kept = chosen[(weights > 1e-12) | (far[chosen] > reached - 1e-4)]
        chosen = np.unique(np.concatenate([kept, new, np.argmax(table, axis=0)]))
    return chosen, weights


def _weights(table: Array, negative: Array) -> Array:
    """The best weights of these rows: π, z ≥ 0 with λ − KL(A_x ‖ q) = z_x and π_x z_x = μ → 0."""
    count = len(table)
    weights = np.full(count, 1.0 / count)
    best, least = weights, math.inf
    far = negative - table @ np.log(weights @ table)
    level = float(far.max()) + 1e-2
    z = level - far
    for _ in range(STEPS):
        q = weights @ table
        far = negative - table @ np.log(q)
        gap = float(far.max() - weights @ far / weights.sum())
        if gap < least:
            best, least = weights / weights.sum(), gap
        if gap <= GAP:
            break
        moved = _step(table / np.sqrt(q), weights, z, far, level)
        if moved is None:
            break
        weights, z, level = moved
    return best


def _step(
    scaled: Array, weights: Array, z: Array, far: Array, level: float
) -> tuple[Array, Array, float] | None:
    """One predictor–corrector step: weights, slacks, level."""
    system = scaled @ scaled.T
    system[np.diag_indices(len(z))] += z / weights
    pressure = float(weights @ z) / len(z)
    sums = 1.0 - weights.sum()

    def direction(aim: Array) -> tuple[Array, Array, float]:
        # system · dπ + dλ = KL − λ + aim/π,   Σ dπ = sums,   z + dz = (aim − z dπ)/π
        right = far - level + aim / weights
        both = np.linalg.solve(system, np.column_stack([right, np.ones(len(z))]))
        turn = (both[:, 0].sum() - sums) / both[:, 1].sum()
        move = both[:, 0] - turn * both[:, 1]
        return move, (aim - z * move) / weights - z, float(turn)

    try:
        move, swing, _ = direction(np.zeros(len(z)))
        reach = min(_reach(weights, move), _reach(z, swing))
        ahead = float((weights + reach * move) @ (z + reach * swing)) / len(z)
        aim = pressure * min(max((ahead / pressure) ** 3, 1e-8), 0.5)
        move, swing, turn = direction(aim - move * swing)
    except np.linalg.LinAlgError:
        return None
    reach = 0.99 * min(_reach(weights, move), _reach(z, swing))
    weights, z = weights + reach * move, z + reach * swing
    if not (np.isfinite(weights).all() and (weights > 0).all() and (z > 0).all()):
        return None
    return weights, z, level + reach * turn


def _reach(values: Array, direction: Array) -> float:
    """The largest step up to 1 that keeps values positive."""
    falling = direction < 0
    if not falling.any():
        return 1.0
    return min(1.0, float((-values[falling] / direction[falling]).min()))
