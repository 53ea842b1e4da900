"""What the commands share: options, the plan of a release, progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli.output import progress_bar

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
WITHOUT = ("size-known", "linked", "known", "uninformed", "family", "people", "delta")
"""Options that a study does not take, since everyone knows how many cases there are."""


def plan_of(target: Mapping[str, Any], adversary: Mapping[str, Any]) -> Plan:
    """The plan: everyone knows how many cases there are."""
    from whosin.calibration import read_plan

    return read_plan({**adversary, "size-known": True}, target)


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
    """A bar that is told how much of a work is done."""
    with progress_bar() as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
