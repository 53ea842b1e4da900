"""`whosin gwas release`: the most associated SNPs, published privately and paid for."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli.gwas.shared import WITHOUT, Phenotypes, Relation, StudyPath, plan_of, progress
from whosin.app.cli.options import Json
from whosin.app.cli.output import print_result, warn
from whosin.app.cli.vocabulary_options import with_words
from whosin.errors import InvalidInput
from whosin.extras import needs

if TYPE_CHECKING:
    from whosin.gwas.offer import StudyOffer
    from whosin.gwas.release import StudyRelease


@with_words("target", "adversary", without=WITHOUT)
def release(
    study: StudyPath,
    relation: Relation,
    target: Mapping[str, Any],
    adversary: Mapping[str, Any],
    top: Annotated[int | None, typer.Option(help="How many SNPs to choose.")] = None,
    snps: Annotated[
        str | None, typer.Option(help="Or their names, rs12,rs34, not taken from the data.")
    ] = None,
    score: Annotated[
        str, typer.Option(help="Choose by distance (from significance) or by chi2.")
    ] = "distance",
    numbers: Annotated[
        str, typer.Option(help="Publish counts (and what follows), chi2, or nothing.")
    ] = "counts",
    significance: Annotated[
        str, typer.Option(help="The p-value that the distance is measured from.")
    ] = "5e-8",
    phenotypes: Phenotypes = None,
    ledger: Annotated[
        str | None,
        typer.Option(help="A file, or postgresql://…; by default STUDY.ledger beside the study."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="The study's name in the ledger; by default its file's.")
    ] = None,
    request: Annotated[
        str | None, typer.Option(help="A name for this question: asked again, paid once.")
    ] = None,
    amend: Annotated[
        bool, typer.Option("--amend", help="Go on under the same budget with a changed study.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the card; draw and spend nothing.")
    ] = False,
    save: Annotated[
        list[Path] | None, typer.Option(help="Write a table (x.tsv) or a page (x.html); repeat.")
    ] = None,
    json: Json = False,
) -> None:
    """Publish the most associated SNPs and their numbers, with a promise about who is a case."""
    from whosin.gwas import read_study
    from whosin.gwas.bed import prefix
    from whosin.gwas.offer import Question, price
    from whosin.gwas.release import publish
    from whosin.ledger import Ledger
    from whosin.report import gwas
    from whosin.report.gwas_page import release_page
    from whosin.report.gwas_tables import write_release

    files = save or []
    _check_files(files)
    plan = plan_of(target, adversary)
    named = tuple(part.strip() for part in (snps or "").split(",") if part.strip())
    if (top is None) == (not named):
        accepted = "asked for by --top or by --snps, one of the two"
        raise InvalidInput("SNPs", accepted, "neither" if top is None else "both")
    asked = Question(top, relation, score, numbers, _threshold(significance), named)
    with progress("counting") as tell:
        result = read_study(study, phenotypes, progress=tell)
    offered = price(plan, asked, result)
    if dry_run:
        print_result(json, _data(offered), gwas.print_offer, offered)
        return
    base = prefix(study)
    where, name = ledger or str(base.with_name(base.name + ".ledger")), dataset or base.name
    with Ledger(where) as opened, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the notes say it
        made = publish(result, plan, asked, opened, name, request, amend=amend)
    for note in made.notes:
        warn(note)
    for path in files:
        if path.suffix == ".tsv":
            write_release(made, path)
        else:
            release_page(made, path)
    print_result(json, _data(offered, made), gwas.print_release, made)


def _check_files(files: list[Path]) -> None:
    for path in files:
        if path.suffix not in (".tsv", ".html"):
            raise InvalidInput("--save", "a file ending in .tsv or .html", path.name)
        if not path.resolve().parent.is_dir():
            raise InvalidInput("--save", "in a folder that exists", str(path))
        if path.suffix == ".html":
            needs("charts")


def _threshold(significance: str) -> float:
    """The χ² of a p-value."""
    from scipy.special import chdtri

    from whosin.exact import rational

    value = float(rational(significance, "--significance"))
    if not 1e-300 <= value < 1:
        raise InvalidInput("--significance", "a p-value above 0 and below 1", significance)
    return float(chdtri(1, value))


def _data(offered: StudyOffer, made: StudyRelease | None = None) -> dict[str, object]:
    from whosin.report.gwas_tables import release_rows

    asked = ("top", "named", "relation", "score", "numbers")
    data: dict[str, object] = {
        **{key: getattr(offered.question, key) for key in asked},
        "epsilon": sum(offered.epsilons),
        "epsilon_selection": offered.epsilons[0],
        "epsilon_numbers": offered.epsilons[1],
        "selection_scale": offered.selection_scale,
        "noise_scale": offered.scale,
        "cases": offered.cases,
        "controls": offered.controls,
        "snps_in_study": offered.snps,
        "plan": offered.plan.to_dict(),
    }
    if made is not None:
        data |= {"dataset": made.dataset, "request": made.request, "snps": release_rows(made)}
    return data
