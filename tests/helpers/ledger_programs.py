"""Programs that use a ledger in processes of their own."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

from whosin.isolation import TaskLimits, WorkerPool

START = """
import sys
import whosin as wi
from whosin.errors import *
from whosin.ledger import *
PRICE = Spend({'query': 'count'}, {'add-remove': Cost.pure('0.001')})
"""
KILLS = Path(__file__).with_name("ledger_kills.py")
UNPRIVILEGED = """
import os, tempfile
with tempfile.TemporaryDirectory() as folder:  # everything is imported before rights are given up
    wi.Ledger(folder + "/x.db", who="tester").dispose()
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    ledger = wi.Ledger(sys.argv[1], who="tester")
    print(ledger.answer("d", PRICE, lambda: "shown", "r"))
except StoreFailed as error:
    print(error)
"""


def run_kills(url: object, folder: Path, *options: str) -> dict[str, int]:
    """The counts that the program of kills prints."""
    command = [sys.executable, str(KILLS), str(url), str(folder), *options]
    run = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    counts: dict[str, int] = json.loads(run.stdout)
    return counts


def rewrite(path: Path, *statements: str) -> None:
    """Change a ledger's file as another program could."""
    with closing(sqlite3.connect(path)) as base, base:
        for statement in statements:
            base.execute(statement)


def python(code: str, *arguments: object) -> str:
    """What a program prints that runs in a process of its own, forked from one that has imported
    everything and has opened no ledger."""
    given = list(map(str, arguments))
    printed: str = _pool().run(run_program, START + code, given, limits=TaskLimits(900, 4 << 30))
    return printed.strip()


def kill_until(goal: int, url: object, home: Path, kills: int, capsys: Any) -> None:
    """Rounds of kills, each on a dataset of its own, until so many processes were killed; three of
    four over parts, periods and quotas, two of these over periods that lapse and Gaussian noise,
    and one of these with running totals, too."""
    total: dict[str, int] = {}
    for seed in range(10_000):
        folder = home / f"round {seed}"
        folder.mkdir()
        options = ["--debits", "400", "--kills", str(kills), "--seed", str(seed)]
        options += ["--accounts", "--lapses", "--running"][: seed % 4]
        if "--running" in options:  # a session takes a second
            options += ["--debits", "200", "--kills", str(kills // 10)]
        found = run_kills(url, folder, *options)
        total = {key: total.get(key, 0) + value for key, value in found.items()}
        with capsys.disabled():
            print("kills so far:", total)
        if total["kills"] >= goal:
            return
    raise AssertionError(total)


def run_killed(code: str, *arguments: object) -> str:
    """What a program prints that kills itself, with its log in place, in a new interpreter."""
    command = [sys.executable, "-c", START + code, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert run.returncode == -signal.SIGKILL, run.stderr
    return run.stdout


@cache
def _pool() -> WorkerPool:
    return WorkerPool(["whosin.ledger.ledger", "ledger_programs"])


def run_program(code: str, arguments: list[str]) -> str:
    sys.argv[1:] = arguments
    with redirect_stdout(StringIO()) as printed:
        exec(code, {"__name__": "__main__"})
    return printed.getvalue()
