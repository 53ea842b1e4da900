"""Bindings on the command and for the users of a server."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

import whosin as wi
from web_server import program, served
from whosin.app.cli.main import main
from whosin.app.example_data import write_hospital
from whosin.app.web.access import Visitor, add_user, read_curators, remove_user
from whosin.app.web.server import running
from whosin.release.scenario import load_scenario

BASE = {
    "adversary": {"prior": "0.05..0.5"},
    "target": {"posterior": "0.6"},
    "table": {"source": "hospital.parquet", "privacy_unit": "patient"},
    "domains": {"ward": ["surgery", "medicine", "maternity", "children"]},
    "queries": [{"kind": "count", "name": "patients"}],
    "budget": {"share": "1/10"},
}


@pytest.fixture
def run(capsys):
    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([str(each) for each in arguments])
        found = capsys.readouterr()
        return code, found.out, " ".join(found.err.split())

    return call


@pytest.fixture
def hospital(tmp_path):
    return write_hospital(tmp_path, patients=300)


def edited(scenario, old: str, new: str):
    text = scenario.read_text()
    assert old in text
    other = scenario.with_name("other.toml")
    other.write_text(text.replace(old, new))
    return other


def test_the_command_registers_amends_and_warns(run, hospital, tmp_path) -> None:
    ledger = tmp_path / "books.db"
    code, out, _ = run("ledger", "create", ledger, "hospital", "--scenario", hospital)
    assert code == 0 and "Privacy unit: 'patient'" in out
    code, _, err = run("ledger", "create", ledger, "copy", "--scenario", hospital)
    assert code == 0 and "warning: the rows of 'copy' are those of dataset 'hospital'" in err
    other = edited(hospital, 'privacy_unit = "patient"', 'privacy_unit = "ward"')
    for options in ((), ("--amend",)):
        code, out, err = run("release", other, "--ledger", ledger, *options)
        assert (code, out) == (1, "")
        assert "the privacy unit 'patient', and this is about 'ward'" in err
    wider = edited(hospital, "max_groups = 2 ", "max_groups = 9 ")
    code, _, err = run("release", wider, "--ledger", ledger)
    assert code == 1 and "and this has 9" in err
    code, _, err = run("ledger", "amend", ledger, "hospital", "--scenario", wider)
    assert code == 0
    code, out, _ = run("ledger", "show", ledger, "hospital", "--entries")
    assert "amended" in out and "9 groups" in out
    assert run("release", wider, "--ledger", ledger, "--json")[0] == 0
    assert run("ledger", "verify", ledger)[0] == 0


def test_a_share_leaves_the_rest_for_later(run, hospital, tmp_path) -> None:
    text = hospital.read_text()
    hospital.write_text(text + '\n[budget]\nshare = "1/2"\n' if "[budget]" not in text else text)
    assert run("release", hospital, "--json")[0] == 0
    code, _, err = run("release", hospital, "--again", "--json")
    assert code == 0 and "left, and this session takes" in err
    code, _, err = run("release", hospital, "--again")
    assert code == 1 and "a share of 1/2 of the plan needs" in err


def test_a_full_disk_names_the_request(run, hospital, tmp_path, monkeypatch) -> None:
    from whosin.report import table_views

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "x.json")

    with monkeypatch.context() as patch:
        patch.setattr(table_views, "save_answers", full)
        code, _, err = run("release", hospital, "--save", tmp_path / "x.json")
    assert code == 3 and "no space left on device" in err and "--request " in err
    request = err.split("--request ")[1].split()[0]
    code, _, _ = run("release", hospital, "--request", request, "--save", tmp_path / "x.json")
    assert code == 0
    kept = json.loads((tmp_path / "x.json").read_text())
    assert kept["request"] == request and kept["budget_state"]["debits"] == len(kept["answers"])


def test_users_ask_what_was_decided_and_see_their_own(tmp_path) -> None:
    hospital = served(tmp_path, register=False)
    ann = add_user(hospital.users, "Ann")
    bob = add_user(hospital.users, "Bob")
    eve = add_user(hospital.users, "Eve", curator=True)
    assert read_curators(hospital.users) == {"Eve"}
    scenario = tmp_path / "fixed.toml"
    scenario.write_text(
        '[adversary]\nprior = "0.05..0.5"\n[target]\nposterior = 0.6\n'
        '[table]\nsource = "hospital.parquet"\nprivacy_unit = "patient"\n'
        '[domains]\nward = ["surgery", "medicine", "maternity", "children"]\n'
        '[[queries]]\nkind = "count"\n'
    )
    found = load_scenario(scenario)
    with wi.Ledger(hospital.ledger) as ledger:
        from whosin.release.table import register_table

        ledger.register("hospital", found.plan, register_table(found.open_table(), rows=True))
    body: dict[str, Any] = {"scenario": BASE, "request": "by-ann-first"}

    def headers(token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"}

    with running(hospital) as url, program(url) as client:
        made = client.post("/api/release", json=body, headers=headers(ann))
        assert made.status_code == 200, made.text
        # Bob has the id, with Ann's mark or without, and gets nothing with it.
        marked = {**body, "request": Visitor("Ann", curator=False).request(body["request"])}
        for stolen in (body, marked):
            report = client.post("/api/release/csv", json=stolen, headers=headers(bob))
            assert report.status_code == 404
        shown = {"dataset": "hospital"}
        for token, seen in ((ann, 3), (bob, 1), (eve, 3)):
            rows = client.get("/api/ledger/history", params=shown, headers=headers(token)).json()
            assert len(rows["entries"]) == seen
        assert client.post("/api/release/csv", json=marked, headers=headers(eve)).status_code == 200
        # Another privacy unit, another adversary with a maximum of its own.
        ward = BASE | {"table": {"source": "hospital.parquet", "privacy_unit": "ward"}}
        refused = client.post(
            "/api/release", json={"scenario": ward, "request": "by-bob-001"}, headers=headers(bob)
        )
        assert refused.status_code == 409 and "about 'ward'" in refused.json()["error"]["message"]
        maximum = BASE | {
            "adversary": {"uninformed": True},
            "target": {"gamma": "1.5"},
            "queries": [
                {"kind": "maximum", "universe": [[f"P{n:05}", n] for n in range(8)]},
            ],
        }
        refused = client.post(
            "/api/release",
            json={"scenario": maximum, "request": "by-bob-002"},
            headers=headers(bob),
        )
        assert refused.status_code == 409, refused.text
        price = client.post("/api/estimate", json=ward, headers=headers(bob)).json()
        assert "about 'ward'" in price["refusal"]
    with wi.Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").debits == 1
    remove_user(hospital.users, "Eve")
    assert read_curators(hospital.users) == set()


def test_a_server_refuses_a_second_budget_for_the_same_rows(tmp_path) -> None:
    hospital = served(tmp_path)
    shutil.copy(tmp_path / "hospital.parquet", tmp_path / "january.parquet")
    copy = BASE | {"table": {"source": "january.parquet", "privacy_unit": "patient"}}
    with running(hospital) as url, program(url) as client:
        first = client.post("/api/release", json={"scenario": BASE, "request": "the-first-1"})
        assert first.status_code == 200, first.text
        second = client.post("/api/release", json={"scenario": copy, "request": "the-second-2"})
        assert second.status_code == 409 and "are those of dataset" in second.text
