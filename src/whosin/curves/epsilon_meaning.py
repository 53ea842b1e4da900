"""What an ε allows: posteriors by adversary and prior, and whether it is enough for a target."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from whosin import beliefs
from whosin.calibration.plan import FAILURE_FACTOR
from whosin.calibration.rate_targets import RateTarget
from whosin.calibration.targets import Target
from whosin.curves.curve import FALSE_POSITIVE_RATES, TradeOff
from whosin.curves.mechanism_curves import pure_curve
from whosin.errors import ImpossibleTarget, InvalidInput, UnknownName, invalid_value, shorten, spell
from whosin.exact import exact_fraction, exp_up, log_down, rational, round_down, round_up
from whosin.families import Adversary, Family

SECRET_KINDS = ("membership", "value")
ASKS_FOR_A_VALUE = "knows that a person is in, and asks for a value of that person"
SHOWN_PRIORS = tuple(Fraction(p, 100) for p in (1, 5, 10, 25, 50, 75, 90, 99))


@dataclass(frozen=True)
class Reading:
    """One adversary: a symbol, who it is, and the likelihood ratio it is held to."""

    symbol: str
    who: str
    ratio: float
    theorem: str


@dataclass(frozen=True)
class Explanation:
    """An ε in beliefs. With a δ everything fails with probability at most `failure`.

    Attributes:
        curve: what tests reach, where more is known than ε and δ.
        secret: "membership", or "value": what the rows of someone known to be in say.
    """

    epsilon: float
    delta: float
    relation: str
    failure: float
    priors: tuple[Fraction, ...]
    readings: tuple[Reading, ...]
    curve: TradeOff | None = None
    secret: str = "membership"

    def posterior(self, reading: Reading, prior: Fraction) -> float:
        """The largest posterior of this adversary from this prior."""
        if reading.ratio == math.inf:
            return float(prior > 0)
        return round_up(Fraction(beliefs.posterior(exact_fraction(reading.ratio), rational(prior))))

    def rates(self) -> list[tuple[Fraction, float]]:
        """(FPR, TPR): what the best test reaches that this ε and δ allow."""
        curve = self.tests()
        return [(fpr, round_up(exact_fraction(curve.tpr(fpr)))) for fpr in FALSE_POSITIVE_RATES]

    def right_guesses(self, luck: Fraction) -> float:
        """How often a guess of a value is right at most, on average over all answers, if it would
        be with this chance without them (F36); no belief bounds it if that may fail."""
        by_curve = round_up(exact_fraction(self.tests().tpr(luck)))
        return by_curve if self.delta else min(by_curve, self.posterior(self.readings[0], luck))

    def tests(self) -> TradeOff:
        """What the best tests reach, as far as it is known."""
        if self.curve is not None:
            return self.curve
        return pure_curve(exp_up(self.epsilon), exact_fraction(self.delta), relation=self.relation)

    def to_dict(self) -> dict[str, object]:
        told: dict[str, object] = {"secret": self.secret}
        if self.secret == "membership":
            told = {"rates": [{"fpr": fpr, "tpr": tpr} for fpr, tpr in self.rates()]}
        else:
            inside = (prior for prior in self.priors if 0 < prior < 1)
            told["guesses"] = [{"luck": p, "right": self.right_guesses(p)} for p in inside]
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "relation": self.relation,
            "failure": self.failure,
            **told,
            "adversaries": [
                {
                    "family": reading.symbol,
                    "words": reading.who,
                    "gamma": reading.ratio,
                    "theorem": reading.theorem,
                    "posteriors": [
                        {"prior": prior, "posterior": self.posterior(reading, prior)}
                        for prior in self.priors
                    ],
                }
                for reading in self.readings
            ],
        }


MAX_EXPLAINED_EPSILON = 10_000
"""An ε far beyond what bounds anything; powers of more than this are too long to compute with."""


def explain_epsilon(
    epsilon: Fraction,
    delta: Fraction = Fraction(0),
    relation: str = "add-remove",
    band: tuple[Fraction, Fraction] | None = None,
    curve: TradeOff | None = None,
    secret: str = "membership",
) -> Explanation:
    """Read an ε, or an (ε, δ), as beliefs (T4, T5, T6, T7, T14, T18)."""
    if secret not in SECRET_KINDS:
        raise UnknownName("secret", secret, SECRET_KINDS)
    if not 0 < epsilon <= MAX_EXPLAINED_EPSILON:
        accepted = f"above 0 and at most {spell(MAX_EXPLAINED_EPSILON)}"
        raise invalid_value("epsilon", accepted, shorten(epsilon))
    if not 0 <= delta < 1:
        raise invalid_value("delta", "at least 0 and below 1", float(delta))
    if delta * FAILURE_FACTOR >= 1:
        hint = "a larger one promises nothing"
        raise invalid_value("delta", "below 0.1", float(delta), hint)
    if relation not in beliefs.NEIGHBOUR_RELATIONS:
        raise UnknownName("relation", relation, beliefs.NEIGHBOUR_RELATIONS)
    level = float(epsilon)

    def held(times: int) -> float:
        if times * level >= 700:
            return math.inf
        return round_up(exp_up(times * epsilon) / (1 - 1 / FAILURE_FACTOR if delta else 1))

    failing = delta
    if secret == "value":
        # Replacing a person is a removal and an addition: (2ε, (1 + e^ε)δ).
        twice = relation == "add-remove"
        failing = (1 + exp_up(epsilon)) * delta if twice and delta else delta
        allowed = math.inf if failing * FAILURE_FACTOR >= 1 else held(2 if twice else 1)
        readings = [Reading("D_*", ASKS_FOR_A_VALUE, allowed, "T6" if twice else "T14")]
    elif relation == "add-remove":
        readings = [Reading("D_I", "may know everyone else", held(1), "T4")]
        if not delta:
            readings += [
                Reading("D_B", "also knows how many are in", held(2), "T6"),
                Reading("D_NI^3", "three people come and go together", held(3), "T7"),
            ]
    else:
        readings = [
            Reading("D_B", "knows how many are in, may know everyone else", held(1), "T5"),
            Reading("D_I", "does not take the size as known", math.inf, "T12"),
        ]
    all_alike = (
        "that everyone is in, or nobody" if secret == "membership" else "that all have one value"
    )
    readings.append(Reading("D_U", f"may believe {all_alike}", math.inf, "T3"))
    fails, priors = min(1.0, round_up(failing * FAILURE_FACTOR)), _prior_grid(band)
    known = tuple(readings)
    return Explanation(level, float(delta), relation, fails, priors, known, curve, secret)


def _prior_grid(band: tuple[Fraction, Fraction] | None) -> tuple[Fraction, ...]:
    if band is None:
        return SHOWN_PRIORS
    low, high = band
    if not 0 <= low <= high <= 1:
        raise invalid_value("prior", "a range inside 0..1, low first", f"{low}..{high}")
    if low == high:
        return (low,)
    return tuple(dict.fromkeys(low + (high - low) * Fraction(i, 6) for i in range(7)))


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

    def to_dict(self) -> dict[str, object]:
        return {
            "enough": self.enough,
            "measured_as": self.measured_as,
            "reached": self.reached,
            "limit": self.limit,
            "epsilon_enough": self.epsilon,
            "fails": self.fails,
        }


def check_sufficiency(
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
    times = _group_size(adversary, delta, relation)
    if isinstance(target, RateTarget):
        return _sufficient_rates(target, times, epsilon, delta, curve)
    return _sufficient_beliefs(target, adversary, times, epsilon, delta)


def _group_size(adversary: Adversary, delta: Fraction, relation: str) -> int:
    """How many steps between neighbours there are between what the adversary compares."""
    # One replaced is one removed and one added; nothing follows the other way round.
    replaced = adversary.relation == "replace" and relation != "replace"
    times = adversary.group * (2 if replaced else 1)
    if adversary.relation != "replace" and relation == "replace":
        message = "an ε under replace says nothing about someone who does not know the size"
        hint = "state it under add-remove, or choose a target about someone who does"
        raise InvalidInput(message, field="target", hint=hint)
    if delta and times > 1:
        who = "people who replace each other" if replaced else "groups of people"
        message = f"this target compares {who}, of which a δ says nothing"
        raise InvalidInput(message, field="delta", value=float(delta), hint="leave δ out")
    return times


def _sufficient_rates(
    target: RateTarget, times: int, epsilon: Fraction, delta: Fraction, curve: TradeOff | None
) -> Sufficiency:
    # What is known of tests is known between neighbours.
    known = curve if times == 1 else None
    reached = target.reached_by(known or pure_curve(exp_up(epsilon * times), delta))
    try:
        most: float | None = _epsilon_down(log_down(target.ratio_with(delta)), times)
    except (InvalidInput, ImpossibleTarget):
        most = None
    enough, limit = reached <= target.limit, float(target.limit)
    return Sufficiency(target, enough, target.measured_as, round_up(reached), limit, most)


def _sufficient_beliefs(
    target: Target, adversary: Adversary, times: int, epsilon: Fraction, delta: Fraction
) -> Sufficiency:
    """By the likelihood ratio: e^ε, or with a δ e^ε/(1 − 1/10), except with probability 10 δ."""
    allowed = target.ratio(adversary.low, adversary.high)
    room = exact_fraction(1 - 1 / FAILURE_FACTOR) if delta else Fraction(1)
    held = exp_up(epsilon * times) / room
    most: float | None = math.inf
    if allowed != math.inf:
        ratio = exact_fraction(allowed) * room
        most = _epsilon_down(log_down(ratio), times) if ratio > 1 else None
    enough = target.met(held, adversary.low, adversary.high)
    what, fails = "likelihood ratio of what is published", min(1.0, float(delta * FAILURE_FACTOR))
    return Sufficiency(target, enough, what, round_up(held), float(allowed), most, fails)


def _epsilon_down(epsilon: float, times: int) -> float:
    return epsilon if times == 1 else round_down(exact_fraction(epsilon) / times)
