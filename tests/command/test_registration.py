"""What a dataset is registered for, on the command."""

from __future__ import annotations

import json

import pytest

from whosin.app.cli.main import main
from whosin.app.example_data import write_hospital


@pytest.fixture
def run(capsys):
    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([str(each) for each in arguments])
        found = capsys.readouterr()
        return code, found.out, " ".join(found.err.split())

    return call


@pytest.fixture
def hospital(tmp_path):
    """With two questions of the four."""
    scenario = write_hospital(tmp_path, patients=300)
    scenario.write_text("[[queries]]".join(scenario.read_text().split("[[queries]]")[:3]))
    return scenario


def edited(scenario, old: str, new: str):
    text = scenario.read_text()
    assert old in text
    other = scenario.with_name("other.toml")
    other.write_text(text.replace(old, new))
    return other


def test_the_command_registers_and_amends(run, hospital, tmp_path) -> None:
    ledger = tmp_path / "books.db"
    code, out, _ = run("ledger", "create", ledger, "hospital", "--scenario", hospital)
    assert code == 0 and "Privacy unit: 'patient'" in out
    code, _, err = run("ledger", "create", ledger, "copy", "--scenario", hospital)
    assert code == 1 and "the rows of 'copy' are those of dataset 'hospital'" in err
    other = edited(hospital, 'privacy_unit = "patient"', 'privacy_unit = "ward"')
    for options in (("--no-preflight",), ("--no-preflight", "--amend")):
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
