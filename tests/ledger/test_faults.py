"""A ledger in a file when something fails: a clear error, no answer, nothing lost."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import whosin as wi
from ledger_programs import UNPRIVILEGED, kill_until, python, rewrite, run_kills
from refusals import refused
from whosin.errors import BrokenHistory, StoreFailed
from whosin.ledger import Cost, Spend, store, verify

PLAN = wi.calibrate(wi.Epsilon(100))
PRICE = Spend({"query": "count"}, {"add-remove": Cost.pure("0.001")})


def test_eight_processes_and_kill_9(tmp_path):
    found = run_kills(tmp_path / "ledger.db", tmp_path, "--debits", "32", "--kills", "10")
    assert found["kills"] >= 10 and found["debits"] == 144 and found["refused"] == 48
    base = sqlite3.connect(tmp_path / "ledger.db")
    assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    base.close()


def test_kills_over_parts_periods_and_quotas(tmp_path):
    options = ("--debits", "32", "--kills", "10", "--accounts")
    found = run_kills(tmp_path / "ledger.db", tmp_path, *options)
    assert found["kills"] >= 10 and found["refused"] > 20 and found["debits"] > 60


@pytest.mark.soak
def test_ten_thousand_kills(capsys) -> None:
    with tempfile.TemporaryDirectory() as home:
        kill_until(10_000, Path(home, "ledger.db"), Path(home), 1000, capsys)


@pytest.mark.soak
@pytest.mark.parametrize("more", [(), ("--lapses",)])
def test_sixty_four_analysts_over_parts_periods_and_quotas(tmp_path, more) -> None:
    options = ("--workers", "64", "--debits", "8", "--kills", "64", "--accounts", *more)
    found = run_kills(tmp_path / "ledger.db", tmp_path, *options)
    assert (
        found["kills"] >= 64 and found["refused"] > 50 and found["debits"] > (20 if more else 150)
    )


FILL = """
with wi.Ledger(sys.argv[1], create=False) as ledger:
    limit(ledger)
    for number in range(100_000):
        try:
            ledger.answer("d", PRICE, lambda: "x" * 500, f"{number}")
        except StoreFailed as error:
            print(number, error)
            break
"""
LIMITS = {
    # A real failure of write(2), for any user: no file of this process may grow further.
    "file size": """
import resource, signal
def limit(ledger):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (130_000, 130_000))
""",
    # SQLite's own idea of a full disk.
    "pages": """
def limit(ledger):
    ledger.dispose()
    connect = ledger._store._connect
    def few():
        connection = connect()
        connection.execute("PRAGMA max_page_count = 40")
        return connection
    ledger._store._connect = few
""",
}


@pytest.mark.parametrize("kind", LIMITS)
def test_a_full_disk(tmp_path, kind):
    path = tmp_path / "ledger.db"
    with wi.Ledger(path) as ledger:
        ledger.register("d", PLAN)
    number, _, message = python(LIMITS[kind] + FILL, path).partition(" ")
    full = "the disk is full" if kind == "pages" else "the disk failed, or is full"
    assert message == f"the ledger cannot be used: {full}; no answer was given"
    check_after_filling(path, int(number))


def check_after_filling(path: Path, shown: int) -> None:
    """Everything that was shown is there, and with room the ledger goes on where it stood."""
    with wi.Ledger(path, create=False) as ledger:
        found = verify(ledger, "d")
        assert shown > 3 and found.debits in (shown, shown + 1)
        assert len(found.unanswered) == found.debits - shown
        assert ledger.answer("d", PRICE, lambda: "late", f"{shown}") == "late"
        assert verify(ledger, "d").debits == shown + 1


def test_a_file_system_without_room(tmp_path):
    """A disk of 256 KiB that is really full; only where this user may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if os.getuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this user may not mount a file system; the other two tests fill one up")
    try:
        path = disk / "ledger.db"
        with wi.Ledger(path) as ledger:
            ledger.register("d", PLAN)
        code = "def limit(ledger): pass\n" + FILL
        number, _, message = python(code, path).partition(" ")
        assert message == "the ledger cannot be used: the disk is full; no answer was given"
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        check_after_filling(path, int(number))
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize(("file", "folder"), [(0o444, 0o555), (0o666, 0o555), (0o444, 0o777)])
def test_a_read_only_folder_or_file(open_folder, file, folder):
    path = open_folder / "ledger.db"
    with wi.Ledger(path) as ledger:
        ledger.register("d", PLAN)
    path.chmod(file)
    open_folder.chmod(folder)
    message = python(UNPRIVILEGED, path)
    assert re.fullmatch(
        "the ledger cannot be used: (permission denied|its file or folder cannot be "
        "(opened|written)); no answer was given",
        message,
    )
    open_folder.chmod(0o755)
    path.chmod(0o644)
    with wi.Ledger(path) as ledger:
        assert verify(ledger, "d").debits == 0


def test_a_new_ledger_in_a_read_only_folder(open_folder):
    open_folder.chmod(0o555)
    message = python(UNPRIVILEGED, open_folder / "new.db")
    assert message.startswith("the ledger cannot be used: ") and "\n" not in message
    assert list(open_folder.iterdir()) == []


def test_a_file_that_may_not_be_read(open_folder):
    path = open_folder / "ledger.db"
    wi.Ledger(path).dispose()
    path.chmod(0)
    assert python(UNPRIVILEGED, path) == (
        "the ledger cannot be used: permission denied; no answer was given"
    )


def test_a_locked_file(tmp_path):
    path = tmp_path / "ledger.db"
    with wi.Ledger(path, wait=0.2) as ledger:
        ledger.register("d", PLAN)
        other = sqlite3.connect(path)
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        with pytest.raises(StoreFailed, match="locked by another program; no answer was given"):
            ledger.answer("d", PRICE, lambda: 1, "r")
        assert 0.1 < time.monotonic() - began < 25  # not the default of 30
        assert ledger.budget_state("d").debits == 0  # reading goes on
        other.execute("ROLLBACK")
        other.close()
        assert ledger.answer("d", PRICE, lambda: 1, "r") == 1


def test_a_lock_between_the_debit_and_the_answer(tmp_path):
    path = tmp_path / "ledger.db"
    with wi.Ledger(path, wait=0.2) as ledger:
        ledger.register("d", PLAN)
        other = sqlite3.connect(path)

        def draw():
            other.execute("BEGIN IMMEDIATE")
            return "not shown"

        with pytest.raises(StoreFailed, match="no answer was given"):
            ledger.answer("d", PRICE, draw, "r")
        other.execute("ROLLBACK")
        other.close()
        assert verify(ledger, "d").unanswered == ("r",)
        assert ledger.answer("d", PRICE, lambda: "shown", "r") == "shown"
        assert ledger.budget_state("d").debits == 1


def test_a_lock_while_connecting(tmp_path):
    """Another program holds the whole file, so that not even the settings can be made."""
    path = tmp_path / "ledger.db"
    wi.Ledger(path).dispose()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreFailed, match="locked by another program"):
        wi.Ledger(path, wait=0.2)
    other.close()
    wi.Ledger(path).dispose()


def test_a_ledger_of_a_newer_version(tmp_path):
    path = tmp_path / "ledger.db"
    wi.Ledger(path).dispose()
    base = sqlite3.connect(path)
    base.execute("UPDATE whosin_ledger SET version = 7")
    base.commit()
    with pytest.raises(StoreFailed, match=r"format 7, written by a newer whosin; .* upgrade"):
        wi.Ledger(path)
    for version in (0, "new"):
        base.execute("UPDATE whosin_ledger SET version = ?", (version,))
        base.commit()
        with refused("ledger"):
            wi.Ledger(path)
    base.close()


def test_files_that_are_not_ledgers(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a ledger at all, but long enough")
    with refused("ledger"):
        wi.Ledger(text)
    other = tmp_path / "other.db"
    rewrite(other, "CREATE TABLE songs (name)")
    before = other.read_bytes()
    with refused("ledger"):
        wi.Ledger(other)
    assert other.read_bytes()[100:] == before[100:]
    with refused("ledger"):
        wi.Ledger(tmp_path)
    with refused("ledger"):
        wi.Ledger(tmp_path / "none.db", create=False)
    with refused("ledger"):
        wi.Ledger(tmp_path / "none" / "none.db")
    with refused("ledger"):
        wi.Ledger("/dev/null")
    (tmp_path / "empty.db").touch()
    with refused("ledger"):
        wi.Ledger(tmp_path / "empty.db", create=False)
    with wi.Ledger(tmp_path / "empty.db") as ledger:
        assert ledger.datasets() == []


def test_a_damaged_file(tmp_path):
    """Whatever is overwritten: an error of ours, or a ledger that verifies."""
    path = tmp_path / "ledger.db"
    with wi.Ledger(path) as ledger:
        ledger.register("d", PLAN)
        for number in range(20):
            ledger.answer("d", PRICE, lambda: number, f"{number}")  # noqa: B023
    whole = path.read_bytes()
    messages = []
    for start in range(16, len(whole) - 512, len(whole) // 40):
        path.write_bytes(whole[:start] + os.urandom(512) + whole[start + 512 :])
        for extra in tmp_path.glob("ledger.db-*"):
            extra.unlink()
        try:
            with wi.Ledger(path, create=False) as ledger:
                verify(ledger, "d")
        except wi.errors.WhosinError as error:
            messages.append(str(error))
    assert len(messages) > 10
    assert not any("\n" in message or "SELECT" in message for message in messages)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(wi.errors.WhosinError), wi.Ledger(path, create=False) as ledger:
        verify(ledger, "d")


def test_a_table_that_contradicts_itself(tmp_path):
    """A row written by another program, in the way of the next entry: seen, nothing spent."""
    path = tmp_path / "ledger.db"
    with wi.Ledger(path) as ledger:
        ledger.register("d", PLAN)
        rewrite(path, "INSERT INTO whosin_entries VALUES ('d', 2, 'debit', 'x', '{}', '')")
        with pytest.raises(BrokenHistory, match="its end does not fit the dataset's head"):
            ledger.answer("d", PRICE, lambda: 1, "r")
        assert ledger.budget_state("d").debits == 0


def test_first_users_at_once(tmp_path):
    """Many processes that make the same ledger at the same moment."""
    path = tmp_path / "ledger.db"
    code = """
import os, time
children = []
at = time.time() + 0.2
for worker in range(12):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            time.sleep(max(0, at - time.time()))
            ledger = wi.Ledger(sys.argv[1])
            ledger.admit("d", wi.calibrate(wi.Epsilon(100)), resume=True)
            ledger.answer("d", PRICE, lambda: worker, f"{worker}")
            code = 0
        finally:
            os._exit(code)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children].count(0))
"""
    assert python(code, path) == "12"
    with wi.Ledger(path) as ledger:
        assert verify(ledger, "d").debits == 12


def test_a_writer_waits_while_another_one_recovers_the_log():
    """What SQLite says then is "busy", and why, in one number; it is not the plain one."""
    said = []

    class Recovering:
        def execute(self, text: str) -> None:
            said.append(text)
            if text.startswith("BEGIN") and said.count(text) < 3:
                error = sqlite3.OperationalError("database is locked")
                error.sqlite_errorcode = sqlite3.SQLITE_BUSY_RECOVERY
                raise error

    store.begin_writing(Recovering(), 5)
    assert said.count("BEGIN IMMEDIATE") == 3
    said.clear()
    with pytest.raises(sqlite3.OperationalError):
        store.begin_writing(Recovering(), -1)
