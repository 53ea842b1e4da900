"""Imports run one way (ARCHITECTURE.md), and `import whosin` stays light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import whosin

ROOT = Path(whosin.__file__).parent

PAGE = (ROOT.parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
ROOMS = re.findall(r"^- \*\*`(\w+)`\*\*: ", PAGE, re.MULTILINE)
"""The rooms in the order of ARCHITECTURE's map."""
ENGINE = {"spaces", "priors", "families", "mechanisms", "notions", "theorems"}
FORBIDDEN = {
    "families": {"mechanisms"},
    "mechanisms": {"families", "priors"},
    "noise": ENGINE | {"beliefs"},
    "marginals": {"noise"},
    "ledger": {"noise"},
    "release": ENGINE - {"families"},
    "audit": ENGINE | {"noise", "calibration", "release"},
}
"""Rooms that know nothing of each other, though they could by their order."""


def imported_rooms(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            parts = node.module.split(".")
            if parts[0] == "whosin":
                found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("whosin.")}
    return found


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports() -> dict[str, set[str]]:
    """What each room really imports, besides itself."""
    found: dict[str, set[str]] = {}
    for path in ROOT.rglob("*.py"):
        room = room_of(path)
        if room != "__init__":
            found.setdefault(room, set()).update(imported_rooms(path) - {room})
    return found


def test_the_map_has_every_room_and_module_with_its_line() -> None:
    assert set(ROOMS) == imports().keys()
    lines = {
        (room, name): " ".join(said.split())
        for room, listed in re.findall(r"^- \*\*`(\w+)`\*\*: ((?:.*\n)(?: .*\n)*)", PAGE, re.M)
        for name, said in re.findall(r"^  - `([\w.]+)`: ((?:.*\n)(?:    .*\n)*)", listed, re.M)
    }
    stated = {}
    for path in ROOT.rglob("*.py"):
        *folder, name = path.relative_to(ROOT).with_suffix("").parts
        if folder and name != "__init__":
            told = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            first = " ".join(told.partition("\n\n")[0].split())
            stated[folder[0], ".".join([*folder[1:], name])] = first
    assert lines == stated


def test_rooms_import_only_rooms_above_them() -> None:
    found = imports()
    for number, room in enumerate(ROOMS):
        assert found[room] <= set(ROOMS[:number]), room
        assert not found[room] & FORBIDDEN.get(room, set()), room


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import whosin", {"numpy", "flint", "rich", "typer", "scipy", "pandas"}),
        ("import whosin.notions", {"rich", "typer", "scipy", "pandas"}),
        ("import whosin.noise", {"flint", "opendp", "rich", "typer", "scipy", "pandas"}),
        ("import whosin.app.cli.main", {"numpy", "flint", "scipy", "pandas"}),
    ],
)
def test_imports_are_light(statement, heavy):
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not heavy & set(run.stdout.split())


def test_public_names_resolve():
    for name in whosin.__all__:
        assert getattr(whosin, name) is not None
    with pytest.raises(AttributeError, match="nothing_here"):
        _ = whosin.nothing_here
