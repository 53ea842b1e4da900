"""A dataset's budget state: spent, left, and what it allows anyone to believe."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from whosin import beliefs
from whosin.calibration import Plan
from whosin.exact import exp_up, probability, rational, round_down, round_up
from whosin.ledger import encoding
from whosin.ledger.budget import Budget, Cost, best_accounting
from whosin.ledger.registration import RegisteredTable
from whosin.notebook_display import Displayed

# Where a dataset stands: what was spent, what is left, what it all allows anyone to believe.


@dataclass(frozen=True)
class BudgetState(Displayed):
    """The state of one dataset.

    Attributes:
        state: "open", "closed" (by hand) or "complete" (a release of its own was made).
        suspended: whether an engine failed after a debit, and the curator has not looked yet.
        suspensions: how often that happened.
        spent: the total cost so far, in units.
        debits: how many answers were paid for.
        entries: how many entries the history has.
        head: the digest that ends the history; print it, and a rewritten history will show.
        registered: the table that the budget is for; None where none was named.
    """

    dataset: str
    state: str
    plan: Plan
    budget: Budget
    spent: Cost
    debits: int
    entries: int
    head: str
    last: str
    registered: RegisteredTable | None = None
    suspended: bool = False
    suspensions: int = 0

    @property
    def epsilon(self) -> float:
        """The ε of all answers together, rounded up: the better of the two readings.

        It may be read at any time, also by someone who chose the time after seeing answers (see
        `composition`).
        """
        return round_up(encoding.number_from_units(self._read[0]))

    @property
    def reading(self) -> str:
        """Which reading gave `epsilon`: "pure" or "concentrated"."""
        return self._read[1]

    @property
    def _read(self) -> tuple[int, str]:
        return best_accounting(self.spent, self.budget, self.plan)

    @property
    def _unspent(self) -> tuple[int, int]:
        """(ε, ρ) that are left, in units; none where nothing more may be asked."""
        if self.state != "open":
            return 0, 0
        left = self.budget.epsilon - self.spent.epsilon, self.budget.rho - self.spent.rho
        return max(0, left[0]), max(0, left[1])

    @property
    def remaining(self) -> float:
        """What is left of ε for one answer with pure noise, rounded down."""
        return _float_down(self.left)

    @property
    def left(self) -> int:
        """The same in units."""
        pure, rho = self._unspent
        return max(pure, encoding.epsilon_from_rho(rho))

    @property
    def remaining_rho(self) -> float:
        """What is left of ρ for answers with Gaussian noise, rounded down; 0 without a δ."""
        return _float_down(self._unspent[1])

    @property
    def spendable(self) -> float:
        """`remaining`, and 0 where that is dust (see `drop_dust`): what people are shown."""
        return _float_down(self.spendable_units)

    @property
    def spendable_units(self) -> int:
        """The same in units."""
        pure = drop_dust(self._unspent[0], self.budget.epsilon, self.debits)
        return max(pure, encoding.epsilon_from_rho(self._spendable_rho))

    @property
    def spendable_rho(self) -> float:
        """`remaining_rho`, and 0 where that is dust."""
        return _float_down(self._spendable_rho)

    @property
    def _spendable_rho(self) -> int:
        return drop_dust(self._unspent[1], self.budget.rho, self.debits)

    @property
    def certain(self) -> bool:
        """Whether `ratio` holds without exception: pure ε added up, and no δ was used."""
        read, reading = self._read
        return read < encoding.INFINITE_UNITS and reading == "pure" and not self.spent.delta

    @property
    def by_itself(self) -> bool:
        """Whether the one answer was a release of its own: its promise is the plan's, not an ε."""
        return self.state == "complete" or self.spent.rho >= encoding.INFINITE_UNITS

    @property
    def ratio(self) -> float:
        """The largest likelihood ratio that all answers together allow against the plan's family.

        Where pure ε add up it is e^(kε), k the size of the groups that come and go together. With a
        δ, by T18: the ratio exceeds e^ε/(1 − δ'/δ) with probability at most δ, where δ' is the δ of
        the data's (ε, δ') guarantee and δ is `Plan.failure`.
        """
        if not self.debits:
            return 1.0
        group = self.plan.family.adversary().group
        if self.epsilon * group > 700:
            return math.inf
        ratio = exp_up(Fraction(self.epsilon) * group)
        if not self.certain:
            if not 0 < self.plan.failure < 1:
                return math.inf
            ratio /= 1 - rational(self.plan.dp_delta) / self.plan.failure
        return round_up(ratio)

    def posterior(self, prior: object) -> float:
        """How sure someone who was `prior` sure can have become."""
        believed = probability(prior, "prior")
        if self.ratio == math.inf:
            return 1.0 if believed else 0.0
        return round_up(Fraction(beliefs.posterior(Fraction(self.ratio), believed)))

    def to_dict(self) -> dict[str, object]:
        """Return the fields as plain data for JSON."""
        return {
            "dataset": self.dataset,
            "state": "suspended" if self.suspended else self.state,
            "suspensions": self.suspensions,
            "relation": self.budget.relation,
            "budget_epsilon": _float_down(self.budget.epsilon),
            "budget_delta": self.plan.dp_delta,
            "spent_epsilon": _finite_or_text(self.epsilon),
            "reading": self.reading,
            "remaining_epsilon": self.remaining,
            "remaining_rho": self.remaining_rho,
            "ratio": _finite_or_text(self.ratio),
            "alone": self.budget.alone,
            "debits": self.debits,
            "entries": self.entries,
            "last": self.last,
            "head": self.head,
            "plan": self.plan.to_dict(),
            "registration": None if self.registered is None else self.registered.public(),
        }


def drop_dust(left: int, total: int, debits: int) -> int:
    """What is left, in units, or 0 where it is dust.

    Dust is what rounding leaves over, a unit for the total and one for each debit, or less than a
    billionth of the total: an answer paid with it would have a billion times the noise (for ρ,
    thirty thousand times) of one that is paid with all. Only what is shown changes, and only
    towards less; a debit that small is still checked, and paid, to the unit.
    """
    dust = max(total // 10**9, debits + 1) if debits else 0
    return left if left > dust else 0


def _finite_or_text(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"


def _float_down(value: int) -> float:
    return round_down(Fraction(value, encoding.EPSILON_UNITS))


# What state a dataset is in: what may still be asked of it.
#
# Contract: a dataset is open, complete (it had a release that allows no other) or closed, and on
# top
# of that it may be suspended: an engine failed after a debit, and nothing is drawn until the
# curator has
# looked. Suspending and resuming never change the state underneath.


SUSPENDED_MARK = "suspended"
BASIC_STATES = ("open", "complete", "closed")


def state_after_suspension(state: str) -> str:
    """The state after a suspension."""
    if is_suspended(state):
        return state
    return SUSPENDED_MARK if state == "open" else f"{SUSPENDED_MARK} {state}"


def state_after_resuming(state: str) -> str:
    """The state after the curator has looked."""
    return state.removeprefix(SUSPENDED_MARK).strip() or "open"


def state_after_closing(state: str) -> str:
    """The state after closing; a suspension stays."""
    return state_after_suspension("closed") if is_suspended(state) else "closed"


def is_suspended(state: str) -> bool:
    """Whether nothing is drawn."""
    return state.startswith(SUSPENDED_MARK)


KNOWN_STATES = (*BASIC_STATES, *map(state_after_suspension, BASIC_STATES))
