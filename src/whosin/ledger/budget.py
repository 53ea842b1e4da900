"""What an answer costs, how costs compose, what a plan allows, and where it may be spent.

A dataset has one total (ε, δ), set once. What else its curator declares only says where the total
may be spent; the total is checked at every debit, and is what protects people.

* *Parts* are paid side by side (T25). A rule that looks at a person's rows alone puts each person
  into at most one part. Two neighbours differ in one person, who is in one part, or moves between
  two. So the total is E + the largest part's level between added or removed people, and E + max(the
  largest part's level, the two largest levels of entering and leaving) between replaced ones, E
  being the cost of questions about everyone; alike for ε, ρ and δ. `Accounts` keeps these few
  sums, which only grow, so that a debit reads and writes no part but its own. When a dataset goes
  on with another table, people may be in other parts: the total becomes E, and parts begin anew.
* *Periods* (`Schedule`) are ceilings of the total by the date: what all periods up to now allow,
  or, where unspent shares lapse, the total when the period began and its own share. People who are
  in several periods are the rule: periods are never paid side by side.
* *Quotas* (`Quota`) are shares of the total that are kept for some people until a date. Everyone
  together, spent and kept, stays within the total: who asks makes no difference to whoever is
  protected, since colluding analysts are one adversary.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from fractions import Fraction
from functools import partial
from typing import Any

from whosin.beliefs import NEIGHBOUR_RELATIONS as NEIGHBOUR_RELATIONS
from whosin.calibration import Plan
from whosin.errors import (
    BudgetRefused,
    InvalidInput,
    UnknownName,
    check_kind,
    invalid_value,
    spell,
)
from whosin.exact import (
    read_ranged,
)
from whosin.ledger import encoding
from whosin.ledger.encoding import INFINITE_UNITS
from whosin.ledger.encoding import ZERO_COST as ZERO_COST
from whosin.ledger.encoding import Cost as Cost
from whosin.ledger.registration import Registration, read_registration

COUNTED_NOTION = "counted"
"""The key of a question that says what of the table's rows counts."""


JOINT_FAMILIES = ("one-of", "fixed-probability", "uninformed", "at-most-known")
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
            Its cost is what it adds to the joint level (`JointBudget`).
        part: the one part whose people's rows it reads; None where it is about everyone.
    """

    what: Mapping[str, Any]
    costs: Mapping[str, Cost]
    guarantee: str = "differential privacy"
    alone: bool = field(default=False)
    promise: Mapping[str, Any] | None = None
    registration: Registration | None = None
    after: int | None = None
    part: str | None = None

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
        if self.part is not None:
            object.__setattr__(self, "part", encoding.read_name(self.part, "part"))
            if self.alone or self.after is not None:
                message = "a promise that does not add up is about everyone, and not about a part"
                raise InvalidInput(message, field="part", value=self.part)

    def cost(self, relation: str) -> Cost:
        """The cost between neighbours of this relation."""
        check_kind(relation, str, "relation", f"one of {', '.join(NEIGHBOUR_RELATIONS)}")
        return self.costs.get(relation, encoding.INFINITE_COST)

    def ends(self, budget: Budget, registered: object) -> bool:
        """Whether it must be the only one: its promise does not add, or the plan's does not. Of
        datasets without a table several that are measured together are one."""
        together = self.after is not None and registered is None
        return self.alone or (budget.alone and not together)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as a debit's entry holds it beside its registration."""
        data: dict[str, Any] = {
            "what": self.what,
            "costs": {relation: vars(cost) for relation, cost in self.costs.items()},
            "guarantee": self.guarantee,
            "alone": self.alone,
        }
        data |= {} if self.after is None else {"after": self.after}
        data |= {} if self.part is None else {"part": self.part}
        return data if self.promise is None else data | {"promise": self.promise}


def describe_promise(plan: Plan) -> dict[str, Any]:
    """Whom a plan protects from whom, as data: what a release of its own answers for."""
    data = plan.to_dict()
    own = () if plan.composes else ("query", "entities")  # a promise for one release
    return {key: data[key] for key in ("target", "family", "delta", *own)}


# How debits compose, also for analysts who choose the next question after seeing answers: one of
# two accountings must hold.
#
# * *pure*: Σ εᵢ ≤ ε. Adding is right for adaptive analysts.
# * *concentrated*: Σ ρᵢ ≤ ρ(ε, δ/2), where an ε-DP answer has ρ = ε²/2, a selection with Gumbel
#   noise ε²/8 (`noise.selection`), and Gaussian noise of standard deviation σ Δ²/(2σ²). Stopping
#   before Σ ρᵢ exceeds a bound fixed in advance is ρ-zCDP for adaptive analysts (Feldman and Zrnic
#   2021; Whitehouse et al. 2023, Theorem 1).
#
# Answers that are themselves only (εᵢ, δᵢ)-DP may use Σ δᵢ ≤ δ/4 in all. docs/ledger.md proves that
# one of them is enough: it fixes two neighbours, so that questions about parts in which neither
# differs drop out, and needs of a sum only that it grows. What was spent so far is read at levels
# fixed in advance: level j ends at ρⱼ = ρ·2^(−j/4), and reads at δ/2 for j = 0 and at δ/(4j(j+1))
# below, δ/4 in all.
#
# A plan with a *reserve*, an ε that is kept for pure answers beside Gaussian ones, fixes an order α
# when the dataset is opened. An answer then costs its Rényi divergence at α over α, which is at
# most ρ, and for an ε-DP answer at most that of randomised response; where these sums end does not
# depend on the path either, so that Σ Dᵢ ≤ αρ is (α, αρ)-Rényi DP (Feldman and Zrnic 2021). What
# one order says of a part of ρ is little: the whole budget is what is promised, nothing is read
# in between but pure ε, and the quarter of δ for that goes to the conversion.


def fixed_order(plan: Plan) -> Fraction | None:
    """The order at which a plan with a reserve is accounted for: the one that leaves the most ρ
    beside the reserve. None without a reserve."""
    if not plan.reserve:
        return None
    kept = encoding.cost_units(plan.reserve, "reserve")
    return encoding.order_beside(plan_total(plan)[0] - kept, conversion_delta(plan))


def price_epsilon(epsilon: int, plan: Plan) -> int:
    """What an ε-DP answer costs in ρ, in units and rounded up: ε²/2, or under a plan with a reserve
    at most the Rényi divergence of randomised response at the fixed order, over the order."""
    plain, order = encoding.rho_from_epsilon(epsilon), fixed_order(plan)
    if order is None or plain >= INFINITE_UNITS:
        return plain
    return min(plain, encoding.response_at_order(epsilon, order))


def affordable_epsilon(rho: int, plan: Plan) -> int:
    """The largest ε, in units, up to the plan's, of an answer that costs at most ρ."""
    plain = encoding.epsilon_from_rho(rho)
    if not plan.reserve or rho <= 0:
        return plain
    whole = range(plan_total(plan)[0] + 1)
    return max(plain, bisect_right(whole, rho, key=partial(price_epsilon, plan=plan)) - 1)


def price_spend(spend: Spend, plan: Plan) -> Spend:
    """A question at what it costs under this plan."""
    if not plan.reserve:
        return spend
    costs = {
        # A level that is no ε of differential privacy has no ρ, and gets none.
        relation: replace(cost, rho=min(cost.rho, price_epsilon(cost.epsilon, plan)))
        for relation, cost in spend.costs.items()
        if cost.rho < INFINITE_UNITS
    }
    return replace(spend, costs={**spend.costs, **costs})


@dataclass(frozen=True)
class Budget:
    """A total (ε, δ) between neighbours of one relation, in units.

    Attributes:
        epsilon: ε in all, by the pure reading.
        rho: ρ in all, by the concentrated reading; 0 without a δ.
        delta: δ that single answers may use: a quarter of the total.
        alone: the plan's promise does not add: one answer is all, or several measured together.
    """

    relation: str
    epsilon: int
    rho: int
    delta: int
    alone: bool

    @classmethod
    def of(cls, plan: Plan) -> Budget:
        """The plan's ε is the total."""
        epsilon, delta = plan_total(plan)
        rho = encoding.concentrated_budget(epsilon, conversion_delta(plan), fixed_order(plan))
        return cls(plan.relation, epsilon, rho, delta // 4, not plan.composes)

    def part(self, share: object) -> Budget:
        """A share of it, rounded down."""
        part = read_ranged(share, "share", "above 0 and at most 1")
        epsilon, rho, delta = (int(part * each) for each in (self.epsilon, self.rho, self.delta))
        return replace(self, epsilon=epsilon, rho=rho, delta=delta)

    def holds(self, cost: Cost) -> bool:
        """Whether a history of this total cost is within the budget, by one of the accountings."""
        return cost.within(self.limit)

    @property
    def limit(self) -> Cost:
        """The total as a cost."""
        return Cost(self.epsilon, self.rho, self.delta)

    def proved(self, plan: Plan) -> bool:
        """Whether this total, which may have been written elsewhere, keeps the plan."""
        epsilon, delta = plan_total(plan)
        limit = encoding.concentrated_limit(epsilon, conversion_delta(plan), fixed_order(plan))
        fixed = Budget(plan.relation, epsilon, self.rho, delta // 4, not plan.composes)
        return self == fixed and 0 <= self.rho <= limit


def conversion_delta(plan: Plan) -> Fraction:
    """The part of δ that pays for reading the whole ρ as ε: half, and with a reserve also the
    quarter for reading what was spent."""
    share = Fraction(3, 4) if plan.reserve else encoding.level_share(0)
    return Fraction(plan_total(plan)[1], encoding.DELTA_UNITS) * share


def best_accounting(cost: Cost, budget: Budget, plan: Plan) -> tuple[int, str]:
    """(ε, in units; which reading gave it) of a history at any time: the better of the two."""
    return best_reading(cost, budget.epsilon, budget.rho, plan_total(plan)[1], bool(plan.reserve))


def best_reading(
    cost: Cost, epsilon: int, rho: int, delta: int, whole: bool = False
) -> tuple[int, str]:
    """As `best_accounting`, within ρ, which is (ε, δ) at its end.

    Args:
        whole: ρ says nothing before its end: see `fixed_order`.
    """
    # Gaussian noise that tells nothing has ρ = 0.
    result, name = INFINITE_UNITS if cost.rho else 0, "promised" if whole else "concentrated"
    if whole and 0 < cost.rho < INFINITE_UNITS:
        result = epsilon
    elif 0 < cost.rho <= rho:
        number, end = encoding.filter_level(cost.rho, rho)
        share = Fraction(delta, encoding.DELTA_UNITS) * encoding.level_share(number)
        result = min(epsilon, encoding.epsilon_of(end, share))
    return min((cost.epsilon, "pure"), (result, name), key=lambda pair: pair[0])


def plan_total(plan: Plan) -> tuple[int, int]:
    return (
        encoding.budget_units(plan.epsilon, "epsilon of the plan"),
        encoding.budget_units(plan.dp_delta, "delta of the plan", encoding.DELTA_UNITS),
    )


@dataclass(frozen=True)
class PartLevel:
    """What questions about one part cost.

    Attributes:
        own: between neighbours of the dataset's relation.
        entering: where a person enters or leaves.
        epoch: how often the parts had begun anew.
    """

    own: Cost = ZERO_COST
    entering: Cost = ZERO_COST
    epoch: int = 0


@dataclass(frozen=True)
class Quota:
    """A share of the total that is kept for some people.

    Attributes:
        until: the last day on which they may spend it; "" for no end. What they leave is everyone's
            then, and they ask like everyone else.
        members: whose answers are paid from it; nobody's once it was revoked.
    """

    limit: Cost
    spent: Cost = ZERO_COST
    until: str = ""
    members: tuple[str, ...] = ()

    def is_open(self, day: str) -> bool:
        """Whether its members may spend it on this day."""
        return not self.until or day <= self.until

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as a ledger keeps it."""
        amounts = {key: [*vars(getattr(self, key)).values()] for key in ("limit", "spent")}
        return {**amounts, "until": self.until, "members": list(self.members)}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Quota:
        """A quota from what `to_dict` made of it."""
        limit, spent = Cost(*data["limit"]), Cost(*data["spent"])
        return cls(limit, spent, str(data["until"]), tuple(map(str, data["members"])))


_SUM_KEYS = ("everyone", "largest", "first", "second", "begun")


@dataclass(frozen=True)
class Accounts:
    """What was spent where: few sums, however many parts there are.

    Attributes:
        everyone: the cost of questions about everyone, and of all parts before the last amendment.
        largest: the largest level of a part, currency by currency.
        first, second: the two largest levels of entering and leaving; only between replaced people.
        epoch: how often the parts began anew.
        period: the first day of the period of the last debit, where unspent shares lapse.
        begun: the total when that period began.
        quotas: by name.
    """

    everyone: Cost = ZERO_COST
    largest: Cost = ZERO_COST
    first: Cost = ZERO_COST
    second: Cost = ZERO_COST
    epoch: int = 0
    period: str = ""
    begun: Cost = ZERO_COST
    quotas: Mapping[str, Quota] = field(default_factory=dict)

    @property
    def total(self) -> Cost:
        """What all answers together cost between any two neighbours."""
        return self.everyone + self.largest.larger(self.first + self.second)

    def pay(
        self, spend: Spend, relation: str, level: PartLevel, quota: str | None = None
    ) -> tuple[Accounts, PartLevel]:
        """The accounts after an answer, and the level of its part.

        Args:
            level: that of its part before it, in whatever epoch.
            quota: whose share it is paid from.
        """
        mine = None if spend.part is None else level
        costs = spend.cost(relation), spend.cost("add-remove")
        after, mine = self.pay_costs(*costs, relation, mine, quota)
        return after, level if mine is None else mine

    def pay_costs(
        self, cost: Cost, entry: Cost, relation: str, level: PartLevel | None, quota: str | None
    ) -> tuple[Accounts, PartLevel | None]:
        """As `pay`, by the costs between neighbours and of entering; no level for everyone."""
        changes: dict[str, Any] = {}
        after = None
        if quota is not None:
            kept = self.quotas[quota]
            changes["quotas"] = {**self.quotas, quota: replace(kept, spent=kept.spent + cost)}
        if level is None:
            changes["everyone"] = self.everyone + cost
        else:
            before = level if level.epoch == self.epoch else PartLevel(epoch=self.epoch)
            after = PartLevel(before.own + cost, before.entering + entry, self.epoch)
            changes["largest"] = self.largest.larger(after.own)
        if after is not None and relation == "replace":
            known = zip(*(vars(each).values() for each in (self.first, self.second)), strict=True)
            moves = zip(*(vars(each.entering).values() for each in (before, after)), strict=True)
            pairs = [_raise_two(two, *move) for two, move in zip(known, moves, strict=True)]
            changes["first"], changes["second"] = (Cost(*each) for each in zip(*pairs, strict=True))
        made = object.__new__(Accounts)  # `replace` takes longer, for each debit of a history
        vars(made).update(vars(self), **changes)
        return made, after

    def seen_from(self, level: PartLevel, relation: str) -> Cost:
        """What counts for a question about one part alone: not what was asked of others, but for
        someone who may have moved from there."""
        mine = level if level.epoch == self.epoch else PartLevel()
        amounts = (vars(each).values() for each in (mine.entering, self.first, self.second))
        beside = [two if own == one else one for own, one, two in zip(*amounts, strict=True)]
        moved = ZERO_COST if relation != "replace" else mine.entering + Cost(*beside)
        return self.everyone + mine.own.larger(moved)

    def begin_parts(self) -> Accounts:
        """The accounts of a dataset that goes on with another table."""
        if self.largest == self.first == ZERO_COST:
            return self
        kept = {"period": self.period, "begun": self.begun, "quotas": self.quotas}
        return Accounts(everyone=self.total, epoch=self.epoch + 1, **kept)  # type: ignore[arg-type]

    def enter_period(self, schedule: Schedule | None, day: str) -> Accounts:
        """The accounts as of a day: the first debit of a period finds where it begins."""
        period = None if schedule is None or not schedule.lapses else schedule.find_period(day)
        if period is None or period.first <= self.period:  # clocks differ by a few seconds
            return self
        return replace(self, period=period.first, begun=self.total)

    def leave_period(self) -> Accounts:
        """The accounts once it was said that the last entries' date was wrong: the next debit finds
        where its own period begins."""
        return replace(self, period="", begun=ZERO_COST)

    def find_quota(self, who: str, day: str) -> str | None:
        """The quota that someone's answers are paid from on a day; None where nobody has given that
        person one that lasts: once it has ended its members ask like everyone else."""
        mine = (name for name, each in sorted(self.quotas.items()) if who in each.members)
        return next((name for name in mine if self.quotas[name].is_open(day)), None)

    def kept(self, day: str) -> Cost:
        """What quotas keep for their members, unspent."""
        open_ = (each for each in self.quotas.values() if each.is_open(day))
        return sum((each.limit.less(each.spent) for each in open_), ZERO_COST)

    def text(self) -> str | None:
        """What a ledger keeps of it; None where the total says it all."""
        if (*vars(self).values(),)[1:] == _NOWHERE_ELSE:
            return None
        sums = {key: [*vars(getattr(self, key)).values()] for key in _SUM_KEYS}
        quotas = {name: each.to_dict() for name, each in self.quotas.items()}
        named = {"epoch": self.epoch, "period": self.period, "quotas": quotas}
        return encoding.canonical_json(sums | named)

    @classmethod
    def read(cls, text: str | None, spent: Cost) -> Accounts:
        """The accounts of a dataset that has spent this in all."""
        if text is None:
            return cls(everyone=spent)
        data = json.loads(text)
        sums = {key: Cost(*data[key]) for key in _SUM_KEYS}
        quotas = {name: Quota.read(each) for name, each in data["quotas"].items()}
        result = cls(**sums, epoch=data["epoch"], period=data["period"], quotas=quotas)
        if result.total != spent or result.text() != text:
            raise ValueError("accounts that do not add up")
        return result


_NOWHERE_ELSE = (*vars(Accounts()).values(),)[1:]


def _raise_two(two: tuple[int, int], before: int, after: int) -> tuple[int, int]:
    """The two largest levels once a part's has risen; they need no names, since equal levels are
    exchangeable."""
    first, second = two
    if before == first:
        return after, second
    return max(first, after), min(first, max(second, after))


@dataclass(frozen=True)
class Period:
    """A period of a schedule, from its first day to before `end`, with what it allows."""

    first: str
    end: str
    limit: Cost


PERIOD_KINDS = ("day", "week", "month", "quarter", "year")
UNSPENT_RULES = ("rolls-on", "lapses")
MAX_PERIODS = 1_000


@dataclass(frozen=True)
class Schedule:
    """How a total is divided over time.

    Attributes:
        said: how it was declared, as plain data.
        periods: in their order; days between them are in none.
        lapses: whether a period's unspent share is lost; otherwise it rolls on to the next.
    """

    said: Mapping[str, Any]
    periods: tuple[Period, ...]
    lapses: bool

    @classmethod
    def plan(cls, said: Mapping[str, Any], budget: Budget, today: str) -> Schedule:
        """The schedule of a total.

        Args:
            said: "every" and "until" ("2027", "2027-12" or a day), perhaps "start", which is today
                by default; or "periods", a list such as "2027-01..2027-03". "shares" of the total
                are equal by default; "unspent" is "rolls-on" by default, or "lapses".
        """
        said = {key: value for key, value in said.items() if value is not None}
        unspent = said.get("unspent", UNSPENT_RULES[0])
        if unspent not in UNSPENT_RULES:
            raise UnknownName("unspent", str(unspent), UNSPENT_RULES)
        spans = _read_spans(said, today)
        shares = said.get("shares", [Fraction(1, len(spans))] * len(spans))
        if not isinstance(shares, list | tuple) or len(shares) != len(spans):
            accepted = f"a list of one share for each of the {len(spans)} periods"
            raise invalid_value("shares", accepted, repr(shares)[:80])
        parts = [read_ranged(each, "shares", "above 0 and at most 1") for each in shares]
        if sum(parts) > 1:
            message = f"the shares of the periods add up to {spell(sum(parts))} of the budget"
            raise InvalidInput(message, field="shares", hint="they may add up to 1 at most")
        periods = [
            Period(first.isoformat(), end.isoformat(), budget.part(part).limit)
            for (first, end), part in zip(spans, parts, strict=True)
        ]
        if periods[-1].end <= today:
            message = f"the schedule ended with {last_day(periods[-1])}, and today is {today}"
            raise InvalidInput(message, field="until", hint="nothing could ever be asked")
        plain = {**said, **({"shares": [str(each) for each in shares]} if "shares" in said else {})}
        return cls(encoding.plain_copy(plain, "schedule"), tuple(periods), unspent == "lapses")

    def find_period(self, day: str) -> Period | None:
        """The period that a day is in."""
        return next((each for each in self.periods if each.first <= day < each.end), None)

    def ceiling(self, accounts: Accounts, day: str) -> Cost:
        """The most that may have been spent in all by the end of the period of this day.

        Raises:
            BudgetRefused: the day is in no period.
        """
        day = max(day, accounts.period)
        period = self.find_period(day)
        if period is None:
            raise BudgetRefused(self._describe_gap(day), field="schedule", value=day)
        if self.lapses:
            return _raise_limit(accounts.enter_period(self, day).begun, period.limit)
        return sum((each.limit for each in self.periods if each.first <= day), ZERO_COST)

    def ceiling_until(self, accounts: Accounts, day: str, last: str) -> Cost:
        """The most that may have been spent in all by a later day, if nothing is until then."""
        past = accounts.total
        if self.find_period(day) is not None:
            past = self.ceiling(accounts, day)
        elif not self.lapses:
            past = sum((each.limit for each in self.periods if each.first <= day), ZERO_COST)
        rest = (each.limit for each in self.periods if day < each.first <= last)
        return _raise_limit(past, sum(rest, ZERO_COST))

    def share(self, day: str, budget: Budget, *, near: bool = False) -> Fraction:
        """The share of the total that the period of a day has for itself.

        Args:
            near: where the day is in no period, take the next one, or the last.

        Raises:
            BudgetRefused: the day is in no period.
        """
        if near:
            day = next((each for each in self.periods if day < each.end), self.periods[-1]).first
        self.ceiling(Accounts(), day)
        period = self.find_period(day)
        assert period is not None
        return Fraction(period.limit.epsilon, budget.epsilon)

    def describe_ways(self, day: str, budget: Budget) -> str:
        """What can be done where the period of a day has nothing left, such as for a correction."""
        parts = math.ceil(2 / self.share(day, budget, near=True) * (1 - Fraction(1, 10**6)))
        half = f'share = "1/{parts}" in [budget] keeps half of a period for a correction'
        following = next((each.first for each in self.periods if each.first > day), None)
        return f"the next period begins on {following}; {half}" if following else half

    def _describe_gap(self, day: str) -> str:
        last = self.periods[-1]
        if day >= last.end:
            return f"the schedule ended with {last_day(last)}, and today is {day}"
        following = next(each for each in self.periods if each.first > day)
        return f"the schedule's next period begins on {following.first}, and today is {day}"

    def text(self) -> str:
        """What a ledger keeps of it."""
        periods = [[each.first, each.end, *vars(each.limit).values()] for each in self.periods]
        data = {"said": dict(self.said), "periods": periods, "lapses": self.lapses}
        return encoding.canonical_json(data)

    @classmethod
    def read(cls, text: str) -> Schedule:
        """A schedule from what `text` made of it."""
        data = json.loads(text)
        periods = (Period(first, end, Cost(*limit)) for first, end, *limit in data["periods"])
        return cls(data["said"], tuple(periods), data["lapses"])


def _raise_limit(spent: Cost, limit: Cost) -> Cost:
    """What a history of this cost may come to with a limit of its own for what follows. A currency
    that cannot express what was spent (Gaussian noise has no pure ε) can pay for nothing more: its
    sum is infinite, and any finite ceiling is below that."""
    raised = zip(vars(spent + limit).values(), vars(limit).values(), strict=True)
    return Cost(*(both if both < INFINITE_UNITS else own for both, own in raised))


def last_day(period: Period) -> str:
    """The last day of a period."""
    return (date.fromisoformat(period.end) - timedelta(days=1)).isoformat()


def _read_spans(said: Mapping[str, Any], today: str) -> list[tuple[date, date]]:
    """The first day of each period, and the day after its last one."""
    if "periods" in said:
        listed = said["periods"]
        if said.keys() & {"every", "until", "start"} or not isinstance(listed, list | tuple):
            message = "periods is a list, such as ['2027-01..2027-03'], without every and until"
            raise InvalidInput(message, field="periods", value=listed)
        halves = [str(each).partition("..") for each in listed]
        spans = [
            (_read_days(one, "periods")[0], _read_days(two or one, "periods")[1])
            for one, _, two in halves
        ]
    else:
        every, until = said.get("every"), said.get("until")
        if every not in PERIOD_KINDS:
            raise UnknownName("every", str(every), PERIOD_KINDS)
        if until is None:
            hint = "add until = '2027-12', for example"
            raise InvalidInput("the schedule has no until", field="until", hint=hint)
        spans, first = [], _read_days(said.get("start", today), "start")[0]
        end = _read_days(until, "until")[1]
        while first < end and len(spans) <= MAX_PERIODS:
            spans.append((first, min(end, _next_start(first, every))))
            first = spans[-1][1]
    if not 0 < len(spans) <= MAX_PERIODS:
        message = f"the schedule has {len(spans) or 'no'} periods"
        hint = f"from 1 to {MAX_PERIODS}; see start and until" if spans else "until is before start"
        raise InvalidInput(message, field="schedule", hint=hint)
    for (first, end), following in zip(spans, [*spans[1:], (date.max, date.max)], strict=True):
        if end <= first or end > following[0]:
            message = f"the period from {first} ends on {end - timedelta(days=1)}"
            after = f"and the next begins on {following[0]}: they overlap"
            words = "before it begins" if end <= first else after
            raise InvalidInput(f"{message}, {words}", field="periods", value=str(first))
    return spans


def _next_start(day: date, every: str) -> date:
    """The first day of the next calendar period."""
    if every in ("day", "week"):
        return day + timedelta(days=1 if every == "day" else 7 - day.weekday())
    months = {"month": 1, "quarter": 3, "year": 12}[every]
    whole = (day.month - 1) // months * months + months
    return date(day.year + whole // 12, whole % 12 + 1, 1)


def _read_days(value: object, field: str) -> tuple[date, date]:
    """The first day of a year, a month or a day, and the day after the last one."""
    numbers = str(value).strip().split("-")
    try:
        if not all(each.isascii() and each.isdigit() for each in numbers) or len(numbers) > 3:
            raise ValueError(value)
        year, month, day = (int(each) for each in (*numbers, "1", "1")[:3])
        first = date(year, month, day)
        every = ("year", "month", "day")[len(numbers) - 1]
        return first, _next_start(first, every)
    except (ValueError, OverflowError):
        accepted = "a year, a month or a day, such as 2027-12"
        raise invalid_value(field, accepted, repr(str(value))[:80]) from None
