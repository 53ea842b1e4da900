"""What a plan allows in all, and what is left of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from whosin.calibration import Plan
from whosin.exact import ranged
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
        epsilon, delta = _total(plan)
        rho = composition.concentrated_budget(epsilon, conversion_delta(delta))
        return cls(plan.relation, epsilon, rho, delta // 4, not plan.composes)

    def part(self, share: object) -> Budget:
        """A share of it, rounded down."""
        part = ranged(share, "share", "above 0 and at most 1")
        epsilon, rho, delta = (int(part * each) for each in (self.epsilon, self.rho, self.delta))
        return replace(self, epsilon=epsilon, rho=rho, delta=delta)

    def holds(self, cost: Cost) -> bool:
        """Whether a history of this total cost is within the budget, by one of the readings."""
        pure = cost.epsilon <= self.epsilon
        concentrated = self.rho > 0 and cost.rho <= self.rho
        return cost.delta <= self.delta and (pure or concentrated)

    def proved(self, plan: Plan) -> bool:
        """Whether this total, which may have been written elsewhere, keeps the plan."""
        epsilon, delta = _total(plan)
        limit = composition.concentrated_limit(epsilon, conversion_delta(delta))
        exact = (plan.relation, epsilon, delta // 4, not plan.composes)
        return (
            exact == (self.relation, self.epsilon, self.delta, self.alone)
            and 0 <= self.rho <= limit
        )


def conversion_delta(delta: int) -> Fraction:
    """The half of δ that pays for reading the whole ρ as ε."""
    return Fraction(delta, units.DELTA_UNITS) * composition.level_share(0)


def reading(cost: Cost, budget: Budget, plan: Plan) -> tuple[int, str]:
    """(ε, in units; which reading gave it) of a history at any time: the better of the two."""
    result = units.INFINITE if cost.rho else 0  # Gaussian noise that tells nothing has ρ = 0
    if 0 < cost.rho <= budget.rho:
        number, end = composition.level(cost.rho, budget.rho)
        share = Fraction(_total(plan)[1], units.DELTA_UNITS) * composition.level_share(number)
        result = min(budget.epsilon, composition.epsilon_of(end, share))
    return min((cost.epsilon, "pure"), (result, "concentrated"), key=lambda pair: pair[0])


def _total(plan: Plan) -> tuple[int, int]:
    return (
        units.allowed(plan.epsilon, "epsilon of the plan"),
        units.allowed(plan.dp_delta, "delta of the plan", units.DELTA_UNITS),
    )
