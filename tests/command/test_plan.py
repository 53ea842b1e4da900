"""`whosin plan`, `explain` and `notions`: what they print and draw, and how they refuse."""

from __future__ import annotations

import json
import math
import re

import pytest

import whosin as wi
from amounts import some
from command import answer
from whosin.theorems.notion_map import NOTION_BARRIERS, NOTION_EDGES

STORY = "plan --posterior 0.6 --prior 0.05..0.5"


def words(result: tuple[int, str, str]) -> str:
    """What was printed for people, whatever the width of the terminal."""
    code, out, err = result
    assert (code, err) == (0, "")
    return " ".join(out.split())


# Plans.


def test_a_plan_for_people(run):
    """Who is looking, the promise, the cost, the comparison, the fallback, a chart, the reasons."""
    out = words(run(STORY))
    for part in (
        *("Who is looking", "between 5.0% and", "at most 60.0% sure", "ε = 0.4054", "add-remove"),
        *("noise of scale 2.467", "If they know more than assumed", "D_I", "D_B", "D_U"),
        *("nothing is promised", "No ε at all", "prior belief", "with this plan", "T11", "T12"),
        "with no protection",
    ):
        assert part in out, part


def test_a_plan_compares_itself_with_plain_dp(run):
    """The saving is shown where there is one."""
    out = words(run("plan --gamma 1.5 --prior 0.5"))
    assert "Plain DP needs ε = 0.4054" in out and "1.71 times less noise" in out
    assert "with plain DP for the same target" in out
    assert "The same: ε = 0.4054" in words(run("plan --gamma 1.5"))
    out = words(run("plan --gamma 2 --linked 4"))
    assert "4.00 times more noise" in out and "up to 4 people" in out


def test_json_is_a_complete_plan(run, tmp_path):
    """The keys that others read, and a file that `Plan.load` takes."""
    code, out, err = run(STORY, "--json")
    data = json.loads(out)
    assert (code, err) == (0, "")
    assert data["epsilon"] == pytest.approx(math.log(1.5)) and data["relation"] == "add-remove"
    assert data["gamma"] == pytest.approx(1.463415) and data["baseline_epsilon"] is None
    assert data["theorems"] == ["T4", "T11", "T12"]
    assert data["target"] == {"name": "posterior", "posterior": "3/5"}
    assert data["family"] == {"name": "independent", "low": "1/20", "high": "1/2"}
    assert data["query"]["kind"] == "count" and data["noise"]["kind"] == "laplace"
    path = tmp_path / "plan.json"
    path.write_text(out, encoding="utf-8")
    plan = wi.Plan.load(path)
    assert plan.epsilon == data["epsilon"] and plan.noise.scale == data["noise"]["scale"]


@pytest.mark.parametrize(
    ("line", "epsilon", "relation"),
    [
        ("--gamma 1.5", 0.405, "add-remove"),
        ("--gamma 1.5 --prior 0.5", 0.693, "add-remove"),
        ("--gamma 1.5 --prior 0.4", 0.811, "add-remove"),
        ("--gamma 1.5 --prior 0.25..0.75", 0.511, "add-remove"),
        ("--gamma 1.5 --prior 0.05..0.5", 0.432, "add-remove"),
        ("--gamma 3/2 --prior 0.05..0.5 --size-known", 0.432, "replace"),
        ("--gamma 2 --prior 1/2", 1.099, "add-remove"),
        ("--gamma 2 --linked 3", 0.231, "add-remove"),
        ("--rho 0.5 -m 5", 1.386, "replace"),
        ("--rho 0.5 -m 5 --prior 0.1..0.5 --size-known", 1.386, "replace"),
        ("--gain 0.2", 0.811, "add-remove"),
        ("--advantage 0.1", 0.201, "add-remove"),
        ("--epsilon 1", 1.0, "add-remove"),
        ("--hipaa --prior 0.001..0.01", 0.411, "add-remove"),
        ("--gamma 1.5 --family one-of=2", 0.693, "replace"),
        ("--gamma 1.5 --family fixed-probability=0.5", 0.693, "add-remove"),
        ("--gamma 1.5 --family uninformed", 0.693, "add-remove"),
        ("--gamma 1.5 --family at-most-known=10:0.25..0.75", 0.511, "add-remove"),
        ("--gamma 1.5 --family cliques=2", 0.203, "add-remove"),
    ],
)
def test_every_target_and_adversary(run, tmp_path, line, epsilon, relation):
    """For programs and for people; each JSON plan can be read again."""
    code, out, err = run(f"plan {line} --json")
    data = json.loads(out)
    assert (code, err) == (0, "")
    assert (round(data["epsilon"], 3), data["relation"]) == (epsilon, relation)
    path = tmp_path / "plan.json"
    path.write_text(out, encoding="utf-8")
    assert wi.Plan.load(path).epsilon == data["epsilon"]
    code, out, err = run(f"plan {line}")
    assert (code, err) == (0, "") and "What that takes" in out


@pytest.mark.parametrize(
    ("options", "kind", "scale"),
    [
        ("--query count", "laplace", 1),
        ("--query rows --max-rows-per-group 3", "laplace", 3),
        ("--query sum --lower -2 --upper 10 --max-rows-per-group 2", "laplace", 20),
        ("--query histogram --max-rows-per-group 2 --max-groups 3", "laplace", 6),
        ("--query sum --lower -2 --upper 10 --size-known", "laplace", 12),
        ("--query histogram --max-groups 3 --size-known", "laplace", 6),
    ],
)
def test_queries(run, options, kind, scale):
    """Noise and expected error in the units of the query."""
    data = answer(run(f"plan --epsilon 1 {options} --json"))
    assert data["noise"]["kind"] == kind
    assert data["noise"]["scale"] == pytest.approx(scale) == data["noise"]["error"]


def test_a_delta_buys_gaussian_noise(run, tmp_path):
    """The failure probability is named, and that releases may share it."""
    data = answer(run(f"{STORY} --delta 1e-6 --json"))
    assert data["noise"]["kind"] == "gaussian" and data["delta"] == 1e-6
    assert data["composes"] is True and "T18" in data["theorems"]
    out = words(run(f"{STORY} --delta 1e-6"))
    assert "fail with probability 1e-06" in out and "Several releases may share" in out
    path = tmp_path / "plan.json"
    path.write_text(run(f"{STORY} --delta 1e-6 --json")[1], encoding="utf-8")
    assert wi.Plan.load(path).dp_delta == data["dp_delta"]


def test_an_exact_count_among_uncertain_people(run):
    """No noise at all, and nothing is promised against those who know more."""
    line = "plan --gamma 1.5 --family at-most-known=10:0.1..0.9 --delta 1e-6 --entities 2000"
    out = words(run(line))
    assert "no noise at all" in out and "knows at most 10 people" in out and "one release" in out
    assert "may fail" in out and out.count("nothing is promised") == 3
    data = answer(run(f"{line} --json"))
    assert data["noise"]["kind"] == "none" and data["entities"] == 2000


def test_a_large_delta_is_warned_about(run):
    """δ above 1/n: a line on standard error, and the plan all the same."""
    code, out, err = run(f"{STORY} --delta 0.01 --entities 1000 --json")
    assert code == 0 and json.loads(out)["delta"] == 0.01
    assert err.count("\n") == 1 and "warning" in err and "1/n" in err
    assert run(f"{STORY} --delta 0.0001 --entities 1000")[2] == ""


def test_dp_sgd(run):
    """A noise multiplier, what was certified, and on which grid."""
    line = "plan --advantage 0.1 --sample-rate 0.5 --steps 4"
    data = answer(run(f"{line} --json"))
    assert data["bound"] <= data["goal"] == 0.1 and data["noise_multiplier"] > 0
    assert (data["noise"], data["sample_rate"], data["steps"]) == ("gaussian", 0.5, 4)
    code, out, err = run(line)
    assert (code, err) == (0, "") and "Noise multiplier" in out and "certified" in out
    data = answer(run(f"{STORY} --delta 1e-5 --steps 2 --noise laplace --json"))
    assert data["bound"] <= 1e-5 and data["noise"] == "laplace"


# Explanations.


def test_an_explanation_for_people(run):
    """A table of priors and posteriors by adversary, and a chart."""
    out = words(run("explain --epsilon 1"))
    for part in ("What ε = 1", "D_I", "D_B", "D_U", "50.0%", "73.2%", "any", "prior belief", "T4"):
        assert part in out, part
    out = words(run("explain --epsilon 1 --delta 1e-6 --relation replace"))
    assert "fail with probability 1e-05" in out and "T18" in out


def test_an_explanation_for_programs(run):
    """Posteriors follow from the ratio: e^ε under D_I, e^(2ε) under D_B, e^(3ε) for three."""
    data = answer(run("explain --epsilon 0.5 --prior 0.1..0.7 --json"))
    found = {each["family"]: each for each in data["adversaries"]}
    assert found["D_I"]["gamma"] == pytest.approx(math.exp(0.5))
    assert found["D_B"]["gamma"] == pytest.approx(math.exp(1))
    assert found["D_NI^3"]["gamma"] == pytest.approx(math.exp(1.5))
    assert found["D_U"]["gamma"] == "inf"
    rows = found["D_I"]["posteriors"]
    assert [row["prior"] for row in rows] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    for row in rows:
        odds = row["prior"] / (1 - row["prior"]) * math.exp(0.5)
        assert row["posterior"] == pytest.approx(odds / (1 + odds))
    data = answer(run("explain --epsilon 1 --relation replace --prior 0.3 --json"))
    found = {each["family"]: each for each in data["adversaries"]}
    assert found["D_B"]["gamma"] == pytest.approx(math.e) and found["D_I"]["gamma"] == "inf"
    assert len(found["D_B"]["posteriors"]) == 1


def test_an_explanation_with_a_delta_is_f9(run):
    """Ratios up to e^ε · 10/9 fail with at most 10 δ; an enormous ε promises nothing."""
    data = answer(run("explain --epsilon 1 --delta 1e-6 --json"))
    assert data["failure"] == pytest.approx(1e-5)
    held = data["adversaries"][0]["gamma"]
    assert held == pytest.approx(math.e * 10 / 9)
    assert 1e-6 / (1 - math.e / held) <= data["failure"] * (1 + 1e-9)
    data = answer(run("explain --epsilon 5000 --json"))
    assert data["adversaries"][0]["gamma"] == "inf"


def test_a_rho_is_explained_at_a_delta_and_by_all_of_its_tests(run):
    """The conversion lies between Bun and Steinke's and the exact Gaussian of the same ρ; the tests
    are far below what ε and δ alone allow, and not below a Gaussian's."""
    data = answer(run("explain --rho 0.5 --json"))
    simple = 0.5 + 2 * math.sqrt(0.5 * math.log(1e6))
    exact = wi.curves.tradeoff(wi.mechanisms.Gaussian("count", 1), wi.Subsets(2))
    assert exact.epsilon("1e-6") < data["epsilon"] < simple and data["delta"] == 1e-6
    alone = answer(run(f"explain --epsilon {data['epsilon']} --delta 1e-6 --json"))
    for rate, other in zip(data["rates"], alone["rates"], strict=True):
        assert exact.tpr(rate["fpr"]) <= rate["tpr"] <= other["tpr"]
    assert data["rates"][2]["tpr"] < 0.1 < other["tpr"]
    code, _, err = run("explain --rho -1")
    assert code == 2 and "--rho" in err


@pytest.mark.parametrize(
    ("options", "cost"),
    [
        ("--within 0", 3.664),
        ("--within 1", 1.765),
        ("--within 10 --query count", 0.2843),
        ("--within 10 --query rows --max-rows-per-group 3", 3 * 0.2843),
        ("--within 10 --query histogram --size-known", 2 * 0.2843),
        ("--within 10 --query histogram --secret value", 2 * 0.2843),
        ("--within 10 --query sum --upper 4", 4 * math.log(20) / 10),
    ],
)
def test_accuracy_first(run, options, cost):
    """F33, and back: at that ε a plan's noise is as good, and at 1% less it is not."""
    data = answer(run(f"plan {options} --json"))
    assert data["epsilon"] == pytest.approx(cost, rel=5e-4)
    assert data["within"] == float(options.split()[1])
    assert data["adversaries"][0]["posteriors"][0]["posterior"] > 0.01


def test_accuracy_first_with_a_target_and_with_a_delta(run):
    within = "plan --within 20 --prior 0.05..0.5 --json"
    data = answer(run(f"{within} --posterior 0.6"))
    assert data["target"]["enough"] and data["target"]["epsilon_enough"] == pytest.approx(
        math.log(1.5)
    )
    assert not answer(run(f"{within.replace('20', '5')} --posterior 0.6"))["target"]["enough"]
    gaussian = answer(run(f"{within} --delta 1e-6"))
    assert gaussian["noise"]["kind"] == "gaussian" and gaussian["delta"] == 1e-6
    assert gaussian["rho"] == pytest.approx(1 / (2 * gaussian["noise"]["scale"] ** 2))
    for wrong in ("-1", "1e30", "many"):
        code, out, err = run(f"plan --within {wrong}")
        assert (code, out) == (2, "") and "--within" in err
    assert "within ±20" in words(run("plan --within 20"))


# The map.


def test_the_map(run):
    """Every implication and every counterexample, in words and as data."""
    code, out, err = run("notions")
    assert (code, err) == (0, "")
    for part in ("⇔", "⇒", "⇏", "T9", "BDP", "D_C^m"):
        assert part in out, part
    data = answer(run("notions --json"))
    assert len(data["implications"]) == len(NOTION_EDGES)
    assert len(data["counterexamples"]) == len(NOTION_BARRIERS)
    assert {"source", "target", "theorem", "formula"} <= data["implications"][0].keys()


# Drawings.


OTHERS = ("explain --epsilon 1 --prior 0.1..0.4", "notions", "plan --rho 0.5 -m 5")


@pytest.mark.parametrize(
    ("line", "suffix"),
    [
        *((STORY, suffix) for suffix in ("html", "png", "SVG")),
        *some([(line, "svg") for line in OTHERS], 1, several=True),
    ],
)
def test_drawings_stand_alone(run, tmp_path, line, suffix):
    """Each format is of its kind, and nothing is loaded from elsewhere."""
    path = tmp_path / f"drawing.{suffix}"
    found = answer(run(line, "--save", str(path), "--json"))
    data = path.read_bytes()
    assert found and len(data) > 1000
    if suffix == "png":
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        return
    text = data.decode("utf-8")
    if suffix.lower() == "svg":
        assert text.startswith("<svg") and text.rstrip().endswith("</svg>")
        assert not re.search(r"""(href|src)=["']https?://""", text)
        return
    assert "<html" in text and "vega" in text.lower()
    head = re.sub(r"<script[^>]*>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"<script[^>]+src\s*=", text), "a script is loaded from elsewhere"
    assert not re.search(r"""(href|src)=["']https?://""", head), "something is loaded"
    assert not re.search(r"""import\s*\(?\s*["']https?://""", text)


# Bad input.


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("plan --posterior 0.6 --prior 0.5..0.05", "--prior"),
        ("plan --posterior 0.6 --prior 0.05..0.7", "--posterior"),
        ("plan --hipaa --prior 0.05..0.5", "--hipaa"),
        ("plan --gamma 0.9", "--gamma"),
        ("plan --epsilon 0", "--epsilon"),
        ("plan --gain 1", "--gain"),
        ("plan --advantage 0", "--advantage"),
        ("plan --rho 0.1 -m 5", "--rho"),
        ("plan --rho 0.5", "--candidates"),
        ("plan --gamma 2 -m 5", "--candidates"),
        ("plan", "target"),
        ("plan --gamma 2 --posterior 0.6", "target"),
        ("plan --gamma 2 --delta 1", "--delta"),
        ("plan --gamma 2 --linked 3 --delta 1e-6", "--delta"),
        ("plan --gamma 2 --linked 2 --prior 0.5", "--linked"),
        ("plan --gamma 2 --query median", "--query"),
        ("plan --gamma 2 --query sum --lower 2 --upper 1", "--lower"),
        ("plan --gamma 2 --query rows --max-rows-per-group 0", "--max-rows-per-group"),
        ("plan --gamma 2 --query histogram --max-groups 0", "--max-groups"),
        ("plan --gamma 2 --entities 0", "--people"),
        ("plan --gamma 2 --family any", "--gamma"),
        ("plan --gamma 2 --family cliques=2 --prior 0.5", "--family"),
        ("plan --gamma 2 --family at-most-known=3:0.1..0.9 --delta 1e-6", "--people"),
        ("plan --gamma 2 --steps 5", "--delta"),
        ("plan --advantage 0.1 --steps 0", "--steps"),
        ("plan --advantage 0.1 --sample-rate 2", "--sample-rate"),
        ("plan --advantage 0.1 --steps 2 --noise cauchy", "--noise"),
        ("plan --gamma 2 --size-known --sample-rate 0.1 --delta 1e-6", "--gamma"),
        ("explain --epsilon 0", "--epsilon"),
        ("explain --epsilon 1 --delta 1", "--delta"),
        ("explain --epsilon 1 --prior 0.5..0.1", "--prior"),
        ("explain --epsilon 1 --relation swap", "--relation"),
    ],
)
def test_bad_input(run, refused_at, tmp_path, line, place):
    """Exit 2, one line on standard error, nothing on standard output, no file."""
    more = () if "--steps" in line or "--sample-rate" in line else ("--save",)
    path = tmp_path / "never.svg"
    found = refused_at(line, *more, *([path] if more else []))
    assert found == place or not place
    code, out, err = run(line, *more, *([str(path)] if more else []), "--json")
    assert (code, out) == (2, ""), (code, out)
    assert err.count("\n") == 1 and err.startswith("whosin: "), err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("line", [STORY, "explain --epsilon 1", "notions"])
@pytest.mark.parametrize("name", ["x.pdf", "x", "none/x.svg"])
def test_bad_drawings(refused_at, tmp_path, line, name):
    """A file that cannot be written is refused before any work is done."""
    assert refused_at(line, "--save", tmp_path / name) == "--save"
    assert not list(tmp_path.iterdir())


def test_processes_are_drawn_by_what_tests_reach(run, tmp_path):
    path = tmp_path / "x.svg"
    code, _, err = run("plan --advantage 0.1 --steps 5", "--save", str(path))
    assert (code, err) == (0, "") and "after 5 steps" in path.read_text()


def test_explain_says_whether_it_is_enough(run):
    detection = answer(run("explain --epsilon 3 --tpr 0.1 --fpr 0.01 --json"))["target"]
    assert not detection["enough"] and detection["limit"] == 0.1
    assert detection["reached"] == pytest.approx(math.exp(3) / 100)
    assert detection["epsilon_enough"] == pytest.approx(math.log(10))
    for epsilon, enough in ((2.302, True), (2.303, False)):
        line = f"explain --epsilon {epsilon} --tpr 0.1 --fpr 0.01 --json"
        assert answer(run(line))["target"]["enough"] is enough
    planned = answer(run("plan --profile 0.01:0.05,0.1:0.3 --json"))["epsilon"]
    profile = answer(run("explain --epsilon 1 --profile 0.01:0.05,0.1:0.3 --json"))["target"]
    assert profile["enough"] and profile["epsilon_enough"] == pytest.approx(planned)
    out = words(run("explain --epsilon 2 --profile 0.01:0.05,0.1:0.3"))
    assert "Not enough" in out and "Any ε up to 1.29325 keeps it" in out
    failing = answer(run("explain --epsilon 1 --delta 1e-6 --posterior 0.3 --prior 0.1 --json"))
    assert failing["target"]["fails"] == pytest.approx(1e-5)
    assert "At this δ no ε keeps it" in words(run("explain --epsilon 1 --delta 0.05 --gain 0.01"))
    rho = "explain --epsilon 1 --rho 0.5 -m 10 --json"
    assert answer(run(rho))["target"]["epsilon_enough"] == pytest.approx(math.log(9) / 2)
    replaced = answer(run(f"{rho} --relation replace"))["target"]
    assert replaced["epsilon_enough"] == pytest.approx(math.log(9))


def test_explain_a_process(run):
    line = "explain --multiplier 2 --steps 4 --delta 1e-5"
    once = answer(run(f"{line} --advantage 0.3 --json"))
    # Four runs of σ = 2 are one of σ = 1: Φ(1/2) − Φ(−1/2)
    assert once["target"]["reached"] == pytest.approx(math.erf(0.5 / math.sqrt(2)), rel=1e-9)
    assert not once["target"]["enough"]
    sampled = answer(run(f"{line} --sample-rate 0.01 --tpr 0.1 --fpr 0.01 --json"))
    assert sampled["epsilon"] < once["epsilon"] and sampled["target"]["enough"]
    assert "1,000 people" in words(run(f"{line} --for resident --tpr 0.1 --fpr 0.01"))


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("explain --epsilon 1 --tpr 0.1", "--fpr"),
        ("explain --epsilon 1 --tpr 0.1 --fpr 0.2", "--tpr"),
        ("explain --epsilon 1 --profile 0.1:0.05", "--profile"),
        ("explain --epsilon 1 --gamma 2 --gain 0.1", "target"),
        ("explain --epsilon 1 --posterior 0.5", "--posterior"),
        ("explain --epsilon 1 --delta 1e-6 --rho 0.5 -m 10", "--delta"),
        ("explain --epsilon 1 --multiplier 1", "--epsilon"),
        ("explain --epsilon 1 --steps 3", "--steps"),
        ("explain --multiplier 1", "--delta"),
        ("explain --multiplier 0.01 --delta 1e-5", "--multiplier"),
        ("explain --multiplier 1 --delta 1e-5 --sample-rate 2", "--sample-rate"),
        ("explain", "--epsilon"),
    ],
)
def test_targets_and_processes_that_explain_refuses(refused_at, line, place):
    found = refused_at(line)
    assert found == place or not place


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("plan --posterior 0.6 --prior 0.05..0.5", ["as if 600 were", "at most 15 of 1,000"]),
        ("plan --rho 0.3 -m 20", ["was 5.0% sure, 50 are in", "as if 300 were"]),
        # Three who come and go together: the best test sees e^(3ε), which is γ.
        ("plan --gamma 2 --linked 3", ["as if 182 were", "at most 20 of 1,000"]),
        ("plan --epsilon 1 --delta 1e-6", ["no surer, but for a probability of 1e-05"]),
        ("plan --tpr 0.2 --fpr 0.05", ["accuses 50 of 1,000", "at most 200 of 1,000"]),
    ],
)
def test_cards_count_people(run, line, said):
    out = words(run(line))
    assert "Out of 1,000 people" in out and all(part in out for part in said), out


def test_a_card_about_rates_promises_no_belief(run):
    """Noise for one answer keeps the rate by all of its profile, and not by one ε and δ."""
    out = words(run("plan --tpr 0.1 --fpr 0.01 --delta 1e-5"))
    assert "about whom someone was" not in out and "● by guessing" in out
    assert "✚ the target" in out and "accused by mistake" in out and "prior belief" not in out
