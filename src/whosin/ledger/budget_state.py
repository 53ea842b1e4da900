"""Where a dataset stands: what was spent, what is left, what that allows anyone to believe, and
what may still be paid.

A refusal is a `BudgetRefused` with its reason, and nothing was spent.

A dataset is open, complete (it had a release that allows no other) or closed, and on top of that it
may be suspended: an engine failed after a debit, and nothing is drawn until the curator has looked.
Suspending and resuming never change the state underneath.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from whosin import beliefs
from whosin.calibration import Plan
from whosin.errors import BudgetRefused
from whosin.exact import exp_up, format_epsilon, probability, rational, round_down, round_up
from whosin.ledger import encoding
from whosin.ledger.budget import (
    NEIGHBOUR_RELATIONS,
    ZERO_COST,
    Accounts,
    Budget,
    Cost,
    PartLevel,
    Quota,
    Schedule,
    Spend,
    affordable_epsilon,
    best_accounting,
    describe_promise,
    last_day,
    price_epsilon,
    price_spend,
)
from whosin.ledger.encoding import distinguish_units
from whosin.ledger.registration import RegisteredTable
from whosin.notebook_display import Displayed

MAX_SHOWN_PARTS = 20
"""How many parts a state lists."""


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
        accounts: where it was spent.
        schedule: when it may be spent; None for any time.
        parts: the levels of those parts that cost most, where they were read.
        closed: the currencies in which nothing can be paid any more, whatever is left of them here.
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
    accounts: Accounts = field(default_factory=Accounts)
    schedule: Schedule | None = None
    parts: Mapping[str, PartLevel] = field(default_factory=dict)
    closed: tuple[str, ...] = ()

    def within(self, limit: Cost) -> BudgetState:
        """The state as though the budget were less: until a day, or in a quota."""
        return replace(self, budget=replace(self.budget, **vars(limit)))

    def limits(
        self, day: str, quota: str | None = None, part: PartLevel | None = None
    ) -> dict[str, BudgetState]:
        """The state within each limit that an answer must keep, by the key that a refusal names.

        Each is kept in ε or in ρ, and not all of them need to be in the same.

        Args:
            quota: the one that it is paid from.
            part: the level of the one part that it is about.
        """
        seen, total = self if part is None else self.seen_from(part), self.accounts.total
        quotas, kept = self.accounts.quotas, self.accounts.kept(day)
        whole, result = self.budget.limit, {}
        beyond = _currencies_beyond(total + kept, whole)
        if quota is not None:
            own = quotas[quota]
            kept = kept.less(own.limit.less(own.spent))
            result["own"] = replace(self.within(own.limit), spent=own.spent)
        if self.schedule is not None:
            allowed = ZERO_COST
            if self.schedule.find_period(max(day, self.accounts.period)) is not None:
                allowed = self.schedule.ceiling(self.accounts, day)
            over = _currencies_beyond(total, allowed)
            result["every"] = replace(seen.within(allowed), closed=over)
        result["budget"] = replace(seen, closed=_currencies_beyond(total, whole))
        result["quota"] = replace(seen.within(whole.less(kept)), closed=beyond)
        return result

    @property
    def today(self) -> str:
        """This day, or that of the last entry where the clock is behind it."""
        return max(encoding.today(), self.last[:10])

    @property
    def dates_decide(self) -> bool:
        """Whether what may be spent depends on the day."""
        return self.schedule is not None or bool(self.accounts.quotas)

    def periods_left(self) -> list[tuple[str, str, BudgetState]]:
        """(first day, last day, the state within what it allows) of this period and of the rest of
        this year; nothing without a schedule, or once it has ended."""
        day, schedule = self.today, self.schedule
        if schedule is None or day >= schedule.periods[-1].end:
            return []
        period = schedule.find_period(day)
        spans = [] if period is None else [(period.first, last_day(period))]
        spans.append((day, min(f"{day[:4]}-12-31", last_day(schedule.periods[-1]))))
        ends = [day, spans[-1][1]][-len(spans) :]
        return [
            (*span, self.within(schedule.ceiling_until(self.accounts, day, end)))
            for span, end in zip(spans, ends, strict=True)
        ]

    def quota_states(self) -> dict[str, BudgetState]:
        """Each quota, as a state of its own."""
        closed = _currencies_beyond(
            self.accounts.total + self.accounts.kept(self.today), self.budget.limit
        )
        return {
            name: replace(self.within(each.limit), spent=each.spent, closed=closed)
            for name, each in self.accounts.quotas.items()
        }

    def seen_by(self, who: str | None) -> BudgetState:
        """The state as one of those who ask may see it: what quotas keep for others is one
        sum without a name."""
        theirs = {name: each for name, each in self.accounts.quotas.items() if who in each.members}
        others = [
            each
            for name, each in self.accounts.quotas.items()
            if name not in theirs and each.members and each.is_open(self.today)
        ]
        if others:  # one may have spent more than its limit of a currency, and keeps nothing then
            limit = sum((each.limit for each in others), ZERO_COST)
            kept = sum((each.limit.less(each.spent) for each in others), ZERO_COST)
            theirs[""] = Quota(limit, limit.less(kept))
        return replace(self, accounts=replace(self.accounts, quotas=theirs))

    @property
    def unreserved(self) -> BudgetState:
        """The state beside what quotas keep."""
        return self.limits(self.today)["quota"]

    def left_for(self, who: str, part: PartLevel | None = None) -> float:
        """What one asker may spend today of a question about everyone, or about the one part with
        this level: what their quota, or what all quotas leave, the period and the total allow."""
        day = self.today
        views = self.limits(day, self.accounts.find_quota(who, day), part)
        return min(each.spendable for each in views.values())

    def accounts_data(self) -> dict[str, Any]:
        """Where the budget was and may be spent, as plain data; nothing where that was not said."""
        data: dict[str, Any] = {}
        if self.registered is not None and (part := self.registered.registration.part):
            views = {name: self.seen_from(level) for name, level in self.parts.items()}
            data["parts"] = {
                **part,
                "everyone": _float_up(self.accounts.everyone.epsilon),
                "unasked": {"left": self.seen_from(PartLevel()).remaining},
                "listed": [
                    {"part": name, "spent": finite_or_text(each.epsilon), "left": each.remaining}
                    for name, each in views.items()
                ],
            }
        if self.schedule is not None:
            data["schedule"] = {
                **self.schedule.said,
                "left": [
                    {"from": first, "until": last, "left": each.remaining}
                    for first, last, each in self.periods_left()
                ],
            }
        if self.accounts.quotas:
            data["quotas"] = [
                {
                    "quota": name,
                    "members": list(self.accounts.quotas[name].members),
                    "until": self.accounts.quotas[name].until or None,
                    "budget": _float_down(each.budget.epsilon),
                    "left": each.remaining,
                }
                for name, each in self.quota_states().items()
            ]
            data["unreserved"] = self.unreserved.remaining
        return data

    def seen_from(self, level: PartLevel) -> BudgetState:
        """The state as it matters to questions about one part alone: what others have spent beside
        it counts only where someone may move there."""
        return replace(self, spent=self.accounts.seen_from(level, self.budget.relation))

    @property
    def epsilon(self) -> float:
        """The ε of all answers together, rounded up: the better of the two readings.

        It may be read at any time, also by someone who chose the time after seeing
        answers.
        """
        return round_up(encoding.number_from_units(self._read[0]))

    @property
    def reading(self) -> str:
        """Which reading gave `epsilon`: "pure", "concentrated", or "promised": all of the budget,
        where a reserve is kept and an answer was not pure."""
        return self._read[1]

    @property
    def _read(self) -> tuple[int, str]:
        return best_accounting(self.spent, self.budget, self.plan)

    @property
    def _unspent(self) -> tuple[int, int]:
        """(ε, ρ) that are left, in units; none where nothing more may be asked."""
        if self.state != "open":
            return 0, 0
        left = vars(self.budget.limit.less(self.spent))
        epsilon, rho = (0 if key in self.closed else left[key] for key in ("epsilon", "rho"))
        return epsilon, rho

    @property
    def remaining(self) -> float:
        """What is left of ε for one answer with pure noise, rounded down."""
        return _float_down(self.left)

    @property
    def left(self) -> int:
        """The same in units."""
        pure, rho = self._unspent
        return max(pure, affordable_epsilon(rho, self.plan))

    def room(self, asked: Cost) -> int:
        """What is left for a question like this, in units: none where it needs more δ, and ρ where
        it has no pure ε."""
        if self.spent.delta + asked.delta > self.budget.delta:
            return -1
        return self.left if asked.epsilon < encoding.INFINITE_UNITS else self._unspent[1]

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
        return max(pure, affordable_epsilon(self._spendable_rho, self.plan))

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
            "spent_epsilon": finite_or_text(self.epsilon),
            "reading": self.reading,
            "remaining_epsilon": self.remaining,
            "remaining_rho": self.remaining_rho,
            "ratio": finite_or_text(self.ratio),
            "alone": self.budget.alone,
            "debits": self.debits,
            "entries": self.entries,
            "last": self.last,
            "head": self.head,
            "plan": self.plan.to_dict(),
            "registration": None if self.registered is None else self.registered.public(),
            **self.accounts_data(),
        }


def _currencies_beyond(spent: Cost, limit: Cost) -> tuple[str, ...]:
    return tuple(key for key in ("epsilon", "rho") if vars(spent)[key] > vars(limit)[key])


def drop_dust(left: int, total: int, debits: int) -> int:
    """What is left, in units, or 0 where it is dust.

    Dust is what rounding leaves over, a unit for the total and one for each debit, or less than a
    billionth of the total: an answer paid with it would have a billion times the noise (for ρ,
    thirty thousand times) of one that is paid with all. Only what is shown changes, and only
    towards less; a debit that small is still checked, and paid, to the unit.
    """
    dust = max(total // 10**9, debits + 1) if debits else 0
    return left if left > dust else 0


def finite_or_text(value: float) -> float | str:
    """A number as JSON has it."""
    return value if math.isfinite(value) else "inf"


def _float_up(value: int) -> float | str:
    return finite_or_text(round_up(encoding.number_from_units(value)))


def _float_down(value: int) -> float:
    return round_down(Fraction(value, encoding.EPSILON_UNITS))


def open_for_debits(budget_state: BudgetState) -> None:
    """A closed dataset, or one about which a release of its own was made, answers nothing more; one
    that is suspended, nothing for now."""
    refuse_suspended(budget_state)
    reason = {
        "closed": "is closed and answers no more questions",
        "complete": "has had its one release: its promise does not compose with further answers",
    }.get(budget_state.state)
    if reason is not None:
        raise BudgetRefused(f"dataset {budget_state.dataset!r} {reason}", field="dataset")


def refuse_suspended(budget_state: BudgetState) -> None:
    """Nothing is drawn after an engine failed: whether it fails again could depend on one row. The
    words are the same whatever the reason was."""
    if budget_state.suspended:
        raise BudgetRefused(
            f"dataset {budget_state.dataset!r} is suspended, since an engine failed after a debit: "
            "its curator looks into it and lets it go on with whosin ledger resume"
        )


def check_session(  # noqa: PLR0913 (all by name)
    budget_state: BudgetState,
    plan: Plan,
    budget: Budget,
    share: object = None,
    *,
    cost: Cost | None = None,
    part: str | None = None,
    level: PartLevel | None = None,
    who: str = "",
    moment: str = "",
) -> None:
    """A session's plan, or what will be spent of it, must fit what is left.

    Args:
        cost: of its questions, where they are known; no more than the share.
        part: the one that its questions are about, with its level.
        who, moment: of whoever asks, where the period and the quota count too.
    """
    open_for_debits(budget_state)
    total, name = budget_state.budget, f"dataset {budget_state.dataset!r}"
    if budget.relation != total.relation:
        asked = f"this plan is for {budget.relation} neighbours"
        message = f"the budget of {name} is for {total.relation} neighbours, and {asked}"
        raise BudgetRefused(message, field="plan")
    if budget.alone and (budget_state.debits or not total.alone):
        promise = "this plan's promise does not compose with other answers"
        message = f"{promise}, and {name} was not registered for it alone"
        hint = "register a dataset of its own with this plan"
        raise BudgetRefused(message, field="plan", hint=hint)
    if total.alone and describe_promise(plan) != describe_promise(budget_state.plan):
        allowed = f"{name} allows one release, under the plan that it was registered with"
        raise BudgetRefused(f"{allowed}, and this is a different plan", field="plan")
    if share is not None:
        budget = budget.part(share)
    rho = budget.rho or price_epsilon(budget.epsilon, budget_state.plan)
    whole = Cost(budget.epsilon, rho, budget.delta)
    if cost is not None:
        own = price_spend(Spend({}, {total.relation: cost}), budget_state.plan)
        whole = own.cost(total.relation)
    known = PartLevel() if level is None else level
    seen = budget_state if part is None else budget_state.seen_from(known)
    if moment:
        check_clock(budget_state, moment)
        quota = budget_state.accounts.find_quota(who, moment[:10])
        spend = Spend({}, dict.fromkeys(NEIGHBOUR_RELATIONS, whole), part=part)
        entered = budget_state.accounts.enter_period(budget_state.schedule, moment[:10])
        after, _ = entered.pay(spend, total.relation, known, quota)
        if after.total.within(total.limit):
            try:
                check_limits(budget_state, [spend], after, {part or "": known}, quota, moment)
            except BudgetRefused as error:
                left = round(budget_state.left_for(who, level) * encoding.EPSILON_UNITS)
                hint = _fitting_share(left, plan) if cost is None or _is_share(cost, budget) else ""
                raise BudgetRefused(str(error), field=error.field, hint=hint) from None
            return
        views = budget_state.limits(moment[:10], quota, None if part is None else known)
        seen = min(views.values(), key=lambda each: each.left)
    elif total.holds(seen.spent + whole):
        return
    if cost is not None and not _is_share(cost, budget):
        message = _describe_excess(seen, whole, name, no_rho=not total.rho)
        raise BudgetRefused(message, field="budget")
    asked = "the plan" if share is None or share == 1 else f"a share of {share} of the plan"
    if seen.spent.delta + budget.delta > seen.budget.delta:
        # A session counts on its whole δ; the ledger keeps a quarter of it for single answers.
        left = 4 * (seen.budget.delta - seen.spent.delta)
        needed, have = distinguish_units(4 * budget.delta, left, encoding.DELTA_UNITS)
        message = f"{asked} needs δ = {needed}, and {name} has {have} left"
        raise BudgetRefused(message, field="share")
    needed, have = distinguish_units(budget.epsilon, _left_for_people(seen, budget.epsilon))
    message = f"{asked} needs ε = {needed}, and {name} has {have} left of {budget_words(total)}"
    raise BudgetRefused(message, field="share", hint=_fitting_share(seen.spendable_units, plan))


def _is_share(cost: Cost, share: Budget) -> bool:
    """Whether a cost is all of a share, but for rounding: a smaller share would make it less."""
    spent, given = cost.epsilon, share.epsilon
    if spent >= encoding.INFINITE_UNITS:
        spent, given = cost.rho, share.rho
    return spent * 10**6 > given * (10**6 - 1)


def _fitting_share(fits: int, plan: Plan) -> str:
    """Which share of the plan takes no more than so many units of ε, if any."""
    whole = encoding.budget_units(plan.epsilon, "epsilon of the plan")
    if not 0 < fits < whole:
        return ""
    parts = whole // (fits + 1) + 1
    return f'a share of 1/{parts} of the plan would fit: share = "1/{parts}"'


def pay_debits(
    budget_state: BudgetState,
    spends: Sequence[Spend],
    levels: Mapping[str, PartLevel],
    who: str,
    moment: str,
) -> list[tuple[Accounts, PartLevel, str | None]]:
    """The accounts, the level of its part and the quota of each debit, all of which must be within
    the budget, its schedule and the quota of whoever asks.

    A release of its own that has no cost under the dataset's relation answers for its own promise.

    Args:
        levels: what their parts have come to.
    """
    open_for_debits(budget_state)
    count = budget_state.debits
    joint = [spend.after for spend in spends if spend.after is not None]
    if joint and (len(spends) > 1 or joint[0] != count):
        message = "another release was paid for since this one was measured with those before"
        raise BudgetRefused(message, field="request", hint="measure and ask again")
    relation = budget_state.budget.relation
    check_clock(budget_state, moment)
    quota = budget_state.accounts.find_quota(who, moment[:10])
    accounts = budget_state.accounts.enter_period(budget_state.schedule, moment[:10])
    found, known = [], dict(levels)
    for spend in spends:
        if count and spend.ends(budget_state.budget, budget_state.registered):
            promise = "this release's promise does not compose with other answers"
            message = f"{promise}, and dataset {budget_state.dataset!r} has answered before"
            raise BudgetRefused(message, field="dataset")
        count += 1
        part = spend.part or ""
        accounts, known[part] = accounts.pay(spend, relation, known.get(part, PartLevel()), quota)
        found.append((accounts, known[part], quota))
    if any(spend.alone for spend in spends) and len(spends) > 1:
        message = "a release whose promise does not compose with others must be asked alone"
        raise BudgetRefused(message, field="spends", value=len(spends))
    for spend in spends:
        check_registration(budget_state, spend)
    if not all(spend.alone and relation not in spend.costs for spend in spends):
        check_limits(budget_state, spends, accounts, levels, quota, moment)
        return found
    # A promise of its own says nothing about other adversaries: it must be the registered one.
    promised = encoding.plain_copy(describe_promise(budget_state.plan), "plan")
    for spend in spends:
        if spend.promise != promised:
            own = f"this answer has a promise of its own ({spend.guarantee})"
            mine = f"the one that dataset {budget_state.dataset!r} was registered with"
            hint = "register a dataset with that very plan"
            raise BudgetRefused(f"{own}, which does not imply {mine}", field="plan", hint=hint)
    return found


CLOCK_SECONDS = 60
"""How far a clock may be behind the last entry."""


def is_behind(moment: str, last: str) -> bool:
    """Whether an entry of this moment would be dated before the last one."""
    if moment >= last:
        return False
    now, before = map(datetime.fromisoformat, (moment, last))
    return now < before - timedelta(seconds=CLOCK_SECONDS)


def check_clock(budget_state: BudgetState, moment: str) -> None:
    """Where dates decide, the clock is not behind the last entry."""
    if budget_state.dates_decide and is_behind(moment, budget_state.last):
        raise BudgetRefused(
            f"the clock says {moment[:19]}Z, and the last entry of dataset "
            f"{budget_state.dataset!r} is of {budget_state.last[:19]}Z",
            field="clock",
            value=moment,
            hint="set the clock right, or where it was wrong then, let the dataset's curator go on "
            "from here with whosin ledger resume",
        )


def check_limits(
    budget_state: BudgetState,
    spends: Sequence[Spend],
    after: Accounts,
    levels: Mapping[str, PartLevel],
    quota: str | None,
    moment: str,
) -> None:
    """What was spent, with these answers, stays within the quota, the period and the total, less
    what quotas keep for others."""
    day, name = moment[:10], f"dataset {budget_state.dataset!r}"
    relation, schedule = budget_state.budget.relation, budget_state.schedule
    asked = sum((spend.cost(relation) for spend in spends), ZERO_COST)
    # What costs nothing between replaced people may raise the total: who moves enters a part.
    asked = asked.larger(after.total.less(budget_state.accounts.total))
    failed, whole = list[str](), budget_state.budget.limit
    if quota is not None and not after.quotas[quota].spent.within(after.quotas[quota].limit):
        failed.append("own")
    if schedule is not None and asked != ZERO_COST:  # steps of a stream were paid for at its first
        ceiling = schedule.ceiling(budget_state.accounts, day)
        failed += [] if after.total.within(ceiling) else ["every"]
    if not (after.total + after.kept(day)).within(whole):
        failed += ["quota"] if after.total.within(whole) else ["budget", "quota"]
    if not failed:
        return
    parts = {spend.part for spend in spends}
    one = next(iter(parts)) if len(parts) == 1 else None
    seen = None if one is None else levels.get(one, PartLevel())
    views = budget_state.limits(day, quota, seen)
    tightest = min(failed, key=lambda key: views[key].room(asked))
    where = {
        "own": f"quota {quota!r} of {name}",
        "every": _describe_period(budget_state, name, day),
        "budget": name if one is None else f"part {one!r} of {name}",
        "quota": f"{name}, beside what quotas keep for others,",
    }[tightest]
    message = _describe_excess(views[tightest], asked, where, no_rho=not whole.rho)
    field, whole_budget = "quota" if tightest == "own" else tightest, budget_state.budget
    ways = ""
    if schedule and field == "every":
        ways = schedule.describe_ways(day, whole_budget)
        limit = whole.rho if asked.epsilon >= encoding.INFINITE_UNITS else whole.epsilon
        if not drop_dust(views["every"].room(asked), limit, budget_state.debits):
            message = f"this period's share of the budget is spent; {message}"
    raise BudgetRefused(message, field=field, hint=ways)


def check_registration(budget_state: BudgetState, spend: Spend) -> dict[str, Any]:
    """What a debit records of its table; it must be the dataset's."""
    if budget_state.registered is None:
        if spend.part is not None:
            message = f"dataset {budget_state.dataset!r} has no table, and so no parts"
            raise BudgetRefused(message, field="part", value=spend.part)
        return {}
    if spend.part is not None and not budget_state.registered.registration.part:
        message = f"dataset {budget_state.dataset!r} was registered without parts"
        hint = "its curator names them: part = '…' in [table], and whosin ledger amend"
        raise BudgetRefused(message, field="part", value=spend.part, hint=hint)
    budget_state.registered.check(budget_state.dataset, spend.registration)
    assert spend.registration is not None
    asked = budget_state.registered.asked(spend.registration)
    return {"registration": asked, **spend.registration.named}


def _describe_period(budget_state: BudgetState, name: str, day: str) -> str:
    schedule = budget_state.schedule
    period = schedule and schedule.find_period(max(day, budget_state.accounts.period))
    return f"{name}, in its period from {period.first} to before {period.end}," if period else name


def budget_words(budget: Budget) -> str:
    """A total in a few words."""
    total = format_epsilon(Fraction(budget.epsilon, encoding.EPSILON_UNITS))
    return f"ε = {total} ({budget.relation})"


def _left_for_people(budget_state: BudgetState, needed: int) -> int:
    """What is left, as people are told: dust is nothing, except next to a cost like it."""
    return budget_state.spendable_units or (
        budget_state.left if needed <= 2 * budget_state.left else 0
    )


def _describe_excess(budget_state: BudgetState, asked: Cost, where: str, *, no_rho: bool) -> str:
    """What is needed and what is left, where that is too little.

    Args:
        budget_state: the state within what may be spent there; the whole budget, or less.
        where: what it is left in, in words.
        no_rho: whether the whole budget has none.
    """
    before, total = budget_state.spent, budget_state.budget
    limit, of = total.limit, f" of {budget_words(total)}"
    short = limit.delta - before.delta
    if asked.delta > short:
        needed, have = distinguish_units(asked.delta, short, encoding.DELTA_UNITS)
        return (
            f"this needs δ = {needed}, and {where} has {have} left for single answers; "
            "nothing was spent"
        )
    if asked.epsilon < encoding.INFINITE_UNITS:
        needed, have = distinguish_units(
            asked.epsilon, _left_for_people(budget_state, asked.epsilon)
        )
        return f"this needs ε = {needed}, and {where} has {have} left{of}; nothing was spent"
    reason = "its plan has no δ, and Gaussian noise needs one"
    if asked.rho >= encoding.INFINITE_UNITS:
        reason = "no ρ either"
    elif not no_rho:
        left = budget_state.room(asked)
        clear = drop_dust(left, limit.rho, budget_state.debits)
        needed, have = distinguish_units(asked.rho, clear or (left if asked.rho <= 2 * left else 0))
        reason = f"ρ = {needed} is more than the {have} left"
    return (
        f"{where.rstrip(',')}: these answers have no pure ε between {total.relation} neighbours, "
        f"and {reason}; nothing was spent"
    )
