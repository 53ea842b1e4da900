"""The gate of `whosin audit`: where nothing could have been learnt, it does not exit with 0."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import whosin as wi

MINE = """
import os
import numpy as np

drawn = [0]

def constant(value, size, rng):
    return np.zeros(size)

def forgotten(value, rng):
    rng.random()

def nothing(value, size, rng):
    return np.full(size, np.nan)

def walking(value, size, rng):
    steps = drawn[0] + rng.normal(size=size).cumsum()
    drawn[0] = steps[-1]
    return steps + value

def noisy(value, size, rng):
    return value + rng.laplace(0, 1, size)

def plain(value, size, rng):
    return np.full(size, float(value))

def leaving(value, rng):
    os._exit(0)
"""


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gated.py").write_text(MINE, encoding="utf-8")

    def call(line, *more, claim=1):
        repeat = () if line.split()[0] in ("scores", "run") else ("--seed", "1")
        return run(f"audit {line} --at-most {claim}", *more, *repeat)

    return call


WORLDS = "--with 1 --without 0 --samples 2000"


@pytest.mark.parametrize("name", ["constant", "forgotten", "nothing"])
def test_one_output_for_everybody_is_undecided(run, name):
    code, out, _err = run(f"function gated.py:{name} {WORLDS} --json")
    data = json.loads(out)
    assert code == 4 and data["blind"] is True and data["undecided"] == "nothing could be learnt"
    assert "the same in every draw of both inputs" in data["notes"][0]


def test_a_mechanism_with_a_memory_is_refused(run):
    code, out, err = run(f"function gated.py:walking {WORLDS}")
    assert (code, out) == (2, "")
    assert "each draw of the mechanism depends on the one 1 before" in err


def test_one_input_twice_is_refused(run):
    for inputs in ("--with 1 --without 1", "--with [1,0] --without [1,0]"):
        code, out, err = run(f"function gated.py:noisy {inputs} --samples 2000")
        assert (code, out) == (2, "")
        assert "--without" in err


def test_files_of_one_value_are_undecided(run, tmp_path):
    for name, values in (("ones", np.ones(400)), ("empty", np.zeros((400, 0)))):
        np.save(tmp_path / f"{name}.npy", values)
        code, out, _err = run(f"samples {name}.npy {name}.npy")
        assert code == 4 and "nothing could be learnt" in " ".join(out.split())
    np.save(tmp_path / "single.npy", np.float64(3))
    code, _out, err = run("samples single.npy single.npy")
    assert code == 2 and "samples with" in err


@pytest.mark.parametrize("form", ["scores member", "run included", "run gaussian"])
def test_scores_that_are_all_the_same_are_undecided(run, tmp_path, form):
    form, flag = form.split()
    more = ("--gaussian",) if flag == "gaussian" else ()
    flag = "included" if more else flag
    lines = [f"{flag},score", *(f"{place % 2},0.5" for place in range(200))]
    (tmp_path / "scores.csv").write_text("\n".join(lines), encoding="utf-8")
    code, out, _err = run(f"{form} scores.csv --json", *more)
    assert code == 4 and json.loads(out)["blind"] is True


def test_a_synthetic_table_of_one_row_is_undecided(run, tmp_path):
    rng = np.random.default_rng(1)
    for name, rows in (
        ("train", rng.normal(size=(60, 3))),
        ("holdout", rng.normal(size=(60, 3))),
        ("made", np.ones((60, 3))),
    ):
        np.savetxt(tmp_path / f"{name}.csv", rows, delimiter=",", header="a,b,c", comments="")
    code, out, _err = run("synthetic train.csv holdout.csv made.csv")
    assert code == 4 and "undecided: nothing could be learnt" in " ".join(out.split())


def test_code_that_ends_the_process_does_not_pass(run, tmp_path):
    run("function gated.py:noisy --with 1 --without 0 --samples 2000")  # which writes the module
    command = "import sys; from whosin.app.cli.main import run; sys.argv[0] = 'whosin'; run()"
    line = f"audit function gated.py:leaving {WORLDS} --at-most 1".split()
    done = subprocess.run(
        [sys.executable, "-c", command, *line], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 3 and done.stdout == ""
    assert "the code under audit ended the program (os._exit(0))" in done.stderr


def coins(path, heads, count):
    """A perfect attack: all that are in score above all that are out."""
    lines = [f"{int(index < heads)},{count - index}" for index in range(count)]
    path.write_text("included,score\n" + "\n".join(lines))


@pytest.mark.parametrize(
    ("heads", "count", "options", "claim", "least"),
    [
        (10, 1000, "--rate 0.01 --known-rate", 5, 4),
        (5, 10, "", 0.7, 0.5),
        (1, 1000, "--rate 0.001 --known-rate", 1, 0.1),
    ],
)
def test_coins_that_could_not_refute_the_claim_are_undecided(
    run, tmp_path, heads, count, options, claim, least
):
    """The ceiling is that of these coins, at their rate, with or without an interval for it."""
    coins(tmp_path / "perfect.csv", heads, count)
    code, out, _ = run(f"run {tmp_path / 'perfect.csv'} {options}", claim=claim)
    assert code == 4 and f"undecided: {count:,} inclusion bits could show no more" in " ".join(
        out.split()
    )
    bound = wi.audit.one_run(
        np.arange(count) < heads,
        -np.arange(count),
        rate=heads / count,
        known_rate="known" in options,
    )
    assert bound.epsilon <= bound.most <= claim
    if bound.most > least:
        code, *_ = run(f"run {tmp_path / 'perfect.csv'} {options}", claim=least)
        assert code == 1


@pytest.mark.parametrize(("delta", "claim"), [("0.9", 4), ("0.9", 3.3)])
def test_draws_that_could_not_refute_the_claim_for_its_delta_do_not_pass(run, delta, claim):
    """Outputs that give everything away show no more than this."""
    words = "function gated.py:plain --with 1 --without 0 --samples 1000"
    code, out, err = run(f"{words} --delta {delta}", claim=claim)
    assert (code == 2 and "--samples" in err) or (code == 4 and "whatever leaks" in out)
