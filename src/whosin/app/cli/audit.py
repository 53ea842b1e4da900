"""`whosin audit`: attack a mechanism, or a model's scores, and report a bound that is valid."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli.options import Draw, Json
from whosin.app.cli.output import print_json, progress_bar
from whosin.app.cli.user_code import user_code
from whosin.errors import InvalidInput

if TYPE_CHECKING:
    from whosin.app.cli.subjects import Subject
    from whosin.audit import Audit
    from whosin.calibration import Plan


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
    scores: Annotated[
        Path | None, typer.Option(help="Audit a model: CSV with the columns member and score.")
    ] = None,
    one_run: Annotated[
        Path | None, typer.Option(help="Audit one run: CSV with the columns included and score.")
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(help="With --one-run: the probability of each inclusion (default 0.5)."),
    ] = None,
    samples: Annotated[
        str, typer.Option(help="Draws of each world, all stages together.")
    ] = "100000",
    confidence: Annotated[str, typer.Option(help="With which the bounds hold.")] = "0.95",
    at_most: Annotated[
        str | None, typer.Option(help="A claim to attack, an ε: exit 1 when it is refuted.")
    ] = None,
    delta: Annotated[str | None, typer.Option(help="The δ of that claim.")] = None,
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
    privacy; exit 4 where no two outputs had anything in common, so that nothing could be learnt.
    What the function prints goes to standard error.
    """
    from whosin.exact import probability, rational
    from whosin.report import audit as report
    from whosin.report import charts

    if save is not None:
        charts.check_path(save)
    belief = float(probability(prior, "--prior"))
    plan, epsilon, granted = _claim(at_most, delta, against)
    level = rational(confidence, "--confidence")
    given = [target is not None or (plan is not None and not scores and not one_run)]
    if sum([*given, scores is not None, one_run is not None]) != 1:
        accepted = "one of module:function, --scores, --one-run, or --against with a plan alone"
        several = scores is not None or one_run is not None or target is not None
        raise InvalidInput("what to audit", accepted, "several" if several else "nothing")
    if rate is not None and one_run is None:
        raise InvalidInput("--rate", "given with --one-run", rate)
    subject: Subject | None = None
    bounds: Any
    if scores is not None or one_run is not None:
        only = {"--with": with_, "--without": without, "--queries": queries, "--pairs": pairs}
        for option, value in (only | {"--entities": entities, "--relation": relation}).items():
            if value is not None:
                raise InvalidInput(option, "left out with scores", value)
        bounds = _of_scores(scores, one_run, level, granted, rate)
    else:
        with user_code():
            subject = _subject(target, entities, plan)
            inputs = with_, without, queries, relation, pairs
            bounds = _of_worlds(subject, *inputs, _samples(samples), level, granted, epsilon, seed)
    refuted = None if epsilon is None else bounds.refutes(epsilon)
    data = bounds.to_dict() | {"prior": belief, "posterior": bounds.posterior(belief), "seed": seed}
    if epsilon is not None:
        data |= {"at_most": epsilon, "refuted": refuted}
    if subject is not None and subject.channel is not None:
        pair = subject.exact(bounds.with_, bounds.without)
        data["exact"] = {"pair": pair, "epsilon": subject.level()}
    if json:
        print_json(data)
    else:
        name = subject.name if subject else "the scores"
        exact = data.get("exact")
        report.print_audit(bounds, name, epsilon, refuted, belief, plan, exact=exact)
    if save is not None:
        charts.save(report.chart(bounds, epsilon), save)
    if refuted:
        raise typer.Exit(1)
    if refuted is False and getattr(bounds, "blind", False):
        raise typer.Exit(4)


def _claim(
    epsilon: str | None, delta: str | None, against: Path | None
) -> tuple[Plan | None, float | None, float]:
    from whosin.calibration import Plan
    from whosin.exact import ranged

    if against is not None:
        for option, value in (("--at-most", epsilon), ("--delta", delta)):
            if value is not None:
                raise InvalidInput(option, "left out with --against", value)
        plan = Plan.load(against)
        return plan, plan.epsilon, plan.dp_delta
    if epsilon is None:
        if delta is not None:
            raise InvalidInput("--delta", "given with --at-most", delta)
        return None, None, 0.0
    claim = ranged(epsilon, "--at-most", "at least 0")
    granted = ranged(delta or 0, "--delta", "at least 0 and below 1")
    return None, float(claim), float(granted)


def _samples(text: str) -> int:
    """A whole number, also as 1e6 or 1,000,000."""
    from whosin.exact import rational

    number = rational(text.replace(",", "").replace("_", ""), "--samples")
    if number.denominator != 1 or number < 1:
        raise InvalidInput("--samples", "a whole number", text)
    return int(number)


def _subject(target: str | None, entities: int | None, plan: Plan | None) -> Subject:
    from whosin.app.cli import subjects

    if target is None:
        assert plan is not None
        return subjects.of_plan(plan)
    return subjects.subject(target, entities)


def _of_worlds(
    subject: Subject,
    with_: str | None,
    without: str | None,
    queries: int | None,
    relation: str | None,
    pairs: str | None,
    samples: int,
    confidence: object,
    delta: float,
    epsilon: float | None,
    seed: int | None,
) -> Audit:
    from whosin import audit as room
    from whosin.app.cli import subjects

    if epsilon is not None:
        room.check_claim(epsilon, samples, confidence)
    if (with_ is None) != (without is None):
        missing, other = ("--with", "--without") if with_ is None else ("--without", "--with")
        raise InvalidInput(missing, f"given with {other}", "nothing")
    ways = [with_ is not None, queries is not None, pairs is not None]
    if sum(ways) > 1 or (sum(ways) == 0 and not subject.pairs):
        accepted = "given in one way: by --with and --without, by --queries, or by --pairs"
        raise InvalidInput("inputs", accepted, "none" if not sum(ways) else "several")
    if relation is not None and queries is None:
        raise InvalidInput("--relation", "given with --queries", relation)
    terms: dict[str, Any] = {"delta": delta, "seed": seed}
    with progress_bar() as bar:
        task = bar.add_task("drawing", total=samples)
        terms["progress"] = lambda count: bar.advance(task, count)
        if with_ is not None and without is not None:
            both = subjects.value(with_, "--with"), subjects.value(without, "--without")
            return room.two_worlds(subject.mechanism, *both, samples, confidence, **terms)
        tried: Any = subject.pairs
        if queries is not None:
            tried = room.neighbours(queries, relation or "add-remove")
        elif pairs is not None:
            tried = _pairs(pairs)
        return room.search(subject.mechanism, tried, samples, confidence, **terms)


def _pairs(name: str) -> Any:
    from whosin.app.cli import subjects

    pairs = subjects.load(name)
    if not callable(pairs):
        return pairs
    try:
        return list(pairs())
    except (Exception, SystemExit) as error:
        accepted = "a function without parameters that yields (with, without) pairs"
        raise InvalidInput("--pairs", accepted, f"{type(error).__name__}: {error}") from error


def _of_scores(
    scores: Path | None, one_run: Path | None, confidence: object, delta: float, rate: str | None
) -> Any:
    from whosin import audit as room
    from whosin.exact import rational

    if scores is not None:
        flags, values = _table(scores, "member")
        return room.scores(values[flags], values[~flags], confidence, delta=delta)
    assert one_run is not None
    coins = rational("0.5" if rate is None else rate, "--rate")
    return room.one_run(*_table(one_run, "included"), confidence, delta, coins)


def _table(path: Path, flag: str) -> tuple[Any, Any]:
    """Two columns of a CSV file: a 0/1 flag and a score. Cells are private: none is quoted."""
    import numpy as np

    flags, values = [], []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            names = reader.fieldnames or ()
            if not {flag, "score"} <= set(names):
                got = f"{len(names)} other columns" if names else "nothing"
                raise InvalidInput(path.name, f"CSV with the columns {flag} and score", got)
            for line, row in enumerate(reader, start=2):
                try:
                    flags.append(FLAGS[(row[flag] or "").strip().lower()])
                except KeyError:
                    got = "something else" if row[flag] else "nothing"
                    raise InvalidInput(f"{flag} in line {line}", "1 or 0", got) from None
                values.append(_score(row["score"], line))
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInput(path.name, "CSV text", "something else") from None
    return np.array(flags, dtype=bool), np.array(values, dtype=float)


FLAGS = dict.fromkeys(("1", "1.0", "true", "yes"), True)
FLAGS |= dict.fromkeys(("0", "0.0", "false", "no"), False)


def _score(cell: str | None, line: int) -> float:
    try:
        number = float(cell or "")
    except ValueError:
        got = "something else" if cell else "nothing"
        raise InvalidInput(f"score in line {line}", "a number", got) from None
    if number != number:
        raise InvalidInput(f"score in line {line}", "a number", "NaN")
    return number
