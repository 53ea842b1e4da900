"""Files of synthetic tables: they replace nothing, and nothing is left that no ledger knows."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import whosin as wi
from whosin import release
from whosin.errors import InvalidInput
from whosin.plain_files import remove_unlocked, try_lock
from whosin.release import Session
from whosin.release.engines import files
from whosin.release.engines.base import draft_name
from whosin.release.synthetic_tables import draft_owner, remove_drafts

PLAN = wi.calibrate(wi.Gamma(2), wi.families.FixedSize("0.1", "0.5"))
ROWS = pa.table({"person": [f"p{number}" for number in range(40)], "ward": ["a", "b"] * 20})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    (tmp_path / "out").mkdir()
    return tmp_path


def session(place: Path, request: str, share: object = "1/8", **given: Any) -> Session:
    table = wi.Table(place / "rows.parquet", "person", {"ward": ["a", "b"]})
    return Session(table, PLAN, place / "books.db", request=request, share=share, **given)


def copy(place: Path, name: str = "s.parquet") -> release.Synthetic:
    return release.Synthetic(columns=["ward"], path=str(place / "out" / name))


def debits(place: Path) -> int:
    with wi.Ledger(place / "books.db") as ledger:
        return ledger.budget_state("rows").debits if ledger.datasets() else 0


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_that_appears_meanwhile_is_not_replaced(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, store = place / "out" / "s.parquet", wi.Ledger.store_answers

    def taken(*given: Any) -> Any:
        target.write_text("theirs")
        return store(*given)

    with monkeypatch.context() as patch:
        patch.setattr(wi.Ledger, "store_answers", taken)
        first = session(place, "R")
        answer = first.ask(copy(place))
    assert target.read_text() == "theirs"
    assert len(first.notes) == 1 and answer.rows[0][2] in first.notes[0]
    left = [each for each in (place / "out").iterdir() if each != target]
    assert [digest(each) for each in left] == [answer.rows[0][2]]
    with left[0].open("rb") as draft:
        assert try_lock(draft.fileno()), "the ledger knows it: this process need not hold it"
    again = session(place, "R")
    assert again.ask(copy(place)) == answer and target.read_text() == "theirs" and again.notes
    target.rename(place / "theirs")  # and the table that was paid for gets its name
    last = session(place, "R")
    assert last.ask(copy(place)) == answer and not last.notes
    assert digest(target) == answer.rows[0][2] and list((place / "out").iterdir()) == [target]
    assert debits(place) == 1


OBSTACLES = {
    "file": lambda path: path.write_text("theirs"),
    "folder": Path.mkdir,
    "link": lambda path: path.symlink_to(path.with_name("nowhere")),
    "pipe": os.mkfifo,
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
@pytest.mark.parametrize("method", ["responses", "marginals"])
def test_a_place_that_is_taken_is_noticed_before_the_debit(
    place: Path, obstacle: str, method: str
) -> None:
    target = place / "out" / "s.parquet"
    OBSTACLES[obstacle](target)
    kind = stat.S_IFMT(target.lstat().st_mode)
    query = release.Synthetic(columns=["ward"], path=str(target), method=method)
    asked = session(place, "R")
    with pytest.raises(InvalidInput) as refused:
        asked.ask(query)
    assert refused.value.field == "path" and debits(place) == 0
    if obstacle != "file":  # a file may be this very request's: a price does not ask
        with pytest.raises(InvalidInput):
            asked.dry_run(query)
    assert stat.S_IFMT(target.lstat().st_mode) == kind
    assert list((place / "out").iterdir()) == [target]


def test_the_command_replaces_nothing_and_opens_no_budget(place: Path, run: Any) -> None:
    (place / "s.toml").write_text(
        '[adversary]\nprior = "0.1..0.5"\nsize-known = true\n[target]\ngamma = 2\n'
        '[table]\nsource = "rows.parquet"\nprivacy_unit = "person"\n[domains]\nward = ["a", "b"]\n'
        '[[queries]]\nkind = "synthetic"\ncolumns = ["ward"]\npath = "out/s.parquet"\n'
    )
    (place / "out" / "s.parquet").write_text("theirs")
    code, out, err = run("release", place / "s.toml")
    assert (code, out) == (2, "") and "queries[0].path" in err
    assert not (place / "ledger.db").exists()
    (place / "out" / "s.parquet").unlink()
    assert run("release", place / "s.toml", "--request", "R")[0] == 0
    kept = (place / "out" / "s.parquet").read_bytes()
    assert run("release", place / "s.toml", "--request", "R")[0] == 0  # its own file may be there
    assert (place / "out" / "s.parquet").read_bytes() == kept


KILLED = """
import os, signal, sys
import whosin as wi
sys.path.insert(0, sys.argv[1])
from test_synthetic_files import copy, session
from pathlib import Path
def end(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[4] == "unstored":
    wi.Ledger.store_answers = end
else:
    wi.release.Synthetic.publish = end
session(Path(sys.argv[2]), sys.argv[3]).ask(copy(Path(sys.argv[2]), f"{sys.argv[3]}.parquet"))
"""


def killed(place: Path, request: str, when: str) -> None:
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(place), request, when]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


def test_drafts_that_no_ledger_knows_are_removed(place: Path) -> None:
    """Killed after drawing, a process leaves a second table for one debit; killed after storing, it
    leaves the one that was paid for."""
    out = place / "out"
    killed(place, "unstored", "unstored")
    (draft,) = out.iterdir()
    assert draft.name.startswith(".unstored.parquet.") and draft.stat().st_mode & 0o077 == 0
    killed(place, "stored", "stored")
    (kept,) = out.iterdir()  # the next table of the dataset has removed the first
    assert kept.name.startswith(".stored.parquet.")
    others = out / draft_name("x.parquet", "0" * 64, "f" * 16)
    others.write_text("of another dataset")
    partial = out / ".resumed.parquet.abc.partial"
    partial.write_text("half a table")
    answer = session(place, "resumed").ask(copy(place, "resumed.parquet"))
    assert digest(out / "resumed.parquet") == answer.rows[0][2]
    assert set(out.iterdir()) == {kept, others, out / "resumed.parquet"}
    session(place, "stored").ask(copy(place, "stored.parquet"))
    session(place, "unstored").ask(copy(place, "unstored.parquet"))
    names = {"stored.parquet", "unstored.parquet", "resumed.parquet"}
    assert {each.name for each in out.iterdir()} == {others.name, *names}
    assert debits(place) == 3


def test_a_draft_of_a_process_that_lives_is_left_alone(place: Path) -> None:
    with wi.Ledger(place / "books.db") as ledger:
        ledger.register("rows", PLAN)
        owner = draft_owner(ledger, "rows")
        path = place / "out" / "s.parquet"
        written = files.write_draft(ROWS.to_batches(), ROWS.schema, path, owner)
        (draft,) = path.parent.iterdir()
        remove_drafts(ledger, "rows", path.parent)
        remove_unlocked([draft])
        assert draft.exists()
        files.discard_draft(path, written.digest)
        assert not draft.exists() and draft not in files.LOCKED_DRAFTS
