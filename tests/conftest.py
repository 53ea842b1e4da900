"""What several files of tests share: the command, run in this process, and the wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from command import Result
from whosin.app.cli.main import main

ROOT = Path(__file__).parent.parent


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Runs the command: the words of a line, then words that stay as they are."""

    def call(line: object = "", *more: object) -> Result:
        capsys.readouterr()
        code = main([*str(line).split(), *map(str, more)])
        streams = capsys.readouterr()
        return code, streams.out, streams.err

    return call


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy, so that nothing is left in the tree."""
    folder = tmp_path_factory.mktemp("wheel")
    beside = shutil.ignore_patterns("*.egg-info", "__pycache__")
    shutil.copytree(ROOT / "src", folder / "copy" / "src", ignore=beside)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "copy")
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--wheel-dir", str(folder)]
    command = [sys.executable, "-m", "pip", "wheel", *options, str(folder / "copy")]
    built = subprocess.run(command, capture_output=True, text=True)
    # pip makes an environment for building, with a setuptools that knows today's pyproject files.
    if "setuptools" in built.stderr and "ERROR" in built.stderr and not os.environ.get("CI"):
        pytest.skip("the build backend cannot be fetched")
    assert built.returncode == 0, built.stdout + built.stderr
    (made,) = folder.glob("*.whl")
    return made
