"""`whosin table check`: the curator's private look at a table before a release."""

from __future__ import annotations

import typer

from whosin.app.cli.options import Json, ScenarioFile
from whosin.app.cli.output import print_result

app = typer.Typer(help="Look at a table before a release.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Look at a table before a release."""


@app.command()
def check(scenario: ScenarioFile, json: Json = False) -> None:
    """Say what a scenario's policies would drop, clamp or call "other". Not for publication."""
    from whosin.release.scans.checking import PRIVATE, check_table
    from whosin.release.scenario import load_scenario
    from whosin.report.releases import print_findings

    loaded = load_scenario(scenario)
    asked = [query.where for query in loaded.queries if query.where is not None]
    table = loaded.open_table()
    findings = check_table(table, list(dict.fromkeys(asked)), loaded.counted(table))
    figures = [vars(finding) for finding in findings]
    data = {"private": True, "warning": PRIVATE, "findings": figures}
    print_result(json, data, print_findings, PRIVATE, findings)
