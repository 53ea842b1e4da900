"""The command: what it prints, for people and for programs, and how it fails."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import pytest

from command import answer, refused

COIN = {
    "space": {"kind": "subsets", "entities": ["ann", "bob"]},
    "outputs": ["low", "high"],
    "probabilities": [["3/4", "1/4"], ["1/2", "1/2"], [0.6, 0.4], ["1/4", "3/4"]],
}


@pytest.fixture
def coin(tmp_path):
    path = tmp_path / "coin.json"
    path.write_text(json.dumps(COIN), encoding="utf-8")
    return str(path)


def test_json_has_the_keys_that_others_read(run, coin):
    data = answer(run("verify", coin, "--family", "independent=0.05..0.5", "--json"))
    assert data["value"] == pytest.approx(40 / 21) and data["value_exact"] == "40/21"
    assert data["exact"] is True and data["theorems"] == ["T1", "T4", "T11"]
    assert data["witness"] == {
        "entity": "ann",
        "output": "high",
        "prior": 0.05,
        "posterior": pytest.approx(2 / 21),
        "ratio": 2.0,
        "attained": True,
    }


@pytest.mark.parametrize(
    "family",
    [
        *("any", "independent", "independent=0.05..0.5", "one-of-two", "fixed-size"),
        *("fixed-size=0.25..0.5", "swap-of-two", "one-of=2", "fixed-probability=0.3"),
        *("uninformed", "cliques=2"),
    ],
)
def test_every_family(run, coin, family):
    code, out, err = run("verify", coin, "--family", family, "--notion", "nmp", "--json")
    assert (code, err) == (0, "") and json.loads(out)["value"] >= 1
    code, out, err = run("verify", coin, "--family", family)
    assert (code, err) == (0, "") and "γ is" in out


@pytest.mark.parametrize(
    ("options", "value"),
    [
        (["--notion", "dp", "--direction", "positive"], 0.6931471805599453),
        (["--notion", "dp", "--direction", "negative"], 0.8754687373538999),
        (["--notion", "dp", "--relation", "replace"], 0.22314355131420976),
        (["--notion", "di", "-m", "2"], 5 / 9),
        (["--notion", "dps", "--beta", "0.5", "--direction", "positive"], None),
    ],
)
def test_other_notions(run, coin, options, value):
    code, out, _err = run("verify", coin, *options, "--json")
    assert code == 0
    if value is not None:
        assert json.loads(out)["value"] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        ["laplace", "--scale", "2"],
        ["laplace", "--scale", "2", "--statistic", "max"],
        ["geometric", "--alpha", "1/2"],
        ["geometric", "--scale", "3"],
        ["randomized-response", "--keep", "3/4"],
        ["randomized-response", "--epsilon", "1"],
        ["k-max", "-k", "2"],
        ["k-max-published", "-k", "2"],
        ["except-first"],
    ],
)
def test_built_in_mechanisms(run, options):
    code, out, err = run("verify", "--mechanism", *options, "--entities", "4", "--json")
    assert (code, err) == (0, "") and "value" in json.loads(out)


def test_records(run):
    words = "verify --mechanism randomized-response --keep 1/2 --rows 2 --values 3 --notion dp"
    code, out, _err = run(*words.split(), "--relation", "replace", "--json")
    data = json.loads(out)
    assert code == 0 and data["value"] == pytest.approx(0.6931471805599453)
    assert data["witness"]["row"] in (0, 1) and len(data["witness"]["known"]) == 1
    code, out, _err = run(*words.split(), "--relation", "replace")
    assert code == 0 and "row" in out


def test_claims_set_the_exit_code(run, coin):
    assert run("verify", coin, "--at-most", "3/2")[0] == 1
    assert run("verify", coin, "--at-most", "2")[0] == 0
    code, out, _err = run("verify", coin, "--at-most", "1.99", "--json")
    assert code == 1 and json.loads(out)["holds"] is False


def test_infinite_levels_are_results(run):
    words = "verify --mechanism k-max-published --entities 8 -k 3 --family uninformed --json"
    found = answer(run(words))
    assert found["value"] == "inf" and found["witness"]["posterior"] == 1


def test_demo_and_cite(run):
    data = answer(run("demo --json"))
    patients = data["answers"][0]["rows"][0]
    assert patients[1] <= patients[0] <= patients[2] and abs(patients[0] - 20_000) < 500
    assert data["budget_state"]["remaining_epsilon"] < 1e-9
    assert run("cite", "T4")[1].count("T4") == 1
    assert "@misc{li13" in run("cite", "--bibtex")[1]
    assert {paper["key"] for paper in json.loads(run("cite", "--json")[1])["papers"]} >= {"li13"}


def changed(tmp_path, **changes: object) -> str:
    path = tmp_path / "changed.json"
    path.write_text(json.dumps({**COIN, **changes}), encoding="utf-8")
    return str(path)


def test_rows_that_do_not_sum_to_one(run, tmp_path):
    rows = [[0.5, 0.5], [0.5, 0.4], [0.5, 0.5], [0.5, 0.5]]
    refused(run("verify", changed(tmp_path, probabilities=rows)), "row 1", "ann", "0.9", "-0.1")
    rows[1] = ["1/2", "1/3"]
    refused(run("verify", changed(tmp_path, probabilities=rows)), "row 1", "5/6", "-0.167")


@pytest.mark.parametrize(
    "rows",
    [
        [[1.5, -0.5], [1, 0], [1, 0], [1, 0]],
        [[1, 0], [1, 0], [1, 0]],
        [[None, 1], [1, 0], [1, 0], [1, 0]],
        "abc",
        [],
    ],
)
def test_bad_tables(run, tmp_path, rows):
    refused(run("verify", changed(tmp_path, probabilities=rows)))


@pytest.mark.parametrize(
    "changes",
    [
        {"outputs": ["low"]},
        {"space": {"kind": "subset"}},
        {"space": {"kind": "subsets", "entities": ["a", "a"]}},
        {"probabilites": []},
    ],
)
def test_bad_files(run, tmp_path, changes):
    refused(run("verify", changed(tmp_path, **changes)))


@pytest.mark.parametrize(
    ("options", "place"),
    [
        (["--family", "independant"], "--family"),
        (["--family", "one-of=9"], ""),
        (["--notion", "dq"], "--notion"),
        (["--notion", "dp", "--family", "any"], "--family"),
        (["--notion", "dp", "--relation", "swap"], "--relation"),
        (["--notion", "dp", "--direction", "up"], "--direction"),
        (["--notion", "di"], "--candidates"),
        (["--notion", "dps"], "--beta"),
        (["--at-most", "much"], "--at-most"),
        (["--mechanism", "k-max"], "--mechanism"),
    ],
)
def test_bad_options(refused_at, coin, options, place):
    found = refused_at("verify", coin, *options)
    assert found == place or not place


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("--mechanism k-mix --entities 4 -k 2", "--mechanism"),
        ("--mechanism k-max --entities 4", "--k"),
        ("--mechanism k-max --entities 4 -k 9", ""),
        ("--mechanism k-max --entities 0 -k 2", "--entities"),
        ("--mechanism k-max -k 2", "--entities"),
        ("--mechanism k-max --entities 4 -k 2 --scale 1", "--scale"),
        ("--mechanism gaussian --entities 4 --scale 1", ""),
        ("--mechanism laplace --entities 4 --scale 0", "--scale"),
        ("--mechanism geometric --entities 4 --alpha 1", "--alpha"),
        ("--mechanism laplace --entities 4 --scale 1 --statistic median", "--statistic"),
        ("--mechanism laplace --rows 2 --values 2 --scale 1", ""),
        ("--mechanism except-first --entities 60", ""),
        ("--mechanism randomized-response --keep 1/2 --entities 40", ""),
        ("--mechanism randomized-response --keep 2 --entities 4", "--keep"),
        ("", "FILE"),
        ("no-such-file.json", ""),
        (".", ""),
    ],
)
def test_bad_mechanisms(refused_at, line, place):
    found = refused_at(f"verify {line}")
    assert found == place or not place


def test_not_json(run, tmp_path):
    path = tmp_path / "x.json"
    path.write_text("{'a': 1}", encoding="utf-8")
    refused(run("verify", str(path)), "JSON", "line 1")
    path.write_bytes(b"\xff\xfe\x00")
    refused(run("verify", str(path)), "UTF-8 text")
    path.write_text("[" * 100_000, encoding="utf-8")
    refused(run("verify", str(path)), "deep")
    path.write_text("[1]", encoding="utf-8")
    refused(run("verify", str(path)), "JSON object")


def test_unknown_commands_and_options(run):
    assert run("verfy")[0] == 2
    assert run("verify", "--no-such-option")[0] == 2
    refused(run("cite", "T99"), "T99")


@pytest.mark.parametrize(
    "way", [("-c", "from whosin.app.cli.main import run; run()"), ("-m", "whosin")]
)
def test_the_installed_script_and_the_module_answer(way):
    command = [sys.executable, *way, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("whosin ")


CHAIN: dict[str, Any] = {
    "chain": {"initial": [0.5, 0.5], "transition": [[0.9, 0.1], [0.1, 0.9]]},
    "rows": 6,
    "query": "sum",
    "scale": 1,
}
RECORDS = "verify --mechanism randomized-response --keep 3/4 --rows 2 --values 2"
HOMES = {
    "blocks": [
        {
            "size": 2,
            "copies": 20,
            "sets": [
                {"present": [0, 1], "probability": "1/2"},
                {"present": [], "probability": "1/2"},
            ],
        }
    ],
    "scale": 2,
}


@pytest.fixture
def write(tmp_path):
    def file(data: object) -> str:
        path = tmp_path / "data.json"
        path.write_text(json.dumps(data), encoding="utf-8")
        return str(path)

    return file


UNEVEN = {
    "chain": {
        "initial": [0.2, 0.5, 0.3],
        "transition": [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]],
    },
    "rows": 4,
    "query": "sum",
    "scale": 2,
}


def test_chain_files(run, write):
    code, out, err = run("verify", write(CHAIN), "--json")
    data = json.loads(out)
    assert (code, err) == (0, "") and data["value"] == pytest.approx(3.850822, abs=1e-6)
    assert data["exact"] is True and data["witness"]["row"] in (2, 3)
    assert run("verify", write(CHAIN), "--at-most", "3")[0] == 1
    code, out, _err = run("verify", write({**CHAIN, "chains": [CHAIN["chain"]], "chain": None}))
    assert code == 2
    code, out, _err = run("verify", write(CHAIN), "--notion", "bayesian-semantic", "--json")
    semantic = json.loads(out)
    assert code == 0 and semantic["unit"] == "level"
    assert 0.5 < semantic["value"] <= math.tanh(data["value"] / 2)
    assert run("verify", write(CHAIN), "--notion", "semantic")[0] == 2
    assert run("verify", write(CHAIN), "--default", "1")[0] == 2
    asked = "verify", write(UNEVEN), "--json", "--notion", "bayesian-semantic", "--default"
    levels = [json.loads(run(*asked, value)[1])["value"] for value in ("0", "1", "2")]
    assert levels[1] < levels[0] and run(*asked, "3")[0] == run(*asked, "x")[0] == 2
    several = {key: value for key, value in CHAIN.items() if key != "chain"}
    code, out, _err = run("verify", write({**several, "chains": [CHAIN["chain"]] * 2}), "--json")
    assert code == 0 and json.loads(out)["value"] == data["value"]


def test_block_files(run, write):
    code, out, err = run("verify", write(HOMES), "--json")
    data = json.loads(out)
    assert (code, err) == (0, "")
    # Two people who come together: r = e^(2/2) at the top, so γ = (e + 1)/2 at prior 1/2.
    assert data["value"] == pytest.approx((2.718281828459045 + 1) / 2, abs=1e-9)


def test_plans_for_chains(run, write, tmp_path):
    picture = tmp_path / "x.svg"
    words = ["plan", "--chain", write(CHAIN), "--epsilon", "1", "--query", "sum"]
    code, out, _err = run(*words, "--json")
    data = json.loads(out)
    assert code == 0 and data["leakage"] <= 1 < data["plain_leakage"]
    assert data["plain_scale"] == 1 and data["group_scale"] == 6
    assert data["plain_scale"] < data["scale"] < data["group_scale"]
    code, out, _err = run(*words, "--save", str(picture))
    assert code == 0 and "group privacy" in out and picture.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("notion", "prior"),
    [
        ("bayesian-dp", {"kind": "markov-chain", **CHAIN["chain"]}),
        ("bayesian-semantic", {"kind": "independent", "p": ["1/2", "1/2"]}),
        ("identifiability", {"kind": "uniform"}),
        ("mutual-information", {"kind": "table", "probabilities": [0.1, 0.2, 0.3, 0.4]}),
        ("bayesian-dp", {"kind": "exchangeable", "sizes": [0.2, 0.3, 0.5]}),
        ("semantic", None),
    ],
)
def test_notions_on_records(run, tmp_path, notion, prior):
    words = [RECORDS, "--notion", notion]
    if prior is not None:
        path = tmp_path / "prior.json"
        path.write_text(json.dumps(prior), encoding="utf-8")
        words += ["--prior-file", str(path)]
    code, out, err = run(*words, "--json")
    assert (code, err) == (0, "") and json.loads(out)["value"] >= 0
    assert run(*words)[0] == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": "many"},
        {"query": "mean"},
        {"row": 3},
        {"chain": {"initial": [0.5, 0.4], "transition": [[1, 0], [0, 1]]}},
        {"chain": {"initial": [0.5, 0.5]}},
        {"chain": 3},
        {"scale": 0},
        {"weights": [1]},
    ],
)
def test_bad_chain_files(run, write, changes):
    refused(run("verify", write({**CHAIN, **changes})))


@pytest.mark.parametrize(
    "changes",
    [
        {"scale": -1},
        {"blocks": []},
        {"blocks": [{"size": 2, "sets": [{"present": [5], "probability": 1}]}]},
        {"blocks": [{"size": 1, "sets": [{"present": [], "probability": 0.4}]}]},
        {"block": 1},
    ],
)
def test_bad_block_files(run, write, changes):
    refused(run("verify", write({**HOMES, **changes})))


def test_priors_are_asked_for_and_refused(refused_at, write):
    assert refused_at(RECORDS, "--notion", "bayesian-dp") == "--prior-file"
    for notion, data in (("dp", {"kind": "uniform"}), ("bayesian-dp", {"kind": "x"})):
        given = ("--notion", notion, "--prior-file", write(data))
        assert refused_at(RECORDS, *given) == "--prior-file"
    assert refused_at("verify", write(CHAIN), "--family", "any") == "--family"


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("plan --gamma 1e9999999", "--gamma"),
        ("plan --epsilon 1e-400", "--epsilon"),
        ("explain --epsilon 1e400", "--epsilon"),
        ("explain --epsilon 1 --delta 0.5", "--delta"),
        ("plan --hipaa", "--hipaa"),
        ("verify --mechanism laplace --scale 1e-300 --entities 100000", ""),
        ("verify --mechanism laplace --scale 1 --entities 100000000000000000000", "--entities"),
    ],
)
def test_numbers_beyond_reason(refused_at, line, place):
    found = refused_at(line)
    assert found == place or not place


def test_percentages_are_numbers(run):
    code, out, _err = run("plan", "--posterior", "60%", "--prior", "5%..50%", "--json")
    assert code == 0 and json.loads(out)["epsilon"] == pytest.approx(0.405465, abs=1e-6)


def test_a_target_that_needs_hardly_any_noise_ends(run):
    words = "plan --advantage 0.1 --sample-rate 0.002 --steps 10 --json"
    code, out, _err = run(*words.split())
    assert code == 0 and json.loads(out)["bound"] <= 0.1


def test_equal_keys_are_refused(run, tmp_path):
    path = tmp_path / "twice.json"
    path.write_text('{"space": {"kind": "subsets", "entities": 1, "entities": 2}}', "utf-8")
    refused(run("verify", str(path)), "'entities'")


def test_names_cannot_command_the_terminal(run, tmp_path):
    names = ["an\x1b[31mn", "b[bold]o\nb"]
    space = {"kind": "subsets", "entities": names}
    path = changed(tmp_path, space=space, outputs=["\x1b[31mlow", "high"])
    for options in ([], ["--notion", "nmp"]):
        code, out, _err = run("verify", path, *options)
        assert code == 0 and "\x1b[31m" not in out
    code, out, _err = run("verify", path, "--json")
    assert code == 0 and json.loads(out)["witness"]["entity"] in names


def test_what_nobody_foresaw_is_not_a_refuted_claim(run, monkeypatch, coin):
    """Exit 1 means that a claim fails; an accident is exit 3."""
    from whosin.mechanisms import Channel

    def fails(_path):
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(Channel, "from_dict", fails)
    code, out, err = run("verify", coin)
    assert (code, out) == (3, "") and "internal error" in err and "Traceback" not in err


def test_an_option_given_twice_is_not_lost_silently(refused_at):
    assert refused_at("plan --rho 0.3 -m 5 -m 6") == "--candidates"
    assert refused_at("gwas simulate x --seed 1 --seed=2") == "--seed"


def test_a_missing_folder_is_said_to_be_missing(run, tmp_path):
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        "target = {epsilon = 1}\ntable = {source = 'visits', privacy_unit = 'a'}\n"
        "[[queries]]\nkind = 'count'\n"
    )
    refused(run("release", str(scenario), "--dry-run"), "visits: no such file or folder")


def test_the_shell_can_complete_commands(monkeypatch, run):
    monkeypatch.setenv("_WHOSIN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "whosin ver")
    monkeypatch.setenv("COMP_CWORD", "1")
    code, out, err = run()
    assert (code, out.split(), err) == (0, ["verify"], "")


def test_only_what_is_shown_in_full_is_called_exact(run):
    code, out, _err = run("verify", "--mechanism", "laplace", "--scale", "3", "--entities", "4")
    assert code == 0 and "γ is 1.39561, rounded to six digits" in out
    code, out, _err = run("verify", "--mechanism", "k-max", "-k", "2", "--entities", "5",
                          "--family", "uninformed")  # fmt: skip
    assert code == 0 and "γ is exactly 3/2" in out


def test_what_was_measured_can_be_read_back(run, coin):
    """`--json` says the notion, the family and the rest as the options read them."""
    lines = [
        "--family independent=0.05..0.5",
        "--notion nmp --family uninformed",
        "--notion dp --direction positive",
        "--notion di --candidates 2",
        "--notion dps --beta 0.3 --direction negative",
    ]
    for line in lines:
        first = json.loads(run("verify", coin, *line.split(), "--json")[1])
        keys = ("notion", "family", "relation", "direction", "candidates", "beta")
        said = [(f"--{key}", str(first[key])) for key in keys if first.get(key) is not None]
        again = json.loads(run("verify", coin, *sum(said, ()), "--json")[1])
        assert again == first
