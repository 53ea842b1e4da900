"""Audits in words and pictures.

Contract: a claim is "refuted" or "not refuted", never confirmed; bounds say "at least".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import singledispatch
from typing import Any

from whosin.audit import (
    Audit,
    AuditBounds,
    CurveRun,
    EventCount,
    OneRun,
    Scores,
    SyntheticAudit,
    TrainingAudit,
)
from whosin.beliefs import posterior
from whosin.calibration import Plan
from whosin.errors import InvalidInput
from whosin.exact import exp_up, format_percent, format_typed, rational
from whosin.report.charts import CHART_COLOURS, belief_chart, rows_chart
from whosin.report.document import (
    Document,
    Paragraph,
    Strong,
    Words,
    format_at_least,
    format_count,
    format_fixed,
    format_general,
    list_facts,
    make_document,
)

SHOWN_RATES = (0.1, 0.01, 0.001)
Facts = Iterator[tuple[Words, Words]]


def describe_audit(
    bounds: AuditBounds,
    name: str,
    claim: float | None,
    refuted: bool | None,
    prior: float,
    plan: Plan | None = None,
    *,
    exact: dict[str, float] | None = None,
    undecided: str | None = None,
) -> Document:
    """The bounds, the witness and what becomes of the claim."""
    confidence = f", with {format_general(bounds.confidence)} confidence"
    facts = [*_bound_facts(bounds, exact), _belief_fact(bounds, claim, prior, plan)]
    notes = [f"Note: {each}." for each in getattr(bounds, "notes", ())]
    if plan is not None:
        notes.append(f"The plan: whoever is looking {plan.target.words()}.")
    return make_document(
        "",
        Paragraph((Strong(f"What {name} leaks"), confidence)),
        list_facts(*facts, *_list_counts(bounds)),
        *notes,
        *([] if claim is None else _claim_lines(bounds, claim, refuted, undecided)),
    )


def _bound_facts(bounds: AuditBounds, exact: dict[str, float] | None) -> Facts:
    delta = f" (granting δ = {format_general(bounds.delta)})" if bounds.delta else ""
    yield "ε", (Strong(f"at least {format_at_least(bounds.epsilon)}"), delta)
    if exact is not None:
        yield "", f"{format_fixed(exact['pair'], 4)} by computation, for these inputs"
        most = format_fixed(exact["epsilon"], 4)
        yield "", f"{most} by computation, over all neighbouring inputs"
    if bounds.epsilon == 0:
        yield "", "nothing was shown"
    yield "a small belief", f"grows at least × {format_at_least(bounds.gamma)}"


def _belief_fact(
    bounds: AuditBounds, claim: float | None, prior: float, plan: Plan | None
) -> tuple[str, str]:
    promised = ""
    if plan is not None and claim is not None:
        most = format_percent(posterior(exp_up(min(claim, 700.0)), rational(prior)), "up")
        promised = f" (the plan: to at most {most}{', but for δ' if bounds.delta else ''})"
    after = format_percent(bounds.posterior(prior), "down")
    return f"from {format_percent(prior, 'up')}", f"to at least {after} sure{promised}"


def _claim_lines(
    bounds: AuditBounds, claim: float, refuted: bool | None, undecided: str | None
) -> Iterator[Paragraph]:
    delta = f", δ = {format_general(bounds.delta)}" if bounds.delta else ""
    said = f"The claim ε ≤ {_format_claim(claim, refuted)}{delta} is"
    if refuted:
        by = "these guesses" if isinstance(bounds, TrainingAudit | OneRun) else "this event"
        yield Paragraph((f"{said} ", Strong("refuted"), f" by {by}."))
    elif undecided is not None:
        yield Paragraph(f"{said} undecided: {undecided}.")
    else:
        yield Paragraph(
            f"{said} not refuted. That is no proof of privacy: other inputs, events or more "
            "samples may show more."
        )
        needed = bounds.samples_to_refute(claim) if isinstance(bounds, Audit) else None
        if needed is not None:
            power = 10 ** (len(str(needed)) - 1)
            rounded = format_count(math.ceil(needed / power) * power)
            yield Paragraph(
                f"The frequencies seen speak against it; about {rounded} samples may tell."
            )


@singledispatch
def _list_counts(bounds: AuditBounds) -> Facts:
    """What this kind of audit counted."""
    return iter(())


@_list_counts.register
def _(audit: Audit) -> Facts:
    if audit.pattern is not None:
        yield "inputs", str(audit.pattern)
    yield "with", _format_value(audit.with_)
    yield "without", _format_value(audit.without)
    if audit.epsilon > 0:
        yield from _event_facts(audit.counts)
    if not audit.float_bits:
        yield "floats", "apart from their bits"
    if audit.timing:
        yield "time", "counts as a part of each output: so long did its call take"
    yield "samples", f"{audit.samples:,} of each input, all stages together"


def _event_facts(counts: tuple[EventCount, ...]) -> Facts:
    for index, count in enumerate(counts):
        yield _event_label(index, count, len(counts)), str(count.event)
        for side, hits, trials in (
            ("with", count.with_hits, count.trials),
            ("without", count.without_hits, count.others),
        ):
            seen = f"{hits:,} of {trials:,} fresh draws {side} ({hits / trials:.4g})"
            yield "", seen


def _event_label(index: int, count: EventCount, of: int) -> str:
    """The first event is that of ε; only one that favours "with" speaks of γ."""
    if of == 1 or (index == 0 and not count.event.above):
        return "event"
    if not count.event.above:
        return "other event"
    return "event, also for γ" if index == 0 else "event for γ"


REPLACED_SENTENCE = (
    "someone in the data, or another in their place: a claim for add-remove allows 2ε"
)


@_list_counts.register
def _(scores: Scores) -> Facts:
    yield "neighbours", REPLACED_SENTENCE
    if scores.epsilon > 0:
        yield from _event_facts(scores.counts)
    for fpr in SHOWN_RATES:
        try:
            rate = scores.tpr_at(fpr)
        except InvalidInput:
            yield f"TPR at {fpr:g} FPR", "too few non-members to tell"
            continue
        words = f"{rate.tpr:.4f} (between {rate.low:.4f} and {rate.high:.4f})"
        yield f"TPR at {fpr:g} FPR", words


@_list_counts.register
def _(audit: SyntheticAudit) -> Facts:
    rows = len(audit.membership.members), len(audit.membership.non_members)
    yield "rows", f"{rows[0]:,} behind the table, {rows[1]:,} others"
    yield "neighbours", REPLACED_SENTENCE
    yield "columns", f"{audit.numbers} of numbers, {audit.words} of words"
    yield "score", f"{audit.score}, the best of several, which is paid for"
    for risk in audit.risks:
        if not risk.trials:
            yield risk.name, "nothing to guess by"
            continue
        words = f"{risk.hits} of {risk.trials} guesses, {risk.control_hits} on others"
        of = "" if risk.column is None else f" of {risk.column}"
        yield risk.name + of, f"{words}: a risk of at least {format_percent(risk.low, 'down')}"
    verdict = "would pass" if audit.closest_passes else "would not pass"
    words = f"{audit.closest[0]:.4g}, of others {audit.closest[1]:.4g}: {verdict}"
    yield "closest record", f"{words}, which proves nothing"


@_list_counts.register
def _(audit: TrainingAudit) -> Facts:
    kind = "" if audit.kind == "rows" else f" ({audit.kind})"
    yield "canaries", f"{audit.canaries:,}{kind}, each in with probability 1/2"
    failed = f"; {audit.failed} fits failed" if audit.failed else ""
    yield "trainings", f"{audit.runs} attacked, {audit.shadows} shadows{failed}"
    yield "attack", f"{audit.attack}, chosen on the shadows" if audit.shadows else "plain"
    yield from _guess_facts(audit.run)
    for fpr, tpr in audit.seen:
        yield f"TPR at {fpr:g} FPR", f"{tpr:.4f} as seen"


@_list_counts.register
def _(run: OneRun) -> Facts:
    low, high = run.rates
    yield "canaries", f"{run.canaries:,}"
    rates = f"declared {run.rate:g}; the inclusion bits leave {low:.3g} to {high:.3g}"
    if low < high:
        yield "rate of inclusion", rates
    else:
        yield "rate of inclusion", f"{run.rate:g}, known"
    yield from _guess_facts(run)


def _guess_facts(run: OneRun) -> Facts:
    sides = ("guesses", run.both), ("in guesses", run.inside), ("out guesses", run.outside)
    for label, guesses in sides:
        if not guesses.tried:
            yield label, "none: no scores stand apart from the others"
            continue
        most = max(
            zip(guesses.tried, guesses.right, strict=True),
            key=lambda pair: (pair[1] - pair[0] / 2) / math.sqrt(pair[0]),
        )
        yield label, f"of the {most[0]:,} surest {most[1]:,} were right"


def describe_curve_run(
    run: CurveRun, claim: float | None, refuted: bool | None, undecided: str | None
) -> Document:
    """A bound on μ, and what becomes of a claim."""
    said: Words = f"The claim μ ≤ {_format_claim(claim or 0.0, refuted)} is"
    if refuted:
        said = (f"{said} ", Strong("refuted"), ".")
    elif undecided is not None:
        said = f"{said} undecided: {undecided}."
    else:
        said = f"{said} not refuted, which is no proof of privacy."
    confidence = f", with {run.confidence:.6g} confidence"
    return make_document(
        "",
        Paragraph((Strong("What the run leaks"), confidence)),
        list_facts(*_curve_facts(run)),
        *([] if claim is None else [Paragraph(said)]),
    )


def _curve_facts(run: CurveRun) -> Facts:
    yield "μ", (Strong(f"at least {format_at_least(run.mu)}"),)
    for delta in (1e-5, 1e-6):
        least = format_at_least(run.epsilon(delta))
        yield "", f"ε at least {least} at δ = {delta:g}, if Gaussian"
    chosen = format_count(run.chosen_on)
    yield "canaries", f"{run.canaries:,}, of which {chosen} chose the guesses"
    side = {"both": "in or out", "in": "in", "out": "out"}[run.test.side]
    tried, right = format_count(run.test.tried), format_count(run.test.right)
    yield "guesses", f"of the {tried} surest ({side}) {right} were right"


def _format_value(value: object) -> str:
    if isinstance(value, frozenset):
        return ", ".join(sorted(str(who) for who in value)) or "nobody"
    text = str(value)
    return text if len(text) <= 200 else text[:197] + "…"


def _format_claim(claim: float, refuted: bool | None) -> str:
    """A claim with the digits that it was given; what is refuted is not said larger."""
    return format_typed(claim, "down" if refuted else "up")


def audit_chart(bounds: AuditBounds, claim: float | None) -> Any:
    """Rates for scores; otherwise posterior against prior, as claimed and as shown."""
    if isinstance(bounds, Scores):
        return rate_chart(bounds)
    curves: list[Any] = []
    if claim is not None:
        allowed = math.exp(min(claim, 700.0))
        name = f"what the claim ε = {claim:.4g} allows"
        curves.append(("+", name, lambda p: float(posterior(allowed, p))))
    curves.append(("·", "before", lambda p: p))
    label = f"shown by the audit, at {format_percent(bounds.confidence)} confidence: at least"
    curves.append(("●", label, lambda p: bounds.posterior(p)))
    return belief_chart(curves, (0.0, 1.0), "How sure someone can become")


def rate_chart(scores: Scores) -> Any:
    """True against false positive rates on logarithmic axes, with bounds that hold together."""
    import altair

    rows = [
        {"fpr": rate.fpr, "low": rate.low, "tpr": rate.tpr, "high": rate.high}
        for rate in scores.curve()
    ]
    floor = min(row["fpr"] for row in rows) / 2
    for row in rows:
        row.update({key: max(row[key], floor) for key in ("low", "tpr", "high")})
    scale = altair.Scale(type="log", domain=[floor, 1.0])
    x = altair.X("fpr:Q", title="false positive rate, at most", scale=scale)
    base = rows_chart(rows)
    y_title = "true positive rate"
    band = base.mark_area(opacity=0.2, color=CHART_COLOURS[0]).encode(
        x=x, y=altair.Y("low:Q", title=y_title, scale=scale), y2="high:Q"
    )
    line = base.mark_line(strokeWidth=2.5, color=CHART_COLOURS[0], point=True).encode(
        x=x, y=altair.Y("tpr:Q", scale=scale, title=y_title)
    )
    ends = rows_chart([{"fpr": floor, "tpr": floor}, {"fpr": 1, "tpr": 1}])
    guess = ends.mark_line(strokeDash=[5, 4], color=CHART_COLOURS[3]).encode(
        x=x, y=altair.Y("tpr:Q", scale=scale, title=y_title)
    )
    title = f"An attack on {len(scores.members):,} members and {len(scores.non_members):,} others"
    sure = format_percent(scores.confidence)
    subtitle = f"bounds hold together with {sure} confidence; dashed: guessing"
    return altair.layer(band, guess, line).properties(
        title=altair.Title(title, subtitle=subtitle), width=460, height=360
    )
