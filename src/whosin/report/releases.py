"""Cost estimates, releases and answers as documents, and the story of `whosin demo`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from whosin.calibration import Plan
from whosin.errors import UnknownName
from whosin.exact import format_figures, format_percent
from whosin.ledger import BudgetState
from whosin.release import Answer, CostEstimate, Release
from whosin.release.admission import Outlook
from whosin.release.answer import NOISY_MARK, cost_data
from whosin.release.conditions import add_condition
from whosin.release.contribution_bounds import CostWarning
from whosin.release.cost import ExpectedError, batch_cost, state_after
from whosin.release.domains import describe_misspelt_days
from whosin.report import accounts, card
from whosin.report.accounts import accounts_lines, describe_people
from whosin.report.card import budget_state_card, budget_words, cost_words
from whosin.report.document import (
    Chart,
    Document,
    Paragraph,
    Part,
    Strong,
    TableSet,
    TextSection,
    TextTable,
    Theorems,
    format_count,
    format_epsilon,
    format_general,
    format_plural,
    make_document,
    make_section,
    make_table,
    note,
)
from whosin.report.summary import (
    describe_summary,
    explain_public_size,
    name_question,
    spending_words,
)
from whosin.report.table_views import MAX_TERMINAL_ROWS, answer_chart, answer_table, has_chart

if TYPE_CHECKING:
    from whosin.release.accuracy import Suggestion
    from whosin.release.contribution_bounds import BoundLook
    from whosin.release.inspection import ColumnLook, GroupLook, InspectionFinding, Preflight
    from whosin.release.scenario import Scenario

STAR_NOTE = f" {NOISY_MARK} Too noisy to read."
MAX_MEASURED_TABLES = 8
MIN_COUNTED_INTERVALS = 10
"""From which number on it is said how often one of them misses."""
NOTHING_LEFT = (
    "Nothing is left then for a correction or another release: share in [budget], or a [schedule], "
    "keeps some."
)


def estimate_data(estimate: CostEstimate) -> dict[str, Any]:
    data: dict[str, Any] = {
        "title": estimate.title,
        "question": dict(estimate.spend.what),
        "costs": {relation: cost_data(cost) for relation, cost in estimate.spend.costs.items()},
        "noise": estimate.noise,
        "error": estimate.error,
        "within": estimate.within,
        "within_words": estimate.within_words,
        "expected": [each.to_dict() for each in estimate.expected],
        "readable_from": estimate.readable_from,
        "readable_unit": estimate.readable_unit,
        "told_from": estimate.told_from,
        "groups": estimate.groups,
        "noisy_groups": estimate.noisy_groups,
        "cautions": [caution.to_dict() for caution in estimate.cautions],
    }
    if estimate.tables:
        data |= {"tables": list(estimate.tables), "measured": list(estimate.measured)}
    if estimate.by_weights is not None:
        data |= {"standard_error": estimate.standard_error, "by_weights": estimate.by_weights}
    return data


def expectation_words(estimate: CostEstimate) -> dict[str, Any]:
    """How good an answer will be in words, for a page: by the size of a group, and from which size
    on it can be read."""
    sized = [each for each in estimate.expected if each.rows is not None]
    return {
        "sizes": [[format_count(each.rows or 0), _expected_words(each)] for each in sized],
        "readable_words": None if estimate.readable_from is None else _readable_words(estimate),
    }


def suggestion_data(suggestion: Suggestion) -> dict[str, Any]:
    return suggestion.to_dict() | {"words": suggestion_words(suggestion)}


def suggestion_words(suggestion: Suggestion) -> str:
    """What to change, and by how much that helps the answer that it helps most."""
    if suggestion.change == "ask-once":
        inner, outer = suggestion.about
        change = f"{inner} is inside {outer}: ask {outer} alone and add up its groups"
    elif suggestion.change == "gaussian":
        needs = "" if suggestion.delta is None else f" and delta = {suggestion.delta:g} in [target]"
        change = f'noise = "gaussian" in [budget]{needs}'
    elif suggestion.change == "closed":
        column = suggestion.about[0]
        change = f'declare {column} closed (outside = "drop": rows with another value do not count)'
    elif suggestion.change == "constant":
        column = suggestion.about[0]
        change = (
            f"only if it is publicly known that a person has one {column}: constant = true in its "
            "domain, or max_groups = 1 in the question"
        )
    else:
        change = 'split = "optimal" in [budget]'
    now, before = (_format_error(each) for each in (suggestion.after, suggestion.before))
    sums = ""
    if suggestion.added_up is not None:
        sums = f", and {suggestion.about[0]}, added up, ±{_format_error(suggestion.added_up)}"
        if suggestion.alone is not None:
            sums += f" instead of ±{_format_error(suggestion.alone)}"
    return f"{change}: {suggestion.query} ±{now} instead of ±{before}{sums}"


def describe_estimates(
    title: str,
    plan: Plan,
    estimates: Sequence[CostEstimate],
    state: BudgetState | None = None,
    suggestions: Sequence[Suggestion] = (),
    people: int | None = None,
    outlook: Outlook | None = None,
    ways: str = "",
) -> Document:
    """What a batch would cost and how good it would be.

    Args:
        state: of its dataset, where the ledger knows it.
        people, ways: how many, if that is public; of a correction, if the period has nothing left.
    """
    read = "no row is read" if outlook is None else "rows are compared with those the ledger knows"
    dry = Paragraph((Strong(title), f": a dry run. Nothing is spent, {read}."))
    promise = [
        card.describe_adversary(plan.family),
        f"Whoever that is {plan.target.words()}.",
        *card.describe_delta(plan),
    ]
    within = [
        f"{name_estimate(estimate)}: {estimate.within_words}."
        for estimate in estimates
        if estimate.within_words and "of the rank" not in estimate.noise  # said there
    ]
    tables = [
        make_section(
            f"{name_estimate(estimate)}, table by table",
            _error_table(estimate),
            f"Measured: {measured_words(estimate)}.",
        )
        for estimate in estimates
        if estimate.tables
    ]
    whole = f"In all {cost_words(batch_cost(estimates, plan))} of {budget_words(plan)}."
    if any(estimate.spend.alone for estimate in estimates):
        whole = "Its promise does not add to others: it must be the only release."
    left = list[str]()
    if state is not None:
        left = [f"The dataset has ε = {format_epsilon(state.spendable)} left in its ledger."]
        left += accounts_lines(state)
    said = any(estimate.spend.alone for estimate in estimates)
    said |= outlook is not None and (outlook.known or outlook.refusal is not None)
    if not (said or state_after(plan, estimates, state).spendable):
        left.append(NOTHING_LEFT)
    left += [f"Nothing of this period is left then: {ways}."] * bool(ways and not said)
    left += [] if outlook is None else _outlook_lines(outlook, state)
    first = make_section("", dry, " ".join(promise), estimate_table(plan, estimates), *within)
    changes = map(suggestion_words, suggestions)
    better = [make_section("What would make it better", *changes)] * bool(suggestions)
    if public := explain_public_size(plan, people):
        left.append(f"{public} With size-known = true in [adversary] the promise holds for them.")
    last = make_section("", *_describe_cautions(estimates), whole, *left)
    sizes = _describe_sizes(estimates)
    return Document("", (first, *sizes, *tables, *_describe_gains(estimates), *better, last))


def _outlook_lines(outlook: Outlook, state: BudgetState | None) -> list[str]:
    """What is left for whoever asks, where it is not what is left in all, and whether a release
    would be refused."""
    lines, left = [], format_epsilon(outlook.left)
    if state is not None and left != format_epsilon(state.spendable):
        lines.append(f"For these questions {outlook.who!r}, who asks, has ε = {left} left today.")
    again = "They were asked before: for the same rows their stored answers are shown, for nothing."
    lines += [again] * outlook.known
    if outlook.refusal is not None:
        when = "Asked anew, they" if outlook.known else "A release"
        lines.append(f"{when} would be refused: {outlook.refusal}.")
    return lines


def _describe_sizes(estimates: Sequence[CostEstimate]) -> Iterator[TextSection]:
    """How good answers are by the size of a group, and which groups can be read."""
    rows, heads = [], dict[str, None]()
    for estimate in estimates:
        sized = [each for each in estimate.expected if each.rows is not None]
        if sized:
            cells = {format_count(each.rows or 0): _expected_words(each) for each in sized}
            heads |= dict.fromkeys(cells)
            rows.append((name_estimate(estimate), cells))
    lines = [
        f"{name_estimate(each)}: {_readable_words(each)}"
        for each in estimates
        if each.readable_from is not None
    ]
    parts: list[Part] = []
    if rows:
        names = [f"{head} rows" for head in heads]
        listed = [(title, *(cells.get(head, "") for head in heads)) for title, cells in rows]
        parts += [
            make_table(("95% within, in a group of", *names), listed),
            Paragraph(
                "For values that are spread evenly over the declared range; keys and synthetic "
                f"tables for any.{STAR_NOTE if any(NOISY_MARK in str(e) for e in listed) else ''}"
            ),
        ]
    if parts or lines:
        yield make_section("How good the answers will be", *parts, *lines)


def _expected_words(expected: ExpectedError) -> str:
    if expected.shown is not None:
        return f"shown {format_percent(expected.shown)}"
    if expected.of_rows:
        return f"{format_percent(expected.error or 0.0)} of rows off"
    if expected.fills:
        return "nothing: the whole range"
    return f"±{_format_error(expected.within or 0.0)}{NOISY_MARK * expected.noisy}"


def _readable_words(estimate: CostEstimate) -> str:
    size, unit = estimate.readable_from or 0.0, estimate.readable_unit
    said = "readable from "
    if unit == "sum":
        return f"{said}a total of {_format_error(size)} up."
    least = f"{format_count(round(size))} {unit}"
    said = (
        f"readable in groups of {least} or more." if estimate.groups > 1 else f"{said}{least} up."
    )
    if estimate.told_from is not None:
        least = format_count(estimate.told_from)
        said += f" Below {least} rows it says nothing: the interval is the whole declared range."
    if estimate.noisy_groups:
        noisy, groups = format_count(estimate.noisy_groups), format_count(estimate.groups)
        said += f" At least {noisy} of the {groups} groups are smaller than that."
    return said


def _format_error(error: float) -> str:
    """An error with three digits, rounded up; whole from 100 on."""
    if error >= 100:
        return format_count(math.ceil(error))
    return format_figures(error, 3, "up")


def _describe_gains(estimates: Sequence[CostEstimate]) -> Iterator[TextSection]:
    """By how much the split for the least error helps, and what is measured at once."""
    compared = [estimate for estimate in estimates if estimate.by_weights is not None]
    if not compared:
        return
    rows = [
        (
            name_estimate(each),
            f"{_format_optional(each.by_weights, 4)} → {_format_optional(each.standard_error, 4)}",
        )
        for each in compared
    ]
    joints: dict[int, list[CostEstimate]] = {}
    for each in compared:
        if each.joint:
            joints.setdefault(id(each.joint), []).append(each)
    yield make_section(
        "Standard error of a number, split by weights → optimal",
        TextTable((), tuple(rows), most=MAX_TERMINAL_ROWS),
        *(
            f"Measured at once for {', '.join(each.title for each in those)}: "
            f"{measured_words(those[0].paid)}."
            for those in joints.values()
        ),
    )


def _describe_cautions(estimates: Sequence[CostEstimate]) -> Iterator[Paragraph]:
    """What to decide before asking, each once, with the queries that it is about."""
    alike: dict[tuple[object, ...], list[tuple[str, CostWarning]]] = {}
    for estimate in estimates:
        for caution in estimate.cautions:
            key = caution.about, bool(caution.columns), caution.times, caution.constant
            alike.setdefault(key, []).append((name_estimate(estimate), caution))
    for several in alike.values():
        columns = dict.fromkeys(name for _, each in several for name in each.columns)
        words = replace(several[0][1], columns=tuple(columns)).words
        titles = ", ".join(dict.fromkeys(title for title, _ in several))
        about = "" if several[0][1].epsilons else f", {titles}"
        yield Paragraph((Strong("Warning"), f"{about}: {words}."))


def name_estimate(estimate: CostEstimate) -> str:
    """What a dry run calls a question: its title, with the rows that it is about."""
    return add_condition(estimate.title, estimate.spend.what)


def estimate_table(plan: Plan, estimates: Sequence[CostEstimate]) -> TextTable:
    """Queries with their costs and expected errors."""
    rows = [
        (
            name_estimate(estimate),
            cost_words(estimate.spend.cost(plan.relation)),
            "" if estimate.error is None else _format_error(estimate.error),
            _format_width(estimate),
            estimate.noise,
        )
        for estimate in estimates
    ]
    return make_table(("query", "cost", "expected error", "95% within", "noise"), rows)


def _format_width(estimate: CostEstimate) -> str:
    """How wide an answer is, where one number says it."""
    if estimate.within is not None and not estimate.within_words:
        return f"±{_format_error(estimate.within)}"
    sized = any(each.rows is not None for each in estimate.expected)
    return "see below" if sized or estimate.within_words or estimate.tables else ""


def _error_table(estimate: CostEstimate) -> TextTable:
    """The tables of a cost estimate with the standard error of a cell of each."""
    columns = ("table", "standard error of a cell")
    rows = ((", ".join(each["columns"]) or "total", error_words(each)) for each in estimate.tables)
    return TextTable(columns, tuple(rows), most=MAX_TERMINAL_ROWS)


def error_words(table: Mapping[str, Any]) -> str:
    """The standard error of a cell; the least and the largest where sums are not equally exact."""
    ends = [_format_optional(table.get(key)) for key in ("least_error", "largest_error")]
    return (
        " to ".join(dict.fromkeys(ends)) if all(ends) else _format_optional(table["standard_error"])
    )


def measured_words(estimate: CostEstimate) -> str:
    """What is measured, and with which part of the budget; those with most of it first."""
    word = "epsilon" if "epsilon" in estimate.measured[0] else "rho"
    letter = "ε" if word == "epsilon" else "ρ"
    ranked = sorted(estimate.measured, key=lambda each: -float(each[word]))
    said = []
    for each in ranked[:MAX_MEASURED_TABLES]:
        columns = ", ".join(each["columns"]) or "total"
        kind = " (differences)" if each["differences"] else ""
        said.append(f"{columns}{kind} {letter} = {format_epsilon(each[word])}")
    more = len(ranked) - MAX_MEASURED_TABLES
    return "; ".join(said) + (f"; {more} more" if more > 0 else "")


def describe_release(title: str, release: Release) -> Document:
    """Answers with their errors and costs, then what they allow anyone to believe."""
    answers = (replace(describe_answer(each, release.request), level=2) for each in release)
    apart = _describe_independence(release)
    return Document(title, (*answers, *apart, *budget_state_card(release.budget_state)))


def _describe_independence(release: Release) -> list[TextSection]:
    """That answers of a release which contain each other do not add up, where there are such."""
    said = release.independence_note
    return [make_section("", note(said))] if said else []


def _payment_words(release: Release) -> str:
    table = f" of the table {release.table}" if release.table else ""
    period = f", {release.about['period']}" if release.about.get("period") else ""
    return f"Paid on {release.when[:10]}{table}{period}"


def describe_releases(title: str, releases: Sequence[Release]) -> Document:
    """Releases that were paid for before, each under its request, and where the dataset stands."""
    parts = [
        part
        for each in releases
        for part in (
            make_section(
                f"Request {each.request}",
                note(f"{_payment_words(each)}; SHA-256 of its answers: {each.digest}"),
                level=2,
            ),
            *(describe_answer(answer, each.request) for answer in each),
            *_describe_independence(each),
        )
    ]
    return Document(title, (*parts, *budget_state_card(releases[-1].budget_state)))


REPORT_READERS = ("officer",)


def describe_report(
    title: str,
    plan: Plan,
    release: Release,
    scenario: Scenario | None = None,
    reader: str | None = None,
) -> Document:
    """Two pages that can be signed; then the answers, the ledger, and the mathematics.

    Args:
        scenario: who answers for it and why, and which domains were looked up.
        reader: "officer" for the two pages alone.
    """
    if reader is not None and reader not in REPORT_READERS:
        raise UnknownName("reader", reader, REPORT_READERS)
    summary = describe_summary(plan, release, scenario)
    if reader is not None:
        return Document(title, summary)
    how = (
        "Each number has noise; the interval holds the answer without noise in 95 of 100 cases. "
        "What clamping and limiting a person's rows leave out is not in it: each answer says what "
        "counts."
    )
    return Document(
        title,
        (
            *summary,
            make_section("Answers", note(how), level=2, new_page=True),
            *(describe_answer(each, release.request, full=True) for each in release),
            *_describe_independence(release),
            make_section("What all answers together allow, and the ledger", level=2),
            *budget_state_card(release.budget_state),
            *([] if release.people is None else [describe_people(release.people)]),
            make_section("The mathematics", level=2),
            *(each for each in card.plan_card(plan) if each.heading != card.PEOPLE_HEADING),
            make_section("", *card.plan_charts(plan)),
            make_section("Why this holds", Theorems(plan.theorems)),
        ),
    )


def describe_answer(answer: Answer, request: str = "", full: bool = False) -> TextSection:
    """An answer with its cost, its chart and what is to be known about its numbers.

    Args:
        full: also say what was asked.
    """
    parts: list[Part] = []
    if answer.tables:
        parts.append(TableSet(answer, request))
    else:
        if has_chart(answer):
            parts.append(Chart(partial(answer_chart, answer)))
        periods = (answer.question.get("counted") or {}).get("max_periods") or 1
        if periods > 1:
            parts.append(note(f"A person counts in up to {periods} periods of a total."))
        parts.append(answer_table(answer))
    parts += map(note, filter(None, (answer.noisy_note, answer.statement)))
    aside = f"{cost_words(answer.cost)}; {answer.noise}"
    title = add_condition(answer.title, answer.question)
    if full:
        title = name_question(answer.title, answer.question)
        aside = " — ".join(filter(None, [_question_words(answer), aside]))
        parts += map(note, _describe_misses(answer))
    return make_section(title, *parts, aside=aside)


def _describe_misses(answer: Answer) -> list[str]:
    """How often one of many intervals misses, where each holds in 95 of 100 cases."""
    count = len(answer.rows)
    if "low" not in answer.columns or answer.tables or count < MIN_COUNTED_INTERVALS:
        return []
    return [
        f"Each of these {format_count(count)} intervals misses in up to 5 of 100 cases: with "
        f"independent noise up to {math.ceil(100 * (1 - 0.95**count))} of 100 such tables have one "
        "that misses."
    ]


def _question_words(answer: Answer) -> str:
    """What was asked, as far as the heading does not say it."""
    question = {key: value for key, value in answer.question.items() if key != "where"}
    kind = str(question.get("query", answer.title))
    called = name_question(answer.title, answer.question)
    unnamed = called == name_question(kind, answer.question)
    words = [] if unnamed else [name_question(kind, question)]
    hidden = {"counted", "name", "universe", "prior", "query", "column", "columns", "by"}
    if answer.tables:
        hidden |= {"sets", "ranges"}  # the tables say it themselves
    said = {"within": "asked to be within ±{}, 95% of the time"}
    asked = [(k, v) for k, v in question.items() if k not in hidden and v is not False]
    told = (
        card.describe_flag(key)
        if value is True
        else said.get(key, f"{key} {{}}").format(_question_value(value))
        for key, value in asked
    )
    return ", ".join([*words, *told])


def _question_value(value: Any) -> str:
    """What was asked under a key, in words."""
    if not isinstance(value, list):
        return str(value)
    inner = (" × ".join(map(str, each)) if isinstance(each, list) else each for each in value)
    return " and ".join(map(str, inner))


def _format_optional(value: float | None, digits: int = 6) -> str:
    return "" if value is None else format_general(value, digits)


def describe_inspection(warning: str, findings: Sequence[InspectionFinding]) -> Document:
    """The curator's exact figures about the rows."""
    rows = [(format_count(finding.rows), finding.what) for finding in findings]
    return make_document("", Paragraph(warning, "bad"), make_table((), rows, right=["rows"]))


def describe_demo(
    title: str, plan: Plan, estimates: Sequence[CostEstimate], release: Release, refusal: str
) -> Document:
    """Plan, dry run, release, ledger: what the main job looks like."""
    state = release.budget_state
    steps = (
        make_section(
            "1 plan",
            card.describe_adversary(plan.family),
            f"Whoever that is {plan.target.words()}.",
            f"That takes ε = {format_epsilon(plan.epsilon)} in all ({plan.relation} neighbours).",
            aside="who may be looking, and how sure they may become",
        ),
        make_section(
            "2 dry run",
            estimate_table(plan, estimates),
            aside="cost and error before anything runs",
        ),
        make_section("3 release", aside="debited first, then answered with exact noise"),
    )
    answers = (make_section(answer.title, answer_table(answer)) for answer in release)
    ledger = make_section(
        "4 ledger",
        *card.belief_lines(state)[1:],
        card.history_line(state),
        f"A second session is refused: {refusal}.",
        aside="what all of it together allows anyone to believe",
        level=2,
    )
    chapters = (replace(step, level=2) for step in steps)
    return Document(title, (*chapters, *answers, ledger))


def describe_preflight(found: Preflight) -> list[str]:
    """What the curator's look found, a sentence for each column or condition; not for others."""
    lines = []
    if found.lost:
        share = f"{format_count(found.lost)} of {format_count(found.rows)} rows"
        lines.append(f"{share} have no privacy unit and are dropped")
    for each in found.columns:
        parts = []
        if each.empty:
            parts.append(f"no row has the declared {_list_values(each.empty)}")
        if each.used is not None:
            parts += _describe_range(each)
        elif each.undeclared or (each.empty and each.named):
            named = ", ".join(
                f"{'nothing' if value is None else repr(value)} ({format_count(count)})"
                for value, count in each.named
            )
            share = f"{format_count(each.undeclared)} of {format_count(each.rows)} rows have no"
            share = f"{share} declared value" if each.undeclared else "others have"
            parts.append(f"{share}{': ' if named else ''}{named}")
            if each.misspelt:
                parts.append(describe_misspelt_days(each.misspelt))
        if each.alike:
            alike = (
                f"{value!r} ({format_count(rows)}) is the declared {declared!r}"
                for value, declared, rows in each.alike
            )
            parts.append(
                f"but for letter case or white space {', '.join(alike)}: correct the rows, or "
                "declare these spellings too"
            )
        if parts:
            lines.append(f"{each.column}: {'; '.join(parts)}")
    lines += [
        f"{each.question}: {each.bound} = {each.most} leaves out {_describe_cut(each)}"
        f"{_larger_bounds(each)}"
        for each in found.bounds
    ]
    lines += [
        f"{each.question}: {_small_groups(each)} fewer than {format_count(each.least)} rows that "
        "count, and then the 95% interval is the whole declared range"
        for each in found.groups
    ]
    whole = "the 95% interval will be the whole declared range"
    lines += [f"{title}: {whole}" for title in found.meaningless]
    lines += [
        f"{title}: no row in {periods}: running totals need files that keep the rows of all periods"
        for title, periods in found.missing_periods
    ]
    lines += [accounts.describe_changed_periods(*each) for each in found.changed_periods]
    lines += accounts.describe_unreadable(found)
    lines += [f"where: {each.words}" for each in found.constants]
    return [*lines, *(f"where {text}: true of no row" for text in found.empty_conditions)]


def _describe_cut(look: BoundLook) -> str:
    """Of a total the rows that a bound leaves out, else whose."""
    units = format_percent(look.above / look.units)
    if look.rows:
        rows = f"{format_count(look.lost)} of {format_count(look.rows)} rows"
        return f"{rows} ({format_percent(look.lost / look.rows)}), of {units} of the people"
    what = "groups" if look.bound == "max_groups" else "rows"
    above = f"{format_count(look.above)} of {format_count(look.units)}"
    return f"{what} of {above} privacy units ({units})"


def describe_cuts(looks: Sequence[BoundLook]) -> str:
    """What bounds of one question leave out: "max_groups = 2 leaves out groups of many people"."""
    bounds = " and ".join(f"{each.bound} = {each.most}" for each in looks)
    kinds = " and ".join("groups" if each.bound == "max_groups" else "rows" for each in looks)
    leave = "leaves" if len(looks) == 1 else "leave"
    of_units = f"{kinds} of more than a third of the privacy units"
    of_rows = "more than a quarter of the rows"
    return f"{bounds} {leave} out {of_rows if looks[0].loses_rows else of_units}"


def _larger_bounds(look: BoundLook) -> str:
    """What larger bounds would leave out, until nobody is left out."""
    shares = [(bound, above / (look.rows or look.units)) for bound, above in look.larger]
    shown = [each for at, each in enumerate(shares) if not at or shares[at - 1][1]]
    words = ", ".join(f"{bound}: {format_percent(share)}" for bound, share in shown)
    return f"; with {words}" if words else ""


def _small_groups(look: GroupLook) -> str:
    if look.groups == 1:
        return "there are"
    verb = "has" if look.small == 1 else "have"
    return f"{format_count(look.small)} of {format_count(look.groups)} groups {verb}"


MIN_USED_PART = 0.1
"""The part of a range that its numbers should fill, since noise grows with the whole of it."""


def _describe_range(look: ColumnLook) -> list[str]:
    """What becomes of numbers outside of a range, and whether it is wider than they need."""
    rows, outside = format_count(look.rows), look.undeclared - look.missing
    parts = []
    if look.missing:
        parts.append(f"{format_count(look.missing)} of {rows} rows have no number")
    if outside:
        share = format_percent(outside / look.rows, "up")
        parts.append(f"{format_count(outside)} of {rows} rows ({share}) are outside the range")
    if look.used is not None and look.used < MIN_USED_PART and look.undeclared < look.rows:
        part = format_percent(look.used, "up")
        parts.append(f"the numbers fill {part} of the declared range, and noise grows with it")
    return parts


def _list_values(values: Sequence[object]) -> str:
    shown = ", ".join(map(repr, values[:5]))
    return f"{shown} and {len(values) - 5} more" if len(values) > 5 else shown


def describe_costs(plan: Plan, estimates: Sequence[CostEstimate]) -> str:
    """What a batch promises and spends, in the sentences that ask for it."""
    answers = format_plural(len(estimates), "answer")
    return spending_words(answers, batch_cost(estimates, plan), plan)
