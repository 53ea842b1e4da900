"""Membership, identifiability and mutual information on records: T22, T23, T24.

Rows are people, present (1) or absent (0), where a statement speaks of them. The proofs are in
docs/theory/numbers.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from whosin.errors import InvalidInput
from whosin.exact import (
    Number,
    ball,
    ball_ratio_upper,
    exp_up,
    precisely,
    probability,
    ranged,
    rational,
    round_up,
)
from whosin.validation import listed, real, within

LARGEST = 700


def membership_from_identifiability(
    epsilon: Number, beliefs: Iterable[object], positive: bool = True
) -> float:
    """T22: ε-identifiability under p_X ⇒ ({p_X}, γ)-PMP, for the γ returned, rounded up.

    γ = max over people of max(q/p, (1−p)/(1−q)), q = 1/(1+e^−ε). A finite ε forces full support.

    Args:
        beliefs: each person's prior probability p of being in.
        positive: False for NMP, which has 1 − p in place of p.
    """
    within(real(epsilon, "epsilon"), "epsilon", "at least 0")
    people = [probability(p, "beliefs") for p in listed(beliefs, "beliefs", "a list of numbers")]
    if not people or not all(0 < p < 1 for p in people):
        raise InvalidInput("beliefs", "strictly between 0 and 1, one for each person", beliefs)
    if epsilon >= LARGEST:
        return math.inf
    odds = exp_up(epsilon)
    sides = [p if positive else 1 - p for p in people]
    most = max(max(odds / ((1 + odds) * p), (1 - p) * (1 + odds)) for p in sides)
    return round_up(max(most, Fraction(1)))


def shift_from_information(nats: Number) -> float:
    """T23: I(X;Y) ≤ ι ⇒ the mean over outputs of |posterior − prior| is at most √(ι/2) for every
    person, and for every row the mean total variation between posterior and prior; rounded up."""
    within(real(nats, "information"), "information", "at least 0")
    if nats >= 2:
        return 1.0
    half = rational(nats) / 2
    root = math.sqrt(round_up(half))
    while Fraction(root) ** 2 < half:
        root = math.nextafter(root, math.inf)
    return min(root, 1.0)


def divergence_from_information(nats: Number, delta: Number) -> float:
    """T23, pointwise: with probability at least 1 − δ over outputs from their marginal, for every
    person at once, KL(posterior ‖ prior) ≤ ι/δ; rounded up.

    It is not the failure probability of a plan: given that a person is in, it is at most δ/p.
    """
    within(real(nats, "information"), "information", "at least 0")
    failing = ranged(delta, "delta", "above 0 and at most 1")
    return math.inf if nats == math.inf else round_up(rational(nats) / failing)


def information_from_dp(epsilon: Number, beliefs: Iterable[object]) -> float:
    """T24: ε-DP on independent binary rows ⇒ I(X;Y) ≤ Σ [H(p(1−q) + (1−p)q) − H(q)], rounded up.

    q = 1/(1+e^ε) and H is the entropy of a coin; randomised response attains it. Rows that depend
    on each other break it.

    Args:
        beliefs: the probability of value 1, one for each row.
    """
    within(real(epsilon, "epsilon"), "epsilon", "at least 0")
    listing = listed(beliefs, "beliefs", "a list of probabilities, one for each row")
    exact = (probability(each, "beliefs") for each in listing)
    counted = Counter(min(p, 1 - p) for p in exact if 0 < p < 1)
    if epsilon == 0 or not counted:
        return 0.0
    with precisely():
        flip = 1 / (1 + ball(epsilon).exp()) if epsilon < math.inf else ball(0)
        total = ball(0)
        for p, rows in counted.items():
            mixed = ball(p) * (1 - flip) + (1 - ball(p)) * flip
            total += rows * (_entropy(mixed) - _entropy(flip))
        return max(0.0, round_up(ball_ratio_upper(total, 1)))


def _entropy(share: Any) -> Any:
    """−x ln x − (1−x) ln(1−x) of a ball, 0 at 0."""
    if share == 0:
        return share
    return -share * share.log() - (1 - share) * (1 - share).log()
