"""`whosin ledger`: the durable budget of datasets."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli.main import (
    Json,
    NewPeople,
    ReportFile,
    ReportReader,
    Save,
    add_options,
    print_json,
    print_result,
    print_warning,
)
from whosin.errors import BrokenHistory, InvalidInput, require_extras
from whosin.plain_files import require_new_file, write_file

if TYPE_CHECKING:
    from whosin.ledger import BudgetState, Entry, Ledger
    from whosin.ledger.registration import Registration
    from whosin.release.scenario import Scenario

app = typer.Typer(
    help="Keep a durable budget: create, amend, quota, show, answers, verify, export, close.",
    no_args_is_help=True,
)

Where = Annotated[str, typer.Argument(metavar="LEDGER", help="A file, or postgresql://…")]
Dataset = Annotated[str, typer.Argument(help="The dataset's name.")]
Maybe = Annotated[str | None, typer.Argument(help="One dataset; all by default.")]


@app.command()
@add_options("target", "adversary")
def create(
    ledger: Where,
    dataset: Dataset,
    target: Mapping[str, Any],
    adversary: Mapping[str, Any],
    plan: Annotated[
        Path | None,
        typer.Option(help="The budget: a plan's file, as `whosin plan --json` writes it."),
    ] = None,
    scenario: Annotated[
        Path | None,
        typer.Option(help="The table that the budget is for, as a scenario names it."),
    ] = None,
    new_people: NewPeople = False,
    json: Json = False,
) -> None:
    """Register a dataset with its budget: the plan's ε is the total, once and for all.

    With --scenario the budget is for that table: its privacy unit, domains and bounds are fixed
    too, and users of a server can ask it. Without another budget the scenario's own is taken.
    """
    from whosin.calibration import Plan, read_plan
    from whosin.ledger.encoding import read_name

    read_name(dataset, "dataset")
    if plan is not None and target:
        message = f"--plan and --{next(iter(target))} both state a budget"
        raise InvalidInput(message, field="--plan", value=plan.name, hint="leave one of them out")
    if plan is None and not target and scenario is None:
        message = f"dataset {dataset!r} needs a budget"
        hint = "give --plan FILE, or a target such as --posterior 0.6 with --prior 0.1"
        raise InvalidInput(message, field="--plan", hint=hint)
    if adversary and not target:
        owner = "--plan" if plan is not None else "--scenario"
        words = [f"--{word}" for word in adversary]
        message = f"{' and '.join(words)} cannot be given with {owner}, which has its own adversary"
        raise InvalidInput(message, field=words[0], hint="state a target too, or leave it out")
    loaded, registration = (None, None) if scenario is None else _register_scenario(scenario)
    if plan is not None:
        budget = Plan.load(plan)
    else:
        budget = read_plan(adversary, target) if target or loaded is None else loaded.plan
    with _open_ledger(ledger, create=True) as opened:
        schedule = loaded.schedule if loaded is not None and loaded.schedule else None
        about: Any = {"new_people": new_people, "schedule": schedule}
        budget_state = opened.register(dataset, budget, registration, **about)
        _show_datasets(opened, [budget_state.dataset], json=json)


@app.command()
def amend(
    ledger: Where,
    dataset: Dataset,
    scenario: Annotated[Path, typer.Option(help="The table, as a scenario names it.")],
    json: Json = False,
) -> None:
    """Record that a dataset goes on with another file, other domains or bounds.

    The budget stays: next month's file is paid from what this month's left. Whose rows they are
    (the privacy unit) can never change.
    """
    from whosin.release.queries.running import find_changed_periods
    from whosin.report.accounts import describe_changed_periods

    loaded, registration = _register_scenario(scenario)
    with _open_ledger(ledger) as opened:
        opened.amend(dataset, registration)
        changed = find_changed_periods(loaded.open_table(), loaded.queries, opened, dataset)
        for each in changed:
            print_warning(describe_changed_periods(*each))
        _show_datasets(opened, [dataset], json=json)


@app.command()
def show(
    ledger: Where,
    dataset: Maybe = None,
    entries: Annotated[bool, typer.Option("--entries", help="List the history too.")] = False,
    json: Json = False,
) -> None:
    """Say what was spent, what is left, and what it all allows anyone to believe."""
    with _open_ledger(ledger) as opened:
        _show_datasets(opened, _dataset_names(opened, dataset), json=json, entries=entries)


@app.command()
def answers(
    ledger: Where,
    dataset: Annotated[
        str | None, typer.Argument(help="The dataset's name; not needed where there is one.")
    ] = None,
    request: Annotated[
        str | None, typer.Option(help="One release, by its id or the beginning of it.")
    ] = None,
    report: ReportFile = None,
    reader: ReportReader = None,
    save: Save = None,
    json: Json = False,
) -> None:
    """Open answers again that were paid for, as table, file or report; nothing is spent."""
    require_extras("release")
    from whosin.app.cli.release import Output, release_data
    from whosin.release.answer import read_releases
    from whosin.report import html, releases, table_views

    Output(report, reader, save, json).check()
    with _open_ledger(ledger) as opened:
        dataset = _only_dataset(opened) if dataset is None else dataset
        found = read_releases(opened, dataset)
        unanswered = opened.unanswered(dataset)
        name = opened.name
    if request is not None:
        found = [each for each in found if each.request.startswith(request)]
    if not found:
        said = f"no release {request!r}" if request is not None else "no stored answers"
        raise InvalidInput(
            f"dataset {dataset!r} has {said}",
            field="--request" if request is not None else "dataset",
            value=request or dataset,
            hint=f"whosin ledger show {name} --entries lists what was paid for",
        )
    if unanswered:
        some = sorted({each.rpartition("/")[0] for each in unanswered})
        print_warning(
            f"{len(unanswered)} paid questions have no answer yet: --request {some[0]} goes on"
        )
    if len(found) > 1 and (save is not None or report is not None):
        message = f"dataset {dataset!r} has {len(found)} releases, and a file is for one"
        hint = f"say which, such as --request {found[-1].request}, the last one"
        raise InvalidInput(message, field="--request", hint=hint)
    if save is not None:
        for path in table_views.title_paths([each.title for each in found[0]], save):
            require_new_file(path, "--save")
        table_views.save_answers(found[0], save)
    if report is not None:
        title = found[0].about.get("title", dataset)
        html.save_report(title, found[0].budget_state.plan, found[0], report, None, reader)
        if reader is not None and not found[0].about:
            print_warning(
                "the ledger does not know who answers for the release: whosin release SCENARIO "
                f"--request {found[0].request} writes these pages with its [about]"
            )
    listed = [release_data(each) for each in found]
    data = {"ledger": name, "dataset": dataset, "releases": listed}
    print_result(json, data, releases.describe_releases, dataset, found)


@app.command()
def verify(
    ledger: Where,
    dataset: Maybe = None,
    head: Annotated[
        str | None, typer.Option(help="A digest from a report that the history must contain.")
    ] = None,
    json: Json = False,
) -> None:
    """Recompute the chain, the sums and the answers; exit 1 when the history was rewritten."""
    from whosin.ledger import verify as recompute
    from whosin.report.card import check_lines

    if head is not None and dataset is None:
        raise InvalidInput(
            "--head is the end of one dataset's history", field="--head", hint="name the dataset"
        )
    checks, broken = [], []
    with _open_ledger(ledger) as opened:
        try:
            opened.survey()
        except BrokenHistory as error:
            broken.append(error)
        for name in _dataset_names(opened, dataset) if not broken else ():
            try:
                checks.append(recompute(opened, name, head))
            except BrokenHistory as error:
                broken.append(error)
    if json:
        reasons = [{"dataset": error.dataset, "reason": str(error)} for error in broken]
        print_json({"whole": not broken, "broken": reasons, "datasets": [*map(vars, checks)]})
    elif checks:
        print("\n".join(check_lines(checks)))
    elif not broken:
        print("The ledger has no datasets.")
    for each in broken[:-1]:
        print(f"whosin: {each}", file=sys.stderr)
    if broken:
        raise broken[-1]


@app.command()
def export(
    ledger: Where,
    dataset: Maybe = None,
    save: Annotated[Path | None, typer.Option(help="Write to a file: x.json or x.csv.")] = None,
    json: Json = False,
) -> None:
    """Write the whole history, as JSON or CSV, for an archive or an auditor."""
    from whosin.plain_files import check_writable
    from whosin.report.card import csv_text, datasets_data, json_text

    if save is not None:
        check_writable(save, "--save", (".json", ".csv"))
    with _open_ledger(ledger) as opened:
        records = _read_records(opened, _dataset_names(opened, dataset), entries=True)
    if save is not None:
        text = csv_text(records) if save.suffix == ".csv" else json_text(records)
        write_file(save, text, "--save", private=True)
        if not json:
            count = sum(len(entries) for _, entries in records)
            print(f"{count} {'entry' if count == 1 else 'entries'} written to {save.name}")
            return
    print_json(datasets_data(records))


@app.command()
def resume(ledger: Where, dataset: Dataset, json: Json = False) -> None:
    """Let a dataset go on that was suspended because an engine failed after a debit, or whose last
    entry was dated by a clock that was ahead.

    Look first why it failed (memory, disk, a damaged file): whether it fails can depend on one
    person's rows, and each failure tells whoever asked a little that no debit paid for.
    """
    with _open_ledger(ledger) as opened:
        opened.resume(dataset)
        _show_datasets(opened, [dataset], json=json)


@app.command()
def quota(
    ledger: Where,
    dataset: Dataset,
    name: Annotated[str, typer.Argument(metavar="QUOTA", help="A person, a group or a project.")],
    share: Annotated[
        str | None, typer.Option(help="What they may spend of the whole budget: 1/4.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="The last day, such as 2027-12-31; '' for none.")
    ] = None,
    member: Annotated[
        list[str] | None,
        typer.Option(help="Who may spend it; of a new one whoever has its name. Repeat it."),
    ] = None,
    to: Annotated[str | None, typer.Option(help="Move --share of it to this quota.")] = None,
    revoke: Annotated[bool, typer.Option("--revoke", help="Take back what is unspent.")] = False,
    json: Json = False,
) -> None:
    """Keep a share of a dataset's budget for some people; move or revoke it. A later --share leaves
    the last day and the members as they were, unless they are given anew.

    Until the last day nobody else can spend what is kept, and together they never exceed the
    budget. Who asks is taken at their word: colluding analysts are one adversary, and the budget is
    what protects people.
    """
    if revoke == (share is not None):
        message = f"quota {name!r} needs --share or --revoke, and not both"
        raise InvalidInput(message, field="--share", hint="for example --share 1/4")
    if (revoke or to is not None) and (until is not None or member):
        message, hint = "--until and --member belong to a new --share", "leave them out"
        raise InvalidInput(message, field="--member" if until is None else "--until", hint=hint)
    with _open_ledger(ledger) as opened:
        if revoke:
            opened.revoke_quota(dataset, name)
        elif to is not None:
            opened.move_quota(dataset, name, share, to)
        else:
            opened.set_quota(dataset, name, share, until=until, members=member or ())
        _show_datasets(opened, [dataset], json=json)


@app.command()
def close(ledger: Where, dataset: Dataset, json: Json = False) -> None:
    """Allow no further answers about a dataset, for good."""
    with _open_ledger(ledger) as opened:
        opened.close(dataset)
        _show_datasets(opened, [dataset], json=json)


def _register_scenario(path: Path) -> tuple[Scenario, Registration]:
    """A scenario, and its table as a budget is bound to it."""
    from whosin.release.scenario import load_scenario
    from whosin.release.table import register_table

    scenario = load_scenario(path, asked=None)  # one made for `whosin sql` has no queries
    return scenario, register_table(scenario.open_table(), scenario.queries, rows=True)


def _open_ledger(url: str, create: bool = False) -> Ledger:
    from whosin.ledger import Ledger

    return Ledger(url, create=create)


def _only_dataset(ledger: Ledger) -> str:
    """The one dataset of a ledger."""
    names = ledger.datasets()
    if len(names) == 1:
        return names[0]
    listed = f"datasets {', '.join(map(repr, names))}" if names else "no datasets"
    message = f"{ledger.name} has {listed}"
    hint = f"say which: whosin ledger answers LEDGER {names[0]!r}" if names else ""
    raise InvalidInput(message, field="dataset", hint=hint)


def _dataset_names(ledger: Ledger, dataset: str | None) -> list[str]:
    return ledger.datasets() if dataset is None else [dataset]


def _read_records(
    ledger: Ledger, names: list[str], *, entries: bool
) -> list[tuple[BudgetState, list[Entry]]]:
    """Where datasets stand, and their histories only if these are shown: they may be long."""
    return [
        ledger.record(name)[:2] if entries else (ledger.budget_state(name, parts=True), [])
        for name in names
    ]


def _show_datasets(ledger: Ledger, names: list[str], *, json: bool, entries: bool = False) -> None:
    from whosin.ledger.registry import group_by_people
    from whosin.report.card import datasets_data, describe_budget_states

    records = _read_records(ledger, names, entries=entries)
    groups = group_by_people([ledger.budget_state(name) for name in ledger.datasets()])
    people = [
        each for each in groups if not {state.dataset for state in each.states}.isdisjoint(names)
    ]
    together = {"together": [each.to_dict() for each in people]} if people else {}
    data = {"ledger": ledger.name, **datasets_data(records, entries=entries), **together}
    print_result(json, data, describe_budget_states, records, entries, people)
