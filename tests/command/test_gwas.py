"""`whosin gwas`: the commands, their files, and what they refuse."""

from __future__ import annotations

import json

import pytest

from whosin.app.cli.main import main

RELEASE = "gwas release study --top 3 --gamma 2 --prior 0.5"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("gwas")
    shape = "--cases 300 --controls 400 --snps 500 --causal 3 --odds-ratio 3"
    assert main(["gwas", "simulate", str(place / "study"), *shape.split()]) == 0
    return place


@pytest.fixture
def inside(folder, tmp_path, monkeypatch):
    for suffix in (".bed", ".bim", ".fam"):
        (tmp_path / f"study{suffix}").write_bytes((folder / f"study{suffix}").read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def shown(run):
    """What a command shows that succeeds, its words one space apart; of --json the data."""

    def call(line):
        code, out, err = run(line)
        assert code == 0, err
        return json.loads(out) if "--json" in line else " ".join(out.split())

    return call


def test_simulate_says_what_it_made_and_keeps_what_is_there(inside, run, shown):
    data = shown("gwas simulate a.b --cases 5 --controls 6 --snps 7 --causal 2 --json")
    assert data["cases"] == 5 and len(data["causal"]) == 2 and data["seed"] == 1
    assert {path.name for path in inside.glob("a*")} == {"a.b.bed", "a.b.bim", "a.b.fam"}
    before = (inside / "study.bed").read_bytes()
    again = "gwas simulate study.bed --cases 5 --controls 5 --snps 20"
    code, _, err = run(again)
    assert code == 2 and "study.bed, study.bim, study.fam" in err
    assert (inside / "study.bed").read_bytes() == before
    shown(f"{again} --overwrite")
    assert (inside / "study.bed").read_bytes() != before


def test_count_writes_tables_and_pictures(inside, run, shown):
    code, out, err = run("gwas count study --save c.tsv --assoc a.tsv --json")
    assert json.loads(out) == {"snps": 500, "cases": 300, "controls": 400, "left_out": 0}
    assert code == 0 and "private" in err
    header, first = (inside / "a.tsv").read_text().splitlines()[:2]
    assert header.split("\t") == ["CHR", "SNP", "BP", "A1", "A2", "F_A", "F_U", "CHISQ", "P", "OR"]
    assert len(first.split("\t")) == 10
    assert "500 SNPs, 300 cases, 400 controls" in shown(
        "gwas count c.tsv --save m.svg --save m.tsv"
    )
    assert (inside / "m.tsv").exists()
    assert "not for publication" in (inside / "m.svg").read_text()


@pytest.mark.parametrize("numbers", ["counts", "chi2", "nothing"])
def test_release_writes_what_it_shows(inside, run, shown, numbers):
    swaps = f"{RELEASE} --relation label-swap"
    if numbers == "counts":
        assert "snps" not in shown(f"{swaps} --dry-run --json")
        assert "nothing was spent" in shown(f"{swaps} --dry-run")
        assert not (inside / "study.ledger").exists()
    paid = f"{swaps} --numbers {numbers} --request one"
    data = shown(f"{paid} --save r.tsv --save r.html --json")
    assert data["relation"] == "label-swap" and data["dataset"] == "study:label-swap"
    assert (inside / "study.ledger").exists()
    lines = (inside / "r.tsv").read_text().splitlines()
    assert lines[0].split("\t") == list(data["snps"][0]) and len(lines) == 4
    page = (inside / "r.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org", "") and "https://" not in page
    assert all(snp["SNP"] in page for snp in data["snps"])
    assert ("Released associations" in page) == (numbers != "nothing")
    again = shown(paid)
    assert "What is published" in again and data["snps"][0]["SNP"] in again
    code, _, err = run(f"{swaps} --numbers {numbers}")
    assert code == 1 and "left" in err


def test_noise_is_shown_in_the_unit_of_its_score(inside, shown):
    """Not in steps of 1/256: one exchange moves a χ² by about 16, so three of them need 97 at ε =
    1."""
    asked = "gwas release study --top 3 --epsilon 1 --relation label-swap --numbers nothing"
    asked += " --dry-run"
    scale = shown(f"{asked} --score chi2 --json")["selection_scale"]
    assert 97 < scale < 100
    assert f"noise of scale {scale:.4g} " in shown(f"{asked} --score chi2")
    data = shown(f"{asked} --json")
    assert data["threshold"] == 4 and round(data["selection_scale"], 6) == 6
    for option in ("--threshold 29.7", "--significance 5e-8"):
        assert 29 < shown(f"{asked} {option} --json")["threshold"] < 30


def test_phenotypes_share_a_budget_in_one_ledger(inside, run, shown):
    """Other phenotypes of the same genomes, under this name or another, are not paid twice; and
    what swaps cost under genotype changes is said."""
    rows = [line.split() for line in (inside / "study.fam").read_text().splitlines()]
    given = "".join(f"{row[0]} {row[1]} {1 + i % 2}\n" for i, row in enumerate(rows))
    (inside / "other.txt").write_text(given)
    asked = f"{RELEASE} --relation genotype --ledger all.db"
    assert "Exchanging two labels is two of these changes: ε = 2.1972" in shown(asked)
    for more in ("", " --dataset weight"):
        code, _, err = run(f"{asked} --phenotypes other.txt{more}")
        assert code == 1 and "study:genotype" in err and "left" in err


def test_another_study_in_a_ledger_says_whose_people_it_is_about(inside, run, shown):
    """Under either relation; and a copy gets no second budget whatever is said."""
    shown("gwas simulate more --cases 310 --controls 410 --snps 500 --causal 3 --seed 7")
    small = "--top 3 --epsilon 0.2 --relation label-swap --ledger all.db"
    shown(f"gwas release study {small}")
    code, out, err = run(f"gwas release more {small}")
    assert (code, out) == (1, "")
    assert "--continues study:label-swap" in err and "--new-people" in err
    other = small.replace("label-swap", "genotype")
    code, out, err = run(f"gwas release more {other} --continues study:label-swap")
    assert (code, out) == (1, "") and "do not compose" in err
    code, out, err = run(f"gwas release more {small} --continues stuyd")
    assert (code, out) == (2, "") and "study:label-swap" in err
    for suffix in (".bed", ".bim", ".fam"):
        (inside / f"copy{suffix}").write_bytes((inside / f"study{suffix}").read_bytes())
    code, out, err = run(f"gwas release copy {small} --new-people")
    assert (code, out) == (1, "") and "the rows of" in err
    assert shown(f"gwas release more {small} --new-people --json")["dataset"] == "more:label-swap"
    assert "by the curator's word" in run("ledger export all.db more:label-swap")[1]


def test_a_study_goes_on_under_another_name(inside, run, shown):
    shown("gwas simulate next --cases 310 --controls 410 --snps 500 --causal 3 --seed 7")
    small = "--top 1 --relation label-swap --ledger all.db --json"
    run("ledger create all.db study:label-swap --epsilon 1 --size-known")
    shown(f"gwas release study --epsilon 0.5 {small}")
    made = shown(f"gwas release next --epsilon 0.5 {small} --continues study")
    assert made["dataset"] == "study:label-swap"
    code, _, err = run(f"gwas release next --epsilon 0.5 {small} --continues study")
    assert code == 1 and "left" in err


def test_a_released_table_is_not_written_over(inside, run):
    for name in ("x.tsv", "x.html"):
        (inside / name).write_text("before")
        code, out, err = run(f"{RELEASE} --relation label-swap --save {name}")
        assert (code, out) == (2, "") and name in err
        assert (inside / name).read_text() == "before"
    assert not (inside / "study.ledger").exists()


def test_relatives_are_warned_of(inside, run):
    lines = (inside / "study.fam").read_text().splitlines()
    lines[1] = " ".join([lines[0].split()[0], *lines[1].split()[1:]])
    (inside / "study.fam").write_text("\n".join(lines) + "\n")
    for more in (" --dry-run", ""):
        code, _, err = run(f"{RELEASE} --relation genotype{more}")
        assert code == 0 and "relatives" in err


def test_named_snps_are_published(inside, run):
    asked = ["--snps", "rs5, rs9", "--posterior", "0.7", "--prior", "0.5", "--json"]
    code, out, _ = run("gwas release study --relation label-swap --save n.html", *asked)
    data = json.loads(out)
    assert code == 0 and data["epsilon_selection"] == 0
    assert [snp["SNP"] for snp in data["snps"]] == ["rs5", "rs9"]
    assert "2 SNPs, released privately" in (inside / "n.html").read_text()
    unknown = "gwas release study --snps rs99999 --relation label-swap --epsilon 1 --ledger new.db"
    code, _, err = run(unknown)
    assert code == 2 and "no SNP 'rs99999' among its 500" in err


def test_attack_tells_exact_from_released(inside, shown):
    asked = "gwas attack study --snps 20,500 --seed 2"
    data = shown(f"{asked} --json --save a.svg")
    assert len(data["points"]) == 8 and round(data["promised_posterior"], 6) == 0.75
    assert round(data["promised_power"], 6) == 0.03
    assert "the most that the plan allows" in (inside / "a.svg").read_text()
    words = shown(asked)
    assert "75.0% sure" in words and "95% interval" in words
    released = [point for point in data["points"] if point["source"] == "released"]
    for point in released:
        low, high = point["power_interval"]
        assert low <= point["power"] <= high and low < high
    above = any(point["power"] > data["promised_power"] for point in released)
    assert ("Sampling explains" in words) == above


def test_experiment_draws_and_states_its_seeds(inside, shown):
    asked = "gwas experiment --gamma 2 --top 2 --people 200,400 --snps 200 --studies 2 --draws 3"
    asked += " --seed 5"
    data = shown(f"{asked} --json --save e.svg")
    assert data["seeds"] == [5, 6] and len(data["outcomes"]) == 8
    assert "bounded priors" in (inside / "e.svg").read_text()
    assert "seeds 5 to 6" in shown(asked)


CHANGES = f"{RELEASE} --relation genotype"
WRONG_CALLS = {
    "gwas count nothing": "",
    "gwas count study --save x.pdf": "--save",
    f"{RELEASE} --relation swap": "--relation",
    f"{CHANGES} --epsilon 1": "target",
    f"{CHANGES} --significance nan": "--significance",
    f"{CHANGES} --threshold x": "--threshold",
    f"{CHANGES} --threshold 4 --significance 0.1": "--threshold",
    f"{CHANGES} --score x": "--score",
    f"{CHANGES} --numbers x": "--numbers",
    f"{CHANGES} --save x.txt": "--save",
    f"{CHANGES} --save no/x.tsv": "--save",
    f"{CHANGES} --snps rs1": "--snps",
    "gwas release study --top 501 --gamma 2 --relation genotype": "--top",
    "gwas release study --top 2 --relation genotype --epsilon 1e-30": "",
    "gwas attack counts.tsv": "",
    "gwas attack study --snps a": "--snps",
    "gwas attack study --relation x": "--relation",
    "gwas experiment --score x": "--score",
    "gwas experiment --people abc": "--people",
    "gwas experiment --prior 2": "--prior",
    "gwas experiment --gamma 0.5": "--gamma",
    "gwas simulate no/x": "OUT",
}


def test_wrong_calls_exit_with_two(inside, run, refused_at):
    code, out, err = run(RELEASE)
    assert code == 2 and "--relation" in err and not out
    for line, place in WRONG_CALLS.items():
        found = refused_at(line)
        assert found == place or not place, line
    assert not list(inside.glob("*.ledger*"))
