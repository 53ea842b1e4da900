"""`whosin audit`: attack a mechanism, a training, scores or synthetic data, with bounds that hold.

`command` has the options and the exit codes, `claims` what is attacked, and one file each form of
the command: `worlds`, `files`, `training`, `synthetic`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli.audit_subjects import (
    Claim,
    Inputs,
    Loaded,
    Training,
    audit_function,
    audit_samples,
    audit_training,
    find_subject,
    load_target,
    read_claim,
    read_drawn,
    read_samples,
    why_undecided,
)
from whosin.app.cli.options import Draw, Json, print_json
from whosin.app.cli.user_code import user_code
from whosin.errors import at, invalid_value

if TYPE_CHECKING:
    from whosin.app.cli.audit_subjects import Subject
    from whosin.audit import SyntheticAudit


# Scores from files: of members and others, of one run, or a folder with a file for each run.
#
# Contract: cells are private: none is quoted. A column `person` joins the canaries of one person.


FLAG_WORDS = dict.fromkeys(("1", "1.0", "true", "yes"), True)
FLAG_WORDS |= dict.fromkeys(("0", "0.0", "false", "no"), False)
PERSON_COLUMN = "person"


def audit_scores_file(path: Path, confidence: object, delta: float) -> Any:
    """The audit of a file with the columns member and score."""
    from whosin import audit as room

    flags, values, _people = read_flags(path, "member")
    return room.scores(values[flags], values[~flags], confidence, delta=delta)


def audit_run_file(
    path: Path,
    confidence: object,
    delta: float,
    rate: str | None,
    *,
    known: bool = False,
    gaussian: bool = False,
) -> Any:
    """The audit of a file with the columns included and score, or of a folder of these files."""
    from whosin import audit as room
    from whosin.exact import rational

    coins = rational("0.5" if rate is None else rate, "--rate")
    flags, values, people = read_runs(path)
    terms: dict[str, Any] = {"rate": coins, "known_rate": known, "people": people}
    if gaussian:
        return room.curve_run(flags, values, confidence, **terms)
    return room.one_run(flags, values, confidence, delta, **terms)


def read_runs(path: Path) -> tuple[Any, Any, Any]:
    """All runs of a folder together, or the one of a file: flags, scores, people."""
    import numpy as np

    if not path.is_dir():
        return read_flags(path, "included")
    files = sorted(file for file in path.iterdir() if not file.name.startswith("."))
    others = [file.name for file in files if file.is_dir() or file.suffix.lower() != ".csv"]
    if others or not files:
        accepted = "a CSV file, or a folder of CSV files and nothing else"
        raise invalid_value("--one-run", accepted, others[0] if others else "an empty folder")
    parts = [read_flags(file, "included") for file in files]
    named = {people is not None for _flags, _values, people in parts}
    if len(named) > 1:
        raise invalid_value(
            "--one-run", f"the column {PERSON_COLUMN} in all files or in none", "both"
        )
    people = None
    if named == {True}:  # who is in two runs has two coins
        people = np.array([f"{run}/{who}" for run, part in enumerate(parts) for who in part[2]])
    flags, values = (np.concatenate([part[field] for part in parts]) for field in (0, 1))
    return flags, values, people


def read_flags(path: Path, flag: str) -> tuple[Any, Any, Any]:
    """A 0/1 column, scores, and people where there is a column of them."""
    import numpy as np

    from whosin.documents import MAX_STUDY_BYTES, read_csv, read_number

    table = read_csv(path, MAX_STUDY_BYTES, (flag, "score"))
    places = [table.header.index(name) for name in (flag, "score")]
    flags, values = [], []
    for line, row in zip(table.lines, table.rows, strict=True):
        where = f"in line {line} of {path.name}"
        member, score = (row[column] for column in places)
        if member.lower() not in FLAG_WORDS:
            raise invalid_value(f"{flag} {where}", "1 or 0", _cell_kind(member))
        value = read_number(score, table.separator)
        if value is None:
            raise invalid_value(f"score {where}", "a number such as 0.5", _cell_kind(score))
        flags.append(FLAG_WORDS[member.lower()])
        values.append(value)
    people = None
    if PERSON_COLUMN in table.header:
        people = np.array([row[table.header.index(PERSON_COLUMN)] for row in table.rows])
    return np.array(flags, dtype=bool), np.array(values, dtype=float), people


def _cell_kind(cell: str) -> str:
    return "something else" if cell else "nothing"


# The form `whosin audit --synthetic train.csv holdout.csv synthetic.csv`: three tables.
#
# Contract: cells are private: none is quoted. All three have the same columns, in any order.


def audit_synthetic_files(
    paths: tuple[Path, Path, Path], confidence: object, claim: Claim, seed: int | None
) -> SyntheticAudit:
    """The audit of three files."""
    from whosin import audit as room
    from whosin.documents import MAX_STUDY_BYTES, columns_like, read_csv

    with at("--synthetic"):
        files = [read_csv(path, MAX_STUDY_BYTES) for path in paths]
        first = files[0]
        train, holdout, made = (columns_like(each, first.header, first.name) for each in files)
    return room.synthetic_table(train, holdout, made, confidence, delta=claim.delta, seed=seed)


# The options of `whosin audit`, which of its forms they ask for, and what it exits with.


def audit(  # noqa: C901 (six forms of one command)
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
        str | None,
        typer.Option(help="With --queries: add-remove (default, or the plan's) or replace."),
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
    float_bits: Annotated[
        bool,
        typer.Option(
            "--float-bits/--no-float-bits",
            help="With a function or --drawn-with: whether the bits of floats tell, too.",
        ),
    ] = True,
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
    form = _audit_form(target, scores, one_run, synthetic, drawn, claim)
    loaded: Loaded | None = None
    if form == WORLDS and target is not None:
        with user_code():
            loaded = load_target(target)
        form = FIT if loaded is not None and loaded.is_fit(training) else WORLDS
    _check_options(form, inputs, training, entities, rate, known_rate, gaussian)
    if stop and (form != WORLDS or claim.epsilon is None or with_ is None):
        raise invalid_value("--stop", "given with a claim, --with and --without", "without")
    for option, given, form_of in (("--timing", timing, WORLDS), ("--repeats", repeats, DRAWN)):
        if given and form != form_of:
            raise invalid_value(option, f"given with {form_of}", "without")
    if not float_bits and form not in (WORLDS, DRAWN):
        raise invalid_value("--no-float-bits", f"given with {WORLDS} or {DRAWN}", "without")
    if form in (SCORES, SYNTHETIC, ONE_RUN, FIT):
        claim = claim.restate("add-remove" if form in (ONE_RUN, FIT) else "replace")
    subject: Subject | None = None
    bounds: Any
    if form == DRAWN and drawn is not None:
        bounds = audit_samples(drawn, level, claim, seed, repeats, float_bits)
    elif form == SCORES:
        bounds = audit_scores_file(scores, level, claim.delta)  # type: ignore[arg-type]
    elif form == ONE_RUN:
        terms = {"known": known_rate, "gaussian": gaussian}
        bounds = audit_run_file(one_run, level, claim.delta, rate, **terms)  # type: ignore[arg-type]
        if gaussian:
            _finish_curve(bounds, claim, json)
            return
    elif synthetic is not None:
        bounds = audit_synthetic_files(synthetic, level, claim, seed)
    elif form == FIT and loaded is not None:
        with user_code():
            bounds = audit_training(loaded, training, level, claim, seed)
    else:
        with user_code():
            named = None if loaded is None else loaded.named
            subject = find_subject(target, entities, claim.plan, named)
            size = read_samples(samples)
            seen = stop, timing, float_bits
            bounds = audit_function(subject, inputs, size, level, claim, seed, *seen)
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
        charts.save_chart(report.audit_chart(bounds, claim.epsilon), save)
    if refuted:
        raise typer.Exit(1)
    if reason is not None:
        raise typer.Exit(4)


SCORES, ONE_RUN, SYNTHETIC = "--scores", "--one-run", "--synthetic"
FIT, WORLDS, DRAWN = "a fit", "a function", "--drawn-with"


def _audit_form(
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
        raise invalid_value("what to audit", accepted, "several" if several else "nothing")
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
            raise invalid_value(option, "given with --one-run", value)
    if form != WORLDS:
        words = {"with_": "--with"}
        given = {words.get(name, f"--{name}"): value for name, value in vars(inputs).items()}
        for option, value in (given | {"--entities": entities}).items():
            if value is not None:
                names = {FIT: "a fit", SYNTHETIC: SYNTHETIC, DRAWN: "drawn samples"}
                what = names.get(form, "scores")
                raise invalid_value(option, f"left out with {what}", value)
    if form != FIT:
        for option, given_value in training.given().items():
            raise invalid_value(option, "given with a function fit and its --rows", given_value)


def _finish_curve(run: Any, claim: Claim, json: bool) -> None:
    """Print a bound on μ, and exit by what it says of a claim."""
    from whosin.audit import GaussianCurve
    from whosin.report import audit as report

    if claim.plan is not None or claim.delta:
        option = "--against" if claim.plan is not None else "--delta"
        raise invalid_value(option, "left out with --gaussian", claim.delta)
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
