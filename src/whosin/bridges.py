"""What other tools' budgets and accountants promise, and what they cost in a ledger."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from whosin.calibration.accounting import LossDistribution
from whosin.curves import LossCurve, TradeOff
from whosin.curves.curve import below_lines
from whosin.errors import (
    InvalidInput,
    UnknownName,
    Unsupported,
    WhosinError,
    check_kind,
    invalid_value,
    read_whole,
    spell,
)
from whosin.exact import exact_fraction, exp_up, rational, read_ranged, round_up
from whosin.ledger import Debit, Ledger
from whosin.ledger.budget import NEIGHBOUR_RELATIONS, Cost, Spend
from whosin.ledger.encoding import epsilon_from_zcdp

__all__ = ["SUPPORTED_TOOLS", "Guarantee", "debit_guarantee", "read", "read_curve"]


def __dir__() -> list[str]:
    return __all__


# What another tool promises, in our words, and what it costs in a ledger.
#
# What a tool says is taken at its word; what follows from it is rounded towards privacy. Where a
# tool protects single rows and people have several, group privacy makes the difference.


@dataclass(frozen=True)
class Guarantee:
    """(ε, δ)-differential privacy as another tool states it, or ρ-zCDP.

    Attributes:
        tool, version: who says so.
        epsilon: ε; infinite where only ρ is known.
        delta: δ.
        relation: "add-remove" or "replace".
        rho: ρ of zero-concentrated DP, if that is what the tool states.
        says: where the numbers come from, in a few words.
    """

    tool: str
    version: str
    epsilon: Fraction | float
    delta: Fraction = Fraction(0)
    relation: str = "add-remove"
    rho: Fraction | None = None
    says: str = ""

    def __post_init__(self) -> None:
        if self.relation not in NEIGHBOUR_RELATIONS:
            raise UnknownName("relation", str(self.relation), NEIGHBOUR_RELATIONS)
        if self.epsilon != math.inf:
            object.__setattr__(self, "epsilon", read_ranged(self.epsilon, "epsilon", "at least 0"))
        elif self.rho is None:
            message = "epsilon is infinite and there is no rho, so this tool promises nothing"
            raise InvalidInput(message, field="epsilon", value=self.epsilon)
        object.__setattr__(self, "delta", read_ranged(self.delta, "delta", "between 0 and 1"))
        if self.rho is not None:
            object.__setattr__(self, "rho", read_ranged(self.rho, "rho", "at least 0"))

    def for_group(self, size: int) -> Guarantee:
        """The same for people who have up to this many rows: kε, k·e^((k−1)ε)·δ, and k²ρ."""
        k = read_whole(size, "max_rows", 1)
        if k == 1:
            return self
        if self.rho is not None and self.delta:
            message = "group privacy of ρ-zCDP with a δ is not known"
            raise InvalidInput(message, field="max_rows", value=k, hint="use max_rows=1")
        rho = None if self.rho is None else k * k * self.rho
        delta = self.delta
        if delta:
            assert isinstance(self.epsilon, Fraction)
            delta = min(k * exp_up((k - 1) * self.epsilon) * delta, Fraction(1))
        says = f"{self.says}; people have up to {k} rows"
        return replace(self, epsilon=k * self.epsilon, delta=delta, rho=rho, says=says)

    def at(self, delta: Fraction) -> Guarantee:
        """The least ε that is proved for a ρ at a δ, rounded up (`epsilon_of`)."""
        if self.rho is None or self.epsilon != math.inf:
            return self
        failing = read_ranged(delta, "delta", "strictly between 0 and 1") - self.delta
        if failing <= 0:
            raise invalid_value("delta", f"above the tool's own δ, {spell(self.delta)}", delta)
        says = f"{self.says}; ρ = {spell(self.rho)} at this δ"
        epsilon = epsilon_from_zcdp(self.rho, failing)
        return replace(self, epsilon=epsilon, delta=Fraction(delta), rho=None, says=says)

    @property
    def costs(self) -> dict[str, Cost]:
        """The costs by relation. Replacing a person is removing one and adding one, so an
        add-remove guarantee holds for replacing as it does for a group of two. The reverse does not
        hold."""
        result = {self.relation: self._cost}
        if self.relation == "add-remove" and not (self.rho is not None and self.delta):
            twice = self.for_group(2)
            if twice.delta < 1:
                result["replace"] = twice._cost
        return result

    @property
    def _cost(self) -> Cost:
        if self.rho is not None:
            return Cost.gaussian(self.rho, self.delta)
        return Cost.pure(self.epsilon, self.delta)

    def spend(self, title: str) -> Spend:
        """What a ledger is debited for a release that the other tool makes."""
        if not isinstance(title, str) or not title.strip():
            hint = "say in a few words what was published"
            raise InvalidInput("title is empty", field="title", value=title, hint=hint)
        what = {"kind": "external", "name": title, "tool": f"{self.tool} {self.version}"}
        what |= {"relation": self.relation, "says": self.says}
        return Spend(what, self.costs, guarantee=f"external: {self.tool}")

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain data for JSON."""
        return vars(self) | {
            "epsilon": round_up(self.epsilon) if self.epsilon != math.inf else "inf",
            "delta": round_up(self.delta),
            "rho": None if self.rho is None else round_up(self.rho),
        }


# External debits: what other tools publish about the same people, paid from the same budget.


def debit_guarantee(
    ledger: Ledger, dataset: str, guarantee: Guarantee, title: str, request: str | None = None
) -> Debit:
    """Pay for a release of another tool, before it is shown. Its entry is in the chain like any
    other.

    The tool's unit must be the ledger's privacy unit: whoever debits says so (see `max_rows` of
    `read`).

    Args:
        title: what is published, in a few words; the ledger keeps it.
        request: an id, for a retry; by default a fresh one.

    Raises:
        BudgetRefused: it would exceed the budget, or the promise does not add: do not publish.
    """
    spend = check_kind(guarantee, Guarantee, "guarantee").spend(title)
    paid = ledger.debit(dataset, uuid.uuid4().hex if request is None else request, spend)
    if paid.answer is None:
        ledger.store(paid, {"external": guarantee.tool, "title": title})
    return paid


# How each tool's objects are read. Nothing is imported: objects are asked what they know.


ADJACENCY_RELATIONS = {
    "SymmetricDistance": "add-remove",
    "InsertDeleteDistance": "add-remove",
    "ChangeOneDistance": "replace",
    "HammingDistance": "replace",
}
"""Relations of OpenDP's metrics on datasets."""


@dataclass(frozen=True)
class ToolContext:
    """What a caller adds to an object.

    Attributes:
        delta: the δ at which an accountant or a curve is read.
        max_rows: how many rows a person has at most.
        columns: of SmartNoise SQL's Privacy: how many numbers a query computes of each group.
        updates, parameters: of JAX-Privacy's accountants.
    """

    delta: Fraction | None = None
    max_rows: int = 1
    columns: int | None = None
    updates: int | None = None
    parameters: Any = None

    def need_delta(self, what: str) -> Fraction:
        if self.delta is None or not 0 < self.delta < 1:
            message = f"{what} needs a delta strictly between 0 and 1"
            raise InvalidInput(message, field="delta", value=self.delta)
        return self.delta


Stated = dict[str, Any]
"""The numbers of a `Guarantee`, for people with one row. Where they are for something else, such as
"a privacy id", `unit` names it; `ROWS_UNIT` means that the people's rows are counted in."""
ROWS_UNIT = "rows"


def _states_nothing(value: Any, tool: str, hint: str) -> Unsupported:
    message = f"a {type(value).__name__} of {tool} states no guarantee"
    return Unsupported(message, field="from", hint=hint)


def read_opendp(value: Any, asked: ToolContext) -> Stated:
    """A measurement, read at d_in = rows; or a context, which knows its own distance."""
    if hasattr(value, "accountant"):
        measurement, distance = value.accountant, value.d_in
        kind, unit = f"context, d_in = {distance}", "the context's own d_in"
    elif hasattr(value, "output_measure"):
        measurement, distance = value, asked.max_rows
        kind, unit = f"measurement, d_in = {distance}", ROWS_UNIT
    else:
        raise _states_nothing(value, "OpenDP", "give a measurement or a context")
    metric = str(measurement.input_metric).partition("(")[0]
    if metric not in ADJACENCY_RELATIONS:
        message = f"OpenDP's input metric {metric} says nothing about rows of a dataset"
        hint = f"use {', '.join(sorted(ADJACENCY_RELATIONS))}"
        raise InvalidInput(message, field="input_metric", value=metric, hint=hint)
    loss, measure = measurement.map(distance), str(measurement.output_measure)
    stated: Stated = {"relation": ADJACENCY_RELATIONS[metric], "says": kind, "unit": unit}
    match measure:
        case "MaxDivergence":
            return stated | {"epsilon": exact_fraction(loss)}
        case "ZeroConcentratedDivergence":
            return stated | {"epsilon": math.inf, "rho": exact_fraction(loss)}
        case "Approximate(MaxDivergence)":
            return stated | {"epsilon": exact_fraction(loss[0]), "delta": exact_fraction(loss[1])}
        case "Approximate(ZeroConcentratedDivergence)":
            numbers = {"rho": exact_fraction(loss[0]), "delta": exact_fraction(loss[1])}
            return stated | {"epsilon": math.inf, **numbers}
        case "SmoothedMaxDivergence":
            delta = asked.need_delta("a privacy profile")
            return stated | {"epsilon": exact_fraction(loss.epsilon(float(delta))), "delta": delta}
    message = f"OpenDP's output measure {measure} cannot be read as ε, (ε, δ) or ρ"
    raise InvalidInput(message, field="output_measure", value=measure)


def dp_accounting(value: Any, asked: ToolContext) -> Stated:
    """An accountant as it is, or an event, by privacy-loss distributions, else by Rényi DP."""
    if not hasattr(value, "get_epsilon"):
        value = read_accountant(value)
    delta = asked.need_delta("an accountant")
    relation = _read_relation(
        "neighboring_relation",
        value.neighboring_relation.name,
        {"ADD_OR_REMOVE_ONE": "add-remove", "REPLACE_ONE": "replace"},
    )
    return _read_epsilon(value, delta, relation, type(value).__name__)


def _read_relation(field: str, name: str, relations: dict[str, str]) -> str:
    if name not in relations:
        raise invalid_value(field, f"one of {', '.join(relations)}", name)
    return relations[name]


def read_accountant(event: Any) -> Any:
    """An accountant of dp-accounting that has composed an event."""
    from importlib import import_module

    from whosin.errors import require_extras

    require_extras("accounting")
    for module, kind in (("pld", "PLDAccountant"), ("rdp", "RdpAccountant")):
        accountant = getattr(import_module(f"dp_accounting.{module}"), kind)()
        if accountant.supports(event):
            return accountant.compose(event)
    raise Unsupported("no accountant of dp-accounting supports this event", field="from")


def read_opacus(value: Any, asked: ToolContext) -> Stated:
    """An accountant, or a privacy engine, which has one. Sampling is by Poisson, add-remove. The
    one of Gaussian DP (Bu et al. 2020) goes by a limit of many steps, and may be below the truth:
    1.71 where privacy losses give 4.75 (σ = 0.6, rate 0.01, 100 steps, δ = 1e-6)."""
    accountant = getattr(value, "accountant", value)
    kind = accountant.mechanism()
    if kind == "gdp":
        message = "Opacus's gdp accountant uses a limit of many steps, and its ε may be too low"
        raise Unsupported(message, field="from", value=kind, hint="use its rdp or prv accountant")
    delta = asked.need_delta("an accountant")
    spent = accountant.get_epsilon(delta=float(delta))
    return _state_epsilon(spent, delta, "add-remove", f"{kind} accountant")


def jax_privacy(value: Any, asked: ToolContext) -> Stated:
    """A training accountant, with the number of updates and the parameters of the training, which
    say how it samples: by Poisson, add-remove, or batches of a fixed size, replace."""
    if asked.updates is None or asked.parameters is None:
        message = "JAX-Privacy's accountants do not know how long the training is"
        hint = "give updates and parameters"
        raise InvalidInput(message, field="updates and parameters", hint=hint)
    delta = rational(asked.parameters.delta, "delta")
    sampling = asked.parameters.sampling_method.name
    relations = {"POISSON": "add-remove", "FIXED_BATCH_SIZE": "replace"}
    relation = _read_relation("sampling_method", sampling, relations)
    spent = value.compute_epsilon(asked.updates, asked.parameters)
    stated = _state_epsilon(spent, delta, relation, f"{asked.updates} updates")
    if getattr(asked.parameters, "examples_per_user", None) is not None:
        stated["unit"] = "a user"
    return stated


def read_tumult(value: Any, asked: ToolContext) -> Stated:
    """A budget. Add-remove of the protected rows or ids. Not a session: it only knows what remains,
    and nothing of what its answers have cost."""
    if hasattr(value, "remaining_privacy_budget"):
        message = "a session of Tumult Analytics knows only the budget that is left"
        hint = "read the budget that it started with, or the one of the query"
        raise Unsupported(message, field="from", hint=hint)
    unit = "a session's protected ids"
    stated: Stated = {"relation": "add-remove", "says": "budget", "unit": unit}
    if hasattr(value, "rho"):
        return stated | {"epsilon": math.inf, "rho": _read_number(value.rho)}
    if hasattr(value, "epsilon"):
        delta = _read_number(getattr(value, "delta", 0))
        return stated | {"epsilon": _read_number(value.epsilon), "delta": delta}
    raise _states_nothing(value, "Tumult Analytics", "give a privacy budget")


def pipeline_dp(value: Any, asked: ToolContext) -> Stated:
    """A budget accountant, by its total. Add-remove of a privacy id."""
    if not hasattr(value, "_total_epsilon"):
        raise _states_nothing(value, "PipelineDP", "give a budget accountant")
    epsilon, delta = _read_number(value._total_epsilon), _read_number(value._total_delta)
    stated = {"relation": "add-remove", "says": "total of a budget", "unit": "a privacy id"}
    return {**stated, "epsilon": epsilon, "delta": delta}


def read_smartnoise(value: Any, asked: ToolContext) -> Stated:
    """A privacy, which is for each number that a query computes, or an odometer (all so far), of a
    key. Odometers that count steps of one kind leave out the square of δ: theirs are added here."""
    relations = {"addremove": "add-remove", "substitute": "replace"}
    privacy = getattr(value, "privacy", value)
    neighbours = getattr(privacy, "neighboring", "addremove")
    relation = _read_relation("neighboring", neighbours, relations)
    stated: Stated = {"relation": relation, "unit": "a key"}
    if hasattr(value, "spent"):
        said = "what an odometer has spent"
        if hasattr(value, "k") and not hasattr(value, "steps"):
            return stated | _compose_answers(privacy, value.k) | {"says": said}
        epsilon, delta = value.spent
        return stated | {**_epsilon_delta(epsilon, delta), "says": said}
    if not hasattr(value, "epsilon"):
        raise _states_nothing(value, "SmartNoise SQL", "give a Privacy or an odometer")
    if asked.columns is None:
        message = (
            "a Privacy of SmartNoise SQL is the cost of each number, and it does not say how many "
            "there are"
        )
        hint = (
            "give columns, the numbers that are computed (a mean is two, and a count of keys may "
            "come on top), or read an odometer"
        )
        raise InvalidInput(message, field="columns", hint=hint)
    count = read_whole(asked.columns, "columns", 1)
    said = f"privacy of {count} computed columns"
    return stated | _compose_answers(privacy, count) | {"says": said}


def _compose_answers(privacy: Any, count: int) -> dict[str, Fraction]:
    """ε and δ of several answers: they add."""
    if privacy.delta is None:
        message = "this Privacy of SmartNoise SQL has no delta"
        raise InvalidInput(message, field="delta", hint="give it one")
    one = _epsilon_delta(privacy.epsilon, privacy.delta)
    return {name: count * number for name, number in one.items()}


def read_riskcal(value: Any, asked: ToolContext) -> Stated:
    """A CTD accountant, of Poisson sampling (add-remove), whose trade-off curve is read at a δ."""
    if not hasattr(value, "get_epsilon"):
        raise _states_nothing(value, "riskcal", "give an accountant")
    delta = asked.need_delta("an accountant")
    return _read_epsilon(value, delta, "add-remove", "trade-off curve")


def _read_epsilon(value: Any, delta: Fraction, relation: str, says: str) -> Stated:
    try:
        spent = value.get_epsilon(float(delta))
    except TypeError:
        spent = value.get_epsilon(delta=float(delta))
    return _state_epsilon(spent, delta, relation, says)


def _state_epsilon(spent: Any, delta: Fraction, relation: str, says: str) -> Stated:
    number = float(spent)
    if -math.inf < number < 0:
        number = 0.0  # Rényi accountants say so at a large δ, and δ only falls with ε
    if not 0 <= number < math.inf:
        message = f"the tool states an ε of {number}, which promises nothing"
        raise InvalidInput(message, field="epsilon", value=number)
    return {"epsilon": exact_fraction(number), "delta": delta, "relation": relation, "says": says}


def _epsilon_delta(epsilon: Any, delta: Any) -> dict[str, Fraction]:
    return {"epsilon": exact_fraction(float(epsilon)), "delta": exact_fraction(float(delta))}


def _read_number(value: Any) -> Fraction:
    """A number, also one that only knows its text (SymPy's)."""
    return rational(value if isinstance(value, int | float | Fraction) else str(value))


Reader = Callable[[Any, ToolContext], Stated]


# Which tool an object is of, and what it says.


@dataclass(frozen=True)
class Tool:
    """Another tool: its name for people, its package, the versions that were tried, and how its
    objects are read."""

    name: str
    package: str
    tried: tuple[str, ...]
    read: Reader


SUPPORTED_TOOLS: dict[str, Tool] = {
    "opendp": Tool("OpenDP", "opendp", ("0.16",), read_opendp),
    "dp_accounting": Tool("dp-accounting", "dp-accounting", ("0.6",), dp_accounting),
    "opacus": Tool("Opacus", "opacus", ("1.6",), read_opacus),
    "jax_privacy": Tool("JAX-Privacy", "jax-privacy", ("2.0",), jax_privacy),
    "tmlt": Tool("Tumult Analytics", "tmlt.analytics", ("0.21",), read_tumult),
    "pipeline_dp": Tool("PipelineDP", "pipeline-dp", ("0.3",), pipeline_dp),
    "snsql": Tool("SmartNoise SQL", "smartnoise-sql", ("1.0",), read_smartnoise),
    "riskcal": Tool("riskcal", "riskcal", ("1.5",), read_riskcal),
}
"""The tools, by the module that an object's class is from."""


def read(
    value: Any,
    *,
    delta: object = None,
    max_rows: int = 1,
    columns: int | None = None,
    updates: int | None = None,
    parameters: Any = None,
) -> Guarantee:
    """What an object of another tool promises.

    Args:
        value: a measurement, context, budget, accountant or event, as it is; or a `Guarantee`.
        delta: the δ at which accountants, curves and ρ are read.
        max_rows: how many rows a person has at most, where the tool protects single rows.
        columns: for a Privacy of SmartNoise SQL: how many numbers the query computes, those that
            its means and thresholds need too.
        updates, parameters: for JAX-Privacy's accountants: `DpParams` and how many updates.

    Raises:
        InvalidInput: it is of no tool that is known, or of a version that was not tried.
    """
    asked = ToolContext(
        None if delta is None else rational(delta, "delta"),
        read_whole(max_rows, "max_rows", 1),
        columns,
        updates=updates,
        parameters=parameters,
    )
    if isinstance(value, Guarantee):
        _only_one(asked, "a Guarantee is for people as they are: use its for_group")
        result = value
    else:
        result = _state_guarantee(value, asked)
    return result if asked.delta is None else result.at(asked.delta)


def _state_guarantee(value: Any, asked: ToolContext) -> Guarantee:
    modules = [kind.__module__.partition(".")[0] for kind in type(value).__mro__]
    known = next((module for module in modules if module in SUPPORTED_TOOLS), None)
    if known is None:
        kind, names = type(value).__name__, (tool.name for tool in SUPPORTED_TOOLS.values())
        message = f"a {kind} is no object of a tool that whosin reads"
        hint = f"give one of {', '.join(names)}"
        raise InvalidInput(message, field="from", value=kind, hint=hint)
    tool = SUPPORTED_TOOLS[known]
    number = _installed_version(tool)
    try:
        stated = tool.read(value, asked)
    except WhosinError:
        raise
    except Exception as error:  # the tool's own, of any kind
        kind = f"{type(value).__name__} ({type(error).__name__})"
        message = f"{tool.name} failed to state the guarantee of this {kind}"
        raise Unsupported(message, field="from") from error
    unit = stated.pop("unit", None)
    result = Guarantee(tool.name, number, **stated)
    if unit is None:
        return result.for_group(asked.max_rows)
    if unit != ROWS_UNIT:
        _only_one(asked, f"{tool.name} protects {unit}, however many rows that has")
    return result


def _only_one(asked: ToolContext, reason: str) -> None:
    if asked.max_rows > 1:
        raise invalid_value("max_rows", "1 here", asked.max_rows, hint=reason)


def _installed_version(tool: Tool) -> str:
    try:
        number = version(tool.package)
    except PackageNotFoundError:
        message = f"the version of {tool.name} is not known: it is not installed here"
        hint = f"install {tool.package}"
        raise InvalidInput(message, field="from", value=tool.name, hint=hint) from None
    if not any(number == each or number.startswith(f"{each}.") for each in tool.tried):
        message, hint = f"{tool.name} {number} was not tried with whosin", " or ".join(tool.tried)
        raise InvalidInput(message, field="from", value=number, hint=f"use {hint}")
    return number


# What another tool's object says of tests, as a trade-off curve: more than one ε at one δ.
#
# A distribution of privacy losses that a tool keeps is taken as it is. Otherwise the object is
# asked for its ε at many δ: each pair bounds every test, and what all of them allow is the curve.


CURVE_DELTAS = tuple(Fraction(1, 10**k) for k in range(12, 1, -1)) + tuple(
    Fraction(k, 100) for k in (2, 5, 10, 15, 20, 30, 40, 50, 60, 75)
)
"""The δ at which an object is asked for its ε."""


def read_curve(value: Any, *, max_rows: int = 1) -> TradeOff:
    """What the best test of membership reaches, as far as an object of another tool tells.

    Args:
        max_rows: how many rows a person has at most, where the tool protects single rows.

    Raises:
        InvalidInput: it is of no tool that is known, or of a version that was not tried.
    """
    if type(value).__module__.startswith("dp_accounting.") and not hasattr(value, "get_epsilon"):
        value = read_accountant(value)  # once, and not for each δ
    first = read(value, delta=CURVE_DELTAS[0], max_rows=max_rows)
    losses = _privacy_losses(value, first.relation) if max_rows == 1 else None
    if losses is not None:
        return LossCurve(LossDistribution.of(losses))
    if first.delta != CURVE_DELTAS[0] or (isinstance(value, Guarantee) and value.rho is None):
        return below_lines(
            _tradeoff_lines(first), first.relation
        )  # it says one pair, whatever is asked
    told = (read(value, delta=at, max_rows=max_rows) for at in CURVE_DELTAS[1:])
    lines = [*_tradeoff_lines(first), *(line for each in told for line in _tradeoff_lines(each))]
    return below_lines(lines, first.relation)


def _privacy_losses(value: Any, relation: str) -> Any:
    """The losses of "with the person", where a tool keeps them: dp-accounting's, and riskcal's.
    Where one person replaces another, either of the two may be the one, so the losses must be the
    same both ways."""
    kept = value.get_pld() if hasattr(value, "get_pld") else getattr(value, "_pld", None)
    if relation != "add-remove" and not getattr(kept, "_symmetric", False):
        return None
    return getattr(kept, "_pmf_remove", None)


def _tradeoff_lines(told: Guarantee) -> list[tuple[Fraction, Fraction]]:
    """What (ε, δ)-DP says of every test: TPR ≤ e^ε FPR + δ, and 1 − FPR ≤ e^ε (1 − TPR) + δ."""
    if told.epsilon == math.inf:
        message = "the guarantee has ρ alone, and a trade-off needs an ε at a δ"
        raise InvalidInput(message, field="from", hint="give a delta")
    ratio = exp_up(rational(told.epsilon))
    return [(ratio, told.delta), (1 / ratio, 1 - (1 - told.delta) / ratio)]
