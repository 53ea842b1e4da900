"""The three trade-offs of one prior: distortion against ε, identifiability and information."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from whosin.distortion.closed.bounds import stated_threshold
from whosin.distortion.closed.costs import best_constant, check_cost
from whosin.distortion.closed.hamming import h_inverse
from whosin.distortion.optimum import NOTIONS, Optimum
from whosin.distortion.solving import best
from whosin.distortion.symmetry.detection import structure
from whosin.distortion.symmetry.parts import Structure
from whosin.errors import UnknownName
from whosin.extras import needs
from whosin.priors import Prior
from whosin.spaces import Space
from whosin.validation import listed, whole

LEAST = 0.04
"""Curves end at this share of changed rows: below it ε grows without bound."""


@dataclass(frozen=True, eq=False)
class Curves:
    """Points of each curve by growing privacy level, each an optimum with its bounds."""

    spread: float
    threshold: float | None
    points: dict[str, list[Optimum]]
    skipped: dict[str, str]


def curves(
    space: Space,
    prior: Prior,
    notions: Sequence[str] = NOTIONS,
    points: int = 13,
    cost: object = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Curves:
    """Optima along each curve.

    Args:
        points: how many to compute for each notion.
        progress: called with the notion, how many points are done and how many there are.
    """
    needs("tradeoff")
    whole(points, "points", 2)
    for notion in listed(notions, "notions", f"a list of {', '.join(NOTIONS)}"):
        if notion not in NOTIONS:
            raise UnknownName("notion", str(notion), NOTIONS)
    known = structure(space, prior)
    result: dict[str, list[Optimum]] = {}
    skipped: dict[str, str] = {}
    for notion in notions:
        if notion == "identifiability" and known.spread == math.inf:
            skipped[notion] = "the prior has zeros: ε_X is infinite"
            continue
        levels = _levels(known, notion, points, cost)
        result[notion] = []
        for number, level in enumerate(levels):
            if progress is not None:
                progress(notion, number, len(levels))
            given = "distortion" if notion == "mutual-information" else "epsilon"
            result[notion].append(best(space, prior, notion=notion, cost=cost, **{given: level}))
        if progress is not None:
            progress(notion, len(levels), len(levels))
    return Curves(known.spread, stated_threshold(known), result, skipped)


def _levels(known: Structure, notion: str, points: int, cost: object) -> list[float]:
    """The levels to compute: ε, or for information the distortions, from much privacy to little."""
    space = known.space
    most = float(best_constant(known, check_cost(space, cost))[0])
    top = h_inverse(space, LEAST * space.rows)
    if notion == "mutual-information":
        return [float(d) for d in np.linspace(most, LEAST * min(most, space.rows), points)]
    if notion == "dp":
        return [float(e) for e in np.linspace(0.0, top, points)]
    low, high = known.spread, max(top, known.spread + 1.0)
    if known.rows is None:
        low += 1e-3 * (high - low)  # at ε_X itself the program has no interior
    return [float(e) for e in np.linspace(low, high, points)]
