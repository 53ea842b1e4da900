"""`whosin audit`: what it prints and draws, how it exits, how it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest

import whosin as wi
from whosin.audit import Count, Event
from whosin.audit.orderings import ByValue
from whosin.report.audit import print_audit

MINE = """
import numpy as np
import whosin as wi

def noisy(count, size, rng):
    return count + rng.laplace(0, 0.5, size)

def one(count, rng):
    return "yes" if rng.random() < (0.7 if count else 0.3) else "no"

def noisy_max(queries, size, rng):
    return (queries + rng.laplace(0, 2, (size, len(queries)))).argmax(axis=1)

def pairs():
    yield 1, 0
    yield 2, 0

def broken(count, size, rng):
    raise ValueError("no luck")

def few():
    raise ValueError("none")

response = wi.mechanisms.RandomizedResponse(epsilon=1)
number = 3
"""


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "attacked_here.py").write_text(MINE, encoding="utf-8")
    (tmp_path / "does_not_load.py").write_text("import nothing_of_that_name", encoding="utf-8")

    return lambda line, *more: run(f"audit {line}", *more, "--seed", "1")


WORLDS = "--with 1 --without 0 --samples 20000"


def test_a_refuted_claim(run):
    code, out, err = run(f"attacked_here:noisy {WORLDS} --claims-epsilon 1")
    assert (code, err) == (1, "")
    for part in ("at least 1.9", "output ≥", "fresh draws with", "is refuted by this event"):
        assert part in out


def test_a_claim_that_is_not_refuted(run):
    code, out, err = run(f"attacked_here.py:noisy {WORLDS} --claims-epsilon 2.5")
    assert (code, err) == (0, "")
    assert "not refuted" in out and "no proof of privacy" in out
    assert "private" not in out


def test_json(run):
    code, out, err = run(
        f"attacked_here:one {WORLDS} --claims-epsilon 0.5 --confidence 0.999 --json"
    )
    data = json.loads(out)
    assert (code, err) == (1, "") and data["refuted"] is True
    assert 0.7 < data["epsilon"] <= np.log(7 / 3) and data["event"]["outputs"] == ["yes"]
    assert data["seed"] == 1 and data["posterior"] > 0.67
    granted = json.loads(
        run(f"attacked_here:one {WORLDS} --claims-epsilon 0.5 --claims-delta 0.3 --json")[1]
    )
    assert granted["delta"] == 0.3 and granted["epsilon"] < data["epsilon"]


def test_the_exact_level_beside_the_bound(run):
    code, out, _err = run("attacked_here:response --entities 2 --samples 40000 --json")
    data = json.loads(out)
    assert code == 0 and data["exact"]["epsilon"] == pytest.approx(1)
    assert 0.9 < data["epsilon"] <= data["exact"]["pair"] + 1e-12
    code, out, _err = run("attacked_here:response --entities 1 --samples 5000")
    assert code == 0 and "exactly 1.0000 for these inputs" in out


def test_a_channel_file(run, tmp_path):
    rows = [["3/4", "1/4"], ["1/2", "1/2"], ["0.6", "0.4"], ["1/4", "3/4"]]
    space = {"kind": "subsets", "entities": ["ann", "bob"]}
    data = {"space": space, "outputs": ["low", "high"], "probabilities": rows}
    (tmp_path / "coin.json").write_text(json.dumps(data), encoding="utf-8")
    code, out, _err = run("coin.json --samples 200000")
    assert code == 0 and "ann in or out" in out and "exactly 0.8755 for these inputs" in out
    code, out, _err = run("coin.json --samples 2000 --with", "['ann']", "--without", "[]")
    assert (code == 0 and "nobody" in out) or "[]" in out


def test_plans(run, tmp_path):
    wi.calibrate(
        wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5"), query=wi.Query("count")
    ).save(tmp_path / "plan.json")
    code, out, _err = run("--against plan.json --samples 20000")
    assert code == 0 and "the plan's own noise" in out and "not refuted" in out
    code, out, _err = run(f"attacked_here:noisy {WORLDS} --against plan.json")
    assert code == 1 and "at most 60.0% sure" in out and "refuted by this event" in out


def test_searches(run):
    code, out, _err = run("attacked_here:noisy --pairs attacked_here:pairs --samples 20000")
    assert code == 0 and "pair 1" in out
    line = "attacked_here:noisy_max --queries 4 --relation replace --samples 40000 --json"
    data = json.loads(run(line)[1])
    assert data["pattern"] == "first query up, the rest down" or "down" in data["pattern"]


def test_scores_and_one_run(run, tmp_path):
    rng = np.random.default_rng(1)
    inside = rng.random(600) < 0.5
    scores = inside * 2 + rng.normal(size=600)
    for name in ("member", "included"):
        lines = [f"{name},score", *(f"{int(a)},{b}" for a, b in zip(inside, scores, strict=True))]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines), encoding="utf-8")
    code, out, _err = run("--scores member.csv --claims-epsilon 0.5 --save rates.svg")
    assert code == 1 and "TPR at 0.1 FPR" in out and "too few non-members" in out
    assert (tmp_path / "rates.svg").read_text(encoding="utf-8").startswith("<svg")
    code, out, _err = run("--one-run included.csv --json --save beliefs.svg")
    data = json.loads(out)
    assert code == 0 and data["epsilon"] > 1 and data["canaries"] == 600
    assert "at least" in (tmp_path / "beliefs.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "one of module:function"),
        ("attacked_here", "module:function"),
        ("attacked_here:", "module:function"),
        (f"attacked_here:nosy {WORLDS}", "did you mean 'noisy'"),
        (f"attacked_here:number {WORLDS}", "a function m(input, size, rng)"),
        (f"not_a_module_here:f {WORLDS}", "a module of the current folder"),
        (f"does_not_load:f {WORLDS}", "nothing_of_that_name"),
        (f"gone.py:f {WORLDS}", "a Python file that exists"),
        ("gone.json", "no such file"),
        ("attacked_here:noisy", "given in one way: by --with"),
        ("attacked_here:noisy --with 1", "--without"),
        (f"attacked_here:noisy {WORLDS} --queries 3", "several"),
        (f"attacked_here:noisy {WORLDS} --relation replace", "given with --queries"),
        ("attacked_here:noisy --queries 3 --relation swap", "relation"),
        ("attacked_here:noisy --with ?? --without 0", "--with must be"),
        ("attacked_here:noisy --pairs attacked_here:few", "ValueError: none"),
        ("attacked_here:noisy --pairs attacked_here:number", "pairs of inputs"),
        (f"attacked_here:broken {WORLDS}", "ValueError: no luck"),
        (f"attacked_here:noisy {WORLDS} --entities 3", "--entities"),
        ("attacked_here:response", "--entities must be given"),
        ("attacked_here:noisy --with 1 --without 0 --samples 5", "at least 40"),
        ("attacked_here:noisy --with 1 --without 0 --samples x", "--samples"),
        ("attacked_here:noisy --with 1 --without 0 --samples 2.5", "whole number"),
        (f"attacked_here:noisy {WORLDS} --claims-epsilon 12", "to be able to refute"),
        (f"attacked_here:noisy {WORLDS} --claims-epsilon -1", "at least 0"),
        (f"attacked_here:noisy {WORLDS} --claims-delta 0.1", "given with --claims-epsilon"),
        (f"attacked_here:noisy {WORLDS} --claims-epsilon 1 --claims-delta 2", "below 1"),
        (f"attacked_here:noisy {WORLDS} --confidence 2", "confidence"),
        (f"attacked_here:noisy {WORLDS} --prior 2", "--prior"),
        (f"attacked_here:noisy {WORLDS} --save x.pdf", "--save"),
        (f"attacked_here:noisy {WORLDS} --against gone.json", "no such file"),
        ("--scores gone.csv", "no such file"),
        ("--scores attacked_here.py", "the columns member and score"),
        ("--scores a.csv --one-run b.csv", "several"),
        ("--scores a.csv --with 1", "left out with scores"),
    ],
)
def test_wrong_calls(run, line, words):
    code, out, err = run(line)
    assert code == 2 and out == ""
    assert words in err and err.count("\n") == 1 and "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("member,score\n1,2\nmaybe,3\n", "member in line 3"),
        ("member,score\n1,two\n", "score in line 2"),
        ("member,score\n1,0.5\n", "at least 20 scores"),
    ],
)
def test_wrong_tables(run, tmp_path, text, words):
    (tmp_path / "scores.csv").write_text(text, encoding="utf-8")
    code, _out, err = run("--scores scores.csv")
    assert code == 2 and words in err


@pytest.mark.parametrize("first", ["with", "without"])
def test_the_event_for_gamma_is_the_one_that_favours_with(first, capsys):
    """Whichever of two counted events is the stronger, only one of them speaks of γ."""
    other = "without" if first == "with" else "with"
    counts = tuple(
        Count(Event(ByValue(), threshold, favours), 50, 10, 100, 100, bound)
        for favours, threshold, bound in ((first, 1.0, 0.9), (other, 2.0, 0.3))
    )
    found = wi.audit.Audit(0.9, 0.3, 0.95, counts=counts, samples=200, with_=1, without=0)
    print_audit(found, "it", None, None, 0.5)
    lines = capsys.readouterr().out.splitlines()
    (marked,) = [line for line in lines if "γ" in line]
    assert "output ≥" in marked
    (strongest,) = [line for line in lines if line.startswith("event") and " 1" in line]
    assert ("≥" in strongest) == (first == "with")
