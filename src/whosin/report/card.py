"""A plan in plain words, for three audiences, with its pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from whosin import beliefs, families
from whosin.beliefs import format_percent
from whosin.calibration import Plan, Process, ProcessPlan, Profile
from whosin.calibration.base import Target
from whosin.calibration.plan import FAILURE_FACTOR
from whosin.errors import UnknownName
from whosin.exact import (
    Number,
    exact_fraction,
    exp_up,
    format_decimals,
    format_figures,
    format_typed,
    log_up,
    rational,
)
from whosin.ledger.budget import Budget
from whosin.ledger.encoding import EPSILON_UNITS
from whosin.report.terminal import AFTER, BEFORE, NEVER, Curve, Marks, format_short, per_thousand

if TYPE_CHECKING:
    from whosin.report.explanation import Explanation, Reading, Sufficiency

EXAMPLE, ACCUSED, HALF = Fraction(1, 10), Fraction(1, 100), Fraction(1, 2)
"""How sure someone was, and how many a test accuses by mistake, where nobody says."""
NOISE_NAMES = {"laplace": "Laplace", "gaussian": "Gaussian", "geometric": "geometric"}


@dataclass(frozen=True)
class Section:
    """A part of a card: a heading with its sentences."""

    title: str
    lines: tuple[str, ...]
    marks: Marks | None = None
    """A picture of people, ten to a mark."""


def plan_card(plan: Plan) -> list[Section]:
    """The sections of a plan's card."""
    sections = [
        Section("Who is looking", (describe_adversary(plan.family),)),
        Section("What is promised", _promise_lines(plan)),
        Section("What that takes", tuple(_cost_lines(plan))),
        _thousand_people(plan),
        Section("Compared with plain differential privacy", (_baseline_text(plan),)),
        Section("If they know more than assumed", tuple(_fallback_lines(plan))),
    ]
    if plan.composes and plan.delta:
        shared = (
            "Several releases may share this promise when together they are within that (ε, δ), "
            "which is what a ledger sees to."
        )
        sections.append(Section("More than one release", (shared,)))
    if not plan.composes:
        reason = (
            "This promise is for one release: levels of this kind do not add up. A second release "
            "needs a plan of its own for both together."
        )
        sections.append(Section("More than one release", (reason,)))
    return sections


def describe_adversary(family: families.Family) -> str:
    """The adversary in a sentence."""
    words = family.words()
    return f"{words[0].upper()}{words[1:]}."


def _promise_lines(plan: Plan) -> tuple[str, ...]:
    lines = [f"Whoever that is {plan.target.words()}.", *describe_delta(plan)]
    if not plan.tight:
        lines.append("The plan is sufficient; a little less noise might do.")
    return tuple(lines)


def describe_delta(plan: Plan) -> list[str]:
    """What a δ means in a plan, in a sentence; none without a δ."""
    if is_dp(plan) and plan.target.averages:
        return [f"It does not fail: δ = {plan.delta:g} is counted in."]
    if is_dp(plan):
        return [f"That is (ε, δ)-differential privacy with δ = {plan.delta:g}."]
    if plan.delta:
        may = f"It may fail with probability {plan.delta:g}, given that the person is in."
        return [may, *known_size(plan)]
    return []


def known_size(plan: Plan) -> list[str]:
    """What a plan with a δ, for additions and removals, promises of someone who knows the size."""
    gammas = [each.gamma for each in plan.fallback if each.family == "D_B"]
    if not plan.delta or is_dp(plan) or plan.relation != "add-remove" or not gammas:
        return []
    if math.isinf(gammas[0]):
        return ["Nothing is promised of someone who knows how many people are in."]
    half = format_percent(beliefs.posterior(exact_fraction(gammas[0]), HALF), "up")
    return [
        f"Someone who knows how many people are in may go from 50% to {half}, except with the same "
        "probability."
    ]


def budget_words(plan: Plan) -> str:
    """What a plan allows in all, as differential privacy; that its δ is not the plan's."""
    delta = f", δ = {plan.dp_delta:.3g}" if plan.dp_delta else ""
    of_promise = ""
    if plan.dp_delta and plan.dp_delta != plan.delta:
        of_promise = f"; the promise itself may fail with {plan.delta:g}"
    return f"ε = {format_figures(plan.epsilon, 6, 'down')}{delta} ({plan.relation}{of_promise})"


def _cost_lines(plan: Plan) -> list[str]:
    if plan.family.hides_others and plan.delta:
        lines = ["What the adversary does not know about others counts as noise."]
    elif plan.delta:
        level = (
            f"ε = {format_figures(plan.epsilon, 4, 'down')}, δ = "
            f"{format_figures(plan.dp_delta, 3, 'down')}"
        )
        lines = [f"An ({level}) release ({plan.relation})."]
        if plan.dp_delta != plan.delta:
            lines.append(
                f"Its δ is smaller than {plan.delta:g}, with which the promise may fail: a promise "
                "about beliefs fails more often than differential privacy does (T18)."
            )
    else:
        level = format_decimals(plan.epsilon, 4, "down")
        lines = [f"ε = {level} between neighbouring data ({plan.relation})."]
    if is_dp(plan):
        lines.append("It bounds no belief by itself: for that ask for a posterior or a γ (T18).")
    else:
        lines.append(
            f"Beliefs then move by a factor of at most γ = {format_short(plan.gamma, 'up')}."
        )
    if plan.query is not None and plan.noise is not None:
        if plan.noise.kind == "none":
            lines.append(f"For {plan.query.words()}: no noise at all; the exact answer will do.")
        else:
            lines.append(
                f"For {plan.query.words()}: {NOISE_NAMES[plan.noise.kind]} noise of scale "
                f"{format_figures(plan.noise.scale, 4, 'up')}; the expected error is "
                f"{format_figures(plan.noise.error, 4, 'up')}, and 95% of answers are within "
                f"±{format_figures(plan.noise.within, 4, 'up')}."
            )
            if plan.noise.kind == "gaussian":
                lines.append(_through_a_ledger(plan))
    return lines


def _thousand_people(plan: Plan) -> Section:
    """The promise as people out of 1,000: a belief, unless only tests are bounded, and a test."""
    from whosin.curves import tradeoff

    rates = promised_rates(plan.target)
    accused = ACCUSED if rates is None else rates[0]
    reached = float(tradeoff(plan).tpr(accused))
    test = (
        f"A test that accuses {per_thousand(float(accused))} of 1,000 people who are not in "
        f"recognises at most {per_thousand(reached)} of 1,000 who are."
    )
    if is_dp(plan) and plan.target.averages:
        marks = Marks.of(float(accused), reached, "by guessing", "by the best test")
        return Section("Out of 1,000 people", (test,), marks)
    low, high = plan.beliefs
    prior = min(max(EXAMPLE, low), high)
    after = plan_curves(plan)[-1][2](float(prior))
    fails = float(plan.failure if is_dp(plan) else plan.delta)
    but = f", but for a probability of {fails:g}" if fails else ""
    belief = (
        f"Of 1,000 people about whom someone was {format_percent(prior, 'down')} sure, "
        f"{per_thousand(float(prior))} are in. Afterwards that someone can be as sure as if "
        f"{per_thousand(after)} were, and no surer{but}."
    )
    return Section("Out of 1,000 people", (belief, test), Marks.of(float(prior), after))


def promised_rates(target: Target) -> tuple[Fraction, Fraction] | None:
    """(FPR, TPR), where a target names them."""
    rates: tuple[Fraction, Fraction] | None = getattr(target, "rates", None)
    return None if rates is None else (rates[1], rates[0])


def is_dp(plan: Plan) -> bool:
    """Whether the promise is (ε, δ)-differential privacy, or one about rates that it keeps: these
    are not about beliefs."""
    stated = plan.target.averages or plan.target.stated_epsilon is not None
    return stated and plan.delta > 0


def _through_a_ledger(plan: Plan) -> str:
    """What a release draws: a ledger adds in zCDP, so that more may be asked later."""
    rho = Budget.of(plan).rho / EPSILON_UNITS
    if not rho:
        return (
            "A ledger has no room for Gaussian noise under this plan: releases draw Laplace noise."
        )
    assert plan.query is not None
    sigma = plan.query.l2_sensitivity(plan.relation) / math.sqrt(2 * rho)
    return (
        "That is for one release by itself. A release through a ledger, which adds up over time "
        f"(zCDP), draws discrete Gaussian noise of σ = {format_figures(sigma, 4, 'up')} when it "
        "spends "
        "all at once."
    )


def _baseline_text(plan: Plan) -> str:
    base = plan.baseline_epsilon
    if base is None:
        gamma = format_decimals(math.log(plan.gamma), 4, "down")
        return (
            "No ε at all keeps this promise against every prior: bounding beliefs is what makes it "
            f"possible. The same γ = {format_short(plan.gamma, 'up')} would need ε = {gamma}."
        )
    plain = f"ε = {format_decimals(base, 4, 'down')}"
    if plan.delta:
        return f"Without bounds on beliefs or a failure probability: {plain}."
    ratio = plan.epsilon / base
    if abs(ratio - 1) < 1e-9:
        return f"The same: {plain}."
    words = f"{ratio:.2f} times less noise" if ratio > 1 else f"{1 / ratio:.2f} times more noise"
    return f"Plain DP needs {plain} for the same target; this plan has {words}."


def _fallback_lines(plan: Plan) -> list[str]:
    if is_dp(plan) and plan.composes:
        linked = "Not covered: someone who believes that people come and go together (D_U)."
        if plan.relation == "add-remove":
            return [
                "Differential privacy does not rest on what anyone knows or believes of each "
                "person by themselves.",
                linked,
            ]
        return [
            "It holds whatever anyone knows or believes who takes the number of people as known. "
            "To others (D_I) nothing is promised: the exact number costs nothing here, and may "
            "show who is in.",
            linked,
        ]
    lines = []
    for each in plan.fallback:
        if math.isinf(each.gamma):
            lines.append(f"{each.family} ({each.words}): nothing is promised.")
        else:
            half = format_percent(beliefs.posterior(exact_fraction(each.gamma), HALF), "up")
            but = f", but for the same {plan.delta:g}" if plan.delta else ""
            lines.append(
                f"{each.family} ({each.words}): γ = {format_short(each.gamma, 'up')}; "
                f"from 50% to at most {half}{but}."
            )
    return lines


def plan_curves(plan: Plan) -> list[Curve]:
    """Posterior against prior under this plan, under plain DP, and without protection."""
    ratio = plan.target.ratio(*plan.beliefs)  # may be beyond any float
    name = "with this plan"
    if is_dp(plan) and plan.target.averages:
        ratio = exp_up(plan.epsilon)
        name = "as a ledger spends it"  # noise for one answer uses more than this ε and δ
    if is_dp(plan):  # F9 at the one point that is known: δ(ε)/(1 − e^ε/g)
        name = f"{name}, but for a probability of {float(plan.failure):g}"
        ratio = ratio / (1 - 1 / FAILURE_FACTOR)
    result: list[Curve] = [("●", name, lambda p: _posterior_belief(ratio, p))]
    if plan.baseline_epsilon is not None and not math.isclose(
        plan.baseline_epsilon, log_up(ratio), rel_tol=1e-9
    ):
        plain = math.exp(plan.baseline_epsilon)
        name = f"with plain DP for the same target (ε = {plan.baseline_epsilon:.3g})"
        result.append(("+", name, lambda p: float(beliefs.posterior(plain, p))))
    result.append(("·", "with no protection", lambda p: float(p > 0)))
    return result[::-1]


def belief_band(plan: Plan) -> tuple[float, float]:
    """The beliefs that the plan assumes, for a chart."""
    low, high = plan.beliefs
    return float(low), float(high)


def _posterior_belief(ratio: Number, prior: float) -> float:
    """In exact numbers, since the ratio may be too large for a float."""
    return float(beliefs.posterior(ratio, rational(prior)))


def draw_section(section: Section) -> list[str]:
    """The picture of a section as lines of text, and what its marks mean."""
    return [] if section.marks is None else [*section.marks.lines(), section.marks.words()]


def card_text(sections: Sequence[Section]) -> str:
    """A card as lines of text."""
    blocks = [
        "\n".join(
            [section.title, *(f"  {line}" for line in (*section.lines, *draw_section(section)))]
        )
        for section in sections
    ]
    return "\n\n".join(blocks)


# The same numbers for three audiences: a resident, an analyst, a data protection officer. Odds are
# given as people out of 1,000.


AUDIENCE_NAMES = ("resident", "analyst", "officer")
AUDIENCES_EXAMPLE = Fraction(1, 10)
"""How sure someone is before, where nobody says."""


def check_audience(audience: str) -> str:
    """The audience, if it is one."""
    if audience not in AUDIENCE_NAMES:
        raise UnknownName("--for", audience, AUDIENCE_NAMES)
    return audience


def audience_paragraphs(meaning: Explanation, audience: str) -> list[str]:
    """What an ε allows, for an audience; a paragraph each."""
    check_audience(audience)
    reading = meaning.readings[0]
    prior = AUDIENCES_EXAMPLE if AUDIENCES_EXAMPLE in meaning.priors else meaning.priors[0]
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
) -> list[str]:
    before, most = per_thousand(float(prior)), per_thousand(after)
    return [
        f"Think of 1,000 people about whom someone is {format_percent(prior, 'down')} sure that "
        "they are "
        f"in the data: for {before} of them that is true.",
        f"After the publication that someone can be as sure as if it were true for {most} of the "
        f"1,000, and no surer. This holds for someone who {reading.words}.",
        *(marks := Marks.of(float(prior), after)).lines(),
        marks.words(),
    ]


def _analyst_paragraphs(
    meaning: Explanation, reading: Reading, prior: Fraction, after: float
) -> list[str]:
    ratio, most = "without limit", format_percent(after, "up")
    if reading.ratio < math.inf:
        ratio = f"at most {format_figures(reading.ratio, 6, 'up')}"
    return [
        f"ε = {meaning.epsilon:g}, δ = {meaning.delta:g}, {meaning.relation}: the likelihood "
        f"ratio of any output is {ratio} for someone who {reading.words} ({reading.theorem}).",
        f"A belief of {format_percent(prior, 'down')} becomes at most {most}: "
        f"{per_thousand(after)} of "
        f"1,000 instead of {per_thousand(float(prior))}.",
        "Budgets add: two releases of this kind allow the square of the ratio.",
    ]


def _officer_paragraphs(
    meaning: Explanation, reading: Reading, prior: Fraction, after: float
) -> list[str]:
    outside = [other for other in meaning.readings if other.ratio == math.inf]
    return [
        f"Risk: someone who {reading.words} and was {format_percent(prior, 'down')} sure that a "
        "person is "
        f"in the data becomes at most {format_percent(after, 'up')} sure ({per_thousand(after)} "
        "of 1,000, "
        f"before {per_thousand(float(prior))}).",
        f"Measure: differential privacy, ε = {meaning.epsilon:g}, δ = {meaning.delta:g}, "
        f"neighbours by {meaning.relation}. Ground: {reading.theorem}.",
        "Not covered: someone who " + ", or who ".join(other.words for other in outside) + ".",
        "Keep the ledger's history, and the list of everything that was published before.",
    ]


def print_words(meaning: Explanation, audience: str, verdict: Sufficiency | None = None) -> None:
    """The words for an audience, in a terminal; then whether it is enough for a target."""
    from textwrap import fill

    for paragraph in [
        *audience_paragraphs(meaning, audience),
        *([] if verdict is None else verdict.words()),
    ]:
        print(paragraph if paragraph[0] in (BEFORE, AFTER, NEVER) else fill(paragraph, 88))


# The two pictures of a plan or an ε: how sure anyone can become, and what the best test reaches.
# Which one comes first depends on the target: a target about rates is a point of the second.


BELIEFS_TITLE = "How sure anyone can become"
RATES_TITLE = "How many of those who are in the best test recognises"


def plan_charts(plan: Plan, title: str = BELIEFS_TITLE) -> list[Any]:
    """Both pictures of a plan, the target's own first."""
    from whosin.curves import tradeoff
    from whosin.report.charts import belief_chart, rates_chart

    allowed = plan.target.points if isinstance(plan.target, Profile) else ()
    pictures = [
        belief_chart(plan_curves(plan), belief_band(plan), title, allowed),
        rates_chart(tradeoff(plan), RATES_TITLE, promised_rates(plan.target)),
    ]
    return pictures[::-1] if plan.target.averages else pictures


def process_chart(plan: ProcessPlan) -> Any:
    """What the best test reaches after all runs."""
    from whosin.curves import tradeoff
    from whosin.report.charts import rates_chart

    title = f"What the best test reaches after {describe_runs(plan.process)}"
    return rates_chart(tradeoff(plan), title, promised_rates(plan.target))


def describe_runs(process: Process) -> str:
    """How often a process runs, in words."""
    return "one step" if process.steps == 1 else f"{process.steps:,} steps"


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
