"""Imports run one way (ARCHITECTURE.md), and `import whosin` stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import whosin

ROOT = Path(whosin.__file__).parent

MAY_IMPORT = {
    "errors": set(),
    "references": set(),
    "vocabulary": set(),
    "notebook_display": set(),
    "validation": {"errors"},
    "extras": {"errors"},
    "interrupts": set(),
    "isolation": {"errors"},
    "documents": {"errors"},
    "exact": {"validation", "errors"},
    "words": {"validation", "errors", "exact", "vocabulary"},
    "beliefs": {"validation", "errors", "exact"},
    "spaces": {"validation", "errors", "exact"},
    "priors": {"validation", "documents", "errors", "exact", "spaces"},
    "families": {"beliefs", "validation", "errors", "exact", "spaces", "priors"},
    "mechanisms": {"validation", "documents", "errors", "exact", "spaces", "vocabulary", "words"},
    "noise": {"validation", "errors", "exact", "extras"},
    "notions": {
        "vocabulary",
        "words",
        "documents",
        "validation",
        "errors",
        "exact",
        "notebook_display",
        "spaces",
        "priors",
        "families",
        "mechanisms",
        "beliefs",
    },
    "theorems": {
        "validation",
        "errors",
        "exact",
        "spaces",
        "priors",
        "families",
        "mechanisms",
        "notions",
        "beliefs",
    },
    "calibration": {
        "vocabulary",
        "words",
        "validation",
        "documents",
        "errors",
        "exact",
        "extras",
        "notebook_display",
        "beliefs",
        "spaces",
        "priors",
        "families",
        "mechanisms",
        "notions",
    },
    "distortion": {
        "interrupts",
        "validation",
        "errors",
        "exact",
        "extras",
        "spaces",
        "priors",
        "mechanisms",
        "notions",
    },
    "release": {
        "interrupts",
        "vocabulary",
        "validation",
        "documents",
        "errors",
        "isolation",
        "exact",
        "extras",
        "notebook_display",
        "spaces",
        "priors",
        "families",
        "calibration",
        "distortion",
        "noise",
        "ledger",
    },
    "audit": {"validation", "errors", "exact", "extras", "beliefs"},
    "gwas": {
        "validation",
        "beliefs",
        "calibration",
        "documents",
        "errors",
        "exact",
        "extras",
        "families",
        "isolation",
        "ledger",
        "noise",
    },
    "ledger": {"errors", "exact", "extras", "notebook_display", "beliefs", "calibration"},
    "report": {
        "audit",
        "gwas",
        "distortion",
        "errors",
        "exact",
        "extras",
        "beliefs",
        "families",
        "ledger",
        "mechanisms",
        "notions",
        "priors",
        "references",
        "release",
        "spaces",
        "theorems",
        "calibration",
    },
}
"""Which rooms a room may import, besides itself. `app` may import all, and nobody imports it."""


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


def violations(may_import: dict[str, set[str]]) -> list[str]:
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        room = room_of(path)
        if room in ("__init__", "app"):
            continue
        for other in imported_rooms(path) - {room} - may_import[room]:
            wrong.append(f"{path.relative_to(ROOT)} imports {other}")
    return wrong


def test_rooms_import_one_way():
    assert violations(MAY_IMPORT) == []


def test_the_rule_can_fail():
    stricter = {**MAY_IMPORT, "families": {"validation", "errors", "exact", "spaces"}}
    assert any("imports priors" in line for line in violations(stricter))


def test_the_allowed_imports_have_no_cycle():
    done: set[str] = set()
    while len(done) < len(MAY_IMPORT):
        free = {room for room, needs in MAY_IMPORT.items() if room not in done and needs <= done}
        assert free, f"a cycle among {sorted(set(MAY_IMPORT) - done)}"
        done |= free


def test_every_room_has_a_rule():
    rooms = {room_of(path) for path in ROOT.rglob("*.py")} - {"__init__", "app"}
    assert rooms == set(MAY_IMPORT)


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
