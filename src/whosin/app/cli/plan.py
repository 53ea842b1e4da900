"""`whosin plan`: from who is looking and how sure they may become to the noise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from whosin.calibration import Process, Target
    from whosin.families import Family


def plan(
    posterior: Annotated[str | None, typer.Option(help="The most sure they may become.")] = None,
    gamma: Annotated[str | None, typer.Option(help="Or the most a belief may grow, ×γ.")] = None,
    gain: Annotated[str | None, typer.Option(help="Or the most it may grow, as a sum.")] = None,
    advantage: Annotated[str | None, typer.Option(help="Or the largest TPR − FPR.")] = None,
    rho: Annotated[str | None, typer.Option(help="Or the most for one of m candidates.")] = None,
    m: Annotated[int | None, typer.Option("-m", help="How many candidates, with --rho.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Or plain ε.")] = None,
    hipaa: Annotated[
        bool, typer.Option("--hipaa", help="Or 1.5%, read out of HIPAA's safe harbour.")
    ] = False,
    prior: Annotated[
        str | None, typer.Option(help="How sure they may be already: 0.05..0.5, or 0.5.")
    ] = None,
    size_known: Annotated[
        bool, typer.Option("--size-known", help="They know how many are in the data.")
    ] = False,
    linked: Annotated[
        int | None, typer.Option(help="Up to so many people come and go together.")
    ] = None,
    family: Annotated[
        str | None, typer.Option(help="Or name the adversaries: at-most-known=10:0.1..0.9, …")
    ] = None,
    delta: Annotated[
        str | None, typer.Option(help="The promise may fail with this probability.")
    ] = None,
    query: Annotated[
        str | None, typer.Option(help="count (default), rows, sum or histogram.")
    ] = None,
    lower: Annotated[str, typer.Option(help="Clamp of a sum, from below.")] = "0",
    upper: Annotated[str, typer.Option(help="Clamp of a sum, from above.")] = "1",
    rows: Annotated[int, typer.Option(help="The most rows a person has.")] = 1,
    cells: Annotated[int, typer.Option(help="The most cells a person is in.")] = 1,
    entities: Annotated[
        int | None, typer.Option(help="How many people there are, at the least.")
    ] = None,
    noise: Annotated[
        str, typer.Option(help="With --steps: gaussian, laplace or discrete-gaussian.")
    ] = "gaussian",
    sample_rate: Annotated[
        str | None, typer.Option(help="DP-SGD: the sampling rate of a step.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="DP-SGD: how many steps.")] = None,
    chain: Annotated[
        Path | None, typer.Option(help="Rows of one series: a chain file (JSON).")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Draw: x.html, x.svg or x.png.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say who may be looking and how sure they may become; get ε, the noise and the reasons.

    With --sample-rate and --steps it plans the noise multiplier of DP-SGD; with --chain the noise
    of a query over rows that depend on each other.
    """
    from whosin.app.cli import adversary
    from whosin.app.cli.output import print_json, warn
    from whosin.calibration import PlannedQuery, calibrate
    from whosin.errors import InvalidInput
    from whosin.exact import rational
    from whosin.report import charts, text
    from whosin.report.card import curves

    if save is not None:
        charts.check_path(save)
    target = adversary.target(posterior, gamma, gain, advantage, rho, m, epsilon, hipaa)
    adversaries = adversary.family(target, prior, size_known, linked, family)
    if chain is not None:
        unused = {"--delta": delta, "--entities": entities, "--steps": steps}
        for option, value in (unused | {"--sample-rate": sample_rate}).items():
            if value is not None:
                raise InvalidInput(option, "left out with --chain", value)
        _plan_chain(target, adversaries, chain, query, save, json=json)
        return
    asked = PlannedQuery(
        query or "count", rational(lower, "--lower"), rational(upper, "--upper"), rows, cells
    )
    failing = rational(delta, "--delta") if delta is not None else rational(0)
    if entities is not None and entities < 1:
        raise InvalidInput("--entities", "at least 1", entities)
    if entities is not None and failing * entities > 1:
        warn(
            f"a failure probability of {float(failing):g} is more than 1/n for {entities} people: "
            "with so large a δ someone may well be exposed"
        )
    if noise != "gaussian" and sample_rate is None and steps is None:
        raise InvalidInput("--noise", "given with --steps or --sample-rate", noise)
    if sample_rate is not None or steps is not None:
        if save is not None:
            raise InvalidInput("--save", "left out with --steps and --sample-rate", save.name)
        process = _process(noise, sample_rate, steps)
        _plan_process(target, process, adversaries, float(failing), json=json)
        return
    made = calibrate(target, adversaries, float(failing), asked, entities)
    if json:
        print_json(made.to_dict())
    else:
        text.print_plan(made)
    if save is not None:
        band = tuple(float(end) for end in getattr(made.family, "bounds", (0, 1)))
        title = f"Whoever is looking {made.target.words()}"
        charts.save(charts.belief_chart(curves(made), (band[0], band[1]), title), save)


def _process(noise: str, sample_rate: str | None, steps: int | None) -> Process:
    from whosin.calibration import Process
    from whosin.exact import rational

    rate = float(rational(sample_rate, "--sample-rate")) if sample_rate is not None else 1.0
    return Process(noise, rate, 1 if steps is None else steps)


def _plan_process(
    target: Target, process: Process, family: Family, delta: float, *, json: bool
) -> None:
    from whosin.app.cli.output import print_json
    from whosin.calibration import calibrate_process
    from whosin.report import text

    made = calibrate_process(target, process, family, delta)
    if json:
        print_json(
            {
                "noise_multiplier": made.multiplier,
                "noise": process.noise,
                "sample_rate": process.sample_rate,
                "steps": process.steps,
                "bound": made.bound,
                "goal": made.goal,
                "grid": made.grid,
                "delta": delta,
                "theorems": list(made.theorems),
            }
        )
    else:
        text.print_process(made, delta)


def _plan_chain(
    target: Target, family: Family, path: Path, query: str | None, save: Path | None, *, json: bool
) -> None:
    """The scale of the noise on a series, for a leakage that keeps the target (T14)."""
    from dataclasses import asdict

    from rich.console import Console

    from whosin.app.cli.output import print_json
    from whosin.calibration import calibrate, chain_plans
    from whosin.documents import read_object
    from whosin.notions.files import chain_file
    from whosin.report import charts, text

    series = chain_file(read_object(path, "file"), query)
    epsilon = calibrate(target, family).epsilon
    console = Console(stderr=True)
    with console.status("measuring the leakage of the series …"):
        made = chain_plans.plan(series.chains, series.space, series.statistic, epsilon)
    if json:
        print_json(asdict(made) | {"query": series.query, "rows": series.space.rows})
    else:
        text.print_chain_plan(made, series.query, series.space.rows, target.words())
    if save is not None:
        scales = [made.plain_scale / 2 * 1.35**step for step in range(12)]
        points = []
        with console.status("drawing …"):
            for scale in scales:
                level = chain_plans.measured(series.chains, series.space, series.statistic, scale)
                points.append((scale, float(level.value)))
        charts.save(charts.leakage_chart(points, made, series.space.rows), save)
