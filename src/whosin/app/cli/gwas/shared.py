"""What the commands share: options, the plan of a release, progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from whosin.calibration import Plan

StudyPath = Annotated[
    Path, typer.Argument(metavar="STUDY", help="PLINK files (with or without .bed), .vcf, or .tsv.")
]
Phenotypes = Annotated[
    Path | None, typer.Option(help="Who is a case: a file with FID, IID and 1 or 2.")
]
Relation = Annotated[
    str,
    typer.Option(help="label-swap (hides who is a case) or genotype (hides anyone's genotype)."),
]
GammaOption = Annotated[str | None, typer.Option(help="The most a belief may grow, ×γ.")]
PosteriorOption = Annotated[str | None, typer.Option(help="Or the most sure they may become.")]
EpsilonOption = Annotated[str | None, typer.Option(help="Or plain ε.")]
Prior = Annotated[str | None, typer.Option(help="How sure they may be already: 0.5, or 0.05..0.5.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def plan_of(
    gamma: str | None, posterior: str | None, epsilon: str | None, prior: str | None
) -> Plan:
    """The plan: everyone knows how many cases there are."""
    from whosin.app.cli import adversary
    from whosin.calibration import calibrate

    given = {"gamma": gamma, "posterior": posterior, "epsilon": epsilon}
    target = adversary.target(**given, among=tuple(given))  # type: ignore[arg-type]
    return calibrate(target, adversary.family(target, prior, size_known=True))


def numbers(text: str, field: str) -> list[int]:
    """Whole numbers with commas between them."""
    from whosin.validation import spelled_whole

    return [
        spelled_whole(part.strip().replace("_", ""), field)
        for part in text.split(",")
        if part.strip()
    ]


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, where that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
