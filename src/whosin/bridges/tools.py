"""How each tool's objects are read. Nothing is imported: objects are asked what they know."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from whosin.errors import InvalidInput, Unsupported
from whosin.exact import rational
from whosin.validation import whole

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
        columns: of SmartNoise SQL's Privacy: how many numbers a query computes of each group.
        updates, parameters: of JAX-Privacy's accountants.
    """

    delta: Fraction | None = None
    rows: int = 1
    columns: int | None = None
    updates: int | None = None
    parameters: Any = None

    def need_delta(self, what: str) -> Fraction:
        if self.delta is None or not 0 < self.delta < 1:
            got = "nothing" if self.delta is None else self.delta
            raise InvalidInput("delta", f"given, above 0 and below 1, with {what}", got)
        return self.delta


Stated = dict[str, Any]
"""The numbers of a `Guarantee`, for people with one row. Where they are for something else, such as
"a privacy id", `unit` names it; `ROWS` means that the people's rows are counted in."""
ROWS = "rows"


def opendp(value: Any, asked: Circumstances) -> Stated:
    """A measurement, read at d_in = rows; or a context, which knows its own distance."""
    if hasattr(value, "accountant"):
        measurement, distance = value.accountant, value.d_in
        kind, unit = f"context, d_in = {distance}", "the context's own d_in"
    elif hasattr(value, "output_measure"):
        measurement, distance = value, asked.rows
        kind, unit = f"measurement, d_in = {distance}", ROWS
    else:
        raise Unsupported("of OpenDP a measurement or a context can be read")
    metric = str(measurement.input_metric).partition("(")[0]
    if metric not in ADJACENT:
        raise InvalidInput("input_metric", f"one of {', '.join(sorted(ADJACENT))}", metric)
    relation = ADJACENT[metric]
    loss, measure = measurement.map(distance), str(measurement.output_measure)
    stated: Stated = {"relation": relation, "says": kind, "unit": unit}
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
        value = accounted(value)
    delta = asked.need_delta("an accountant")
    name = value.neighboring_relation.name
    relations = {"ADD_OR_REMOVE_ONE": "add-remove", "REPLACE_ONE": "replace"}
    if name not in relations:
        raise InvalidInput("neighboring_relation", f"one of {', '.join(relations)}", name)
    return _read_epsilon(value, delta, relations[name], type(value).__name__)


def accounted(event: Any) -> Any:
    """An accountant of dp-accounting that has composed an event."""
    from importlib import import_module

    from whosin.extras import needs

    needs("accounting")
    for module, kind in (("pld", "PLDAccountant"), ("rdp", "RdpAccountant")):
        accountant = getattr(import_module(f"dp_accounting.{module}"), kind)()
        if accountant.supports(event):
            return accountant.compose(event)
    raise Unsupported("no accountant of dp-accounting supports this event")


def opacus(value: Any, asked: Circumstances) -> Stated:
    """An accountant, or a privacy engine, which has one. Sampling is by Poisson, add-remove. The
    one of Gaussian DP (Bu et al. 2020) goes by a limit of many steps, and may be below the truth:
    1.71 where privacy losses give 4.75 (σ = 0.6, rate 0.01, 100 steps, δ = 1e-6)."""
    accountant = getattr(value, "accountant", value)
    kind = accountant.mechanism()
    if kind == "gdp":
        raise Unsupported(
            "Opacus's gdp accountant goes by a limit of many steps, and its ε may be below the "
            "true one: use its rdp or prv accountant"
        )
    delta = asked.need_delta("an accountant")
    spent = accountant.get_epsilon(delta=float(delta))
    return _epsilon(spent, delta, "add-remove", f"{kind} accountant")


def jax_privacy(value: Any, asked: Circumstances) -> Stated:
    """A training accountant, with the number of updates and the parameters of the training, which
    say how it samples: by Poisson, add-remove, or batches of a fixed size, replace."""
    if asked.updates is None or asked.parameters is None:
        raise InvalidInput("updates and parameters", "given with JAX-Privacy's accountants", "not")
    delta = rational(asked.parameters.delta, "delta")
    sampling = asked.parameters.sampling_method.name
    relations = {"POISSON": "add-remove", "FIXED_BATCH_SIZE": "replace"}
    if sampling not in relations:
        raise InvalidInput("sampling_method", f"one of {', '.join(relations)}", sampling)
    spent = value.compute_epsilon(asked.updates, asked.parameters)
    stated = _epsilon(spent, delta, relations[sampling], f"{asked.updates} updates")
    if getattr(asked.parameters, "examples_per_user", None) is not None:
        stated["unit"] = "a user"
    return stated


def tumult(value: Any, asked: Circumstances) -> Stated:
    """A budget. Add-remove of the protected rows or ids. Not a session: it only knows what remains,
    and nothing of what its answers have cost."""
    if hasattr(value, "remaining_privacy_budget"):
        raise Unsupported(
            "a session of Tumult Analytics only says what remains: read the budget that it started "
            "with, or the one of the query"
        )
    stated: Stated = {
        "relation": "add-remove",
        "says": "budget",
        "unit": "a session's protected ids",
    }
    if hasattr(value, "rho"):
        return stated | {"epsilon": math.inf, "rho": _number(value.rho)}
    if hasattr(value, "epsilon"):
        delta = _number(getattr(value, "delta", 0))
        return stated | {"epsilon": _number(value.epsilon), "delta": delta}
    raise Unsupported("of Tumult Analytics a budget can be read")


def pipeline_dp(value: Any, asked: Circumstances) -> Stated:
    """A budget accountant, by its total. Add-remove of a privacy id."""
    if not hasattr(value, "_total_epsilon"):
        raise Unsupported("of PipelineDP a budget accountant can be read")
    numbers = {"epsilon": rational(value._total_epsilon), "delta": rational(value._total_delta)}
    return {
        "relation": "add-remove",
        "says": "total of a budget",
        "unit": "a privacy id",
        **numbers,
    }


def smartnoise(value: Any, asked: Circumstances) -> Stated:
    """A privacy, which is for each number that a query computes, or an odometer (all so far), of a
    key. Odometers that count steps of one kind leave out the square of δ: theirs are added here."""
    relations = {"addremove": "add-remove", "substitute": "replace"}
    privacy = getattr(value, "privacy", value)
    neighbours = getattr(privacy, "neighboring", "addremove")
    if neighbours not in relations:
        raise InvalidInput("neighboring", f"one of {', '.join(relations)}", neighbours)
    stated: Stated = {"relation": relations[neighbours], "unit": "a key"}
    if hasattr(value, "spent"):
        said = "what an odometer has spent"
        if hasattr(value, "k") and not hasattr(value, "steps"):
            return stated | _times(privacy, value.k) | {"says": said}
        epsilon, delta = value.spent
        return stated | {**_pair(epsilon, delta), "says": said}
    if not hasattr(value, "epsilon"):
        raise Unsupported("of SmartNoise SQL a Privacy or an odometer can be read")
    if asked.columns is None:
        accepted = (
            "given with a Privacy, which is for each number that is computed (a mean is two, and a "
            "count of keys may come on top), or an odometer read instead"
        )
        raise InvalidInput("columns", accepted, "nothing")
    said = f"privacy of {asked.columns} computed columns"
    return stated | _times(privacy, whole(asked.columns, "columns", 1)) | {"says": said}


def _times(privacy: Any, count: int) -> dict[str, Fraction]:
    """ε and δ of several answers: they add."""
    if privacy.delta is None:
        raise InvalidInput("delta", "given to the Privacy", "nothing")
    return {name: count * number for name, number in _pair(privacy.epsilon, privacy.delta).items()}


def riskcal(value: Any, asked: Circumstances) -> Stated:
    """A CTD accountant, of Poisson sampling (add-remove), whose trade-off curve is read at a δ."""
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
    if -math.inf < number < 0:
        number = 0.0  # Rényi accountants say so at a large δ, and δ only falls with ε
    if not 0 <= number < math.inf:
        raise InvalidInput("epsilon", "a finite number: the tool promises nothing", number)
    return {"epsilon": rational(number), "delta": delta, "relation": relation, "says": says}


def _pair(epsilon: Any, delta: Any) -> dict[str, Fraction]:
    return {"epsilon": rational(float(epsilon)), "delta": rational(float(delta))}


def _number(value: Any) -> Fraction:
    """A number, also one that only knows its text (SymPy's)."""
    return rational(value if isinstance(value, int | float | Fraction) else str(value))


Reader = Callable[[Any, Circumstances], Stated]
