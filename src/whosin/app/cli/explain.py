"""`whosin explain`: what an ε means for beliefs."""

from __future__ import annotations

from inspect import isfunction
from typing import TYPE_CHECKING, Annotated

import typer

from whosin.app.cli.options import Draw, Json
from whosin.app.cli.output import print_result
from whosin.errors import InvalidInput

if TYPE_CHECKING:
    from whosin.bridges import Guarantee


def explain(
    epsilon: Annotated[str | None, typer.Option(help="ε in nats.")] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Or another tool's budget or accountant: module:name or file.py:name.",
        ),
    ] = None,
    delta: Annotated[str | None, typer.Option(help="δ of an (ε, δ) guarantee.")] = None,
    rows: Annotated[
        int, typer.Option(help="With --from: the rows of a person, where rows are protected.")
    ] = 1,
    for_: Annotated[
        str | None, typer.Option("--for", help="In words for a resident, analyst or officer.")
    ] = None,
    prior: Annotated[
        str | None, typer.Option(help="Priors to show: 0.05..0.5, or one such as 0.3.")
    ] = None,
    relation: Annotated[
        str | None, typer.Option(help="What ε is about: add-remove (default) or replace.")
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="With --from: debit this ledger, before you publish.")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="The dataset's name in it.")] = None,
    title: Annotated[str | None, typer.Option(help="What will be published.")] = None,
    save: Draw = None,
    json: Json = False,
) -> None:
    """Say in beliefs what an ε allows: for each prior the largest posterior, by adversary.

    --from reads the ε out of an object of OpenDP, dp-accounting, Opacus, JAX-Privacy, Tumult
    Analytics, PipelineDP, SmartNoise SQL or riskcal; a function without arguments is called. --for
    says the same numbers to a resident, an analyst or a data protection officer.
    """
    from whosin.bridges import debit
    from whosin.exact import number_range, rational
    from whosin.report import audiences, charts, text
    from whosin.report.explanation import explanation

    if save is not None:
        charts.check_path(save)
    if for_ is not None:
        audiences.check(for_)
    band = number_range(prior, "--prior") if prior is not None else None
    stated: Guarantee | None = None
    if from_ is not None:
        for option, value in {"--epsilon": epsilon, "--relation": relation}.items():
            if value is not None:
                raise InvalidInput(option, "left out with --from, which says it", value)
        stated = _read(from_, delta, rows)
        level, failing, about = rational(stated.epsilon), stated.delta, stated.relation
    else:
        if epsilon is None:
            raise InvalidInput("--epsilon", "given, or --from", "nothing")
        level, failing = rational(epsilon, "--epsilon"), rational(delta or "0", "--delta")
        about = relation or "add-remove"
    explained = explanation(level, failing, about, band)
    _check_debit(stated, ledger, dataset, title)
    if ledger is not None:
        from whosin.ledger import Ledger

        assert stated is not None and dataset is not None and title is not None
        with Ledger(ledger, create=False) as opened:
            debit(opened, dataset, stated, title)
    data = explained.to_dict() | ({} if stated is None else {"from": stated.to_dict()})
    data |= {} if for_ is None else {"audience": for_, "words": audiences.words(explained, for_)}
    show = text.print_explanation if for_ is None else audiences.print_words
    print_result(json, data, show, explained, *([] if for_ is None else [for_]))
    if save is not None:
        low, high = (float(end) for end in band or (0, 1))
        title = f"What ε = {explained.epsilon:g} ({about}) means"
        charts.save(charts.belief_chart(explained.curves(), (low, high), title), save)


def _read(target: str, delta: str | None, rows: int) -> Guarantee:
    """What an object of another tool says; a ρ without a δ is read at the δ that is asked for."""
    from whosin.app.cli.subjects import load
    from whosin.app.cli.user_code import user_code
    from whosin.bridges import read
    from whosin.errors import at

    with at("--from"):
        with user_code():
            value = load(target)
            if callable(value) and not isinstance(value, type) and isfunction(value):
                value = value()
            guarantee: Guarantee = read(value, delta=delta, rows=rows)
        if guarantee.epsilon == float("inf"):
            raise InvalidInput("delta", "given with --delta: the tool states ρ alone", "nothing")
    return guarantee


def _check_debit(
    stated: Guarantee | None, ledger: str | None, dataset: str | None, title: str | None
) -> None:
    """A debit names the ledger, the dataset and what is published, and is of another tool."""
    named = {"--ledger": ledger, "--dataset": dataset, "--title": title}
    if any(named.values()) and (stated is None or not all(named.values())):
        missing = "--from" if stated is None else next(key for key in named if not named[key])
        raise InvalidInput(missing, "given too: a debit needs it", "nothing")
