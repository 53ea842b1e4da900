"""Bad input: one clear message from the schema and the query alone, nothing spent, no traceback."""

from __future__ import annotations

import pyarrow as pa
import pytest

import release_oracle as oracle
import whosin as wi
from amounts import some
from refusals import refused
from whosin import release
from whosin.errors import InvalidInput, UnknownName, WhosinError
from whosin.release import Range, Session, Table, Values
from whosin.release.scenario import read_scenario
from whosin.release.sql import parse_queries

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
    ("options", "field"),
    [
        ({"privacy_unit": "whoo"}, "privacy_unit"),
        ({"privacy_unit": None}, "privacy_unit"),
        ({"privacy_unit": "deep"}, "privacy_unit"),
        ({"domains": {"agee": (0, 1)}}, "column"),
        ({"domains": {"age": (5, 1)}}, "lower"),
        ({"domains": {"age": "100..0"}}, "lower"),
        ({"domains": {"age": ["x", "y"]}}, "column age"),
        ({"domains": {"ward": [True, False]}}, "column ward"),
        ({"domains": {"day": (0, 1)}}, "column day"),
        ({"domains": {"deep": ["x"]}}, "column deep"),
        ({"domains": {"age": {"lower": 0, "uper": 1}}}, "key of the domain of age"),
        ({"domains": {"age": {"lower": 0}}}, "domain of age"),
        ({"domains": {"age": range(10**9)}}, "values"),
        ({"domains": {"ward": ["A", "A"]}}, "values"),
        ({"domains": {"ward": ["A", 1]}}, "values"),
        ({"domains": ["age"]}, "domains"),
        ({"max_rows_per_group": 0}, "max_rows_per_group"),
        ({"max_groups": "2"}, "max_groups"),
        ({"engine": "duckdb"}, "engine"),
    ],
)
def test_tables_are_refused_by_their_schema(options, field) -> None:
    with refused(field):
        oracle.table(COLUMNS, options.pop("domains", None), **options)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((1, 1), "lower"),
        (("a", 1), "lower"),
        ((0, "inf"), "upper"),
        ((0, 1, 0), "step"),
        ((0, 1, 5), "step"),
        ((0, 1, "1e-12"), "step"),
        ((10**12, 10**12 + 1), "step"),
        ((0, "1e200"), "lower and upper"),
        ((0, 1, None, (0,)), "edges"),
        ((0, 1, None, (1, 0)), "edges"),
        ((0, 1, None, "01"), "edges"),
        ((0, 1, None, (0, None)), "edges"),
    ],
)
def test_ranges_are_refused(arguments, field) -> None:
    with refused(field):
        Range(*arguments)


def test_default_steps_leave_room_for_sums() -> None:
    for low, high in ((0, 1), (-5, 5), (0, "1e90"), (0, "1e-90"), (1900, 2030), (10**6, 10**6 + 9)):
        least, most = Range(low, high).units
        assert least < most and max(abs(least), abs(most)) <= 10**9
        assert most - least <= 10**6


QUERIES = [
    (release.Count(where="agee > 1"), "column in where"),
    (release.Count(where="sum(age) > 1"), "where"),
    (release.Count(by="day"), "column"),
    (release.Count(by="age"), "domain of age"),
    (release.Count(by=("ward", "ward")), "by"),
    (release.Count(by=5), "by"),  # type: ignore[arg-type]
    (release.Count(max_groups=0), "max_groups"),
    (release.Rows(max_rows_per_group="many"), "max_rows_per_group"),  # type: ignore[arg-type]
    (release.Sum(column="ward"), "domain of ward"),
    (release.Sum(column="wage"), "column"),
    (release.Mean(column="day"), "column"),
    (release.Histogram(column="age"), "domain of age"),
    (release.Histogram(column=None), "column"),  # type: ignore[arg-type]
    (release.Quantile(column="age", quantile=1), "quantile"),
    (release.Quantile(column="age", quantile="x"), "quantile"),
    (release.Quantile(column="age", points=1), "points"),
    (release.Quantile(column="age", points=True), "points"),
    (release.Top(by=(), k=1), "by"),
    (release.Top(by="ward", k=3), "k"),
    (release.Top(by="ward", k=0), "k"),
    (release.Keys(column="ward"), "keys"),
    (release.Maximum(universe=[("a", 1)]), "maximum"),
    (release.Synthetic(columns=["ward"], path="x.csv"), "path"),
    (release.Synthetic(columns=["ward"], path="/nowhere/x.parquet"), "path"),
    (release.Synthetic(columns=[], path="x.parquet"), "columns"),
    (release.Synthetic(columns=["ward"], path=5), "path"),  # type: ignore[arg-type]
    (release.Synthetic(columns=["ward"], path="x.parquet", where="age > 1"), "where"),
    (release.Synthetic(columns=["ward"], path="x.parquet", prior=[1, 0]), "prior"),
    (release.Synthetic(columns=["ward"], path="x.parquet", prior="abc"), "prior"),
    (release.Synthetic(columns=["ward"], path="x.parquet", prior=["1/2", "1/4", "1/8"]), "prior"),
]


@pytest.mark.parametrize(("query", "field"), QUERIES, ids=lambda x: getattr(x, "kind", None))
def test_queries_are_refused_by_the_schema_and_nothing_is_spent(session, query, field) -> None:
    for call in (session.dry_run, session.ask):
        with refused(field):
            call(query)
    assert session.budget_state.debits == 0


def test_queries_are_refused_by_the_plan(data, tmp_path) -> None:
    session = Session(data, oracle.PLANS["add-remove"], tmp_path / "ledger.db", share=1)
    with refused("synthetic"):
        session.ask(release.Synthetic(columns=["ward"], path=str(tmp_path / "x.parquet")))
    with refused("noise"):
        session.ask(release.Count(), noise="gaussian")
    plan = wi.calibrate(wi.Gamma("1.5"), wi.families.Uninformed())
    session = Session(data, plan, tmp_path / "alone.db", share=1)
    people = [(name, place) for place, name in enumerate("abcdef")]
    for options, field in (
        ({"universe": people[:3]}, "universe"),
        ({"universe": people, "where": "age > 1"}, "where"),
        ({"universe": [*people, ("a", 9)]}, "universe"),
        ({"universe": [(["a"], 1)]}, "universe"),
        ({"universe": [("a", "x")]}, "value in the universe"),
        ({"universe": 5}, "universe"),
        ({"universe": ["ab"]}, "universe"),
    ):
        with refused(field):
            session.ask(release.Maximum(**options))
    assert session.budget_state.debits == 0


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
    for field in ("name", "where", "weight", "magnitude", "by", "max_rows_per_group", "max_groups"):
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
    assert session.budget_state.debits == 0


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
        "table": {"source": "t.csv", "privacy_unit": "who", "engine": engine, key: value},
        "queries": [{"kind": "count"}],
    }
    with refused(key):
        read_scenario(data, tmp_path).open_table()


def test_groups_cost_no_more_than_the_cells() -> None:
    """100 groups on a table of three cells were charged a hundredfold."""
    data = oracle.table({"who": [1], "ward": ["a"]}, {"ward": ["a", "b"]})
    share = oracle.share()
    for query in (release.Count, release.Rows):
        few, many = (query(by="ward", max_groups=g).estimate_cost(data, share) for g in (3, 100))
        assert many.spend.cost("add-remove") == few.spend.cost("add-remove")
        assert many.parts[0].noise.width == few.parts[0].noise.width == 3
        assert many.spend.what["counted"]["max_groups"] == 3


def test_nobody_groups_by_whose_row_it_is(tmp_path) -> None:
    """It was to be declared, and was said to differ between the rows of one person."""
    rows = {"who": ["a", "b"], "ward": ["A", "B"]}
    with pytest.raises(InvalidInput, match="'who' says whose row it is") as caught:
        release.Count(by="who").cells(oracle.table(rows, {"ward": ["A", "B"]}))
    assert not caught.value.paste
    with pytest.raises(InvalidInput, match="'who' says whose row it is"):
        parse_queries("SELECT who, COUNT(*) FROM people GROUP BY who", oracle.table(rows))
    declared = oracle.table(rows, {"who": ["a", "b"], "ward": ["A", "B"]})
    [caution] = release.Count(by=("who", "ward")).cautions(declared)
    assert caution.columns == ("ward",) and not release.Count(by="who").cautions(declared)
