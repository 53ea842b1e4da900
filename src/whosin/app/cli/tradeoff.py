"""`whosin tradeoff`: the best mechanism for a level of privacy, or for a distortion."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from whosin.distortion import Curves
    from whosin.priors import Prior
    from whosin.spaces import Records


def tradeoff(
    rows: Annotated[int | None, typer.Option(help="How many rows.")] = None,
    values: Annotated[
        int | None, typer.Option(help="How many values a row can have (default 2).")
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="uniform (default), 0.7,0.3 for every row, or one a row: 0.7,0.3;0.5,0.5"
        ),
    ] = None,
    prior_file: Annotated[
        Path | None,
        typer.Option(help="Or a file (JSON): a prior, chain or block file, as verify takes them."),
    ] = None,
    notion: Annotated[
        str | None,
        typer.Option(help="dp (default), identifiability or mutual-information; all in a curve."),
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="The level: ε, or nats.")] = None,
    distortion: Annotated[str | None, typer.Option(help="Or the expected distortion.")] = None,
    curve: Annotated[bool, typer.Option("--curve", help="Or the whole curve.")] = False,
    cost: Annotated[
        str | None, typer.Option(help="What showing b for a costs, row by row: 0,1;2,0")
    ] = None,
    points: Annotated[int, typer.Option(help="Points of a curve.")] = 13,
    save: Annotated[Path | None, typer.Option(help="Draw: x.html, x.svg or x.png.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Find the mechanism that changes the data least at a level of privacy, or the reverse."""
    from whosin.app.cli.output import print_json
    from whosin.distortion import NOTIONS, best, stated_threshold, structure
    from whosin.documents import read_object
    from whosin.errors import InvalidInput, UnknownName
    from whosin.extras import needs
    from whosin.priors.files import on_records
    from whosin.report import charts
    from whosin.report import tradeoff as text

    needs("tradeoff")
    if save is not None:
        charts.check_path(save)
    if notion is not None and notion not in NOTIONS:
        raise UnknownName("--notion", notion, NOTIONS)
    given = [epsilon is not None, distortion is not None, curve]
    if sum(given) != 1:
        raise InvalidInput(
            "what to find", "exactly one of --epsilon, --distortion, --curve", sum(given)
        )
    if prior_file is None:
        belief, space = _in_words(prior or "uniform", rows, values)
        title = _title(space, prior or "uniform")
    elif prior is None:
        belief, space = on_records(read_object(prior_file, "file"), rows, values)
        title = _title(space, prior_file.stem)
    else:
        raise InvalidInput("--prior", "left out with --prior-file", prior)
    matrix = _matrix(cost)
    if curve:
        found = _curves(space, belief, (notion,) if notion else NOTIONS, points, matrix)
        if json:
            print_json(_curve_data(found, space))
        else:
            text.print_curves(found)
        if save is not None:
            charts.save(text.chart(found, title), save)
        return
    made = best(space, belief, epsilon, distortion, notion or "dp", matrix)
    if json:
        print_json(made.to_dict())
    else:
        known = structure(space, belief)
        text.print_optimum(made, known.spread, stated_threshold(known))
    if save is not None:
        drawn = _curves(space, belief, NOTIONS, points, matrix)
        charts.save(text.chart(drawn, title, made), save)


def _in_words(text: str, rows: int | None, values: int | None) -> tuple[Prior, Records]:
    """`uniform`, one distribution for every row, or one a row."""
    from whosin.errors import InvalidInput
    from whosin.priors import Independent, Uniform
    from whosin.spaces import Records

    if rows is None:
        raise InvalidInput("--rows", "given: how many rows", "nothing")
    space = Records(rows, 2 if values is None else values)
    if text == "uniform":
        return Uniform(), space
    listed = [[part.strip() for part in row.split(",")] for row in text.strip(";").split(";")]
    if any(len(row) != space.values for row in listed):
        raise InvalidInput(
            "--prior", f"uniform, or {space.values} probabilities, as --values says", repr(text)
        )
    if len(listed) not in (1, space.rows):
        raise InvalidInput("--prior", f"one distribution, or {space.rows}, one a row", len(listed))
    return Independent(listed if len(listed) > 1 else listed[0]), space


def _title(space: Records, prior: str) -> str:
    words = prior if len(prior) <= 40 else prior[:37] + "…"
    return f"{space.rows} rows of {space.values} values, prior {words}"


def _matrix(text: str | None) -> list[list[float]] | None:
    from whosin.exact import rational

    if text is None:
        return None
    return [
        [float(rational(part.strip(), "--cost")) for part in row.split(",")]
        for row in text.split(";")
    ]


def _curves(
    space: Records,
    prior: Prior,
    notions: tuple[str, ...],
    points: int,
    cost: list[list[float]] | None,
) -> Curves:
    from rich.console import Console
    from rich.progress import Progress

    from whosin.distortion import curves

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("solving", total=points * len(notions))

        def show(notion: str, done: int, total: int) -> None:
            place = notions.index(notion)
            bar.update(task, completed=place * total + done, description=notion)

        return curves(space, prior, notions, points, cost, show)


def _curve_data(found: Curves, space: Records) -> dict[str, object]:
    keys = ("distortion", "epsilon", "mutual_information", "gap", "lower", "upper", "given")
    return {
        "rows": space.rows,
        "values": space.values,
        "prior_spread": found.spread,
        "threshold": found.threshold,
        "curves": {
            notion: [{key: getattr(point, key) for key in keys} for point in points]
            for notion, points in found.points.items()
        },
        "skipped": found.skipped,
    }
