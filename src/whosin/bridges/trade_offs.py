"""What another tool's object says of tests, as a trade-off curve: more than one ε at one δ.

A distribution of privacy losses that a tool keeps is taken as it is. Otherwise the object is asked
for its ε at many δ: each pair bounds every test, and what all of them allow is the curve.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from whosin.bridges.guarantee import Guarantee
from whosin.bridges.reading import read
from whosin.bridges.tools import accounted
from whosin.calibration.loss_distribution import LossDistribution
from whosin.curves import LossCurve, TradeOff
from whosin.curves.curve import below_lines
from whosin.errors import InvalidInput
from whosin.exact import exp_up, rational

DELTAS = tuple(Fraction(1, 10**k) for k in range(12, 1, -1)) + tuple(
    Fraction(k, 100) for k in (2, 5, 10, 15, 20, 30, 40, 50, 60, 75)
)
"""The δ at which an object is asked for its ε."""


def curve(value: Any, *, rows: int = 1) -> TradeOff:
    """What the best test of membership reaches, as far as an object of another tool tells.

    Args:
        rows: how many rows a person has at most, where the tool protects single rows.

    Raises:
        InvalidInput: it is of no tool that is known, or of a version that was not tried.
    """
    if type(value).__module__.startswith("dp_accounting.") and not hasattr(value, "get_epsilon"):
        value = accounted(value)  # once, and not for each δ
    first = read(value, delta=DELTAS[0], rows=rows)
    losses = _losses(value, first.relation) if rows == 1 else None
    if losses is not None:
        return LossCurve(LossDistribution.of(losses))
    if isinstance(value, Guarantee) or (first.rho is None and first.delta != DELTAS[0]):
        return below_lines(_lines(first), first.relation)  # it says one pair, whatever is asked
    told = (read(value, delta=at, rows=rows) for at in DELTAS[1:])
    lines = [*_lines(first), *(line for each in told for line in _lines(each))]
    return below_lines(lines, first.relation)


def _losses(value: Any, relation: str) -> Any:
    """The losses of "with the person", where a tool keeps them: dp-accounting's, and riskcal's.
    Where one person replaces another, either of the two may be the one, so the losses must be the
    same both ways."""
    kept = value.get_pld() if hasattr(value, "get_pld") else getattr(value, "_pld", None)
    if relation != "add-remove" and not getattr(kept, "_symmetric", False):
        return None
    return getattr(kept, "_pmf_remove", None)


def _lines(told: Guarantee) -> list[tuple[Fraction, Fraction]]:
    """What (ε, δ)-DP says of every test: TPR ≤ e^ε FPR + δ, and 1 − FPR ≤ e^ε (1 − TPR) + δ."""
    if told.epsilon == math.inf:
        raise InvalidInput("from", "an object with an ε at a δ", "one without")
    ratio = exp_up(rational(told.epsilon))
    return [(ratio, told.delta), (1 / ratio, 1 - (1 - told.delta) / ratio)]
