"""Distortion and privacy in closed form (Wang, Ying, Zhang 2014, section IV).

Hamming distortion of n rows of m values: h(ε) = n / (1 + e^ε/(m−1)) is what randomised response
costs, and what the relaxed program R-PD costs at best (Lemma 1).
"""

from __future__ import annotations

import math

from whosin.errors import InvalidInput
from whosin.spaces import Records
from whosin.validation import of_kind, real


def h(space: Records, epsilon: float) -> float:
    """h(ε) = n / (1 + e^ε/(m−1)), for any real ε; h(∞) = 0."""
    of_kind(space, Records, "space", "Records(rows, values)")
    if real(epsilon, "epsilon") > 700:
        return space.rows * (space.values - 1) * math.exp(-epsilon)
    return space.rows / (1 + math.exp(epsilon) / (space.values - 1))


def h_inverse(space: Records, distortion: float) -> float:
    """h⁻¹(D) = ln(n/D − 1) + ln(m−1), for 0 ≤ D ≤ n; infinite at the ends."""
    of_kind(space, Records, "space", "Records(rows, values)")
    if not 0 <= real(distortion, "distortion") <= space.rows:
        raise InvalidInput("distortion", f"from 0 to {space.rows}, the rows", distortion)
    if distortion == 0:
        return math.inf
    if distortion == space.rows:
        return -math.inf
    return math.log(space.rows / distortion - 1) + math.log(space.values - 1)


def entropy_bound(space_rows: int, values: int, entropy: float, distortion: float) -> float:
    """Shannon's lower bound for Hamming distortion: H(X) − n h₂(D/n) − D ln(m−1), at least 0.

    It is attained for D ≤ h(ε̃_X) (T17; for i.i.d. rows that is D/n ≤ (m−1) p_min).
    """
    share = distortion / space_rows
    if share >= (values - 1) / values:
        return 0.0
    spread = 0.0 if share == 0 else -share * math.log(share) - (1 - share) * math.log1p(-share)
    return max(0.0, entropy - space_rows * (spread + share * math.log(values - 1)))
