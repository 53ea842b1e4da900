"""What is in `deploy/`: units that systemd takes, and commands whose options there are."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
def test_systemd_takes_the_units(tmp_path):
    for unit in ("whosin-monthly.service", "whosin-monthly.timer"):
        shutil.copy(DEPLOY / unit, tmp_path)
    done = subprocess.run(
        ["systemd-analyze", "verify", *sorted(map(str, tmp_path.iterdir()))],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "whosin-monthly" not in done.stderr, done.stderr
    wrong = tmp_path / "whosin-monthly.timer"
    wrong.write_text(wrong.read_text().replace("OnCalendar=*-*-02", "OnCalendar=*-*-42"))
    done = subprocess.run(["systemd-analyze", "verify", wrong], capture_output=True, text=True)
    assert done.returncode or "whosin-monthly" in done.stderr


def test_commands_have_the_options_that_they_are_given(run):
    service = (DEPLOY / "whosin-monthly.service").read_text("utf-8")
    (line,) = re.findall(r"^ExecStart=/usr/bin/env whosin (.+)$", service, re.MULTILINE)
    page = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]["page"]
    for words in (shlex.split(line), page["command"]):
        code, out, err = run(f"{words[0]} --help")
        assert code == 0, err
        for option in [word for word in words if word.startswith("--")]:
            assert option in out, (words[0], option)


def test_the_image_has_the_extras_that_the_page_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    (named,) = re.findall(r"/src\[([a-z,]+)\]", text)
    assert (
        {"web", "postgres", "release"}
        <= set(named.split(","))
        <= set(project["optional-dependencies"])
    )
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    assert services["services"].keys() == {"ledger", "page"}
    assert services["services"]["page"]["depends_on"]["ledger"]["condition"] == "service_healthy"
    for service in services["services"].values():
        assert set(service["secrets"]) <= services["secrets"].keys()
        assert service["healthcheck"]["test"][0] == "CMD"
