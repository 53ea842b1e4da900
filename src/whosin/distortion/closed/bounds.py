"""Closed-form bounds on the optimum, for either quantity (T16, T17; Wang14 Theorems 1, 2)."""

from __future__ import annotations

import math

from whosin.distortion.closed.costs import best_constant, is_hamming
from whosin.distortion.closed.hamming import entropy_bound, h, h_inverse
from whosin.distortion.closed.optimal_forms import threshold
from whosin.distortion.symmetry.parts import Structure
from whosin.distortion.symmetry.size_limits import MOST_WORLDS
from whosin.exact import Array
from whosin.validation import of_kind


def distortion_bounds(
    structure: Structure, cost: Array, notion: str, epsilon: float
) -> tuple[float, float]:
    """What T16 says about the least distortion at ε.

    dp: h(ε + ε_X) ≤ D ≤ h(ε). identifiability: D = h(ε) from ε̃_X on, D ≥ h(ε) before; no mechanism
    below ε_X. mutual information: Shannon's bound turned round, and the chord of a convex curve.
    Whatever the notion a constant answer bounds D from above. Another distortion than Hamming has
    only the latter.
    """
    space = structure.space
    most = float(best_constant(structure, cost)[0])
    if not is_hamming(cost):
        return 0.0, most
    if notion == "dp":
        low = h(space, epsilon + structure.spread) if structure.spread < math.inf else 0.0
        return min(low, most), h(space, epsilon)
    if notion == "identifiability":
        value = h(space, epsilon)
        tight = epsilon >= known_threshold(structure)
        return min(value, most), value if tight else most
    whole = structure.entropy
    if epsilon >= whole:
        return 0.0, 0.0
    low, high = 0.0, most
    for _ in range(200):
        middle = (low + high) / 2
        above = entropy_bound(space.rows, space.values, whole, middle) > epsilon
        low, high = (middle, high) if above else (low, middle)
    return low, most * (1 - epsilon / whole)


def epsilon_bounds(
    structure: Structure, cost: Array, notion: str, distortion: float
) -> tuple[float, float]:
    """What T16 says about the least ε (or mutual information) at a distortion."""
    space, most = structure.space, float(best_constant(structure, cost)[0])
    spread = structure.spread
    if notion == "mutual-information":
        whole = structure.entropy
        chord = whole * max(0.0, 1 - distortion / most) if most else 0.0
        if not is_hamming(cost):
            return 0.0, chord
        return min(entropy_bound(space.rows, space.values, whole, distortion), chord), chord
    if not is_hamming(cost):
        return (spread if notion == "identifiability" else 0.0), math.inf
    exact = h_inverse(space, distortion)
    if notion == "dp":
        low = exact - spread if spread < math.inf else 0.0
        if exact == math.inf:
            low = math.inf
        return max(low, 0.0), max(exact, 0.0)
    least = max(exact, spread)
    if spread == math.inf:
        return math.inf, math.inf
    if exact >= known_threshold(structure):
        return exact, exact
    return least, max(least, known_threshold(structure))


def stated_threshold(structure: Structure) -> float | None:
    """ε̃_X, or nothing where it is out of reach."""
    result = known_threshold(structure)
    return None if result == math.inf and structure.spread < math.inf else result


def known_threshold(structure: Structure) -> float:
    """ε̃_X, or infinity where it is out of reach: the bounds then stay valid, and are looser."""
    if of_kind(structure, Structure, "structure").blocks:
        return max(known_threshold(block.structure) for block in structure.blocks)
    if structure.rows is None and structure.space.worlds > MOST_WORLDS:
        return math.inf
    return threshold(structure)
