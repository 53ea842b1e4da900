"""`whosin distortion`: what it prints and draws, and how it refuses."""

from __future__ import annotations

import json
import math

import pytest

from command import answer


def test_an_optimum_for_people(run):
    code, out, err = run("distortion --rows 6 --prior 0.7,0.3 --epsilon 1")
    assert (code, err) == (0, "")
    said = ["6 rows of 2 values", "least distortion", "1.61365", "exact", "between", "T16", "ε_X"]
    assert [part for part in said if part not in out] == []


@pytest.mark.parametrize("notion", ["dp", "identifiability", "mutual-information"])
def test_json_both_ways(run, notion):
    line = f"distortion --rows 6 --values 2 --prior 0.7,0.3 --notion {notion} --json"
    found = answer(run(f"{line} --epsilon 1.2"))
    assert found["epsilon"] == 1.2
    assert found["lower"] - 1e-9 <= found["distortion"] <= found["upper"] + 1e-9
    back = answer(run(f"{line} --distortion {found['distortion']}"))
    assert back["epsilon"] == pytest.approx(1.2, abs=1e-6)
    assert back["lower"] - 1e-9 <= back["epsilon"] <= back["upper"] + 1e-8
    assert back["mutual_information"] == pytest.approx(found["mutual_information"], abs=1e-5)


def test_sets_of_priors_from_files(run, tmp_path):
    """The least favourable prior comes back; an empty box is refused in a sentence."""
    box = {"kind": "box", "low": ["0.4", "0.2"], "high": ["0.8", "0.6"]}
    steps = [[["9/10", "1/10"], ["1/10", "9/10"]], [["3/5", "2/5"], ["2/5", "3/5"]]]
    chain = {"kind": "markov-chain", "initial": ["1/2", "1/2"]}
    chains = {"kind": "hull", "points": [chain | {"transition": each} for each in steps]}
    empty = box | {"low": ["0.6", "0.5"]}
    channel = {"space": {"kind": "records", "rows": 2, "values": 2}, "outputs": ["same", "other"]}
    channel |= {"probabilities": [[1, 0], [0, 1], [0, 1], [1, 0]]}
    files = {"box": box, "chains": chains, "empty": empty, "channel": channel}
    for name, data in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")
    line = f"distortion --rows 2 --prior-file {tmp_path}/"
    found = answer(run(line + "box.json --epsilon 1 --json"))
    (first, second), _ = found["prior"]
    assert 0.4 <= first <= 0.8 and first + second == pytest.approx(1)
    alone = answer(run(f"distortion --rows 2 --prior {first},{second} --epsilon 1 --json"))
    assert alone["distortion"] == pytest.approx(found["distortion"], abs=1e-9)
    assert answer(run(line + "box.json --epsilon inf --json"))["distortion"] == 0
    code, out, err = run(line + "chains.json --epsilon 1")
    assert (code, err) == (0, "") and "least favourable prior" in out and "by table" in out
    code, _, err = run(line + "empty.json --epsilon 1")
    assert code == 2 and "no distribution" in err and err.count("\n") == 1
    notion = "--notion mutual-information --prior-file"
    level = answer(run(f"verify {tmp_path}/channel.json {notion} {tmp_path}/box.json --json"))
    assert level["value"] == pytest.approx(math.log(2), abs=1e-8)
    assert min(abs(row[0] - 0.5) for row in level["least_favourable"]) < 1e-3


def test_other_costs_by_their_spelling(run):
    line = "distortion --rows 3 --values 3 --epsilon 1 --json --cost"
    absolute = answer(run(f"{line} absolute"))["distortion"]
    assert absolute == answer(run(f"{line} 0,1,2;1,0,1;2,1,0"))["distortion"]
    missing = answer(run(f"{line} hamming+missing=0.3"))
    assert (
        missing["distortion"] == answer(run(f"{line} 0,1,1,0.3;1,0,1,0.3;1,1,0,0.3"))["distortion"]
    )
    assert answer(run("distortion --rows 3 --epsilon 1 --json --cost total"))["gap"] < 1e-9
    code, _, err = run("distortion --rows 3 --epsilon 1 --cost squared")
    assert code == 2 and "--cost" in err


def test_no_distortion_is_no_privacy(run):
    found = answer(run("distortion --rows 3 --prior 0.7,0.3 --distortion 0 --json"))
    assert found["epsilon"] == "inf" and found["distortion"] == 0


def test_a_curve(run):
    line = "distortion --rows 4 --prior 0.8,0.2 --curve --points 4"
    found = answer(run(line + " --json"))
    assert set(found["curves"]) == {"dp", "identifiability", "mutual-information"}
    for points in found["curves"].values():
        assert len(points) == 4
        values = [point["distortion"] for point in points]
        assert values == sorted(values, reverse=True)
    code, out, err = run(line)
    assert (code, err) == (0, "") and "Identifiability" in out and "closed form from" in out
    one = answer(run(line + " --notion dp --json"))
    assert set(one["curves"]) == {"dp"}


def test_zeros_leave_out_a_curve(run):
    found = answer(run("distortion --rows 3 --prior 1,0 --curve --points 3 --json"))
    assert "infinite" in found["skipped"]["identifiability"]
    assert found["prior_spread"] == "inf"


def test_drawings(run, tmp_path):
    path = tmp_path / "x.svg"
    code, _, err = run(f"distortion --rows 4 --prior 0.7,0.3 --epsilon 1 --points 4 --save {path}")
    assert (code, err) == (0, "")
    text = path.read_text(encoding="utf-8")
    assert "mutual information" in text and "identifiability" in text


def test_rows_of_their_own_and_other_costs(run):
    given = ("--prior", "0.7,0.3;0.6,0.4", "--cost", "0,1;3,0")
    found = answer(run("distortion --rows 2 --epsilon 1 --json", *given))
    assert 0 < found["distortion"] < 2


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("--rows 4 --prior 0.7,0.3 --epsilon 1 --curve", "--curve"),
        ("--rows 4 --prior 0.7,0.3 --epsilon -1", "--epsilon"),
        ("--rows 4 --prior 0.7,0.3 --distortion 5", "--distortion"),
        ("--rows 4 --prior 0.7,0.4 --epsilon 1", ""),
        ("--rows 4 --prior 0.7,0.2,0.1 --epsilon 1", "--prior"),
        ("--rows 4 --prior 0.7,0.3;0.5,0.5 --epsilon 1", "--prior"),
        ("--rows 0 --epsilon 1", "--rows"),
        ("--rows 4 --epsilon 1 --notion dpp", "--notion"),
        ("--rows 4 --prior 1,0 --epsilon 1 --notion identifiability", ""),
        ("--rows 4 --prior 0.7,0.3 --epsilon 0.5 --notion identifiability", ""),
        ("--rows 4 --epsilon 1e9", "--epsilon"),
        ("--rows 4 --prior 0.7,0.3 --curve --points 1", "--points"),
        ("--rows 4 --epsilon 1 --save x.pdf", "--save"),
        ("--rows 4 --epsilon 1 --cost 0,1", "--cost"),
    ],
)
def test_bad_calls(refused_at, line, place):
    found = refused_at(f"distortion {line}")
    assert found == place or not place


# Prior files.

HOMES = {
    "blocks": [
        {
            "size": 2,
            "copies": 3,
            "sets": [
                {"present": [], "probability": "1/2"},
                {"present": [0, 1], "probability": "0.3"},
                {"present": [0], "probability": "0.2"},
            ],
        }
    ],
}
CHAIN = {"initial": [0.5, 0.5], "transition": [[0.8, 0.2], [0.3, 0.7]]}


@pytest.fixture
def write(tmp_path):
    def made(data: dict) -> str:
        path = tmp_path / "prior.json"
        path.write_text(json.dumps(data))
        return str(path)

    return made


@pytest.mark.parametrize(
    ("data", "more", "rows", "values"),
    [
        ({"kind": "independent", "p": ["0.7", "0.3"]}, "--rows 5", 5, 2),
        ({"kind": "independent", "p": [["0.7", "0.3"], ["0.6", "0.4"]]}, "", 2, 2),
        ({"kind": "independent", "p": [0.5, 0.3, 0.2]}, "--rows 3 --values 3", 3, 3),
        ({"kind": "uniform"}, "--rows 3 --values 4", 3, 4),
        ({"kind": "exchangeable", "sizes": [0.1, 0.3, 0.1, 0.2, 0.3]}, "", 4, 2),
        ({"kind": "markov-chain", **CHAIN}, "--rows 4", 4, 2),
        ({"chain": CHAIN, "rows": 3}, "", 3, 2),
        ({"kind": "table", "probabilities": ["1/8", "1/4", "1/8", "1/2"]}, "", 2, 2),
        ({"kind": "table", "probabilities": [0.2] * 4 + [0.04] * 5}, "--values 3", 2, 3),
        (HOMES, "", 6, 2),
    ],
)
def test_prior_files(run, write, data, more, rows, values):
    path = write(data)
    found = answer(run(f"distortion --prior-file {path} {more} --epsilon 1 --json"))
    assert (found["rows"], found["values"]) == (rows, values)
    assert 0 < found["distortion"] <= found["upper"] + 1e-9 and found["gap"] < 1e-9


def test_partial_symmetry_in_a_table(run, write):
    """Two urns for the first two rows, the third on its own: groups of 2 and 1."""
    masses = [
        (0.5 * (p1 if a == b == 0 else 1 - p1 if a == b == 1 else 0) + 0.125) * q
        for a in (0, 1)
        for b in (0, 1)
        for p1 in (0.5,)
        for q in (0.6, 0.4)
    ]
    path = write({"kind": "table", "probabilities": masses})
    found = answer(run(f"distortion --prior-file {path} --distortion 0.9 --json"))
    assert found["epsilon"] > 0 and found["distortion"] <= 0.9


@pytest.mark.parametrize(
    ("data", "more", "place"),
    [
        ({"kind": "exchangeable", "sizes": [0.5, 0.5]}, "--rows 4", "--rows"),
        ({"kind": "markov-chain", **CHAIN}, "", ""),
        ({"kind": "markov-chain", **CHAIN}, "--rows 9", ""),
        ({"kind": "markov-chain", **CHAIN}, "--rows 40", ""),
        ({"kind": "uniform"}, "--rows 3 --prior 0.5,0.5", "--prior"),
        ({"chains": [CHAIN, CHAIN], "rows": 3}, "", ""),
        ({"kind": "table", "probabilities": [0.5, 0.25, 0.25]}, "", ""),
        ({**HOMES, "blocks": [{"size": 2, "sets": [{"present": [5], "probability": 1}]}]}, "", ""),
    ],
)
def test_bad_prior_files(refused_at, write, data, more, place):
    found = refused_at(f"distortion --prior-file {write(data)} {more} --epsilon 1")
    assert found == place or not place


def test_a_missing_file(run):
    code, out, err = run("distortion --prior-file nowhere.json --epsilon 1")
    assert (code, out) == (2, "") and "nowhere.json" in err
