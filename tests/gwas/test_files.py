"""PLINK 2's files, lists of people and SNPs, X: against plink1.9, plink2 and loops."""

from __future__ import annotations

import hashlib
import random
import shutil
import subprocess
from dataclasses import replace
from datetime import date
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

import whosin as wi
from amounts import cases
from environments import require_program
from isolation_tasks import crash
from refusals import refused
from whosin import binary_readers, gwas
from whosin.errors import BudgetRefused, InvalidInput, MissingExtra, WhosinError
from whosin.gwas import StudyFilter, association, bed, pgen, release, scores, study
from whosin.gwas.people import read_frequencies, read_people, read_person_words
from whosin.report import gwas as report_gwas
from whosin.report import summary_statistics

PEOPLE = 60


def run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


def write_study(
    path: Path, copies: np.ndarray, chromosomes: list[str], seed: int = 0
) -> np.ndarray:
    """PLINK files of copies of A1 (SNPs × people, −1 missing); labels and sexes at random."""
    rng = np.random.default_rng(seed)
    people = copies.shape[1]
    status = rng.choice([2, 1, -9], people, p=[0.4, 0.5, 0.1])
    status[:4] = [2, 2, 1, 1]
    bed.write_bed(path, [copies])
    lines = [f"{c}\trs{i}\t0\t{3_000_000 + i}\tA\tC\n" for i, c in enumerate(chromosomes)]
    bed.sibling_path(path, ".bim").write_text("".join(lines))
    sexes = rng.choice([1, 2], people)
    rows = zip(range(people), sexes, status, strict=True)
    bed.sibling_path(path, ".fam").write_text(
        "".join(f"f{i} p{i} 0 0 {sex} {label}\n" for i, sex, label in rows)
    )
    return status


def random_copies(snps: int, people: int = PEOPLE, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    copies = rng.binomial(2, rng.uniform(0, 1, (snps, 1)), (snps, people)).astype(np.int8)
    copies[rng.random(copies.shape) < 0.06] = -1
    copies[0], copies[1], copies[2] = 0, 2, -1
    return copies


@pytest.fixture
def both(tmp_path):
    """A study as .bed and, by plink2, as .pgen under another name."""
    pytest.importorskip("pgenlib", reason="the extra 'pgen' is not installed")
    require_program("plink2")
    chromosomes = ["1"] * 20 + ["22"] * 10 + ["X"] * 15 + ["Y"] * 3 + ["MT"] * 2
    write_study(tmp_path / "s", random_copies(50), chromosomes)
    run("plink2", "--bfile", tmp_path / "s", "--make-pgen", "--out", tmp_path / "two")
    return tmp_path


def same(first: study.Study, second: study.Study) -> bool:
    keys = ("cases", "controls", "unlabelled", "males", "people")
    return (
        first.counts.tolist() == second.counts.tolist()
        and first.genotyped().tolist() == second.genotyped().tolist()
        and first.snps.columns() == second.snps.columns()
        and first.alleles().tolist() == second.alleles().tolist()
        and all(getattr(first, key) == getattr(second, key) for key in keys)
    )


def test_a_pgen_is_counted_like_its_bed(both):
    """Also by its other endings, in several processes, with compressed variants, and beside .bim
    and .fam."""
    wanted = gwas.read_study(both / "s")
    assert wanted.left_out == 5 and wanted.unlabelled and wanted.males
    told: list[tuple[int, int]] = []
    found = gwas.read_study(both / "two.psam", processes=2, progress=lambda *at: told.append(at))
    assert same(found, wanted)
    assert told[-1] == (50, 50) and len(told) >= 2
    run("plink2", "--bfile", both / "s", "--make-pgen", "vzs", "--out", both / "packed")
    assert not (both / "packed.pvar").exists()
    assert same(gwas.read_study(both / "packed"), wanted)
    shutil.copy(both / "two.pgen", both / "mixed.pgen")
    for ending in (".bim", ".fam"):
        shutil.copy(both / f"s{ending}", both / f"mixed{ending}")
    assert same(gwas.read_study(both / "mixed"), wanted)


@pytest.mark.parametrize("people", [61, 64])
def test_plain_records_are_counted_like_others(tmp_path, people, monkeypatch):
    """A file of records of two bits a person is counted by our kernel, one that has compressed
    records by pgenlib; each way gives the same, and a damaged index leaves all to pgenlib."""
    pytest.importorskip("pgenlib", reason="the extra 'pgen' is not installed")
    require_program("plink2")
    copies = np.random.default_rng(people).integers(-1, 3, (90, people)).astype(np.int8)
    copies[40:60] = 0
    copies[40:60, :3] = 1  # rare: a list of the people who have it
    write_study(tmp_path / "s", copies, ["4"] * 90, seed=people)
    run("plink2", "--bfile", tmp_path / "s", "--make-pgen", "--out", tmp_path / "two")
    starts = pgen.plain_records(tmp_path / "two.pgen", people, 90)
    assert (starts[:40] >= 0).all() and (starts[40:60] < 0).all() and (starts[60:] >= 0).all()
    wanted = gwas.read_study(tmp_path / "s")
    assert same(gwas.read_study(tmp_path / "two.pgen"), wanted)
    assert (pgen.plain_records(tmp_path / "two.pgen", people + 1, 90) < 0).all()
    whole = (tmp_path / "two.pgen").read_bytes()
    for damaged_file in (whole[:-1], whole[:12], whole[:16] + b"\1" + whole[17:], whole + b"\0"):
        (tmp_path / "d.pgen").write_bytes(damaged_file)
        assert (pgen.plain_records(tmp_path / "d.pgen", people, 90) < 0).all()
    kept = np.r_[:40, 60:90]
    write_study(tmp_path / "p", copies[kept], ["4"] * 70, seed=people)
    run("plink2", "--bfile", tmp_path / "p", "--make-pgen", "--out", tmp_path / "plain")
    assert (pgen.plain_records(tmp_path / "plain.pgen", people, 70) >= 0).all()
    with monkeypatch.context() as patched:
        patched.setattr(pgen.Pgen, "_run", None)
        found = gwas.read_study(tmp_path / "plain.pgen")
    assert found.counts.tolist() == wanted.counts[kept].tolist()


def test_a_pgen_is_counted_like_plink2_counts(both):
    for label, columns in ((2, slice(0, 3)), (1, slice(3, 6))):
        out = both / f"group{label}"
        options = ("--pfile", both / "two", "--geno-counts", "--autosome", "--out", out)
        run("plink2", *options, "--keep-if", f"PHENO1=={label}", "--keep-allele-order")
        rows = [line.split() for line in out.with_suffix(".gcount").read_text().splitlines()]
        wanted = [list(map(int, row[4:7])) for row in rows[1:]]
        assert gwas.read_study(both / "two").counts[:30, columns].tolist() == wanted


MANY_ALLELES = """##fileformat=VCFv4.2
##contig=<ID=1>
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ta\tb\tc\td\te
1\t10\trs1\tG\tA\t.\t.\t.\tGT\t0|0\t0|1\t1|1\t1|1\t./.
1\t20\trs2\tG\tA,C\t.\t.\t.\tGT\t0/0\t0/1\t1/2\t1|1\t0/0
1\t30\t.\tT\tC\t.\t.\t.\tGT\t1/1\t./.\t0|0\t1|0\t1/1
"""


def test_multiallelic_and_phased_variants(tmp_path):
    """Several alternate alleles are left out, and phase is none of our business."""
    pytest.importorskip("pgenlib", reason="the extra 'pgen' is not installed")
    require_program("plink2")
    (tmp_path / "s.vcf").write_text(MANY_ALLELES)
    (tmp_path / "labels").write_text("#IID\tsick\na\t2\nb\t2\nc\t1\nd\t1\ne\t1\n")
    run("plink2", "--vcf", tmp_path / "s.vcf", "--out", tmp_path / "s", "--make-pgen")
    found = gwas.read_study(tmp_path / "s.pgen", tmp_path / "labels")
    assert found.snps.name == ["rs1", "1:30"] and found.left_out == 1
    assert (found.snps.a1, found.snps.a2) == (["A", "C"], ["G", "T"])
    assert found.counts.tolist() == [[1, 1, 0, 0, 0, 2], [0, 0, 1, 1, 1, 1]]
    assert (found.cases, found.controls) == (2, 3)
    opened, snps, _ = study.open_genotypes(tmp_path / "s.pgen", tmp_path / "labels")
    assert isinstance(opened, pgen.Pgen) and len(snps) == opened.snps == 2
    assert opened.genotypes(np.array([1, 0])).tolist() == [[2, -1, 0, 1, 2], [0, 1, 2, 2, -1]]
    assert opened.genotypes(np.array([1]), np.array([3, 0])).tolist() == [[1, 2]]


def test_dosages_of_a_pgen(tmp_path):
    """As they are stored, hard calls where there are none; counts are those of hard calls."""
    pgenlib = pytest.importorskip("pgenlib", reason="the extra 'pgen' is not installed")
    writer = pgenlib.PgenWriter(
        str(tmp_path / "s.pgen").encode(), 5, variant_ct=2, dosage_present=True
    )
    writer.append_dosages(np.array([0.0625, 1, 1.9375, 0.5, -9]))
    writer.append_biallelic(np.array([0, 1, 2, 2, -9], dtype=np.int8))
    writer.close()
    (tmp_path / "s.pvar").write_text("#CHROM\tPOS\tID\tREF\tALT\n1\t1\ta\tA\tC\n1\t2\tb\tA\tC\n")
    (tmp_path / "s.psam").write_text("#IID\tS\na\t2\nb\t2\nc\t1\nd\t1\ne\t1\n")
    opened, _, _ = study.open_genotypes(tmp_path / "s", None)
    assert isinstance(opened, pgen.Pgen)
    dosages = opened.dosages(np.arange(2), np.arange(4))
    assert dosages.tolist() == [[0.0625, 1, 1.9375, 0.5], [0, 1, 2, 2]]
    assert np.isnan(opened.dosages(np.array([1, 0])))[:, 4].all()
    assert gwas.read_study(tmp_path / "s").counts.tolist()[0] == [1, 1, 0, 0, 0, 1]


def test_a_vcf_file_needs_no_index(tmp_path):
    pytest.importorskip("cyvcf2", reason="the extra 'vcf' is not installed")
    import gzip

    (tmp_path / "labels").write_text("a a 2\nb b 2\nc c 1\nd d 1\ne e 1\n")
    (tmp_path / "s.vcf.gz").write_bytes(gzip.compress(MANY_ALLELES.encode()))
    found = gwas.read_study(tmp_path / "s.vcf.gz", tmp_path / "labels")
    assert found.counts.tolist() == [[1, 1, 0, 0, 0, 2], [0, 0, 1, 1, 1, 1]]


def damaged(whole: bytes, chance: random.Random) -> bytes:
    found, kind = bytearray(whole), chance.randrange(3)
    place = chance.randrange(len(found))
    if kind == 0:
        for _ in range(4):
            found[chance.randrange(len(found))] = chance.randrange(256)
    elif kind == 1:
        del found[place : place + chance.randrange(1, 64)]
    else:
        found[place : place + 8] = b"\xff" * 8
    return bytes(found)


@cases(3, 300)
def test_damaged_pgen_files_are_one_sentence(both, capfd, count):
    """Or counts that fit the groups: a file has no checksum."""
    whole, chance = (both / "two.pgen").read_bytes(), random.Random(5)
    for _ in range(count):
        (both / "two.pgen").write_bytes(damaged(whole, chance))
        said = ""
        try:
            gwas.read_study(both / "two")
        except InvalidInput as error:
            said = f"{error.field}: {error}"
        assert not said or (said.startswith("two.pgen") and "\n" not in said and "p3" not in said)
    assert "".join(capfd.readouterr()) == ""


def test_wrong_companions_of_a_pgen_are_refused(both, monkeypatch):
    people = (both / "two.psam").read_text()
    (both / "two.psam").write_text("".join(people.splitlines(keepends=True)[:-1]))
    with refused("two.pgen"):
        gwas.read_study(both / "two")
    (both / "two.psam").write_text("#FID SEX\nf 1\n")
    with refused("two.psam"):
        gwas.read_study(both / "two")
    (both / "two.psam").write_text(people)
    whole = (both / "two.pvar").read_text()
    (both / "two.pvar").write_text("".join(whole.splitlines(keepends=True)[:-1]))
    with refused("two.pgen"):
        gwas.read_study(both / "two")
    (both / "two.pvar").write_text("nothing\n")
    with refused("two.pvar"):
        gwas.read_study(both / "two")
    (both / "two.pvar").write_text(whole)
    with monkeypatch.context() as patch, refused("two.pgen"):
        patch.setattr(binary_readers, "pgen_counts", crash)
        gwas.read_study(both / "two")
    with refused("processes"):
        gwas.read_study(both / "two", processes=0)
    (both / "two.pgen").write_bytes(b"BGEN" * 9)
    with refused("two.pgen"):
        gwas.read_study(both / "two")
    monkeypatch.setattr("whosin.errors.find_spec", lambda name: None)
    with pytest.raises(MissingExtra):
        gwas.read_study(both / "two")


PSAM = {
    "#IID": "##made by hand\n#IID\tSEX\tsick\na\tM\t2\nb\tF\t2\nc\tNA\t1\nd\t1\t1\ne\t2\tNA\n",
    "#FID": "#FID IID PAT MAT SEX sick other\nx a 0 0 1 2 7\nx b 0 0 2 2 7\ny c a 0 0 1 7\n"
    "z d 0 0 1 1 7\nw e 0 0 2 NA 7\n",
    "none": "x a 0 0 1 2\nx b 0 0 2 2\ny c a 0 0 1\nz d 0 0 1 1\nw e 0 0 2 -9\n",
}


@pytest.mark.parametrize("form", PSAM)
def test_people_of_a_psam(tmp_path, form):
    (tmp_path / "s.psam").write_text(PSAM[form])
    groups = read_people(tmp_path / "s.psam")[1]
    assert groups.cases.tolist() == [True, True, False, False, False]
    assert groups.controls.tolist() == [False, False, True, True, False]
    assert groups.males is not None
    assert groups.males.tolist() == [True, False, False, True, False]
    (tmp_path / "given").write_text("#IID sick\na 1\nb 1\nc 2\nd NA\ne 2\n")
    given = read_people(tmp_path / "s.psam", tmp_path / "given")[1]
    assert given.cases.tolist() == [False, False, True, False, True]


LISTS = {
    "FID IID": "f0 p0\nf1 p1\nf2 p2\nf3 p3\nf5\tp5\textra\n",
    "header": "#FID IID\nf0 p0\nf1 p1\nf2 p2\nf3 p3\nf5 p5\n",
    "IID": "p0\np1\np2\np3\np5\n",
    "#IID": "#IID SID\np0 1\np1 1\np2 1\np3 1\np5 1\nnobody 1\n",
}


@pytest.mark.parametrize("form", LISTS)
def test_people_are_kept_as_plink_keeps_them(tmp_path, form):
    require_program("plink1.9")
    copies = random_copies(30)
    status = write_study(tmp_path / "s", copies, ["3"] * 30)
    (tmp_path / "list").write_text(LISTS[form])
    found = gwas.read_study(tmp_path / "s", filters=StudyFilter(keep=tmp_path / "list"))
    kept = np.isin(np.arange(PEOPLE), [0, 1, 2, 3, 5])
    for label, columns in ((2, slice(0, 3)), (1, slice(3, 6))):
        part = copies[:, kept & (status == label)]
        wanted = [[int((row == g).sum()) for g in range(3)] for row in part]
        assert found.counts[:, columns].tolist() == wanted
    everybody = gwas.read_study(tmp_path / "s")
    assert found.genotyped().tolist() == everybody.genotyped().tolist()
    assert found.people == everybody.people == PEOPLE
    if form == "FID IID":
        out = tmp_path / "kept"
        options = ("--keep", tmp_path / "list", "--assoc", "--keep-allele-order", "--out", out)
        run("plink1.9", "--bfile", tmp_path / "s", *options)
        report_gwas.write_exact(found, tmp_path / "ours")
        assert_same_table(tmp_path / "ours", tmp_path / "kept.assoc")


def assert_same_table(ours: Path, plinks: Path) -> None:
    """Every word and number of PLINK's table."""
    mine = [line.split("\t") for line in ours.read_text().splitlines()]
    theirs = [line.split() for line in plinks.read_text().splitlines()]
    assert len(mine) == len(theirs) > 1
    for name in ("SNP", "F_A", "F_U", "CHISQ", "P", "OR"):
        column, wanted = mine[0].index(name), theirs[0].index(name)
        for row, exact in zip(mine[1:], theirs[1:], strict=True):
            value, other = row[column], exact[wanted]
            if name == "SNP" or "NA" in (value, other):
                assert value == other, (name, row, exact)
            else:
                assert np.isclose(float(value), float(other), rtol=6e-4, atol=1e-6), (row, exact)


@pytest.mark.parametrize("sexless", [False, True])
def test_x_is_counted_as_plink_counts_it(tmp_path, sexless):
    """Males have one allele, heterozygous males none, pseudo-autosomal SNPs are diploid."""
    require_program("plink1.9")
    chromosomes = ["1"] * 5 + ["23"] * 60 + ["25"] * 15
    copies = random_copies(80, seed=4)
    write_study(tmp_path / "s", copies, chromosomes, seed=4)
    if sexless:
        fam = tmp_path / "s.fam"
        rows = [line.split() for line in fam.read_text().splitlines()]
        for row in rows[::7]:
            row[4] = "0"
        fam.write_text("".join(" ".join(row) + "\n" for row in rows))
    allow = ["--allow-no-sex"] if sexless else []
    options = ("--assoc", "--keep-allele-order", *allow, "--out", tmp_path / "s")
    run("plink1.9", "--bfile", tmp_path / "s", *options)
    found = gwas.read_study(tmp_path / "s")
    report_gwas.write_exact(found, tmp_path / "ours")
    assert_same_table(tmp_path / "ours", tmp_path / "s.assoc")
    factors = found.variance_factors()
    share = found.males / (found.cases + found.controls)
    assert set(factors[5:65]) == {1 + share} and set(factors[:5]) == set(factors[65:]) == {1.0}
    study.write_table(found, tmp_path / "counts.tsv")
    again = gwas.read_study(tmp_path / "counts.tsv")
    assert again.alleles().tolist() == found.alleles().tolist()
    assert again.variance_factors().tolist() == factors.tolist()


def test_pseudo_autosomal_regions_by_position(tmp_path):
    copies = random_copies(6)
    write_study(tmp_path / "s", copies, ["X"] * 6)
    bim = tmp_path / "s.bim"
    places = [1, 2_781_479, 2_781_480, 155_701_382, 155_701_383, 156_000_000]
    bim.write_text("".join(f"X rs{at} 0 {at} A C\n" for at in places))
    found = gwas.read_study(tmp_path / "s", filters=StudyFilter(split_par="hg38"))
    assert (found.variance_factors() > 1).tolist() == [False, False, True, True, False, False]
    assert (gwas.read_study(tmp_path / "s").variance_factors() > 1).all()
    with refused("--split-par", hint=None, kind=InvalidInput):
        StudyFilter(split_par="hg7")


@cases(200, 5000)
def test_the_variance_factor_of_x_is_that_of_shuffled_labels(count):
    """A case is drawn at random from people of both sexes: the variance of copies, in whole, over
    that of a diploid SNP in Hardy–Weinberg proportions."""
    rng = np.random.default_rng(9)
    people, share, p = 400, 0.35, 0.3
    males = rng.random((count, people)) < share
    once, twice = rng.random((2, count, people)) < p
    copies = np.where(males, 2.0 * once, once + 1.0 * twice)
    ratio = copies.var(axis=1).mean() / (2 * p * (1 - p))
    assert abs(ratio - 1.35) < 0.02 and abs(ratio - 1.0) > 0.2


def test_snps_are_extracted_by_public_lists(tmp_path):
    write_study(tmp_path / "s", random_copies(30), ["3"] * 30)
    whole = gwas.read_study(tmp_path / "s")
    (tmp_path / "list").write_text("rs4 rs29\nrs7\nrs1000\n")
    found = gwas.read_study(tmp_path / "s", filters=StudyFilter(extract=tmp_path / "list"))
    assert found.snps.name == ["rs4", "rs7", "rs29"]
    assert found.counts.tolist() == whole.counts[[4, 7, 29]].tolist()
    assert found.origin is not None and same(found.origin, whole)
    (tmp_path / "f.afreq").write_text(
        "#CHROM\tID\tREF\tALT\tALT_FREQS\tOBS_CT\n"
        "3\trs4\tC\tA\t0.97\t9\n3\trs5\tC\tA\t0.1\t9\n3\trs6\tC\tA,T\t0.1,0.2\t9\n3\trs7\tC\tA\tnan\t0\n"
    )
    rarer = StudyFilter(maf="0.03", frequencies=tmp_path / "f.afreq")
    assert gwas.read_study(tmp_path / "s", filters=rarer).snps.name == ["rs4", "rs5"]
    both = StudyFilter(extract=tmp_path / "list", maf=0.03, frequencies=tmp_path / "f.afreq")
    assert gwas.read_study(tmp_path / "s", filters=both).snps.name == ["rs4"]
    study.write_table(whole, tmp_path / "counts.tsv")
    assert gwas.read_study(tmp_path / "counts.tsv", filters=both).snps.name == ["rs4"]


def test_frequencies_by_plink_are_read(both):
    run("plink1.9", "--bfile", both / "s", "--freq", "--out", both / "old", "--keep-allele-order")
    run("plink2", "--pfile", both / "two", "--freq", "--out", both / "new")
    old, new = read_frequencies(both / "old.frq"), read_frequencies(both / "new.afreq")
    shared = [f"rs{i}" for i in range(30)]
    assert all(np.isclose(old[name], new[name], atol=1e-4) for name in shared if name in old)
    assert len(old) > 40 and len(new) > 40 and max(old.values()) <= 0.5


def test_lists_that_do_not_fit_are_refused(tmp_path):
    write_study(tmp_path / "s", random_copies(9), ["3"] * 9)
    (tmp_path / "list").write_text("nobody nothing\n")
    with refused("--keep", hint=True):
        gwas.read_study(tmp_path / "s", filters=StudyFilter(keep=tmp_path / "list"))
    with refused("--extract"):
        gwas.read_study(tmp_path / "s", filters=StudyFilter(extract=tmp_path / "list"))
    with refused("--maf", hint=True):
        StudyFilter(maf=0.01)
    with refused("--maf"):
        StudyFilter(maf=0.6, frequencies="x")
    with refused("--read-freq"):
        StudyFilter(frequencies="x")
    (tmp_path / "odd").write_text("f0 p0\nf1\n")
    with refused("odd"):
        read_person_words(tmp_path / "odd")
    for text in ("SNP A1\nrs1 A\n", "SNP MAF\nrs1 7\n"):
        (tmp_path / "f.frq").write_text(text)
        with refused("f.frq"):
            read_frequencies(tmp_path / "f.frq")
    (tmp_path / "c.tsv").write_text("")
    with refused("--keep"):
        gwas.read_study(tmp_path / "c.tsv", filters=StudyFilter(keep=tmp_path / "list"))


@pytest.mark.parametrize("bad", ["5 -1 -1 -1", "0 99 0 0", "-1 -1 -1 0"])
def test_males_beyond_the_counts_are_refused(tmp_path, bad):
    names = " ".join((*study.PUBLIC_COLUMNS, *study.GENOTYPE_COUNT_COLUMNS, *study.HAPLOID_COLUMNS))
    text = f"# cases 3 controls 3 males 2\n{names}\nX rs 1 A C 1 1 1 1 1 1 {bad}\n"
    (tmp_path / "t.tsv").write_text(text)
    with refused("t.tsv"):
        gwas.read_study(tmp_path / "t.tsv")


def question(relation: str, score: str = "distance", **more: object) -> gwas.Question:
    return gwas.Question(1, relation, score, numbers="counts", threshold=2, **more)  # type: ignore[arg-type]


def plan() -> wi.Plan:
    return wi.calibrate(wi.Gamma(2), wi.families.FixedSize("0.5", "0.5"))


def x_table(people: list[tuple[int, bool]]) -> list[int]:
    """Counts of one SNP on X from (copies, case), copies −1 missing."""
    return [
        sum(1 for g, c in people if c == case and g == k)
        for case in (True, False)
        for k in range(3)
    ]


@pytest.mark.parametrize("score", ["distance", "chi2"])
@pytest.mark.parametrize("relation", ["genotype", "label-swap"])
def test_scores_on_x_keep_their_sensitivity(relation, score):
    """All studies of two cases and three controls, three of them male, and all their neighbours."""
    sexes = (True, False, True, True, False)
    choices = [(0, 2, -1) if male else (0, 1, 2, -1) for male in sexes]
    labels = sorted(set(permutations((True, True, False, False, False))))
    worlds = {
        (genome, label): x_table(list(zip(genome, label, strict=True)))
        for genome in product(*choices)
        for label in labels[:: 1 if relation == "label-swap" else len(labels)]
    }
    counts = np.array(list(worlds.values()))
    snps = gwas.Snps(
        ["X"] * len(counts),
        [f"rs{i}" for i in range(len(counts))],
        np.arange(len(counts)) + 1,
        ["A"] * len(counts),
        ["C"] * len(counts),
    )
    made = gwas.Study(snps, counts, 2, 3, haploid=np.zeros((len(counts), 4), np.int64), males=3)
    estimate = gwas.estimate_study_cost(plan(), question(relation, score), made)
    factors = made.variance_factors()
    assert set(factors) == {1.6}
    values = dict(zip(worlds, release.score_study(estimate, made).tolist(), strict=True))
    plain = release.score_study(estimate, replace(made, haploid=None))
    assert list(values.values()) != plain.tolist()
    most = scores.score_sensitivity(score, 2, 3, relation)
    seen = 0
    for (genome, label), value in values.items():
        if relation == "label-swap":
            others = [
                (genome, other)
                for other in labels
                if sum(a != b for a, b in zip(label, other, strict=True)) == 2
            ]
        else:
            others = [
                ((*genome[:i], g, *genome[i + 1 :]), label) for i in range(5) for g in choices[i]
            ]
        seen = max(seen, *(abs(value - values[other]) for other in others))
    assert 0 < seen <= most


def test_p_values_on_x_are_honest():
    """Of SNPs without an association one in twenty has P < 0.05; with the variance of a diploid
    SNP it would be nearly one in ten."""
    rng = np.random.default_rng(8)
    snps, size, share = 4_000, 150, 0.6
    male = rng.random((snps, 2, size)) < share
    once, twice = rng.random((2, snps, 2, size)) < 0.3
    copies = np.where(male, 2 * once, once + 1 * twice).sum(axis=2)
    for inflation, low, high in ((1 + share, 0.042, 0.058), (1.0, 0.1, 0.2)):
        found = association.estimate_association(
            copies[:, 0], copies[:, 1], size, size, inflation=inflation
        )
        assert low < (found.p < 0.05).mean() < high
        z = np.log(found.odds_ratio) / found.se
        assert low < (np.abs(z) > 1.96).mean() < high


@pytest.fixture
def ledger(tmp_path):
    with wi.Ledger(tmp_path / "ledger.db") as opened:
        yield opened


def test_parts_of_a_study_share_its_budget(tmp_path, ledger):
    """Other SNPs of the same file, under whatever name, are paid from the same budget; and a
    request is never answered with what another list was told."""
    write_study(tmp_path / "s", random_copies(30), ["3"] * 30)
    for number, names in enumerate(("rs4 rs29 rs7", "rs8 rs9 rs10")):
        (tmp_path / f"list{number}").write_text(names)
    first, second = (
        gwas.read_study(tmp_path / "s", filters=StudyFilter(extract=tmp_path / f"list{number}"))
        for number in (0, 1)
    )
    asked = question("genotype")
    made = gwas.publish_study(first, plan(), asked, ledger, "s", "table")
    assert made.snps.name[0] in ("rs4", "rs7", "rs29")
    again = gwas.publish_study(first, plan(), asked, ledger, "s", "table")
    assert again.numbers.tolist() == made.numbers.tolist()
    with pytest.raises(WhosinError):
        gwas.publish_study(second, plan(), asked, ledger, "s", "table")
    with pytest.raises(BudgetRefused, match="'s:genotype' has 0 left"):
        gwas.publish_study(second, plan(), asked, ledger, "other name")


def test_an_ssf_file(tmp_path, ledger):
    """The GWAS Catalog's columns in its order, by position, and metadata that say what is noisy."""
    yaml = pytest.importorskip("yaml")
    chromosomes = ["X"] * 5 + ["2"] * 20 + ["PAR1"] * 5
    write_study(tmp_path / "s", random_copies(30), chromosomes)
    bim = tmp_path / "s.bim"
    bim.write_text(bim.read_text().replace("rs20\t0\t3000020\tA", "own\t0\t3000020\t0"))
    found = gwas.read_study(tmp_path / "s")
    names = ("rs25", "rs3", "own", "rs12")
    asked = gwas.Question(None, "genotype", named=names)
    made = gwas.publish_study(found, plan(), asked, ledger, "s")
    path = tmp_path / "x.ssf.tsv"
    summary_statistics.write_ssf(made, path)
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    assert rows[0][:8] == [
        *("chromosome", "base_pair_location", "effect_allele", "other_allele", "beta"),
        *("standard_error", "effect_allele_frequency", "p_value"),
    ]
    assert [(row[0], row[10]) for row in rows[1:]] == [
        ("2", "rs12"),
        ("2", "#NA"),
        ("23", "rs3"),
        ("23", "rs25"),
    ]
    assert rows[2][2] == rows[2][11] == "#NA" and rows[1][11] == "2_3000012_C_A"
    result = made.association()
    place = names.index("rs12")
    assert np.isclose(float(rows[1][4]), np.log(result.odds_ratio[place]), rtol=1e-4)
    assert np.isclose(float(rows[1][5]), result.se[place], rtol=1e-4)
    about = yaml.safe_load((tmp_path / "x.ssf.tsv-meta.yaml").read_text())
    assert about["data_file_md5sum"] == hashlib.md5(path.read_bytes()).hexdigest()
    assert about["file_type"] == "GWAS-SSF v1.0" and about["is_sorted"] is True
    assert about["samples"][0]["sample_size"] == found.cases + found.controls
    assert (
        isinstance(about["date_metadata_last_modified"], date) and "noise" in about["author_notes"]
    )
    assert "genome_assembly" not in about
    with refused("--save", hint=True):
        summary_statistics.check_ssf(path, "chi2")


def test_inflation_is_that_of_the_median(tmp_path):
    write_study(tmp_path / "s", random_copies(31), ["3"] * 31)
    found = gwas.read_study(tmp_path / "s")
    values = report_gwas.exact_statistics(found)[2]
    wanted = np.median(values[np.isfinite(values)]) / 0.4549364
    assert np.isclose(report_gwas.genomic_inflation(found), wanted) and np.isnan(values[:3]).any()
    drawn = report_gwas.quantile_chart(found).to_dict()
    assert "private" in drawn["title"]
