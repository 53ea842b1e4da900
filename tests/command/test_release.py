"""`whosin release` and `whosin inspect`: scenarios, dry runs, files, retries, refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from whosin.app.example_data import write_hospital
from whosin.errors import InvalidInput
from whosin.release import DuckDB
from whosin.release.scenario import load_scenario, read_scenario
from whosin.release.table import dataset_name
from whosin.report.summary import promise_sentence

SMALL = {
    "adversary": {"prior": "0.05..0.5"},
    "target": {"posterior": 0.6},
    "table": {"source": "t.csv", "privacy_unit": "who"},
    "domains": {"ward": ["a", "b"], "age": "0..100"},
    "queries": [{"kind": "count"}],
}


@pytest.fixture
def hospital(tmp_path):
    return write_hospital(tmp_path, patients=300)


@pytest.fixture
def small(tmp_path):
    (tmp_path / "t.csv").write_text("who,ward,age\nx,a,3\ny,b,50\n", encoding="utf-8")
    return tmp_path


def changed(**parts: object) -> dict:
    return {**SMALL, **parts}


def test_a_dry_run_spends_and_writes_nothing(run, hospital):
    before = sorted(path.name for path in hospital.parent.iterdir())
    code, out, err = run("release", hospital, "--dry-run")
    assert (code, err) == (0, "") and "Nothing is spent" in out and "visits by ward" in out
    code, out, _err = run("release", hospital, "--dry-run", "--json")
    estimates = json.loads(out)["estimates"]
    assert code == 0 and len(estimates) == 4
    total = sum(estimate["costs"]["add-remove"]["epsilon"] for estimate in estimates)
    assert 0.405465108098 < total <= 0.4054651081082
    assert sorted(path.name for path in hospital.parent.iterdir()) == before


def test_questions_without_groups_about_rows_that_are_people(run, small):
    """The suggestions try both at once: nothing of a row is needed but that it is there."""
    sections = [
        '[adversary]\nprior = "0.05..0.5"\n[target]\nposterior = 0.6',
        '[table]\nsource = "t.csv"\nprivacy_unit = "row"',
        '[[queries]]\nkind = "count"\n[[queries]]\nkind = "rows"',
    ]
    (small / "s.toml").write_text("\n".join(sections), encoding="utf-8")
    code, out, err = run("release", small / "s.toml", "--dry-run", "--json")
    assert code == 0, err
    assert len(json.loads(out)["estimates"]) == 2


def test_the_whole_round(run, hospital):
    folder = hospital.parent
    report, answers = folder / "out.html", folder / "out.json"
    code, out, err = run("release", hospital, "--report", report, "--save", answers)
    assert code == 0 and all("warning: " in line for line in err.splitlines())
    statement = (
        out[out.index("  Privacy unit: column patient;") :].partition("\n\n")[0].splitlines()
    )
    assert len(statement) > 1 and all(line.startswith("  ") for line in statement)
    out = " ".join(out.split())
    assert "patients" in out and "from 50.0% to at most 60.0%" in out
    page = report.read_text(encoding="utf-8")
    for part in ("The promise", "<svg", "patients over 40 by age", "T11", "head "):
        assert part in page
    assert "http://" not in page.replace("http://www.w3.org", "") and "https://" not in page
    data = json.loads(answers.read_text(encoding="utf-8"))
    assert data["answers"][0]["title"] == "patients"
    head = data["budget_state"]["head"]
    written = [each for each in folder.iterdir() if each.suffix in (".html", ".json", ".db")]
    assert {each.stat().st_mode & 0o777 for each in written} == {0o600}
    assert head in page and f"head {head}" in out
    second = folder / "second.html"
    code, out, err = run("release", hospital, "--again", "--report", second)
    assert (code, out) == (1, "") and "left" in err and not second.exists()
    for kind in ("csv", "parquet"):  # shown again, and not paid again
        assert run("release", hospital, "--save", folder / f"answers.{kind}")[0] == 0
        names = sorted(each.name for each in folder.glob(f"answers-*.{kind}"))
        assert names[1] == f"answers-2-visits-by-ward.{kind}" and len(names) == 4
    code, out, _err = run("ledger", "verify", folder / "ledger.db", "hospital", "--json")
    assert code == 0 and [each["head"] for each in json.loads(out)["datasets"]] == [head]


def test_an_interrupted_release_goes_on_under_its_request(run, hospital, monkeypatch):
    whole = DuckDB.run
    calls = []

    def interrupted(self, expression, progress=None):
        calls.append(1)
        if len(calls) == 4:  # two are for the table's fingerprint
            raise KeyboardInterrupt
        return whole(self, expression, progress)

    monkeypatch.setattr(DuckDB, "run", interrupted)
    code, _out, err = run("release", hospital, "--request", "monday")
    assert code == 130 and "nothing was spent" in err  # the look at the rows was interrupted
    calls.clear()
    code, _out, err = run("release", hospital, "--request", "monday", "--no-preflight")
    assert code == 130 and "the debit stands" in err and "monday" in err
    assert "there is no request 'monday' yet: this is a new one" in err
    monkeypatch.setattr(DuckDB, "run", whole)
    code, out, err = run("release", hospital, "--request", "monday", "--json")
    first = json.loads(out)
    assert code == 0 and err == "" and first["budget_state"]["debits"] == 4
    code, out, _err = run("release", hospital, "--request", "monday", "--json")
    assert code == 0 and json.loads(out)["answers"] == first["answers"]


def test_a_request_that_is_not_there_is_said_to_be_new(run, hospital):
    """One with a slip in its name paid again without a word."""
    select = ("sql", hospital, "SELECT COUNT(*) FROM hospital", "--share", "1/4", "--json")
    for request, debits in (("monday", 1), ("monady", 2)):
        code, out, err = run(*select, "--request", request)
        assert code == 0 and json.loads(out)["budget_state"]["debits"] == debits
        said = f"whosin: there is no request {request!r} yet: this is a new one"
        assert said in err.splitlines()
    assert "there is no request" not in run(*select)[2] + run(*select, "--request", "monday")[2]


def test_a_failing_engine_says_nothing_of_its_own(run, hospital, monkeypatch):
    def failing(self, expression, progress=None):
        raise RuntimeError("row P17 is not a number")

    monkeypatch.setattr(DuckDB, "run", failing)
    code, out, err = run("release", hospital)
    assert (code, out) == (3, "") and "nothing was spent" in err and "P17" not in err
    code, out, err = run("release", hospital, "--no-preflight")
    assert (code, out) == (3, "") and "the debit stands" in err and "P17" not in err


WORTHLESS = [
    ('"surgery"', '"Surgery"', ["ward: no row has the declared 'Surgery'", "'surgery' ("]),
    ("edges = [0, 18, 40, 65, 80, 120]", "edges = [500, 600]", ["age: ", "outside the range"]),
    ('where = "age >= 40"', 'where = "age >= 400"', ["where age >= 400: true of no row"]),
]


def test_a_look_at_the_rows_stops_a_release_that_would_be_worthless(run, hospital):
    """A misspelt category once spent a whole budget."""
    text = hospital.read_text(encoding="utf-8")
    for right, wrong, said in WORTHLESS:
        assert right in text
        hospital.write_text(text.replace(right, wrong), encoding="utf-8")
        code, out, err = run("release", hospital)
        assert (code, out) == (1, "") and "before anything was spent" in err
        assert all(part in err for part in said)
        assert not hospital.with_name("ledger.db").exists()
    assert run("release", hospital, "--no-preflight", "--json")[0] == 0


def test_a_person_at_a_terminal_is_asked_once_more(run, hospital, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for said, code in (("n\n", 1), ("y\n", 0)):
        monkeypatch.setattr("typer.confirm", lambda *_, said=said, **__: said == "y\n")
        got, _, err = run("release", hospital)
        assert got == code and "4 answers will spend ε = " in err
        assert promise_sentence(load_scenario(hospital).plan) in " ".join(err.split())
        assert ("nothing was spent" in err) is bool(code)
    assert "will spend" not in run("release", hospital, "--yes")[2]


def test_the_curators_look_is_marked(run, hospital):
    code, out, _err = run("inspect", hospital)
    assert code == 0 and "not for publication" in out and "privacy units" in out
    code, out, _err = run("inspect", hospital, "--json")
    data = json.loads(out)
    assert data["private"] is True
    assert {"what": "privacy units", "rows": 300} in data["findings"]
    assert not (hospital.parent / "ledger.db").exists()


@pytest.mark.parametrize(
    ("parts", "place"),
    [
        ({"tabel": {}}, ""),
        ({"target": {"posteriour": 0.6}}, "target"),
        ({"target": {}}, "target"),
        ({"target": {"posterior": 0.6, "gamma": 2}}, "target"),
        ({"target": {"posterior": "much"}}, "target.posterior"),
        ({"adversary": {"prior": "0.9..0.1"}}, "adversary.prior"),
        ({"adversary": {"linked": 3, "prior": 0.5}}, "adversary.linked"),
        ({"adversary": {"uninformed": True, "known": 3}}, "adversary.known"),
        ({"table": {"source": "t.csv", "privacy_unit": "who", "engine": "duck"}}, "table.engine"),
        ({"queries": [{"kind": "cuont"}]}, "queries[0]"),
        ({"queries": [{"kind": "count", "wher": "x"}]}, "queries[0]"),
        ({"queries": [{"kind": "count", "weight": 0}]}, "queries[0].weight"),
        ({"domains": {"age": {"lower": 5, "uper": 7}}}, "domains.age"),
        ({"ledger": {"url": 3}}, ""),
        ({"budget": {"split": "fair"}}, "budget.split"),
        ({"adversary": {"prior": True}}, "adversary.prior"),
        ({"adversary": {"prior": [0.1, True]}}, "adversary.prior"),
        ({"target": {"posterior": True}}, "target.posterior"),
        (
            {"queries": [{"kind": "count", "where": "who in (select who from t)"}]},
            "queries[0].where",
        ),
    ],
)
def test_wrong_scenarios(small, parts, place):
    """Each is refused from its text and the schema alone, naming the field."""
    with pytest.raises(InvalidInput) as caught:
        read_scenario(changed(**parts), small).estimate_cost()
    assert not place or (caught.value.path or caught.value.field) == place
    assert not (small / "ledger.db").exists()


@pytest.mark.parametrize("part", ["target", "table", "queries"])
def test_a_scenario_says_what_it_lacks(small, part):
    lacking = {key: value for key, value in SMALL.items() if key != part}
    with pytest.raises(InvalidInput) as caught:
        read_scenario(lacking, small)
    assert f"[{part}]" in str(caught.value).replace("[[", "[").replace("]]", "]")


@pytest.mark.parametrize("content", [b'{"a": 1}', b"hello", b"\xff\xfe", b"[1]"])
def test_a_file_that_is_no_plan(refused_at, tmp_path, content):
    (tmp_path / "p.json").write_bytes(content)
    ledger = tmp_path / "l.db"
    refused_at("ledger", "create", ledger, "d", "--plan", tmp_path / "p.json")
    assert not ledger.exists()


@pytest.mark.parametrize("source", ["parts", "parts/*.csv"])
def test_a_source_of_several_files(small, source):
    (small / "parts").mkdir()
    for name in ("one.csv", "two.csv"):
        (small / "parts" / name).write_text("who,ward,age\nx,a,3\n", encoding="utf-8")
    found = read_scenario(
        changed(table={"source": source, "privacy_unit": "who"}), small
    ).open_table()
    assert found.name == "parts" and len(found.engine.run(found.data)) == 2


@pytest.mark.parametrize("text", ["[table", "x = 1", "\x00"])
def test_files_that_are_no_scenario(run, tmp_path, text):
    path = tmp_path / "s.toml"
    path.write_text(text, encoding="utf-8")
    code, out, err = run("release", path)
    assert (code, out) == (2, "") and "Traceback" not in err


def test_datasets_are_called_after_their_files():
    for source in ("data/adult.csv.gz", "adult.csv", "adult/*.parquet", "base.sqlite::adult"):
        assert dataset_name(source) == "adult"


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz", "people.Parquet"])
def test_a_table_is_no_scenario(refused_at, tmp_path, name):
    (tmp_path / name).write_bytes(b"\x1f\x8b" + bytes(2_000_000))
    for words in (("release",), ("inspect",)):
        assert refused_at(*words, tmp_path / name) == "scenario"


def test_other_wrong_calls(run, small, hospital):
    assert run("release", small / "missing.toml")[0] == 2
    assert run("release", hospital, "--save", "x.xls")[0] == 2
    assert run("release", hospital, "--report", "x.pdf")[0] == 2
    assert run("release", hospital, "--report", small / "nowhere" / "x.html")[0] == 2
    assert not (hospital.parent / "ledger.db").exists()
    text = hospital.read_text(encoding="utf-8").replace("hospital.parquet", "gone.parquet")
    other = hospital.with_name("other.toml")
    other.write_text(text, encoding="utf-8")
    code, _out, err = run("release", other)
    assert code == 2 and "no such file" in err


def test_paths_are_relative_to_the_scenario(hospital, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    loaded = load_scenario(hospital)
    assert loaded.table.source == str(hospital.parent / "hospital.parquet")
    assert loaded.ledger == str(hospital.parent / "ledger.db")
    assert list(Path().iterdir()) == []


def test_means_of_small_groups_are_said_before_they_are_paid(run, tmp_path, monkeypatch):
    """Nobody said how many people there are: the curator's look does, and the person may say no."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    (tmp_path / "t.toml").write_text(
        """
        [target]
        posterior = 0.6
        [adversary]
        prior = "0.05..0.5"
        [table]
        source = "t.csv"
        privacy_unit = "who"
        [domains]
        age = { lower = 0, upper = 100 }
        [[queries]]
        kind = "mean"
        column = "age"
        """,
        encoding="utf-8",
    )
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    for people, small in ((4, True), (400, False)):
        rows = "".join(f"p{n},{n % 100}\n" for n in range(people))
        (tmp_path / "t.csv").write_text(f"who,age\n{rows}", encoding="utf-8")
        code, out, err = run("release", tmp_path / "t.toml")
        assert (code, out) == (1, "") and "was spent" in err
        assert ("the whole declared range" in err) is small
        assert not (tmp_path / "ledger.db").exists()
    out = " ".join(run("release", tmp_path / "t.toml", "--dry-run")[1].split())
    assert re.search(r"Below [0-9]+ rows it says nothing", out)
