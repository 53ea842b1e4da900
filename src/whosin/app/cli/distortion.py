"""`whosin distortion`: the best mechanism for a level of privacy, or for a distortion."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whosin.app.cli.main import Draw, Json, print_result, progress_bar, refuse_options
from whosin.documents import read_object
from whosin.errors import InvalidInput, UnknownName, require_extras

if TYPE_CHECKING:
    from whosin.distortion import Curves
    from whosin.priors import Prior
    from whosin.spaces import Records


def distortion(
    rows: Annotated[int | None, typer.Option(help="How many rows.")] = None,
    values: Annotated[
        int | None, typer.Option(help="How many values a row can have (default 2).")
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            help="uniform (default), 0.7,0.3 for every row, or one for each row: 0.7,0.3;0.5,0.5"
        ),
    ] = None,
    prior_file: Annotated[
        Path | None,
        typer.Option(
            help="Or a file (JSON), as verify takes it: a prior, a set of priors, chains, blocks."
        ),
    ] = None,
    notion: Annotated[
        str | None,
        typer.Option(help="dp (default), identifiability or mutual-information; a curve has all."),
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="The level: ε, or nats.")] = None,
    distortion: Annotated[str | None, typer.Option(help="Or the expected distortion.")] = None,
    curve: Annotated[bool, typer.Option("--curve", help="Or the whole curve.")] = False,
    cost: Annotated[
        str | None,
        typer.Option(
            help="The cost of showing b instead of a, row by row: 0,1;2,0. Or hamming, "
            "absolute=0,1,5, total, any-row; hamming+missing=0.3"
        ),
    ] = None,
    points: Annotated[int, typer.Option(help="Points of a curve.")] = 13,
    save: Draw = None,
    json: Json = False,
) -> None:
    """Find the mechanism that changes the data least at a level of privacy, or the reverse."""
    from whosin.distortion import NOTION_NAMES, best, find_structure, stated_threshold
    from whosin.priors.table import read_record_prior
    from whosin.report import charts, levels

    require_extras("distortion")
    charts.check_path(save)
    if notion is not None and notion not in NOTION_NAMES:
        raise UnknownName("--notion", notion, NOTION_NAMES)
    ways = {"--epsilon": epsilon is not None, "--distortion": distortion is not None}
    given = [option for option, used in (ways | {"--curve": curve}).items() if used]
    if len(given) != 1:
        raise InvalidInput(
            f"{' and '.join(given)} cannot be given together" if given else "nothing is asked for",
            field=given[1] if given else "--epsilon",
            hint="give one of --epsilon, --distortion and --curve",
        )
    if prior_file is None:
        belief, space = _read_prior(prior or "uniform", rows, values)
        title = _chart_title(space, prior or "uniform")
    else:
        refuse_options({"--prior": prior}, "--prior-file")
        belief, space = read_record_prior(read_object(prior_file, prior_file.name), rows, values)
        title = _chart_title(space, prior_file.stem)
    matrix = _read_cost(cost)
    if curve:
        wanted = (notion,) if notion else NOTION_NAMES
        curves, optimum = _compute_curves(space, belief, wanted, points, matrix), None
        print_result(json, _curve_data(curves, space), levels.describe_curves, curves)
    else:
        optimum = best(space, belief, epsilon, distortion, notion or "dp", matrix)
        prior_facts: tuple[float | None, float | None] = None, None
        if optimum.prior is None:
            known = find_structure(space, belief)
            prior_facts = known.spread, stated_threshold(known)
        print_result(json, optimum.to_dict(), levels.describe_optimum, optimum, *prior_facts)
        if save is not None:
            curves = _compute_curves(space, belief, NOTION_NAMES, points, matrix)
    if save is not None:
        charts.save_chart(levels.distortion_chart(curves, title, optimum), save)


def _read_prior(text: str, rows: int | None, values: int | None) -> tuple[Prior, Records]:
    """`uniform`, one distribution for every row, or one for each row."""
    from whosin.priors import Independent, Uniform
    from whosin.spaces import Records

    if rows is None:
        hint = "say how many there are, for example --rows 12"
        raise InvalidInput("--rows is missing", field="--rows", hint=hint)
    space = Records(rows, 2 if values is None else values)
    if text == "uniform":
        return Uniform(), space
    listed = [[part.strip() for part in row.split(",")] for row in text.strip(";").split(";")]
    for row in listed:
        if len(row) != space.values:
            message = f"--prior {','.join(row)} does not fit rows of {space.values} values"
            hint = "write uniform, or one probability for each value"
            raise InvalidInput(message, field="--prior", value=text, hint=hint)
    if len(listed) not in (1, space.rows):
        message = f"--prior has {len(listed)} distributions and there are {space.rows} rows"
        hint = "write one for all rows, or one for each"
        raise InvalidInput(message, field="--prior", value=text, hint=hint)
    return Independent(listed if len(listed) > 1 else listed[0]), space


def _chart_title(space: Records, prior: str) -> str:
    words = prior if len(prior) <= 40 else prior[:37] + "…"
    return f"{space.rows} rows of {space.values} values, prior {words}"


def _read_cost(text: str | None) -> list[list[float]] | str | None:
    """A matrix, or the spelling of a cost."""
    from whosin.exact import rational

    if text is None or text[:1].isalpha():
        return text
    return [
        [float(rational(part.strip(), "--cost")) for part in row.split(",")]
        for row in text.split(";")
    ]


def _compute_curves(
    space: Records,
    prior: Prior,
    notions: tuple[str, ...],
    points: int,
    cost: list[list[float]] | str | None,
) -> Curves:
    from whosin.distortion import curves

    with progress_bar() as bar:
        task = bar.add_task("solving", total=points * len(notions))

        def tell(notion: str, done: int, total: int) -> None:
            before = notions.index(notion) * total
            bar.update(task, completed=before + done, description=notion)

        return curves(space, prior, notions, points, cost, tell)


def _curve_data(curves: Curves, space: Records) -> dict[str, object]:
    keys = ("distortion", "epsilon", "mutual_information", "gap", "lower", "upper", "given")
    return {
        "rows": space.rows,
        "values": space.values,
        "prior_spread": curves.spread,
        "threshold": curves.threshold,
        "curves": {
            notion: [{key: getattr(point, key) for key in keys} for point in points]
            for notion, points in curves.points.items()
        },
        "skipped": curves.skipped,
    }
