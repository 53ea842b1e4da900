"""How likely a number of right guesses is, at most, under a trade-off curve.

Contract (after Mahloujifar, Melis, Chaudhuri 2024; the proof is ours). m coins u are tossed, the
output o depends on them, r canaries are guessed (which ones depends on o alone), C guesses are
right and W = r − C wrong. Let S be the outputs where guess i is right and C ≥ j. If coin i alone is
turned over, the same outputs have guess i wrong and C ≥ j − 1. So by f-DP, with power at most f̄ =
1 − f,

    Pr_u[right_i, C ≥ j] ≤ f̄(Pr_{u, i turned over}[wrong_i, C ≥ j − 1]),

and averaging over fair coins u and the m canaries, since f̄ is concave,

    a_j = E[C; C ≥ j]/m  ≤  f̄(b_{j−1}),  b_j = E[W; C ≥ j]/m,  for every j.

*The least total.* Suppose Pr[C ≥ c] ≥ τ. With p_k = Pr[C = k], the state (a_j, T_j = Pr[C ≥ j])
follows from p_c, p_{c+1} …; p_{j−1} must be at least what lifts b_{j−1} to f̄⁻¹(a_j). Call a state
above another if T is no less and m·a exceeds by at least j times the excess of T. The step with the
least p_{j−1} keeps this order (its new T is [m (f̄⁻¹(a) + a) − (j − 1) T]/(r − j + 1), which grows
along it), adding more mass than the least goes up in it, and all mass of τ at C = c is below every
other start. So steps with the least masses give the least T_0. If that exceeds 1, Pr[C ≥ c] < τ.

*Rates and sides.* For "in" guesses and coins of rate p the same argument, for coins of each side,
gives a_j/p ≤ f̄(b_{j−1}/(1 − p)); for "out" guesses p and 1 − p change places. For guesses of both
kinds the sum of the two is at most f̄(κ b), κ = max(p/(1 − p), (1 − p)/p), by concavity. Each right
side grows as p moves away from its side, so an interval of rates is tested at its ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from whosin.audit.crossing import Rates
from whosin.audit.curves.claims import Curve

IN, OUT, BOTH = "in", "out", "both"
SLACK = 1e-9
"""How far above 1 a total of probabilities must be to count as too much."""
CLOSE = 1e-4
LARGEST = 20.0


def least_total(
    right: int, tried: int, canaries: int, mass: float, level: Callable[[float], float]
) -> float:
    """The least probability of everything, if Pr[at least `right` of `tried`] is `mass`; it stops
    as soon as that is too much."""
    a, b, total = mass * right / canaries, mass * (tried - right) / canaries, mass
    for j in range(right, 0, -1):
        lifted = max(b, level(a))
        if lifted == math.inf:
            return math.inf
        added = (lifted - b) * canaries / (tried - j + 1)
        a, b, total = a + (j - 1) * added / canaries, lifted, total + added
        if total > 1 + SLACK:
            return total
    return total


@dataclass(frozen=True)
class CurveTest:
    """The test of a curve by the number of right guesses among `tried`, of a side.

    Attributes:
        rates: the rates of inclusion that are possible.
    """

    right: int
    tried: int
    canaries: int
    side: str
    rates: Rates

    def refutes(self, curve: Curve, error: float) -> bool:
        """Whether as many right guesses have a probability below the error."""
        if self.right == 0 or self.tried == 0:
            return False
        level = _level(curve, self.side, self.rates)
        return least_total(self.right, self.tried, self.canaries, error, level) > 1 + SLACK

    def largest(self, family: Callable[[float], Curve], error: float) -> float:
        """The largest parameter, from 0 on, whose curve is refuted; curves allow more as it
        grows."""
        if not self.refutes(family(0.0), error):
            return 0.0
        held, refused = 0.0, 0.25
        while refused < LARGEST and self.refutes(family(refused), error):
            held, refused = refused, refused * 2
        while refused - held > CLOSE * max(refused, 0.1):
            middle = (held + refused) / 2
            held, refused = (
                (middle, refused) if self.refutes(family(middle), error) else (held, middle)
            )
        return held


def _level(curve: Curve, side: str, rates: Rates) -> Callable[[float], float]:
    """The b that a needs, at the rate that is hardest to refute."""
    low, high = rates
    if side == BOTH:
        most = max(high, 1 - low)
        odds = most / (1 - most) if most < 1 else math.inf
        return lambda a: curve.level(a) / odds if a <= 1 else math.inf
    rate = high if side == IN else 1 - low
    return lambda a: (1 - rate) * curve.level(a / rate) if a <= rate else math.inf
