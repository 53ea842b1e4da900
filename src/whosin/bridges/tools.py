"""How each tool's objects are read. Nothing is imported: objects are asked what they know."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from whosin.errors import InvalidInput, Unsupported
from whosin.exact import rational

ADJACENT = {
    "SymmetricDistance": "add-remove",
    "InsertDeleteDistance": "add-remove",
    "ChangeOneDistance": "replace",
    "HammingDistance": "replace",
}
"""Relations of OpenDP's metrics on datasets."""


@dataclass(frozen=True)
class Circumstances:
    """What a caller adds to an object.

    Attributes:
        delta: the δ at which an accountant or a curve is read.
        rows: how many rows a person has at most.
        relation: what ε is about, where the tool leaves it open.
        updates, parameters: of JAX-Privacy's accountants.
    """

    delta: Fraction | None = None
    rows: int = 1
    relation: str | None = None
    updates: int | None = None
    parameters: Any = None

    def need_delta(self, what: str) -> Fraction:
        if self.delta is None or not 0 < self.delta < 1:
            got = "nothing" if self.delta is None else self.delta
            raise InvalidInput("delta", f"given, above 0 and below 1, with {what}", got)
        return self.delta


Stated = dict[str, Any]
"""The numbers of a `Guarantee`, for people with one row unless `counted` says so."""


def opendp(value: Any, asked: Circumstances) -> Stated:
    """A measurement, read at d_in = rows; or a context, which knows its own distance."""
    if hasattr(value, "accountant"):
        measurement, distance = value.accountant, value.d_in
        kind = f"context, d_in = {distance}"
    elif hasattr(value, "output_measure"):
        measurement, distance = value, asked.rows
        kind = f"measurement, d_in = {distance}"
    else:
        raise Unsupported("of OpenDP a measurement or a context can be read")
    metric = str(measurement.input_metric).partition("(")[0]
    if metric not in ADJACENT:
        raise InvalidInput("input_metric", f"one of {', '.join(sorted(ADJACENT))}", metric)
    relation = ADJACENT[metric]
    loss, measure = measurement.map(distance), str(measurement.output_measure)
    stated: Stated = {"relation": relation, "says": kind, "counted": True}
    match measure:
        case "MaxDivergence":
            return stated | {"epsilon": rational(loss)}
        case "ZeroConcentratedDivergence":
            return stated | {"epsilon": math.inf, "rho": rational(loss)}
        case "Approximate(MaxDivergence)":
            return stated | {"epsilon": rational(loss[0]), "delta": rational(loss[1])}
        case "Approximate(ZeroConcentratedDivergence)":
            numbers = {"rho": rational(loss[0]), "delta": rational(loss[1])}
            return stated | {"epsilon": math.inf, **numbers}
        case "SmoothedMaxDivergence":
            delta = asked.need_delta("a privacy profile")
            return stated | {"epsilon": rational(loss.epsilon(float(delta))), "delta": delta}
    raise InvalidInput("output_measure", "a kind of ε, (ε, δ) or ρ", measure)


def dp_accounting(value: Any, asked: Circumstances) -> Stated:
    """An accountant as it is, or an event, by privacy-loss distributions, else by Rényi DP."""
    if not hasattr(value, "get_epsilon"):
        value = _accounted(value)
    delta = asked.need_delta("an accountant")
    name = getattr(getattr(value, "neighboring_relation", None), "name", "ADD_OR_REMOVE_ONE")
    relations = {"ADD_OR_REMOVE_ONE": "add-remove", "REPLACE_ONE": "replace"}
    if name not in relations:
        raise InvalidInput("neighboring_relation", f"one of {', '.join(relations)}", name)
    return _read_epsilon(value, delta, relations[name], type(value).__name__)


def _accounted(event: Any) -> Any:
    from importlib import import_module

    from whosin.extras import needs

    needs("accounting")
    for module, kind in (("pld", "PLDAccountant"), ("rdp", "RdpAccountant")):
        accountant = getattr(import_module(f"dp_accounting.{module}"), kind)()
        if accountant.supports(event):
            return accountant.compose(event)
    raise Unsupported("no accountant of dp-accounting supports this event")


def opacus(value: Any, asked: Circumstances) -> Stated:
    """An accountant, or a privacy engine, which has one. Sampling is by Poisson, add-remove."""
    accountant = getattr(value, "accountant", value)
    delta = asked.need_delta("an accountant")
    name = f"{accountant.mechanism()} accountant"
    return _epsilon(accountant.get_epsilon(delta=float(delta)), delta, "add-remove", name)


def jax_privacy(value: Any, asked: Circumstances) -> Stated:
    """A training accountant, with the number of updates and the parameters of the training."""
    if asked.updates is None or asked.parameters is None:
        raise InvalidInput("updates and parameters", "given with JAX-Privacy's accountants", "not")
    delta = rational(asked.parameters.delta, "delta")
    spent = value.compute_epsilon(asked.updates, asked.parameters)
    return _epsilon(spent, delta, "add-remove", f"{asked.updates} updates")


def tumult(value: Any, asked: Circumstances) -> Stated:
    """A budget, or a session, by what remains of its budget. Add-remove of the protected rows or
    ids."""
    says = "budget"
    if hasattr(value, "remaining_privacy_budget"):
        value, says = value.remaining_privacy_budget, "what remains of a session's budget"
    stated: Stated = {"relation": "add-remove", "says": says, "counted": True}
    if hasattr(value, "rho"):
        return stated | {"epsilon": math.inf, "rho": _number(value.rho)}
    if hasattr(value, "epsilon"):
        delta = _number(getattr(value, "delta", 0))
        return stated | {"epsilon": _number(value.epsilon), "delta": delta}
    raise Unsupported("of Tumult Analytics a budget or a session can be read")


def pipeline_dp(value: Any, asked: Circumstances) -> Stated:
    """A budget accountant, by its total. Add-remove of a privacy id."""
    if not hasattr(value, "_total_epsilon"):
        raise Unsupported("of PipelineDP a budget accountant can be read")
    numbers = {"epsilon": rational(value._total_epsilon), "delta": rational(value._total_delta)}
    return {"relation": "add-remove", "says": "total of a budget", "counted": True, **numbers}


def smartnoise(value: Any, asked: Circumstances) -> Stated:
    """A privacy (one query) or an odometer (all so far). Add-remove of a key."""
    stated: Stated = {"relation": "add-remove", "counted": True}
    if hasattr(value, "spent"):
        epsilon, delta = value.spent
        return stated | {**_pair(epsilon, delta), "says": "what an odometer has spent"}
    if hasattr(value, "epsilon"):
        return stated | {**_pair(value.epsilon, value.delta or 0), "says": "privacy of one query"}
    raise Unsupported("of SmartNoise SQL a Privacy or an odometer can be read")


def riskcal(value: Any, asked: Circumstances) -> Stated:
    """A CTD accountant, whose trade-off curve is read at a δ."""
    if not hasattr(value, "get_epsilon"):
        raise Unsupported("of riskcal an accountant can be read")
    delta = asked.need_delta("an accountant")
    return _read_epsilon(value, delta, "add-remove", "trade-off curve")


def _read_epsilon(value: Any, delta: Fraction, relation: str, says: str) -> Stated:
    try:
        spent = value.get_epsilon(float(delta))
    except TypeError:
        spent = value.get_epsilon(delta=float(delta))
    return _epsilon(spent, delta, relation, says)


def _epsilon(spent: Any, delta: Fraction, relation: str, says: str) -> Stated:
    number = float(spent)
    if not 0 <= number < math.inf:
        raise InvalidInput("epsilon", "a finite number: the tool promises nothing", number)
    return {"epsilon": rational(number), "delta": delta, "relation": relation, "says": says}


def _pair(epsilon: Any, delta: Any) -> dict[str, Fraction]:
    return {"epsilon": rational(float(epsilon)), "delta": rational(float(delta))}


def _number(value: Any) -> Fraction:
    """A number, also one that only knows its text (SymPy's)."""
    return rational(value if isinstance(value, int | float | Fraction) else str(value))


Reader = Callable[[Any, Circumstances], Stated]
