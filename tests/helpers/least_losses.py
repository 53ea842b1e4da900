"""What tests of DP-SGD reach at least: losses rounded to the other side than a plan rounds them.

Outputs are merged until each merged one has a privacy loss on the grid. Whoever sees merged outputs
can do no better than whoever sees them all, so that what tests reach here they reach in truth. What
is left at the end is taken from "in" alone, which only makes members harder to recognise.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

WIDE = 10.0
"""Standard deviations beyond which all outputs are one."""
ROOM = 1 << 22
"""Grid points of the sum of all losses: far more than they spread."""


def one_step(multiplier: float, rate: float, grid: float) -> tuple[int, np.ndarray]:
    """(first, masses with the person): one step's losses, merged onto first·grid and above.

    Around each loss of the grid is one output. Where its own loss is larger, some of "in" is left
    out; where it is smaller, a share of the next output, whose loss is larger, is merged into it.
    """
    first = math.floor(math.log1p(-rate) / grid) + 1
    most = math.log1p(rate * math.expm1((2 * WIDE * multiplier + 1) / (2 * multiplier**2)))
    losses = np.arange(first, math.ceil(most / grid)) * grid
    # The loss at x is ln(1 − q + q e^((2x − 1)/2σ²)).
    cuts = multiplier**2 * np.log1p(np.expm1(losses[:-1] + grid / 2) / rate) + 0.5
    moved, without = (_between(cuts, centre, multiplier) for centre in (1.0, 0.0))
    with_it = (1 - rate) * without + rate * moved
    ratios = np.exp(losses)
    lacking = np.maximum(ratios * without - with_it, 0.0)[:-1]
    beyond = with_it[1:] - ratios[:-1] * without[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(lacking > 0, lacking / beyond, 0.0)
    share[~((share >= 0) & (share <= 1))] = 0.0
    taken, left = np.append(share, 0.0), np.append(1.0, 1 - share)
    in_, out = (left * side + taken * np.append(side[1:], 0.0) for side in (with_it, without))
    masses = np.where(in_ >= ratios * out * (1 - 1e-12), np.minimum(in_, ratios * out), 0.0)
    return first, masses


def _between(cuts: np.ndarray, centre: float, sigma: float) -> np.ndarray:
    z = np.concatenate([[-np.inf], (cuts - centre) / sigma, [np.inf]])
    masses: np.ndarray = np.where(
        z[1:] <= 0, np.diff(ndtr(z)), -np.diff(ndtr(-z))
    )  # of the smaller tail
    return masses


def rates(
    multiplier: float, rate: float, steps: int, grid: float = 1e-5
) -> tuple[np.ndarray, np.ndarray]:
    """(FPR, TPR) of tests that say "in" from some loss on, the strictest first."""
    first, masses = one_step(multiplier, rate, grid)
    # All steps together, around their mean; what lies beyond the room is less than rounding.
    spread = np.fft.rfft(masses, ROOM) ** steps
    middle = round(steps * float(masses @ np.arange(len(masses))) / float(masses.sum()))
    start = middle - ROOM // 2
    together = np.roll(np.fft.irfft(spread, ROOM), -(start % ROOM))
    together = np.where(together > 1e-15, together, 0.0)
    losses = (np.arange(ROOM) + start + steps * first) * grid
    with np.errstate(over="ignore", divide="ignore"):
        without = np.exp(np.log(together) - losses)
    return np.cumsum(without[::-1]), np.cumsum(together[::-1])


def least_tpr(multiplier: float, rate: float, steps: int, fpr: float, grid: float = 1e-5) -> float:
    """A TPR that some test with at most this FPR reaches, but for the rounding of floats."""
    x, y = rates(multiplier, rate, steps, grid)
    return float(np.interp(fpr, x, y))


def least_advantage(multiplier: float, rate: float, steps: int, grid: float = 1e-5) -> float:
    """A TPR − FPR that some test reaches."""
    x, y = rates(multiplier, rate, steps, grid)
    return float(np.max(y - x))
