"""Rate–distortion at one slope: fitting mixture weights (F15).

At slope λ the best output distribution q maximises Σ_x p(x) ln (Kq)(x), K = e^(−λd): concave, and
for any q the gap to the optimum is at most ln max_y Σ_x p(x) K(x,y)/(Kq)(x) (Csiszár). The usual
algorithm (Blahut–Arimoto) is its slow expectation–maximisation; here a primal–dual interior-point
Newton method, which needs tens of steps: the multiplier of Σq = 1 is known to be 1, so the
conditions are g = 1 − Kᵀ(p/Kq) = z, q z = μ → 0, q, z ≥ 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from whosin.exact import Array

STEPS = 200


@dataclass(frozen=True, eq=False)
class Fit:
    """Weights q, the sums Kq, the gap that certifies them, and how many steps it took."""

    weights: Array
    sums: Array
    gap: float
    steps: int


def fit(masses: Array, kernel: Array, tolerance: float = 1e-12, start: Array | None = None) -> Fit:
    """Maximise Σ masses · ln(kernel @ q) over distributions q.

    Args:
        masses: p, positive or zero, with sum 1.
        kernel: positive, one column for each component.
        tolerance: the gap at which to stop.
        start: weights to start from, as of a nearby slope.
    """
    used = masses > 0
    p, k = masses[used], kernel[used]
    count = k.shape[1]
    q = np.full(count, 1.0 / count)
    if start is not None:
        q = 0.9 * start + 0.1 * q
    z = np.ones(count)
    best: tuple[float, Array] = (math.inf, q)
    step = stale = 0
    for step in range(STEPS):  # noqa: B007
        sums = k @ q
        pull = k.T @ (p / sums)
        total = float(q.sum())
        gap = math.log(max(float(pull.max()) * total, 1.0))
        stale = stale + 1 if gap > 0.5 * best[0] else 0
        if gap < best[0]:
            best = gap, q / total
        if gap <= tolerance or (stale > 8 and best[0] < 1e-9):
            break
        slope = 1.0 - pull
        pressure = float(q @ z) / count
        hessian = (k * (p / sums**2)[:, None]).T @ k
        diagonal = z / q
        hessian[np.diag_indices(count)] += diagonal
        try:
            ahead = np.linalg.solve(hessian, -slope)  # the affine direction, μ = 0
        except np.linalg.LinAlgError:
            break
        far = min(_reach(q, ahead), _reach(z, -z - diagonal * ahead))
        left = float((q + far * ahead) @ (z + far * (-z - diagonal * ahead))) / count
        aim = pressure * min(max((left / pressure) ** 3, 1e-6), 0.5)
        second = ahead * (-z - diagonal * ahead)
        move = np.linalg.solve(hessian, -slope + (aim - second) / q)
        turn = (aim - second) / q - z - diagonal * move
        # Each side steps as far as it can: the problem is not linear, so they are kept together.
        far = min(_reach(q, move), _reach(z, turn))
        q, z = q + 0.995 * far * move, z + 0.995 * far * turn
        if not (np.isfinite(q).all() and (q > 0).all() and (z > 0).all()):
            break
    gap, weights = best
    return Fit(weights, kernel @ weights, gap, step)


def _reach(values: Array, direction: Array) -> float:
    """The largest step up to 1 that keeps the values positive."""
    falling = direction < 0
    if not falling.any():
        return 1.0
    return min(1.0, float((-values[falling] / direction[falling]).min()))
