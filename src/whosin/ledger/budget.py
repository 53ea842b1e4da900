"""What an answer costs, how costs compose, what a plan allows, and a dataset's budget state.

A dataset is open, complete (it had a release that allows no other) or closed, and on top of that it
may be suspended: an engine failed after a debit, and nothing is drawn until the curator has looked.
Suspending and resuming never change the state underneath.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from whosin import beliefs
from whosin.beliefs import NEIGHBOUR_RELATIONS as NEIGHBOUR_RELATIONS
from whosin.calibration import Plan
from whosin.errors import InvalidInput, UnknownName, check_kind, invalid_value
from whosin.exact import (
    ball,
    ball_end,
    exp_up,
    probability,
    rational,
    read_ranged,
    round_down,
    round_up,
)
from whosin.ledger import encoding
from whosin.ledger.encoding import EPSILON_UNITS, INFINITE_UNITS
from whosin.ledger.registration import RegisteredTable, Registration, read_registration
from whosin.notebook_display import Displayed

COUNTED_NOTION = "counted"
"""The key of a question that says what of the table's rows counts."""


@dataclass(frozen=True)
class Cost:
    """The cost of one answer between neighbours of one relation, in units (see `units`).

    Attributes:
        epsilon: pure ε; `INFINITE_UNITS` where there is none.
        rho: ρ of zero-concentrated DP.
        delta: δ of an answer that is only (ε, δ)-DP, or δ-approximately ρ-zCDP.
    """

    epsilon: int
    rho: int
    delta: int = 0

    def __post_init__(self) -> None:
        most = encoding.INFINITE_UNITS
        if type(self.epsilon) is type(self.rho) is type(self.delta) is int and (
            0 <= self.epsilon <= most and 0 <= self.rho <= most and 0 <= self.delta <= most
        ):
            return
        for name, value in vars(self).items():
            if type(value) is not int or not 0 <= value <= encoding.INFINITE_UNITS:
                raise invalid_value(
                    f"{name} of a cost", "a whole number of ledger units", repr(value)
                )

    @classmethod
    def pure(cls, epsilon: object, delta: object = 0, *, rho: object = None) -> Cost:
        """An ε-DP answer, or an (ε, δ)-DP one, which is δ-approximately ε²/2-zCDP.

        Args:
            rho: what the answer is proved to cost in ρ by itself, where that is less than ε²/2.
        """
        failing = encoding.cost_units(delta, "delta", encoding.DELTA_UNITS)
        if isinstance(epsilon, float) and math.isinf(epsilon) and epsilon > 0:
            return cls(encoding.INFINITE_UNITS, encoding.INFINITE_UNITS, failing)
        level = encoding.cost_units(epsilon, "epsilon")
        concentrated = encoding.rho_from_epsilon(level)
        if rho is not None:
            own = rational(rho, "rho") * encoding.EPSILON_UNITS
            concentrated = min(concentrated, max(0, math.ceil(own)))
        return cls(level, concentrated, failing)

    @classmethod
    def gaussian(cls, rho: object, delta: object = 0) -> Cost:
        """An answer with Gaussian noise, by its ρ = Δ²/(2σ²)."""
        failing = encoding.cost_units(delta, "delta", encoding.DELTA_UNITS)
        return cls(encoding.INFINITE_UNITS, encoding.cost_units(rho, "rho"), failing)

    def __add__(self, other: Cost) -> Cost:
        if not isinstance(other, Cost):
            raise invalid_value("cost", "a Cost", repr(other))
        most = encoding.INFINITE_UNITS
        return Cost(
            min(self.epsilon + other.epsilon, most),
            min(self.rho + other.rho, most),
            min(self.delta + other.delta, most),
        )


JOINT_FAMILIES = ("one-of", "fixed-probability", "uninformed")
"""Adversaries whose levels do not follow from ε: several releases are measured together."""


@dataclass(frozen=True)
class Spend:
    """A question and its cost.

    Attributes:
        what: the question, as plain JSON data; a retry must ask the same, except for
            `COUNTED_NOTION`.
        costs: the cost under each relation; where one is missing, there is no finite cost.
        guarantee: what kind of promise the answer has, such as "pure" or "k-max".
        alone: a promise that does not add: nothing else may be asked of the data. Where
            it has no cost under the dataset's relation, whoever asks must have seen that the
            promise itself keeps the dataset's plan: `promise` must be the one that the dataset was
            registered with.
        promise: the adversary and the target of a promise of its own (see `describe_promise`).
        registration: the table that it is asked of; a dataset that is bound to one takes no other.
        after: for a release that was measured together with those before it: how many these were.
            Its cost is what it adds to the joint level (`ledger.joint`).
    """

    what: Mapping[str, Any]
    costs: Mapping[str, Cost]
    guarantee: str = "differential privacy"
    alone: bool = field(default=False)
    promise: Mapping[str, Any] | None = None
    registration: Registration | None = None
    after: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.what, Mapping) or not isinstance(self.costs, Mapping):
            message = "a spend needs its question and its costs as mappings"
            raise InvalidInput(message, field="spend", value=self.what)
        for relation, cost in self.costs.items():
            if relation not in NEIGHBOUR_RELATIONS:
                raise UnknownName("relation of a cost", str(relation), NEIGHBOUR_RELATIONS)
            if not isinstance(cost, Cost):
                raise invalid_value("cost", "a Cost", repr(cost))
        if not isinstance(self.guarantee, str) or not isinstance(self.alone, bool):
            message = "a spend needs a guarantee in words, and alone as True or False"
            raise InvalidInput(message, field="guarantee", value=self.guarantee)
        # A copy in the ledger's own spelling: what is debited later is what was asked now.
        object.__setattr__(self, "what", encoding.plain_copy(self.what, "question"))
        object.__setattr__(self, "costs", dict(self.costs))
        if self.promise is not None:
            object.__setattr__(self, "promise", encoding.plain_copy(self.promise, "promise"))
        read_registration(self.registration)

    def cost(self, relation: str) -> Cost:
        """The cost between neighbours of this relation."""
        check_kind(relation, str, "relation", f"one of {', '.join(NEIGHBOUR_RELATIONS)}")
        return self.costs.get(relation, Cost(encoding.INFINITE_UNITS, encoding.INFINITE_UNITS))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as a debit's entry holds it beside its registration."""
        data: dict[str, Any] = {
            "what": self.what,
            "costs": {relation: vars(cost) for relation, cost in self.costs.items()},
            "guarantee": self.guarantee,
            "alone": self.alone,
        }
        data |= {} if self.after is None else {"after": self.after}
        return data if self.promise is None else data | {"promise": self.promise}


def describe_promise(plan: Plan) -> dict[str, Any]:
    """Whom a plan protects from whom, as data: what a release of its own answers for."""
    data = plan.to_dict()
    own = () if plan.composes else ("query", "entities")  # a promise for one release
    return {key: data[key] for key in ("target", "family", "delta", *own)}


# How debits compose, also for analysts who choose the next question after seeing answers.
#
# A dataset has a total (ε, δ). Two accountings of a history count, and one of them must hold:
#
# * *pure*: Σ εᵢ ≤ ε. Adding is right for adaptive analysts.
# * *concentrated*: Σ ρᵢ ≤ ρ(ε, δ/2), where an ε-DP answer has ρ = ε²/2, a selection with Gumbel
#   noise ε²/8 (`noise.selection`), and Gaussian noise of standard deviation σ Δ²/(2σ²). Stopping
#   before Σ ρᵢ exceeds a bound fixed in advance is ρ-zCDP for adaptive analysts (Feldman and Zrnic
#   2021; Whitehouse et al. 2023, Theorem 1).
#
# Answers that are themselves only (εᵢ, δᵢ)-DP may use Σ δᵢ ≤ δ/4 in all.
#
# *Why "one of them" is enough.* Fix two neighbours; P and Q are the distributions of the whole
# transcript. An (εᵢ, δᵢ)-DP answer is, with probability 1 − δᵢ, one of an εᵢ-DP pair (Bun and
# Steinke 2016, section 8), so P = P' + a part of mass at most δ/4, and P' = w·P₀, Q ≥ w·Q₀ with the
# same weight w(transcript) ≤ 1, where P₀ and Q₀ have no δᵢ. Readings only grow, so a transcript on
# which a reading holds at the end is one on which it held throughout. Let A be the transcripts on
# which the pure reading holds and B the others. On A, P₀ ≤ e^ε Q₀ at every transcript. On B our
# mechanism agrees with the one that stops where the concentrated reading ends, which is (ε,
# δ/2)-DP. For every event S, P[S] ≤ δ/4 + P'[S∩A] + P'[S∩B] ≤ δ/4 + e^ε Q[S∩A] + e^ε Q[S∩B] + δ/2 ≤
# e^ε Q[S] + δ.
#
# *What was spent so far* is a stronger claim: it is made at a time that the analyst chose, about an
# ε that depends on the answers. The pure sum may be read at any time, since the argument for A
# holds at every transcript with that transcript's own Σ εᵢ. A ρ may not, but levels fixed in
# advance may: level j ends at ρⱼ = ρ·2^(−j/4), and reads at δ/2 for j = 0 and at δ/(4j(j+1)) below,
# δ/4 in all. With Bⱼ the transcripts that are read at level j, and εⱼ its ε, the same sum gives
# P[S] ≤ ∫_S e^(ε of the transcript) dQ + δ/4 + δ/2 + δ/4.

CERTIFYING_BITS = 200
ORDER_RANGE = (-16.0, 28.0)
"""Where ln(α − 1) is looked for: the best α − 1 is about √(ln(1/δ)/ρ)."""


@lru_cache(maxsize=1024)
def epsilon_of(rho: int, delta: Fraction) -> int:
    """An ε, in units and rounded up, that ρ-zCDP is proved to give at δ.

    ε = αρ + (ln(1/δ) + (α−1) ln(1−1/α) − ln α) / (α−1) for any order α > 1 (Canonne, Kamath and
    Steinke 2020, Corollary 13): the best order is looked for in floats, its ε is certified.
    """
    if rho == 0:
        return 0
    if rho >= INFINITE_UNITS or delta <= 0:
        return INFINITE_UNITS
    at, log_delta = rho / EPSILON_UNITS, _log_down(delta)
    order = _best_order(lambda a: a * at + _order_excess(a, log_delta))
    certified = math.ceil(_epsilon_at_order(order, delta, Fraction(rho, EPSILON_UNITS)))
    return min(INFINITE_UNITS, max(0, certified))


def epsilon_from_zcdp(rho: Fraction, delta: Fraction) -> Fraction:
    """The least ε, rounded up to a unit, that is proved for ρ-zCDP at δ; see `epsilon_of`."""
    return Fraction(epsilon_of(math.ceil(rho * EPSILON_UNITS), delta), EPSILON_UNITS)


@lru_cache(maxsize=1024)
def concentrated_limit(epsilon: int, delta: Fraction) -> int:
    """The largest ρ, in units, that is proved to give (ε, δ)-DP; 0 where there is none."""
    if delta <= 0 or epsilon <= 0:
        return 0
    level, log_delta = epsilon / EPSILON_UNITS, _log_down(delta)
    order = _best_order(lambda a: (_order_excess(a, log_delta) - level) / a)
    left = epsilon - _epsilon_at_order(order, delta, Fraction(0))
    return min(INFINITE_UNITS - 1, max(0, math.floor(left / order)))


def concentrated_budget(epsilon: int, delta: Fraction) -> int:
    """A little less than the limit, so that every machine's search for the order proves it."""
    limit = concentrated_limit(epsilon, delta)
    return max(0, limit - limit // 2**40 - 2)


def filter_level(rho: int, budget: int) -> tuple[int, int]:
    """(j, ρⱼ) of the lowest level that ends at ρ or above; ρⱼ = budget·2^(−j/4), rounded down."""
    assert 0 < rho <= budget
    result = max(0, math.floor(4 * math.log2(budget / rho)) + 1)
    while _level_end(result, budget) < rho:
        result -= 1
    return result, _level_end(result, budget)


def level_share(number: int) -> Fraction:
    """The part of δ that pays for reading at a level."""
    return Fraction(1, 4 * number * (number + 1)) if number else Fraction(1, 2)


def _level_end(number: int, budget: int) -> int:
    return math.isqrt(math.isqrt(budget**4 >> number))


def _order_excess(order: float, log_delta: float) -> float:
    return (-log_delta - math.log(order)) / (order - 1) + math.log1p(-1 / order)


def _epsilon_at_order(order: Fraction, delta: Fraction, rho: Fraction) -> Fraction:
    """At least the ε of the order, in units."""
    from flint import ctx

    with ctx.workprec(CERTIFYING_BITS):
        a, d, r = map(ball, (order, delta, rho))
        result = EPSILON_UNITS * (a * r + (-d.log() - a.log()) / (a - 1) + (1 - 1 / a).log())
        return ball_end(result.upper())


def _best_order(score: Callable[[float], float]) -> Fraction:
    """An order of about the least score: a grid in ln(α − 1), then golden sections."""
    low, high = ORDER_RANGE
    steps = [low + (high - low) * step / 88 for step in range(89)]
    start = min(steps, key=lambda x: score(1 + math.exp(x)))
    low, high = start - 0.5, start + 0.5
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(50):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if score(1 + math.exp(left)) < score(1 + math.exp(right)):
            high = right
        else:
            low = left
    return Fraction(1 + math.exp((low + high) / 2))


def _log_down(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


@dataclass(frozen=True)
class Budget:
    """A total (ε, δ) between neighbours of one relation, in units.

    Attributes:
        epsilon: ε in all, by the pure reading.
        rho: ρ in all, by the concentrated reading; 0 without a δ.
        delta: δ that single answers may use: a quarter of the total.
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
        epsilon, delta = _plan_total(plan)
        rho = concentrated_budget(epsilon, conversion_delta(delta))
        return cls(plan.relation, epsilon, rho, delta // 4, not plan.composes)

    def part(self, share: object) -> Budget:
        """A share of it, rounded down."""
        part = read_ranged(share, "share", "above 0 and at most 1")
        epsilon, rho, delta = (int(part * each) for each in (self.epsilon, self.rho, self.delta))
        return replace(self, epsilon=epsilon, rho=rho, delta=delta)

    def holds(self, cost: Cost) -> bool:
        """Whether a history of this total cost is within the budget, by one of the accountings."""
        pure = cost.epsilon <= self.epsilon
        concentrated = self.rho > 0 and cost.rho <= self.rho
        return cost.delta <= self.delta and (pure or concentrated)

    def proved(self, plan: Plan) -> bool:
        """Whether this total, which may have been written elsewhere, keeps the plan."""
        epsilon, delta = _plan_total(plan)
        limit = concentrated_limit(epsilon, conversion_delta(delta))
        fixed = Budget(plan.relation, epsilon, self.rho, delta // 4, not plan.composes)
        return self == fixed and 0 <= self.rho <= limit


def conversion_delta(delta: int) -> Fraction:
    """The half of δ that pays for reading the whole ρ as ε."""
    return Fraction(delta, encoding.DELTA_UNITS) * level_share(0)


def best_accounting(cost: Cost, budget: Budget, plan: Plan) -> tuple[int, str]:
    """(ε, in units; which reading gave it) of a history at any time: the better of the two."""
    return _best_reading(cost, budget.epsilon, budget.rho, _plan_total(plan)[1])


def _best_reading(cost: Cost, epsilon: int, rho: int, delta: int) -> tuple[int, str]:
    """As `best_accounting`, within ρ, which is (ε, δ) at its end."""
    # Gaussian noise that tells nothing has ρ = 0.
    result = encoding.INFINITE_UNITS if cost.rho else 0
    if 0 < cost.rho <= rho:
        number, end = filter_level(cost.rho, rho)
        share = Fraction(delta, encoding.DELTA_UNITS) * level_share(number)
        result = min(epsilon, epsilon_of(end, share))
    return min((cost.epsilon, "pure"), (result, "concentrated"), key=lambda pair: pair[0])


def _plan_total(plan: Plan) -> tuple[int, int]:
    return (
        encoding.budget_units(plan.epsilon, "epsilon of the plan"),
        encoding.budget_units(plan.dp_delta, "delta of the plan", encoding.DELTA_UNITS),
    )


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

        It may be read at any time, also by someone who chose the time after seeing
        answers.
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


@dataclass(frozen=True)
class PeopleBudget:
    """What datasets of the same privacy unit and columns allow together of someone who is in all.

    What was spent between neighbouring worlds adds up, as pure ε or as ρ, and so do the budgets'
    (ε, δ); beliefs are read off once, from the starting prior, and never added.

    Attributes:
        states: the datasets.
        apart: those that are about other people by the curator's word (`--new-people`).
    """

    states: tuple[BudgetState, ...]
    apart: tuple[str, ...]

    @property
    def adds(self) -> bool:
        """Whether what was spent is between the same neighbours, and adds up."""
        one_relation = len({each.budget.relation for each in self.states}) == 1
        return one_relation and not any(each.by_itself for each in self.states)

    @property
    def _read(self) -> tuple[int, str]:
        """(ε, in units; which reading gave it) of all answers, at any time.

        As for one dataset, with the sums of ρ, of what each dataset may spend of it, and of δ: a
        dataset that has spent more, by the pure reading, has no such end. What single answers use
        of δ is at most a quarter of each δ, and so of their sum.
        """
        if not self.adds:
            return INFINITE_UNITS, "pure"
        cost = sum((each.spent for each in self.states), Cost(0, 0))
        ends = [each.budget.rho or _pure_end(each.budget) for each in self.states]
        within = all(each.spent.rho <= end for each, end in zip(self.states, ends, strict=True))
        epsilon = sum(each.budget.epsilon for each in self.states)
        delta = sum(_plan_total(each.plan)[1] for each in self.states)
        return _best_reading(cost, epsilon, sum(ends) if within and delta else 0, delta)

    @property
    def certain(self) -> bool:
        """Whether `epsilon` holds without exception: pure ε added up, and no δ was used."""
        return self._read[1] == "pure" and not any(each.spent.delta for each in self.states)

    @property
    def epsilon(self) -> float:
        """The ε of all answers of all datasets, rounded up; infinite where they do not add."""
        return round_up(encoding.number_from_units(self._read[0]))

    @property
    def budget_epsilon(self) -> float:
        """The ε of all budgets, rounded up: what it may come to, with the sum of their δ; infinite
        where they do not add."""
        if not self.adds or any(each.budget.alone for each in self.states):
            return math.inf
        return round_up(sum(Fraction(each.budget.epsilon, EPSILON_UNITS) for each in self.states))

    @property
    def failure(self) -> Fraction:
        """The probability with which beliefs may move further where a δ is used (T18)."""
        return sum((each.plan.failure for each in self.states if each.plan.dp_delta), Fraction(0))

    @property
    def prior(self) -> Fraction:
        """The largest belief that the plans are for, below certainty; one half where none is."""
        ends = [each.plan.beliefs[1] for each in self.states]
        return max((end for end in ends if end < 1), default=Fraction(1, 2))

    def posterior(self, epsilon: float, *, certain: bool = True) -> float:
        """How sure someone who was `prior` sure can become at a total ε, rounded up; but for a
        probability of `failure` where that is not certain: e^ε/(1 − δ'/δ) by T18, δ' the sum of the
        plans' δ."""
        group = max(each.plan.family.adversary().group for each in self.states)
        uncertain_group = not certain and group > 1
        if epsilon * group > 700 or uncertain_group or not (certain or self.failure < 1):
            return 1.0
        ratio = exp_up(Fraction(epsilon) * group)
        if not certain and self.failure:
            used = sum((rational(each.plan.dp_delta) for each in self.states), Fraction(0))
            ratio /= 1 - used / self.failure
        return round_up(Fraction(beliefs.posterior(Fraction(round_up(ratio)), self.prior)))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON."""
        whole = not self.failure
        return {
            "datasets": [each.dataset for each in self.states],
            "other_people_by_curators_word": list(self.apart),
            "reading": self._read[1],
            "spent_epsilon": _finite_or_text(self.epsilon),
            "budget_epsilon": _finite_or_text(self.budget_epsilon),
            "prior": float(self.prior),
            "posterior": self.posterior(self.epsilon, certain=self.certain),
            "budget_posterior": self.posterior(self.budget_epsilon, certain=whole),
            "failure": round_up(self.failure),
        }


def _pure_end(budget: Budget) -> int:
    """The most ρ that a budget of pure ε alone may come to."""
    return encoding.rho_from_epsilon(budget.epsilon)


def group_by_people(states: Sequence[BudgetState]) -> list[PeopleBudget]:
    """Datasets whose people may be the same, where there are several: those with one privacy unit
    and the same columns."""
    groups: dict[str, list[BudgetState]] = {}
    for each in states:
        if each.registered is not None and each.registered.registration.schema:
            about = each.registered.registration
            shape = encoding.canonical_json([about.privacy_unit, dict(about.schema)])
            groups.setdefault(shape, []).append(each)
    return [
        PeopleBudget(
            tuple(group),
            tuple(
                each.dataset
                for each in group
                if each.registered is not None and each.registered.registration.apart_from
            ),
        )
        for group in groups.values()
        if len(group) > 1
    ]


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
