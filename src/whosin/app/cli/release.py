"""`whosin release`, `sql`, `draft`, `inspect` and `demo`: answers from a scenario."""

from __future__ import annotations

import glob
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shlex import quote
from shutil import which
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli.main import (
    Again,
    Continues,
    Json,
    NewPeople,
    ReportFile,
    ReportReader,
    Save,
    ScenarioFile,
    Yes,
    can_ask,
    confirm_spending,
    print_json,
    print_result,
    print_warning,
    progress_bar,
)
from whosin.errors import BudgetRefused, Interrupted, InvalidInput, UnknownName, require_extras
from whosin.plain_files import require_new_file, write_file

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
NoPreflight = Annotated[
    bool, typer.Option("--no-preflight", help="Skip the look at the rows before it pays.")
]


def release(
    scenario: ScenarioFile,
    dry_run: DryRun = False,
    ledger: OtherLedger = None,
    request: Continued = None,
    amend: Amend = False,
    continues: Continues = None,
    new_people: NewPeople = False,
    again: Again = False,
    no_preflight: NoPreflight = False,
    yes: Yes = False,
    report: ReportFile = None,
    reader: ReportReader = None,
    save: Save = None,
    json: Json = False,
) -> None:
    """Release the answers of a scenario: whom it protects from whom, the table, the questions.

    Before it pays it looks at the rows, for the curator alone: a declared category that no row has,
    a column that is mostly undeclared or a condition that is never true stops it; bounds that cut
    many people are asked about. With several answers, --save x.csv writes one file for each.
    """
    from whosin.release.scenario import load_scenario

    check_paths(save, report, reader)
    if dry_run:
        refuse_files(save, report)
    loaded = load_scenario(scenario, ledger=ledger)
    if continues is not None:
        loaded = replace(loaded, dataset=continues)
    if dry_run:
        if continues is not None:
            require_dataset(loaded, continues)
        amend = amend or continues is not None
        show_estimate(loaded, json, amend=amend, new_people=new_people)
        return
    check_answer_files(loaded, save)
    warn_signers(loaded, report)
    loaded = loaded.keep_table()
    if continues is not None:
        amend = True
        require_dataset(loaded, continues)
    elif request is None and not (again or new_people):
        loaded = find_paid(loaded)
    choices = SessionChoices(request, amend, again, new_people)
    if again or not loaded.was_asked(request, amend=amend):
        prepare_release(loaded, preflight=not no_preflight, yes=yes, json=json)
    answered = run_release(loaded, choices, quiet=json)
    show_answers(loaded, answered, report, reader, save, json)


def require_dataset(loaded: Scenario, continues: str) -> None:
    """See that there is a dataset to continue."""
    if loaded.read_budget_state() is not None:
        return
    message = f"the ledger has no dataset {continues!r} that this could continue"
    hint = "whosin ledger show names them; leave --continues out for the first release"
    found = loaded.read_ledger(
        lambda opened, _: opened.find_continued(continues), list[str](), registered=False
    )
    if found:
        message = f"{continues!r} is part of dataset {found[0]!r}"
        hint = f"say --continues {found[0]}"
    raise InvalidInput(message, field="--continues", value=continues, hint=hint)


def find_paid(loaded: Scenario) -> Scenario:
    """The same scenario in the dataset that has its answers already, such as an earlier month's."""
    found = loaded.find_dataset()
    if found != (loaded.dataset or loaded.open_table().name):
        print_warning(f"these rows are part of dataset {found!r}, which has these answers")
        return replace(loaded, dataset=found)
    return loaded


def check_paths(save: Path | None, report: Path | None, reader: str | None = None) -> None:
    """Whether answers and report can be written there; nothing is written over."""
    if save is not None:
        from whosin.report import table_views

        table_views.check_path(save)
        if save.suffix.lower() == ".json":
            require_new_file(save, "--save")
    if report is not None:
        from whosin.report import html

        html.check_path(report)
        require_new_file(report, "--report")
    if reader is not None:
        from whosin.report.releases import REPORT_READERS

        if reader not in REPORT_READERS:
            raise UnknownName("--for", reader, REPORT_READERS)
        if report is None:
            message = f"--for {reader} says whom a report is for, and there is no --report"
            raise InvalidInput(message, field="--for", value=reader, hint="add --report out.html")


def refuse_files(save: Path | None, report: Path | None) -> None:
    """What only estimates has no answers to write."""
    for option, path in (("--save", save), ("--report", report)):
        if path is not None:
            raise InvalidInput(
                f"{option} writes answers, and a dry run has none",
                field=option,
                value=str(path),
                hint="leave --dry-run out to release, or leave the file out",
            )


def check_answer_files(scenario: Scenario, save: Path | None) -> None:
    """As `check_paths`, for answers in files of their own, which are named after them."""
    from whosin.release.queries.base import distinct_titles
    from whosin.report.table_views import title_paths

    if save is None or save.suffix.lower() == ".json":
        return
    titles = [query.title for query in scenario.queries]
    asked = [query.question() for query in scenario.queries]
    paths = title_paths(distinct_titles(titles, asked), save)
    if any(query.kind == "marginals" for query in scenario.queries):  # a file for each table
        ending = f"-[0-9]*{glob.escape(save.suffix)}"
        paths = sorted(save.parent.glob(glob.escape(save.stem) + ending))
    for path in paths:
        require_new_file(path, "--save")


def warn_signers(loaded: Scenario, report: Path | None) -> None:
    """Say before anything is paid what a report that is to be signed would not say."""
    if report is not None:
        from whosin.report.evidence import describe_unsaid

        if unsaid := describe_unsaid(loaded.about):
            print_warning(unsaid)


def show_estimate(loaded: Scenario, json: bool, *, amend: bool, new_people: bool = False) -> None:
    """What a scenario costs; nothing is spent."""
    from whosin.release.accuracy import suggest_changes
    from whosin.release.cost import foresee_release, left_after
    from whosin.report import releases

    title, plan, table = loaded.title, loaded.plan, loaded.open_table()
    estimates = loaded.estimate_cost(table)
    suggestions = suggest_changes(table, plan, loaded.queries, estimates, loaded.budget)
    state = loaded.read_budget_state()
    asked: dict[str, Any] = {"table": table, "plan": plan, "estimates": estimates}
    asked |= {"share": loaded.own_share(state), "schedule": loaded.schedule or None}
    asked |= {"amend": amend, "new_people": new_people}
    outlook = loaded.read_ledger(partial(foresee_release, **asked), None, registered=False)
    listed = [releases.estimate_data(estimate) for estimate in estimates]
    data: dict[str, Any] = {
        "title": title,
        "epsilon": plan.epsilon,
        "delta": plan.dp_delta,
        "remaining_epsilon": None if state is None else state.spendable,
        "left_after": left_after(plan, estimates, state),
        "estimates": listed,
        "suggestions": [releases.suggestion_data(each) for each in suggestions],
    }
    if tables := [each for estimate in estimates for each in estimate.tables]:
        data["tables"] = tables
    data |= {} if state is None else state.accounts_data()
    data |= {} if outlook is None else {"asker": vars(outlook)}
    shown = title, plan, estimates, state, suggestions, table.people, outlook
    print_result(json, data, releases.describe_estimates, *shown)


@dataclass(frozen=True)
class SessionChoices:
    """What the curator says of a session: see `Session`."""

    request: str | None = None
    amend: bool = False
    again: bool = False
    new_people: bool = False


def show_answers(
    loaded: Scenario,
    answered: Release,
    report: Path | None,
    reader: str | None,
    save: Path | None,
    json: bool,
) -> None:
    """Write what was asked for, and print the answers."""
    from whosin.report import releases, table_views

    title, plan = loaded.title, loaded.plan
    with _naming(answered.request):
        if save is not None:
            table_views.save_answers(answered, save)
        if report is not None:
            from whosin.report import html

            html.save_report(title, plan, answered, report, loaded, reader)
        data = {"title": title, **release_data(answered), "plan": plan.to_dict()}
        print_result(json, data, releases.describe_release, title, answered)
        sys.stdout.flush()


def release_data(answered: Release) -> dict[str, Any]:
    """A release as outside scripts read it: answers by name, what was spent and what is left."""
    data = answered.to_dict()
    answers = [{"name": each["title"], **each} for each in data["answers"]]
    state = data["budget_state"]
    left = {"spent": state["spent_epsilon"], "left": state["remaining_epsilon"]}
    return {**data, "answers": answers, **left}


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


def run_release(scenario: Scenario, choices: SessionChoices, *, quiet: bool) -> Release:
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
                session = scenario.open_session(**vars(choices))
            if choices.request is not None and not session.continues:
                said = f"there is no request {session.request!r} yet: this is a new one"
                print(f"whosin: {said}", file=sys.stderr)
            with session, scenario.at_budget():
                answered = session.release(scenario.queries, watch=watch, **scenario.budget)
        except KeyboardInterrupt as stop:
            raise Interrupted(str(stop) or "interrupted: nothing was spent") from None
    for note in session.notes:
        print_warning(note)
    return answered


def draft(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="A file, a folder, or database::table.")
    ],
    privacy_unit: Annotated[
        str | None, typer.Option(help='The column that says whose row it is; "row" for each row.')
    ] = None,
    dictionary: Annotated[
        Path | None, typer.Option(help="A data dictionary (CSV): column, values, lower, upper, …")
    ] = None,
    from_rows: Annotated[
        bool, typer.Option("--from-rows", help="Declare what the rows hold, marked as looked up.")
    ] = False,
    views: Annotated[
        bool, typer.Option("--views", help="Open a view of a database, too: look at it first.")
    ] = False,
    save: Annotated[
        Path | None, typer.Option(help="Write the scenario there: visits.toml.")
    ] = None,
    json: Json = False,
) -> None:
    """Draft a scenario for a table: its columns, what to declare and to decide, and questions.

    It is for the curator: the kinds of columns in text files are guessed from their first rows.
    """
    from whosin.release.draft import draft_scenario

    shown = relative_source(source, save.parent) if save is not None else None
    text = draft_scenario(
        source, privacy_unit, dictionary, from_rows=from_rows, shown=shown, views=views
    )
    if save is None:
        print_json({"scenario": text}) if json else print(text)
        return
    require_new_file(save, "--save")
    write_file(save, text + "\n", "save")
    if json:
        print_json({"saved": str(save), "scenario": text})
    else:
        print(f"{save}: decide and fill in what it says, then whosin release {save} --dry-run")


def relative_source(source: str, folder: Path) -> str:
    """A source as a scenario in a folder names it: paths in a scenario are relative to its file."""
    if "://" in source or source.startswith("::"):
        return source
    path, separator, table = source.partition("::")
    return os.path.relpath(path, folder) + separator + table


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
    reader: ReportReader = None,
    save: Save = None,
    again: Again = False,
    no_preflight: NoPreflight = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Ask a scenario's table in SQL: SELECT ward, COUNT(*) FROM visits GROUP BY ward.

    Each aggregate becomes a question, debited and answered as `whosin release` does; the
    scenario's own questions are not asked. What no question answers is refused by name.
    """
    from whosin.documents import toml_text
    from whosin.release.scenario import load_scenario

    check_paths(save, report, reader)
    if dry_run or explain:
        refuse_files(save, report)
    loaded = load_scenario(scenario, asked=False, ledger=ledger)
    if share is not None:
        loaded = replace(loaded, budget={**loaded.budget, "share": share})
    loaded = loaded.asking(select)
    if explain:
        data = _sql_scenario(scenario, loaded)
        print_json(data) if json else print(toml_text(data), end="")
    elif dry_run:
        show_estimate(loaded, json, amend=amend)
    else:
        check_answer_files(loaded, save)
        warn_signers(loaded, report)
        loaded = loaded.keep_table()
        if request is None and not again:
            loaded = find_paid(loaded)
        if again or not loaded.was_asked(request, amend=amend):
            prepare_release(loaded, preflight=not no_preflight, yes=yes, json=json)
        choices = SessionChoices(request, amend, again)
        answered = run_release(loaded, choices, quiet=json)
        show_answers(loaded, answered, report, reader, save, json)


def prepare_release(scenario: Scenario, *, preflight: bool, yes: bool, json: bool) -> None:
    """Look at the rows, and ask the person at a terminal once more, before anything is paid.

    Raises:
        BudgetRefused: the look found what would make answers worthless, there is nobody to accept
            what may be meant, or the person said no.
    """
    from whosin.report.releases import describe_costs

    table = scenario.open_table()
    with scenario.locate_errors():
        scenario.period_share(new=True)
    estimates = scenario.estimate_cost(table)  # what is wrong is said before a row is read
    if preflight:
        try:
            found = scenario.run_preflight(table)
        except KeyboardInterrupt:
            raise Interrupted("interrupted: nothing was spent") from None
        for line in found.lines:
            print_warning(line)
        if found.stops:
            raise found.refuse("add --no-preflight")
        if not yes and not can_ask(json=json):
            found.require_accepted("--yes")
    confirm_spending(describe_costs(scenario.plan, estimates), yes=yes, json=json)


def _sql_scenario(path: Path, loaded: Scenario) -> dict[str, Any]:
    """The file's own keys, with the queries that SQL asked instead of its own."""
    from whosin.documents import read_toml
    from whosin.release.queries.base import scenario_keys

    data = {key: value for key, value in read_toml(path, path.name).items() if key != "queries"}
    if loaded.budget:
        data["budget"] = dict(loaded.budget)
    return {**data, "queries": [scenario_keys(query) for query in loaded.queries]}


def demo(
    keep: Annotated[
        Path | None, typer.Option(help="Keep the table, scenario, ledger and report here.")
    ] = None,
    json: Json = False,
) -> None:
    """Plan, estimate and release statistics of a generated hospital, with a report and a ledger."""
    require_extras("release", "charts")
    if keep is None:
        with TemporaryDirectory(prefix="whosin-demo-") as folder:
            _tell_story(Path(folder), json=json, kept=False)
        return
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise InvalidInput(
            f"{keep.name} is there already, and not an empty folder",
            field="--keep",
            value=keep.name,
            hint="choose a new one",
        )
    _tell_story(keep, json=json, kept=True)


def _tell_story(folder: Path, *, json: bool, kept: bool) -> None:
    from whosin.app.example_data import write_hospital
    from whosin.release.scenario import load_scenario
    from whosin.report import html, releases
    from whosin.report.terminal import print_document

    scenario = load_scenario(write_hospital(folder))
    with scenario.open_session() as session:
        estimates = session.dry_run(scenario.queries, **scenario.budget)
        release = scenario.release(session)
    html.save_report(scenario.title, scenario.plan, release, folder / "report.html", scenario)
    try:
        with scenario.open_session(again=True) as session:
            scenario.release(session)
    except BudgetRefused as error:
        refusal = str(error)
    if json:
        data = {
            "estimates": [releases.estimate_data(estimate) for estimate in estimates],
            **release.to_dict(),
        }
        print_json({"title": scenario.title, **data, "second": refusal})
        return
    told = releases.describe_demo(scenario.title, scenario.plan, estimates, release, refusal)
    print_document(told)
    print()
    command = "whosin" if which("whosin") else sys.argv[0]  # as it can be typed here
    if kept:
        print(f"Kept in {folder}: hospital.parquet, hospital.toml, ledger.db, report.html")
        print(f"{command} release {quote(str(folder / 'hospital.toml'))} --dry-run")
    else:
        print("To keep its table and its report:")
        print(f"{command} demo --keep demo")
