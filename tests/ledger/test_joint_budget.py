"""Joint budgets: the debits of a dataset add up to the level of all releases together."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

import record_oracle as records
import whosin as wi
from refusals import refused
from whosin.errors import BudgetRefused, InvalidInput
from whosin.ledger import Cost, JointBudget, Spend, encoding, verify

HALF = Fraction(1, 2)
STEP = [["0.8", "0.2"], ["0.3", "0.7"]]
MODEL = {"chain": {"initial": ["1/2", "1/2"], "transition": STEP}, "rows": 4}
ONE = {"query": "sum", "scale": 4}
FIRST = {"query": "sum", "scale": 5, "rows": [0, 1]}
GROUP = {"query": "count", "scale": 6, "rows": {"of": [1, 3]}}


@pytest.fixture
def ledger(tmp_path):
    with wi.Ledger(tmp_path / "ledger.db", who="tester") as opened:
        opened.register("days", wi.calibrate(wi.Epsilon("1.2"), wi.families.SwapOfTwo()))
        yield opened


def enumerated(releases: list[tuple[range | list, int]]) -> float:
    """The level of releases together: (rows, scale) each, by enumeration of the joint channel."""
    chain = [[Fraction(p) for p in row] for row in STEP]
    prior = records.markov([HALF, HALF], [chain] * 3)
    channel = {}
    grids = [range(len(rows) + 1) for rows, _ in releases]
    outputs: list = [()]
    for grid in grids:
        outputs = [(*output, y) for output in outputs for y in grid]
    for world in prior:
        sums = [sum(world[r] for r in rows) for rows, _ in releases]
        channel[world] = [
            Fraction(
                math.exp(
                    -sum(
                        abs(y - s) / scale
                        for y, s, (_, scale) in zip(output, sums, releases, strict=True)
                    )
                )
            )
            for output in outputs
        ]
    return records.log(records.bayesian_ratio(prior, channel, 4))


def test_debits_add_up_to_the_joint_level(ledger):
    """Equal releases, windows and groups: what was spent is the enumerated level of all of them,
    and more than the sum of levels where they grow faster."""
    budget = JointBudget(ledger, "days", MODEL)
    everyone, asked = range(4), []
    for number, (release, rows) in enumerate(
        [(ONE, everyone), (FIRST, [0, 1]), (ONE, everyone), (GROUP, [1, 3])]
    ):
        asked.append((rows, release["scale"]))
        truth = enumerated(asked)
        if truth > 1.2:
            with refused("budget", kind=BudgetRefused):
                budget.debit(release, str(number))
            asked.pop()
            continue
        budget.debit(release, str(number))
        spent = ledger.budget_state("days").spent.epsilon / encoding.EPSILON_UNITS
        assert spent == pytest.approx(truth, abs=1e-9)
    assert 2 <= len(asked) < 4
    assert len(budget.releases()) == len(asked)
    assert verify(ledger, "days").debits == len(asked)


def test_a_retry_is_paid_once_and_another_question_refused(ledger):
    budget = JointBudget(ledger, "days", MODEL)
    budget.debit(FIRST, "a")
    budget.debit(GROUP, "b")
    spent = ledger.budget_state("days").spent
    budget.debit(FIRST, "a")
    assert ledger.budget_state("days").spent == spent
    with refused("request", kind=BudgetRefused):
        budget.debit(GROUP, "a")


def test_a_release_measured_without_the_last_one_is_refused(ledger):
    """Two processes that measured at the same time: the second one has to measure again."""
    budget = JointBudget(ledger, "days", MODEL)
    state, paid = ledger.budget_state("days"), budget._paid()
    budget.debit(FIRST, "a")
    late = Spend(
        {"model": dict(budget.model), "release": GROUP},
        {"replace": Cost(1000, encoding.INFINITE_UNITS)},
        after=len(paid),
    )
    assert state.debits == 0
    with refused("request", kind=BudgetRefused):
        ledger.debit("days", "b", late)


def test_joint_levels_do_not_add_with_others(ledger):
    """Neither an ordinary answer beside joint releases, nor another model, nor the reverse."""
    budget = JointBudget(ledger, "days", MODEL)
    ordinary = Spend({"query": "count"}, {"replace": Cost.pure("0.01")})
    budget.debit(FIRST, "a")
    with refused("dataset", kind=BudgetRefused):
        ledger.debit("days", "b", ordinary)
    with refused("model", kind=BudgetRefused):
        JointBudget(ledger, "days", {**MODEL, "rows": 5}).debit(FIRST, "b")
    ledger.register("other", wi.calibrate(wi.Epsilon(1), wi.families.SwapOfTwo()))
    ledger.debit("other", "a", ordinary)
    with refused("model", kind=BudgetRefused):
        JointBudget(ledger, "other", MODEL).debit(FIRST, "b")
    ledger.register("people", wi.calibrate(wi.Epsilon(1)))
    with refused("dataset", kind=BudgetRefused):
        JointBudget(ledger, "people", MODEL).debit(FIRST, "a")


def test_gaussian_releases_share_a_budget(ledger):
    """Two equal Gaussian releases cost what one with σ/√2 costs; a delta above the plan's is not
    what was promised."""
    plan = wi.calibrate(wi.Epsilon(3), wi.families.SwapOfTwo(), delta=1e-6)
    ledger.register("series", plan)
    model = {"gaussian": {"autoregressive": ["0.6"], "rows": 12}, "delta": 1e-6}
    budget = JointBudget(ledger, "series", model)
    release = {"weights": [1] * 12, "sigma": 8}
    budget.debit(release, "a")
    budget.debit(release, "b")
    spent = ledger.budget_state("series").spent.epsilon / encoding.EPSILON_UNITS
    narrow = {"weights": [1] * 12, "sigma": 8 / math.sqrt(2)}
    assert spent == pytest.approx(budget.level((narrow,)), rel=1e-6)
    with refused("budget", kind=BudgetRefused):
        budget.debit({"weights": [1] * 12, "sigma": 1}, "c")
    with refused("delta", kind=BudgetRefused):
        JointBudget(ledger, "series", {**model, "delta": 1e-3}).debit(release, "d")


@pytest.mark.parametrize(
    ("release", "field"),
    [
        ({"query": "median", "scale": 1}, "query"),
        ({"query": "sum"}, "scale"),
        ({"query": "sum", "scale": 1, "rows": [2, 9]}, "rows"),
        ({"query": "sum", "scale": 1, "rows": [2, 1]}, "rows"),
    ],
)
def test_bad_releases_cost_nothing(ledger, release, field):
    with pytest.raises(InvalidInput) as caught:
        JointBudget(ledger, "days", MODEL).debit(release, "a")
    assert caught.value.field == field
    assert ledger.budget_state("days").debits == 0


def test_a_model_is_needed(ledger):
    with refused("model"):
        JointBudget(ledger, "days", {"rows": 3})
