"""Tests draw the same in every run, and what is forked from them does not; what draws in another
way is named here."""

from __future__ import annotations

import json
import os
import random
import re
import secrets
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import chance
import whosin as wi

ROOT = Path(__file__).parents[2]
OWN_CHANCE = re.compile(
    r"chance\.fresh\(|(import|from) opendp|(?<!os\.)\burandom|SystemRandom|getrandom|setseed"
    r"|(?<![\w.])random\(\)|(?i:tablesample|using sample)"
)
"""How code may draw what follows from no name."""
DRAWS_BY_ITSELF = {
    "src/whosin/noise/selection.py": "private selections; `chance` draws by the same law",
    "src/whosin/release/sql.py": "refuses it",
    "tests/bridges/test_bridges.py": "reads objects of OpenDP, and has them draw nothing",
    "tests/conftest.py": "starts from names",
    "tests/helpers/chance.py": "has what draws",
    "tests/helpers/ledger_kills.py": "answers that repeat would prove nothing, and any will do",
    "tests/house/test_chance.py": "this file",
    "tests/noise/test_noise.py": "OpenDP's noise, by counts that hardly ever come",
    "tests/noise/test_selection_prices.py": "OpenDP's selections, likewise",
    "tests/release/test_sql.py": "has it refused",
    "tests/release/test_where.py": "has it refused",
}
"""Where nothing repeats the draws, and why no test fails by chance for that."""


def draws() -> list[object]:
    return [
        random.random(),
        np.random.laplace(),
        np.random.default_rng().random(),
        secrets.randbits(60),
        int(wi.noise.discrete_laplace(10**15)),
        int(wi.noise.uniform(2**60)),
        tuple(wi.noise.top_k(np.zeros(1000), 6, 1).tolist()),
        tuple(wi.noise.top_k(np.zeros(1000), 6, 1, gumbel=True).tolist()),
    ]


@pytest.fixture(scope="module")
def shared() -> list[object]:
    return draws()


@pytest.mark.skipif(chance.FRESH, reason="asked to draw afresh")
def test_the_draws_of_a_test_follow_from_its_name(request, shared):
    """Whatever fixtures ran before it, and with no draw in common with them or another name."""
    here = draws()
    chance.start(request.node.nodeid)
    assert draws() == here
    chance.start("another test")
    assert not set(draws()) & {*here, *shared}
    assert settings().derandomize


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_fresh_draws_and_forks_do_not_repeat(tmp_path):
    chance.start("a name")
    here = draws()
    chance.start("a name")
    child = os.fork()
    if not child:
        (tmp_path / "draws").write_text(json.dumps(draws()[3:]), encoding="utf-8")
        os._exit(0)
    os.waitpid(child, 0)
    assert draws() == here
    forked = json.loads((tmp_path / "draws").read_text(encoding="utf-8"))
    forked = [tuple(each) if isinstance(each, list) else each for each in forked]
    assert len(forked) == 5 and not set(forked) & set(here)
    chance.fresh()
    assert not set(draws()) & set(here)


def test_other_threads_change_no_draws_of_the_first():
    chance.start("a name")
    here = draws()
    chance.start("a name")
    with ThreadPoolExecutor(1) as pool:
        there = pool.submit(draws).result()
        random.seed(0)
    assert draws()[2:] == here[2:] and not set(there[2:]) & set(here)


def test_what_draws_by_itself_is_known():
    """Whoever adds a way to draw says here why no test fails by chance for it."""
    assert DRAWS_BY_ITSELF.keys() == {
        file.relative_to(ROOT).as_posix()
        for folder in ("src", "tests")
        for file in (ROOT / folder).rglob("*.py")
        if OWN_CHANCE.search(file.read_text("utf-8"))
    }
