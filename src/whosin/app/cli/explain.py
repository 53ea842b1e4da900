"""`whosin explain`, `whosin notions` and `whosin cite`: what an ε means, the map of notions, the
sources.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from inspect import Parameter, isfunction, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli.main import (
    Draw,
    Json,
    ProcessOptions,
    add_options,
    print_result,
    refuse_options,
)
from whosin.errors import InvalidInput, UnknownName, WhosinError, invalid_value

if TYPE_CHECKING:
    from whosin.bridges import Guarantee
    from whosin.curves import TradeOff
    from whosin.curves.epsilon_meaning import Sufficiency


DEFAULT_DELTA = "1e-6"
MAX_EXPLAINED_RHO = 1_000
MAX_EXPLAINED_NOISE = 1_000_000
"""The largest noise that is explained, divided by the sensitivity."""


@dataclass(frozen=True)
class SourceOptions:
    """What is explained, as options say it: one of an ε, a ρ, a process, another tool's budget."""

    process: ProcessOptions
    epsilon: Annotated[str | None, typer.Option(help="ε in nats.")] = None
    rho: Annotated[
        str | None,
        typer.Option(help="Or ρ of zCDP, at δ = 1e-6 by default; with -m the target of that name."),
    ] = None
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Or another tool's budget or accountant: module:name or file.py:name.",
        ),
    ] = None
    delta: Annotated[str | None, typer.Option(help="δ of an (ε, δ) guarantee.")] = None
    max_rows: Annotated[
        int, typer.Option(help="With --from: how many rows a person has, where rows are protected.")
    ] = 1
    multiplier: Annotated[
        str | None, typer.Option(help="Or a process: its noise divided by the sensitivity.")
    ] = None
    relation: Annotated[
        str | None, typer.Option(help="What ε is about: add-remove (default) or replace.")
    ] = None

    def settle(self, target: Mapping[str, Any]) -> tuple[SourceOptions, Mapping[str, Any]]:
        """The same, and the target; with a number of candidates a ρ is that of the target. One
        thing is explained, and options that belong to another one are refused."""
        source = self
        if self.rho is not None and "candidates" in target:
            source, target = replace(self, rho=None), {**target, "rho": self.rho}
        sources = {"--from": source.from_, "--multiplier": source.multiplier}
        sources |= {"--rho": source.rho, "--epsilon": source.epsilon}
        given = [option for option, value in sources.items() if value is not None]
        if not given:
            hint = "give --epsilon, --rho, --multiplier or --from"
            raise InvalidInput("there is no ε to explain", field="--epsilon", hint=hint)
        for option in given[1:]:
            refuse_options({option: sources[option]}, given[0])
        if given[0] != "--multiplier":
            steps = {"--sample-rate": self.process.sample_rate, "--steps": self.process.steps}
            refuse_options(steps, given[0])
        if given[0] not in ("--epsilon", "--rho"):
            refuse_options({"--relation": self.relation}, given[0])
        if given[0] != "--from" and self.max_rows != 1:
            refuse_options({"--max-rows": self.max_rows}, given[0])
        return source, target

    def read(self, *, with_curve: bool) -> ExplainedBudget:
        """(ε, δ) and what else is known, with what tests reach where that is wanted."""
        from whosin.exact import rational

        if self.from_ is not None:
            return _explain_tool(self.from_, self.delta, self.max_rows, with_curve=with_curve)
        if self.multiplier is not None:
            return self._explain_process(self.multiplier)
        if self.rho is not None:
            return explain_zcdp(rational(self.rho, "--rho"), self.delta, self.relation)
        level, failing = rational(self.epsilon, "--epsilon"), rational(self.delta or "0", "--delta")
        return ExplainedBudget(level, failing, self.relation or "add-remove")

    def _explain_process(self, multiplier: str) -> ExplainedBudget:
        """Noise in several steps: ε in both directions, and what tests reach."""
        from whosin.calibration.accounting import MIN_MULTIPLIER
        from whosin.curves import process_curve
        from whosin.exact import rational, read_ranged

        scale = rational(multiplier, "--multiplier")
        if not rational(MIN_MULTIPLIER) <= scale <= MAX_EXPLAINED_NOISE:
            accepted = f"from {MIN_MULTIPLIER:g} to {MAX_EXPLAINED_NOISE:,}"
            raise invalid_value("--multiplier", accepted, multiplier)
        hint = "choose one, for example --delta 1e-6"
        if self.delta is None:
            message = "noise in steps has an ε for each δ"
            raise InvalidInput(message, field="--delta", hint=hint)
        process = self.process.read()
        failing = read_ranged(self.delta, "--delta", "strictly between 0 and 1")
        curves = [process_curve(process, float(scale), reverse=back) for back in (False, True)]
        level = max(each.epsilon(failing) for each in curves)
        if level == math.inf:
            message = f"this noise has no finite ε at a δ of {self.delta}"
            hint = "choose a larger one"
            raise InvalidInput(message, field="--delta", value=self.delta, hint=hint)
        return ExplainedBudget(Fraction(level), failing, "add-remove", None, curves[0])


@dataclass(frozen=True)
class DebitOptions:
    """A debit for another tool's release: it names the ledger, the dataset and what is
    published."""

    ledger: Annotated[
        str | None, typer.Option(help="With --from: debit this ledger, before you publish.")
    ] = None
    dataset: Annotated[str | None, typer.Option(help="The dataset's name in it.")] = None
    title: Annotated[str | None, typer.Option(help="What will be published.")] = None

    def pay(self, stated: Guarantee | None) -> None:
        """Debit what another tool states, where a ledger is named."""
        named = {"--ledger": self.ledger, "--dataset": self.dataset, "--title": self.title}
        missing = [option for option, value in named.items() if not value]
        if len(missing) == len(named):
            return
        if stated is None or missing:
            field = "--from" if stated is None else missing[0]
            hint = "give --from, --ledger, --dataset and --title together"
            raise InvalidInput(f"a debit needs {field} too", field=field, hint=hint)
        from whosin.bridges import debit_guarantee
        from whosin.ledger import Ledger

        with Ledger(str(self.ledger), create=False) as opened:
            debit_guarantee(opened, str(self.dataset), stated, str(self.title))


@add_options(
    "target",
    without=("epsilon", "delta", "rho", "reserve"),
    source=add_options(process=ProcessOptions)(SourceOptions),
    debit=DebitOptions,
)
def explain(
    target: Mapping[str, Any],
    source: SourceOptions,
    for_: Annotated[
        str | None, typer.Option("--for", help="In words for a resident, analyst or officer.")
    ] = None,
    prior: Annotated[
        str | None, typer.Option(help="Priors to show: 0.05..0.5, or one such as 0.3.")
    ] = None,
    secret: Annotated[
        str, typer.Option(help="membership: who is in; value: what the rows of someone in it say.")
    ] = "membership",
    scenarios: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    save: Draw = None,
    json: Json = False,
    *,
    debit: DebitOptions,
) -> None:
    """Say in beliefs what an ε or a ρ allows: for each prior the largest posterior, by adversary.

    --from reads the ε out of an object of OpenDP, dp-accounting, Opacus, JAX-Privacy, Tumult
    Analytics, PipelineDP, SmartNoise SQL or riskcal; a function without arguments is called.
    --multiplier is noise in as many --steps, such as DP-SGD's. --for says the same numbers to a
    resident, an analyst or a data protection officer. With a target it says whether all this is
    enough for it, for someone with a belief in --prior, and which ε would be.
    """
    from whosin.curves.epsilon_meaning import explain_epsilon
    from whosin.exact import number_range
    from whosin.report import charts, explanation
    from whosin.report.explanation import explanation_chart

    if scenarios:
        message = f"an ε is explained, and {scenarios[0]!r} is none"
        hint = f"whosin evidence {scenarios[0]} explains a scenario; or give --epsilon 0.5"
        raise InvalidInput(message, field="--epsilon", value=scenarios[0], hint=hint)
    charts.check_path(save)
    if for_ is not None:
        explanation.check_audience(for_)
    band = number_range(prior, "--prior") if prior is not None else None
    source, target = source.settle(target)
    budget = source.read(with_curve=bool(target))
    numbers = budget.epsilon, budget.delta, budget.relation
    explained = explain_epsilon(*numbers, band, budget.curve, secret)
    verdict = check_target(target, prior, budget, secret) if target else None
    debit.pay(budget.stated)
    data = explained.to_dict() | ({} if source.rho is None else {"rho": float(budget.rho)})
    data |= {} if budget.stated is None else {"from": budget.stated.to_dict()}
    data |= {} if verdict is None else {"target": explanation.verdict_data(verdict)}
    if for_ is None:
        print_result(json, data, explanation.describe_explanation, explained, verdict)
    else:
        data |= {"audience": for_, "words": explanation.audience_lines(explained, for_)}
        print_result(json, data, explanation.describe_audience, explained, for_, verdict)
    if save is not None:
        charts.save_chart(explanation_chart(explained, verdict, band), save)


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
        message = "the tool states ρ alone, which has an ε for each δ"
        raise InvalidInput(message, field="--delta", hint="choose one, for example --delta 1e-6")
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
        message = f"the function needs arguments: {', '.join(needed)}"
        hint = "name an object, or a function without arguments"
        raise InvalidInput(message, field="--from", hint=hint)
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
