"""Tables of other programs: read by their headers, corrected, attacked; beside plink2 itself."""

from __future__ import annotations

import gzip
import math
import subprocess
from fractions import Fraction

import numpy as np
import pytest

import whosin as wi
from environments import require_program
from refusals import refused
from whosin import gwas
from whosin.gwas.attack import GenotypePanel, attack_tables
from whosin.gwas.bed import write_bed
from whosin.gwas.labels import LabelDraw, LabelGroup, LabelledPeople, plan_labels, randomise_labels
from whosin.gwas.people import Snps
from whosin.gwas.results import (
    ResultsTable,
    check_same_snps,
    correct_results,
    match_snps,
    read_results,
)
from whosin.report.gwas import exact_statistics

PLINK2 = """\
#CHROM POS ID REF ALT A1 A1_FREQ A1_CASE_FREQ A1_CTRL_FREQ FIRTH? TEST OBS_CT OR LOG(OR)_SE Z_STAT P
1 10 rs1 G A A 0.3 0.32 0.28 N ADD 4000 1.2 0.05 3.6 3e-4
1 10 rs1 G A A 0.3 0.32 0.28 N AGE 4000 1.0 0.05 0 1
2 20 rs2 C T C 0.1 NA NA N ADD 4000 NA NA NA NA
"""
REGENIE = (
    "CHROM GENPOS ID ALLELE0 ALLELE1 A1FREQ A1FREQ_CASES A1FREQ_CONTROLS INFO N TEST BETA SE CHISQ "
    "LOG10P EXTRA\n1 10 rs1 G A 0.3 0.32 0.28 1 4000 ADD 0.18232155 0.05 13 3.5228787 NA\n"
)
SAIGE = (
    "CHR POS MarkerID Allele1 Allele2 AC_Allele2 AF_Allele2 MissingRate BETA SE Tstat var p.value "
    "AF_case AF_ctrl N_case N_ctrl\n"
    "1 10 rs1 G A 2400 0.3 0 0.18232155 0.05 1 1 3e-4 0.32 0.28 2000 2000\n"
)
ASSOC = (
    "CHR SNP BP A1 F_A F_U A2 CHISQ P OR SE L95 U95\n"
    "1 rs1 10 A 0.32 0.28 G 13 3e-4 1.2 0.05 1 1.3\n"
)


@pytest.mark.parametrize(
    ("text", "program"),
    [(PLINK2, "plink2"), (REGENIE, "REGENIE"), (SAIGE, "SAIGE"), (ASSOC, "PLINK 1.9")],
)
@pytest.mark.parametrize("packed", [False, True])
def test_programs_are_known_by_their_columns(tmp_path, text, program, packed):
    path = tmp_path / ("x.gz" if packed else "x.txt")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    table = read_results(path)
    assert table.program == program and table.snps.name[0] == "rs1"
    assert (table.snps.a1[0], table.snps.a2[0]) == ("A", "G")
    found = (table.case[0], table.control[0], table.beta[0], table.error[0], table.p[0])
    assert np.allclose(found, (0.32, 0.28, math.log(1.2), 0.05, 3e-4))
    if program == "plink2":
        assert len(table.snps) == 2 and table.snps.a2[1] == "T" and np.isnan(table.beta[1])


def test_tables_without_the_needed_columns_are_refused(tmp_path):
    def written(text):
        (tmp_path / "x.txt").write_text(text)
        return tmp_path / "x.txt"

    draw = LabelDraw("one-sided", (LabelGroup(Fraction(3), 4000, 2600),))
    for text in ("", "a b\n1 2\n", PLINK2.replace("ADD", "DOM"), PLINK2.replace(" NA\n", "\n"),
                 PLINK2.replace("10", "ten"), PLINK2.replace("Z_STAT P", "Z_STAT Q")):  # fmt: skip
        with pytest.raises(wi.errors.InvalidInput):
            read_results(written(text))
    bare = PLINK2.replace("A1_FREQ", "X").replace("A1_CASE_FREQ", "Y").replace("A1_CTRL_FREQ", "Z")
    for text in (bare, PLINK2.replace("LOG(OR)_SE", "W"), PLINK2.replace(" OR ", " V ")):
        with refused("x.txt", hint=True):
            correct_results(read_results(written(text)), draw)
    (tmp_path / "y.gz").write_bytes(b"\x1f\x8bno")
    with refused("y.gz"):
        read_results(tmp_path / "y.gz")


def test_pooled_frequencies_are_enough(tmp_path):
    """With the case share of the draw; the same as with frequencies of both groups."""
    case, control, share = 0.32, 0.28, 0.65
    odds = case * (1 - control) / (control * (1 - case))
    pooled = share * case + (1 - share) * control
    draw = LabelDraw("one-sided", (LabelGroup(Fraction(3), 4000, 2600),))
    made = []
    for names in ("A1_FREQ A1_CASE_FREQ A1_CTRL_FREQ", "A1_FREQ X Y"):
        header = PLINK2.splitlines()[0].replace("A1_FREQ A1_CASE_FREQ A1_CTRL_FREQ", names)
        line = f"1 10 rs1 G A A {pooled} {case} {control} N ADD 4000 {odds} 0.05 3 1e-3"
        (tmp_path / "x.txt").write_text(f"{header}\n{line}\n")
        made.append(correct_results(read_results(tmp_path / "x.txt"), draw))
    assert np.allclose(made[0].beta, made[1].beta) and np.allclose(made[0].error, made[1].error)
    purity = draw.purity()
    expected = (case - (1 - purity.among_cases) * control) / purity.among_cases
    assert np.allclose(made[0].f_a, expected) and np.allclose(made[0].f_u, control)


def test_snps_are_matched_by_name_or_place_and_alleles():
    def snps(*rows):
        chromosome, name, position, a1, a2 = map(list, zip(*rows, strict=True))
        return Snps(chromosome, name, np.array(position), a1, a2)

    table = snps(("1", "rs1", 1, "A", "G"), ("chr1", ".", 2, "T", ""), ("1", "rs3", 3, "A", "C"),
                 ("1", "rs4", 4, "A", "G"))  # fmt: skip
    ours = snps(("1", "rs4", 9, "G", "A"), ("1", "x", 2, "T", "C"), ("1", "rs1", 7, "A", "G"),
                ("1", "rs3", 3, "A", "T"))  # fmt: skip
    first, second, turned = match_snps(table, ours)
    assert first.tolist() == [0, 1, 3] and second.tolist() == [2, 1, 0]
    assert turned.tolist() == [False, False, True]


def plink(program, path, *words):
    command = [program, "--bfile", str(path), "--out", str(path), *words]
    subprocess.run(command, check=True, capture_output=True)


def test_huge_epsilon_gives_the_results_of_true_labels(tmp_path):
    """plink2 reads the file, in either coding, and at ε = 30 nothing is corrected."""
    require_program("plink2")
    path = gwas.Simulation(300, 300, 60, 3, odds_ratio=2).write(tmp_path / "s")
    people = LabelledPeople.read(path)
    plan = plan_labels(wi.Epsilon(30), wi.families.Independent())
    with wi.Ledger(tmp_path / "l.db") as ledger:
        made = randomise_labels(people, plan, ledger, "s")
    wanted = None
    for coding, more in (("1/2", ()), ("0/1", ("--1",))):
        made.write(tmp_path / "p.txt", coding)
        asked = ("--glm", "allow-no-covars", "cols=+a1freq,+a1freqcc", *more)
        plink("plink2", path, "--pheno", str(tmp_path / "p.txt"), *asked)
        found = correct_results(
            read_results(tmp_path / "s.PHENO.glm.logistic.hybrid"),
            LabelDraw.load(tmp_path / "p.labels.json"),
        )
        if wanted is None:
            plink("plink2", path, "--glm", "allow-no-covars", "cols=+a1freq,+a1freqcc")
            wanted = read_results(tmp_path / "s.PHENO1.glm.logistic.hybrid")
        assert np.allclose(found.beta, wanted.beta, atol=1e-6)
        assert np.allclose(found.error, wanted.error, rtol=1e-4)


def test_plink_tables_at_huge_epsilon(tmp_path):
    require_program("plink1.9")
    path = gwas.Simulation(300, 300, 60, 3, odds_ratio=2).write(tmp_path / "s")
    people = LabelledPeople.read(path)
    plan = plan_labels(wi.Epsilon(30), wi.families.Independent())
    with wi.Ledger(tmp_path / "l.db") as ledger:
        made = randomise_labels(people, plan, ledger, "s")
    made.write(tmp_path / "p.txt")
    asked = ("--assoc", "--ci", "0.95", "--keep-allele-order", "--allow-no-sex")
    plink("plink1.9", path, "--pheno", str(tmp_path / "p.txt"), *asked)
    table = read_results(tmp_path / "s.assoc")
    found = correct_results(table, made.draw)
    study = gwas.read_study(path)
    assert np.allclose(np.exp(found.beta), exact_statistics(study)[4], rtol=1e-3)
    assert np.allclose(found.error, table.error, rtol=1e-3)


def study_tables(people, snps, phenotypes, seed):
    """Genomes of people, half of them in a study, and its tables of random phenotypes."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.5, snps)
    genomes = rng.binomial(2, p[:, None], (snps, 2 * people)).astype(np.int8)
    inside = genomes[:, :people].astype(float)
    x = (inside - inside.mean(axis=1, keepdims=True)) / inside.std(axis=1, keepdims=True)
    names = Snps(["1"] * snps, [f"rs{i}" for i in range(snps)], np.arange(1, snps + 1),
                 ["A"] * snps, ["G"] * snps)  # fmt: skip
    empty = np.full(snps, np.nan)
    tables = []
    for number in range(phenotypes):
        y = rng.normal(size=people)
        z = x @ (y - y.mean()) / y.std() / math.sqrt(people)
        given = (empty, empty, empty, z, np.ones(snps), empty)
        tables.append(ResultsTable("plink2", f"t{number}", names, *given))
    return genomes, names, tables


def write_panel(path, genomes, names, inside):
    write_bed(path, [genomes])
    lines = zip(*names.columns(), strict=True)
    path.with_name(path.name + ".bim").write_text(
        "".join(f"{c} {n} 0 {at} {a1} {a2}\n" for c, n, at, a1, a2 in lines)
    )
    path.with_name(path.name + ".fam").write_text(
        "".join(f"f{i} i{i} 0 0 1 {2 if i < inside else 1}\n" for i in range(genomes.shape[1]))
    )


@pytest.mark.parametrize(("phenotypes", "least", "most"), [(2, 0.2, 0.6), (40, 0.95, 1.0)])
def test_several_phenotypes_identify_people(tmp_path, phenotypes, least, most):
    """Of 200 people, whatever the phenotypes are: 2 tables show some, 40 (R/N = 0.2) nearly
    everyone. Another study's tables show nobody."""
    genomes, names, tables = study_tables(200, 600, phenotypes, 3)
    write_panel(tmp_path / "p", genomes, names, 200)
    panel = GenotypePanel.of(tmp_path / "p")
    [point] = attack_tables(panel, tables, rate=0.05)
    assert point.statistic == "regression" and least <= point.power <= most
    strangers = study_tables(200, 600, phenotypes, 4)[2]
    [other] = attack_tables(panel, strangers, rate=0.05)
    assert other.power < 0.2


def test_published_frequencies_are_attacked(tmp_path):
    """As the study's own are, with the reference from half of the controls or from elsewhere; and
    whichever allele the table counts."""
    made = gwas.Simulation(100, 300, 1500, 0, seed=2)
    path = made.write(tmp_path / "s")
    study = gwas.read_study(path)
    case, control = exact_statistics(study)[:2]
    snps, empty = study.snps, np.full(len(study.snps), np.nan)
    turned = Snps(snps.chromosome, snps.name, snps.position, snps.a2, snps.a1)
    panel = GenotypePanel.of(path)
    gwas.Simulation(150, 150, 1500, 0, seed=2).write(tmp_path / "ref")
    reference = tmp_path / "ref"
    tables = [
        ResultsTable("SAIGE", "x", snps, case, control, empty, None, None, empty),
        ResultsTable("SAIGE", "x", turned, 1 - case, 1 - control, empty, None, None, empty),
    ]
    first, second = (attack_tables(panel, [each], [20, 1500], rate=0.02) for each in tables)
    assert [(p.recognised, p.mistaken) for p in first] == [
        (p.recognised, p.mistaken) for p in second
    ]
    assert {p.statistic for p in first} == {"homer", "likelihood-ratio"}
    assert [p.power > 0.5 for p in first if p.statistic == "likelihood-ratio"] == [False, True]
    [_, ratio] = attack_tables(panel, tables[:1], reference=reference, rate=0.02)
    assert ratio.outsiders == 300 and ratio.power > 0.5
    with pytest.raises(wi.errors.InvalidInput):
        check_same_snps(tables)
    with refused("controls"):
        attack_tables(panel, tables[:1], rate=0.001)
