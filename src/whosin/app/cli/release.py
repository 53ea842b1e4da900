"""`whosin release`, `whosin sql` and `whosin inspect`: answers from a scenario, and its table."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli.options import (
    Json,
    ScenarioFile,
    print_json,
    print_result,
    print_warning,
    progress_bar,
)
from whosin.errors import EmptyLedger, Interrupted, InvalidInput

if TYPE_CHECKING:
    from whosin.release import Release
    from whosin.release.scenario import Scenario


class StoppedWriting(OSError):
    """A file or the output could not be written after the answers were paid for."""


DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show costs and expected errors; spend nothing.")
]
OtherLedger = Annotated[
    str | None, typer.Option("--ledger", help="Another ledger: a file, or postgresql://…")
]
Continued = Annotated[
    str | None, typer.Option("--request", help="Continue an interrupted release under its id.")
]
Amend = Annotated[
    bool, typer.Option("--amend", help="Go on with another file, other domains or bounds.")
]
ReportFile = Annotated[
    Path | None, typer.Option("--report", help="Write a report for people: out.html.")
]
Save = Annotated[
    Path | None, typer.Option("--save", help="Write the answers: x.json, x.csv or x.parquet.")
]


def release(
    scenario: ScenarioFile,
    dry_run: DryRun = False,
    ledger: OtherLedger = None,
    request: Continued = None,
    amend: Amend = False,
    report: ReportFile = None,
    save: Save = None,
    json: Json = False,
) -> None:
    """Release the answers of a scenario: whom it protects from whom, the table, the questions.

    Everything is checked before a row is read. With several answers, --save x.csv writes one file
    for each.
    """
    from whosin.release.scenario import load_scenario

    check_paths(save, report)
    loaded = load_scenario(scenario)
    if dry_run:
        show_estimate(loaded, ledger, json)
    else:
        show_answers(loaded, ledger, request, amend, report, save, json)


def check_paths(save: Path | None, report: Path | None) -> None:
    """Whether answers and report can be written there."""
    if save is not None:
        from whosin.report import table_views

        table_views.check_path(save)
    if report is not None:
        from whosin.report import html

        html.check_path(report)


def show_estimate(loaded: Scenario, ledger: str | None, json: bool) -> None:
    """What a scenario costs; nothing is spent."""
    from whosin.report import releases

    title, plan, estimates = loaded.title, loaded.plan, loaded.estimate_cost()
    left = _budget_left(ledger if ledger is not None else loaded.ledger, loaded)
    listed = [releases.estimate_data(estimate) for estimate in estimates]
    data: dict[str, Any] = {
        "title": title,
        "epsilon": plan.epsilon,
        "delta": plan.dp_delta,
        "remaining_epsilon": left,
        "estimates": listed,
    }
    if tables := [each for estimate in estimates for each in estimate.tables]:
        data["tables"] = tables
    print_result(json, data, releases.describe_estimates, title, plan, estimates, left)


def show_answers(
    loaded: Scenario,
    ledger: str | None,
    request: str | None,
    amend: bool,
    report: Path | None,
    save: Path | None,
    json: bool,
) -> None:
    """Answer a scenario, write what was asked for, and print the answers."""
    from whosin.report import releases, table_views
    from whosin.report.terminal import print_document

    title, plan = loaded.title, loaded.plan
    answered = _run_release(loaded, ledger, request, amend=amend, quiet=json)
    with _naming(answered.request):
        if save is not None:
            table_views.save_answers(answered, save)
        if report is not None:
            from whosin.report import html

            html.save_report(title, plan, answered, report)
        if json:
            print_json({"title": title, **answered.to_dict(), "plan": plan.to_dict()})
        else:
            print_document(releases.describe_release(title, answered))
        sys.stdout.flush()


@contextmanager
def _naming(request: str) -> Iterator[None]:
    """If something keeps answers from being shown, say that they are stored and how to see them."""
    again = f"the answers are stored, and --request {request} shows them without paying again"
    try:
        yield
    except BrokenPipeError:
        raise
    except InvalidInput as error:  # something took a file's place meanwhile
        raise StoppedWriting(f"{error}; {again}") from None
    except OSError as error:
        where = f"{Path(str(error.filename)).name}: " if error.filename else ""
        raise StoppedWriting(f"{where}{(error.strerror or str(error)).lower()}; {again}") from None
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {again}") from None
    except Exception as error:
        print(f"whosin: {again}", file=sys.stderr)
        raise error from None


def _budget_left(ledger: str, scenario: Scenario) -> float | None:
    """What the dataset has left in its ledger, if it is there: a dry run makes nothing."""
    from whosin.ledger import Ledger

    if "://" not in ledger and not Path(ledger).exists():
        return None
    name = scenario.dataset or scenario.open_table().name
    try:
        with Ledger(ledger, create=False) as opened:
            return opened.budget_state(name).spendable if name in opened.datasets() else None
    except EmptyLedger:
        return None


def _run_release(
    scenario: Scenario, ledger: str | None, request: str | None, *, amend: bool, quiet: bool
) -> Release:
    """Release with a progress bar for each scan, on standard error, and what is to be noted."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with progress_bar(*columns, quiet=quiet) as bar:

        def watch(title: str) -> Callable[[float], None]:
            task = bar.add_task(title, total=1.0)
            return lambda share: bar.update(task, completed=share)

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the notes say it
                session = scenario.open_session(ledger, request, amend=amend)
            if request is not None and not session.continues:
                said = f"there is no request {session.request!r} yet: this is a new one"
                print(f"whosin: {said}", file=sys.stderr)
            with session:
                answered = scenario.release(session, watch)
        except KeyboardInterrupt as stop:
            raise Interrupted(str(stop) or "interrupted: nothing was spent") from None
    for note in session.notes:
        print_warning(note)
    return answered


def inspect(scenario: ScenarioFile, json: Json = False) -> None:
    """Say what a scenario's policies would drop, clamp or call "other". Not for publication."""
    from whosin.release.inspection import CURATOR_NOTE, check_table
    from whosin.release.scenario import load_scenario
    from whosin.report.releases import describe_inspection

    loaded = load_scenario(scenario, asked=None)  # one made for `whosin sql` has no queries
    asked = [query.where for query in loaded.queries if query.where is not None]
    table = loaded.open_table()
    findings = check_table(table, list(dict.fromkeys(asked)), loaded.contribution_policies(table))
    figures = [vars(finding) for finding in findings]
    data = {"private": True, "warning": CURATOR_NOTE, "findings": figures}
    print_result(json, data, describe_inspection, CURATOR_NOTE, findings)


def sql(
    scenario: ScenarioFile,
    select: Annotated[str, typer.Argument(metavar="SELECT", help="One SELECT from its table.")],
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the scenario that it becomes; ask nothing.")
    ] = False,
    share: Annotated[
        str | None, typer.Option(help="The part of the plan's budget for this, such as 1/10.")
    ] = None,
    dry_run: DryRun = False,
    ledger: OtherLedger = None,
    request: Continued = None,
    amend: Amend = False,
    report: ReportFile = None,
    save: Save = None,
    json: Json = False,
) -> None:
    """Ask a scenario's table in SQL: SELECT ward, COUNT(*) FROM visits GROUP BY ward.

    Each aggregate becomes a question, debited and answered as `whosin release` does; the
    scenario's own questions are not asked. What no question answers is refused by name.
    """
    from whosin.documents import toml_text
    from whosin.release.scenario import load_scenario

    check_paths(save, report)
    loaded = load_scenario(scenario, asked=False)
    if share is not None:
        loaded = replace(loaded, budget={**loaded.budget, "share": share})
    loaded = loaded.asking(select)
    if explain:
        data = _sql_scenario(scenario, loaded)
        print_json(data) if json else print(toml_text(data), end="")
    elif dry_run:
        show_estimate(loaded, ledger, json)
    else:
        show_answers(loaded, ledger, request, amend, report, save, json)


def _sql_scenario(path: Path, loaded: Scenario) -> dict[str, Any]:
    """The file's own keys, with the queries that SQL asked instead of its own."""
    from whosin.documents import read_toml
    from whosin.release.queries.base import scenario_keys

    data = {key: value for key, value in read_toml(path, path.name).items() if key != "queries"}
    if loaded.budget:
        data["budget"] = dict(loaded.budget)
    return {**data, "queries": [scenario_keys(query) for query in loaded.queries]}
