"""Ranges, cumulative counts and levels in `marginals`: errors, counts, answers, refusals."""

from __future__ import annotations

import json
import random
from datetime import date
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import release_oracle as oracle
import whosin as wi
from amounts import cases, some
from refusals import refused
from whosin.exact import Array
from whosin.marginals import Measurement, Sums, Workload, estimate_residuals, estimate_tables
from whosin.noise import GaussianNoise, LaplaceNoise
from whosin.noise.distributions import make_noise
from whosin.release import Dates, Marginals, Range, Values
from whosin.release.budget_allocation import estimate_batch_cost
from whosin.release.column_expressions import MergedValues
from whosin.release.scenario import load_scenario

TOWNS = ("Zürich", "Bern", "Winterthur", "Biel")
PARENTS = {"canton": {"ZH": ["Zürich", "Winterthur"], "BE": ["Bern", "Biel"]}}
DOMAINS: dict[str, Any] = {
    "sex": ["f", "m"],
    "age": list(range(6)),
    "town": Values(TOWNS, parents=PARENTS),
    "dose": Range(0, 8, edges=(0, 1, 2.5, 4, 8), outside="clamp"),
    "visit": Dates("2024-01-01", "2024-12-31", "quarter"),
}
RANGES: dict[str, Any] = {"age": [[1, 2], "0..3", [4, 4]], "dose": [[1, 4], [0, 2.5]]}
# Which cells of its column each row of a name holds, by their labels.
AGES = [{*range(end + 1)} for end in range(6)]
ROWS: dict[str, tuple[str, list[set[Any]]]] = {
    "sex": ("sex", [{"f"}, {"m"}, {"other"}]),
    "age": ("age", [{each} for each in (*range(6), "other")]),
    "cumulative(age)": ("age", AGES),
    "ranges(age)": ("age", [{1, 2}, {0, 1, 2, 3}, {4}]),
    "town": ("town", [{each} for each in (*TOWNS, "other")]),
    "canton": ("town", [{"Zürich", "Winterthur"}, {"Bern", "Biel"}, {"other"}]),
    "cumulative(canton)": ("town", [{"Zürich", "Winterthur"}, set(TOWNS)]),
    "ranges(dose)": ("dose", [{"1..2.5", "2.5..4"}, {"0..1", "1..2.5"}]),
    "cumulative(visit)": (
        "visit",
        [{f"2024-Q{each}" for each in range(1, last + 1)} for last in range(1, 5)],
    ),
}


def people(count: int, rows: int = 1, seed: int = 0) -> pa.Table:
    rng = random.Random(seed)
    found = [
        {
            "who": f"p{who}",
            "sex": rng.choice(["f", "m", "x", None]),
            "age": rng.choice([*range(6), 9, None]),
            "town": rng.choice([*TOWNS, "Basel", None]),
            "dose": rng.choice([0.0, 1.0, 2.4, 2.5, 7.0, 8.0, 9.0, -3.0]),
            "visit": rng.choice([date(2024, 1, 1), date(2024, 5, 5), date(2024, 12, 31), None]),
        }
        for who in range(count)
        for _ in range(rng.randint(1, rows))
    ]
    return pa.Table.from_pylist(found)


def label(column: str, value: Any) -> object:
    """The cell of its column that a value is in, by the declared domains."""
    if column == "dose":
        clamped = min(max(value, 0.0), 8.0)
        names = ["0..1", "1..2.5", "2.5..4", "4..8"]
        return names[min(sum(clamped >= edge for edge in (1, 2.5, 4)), 3)]
    if column == "visit":
        return "other" if value is None else f"2024-Q{(value.month + 2) // 3}"
    domain = TOWNS if column == "town" else DOMAINS[column]
    return value if value in domain else "other"


def truth(source: pa.Table, names: tuple[str, ...]) -> Array:
    """How many rows each sum has, row by row."""
    found = np.zeros([len(ROWS[name][1]) for name in names], np.int64)
    for row in source.to_pylist():
        values = [label(ROWS[name][0], row[ROWS[name][0]]) for name in names]
        held = [
            [at for at, cells in enumerate(ROWS[name][1]) if value in cells]
            for name, value in zip(names, values, strict=True)
        ]
        for place in product(*held):
            found[place] += 1
    return found


def asked(*sets: tuple[str, ...], **keys: Any) -> Marginals:
    used = {name for each in sets for name in each}
    ranges = {key: RANGES[key] for key in RANGES if f"ranges({key})" in used}
    return Marginals(sets=[list(each) for each in sets], ranges=ranges or None, **keys)


WORKLOADS = [
    (("sex", "age"), ("town",), ()),
    (("sex", "ranges(age)"), ("cumulative(canton)",)),
    (("age",), ("cumulative(age)",), ("sex", "ranges(age)"), ()),
    (("town",), ("canton",), ("sex", "canton"), ("sex", "town")),
    (("ranges(age)", "ranges(dose)"), ("sex", "canton"), ("cumulative(visit)",)),
]


def dense(
    table: wi.Table, query: Marginals, estimate: Any
) -> tuple[list[str], list[list[Any]], Array]:
    """The columns, their cells, and what one unit of variance a measured number comes to: the
    covariance of the best estimate of all combinations, from what the estimate says is measured."""
    cells = estimate.details["asked"].cells
    roots: list[str] = []
    held: list[list[set[int]]] = []
    for name, domain in zip(cells.columns, cells.domains, strict=True):
        root = ROWS[name][0]
        roots.append(root)
        if isinstance(domain, MergedValues):
            numbers = np.array(domain.parts)
            held.append([set(np.flatnonzero(numbers == at)) for at in range(len(domain.labels))])
        else:
            held.append([{_cells(root).index(each) for each in one} for one in ROWS[name][1]])
    sizes = [len(_cells(root)) for root in roots]
    rows = []
    for each in estimate.measured:
        matrix: Array = np.ones((1, 1))
        for name, size, parts in zip(cells.columns, sizes, held, strict=True):
            group = np.array([[float(cell in part) for cell in range(size)] for part in parts])
            if name not in each["columns"]:
                factor = np.ones((1, size))
            elif name not in each["differences"]:
                factor = group
            elif len(group) == 2:
                factor = group[:1] - group[1:]
            else:
                factor = len(group) * group - group.sum(axis=0)
            matrix = np.kron(matrix, factor)
        width = float(Fraction(each.get("scale") or each["variance"]))
        variance = 1 / (2 * np.sinh(1 / (2 * width)) ** 2) if "scale" in each else width
        rows.append(matrix / variance**0.5)
    inverse = np.linalg.pinv(np.concatenate(rows))
    return roots, [_cells(root) for root in roots], inverse @ inverse.T


def _cells(root: str) -> list[Any]:
    if root == "dose":
        return ["0..1", "1..2.5", "2.5..4", "4..8"]
    if root == "visit":
        return [*(f"2024-Q{at}" for at in range(1, 5)), "other"]
    return [*(TOWNS if root == "town" else DOMAINS[root]), "other"]


def matrix_of(names: tuple[str, ...], roots: list[str], cells: list[list[Any]]) -> Array:
    matrix: Array = np.ones((1, 1))
    own = {ROWS[name][0]: ROWS[name][1] for name in names}
    for root, values in zip(roots, cells, strict=True):
        factor = np.ones((1, len(values)))
        if root in own:
            factor = np.array([[float(cell in some) for cell in values] for some in own[root]])
        matrix = np.kron(matrix, factor)
    return matrix


@pytest.mark.parametrize(
    ("workload", "rho"),
    some(product(WORKLOADS[:4], [0, Fraction(1, 50)]), 5, several=True),
)
def test_the_dry_run_says_the_standard_error_of_dense_least_squares(workload, rho) -> None:
    """Of every sum, by the definitions, from what the estimate says is measured."""
    data = oracle.table(people(5), DOMAINS)
    query = asked(*workload)
    estimate = query.estimate_cost(data, oracle.share(1, rho=rho))
    roots, cells, covariance = dense(data, query, estimate)
    for names, table in zip(workload, estimate.tables, strict=True):
        assert sorted(table["columns"]) == sorted(names)
        matrix = matrix_of(tuple(table["columns"]), roots, cells)
        spread = np.einsum("ij,jk,ik->i", matrix, covariance, matrix)
        np.testing.assert_allclose(table["standard_error"] ** 2, spread.mean(), rtol=1e-9)
        listed = table.get("standard_errors", [table["standard_error"]] * len(spread))
        # Axes of a table are in the order of the columns that are measured.
        order = [root for root in roots if root in {ROWS[name][0] for name in names}]
        assert [ROWS[name][0] for name in table["columns"]] == order
        np.testing.assert_allclose(np.square(listed), spread, rtol=1e-9)


@pytest.mark.parametrize(
    ("workload", "unit"), some(product(WORKLOADS[1:], ["who", "row"]), 5, several=True)
)
def test_values_without_noise_are_those_of_the_rows(monkeypatch, workload, unit: str) -> None:
    source = people(300)
    data = oracle.table(source, DOMAINS, privacy_unit=unit)
    query = asked(*workload)
    estimate = query.estimate_cost(data, oracle.share())
    for noise in (LaplaceNoise, GaussianNoise):
        monkeypatch.setattr(noise, "draw", lambda self, shape: np.zeros(shape, np.int64))
    found = query.answer(data, estimate)
    start = 0
    for names, table in zip(workload, found["details"]["tables"], strict=True):
        rows = found["rows"][start : start + table["cells"]]
        start += table["cells"]
        wanted = truth(source, tuple(table["columns"])).ravel()
        np.testing.assert_allclose([row[2] for row in rows], wanted, atol=1e-5)
        if len(names) == 1:  # larger ones are moved by what noise would explain
            assert [row[-1] for row in rows] == wanted.tolist()


def test_what_no_table_tells_apart_is_measured_as_one() -> None:
    data = oracle.table(people(5), DOMAINS | {"age": list(range(100))})

    def measured(*sets: tuple[str, ...], **ranges: Any) -> list[tuple[str, tuple[Any, ...]]]:
        query = Marginals(sets=[list(each) for each in sets], ranges=ranges or None)
        cells = query.workload(data)[0]
        return [(n, d.labels) for n, d in zip(cells.columns, cells.domains, strict=True)]

    [(name, labels)] = measured(("ranges(age)",), age=[[18, 29], [30, 64], [18, 64]])
    assert name == "age"
    assert labels == ("0 to 17 and 65 to other", "18 to 29", "30 to 64")
    assert measured(("canton",)) == [("canton", ("ZH", "BE", "other"))]
    assert measured(("canton",), ("town",)) == [("town", (*TOWNS, "other"))]
    assert len(measured(("cumulative(age)",))[0][1]) == 101
    [(name, labels)] = measured(("cumulative(canton)",))
    assert name == "town"
    assert labels == ("Zürich and Winterthur", "Bern and Biel", "other")
    few = Marginals(columns=["ranges(age)"], order=1, ranges={"age": [[18, 29], [30, 64]]})
    errors = [
        each.estimate_cost(data, oracle.share()).tables[0]["standard_error"]
        for each in (few, Marginals(columns=["age"], order=1))
    ]
    assert errors[0] == pytest.approx(errors[1], rel=1e-6)  # a range costs as little as a cell


@pytest.mark.parametrize("noise", some(["laplace", "gaussian"], 1))
def test_an_answer_agrees_with_itself(tmp_path, noise: str) -> None:
    data = oracle.table(people(300), DOMAINS)
    names = ("age", "cumulative(age)", "ranges(age)", "town", "canton")
    query = asked(("sex", "canton"), ("sex", "town"), *((name,) for name in names))
    with wi.Ledger(tmp_path / "l.db", who="tests") as ledger:
        session = wi.Session(data, oracle.WITH_DELTA["add-remove"], ledger, share=1)
        answer = session.ask(query, noise=noise)
        again = wi.Session(
            data, oracle.WITH_DELTA["add-remove"], ledger, share=1, request=session.request
        )
        assert again.ask(query, noise=noise) == answer
    assert answer.question["ranges"] == {"age": RANGES["age"]}

    def column(at: int, *names: str) -> list[float]:
        return [row[at] for row in answer.table(*names).rows]

    for at, close in ((-6, 1e-4), (-1, 0)):  # value and whole
        ages, towns = column(at, "age"), column(at, "town")
        cumulated = np.cumsum(ages[:-1])
        np.testing.assert_allclose(column(at, "cumulative(age)"), cumulated, atol=close)
        wanted = [ages[1] + ages[2], sum(ages[:4]), ages[4]]
        np.testing.assert_allclose(column(at, "ranges(age)"), wanted, atol=close)
        cantons = [towns[0] + towns[2], towns[1] + towns[3], towns[4]]
        np.testing.assert_allclose(column(at, "canton"), cantons, atol=close)
        pair = np.reshape(column(at, "sex", "town"), (3, 5))
        sums = np.stack([pair[:, 0] + pair[:, 2], pair[:, 1] + pair[:, 3], pair[:, 4]], axis=1)
        np.testing.assert_allclose(column(at, "sex", "canton"), sums.ravel(), atol=close)
    assert [row[0] for row in answer.table("ranges(age)").rows] == ["1..2", "0..3", "4"]
    assert [row[0] for row in answer.table("cumulative(age)").rows][:3] == ["0", "0..1", "0..2"]
    for _, _, value, low, high, least, most, _ in answer.rows:
        assert least < low < value < high < most or low <= least
    assert answer.details is not None
    flags = {", ".join(t["columns"]): t["adds_up"] for t in answer.details["tables"]}
    assert flags["canton"] and flags["sex, canton"] and not flags["cumulative(age)"]


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_others_can_estimate_anew_from_what_was_measured(noise: str) -> None:
    data = oracle.table(people(300), DOMAINS)
    for workload in WORKLOADS[noise == "laplace" :: 2]:
        query = asked(*workload)
        rho = Fraction(1, 50) if noise == "gaussian" else 0
        estimate = query.estimate_cost(data, oracle.share(1, rho=rho))
        found = json.loads(json.dumps(query.answer(data, estimate)))
        details = found["details"]
        of = {name: each["of"] for name, each in details.get("sums", {}).items()}
        names = list(
            dict.fromkeys(of.get(name, name) for t in details["tables"] for name in t["columns"])
        )
        names = sorted(names, key=list(estimate.details["asked"].cells.columns).index)
        measured, variances, values = [], [], []
        for each in details["measured"]:
            at = tuple(names.index(name) for name in each["columns"])
            inner = tuple(names.index(name) for name in each["differences"])
            measured.append(Measurement(at, inner))
            width = Fraction(each.get("scale") or each["variance"])
            variances.append(make_noise(each["noise"], width).variance)
            values.append(np.array(each["values"]))
        sums = {
            name: Sums(len(each["order"]), tuple(map(tuple, each["runs"])), tuple(each["order"]))
            for name, each in details.get("sums", {}).items()
        }
        again = Workload(
            tuple(len(details["domains"][name]) for name in names),
            tuple(
                tuple(names.index(of.get(name, name)) for name in t["columns"])
                for t in details["tables"]
            ),
            (),
            tuple(tuple(sums.get(name) for name in t["columns"]) for t in details["tables"]),
        )
        tables = estimate_tables(again, estimate_residuals(again, measured, variances, values))
        flat = np.concatenate([each.ravel() for each in tables])
        np.testing.assert_allclose(flat, [row[2] for row in found["rows"]], atol=1e-5)


@pytest.mark.parametrize("noise", some(["laplace", "gaussian"], 1))
@cases(100, 1000)
def test_intervals_of_releases_cover(noise: str, count: int) -> None:
    """With the noise that is really drawn: each sum, and all sums of a table at once."""
    source = people(60)
    data = oracle.table(source, DOMAINS)
    workload = (("cumulative(age)",), ("sex", "canton"))
    query = asked(*workload)
    rho = Fraction(1, 2) if noise == "gaussian" else 0
    estimate = query.estimate_cost(data, oracle.share(1, rho=rho))
    exact = [truth(source, tuple(each["columns"])).ravel() for each in estimate.tables]
    counts = estimate.details["scan"].count(data, estimate.expression, None)
    estimate.details["scan"].__dict__["count"] = lambda *_: counts  # the rows do not change
    inside = [np.zeros(cells.size) for cells in exact]
    together, squares = np.zeros(2), [np.zeros(cells.size) for cells in exact]
    for _ in range(count):
        answer = query.answer(data, estimate)
        start = 0
        for number, cells in enumerate(exact):
            part = np.array([row[2:7] for row in answer["rows"][start : start + cells.size]])
            start += cells.size
            inside[number] += (part[:, 1] <= cells) & (cells <= part[:, 2])
            together[number] += ((part[:, 3] <= cells) & (cells <= part[:, 4])).all()
            squares[number] += (part[:, 0] - cells) ** 2
    slack = 6 * (0.05 * 0.95 / count) ** 0.5
    for number in range(2):
        assert (inside[number] / count >= 0.95 - slack).all()
        assert together[number] / count >= 0.95 - slack
        table = estimate.tables[number]
        errors = np.array(table.get("standard_errors", table["standard_error"]))
        assert squares[number] / count / errors**2 == pytest.approx(1, abs=14 / count**0.5)


@pytest.mark.parametrize(
    ("relation", "rows"),
    some([("replace", 1), ("add-remove", 1), ("add-remove", 2), ("replace", 2)], 2, several=True),
)
def test_neighbouring_tables_move_what_is_measured_by_no_more_than_was_paid(relation, rows) -> None:
    """Enumerated over what one person may hold: Σ |difference| / scale is at most ε."""
    query = asked(("sex", "ranges(age)"), ("canton",), ("town",), max_rows_per_group=rows)
    others = [{"who": "x", "sex": "f", "age": 3, "town": "Bern"}]
    held = [("f", 1, "Biel"), ("x", 9, "Basel"), ("f", None, "Zürich")]
    domains = {name: DOMAINS[name] for name in ("sex", "age", "town")}
    persons: list[list[dict[str, Any]]] = [[]]
    for each in held:
        row = {"who": "one", **dict(zip(("sex", "age", "town"), each, strict=True))}
        persons.append([row] * rows)
    counted = []
    estimate = None
    for own in persons:
        data = oracle.table(pa.Table.from_pylist(others + own), domains)
        estimate = estimate or query.estimate_cost(data, oracle.share(1, relation=relation))
        scan = estimate.details["scan"]
        exact = scan.count(data, scan.expression(data, None, rows), None)
        numbers = [
            each.measurement.of_counts(one)
            for each, one in zip(estimate.details["noisy"], exact, strict=True)
        ]
        counted.append((estimate.details["noisy"], numbers))
    pairs = (
        product(counted, counted) if relation == "replace" else ((counted[0], c) for c in counted)
    )
    worst = max(
        sum(
            int(np.abs(a - b).sum()) / each.noise.width
            for each, a, b in zip(noisy, ours, theirs, strict=True)
        )
        for (noisy, ours), (_, theirs) in pairs
    )
    assert Fraction(999, 1000) < worst <= 1


@pytest.mark.parametrize(
    ("domain", "given", "names"),
    [
        ([0, 1, 2, 3], [[0, 1], "2..3", "1 .. 1"], ["0..1", "2..3", "1"]),
        (["none", "school", "college"], [["none", "school"]], ["none..school"]),
        (Range(0, 9, edges=(0, 1.5, 9)), [[0, "3/2"], ["1.5", 9]], ["0..1.5", "1.5..9"]),
        (Dates("2024-01-01", "2024-12-31", ("2024-01-01", "2024-03-01", "2024-12-31")),
         [[date(2024, 3, 1), "2024-12-31"]], ["2024-03-01..2024-12-31"]),
        (Dates("2024-01-01", "2024-12-31", "month"), [["2024-02", "2024-04"]],
         ["2024-02..2024-04"]),
    ],
)  # fmt: skip
def test_ranges_as_people_write_them(domain: object, given: Any, names: list[str]) -> None:
    data = oracle.table({"who": ["a"], "x": pa.array([None], pa.string())}, {"x": domain})
    query = Marginals(columns=["ranges(x)"], ranges={"x": given})
    assert list(query.tables(data).forms[0][0].labels) == names


@pytest.mark.parametrize(
    ("query", "field"),
    [
        (Marginals(columns=["ranges(age)"]), "ranges"),
        (Marginals(columns=["age"], ranges={"age": [[1, 2]]}), "age"),
        (Marginals(columns=["age"], ranges=[[1, 2]]), "ranges"),  # type: ignore[arg-type]
        ({"age": 3}, "age"),
        ({"age": []}, "age"),
        ({"age": [[1, 2]] * 1001}, "age"),
        ({"age": [5]}, "age"),
        ({"age": ["5"]}, "age"),
        ({"age": [[1, 2, 3]]}, "age"),
        ({"age": [[1, 7]]}, "age"),
        ({"age": [[0, "other"]]}, "age"),
        ({"age": [[3, 1]]}, "age"),
        ({"age": [[1, 3], "1..3"]}, "age"),
        ({"dose": [[0, 3]]}, "dose"),
        ({"dose": [[1, 1]]}, "dose"),
        ({"dose": [[0, 8]]}, "dose"),
        (Marginals(sets=[["town", "canton"]]), "sets"),
        (Marginals(sets=[["age", "cumulative(age)"]]), "sets"),
        (Marginals(columns=["age", "cumulative(age)"], order=2), "order"),
        (Marginals(columns=["cumulative(who)"]), "column"),
        (Marginals(columns=["cumulative(sexx)"]), "column"),
        (Marginals(columns=["cumulative(ranges(age))"]), "domain of age"),
        (Marginals(columns=["total(age)"]), "domain of age"),
    ],
)
def test_refusals(session: wi.Session, query: Any, field: str) -> None:
    if isinstance(query, dict):
        query = Marginals(columns=[f"ranges({next(iter(query))})"], ranges=query)
    with refused(field):
        session.ask(query)
    assert not session.budget_state.debits


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    data = oracle.table(people(3), DOMAINS)
    with wi.Ledger(tmp_path_factory.mktemp("ranges") / "ledger.db", who="tests") as ledger:
        yield wi.Session(data, oracle.PLANS["add-remove"], ledger, share=1)


def test_names_of_columns_come_first() -> None:
    """A column that is called like a form is that column."""
    source = {"who": ["a"], "age": [1], "cumulative(age)": ["x"]}
    data = oracle.table(source, {"age": [1, 2], "cumulative(age)": ["x", "y"]})
    forms = Marginals(columns=["age", "cumulative(age)"]).tables(data).forms
    assert [form.labels for form in forms[1]] == [("x", "y", "other")]


SCENARIO = """
[target]
epsilon = 1

[table]
source = "people.parquet"
privacy_unit = "who"

[domains.town.parents.canton]
ZH = ["Zürich", "Winterthur"]
BE = ["Bern", "Biel"]

[domains.age]
values = [0, 1, 2, 3, 4, 5]

[[queries]]
kind = "marginals"
columns = ["canton", "town", "cumulative(age)", "ranges(age)"]
order = 2
ranges = { age = [[0, 2], [3, 5]] }
"""


def test_from_a_scenario_file(tmp_path, run, monkeypatch) -> None:
    import pyarrow.parquet as parquet

    monkeypatch.chdir(tmp_path)
    parquet.write_table(people(50), "people.parquet")
    (tmp_path / "s.toml").write_text(SCENARIO)
    scenario = load_scenario(tmp_path / "s.toml")
    [estimate] = estimate_batch_cost(scenario.open_table(), scenario.plan, scenario.queries)
    found = estimate.tables
    places, ages = ("canton", "town"), ("cumulative(age)", "ranges(age)")
    assert [tuple(each["columns"]) for each in found] == [
        *((name,) for name in (*places, *ages)),
        *product(places, ages),
    ]
    assert len(found[4]["standard_errors"]) == 3 * 6 and "standard_errors" not in found[1]
    assert found[4]["least_error"] < found[4]["standard_error"] < found[4]["largest_error"]
    code, out, _ = run("release s.toml --dry-run")
    assert code == 0 and "canton, cumulative(age)" in out and " to " in out
    code, out, _ = run("release s.toml --save out.csv")
    assert code == 0 and "canton" in out
    written = (tmp_path / "out-6-canton-ranges-age.csv").read_text()
    assert written.splitlines()[1].startswith('"ZH","0..2",')
