"""Exact answers, before noise, against plain Python: every type, policy and awkward name."""

from __future__ import annotations

import datetime
import decimal
import math
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import release_oracle as oracle
import whosin as wi
from whosin import release
from whosin.release import Range
from whosin.release.cost import Share

NAN, INF = float("nan"), math.inf
X = Range(-2, 3, step="1/10", edges=(-2, 0, "1/2", 3))
DOMAINS = {"ward": ["A", "É \"x\" 'y'", "other"], "x": X}


def rows_of(seed: int, most: int = 3) -> list[dict]:
    """Few rows a privacy unit, so that no choice is left to chance, and every kind of trouble."""
    rng = random.Random(seed)
    found = []
    for who in range(25):
        for _ in range(rng.randint(0, most)):
            x = rng.choice(
                [-9.0, -2.0, -0.25, 0.0, 0.25, 0.3, 0.5, 2.75, 3.0, NAN, INF, -INF, None]
            )
            ward = rng.choice(["A", "É \"x\" 'y'", "other", "B", "", None])
            found.append({"who": rng.choice([f"p{who}"] * 9 + [None]), "ward": ward, "x": x})
    return found + found[:2]


def stored(rows: list[dict]) -> pa.Table:
    return pa.table(
        {
            "who": pa.array([row["who"] for row in rows], pa.string()),
            "ward": pa.array([row["ward"] for row in rows], pa.string()),
            "x": pa.array([row["x"] for row in rows], pa.float64()),
        }
    )


def expected(query: Any, rows: list[dict], data: wi.Table) -> list[list[int]]:
    """The bounded sums where the bounds bind nobody."""
    by = query.cells(data).columns
    cells = {label: place for place, label in enumerate(query.cells(data).labels())}
    low, high = X.units
    centre = (low + high) // 2
    parts = [part.name for part in query.parts(data)]
    found = [[0] * len(cells) for _ in parts]
    for mine in oracle.by_entity(rows).values():
        seen = set()
        for row in mine:
            steps, number = oracle.steps(row["x"], X), oracle.number(row["x"])
            if "column" in vars(query) and query.kind != "histogram" and steps is None:
                continue
            place = cells[oracle.cell(row, by, {"ward": data.domains["ward"], "x": X})]
            for vector, part in zip(found, parts, strict=True):
                if part == "people":
                    vector[place] += place not in seen
                elif part == "rows":
                    vector[place] += 1
                elif part == "sum":
                    assert steps is not None
                    vector[place] += steps - (centre if query.kind != "sum" else 0)
                elif part in ("above", "below"):
                    assert steps is not None
                    vector[place] += steps - low if part == "above" else high - steps
                else:
                    assert number is not None
                    clamped = min(max(number, -2.0), 3.0)
                    vector[place] += math.floor(((clamped - 0.5) / 2.5) ** 2 * 1e6 + 0.5)
            seen.add(place)
    return found


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    "query",
    [
        release.Count(),
        release.Count(by=("ward", "x")),
        release.Rows(),
        release.Rows(by="ward"),
        release.Sum(column="x"),
        release.Sum(column="x", by="ward"),
        release.Mean(column="x"),
        release.Variance(column="x", by="x"),
        release.Histogram(column="x", by="ward"),
    ],
    ids=lambda query: f"{query.kind}-{query.by}",
)
def test_bounded_sums_are_those_of_the_definitions(query, seed) -> None:
    rows = rows_of(seed)
    data = oracle.table(stored(rows), DOMAINS, max_rows_per_group=99, max_groups=99)
    assert oracle.exact(query, data) == expected(query, rows, data)


def test_an_empty_table_has_answers_of_the_same_shape() -> None:
    data = oracle.table(stored([]), DOMAINS, max_rows_per_group=2, max_groups=2)
    for query in (release.Count(), release.Sum(column="x", by="ward"), release.Mean(column="x")):
        assert not any(map(any, oracle.exact(query, data)))
        answer = query.answer(data, query.estimate_cost(data, oracle.share()))
        assert len(answer["rows"]) == query.cells(data).count


COLUMNS: dict[str, tuple[Any, list]] = {
    "int8": (pa.array([1, -2, 127, None], pa.int8()), [1, -2, 3, None]),
    "uint64": (pa.array([0, 1, 2**64 - 1, None], pa.uint64()), [0, 1, 3, None]),
    "int64": (pa.array([2**63 - 1, -(2**63), 0, None], pa.int64()), [3, -2, 0, None]),
    "float32": (pa.array([0.5, NAN, INF, -INF], pa.float32()), [0.5, None, 3, -2]),
    "decimal": (
        pa.array([decimal.Decimal("0.25"), decimal.Decimal(10) ** 30, None, None],
                 pa.decimal128(38, 2)),
        [0.3, 3, None, None],
    ),
    "bool": (pa.array([True, False, None, True]), [1, 0, None, 1]),
    "text": (pa.array(["0.5", "abc", "1e40", " nan"]), [0.5, None, 3, None]),
    "coded": (pa.array(["1", "2", "1", None]).dictionary_encode(), [1, 2, 1, None]),
}  # fmt: skip


@pytest.mark.parametrize("kind", COLUMNS)
def test_numbers_of_every_type_are_clamped_and_counted(kind) -> None:
    column, numbers = COLUMNS[kind]
    data = oracle.table({"who": list("abcd"), "x": column}, {"x": X})
    known = [round(value * 10) for value in numbers if value is not None]
    assert oracle.exact(release.Sum(column="x"), data) == [[sum(known)]]
    assert oracle.rows_in(release.Mean(column="x"), data) == [len(known)]


@pytest.mark.parametrize(
    ("column", "values", "counts"),
    [
        (pa.array([1, 2, 2, None]), [1, 2], [1, 2, 1]),
        (pa.array(["1", "2", " 2", None]), [1, 2], [1, 2, 1]),
        (pa.array([True, False, True, None]), [False, True], [1, 2, 1]),
        (pa.array(["a'b", 'c"d', "é\n", "%"]), ["a'b", 'c"d', "é\n", "%"], [1, 1, 1, 1, 0]),
        (pa.array(["x", "y", "x", "z"]).dictionary_encode(), ["x", "y"], [2, 1, 1]),
        (pa.array([-(2**63), 2**63 - 1, 0, 5]), [-(2**63), 2**63 - 1], [1, 1, 2]),
    ],
)
def test_values_of_every_type_have_their_cells(column, values, counts) -> None:
    data = oracle.table({"who": list("abcd"), "v": column}, {"v": values})
    assert oracle.exact(release.Histogram(column="v"), data) == [counts]


@pytest.mark.parametrize(
    "who",
    [
        pa.array([1, 1, None, 2]),
        pa.array([1.0, 1.0, NAN, 2.0]),
        pa.array(["a", "a", None, "A"]),
        pa.array([datetime.date(2020, 1, 1)] * 2 + [None, datetime.date(2020, 1, 2)]),
        pa.array([b"\xff", b"\xff", None, b"\xfe"]),
        pa.array([decimal.Decimal("1.5")] * 2 + [None, decimal.Decimal("2.5")]),
    ],
    ids=lambda array: str(array.type),
)
def test_rows_without_an_entity_are_dropped_whatever_its_type(who) -> None:
    data = oracle.table({"who": who, "x": [1.0, 1.0, 1.0, 1.0]}, {"x": X})
    assert oracle.exact(release.Count(), data) == [[2]]
    assert oracle.exact(release.Sum(column="x"), data) == [[20]]


NAMES = ["privacy_unit", "lot", "rank", "key_0", "rows", "sum", "value", "low", "high", "people"]
NAMES += ["code", "select", "a b", 'q"q', "é", "key", "position", "name", "squares", "x.y", "order"]


def test_columns_may_have_any_name(tmp_path) -> None:
    """Among them all names that expressions and answers use themselves."""
    everything = {name: ["A", "B", "A"] for name in NAMES} | {"w ho": ["p", "q", "q"]}
    everything["num ber"] = ["1", "2", "3"]
    domains = {name: ["A", "B"] for name in NAMES} | {"num ber": Range(0, 3, step=1)}
    data = oracle.table(
        everything, domains, privacy_unit="w ho", max_groups=2, max_rows_per_group=2
    )
    for name in NAMES:
        quoted = '"' + name.replace('"', '""') + '"'
        query = release.Count(by=name, where=f"{quoted} = 'A'")
        answer = query.answer(data, query.estimate_cost(data, oracle.share(100)))
        assert [row[1] for row in answer["rows"]] == [2, 0, 0]
        assert len(set(answer["columns"])) == 4
        assert answer["columns"][1:] == ["value", "low", "high"]
    assert oracle.exact(release.Sum(column="num ber", by=("sum", "rows")), data)[0][0] == 4
    share = oracle.share(1, delta="1/10")
    others: list[Any] = [
        release.Keys(column="key"),
        release.Keys(column="value"),
        release.Top(by="rank", k=1),
        release.Quantile(column="num ber", points=4),
        release.Variance(column="num ber", by="squares"),
    ]
    for other in others:
        answer = other.answer(data, other.estimate_cost(data, share))
        assert len(set(answer["columns"])) == len(answer["columns"])


def test_an_entity_column_may_be_called_as_ours_is() -> None:
    data = oracle.table(
        {"privacy_unit": ["a", "b"], "x": [1.0, 2.0]}, {"x": X}, privacy_unit="privacy_unit"
    )
    assert oracle.exact(release.Sum(column="x"), data) == [[30]]
    data = oracle.table(
        {"lot": ["a", "b"], "rank": ["A", "B"]}, {"rank": ["A"]}, privacy_unit="lot"
    )
    assert oracle.exact(release.Count(by="rank"), data) == [[1, 1]]


def test_text_files_have_texts_and_the_same_answers(tmp_path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("who,x,ward\np,0.5,A\np,abc,A\nq,9,B\n,1,A\nr,,A\ns,-1\n", encoding="utf-8")
    data = wi.Table(path, "who", DOMAINS, max_rows_per_group=2, engine=oracle.ENGINE)
    assert data.name == "people"
    assert oracle.exact(release.Count(), data) == [[4]]
    assert oracle.exact(release.Sum(column="x"), data) == [[5 + 30 - 10]]
    assert oracle.exact(release.Count(by="ward"), data) == [[2, 0, 0, 2]]
    tabs = tmp_path / "people.tsv"
    tabs.write_text("who\tx\na\t1,5\nb\t2\n", encoding="utf-8")
    data = wi.Table(tabs, "who", {"x": X}, engine=oracle.ENGINE)
    assert oracle.exact(release.Sum(column="x"), data) == [[20]]


def test_files_and_catalogues_answer_alike(tmp_path) -> None:
    import duckdb
    import pyarrow.feather as feather

    rows = stored(rows_of(5))
    pq.write_table(rows, tmp_path / "one.parquet")
    (tmp_path / "many.parquet").mkdir()
    for part in (0, 1):
        piece = rows.slice(part * 10, 10 if part == 0 else None)
        pq.write_table(piece, tmp_path / "many.parquet" / f"{part}.parquet")
    feather.write_feather(rows, tmp_path / "one.arrow", compression="uncompressed")
    with duckdb.connect(tmp_path / "base.duckdb") as connection:
        connection.register("rows_in", rows)
        connection.execute("CREATE TABLE people AS SELECT * FROM rows_in")
    found = []
    for source in ("one.parquet", "many.parquet", "one.arrow", "base.duckdb::people"):
        data = wi.Table(
            f"{tmp_path}/{source}", "who", DOMAINS, max_rows_per_group=99, max_groups=99
        )
        found.append(oracle.exact(release.Sum(column="x", by="ward"), data))
        data.engine.close()
    assert found == [found[0]] * 4


def test_tops_find_the_truth_where_noise_is_small() -> None:
    wards = ["A"] * 60 + ["B"] * 30 + ["C"] * 11
    data = oracle.table({"who": list(range(101)), "w": wards}, {"w": ["C", "B", "A"]})
    top = release.Top(by="w", k=3)
    rows = top.answer(data, top.estimate_cost(data, oracle.share(1000)))["rows"]
    assert rows == [[1, "A"], [2, "B"], [3, "C"]]


def test_keys_show_counts_of_many_and_nothing_of_few() -> None:
    keys = ["many"] * 900 + [f"rare {n}" for n in range(100)] + [None] * 5
    data = oracle.table({"who": list(range(1005)), "k": keys})
    query = release.Keys(column="k")
    answer = query.answer(data, query.estimate_cost(data, oracle.share(1, delta="1/1000000000")))
    ((key, value, low, high),) = answer["rows"]
    assert key == "many"
    assert low < value < high and abs(value - 900) < 40


def test_the_maximum_is_of_those_present_only() -> None:
    """A column of the table that is called as ours must not be read in its place."""
    universe = [(f"p{n}", n) for n in range(12)]
    data = oracle.table({"who": ["p2", "p3", "zz"], "rank": [11, 11, 11], "name": ["p9"] * 3})
    plan = wi.calibrate(wi.Gamma(1.5), wi.families.Uninformed())
    query = release.Maximum(universe=universe)
    estimate = query.estimate_cost(data, Share(plan, oracle.share().epsilon))
    seen = {query.answer(data, estimate)["rows"][0][0] for _ in range(30)}
    assert seen == {3, 4}, "k = 2 places from rank 4 up"
    nobody = oracle.table({"who": pa.array([], pa.string())})
    estimate = query.estimate_cost(nobody, estimate.share)
    assert {query.answer(nobody, estimate)["rows"][0][0] for _ in range(30)} == {1, 2}


def test_a_synthetic_table_has_a_row_for_each_entity_in_no_telling_order(tmp_path) -> None:
    rng = random.Random(1)
    people = list(range(3000))
    rng.shuffle(people)
    ward = ["A" if who % 3 else "B" for who in people]
    data = oracle.table({"who": [*people, None], "ward": [*ward, "A"]}, {"ward": ["A", "B"]})
    query = release.Synthetic(columns=["ward"], path=str(tmp_path / "o.parquet"))
    estimate = query.estimate_cost(data, oracle.share(3, relation="replace"))
    (answer,) = query.answer(data, estimate)["rows"]
    assert data.engine.publish(query.path, answer[2])
    written = pq.read_table(tmp_path / "o.parquet").column("ward").to_pylist()
    assert answer[:2] == ["o.parquet", 3000] and len(written) == 3000
    assert written == sorted(written), "the order of rows would show who is where"
    kept = float(estimate.details.kept)
    truth = 2000 * kept + 1000 * (1 - kept) / 2
    assert abs(written.count("A") - truth) < 6 * math.sqrt(3000 / 4)
