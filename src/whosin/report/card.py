"""Cards: a plan in plain words with its pictures, and a dataset's budget state and history."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from whosin import beliefs, families
from whosin.calibration import Plan, ProcessPlan, Profile
from whosin.calibration.plan import FAILURE_FACTOR
from whosin.calibration.targets import Target
from whosin.exact import (
    ONE_HALF,
    Number,
    exact_fraction,
    exp_up,
    format_decimals,
    format_figures,
    format_percent,
    format_typed,
    log_up,
    rational,
)
from whosin.families.base import MEMBERSHIP_WORDS
from whosin.ledger import BudgetState, Entry, HistoryCheck, encoding
from whosin.ledger.budget import Budget, Cost, price_epsilon
from whosin.ledger.encoding import EPSILON_UNITS, canonical_json
from whosin.ledger.registry import PeopleBudget
from whosin.report.accounts import accounts_lines, describe_people
from whosin.report.document import (
    Chart,
    Document,
    Marks,
    Paragraph,
    Strong,
    TextSection,
    Theorems,
    Words,
    format_epsilon,
    format_fixed,
    format_general,
    format_plural,
    format_short,
    make_document,
    make_section,
    make_table,
    note,
    per_thousand,
    rounding_side,
)

if TYPE_CHECKING:
    from whosin.calibration.planning import ChainPlan
    from whosin.report.terminal import Curve

EXAMPLE_PRIOR, EXAMPLE_FPR = Fraction(1, 10), Fraction(1, 100)
"""How sure someone was, and how many a test accuses by mistake, where nobody says."""
PEOPLE_HEADING, FALLBACK_HEADING = "Out of 1,000 people", "If they know more than assumed"
SECRET_WORDS = {
    **dict.fromkeys(("stratum-swap", "label", "label-swap"), "that a person is a case"),
    "trait": "of a person's value",
    "genotype": "of a person's genotype",
}
"""What a study protects under each relation, after "sure"."""
NOISE_NAMES = {"laplace": "Laplace", "gaussian": "Gaussian", "geometric": "geometric"}


def describe_plan(plan: Plan) -> Document:
    """A plan's card, its pictures and its theorems."""
    reasons = make_section("", *plan_charts(plan), Theorems(plan.theorems))
    return Document("", (*plan_card(plan), reasons))


def plan_card(plan: Plan, secret: str = MEMBERSHIP_WORDS) -> list[TextSection]:
    """A plan in sections.

    Args:
        secret: what someone may be sure of, after "sure".
    """
    sections = [
        make_section("Who is looking", describe_adversary(plan.family, secret)),
        make_section("What is promised", *_promise_lines(plan)),
        make_section("What that takes", *_cost_lines(plan)),
        _thousand_people(plan, secret),
        make_section("Compared with plain differential privacy", _baseline_text(plan)),
        make_section(FALLBACK_HEADING, *_fallback_lines(plan)),
    ]
    shared = ""
    if plan.composes and plan.delta:
        shared = (
            "Several releases may share this promise when together they are within that (ε, δ), "
            "which is what a ledger sees to."
        )
        shared = " ".join([shared, *_reserve_lines(plan)])
    elif not plan.composes:
        shared = (
            "This promise is for one release: levels of this kind do not add up. A second release "
            "needs a plan of its own for both together."
        )
    return [*sections, make_section("More than one release", shared)] if shared else sections


def describe_adversary(family: families.Family, secret: str = MEMBERSHIP_WORDS) -> str:
    """Who is looking, in a sentence.

    Args:
        secret: what they may be sure of, after "sure".
    """
    words = family.words().replace(MEMBERSHIP_WORDS, secret)
    return f"{words[0].upper()}{words[1:]}."


def _promise_lines(plan: Plan) -> tuple[str, ...]:
    lines = [f"Whoever that is {plan.target.words()}.", *describe_delta(plan)]
    if not plan.tight:
        lines.append("The plan is sufficient; a little less noise might do.")
    return tuple(lines)


def describe_delta(plan: Plan) -> list[str]:
    """What a δ means in a plan, in a sentence; none without a δ."""
    if is_dp(plan) and plan.target.averages:
        return [f"It does not fail: δ = {format_general(plan.delta)} is counted in."]
    if is_dp(plan):
        return [f"That is (ε, δ)-differential privacy with δ = {format_general(plan.delta)}."]
    if plan.delta:
        chance = format_general(plan.delta)
        may = f"It may fail with probability {chance}, given that the person is in."
        return [may, *known_size(plan)]
    return []


def known_size(plan: Plan) -> list[str]:
    """What a plan with a δ, for additions and removals, promises of someone who knows the size."""
    gammas = [each.gamma for each in plan.fallback if each.family == "D_B"]
    if not plan.delta or is_dp(plan) or plan.relation != "add-remove" or not gammas:
        return []
    if math.isinf(gammas[0]):
        return ["Nothing is promised of someone who knows how many people are in."]
    half = format_percent(beliefs.posterior(exact_fraction(gammas[0]), ONE_HALF), "up")
    return [
        f"Someone who knows how many people are in may go from 50% to {half}, except with the same "
        "probability."
    ]


def budget_words(plan: Plan) -> str:
    """What a plan allows in all, as differential privacy; that its δ is not the plan's."""
    delta = f", δ = {format_general(plan.dp_delta, 3)}" if plan.dp_delta else ""
    of_promise = ""
    if plan.dp_delta and plan.dp_delta != plan.delta:
        of_promise = f"; the promise itself may fail with {format_general(plan.delta)}"
    return f"ε = {format_epsilon(plan.epsilon)}{delta} ({plan.relation}{of_promise})"


def _cost_lines(plan: Plan) -> list[str]:
    if plan.family.hides_others and plan.delta:
        lines = ["What the adversary does not know about others counts as noise."]
    elif plan.delta:
        level = (
            f"ε = {format_epsilon(plan.epsilon)}, δ = {format_figures(plan.dp_delta, 3, 'down')}"
        )
        lines = [f"An ({level}) release ({plan.relation})."]
        if plan.dp_delta != plan.delta:
            lines.append(
                f"Its δ is smaller than {format_general(plan.delta)}, with which the promise may "
                "fail: a promise about beliefs fails more often than differential privacy does "
                "(T18)."
            )
    else:
        level = format_epsilon(plan.epsilon)
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


def _reserve_lines(plan: Plan) -> list[str]:
    """What there is beside a plan's reserve, and what there would be without one."""
    if not plan.reserve:
        return []
    kept = encoding.cost_units(plan.reserve, "reserve")
    beside, plain = (
        format_figures(max(0, rho - cost) / EPSILON_UNITS, 3, "down")
        for rho, cost in (
            (Budget.of(each).rho, price_epsilon(kept, each))
            for each in (plan, replace(plan, reserve=0.0))
        )
    )
    return [
        f"Reserve: beside pure answers of ε = {format_epsilon(plan.reserve)} there is ρ = {beside} "
        f"for Gaussian noise; without the reserve it would be {plain}."
    ]


def find_secret(state: BudgetState) -> str:
    """What a dataset protects, after "sure": of a study, what its name ends with."""
    registered, relation = state.registered, state.dataset.rpartition(":")[2]
    if registered is None or not {"SNPs", "labels"} & {*registered.registration.domains}:
        return MEMBERSHIP_WORDS
    return SECRET_WORDS.get(relation, MEMBERSHIP_WORDS)


def _thousand_people(plan: Plan, secret: str = MEMBERSHIP_WORDS) -> TextSection:
    """The promise as people out of 1,000: a belief, unless only tests are bounded, and a test."""
    from whosin.curves import tradeoff

    rates, noun = promised_rates(plan.target), secret.rpartition(" ")[2]
    values = plan.family.about_records or noun in ("genotype", "value")
    out = "no cases" if noun == "case" else "not in"
    low, high = plan.beliefs
    prior = high if high < 1 else max(EXAMPLE_PRIOR, low)  # the one of the promise's sentence
    accused = rates[0] if rates else prior if values else EXAMPLE_FPR
    reached, posterior = float(tradeoff(plan).tpr(accused)), plan_curves(plan)[-1][2]
    fails = float(plan.failure if is_dp(plan) else plan.delta)
    if values and not fails:  # what nobody is surer of than this is guessed no better
        reached = min(reached, posterior(float(accused)))
    test = (
        f"A test that accuses {per_thousand(float(accused))} of 1,000 people who are {out} "
        f"recognises at most {per_thousand(reached)} of 1,000 who are."
    )
    if values:
        test = (
            f"On average over all answers guesses of which {per_thousand(float(accused))} in 1,000 "
            f"are right by luck are right in at most {per_thousand(reached)} (F36)."
        )
    if is_dp(plan) and plan.target.averages:
        marks = Marks.of(float(accused), reached, "by guessing", "by the best test")
        return make_section(PEOPLE_HEADING, test, marks)
    after = posterior(float(prior))
    but = f", but for a probability of {format_general(fails)}" if fails else ""
    about = "about whom someone was {} sure, {} are in"
    if noun == "case":
        about = "known to be in, whom someone was {} sure to be a case, {} are"
    elif values:
        noun = noun if noun == "genotype" else "value"
        about = f"known to be in, of whom someone was {{}} sure of a {noun}, {{}} have it"
    about = about.format(format_percent(prior, "down"), per_thousand(float(prior)))
    belief = (
        f"Of 1,000 people {about}. Afterwards that someone can be as sure as if "
        f"{per_thousand(after)} {'had' if values else 'were'}, and no surer{but}."
    )
    return make_section(PEOPLE_HEADING, belief, test, Marks.of(float(prior), after))


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
        "spends all at once."
    )


def _baseline_text(plan: Plan) -> str:
    base = plan.baseline_epsilon
    if base is None:
        gamma = format_epsilon(math.log(plan.gamma))
        return (
            "No ε at all keeps this promise against every prior: bounding beliefs is what makes it "
            f"possible. The same γ = {format_short(plan.gamma, 'up')} would need ε = {gamma}."
        )
    plain = f"ε = {format_epsilon(base)}"
    if plan.delta:
        return f"Without bounds on beliefs or a failure probability: {plain}."
    ratio = plan.epsilon / base
    if abs(ratio - 1) < 1e-9:
        return f"The same: {plain}."
    times, which = (ratio, "less") if ratio > 1 else (1 / ratio, "more")
    words = f"{format_fixed(times, 2)} times {which} noise"
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
        known = f"{each.words[0].upper()}{each.words[1:]} ({each.family})"
        if math.isinf(each.gamma):
            lines.append(f"{known}: nothing is promised.")
        else:
            half = format_percent(beliefs.posterior(exact_fraction(each.gamma), ONE_HALF), "up")
            but = f", but for the same {format_general(plan.delta)}" if plan.delta else ""
            lines.append(
                f"{known}: from 50% to at most {half}{but}, a factor of at most "
                f"γ = {format_short(each.gamma, 'up')}."
            )
    return lines


def promised_ratio(plan: Plan) -> Number:
    """The likelihood ratio between in and not in that a plan's adversaries are held to, but for
    `Plan.failure` where it has a δ; it may be beyond any float."""
    ratio = plan.target.ratio(*plan.beliefs)
    if is_dp(plan) and plan.target.averages:
        ratio = exp_up(plan.epsilon)
    if is_dp(plan):  # F9 at the one point that is known: δ(ε)/(1 − e^ε/g)
        ratio = ratio / (1 - 1 / FAILURE_FACTOR)
    return ratio


def plan_curves(plan: Plan) -> list[Curve]:
    """Posterior against prior under this plan, under plain DP, and without protection."""
    ratio, name = promised_ratio(plan), "with this plan"
    if is_dp(plan) and plan.target.averages:
        name = "as a ledger spends it"  # noise for one answer uses more than this ε and δ
    if is_dp(plan):
        name = f"{name}, but for a probability of {format_general(float(plan.failure))}"
    result: list[Curve] = [("●", name, lambda p: _posterior_belief(ratio, p))]
    if plan.baseline_epsilon is not None and not math.isclose(
        plan.baseline_epsilon, log_up(ratio), rel_tol=1e-9
    ):
        plain = math.exp(plan.baseline_epsilon)
        name = f"with plain DP for the same target (ε = {format_epsilon(plan.baseline_epsilon)})"
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


# The two pictures of a plan: how sure anyone can become, and what the best test reaches.
# Which one comes first depends on the target: a target about rates is a point of the second.


BELIEFS_TITLE = "How sure anyone can become"
RATES_TITLE = "How many of those who are in the best test recognises"


def plan_charts(plan: Plan, title: str = BELIEFS_TITLE) -> list[Chart]:
    """Both pictures of a plan, the target's own first, which a terminal shows."""
    from whosin.curves import tradeoff
    from whosin.report.charts import belief_chart, rates_chart
    from whosin.report.terminal import belief_plot, rates_plot

    allowed = plan.target.points if isinstance(plan.target, Profile) else ()
    curves, band, promise = plan_curves(plan), belief_band(plan), promised_rates(plan.target)
    rates_first = plan.target.averages
    pictures = [
        Chart(
            lambda: belief_chart(curves, band, title, allowed),
            None if rates_first else lambda width: belief_plot(curves, band, width),
        ),
        Chart(
            lambda: rates_chart(tradeoff(plan), RATES_TITLE, promise),
            (lambda width: rates_plot(tradeoff(plan), promise, width)) if rates_first else None,
        ),
    ]
    return pictures[::-1] if rates_first else pictures


def process_chart(plan: ProcessPlan) -> Any:
    """What the best test reaches after all runs."""
    from whosin.curves import tradeoff
    from whosin.report.charts import rates_chart

    title = f"What the best test reaches after {format_plural(plan.process.steps, 'step')}"
    return rates_chart(tradeoff(plan), title, promised_rates(plan.target))


def describe_process(plan: ProcessPlan, delta: float) -> Document:
    process, target = plan.process, plan.target
    fails = delta and not target.averages
    but = f", but for a probability of {format_general(delta)}" if fails else ""
    where = f" on a grid of {format_general(plan.grid)}" if plan.grid else ""
    certified = (
        f"certified: {target.measured_as} at most {format_figures(plan.bound, 6, 'up')}{where}"
    )
    return make_document(
        "",
        f"{process.steps} steps of {process.noise} noise, each seeing a person with probability "
        f"{format_general(process.sample_rate)}",
        Paragraph(("Noise multiplier: ", Strong(format_decimals(plan.multiplier, 4, "up")))),
        f"An adversary {target.words()}{but}.",
        note(certified),
        Theorems(plan.theorems),
    )


def describe_chain_plan(plan: ChainPlan, query: str, rows: int, promise: str) -> Document:
    """Noise for a series beside what plain DP and group privacy would add."""
    most, rounded = "" if plan.exact else "at most ", rounding_side(plan.exact)
    plain, own = (
        f"{most}{format_decimals(leakage, 4, rounded)}"
        for leakage in (plan.plain_leakage, plan.leakage)
    )
    lines: list[tuple[Words, float, str]] = [
        ("differential privacy", plan.plain_scale, plain),
        ((Strong("this plan"),), plan.scale, own),
        ("group privacy", plan.group_scale, f"at most {format_decimals(plan.epsilon, 4, 'up')}"),
    ]
    cells = [
        (name, format_figures(scale, 4, "up"), leaks, f"±{format_general(scale * math.log(20), 4)}")
        for name, scale, leaks in lines
    ]
    numbers = ("Laplace scale", "what a row leaks", "95% of answers within")
    return make_document(
        f"A {query} over {rows} rows that depend on each other",
        f"Whoever is looking {promise}: ε = {format_epsilon(plan.epsilon)}.",
        make_table(("noise", *numbers), cells, right=numbers),
        Theorems(("T14",)),
    )


# What a dataset's ledger says of it.


STATE_SENTENCES = {
    "open": "open",
    "closed": "closed: no further answers",
    "complete": "complete: it had a release that allows no other",
}
QUESTION_WORDS = {"column": "of {}", "by": "by {}", "where": "where {}", "within": "within ±{}"}
FLAG_WORDS = {"interval": "with an interval", "choose": "tables chosen privately"}
MAX_QUESTION_LENGTH = 120
NAMED_ENTRIES = ("registered", "amended", "suspended", "resumed", "closed")
"""Kinds of entries that say what they are."""


def describe_budget_state(budget_state: BudgetState) -> Document:
    return Document("", tuple(budget_state_card(budget_state)))


def describe_budget_states(
    records: Sequence[tuple[BudgetState, Sequence[Entry]]],
    entries: bool = False,
    people: Sequence[PeopleBudget] = (),
) -> Document:
    """Where datasets stand, with their histories if asked for, and what they allow together."""
    if not records:
        return make_document("", "The ledger has no datasets.")
    sections = []
    for budget_state, history in records:
        first, *others, last = budget_state_card(budget_state)
        if entries:
            rows = [entry_row(entry, budget_state.budget.relation) for entry in history]
            table = make_table(("", "when", "who", "what", "cost"), rows)
            last = replace(last, parts=(*last.parts, table))
        sections += [replace(first, level=2), *others, last]
    return Document("", (*sections, *map(describe_people, people)))


def budget_state_card(budget_state: BudgetState) -> list[TextSection]:
    return [
        make_section(budget_state.dataset, *_budget_lines(budget_state)),
        make_section("What all answers together allow", *belief_lines(budget_state)),
        make_section("History", history_line(budget_state)),
    ]


def _budget_lines(budget_state: BudgetState) -> list[str]:
    lines = [f"Budget: {budget_words(budget_state.plan)}.", *_reserve_lines(budget_state.plan)]
    lines += _unit_lines(budget_state)
    if not budget_state.debits:
        lines.append("Nothing has been spent.")
    elif budget_state.epsilon == math.inf:
        lines.append("Spent: all of it, on a release of its own.")
    elif budget_state.reading == "promised":
        count = format_plural(budget_state.debits, "debit")
        lines.append(f"Spent: a part in {count}, not all pure: the whole budget is the promise.")
    else:
        read = "" if budget_state.reading == "pure" else ", added up as ρ of zero-concentrated DP"
        count = format_plural(budget_state.debits, "debit")
        lines.append(f"Spent: ε = {format_epsilon(budget_state.epsilon)} in {count}{read}.")
    if budget_state.state == "open":
        alone = " It allows one answer only." if budget_state.budget.alone else ""
        epsilon = format_epsilon(budget_state.spendable)
        rho = format_epsilon(budget_state.spendable_rho)
        gaussian = f"; or ρ = {rho} of Gaussian noise" if budget_state.budget.rho else ""
        lines.append(f"Left: ε = {epsilon}{gaussian}.{alone}")
    lines.append(f"State: {STATE_SENTENCES[budget_state.state]}.")
    return [*lines, *accounts_lines(budget_state), *_suspension_lines(budget_state)]


def _suspension_lines(budget_state: BudgetState) -> list[str]:
    """That an engine failed, where one did, and what follows."""
    if not budget_state.suspensions and not budget_state.suspended:
        return []
    times = "once" if budget_state.suspensions == 1 else f"{budget_state.suspensions} times"
    now = (
        ": nothing is answered until its curator has looked, and lets it go on with whosin "
        "ledger resume."
        if budget_state.suspended
        else "; its curator let it go on."
    )
    word = "Suspended" if budget_state.suspended else "It was suspended"
    return [f"{word}{now} An engine failed after a debit {times}."]


def _unit_lines(budget_state: BudgetState) -> list[str]:
    """Whose rows the budget is for, where that was said."""
    if budget_state.registered is None:
        return []
    kept = budget_state.registered.registration
    rows = format_plural(kept.max_rows_per_group, "row")
    groups = format_plural(kept.max_groups, "group")
    verb = "counts" if kept.max_rows_per_group == 1 else "count"
    if kept.privacy_unit in ("row", "each row"):
        return ["Privacy unit: each row is one person."]
    return [f"Privacy unit: {kept.privacy_unit!r}; at most {rows} in {groups} {verb}."]


def belief_lines(budget_state: BudgetState) -> list[str]:
    """How sure the plan's adversary can have become from all answers so far."""
    plan = budget_state.plan
    lines = [describe_adversary(plan.family, find_secret(budget_state))]
    if not budget_state.debits:
        return [*lines, "So far they have learned nothing from here."]
    if budget_state.by_itself:
        return [*lines, f"Whoever that is {plan.target.words()}.", *_failure_lines(budget_state)]
    if math.isinf(budget_state.ratio):
        return [*lines, "Nothing is promised."]
    low, high = plan.beliefs
    priors = [p for p in (low, (low + high) / 2, high) if 0 < p < 1]
    moves = [
        f"from {format_percent(p, 'down')} to at most "
        f"{format_percent(beliefs.posterior(budget_state.ratio, p), 'up')}"
        for p in priors
    ]
    lines.append(f"All answers so far can have moved them {', '.join(dict.fromkeys(moves))}.")
    return [*lines, *_failure_lines(budget_state)]


def _failure_lines(budget_state: BudgetState) -> list[str]:
    if not budget_state.plan.delta or budget_state.certain:
        return []
    failure = format_typed(budget_state.plan.failure, "up")
    may = f"That may fail with probability {failure}, given that a person is in."
    return [may, *known_size(budget_state.plan)]


def history_line(budget_state: BudgetState) -> str:
    """The head of the history, for a report."""
    count = "1 entry" if budget_state.entries == 1 else f"{budget_state.entries} entries"
    return f"{count}, the last of {budget_state.last[:19]}Z; head {budget_state.head}"


def entry_row(entry: Entry, relation: str) -> tuple[str, str, str, str, str]:
    """(number, when, who, what, cost) of an entry."""
    what, table = entry.kind if entry.kind in NAMED_ENTRIES else "", entry.body.get("table", "")
    cost = ""
    if entry.kind == "debit":
        what = _question_text(entry)
        paid = entry.body["costs"].get(relation)
        cost = cost_words(Cost(**paid)) if paid else "∞"
    elif entry.kind == "answer":
        what = f"answered {entry.request}: {entry.body['digest'][:12]}…"
    elif entry.kind == "quota":
        what = f"quota {entry.body['quota']} {entry.body['change']}"
    elif entry.kind == "registered":
        plan = entry.body["plan"]
        cost = f"budget ε = {format_epsilon(float(plan['epsilon']))}"
    what += f", of {table}" if table and entry.kind == "debit" else f": {table}" if table else ""
    when = entry.body["when"][:19].replace("T", " ")
    return str(entry.number), when, entry.body["who"], what, cost


def _question_text(entry: Entry) -> str:
    asked = dict(entry.body["what"])
    kind = asked.pop("query", "")
    name = asked.pop("name", "") if kind else ""
    parts = [f"{name}: {kind}" if name else kind] * bool(kind)
    for key, value in asked.items():
        several = isinstance(value, list) and all(isinstance(each, str) for each in value)
        if isinstance(value, bool):
            parts += [describe_flag(key)] * value
        elif several or isinstance(value, str | int | float):
            words = QUESTION_WORDS.get(key, f"{key} {{}}") if kind else "{}"
            parts += [words.format(" and ".join(value) if several else value)] * (value != [])
    return " ".join(parts)[:MAX_QUESTION_LENGTH] or str(entry.request)


def describe_flag(key: str) -> str:
    """A key that a question says yes to."""
    return FLAG_WORDS.get(key, key.replace("_", " "))


def cost_words(cost: Cost) -> str:
    if cost.rho >= encoding.INFINITE_UNITS:
        return "a promise of its own"
    pure = cost.epsilon < encoding.INFINITE_UNITS
    symbol, amount = ("ε", cost.epsilon) if pure else ("ρ", cost.rho)
    text = f"{symbol} = {format_epsilon(Fraction(amount, EPSILON_UNITS))}"
    failing = format_figures(Fraction(cost.delta, encoding.DELTA_UNITS), 3, "up")
    return f"{text}, δ = {failing}" if cost.delta else text


def check_lines(checks: Sequence[HistoryCheck]) -> list[str]:
    """What a verification of a ledger found, a line for each dataset."""
    lines = []
    for check in checks:
        line = f"{check.dataset}: whole; entries: {check.entries}, debits: {check.debits}"
        if check.unanswered:
            line += f"; {len(check.unanswered)} paid for and not answered"
        lines += [line, f"  head {check.head}"]
    return lines


Records = Sequence[tuple[BudgetState, Sequence[Entry]]]
HISTORY_COLUMNS = ("dataset", "number", "kind", "request", "who", "when", "body", "head")


def datasets_data(records: Records, *, entries: bool = True) -> dict[str, list[dict[str, Any]]]:
    """All datasets as plain data, with all their entries if asked for."""
    datasets = []
    for budget_state, history in records:
        past = {"history": [entry.to_dict() for entry in history]} if entries else {}
        datasets.append(budget_state.to_dict() | past)
    return {"datasets": datasets}


def json_text(records: Records) -> str:
    return json.dumps(datasets_data(records), ensure_ascii=False, indent=2) + "\n"


def csv_text(records: Records) -> str:
    """One line per entry; `body` is JSON, from which the digests can be recomputed."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HISTORY_COLUMNS)
    for _, entries in records:
        for entry in entries:
            named = [entry.dataset, entry.number, entry.kind, entry.request]
            said = [entry.body["who"], entry.body["when"], canonical_json(entry.body), entry.head]
            writer.writerow([*named, *said])
    return out.getvalue()
