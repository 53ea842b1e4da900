"""`whosin sql`: ask in SQL what a scenario would ask, under its promise and its budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli.options import Json, ScenarioFile
from whosin.app.cli.output import print_result
from whosin.app.cli.release import (
    Amend,
    Continued,
    DryRun,
    OtherLedger,
    ReportFile,
    Save,
    check_paths,
    show_answers,
    show_price,
)

if TYPE_CHECKING:
    from whosin.release.scenario import Scenario


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
    from whosin.release.scenario import load_scenario

    check_paths(save, report)
    loaded = load_scenario(scenario, asked=False)
    if share is not None:
        loaded = replace(loaded, budget={**loaded.budget, "share": share})
    loaded = loaded.asking(select)
    if explain:
        data = _as_scenario(scenario, loaded)
        print_result(json, data, _print, data)
    elif dry_run:
        show_price(loaded, ledger, json)
    else:
        show_answers(loaded, ledger, request, amend, report, save, json)


def _as_scenario(path: Path, loaded: Scenario) -> dict[str, Any]:
    """The file's own keys, with the queries that SQL asked instead of its own."""
    from whosin.documents import read_toml
    from whosin.release.queries.base import scenario_keys

    data = {key: value for key, value in read_toml(path, path.name).items() if key != "queries"}
    if loaded.budget:
        data["budget"] = dict(loaded.budget)
    return {**data, "queries": [scenario_keys(query) for query in loaded.queries]}


def _print(data: dict[str, Any]) -> None:
    from whosin.documents import toml_text

    print(toml_text(data), end="")
