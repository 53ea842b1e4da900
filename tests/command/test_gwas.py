"""`whosin gwas`: the commands, their files, and what they refuse."""

from __future__ import annotations

import json

import pytest

from whosin.app.cli.main import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("gwas")
    shape = ["--cases", "300", "--controls", "400", "--snps", "500", "--causal", "3"]
    assert main(["gwas", "simulate", str(place / "study"), *shape, "--odds-ratio", "3"]) == 0
    return place


@pytest.fixture
def inside(folder, tmp_path, monkeypatch):
    for suffix in (".bed", ".bim", ".fam"):
        (tmp_path / f"study{suffix}").write_bytes((folder / f"study{suffix}").read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


RELEASE = ["gwas", "release", "study", "--top", "3", "--gamma", "2", "--prior", "0.5"]


def test_simulate_says_what_it_made(tmp_path, capsys):
    out = str(tmp_path / "a.b")
    assert (
        main(
            [
                "gwas",
                "simulate",
                out,
                "--cases",
                "5",
                "--controls",
                "6",
                "--snps",
                "7",
                "--causal",
                "2",
                "--json",
            ]
        )
        == 0
    )
    data = json.loads(capsys.readouterr().out)
    assert data["cases"] == 5 and len(data["causal"]) == 2 and data["seed"] == 1
    assert {path.name for path in tmp_path.iterdir()} == {"a.b.bed", "a.b.bim", "a.b.fam"}


def test_count_writes_tables_and_pictures(inside, capsys):
    assert main(["gwas", "count", "study", "--save", "c.tsv", "--assoc", "a.tsv", "--json"]) == 0
    streams = capsys.readouterr()
    assert json.loads(streams.out) == {"snps": 500, "cases": 300, "controls": 400, "left_out": 0}
    assert "private" in streams.err
    header, first = (inside / "a.tsv").read_text().splitlines()[:2]
    assert header.split("\t") == ["CHR", "SNP", "BP", "A1", "A2", "F_A", "F_U", "CHISQ", "P", "OR"]
    assert len(first.split("\t")) == 10
    assert main(["gwas", "count", "c.tsv", "--save", "m.svg", "--save", "m.tsv"]) == 0
    assert (inside / "m.svg").exists() and (inside / "m.tsv").exists()
    assert "not for publication" in (inside / "m.svg").read_text()
    assert "500 SNPs, 300 cases, 400 controls" in capsys.readouterr().out


@pytest.mark.parametrize("numbers", ["counts", "chi2", "nothing"])
def test_release_writes_what_it_shows(inside, capsys, numbers):
    assert main([*RELEASE, "--relation", "label-swap", "--dry-run", "--json"]) == 0
    assert "snps" not in json.loads(capsys.readouterr().out)
    assert main([*RELEASE, "--relation", "label-swap", "--dry-run"]) == 0
    assert "nothing was spent" in capsys.readouterr().out
    assert not (inside / "study.ledger").exists()
    files = ["--save", "r.tsv", "--save", "r.html"]
    run = [*RELEASE, "--relation", "label-swap", "--numbers", numbers, "--request", "one"]
    assert main([*run, *files, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["relation"] == "label-swap" and data["dataset"] == "study:label-swap"
    assert (inside / "study.ledger").exists()
    lines = (inside / "r.tsv").read_text().splitlines()
    assert lines[0].split("\t") == list(data["snps"][0]) and len(lines) == 4
    page = (inside / "r.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org", "") and "https://" not in page
    assert all(snp["SNP"] in page for snp in data["snps"])
    assert ("Released associations" in page) == (numbers != "nothing")
    assert main(run) == 0
    shown = capsys.readouterr().out
    assert "What is published" in shown and data["snps"][0]["SNP"] in shown
    assert main([*RELEASE, "--relation", "label-swap", "--numbers", numbers]) == 1
    assert "left" in capsys.readouterr().err


def test_noise_is_shown_in_the_unit_of_its_score(inside, capsys):
    """Not in steps of 1/256: one exchange moves a χ² by about 16, so three of them need 97 at ε =
    1."""
    run = [*RELEASE[:5], "--epsilon", "1", "--relation", "label-swap", "--numbers", "nothing"]
    run += ["--dry-run"]
    assert main([*run, "--score", "chi2", "--json"]) == 0
    scale = json.loads(capsys.readouterr().out)["selection_scale"]
    assert 97 < scale < 100
    assert main([*run, "--score", "chi2"]) == 0
    assert f"noise of scale {scale:.4g} " in capsys.readouterr().out
    assert main([*run, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["threshold"] == 4 and round(data["selection_scale"], 6) == 6
    for option in (["--threshold", "29.7"], ["--significance", "5e-8"]):
        assert main([*run, *option, "--json"]) == 0
        assert 29 < json.loads(capsys.readouterr().out)["threshold"] < 30


def test_phenotypes_share_a_budget_in_one_ledger(inside, capsys):
    """Other phenotypes of the same genomes, under this name or another, are not paid twice."""
    rows = [line.split() for line in (inside / "study.fam").read_text().splitlines()]
    given = "".join(f"{row[0]} {row[1]} {1 + i % 2}\n" for i, row in enumerate(rows))
    (inside / "other.txt").write_text(given)
    run = [*RELEASE, "--relation", "genotype", "--ledger", "all.db"]
    assert main(run) == 0
    other = [*run, "--phenotypes", "other.txt"]
    assert main(other) == main([*other, "--dataset", "weight"]) == 1
    errors = capsys.readouterr().err
    assert errors.count("study:genotype") >= 2 and "left" in errors


def test_relatives_are_warned_of(inside, capsys):
    lines = (inside / "study.fam").read_text().splitlines()
    family = lines[0].split()[0]
    lines[1] = " ".join([family, *lines[1].split()[1:]])
    (inside / "study.fam").write_text("\n".join(lines) + "\n")
    run = [*RELEASE, "--relation", "genotype"]
    for more in (["--dry-run"], []):
        assert main([*run, *more]) == 0
        assert "relatives" in capsys.readouterr().err


def test_release_under_genotype_changes_says_what_swaps_cost(inside, capsys):
    assert main([*RELEASE, "--relation", "genotype", "--score", "chi2"]) == 0
    assert "Exchanging two labels is two of these changes: ε = 2.1972" in " ".join(
        capsys.readouterr().out.split()
    )


def test_named_snps_are_published(inside, capsys):
    run = ["gwas", "release", "study", "--snps", "rs5, rs9", "--relation", "label-swap"]
    assert main([*run, "--posterior", "0.7", "--prior", "0.5", "--json", "--save", "n.html"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [snp["SNP"] for snp in data["snps"]] == ["rs5", "rs9"] and data["epsilon_selection"] == 0
    assert "2 SNPs, released privately" in (inside / "n.html").read_text()
    unknown = [*run[:4], "rs99999", *run[5:], "--epsilon", "1", "--ledger", "new.db"]
    assert main(unknown) == 2
    assert "no SNP 'rs99999' among its 500" in capsys.readouterr().err


def test_attack_tells_exact_from_released(inside, capsys):
    run = ["gwas", "attack", "study", "--snps", "20,500", "--seed", "2"]
    assert main([*run, "--json", "--save", "a.svg"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert len(data["points"]) == 8 and round(data["promised_posterior"], 6) == 0.75
    assert round(data["promised_power"], 6) == 0.03
    assert "the most that the plan allows" in (inside / "a.svg").read_text()
    assert main(run) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "75.0% sure" in shown and "95% interval" in shown
    released = [point for point in data["points"] if point["source"] == "released"]
    for point in released:
        low, high = point["power_interval"]
        assert low <= point["power"] <= high and low < high
    above = any(point["power"] > data["promised_power"] for point in released)
    assert ("Sampling explains" in shown) == above


def test_experiment_draws_and_states_its_seeds(inside, capsys):
    run = ["gwas", "experiment", "--gamma", "2", "--top", "2", "--people", "200,400", "--snps"]
    run += ["200", "--studies", "2", "--draws", "3", "--seed", "5"]
    assert main([*run, "--json", "--save", "e.svg"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["seeds"] == [5, 6] and len(data["outcomes"]) == 8
    assert "bounded priors" in (inside / "e.svg").read_text()
    assert main(run) == 0
    assert "seeds 5 to 6" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["gwas", "count", "nothing"], ""),
        (["gwas", "count", "study", "--save", "x.pdf"], "--save"),
        (["gwas", "count", "study", "--phenotypes", "no"], ""),
        ([*RELEASE, "--relation", "swap"], "--relation"),
        ([*RELEASE, "--relation", "genotype", "--epsilon", "1"], "target"),
        ([*RELEASE, "--relation", "genotype", "--significance", "nan"], "--significance"),
        ([*RELEASE, "--relation", "genotype", "--significance", "0"], "--significance"),
        ([*RELEASE, "--relation", "genotype", "--threshold", "x"], "--threshold"),
        (
            [*RELEASE, "--relation", "genotype", "--threshold", "4", "--significance", "0.1"],
            "--threshold",
        ),
        (["gwas", "count", "kg.pgen"], ""),
        (["gwas", "attack", "kg.bgen"], ""),
        ([*RELEASE, "--relation", "genotype", "--score", "x"], "--score"),
        ([*RELEASE, "--relation", "genotype", "--numbers", "x"], "--numbers"),
        ([*RELEASE, "--relation", "genotype", "--save", "x.txt"], "--save"),
        ([*RELEASE, "--relation", "genotype", "--save", "no/x.tsv"], "--save"),
        (
            ["gwas", "release", "study", "--top", "501", "--gamma", "2", "--relation", "genotype"],
            "--top",
        ),
        ([*RELEASE, "--relation", "genotype", "--snps", "rs1"], "--snps"),
        (
            [
                "gwas",
                "release",
                "study",
                "--top",
                "2",
                "--relation",
                "genotype",
                "--epsilon",
                "1e-30",
            ],
            "",
        ),
        (["gwas", "attack", "counts.tsv"], ""),
        (["gwas", "attack", "study", "--snps", "a"], "--snps"),
        (["gwas", "attack", "study", "--rate", "0.001"], ""),
        (["gwas", "attack", "study", "--relation", "x"], "--relation"),
        (["gwas", "experiment", "--score", "x"], "--score"),
        (["gwas", "experiment", "--people", "abc"], "--people"),
        (["gwas", "experiment", "--prior", "2"], "--prior"),
        (["gwas", "experiment", "--gamma", "0.5"], "--gamma"),
        (["gwas", "simulate", "x", "--cases", "1"], ""),
        (["gwas", "simulate", "no/x"], "OUT"),
    ],
)
def test_wrong_calls_exit_with_two(inside, refused_at, arguments, place):
    found = refused_at(*arguments)
    assert found == place or not place
    assert not list(inside.glob("*.ledger*"))


def test_a_relation_has_to_be_named(inside, capsys):
    assert main(RELEASE) == 2
    streams = capsys.readouterr()
    assert "--relation" in streams.err and not streams.out


def test_simulate_keeps_what_is_there(inside, capsys):
    """A study is not replaced by a simulated one unless that is said."""
    before = (inside / "study.bed").read_bytes()
    run = ["gwas", "simulate", "study.bed", "--cases", "5", "--controls", "5", "--snps", "20"]
    assert main(run) == 2
    assert "study.bed, study.bim, study.fam" in capsys.readouterr().err
    assert (inside / "study.bed").read_bytes() == before
    assert main([*run, "--overwrite"]) == 0
    assert (inside / "study.bed").read_bytes() != before


def test_truncated_files_are_named(inside, capsys):
    data = (inside / "study.bed").read_bytes()
    (inside / "study.bed").write_bytes(data[:-7])
    assert main(["gwas", "count", "study"]) == 2
    assert "truncated" in capsys.readouterr().err
