"""`whosin gwas randomise`, `correct`, `beacon`, and relatives in a release: files and refusals."""

from __future__ import annotations

import json

import pytest

DRAW = "gwas randomise study --posterior 0.75 --prior 0.5"
SNPS = 60


def fam_rows(inside):
    return [line.split() for line in (inside / "study.fam").read_text().splitlines()]


def write_fam(inside, rows):
    (inside / "study.fam").write_text("".join(" ".join(row) + "\n" for row in rows))


@pytest.mark.parametrize("more", ["", " --one-sided", " --size-known"])
def test_labels_are_written_once(inside, run, shown, more):
    before = shown(f"{DRAW}{more} --save a.txt --dry-run")
    assert "nothing was spent" in before and not list(inside.glob("*.ledger"))
    data = shown(f"{DRAW}{more} --save a.txt --json")
    lines = [line.split("\t") for line in (inside / "a.txt").read_text().splitlines()]
    assert lines[0] == ["FID", "IID", "PHENO"] and len(lines) == 701
    assert {line[2] for line in lines[1:]} == {"1", "2"}
    assert sum(line[2] == "2" for line in lines) == data["labelled"]
    assert json.loads((inside / "a.labels.json").read_text())["labels"] == data["labels"]
    if more == " --one-sided":  # a case stays one
        cases = {(row[0], row[1]) for row in fam_rows(inside) if row[5] == "2"}
        assert all(line[2] == "2" for line in lines if (line[0], line[1]) in cases)
        assert "300" not in (inside / "a.labels.json").read_text()
    words = shown(f"{DRAW}{more} --save b.txt --coding 0/1")
    assert "nothing was spent now" in words and "times the variance" in words
    again = [line.split("\t")[2] for line in (inside / "b.txt").read_text().splitlines()]
    assert again[1:] == [str(int(line[2]) - 1) for line in lines[1:]]
    code, _, err = run(f"{DRAW.replace('0.75', '0.74')}{more} --save c.txt")
    assert code == 1 and "left" in err and not (inside / "c.txt").exists()


def test_three_phenotypes_by_other_names_have_one_budget(inside, run, shown):
    """For labels as for genotypes; whichever name, file or dataset they come with."""
    rows = fam_rows(inside)
    for number in (1, 2):
        given = "".join(f"{row[0]} {row[1]} {1 + (i + number) % 2}\n" for i, row in enumerate(rows))
        (inside / f"p{number}.txt").write_text(given)
        for suffix in (".bed", ".bim", ".fam"):
            copy = inside / f"copy{number}{suffix}"
            copy.write_bytes((inside / f"study{suffix}").read_bytes())
    shown(f"{DRAW} --save a.txt --ledger all.db")
    for number in (1, 2):
        asked = f"{DRAW.replace('study', f'copy{number}')} --phenotypes p{number}.txt"
        code, _, err = run(f"{asked} --save x{number}.txt --ledger all.db --dataset d{number}")
        assert code == 1 and "study:label" in err and "left" in err
    same = f"{DRAW.replace('study', 'copy1')} --ledger all.db"
    assert "study:label" in run(f"{same} --save same.txt")[2]  # the same labels come back
    assert (inside / "same.txt").read_text() == (inside / "a.txt").read_text()
    asked = "gwas release {} --top 1 --gamma 2 --prior 0.5 --relation genotype --ledger genomes.db"
    shown(asked.format("study"))
    for number in (1, 2):
        line = f"{asked.format(f'copy{number}')} --phenotypes p{number}.txt --dataset d{number}"
        code, _, err = run(line)
        assert code == 1 and "study:genotype" in err and "left" in err
    code, _, err = run(f"{DRAW} --save y.txt --ledger genomes.db --dataset other")
    assert code == 1 and "do not compose" in err


def test_personal_priors(inside, run, shown):
    rows = fam_rows(inside)
    text = "".join(
        f"{row[0]} {row[1]} {'0.01' if i % 2 else '0.1..0.5'}\n" for i, row in enumerate(rows)
    )
    (inside / "priors.txt").write_text("FID IID PRIOR\n" + text)
    strata = "".join(
        f"{row[0]} {row[1]} {'young' if i % 2 else 'old'}\n" for i, row in enumerate(rows)
    )
    (inside / "strata.txt").write_text(strata)
    (inside / "list.txt").write_text("stratum prior\nyoung 0.01\nold 0.1..0.5\n")
    asked = "gwas randomise study --posterior 0.75 --one-sided"
    data = shown(f"{asked} --priors priors.txt --save a.txt --json")
    ratios = sorted(float(eval(group["ratio"])) for group in data["groups"])
    assert [round(ratio, 6) for ratio in ratios] == [3, 297]
    assert round(data["epsilon"], 6) == 5.693732
    same = f"{asked} --priors strata.txt --strata list.txt --save b.txt"
    assert "nothing was spent now" in shown(same)
    assert "everyone's own prior" in " ".join(shown(f"{same.replace('b.txt', 'c.txt')}").split())
    wrong = {
        "priors.txt": text.replace("0.01", "0.8", 1),
        "short.txt": text.partition("\n")[2],
        "twice.txt": text + text.partition("\n")[0] + "\n",
        "words.txt": text.replace("0.01", "often", 1),
    }
    for name, content in wrong.items():
        (inside / name).write_text(content)
        code, out, err = run(f"{asked} --priors {name} --save x.txt --ledger new.db")
        assert code == 2 and not out and err.count("\n") == 1, err
    assert not (inside / "new.db").exists()


def test_correct_takes_what_plink_writes(inside, shown):
    shown(f"{DRAW} --one-sided --save a.txt")
    header = "#CHROM POS ID REF ALT A1 A1_FREQ TEST OBS_CT OR LOG(OR)_SE Z_STAT P"
    line = "1 {} rs{} G A A 0.3 ADD 700 {} 0.12 1 0.{}"
    lines = [line.format(i, i, 1 + i / 10, 9 - i) for i in range(1, 6)]
    (inside / "r.glm").write_text("\n".join([header, *lines]) + "\n")
    asked = "gwas correct r.glm --labels a.labels.json"
    data = shown(f"{asked} --save c.tsv --json")
    assert [row["SNP"] for row in data["snps"]] == [f"rs{i}" for i in range(1, 6)]
    for row in data["snps"]:
        assert row["OR"] > row["OR_LABELS"] and row["SE"] > row["SE_LABELS"]
        assert row["L95"] < row["OR"] < row["U95"]
    written = [each.split("\t") for each in (inside / "c.tsv").read_text().splitlines()]
    assert written[0][:5] == ["CHR", "SNP", "BP", "A1", "A2"] and len(written) == 6
    assert "times the variance" in shown(asked)


def test_relatives_in_a_release(inside, run, shown):
    rows = fam_rows(inside)
    rows[1][:4] = [rows[0][0], "child", rows[0][1], "0"]
    rows[0][4] = "1"
    write_fam(inside, rows)
    asked = (
        "gwas release study --snps rs1 --posterior 0.75 --prior 0.5 --relation genotype --dry-run"
    )
    card = shown(asked)
    assert "2 of these people have relatives in the study (1 family)" in card
    assert "1 parent and child" in card and "83.9%" in card
    safe = shown(f"{asked} --families protect")
    assert "75.0%" in safe and "so that the promise holds for them" in safe
    plain, noisy = (shown(f"{asked} --json{more}") for more in ("", " --families protect"))
    assert plain["noise_scale"] * 1.4 < noisy["noise_scale"]
    first = shown(f"{asked} --families first --json")
    assert first["cases"] + first["controls"] == 699
    (inside / "k.kin0").write_text(
        "#FID1 IID1 FID2 IID2 KINSHIP\n{} {} {} {} 0.4\n".format(*rows[5][:2], *rows[9][:2])
    )
    twins = shown(f"{asked} --kinship k.kin0")
    assert "1 twins" in twins and "90.0%" in twins
    code, _, err = run(f"{asked.replace(' --dry-run', '')}")
    assert code == 0 and "relatives" in err


def test_a_beacon_looks_ahead_and_answers(inside, run, shown):
    ahead = "gwas beacon --people 1000 --known 20 --posterior 0.75 --prior 0.5"
    data = shown(f"{ahead} --frequency 0.001 --json")
    assert data["alleles"][0]["yes_answers"] == 7 and 0.82 < data["alleles"][0]["belief"] < 0.83
    assert "1,000 people" in shown(ahead)
    names = [line.split() for line in (inside / "study.bim").read_text().splitlines()]
    public = "".join(f"{row[1]} {row[4]} 0.2 0.3\n" for row in names)
    (inside / "f.txt").write_text(public)
    asked = (
        f"gwas beacon study --posterior 0.75 --prior 0.5 --frequencies f.txt --ask {names[0][1]}"
    )
    answer = shown(f"{asked}:{names[0][4]} --json")
    assert answer["answers"][0]["present"] and answer["left"] > 1.09
    assert "asked before" in shown(f"{asked}:{names[0][4]}")
    code, _, err = run(f"{asked}:{names[0][5]}")
    assert code == 2 and "no public frequency" in err


WRONG_CALLS = {
    f"{DRAW} --save a.pdf": "--save",
    f"{DRAW} --save no/a.txt": "--save",
    f"{DRAW} --save a.txt --coding 2/1": "--coding",
    f"{DRAW} --save a.txt --one-sided --size-known": "--one-sided",
    "gwas randomise study --epsilon 1 --one-sided --save a.txt": "target",
    "gwas randomise study --posterior 0.5 --prior 0.5 --save a.txt": "--posterior",
    f"{DRAW} --save a.txt --priors p.txt": "--prior",
    f"{DRAW} --save a.txt --strata p.txt": "--strata",
    f"{DRAW} --save a.txt --phenotypes twice.txt": "twice.txt",
    f"{DRAW} --save a.txt --phenotypes lonely.txt": "cases in lonely.txt",
    "gwas correct empty.txt --labels p.txt": "p.txt",
    "gwas correct p.txt --labels no.json": "",
    "gwas beacon --posterior 0.75 --prior 0.5": "--people",
    "gwas beacon study --posterior 0.75 --prior 0.5": "--ask",
    "gwas beacon study --posterior 0.75 --prior 0.5 --ask x --frequencies p.txt": "--ask",
    "gwas beacon --people 10 --known 10 --posterior 0.75 --prior 0.5": "--known",
    "gwas beacon --people 10 --frequency 2 --posterior 0.75 --prior 0.5": "--frequency",
    "gwas release study --top 1 --gamma 2 --relation label-swap --families protect": "--families",
    "gwas release study --top 1 --gamma 2 --relation genotype --families all": "--families",
    "gwas attack study --reference study": "--reference",
    "gwas attack study --published p.txt": "p.txt",
}


def test_wrong_calls_spend_nothing(inside, refused_at):
    rows = fam_rows(inside)
    lines = [f"{row[0]} {row[1]} {row[5]}\n" for row in rows]
    (inside / "twice.txt").write_text("".join([*lines, lines[0]]))
    (inside / "lonely.txt").write_text(
        "".join([lines[0], *(each[:-2] + "1\n" for each in lines[1:])])
    )
    (inside / "p.txt").write_text("x y z\n")
    for line, place in WRONG_CALLS.items():
        found = refused_at(line)
        assert found == place or not place, (line, found)
    for parents in (["i", "i"], [rows[3][1], "0"]):
        broken = [list(row) for row in rows]
        broken[3][2:4] = parents
        write_fam(inside, broken)
        assert refused_at(f"{DRAW} --save a.txt") == "study.fam"
    assert not list(inside.glob("*.ledger*")) and not (inside / "a.txt").exists()


@pytest.mark.parametrize(
    "line",
    [
        "gwas release study --top 1 --gamma 2 --prior 0.5 --relation label-swap --request one",
        f"{DRAW} --save drawn.txt",
    ],
)
def test_a_person_at_a_terminal_is_asked_before_a_study_pays(run, inside, monkeypatch, line):
    """With what it spends for good; a no leaves nothing behind, and what is paid is not asked."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for said, code in ((False, 1), (True, 0)):
        monkeypatch.setattr("typer.confirm", lambda *_, said=said, **__: said)
        assert not (inside / "study.ledger").exists()
        got, out, err = run(line)
        assert got == code and "will spend ε = 1.09861 of ε = 1.09861" in err
        assert "sure that a person is a case" in err and "in the data becomes" not in err
        assert bool(out) is said and ("nothing was spent" in err) is not said
    (inside / "drawn.txt").unlink(missing_ok=True)
    (inside / "drawn.labels.json").unlink(missing_ok=True)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: pytest.fail("it was paid for"))
    assert run(line)[0] == 0
