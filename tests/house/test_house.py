"""The shape of the source tree: how it is cut into modules, and what its names are like."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path
from statistics import median

import pytest

import whosin

ROOT = Path(whosin.__file__).parent
PREPOSITIONS = frozenset(
    ["of", "on", "at", "in", "as", "by", "with", "without", "from", "to", "beside", "within"]
)

SINGLE_IMPORTERS = {
    "whosin.app.web.ledger_routes": "a group of routes a file",
}
"""Modules of under 200 lines that one sibling alone imports, and why they stand by themselves."""

TERSE_NAMES = {
    "find_requests_by": "whose requests",
    "numbers_at": "at a place",
    "sample_with_without": "both sides at once",
    "as_count_lattice": "a conversion",
    "translate_in": "the IN operator",
    "is_join_on": "the ON of a join",
}
"""Functions whose names begin or end with a preposition, and why."""

NUMBER_FORMATS = {
    "whosin.errors": "numbers in messages, by `spell`",
    "whosin.exact": "where exact numbers become digits, rounded in a named direction",
    "whosin.audit.recorded_samples": "floats that were rounded, recognised by their digits",
    "whosin.audit.snapshots": "the bits of a NaN",
}
"""Modules outside `report` and `app` that format numbers, and why."""


@cache
def modules() -> dict[str, tuple[Path, ast.Module, str]]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        found[name] = (path, ast.parse(text), text)
    return found


def line_counts() -> dict[str, int]:
    return {name: text.count("\n") for name, (_, _, text) in modules().items()}


def imported(tree: ast.Module, *, everywhere: bool) -> set[str]:
    nodes = ast.walk(tree) if everywhere else tree.body
    found = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("whosin"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in modules() else str(node.module))
    return found


def top_level_functions() -> list[tuple[str, str]]:
    return [
        (node.name.strip("_"), name)
        for name, (_, tree, _) in modules().items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list
    ]


def test_a_module_is_a_concept():
    lines = line_counts()
    assert len(lines) <= 220
    assert median(lines.values()) >= 170
    assert {name: count for name, count in lines.items() if count > 700} == {}


def test_no_small_module_serves_one_sibling_alone():
    users = defaultdict(set)
    for name, (_, tree, _) in modules().items():
        for each in imported(tree, everywhere=True):
            users[each].add(name)
    lines = line_counts()
    alone = set()
    for name, (path, _, _) in modules().items():
        if path.name == "__init__.py" or lines[name] >= 200 or len(users[name]) != 1:
            continue
        (user,) = users[name]
        sibling = user.rpartition(".")[0] == name.rpartition(".")[0]
        if sibling and modules()[user][0].name != "__init__.py":
            alone.add(name)
    assert alone == set(SINGLE_IMPORTERS)


def test_module_names_are_used_once():
    names = Counter(
        name.rpartition(".")[2]
        for name, (path, _, _) in modules().items()
        if path.name != "__init__.py"
    )
    assert len({name for name, count in names.items() if count > 1} - {"base"}) <= 10


def test_few_lines_are_imports():
    lines = [line for _, _, text in modules().values() for line in text.splitlines()]
    assert sum(line.startswith(("import ", "from ")) for line in lines) <= 0.06 * len(lines)


def test_no_module_imports_itself_through_others():
    graph = {name: imported(tree, everywhere=False) for name, (_, tree, _) in modules().items()}
    above: set[str] = set()
    while fitting := {name for name, needs in graph.items() if needs & set(graph) <= above} - above:
        above |= fitting
    assert set(graph) - above == set()


def test_functions_are_verbs_with_an_object():
    names = top_level_functions()
    assert sum("_" not in name for name, _ in names) <= 0.2 * len(names)
    odd = {
        name
        for name, _ in names
        if {name.split("_")[0], name.split("_")[-1]} & PREPOSITIONS
        or ("_" not in name and name.endswith("ed"))
    }
    assert odd <= set(TERSE_NAMES)


def test_constants_have_a_noun_and_a_unit():
    names = [
        target.id
        for _, tree, _ in modules().values()
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.isupper()
    ]
    assert sum("_" not in name.strip("_") for name in names) <= 10


def test_numbers_are_formatted_where_people_are_told_of_them():
    found = {
        name
        for name, (_, tree, _) in modules().items()
        if not name.startswith(("whosin.report", "whosin.app"))
        for node in ast.walk(tree)
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None
    }
    assert found == set(NUMBER_FORMATS)


PUBLIC_ROOMS = (
    *("audit", "bridges", "calibration", "curves", "distortion", "families", "gwas", "ledger"),
    *("marginals", "mechanisms", "noise", "notions", "priors", "refinement", "release", "rules"),
    *("spaces", "theorems"),
)


@pytest.mark.parametrize("room", PUBLIC_ROOMS)
def test_a_room_shows_what_is_meant(room):
    module = import_module(f"whosin.{room}")
    assert set(dir(module)) == set(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


POINTER = re.compile(r"`(?:whosin\.)?([a-z_]+(?:\.[A-Za-z_]\w*)+)[`(]")


def resolves(dotted: str) -> bool:
    """Whether a dotted name leads to a module or to what is in one."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        if ".".join(["whosin", *parts[:count]]) in modules():
            found: object = import_module(".".join(["whosin", *parts[:count]]))
            for name in parts[count:]:
                if not hasattr(found, name):
                    return name in getattr(found, "__annotations__", {})
                found = getattr(found, name)
            return True
    return False


def test_pointers_in_the_source_lead_somewhere():
    """Names in backticks that begin with a room: `ledger.store`, `exact.rational`."""
    rooms = {name.split(".")[1] for name in modules() if "." in name}
    lost = {
        (name, dotted)
        for name, (_, _, text) in modules().items()
        for dotted in POINTER.findall(text)
        if dotted.split(".")[0] in rooms and not resolves(dotted)
    }
    assert lost == set()
