"""A name means one thing: no two public classes share it, and no function hides a module."""

from __future__ import annotations

import ast
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import whosin

ROOT = Path(whosin.__file__).parent
EXPLAINED = {
    "Independent": {"families", "priors"},
    "FixedSize": {"families", "priors"},
    "Count": {"spaces", "release"},
    "Sum": {"spaces", "release"},
    "Histogram": {"spaces", "release"},
}
"""Names that two namespaces share, and their rooms: families and priors, statistics and queries."""
ROOMS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name != "app")


def public_classes() -> dict[str, list[str]]:
    """The rooms that define a class of each name."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(ROOT).parts[0])
    return found


def test_no_class_has_the_name_of_another():
    twice = {name: rooms for name, rooms in public_classes().items() if len(rooms) > 1}
    assert {name: set(rooms) for name, rooms in twice.items()} == EXPLAINED
    assert all(len(rooms) == 2 for rooms in twice.values())


@pytest.mark.parametrize("room", ROOMS)
def test_no_function_hides_a_module(room):
    """`from whosin.audit import scores` is the function, and no module can be meant."""
    public = import_module(f"whosin.{room}")
    modules = {path.stem for path in (ROOT / room).iterdir() if path.stem != "__init__"}
    hidden = {
        name
        for name in modules & {*getattr(public, "__all__", ()), *vars(public)}
        if not isinstance(getattr(public, name), ModuleType)
    }
    assert not hidden
