"""Offers and releases as text in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from whosin.calibration import Plan
from whosin.exact import figures
from whosin.ledger.charge import Cost
from whosin.release import Answer, Offer, Release
from whosin.release.answer import cost_data
from whosin.release.noisy_cells import MARK
from whosin.release.queries.base import AMOUNT, NAME, POINT
from whosin.release.scans.checking import Finding
from whosin.release.what_counts import Caution
from whosin.report.budget import cost_words, standing_card
from whosin.report.card import budget_words, failing, who
from whosin.report.numbers import point_words
from whosin.report.printed_tables import print_tables
from whosin.report.table_views import scales_of
from whosin.report.terminal_tables import print_table
from whosin.report.text import print_sections

MOST_SHOWN = 30
MOST_MEASURED = 8


def offer_data(offer: Offer) -> dict[str, Any]:
    """An offer as plain data."""
    data = {
        "title": offer.query.title,
        "question": dict(offer.charge.what),
        "costs": {relation: cost_data(cost) for relation, cost in offer.charge.costs.items()},
        "noise": offer.noise,
        "error": offer.error,
        "within": offer.within,
        "within_words": offer.within_words,
        "cautions": [caution.to_dict() for caution in offer.cautions],
    }
    if offer.tables:
        data |= {"tables": list(offer.tables), "measured": list(offer.measured)}
    if offer.by_weights is not None:
        data |= {"standard_error": offer.standard_error, "by_weights": offer.by_weights}
    return data


def print_offers(
    title: str, plan: Plan, offers: Sequence[Offer], remaining: float | None = None
) -> None:
    """What a batch would cost and how good it would be."""
    console = Console(highlight=False)
    console.print(f"[bold]{escape(title)}[/bold]: a dry run. Nothing is spent, no row is read.")
    promise = [who(plan.family), f"Whoever that is {plan.target.words()}.", *failing(plan)]
    console.print(escape(" ".join(promise)))
    print_table(console, offer_table(plan, offers))
    for offer in offers:
        if offer.within_words:
            console.print(escape(f"{offer.query.title}: {offer.within_words}."))
    for offer in offers:
        if offer.tables:
            console.print(f"\n[bold]{escape(offer.query.title)}[/bold], table by table")
            print_table(console, error_table(offer))
            console.print(f"Measured: {escape(measured_words(offer))}.")
    print_gains(console, offers)
    print_cautions(console, offers)
    if any(offer.charge.alone for offer in offers):
        console.print("Its promise does not add to others: it must be the only release.")
    else:
        total = sum((offer.charge.cost(plan.relation) for offer in offers), Cost(0, 0))
        console.print(f"In all {cost_words(total)} of {budget_words(plan)}.")
    if remaining is not None:
        console.print(f"The dataset has ε = {figures(remaining, 6, 'down')} left in its ledger.")


def print_gains(console: Console, offers: Sequence[Offer]) -> None:
    """By how much the split for the least error helps, and what is measured at once."""
    compared = [offer for offer in offers if offer.by_weights is not None]
    if not compared:
        return
    console.print("\nStandard error of a number, split by weights → optimal")
    table = Table(box=None, padding=(0, 2, 0, 2), show_header=False)
    for offer in compared[:MOST_SHOWN]:
        moved = f"{_short(offer.by_weights)} → {_short(offer.standard_error)}"
        table.add_row(escape(offer.query.title), moved)
    if len(compared) > MOST_SHOWN:
        table.add_row(f"… {len(compared) - MOST_SHOWN} more")
    print_table(console, table)
    for joint in {id(offer.joint): offer.joint for offer in compared if offer.joint}.values():
        titles = escape(joint.query.title)
        console.print(f"Measured at once for {titles}: {escape(measured_words(joint))}.")


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def print_cautions(console: Console, offers: Sequence[Offer]) -> None:
    """What to decide before asking, each once, with the queries that it is about."""
    alike: dict[tuple[str, bool], list[tuple[str, Caution]]] = {}
    for offer in offers:
        for caution in offer.cautions:
            key = caution.about, bool(caution.columns)
            alike.setdefault(key, []).append((offer.query.title, caution))
    for several in alike.values():
        columns = dict.fromkeys(name for _, each in several for name in each.columns)
        words = replace(several[0][1], columns=tuple(columns)).words
        titles = ", ".join(dict.fromkeys(title for title, _ in several))
        about = "" if several[0][1].epsilons else f", {escape(titles)}"
        console.print(f"[yellow]Warning[/yellow]{about}: {escape(words)}.")


def offer_table(plan: Plan, offers: Sequence[Offer]) -> Table:
    """Queries with their costs and expected errors."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("query", "cost", "expected error", "95% within", "noise"):
        table.add_column(name, overflow="fold")
    for offer in offers:
        table.add_row(
            escape(offer.query.title),
            cost_words(offer.charge.cost(plan.relation)),
            _number(offer.error),
            "" if offer.within is None or offer.within_words else f"±{_up(offer.within)}",
            escape(offer.noise),
        )
    return table


def error_table(offer: Offer) -> Table:
    """The tables of an offer with the standard error of a cell of each."""
    table = Table(box=None, padding=(0, 2, 0, 2))
    for name in ("table", "standard error of a cell"):
        table.add_column(name, overflow="fold")
    for each in offer.tables[:MOST_SHOWN]:
        table.add_row(escape(", ".join(each["columns"]) or "total"), error_words(each))
    if len(offer.tables) > MOST_SHOWN:
        table.add_row(f"… {len(offer.tables) - MOST_SHOWN} more")
    return table


def error_words(table: Mapping[str, Any]) -> str:
    """The standard error of a cell; the least and the largest where sums are not equally exact."""
    ends = [_number(table.get(key)) for key in ("least_error", "largest_error")]
    return " to ".join(dict.fromkeys(ends)) if all(ends) else _number(table["standard_error"])


def measured_words(offer: Offer) -> str:
    """What is measured, and with which part of the budget; those with most of it first."""
    word = "epsilon" if "epsilon" in offer.measured[0] else "rho"
    letter = "ε" if word == "epsilon" else "ρ"
    ranked = sorted(offer.measured, key=lambda each: -float(each[word]))
    said = []
    for each in ranked[:MOST_MEASURED]:
        columns = ", ".join(each["columns"]) or "total"
        kind = " (differences)" if each["differences"] else ""
        said.append(f"{columns}{kind} {letter} = {each[word]:.3g}")
    more = len(ranked) - MOST_MEASURED
    return "; ".join(said) + (f"; {more} more" if more > 0 else "")


def print_release(title: str, plan: Plan, release: Release) -> None:
    """Answers with their errors and costs, then what they allow anyone to believe."""
    console = Console(highlight=False)
    console.print(f"[bold]{escape(title)}[/bold]")
    for answer in release:
        paid = cost_words(answer.cost)
        console.print(f"\n[bold]{escape(answer.title)}[/bold]  [dim]{paid}; {answer.noise}[/dim]")
        if answer.tables:
            print_tables(console, answer, release.request)
        else:
            print_table(console, answer_table(answer))
        for said in filter(None, (answer.noisy_note, answer.statement)):
            console.print(Padding(f"[dim]{escape(said)}[/dim]", (0, 0, 0, 2), expand=False))
    console.print()
    print_sections(standing_card(release.standing))


def answer_table(answer: Answer) -> Table:
    """An answer's rows; an interval becomes one column."""
    columns = [name for name in answer.columns if name not in ("low", "high")]
    ranged, scales = "low" in answer.columns, scales_of(answer)
    table = Table(box=None, padding=(0, 2, 0, 2), show_header=True)
    for name in columns:
        table.add_column(escape(name), justify="right" if name == "value" else "left")
    if ranged:
        table.add_column("95% interval")
    for index, row in enumerate(answer.rows[:MOST_SHOWN]):
        data = dict(zip(answer.columns, row, strict=True))
        cells = [cell_words(data[name], scales[name]) for name in columns]
        if any(answer.noisy[index : index + 1]):  # in front, so that digits stay in line
            cells[columns.index("value")] = MARK + cells[columns.index("value")]
        if ranged:
            ends = (cell_words(data[name], scales[name]) for name in ("low", "high"))
            cells.append(" to ".join(ends))
        table.add_row(*(escape(cell) for cell in cells))
    if len(answer.rows) > MOST_SHOWN:
        table.add_row(f"… {len(answer.rows) - MOST_SHOWN} more")
    return table


def _up(value: float) -> str:
    return figures(value, 6, "up")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def cell_words(value: Any, scale: str = AMOUNT) -> str:
    """A value of a cell of an answer.

    Args:
        scale: amounts have commas, points of a column may be years, names stay as they are.
    """
    if value is None:
        return "–"
    if scale == NAME or isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    spec = "" if isinstance(value, int) else ".6g" if abs(value) < 1e6 else ".1f"
    return point_words(value, spec) if scale == POINT else f"{value:,{spec}}"


def print_findings(warning: str, findings: Sequence[Finding]) -> None:
    """The curator's exact figures about the rows."""
    console = Console(highlight=False)
    console.print(f"[red]{warning}[/red]")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(justify="right")
    table.add_column()
    for finding in findings:
        table.add_row(f"{finding.rows:,}", escape(finding.what))
    console.print(table)
