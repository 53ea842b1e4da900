"""Mutation runs (`make mutate`): a module is changed in one place, and its tests must fail.

Contract: nothing is written to the tree. Each mutant is a forked process in which the changed
module takes the place of the true one; its tests run there until the first fails, within some
seconds of computing and some minutes of waiting, those that are called like the module first. A
mutant whose tests pass survives, and is printed with its place. Strings and annotations are left
alone.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.abc
import importlib.machinery
import math
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = {
    "beliefs": ("beliefs.py", "calibration/test_beliefs.py"),
    "exact": (
        "exact.py",
        "exact/test_exact.py exact/test_writing.py exact/test_rounding.py "
        "notions/test_short_forms.py report/test_directions.py",
    ),
    "noise": (
        "noise/*.py",
        "noise/test_noise.py noise/test_distributions.py noise/test_selection_prices.py "
        "noise/test_gap_and_cube.py",
    ),
    "ledger": (
        "ledger/*.py",
        "ledger/test_ledger.py ledger/test_suspending.py ledger/test_registration.py",
    ),
}
"""Which modules a room has, and the tests that must notice."""
FIRST = (
    "flint", "hypothesis", "ibis.backends.duckdb", "numpy.testing", "pandas", "psycopg",
    "pyarrow.parquet", "pytest", "rich.console", "scipy.stats", "typer",
)  # fmt: skip
"""What mutants need, imported before they are forked."""
APART = "wherever_it_runs"
"""In the name of a test whose processes are not forked, and so have the true module."""
LEAST = 10
TIMES = 4
LONGEST = 600
"""A mutant may compute for `LEAST` seconds, or `TIMES` as long as the tests take without a change
if that is longer, and has to end within `LONGEST` seconds."""
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "floor": "ceil", "ceil": "floor", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """A module with one change: of its node of this number, in one of the ways that there are."""

    path: Path
    line: int
    number: int
    way: int

    @property
    def module(self) -> str:
        name = self.path.relative_to(ROOT / "src").with_suffix("")
        return ".".join(name.parts).removesuffix(".__init__")

    def changed(self) -> tuple[ast.Module, str]:
        """The module, and what is different in it."""
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        node = next(each for number, each in enumerate(ast.walk(tree)) if number == self.number)
        before = ast.unparse(node)
        _change(node, self.way)
        return ast.fix_missing_locations(tree), f"{before} → {ast.unparse(node)}"

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.changed()[1]}"


def mutants(path: Path) -> Iterator[Mutant]:
    """All single changes of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for number, node in enumerate(ast.walk(tree)):
        for way in range(_ways(node)):
            yield Mutant(path, getattr(node, "lineno", 0), number, way)


def _ways(node: ast.AST) -> int:
    """How many changes of this node there are."""
    if isinstance(node, ast.Compare):
        return sum(type(op) in SWAPS for op in node.ops)
    if isinstance(node, ast.BinOp | ast.BoolOp):
        return int(type(node.op) in SWAPS and not _annotates(node))
    if isinstance(node, ast.UnaryOp):
        return int(isinstance(node.op, ast.Not | ast.USub))
    if isinstance(node, ast.Constant):
        return int(isinstance(node.value, bool | int | float))
    if isinstance(node, ast.Name | ast.Attribute):
        return int((node.id if isinstance(node, ast.Name) else node.attr) in NAMES)
    return 0


def _annotates(node: ast.BinOp | ast.BoolOp) -> bool:
    return isinstance(node.op, ast.BitOr)


def _change(node: ast.AST, way: int) -> None:
    if isinstance(node, ast.Compare):
        node.ops[way] = SWAPS[type(node.ops[way])]()  # type: ignore[call-overload]
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
        if isinstance(node.op, ast.Not):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, ast.Constant):
        value = node.value
        node.value = not value if isinstance(value, bool) else value + 1  # type: ignore[operator]
    elif isinstance(node, ast.Name):
        node.id = NAMES[node.id]
    elif isinstance(node, ast.Attribute):
        node.attr = NAMES[node.attr]


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads a mutant in place of its module."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self.mutant.module:
            return None
        package = self.mutant.path.name == "__init__.py"
        spec = importlib.machinery.ModuleSpec(
            name, self, origin=str(self.mutant.path), is_package=package
        )
        spec.has_location = True
        if package:
            spec.submodule_search_locations = [str(self.mutant.path.parent)]
        return spec

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.mutant.changed()[0], str(self.mutant.path), "exec"), module.__dict__)


class Quick:
    """Looks for a failure, and not for the simplest one."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("quick", settings.get_profile("same"), phases=phases)
        settings.load_profile("quick")


def passes(tests: list[str], mutant: Mutant | None = None, seconds: int = 0) -> bool:
    """Whether all tests pass, in a process of their own."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        if mutant is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            sys.meta_path.insert(0, Changed(mutant))
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        options = ["-x", "-q", "--assert=plain", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        os._exit(int(pytest.main([*options, "-k", f"not {APART}", *tests], [Quick()])))
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.05)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


def run(room: str, sample: int | None, at: str = "") -> float:
    """The share of a room's mutants that tests kill; survivors are printed."""
    pattern, files = ROOMS[room]
    tests = [str(ROOT / "tests" / name) for name in files.split()]
    found = [each for path in sorted((ROOT / "src/whosin").glob(pattern)) for each in mutants(path)]
    if sample is not None and sample < len(found):
        found = random.Random(room).sample(found, sample)
    found = [each for each in found if at in f"{each.path}:{each.line}:"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    if not passes(tests):
        raise SystemExit(f"{room}: the tests fail without a change")
    usual = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    seconds = max(LEAST, math.ceil(TIMES * usual))
    killed, start = 0, time.monotonic()
    for number, each in enumerate(found, 1):
        ordered = sorted(tests, key=lambda name: each.path.stem not in Path(name).stem)
        if passes(ordered, each, seconds):
            print(f"survives: {each}", flush=True)
        else:
            killed += 1
        print(f"{room}: {number} of {len(found)}", end="\r", file=sys.stderr, flush=True)
    took = time.monotonic() - start
    print(f"{room}: {killed} of {len(found)} killed ({killed / len(found):.1%}) in {took:.0f} s")
    return killed / len(found)


def main() -> None:
    """Mutate the rooms that are named, by default all."""
    parser = argparse.ArgumentParser(description="Change modules in one place; tests must fail.")
    parser.add_argument("rooms", nargs="*", choices=[*ROOMS, []], help="by default all")
    parser.add_argument("--sample", type=int, help="how many mutants of each room; all by default")
    parser.add_argument("--at", default="", help="only those here, such as noise/gaussian.py:70:")
    given = parser.parse_args()
    for name in FIRST:
        importlib.import_module(name)
    for room in given.rooms or ROOMS:
        run(room, given.sample, given.at)


if __name__ == "__main__":
    main()
