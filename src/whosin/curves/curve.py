"""A trade-off curve: the largest true-positive rate of any test, by its false-positive rate.

A test says "in" or "out"; FPR is how often it says "in" of someone who is out, TPR how often of
someone who is in. A curve is concave, from (0, TPR(0)) to (1, 1). Rates are exact where the curve
is, and otherwise on the safe side: no test does better than what is said.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from whosin import beliefs
from whosin.calibration.rate_targets import CornerTests
from whosin.errors import Unsupported, invalid_value
from whosin.exact import (
    MAX_CURVE_EPSILON,
    Number,
    exact_fraction,
    exp_down,
    log_down,
    log_up,
    probability,
    rational,
    read_ranged,
    round_up,
)
from whosin.notebook_display import Displayed

BISECTION_ACCURACY = 1e-12
"""How close to the least an ε is searched for."""
FALSE_POSITIVE_RATES = tuple(Fraction(1, 10**k) for k in range(5, 0, -1))
"""The rates that tables show."""


class TradeOff(Displayed, ABC):
    """What tests can reach.

    Attributes:
        exact: whether the curve is attained; otherwise it is a bound.
    """

    exact: bool

    @abstractmethod
    def tpr(self, fpr: object) -> Number:
        """The largest TPR of tests with at most this FPR."""

    @abstractmethod
    def delta(self, epsilon: object) -> float:
        """δ(ε) = sup TPR − e^ε FPR at any real ε, rounded up."""

    def epsilon(self, delta: object) -> float:
        """The least ε ≥ 0 with δ(ε) ≤ δ, rounded up; infinite where none has."""
        failing = read_ranged(delta, "delta", "at least 0 and below 1")
        if self.delta(0) <= failing:
            return 0.0
        if self.delta(MAX_CURVE_EPSILON) > failing:
            return math.inf
        low, high = 0.0, float(MAX_CURVE_EPSILON)
        while high - low > BISECTION_ACCURACY * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(Fraction(middle)) <= failing else (middle, high)
        return high

    @property
    def advantage(self) -> Number:
        """The largest TPR − FPR."""
        return self.delta(0)

    def bayes_risk(self, prior: object) -> Number:
        """The least probability of error of someone with this prior who says "in" or "out"."""
        belief = probability(prior, "prior")
        if belief in (0, 1):
            return 0.0
        # π(1 − TPR) + (1 − π) FPR is least where TPR − FPR (1 − π)/π is largest: δ at the odds.
        odds = (1 - belief) / belief
        most = self.delta(log_down(odds) if odds != 1 else 0)
        return max(0.0, float(belief) * (1 - most) * (1 - 1e-15))

    def posterior(self, prior: object, fpr: object) -> Number:
        """How sure someone with this prior becomes when the best test with this FPR says "in"."""
        alpha = read_ranged(fpr, "fpr", "above 0 and at most 1")
        ratio = exact_fraction(self.tpr(alpha)) / alpha
        return beliefs.posterior(ratio, probability(prior, "prior"))


@dataclass(frozen=True)
class ComparedWorlds:
    """Two worlds, or classes of worlds, that tests tell apart.

    Attributes:
        worlds: the space or lattice that numbers them.
        in_, out: their numbers.
        alone: whether the person is the only one who may be there.
    """

    worlds: object
    in_: int
    out: int
    alone: bool = False


class CornerCurve(CornerTests, TradeOff):
    """A curve of straight pieces, in exact numbers.

    Args:
        corners: (FPR, TPR), in order; hulls take any points.
        relation: between which worlds, whichever two, such as "add-remove" or "replace"; None for
            anything else, such as "in" against "out" under the priors of a family.
        attained_by: pairs of worlds that have this very curve by themselves, as far as known.
    """

    def __init__(
        self,
        corners: Sequence[tuple[Fraction, Fraction]],
        *,
        exact: bool = True,
        relation: str | None = None,
        attained_by: Iterable[ComparedWorlds] = (),
    ) -> None:
        super().__init__(concave_hull(corners))
        self.exact = exact
        self.relation, self.attained_by = relation, frozenset(attained_by)

    def delta(self, epsilon: object) -> float:
        level = rational(epsilon, "epsilon")
        if abs(level) > MAX_CURVE_EPSILON:
            accepted = f"between -{MAX_CURVE_EPSILON} and {MAX_CURVE_EPSILON}"
            raise invalid_value("epsilon", accepted, epsilon)
        factor = exp_down(level) if level else Fraction(1)
        return round_up(max(tpr - factor * fpr for fpr, tpr in self.corners))

    def epsilon(self, delta: object) -> float:
        """The least ε ≥ 0 with δ(ε) ≤ δ, rounded up: ln of the largest (TPR − δ)/FPR."""
        failing = read_ranged(delta, "delta", "at least 0 and below 1")
        above = [(fpr, tpr - failing) for fpr, tpr in self.corners if tpr > failing]
        if any(fpr == 0 for fpr, _ in above):
            return math.inf
        return max(0.0, log_up(max(tpr / fpr for fpr, tpr in above)))

    def composed(self, other: CornerCurve) -> CornerCurve:
        """The curve of two answers together, each with a curve of its own between the same worlds.

        It is exact where one pair of worlds attains both, and otherwise a bound.

        Raises:
            Unsupported: one of them is about other things than two neighbouring worlds.
        """
        for each in (self, other):
            each._need_worlds("composed")
        if self.relation != other.relation:
            message = (
                f"curves of {self.relation} and of {other.relation} cannot be composed: they are "
                "about different neighbours"
            )
            raise Unsupported(message, field="relation", value=other.relation)
        pieces = [(p * p_, q * q_) for q, p in self.pieces() for q_, p_ in other.pieces()]
        both = self.attained_by & other.attained_by
        exact, corners = self.exact and other.exact and bool(both), ordered_corners(pieces)
        return CornerCurve(corners, exact=exact, relation=self.relation, attained_by=both)

    def sampled(self, rate: object) -> CornerCurve:
        """The curve where each person is looked at with this probability only (Poisson).

        It is exact where someone who is alone attains the curve: the others are sampled too, which
        otherwise hides more, and the curve is a bound.

        Raises:
            Unsupported: it is not about one person who is in or out, whoever else is.
        """
        share = read_ranged(rate, "rate", "above 0 and at most 1")
        self._need_worlds("sampled")
        if self.relation != "add-remove":
            message = (
                "only an add-remove curve can be sampled: of two people who replace each other, "
                "each is sampled separately"
            )
            raise Unsupported(message, field="relation", value=self.relation)
        corners = [(fpr, share * tpr + (1 - share) * fpr) for fpr, tpr in self.corners]
        alone = [pair for pair in self.attained_by if pair.alone or share == 1]
        exact = self.exact and (bool(alone) or share == 1)
        return CornerCurve(corners, exact=exact, relation=self.relation, attained_by=alone)

    def _need_worlds(self, done: str) -> None:
        if self.relation is None:
            raise Unsupported(
                "a curve over the priors of a family, or of a plan for one release, cannot be "
                f"{done}: what others hide in one answer, two may show",
                field="relation",
                hint="take the curve between neighbouring inputs, without a family",
            )

    def pieces(self) -> list[tuple[Fraction, Fraction]]:
        """(FPR, TPR) of each straight piece alone: outputs of a pair that has this curve."""
        return [(x1 - x0, y1 - y0) for (x0, y0), (x1, y1) in pairwise(self.corners)]


def ordered_corners(
    outputs: Sequence[tuple[Fraction, Fraction]],
) -> list[tuple[Fraction, Fraction]]:
    """Neyman and Pearson: say "in" from the largest Pr[o|in]/Pr[o|out] down; the corners (FPR, TPR)
    of outputs (Pr[o|in], Pr[o|out])."""
    possible = [(p, q) for p, q in outputs if p or q]
    possible.sort(key=lambda pair: pair[1] / (pair[0] + pair[1]))
    fpr, tpr = Fraction(0), Fraction(0)
    corners = [(fpr, tpr)]
    for p, q in possible:
        fpr, tpr = fpr + q, tpr + p
        corners.append((fpr, tpr))
    return corners


def concave_hull(points: Sequence[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    """The corners of the least concave curve above all points, from (0, 0) to (1, 1)."""
    one = Fraction(1)
    # Rows of floats sum to 1 only nearly.
    inside = {(min(x, one), min(y, one)) for x, y in points}
    return upper_hull(inside | {(Fraction(0), Fraction(0)), (one, one)})


def upper_hull(points: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The corners of the least concave curve above all points, from the first to the last."""
    upper: list[tuple[Any, Any]] = []
    for x, y in sorted(points):
        if upper and upper[-1][0] == x and len(upper) > 1:
            upper.pop()
        while len(upper) > 1:
            (x0, y0), (x1, y1) = upper[-2:]
            if (x1 - x0) * (y - y0) < (y1 - y0) * (x - x0):
                break
            upper.pop()
        upper.append((x, y))
    return upper


def lower_envelope(
    one: Sequence[tuple[Fraction, Fraction]], two: Sequence[tuple[Fraction, Fraction]]
) -> list[tuple[Fraction, Fraction]]:
    """The corners of a curve that stays below two curves and TPR = 1, each by its corners.

    Lines that fall are left out: a bound that has less FPR and more TPR than a test is not above
    that test on them.
    """
    lines = []
    for corners in (one, two):
        for (x0, y0), (x1, y1) in pairwise(corners):
            if x1 > x0 and y1 >= y0:
                slope = (y1 - y0) / (x1 - x0)
                lines.append((slope, y0 - slope * x0))
    return below_lines(lines).corners


def below_lines(
    lines: Sequence[tuple[Fraction, Fraction]], relation: str | None = None
) -> CornerCurve:
    """The curve that stays below TPR = 1 and all lines TPR = slope · FPR + rest."""
    ends: list[tuple[Fraction, Fraction]] = []
    least: dict[Fraction, Fraction] = {}
    for slope, rest in (*lines, (Fraction(0), Fraction(1))):
        least[slope] = min(rest, least.get(slope, rest))
    for line in sorted(least.items(), reverse=True):
        while len(ends) > 1 and _line_crossing(ends[-2], line) <= _line_crossing(*ends[-2:]):
            ends.pop()
        ends.append(line)
    crossings = (_line_crossing(one, two) for one, two in pairwise(ends))
    rates = [Fraction(0), *(each for each in crossings if 0 < each < 1), Fraction(1)]
    corners = [(at, max(min(a * at + b for a, b in ends), at)) for at in rates]
    return CornerCurve(corners, exact=False, relation=relation)


def _line_crossing(one: tuple[Fraction, Fraction], two: tuple[Fraction, Fraction]) -> Fraction:
    return (two[1] - one[1]) / (one[0] - two[0])
