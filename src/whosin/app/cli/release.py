"""`whosin release`: answer the questions of a scenario, each debited before it is shown."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from whosin.release import Release
    from whosin.release.scenario import Scenario


class StoppedWriting(OSError):
    """A file or the output could not be written after the answers were paid for."""


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
    amend: Annotated[
        bool,
        typer.Option(
            "--amend",
            help="Go on under the same budget with another file, other domains or bounds.",
        ),
    ] = False,
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
            tables = [each for offer in offers for each in offer.tables]
            said: dict[str, object] = {"tables": tables} if tables else {}
            print_json({"title": found.title, "remaining_epsilon": left, "offers": data, **said})
        else:
            releases.print_offers(found.title, found.plan, offers, left)
        return
    made = _run(found, ledger, request, amend=amend, quiet=json)
    with _naming(made.request):
        if save is not None:
            answers.save(made, save)
        if report is not None:
            html.save_report(found.title, found.plan, made, report)
        if json:
            print_json({"title": found.title, **made.to_dict(), "plan": found.plan.to_dict()})
        else:
            releases.print_release(found.title, found.plan, made)
        sys.stdout.flush()


@contextmanager
def _naming(request: str) -> Iterator[None]:
    """Whatever keeps answers from being shown, they are stored, and their request shows them."""
    from whosin.errors import Interrupted

    again = f"the answers are stored, and --request {request} shows them without paying again"
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{Path(str(error.filename)).name}: " if error.filename else ""
        raise StoppedWriting(f"{where}{(error.strerror or str(error)).lower()}; {again}") from None
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {again}") from None
    except Exception as error:
        print(f"whosin: {again}", file=sys.stderr)
        raise error from None


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


def _run(
    scenario: Scenario, ledger: str | None, request: str | None, *, amend: bool, quiet: bool
) -> Release:
    """Release with a progress bar for each scan, on standard error, and what is to be noted."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from whosin.app.cli.output import warn
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
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the notes say it
                session = scenario.open_session(ledger, request, amend=amend)
            made = session.release(scenario.queries, watch=watch, **scenario.budget)
        except KeyboardInterrupt as stop:
            raise Interrupted(str(stop) or "interrupted: nothing was spent") from None
    for note in session.notes:
        warn(note)
    return made
