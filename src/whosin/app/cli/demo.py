"""`whosin demo`: the main job, on a hospital made up on the spot."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from whosin.app.cli.options import Json
from whosin.app.cli.output import print_json
from whosin.errors import BudgetRefused, InvalidInput
from whosin.extras import needs


def demo(
    keep: Annotated[
        Path | None, typer.Option(help="Keep the table, scenario, ledger and report here.")
    ] = None,
    json: Json = False,
) -> None:
    """Plan, price and release statistics of a generated hospital, with a report and a ledger."""
    needs("release", "charts")
    if keep is None:
        with TemporaryDirectory(prefix="whosin-demo-") as folder:
            _tell(Path(folder), json=json, kept=False)
        return
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise InvalidInput("--keep", "a new or empty folder", keep.name)
    _tell(keep, json=json, kept=True)


def _tell(folder: Path, *, json: bool, kept: bool) -> None:
    from whosin.app.hospital import write_hospital
    from whosin.release.scenario import load_scenario
    from whosin.report import html, releases
    from whosin.report.demo import print_demo

    scenario = load_scenario(write_hospital(folder))
    session = scenario.open_session()
    offers = session.dry_run(scenario.queries, **scenario.budget)
    release = scenario.release(session)
    html.save_report(scenario.title, scenario.plan, release, folder / "report.html")
    try:
        scenario.open_session()
    except BudgetRefused as error:
        refusal = str(error)
    if json:
        data = {"offers": [releases.offer_data(offer) for offer in offers], **release.to_dict()}
        print_json({"title": scenario.title, **data, "second": refusal})
        return
    print_demo(scenario.title, scenario.plan, offers, release, refusal)
    if kept:
        print(f"Kept in {folder}: hospital.parquet, hospital.toml, ledger.db, report.html")
    else:
        print("whosin demo --keep demo   keeps the table, the scenario, the ledger and the report")
    print("whosin release demo/hospital.toml --dry-run   and the same with your own table")
