"""What the tests of `whosin gwas` share: a study in a folder, and what a command shows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from command import Result
from whosin.app.cli.main import main


@pytest.fixture(scope="module")
def study_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated study of as many SNPs as the module says."""
    folder = tmp_path_factory.mktemp("study")
    shape = f"--cases 300 --controls 400 --snps {request.module.SNPS} --causal 3 --odds-ratio 3"
    assert main(["gwas", "simulate", str(folder / "study"), *shape.split()]) == 0
    return folder


@pytest.fixture
def inside(study_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with that study in it."""
    shutil.copytree(study_folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def shown(run: Callable[..., Result]) -> Callable[[str], object]:
    """What a command shows that succeeds, its words one space apart; of --json the data."""

    def call(line: str) -> object:
        code, out, err = run(line)
        assert code == 0, err
        return json.loads(out) if "--json" in line else " ".join(out.split())

    return call
