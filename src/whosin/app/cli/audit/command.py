"""The options of `whosin audit`, which of its forms they ask for, and what it exits with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli.audit import files
from whosin.app.cli.audit.claims import Claim, read_claim, why_undecided
from whosin.app.cli.audit.synthetic import of_tables
from whosin.app.cli.audit.training import Loaded, Training, load_target, of_training
from whosin.app.cli.audit.worlds import (
    Inputs,
    find_subject,
    of_drawn,
    of_worlds,
    read_drawn,
    read_samples,
)
from whosin.app.cli.options import Draw, Json
from whosin.app.cli.output import print_json
from whosin.app.cli.user_code import user_code
from whosin.errors import InvalidInput

if TYPE_CHECKING:
    from whosin.app.cli.subjects import Subject


def audit(
    target: Annotated[
        str | None,
        typer.Argument(help="module:function, path/file.py:function, or a channel file (.json)."),
    ] = None,
    with_: Annotated[
        str | None, typer.Option("--with", help="The input with someone's data: 1, [1, 0, 1], …")
    ] = None,
    without: Annotated[str | None, typer.Option(help="The neighbouring input without.")] = None,
    queries: Annotated[
        int | None, typer.Option(help="Or search: the input is a vector of this many answers.")
    ] = None,
    relation: Annotated[
        str | None, typer.Option(help="With --queries: add-remove (default) or replace.")
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(help="Or module:function that yields (with, without) pairs to search."),
    ] = None,
    entities: Annotated[
        int | None, typer.Option(help="How many people there are, for a mechanism of whosin.")
    ] = None,
    drawn_with: Annotated[
        Path | None,
        typer.Option(help="Audit samples: a file of outputs with (.csv, .txt, .jsonl, .npy) …"),
    ] = None,
    drawn_without: Annotated[
        Path | None, typer.Option(help="… and one of as many outputs without, drawn afresh.")
    ] = None,
    repeats: Annotated[
        bool,
        typer.Option("--repeats", help="With --drawn-with: unrounded floats may come again."),
    ] = False,
    scores: Annotated[
        Path | None, typer.Option(help="Audit a model: CSV with the columns member and score.")
    ] = None,
    one_run: Annotated[
        Path | None,
        typer.Option(
            help="Audit one run: CSV with the columns included and score (and person, where one "
            "has several canaries); or a folder with one file for each run."
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(help="With --one-run: the probability of each inclusion (default 0.5)."),
    ] = None,
    known_rate: Annotated[
        bool, typer.Option("--known-rate", help="With --one-run: you tossed these coins.")
    ] = False,
    gaussian: Annotated[
        bool,
        typer.Option("--gaussian", help="With --one-run: bound μ; --at-most is then a μ."),
    ] = False,
    rows: Annotated[
        str | None,
        typer.Option(help="Audit a training, fit(rows): a CSV file or module:function."),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="With --rows and a CSV file: the column to predict.")
    ] = None,
    score: Annotated[
        str | None, typer.Option(help="With a fit: module:function, score(model, rows).")
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="With a fit: trainings to attack (default 1).")
    ] = None,
    shadows: Annotated[
        int | None, typer.Option(help="With a fit: trainings to learn from (default 8).")
    ] = None,
    canaries: Annotated[
        int | None, typer.Option(help="With a fit: rows that have a coin (default all).")
    ] = None,
    kind: Annotated[
        str | None, typer.Option(help="Of canaries: rows, mislabelled or outlying.")
    ] = None,
    synthetic: Annotated[
        tuple[Path, Path, Path] | None,
        typer.Option(help="Audit a synthetic table: CSV files train, holdout and synthetic."),
    ] = None,
    state: Annotated[
        Path | None, typer.Option(help="With a fit: keep coins and scores here, and resume.")
    ] = None,
    samples: Annotated[
        str, typer.Option(help="Draws of each world, all stages together.")
    ] = "100000",
    confidence: Annotated[str, typer.Option(help="With which the bounds hold.")] = "0.95",
    at_most: Annotated[
        str | None, typer.Option(help="A claim to attack, an ε: exit 1 when it is refuted.")
    ] = None,
    delta: Annotated[str | None, typer.Option(help="The δ of that claim.")] = None,
    stop: Annotated[
        bool, typer.Option("--stop", help="With a claim, --with and --without: stop when refuted.")
    ] = False,
    timing: Annotated[
        bool,
        typer.Option("--timing", help="With a function: the time of each call tells, too."),
    ] = False,
    against: Annotated[
        Path | None, typer.Option(help="Or the claim of a plan (whosin plan --json > plan.json).")
    ] = None,
    prior: Annotated[str, typer.Option(help="The prior belief to show a posterior for.")] = "0.5",
    seed: Annotated[int | None, typer.Option(help="For a repeatable run.")] = None,
    save: Draw = None,
    json: Json = False,
) -> None:
    """Attack a function that claims to be private, and bound its leakage from below.

    The function is m(input, size, rng) and returns `size` outputs, or one draw a call, m(input,
    rng) or m(input). Outputs may be anything, exceptions too. An event is sought on some of the
    samples and counted on the others, so the bound holds at the stated confidence. A claim is
    refuted (exit 1, with the event as a witness) or not refuted (exit 0), which is no proof of
    privacy; exit 4 (undecided) where nothing
    could be learnt, or the evidence could not have refuted the claim whatever leaks.
    What the function prints goes to standard error.

    With --rows (or where its module has `rows`) the function is fit(rows), and its training is
    attacked: coins decide who is in, shadow models learn what is usual, guesses are counted.
    """
    from whosin.exact import probability, rational
    from whosin.report import audit as report
    from whosin.report import charts

    if save is not None:
        charts.check_path(save)
    belief = float(probability(prior, "--prior"))
    claim = read_claim(at_most, delta, against)
    level = rational(confidence, "--confidence")
    inputs = Inputs(with_, without, queries, relation, pairs)
    training = Training(rows, score, label, runs, shadows, canaries, kind, state)
    drawn = read_drawn(drawn_with, drawn_without)
    form = _form(target, scores, one_run, synthetic, drawn, claim)
    loaded: Loaded | None = None
    if form == WORLDS and target is not None:
        with user_code():
            loaded = load_target(target)
        form = FIT if loaded is not None and loaded.is_fit(training) else WORLDS
    _check_options(form, inputs, training, entities, rate, known_rate, gaussian)
    if stop and (form != WORLDS or claim.epsilon is None or with_ is None):
        raise InvalidInput("--stop", "given with a claim, --with and --without", "without")
    for option, given, form_of in (("--timing", timing, WORLDS), ("--repeats", repeats, DRAWN)):
        if given and form != form_of:
            raise InvalidInput(option, f"given with {form_of}", "without")
    subject: Subject | None = None
    bounds: Any
    if form == DRAWN and drawn is not None:
        bounds = of_drawn(drawn, level, claim, seed, repeats)
    elif form == SCORES:
        bounds = files.of_scores(scores, level, claim.delta)  # type: ignore[arg-type]
    elif form == ONE_RUN:
        terms = {"known": known_rate, "gaussian": gaussian}
        bounds = files.of_run(one_run, level, claim.delta, rate, **terms)  # type: ignore[arg-type]
        if gaussian:
            _finish_curve(bounds, claim, json)
            return
    elif synthetic is not None:
        bounds = of_tables(synthetic, level, claim, seed)
    elif form == FIT and loaded is not None:
        with user_code():
            bounds = of_training(loaded, training, level, claim, seed)
    else:
        with user_code():
            named = None if loaded is None else loaded.named
            subject = find_subject(target, entities, claim.plan, named)
            size = read_samples(samples)
            bounds = of_worlds(subject, inputs, size, level, claim, seed, stop, timing)
    refuted = None if claim.epsilon is None else bounds.refutes(claim.epsilon)
    reason = why_undecided(bounds, claim) if refuted is False else None
    data = bounds.to_dict() | {"prior": belief, "posterior": bounds.posterior(belief), "seed": seed}
    if claim.epsilon is not None:
        data |= {"at_most": claim.epsilon, "refuted": refuted, "undecided": reason}
    if subject is not None and subject.channel is not None:
        pair = subject.exact(bounds.with_, bounds.without)
        data["exact"] = {"pair": pair, "epsilon": subject.level()}
    if json:
        print_json(data)
    else:
        named = {
            FIT: target,
            SYNTHETIC: "the synthetic table",
            DRAWN: "the sampled mechanism",
        }
        name = subject.name if subject else named.get(form, "the model")
        report.print_audit(
            bounds,
            str(name),
            claim.epsilon,
            refuted,
            belief,
            claim.plan,
            exact=data.get("exact"),
            undecided=reason,
        )
    if save is not None:
        charts.save(report.chart(bounds, claim.epsilon), save)
    if refuted:
        raise typer.Exit(1)
    if reason is not None:
        raise typer.Exit(4)


SCORES, ONE_RUN, SYNTHETIC = "--scores", "--one-run", "--synthetic"
FIT, WORLDS, DRAWN = "a fit", "a function", "--drawn-with"


def _form(
    target: str | None,
    scores: Path | None,
    one_run: Path | None,
    synthetic: object,
    drawn: object,
    claim: Claim,
) -> str:
    """What is to be audited: exactly one thing."""
    files = {SCORES: scores, ONE_RUN: one_run, SYNTHETIC: synthetic, DRAWN: drawn}
    given = [form for form, path in files.items() if path is not None]
    alone = target is not None or (claim.plan is not None and not given)
    if len(given) + alone != 1:
        accepted = (
            "one of module:function, --scores, --one-run, --synthetic, --drawn-with and "
            "--drawn-without, or --against with a plan alone"
        )
        several = given or target is not None
        raise InvalidInput("what to audit", accepted, "several" if several else "nothing")
    return given[0] if given else WORLDS


def _check_options(
    form: str,
    inputs: Inputs,
    training: Training,
    entities: int | None,
    rate: str | None,
    known: bool,
    gaussian: bool,
) -> None:
    """Refuse options of another form."""
    flags = {"--known-rate": known or None, "--gaussian": gaussian or None, "--rate": rate}
    for option, value in flags.items():
        if value is not None and form != ONE_RUN:
            raise InvalidInput(option, "given with --one-run", value)
    if form != WORLDS:
        words = {"with_": "--with"}
        given = {words.get(name, f"--{name}"): value for name, value in vars(inputs).items()}
        for option, value in (given | {"--entities": entities}).items():
            if value is not None:
                names = {FIT: "a fit", SYNTHETIC: SYNTHETIC, DRAWN: "drawn samples"}
                what = names.get(form, "scores")
                raise InvalidInput(option, f"left out with {what}", value)
    if form != FIT:
        for option, given_value in training.given().items():
            raise InvalidInput(option, "given with a function fit and its --rows", given_value)


def _finish_curve(run: Any, claim: Claim, json: bool) -> None:
    """Print a bound on μ, and exit by what it says of a claim."""
    from whosin.audit import GaussianCurve
    from whosin.report import audit as report

    if claim.plan is not None or claim.delta:
        option = "--against" if claim.plan is not None else "--delta"
        raise InvalidInput(option, "left out with --gaussian", claim.delta)
    refuted = None if claim.epsilon is None else run.refutes(GaussianCurve(claim.epsilon))
    reason = "nothing could be learnt" if refuted is False and run.blind else None
    if refuted is False and not run.blind and not run.could_refute(GaussianCurve(claim.epsilon)):  # type: ignore[arg-type]
        reason = f"{run.canaries:,} coins could not refute it, whatever leaks"
    if json:
        told = {"at_most": claim.epsilon, "refuted": refuted, "undecided": reason}
        print_json(run.to_dict() | (told if claim.epsilon is not None else {}))
    else:
        report.print_curve_run(run, claim.epsilon, refuted, reason)
    if refuted:
        raise typer.Exit(1)
    if reason is not None:
        raise typer.Exit(4)
