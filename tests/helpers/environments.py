"""Environments that have the wheel and some of the packages that are installed here, and no others.

They are folders of links, so nothing is fetched and nothing is copied.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def require_program(name: str) -> None:
    """Skip a test where a program is missing; CI must have it."""
    if shutil.which(name) is None:
        assert not os.environ.get("CI"), f"CI needs {name}"
        pytest.skip(f"{name} is not installed")


def environment(wheel: Path, home: Path, extras: Iterable[str] = (), more: str = "") -> Path:
    """A folder with the wheel, what it needs with these extras, and `more`, a requirement."""
    home.mkdir(parents=True, exist_ok=True)
    for each in unpacked(wheel).iterdir():
        (home / each.name).symlink_to(each)
    (about,) = home.glob("whosin-*.dist-info/METADATA")
    asked = [
        Requirement(line.removeprefix("Requires-Dist: "))
        for line in about.read_text(encoding="utf-8").splitlines()
        if line.startswith("Requires-Dist: ")
    ]
    wanted = [each for each in asked if _applies(each, extras)]
    wanted += [Requirement(more)] if more else []
    for name in closure(wanted):
        for file in distribution(name).files or ():
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not (home / top).exists():
                (home / top).symlink_to(Path(str(distribution(name).locate_file(top))))
    return home


def unpacked(wheel: Path) -> Path:
    """The wheel's files, which are compiled by whoever imports them first."""
    folder = wheel.parent / "unpacked"
    if not folder.exists():
        zipfile.ZipFile(wheel).extractall(folder)
    return folder


def closure(wanted: Iterable[Requirement]) -> set[str]:
    """These distributions and all that they need."""
    found: set[tuple[str, str]] = set()
    left = [(canonicalize_name(each.name), extra) for each in wanted for extra in _extras(each)]
    while left:
        name, extra = left.pop()
        if (name, extra) in found:
            continue
        try:
            needed = distribution(name).requires or []
        except PackageNotFoundError:  # needed on another system only, or an older Python
            continue
        found.add((name, extra))
        for each in map(Requirement, needed):
            if _applies(each, [extra]):
                left += [(canonicalize_name(each.name), more) for more in _extras(each)]
    return {name for name, _ in found}


def python(home: Path, code: str, *words: object, folder: Path) -> Any:
    """What a program answers in an environment, in a folder: the JSON that it prints last."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    command = [sys.executable, "-S", "-c", code, *map(str, words)]  # -S: nothing else is found
    made = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=clean | {"PYTHONPATH": str(home)}
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return json.loads(made.stdout.splitlines()[-1])


def _extras(requirement: Requirement) -> list[str]:
    return ["", *sorted(requirement.extras)]


def _applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))
