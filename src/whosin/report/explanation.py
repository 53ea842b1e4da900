"""What an ε means: beliefs by adversary, and whether it is enough for a target."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from whosin import beliefs
from whosin.calibration.base import Target
from whosin.calibration.plan import FAILURE_FACTOR
from whosin.calibration.rate_targets import RateTarget
from whosin.errors import ImpossibleTarget, InvalidInput, UnknownName, invalid_value
from whosin.exact import (
    Number,
    exact_fraction,
    exp_up,
    format_figures,
    format_percent,
    format_typed,
    log_down,
    rational,
    round_down,
    round_up,
)
from whosin.families import Adversary, Family
from whosin.report.card import EXAMPLE_PRIOR, promised_rates
from whosin.report.document import (
    Chart,
    Document,
    Marks,
    TextTable,
    Theorems,
    make_document,
    make_section,
    make_table,
)
from whosin.report.numbers import format_general, format_short, per_thousand

if TYPE_CHECKING:
    from whosin.curves import TradeOff
    from whosin.report.terminal import Curve


SHOWN_PRIORS = tuple(Fraction(p, 100) for p in (1, 5, 10, 25, 50, 75, 90, 99))


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
        delta = f", δ = {format_general(self.delta)}" if self.delta else ""
        return f"ε = {format_general(self.epsilon)}{delta} ({self.relation})"

    def posterior(self, reading: Reading, prior: Fraction) -> float:
        """The largest posterior of this adversary from this prior."""
        if reading.ratio == math.inf:
            return float(prior > 0)
        return round_up(Fraction(beliefs.posterior(exact_fraction(reading.ratio), rational(prior))))

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
        from whosin.curves.curve import FALSE_POSITIVE_RATES

        curve = self.tests()
        return [(fpr, round_up(exact_fraction(curve.tpr(fpr)))) for fpr in FALSE_POSITIVE_RATES]

    def tests(self) -> TradeOff:
        """What the best tests reach, as far as it is known."""
        if self.curve is not None:
            return self.curve
        from whosin.curves.mechanism_curves import pure_curve

        return pure_curve(exp_up(self.epsilon), exact_fraction(self.delta), relation=self.relation)

    def to_dict(self) -> dict[str, object]:
        """Return the fields as plain data for JSON."""
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


def explain_epsilon(
    epsilon: Fraction,
    delta: Fraction = Fraction(0),
    relation: str = "add-remove",
    band: tuple[Fraction, Fraction] | None = None,
    curve: TradeOff | None = None,
) -> Explanation:
    """Read an ε, or an (ε, δ), as beliefs (T4, T5, T6, T7, T18)."""
    if not epsilon > 0:
        raise invalid_value("epsilon", "above 0", float(epsilon))
    if not 0 <= delta < 1:
        raise invalid_value("delta", "at least 0 and below 1", float(delta))
    if delta * FAILURE_FACTOR >= 1:
        hint = "a larger one promises nothing"
        raise invalid_value("delta", "below 0.1", float(delta), hint)
    if relation not in ("add-remove", "replace"):
        raise UnknownName("relation", relation, ("add-remove", "replace"))
    level = float(epsilon)

    def held(times: int) -> float:
        if times * level >= 700:
            return math.inf
        return round_up(exp_up(times * epsilon) / (1 - 1 / FAILURE_FACTOR if delta else 1))

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
        min(1.0, float(delta * FAILURE_FACTOR)),
        _prior_grid(band),
        tuple(readings),
        curve,
    )


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

    def words(self) -> list[str]:
        """The target and the verdict, a sentence each."""
        lines = [f"The target: whoever is looking {self.target.words()}."]
        but = f", but for a probability of {format_general(self.fails)}" if self.fails else ""
        if isinstance(self.target, RateTarget):
            said = self.target.verdict(exact_fraction(self.reached), enough=self.enough)
        else:
            reached, limit = format_short(self.reached, "up"), format_short(self.limit, "down")
            said = f"the {self.measured_as} is at most {reached}; up to {limit} would do"
            if not self.enough:
                said = f"the {self.measured_as} may be {reached}; only {limit} would do"
        lines.append(f"{'Enough' + but if self.enough else 'Not enough'}: {said}.")
        if self.epsilon is None:
            lines.append("At this δ no ε keeps it.")
        else:
            lines.append(f"Any ε up to {format_short(self.epsilon, 'down')} keeps it{but}.")
        return lines

    def to_dict(self) -> dict[str, object]:
        """Return the fields as plain data for JSON."""
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
        raise InvalidInput(
            "an ε under replace says nothing about someone who does not know the size",
            field="target",
            hint="state it under add-remove, or choose a target about someone who does",
        )
    if delta and times > 1:
        who = "people who replace each other" if replaced else "groups of people"
        raise InvalidInput(
            f"this target compares {who}, of which a δ says nothing",
            field="delta",
            value=float(delta),
            hint="leave δ out",
        )
    return times


def _sufficient_rates(
    target: RateTarget, times: int, epsilon: Fraction, delta: Fraction, curve: TradeOff | None
) -> Sufficiency:
    from whosin.curves.mechanism_curves import pure_curve

    # What is known of tests is known between neighbours.
    known = (
        curve if curve is not None and times == 1 else pure_curve(exp_up(epsilon * times), delta)
    )
    reached = target.reached_by(known)
    try:
        most: float | None = _epsilon_down(log_down(target.ratio_with(delta)), times)
    except (InvalidInput, ImpossibleTarget):
        most = None
    limit = target.limit
    return Sufficiency(
        target, reached <= limit, target.measured_as, round_up(reached), float(limit), most
    )


def _sufficient_beliefs(
    target: Target, adversary: Adversary, times: int, epsilon: Fraction, delta: Fraction
) -> Sufficiency:
    """By the likelihood ratio: e^ε, or with a δ e^ε/(1 − 1/10), except with probability 10 δ."""
    allowed = target.ratio(adversary.low, adversary.high)
    room = exact_fraction(1 - 1 / FAILURE_FACTOR) if delta else Fraction(1)
    held = exp_up(epsilon * times) / room
    most = _largest_epsilon(allowed, room, times)
    return Sufficiency(
        target,
        target.met(held, adversary.low, adversary.high),
        "likelihood ratio of what is published",
        round_up(held),
        float(allowed),
        most,
        min(1.0, float(delta * FAILURE_FACTOR)),
    )


def _largest_epsilon(allowed: Number, room: Fraction, times: int) -> float | None:
    if allowed == math.inf:
        return math.inf
    ratio = exact_fraction(allowed) * room
    return _epsilon_down(log_down(ratio), times) if ratio > 1 else None


def _epsilon_down(epsilon: float, times: int) -> float:
    return epsilon if times == 1 else round_down(exact_fraction(epsilon) / times)


def describe_explanation(meaning: Explanation, verdict: Sufficiency | None = None) -> Document:
    """An ε in beliefs, as a table and a chart; first, whether it is enough for a target."""
    from whosin.report.charts import belief_chart
    from whosin.report.terminal import belief_plot

    enough = []
    if verdict is not None:
        title = f"Is {meaning.numbers} enough?"
        enough.append(make_section(title, *verdict.words(), level=2))
    title = f"What {meaning.numbers} means"
    failing = format_typed(meaning.failure, "up")
    may = [f"Each line may fail with probability {failing} (T18)."] if meaning.delta else []
    theorems = tuple(dict.fromkeys(reading.theorem for reading in meaning.readings))
    picture = Chart(
        lambda: belief_chart(meaning.curves(), (0.0, 1.0), title),
        lambda width: belief_plot(meaning.curves(), most=width),
    )
    return Document(
        "",
        (
            *enough,
            make_section(
                title,
                "How sure someone can become at most, by what they knew and believed before:",
                _posterior_table(meaning),
                *may,
                level=2,
            ),
            make_section(
                "",
                "How many of those who are in a test recognises, by how many others it accuses:",
                _rate_table(meaning),
            ),
            make_section("", picture, Theorems(theorems)),
        ),
    )


def _posterior_table(meaning: Explanation) -> TextTable:
    priors = [format_percent(prior, "down") for prior in meaning.priors]
    rows = [
        (
            f"{reading.words} ({reading.symbol})",
            *(format_percent(meaning.posterior(reading, prior), "up") for prior in meaning.priors),
        )
        for reading in meaning.readings
    ]
    return make_table(("someone who", *priors), rows, right=priors)


def _rate_table(meaning: Explanation) -> TextTable:
    rates = meaning.rates()
    accused = [format_percent(fpr, "down") for fpr, _ in rates]
    recognised = [format_percent(tpr, "up") for _, tpr in rates]
    row = ("recognised, at most", *recognised)
    return make_table(("accused by mistake", *accused), [row], right=accused)


# The same numbers for three audiences: a resident, an analyst, a data protection officer. Odds are
# given as people out of 1,000.


AUDIENCE_NAMES = ("resident", "analyst", "officer")


def check_audience(audience: str) -> str:
    """The audience, if it is one."""
    if audience not in AUDIENCE_NAMES:
        raise UnknownName("--for", audience, AUDIENCE_NAMES)
    return audience


def audience_paragraphs(meaning: Explanation, audience: str) -> list[str | Marks]:
    """What an ε allows, for an audience; a paragraph each, and people out of 1,000."""
    check_audience(audience)
    reading = meaning.readings[0]
    prior = EXAMPLE_PRIOR if EXAMPLE_PRIOR in meaning.priors else meaning.priors[0]
    after = meaning.posterior(reading, prior)
    said = {
        "resident": _resident_paragraphs,
        "analyst": _analyst_paragraphs,
        "officer": _officer_paragraphs,
    }[audience]
    result = said(meaning, reading, prior, after)
    if meaning.delta:
        failing = per_thousand(meaning.failure)
        chance = f"at most {failing} in 1,000"
        if audience != "resident":
            chance = format_typed(meaning.failure, "up")
        result.append(f"This may fail with a probability of {chance}.")
    return result


def _resident_paragraphs(
    meaning: Explanation, reading: Reading, prior: Fraction, after: float
) -> list[str | Marks]:
    before, most = per_thousand(float(prior)), per_thousand(after)
    return [
        f"Think of 1,000 people about whom someone is {format_percent(prior, 'down')} sure that "
        "they are "
        f"in the data: for {before} of them that is true.",
        f"After the publication that someone can be as sure as if it were true for {most} of the "
        f"1,000, and no surer. This holds for someone who {reading.words}.",
        Marks.of(float(prior), after),
    ]


def _analyst_paragraphs(
    meaning: Explanation, reading: Reading, prior: Fraction, after: float
) -> list[str | Marks]:
    ratio, most = "without limit", format_percent(after, "up")
    if reading.ratio < math.inf:
        ratio = f"at most {format_figures(reading.ratio, 6, 'up')}"
    return [
        f"ε = {format_general(meaning.epsilon)}, δ = {format_general(meaning.delta)}, "
        f"{meaning.relation}: the likelihood ratio of any output is {ratio} for someone who "
        f"{reading.words} ({reading.theorem}).",
        f"A belief of {format_percent(prior, 'down')} becomes at most {most}: "
        f"{per_thousand(after)} of "
        f"1,000 instead of {per_thousand(float(prior))}.",
        "Budgets add: two releases of this kind allow the square of the ratio.",
    ]


def _officer_paragraphs(
    meaning: Explanation, reading: Reading, prior: Fraction, after: float
) -> list[str | Marks]:
    outside = [other for other in meaning.readings if other.ratio == math.inf]
    return [
        f"Risk: someone who {reading.words} and was {format_percent(prior, 'down')} sure that a "
        "person is "
        f"in the data becomes at most {format_percent(after, 'up')} sure ({per_thousand(after)} "
        "of 1,000, "
        f"before {per_thousand(float(prior))}).",
        f"Measure: differential privacy, ε = {format_general(meaning.epsilon)}, "
        f"δ = {format_general(meaning.delta)}, neighbours by {meaning.relation}. "
        f"Ground: {reading.theorem}.",
        "Not covered: someone who " + ", or who ".join(other.words for other in outside) + ".",
        "Keep the ledger's history, and the list of everything that was published before.",
    ]


def audience_lines(meaning: Explanation, audience: str) -> list[str]:
    """The same as texts; the marks are lines of letters."""
    return [
        line
        for each in audience_paragraphs(meaning, audience)
        for line in ((each,) if isinstance(each, str) else (*each.lines(), each.words()))
    ]


def describe_audience(
    meaning: Explanation, audience: str, verdict: Sufficiency | None = None
) -> Document:
    """The words for an audience; then whether it is enough for a target."""
    enough = [] if verdict is None else verdict.words()
    return make_document("", *audience_paragraphs(meaning, audience), *enough)


def explanation_chart(
    meaning: Explanation,
    verdict: Sufficiency | None = None,
    band: tuple[Fraction, Fraction] | None = None,
) -> Any:
    """An ε in beliefs; in rates, where it is held against a target about them."""
    from whosin.report.charts import belief_chart, rates_chart

    title = f"What {meaning.numbers} means"
    if verdict is not None and verdict.target.averages:
        return rates_chart(meaning.tests(), title, promised_rates(verdict.target))
    low, high = (float(end) for end in band or (0, 1))
    return belief_chart(meaning.curves(), (low, high), title)
