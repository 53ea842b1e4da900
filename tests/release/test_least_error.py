"""The split "optimal": least error at the same price, counts measured at once with one debit."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import release_oracle as oracle
import whosin as wi
from amounts import some
from refusals import refused
from whosin.errors import BudgetRefused, ScanFailed
from whosin.ledger import Ledger, encoding
from whosin.ledger.budget import Cost
from whosin.noise import GaussianNoise, LaplaceNoise
from whosin.release import (
    CostEstimate,
    Count,
    Histogram,
    Marginals,
    Mean,
    Median,
    Query,
    Range,
    Rows,
    Session,
    Sum,
    Top,
)
from whosin.release.budget_allocation import estimate_batch_cost, standard_error
from whosin.release.marginal_workloads import NoisyTable
from whosin.release.queries.together import JointMeasurement

PLAN = oracle.PLANS["add-remove"]
DOMAINS: dict[str, Any] = {
    "sex": {"values": ["f", "m"], "constant": True},
    "ward": ["A", "B", "C"],
    "ill": {"values": [True, False], "outside": "drop"},
    "age": Range(0, 120, edges=(0, 18, 65, 120)),
}
PEOPLE: dict[str, list[Any]] = {
    "who": ["a", "b", "c", "d", "e", "f", "g", None],
    "sex": ["f", "f", "m", "m", "x", None, "m", "m"],
    "ward": ["A", "B", "B", "A", "C", "D", None, "A"],
    "ill": [True, False, None, True, True, False, True, True],
    "age": [3.0, 17.9, 18.0, 64.0, 120.0, 121.0, None, 5.0],
}
BATCH: list[Query] = [
    Count(name="all"),
    Mean(column="age"),
    Count(name="two", by=["ward", "sex"]),
    Sum(name="years", column="age"),
    Count(name="other way", by=["sex", "ward"]),
]


@pytest.fixture
def data(monkeypatch) -> wi.Table:
    """Engines plan every expression anew for a price, which takes long and is tested elsewhere."""
    monkeypatch.setattr(wi.Table, "check", lambda self, expression: expression)
    return oracle.table(PEOPLE, DOMAINS)


def score(estimates: list[CostEstimate], queries: list[Query], relative: bool = False) -> float:
    """Σ weight · variance, sums in units of the most that a row can add: by the definitions."""
    found = []
    for estimate, query in zip(estimates, queries, strict=True):
        error = estimate.standard_error if estimate.joint else standard_error(estimate)
        if error is not None:
            scale = 120.0 if isinstance(query, Sum) else 1.0
            if relative:
                scale = float(query.magnitude)  # type: ignore[arg-type]
            found.append(float(query.weight) * (error / scale) ** 2)  # type: ignore[arg-type]
    return math.fsum(found)


def paid(estimates: list[CostEstimate], relation: str = "add-remove") -> Cost:
    """What is debited, each debit once."""
    debited = {id(estimate.paid): estimate.paid.spend.cost(relation) for estimate in estimates}
    return sum(debited.values(), Cost(0, 0))


def asked(rng: random.Random, relative: bool) -> list[Query]:
    """A batch at random; some can be measured at once, some cannot, some errors are not known."""
    makers: list[Any] = [
        lambda **k: Count(**k),
        lambda **k: Count(by=rng.sample(["sex", "ward", "age"], 2), **k),
        lambda **k: Count(by="ward", max_groups=2, **k),
        lambda **k: Count(by="ill", where=rng.choice([None, "age > 20"]), **k),
        lambda **k: Histogram(column="age", **k),
        lambda **k: Rows(max_rows_per_group=rng.choice([1, 3]), **k),
        lambda **k: Rows(by="sex", max_rows_per_group=3, **k),
        lambda **k: Sum(column="age", **k),
        lambda **k: Marginals(columns=["sex", "ward"], **k),
        lambda **k: Mean(column="age", **k),
        lambda **k: Median(column="age", **k),
        lambda **k: Top(by="ward", k=1, **k),
    ]
    result = []
    for make in rng.choices(makers, k=rng.randint(1, 7)):
        keys: dict[str, Any] = {"weight": rng.choice([1, 2, 7])}
        if relative:
            keys["magnitude"] = rng.choice([3, 50, 1000])
        result.append(make(**keys))
    return result


def both(one: object, other: object) -> list[Any]:
    """Both relations, each with one of two values in `make test`, and with the other in soak."""
    pairs = [("add-remove", other), ("add-remove", one), ("replace", one), ("replace", other)]
    return some(pairs, 2, several=True)


@pytest.mark.parametrize(("relation", "noise"), both("laplace", "gaussian"))
def test_never_a_larger_error_at_the_same_price(data, noise: str, relation: str) -> None:
    rng, plan = random.Random(18), oracle.WITH_DELTA[relation]
    better = 0
    for number in range(4):
        relative = number % 3 == 0
        batch = asked(rng, relative)
        before = estimate_batch_cost(data, plan, batch, share="1/3", noise=noise)
        after = estimate_batch_cost(data, plan, batch, share="1/3", noise=noise, split="optimal")
        assert [estimate.query for estimate in after] == batch
        assert score(after, batch, relative) <= score(before, batch, relative) * (1 + 1e-12)
        better += score(after, batch, relative) < 0.97 * score(before, batch, relative)
        assert [estimate.by_weights for estimate in after] == [
            standard_error(each) for each in before
        ]
        name = "rho" if noise == "gaussian" else "epsilon"
        was, now = getattr(paid(before, relation), name), getattr(paid(after, relation), name)
        assert was * (1 - 1e-6) <= now <= was + 20 * len(batch)
        pot = plan_part(plan, noise)
        assert now <= pot
        parts = sum((estimate.spend.cost(relation) for estimate in after), Cost(0, 0))
        assert parts == paid(after, relation), "prices of single answers add up to what is paid"
    assert better >= 3


def plan_part(plan: wi.Plan, noise: str) -> int:
    from whosin.ledger.budget import Budget

    part = Budget.of(plan).part("1/3")
    return part.rho if noise == "gaussian" else part.epsilon


def test_no_other_division_is_better(data) -> None:
    """Two sums and a count with weights: a search over divisions finds nothing less."""
    batch: list[Query] = [
        Sum(column="age", weight=5),
        Count(by="ward", max_groups=2),
        Rows(max_rows_per_group=9),
    ]
    best = score(estimate_batch_cost(data, PLAN, batch, share=1, split="optimal"), batch)
    grid = np.linspace(0.02, 0.96, 48)
    found = []
    for first, second in product(grid, grid):
        if first + second < 0.98:
            epsilons = first, second, 1 - first - second
            # a count in two cells moves by 2, nine rows by 9: noise of that scale over ε
            scales = (
                (5, 120 / 120 / epsilons[0]),
                (1, 2 / epsilons[1]),
                (1, 9 / epsilons[2]),
            )
            found.append(sum(w / (2 * math.sinh(1 / (2 * s)) ** 2) for w, s in scales[1:])
                         + 5 * 2 * scales[0][1] ** 2)  # fmt: skip
    assert best <= min(found) * 1.002


def test_the_dry_run_says_by_how_much(data) -> None:
    estimates = estimate_batch_cost(data, PLAN, BATCH, share=1, split="optimal")
    assert [estimate.joint is not None for estimate in estimates] == [
        True,
        False,
        True,
        False,
        True,
    ]
    assert len({id(estimate.joint) for estimate in estimates if estimate.joint}) == 1
    assert [estimate.by_weights is None for estimate in estimates] == [False, True, *[False] * 3]
    for estimate in estimates:
        if estimate.by_weights is not None:
            assert estimate.standard_error is not None
            assert estimate.standard_error < 0.9 * estimate.by_weights
    mean = estimates[1].spend.cost("add-remove").epsilon
    assert mean == pytest.approx(encoding.EPSILON_UNITS / 5, rel=1e-9), "keeps its part"


def test_each_answer_is_that_of_its_own_query_before_noise(data, monkeypatch, tmp_path) -> None:
    for noise in (LaplaceNoise, GaussianNoise):
        monkeypatch.setattr(noise, "draw", lambda self, shape: np.zeros(shape, np.int64))
    with Ledger(tmp_path / "l.db") as ledger:
        found = Session(data, PLAN, ledger, share=1).release(BATCH, split="optimal")
    for query, answer in zip(BATCH, found, strict=True):
        if isinstance(query, Count):
            keys = len(query.cells(data).columns)
            assert answer.columns[keys:] == ("value", "low", "high")
            assert [row[keys] for row in answer.rows] == oracle.exact(query, data)[0]
            labels = [tuple(row[:keys]) for row in answer.rows]
            assert labels == query.cells(data).labels()
            assert answer.question["counted"]["max_rows_per_group"] == 1


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_answers_agree_and_are_paid_for_once(data, tmp_path, noise: str) -> None:
    plan = oracle.WITH_DELTA["add-remove"]
    with Ledger(tmp_path / "l.db") as ledger:
        session = Session(data, plan, ledger, request="monday", share=1)
        estimates = session.dry_run(BATCH, split="optimal", noise=noise)
        found = session.release(BATCH, split="optimal", noise=noise)
        assert [answer.cost for answer in found] == [o.spend.cost("add-remove") for o in estimates]
        assert ledger.budget_state("people").debits == 3, "the mean, the sum, and all counts"
        assert found["two"].question["by"] == ["ward", "sex"]
        total = found["all"].value
        for name in ("two", "other way"):
            assert sum(found[name].value) == pytest.approx(total, abs=1e-4)
        turned = {row[1::-1]: row[2:] for row in found["other way"].rows}
        assert turned == {row[:2]: row[2:] for row in found["two"].rows}
        for answer in found:
            assert all(row[-2] <= row[-3] <= row[-1] for row in answer.rows)
        again = Session(data, plan, ledger, request="monday", share=1)
        repeated = again.release(BATCH, split="optimal", noise=noise)
        assert repeated.answers == found.answers and ledger.budget_state("people").debits == 3
        other = Session(data, plan, ledger, request="monday", share=1)
        with refused("request", kind=BudgetRefused):
            other.release(BATCH, noise=noise)


def test_a_failed_scan_of_several_continues_without_paying_again(data, tmp_path, monkeypatch):
    whole = JointMeasurement.answer
    failures = [OSError("private"), None]

    def failing(self, *rest):
        error = failures.pop(0)
        if error:
            raise error
        return whole(self, *rest)

    monkeypatch.setattr(JointMeasurement, "answer", failing)
    with Ledger(tmp_path / "l.db") as ledger:
        session = Session(data, PLAN, ledger, request="monday", share=1)
        with pytest.raises(ScanFailed) as caught:
            session.release(BATCH, split="optimal")
        assert "private" not in str(caught.value)
        before = ledger.budget_state("people")
        assert before.debits == 3, "debited before anything was drawn"
        ledger.resume("people")
        found = session.release(BATCH, split="optimal")
        assert len(found) == len(BATCH) and not failures
        after = ledger.budget_state("people")
        assert (after.debits, after.spendable) == (3, before.spendable)
        again = Session(data, PLAN, ledger, request="monday", share=1)
        assert again.release(BATCH, split="optimal").answers == found.answers


def test_what_is_not_alike_is_not_measured_at_once(data) -> None:
    def groups(*batch: Query, table: wi.Table = data) -> list[list[int]]:
        estimates = estimate_batch_cost(table, PLAN, batch, share=1, split="optimal")
        joint = [id(estimate.paid) for estimate in estimates]
        return [[i for i, each in enumerate(joint) if each == key] for key in dict.fromkeys(joint)]

    assert groups(Count(), Count(by="ward")) == [[0, 1]]
    assert groups(Count(), Count(by="ward", where="age > 3")) == [[0], [1]]
    assert groups(Count(where="age > 3"), Count(by="ward", where="age > 3")) == [[0, 1]]
    assert groups(Count(), Count(by="ward", max_groups=2)) == [[0], [1]], "someone in two cells"
    assert groups(Count(by="sex", max_groups=2), Count()) == [[0, 1]], "by a constant in one"
    assert groups(Count(), Count(by="ill"), Count(by=["ill", "sex"])) == [[0], [1, 2]], "who drops"
    assert groups(
        Rows(max_rows_per_group=3),
        Rows(max_rows_per_group=3, by="sex"),
        Count(),
        Rows(max_rows_per_group=2),
    ) == [
        [0, 1],
        [2],
        [3],
    ]
    assert groups(Rows(), Count(by="ward"), Rows(by="ward")) == [[0, 1], [2]], "rows of one ward"
    by_row = oracle.table(PEOPLE, DOMAINS, privacy_unit="row")
    assert groups(Rows(), Count(by="ward"), Rows(by="ward"), table=by_row) == [[0, 1, 2]]
    assert groups(Count()) == [[0]] and groups(Mean(column="age"), Count()) == [[0], [1]]


def test_one_query_is_as_it_is_by_weights(data) -> None:
    before = estimate_batch_cost(data, PLAN, [Count(by="ward")], share="1/2")
    after = estimate_batch_cost(data, PLAN, [Count(by="ward")], share="1/2", split="optimal")
    assert after[0].spend == before[0].spend and after[0].error == before[0].error


def test_magnitudes_are_declared_for_all_or_for_none(data) -> None:
    batch = [Count(magnitude=5), Sum(column="age")]
    with refused("magnitude"):
        estimate_batch_cost(data, PLAN, batch, share=1, split="optimal")
    estimate_batch_cost(
        data, PLAN, [Count(magnitude=5), Mean(column="age")], share=1, split="optimal"
    )


@pytest.mark.parametrize("magnitude", ["1e20", "1e60", "1e-60"])
def test_what_hardly_counts_still_gets_a_part(data, magnitude: str) -> None:
    batch = [Count(magnitude=1), Count(where="sex = 'f'", magnitude=magnitude)]
    errors = [
        each.standard_error
        for each in estimate_batch_cost(data, PLAN, batch, share=1, split="optimal")
    ]
    small, large = sorted(each for each in errors if each is not None)
    assert small < 2 < 1e4 < large < 1e8


@pytest.mark.parametrize(("relation", "rho"), both(0, Fraction(1, 50)))
def test_neighbours_move_everything_that_is_measured_by_no_more_than_was_paid(relation, rho):
    """Every pair of small tables, one person apart: the whole answer comes from the measured
    numbers and their noise, whose likelihood ratio is Σ |shift| / scale at the worst."""
    cells = list(product(["f", "m", "x"], ["A", "B", "other"]))
    domains = {"sex": ["f", "m"], "ward": ["A", "B"]}
    queries = [Count(), Count(by="sex"), Count(by=["ward", "sex"]), Histogram(column="ward")]
    joint = JointMeasurement.of(queries, (1.0, 1.0, 1.0, 5.0))

    def measured(rows: list[tuple[str, str]]) -> list[np.ndarray]:
        columns = {"who": [str(n) for n in range(len(rows))]}
        columns |= {name: [row[n] for row in rows] for n, name in enumerate(domains)}
        columns = columns if rows else {name: ["", ""][:0] for name in ("who", *domains)}
        import pyarrow as pa

        source = pa.table(
            {name: pa.array(list(column), "string") for name, column in columns.items()}
        )
        table = oracle.table(source, domains)
        estimate = joint.estimate_cost(table, oracle.share(1, rho=rho, relation=relation))
        counts = estimate.details["scan"].count(table, estimate.expression, None)
        noisy.extend(estimate.details["noisy"] if not noisy else [])
        costs.append(estimate.spend.cost(relation))
        pairs = zip(estimate.details["noisy"], counts, strict=True)
        return [each.measurement.of_counts(count) for each, count in pairs]

    noisy: list[NoisyTable] = []
    costs: list[Cost] = []
    fixed = [("f", "B")]
    worlds = {cell: measured([*fixed, cell]) for cell in cells} | {None: measured(fixed)}
    worst = Fraction(0)
    for one, other in product(worlds, worlds):
        if relation == "add-remove" and one is not None and other is not None:
            continue
        shift = Fraction(0)
        for each, first, second in zip(noisy, worlds[one], worlds[other], strict=True):
            moved = np.abs(first - second)
            if rho:
                shift += Fraction(int((moved**2).sum())) / (2 * each.noise.width)
            else:
                shift += Fraction(int(moved.sum())) / each.noise.width
        worst = max(worst, shift)
    cost = costs[0].rho if rho else costs[0].epsilon
    assert len(set(costs)) == 1, "the price does not depend on the rows"
    assert worst * encoding.EPSILON_UNITS <= cost
    assert worst > Fraction(9, 10) * (rho or 1) or relation == "replace"


SCENARIO = """
[target]
epsilon = 1

[budget]
split = "optimal"

[table]
source = "people.csv"
privacy_unit = "who"

[domains]
sex = ["f", "m"]
ward = ["A", "B", "C"]

[[queries]]
kind = "count"
name = "all"

[[queries]]
kind = "count"
name = "wards"
by = ["ward", "sex"]

[[queries]]
kind = "histogram"
name = "sexes"
column = "sex"
"""


def test_from_a_scenario_file(tmp_path, run, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = zip(PEOPLE["who"], PEOPLE["sex"], PEOPLE["ward"], strict=True)
    text = "\n".join(",".join(each or "" for each in row) for row in rows)
    (tmp_path / "people.csv").write_text(f"who,sex,ward\n{text}\n")
    (tmp_path / "s.toml").write_text(SCENARIO)
    code, out, _ = run("release s.toml --dry-run --json")
    estimates = json.loads(out)["estimates"]
    assert code == 0 and [each["title"] for each in estimates] == ["all", "wards", "sexes"]
    squares = [
        sum(each[key] ** 2 for each in estimates) for key in ("standard_error", "by_weights")
    ]
    assert squares[0] < 0.8 * squares[1]
    code, out, _ = run("release s.toml --dry-run")
    assert code == 0 and "→" in out and "Measured at once for all, wards, sexes" in out
    code, out, _ = run("release s.toml --request a --json")
    first = json.loads(out)["answers"]
    assert code == 0 and [each["title"] for each in first] == ["all", "wards", "sexes"]
    code, out, _ = run("release s.toml --request a --json")
    assert json.loads(out)["answers"] == first
    code, out, _ = run("ledger verify ledger.db")
    assert code == 0


@pytest.mark.parametrize(
    ("split", "noise"),
    some([("weights", "gaussian"), ("optimal", "laplace")], 1, several=True),
)
def test_a_request_is_repeated_at_its_own_price(tmp_path, split, noise) -> None:
    """The same answers for nothing; another share, split or noise would be another debit."""
    plan = wi.calibrate(wi.Epsilon(1), wi.families.Independent(), delta=1e-6)
    told = oracle.table(
        {"who": list(range(60)), "age": [float(each % 50) for each in range(60)]},
        {"age": Range(0, 50, step=1, edges=(0, 20, 50))},
    )
    batch = [Count(), Histogram(column="age"), Mean(column="age"), Median(column="age")]
    url = tmp_path / "ledger.db"

    def again(**options: Any) -> Any:
        chosen = {"share": "1/2", "split": split, "noise": noise} | options
        return wi.Session(told, plan, url, request="r", dataset="d").release(batch, **chosen)

    first = again()
    repeated = again()
    assert [each.rows for each in first] == [each.rows for each in repeated]
    assert [each.cost for each in first] == [each.cost for each in repeated]
    assert first.budget_state.spent == repeated.budget_state.spent
    other = {
        "share": "1/4",
        "split": "optimal" if split == "weights" else "weights",
        "noise": "gaussian" if noise == "laplace" else "laplace",
    }
    for key, value in other.items():
        with pytest.raises(BudgetRefused):
            again(**{key: value})
