"""A plan: what an adversary and a target require, with reasons. Plain data that survives a file."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, fields
from fractions import Fraction
from pathlib import Path

from whosin.calibration import codec
from whosin.calibration.queries import PlannedQuery
from whosin.calibration.target import Target
from whosin.documents import check_keys, read_json
from whosin.errors import InvalidInput
from whosin.families import Family
from whosin.notebook_display import Displayed
from whosin.validation import path_of

VERSION = 1
HEADROOM = Fraction(10)
"""By how much a failure probability is larger than the δ of an (ε, δ) guarantee, where only that is
given: beliefs then move by e^ε/(1 − 1/10) at most, but for a probability of 10 δ (T18)."""


@dataclass(frozen=True)
class Fallback:
    """What the same release still promises when the adversary knows more than assumed (T12)."""

    family: str
    words: str
    gamma: float
    theorem: str


@dataclass(frozen=True)
class Noise:
    """The noise for one query.

    Attributes:
        kind: "laplace" (or geometric, of the same scale, for whole numbers), "gaussian",
            "geometric", or "none".
        scale: its scale, or standard deviation.
        error: the expected absolute error of each number, in the units of the query.
        within: 95% of all numbers are within this distance of the truth.
    """

    kind: str
    scale: float
    error: float
    within: float


@dataclass(frozen=True)
class Plan(Displayed):
    """From an adversary and a target to the noise.

    Attributes:
        epsilon: world-level ε in nats, rounded down; with a δ the ε of an (ε, `dp_delta`)-DP
            release that suffices.
        relation: between which worlds: "add-remove" or "replace".
        gamma: the factor by which a belief may then move, for this family.
        baseline_epsilon: what plain DP needs for the same target against any prior, if it can.
        tight: whether no larger ε would do for all mechanisms; otherwise it is sufficient.
        composes: whether several releases may share this plan as their total: pure ε
            adds, and with a δ a ledger adds in zCDP.
        fallback: what holds if the adversary knows more.
    """

    target: Target
    family: Family
    epsilon: float
    relation: str
    gamma: float
    baseline_epsilon: float | None
    theorems: tuple[str, ...]
    tight: bool
    composes: bool
    delta: float = 0.0
    dp_delta: float = 0.0
    query: PlannedQuery | None = None
    noise: Noise | None = None
    fallback: tuple[Fallback, ...] = field(default=())
    entities: int | None = None

    @property
    def beliefs(self) -> tuple[Fraction, Fraction]:
        """The least and the largest belief that the promise is for."""
        adversary = self.target.against(self.family)
        return adversary.low, adversary.high

    @property
    def one_way(self) -> bool:
        """Whether (ε, δ) bounds how much presence shows and says nothing of absence: a count that
        rests on what others hide, under a promise about beliefs."""
        stated = self.target.averages or self.target.stated_epsilon is not None
        return self.family.hides_others and self.delta > 0 and not stated

    @property
    def failure(self) -> Fraction:
        """The probability, given that a person is in, with which beliefs may move further (T18):
        δ, or more where δ is all of the data's own (ε, δ) guarantee."""
        if self.dp_delta < self.delta:
            return Fraction(self.delta)
        return Fraction(self.dp_delta) * HEADROOM

    def to_dict(self) -> dict[str, object]:
        """A complete description, from which `Plan.from_dict` makes the plan again."""
        return {
            "version": VERSION,
            "target": codec.encode(self.target),
            "family": codec.encode(self.family),
            "query": None if self.query is None else codec.encode(self.query),
            "entities": self.entities,
            "delta": self.delta,
            "epsilon": self.epsilon,
            "dp_delta": self.dp_delta,
            "relation": self.relation,
            "gamma": self.gamma if math.isfinite(self.gamma) else "inf",
            "baseline_epsilon": self.baseline_epsilon,
            "theorems": list(self.theorems),
            "tight": self.tight,
            "composes": self.composes,
            "noise": None if self.noise is None else vars(self.noise),
            "fallback": [
                {**vars(each), "gamma": each.gamma if math.isfinite(each.gamma) else "inf"}
                for each in self.fallback
            ],
        }

    @classmethod
    def from_dict(cls, data: object) -> Plan:
        """Make a plan again and check that the file does not promise more than it can keep."""
        from whosin.calibration.planning import calibrate

        if not isinstance(data, dict):
            raise InvalidInput("plan", "a JSON object", type(data).__name__)
        if "version" not in data:
            accepted = "what `whosin plan --json` writes"
            raise InvalidInput("plan", accepted, "an object without a version")
        if data["version"] != VERSION:
            raise InvalidInput("version of the plan", f"{VERSION}", repr(data["version"]))
        for key in ("target", "family", "epsilon", "relation"):
            if key not in data:
                raise InvalidInput("plan", f"an object with {key!r}", "none")
        check_keys(data, ("version", *(each.name for each in fields(cls))), "plan")
        query = data.get("query")
        plan = calibrate(
            codec.decode_target(data["target"]),
            codec.decode_family(data["family"]),
            delta=data.get("delta", 0.0),
            query=None if query is None else codec.decode_query(query),
            entities=data.get("entities"),
        )
        again = plan.to_dict()
        for key in data.keys() - {"target", "family", "query"}:
            if not _agree(data[key], again[key]):
                raise InvalidInput(f"{key} of the plan", json.dumps(again[key]), data[key])
        return plan

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read what `whosin plan --json` writes."""
        return cls.from_dict(read_json(path_of(path), "plan file"))

    def save(self, path: str | Path) -> None:
        """Write the plan as JSON."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False)
        path_of(path).write_text(text + "\n", encoding="utf-8")


def _agree(given: object, planned: object) -> bool:
    """Whether a value of a file is what planning finds, up to rounding on another machine."""
    if isinstance(planned, dict) and isinstance(given, dict):
        return planned.keys() == given.keys() and all(_agree(given[k], planned[k]) for k in planned)
    if isinstance(planned, list) and isinstance(given, list):
        return len(planned) == len(given) and all(map(_agree, given, planned))
    if (
        isinstance(planned, float)
        and isinstance(given, int | float)
        and not isinstance(given, bool)
    ):
        return abs(given) < 1e300 and math.isclose(given, planned, rel_tol=1e-9)
    return type(given) is type(planned) and given == planned
