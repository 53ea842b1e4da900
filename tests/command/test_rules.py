"""Rules on the command line: `verify --delta` and `rules plan`."""

from __future__ import annotations

import json

import pytest

from whosin import rules


def test_verify_says_a_bracket_at_a_delta(run):
    """`--delta` turns γ into a bracket: it holds above, is refuted below and undecided between."""
    base = "verify --mechanism suppress --below 5 --entities 100 --delta 1e-3 "
    base += "--family at-most-known=5:0.05..0.5 "
    code, out, _ = run(base + "--json")
    data = json.loads(out)
    assert code == 0 and data["delta"] == 1e-3 and not data["exact"]
    assert 1 < data["lower"] < data["value"] < 10
    middle = (data["lower"] + data["value"]) / 2
    for claim, expected in ((data["value"] + 0.01, 0), (data["lower"] - 0.01, 1), (middle, 4)):
        assert run(base + f"--at-most {claim}")[0] == expected
    words = run(base)[1]
    assert "at most" in words and "The promise may fail with probability 0.001" in words


def test_verify_against_informed_people_is_infinite_in_words(run):
    call = "verify --mechanism round --base 5 --entities 40 --delta 0.01 --family independent"
    code, out, _ = run(call)
    assert code == 0 and "∞" in out
    assert "which is impossible if the person is out" in out


def test_a_cell_key_from_a_file(run, tmp_path):
    path = tmp_path / "keys.csv"
    path.write_text("i,j,p\n0,0,1\n1,0,0.5\n1,2,0.5\n2,1,.25\n2,2,.5\n2,3,.25\n", "utf-8")
    call = f"verify --mechanism cell-key --table {path} --entities 30 --family uninformed --json"
    code, out, _ = run(call + " --delta 0.01")
    assert code == 0 and json.loads(out)["value"] < 3
    path.write_text("i,j,p\n0,0,0.7\n", "utf-8")
    code, _, err = run(call)
    assert code == 2 and "count 0" in err


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ("--mechanism suppress --below 0 --entities 9", "--below"),
        ("--mechanism suppress --entities 9", "--below"),
        ("--mechanism suppress --below 5 --zeros no --entities 9", "--zeros"),
        ("--mechanism round --base 1 --entities 9", "--base"),
        ("--mechanism exact --entities 9 --delta 2", "--delta"),
        ("--mechanism exact --entities 9 --delta 0.1 --notion dp", "--delta"),
    ],
)
def test_wrong_calls_say_which_option(refused_at, options, place):
    found = refused_at(f"verify {options}")
    assert found == place or not place


@pytest.fixture
def one_search(monkeypatch):
    """A plan is searched for once, however a test has it printed."""
    search, found = rules.plan_rule, {}

    def plan(*given):
        if repr(given) not in found:
            found[repr(given)] = search(*given)
        return found[repr(given)]

    monkeypatch.setattr(rules, "plan_rule", plan)
    return found


def test_plan_finds_the_smallest_threshold(run, one_search):
    call = "rules plan --rule suppress --posterior 0.6 --prior 0.3..0.5 --known 2 --delta 0.1 "
    call += "--people 20"
    code, out, _ = run(call + " --json")
    data = json.loads(out)
    assert code == 0 and data["keeps"] and data["failure"]["upper"] <= data["delta"] == 0.1
    assert data["people_are"] == "at least"
    assert [each["kind"] for each in data["beside"]] == ["geometric", "laplace"]
    code, words, _ = run(call)
    words = " ".join(words.split())
    assert code == 0 and f"Suppress counts below {data['parameter']}" in words
    assert "It is for someone who knows at most 2 people" in words
    assert "20 people or any larger number" in words
    assert "It does not hold for someone who may know everyone else" in words
    assert len(one_search) == 1


def test_a_population_that_does_not_exist_is_said_at_once(run):
    call = (
        "rules plan --rule population --family fixed-probability=0.3 --posterior 0.6 --delta 0.01"
    )
    code, out, _ = run(call + " --json")
    data = json.loads(out)
    assert code == 0 and not data["keeps"] and data["parameter"] is None
    code, words, _ = run(call)
    assert code == 0 and "No population keeps this promise" in words


def test_plan_is_worded_for_an_attribute(run, one_search):
    """Everyone is known to be in, and the secret is a value: the same numbers, in other words."""
    call = "rules plan --rule population --posterior 0.6 --prior 0.1..0.5 --known 2 --delta 0.1"
    call += " --people 30"
    membership, attribute = (json.loads(run(f"{call} --json --secret {each}")[1])
                             for each in ("membership", "attribute"))  # fmt: skip
    assert (membership.pop("secret"), attribute.pop("secret")) == ("membership", "attribute")
    assert membership == attribute and len(one_search) == 1
    words = {each: run(f"{call} --secret {each}")[1] for each in ("membership", "attribute")}
    assert "has the value" in words["attribute"] and "has the value" not in words["membership"]


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ("--rule round --delta 0.1 --people 9", "--known"),
        ("--rule round --known 2 --people 9", "--delta"),
        ("--rule round --known 2 --delta 0.1", "--people"),
        ("--rule round --known 10 --delta 0.1 --people 9", "--known"),
        ("--rule hide --known 1 --delta 0.1 --people 9", "--rule"),
        ("--rule round --zeros hidden --known 1 --delta 0.1 --people 9", "--zeros"),
    ],
)
def test_wrong_plans_of_rules_say_which_option(refused_at, options, place):
    assert refused_at(f"rules plan --posterior 0.6 --prior 0.1..0.5 {options}") == place


def test_an_earlier_table_comes_with_its_population(refused_at):
    call = "rules check now.csv --population frame.csv --prior 0.1"
    assert refused_at(f"{call} --before old.csv") == "--population-before"
    assert refused_at(f"{call} --population-before old.csv") == "--before"


def test_a_long_table_is_refused_with_its_wide_form(run, tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("ward,sex,count\nNorth,f,12\nNorth,m,3\n", encoding="utf-8")
    code, out, err = run("rules", "check", path, "--population", path, "--prior", "0.1")
    assert (code, out) == (2, "") and "wide" in err
