"""`whosin table check`: the curator's private look at a table before a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Look at a table before a release.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Look at a table before a release."""


@app.command()
def check(
    scenario: Annotated[Path, typer.Argument(help="A scenario file (TOML).")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what a scenario's policies would drop, clamp or call "other". Not for publication."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from whosin.app.cli.output import print_json
    from whosin.release.checking import PRIVATE, check_table
    from whosin.release.scenario import load_scenario

    loaded = load_scenario(scenario)
    asked = [query.where for query in loaded.queries if query.where is not None]
    findings = check_table(loaded.open_table(), list(dict.fromkeys(asked)))
    if json:
        print_json({"private": True, "warning": PRIVATE, "findings": [vars(f) for f in findings]})
        return
    console = Console(highlight=False)
    console.print(f"[red]{PRIVATE}[/red]")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(justify="right")
    table.add_column()
    for finding in findings:
        table.add_row(f"{finding.rows:,}", escape(finding.what))
    console.print(table)
