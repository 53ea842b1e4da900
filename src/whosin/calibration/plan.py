"""A plan as data: what an adversary and a target require, its query, and its file."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from whosin.calibration.targets import Target
from whosin.documents import check_keys, read_json
from whosin.errors import (
    InvalidInput,
    UnknownName,
    Unsupported,
    invalid_value,
    read_path,
    read_whole,
    shorten,
    shorten_value,
    spell,
)
from whosin.exact import rational
from whosin.families import FAMILY_KINDS, Family
from whosin.noise.distributions import GaussianNoise, LaplaceNoise, make_noise
from whosin.notebook_display import Displayed
from whosin.plain_files import write_file

# How far one person can move an answer, and what that costs in accuracy.

PLANNED_QUERY_KINDS = ("count", "rows", "sum", "histogram")


@dataclass(frozen=True)
class PlannedQuery:
    """A query whose noise is to be planned.

    Args:
        kind: "count" (entities), "rows", "sum" (of clamped values) or "histogram".
        lower, upper: the clamp of a sum.
        max_rows_per_group: the most rows that a privacy unit may have in a cell of a histogram, or
            in all without one.
        max_groups: the most cells of a histogram that a privacy unit may be in.
    """

    kind: str = "count"
    lower: object = 0
    upper: object = 1
    max_rows_per_group: int = 1
    max_groups: int = 1

    def __post_init__(self) -> None:
        if self.kind not in PLANNED_QUERY_KINDS:
            raise UnknownName("query", str(self.kind), PLANNED_QUERY_KINDS)
        for name in ("max_rows_per_group", "max_groups"):
            object.__setattr__(self, name, read_whole(getattr(self, name), name, 1))
        if rational(self.lower, "lower") >= rational(self.upper, "upper"):
            raise invalid_value("lower", f"below upper, {self.upper}", self.lower)

    def l1_sensitivity(self, relation: str) -> Fraction:
        """The L1 sensitivity: how far one privacy unit can move the answer in total."""
        replace = relation == "replace"
        if self.kind == "count":
            return Fraction(1)
        if self.kind == "rows":
            return Fraction(self.max_rows_per_group)
        if self.kind == "histogram":
            return Fraction(self.max_groups * self.max_rows_per_group * (2 if replace else 1))
        low, high = rational(self.lower), rational(self.upper)
        if replace:
            return self.max_rows_per_group * (max(high, Fraction(0)) - min(low, Fraction(0)))
        return self.max_rows_per_group * max(abs(low), abs(high))

    def l2_sensitivity(self, relation: str) -> float:
        """The L2 sensitivity, which Gaussian noise needs."""
        return math.sqrt(self.squared_l2_sensitivity(relation))

    def squared_l2_sensitivity(self, relation: str) -> Fraction:
        """The square of the L2 sensitivity, exactly."""
        if self.kind != "histogram":
            return self.l1_sensitivity(relation) ** 2
        moved = self.max_groups * (2 if relation == "replace" else 1)
        return Fraction(self.max_rows_per_group**2 * moved)

    def widest_noise(self, within: Fraction, kind: str = "laplace") -> LaplaceNoise | GaussianNoise:
        """The widest noise with which 95% of answers are within ± this of the truth (F33).

        Counts have noise of whole numbers; sums are taken to be on a fine grid, where the noise is
        as the continuous one.
        """
        law: type[LaplaceNoise | GaussianNoise] = (
            GaussianNoise if kind == "gaussian" else LaplaceNoise
        )
        if self.kind != "sum":
            return law.within(float(within))
        unit = Fraction(make_noise(kind, Fraction(1)).continuous_quantile(0.95) * (1 + 2**-40))
        return make_noise(kind, (within / unit) ** (2 if kind == "gaussian" else 1))

    def words(self) -> str:
        """The query in words."""
        rows = self.max_rows_per_group
        most = f"at most {rows} row{'s' if rows > 1 else ''} a person"
        if self.kind == "sum":
            low, high = float(rational(self.lower)), float(rational(self.upper))
            return f"a sum of values clamped to {spell(low)}..{spell(high)}, {most}"
        if self.kind == "histogram":
            return f"a histogram, a person in at most {self.max_groups} cells, {most} in each"
        return "a count of people" if self.kind == "count" else f"a count of rows, {most}"


# Targets, families and queries as JSON and back; exact numbers as strings.


def encode_object(thing: Target | Family | PlannedQuery) -> dict[str, object]:
    """{"name": …, field: value, …}."""
    name = "query" if isinstance(thing, PlannedQuery) else thing.name
    if name == "explicit":
        raise Unsupported("a plan for a list of priors cannot be written to a file", field="family")
    return {"name": name} | {
        each.name: _plain_value(getattr(thing, each.name))
        for each in fields(thing)  # type: ignore[arg-type]
    }


def decode_object(data: object, what: str) -> Any:
    """The target, family or query of a file."""
    from whosin.calibration import TARGET_KINDS

    kinds: dict[str, dict[str, Any]] = {
        "target": TARGET_KINDS, "family": FAMILY_KINDS, "query": {"query": PlannedQuery},
    }  # fmt: skip
    known = kinds[what]
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        raise InvalidInput(
            f"{what} is not an object with a name", field=what, value=type(data).__name__
        )
    if data["name"] not in known:
        raise UnknownName(what, data["name"], known)
    kind = known[data["name"]]
    allowed = {each.name for each in fields(kind)}
    given = {key: value for key, value in data.items() if key != "name"}
    check_keys(given, allowed, what)
    try:
        return kind(**given)
    except TypeError:
        missing = ", ".join(sorted(allowed - set(given)))
        raise InvalidInput(
            f"{what} {data['name']} lacks one of {missing}", field=what, value=sorted(given)
        ) from None


def _plain_value(value: object) -> object:
    return str(value) if isinstance(value, Fraction) else value


# A plan: what an adversary and a target require, with reasons. Plain data that survives a file.

PLAN_VERSION = 1
FAILURE_FACTOR = Fraction(10)
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
class PlannedNoise:
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


def _describe_fields(value: Any) -> str:
    """A dataclass by its name and fields, with fractions as decimals."""
    if not hasattr(value, "__dataclass_fields__"):
        return shorten_value(value)
    given = {each.name: getattr(value, each.name) for each in fields(value)}
    shown = [
        f"{name}={spell(each) if isinstance(each, Fraction) else shorten_value(each)}"
        for name, each in given.items()
    ]
    return f"{type(value).__name__}({', '.join(shown)})"


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
        reserve: the ε that a ledger keeps for pure answers beside Gaussian ones; 0 for none.
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
    noise: PlannedNoise | None = None
    fallback: tuple[Fallback, ...] = field(default=())
    entities: int | None = None
    reserve: float = 0.0

    def __repr__(self) -> str:
        """The promise in a sentence, then who looks and what it takes."""
        spent = f"ε = {spell(self.epsilon)}"
        spent += f", δ = {spell(self.dp_delta)}" if self.dp_delta else ""
        lines = [
            f"Plan: whoever looks {self.target.words()}",
            f"  adversary  {_describe_fields(self.family)}",
            f"  budget     {spent} ({self.relation})",
        ]
        if self.noise is not None:
            noise = f"{self.noise.kind} noise of scale {spell(self.noise.scale)}"
            lines.append(f"  noise      {noise}, 95% within ±{spell(self.noise.within)}")
        return "\n".join(lines)

    __str__ = __repr__

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
            return rational(self.delta)
        return rational(self.dp_delta) * FAILURE_FACTOR

    def terms(self) -> dict[str, object]:
        """What it allows against whom, the same for any spelling of its target: 3/4 or 0.75."""
        data = replace(self, family=self.family.canonical()).to_dict()
        return {key: value for key, value in data.items() if key != "target"}

    def to_dict(self) -> dict[str, object]:
        """A complete description, from which `Plan.from_dict` makes the plan again."""
        return {
            "version": PLAN_VERSION,
            "target": encode_object(self.target),
            "family": encode_object(self.family),
            "query": None if self.query is None else encode_object(self.query),
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
            **({"reserve": self.reserve} if self.reserve else {}),
        }

    @classmethod
    def from_dict(cls, data: object) -> Plan:
        """Make a plan again and check that the file does not promise more than it can keep."""
        from whosin.calibration.planning import calibrate

        if not isinstance(data, dict):
            raise InvalidInput("plan is not a JSON object", field="plan", value=type(data).__name__)
        if "version" not in data:
            raise InvalidInput(
                "plan has no version", field="plan", hint="give what `whosin plan --json` writes"
            )
        if data["version"] != PLAN_VERSION:
            version = data["version"]
            has = f"the plan has version {shorten_value(version)}"
            message = f"{has}, and this whosin reads version {PLAN_VERSION}"
            raise InvalidInput(message, field="version of the plan", value=version)
        for key in ("target", "family", "epsilon", "relation"):
            if key not in data:
                raise InvalidInput(f"plan has no {key}", field="plan", value=key)
        check_keys(data, ("version", *(each.name for each in fields(cls))), "plan")
        query = data.get("query")
        plan = calibrate(
            decode_object(data["target"], "target"),
            decode_object(data["family"], "family"),
            delta=data.get("delta", 0.0),
            query=None if query is None else decode_object(query, "query"),
            entities=data.get("entities"),
            reserve=data.get("reserve", 0.0),
        )
        again = plan.to_dict()
        for key in sorted(data.keys() - {"target", "family", "query"}):
            if not _values_agree(data[key], again.get(key)):
                field, given = f"{key} of the plan", data[key]
                found = f"its target and family give {shorten(json.dumps(again.get(key)))}"
                message = f"{field} is {shorten_value(given)}, and {found}"
                raise InvalidInput(message, field=field, value=given, hint="make the plan anew")
        return plan

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read what `whosin plan --json` writes."""
        return cls.from_dict(read_json(read_path(path), "plan file"))

    def save(self, path: str | Path) -> None:
        """Write the plan as JSON."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False)
        write_file(read_path(path), text + "\n")


def _values_agree(given: object, planned: object) -> bool:
    """Whether a value of a file is what planning finds, up to rounding on another machine."""
    if isinstance(planned, dict) and isinstance(given, dict):
        return planned.keys() == given.keys() and all(
            _values_agree(given[k], planned[k]) for k in planned
        )
    if isinstance(planned, list) and isinstance(given, list):
        return len(planned) == len(given) and all(map(_values_agree, given, planned))
    if (
        isinstance(planned, float)
        and isinstance(given, int | float)
        and not isinstance(given, bool)
    ):
        return abs(given) < 1e300 and math.isclose(given, planned, rel_tol=1e-9)
    return type(given) is type(planned) and given == planned
