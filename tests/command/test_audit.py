"""`whosin audit`: what it prints and draws, how it exits, how it refuses."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import whosin as wi
from whosin.app.cli.main import main
from whosin.audit import Event, EventCount
from whosin.audit.distinguishers import ByValue
from whosin.report.audit import describe_audit
from whosin.report.terminal import print_document

MINE = """
import numpy as np
import whosin as wi

def noisy(count, size, rng):
    return (count + rng.laplace(0, 0.5, size)).round(2)

def one(count, rng):
    return "yes" if rng.random() < (0.7 if count else 0.3) else "no"

def slow(count, rng):
    for _ in range(200 if count else 20):
        rng.random()
    return "yes" if rng.random() < 0.5 else "no"

def noisy_max(queries, size, rng):
    return (queries + rng.laplace(0, 2, (size, len(queries)))).argmax(axis=1)

def pairs():
    yield 1, 0
    yield 2, 0

def broken(count, size, rng):
    raise ValueError("no luck")

def few():
    raise ValueError("none")

def leaving(count, size, rng):
    import sys
    sys.exit(5)

def leaving_pairs():
    raise SystemExit(0)

def talking(count, size, rng):
    import os
    print("drawing", size)
    os.write(1, b"from below")
    return (count + rng.laplace(0, 0.5, size)).round(2)

def unreadable(count, rng):
    return rng.bytes(16).hex()

def sometimes(count, size, rng):
    if count:
        raise ValueError("no luck")
    return rng.laplace(0, 0.5, size)

print("a module that talks")
response = wi.mechanisms.RandomizedResponse(epsilon=1)
number = 3
"""


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "attacked_here.py").write_text(MINE, encoding="utf-8")
    (tmp_path / "does_not_load.py").write_text("import nothing_of_that_name", encoding="utf-8")

    def call(line, *more):
        repeat = () if line.split()[0] in ("scores", "run") else ("--seed", "1")
        return run(f"audit {line}", *more, *repeat)

    return call


TALK = "a module that talks\n"
WORLDS = "--with 1 --without 0 --samples 20000"


def test_a_refuted_claim(run):
    code, out, err = run(f"function attacked_here:noisy {WORLDS} --at-most 1")
    assert (code, err) == (1, TALK)
    for part in ("at least 1.9", "output ≥", "fresh draws with", "is refuted by this event"):
        assert part in out


def test_a_claim_that_is_not_refuted(run):
    code, out, err = run(f"function attacked_here.py:noisy {WORLDS} --at-most 2.5")
    assert (code, err) == (0, TALK)
    assert "not refuted" in out and "no proof of privacy" in out
    assert "private" not in out


def test_json(run):
    code, out, _err = run(
        f"function attacked_here:one {WORLDS} --at-most 0.5 --confidence 0.999 --json"
    )
    data = json.loads(out)
    assert code == 1 and data["refuted"] is True
    assert 0.7 < data["epsilon"] <= np.log(7 / 3) and data["event"]["outputs"] == ["yes"]
    assert data["seed"] == 1 and data["posterior"] > 0.67
    granted = json.loads(
        run(f"function attacked_here:one {WORLDS} --at-most 0.5 --delta 0.3 --json")[1]
    )
    assert granted["delta"] == 0.3 and granted["epsilon"] < data["epsilon"]


def test_the_exact_level_beside_the_bound(run):
    code, out, _err = run("function attacked_here:response --entities 2 --samples 40000 --json")
    data = json.loads(out)
    assert code == 0 and data["exact"]["epsilon"] == pytest.approx(1)
    assert 0.9 < data["epsilon"] <= data["exact"]["pair"] + 1e-12


def test_a_channel_file(run, tmp_path):
    rows = [["3/4", "1/4"], ["1/2", "1/2"], ["0.6", "0.4"], ["1/4", "3/4"]]
    space = {"kind": "subsets", "entities": ["ann", "bob"]}
    data = {"space": space, "outputs": ["low", "high"], "probabilities": rows}
    (tmp_path / "coin.json").write_text(json.dumps(data), encoding="utf-8")
    code, out, _err = run("function coin.json --samples 50000")
    assert code == 0 and "ann in or out" in out and "0.8755 by computation, for these inputs" in out
    code, out, _err = run("function coin.json --samples 2000 --with", "['ann']", "--without", "[]")
    assert (code == 0 and "nobody" in out) or "[]" in out


def test_plans(run, tmp_path):
    wi.calibrate(wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5"), query="count").save(
        tmp_path / "plan.json"
    )
    code, out, _err = run("function --against plan.json --samples 20000")
    assert code == 0 and "the plan's own noise" in out and "not refuted" in out
    code, out, _err = run(f"function attacked_here:noisy {WORLDS} --against plan.json")
    assert code == 1 and "at most 60.0% sure" in out and "refuted by this event" in out


def test_plans_speak_of_their_own_neighbours(run, train, tmp_path):
    """Scores of members and others tell what replacing a person shows: up to 2ε for a plan of ε for
    adding one. Coins tell what adding one shows, of which a plan for replacing says nothing."""
    family = wi.families.Independent("0.05", "0.5")
    plan = wi.calibrate(wi.Posterior("0.75"), family, query="count")
    plan.save(tmp_path / "plan.json")
    rng = np.random.default_rng(1)
    told = (rng.random((2, 4000)) < [[0.84], [0.16]]).astype(int)  # ln 5.25, between ε and 2ε
    lines = [f"{int(not place)},{score}" for place in (0, 1) for score in told[place]]
    (tmp_path / "scores.csv").write_text("\n".join(["member,score", *lines]), encoding="utf-8")
    code, out, _err = run("scores scores.csv --against plan.json --json")
    found = json.loads(out)
    assert code == 0 and found["relation"] == "replace" and found["refuted"] is False
    assert plan.epsilon < found["epsilon"] < 2 * plan.epsilon == found["at_most"]
    known = wi.calibrate(wi.Posterior("0.75"), wi.families.FixedSize("0.05", "0.5"), query="count")
    assert known.relation == "replace"
    known.save(tmp_path / "known.json")
    code, out, _err = run("scores scores.csv --against known.json --json")
    assert code == 1 and json.loads(out)["at_most"] == known.epsilon
    code, out, err = train("training train.py:fit --shadows 0 --against known.json")
    assert (code, out) == (2, "") and "--against" in err
    code, out, err = run(
        "function attacked_here:noisy --queries 2 --relation replace --against plan.json"
    )
    assert (code, out) == (2, "") and "--relation" in err


def test_a_plan_against_a_training(train, tmp_path):
    """What a plan promised, beside what the training leaks."""
    plan = wi.calibrate(wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5"), query="count")
    plan.save(tmp_path / "plan.json")
    code, out, _err = train("training train.py:fit --shadows 2 --against plan.json")
    assert code == 1 and "the plan: to at most 60.0%" in out
    code, out, err = train("training train.py:fit --at-most 1 --against plan.json")
    assert (code, out) == (2, "") and "--at-most" in err


def test_time_is_looked_at_where_asked(run):
    line = "function attacked_here:slow --with 1 --without 0 --samples 400"
    code, out, _err = run(f"{line} --timing --at-most 1")
    assert code == 1 and "counts as a part of each output" in out
    code, out, _err = run(f"{line} --at-most 1")
    assert code == 0 and "time" not in out


def test_samples_from_files(run, tmp_path):
    """Too few for the claim are refused before they are looked at; repeats can be declared."""
    rng = np.random.default_rng(1)
    few = rng.normal(size=3000)
    for name in ("a", "b"):
        np.savetxt(tmp_path / f"{name}.txt", rng.choice(few, 3000), fmt="%.17g")
    line = "samples a.txt b.txt"
    code, out, err = run(f"{line} --at-most 1")
    assert (code, out) == (2, "") and "repeats" in err
    code, out, _err = run(f"{line} --at-most 1 --repeats")
    assert code == 0 and "not refuted" in out
    code, out, err = run(f"{line} --at-most 9")
    assert (code, out) == (2, "") and "ε = 9" in err
    assert run(f"function attacked_here:noisy {WORLDS} --repeats")[0] == 2


def test_searches(run):
    code, out, _err = run(
        "function attacked_here:noisy --pairs attacked_here:pairs --samples 20000"
    )
    assert code == 0 and "pair 1" in out
    line = "function attacked_here:noisy_max --queries 4 --relation replace --samples 40000 --json"
    data = json.loads(run(line)[1])
    assert data["pattern"] == "first query up, the rest down" or "down" in data["pattern"]


def test_scores_and_one_run(run, tmp_path):
    rng = np.random.default_rng(1)
    inside = rng.random(600) < 0.5
    scores = inside * 2 + rng.normal(size=600)
    for name in ("member", "included"):
        lines = [f"{name},score", *(f"{int(a)},{b}" for a, b in zip(inside, scores, strict=True))]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines), encoding="utf-8")
    code, out, _err = run("scores member.csv --at-most 0.5 --save rates.svg")
    assert code == 1 and "TPR at 0.1 FPR" in out and "too few non-members" in out
    assert (tmp_path / "rates.svg").read_text(encoding="utf-8").startswith("<svg")
    code, out, _err = run("run included.csv --json --save beliefs.svg")
    data = json.loads(out)
    assert code == 0 and data["epsilon"] > 1 and data["canaries"] == 600
    assert "at least" in (tmp_path / "beliefs.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("function", "module:function"),
        ("function attacked_here", "module:function"),
        ("function attacked_here:", "module:function"),
        (f"function attacked_here:nosy {WORLDS}", "did you mean 'noisy'"),
        (f"function attacked_here:number {WORLDS}", "not int"),
        (f"function not_a_module_here:f {WORLDS}", "not_a_module_here"),
        (f"function does_not_load:f {WORLDS}", "nothing_of_that_name"),
        (f"function gone.py:f {WORLDS}", "gone.py"),
        ("function gone.json", "no such file"),
        ("function attacked_here:noisy", "--with"),
        ("function attacked_here:noisy --with 1", "--without"),
        (f"function attacked_here:noisy {WORLDS} --queries 3", "--queries"),
        (f"function attacked_here:noisy {WORLDS} --relation replace", "--relation"),
        ("function attacked_here:noisy --queries 3 --relation swap", "relation"),
        ("function attacked_here:noisy --with ?? --without 0", "--with"),
        ("function attacked_here:noisy --pairs attacked_here:few", "ValueError"),
        ("function attacked_here:noisy --pairs attacked_here:number", "pairs"),
        (f"function attacked_here:broken {WORLDS}", "ValueError"),
        (f"function attacked_here:noisy {WORLDS} --entities 3", "--entities"),
        ("function attacked_here:response", "--entities"),
        ("function attacked_here:noisy --with 1 --without 0 --samples 5", "--samples"),
        ("function attacked_here:noisy --with 1 --without 0 --samples x", "--samples"),
        ("function attacked_here:noisy --with 1 --without 0 --samples 2.5", "--samples"),
        (f"function attacked_here:noisy {WORLDS} --at-most 12", "--samples"),
        (f"function attacked_here:noisy {WORLDS} --at-most -1", "--at-most"),
        (f"function attacked_here:noisy {WORLDS} --delta 0.1", "--delta"),
        (f"function attacked_here:noisy {WORLDS} --at-most 1 --delta 2", "--delta"),
        (f"function attacked_here:noisy {WORLDS} --confidence 2", "confidence"),
        (f"function attacked_here:noisy {WORLDS} --prior 2", "--prior"),
        (f"function attacked_here:noisy {WORLDS} --save x.pdf", "--save"),
        (f"function attacked_here:noisy {WORLDS} --against gone.json", "no such file"),
        ("scores gone.csv", "no such file"),
        ("scores attacked_here.py", "attacked_here.py"),
        ("run attacked_here.py --rate 2x", "--rate"),
        ("training train.py:fit --with 1", "--with"),
        ("function attacked_here:noisy --shadows 3 --with 1 --without 0", "--shadows"),
        ("training train.py:fit --rows people.csv --label z", "--label"),
        ("training train.py:fit --rows absent.csv", "absent.csv: no such file"),
        ("training train.py:fit --gaussian", "--gaussian"),
        ("training attacked_here:noisy", "--rows"),
        ("training train.py:fit --kind gold", "kind of canaries"),
        ("training train.py:fit --canaries 5", "canaries"),
    ],
)
def test_wrong_calls(train, line, words):
    code, out, err = train(line)
    assert code == 2 and out == ""
    err = err.replace(TALK, "")
    unknown = err.startswith("Usage") and f"No such option: {words}" in err
    assert words in err and (unknown or err.count("\n") == 1) and "Traceback" not in err


def test_a_rate_and_flags_as_they_come(run, tmp_path):
    rng = np.random.default_rng(2)
    inside = rng.random(500) < 0.3
    scores = np.where(inside, rng.normal(3, 1, 500), -np.inf)
    for yes, no in (("1.0", "0.0"), ("True", "False"), ("yes", "no")):
        pairs = zip(inside, scores, strict=True)
        lines = ["included,score", *(f"{yes if a else no},{b}" for a, b in pairs)]
        (tmp_path / "runs.csv").write_text("\n".join(lines), encoding="utf-8")
        code, out, _err = run("run runs.csv --rate 0.3 --json")
        data = json.loads(out)
        assert code == 0 and data["rate"] == 0.3 and data["epsilon"] > 2
    code, _out, err = run("run runs.csv")
    assert code == 2 and "canaries" in err
    code, out, _err = run("run runs.csv --rate 0.3 --at-most 1")
    assert code == 1 and "declared 0.3" in out


def test_a_gate_never_passes_by_accident(run):
    gate = f"{WORLDS} --at-most 1"
    for line in (
        f"function attacked_here:leaving {gate}",
        "function attacked_here:noisy --pairs attacked_here:leaving_pairs --at-most 1",
    ):
        code, out, err = run(line)
        assert code in (2, 3) and out == "" and "Traceback" not in err
    assert run(f"function attacked_here:leaving {gate}")[0] == 3
    code, out, _err = run(f"function attacked_here:unreadable {gate}".replace("20000", "2000"))
    assert code == 4 and "undecided" in out and "nothing could be learnt" in " ".join(out.split())
    code, out, _err = run(f"function attacked_here:sometimes {gate}".replace("20000", "2000"))
    assert code == 1 and "raised ValueError" in out


def test_what_the_function_prints_is_not_the_result(tmp_path, monkeypatch, capfd):
    """By Python, and below it: standard output holds one JSON object."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "attacked_here", raising=False)
    (tmp_path / "attacked_here.py").write_text(MINE, encoding="utf-8")
    assert main(f"audit function attacked_here:talking {WORLDS} --json".split()) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["epsilon"] > 1
    for words in ("from below", "drawing", TALK):
        assert words in err


@pytest.mark.parametrize("first", ["with", "without"])
def test_the_event_for_gamma_is_the_one_that_favours_with(first, capsys):
    """Whichever of two counted events is the stronger, only one of them speaks of γ."""
    other = "without" if first == "with" else "with"
    counts = tuple(
        EventCount(Event(ByValue(), threshold, favours), 50, 10, 100, 100, bound)
        for favours, threshold, bound in ((first, 1.0, 0.9), (other, 2.0, 0.3))
    )
    found = wi.audit.Audit(0.9, 0.3, 0.95, counts=counts, samples=200, with_=1, without=0)
    print_document(describe_audit(found, "it", None, None, 0.5))
    lines = capsys.readouterr().out.splitlines()
    (marked,) = [line for line in lines if "γ" in line]
    assert "output ≥" in marked
    (strongest,) = [line for line in lines if line.startswith("event") and " 1" in line]
    assert ("≥" in strongest) == (first == "with")


TRAINING = """
import numpy as np

def rows():
    return np.arange(200.0)

def fit(rows):
    return set(rows.tolist())

def score(model, rows):
    rng = np.random.default_rng(len(model))
    return np.array([row in model for row in rows]) + 0.3 * rng.normal(size=len(rows))

def failing(rows):
    raise ValueError("no luck")

def deaf(model, rows):
    return [0.0] * len(rows)
"""


@pytest.fixture
def train(run, tmp_path):
    (tmp_path / "train.py").write_text(TRAINING, encoding="utf-8")
    (tmp_path / "people.csv").write_text("x,y\n" + "1,2\n" * 50, encoding="utf-8")
    return run


def test_a_training_is_audited(train, tmp_path):
    code, out, _err = train(
        "training train.py:fit --at-most 1 --shadows 2 --state state.json --prior 0.2"
    )
    assert (
        code == 1 and "200, each in with probability 1/2" in out and "1 attacked, 2 shadows" in out
    )
    assert "from 20.0%" in out and "refuted by these guesses" in out
    code, again, _err = train(
        "training train.py:fit --at-most 1 --shadows 2 --state state.json --prior 0.2"
    )
    assert (code, again) == (1, out)
    code, out, _err = train("training train:fit --shadows 0 --runs 2 --json")
    assert code == 0 and json.loads(out)["runs"] == 2
    code, out, _err = train("training train.py:fit --at-most 7 --shadows 0")
    assert code == 4 and "undecided: 200 inclusion bits could show no more than" in out
    code, out, _err = train("training train.py:fit --at-most 1 --score train.py:deaf")
    assert code == 4 and "nothing could be learnt" in out
    code, out, err = train("training train.py:failing")
    assert code == 3 and "failed 3 times, last with ValueError: no luck" in err


def test_one_run_by_curves_by_people_and_by_folder(train, tmp_path):
    rng = np.random.default_rng(1)
    (tmp_path / "runs").mkdir()
    for name in ("a", "b"):
        coins = rng.random(300) < 0.5
        told = 4 * coins + rng.normal(size=300)
        lines = [f"{int(c)},{t},{n}" for n, (c, t) in enumerate(zip(coins, told, strict=True))]
        text = "\n".join(["included,score,person", *lines])
        (tmp_path / "runs" / f"{name}.csv").write_text(text, encoding="utf-8")
    code, out, _err = train("run runs --known-rate --at-most 2")
    assert code == 1 and "600" in out and "0.5, known" in out
    code, out, _err = train("run runs --known-rate --gaussian --at-most 1")
    assert code == 1 and "The claim μ ≤ 1 is refuted" in out
    code, out, _err = train("run runs/a.csv --gaussian --at-most 3.9")
    assert code == 4 and "could not refute it, whatever leaks" in " ".join(out.split())
    silent = [f"{place % 2},{score}" for place, score in enumerate(rng.normal(size=300))]
    text = "\n".join(["included,score", *silent])
    (tmp_path / "silent.csv").write_text(text, encoding="utf-8")
    code, out, _err = train("run silent.csv --gaussian --known-rate --at-most 0.5 --json")
    assert code == 0 and json.loads(out)["refuted"] is False
    code, _out, err = train("run runs --gaussian --at-most 1 --delta 0.1")
    assert code == 2 and "--delta" in err
    (tmp_path / "empty").mkdir()
    code, _out, err = train("run empty")
    assert code == 2 and "empty" in err


def test_a_synthetic_table_is_audited(run, tmp_path):
    rng = np.random.default_rng(1)
    people = rng.normal(size=(400, 4)).round(3)
    tables = {"train": people[:200], "holdout": people[200:], "made": people[:200]}
    for name, rows in tables.items():
        lines = ["a,b,c,d", *(",".join(str(cell) for cell in row) for row in rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines), encoding="utf-8")
    code, out, _err = run("synthetic train.csv holdout.csv made.csv --at-most 1")
    assert code == 1 and "singling out" in out and "closest record" in out
    code, out, _err = run("synthetic train.csv holdout.csv made.csv --at-most 9 --json")
    assert code == 4 and json.loads(out)["closest_passes"] is False
