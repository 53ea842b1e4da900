"""Tests draw the same in every run, and what is forked from them does not."""

from __future__ import annotations

import json
import os
import random

import numpy as np
import pytest
from hypothesis import settings

import chance
import whosin as wi


def draws() -> list[object]:
    return [
        random.random(),
        np.random.laplace(),
        np.random.default_rng().random(),
        int(wi.noise.discrete_laplace(10**15)),
        int(wi.noise.uniform(2**60)),
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
    assert len(forked) == 2 and not set(forked) & set(here)
    chance.fresh()
    assert not set(draws()) & set(here)
