"""Counting: the kernel against a plain loop, PLINK's own counts, shards, Spark, VCF, tables."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whosin as wi
from environments import require_program
from refusals import refused
from spark_session import shared_spark
from whosin import gwas
from whosin.errors import InvalidInput
from whosin.gwas import attack, bed, study
from whosin.gwas.people import read_people
from whosin.report import gwas as report_gwas

STORED = Path(__file__).parents[1] / "data" / "gwas"


def write_study(
    path: Path, copies: np.ndarray, status: list[int], sexes: list[int] | None = None
) -> Path:
    """PLINK files of copies of A1 (SNPs × people, −1 missing)."""
    bed.write_bed(path, [copies])
    snps = "".join(
        f"{1 + i * 22 // len(copies)}\trs{i}\t0\t{100 + i}\tA\tC\n" for i in range(len(copies))
    )
    bed.sibling_path(path, ".bim").write_text(snps)
    sex = sexes or [1 + i % 2 for i in range(len(status))]
    people = "".join(f"f{i} p{i} 0 0 {sex[i]} {s}\n" for i, s in enumerate(status))
    bed.sibling_path(path, ".fam").write_text(people)
    return path


def random_study(path: Path, snps: int, people: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    copies = rng.integers(-1, 3, (snps, people)).astype(np.int8)
    status = rng.choice([2, 1, 0, -9], people, p=[0.4, 0.4, 0.1, 0.1]).tolist()
    status[:4] = [1, 1, 2, 2]
    return write_study(path, copies, status), copies, np.array(status)


def counted(copies: np.ndarray, status: np.ndarray) -> list[list[int]]:
    """By the definition, one genotype after the other."""
    rows = []
    for row in copies.tolist():
        counts = {(group, g): 0 for group in (2, 1) for g in range(3)}
        for genotype, label in zip(row, status.tolist(), strict=True):
            if (label, genotype) in counts:
                counts[label, genotype] += 1
        rows.append(list(counts.values()))
    return rows


@pytest.mark.parametrize("people", [4, 5, 33, 63, 64, 65, 129, 1003])
def test_counts_are_those_of_a_loop(tmp_path, people):
    path, copies, status = random_study(tmp_path / "a.study", 17, people, people)
    assert wi.gwas.count_bed(path).tolist() == counted(copies, status)
    assert wi.gwas.count_bed(f"{path}.bed").tolist() == counted(copies, status)


@settings(max_examples=30, deadline=None)
@given(st.integers(4, 300), st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_padding_bits_do_not_count(people, snps, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 256, (snps, -(-people // 4)), dtype=np.uint8)
    label = rng.permutation(np.resize([2, 1, 0], people))
    groups = bed.Groups(label == 2, label == 1)
    bits = rows[:, :, None] >> np.arange(0, 8, 2, dtype=np.uint8) & 3
    copies = bed.COPIES_BY_CODE[bits.reshape(snps, 4 * rows.shape[1])[:, :people]]
    assert bed.count_rows(rows, groups).tolist() == counted(copies, label)


def test_many_people():
    """More words than sixteen bits can add up at once."""
    people = 150_003
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 256, (3, -(-people // 4)), dtype=np.uint8)
    rows[0] = 255
    label = rng.permutation(np.resize([2, 1], people))
    bits = rows[:, :, None] >> np.arange(0, 8, 2, dtype=np.uint8) & 3
    copies = bed.COPIES_BY_CODE[bits.reshape(3, -1)[:, :people]]
    wanted = [
        [int(((label == group) & (row == g)).sum()) for group in (2, 1) for g in range(3)]
        for row in copies
    ]
    assert bed.count_rows(rows, bed.Groups(label == 2, label == 1)).tolist() == wanted


def test_packing_is_undone_by_reading(tmp_path):
    path, copies, _ = random_study(tmp_path / "s", 9, 30)
    opened = bed.open_bed(path, 30, 9)
    assert (opened.genotypes(np.arange(9)) == copies).all()
    assert (opened.genotypes(np.array([8, 2]), np.array([3, 1])) == copies[[8, 2]][:, [3, 1]]).all()


def test_shards_threads_and_processes_agree(tmp_path, monkeypatch):
    path, copies, status = random_study(tmp_path / "s", 50, 37)
    monkeypatch.setattr(study, "split_shards", lambda file: [(0, 20), (20, 41), (41, 50)])
    seen = []
    wanted = counted(copies, status)
    for processes in (None, 1, 2):
        found = gwas.count_bed(path, processes=processes, progress=lambda *at: seen.append(at))
        assert found.tolist() == wanted
    assert seen[-1] == (50, 50) and len(seen) == 9
    assert study.count_bed(path).dtype == np.int64


def test_shards_cover_every_snp(monkeypatch):
    file = bed.Bed(Path("x"), 1000, 1234)
    monkeypatch.setattr(study, "SHARD_BYTES", 250 * 100)
    ranges = study.split_shards(file)
    assert len(ranges) == 13
    assert ranges[0][0] == 0 and ranges[-1][1] == 1234
    assert all(before[1] == after[0] for before, after in pairwise(ranges))


@pytest.mark.filterwarnings(  # Py4J leaves its sockets to the collector
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_spark_counts_the_same(tmp_path, monkeypatch):
    path, copies, status = random_study(tmp_path / "s", 40, 101)
    monkeypatch.setattr(study, "SHARD_BYTES", 26 * 7)
    found = gwas.count_bed_spark(path, shared_spark().session)
    assert found.tolist() == counted(copies, status)


def plink_counts(path: Path, *options: str) -> list[tuple[str, ...]]:
    """A1's copies and alleles among cases and controls, by `plink1.9 --assoc counts`."""
    command = ["plink1.9", "--bfile", str(path), "--assoc", "counts", "--keep-allele-order"]
    run = [*command, "--out", str(path), *options]
    subprocess.run(run, check=True, capture_output=True)
    lines = path.with_name(path.name + ".assoc").read_text().splitlines()
    return [tuple(line.split()) for line in lines[1:]]


def agrees(rows: list[tuple[str, ...]], counts: np.ndarray) -> bool:
    """C_A and C_U are copies of A1; CHISQ is printed to four digits."""
    copies = [(int(a[1] + 2 * a[2]), int(a[4] + 2 * a[5])) for a in counts]
    chi2 = gwas.allelic_chi2(counts)
    same = [(int(row[4]), int(row[5])) for row in rows] == copies
    return same and all(
        value == 0 if row[7] == "NA" else np.isclose(float(row[7]), value, rtol=6e-4, atol=1e-3)
        for row, value in zip(rows, chi2, strict=True)
    )


@pytest.mark.parametrize(("people", "no_sex"), [(60, False), (203, False), (120, True)])
def test_plink_counts_the_same(tmp_path, people, no_sex):
    require_program("plink1.9")
    rng = np.random.default_rng(people)
    frequencies = rng.uniform(0, 1, (80, 1))
    copies = rng.binomial(2, frequencies, (80, people)).astype(np.int8)
    copies[rng.random(copies.shape) < 0.05] = -1
    copies[0], copies[1] = 0, 2
    status = rng.choice([2, 1, -9], people, p=[0.45, 0.45, 0.1]).tolist()
    sexes = rng.choice([0, 1, 2], people).tolist() if no_sex else None
    path = write_study(tmp_path / "s", copies, status, sexes)
    if no_sex:
        assert agrees(plink_counts(path), gwas.count_bed(path, leave_out_no_sex=True))
        assert agrees(plink_counts(path, "--allow-no-sex"), gwas.count_bed(path))
        assert not agrees(plink_counts(path), gwas.count_bed(path))
        return
    assert agrees(plink_counts(path), gwas.count_bed(path))
    given = path.with_name("given.txt")
    lines = [f"f{i} p{i} {1 + (i * i) % 3 % 2}\n" for i in range(0, people, 2)]
    given.write_text("FID IID sick\n" + "".join(lines))
    found = gwas.count_bed(path, given)
    assert agrees(plink_counts(path, "--pheno", str(given)), found)


def test_a_stored_result_of_plink():
    lines = (STORED / "small.assoc").read_text().splitlines()[1:]
    counts = gwas.count_bed(STORED / "small")
    assert agrees([tuple(line.split()) for line in lines], counts)
    assert not agrees([tuple(line.split()) for line in lines], counts[:, [2, 1, 0, 3, 4, 5]])


VCF = """##fileformat=VCFv4.2
##contig=<ID=1>
##contig=<ID=X>
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ta\tb\tc\td\te
1\t10\trs1\tG\tA\t.\t.\t.\tGT\t0/0\t0/1\t1/1\t1|1\t./.
1\t20\t.\tG\tA,C\t.\t.\t.\tGT\t0/0\t0/1\t1/2\t1|1\t0/0
1\t30\t.\tT\tC\t.\t.\t.\tGT\t1/1\t0/.\t0/0\t1|0\t1/1
X\t40\trs4\tT\tC\t.\t.\t.\tGT\t1/1\t0/0\t0/0\t1|0\t1/1
"""


def test_vcf_is_counted(tmp_path):
    pytest.importorskip("cyvcf2", reason="the extra 'vcf' is not installed")
    (tmp_path / "s.vcf").write_text(VCF)
    (tmp_path / "labels").write_text("a a 2\nb b 2\nc c 1\nd d 1\ne e 1\n")
    found = gwas.read_study(tmp_path / "s.vcf", tmp_path / "labels")
    assert found.snps.name == ["rs1", "1:30"]
    assert (found.snps.a1, found.snps.a2) == (["A", "C"], ["G", "T"])
    assert found.counts.tolist() == [[1, 1, 0, 0, 0, 2], [0, 0, 1, 1, 1, 1]]
    assert (found.cases, found.controls, found.left_out) == (2, 3, 2)
    with refused("phenotype file"):
        gwas.read_study(tmp_path / "s.vcf")
    (tmp_path / "no.vcf").write_text("nothing")
    with refused("no.vcf"):
        gwas.read_study(tmp_path / "no.vcf", tmp_path / "labels")


def test_tables_of_counts_come_back(tmp_path):
    path, copies, status = random_study(tmp_path / "s", 30, 50)
    found = gwas.read_study(path)
    study.write_table(found, tmp_path / "counts.tsv")
    again = gwas.read_study(tmp_path / "counts.tsv")
    assert again.counts.tolist() == found.counts.tolist() == counted(copies, status)
    assert (again.cases, again.controls) == (found.cases, found.controls)
    assert again.snps.name == found.snps.name
    assert again.snps.position.tolist() == found.snps.position.tolist()


def test_haploid_chromosomes_are_left_out(tmp_path):
    path, copies, status = random_study(tmp_path / "s", 5, 20)
    lines = [f"{c} rs{c} 0 5 A C" for c in ("1", "X", "chrY", "26", "22")]
    bed.sibling_path(path, ".bim").write_text("\n".join(lines))
    found = gwas.read_study(path)
    assert found.snps.name == ["rs1", "rsX", "rs22"] and found.left_out == 2
    wanted = counted(copies, status)
    assert found.counts[[0, 2]].tolist() == [wanted[place] for place in (0, 4)]
    fam = bed.sibling_path(path, ".fam")
    lines = [line.split() for line in fam.read_text().splitlines()]
    fam.write_text("".join(" ".join([*row[:4], "0", row[5]]) + "\n" for row in lines))
    unknown = gwas.read_study(path)  # who is male is not known
    assert unknown.snps.name == ["rs1", "rs22"] and unknown.left_out == 3


OTHER_FORMATS = (
    *("kg.bgen kg.bgen", "kg kg.bgen", "kg.gen.gz", "kg.ped kg.ped"),
    *("kg.tped", "kg kg.haps", "kg.vcf.zst", "kg.gen"),
)


@pytest.mark.parametrize("files", OTHER_FORMATS)
def test_other_formats_are_named(tmp_path, files):
    """Before anything else is looked for: not `kg.pgen.fam: no such file`."""
    given, *there = files.split()
    for name in there:
        (tmp_path / name).write_bytes(b"l\x1b\x10")
    for read in (gwas.read_study, gwas.count_bed, attack.GenotypePanel.of):
        with pytest.raises(InvalidInput) as caught:
            read(tmp_path / given)
        assert caught.value.value == [given, *there][-1] and "--make-bed" in caught.value.hint


def test_a_bed_file_beside_other_formats_is_read(tmp_path):
    path, *_ = random_study(tmp_path / "s", 10, 13)
    (tmp_path / "s.bgen").write_bytes(b"l\x1b\x10")
    (tmp_path / "s.pgen").write_bytes(b"l\x1b\x10")
    assert len(gwas.read_study(path).snps) == 10
    with pytest.raises(FileNotFoundError):
        gwas.read_study(tmp_path / "nothing")


def test_everybody_who_was_genotyped_is_counted(tmp_path):
    path, copies, status = random_study(tmp_path / "s", 30, 50)
    found = gwas.read_study(path)
    assert found.unlabelled == int((status <= 0).sum()) > 0 and found.people == 50
    assert found.genotyped().tolist() == [[int((r == g).sum()) for g in range(3)] for r in copies]


def test_na_is_where_plink_writes_it(tmp_path):
    """Nothing varies, nobody is known in a group or at all, an allele is absent: all that PLINK
    prints, word for word or number for number."""
    require_program("plink1.9")
    rng = np.random.default_rng(2)
    rows = [[0] * 8, [2] * 8, [-1] * 8, [-1] * 4 + [0, 1, 1, 2], [0, 1, 1, 2] + [-1] * 4]
    rows += [[1] + [0] * 7, [0] * 7 + [1], [2] * 4 + [0] * 4, [-1] * 4 + [0] * 4, [1] + [2] * 7]
    copies = np.array([*rows, *rng.integers(-1, 3, (40, 8))], dtype=np.int8)
    path = write_study(tmp_path / "s", copies, [2] * 4 + [1] * 4)
    command = ["plink1.9", "--bfile", str(path), "--assoc", "--keep-allele-order", "--out"]
    subprocess.run([*command, str(path)], check=True, capture_output=True)
    report_gwas.write_exact(gwas.read_study(path), tmp_path / "ours")
    plinks = [line.split() for line in (tmp_path / "s.assoc").read_text().splitlines()]
    ours = [line.split("\t") for line in (tmp_path / "ours").read_text().splitlines()]
    for name in ("F_A", "F_U", "CHISQ", "P", "OR"):
        column, wanted = ours[0].index(name), plinks[0].index(name)
        for row, plinks_row in zip(ours[1:], plinks[1:], strict=True):
            value, exact = row[column], plinks_row[wanted]
            assert (value == "NA") == (exact == "NA"), (name, row, plinks_row)
            assert value == "NA" or np.isclose(float(value), float(exact), rtol=6e-4, atol=1e-6)


BROKEN = {  # what becomes of the bytes, and what is named
    "truncated": (lambda data: data[:-1], "s.bed"),
    "longer": (lambda data: data + b"\0", "s.bed"),
    "empty": (lambda data: b"", "s.bed"),
    "magic": (lambda data: b"\0" + data[1:], "s.bed"),
    "individual-major": (lambda data: data[:2] + b"\0" + data[3:], "s.bed"),
    "unknown-major": (lambda data: data[:2] + b"\7" + data[3:], "third byte of s.bed"),
}


def test_broken_bed_files_are_refused(tmp_path):
    path, *_ = random_study(tmp_path / "s", 10, 13)
    file = bed.sibling_path(path, ".bed")
    whole = file.read_bytes()
    for change, field in BROKEN.values():
        file.write_bytes(change(whole))
        with refused(field):
            gwas.count_bed(path)


@pytest.mark.parametrize(
    ("file", "text", "field"),
    [
        (".fam", "", "s.fam"),
        (".fam", "f p 0 0 1\n", "s.fam"),
        (".fam", "".join(f"f p{i} 0 0 1 1\n" for i in range(13)), "cases in s.fam"),
        (".fam", "".join(f"f p{i} 0 0 1 2\n" for i in range(13)), "controls in s.fam"),
        (".fam", "".join(f"f p{i} 0 0 1 {i + 1}.5\n" for i in range(13)), "phenotypes"),
        (".fam", "f p 0 0 1 1\n" * 13, "s.fam"),
        (".fam", "".join(f"f p{i} 0 0 1 {1 + i % 2}\n" for i in range(12)), "s.bed"),
        (".bim", "1 rs 0 1 A C\n" * 9, "s.bed"),
        (".bim", "", "s.bim"),
        (".bim", "1 rs 0 1 A\n" * 10, "s.bim"),
        (".bim", "1 rs 0 x A C\n" * 10, "s.bim"),
    ],
)
def test_wrong_companions_are_refused(tmp_path, file, text, field):
    path, *_ = random_study(tmp_path / "s", 10, 13)
    bed.sibling_path(path, file).write_text(text)
    with refused(field) as caught:
        gwas.read_study(path)
    assert "p3" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "t.tsv"),
        ("CHR SNP BP A1 A2 CASE_0\n", "t.tsv"),
        ("HEAD1 rs 1 A C 1 1 1 1 1\n", "t.tsv"),
        ("HEAD1 rs 1 A C 1 1 x 1 1 1\n", "t.tsv"),
        ("HEAD1 rs 1 A C 1 1 -1 1 1 1\n", "counts"),
        ("HEAD1 rs 1 A C 1 1 1 1 1 1\n1 rt 2 A C 1 1 0 1 1 1\n", "t.tsv"),
        ("# cases 2 controls 3\nHEAD1 rs 1 A C 1 1 1 1 1 1\n", "counts"),
        ("# cases two controls 3\nHEAD", "t.tsv"),
        ("# cases 1 controls 3\nHEAD1 rs 1 A C 1 0 0 1 1 1\n", "cases in the study"),
    ],
)
def test_wrong_tables_are_refused(tmp_path, text, field):
    head = "CHR SNP BP A1 A2 CASE_0 CASE_1 CASE_2 CONTROL_0 CONTROL_1 CONTROL_2\n"
    (tmp_path / "t.tsv").write_text(text.replace("HEAD", head))
    with refused(field):
        gwas.read_study(tmp_path / "t.tsv")


def test_more_refusals(tmp_path):
    path, *_ = random_study(tmp_path / "s", 10, 13)
    for processes in (0, True, 1.5):
        with refused("processes"):
            gwas.count_bed(path, processes=processes)
    with pytest.raises(FileNotFoundError):
        gwas.count_bed(tmp_path / "nothing")
    (tmp_path / "twice").write_text("f0 p0 1\nf0 p0 2\n")
    with pytest.raises(InvalidInput, match="more than once"):
        read_people(bed.sibling_path(path, ".fam"), tmp_path / "twice")
