"""Whose budget a release is paid from: another month, a correction, a copy, the same again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

SCENARIO = """
[adversary]
prior = "0.05..0.5"
[target]
posterior = 0.6
[table]
source = "{name}.csv"
privacy_unit = "person"
[domains]
ward = ["x", "y"]
[budget]
share = "1/4"
[[queries]]
kind = "histogram"
column = "ward"
"""
MONTHS = {
    "january": "a,x b,y c,x",
    "february": "a,x b,y d,y",
    "others": "q,x r,y",
    "copy": "c,x a,x b,y",
}


@pytest.fixture
def release(run, tmp_path):
    """Release a month; its code, its answer or None, and what was said."""
    for name, rows in MONTHS.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(["person,ward", *rows.split()]) + "\n")
        (tmp_path / f"{name}.toml").write_text(SCENARIO.format(name=name))

    def call(name: str, *options: str) -> tuple[int, dict | None, str]:
        code, out, err = run("release", tmp_path / f"{name}.toml", "--json", *options)
        return code, json.loads(out) if out else None, err

    return call


def test_the_same_release_again_shows_its_answer_and_spends_nothing(release, tmp_path):
    code, first, err = release("january")
    assert (code, err) == (0, "") and first["budget_state"]["debits"] == 1
    assert first["answers"][0]["name"] and first["spent"] == pytest.approx(first["left"] / 3)
    code, second, err = release("january")
    assert code == 0 and "asked before" in err
    assert second["answers"] == first["answers"] and second["request"] == first["request"]
    assert second["budget_state"]["debits"] == 1
    code, third, _ = release("january", "--again")
    assert code == 0 and third["budget_state"]["debits"] == 2
    assert third["request"] != first["request"]
    # Another question, another share or another plan is new.
    path = tmp_path / "january.toml"
    path.write_text(path.read_text().replace('"1/4"', '"1/5"'))
    assert release("january")[1]["budget_state"]["debits"] == 3


def test_an_interrupted_release_goes_on_when_it_is_asked_again(release, monkeypatch):
    from whosin.release import DuckDB

    def failing(self, expression, progress=None):
        raise RuntimeError("no")

    with monkeypatch.context() as patched:
        patched.setattr(DuckDB, "run", failing)
        code, _, err = release("january", "--no-preflight")
    assert code == 3 and "the debit stands" in err
    code, _, err = release("january")
    assert code == 1 and "suspended" in err  # until its curator has looked


def test_another_month_is_refused_until_somebody_says_whose_it_is(release, run, tmp_path):
    assert release("january")[0] == 0
    code, out, err = release("february")
    assert (code, out) == (1, None)
    assert "--continues january" in err and "--new-people" in err
    shown = json.loads(run("ledger", "show", tmp_path / "ledger.db", "--json")[1])
    assert "february" not in json.dumps(shown)
    code, out, _ = release("february", "--continues", "january")
    assert code == 0
    assert (out["budget_state"]["dataset"], out["budget_state"]["debits"]) == ("january", 2)
    code, same, err = release("february", "--continues", "january")
    assert code == 0 and same["answers"] == out["answers"] and "asked before" in err
    assert same["budget_state"]["debits"] == 2
    # The first month's rows are not those of the dataset any more.
    assert release("january")[0] == 1


def test_new_people_are_recorded_and_copies_are_refused(release, run, tmp_path):
    assert release("january")[0] == 0
    code, out, err = release("copy", "--new-people")
    assert (code, out) == (1, None) and "january" in err
    code, out, _ = release("others", "--new-people")
    assert code == 0 and out["budget_state"]["debits"] == 1
    ledger: Path = tmp_path / "ledger.db"
    history = run("ledger", "export", ledger, "others")[1]
    assert "by the curator" in history and "january" in history


def test_a_release_about_new_people_goes_on_after_a_failure(release, monkeypatch):
    """What is said of the people is not part of a question, which is asked again without it."""
    from whosin.errors import StoreFailed
    from whosin.ledger import Ledger

    def failing(self, *given):
        raise StoreFailed("the disk is full")

    assert release("january")[0] == 0
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "answer_debits", failing)
        assert release("others", "--new-people")[0] == 3
    code, out, _ = release("others", "--new-people")
    assert code == 0 and out["budget_state"]["debits"] == 1


def test_a_request_with_a_new_name_is_looked_at_too(release, tmp_path):
    """Naming a request once skipped the look at the rows."""
    path = tmp_path / "january.toml"
    path.write_text(path.read_text().replace('"x"', '"X"'))
    code, out, err = release("january", "--request", "monday")
    assert (code, out) == (1, None) and "before anything was spent" in err
    assert release("january", "--request", "monday", "--no-preflight")[0] == 0
    assert release("january", "--request", "monday")[0] == 0  # paid before: not looked at again
