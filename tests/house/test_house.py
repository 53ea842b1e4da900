"""The shape of the source tree: its modules, their names, which imports which (ARCHITECTURE.md),
and that each number of a theorem is explained."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from statistics import median
from types import ModuleType

import pytest

import whosin
from whosin.references import THEOREMS

ROOT = Path(whosin.__file__).parent
DOCS = ROOT.parents[1] / "docs"
MAP = (ROOT.parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
ROOMS = re.findall(r"^- \*\*`(\w+)`\*\*: ", MAP, re.MULTILINE)
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
SHARED_NAMES = {
    "Independent": ["families", "priors"],
    "FixedSize": ["families", "priors"],
    "Count": ["release", "spaces"],
    "Sum": ["release", "spaces"],
    "Histogram": ["release", "spaces"],
}
"""Classes of two rooms with one name: families and priors, statistics and queries."""
PREPOSITIONS = frozenset(
    ["of", "on", "at", "in", "as", "by", "with", "without", "from", "to", "beside", "within"]
)

TERSE_NAMES = {
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


def statements(block: list[ast.stmt]) -> Iterator[ast.AST]:
    """The statements of a block and of those inside it, without their expressions."""
    for node in block:
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, part, []))


@cache
def imported(name: str, *, everywhere: bool) -> set[str]:
    tree = modules()[name][1]
    found = set()
    for node in statements(tree.body) if everywhere else tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("whosin"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in modules() else str(node.module))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in modules()}
    return found


def room_of(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def test_the_map_has_every_room_and_module_with_its_line():
    assert set(ROOMS) == {room_of(name) for name in modules()} - {""}
    lines = {
        f"whosin.{room}.{name}": " ".join(said.split())
        for room, listed in re.findall(r"^- \*\*`(\w+)`\*\*: ((?:.*\n)(?: .*\n)*)", MAP, re.M)
        for name, said in re.findall(r"^  - `([\w.]+)`: ((?:.*\n)(?:    .*\n)*)", listed, re.M)
    }
    stated = {
        name: " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split())
        for name, (path, tree, _) in modules().items()
        if name.count(".") > 1 and path.name != "__init__.py"
    }
    assert lines == stated


def test_rooms_import_only_rooms_above_them() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for name in modules():
        found[room_of(name)] |= set(map(room_of, imported(name, everywhere=True)))
    for number, room in enumerate(ROOMS):
        others = found[room] - {room, ""}
        assert others <= set(ROOMS[:number]), room
        assert not others & FORBIDDEN.get(room, set()), room


def top_level_functions() -> list[tuple[str, str]]:
    return [
        (node.name.strip("_"), name)
        for name, (_, tree, _) in modules().items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list
    ]


def test_a_module_is_a_concept():
    lines = line_counts()
    assert len(lines) <= 240
    assert median(lines.values()) >= 170
    assert {name: count for name, count in lines.items() if count > 700} == {}


def test_no_small_module_serves_one_sibling_alone():
    users = defaultdict(set)
    for name in modules():
        for each in imported(name, everywhere=True):
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
    assert alone == set()


def test_module_names_are_used_once():
    names = Counter(
        name.rpartition(".")[2]
        for name, (path, _, _) in modules().items()
        if path.name != "__init__.py"
    )
    assert len({name for name, count in names.items() if count > 1} - {"base"}) <= 10


def test_no_class_has_the_name_of_another():
    rooms = defaultdict(list)
    for name, (_, tree, _) in sorted(modules().items()):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                rooms[node.name].append(room_of(name))
    assert {name: found for name, found in rooms.items() if len(found) > 1} == SHARED_NAMES


@pytest.mark.parametrize(
    "room", sorted({path.parent.name for path in ROOT.glob("*/__init__.py")} - {"app"})
)
def test_no_function_hides_a_module(room):
    """`from whosin.audit import scores` is the function, and no module can be meant."""
    public = import_module(f"whosin.{room}")
    names = {path.stem for path in (ROOT / room).iterdir()} - {"__init__"}
    shown = names & {*getattr(public, "__all__", ()), *vars(public)}
    assert all(isinstance(getattr(public, name), ModuleType) for name in shown)


def test_few_lines_are_imports():
    lines = [line for _, _, text in modules().values() for line in text.splitlines()]
    assert sum(line.startswith(("import ", "from ")) for line in lines) <= 0.06 * len(lines)


def test_no_module_imports_itself_through_others():
    graph = {name: imported(name, everywhere=False) for name in modules()}
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


def test_names_in_the_comments_are_names_of_something():
    """Names in backticks, such as a module that is gone, are also written somewhere without."""
    texts = {name: text for name, (_, _, text) in modules().items()}
    pages = [path.read_text("utf-8") for path in (ROOT / "app" / "web" / "static").glob("*.js")]
    written = set(re.findall(r"\w+", re.sub(r"`[^`\n]*`", "", "".join([*texts.values(), *pages]))))
    lost = {
        (name, word)
        for name, text in texts.items()
        for word in re.findall(r"`([a-z_]{3,})`", text)
        if word not in written
    }
    assert lost == set()


def number_entries() -> dict[str, str]:
    """The text of each number: of facts and theorems on their page as the site shows it, of errata
    on theirs."""
    facts, errata = (DOCS / name for name in ("theory/numbers.md", "errata.md"))
    spec = importlib.util.spec_from_file_location("hooks", DOCS.parent / "mkdocs_reference.py")
    assert spec and spec.loader
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    shown = hooks.on_page_markdown(facts.read_text("utf-8"), None, None, None)
    return dict(
        re.findall(r"^- \*\*([TF]\d+)\*\* (.+)$", shown.split("**Proofs")[0], re.MULTILINE)
        + re.findall(r"^## (E\d+): (.+)$", errata.read_text("utf-8"), re.MULTILINE)
    )


def test_the_documentation_explains_every_number_that_the_code_mentions():
    mentioned = {
        (number, name)
        for name, (_, _, text) in modules().items()
        for number in re.findall(r"\b[TFE]\d{1,2}\b", text)
    }
    assert len({number for number, _ in mentioned}) > 40
    explained = number_entries()
    assert {each for each in mentioned if each[0] not in explained} == set()
    for number, theorem in THEOREMS.items():
        assert explained[number] == f"{theorem.statement} [{theorem.source}]."
    assert [name for name, (_, _, text) in modules().items() if "THEORY" in text] == []
