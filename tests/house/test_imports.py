"""`import whosin` stays light, and each public name is found when it is the first to be used."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import whosin

ALWAYS = {"rich", "typer", "scipy", "pandas"}
LIGHT = {
    "whosin": {"numpy", "flint"} | ALWAYS,
    "whosin.noise": {"flint", "opendp"} | ALWAYS,
    "whosin.notions": ALWAYS,
    "whosin.app.cli.main": {"numpy", "flint", "scipy", "pandas"},
}
"""What must not come along with a module."""
FIRST_USED = (
    *("whosin:queries", "whosin:Table", "whosin:Session", "whosin:calibrate"),
    *("whosin.release:queries", "whosin.release:Dates", "whosin.release:Answer"),
    "whosin.release.queries:Marginals",
)
FORKED = """
import importlib, json, os, sys
light, first = json.loads(sys.argv[1])

def fork(check):
    child = os.fork()
    if not child:
        os._exit(check())
    return not os.waitpid(child, 0)[1]

def is_light(module):
    importlib.import_module(module)
    return any(name in sys.modules for name in light[module])

def is_missing(place):
    package, name = place.split(":")
    return not hasattr(importlib.import_module(package), name)

print(json.dumps({
    **{module: fork(lambda: is_light(module)) for module in light},
    **{place: fork(lambda: is_missing(place)) for place in first},
}))
"""


def test_imports_are_light_and_in_any_order():
    """Each in a fork of an interpreter that has imported nothing of ours."""
    asked = json.dumps([{name: sorted(heavy) for name, heavy in LIGHT.items()}, FIRST_USED])
    done = subprocess.run(
        [sys.executable, "-c", FORKED, asked], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == dict.fromkeys([*LIGHT, *FIRST_USED], True), done.stderr


def test_public_names_resolve():
    for name in whosin.__all__:
        assert getattr(whosin, name) is not None
    with pytest.raises(AttributeError, match="nothing_here"):
        _ = whosin.nothing_here
