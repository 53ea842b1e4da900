"""A plan in plain words: who is looking, how sure they may become, what that takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from whosin import beliefs, families
from whosin.beliefs import percent
from whosin.calibration import Plan
from whosin.calibration.plan import HEADROOM
from whosin.calibration.target import Target
from whosin.curves import of as curve_of
from whosin.exact import Number, decimals, exp_up, figures, log_up, rational
from whosin.ledger.budget import Budget
from whosin.ledger.units import EPSILON_UNITS
from whosin.report.frequencies import Marks, of_thousand
from whosin.report.numbers import short
from whosin.report.plot import Curve

EXAMPLE, ACCUSED, HALF = Fraction(1, 10), Fraction(1, 100), Fraction(1, 2)
"""How sure someone was, and how many a test accuses by mistake, where nobody says."""
NOISES = {"laplace": "Laplace", "gaussian": "Gaussian", "geometric": "geometric"}


@dataclass(frozen=True)
class Section:
    """A heading with its sentences."""

    title: str
    lines: tuple[str, ...]
    marks: Marks | None = None
    """A picture of people, ten to a mark."""


def card(plan: Plan) -> list[Section]:
    """The sections of a plan's card."""
    sections = [
        Section("Who is looking", (who(plan.family),)),
        Section("What is promised", _promise(plan)),
        Section("What that takes", tuple(_cost(plan))),
        _thousand(plan),
        Section("Compared with plain differential privacy", (_baseline(plan),)),
        Section("If they know more than assumed", tuple(_fallback(plan))),
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


def who(family: families.Family) -> str:
    """The adversary in a sentence."""
    words = family.words()
    return f"{words[0].upper()}{words[1:]}."


def _promise(plan: Plan) -> tuple[str, ...]:
    lines = [f"Whoever that is {plan.target.words()}.", *failing(plan)]
    if not plan.tight:
        lines.append("The plan is sufficient; a little less noise might do.")
    return tuple(lines)


def failing(plan: Plan) -> list[str]:
    """What a δ means in a plan, in a sentence; none without a δ."""
    if is_dp(plan) and plan.target.averages:
        return [f"It does not fail: δ = {plan.delta:g} is counted in."]
    if is_dp(plan):
        return [f"That is (ε, δ)-differential privacy with δ = {plan.delta:g}."]
    if plan.delta:
        return [f"It may fail with probability {plan.delta:g}, given that the person is in."]
    return []


def budget_words(plan: Plan) -> str:
    """What a plan allows in all, as differential privacy."""
    delta = f", δ = {plan.dp_delta:.3g}" if plan.dp_delta else ""
    return f"ε = {figures(plan.epsilon, 6, 'down')}{delta} ({plan.relation})"


def _cost(plan: Plan) -> list[str]:
    if plan.family.hides_others and plan.delta:
        lines = ["What the adversary does not know about others counts as noise."]
    elif plan.delta:
        level = f"ε = {figures(plan.epsilon, 4, 'down')}, δ = {figures(plan.dp_delta, 3, 'down')}"
        lines = [f"An ({level}) release ({plan.relation})."]
    else:
        level = decimals(plan.epsilon, 4, "down")
        lines = [f"ε = {level} between neighbouring data ({plan.relation})."]
    if is_dp(plan):
        lines.append("It bounds no belief by itself: for that ask for a posterior or a γ (T18).")
    else:
        lines.append(f"Beliefs then move by a factor of at most γ = {short(plan.gamma, 'up')}.")
    if plan.query is not None and plan.noise is not None:
        if plan.noise.kind == "none":
            lines.append(f"For {plan.query.words()}: no noise at all; the exact answer will do.")
        else:
            lines.append(
                f"For {plan.query.words()}: {NOISES[plan.noise.kind]} noise of scale "
                f"{figures(plan.noise.scale, 4, 'up')}; the expected error is "
                f"{figures(plan.noise.error, 4, 'up')}, and 95% of answers are within "
                f"±{figures(plan.noise.within, 4, 'up')}."
            )
            if plan.noise.kind == "gaussian":
                lines.append(_through_a_ledger(plan))
    return lines


def _thousand(plan: Plan) -> Section:
    """The promise as people out of 1,000: a belief, unless only tests are bounded, and a test."""
    rates = promised_rates(plan.target)
    accused = ACCUSED if rates is None else rates[0]
    reached = float(curve_of(plan).tpr(accused))
    test = (
        f"A test that accuses {of_thousand(float(accused))} of 1,000 people who are not in "
        f"recognises at most {of_thousand(reached)} of 1,000 who are."
    )
    if is_dp(plan) and plan.target.averages:
        marks = Marks.of(float(accused), reached, "by guessing", "by the best test")
        return Section("Out of 1,000 people", (test,), marks)
    low, high = plan.beliefs
    prior = min(max(EXAMPLE, low), high)
    after = curves(plan)[-1][2](float(prior))
    fails = float(plan.failure if is_dp(plan) else plan.delta)
    but = f", but for a probability of {fails:g}" if fails else ""
    belief = (
        f"Of 1,000 people about whom someone was {percent(prior, 'down')} sure, "
        f"{of_thousand(float(prior))} are in. Afterwards that someone can be as sure as if "
        f"{of_thousand(after)} were, and no surer{but}."
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
    sigma = plan.query.euclidean(plan.relation) / math.sqrt(2 * rho)
    return (
        "That is for one release by itself. A release through a ledger, which adds up over time "
        f"(zCDP), draws discrete Gaussian noise of σ = {figures(sigma, 4, 'up')} when it spends "
        "all at once."
    )


def _baseline(plan: Plan) -> str:
    base = plan.baseline_epsilon
    if base is None:
        gamma = decimals(math.log(plan.gamma), 4, "down")
        return (
            "No ε at all keeps this promise against every prior: bounding beliefs is what makes it "
            f"possible. The same γ = {short(plan.gamma, 'up')} would need ε = {gamma}."
        )
    plain = f"ε = {decimals(base, 4, 'down')}"
    if plan.delta:
        return f"Without bounds on beliefs or a failure probability: {plain}."
    ratio = plan.epsilon / base
    if abs(ratio - 1) < 1e-9:
        return f"The same: {plain}."
    words = f"{ratio:.2f} times less noise" if ratio > 1 else f"{1 / ratio:.2f} times more noise"
    return f"Plain DP needs {plain} for the same target; this plan has {words}."


def _fallback(plan: Plan) -> list[str]:
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
            half = percent(beliefs.posterior(rational(each.gamma), HALF), "up")
            but = f", but for the same {plan.delta:g}" if plan.delta else ""
            lines.append(
                f"{each.family} ({each.words}): γ = {short(each.gamma, 'up')}; "
                f"from 50% to at most {half}{but}."
            )
    return lines


def curves(plan: Plan) -> list[Curve]:
    """Posterior against prior under this plan, under plain DP, and without protection."""
    ratio = plan.target.ratio(*plan.beliefs)  # may be beyond any float
    name = "with this plan"
    if is_dp(plan) and plan.target.averages:
        ratio = exp_up(plan.epsilon)
        name = "as a ledger spends it"  # noise for one answer uses more than this ε and δ
    if is_dp(plan):  # F9 at the one point that is known: δ(ε)/(1 − e^ε/g)
        name = f"{name}, but for a probability of {float(plan.failure):g}"
        ratio = ratio / (1 - 1 / HEADROOM)
    result: list[Curve] = [("●", name, lambda p: _believed(ratio, p))]
    if plan.baseline_epsilon is not None and not math.isclose(
        plan.baseline_epsilon, log_up(ratio), rel_tol=1e-9
    ):
        plain = math.exp(plan.baseline_epsilon)
        name = f"with plain DP for the same target (ε = {plan.baseline_epsilon:.3g})"
        result.append(("+", name, lambda p: float(beliefs.posterior(plain, p))))
    result.append(("·", "with no protection", lambda p: float(p > 0)))
    return result[::-1]


def band(plan: Plan) -> tuple[float, float]:
    """The beliefs that the plan assumes, for a chart."""
    low, high = plan.beliefs
    return float(low), float(high)


def _believed(ratio: Number, prior: float) -> float:
    """In exact numbers, since the ratio may be too large for a float."""
    return float(beliefs.posterior(ratio, rational(prior)))


def drawn(section: Section) -> list[str]:
    """The picture of a section as lines of text, and what its marks mean."""
    return [] if section.marks is None else [*section.marks.lines(), section.marks.words()]


def text(sections: Sequence[Section]) -> str:
    """A card as lines of text."""
    blocks = [
        "\n".join([section.title, *(f"  {line}" for line in (*section.lines, *drawn(section)))])
        for section in sections
    ]
    return "\n\n".join(blocks)
