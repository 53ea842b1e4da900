"""A ledger's file: one place, whole without its log, private, readable without rights to write."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import whosin as wi
from ledger_programs import UNPRIVILEGED, python, rewrite, run_killed
from refusals import refused
from whosin.errors import BrokenHistory, StoreFailed
from whosin.ledger import Cost, Spend, ledger_file, verify

PLAN = wi.calibrate(wi.Epsilon(1))
PRICE = Spend({"query": "count"}, {"add-remove": Cost.pure("0.1")})


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "ledger.db"
    with wi.Ledger(made, who="tester") as ledger:
        ledger.register("d", PLAN)
        ledger.answer("d", PRICE, lambda: 1, "first")
    return made


# One place


def test_a_hard_link_is_refused_by_both_names(path, tmp_path):
    with wi.Ledger(path) as ledger:
        os.link(path, tmp_path / "other.db")
        for name in (path, tmp_path / "other.db"):
            with pytest.raises(StoreFailed, match="has 2 hard links"):
                wi.Ledger(name)
        with pytest.raises(StoreFailed, match="hard links"):
            ledger.answer("d", PRICE, lambda: 1, "r")
        (tmp_path / "other.db").unlink()
        assert ledger.answer("d", PRICE, lambda: 1, "r") == 1


@pytest.mark.parametrize("how", ["moved", "replaced"])
def test_a_file_that_is_moved_while_it_is_open_is_not_written(path, tmp_path, how):
    with wi.Ledger(path) as ledger:
        ledger.budget_state("d")
        os.rename(path, tmp_path / "moved.db")
        if how == "replaced":
            shutil.copy(tmp_path / "moved.db", path)
        with pytest.raises(StoreFailed, match="moved or replaced while it was open"):
            ledger.answer("d", PRICE, lambda: 1, "r")
    with wi.Ledger(tmp_path / "moved.db") as ledger:
        assert verify(ledger, "d").debits == 1


def test_symbolic_links_lead_to_one_place(path, tmp_path):
    (tmp_path / "folder").symlink_to(tmp_path)
    (tmp_path / "link.db").symlink_to(tmp_path / "folder" / "ledger.db")
    with wi.Ledger(tmp_path / "link.db") as one, wi.Ledger(f"sqlite:///{path}") as two:
        assert one.name == two.name == str(path)
        for number in range(20):
            try:
                (one, two)[number % 2].debit("d", f"{number}", PRICE)
            except wi.errors.BudgetRefused:
                assert number >= 9
        assert verify(one, "d").debits == 10
    assert {each.name for each in tmp_path.iterdir() if "-" in each.name} == {"ledger.db-heads"}
    (tmp_path / "dangling.db").symlink_to(tmp_path / "new.db")
    with wi.Ledger(tmp_path / "dangling.db") as ledger:
        assert ledger.name == str(tmp_path / "new.db")


def test_a_mounted_file_is_refused(path, tmp_path):
    """Two paths to one file, and two logs: only in a name space of its own, and only as root."""
    other = tmp_path / "sub" / "mounted here.db"
    other.parent.mkdir()
    other.touch()
    code = "import whosin as wi\ntry: wi.Ledger({!r})\nexcept wi.errors.StoreFailed as e: print(e)"
    script = f'mount --bind "{path}" "{other}" && exec "{sys.executable}" -c "$0"'
    command = ["unshare", "--mount", "sh", "-c", script, code.format(str(other))]
    able = subprocess.run([*command[:2], "true"], capture_output=True).returncode == 0
    if not able or os.getuid():
        reason = "a file can be mounted by root only"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.stderr == "" and done.stdout == (
        "mounted here.db is mounted as a single file, so its log would stay outside the mount; "
        "mount the folder that holds it\n"
    )


def test_the_table_of_mounts_is_read(tmp_path):
    table = tmp_path / "mountinfo"
    table.write_text(
        "63 43 254:0 /a /mnt/a\\040b.db rw,relatime - ext4 /dev/vda rw\n"
        "64 43 254:0 / /mnt\\134x\\011y rw shared:1 - tmpfs tmpfs rw\nshort\n"
    )
    assert ledger_file.mount_points(table) == {"/mnt/a b.db", "/mnt\\x\ty"}
    assert ledger_file.mount_points(tmp_path / "none") == set()


SHARING = """
import threading
path, other = sys.argv[1:]
ledger = wi.Ledger(path, who="tester")
ledger.register("d", wi.calibrate(wi.Epsilon(1)))
with ledger._store.reading() as connection:      # a connection that stays open
    wi.Ledger(path).dispose()                    # the same file once more, in the same process
    import subprocess
    code = "import sys, whosin as wi; wi.Ledger(sys.argv[1]).dispose()"
    subprocess.run([sys.executable, "-c", code, path], check=True)
for number in range(5):
    ledger.debit("d", f"{number}", PRICE)
code = "import sys, whosin as wi; print(wi.Ledger(sys.argv[1]).budget_state('d').debits)"
print(subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True).stdout)
"""


def test_opening_it_twice_keeps_the_locks_of_the_first(tmp_path):
    """A file that is closed drops a process's locks: then others delete the log under it."""
    assert python(SHARING, tmp_path / "ledger.db", "") == "5"


# Whole without its log


KILLED = """
import os
ledger = wi.Ledger(sys.argv[1], who="tester")
ledger.register("d", wi.calibrate(wi.Epsilon(1)))
for number in range(25):
    ledger.answer("d", PRICE, lambda: number, f"{number}")
print(ledger.budget_state("d").debits, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_log_that_is_deleted_after_a_kill_takes_nothing_along(tmp_path):
    path = tmp_path / "ledger.db"
    assert run_killed(KILLED, path) == "25\n"
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)  # the file alone
    for log in ("ledger.db-wal", "ledger.db-shm"):
        (tmp_path / log).unlink()
    for each, noted in ((path, True), (copy, False)):
        with wi.Ledger(each) as ledger:
            found = verify(ledger, "d")
            assert (found.debits, found.unanswered, found.noted) == (25, (), noted)


UNANSWERED = """
import os
PRICE = Spend({"query": "count"}, {"add-remove": Cost.pure("0.1")})
ledger = wi.Ledger(sys.argv[1], who="tester")
ledger.register("d", wi.calibrate(wi.Epsilon(1)))
ledger.answer("d", PRICE, lambda: 1, "shown")
ledger.debit("d", "not drawn", PRICE)
print(ledger.answer("d", PRICE, lambda: 1, "shown") if "again" in sys.argv else 25, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("words", [[], ["again"]])
def test_a_deleted_log_loses_no_answer_that_was_shown(tmp_path, monkeypatch, words):
    """A debit without its answer may be in the log alone, and is paid again if it is lost; whoever
    shows a stored answer brings everything into the file first."""
    path = tmp_path / "ledger.db"
    run_killed(UNANSWERED, path, *words)
    for log in ("ledger.db-wal", "ledger.db-shm"):
        (tmp_path / log).unlink()
    with wi.Ledger(path) as ledger:
        found = verify(ledger, "d")
        assert (found.debits, found.unanswered) == ((2, ("not drawn",)) if words else (1, ()))
        assert ledger.answer("d", PRICE, lambda: 2, "shown") == 1
        assert ledger.answer("d", PRICE, lambda: 3, "not drawn") == 3
        assert verify(ledger, "d").debits == 2


def test_two_who_bring_the_log_into_the_file_wait_for_each_other(tmp_path):
    """SQLite says that another one is at it by -1 of -1 pages, which is not all of them."""
    from whosin.ledger import store

    said = iter([(1, -1, -1), (0, 5, 3), (0, 5, 5), (0, 9, 9)])
    asked = []

    class Connection:
        def execute(self, text):
            asked.append(text)
            return self

        def fetchone(self):
            return next(said)

    store.checkpoint_log(Connection())
    assert len(asked) == 3


def test_nothing_reads_the_whole_history_to_ask(path) -> None:
    """However long a history is: every statement of an answer finds its rows through an index."""
    with wi.Ledger(path) as ledger:
        ledger.budget_state("d")
        said: list[str] = []
        with ledger._store.reading() as connection:
            driver: Any = connection
        driver.set_trace_callback(said.append)
        ledger.admit("d", PLAN, resume=True)
        ledger.requests("d", "r/")
        ledger.unanswered("d", "r/")
        ledger.answer("d", PRICE, lambda: 1, "r/0")
        ledger.budget_state("d")
        driver.set_trace_callback(None)
    asked = {text for text in said if text.lstrip().startswith("SELECT")}
    assert len(asked) >= 6
    with sqlite3.connect(path) as base:
        for text in asked:
            for *_, how in base.execute(f"EXPLAIN QUERY PLAN {text}"):
                found = ("SEARCH", "SCALAR SUBQUERY", "USE TEMP B-TREE", "LIST SUBQUERY")
                given = "SCAN json_each"  # the requests that were asked
                assert how.startswith((*found, given)), (text, how)


def test_entries_that_were_lost_show_by_what_was_noted(path, tmp_path):
    """An older copy is whole in itself: only the note beside it knows better."""
    old = path.read_bytes()
    with wi.Ledger(path) as ledger:
        ledger.answer("d", PRICE, lambda: 1, "second")
        head = ledger.budget_state("d").head
    path.write_bytes(old)
    with wi.Ledger(path) as ledger:
        with pytest.raises(BrokenHistory, match="entries were lost, or an older copy was put back"):
            verify(ledger, "d")
        with pytest.raises(BrokenHistory, match=r"ledger\.db-heads has seen entry 5, and"):
            ledger.answer("d", PRICE, lambda: 1, "third")
    note = json.loads((tmp_path / "ledger.db-heads").read_text().splitlines()[0])
    assert note == {"dataset": "d", "entries": 5, "head": head}
    path.unlink()
    with wi.Ledger(path) as ledger, pytest.raises(BrokenHistory, match="has seen entry 5"):
        ledger.register("d", PLAN)
    (tmp_path / "ledger.db-heads").unlink()  # the way to go on with an older copy, knowingly
    path.write_bytes(old)
    with wi.Ledger(path) as ledger:
        assert ledger.answer("d", PRICE, lambda: 1, "third") == 1
        assert verify(ledger, "d").noted


def test_a_name_fits_its_note(path):
    """Some letters are stored as three, and the note of a longer name would run over another's."""
    with wi.Ledger(path) as ledger:
        with refused("dataset"):
            ledger.register("\U0001d160" * 200, PLAN)
        ledger.register("\U0001f600" * 200, PLAN)
        assert len(ledger._store.heads.read()) == len(ledger.datasets()) == 2
        assert ledger._store.heads.path.stat().st_size == 2 * 1024


def test_notes_never_go_back(path):
    with wi.Ledger(path) as ledger:
        ledger.register("Ärzte 😀 " + "é" * 190, PLAN)
        heads = ledger._store.heads
        before = heads.read()
        with ledger.replaying("d") as (row, _, _):
            pass
        heads.note(row._replace(entries=1, head="0" * 64))
        assert heads.read() == before and len(before) == 2


def _flipped(text):
    return text.replace(b'"entries"', b'"entriez"')


DAMAGE = {
    "rubbish": lambda text: b"x" * 5000,
    "whole lines of rubbish": lambda text: b"x" * 2048,
    "zeros": lambda text: bytes(len(text)),
    "emptied": lambda text: b"",
    "half a line": lambda text: text[:500],
    "half a line more": lambda text: text + text[:500],
    "a line twice": lambda text: text + text,
    "another key": _flipped,
    "no number": lambda text: text.replace(b'"entries": 3', b'"entries": 0'),
    "half a head": lambda text: re.sub(rb'[0-9a-f]{32}"', b" " * 32 + b'"', text),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_notes_are_not_the_same_as_none(path, run, damage):
    """Whoever damages the note could then put an older copy back unnoticed."""
    heads = Path(f"{path}-heads")
    whole = heads.read_bytes()
    damaged = DAMAGE[damage](whole)
    heads.write_bytes(damaged)
    with wi.Ledger(path) as ledger:
        calls = (
            lambda: ledger.debit("d", "r", PRICE),
            lambda: ledger.register("e", PLAN),
            lambda: verify(ledger, "d"),
        )
        for call in calls:
            with pytest.raises(StoreFailed):
                call()
        assert ledger.datasets() == ["d"] and ledger.budget_state("d").debits == 1
        assert heads.read_bytes() == damaged
        assert run("ledger verify", path)[0] == 3
        heads.write_bytes(whole)
        assert verify(ledger, "d").noted
        heads.unlink()  # the way to go on knowingly
        ledger.answer("d", PRICE, lambda: 1, "r")
        assert ledger._store.heads.read()["d"] == (5, ledger.budget_state("d").head)


def _link(place, elsewhere):
    elsewhere.write_bytes(place.read_bytes())
    place.unlink()
    place.symlink_to(elsewhere)


def _loose_link(place, elsewhere):
    place.unlink()
    place.symlink_to(elsewhere)


def _pipe(place, elsewhere):
    place.unlink()
    os.mkfifo(place)


def _folder(place, elsewhere):
    place.unlink()
    place.mkdir()


@pytest.mark.parametrize("obstacle", [_link, _loose_link, _pipe, _folder])
def test_notes_are_a_plain_file(path, tmp_path, obstacle):
    """A link is not followed, written or given other permissions; nobody waits for a pipe."""
    heads, elsewhere = Path(f"{path}-heads"), tmp_path / "elsewhere"
    obstacle(heads, elsewhere)
    if elsewhere.exists():
        elsewhere.chmod(0o666)
    before = elsewhere.read_bytes() if elsewhere.exists() else None
    os.chmod(path, 0o600)
    with wi.Ledger(path) as ledger:
        for call in (
            lambda: ledger.debit("d", "r", PRICE),
            lambda: ledger.register("e", PLAN),
            lambda: verify(ledger, "d"),
        ):
            with pytest.raises(StoreFailed):
                call()
        assert ledger.budget_state("d").debits == 1 and ledger.datasets() == ["d"]
    assert (elsewhere.read_bytes() if elsewhere.exists() else None) == before
    if before is not None:
        assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o666


def test_two_who_note_first_at_once_both_are_noted(tmp_path):
    """The file appears with its first line; whoever comes second adds a line to it."""
    with wi.Ledger(tmp_path / "ledger.db") as ledger:
        heads = ledger._store.heads
        ledger.register("d", PLAN)
        with ledger.replaying("d") as (row, _, _):
            pass
        heads.path.unlink()
        rows = [row._replace(name=f"d{number}") for number in range(8)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(heads.note, rows))
        assert heads.read() == {each.name: (each.entries, each.head) for each in rows}
        assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]


# Private


def test_files_are_made_for_their_owner_only(tmp_path):
    before = os.umask(0o022)
    try:
        with wi.Ledger(tmp_path / "ledger.db") as ledger:
            ledger.register("d", PLAN)
            modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert len(modes) == 4 and set(modes.values()) == {0o600}


def test_a_file_that_was_opened_to_a_group_stays_so(path):
    path.chmod(0o660)
    with wi.Ledger(path) as ledger:
        ledger.answer("d", PRICE, lambda: 1, "r")
        assert all(stat.S_IMODE(p.stat().st_mode) == 0o660 for p in path.parent.iterdir())


# Without rights to write


READING = (
    UNPRIVILEGED[: UNPRIVILEGED.index("try:")]
    + """
with wi.Ledger(sys.argv[1], create=False, who="tester") as ledger:
    print(ledger.budget_state("d").debits, verify(ledger, "d").entries, len(ledger.requests("d")))
    try:
        ledger.answer("d", PRICE, lambda: "shown", "r")
    except StoreFailed as error:
        print(error)
"""
)


@pytest.mark.parametrize(("file", "folder"), [(0o444, 0o555), (0o444, 0o755)])
@pytest.mark.parametrize("log", [False, True])
def test_a_read_only_ledger_is_shown_and_verified(open_folder, file, folder, log):
    path = open_folder / "ledger.db"
    with wi.Ledger(path) as ledger:
        ledger.register("d", PLAN)
        ledger.answer("d", PRICE, lambda: 1, "first")
        for each in open_folder.iterdir():
            each.chmod(file)
        if not log:
            ledger.dispose()
        before = {each.name for each in open_folder.iterdir()}
        open_folder.chmod(folder)
        shown, refused = python(READING, path).splitlines()
        assert {each.name for each in open_folder.iterdir()} == before
    assert shown == "1 3 1" and refused == (
        "the ledger cannot be used: its file or folder cannot be written; no answer was given"
    )


# Locks


def test_a_file_system_without_locks_is_named(path, tmp_path):
    """SQLite says "busy" for ENOLCK too; a program's own fcntl says what the system said."""
    compiler = shutil.which("cc")
    if compiler is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("there is no C compiler")
    source, library = tmp_path / "locks.c", tmp_path / "locks.so"
    source.write_text(
        "#define _GNU_SOURCE\n#include <errno.h>\n#include <fcntl.h>\n#include <stdarg.h>\n"
        "#include <dlfcn.h>\n"
        "static int act(const char *name, int file, int what, void *with) {\n"
        "  if (what == F_SETLK || what == F_SETLKW) { errno = ENOLCK; return -1; }\n"
        "  return ((int (*)(int, int, void *)) dlsym(RTLD_NEXT, name))(file, what, with); }\n"
        "int fcntl(int file, int what, ...) { va_list all; va_start(all, what);\n"
        '  return act("fcntl", file, what, va_arg(all, void *)); }\n'
        "int fcntl64(int file, int what, ...) { va_list all; va_start(all, what);\n"
        '  return act("fcntl64", file, what, va_arg(all, void *)); }\n'
    )
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    code = "import sys, whosin as wi\ntry: wi.Ledger(sys.argv[1], wait=0.1)\n"
    code += "except wi.errors.StoreFailed as error: print(error)"
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert run.stdout == (
        "the ledger cannot be used: its file system offers no locks; keep it on a local disk, or "
        "use PostgreSQL; no answer was given\n"
    ), run.stderr


# What no dataset's history covers


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DELETE FROM whosin_datasets WHERE name = 'd'", "it has entries, and the dataset itself"),
        ("INSERT INTO whosin_answers VALUES ('e', 'r', '1')", "it has answers, and the dataset"),
        (
            "CREATE TRIGGER t AFTER INSERT ON whosin_entries BEGIN "
            "UPDATE whosin_datasets SET spent_epsilon = 0; END",
            "it has the trigger 't'",
        ),
        ("CREATE TABLE notes (x)", "it has the table 'notes'"),
        ("CREATE VIEW v AS SELECT * FROM whosin_entries", "it has the view 'v'"),
        ("ALTER TABLE whosin_datasets ADD COLUMN more", "the columns of whosin_datasets"),
    ],
)
def test_what_no_history_covers_shows(path, run, statement, reason):
    rewrite(path, statement)
    with wi.Ledger(path) as ledger, pytest.raises(BrokenHistory) as caught:
        verify(ledger, "d")
    assert reason in str(caught.value)
    code, out, err = run("ledger verify", path)
    assert code == 1 and out == "" and reason in err


def test_a_dataset_that_is_gone_with_all_its_rows_shows(path, run):
    for table, column in (("answers", "dataset"), ("entries", "dataset"), ("datasets", "name")):
        rewrite(path, f"DELETE FROM whosin_{table} WHERE {column} = 'd'")
    code, _, err = run("ledger verify", path)
    assert code == 1 and "ledger.db-heads knows it, and the ledger does not" in err


CELLS = {
    "what was spent": "spent_epsilon = 0",
    "the budget": "epsilon = 10 * epsilon",
    "the count": "debits = 0",
    "the state": "state = 'complete'",
    "the plan": "plan = replace(plan, '1.0', '2.0')",
    "the table": "registration = '{}'",
    "the end": "entries = entries - 1",
}


@pytest.mark.parametrize("cell", CELLS)
def test_a_debit_trusts_no_cell(path, cell):
    rewrite(path, f"UPDATE whosin_datasets SET {CELLS[cell]}")
    with wi.Ledger(path) as ledger:
        for call in (lambda: ledger.debit("d", "r", PRICE), lambda: ledger.close("d")):
            with pytest.raises(BrokenHistory):
                call()
        assert ledger._store.heads.read()["d"][0] == 3


def test_a_last_entry_that_was_rewritten_stops_debits(path):
    """With sums set back in the entry too: its digest no longer fits, at once."""
    rewrite(
        path,
        "UPDATE whosin_datasets SET spent_epsilon = 0",
        """UPDATE whosin_entries SET body = replace(body, '"epsilon":100000000000,"rho"',
        '"epsilon":0,"rho"') WHERE number = 3""",
    )
    with wi.Ledger(path) as ledger, pytest.raises(BrokenHistory):
        ledger.debit("d", "r", PRICE)
