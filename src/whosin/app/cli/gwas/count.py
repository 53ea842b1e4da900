"""`whosin gwas count`: exact counts and statistics, for the curator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from whosin.app.cli.gwas.shared import Phenotypes, StudyPath, progress
from whosin.app.cli.options import Json
from whosin.app.cli.output import print_result, warn
from whosin.errors import InvalidInput


def count(
    study: StudyPath,
    phenotypes: Phenotypes = None,
    processes: Annotated[
        int | None,
        typer.Option(help="How many; by default one below 2 GiB, else one for each core."),
    ] = None,
    leave_out_no_sex: Annotated[
        bool,
        typer.Option(
            "--leave-out-no-sex",
            help="Leave out people of unknown sex, as PLINK does without --allow-no-sex.",
        ),
    ] = False,
    save: Annotated[
        list[Path] | None,
        typer.Option(help="Write the counts (x.tsv), or draw: x.html, x.svg, x.png; repeat."),
    ] = None,
    assoc: Annotated[
        Path | None, typer.Option(help="Write PLINK's association table, tab-separated.")
    ] = None,
    json: Json = False,
) -> None:
    """Count genotypes of cases and controls. What it writes is exact and private."""
    from whosin.gwas import read_study
    from whosin.gwas.study import write_table
    from whosin.report import charts, gwas
    from whosin.report.gwas_tables import write_exact

    files = save or []
    for path in files:
        if path.suffix not in (".tsv", *charts.SUFFIXES):
            raise InvalidInput("--save", "a file ending in .tsv, .html, .svg or .png", path.name)
        if path.suffix != ".tsv":
            charts.check_path(path)
    given = {"processes": processes, "leave_out_no_sex": leave_out_no_sex}
    with progress("counting") as tell:
        result = read_study(study, phenotypes, progress=tell, **given)  # type: ignore[arg-type]
    for path in files:
        if path.suffix == ".tsv":
            write_table(result, path)
        else:
            charts.save(gwas.exact_chart(result), path)
    if assoc is not None:
        write_exact(result, assoc)
    if files or assoc is not None:
        warn("exact statistics are private: keep them in the house, or use `whosin gwas release`")
    sizes = {key: getattr(result, key) for key in ("cases", "controls", "left_out")}
    print_result(json, {"snps": len(result.snps), **sizes}, gwas.print_study, result)
