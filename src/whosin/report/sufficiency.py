"""Whether an ε, an (ε, δ) or a process is enough for a target, and which ε would be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from whosin.calibration.plan import HEADROOM
from whosin.calibration.rate_targets import RateTarget
from whosin.calibration.target import Target
from whosin.curves import TradeOff
from whosin.curves.noise import pure_curve
from whosin.errors import ImpossibleTarget, InvalidInput
from whosin.exact import Number, exp_up, log_down, rational, round_down, round_up
from whosin.families import Adversary, Family
from whosin.report.numbers import short


@dataclass(frozen=True)
class Sufficiency:
    """Whether a target is kept.

    Attributes:
        enough: whether it is.
        measured_as: what was compared, such as "true positive rate".
        reached, limit: its number here, and the one that the target allows.
        epsilon: the largest ε that would be enough at the same δ; None if none is.
        fails: the probability with which a promise about beliefs may fail.
    """

    target: Target
    enough: bool
    measured_as: str
    reached: float
    limit: float
    epsilon: float | None
    fails: float = 0.0

    def words(self) -> list[str]:
        """The target and the verdict, a sentence each."""
        lines = [f"The target: whoever is looking {self.target.words()}."]
        but = f", but for a probability of {self.fails:g}" if self.fails else ""
        if isinstance(self.target, RateTarget):
            said = self.target.verdict(rational(self.reached), enough=self.enough)
        else:
            reached, limit = short(self.reached, "up"), short(self.limit, "down")
            said = f"the {self.measured_as} is at most {reached}; up to {limit} would do"
            if not self.enough:
                said = f"the {self.measured_as} may be {reached}; only {limit} would do"
        lines.append(f"{'Enough' + but if self.enough else 'Not enough'}: {said}.")
        if self.epsilon is None:
            lines.append("At this δ no ε keeps it.")
        else:
            lines.append(f"Any ε up to {short(self.epsilon, 'down')} keeps it{but}.")
        return lines

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        return {
            "enough": self.enough,
            "promise": self.target.words(),
            "measured_as": self.measured_as,
            "reached": self.reached,
            "limit": self.limit,
            "epsilon_enough": self.epsilon,
            "fails": self.fails,
            "words": self.words(),
        }


def sufficiency(
    target: Target,
    family: Family,
    epsilon: Fraction,
    delta: Fraction,
    relation: str,
    curve: TradeOff | None = None,
) -> Sufficiency:
    """Whether (ε, δ)-DP, or what is known of it beyond that, keeps a target against a family.

    Args:
        relation: between which data ε holds. "replace" speaks of someone who knows the size.
        curve: what tests reach, where more is known than ε and δ.
    """
    adversary = target.against(family)
    times = _times(adversary, delta, relation)
    if isinstance(target, RateTarget):
        return _of_rates(target, times, epsilon, delta, curve)
    return _of_beliefs(target, adversary, times, epsilon, delta)


def _times(adversary: Adversary, delta: Fraction, relation: str) -> int:
    """How many steps between neighbours there are between what the adversary compares."""
    # One replaced is one removed and one added; nothing follows the other way round.
    replaced = adversary.relation == "replace" and relation != "replace"
    times = adversary.group * (2 if replaced else 1)
    if adversary.relation != "replace" and relation == "replace":
        raise InvalidInput("target", "about someone who knows the size, with replace", "another")
    if delta and times > 1:
        who = "people who replace each other" if replaced else "groups"
        raise InvalidInput("delta", f"0 here: this target compares {who}", float(delta))
    return times


def _of_rates(
    target: RateTarget, times: int, epsilon: Fraction, delta: Fraction, curve: TradeOff | None
) -> Sufficiency:
    # What is known of tests is known between neighbours.
    known = (
        curve if curve is not None and times == 1 else pure_curve(exp_up(epsilon * times), delta)
    )
    reached = target.reached_by(known)
    try:
        most: float | None = _down(log_down(target.ratio_with(delta)), times)
    except (InvalidInput, ImpossibleTarget):
        most = None
    limit = target.limit
    return Sufficiency(
        target, reached <= limit, target.measured_as, round_up(reached), float(limit), most
    )


def _of_beliefs(
    target: Target, adversary: Adversary, times: int, epsilon: Fraction, delta: Fraction
) -> Sufficiency:
    """By the likelihood ratio: e^ε, or with a δ e^ε/(1 − 1/10), except with probability 10 δ."""
    allowed = target.ratio(adversary.low, adversary.high)
    room = rational(1 - 1 / HEADROOM) if delta else Fraction(1)
    held = exp_up(epsilon * times) / room
    most = _largest(allowed, room, times)
    return Sufficiency(
        target,
        target.met(held, adversary.low, adversary.high),
        "likelihood ratio of what is published",
        round_up(held),
        float(allowed),
        most,
        min(1.0, float(delta * HEADROOM)),
    )


def _largest(allowed: Number, room: Fraction, times: int) -> float | None:
    if allowed == math.inf:
        return math.inf
    ratio = rational(allowed) * room
    return _down(log_down(ratio), times) if ratio > 1 else None


def _down(epsilon: float, times: int) -> float:
    return epsilon if times == 1 else round_down(rational(epsilon) / times)
