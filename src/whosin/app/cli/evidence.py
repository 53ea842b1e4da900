"""`whosin evidence`: what an officer, an auditor or a registry asks of a release, as files."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from whosin.app.cli.main import Json, ScenarioFile, print_json
from whosin.errors import InvalidInput


def evidence(
    scenario: ScenarioFile,
    ledger: Annotated[
        str | None, typer.Option("--ledger", help="Another ledger: a file, or postgresql://…")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write the pack to this folder, a new or an empty one.")
    ] = None,
    json: Json = False,
) -> None:
    """Collect the evidence about a scenario: who may be looking, how sure each can become, what it
    rests on, and who answers for it. No row is read, nothing is spent. It is not legal advice.

    A pack has evidence.json with its JSON schema, the same as a page, and registry.yaml, an entry
    for the OpenDP deployments registry. The scenario's about section must say controller, contact,
    population, period, decided_by and reasons.
    """
    from whosin.ledger.encoding import today
    from whosin.release.scenario import load_scenario
    from whosin.report import evidence as packs
    from whosin.report.terminal import print_document

    if save is not None:
        _check_folder(save)
    loaded = load_scenario(scenario, ledger=ledger)
    made = loaded.read_releases()
    packs.require_about(packs.settle_about(loaded, made, "")[0])
    loaded = loaded.keep_table()
    estimates, state = loaded.estimate_cost(), loaded.read_budget_state()
    data = packs.evidence_data(loaded, estimates, state, today(), version("whosin"), made)
    if save is not None:
        _write_pack(save, data)
    if json:
        print_json(data)
    elif save is None:
        print_document(packs.describe_evidence(data))
    else:
        print(f"{save}: {', '.join(packs.PACK_FILES)}. {data['notice']}")


def _check_folder(folder: Path) -> None:
    """Refuse a folder that could not be made, or that something would be lost in."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(
            f"{folder.name} is there already, and not an empty folder",
            field="--save",
            value=folder.name,
            hint="choose a new one",
        )
    if not folder.parent.is_dir():
        message = f"there is no folder {folder.parent}"
        raise InvalidInput(message, field="--save", value=str(folder), hint="make it first")


def _write_pack(folder: Path, data: dict[str, object]) -> None:
    """Write the files of a pack, all made before the first is written."""
    from whosin.plain_files import write_file
    from whosin.report.evidence import pack_texts

    texts = pack_texts(data)
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        write_file(folder / name, text, "--save")
