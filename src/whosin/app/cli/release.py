"""`whosin release`: answer the questions of a scenario, each debited before it is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from whosin.release import Release, Session
    from whosin.release.scenario import Scenario


def release(
    scenario: Annotated[Path, typer.Argument(help="A scenario file (TOML).")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show costs and expected errors; spend nothing.")
    ] = False,
    ledger: Annotated[
        str | None, typer.Option(help="Another ledger: a file, or postgresql://…")
    ] = None,
    request: Annotated[
        str | None, typer.Option(help="Continue an interrupted release under its id.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a report for people: out.html.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write the answers: x.json, x.csv or x.parquet.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Release the answers of a scenario: whom it protects from whom, the table, the questions.

    Everything is checked before a row is read. With several answers, --save x.csv writes one file
    for each.
    """
    from whosin.app.cli.output import print_json
    from whosin.report import answers, html, releases

    answers.check_path(save)
    html.check_path(report)
    found = _load(scenario)
    if dry_run:
        offers = found.price()
        left = _left(ledger if ledger is not None else found.ledger, found)
        if json:
            data = [releases.offer_data(offer) for offer in offers]
            print_json({"title": found.title, "remaining_epsilon": left, "offers": data})
        else:
            releases.print_offers(found.title, found.plan, offers, left)
        return
    made = _run(found.open_session(ledger, request), found, quiet=json)
    if save is not None:
        answers.save(made, save)
    if report is not None:
        html.save_report(found.title, found.plan, made, report)
    if json:
        print_json({"title": found.title, **made.to_dict(), "plan": found.plan.to_dict()})
    else:
        releases.print_release(found.title, found.plan, made)


def _load(path: Path) -> Scenario:
    from whosin.release.scenario import load_scenario

    return load_scenario(path)


def _left(ledger: str, scenario: Scenario) -> float | None:
    """What the dataset has left in its ledger, if it is there: a dry run makes nothing."""
    from whosin.ledger import Ledger

    if "://" not in ledger and not Path(ledger).exists():
        return None
    name = scenario.dataset or scenario.open_table().name
    with Ledger(ledger, create=False) as opened:
        return opened.standing(name).spendable if name in opened.datasets() else None


def _run(session: Session, scenario: Scenario, *, quiet: bool) -> Release:
    """Release with a progress bar for each scan, on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from whosin.errors import Interrupted

    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    )
    with bar:

        def watch(title: str) -> Callable[[float], None]:
            task = bar.add_task(title, total=1.0)
            return lambda share: bar.update(task, completed=share)

        try:
            return session.release(scenario.queries, watch=watch, **scenario.budget)
        except KeyboardInterrupt as stop:
            raise Interrupted(str(stop) or "interrupted: nothing was spent") from None
