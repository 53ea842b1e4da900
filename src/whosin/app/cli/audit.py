"""`whosin audit`: attack what claims to be private, with bounds that hold.

Six sub-commands, one for each thing that can be attacked: a function, samples drawn elsewhere,
scores of a model, one run with many canaries, a training, a synthetic table. Each has its own few
options; those that all share arrive as one `AuditOptions`. A gate never passes by accident: where
the evidence could not have refuted the claim, whatever leaks, the claim is undecided (exit 4).
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli.audit_subjects import (
    Subject,
    channel_subject,
    find_training,
    plan_subject,
    read_flags,
    read_runs,
)
from whosin.app.cli.main import (
    Draw,
    Json,
    add_options,
    load_object,
    print_json,
    progress_bar,
    user_code,
)
from whosin.errors import InvalidInput, invalid_value

if TYPE_CHECKING:
    from whosin.audit import Audit, AuditBounds, CurveRun
    from whosin.calibration import Plan
    from whosin.report.document import Document

app = typer.Typer(
    no_args_is_help=True,
    help="Attack what claims to be private, and bound its leakage from below.\n\n"
    "The bound holds with the stated confidence. A claim (--at-most, --against) is refuted "
    "(exit 1, with a witness) or not refuted (exit 0), which is no proof of privacy; it is "
    "undecided (exit 4) where the evidence could not have refuted it, whatever leaks.",
)
Seed = Annotated[int | None, typer.Option(help="For a repeatable run.")]
FloatBits = Annotated[
    bool,
    typer.Option(
        "--float-bits/--no-float-bits", help="Whether an observer sees the bits of floats."
    ),
]


@dataclass(frozen=True)
class Claim:
    """(ε, δ), by itself or of a plan; ε is None where nothing is claimed."""

    epsilon: float | None = None
    delta: float = 0.0
    plan: Plan | None = None

    def restate(self, relation: str) -> Claim:
        """What a plan claims for the neighbours that an audit is about. A person is replaced by
        removing one and adding another: twice the ε, and δ (1 + e^ε).

        Raises:
            InvalidInput: the plan is for replacing a person, and says nothing about adding one.
        """
        from whosin.exact import exp_up, rational, round_up

        if self.plan is None or self.epsilon is None or self.plan.relation == relation:
            return self
        if relation == "add-remove":
            message = "--against is a plan for replacing a person; this audit adds or removes one"
            raise InvalidInput(message, field="--against", value=self.plan.relation)
        growth = 1 + exp_up(rational(min(self.epsilon, 700.0)))
        delta = min(1 - 2**-40, round_up(rational(self.delta) * growth))
        return replace(self, epsilon=2 * self.epsilon, delta=float(delta))


def read_claim(epsilon: str | None, delta: str | None, against: Path | None) -> Claim:
    from whosin.calibration import Plan
    from whosin.exact import read_ranged

    if against is not None:
        for option, value in (("--at-most", epsilon), ("--delta", delta)):
            if value is not None:
                message = f"{option} and --against are two claims"
                raise InvalidInput(message, field=option, value=value, hint="leave one out")
        plan = Plan.load(against)
        return Claim(plan.epsilon, plan.dp_delta, plan)
    if epsilon is None:
        if delta is not None:
            message, hint = "--delta alone claims nothing", "add --at-most"
            raise InvalidInput(message, field="--delta", value=delta, hint=hint)
        return Claim()
    claim = read_ranged(epsilon, "--at-most", "at least 0")
    granted = read_ranged(delta or 0, "--delta", "at least 0 and below 1")
    return Claim(float(claim), float(granted))


@dataclass(frozen=True)
class AuditOptions:
    """What every audit is told: the claim, the confidence, and how to show the result."""

    claim: Claim
    confidence: Fraction
    prior: float
    save: Path | None
    json: bool


def read_options(
    at_most: Annotated[
        str | None,
        typer.Option(help="A claim to attack, an ε: exit 1 if it is refuted, 4 if undecided."),
    ] = None,
    delta: Annotated[str | None, typer.Option(help="The δ of that claim.")] = None,
    against: Annotated[
        Path | None, typer.Option(help="Or the claim of a plan (whosin plan --json > plan.json).")
    ] = None,
    confidence: Annotated[str, typer.Option(help="With which the bounds hold.")] = "0.95",
    prior: Annotated[str, typer.Option(help="The prior belief to show a posterior for.")] = "0.5",
    save: Draw = None,
    json: Json = False,
) -> AuditOptions:
    """The options that all sub-commands share."""
    import_module("whosin.audit")  # says what is not installed, before anything is read
    from whosin.exact import probability, rational
    from whosin.report import charts

    if save is not None:
        charts.check_path(save)
    belief = float(probability(prior, "--prior"))
    claim = read_claim(at_most, delta, against)
    return AuditOptions(claim, rational(confidence, "--confidence"), belief, save, json)


@dataclass(frozen=True)
class Inputs:
    """Which neighbouring inputs are tried, as options say it."""

    with_: Annotated[
        str | None, typer.Option("--with", help="The input with someone's data: 1, [1, 0, 1], …")
    ] = None
    without: Annotated[str | None, typer.Option(help="The neighbouring input without.")] = None
    queries: Annotated[
        int | None, typer.Option(help="Or search: the input is a vector of this many answers.")
    ] = None
    relation: Annotated[
        str | None,
        typer.Option(help="With --queries: add-remove (default, or the plan's) or replace."),
    ] = None
    pairs: Annotated[
        str | None,
        typer.Option(help="Or module:function that yields (with, without) pairs to search."),
    ] = None

    def check(self, known: bool) -> None:
        """Refuse several ways to name inputs at once, and none unless the subject knows its own."""
        if (self.with_ is None) != (self.without is None):
            first = self.with_ is None
            missing, other = ("--with", "--without") if first else ("--without", "--with")
            message = f"{other} needs {missing}, the neighbouring input"
            raise InvalidInput(message, field=missing)
        given = [self.with_ is not None, self.queries is not None, self.pairs is not None]
        if sum(given) > 1 or (sum(given) == 0 and not known):
            message = "the inputs are given twice" if sum(given) else "there are no inputs to try"
            hint = "give --with and --without, or --queries, or --pairs"
            raise InvalidInput(message, field="inputs", value=sum(given), hint=hint)
        if self.queries is not None and self.queries < 1:
            raise invalid_value("--queries", "a whole number of at least 1", self.queries)
        if self.relation is not None and self.queries is None:
            message, hint = "--relation is about vectors of queries", "add --queries"
            raise InvalidInput(message, field="--relation", value=self.relation, hint=hint)

    def read_pair(self) -> tuple[object, object] | None:
        """The two inputs, where they are given."""
        import numpy as np

        if self.with_ is None or self.without is None:
            return None
        with_, without = read_input(self.with_, "--with"), read_input(self.without, "--without")
        if np.array_equal(with_, without):  # type: ignore[arg-type]
            raise InvalidInput("--with and --without are the same input", field="--without")
        return with_, without

    def list_pairs(self, subject: Subject, plan: Plan | None) -> Any:
        """The pairs to search: by pattern, by the user's function, or the subject's own."""
        from whosin import audit

        if self.queries is not None:
            known = "add-remove" if plan is None else plan.relation
            relation = self.relation or known
            if plan is not None and (relation, known) == ("replace", "add-remove"):
                message = "the plan is about adding or removing a person"
                hint = "leave out --relation"
                raise InvalidInput(message, field="--relation", value=relation, hint=hint)
            return audit.neighbouring_vectors(self.queries, relation)
        return subject.pairs if self.pairs is None else _load_pairs(self.pairs)


@dataclass(frozen=True)
class DrawOptions:
    """How a function is drawn from, as options say it."""

    samples: Annotated[str, typer.Option(help="Draws of each input, all stages together.")] = (
        "100000"
    )
    stop: Annotated[
        bool, typer.Option("--stop", help="With a claim, --with and --without: stop when refuted.")
    ] = False
    timing: Annotated[
        bool, typer.Option("--timing", help="An observer sees how long each call takes.")
    ] = False
    float_bits: FloatBits = True
    seed: Seed = None

    def terms(self, claim: Claim) -> dict[str, Any]:
        """The same by the names of `two_worlds`."""
        terms = {"seed": self.seed, "timing": self.timing, "float_bits": self.float_bits}
        return terms | ({"stop_at": claim.epsilon} if self.stop else {})


@app.command("function")
@add_options(options=read_options, inputs=Inputs, drawing=DrawOptions)
def audit_function(
    *,
    target: Annotated[
        str | None,
        typer.Argument(
            help="module:function, path/file.py:function, or a channel file (.json); left out, "
            "the noise of the plan given by --against."
        ),
    ] = None,
    inputs: Inputs,
    entities: Annotated[
        int | None, typer.Option(help="How many people there are, for a mechanism of whosin.")
    ] = None,
    drawing: DrawOptions,
    options: AuditOptions,
) -> None:
    """Attack a function on neighbouring inputs.

    The function is m(input, size, rng) and returns `size` outputs, or one draw a call, m(input,
    rng) or m(input). Outputs may be anything, exceptions too. An event is sought on some of the
    draws and counted on the others. What the function prints goes to standard error.
    """
    claim = options.claim
    if drawing.stop and (claim.epsilon is None or inputs.with_ is None):
        message = "--stop needs a claim, --with and --without"
        raise InvalidInput(message, field="--stop", hint="add --at-most, for example")
    if target is None and claim.plan is None:
        message = "there is nothing to audit"
        hint = "name module:function, file.py:function or a channel file, or a plan by --against"
        raise InvalidInput(message, field="target", hint=hint)
    with user_code():
        subject = find_subject(target, entities, claim.plan)
        size, terms = read_samples(drawing.samples), drawing.terms(claim)
        bounds = _attack_function(subject, inputs, size, options, terms)
    both = bounds.with_, bounds.without
    exact = None if subject.channel is None else subject.exact_levels(*both)
    _finish(bounds, subject.name, options, seed=drawing.seed, exact=exact)


def _attack_function(
    subject: Subject, inputs: Inputs, samples: int, options: AuditOptions, terms: dict[str, Any]
) -> Audit:
    from whosin import audit as room

    claim = options.claim
    if claim.epsilon is not None:
        room.check_claim(claim.epsilon, samples, options.confidence, claim.delta)
    inputs.check(bool(subject.pairs))
    with progress_bar() as bar:
        task = bar.add_task("drawing", total=samples)
        terms |= {"delta": claim.delta, "progress": lambda count: bar.advance(task, count)}
        both = inputs.read_pair()
        if both is not None:
            return room.two_worlds(subject.mechanism, *both, samples, options.confidence, **terms)
        pairs = inputs.list_pairs(subject, claim.plan)
        return room.search(subject.mechanism, pairs, samples, options.confidence, **terms)


def find_subject(target: str | None, entities: int | None, plan: Plan | None) -> Subject:
    """Read `module:function`, `path/file.py:function` or a channel file; or the noise of a plan."""
    from whosin.mechanisms import Channel, Mechanism
    from whosin.spaces import Subsets

    if target is None:
        assert plan is not None
        return plan_subject(plan)
    if target.endswith(".json"):
        if entities is not None:
            message = "a channel file says itself how many people there are"
            hint = "leave out --entities"
            raise InvalidInput(message, field="--entities", value=entities, hint=hint)
        return channel_subject(Channel.load(target), target)
    result = load_object(target)
    if isinstance(result, Mechanism):
        space = None if entities is None else Subsets(entities)
        if space is None and not isinstance(result, Channel):
            message = f"{target} is a mechanism of whosin"
            hint = "say by --entities how many people there are"
            raise InvalidInput(message, field="--entities", hint=hint)
        return channel_subject(result.channel(space), target)
    if entities is not None:
        message = "--entities is for a mechanism of whosin, and this is a function"
        raise InvalidInput(message, field="--entities", value=entities)
    if not callable(result):
        kind = type(result).__name__
        message = f"{target} must be a function m(input, size, rng) or a mechanism, not {kind}"
        raise InvalidInput(message, field="target", value=kind)
    return Subject(result, target)


def read_input(text: str, field: str) -> object:
    """An input from the command line: a number, a list (as an array), a word, a literal."""
    try:
        read = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        if text.isidentifier():
            return text
        accepted = "a number, a list such as [0, 1, 1], or a word"
        raise invalid_value(field, accepted, repr(text)) from None
    if isinstance(read, list) and read and all(isinstance(each, int | float) for each in read):
        import numpy as np

        return np.array(read)
    return read


def read_samples(text: str) -> int:
    """A whole number, also as 1e6 or 1,000,000."""
    from whosin.audit.bounds import MIN_DRAWS
    from whosin.exact import rational

    plain = text.strip()
    if re.fullmatch(r"\d{1,3}(?:([,_])\d{3})(?:\1\d{3})*", plain):
        plain = plain.replace(",", "").replace("_", "")
    number = rational(plain, "--samples")
    if number.denominator != 1 or number < MIN_DRAWS:
        accepted = f"a whole number of at least {MIN_DRAWS}, such as 100000, 100,000 or 1e5"
        raise invalid_value("--samples", accepted, text)
    return int(number)


def _load_pairs(name: str) -> Any:
    pairs = load_object(name)
    if not callable(pairs):
        return pairs
    try:
        return list(pairs())
    except (Exception, SystemExit) as error:
        message = f"{name} failed with {type(error).__name__}: {error}"
        hint = "it must be a function without parameters that yields (with, without) pairs"
        raise InvalidInput(message, field="--pairs", value=name, hint=hint) from error


@app.command("samples")
@add_options(options=read_options)
def audit_samples(
    with_: Annotated[
        Path, typer.Argument(metavar="WITH", help="Outputs with: .csv, .txt, .jsonl or .npy.")
    ],
    without: Annotated[Path, typer.Argument(metavar="WITHOUT", help="As many outputs without.")],
    repeats: Annotated[
        bool, typer.Option("--repeats", help="Unrounded floats may come again.")
    ] = False,
    float_bits: FloatBits = True,
    seed: Seed = None,
    *,
    options: AuditOptions,
) -> None:
    """Attack a mechanism by two files of outputs that were drawn elsewhere.

    One file for each of two neighbouring inputs. The draws must be independent; what is plainly
    not is refused. Some choose an event, the others are counted.
    """
    from whosin import audit as room

    claim = options.claim
    terms: dict[str, Any] = {"delta": claim.delta, "seed": seed, "repeats": repeats}
    terms |= {"float_bits": float_bits, "claim": claim.epsilon}
    bounds = room.samples(with_, without, options.confidence, **terms)
    _finish(bounds, "the sampled mechanism", options, seed=seed)


@app.command("scores")
@add_options(options=read_options)
def audit_scores(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV with the columns member and score.")
    ],
    *,
    options: AuditOptions,
) -> None:
    """Attack a model by scores of its members and of others like them.

    The bound is about replacing one person by another: a claim for adding or removing one allows
    2ε.
    """
    from whosin import audit as room

    options = replace(options, claim=options.claim.restate("replace"))
    flags, values, _people = read_flags(file, "member")
    bounds = room.scores(
        values[flags], values[~flags], options.confidence, delta=options.claim.delta
    )
    _finish(bounds, "the model", options)


@app.command("run")
@add_options(options=read_options)
def audit_run(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="CSV with the columns included and score (and person, where one has several "
            "canaries); or a folder with one file for each run.",
        ),
    ],
    rate: Annotated[str, typer.Option(help="The probability of each inclusion.")] = "0.5",
    known_rate: Annotated[
        bool, typer.Option("--known-rate", help="You drew the inclusion bits at this rate.")
    ] = False,
    gaussian: Annotated[
        bool, typer.Option("--gaussian", help="Bound μ; --at-most is then a μ.")
    ] = False,
    *,
    options: AuditOptions,
) -> None:
    """Attack one training run with many canaries, each included at random.

    The bound is about adding or removing one person.
    """
    from whosin import audit as room
    from whosin.exact import rational

    options = replace(options, claim=options.claim.restate("add-remove"))
    share = rational(rate, "--rate")
    flags, values, people = read_runs(file)
    terms: dict[str, Any] = {"rate": share, "known_rate": known_rate, "people": people}
    if gaussian:
        _finish_curve(room.curve_run(flags, values, options.confidence, **terms), options)
        return
    bounds = room.one_run(flags, values, options.confidence, options.claim.delta, **terms)
    _finish(bounds, "the model", options)


@dataclass(frozen=True)
class TrainingOptions:
    """How often is trained, and on whom, as options say it."""

    runs: Annotated[int, typer.Option(help="Trainings to attack.")] = 1
    shadows: Annotated[int, typer.Option(help="Trainings to learn from.")] = 8
    canaries: Annotated[
        int | None, typer.Option(help="How many rows are included at random; left out, all.")
    ] = None
    kind: Annotated[str, typer.Option(help="Of canaries: rows, mislabelled or outlying.")] = "rows"


@dataclass(frozen=True)
class RowsOptions:
    """The rows to train on and their score, as options say them."""

    rows: Annotated[
        str | None,
        typer.Option(help="A CSV file or module:function; left out, `rows` of the same module."),
    ] = None
    label: Annotated[
        str | None, typer.Option(help="With a CSV file of rows: the column to predict.")
    ] = None
    score: Annotated[
        str | None,
        typer.Option(help="module:function, score(model, rows); else `score` of the same module."),
    ] = None


@app.command("training")
@add_options(options=read_options, trained=TrainingOptions, named=RowsOptions)
def audit_training(
    *,
    fit: Annotated[
        str,
        typer.Argument(metavar="FIT", help="fit(rows), as module:function or file.py:function."),
    ],
    named: RowsOptions,
    trained: TrainingOptions,
    state: Annotated[
        Path | None, typer.Option(help="Keep inclusion bits and scores here, and resume.")
    ] = None,
    seed: Seed = None,
    options: AuditOptions,
) -> None:
    """Attack a training: include rows at random, fit, and guess who was in.

    What fit returns decides: a model is asked for scores, a table is attacked as synthetic data.
    Shadow models learn which scores are usual. The bound is about adding or removing one person.
    """
    from whosin import audit as room

    options = replace(options, claim=options.claim.restate("add-remove"))
    with user_code(), progress_bar() as bar:
        found, data, scoring = find_training(fit, **vars(named))
        task = bar.add_task("training", total=trained.runs + trained.shadows)
        bounds = room.training(
            found,
            data,
            scoring,
            **vars(trained),
            confidence=options.confidence,
            delta=options.claim.delta,
            state=state,
            seed=seed,
            progress=lambda count: bar.advance(task, count),
        )
    _finish(bounds, fit, options, seed=seed)


@app.command("synthetic")
@add_options(options=read_options)
def audit_synthetic(
    train: Annotated[
        Path, typer.Argument(metavar="TRAIN", help="CSV: the rows behind the synthetic table.")
    ],
    holdout: Annotated[
        Path, typer.Argument(metavar="HOLDOUT", help="CSV: other rows of the same population.")
    ],
    synthetic: Annotated[
        Path, typer.Argument(metavar="SYNTHETIC", help="CSV: the table; all have the same columns.")
    ],
    seed: Seed = None,
    *,
    options: AuditOptions,
) -> None:
    """Attack a synthetic table by the rows behind it and by others like them.

    The bound is about replacing one person by another: a claim for adding or removing one allows
    2ε. Singling out, linkability and inference are measured besides.
    """
    from whosin import audit as room
    from whosin.documents import MAX_STUDY_BYTES, columns_like, read_csv

    options = replace(options, claim=options.claim.restate("replace"))
    files = [read_csv(path, MAX_STUDY_BYTES) for path in (train, holdout, synthetic)]
    first = files[0]
    rows, others, made = (columns_like(each, first.header, first.name) for each in files)
    terms: dict[str, Any] = {"delta": options.claim.delta, "seed": seed}
    bounds = room.synthetic(rows, others, made, options.confidence, **terms)
    _finish(bounds, "the synthetic table", options, seed=seed)


def _finish(
    bounds: AuditBounds,
    name: str,
    options: AuditOptions,
    *,
    exact: dict[str, float] | None = None,
    **about: object,
) -> None:
    """Show the bounds, and exit by what they say of the claim."""
    from whosin.report import audit as report
    from whosin.report import charts

    claim, prior = options.claim, options.prior
    refuted = None if claim.epsilon is None else bounds.refutes(claim.epsilon)
    reason = explain_undecided(bounds, claim) if refuted is False else None
    if options.save is not None:
        charts.save_chart(report.audit_chart(bounds, claim.epsilon), options.save)
    data = bounds.to_dict() | {"prior": prior, "posterior": bounds.posterior(prior)} | about
    terms: dict[str, Any] = {"exact": exact, "undecided": reason}
    told = report.describe_audit(bounds, name, claim.epsilon, refuted, prior, claim.plan, **terms)
    _exit_with_verdict(
        options, data if exact is None else data | {"exact": exact}, told, refuted, reason
    )


def _finish_curve(run: CurveRun, options: AuditOptions) -> None:
    """Show a bound on μ, and exit by what it says of the claim."""
    from whosin.audit import GaussianCurve
    from whosin.report import audit as report

    claim = options.claim
    if claim.plan is not None or claim.delta:
        option = "--against" if claim.plan is not None else "--delta"
        message, hint = f"{option} says nothing about μ", "leave out --gaussian"
        raise InvalidInput(message, field=option, hint=hint)
    if options.save is not None:
        message, hint, name = "--gaussian draws no chart", "leave out --save", options.save.name
        raise InvalidInput(message, field="--save", value=name, hint=hint)
    refuted = None if claim.epsilon is None else run.refutes(GaussianCurve(claim.epsilon))
    reason = None
    if refuted is False and claim.epsilon is not None:
        if run.blind:
            reason = "nothing could be learnt"
        elif not run.could_refute(GaussianCurve(claim.epsilon)):
            reason = f"{run.canaries:,} inclusion bits could not refute it, whatever leaks"
    told = report.describe_curve_run(run, claim.epsilon, refuted, reason)
    _exit_with_verdict(options, run.to_dict(), told, refuted, reason)


def _exit_with_verdict(
    options: AuditOptions,
    data: dict[str, object],
    document: Document,
    refuted: bool | None,
    reason: str | None,
) -> None:
    """Print the result; exit with 1 where the claim is refuted, with 4 where it is undecided."""
    from whosin.report.terminal import print_document

    if options.json:
        claim = {"at_most": options.claim.epsilon, "refuted": refuted, "undecided": reason}
        print_json(data if refuted is None else data | claim)
    else:
        print_document(document)
    if refuted or reason is not None:
        raise typer.Exit(1 if refuted else 4)


def explain_undecided(bounds: AuditBounds, claim: Claim) -> str | None:
    """Why this audit could not have refuted its claim, if that is so."""
    from whosin.audit import Audit, OneRun, Scores, SyntheticAudit, TrainingAudit, most_scores
    from whosin.exact import format_decimals

    if getattr(bounds, "blind", False):
        return "nothing could be learnt"
    if claim.epsilon is None:
        return None
    run = bounds.run if isinstance(bounds, TrainingAudit) else bounds
    if isinstance(run, Audit) and not run.could_refute(claim.epsilon):
        draws = run.counts[0].trials
        return f"{draws:,} counted draws could not refute ε = {claim.epsilon:g}, whatever leaks"
    if isinstance(run, OneRun):
        evidence, most = f"{run.canaries:,} inclusion bits", run.most
    elif isinstance(run, Scores | SyntheticAudit):
        told = run.membership if isinstance(run, SyntheticAudit) else run
        evidence = f"{len(told.members) + len(told.non_members):,} scores"
        most = most_scores(len(told.members), len(told.non_members), told.confidence, claim.delta)
    else:
        return None
    if most > claim.epsilon:
        return None
    return f"{evidence} could show no more than ε = {format_decimals(most, 2, 'up')}"
