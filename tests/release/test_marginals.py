"""Many tables at once: prices, counts before noise, answers, refusals, files."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from fractions import Fraction
from itertools import chain, pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import release_oracle as oracle
import whosin as wi
from amounts import some
from refusals import refused
from whosin.errors import WhosinError
from whosin.ledger.encoding import EPSILON_UNITS
from whosin.marginals import IntervalRadii, Measurement
from whosin.release import Count, Marginals, Range, Table
from whosin.release.scan import pack_bits

DOMAINS = {
    "sex": ["f", "m"],
    "ward": ["A", "B", "C"],
    "age": Range(0, 120, edges=(0, 18, 65, 120)),
    "ill": [True, False],
}
LABELS: dict[str, list[Any]] = {
    "sex": ["f", "m", "other"],
    "ward": ["A", "B", "C", "other"],
    "age": ["0..18", "18..65", "65..120", "other"],
    "ill": [True, False, "other"],
}
PAIRS = Marginals(columns=["sex", "ward", "age", "ill"], order=2)


def people(count: int, seed: int = 0, rows: int = 1) -> pa.Table:
    """Rows with missing and undeclared values; some people have several."""
    rng = random.Random(seed)
    found = [
        (
            f"p{who}",
            rng.choice(["f", "m", "x", None]),
            rng.choice(["A", "B", "C", "D", None]),
            rng.choice([3.0, 18.0, 64.9, 120.0, -1.0, float("nan"), None]),
            rng.choice([True, False, None]),
        )
        for who in range(count)
        for _ in range(rng.randint(1, rows))
    ]
    names = ("who", *DOMAINS)
    columns = map(list, zip(*found, strict=True))
    return pa.table(dict(zip(names, columns, strict=True)))


def label(column: str, value: Any) -> object:
    """The cell that a value is in, by the declared domains."""
    if column == "age":
        ends = (0, 18, 65, 120)
        if value is None or not 0 <= value <= 120:
            return "other"
        place = 2 if value == 120 else sum(value >= end for end in ends) - 1
        return LABELS[column][place]
    return value if value in LABELS[column] and value != "other" else "other"


def truth(data: pa.Table, columns: tuple[str, ...]) -> np.ndarray:
    """The table of counts, row by row."""
    found = np.zeros([len(LABELS[column]) for column in columns], np.int64)
    for row in data.to_pylist():
        found[tuple(LABELS[c].index(label(c, row[c])) for c in columns)] += 1
    return found


def priced(data, query=PAIRS, relation="add-remove", rho=0):
    return query.estimate_cost(data, oracle.share(1, rho=rho, relation=relation))


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("rho", [0, Fraction(1, 50)])
@pytest.mark.parametrize("rows", [1, 3])
def test_prices_add_up_to_the_share_exactly(relation: str, rho, rows: int) -> None:
    data = oracle.table(people(5), DOMAINS)
    query = Marginals(columns=PAIRS.columns, order=3, max_rows_per_group=rows)
    estimate = priced(data, query, relation, rho)
    sizes, spent = tuple(map(len, LABELS.values())), Fraction(0)
    for each in estimate.measured:
        places = [list(LABELS).index(name) for name in each["columns"]]
        inner = tuple(list(LABELS).index(name) for name in each["differences"])
        measured = Measurement(tuple(places), inner)
        if rho:
            spent += measured.squared_l2_sensitivity(sizes, relation, rows) / (
                2 * Fraction(each["variance"])
            )
        else:
            spent += measured.l1_sensitivity(sizes, relation, rows) / Fraction(each["scale"])
    allowed = rho or 1
    assert allowed * (1 - Fraction(1, 10**6)) < spent <= allowed
    cost = estimate.spend.cost(relation)
    assert (cost.rho if rho else cost.epsilon) == -(-spent * EPSILON_UNITS // 1)
    assert set(estimate.spend.costs) == {"add-remove", "replace"}


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("unit", ["who", "row"])
@pytest.mark.parametrize("tallied", [sys.maxsize, 0])
def test_counts_before_noise_are_those_of_the_rows(
    monkeypatch, order: int, unit: str, tallied: int
) -> None:
    """Counted here from packed rows, in small batches, or by the engine."""
    monkeypatch.setattr(type(oracle.ENGINE), "most_tallied", tallied)
    monkeypatch.setattr("whosin.release.engines.duckdb.STREAM_ROWS", 50)
    source = people(200)
    data = oracle.table(source, DOMAINS, privacy_unit=unit)
    estimate = priced(data, Marginals(columns=PAIRS.columns, order=order))
    scan, runs = estimate.details["scan"], []
    engine: Any = data.engine
    run = engine._run

    def watched(*args):
        runs.append(args)
        return run(*args)

    monkeypatch.setattr(engine, "_run", watched)
    counts = scan.count(data, estimate.expression, None)
    assert len(runs) == 1  # one scan for all tables
    for attributes, found in zip(scan.sets, counts, strict=True):
        columns = tuple(PAIRS.columns[each] for each in attributes)
        assert (found == truth(source, columns)).all()


def test_several_blocks_count_the_same(monkeypatch) -> None:
    monkeypatch.setattr("whosin.release.scan.MAX_COVER_CELLS", 1)
    source = people(200)
    data = oracle.table(source, DOMAINS)
    estimate = priced(data, rho=1)
    scan = estimate.details["scan"]
    assert len(scan.blocks) > 3
    for attributes, found in zip(
        scan.sets, scan.count(data, estimate.expression, None), strict=True
    ):
        assert (found == truth(source, tuple(PAIRS.columns[i] for i in attributes))).all()


def test_many_columns_are_packed_into_several_numbers() -> None:
    """Of each number every bit but the sign; closed domains leave rows out."""
    names = [f"c{place}" for place in range(40)]
    rng = random.Random(7)
    sizes = [rng.choice([2, 3, 4, 5, 8, 9, 17, 64]) for _ in names]
    pairs = list(zip(names, sizes, strict=True))
    found = {name: [rng.randrange(size + 1) for _ in range(60)] for name, size in pairs}
    domains = {
        name: {"values": list(range(size)), "outside": 0} if size == 2 else list(range(size))
        for name, size in pairs
    }
    data = oracle.table({"who": list(range(60)), **found}, domains)
    estimate = priced(data, Marginals(sets=list(pairwise(names))))
    scan = estimate.details["scan"]
    assert len({number for number, _ in pack_bits(scan.sizes)}) > 1
    for attributes, counts in zip(
        scan.sets, scan.count(data, estimate.expression, None), strict=True
    ):
        expected = np.zeros([scan.sizes[each] for each in attributes], np.int64)
        for row in zip(*(found[names[each]] for each in attributes), strict=True):
            # of two values, a third counts as the first
            at = [
                v % sizes[i] if sizes[i] == 2 else v for i, v in zip(attributes, row, strict=True)
            ]
            expected[tuple(at)] += 1
        assert (counts == expected).all()


@pytest.mark.parametrize("rows", [1, 2])
def test_people_with_many_rows_count_with_a_few(rows: int) -> None:
    """And with the same ones in every table, so that tables agree before noise."""
    source = people(100, rows=6)
    data = oracle.table(source, DOMAINS)
    estimate = priced(data, Marginals(columns=PAIRS.columns, order=2, max_rows_per_group=rows))
    scan = estimate.details["scan"]
    counts = scan.count(data, estimate.expression, None)
    sizes = Counter(source.column("who").to_pylist())
    have = {who: min(rows, n) for who, n in sizes.items()}
    assert {int(each.sum()) for each in counts} == {sum(have.values())}
    single = {each: counts[at] for at, each in enumerate(scan.sets)}
    for one, other in product(single, single):
        shared = set(one) & set(other)
        margins = [
            single[each].sum(axis=tuple(n for n, i in enumerate(each) if i not in shared))
            for each in (one, other)
        ]
        assert (margins[0] == margins[1]).all()


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_an_answer_has_tables_that_agree(tmp_path, noise: str) -> None:
    source = people(300)
    data = oracle.table(source, DOMAINS)
    plan = oracle.WITH_DELTA["add-remove"]
    with wi.Ledger(tmp_path / "ledger.db", who="tests") as ledger:
        session = wi.Session(data, plan, ledger, share=1)
        answer = session.ask(PAIRS, noise=noise)
        assert session.budget_state.spendable < 1e-3
        again = wi.Session(data, plan, ledger, share=1, request=session.request)
        assert again.ask(PAIRS, noise=noise) == answer
    assert len(answer.tables) == 10
    titles = [each.title for each in answer.tables]
    assert titles[:5] == ["sex", "ward", "age", "ill", "sex, ward"]
    pair, alone = answer.table("sex", "ward"), answer.table("ward")
    sums: dict = {}
    for _, ward, value, *_ in pair.rows:
        sums[ward] = sums.get(ward, 0) + value
    assert sums == pytest.approx({row[0]: row[1] for row in alone.rows}, abs=1e-4)
    assert pair.columns == ("sex", "ward", "value", "low", "high", "all_low", "all_high", "whole")
    totals = {sum(row[-1] for row in each.rows) for each in answer.tables}
    assert len(totals) == 1 and min(row[-1] for row in answer.rows) >= 0
    assert all(isinstance(row[-1], int) for row in answer.rows)
    for row in answer.rows:
        value, low, high, least, most, _ = row[2:]
        assert least <= low < value < high <= most
    assert "biased" in answer.statement and "all_low" in answer.statement
    with pytest.raises(WhosinError, match=r"did you mean|one of"):
        answer.table("sex", "wart")


def test_weights_goals_and_magnitudes_move_the_errors() -> None:
    data = oracle.table(people(5), DOMAINS)
    sets = [["sex"], ["ward", "age"]]

    def errors(**keys) -> list[float]:
        estimate = priced(data, Marginals(sets=sets, **keys))
        return [each["standard_error"] for each in estimate.tables]

    plain, first = errors(), errors(weights=[100, 1])
    assert first[0] < plain[0] and first[1] > plain[1]
    assert errors(magnitudes=["1/10", 1]) == pytest.approx(first)
    assert max(errors(goal="worst")) < max(plain)
    columns = Marginals(columns=["sex", "ward"], order=2, weights=[1, 9])
    assert priced(data, columns).tables[2]["standard_error"] < 3 * 2**0.5


REFUSED_QUERIES: list[tuple[Marginals, str]] = [
    (Marginals(), "columns"),
    (Marginals(columns=["sex", "who"]), "column"),
    (Marginals(columns=["sex", "wart"]), "column"),
    (Marginals(columns=["sex", "dose"]), "domain of dose"),
    (Marginals(columns=["sex"], order=2), "order"),
    (Marginals(columns=["sex"], order=0), "order"),
    (Marginals(columns=["sex", "sex"]), "columns"),
    (Marginals(columns="sex"), "columns"),
    (Marginals(sets=[["sex"], ["sex"]]), "sets"),
    (Marginals(sets=[["sex", "ward"], ["ward", "sex"]]), "sets"),
    (Marginals(sets=[]), "sets"),
    (Marginals(sets=[[]]), "sets"),
    (Marginals(sets=[["sex"]], columns=["sex"]), "sets"),
    (Marginals(sets=[["sex"]], weights=[1, 2]), "weights"),
    (Marginals(sets=[["sex"]], weights=[0]), "weights"),
    (Marginals(sets=[["sex"]], magnitudes=[-1]), "magnitudes"),
    (Marginals(sets=[["sex"]], goal="best"), "goal"),
    (Marginals(columns=["long", "longer"]), "columns"),
    (Marginals(columns=["sex"], max_rows_per_group=0), "max_rows_per_group"),
    (Marginals(columns=["sex"], where="nothing > 1"), "column in where"),
]


def with_long_columns() -> Table:
    long = list(range(5000))
    source = people(3)
    for name in ("dose", "long", "longer"):
        source = source.append_column(name, pa.array([1, 2, 3]))
    return oracle.table(source, DOMAINS | {"dose": Range(0, 1), "long": long, "longer": long})


def test_refusals(tmp_path) -> None:
    with wi.Ledger(tmp_path / "ledger.db", who="tests") as ledger:
        session = wi.Session(with_long_columns(), oracle.PLANS["add-remove"], ledger, share=1)
        for query, field in REFUSED_QUERIES:
            with refused(field):
                session.ask(query)
        assert not session.budget_state.debits


REFUSED_BATCHES: list[tuple[Marginals, str]] = [
    (Marginals(sets=[["sex"], ["who"]]), "queries[0].sets"),
    (Marginals(columns=["long", "longer"]), "queries[0].columns"),
    (Marginals(columns=["sex"], weight="1e-15"), "queries[0].weight"),
]


def test_refusals_are_one_sentence_with_a_path(tmp_path) -> None:
    """Of a session that is told of its queries, as a scenario's is, or not; nothing is spent."""
    data, plan = with_long_columns(), oracle.PLANS["add-remove"]
    for query, path in REFUSED_BATCHES:
        batch = [query, Count()]
        for told in ([], batch):
            with pytest.raises(WhosinError) as caught:
                wi.Session(data, plan, tmp_path / "x.db", queries=told).release(batch, share=1)
            assert caught.value.path == path and "\n" not in str(caught.value)


@pytest.mark.parametrize("relation", some(["add-remove", "replace"], 1))
def test_attacking_all_tables_together_shows_no_more_than_the_plan(monkeypatch, relation) -> None:
    """One person more, or another in their place; and the same attack refutes the plan where the
    noise is made for four times its ε. (Intervals come from fresh noise, whatever the rows are.)"""
    monkeypatch.setattr(
        "whosin.release.marginal_workloads.interval_radii",
        lambda work, *_: [IntervalRadii(1, 2)] * len(work.sets),
    )
    few = {"who": ["a", "b", "c", "d"], "sex": ["f", "f", "m", "m"], "ward": ["A", "B", "B", "A"]}
    other = {name: column[:3] for name, column in few.items()}
    if relation == "replace":
        other = few | {"sex": ["f", "f", "m", "f"], "ward": ["A", "B", "B", "B"]}
    query = Marginals(columns=["sex", "ward"], order=2)

    def attacked(epsilon: int, confidence: float):
        worlds = []
        for rows in (few, other):
            data = oracle.table(rows, {name: DOMAINS[name] for name in ("sex", "ward")})
            estimate = query.estimate_cost(data, oracle.share(epsilon, relation=relation))
            assert estimate.details is not None
            counts = estimate.details["scan"].count(data, estimate.expression, None)
            estimate.details["scan"].__dict__["count"] = lambda *_, counts=counts: counts
            worlds.append((data, estimate))

        def draw(world: int) -> tuple[float, ...]:
            answer = query.answer(*worlds[world])
            flat = [np.ravel(each["values"]).tolist() for each in answer["details"]["measured"]]
            return (*(row[2] for row in answer["rows"]), *chain.from_iterable(flat))

        return wi.audit.two_worlds(draw, 0, 1, 200, confidence)

    assert attacked(1, 1 - 1e-6).epsilon <= 1
    assert attacked(6, 0.95).refutes(1)


SCENARIO = """
[target]
epsilon = 1

[table]
source = "people.parquet"
privacy_unit = "who"

[domains]
sex = ["f", "m"]
ward = ["A", "B", "C"]

[[queries]]
kind = "marginals"
name = "tables"
columns = ["sex", "ward"]
order = 2
"""


REFUSED = {
    '[budget]\nnoise = "gaussian"': "line 14, [budget]: gaussian noise needs a plan with a delta",
    '[budget]\nsplit = "even"': "line 14, [budget]: split must be one of",
    'columns = ["sex", "age"]': "line 16, question 1 (tables), columns: column 'age' has no "
    "declared domain",
}


@pytest.fixture
def scenario(tmp_path, monkeypatch):
    import pyarrow.parquet as parquet

    monkeypatch.chdir(tmp_path)
    parquet.write_table(people(50), "people.parquet")
    path = tmp_path / "s.toml"
    path.write_text(SCENARIO)
    return path


def test_bad_input_is_refused_by_its_path_and_nothing_is_written(scenario, tmp_path, run) -> None:
    """A dry run and a release say the same; no budget is opened for what cannot be asked."""
    for changed, words in REFUSED.items():
        if changed.startswith("[budget]"):
            text = SCENARIO.replace("[[queries]]", f"{changed}\n\n[[queries]]")
        else:
            text = SCENARIO.replace('columns = ["sex", "ward"]', changed)
        assert text != SCENARIO
        scenario.write_text(text)
        for command in ("release s.toml --dry-run", "release s.toml --save out.csv"):
            code, out, err = run(command)
            assert code == 2 and not out and err.count("\n") == 1
            assert err.startswith(f"whosin: {words}")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["people.parquet", "s.toml"]


def test_a_dry_run_names_the_failure_probability(scenario, run) -> None:
    assert "fail" not in run("release s.toml --dry-run")[1]
    assert json.loads(run("release s.toml --dry-run --json")[1])["delta"] == 0
    promise = '[adversary]\nprior = "0.05..0.5"\n[target]\nposterior = 0.75\ndelta = 1e-6'
    scenario.write_text(SCENARIO.replace("[target]\nepsilon = 1", promise))
    shown = " ".join(run("release s.toml --dry-run")[1].split())
    assert "It may fail with probability 1e-06, given that the person is in." in shown
    delta = json.loads(run("release s.toml --dry-run --json")[1])["delta"]
    assert 0 < delta < 1e-6 and f"δ = {delta:.3g} (add-remove; " in shown


def test_from_a_scenario_file(scenario, tmp_path, run) -> None:
    code, out, _ = run("release s.toml --dry-run --json")
    found = json.loads(out)
    assert code == 0 and not (tmp_path / "ledger.db").exists()
    assert [each["columns"] for each in found["tables"]] == [["sex"], ["ward"], ["sex", "ward"]]
    assert all(each["standard_error"] > 0 for each in found["tables"])
    assert found["estimates"][0]["tables"] == found["tables"] and found["estimates"][0]["measured"]
    code, out, _ = run("release s.toml --dry-run")
    assert code == 0 and "sex, ward" in out and "standard error" in out
    code, out, _ = run("release s.toml --save out.csv --report out.html")
    assert code == 0 and "sex, ward" in out
    names = sorted(each.name for each in tmp_path.glob("out-*.csv"))
    assert names == ["out-1-sex.csv", "out-2-ward.csv", "out-3-sex-ward.csv"]
    assert (tmp_path / "out-3-sex-ward.csv").read_text().startswith('"sex","ward","value"')
