"""`whosin explain`, `whosin notions` and `whosin cite`: what an ε means, the map of notions, the
sources.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from inspect import Parameter, isfunction, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli.main import Draw, Json, add_options, print_result, refuse_options
from whosin.errors import InvalidInput, UnknownName, WhosinError, invalid_value

if TYPE_CHECKING:
    from whosin.bridges import Guarantee
    from whosin.curves import TradeOff
    from whosin.curves.epsilon_meaning import Sufficiency


DEFAULT_DELTA = "1e-6"
MAX_EXPLAINED_RHO = 1_000
MAX_EXPLAINED_NOISE = 1_000_000
"""The largest noise that is explained, divided by the sensitivity."""


@add_options("target", without=("epsilon", "delta", "rho", "reserve"))
def explain(
    target: Mapping[str, Any],
    epsilon: Annotated[str | None, typer.Option(help="ε in nats.")] = None,
    rho: Annotated[
        str | None,
        typer.Option(help="Or ρ of zCDP, at δ = 1e-6 by default; with -m the target of that name."),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Or another tool's budget or accountant: module:name or file.py:name.",
        ),
    ] = None,
    delta: Annotated[str | None, typer.Option(help="δ of an (ε, δ) guarantee.")] = None,
    max_rows: Annotated[
        int, typer.Option(help="With --from: how many rows a person has, where rows are protected.")
    ] = 1,
    multiplier: Annotated[
        str | None, typer.Option(help="Or a process: its noise divided by the sensitivity.")
    ] = None,
    noise: Annotated[
        str, typer.Option(help="With --multiplier: gaussian, laplace or discrete-gaussian.")
    ] = "gaussian",
    sample_rate: Annotated[
        str | None, typer.Option(help="With --multiplier: the sampling rate of a step.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="With --multiplier: how many steps.")] = None,
    for_: Annotated[
        str | None, typer.Option("--for", help="In words for a resident, analyst or officer.")
    ] = None,
    prior: Annotated[
        str | None, typer.Option(help="Priors to show: 0.05..0.5, or one such as 0.3.")
    ] = None,
    relation: Annotated[
        str | None, typer.Option(help="What ε is about: add-remove (default) or replace.")
    ] = None,
    secret: Annotated[
        str, typer.Option(help="membership: who is in; value: what the rows of someone in it say.")
    ] = "membership",
    ledger: Annotated[
        str | None, typer.Option(help="With --from: debit this ledger, before you publish.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="The dataset's name in it.")] = None,
    title: Annotated[str | None, typer.Option(help="What will be published.")] = None,
    save: Draw = None,
    json: Json = False,
) -> None:
    """Say in beliefs what an ε or a ρ allows: for each prior the largest posterior, by adversary.

    --from reads the ε out of an object of OpenDP, dp-accounting, Opacus, JAX-Privacy, Tumult
    Analytics, PipelineDP, SmartNoise SQL or riskcal; a function without arguments is called.
    --multiplier is noise in as many --steps, such as DP-SGD's. --for says the same numbers to a
    resident, an analyst or a data protection officer. With a target it says whether all this is
    enough for it, for someone with a belief in --prior, and which ε would be.
    """
    from whosin.curves.epsilon_meaning import explain_epsilon
    from whosin.exact import number_range, rational
    from whosin.report import charts, explanation
    from whosin.report.explanation import explanation_chart

    charts.check_path(save)
    if for_ is not None:
        explanation.check_audience(for_)
    band = number_range(prior, "--prior") if prior is not None else None
    if rho is not None and "candidates" in target:
        target, rho = {**target, "rho": rho}, None
    sources = {"--from": from_, "--multiplier": multiplier, "--rho": rho, "--epsilon": epsilon}
    only_with = {
        "--sample-rate": (sample_rate, ("--multiplier",)),
        "--steps": (steps, ("--multiplier",)),
        "--relation": (relation, ("--epsilon", "--rho")),
        "--max-rows": (None if max_rows == 1 else max_rows, ("--from",)),
    }
    _check_source(sources, only_with)
    if from_ is not None:
        source = _explain_tool(from_, delta, max_rows, with_curve=bool(target))
    elif multiplier is not None:
        source = _explain_process(multiplier, delta, noise, sample_rate, steps)
    elif rho is not None:
        source = explain_zcdp(rational(rho, "--rho"), delta, relation)
    else:
        level, failing = rational(epsilon, "--epsilon"), rational(delta or "0", "--delta")
        source = ExplainedBudget(level, failing, relation or "add-remove")
    numbers = source.epsilon, source.delta, source.relation
    explained = explain_epsilon(*numbers, band, source.curve, secret)
    verdict = check_target(target, prior, source, secret) if target else None
    _debit_ledger(source.stated, ledger, dataset, title)
    data = explained.to_dict() | ({} if rho is None else {"rho": float(source.rho)})
    data |= {} if source.stated is None else {"from": source.stated.to_dict()}
    data |= {} if verdict is None else {"target": explanation.verdict_data(verdict)}
    if for_ is None:
        print_result(json, data, explanation.describe_explanation, explained, verdict)
    else:
        data |= {"audience": for_, "words": explanation.audience_lines(explained, for_)}
        print_result(json, data, explanation.describe_audience, explained, for_, verdict)
    if save is not None:
        charts.save_chart(explanation_chart(explained, verdict, band), save)


def _check_source(
    sources: Mapping[str, object], only_with: Mapping[str, tuple[object, tuple[str, ...]]]
) -> None:
    """One thing is explained, and options that belong to another one are refused."""
    given = [option for option, value in sources.items() if value is not None]
    if not given:
        hint = "give --epsilon, --rho, --multiplier or --from"
        raise InvalidInput("there is no ε to explain", field="--epsilon", hint=hint)
    for option in given[1:]:
        refuse_options({option: sources[option]}, given[0])
    for option, (value, owners) in only_with.items():
        if given[0] not in owners:
            refuse_options({option: value}, given[0])


@dataclass(frozen=True)
class ExplainedBudget:
    """What is explained: (ε, δ), which tool says so, and what is known beyond the two numbers."""

    epsilon: Fraction
    delta: Fraction
    relation: str
    stated: Guarantee | None = None
    curve: TradeOff | None = None
    rho: Fraction = Fraction(0)


def explain_zcdp(rho: Fraction, delta: object, relation: str | None) -> ExplainedBudget:
    """zCDP at a δ: the least ε that is proved for it, and what tests reach by its ε at other δ."""
    from whosin.bridges import Guarantee, read_curve
    from whosin.exact import rational, read_ranged

    if not 0 < rho <= MAX_EXPLAINED_RHO:
        raise invalid_value("--rho", f"above 0 and at most {MAX_EXPLAINED_RHO}", float(rho))
    failing = read_ranged(delta or DEFAULT_DELTA, "--delta", "strictly between 0 and 1")
    stated = Guarantee("zCDP", "", math.inf, Fraction(0), relation or "add-remove", rho, "ρ")
    numbers = rational(stated.at(failing).epsilon), failing, stated.relation
    return ExplainedBudget(*numbers, curve=read_curve(stated), rho=rho)


def _explain_process(
    multiplier: str, delta: str | None, noise: str, sample_rate: str | None, steps: int | None
) -> ExplainedBudget:
    """Noise in several steps: ε in both directions, and what tests reach."""
    from whosin.app.cli.plan import read_process
    from whosin.calibration.accounting import MIN_MULTIPLIER
    from whosin.curves import process_curve
    from whosin.exact import rational, read_ranged

    scale = rational(multiplier, "--multiplier")
    if not rational(MIN_MULTIPLIER) <= scale <= MAX_EXPLAINED_NOISE:
        raise invalid_value(
            "--multiplier", f"from {MIN_MULTIPLIER:g} to {MAX_EXPLAINED_NOISE:,}", multiplier
        )
    if delta is None:
        raise InvalidInput(
            "noise in steps has an ε for each δ",
            field="--delta",
            hint="choose one, for example --delta 1e-6",
        )
    process = read_process(noise, sample_rate, steps)
    failing = read_ranged(delta, "--delta", "strictly between 0 and 1")
    curves = [process_curve(process, float(scale), reverse=back) for back in (False, True)]
    level = max(each.epsilon(failing) for each in curves)
    if level == math.inf:
        raise InvalidInput(
            f"this noise has no finite ε at a δ of {delta}",
            field="--delta",
            value=delta,
            hint="choose a larger one",
        )
    return ExplainedBudget(Fraction(level), failing, "add-remove", None, curves[0])


def _explain_tool(
    target: str, delta: str | None, max_rows: int, *, with_curve: bool
) -> ExplainedBudget:
    """What an object of another tool says; a ρ without a δ is read at the δ that is asked for."""
    from whosin.app.cli.main import load_object, user_code
    from whosin.bridges import read, read_curve
    from whosin.errors import at
    from whosin.exact import rational

    with at("--from"), user_code():
        value = load_object(target, "what it names")
        if isfunction(value):
            value = _call_function(value)
        guarantee: Guarantee = read(value, delta=delta, max_rows=max_rows)
        known: TradeOff | None = read_curve(value, max_rows=max_rows) if with_curve else None
    if guarantee.epsilon == float("inf"):
        raise InvalidInput(
            "the tool states ρ alone, which has an ε for each δ",
            field="--delta",
            hint="choose one, for example --delta 1e-6",
        )
    numbers = rational(guarantee.epsilon), guarantee.delta, guarantee.relation
    return ExplainedBudget(*numbers, guarantee, known)


def _call_function(function: Any) -> Any:
    """What a function without arguments returns; whatever goes wrong is one message."""
    several = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    needed = [
        each.name
        for each in signature(function).parameters.values()
        if each.default is Parameter.empty and each.kind not in several
    ]
    if needed:
        raise InvalidInput(
            f"the function needs arguments: {', '.join(needed)}",
            field="--from",
            hint="name an object, or a function without arguments",
        )
    try:
        return function()
    except WhosinError:
        raise
    except Exception as error:
        words = " ".join(str(error).split())[:200]
        raise InvalidInput(
            f"the function raised {type(error).__name__}: {words}", field="--from"
        ) from error


def check_target(
    words: Mapping[str, Any],
    prior: str | None,
    source: ExplainedBudget,
    secret: str = "membership",
) -> Sufficiency:
    """Whether it is enough for the stated target, for someone with this prior."""
    from whosin.calibration import read_adversary, read_target
    from whosin.curves.epsilon_meaning import check_sufficiency

    target = read_target(words)
    known: dict[str, Any] = {"size-known": True} if source.relation == "replace" else {}
    known = known if secret == "membership" else {"secret": secret}
    family = read_adversary({"prior": prior, **known}, target)
    try:
        numbers = source.epsilon, source.delta, source.relation
        return check_sufficiency(target, family, *numbers, source.curve)
    except WhosinError as error:
        delta = getattr(error, "field", "") == "delta"
        error.path = error.path or f"target.{'delta' if delta else target.words_taken[0]}"
        raise


def _debit_ledger(
    stated: Guarantee | None, ledger: str | None, dataset: str | None, title: str | None
) -> None:
    """A debit is for another tool's release, and names the ledger, the dataset and what is
    published."""
    named = {"--ledger": ledger, "--dataset": dataset, "--title": title}
    if not any(named.values()):
        return
    if stated is None or ledger is None or dataset is None or title is None:
        missing = "--from" if stated is None else next(key for key in named if not named[key])
        raise InvalidInput(
            f"a debit needs {missing} too",
            field=missing,
            hint="give --from, --ledger, --dataset and --title together",
        )
    from whosin.bridges import debit_guarantee
    from whosin.ledger import Ledger

    with Ledger(ledger, create=False) as opened:
        debit_guarantee(opened, dataset, stated, title)


def notions(save: Draw = None, json: Json = False) -> None:
    """Show which level of one notion of privacy gives which level of another."""
    from whosin.report import charts, levels
    from whosin.theorems.notion_map import NOTION_BARRIERS, NOTION_EDGES

    charts.check_path(save)
    implications, counterexamples = map(asdict, NOTION_EDGES), map(asdict, NOTION_BARRIERS)
    data = {"implications": [*implications], "counterexamples": [*counterexamples]}
    print_result(json, data, levels.describe_map)
    if save is not None:
        charts.save_chart(charts.notion_chart(), save)


def cite(
    numbers: Annotated[
        list[str] | None, typer.Argument(help="Theorems such as T4; all by default.")
    ] = None,
    bibtex: Annotated[bool, typer.Option("--bibtex", help="Print bibliography entries.")] = False,
    json: Json = False,
) -> None:
    """Print the theorems whosin relies on, where they are proved, and the papers."""
    from whosin.references import PAPERS, THEOREMS
    from whosin.report.levels import describe_references

    for number in numbers or []:
        if number not in THEOREMS:
            raise UnknownName("theorem", number, THEOREMS)
    theorems = [THEOREMS[number] for number in numbers or THEOREMS]
    keys = dict.fromkeys(key for theorem in theorems for key in theorem.papers)
    papers = [PAPERS[key] for key in (keys if numbers else PAPERS)]
    if bibtex and not json:
        print("\n".join(paper.bibtex() for paper in papers))
        return
    data = {"theorems": [*map(asdict, theorems)], "papers": [*map(asdict, papers)]}
    print_result(json, data, describe_references, theorems, papers)
