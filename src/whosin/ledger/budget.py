"""What a plan allows in all, and what is left of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from whosin.calibration import Plan
from whosin.ledger import composition, units
from whosin.ledger.charge import Cost


@dataclass(frozen=True)
class Budget:
    """A total (ε, δ) between neighbours of one relation, in units.

    Attributes:
        epsilon: ε in all, by the pure reading.
        rho: ρ in all, by the concentrated reading; 0 without a δ.
        delta: δ that single answers may use: a quarter of the total (see `composition`).
        alone: the plan's promise does not add: one answer is all.
    """

    relation: str
    epsilon: int
    rho: int
    delta: int
    alone: bool

    @classmethod
    def of(cls, plan: Plan) -> Budget:
        """The plan's ε is the total."""
        epsilon = units.allowed(plan.epsilon, "epsilon of the plan")
        delta = units.allowed(plan.dp_delta, "delta of the plan", units.DELTA_UNITS)
        half = conversion_delta(delta)
        rho = composition.concentrated_budget(epsilon, half) if half else 0
        return cls(plan.relation, epsilon, rho, delta // 4, not plan.composes)

    def holds(self, cost: Cost) -> bool:
        """Whether a history of this total cost is within the budget, by one of the readings."""
        pure = cost.epsilon <= self.epsilon
        concentrated = self.rho > 0 and cost.rho <= self.rho
        return cost.delta <= self.delta and (pure or concentrated)


def conversion_delta(delta: int) -> Fraction:
    """The half of δ that pays for reading ρ as ε."""
    return Fraction(delta, 2 * units.DELTA_UNITS)


def reading(cost: Cost, plan: Plan) -> tuple[int, str]:
    """(ε, in units; which reading gave it) of a history: the better of the two."""
    delta = units.allowed(plan.dp_delta, "delta of the plan", units.DELTA_UNITS)
    found = composition.epsilon_of(cost.rho, conversion_delta(delta)) if delta else units.INFINITE
    return min((cost.epsilon, "pure"), (found, "concentrated"))
