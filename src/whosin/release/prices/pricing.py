"""From a share of the budget to noise, and from noise to its price under each relation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np

from whosin.calibration import Plan
from whosin.errors import InvalidInput
from whosin.exact import Array, round_up
from whosin.ledger.charge import RELATIONS, Charge, Cost
from whosin.noise import discrete_gaussian, discrete_laplace
from whosin.release.scans.bounding import Bounds, Part
from whosin.release.what_counts import Caution

CONFIDENCE = 0.95
LARGEST_SCALE = 2**52
SLIGHTLY_MORE = 1 + Fraction(1, 2**40)
"""Noise of a selection, so that its price, a float rounded up, stays within the share."""


@dataclass(frozen=True)
class Share:
    """What one query may spend, between neighbours of the plan's relation.

    Attributes:
        epsilon: pure ε, for exact Laplace noise and selections.
        rho: ρ of zCDP, for exact Gaussian noise; 0 for none.
        delta: δ, for queries that may fail.
    """

    plan: Plan
    epsilon: Fraction
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    @property
    def relation(self) -> str:
        """Between which worlds."""
        return self.plan.relation


@dataclass(frozen=True)
class NoisyPart:
    """A part with its noise, in units.

    Attributes:
        scale: of discrete Laplace noise, or the standard deviation of discrete Gaussian noise.
    """

    part: Part
    kind: str
    scale: Fraction

    def draw(self, size: int) -> Array:
        """Exact noise; none where the scale is 0."""
        if not self.scale:
            return np.zeros(size, np.int64)
        if self.kind == "gaussian":
            return discrete_gaussian(self.scale, size)
        return discrete_laplace(self.scale, size)

    def within(self, confidence: float = CONFIDENCE) -> int:
        """The noise is at most this many units from 0 with this probability."""
        if self.kind == "gaussian":
            # The tails are below the continuous ones' (Canonne, Kamath and Steinke 2020).
            return math.ceil(NormalDist().inv_cdf((1 + confidence) / 2) * float(self.scale))
        # Pr[|X| > w] = 2 a^(w+1) / (1 + a), where Pr[X = k] is proportional to a^|k|, a = e^(−1/s)
        a = math.exp(-1 / max(float(self.scale), 1e-300))
        needed = -float(self.scale) * math.log((1 - confidence) * (1 + a) / 2) - 1
        return max(0, math.ceil(needed))

    @property
    def variance(self) -> float:
        """The variance of the noise, in squared units."""
        width = self.scale**2 if self.kind == "gaussian" else self.scale
        return noise_variance(self.kind, float(width))

    @property
    def error(self) -> float:
        """The expected distance from 0, in units."""
        if self.kind == "gaussian":
            return float(self.scale) * math.sqrt(2 / math.pi)
        return 1 / math.sinh(1 / float(self.scale)) if self.scale > Fraction(1, 700) else 0.0

    def reach(self, confidence: float = CONFIDENCE) -> float:
        """`within` in the part's own measure."""
        return float(self.within(confidence) * self.part.unit)


@dataclass(frozen=True)
class Offer:
    """A query with its price and what to expect, before anything runs.

    Attributes:
        error: the expected absolute error of each number, if that is known beforehand.
        within: 95% of the numbers will be within this distance, likewise.
        within_words: what else is within it, in a sentence, where the answer is no number.
        noise: what noise, in words.
        parts: the noise of each summed part.
        details: what the query itself needs to answer, of a type of its own: a threshold, a scale.
        expression: what will be scanned, as the engine has checked it.
        cautions: what to decide before asking.
        tables: for each table of an answer with several its columns and the standard error of a
            cell, as plain data.
        measured: what is measured for them, with how much noise and at which price.
        standard_error: that of each number, where the batch is split for the least error.
        by_weights: what that would be if the batch were split by weights.
        joint: the offer that is debited and answered for this query and others at once.
    """

    query: Any
    share: Share
    charge: Charge
    noise: str
    error: float | None = None
    within: float | None = None
    parts: tuple[NoisyPart, ...] = ()
    details: Any = None
    expression: Any = field(default=None, compare=False, repr=False)
    cautions: tuple[Caution, ...] = ()
    tables: tuple[Mapping[str, Any], ...] = ()
    measured: tuple[Mapping[str, Any], ...] = ()
    standard_error: float | None = None
    by_weights: float | None = None
    within_words: str = ""
    joint: Offer | None = None

    @property
    def paid(self) -> Offer:
        """What is debited for this query: itself, or the offer that it is a part of."""
        return self.joint or self


def noisy_parts(
    parts: Sequence[Part], share: Share, bounds: Bounds, grouped: bool
) -> tuple[NoisyPart, ...]:
    """The share split evenly over the parts of a query."""
    result = []
    for part in parts:
        if share.rho:
            square = Fraction(part.squared(share.relation, bounds, grouped))
            variance = square * len(parts) / (2 * share.rho)
            result.append(NoisyPart(part, "gaussian", Fraction(_root_up(variance))))
        else:
            reach = part.sensitivity(share.relation, bounds, grouped)
            result.append(NoisyPart(part, "laplace", reach * len(parts) / share.epsilon))
    return tuple(drawable(each) for each in result)


def drawable(noisy: NoisyPart) -> NoisyPart:
    """Noise that the samplers can draw; what they cannot is refused before any debit."""
    if noisy.scale > LARGEST_SCALE:
        accepted = "of a scale of at most 2^52 steps: more budget, larger steps, fewer rows"
        raise InvalidInput("noise", accepted, f"{float(noisy.scale):.3g} steps")
    return noisy


def costs(parts: Sequence[NoisyPart], bounds: Bounds, grouped: bool) -> dict[str, Cost]:
    """What noise of these scales costs under each relation."""
    result, zero = {}, Fraction(0)
    for relation in RELATIONS:
        at = relation, bounds, grouped
        if parts[0].kind == "gaussian":
            rhos = (each.part.squared(*at) / (2 * each.scale**2) for each in parts)
            result[relation] = Cost.gaussian(sum(rhos, zero))
        else:
            epsilons = (each.part.sensitivity(*at) / each.scale for each in parts)
            result[relation] = Cost.pure(sum(epsilons, zero))
    return result


def noise_words(part: NoisyPart) -> str:
    """The noise of a part in words."""
    if not part.scale:
        return "none: the exact number"
    kind = "Gaussian, σ" if part.kind == "gaussian" else "Laplace, scale"
    return f"{kind} {float(part.scale * part.part.unit):.4g}"


TINY = 1e-12
"""The variance of noise that is always 0, so that it can be divided by."""


def noise_variance(kind: str, width: float) -> float:
    """The variance of discrete Laplace noise of a scale, or of discrete Gaussian noise of a σ²."""
    if kind == "laplace":  # 2a/(1 − a)², where a = e^(−1/s)
        return max(1 / (2 * math.sinh(1 / (2 * width)) ** 2), TINY) if width > 1e-3 else TINY
    if width > 4:
        return width  # to within 1e-30 of it
    near = np.arange(-60.0, 61.0)
    weights = np.exp(-(near**2) / (2 * max(width, 1e-6)))
    return max(float(near**2 @ weights / weights.sum()), TINY)


def _root_up(value: Fraction) -> float:
    """√value, rounded up."""
    root = math.sqrt(round_up(value))
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root
