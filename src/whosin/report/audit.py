"""Audits in words and pictures.

Contract: a claim is "refuted" or "not refuted", never confirmed; bounds say "at least".
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

from rich.console import Console
from rich.table import Table

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
from whosin.beliefs import format_percent, posterior
from whosin.calibration import Plan
from whosin.errors import InvalidInput
from whosin.exact import exp_up, format_typed, rational
from whosin.report.charts import CHART_COLOURS, belief_chart, rows_chart
from whosin.report.terminal import facts_table, printable_name

SHOWN_RATES = (0.1, 0.01, 0.001)


def print_audit(
    bounds: AuditBounds,
    name: str,
    claim: float | None,
    refuted: bool | None,
    prior: float,
    plan: Plan | None = None,
    *,
    exact: dict[str, float] | None = None,
    undecided: str | None = None,
) -> None:
    """The bounds, the witness and what becomes of the claim."""
    console = Console(highlight=False)
    console.print(
        f"[bold]What {printable_name(name)} leaks[/bold], with {bounds.confidence:.6g} confidence",
        soft_wrap=True,
    )
    table = facts_table()
    delta = f" (granting δ = {bounds.delta:g})" if bounds.delta else ""
    table.add_row("ε", f"[bold]at least {_format_down(bounds.epsilon)}[/bold]{delta}")
    if exact is not None:
        table.add_row("", f"{_format_digits(exact['pair'])} by computation, for these inputs")
        table.add_row(
            "", f"{_format_digits(exact['epsilon'])} by computation, over all neighbouring inputs"
        )
    if bounds.epsilon == 0:
        table.add_row("", "nothing was shown")
    table.add_row("a small belief", f"grows at least × {_format_down(bounds.gamma)}")
    after = format_percent(bounds.posterior(prior), "down")
    promised = ""
    if plan is not None and claim is not None:
        most = format_percent(posterior(exp_up(min(claim, 700.0)), rational(prior)), "up")
        promised = f" (the plan: to at most {most}, but for δ)" if bounds.delta else ""
        promised = promised or f" (the plan: to at most {most})"
    table.add_row(f"from {format_percent(prior, 'up')}", f"to at least {after} sure{promised}")
    _rows(bounds, table)
    console.print(table)
    for note in getattr(bounds, "notes", ()):
        console.print(f"Note: {note}.")
    if plan is not None:
        console.print(f"The plan: whoever is looking {plan.target.words()}.")
    if claim is not None:
        claimed = f"ε ≤ {_format_claim(claim, refuted)}" + (
            f", δ = {bounds.delta:g}" if bounds.delta else ""
        )
        if refuted:
            by = "these guesses" if isinstance(bounds, TrainingAudit | OneRun) else "this event"
            console.print(f"The claim {claimed} is [bold]refuted[/bold] by {by}.")
        elif undecided is not None:
            console.print(f"The claim {claimed} is undecided: {undecided}.", soft_wrap=True)
        else:
            console.print(
                f"The claim {claimed} is not refuted. That is no proof of privacy: other inputs, "
                "events or more samples may show more.",
                soft_wrap=True,
            )
            needed = bounds.samples_to_refute(claim) if isinstance(bounds, Audit) else None
            if needed is not None:
                power = 10 ** (len(str(needed)) - 1)
                rounded = math.ceil(needed / power) * power
                console.print(
                    f"The frequencies seen speak against it; about {rounded:,} samples may tell.",
                    soft_wrap=True,
                )


@singledispatch
def _rows(bounds: AuditBounds, table: Table) -> None:
    """What this kind of audit counted."""


@_rows.register
def _(audit: Audit, table: Table) -> None:
    if audit.pattern is not None:
        table.add_row("inputs", printable_name(audit.pattern))
    table.add_row("with", _format_value(audit.with_))
    table.add_row("without", _format_value(audit.without))
    if audit.epsilon > 0:
        _rows_of_counts(table, audit.counts)
    if not audit.float_bits:
        table.add_row("floats", "apart from their bits")
    if audit.timing:
        table.add_row("time", "counts as a part of each output: so long did its call take")
    table.add_row("samples", f"{audit.samples:,} of each input, all stages together")


def _rows_of_counts(table: Table, counts: tuple[EventCount, ...]) -> None:
    for index, count in enumerate(counts):
        table.add_row(_event_label(index, count, len(counts)), printable_name(count.event))
        for side, hits, trials in (
            ("with", count.with_hits, count.trials),
            ("without", count.without_hits, count.others),
        ):
            seen = f"{hits:,} of {trials:,} fresh draws {side} ({hits / trials:.4g})"
            table.add_row("", seen)


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


@_rows.register
def _(scores: Scores, table: Table) -> None:
    table.add_row("neighbours", REPLACED_SENTENCE)
    if scores.epsilon > 0:
        _rows_of_counts(table, scores.counts)
    for fpr in SHOWN_RATES:
        try:
            rate = scores.tpr_at(fpr)
        except InvalidInput:
            table.add_row(f"TPR at {fpr:g} FPR", "too few non-members to tell")
            continue
        words = f"{rate.tpr:.4f} (between {rate.low:.4f} and {rate.high:.4f})"
        table.add_row(f"TPR at {fpr:g} FPR", words)


@_rows.register
def _(audit: SyntheticAudit, table: Table) -> None:
    rows = len(audit.membership.members), len(audit.membership.non_members)
    table.add_row("rows", f"{rows[0]:,} behind the table, {rows[1]:,} others")
    table.add_row("neighbours", REPLACED_SENTENCE)
    table.add_row("columns", f"{audit.numbers} of numbers, {audit.words} of words")
    table.add_row("score", f"{audit.score}, the best of several, which is paid for")
    for risk in audit.risks:
        if not risk.trials:
            table.add_row(risk.name, "nothing to guess by")
            continue
        words = f"{risk.hits} of {risk.trials} guesses, {risk.control_hits} on others"
        of = "" if risk.column is None else f" of {printable_name(risk.column)}"
        table.add_row(
            risk.name + of, f"{words}: a risk of at least {format_percent(risk.low, 'down')}"
        )
    verdict = "would pass" if audit.closest_passes else "would not pass"
    words = f"{audit.closest[0]:.4g}, of others {audit.closest[1]:.4g}: {verdict}"
    table.add_row("closest record", f"{words}, which proves nothing")


@_rows.register
def _(audit: TrainingAudit, table: Table) -> None:
    kind = "" if audit.kind == "rows" else f" ({audit.kind})"
    table.add_row("canaries", f"{audit.canaries:,}{kind}, each in with probability 1/2")
    failed = f"; {audit.failed} fits failed" if audit.failed else ""
    table.add_row("trainings", f"{audit.runs} attacked, {audit.shadows} shadows{failed}")
    table.add_row("attack", f"{audit.attack}, chosen on the shadows" if audit.shadows else "plain")
    _guess_rows(audit.run, table)
    for fpr, tpr in audit.seen:
        table.add_row(f"TPR at {fpr:g} FPR", f"{tpr:.4f} as seen")


@_rows.register
def _(run: OneRun, table: Table) -> None:
    low, high = run.rates
    table.add_row("canaries", f"{run.canaries:,}")
    rates = f"declared {run.rate:.6g}; the inclusion bits leave {low:.3g} to {high:.3g}"
    if low < high:
        table.add_row("rate of inclusion", rates)
    else:
        table.add_row("rate of inclusion", f"{run.rate:.6g}, known")
    _guess_rows(run, table)


def _guess_rows(run: OneRun, table: Table) -> None:
    sides = ("guesses", run.both), ("in guesses", run.inside), ("out guesses", run.outside)
    for label, guesses in sides:
        if not guesses.tried:
            table.add_row(label, "none: no scores stand apart from the others")
            continue
        most = max(
            zip(guesses.tried, guesses.right, strict=True),
            key=lambda pair: (pair[1] - pair[0] / 2) / math.sqrt(pair[0]),
        )
        table.add_row(label, f"of the {most[0]:,} surest {most[1]:,} were right")


def print_curve_run(
    run: CurveRun, claim: float | None, refuted: bool | None, undecided: str | None
) -> None:
    """A bound on μ, and what becomes of a claim."""
    console = Console(highlight=False)
    console.print(f"[bold]What the run leaks[/bold], with {run.confidence:.6g} confidence")
    table = facts_table()
    table.add_row("μ", f"[bold]at least {_format_down(run.mu)}[/bold]")
    for delta in (1e-5, 1e-6):
        table.add_row(
            "", f"ε at least {_format_down(run.epsilon(delta))} at δ = {delta:g}, if Gaussian"
        )
    table.add_row("canaries", f"{run.canaries:,}, of which {run.chosen_on:,} chose the guesses")
    sides = {"both": "in or out", "in": "in", "out": "out"}
    words = (
        f"of the {run.test.tried:,} surest ({sides[run.test.side]}) {run.test.right:,} were right"
    )
    table.add_row("guesses", words)
    console.print(table)
    if claim is None:
        return
    said = f"The claim μ ≤ {_format_claim(claim, refuted)} is"
    if refuted:
        console.print(f"{said} [bold]refuted[/bold].")
    elif undecided is not None:
        console.print(f"{said} undecided: {undecided}.", soft_wrap=True)
    else:
        console.print(f"{said} not refuted, which is no proof of privacy.")


def _format_value(value: object) -> str:
    if isinstance(value, frozenset):
        return ", ".join(sorted(printable_name(who) for who in value)) or "nobody"
    text = printable_name(value)
    return text if len(text) <= 200 else text[:197] + "…"


def _format_claim(claim: float, refuted: bool | None) -> str:
    """A claim with the digits that it was given; what is refuted is not said larger."""
    return format_typed(claim, "down" if refuted else "up")


def _format_down(value: float) -> str:
    """Four digits after the point, rounded down."""
    return "∞" if value == math.inf else f"{math.floor(value * 10_000) / 10_000:.4f}"


def _format_digits(value: float) -> str:
    return "∞" if value == math.inf else f"{value:.4f}"


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
    label = f"shown by the audit, at {bounds.confidence:.0%} confidence: at least"
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
    subtitle = f"bounds hold together with {scores.confidence:.0%} confidence; dashed: guessing"
    return altair.layer(band, guess, line).properties(
        title=altair.Title(title, subtitle=subtitle), width=460, height=360
    )
