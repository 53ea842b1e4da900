"""`whosin release`, `sql`, `draft`, `inspect`, `evidence` and `demo`: answers from a scenario."""

from __future__ import annotations

import glob
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from shlex import quote
from shutil import which
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any
from unicodedata import normalize

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
    refuse_options,
)
from whosin.errors import BudgetRefused, Interrupted, InvalidInput, UnknownName, require_extras
from whosin.plain_files import require_new_file, write_file

if TYPE_CHECKING:
    from whosin.release import CostEstimate, Release
    from whosin.release.admission import Outlook
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
PlanShare = Annotated[
    str | None, typer.Option(help="The part of the plan's budget for this, such as 1/10.")
]
NoPreflight = Annotated[
    bool, typer.Option("--no-preflight", help="Skip the look at the rows before it pays.")
]


def release(
    scenario: ScenarioFile,
    share: PlanShare = None,
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

    output = Output(report, reader, save, json)
    output.check(new=not dry_run)
    if continues is not None:
        refuse_options({"--new-people": new_people or None}, "--continues")
    loaded = take_share(load_scenario(scenario, ledger=ledger), share)
    choices = SessionChoices(request, amend, again, new_people)
    options = {"dry_run": dry_run, "preflight": not no_preflight, "yes": yes}
    answer_scenario(loaded, choices, output, continues, **options)


def take_share(loaded: Scenario, share: str | None) -> Scenario:
    """The scenario with a share of its own, if one is given."""
    return loaded if share is None else replace(loaded, budget={**loaded.budget, "share": share})


@dataclass(frozen=True)
class Output:
    """Where answers go, and for whom a report is."""

    report: Path | None
    reader: str | None
    save: Path | None
    json: bool

    def check(self, *, new: bool = True) -> None:
        """See that they can be written there, where there will be any; nothing is written over."""
        save, report, reader = self.save, self.report, self.reader
        for option, path in (("--save", save), ("--report", report)):
            if path is not None and not new:
                raise InvalidInput(
                    f"{option} writes answers, and a dry run has none",
                    field=option,
                    value=str(path),
                    hint="leave --dry-run out to release, or leave the file out",
                )
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
                raise InvalidInput(
                    message, field="--for", value=reader, hint="add --report out.html"
                )


def answer_scenario(
    loaded: Scenario,
    choices: SessionChoices,
    output: Output,
    continues: str | None,
    *,
    dry_run: bool,
    preflight: bool,
    yes: bool,
) -> None:
    """Answer a scenario's questions, or say what they cost.

    Args:
        continues: the dataset whose budget pays.
    """
    request = choices.request
    if continues is not None:
        loaded, choices = replace(loaded, dataset=continues), replace(choices, amend=True)
    if dry_run:
        if continues is not None:
            require_dataset(loaded, continues)
        show_estimate(loaded, choices, json=output.json)
        return
    check_answer_files(loaded, output.save)
    warn_signers(loaded, output.report)
    try:
        loaded = loaded.keep_table()
        if continues is not None:
            require_dataset(loaded, continues)
        elif request is None and not (choices.again or choices.new_people):
            loaded = find_paid(loaded)
        if choices.again or not loaded.find_request(request, amend=choices.amend):
            require_open(loaded, request)
            prepare_release(loaded, preflight=preflight, yes=yes, json=output.json)
        answered = run_release(loaded, choices, quiet=output.json)
    except InvalidInput:  # of the table as it is now, which stored answers do not need
        stored = None if request is None else find_stored(loaded, request)
        if stored is None:
            raise
        loaded, answered = replace(loaded, plan=stored.budget_state.plan), stored
    show_answers(loaded, answered, output)


def require_open(loaded: Scenario, request: str | None) -> None:
    """See that the dataset answers questions, before anything else is looked at."""
    from whosin.ledger.budget_state import open_for_debits

    state = loaded.read_budget_state()
    try:
        if state is not None:
            open_for_debits(state)
    except BudgetRefused as error:
        if request is None:
            raise
        said = f"there is no request {request!r}, and {error}"
        raise BudgetRefused(said, field="--request", value=request) from None


def find_stored(loaded: Scenario, request: str) -> Release | None:
    """A request's stored answers to these questions, without a look at the table; None where it has
    others, or not all."""
    from whosin.release.requests import match_answers
    from whosin.release.table import dataset_name

    name = loaded.dataset or loaded.table.name or dataset_name(loaded.table.source)
    releases = replace(loaded, dataset=name).read_releases()
    found = next((each for each in releases if each.request == normalize("NFC", request)), None)
    answers = None if found is None else match_answers(loaded.queries, list(found))
    if found is None or answers is None:
        return None
    named = zip(loaded.queries, answers, strict=True)
    return replace(found, answers=tuple(replace(each, title=query.title) for query, each in named))


def require_dataset(loaded: Scenario, continues: str) -> None:
    """See that there is a dataset to continue."""
    if loaded.read_budget_state() is not None:
        return
    message = f"the ledger has no dataset {continues!r} that this could continue"
    ledger, found = loaded.read_ledger(
        lambda opened, _: (opened.name, opened.find_continued(continues)),
        ("LEDGER", list[str]()),
        registered=False,
    )
    hint = f"whosin ledger show {ledger} names them; leave --continues out for the first release"
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


def check_answer_files(scenario: Scenario, save: Path | None) -> None:
    """As `Output.check`, for answers in files of their own, which are named after them."""
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


def show_estimate(loaded: Scenario, choices: SessionChoices, *, json: bool) -> None:
    """What a scenario costs; nothing is spent."""
    from whosin.release.accuracy import suggest_changes
    from whosin.release.cost import describe_spent_period, state_after
    from whosin.report import releases

    loaded = loaded.keep_table()
    title, plan, table = loaded.title, loaded.plan, loaded.open_table()
    estimates = loaded.estimate_cost(table)
    state, tried = loaded.read_budget_state(), (table, plan, loaded.queries, estimates)
    suggestions = suggest_changes(*tried, loaded.period_budget(), state)
    after = state_after(plan, estimates, state, loaded.schedule)
    _, estimates, outlook = foresee_scenario(loaded, choices, estimates)
    listed = [releases.estimate_data(estimate) for estimate in estimates]
    data: dict[str, Any] = {
        "title": title,
        "epsilon": plan.epsilon,
        "delta": plan.dp_delta,
        "remaining_epsilon": None if state is None else state.spendable,
        "left_after": after.spendable,
        "estimates": listed,
        "suggestions": [releases.suggestion_data(each) for each in suggestions],
    }
    if tables := [each for estimate in estimates for each in estimate.tables]:
        data["tables"] = tables
    data |= {} if state is None else state.accounts_data()
    data |= {} if outlook is None else {"asker": vars(outlook)}
    shown = title, plan, estimates, state, suggestions, table.people, outlook
    print_result(json, data, releases.describe_estimates, *shown, describe_spent_period(after))


def foresee_scenario(
    loaded: Scenario, choices: SessionChoices, estimates: list[CostEstimate]
) -> tuple[Scenario, list[CostEstimate], Outlook | None]:
    """A scenario in the dataset that has its answers or would pay for them, its estimates as they
    were paid, and what the ledger would say; nothing is spent."""
    from whosin.release.admission import foresee_release

    table, share = loaded.open_table(), loaded.own_share(loaded.read_budget_state())
    asked: dict[str, Any] = {"table": table, "plan": loaded.plan, "estimates": estimates}
    asked |= {"share": share, "schedule": loaded.schedule or None}
    asked |= {"amend": choices.amend, "new_people": choices.new_people}
    held, changed = replace(loaded, dataset=loaded.find_dataset()), ""
    try:
        if paid := held.find_request(choices.request, amend=choices.amend):
            asked["known"], estimates = True, held.estimate_cost(table, paid)
    except BudgetRefused as error:  # of rows that have changed since
        changed = str(error)
    outlook = loaded.read_ledger(partial(foresee_release, **asked), None, registered=False)
    outlook = replace(outlook, refusal=changed) if outlook is not None and changed else outlook
    return held, estimates, outlook


@dataclass(frozen=True)
class SessionChoices:
    """What the curator says of a session: see `Session`."""

    request: str | None = None
    amend: bool = False
    again: bool = False
    new_people: bool = False


def show_answers(loaded: Scenario, answered: Release, output: Output) -> None:
    """Write what was asked for, and print the answers."""
    from whosin.report import releases, table_views

    title, plan = loaded.title, loaded.plan
    with _naming(answered.request):
        if output.save is not None:
            table_views.save_answers(answered, output.save)
        if output.report is not None:
            from whosin.report import html

            html.save_report(title, plan, answered, output.report, loaded, output.reader)
        data = {"title": title, **release_data(answered), "plan": plan.to_dict()}
        print_result(output.json, data, releases.describe_release, title, answered)
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
            with session:
                answered = scenario.release(session, watch)
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
    share: PlanShare = None,
    dry_run: DryRun = False,
    ledger: OtherLedger = None,
    request: Continued = None,
    amend: Amend = False,
    continues: Continues = None,
    new_people: NewPeople = False,
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

    output = Output(report, reader, save, json)
    output.check(new=not (dry_run or explain))
    loaded = take_share(load_scenario(scenario, asked=False, ledger=ledger), share).asking(select)
    if explain:
        data = _sql_scenario(scenario, loaded)
        print_json(data) if json else print(toml_text(data), end="")
        return
    choices = SessionChoices(request, amend, again, new_people)
    options = {"dry_run": dry_run, "preflight": not no_preflight, "yes": yes}
    answer_scenario(loaded, choices, output, continues, **options)


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
    require_new_folder(keep, "--keep")
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


def evidence(
    scenario: ScenarioFile,
    ledger: OtherLedger = None,
    continues: Continues = None,
    new_people: NewPeople = False,
    save: Annotated[
        Path | None, typer.Option(help="Write the pack to this folder, a new or an empty one.")
    ] = None,
    json: Json = False,
) -> None:
    """Collect the evidence about a scenario: who may be looking, how sure each can become, what it
    rests on, and who answers for it. Nothing is spent. It is not legal advice.

    A pack has evidence.json with its JSON schema, the same as a page, and registry.yaml, an entry
    for the OpenDP deployments registry. The scenario's about section must say controller, contact,
    population, period, decided_by and reasons.
    """
    from whosin.ledger.encoding import today
    from whosin.release.scenario import load_scenario
    from whosin.report import evidence as packs
    from whosin.report.terminal import print_document

    if save is not None:
        require_new_folder(save, "--save")
    loaded = load_scenario(scenario, ledger=ledger).keep_table()
    if continues is not None:
        refuse_options({"--new-people": new_people or None}, "--continues")
        loaded = replace(loaded, dataset=continues)
        require_dataset(loaded, continues)
    choices = SessionChoices(amend=continues is not None, new_people=new_people)
    loaded, _, outlook = foresee_scenario(loaded, choices, loaded.estimate_cost())
    made, state = loaded.read_releases(), loaded.read_budget_state()
    refusal = "" if outlook is None else outlook.refusal or ""
    if state is None and refusal:  # nobody said whose people these are
        raise BudgetRefused(refusal, field="dataset", value=loaded.dataset)
    packs.require_about(packs.settle_about(loaded, made, "")[0])
    known = loaded.read_ledger(lambda *_: True, False, registered=False)
    asked = loaded, loaded.estimate_cost(), state, today(), version("whosin"), made
    data = packs.evidence_data(*asked, refusal=refusal, ledger_exists=known)
    if save is not None:
        _write_pack(save, data)
    if json:
        print_json(data)
    elif save is None:
        print_document(packs.describe_evidence(data))
    else:
        print(f"{save}: {', '.join(packs.PACK_FILES)}. {data['notice']}")


def _write_pack(folder: Path, data: dict[str, object]) -> None:
    """Write the files of a pack, all made before the first is written."""
    from whosin.plain_files import write_file
    from whosin.report.evidence import pack_texts

    texts = pack_texts(data)
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        write_file(folder / name, text, "--save")


def require_new_folder(folder: Path, option: str) -> None:
    """Refuse a folder in which something would be lost, or that could not be made."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        message = f"{folder.name} is there already, and not an empty folder"
        raise InvalidInput(message, field=option, value=folder.name, hint="choose a new one")
    if option == "--save" and not folder.parent.is_dir():
        message = f"there is no folder {folder.parent}"
        raise InvalidInput(message, field=option, value=str(folder), hint="make it first")
