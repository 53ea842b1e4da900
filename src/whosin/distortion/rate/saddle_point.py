"""Rate–distortion at a distortion: a saddle point in the output's weights and the slope (F15).

With K = e^(−λd), R(D) = min over distributions q, max over λ of −Σ_x p(x) ln (Kq)(x) − λD, convex
in q and concave in λ. Blahut–Arimoto is its slow expectation–maximisation at a fixed λ, to be
repeated for every λ that a search tries. Here one primal–dual interior-point Newton method moves
both together: the multiplier of Σq = 1 is known to be 1, so the conditions are

    1 − Kᵀ(p/Kq) = z,   q z = μ → 0,   q, z ≥ 0,   E d = D,

with one symmetric system a letter, and one more unknown, λ, that couples them. For any q and λ

    R(D') ≥ −λD' − Σ p ln(Kq) − ln max_y Σ p K/(Kq)        for every D' (Csiszár),

so that the bound that is reported does not depend on how well the method did.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from whosin.distortion.rate.letters import Letter
from whosin.exact import Array

STEPS = 200
STEEPEST = 650.0
LARGE = 48
"""Components from which a linear algebra library would start threads."""


@dataclass(frozen=True, eq=False)
class Saddle:
    """The slope, weights of each letter, the bound R(D) ≥ intercept − slope · D, how far that may
    be below R(D), and how many steps it took."""

    slope: float
    weights: tuple[Array, ...]
    intercept: float
    gap: float
    steps: int


class _Side:
    """One letter's weights q and slacks z, and what a Newton step needs of them."""

    def __init__(self, letter: Letter) -> None:
        self.letter, self.times = letter, letter.times
        self.used = letter.masses > 0
        self.all_used = bool(self.used.all())
        self.p = letter.masses[self.used]
        count = len(letter.masses)
        self.q, self.z = np.full(count, 1.0 / count), np.ones(count)

    def look(self, slope: float) -> None:
        k, first, second = self.letter.moments(slope)
        if not self.all_used:
            k, first, second = k[self.used], first[self.used], second[self.used]
        total = self.q.sum()
        sums = k @ self.q
        self.share = self.p / sums
        self.mean = (first @ self.q) / sums
        self.pull = k.T @ self.share
        self.distortion = float(self.p @ self.mean)
        self.variance = float(self.p @ ((second @ self.q) / sums - self.mean**2))
        self.lean = first.T @ self.share - k.T @ (self.share * self.mean)
        self.kernel, self.sums = k, sums
        self.gap = math.log(max(float(self.pull.max()) * total, 1.0))
        self.value = -float(self.p @ np.log(sums)) + math.log(total)

    def factor(self) -> None:
        from scipy.linalg import cho_factor
        from scipy.linalg.blas import dsyrk

        scaled = self.kernel * (self.share / np.sqrt(self.p))[:, None]
        system = dsyrk(1.0, scaled.T)
        system[np.diag_indices(len(self.q))] += self.z / self.q
        self.factors = cho_factor(system, overwrite_a=True, check_finite=False)

    def solve(self, right: Array) -> Array:
        from scipy.linalg import cho_solve

        return np.asarray(cho_solve(self.factors, right, check_finite=False))


def saddle(
    letters: Sequence[Letter], distortion: float, slope: float = 1.0, tolerance: float = 1e-12
) -> Saddle:
    """The saddle point at a distortion (of all letters together), to a certified tolerance.

    Args:
        slope: where to start.
        tolerance: the gap at which to stop, in nats.
    """
    if max(len(letter.masses) for letter in letters) < LARGE:
        return _saddle(letters, distortion, slope, tolerance)
    from threadpoolctl import threadpool_limits

    # Matrices of this size gain nothing by threads, and lose much where cores are shared.
    with threadpool_limits(1, user_api="blas"):
        return _saddle(letters, distortion, slope, tolerance)


def _saddle(letters: Sequence[Letter], distortion: float, slope: float, tolerance: float) -> Saddle:
    sides = [_Side(letter) for letter in letters]
    best: Saddle | None = None
    stale = 0
    for step in range(STEPS):
        for side in sides:
            side.look(slope)
        result = _taken(sides, slope, distortion, step)
        stale = stale + 1 if best is not None and result.gap > 0.5 * best.gap else 0
        if best is None or result.gap < best.gap:
            best = result
        if best.gap <= tolerance or (stale > 6 and best.gap < 1e-9) or stale > 40:
            break
        try:
            moved = _step(sides, slope, distortion)
        except np.linalg.LinAlgError:
            break
        if moved is None:
            break
        slope = moved
    assert best is not None
    return best


def _taken(sides: list[_Side], slope: float, distortion: float, step: int) -> Saddle:
    """The point reached, and its gap: what its bound says at D, against the information of its
    channel, brought back to D along the slope."""
    intercept = sum(side.times * (side.value - side.gap) for side in sides)
    reached = sum(side.times * side.distortion for side in sides)
    slack = sum(side.times * side.gap for side in sides)
    off = abs(reached - distortion)
    weights = tuple(side.q / side.q.sum() for side in sides)
    return Saddle(slope, weights, intercept, slack + slope * off, step)


def _step(sides: list[_Side], slope: float, distortion: float) -> float | None:
    """One predictor–corrector step of all weights and the slope; the new slope."""
    off = sum(side.times * side.distortion for side in sides) - distortion
    count = sum(len(side.q) for side in sides)
    pressure = sum(float(side.q @ side.z) for side in sides) / count
    for side in sides:
        side.factor()
    ahead, turn = _direction(sides, off, [np.zeros_like(side.q) for side in sides])
    swings = [-s.z - s.z / s.q * move for s, move in zip(sides, ahead, strict=True)]
    far = _far(sides, ahead, swings)
    left = sum(
        float((s.q + far * move) @ (s.z + far * swing))
        for s, move, swing in zip(sides, ahead, swings, strict=True)
    )
    aim = pressure * min(max((left / count / pressure) ** 3, 1e-6), 0.5)
    seconds = [move * swing for move, swing in zip(ahead, swings, strict=True)]
    pushes = [(aim - second) / side.q for side, second in zip(sides, seconds, strict=True)]
    moves, turn = _direction(sides, off, pushes)
    swings = [
        push - s.z - s.z / s.q * move for s, push, move in zip(sides, pushes, moves, strict=True)
    ]
    far = 0.995 * _far(sides, moves, swings)
    if turn < 0:
        far = min(far, -0.9 * slope / turn)
    far = min(far, 2 * max(slope, 0.5) / max(abs(turn), 1e-300))
    for side, move, swing in zip(sides, moves, swings, strict=True):
        side.q, side.z = side.q + far * move, side.z + far * swing
        if not (np.isfinite(side.q).all() and (side.q > 0).all() and (side.z > 0).all()):
            return None
    return min(slope + far * turn, STEEPEST)


def _direction(sides: list[_Side], off: float, pushes: list[Array]) -> tuple[list[Array], float]:
    """The Newton direction of the weights and of the slope, the slope eliminated last."""
    plain, leaning, top, bottom = [], [], off, 0.0
    for side, push in zip(sides, pushes, strict=True):
        both = side.solve(np.column_stack([side.pull - 1.0 + push, side.lean]))
        plain.append(both[:, 0])
        leaning.append(both[:, 1])
        top += side.times * float(side.lean @ both[:, 0])
        bottom += side.times * (side.variance + float(side.lean @ both[:, 1]))
    turn = top / bottom if bottom > 0 else 0.0
    return [one - turn * two for one, two in zip(plain, leaning, strict=True)], turn


def _far(sides: list[_Side], moves: list[Array], swings: list[Array]) -> float:
    """The largest step up to 1 that keeps weights and slacks positive."""
    far = 1.0
    for side, move, swing in zip(sides, moves, swings, strict=True):
        for values, direction in ((side.q, move), (side.z, swing)):
            falling = direction < 0
            if falling.any():
                far = min(far, float((-values[falling] / direction[falling]).min()))
    return far
