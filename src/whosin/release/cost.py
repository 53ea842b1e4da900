"""From a share of the budget to noise, and from noise to its cost under each relation.

A `CostEstimate` is what a query would cost and how good its answer would be, before anything runs.
Its noise follows from the share and the sensitivity of its aggregates (`contribution_bounds`).

A plan with a δ promises less, and yet allows a smaller ε: its ε is the one of Gaussian noise, which
needs the δ. Answers whose noise is pure, such as Laplace noise, would keep the stronger promise
with the larger ε of the plan without a δ; `CostEstimate.cautions` then says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from whosin.calibration import Plan, calibrate
from whosin.errors import InvalidInput, WhosinError, spell
from whosin.exact import Array, exact_fraction, format_figures, round_up
from whosin.ledger import BudgetState, encoding
from whosin.ledger.budget import (
    NEIGHBOUR_RELATIONS,
    Accounts,
    Budget,
    Cost,
    PartLevel,
    Schedule,
    Spend,
    price_spend,
)
from whosin.ledger.registration import Registration
from whosin.ledger.registry import STEP_KEY
from whosin.noise import GaussianNoise, LaplaceNoise, selection_epsilon, selection_rho, top_k
from whosin.noise.distributions import Noise, square_root_up
from whosin.noise.source import MAX_SCALE_PARAMETER
from whosin.release.conditions import canonical_question, condition_columns
from whosin.release.contribution_bounds import (
    Aggregate,
    ContributionBounds,
    CostWarning,
    caution_constants,
)
from whosin.release.table import Table, register_question

CONFIDENCE_LEVEL = 0.95
OPTIMAL_SPLIT = "optimal"
NOISY_LEVEL = 0.3
"""The relative standard error above which a cell is marked as too noisy to read."""
NORMAL_QUANTILE = 1.96
LAPLACE_QUANTILE = math.log(20) / math.sqrt(2)
"""95% of one Laplace noise are within so many standard deviations; of sums of several, more."""
MAX_RANGE_SHARE = 0.1
"""The share of a column's range above which the interval of a point of it is marked."""
LESS_NOISE = "spend more budget, declare larger steps, or let fewer rows of a person count"
SELECTION_MARGIN = 1 + Fraction(1, 2**40)
"""Noise of a selection, so that its price, a float rounded up, stays within the share."""


@dataclass(frozen=True)
class Share:
    """What one query may spend, between neighbours of the plan's relation.

    Attributes:
        epsilon: pure ε, for exact Laplace noise and selections with exponential noise.
        rho: ρ of zCDP, for exact Gaussian noise and selections with Gumbel noise; 0 for none.
        delta: δ, for queries that may fail.
    """

    plan: Plan
    epsilon: Fraction
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    @property
    def relation(self) -> str:
        """The relation between neighbouring worlds."""
        return self.plan.relation


def is_too_noisy(
    value: float,
    low: float,
    high: float,
    ends: tuple[float, float] | None = None,
    *,
    signed: bool = False,
    deviations: float = NORMAL_QUANTILE,
) -> bool:
    """Whether a 95% interval is too wide to read: against the value, or for a point of a column
    against its declared range. It is the one rule for answers and for what is expected of them.

    Args:
        ends: of the declared range, for points of a column.
        signed: whether the number without noise can be below 0.
        deviations: as `interval_deviations` has them.
    """
    if ends is not None:
        return high - low > MAX_RANGE_SHARE * (ends[1] - ends[0])
    size = abs(value) if signed else max(value, 0.0)
    return max(value - low, high - value) / deviations > NOISY_LEVEL * size


def interval_deviations(noise: str) -> float:
    """How many standard deviations half of a 95% interval has, by the words for the noise: those of
    one Laplace noise, or of a normal one, which is fewer than any sum of Laplace noises has."""
    return LAPLACE_QUANTILE if noise.startswith("Laplace, scale") else NORMAL_QUANTILE


@dataclass(frozen=True)
class ExpectedError:
    """How good an answer will be; it follows from what was declared, and from no row.

    Attributes:
        rows: how many rows (of a count by keys: people) a group has; None where it does not matter.
            Means, variances and quantiles are then those of values that are spread evenly over the
            declared range.
        error: the expected distance from the answer without noise.
        within: half of the 95% interval, or where there is none what 95% of the answers are within.
        of_rows: whether these are shares of the rows, those that would have to change.
        shown: the probability that a key of so many people shows.
        noisy: whether the answer would be marked as too noisy to read.
        fills: whether its interval would be the whole declared range.
    """

    rows: int | None
    error: float | None = None
    within: float | None = None
    of_rows: bool = False
    shown: float | None = None
    noisy: bool = False
    fills: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON."""
        return {
            "rows": self.rows,
            "error": self.error,
            "within": self.within,
            "measure": "share of rows" if self.of_rows else "value",
            "too_noisy": self.noisy,
            "fills_range": self.fills,
            **({} if self.shown is None else {"shown": self.shown}),
        }


@dataclass(frozen=True)
class NoisyAggregate:
    """An aggregate with its noise, in steps of the aggregate."""

    part: Aggregate
    noise: Noise

    def interval_radius(self, confidence: float = CONFIDENCE_LEVEL) -> float:
        """The noise is at most this far from 0 with this probability, in its measure."""
        return float(self.noise.quantile(confidence) * self.part.unit)

    @property
    def error(self) -> float:
        """The expected distance of the noise from 0, in the aggregate's measure."""
        return self.noise.mean_error * float(self.part.unit)


@dataclass(frozen=True)
class SelectionNoise:
    """The noise of selections: exponential, with a cost in ε, or Gumbel's, with a cost in ρ.

    Attributes:
        scale: of the noise.
        gumbel: which of the two.
    """

    scale: Fraction
    gumbel: bool

    @classmethod
    def from_share(
        cls, share: Share, sensitivity: int, times: int, *, monotonic: bool = False
    ) -> SelectionNoise:
        """The least noise for which selections cost no more than a share.

        Args:
            sensitivity: how far someone can move a score.
            times: how many selections someone's rows are in.
            monotonic: whether someone moves all scores the same way.
        """
        change = sensitivity if monotonic else 2 * sensitivity
        if share.rho:  # one selection costs (change/scale)²/8
            scale = Fraction(square_root_up(times * change**2 / (8 * share.rho)))
        else:
            scale = times * change / share.epsilon
        scale *= SELECTION_MARGIN
        if scale > MAX_SCALE_PARAMETER:
            raise InvalidInput(
                "the noise would need a scale above 2^52, which is not drawn",
                field="noise",
                hint="spend more budget, or let fewer rows of a person count",
            )
        return cls(scale, bool(share.rho))

    def cost(
        self, sensitivity: int, k: int = 1, *, monotonic: bool = False
    ) -> tuple[Fraction, Fraction]:
        """(ε, ρ) of the selection of k positions; rounded up."""
        epsilon = exact_fraction(selection_epsilon(sensitivity, self.scale, k, monotonic=monotonic))
        if not self.gumbel:
            return epsilon, epsilon**2 / 2
        return epsilon, exact_fraction(
            selection_rho(sensitivity, self.scale, k, monotonic=monotonic)
        )

    def select(self, scores: Array, k: int = 1) -> Array:
        """The positions of (nearly) the k largest scores, best first."""
        return top_k(scores, k, self.scale, gumbel=self.gumbel)

    def probabilities(self, scores: Array) -> Array:
        """The law of one selection, in floats.

        With Gumbel noise position j has a probability as w_j = e^(score/scale). With exponential
        noise it is ∫ w_j Π_{i≠j} (1 − w_i u) du over 0 ≤ u ≤ 1, where the largest w is 1: u is
        e^(−v) for the level v above the largest score that the noise of j takes it to.
        """
        weights = np.exp((scores - scores.max()) / round_up(self.scale))
        if self.gumbel:
            return np.asarray(weights / weights.sum())
        nodes, parts = _unit_nodes()
        factors = 1 - weights[:, None] * nodes
        others = np.exp(np.log(factors).sum(axis=0))
        found: Array = weights * ((others * parts) / factors).sum(axis=1)
        return np.asarray(found / found.sum())

    def margin(self, count: int, confidence: float = CONFIDENCE_LEVEL) -> float:
        """How far the selected score is from the largest, at most, with this probability.

        Raising a score that is more than t below the largest to t below it, and lowering the others
        to that, only makes such a one likelier to win. So the worst case is n − 1 scores at t below
        one. With exponential noise that one wins with probability (1 − (1 − x)ⁿ)/(nx) ≥
        (1 − e^(−nx))/(nx) ≥ 1 − nx/2, where x = e^(−t/scale); with Gumbel noise with
        1/(1 + (n−1)x).
        """
        miss = 1 - confidence
        odds = (count - 1) * confidence / miss if self.gumbel else count / (2 * miss)
        return round_up(self.scale) * math.log(max(odds, 1.0)) * (1 + 1e-9)


NODE_COUNT = 128


@cache
def _unit_nodes() -> tuple[Array, Array]:
    """Nodes and weights of Gauss and Legendre between 0 and 1."""
    nodes, parts = np.polynomial.legendre.leggauss(NODE_COUNT)
    return (nodes + 1) / 2, parts / 2


@dataclass(frozen=True)
class CostEstimate:
    """A query with its cost and what to expect, before anything runs.

    Attributes:
        error: the expected absolute error of each number, if that is known beforehand.
        within: 95% of the numbers will be within this distance, likewise.
        within_words: what else is within it, in a sentence, where the answer is no number.
        noise: what noise, in words.
        parts: the noise of each summed part.
        details: what the query itself needs to answer, of a type of its own: a threshold, a scale.
        expression: what will be scanned, as the engine has checked it.
        cautions: what to decide before asking.
        tables: for each table of an answer with several its columns and the standard error of a
            cell, as plain data.
        measured: what is measured for them, with how much noise and at which cost.
        standard_error: that of each number, where the batch is split for the least error.
        by_weights: what that would be if the batch were split by weights.
        joint: the cost estimate that is debited and answered for this query and others at once.
        place: of this query among those.
        owner: whose drafts a file's are, once it is debited (see `draft_name`).
        first: what was paid for the first step of a stream; None where it is paid now.
        request: of a step of a stream, its own name in the ledger.
        scanned: what steps share while they are answered. Never shown.
        seal: makes a digest of a text that nobody can test guesses with, of what is to be known
            again of the rows.
        expected: how good the answer will be, at a few sizes of a group or at the public one.
        readable_from: the least size of a group, in `readable_unit`, whose answer is not marked as
            too noisy to read; for sums the least total.
        told_from: the least number of rows in a group whose interval is less than the whole
            declared range; None where that does not depend on rows.
        groups: how many groups the answer has.
        noisy_groups: how many of them are smaller than that at the least, where the number of
            people is public.
        called: its title, where another one of the batch would have the same.
    """

    query: Any
    share: Share
    spend: Spend
    noise: str
    error: float | None = None
    within: float | None = None
    parts: tuple[NoisyAggregate, ...] = ()
    details: Any = None
    expression: Any = field(default=None, compare=False, repr=False)
    cautions: tuple[CostWarning, ...] = ()
    tables: tuple[Mapping[str, Any], ...] = ()
    measured: tuple[Mapping[str, Any], ...] = ()
    standard_error: float | None = None
    by_weights: float | None = None
    within_words: str = ""
    joint: CostEstimate | None = None
    place: int = 0
    owner: str = field(default="", compare=False)
    first: Spend | None = None
    request: str = ""
    scanned: dict[int, Any] | None = field(default=None, compare=False, repr=False)
    seal: Callable[[str], str] | None = field(default=None, compare=False, repr=False)
    expected: tuple[ExpectedError, ...] = ()
    readable_from: float | None = None
    readable_unit: str = "rows"
    told_from: int | None = None
    groups: int = 1
    noisy_groups: int | None = None
    called: str = ""

    @property
    def title(self) -> str:
        """What to call it: the query's title, and more where another one would be alike."""
        return self.called or str(self.query.title)

    @property
    def cost(self) -> Cost:
        """What it costs under the plan's relation, as `Answer.cost`."""
        return price_spend(self.spend, self.share.plan).cost(self.share.relation)

    def __repr__(self) -> str:
        """The question, its noise, and how good the answer will be, in a line."""
        within = f", 95% within ±{spell(self.within)}" if self.within is not None else ""
        return f"<{self.title}: {self.noise}{within}>"

    @property
    def says_nothing(self) -> bool:
        """Whether the interval will be the whole declared range: at the public size of a group, or
        at every size that is shown."""
        return bool(self.expected) and all(each.fills for each in self.expected)

    def worded(self, what: Mapping[str, Any]) -> CostEstimate:
        """The same in the words of an earlier debit, where that asks the same."""
        asked = (canonical_question(each) for each in (what, self.spend.what))
        same = len(set(map(encoding.canonical_json, asked))) == 1
        return replace(self, spend=replace(self.spend, what=what)) if same else self

    @property
    def paid(self) -> CostEstimate:
        """What is debited for this query: itself, or the cost estimate that it is a part of."""
        return self.joint or self


def noisy_parts(
    parts: Sequence[Aggregate], share: Share, bounds: ContributionBounds, grouped: bool
) -> tuple[NoisyAggregate, ...]:
    """The share split evenly over the parts of a query; two paired parts are one to pay for."""
    result, number = [], 1 if parts[0].paired else len(parts)
    for part in parts:
        noise: Noise
        if share.rho:
            square = part.squared_l2_sensitivity(share.relation, bounds, grouped)
            noise = GaussianNoise.at_rho(square, share.rho / number)
        else:
            sensitivity = part.l1_sensitivity(share.relation, bounds, grouped)
            noise = LaplaceNoise.at_epsilon(sensitivity, share.epsilon / number)
        result.append(NoisyAggregate(part, noise.check_drawable(LESS_NOISE)))
    return tuple(result)


def noise_costs(
    parts: Sequence[NoisyAggregate], bounds: ContributionBounds, grouped: bool
) -> dict[str, Cost]:
    """What noise of these scales costs under each relation."""
    result, zero = {}, Fraction(0)
    if parts[0].part.paired:  # both have the same noise, and the sensitivity is that of both
        parts = parts[:1]
    for relation in NEIGHBOUR_RELATIONS:
        at = relation, bounds, grouped
        if isinstance(parts[0].noise, GaussianNoise):
            rhos = (each.noise.cost(each.part.squared_l2_sensitivity(*at)) for each in parts)
            result[relation] = Cost.gaussian(sum(rhos, zero))
        else:
            epsilons = (each.noise.cost(each.part.l1_sensitivity(*at)) for each in parts)
            result[relation] = Cost.pure(sum(epsilons, zero))
    return result


def noise_words(part: NoisyAggregate) -> str:
    """The noise of a part in words."""
    if not part.noise.spread:
        return "none: the exact number"
    kind = "Gaussian, σ" if part.noise.kind == "gaussian" else "Laplace, scale"
    return f"{kind} {spell(part.noise.spread * float(part.part.unit), 4)}"


def caution_unused_delta(plan: Plan, estimates: Sequence[CostEstimate]) -> list[CostEstimate]:
    """Cost estimates, with a caution each where none uses the plan's δ and the plan would allow
    more without it."""
    if not plan.delta or any(_uses_delta(estimate.paid, plan.relation) for estimate in estimates):
        return list(estimates)
    try:
        pure = calibrate(plan.target, plan.family, query=plan.query, entities=plan.entities)
    except WhosinError:  # there is no such plan
        return list(estimates)
    allowed = tuple(format_figures(each.epsilon, 6, "down") for each in (pure, plan))
    if pure.relation != plan.relation or pure.epsilon <= plan.epsilon or len(set(allowed)) == 1:
        return list(estimates)
    said = CostWarning("delta", epsilons=(pure.epsilon, plan.epsilon))
    return [add_cautions(estimate, said) for estimate in estimates]


def add_cautions(estimate: CostEstimate, *cautions: CostWarning) -> CostEstimate:
    return replace(estimate, cautions=(*estimate.cautions, *cautions)) if cautions else estimate


def _uses_delta(estimate: CostEstimate, relation: str) -> bool:
    """Whether what is debited is not pure ε, or is a promise of its own."""
    if estimate.spend.alone:
        return True
    cost = estimate.spend.cost(relation)
    return cost.delta > 0 or cost.epsilon == encoding.INFINITE_UNITS or estimate.share.rho > 0


def apportion_cost(cost: Cost, count: int) -> list[Cost]:
    """A cost in parts that are as even as whole units allow, and add up to it."""
    return [
        Cost(
            *(
                amount
                if amount >= encoding.INFINITE_UNITS
                else amount // count + (each < amount % count)
                for amount in (cost.epsilon, cost.rho, cost.delta)
            )
        )
        for each in range(count)
    ]


def paid_estimates(estimates: Iterable[CostEstimate]) -> list[CostEstimate]:
    """What is debited for cost estimates, each once."""
    return list({id(estimate.paid): estimate.paid for estimate in estimates}.values())


@dataclass(frozen=True)
class RemainingBudget:
    """What a batch may spend in all, in units."""

    plan: Plan
    epsilon: int
    rho: int
    delta: int


def common_part(queries: object, table: Table) -> str | None:
    """The part that all queries are paid from, if there is one."""
    listed = queries if isinstance(queries, list | tuple) else [queries]
    parts = {each.paying_part(table) if hasattr(each, "paying_part") else None for each in listed}
    return parts.pop() if len(parts) == 1 else None


def priced_spends(
    paid: Sequence[CostEstimate], registration: Registration, table: Table
) -> list[Spend]:
    """What is debited for cost estimates, each with its table."""
    return [
        replace(each.spend, registration=register_question(registration, each.query, table))
        for each in paid
    ]


@dataclass(frozen=True)
class Spending:
    """What was spent of a plan, on everyone and in each part.

    Attributes:
        debits: how many there were, but for steps of streams.
    """

    accounts: Accounts = field(default_factory=Accounts)
    levels: Mapping[str, PartLevel] = field(default_factory=dict)
    debits: int = 0

    def pay(self, estimates: Iterable[CostEstimate], plan: Plan) -> Spending:
        """The same after these questions; those about parts are paid side by side."""
        accounts, levels, debits = self.accounts, dict(self.levels), self.debits
        for spend in (each.spend for each in estimates):
            part = spend.part or ""
            level = levels.get(part, PartLevel())
            accounts, levels[part] = accounts.pay(price_spend(spend, plan), plan.relation, level)
            debits += STEP_KEY not in spend.what
        return Spending(accounts, levels, debits)

    def seen_from(self, part: str | None, plan: Plan) -> Cost:
        """As it matters to what is about one part alone: what was spent there and on everyone."""
        if part is None:
            return self.accounts.total
        return self.accounts.seen_from(self.levels.get(part, PartLevel()), plan.relation)


def batch_cost(estimates: Iterable[CostEstimate], plan: Plan) -> Cost:
    """What questions cost together under a plan."""
    return Spending().pay(estimates, plan).accounts.total


def known_cost(estimates: Iterable[CostEstimate], plan: Plan) -> Cost | None:
    """What is still to be paid for questions; None for a promise that does not add to others."""
    new = [each for each in estimates if each.first is None]
    return None if any(each.spend.alone for each in new) else batch_cost(new, plan)


def state_after(
    plan: Plan,
    estimates: Iterable[CostEstimate],
    state: BudgetState | None = None,
    schedule: Mapping[str, Any] | None = None,
) -> BudgetState:
    """Where a dataset stands once these questions are paid for.

    Args:
        state: of the dataset, where a ledger knows it; else it would have this schedule.
    """
    if state is None:
        budget, today = Budget.of(plan), encoding.today()
        planned = Schedule.plan(schedule, budget, today) if schedule else None
        state = BudgetState("", "open", plan, budget, Cost(0, 0), 0, 0, "", "", schedule=planned)
    new = [each for each in estimates if each.first is None]
    cost = batch_cost(new, state.plan)
    accounts = state.accounts.enter_period(state.schedule, state.today)
    paid = replace(accounts, everyone=accounts.everyone + cost)
    return replace(state, spent=state.spent + cost, accounts=paid, debits=state.debits + len(new))


def describe_spent_period(state: BudgetState) -> str:
    """What can be done for a correction where nothing is left of today's period; else nothing."""
    if state.schedule is None or state.limits(state.today)["every"].spendable_units:
        return ""
    return state.schedule.describe_ways(state.today, state.budget)


MIN_NOTED_RATIO = 1.1
"""How many times smaller noise has to be for a caution."""


def caution_smaller_noise(
    table: Table, unspent: RemainingBudget, estimates: Sequence[CostEstimate]
) -> list[CostEstimate]:
    """Cost estimates, with a caution for each with a cost in ρ to which the same part of the pure
    ε would give less noise."""
    gains = [_laplace_gain(table, unspent, estimate) for estimate in estimates]
    return [
        add_cautions(estimate, *[CostWarning("noise", times=gain)] * (gain > MIN_NOTED_RATIO))
        for estimate, gain in zip(estimates, gains, strict=True)
    ]


def caution_undeclared(table: Table, estimates: Sequence[CostEstimate]) -> list[CostEstimate]:
    """Cost estimates, with a caution for each constant that is no declared value, of their
    conditions and of those of the features that they are about."""
    features = {each.name: each.where for each in table.features if each.table is None}
    result = []
    for each in estimates:
        where = each.query.where
        named = each.query.names(table) | condition_columns(where) if features else ()
        texts = [where, *(features[name] for name in features if name in named)]
        found = chain.from_iterable(caution_constants(table, text) for text in texts)
        result.append(add_cautions(each, *dict.fromkeys(found)))
    return result


def _laplace_gain(table: Table, unspent: RemainingBudget, estimate: CostEstimate) -> float:
    """How many times smaller the noise would be at the same part of the pure ε; 0 where no such
    answer can be had, or where it is one of several."""
    from whosin.release.queries.base import Linear

    query, share = estimate.query, estimate.share
    if not share.rho or not unspent.epsilon or estimate.joint is not None:
        return 0.0
    part = share.rho / Fraction(unspent.rho, encoding.EPSILON_UNITS)
    pure = Share(share.plan, part * Fraction(unspent.epsilon, encoding.EPSILON_UNITS))
    asked = query.restrict_table(table)
    if isinstance(query, Linear):
        grouped = bool(query.cells(asked).columns)
        other = noisy_parts(query.parts(asked), pure, query.bounds(asked), grouped)[0]
        return math.sqrt(estimate.parts[0].noise.variance / other.noise.variance)
    if not query.selects:
        return 0.0
    return float(estimate.details.scale / query.estimate_cost(asked, pure).details.scale)
