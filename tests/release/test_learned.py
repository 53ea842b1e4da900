"""Learned synthetic tables: prices, scores, choices, what leaves the rows, files, refusals.

A model takes seconds to fit. It is made of noisy numbers alone (tested here), so most tests put a
quick stand-in for it: columns drawn independently of each other.
"""

from __future__ import annotations

import json
from fractions import Fraction
from importlib.util import find_spec
from itertools import combinations, product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import release_oracle as oracle
import whosin as wi
from amounts import some
from refusals import refused
from whosin.errors import MissingExtra
from whosin.ledger.encoding import EPSILON_UNITS
from whosin.release import Range, Synthetic, synthetic_models
from whosin.release.synthetic_models import (
    STEPS_PER_COUNT,
    distance_sensitivity,
    independent_table,
    table_distance,
)
from whosin.release.synthetic_selection import spanning_tree

DOMAINS = {
    "sex": ["f", "m"],
    "ward": ["A", "B", "C"],
    "ill": [True, False],
    "age": Range(0, 90, edges=(0, 30, 60, 90)),
}
LABELS = {
    "sex": ["f", "m", "other"],
    "ward": ["A", "B", "C", "other"],
    "ill": ["True", "False", "other"],
    "age": ["0..30", "30..60", "60..90", "other"],
}
COLUMNS = tuple(DOMAINS)


def people(count: int, seed: int = 0) -> pa.Table:
    """Wards depend on the sex, and illness on the age."""
    rng = np.random.default_rng(seed)
    sex, age = rng.integers(0, 2, count), rng.integers(0, 90, count)
    ward = (sex + (rng.random(count) < 0.1)) % 3
    ill = (age > 60) ^ (rng.random(count) < 0.05)
    return pa.table(
        {
            "who": np.arange(count),
            "sex": [LABELS["sex"][each] for each in sex],
            "ward": [LABELS["ward"][each] for each in ward],
            "ill": ill,
            "age": age.astype(float),
        }
    )


def asking(path="x.parquet", **keys) -> Synthetic:
    return Synthetic(**{"columns": COLUMNS, "path": str(path), "method": "marginals"} | keys)


@pytest.fixture
def quick(monkeypatch):
    """Rows drawn from the noisy margins of each column, as if they had nothing in common."""
    given = []

    def run(task, sizes, noisy, total, length, start, seed, *, limits):
        assert task is synthetic_models.fit_and_draw
        given.append((sizes, noisy, total, length, seed))
        rng = np.random.default_rng(list(seed))
        found = []
        for column, size in enumerate(sizes):
            shares = np.full(size, 1 / size)
            for attributes, differences, values, _ in noisy:
                if attributes == (column,) and not differences:
                    counts = np.maximum(np.frombuffer(values), 0) + 1e-9
                    shares = counts / counts.sum()
            found.append(rng.choice(size, length, p=shares).astype(np.int32).tobytes())
        return found

    monkeypatch.setattr("whosin.isolation.run_isolated", run)
    return given


# ---- prices


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("rho", [0, Fraction(1, 50)])
@pytest.mark.parametrize("rows", some([1, 3], 1))
@pytest.mark.parametrize("choose", ["tree", "adaptive", False])
def test_all_parts_together_cost_the_share(relation, rho, rows, choose) -> None:
    """By the definitions: r rows move a table of counts by r in L1 and r² in squared L2, twice that
    for another person; a choice costs 2Δ/scale, or ρ = (Δ/scale)²/2; a sum of S distances moves by
    S·Δ, and a weighted score by 64·Δ."""
    keys = {} if choose else {"sets": [["sex", "ward"], ["ill", "age"]]}
    query = asking(choose=choose, max_rows_per_group=rows, **keys)
    data = oracle.table(people(3), DOMAINS)
    estimate = query.estimate_cost(data, oracle.share(1, rho=rho, relation=relation))
    learned = estimate.details
    both = 2 if relation == "replace" else 1
    far = Fraction(STEPS_PER_COUNT * rows * both)

    def table(width):
        return both * rows**2 / (2 * width) if rho else both * rows / width

    def choice(far, scale):
        return (far / scale) ** 2 / 2 if rho else 2 * far / scale

    sets = 10 if choose else 2
    if choose == "tree":
        pair, scale = learned.way.pair.noise.width, learned.way.choices.scale
        spent = 3 * table(pair) + 3 * choice(far, scale)
    elif choose:
        units, scale = learned.way.units, learned.way.scale(1)
        spent = units * table(learned.way.unit.width) + units * choice(64 * far, scale)
    if choose:
        spent += sum(table(each.noise.width) for each in learned.tables)
    else:
        sizes = tuple(map(len, LABELS.values()))
        spent = sum(each.cost(sizes, relation, rows) for each in learned.tables)
    width = learned.quality.noise.width
    spent += (sets * far) ** 2 / (2 * width) if rho else sets * far / width
    allowed = rho or 1
    assert allowed * (1 - Fraction(1, 10**6)) < spent
    cost = estimate.spend.cost(relation)
    paid = Fraction(cost.rho if rho else cost.epsilon, EPSILON_UNITS)
    assert spent <= paid <= allowed
    assert paid - spent < Fraction(1, 10**6 if choose == "adaptive" else 10**10)
    assert set(estimate.spend.costs) == {"add-remove", "replace"}


def test_two_columns_leave_nothing_to_choose() -> None:
    data = oracle.table(people(3), DOMAINS)
    estimate = asking(columns=["sex", "ill"], choose="tree").estimate_cost(data, oracle.share(1))
    assert estimate.details.way.choices is None
    assert "2 columns and 1 pair" in estimate.noise
    assert estimate.spend.cost("add-remove").epsilon <= EPSILON_UNITS


# ---- scores and choices


@pytest.mark.parametrize("rows", [1, 2])
def test_one_person_moves_a_distance_by_its_sensitivity_at_most(rows) -> None:
    """All tables of two people in 2 × 2 cells, and all their neighbours."""
    rng = np.random.default_rng(5)
    cells = range(4)
    ways = [each for n in range(rows + 1) for each in product(cells, repeat=n)]

    def counts(*held):
        return np.bincount([cell for rows in held for cell in rows] or [], minlength=4)

    reached = {"add-remove": 0, "replace": 0}
    estimates = [rng.random(4) * 3 for _ in range(4)] + [np.array([0.0, 9, 0, 9]), np.zeros(4)]
    for expected in estimates:
        for one in ways:
            for two in ways[:: 1 if rows == 1 else 4]:
                before = table_distance(counts(one, two), expected)
                gone = abs(before - table_distance(counts(one), expected))
                reached["add-remove"] = max(reached["add-remove"], gone)
                for other in ways:
                    moved = abs(before - table_distance(counts(one, other), expected))
                    reached["replace"] = max(reached["replace"], moved)
    for relation, most in reached.items():
        assert most == distance_sensitivity(relation, rows)


def test_a_distance_is_that_of_the_definition() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        counts, expected = rng.integers(0, 50, 6), rng.normal(5, 9, 6)
        steps = [round(max(0.0, each) * STEPS_PER_COUNT) for each in expected.tolist()]
        truth = sum(
            abs(STEPS_PER_COUNT * n - e) for n, e in zip(counts.tolist(), steps, strict=True)
        )
        assert table_distance(counts, expected) == truth
    huge = np.full(3, 1e300)
    assert 0 < table_distance(np.zeros(3, int), huge) < 2**63
    assert table_distance(np.array([1]), np.array([np.nan])) == STEPS_PER_COUNT


def test_the_independent_table_has_the_margins() -> None:
    margins = [np.array([30.0, -2, 12]), np.array([5.0, 15])]
    found = independent_table(margins, 40.0)
    assert found.shape == (3, 2)  # what is below 0 is taken from the others, evenly
    assert np.allclose(found.sum(1), [29, 0, 11]) and np.allclose(found.sum(0), [10, 30])
    assert independent_table([np.array([-1.0, -1])], 8.0).tolist() == [4, 4]


def test_without_noise_the_best_tree_is_chosen() -> None:
    rng = np.random.default_rng(3)
    for columns in (2, 3, 4, 5):
        for _ in range(5):
            scores = {each: int(rng.integers(0, 99)) for each in combinations(range(columns), 2)}
            found = spanning_tree(columns, scores, lambda listed: int(np.argmax(listed)))
            best = max(
                sum(scores[each] for each in tree)
                for tree in combinations(scores, columns - 1)
                if connected(columns, tree)
            )
            assert connected(columns, found)
            assert sum(scores[each] for each in found) == best


def connected(columns: int, pairs) -> bool:
    reached = {0}
    for _ in range(columns):
        reached |= {each for pair in pairs if reached & set(pair) for each in pair}
    return len(reached) == columns


def test_the_size_of_a_model() -> None:
    sizes = (2, 3, 4, 5)
    assert synthetic_models.model_cells(sizes, [(0,), (1,)]) == 2 + 3 + 4 + 5
    chain = [(0, 1), (1, 2), (2, 3)]
    assert synthetic_models.model_cells(sizes, chain) == 2 * 3 + 3 * 4 + 4 * 5 + 5
    circle = [*chain, (0, 3)]  # the second column goes first, which joins the first and the third
    assert synthetic_models.model_cells(sizes, circle) == 3 * 2 * 4 + 2 * 4 * 5 + 4 * 5 + 5
    full = list(combinations(range(4), 2))
    assert synthetic_models.model_cells(sizes, full) >= 2 * 3 * 4 * 5


# ---- what leaves the rows


@pytest.mark.parametrize("choose", ["tree", "adaptive", False])
def test_the_model_is_given_noisy_numbers_and_nothing_else(tmp_path, quick, choose) -> None:
    keys = {} if choose else {"order": 1}
    query = asking(tmp_path / "x.parquet", choose=choose, length=70, **keys)
    data = oracle.table(people(300), DOMAINS)
    found = query.answer(data, query.estimate_cost(data, oracle.share(1)))
    ((sizes, noisy, total, length, seed),) = quick
    assert sizes == tuple(map(len, LABELS.values())) and length == 70 and len(seed) == 32
    details = json.loads(json.dumps(found["details"]))
    assert round(total, 3) == details["total"]
    assert len(noisy) == len(details["measured"]) and (len(noisy) == 7 or choose != "tree")
    for each, (attributes, differences, values, deviation) in zip(
        details["measured"], noisy, strict=True
    ):
        assert [COLUMNS[place] for place in attributes] == each["columns"]
        assert [COLUMNS[place] for place in differences] == each["differences"]
        assert np.frombuffer(values).tolist() == np.ravel(each["values"]).tolist()
        scale = float(Fraction(each["scale"]))
        assert deviation == pytest.approx(2**0.5 * scale, rel=0.1)
    assert ("chosen" in details) == bool(choose)
    if choose:
        assert details["chosen"]["way"] == choose
        chosen = [each["columns"] for each in details["measured"][4:]]
        assert details["chosen"]["tables"] == chosen
    if choose == "tree":
        assert len({tuple(pair) for pair in chosen}) == 3


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("choose", ["tree", "adaptive"])
@pytest.mark.soak
def test_attacking_the_whole_answer_shows_no_more_than_the_plan(
    tmp_path, quick, relation, choose, monkeypatch
) -> None:
    """One person more, or another in their place; the same attack refutes the plan where the noise
    is made for many times its ε."""
    monkeypatch.setattr("whosin.release.synthetic_selection.UNIT_COUNT", 2)
    iterations = 20 if choose == "adaptive" else 1  # a tree is chosen before any model
    monkeypatch.setattr("whosin.release.synthetic_models.ESTIMATES_ITERATIONS", iterations)
    few: dict[str, list[object]] = {
        name: list(rows) for name, rows in {"who": "abcd", "sex": "ffmm", "ward": "ABBA"}.items()
    }
    few["ill"] = [True] * 4
    other = {name: column[:3] for name, column in few.items()}
    if relation == "replace":
        other = few | {"sex": list("ffmf"), "ward": list("ABBB")}
    query = asking(tmp_path / "x.parquet", columns=COLUMNS[:3], choose=choose, length=4)
    domains = {name: DOMAINS[name] for name in COLUMNS[:3]}

    def attacked(epsilon: int, confidence: float, times: int):
        worlds = []
        for rows in (few, other):
            data = oracle.table(rows, domains)
            estimate = query.estimate_cost(data, oracle.share(epsilon, relation=relation))
            learned = estimate.details
            found = learned.scan.count(data, estimate.expression, None)
            counts = dict(zip(learned.scan.sets, found, strict=True))
            worlds.append((learned, counts, estimate.share))

        def draw(world: int) -> tuple[float, ...]:
            """How much likelier the counts are in one world than in the other, all tables
            together, by the definition of the noise; the choices and the distance as they are."""
            learned, counts, share = worlds[world]
            drawn = learned.draw(counts, 4)
            details = learned.details(drawn, share)
            ratio = 0.0
            for each, found in zip(drawn.noisy, drawn.values, strict=True):
                one, two = (known[each.measurement.attributes] for _, known, _ in worlds)
                ratio += (np.abs(found - one) - np.abs(found - two)).sum() / float(each.noise.width)
            chosen = details["chosen"]["tables"]
            places = [*map(COLUMNS.index, chosen[0]), -1][:2]
            return (ratio, details["quality"]["distance"], len(chosen), *places)

        return wi.audit.two_worlds(draw, 0, 1, times, confidence)

    assert attacked(1, 1 - 1e-6, 200).epsilon <= 1
    assert attacked(24, 0.95, 200).refutes(1)


# ---- the whole way


def truth(data: pa.Table, columns: tuple[str, ...]) -> np.ndarray:
    found = np.zeros([len(LABELS[column]) for column in columns])
    for row in data.to_pylist():
        found[tuple(LABELS[each].index(label(each, row[each])) for each in columns)] += 1
    return found


def label(column: str, value) -> str:
    if column == "age" and not isinstance(value, str):
        return LABELS["age"][min(2, int(value // 30))]
    return str(value)


def whole_way(tmp_path, query: Synthetic, noise: str) -> None:
    rows = people(2000)
    data = oracle.table(rows, DOMAINS)
    plan = wi.calibrate(wi.Epsilon(8.0), wi.families.Independent(), delta=1e-3)
    with wi.Ledger(tmp_path / "ledger.db", who="tests") as ledger:
        session = wi.Session(data, plan, ledger, share=1, request="once")
        answer = session.ask(query, noise=noise)
        again = wi.Session(data, plan, ledger, share=1, request="once").ask(query, noise=noise)
    assert again.rows == answer.rows and again.details == answer.details
    drawn = parquet.read_table(query.path)
    assert drawn.column_names == list(query.columns)
    assert answer.rows[0][:2] == ("x.parquet", drawn.num_rows) == ("x.parquet", 5000)
    details = answer.details
    assert details is not None
    scale = 5000 / details["total"]
    assert abs(details["total"] - 2000) < 100
    for column in COLUMNS:
        shown, exact = truth(drawn, (column,)) / scale, truth(rows, (column,))
        assert np.abs(shown - exact).max() < 100, column
    for pair in (("sex", "ward"), ("ill", "age")):
        shown, exact = truth(drawn, pair) / scale, truth(rows, pair)
        assert np.abs(shown - exact).max() < 130, pair
    sets = [each for n in (1, 2) for each in combinations(COLUMNS, n)]
    if query.sets is not None:
        sets = [tuple(each) for each in query.sets]
    far = np.mean([np.abs(truth(drawn, each) / scale - truth(rows, each)).sum() for each in sets])
    quality = details["quality"]
    assert quality["tables"] == len(sets)
    near = 6 * quality["within"] + 1e-3
    assert abs(quality["distance"] - far / 2 / details["total"]) < near < 0.2
    assert "would have to move" in answer.statement
    chosen = details.get("chosen", {}).get("tables", [])
    assert all(" × ".join(each) in answer.statement for each in chosen if len(each) > 1)
    about = json.loads(parquet.read_schema(query.path).metadata[b"whosin"])
    assert about["quality"] == quality and about["promise"] == details["promise"]
    assert about.get("chosen") == details.get("chosen")


@pytest.mark.parametrize(
    ("choose", "noise"),
    [
        pytest.param("tree", "laplace", marks=pytest.mark.soak),
        ("adaptive", "gaussian"),
        pytest.param("adaptive", "laplace", marks=pytest.mark.soak),
    ],
)
def test_a_table_is_learned_from_chosen_tables(tmp_path, choose, noise) -> None:
    query = asking(
        tmp_path / "x.parquet", columns=["age", "sex", "ill", "ward"], choose=choose, length=5000
    )
    whole_way(tmp_path, query, noise)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.soak
def test_a_table_is_learned_from_differences(tmp_path) -> None:
    """Under Gaussian noise the residuals are measured: the model is given differences."""
    query = asking(
        tmp_path / "x.parquet", sets=[["ill", "age"], ["ward", "sex"], ["sex"]], length=5000
    )
    whole_way(tmp_path, query, "gaussian")


@pytest.mark.parametrize(("choose", "rho"), [("tree", 0), ("tree", 50), ("adaptive", 50)])
def test_strong_pairs_are_chosen(tmp_path, quick, choose, rho) -> None:
    """With a large budget the two true dependences are among what is chosen."""
    query = asking(tmp_path / "x.parquet", choose=choose)
    data = oracle.table(people(1000), DOMAINS)
    found = query.answer(data, query.estimate_cost(data, oracle.share(60, rho=rho)))
    pairs = [set(each) for each in found["details"]["chosen"]["tables"]]
    assert {"sex", "ward"} in pairs and {"ill", "age"} in pairs
    assert abs(found["rows"][0][1] - 1000) < 20, "as many rows as there are, by the noisy count"


# ---- refusals


NOT_LEARNED: list[tuple[dict[str, Any], str]] = [
    ({"method": "magic"}, "method"),
    ({"choose": "yes"}, "choose"),
    ({"choose": ["tree"]}, "choose"),
    ({"choose": True, "choosing": 1}, "choosing"),
    ({"choose": True, "choosing": 0}, "choosing"),
    ({"choosing": "1/3"}, "choosing"),
    ({"choose": True, "columns": ["sex"]}, "choose"),
    ({"choose": "tree", "sets": [["sex", "ward"]]}, "sets"),
    ({"choose": True, "sets": [["sex", "ward"]]}, "sets"),
    ({"choose": True, "order": 1}, "order"),
    ({"length": 0}, "length"),
    ({"length": 2.5}, "length"),
    ({"length": 10**9}, "length"),
    ({"prior": [1]}, "prior"),
    ({"columns": ["sex", "who"]}, "column"),
    ({"columns": ["sex", "size"]}, "domain of size"),
    ({"columns": ["sex", "sex"]}, "columns"),
    ({"columns": "sex"}, "columns"),
    ({"columns": []}, "columns"),
    ({"sets": [["sex", "ward"]]}, "sets"),
    ({"columns": ["sex"], "sets": [["sex", "ward"]]}, "sets"),
    ({"columns": ["one", "two", "three", "sex"]}, "columns"),
    ({"path": "x.csv"}, "path"),
    ({"path": "/nowhere/x.parquet"}, "path"),
    ({"max_rows_per_group": 0}, "max_rows_per_group"),
    ({"method": "responses", "choose": True}, "choose"),
]


def test_what_cannot_be_learned_is_refused_in_a_sentence(tmp_path) -> None:
    large = {name: [f"{name}{n}" for n in range(199)] for name in ("one", "two", "three")}
    rows = {"who": [1], "sex": ["f"], "ward": ["A"], "ill": [True], "age": [1.0], "size": [1.0]}
    rows |= {name: ["x"] for name in large}
    data = oracle.table(rows, DOMAINS | large | {"size": Range(0, 9)})
    with wi.Ledger(tmp_path / "ledger.db", who="tests") as ledger:
        session = wi.Session(data, oracle.PLANS["add-remove"], ledger, share=1)
        for keys, field in NOT_LEARNED:
            with refused(field):
                if "path" in keys:
                    query = Synthetic(**{"columns": COLUMNS, "method": "marginals"} | keys)
                else:
                    query = asking(**{"path": tmp_path / "x.parquet"} | keys)
                session.ask(query)
        assert not session.budget_state.debits


@pytest.mark.parametrize("choose", ["tree", "adaptive"])
@pytest.mark.parametrize("keys", [{}, {"choosing": 1 - Fraction(1, 10**18)}])
def test_a_budget_too_small_to_measure_with_is_refused(choose, keys) -> None:
    data = oracle.table(people(3), DOMAINS)
    epsilon = 1 if keys else Fraction(1, 10**12) / 10**6
    with refused("noise"):
        asking(choose=choose, **keys).estimate_cost(data, oracle.share(epsilon))


def test_without_its_extra_nothing_is_spent(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(
        "whosin.errors.find_spec", lambda name: None if name == "mbi" else find_spec(name)
    )
    data = oracle.table(people(3), DOMAINS)
    with wi.Ledger(tmp_path / "ledger.db", who="tests") as ledger:
        session = wi.Session(data, oracle.PLANS["add-remove"], ledger, share=1)
        with pytest.raises(MissingExtra, match=r"whosin\[synthetic\]"):
            session.ask(asking(tmp_path / "x.parquet", choose=True))
        assert not session.budget_state.debits
