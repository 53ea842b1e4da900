"""`whosin gwas`: the commands, their files, and what they refuse."""

from __future__ import annotations

import json

import pytest

RELEASE = "gwas release study --top 3 --gamma 2 --prior 0.5"
SNPS = 500


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


def test_public_lists_choose_people_and_snps(inside, run, shown):
    """In every command; the QQ plot says that it is private, and GWAS-SSF comes with metadata."""
    (inside / "snps").write_text("rs1 rs2 rs3\nrs499\n")
    (inside / "people").write_text("".join(f"p{i} p{i}\n" for i in range(1, 601)))
    lists = "--extract snps --keep people"
    code, out, err = run(f"gwas count study {lists} --qq q.svg --json")
    data = json.loads(out)
    assert code == 0 and data["snps"] == 4 and data["cases"] + data["controls"] == 600
    assert data["lambda"] > 0 and "private" in err
    assert "private" in (inside / "q.svg").read_text()
    made = shown(f"{RELEASE} {lists} --relation genotype --save t.ssf.tsv --json")
    assert made["snps_in_study"] == 4 and {row["SNP"] for row in made["snps"]} < {
        *("rs1", "rs2", "rs3", "rs499")
    }
    assert len((inside / "t.ssf.tsv").read_text().splitlines()) == 4
    assert "noise" in (inside / "t.ssf.tsv-meta.yaml").read_text()
    points = shown(f"gwas attack study {lists} --json")["points"]
    assert {point["snps"] for point in points} == {4}


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
    assert round(data["selection_scale"], 6) == 6 and data["threshold"] > 0
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
    both = "--continues study:label-swap --new-people"
    assert run(f"gwas release more {small} {both}")[:2] == (2, "")
    code, out, err = run(f"gwas release more {small} --continues stuyd")
    assert (code, out) == (2, "") and "study:label-swap" in err
    for suffix in (".bed", ".bim", ".fam"):
        (inside / f"copy{suffix}").write_bytes((inside / f"study{suffix}").read_bytes())
    code, out, err = run(f"gwas release copy {small} --new-people")
    assert (code, out) == (1, "") and "the rows of" in err
    assert shown(f"gwas release more {small} --new-people --json")["dataset"] == "more:label-swap"
    assert "by the curator's word" in run("ledger export all.db more:label-swap")[1]


def test_strata_loci_and_none_of_them(inside, run, shown):
    """One label: no number shows how many cases there are; a locus with its SNP; bad files spend
    nothing."""
    names = [line.split()[:2] for line in (inside / "study.fam").read_text().splitlines()]
    lines = [f"{a} {b} {i % 3}\n" for i, (a, b) in enumerate(names)]
    (inside / "strata.txt").write_text("".join(lines))
    (inside / "short.txt").write_text("".join(lines[1:]))
    (inside / "map.txt").write_text("99 1 2 NOWHERE\n")
    one = "gwas release study --top 1 --epsilon 2 --numbers nothing --ledger l.db"
    linear = f"{one} --score linear --relation label"
    for wrong, field in (
        (f"{linear} --covar short.txt", "short.txt"),
        (f"{one} --relation genotype --loci map.txt", "map.txt"),
        (f"{one} --relation genotype --within strata.txt", "--within"),
        (f"{one} --relation stratum-swap", "linear"),
        (f"{one} --relation genotype --clump-kb 5 --loci map.txt", "--loci"),
    ):
        code, out, err = run(wrong)
        assert (code, out) == (2, "") and field in err, err
    assert not (inside / "l.db").exists()
    made = shown(f"{linear} --within strata.txt --json")
    assert made["cases"] is None and made["people"] == len(names)
    assert made["dataset"] == "study:label" and made["gap"] >= 0
    loci = one.replace("nothing", "counts").replace("l.db", "m.db")
    made = shown(f"{loci} --relation genotype --clump-kb 300 --json")
    assert len(made["loci"]) == 1 and made["snps"][0]["LOCUS"] == made["loci"][0]
    assert made["candidates"] < made["snps_in_study"]
    none = one.replace("l.db", "n.db").replace("--epsilon 2", "--epsilon 0.01")
    text = shown(f"{none} --relation genotype --none-of-them --save none.tsv")
    lines = (inside / "none.tsv").read_text().splitlines()
    assert lines[0].startswith("CHR\tSNP") and len(lines) <= 2
    assert ("None of them: no SNP stands out." in text) == (len(lines) == 1)


def test_a_study_goes_on_under_another_name(inside, run, shown):
    shown("gwas simulate next --cases 310 --controls 410 --snps 500 --causal 3 --seed 7")
    small = "--top 1 --relation label-swap --ledger all.db --json"
    run("ledger create all.db study:label-swap --epsilon 1 --size-known")
    shown(f"gwas release study --epsilon 0.5 {small}")
    made = shown(f"gwas release next --epsilon 0.5 {small} --continues study")
    assert made["dataset"] == "study:label-swap"
    again = f"gwas release next --epsilon 0.5 {small} --continues study"
    assert shown(again)["snps"] == made["snps"]
    code, _, err = run(f"{again} --again")
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
        code, out, err = run(f"{RELEASE} --relation genotype{more}")
        assert code == 0 and "Relatives in the study" in out
        assert ("have relatives" in err) == (not more)


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
    "gwas count study --qq x.pdf": "--qq",
    "gwas count study --maf 0.01": "--maf",
    "gwas count study --keep study.bim": "--keep",
    "gwas attack study --extract study.fam": "--extract",
    "gwas count study --split-par hg1": "--split-par",
    f"{RELEASE} --relation genotype --numbers chi2 --save x.ssf.tsv": "--save",
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


FORECAST = "gwas forecast --cases 500 --controls 500 --snps 28501 --posterior 0.75 --prior 0.5"


def test_a_forecast_says_its_chance_and_settings(shown, inside):
    said = shown(f"{FORECAST} --odds-ratio 2 --relation genotype --top 1 --numbers counts --json")
    assert said["chance"] > 0.97 and said["hopes"][0]["noise"] < 0.08
    assert said["settings"]["relation"] == "genotype" and said["settings"]["top"] == 1
    assert 0.5 < said["settings"]["share"] < 0.9
    all_of_it = shown(f"{FORECAST} --odds-ratio 2 --relation label-swap --numbers nothing --json")
    assert all_of_it["settings"]["share"] == 1 and all_of_it["hopes"][0]["noise"] is None
    text = shown(f"{FORECAST} --odds-ratio 2,1.2 --frequency 0.3,0.1 --relation label-swap --top 2")
    assert "under 1%" in text and "exchange labels" in text
    assert list(inside.glob("*.ledger")) == []


def test_advice_compares_relations(shown):
    said = shown(f"{FORECAST} --chi2 36 --advise --json")
    first, *others = said["advice"]
    assert said["settings"] == first["settings"] and first["settings"]["relation"] == "genotype"
    assert said["chance"] > 0.97
    assert {each["settings"]["relation"] for each in others} == {"label-swap", "label"}
    assert first["smallest"]["cases"] < 500 and first["smallest"]["chance"] >= 0.94
    text = shown(f"{FORECAST} --odds-ratio 1.8 --advise --relation label-swap")
    assert "label-swap" in text and "Which relation" not in text
    fixed = shown(f"{FORECAST} --odds-ratio 1.8 --advise --relation genotype --top 3 --json")
    assert fixed["settings"]["top"] == 3 == fixed["smallest"]["settings"]["top"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ("--odds-ratio 2", "--relation"),
        ("--relation genotype", "--odds-ratio"),
        ("--relation genotype --odds-ratio 2 --chi2 9", "--odds-ratio"),
        ("--relation genotype --odds-ratio 2 --frequency 0.1,0.2", "--frequency"),
        ("--relation genotype --odds-ratio 2 --frequencies no.frq", "no.frq"),
        ("--odds-ratio 2 --advise --share 0.5", "--share"),
        ("--relation label --odds-ratio 2", "linear"),
        ("--relation genotype --odds-ratio 2 --share 1.5", "share"),
    ],
)
def test_wrong_forecasts_are_refused(run, wrong, field):
    code, out, err = run(f"{FORECAST} {wrong}")
    assert (code, out) == (2, "") and field in err and len(err.splitlines()) == 1


def test_a_dry_run_says_what_to_expect(inside, shown):
    line = f"{RELEASE} --relation genotype --dry-run"
    text = shown(line)
    assert "What to expect" in text and "at best" in text
    listed = shown(f"{line} --json")["forecast"]
    assert [each["hopes"][0]["odds_ratio"] for each in listed] == [1.3, 1.5, 2, 3]
    chances = [each["chance"] for each in listed]
    assert chances == sorted(chances) and listed[0]["snps"] == 500
    assert all(each["best"]["chance"] >= each["chance"] for each in listed)
    assert not (inside / "study.ledger").exists()


def test_an_experiment_takes_everything_from_its_user(shown):
    said = shown(
        "gwas experiment --gamma 2 --top 2 --cases 150,100 --controls 150,250 --relation genotype "
        "--threshold best --numbers counts --share 0.6 --frequencies 0.2..0.4 --snps 200 "
        "--causal 2 --odds-ratio 3 --studies 2 --draws 2 --json"
    )
    sizes = {(each["cases"], each["controls"]) for each in said["outcomes"]}
    assert sizes == {(150, 150), (100, 250)}
    assert {each["share"] for each in said["outcomes"]} == {0.6}
    assert {each["relation"] for each in said["outcomes"]} == {"genotype"}
    text = shown(
        "gwas experiment --gamma 2 --top 2 --cases 100 --controls 250 --snps 100 --causal 2 "
        "--studies 2 --draws 2"
    )
    assert "100 + 250" in text
