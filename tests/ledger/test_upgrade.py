"""Ledgers that an older whosin made: refused with what to do, and upgraded without loss."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest

import postgres
import whosin as wi
from whosin.errors import BrokenHistory, StoreFailed
from whosin.ledger import Charge, Cost, verify
from whosin.ledger.upgrade import upgrade

FIRST = (Path(__file__).parents[1] / "data" / "ledger-1.sql").read_text(encoding="utf-8")
"""Written by the first version: three datasets, one closed, one with an unanswered question."""
PRICE = Charge({"query": "count"}, {"add-remove": Cost.pure("0.1")})


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "old.db"
    base = sqlite3.connect(path)
    base.execute("PRAGMA journal_mode = WAL")
    base.executescript(FIRST)
    base.close()
    return path


def check_carried_on(url: object) -> None:
    """The history is the old one and goes on: what was spent, stored and closed is known."""
    with wi.Ledger(url, who="ann") as ledger:
        assert ledger.datasets() == sorted(["hospital", "closed", "Ärzte 😀"])
        for name, entries in {"hospital": 4, "closed": 4, "Ärzte 😀": 2}.items():
            assert verify(ledger, name).entries == entries + 1
            assert ledger.history(name)[-1].kind == "upgraded"
            before = ledger.history(name)[-2].head
            assert before in FIRST and verify(ledger, name, before)
        assert ledger.standing("hospital").spent.epsilon == 2 * 10**11
        assert ledger.answer("hospital", PRICE, lambda: 0, "first") == {"value": 42}
        assert verify(ledger, "hospital").unanswered == ("unanswered",)
        assert ledger.answer("hospital", PRICE, lambda: "late", "unanswered") == "late"
        assert ledger.answer("hospital", PRICE, lambda: 7, "another") == 7
        assert verify(ledger, "hospital").debits == 3
        with pytest.raises(wi.errors.BudgetRefused, match=r"has 0\.105465 left"):
            ledger.debits("hospital", {"x": PRICE, "y": PRICE})
        with pytest.raises(wi.errors.BudgetRefused, match="is closed"):
            ledger.debit("closed", "x", PRICE)


def test_an_old_file_is_refused_with_what_to_do(old):
    with pytest.raises(StoreFailed, match=r"format 1, written by an older .* ledger upgrade"):
        wi.Ledger(old)


def test_an_old_file_is_upgraded_once(old, run):
    code, out, err = run("ledger upgrade", old)
    assert (code, err) == (0, "") and out == (
        "The ledger went from format 1 to 2; 3 datasets verified and carried on.\n"
    )
    check_carried_on(old)
    assert run("ledger upgrade", old)[1] == "The ledger has format 2 already.\n"
    assert run("ledger upgrade", old, "--json")[1].count('"datasets": 3') == 1


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE whosin_datasets SET spent_epsilon = 0 WHERE name = 'hospital'",
        "DELETE FROM whosin_entries WHERE number = 3 AND dataset = 'hospital'",
        "UPDATE whosin_answers SET answer = '43' WHERE request = 'first'",
    ],
)
def test_a_broken_history_is_not_upgraded(old, change):
    base = sqlite3.connect(old)
    base.execute(change)
    base.commit()
    with pytest.raises(BrokenHistory, match="hospital"):
        upgrade(old)
    assert base.execute("SELECT version FROM whosin_ledger").fetchone() == (1,)
    base.close()


def test_an_old_server_is_upgraded_and_its_rights_taken_back():
    postgres.require()
    with postgres.server() as server:
        with psycopg.connect(server.url, autocommit=True) as base:
            base.execute(FIRST.replace("%", "%%"))
            base.execute("CREATE ROLE analysts LOGIN PASSWORD 'few-rights'")
            base.execute("GRANT SELECT, INSERT, UPDATE ON whosin_datasets TO analysts")
            base.execute("GRANT SELECT, INSERT ON whosin_entries, whosin_answers TO analysts")
            base.execute("GRANT SELECT ON whosin_ledger TO analysts")
            base.execute("GRANT UPDATE ON whosin_datasets TO PUBLIC")
        limited = server.url.replace(f"whosin:{postgres.PASSWORD}", "analysts:few-rights")
        with pytest.raises(StoreFailed, match="permission denied"):
            upgrade(limited)
        with pytest.raises(StoreFailed, match="whosin ledger upgrade"):
            wi.Ledger(server.url)
        assert upgrade(server.url) == (1, 2, 3)
        check_carried_on(server.url)
        with psycopg.connect(limited, autocommit=True) as base:
            assert base.execute("SELECT count(*) FROM whosin_entries").fetchone() == (16,)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                base.execute("UPDATE whosin_datasets SET spent_epsilon = 0")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                base.execute("INSERT INTO whosin_answers VALUES ('hospital', 'x', '1')")
