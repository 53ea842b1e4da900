"""What an ε means: for each prior belief the largest posterior, adversary by adversary."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from whosin import beliefs
from whosin.calibration.plan import HEADROOM
from whosin.curves.curve import FALSE_POSITIVE_RATES, TradeOff
from whosin.curves.noise import pure_curve
from whosin.errors import InvalidInput, UnknownName
from whosin.exact import exp_up, rational, round_up
from whosin.report.plot import Curve

PRIORS = tuple(Fraction(p, 100) for p in (1, 5, 10, 25, 50, 75, 90, 99))


@dataclass(frozen=True)
class Reading:
    """One adversary: a symbol, who it is, and the likelihood ratio it is held to."""

    symbol: str
    words: str
    ratio: float
    theorem: str


@dataclass(frozen=True)
class Explanation:
    """An ε in beliefs. With a δ everything fails with probability at most `failure`.

    Attributes:
        curve: what tests reach, where more is known than ε and δ.
    """

    epsilon: float
    delta: float
    relation: str
    failure: float
    priors: tuple[Fraction, ...]
    readings: tuple[Reading, ...]
    curve: TradeOff | None = None

    @property
    def numbers(self) -> str:
        """ε, δ if there is one, and between whom."""
        delta = f", δ = {self.delta:g}" if self.delta else ""
        return f"ε = {self.epsilon:g}{delta} ({self.relation})"

    def posterior(self, reading: Reading, prior: Fraction) -> float:
        """The largest posterior of this adversary from this prior."""
        if reading.ratio == math.inf:
            return float(prior > 0)
        return round_up(Fraction(beliefs.posterior(rational(reading.ratio), rational(prior))))

    def curves(self) -> list[Curve]:
        """Posterior against prior for each adversary who is held to anything."""
        marks = "●+×○"
        held = [reading for reading in self.readings if reading.ratio < math.inf]
        result: list[Curve] = [
            (mark, f"{r.symbol}: {r.words}", lambda p, r=r: self.posterior(r, p))  # type: ignore[misc]
            for mark, r in zip(marks, held, strict=False)
        ]
        return [*result, ("·", "no protection", lambda p: float(p > 0))][::-1]

    def rates(self) -> list[tuple[Fraction, float]]:
        """(FPR, TPR): what the best test reaches that this ε and δ allow."""
        curve = self.tests()
        return [(fpr, round_up(rational(curve.tpr(fpr)))) for fpr in FALSE_POSITIVE_RATES]

    def tests(self) -> TradeOff:
        """What the best tests reach, as far as it is known."""
        if self.curve is not None:
            return self.curve
        return pure_curve(exp_up(self.epsilon), rational(self.delta), relation=self.relation)

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "relation": self.relation,
            "failure": self.failure,
            "rates": [{"fpr": fpr, "tpr": tpr} for fpr, tpr in self.rates()],
            "adversaries": [
                {
                    "family": reading.symbol,
                    "words": reading.words,
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


def explanation(
    epsilon: Fraction,
    delta: Fraction = Fraction(0),
    relation: str = "add-remove",
    band: tuple[Fraction, Fraction] | None = None,
    curve: TradeOff | None = None,
) -> Explanation:
    """Read an ε, or an (ε, δ), as beliefs (T4, T5, T6, T7, T18)."""
    if not epsilon > 0:
        raise InvalidInput("epsilon", "above 0", float(epsilon))
    if not 0 <= delta < 1:
        raise InvalidInput("delta", "at least 0 and below 1", float(delta))
    if delta * HEADROOM >= 1:
        raise InvalidInput("delta", "below 0.1: beyond that nothing is promised", float(delta))
    if relation not in ("add-remove", "replace"):
        raise UnknownName("relation", relation, ("add-remove", "replace"))
    level = float(epsilon)

    def held(times: int) -> float:
        if times * level >= 700:
            return math.inf
        return round_up(exp_up(times * epsilon) / (1 - 1 / HEADROOM if delta else 1))

    if relation == "add-remove":
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
    readings.append(Reading("D_U", "may believe anything", math.inf, "T3"))
    return Explanation(
        level,
        float(delta),
        relation,
        min(1.0, float(delta * HEADROOM)),
        _priors(band),
        tuple(readings),
        curve,
    )


def _priors(band: tuple[Fraction, Fraction] | None) -> tuple[Fraction, ...]:
    if band is None:
        return PRIORS
    low, high = band
    if not 0 <= low <= high <= 1:
        raise InvalidInput("prior", "a range inside 0..1, low first", f"{low}..{high}")
    if low == high:
        return (low,)
    return tuple(dict.fromkeys(low + (high - low) * Fraction(i, 6) for i in range(7)))
