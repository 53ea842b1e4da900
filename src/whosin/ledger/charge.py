"""What an answer costs, before it is drawn. Plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from whosin.calibration import Plan
from whosin.errors import InvalidInput, UnknownName
from whosin.ledger import chain, units
from whosin.ledger.binding import Binding, read_binding

RELATIONS = ("add-remove", "replace")
COUNTED = "counted"
"""The key of a question that says what of the table's rows counts."""


@dataclass(frozen=True)
class Cost:
    """The cost of one answer between neighbours of one relation, in units (see `units`).

    Attributes:
        epsilon: pure ε; `INFINITE` where there is none.
        rho: ρ of zero-concentrated DP.
        delta: δ of an answer that is only (ε, δ)-DP, or δ-approximately ρ-zCDP.
    """

    epsilon: int
    rho: int
    delta: int = 0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if type(value) is not int or not 0 <= value <= units.INFINITE:
                raise InvalidInput(f"{name} of a cost", "a whole number of units", repr(value))

    @classmethod
    def pure(cls, epsilon: object, delta: object = 0) -> Cost:
        """An ε-DP answer, or an (ε, δ)-DP one, which is δ-approximately ε²/2-zCDP."""
        failing = units.spent(delta, "delta", units.DELTA_UNITS)
        if isinstance(epsilon, float) and math.isinf(epsilon) and epsilon > 0:
            return cls(units.INFINITE, units.INFINITE, failing)
        level = units.spent(epsilon, "epsilon")
        return cls(level, units.concentrated(level), failing)

    @classmethod
    def gaussian(cls, rho: object, delta: object = 0) -> Cost:
        """An answer with Gaussian noise, by its ρ = Δ²/(2σ²)."""
        failing = units.spent(delta, "delta", units.DELTA_UNITS)
        return cls(units.INFINITE, units.spent(rho, "rho"), failing)

    def __add__(self, other: Cost) -> Cost:
        if not isinstance(other, Cost):
            raise InvalidInput("cost", "a Cost", repr(other))
        return Cost(
            units.total(self.epsilon, other.epsilon),
            units.total(self.rho, other.rho),
            units.total(self.delta, other.delta),
        )


@dataclass(frozen=True)
class Charge:
    """A question and its price.

    Attributes:
        what: the question, as plain JSON data; a retry must ask the same, except for `COUNTED`.
        costs: the cost under each relation; where one is missing, there is no finite cost.
        guarantee: what kind of promise the answer has, such as "pure" or "k-max".
        alone: a promise that does not add: nothing else may be asked of the data. Where
            it has no cost under the dataset's relation, whoever asks must have seen that the
            promise itself keeps the dataset's plan: `promise` must be the one that the dataset was
            registered with.
        promise: the adversary and the target of a promise of its own (see `promise_of`).
        binding: the table that it is asked of; a dataset that is bound to one takes no other.
    """

    what: Mapping[str, Any]
    costs: Mapping[str, Cost]
    guarantee: str = "differential privacy"
    alone: bool = field(default=False)
    promise: Mapping[str, Any] | None = None
    binding: Binding | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.what, Mapping) or not isinstance(self.costs, Mapping):
            raise InvalidInput("charge", "a question and its costs as mappings", repr(self.what))
        for relation, cost in self.costs.items():
            if relation not in RELATIONS:
                raise UnknownName("relation of a cost", str(relation), RELATIONS)
            if not isinstance(cost, Cost):
                raise InvalidInput("cost", "a Cost", repr(cost))
        if not isinstance(self.guarantee, str) or not isinstance(self.alone, bool):
            raise InvalidInput(
                "guarantee", "a text, with alone true or false", repr(self.guarantee)
            )
        # A copy in the ledger's own spelling: what is debited later is what was asked now.
        object.__setattr__(self, "what", chain.plain(self.what, "question"))
        object.__setattr__(self, "costs", dict(self.costs))
        if self.promise is not None:
            object.__setattr__(self, "promise", chain.plain(self.promise, "promise"))
        read_binding(self.binding)

    def cost(self, relation: str) -> Cost:
        """The cost between neighbours of this relation."""
        if not isinstance(relation, str):
            raise InvalidInput("relation", f"one of {', '.join(RELATIONS)}", repr(relation))
        return self.costs.get(relation, Cost(units.INFINITE, units.INFINITE))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as a debit's entry holds it beside its binding."""
        data: dict[str, Any] = {
            "what": self.what,
            "costs": {relation: vars(cost) for relation, cost in self.costs.items()},
            "guarantee": self.guarantee,
            "alone": self.alone,
        }
        return data if self.promise is None else data | {"promise": self.promise}


def promise_of(plan: Plan) -> dict[str, Any]:
    """Whom a plan protects from whom, as data: what a release of its own answers for."""
    data = plan.to_dict()
    own = () if plan.composes else ("query", "entities")  # a promise for one release
    return {key: data[key] for key in ("target", "family", "delta", *own)}
