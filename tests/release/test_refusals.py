"""Bad input: one clear message from the schema and the query alone, nothing spent, no traceback."""

from __future__ import annotations

import pyarrow as pa
import pytest

import release_oracle as oracle
import whosin as wi
from amounts import some
from whosin import release
from whosin.errors import InvalidInput, UnknownName, WhosinError
from whosin.release import Range, Session, Table, Values
from whosin.release.scenario import read_scenario

COLUMNS = {
    "who": ["a", "b"],
    "age": [30, 40],
    "ward": ["A", "B"],
    "day": pa.array([0, 1], pa.date32()),
    "deep": [{"x": 1}, {"x": 2}],
}
DOMAINS = {"age": Range(0, 100), "ward": ["A", "B"]}


@pytest.fixture(scope="module")
def data() -> Table:
    return oracle.table(COLUMNS, DOMAINS)


@pytest.fixture(scope="module")
def session(data, tmp_path_factory) -> Session:
    url = tmp_path_factory.mktemp("refusals") / "ledger.db"
    return Session(data, oracle.PLANS["replace"], url, share=1)


ODD = [None, 5, -1, 0.5, True, "", "x", b"x", [], [None], {}, (), object(), float("nan"), 10**400]


def quiet(call, *arguments, **options) -> None:
    """It works, or it raises one of ours, in one line."""
    message = "long enough"
    try:
        call(*arguments, **options)
    except WhosinError as error:
        message = str(error)
    except FileNotFoundError:
        pass
    assert "\n" not in message and 10 < len(message) < 700


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"entity": "whoo"}, "did you mean 'who'"),
        ({"entity": None}, "entity must be one of"),
        ({"entity": "deep"}, "entity must be a column of numbers, texts or dates"),
        ({"domains": {"agee": (0, 1)}}, "did you mean 'age'"),
        ({"domains": {"age": (5, 1)}}, "lower must be below upper"),
        ({"domains": {"age": "100..0"}}, "lower must be below upper"),
        ({"domains": {"age": ["x", "y"]}}, "column age must be a column of texts"),
        ({"domains": {"ward": [True, False]}}, "column ward must be a column of true and false"),
        ({"domains": {"day": (0, 1)}}, "column day must be a column of numbers"),
        ({"domains": {"deep": ["x"]}}, "column deep must be a column of texts"),
        ({"domains": {"age": {"lower": 0, "uper": 1}}}, "did you mean 'upper'"),
        ({"domains": {"age": {"lower": 0}}}, "an object with 'upper'"),
        ({"domains": {"age": range(10**9)}}, "values must be at most"),
        ({"domains": {"ward": ["A", "A"]}}, "different from each other"),
        ({"domains": {"ward": ["A", 1]}}, "all texts, or all whole numbers"),
        ({"domains": ["age"]}, "domains must be a mapping"),
        ({"rows": 0}, "rows must be a whole number of at least 1"),
        ({"groups": "2"}, "groups must be a whole number of at least 1"),
        ({"engine": "duckdb"}, "engine must be an engine"),
    ],
)
def test_tables_are_refused_by_their_schema(options, message) -> None:
    with pytest.raises(InvalidInput, match=message):
        oracle.table(COLUMNS, options.pop("domains", None), **options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 1), "lower must be below"),
        (("a", 1), "lower must be a finite number"),
        ((0, "inf"), "upper must be a finite number"),
        ((0, 1, 0), "step must be above 0"),
        ((0, 1, 5), "step must be small enough"),
        ((0, 1, "1e-12"), "step must be at least a billionth"),
        ((10**12, 10**12 + 1), "step must be small enough"),
        ((0, "1e200"), "lower and upper must be between"),
        ((0, 1, None, (0,)), "edges must be at least two"),
        ((0, 1, None, (1, 0)), "edges must be at least two"),
        ((0, 1, None, "01"), "edges must be a list"),
        ((0, 1, None, (0, None)), "edges must be a finite number"),
    ],
)
def test_ranges_are_refused(arguments, message) -> None:
    with pytest.raises(InvalidInput, match=message):
        Range(*arguments)


def test_default_steps_leave_room_for_sums() -> None:
    for low, high in ((0, 1), (-5, 5), (0, "1e90"), (0, "1e-90"), (1900, 2030), (10**6, 10**6 + 9)):
        least, most = Range(low, high).units
        assert least < most and max(abs(least), abs(most)) <= 10**9
        assert most - least <= 10**6


QUERIES = [
    (release.Count(where="agee > 1"), "did you mean 'age'"),
    (release.Count(where="sum(age) > 1"), "where must be a row expression"),
    (release.Count(by="day"), "one with a declared domain"),
    (release.Count(by="age"), "one with edges"),
    (release.Count(by=("ward", "ward")), "by must be different columns"),
    (release.Count(by=5), "by must be a list of columns"),  # type: ignore[arg-type]
    (release.Count(groups=0), "groups must be a whole number"),
    (release.Rows(rows="many"), "rows must be a whole number"),  # type: ignore[arg-type]
    (release.Sum(column="ward"), "a range, for numbers"),
    (release.Sum(column="wage"), "did you mean 'age'"),
    (release.Mean(column="day"), "one with a declared domain"),
    (release.Histogram(column="age"), "one with edges"),
    (release.Histogram(column=None), "column must be one of"),  # type: ignore[arg-type]
    (release.Quantile(column="age", quantile=1), "quantile must be a share above 0"),
    (release.Quantile(column="age", quantile="x"), "quantile must be a finite number"),
    (release.Quantile(column="age", points=1), "points must be a whole number"),
    (release.Quantile(column="age", points=True), "points must be a whole number"),
    (release.Top(by=(), k=1), "by must be at least one column"),
    (release.Top(by="ward", k=3), "k must be at most 2"),
    (release.Top(by="ward", k=0), "k must be a whole number"),
    (release.Keys(column="ward"), "asked under a plan with a delta"),
    (release.Maximum(universe=[("a", 1)]), "against uninformed adversaries only"),
    (release.Synthetic(columns=["ward"], path="x.csv"), "ending in .parquet"),
    (release.Synthetic(columns=["ward"], path="/nowhere/x.parquet"), "can be written to"),
    (release.Synthetic(columns=[], path="x.parquet"), "at least one column"),
    (release.Synthetic(columns=["ward"], path=5), "ending in .parquet"),  # type: ignore[arg-type]
    (release.Synthetic(columns=["ward"], path="x.parquet", where="age > 1"), "left out"),
    (release.Synthetic(columns=["ward"], path="x.parquet", prior=[1, 0]), "a list of 3"),
    (release.Synthetic(columns=["ward"], path="x.parquet", prior="abc"), "a list of 3"),
    (release.Synthetic(columns=["ward"], path="x.parquet", prior=["1/2", "1/4", "1/8"]), "add up"),
]


@pytest.mark.parametrize(("query", "message"), QUERIES, ids=lambda x: getattr(x, "kind", None))
def test_queries_are_refused_by_the_schema_and_nothing_is_spent(session, query, message) -> None:
    for call in (session.dry_run, session.ask):
        with pytest.raises(InvalidInput, match=message) as caught:
            call(query)
        assert "\n" not in str(caught.value)
    assert session.standing.debits == 0


def test_queries_are_refused_by_the_plan(data, tmp_path) -> None:
    session = Session(data, oracle.PLANS["add-remove"], tmp_path / "ledger.db", share=1)
    with pytest.raises(InvalidInput, match="a plan whose size is known"):
        session.ask(release.Synthetic(columns=["ward"], path=str(tmp_path / "x.parquet")))
    with pytest.raises(InvalidInput, match="noise must be laplace, under a plan without a delta"):
        session.ask(release.Count(), noise="gaussian")
    plan = wi.calibrate(wi.Gamma("1.5"), wi.families.Uninformed())
    session = Session(data, plan, tmp_path / "alone.db", share=1)
    people = [(name, place) for place, name in enumerate("abcdef")]
    for options, message in (
        ({"universe": people[:3]}, "at least 4 entities"),
        ({"universe": people, "where": "age > 1"}, "where must be left out"),
        ({"universe": [*people, ("a", 9)]}, "different entities"),
        ({"universe": [(["a"], 1)]}, "texts or whole numbers"),
        ({"universe": [("a", "x")]}, "a finite number"),
        ({"universe": 5}, "a list of"),
        ({"universe": ["ab"]}, "a list of"),
    ):
        with pytest.raises(InvalidInput, match=message):
            session.ask(release.Maximum(**options))
    assert session.standing.debits == 0


@pytest.mark.filterwarnings("ignore:the rows of")
@pytest.mark.parametrize("odd", some(ODD, 5), ids=[str(place) for place in range(len(ODD))])
def test_odd_values_anywhere_raise_nothing_else(data, session, tmp_path, odd) -> None:
    quiet(Table, odd, "who", name="x")
    quiet(oracle.table, COLUMNS, odd)
    quiet(oracle.table, COLUMNS, {"age": odd})
    quiet(oracle.table, COLUMNS, {"age": {"values": odd}})
    quiet(oracle.table, COLUMNS, {"age": {"edges": odd}})
    quiet(oracle.table, COLUMNS, {odd: (0, 1)} if odd.__hash__ else odd)
    quiet(Values, odd)
    for field in ("lower", "upper", "step", "edges"):
        quiet(lambda field=field: Range(**({"lower": 0, "upper": 1} | {field: odd})))
    for field in ("name", "where", "weight", "magnitude", "by", "rows", "groups"):
        quiet(lambda field=field: session.dry_run(release.Sum(column="age", **{field: odd})))
    for query in (
        lambda: release.Quantile(column=odd),
        lambda: release.Quantile(column="age", quantile=odd),
        lambda: release.Quantile(column="age", points=odd),
        lambda: release.Top(by=odd),
        lambda: release.Top(by="ward", k=odd),
        lambda: release.Keys(column=odd),
        lambda: release.Maximum(universe=odd),
        lambda: release.Synthetic(columns=odd, path="x.parquet"),
        lambda: release.Synthetic(columns=["ward"], path=odd),
        lambda: release.Synthetic(columns=["ward"], path="x.parquet", prior=odd),
    ):
        quiet(lambda query=query: session.dry_run(query()))
    quiet(session.dry_run, odd)
    quiet(session.dry_run, [release.Count(), odd])
    for field in ("share", "split", "noise"):
        quiet(lambda field=field: session.dry_run(release.Count(), **{field: odd}))
    quiet(Session, odd, oracle.PLANS["replace"], tmp_path / "l.db")
    quiet(Session, data, odd, tmp_path / "l.db")
    for field in ("dataset", "who", "request"):
        if odd is not None:
            quiet(
                lambda field=field: Session(
                    data, oracle.PLANS["replace"], tmp_path / "l.db", **{field: odd}
                )
            )
    assert session.standing.debits == 0


@pytest.mark.parametrize(
    "odd", [None, 5, [], "nowhere.parquet", "x.exe", "", "a::b", "::"], ids=repr
)
def test_sources_that_are_none(odd) -> None:
    with pytest.raises((InvalidInput, FileNotFoundError)):
        Table(odd, "who", name="x")


def test_files_that_are_not_what_they_say(tmp_path) -> None:
    for name in ("x.parquet", "x.arrow", "x.csv", "x.duckdb"):
        (tmp_path / name).write_bytes(b"\xff\x00 secret\n\n")
        source = f"{tmp_path / name}::t" if name.endswith("duckdb") else tmp_path / name
        with pytest.raises(InvalidInput) as caught:
            Table(source, "who")
        assert "secret" not in str(caught.value) or name == "x.csv"


def test_names_of_unknown_things_suggest_the_nearest(session) -> None:
    for options in ({"split": "weigths"}, {"noise": "gausian"}):
        with pytest.raises(UnknownName, match="did you mean"):
            session.dry_run(release.Count(), **options)


@pytest.mark.parametrize(
    ("engine", "key", "value"),
    [("duckdb", "master", "local[2]"), ("spark", "memory", "1GB")],
)
def test_settings_of_the_other_engine_are_refused(tmp_path, engine, key, value) -> None:
    """They used to be ignored."""
    data = {
        "target": {"epsilon": 1},
        "table": {"source": "t.csv", "entity": "who", "engine": engine, key: value},
        "queries": [{"kind": "count"}],
    }
    with pytest.raises(InvalidInput, match=f"{key} must be left out with the engine {engine}"):
        read_scenario(data, tmp_path).open_table()


def test_groups_cost_no_more_than_the_cells() -> None:
    """100 groups on a table of three cells were charged a hundredfold."""
    data = oracle.table({"who": [1], "ward": ["a"]}, {"ward": ["a", "b"]})
    share = oracle.share()
    for query in (release.Count, release.Rows):
        few, many = (query(by="ward", groups=g).offer(data, share) for g in (3, 100))
        assert many.charge.cost("add-remove") == few.charge.cost("add-remove")
        assert many.parts[0].noise.scale == few.parts[0].noise.scale == 3
        assert many.charge.what["counted"]["groups"] == 3
