"""What `whosin audit` attacks: a function, a channel, a plan's noise or a training, and the claim
to refute.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from whosin.app.cli.options import progress_bar
from whosin.app.cli.user_code import load_object
from whosin.errors import Unsupported, at, invalid_value
from whosin.extras import require_extras

if TYPE_CHECKING:
    import numpy as np

    from whosin.audit import Audit, InputPair, ModelAudit
    from whosin.calibration import Plan
    from whosin.mechanisms import Channel


# What `whosin audit` is pointed at: a function of the user's, a channel or mechanism of ours, or
# the noise of a plan.
#
# Contract: our own finite mechanisms are sampled row by row and come with their exact level, to
# compare with the audit's bound. `named_objects` finds functions.


MOST_PAIRS = 1000


@dataclass(frozen=True)
class Subject:
    """Something to audit.

    Attributes:
        pairs: neighbouring inputs to search, where the subject knows them.
        channel: the exact mechanism, where it is one of ours.
    """

    mechanism: Callable[..., Any]
    name: str
    pairs: tuple[InputPair, ...] = ()
    channel: Channel | None = None

    def exact(self, with_: object, without: object) -> float | None:
        """The exact largest |ln ratio| between two worlds of a channel of ours."""
        import numpy as np

        if self.channel is None:
            return None
        first, second = (
            self.channel.likelihoods[self.channel.index(world)] for world in (with_, without)
        )
        some = (first > 0) | (second > 0)
        with np.errstate(divide="ignore"):
            return float(np.abs(np.log(first[some]) - np.log(second[some])).max())

    def level(self) -> float | None:
        """The exact ε over all neighbouring worlds."""
        from whosin.notions import DifferentialPrivacy
        from whosin.spaces import Records

        if self.channel is None:
            return None
        relation = "replace" if isinstance(self.channel.space, Records) else "add-remove"
        return float(DifferentialPrivacy(relation).measure(self.channel).value)


def load_subject(target: str, entities: int | None, loaded: Any = None) -> Subject:
    """Read `module:function`, `path/file.py:function` or a channel file.

    Args:
        loaded: what the target names, where it was loaded before.
    """
    from whosin.mechanisms import Channel, Mechanism
    from whosin.spaces import Subsets

    if target.endswith(".json"):
        if entities is not None:
            raise invalid_value("--entities", "left out with a channel file", entities)
        return channel_subject(Channel.load(target), target)
    result = load_object(target) if loaded is None else loaded
    if isinstance(result, Mechanism):
        space = None if entities is None else Subsets(entities)
        if space is None and not isinstance(result, Channel):
            raise invalid_value("--entities", "given for a mechanism of whosin", "nothing")
        return channel_subject(result.channel(space), target)
    if entities is not None:
        raise invalid_value("--entities", "left out with a function", entities)
    if not callable(result):
        accepted = "a function m(input, size, rng), or a mechanism of whosin"
        raise invalid_value(target, accepted, type(result).__name__)
    return Subject(result, target)


def channel_subject(channel: Channel, name: str) -> Subject:
    """A finite mechanism as a sampler, with all its pairs of neighbours."""
    if channel.is_density:
        raise Unsupported(
            f"{name} has no finite table to draw from; write a function that draws its noise"
        )
    draw = channel.sampler([str(output) for output in channel.outputs])
    return Subject(draw, name, tuple(_neighbour_pairs(channel)), channel.on_worlds())


def _neighbour_pairs(channel: Channel) -> list[InputPair]:
    from whosin.audit import InputPair
    from whosin.spaces import Subsets

    space = channel.space
    result: list[InputPair] = []
    for number in range(space.worlds):
        if len(result) > MOST_PAIRS:
            return []  # too many to try all: the user names a pair
        if isinstance(space, Subsets):
            for index, who in enumerate(space.entities):
                if number >> index & 1:
                    other = number ^ (1 << index)
                    result.append(
                        InputPair(f"{who} in or out", space.world(number), space.world(other))
                    )
        else:
            world = space.world(number)
            for row in range(space.rows):
                for value in range(world[row]):
                    changed = (*world[:row], value, *world[row + 1 :])
                    result.append(InputPair(f"row {row}", world, changed))
    return result


def plan_subject(plan: Plan) -> Subject:
    """The noise that a plan asks for, by the sampler that releases use."""
    from whosin import noise
    from whosin.audit import InputPair

    if plan.noise is None or plan.query is None or plan.noise.kind not in ("laplace", "gaussian"):
        got = "none" if plan.noise is None else plan.noise.kind
        raise invalid_value("noise of the plan", "laplace or gaussian, or a function to audit", got)
    kind, scale = plan.noise.kind, plan.noise.scale
    sampler = noise.discrete_laplace if kind == "laplace" else noise.discrete_gaussian
    sensitivity = math.ceil(plan.query.l1_sensitivity(plan.relation))

    def draw(answer: object, size: int, _rng: np.random.Generator) -> Any:
        assert isinstance(answer, int)
        return answer + sampler(scale, size)

    pair = InputPair("one person more", sensitivity, 0)
    return Subject(draw, f"the plan's own noise (discrete {kind}, scale {scale:.4g})", (pair,))


def read_input(text: str, field: str) -> object:
    """An input from the command line: a number, a list (as an array), a word, a literal."""
    import numpy as np

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


# The claim that an audit attacks, and whether the audit could have refuted it at all.
#
# Contract: a gate never passes by accident. Where the evidence could not have refuted the claim,
# whatever leaks, it is undecided.


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
            accepted = "a plan for adding or removing a person, because coins decide who is in"
            raise invalid_value("--against", accepted, "one for replacing a person")
        growth = 1 + exp_up(rational(min(self.epsilon, 700.0)))
        delta = min(1 - 2**-40, round_up(rational(self.delta) * growth))
        return replace(self, epsilon=2 * self.epsilon, delta=float(delta))


def read_claim(epsilon: str | None, delta: str | None, against: Path | None) -> Claim:
    """The claim that the options state."""
    from whosin.calibration import Plan
    from whosin.exact import read_ranged

    if against is not None:
        for option, value in (("--at-most", epsilon), ("--delta", delta)):
            if value is not None:
                raise invalid_value(option, "left out with --against", value)
        plan = Plan.load(against)
        return Claim(plan.epsilon, plan.dp_delta, plan)
    if epsilon is None:
        if delta is not None:
            raise invalid_value("--delta", "given with --at-most", delta)
        return Claim()
    claim = read_ranged(epsilon, "--at-most", "at least 0")
    granted = read_ranged(delta or 0, "--delta", "at least 0 and below 1")
    return Claim(float(claim), float(granted))


def why_undecided(bounds: Any, claim: Claim) -> str | None:
    """Why this audit could not have refuted its claim, if that is so."""
    from whosin.audit import (
        Audit,
        ModelAudit,
        OneRun,
        Scores,
        SyntheticAudit,
        most_scores,
    )
    from whosin.exact import format_decimals

    if getattr(bounds, "blind", False):
        return "nothing could be learnt"
    run = bounds.run if isinstance(bounds, ModelAudit) else bounds
    if claim.epsilon is not None and isinstance(run, OneRun):
        most = run.most
        if most <= claim.epsilon:
            return (
                f"{run.canaries:,} coins could show no more than ε = "
                f"{format_decimals(most, 2, 'up')}"
            )
    if claim.epsilon is not None and isinstance(run, Audit) and not run.could_refute(claim.epsilon):
        trials = run.counts[0].trials
        return f"{trials:,} counted draws could not refute ε = {claim.epsilon:g}, whatever leaks"
    if claim.epsilon is not None and isinstance(run, Scores | SyntheticAudit):
        told = run.membership if isinstance(run, SyntheticAudit) else run
        most = most_scores(len(told.members), len(told.non_members), told.confidence, claim.delta)
        if most <= claim.epsilon:
            scores = len(told.members) + len(told.non_members)
            return f"{scores:,} scores could show no more than ε = {format_decimals(most, 2, 'up')}"
    return None


# The form `whosin audit module:function`: two worlds, or a search over pairs of them.


@dataclass(frozen=True)
class Inputs:
    """Which inputs are tried, as options say it."""

    with_: str | None = None
    without: str | None = None
    queries: int | None = None
    relation: str | None = None
    pairs: str | None = None

    def check(self, known: bool) -> None:
        """Refuse none, and several ways at once."""
        if (self.with_ is None) != (self.without is None):
            first = self.with_ is None
            missing, other = ("--with", "--without") if first else ("--without", "--with")
            raise invalid_value(missing, f"given with {other}", "nothing")
        ways = [self.with_ is not None, self.queries is not None, self.pairs is not None]
        if sum(ways) > 1 or (sum(ways) == 0 and not known):
            accepted = "given in one way: by --with and --without, by --queries, or by --pairs"
            raise invalid_value("inputs", accepted, "none" if not sum(ways) else "several")
        if self.queries is not None and self.queries < 1:
            raise invalid_value("--queries", "a whole number of at least 1", self.queries)
        if self.relation is not None and self.queries is None:
            raise invalid_value("--relation", "given with --queries", self.relation)


def read_samples(text: str) -> int:
    """A whole number, also as 1e6 or 1,000,000."""
    from whosin.audit.sampling import MIN_DRAWS
    from whosin.exact import rational

    plain = text.strip()
    if re.fullmatch(r"\d{1,3}(?:([,_])\d{3})(?:\1\d{3})*", plain):
        plain = plain.replace(",", "").replace("_", "")
    number = rational(plain, "--samples")
    if number.denominator != 1 or number < MIN_DRAWS:
        accepted = f"a whole number of at least {MIN_DRAWS}, such as 100000, 100,000 or 1e5"
        raise invalid_value("--samples", accepted, text)
    return int(number)


def find_subject(
    target: str | None, entities: int | None, plan: Plan | None, loaded: Any = None
) -> Subject:
    """What is attacked: a function, a channel of ours, or the noise of a plan."""

    if target is None:
        assert plan is not None
        return plan_subject(plan)
    return load_subject(target, entities, loaded)


def audit_function(
    subject: Subject,
    inputs: Inputs,
    samples: int,
    confidence: object,
    claim: Claim,
    seed: int | None,
    stop: bool = False,
    timing: bool = False,
    float_bits: bool = True,
) -> Audit:
    """The audit of a function, with a bar."""
    import numpy as np

    from whosin import audit as room

    if claim.epsilon is not None:
        room.check_claim(claim.epsilon, samples, confidence, claim.delta)
    inputs.check(bool(subject.pairs))

    terms: dict[str, Any] = {"delta": claim.delta, "seed": seed, "timing": timing}
    terms["float_bits"] = float_bits
    with progress_bar() as bar:
        task = bar.add_task("drawing", total=samples)
        terms["progress"] = lambda count: bar.advance(task, count)
        if inputs.with_ is not None and inputs.without is not None:
            both: tuple[Any, Any] = (
                read_input(inputs.with_, "--with"),
                read_input(inputs.without, "--without"),
            )
            if np.array_equal(*both):
                raise invalid_value("--without", "another input than --with", "the same")
            if stop:
                terms["stop_at"] = claim.epsilon
            return room.two_worlds(subject.mechanism, *both, samples, confidence, **terms)
        tried: Any = subject.pairs
        if inputs.queries is not None:
            known = "add-remove" if claim.plan is None else claim.plan.relation
            relation = inputs.relation or known
            if claim.plan is not None and (relation, known) == ("replace", "add-remove"):
                raise invalid_value("--relation", "left out, or that of the plan", relation)
            tried = room.neighbouring_vectors(inputs.queries, relation)
        elif inputs.pairs is not None:
            tried = _load_pairs(inputs.pairs)
        return room.search(subject.mechanism, tried, samples, confidence, **terms)


def read_drawn(with_: Path | None, without: Path | None) -> tuple[Path, Path] | None:
    """Two files of samples, or none."""
    if with_ is None or without is None:
        if with_ is not without:
            names = ("--drawn-with", "--drawn-without")
            missing, other = names if with_ is None else names[::-1]
            raise invalid_value(missing, f"given with {other}", "nothing")
        return None
    return with_, without


def audit_samples(
    drawn: tuple[Path, Path],
    confidence: object,
    claim: Claim,
    seed: int | None,
    repeats: bool = False,
    float_bits: bool = True,
) -> Audit:
    """The audit of two files of samples: too few to refute the claim are refused."""
    from whosin import audit as room

    terms: dict[str, Any] = {"delta": claim.delta, "seed": seed, "repeats": repeats}
    terms["float_bits"] = float_bits
    return room.two_samples(*drawn, confidence, **terms, claim=claim.epsilon)


def _load_pairs(name: str) -> Any:
    from whosin.app.cli import user_code

    pairs = user_code.load_object(name)
    if not callable(pairs):
        return pairs
    try:
        return list(pairs())
    except (Exception, SystemExit) as error:
        accepted = "a function without parameters that yields (with, without) pairs"
        raise invalid_value("--pairs", accepted, f"{type(error).__name__}: {error}") from error


# The form `whosin audit train.py:fit`: a training, by coins, shadow models and canaries.
#
# Contract: the function's module has `score(model, rows)`, unless models have a known method, and
# `rows` (or a function of that name), unless `--rows` names a CSV file or another function. What
# fit
# returns decides: a model is asked for scores, a table is attacked as synthetic data.


@dataclass(frozen=True)
class Training:
    """Options of this form; None where an option was left out."""

    rows: str | None = None
    score: str | None = None
    label: str | None = None
    runs: int | None = None
    shadows: int | None = None
    canaries: int | None = None
    kind: str | None = None
    state: Path | None = None

    def given(self) -> dict[str, object]:
        """What was given, by option."""
        return {f"--{name}": value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Loaded:
    """What a target names, and the module that has it."""

    named: Any
    module: ModuleType

    def is_fit(self, options: Training) -> bool:
        """Whether it is a fit: rows are named, or its module has some."""
        return options.rows is not None or hasattr(self.module, "rows")


def load_target(target: str) -> Loaded | None:
    """What a target names; None for a channel file."""
    from whosin.app.cli import user_code

    return None if target.endswith(".json") else Loaded(*user_code.load_with_module(target))


def audit_training(
    loaded: Loaded, options: Training, confidence: object, claim: Claim, seed: int | None
) -> ModelAudit:
    """The audit of a fit, with a bar."""
    from whosin import audit as room
    from whosin.app.cli import user_code

    score = getattr(loaded.module, "score", None)
    if options.score is not None:
        score = user_code.load_object(options.score)
    rows = _load_rows(options, loaded.module)
    chosen = {name: getattr(options, name) for name in ("runs", "shadows", "canaries", "kind")}
    terms: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    terms |= {"confidence": confidence, "delta": claim.delta, "state": options.state, "seed": seed}
    with progress_bar() as bar:
        task = bar.add_task("training", total=terms.get("runs", 1) + terms.get("shadows", 8))
        terms["progress"] = lambda count: bar.advance(task, count)
        return room.model(loaded.named, rows, score, **terms)


def _load_rows(options: Training, module: Any) -> Any:
    from whosin.app.cli import user_code

    if options.rows is None:
        rows = module.rows
    elif options.rows.endswith(".csv"):
        return _load_table(Path(options.rows), options.label)
    else:
        rows = user_code.load_object(options.rows)
    if options.label is not None:
        raise invalid_value("--label", "given with --rows and a CSV file", options.label)
    return rows() if callable(rows) else rows


def _load_table(path: Path, label: str | None) -> Any:
    """A frame, or (frame, labels)."""
    from whosin.documents import MAX_STUDY_BYTES, read_csv

    require_extras("frames")
    import pandas

    with at("--rows"):
        table = read_csv(path, MAX_STUDY_BYTES)
    frame = pandas.DataFrame({name: table.column(name) for name in table.header})
    if label is None:
        return frame
    if label not in table.header:
        raise invalid_value("--label", f"a column of {path.name}", label)
    return frame.drop(columns=label), frame[label]
