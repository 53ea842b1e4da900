"""Work in processes of its own: answers, errors, deadlines, memory, crashes, and what is left."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

from isolation_tasks import add, crash, dumped, fail, hoard, litter, refuse, shout, spin, threads
from open_files import many_files
from refusals import refused
from whosin import errors, isolation
from whosin.app.web.bodies import RequestRefused
from whosin.app.web.tasks import FairQueue
from whosin.isolation import TaskLimits, WorkerPool
from whosin.plain_files import SPILL_PREFIX, TASK_PREFIX, PrivateFolder, remove_abandoned
from whosin.release.engines.duckdb import SpillFolder

pytestmark = pytest.mark.usefixtures("own_processes")
LIMITS = TaskLimits(300, 1 << 30, "ask for less")
SHORT = TaskLimits(0.3, 1 << 30, "ask for less")
SMALL = TaskLimits(300, 64 << 20, "ask for less")


@pytest.fixture(scope="module")
def worker_pool():
    found = WorkerPool(["fractions"])
    yield found
    found.close()


@pytest.fixture(params=["once", "worker pool"])
def run(request, worker_pool):
    return isolation.run_isolated if request.param == "once" else worker_pool.run


def test_answers_and_errors_come_back(run):
    assert run(add, 1, 2, limits=LIMITS) == 3
    with refused("age", 7) as caught:
        run(refuse, limits=LIMITS)
    assert vars(caught.value)["place"] == "domains.age"
    with pytest.raises(FileNotFoundError) as missing:
        run(open, "/nowhere", limits=LIMITS)
    assert missing.value.filename == "/nowhere"
    with pytest.raises(errors.Crashed) as failed:
        run(fail, limits=LIMITS)
    assert "KeyError" in str(failed.value) and "Ann" not in str(failed.value)


def test_a_crash_copies_no_memory_to_disk(run):
    """Such a copy may hold rows. The limit that is inherited allows it, at least on request."""
    assert run(dumped, limits=LIMITS) == [0, 0]


def test_a_process_is_stopped(run):
    with refused("seconds", 0.3, hint=True, kind=errors.TookTooLong):
        run(spin, limits=SHORT)
    with refused("seconds", 0.2, kind=errors.TookTooLong):
        run(spin, limits=TaskLimits(300, 1 << 30, processor=0.2))
    with refused("memory", hint=True, kind=errors.OutOfMemory):
        run(hoard, limits=SMALL)


def test_a_crash_is_one_sentence_and_leaves_nothing(run, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for task in (crash, litter):
        with pytest.raises(errors.Crashed, match="ended without an answer"):
            run(task, limits=LIMITS)
    assert list(tmp_path.iterdir()) == []
    run(shout, limits=LIMITS)
    assert "Ann" not in "".join(capfd.readouterr())


def test_a_process_may_have_many_files_open(tmp_path):
    """More than `select` takes: what waits, and what is started then, does without it."""
    with many_files(), ThreadPoolExecutor(4) as pool:
        assert (
            list(pool.map(lambda at: isolation.run_isolated(add, at, 1, limits=LIMITS), range(2)))[
                1
            ]
            == 2
        )
        made = WorkerPool(["fractions"])
        try:
            found = list(pool.map(lambda at: made.run(add, at, 1, limits=LIMITS), range(8)))
        finally:
            made.close()
    assert found == list(range(1, 9))


def test_no_file_left_to_open_is_one_sentence(worker_pool, monkeypatch):
    """Neither for a new process, nor because the worker pool has just ended."""
    assert worker_pool.run(add, 1, 2, limits=LIMITS) == 3

    def fail(*_):
        raise OSError(errno.EMFILE, "Too many open files")

    for name in ("socketpair", "send_fds"):
        with monkeypatch.context() as patch:
            patch.setattr(socket, name, fail)
            with pytest.raises(errors.Crashed, match="no worker process could be started"):
                worker_pool.run(add, 1, 2, limits=LIMITS)
    assert worker_pool.run(add, 1, 2, limits=LIMITS) == 3


def test_a_process_works_in_our_folder(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(os.getcwd, limits=LIMITS) == str(tmp_path)


def test_only_plain_data_comes_back(run):
    """A process that was taken over cannot make us call anything."""
    with pytest.raises(errors.Crashed, match="UnpicklingError"):
        run(Fraction, 1, 3, limits=LIMITS)
    evil = b"cos\nsystem\n(S'true'\ntR."
    frame = isolation.LENGTH_STRUCT.pack(len(evil)) + evil
    with pytest.raises(errors.Crashed, match="cannot be read"):
        isolation.read_answer(frame, LIMITS.too_large)


def test_a_worker_pool_forks_from_one_thread_and_starts_again(worker_pool):
    assert worker_pool.run(threads, limits=LIMITS) == 1
    with ThreadPoolExecutor(4) as pool:
        sums = list(pool.map(lambda number: worker_pool.run(add, number, limits=LIMITS), range(12)))
    assert sums == list(range(12))
    worker_pool._process.kill()
    worker_pool._process.wait()
    assert worker_pool.run(add, 4, limits=LIMITS) == 4


SCRIPT = """
import math
from whosin.isolation import TaskLimits, run_isolated
print(run_isolated(math.factorial, 5, limits=TaskLimits(300, 1 << 30)))
"""


def test_a_script_without_a_guard_runs_once():
    """No module of the caller is imported again, as multiprocessing would."""
    made = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert made.stdout == "120\n"


# FairQueue


def test_turns_are_fair():
    """One person's many requests do not hold up another's one."""
    turns, order, first = FairQueue(at_once=1, each=8, waiting=9), [], threading.Event()

    def go(who: str) -> None:
        with turns.turn(who):
            order.append(who)
            first.wait(300)

    started = [threading.Thread(target=go, args=[who]) for who in ["ann"] * 5 + ["bob"]]
    for number, thread in enumerate(started):
        thread.start()
        _until(lambda n=number: len(order) + sum(map(len, turns._queues.values())) == n + 1)
    first.set()
    for thread in started:
        thread.join()
    assert order == ["ann", "bob", "ann", "ann", "ann", "ann"]
    assert not turns._running and not turns._queues


def test_nobody_has_all_turns():
    """Another's request does not wait for the end of one person's long ones."""
    turns, done, order = FairQueue(at_once=2), threading.Event(), []

    def go() -> None:
        with turns.turn("ann"):
            order.append("ann")
            done.wait(300)

    started = [threading.Thread(target=go) for _ in range(3)]
    for thread in started:
        thread.start()
    _until(lambda: len(order) + sum(map(len, turns._queues.values())) == 3)
    turns.patience = 300
    with turns.turn("bob"):
        assert order == ["ann"]
    done.set()
    for thread in started:
        thread.join()
    assert order == ["ann"] * 3


def test_more_than_can_wait_are_told_so():
    turns = FairQueue(at_once=1, each=2, waiting=1, patience=0.05)
    with turns.turn("ann"):
        with pytest.raises(RequestRefused, match="busy") as late, turns.turn("bob"):
            pass
        assert late.value.status == 429
        waiting = threading.Thread(target=_quietly, args=[turns, "bob"])
        turns.patience = 300
        waiting.start()
        _until(lambda: turns._queues)
        with pytest.raises(RequestRefused, match="busy"), turns.turn("cyd"):
            pass
        assert turns._queues.keys() == {"bob"}
    waiting.join()
    with turns.turn("ann"):
        pass


def test_one_person_has_a_quota():
    turns = FairQueue(at_once=3, each=2)
    with turns.turn("ann"), turns.turn("ann"):
        with pytest.raises(RequestRefused, match="2 of your requests"), turns.turn("ann"):
            pass
        with turns.turn("bob"):
            pass


def _quietly(turns: FairQueue, who: str) -> None:
    with turns.turn(who):
        pass


def _until(ready) -> None:
    end = time.monotonic() + 300
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.005)


SPILLING = """
import sys
sys.path.insert(0, sys.argv[2])
from isolation_tasks import spill
from whosin import isolation
from whosin.isolation import TaskLimits, WorkerPool
run = isolation.run_isolated if sys.argv[3] == "once" else WorkerPool(["isolation_tasks"]).run
run(spill, sys.argv[1], limits=TaskLimits(600, 1 << 30))
"""
LATER = {
    "a server": lambda: WorkerPool([]).start(),
    "a task": lambda: isolation.run_isolated(add, limits=LIMITS),
    "a program": SpillFolder,
}


@pytest.mark.parametrize(
    ("how", "later"),
    [("worker pool", "a server"), ("once", "a task"), ("worker pool", "a program")],
)
def test_what_a_killed_process_spilled_goes_with_the_next_start(tmp_path, monkeypatch, how, later):
    """Tasks spill in folders of their own, so someone else has to look for what they left."""
    flag, temporary = tmp_path / "flag", tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    helpers = str(Path(__file__).parents[1] / "helpers")
    command = [sys.executable, "-c", SPILLING, str(flag), helpers, how]
    environment = os.environ | {"TMPDIR": str(temporary)}
    with subprocess.Popen(command, env=environment) as process:
        try:
            end = time.monotonic() + 300
            while not (flag.exists() and flag.read_text()) and time.monotonic() < end:
                time.sleep(0.02)
            rows = Path(flag.read_text()) / "rows"
            LATER[later]()
            assert rows.read_text() == "private"  # its process lives
        finally:
            process.kill()
    assert list(temporary.glob("*/*/rows")) == [rows]
    LATER[later]()
    assert not list(temporary.rglob("rows"))


def test_nobody_elses_folder_is_removed(tmp_path):
    """Not one that a link leads to, and not one that has no name of ours."""
    target = tmp_path / "target"
    target.mkdir()
    (tmp_path / f"{TASK_PREFIX}link").symlink_to(target)
    (tmp_path / "whosin-other").mkdir()
    (tmp_path / f"{SPILL_PREFIX}gone").mkdir()
    with PrivateFolder(TASK_PREFIX, tmp_path) as mine:
        remove_abandoned(tmp_path)
        assert Path(mine).is_dir() and stat.S_IMODE(os.stat(mine).st_mode) == 0o700
        names = {each.name for each in tmp_path.iterdir()}
        assert names == {"target", f"{TASK_PREFIX}link", "whosin-other", Path(mine).name}
    assert not Path(mine).exists()
