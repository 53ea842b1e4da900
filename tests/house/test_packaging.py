"""The wheel carries the page and `py.typed`, and works in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import venv
import zipfile
from pathlib import Path

from environments import unpacked

ROOT = Path(__file__).parents[2]
FOLDERS = ("app/web/static", "report/templates")


def run(*command: object, **environment: str) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    found = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, env=clean | environment
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def test_the_wheel_carries_the_page_and_its_types(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "whosin/py.typed" in names
    for folder in FOLDERS:
        for path in (ROOT / "src" / "whosin" / folder).iterdir():
            assert f"whosin/{folder}/{path.name}" in names
    assert not [name for name in names if name.startswith("tests") or "__pycache__" in name]


def test_the_wheel_works_in_an_environment_of_its_own(wheel, tmp_path):
    """Dependencies come from here by a path file, so nothing is fetched; whosin does not."""
    home = tmp_path / "clean"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    (site,) = home.glob("lib/python*/site-packages")
    files = unpacked(wheel)
    # The wheel comes before the dependencies, where an editable whosin may lie.
    (site / "a.pth").write_text(f"{files}\n{sysconfig.get_paths()['purelib']}\n")
    start = "import whosin; print(whosin.__file__); from whosin.app.cli.main import run; run()"
    where, helped = run(python, "-c", start, "--help").split("\n", 1)
    assert Path(where).is_relative_to(files)
    assert "Usage" in helped and "serve" in helped
    ask = (
        "from pathlib import Path\n"
        "import httpx\n"
        "from whosin.app.web.server import running\n"
        "from whosin.app.web.access import Settings\n"
        f"here = Path({str(tmp_path)!r})\n"
        "with running(Settings(here, 'ledger.db', here / 'users.json')) as url:\n"
        "    print(httpx.get(url).text, httpx.get(url + '/static/app.js').status_code)\n"
    )
    served = run(python, "-c", ask)
    assert "How sure can anyone be" in served and served.strip().endswith("200")
