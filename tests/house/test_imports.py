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

TABLE = re.compile(r"^\| `(\w+)` \|.*\| ([\w, ]+) \|$", re.MULTILINE)


def stated() -> dict[str, set[str]]:
    """The rooms in the order of ARCHITECTURE's table, with what each imports."""
    page = (ROOT.parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return {room: set(names.split(", ")) - {"nothing"} for room, names in TABLE.findall(page)}


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


def test_the_table_of_rooms_says_what_is_imported():
    assert stated() == imports() | {"app": {"everything"}}


def test_rooms_import_only_rooms_above_them() -> None:
    above: set[str] = set()
    for room, names in stated().items():
        assert room == "app" or names <= above, f"{room} imports {sorted(names - above)}"
        above.add(room)


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
