"""The curves of noise that is added to a statistic, and of processes.

Noise that moves further is easier to tell apart, so the largest move between neighbours decides.
Laplace and Gaussian noise have curves in closed form, geometric noise has corners.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whosin.calibration.failure import gaussian_delta, gaussian_profile
from whosin.calibration.loss_distribution import LossDistribution
from whosin.calibration.rate_targets import best_tests
from whosin.curves.curve import ComparedWorlds, CornerCurve, TradeOff, ordered_corners
from whosin.curves.neighbours import compared, pair_of
from whosin.exact import exp_up, probability, rational, round_up
from whosin.mechanisms import Geometric
from whosin.mechanisms.geometric import whole_centres
from whosin.mechanisms.noise import AdditiveNoise, centres_on, lattice_on
from whosin.spaces import Space, as_statistic

SLACK = 1e-12
"""More than what floats round in a distribution of losses."""
LOOKED_AT = 257


@dataclass(frozen=True)
class LaplaceCurve(TradeOff):
    """Laplace noise of scale 1/level between answers that differ by 1: δ(x) = 1 − e^((x − level)/2)
    between −level and level."""

    level: Fraction
    exact: bool = True

    def tpr(self, fpr: object) -> float:
        alpha, ratio = probability(fpr, "fpr"), exp_up(self.level)
        if 2 * alpha >= 1:
            return round_up(1 - (1 - alpha) / ratio)
        if 2 * alpha * ratio <= 1:
            return round_up(ratio * alpha)
        return round_up(1 - 1 / (4 * alpha * ratio))

    def delta(self, epsilon: object) -> float:
        asked = rational(epsilon, "epsilon")
        if asked >= self.level:
            return 0.0
        below = asked if asked <= -self.level else (asked - self.level) / 2
        return round_up(1 - 1 / exp_up(-below))


@dataclass(frozen=True)
class NormalCurve(TradeOff):
    """Gaussian noise of standard deviation σ between answers that differ by 1:
    TPR = Φ(Φ⁻¹(FPR) + 1/σ). What is said was certified in balls, at the best ε that was found."""

    multiplier: float
    exact: bool = True

    def tpr(self, fpr: object) -> float:
        alpha = probability(fpr, "fpr")
        if alpha in (0, 1):
            return float(alpha)
        profile, shift = gaussian_profile(self.multiplier), 1 / self.multiplier
        reach = shift**2 / 2 + shift * (1 + math.sqrt(2 * max(0.0, -math.log(float(alpha)))))
        low, high = -reach - shift * 8, reach
        for _ in range(3):
            epsilons = np.linspace(low, high, LOOKED_AT)
            rates = np.exp(epsilons) * float(alpha) + profile(epsilons)
            best = int(np.argmin(rates))
            low, high = epsilons[max(best - 1, 0)], epsilons[min(best + 1, LOOKED_AT - 1)]
        at = rational(epsilons[best])
        rate = exp_up(at) * alpha + gaussian_delta(self.multiplier, at)
        return min(1.0, round_up(rate))

    def delta(self, epsilon: object) -> float:
        return min(1.0, round_up(gaussian_delta(self.multiplier, rational(epsilon, "epsilon"))))


@dataclass(frozen=True)
class LossCurve(TradeOff):
    """What a distribution of privacy losses allows, rounded to the safe side."""

    losses: LossDistribution
    exact: bool = False

    def tpr(self, fpr: object) -> float:
        alpha = float(probability(fpr, "fpr"))
        x, y = self.losses.corners()
        last = int(np.searchsorted(x, alpha, side="right"))
        if last >= len(x):
            width, rest = 1 - x[-1], 1 - y[-1]
            rate = y[-1] + rest * (alpha - x[-1]) / width if width > 0 else 1.0
        elif last == 0:
            rate = y[0]
        else:
            step = x[last] - x[last - 1]
            rate = y[last - 1] + (y[last] - y[last - 1]) * (alpha - x[last - 1]) / step
        return min(1.0, float(rate) + SLACK)

    def delta(self, epsilon: object) -> float:
        at = np.array([float(rational(epsilon, "epsilon"))])
        return min(1.0, float(self.losses.delta(at)[0]) + SLACK)


def pure_curve(
    ratio: Fraction,
    delta: Fraction = Fraction(0),
    *,
    exact: bool = False,
    relation: str | None = None,
    attained_by: Iterable[ComparedWorlds] = (),
) -> CornerCurve:
    """What (ln ratio, δ)-DP in both directions allows (see `CornerCurve`)."""
    return CornerCurve(
        best_tests(ratio, delta),
        exact=exact,
        relation=relation,
        attained_by=attained_by,
    )


def laplace_curve(mechanism: AdditiveNoise, space: Space, relation: str) -> TradeOff:
    """The curve of Laplace noise on a statistic."""
    moves = _moves(mechanism.statistic, space, relation)
    scale = rational(mechanism.scale)
    largest = max(sum(abs(each) for each in move) for move in moves)
    if max(sum(1 for each in move if each) for move in moves) > 1:
        # Several numbers move: ε is all that is said.
        return pure_curve(exp_up(largest / scale), relation=relation)
    return LaplaceCurve(largest / scale)


def gaussian_curve(mechanism: AdditiveNoise, space: Space, relation: str) -> TradeOff:
    """The curve of Gaussian noise on a statistic: a move in several directions counts by its
    length."""
    moves = _moves(mechanism.statistic, space, relation)
    square = max(sum(each * each for each in move) for move in moves)
    if not square:
        return pure_curve(Fraction(1), exact=True, relation=relation, attained_by=_all_of(moves))
    sigma = float(rational(mechanism.scale)) / math.sqrt(square)
    return NormalCurve(sigma * (1 - 2**-50), exact=False)


def geometric_curve(mechanism: Geometric, space: Space, relation: str) -> TradeOff:
    """The curve of geometric noise on a statistic: outputs between the two answers, and beyond
    each."""
    whole_centres(as_statistic(mechanism.statistic), space)
    moves = _moves(mechanism.statistic, space, relation)
    if mechanism.alpha is not None:
        alpha = rational(mechanism.alpha)
    else:
        alpha = 1 / exp_up(1 / rational(mechanism.scale))  # from below: less noise
    largest = max(sum(abs(each) for each in move) for move in moves)
    if max(sum(1 for each in move if each) for move in moves) > 1:
        return pure_curve(alpha ** -int(largest), relation=relation)
    attained = _all_of(
        {move: pairs for move, pairs in moves.items() if sum(map(abs, move)) == largest}
    )
    d, beyond, within = int(largest), 1 / (1 + alpha), (1 - alpha) / (1 + alpha)
    if d == 0:
        return pure_curve(Fraction(1), exact=True, relation=relation, attained_by=attained)
    outputs = [(beyond, beyond * alpha**d), (beyond * alpha**d, beyond)]
    outputs += [(within * alpha ** (d - j), within * alpha**j) for j in range(1, d)]
    return CornerCurve(
        ordered_corners(outputs),
        exact=mechanism.alpha is not None,
        relation=relation,
        attained_by=attained,
    )


Moves = dict[tuple[Fraction, ...], list[ComparedWorlds]]


def _moves(statistic: object, space: Space, relation: str) -> Moves:
    """How a statistic moves between neighbours, in each direction, and between which."""
    known = as_statistic(statistic)
    centres, lattice = centres_on(known, space), lattice_on(known, space)
    ends = compared(space, lattice, relation)
    result: Moves = {}
    for one, two in set(zip(*(side.tolist() for side in ends), strict=True)):
        move = tuple(a - b for a, b in zip(centres[one], centres[two], strict=True))
        result.setdefault(move, []).append(pair_of(space, lattice, one, two))
    return result


def _all_of(moves: Moves) -> list[ComparedWorlds]:
    return [pair for pairs in moves.values() for pair in pairs]
