"""`whosin plan`: from who is looking and how sure they may become to the noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli.main import (
    Draw,
    Json,
    ProcessOptions,
    add_options,
    print_result,
    print_warning,
    refuse_options,
)
from whosin.documents import read_object
from whosin.errors import InvalidInput, WhosinError, invalid_value

if TYPE_CHECKING:
    from whosin.calibration import PlannedNoise, PlannedQuery, Process, Target
    from whosin.curves.epsilon_meaning import Explanation, Sufficiency
    from whosin.families import Family

MAX_WITHIN = 10**12


@dataclass(frozen=True)
class QueryOptions:
    """What is asked, as options say it."""

    query: Annotated[str | None, typer.Option(help="count (default), rows, sum or histogram.")] = (
        None
    )
    lower: Annotated[str, typer.Option(help="Clamp of a sum, from below.")] = "0"
    upper: Annotated[str, typer.Option(help="Clamp of a sum, from above.")] = "1"
    max_rows_per_group: Annotated[
        int, typer.Option(help="Contribution bound: the most rows of a person in a group.")
    ] = 1
    max_groups: Annotated[
        int, typer.Option(help="Contribution bound: the most groups of a histogram per person.")
    ] = 1

    def read(self) -> PlannedQuery:
        """The same as `calibrate` takes it."""
        from whosin.calibration import PlannedQuery
        from whosin.exact import rational

        ends = rational(self.lower, "--lower"), rational(self.upper, "--upper")
        bounds = self.max_rows_per_group, self.max_groups
        return PlannedQuery(self.query or "count", *ends, *bounds)


@add_options("target", "adversary", query=QueryOptions, process=ProcessOptions)
def plan(
    target: Mapping[str, Any],
    adversary: Mapping[str, Any],
    scenario: Annotated[
        Path | None, typer.Argument(help="With --accuracy: a scenario whose questions say within.")
    ] = None,
    accuracy: Annotated[
        bool, typer.Option("--accuracy", help="What the widths of a scenario's questions cost.")
    ] = False,
    *,
    query: QueryOptions,
    process: ProcessOptions,
    chain: Annotated[
        Path | None,
        typer.Option(help="Rows that depend on each other: a chain, network or pedigree file."),
    ] = None,
    within: Annotated[
        str | None, typer.Option(help="Accuracy first: 95% of answers within ± this; get ε.")
    ] = None,
    save: Draw = None,
    json: Json = False,
) -> None:
    """Say who may be looking and how sure they may become; get ε, the noise and the reasons.

    With --within it is the other way round: the least ε for answers that good, what anyone may then
    believe, and with a target whether that keeps it; SCENARIO --accuracy does so for all questions
    of a scenario that say within, and tells which of them its target allows. With --sample-rate
    and --steps it plans the noise multiplier of DP-SGD; with --chain the noise of a query over rows
    that depend on each other.
    """
    from whosin.calibration import read_adversary, read_plan, read_target
    from whosin.exact import rational
    from whosin.report import card, charts

    charts.check_path(save)
    if accuracy or scenario is not None:
        if not accuracy or scenario is None:
            message = "a scenario and --accuracy are given together"
            hint = "whosin plan scenario.toml --accuracy"
            raise InvalidInput(message, field="--accuracy", hint=hint)
        said = {f"--{word}": value for word, value in {**target, **adversary}.items()}
        unused = {"--chain": chain, "--steps": process.steps, "--save": save, "--within": within}
        refuse_options({**said, **unused, "--query": query.query}, "--accuracy")
        _plan_scenario(scenario, json=json)
        return
    asked = query.read()
    in_steps = {"--steps": process.steps, "--sample-rate": process.sample_rate}
    if within is not None:
        refuse_options({"--chain": chain, **in_steps, "--save": save}, "--within")
        _plan_accuracy(asked, rational(within, "--within"), target, adversary, json=json)
        return
    wanted = read_target(target)
    family = read_adversary(adversary, wanted)
    people = adversary.get("people")
    if chain is not None:
        refuse_options({"--delta": target.get("delta"), "--people": people, **in_steps}, "--chain")
        _plan_chain(wanted, family, chain, query.query, save, json=json)
        return
    failing = rational(target.get("delta", 0), "--delta")
    if people is not None and people < 1:
        raise invalid_value("--people", "at least 1", people)
    if people is not None and failing * people > 1:
        print_warning(
            f"a failure probability of {float(failing):g} is more than 1/n for {people} people: "
            "with a δ of that size someone may well be exposed"
        )
    if process.noise != "gaussian" and not process.given:
        message = f"--noise {process.noise} is for a process; a single query has its plan's noise"
        hint = "add --steps or --sample-rate, or leave it out"
        raise InvalidInput(message, field="--noise", value=process.noise, hint=hint)
    if process.given:
        _plan_process(wanted, process.read(), family, float(failing), save, json=json)
        return
    if not family.hides_others or not failing:
        adversary = {word: value for word, value in adversary.items() if word != "people"}
    planned = read_plan(adversary, target, asked)
    print_result(json, planned.to_dict(), card.describe_plan, planned)
    if save is not None:
        title = f"Whoever is looking {planned.target.words()}"
        charts.save_chart(card.plan_charts(planned, title)[0].draw(), save)


def _plan_accuracy(
    query: PlannedQuery,
    within: Fraction,
    target: Mapping[str, Any],
    adversary: Mapping[str, Any],
    *,
    json: bool,
) -> None:
    from whosin.report.explanation import describe_accuracy

    data, *found = measure_accuracy(query, within, target, adversary)
    print_result(json, data, describe_accuracy, query, float(within), *found)


def measure_accuracy(
    query: PlannedQuery,
    within: Fraction,
    target: Mapping[str, Any],
    adversary: Mapping[str, Any],
    name: str = "--within",
) -> tuple[dict[str, Any], PlannedNoise, Explanation, Sufficiency | None]:
    """The least ε, or ρ with a δ, for which 95% of answers are this good (F33): as data, its noise,
    what it means, and whether it keeps the target.

    Args:
        name: what errors call the width.
    """
    from whosin.app.cli.explain import ExplainedBudget, check_target, explain_zcdp
    from whosin.calibration import PlannedNoise
    from whosin.curves.epsilon_meaning import explain_epsilon
    from whosin.exact import number_range, round_up
    from whosin.report.explanation import verdict_data

    if not 0 <= within <= MAX_WITHIN:
        raise invalid_value(name, f"from 0 to {MAX_WITHIN:,}", float(within))
    secret = adversary.get("secret", "membership")
    replaced = adversary.get("size-known") or secret == "value"
    relation = "replace" if replaced else "add-remove"
    delta, prior = target.get("delta"), adversary.get("prior")
    noise = query.widest_noise(within, "laplace" if delta is None else "gaussian")
    if not noise.width:
        raise InvalidInput(
            f"95% of answers cannot be within ±{float(within):g}: there is no noise that small",
            field=name,
            value=float(within),
            hint="allow more",
        )
    if delta is None:
        cost = noise.cost(query.l1_sensitivity(relation))
        source = ExplainedBudget(Fraction(round_up(cost)), Fraction(0), relation)
    else:
        cost = noise.cost(query.squared_l2_sensitivity(relation))
        source = explain_zcdp(cost, delta, relation)
    band = number_range(prior, "--prior") if prior is not None else None
    numbers = source.epsilon, source.delta, relation
    explained = explain_epsilon(*numbers, band, source.curve, secret)
    words = {word: value for word, value in target.items() if word != "delta"}
    verdict = check_target(words, prior, source, secret) if words else None
    planned = PlannedNoise(noise.kind, noise.spread, noise.mean_error, float(within))
    data = {**explained.to_dict(), "within": float(within), "confidence": 0.95}
    data |= {"query": query.kind, "noise": asdict(planned)}
    data |= {} if delta is None else {"rho": round_up(cost)}
    data |= {} if verdict is None else {"target": verdict_data(verdict)}
    return data, planned, explained, verdict


def _plan_scenario(path: Path, *, json: bool) -> None:
    """What the widths of a scenario's questions cost, and which of them its target allows (F33)."""
    from whosin.app.cli.explain import ExplainedBudget, explain_zcdp
    from whosin.curves.epsilon_meaning import explain_epsilon
    from whosin.exact import round_up
    from whosin.release.accuracy import plan_widths
    from whosin.release.scenario import load_scenario
    from whosin.report.explanation import describe_widths

    loaded = load_scenario(path)
    planned, table = loaded.plan, loaded.open_table()
    with loaded.locate_errors(), loaded.at_budget():
        widths = plan_widths(table, planned, loaded.queries, loaded.period_budget())
    low, high = (getattr(planned.family, end, None) for end in ("low", "high"))
    band = None if low is None or high is None else (Fraction(low), Fraction(high))
    secret = "value" if planned.family.about_records else "membership"

    def explain(cost: Fraction) -> Explanation:
        if widths.gaussian:
            source = explain_zcdp(cost, planned.dp_delta, planned.relation)
        else:
            source = ExplainedBudget(Fraction(round_up(cost)), Fraction(0), planned.relation)
        numbers = source.epsilon, source.delta, planned.relation
        return explain_epsilon(*numbers, band, source.curve, secret)

    explained, whole = explain(widths.needed), explain(widths.total)
    data = {**explained.to_dict(), **widths.to_dict(), "confidence": 0.95}
    data |= {"rho": round_up(widths.needed)} if widths.gaussian else {}
    data |= {"target": {"enough": all(widths.fits), "promise": planned.target.words()}}
    print_result(json, data, describe_widths, widths, planned.target.words(), explained, whole)


def _plan_process(
    target: Target, process: Process, family: Family, delta: float, save: Draw, *, json: bool
) -> None:
    from whosin.calibration import calibrate_process
    from whosin.report import card, charts

    try:
        planned = calibrate_process(target, process, family, delta)
    except WhosinError as error:
        word = "delta" if getattr(error, "field", "") == "delta" else target.words_taken[0]
        error.path = error.path or f"target.{word}"
        raise
    data = {
        "noise_multiplier": planned.multiplier,
        **asdict(process),
        "bound": planned.bound,
        "goal": planned.goal,
        "grid": planned.grid,
        "delta": delta,
        "theorems": list(planned.theorems),
    }
    print_result(json, data, card.describe_process, planned, delta)
    if save is not None:
        charts.save_chart(card.process_chart(planned), save)


def _plan_chain(
    target: Target, family: Family, path: Path, query: str | None, save: Path | None, *, json: bool
) -> None:
    """The scale of the noise on a series, for a leakage that keeps the target (T14)."""
    from rich.console import Console

    from whosin.calibration import calibrate, planning
    from whosin.notions.reading import chain_file
    from whosin.report import card, charts

    series = chain_file(read_object(path, path.name), query)
    epsilon = calibrate(target, family).epsilon
    console = Console(stderr=True)
    with console.status("measuring the leakage of the series …"):
        planned = planning.plan_series(series.priors, series.space, series.statistic, epsilon)
    rows = series.space.rows
    data = asdict(planned) | {"query": series.query, "rows": rows}
    print_result(json, data, card.describe_chain_plan, planned, series.query, rows, target.words())
    if save is not None:
        scales = [planned.plain_scale / 2 * 1.35**step for step in range(12)]
        given = series.priors, series.space, series.statistic
        with console.status("drawing …"):
            levels = [planning.measure_leakage(*given, scale).value for scale in scales]
        points = list(zip(scales, map(float, levels), strict=True))
        charts.save_chart(charts.leakage_chart(points, planned, rows), save)
