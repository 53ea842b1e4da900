"""Programs that use a ledger in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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


def python(code: str, *arguments: object) -> str:
    """What a program prints that runs in a process of its own."""
    start = "import sys\nimport whosin as wi\nfrom whosin.errors import *\n"
    start += "from whosin.ledger import *\n"
    start += "PRICE = Spend({'query': 'count'}, {'add-remove': Cost.pure('0.001')})\n"
    command = [sys.executable, "-c", start + code, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()
