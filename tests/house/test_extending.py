"""CONTRIBUTING is true to the letter: one of each kind is added to a copy, in the places it names.

It is there in Python, on the command, in scenarios, on the page, in the schema, in the reference
and in the contract tests.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEW = ROOT / "tests" / "data" / "extending"
NUMBERS = {"one": 1, "three": 3, "four": 4, "five": 5, "six": 6}


@dataclass(frozen=True)
class Addition:
    """What somebody adds.

    Attributes:
        files: new files, by their name in the folder of examples.
        lines: by file, after which line (or before it, where it starts with ^) which text stands.
    """

    files: dict[str, str]
    lines: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    @property
    def places(self) -> int:
        return len({*self.files.values(), *self.lines})


ODDS = (NEW / "target" / "odds.txt").read_text("utf-8").lstrip() + "\n\n"
ADDED = {
    "key": Addition(
        {},
        {
            "src/whosin/scenario_model.py": [
                ("^    prior: Range | None", '    note: Text | None = say("What to remember.")\n')
            ]
        },
    ),
    "family": Addition(
        {
            "even_odds.py": "src/whosin/families/even_odds.py",
            "test_even_odds.py": "tests/families/test_even_odds.py",
        },
        {
            "src/whosin/families/__init__.py": [
                (
                    "^from whosin.families.explicit ",
                    "from whosin.families.even_odds import EvenOdds as EvenOdds\n",
                ),
                ("        AtMostKnown,\n", "        EvenOdds,\n"),
            ],
            "docs/theory/li13.md": [
                ("^| `AtMostKnown(", "| `EvenOdds(apart)` | D_E | `even-odds=0.1` | unsure | |\n")
            ],
        },
    ),
    "query": Addition(
        {
            "absent.py": "src/whosin/release/queries/absent.py",
            "test_absent.py": "tests/release/test_absent.py",
        },
        {
            "src/whosin/release/queries/__init__.pyi": [
                ("^from .base import QUERIES ", "from .absent import Absent as Absent\n"),
            ],
            "docs/release.md": [("^| `keys` |", "| `absent` | entities without a value | |\n")],
        },
    ),
    "target": Addition(
        {"test_odds.py": "tests/calibration/test_odds.py"},
        {
            "src/whosin/calibration/targets.py": [
                ("^HIPAA_TARGET = ", ODDS),
            ],
            "src/whosin/calibration/__init__.py": [
                (
                    "^from whosin.calibration.targets import (",
                    "from whosin.calibration.targets import Odds as Odds\n",
                ),
                ("Rho, Gain, Advantage", ", Odds"),
            ],
            "src/whosin/__init__.pyi": [
                ("^from .calibration import Plan ", "from .calibration import Odds as Odds\n")
            ],
            "src/whosin/scenario_model.py": [
                (
                    "^    rho: Number | None",
                    '    odds: Number | None = say("Or the most the odds grow.")\n',
                )
            ],
            "docs/plan.md": [("^| `Advantage(", "| `Odds(3)` | `--odds 3` | the odds |\n")],
        },
    ),
    "mechanism": Addition(
        {
            "lottery.py": "src/whosin/mechanisms/lottery.py",
            "test_lottery.py": "tests/mechanisms/test_lottery.py",
        },
        {
            "src/whosin/mechanisms/__init__.py": [
                (
                    "^from whosin.mechanisms.finite",
                    "from whosin.mechanisms.lottery import Lottery as Lottery\n",
                ),
                ('    "mixture": Mixture,\n', '    "lottery": Lottery,\n'),
            ],
            "docs/engine.md": [("^| family |", "A lottery names someone.\n\n")],
        },
    ),
    "notion": Addition(
        {
            "total_variation.py": "src/whosin/notions/total_variation.py",
            "test_total_variation.py": "tests/notions/test_total_variation.py",
        },
        {
            "src/whosin/notions/__init__.py": [
                (
                    "^from whosin.notions.semantic_privacy",
                    "from whosin.notions.total_variation import TotalVariation as TotalVariation\n",
                ),
                ('    "mean-shift": MeanShift,\n', '    "total-variation": TotalVariation,\n'),
            ],
            "docs/engine.md": [("^| family |", "Total variation is a notion too.\n\n")],
        },
    ),
    "source": Addition(
        {
            "json_lines.py": "src/whosin/release/engines/json_lines.py",
            "test_json_lines.py": "tests/release/test_json_lines.py",
        },
        {
            "src/whosin/release/engines/__init__.py": [
                (
                    "from whosin.release.engines.duckdb import DuckDB\n",
                    "from whosin.release.engines.json_lines import JsonLines\n",
                ),
                ("(DuckDB, ", "JsonLines, "),
                ('"Engine", ', '"JsonLines", '),
            ],
            "docs/release.md": [("^| `keys` |", "| on `json-lines` | any of these | |\n")],
        },
    ),
}


def test_a_query_is_one_short_file_and_one_line_of_the_registry() -> None:
    added = ADDED["query"]
    source = [name for name, place in added.files.items() if place.startswith("src")]
    assert [
        len((NEW / "query" / name).read_text("utf-8").splitlines()) <= 80 for name in source
    ] == [True]
    lines = [line for name, each in added.lines.items() if name.startswith("src") for line in each]
    assert len(lines) == 1 and lines[0][1].count("\n") == 1


def add(tree: Path, kind: str) -> None:
    """Do what CONTRIBUTING says, by hand."""
    for name, place in ADDED[kind].files.items():
        shutil.copy(NEW / kind / name, tree / place)
    for name, changes in ADDED[kind].lines.items():
        text = (tree / name).read_text(encoding="utf-8")
        for anchor, line in changes:
            where = text.index(anchor.removeprefix("^"))
            where += 0 if anchor.startswith("^") else len(anchor)
            text = text[:where] + line + text[where:]
        (tree / name).write_text(text, encoding="utf-8")


SEEN = """
import json, sys, tempfile
from pathlib import Path
import pytest
import whosin as wi
from whosin.app import reference, scenario_schema
from whosin.app.cli.main import main
from whosin.app.web.bodies import PlanBody
from whosin.app.web.catalogue_routes import kinds
from whosin.calibration import read_plan
from whosin.release.scenario import load_scenario
from whosin.scenario_model import AdversarySection, ScenarioModel

asked = {"adversary": {"note": "x"}, "target": {"gamma": 2}}
noted = {**asked, "table": {"source": "t.csv", "privacy_unit": "who"}}
folder = Path(tempfile.mkdtemp())
(folder / "people.jsonl").write_text('{"who": "a", "x": 1}\\n{"who": "b", "x": null}\\n')
(folder / "scenario.toml").write_text('''
[adversary]
family = "even-odds=0.1"
[target]
odds = 3
[table]
source = "people.jsonl"
privacy_unit = "who"
engine = "json-lines"
[ledger]
url = "ledger.db"
[[queries]]
kind = "absent"
column = "x"
''')
page = kinds()
schema = scenario_schema.scenario_schema()["properties"]
text = reference.reference_markdown()
ok = lambda *words: main(list(words)) == 0
verify = ("verify", "--mechanism", "randomized-response", "--keep", "3/4", "--entities", "1")
scenario = load_scenario(folder / "scenario.toml")
table = scenario.open_table()
opened = table.engine.name
table.engine.close()
seen = {
    "key": {
        "Python": AdversarySection.read({"note": "x"}, "adversary").note == "x",
        "command": ok("plan", "--gamma", "2", "--note", "x"),
        "scenario": ScenarioModel.read(noted, "scenario").adversary.given == {"note": "x"},
        "page": PlanBody.model_validate(asked).adversary.note == "x",
        "schema": schema["adversary"]["properties"]["note"]["type"] == "string",
        "reference": "- `note` What to remember." in text and "- `--note` " in text,
    },
    "family": {
        "Python": wi.families.EvenOdds("0.1").spelled == "even-odds=0.1",
        "command": ok("plan", "--gamma", "2", "--family", "even-odds=0.1"),
        "scenario": scenario.plan.family == wi.families.read_family("even-odds=0.1"),
        "page": any(each.example == "even-odds=0.1" for each in page.families),
        "reference": "wi.families.EvenOdds" in text,
    },
    "query": {
        "Python": wi.queries.Absent(column="x").kind == "absent",
        "command": ok("release", str(folder / "scenario.toml"), "--dry-run"),
        "scenario": scenario.queries[0] == wi.queries.Absent(column="x"),
        "page": any(each.kind == "absent" for each in page.queries),
        "schema": any(each["title"] == "absent" for each in schema["queries"]["items"]["oneOf"]),
        "reference": "wi.queries.Absent" in text,
    },
    "target": {
        "Python": wi.Odds(3).odds == 3,
        "command": ok("plan", "--odds", "3"),
        "scenario": scenario.plan.target == wi.Odds(3),
        "page": ["odds"] in page.targets and any(w.name == "odds" for w in page.words["target"]),
        "schema": "odds" in schema["target"]["properties"],
        "reference": "wi.Odds" in text and "--odds" in text,
    },
    "mechanism": {
        "Python": wi.mechanisms.Lottery(1).keep == 1,
        "command": ok("verify", "--mechanism", "lottery", "--keep", "1/2", "--entities", "2"),
        "reference": "wi.mechanisms.Lottery" in text,
    },
    "notion": {
        "Python": wi.notions.TotalVariation().unit == "level",
        "command": ok(*verify, "--notion", "tv"),
        "page": any(each.name == "total-variation" for each in page.notions),
        "reference": "wi.notions.TotalVariation" in text,
    },
    "source": {
        "Python": wi.release.engines.JsonLines.name == "json-lines",
        "scenario": opened == "json-lines",
        "schema": "json-lines" in schema["table"]["properties"]["engine"]["enum"],
        "reference": "wi.release.JsonLines" in text,
    },
}
Path("seen.json").write_text(json.dumps(seen))
Path("schema", "scenario.json").write_text(scenario_schema.schema_text())  # make schema
sys.exit(pytest.main(["--assert=plain", *sys.argv[1:]]))
"""
OWN_TESTS = [place for each in ADDED.values() for place in each.files.values() if "/test_" in place]
CONTRACTS = [
    "tests/house/test_registries.py",
    "tests/house/test_house.py::test_rooms_import_only_rooms_above_them",
    "tests/notions/test_extremes.py",
]
"""Tests that go through every family, notion and mechanism."""


@pytest.fixture(scope="module")
def extended(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A copy of the project in which everything was added, and a program that has seen it there
    and has run the tests."""
    copy = tmp_path_factory.mktemp("extended") / "whosin"
    beside = shutil.ignore_patterns("*.egg-info", "extending")
    for name in ("src", "tests", "docs", "schema"):
        shutil.copytree(ROOT / name, copy / name, ignore=beside)
    for name in ("pyproject.toml", "README.md", "ARCHITECTURE.md"):
        shutil.copy(ROOT / name, copy / name)
    for kind in ADDED:
        add(copy, kind)
    paths = os.pathsep.join([str(copy / "src"), str(copy / "tests" / "helpers")])
    command = [sys.executable, "-c", SEEN, *OWN_TESTS, *CONTRACTS, "-k", "not large"]
    done = subprocess.run(
        command,
        cwd=copy,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=900,
    )
    return copy, done


@pytest.mark.parametrize("kind", ADDED)
def test_contributing_counts_the_places(kind):
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    heading = re.search(rf"## Add a {kind}: (\w+) places?\n", page)
    assert heading is not None and NUMBERS[heading[1]] == ADDED[kind].places


def test_what_was_added_is_seen_everywhere_and_passes_the_tests(extended):
    tree, done = extended
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads((tree / "seen.json").read_text(encoding="utf-8"))
    assert seen.keys() == ADDED.keys()
    assert [(kind, way) for kind, ways in seen.items() for way in ways if not ways[way]] == []
    assert re.search(r"\d+ passed", done.stdout) and "failed" not in done.stdout
