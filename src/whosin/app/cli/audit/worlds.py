"""The form `whosin audit module:function`: two worlds, or a search over pairs of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whosin.app.cli.audit.claims import Claim
from whosin.app.cli.output import progress_bar
from whosin.errors import InvalidInput

if TYPE_CHECKING:
    from whosin.app.cli.subjects import Subject
    from whosin.audit import Audit
    from whosin.calibration import Plan


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
            raise InvalidInput(missing, f"given with {other}", "nothing")
        ways = [self.with_ is not None, self.queries is not None, self.pairs is not None]
        if sum(ways) > 1 or (sum(ways) == 0 and not known):
            accepted = "given in one way: by --with and --without, by --queries, or by --pairs"
            raise InvalidInput("inputs", accepted, "none" if not sum(ways) else "several")
        if self.queries is not None and self.queries < 1:
            raise InvalidInput("--queries", "a whole number of at least 1", self.queries)
        if self.relation is not None and self.queries is None:
            raise InvalidInput("--relation", "given with --queries", self.relation)


def read_samples(text: str) -> int:
    """A whole number, also as 1e6 or 1,000,000."""
    from whosin.audit.terms import FEWEST
    from whosin.exact import rational

    plain = text.strip()
    if re.fullmatch(r"\d{1,3}(?:([,_])\d{3})(?:\1\d{3})*", plain):
        plain = plain.replace(",", "").replace("_", "")
    number = rational(plain, "--samples")
    if number.denominator != 1 or number < FEWEST:
        accepted = f"a whole number of at least {FEWEST}, such as 100000, 100,000 or 1e5"
        raise InvalidInput("--samples", accepted, text)
    return int(number)


def find_subject(
    target: str | None, entities: int | None, plan: Plan | None, loaded: Any = None
) -> Subject:
    """What is attacked: a function, a channel of ours, or the noise of a plan."""
    from whosin.app.cli import subjects

    if target is None:
        assert plan is not None
        return subjects.of_plan(plan)
    return subjects.subject(target, entities, loaded)


def of_worlds(
    subject: Subject,
    inputs: Inputs,
    samples: int,
    confidence: object,
    claim: Claim,
    seed: int | None,
    stop: bool = False,
    timing: bool = False,
) -> Audit:
    """The audit of a function, with a bar."""
    import numpy as np

    from whosin import audit as room
    from whosin.app.cli import subjects

    if claim.epsilon is not None:
        room.check_claim(claim.epsilon, samples, confidence, claim.delta)
    inputs.check(bool(subject.pairs))
    terms: dict[str, Any] = {"delta": claim.delta, "seed": seed, "timing": timing}
    with progress_bar() as bar:
        task = bar.add_task("drawing", total=samples)
        terms["progress"] = lambda count: bar.advance(task, count)
        if inputs.with_ is not None and inputs.without is not None:
            both: tuple[Any, Any] = (
                subjects.value(inputs.with_, "--with"),
                subjects.value(inputs.without, "--without"),
            )
            if np.array_equal(*both):
                raise InvalidInput("--without", "another input than --with", "the same")
            if stop:
                terms["stop_at"] = claim.epsilon
            return room.two_worlds(subject.mechanism, *both, samples, confidence, **terms)
        tried: Any = subject.pairs
        if inputs.queries is not None:
            tried = room.neighbours(inputs.queries, inputs.relation or "add-remove")
        elif inputs.pairs is not None:
            tried = _pairs(inputs.pairs)
        return room.search(subject.mechanism, tried, samples, confidence, **terms)


def read_drawn(with_: Path | None, without: Path | None) -> tuple[Path, Path] | None:
    """Two files of samples, or none."""
    if with_ is None or without is None:
        if with_ is not without:
            names = ("--drawn-with", "--drawn-without")
            missing, other = names if with_ is None else names[::-1]
            raise InvalidInput(missing, f"given with {other}", "nothing")
        return None
    return with_, without


def of_drawn(
    drawn: tuple[Path, Path],
    confidence: object,
    claim: Claim,
    seed: int | None,
    repeats: bool = False,
) -> Audit:
    """The audit of two files of samples: too few to refute the claim are refused."""
    from whosin import audit as room

    terms: dict[str, Any] = {"delta": claim.delta, "seed": seed, "repeats": repeats}
    return room.two_samples(*drawn, confidence, **terms, claim=claim.epsilon)


def _pairs(name: str) -> Any:
    from whosin.app.cli import named_objects

    pairs = named_objects.load(name)
    if not callable(pairs):
        return pairs
    try:
        return list(pairs())
    except (Exception, SystemExit) as error:
        accepted = "a function without parameters that yields (with, without) pairs"
        raise InvalidInput("--pairs", accepted, f"{type(error).__name__}: {error}") from error
